//! The events. In: nothing. Out: plain values with names and numbers as text, in the form of `-o json`. Must not know how
//! they are found.

use serde::Serialize;
use std::fmt;

/// Something happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Which packet: 0 is the first that came in; copies and second passes have numbers of their own.
    pub packet: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: Kind,
}

/// A name and a value in hexadecimal, as wide as the field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// Field or parameter.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A match field of an entry: value, `value/length`, `value&mask`, `low..high` or `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Match {
    /// The field.
    pub name: String,
    /// What the entry wants.
    pub value: String,
}

/// The entry that a packet hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// What it matches.
    pub matches: Vec<Match>,
    /// Larger wins; 0 where the table has no priorities.
    pub priority: i32,
    /// The program made it.
    pub constant: bool,
    /// The member or group that it names, in a table with an action profile.
    pub through: Option<String>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are explained by their variant")]
pub enum Kind {
    /// It came in by a port.
    Received { port: u16, length: usize, bytes: String },
    /// A pass begins: parser and ingress. `instance_type` is v1model's.
    Ingress { instance_type: u64 },
    /// The parser entered a state.
    State { state: String },
    /// A header became valid: extracted in the parser, or made by an action.
    Header { header: String, extracted: bool, fields: Vec<Named> },
    /// A header became invalid.
    Removed { header: String },
    /// The parser is done; `error` is null without one. `payload` bytes were not extracted.
    Parsed { error: Option<String>, payload: usize },
    /// A checksum was verified.
    Checksum { field: String, good: bool },
    /// A condition between tables.
    Condition { condition: String, holds: bool },
    /// A table was applied.
    Table { table: String, key: Vec<Named>, hit: bool, entry: Option<Entry> },
    /// An action runs.
    Action { action: String, parameters: Vec<Named> },
    /// A field changed.
    Changed { field: String, from: String, to: String },
    /// The program called something: counter, register, meter, clone, log…
    Call { what: String },
    /// A digest is on its way to the controller, or lost because the same is.
    Digest { name: String, fields: Vec<String> },
    /// Another packet was made of this one: a clone, a replica, or its next pass.
    Copy { copy: u32, why: &'static str },
    /// It waits in a queue that held `depth` packets.
    Queued { port: u16, queue: u8, depth: u32 },
    /// Its turn has come: egress.
    Egress { port: u16, queue: u8, waited_us: u64, left: u32 },
    /// It is gone.
    Dropped { reason: &'static str, meaning: &'static str },
    /// It left.
    Sent { port: u16, length: usize, bytes: String },
    /// It went to the controller.
    PacketIn { length: usize, bytes: String },
}

fn list(items: &[Named]) -> String {
    items.iter().map(|item| format!("{}={}", item.name, item.value)).collect::<Vec<_>>().join(" ")
}

/// One line without the packet's number.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Received { port, length, bytes } => {
                write!(f, "in   port {port}, {length} bytes: {bytes}")
            }
            Self::Ingress { instance_type } => write!(f, "ingress, instance type {instance_type}"),
            Self::State { state } => write!(f, "  state {state}"),
            Self::Header { header, extracted, fields } => {
                let how = if *extracted { "extracts" } else { "adds" };
                write!(f, "    {how} {header}: {}", list(fields))
            }
            Self::Removed { header } => write!(f, "    removes {header}"),
            Self::Parsed { error: None, payload } => {
                write!(f, "  parsed; {payload} bytes of payload")
            }
            Self::Parsed { error: Some(error), payload } => {
                write!(f, "  parser error {error}; {payload} bytes of payload")
            }
            Self::Checksum { field, good } => {
                write!(f, "  checksum {field} is {}", if *good { "right" } else { "wrong" })
            }
            Self::Condition { condition, holds } => {
                write!(f, "  if {condition}: {}", if *holds { "yes" } else { "no" })
            }
            Self::Table { table, key, hit, entry } => {
                table_line(f, table, key, *hit, entry.as_ref())
            }
            Self::Action { action, parameters } => write!(f, "    {action}({})", list(parameters)),
            Self::Changed { field, from, to } => write!(f, "      {field}: {from} -> {to}"),
            Self::Call { what } => write!(f, "      {what}"),
            Self::Digest { name, fields } => write!(f, "  digest {name}: {}", fields.join(" ")),
            Self::Copy { copy, why } => write!(f, "  {why}: packet {copy}"),
            Self::Queued { port, queue, depth } => {
                write!(f, "queue {queue} of port {port}, {depth} packets in it")
            }
            Self::Egress { port, queue, waited_us, left } => write!(
                f,
                "egress, port {port}, queue {queue}, waited {waited_us} us, {left} packets left"
            ),
            Self::Dropped { meaning, .. } => write!(f, "drop: {meaning}"),
            Self::Sent { port, length, bytes } => {
                write!(f, "out  port {port}, {length} bytes: {bytes}")
            }
            Self::PacketIn { length, bytes } => {
                write!(f, "out  to the controller, {length} bytes: {bytes}")
            }
        }
    }
}

fn table_line(
    f: &mut fmt::Formatter<'_>,
    table: &str,
    key: &[Named],
    hit: bool,
    entry: Option<&Entry>,
) -> fmt::Result {
    write!(f, "  table {table}: {}", if hit { "hit" } else { "miss" })?;
    if !key.is_empty() {
        write!(f, " for {}", list(key))?;
    }
    let Some(entry) = entry else { return Ok(()) };
    let matches: Vec<String> =
        entry.matches.iter().map(|one| format!("{}={}", one.name, one.value)).collect();
    write!(f, "\n    entry {}", matches.join(" "))?;
    if entry.priority != 0 {
        write!(f, " priority {}", entry.priority)?;
    }
    if entry.constant {
        write!(f, " of the program")?;
    }
    match &entry.through {
        Some(through) => write!(f, ", {through}"),
        None => Ok(()),
    }
}
