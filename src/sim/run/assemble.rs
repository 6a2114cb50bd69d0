//! From a scenario to a world at rest.

use super::{RunError, RunSpec};
use crate::controller::config::Config;
use crate::controller::core::Core;
use crate::controller::{FeedbackConfig, Limits, ProbeConfig, TelemetryConfig, TelemetryWay};
use crate::id::{JobId, LinkId};
use crate::p4runtime::p4info::Index;
use crate::pipeline::counters::Counters;
use crate::pipeline::slots::Sizes;
use crate::pipeline::{Program, Settings};
use crate::sim::fabric::{FabricSpec, FabricSwitch, SharedServer, device_id, servers};
use crate::sim::fault::Faults;
use crate::sim::host::Recovery;
use crate::sim::packet::scale::PACKET_BUDGET;
use crate::sim::packet::{Net, Scale, ScaleInput, Setup};
use crate::sim::shuffle::Shuffle;
use crate::sim::wire::Wire;
use crate::sim::world::{Delays, Parts, Script, Step, World};
use crate::time::Span;
use crate::units::BitRate;
use crate::workload::flows;
use crate::workload::scenario::{EventKind, Scenario};
use std::sync::Arc;

/// What can be chosen beside scenario and policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How hosts recover lost packets.
    pub recovery: Recovery,
    /// Data packets that the default σ keeps to.
    pub packet_budget: u64,
    /// Packets per switch queue; `None` makes room for the windows of all flows, as lossless Ethernet does by pausing.
    pub queue_packets: Option<u32>,
    /// Whether the controller hears of jobs that finish, and plans again.
    pub report_finished: bool,
    /// What goes wrong.
    pub faults: Vec<crate::sim::fault::Fault>,
    /// Seed of jitter, clocks and control delays; the scenario's if `None`.
    pub seed: Option<u64>,
    /// Overrides how the run ends; see [`Script::wait_linger`].
    pub wait_linger: bool,
    /// What the controller reads; its `scale` is set to the run's σ.
    pub telemetry: TelemetryConfig,
    /// What the controller does about stragglers; the path's floor is set by the run's packet time.
    pub feedback: FeedbackConfig,
    /// How the controller looks at cables.
    pub probes: ProbeConfig,
    /// Switches behave like BMv2 behind PI, which refuses RegisterEntry.
    pub mimic_bmv2: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recovery: Recovery::Selective,
            packet_budget: PACKET_BUDGET,
            queue_packets: None,
            report_finished: true,
            faults: Vec::new(),
            seed: None,
            wait_linger: false,
            // Its timer never ends, so whoever waits for the end of all events turns it on knowingly.
            telemetry: TelemetryConfig { way: TelemetryWay::Off, ..TelemetryConfig::default() },
            feedback: FeedbackConfig::default(),
            probes: ProbeConfig::default(),
            mimic_bmv2: false,
        }
    }
}

/// Numbers of a run that the result repeats.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// σ.
    pub scale: Scale,
    /// Seed of the run.
    pub seed: u64,
    /// The program's counters.
    pub counters: Counters,
    /// P4Runtime device ids by switch.
    pub device_ids: Vec<u64>,
    /// When the scenario slows which cable down, ascending.
    pub slowed: Vec<(Span, LinkId)>,
}

/// A world's parts without its wire.
pub struct Assembly {
    /// The servers, for the wire.
    pub servers: Vec<SharedServer>,
    /// Numbers that the result repeats.
    pub facts: Facts,
    /// The program, for invariants.
    pub program: Program,
    net: Net<FabricSwitch>,
    core: Core,
    script: Script,
    shuffle: Vec<Arc<Shuffle>>,
    flows: Vec<crate::workload::Flow>,
    scenario: Scenario,
    faults: Faults,
    recovery: Recovery,
}

impl Assembly {
    /// The world.
    pub fn into_world<W: Wire>(self, wire: W) -> World<W> {
        World::new(Parts {
            topology: self.scenario.topology,
            jobs: self.scenario.jobs,
            flows: self.flows,
            net: self.net,
            servers: self.servers,
            wire,
            core: self.core,
            script: self.script,
            shuffle: self.shuffle,
            faults: self.faults,
            delays: Delays::default(),
            scale: self.facts.scale,
            recovery: self.recovery,
            seed: self.facts.seed,
        })
    }
}

/// Windows of this many flows fit into a queue at most; more would be a fabric far beyond packet simulation.
const MAX_QUEUE_PACKETS: u32 = 16_384;
/// BMv2's queue length, the least used.
const MIN_QUEUE_PACKETS: u32 = 64;

/// A change waits for a pause of its flow: iterations of large models last seconds at 25 Gb/s, and each has one.
const FLIP_DEADLINE: Span = Span::from_millis(10_000);

