//! Readout packets: a request goes out of the CPU port's other side, the program answers it with all cells of a slot.
//!
//! In: requests; packet-ins. Out: packet-outs; answers. Byte layouts: p4/README.md, "Controller messages". Must not know
//! who asks, retries, or time-outs.

use super::{Cell, Sample, Totals};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::pipeline::message::{self, Headers, word};
use crate::pipeline::target::Target;

const OP_READ: u8 = 1;
const OP_ADVANCE: u8 = 2;
/// Bytes of a request's frame.
const REQUEST_LEN: usize = 30;
/// Bytes of a reply's frame to `read` and `advance`.
const REPLY_LEN: usize = 102;
/// Why the program sends a packet to the controller: it answers a readout.
const REASON_READOUT: u128 = 1;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A slot's cells, with the copy of an interval.
    Read {
        /// The slot.
        slot: u16,
        /// The interval.
        interval: u32,
    },
    /// A new running interval, if it is ahead of the present one.
    Advance {
        /// Its number.
        interval: u32,
    },
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The request's id.
    pub id: u32,
    /// The request as the switch understood it.
    pub request: Request,
    /// The cells; of an advance only interval, incarnation and time mean anything.
    pub sample: Sample,
}

/// Asks for cells and reads what comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readout {
    headers: Headers,
    target: Target,
}

impl Readout {
    /// Over the program's headers, in the target's ticks.
    #[must_use]
    pub const fn new(headers: Headers, target: Target) -> Self {
        Self { headers, target }
    }

    /// The message that carries a request.
    #[must_use]
    pub fn packet_out(&self, id: u32, request: Request) -> proto::StreamMessageRequest {
        let (op, slot, interval) = match request {
            Request::Read { slot, interval } => (OP_READ, slot, interval),
            Request::Advance { interval } => (OP_ADVANCE, 0, interval),
        };
        let mut frame = message::begin(op, REQUEST_LEN);
        frame.extend(id.to_be_bytes());
        frame.extend(slot.to_be_bytes());
        frame.extend([0; 2]);
        frame.extend(interval.to_be_bytes());
        // The program ignores the port of a request; the CPU port by convention.
        self.headers.packet_out(self.target.cpu_port(), frame)
    }

    /// The request id of a packet-in that is a readout reply; `None` for every other packet. Nothing but what tells the
    /// kind is looked at.
    #[must_use]
    pub fn id_of(&self, packet: &proto::PacketIn) -> Option<u32> {
        let ours = self.headers.reason(packet) == Some(REASON_READOUT)
            && message::op(&packet.payload).is_some();
        ours.then(|| word(&packet.payload, 18)).flatten()
    }

    /// The answer in a packet-in; `None` when it is no reply to `read` or `advance`, or cut short.
    #[must_use]
    pub fn answer(&self, packet: &proto::PacketIn) -> Option<Answer> {
        let id = self.id_of(packet)?;
        let frame = &packet.payload[..];
        if frame.len() < REPLY_LEN {
            return None;
        }
        let at = |place| word(frame, place);
        let slot = u16::from_be_bytes([frame[22], frame[23]]);
        let interval = at(26)?;
        let request = match frame[17] {
            OP_READ => Request::Read { slot, interval },
            OP_ADVANCE => Request::Advance { interval },
            _ => return None,
        };
        let cell = Cell {
            packets: at(66)?,
            bytes: at(70)?,
            active: at(74)?,
            delay_sum: at(78)?,
            delay_max: at(82)?,
            depth_max: at(86)?,
            first: at(90)?,
            last: at(94)?,
        };
        let sample = Sample {
            slot,
            epoch: frame[98],
            interval,
            running: at(38)?,
            incarnation: at(34)?,
            tick: self.target.tick(),
            time_ticks: at(30),
            totals: Totals { packets: at(46)?, bytes: at(50)?, lost: at(54)?, reordered: at(58)? },
            cell: (at(62)? == interval).then_some(cell),
        };
        Some(Answer { id, request, sample })
    }
}
