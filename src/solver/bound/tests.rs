use super::*;
use crate::solver::fluid::{Fluid, Metrics, Outcome};
use crate::solver::instance::Choice;
use crate::solver::policy::joint;
use crate::solver::tests::{instance, random, two_jobs_one_link};
use crate::solver::{Effort, Objective};
use rand::RngExt as _;

fn run(instance: &Instance, choice: &Choice, draws: &Draws) -> (Outcome, Metrics) {
    let mut outcome = Outcome::default();
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    fluid.run(draws, &mut outcome);
    let metrics = Metrics::of(instance, &outcome, &iso_comm(instance));
    (outcome, metrics)
}

fn some_choice(instance: &Instance, seed: u64) -> Choice {
    let mut random = crate::time::stream(seed, "choice", 0);
    let mut choice = Choice::first(instance.flows.len());
    let queue: Vec<u8> = instance.jobs.iter().map(|_| random.random_range(0..4_u8)).collect();
    for (flow, shape) in instance.flows.iter().enumerate() {
        choice.path[flow] = random.random_range(0..shape.candidates.len()) as u16;
        choice.queue[flow] = queue[shape.job];
    }
    choice
}

fn named(bounds: &[Bound], name: &str) -> f64 {
    bounds.iter().find(|bound| bound.name == name).map(|bound| bound.value).unwrap()
}

#[test]
fn no_run_passes_its_bounds() {
    for seed in 0..80 {
        let mut instance = random(seed, 5);
        // Group the middle links as a switch would: flows cross one of each pair.
        instance.cuts = vec![vec![8, 9], vec![9, 10], vec![10, 11], vec![8, 9, 10, 11]];
        for job in &mut instance.jobs {
            job.jitter = 0.05;
        }
        let draws = Draws::random(&instance, seed, "bound", 0);
        let bounds = all(&instance, &draws);
        let (_, metrics) = run(&instance, &some_choice(&instance, seed), &draws);
        let within = |value: f64, bound: f64| value <= bound * (1.0 + 1e-6);
        assert!(within(named(&bounds, "iso-comm"), metrics.comm_mean), "seed {seed}");
        assert!(within(named(&bounds, "iso-comm-max"), metrics.comm_max), "seed {seed}");
        assert!(within(metrics.utilisation, named(&bounds, "iso-utilisation")), "seed {seed}");
        let cut = named(&bounds, "cut-utilisation");
        assert!(within(metrics.utilisation, cut), "seed {seed}: {metrics:?} {cut}");
        assert!(cut <= named(&bounds, "iso-utilisation") * (1.0 + 1e-9));
    }
}

#[test]
fn what_a_search_for_utilisation_finds_comes_near_the_bound() {
    let mut sum = 0.0;
    for seed in 0..8 {
        let instance = random(seed, 4);
        let draws = Draws::exact(&instance);
        let effort = Effort {
            seed,
            max_evaluations: 2_000,
            stop: &|| false,
            objective: Objective::Utilisation,
            phases: 2,
        };
        let (_, metrics) = run(&instance, &joint::search(&instance, &effort).choice, &draws);
        sum += metrics.utilisation / cut_utilisation(&instance, &draws) / 8.0;
    }
    assert!((0.75..=1.0).contains(&sum), "{sum}");
}

#[test]
fn one_link_shared_by_two_jobs_that_only_send_is_bounded_exactly() {
    // Compute is negligible: the link serves 5 x 1 s and 5 x 3 s. Shortest first ends at 5 and 20: windows 25 in all.
    let one = || vec![vec![vec![0]]];
    let instance = instance(&[1.0], &[(1e-9, vec![(1.0, one())]), (1e-9, vec![(3.0, one())])]);
    let draws = Draws::exact(&instance);
    let compute = 2.0 * 5.0 * 1e-9;
    let total = compute / cut_utilisation(&instance, &draws);
    assert!((total - 25.0).abs() < 1e-3, "{total}");
    let choice = Choice { path: vec![0, 0], queue: vec![1, 0] };
    let (outcome, _) = run(&instance, &choice, &draws);
    assert!((outcome.window[0] + outcome.window[1] - 25.0).abs() < 1e-3, "{outcome:?}");
}

#[test]
fn the_steady_bound_of_one_link_is_the_knapsack_by_hand() {
    // Both alone: f1 <= 1/4, f2 <= 1/2; the link: 2 f1 + 1 f2 <= 1. Both have compute / seconds = 1, so any full use is
    // best: utilisation (2 f1 + 1 f2) / 2 = 1/2.
    assert!((steady_utilisation(&two_jobs_one_link()) - 0.5).abs() < 1e-5);
    // A wide link leaves both alone: (2/4 + 1/2) / 2.
    let mut wide = two_jobs_one_link();
    wide.capacity[0] = 1e9;
    assert!((steady_utilisation(&wide) - 1.0).abs() < 1e-3);
}

#[test]
fn long_runs_that_end_together_stay_below_the_steady_bound() {
    for seed in 0..20 {
        let mut instance = random(seed, 4);
        let choice = some_choice(&instance, seed);
        let horizon = 4_000.0;
        let alone = |job: usize| instance.period(job, iso_comm(&instance)[job]);
        let mut iterations: Vec<f64> = (0..4).map(|job| horizon / alone(job)).collect();
        // Adjust the iterations until all jobs end at about the horizon.
        for _ in 0..6 {
            for (job, &count) in instance.jobs.iter_mut().zip(&iterations) {
                job.iterations = count.round().max(1.0) as u32;
            }
            let (outcome, _) = run(&instance, &choice, &Draws::exact(&instance));
            for (count, window) in iterations.iter_mut().zip(&outcome.window) {
                *count *= horizon / window;
            }
        }
        for (job, &count) in instance.jobs.iter_mut().zip(&iterations) {
            job.iterations = count.round().max(1.0) as u32;
        }
        let (outcome, metrics) = run(&instance, &choice, &Draws::exact(&instance));
        let (least, most) = outcome
            .window
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), &w| (least.min(w), most.max(w)));
        if most < 1.05 * least {
            let bound = steady_utilisation(&instance);
            assert!(metrics.utilisation <= bound * 1.06, "seed {seed}: {metrics:?} {bound}");
        }
    }
}
