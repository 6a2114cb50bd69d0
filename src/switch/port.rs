//! Ports on the outside: Linux interfaces and packet files. In: frames of interfaces and files, packets that the switch sends. Out: packets
//! for the switch, frames on interfaces and in files, counts, news of ports that went up or down. Must not know programs or requests.
//!
//! ```text
//!  interface ─► ring ─► frame (checksum, VLAN tag, cutting) ─► switch ─► batch of one system call ─► interface
//!                │                                     │                   │
//!                └─ counts what it could not hold      └─► NAME_in.pcap    └─► NAME_out.pcap     full: the switch's queues wait
//! ```
//! The only packets behind a port's queues are those of one batch ([`ring::SEND_MAX`]), as a network card's ring holds some.

pub mod file;
pub mod frame;
pub mod interface;
pub mod pcap;
pub mod record;
pub mod ring;
mod set;
#[cfg(test)]
mod tests;

use crate::id::PortNo;
use crate::units::BitRate;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

pub use crate::switch::traffic::PORT_MAX;
pub use set::{OpenError, Ports};

/// Longest name of an interface (`IFNAMSIZ` less the final zero).
const NAME_BYTES_MAX: usize = 15;

/// A port and its interface, as people write them: `1@veth0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The program's number.
    pub port: PortNo,
    /// The interface's name; of packet files the first part of the name.
    pub name: String,
}

/// Why a port and interface cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// No `@`.
    #[error("'{0}' has no '@'; write PORT@INTERFACE, for example 1@veth0")]
    Form(String),
    /// Not a port.
    #[error(
        "'{0}' is no port: a number from 0 to {PORT_MAX}; write PORT@INTERFACE, for example 1@veth0"
    )]
    Port(String),
    /// Not an interface.
    #[error(
        "'{0}' can be no interface: 1 to {NAME_BYTES_MAX} characters without '/' and spaces; `ip link` lists them"
    )]
    Name(String),
}

impl std::str::FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (port, name) = text.split_once('@').ok_or_else(|| SpecError::Form(text.to_owned()))?;
        let number = port.parse().ok().filter(|number| *number <= PORT_MAX);
        let port = PortNo(number.ok_or_else(|| SpecError::Port(port.to_owned()))?);
        let fine = (1..=NAME_BYTES_MAX).contains(&name.len())
            && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        if !fine || name == "." || name == ".." {
            return Err(SpecError::Name(name.to_owned()));
        }
        Ok(Self { port, name: name.to_owned() })
    }
}

/// What a port counted on the outside. What the switch itself did is in [`crate::switch::Stats`].
#[derive(Debug, Default)]
pub struct Counters {
    /// Frames that came while the ring was full.
    pub overflowed: AtomicU64,
    /// Frames that came but were too long for the switch.
    pub long_in: AtomicU64,
    /// Long segments that could not be cut into frames.
    pub uncut: AtomicU64,
    /// Packets longer than the interface's MTU.
    pub long_out: AtomicU64,
    /// Packets that the interface's own queue (a `tc` qdisc) dropped.
    pub refused: AtomicU64,
    /// Packets that were lost as the interface went down or away.
    pub down: AtomicU64,
    /// Packets that no interface takes, of less than 14 bytes for instance.
    pub unfit: AtomicU64,
    /// Times that the interface was full, so that the port's queues waited.
    pub waits: AtomicU64,
    /// Times that the port went up.
    pub ups: AtomicU64,
    /// Packets that could not be recorded (disk full).
    pub unrecorded: AtomicU64,
}

/// A counter's name and where it is.
pub type Counter = (&'static str, fn(&Counters) -> &AtomicU64);

/// Names and values of the counters, in order; stable.
pub const COUNTERS: [Counter; 10] = [
    ("in_ring_full", |c| &c.overflowed),
    ("in_too_long", |c| &c.long_in),
    ("in_uncut_segment", |c| &c.uncut),
    ("out_too_long", |c| &c.long_out),
    ("out_refused", |c| &c.refused),
    ("out_down", |c| &c.down),
    ("out_unfit", |c| &c.unfit),
    ("waits", |c| &c.waits),
    ("ups", |c| &c.ups),
    ("unrecorded", |c| &c.unrecorded),
];

pub(crate) fn count(counter: &AtomicU64, packets: u64) {
    counter.fetch_add(packets, Ordering::Relaxed);
}

/// A port as others see it.
#[derive(Debug)]
pub struct Face {
    /// The program's number.
    pub port: PortNo,
    /// The interface or the first part of the files' names.
    pub name: String,
    up: AtomicBool,
    /// Of the shaper, bits per second; [`UNSHAPED`] = none.
    rate: AtomicU64,
    /// What it counted.
    pub counters: Counters,
}

/// No shaper.
const UNSHAPED: u64 = u64::MAX;

impl Face {
    /// A port that is down, with the rate of its shaper.
    #[must_use]
    pub fn new(spec: &Spec, rate: Option<BitRate>) -> Self {
        let (port, name, up) = (spec.port, spec.name.clone(), AtomicBool::new(false));
        let face =
            Self { port, name, up, rate: AtomicU64::default(), counters: Counters::default() };
        face.set_rate(rate);
        face
    }

    /// Rate of its shaper; `None` = unshaped.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        Some(self.rate.load(Ordering::Acquire)).filter(|rate| *rate != UNSHAPED).map(BitRate)
    }

    /// Notes the rate that the switch's port has from its next change on.
    pub fn set_rate(&self, rate: Option<BitRate>) {
        self.rate.store(rate.map_or(UNSHAPED, |rate| rate.0), Ordering::Release);
    }

    /// Whether packets can come and go.
    #[must_use]
    pub fn up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Sets it; returns whether that is a change.
    pub(crate) fn set_up(&self, up: bool) -> bool {
        if up && !self.up() {
            count(&self.counters.ups, 1);
        }
        self.up.swap(up, Ordering::AcqRel) != up
    }
}

/// A port that went up or down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The port.
    pub port: PortNo,
    /// Its interface.
    pub name: String,
    /// Up or down.
    pub up: bool,
    /// Why, in words.
    pub reason: String,
}

/// Who is told of events; called by the switch's thread, so it must not wait.
pub type Listener = Box<dyn Fn(&Event) + Send>;

/// All ports as others see them, and who wants to hear of them.
#[derive(Default)]
pub struct Board {
    /// In order of number.
    pub faces: Vec<Arc<Face>>,
    listener: Mutex<Option<Listener>>,
}

impl Board {
    pub(crate) fn new(faces: Vec<Arc<Face>>) -> Self {
        Self { faces, listener: Mutex::default() }
    }

    /// Has `listener` called for every event from now on, instead of the one before.
    pub fn listen(&self, listener: Listener) {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(listener);
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(listener) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            listener(event);
        }
    }
}
