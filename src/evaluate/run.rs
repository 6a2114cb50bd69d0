//! Runs cells on all cores and hands each result on as soon as it is there.
//!
//! In: cells, a preset, a clock. Out: results, in whatever order they come. Must not know: files, progress bars.

use super::{Cell, EvaluateError, Preset};
use crate::time::Span;
use rayon::prelude::*;
use serde_json::Value;
use std::sync::Mutex;

/// Time since some fixed instant, for presets that measure how long planning takes.
pub type Clock<'a> = dyn Fn() -> Span + Sync + 'a;

/// What a cell measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Its result: the same on every machine.
    pub result: Value,
    /// Seconds that parts of it took on this machine, by name. Kept apart because they differ from run to run.
    pub times: Vec<(String, f64)>,
}

/// A part `index` of `count` equal parts of the cells, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shard {
    /// Which.
    pub index: usize,
    /// Of how many.
    pub count: usize,
}

impl Shard {
    /// All cells.
    pub const WHOLE: Self = Self { index: 0, count: 1 };

    /// Whether a cell belongs to it. Neighbours go to different shards: they are alike in size.
    #[must_use]
    pub fn holds(self, cell: usize) -> bool {
        cell % self.count.max(1) == self.index
    }
}

/// Runs cells. `keep` is called from one thread at a time, once per finished cell.
///
/// # Errors
/// The first failure; cells that are under way are still kept, others are not begun.
pub fn run(
    preset: &dyn Preset,
    cells: &[(usize, &Cell)],
    clock: &Clock<'_>,
    keep: &mut (dyn FnMut(usize, &Cell, Measured) -> Result<(), EvaluateError> + Send),
) -> Result<(), EvaluateError> {
    if preset.alone() {
        return cells.iter().try_for_each(|&(index, cell)| {
            let measured = preset.measure(cell, clock)?;
            keep(index, cell, measured)
        });
    }
    let keep = Mutex::new(keep);
    // Few cells per task: neighbours differ in size by a factor of ten and the last ones should not run alone.
    cells.par_iter().with_max_len(1).try_for_each(|&(index, cell)| {
        let measured = preset.measure(cell, clock)?;
        let mut keep = keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        keep(index, cell, measured)
    })
}
