//! `ringpath evaluate`: experiments of docs/evaluation.md, each fixed before its results are seen.
//!
//! In: a preset, how to run it. Out: its tables or JSON, with `--out` also results that can be resumed and merged, CSV and a page. Must
//! not know how runs are judged.

use super::exit::usage;
use super::flags::{self, rho};
use super::grid::write;
use super::{Exit, Format};
use crate::evaluate::ledger::{self, Header, Ledger, Line};
use crate::evaluate::run::{Measured, Shard};
use crate::evaluate::{self, Cell, EvaluateError, MAX_SEEDS, Name, Preset, Settings, word};
use crate::sim::detect::Fabric;
use crate::straggler::Test;
use crate::time::Span;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

mod output;

/// Arguments of `ringpath evaluate`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    /// Put the results of shards together.
    #[command(subcommand)]
    pub merge: Option<Merge>,
    /// Which experiment.
    #[arg(long, value_enum, required = true)]
    pub preset: Option<Experiment>,
    /// The form that ends within a minute.
    #[arg(long)]
    pub small: bool,
    /// Seeds 0, 1, 2, … of each kind of run; the experiment's own number by default.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    pub seeds: Option<u64>,
    /// How far below expectation is slow, as a share; 0.2 by default (detection).
    #[arg(long, value_parser = rho)]
    pub rho: Option<f64>,
    /// What slow means, `work` by default; `ring-median` is there to compare with (detection, rho).
    #[arg(long, value_enum)]
    pub rule: Option<Rule>,
    /// Only these fabrics (detection, rho).
    #[arg(long = "fabric", value_enum)]
    pub fabrics: Vec<Where>,
    /// Lingjun's `topo.csv`, as one more fabric (scale).
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Run only part `i` of `n`, counted from 0, as in `0/8`; `merge` puts the parts together.
    #[arg(long, value_name = "I/N", value_parser = shard, requires = "out")]
    pub shard: Option<Shard>,
    /// Keep results here; cells that have one already are not run again.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Ways of putting results together.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Merge {
    /// Join the results of all shards and write the tables; refuses gaps and duplicates.
    Merge(MergeArgs),
}

/// Arguments of `ringpath evaluate merge`.
#[derive(Clone, Debug, clap::Args)]
pub struct MergeArgs {
    /// Directories that `--out` named.
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Lingjun's `topo.csv`, if the results of `scale` are also of its fabric.
    #[arg(long, value_name = "FILE")]
    pub topology: Option<PathBuf>,
    /// Write tables, page and joined results here.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// The experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Experiment {
    /// Every policy on a grid of fabrics and loads.
    Paper,
    /// Every policy from a nearly empty to a full fabric.
    Load,
    /// Plans and planning times from 10 to 10,000 flows.
    Scale,
    /// What each part of `joint` and each objective is worth.
    Ablation,
    /// How near to the enumerated optimum of small cases; seeds are cases.
    Optimality,
    /// How far estimate and fluid model are from packets.
    Fidelity,
    /// Detection and reaction for ρ from 5 to 50 %.
    Rho,
    /// Are stragglers found, does nothing happen without one, what does help give and cost (docs/feedback.md).
    Detection,
}

impl From<Experiment> for Name {
    fn from(experiment: Experiment) -> Self {
        match experiment {
            Experiment::Paper => Self::Paper,
            Experiment::Load => Self::Load,
            Experiment::Scale => Self::Scale,
            Experiment::Ablation => Self::Ablation,
            Experiment::Optimality => Self::Optimality,
            Experiment::Fidelity => Self::Fidelity,
            Experiment::Rho => Self::Rho,
            Experiment::Detection => Self::Detection,
        }
    }
}

/// What slow means for a network-limited flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rule {
    /// No link of its path was busy for long enough.
    Work,
    /// Its rate lies below the median of its ring.
    RingMedian,
}

/// The fabrics of `detection` and `rho`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Where {
    /// Few jobs, hardly any shared link.
    Light,
    /// The default scenario.
    Contended,
}

fn shard(text: &str) -> Result<Shard, String> {
    let wrong = || format!("'{text}' is no part; write for example 0/8, the first of eight");
    let (index, count) = text.split_once('/').ok_or_else(wrong)?;
    let (index, count): (usize, usize) =
        (index.parse().map_err(|_| wrong())?, count.parse().map_err(|_| wrong())?);
    if count == 0 {
        return Err("there are no 0 parts; write for example 0/8, the first of eight".to_owned());
    }
    if index >= count {
        return Err(format!(
            "part {index} of {count} does not exist; parts are 0 to {}",
            count - 1
        ));
    }
    Ok(Shard { index, count })
}

