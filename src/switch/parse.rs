//! Parsers. In: packet bytes. Out: headers in the packet header vector, the payload's position, a parser error. Must
//! not know which protocol a header belongs to.

use crate::switch::{
    exec::pack,
    phv::FieldRef,
    program::{ValueSetNo, index},
    state::State,
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

/// What a transition compares the key with. Limbs lie as in the packed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// Always.
    Default,
    /// Equal under a mask; `value` is already masked.
    Value {
        /// Wanted bits.
        value: Box<[u64]>,
        /// Bits that count.
        mask: Box<[u64]>,
    },
    /// Member of a value set.
    Set(ValueSetNo),
}

/// One way out of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When it is taken; the first that fits wins.
    pub when: Matcher,
    /// The next state; `None` accepts.
    pub next: Option<StateNo>,
}

/// A part of a state's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Where the value is once the state's code has run.
    pub at: FieldRef,
    /// First limb of the packed key (see [`crate::switch::program::KeyField`]).
    pub limb: u32,
    /// Bit within that limb.
    pub shift: u32,
}

/// A parser state.
#[derive(Clone, Debug)]
pub struct ParseState {
    /// Name.
    pub name: String,
    /// First instruction in `Program::code`.
    pub entry: u32,
    /// The key, most significant part first.
    pub key: Vec<KeyPart>,
    /// Limbs of the packed key.
    pub key_limbs: usize,
    /// In order; a default is last.
    pub transitions: Vec<Transition>,
}

/// Widest key of a value set, in limbs: 512 bits hold two IPv6 addresses with their ports and more.
pub const MAX_SET_LIMBS: usize = 8;

impl ParseState {
    /// The state to go to, with `key` as scratch space; accepts when nothing fits (BMv2 knows no `NoMatch`).
    pub fn next<S: State>(&self, state: &S, slots: &[u64], key: &mut [u64]) -> Option<StateNo> {
        let key = &mut key[..self.key_limbs];
        key.fill(0);
        for part in &self.key {
            pack(key, part.limb, part.shift, slots, part.at);
        }
        let fits = |transition: &&Transition| match &transition.when {
            Matcher::Default => true,
            Matcher::Value { value, mask } => {
                key.iter().zip(value).zip(mask).all(|((k, v), m)| k & m == *v)
            }
            Matcher::Set(set) => {
                let (joined, limbs) = self.join(slots);
                state.value_set_contains(*set, &joined[..limbs])
            }
        };
        self.transitions.iter().find(fits).and_then(|t| t.next)
    }

    /// The key as one number without padding between its parts, as value sets hold it.
    fn join(&self, slots: &[u64]) -> ([u64; MAX_SET_LIMBS], usize) {
        let mut out = [0; MAX_SET_LIMBS];
        let mut at = 0;
        for part in self.key.iter().rev() {
            let mut left = part.at.width;
            for i in 0..part.at.limbs() {
                let (limb, shift) = (at / 64, at % 64);
                let value = slots[part.at.slot as usize + i];
                if let Some(low) = out.get_mut(limb) {
                    *low |= value << shift;
                }
                if shift > 0
                    && let Some(high) = out.get_mut(limb + 1)
                {
                    *high |= value >> (64 - shift);
                }
                at += left.min(64) as usize;
                left = left.saturating_sub(64);
            }
        }
        (out, at.div_ceil(64).min(MAX_SET_LIMBS))
    }
}
