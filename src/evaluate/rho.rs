//! Preset `rho`: from how far below expectation a flow should count as slow.
//!
//! In: a size. Out: for ρ from 5 to 50 %, on an idle and a contended fabric, per fault (a cable at 90, 80 and 50 % of its rate, bursts of
//! background traffic, a host at half speed, nothing but jitter) and kind of feedback: runs in which it was found, false verdicts,
//! delay, what help gives the victims and costs the others; and the ρ that does best, by a score that was fixed before. Must not know
//! how runs are judged: that is [`crate::sim::detect`]'s.

use super::detection::{Kind, MODES, artifacts, fabrics, measure, rows};
use super::stats::mean;
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary, word};
use crate::controller::Artifacts;
use crate::feedback::Mode;
use crate::report::evaluation::{Chart, Entry, Mark, Page, Table};
use crate::sim::detect::{Fabric, Fault, Row};
use crate::straggler::Test;
use serde::Serialize;
use serde_json::Value;

/// Seeds of the full form.
const SEEDS: u64 = 20;
/// ρ as published.
const PUBLISHED: f64 = 0.2;
/// What is tried.
const RHOS: [f64; 6] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5];
/// What is tried in the small form.
const SMALL_RHOS: [f64; 3] = [0.05, 0.2, 0.5];
/// Faults, and what each leaves.
const FAULTS: [(Fault, f64); 6] = [
    (Fault::SlowLink, 0.9),
    (Fault::SlowLink, 0.8),
    (Fault::SlowLink, 0.5),
    (Fault::Bursts, 0.2),
    (Fault::SlowHost, 0.5),
    (Fault::Nothing, 1.0),
];

/// See the module.
pub struct Rho {
    artifacts: Artifacts,
    fabrics: Vec<Fabric>,
    seeds: u64,
    small: bool,
    test: Test,
}

impl Rho {
    /// The preset in a size.
    ///
    /// # Errors
    /// The built-in program cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        Ok(Self {
            artifacts: artifacts()?,
            fabrics: fabrics(settings),
            seeds: settings.seeds(SEEDS, 1),
            small: settings.small,
            test: settings.rule,
        })
    }
}

/// Runs of one ρ, fabric, fault and kind of feedback.
#[derive(Serialize)]
struct Found {
    rho: f64,
    factor: f64,
    #[serde(flatten)]
    row: Row,
}

/// One ρ on one fabric over all faults.
#[derive(Serialize)]
struct Score {
    fabric: Fabric,
    rho: f64,
    /// Network faults found, as a share of the runs with one.
    found: f64,
    /// Wrong verdicts per run, all faults and none.
    wrong: f64,
    /// `found - wrong`.
    score: f64,
    /// Mean intervals from fault to verdict.
    delay: f64,
    /// Communication time of victims and others with `best` against no feedback, mean over faults.
    victims: f64,
    others: f64,
}

fn name_of(fault: Fault, factor: f64) -> String {
    match fault {
        Fault::Nothing => "nothing".to_owned(),
        Fault::SlowLink => format!("link x{factor}"),
        Fault::SlowHost => format!("host x{factor}"),
        Fault::Bursts => format!("bursts, x{factor} left"),
    }
}

