//! Preset `paper`: every policy on a grid of fabrics and loads.
//!
//! In: nothing but a size. Out: 40 configurations of 20 seeds each (small form: 4 of 2). Must not know: results; the grid and what is
//! shown of it were fixed before any was seen, and nothing is averaged over configurations.
//!
//! Fabrics 4x4x4 and 8x4x8 (leaves x spines x hosts per leaf) at 1:1, 2:1 and 4:1, cut by fewer spines and by narrower cables; one and
//! two jobs per network interface; hosts at 25 and 100 Gb/s. Jobs as in [`super::draw`], rings of 2, 4, 4, 8 hosts (and 16 on the larger
//! fabric) on drawn hosts in sorted order, 90 % of the places taken. Plans see four draws of start phases and compute times; [`super::judge`] looks at two other draws over 40 longest periods after 8.

use super::compare::{Comparison, Entrant, Protocol, Spec, measure};
use super::draw::{Case, Fabric};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary};
use crate::solver::{Objective, policy};
use crate::workload::place::RingOrder;
use serde_json::Value;

mod tables;

/// Seeds per configuration.
pub const SEEDS: u64 = 20;
/// Seeds per configuration of the small form.
const SMALL_SEEDS: u64 = 2;
/// Places taken, in per cent.
pub(super) const FULL_PERCENT: u32 = 90;

/// Search of `joint` per plan, and draws. The evaluations are chosen so that the whole grid takes about forty minutes on one core;
/// more make `joint` better.
pub const PROTOCOL: Protocol = Protocol { evaluations: 1_000, planning_draws: 4, judging_draws: 2 };

/// See the module.
pub struct Paper {
    seeds: u64,
    small: bool,
}

impl Paper {
    /// The preset in a size.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { seeds: settings.seeds(SEEDS, SMALL_SEEDS), small: settings.small }
    }
}

/// Every policy but the ablations of `joint`, and `joint` with the two objectives that its default joins.
#[must_use]
pub fn entrants() -> Vec<Entrant> {
    let whole = |name: &&str| !name.starts_with("joint-");
    let mut all: Vec<Entrant> =
        policy::names().into_iter().filter(whole).map(Entrant::of).collect();
    for objective in [Objective::Comm, Objective::Utilisation] {
        all.push(Entrant { policy: "joint".to_owned(), objective });
    }
    all
}

/// Fabrics of the grid, with the sizes of rings on each.
#[must_use]
pub fn fabrics() -> Vec<(Fabric, Vec<usize>)> {
    let mut all = Vec::new();
    let shapes = [((4, 4, 4), vec![2, 4, 4, 8]), ((8, 4, 8), vec![2, 4, 4, 8, 16])];
    for ((leaves, spines, hosts_per_leaf), sizes) in shapes {
        for (oversubscription, thin) in [(1, false), (2, false), (4, false), (2, true), (4, true)] {
            for gbps in [25, 100] {
                let fabric =
                    Fabric { leaves, spines, hosts_per_leaf, oversubscription, thin, gbps };
                all.push((fabric, sizes.clone()));
            }
        }
    }
    all
}

/// Configurations: cases without their seeds.
fn configurations(small: bool) -> Vec<Case> {
    let mut all = Vec::new();
    for (fabric, sizes) in fabrics() {
        for jobs_per_nic in [1, 2] {
            all.push(Case {
                fabric,
                jobs_per_nic,
                full_percent: FULL_PERCENT,
                sizes: sizes.clone(),
                order: RingOrder::Sorted,
                seed: 0,
            });
        }
    }
    if small {
        all.retain(|case| {
            case.fabric.leaves == 4 && case.fabric.gbps == 25 && case.fabric.oversubscription <= 2
        });
        all.retain(|case| !case.fabric.thin);
    }
    all
}

impl Preset for Paper {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let mut cells = Vec::new();
        for configuration in configurations(self.small) {
            for seed in 0..self.seeds {
                let case = Case { seed, ..configuration.clone() };
                let name = format!("{} seed {seed}", case.name());
                let spec = Spec { case, entrants: entrants(), protocol: PROTOCOL };
                cells.push(Cell::new(name, &spec)?);
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        measure(cell)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let read = super::read::<Spec, Comparison>(results)?;
        let read: Vec<(Case, Comparison)> =
            read.into_iter().map(|(spec, result)| (spec.case, result)).collect();
        tables::summary(&read, &PROTOCOL, self.seeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Name;

    #[test]
    fn the_grid_is_the_one_that_the_documentation_names() {
        let cells = Paper::new(&Settings::new(Name::Paper)).cells().unwrap();
        assert_eq!(cells.len(), 2 * 5 * 2 * 2 * 20);
        let mut names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cells.len(), "names are unique");
        for word in ["4x4x4 1:1 25G, 1/NIC", "8x4x8 4:1 thin 100G, 2/NIC", "4x4x4 4:1 100G, 2/NIC"]
        {
            assert_eq!(names.iter().filter(|name| name.starts_with(word)).count(), 20, "{word}");
        }
        assert!(entrants().iter().any(|entrant| entrant.name() == "joint comm"));
    }
}
