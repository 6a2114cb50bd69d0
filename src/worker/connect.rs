//! Ranks find each other. In: a [`Spec`]. Out: a [`Ring`] with one connection in and one out per channel. Must not know buffers.

use super::ring::STALL;
use super::{Breaker, Spec};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// First bytes of a connection, so that a stranger on the port is told from a rank.
const MAGIC: [u8; 8] = *b"RPWORK02";
/// Pause between two attempts to reach a rank that is not there yet.
const AGAIN: Duration = Duration::from_millis(50);
/// Longest single attempt: a host that is gone does not answer, and it may be given up meanwhile.
const ATTEMPT: Duration = Duration::from_secs(1);
/// How long somebody who has connected may take to say who it is: a rank does so at once.
const INTRODUCTION: Duration = Duration::from_secs(2);
/// Longest name of a job.
const NAME_MAX: usize = 256;

/// Why a rank cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A ring that is none.
    #[error("{what}")]
    Spec {
        /// What, and what to do.
        what: String,
    },
    /// The port cannot be had.
    #[error(
        "rank {rank} cannot listen on {address}; is another worker running on this host with the same ports?"
    )]
    Listen {
        /// This rank.
        rank: usize,
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A rank that did not come.
    #[error(
        "rank {rank} at {address} was not there within {patience:?}; start it, or see --peers and --first-port"
    )]
    Absent {
        /// The other rank.
        rank: usize,
        /// Where it should be.
        address: SocketAddr,
        /// How long it was awaited.
        patience: Duration,
    },
    /// Somebody else is on the port.
    #[error("a connection for rank {rank} came from {who}; do two jobs use the same ports?")]
    Stranger {
        /// This rank.
        rank: usize,
        /// What it said of itself.
        who: String,
    },
    /// A rank went away or fell silent.
    #[error("rank {rank} at {address} went away in iteration {iteration}")]
    Gone {
        /// The other rank.
        rank: usize,
        /// Where it was.
        address: IpAddr,
        /// From 0.
        iteration: u32,
        /// What TCP said.
        #[source]
        source: std::io::Error,
    },
    /// The rank is no part of its job.
    #[error("{reason}; the rank ends")]
    Over {
        /// In the controller's words.
        reason: String,
    },
    /// The controller says nothing.
    #[error(
        "the controller named no ring to go on with within {patience:?}; does it still run? See --controller and --patience"
    )]
    NoOrder {
        /// How long it was awaited.
        patience: Duration,
    },
    /// A sum that is not what the ranks' numbers add up to.
    #[error(
        "iteration {iteration}: element {element} of the reduced buffer is {found}, not {wanted}; bytes were lost or mixed up"
    )]
    Wrong {
        /// From 0.
        iteration: u32,
        /// Index in the channel's part of the buffer.
        element: usize,
        /// The value.
        found: f32,
        /// What it must be.
        wanted: f32,
    },
}

/// One channel's neighbours.
#[derive(Debug)]
pub struct Channel {
    pub(super) from_previous: TcpStream,
    pub(super) to_next: TcpStream,
}

/// A rank with its connections.
#[derive(Debug)]
pub struct Ring {
    pub(super) spec: Spec,
    pub(super) channels: Vec<Channel>,
    pub(super) breaker: Breaker,
}

/// Listens, connects to the next rank and waits for the one before. The last rank that is left of a job needs nobody. `breaker` ends the
/// attempt, and later the ring.
///
/// # Errors
/// [`WorkerError`] names the rank that is missing or the port that is taken.
pub fn connect(spec: Spec, breaker: &Breaker) -> Result<Ring, WorkerError> {
    let ranks = spec.peers.len();
    if ranks == 1 && spec.generation > 0 {
        return Ok(Ring { spec, channels: Vec::new(), breaker: breaker.clone() });
    }
    check(&spec)?;
    let (previous, next) = ((spec.rank + ranks - 1) % ranks, (spec.rank + 1) % ranks);
    let port = |channel: u16, edge: usize| {
        // `check` has seen that it fits.
        spec.first_port
            + channel * u16::try_from(ranks).unwrap_or(0)
            + u16::try_from(edge).unwrap_or(0)
    };
    let mut listeners = Vec::new();
    for channel in 0..spec.channels {
        let address = SocketAddr::new(spec.peers[spec.rank], port(channel, previous));
        let listener = TcpListener::bind(address);
        listeners.push(listener.map_err(|source| WorkerError::Listen {
            rank: spec.rank,
            address,
            source,
        })?);
    }
    let mut channels = Vec::new();
    for (channel, listener) in (0..spec.channels).zip(listeners) {
        let address = SocketAddr::new(spec.peers[next], port(channel, spec.rank));
        let absent = |rank, address| WorkerError::Absent { rank, address, patience: spec.patience };
        let mut to_next = reach(address, &spec, breaker).ok_or_else(|| absent(next, address))?;
        let hello = greet(&mut to_next, &spec, next);
        hello.map_err(|_| absent(next, address))?;
        let before = SocketAddr::new(spec.peers[previous], port(channel, previous));
        let from_previous =
            accept(&listener, &spec, breaker)?.ok_or_else(|| absent(previous, before))?;
        for connection in [&from_previous, &to_next] {
            breaker.guard(connection).map_err(|_| absent(next, address))?;
        }
        channels.push(Channel { from_previous, to_next });
    }
    Ok(Ring { spec, channels, breaker: breaker.clone() })
}

