//! Parsers. In: packet bytes. Out: headers in the packet header vector, the payload's position, a parser error. Must
//! not know which protocol a header belongs to.

use crate::switch::{
    phv::FieldRef,
    program::{ValueSetNo, index},
};

index!(
    /// A state, over all parsers.
    StateNo
);

/// A parser: a first state; `Program::states` holds the rest.
#[derive(Clone, Debug)]
pub struct Parser {
    /// Name.
    pub name: String,
    /// Where it starts.
    pub first: StateNo,
}

/// What a transition compares the key with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Always.
    Default,
    /// Equal under a mask; limbs as in the packed key, `value` already masked.
    Value {
        /// Wanted bits.
        value: Box<[u64]>,
        /// Bits that count.
        mask: Box<[u64]>,
    },
    /// Member of a value set; the mask is applied to the key.
    Set {
        /// The set.
        set: ValueSetNo,
        /// Bits that count.
        mask: Box<[u64]>,
    },
}

/// One way out of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When it is taken; the first that fits wins.
    pub when: Matcher,
    /// The next state; `None` accepts.
    pub next: Option<StateNo>,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct ParseState {
    /// Name.
    pub name: String,
    /// First instruction in `Program::code`.
    pub entry: u32,
    /// The key, most significant part first, read after the code has run. Its bits are concatenated without padding.
    pub key: Vec<FieldRef>,
    /// Width of the key in bits.
    pub key_width: u32,
    /// In order.
    pub transitions: Vec<Transition>,
}
