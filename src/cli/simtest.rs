//! `ringpath simtest`: many small runs of the real controller against embedded switches, with faults, checked after every event.
//!
//! In: how many seeds. Out: which seeds broke which invariant, with the shortest list of faults. Exit code 3 if any did.

use super::{Exit, Format};
use crate::controller::Artifacts;
use crate::sim::harness::{Harness, Outcome};
use crate::sim::invariant;
use crate::solver::policy;
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;

/// Arguments of `ringpath simtest`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath simtest --seeds 200
  ringpath simtest --first 17 --seeds 1 -o json   look at one seed again")]
pub struct Args {
    /// Seeds to run.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub seeds: u64,
    /// The first seed.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub first: u64,
    /// Runs at a time; one per core by default.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub jobs: usize,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// The policy whose plans are installed and then shuffled: the one with the most of its own mind about paths and queues
/// that still plans at once.
const POLICY: &str = "crux";

/// Runs the seeds.
///
/// # Errors
/// If the built-in program cannot be read, or writing fails.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let artifacts = Artifacts::built_in().context("the built-in P4 program")?;
    let policy = policy::by_name(POLICY).context("no policy to plan with")?;
    let harness = Harness { artifacts, policy: Arc::new(policy), statements: invariant::all };
    let bar = ProgressBar::new(args.seeds);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {elapsed}") {
        bar.set_style(style);
    }
    let end = args.first.saturating_add(args.seeds);
    let outcomes = harness.run(args.first..end, args.jobs, &|_| bar.inc(1));
    bar.finish_and_clear();
    match args.output {
        Format::Table => table(&outcomes, out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(&outcomes))?;
            writeln!(out)?;
        }
    }
    let failed = outcomes.iter().any(|outcome| outcome.failure.is_some());
    Ok(if failed { Exit::CheckFailed } else { Exit::Done })
}

fn table(outcomes: &[Outcome], out: &mut dyn Write) -> std::io::Result<()> {
    for outcome in outcomes {
        let Some(failure) = &outcome.failure else { continue };
        writeln!(out, "seed {}: {}", outcome.seed, failure.what)?;
        writeln!(out, "  shortest list of faults: {}", failure.shortest_what)?;
        if failure.shortest.is_empty() {
            writeln!(out, "    none needed")?;
        }
        for fault in &failure.shortest {
            writeln!(out, "    {fault:?}")?;
        }
        writeln!(out, "  again: ringpath simtest --first {} --seeds 1", outcome.seed)?;
    }
    let failed = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    let faults: usize = outcomes.iter().map(|outcome| outcome.faults.len()).sum();
    writeln!(
        out,
        "{} seeds, {faults} faults, {events} events checked, {failed} seeds failed",
        outcomes.len()
    )
}

fn document(outcomes: &[Outcome]) -> serde_json::Value {
    let failures: Vec<serde_json::Value> = outcomes
        .iter()
        .filter_map(|outcome| {
            let failure = outcome.failure.as_ref()?;
            Some(json!({
                "seed": outcome.seed,
                "what": failure.what,
                "faults": outcome.faults,
                "shortest": failure.shortest,
                "shortest_what": failure.shortest_what,
            }))
        })
        .collect();
    json!({
        "seeds": outcomes.len(),
        "first": outcomes.first().map(|outcome| outcome.seed),
        "events": outcomes.iter().map(|outcome| outcome.events).sum::<u64>(),
        "faults": outcomes.iter().map(|outcome| outcome.faults.len()).sum::<usize>(),
        "failures": failures,
    })
}
