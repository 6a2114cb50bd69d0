//! `ringpath demo`: the main job on one machine with nothing installed.
//!
//! In: a scenario (the default one unless a file is given) and a seed. Out: the comparison of policies, each run packet by
//! packet through its own fabric of P4 switches behind real P4Runtime servers on loopback; a timeline; a page with plots.

mod timeline;
mod trace;

use super::flags::{Goal, Help, RHO, Watch};
use super::{Exit, Format, exit};
use crate::controller::{Artifacts, FeedbackConfig, Planning, policies};
use crate::feedback::Mode;
use crate::report::demo::{Dropped, Limit, Packets, Report, Restart, Row, Straggler, Telemetry};
use crate::report::html::{About, page};
use crate::report::timeline as timelines;
use crate::report::trace::PolicyTrace;
use crate::sim::run::{self as simulated, Options, RunResult, RunSpec, contention_free, watch};
use crate::sim::trace::Recording;
use crate::sim::wire::WireKind;
use crate::solver::policy;
use crate::workload::scenario::{Scenario, default_scenario};
use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `ringpath demo`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Scenario file (TOML); the built-in default scenario otherwise.
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Draws placement, start phases, jitter and faults; the scenario file's own, or 0, by default.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Policies to compare, in this order; all of them by default.
    #[arg(long = "policy", value_name = "NAME")]
    pub policies: Vec<String>,
    /// What planning minimises.
    #[arg(long, value_enum, default_value_t = Goal::Both)]
    pub objective: Goal,
    /// How the controller reaches the switches.
    #[arg(long, value_enum, default_value_t = Reach::Grpc)]
    pub wire: Reach,
    /// What is read of the fabric and done about stragglers.
    #[command(flatten)]
    pub watch: Watch,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
    /// Where the page with plots goes.
    #[arg(long, value_name = "FILE", default_value = "ringpath-report.html")]
    pub report: PathBuf,
    /// Writes no page.
    #[arg(long, conflicts_with = "report")]
    pub no_report: bool,
}

/// One run of the comparison.
struct Run {
    name: String,
    policy: &'static str,
    feedback: Mode,
}

/// The two wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Reach {
    /// Real gRPC over loopback sockets.
    Grpc,
    /// The same servers called in process.
    Direct,
}

/// Evaluations that a plan may cost: one to two seconds of search on the default scenario.
const MAX_EVALUATIONS: u64 = 20_000;
/// Start phases assumed while planning; judging draws its own. Fewer let the search fit its plan to the phases.
const PLANNING_PHASES: u32 = 8;

/// Runs the comparison.
///
/// # Errors
/// An unreadable scenario, an unknown policy, a run that broke off (the chain names the policy and, for a wire, the switch).
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let scenario = match &args.scenario {
        Some(path) => super::scenario(path, args.seed)?,
        None => default_scenario(args.seed.unwrap_or(0)).context("the built-in scenario")?,
    };
    let runs = runs(args)?;
    let artifacts = Artifacts::built_in().context("the built-in P4 program")?;
    let shared = policies();
    let telemetry = args.watch.telemetry();
    let spec = |run: &Run| RunSpec {
        scenario: &scenario,
        policies: &shared,
        policy: run.policy,
        artifacts: &artifacts,
        wire: match args.wire {
            Reach::Grpc => WireKind::Grpc,
            Reach::Direct => WireKind::Direct,
        },
        planning: planning(args.objective, &scenario),
        // A departure only frees capacity, and a plan made anew for the rest moves flows in the middle of their steps
        // without knowing how far the remaining jobs are (docs/scheduling, "When plans are made").
        options: Options {
            telemetry,
            feedback: FeedbackConfig::new(run.feedback, args.watch.rho),
            ..Options::default()
        },
    };
    let progress = progress(runs.len());
    let results: Vec<anyhow::Result<(&str, RunResult, Recording)>> = runs
        .par_iter()
        .map(|run| {
            let name = run.name.as_str();
            let result = watch(&spec(run)).with_context(|| format!("policy {name}"));
            progress.inc(1);
            progress.set_message(format!("{name} done"));
            result.map(|(result, recording)| (name, result, recording))
        })
        .collect();
    let results = results.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let alone = contention_free(&spec(&runs[0])).context("the contention-free limit")?;
    progress.finish_and_clear();
    let traces = traces(&scenario, &results, &alone);
    let results: Vec<(&str, RunResult)> =
        results.into_iter().map(|(name, result, _)| (name, result)).collect();
    let report = report(&scenario, &results, alone);
    match args.output {
        Format::Table => {
            let items: Vec<_> =
                traces.iter().map(|run| (run.policy.as_str(), &run.timeline[..])).collect();
            write!(out, "{report}{}", timelines::text(&items))?;
        }
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)?;
        }
    }
    if !args.no_report {
        // The figures are out before anything can go wrong with the file.
        out.flush()?;
        let page = page(&report, &traces, &about(args, &scenario, &artifacts));
        std::fs::write(&args.report, page).with_context(|| {
            format!(
                "the results above are complete, but the report could not be written to {}; choose another place with --report FILE, \
                 or --no-report",
                args.report.display()
            )
        })?;
        if args.output == Format::Table {
            writeln!(out, "plots, plans and the whole timeline: {}", args.report.display())?;
        }
    }
    Ok(Exit::Done)
}

