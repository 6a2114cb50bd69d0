//! Controller messages: what readouts and probes have in common.
//!
//! In: an op and a body; packet-ins. Out: packet-outs; why a packet came and by which port. Byte layout: p4/README.md, "Controller messages".
//! Must not know what a message says.

use super::schema::ProgramError;
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::value;

/// EtherType of controller messages.
const ETHER_TYPE: [u8; 2] = [0x88, 0xb6];
/// `magic` and version of every message.
const MAGIC: [u8; 3] = [0x52, 0x50, 1];
/// Bytes before the op's own: Ethernet, `magic`, version, op.
const HEAD_LEN: usize = 18;

/// A frame that begins as every message does, with room for `length` bytes.
pub(super) fn begin(op: u8, length: usize) -> Vec<u8> {
    let mut frame = Vec::with_capacity(length);
    frame.extend([0; 12]);
    frame.extend(ETHER_TYPE);
    frame.extend(MAGIC);
    frame.push(op);
    frame
}

/// The op of a frame that is a message; `None` for every other.
pub(super) fn op(frame: &[u8]) -> Option<u8> {
    let head = frame.get(12..HEAD_LEN)?;
    (head[..2] == ETHER_TYPE && head[2..5] == MAGIC).then(|| head[5])
}

/// Four bytes of a frame, in network order.
pub(super) fn word(frame: &[u8], at: usize) -> Option<u32> {
    let bytes = frame.get(at..at + 4)?;
    bytes.try_into().ok().map(u32::from_be_bytes)
}

/// The headers of packets to and from the controller, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    egress_port: u32,
    ingress_port: u32,
    reason: u32,
}

impl Headers {
    /// Finds the headers in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when the program has none like these.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let field = |header: &'static str, name: &'static str| {
            let found = index.header(header).and_then(|header| header.field(name));
            found.map(|field| field.id).map_err(|error| ProgramError::Missing {
                what: "controller header field",
                name: format!("{header}.{name}"),
                detail: error.to_string(),
            })
        };
        Ok(Self {
            egress_port: field("packet_out", "egress_port")?,
            ingress_port: field("packet_in", "ingress_port")?,
            reason: field("packet_in", "reason")?,
        })
    }

    /// The message that sends a frame out of a port.
    #[must_use]
    pub fn packet_out(&self, port: PortNo, payload: Vec<u8>) -> proto::StreamMessageRequest {
        let metadata = proto::PacketMetadata {
            metadata_id: self.egress_port,
            value: value::encode(port.0.into()),
        };
        let packet = proto::PacketOut { payload, metadata: vec![metadata] };
        let update = proto::stream_message_request::Update::Packet(packet);
        proto::StreamMessageRequest { update: Some(update) }
    }

    fn number(packet: &proto::PacketIn, id: u32) -> Option<u128> {
        let field = packet.metadata.iter().find(|field| field.metadata_id == id)?;
        value::decode(&field.value)
    }

    /// Why the program sent a packet to the controller.
    #[must_use]
    pub fn reason(&self, packet: &proto::PacketIn) -> Option<u128> {
        Self::number(packet, self.reason)
    }

    /// The port by which a packet came in.
    #[must_use]
    pub fn ingress(&self, packet: &proto::PacketIn) -> Option<PortNo> {
        u16::try_from(Self::number(packet, self.ingress_port)?).ok().map(PortNo)
    }

    /// For tests: the metadata of a packet-in.
    #[cfg(test)]
    pub(crate) fn metadata(&self, reason: u128, ingress: PortNo) -> Vec<proto::PacketMetadata> {
        let field = |metadata_id, number: u128| proto::PacketMetadata {
            metadata_id,
            value: value::encode(number),
        };
        vec![field(self.ingress_port, ingress.0.into()), field(self.reason, reason)]
    }
}
