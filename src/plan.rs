//! The waist of the program: which path and queue each flow gets.
//!
//! In: a policy's choice. Out: a [`Plan`] that can be printed, saved, diffed, explained and checked independently.
//! Must not know: how it was found (solver), how it is installed (pipeline), what jobs are ([`Demand`] is all it needs).

use crate::id::{FlowId, HostId, JobId};
use crate::topology::Path;
use serde::{Deserialize, Serialize};

pub mod bound;
pub mod check;
pub mod diff;
pub mod drain;
mod show;

pub use check::{Violation, check};
pub use diff::{Change, Diff};
pub use show::{Explain, path_names};

/// Traffic queues a solver may use: `0..=5` of 8 (6 is kept for raised stragglers, 7 for control; docs/dataplane).
pub const CONTROL_QUEUE: u8 = 7;
/// Queue kept for flows raised by feedback.
pub const RAISED_QUEUE: u8 = 6;

/// What one flow was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The flow.
    pub flow: FlowId,
    /// Its route.
    pub path: Path,
    /// Its strict-priority queue; larger is served first.
    pub queue: u8,
    /// Why, in a few words, for `explain` and the log.
    pub reason: String,
}

/// One decision for all flows together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Grows with every plan of one controller.
    pub generation: u64,
    /// Name of the policy that made it.
    pub policy: String,
    /// One per flow, ascending by flow id; `assignments[i].flow == FlowId(i)` for dense flow ids.
    pub assignments: Vec<Assignment>,
}

/// What a flow asks of the network, as far as plans are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Whose completion the flow holds up.
    pub job: JobId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Bytes to move.
    pub bytes: u64,
}
