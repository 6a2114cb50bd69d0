use super::*;
use crate::solver::fluid::contention_free;
use crate::solver::instance::{Choice, Instance};
use crate::solver::tests::{instance, random};
use crate::solver::{Effort, InForce, Objective, Problem};
use crate::topology::Paths;
use crate::workload::scenario::default_scenario;
use std::collections::BTreeSet;

fn with_problem<T>(seed: u64, use_it: impl FnOnce(&Problem<'_>) -> T) -> T {
    let scenario = default_scenario(seed).unwrap();
    let flows = crate::workload::flows(&scenario.topology, &scenario.jobs).unwrap();
    let failed = crate::topology::LinkSet::default();
    let trees = Paths::build(&scenario.topology, &failed, scenario.max_paths).unwrap();
    let paths: Vec<_> =
        flows.iter().map(|f| trees.candidates(&scenario.topology, f.src, f.dst)).collect();
    use_it(&Problem {
        topology: &scenario.topology,
        jobs: &scenario.jobs,
        flows: &flows,
        paths: &paths,
        levels: scenario.levels(),
        in_force: InForce::default(),
    })
}

fn effort(seed: u64) -> Effort<'static> {
    let stop = &|| false;
    Effort { seed, max_evaluations: 900, stop, objective: Objective::Both, phases: 2 }
}

#[test]
fn every_policy_gives_every_flow_a_candidate_path_and_a_permitted_queue_and_repeats() {
    with_problem(4, |problem| {
        for policy in all() {
            let plan = policy.plan(problem, &effort(4));
            let choice = Instance::choice(problem, &plan).expect("candidate paths only");
            assert!(choice.queue.iter().all(|&queue| queue < problem.levels), "{}", policy.name());
            assert!(plan.assignments.iter().all(|a| !a.reason.is_empty()));
            assert_eq!(plan, policy.plan(problem, &effort(4)), "{}", policy.name());
            assert_eq!(plan.policy, policy.name());
        }
    });
}

#[test]
fn names_are_unique_and_lead_back_to_their_policies() {
    let unique: BTreeSet<_> = names().into_iter().collect();
    assert_eq!(unique.len(), all().len());
    for name in names() {
        assert_eq!(by_name(name).map(Policy::name), Some(name));
    }
    assert!(by_name("unknown").is_none());
    assert!(COMPARED.iter().all(|name| by_name(name).is_some()));
}

#[test]
fn a_policy_is_not_added_under_the_name_of_another() {
    assert_eq!(add(vec![&ecmp::Ecmp]), Err(AddError::Taken("ecmp".to_owned())));
    assert_eq!(all().len(), names().len());
}

#[test]
fn ecmp_spreads_flows_over_all_paths_and_knows_no_queues() {
    let mut used = BTreeSet::new();
    for seed in 0..4 {
        with_problem(seed, |problem| {
            let plan = ecmp::Ecmp.plan(problem, &effort(seed));
            assert!(plan.assignments.iter().all(|a| a.queue == 0));
            used.extend(
                plan.assignments.iter().filter(|a| a.path.links.len() > 2).map(|a| a.path.tree),
            );
        });
    }
    assert_eq!(used.len(), 4, "four spines");
}

#[test]
fn least_loaded_keeps_equal_flows_apart() {
    let flow = || vec![vec![0, 2, 4], vec![0, 3, 4]];
    let instance =
        instance(&[10.0; 5], &[(1.0, vec![(4.0, vec![flow()])]), (1.0, vec![(4.0, vec![flow()])])]);
    let choice = least_loaded::choose(&instance);
    assert_ne!(choice.path[0], choice.path[1]);
}

#[test]
fn sebf_serves_the_smallest_bottleneck_first() {
    let one = || vec![vec![vec![0]]];
    let instance = instance(
        &[1.0],
        &[(1.0, vec![(5.0, one())]), (1.0, vec![(1.0, one())]), (1.0, vec![(3.0, one())])],
    );
    let choice = sebf::choose(&instance);
    assert!(choice.queue[1] > choice.queue[2] && choice.queue[2] > choice.queue[0], "{choice:?}");
}

#[test]
fn balanced_groups_differ_by_at_most_one_and_use_the_highest_queues() {
    assert_eq!(greedy::balanced_queues(&[2, 0, 1], 6), [4, 3, 5]);
    let order: Vec<usize> = (0..8).collect();
    let queues = greedy::balanced_queues(&order, 3);
    assert_eq!(queues, [2, 2, 2, 1, 1, 1, 0, 0]);
    assert!(greedy::balanced_queues(&[], 3).is_empty());
}

