//! What a plan is worth, and what no plan can beat.
//!
//! In: a case, an effort, a plan. Out: the objective's value, bounds, times per job and flow. Everything but the drain
//! bound is read from the fluid simulation over the effort's planning draws.

use super::Case;
use crate::plan::{Demand, Plan, bound};
use crate::solver::fluid::drain::{Drain, drain};
use crate::solver::fluid::{Draws, Fluid, Outcome};
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, Yardstick};
use crate::solver::{Effort, Objective};
use crate::workload::Flow;
use anyhow::Context as _;

/// Figures of one plan.
pub struct Figures {
    /// The objective as a word, its value (utilisation itself, not its negative) and unit.
    pub objective: (&'static str, f64, &'static str),
    /// What no plan can beat: contention-free communication and utilisation, the objective and the drain sum.
    pub bounds: Vec<(&'static str, f64)>,
    /// How far the objective lies from its bound, relative to the bound; `None` where there is no bound.
    pub gap: Option<f64>,
    /// Mean communication seconds of each job over the draws.
    pub comm: Vec<f64>,
    /// Drain times.
    pub drain: Drain,
    /// Proven lower bound of the sum of drain times, seconds.
    pub drain_bound: f64,
}

/// What flows ask of the network.
#[must_use]
pub fn demands(flows: &[Flow]) -> Vec<Demand> {
    flows
        .iter()
        .map(|flow| Demand { job: flow.job, src: flow.src, dst: flow.dst, bytes: flow.bytes })
        .collect()
}

/// Scores a plan.
///
/// # Errors
/// A plan that does not belong to the case.
pub fn figures(case: &Case, effort: &Effort<'_>, plan: &Plan) -> anyhow::Result<Figures> {
    let problem = case.problem();
    let instance = Instance::new(&problem);
    let choice = Instance::choice(&problem, plan)
        .context("the plan uses paths that are no candidates of its flows")?;
    let yardstick = Yardstick::new(&instance, effort);
    let score = Evaluator::new(&instance, &yardstick).score(&choice, f64::INFINITY);
    let drain = drain(&instance, &choice);
    let drain_bound = bound::drain_sum(&case.topology, &case.links, &demands(&case.flows));
    let limits = Limits::new(&instance, &yardstick);
    let (name, unit) = name(effort.objective);
    let value = if effort.objective == Objective::Utilisation { -score } else { score };
    let objective_bound = match effort.objective {
        Objective::Comm => Some(limits.comm),
        Objective::Utilisation => Some(limits.utilisation),
        Objective::Both => Some(limits.comm / limits.utilisation),
        Objective::Slowdown => Some(1.0),
        Objective::Max => Some(limits.comm_max),
        Objective::Drain => Some(drain_bound),
        Objective::Static => None,
    };
    let mut bounds = vec![
        ("contention_free_comm_s", limits.comm),
        ("contention_free_utilisation", limits.utilisation),
        ("drain_sum_s", drain_bound),
    ];
    bounds.extend(objective_bound.map(|bound| ("objective", bound)));
    Ok(Figures {
        objective: (name, value, unit),
        bounds,
        gap: objective_bound.filter(|&bound| bound > 0.0).map(|bound| gap(value, bound)),
        comm: comm(&instance, &choice, &yardstick.draws),
        drain,
        drain_bound,
    })
}

/// Distance from the bound relative to it; 0 also where rounding puts the value on the bound's other side.
fn gap(value: f64, bound: f64) -> f64 {
    let distance = ((value - bound) / bound).abs();
    if distance < 1e-9 { 0.0 } else { distance }
}

fn name(objective: Objective) -> (&'static str, &'static str) {
    match objective {
        Objective::Comm => ("comm", "s"),
        Objective::Utilisation => ("utilisation", "1"),
        Objective::Both => ("both", "s"),
        Objective::Slowdown => ("slowdown", "1"),
        Objective::Max => ("max", "s"),
        Objective::Drain => ("drain", "s"),
        Objective::Static => ("static", "s"),
    }
}

/// Figures of the fabric without contention (ISO). No plan beats them: in every iteration a job's communication takes at
/// least as long as its bytes need on its busiest host link at full rate, and its window is at least the sum of its
/// iterations that long.
struct Limits {
    comm: f64,
    comm_max: f64,
    utilisation: f64,
}

impl Limits {
    fn new(instance: &Instance, yardstick: &Yardstick) -> Self {
        let senders: Vec<f64> = yardstick.iso.iter().copied().filter(|&iso| iso > 0.0).collect();
        let utilisation = |draws: &Draws| {
            let (mut busy, mut window) = (0.0, 0.0);
            for (id, job) in instance.jobs.iter().enumerate() {
                for &compute in &draws.compute[id] {
                    let serial = (1.0 - job.overlap) * compute + yardstick.iso[id];
                    busy += job.gpus * compute;
                    window += job.gpus * compute.max(serial);
                }
            }
            if window > 0.0 { busy / window } else { 1.0 }
        };
        let draws = yardstick.draws.len().max(1) as f64;
        Self {
            comm: senders.iter().sum::<f64>() / (senders.len().max(1) as f64),
            comm_max: senders.iter().copied().fold(0.0, f64::max),
            utilisation: yardstick.draws.iter().map(utilisation).sum::<f64>() / draws,
        }
    }
}

fn comm(instance: &Instance, choice: &Choice, draws: &[Draws]) -> Vec<f64> {
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    let mut comm = vec![0.0; instance.jobs.len()];
    let mut outcome = Outcome::default();
    for draw in draws {
        fluid.run(draw, &mut outcome);
        for (sum, own) in comm.iter_mut().zip(&outcome.comm) {
            *sum += own / draws.len() as f64;
        }
    }
    comm
}
