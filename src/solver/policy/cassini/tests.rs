use super::*;
use crate::solver::fluid::{Draws, Fluid, Outcome};
use crate::solver::tests::instance;

fn circle(period: f64, begin: f64, lasts: f64) -> Circle {
    Circle { period, comm: (begin, lasts), demand: 1.0 }
}

#[test]
fn two_jobs_that_each_need_half_of_the_time_are_kept_apart() {
    // Both send in [1, 2) of 2 s: one half turn.
    let circles = [circle(2.0, 1.0, 1.0), circle(2.0, 1.0, 1.0)];
    assert!((score(&circles, &[0.0, 0.0]) - 0.5).abs() < 1e-9);
    let shifts = rotations(&circles);
    assert!((shifts[1] - 1.0).abs() < 1e-9, "{shifts:?}");
    assert!((score(&circles, &shifts) - 1.0).abs() < 1e-9);
}

#[test]
fn three_thirds_fill_the_circle_and_four_do_not_fit() {
    let thirds = [circle(3.0, 2.0, 1.0); 3];
    assert!((score(&thirds, &rotations(&thirds)) - 1.0).abs() < 1e-9);
    let four = [circle(3.0, 2.0, 1.0); 4];
    // A third of the circle is asked for twice at best.
    assert!((score(&four, &rotations(&four)) - 2.0 / 3.0).abs() < 0.02);
}

#[test]
fn circles_of_different_length_meet_on_their_least_common_multiple() {
    let circles = [circle(2.0, 1.0, 1.0), circle(4.0, 3.0, 1.0)];
    assert_eq!(perimeter(&circles), (4.0, 1));
    assert_eq!(perimeter(&[circle(2.0, 1.0, 1.0), circle(3.0, 2.0, 1.0)]), (6.0, 2));
    let (odd, laps) =
        perimeter(&[circle(1.0, 0.5, 0.5), circle(std::f64::consts::SQRT_2, 1.0, 0.4)]);
    assert!(laps <= LAPS_MAX && odd > 1.0);
    // The short one sends in [1, 2) and [3, 4): the long one has [0, 1) or [2, 3).
    let shifts = rotations(&circles);
    assert!((score(&circles, &shifts) - 1.0).abs() < 1e-9, "{shifts:?}");
    assert!((shifts[1] - 1.0).abs() < 0.06 || (shifts[1] - 3.0).abs() < 0.06, "{shifts:?}");
}

#[test]
fn what_is_asked_for_below_capacity_costs_nothing() {
    let halves = [Circle { demand: 0.5, ..circle(2.0, 0.0, 2.0) }; 2];
    assert!((score(&halves, &[0.0, 0.0]) - 1.0).abs() < 1e-12);
}

#[test]
fn phases_travel_over_the_affinity_graph_and_a_loop_is_left_open() {
    // Link a: jobs 0 and 1 half a turn apart; link b: jobs 1 and 2 a quarter; link c would close the loop.
    let links = [
        (0.1, vec![(0, 0.0), (1, 2.0)]),
        (0.2, vec![(1, 1.0), (2, 2.0)]),
        (0.3, vec![(0, 0.0), (2, 0.5)]),
    ];
    let at: Vec<f64> = walk(&links, &[4.0; 4]).iter().map(|shift| shift.at).collect();
    // From job 0 over a: 1 at 2; over c: 2 at 0.5, before b is crossed from job 1, where 2 is known.
    assert_eq!(at, [0.0, 2.0, 0.5, 0.0]);
    let tree = walk(&links[..2], &[4.0; 3]);
    assert_eq!(tree[2], Shift { at: 3.0, period: 4.0 });
}

#[test]
fn jobs_that_keep_their_phases_communicate_as_if_alone() {
    // Two jobs compute 2 s and send 2 s on one link; started together they share it.
    let one = || vec![vec![vec![0]]];
    let instance = instance(&[1.0], &[(2.0, vec![(2.0, one())]), (2.0, vec![(2.0, one())])]);
    let choice = Choice::first(2);
    let comm = |draws: &Draws| {
        let mut outcome = Outcome::default();
        let mut fluid = Fluid::new(&instance);
        fluid.load(&choice);
        fluid.run(draws, &mut outcome);
        outcome.comm
    };
    let together = Draws::exact(&instance);
    assert_eq!(comm(&together), [4.0, 4.0]);
    let apart = together.aligned(&shifts(&instance, &choice));
    assert!(comm(&apart).iter().all(|seconds| (seconds - 2.0).abs() < 1e-9), "{apart:?}");
    // A start is only ever put off, by less than a period.
    assert!(apart.start.iter().zip(&together.start).all(|(a, b)| (0.0..4.0).contains(&(a - b))));
}
