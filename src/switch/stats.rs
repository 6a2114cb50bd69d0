//! What a switch counted. In: one call per packet that came, went or was lost. Out: numbers per port and queue. Must
//! not know why the program wanted it so.

use crate::id::PortNo;
use crate::switch::exec::Faults;
use crate::switch::traffic::Reject;

/// Why a packet ended in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drop {
    /// No program is loaded.
    NoProgram,
    /// The packet is longer than [`crate::switch::MAX_PACKET_BYTES`].
    TooLong,
    /// It came in on a port that is down, or was to leave by one.
    PortDown,
    /// The port's number is beyond [`crate::switch::traffic::MAX_PORTS`].
    NoPort,
    /// All packet buffers are in use ([`crate::switch::MAX_PACKETS`]).
    NoBuffer,
    /// Ingress decided so (`egress_spec` is the drop port).
    Ingress,
    /// Egress decided so.
    Egress,
    /// The queue was full.
    QueueFull,
    /// The priority names no queue.
    Priority,
    /// The multicast group is unknown or has no replica.
    NoReplica,
    /// The clone session is unknown; only the clone is lost.
    NoSession,
    /// Resubmitted, recirculated or cloned more than [`crate::switch::MAX_PASSES`] times.
    Passes,
    /// The queue of resubmitted and recirculated packets was full.
    InputFull,
    /// The controller's outbox was full.
    OutboxFull,
    /// It was to leave by a port that has no interface.
    NoInterface,
}

impl Drop {
    /// Every reason, in order.
    pub const ALL: [Self; 15] = [
        Self::NoProgram,
        Self::TooLong,
        Self::PortDown,
        Self::NoPort,
        Self::NoBuffer,
        Self::Ingress,
        Self::Egress,
        Self::QueueFull,
        Self::Priority,
        Self::NoReplica,
        Self::NoSession,
        Self::Passes,
        Self::InputFull,
        Self::OutboxFull,
        Self::NoInterface,
    ];

    /// Its name where programs read it; stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NoProgram => "no_program",
            Self::TooLong => "too_long",
            Self::PortDown => "port_down",
            Self::NoPort => "no_port",
            Self::NoBuffer => "no_buffer",
            Self::Ingress => "ingress",
            Self::Egress => "egress",
            Self::QueueFull => "queue_full",
            Self::Priority => "priority",
            Self::NoReplica => "no_replica",
            Self::NoSession => "no_session",
            Self::Passes => "passes",
            Self::InputFull => "input_full",
            Self::OutboxFull => "outbox_full",
            Self::NoInterface => "no_interface",
        }
    }

    /// What it means, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::NoProgram => "no program is loaded",
            Self::TooLong => "packet too long",
            Self::PortDown => "port down",
            Self::NoPort => "no port of that number",
            Self::NoBuffer => "all packet buffers in use",
            Self::Ingress => "dropped by the program's ingress",
            Self::Egress => "dropped by the program's egress",
            Self::QueueFull => "queue full",
            Self::Priority => "priority names no queue",
            Self::NoReplica => "multicast group unknown or empty",
            Self::NoSession => "clone session unknown",
            Self::Passes => "resubmitted, recirculated or cloned too often",
            Self::InputFull => "too many recirculated packets waiting",
            Self::OutboxFull => "the controller reads too slowly",
            Self::NoInterface => "the port has no interface",
        }
    }
}

impl From<Reject> for Drop {
    fn from(reject: Reject) -> Self {
        match reject {
            Reject::Full => Self::QueueFull,
            Reject::Priority => Self::Priority,
            Reject::PortDown => Self::PortDown,
            Reject::NoPort => Self::NoPort,
        }
    }
}

/// Packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet. Wraps, as a counter of 64 bits does.
    pub fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

/// One queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Sent; bytes as they left.
    pub sent: Count,
    /// Lost because the queue was full; bytes as they came.
    pub full: Count,
    /// Most packets it held.
    pub max_depth: u32,
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Came in.
    pub received: Count,
    /// Left.
    pub sent: Count,
    /// By queue.
    pub queues: Vec<QueueStats>,
}

