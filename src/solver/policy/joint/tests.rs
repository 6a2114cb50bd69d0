use super::*;
use crate::solver::Objective;
use crate::solver::fluid::{Draws, Fluid, Metrics, Outcome};
use crate::solver::objective::value;
use crate::solver::policy::{crux, least_loaded, paper, sebf};
use crate::solver::tests::random;

fn effort(seed: u64, evaluations: u64, objective: Objective) -> Effort<'static> {
    Effort { seed, max_evaluations: evaluations, stop: &|| false, objective, phases: 3 }
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads() {
    let instance = random(5, 6);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| search(&instance, &effort(9, 3_000, Objective::Both)));
        (found.choice, found.score, found.evaluations)
    };
    let one = run(1);
    assert_eq!(run(2), one);
    assert_eq!(run(5), one);
    let other = search(&instance, &effort(10, 3_000, Objective::Both));
    assert_ne!(other.choice, one.0, "another seed searches elsewhere");
}

#[test]
fn it_is_at_least_as_good_as_every_start_under_the_planning_draws() {
    for objective in [Objective::Both, Objective::Comm, Objective::Utilisation, Objective::Drain] {
        for seed in 0..4 {
            let instance = random(seed, 5);
            let effort = effort(seed, 1_000, objective);
            let found = search(&instance, &effort);
            let yardstick = Yardstick::new(&instance, &effort);
            let mut evaluator = Evaluator::new(&instance, &yardstick);
            for start in [
                least_loaded::choose(&instance),
                sebf::choose(&instance),
                crux::choose(&instance, seed),
            ] {
                let score = evaluator.score(&start, f64::INFINITY);
                assert!(found.score <= score + 1e-12, "{objective:?} {seed}");
            }
        }
    }
}

#[test]
fn more_budget_never_ends_worse_and_the_budget_is_kept() {
    let instance = random(3, 6);
    let small = search(&instance, &effort(1, 0, Objective::Both));
    let large = search(&instance, &effort(1, 4_000, Objective::Both));
    assert!(large.score <= small.score);
    assert!(large.evaluations <= 4_000 && small.evaluations == 1);
}

#[test]
fn a_stop_ends_the_search_with_the_best_start() {
    let instance = random(3, 6);
    let stopped = Effort { stop: &|| true, ..effort(1, 1_000_000, Objective::Both) };
    let found = search(&instance, &stopped);
    assert_eq!(found.evaluations, 3, "the starts that cost next to nothing");
    assert!(found.score <= search(&instance, &effort(1, 0, Objective::Both)).score);
}

/// Objective of the whole run under draws that no search has seen.
fn judged(instance: &Instance, choice: &Choice) -> f64 {
    let iso: Vec<f64> =
        (0..instance.jobs.len()).map(|job| greedy::least_alone(instance, job)).collect();
    let mut outcome = Outcome::default();
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    fluid.run(&Draws::random(instance, 77, "judge", 0), &mut outcome);
    value(Objective::Both, &Metrics::of(instance, &outcome, &iso))
}

/// Many fabrics side by side with a few jobs each: as hard as the small ones, too large for whole simulations.
fn many(seed: u64) -> Instance {
    crate::solver::objective::tests::apart(seed, 90, 3)
}

#[test]
fn a_case_too_large_for_whole_simulations_is_searched_in_parts_and_gets_better() {
    let instance = many(3);
    let run = |evaluations| search(&instance, &effort(1, evaluations, Objective::Both));
    let (first, more) = (run(0), run(6_000));
    assert_eq!(first.evaluations, 0);
    assert!((6_000..6_400).contains(&more.evaluations), "{}", more.evaluations);
    let (before, after) = (judged(&instance, &first.choice), judged(&instance, &more.choice));
    assert!(after < 0.97 * before, "{before} -> {after}");
}

#[test]
fn a_search_in_parts_is_the_same_for_any_number_of_threads() {
    let instance = many(5);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| search(&instance, &effort(9, 1_000, Objective::Both)));
        (found.choice, found.score, found.evaluations)
    };
    let one = run(1);
    assert_eq!(run(2), one);
    assert_eq!(run(5), one);
}