#[test]
fn a_plan_reads_back_as_the_choice_it_came_from() {
    with_problem(1, |problem| {
        let instance = Instance::new(problem);
        let choice = least_loaded::choose(&instance);
        let plan = Instance::plan(problem, &choice, "x", |_| "y".into());
        assert_eq!(Instance::choice(problem, &plan), Some(choice));
        let mut wrong = plan;
        wrong.assignments[0].path.links.clear();
        assert_eq!(Instance::choice(problem, &wrong), None);
    });
}

#[test]
fn loads_are_bytes_over_capacity_on_every_link_of_the_path() {
    for seed in 0..10 {
        let instance = random(seed, 4);
        let choice = Choice::first(instance.flows.len());
        for job in 0..4 {
            let total: f64 = instance
                .job_load(&choice, job)
                .iter()
                .map(|&(link, s)| s * instance.capacity[link])
                .sum();
            let wanted: f64 =
                instance.flows.iter().filter(|f| f.job == job).map(|f| f.bytes * 3.0).sum();
            assert!((total - wanted).abs() < 1e-9 * wanted);
            assert!(greedy::least_alone(&instance, job) <= instance.alone(&choice, job) + 1e-12);
        }
        let draws = crate::solver::fluid::Draws::exact(&instance);
        let iso = contention_free(&instance, &draws);
        assert!((0..4).all(|job| iso.comm[job] >= greedy::least_alone(&instance, job) - 1e-9));
    }
}

#[test]
fn a_plan_for_the_rest_of_a_run_counts_what_is_left_of_each_job() {
    with_problem(4, |problem| {
        let all: Vec<u32> = problem.jobs.iter().map(|job| job.iterations).collect();
        let done = vec![0, all[1] / 2, all[2], all[3] - 1];
        let late = Problem { in_force: InForce { done: &done, routes: &[] }, ..problem.clone() };
        let (fresh, rest) = (Instance::new(problem), Instance::new(&late));
        assert!(fresh.jobs.iter().all(|job| job.ahead == 1.0));
        let left: Vec<u32> = rest.jobs.iter().map(|job| job.iterations).collect();
        assert_eq!(left[..4], [all[0], all[1] - all[1] / 2, 1, 1], "never less than one");
        assert_eq!(left[4..], all[4..], "nothing is known of these: they have all before them");
        assert!((rest.jobs[3].ahead - 1.0 / f64::from(all[3])).abs() < 1e-12);
        assert_eq!(rest.jobs[1].start, 0.0, "it runs");
        assert_eq!(rest.jobs[0].start, fresh.jobs[0].start);
    });
}

#[test]
fn no_plan_of_any_policy_passes_the_bounds_of_its_run() {
    use crate::solver::bound;
    use crate::solver::fluid::{Draws, Fluid, Metrics, Outcome};
    for seed in 0..6 {
        with_problem(seed, |problem| {
            let instance = Instance::new(problem);
            let draws = Draws::random(&instance, seed, "bound", 0);
            let bounds = bound::all(&instance, &draws);
            let bound = |name: &str| bounds.iter().find(|b| b.name == name).unwrap().value;
            let mut fluid = Fluid::new(&instance);
            for policy in all() {
                let plan = policy.plan(problem, &effort(seed));
                fluid.load(&Instance::choice(problem, &plan).unwrap());
                let mut outcome = Outcome::default();
                // A policy may ask for phases; the bounds hold for the starts that come of it.
                let (draws, most) = match policy.shifts(problem, &plan) {
                    Some(shifts) => {
                        let draws = draws.aligned(&shifts);
                        let most = bound::cut_utilisation(&instance, &draws);
                        (draws, most)
                    }
                    None => (draws.clone(), bound("cut-utilisation")),
                };
                fluid.run(&draws, &mut outcome);
                let metrics = Metrics::of(&instance, &outcome, &bound::iso_comm(&instance));
                let name = policy.name();
                assert!(metrics.utilisation <= most * (1.0 + 1e-6), "{name} {seed}: {metrics:?}");
                assert!(metrics.utilisation <= bound("iso-utilisation") * (1.0 + 1e-6), "{name}");
                assert!(metrics.comm_mean >= bound("iso-comm") * (1.0 - 1e-6), "{name} {seed}");
                assert!(metrics.comm_max >= bound("iso-comm-max") * (1.0 - 1e-6), "{name} {seed}");
            }
        });
    }
}