/// A whole switch, since it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    ports: Vec<PortStats>,
    drops: [u64; Drop::ALL.len()],
    /// Packets for which the parser found an error. As on BMv2 they go on; the program sees `parser_error`.
    pub parser_errors: u64,
    /// What went wrong in the program; the packets went on.
    pub faults: Faults,
    /// Packets to the controller.
    pub packet_ins: u64,
    /// Digests lost: the list was full, or the same values are on their way.
    pub digests_lost: u64,
}

impl Stats {
    /// Packets lost for this reason.
    #[must_use]
    pub fn drops(&self, reason: Drop) -> u64 {
        self.drops[reason as usize]
    }

    /// Packets lost for any reason.
    #[must_use]
    pub fn all_drops(&self) -> u64 {
        self.drops.iter().sum()
    }

    /// A port's counts; zeros if it never had a packet.
    #[must_use]
    pub fn port(&self, port: PortNo) -> PortStats {
        self.ports.get(usize::from(port.0)).cloned().unwrap_or_default()
    }

    /// Ports that have counted anything, in order of number.
    pub fn ports(&self) -> impl Iterator<Item = (PortNo, &PortStats)> {
        let numbered = (0..).map(PortNo).zip(&self.ports);
        numbered.filter(|(_, port)| **port != PortStats::default())
    }

    /// Counts a lost packet.
    pub fn drop(&mut self, reason: Drop) {
        self.drops[reason as usize] += 1;
    }

    fn port_mut(&mut self, port: PortNo) -> &mut PortStats {
        let index = usize::from(port.0);
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, PortStats::default);
        }
        &mut self.ports[index]
    }

    fn queue_mut(&mut self, port: PortNo, queue: u8) -> &mut QueueStats {
        let port = self.port_mut(port);
        if port.queues.len() <= usize::from(queue) {
            port.queues.resize_with(usize::from(queue) + 1, QueueStats::default);
        }
        &mut port.queues[usize::from(queue)]
    }

    /// Collects a packet's faults.
    pub fn collect(&mut self, faults: &mut Faults) {
        let taken = std::mem::take(faults);
        self.faults.index += taken.index;
        self.faults.budget += taken.budget;
        self.faults.assertion += taken.assertion;
    }

    /// Counts a packet that came in.
    pub fn received(&mut self, port: PortNo, bytes: u64) {
        self.port_mut(port).received.add(bytes);
    }

    /// Counts a packet that left.
    pub fn sent(&mut self, port: PortNo, queue: u8, bytes: u64) {
        self.port_mut(port).sent.add(bytes);
        self.queue_mut(port, queue).sent.add(bytes);
    }

    /// Notes a queue's depth after an insertion.
    pub fn depth(&mut self, port: PortNo, queue: u8, packets: u32) {
        let queue = self.queue_mut(port, queue);
        queue.max_depth = queue.max_depth.max(packets);
    }

    /// Counts a tail drop, by queue and by reason.
    pub fn full(&mut self, port: PortNo, queue: u8, bytes: u64) {
        self.drop(Drop::QueueFull);
        self.queue_mut(port, queue).full.add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_place_of_its_own() {
        for (place, reason) in Drop::ALL.into_iter().enumerate() {
            let mut stats = Stats::default();
            stats.drop(reason);
            assert_eq!((reason as usize, stats.drops(reason), stats.all_drops()), (place, 1, 1));
        }
    }

    #[test]
    fn ports_and_queues_are_counted_apart() {
        let mut stats = Stats::default();
        stats.sent(PortNo(3), 2, 100);
        stats.full(PortNo(3), 5, 60);
        let port = stats.port(PortNo(3));
        assert_eq!(port.sent, Count { packets: 1, bytes: 100 });
        assert_eq!(port.queues[2].sent, port.sent);
        assert_eq!((port.queues[5].full.packets, stats.drops(Drop::QueueFull)), (1, 1));
        assert_eq!(stats.port(PortNo(2)), PortStats::default());
    }
}
