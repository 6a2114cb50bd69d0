//! `sebf`: smallest effective bottleneck first.
//!
//! Formula: Gamma_j = max over links e of M_{j,e} / B_e, the time one iteration's AllReduce of job j needs alone;
//! ascending Gamma is served first. Steps: order jobs by Gamma (host links, before paths are known); place flows in
//! that order on least loaded paths; cut the order into `levels` balanced groups, one queue each. Source: Varys
//! (Chowdhury et al., SIGCOMM 2014): SEBF. Our inference: a coflow is one iteration's AllReduce; MADD's pacing has no
//! counterpart in a switch queue and is left out (all flows of a ring move at one pace by themselves); Varys has no
//! paths, so they are least loaded; the compression into balanced groups is how Crux's authors ran it.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};

/// See the module.
pub struct Sebf;

impl Policy for Sebf {
    fn name(&self) -> &'static str {
        "sebf"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = choose(&instance);
        Instance::plan(problem, &choice, self.name(), |flow| {
            let job = instance.flows[flow].job;
            format!("bottleneck {:.1} ms", greedy::least_alone(&instance, job) * 1e3)
        })
    }
}

/// The policy on an instance.
#[must_use]
pub fn choose(instance: &Instance) -> Choice {
    let order = greedy::jobs_by(instance, |job| -greedy::least_alone(instance, job));
    let flows = greedy::flows_of(instance, &order);
    let path = greedy::place(instance, &flows, |flow| instance.flows[flow].bytes);
    let queues = greedy::balanced_queues(&order, instance.levels);
    let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
    Choice { path, queue }
}
