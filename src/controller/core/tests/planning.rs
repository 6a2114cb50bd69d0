//! What a policy is told.

use super::net::{Net, job};
use super::{SOON, fabric, tuned};
use crate::controller::core::Core;
use crate::controller::messages::Input;
use crate::id::{FlowId, JobId};
use crate::plan::Plan;
use crate::solver::{Effort, Policy, Problem};
use crate::time::Span;
use crate::topology::Path;
use std::sync::{Arc, Mutex};

/// What one planning saw: iterations by job, path and queue by flow.
type Seen = (Vec<u32>, Vec<Option<(Path, u8)>>);

/// Takes the last candidate in queue 2, and remembers what it was told.
struct Watching(Arc<Mutex<Vec<Seen>>>);

impl Policy for Watching {
    fn name(&self) -> &'static str {
        "watching"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let in_force = problem.in_force;
        self.0.lock().unwrap().push((in_force.done.to_vec(), in_force.routes.to_vec()));
        let choice = crate::solver::instance::Choice {
            path: problem.paths.iter().map(|paths| paths.len() as u16 - 1).collect(),
            queue: vec![2; problem.flows.len()],
        };
        crate::solver::instance::Instance::plan(problem, &choice, self.name(), |_| "test".into())
    }
}

fn route(core: &Core, flow: u32) -> Option<(Path, u8)> {
    let goal = core.goals().get(&FlowId(flow))?;
    Some((goal.path.clone(), goal.forward.queue))
}

#[test]
fn a_new_plan_is_told_how_far_jobs_are_and_what_is_in_force() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let told = seen.clone();
    let mut net: Net = tuned(move |config| {
        config.policies.push(Arc::new(Watching(told.clone())));
        config.policy = "watching".into();
    });
    let report = |job, iterations| Input::Progress { job, iterations, compute: vec![Span(1)] };
    net.input(report(JobId(0), 7));
    // An older report that was overtaken, and one of a job that nobody knows.
    net.input(report(JobId(0), 6));
    net.input(report(JobId(9), 1));
    let mut second = job(&fabric(), 1, &[1, 3]);
    for (place, flow) in (3..).zip(&mut second.1) {
        flow.id = FlowId(place);
    }
    net.input(Input::SubmitJobs(vec![second]));
    net.converge(SOON);
    net.input(Input::JobFinished { job: JobId(0) });
    net.converge(SOON);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[0], (vec![0], vec![None; 3]), "nothing was there before");
    assert_eq!(seen[1].0, [7, 0]);
    let in_force = &seen[1].1;
    assert_eq!(in_force.len(), 5);
    assert!(in_force[..3].iter().all(|route| matches!(route, Some((_, 2)))));
    assert!(in_force[3..].iter().all(Option::is_none), "new flows have no route");
    assert_eq!(seen[2].0, [0]);
    assert_eq!(
        seen[2].1,
        [route(&net.core, 3), route(&net.core, 4)],
        "renumbered with their flows"
    );
}
