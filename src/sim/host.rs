//! A host's network stack: RoCEv2-like frames, a window transport, one NIC.
//!
//! In: how far a flow may send (the ring decides), frames from the wire. Out: frames, and how many packets have
//! arrived in order. Must not know: switches, labels, queues, plans, or what the bytes are for.
//!
//! The transport follows the reliable-connection service of RoCEv2 (IBTA, annex A17): 24-bit packet sequence numbers,
//! acknowledgements for a group of packets, a NAK that names the first missing packet. Two ways to recover:
//! *selective* (default; the receiver keeps what came early, the sender repeats what is proven missing) and
//! *go-back-N* (the receiver throws away what came early, the sender starts again at the gap).
//!
//! A time-out never repeats data by itself. Under strict priority a packet may wait for a very long time without being
//! lost, so the sender sends a probe without payload in the wake of the data. The receiver answers with what it has, and
//! only what is still missing after a wait is sent again. While anything is unacknowledged a sender is never silent for
//! longer than its time-out: a longer silence means that nothing of the flow is in the network, and that is what makes an
//! orderly flip safe under strict priority, where no bound on queueing delay exists.

pub mod frame;
pub mod nic;
pub mod receiver;
pub mod sender;

pub use frame::{Frame, Kind, Template};
pub use nic::Nic;
pub use receiver::{Arrival, Receiver};
pub use sender::{Sender, Transmit};

use crate::time::Span;

/// How lost packets come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Keep early packets, repeat only the missing ones.
    #[default]
    Selective,
    /// Drop early packets, repeat everything from the gap.
    GoBackN,
}

/// Constants of the transport, the same for all flows of a run. Counts are packets of full size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// Payload bytes of a full packet.
    pub payload: u32,
    /// Packets in flight per flow, at most [`MAX_WINDOW`].
    pub window: u32,
    /// The receiver acknowledges every so many packets and the last of a message; less than the window.
    pub ack_every: u32,
    /// How lost packets come back.
    pub recovery: Recovery,
    /// Silence after which the sender probes, again and again (as the constant acknowledgement time-out of RoCE NICs).
    pub timeout: Span,
    /// How long a selective receiver waits before it calls an early packet the proof of a loss. A forced flip lets new
    /// packets overtake old ones; what comes within this time is late, not lost.
    pub reorder_wait: Span,
}

/// Largest window: the receiver's map of early packets has so many bits.
pub const MAX_WINDOW: u32 = 512;
