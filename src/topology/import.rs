//! Fabrics that people already have as files.
//!
//! In: the text of a file and its name for messages, options for what the file does not say. Out: an [`Imported`] fabric
//! with notes on what was assumed; or the line and column of what cannot be read. Must not know: the file system.

use super::{Topology, TopologyError};
use crate::id::PortNo;

mod lingjun;
mod locate;
mod p4utils;

pub use lingjun::{Lingjun, lingjun};
pub use p4utils::{P4Utils, p4utils};

/// Most nodes of an imported fabric: above anything that one controller runs, below what fills memory.
pub const MAX_NODES: usize = 65_536;

/// A fabric read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The fabric.
    pub topology: Topology,
    /// What the file does not say and was assumed, and what was merged or ignored: one sentence each.
    pub notes: Vec<String>,
}

/// Why a fabric file cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", place(file, *line, *column))]
pub struct ImportError {
    /// Name of the file as given.
    pub file: String,
    /// Line from 1; 0 when the whole file is meant.
    pub line: u64,
    /// Column from 1; 0 when the whole line is meant.
    pub column: u64,
    /// What, and what to do. The message above contains it whole, so it is no `source`.
    pub problem: Box<ImportProblem>,
}

fn place(file: &str, line: u64, column: u64) -> String {
    match (line, column) {
        (0, _) => file.to_owned(),
        (line, 0) => format!("{file}:{line}"),
        (line, column) => format!("{file}:{line}:{column}"),
    }
}

/// What is wrong with a fabric file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportProblem {
    /// Not text.
    #[error("not UTF-8 text; save the file as UTF-8, or is this the right file?")]
    NotText,
    /// The CSV reader gave up.
    #[error("not valid CSV: {message}")]
    Csv {
        /// What it says.
        message: String,
    },
    /// A column that has to be there.
    #[error(
        "the header has no column '{column}'; the first line must be ip,DSW,PSW,ASW (it is {header})"
    )]
    MissingColumn {
        /// The column.
        column: &'static str,
        /// The header found.
        header: String,
    },
    /// A row with too few or too many fields.
    #[error("this row has {found} fields and the header {wanted}; complete or remove the row")]
    Fields {
        /// Fields found.
        found: usize,
        /// Fields of the header.
        wanted: usize,
    },
    /// A field that is empty.
    #[error("column '{column}' is empty; fill it or remove the row")]
    Empty {
        /// The column.
        column: String,
    },
    /// A name that tables, paths and messages could not show.
    #[error(
        "'{name}' cannot be a name; use 1 to 128 visible characters without spaces, ':' or quotes"
    )]
    BadName {
        /// What was written.
        name: String,
    },
    /// A host in two rows.
    #[error("host '{name}' has already been given in line {first}; a host has one rack")]
    HostTwice {
        /// The host.
        name: String,
        /// Where first.
        first: u64,
    },
    /// A rack with more hosts than addresses.
    #[error("rack {rack} has more than {max} hosts; a rack is one /24 prefix, split it")]
    RackFull {
        /// The rack.
        rack: String,
        /// Most.
        max: u32,
    },
    /// An option that makes no sense.
    #[error("{option} is 0; give at least 1")]
    ZeroOption {
        /// The option.
        option: &'static str,
    },
    /// More nodes than supported.
    #[error("the fabric has more than {max} nodes; split the file")]
    TooLarge {
        /// Most.
        max: usize,
    },
    /// Not JSON.
    #[error("not valid JSON: {message}; correct it, or is this the right file?")]
    Json {
        /// What the parser says.
        message: String,
    },
    /// A value of the wrong type.
    #[error("{element} must be {wanted}")]
    WrongType {
        /// Which element.
        element: String,
        /// What it must be.
        wanted: &'static str,
    },
    /// A key that has to be there.
    #[error("{element} has no key '{key}'; add it: a topology.json has hosts, switches and links")]
    MissingKey {
        /// Which element.
        element: String,
        /// The key.
        key: &'static str,
    },
    /// A link that names a node that was not declared.
    #[error("{element} names '{name}', which is in neither hosts nor switches{hint}")]
    UnknownNode {
        /// Which link.
        element: String,
        /// The name.
        name: String,
        /// "did you mean" or nothing.
        hint: String,
    },
    /// A port that is no number, or none that a switch has.
    #[error("{element}: '{text}' is no port; write switch-pN with N in 1..={max}, such as s1-p3")]
    BadPort {
        /// Which link.
        element: String,
        /// What was written.
        text: String,
        /// Largest port.
        max: u16,
    },
    /// An address that cannot be read.
    #[error("{element}: '{text}' is no {what}; write for example {example}")]
    BadAddress {
        /// Which host.
        element: String,
        /// What was written.
        text: String,
        /// IPv4 address or Ethernet address.
        what: &'static str,
        /// What would have been right.
        example: &'static str,
    },
    /// A bandwidth or delay that cannot be read.
    #[error("{element}: {what} is {text}; write {example}")]
    BadQuantity {
        /// Which link.
        element: String,
        /// Bandwidth or delay.
        what: &'static str,
        /// What was written.
        text: String,
        /// What would have been right.
        example: &'static str,
    },
    /// The nodes and cables are no fabric.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Whether a name can be shown and written everywhere.
fn good_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= 128
        && name.chars().all(|c| c.is_ascii_graphic() && !":\"'`\\".contains(c))
}

/// Splits `s1-p3` into the node and its port, when the port part is there.
fn split_port(end: &str) -> (&str, Option<&str>) {
    match end.rsplit_once("-p") {
        Some((node, port)) if !port.is_empty() => (node, Some(port)),
        _ => (end, None),
    }
}

fn read_port(text: &str) -> Option<PortNo> {
    text.parse().ok().filter(|port| (1..=super::MAX_PORT).contains(port)).map(PortNo)
}

#[cfg(test)]
mod tests;
