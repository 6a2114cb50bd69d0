//! The plans of a run, one after the other.
//!
//! In: the controller's goals whenever their generation has changed. Out: path and queue per flow at each plan. Must not know why.

use crate::controller::rollout::Goal;
use crate::id::FlowId;
use crate::time::Time;
use crate::topology::Path;
use std::collections::BTreeMap;

/// Plans kept: a run of the demo has a handful; one that plans without end must not fill memory.
pub const MAX_PLANS: usize = 256;
/// Placements kept over all plans, for fabrics of many thousand flows.
pub const MAX_PLACED: usize = 200_000;

/// What one flow was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its path.
    pub path: Path,
    /// Its queue.
    pub queue: u8,
}

/// One plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanAt {
    /// When it was made.
    pub at: Time,
    /// Its generation.
    pub generation: u64,
    /// By flow.
    pub flows: BTreeMap<FlowId, Placed>,
}

/// The recorder.
#[derive(Clone, Debug, Default)]
pub struct PlanLog {
    plans: Vec<PlanAt>,
    placed: usize,
    left_out: u64,
    newest: u64,
}

impl PlanLog {
    /// Notes the goals of a generation that was not noted yet.
    pub fn note(&mut self, at: Time, generation: u64, goals: &BTreeMap<FlowId, Goal>) {
        if generation <= self.newest {
            return;
        }
        self.newest = generation;
        if self.plans.len() >= MAX_PLANS || self.placed + goals.len() > MAX_PLACED {
            self.left_out += 1;
            return;
        }
        self.placed += goals.len();
        let placed = |(flow, goal): (&FlowId, &Goal)| {
            (*flow, Placed { path: goal.path.clone(), queue: goal.forward.queue })
        };
        let flows = goals.iter().map(placed).collect();
        self.plans.push(PlanAt { at, generation, flows });
    }

    /// The plans kept, and how many there were beyond.
    #[must_use]
    pub fn finish(self) -> (Vec<PlanAt>, u64) {
        (self.plans, self.left_out)
    }
}
