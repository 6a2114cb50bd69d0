//! How well stragglers are found, and what helping them does: one run, its verdicts and reactions, against what was done to it.
//!
//! In: a fabric, a fault, a kind of feedback, a seed. Out: a [`Trial`]; many of them in a [`Row`]. Must not know how verdicts are
//! reached. Link, victim and time are drawn from the seed alone, so runs with and without feedback meet the same fault.

mod light;
mod summary;

pub use light::light;
pub use summary::{Row, row};

use crate::controller::messages::Event as Notice;
use crate::controller::{
    Artifacts, FeedbackConfig, Planning, SharedPolicy, TelemetryConfig, TelemetryWay,
};
use crate::feedback::Mode;
use crate::id::{FlowId, HostId, JobId, LinkId};
use crate::sim::packet::Scale;
use crate::sim::run::{Options, RunError, RunSpec, assemble};
use crate::sim::wire::{DirectWire, WireKind};
use crate::sim::world::{Step, World, WorldError};
use crate::solver::{Objective, policy};
use crate::straggler::{Kind, Test};
use crate::time::{Span, Time, stream};
use crate::topology::Topology;
use crate::units::BitRate;
use crate::workload::scenario::{EventKind, Scenario, default_scenario};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fabric {
    /// Few jobs, hardly any shared link.
    Light,
    /// The default scenario: every NIC serves two jobs. Of its events only the cable that fails is left: its slow cable and its
    /// failed host would be found as well, and could not be told from wrong verdicts.
    Contended,
}

/// What is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Nothing; compute times spread by 30 %.
    Nothing,
    /// A cable between switches that some flow uses runs at a share of its rate.
    SlowLink,
    /// A host computes at a share of its speed.
    SlowHost,
    /// Another host sends to the receiver of some flow, in bursts, so much that a share of the receiver's link is left.
    Bursts,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// The compiled program.
    pub artifacts: &'a Artifacts,
    /// Where.
    pub fabric: Fabric,
    /// What.
    pub fault: Fault,
    /// What is left of the rate of the link or the speed of the host, 0 < factor <= 1.
    pub factor: f64,
    /// What the controller does about stragglers.
    pub mode: Mode,
    /// What slow means.
    pub test: Test,
    /// ρ.
    pub rho: f64,
    /// Draws jobs' hosts, jitter, victim, time.
    pub seed: u64,
}

/// What a run showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Its seed.
    pub seed: u64,
    /// What the controller did about stragglers.
    pub mode: Mode,
    /// When the fault began, seconds after the first plan was installed; none without one,
    /// also where the fault found nothing to befall.
    pub fault_s: Option<f64>,
    /// The slow cable, by names; empty without one.
    pub cable: String,
    /// Intervals from the fault to the first right verdict; none if there was none.
    pub delay_intervals: Option<f64>,
    /// Right network verdicts: of flows over the slow cable, after it became slow.
    pub right: u32,
    /// Other network verdicts.
    pub wrong: u32,
    /// Compute verdicts of flows that the slow host sends.
    pub compute_right: u32,
    /// Other compute verdicts.
    pub compute_wrong: u32,
    /// Verdicts without a known cause.
    pub unknown: u32,
    /// Flows that the plan in force when the fault was due puts below a flow of another job on a link that both use.
    pub planned_low: u32,
    /// Flows raised.
    pub raised: u32,
    /// Flows rerouted.
    pub rerouted: u32,
    /// Reactions kept.
    pub kept: u32,
    /// Reactions undone.
    pub undone: u32,
    /// Mean communication time of the jobs over the slow cable, iterations begun after the fault, ms; 0 without any.
    pub victims_ms: f64,
    /// The same of all other jobs.
    pub others_ms: f64,
}

/// Evaluations per plan: both scenarios have few flows, and the plan is not what is judged.
const MAX_EVALUATIONS: u64 = 4_000;
/// Planning phases.
const PHASES: u32 = 4;
/// Data packets of a run on the light fabric; σ follows. The contended one has the default budget.
const LIGHT_BUDGET: u64 = 200_000;
/// The fault begins within this time of the first plan.
const FAULT_AT: std::ops::Range<f64> = 1.5..3.5;
/// Spread of compute times of undisturbed runs.
const JITTER: f64 = 0.3;
/// And of the others.
const LITTLE_JITTER: f64 = 0.03;

