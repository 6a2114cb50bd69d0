//! Runs without end.

use crate::solver::fluid::{Draws, Fluid, Metrics, Outcome};
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, PLANNING_DRAWS, Yardstick, window};
use crate::solver::tests::instance;
use crate::solver::{Effort, Objective};

/// One link; the first job nearly fills it, the second wants half of it.
fn crowded(iterations: u32) -> Instance {
    let one = |bytes| vec![(bytes, vec![vec![vec![0]]])];
    let mut built = instance(&[1.0], &[(0.1, one(1.0)), (1.0, one(1.0))]);
    built.jobs.iter_mut().for_each(|job| job.iterations = iterations);
    built
}

fn comm(instance: &Instance, queue: [u8; 2]) -> f64 {
    let effort = Effort {
        seed: 0,
        max_evaluations: 1,
        stop: &|| false,
        objective: Objective::Comm,
        phases: 2,
    };
    let yardstick = Yardstick::new(instance, &effort);
    let choice = Choice { path: vec![0; 2], queue: queue.into() };
    Evaluator::new(instance, &yardstick).score(&choice, f64::INFINITY)
}

#[test]
fn jobs_without_end_are_not_planned_as_if_others_ended() {
    let (short, long) = (crowded(5), crowded(1_000));
    assert!(window(&short).is_none() && window(&long).is_some());
    // To completion, putting the full job first costs the other little: it has the link for itself soon.
    assert!(comm(&short, [1, 0]) < 3.0, "{}", comm(&short, [1, 0]));
    // Without an end the other gets a tenth of the link for ever.
    assert!(comm(&long, [1, 0]) > 4.0, "{}", comm(&long, [1, 0]));
    assert!(comm(&long, [0, 0]) < 2.5 && comm(&long, [0, 1]) < 2.5);
}

#[test]
fn a_window_sees_what_a_long_run_to_completion_sees() {
    let long = crowded(1_000);
    let completed = {
        let draws = Draws::random(&long, 0, PLANNING_DRAWS, 0);
        let mut fluid = Fluid::new(&long);
        fluid.load(&Choice { path: vec![0; 2], queue: vec![0, 1] });
        let mut outcome = Outcome::default();
        fluid.run(&draws, &mut outcome);
        Metrics::of(&long, &outcome, &[1.0, 1.0]).comm_mean
    };
    let seen = comm(&long, [0, 1]);
    assert!((seen / completed - 1.0).abs() < 0.1, "{seen} against {completed}");
}
