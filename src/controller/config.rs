//! What a core is made with. In: artifacts, topology, policies, limits. Out: [`Config`]. Must not know inputs.

use crate::feedback::{Mode, Settings};
use crate::p4runtime::p4info::{Index, ReadError};
use crate::p4runtime::proto::p4::config::v1::P4Info;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::pipeline::Program;
use crate::pipeline::slots::Sizes;
use crate::solver::{Objective, Policy, policy};
use crate::straggler::Rule;
use crate::time::Span;
use crate::topology::Topology;
use bytes::Bytes;
use prost::Message as _;
use sha2::{Digest as _, Sha256};
use std::sync::Arc;

/// A policy that can be handed to a core.
pub type SharedPolicy = Arc<dyn Policy + Send + Sync>;

/// Every policy that there is.
#[must_use]
pub fn policies() -> Vec<SharedPolicy> {
    policy::all().into_iter().map(|policy| Arc::new(policy) as SharedPolicy).collect()
}

/// The compiled program.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// Names and ids.
    pub p4info: P4Info,
    /// The target's own form of the program (BMv2 JSON).
    pub device_config: Bytes,
}

impl Artifacts {
    /// The program of `p4/build`, which travels inside the binary, so that nothing need be installed.
    ///
    /// # Errors
    /// The committed P4Info is broken, which the tests exclude.
    pub fn built_in() -> Result<Self, ReadError> {
        let text = include_str!("../../p4/build/ringpath.p4info.txtpb");
        let device_config = include_bytes!("../../p4/build/ringpath.json");
        Ok(Self {
            p4info: Index::from_text(text)?.info().clone(),
            device_config: Bytes::from_static(device_config),
        })
    }

    /// The first 8 bytes of SHA-256(device config ‖ p4info), big-endian, which a switch keeps for us.
    #[must_use]
    pub fn cookie(&self) -> u64 {
        let mut hash = Sha256::new();
        hash.update(&self.device_config);
        hash.update(self.p4info.encode_to_vec());
        hash.finalize().iter().take(8).fold(0, |cookie, byte| cookie << 8 | u64::from(*byte))
    }

    /// The message that loads the program.
    #[must_use]
    pub fn forwarding_config(&self) -> proto::ForwardingPipelineConfig {
        proto::ForwardingPipelineConfig {
            p4info: Some(self.p4info.clone()),
            p4_device_config: self.device_config.clone(),
            cookie: Some(proto::forwarding_pipeline_config::Cookie { cookie: self.cookie() }),
        }
    }
}

/// How a core plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planning {
    /// Queues the policy may use: `0..levels`.
    pub levels: u8,
    /// Bound on candidate paths per pair of leaves.
    pub max_paths: usize,
    /// Bound on simulated evaluations per plan.
    pub max_evaluations: u64,
    /// What is minimised.
    pub objective: Objective,
    /// Start phases assumed while planning.
    pub phases: u32,
}

/// Every bound in time or number, with its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Deadline of a Write, Read or GetPipeline: far above the service time of a full batch, far below the patience of
    /// a person.
    pub call: Span,
    /// Deadline of a pipeline push, which compiles nothing but parses megabytes.
    pub push: Span,
    /// First pause before trying again what failed; doubles up to `retry_max`.
    pub retry: Span,
    /// Longest pause.
    pub retry_max: Span,
    /// A switch out of reach for so long leaves the topology.
    pub lost: Span,
    /// A flip without a gap is forced after so long.
    pub flip_deadline: Span,
    /// Pause between two looks at flips.
    pub flip_poll: Span,
    /// Two counter reads of a retired label must agree across at least so long.
    pub label_quiet: Span,
    /// Further rest of a retired label before it is removed.
    pub label_rest: Span,
    /// Updates per Write to begin with.
    pub batch: usize,
    /// Writes in flight per switch: enough to hide a round trip, few enough that an unknown outcome taints little.
    pub window: usize,
    /// Reads and writes of one key after unclear answers before it is given up.
    pub tries: u8,
    /// Jobs held at once.
    pub jobs: usize,
    /// Flows held at once: two entries each in tables of 16,384.
    pub flows: usize,
    /// Events kept in the store.
    pub log: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            call: Span::from_millis(1_000),
            push: Span::from_millis(10_000),
            retry: Span::from_millis(50),
            retry_max: Span::from_millis(8_000),
            lost: Span::from_millis(3_000),
            flip_deadline: Span::from_millis(500),
            flip_poll: Span::from_millis(50),
            label_quiet: Span::from_millis(1_000),
            label_rest: Span::from_millis(10_000),
            batch: crate::pipeline::reconcile::MAX_BATCH,
            window: 4,
            tries: 3,
            jobs: 4_096,
            flows: 100_000,
            log: 10_000,
        }
    }
}

