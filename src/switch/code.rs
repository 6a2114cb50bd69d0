//! Instructions. In: nothing. Out: the compact form of actions, conditions, parser states. Must not know JSON.
//!
//! Operands are slots of the packet header vector ([`crate::switch::phv`]): `d` is written, `a`, `b`, `c` are read.
//! Arithmetic is on 64-bit patterns modulo 2^64; the compiler (`expr`) uses it only where that equals arithmetic on
//! integers of any size, and otherwise emits [`Op::Wide`]. `w` cuts the result to that many bits (64 = all).
//! A *header slot* holds the number of a header chosen at run time, [`NOWHERE`] if there is no such header: reading it
//! gives 0, writing does nothing.

use crate::switch::phv::FieldRef;

/// The number that a header slot holds when the index was out of range.
pub const NOWHERE: u64 = u64::MAX;

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
    Move {
        w: u8,
        d: u32,
        a: u32,
    },
    /// d = the low w bits of a, sign extended to 64.
    Extend {
        w: u8,
        d: u32,
        a: u32,
    },
    Add {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Sub {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Mul {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Unsigned quotient; 0 when b is 0.
    Div {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Unsigned remainder; 0 when b is 0.
    Rem {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    And {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Or {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Xor {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Not {
        w: u8,
        d: u32,
        a: u32,
    },
    /// 0 when b is 64 or more.
    Shl {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Unsigned; 0 when b is 64 or more.
    Shr {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Signed.
    Sar {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// d = w bits at bit b (a constant, not a slot) of the limbs that start at a; the caller knows that they exist.
    Bits {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Eq {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    Ne {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Unsigned a < b.
    Less {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Unsigned a <= b.
    LessEq {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Signed a < b.
    LessSigned {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// Signed a <= b.
    LessEqSigned {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
    },
    /// d = c ? a : b.
    Select {
        w: u8,
        d: u32,
        a: u32,
        b: u32,
        c: u32,
    },
    /// d = a (signed) limited to the range of int<n>.
    Saturate {
        w: u8,
        n: u8,
        d: u32,
        a: u32,
    },
    /// d = a limited to the range of bit<n>; `signed` says how a is read.
    SaturateUnsigned {
        w: u8,
        n: u8,
        signed: bool,
        d: u32,
        a: u32,
    },
    /// Copy limbs: d of `dw` bits takes a of `aw` bits, cut or extended with zeros.
    Copy {
        d: u32,
        dw: u32,
        a: u32,
        aw: u32,
    },
    /// d of `dw` bits = value of the wide expression `e`.
    Wide {
        d: u32,
        dw: u32,
        e: u32,
    },
    Jump {
        to: u32,
    },
    JumpIfZero {
        a: u32,
        to: u32,
    },
    /// Jumps that may go backwards; they use up the packet's budget.
    JumpBack {
        to: u32,
    },
    JumpBackIfZero {
        a: u32,
        to: u32,
    },
    /// Leave the pipeline after this action.
    Exit,
    SetValid {
        h: u32,
    },
    SetInvalid {
        h: u32,
    },
    /// The same for the header named by header slot a.
    SetValidAt {
        a: u32,
    },
    SetInvalidAt {
        a: u32,
    },
    /// Header d = header a, validity included; both are header slots.
    AssignHeader {
        d: u32,
        a: u32,
    },
    /// Stack d = stack a (numbers).
    AssignStack {
        d: u32,
        a: u32,
    },
    /// Union d = union a; both are slots holding union numbers.
    AssignUnion {
        d: u32,
        a: u32,
    },
    /// Union stack d = union stack a (numbers).
    AssignUnionStack {
        d: u32,
        a: u32,
    },
    /// Shift stack s by the number in slot a: elements move up (push) or down (pop).
    Push {
        s: u32,
        a: u32,
    },
    Pop {
        s: u32,
        a: u32,
    },
    PushUnion {
        s: u32,
        a: u32,
    },
    PopUnion {
        s: u32,
        a: u32,
    },
    /// Header slot d = element of stack s at the index in slot a.
    Element {
        d: u32,
        s: u32,
        a: u32,
    },
    /// Header slot d = the last extracted element of stack s.
    Last {
        d: u32,
        s: u32,
    },
    /// Slot d = union number of union stack s at the index in slot a.
    UnionElement {
        d: u32,
        s: u32,
        a: u32,
    },
    /// Slot d = union number of the last extracted element of union stack s.
    UnionLast {
        d: u32,
        s: u32,
    },
    /// Header slot d = member m of the union whose number is in slot a.
    Member {
        d: u32,
        a: u32,
        m: u32,
    },
    /// d = field f of the header in header slot a.
    LoadField {
        d: u32,
        dw: u32,
        a: u32,
        f: u32,
    },
    /// Field f of the header in header slot d = the field at a of aw bits.
    StoreField {
        d: u32,
        f: u32,
        a: u32,
        aw: u32,
    },
    /// d = validity of the header in header slot a.
    ValidAt {
        d: u32,
        a: u32,
    },
    /// d = validity of the union whose number is in slot a.
    UnionValid {
        d: u32,
        a: u32,
    },
    /// d = both headers (header slots) are valid, of one type and equal.
    HeaderEq {
        d: u32,
        a: u32,
        b: u32,
    },
    /// d = both unions (slots) are valid with the same member and equal.
    UnionEq {
        d: u32,
        a: u32,
        b: u32,
    },
    /// The varbit field of header d = that of header a (numbers), length included.
    AssignVarbit {
        d: u32,
        a: u32,
    },
    /// d = b + calculation n modulo c.
    Hash {
        w: u8,
        d: u32,
        n: u32,
        b: u32,
        c: u32,
    },
    Count {
        n: u32,
        a: u32,
    },
    Meter {
        w: u8,
        d: u32,
        n: u32,
        a: u32,
    },
    /// d of dw bits = register n at the index in slot a; unchanged when out of range.
    RegisterRead {
        d: u32,
        dw: u32,
        n: u32,
        a: u32,
    },
    /// Register n at the index in slot a = b of bw bits.
    RegisterWrite {
        n: u32,
        a: u32,
        b: u32,
        bw: u32,
    },
    /// d = a draw from b..=c; unchanged when b > c.
    Random {
        w: u8,
        d: u32,
        b: u32,
        c: u32,
    },
    /// egress_spec = the drop port, mcast_grp = 0.
    Drop,
    /// The same in a copy of the standard metadata: d of dw bits = the drop port, a of aw bits = 0.
    DropIn {
        d: u32,
        dw: u32,
        a: u32,
        aw: u32,
    },
    /// Clone to the session in a with the fields of list b, from ingress or from egress.
    CloneIngress {
        a: u32,
        b: u32,
    },
    CloneEgress {
        a: u32,
        b: u32,
    },
    Resubmit {
        a: u32,
    },
    Recirculate {
        a: u32,
    },
    /// Send the digest whose learn list has the id in a.
    Digest {
        a: u32,
    },
    Truncate {
        a: u32,
    },
    /// Count a failed assertion when a is 0.
    Assert {
        a: u32,
    },
    /// Write message n of `Program::messages` to the log.
    Log {
        n: u32,
    },
    /// Parser: take header h from the packet.
    Extract {
        h: u32,
    },
    /// Parser: the same with a varbit field of the number of bits in a.
    ExtractVarbit {
        h: u32,
        a: u32,
    },
    /// Parser: take the next element of stack s; `varbit` says that slot a holds its varbit length.
    ExtractNext {
        s: u32,
        varbit: bool,
        a: u32,
    },
    /// Parser: take member m of the next element of union stack s.
    ExtractUnionNext {
        s: u32,
        m: u32,
        varbit: bool,
        a: u32,
    },
    /// Parser: skip the number of bits in a.
    Advance {
        a: u32,
    },
    /// Parser: stop with the error in b when a is 0.
    Verify {
        a: u32,
        b: u32,
    },
    /// Parser: d = dw bits, `at` bits ahead.
    Lookahead {
        d: u32,
        dw: u32,
        at: u32,
    },
}

impl Op {
    /// Lets an arithmetic instruction that wrote temporary `from` write `to` instead, cut to its width. False (and
    /// unchanged) if it did not write `from` or cannot cut.
    pub fn retarget(&mut self, from: u32, to: FieldRef) -> bool {
        let Ok(width) = u8::try_from(to.width) else { return false };
        let (d, w) = match self {
            Op::Move { d, w, .. }
            | Op::Add { d, w, .. }
            | Op::Sub { d, w, .. }
            | Op::Mul { d, w, .. }
            | Op::Div { d, w, .. }
            | Op::Rem { d, w, .. }
            | Op::And { d, w, .. }
            | Op::Or { d, w, .. }
            | Op::Xor { d, w, .. }
            | Op::Not { d, w, .. }
            | Op::Shl { d, w, .. }
            | Op::Shr { d, w, .. }
            | Op::Sar { d, w, .. }
            | Op::Eq { d, w, .. }
            | Op::Ne { d, w, .. }
            | Op::Less { d, w, .. }
            | Op::LessEq { d, w, .. }
            | Op::LessSigned { d, w, .. }
            | Op::LessEqSigned { d, w, .. }
            | Op::Select { d, w, .. }
            | Op::Saturate { d, w, .. }
            | Op::SaturateUnsigned { d, w, .. } => (d, w),
            // The width of `Bits` is that of the source, so only a wide enough target can take it.
            Op::Bits { d, w, .. } if *w <= width => {
                if *d != from {
                    return false;
                }
                *d = to.slot;
                return true;
            }
            _ => return false,
        };
        if *d != from || width == 0 || width > 64 {
            return false;
        }
        *d = to.slot;
        *w = (*w).min(width);
        true
    }
}