#[test]
fn a_large_plan_in_force_is_changed_only_where_it_pays() {
    let instance = many(2);
    let first = search(&instance, &effort(1, 0, Objective::Both)).choice;
    let routes: Vec<_> =
        first.path.iter().zip(&first.queue).map(|(&path, &queue)| Some((path, queue))).collect();
    let moved = |found: &Found| {
        let flows = 0..instance.flows.len();
        flows
            .filter(|&f| (found.choice.path[f], found.choice.queue[f]) != routes[f].unwrap())
            .count()
    };
    let at_once = search_from(&instance, &effort(1, 0, Objective::Both), &routes);
    assert_eq!(moved(&at_once), 0);
    let later = search_from(&instance, &effort(1, 1_000, Objective::Both), &routes);
    let changed = moved(&later);
    assert!(changed > 0 && changed < instance.flows.len() / 3, "{changed}");
}

#[test]
fn a_plan_in_force_stays_while_nothing_is_much_better_and_yields_when_something_is() {
    for seed in 0..6 {
        let instance = random(seed, 6);
        let effort = effort(seed, 2_000, Objective::Both);
        let found = search(&instance, &effort);
        let routes = |choice: &Choice| -> Vec<_> {
            choice
                .path
                .iter()
                .zip(&choice.queue)
                .map(|(&path, &queue)| Some((path, queue)))
                .collect()
        };
        // Another random stream searches elsewhere, and still nothing moves.
        let again = Effort { seed: seed + 100, ..effort };
        let yardstick = Yardstick::new(&instance, &again);
        let mut evaluator = Evaluator::new(&instance, &yardstick);
        let kept = search_from(&instance, &again, &routes(&found.choice));
        let fresh = search(&instance, &again);
        let score = lane::scored(&instance, &mut evaluator, &found.choice);
        if fresh.score >= score * (1.0 - WORTH_A_CHANGE) {
            assert_eq!(kept.choice, found.choice, "{seed}");
        }
        // A bad plan goes: all flows on their first path in one queue.
        let bad = Choice::first(instance.flows.len());
        let bad_score = lane::scored(&instance, &mut evaluator, &bad);
        let mended = search_from(&instance, &again, &routes(&bad));
        assert!(mended.score <= fresh.score.max(bad_score * (1.0 - WORTH_A_CHANGE)), "{seed}");
        // And no flow moves for nothing: putting any one back is worse.
        for flow in 0..instance.flows.len() {
            let mut back = mended.choice.clone();
            (back.path[flow], back.queue[flow]) = (bad.path[flow], bad.queue[flow]);
            if back != mended.choice {
                let score = lane::scored(&instance, &mut evaluator, &back);
                assert!(score > mended.score * (1.0 - 1e-9), "{seed} flow {flow}");
            }
        }
    }
}

#[test]
fn a_new_flow_joins_a_plan_in_force_on_the_least_loaded_path_in_its_jobs_queue() {
    let instance = random(2, 4);
    let mut routes: Vec<Option<(u16, u8)>> = vec![Some((0, 3)); instance.flows.len()];
    let ring = &instance.rings[instance.jobs[1].rings[0]];
    let new = *ring.flows.last().unwrap();
    routes[new] = None;
    let start = starts::in_force(&instance, &routes).unwrap();
    assert_eq!(start.choice.queue, vec![3; instance.flows.len()]);
    let mut loads = crate::solver::policy::greedy::Loads::new(&instance);
    for flow in (0..instance.flows.len()).filter(|&flow| flow != new) {
        loads.add(&instance, flow, 0, least_loaded::rate(&instance, flow));
    }
    let least = loads.least(&instance, new, least_loaded::rate(&instance, new));
    assert_eq!(usize::from(start.choice.path[new]), least);
    assert!(starts::in_force(&instance, &vec![None; instance.flows.len()]).is_none());
}

#[test]
fn a_lane_keeps_the_best_choice_it_met_with_its_true_score() {
    let instance = random(4, 6);
    let effort = effort(2, 1_000, Objective::Both);
    let yardstick = Yardstick::new(&instance, &effort);
    let scope = Scope::everything();
    let start = starts::simulated(&instance, &effort, &yardstick, None, &scope).swap_remove(0);
    let mut lane = lane::Lane::new((&instance, &yardstick, &scope), &effort, 0, &start);
    let mut before = start.score;
    for _ in 0..60 {
        lane.search(10, 0.0, &|| false);
        assert!(lane.best.score <= before);
        before = lane.best.score;
    }
    assert!(before < start.score, "600 moves find something");
    let score = Evaluator::new(&instance, &yardstick).score(&lane.best.choice, f64::INFINITY);
    assert_eq!(lane::doubted(&instance, &lane.best.choice, score), lane.best.score);
}

