//! What a P4Runtime server asks of the switch behind it.
//! In: requests that the server has checked against P4Info. Out: refusals that depend on the switch's state, entities,
//! stream messages in an outbox. Must not know clients, election ids, roles or transports.

use crate::p4runtime::proto::p4::v1::{
    DigestListAck, Entity, ForwardingPipelineConfig, PacketOut, StreamMessageResponse, Update,
};
use crate::p4runtime::rpc::Code;
use crate::time::Time;
use std::any::Any;

/// Why a device did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Refusal {
    /// The canonical code that the specification gives the case.
    pub code: Code,
    /// The offending value and what to do.
    pub message: String,
}

impl Refusal {
    /// A refusal with a code and a text.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A target behind the P4Runtime server. It owns no clock (every call takes `now`) and speaks only into an outbox.
///
/// The server checks requests against P4Info with the specification's codes before the device sees them: ids exist,
/// values are canonical and fit, key and action are complete, priorities and roles are right, the caller is primary.
/// Byte strings arrive in canonical form, matches in the order of the table's fields, parameters in the order of the
/// action's. The device refuses only what depends on its own state or abilities: `ALREADY_EXISTS`, `NOT_FOUND`,
/// `RESOURCE_EXHAUSTED`, entries given by the program (`PERMISSION_DENIED`), references that are missing or in use
/// (`NOT_FOUND`, `FAILED_PRECONDITION`), ports and sizes that it does not have and one-shot sets beside members
/// (`INVALID_ARGUMENT`), `UNIMPLEMENTED`.
pub trait Device: Send {
    /// The id that requests must carry.
    fn device_id(&self) -> u64;

    /// Whether the program could be loaded; changes nothing. `INVALID_ARGUMENT` says what is wrong with it.
    fn verify_pipeline(&self, config: &ForwardingPipelineConfig) -> Result<(), Refusal>;

    /// Starts a program and forgets all entries, registers, groups and sessions. After an error the device is as
    /// before.
    fn load_pipeline(
        &mut self,
        now: Time,
        config: &ForwardingPipelineConfig,
    ) -> Result<(), Refusal>;

    /// A device of the same kind and configuration without a program and without ports. The server tries a saved
    /// program on it beside the running one (VERIFY_AND_SAVE, RECONCILE_AND_COMMIT, section 14).
    #[must_use]
    fn blank(&self) -> Self
    where
        Self: Sized;

    /// Executes one checked update. A table entry's MODIFY without an action leaves the action as it is, except for
    /// the default entry, which goes back to the program's.
    fn write(&mut self, now: Time, update: &Update) -> Result<(), Refusal>;

    /// Calls `emit` for every entity that fits the pattern `entity`, wildcards included, in an order that does not
    /// depend on hashes.
    fn read(&self, now: Time, entity: &Entity, emit: &mut dyn FnMut(Entity))
    -> Result<(), Refusal>;

    /// Sends a packet whose metadata has been checked against the `packet_out` header.
    fn packet_out(&mut self, now: Time, packet: &PacketOut) -> Result<(), Refusal>;

    /// The controller has the list; unknown lists are ignored.
    fn digest_ack(&mut self, now: Time, ack: &DigestListAck);

    /// Empties the outbox: packet-ins, digest lists and idle notifications in the order in which they arose.
    fn take_outbox(&mut self) -> Vec<StreamMessageResponse>;

    /// Everything that writes can change, to return to with `restore`.
    fn checkpoint(&self) -> Box<dyn Any + Send>;

    /// Goes back to a checkpoint of this device; one of another device is ignored.
    fn restore(&mut self, checkpoint: Box<dyn Any + Send>);
}
