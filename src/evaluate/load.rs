//! Preset `load`: from which load on scheduling matters, and from which on nothing helps.
//!
//! In: a size. Out: one fabric (4x4x4, 2:1 by fewer spines, 25 Gb/s) with one to three jobs per interface and a quarter to all of the
//! places taken, ten seeds each (small form: five loads of one seed). Otherwise as in [`super::paper`]. Must not know: results.

use super::compare::{Comparison, Entrant, Spec, measure};
use super::draw::{Case, Fabric};
use super::judge::Figures;
use super::paper::PROTOCOL;
use super::stats::mean;
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary};
use crate::report::evaluation::{Chart, Entry, Mark, Page, Table};
use crate::workload::place::RingOrder;
use serde::Serialize;
use serde_json::Value;

/// Seeds per load.
const SEEDS: u64 = 10;
/// Places taken, in per cent.
const FULL: [u32; 5] = [25, 50, 75, 90, 100];
/// Jobs per interface.
const PER_NIC: [u32; 3] = [1, 2, 3];
/// Who takes part.
const POLICIES: [&str; 6] = ["ecmp", "least-loaded", "sincronia", "crux", "paper", "joint"];

/// See the module.
pub struct Load {
    seeds: u64,
    per_nic: &'static [u32],
}

impl Load {
    /// The preset in a size.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let per_nic = if settings.small { &PER_NIC[1..2] } else { &PER_NIC[..] };
        Self { seeds: settings.seeds(SEEDS, 1), per_nic }
    }
}

/// One load: means over seeds.
#[derive(Serialize)]
struct Row {
    load: String,
    seeds: usize,
    jobs: f64,
    flows: f64,
    policies: Vec<(String, Figures)>,
    alone_comm_ms: f64,
    alone_utilisation: f64,
    utilisation_bound: f64,
}

impl Preset for Load {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let fabric = Fabric {
            leaves: 4,
            spines: 4,
            hosts_per_leaf: 4,
            oversubscription: 2,
            thin: false,
            gbps: 25,
        };
        let mut cells = Vec::new();
        for &jobs_per_nic in self.per_nic {
            for full_percent in FULL {
                for seed in 0..self.seeds {
                    let (sizes, order) = (vec![2, 4, 4, 8], RingOrder::Sorted);
                    let case = Case { fabric, jobs_per_nic, full_percent, sizes, order, seed };
                    let entrants = POLICIES.map(Entrant::of).into();
                    let name = format!("{} {full_percent} % seed {seed}", case.name());
                    let spec = Spec { case, entrants, protocol: PROTOCOL };
                    cells.push(Cell::new(name, &spec)?);
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        measure(cell)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let load = |(spec, comparison): (Spec, Comparison)| {
            let load = format!("{}/NIC, {} % full", spec.case.jobs_per_nic, spec.case.full_percent);
            (load, comparison)
        };
        let read: Vec<(String, Comparison)> = super::read(results)?.into_iter().map(load).collect();
        let rows: Vec<Row> = read.chunk_by(|a, b| a.0 == b.0).map(row).collect();
        let page = Page {
            title: "Ringpath evaluation: load".to_owned(),
            question: vec![
                "From which load on does scheduling matter, and from which on does nothing help? One fabric (4x4x4, 2:1 by fewer \
                 spines, 25 Gb/s), judged as the preset paper is."
                    .to_owned(),
            ],
            facts: vec![("source".to_owned(), "fluid simulation".to_owned())],
            charts: vec![chart(&rows)],
            tables: vec![table(&rows)],
            shown: 1,
        };
        Ok(Summary { source: "fluid", seeds: self.seeds, rows: serde_json::to_value(&rows)?, page })
    }
}

fn row(group: &[(String, Comparison)]) -> Row {
    let over = |of: fn(&Comparison) -> f64| mean(group.iter().map(|(_, result)| of(result)));
    let figures = |name: &str| {
        let all: Vec<Figures> = group.iter().filter_map(|(_, result)| result.mean(name)).collect();
        (name.to_owned(), Figures::mean(&all))
    };
    Row {
        load: group.first().map(|(load, _)| load.clone()).unwrap_or_default(),
        seeds: group.len(),
        jobs: over(|result| result.jobs as f64),
        flows: over(|result| result.flows as f64),
        policies: POLICIES.iter().map(|name| figures(name)).collect(),
        alone_comm_ms: over(|result| result.limits.alone_comm_ms),
        alone_utilisation: over(|result| result.limits.alone_utilisation),
        utilisation_bound: over(|result| result.limits.utilisation_bound),
    }
}

fn chart(rows: &[Row]) -> Chart {
    let points = |row: &Row| {
        let ratio = |(place, found): (usize, &(String, Figures))| {
            (place, found.1.comm_ms / row.alone_comm_ms)
        };
        (row.load.clone(), row.policies.iter().enumerate().map(ratio).collect())
    };
    Chart {
        title: "Communication time against every job alone".to_owned(),
        axis: "times alone".to_owned(),
        series: POLICIES.iter().map(|&name| name.to_owned()).collect(),
        rows: rows.iter().map(points).collect(),
        reference: 1.0,
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(
        "load",
        "Every policy at every load",
        "Means over seeds. Bound: every job alone for communication, the linear program for utilisation.",
        &[
            "load",
            "jobs",
            "policy",
            "communication ms",
            "vs crux",
            "vs least-loaded",
            "utilisation",
            "vs crux ",
            "vs least-loaded ",
            "starved",
        ],
    );
    for row in rows {
        let find = |name: &str| row.policies.iter().find(|found| found.0 == name).map(|f| f.1);
        let (Some(crux), Some(least)) = (find("crux"), find("least-loaded")) else { continue };
        for (name, own) in &row.policies {
            table.rows.push(vec![
                Entry::text(&row.load),
                Entry::number(row.jobs, 1),
                Entry::text(name),
                Entry::number(own.comm_ms, 1),
                Entry::change(own.comm_ms / crux.comm_ms - 1.0, true),
                Entry::change(own.comm_ms / least.comm_ms - 1.0, true),
                Entry::number(own.utilisation, 4),
                Entry::change(own.utilisation / crux.utilisation - 1.0, false),
                Entry::change(own.utilisation / least.utilisation - 1.0, false),
                Entry::count(u64::from(own.starved)),
            ]);
        }
        table.rows.push(vec![
            Entry::text(&row.load),
            Entry::number(row.jobs, 1),
            Entry::text("(bound)"),
            Entry::number(row.alone_comm_ms, 1),
            Entry::change(row.alone_comm_ms / crux.comm_ms - 1.0, true).marked(Mark::Plain),
            Entry::change(row.alone_comm_ms / least.comm_ms - 1.0, true).marked(Mark::Plain),
            Entry::number(row.utilisation_bound, 4),
            Entry::change(row.utilisation_bound / crux.utilisation - 1.0, false)
                .marked(Mark::Plain),
            Entry::change(row.utilisation_bound / least.utilisation - 1.0, false)
                .marked(Mark::Plain),
            Entry::nothing(),
        ]);
    }
    table
}
