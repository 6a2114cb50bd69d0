//! A policy of one's own in one file: the whole `ringpath` program with one policy more.
//!
//! ```sh
//! cargo run --release --example own_policy -- plan examples/scenarios/testbed-policies.toml --solver largest-first
//! cargo run --release --example own_policy -- demo --policy largest-first --policy joint
//! sudo /usr/bin/python3 bmv2-testbed/run.py examples/scenarios/testbed-policies.toml --policy crux,largest-first,joint \
//!     --ringpath target/release/examples/own_policy
//! ```
//!
//! `largest-first`: the job with the most bytes per iteration goes first, on the least loaded paths. It is what one would try before
//! thinking of the small jobs that then wait.

#![allow(clippy::print_stderr, reason = "a program says on standard error why it does not start")]

use ringpath::plan::Plan;
use ringpath::solver::instance::{Choice, Instance};
use ringpath::solver::policy::{self, greedy};
use ringpath::solver::{Effort, Policy, Problem};

struct LargestFirst;

impl Policy for LargestFirst {
    fn name(&self) -> &'static str {
        "largest-first"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        // Jobs, most bytes first; their flows in that order, each on the path whose busiest link is least loaded.
        let bytes = |job: usize| problem.jobs[job].gradient.0 as f64;
        let order = greedy::jobs_by(&instance, bytes);
        let flows = greedy::flows_of(&instance, &order);
        let path = greedy::place(&instance, &flows, |flow| instance.flows[flow].bytes);
        // As many groups of jobs as there are queues; the first group gets the highest.
        let queues = greedy::balanced_queues(&order, instance.levels);
        let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
        Instance::plan(problem, &Choice { path, queue }, self.name(), |flow| {
            format!("{} bytes per iteration", bytes(instance.flows[flow].job))
        })
    }
}

fn main() -> std::process::ExitCode {
    if let Err(error) = policy::add(vec![&LargestFirst]) {
        eprintln!("{error}");
        return std::process::ExitCode::FAILURE;
    }
    ringpath::cli::main()
}
