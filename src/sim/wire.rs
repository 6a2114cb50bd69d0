//! The seam between the controller and the switches: one exchange at a time.
//!
//! In: calls and stream messages for a switch, with the frozen virtual time. Out: answers, and what the switch said by
//! itself, in its order. Must not know the controller, plans, or when anything happens.
//!
//! [`DirectWire`] calls the server's handlers in process. [`GrpcWire`] sends the same messages through a real client to a
//! real server on loopback and waits; how long it waits never influences the run. A switch speaks only into its server's
//! outbox; whoever runs the events asks for it with [`Wire::drain`].

pub mod direct;
pub mod grpc;

pub use direct::DirectWire;
pub use grpc::GrpcWire;

use crate::controller::messages::StreamNo;
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1::{StreamMessageRequest, StreamMessageResponse};
use crate::p4runtime::rpc::{Rpc, RpcResult, StreamEnd};
use crate::time::Time;

/// Which wire a run uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WireKind {
    /// In process.
    #[default]
    Direct,
    /// gRPC over loopback sockets.
    Grpc,
}

/// The wire itself broke. Not a fault of the simulated network: the run ends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// No answer although the watchdog waited.
    #[error(
        "switch '{switch}': {rpc} got no answer within {seconds} s of real time; is its server still running?"
    )]
    Stuck {
        /// Name of the switch.
        switch: String,
        /// The call.
        rpc: &'static str,
        /// How long the watchdog waits.
        seconds: u64,
    },
    /// The connection to a server is gone.
    #[error("switch '{switch}': {rpc} failed on the connection to its server: {reason}")]
    Connection {
        /// Name of the switch.
        switch: String,
        /// The call.
        rpc: &'static str,
        /// What the transport said.
        reason: String,
    },
    /// Server and runtime could not be started.
    #[error("cannot start the server of switch '{switch}': {reason}")]
    Start {
        /// Name of the switch.
        switch: String,
        /// Why.
        reason: String,
    },
    /// Fewer stream messages arrived than the server sent.
    #[error("switch '{switch}': {arrived} of {sent} stream messages arrived")]
    Lost {
        /// Name of the switch.
        switch: String,
        /// Messages that the server sent.
        sent: u64,
        /// Messages that the client got.
        arrived: u64,
    },
}

/// What the end of a broken stream says.
const RESET: &str = "connection reset";

/// What a switch said on a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A message.
    Message(StreamMessageResponse),
    /// The stream is over.
    Ended(StreamEnd),
}

/// Exchanges with switches. Blocking; called only from the event loop.
pub trait Wire: Send {
    /// Opens a stream.
    fn open(&mut self, switch: SwitchId, now: Time, stream: StreamNo) -> Result<(), WireError>;
    /// Makes a call; the answer of the server, whatever it is, is the inner result.
    fn call(&mut self, switch: SwitchId, now: Time, rpc: Rpc) -> Result<RpcResult, WireError>;
    /// Sends messages over a stream, in order. A stream that has ended swallows them.
    fn send(
        &mut self,
        switch: SwitchId,
        now: Time,
        stream: StreamNo,
        messages: &[StreamMessageRequest],
    ) -> Result<(), WireError>;
    /// Closes a stream from the client's side.
    fn close(&mut self, switch: SwitchId, now: Time, stream: StreamNo) -> Result<(), WireError>;
    /// Ends every stream of a switch from the server's side, as a broken connection does.
    fn break_streams(&mut self, switch: SwitchId, now: Time) -> Result<(), WireError>;
    /// What the switch has said since the last call, in its order.
    fn drain(&mut self, switch: SwitchId, now: Time) -> Result<Vec<(StreamNo, Said)>, WireError>;
}
