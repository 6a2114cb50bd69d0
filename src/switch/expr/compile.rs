//! Expressions → instructions. In: trees. Out: code, constants, temporaries. See the module above for the idea.

use crate::switch::{
    code::Op,
    expr::{
        Binary, Cast, Expr, HeaderExpr, UnionExpr,
        range::{Range, result_range},
    },
    phv::{FieldRef, Layout},
};
use num_bigint::BigInt;
use std::collections::BTreeMap;

/// A compiled value: a slot with its low 64 bits and what is known about it.
#[derive(Clone, Copy, Debug)]
struct Val {
    slot: u32,
    range: Range,
}

/// What an assignment writes.
#[derive(Clone, Debug)]
pub enum Place {
    /// A field known at load time.
    Field(FieldRef),
    /// A field of a header chosen at run time: header, position, width.
    Dynamic(HeaderExpr, u32, u32),
}

/// Collects code, constants and temporaries of a program.
#[derive(Debug, Default)]
pub struct Builder {
    /// The layout; constants and temporaries are appended to its slots.
    pub layout: Layout,
    /// Instructions.
    pub code: Vec<Op>,
    /// Trees that need integers of any size.
    pub wide: Vec<Expr>,
    constants: BTreeMap<u64, u32>,
    temps: Vec<u32>,
    temps_used: usize,
}

impl Builder {
    /// A builder on a layout whose fields are placed.
    #[must_use]
    pub fn new(layout: Layout) -> Self {
        let constants = BTreeMap::from([(1, layout.one), (0, 0)]);
        Self { layout, constants, ..Self::default() }
    }

    fn fresh(&mut self, values: &[u64]) -> u32 {
        let slot = self.layout.initial.len() as u32;
        self.layout.initial.extend_from_slice(values);
        slot
    }

    /// The slot that holds a constant.
    pub fn constant(&mut self, value: u64) -> u32 {
        if let Some(slot) = self.constants.get(&value) {
            return *slot;
        }
        let slot = self.fresh(&[value]);
        self.constants.insert(value, slot);
        slot
    }

    /// A constant of any width as a field.
    pub fn constant_field(&mut self, value: &BigInt, width: u32) -> FieldRef {
        let at = FieldRef { slot: self.temp_limbs(width), width };
        crate::switch::expr::wide::write(&mut self.layout.initial, at, value);
        at
    }

    fn temp(&mut self) -> u32 {
        if self.temps_used == self.temps.len() {
            let slot = self.fresh(&[0]);
            self.temps.push(slot);
        }
        self.temps_used += 1;
        self.temps[self.temps_used - 1]
    }

    fn temp_limbs(&mut self, width: u32) -> u32 {
        self.fresh(&vec![0; width.div_ceil(64).max(1) as usize])
    }

    /// Forgets temporaries: their values are used up at the end of a statement.
    pub fn end_statement(&mut self) {
        self.temps_used = 0;
    }

    /// Appends an instruction.
    pub fn emit(&mut self, op: Op) {
        self.code.push(op);
    }

    /// The position of the next instruction.
    #[must_use]
    pub fn here(&self) -> u32 {
        self.code.len() as u32
    }

    /// A slot with the low 64 bits of the value.
    pub fn value(&mut self, expr: &Expr) -> u32 {
        let mark = self.code.len();
        if let Some(val) = self.narrow(expr) {
            return val.slot;
        }
        self.code.truncate(mark);
        let d = self.temp();
        self.emit_wide(expr, FieldRef { slot: d, width: 64 });
        d
    }

    /// A slot that is zero iff the value is 0 or false.
    pub fn truth(&mut self, expr: &Expr) -> u32 {
        if expr.is_truth() {
            return self.value(expr);
        }
        let test = Expr::binary(Binary::Ne, expr.clone(), Expr::number(0));
        self.value(&test)
    }

    /// The value as a field of that width: the field itself if the expression is one.
    pub fn field(&mut self, expr: &Expr, width: u32) -> FieldRef {
        match expr {
            Expr::Field { at, signed: false } if at.width <= width => *at,
            _ => {
                let slot = if width <= 64 { self.temp() } else { self.temp_limbs(width) };
                let at = FieldRef { slot, width };
                self.assign_field(at, expr);
                at
            }
        }
    }

    /// Code for `place = expr`.
    pub fn assign(&mut self, place: &Place, expr: &Expr) {
        match place {
            Place::Field(at) => self.assign_field(*at, expr),
            Place::Dynamic(header, field, width) => {
                let from = self.field(expr, *width);
                let d = self.header(header);
                self.emit(Op::StoreField { d, f: *field, a: from.slot, aw: from.width });
            }
        }
    }

