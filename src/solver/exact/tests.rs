use super::*;
use crate::solver::fluid::Draws;
use crate::solver::policy::joint;
use crate::solver::tests::random;
use crate::solver::{Effort, bound};

fn effort(objective: Objective, seed: u64) -> Effort<'static> {
    Effort { seed, max_evaluations: 2_000, stop: &|| false, objective, phases: 2 }
}

fn small(seed: u64, jobs: usize, levels: u8) -> Instance {
    let mut instance = random(seed, jobs);
    instance.levels = levels;
    instance
}

#[test]
fn patterns_are_all_weak_orders() {
    // Ordered Bell numbers: 1, 3, 13, 75 weak orders of 1, 2, 3, 4 things.
    for (units, orders) in [(1, 1), (2, 3), (3, 13), (4, 75)] {
        assert_eq!(patterns(units, 6).len(), orders);
    }
    assert_eq!(patterns(3, 2).len(), 7);
}

#[test]
fn cutting_branches_loses_no_optimum() {
    for objective in [Objective::Both, Objective::Comm, Objective::Utilisation, Objective::Drain] {
        for seed in 0..6 {
            let instance = small(seed, 3, 2);
            let yardstick = Yardstick::new(&instance, &effort(objective, seed));
            let found = search(&instance, &yardstick, Grain::Jobs, 1 << 20).unwrap();
            let mut evaluator = Evaluator::new(&instance, &yardstick);
            let mut best = f64::INFINITY;
            let flows = instance.flows.len();
            for code in 0..1_u32 << (flows + 3) {
                let mut choice = Choice::first(flows);
                for flow in 0..flows {
                    choice.path[flow] = (code >> flow & 1) as u16;
                    choice.queue[flow] = (code >> (flows + instance.flows[flow].job) & 1) as u8;
                }
                best = best.min(evaluator.score(&choice, f64::INFINITY));
            }
            assert!((found.score - best).abs() <= 1e-9 * best.abs(), "{objective:?} {seed}");
            assert!(found.evaluations < evaluator.evaluations);
        }
    }
}

#[test]
fn the_search_comes_within_two_per_cent_of_the_optimum_on_small_cases() {
    let mut gaps = 0.0;
    let cases = 12;
    for seed in 0..cases {
        let instance = small(seed, 3, 3);
        let effort = effort(Objective::Both, seed);
        let yardstick = Yardstick::new(&instance, &effort);
        let optimum = search(&instance, &yardstick, Grain::Jobs, 1 << 20).unwrap();
        let found = joint::search(&instance, &effort);
        gaps += found.score / optimum.score - 1.0;
    }
    assert!(gaps / (cases as f64) < 0.02, "mean gap {}", gaps / cases as f64);
}

#[test]
fn flow_queues_are_never_worse_than_job_queues() {
    for seed in 0..4 {
        let instance = small(seed, 2, 2);
        let yardstick = Yardstick::new(&instance, &effort(Objective::Comm, seed));
        let jobs = search(&instance, &yardstick, Grain::Jobs, 1 << 20).unwrap();
        let flows = search(&instance, &yardstick, Grain::Flows, 1 << 20).unwrap();
        assert!(flows.score <= jobs.score + 1e-12);
    }
}

#[test]
fn no_optimum_passes_the_bounds() {
    for seed in 0..8 {
        let instance = small(seed, 3, 2);
        let draws = Draws::exact(&instance);
        let iso = bound::iso_comm(&instance);
        for objective in [Objective::Comm, Objective::Utilisation, Objective::Drain] {
            let yardstick = Yardstick { objective, draws: vec![draws.clone()], iso: iso.clone() };
            let score = search(&instance, &yardstick, Grain::Jobs, 1 << 20).unwrap().score;
            match objective {
                Objective::Comm => assert!(score >= iso.iter().sum::<f64>() / 3.0 - 1e-9),
                Objective::Utilisation => {
                    assert!(-score <= bound::cut_utilisation(&instance, &draws) + 1e-6);
                }
                _ => assert!(score >= iso.iter().sum::<f64>() - 1e-9),
            }
        }
    }
}

#[test]
fn a_case_that_is_too_large_is_refused_with_its_size() {
    let instance = random(0, 6);
    let yardstick = Yardstick::new(&instance, &effort(Objective::Both, 0));
    let error = search(&instance, &yardstick, Grain::Flows, 1_000).unwrap_err();
    assert!(error.to_string().contains("1000"), "{error}");
}

#[test]
fn one_enumeration_finds_the_optimum_of_every_objective() {
    for seed in 0..6 {
        let instance = small(seed, 4, 3);
        let both = [Objective::Comm, Objective::Utilisation];
        let yardstick = Yardstick::new(&instance, &effort(Objective::Comm, seed));
        let optima = optima(&instance, &yardstick, &both, Grain::Jobs, 1 << 20).unwrap();
        for (objective, optimum) in both.into_iter().zip(optima) {
            let yardstick = Yardstick { objective, ..yardstick.clone() };
            let alone = search(&instance, &yardstick, Grain::Jobs, 1 << 20).unwrap();
            assert!((alone.score - optimum.score).abs() <= 1e-12, "{seed} {objective:?}");
        }
    }
}

#[test]
fn choices_that_contend_alike_give_the_same_run_and_are_simulated_once() {
    let mut spared = 0;
    for seed in 0..12 {
        let instance = small(seed, 3, 3);
        let yardstick = Yardstick::new(&instance, &effort(Objective::Comm, seed));
        let mut contention = Contention::new(&instance);
        let mut evaluator = Evaluator::new(&instance, &yardstick);
        let mut known = std::collections::BTreeMap::new();
        for code in 0..1_u32 << instance.flows.len() {
            let mut choice = Choice::first(instance.flows.len());
            for (flow, shape) in instance.flows.iter().enumerate() {
                choice.path[flow] = (code >> flow & 1) as u16;
                choice.queue[flow] = [2, 0, 1][shape.job];
            }
            let (key, pairs) = contention.of(&instance, &choice);
            // Jobs that share no row may have any queues.
            let mut tied = choice.clone();
            if pairs == 0 {
                tied.queue.fill(0);
            }
            let score = evaluator.score(&choice, f64::INFINITY);
            assert!((evaluator.score(&tied, f64::INFINITY) - score).abs() <= 1e-9 * score);
            spared += usize::from(known.contains_key(&key));
            let first = *known.entry(key).or_insert(score);
            assert!((first - score).abs() <= 1e-9 * score, "seed {seed}: {first} {score}");
        }
    }
    assert!(spared > 100, "{spared}");
}
