//! What a run leaves behind for a report, kept while it runs.
//!
//! In: frames put on links, waits in queues, plans, scripted steps, each with its time. Out: [`Recording`], plain values of bounded
//! size. Must not know how they are drawn. Recording draws nothing and schedules nothing: a run with it and one without have the
//! same digest (tested).

pub mod load;
pub mod plans;
pub mod waits;

pub use load::LinkLoad;
pub use plans::{Placed, PlanAt, PlanLog};
pub use waits::{QueueWaits, Waits};

use crate::controller::messages::Event as Notice;
use crate::sim::ring::Iteration;
use crate::sim::world::Step;
use crate::time::{Span, Time};
use crate::units::BitRate;
use crate::workload::Flow;

/// What the packet network records.
#[derive(Clone, Debug)]
pub struct NetTrace {
    /// Bytes per link and time.
    pub load: LinkLoad,
    /// Waits per queue.
    pub waits: QueueWaits,
}

impl NetTrace {
    /// A recorder for so many directed links and queues per port.
    #[must_use]
    pub fn new(links: usize, queues: u8) -> Self {
        Self { load: LinkLoad::new(links), waits: QueueWaits::new(queues) }
    }
}

/// Everything recorded of one run. Times are those of the run's clock; what people read counts from `origin`.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// When the first plan was in force: scenario times and the jobs' starts count from here.
    pub origin: Time,
    /// When the last job ended.
    pub end: Time,
    /// Length of a bucket of `load`.
    pub bucket: Span,
    /// Per directed link by id, bytes put on it in each bucket from `origin` on.
    pub load: Vec<Vec<u64>>,
    /// Per directed link by id, its scaled rate when undisturbed.
    pub rates: Vec<BitRate>,
    /// Waits in the egress queues of all switches, by queue number.
    pub waits: Vec<Waits>,
    /// Flows by id, those of rings that were formed during the run included.
    pub flows: Vec<Flow>,
    /// Finished iterations by job id.
    pub iterations: Vec<Vec<Iteration>>,
    /// Plans in the order in which they were made, at most [`plans::MAX_PLANS`].
    pub plans: Vec<PlanAt>,
    /// Plans made beyond that number.
    pub plans_left_out: u64,
    /// What the scenario did.
    pub steps: Vec<(Time, Step)>,
    /// What the controller told.
    pub notices: Vec<(Time, Notice)>,
}