impl Preset for Rho {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let rhos = if self.small { &SMALL_RHOS[..] } else { &RHOS[..] };
        let faults: Vec<(Fault, f64)> = FAULTS
            .into_iter()
            .filter(|(fault, left)| !self.small || *left == 0.5 || *fault == Fault::Nothing)
            .collect();
        let mut cells = Vec::new();
        for &fabric in &self.fabrics {
            for &(fault, factor) in &faults {
                for &rho in rhos {
                    for mode in MODES {
                        for seed in 0..self.seeds {
                            let test = self.test;
                            let kind = Kind { fabric, fault, factor, mode, test, rho, seed };
                            let name = format!(
                                "{}, {}, \u{3c1} {rho}, {} seed {seed}",
                                word(fabric),
                                name_of(fault, factor),
                                word(mode)
                            );
                            cells.push(Cell::new(name, &kind)?);
                        }
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        measure(&self.artifacts, cell)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let found: Vec<Found> = rows(results)?
            .into_iter()
            .map(|(kind, row)| Found { rho: kind.rho, factor: kind.factor, row })
            .collect();
        let scores = scores(&found);
        let page = page(&found, &scores, self.seeds);
        let rows = serde_json::json!({ "runs": found, "scores": scores });
        Ok(Summary { source: "packet", seeds: self.seeds, rows, page })
    }
}

fn scores(found: &[Found]) -> Vec<Score> {
    let mut keys: Vec<(Fabric, f64)> =
        found.iter().map(|found| (found.row.fabric, found.rho)).collect();
    keys.sort_by(|a, b| word(b.0).cmp(&word(a.0)).then(a.1.total_cmp(&b.1)));
    keys.dedup();
    keys.into_iter().map(|(fabric, rho)| score(found, fabric, rho)).collect()
}

fn score(found: &[Found], fabric: Fabric, rho: f64) -> Score {
    let here = || found.iter().filter(|found| found.row.fabric == fabric && found.rho == rho);
    let network =
        || here().filter(|found| matches!(found.row.fault, Fault::SlowLink | Fault::Bursts));
    let without = |found: &&Found| found.row.feedback == Mode::None;
    let best = |found: &&Found| found.row.feedback == Mode::Best;
    let runs = |row: &Row| f64::from(row.runs.max(1));
    let share = network().filter(without).map(|f| f64::from(f.row.found) / runs(&f.row));
    let share = mean(share);
    let wrong = mean(here().filter(without).map(|f| f64::from(f.row.wrong) / runs(&f.row)));
    Score {
        fabric,
        rho,
        found: share,
        wrong,
        score: share - wrong,
        delay: mean(network().filter(without).filter_map(|f| f.row.delay_intervals_mean)),
        victims: mean(network().filter(best).filter_map(|f| f.row.victims_ratio)),
        others: mean(network().filter(best).filter_map(|f| f.row.others_ratio)),
    }
}

/// The ρ with the best score on a fabric; the shorter delay decides ties.
fn best(scores: &[Score], fabric: Fabric) -> Option<&Score> {
    let here = scores.iter().filter(|score| score.fabric == fabric);
    here.reduce(|a, b| {
        let better = b.score > a.score || (b.score == a.score && b.delay < a.delay);
        if better { b } else { a }
    })
}

fn page(found: &[Found], scores: &[Score], seeds: u64) -> Page {
    let mut facts = vec![
        ("source".to_owned(), "packet simulation".to_owned()),
        ("seeds".to_owned(), seeds.to_string()),
    ];
    for fabric in [Fabric::Light, Fabric::Contended] {
        if let Some(best) = best(scores, fabric) {
            facts.push((
                format!("best \u{3c1}, {} fabric", word(fabric)),
                format!("{} (published {PUBLISHED})", best.rho),
            ));
        }
    }
    Page {
        title: "Ringpath evaluation: rho".to_owned(),
        question: vec![
            "How far below expectation should a flow be to count as slow? Packet simulation; link, victim and time of a fault come from \
             the seed alone."
                .to_owned(),
            "Best, fixed before any result: the share of runs with a network fault in which it was found, less wrong verdicts per run; a \
             shorter delay decides ties."
                .to_owned(),
        ],
        facts,
        charts: vec![chart(scores)],
        tables: vec![score_table(scores), table(found)],
        shown: 2,
    }
}

fn chart(scores: &[Score]) -> Chart {
    let points = |score: &Score| {
        let label = format!("{}, \u{3c1} {}", word(score.fabric), score.rho);
        (label, vec![(0, score.found), (1, score.wrong), (2, score.victims), (3, score.others)])
    };
    Chart {
        title: "What \u{3c1} finds and what it gives".to_owned(),
        axis: "share of runs, wrong verdicts per run, times without feedback".to_owned(),
        series: ["found", "wrong", "victims with best", "others with best"]
            .map(str::to_owned)
            .into(),
        rows: scores.iter().map(points).collect(),
        reference: 1.0,
    }
}

fn score_table(scores: &[Score]) -> Table {
    let mut table = Table::new(
        "scores",
        "Every \u{3c1} over all network faults",
        "found: share of runs with a slow link or bursts in which it was found; wrong: verdicts about anything else, per run, undisturbed \
         runs and slow hosts included; victims, others: communication time with 'best' over the same run without feedback.",
        &["fabric", "\u{3c1}", "found", "wrong per run", "score", "delay", "victims", "others", ""],
    );
    for score in scores {
        let is_best = best(scores, score.fabric).is_some_and(|best| best.rho == score.rho);
        let note = match (is_best, score.rho == PUBLISHED) {
            (true, true) => "best, published",
            (true, false) => "best",
            (false, true) => "published",
            (false, false) => "",
        };
        let mark = if is_best { Mark::Good } else { Mark::Plain };
        table.rows.push(vec![
            Entry::text(word(score.fabric)),
            Entry::number(score.rho, 2),
            Entry::number(score.found, 2),
            Entry::number(score.wrong, 2),
            Entry::number(score.score, 2),
            Entry::number(score.delay, 1),
            Entry::number(score.victims, 3),
            Entry::number(score.others, 3),
            Entry::text(note).marked(mark),
        ]);
    }
    table
}

fn table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "rho",
        "Detection and reaction by fabric, fault, \u{3c1} and feedback",
        "delay: telemetry intervals from the fault to the first right verdict. wrong: verdicts about anything else, all runs together.",
        &[
            "fabric", "fault", "\u{3c1}", "feedback", "found", "delay", "max", "wrong", "unknown",
            "raised", "rerouted", "kept", "undone", "victims", "others",
        ],
    );
    for Found { rho, factor, row } in found {
        table.rows.push(vec![
            Entry::text(word(row.fabric)),
            Entry::text(name_of(row.fault, *factor)),
            Entry::number(*rho, 2),
            Entry::text(word(row.feedback)),
            Entry::text(format!("{}/{}", row.found, row.runs)),
            Entry::maybe(row.delay_intervals_mean, 1),
            Entry::maybe(row.delay_intervals_max, 1),
            Entry::count(row.wrong.into()),
            Entry::count(row.unknown.into()),
            Entry::count(row.raised.into()),
            Entry::count(row.rerouted.into()),
            Entry::count(row.kept.into()),
            Entry::count(row.undone.into()),
            Entry::maybe(row.victims_ratio, 3),
            Entry::maybe(row.others_ratio, 3),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::detect::{Trial, row};

    fn found(rho: f64, fault: Fault, found: u32, wrong: u32, delay: f64) -> Found {
        let trial = |_| Trial { victims_ms: 1.0, others_ms: 1.0, ..Trial::default() };
        let trials: Vec<Trial> = (0..4).map(trial).collect();
        let mut row = row((Fabric::Light, fault, Mode::None), &trials, &trials);
        (row.found, row.wrong, row.delay_intervals_mean) = (found, wrong, Some(delay));
        Found { rho, factor: 0.5, row }
    }

    #[test]
    fn the_best_rho_finds_most_and_is_wrong_least() {
        let all = [
            found(0.05, Fault::SlowLink, 4, 0, 3.0),
            found(0.05, Fault::Nothing, 0, 4, 3.0),
            found(0.2, Fault::SlowLink, 4, 0, 5.0),
            found(0.2, Fault::Nothing, 0, 0, 3.0),
            found(0.3, Fault::SlowLink, 4, 0, 4.0),
            found(0.3, Fault::Nothing, 0, 0, 3.0),
            found(0.5, Fault::SlowLink, 1, 0, 4.0),
            found(0.5, Fault::Nothing, 0, 0, 4.0),
        ];
        let scores = scores(&all);
        let best = best(&scores, Fabric::Light).unwrap();
        assert_eq!((best.rho, best.found, best.wrong), (0.3, 1.0, 0.0));
        assert_eq!(scores[0].wrong, 0.5, "undisturbed runs count");
    }
}
