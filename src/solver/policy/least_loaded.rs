//! `least-loaded`: good paths, one queue.
//!
//! Formula: load of link e = sum over the flows on it of bytes per iteration / contention-free period / capacity of e,
//! that is the share of time the link is busy; path of a flow = argmin over candidates of (largest load on it, sum).
//! Steps: flows by their rate, largest first; place each on its least loaded path; all in one queue. Source: the
//! textbook list-scheduling heuristic (Graham 1969), as central flow schedulers use it. Our inference: the load is an
//! average over the iteration, so that a job that mostly computes weighs little.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, FlowShape, Instance};
use crate::solver::{Effort, Policy, Problem};

/// See the module.
pub struct LeastLoaded;

impl Policy for LeastLoaded {
    fn name(&self) -> &'static str {
        "least-loaded"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = choose(&instance);
        Instance::plan(problem, &choice, self.name(), |_| {
            "least loaded path when its turn came".to_owned()
        })
    }
}

/// The policy on an instance.
#[must_use]
pub fn choose(instance: &Instance) -> Choice {
    let demand = rates(instance);
    let mut order: Vec<usize> = (0..instance.flows.len()).collect();
    order.sort_by(|&a, &b| demand[b].total_cmp(&demand[a]).then(a.cmp(&b)));
    let path = greedy::place(instance, &order, |flow| demand[flow]);
    Choice { path, queue: vec![0; instance.flows.len()] }
}

/// [`rate`] of every flow, by flow id: the jobs' periods are found once.
#[must_use]
pub fn rates(instance: &Instance) -> Vec<f64> {
    let period = |job| instance.period(job, greedy::least_alone(instance, job));
    let periods: Vec<f64> = (0..instance.jobs.len()).map(period).collect();
    let rate = |flow: &FlowShape| flow.bytes / periods[flow.job].max(f64::MIN_POSITIVE);
    instance.flows.iter().map(rate).collect()
}

/// Average bytes per second of a flow while its job meets no contention.
#[must_use]
pub fn rate(instance: &Instance, flow: usize) -> f64 {
    let job = instance.flows[flow].job;
    let period = instance.period(job, greedy::least_alone(instance, job));
    instance.flows[flow].bytes / period.max(f64::MIN_POSITIVE)
}
