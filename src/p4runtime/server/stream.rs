//! Streams: arbitration, packets, acknowledgements, and the device's outbox (sections 5 and 16).
//! In: messages of clients, the outbox. Out: messages to clients. Must not know sockets.

use super::arbitration::Standing;
use super::check::Check;
use super::role::Scope;
use super::{Profile, Server, StreamId, ToClient};
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::proto::p4::v1::stream_error::Details;
use crate::p4runtime::proto::p4::v1::stream_message_request::Update as Request;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use crate::p4runtime::proto::p4::v1::{
    DigestListAck, DigestListAckError, IdleTimeoutNotification, PacketOut, PacketOutError,
    StreamError, StreamMessageRequest, StreamMessageResponse, StreamOtherError,
};
use crate::p4runtime::rpc::Code;
use crate::time::Time;

impl<D: Device> Server<D> {
    /// A client has opened its stream. It is nobody until it arbitrates.
    pub fn open_stream(&mut self) -> StreamId {
        self.next_stream += 1;
        let stream = StreamId(self.next_stream);
        self.streams.insert(stream);
        stream
    }

    /// A client has closed its stream, or it broke. Returns notifications for others.
    pub fn close_stream(&mut self, _now: Time, stream: StreamId) -> Vec<ToClient> {
        self.streams.remove(&stream);
        let device = self.device.device_id();
        self.roles.leave(stream, device)
    }

    /// A message of a client. An `Err` in the answer ends that stream; what a client sends on a stream that has ended
    /// (it may not know yet) is dropped.
    pub fn stream_message(
        &mut self,
        now: Time,
        stream: StreamId,
        message: StreamMessageRequest,
    ) -> Vec<ToClient> {
        if !self.streams.contains(&stream) {
            return Vec::new();
        }
        let outcome = match message.update {
            Some(Request::Arbitration(update)) => {
                let device = self.device.device_id();
                let out = self.roles.arbitrate(stream, device, update);
                if out.iter().any(|(to, item)| *to == stream && item.is_err()) {
                    self.streams.remove(&stream);
                }
                return out;
            }
            Some(Request::Packet(mut packet)) => {
                let sent = self.packet_out(now, stream, &mut packet);
                sent.map_err(|refusal| {
                    let packet_out = Some(packet);
                    (refusal, Details::PacketOut(PacketOutError { packet_out }))
                })
            }
            Some(Request::DigestAck(ack)) => self.digest_ack(now, stream, ack).map_err(|refusal| {
                let digest_list_ack = Some(ack);
                (refusal, Details::DigestListAck(DigestListAckError { digest_list_ack }))
            }),
            Some(Request::Other(other)) => {
                let refusal = Refusal::new(Code::Unimplemented, "no other messages are understood");
                Err((refusal, Details::Other(StreamOtherError { other: Some(other) })))
            }
            None => {
                let refusal = Refusal::new(Code::InvalidArgument, "the message is empty");
                Err((refusal, Details::Other(StreamOtherError { other: None })))
            }
        };
        match outcome {
            Ok(()) => Vec::new(),
            Err((refusal, details)) => self.stream_error(stream, refusal, details),
        }
    }

    /// Section 16.6; PI keeps silent unless it is configured otherwise.
    fn stream_error(&self, stream: StreamId, refusal: Refusal, details: Details) -> Vec<ToClient> {
        if self.profile == Profile::Bmv2 {
            return Vec::new();
        }
        let error = StreamError {
            canonical_code: refusal.code.number(),
            message: refusal.message,
            details: Some(details),
            ..StreamError::default()
        };
        vec![(stream, Ok(StreamMessageResponse { update: Some(Response::Error(error)) }))]
    }

    /// The scope of a primary.
    fn primary_scope(&self, stream: StreamId) -> Result<&Scope, Refusal> {
        let denied = |text: &str| Err(Refusal::new(Code::PermissionDenied, text));
        match self.roles.standing(stream) {
            Standing::Primary(scope) => Ok(scope),
            Standing::Backup => denied("only the primary may send this"),
            Standing::Stranger => denied("arbitrate before anything else"),
        }
    }

