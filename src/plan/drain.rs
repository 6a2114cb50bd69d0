//! How long everything takes when all flows start together.
//!
//! In: link rates, what flows ask for, a plan that [`super::check`] accepts. Out: completion times. Must not know: any
//! solver: this is the slow and plain recomputation that solvers are compared with.
//!
//! The model: strict priority between queues; inside a queue rates are max-min fair over what the queues above leave on
//! each link, found by progressive filling (Bertsekas & Gallager, Data Networks, 6.5.2); rates change only when a flow
//! completes. Rings are not coupled: a flow does not wait for its neighbours.

use super::{Demand, Plan};
use crate::id::JobId;
use crate::units::BitRate;

/// A link is full, and a flow done, within this share of its capacity or size: rounding, not a model parameter.
const EPSILON: f64 = 1e-9;

/// Rate of every flow at one instant, bit/s. `active[i]` flows send; a rate may be 0 under strict priority.
/// `rates[l]` is the capacity of link `l`.
#[must_use]
pub fn rates_now(rates: &[BitRate], plan: &Plan, active: &[bool]) -> Vec<f64> {
    let mut left: Vec<f64> = rates.iter().map(|rate| rate.0 as f64).collect();
    let full: Vec<f64> = left.iter().map(|capacity| capacity * EPSILON).collect();
    let mut flow_rates = vec![0.0; plan.assignments.len()];
    let mut queues: Vec<u8> = plan.assignments.iter().map(|a| a.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    for &queue in queues.iter().rev() {
        let mut rising: Vec<usize> = (0..plan.assignments.len())
            .filter(|&i| active[i] && plan.assignments[i].queue == queue)
            .collect();
        while !rising.is_empty() {
            // Flows that cross a full link cannot rise any further.
            let links = |i: usize| plan.assignments[i].path.links.iter().map(|link| link.index());
            rising.retain(|&i| links(i).all(|link| left[link] > full[link]));
            let mut crossing = vec![0_u32; left.len()];
            for link in rising.iter().flat_map(|&i| links(i)) {
                crossing[link] += 1;
            }
            // All others rise together until the next link is full.
            let shares = (0..left.len()).filter(|&l| crossing[l] > 0);
            let step = shares.map(|l| left[l] / f64::from(crossing[l])).min_by(f64::total_cmp);
            let Some(step) = step else { break };
            for &i in &rising {
                flow_rates[i] += step;
                for link in links(i) {
                    left[link] -= step;
                }
            }
        }
    }
    flow_rates
}

/// Completion time of every flow in seconds when all start at 0, `None` for a flow that never completes (a dead link).
/// `rates[l]` is the capacity of link `l`; `demands[i]` belongs to `plan.assignments[i]`.
#[must_use]
pub fn completions(rates: &[BitRate], demands: &[Demand], plan: &Plan) -> Vec<Option<f64>> {
    let mut bits: Vec<f64> = demands.iter().map(|demand| demand.bytes as f64 * 8.0).collect();
    let mut done: Vec<Option<f64>> =
        bits.iter().map(|&bits| (bits <= 0.0).then_some(0.0)).collect();
    let mut now = 0.0;
    while done.iter().any(Option::is_none) {
        let active: Vec<bool> = done.iter().map(Option::is_none).collect();
        let flow_rates = rates_now(rates, plan, &active);
        let waits = (0..bits.len()).filter(|&i| active[i] && flow_rates[i] > 0.0);
        let next = waits.map(|i| bits[i] / flow_rates[i]).min_by(f64::total_cmp);
        let Some(next) = next else { break };
        now += next;
        for i in (0..bits.len()).filter(|&i| active[i]) {
            bits[i] -= flow_rates[i] * next;
            if bits[i] <= demands[i].bytes as f64 * 8.0 * EPSILON {
                done[i] = Some(now);
            }
        }
    }
    done
}

/// Completion of every job (its largest flow's) by ascending job id, from the completions of the flows; `None` for a
/// job with a flow that never completes.
#[must_use]
pub fn by_job(demands: &[Demand], completions: &[Option<f64>]) -> Vec<(JobId, Option<f64>)> {
    let mut jobs: std::collections::BTreeMap<JobId, Option<f64>> =
        std::collections::BTreeMap::new();
    for (demand, completion) in demands.iter().zip(completions) {
        let entry = jobs.entry(demand.job).or_insert(Some(0.0));
        *entry = match (*entry, *completion) {
            (Some(a), Some(b)) => Some(a.max(b)),
            _ => None,
        };
    }
    jobs.into_iter().collect()
}

#[cfg(test)]
mod tests;
