use super::drain::drain;
use super::loose::Window;
use super::*;
use crate::solver::instance::{Choice, Instance};
use crate::solver::rate::slow_rates;
use crate::solver::tests::{instance, random, two_jobs_one_link};

fn run(instance: &Instance, choice: &Choice, draws: &Draws) -> Outcome {
    let mut outcome = Outcome::default();
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    fluid.run(draws, &mut outcome);
    outcome
}

fn close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-9 * wanted.abs().max(1.0), "got {got}, wanted {wanted}");
}

#[test]
fn a_job_alone_sends_at_line_rate_in_every_iteration() {
    let instance = instance(&[4.0], &[(3.0, vec![(8.0, vec![vec![vec![0]]])])]);
    let choice = Choice::first(1);
    let outcome = run(&instance, &choice, &Draws::exact(&instance));
    close(outcome.comm[0], 2.0);
    close(outcome.window[0], 5.0 * (3.0 + 2.0));
    let metrics = Metrics::of(&instance, &outcome, &[2.0]);
    close(metrics.utilisation, 3.0 / 5.0);
    close(metrics.slowdown, 1.0);
}

#[test]
fn overlap_hides_communication_behind_compute() {
    let mut instance = instance(&[4.0], &[(3.0, vec![(8.0, vec![vec![vec![0]]])])]);
    for (overlap, period) in [(0.0, 5.0), (0.5, 3.5), (1.0, 3.0)] {
        instance.jobs[0].overlap = overlap;
        let outcome = run(&instance, &Choice::first(1), &Draws::exact(&instance));
        close(outcome.window[0], 5.0 * period);
        close(outcome.comm[0], 2.0);
    }
}

#[test]
fn strict_priority_follows_the_timeline_worked_by_hand() {
    // J1 (compute 2, send 2) above J2 (compute 1, send 1), both start to compute at 0. J1 holds the link in [2, 4),
    // [6, 8), ...; J2 sends in [1, 2), [4, 5), [6 -> waits, 8, 9), [10 -> waits, 12, 13), ...
    let instance = two_jobs_one_link();
    let choice = Choice { path: vec![0, 0], queue: vec![1, 0] };
    let outcome = run(&instance, &choice, &Draws::exact(&instance));
    close(outcome.comm[0], 2.0);
    close(outcome.window[0], 20.0);
    // J2: sent at 2, 5, 9, 13, 17; computing 2-3 (waits to 4), 5-6 (to 8), 9-10 (to 12), 13-14 (to 16).
    close(outcome.comm[1], (2.0 + 3.0 + 3.0 + 3.0) / 4.0);
    close(outcome.window[1], 17.0);
}

#[test]
fn jobs_in_one_queue_halve_the_link_while_both_send() {
    let instance = instance(
        &[1.0],
        &[(1.0, vec![(2.0, vec![vec![vec![0]]])]), (1.0, vec![(2.0, vec![vec![vec![0]]])])],
    );
    let outcome = run(&instance, &Choice::first(2), &Draws::exact(&instance));
    close(outcome.comm[0], 4.0);
    close(outcome.comm[1], 4.0);
}

#[test]
fn a_job_without_flows_only_computes() {
    let instance = instance(&[1.0], &[(2.0, vec![])]);
    let outcome = run(&instance, &Choice::first(0), &Draws::exact(&instance));
    close(outcome.window[0], 10.0);
    close(Metrics::of(&instance, &outcome, &[0.0]).utilisation, 1.0);
}

#[test]
fn a_flow_without_capacity_is_reported_and_does_not_hang() {
    let instance = instance(&[0.0], &[(2.0, vec![(1.0, vec![vec![vec![0]]])])]);
    let outcome = run(&instance, &Choice::first(1), &Draws::exact(&instance));
    assert_eq!(outcome.stalled, [true]);
    assert!(Metrics::of(&instance, &outcome, &[1.0]).comm_mean.is_infinite());
    assert!(drain(&instance, &Choice::first(1)).flow[0].is_infinite());
}