    fn packet_out(
        &mut self,
        now: Time,
        stream: StreamId,
        packet: &mut PacketOut,
    ) -> Result<(), Refusal> {
        if !self.primary_scope(stream)?.packets() {
            return Err(Refusal::new(
                Code::PermissionDenied,
                "packets are not in the role's scope",
            ));
        }
        let Some(program) = &self.program else {
            return Err(Refusal::new(
                Code::FailedPrecondition,
                "no forwarding pipeline config is set",
            ));
        };
        let check = Check { index: &program.index, profile: self.profile };
        // The original goes into the error, so that the client recognises it.
        let mut checked = packet.clone();
        check.packet_out(&mut checked)?;
        self.device.packet_out(now, &checked)
    }

    fn digest_ack(
        &mut self,
        now: Time,
        stream: StreamId,
        ack: DigestListAck,
    ) -> Result<(), Refusal> {
        let scope = self.primary_scope(stream)?;
        let id = ack.digest_id;
        if !scope.holds(id) {
            return Err(Refusal::new(
                Code::PermissionDenied,
                "the digest is not in the role's scope",
            ));
        }
        let digest = self.program.as_ref().and_then(|program| program.index.digest_by_id(id));
        if digest.is_none() {
            let text = format!("there is no digest with id {id:#010x}");
            return Err(Refusal::new(Code::InvalidArgument, text));
        }
        self.device.digest_ack(now, &ack);
        Ok(())
    }

    /// Empties the device's outbox and routes each message to the primaries of the roles that may see it. Without a
    /// primary a message is lost, as the specification allows.
    pub fn drain(&mut self, _now: Time) -> Vec<ToClient> {
        let outbox = self.device.take_outbox();
        let mut out = Vec::with_capacity(outbox.len());
        for message in outbox {
            for (stream, scope) in self.roles.primaries() {
                out.extend(seen(scope, &message).map(|message| (stream, Ok(message))));
            }
        }
        out
    }
}

/// What a role sees of a message of the device. Entries that have expired together may belong to several roles.
fn seen(scope: &Scope, message: &StreamMessageResponse) -> Option<StreamMessageResponse> {
    let whole = match &message.update {
        Some(Response::Packet(_)) => scope.packets(),
        Some(Response::Digest(list)) => scope.holds(list.digest_id),
        Some(Response::IdleTimeoutNotification(notification)) => {
            let entries = notification.table_entry.iter();
            let table_entry: Vec<_> =
                entries.filter(|entry| scope.holds(entry.table_id)).cloned().collect();
            let idle = IdleTimeoutNotification { table_entry, timestamp: notification.timestamp };
            return (!idle.table_entry.is_empty()).then_some(StreamMessageResponse {
                update: Some(Response::IdleTimeoutNotification(idle)),
            });
        }
        _ => true,
    };
    whole.then(|| message.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4runtime::proto::p4::v1::TableEntry;
    use crate::p4runtime::proto::ringpath::v1::RoleConfig;
    use prost::Message as _;

    #[test]
    fn each_role_hears_of_its_own_idle_entries_and_of_no_others() {
        let scope = |ids: &[u32]| {
            let config = RoleConfig { object_ids: ids.to_vec(), ..RoleConfig::default() };
            let value = config.encode_to_vec();
            let type_url = "type.googleapis.com/ringpath.v1.RoleConfig".to_owned();
            Scope::from_config(Some(&prost_types::Any { type_url, value })).unwrap()
        };
        let entry = |table_id| TableEntry { table_id, ..TableEntry::default() };
        let idle = IdleTimeoutNotification { table_entry: vec![entry(1), entry(2)], timestamp: 5 };
        let update = Some(Response::IdleTimeoutNotification(idle));
        let message = StreamMessageResponse { update };
        let tables = |scope: &Scope| match seen(scope, &message)?.update? {
            Response::IdleTimeoutNotification(idle) => {
                Some(idle.table_entry.iter().map(|entry| entry.table_id).collect::<Vec<_>>())
            }
            _ => None,
        };
        assert_eq!(tables(&Scope::Full), Some(vec![1, 2]));
        assert_eq!(tables(&scope(&[2])), Some(vec![2]));
        assert_eq!(tables(&scope(&[3])), None, "a notification without entries must not be sent");
    }
}
