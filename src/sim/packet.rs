//! The packet network: hosts and switches joined by links, one event at a time.
//!
//! In: a topology, flows, forwarders (switches), job starts. Out: per-iteration times and packet counts. Must not know:
//! labels, queues, plans, the controller; a switch is whatever takes frames and gives frames.
//!
//! Nothing is allocated per packet: frames lie in a [`pool`] and events carry handles.

pub mod ideal;
pub mod link;
pub mod net;
pub mod pool;
pub mod scale;

pub use link::Link;
pub use net::{Net, Setup};
pub use scale::{Scale, ScaleInput};

use crate::id::PortNo;
use crate::time::Time;
use crate::units::BitRate;

/// A frame that leaves a switch.
#[derive(Clone, Copy, Debug)]
pub struct Departure<'a> {
    /// The port.
    pub port: PortNo,
    /// The queue it waited in; 0 on a switch without queues of its own.
    pub queue: u8,
    /// The frame.
    pub bytes: &'a [u8],
    /// When it came into its queue.
    pub enqueued: Time,
    /// When its first bit went out.
    pub start: Time,
    /// When its last bit is on the wire.
    pub end: Time,
}

/// What the network asks of a switch. Calls that may change when the switch wants to run next return that time.
pub trait Forwarder: Send {
    /// A frame has arrived.
    fn receive(&mut self, now: Time, port: PortNo, bytes: &[u8]) -> Option<Time>;
    /// Does everything that is due at `now`.
    fn advance(&mut self, now: Time, out: &mut dyn FnMut(Departure<'_>)) -> Option<Time>;
    /// When the switch wants to run next.
    fn poll_at(&self) -> Option<Time>;
    /// State and rate of a port; `None` is unshaped.
    fn set_port(
        &mut self,
        now: Time,
        port: PortNo,
        up: bool,
        rate: Option<BitRate>,
    ) -> Option<Time>;
    /// Whether the last `receive` or `advance` left messages for a controller; asked once after each.
    fn speaks(&mut self) -> bool {
        false
    }
}

/// Events of the packet network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetEvent {
    /// A host's interface has put a frame on the wire.
    NicFree(u32),
    /// A frame reaches the far end of a link.
    Arrive {
        /// The link.
        link: u32,
        /// The frame's place in the pool.
        frame: u32,
    },
    /// A switch wants to run.
    Poll(u32),
    /// A flow's sender may have waited long enough.
    SenderTimer(u32),
    /// A flow's receiver may have waited long enough.
    ReceiverTimer(u32),
    /// A job's communication starts.
    CommStart(u32),
    /// A job's compute is done.
    ComputeEnd(u32),
    /// A background source has another packet.
    Offer(u32),
}

/// What happened to packets, by the hosts' own counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Data packets that hosts put on the wire, repetitions included.
    pub sent: u64,
    /// Data packets that reached their host for the first time.
    pub delivered: u64,
    /// Data packets that reached their host again.
    pub duplicated: u64,
    /// Data packets that arrived behind a later one of their flow and had been sent once.
    pub reordered: u64,
    /// Data packets that a go-back-N receiver threw away because an earlier one was missing.
    pub refused: u64,
    /// Data packets sent again.
    pub repeated: u64,
    /// Time-outs of senders.
    pub timeouts: u64,
    /// Acknowledgements and probes put on the wire.
    pub control_sent: u64,
    /// Acknowledgements and probes that arrived.
    pub control_delivered: u64,
    /// Packets of no job put on the wire.
    pub background_sent: u64,
    /// Packets of no job that arrived.
    pub background_delivered: u64,
    /// Frames lost because a link was down.
    pub link_down: u64,
    /// Frames for or from a host that has failed.
    pub host_down: u64,
    /// Frames lost to drawn link errors.
    pub link_error: u64,
    /// Frames that a host could not read.
    pub unreadable: u64,
    /// Frames that switches were given.
    pub switch_passes: u64,
}
