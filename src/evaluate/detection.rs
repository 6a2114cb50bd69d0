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
    fn run(&self, artifacts: &Artifacts) -> Result<Trial, EvaluateError> {
        let Self { fabric, fault, factor, mode, test, rho, seed } = *self;
        trial(&Spec { artifacts, fabric, fault, factor, mode, test, rho, seed })
            .map_err(|error| EvaluateError::Run(Box::new(error)))
    }
}

/// Runs the cell of a [`Kind`].
pub(super) fn measure(artifacts: &Artifacts, cell: &Cell) -> Result<Measured, EvaluateError> {
    Measured::of(&cell.spec::<Kind>()?.run(artifacts)?)
}

/// One row per kind of feedback: neighbouring cells that differ in nothing but that and the seed. The first kind is what the others
/// are compared with.
pub(super) fn rows(results: &[(Cell, Value)]) -> Result<Vec<(Kind, Row)>, EvaluateError> {
    let read = super::read::<Kind, Trial>(results)?;
    let same = |a: &Kind, b: &Kind| {
        (a.fabric, a.fault) == (b.fabric, b.fault) && a.factor == b.factor && a.rho == b.rho
    };
    let mut rows = Vec::new();
    for kinds in read.chunk_by(|a, b| same(&a.0, &b.0)) {
        let mut baseline = Vec::new();
        for runs in kinds.chunk_by(|a, b| a.0.mode == b.0.mode) {
            let trials: Vec<Trial> = runs.iter().map(|run| run.1.clone()).collect();
            if baseline.is_empty() {
                baseline.clone_from(&trials);
            }
            let kind = runs[0].0;
            rows.push((kind, row((kind.fabric, kind.fault, kind.mode), &trials, &baseline)));
        }
    }
    Ok(rows)
}

/// The built-in program, which the switches of all runs execute.
pub(super) fn artifacts() -> Result<Artifacts, EvaluateError> {
    Artifacts::built_in().map_err(|error| EvaluateError::Program(error.to_string()))
}

/// The fabrics that were asked for, in the order of the table; by default both, or the light one in the small form.
pub(super) fn fabrics(settings: &Settings) -> Vec<Fabric> {
    let all = [Fabric::Light, Fabric::Contended];
    match (settings.fabrics.is_empty(), settings.small) {
        (false, _) => all.into_iter().filter(|one| settings.fabrics.contains(one)).collect(),
        (true, true) => all[..1].to_vec(),
        (true, false) => all.to_vec(),
    }
}

impl Detection {
    /// The preset.
    ///
    /// # Errors
    /// The built-in program cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        Ok(Self {
            artifacts: artifacts()?,
            fabrics: fabrics(settings),
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
        measure(&self.artifacts, cell)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let rows: Vec<Row> = rows(results)?.into_iter().map(|(_, row)| row).collect();
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
