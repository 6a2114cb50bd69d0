//! Experiments over many cases, each fixed before its results are seen.
//!
//! In: [`Settings`] that name a preset. Out: a list of independent [`Cell`]s, what each of them measured ([`ledger`] keeps that in
//! files that can be resumed, sharded and merged), and a [`Summary`] with tables and charts. Must not know: the command line. A cell
//! holds everything that matters to its result, so the same cells give the same bytes whoever runs which of them.
//!
//! | preset | asks |
//! |---|---|
//! | [`paper`] | how every policy does on a grid of fabrics and loads |
//! | [`load`] | from which load on scheduling matters |
//! | [`scale`] | how plans and planning time grow from 10 to 10,000 flows |
//! | [`ablation`] | what each part of `joint` and each objective is worth |
//! | [`optimality`] | how near to the best plan of all small cases |
//! | [`fidelity`] | how far estimate and fluid model are from packets |
//! | [`rho`] | which ρ finds most stragglers, and what helping them gives |
//! | [`detection`] | are stragglers found, what does helping them give and cost |

use crate::report::evaluation::Page;
use crate::sim::detect::Fabric;
use crate::straggler::Test;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod ablation;
pub mod compare;
pub mod detection;
pub mod draw;
pub mod fidelity;
mod identity;
pub mod judge;
pub mod ledger;
pub mod load;
pub mod optimality;
pub mod paper;
pub mod rho;
pub mod run;
pub mod scale;
mod stats;

pub use run::{Clock, Measured};

/// Which experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// [`paper`].
    Paper,
    /// [`load`].
    Load,
    /// [`scale`].
    Scale,
    /// [`ablation`].
    Ablation,
    /// [`optimality`].
    Optimality,
    /// [`fidelity`].
    Fidelity,
    /// [`rho`].
    Rho,
    /// [`detection`].
    Detection,
}

/// Most seeds of an experiment: cells are held in memory.
pub const MAX_SEEDS: u64 = 100_000;

/// Everything that a user can choose about an experiment; together with the cells' specifications it is what must not be mixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Which experiment.
    pub preset: Name,
    /// The form that ends within a minute.
    pub small: bool,
    /// Seeds 0, 1, 2, … below this; the preset's own number if `None`.
    pub seeds: Option<u64>,
    /// ρ of `detection`.
    pub rho: f64,
    /// What slow means, in `detection` and `rho`.
    pub rule: Test,
    /// Fabrics of `detection` and `rho`; all if empty.
    pub fabrics: Vec<Fabric>,
    /// Where a fabric file (Lingjun's `topo.csv`) for `scale` lies. No part of what results are of: the cells hold the file's hash.
    #[serde(skip)]
    pub topology: Option<String>,
}

impl Settings {
    /// An experiment as its preset defines it.
    #[must_use]
    pub fn new(preset: Name) -> Self {
        Self {
            preset,
            small: false,
            seeds: None,
            rho: 0.2,
            rule: Test::Work,
            fabrics: Vec::new(),
            topology: None,
        }
    }

    /// Seeds: what was asked for, else `full` or, in the small form, `small`.
    #[must_use]
    pub fn seeds(&self, full: u64, small: u64) -> u64 {
        self.seeds.unwrap_or(if self.small { small } else { full })
    }

    /// Refuses what no flag lets through: settings may come from a file.
    ///
    /// # Errors
    /// [`EvaluateError::Setting`] names what may stand there.
    pub fn check(&self) -> Result<(), EvaluateError> {
        if let Some(seeds) = self.seeds.filter(|seeds| !(1..=MAX_SEEDS).contains(seeds)) {
            let (name, value, allowed) = ("seeds", seeds.to_string(), format!("1 to {MAX_SEEDS}"));
            return Err(EvaluateError::Setting { name, value, allowed });
        }
        if !(self.rho > 0.0 && self.rho < 1.0) {
            let (name, value) = ("rho", self.rho.to_string());
            let allowed = "a share above 0 and below 1".to_owned();
            return Err(EvaluateError::Setting { name, value, allowed });
        }
        Ok(())
    }
}

/// One independent part of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Unique and readable; results are joined by it.
    pub name: String,
    /// Everything that matters to the result; the preset reads it back.
    pub spec: Value,
}

