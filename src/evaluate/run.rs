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

impl Measured {
    /// A result without times.
    ///
    /// # Errors
    /// One that JSON cannot hold.
    pub fn of(result: &impl serde::Serialize) -> Result<Self, EvaluateError> {
        Ok(Self { result: serde_json::to_value(result)?, times: Vec::new() })
    }
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
    let measure = |cell: &Cell| {
        preset.measure(cell, clock).map_err(|reason| EvaluateError::Cell {
            cell: cell.name.clone(),
            reason: Box::new(reason),
        })
    };
    if preset.alone() {
        return cells.iter().try_for_each(|&(index, cell)| {
            let measured = measure(cell)?;
            keep(index, cell, measured)
        });
    }
    let keep = Mutex::new(keep);
    // Few cells per task: neighbours differ in size by a factor of ten and the last ones should not run alone.
    cells.par_iter().with_max_len(1).try_for_each(|&(index, cell)| {
        let measured = measure(cell)?;
        let mut keep = keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        keep(index, cell, measured)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Summary;

    struct Failing;

    impl Preset for Failing {
        fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
            Ok(Vec::new())
        }

        fn measure(&self, _: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
            Err(EvaluateError::Case("there is no room".to_owned()))
        }

        fn summarise(&self, _: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
            Err(EvaluateError::Case(String::new()))
        }
    }

    #[test]
    fn a_failure_names_its_cell_once() {
        let cell = Cell { name: "small seed 3".to_owned(), spec: Value::Null };
        let error = run(&Failing, &[(0, &cell)], &|| Span::ZERO, &mut |_, _, _| Ok(()));
        assert_eq!(error.unwrap_err().to_string(), "cell 'small seed 3': there is no room");
    }
}
