//! Several policies on one case, planned alike and judged alike.
//!
//! In: a [`Case`], [`Entrant`]s, how much each may search. Out: a [`Comparison`]. Must not know: what the case is part of.

use super::draw::Case;
use super::judge::{Figures, Judge, Limits};
use super::stats::mean;
use super::{Cell, EvaluateError, Measured, word};
use crate::report::evaluation::Entry;
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

/// Means over the cases of one configuration, whose name goes with each.
pub(super) struct Means<'a, N>(pub &'a [(N, Comparison)]);

impl<N> Means<'_, N> {
    /// Of a figure of the cases.
    pub fn over(&self, of: impl Fn(&Comparison) -> f64) -> f64 {
        mean(self.0.iter().map(|(_, result)| of(result)))
    }

    /// Of one entrant.
    pub fn of(&self, policy: &str) -> Figures {
        let all: Vec<Figures> =
            self.0.iter().filter_map(|(_, result)| result.mean(policy)).collect();
        Figures::mean(&all)
    }
}

/// Communication ms, its changes against each base, utilisation, its changes likewise.
pub(super) fn versus((comm_ms, utilisation): (Option<f64>, f64), bases: &[Figures]) -> Vec<Entry> {
    let change = |own: f64, base: f64, less| Entry::change(own / base - 1.0, less);
    let comm = |base: &Figures| change(comm_ms.unwrap_or(f64::NAN), base.comm_ms, true);
    let mut entries = vec![Entry::maybe(comm_ms, 1)];
    entries.extend(bases.iter().map(comm));
    entries.push(Entry::number(utilisation, 4));
    entries.extend(bases.iter().map(|base| change(utilisation, base.utilisation, false)));
    entries
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
