//! Scenario files: one experiment in one TOML file.
//!
//! In: TOML text (format in docs/scenario), the name of its file for messages, a seed. Out: a checked [`Scenario`] with
//! everything drawn from the seed and every name resolved. Must not know: plans, P4, the simulator.
//!
//! The seed draws what the file leaves open, each purpose from its own stream: hosts of jobs that give a number of
//! workers, start phases, compute spread, and times and targets of events.

use super::Job;
use crate::id::{HostId, JobId, LinkId};
use crate::time::Span;
use crate::topology::Topology;
use crate::units::BitRate;
use serde::{Deserialize, Serialize};

mod builtin;
mod draw;
mod error;
mod events;
mod fabric;
mod jobs;
mod mix;
mod read;
mod toml_reader;

pub use builtin::{contention_free_iteration, default_scenario};
pub use error::{Place, Problem, ScenarioError};
pub use jobs::{MAX_GRADIENT, MAX_SPAN};
pub use mix::populate;
pub use read::{MAX_EVENTS, MAX_FILE, MAX_JOBS, parse, read};

/// Queues of a switch port unless the file says otherwise (docs/dataplane: 0..=5 for plans, 6 raised, 7 control).
pub const DEFAULT_QUEUES: u8 = 8;
/// Queues that plans never use: raised stragglers and control traffic.
pub const RESERVED_QUEUES: u8 = 2;

/// One experiment, ready to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// For reports; the file's `name`, else its file name.
    pub name: String,
    /// The seed that drew what the file leaves open, and that later draws continue from.
    pub seed: u64,
    /// The fabric, all links up.
    pub topology: Topology,
    /// Queues of every switch port, at least 3.
    pub queues: u8,
    /// How many candidate paths per pair of leaves.
    pub max_paths: usize,
    /// Jobs by id, those that arrive later included (their `start` says when).
    pub jobs: Vec<Job>,
    /// What happens to them, ascending by time.
    pub events: Vec<Event>,
    /// Factor by which the packet simulation divides link rates and message sizes; `None`: chosen by the simulation.
    pub packet_scale: Option<u32>,
    /// Jobs that leave the order of their hosts in the ring open, ascending; `ranks` holds one order that would do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub any_order: Vec<JobId>,
    /// What was assumed or merged while reading, for the report.
    pub notes: Vec<String>,
}

impl Scenario {
    /// Queues that a plan may use: `0..levels`.
    #[must_use]
    pub fn levels(&self) -> u8 {
        self.queues.saturating_sub(RESERVED_QUEUES).max(1)
    }
}

/// Something that happens during a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, after the start of the run.
    pub at: Span,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What can happen. Links are named by one direction (the even id of the cable); both directions are meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EventKind {
    /// A host computes at `factor` of its speed.
    HostSlow {
        /// The host.
        host: HostId,
        /// Its speed, 0 < factor <= 1 (1 ends an earlier slowness).
        factor: f64,
        /// For how long; `None`: to the end.
        lasts: Option<Span>,
    },
    /// A host dies: its NIC is silent from now on.
    HostFail {
        /// The host.
        host: HostId,
    },
    /// A cable stops carrying anything, both ways.
    LinkDown {
        /// The cable.
        link: LinkId,
    },
    /// A cable works again.
    LinkUp {
        /// The cable.
        link: LinkId,
    },
    /// A cable runs at `factor` of its rate, both ways.
    LinkSlow {
        /// The cable.
        link: LinkId,
        /// Its rate, 0 < factor <= 1.
        factor: f64,
        /// For how long; `None`: to the end.
        lasts: Option<Span>,
    },
    /// Traffic of no job, unclassified: lowest queue, routed by hash.
    BackgroundFlow {
        /// Sender.
        from: HostId,
        /// Receiver.
        to: HostId,
        /// Offered rate.
        rate: BitRate,
        /// For how long; `None`: to the end.
        lasts: Option<Span>,
    },
    /// A job is submitted; its `start` is the event's time.
    JobArrival {
        /// The job.
        job: JobId,
    },
    /// A job is cancelled.
    JobDeparture {
        /// The job.
        job: JobId,
    },
    /// The controller plans afresh.
    Replan,
    /// The controller plans with another policy from now on.
    SetPolicy {
        /// Its name.
        policy: String,
    },
    /// Some flows get another candidate path and queue, drawn from the seed: exercise for orderly changes.
    MoveFlows {
        /// How many.
        count: u32,
    },
}

#[cfg(test)]
mod tests;