/// How the controller reads registers (docs/telemetry.md).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TelemetryWay {
    /// By RegisterEntry where a switch offers it, by readout packets elsewhere.
    #[default]
    Auto,
    /// By packets to and from the CPU port.
    Readout,
    /// By RegisterEntry only.
    Register,
    /// Not at all.
    Off,
}

/// What the controller reads of the fabric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TelemetryConfig {
    /// How.
    pub way: TelemetryWay,
    /// Length of an interval.
    pub interval: Span,
    /// Slots read per second and switch, at most; where that is too little, the interval gets longer.
    pub rate_cap: u32,
    /// Link rates and bytes at the switches are smaller than those of the topology by this factor: the σ of the packet
    /// simulation, 1 in reality. Windows report full-size bytes.
    pub scale: f64,
    /// Tell an event per interval.
    pub report: bool,
}

impl Default for TelemetryConfig {
    /// 100 ms, as often as a person could follow and slow enough for thousands of flows; 2,000 reads per second are half of
    /// what BMv2 answers one at a time.
    fn default() -> Self {
        Self {
            way: TelemetryWay::Auto,
            interval: Span::from_millis(100),
            rate_cap: 2_000,
            scale: 1.0,
            report: false,
        }
    }
}

/// How the controller looks at the cables between switches (docs/controller.md, "Links").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeConfig {
    /// Time between two probes of one direction; longer where the budget asks for it. `None`: no probes.
    pub interval: Option<Span>,
    /// Probes per second, over all links.
    pub budget: u32,
}

impl Default for ProbeConfig {
    /// None; when there are any, a controller spends a small part of a processor on them.
    fn default() -> Self {
        Self { interval: None, budget: 20_000 }
    }
}

/// How stragglers are found and helped (docs/feedback.md). Without telemetry neither happens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FeedbackConfig {
    /// When a flow is a straggler.
    pub rule: Rule,
    /// What is done then.
    pub settings: Settings,
}

/// Packet times that a packet waits on a path where nobody holds it up: behind an acknowledgement or the last packet of
/// another at each hop.
const FLOOR_PACKETS: u64 = 2;
/// Waiting that a switch reports even when idle (BMv2 needs 7 to 26 µs from queue to queue).
const FLOOR: Span = Span::from_micros(30);

impl FeedbackConfig {
    /// A mode and ρ; everything else as documented.
    #[must_use]
    pub fn new(mode: Mode, rho: f64) -> Self {
        Self {
            rule: Rule { rho, ..Rule::default() },
            settings: Settings { mode, keep: rho / 2.0, ..Settings::default() },
        }
    }

    /// The same for a fabric where a full packet takes so long at the slowest port.
    #[must_use]
    pub fn with_packet_time(self, packet: Span) -> Self {
        let floor = FLOOR.max(Span(packet.0.saturating_mul(FLOOR_PACKETS))).as_secs_f64();
        Self { rule: Rule { floor, ..self.rule }, ..self }
    }
}

/// What a core is made with.
pub struct Config {
    /// The cabling; fixed for the life of the core.
    pub topology: Topology,
    /// P4Runtime device id of each switch, by `SwitchId`.
    pub device_ids: Vec<u64>,
    /// The compiled program.
    pub artifacts: Artifacts,
    /// The same, resolved.
    pub program: Program,
    /// Marks and thresholds.
    pub settings: crate::pipeline::Settings,
    /// Slot register sizes.
    pub slots: Sizes,
    /// Policies by name; at least one.
    pub policies: Vec<SharedPolicy>,
    /// Name of the policy in force at first.
    pub policy: String,
    /// How to plan.
    pub planning: Planning,
    /// Seed of every random choice, incarnations included.
    pub seed: u64,
    /// Replace another program on a switch without draining it first.
    pub force_pipeline: bool,
    /// Take a switch over from another live controller.
    pub takeover: bool,
    /// Time-outs and bounds.
    pub limits: Limits,
    /// What is read of the fabric.
    pub telemetry: TelemetryConfig,
    /// What is done about stragglers.
    pub feedback: FeedbackConfig,
    /// How cables are looked at.
    pub probes: ProbeConfig,
}