    fn assign_field(&mut self, to: FieldRef, expr: &Expr) {
        if let Expr::Field { at, signed: false } = expr
            && (at.width > 64 || to.width > 64)
        {
            self.emit(Op::Copy { d: to.slot, dw: to.width, a: at.slot, aw: at.width });
            return;
        }
        if let Expr::Dynamic { width, signed: false, .. }
        | Expr::Register { width, .. }
        | Expr::Lookahead { width, .. } = expr
            && *width > 64
        {
            let at = FieldRef { slot: self.temp_limbs(*width), width: *width };
            self.leaf(expr, at);
            self.emit(Op::Copy { d: to.slot, dw: to.width, a: at.slot, aw: at.width });
            return;
        }
        let mark = self.code.len();
        match self.narrow(expr) {
            Some(val) if to.width <= 64 => self.store_narrow(val, to, mark),
            Some(val) if val.range.fits_u64() => {
                self.emit(Op::Copy { d: to.slot, dw: to.width, a: val.slot, aw: 64 });
            }
            _ => {
                self.code.truncate(mark);
                self.emit_wide(expr, to);
            }
        }
    }

    fn store_narrow(&mut self, val: Val, to: FieldRef, mark: usize) {
        let own = self.code.len() > mark && self.temps.contains(&val.slot);
        if own && self.code.last_mut().is_some_and(|op| op.retarget(val.slot, to)) {
            return;
        }
        self.emit(Op::Move { w: to.width as u8, d: to.slot, a: val.slot });
    }

    fn emit_wide(&mut self, expr: &Expr, to: FieldRef) {
        let tree = self.purify(expr);
        let e = self.wide.len() as u32;
        self.wide.push(tree);
        self.emit(Op::Wide { d: to.slot, dw: to.width, e });
    }

