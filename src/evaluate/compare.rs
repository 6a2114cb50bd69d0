//! Several policies on one case, planned alike and judged alike.
//!
//! In: a [`Case`], [`Entrant`]s, how much each may search. Out: a [`Comparison`]. Must not know: what the case is part of.

use super::draw::Case;
use super::judge::{Figures, Judge, Limits};
use super::{Cell, EvaluateError, Measured, word};
use crate::solver::{Effort, Objective, Policy, policy};
use serde::{Deserialize, Serialize};

/// A policy and what it is told to minimise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrant {
    /// Name of the policy.
    pub policy: String,
    /// What it minimises; only searching policies look at it.
    pub objective: Objective,
}

impl Entrant {
    /// A policy with the default objective.
    #[must_use]
    pub fn of(policy: &str) -> Self {
        Self { policy: policy.to_owned(), objective: Objective::default() }
    }

    /// `joint`, `joint comm`.
    #[must_use]
    pub fn name(&self) -> String {
        if self.objective == Objective::default() {
            return self.policy.clone();
        }
        format!("{} {}", self.policy, word(self.objective))
    }
}

/// A cell of the presets that compare policies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The case.
    pub case: Case,
    /// Who takes part.
    pub entrants: Vec<Entrant>,
    /// How.
    pub protocol: Protocol,
}

/// Measures such a cell.
///
/// # Errors
/// As [`compare`].
pub fn measure(cell: &Cell) -> Result<Measured, EvaluateError> {
    let spec: Spec = cell.spec()?;
    Measured::of(&compare(&spec.case, &spec.entrants, spec.protocol)?)
}

/// How plans are made and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protocol {
    /// Simulated evaluations of a searching policy.
    pub evaluations: u64,
    /// Planning draws.
    pub planning_draws: u32,
    /// Judging draws.
    pub judging_draws: u64,
}

/// How one entrant did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// [`Entrant::name`].
    pub policy: String,
    /// By judging draw.
    pub draws: Vec<Figures>,
}

/// How all did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Jobs of the case.
    pub jobs: usize,
    /// Flows of the case.
    pub flows: usize,
    /// Bounds.
    pub limits: Limits,
    /// In the order of the entrants.
    pub standings: Vec<Standing>,
}

impl Comparison {
    /// Mean over draws of one entrant.
    #[must_use]
    pub fn mean(&self, policy: &str) -> Option<Figures> {
        let standing = self.standings.iter().find(|standing| standing.policy == policy)?;
        Some(Figures::mean(&standing.draws))
    }
}

/// A policy that a cell names.
pub(super) fn named(name: &str) -> Result<&'static dyn Policy, EvaluateError> {
    policy::by_name(name).ok_or_else(|| EvaluateError::Case(format!("there is no policy '{name}'")))
}

/// What is said of a plan that does not belong to the case.
pub(super) fn alien(policy: &str) -> EvaluateError {
    EvaluateError::Case(format!("the plan of '{policy}' is none of this case"))
}

/// Plans and judges.
///
/// # Errors
/// A case that cannot be drawn, a policy that does not exist or whose plan is none of the case.
pub fn compare(
    case: &Case,
    entrants: &[Entrant],
    protocol: Protocol,
) -> Result<Comparison, EvaluateError> {
    let drawn = case.draw()?;
    let judge = Judge::new(&drawn, case.seed, protocol.judging_draws);
    let problem = drawn.problem();
    let mut standings = Vec::new();
    for entrant in entrants {
        let policy = named(&entrant.policy)?;
        let effort = Effort {
            seed: case.seed,
            max_evaluations: protocol.evaluations,
            stop: &|| false,
            objective: entrant.objective,
            phases: protocol.planning_draws,
        };
        let plan = policy.plan(&problem, &effort);
        let draws = judge
            .figures(&drawn, &plan, policy.shifts(&problem, &plan).as_deref())
            .ok_or_else(|| alien(&entrant.policy))?;
        standings.push(Standing { policy: entrant.name(), draws });
    }
    Ok(Comparison {
        jobs: drawn.jobs.len(),
        flows: drawn.flows.len(),
        limits: judge.limits(),
        standings,
    })
}