/// Bursts of background traffic, how long each is, and how long from one to the next.
const BURSTS: u32 = 8;
/// See [`BURSTS`].
const BURST: Span = Span::from_millis(500);
/// See [`BURSTS`].
const BURST_EVERY: Span = Span::from_millis(750);

/// A fault that was placed.
struct Placed {
    at: Time,
    /// Links that are slow for flows, either direction.
    cables: Vec<LinkId>,
    host: Option<HostId>,
    victims: Vec<JobId>,
}

impl Placed {
    /// Seconds from the first plan to the fault; none if nothing was there that it could befall.
    fn began(&self, origin: Time) -> Option<f64> {
        let somewhere = !self.cables.is_empty() || self.host.is_some();
        somewhere.then(|| (self.at - origin).as_secs_f64())
    }
}

/// Runs one.
///
/// # Errors
/// As [`crate::sim::run::run`].
pub fn trial(spec: &Spec<'_>) -> Result<Trial, RunError> {
    let scenario = scenario(spec)?;
    let policies: Vec<SharedPolicy> = policy::by_name("joint")
        .map(|policy| Arc::new(policy) as SharedPolicy)
        .into_iter()
        .collect();
    let telemetry = TelemetryConfig { way: TelemetryWay::Auto, ..TelemetryConfig::default() };
    let interval = telemetry.interval;
    let options = Options {
        packet_budget: match spec.fabric {
            Fabric::Light => LIGHT_BUDGET,
            Fabric::Contended => crate::sim::packet::scale::PACKET_BUDGET,
        },
        telemetry,
        feedback: feedback(spec),
        ..Options::default()
    };
    let assembly = assemble(&RunSpec {
        scenario: &scenario,
        policies: &policies,
        policy: "joint",
        artifacts: spec.artifacts,
        wire: WireKind::Direct,
        planning: Planning {
            levels: scenario.levels(),
            max_paths: scenario.max_paths,
            max_evaluations: MAX_EVALUATIONS,
            objective: Objective::default(),
            phases: PHASES,
        },
        options,
    })?;
    let wire = DirectWire::new(&assembly.servers);
    let scale = assembly.facts.scale;
    let mut world = assembly.into_world(wire);
    let (mut placed, mut planned_low) = (None::<Placed>, None);
    world.run(&mut |world: &mut World<DirectWire>, now, _| {
        match (&placed, world.origin()) {
            (None, Some(origin)) => placed = Some(place((spec, &scenario, &scale), world, origin)),
            (Some(fault), _) if planned_low.is_none() && now >= fault.at => {
                planned_low = Some(below_others(world));
            }
            _ => {}
        }
        Ok::<(), WorldError>(())
    })?;
    let trial = report(spec, &world, placed, interval);
    Ok(Trial { planned_low: planned_low.unwrap_or_default(), ..trial })
}

fn feedback(spec: &Spec<'_>) -> FeedbackConfig {
    let mut config = FeedbackConfig::new(spec.mode, spec.rho);
    config.rule.test = spec.test;
    config
}

fn scenario(spec: &Spec<'_>) -> Result<Scenario, RunError> {
    let jitter = if spec.fault == Fault::Nothing { JITTER } else { LITTLE_JITTER };
    let mut scenario = match spec.fabric {
        Fabric::Light => light(spec.seed, jitter)?,
        Fabric::Contended => default_scenario(spec.seed)
            .map_err(|error| crate::sim::SimError::Fabric { reason: error.to_string() })?,
    };
    for job in &mut scenario.jobs {
        job.jitter = jitter;
    }
    scenario.events.retain(|event| matches!(event.kind, EventKind::LinkDown { .. }));
    Ok(scenario)
}