/// Runs or merges.
///
/// # Errors
/// A cell that broke off, by name; results that cannot be kept or do not belong together.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    if let Some(Merge::Merge(merge)) = &args.merge {
        return join(merge, out);
    }
    let experiment = args.preset.ok_or_else(|| usage("give --preset".to_owned()))?;
    let settings = settings(args, experiment)?;
    let preset = evaluate::preset(&settings)?;
    let cells = preset.cells()?;
    let header = Header::new(&settings, &cells);
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    let (mut ledger, done) = match &args.out {
        Some(dir) => {
            let (ledger, done) =
                Ledger::open(dir, &header, &cells, shard).map_err(EvaluateError::from)?;
            (Some(ledger), done)
        }
        None => (None, Vec::new()),
    };
    let kept = |line: Line| (line.index, Measured { result: line.result, times: line.times });
    let mut results: BTreeMap<usize, Measured> = done.into_iter().map(kept).collect();
    let wanted = |index: &usize| shard.holds(*index) && !results.contains_key(index);
    let open: Vec<(usize, &Cell)> =
        (0..cells.len()).filter(wanted).map(|index| (index, &cells[index])).collect();
    measure(preset.as_ref(), &open, &mut ledger, &mut results)?;
    if shard != Shard::WHOLE {
        let (done, of) = (results.len(), cells.len());
        let document =
            || json!({ "preset": settings.preset, "shard": shard, "done": done, "cells": of });
        write(args.output, out, document, |out| {
            writeln!(
                out,
                "{done} of {of} cells are done; 'ringpath evaluate merge' puts all parts together"
            )
        })?;
        return Ok(Exit::Done);
    }
    let results: Vec<Measured> = results.into_values().collect();
    output::write(
        &output::Done { settings, preset: preset.as_ref(), cells, results },
        args.out.as_deref(),
        args.output,
        out,
    )?;
    Ok(Exit::Done)
}

/// What the flags ask for; those that the preset does not read are refused.
fn settings(args: &Args, experiment: Experiment) -> anyhow::Result<Settings> {
    use Experiment::{Detection, Rho, Scale};
    let given: [(bool, &str, &[Experiment]); 4] = [
        (args.rho.is_some(), "--rho", &[Detection]),
        (args.rule.is_some(), "--rule", &[Detection, Rho]),
        (!args.fabrics.is_empty(), "--fabric", &[Detection, Rho]),
        (args.topology.is_some(), "--topology", &[Scale]),
    ];
    let name = |one: &Experiment| word(Name::from(*one));
    for (_, flag, readers) in given.iter().filter(|(given, ..)| *given) {
        if !readers.contains(&experiment) {
            let readers = readers.iter().map(name).collect::<Vec<_>>().join(" and ");
            let preset = name(&experiment);
            anyhow::bail!(usage(format!(
                "{flag} means nothing to the preset '{preset}', only to {readers}"
            )));
        }
    }
    let fabric = |fabric: &Where| match fabric {
        Where::Light => Fabric::Light,
        Where::Contended => Fabric::Contended,
    };
    let mut fabrics: Vec<Fabric> = args.fabrics.iter().map(fabric).collect();
    fabrics.sort_unstable();
    fabrics.dedup();
    Ok(Settings {
        small: args.small,
        seeds: args.seeds,
        rho: args.rho.unwrap_or(flags::RHO),
        rule: match args.rule.unwrap_or(Rule::Work) {
            Rule::Work => Test::Work,
            Rule::RingMedian => Test::RingMedian,
        },
        fabrics,
        topology: args.topology.as_ref().map(|path| path.display().to_string()),
        ..Settings::new(experiment.into())
    })
}

/// Runs what is open, with progress on standard error; every result is kept as soon as it is there.
fn measure(
    preset: &dyn Preset,
    open: &[(usize, &Cell)],
    ledger: &mut Option<Ledger>,
    results: &mut BTreeMap<usize, Measured>,
) -> Result<(), EvaluateError> {
    let bar = ProgressBar::new(open.len() as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{spinner} {pos}/{len} cells, {elapsed}, {eta} left")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_secs(1));
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge of the program: planning times are measured here"
    )]
    let begin = std::time::Instant::now();
    let clock = move || Span::from_secs_f64(begin.elapsed().as_secs_f64());
    let result = evaluate::run::run(preset, open, &clock, &mut |index, cell, measured| {
        if let Some(ledger) = ledger {
            ledger.add(index, cell, &measured)?;
        }
        results.insert(index, measured);
        bar.inc(1);
        Ok(())
    });
    bar.finish_and_clear();
    result
}

fn join(args: &MergeArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let header = ledger::header(&args.dirs)?;
    if args.topology.is_some() && header.settings.preset != Name::Scale {
        let preset = word(header.settings.preset);
        anyhow::bail!(usage(format!(
            "--topology means nothing to the preset '{preset}', only to scale"
        )));
    }
    let topology = args.topology.as_ref().map(|path| path.display().to_string());
    let settings = Settings { topology, ..header.settings.clone() };
    if let Some(out) = &args.out {
        ledger::apart(out, &args.dirs, &header)?;
    }
    let preset = evaluate::preset(&settings)?;
    let cells = preset.cells()?;
    let more = header.cells > cells.len() && settings.preset == Name::Scale;
    if more && settings.topology.is_none() {
        anyhow::bail!(usage(
            "these results are also of a fabric file; give Lingjun's topo.csv with --topology"
                .to_owned()
        ));
    }
    // The cells of this program, not those that the files may have been made with.
    let lines = ledger::merge(&args.dirs, &Header::new(&settings, &cells), &cells)?;
    let results =
        lines.into_iter().map(|line| Measured { result: line.result, times: line.times }).collect();
    let done = output::Done { settings, preset: preset.as_ref(), cells, results };
    if let Some(dir) = &args.out {
        output::joined(&done, dir)?;
    }
    output::write(&done, args.out.as_deref(), args.output, out)?;
    Ok(Exit::Done)
}
