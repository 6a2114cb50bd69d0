//! Frames on the wire: Ethernet, IPv4, UDP 4791, Base Transport Header, payload, ICRC.
//!
//! In: addresses of a flow, a sequence number. Out: bytes, and from bytes the parts that a host reads. Must not know
//! flows' states.
//!
//! Numbers: IBTA volume 1 section 9.2 (BTH: opcode 8, flags 8, P_Key 16, reserved 8, DestQP 24, A 1, reserved 7, PSN
//! 24) and 9.3 (AETH); UDP port 4791 from annex A17. The ICRC is four zero bytes: no receiver here checks it.

use crate::topology::FlowKey;
use std::net::Ipv4Addr;

/// UDP port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;
/// Bytes before the payload: Ethernet 14, IPv4 20, UDP 8, BTH 12.
pub const HEADERS: usize = 54;
/// Bytes after the payload.
pub const ICRC: usize = 4;
/// Acknowledgement body: AETH (syndrome, message number) and our two words: credit limit and end of the gap.
const ACK_BODY: usize = 12;
const ETHERTYPE_IPV4: u16 = 0x0800;
const UDP: u8 = 17;
const WRITE_MIDDLE: u8 = 0x07;
const ACKNOWLEDGE: u8 = 0x11;
/// A write without payload, as NICs use it to test a connection.
const WRITE_ONLY: u8 = 0x0a;
const SYNDROME_ACK: u8 = 0x00;
/// NAK code 0: packet sequence error.
const SYNDROME_NAK: u8 = 0x60;
/// Ours: this acknowledgement answers a probe.
const SYNDROME_ANSWER: u8 = 0x61;
const MASK24: u32 = 0x00ff_ffff;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Payload; `psn` is its number.
    Data,
    /// Sent in the wake of data after a time-out; `psn` is the next number not sent yet.
    Probe,
    /// Receiver's answer; `psn` is the first number that has not arrived.
    Ack {
        /// Low 32 bits of the number up to which the receiver has room.
        credit: u32,
    },
    /// As `Ack`, and everything from `psn` up to `gap_end` is missing.
    Nak {
        /// As in `Ack`.
        credit: u32,
        /// Low 32 bits of the first number after the gap.
        gap_end: u32,
        /// Whether it answers a probe.
        answer: bool,
    },
}

/// What a host reads from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: Kind,
    /// Destination queue pair.
    pub queue_pair: u32,
    /// Low 24 bits of the packet sequence number.
    pub psn: u32,
    /// Whether an acknowledgement is asked for.
    pub ack_request: bool,
}

/// Everything of a frame that is the same for all packets of one direction of one flow.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: [u8; HEADERS],
    /// Sum of the IPv4 header's words without total length and checksum.
    checksum_base: u32,
}

impl Template {
    /// Headers for one direction. `entropy` becomes the UDP source port when the key leaves it open (RoCEv2 NICs derive it
    /// from the queue pair, so that ECMP spreads queue pairs).
    #[must_use]
    pub fn new(key: &FlowKey, macs: ([u8; 6], [u8; 6]), entropy: u16) -> Self {
        let mut bytes = [0_u8; HEADERS];
        bytes[0..6].copy_from_slice(&macs.1);
        bytes[6..12].copy_from_slice(&macs.0);
        put16(&mut bytes, 12, ETHERTYPE_IPV4);
        bytes[14] = 0x45;
        put16(&mut bytes, 20, 0x4000); // do not fragment
        bytes[22] = 64;
        bytes[23] = UDP;
        bytes[26..30].copy_from_slice(&key.src.octets());
        bytes[30..34].copy_from_slice(&key.dst.octets());
        put16(&mut bytes, 34, key.src_port.unwrap_or(0xc000 | (entropy & 0x3fff)));
        put16(&mut bytes, 36, key.dst_port.unwrap_or(ROCE_PORT));
        put16(&mut bytes, 44, 0xffff); // default partition
        let queue_pair = key.dst_qp.unwrap_or(0) & MASK24;
        bytes[46..50].copy_from_slice(&queue_pair.to_be_bytes());
        let checksum_base = (14..34).step_by(2).map(|at| u32::from(get16(&bytes, at))).sum();
        Self { bytes, checksum_base }
    }

    /// Length of a data frame with so many payload bytes.
    #[must_use]
    pub const fn data_len(payload: usize) -> usize {
        HEADERS + payload + ICRC
    }

