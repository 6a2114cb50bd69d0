//! The invariants themselves (docs/control, "Deterministic simulation").

use super::{Finding, Invariant, View};
use crate::id::{FlowId, LinkId, SwitchId};
use crate::pipeline::labels::Label;
use crate::pipeline::path_forward;
use crate::plan::{CONTROL_QUEUE, RAISED_QUEUE};
use crate::sim::packet::link::End;
use crate::sim::world::Happened;
use std::collections::BTreeMap;

/// Every label that a present `classify` entry can write leads from its leaf to the flow's sink leaf.
pub struct LabelsInstalled;

/// The program drops a tag that has passed so many switches.
const MAX_HOPS: usize = 8;

fn tables_changed(happened: &Happened) -> bool {
    matches!(happened, Happened::Executed(_, true) | Happened::Restarted(_))
}

impl Invariant for LabelsInstalled {
    fn name(&self) -> &'static str {
        "LabelsInstalled"
    }

    fn check(&mut self, view: &View<'_>, happened: &Happened) -> Finding {
        if !tables_changed(happened) {
            return Ok(());
        }
        for leaf in view.topology.switches() {
            for (key, tag) in &view.tables.of(leaf).classify {
                let hosts = view.topology.hosts();
                let sink = hosts
                    .filter(|host| view.topology.host_ip(*host) == key.dst)
                    .map(|host| view.topology.leaf_of(host))
                    .next();
                for label in [tag.label, tag.old_label] {
                    walk(view, leaf, label, sink, &mut Vec::new()).map_err(|found| {
                        let wanted = format!(
                            "label {} of {} -> {} to lead from switch {leaf} to its sink leaf {sink:?}",
                            label.0, key.src, key.dst
                        );
                        (wanted, found)
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// Follows a label and collects its links; a hole at a switch whose entries are lost and under repair is that restart's doing.
fn walk(
    view: &View<'_>,
    leaf: SwitchId,
    label: Label,
    sink: Option<SwitchId>,
    links: &mut Vec<LinkId>,
) -> Result<(), String> {
    let mut at = leaf;
    for _ in 0..MAX_HOPS {
        match view.tables.of(at).labels.get(&label) {
            Some(path_forward::Action::Sink) if Some(at) == sink => return Ok(()),
            Some(path_forward::Action::Sink) => return Err(format!("it ends at switch {at}")),
            Some(path_forward::Action::Forward { port }) => {
                let node = view.topology.switch_node(at);
                let out = view.topology.out_links(node).iter();
                let next = out.copied().find(|link| view.topology.link(*link).from_port == *port);
                links.extend(next);
                match next.map(|link| view.net.link(link).to) {
                    Some(End::Switch(next, _)) => at = next,
                    other => return Err(format!("port {port} of switch {at} leads to {other:?}")),
                }
            }
            None if view.damaged.contains(&at) => return Ok(()),
            None => return Err(format!("no entry at switch {at}")),
        }
    }
    Err(format!("more than {MAX_HOPS} hops"))
}

/// No packet meets a switch that does not know its label, unless a switch has lost its entries.
#[derive(Default)]
pub struct NoLabelMiss {
    /// Misses while switches were damaged.
    excused: u64,
}

impl Invariant for NoLabelMiss {
    fn name(&self) -> &'static str {
        "NoLabelMiss"
    }

    fn check(&mut self, view: &View<'_>, happened: &Happened) -> Finding {
        // Counters are read when control-plane events happen, not after each packet.
        if matches!(happened, Happened::Net(_)) {
            return Ok(());
        }
        let misses: u64 = view
            .topology
            .switches()
            .map(|switch| {
                let server = view.net.forwarder(switch).server();
                view.tables.label_misses(server, view.now)
            })
            .sum();
        // A restart also clears the counter.
        if !view.damaged.is_empty() || misses < self.excused {
            self.excused = misses;
        }
        if misses > self.excused {
            return Err((format!("{} label misses", self.excused), misses.to_string()));
        }
        Ok(())
    }
}

/// Packets of a flow arrive in order unless the controller forced a flip or a switch restarted.
#[derive(Default)]
pub struct OrderKept {
    seen: u64,
}

impl Invariant for OrderKept {
    fn name(&self) -> &'static str {
        "OrderKept"
    }

    fn check(&mut self, view: &View<'_>, _happened: &Happened) -> Finding {
        let reordered = view.net.reordered_total();
        if reordered == self.seen {
            return Ok(());
        }
        self.seen = reordered;
        if view.restarted {
            // A leaf that lost its registers has forgotten which flip was in force.
            return Ok(());
        }
        for flow in view.flows {
            let count = view.net.reordered(flow.id);
            if count > 0 && !view.forced.contains(&flow.id) {
                let wanted = format!("packets of flow {} in order", flow.id);
                return Err((wanted, format!("{count} behind a later one")));
            }
        }
        Ok(())
    }
}

/// Data in the queues that plans may use or the raised one, acknowledgements in the control queue; on no link more than one
/// raised flow.
pub struct QueueInRange {
    /// Queues that plans may use: `0..levels`.
    pub levels: u8,
}

impl Invariant for QueueInRange {
    fn name(&self) -> &'static str {
        "QueueInRange"
    }

    fn check(&mut self, view: &View<'_>, happened: &Happened) -> Finding {
        if !tables_changed(happened) {
            return Ok(());
        }
        for leaf in view.topology.switches() {
            let tables = view.tables.of(leaf);
            if let Some(entry) = tables.unreadable.first() {
                return Err(("entries as the controller writes them".into(), entry.clone()));
            }
            for (key, tag) in &tables.classify {
                let reverse = view.flows.iter().any(|flow| flow.reverse == *key);
                let fits = |queue: u8| match reverse {
                    true => queue == CONTROL_QUEUE,
                    false => queue < self.levels || queue == RAISED_QUEUE,
                };
                if !fits(tag.queue) || !fits(tag.old_queue) {
                    let wanted = match reverse {
                        true => format!("queue {CONTROL_QUEUE} for acknowledgements"),
                        false => format!("queues 0..{} or {RAISED_QUEUE}", self.levels),
                    };
                    let found =
                        format!("queue {} after {} at switch {leaf}", tag.queue, tag.old_queue);
                    return Err((wanted, found));
                }
            }
        }
        one_raised_per_link(view)
    }
}

/// The raised queue is not shared: a straggler that waits behind another is not helped.
fn one_raised_per_link(view: &View<'_>) -> Finding {
    let mut raised: BTreeMap<LinkId, FlowId> = BTreeMap::new();
    for leaf in view.topology.switches() {
        let entries = view.tables.of(leaf).classify.iter();
        for (key, tag) in entries.filter(|(_, tag)| tag.queue == RAISED_QUEUE) {
            let Some(flow) = view.flows.iter().find(|flow| flow.key == *key) else { continue };
            let mut links = vec![view.topology.uplink(flow.src), view.topology.downlink(flow.dst)];
            let sink = Some(view.topology.leaf_of(flow.dst));
            // A label that leads nowhere is another statement's matter.
            let _ = walk(view, leaf, tag.label, sink, &mut links);
            for link in links {
                if let Some(other) = raised.insert(link, flow.id).filter(|other| *other != flow.id)
                {
                    let wanted = format!("at most one raised flow on link {link}");
                    return Err((wanted, format!("flows {other} and {}", flow.id)));
                }
            }
        }
    }
    Ok(())
}

/// Everything that waits has a bound.
pub struct Bounded;

/// Control-plane events on their way: every switch may have its calls, stream messages and timers under way.
const MAX_WAITING_PER_SWITCH: usize = 512;
/// Calls to one switch without an answer: the controller's write window and its reads.
const MAX_CALLS_OUT: u32 = 16;

impl Invariant for Bounded {
    fn name(&self) -> &'static str {
        "Bounded"
    }

    fn check(&mut self, view: &View<'_>, _happened: &Happened) -> Finding {
        let bound = MAX_WAITING_PER_SWITCH * view.topology.switch_count().max(1);
        if view.waiting > bound {
            return Err((
                format!("at most {bound} control-plane events"),
                view.waiting.to_string(),
            ));
        }
        for (switch, calls) in view.calls_out.iter().enumerate() {
            if *calls > MAX_CALLS_OUT {
                let wanted = format!("at most {MAX_CALLS_OUT} calls to switch {switch}");
                return Err((wanted, calls.to_string()));
            }
        }
        Ok(())
    }
}
