//! `gsched-g1`, `gsched-g2`: our reading of Gsched, whose text is closed; nothing here is claimed to be its authors' method.
//!
//! **g1**, job-level: share of a job = `c / (compute + c)`, c its contention-free communication seconds; jobs by share, largest
//! first, cut into balanced groups, one queue each. **g2**, flow-level: a flow's queue follows its bytes relative to the
//! largest flow of its ring, in `levels` equal steps, the largest flow in the highest queue. Paths of both are least loaded.
//! Source: title and metadata of "Gsched: Coordinated Flow-Control and Priority Scheduling for DNN Training in AI Cluster" (IEEE
//! TNSE 2026, DOI 10.1109/TNSE.2026.3695132); all else is our inference: senders paced to what higher levels leave over have no
//! separate part, since strict priority leaves lower queues exactly that; of the two directions of g1 the one that is better for
//! communication on the default scenario is taken (docs/scheduling.md); for rings of equal bytes g2 is one queue for all.

use super::{greedy, least_loaded};
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};

/// Job-level reading. See the module.
pub struct G1;

/// Flow-level reading. See the module.
pub struct G2;

impl Policy for G1 {
    fn name(&self) -> &'static str {
        "gsched-g1"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = by_job(&instance);
        Instance::plan(problem, &choice, self.name(), |flow| {
            let share = share(&instance, instance.flows[flow].job);
            format!("communicates {:.0} % of the time", share * 100.0)
        })
    }
}

impl Policy for G2 {
    fn name(&self) -> &'static str {
        "gsched-g2"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = by_flow(&instance);
        Instance::plan(problem, &choice, self.name(), |flow| {
            format!("{:.0} % of its ring's largest flow", of_largest(&instance, flow) * 100.0)
        })
    }
}

/// Share of a contention-free iteration in which a job communicates, 0..=1.
fn share(instance: &Instance, job: usize) -> f64 {
    let comm = greedy::least_alone(instance, job);
    comm / (instance.jobs[job].compute + comm).max(f64::MIN_POSITIVE)
}

/// Bytes of a flow relative to the largest of its ring, 0..=1.
fn of_largest(instance: &Instance, flow: usize) -> f64 {
    let shape = &instance.flows[flow];
    shape.bytes / instance.rings[shape.ring].bytes.max(f64::MIN_POSITIVE)
}

/// g1 on an instance.
#[must_use]
pub fn by_job(instance: &Instance) -> Choice {
    let order = greedy::jobs_by(instance, |job| share(instance, job));
    let queues = greedy::balanced_queues(&order, instance.levels);
    let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
    Choice { path: least_loaded::choose(instance).path, queue }
}

/// g2 on an instance.
#[must_use]
pub fn by_flow(instance: &Instance) -> Choice {
    let queue = (0..instance.flows.len()).map(|flow| {
        let step = (of_largest(instance, flow) * f64::from(instance.levels)).ceil() as u8;
        step.clamp(1, instance.levels) - 1
    });
    Choice { path: least_loaded::choose(instance).path, queue: queue.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::tests::instance;

    #[test]
    fn the_job_that_communicates_most_of_its_time_is_served_first() {
        let one = || vec![vec![vec![0]]];
        let instance = instance(
            &[1.0],
            &[(8.0, vec![(4.0, one())]), (1.0, vec![(2.0, one())]), (3.0, vec![(3.0, one())])],
        );
        let queue = by_job(&instance).queue;
        assert!(queue[1] > queue[2] && queue[2] > queue[0], "{queue:?}");
    }

    #[test]
    fn equal_flows_of_a_ring_share_one_queue_and_smaller_ones_go_lower() {
        let ring = || vec![vec![vec![0]], vec![vec![1]], vec![vec![2]]];
        let mut instance = instance(&[1.0; 3], &[(1.0, vec![(6.0, ring())])]);
        let top = instance.levels - 1;
        assert_eq!(by_flow(&instance).queue, [top; 3]);
        instance.flows[1].bytes = 3.5;
        instance.flows[2].bytes = 0.1;
        assert_eq!(by_flow(&instance).queue, [5, 3, 0], "six levels");
    }
}
