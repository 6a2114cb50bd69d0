//! The small form of `ringpath evaluate --preset detection`: found where there is something, silent where there is nothing.

use ringpath::controller::Artifacts;
use ringpath::feedback::Mode;
use ringpath::sim::detect::{Fabric, Fault, Spec, Trial, trial};
use ringpath::straggler::Test;

fn run(fault: Fault, mode: Mode, seed: u64) -> Trial {
    let artifacts = Artifacts::built_in().unwrap();
    let fabric = Fabric::Light;
    let (test, rho, factor) = (Test::Work, 0.2, 0.5);
    let spec = Spec { artifacts: &artifacts, fabric, fault, factor, mode, test, rho, seed };
    trial(&spec).unwrap()
}

/// Intervals within which a slow link must be found: two that settle, two that agree, the rest for jobs that compute.
const SOON: f64 = 12.0;

#[test]
fn a_slow_link_is_found_and_its_flows_leave_it() {
    for seed in [1, 3] {
        let with = run(Fault::SlowLink, Mode::Best, seed);
        assert!(with.delay_intervals.is_some_and(|delay| delay < SOON), "{with:?}");
        assert_eq!((with.wrong, with.compute_wrong), (0, 0), "{with:?}");
        assert!(with.rerouted > 0 && with.kept > 0, "{with:?}");
        let without = run(Fault::SlowLink, Mode::None, seed);
        assert_eq!(without.rerouted + without.raised, 0);
        assert_eq!(without.delay_intervals, with.delay_intervals, "the same fault, found alike");
        assert!(with.victims_ms < 0.95 * without.victims_ms, "{with:?} {without:?}");
    }
}

#[test]
fn nothing_is_done_when_compute_times_alone_vary() {
    for (mode, seed) in [(Mode::Best, 0), (Mode::Best, 2), (Mode::Raise, 2)] {
        let trial = run(Fault::Nothing, mode, seed);
        assert_eq!((trial.wrong, trial.raised, trial.rerouted), (0, 0, 0), "{trial:?}");
        assert!(trial.planned_low > 0, "a flow planned low is among those left alone: {trial:?}");
    }
}

#[test]
fn a_slow_host_is_a_compute_straggler_and_nobody_is_raised_for_it() {
    let trial = run(Fault::SlowHost, Mode::Raise, 0);
    assert!(trial.compute_right > 0, "{trial:?}");
    assert_eq!((trial.wrong, trial.compute_wrong), (0, 0), "{trial:?}");
    assert_eq!((trial.raised, trial.rerouted), (0, 0), "{trial:?}");
}
