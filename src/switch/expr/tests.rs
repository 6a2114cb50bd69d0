//! Fast code against the slow twin.

use super::*;
use crate::switch::{
    exec::Packet,
    phv::{Field, Header, Layout},
    program::{Action, Call, Node, Pipeline, Program},
    state::{Facts, Lookup, Outcome, State},
};
use proptest::prelude::*;

/// Widths around every boundary that the compiler knows.
const WIDTHS: [(u32, bool); 9] = [
    (1, false),
    (7, false),
    (8, true),
    (32, false),
    (33, true),
    (63, false),
    (64, false),
    (64, true),
    (128, false),
];

struct NoState;

impl State for NoState {
    fn apply(
        &mut self,
        _: crate::switch::program::TableNo,
        _: &Lookup<'_>,
        _: &mut [u64],
    ) -> Outcome {
        Outcome::default()
    }
    fn count(&mut self, _: crate::switch::program::CounterNo, _: u64, _: Facts) -> bool {
        false
    }
    fn meter(&mut self, _: crate::switch::program::MeterNo, _: u64, _: Facts) -> Option<u8> {
        None
    }
    fn cells(&mut self, _: crate::switch::program::RegisterNo) -> &mut [u64] {
        &mut []
    }
    fn value_set_contains(&self, _: crate::switch::program::ValueSetNo, _: &[u64]) -> bool {
        false
    }
    fn random(&mut self) -> u64 {
        0
    }
}

/// Metadata with one field of each width and one target of each width.
fn layout() -> Layout {
    let mut layout = Layout { initial: vec![0, 1], one: 1, ..Layout::default() };
    let mut fields = Vec::new();
    for (i, (width, signed)) in WIDTHS.iter().chain(&WIDTHS).enumerate() {
        let at = FieldRef { slot: layout.initial.len() as u32, width: *width };
        layout.initial.resize(layout.initial.len() + at.limbs(), 0);
        fields.push(Field { name: format!("f{i}"), at, signed: *signed });
    }
    layout.headers.push(Header {
        name: "m".into(),
        type_name: "m".into(),
        metadata: true,
        fields,
        valid: 1,
        base: 2,
        slots: layout.initial.len() as u32 - 2,
        bits: 0,
        varbit: None,
        wire: Box::default(),
        union: None,
    });
    // Nothing is cleared: the test sets the fields.
    layout.reset_end = 0;
    layout.params = layout.initial.len() as u32;
    layout
}

fn number() -> impl Strategy<Value = Expr> {
    let big = prop_oneof![
        any::<i64>().prop_map(BigInt::from),
        (0_i64..70).prop_map(BigInt::from),
        (0_u32..66).prop_map(|n| (BigInt::from(1) << n) - 1),
        any::<u128>().prop_map(BigInt::from),
    ];
    let leaf = prop_oneof![
        big.prop_map(Expr::Const),
        (0..WIDTHS.len()).prop_map(|i| {
            let field = &layout().headers[0].fields[i];
            Expr::Field { at: field.at, signed: field.signed }
        }),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let op = proptest::sample::select(vec![
            Binary::Add,
            Binary::Sub,
            Binary::Mul,
            Binary::Div,
            Binary::Rem,
            Binary::And,
            Binary::Or,
            Binary::Xor,
            Binary::Shl,
            Binary::Shr,
            Binary::Eq,
            Binary::Ne,
            Binary::Less,
            Binary::LessEq,
        ]);
        let cast = proptest::sample::select(vec![Cast::Wrap, Cast::Saturate, Cast::SaturateUnsigned]);
        let shifted = (inner.clone(), 0_i64..130).prop_map(|(a, n)| {
            Expr::binary(Binary::Shr, a, Expr::number(n))
        });
        prop_oneof![
            4 => (op, inner.clone(), inner.clone()).prop_map(|(op, a, b)| Expr::binary(op, a, b)),
            1 => shifted,
            1 => inner.clone().prop_map(|a| Expr::Complement(Box::new(a))),
            1 => inner.clone().prop_map(|a| Expr::Not(Box::new(a))),
            1 => (cast, inner.clone(), 1_u32..70).prop_map(|(c, a, w)| Expr::Cast(c, Box::new(a), w)),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(c, a, b)| Expr::Select(Box::new(c), Box::new(a), Box::new(b))),
        ]
    })
}

