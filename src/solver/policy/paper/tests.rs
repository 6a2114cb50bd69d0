use super::*;
use crate::solver::tests::{instance, random};

#[test]
fn a_lone_job_gets_its_line_rate_in_the_lowest_queue() {
    let flows = vec![vec![vec![0], vec![1]], vec![vec![0], vec![1]]];
    let instance = instance(&[1.0, 1.0], &[(1.0, vec![(4.0, flows)])]);
    let choice = choose(&instance);
    assert_ne!(choice.path[0], choice.path[1], "two flows of one ring part");
    assert_eq!(choice.queue, [0, 0]);
}

#[test]
fn a_short_job_passes_a_long_one_that_it_cannot_avoid() {
    let one = || vec![vec![vec![0]]];
    let instance = instance(&[1.0], &[(1.0, vec![(1.0, one())]), (1.0, vec![(9.0, one())])]);
    let choice = choose(&instance);
    assert!(choice.queue[0] > choice.queue[1], "{choice:?}");
}

#[test]
fn the_static_throughput_is_the_residual_shared_equally_and_never_below_the_floor() {
    let one = || vec![vec![vec![0]]];
    let jobs = [(1.0, vec![(1.0, one())]), (1.0, vec![(1.0, one())]), (1.0, vec![(1.0, one())])];
    let instance = instance(&[12.0], &jobs);
    let rates = |queue: Vec<u8>| {
        State::of(&instance, &Choice { path: vec![0; 3], queue }, |_| true).throughput
    };
    assert_eq!(rates(vec![0, 0, 0]), [4.0; 3]);
    assert_eq!(rates(vec![2, 0, 2]), [6.0, FLOOR * 12.0, 6.0]);
}

#[test]
fn planning_a_job_again_leaves_the_others_where_they_are() {
    for seed in 0..20 {
        let instance = random(seed, 5);
        let mut choice = choose(&instance);
        let before = choice.clone();
        replan_job(&instance, &mut choice, 2);
        for (flow, shape) in instance.flows.iter().enumerate() {
            if shape.job != 2 {
                assert_eq!(
                    (choice.path[flow], choice.queue[flow]),
                    (before.path[flow], before.queue[flow])
                );
            }
            assert!(choice.queue[flow] < instance.levels);
        }
    }
}

#[test]
fn the_binary_search_ends_within_one_per_cent_of_the_smallest_feasible_time() {
    // Enumerate all (path, queue) of one job on top of a fixed rest and compare static completion times.
    for seed in 0..20 {
        let mut instance = random(seed, 3);
        instance.levels = 2;
        let mut choice = choose(&instance);
        replan_job(&instance, &mut choice, 0);
        let flows = greedy::flows_of(&instance, &[0]);
        let options = 4_usize;
        let mut best = f64::INFINITY;
        for code in 0..options.pow(flows.len() as u32) {
            let mut other = choice.clone();
            for (digit, &flow) in flows.iter().enumerate() {
                let option = code / options.pow(digit as u32) % options;
                other.path[flow] = (option % 2) as u16;
                other.queue[flow] = (option / 2) as u8;
            }
            best = best.min(completion(&instance, &other, &flows));
        }
        let got = completion(&instance, &choice, &flows);
        assert!(got <= best * 1.02, "seed {seed}: {got} {best}");
    }
}

/// Static completion of job 0 as its planner sees it: the others' throughputs are those without it.
fn completion(instance: &Instance, choice: &Choice, flows: &[usize]) -> f64 {
    let mut state = State::of(instance, choice, |job| job != 0);
    for &flow in flows {
        state.count_flow(instance.links(choice, flow), usize::from(choice.queue[flow]), true);
    }
    let seconds = |&flow: &usize| {
        let path = instance.links(choice, flow);
        instance.flows[flow].bytes / state.rate(path, usize::from(choice.queue[flow]), 0)
    };
    flows.iter().map(seconds).fold(0.0, f64::max)
}
