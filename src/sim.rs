//! The simulator: a fabric of real P4 switches, hosts and the real controller in virtual time.
//!
//! In: a topology, jobs, a policy's plan through the controller, a seed, faults. Out: metrics, invariant verdicts, the same
//! bytes for the same seed. Must not know: the command line; and it holds no second copy of any decision: the controller's
//! core, the P4Runtime server and the switches are the ones that run outside.
//!
//! The clock is the event [`queue`]; hosts, switches and the core run only inside event handlers (docs/architecture).

pub mod detect;
pub mod fabric;
pub mod fault;
pub mod harness;
pub mod host;
pub mod invariant;
pub mod packet;
pub mod queue;
pub mod ring;
pub mod run;
pub mod shuffle;
pub mod trace;
pub mod wire;
pub mod world;

/// Why a simulation could not be set up or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A flow whose key no RoCEv2 host can produce.
    #[error(
        "flow {flow} is classified by {what}; the packet simulation sends RoCEv2 (UDP 4791 with a queue pair)"
    )]
    FlowKey {
        /// The flow.
        flow: u32,
        /// What is wrong with the key.
        what: &'static str,
    },
    /// Two flows that a host could not tell apart.
    #[error(
        "flows {first} and {second} use queue pair {queue_pair} on one host; give each its own"
    )]
    SharedQueuePair {
        /// One of them.
        first: u32,
        /// The other.
        second: u32,
        /// The queue pair.
        queue_pair: u32,
    },
    /// A fabric that cannot be built.
    #[error("the fabric cannot be built: {reason}")]
    Fabric {
        /// Why.
        reason: String,
    },
    /// A ring whose flows do not close.
    #[error("job {job} channel {channel} has {flows} flows for a ring of {ranks} ranks")]
    BrokenRing {
        /// The job.
        job: u32,
        /// The channel.
        channel: u16,
        /// Flows found.
        flows: usize,
        /// Ranks of the job.
        ranks: usize,
    },
    /// A parameter out of its range.
    #[error("{name} = {value} is out of range: {range}")]
    Parameter {
        /// Which.
        name: &'static str,
        /// What was given.
        value: u64,
        /// What is allowed.
        range: &'static str,
    },
}