/// A program whose only action assigns the expression to a field.
fn program(expr: &Expr, to: FieldRef) -> Program {
    let mut builder = Builder::new(layout());
    builder.assign(&Place::Field(to), expr);
    builder.emit(crate::switch::code::Op::End);
    let action = Action { name: "a".into(), params: Vec::new(), data_limbs: 0, entry: 0 };
    let call = Call { action: crate::switch::program::ActionNo(0), next: None };
    Program {
        layout: builder.layout,
        code: builder.code,
        wide: builder.wide,
        actions: vec![action],
        calls: vec![call],
        pipelines: vec![Pipeline { name: "ingress".into(), first: Some(Node::Call(0)) }],
        ..Program::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn fast_code_gives_what_integers_of_any_size_give(
        expr in number(),
        values in proptest::collection::vec(
            prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0_u64..4, (0_u32..64).prop_map(|n| 1 << n)],
            WIDTHS.len() + 1,
        ),
        target in 0..WIDTHS.len(),
    ) {
        let fields: Vec<FieldRef> = layout().headers[0].fields.iter().map(|f| f.at).collect();
        let to = fields[WIDTHS.len() + target];
        let program = program(&expr, to);
        let mut packet = Packet::new(&program, 511);
        for (at, value) in fields[..WIDTHS.len()].iter().zip(&values) {
            packet.phv.set(*at, *value);
        }
        packet.phv.slots[fields[8].slot as usize + 1] = values[WIDTHS.len()];
        let mut wanted = packet.phv.slots.clone();
        wide::write(&mut wanted, to, &wide::evaluate(&expr, &packet.phv.slots));
        packet.run(&program, 0, &mut NoState, Facts::default());
        let end = layout().initial.len();
        prop_assert_eq!(&packet.phv.slots[..end], &wanted[..end], "{:?}\n{:?}", expr, program.code);
    }
}

#[test]
fn the_carry_of_a_sum_survives_until_the_assignment() {
    // (f3 + f3) >> 1 with f3 a bit<32> of all ones is f3 again: 2^33 - 2 does not wrap in between.
    let f3 = layout().headers[0].fields[3].at;
    let field = || Expr::Field { at: f3, signed: false };
    let sum = Expr::binary(Binary::Add, field(), field());
    let half = Expr::binary(Binary::Shr, sum, Expr::number(1));
    let program = program(&half, f3);
    assert!(program.wide.is_empty());
    let mut packet = Packet::new(&program, 511);
    packet.phv.set(f3, 0xffff_ffff);
    packet.run(&program, 0, &mut NoState, Facts::default());
    assert_eq!(packet.phv.get(f3), 0xffff_ffff);
}

#[test]
fn a_slice_of_a_wide_field_needs_no_big_integers() {
    let wide = layout().headers[0].fields[8].at;
    let field = Expr::Field { at: wide, signed: false };
    let shifted = Expr::binary(Binary::Shr, field, Expr::number(60));
    let slice = Expr::binary(Binary::And, shifted, Expr::number(0xff));
    let to = layout().headers[0].fields[WIDTHS.len() + 3].at;
    let program = program(&slice, to);
    assert!(program.wide.is_empty(), "{:?}", program.code);
    let mut packet = Packet::new(&program, 511);
    packet.phv.slots[wide.slot as usize] = 0xa << 60;
    packet.phv.slots[wide.slot as usize + 1] = 0xb;
    packet.run(&program, 0, &mut NoState, Facts::default());
    assert_eq!(packet.phv.get(to), 0xba);
}

#[test]
fn masks_of_the_compiler_cost_no_instruction() {
    // (f3 + 1) & 0xffffffff, as p4c writes it: one addition of width 32.
    let f3 = layout().headers[0].fields[3].at;
    let field = Expr::Field { at: f3, signed: false };
    let sum = Expr::binary(Binary::Add, field, Expr::number(1));
    let masked = Expr::binary(Binary::And, sum, Expr::number(0xffff_ffff));
    let program = program(&masked, f3);
    assert_eq!(program.code.len(), 2, "{:?}", program.code);
}
