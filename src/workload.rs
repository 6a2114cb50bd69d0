//! Jobs and what they send.
//!
//! In: a scenario file or an importer. Out: [`Job`]s and, per job, its [`Flow`]s (one per ring edge and channel).
//! Must not know: paths, queues, plans, P4, the simulator.
//!
//! Ring-AllReduce over n ranks moves `2(n-1)/n * S` bytes over every ring edge in each iteration, S being the gradient
//! bytes of one replica (Patarasuk & Yuan 2009); edges between two ranks on one host use no network.

use crate::id::{FlowId, HostId, JobId};
use crate::time::Span;
use crate::topology::FlowKey;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

mod flows;
pub mod import;
pub mod models;
pub mod place;
pub mod scenario;

pub use flows::{FlowError, ROCE_PORT, Transport, edge_bytes, flows, ring_flows, ring_flows_over};
pub use scenario::{Event, EventKind, Scenario, ScenarioError};

/// One data-parallel training job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Index in order of submission.
    pub id: JobId,
    /// Unique name.
    pub name: String,
    /// Name in the model table, or `custom`.
    pub model: String,
    /// Hosts in ring order; a host appears once (its GPUs reduce inside the host first).
    pub ranks: Vec<HostId>,
    /// GPUs of the job on each host; weighs the job in GPU utilisation.
    pub gpus_per_rank: u32,
    /// Gradient bytes S of one replica, all-reduced in every iteration.
    pub gradient: Bytes,
    /// Compute time of one iteration without communication.
    pub compute: Span,
    /// Share of `compute` that may overlap with communication, 0..=1: communication starts when
    /// `(1 - overlap) * compute` has passed, the iteration ends when both are done.
    pub overlap: f64,
    /// Standard deviation of compute per iteration, relative to `compute` (0.03 = 3 %).
    pub jitter: f64,
    /// Iterations to run to completion.
    pub iterations: u32,
    /// When the first iteration starts, after the start of the run.
    pub start: Span,
    /// Channels (parallel rings over the same ranks), each carrying an equal share; at least 1.
    pub channels: u16,
}

/// One ring edge of one channel: what `solver` places and `pipeline` classifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Index over all flows of all jobs.
    pub id: FlowId,
    /// Its job.
    pub job: JobId,
    /// Channel, from 0.
    pub channel: u16,
    /// Ring edge: from `ranks[edge]` to `ranks[(edge + 1) % n]`.
    pub edge: u16,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Bytes per iteration: `2(n-1)/n * S / channels`, rounded up.
    pub bytes: u64,
    /// Data direction as the switches see it.
    pub key: FlowKey,
    /// Reverse direction (ACK, NAK, CNP).
    pub reverse: FlowKey,
}
