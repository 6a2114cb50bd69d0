//! Preset `detection`: are stragglers found, does nothing happen without one, what does help give and cost.
//!
//! In: seeds, ρ, a rule, fabrics. Out: one run per fabric, fault, kind of feedback and seed; one row per kind. Must not know how runs
//! are judged: that is [`crate::sim::detect`]'s.

use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary, word};
use crate::controller::Artifacts;
use crate::feedback::Mode;
use crate::report::evaluation::{Entry, Page, Table};
use crate::sim::detect::{Fabric, Fault, Row, Spec, Trial, row, trial};
use crate::straggler::Test;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Seeds of the full form.
const SEEDS: u64 = 20;
/// Kinds of feedback; the first is what the others are compared with.
pub(super) const MODES: [Mode; 3] = [Mode::None, Mode::Raise, Mode::Best];
/// Faults that are tried.
const FAULTS: [Fault; 3] = [Fault::SlowLink, Fault::Nothing, Fault::SlowHost];
/// What is left of a link's rate or of a host's speed.
const FACTOR: f64 = 0.5;

/// See the module.
pub struct Detection {
    artifacts: Artifacts,
    fabrics: Vec<Fabric>,
    seeds: u64,
    rho: f64,
    test: Test,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Kind {
    pub fabric: Fabric,
    pub fault: Fault,
    pub factor: f64,
    pub mode: Mode,
    pub test: Test,
    pub rho: f64,
    pub seed: u64,
}

impl Kind {
    /// Runs it.
    pub fn run(&self, artifacts: &Artifacts, cell: &Cell) -> Result<Trial, EvaluateError> {
        let Self { fabric, fault, factor, mode, test, rho, seed } = *self;
        trial(&Spec { artifacts, fabric, fault, factor, mode, test, rho, seed }).map_err(|error| {
            EvaluateError::Run { cell: cell.name.clone(), source: Box::new(error) }
        })
    }
}

/// The built-in program, which the switches of all runs execute.
pub(super) fn artifacts() -> Result<Artifacts, EvaluateError> {
    Artifacts::built_in().map_err(|error| EvaluateError::Program(error.to_string()))
}

/// The fabrics of these names; `fallback` if there are none.
pub(super) fn fabrics(names: &[String], fallback: &[Fabric]) -> Result<Vec<Fabric>, EvaluateError> {
    if names.is_empty() {
        return Ok(fallback.to_vec());
    }
    let known = [Fabric::Light, Fabric::Contended];
    let wanted = |name: &String| {
        known.iter().copied().find(|fabric| word(fabric) == *name).ok_or_else(|| {
            let known = known.map(word).join(", ");
            EvaluateError::Fabric { name: name.clone(), known }
        })
    };
    // In the order of the table, whatever the order on the command line.
    let wanted = names.iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    Ok(known.into_iter().filter(|fabric| wanted.contains(fabric)).collect())
}

impl Detection {
    /// The preset.
    ///
    /// # Errors
    /// A fabric that there is none of.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        let all = [Fabric::Light, Fabric::Contended];
        Ok(Self {
            artifacts: artifacts()?,
            fabrics: fabrics(&settings.fabrics, if settings.small { &all[..1] } else { &all })?,
            seeds: settings.seeds(SEEDS, 2),
            rho: settings.rho,
            test: settings.rule,
        })
    }
}

impl Preset for Detection {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let mut cells = Vec::new();
        for &fabric in &self.fabrics {
            for fault in FAULTS {
                for mode in MODES {
                    for seed in 0..self.seeds {
                        let (test, rho) = (self.test, self.rho);
                        let kind = Kind { fabric, fault, factor: FACTOR, mode, test, rho, seed };
                        let name = format!(
                            "{}, {}, {} seed {seed}",
                            word(fabric),
                            word(fault),
                            word(mode)
                        );
                        cells.push(Cell::new(name, &kind)?);
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let kind: Kind = serde_json::from_value(cell.spec.clone())?;
        let result = serde_json::to_value(kind.run(&self.artifacts, cell)?)?;
        Ok(Measured { result, times: Vec::new() })
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let mut read = Vec::new();
        for (cell, result) in results {
            let kind: Kind = serde_json::from_value(cell.spec.clone())?;
            let trial: Trial = serde_json::from_value(result.clone())?;
            read.push((kind, trial));
        }
        let mut rows = Vec::new();
        for kinds in read.chunk_by(|a, b| (a.0.fabric, a.0.fault) == (b.0.fabric, b.0.fault)) {
            let mut baseline = Vec::new();
            for runs in kinds.chunk_by(|a, b| a.0.mode == b.0.mode) {
                let trials: Vec<Trial> = runs.iter().map(|run| run.1.clone()).collect();
                if baseline.is_empty() {
                    baseline.clone_from(&trials);
                }
                let kind = &runs[0].0;
                rows.push(row((kind.fabric, kind.fault, kind.mode), &trials, &baseline));
            }
        }
        let page = Page {
            title: "Ringpath evaluation: detection".to_owned(),
            question: vec![
                "Are stragglers found, does nothing happen without one, what does help give and cost? Packet simulation; link, victim \
                 and time of a fault come from the seed alone."
                    .to_owned(),
            ],
            facts: vec![
                ("source".to_owned(), "packet simulation".to_owned()),
                ("seeds".to_owned(), self.seeds.to_string()),
                ("\u{3c1}".to_owned(), self.rho.to_string()),
                ("rule".to_owned(), word(self.test)),
            ],
            charts: Vec::new(),
            tables: vec![table(&rows)],
            shown: 1,
        };
        Ok(Summary {
            source: "packet",
            seeds: self.seeds,
            rows: serde_json::to_value(&rows)?,
            page,
        })
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "detection",
        "Detection and reaction by fabric, fault and feedback",
        "low: runs whose plan puts some flow below a flow of another job on a link that both use. delay, max: telemetry intervals from \
         the fault to the first right verdict. wrong: network or compute verdicts about anything else. victims, others: communication \
         time after the fault over the same run without feedback.",
        &[
            "fabric", "fault", "feedback", "low", "found", "delay", "max", "wrong", "unknown",
            "raised", "rerouted", "kept", "undone", "victims", "others",
        ],
    );
    for row in rows {
        table.rows.push(vec![
            Entry::text(word(row.fabric)),
            Entry::text(word(row.fault)),
            Entry::text(word(row.feedback)),
            Entry::text(format!("{}/{}", row.runs_with_low, row.runs)),
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