/// What the runs recorded, as plain values.
fn traces(
    scenario: &Scenario,
    results: &[(&str, RunResult, Recording)],
    alone: &BTreeMap<String, f64>,
) -> Vec<PolicyTrace> {
    let run = |(name, result, recording): &(&str, RunResult, Recording)| {
        let names = timeline::Names {
            policy: &result.policy,
            topology: &scenario.topology,
            jobs: &scenario.jobs,
            flows: &recording.flows,
        };
        PolicyTrace { policy: (*name).to_owned(), ..trace::trace(&names, recording, alone) }
    };
    results.iter().map(run).collect()
}

/// The head of the page. It is a function of what was run, not of where the page goes.
fn about(args: &Args, scenario: &Scenario, artifacts: &Artifacts) -> About {
    let mut command = String::from("ringpath demo");
    if let Some(path) = &args.scenario {
        command.push_str(&format!(" --scenario {}", quoted(&path.display().to_string())));
    }
    command.push_str(&format!(" --seed {}", scenario.seed));
    for policy in &args.policies {
        command.push_str(&format!(" --policy {}", quoted(policy)));
    }
    if args.objective != Goal::Both {
        command.push_str(&format!(" --objective {}", value_name(args.objective)));
    }
    if args.watch.feedback != Help::Best {
        command.push_str(&format!(" --feedback {}", value_name(args.watch.feedback)));
    }
    if (args.watch.rho - RHO).abs() > f64::EPSILON {
        command.push_str(&format!(" --rho {}", args.watch.rho));
    }
    if args.wire != Reach::Grpc {
        command.push_str(&format!(" --wire {}", value_name(args.wire)));
    }
    let topology = &scenario.topology;
    let rates = topology.links().iter().map(|link| link.rate);
    let (slowest, fastest) = (rates.clone().min().unwrap_or_default(), rates.max());
    let rate = match fastest {
        Some(fastest) if fastest != slowest => format!("{slowest} to {fastest}"),
        _ => slowest.to_string(),
    };
    let program = Sha256::digest(&artifacts.device_config);
    let program: String = program.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let facts = [
        ("switches", topology.switch_count().to_string()),
        ("hosts", topology.host_count().to_string()),
        ("links", rate),
        ("jobs", scenario.jobs.len().to_string()),
        ("events", scenario.events.len().to_string()),
        ("objective", value_name(args.objective)),
        ("P4 program", program.clone()),
    ];
    About {
        command,
        facts: facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        versions: format!("ringpath {}", env!("CARGO_PKG_VERSION")),
    }
}

fn value_name(value: impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// An argument as a shell wants it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The published method raises stragglers itself; `joint` runs without help and then with it.
fn runs(args: &Args) -> anyhow::Result<Vec<Run>> {
    let help = Mode::from(args.watch.feedback);
    let mut runs = Vec::new();
    for policy in policy_names(args)? {
        let feedback = match policy {
            "paper" if help != Mode::None => Mode::Raise,
            _ => Mode::None,
        };
        runs.push(Run { name: policy.to_owned(), policy, feedback });
        if policy == "joint" && help != Mode::None {
            runs.push(Run { name: "joint+feedback".into(), policy, feedback: help });
        }
    }
    Ok(runs)
}

fn policy_names(args: &Args) -> anyhow::Result<Vec<&'static str>> {
    if args.policies.is_empty() {
        return Ok(policy::COMPARED.to_vec());
    }
    args.policies
        .iter()
        .map(|name| {
            policy::by_name(name).map(crate::solver::Policy::name).ok_or_else(|| {
                exit::usage(format!(
                    "no policy is called '{name}'; choose from {}",
                    policy::names().join(", ")
                ))
            })
        })
        .collect()
}