fn random_choice(instance: &Instance, seed: u64, by_flow: bool) -> Choice {
    let mut random = crate::time::stream(seed, "choice", 0);
    let mut choice = Choice::first(instance.flows.len());
    let queue: Vec<u8> = instance.jobs.iter().map(|_| random.random_range(0..4_u8)).collect();
    for (flow, shape) in instance.flows.iter().enumerate() {
        choice.path[flow] = random.random_range(0..shape.candidates.len()) as u16;
        choice.queue[flow] = if by_flow { random.random_range(0..4_u8) } else { queue[shape.job] };
    }
    choice
}

#[test]
fn nobody_communicates_faster_than_alone() {
    for seed in 0..60 {
        let instance = random(seed, 5);
        let choice = random_choice(&instance, seed, true);
        let draws = Draws::random(&instance, seed, "test", 0);
        let outcome = run(&instance, &choice, &draws);
        let iso = alone(&instance, &choice, &draws);
        for job in 0..instance.jobs.len() {
            assert!(outcome.comm[job] >= iso.comm[job] * (1.0 - 1e-9), "seed {seed} job {job}");
            close(iso.comm[job], instance.alone(&choice, job));
            assert!(outcome.window[job] >= iso.window[job] * (1.0 - 1e-9));
        }
    }
}

#[test]
fn remembered_rates_change_nothing() {
    for seed in 0..20 {
        let instance = random(seed, 6);
        let draws = Draws::random(&instance, seed, "test", 0);
        let (first, second) =
            (random_choice(&instance, seed, true), random_choice(&instance, seed + 1, true));
        let mut fluid = Fluid::new(&instance);
        let mut outcome = Outcome::default();
        for choice in [&first, &second, &first] {
            fluid.load(choice);
            fluid.run(&draws, &mut outcome);
            fluid.run(&draws, &mut outcome);
            assert_eq!(outcome, run(&instance, choice, &draws));
        }
    }
}

/// Mean relative difference of communication times between the tight and the loose form.
fn difference(seeds: std::ops::Range<u64>, choose: impl Fn(&Instance, u64) -> Choice) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for seed in seeds {
        let instance = random(seed, 4);
        let choice = choose(&instance, seed);
        let draws = Draws::random(&instance, seed, "test", 0);
        let tight = run(&instance, &choice, &draws);
        let window = Window { ahead: 0.05, buffer: 0.05, step: 0.004 };
        let loose = loose::run(&instance, &choice, &draws, window);
        for job in 0..instance.jobs.len() {
            sum += (tight.comm[job] - loose.comm[job]).abs() / loose.comm[job];
            count += 1.0;
        }
    }
    sum / count
}

#[test]
fn the_tight_form_agrees_with_the_loose_twin_when_each_job_has_one_queue() {
    let difference = difference(0..12, |instance, seed| random_choice(instance, seed, false));
    assert!(difference < 0.02, "{difference}");
}

#[test]
fn the_tight_form_agrees_with_the_loose_twin_when_queues_differ_but_the_order_does_not() {
    // Job r has queues 2r and 2r + 1, flow by flow: the numbers mix, the order of two jobs is the same everywhere.
    let difference = difference(100..112, |instance, seed| {
        let mut choice = random_choice(instance, seed, true);
        for (queue, flow) in choice.queue.iter_mut().zip(&instance.flows) {
            *queue = 2 * flow.job as u8 + *queue % 2;
        }
        choice
    });
    assert!(difference < 0.03, "{difference}");
}

/// Drain in tiny steps with the slow rates.
fn slow_drain(instance: &Instance, choice: &Choice) -> Vec<f64> {
    let layout = Layout::of_flows(instance, choice);
    let mut left: Vec<f64> = instance.flows.iter().map(|flow| flow.bytes).collect();
    let mut done = vec![0.0; left.len()];
    let step = 0.005;
    let mut now = 0.0;
    loop {
        let active: Vec<u32> =
            (0..left.len() as u32).filter(|&flow| left[flow as usize] > 0.0).collect();
        if active.is_empty() {
            return done;
        }
        let rates = slow_rates(&layout, &instance.capacity, &active);
        now += step;
        for &flow in &active {
            left[flow as usize] -= rates[flow as usize] * step;
            done[flow as usize] = now;
        }
    }
}

