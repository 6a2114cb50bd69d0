//! Why a program was refused. In: nothing. Out: one variant per kind of defect; each names the element, its place in
//! the P4 source if the JSON tells it, and what to do.

use std::fmt;
use thiserror::Error;

/// Where in the program an error sits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The element, e.g. ``table `MyIngress.route` ``.
    pub element: String,
    /// `file(line)` of the P4 source, from `source_info`.
    pub source: Option<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{} at {source}", self.element),
            None => f.write_str(&self.element),
        }
    }
}

/// A BMv2 JSON program that this switch does not run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum LoadError {
    #[error(
        "the program is not JSON: {source}; give the .json file that p4c-bm2-ss writes, not the P4 source or the p4info"
    )]
    NotJson { source: serde_json::Error },
    #[error(
        "the program has {bytes} bytes, more than {limit}; compile without debug output or split it"
    )]
    TooLarge { bytes: usize, limit: usize },
    #[error(
        "JSON version {found} is not supported: this switch reads 2.0 to {newest}; recompile with a matching p4c-bm2-ss"
    )]
    Version { found: String, newest: String },
    #[error("{place}: attribute `{attribute}` is missing; recompile the program with p4c-bm2-ss")]
    Missing { place: Place, attribute: &'static str },
    #[error(
        "{place}: `{attribute}` should be {expected}, but is {found}; recompile the program with p4c-bm2-ss"
    )]
    WrongType { place: Place, attribute: String, expected: &'static str, found: String },
    #[error("{place}: {kind} `{name}` is defined twice; rename one of them")]
    Duplicate { place: Place, kind: &'static str, name: String },
    #[error("{place}: there is no {kind} `{name}`; define it or correct the reference")]
    Unknown { place: Place, kind: &'static str, name: String },
    #[error(
        "{place}: `{name}` is {width} bits wide; widths from 1 to {limit} are supported, choose another type"
    )]
    Width { place: Place, name: String, width: i64, limit: u32 },
    #[error(
        "{place}: its fields total {bits} bits, not whole bytes; pad the header to a multiple of 8 bits"
    )]
    HeaderNotBytes { place: Place, bits: u64 },
    #[error(
        "{place}: a header may have one variable-length field; `{name}` is the second, split the header"
    )]
    SecondVarbit { place: Place, name: String },
    #[error("{place}: `{text}` is not a hexadecimal number; write it like 0x1f")]
    Hex { place: Place, text: String },
    #[error(
        "{place}: {what} `{name}` is not supported by this switch; express it otherwise or open an issue with the program"
    )]
    Unsupported { place: Place, what: &'static str, name: String },
    #[error("{place}: `{op}` takes {expected} parameters, not {found}; correct the call")]
    ParameterCount { place: Place, op: String, expected: &'static str, found: usize },
    #[error(
        "{place}: parameter {position} of `{op}` should be {expected}, but is {found}; correct the call"
    )]
    ParameterType {
        place: Place,
        op: String,
        position: usize,
        expected: &'static str,
        found: String,
    },
    #[error("{place}: operator `{op}` needs {expected} operands; correct the expression")]
    OperandType { place: Place, op: String, expected: &'static str },
    #[error(
        "{place}: the expression is nested deeper than {limit}; split it with intermediate variables"
    )]
    TooDeep { place: Place, limit: usize },
    #[error(
        "{place}: jump to {target}, but the action has {length} statements; recompile the program"
    )]
    Jump { place: Place, target: i64, length: usize },
    #[error(
        "{place}: a transition value has {found} bytes where the key has {expected}; correct the constant's width"
    )]
    TransitionWidth { place: Place, expected: usize, found: usize },
    #[error("{place}: value set `{set}` has {set_bits} bits, its key {key_bits}; make them equal")]
    ValueSetWidth { place: Place, set: String, set_bits: u32, key_bits: u32 },
    #[error(
        "{place}: match type `{table}` does not cover its key field of type `{field}`; correct `match_type`"
    )]
    MatchType { place: Place, table: String, field: String },
    #[error(
        "{place}: the key has {count} lpm fields; at most one is possible, use ternary for the rest"
    )]
    SecondLpm { place: Place, count: usize },
    #[error("{place}: action `{action}` is not among the table's actions; add it to `actions`")]
    ActionNotInTable { place: Place, action: String },
    #[error("{place}: action `{action}` takes {expected} values, not {found}; correct the entry")]
    ActionData { place: Place, action: String, expected: usize, found: usize },
    #[error(
        "{place}: entry {entry} has {found} match fields, the key has {expected}; correct the entry"
    )]
    EntryKey { place: Place, entry: usize, expected: usize, found: usize },
    #[error("{place}: value `{text}` does not fit {width} bits; correct the entry")]
    Value { place: Place, text: String, width: u32 },
    #[error("{place}: the control flow comes back to it, which would never end; break the cycle")]
    Cycle { place: Place },
    #[error(
        "there is no {kind} `{name}`, which v1model needs; compile with p4c-bm2-ss --arch v1model"
    )]
    NotV1model { kind: &'static str, name: &'static str },
    #[error("{place}: {what}: {found} is more than {limit}; make the program smaller")]
    TooMany { place: Place, what: &'static str, found: u64, limit: u64 },
    #[error(
        "{place}: `{left}` and `{right}` have different types; copy between instances of one type"
    )]
    TypeMismatch { place: Place, left: String, right: String },
    #[error(
        "{place}: table type `{table_type}` does not fit profile `{profile}`: {why}; correct `type`"
    )]
    Profile { place: Place, table_type: String, profile: String, why: &'static str },
}
