//! `taccl-star`: least congested paths, the job that has farther to go first.
//!
//! Formula: distance of a job = links of its longest flow. Steps: jobs by distance, longest first, then by bytes on links,
//! most first; each flow takes the least congested of its candidate paths at that moment; the order is cut into balanced
//! groups, one queue each. Source: the comparator `TACCL*` of Crux (SIGCOMM 2024, section 6), which has little to do with
//! TACCL (NSDI 2023), a synthesiser of single collectives. Our inference: distance counts links; ties are broken by traffic; groups
//! are balanced, as Crux's authors did for Varys.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};

/// See the module.
pub struct TacclStar;

impl Policy for TacclStar {
    fn name(&self) -> &'static str {
        "taccl-star"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = choose(&instance);
        Instance::plan(problem, &choice, self.name(), |flow| {
            format!("{} links to go", distance(&instance, instance.flows[flow].job))
        })
    }
}

/// The policy on an instance.
#[must_use]
pub fn choose(instance: &Instance) -> Choice {
    let mut order: Vec<usize> = (0..instance.jobs.len()).collect();
    order.sort_by(|&a, &b| {
        let far = distance(instance, b).cmp(&distance(instance, a));
        far.then(traffic(instance, b).total_cmp(&traffic(instance, a))).then(a.cmp(&b))
    });
    let flows = greedy::flows_of(instance, &order);
    let path = greedy::place(instance, &flows, |flow| instance.flows[flow].bytes);
    let queues = greedy::balanced_queues(&order, instance.levels);
    let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
    Choice { path, queue }
}

fn flows(instance: &Instance, job: usize) -> impl Iterator<Item = usize> {
    instance.jobs[job].rings.iter().flat_map(|&ring| instance.rings[ring].flows.iter().copied())
}

/// Links of the job's longest flow by its first candidate: all candidates are shortest paths. 0 for a job on one host.
fn distance(instance: &Instance, job: usize) -> usize {
    flows(instance, job).map(|flow| instance.flows[flow].candidates[0].len()).max().unwrap_or(0)
}

/// Bytes times links of one iteration.
fn traffic(instance: &Instance, job: usize) -> f64 {
    let of =
        |flow: usize| instance.flows[flow].bytes * instance.flows[flow].candidates[0].len() as f64;
    flows(instance, job).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::tests::instance;

    #[test]
    fn farther_jobs_go_first_and_among_equals_the_one_with_more_traffic() {
        let one = |path: Vec<usize>| vec![vec![path]];
        let instance = instance(
            &[1.0; 5],
            &[
                (1.0, vec![(9.0, one(vec![0, 4]))]),
                (1.0, vec![(1.0, one(vec![0, 1, 2, 4]))]),
                (1.0, vec![(2.0, one(vec![0, 1, 3, 4]))]),
            ],
        );
        let queue = choose(&instance).queue;
        assert!(queue[2] > queue[1] && queue[1] > queue[0], "{queue:?}");
    }

    #[test]
    fn a_flow_avoids_the_link_that_an_earlier_job_took() {
        let two = || vec![vec![vec![0, 2, 4], vec![0, 3, 4]]];
        let instance = instance(&[9.0; 5], &[(1.0, vec![(5.0, two())]), (1.0, vec![(4.0, two())])]);
        let choice = choose(&instance);
        assert_ne!(choice.path[0], choice.path[1]);
    }
}
