//! Evaluation on 128 bits, without allocation. In: an expression and the slots. Out: the low 128 bits of its value, or `None`
//! where they cannot be told without larger integers; then [`super::wide`], the slow twin, evaluates. Must not differ from it.
//!
//! Sums, products, logic and shifts to the left need only the low bits of their operands. What needs a whole number (shifts to the
//! right, comparisons, quotients, conditions, saturation) asks for one of at most 128 bits and a sign.

use crate::switch::{
    expr::{Binary, Cast, Expr, wide::MAX_SHIFT},
    phv::FieldRef,
};
use num_bigint::{BigInt, Sign};

/// Widest field that can be written.
pub const MAX_WIDTH: u32 = 128;

/// A whole number: sign and magnitude. Zero is not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whole {
    negative: bool,
    size: u128,
}

impl Whole {
    const fn natural(size: u128) -> Self {
        Self { negative: false, size }
    }

    fn new(negative: bool, size: u128) -> Self {
        Self { negative: negative && size != 0, size }
    }

    /// Two's complement; the sign goes on for ever.
    fn bits(self) -> u128 {
        if self.negative { self.size.wrapping_neg() } else { self.size }
    }

    /// From two's complement and the sign; `None` is -2^128.
    fn of_bits(negative: bool, bits: u128) -> Option<Self> {
        match (negative, bits) {
            (false, bits) => Some(Self::natural(bits)),
            (true, 0) => None,
            (true, bits) => Some(Self::new(true, bits.wrapping_neg())),
        }
    }

    fn plus(self, other: Self) -> Option<Self> {
        if self.negative == other.negative {
            return Some(Self::new(self.negative, self.size.checked_add(other.size)?));
        }
        Some(match self.size.checked_sub(other.size) {
            Some(size) => Self::new(self.negative, size),
            None => Self::new(other.negative, other.size - self.size),
        })
    }

    fn negated(self) -> Self {
        Self::new(!self.negative, self.size)
    }

    fn less(self, other: Self) -> bool {
        match (self.negative, other.negative) {
            (true, true) => self.size > other.size,
            (false, false) => self.size < other.size,
            (negative, _) => negative,
        }
    }
}

fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// The bits as two's complement of that width.
fn wrapped(bits: u128, width: u32) -> Whole {
    if width == 0 {
        return Whole::natural(0);
    }
    let cut = bits & mask(width);
    if cut >> (width - 1) == 0 {
        Whole::natural(cut)
    } else {
        Whole::new(true, (mask(width) - cut).wrapping_add(1))
    }
}

fn constant(n: &BigInt) -> Option<Whole> {
    let mut digits = n.iter_u64_digits();
    let (low, high) = (digits.next().unwrap_or(0), digits.next().unwrap_or(0));
    let whole = Whole::new(n.sign() == Sign::Minus, u128::from(high) << 64 | u128::from(low));
    digits.next().is_none().then_some(whole)
}

fn field(slots: &[u64], at: FieldRef, signed: bool) -> Option<Whole> {
    let limb = |i: usize| slots.get(at.slot as usize + i).copied().unwrap_or(0);
    let bits = match at.limbs() {
        0 => 0,
        1 => u128::from(limb(0)),
        2 => u128::from(limb(1)) << 64 | u128::from(limb(0)),
        _ => return None,
    };
    Some(if signed { wrapped(bits, at.width) } else { Whole::natural(bits) })
}

/// A value: its low bits, and all of it where that is known.
#[derive(Clone, Copy)]
struct Value {
    low: u128,
    whole: Option<Whole>,
}

impl From<Whole> for Value {
    fn from(whole: Whole) -> Self {
        Self { low: whole.bits(), whole: Some(whole) }
    }
}

fn natural(size: u128) -> Option<Value> {
    Some(Whole::natural(size).into())
}

/// The low 128 bits of the value.
#[must_use]
pub fn low(expr: &Expr, slots: &[u64]) -> Option<u128> {
    Some(value(expr, slots)?.low)
}

/// Visits every node at most once.
fn value(expr: &Expr, slots: &[u64]) -> Option<Value> {
    match expr {
        Expr::Const(n) => constant(n).map(Into::into),
        Expr::Bool(b) => natural(u128::from(*b)),
        Expr::Field { at, signed } => field(slots, *at, *signed).map(Into::into),
        Expr::Complement(a) => {
            let a = value(a, slots)?;
            // ~a = -a - 1
            let whole = a.whole.and_then(|a| a.negated().plus(Whole::new(true, 1)));
            Some(Value { low: !a.low, whole })
        }
        Expr::Not(a) => natural(u128::from(value(a, slots)?.whole?.size == 0)),
        Expr::Binary(op, a, b) => {
            let (a, b) = (value(a, slots)?, value(b, slots)?);
            ring(*op, a, b).or_else(|| exact(*op, a.whole?, b.whole?).map(Into::into))
        }
        Expr::Select(c, a, b) => {
            value(if value(c, slots)?.whole?.size == 0 { b } else { a }, slots)
        }
        Expr::Cast(cast, a, width) => self::cast(*cast, value(a, slots)?, *width),
        _ => natural(0),
    }
}

