//! `sincronia`: an order of jobs within twice of the best for one shared bottleneck model (BSSI).
//!
//! Formula: `v_{j,e} = M_{j,e} / B_e`, the seconds that one iteration of job j keeps link e busy; weights `w_j` = 1. Steps,
//! from the last position of the order to the first: the link with the largest `sum v_{j,e}` over the jobs left is the
//! bottleneck b; of the jobs on it the one with the smallest `w_j / v_{j,b}` comes last; every other job pays `w_j -= beta *
//! v_{j,b}`, where beta is that smallest value. The first `levels - 1` jobs of the order get a queue of their own, the rest
//! share the lowest. Source: Sincronia (Agarwal et al., SIGCOMM 2018): bottleneck, select, scale, iterate; the split into
//! levels is how Crux (SIGCOMM 2024, section 4.3) describes it as a comparator. Our inference: a coflow is one iteration's
//! AllReduce, links take the place of a big switch's ports, paths, of which Sincronia has none, are least loaded.

use super::least_loaded;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};

/// See the module.
pub struct Sincronia;

impl Policy for Sincronia {
    fn name(&self) -> &'static str {
        "sincronia"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let path = least_loaded::choose(&instance).path;
        let (choice, order) = choose(&instance, path);
        Instance::plan(problem, &choice, self.name(), |flow| {
            let job = instance.flows[flow].job;
            let position = order.iter().position(|&other| other == job).unwrap_or_default();
            format!("{} of {} in bottleneck order", position + 1, order.len())
        })
    }
}

/// The policy on an instance with paths: the choice, and the order of jobs, first served first.
#[must_use]
pub fn choose(instance: &Instance, path: Vec<u16>) -> (Choice, Vec<usize>) {
    let mut choice = Choice { path, queue: vec![0; instance.flows.len()] };
    let order = bssi(&seconds(instance, &choice));
    for (flow, shape) in instance.flows.iter().enumerate() {
        let position = order.iter().position(|&job| job == shape.job).unwrap_or_default();
        let group = position.min(usize::from(instance.levels) - 1);
        choice.queue[flow] = instance.levels - 1 - group as u8;
    }
    (choice, order)
}

/// Seconds of every job on every link, by job, then link.
fn seconds(instance: &Instance, choice: &Choice) -> Vec<Vec<f64>> {
    let of = |job: usize| {
        let mut row = vec![0.0; instance.capacity.len()];
        for (link, seconds) in instance.job_load(choice, job) {
            row[link] = seconds;
        }
        row
    };
    (0..instance.jobs.len()).map(of).collect()
}

/// The order of jobs, first served first, from the seconds of every job on every link (rows: jobs). Jobs that load no link come
/// first, by index; ties go to the lower link and let the higher job come later.
#[must_use]
pub fn bssi(seconds: &[Vec<f64>]) -> Vec<usize> {
    let links = seconds.first().map_or(0, Vec::len);
    let mut weight = vec![1.0; seconds.len()];
    let mut left: Vec<usize> = (0..seconds.len()).collect();
    let mut backwards = Vec::with_capacity(seconds.len());
    while !left.is_empty() {
        let total = |link: usize| left.iter().map(|&job| seconds[job][link]).sum::<f64>();
        let busiest = (0..links).fold((0, 0.0), |best, link| {
            let sum = total(link);
            if sum > best.1 { (link, sum) } else { best }
        });
        let (bottleneck, sum) = busiest;
        if sum <= 0.0 {
            backwards.extend(left.drain(..).rev());
            break;
        }
        let ratio = |job: usize| weight[job] / seconds[job][bottleneck];
        let on_it = left.iter().copied().filter(|&job| seconds[job][bottleneck] > 0.0);
        let last = on_it.rev().min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
        let Some(last) = last else { break };
        let beta = ratio(last);
        left.retain(|&job| job != last);
        for &job in &left {
            weight[job] -= beta * seconds[job][bottleneck];
        }
        backwards.push(last);
    }
    backwards.reverse();
    backwards
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::tests::instance;
    use rand::RngExt as _;

    /// Sum of completion times when links work through jobs in this order and a job ends with its last link.
    fn cost(seconds: &[Vec<f64>], order: &[usize]) -> f64 {
        let mut busy = vec![0.0; seconds[0].len()];
        let mut sum = 0.0;
        for &job in order {
            let mut end = 0.0_f64;
            for (link, busy) in busy.iter_mut().enumerate() {
                *busy += seconds[job][link];
                if seconds[job][link] > 0.0 {
                    end = end.max(*busy);
                }
            }
            sum += end;
        }
        sum
    }

    fn best(seconds: &[Vec<f64>], order: &mut Vec<usize>, from: usize) -> f64 {
        if from == order.len() {
            return cost(seconds, order);
        }
        let mut least = f64::INFINITY;
        for next in from..order.len() {
            order.swap(from, next);
            least = least.min(best(seconds, order, from + 1));
            order.swap(from, next);
        }
        least
    }

    #[test]
    fn on_one_link_the_shortest_job_comes_first() {
        assert_eq!(bssi(&[vec![3.0], vec![1.0], vec![2.0]]), [1, 2, 0]);
    }

    #[test]
    fn a_long_job_elsewhere_does_not_wait_behind_the_bottleneck() {
        // Link 0 is the bottleneck of jobs 0 and 1; job 2 uses link 1 alone.
        assert_eq!(bssi(&[vec![4.0, 0.0], vec![2.0, 1.0], vec![0.0, 3.0]]), [1, 2, 0]);
    }

    #[test]
    fn the_order_costs_at_most_twice_the_best_of_all_orders_and_mostly_nothing_more() {
        let mut equal = 0;
        for case in 0..200 {
            let mut random = crate::time::stream(5, "open shop", case);
            let (jobs, links) = (random.random_range(2..=6), random.random_range(1..=4));
            let mut draw =
                || if random.random_bool(0.3) { 0.0 } else { random.random_range(0.1..5.0) };
            let seconds: Vec<Vec<f64>> =
                (0..jobs).map(|_| (0..links).map(|_| draw()).collect()).collect();
            let least = best(&seconds, &mut (0..jobs).collect(), 0);
            let order = bssi(&seconds);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..jobs).collect::<Vec<_>>(), "every job once");
            let ours = cost(&seconds, &order);
            assert!(ours <= 2.0 * least + 1e-9, "case {case}: {ours} against {least}");
            equal += u32::from(ours <= least * (1.0 + 1e-9));
        }
        assert!(equal > 100, "{equal} of 200 are optimal");
    }

    #[test]
    fn jobs_beyond_the_levels_share_the_lowest_queue() {
        let jobs: Vec<_> =
            (1..=8).map(|n| (1.0, vec![(f64::from(n), vec![vec![vec![0]]])])).collect();
        let mut instance = instance(&[1.0], &jobs);
        instance.levels = 3;
        let (choice, order) = choose(&instance, vec![0; 8]);
        assert_eq!(order, (0..8).collect::<Vec<_>>());
        assert_eq!(choice.queue, [2, 1, 0, 0, 0, 0, 0, 0]);
    }
}
