//! Deparsers. In: headers and the payload. Out: bytes. Must not know what the bytes are for.

use crate::switch::phv::HeaderNo;

/// A deparser.
#[derive(Clone, Debug)]
pub struct Deparser {
    /// Name.
    pub name: String,
    /// Headers in wire order; invalid ones are skipped.
    pub order: Vec<HeaderNo>,
    /// First instruction of statements that run before (`primitives`), if any.
    pub entry: Option<u32>,
}
