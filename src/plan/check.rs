//! Whether a plan can be installed and carried at all.
//!
//! In: a fabric, its link states, what flows ask for, a plan. Out: what is wrong, flow by flow. Shares no code with any
//! solver, so that a solver's mistake cannot hide in it. Must not know: whether the plan is good.

use super::{Demand, Plan};
use crate::id::{FlowId, LinkId, NodeId, SwitchId, TreeId};
use crate::topology::{LinkState, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Most violations reported: the first few name the mistake, thousands of copies help nobody.
pub const MAX_VIOLATIONS: usize = 100;

/// Something that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Not one assignment per flow.
    #[error(
        "the plan has {assignments} assignments for {flows} flows; each flow needs exactly one"
    )]
    Count {
        /// Assignments of the plan.
        assignments: usize,
        /// Flows to be assigned.
        flows: usize,
    },
    /// Assignments out of order, doubled or missing.
    #[error(
        "assignment {index} is for flow {flow}; assignments must stand in flow order, one each"
    )]
    Order {
        /// Position in the plan.
        index: usize,
        /// Flow found there.
        flow: FlowId,
    },
    /// A queue that plans must not use.
    #[error("flow {flow} has queue {queue}; plans use queues below {levels}")]
    Queue {
        /// The flow.
        flow: FlowId,
        /// Its queue.
        queue: u8,
        /// Queues that plans may use.
        levels: u8,
    },
    /// A link id outside the fabric.
    #[error("flow {flow} uses link {link}, and the fabric has {links} links")]
    NoSuchLink {
        /// The flow.
        flow: FlowId,
        /// The link.
        link: LinkId,
        /// Links of the fabric.
        links: usize,
    },
    /// A path that does not start at the source's NIC.
    #[error("the path of flow {flow} does not start with the cable of its source '{host}'")]
    Start {
        /// The flow.
        flow: FlowId,
        /// Its source.
        host: String,
    },
    /// A path that does not end at the destination's NIC.
    #[error("the path of flow {flow} does not end with the cable of its destination '{host}'")]
    End {
        /// The flow.
        flow: FlowId,
        /// Its destination.
        host: String,
    },
    /// Two links in a row that do not touch.
    #[error(
        "the path of flow {flow} breaks after hop {hop}: '{arrives}' is reached and '{leaves}' is left"
    )]
    Broken {
        /// The flow.
        flow: FlowId,
        /// Links before the break.
        hop: usize,
        /// Where the link before ends.
        arrives: String,
        /// Where the next one starts.
        leaves: String,
    },
    /// A node twice on one path.
    #[error("the path of flow {flow} passes '{node}' twice")]
    Loop {
        /// The flow.
        flow: FlowId,
        /// The node.
        node: String,
    },
    /// A link that carries nothing.
    #[error("flow {flow} uses the link {from} -> {to}, which is down")]
    DeadLink {
        /// The flow.
        flow: FlowId,
        /// Sending end.
        from: String,
        /// Receiving end.
        to: String,
    },
    /// Two meanings of one label.
    #[error(
        "flows {first} and {second} both go to leaf '{sink}' on tree {tree}, but leave '{node}' on different links; a \
         label has one next hop at each node"
    )]
    Label {
        /// The flow seen first.
        first: FlowId,
        /// The other flow.
        second: FlowId,
        /// The sink leaf.
        sink: String,
        /// The tree.
        tree: TreeId,
        /// Where they part.
        node: String,
    },
}

/// Everything that is wrong with a plan, at most [`MAX_VIOLATIONS`]; empty when it can be installed. Plans may use
/// queues `0..levels`.
#[must_use]
pub fn check(
    topology: &Topology,
    links: &LinkState,
    demands: &[Demand],
    levels: u8,
    plan: &Plan,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let (assignments, flows) = (plan.assignments.len(), demands.len());
    if assignments != flows {
        found.push(Violation::Count { assignments, flows });
    }
    // (sink leaf, tree, node) -> (link taken there, by whom)
    let mut labels: BTreeMap<(SwitchId, TreeId, NodeId), (LinkId, FlowId)> = BTreeMap::new();
    for (index, (assignment, demand)) in plan.assignments.iter().zip(demands).enumerate() {
        let flow = assignment.flow;
        if flow.index() != index {
            found.push(Violation::Order { index, flow });
        }
        if assignment.queue >= levels {
            found.push(Violation::Queue { flow, queue: assignment.queue, levels });
        }
        let before = found.len();
        check_path(topology, links, demand, flow, &assignment.path.links, &mut found);
        if found.len() == before {
            let sink = topology.leaf_of(demand.dst);
            let inner = &assignment.path.links[1..assignment.path.links.len() - 1];
            for &link in inner {
                let from = topology.link(link).from;
                let key = (sink, assignment.path.tree, from);
                let &mut (other, first) = labels.entry(key).or_insert((link, flow));
                if other != link {
                    let (sink, node) =
                        (name(topology, topology.switch_node(sink)), name(topology, from));
                    let tree = assignment.path.tree;
                    found.push(Violation::Label { first, second: flow, sink, tree, node });
                }
            }
        }
        if found.len() >= MAX_VIOLATIONS {
            found.truncate(MAX_VIOLATIONS);
            break;
        }
    }
    found
}

fn name(topology: &Topology, node: NodeId) -> String {
    topology.node(node).name.clone()
}

fn check_path(
    topology: &Topology,
    state: &LinkState,
    demand: &Demand,
    flow: FlowId,
    path: &[LinkId],
    found: &mut Vec<Violation>,
) {
    let links = topology.links().len();
    if let Some(&link) = path.iter().find(|link| link.index() >= links) {
        found.push(Violation::NoSuchLink { flow, link, links });
        return;
    }
    if path.first() != Some(&topology.uplink(demand.src)) {
        let host = name(topology, topology.host_node(demand.src));
        found.push(Violation::Start { flow, host });
    }
    // Source and destination differ, so the shortest path has two links.
    if path.len() < 2 || path.last() != Some(&topology.downlink(demand.dst)) {
        let host = name(topology, topology.host_node(demand.dst));
        found.push(Violation::End { flow, host });
    }
    for (i, pair) in path.windows(2).enumerate() {
        let (arrives, leaves) = (topology.link(pair[0]).to, topology.link(pair[1]).from);
        if arrives != leaves {
            let (arrives, leaves) = (name(topology, arrives), name(topology, leaves));
            found.push(Violation::Broken { flow, hop: i + 1, arrives, leaves });
            return;
        }
    }
    let mut seen: BTreeSet<NodeId> =
        path.first().map(|&link| topology.link(link).from).into_iter().collect();
    for &id in path {
        let link = topology.link(id);
        if !seen.insert(link.to) {
            found.push(Violation::Loop { flow, node: name(topology, link.to) });
            return;
        }
        if state.rate(topology, id).0 == 0 {
            let (from, to) = (name(topology, link.from), name(topology, link.to));
            found.push(Violation::DeadLink { flow, from, to });
        }
    }
}

#[cfg(test)]
mod tests;
