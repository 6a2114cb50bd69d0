//! `crux`: GPU intensity, path selection, priority assignment and priority compression, as published.
//!
//! Source: Crux (Cao et al., SIGCOMM 2024, DOI 10.1145/3651890.3672239), sections 3, 4.1, 4.2, 4.3.
//!
//! Formulas: intensity `I_j = W_j / t_j` with W_j the work of one iteration and `t_j = max_e M_{j,e} / B_e` (equation
//! 2); priority `P_j = k_j * I_j` (equation 3). Steps:
//! 1. Jobs by intensity, highest first; each flow takes the least congested of its candidate paths at that moment.
//! 2. The job with most network traffic is the reference, k = 1. Any other job shares one link with it in a two-job
//!    simulation, once with each order: `k_j = (what j gains by being first) / (what the reference gains by being first)`
//!    in network seconds ([`correction`]).
//! 3. Jobs by P_j get unique priorities; [`compress`] cuts them into as many levels as there are queues: a longest
//!    chain of cuts in ten random topological orders of the contention DAG (algorithm 1).
//!
//! Our inference, where the paper is silent: W_j is compute seconds x GPUs; congestion of a path is the largest load
//! `sum M_{k,e} / B_e` of its links, then the sum, then the lowest index; the largest flow of a job goes first; t_j for
//! step 1 is that of the hosts' links (paths are not chosen yet), for steps 2 and 3 that of the chosen paths; the
//! closed form of k_j follows from the paper's example 1, which is a test; both jobs of the simulation start to
//! communicate at 0 and it covers one cycle of each order's pattern, or 64 iterations of the longer job if none repeats
//! (the paper's windows hold transients, its example 2 nothing else); if the reference gains nothing, k_j is 1 when j gains nothing either and
//! [`CORRECTION_MAX`] otherwise.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};

mod compress;
mod correction;
#[cfg(test)]
mod tests;

pub use compress::{ORDERS, compress};
pub use correction::{CORRECTION_MAX, Pulse, correction, network_seconds, network_shares};

/// See the module.
pub struct Crux;

impl Policy for Crux {
    fn name(&self) -> &'static str {
        "crux"
    }

    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = choose(&instance, effort.seed);
        let intensity = intensities(&instance, |job| instance.alone(&choice, job));
        Instance::plan(problem, &choice, self.name(), |flow| {
            format!("intensity {:.3}", intensity[instance.flows[flow].job])
        })
    }
}

/// GPU intensity of every job, GPU-seconds of compute per second of its busiest link; infinite for a job that sends
/// nothing.
#[must_use]
pub fn intensities(instance: &Instance, alone: impl Fn(usize) -> f64) -> Vec<f64> {
    let jobs = instance.jobs.iter().enumerate();
    jobs.map(|(id, job)| job.compute * job.gpus / alone(id)).collect()
}

/// The policy on an instance; `seed` draws the topological orders of the compression.
#[must_use]
pub fn choose(instance: &Instance, seed: u64) -> Choice {
    let before = intensities(instance, |job| greedy::least_alone(instance, job));
    let order = greedy::jobs_by(instance, |job| before[job]);
    let flows = greedy::flows_of(instance, &order);
    let path = greedy::place(instance, &flows, |flow| instance.flows[flow].bytes);
    let mut choice = Choice { path, queue: vec![0; instance.flows.len()] };
    let intensity = intensities(instance, |job| instance.alone(&choice, job));
    let priority = priorities(instance, &choice, &intensity);
    let shares = sharing(instance, &choice);
    let level = compress(&priority, &intensity, &shares, usize::from(instance.levels), seed);
    for (flow, shape) in instance.flows.iter().enumerate() {
        choice.queue[flow] = instance.levels - 1 - level[shape.job] as u8;
    }
    choice
}

/// `P_j = k_j * I_j` of every job.
#[must_use]
pub fn priorities(instance: &Instance, choice: &Choice, intensity: &[f64]) -> Vec<f64> {
    let traffic = |job: usize| -> f64 {
        let rings = instance.jobs[job].rings.iter();
        let flows = rings.flat_map(|&ring| &instance.rings[ring].flows);
        flows.map(|&f| instance.flows[f].bytes * instance.links(choice, f).len() as f64).sum()
    };
    let pulse = |job: usize| Pulse {
        compute: instance.jobs[job].compute,
        overlap: instance.jobs[job].overlap,
        comm: instance.alone(choice, job),
    };
    let Some(&reference) = greedy::jobs_by(instance, traffic).first() else {
        return Vec::new();
    };
    (0..instance.jobs.len())
        .map(|job| {
            let k = if job == reference { 1.0 } else { correction(pulse(reference), pulse(job)) };
            k * intensity[job]
        })
        .collect()
}

/// `shares[a][b]`: whether two jobs use a common link.
#[must_use]
pub fn sharing(instance: &Instance, choice: &Choice) -> Vec<Vec<bool>> {
    let links: Vec<Vec<usize>> = (0..instance.jobs.len())
        .map(|job| instance.job_load(choice, job).into_iter().map(|(link, _)| link).collect())
        .collect();
    let common =
        |a: &Vec<usize>, b: &Vec<usize>| a.iter().any(|link| b.binary_search(link).is_ok());
    links.iter().map(|a| links.iter().map(|b| common(a, b)).collect()).collect()
}
