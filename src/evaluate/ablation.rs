//! Preset `ablation`: what each part of `joint` is worth, and each objective.
//!
//! In: a size. Out: eight configurations of the paper's grid (4x4x4, 25 Gb/s, two jobs per interface and one, 1:1, 2:1 and 4:1), ten
//! seeds each (small form: one configuration of two seeds), with `joint` whole, with a freedom taken away, told to minimise something
//! else, with less search and with one planning draw. Must not know: results. The reaction's ablation is `rho`'s: packets show it.

use super::compare::{Comparison, Entrant, Protocol, Spec, Standing, compare};
use super::draw::{Case, Fabric};
use super::judge::Figures;
use super::paper::{FULL_PERCENT, PROTOCOL};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary};
use crate::report::evaluation::{Entry, Page, Table};
use crate::solver::Objective;
use crate::workload::place::RingOrder;
use serde::Serialize;
use serde_json::Value;

/// Seeds per configuration.
const SEEDS: u64 = 10;
/// Policies that are `joint` with a freedom taken away (`solver::policy::ablation`).
const LESS: [&str; 3] = ["joint-no-paths", "joint-job-queues", "joint-one-queue"];
/// Objectives beside the default.
const OBJECTIVES: [Objective; 6] = [
    Objective::Comm,
    Objective::Utilisation,
    Objective::Slowdown,
    Objective::Max,
    Objective::Drain,
    Objective::Static,
];
/// Less search and fewer draws than [`PROTOCOL`]: name, evaluations, draws.
pub(super) const SEARCH: [(&str, u64, u32); 3] = [
    ("joint, starts only", 1, 4),
    ("joint, a fifth of the search", 200, 4),
    ("joint, one planning draw", 1_000, 1),
];

/// See the module.
pub struct Ablation {
    seeds: u64,
    small: bool,
}

impl Ablation {
    /// The preset in a size.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { seeds: settings.seeds(SEEDS, 2), small: settings.small }
    }
}

/// What one variant is worth in one configuration.
#[derive(Serialize)]
struct Row {
    configuration: String,
    variant: String,
    seeds: usize,
    figures: Figures,
    /// Against `joint` whole.
    comm_change: f64,
    /// Against `joint` whole.
    utilisation_change: f64,
}

impl Preset for Ablation {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let mut cells = Vec::new();
        let cuts = [(1, false), (2, false), (4, false), (2, true)];
        let cuts = if self.small { &cuts[1..2] } else { &cuts[..] };
        for &(oversubscription, thin) in cuts {
            for jobs_per_nic in if self.small { 2..=2 } else { 1..=2 } {
                let fabric = Fabric {
                    leaves: 4,
                    spines: 4,
                    hosts_per_leaf: 4,
                    oversubscription,
                    thin,
                    gbps: 25,
                };
                for seed in 0..self.seeds {
                    let case = Case {
                        fabric,
                        jobs_per_nic,
                        full_percent: FULL_PERCENT,
                        sizes: vec![2, 4, 4, 8],
                        order: RingOrder::Sorted,
                        seed,
                    };
                    let name = format!("{} seed {seed}", case.name());
                    let spec = Spec { case, entrants: entrants(), protocol: PROTOCOL };
                    cells.push(Cell::new(name, &spec)?);
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let spec: Spec = cell.spec()?;
        let mut comparison = compare(&spec.case, &spec.entrants, spec.protocol)?;
        for (name, evaluations, planning_draws) in SEARCH {
            let protocol = Protocol { evaluations, planning_draws, ..spec.protocol };
            let less = compare(&spec.case, &[Entrant::of("joint")], protocol)?;
            let draws = less.standings.into_iter().flat_map(|standing| standing.draws).collect();
            comparison.standings.push(Standing { policy: name.to_owned(), draws });
        }
        Measured::of(&comparison)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let read = super::read::<Spec, Comparison>(results)?;
        let read: Vec<(String, Comparison)> =
            read.into_iter().map(|(spec, result)| (spec.case.name(), result)).collect();
        let rows: Vec<Row> = read.chunk_by(|a, b| a.0 == b.0).flat_map(rows).collect();
        let page = Page {
            title: "Ringpath evaluation: ablation".to_owned(),
            question: vec![
                "What is each freedom of joint worth, what each objective, and how much search? Judged as the preset paper is, on draws \
                 that no planner saw. least-loaded stands beside: one queue, no search."
                    .to_owned(),
            ],
            facts: vec![("source".to_owned(), "fluid simulation".to_owned())],
            charts: Vec::new(),
            tables: vec![table(&rows)],
            shown: 1,
        };
        Ok(Summary { source: "fluid", seeds: self.seeds, rows: serde_json::to_value(&rows)?, page })
    }
}

fn entrants() -> Vec<Entrant> {
    let mut all = vec![Entrant::of("joint")];
    all.extend(LESS.map(Entrant::of));
    let joint = |objective| Entrant { policy: "joint".to_owned(), objective };
    all.extend(OBJECTIVES.map(joint));
    all.push(Entrant::of("least-loaded"));
    all
}

fn rows(group: &[(String, Comparison)]) -> Vec<Row> {
    let Some((configuration, first)) = group.first() else { return Vec::new() };
    let figures = |name: &str| {
        let all: Vec<Figures> = group.iter().filter_map(|(_, result)| result.mean(name)).collect();
        Figures::mean(&all)
    };
    let whole = figures("joint");
    let row = |standing: &Standing| {
        let own = figures(&standing.policy);
        Row {
            configuration: configuration.clone(),
            variant: standing.policy.clone(),
            seeds: group.len(),
            figures: own,
            comm_change: own.comm_ms / whole.comm_ms - 1.0,
            utilisation_change: own.utilisation / whole.utilisation - 1.0,
        }
    };
    first.standings.iter().map(row).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "ablation",
        "joint with something taken away, against joint whole",
        "Means over seeds. Plus for communication is what the missing part was worth.",
        &[
            "configuration",
            "variant",
            "communication ms",
            "vs joint",
            "utilisation",
            "vs joint ",
            "slowdown",
            "largest",
            "starved",
        ],
    );
    for row in rows {
        table.rows.push(vec![
            Entry::text(&row.configuration),
            Entry::text(&row.variant),
            Entry::number(row.figures.comm_ms, 1),
            Entry::change(row.comm_change, true),
            Entry::number(row.figures.utilisation, 4),
            Entry::change(row.utilisation_change, false),
            Entry::number(row.figures.slowdown, 2),
            Entry::number(row.figures.slowdown_max, 2),
            Entry::count(u64::from(row.figures.starved)),
        ]);
    }
    table
}