/// Operations whose low bits follow from low bits; `None` for the others.
fn ring(op: Binary, a: Value, b: Value) -> Option<Value> {
    let low = match op {
        Binary::Add => a.low.wrapping_add(b.low),
        Binary::Sub => a.low.wrapping_sub(b.low),
        Binary::Mul => a.low.wrapping_mul(b.low),
        Binary::And => a.low & b.low,
        Binary::Or => a.low | b.low,
        Binary::Xor => a.low ^ b.low,
        Binary::Shl => {
            let by = b.whole?;
            if by.negative || by.size >= 128 { 0 } else { a.low << by.size }
        }
        _ => return None,
    };
    let whole = match (op, a.whole, b.whole) {
        (_, Some(a), Some(b)) => exact(op, a, b),
        // A natural operand of 128 bits cuts the other, however large that is.
        (Binary::And, Some(mask), None) | (Binary::And, None, Some(mask)) if !mask.negative => {
            Some(Whole::natural(low))
        }
        _ => None,
    };
    Some(Value { low, whole })
}

/// The result of whole numbers, if it is one of at most 128 bits.
fn exact(op: Binary, a: Whole, b: Whole) -> Option<Whole> {
    let zero = Whole::natural(0);
    let truth = |value: bool| Some(Whole::natural(u128::from(value)));
    match op {
        Binary::Add => a.plus(b),
        Binary::Sub => a.plus(b.negated()),
        Binary::Mul => Some(Whole::new(a.negative != b.negative, a.size.checked_mul(b.size)?)),
        Binary::Div | Binary::Rem if a.negative || b.negative || b.size == 0 => Some(zero),
        Binary::Div => Some(Whole::natural(a.size / b.size)),
        Binary::Rem => Some(Whole::natural(a.size % b.size)),
        Binary::And => Whole::of_bits(a.negative && b.negative, a.bits() & b.bits()),
        Binary::Or => Whole::of_bits(a.negative || b.negative, a.bits() | b.bits()),
        Binary::Xor => Whole::of_bits(a.negative != b.negative, a.bits() ^ b.bits()),
        Binary::Shl | Binary::Shr if b.negative => Some(zero),
        Binary::Shl if a.size == 0 || b.size > u128::from(MAX_SHIFT) => Some(zero),
        Binary::Shl if b.size > u128::from(a.size.leading_zeros()) => None,
        Binary::Shl => Some(Whole::new(a.negative, a.size << b.size)),
        // Rounds towards minus infinity.
        Binary::Shr if b.size >= 128 => Some(Whole::new(a.negative, u128::from(a.negative))),
        Binary::Shr if a.negative => Some(Whole::new(true, ((a.size - 1) >> b.size) + 1)),
        Binary::Shr => Some(Whole::natural(a.size >> b.size)),
        Binary::Eq => truth(a == b),
        Binary::Ne => truth(a != b),
        Binary::Less => truth(a.less(b)),
        Binary::LessEq => truth(!b.less(a)),
    }
}

fn cast(cast: Cast, a: Value, width: u32) -> Option<Value> {
    if width > MAX_WIDTH {
        return None;
    }
    let whole = match cast {
        Cast::Wrap => wrapped(a.low, width),
        Cast::Saturate => {
            let (value, half) = (a.whole?, 1_u128 << width.saturating_sub(1));
            let most = if value.negative { half } else { half - 1 };
            Whole::new(value.negative, value.size.min(most))
        }
        Cast::SaturateUnsigned => {
            let value = a.whole?;
            Whole::natural(if value.negative { 0 } else { value.size.min(mask(width)) })
        }
    };
    Some(whole.into())
}

/// Stores the low bits into a field of at most [`MAX_WIDTH`] bits.
pub fn write(slots: &mut [u64], at: FieldRef, value: u128) {
    let cut = value & mask(at.width);
    let limbs = [cut as u64, (cut >> 64) as u64];
    let first = at.slot as usize;
    for (slot, limb) in slots[first..first + at.limbs()].iter_mut().zip(limbs) {
        *slot = limb;
    }
}
