//! `ringpath plan`: solves a scenario offline.
//!
//! In: a scenario file (or a fabric file with jobs placed on it), a solver, a seed. Out: the plan with its score, lower
//! bounds and the gap, as tables or as the JSON of [`document`]. Every plan passes the independent checker first.

use super::flags::Goal;
use super::{Exit, Format, exit};
use crate::plan::check;
use crate::solver::{Effort, InForce, Problem, policy};
use crate::topology::import::{Imported, Lingjun, P4Utils, lingjun, p4utils};
use crate::topology::suggest::hint;
use crate::topology::{LinkState, Path as Route, Paths, Topology};
use crate::units::BitRate;
use crate::workload::scenario::{EventKind, Scenario, default_scenario, populate};
use crate::workload::{Flow, flows};
use anyhow::Context as _;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub mod document;
pub mod figures;
mod tables;

/// Arguments of `ringpath plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath plan examples/scenarios/default.toml
  ringpath plan examples/scenarios/default.toml --solver crux --seed 3 -o json
  ringpath plan --topology-csv topo.csv --jobs 64 --solver least-loaded
  ringpath plan examples/scenarios/small.toml --explain 3")]
pub struct Args {
    /// Scenario file (TOML); the built-in default scenario if neither it nor a fabric file is given.
    #[arg(value_name = "SCENARIO", conflicts_with_all = ["topology_csv", "topology_json"])]
    pub scenario: Option<PathBuf>,
    /// Fabric as a Lingjun `topo.csv` (columns ip,DSW,PSW,ASW); jobs are placed on it.
    #[arg(long, value_name = "FILE", conflicts_with = "topology_json")]
    pub topology_csv: Option<PathBuf>,
    /// Fabric as a p4-utils `topology.json`; jobs are placed on it.
    #[arg(long, value_name = "FILE")]
    pub topology_json: Option<PathBuf>,
    /// Jobs to place on a fabric file.
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub jobs: u32,
    /// Jobs that may share a host of a fabric file.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs_per_host: u32,
    /// Rate of host links that a fabric file does not give.
    #[arg(long, value_name = "RATE")]
    pub host_link: Option<BitRate>,
    /// Rate of links between switches that a fabric file does not give.
    #[arg(long, value_name = "RATE")]
    pub fabric_link: Option<BitRate>,
    /// Parallel links of each rack in a `topo.csv`, which does not say.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub uplinks: Option<u32>,
    /// Merge parallel links of a `topo.csv` into one instead of giving each a switch of its own.
    #[arg(long)]
    pub merge_parallel: bool,
    /// Policy that plans.
    #[arg(long, value_name = "NAME", default_value = "joint")]
    pub solver: String,
    /// Draws what the scenario leaves open, and the solver's random choices. Default: the scenario's seed.
    #[arg(long)]
    pub seed: Option<u64>,
    /// What is minimised (utilisation is maximised).
    #[arg(long, value_enum, default_value_t = Goal::Both)]
    pub objective: Goal,
    /// Simulated evaluations that the solver may use. Default: fewer for more flows, so that a plan takes seconds.
    #[arg(long, value_name = "N")]
    pub evaluations: Option<u64>,
    /// Stop searching after this long, such as 2s. The result then depends on the machine's speed.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<crate::time::Span>,
    /// Print only why this flow got its path and queue, and whom it meets.
    #[arg(long, value_name = "FLOW")]
    pub explain: Option<u32>,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Simulated evaluations times flows when none are asked for: about two seconds on two cores.
const EVALUATION_BUDGET: u64 = 160_000;
/// Fewest evaluations by default, so that large problems are still improved a little.
const FEWEST_EVALUATIONS: u64 = 50;
/// Start phases that a plan is scored on.
const PHASES: u32 = 4;
/// Largest fabric file read.
const MAX_FABRIC_FILE: u64 = 64 << 20;

/// A scenario with its flows and their candidate paths.
pub struct Case {
    /// Fabric, jobs, events.
    pub scenario: Scenario,
    /// Links that are down or slow from the start.
    pub links: LinkState,
    /// The fabric with these links.
    pub topology: Topology,
    /// All flows.
    pub flows: Vec<Flow>,
    /// Candidate paths of each flow.
    pub paths: Vec<Vec<Route>>,
}

impl Case {
    /// Finds flows and paths. Events at 0 s that fail or slow a link are in force; later ones are no part of a plan.
    ///
    /// # Errors
    /// Rings that make no sense, or failed links that cut hosts apart.
    pub fn new(scenario: Scenario) -> anyhow::Result<Self> {
        let mut links = LinkState::default();
        for event in scenario.events.iter().filter(|event| event.at.0 == 0) {
            let both = |link| [link, scenario.topology.reverse(link)];
            match event.kind {
                EventKind::LinkDown { link } => links.failed.insert_cable(&scenario.topology, link),
                EventKind::LinkUp { link } => links.failed.remove_cable(&scenario.topology, link),
                EventKind::LinkSlow { link, factor, .. } => {
                    links.factor.extend(both(link).map(|link| (link, factor)));
                }
                _ => {}
            }
        }
        let topology = links.apply(&scenario.topology);
        let flows = flows(&topology, &scenario.jobs)?;
        let all = Paths::build(&topology, &links.failed, scenario.max_paths)?;
        let paths =
            flows.iter().map(|flow| all.candidates(&topology, flow.src, flow.dst)).collect();
        Ok(Self { scenario, links, topology, flows, paths })
    }

