//! The command line: one file per command, each thin.
//!
//! In: arguments, files. Out: text or JSON on standard output, progress and errors on standard error, an [`Exit`]. Must not
//! know how anything is decided: it calls the library and prints values.
//!
//! Habits kept everywhere: `-o json` is stable and documented, tables are for people; progress goes to standard error only;
//! a closed pipe is success; errors say what, where, why and what to do.

use crate::solver::{Effort, Objective, ring_order};
use crate::workload::scenario::{self, Scenario};
use anyhow::Context as _;
use clap::{Parser, Subcommand};
use std::io::{IsTerminal as _, Write};
use std::path::Path;

pub mod controller;
pub mod counter;
pub mod demo;
pub mod evaluate;
pub mod exit;
pub mod fabric;
pub mod flags;
mod grid;
pub mod import;
pub mod job;
pub mod p4info;
pub mod plan;
pub mod process;
pub mod register;
mod select;
pub mod simtest;
pub mod stf;
pub mod switch;
pub mod table;
pub mod target;
pub mod worker;

pub use exit::Exit;

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// A table for people.
    #[default]
    Table,
    /// JSON for programs; its keys are documented in `docs/cli.md` and stable.
    Json,
}

/// Schedules Ring-AllReduce traffic of many training jobs on P4 switches.
#[derive(Debug, Parser)]
#[command(name = "ringpath", version, about, propagate_version = true, after_help = AFTER_HELP)]
pub struct Cli {
    /// Log filter, as in `info` or `ringpath::controller=debug`; logs go to standard error.
    #[arg(long, global = true, env = "RINGPATH_LOG", default_value = "warn")]
    pub log: String,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "Examples:
  ringpath demo                       compare policies on an embedded fabric of P4 switches
  ringpath plan examples/scenarios/default.toml --solver joint -o json
  ringpath simtest --seeds 200        run the controller against faults
  ringpath switch basic.json --p4info basic.p4info.txtpb
  ringpath stf basic.json basic.stf   packet tests of a P4 program
  ringpath table show ipv4_lpm        entries of any P4Runtime switch

Exit codes: 0 done, 1 failed, 2 wrong use, 3 a check said no.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run several jobs on an embedded leaf-spine fabric of P4 switches and compare policies.
    Demo(demo::Args),
    /// Run an experiment of the documentation over many seeds.
    Evaluate(evaluate::Args),
    /// Plan a scenario offline: paths, queues, bounds and the gap to them.
    Plan(plan::Args),
    /// Run the controller against embedded switches with faults, and check invariants after every event.
    Simtest(simtest::Args),
    /// Run the embedded P4 switch as a process that serves P4Runtime; takes simple_switch_grpc's flags.
    Switch(switch::Args),
    /// Run packet tests (p4c's STF) of a P4 program on the embedded switch.
    Stf(stf::Args),
    /// Show what a scenario file comes to: addresses, ports, cables, jobs, events.
    Fabric(fabric::Args),
    /// Turn logs of training jobs into parts of a scenario file.
    Import(import::Args),
    /// Run the controller for switches that are there already.
    Controller(controller::Args),
    /// Submit, list and cancel jobs at a running controller.
    Job(job::Args),
    /// Run one rank of a synthetic training job on this host, over TCP.
    Worker(worker::Args),
    /// Look at the program of a switch, or at a P4Info file.
    P4info(p4info::Args),
    /// Look at tables and entries of any P4Runtime switch.
    Table(table::Args),
    /// Look at registers of any P4Runtime switch that offers them.
    Register(register::Args),
    /// Look at counters of any P4Runtime switch.
    Counter(counter::Args),
}

/// Parses the process's arguments and runs; called by `main` only.
#[must_use]
pub fn main() -> std::process::ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let wrong_use = error.use_stderr();
            // Help and version are answers, not errors. A closed pipe while printing them is nobody's problem.
            let _ = error.print();
            return if wrong_use { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    let result = init_logs(&cli.log).and_then(|()| run(cli.command, &mut stdout));
    let result = result.and_then(|exit| Ok(stdout.flush().map(|()| exit)?));
    match result {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_closed_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            let exit = exit::of(&error);
            // Standard error itself may be closed; then the exit code has to do.
            let _ = writeln!(std::io::stderr(), "error: {}", exit::chain(&error));
            exit.into()
        }
    }
}

/// Runs one command, writing its result to `out`.
///
/// # Errors
/// Whatever the command reports, with the chain of causes.
pub fn run(command: Command, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Evaluate(args) => evaluate::run(&args, out),
        Command::Plan(args) => plan::run(&args, out),
        Command::Simtest(args) => simtest::run(&args, out),
        Command::Switch(args) => switch::run(&args, out),
        Command::Stf(args) => stf::run(&args, out),
        Command::Fabric(args) => fabric::run(&args, out),
        Command::Import(args) => import::run(&args, out),
        Command::Controller(args) => controller::run(&args, out),
        Command::Job(args) => job::run(&args, out),
        Command::Worker(args) => worker::run(&args, out),
        Command::P4info(args) => p4info::run(&args, out),
        Command::Table(args) => table::run(&args, out),
        Command::Register(args) => register::run(&args, out),
        Command::Counter(args) => counter::run(&args, out),
    }
}

/// A scenario file; `seed` draws what it leaves open, else the file's own.
///
/// # Errors
/// The file cannot be read or means nothing, by line and column.
fn scenario(path: &Path, seed: Option<u64>) -> anyhow::Result<Scenario> {
    let mut scenario = scenario::read(path, seed)?;
    let ground = ring_order::Ground {
        topology: &scenario.topology,
        max_paths: scenario.max_paths,
        levels: scenario.levels(),
    };
    let effort = Effort {
        seed: scenario.seed,
        max_evaluations: 1,
        stop: &|| false,
        objective: Objective::default(),
        phases: RING_ORDER_PHASES,
    };
    scenario.jobs = ring_order::arrange(&ground, &scenario.jobs, &scenario.any_order, &effort)
        .with_context(|| format!("{}: no order of its free rings can be chosen", path.display()))?;
    Ok(scenario)
}

/// Start phases that ring orders are compared on.
const RING_ORDER_PHASES: u32 = 3;

/// A number on the command line, refused in words; for clap's `value_parser`.
fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is no number from 0 to {}; write for example 1", u64::MAX))
}

fn init_logs(filter: &str) -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter).map_err(|error| {
        exit::usage(format!("--log '{filter}': {error}; write for example 'info'"))
    })?;
    // A second subscriber in one process (tests) keeps the first one.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
    Ok(())
}