/// Draws the fault and puts it into the world's future.
fn place(
    (spec, scenario, scale): (&Spec<'_>, &Scenario, &Scale),
    world: &mut World<DirectWire>,
    origin: Time,
) -> Placed {
    let mut random = stream(spec.seed, "fault", 0);
    let at = origin + Span::from_secs_f64(random.random_range(FAULT_AT));
    let mut placed = Placed { at, cables: Vec::new(), host: None, victims: Vec::new() };
    match spec.fault {
        Fault::Nothing => {}
        Fault::SlowLink => {
            let fabric_links: Vec<LinkId> = world
                .core
                .goals()
                .values()
                .flat_map(|goal| goal.path.links.iter().copied())
                .filter(|link| world.topology.is_inner(*link))
                .collect();
            // The scenario's own faults have cables of their own.
            let own = |link: &LinkId| {
                scenario.events.iter().any(|event| matches!(&event.kind, EventKind::LinkDown { link: down } if same_cable(&world.topology, *down, *link)))
            };
            let fabric_links: Vec<LinkId> =
                fabric_links.into_iter().filter(|link| !own(link)).collect();
            if fabric_links.is_empty() {
                return placed;
            }
            let link = fabric_links[random.random_range(0..fabric_links.len())];
            world.schedule(at, Step::CableRate { link, share: spec.factor });
            placed.cables = vec![link];
            placed.victims = jobs_over(world, link);
        }
        Fault::Bursts => bursts(spec.factor, scale, &mut random, world, &mut placed),
        Fault::SlowHost => {
            let jobs = world.jobs();
            let job = &jobs[random.random_range(0..jobs.len())];
            let host = job.ranks[random.random_range(0..job.ranks.len())];
            placed.victims =
                jobs.iter().filter(|job| job.ranks.contains(&host)).map(|job| job.id).collect();
            world.schedule(at, Step::Pace(host, spec.factor));
            placed.host = Some(host);
        }
    }
    placed
}

/// Draws a flow of the lowest queue in use, where background traffic is, and a host that disturbs its receiver.
fn bursts(
    left: f64,
    scale: &Scale,
    random: &mut impl rand::Rng,
    world: &mut World<DirectWire>,
    placed: &mut Placed,
) {
    let goals = world.core.goals();
    let lowest = goals.values().map(|goal| goal.forward.queue).min();
    let low: Vec<FlowId> = goals
        .iter()
        .filter(|(_, goal)| Some(goal.forward.queue) == lowest)
        .map(|(flow, _)| *flow)
        .collect();
    if low.is_empty() {
        return;
    }
    let flow = low[random.random_range(0..low.len())];
    let Some((src, dst)) = world.flows().get(flow.index()).map(|flow| (flow.src, flow.dst)) else {
        return;
    };
    let topology = &world.topology;
    let away = |host: &HostId| topology.leaf_of(*host) != topology.leaf_of(dst) && *host != src;
    let others: Vec<HostId> = topology.hosts().filter(away).collect();
    if others.is_empty() {
        return;
    }
    let from = others[random.random_range(0..others.len())];
    let down = topology.downlink(dst);
    let nominal = scale.rate(topology.link(down).rate);
    let rate = BitRate((nominal.0 as f64 * (1.0 - left)) as u64);
    placed.cables = vec![down, topology.uplink(from)];
    let into = |flow: &&crate::workload::Flow| flow.dst == dst;
    placed.victims = world.flows().iter().filter(into).map(|flow| flow.job).collect();
    placed.victims.sort_unstable();
    placed.victims.dedup();
    for burst in 0..BURSTS {
        let at = placed.at + Span(BURST_EVERY.0 * u64::from(burst));
        world.schedule(at, Step::Background { from, to: dst, rate, lasts: BURST });
    }
}

/// Whether a link is one of the two directions of a cable.
fn same_cable(topology: &Topology, cable: LinkId, link: LinkId) -> bool {
    link == cable || link == topology.reverse(cable)
}

/// Flows that the plan in force puts below a flow of another job on a link that both use.
fn below_others(world: &World<DirectWire>) -> u32 {
    let job = |flow: FlowId| world.flows().get(flow.index()).map(|flow| flow.job);
    let goals = world.core.goals();
    let met = goals.iter().filter(|&(&flow, goal)| {
        goals.iter().any(|(&other, above)| {
            above.forward.queue > goal.forward.queue
                && job(other) != job(flow)
                && above.path.links.iter().any(|link| goal.path.links.contains(link))
        })
    });
    met.count() as u32
}

/// Jobs with a flow over either direction of a cable, by the plan in force.
fn jobs_over(world: &World<DirectWire>, cable: LinkId) -> Vec<JobId> {
    let over =
        |links: &[LinkId]| links.iter().any(|link| same_cable(&world.topology, cable, *link));
    let flows = world.core.goals().iter().filter(|(_, goal)| over(&goal.path.links));
    let mut jobs: Vec<JobId> =
        flows.filter_map(|(flow, _)| Some(world.flows().get(flow.index())?.job)).collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

fn report(
    spec: &Spec<'_>,
    world: &World<DirectWire>,
    placed: Option<Placed>,
    interval: Span,
) -> Trial {
    let none = Placed { at: Time::ZERO, cables: Vec::new(), host: None, victims: Vec::new() };
    let placed = placed.unwrap_or(none);
    let origin = world.origin().unwrap_or_default();
    let name = |link: LinkId| {
        let link = world.topology.link(link);
        format!("{}-{}", world.topology.node(link.from).name, world.topology.node(link.to).name)
    };
    let mut trial = Trial {
        seed: spec.seed,
        mode: spec.mode,
        fault_s: placed.began(origin),
        cable: placed.cables.first().copied().map(name).unwrap_or_default(),
        victims_ms: mean_comm(world, placed.at, &|job| placed.victims.contains(&job)),
        others_ms: mean_comm(world, placed.at, &|job| !placed.victims.contains(&job)),
        ..Trial::default()
    };
    for (at, notice) in &world.notices {
        count(&mut trial, world, &placed, (*at, notice), interval);
    }
    trial
}

fn count(
    trial: &mut Trial,
    world: &World<DirectWire>,
    placed: &Placed,
    (at, notice): (Time, &Notice),
    interval: Span,
) {
    let found = |trial: &mut Trial| {
        let delay = (at - placed.at).as_secs_f64() / interval.as_secs_f64();
        trial.delay_intervals.get_or_insert(delay);
    };
    match notice {
        Notice::StragglerFlagged { kind: Kind::Network, evidence, .. } => {
            let on_cable = |cable: &LinkId| {
                let mut suspects = evidence.suspects.iter();
                suspects.any(|suspect| same_cable(&world.topology, *cable, suspect.link))
            };
            if at > placed.at && placed.cables.iter().any(on_cable) {
                trial.right += 1;
                found(trial);
            } else {
                trial.wrong += 1;
            }
        }
        Notice::StragglerFlagged { flow, kind: Kind::Compute, .. } => {
            if at > placed.at && placed.host.is_some() && sender(world, *flow) == placed.host {
                trial.compute_right += 1;
                found(trial);
            } else {
                trial.compute_wrong += 1;
            }
        }
        Notice::StragglerFlagged { kind: Kind::Unknown, .. } => trial.unknown += 1,
        Notice::StragglerRaised { .. } => trial.raised += 1,
        Notice::StragglerRerouted { .. } => trial.rerouted += 1,
        Notice::ReactionKept { .. } => trial.kept += 1,
        Notice::ReactionUndone { .. } => trial.undone += 1,
        _ => {}
    }
}

fn sender(world: &World<DirectWire>, flow: FlowId) -> Option<HostId> {
    world.flows().get(flow.index()).map(|flow| flow.src)
}

/// Mean over jobs of the mean communication time of iterations begun after an instant, ms.
fn mean_comm(world: &World<DirectWire>, after: Time, of: &dyn Fn(JobId) -> bool) -> f64 {
    let mut means = Vec::new();
    for job in world.jobs().iter().filter(|job| of(job.id)) {
        let history = world.net.job(job.id).history().iter();
        let times: Vec<f64> = history
            .filter(|iteration| iteration.comm_start >= after)
            .map(|iteration| (iteration.comm_end - iteration.comm_start).as_secs_f64() * 1e3)
            .collect();
        if !times.is_empty() {
            means.push(times.iter().sum::<f64>() / times.len() as f64);
        }
    }
    // An empty sum is -0.
    means.iter().fold(0.0, |sum, mean| sum + mean) / means.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_finds_nothing_to_befall_has_no_time() {
        let (origin, at) = (Time::ZERO, Time::ZERO + Span::from_secs_f64(2.0));
        let nowhere = Placed { at, cables: Vec::new(), host: None, victims: Vec::new() };
        assert_eq!(nowhere.began(origin), None);
        let link = Placed { at, cables: vec![LinkId(0)], host: None, victims: Vec::new() };
        assert_eq!(link.began(origin), Some(2.0));
        let host = Placed { at, cables: Vec::new(), host: Some(HostId(0)), victims: Vec::new() };
        assert_eq!(host.began(origin), Some(2.0));
    }
}
