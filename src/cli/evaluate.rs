//! `ringpath evaluate`: experiments of docs, each fixed before its results are seen.
//!
//! In: a preset, seeds. Out: its table or JSON (keys in `docs/cli.md`). Must not know how runs are judged.

use super::flags::{RHO, rho};
use super::{Exit, Format};
use crate::controller::Artifacts;
use crate::feedback::Mode;
use crate::sim::detect::{Fabric, Fault, Row, rows};
use crate::straggler::Test;
use anyhow::Context as _;
use comfy_table::{CellAlignment, Table};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::io::Write;

/// Arguments of `ringpath evaluate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which experiment.
    #[arg(long, value_enum)]
    pub preset: Preset,
    /// Runs of each kind, with seeds 0, 1, 2, …
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// How far below expectation is slow, as a share.
    #[arg(long, default_value_t = RHO, value_parser = rho)]
    pub rho: f64,
    /// What slow means; `ring-median` is there to compare with.
    #[arg(long, value_enum, default_value_t = Rule::Work)]
    pub rule: Rule,
    /// Only these fabrics; both by default.
    #[arg(long = "fabric", value_enum)]
    pub fabrics: Vec<Where>,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Preset {
    /// Are stragglers found, does nothing happen without one, what does help give and cost (docs/feedback.md).
    Detection,
}

/// What slow means for a network-limited flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rule {
    /// No link of its path was busy for long enough.
    Work,
    /// Its rate lies below the median of its ring.
    RingMedian,
}

/// The fabrics of `detection`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Where {
    /// Few jobs, hardly any shared link.
    Light,
    /// The default scenario.
    Contended,
}

/// What `--preset detection -o json` prints.
#[derive(Serialize)]
struct Detection {
    preset: &'static str,
    source: &'static str,
    seeds: u64,
    rho: f64,
    rule: Test,
    rows: Vec<Row>,
}

/// Runs the experiment.
///
/// # Errors
/// A run that broke off; the chain names the kind of run.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let Preset::Detection = args.preset;
    let artifacts = Artifacts::built_in().context("the built-in P4 program")?;
    let wanted = |fabric: Where| args.fabrics.is_empty() || args.fabrics.contains(&fabric);
    let fabrics = [(Where::Light, Fabric::Light), (Where::Contended, Fabric::Contended)];
    let fabrics = fabrics.into_iter().filter(|(name, _)| wanted(*name)).map(|(_, fabric)| fabric);
    let kinds: Vec<(Fabric, Fault)> = fabrics
        .flat_map(|fabric| {
            [Fault::SlowLink, Fault::Nothing, Fault::SlowHost].map(|fault| (fabric, fault))
        })
        .collect();
    let modes = [Mode::Raise, Mode::Best];
    let bar = progress(kinds.len() as u64 * args.seeds * (modes.len() as u64 + 1));
    let test = match args.rule {
        Rule::Work => Test::Work,
        Rule::RingMedian => Test::RingMedian,
    };
    let rule = (args.rho, test);
    let mut all = Vec::new();
    for kind in kinds {
        let rows = rows(&artifacts, kind, &modes, rule, 0..args.seeds, &|| bar.inc(1))
            .with_context(|| format!("fabric {:?}, fault {:?}", kind.0, kind.1))?;
        all.extend(rows);
    }
    bar.finish_and_clear();
    match args.output {
        Format::Table => writeln!(out, "{}", table(&all))?,
        Format::Json => {
            let (seeds, rho) = (args.seeds, args.rho);
            let result = Detection {
                preset: "detection",
                source: "packet",
                seeds,
                rho,
                rule: test,
                rows: all,
            };
            serde_json::to_writer_pretty(&mut *out, &result)?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Done)
}

fn progress(runs: u64) -> ProgressBar {
    let bar = ProgressBar::new(runs);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} runs, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// The name that JSON gives a value.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
    table.set_header([
        "fabric", "fault", "feedback", "low", "found", "delay", "max", "wrong", "unknown",
        "raised", "rerouted", "kept", "undone", "victims", "others",
    ]);
    let number = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
    };
    for row in rows {
        table.add_row([
            word(row.fabric),
            word(row.fault),
            word(row.feedback),
            format!("{}/{}", row.runs_with_low, row.runs),
            format!("{}/{}", row.found, row.runs),
            number(row.delay_intervals_mean, 1),
            number(row.delay_intervals_max, 1),
            row.wrong.to_string(),
            row.unknown.to_string(),
            row.raised.to_string(),
            row.rerouted.to_string(),
            row.kept.to_string(),
            row.undone.to_string(),
            number(row.victims_ratio, 3),
            number(row.others_ratio, 3),
        ]);
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
