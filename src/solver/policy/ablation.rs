//! `joint` with one freedom taken away, to see what each is worth.
//!
//! Formula and steps: those of [`super::joint`]; every start and every move is brought into the scope before it is
//! scored, so the budget is spent inside it.
//!
//! | name | what is taken away |
//! |---|---|
//! | `joint-no-paths` | paths: every flow keeps the one that `ecmp` gives it |
//! | `joint-job-queues` | queues by flow: all flows of a job have the same queue, as in Crux |
//! | `joint-one-queue` | queues: all flows have the same, paths alone are chosen |
//!
//! Source: ours.

use super::joint::scope::{Queues, Scope};
use super::{ecmp, joint};
use crate::plan::Plan;
use crate::solver::{Effort, Policy, Problem};

/// `joint` within less.
pub struct Ablation {
    name: &'static str,
    paths: bool,
    queues: Queues,
}

/// `joint-no-paths`.
pub const NO_PATHS: Ablation =
    Ablation { name: "joint-no-paths", paths: false, queues: Queues::ByFlow };
/// `joint-job-queues`.
pub const JOB_QUEUES: Ablation =
    Ablation { name: "joint-job-queues", paths: true, queues: Queues::ByJob };
/// `joint-one-queue`.
pub const ONE_QUEUE: Ablation =
    Ablation { name: "joint-one-queue", paths: true, queues: Queues::One };

impl Policy for Ablation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan {
        let paths = (!self.paths).then(|| ecmp::paths(problem));
        joint::plan_within(
            problem,
            effort,
            self.name,
            &Scope { paths, queues: self.queues, ..Scope::default() },
        )
    }
}