    /// What the solver sees.
    #[must_use]
    pub fn problem(&self) -> Problem<'_> {
        Problem {
            topology: &self.topology,
            jobs: &self.scenario.jobs,
            flows: &self.flows,
            paths: &self.paths,
            levels: self.scenario.levels(),
            in_force: InForce::default(),
        }
    }
}

/// Solves and prints.
///
/// # Errors
/// An unreadable scenario or fabric, an unknown solver or flow.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let solver = policy::by_name(&args.solver).ok_or_else(|| {
        let names = policy::names();
        let hint = hint(&args.solver, names.iter().copied());
        let (written, known) = (&args.solver, names.join(", "));
        exit::usage(format!(
            "--solver '{written}': there is no such policy{hint}; policies: {known}"
        ))
    })?;
    let scenario = scenario(args)?;
    for note in &scenario.notes {
        tracing::info!("{note}");
    }
    let case = Case::new(scenario)?;
    let problem = case.problem();
    let stop = deadline(args.budget);
    let per_flow = EVALUATION_BUDGET / (case.flows.len() as u64).max(1);
    let effort = Effort {
        seed: case.scenario.seed,
        max_evaluations: args.evaluations.unwrap_or(per_flow.max(FEWEST_EVALUATIONS)),
        stop: &stop,
        objective: args.objective.into(),
        phases: PHASES,
    };
    let plan = solver.plan(&problem, &effort);
    let demands = figures::demands(&case.flows);
    let violations = check(&case.topology, &case.links, &demands, problem.levels, &plan);
    if !violations.is_empty() {
        for violation in &violations {
            writeln!(out, "{violation}")?;
        }
        return Ok(Exit::CheckFailed);
    }
    if let Some(flow) = args.explain {
        let Some(explain) = plan.explain(&case.topology, crate::id::FlowId(flow)) else {
            let last = case.flows.len().saturating_sub(1);
            return Err(exit::usage(format!("--explain {flow}: the plan has flows 0 to {last}")));
        };
        write!(out, "{explain}")?;
        return Ok(Exit::Done);
    }
    let figures = figures::figures(&case, &effort, &plan)?;
    let document = document::Document::new(&case, &plan, &figures)?;
    match args.output {
        Format::Table => tables::print(&document, &case.scenario.notes, out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document)?;
            writeln!(out)?;
        }
    }
    Ok(Exit::Done)
}

fn scenario(args: &Args) -> anyhow::Result<Scenario> {
    let file = match (&args.scenario, &args.topology_csv, &args.topology_json) {
        (Some(path), ..) => return super::scenario(path, args.seed),
        (None, Some(path), _) | (None, None, Some(path)) => path,
        (None, None, None) => return Ok(default_scenario(args.seed.unwrap_or(0))?),
    };
    let fabric = if args.topology_csv.is_some() { csv(args, file)? } else { json(args, file)? };
    let name = file.display().to_string();
    Ok(populate(fabric, &name, args.jobs, args.jobs_per_host, args.seed.unwrap_or(0))?)
}

fn bytes(file: &Path) -> anyhow::Result<Vec<u8>> {
    use std::io::Read as _;
    let context = || format!("cannot read {}", file.display());
    let mut bytes = Vec::new();
    let open = std::fs::File::open(file).with_context(context)?;
    open.take(MAX_FABRIC_FILE + 1).read_to_end(&mut bytes).with_context(context)?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_FABRIC_FILE,
        "{} is larger than {MAX_FABRIC_FILE} bytes; is it the right file?",
        file.display()
    );
    Ok(bytes)
}

fn csv(args: &Args, file: &Path) -> anyhow::Result<Imported> {
    let default = Lingjun::default();
    let options = Lingjun {
        host_link: args.host_link.unwrap_or(default.host_link),
        fabric_link: args.fabric_link.unwrap_or(default.fabric_link),
        uplinks: args.uplinks.unwrap_or(default.uplinks),
        merge: args.merge_parallel,
        ..default
    };
    Ok(lingjun(&bytes(file)?, &file.display().to_string(), &options)?)
}

fn json(args: &Args, file: &Path) -> anyhow::Result<Imported> {
    let default = P4Utils::default();
    let options = P4Utils {
        host_link: args.host_link.unwrap_or(default.host_link),
        fabric_link: args.fabric_link.unwrap_or(default.fabric_link),
        ..default
    };
    Ok(p4utils(&bytes(file)?, &file.display().to_string(), &options)?)
}

/// Asked by the solver; true once the budget is used up.
fn deadline(budget: Option<crate::time::Span>) -> impl Fn() -> bool + Sync {
    #[allow(clippy::disallowed_methods)]
    // The cli turns seconds into a deadline; solvers never read a clock.
    let start = std::time::Instant::now();
    move || budget.is_some_and(|budget| start.elapsed() >= Duration::from_nanos(budget.0))
}