#[test]
fn drain_times_agree_with_small_steps_of_the_slow_rates() {
    for seed in 0..10 {
        let instance = random(seed, 4);
        let choice = random_choice(&instance, seed, true);
        let fast = drain(&instance, &choice);
        for (flow, slow) in slow_drain(&instance, &choice).into_iter().enumerate() {
            let allowed = 0.03 * slow + 0.05;
            assert!(
                (fast.flow[flow] - slow).abs() <= allowed,
                "{seed}: {} {slow}",
                fast.flow[flow]
            );
        }
    }
}

#[test]
fn draws_repeat_and_differ_by_seed_purpose_and_index() {
    let mut instance = two_jobs_one_link();
    instance.jobs[0].jitter = 0.1;
    let draw = |seed, purpose, index| Draws::random(&instance, seed, purpose, index);
    assert_eq!(draw(1, "a", 0), draw(1, "a", 0));
    assert_ne!(draw(1, "a", 0), draw(2, "a", 0));
    assert_ne!(draw(1, "a", 0), draw(1, "b", 0));
    assert_ne!(draw(1, "a", 0), draw(1, "a", 1));
    assert!(draw(1, "a", 0).start.iter().zip([4.0, 2.0]).all(|(&start, period)| start < period));
}

#[test]
fn start_phases_are_spread_over_the_period() {
    let mut instance = two_jobs_one_link();
    instance.jobs[0].start = 1.0;
    let starts: Vec<f64> =
        (0..400).map(|index| Draws::random(&instance, 1, "a", index).start[0]).collect();
    let mean = starts.iter().sum::<f64>() / 400.0;
    // Period 4: mean 2, deviation of the mean 4 / sqrt(12 * 400) = 0.06.
    assert!((mean - 2.0).abs() < 0.25, "{mean}");
    let quarter = starts.iter().filter(|&&start| start < 1.0).count();
    assert!((60..140).contains(&quarter), "{quarter}");
}

#[test]
fn an_arrival_is_kept_and_a_phase_is_drawn_anew() {
    let mut instance = two_jobs_one_link();
    instance.jobs[0].start = 1.0;
    instance.jobs[1].start = 100.0;
    let draws = Draws::random(&instance, 3, "a", 0);
    assert!(draws.start[0] < 4.0 && (100.0..102.0).contains(&draws.start[1]));
    assert_eq!(Draws::jittered(&instance, 3, "a", 0).start, [1.0, 100.0]);
}

#[test]
fn rates_of_components_give_the_same_run_with_few_and_with_many_rings() {
    // The same jobs as one-word sets and, with idle rings beside them, as lists.
    for seed in 0..20 {
        let narrow = random(seed, 6);
        let mut wide = narrow.clone();
        for _ in 0..70 {
            let ring = wide.rings.len();
            let link = wide.capacity.len();
            wide.capacity.push(1.0);
            wide.flows.push(crate::solver::instance::FlowShape {
                job: wide.jobs.len(),
                ring,
                bytes: 1.0,
                candidates: vec![vec![link]],
            });
            wide.rings.push(crate::solver::instance::Ring {
                job: wide.jobs.len(),
                bytes: 1.0,
                flows: vec![wide.flows.len() - 1],
            });
            wide.jobs.push(crate::solver::instance::JobShape {
                rings: vec![ring],
                ..narrow.jobs[0].clone()
            });
        }
        let choice = random_choice(&wide, seed, true);
        let own = Choice {
            path: choice.path[..narrow.flows.len()].to_vec(),
            queue: choice.queue[..narrow.flows.len()].to_vec(),
        };
        let few = run(&narrow, &own, &Draws::random(&narrow, seed, "test", 0));
        let many = run(&wide, &choice, &Draws::random(&wide, seed, "test", 0));
        for job in 0..narrow.jobs.len() {
            close(many.comm[job], few.comm[job]);
            close(many.window[job], few.window[job]);
        }
    }
}
