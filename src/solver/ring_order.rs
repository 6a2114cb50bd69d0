//! The order of hosts in a ring, for jobs that leave it open: chosen before there are flows.
//!
//! In: jobs, which of them may be reordered, the fabric. Out: the same jobs, those with other orders of the same hosts.
//! Must not know: scenario files, controllers.
//!
//! A ring crosses between leaves as often as two neighbours sit on different leaves: at least once per leaf when hosts of
//! one leaf are neighbours, up to once per host when they are mixed. Among the orders with the fewest crossings the order
//! of the leaves decides which pairs of leaves talk. Job by job, most traffic first, a few orders ([`candidates`]) are
//! tried with cheap plans and the short simulation of iterating jobs; the given order stays unless one is better.
//! Every policy then plans the same flows.

use super::instance::{Choice, Instance};
use super::objective::{Evaluator, Yardstick};
use super::policy::{greedy, least_loaded, sebf};
use super::{Effort, InForce, Problem};
use crate::id::{HostId, JobId};
use crate::topology::{LinkSet, PathError, Paths, Topology};
use crate::workload::{FlowError, Job, flows};
use rand::seq::SliceRandom as _;

#[cfg(test)]
mod tests;

/// Orders tried per job, the given one included: few leaves have few orders, and among many leaves chance does as well.
pub const ORDERS_MAX: usize = 8;
/// Times that all jobs are gone through; an order that was best among the first others may not be among the later ones.
const PASSES: usize = 2;
/// Share of the objective that another order must gain.
const WORTH: f64 = 0.002;

/// Why no order could be chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RingOrderError {
    /// A job that the fabric cannot hold.
    #[error("no ring order can be chosen for jobs without flows")]
    Flows(#[from] FlowError),
    /// A fabric without paths.
    #[error("no ring order can be chosen on a fabric without paths")]
    Paths(#[from] PathError),
}

/// Where the jobs run.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Candidate paths per pair of leaves.
    pub max_paths: usize,
    /// Queues of plans.
    pub levels: u8,
}

/// Orders of a ring worth trying: as given; hosts of a leaf side by side, leaves in the order in which they first occur, by
/// number, and at random. Host order within a leaf stays; no order occurs twice.
#[must_use]
pub fn candidates(topology: &Topology, ranks: &[HostId], seed: u64) -> Vec<Vec<HostId>> {
    let mut leaves: Vec<Vec<HostId>> = Vec::new();
    for &host in ranks {
        let leaf = topology.leaf_of(host);
        match leaves.iter_mut().find(|hosts| topology.leaf_of(hosts[0]) == leaf) {
            Some(hosts) => hosts.push(host),
            None => leaves.push(vec![host]),
        }
    }
    let mut orders = vec![ranks.to_vec(), leaves.concat()];
    leaves.sort_by_key(|hosts| topology.leaf_of(hosts[0]));
    orders.push(leaves.concat());
    let mut random = crate::time::stream(seed, "ring-order", 0);
    for _ in orders.len()..ORDERS_MAX {
        // A ring has no beginning: the first leaf can stay.
        leaves[1..].shuffle(&mut random);
        orders.push(leaves.concat());
    }
    let mut known = std::collections::BTreeSet::new();
    orders.retain(|order| known.insert(order.clone()));
    orders
}

/// Chooses orders for the jobs in `free`; all others keep theirs. The effort gives objective, phases and seed.
///
/// # Errors
/// See [`RingOrderError`].
pub fn arrange(
    ground: &Ground<'_>,
    jobs: &[Job],
    free: &[JobId],
    effort: &Effort<'_>,
) -> Result<Vec<Job>, RingOrderError> {
    let mut jobs = jobs.to_vec();
    if free.is_empty() {
        return Ok(jobs);
    }
    let paths = Paths::build(ground.topology, &LinkSet::default(), ground.max_paths)?;
    let mut order: Vec<usize> =
        (0..jobs.len()).filter(|&job| free.contains(&jobs[job].id)).collect();
    order.sort_by_key(|&job| (std::cmp::Reverse(jobs[job].gradient), job));
    let mut best = worth(ground, &paths, &jobs, effort)?;
    for pass in 0..PASSES {
        let before = best;
        for &job in &order {
            let seed = effort.seed.wrapping_add((pass * jobs.len() + job) as u64);
            for ranks in candidates(ground.topology, &jobs[job].ranks, seed) {
                let present = std::mem::replace(&mut jobs[job].ranks, ranks);
                let score = worth(ground, &paths, &jobs, effort)?;
                if best - score > WORTH * best.abs() {
                    best = score;
                } else {
                    jobs[job].ranks = present;
                }
            }
        }
        if best >= before {
            break;
        }
    }
    Ok(jobs)
}

/// The best of three cheap plans: one queue, shortest communication first, smallest bottleneck first.
fn worth(
    ground: &Ground<'_>,
    trees: &Paths,
    jobs: &[Job],
    effort: &Effort<'_>,
) -> Result<f64, RingOrderError> {
    let flows = flows(ground.topology, jobs)?;
    let candidates =
        |flow: &crate::workload::Flow| trees.candidates(ground.topology, flow.src, flow.dst);
    let paths: Vec<_> = flows.iter().map(candidates).collect();
    let instance = Instance::new(&Problem {
        topology: ground.topology,
        jobs,
        flows: &flows,
        paths: &paths,
        levels: ground.levels,
        in_force: InForce::default(),
    });
    let yardstick = Yardstick::new(&instance, effort);
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let placed = least_loaded::choose(&instance);
    let order = greedy::jobs_by(&instance, |job| -greedy::least_alone(&instance, job));
    let queues = greedy::balanced_queues(&order, instance.levels);
    let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
    let queued = Choice { path: placed.path.clone(), queue };
    let plans = [placed, queued, sebf::choose(&instance)];
    let scores = plans.iter().map(|plan| evaluator.score(plan, f64::INFINITY));
    Ok(scores.fold(f64::INFINITY, f64::min))
}