    /// Replaces leaves that need code by fields that the code fills.
    fn purify(&mut self, expr: &Expr) -> Expr {
        let boxed = |this: &mut Self, e: &Expr| Box::new(this.purify(e));
        match expr {
            Expr::Const(_) | Expr::Bool(_) | Expr::Field { .. } => expr.clone(),
            Expr::Complement(a) => Expr::Complement(boxed(self, a)),
            Expr::Not(a) => Expr::Not(boxed(self, a)),
            Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(self, a), boxed(self, b)),
            Expr::Select(c, a, b) => Expr::Select(boxed(self, c), boxed(self, a), boxed(self, b)),
            Expr::Cast(cast, a, width) => Expr::Cast(*cast, boxed(self, a), *width),
            leaf => {
                let (width, signed) = match leaf {
                    Expr::Dynamic { width, signed, .. } => (*width, *signed),
                    Expr::Register { width, .. } | Expr::Lookahead { width, .. } => (*width, false),
                    _ => (1, false),
                };
                let at = FieldRef { slot: self.temp_limbs(width), width };
                self.leaf(leaf, at);
                Expr::Field { at, signed }
            }
        }
    }

    /// Code that puts a leaf into a field of its width.
    fn leaf(&mut self, leaf: &Expr, to: FieldRef) {
        let (d, dw) = (to.slot, to.width);
        match leaf {
            Expr::Dynamic { header, field, .. } => {
                let a = self.header(header);
                self.emit(Op::LoadField { d, dw, a, f: *field });
            }
            Expr::Register { register, index, .. } => {
                let a = self.value(index);
                self.emit(Op::RegisterRead { d, dw, n: *register, a });
            }
            Expr::Lookahead { at, .. } => self.emit(Op::Lookahead { d, dw, at: *at }),
            Expr::Valid(HeaderExpr::Known(h)) => {
                let a = self.layout.headers[h.index()].valid;
                self.emit(Op::Move { w: 1, d, a });
            }
            Expr::Valid(header) => {
                let a = self.header(header);
                self.emit(Op::ValidAt { d, a });
            }
            Expr::UnionValid(union) => {
                let a = self.union(union);
                self.emit(Op::UnionValid { d, a });
            }
            Expr::HeaderEq(x, y) => {
                let (a, b) = (self.header(x), self.header(y));
                self.emit(Op::HeaderEq { d, a, b });
            }
            Expr::UnionEq(x, y) => {
                let (a, b) = (self.union(x), self.union(y));
                self.emit(Op::UnionEq { d, a, b });
            }
            other => self.assign_field(to, other),
        }
    }

    /// A slot that holds the number of the header.
    pub fn header(&mut self, header: &HeaderExpr) -> u32 {
        match header {
            HeaderExpr::Known(h) => self.constant(u64::from(h.0)),
            HeaderExpr::Element(s, index) => {
                let a = self.value(index);
                let d = self.temp();
                self.emit(Op::Element { d, s: s.0, a });
                d
            }
            HeaderExpr::Last(s) => {
                let d = self.temp();
                self.emit(Op::Last { d, s: s.0 });
                d
            }
            HeaderExpr::Member(union, m) => {
                let a = self.union(union);
                let d = self.temp();
                self.emit(Op::Member { d, a, m: *m });
                d
            }
        }
    }

    /// A slot that holds the number of the union.
    pub fn union(&mut self, union: &UnionExpr) -> u32 {
        match union {
            UnionExpr::Known(u) => self.constant(u64::from(u.0)),
            UnionExpr::Element(s, index) => {
                let a = self.value(index);
                let d = self.temp();
                self.emit(Op::UnionElement { d, s: s.0, a });
                d
            }
            UnionExpr::Last(s) => {
                let d = self.temp();
                self.emit(Op::UnionLast { d, s: s.0 });
                d
            }
        }
    }

    /// Code on 64-bit patterns, or `None` if that would be wrong.
    fn narrow(&mut self, expr: &Expr) -> Option<Val> {
        match expr {
            Expr::Const(n) => {
                let exact = i128::try_from(n).ok();
                let slot = self.constant(low_limb(n));
                Some(Val { slot, range: Range::new(exact, exact) })
            }
            Expr::Bool(b) => Some(Val { slot: self.constant((*b).into()), range: Range::TRUTH }),
            Expr::Field { at, .. } if at.width == 0 => {
                Some(Val { slot: self.constant(0), range: Range::unsigned(0) })
            }
            Expr::Field { at, signed: false } => {
                Some(Val { slot: at.slot, range: Range::unsigned(at.width) })
            }
            Expr::Field { at, signed: true } if at.width <= 64 => {
                let d = self.temp();
                self.emit(Op::Extend { w: at.width as u8, d, a: at.slot });
                Some(Val { slot: d, range: Range::signed(at.width) })
            }
            Expr::Field { .. } => None,
            Expr::Complement(a) => {
                let a = self.narrow(a)?;
                let d = self.temp();
                self.emit(Op::Not { w: 64, d, a: a.slot });
                let flip = |n: Option<i128>| n.map(|n| -n - 1);
                Some(Val { slot: d, range: Range::new(flip(a.range.hi), flip(a.range.lo)) })
            }
            Expr::Not(a) => {
                let a = self.truth(a);
                let (d, b) = (self.temp(), self.constant(0));
                self.emit(Op::Eq { w: 1, d, a, b });
                Some(Val { slot: d, range: Range::TRUTH })
            }
            Expr::Binary(op, a, b) => self.narrow_binary(*op, a, b),
            Expr::Select(c, a, b) => {
                let c = self.truth(c);
                let (a, b) = (self.narrow(a)?, self.narrow(b)?);
                let d = self.temp();
                self.emit(Op::Select { w: 64, d, a: a.slot, b: b.slot, c });
                Some(Val { slot: d, range: a.range.join(b.range) })
            }
            Expr::Cast(cast, a, width) => self.narrow_cast(*cast, a, *width),
            Expr::Dynamic { width, signed, .. } => {
                if *width > 64 {
                    return None;
                }
                let d = self.temp();
                self.leaf(expr, FieldRef { slot: d, width: *width });
                if *signed {
                    self.emit(Op::Extend { w: *width as u8, d, a: d });
                    return Some(Val { slot: d, range: Range::signed(*width) });
                }
                Some(Val { slot: d, range: Range::unsigned(*width) })
            }
            Expr::Register { width, .. } | Expr::Lookahead { width, .. } => {
                let slot = if *width <= 64 { self.temp() } else { self.temp_limbs(*width) };
                self.leaf(expr, FieldRef { slot, width: *width });
                Some(Val { slot, range: Range::unsigned(*width) })
            }
            Expr::Valid(HeaderExpr::Known(h)) => {
                let slot = self.layout.headers[h.index()].valid;
                Some(Val { slot, range: Range::TRUTH })
            }
            Expr::Valid(_) | Expr::UnionValid(_) | Expr::HeaderEq(..) | Expr::UnionEq(..) => {
                let d = self.temp();
                self.leaf(expr, FieldRef { slot: d, width: 1 });
                Some(Val { slot: d, range: Range::TRUTH })
            }
        }
    }

    fn narrow_cast(&mut self, cast: Cast, a: &Expr, width: u32) -> Option<Val> {
        if !(1..=64).contains(&width) {
            return None;
        }
        let a = self.narrow(a)?;
        let n = width as u8;
        match cast {
            Cast::Wrap => {
                let d = self.temp();
                self.emit(Op::Extend { w: n, d, a: a.slot });
                Some(Val { slot: d, range: Range::signed(width) })
            }
            Cast::Saturate if a.range.fits_i64() => {
                let d = self.temp();
                self.emit(Op::Saturate { w: 64, n, d, a: a.slot });
                Some(Val { slot: d, range: Range::signed(width) })
            }
            Cast::SaturateUnsigned if a.range.exact() => {
                let (d, signed) = (self.temp(), !a.range.fits_u64());
                self.emit(Op::SaturateUnsigned { w: 64, n, signed, d, a: a.slot });
                Some(Val { slot: d, range: Range::unsigned(width) })
            }
            Cast::Saturate | Cast::SaturateUnsigned => None,
        }
    }

    fn narrow_binary(&mut self, op: Binary, x: &Expr, y: &Expr) -> Option<Val> {
        match self.narrow_mask(op, x, y) {
            Mask::Done(val) => return Some(val),
            Mask::Wide => return None,
            Mask::Other => {}
        }
        if let Some(val) = self.narrow_bits(op, x, y) {
            return Some(val);
        }
        let (a, b) = (self.narrow(x)?, self.narrow(y)?);
        let range = result_range(op, a.range, b.range)?;
        if op == Binary::Ne && *y == Expr::number(0) && a.range.join(Range::TRUTH) == Range::TRUTH {
            return Some(a);
        }
        let d = self.temp();
        let w = 64;
        let signed = !(a.range.natural() && b.range.natural());
        let signed_left = !a.range.natural();
        let (a, b) = (a.slot, b.slot);
        self.emit(match op {
            Binary::Add => Op::Add { w, d, a, b },
            Binary::Sub => Op::Sub { w, d, a, b },
            Binary::Mul => Op::Mul { w, d, a, b },
            Binary::Div => Op::Div { w, d, a, b },
            Binary::Rem => Op::Rem { w, d, a, b },
            Binary::And => Op::And { w, d, a, b },
            Binary::Or => Op::Or { w, d, a, b },
            Binary::Xor => Op::Xor { w, d, a, b },
            Binary::Shl => Op::Shl { w, d, a, b },
            Binary::Shr if signed_left => Op::Sar { w, d, a, b },
            Binary::Shr => Op::Shr { w, d, a, b },
            Binary::Eq => Op::Eq { w, d, a, b },
            Binary::Ne => Op::Ne { w, d, a, b },
            Binary::Less if signed => Op::LessSigned { w, d, a, b },
            Binary::Less => Op::Less { w, d, a, b },
            Binary::LessEq if signed => Op::LessEqSigned { w, d, a, b },
            Binary::LessEq => Op::LessEq { w, d, a, b },
        });
        Some(Val { slot: d, range })
    }

    /// `x & (2^k - 1)`, which the compiler of P4 puts around every operation: nothing if x has no more bits, else the
    /// width of the instruction that computed x.
    fn narrow_mask(&mut self, op: Binary, x: &Expr, y: &Expr) -> Mask {
        let (Binary::And, Expr::Const(n)) = (op, y) else { return Mask::Other };
        let Some(ones) = u64::try_from(n).ok().filter(|n| n & n.wrapping_add(1) == 0) else {
            return Mask::Other;
        };
        let (mark, width) = (self.code.len(), ones.trailing_ones());
        let Some(a) = self.narrow(x) else { return Mask::Wide };
        let range = Range::unsigned(width);
        if a.range.join(range) == range {
            return Mask::Done(a);
        }
        let own = self.code.len() > mark && self.temps.contains(&a.slot);
        let cut = FieldRef { slot: a.slot, width };
        if !(own && self.code.last_mut().is_some_and(|op| op.retarget(a.slot, cut))) {
            let (d, b) = (self.temp(), self.constant(ones));
            self.emit(Op::And { w: 64, d, a: a.slot, b });
            return Mask::Done(Val { slot: d, range });
        }
        Mask::Done(Val { slot: a.slot, range })
    }

    /// `(wide field >> constant) & mask`: a slice of a field beyond 64 bits (IPv6 addresses), without big integers.
    fn narrow_bits(&mut self, op: Binary, x: &Expr, y: &Expr) -> Option<Val> {
        let (Binary::Shr, Expr::Field { at, signed: false }, Expr::Const(n)) = (op, x, y) else {
            return None;
        };
        let shift = u32::try_from(n).ok().filter(|_| at.width > 64)?;
        if shift >= at.width {
            return Some(Val { slot: self.constant(0), range: Range::unsigned(0) });
        }
        let left = at.width - shift;
        let d = self.temp();
        self.emit(Op::Bits { w: left.min(64) as u8, d, a: at.slot, b: shift });
        Some(Val { slot: d, range: Range::unsigned(left) })
    }
}

/// What became of an operation that may be a mask.
enum Mask {
    Done(Val),
    /// The operand needs big integers.
    Wide,
    /// It is no mask.
    Other,
}

fn low_limb(n: &BigInt) -> u64 {
    let low: BigInt = n & BigInt::from(u64::MAX);
    u64::try_from(&low).unwrap_or(0)
}
