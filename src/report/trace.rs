//! What happened in one policy's run, as plain values.
//!
//! In: numbers and names from whoever ran it. Out: the same, in the shape that the page draws. Must not know how they were measured.
//!
//! Times are milliseconds since the first plan was in force; what the controller did before that is negative.

use super::timeline::TimelineItem;
use serde::{Deserialize, Serialize};

/// One policy's run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PolicyTrace {
    /// The policy.
    pub policy: String,
    /// When the last job ended, ms.
    pub duration_ms: f64,
    /// Length of a bucket of link load, ms.
    pub bucket_ms: f64,
    /// Every directed link.
    pub links: Vec<LinkTrace>,
    /// Every job.
    pub jobs: Vec<JobTrace>,
    /// Queues of the switches, by number.
    pub queues: Vec<QueueDelay>,
    /// Plans in the order in which they were made.
    pub plans: Vec<PlanTrace>,
    /// Plans that were made and are not among them.
    pub plans_left_out: u64,
    /// What happened, in order.
    pub timeline: Vec<TimelineItem>,
}

/// Load of one directed link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkTrace {
    /// Sending end, by name.
    pub from: String,
    /// Receiving end.
    pub to: String,
    /// Whether one end is a host.
    pub at_host: bool,
    /// Share of the link's nominal rate per bucket, 0..=1.
    pub share: Vec<f64>,
    /// The same over the whole run.
    pub mean: f64,
}

/// One job's iterations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobTrace {
    /// The job.
    pub name: String,
    /// Communication time with the fabric to itself, ms, where it is known.
    pub alone_ms: Option<f64>,
    /// Finished iterations in order.
    pub iterations: Vec<IterationTrace>,
}

/// Times of one iteration, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IterationTrace {
    /// Compute starts.
    pub start_ms: f64,
    /// First byte handed to the transport by any rank.
    pub comm_start_ms: f64,
    /// Last byte of the AllReduce at the last rank.
    pub comm_end_ms: f64,
    /// Compute and communication are both done.
    pub end_ms: f64,
}

/// How long packets waited in one queue number of all switches, µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// The queue; larger is served first.
    pub queue: u8,
    /// Packets that left through it.
    pub packets: u64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Longest.
    pub max_us: f64,
}

/// One plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanTrace {
    /// When it was made.
    pub at_ms: f64,
    /// Its generation.
    pub generation: u64,
    /// Its flows, ascending by number.
    pub flows: Vec<FlowPlan>,
}

/// What a plan gives one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPlan {
    /// The flow's number.
    pub flow: u32,
    /// Its job, by name.
    pub job: String,
    /// Sending host.
    pub from: String,
    /// Receiving host.
    pub to: String,
    /// Switches on the way, first to last.
    pub path: String,
    /// Queue.
    pub queue: u8,
}

/// What a re-plan does to one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanChange<'a> {
    /// What it had; `None` for a flow that came.
    pub before: Option<&'a FlowPlan>,
    /// What it gets; `None` for a flow that left.
    pub after: Option<&'a FlowPlan>,
}

impl PlanChange<'_> {
    /// Whether the path differs.
    #[must_use]
    pub fn path(&self) -> bool {
        self.before.map(|flow| &flow.path) != self.after.map(|flow| &flow.path)
    }

    /// Whether the queue differs.
    #[must_use]
    pub fn queue(&self) -> bool {
        self.before.map(|flow| flow.queue) != self.after.map(|flow| flow.queue)
    }
}

/// Flows whose path or queue differs between two plans, ascending by number; both plans are in that order.
#[must_use]
pub fn changes<'a>(before: &'a PlanTrace, after: &'a PlanTrace) -> Vec<PlanChange<'a>> {
    let (mut old, mut new) = (before.flows.iter().peekable(), after.flows.iter().peekable());
    let mut found = Vec::new();
    loop {
        let next = match (old.peek(), new.peek()) {
            (None, None) => break,
            (Some(a), Some(b)) if a.flow == b.flow => {
                PlanChange { before: old.next(), after: new.next() }
            }
            (Some(a), Some(b)) if a.flow < b.flow => PlanChange { before: old.next(), after: None },
            (Some(_), None) => PlanChange { before: old.next(), after: None },
            (_, Some(_)) => PlanChange { before: None, after: new.next() },
        };
        if next.path() || next.queue() {
            found.push(next);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(flows: &[(u32, &str, u8)]) -> PlanTrace {
        let flow = |(flow, path, queue): &(u32, &str, u8)| FlowPlan {
            flow: *flow,
            path: (*path).to_owned(),
            queue: *queue,
            ..FlowPlan::default()
        };
        PlanTrace { flows: flows.iter().map(flow).collect(), ..PlanTrace::default() }
    }

    #[test]
    fn changes_name_moved_requeued_new_and_gone_flows_and_no_other() {
        let before = plan(&[(0, "a", 1), (1, "a", 1), (2, "a", 1), (4, "a", 1)]);
        let after = plan(&[(0, "a", 1), (1, "b", 1), (2, "a", 2), (3, "c", 0)]);
        let found: Vec<_> = changes(&before, &after)
            .iter()
            .map(|change| {
                let flow = change.before.or(change.after).map_or(99, |flow| flow.flow);
                (flow, change.path(), change.queue())
            })
            .collect();
        assert_eq!(found, [(1, true, false), (2, false, true), (3, true, true), (4, true, true)]);
        assert!(changes(&after, &after).is_empty());
    }
}