fn check(spec: &Spec) -> Result<(), WorkerError> {
    let ranks = spec.peers.len();
    let last = usize::from(spec.first_port) + usize::from(spec.channels) * ranks;
    let what = if ranks < 2 {
        format!("{ranks} ranks are no ring; give at least 2 peers")
    } else if spec.rank >= ranks {
        format!("rank {} of {ranks}; ranks count from 0 to {}", spec.rank, ranks - 1)
    } else if spec.channels == 0 || spec.first_port == 0 || last > usize::from(u16::MAX) + 1 {
        format!(
            "{} channels of {ranks} ranks from port {} on do not fit into the ports 1 to 65535",
            spec.channels, spec.first_port
        )
    } else if spec.channels > super::CHANNELS_MAX {
        format!("{} channels; give at most {}", spec.channels, super::CHANNELS_MAX)
    } else if spec.bytes == 0 || spec.bytes > super::BYTES_MAX {
        format!("{} bytes; give 1 to {}", spec.bytes, super::BYTES_MAX)
    } else if spec.job.is_empty() || spec.job.len() > NAME_MAX {
        format!("a job's name has 1 to {NAME_MAX} bytes")
    } else {
        return Ok(());
    };
    Err(WorkerError::Spec { what })
}

/// Connects to a rank that may not be there yet.
#[allow(clippy::disallowed_methods, reason = "a worker is a process; it waits in real time")]
fn reach(address: SocketAddr, spec: &Spec, breaker: &Breaker) -> Option<TcpStream> {
    let begin = Instant::now();
    loop {
        let left = spec.patience.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())?;
        match TcpStream::connect_timeout(&address, left.min(ATTEMPT)) {
            Ok(stream) => return Some(stream),
            Err(_) if breaker.sleep(AGAIN.min(left)) => {}
            Err(_) => return None,
        }
    }
}

/// Says who we are: magic, sender, receiver, membership, name.
fn greet(stream: &mut TcpStream, spec: &Spec, next: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(spec.patience))?;
    let mut hello = MAGIC.to_vec();
    let generation = usize::try_from(spec.generation).unwrap_or(usize::MAX);
    for number in [spec.rank, next, generation, spec.job.len()] {
        hello.extend(u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
    }
    hello.extend(spec.job.as_bytes());
    stream.write_all(&hello)
}

/// Takes the connection of the rank before; `None` if it does not come.
#[allow(clippy::disallowed_methods, reason = "a worker is a process; it waits in real time")]
fn accept(
    listener: &TcpListener,
    spec: &Spec,
    breaker: &Breaker,
) -> Result<Option<TcpStream>, WorkerError> {
    let begin = Instant::now();
    if listener.set_nonblocking(true).is_err() {
        return Ok(None);
    }
    let mut stranger = None;
    while begin.elapsed() < spec.patience {
        let Ok((stream, _)) = listener.accept() else {
            if breaker.sleep(AGAIN.min(spec.patience)) {
                continue;
            }
            return Ok(None);
        };
        // Whoever looks at ports ends no job; if the right one never comes, the stranger explains why.
        match introduced(stream, spec) {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) => stranger = Some(error),
        }
    }
    stranger.map_or(Ok(None), Err)
}

fn introduced(mut stream: TcpStream, spec: &Spec) -> Result<TcpStream, WorkerError> {
    let stranger = |who: String| WorkerError::Stranger { rank: spec.rank, who };
    let broken = |error: std::io::Error| stranger(format!("somebody who said nothing ({error})"));
    stream.set_nonblocking(false).map_err(broken)?;
    stream.set_read_timeout(Some(INTRODUCTION.min(spec.patience))).map_err(broken)?;
    let mut head = [0; 24];
    stream.read_exact(&mut head).map_err(broken)?;
    let number = |at: usize| {
        let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
        usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX)
    };
    if head[..8] != MAGIC || number(20) > NAME_MAX {
        return Err(stranger("something that is no worker".to_owned()));
    }
    let mut name = vec![0; number(20)];
    stream.read_exact(&mut name).map_err(broken)?;
    stream.set_read_timeout(Some(STALL.min(spec.patience))).map_err(broken)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    let ranks = spec.peers.len();
    if name == spec.job && number(16) != spec.generation as usize {
        return Err(stranger(format!(
            "a rank of membership {} of the job, this is membership {}",
            number(16),
            spec.generation
        )));
    }
    if name != spec.job || number(12) != spec.rank || (number(8) + 1) % ranks != spec.rank {
        return Err(stranger(format!(
            "rank {} of job '{name}', which meant rank {}",
            number(8),
            number(12)
        )));
    }
    Ok(stream)
}
