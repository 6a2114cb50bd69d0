//! Jobs that people already run, read from what their programs wrote.
//!
//! In: the text of logs and their names for messages. Out: [`RingJob`]s with notes on what was assumed; or the line and column of what
//! cannot be read. Must not know: the file system, fabrics (host names stay names).

mod nccl;

pub use nccl::{MAX_RANKS, nccl};

/// A job as far as its ring goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingJob {
    /// Hosts in ring order, each once, from that of rank 0 on.
    pub hosts: Vec<String>,
    /// Ranks on each host.
    pub ranks_per_host: u32,
    /// Parallel rings in that order of hosts.
    pub channels: u16,
    /// Address that each host's network plugin uses, where the log says it: (host, interface, address).
    pub addresses: Vec<(String, String, String)>,
    /// Network devices that the job's edges between hosts leave by, of all channels, trees and communicators: (host, device), as NCCL
    /// numbers them.
    pub devices: Vec<(String, u32)>,
    /// What was assumed or left out, one sentence each.
    pub notes: Vec<String>,
}

/// Why a log says nothing of a ring, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {problem}", at(*line, *column))]
pub struct ImportError {
    /// Name of the log as given.
    pub file: String,
    /// Line from 1; 0 when all logs together are meant.
    pub line: u64,
    /// Column from 1; 0 when the whole line is meant.
    pub column: u64,
    /// What, and what to do.
    pub problem: ImportProblem,
}

fn at(line: u64, column: u64) -> String {
    match (line, column) {
        (0, _) => String::new(),
        (line, 0) => format!(":{line}"),
        (line, column) => format!(":{line}:{column}"),
    }
}

/// What is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// Not text.
    #[error("not UTF-8 text; is this the log?")]
    NotText,
    /// No ring lines at all.
    #[error(
        "no line says 'Ring NN : a -> b -> c'; start the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET and give the logs of all its processes"
    )]
    NoRings,
    /// A ring line whose numbers cannot be read.
    #[error("'{text}' is no rank; the line should read 'Ring 00 : 7 -> 0 -> 1'")]
    BadRank {
        /// What stands there.
        text: String,
    },
    /// A rank beyond what is supported.
    #[error("rank {rank} is above {max}; is this the log?")]
    TooLarge {
        /// The rank.
        rank: u64,
        /// The largest.
        max: u32,
    },
    /// Two lines that say different things of one rank.
    #[error(
        "channel {channel}: rank {rank} sends to {now} here, and to {before} in {elsewhere}; give the logs of one job, and of one communicator (see --communicator)"
    )]
    Contradiction {
        /// Channel.
        channel: u32,
        /// Rank.
        rank: u32,
        /// Next rank here.
        now: u32,
        /// Next rank there.
        before: u32,
        /// Where it was said.
        elsewhere: String,
    },
    /// A line without `host:pid:tid` in front.
    #[error(
        "no 'host:pid:tid [device]' stands before 'NCCL INFO'; keep the lines as NCCL writes them"
    )]
    NoHost,
    /// A rank that a ring names and that no log describes.
    #[error(
        "channel {channel}: rank {rank} has no line of its own; give the logs of all processes (at least {wanted} ranks, {known} have a line)"
    )]
    MissingRank {
        /// Channel.
        channel: u32,
        /// Rank.
        rank: u32,
        /// Ranks with a line.
        known: usize,
        /// Ranks that the ring names.
        wanted: usize,
    },
    /// Edges that do not join up to one ring.
    #[error(
        "channel {channel}: from rank 0 the ring comes back after {length} of {ranks} ranks; these are several rings, give the logs of one job"
    )]
    Broken {
        /// Channel.
        channel: u32,
        /// Ranks on the way.
        length: usize,
        /// All ranks.
        ranks: usize,
    },
    /// A ring that visits a host more than once.
    #[error(
        "the ring leaves host '{host}' and comes back to it; only rings that visit a host once can be planned"
    )]
    HostTwice {
        /// The host.
        host: String,
    },
    /// Hosts with different numbers of ranks.
    #[error(
        "host '{host}' has {here} ranks and '{first}' has {there}; every host must have as many"
    )]
    Uneven {
        /// A host.
        host: String,
        /// Its ranks.
        here: usize,
        /// The first host.
        first: String,
        /// Its ranks.
        there: usize,
    },
    /// A ring inside one host.
    #[error("all ranks are on host '{host}'; nothing crosses the network")]
    OneHost {
        /// The host.
        host: String,
    },
    /// A communicator that is not there.
    #[error("the highest communicator is {}; give --communicator that or less", count - 1)]
    NoCommunicator {
        /// Communicators found.
        count: usize,
    },
}
