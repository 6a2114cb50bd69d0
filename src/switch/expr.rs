//! Expressions. In: trees from the loader. Out: instructions (`compile`), or a value of any size (`wide`). Must not
//! know JSON or packets.
//!
//! BMv2 computes on integers of any size and cuts only when it assigns, so `(a + b) >> 1` keeps the carry. [`Builder`]
//! finds for each node the range of its values. As long as the ranges of the nodes whose high bits matter fit 64 bits,
//! arithmetic modulo 2^64 gives the same result and is what is emitted; else the whole expression is kept as a tree and
//! evaluated by [`narrow::low`], on 128 bits, and where these do not suffice by [`wide::evaluate`], slow and obviously right. A
//! test compares them on random trees.

pub mod compile;
pub mod narrow;
mod range;
pub mod wide;

use crate::switch::phv::{FieldRef, HeaderNo, StackNo, UnionNo, UnionStackNo};
use num_bigint::BigInt;

pub use compile::{Builder, Place};

/// Operators with two operands. The meaning is that of integers; `And`, `Or` and the like on truth values work on 0
/// and 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named after what they compute")]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Eq,
    Ne,
    Less,
    LessEq,
}

/// Casts to a width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cast {
    /// `two_comp_mod`: the low bits as two's complement.
    Wrap,
    /// `sat_cast`: limited to int<n>.
    Saturate,
    /// `usat_cast`: limited to bit<n>.
    SaturateUnsigned,
}

/// A header named by an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderExpr {
    /// A header known at load time.
    Known(HeaderNo),
    /// An element of a stack.
    Element(StackNo, Box<Expr>),
    /// The last extracted element of a stack.
    Last(StackNo),
    /// A member of a union.
    Member(UnionExpr, u32),
}

/// A header union named by an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum UnionExpr {
    /// A union known at load time.
    Known(UnionNo),
    /// An element of a stack of unions.
    Element(UnionStackNo, Box<Expr>),
    /// The last extracted element of a stack of unions.
    Last(UnionStackNo),
}

/// An expression that has a number or a truth value.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Const(BigInt),
    /// A truth value.
    Bool(bool),
    /// A field, a constant slot, action data.
    Field {
        /// Where it is.
        at: FieldRef,
        /// Two's complement.
        signed: bool,
    },
    /// A field of a header chosen at run time.
    Dynamic {
        /// The header.
        header: HeaderExpr,
        /// Position of the field.
        field: u32,
        /// Its width.
        width: u32,
        /// Two's complement.
        signed: bool,
    },
    /// A register cell.
    Register {
        /// Number of the array.
        register: u32,
        /// Which cell.
        index: Box<Expr>,
        /// Width of a cell.
        width: u32,
    },
    /// Bits of the packet that the parser has not consumed.
    Lookahead {
        /// Distance in bits.
        at: u32,
        /// Width in bits.
        width: u32,
    },
    /// ~a.
    Complement(Box<Expr>),
    /// not a, on truth values.
    Not(Box<Expr>),
    /// Two operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// cond ? a : b.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A cast to a width.
    Cast(Cast, Box<Expr>, u32),
    /// Validity of a header.
    Valid(HeaderExpr),
    /// Whether a member of the union is valid.
    UnionValid(UnionExpr),
    /// Headers are valid and equal.
    HeaderEq(HeaderExpr, HeaderExpr),
    /// Unions are valid and equal.
    UnionEq(UnionExpr, UnionExpr),
}

impl Expr {
    /// Whether the value is a truth value.
    #[must_use]
    pub fn is_truth(&self) -> bool {
        match self {
            Expr::Bool(_)
            | Expr::Not(_)
            | Expr::Valid(_)
            | Expr::UnionValid(_)
            | Expr::HeaderEq(..)
            | Expr::UnionEq(..) => true,
            Expr::Binary(Binary::Eq | Binary::Ne | Binary::Less | Binary::LessEq, ..) => true,
            Expr::Binary(Binary::And | Binary::Or | Binary::Xor, a, b) => {
                a.is_truth() && b.is_truth()
            }
            Expr::Select(_, a, b) => a.is_truth() && b.is_truth(),
            _ => false,
        }
    }

    /// A node with two operands.
    #[must_use]
    pub fn binary(op: Binary, a: Expr, b: Expr) -> Self {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    /// The number as an expression.
    #[must_use]
    pub fn number(n: i64) -> Self {
        Expr::Const(BigInt::from(n))
    }
}

#[cfg(test)]
mod tests;
