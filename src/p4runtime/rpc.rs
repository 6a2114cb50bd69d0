//! One remote call as a value, so that cores can return calls and receive answers without knowing any transport.
//! In: generated messages. Out: `Rpc`, `RpcResult`. Must not know sockets, sessions or switches.

use crate::p4runtime::proto::google::rpc as google;
use crate::p4runtime::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, Error, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, SetForwardingPipelineConfigRequest,
    WriteRequest,
};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The canonical codes of gRPC (google/rpc/code.proto), without the meaning that P4Runtime gives them per call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// 0: success.
    Ok,
    /// 1: the caller gave up.
    Cancelled,
    /// 2: no better code; a Write with per-update details.
    Unknown,
    /// 3: wrong whatever the state of the server is.
    InvalidArgument,
    /// 4: time ran out; the call may have been executed.
    DeadlineExceeded,
    /// 5: does not exist.
    NotFound,
    /// 6: exists already.
    AlreadyExists,
    /// 7: not primary, outside the role, or constant.
    PermissionDenied,
    /// 8: a table or limit is full.
    ResourceExhausted,
    /// 9: no pipeline yet.
    FailedPrecondition,
    /// 10: given up because another update of the batch failed.
    Aborted,
    /// 11: a number beyond its range.
    OutOfRange,
    /// 12: not offered.
    Unimplemented,
    /// 13: the server broke its own promise.
    Internal,
    /// 14: not reachable now; the call may have been executed.
    Unavailable,
    /// 15: data is gone.
    DataLoss,
    /// 16: the caller has not said who it is.
    Unauthenticated,
}

/// Every code at the index of its number.
const CODES: [Code; 17] = [
    Code::Ok,
    Code::Cancelled,
    Code::Unknown,
    Code::InvalidArgument,
    Code::DeadlineExceeded,
    Code::NotFound,
    Code::AlreadyExists,
    Code::PermissionDenied,
    Code::ResourceExhausted,
    Code::FailedPrecondition,
    Code::Aborted,
    Code::OutOfRange,
    Code::Unimplemented,
    Code::Internal,
    Code::Unavailable,
    Code::DataLoss,
    Code::Unauthenticated,
];

impl Code {
    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The code of a number; every number that is not a code is `Unknown`, as gRPC asks.
    #[must_use]
    pub fn from_number(number: i32) -> Self {
        usize::try_from(number)
            .ok()
            .and_then(|index| CODES.get(index))
            .copied()
            .unwrap_or(Self::Unknown)
    }

    /// The name as in google/rpc/code.proto, for example `NOT_FOUND`.
    #[must_use]
    pub fn name(self) -> &'static str {
        google::Code::try_from(self.number()).map_or("UNKNOWN", |code| code.as_str_name())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One unary (or, for Read, server-streaming) call of the service `p4.v1.P4Runtime`.
#[derive(Clone, Debug, PartialEq)]
pub enum Rpc {
    /// Which version does the server speak?
    Capabilities(CapabilitiesRequest),
    /// Change entities.
    Write(WriteRequest),
    /// Read entities.
    Read(ReadRequest),
    /// Check, store or start a program.
    SetPipeline(SetForwardingPipelineConfigRequest),
    /// Which program runs?
    GetPipeline(GetForwardingPipelineConfigRequest),
}

impl Rpc {
    /// The method's name in the service, for messages and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Capabilities(_) => "Capabilities",
            Self::Write(_) => "Write",
            Self::Read(_) => "Read",
            Self::SetPipeline(_) => "SetForwardingPipelineConfig",
            Self::GetPipeline(_) => "GetForwardingPipelineConfig",
        }
    }
}

/// The answer to an `Rpc` that succeeded; the arm is that of the call.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// The server's version.
    Capabilities(CapabilitiesResponse),
    /// All updates were done.
    Write,
    /// The entities of all response messages, in order.
    Read(Vec<Entity>),
    /// It was done.
    SetPipeline,
    /// The program that runs.
    GetPipeline(GetForwardingPipelineConfigResponse),
}

/// The answer to an `Rpc` that failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code}: {message}{}", Outcomes(.updates))]
pub struct Failure {
    /// The call's code; `Unknown` with non-empty `updates` for a Write of which some updates failed.
    pub code: Code,
    /// The server's text.
    pub message: String,
    /// One outcome per update in the order of the request, those that succeeded included (code 0); empty when the
    /// call failed as a whole.
    pub updates: Vec<Error>,
}

impl Failure {
    /// A failure of the whole call.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), updates: Vec::new() }
    }
}

/// Names the first failed update, and how many failed.
struct Outcomes<'a>(&'a [Error]);

impl fmt::Display for Outcomes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut failed = self.0.iter().enumerate().filter(|(_, error)| error.canonical_code != 0);
        let Some((index, first)) = failed.next() else { return Ok(()) };
        let others = failed.count();
        write!(
            f,
            " (update {index}: {}: {}",
            Code::from_number(first.canonical_code),
            first.message
        )?;
        if others > 0 {
            write!(f, "; {others} more failed")?;
        }
        f.write_str(")")
    }
}

/// What a call came to.
pub type RpcResult = Result<Reply, Failure>;

/// Why a stream ended; `Code::Ok` when the peer closed it in an orderly way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("stream ended: {code}: {message}")]
pub struct StreamEnd {
    /// The status of the stream.
    pub code: Code,
    /// The peer's text.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_numbers_and_names_are_those_of_the_protocol() {
        for number in 0..=16 {
            let code = Code::from_number(number);
            assert_eq!(code.number(), number);
            let theirs = google::Code::try_from(number).unwrap();
            assert_eq!(code.name(), theirs.as_str_name());
            let ours = format!("{code:?}").to_uppercase();
            assert_eq!(ours, theirs.as_str_name().replace('_', ""), "the variant names its number");
        }
        assert_eq!(Code::from_number(-1), Code::Unknown);
        assert_eq!(Code::from_number(17), Code::Unknown);
    }

    #[test]
    fn a_failure_names_the_first_update_that_failed_and_counts_the_rest() {
        let error = |code: Code, message: &str| Error {
            canonical_code: code.number(),
            message: message.to_owned(),
            ..Error::default()
        };
        let mut failure = Failure::new(Code::Unknown, "write failed");
        assert_eq!(failure.to_string(), "UNKNOWN: write failed");
        failure.updates = vec![
            error(Code::Ok, ""),
            error(Code::NotFound, "no such entry"),
            error(Code::Aborted, "x"),
        ];
        assert_eq!(
            failure.to_string(),
            "UNKNOWN: write failed (update 1: NOT_FOUND: no such entry; 1 more failed)"
        );
    }
}