fn planning(goal: Goal, scenario: &Scenario) -> Planning {
    Planning {
        levels: scenario.levels(),
        max_paths: scenario.max_paths,
        max_evaluations: MAX_EVALUATIONS,
        objective: goal.into(),
        phases: PLANNING_PHASES,
    }
}

fn progress(policies: usize) -> ProgressBar {
    let bar = ProgressBar::new(policies as u64);
    if let Ok(style) =
        ProgressStyle::with_template("{spinner} {pos}/{len} policies, {elapsed}: {msg}")
    {
        bar.set_style(style);
    }
    bar.set_message("building the fabric");
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn report(
    scenario: &Scenario,
    results: &[(&str, RunResult)],
    alone: BTreeMap<String, f64>,
) -> Report {
    let comm_ms_mean = alone.values().sum::<f64>() / alone.len().max(1) as f64;
    Report {
        seed: scenario.seed,
        source: "packet",
        packet_scale: results.first().map_or(1.0, |(_, result)| result.packet_scale),
        scenario: scenario.name.clone(),
        contention_free: Limit {
            comm_ms_mean,
            gpu_utilisation: utilisation_alone(scenario, &alone),
            comm_ms_per_job: alone,
        },
        switches: scenario.topology.switch_count(),
        entries_written: results.iter().map(|(_, result)| result.entries_written).sum(),
        policies: results.iter().map(|(name, result)| row(name, result)).collect(),
    }
}

/// Σ compute / Σ (ranks × period) when every job has the fabric to itself, weighted by GPUs.
fn utilisation_alone(scenario: &Scenario, alone: &BTreeMap<String, f64>) -> f64 {
    let (mut busy, mut total) = (0.0, 0.0);
    for job in &scenario.jobs {
        let weight =
            job.ranks.len() as f64 * f64::from(job.gpus_per_rank) * f64::from(job.iterations);
        let compute = job.compute.as_secs_f64();
        let comm = alone.get(&job.name).copied().unwrap_or_default() / 1e3;
        let hidden = (job.overlap * compute).min(comm);
        busy += weight * compute;
        total += weight * (compute + comm - hidden);
    }
    if total > 0.0 { busy / total } else { 0.0 }
}

fn row(name: &str, result: &RunResult) -> Row {
    let packets = &result.packets;
    Row {
        name: name.to_owned(),
        comm_ms_mean: result.comm_ms_mean,
        comm_ms_per_job: result.comm_ms_per_job.clone(),
        gpu_utilisation: result.gpu_utilisation,
        packets: Packets {
            sent: packets.sent,
            delivered: packets.delivered,
            duplicated: packets.duplicated,
            reordered: packets.reordered,
            repeated: packets.repeated,
            control_sent: packets.control_sent,
            control_delivered: packets.control_delivered,
            dropped: Dropped {
                label_miss: packets.dropped.label_miss,
                queue_full: packets.dropped.queue_full,
                link_down: packets.dropped.link_down,
                host_down: packets.dropped.host_down,
                other: packets.dropped.other,
            },
        },
        forced_flips: result.forced_flips,
        switch_passes: result.switch_passes,
        entries_written: result.entries_written,
        telemetry: Telemetry {
            way: result.telemetry.way.clone(),
            intervals: result.telemetry.intervals,
            samples: result.telemetry.totals.samples,
            missing: result.telemetry.totals.missing,
            dropped: dropped(result),
            bytes_seen: result.telemetry.totals.bytes_seen,
        },
        stragglers: result.stragglers.iter().map(straggler).collect(),
        restarts: result.restarts.iter().map(restart).collect(),
    }
}

fn straggler(found: &simulated::Straggler) -> Straggler {
    Straggler {
        job: found.job.clone(),
        flow: found.flow,
        link: found.link.clone(),
        slow_at_ms: found.slow_at_ms,
        flagged_at_ms: found.flagged_at_ms,
        raised_at_ms: found.raised_at_ms,
        kept: found.kept,
        evidence: found.evidence.clone(),
    }
}

fn restart(change: &simulated::Restart) -> Restart {
    Restart {
        job: change.job.clone(),
        cause: change.cause.clone(),
        iterations_lost: change.iterations_lost,
        duration_ms: change.duration_ms,
    }
}

/// Counts of samples that were not believed, by the names of their reasons.
fn dropped(result: &RunResult) -> BTreeMap<String, u64> {
    let reasons = result.telemetry.totals.dropped.iter();
    reasons.map(|(reason, count)| (reason.to_string(), *count)).collect()
}