/// Builds everything but the wire.
pub fn assemble(spec: &RunSpec<'_>) -> Result<Assembly, RunError> {
    let Scenario { topology, jobs, .. } = spec.scenario;
    let flows = flows(topology, jobs)?;
    let scale = Scale::choose(&ScaleInput {
        topology,
        jobs,
        flows: &flows,
        packet_budget: spec.options.packet_budget,
        fixed: spec.scenario.packet_scale.map(f64::from),
    })?;
    let index = Index::new(spec.artifacts.p4info.clone())
        .map_err(|error| RunError::P4Info(error.to_string()))?;
    let program = Program::resolve(&index)?;
    let seed = spec.options.seed.unwrap_or(spec.scenario.seed);
    let transport = scale.transport(spec.options.recovery);
    let room = transport.window.saturating_mul(flows.len() as u32);
    let queue_packets =
        spec.options.queue_packets.unwrap_or(room.clamp(MIN_QUEUE_PACKETS, MAX_QUEUE_PACKETS));
    let fabric = FabricSpec {
        queues: spec.scenario.queues,
        queue_packets,
        seed,
        mimic_bmv2: spec.options.mimic_bmv2,
    };
    let servers = servers(&fabric, topology);
    let switches = servers.iter().cloned().map(FabricSwitch::new).collect();
    let setup = Setup {
        topology,
        jobs,
        flows: &flows,
        scale: &scale,
        recovery: spec.options.recovery,
        seed,
    };
    let net = Net::new(&setup, switches)?;
    let shuffle: Vec<Arc<Shuffle>> = spec.policies.iter().cloned().map(Shuffle::new).collect();
    let device_ids: Vec<u64> = topology.switches().map(device_id).collect();
    let mut settings = Settings::new("sim", scale.slowest_packet_time());
    settings.flip_gap = settings.flip_gap.max(Span(transport.timeout.0 / 4 * 5));
    let core = Core::new(Config {
        topology: topology.clone(),
        device_ids: device_ids.clone(),
        artifacts: spec.artifacts.clone(),
        program: program.clone(),
        settings,
        slots: Sizes::BUILT_IN,
        policies: shuffle.iter().map(|policy| policy.clone() as _).collect(),
        policy: spec.policy.to_owned(),
        planning: spec.planning,
        seed,
        force_pipeline: false,
        takeover: false,
        limits: Limits { flip_deadline: FLIP_DEADLINE, ..Limits::default() },
        telemetry: TelemetryConfig { scale: scale.sigma, ..spec.options.telemetry },
        feedback: spec.options.feedback.with_packet_time(scale.slowest_packet_time()),
        probes: spec.options.probes,
    })?;
    let telemetry_registers: Vec<u32> =
        program.cells.iter().flat_map(crate::pipeline::telemetry::Registers::ids).collect();
    let facts = Facts {
        counters: Counters::resolve(&index)?,
        scale,
        seed,
        device_ids,
        slowed: slowed(spec.scenario),
    };
    Ok(Assembly {
        servers,
        script: script(spec, &facts.scale),
        facts,
        program,
        net,
        core,
        shuffle,
        flows,
        scenario: spec.scenario.clone(),
        faults: Faults::new(spec.options.faults.clone()).about(telemetry_registers),
        recovery: spec.options.recovery,
    })
}

fn slowed(scenario: &Scenario) -> Vec<(Span, LinkId)> {
    let slow = |event: &crate::workload::Event| match event.kind {
        EventKind::LinkSlow { link, .. } => Some((event.at, link)),
        _ => None,
    };
    scenario.events.iter().filter_map(slow).collect()
}

/// The scenario's events as steps.
fn script(spec: &RunSpec<'_>, scale: &Scale) -> Script {
    let mut steps: Vec<(Span, Step)> = Vec::new();
    let mut late: Vec<JobId> = Vec::new();
    for event in &spec.scenario.events {
        let end = |lasts: &Option<Span>| lasts.map(|lasts| event.at + lasts);
        let step = match &event.kind {
            EventKind::HostSlow { host, factor, lasts } => {
                if let Some(end) = end(lasts) {
                    steps.push((end, Step::Pace(*host, 1.0)));
                }
                Step::Pace(*host, *factor)
            }
            EventKind::HostFail { host } => Step::Fail(*host),
            EventKind::LinkDown { link } => Step::Cable { link: *link, up: false },
            EventKind::LinkUp { link } => Step::Cable { link: *link, up: true },
            EventKind::LinkSlow { link, factor, lasts } => {
                if let Some(end) = end(lasts) {
                    steps.push((end, Step::CableRate { link: *link, share: 1.0 }));
                }
                Step::CableRate { link: *link, share: *factor }
            }
            EventKind::BackgroundFlow { from, to, rate, lasts } => Step::Background {
                from: *from,
                to: *to,
                rate: BitRate(scale.rate(*rate).0),
                lasts: lasts.unwrap_or(Span(crate::sim::world::MAX_VIRTUAL.0)),
            },
            EventKind::JobArrival { job } => {
                late.push(*job);
                Step::Submit(*job)
            }
            EventKind::JobDeparture { job } => Step::Cancel(*job),
            EventKind::Replan => Step::Replan,
            EventKind::SetPolicy { policy } => Step::Policy(policy.clone()),
            EventKind::MoveFlows { count } => Step::Move(*count),
        };
        steps.push((event.at, step));
    }
    steps.sort_by_key(|(at, _)| *at);
    let initial = spec.scenario.jobs.iter().map(|job| job.id);
    Script {
        initial: initial.filter(|job| !late.contains(job)).collect(),
        steps,
        report_finished: spec.options.report_finished,
        wait_linger: spec.options.wait_linger,
        ..Script::default()
    }
}
