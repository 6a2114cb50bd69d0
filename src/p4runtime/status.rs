//! gRPC statuses with P4Runtime's details, both ways (section 12.3).
//! In: failures of calls and ends of streams, or tonic's statuses. Out: the other. Must not know calls.

use crate::p4runtime::proto::google::rpc::Status as Details;
use crate::p4runtime::proto::p4::v1::Error;
use crate::p4runtime::rpc::{Code, Failure, StreamEnd};
use prost::Message as _;
use prost_types::Any;
use std::error::Error as _;
use tonic::Status;

/// Header bytes that a client should take besides the details (specification, appendix on metadata size).
pub const HEADER_BYTES: u32 = 8 * 1024;
/// Header bytes per update that a client should take, from the same appendix. Texts are cut so that we stay below.
pub const HEADER_BYTES_PER_UPDATE: u32 = 100;
/// Type of the details in an Any.
const ERROR_URL: &str = "type.googleapis.com/p4.v1.Error";
/// Bytes of details left for texts per update: base64 makes 3 bytes into 4, and the Any around an Error takes 40.
const TEXT_BYTES_PER_UPDATE: usize = (HEADER_BYTES_PER_UPDATE as usize) * 3 / 4 - 40;
/// Texts of a batch may take this much more together, the other half of `HEADER_BYTES` in base64.
const TEXT_BYTES: usize = (HEADER_BYTES as usize) / 2 * 3 / 4;

/// Longest text of a status. Texts quote what the client sent, which may be anything; a header list that is too long
/// would lose the code with it.
const TEXT_MAX: usize = 1_024;

/// The text, cut to `TEXT_MAX` bytes.
fn clipped(text: &str) -> String {
    if text.len() <= TEXT_MAX {
        return text.to_owned();
    }
    let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// The status that a server sends for a failed call.
#[must_use]
pub fn to_status(failure: &Failure) -> Status {
    let code = tonic::Code::from_i32(failure.code.number());
    if failure.updates.is_empty() {
        return Status::new(code, clipped(&failure.message));
    }
    let mut left = TEXT_BYTES + TEXT_BYTES_PER_UPDATE * failure.updates.len();
    let details = failure
        .updates
        .iter()
        .map(|error| {
            let mut error = error.clone();
            // Codes always travel; texts as long as there is room, because a header list that is too long loses all.
            if error.message.len() > left {
                error.message = String::new();
            }
            left -= error.message.len();
            Any { type_url: ERROR_URL.to_owned(), value: error.encode_to_vec() }
        })
        .collect();
    let details =
        Details { code: failure.code.number(), message: failure.message.clone(), details };
    Status::with_details(code, failure.message.clone(), details.encode_to_vec().into())
}

/// The failure in a status that a client received. Details that do not decode are ignored: the code still counts.
#[must_use]
pub fn to_failure(status: &Status) -> Failure {
    let details = Details::decode(status.details()).unwrap_or_default();
    let updates = details
        .details
        .iter()
        .filter(|any| any.type_url.rsplit('/').next() == Some("p4.v1.Error"))
        .filter_map(|any| Error::decode(any.value.as_slice()).ok())
        .collect();
    Failure { code: code(status), message: status.message().to_owned(), updates }
}

/// The end of a stream in a status that a client received.
#[must_use]
pub fn to_end(status: &Status) -> StreamEnd {
    StreamEnd { code: code(status), message: status.message().to_owned() }
}

/// The code of a status. The library calls a call cancelled when its time is over, when its connection has ended before it was sent whole, and when
/// the server reset its stream; a server that cancels one in the protocol sends a status of its own, which has no error as its source.
fn code(status: &Status) -> Code {
    let code = Code::from_number(i32::from(status.code()));
    let mut causes = std::iter::successors(status.source(), |&error| error.source()).peekable();
    match code {
        Code::Cancelled if causes.peek().is_none() => code,
        Code::Cancelled if causes.any(|error| error.is::<tonic::TimeoutExpired>()) => {
            Code::DeadlineExceeded
        }
        Code::Cancelled => Code::Unavailable,
        code => code,
    }
}

/// The status with which a server ends a stream.
#[must_use]
pub fn from_end(end: &StreamEnd) -> Status {
    Status::new(tonic::Code::from_i32(end.code.number()), clipped(&end.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(updates: usize, text: usize) -> Failure {
        let error =
            |index| Error { canonical_code: index, message: "x".repeat(text), ..Error::default() };
        let updates = (0..i32::try_from(updates).unwrap()).map(|index| error(index % 17)).collect();
        Failure { code: Code::Unknown, message: "some failed".to_owned(), updates }
    }

    #[test]
    fn details_survive_the_way_there_and_back() {
        let failure = failure(3, 20);
        assert_eq!(to_failure(&to_status(&failure)), failure);
        let plain = Failure::new(Code::PermissionDenied, "not primary");
        assert_eq!(to_failure(&to_status(&plain)), plain);
        let end = StreamEnd { code: Code::NotFound, message: "no device".to_owned() };
        assert_eq!(to_end(&from_end(&end)), end);
    }

    #[test]
    fn a_call_that_lost_its_connection_or_its_time_is_told_from_one_that_a_server_cancelled() {
        #[derive(Debug, thiserror::Error)]
        #[error("the call ended")]
        struct Ended<E: std::error::Error + 'static>(#[source] E);
        let lost = Status::from_error(Box::new(Ended(Status::cancelled("operation was canceled"))));
        let late = Status::from_error(Box::new(Ended(tonic::TimeoutExpired(()))));
        for (status, told) in [(&lost, Code::Unavailable), (&late, Code::DeadlineExceeded)] {
            assert_eq!(status.code(), tonic::Code::Cancelled);
            assert_eq!((to_failure(status).code, to_end(status).code), (told, told));
        }
        assert_eq!(to_failure(&Status::cancelled("by the server")).code, Code::Cancelled);
    }

    #[test]
    fn a_text_that_quotes_a_megabyte_is_cut_at_a_letter() {
        let failure = Failure::new(Code::NotFound, "é".repeat(1 << 20));
        let status = to_status(&failure);
        assert!(status.message().len() < 2 * TEXT_MAX && status.message().ends_with("é..."));
    }

    #[test]
    fn long_texts_are_dropped_before_the_header_list_overflows_and_codes_stay() {
        for updates in [1, 50, 500] {
            let status = to_status(&failure(updates, 3_000));
            let limit = HEADER_BYTES as usize + HEADER_BYTES_PER_UPDATE as usize * updates;
            assert!(status.details().len() * 4 / 3 < limit, "{updates}");
            let back = to_failure(&status);
            assert_eq!(back.updates.len(), updates);
            assert_eq!(back.updates[updates - 1].canonical_code, (updates as i32 - 1) % 17);
        }
    }
}
