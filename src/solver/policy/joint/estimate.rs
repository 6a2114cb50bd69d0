//! A mean-field estimate of a choice: every job sees the others as the share of time in which they send.
//!
//! In: an instance and a choice. Out: estimated figures, good enough to rank starts and never used to accept one. Must
//! not know: phases.
//!
//! With busy share `b_k = comm_k / period_k` of job k and `t_{j,e}` the seconds that job j's bytes keep link e busy alone,
//! `comm_j = max over e of t_{j,e} * (1 + sum over same-queue k of b_k) / prod over higher k of (1 - u_{k,e})`, where
//! `u_{k,e} = t_{k,e} / period_k` is k's average use of e. Iterated from contention-free times.

use crate::solver::Objective;
use crate::solver::fluid::Metrics;
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective;

/// Rounds of the fixed point; it settles within a per cent by then.
const ROUNDS: usize = 6;

/// A higher job never takes more than this share of a link in the estimate, or lower ones would never finish.
const USE_MAX: f64 = 0.95;

/// Estimated figures.
#[derive(Clone, Copy, Debug)]
pub struct Estimate(pub Metrics);

impl Estimate {
    /// The objective's value, lower is better.
    #[must_use]
    pub fn value(&self, objective: Objective) -> f64 {
        objective::value(objective, &self.0)
    }
}

/// Use of one link by one job.
struct Use {
    job: usize,
    queue: u8,
    seconds: f64,
}

/// Estimates a choice.
#[must_use]
pub fn mean_field(instance: &Instance, choice: &Choice) -> Estimate {
    let jobs = instance.jobs.len();
    let mut links: Vec<Vec<Use>> = Vec::new();
    links.resize_with(instance.capacity.len(), Vec::new);
    for (flow, shape) in instance.flows.iter().enumerate() {
        let queue = choice.queue[flow];
        for &link in instance.links(choice, flow) {
            let seconds = shape.bytes / instance.capacity[link];
            let known = links[link].iter_mut().find(|u| u.job == shape.job && u.queue == queue);
            match known {
                Some(known) => known.seconds += seconds,
                None => links[link].push(Use { job: shape.job, queue, seconds }),
            }
        }
    }
    let iso: Vec<f64> = (0..jobs).map(|job| instance.alone(choice, job)).collect();
    let mut comm = iso.clone();
    for _ in 0..ROUNDS {
        let period: Vec<f64> = (0..jobs).map(|job| instance.period(job, comm[job])).collect();
        let mut next = iso.clone();
        for users in &links {
            for own in users {
                let mut stretch = 1.0;
                let mut company = 1.0;
                for other in users.iter().filter(|other| other.job != own.job) {
                    if other.queue > own.queue {
                        stretch /= 1.0 - (other.seconds / period[other.job]).min(USE_MAX);
                    } else if other.queue == own.queue {
                        company += comm[other.job] / period[other.job];
                    }
                }
                next[own.job] = next[own.job].max(own.seconds * stretch * company);
            }
        }
        // Half a step: full steps swing between two jobs that slow each other.
        comm.iter_mut().zip(&next).for_each(|(old, new)| *old = 0.5 * (*old + new));
    }
    Estimate(figures(instance, &iso, &comm))
}

fn figures(instance: &Instance, iso: &[f64], comm: &[f64]) -> Metrics {
    let mut metrics = Metrics::default();
    let senders = iso.iter().filter(|&&seconds| seconds > 0.0).count().max(1) as f64;
    let (mut busy, mut total) = (0.0, 0.0);
    for (id, job) in instance.jobs.iter().enumerate() {
        let work = job.gpus * f64::from(job.iterations);
        busy += work * job.compute;
        total += work * instance.period(id, comm[id]);
        if iso[id] > 0.0 {
            metrics.comm_mean += comm[id] / senders;
            metrics.slowdown += comm[id] / iso[id] / senders;
            metrics.comm_max = metrics.comm_max.max(comm[id]);
        }
    }
    metrics.utilisation = if total > 0.0 { busy / total } else { 1.0 };
    metrics
}
