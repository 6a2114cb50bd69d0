//! Evaluation on integers of any size. In: an expression whose leaves are constants and fields, and the slots. Out: a
//! number (truth values are 0 and 1). The twin of `compile` and `narrow`: slow, allocates, follows BMv2's `expressions.cpp` node
//! by node.

use crate::switch::{
    expr::{Binary, Cast, Expr},
    phv::FieldRef,
};
use num_bigint::{BigInt, BigUint, Sign};

/// Largest shift that is carried out: beyond it every field of a program has been shifted out, and a program could
/// otherwise ask for gigabytes with `1 << x`.
pub(super) const MAX_SHIFT: u64 = 1 << 17;

/// The number in a field.
#[must_use]
pub fn read(slots: &[u64], at: FieldRef, signed: bool) -> BigInt {
    let limbs = &slots[at.slot as usize..at.slot as usize + at.limbs()];
    let digits = limbs.iter().flat_map(|l| [*l as u32, (*l >> 32) as u32]).collect();
    let value = BigInt::from_biguint(Sign::Plus, BigUint::new(digits));
    if signed { wrap(&value, at.width) } else { value }
}

/// Stores the low bits of a number into a field (two's complement).
pub fn write(slots: &mut [u64], at: FieldRef, value: &BigInt) {
    let cut: BigInt = value & (power(at.width) - 1);
    let digits = cut.to_u64_digits().1;
    let limbs = &mut slots[at.slot as usize..at.slot as usize + at.limbs()];
    for (i, limb) in limbs.iter_mut().enumerate() {
        *limb = digits.get(i).copied().unwrap_or(0);
    }
}

fn power(width: u32) -> BigInt {
    BigInt::from(1) << width
}

fn wrap(value: &BigInt, width: u32) -> BigInt {
    if width == 0 {
        return BigInt::ZERO;
    }
    let cut: BigInt = value & (power(width) - 1);
    if cut < power(width - 1) { cut } else { cut - power(width) }
}

fn truth(value: bool) -> BigInt {
    BigInt::from(u8::from(value))
}

/// The value of an expression. Nodes that need the packet or a choice of header count as 0; the compiler replaces them
/// by fields before it keeps a tree.
#[must_use]
pub fn evaluate(expr: &Expr, slots: &[u64]) -> BigInt {
    match expr {
        Expr::Const(n) => n.clone(),
        Expr::Bool(b) => truth(*b),
        Expr::Field { at, signed } => read(slots, *at, *signed),
        Expr::Complement(a) => -evaluate(a, slots) - 1,
        Expr::Not(a) => truth(evaluate(a, slots) == BigInt::ZERO),
        Expr::Binary(op, a, b) => binary(*op, evaluate(a, slots), evaluate(b, slots)),
        Expr::Select(c, a, b) => {
            let chosen = if evaluate(c, slots) == BigInt::ZERO { b } else { a };
            evaluate(chosen, slots)
        }
        Expr::Cast(cast, a, width) => self::cast(*cast, evaluate(a, slots), *width),
        Expr::Dynamic { .. }
        | Expr::Register { .. }
        | Expr::Lookahead { .. }
        | Expr::Valid(_)
        | Expr::UnionValid(_)
        | Expr::HeaderEq(..)
        | Expr::UnionEq(..) => BigInt::ZERO,
    }
}

fn binary(op: Binary, a: BigInt, b: BigInt) -> BigInt {
    let zero = BigInt::ZERO;
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        // BMv2 demands operands a >= 0 and b > 0; the rest is 0 here, as for the fast instructions.
        Binary::Div if a < zero || b <= zero => zero,
        Binary::Rem if a < zero || b <= zero => zero,
        Binary::Div => a / b,
        Binary::Rem => a % b,
        Binary::And => a & b,
        Binary::Or => a | b,
        Binary::Xor => a ^ b,
        Binary::Shl | Binary::Shr if b < zero => zero,
        Binary::Shl => match u64::try_from(&b) {
            Ok(n) if n <= MAX_SHIFT => a << n,
            _ => zero,
        },
        // A right shift rounds towards minus infinity.
        Binary::Shr => match u64::try_from(&b) {
            Ok(n) if n <= MAX_SHIFT => a >> n,
            _ if a < zero => BigInt::from(-1),
            _ => zero,
        },
        Binary::Eq => truth(a == b),
        Binary::Ne => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessEq => truth(a <= b),
    }
}

fn cast(cast: Cast, value: BigInt, width: u32) -> BigInt {
    match cast {
        Cast::Wrap => wrap(&value, width),
        Cast::Saturate => {
            let half = power(width.saturating_sub(1));
            value.clamp(-half.clone(), half - 1)
        }
        Cast::SaturateUnsigned => value.clamp(BigInt::ZERO, power(width) - 1),
    }
}
