//! The figures every table shows, from the outcome of a run.
//!
//! In: an [`Outcome`]. Out: [`Metrics`]. Must not know: which network model made the outcome.

use super::{Draws, Fluid, Outcome};
use crate::solver::instance::{Choice, Instance, JobShape, Ring};
use crate::solver::policy::greedy;

/// Figures over all jobs of a run (docs/scheduling, "Metrics").
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Mean over jobs of the job's mean communication time, seconds. A job counts by the share of its iterations that is
    /// still ahead of it: equally in a run from the start.
    pub comm_mean: f64,
    /// Largest mean communication time of a job, seconds.
    pub comm_max: f64,
    /// Mean over jobs of communication time / contention-free communication time.
    pub slowdown: f64,
    /// GPU utilisation, 0..=1: compute seconds of all GPUs / (GPUs x window), each job's window reaching from its first
    /// iteration's start to its last one's end.
    pub utilisation: f64,
}

impl Metrics {
    /// Reads an outcome; `iso` holds each job's contention-free communication seconds (0 for a job that sends nothing,
    /// which then counts in no communication figure). A stalled job makes every time infinite and utilisation 0.
    #[must_use]
    pub fn of(instance: &Instance, outcome: &Outcome, iso: &[f64]) -> Self {
        if outcome.stalled.iter().any(|&stalled| stalled) {
            let never = f64::INFINITY;
            return Self { comm_mean: never, comm_max: never, slowdown: never, utilisation: 0.0 };
        }
        let mut metrics = Self::default();
        let (mut weights, mut busy, mut total) = (0.0_f64, 0.0, 0.0);
        for (id, job) in instance.jobs.iter().enumerate() {
            busy += job.gpus * outcome.compute[id];
            total += job.gpus * outcome.window[id];
            if iso[id] > 0.0 {
                weights += job.ahead;
                metrics.comm_mean += job.ahead * outcome.comm[id];
                metrics.comm_max = metrics.comm_max.max(outcome.comm[id]);
                metrics.slowdown += job.ahead * outcome.comm[id] / iso[id];
            }
        }
        if weights > 0.0 {
            metrics.comm_mean /= weights;
            metrics.slowdown /= weights;
        }
        metrics.utilisation = if total > 0.0 { busy / total } else { 1.0 };
        metrics
    }

    /// Mean of several runs, figure by figure.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let count = all.len().max(1) as f64;
        let over = |figure: fn(&Self) -> f64| all.iter().map(figure).sum::<f64>() / count;
        Self {
            comm_mean: over(|m| m.comm_mean),
            comm_max: over(|m| m.comm_max),
            slowdown: over(|m| m.slowdown),
            utilisation: over(|m| m.utilisation),
        }
    }
}

/// The contention-free limit (ISO): each job has the fabric for itself and its flows avoid each other as well as a greedy
/// placement can. One outcome entry per job, with the same draws as the contended run.
#[must_use]
pub fn contention_free(instance: &Instance, draws: &Draws) -> Outcome {
    let mut choice = Choice::first(instance.flows.len());
    for job in 0..instance.jobs.len() {
        let flows = greedy::flows_of(instance, &[job]);
        let own = greedy::place(instance, &flows, |flow| instance.flows[flow].bytes);
        for flow in flows {
            choice.path[flow] = own[flow];
        }
    }
    alone(instance, &choice, draws)
}

/// Each job has the fabric for itself on the paths of a choice.
#[must_use]
pub fn alone(instance: &Instance, choice: &Choice, draws: &Draws) -> Outcome {
    let mut total = Outcome::default();
    for (id, job) in instance.jobs.iter().enumerate() {
        let own_ring = |&ring: &usize| Ring { job: 0, ..instance.rings[ring].clone() };
        let single = Instance {
            jobs: vec![JobShape { rings: (0..job.rings.len()).collect(), ..job.clone() }],
            rings: job.rings.iter().map(own_ring).collect(),
            ..instance.clone()
        };
        let own = Draws { start: vec![draws.start[id]], compute: vec![draws.compute[id].clone()] };
        let mut outcome = Outcome::default();
        let mut fluid = Fluid::new(&single);
        fluid.load(choice);
        fluid.run(&own, &mut outcome);
        total.comm.append(&mut outcome.comm);
        total.window.append(&mut outcome.window);
        total.compute.append(&mut outcome.compute);
        total.stalled.append(&mut outcome.stalled);
    }
    total
}
