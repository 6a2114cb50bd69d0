//! Probes: a frame that goes out of one port of a switch and tells the controller where it came in.
//!
//! In: what a probe says and the key of this run; packet-ins. Out: packet-outs; what was heard, and whether it is genuine. Byte layout:
//! p4/README.md, "Probe". Must not know links, or when a probe is late.
//!
//! Nobody without the key can make a probe: 64 bits of an HMAC-SHA-256 stand for everything that the controller wrote into it.

use super::schema::ProgramError;
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::value;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// EtherType of controller messages.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb6];
/// `magic`, version, and the op of a probe.
const HEAD: [u8; 4] = [0x52, 0x50, 1, 16];
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

/// The headers of packets to and from the controller, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    egress_port: u32,
    ingress_port: u32,
    reason: u32,
}

impl Probes {
    /// Finds the headers in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when the program has none like these.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let field = |header: &'static str, name: &'static str| {
            let missing = |detail: String| ProgramError::Missing {
                what: "controller header field",
                name: format!("{header}.{name}"),
                detail,
            };
            let found = index.headers().iter().find(|found| found.names.name == header);
            let found = found.ok_or_else(|| missing(format!("there is no header {header}")))?;
            found.field(name).map(|field| field.id).map_err(|error| missing(error.to_string()))
        };
        Ok(Self {
            egress_port: field("packet_out", "egress_port")?,
            ingress_port: field("packet_in", "ingress_port")?,
            reason: field("packet_in", "reason")?,
        })
    }

    /// The message that sends a probe.
    #[must_use]
    pub fn packet_out(&self, key: &ProbeKey, probe: Probe) -> proto::StreamMessageRequest {
        let mut frame = Vec::with_capacity(SENT_LEN);
        frame.extend([0; 12]);
        frame.extend(ETHER_TYPE);
        frame.extend(HEAD);
        frame.extend(probe.switch.to_be_bytes());
        frame.extend(probe.port.0.to_be_bytes());
        frame.extend([0; 2]);
        frame.extend(probe.incarnation.to_be_bytes());
        frame.extend(probe.counter.to_be_bytes());
        let mac = sign(key, &frame[COVERED]);
        frame.extend(mac);
        frame.resize(SENT_LEN, 0);
        let metadata = proto::PacketMetadata {
            metadata_id: self.egress_port,
            value: value::encode(probe.port.0.into()),
        };
        let packet = proto::PacketOut { payload: frame, metadata: vec![metadata] };
        let update = proto::stream_message_request::Update::Packet(packet);
        proto::StreamMessageRequest { update: Some(update) }
    }

    /// The probe in a packet-in; `None` when the packet is none.
    #[must_use]
    pub fn heard(&self, key: &ProbeKey, packet: &proto::PacketIn) -> Option<Result<Heard, Forged>> {
        let number = |id| {
            let field = packet.metadata.iter().find(|field| field.metadata_id == id)?;
            value::decode(&field.value)
        };
        if number(self.reason) != Some(REASON_PROBE) {
            return None;
        }
        let ingress = number(self.ingress_port).and_then(|port| u16::try_from(port).ok());
        let frame: Result<&[u8; HEARD_LEN], _> = packet.payload[..].try_into();
        let (Some(ingress), Ok(frame)) = (ingress, frame) else { return Some(Err(Forged)) };
        let ours = frame[12..14] == ETHER_TYPE
            && frame[14..18] == HEAD
            && sign(key, &frame[COVERED]) == frame[38..46];
        if !ours {
            return Some(Err(Forged));
        }
        let word = |at: usize| {
            u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
        };
        let probe = Probe {
            switch: word(18),
            port: PortNo(u16::from_be_bytes([frame[22], frame[23]])),
            incarnation: word(26),
            counter: u64::from(word(30)) << 32 | u64::from(word(34)),
        };
        let ingress = PortNo(ingress);
        let (sent_incarnation, incarnation) = (word(46), word(54));
        Some(Ok(Heard { probe, ingress, sent_incarnation, incarnation }))
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
    let field = |metadata_id, number: u128| proto::PacketMetadata {
        metadata_id,
        value: value::encode(number),
    };
    let metadata =
        vec![field(probes.ingress_port, ingress.0.into()), field(probes.reason, REASON_PROBE)];
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