impl Cell {
    /// A cell from a preset's own specification.
    ///
    /// # Errors
    /// A specification that JSON cannot hold.
    pub fn new(name: String, spec: &impl Serialize) -> Result<Self, EvaluateError> {
        Ok(Self { name, spec: serde_json::to_value(spec)? })
    }

    fn spec<S: DeserializeOwned>(&self) -> Result<S, EvaluateError> {
        Ok(serde_json::from_value(self.spec.clone())?)
    }
}

/// What an experiment came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Where the figures come from: `fluid` or `packet` simulation.
    pub source: &'static str,
    /// Seeds that were used.
    pub seeds: u64,
    /// The preset's own rows, for programs.
    pub rows: Value,
    /// For people.
    pub page: Page,
}

/// An experiment: one file each.
pub trait Preset: Sync {
    /// Its cells, always the same ones in the same order.
    ///
    /// # Errors
    /// An input that cannot be read, sizes that no fabric has.
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError>;

    /// Measures one cell. Deterministic in the specification but for [`Measured::times`].
    ///
    /// # Errors
    /// What could not be built or did not end.
    fn measure(&self, cell: &Cell, clock: &Clock<'_>) -> Result<Measured, EvaluateError>;

    /// Sums up the results of all cells, in the order of [`Self::cells`].
    ///
    /// # Errors
    /// A result that does not read as this preset's.
    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError>;

    /// Whether cells must run one after the other because their times are measured.
    fn alone(&self) -> bool {
        false
    }
}

/// The preset that settings name.
///
/// # Errors
/// Settings out of range; a fabric file that cannot be read.
pub fn preset(settings: &Settings) -> Result<Box<dyn Preset>, EvaluateError> {
    settings.check()?;
    Ok(match settings.preset {
        Name::Paper => Box::new(paper::Paper::new(settings)),
        Name::Load => Box::new(load::Load::new(settings)),
        Name::Scale => Box::new(scale::Scale::new(settings)?),
        Name::Ablation => Box::new(ablation::Ablation::new(settings)),
        Name::Optimality => Box::new(optimality::Optimality::new(settings)),
        Name::Fidelity => Box::new(fidelity::Fidelity::new(settings)?),
        Name::Rho => Box::new(rho::Rho::new(settings)?),
        Name::Detection => Box::new(detection::Detection::new(settings)?),
    })
}

/// Specifications and results of a preset, in the order of the cells.
fn read<S: DeserializeOwned, R: DeserializeOwned>(
    results: &[(Cell, Value)],
) -> Result<Vec<(S, R)>, EvaluateError> {
    let one = |(cell, result): &(Cell, Value)| {
        Ok((cell.spec()?, serde_json::from_value(result.clone())?))
    };
    results.iter().map(one).collect()
}

/// The name of a value as JSON writes it.
pub(crate) fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Why an experiment has no result.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    /// A value that JSON cannot hold, or a result that is no result of this preset.
    #[error("a specification or result cannot be read as JSON of this preset: {0}")]
    Json(#[from] serde_json::Error),
    /// A cell has no result; [`run::run`] says which.
    #[error("cell '{cell}': {reason}")]
    Cell {
        /// The cell.
        cell: String,
        /// Why.
        reason: Box<EvaluateError>,
    },
    /// Jobs, fabric or plan of a cell cannot be made.
    #[error("{0}")]
    Case(String),
    /// A packet simulation broke off.
    #[error("{0}")]
    Run(Box<crate::sim::run::RunError>),
    /// A figure that is no finite number: JSON could not hold it.
    #[error("{what} is {value}; a figure must be a finite number")]
    Figure {
        /// Which.
        what: String,
        /// What it is.
        value: f64,
    },
    /// A setting out of range, from a file.
    #[error("{name} = {value} is out of range; it may be {allowed}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        allowed: String,
    },
    /// The compiled program cannot be used.
    #[error("the built-in P4 program: {0}")]
    Program(String),
    /// A file cannot be read.
    #[error("cannot read {file}: {reason}; give the path of Lingjun's topo.csv with --topology")]
    File {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// Results cannot be kept or put together.
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
}

/// Refuses a figure that is no finite number.
fn finite(what: impl Into<String>, value: f64) -> Result<(), EvaluateError> {
    if value.is_finite() {
        return Ok(());
    }
    Err(EvaluateError::Figure { what: what.into(), value })
}
