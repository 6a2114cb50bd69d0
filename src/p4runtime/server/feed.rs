//! Requests from bytes, for fuzzers and for recorded sessions. In: bytes that may be anything. Out: the same calls that a
//! transport would make, in their order. Must not know sockets; must not trust a byte.
//!
//! ```text
//!  bytes = record*      record = kind (1 byte), length (2 bytes, big-endian), message (protobuf)
//!  kind  = 0 Write, 1 Read, 2 SetForwardingPipelineConfig, 3 GetForwardingPipelineConfig, 4 Capabilities,
//!          5 StreamMessageRequest of the first stream, 6 of a new stream, 7 end of the newest stream but the first
//! ```
//!
//! A kind with bit 7 set is sent as it is. Otherwise device id, role and election id are replaced by those of the first
//! stream's client, because bytes at random would hardly ever be primary.

use super::{Server, StreamId, uint128};
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::p4::v1::{
    CapabilitiesRequest, GetForwardingPipelineConfigRequest, ReadRequest,
    SetForwardingPipelineConfigRequest, StreamMessageRequest, WriteRequest,
};
use crate::p4runtime::rpc::Rpc;
use crate::time::Time;
use prost::Message;

/// Sent as it is.
const AS_IT_IS: u8 = 0x80;
/// Streams that a feed opens at most; more would only be refused.
const STREAMS_MAX: usize = 32;
/// Time between two records.
const STEP_NS: u64 = 1_000_000;

/// The client whose identity records are given.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its stream, which is open and primary of the default role.
    pub stream: StreamId,
    /// Its election id.
    pub election: u128,
}

/// Feeds records to a server until the bytes end or a record is cut short; returns how many were understood. Answers are
/// thrown away.
pub fn feed<D: Device>(server: &mut Server<D>, client: Client, start: Time, data: &[u8]) -> usize {
    let mut now = start;
    let mut streams = Vec::new();
    let (mut rest, mut understood) = (data, 0);
    while let [kind, high, low, tail @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((message, next)) = tail.split_at_checked(length) else { break };
        rest = next;
        now = Time(now.0.saturating_add(STEP_NS));
        understood += usize::from(record(server, client, now, *kind, message, &mut streams));
        // What the device says must be able to leave.
        drop(server.drain(now));
    }
    for stream in streams {
        drop(server.close_stream(now, stream));
    }
    understood
}

fn record<D: Device>(
    server: &mut Server<D>,
    client: Client,
    now: Time,
    kind: u8,
    message: &[u8],
    streams: &mut Vec<StreamId>,
) -> bool {
    let own = (kind & AS_IT_IS == 0).then(|| (server.device().device_id(), client.election));
    match kind & !AS_IT_IS {
        5 => match StreamMessageRequest::decode(message) {
            Ok(message) => drop(server.stream_message(now, client.stream, message)),
            Err(_) => return false,
        },
        6 if streams.len() < STREAMS_MAX => {
            let Ok(message) = StreamMessageRequest::decode(message) else { return false };
            let stream = server.open_stream();
            streams.push(stream);
            drop(server.stream_message(now, stream, message));
        }
        7 => match streams.pop() {
            Some(stream) => drop(server.close_stream(now, stream)),
            None => return false,
        },
        kind => match rpc(kind, message, own) {
            Some(rpc) => drop(server.call(now, rpc)),
            None => return false,
        },
    }
    true
}

/// A call from a message; `own` are the device and the election id to put into it.
fn rpc(kind: u8, message: &[u8], own: Option<(u64, u128)>) -> Option<Rpc> {
    fn read<M: Message + Default>(message: &[u8]) -> Option<M> {
        M::decode(message).ok()
    }
    Some(match kind {
        0 => {
            let mut request: WriteRequest = read(message)?;
            if let Some((device, id)) = own {
                (request.device_id, request.election_id) = (device, Some(uint128(id)));
                request.role = String::new();
            }
            Rpc::Write(request)
        }
        1 => {
            let mut request: ReadRequest = read(message)?;
            if let Some((device, _)) = own {
                (request.device_id, request.role) = (device, String::new());
            }
            Rpc::Read(request)
        }
        2 => {
            let mut request: SetForwardingPipelineConfigRequest = read(message)?;
            if let Some((device, id)) = own {
                (request.device_id, request.election_id) = (device, Some(uint128(id)));
                request.role = String::new();
            }
            Rpc::SetPipeline(request)
        }
        3 => {
            let mut request: GetForwardingPipelineConfigRequest = read(message)?;
            if let Some((device, _)) = own {
                request.device_id = device;
            }
            Rpc::GetPipeline(request)
        }
        4 => Rpc::Capabilities(read::<CapabilitiesRequest>(message)?),
        _ => return None,
    })
}

/// The record of a message, for corpora; `None` if the message is longer than a record can be.
#[must_use]
pub fn record_of(kind: u8, message: &impl Message) -> Option<Vec<u8>> {
    let bytes = message.encode_to_vec();
    let length = u16::try_from(bytes.len()).ok()?.to_be_bytes();
    Some([&[kind, length[0], length[1]], bytes.as_slice()].concat())
}