#[test]
fn it_beats_the_baselines_on_draws_it_did_not_plan_with() {
    let (mut joint, mut others) = (0.0, [0.0; 4]);
    for seed in 0..8 {
        let instance = random(seed, 6);
        let iso: Vec<f64> =
            (0..6).map(|job| crate::solver::policy::greedy::least_alone(&instance, job)).collect();
        let draws = Draws::random(&instance, seed, "judge", 0);
        let judge = |choice: &Choice| {
            let mut outcome = Outcome::default();
            let mut fluid = Fluid::new(&instance);
            fluid.load(choice);
            fluid.run(&draws, &mut outcome);
            value(Objective::Both, &Metrics::of(&instance, &outcome, &iso))
        };
        joint += judge(&search(&instance, &effort(seed, 3_000, Objective::Both)).choice);
        let baselines = [
            least_loaded::choose(&instance),
            sebf::choose(&instance),
            crux::choose(&instance, seed),
            paper::choose(&instance),
        ];
        for (sum, choice) in others.iter_mut().zip(&baselines) {
            *sum += judge(choice);
        }
    }
    assert!(others.iter().all(|&other| joint < other), "{joint} {others:?}");
}

#[test]
fn the_estimate_ranks_an_uncontended_choice_first_and_is_exact_there() {
    use crate::solver::tests::instance;
    // Two flows, two links: apart they are alone, together they share.
    let both = || vec![vec![vec![0], vec![1]]];
    let instance = instance(&[1.0, 1.0], &[(2.0, vec![(2.0, both())]), (2.0, vec![(2.0, both())])]);
    let apart = Choice { path: vec![0, 1], queue: vec![0, 0] };
    let together = Choice { path: vec![0, 0], queue: vec![0, 0] };
    let estimate = |choice: &Choice| estimate::mean_field(&instance, choice).0;
    assert_eq!(estimate(&apart).comm_mean, 2.0);
    assert!((estimate(&apart).utilisation - 0.5).abs() < 1e-12);
    assert!(estimate(&together).comm_mean > 2.5);
}

#[test]
fn a_search_chooses_only_what_its_scope_leaves_open_and_loses_by_it() {
    let (mut free, mut bound) = (0.0, [0.0; 3]);
    for seed in 0..5 {
        let instance = random(seed, 6);
        let effort = effort(seed, 2_000, Objective::Both);
        let ones = vec![1; instance.flows.len()];
        let scopes = [
            Scope { paths: Some(ones.clone()), ..Scope::everything() },
            Scope::job_queues(),
            Scope { queues: scope::Queues::One, ..Scope::everything() },
        ];
        free += search(&instance, &effort).score;
        for (sum, scope) in bound.iter_mut().zip(&scopes) {
            let found = search_within(&instance, &effort, &[], scope);
            let mut confined = found.choice.clone();
            scope.confine(&instance, &mut confined);
            assert_eq!(confined, found.choice, "{scope:?}");
            *sum += found.score;
        }
        let fixed = search_within(&instance, &effort, &[], &scopes[0]);
        assert_eq!(fixed.choice.path, ones);
        let queues = |choice: &Choice, job: usize| -> std::collections::BTreeSet<u8> {
            greedy::flows_of(&instance, &[job]).iter().map(|&flow| choice.queue[flow]).collect()
        };
        let jobs = search_within(&instance, &effort, &[], &scopes[1]).choice;
        assert!((0..6).all(|job| queues(&jobs, job).len() == 1));
        let one = search_within(&instance, &effort, &[], &scopes[2]).choice;
        assert_eq!(one.queue, vec![0; instance.flows.len()]);
    }
    assert!(bound.iter().all(|&sum| sum >= free * 0.999), "{free} {bound:?}");
}

#[test]
fn the_move_of_one_flow_becomes_that_of_its_job_where_jobs_have_one_queue() {
    let instance = random(2, 3);
    let before =
        Choice { queue: vec![2; instance.flows.len()], ..Choice::first(instance.flows.len()) };
    let mut after = before.clone();
    let flows = greedy::flows_of(&instance, &[1]);
    after.queue[*flows.last().unwrap()] = 4;
    Scope::job_queues().confine_move(&instance, &before, &mut after);
    for flow in 0..instance.flows.len() {
        assert_eq!(after.queue[flow], if flows.contains(&flow) { 4 } else { 2 });
    }
}
