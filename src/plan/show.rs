//! Plans for people.
//!
//! In: a plan and its fabric. Out: lines of text. Must not know: terminals.

use super::{Assignment, Plan};
use crate::id::FlowId;
use crate::topology::{Path, Topology};
use std::fmt;

/// Names of the nodes on a path, source host first.
#[must_use]
pub fn path_names<'a>(topology: &'a Topology, path: &Path) -> Vec<&'a str> {
    let name = |node| topology.node(node).name.as_str();
    let first = path.links.first().map(|&link| name(topology.link(link).from));
    first.into_iter().chain(path.links.iter().map(|&link| name(topology.link(link).to))).collect()
}

impl fmt::Display for Plan {
    /// One line for the plan, one per flow: tree and queue. Node names need the fabric: see [`Plan::explain`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = self.assignments.len();
        writeln!(f, "plan {} by {}: {flows} flows", self.generation, self.policy)?;
        for Assignment { flow, path, queue, .. } in &self.assignments {
            writeln!(f, "flow {flow}: tree {} queue {queue}", path.tree)?;
        }
        Ok(())
    }
}

/// Why one flow got what it got; printed with `{}`.
pub struct Explain<'a> {
    topology: &'a Topology,
    plan: &'a Plan,
    assignment: &'a Assignment,
}

impl Plan {
    /// The decision about one flow with its reason and whom it shares links with; `None` for a flow that is not in the
    /// plan.
    #[must_use]
    pub fn explain<'a>(&'a self, topology: &'a Topology, flow: FlowId) -> Option<Explain<'a>> {
        let assignment = self.assignments.iter().find(|assignment| assignment.flow == flow)?;
        Some(Explain { topology, plan: self, assignment })
    }
}

/// Flows listed per link; the counts are complete.
const MAX_LISTED: usize = 8;

impl fmt::Display for Explain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Assignment { flow, path, queue, reason } = self.assignment;
        let names = path_names(self.topology, path).join(" > ");
        writeln!(f, "flow {flow}: queue {queue}, {names}")?;
        let reason = if reason.is_empty() { "no reason given" } else { reason };
        writeln!(f, "  why: {reason} (policy {})", self.plan.policy)?;
        for &link in &path.links {
            let mut above = Vec::new();
            let mut beside = Vec::new();
            for other in &self.plan.assignments {
                if other.flow != *flow && other.path.links.contains(&link) {
                    if other.queue > *queue {
                        above.push(other.flow);
                    } else if other.queue == *queue {
                        beside.push(other.flow);
                    }
                }
            }
            if above.is_empty() && beside.is_empty() {
                continue;
            }
            let end = self.topology.link(link);
            let name = |node| &self.topology.node(node).name;
            writeln!(
                f,
                "  {} -> {}: yields to {}, shares with {}",
                name(end.from),
                name(end.to),
                list(&above),
                list(&beside)
            )?;
        }
        Ok(())
    }
}

fn list(flows: &[FlowId]) -> String {
    if flows.is_empty() {
        return "nobody".to_owned();
    }
    let mut text =
        flows.iter().take(MAX_LISTED).map(FlowId::to_string).collect::<Vec<_>>().join(" ");
    if flows.len() > MAX_LISTED {
        text.push_str(&format!(" and {} more", flows.len() - MAX_LISTED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::topology::generate::LeafSpine;
    use crate::topology::{LinkSet, Paths};
    use crate::units::BitRate;

    #[test]
    fn explain_names_the_path_the_reason_and_the_neighbours() {
        let topology = LeafSpine::new(2, 2, 2, BitRate(1_000)).build().unwrap();
        let paths = Paths::build(&topology, &LinkSet::new(), 4).unwrap();
        let give = |flow: u32, from: u32, to: u32, queue: u8| Assignment {
            flow: FlowId(flow),
            path: paths.candidates(&topology, HostId(from), HostId(to))[0].clone(),
            queue,
            reason: if flow == 1 { "shortest job first".into() } else { String::new() },
        };
        let assignments = vec![give(0, 0, 2, 3), give(1, 0, 3, 1), give(2, 1, 3, 1)];
        let plan = Plan { generation: 7, policy: "test".into(), assignments };
        let text = plan.explain(&topology, FlowId(1)).unwrap().to_string();
        assert!(text.contains("queue 1, h1 > leaf1 > spine1 > leaf2 > h4"), "{text}");
        assert!(text.contains("why: shortest job first (policy test)"), "{text}");
        assert!(text.contains("h1 -> leaf1: yields to 0, shares with nobody"), "{text}");
        assert!(text.contains("leaf1 -> spine1: yields to 0, shares with 2"), "{text}");
        assert!(text.contains("leaf2 -> h4: yields to nobody, shares with 2"), "{text}");
        assert!(plan.explain(&topology, FlowId(9)).is_none());
        assert!(plan.to_string().contains("plan 7 by test: 3 flows\nflow 0: tree 0 queue 3\n"));
    }
}
