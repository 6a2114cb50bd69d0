//! Policies: from jobs and candidate paths to a plan.
//!
//! In: a [`Problem`]. Out: a [`crate::plan::Plan`] with a score, bounds and reasons. Must not know: P4, switches, clocks
//! (budgets are counts of evaluations; the cli turns seconds into a deadline check that it passes in).

use crate::plan::Plan;
use crate::topology::{Path, Topology};
use crate::workload::{Flow, Job};

pub mod bound;
pub mod exact;
pub mod fluid;
pub mod instance;
pub mod objective;
pub mod optimality;
pub mod policy;
pub mod rate;
pub mod ring_order;
#[cfg(test)]
pub(crate) mod tests;

/// Everything a policy may look at.
#[derive(Clone, Debug)]
pub struct Problem<'a> {
    /// The fabric; rates of failed links are 0 and no candidate path uses them.
    pub topology: &'a Topology,
    /// Jobs, indexed by `JobId`.
    pub jobs: &'a [Job],
    /// Flows, indexed by `FlowId`.
    pub flows: &'a [Flow],
    /// Candidate paths of each flow, indexed by `FlowId`, never empty.
    pub paths: &'a [Vec<Path>],
    /// Queues the policy may use: `0..levels`, larger served first. At least 1.
    pub levels: u8,
    /// What is in force already; the default for a first plan.
    pub in_force: InForce<'a>,
}

/// What a plan finds when it is not the first. Both lists may be shorter than jobs and flows: what is missing is new.
#[derive(Clone, Copy, Debug, Default)]
pub struct InForce<'a> {
    /// Finished iterations of each job, by `JobId`. Plans are for what is left.
    pub done: &'a [u32],
    /// Path and queue in force of each flow, by `FlowId`; `None` for a flow that has neither or whose path is dead.
    pub routes: &'a [Option<(Path, u8)>],
}

/// What is minimised; all are lower-is-better after the sign is taken (docs/scheduling).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Mean communication time over jobs, seconds.
    Comm,
    /// Minus GPU utilisation.
    Utilisation,
    /// Mean communication time / utilisation, seconds.
    #[default]
    Both,
    /// Mean of communication time / contention-free communication time.
    Slowdown,
    /// Largest communication time, seconds.
    Max,
    /// Sum of one-shot drain times, seconds (ablation and checker).
    Drain,
    /// Static estimate (ablation).
    Static,
}

/// How long and how randomly a policy may search.
pub struct Effort<'a> {
    /// Seed of every random choice.
    pub seed: u64,
    /// Upper bound on simulated evaluations, so that results do not depend on the machine's speed.
    pub max_evaluations: u64,
    /// Asked now and then; `true` ends the search early (deadline, Ctrl-C). Results then depend on when it said so.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// What to minimise.
    pub objective: Objective,
    /// Spread of start phases assumed while planning.
    pub phases: u32,
}

/// The phase that a policy asks of a job: its iterations are to start at `at`, `at + period`, `at + 2 period`, ...
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Shift {
    /// Seconds, below the period.
    pub at: f64,
    /// Seconds, above 0.
    pub period: f64,
}

/// A policy: one file each under `solver/policy/`.
pub trait Policy: Sync {
    /// Name on the command line and in every table.
    fn name(&self) -> &'static str;
    /// Chooses path and queue of every flow. Deterministic in (problem, effort.seed, effort.max_evaluations).
    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan;

    /// When the jobs of one of its plans are to start their iterations, by `JobId`; `None` for a policy that leaves time
    /// to the jobs, as all but `cassini` do. Whoever paces jobs can keep them; a plan itself has no time in it.
    fn shifts(&self, _problem: &Problem<'_>, _plan: &Plan) -> Option<Vec<Shift>> {
        None
    }
}

/// Policies live as statics; whoever owns its policies can hold references to them.
impl<P: Policy + ?Sized> Policy for &P {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan {
        (**self).plan(problem, effort)
    }

    fn shifts(&self, problem: &Problem<'_>, plan: &Plan) -> Option<Vec<Shift>> {
        (**self).shifts(problem, plan)
    }
}
