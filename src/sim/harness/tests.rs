//! The harness on a few seeds, and that it finds what is broken.

use super::*;
use crate::sim::run::{committed_program, tests::in_turn};

fn harness() -> Harness {
    Harness { artifacts: committed_program().expect("the program"), policy: in_turn() }
}

#[test]
fn seeds_with_faults_keep_every_invariant() {
    let seeds: u64 = std::env::var("SIM_SEEDS").map_or(12, |text| text.parse().expect("a number"));
    let first: u64 = std::env::var("SIM_FIRST").map_or(0, |text| text.parse().expect("a number"));
    let outcomes = harness().run(first..first + seeds, 2, &|outcome| {
        if let Some(failure) = &outcome.failure {
            println!(
                "seed {}: {}\n  faults {:?}\n  shortest {:?}: {}",
                outcome.seed, failure.what, outcome.faults, failure.shortest, failure.shortest_what
            );
        }
    });
    let broken: Vec<u64> =
        outcomes.iter().filter(|o| o.failure.is_some()).map(|o| o.seed).collect();
    assert_eq!(broken, Vec::<u64>::new());
    assert!(outcomes.iter().map(|o| o.faults.len()).sum::<usize>() > 10, "no faults were drawn");
    assert!(outcomes.iter().all(|o| o.events > 1000));
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    let harness = harness();
    let (a, b) = (harness.seed(3), harness.seed(3));
    assert_eq!((a.digest, a.events, a.faults), (b.digest, b.events, b.faults));
}
