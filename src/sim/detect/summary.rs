//! Trials of one kind in one row.
//!
//! In: a fabric, a fault, trials with feedback and, seed by seed, without. Out: what a table shows. Must not run anything.

use super::{Fabric, Fault, Trial};
use crate::feedback::Mode;
use serde::{Deserialize, Serialize};

/// One line of the table: runs of one kind over all seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Where.
    pub fabric: Fabric,
    /// What was done.
    pub fault: Fault,
    /// What the controller did about it.
    pub feedback: Mode,
    /// Runs.
    pub runs: u32,
    /// Runs with a right verdict.
    pub found: u32,
    /// Intervals from fault to verdict, mean over the runs that found it.
    pub delay_intervals_mean: Option<f64>,
    /// And the longest.
    pub delay_intervals_max: Option<f64>,
    /// Network and compute verdicts about something else, all runs together.
    pub wrong: u32,
    /// Verdicts without a known cause.
    pub unknown: u32,
    /// Runs in which some flow was planned below a flow of another job on a link that both use.
    pub runs_with_low: u32,
    /// Raises.
    pub raised: u32,
    /// Reroutes.
    pub rerouted: u32,
    /// Reactions kept.
    pub kept: u32,
    /// Reactions undone.
    pub undone: u32,
    /// Communication time of the jobs over the slow cable after the fault, over the same without feedback, mean over runs.
    pub victims_ratio: Option<f64>,
    /// The same for all other jobs: what the victims' help costs.
    pub others_ratio: Option<f64>,
    /// The runs.
    pub trials: Vec<Trial>,
}

/// Sums up runs of one kind over seeds; `baseline` are the same runs without feedback, seed by seed.
#[must_use]
pub fn row(
    (fabric, fault, feedback): (Fabric, Fault, Mode),
    trials: &[Trial],
    baseline: &[Trial],
) -> Row {
    let sum = |of: fn(&Trial) -> u32| trials.iter().map(of).sum::<u32>();
    let delays: Vec<f64> = trials.iter().filter_map(|trial| trial.delay_intervals).collect();
    let ratio = |of: fn(&Trial) -> f64| {
        let pairs = trials.iter().zip(baseline).map(|(with, without)| (of(with), of(without)));
        mean(
            &pairs
                .filter(|pair| pair.0 > 0.0 && pair.1 > 0.0)
                .map(|(a, b)| a / b)
                .collect::<Vec<_>>(),
        )
    };
    let faulty = matches!(fault, Fault::SlowLink | Fault::Bursts);
    Row {
        fabric,
        fault,
        feedback,
        runs: trials.len() as u32,
        found: delays.len() as u32,
        delay_intervals_mean: mean(&delays),
        delay_intervals_max: delays.iter().copied().reduce(f64::max),
        wrong: sum(|trial| trial.wrong + trial.compute_wrong),
        unknown: sum(|trial| trial.unknown),
        runs_with_low: sum(|trial| u32::from(trial.planned_low > 0)),
        raised: sum(|trial| trial.raised),
        rerouted: sum(|trial| trial.rerouted),
        kept: sum(|trial| trial.kept),
        undone: sum(|trial| trial.undone),
        victims_ratio: ratio(|trial| trial.victims_ms).filter(|_| faulty),
        others_ratio: ratio(|trial| trial.others_ms),
        trials: trials.to_vec(),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
