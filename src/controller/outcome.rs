//! What an answer to a Write means, and what to do about it.
//!
//! In: the code of an update or of a call. Out: a verdict. Must not know switches, keys, batches; it is the table of
//! the design (control, "Outcomes"), row by row.

use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::rpc::{Code, Failure};

/// What to do about one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateVerdict {
    /// The switch holds what the update asked for.
    Done,
    /// INSERT of a key that exists: read it; ours and equal is done, ours and different wants a MODIFY, foreign is a
    /// conflict.
    Exists,
    /// MODIFY of a key that does not exist: what we believe has drifted. Insert, and read the whole switch.
    Drifted,
    /// The table is full: no retry; plan with that limit.
    Full,
    /// Wrong whatever is tried: surface it with the entry.
    Permanent,
    /// It may have been done or not: read the key, a bounded number of times.
    Unclear,
}

/// What to do about a call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallVerdict {
    /// Look at each update's own code.
    PerUpdate,
    /// Not primary any more: stop writing, start the session again.
    NotPrimary,
    /// Pipeline or device gone: start the session again.
    PipelineGone,
    /// The switch may have done all, some or none: taint every key, read before writing them again.
    Unknown,
    /// As `Unknown`, and the batch was too large: halve it.
    TooLarge,
    /// Something in the batch is wrong and the answer does not say what: find it by halves; a single update is refused
    /// for good.
    Malformed,
}

/// The verdict on one update of a Write. `full` says that the update's table holds as many entries as it is declared
/// to: BMv2 answers UNKNOWN then (PI's device manager, table insert).
#[must_use]
pub const fn update(kind: Type, code: Code, full: bool) -> UpdateVerdict {
    match (code, kind) {
        (Code::Ok, _) | (Code::NotFound, Type::Delete) => UpdateVerdict::Done,
        (Code::AlreadyExists, _) => UpdateVerdict::Exists,
        (Code::NotFound, Type::Modify) => UpdateVerdict::Drifted,
        (Code::ResourceExhausted, _) => UpdateVerdict::Full,
        (Code::Unknown, Type::Insert) if full => UpdateVerdict::Full,
        (
            Code::InvalidArgument
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::PermissionDenied
            // An INSERT that something it leans on is missing for, although we wrote that first.
            | Code::NotFound
            | Code::FailedPrecondition
            | Code::Unauthenticated,
            _,
        ) => UpdateVerdict::Permanent,
        _ => UpdateVerdict::Unclear,
    }
}

/// The verdict on a failed Write of `updates` updates.
#[must_use]
pub fn call(failure: &Failure, updates: usize) -> CallVerdict {
    // Details are one per update, in order, the successful ones included; anything else cannot be assigned.
    if !failure.updates.is_empty() && failure.updates.len() == updates {
        return CallVerdict::PerUpdate;
    }
    match failure.code {
        Code::PermissionDenied | Code::Unauthenticated => CallVerdict::NotPrimary,
        Code::FailedPrecondition | Code::NotFound => CallVerdict::PipelineGone,
        Code::ResourceExhausted => CallVerdict::TooLarge,
        Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented => CallVerdict::Malformed,
        _ => CallVerdict::Unknown,
    }
}

/// Whether a Read was refused because the target does not offer what it asks for: BMv2's server fails the whole call with
/// UNIMPLEMENTED, one that follows the specification (13.3) says so for each pattern.
#[must_use]
pub fn not_offered(failure: &Failure) -> bool {
    let code = Code::Unimplemented;
    let each = failure.updates.iter().all(|update| update.canonical_code == code.number());
    failure.code == code || (!failure.updates.is_empty() && each)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4runtime::proto::p4::v1::Error;

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

    /// One letter per code, in the order of their numbers: done, exists, drifted, full, permanent, unclear.
    fn row(kind: Type, full: bool) -> String {
        let letter = |code| match update(kind, code, full) {
            UpdateVerdict::Done => 'd',
            UpdateVerdict::Exists => 'e',
            UpdateVerdict::Drifted => 'r',
            UpdateVerdict::Full => 'f',
            UpdateVerdict::Permanent => 'p',
            UpdateVerdict::Unclear => 'u',
        };
        CODES.into_iter().map(letter).collect()
    }

    #[test]
    fn every_code_of_an_update_has_the_verdict_of_the_table() {
        // Columns: OK CAN UNK INV DEA NOT ALR PER RES FAI ABO OUT UNI INT UNA DAT UNA
        assert_eq!(row(Type::Insert, false), "duupupepfpuppuuup");
        assert_eq!(row(Type::Insert, true), "dufpupepfpuppuuup");
        assert_eq!(row(Type::Modify, false), "duupurepfpuppuuup");
        assert_eq!(row(Type::Modify, true), "duupurepfpuppuuup");
        assert_eq!(row(Type::Delete, false), "duupudepfpuppuuup");
    }

    #[test]
    fn every_code_of_a_call_has_the_verdict_of_the_table() {
        let verdict = |code| match call(&Failure::new(code, ""), 3) {
            CallVerdict::PerUpdate => '?',
            CallVerdict::NotPrimary => 'n',
            CallVerdict::PipelineGone => 'g',
            CallVerdict::Unknown => 'u',
            CallVerdict::TooLarge => 't',
            CallVerdict::Malformed => 'm',
        };
        assert_eq!(CODES.into_iter().map(verdict).collect::<String>(), "uuumuguntgummuuun");
    }

    #[test]
    fn details_count_only_when_there_is_one_per_update() {
        let mut failure = Failure::new(Code::Unknown, "");
        failure.updates = vec![Error::default(); 2];
        assert_eq!(call(&failure, 2), CallVerdict::PerUpdate);
        assert_eq!(call(&failure, 3), CallVerdict::Unknown);
    }
}
