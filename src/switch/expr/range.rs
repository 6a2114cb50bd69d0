//! Ranges of values. In: ranges of operands. Out: the range of the result, or that 64-bit patterns cannot give it. Must
//! not know code.

use crate::switch::expr::Binary;

/// Bounds of a value; `None` is unbounded. Beyond 2^100 nothing is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lo: Option<i128>,
    pub(super) hi: Option<i128>,
}

const TRACKED: i128 = 1 << 100;

fn bound(n: Option<i128>) -> Option<i128> {
    n.filter(|n| (-TRACKED..=TRACKED).contains(n))
}

impl Range {
    pub(super) const TRUTH: Self = Self { lo: Some(0), hi: Some(1) };

    pub(super) fn new(lo: Option<i128>, hi: Option<i128>) -> Self {
        Self { lo: bound(lo), hi: bound(hi) }
    }

    pub(super) fn unsigned(width: u32) -> Self {
        Self::new(Some(0), (width < 100).then(|| (1 << width) - 1))
    }

    pub(super) fn signed(width: u32) -> Self {
        let half = (1..100).contains(&width).then(|| 1 << (width - 1));
        Self::new(half.map(|h: i128| -h), half.map(|h| h - 1))
    }

    pub(super) fn natural(self) -> bool {
        self.lo.is_some_and(|lo| lo >= 0)
    }

    pub(super) fn fits_u64(self) -> bool {
        self.natural() && self.hi.is_some_and(|hi| hi <= i128::from(u64::MAX))
    }

    pub(super) fn fits_i64(self) -> bool {
        self.lo.is_some_and(|lo| lo >= i128::from(i64::MIN))
            && self.hi.is_some_and(|hi| hi <= i128::from(i64::MAX))
    }

    /// The 64-bit pattern says which number it is.
    pub(super) fn exact(self) -> bool {
        self.fits_u64() || self.fits_i64()
    }

    pub(super) fn join(self, other: Self) -> Self {
        let pick = |a: Option<i128>, b: Option<i128>, f: fn(i128, i128) -> i128| Some(f(a?, b?));
        Self::new(pick(self.lo, other.lo, i128::min), pick(self.hi, other.hi, i128::max))
    }

    pub(super) fn products(self, other: Self) -> Self {
        let all = || {
            let (a, b, c, d) = (self.lo?, self.hi?, other.lo?, other.hi?);
            let products =
                [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            Some((products.iter().copied().min()?, products.iter().copied().max()?))
        };
        match all() {
            Some((lo, hi)) => Self::new(Some(lo), Some(hi)),
            None if self.natural() && other.natural() => Self::new(Some(0), None),
            None => Self::new(None, None),
        }
    }

    /// Bits that an unsigned value in the range needs.
    pub(super) fn bits(self) -> Option<u32> {
        if !self.natural() { None } else { self.hi.map(|hi| 128 - hi.leading_zeros()) }
    }
}

/// Bounds of the result, or `None` if 64-bit patterns do not give the right one.
pub(super) fn result_range(op: Binary, a: Range, b: Range) -> Option<Range> {
    let sum = |x: Option<i128>, y: Option<i128>| x.zip(y).and_then(|(x, y)| x.checked_add(y));
    let difference =
        |x: Option<i128>, y: Option<i128>| x.zip(y).and_then(|(x, y)| x.checked_sub(y));
    Some(match op {
        Binary::Add => Range::new(sum(a.lo, b.lo), sum(a.hi, b.hi)),
        Binary::Sub => Range::new(difference(a.lo, b.hi), difference(a.hi, b.lo)),
        Binary::Mul => a.products(b),
        Binary::Div | Binary::Rem => {
            if !(a.fits_u64() && b.fits_u64()) {
                return None;
            }
            let hi = if op == Binary::Div { a.hi } else { a.hi.min(b.hi) };
            Range::new(Some(0), hi)
        }
        Binary::And => match (a.natural(), b.natural()) {
            (true, true) => Range::new(Some(0), a.hi.into_iter().chain(b.hi).min()),
            (true, false) => Range::new(Some(0), a.hi),
            (false, true) => Range::new(Some(0), b.hi),
            (false, false) => signed_join(a, b),
        },
        Binary::Or | Binary::Xor => match (a.bits(), b.bits()) {
            (Some(x), Some(y)) => Range::unsigned(x.max(y)),
            _ if a.natural() && b.natural() => Range::new(Some(0), None),
            _ => signed_join(a, b),
        },
        Binary::Shl => {
            if !b.fits_u64() {
                return None;
            }
            let most = b.hi.filter(|n| *n <= 64).map(|n| 1_i128 << n);
            Range { lo: Some(0), hi: most }.products(a).join(a)
        }
        Binary::Shr => {
            if !(a.exact() && b.fits_u64()) {
                return None;
            }
            a.join(Range::new(Some(0), Some(0)))
        }
        Binary::Eq | Binary::Ne | Binary::Less | Binary::LessEq => {
            let comparable = (a.fits_u64() && b.fits_u64()) || (a.fits_i64() && b.fits_i64());
            if !comparable {
                return None;
            }
            Range::TRUTH
        }
    })
}

/// Bounds of a bitwise operation in two's complement: what fits n bits stays within n bits.
fn signed_join(a: Range, b: Range) -> Range {
    let joined = a.join(b);
    let largest = || Some(joined.hi?.max(-(joined.lo? + 1)).max(0));
    match largest() {
        Some(n) => Range::signed(129 - n.leading_zeros()),
        None => Range::new(None, None),
    }
}
