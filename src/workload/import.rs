//! Jobs that people already run, read from what their programs wrote.
//!
//! In: the text of logs and traces and their names for messages. Out: [`RingJob`]s, a [`Trace`], [`Shuffles`], with notes on what was
//! assumed; or the line and column of what cannot be read. Must not know: the file system, fabrics (host names stay names).

mod assume;
mod coflow;
mod lingjun;
mod nccl;

pub use assume::assumed;
pub use coflow::{Shuffle, Shuffles, coflows};
pub use lingjun::{Trace, TraceJob, lingjun, minute};
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

/// Most GPUs of a job on a host, and most channels, that a scenario may have.
const MAX_GPUS: u32 = 1024;
/// See [`MAX_GPUS`].
const MAX_CHANNELS: u32 = 64;

/// A file's text.
fn text<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str, ImportError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        let (file, line) = (file.to_owned(), line as u64);
        ImportError { file, line, column: 0, problem: ImportProblem::NotText }
    })
}

/// A problem of a whole file.
fn whole(file: &str, problem: ImportProblem) -> ImportError {
    ImportError { file: file.to_owned(), line: 0, column: 0, problem }
}

/// Why a log or trace cannot be used, and where.
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

/// What is wrong with a log or trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// Not text.
    #[error("not UTF-8 text; is this the right file?")]
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
    /// More than a scenario may have.
    #[error("{what} {value} is above {max}, the most that a scenario may have")]
    TooMuch {
        /// What.
        what: &'static str,
        /// How much of it.
        value: u64,
        /// Most.
        max: u64,
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
    /// The CSV reader gave up.
    #[error("not valid CSV: {message}")]
    Csv {
        /// What it says.
        message: String,
    },
    /// A column that has to be there.
    #[error("the header has no column '{column}' (it is {header}); is this the right file?")]
    MissingColumn {
        /// The column.
        column: &'static str,
        /// The header found.
        header: String,
    },
    /// A row with too few or too many fields.
    #[error("this row has {found} fields and the header {wanted}; complete or remove the row")]
    Fields {
        /// Fields found.
        found: usize,
        /// Fields of the header.
        wanted: usize,
    },
    /// A field that is empty.
    #[error("column '{column}' is empty; fill it or remove the row")]
    Empty {
        /// The column.
        column: &'static str,
    },
    /// More rows than any trace.
    #[error("the file has more than {max} rows; split it")]
    TooManyRows {
        /// Most.
        max: usize,
    },
    /// A name that must be unique.
    #[error("{what} '{name}' has already been given in line {first}; remove one of the rows")]
    Twice {
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
        /// Where first.
        first: u64,
    },
    /// A time that is none.
    #[error("{column}: '{text}' is no time; it should read 2023/7/15 02:19")]
    BadTime {
        /// The column.
        column: &'static str,
        /// What stands there.
        text: String,
    },
    /// Resources that are no JSON object with a number of GPUs.
    #[error("RES: {message}; it should read {{\"nvidia.com/gpu\": \"8\"}}")]
    BadResources {
        /// What is wrong.
        message: String,
    },
    /// No job of the trace can be used.
    #[error("no job ran on two hosts or more; do job.csv and worker.csv belong together?")]
    NoJobs,
    /// An empty trace.
    #[error("the file is empty; the first line gives the numbers of ports and coflows")]
    NoCoflows,
    /// A line that ends too early.
    #[error("the line ends where {wanted} should stand")]
    LineEnds {
        /// What is missing.
        wanted: &'static str,
    },
    /// A word that is something else.
    #[error("'{text}' is not {wanted}")]
    BadWord {
        /// What should stand there.
        wanted: &'static str,
        /// What does.
        text: String,
    },
    /// Lines are missing or too many.
    #[error("the first line promises {wanted} coflows and {found} follow; is the file whole?")]
    CoflowCount {
        /// As the first line says.
        wanted: u64,
        /// Lines that follow.
        found: u64,
    },
    /// A communicator that is not there.
    #[error("the highest communicator is {}; give --communicator that or less", count - 1)]
    NoCommunicator {
        /// Communicators found.
        count: usize,
    },
}
