mod endless;

use super::*;
use crate::solver::fluid::Fluid;
use crate::solver::tests::{instance, random};
use rand::RngExt as _;

fn effort(seed: u64) -> Effort<'static> {
    let objective = Objective::Both;
    Effort { seed, max_evaluations: 1, stop: &|| false, objective, phases: 3 }
}

/// Random instances side by side: `copies` fabrics that share nothing.
pub(crate) fn apart(seed: u64, copies: usize, jobs_each: usize) -> Instance {
    let mut whole = random(seed, jobs_each);
    for copy in 1..copies {
        let next = random(seed + 100 * copy as u64, jobs_each);
        let (links, flows, rings, jobs) =
            (whole.capacity.len(), whole.flows.len(), whole.rings.len(), whole.jobs.len());
        whole.capacity.extend(&next.capacity);
        whole.link_ids = (0..whole.capacity.len()).map(crate::id::LinkId::from).collect();
        for mut flow in next.flows {
            flow.job += jobs;
            flow.ring += rings;
            flow.candidates.iter_mut().flatten().for_each(|link| *link += links);
            whole.flows.push(flow);
        }
        for mut ring in next.rings {
            ring.job += jobs;
            ring.flows.iter_mut().for_each(|flow| *flow += flows);
            whole.rings.push(ring);
        }
        for mut job in next.jobs {
            job.rings.iter_mut().for_each(|ring| *ring += rings);
            whole.jobs.push(job);
        }
    }
    whole
}

fn any_choice(instance: &Instance, random: &mut impl rand::Rng) -> Choice {
    let mut choice = Choice::first(instance.flows.len());
    for (flow, shape) in instance.flows.iter().enumerate() {
        choice.path[flow] = random.random_range(0..shape.candidates.len()) as u16;
        choice.queue[flow] = random.random_range(0..4_u8);
    }
    choice
}

/// The slow twin: the whole run at once.
fn whole(instance: &Instance, yardstick: &Yardstick, choice: &Choice) -> Vec<Metrics> {
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    let mut outcome = Outcome::default();
    let draws = yardstick.draws.iter();
    draws
        .map(|draws| {
            fluid.run(draws, &mut outcome);
            Metrics::of(instance, &outcome, &yardstick.iso)
        })
        .collect()
}

#[test]
fn components_one_by_one_give_the_run_of_the_whole() {
    for seed in 0..12 {
        let instance = apart(seed, 3, 3);
        let yardstick = Yardstick::new(&instance, &effort(seed));
        let mut evaluator = Evaluator::new(&instance, &yardstick);
        let mut random = crate::time::stream(seed, "choices", 0);
        for _ in 0..6 {
            let choice = any_choice(&instance, &mut random);
            let (parts, slow) = (evaluator.metrics(&choice), whole(&instance, &yardstick, &choice));
            for (a, b) in parts.iter().zip(&slow) {
                assert!((a.comm_mean - b.comm_mean).abs() <= 1e-9 * b.comm_mean);
                assert!((a.utilisation - b.utilisation).abs() <= 1e-9);
                assert!((a.comm_max - b.comm_max).abs() <= 1e-9 * b.comm_max);
            }
        }
    }
}

#[test]
fn a_change_costs_its_own_component_and_a_way_back_nothing() {
    let instance = apart(4, 3, 3);
    let yardstick = Yardstick::new(&instance, &effort(4));
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let first = Choice::first(instance.flows.len());
    let score = evaluator.score(&first, f64::INFINITY);
    assert_eq!(evaluator.remembered(), 0);
    let mut changed = first.clone();
    changed.queue[0] = 3;
    evaluator.score(&changed, f64::INFINITY);
    let known = evaluator.remembered();
    assert!(known >= 2 * 3, "two fabrics at three draws stay as they are: {known}");
    assert_eq!(evaluator.score(&first, f64::INFINITY).to_bits(), score.to_bits());
    assert!(evaluator.remembered() >= known + 3 * 3);
}

#[test]
fn equal_routes_of_other_jobs_are_not_taken_for_known() {
    // Two pairs of jobs with the same paths and queues by index, on links of different width.
    let one = |link: usize| vec![vec![vec![link]]];
    let instance = instance(&[1.0, 4.0], &[(1.0, vec![(2.0, one(0))]), (1.0, vec![(2.0, one(1))])]);
    let yardstick = Yardstick::new(&instance, &effort(1));
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let metrics = evaluator.metrics(&Choice::first(2));
    assert!((metrics[0].comm_mean - (2.0 + 0.5) / 2.0).abs() < 1e-12, "{metrics:?}");
}

#[test]
fn a_run_that_is_given_up_after_one_draw_can_be_finished_later() {
    let instance = apart(7, 2, 3);
    let yardstick = Yardstick::new(&instance, &effort(7));
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let choice = Choice::first(instance.flows.len());
    assert!(evaluator.score(&choice, 1e-9).is_infinite());
    let score = evaluator.score(&choice, f64::INFINITY);
    let fresh = Evaluator::new(&instance, &yardstick).score(&choice, f64::INFINITY);
    assert_eq!(score.to_bits(), fresh.to_bits());
}