    /// Writes a frame into `out` and returns its length; payload bytes are left as they are. `out` must hold
    /// [`Template::data_len`] of the payload, and of 12 for acknowledgements.
    pub fn write(
        &self,
        out: &mut [u8],
        kind: Kind,
        psn: u64,
        payload: usize,
        ack_request: bool,
    ) -> usize {
        let body = match kind {
            Kind::Data => payload,
            Kind::Probe => 0,
            Kind::Ack { .. } | Kind::Nak { .. } => ACK_BODY,
        };
        let len = Self::data_len(body);
        out[..HEADERS].copy_from_slice(&self.bytes);
        let ip_len = (len - 14) as u32;
        put16(out, 16, ip_len as u16);
        let mut sum = self.checksum_base + ip_len;
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        put16(out, 24, !(sum as u16));
        put16(out, 38, (ip_len - 20) as u16);
        let (opcode, syndrome) = match kind {
            Kind::Data => (WRITE_MIDDLE, None),
            Kind::Probe => (WRITE_ONLY, None),
            Kind::Ack { credit } => (ACKNOWLEDGE, Some((SYNDROME_ACK, credit, 0))),
            Kind::Nak { credit, gap_end, answer } => {
                let code = if answer { SYNDROME_ANSWER } else { SYNDROME_NAK };
                (ACKNOWLEDGE, Some((code, credit, gap_end)))
            }
        };
        out[42] = opcode;
        let word = (u32::from(ack_request) << 31) | (psn as u32 & MASK24);
        out[50..54].copy_from_slice(&word.to_be_bytes());
        if let Some((code, credit, gap_end)) = syndrome {
            let message = (u32::from(code) << 24) | (psn as u32 & MASK24);
            out[54..58].copy_from_slice(&message.to_be_bytes());
            out[58..62].copy_from_slice(&credit.to_be_bytes());
            out[62..66].copy_from_slice(&gap_end.to_be_bytes());
        }
        out[len - ICRC..len].fill(0);
        len
    }
}

impl Frame {
    /// Reads a frame; `None` if it is not RoCEv2 for `address`, is cut short, or has an opcode that no host here sends.
    #[must_use]
    pub fn parse(bytes: &[u8], address: Ipv4Addr) -> Option<Self> {
        if bytes.len() < HEADERS + ICRC
            || get16(bytes, 12) != ETHERTYPE_IPV4
            || bytes[14] != 0x45
            || bytes[23] != UDP
            || get16(bytes, 36) != ROCE_PORT
            || bytes[30..34] != address.octets()
        {
            return None;
        }
        let queue_pair = get32(bytes, 46) & MASK24;
        let word = get32(bytes, 50);
        let kind = match bytes[42] {
            WRITE_MIDDLE => Kind::Data,
            WRITE_ONLY => Kind::Probe,
            ACKNOWLEDGE if bytes.len() >= HEADERS + ACK_BODY => {
                let (credit, gap_end) = (get32(bytes, 58), get32(bytes, 62));
                match bytes[54] {
                    SYNDROME_ACK => Kind::Ack { credit },
                    SYNDROME_NAK => Kind::Nak { credit, gap_end, answer: false },
                    SYNDROME_ANSWER => Kind::Nak { credit, gap_end, answer: true },
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self { kind, queue_pair, psn: word & MASK24, ack_request: word >> 31 == 1 })
    }
}

/// The number nearest to `near` whose low `bits` bits are `low` (serial number arithmetic, RFC 1982).
#[must_use]
pub fn unwrap_near(low: u32, bits: u32, near: u64) -> u64 {
    let modulus = 1_u64 << bits;
    let base = near & !(modulus - 1);
    let candidate = base + u64::from(low);
    let half = modulus / 2;
    if candidate + half < near {
        candidate + modulus
    } else if candidate > near + half && candidate >= modulus {
        candidate - modulus
    } else {
        candidate
    }
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> FlowKey {
        FlowKey {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 1, 2),
            protocol: UDP,
            src_port: None,
            dst_port: Some(ROCE_PORT),
            dst_qp: Some(0x12_3456),
        }
    }

    /// RFC 1071: the sum of all words of a header that carries its checksum is all ones.
    fn ipv4_sum(bytes: &[u8]) -> u32 {
        let mut sum: u32 = (14..34).step_by(2).map(|at| u32::from(get16(bytes, at))).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn every_kind_of_frame_reads_back_as_written() {
        let template = Template::new(&key(), ([2; 6], [4; 6]), 77);
        for kind in [
            Kind::Data,
            Kind::Probe,
            Kind::Ack { credit: 0xdead_beef },
            Kind::Nak { credit: 9, gap_end: 12, answer: false },
            Kind::Nak { credit: 9, gap_end: 12, answer: true },
        ] {
            let mut out = [0xaa_u8; 2048];
            let len = template.write(&mut out, kind, 0x1_0203_0405, 1024, true);
            let frame = Frame::parse(&out[..len], key().dst).expect("a frame");
            assert_eq!(
                frame,
                Frame { kind, queue_pair: 0x12_3456, psn: 0x03_0405, ack_request: true }
            );
            assert_eq!(usize::from(get16(&out, 16)), len - 14, "IPv4 total length");
            assert_eq!(ipv4_sum(&out), 0xffff, "IPv4 checksum");
            assert_eq!(Frame::parse(&out[..len], key().src), None, "not this host's");
            assert_eq!(Frame::parse(&out[..len.min(50)], key().dst), None, "cut short");
        }
    }

    proptest! {
        #[test]
        fn a_cut_number_is_restored_within_half_its_range(near in 0_u64..1 << 40, off in -8_000_000_i64..8_000_000) {
            let value = near.saturating_add_signed(off);
            prop_assert_eq!(unwrap_near(value as u32 & MASK24, 24, near), value);
            prop_assert_eq!(unwrap_near(value as u32, 32, near), value);
        }
    }
}
