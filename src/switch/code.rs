//! Instructions. In: nothing. Out: the compact form of actions, conditions, parser states. Must not know JSON.
//!
//! Operands are slots of the packet header vector ([`crate::switch::phv`]): `d` is written, `a`, `b`, `c` are read.
//! Arithmetic is on 64-bit patterns modulo 2^64; the compiler (`expr`) uses it only where that equals arithmetic on
//! integers of any size, and otherwise emits [`Op::Wide`]. `w` cuts the result to that many bits (64 = all).

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the operands are explained above; names are those of the operations"
)]
pub enum Op {
    /// End of the code.
    End,
    /// d = a.
    Move { w: u8, d: u32, a: u32 },
    /// d = a + b.
    Add { w: u8, d: u32, a: u32, b: u32 },
}
