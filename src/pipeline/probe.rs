//! Probes: a frame that goes out of one port of a switch and tells the controller where it came in.
//!
//! In: what a probe says and the key of this run; packet-ins. Out: packet-outs; what was heard, and whether it is genuine. Byte layout:
//! p4/README.md, "Probe". Must not know links, or when a probe is late.
//!
//! Nobody without the key can make a probe: 64 bits of an HMAC-SHA-256 stand for everything that the controller wrote into it.

use super::message::{self, Headers};
use crate::id::PortNo;
use crate::p4runtime::proto::p4::v1 as proto;
use ring::hmac;
use serde::{Deserialize, Serialize};

const OP_PROBE: u8 = 16;
/// What the MAC covers: from `magic` to `counter`.
const COVERED: std::ops::Range<usize> = 14..38;
/// Bytes of the frame that is sent, and of the one that comes.
const SENT_LEN: usize = 50;
const HEARD_LEN: usize = 58;
/// Why the program sends a packet to the controller: it is a probe.
const REASON_PROBE: u128 = 2;

/// The key of one run of a controller. Not shown; it is worth something only as long as that controller runs.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProbeKey(pub [u8; 32]);

impl std::fmt::Debug for ProbeKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProbeKey(…)")
    }
}

/// What a probe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The switch that sends it.
    pub switch: u32,
    /// The port that it leaves by.
    pub port: PortNo,
    /// The sender's incarnation as the controller believes.
    pub incarnation: u32,
    /// Which probe of this port.
    pub counter: u64,
}

/// A genuine probe that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// What it says.
    pub probe: Probe,
    /// The port by which it came.
    pub ingress: PortNo,
    /// The sending switch's incarnation, stamped by itself.
    pub sent_incarnation: u32,
    /// The receiving switch's, stamped by itself.
    pub incarnation: u32,
}

/// Why a packet-in that is meant as a probe counts for nothing: not ours, or cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forged;

/// Sends and recognises probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes(Headers);

impl Probes {
    /// Over the program's headers.
    #[must_use]
    pub const fn new(headers: Headers) -> Self {
        Self(headers)
    }

    /// The message that sends a probe.
    #[must_use]
    pub fn packet_out(&self, key: &ProbeKey, probe: Probe) -> proto::StreamMessageRequest {
        let mut frame = message::begin(OP_PROBE, SENT_LEN);
        frame.extend(probe.switch.to_be_bytes());
        frame.extend(probe.port.0.to_be_bytes());
        frame.extend([0; 2]);
        frame.extend(probe.incarnation.to_be_bytes());
        frame.extend(probe.counter.to_be_bytes());
        let mac = sign(key, &frame[COVERED]);
        frame.extend(mac);
        frame.resize(SENT_LEN, 0);
        self.0.packet_out(probe.port, frame)
    }

    /// The probe in a packet-in; `None` when the packet is none.
    #[must_use]
    pub fn heard(&self, key: &ProbeKey, packet: &proto::PacketIn) -> Option<Result<Heard, Forged>> {
        if self.0.reason(packet) != Some(REASON_PROBE) {
            return None;
        }
        Some(self.genuine(key, packet).ok_or(Forged))
    }

    fn genuine(&self, key: &ProbeKey, packet: &proto::PacketIn) -> Option<Heard> {
        let frame: &[u8; HEARD_LEN] = packet.payload[..].try_into().ok()?;
        let ours =
            message::op(frame) == Some(OP_PROBE) && sign(key, &frame[COVERED]) == frame[38..46];
        let ingress = self.0.ingress(packet).filter(|_| ours)?;
        let word = |at| message::word(frame, at);
        let probe = Probe {
            switch: word(18)?,
            port: PortNo(u16::from_be_bytes([frame[22], frame[23]])),
            incarnation: word(26)?,
            counter: u64::from(word(30)?) << 32 | u64::from(word(34)?),
        };
        Some(Heard { probe, ingress, sent_incarnation: word(46)?, incarnation: word(54)? })
    }
}

/// The first 64 bits of the MAC. Comparing them byte by byte tells an attacker nothing: an answer never comes back.
fn sign(key: &ProbeKey, covered: &[u8]) -> [u8; 8] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), covered);
    let mut mac = [0; 8];
    mac.copy_from_slice(&tag.as_ref()[..8]);
    mac
}

/// For tests: the packet-in that a program makes of a probe that was sent.
#[cfg(test)]
pub(crate) fn received(
    probes: &Probes,
    sent: &proto::PacketOut,
    (ingress, sent_incarnation, incarnation): (PortNo, u32, u32),
) -> proto::PacketIn {
    let mut payload = sent.payload.clone();
    payload[46..50].copy_from_slice(&sent_incarnation.to_be_bytes());
    payload.extend([0; 4]);
    payload.extend(incarnation.to_be_bytes());
    let metadata = probes.0.metadata(REASON_PROBE, ingress);
    proto::PacketIn { payload, metadata }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Probe =
        Probe { switch: 7, port: PortNo(300), incarnation: 0xdead_beef, counter: 1 << 40 | 5 };

    fn packet() -> (Probes, proto::PacketIn) {
        let probes = crate::pipeline::tests::program().probes;
        let out = probes.packet_out(&ProbeKey([7; 32]), PROBE);
        let Some(proto::stream_message_request::Update::Packet(out)) = out.update else {
            panic!("no packet-out")
        };
        assert_eq!(out.payload.len(), SENT_LEN);
        (probes, received(&probes, &out, (PortNo(9), 3, 4)))
    }

    #[test]
    fn a_probe_reads_back_with_its_stamps() {
        let (probes, packet) = packet();
        let heard = probes.heard(&ProbeKey([7; 32]), &packet).unwrap().unwrap();
        let wanted =
            Heard { probe: PROBE, ingress: PortNo(9), sent_incarnation: 3, incarnation: 4 };
        assert_eq!(heard, wanted);
    }

    #[test]
    fn one_changed_bit_of_what_the_mac_covers_or_another_key_makes_it_a_forgery() {
        let (probes, packet) = packet();
        let key = ProbeKey([7; 32]);
        assert_eq!(probes.heard(&ProbeKey([8; 32]), &packet), Some(Err(Forged)));
        for bit in 12 * 8..46 * 8 {
            let mut changed = packet.clone();
            changed.payload[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(probes.heard(&key, &changed), Some(Err(Forged)), "bit {bit}");
        }
        for length in [0, 13, 45, HEARD_LEN - 1] {
            let mut cut = packet.clone();
            cut.payload.truncate(length);
            assert_eq!(probes.heard(&key, &cut), Some(Err(Forged)), "{length} bytes");
        }
        let mut other = packet;
        other.metadata.pop();
        assert_eq!(probes.heard(&key, &other), None, "no probe at all");
    }
}
