//! A P4Info for programs that come without one. In: a loaded program. Out: a P4Info whose ids are the program's numbers, so that a
//! case can name everything in the JSON, hidden tables included. Must not know cases.

use crate::p4runtime::proto::p4::config::v1::{
    Action, ActionRef, Counter, CounterSpec, MatchField, Meter, MeterSpec, P4BitTypeSpec,
    P4BitstringLikeTypeSpec, P4DataTypeSpec, P4Info, Preamble, Register, Table, action,
    counter_spec, match_field, meter_spec, p4_bitstring_like_type_spec, p4_data_type_spec,
};
use crate::switch::memory::canonical_actions;
use crate::switch::program::{MatchKind, Program};

/// First byte of each kind's ids (P4Runtime specification, section 6.3).
pub mod prefix {
    /// Actions.
    pub const ACTION: u32 = 0x0100_0000;
    /// Tables.
    pub const TABLE: u32 = 0x0200_0000;
    /// Counters.
    pub const COUNTER: u32 = 0x1200_0000;
    /// Meters.
    pub const METER: u32 = 0x1400_0000;
    /// Registers.
    pub const REGISTER: u32 = 0x1600_0000;
}

/// The id of number `number` of a kind.
#[must_use]
pub fn id(prefix: u32, number: usize) -> u32 {
    prefix | (number as u32 + 1)
}

fn preamble(prefix: u32, number: usize, name: &str) -> Option<Preamble> {
    Some(Preamble {
        id: id(prefix, number),
        name: name.to_owned(),
        alias: name.to_owned(),
        ..Preamble::default()
    })
}

/// The P4Info. Number n of a kind has the id `prefix | n + 1`. Tables with action profiles are left out: STF cannot fill
/// them.
#[must_use]
pub fn of_program(program: &Program) -> P4Info {
    let canonical = canonical_actions(program);
    let first = |i: usize| canonical[i].index() == i;
    let unique = |i: usize| {
        first(i)
            && program.actions.iter().position(|a| a.name == program.actions[i].name) == Some(i)
    };
    let actions = program.actions.iter().enumerate().filter(|(i, _)| unique(*i));
    let tables = program.tables.iter().enumerate().filter(|(_, t)| {
        matches!(t.implementation, crate::switch::program::Implementation::Simple)
    });
    let indirect = |table: Option<_>| table.is_none();
    P4Info {
        tables: tables.map(|(i, _)| table(program, i, &canonical)).collect(),
        actions: actions
            .map(|(i, a)| Action {
                preamble: preamble(prefix::ACTION, i, &a.name),
                params: a.params.iter().enumerate().map(param).collect(),
            })
            .collect(),
        counters: (program.counters.iter().enumerate().filter(|(_, c)| indirect(c.table)))
            .map(|(i, c)| Counter {
                preamble: preamble(prefix::COUNTER, i, &c.name),
                spec: Some(CounterSpec { unit: counter_spec::Unit::Both.into() }),
                size: c.size.into(),
                ..Counter::default()
            })
            .collect(),
        meters: (program.meters.iter().enumerate().filter(|(_, m)| indirect(m.table)))
            .map(|(i, m)| Meter {
                preamble: preamble(prefix::METER, i, &m.name),
                spec: Some(MeterSpec {
                    unit: meter_spec::Unit::Packets.into(),
                    ..MeterSpec::default()
                }),
                size: m.size.into(),
                ..Meter::default()
            })
            .collect(),
        registers: program.registers.iter().enumerate().map(register).collect(),
        ..P4Info::default()
    }
}

fn param((i, param): (usize, &crate::switch::program::Param)) -> action::Param {
    action::Param {
        id: i as u32 + 1,
        name: param.name.clone(),
        bitwidth: param.width as i32,
        ..action::Param::default()
    }
}

fn register((i, register): (usize, &crate::switch::program::Register)) -> Register {
    let bits = P4BitstringLikeTypeSpec {
        type_spec: Some(p4_bitstring_like_type_spec::TypeSpec::Bit(P4BitTypeSpec {
            bitwidth: register.width as i32,
        })),
        ..P4BitstringLikeTypeSpec::default()
    };
    Register {
        preamble: preamble(prefix::REGISTER, i, &register.name),
        type_spec: Some(P4DataTypeSpec {
            type_spec: Some(p4_data_type_spec::TypeSpec::Bitstring(bits)),
        }),
        size: register.size as i32,
        ..Register::default()
    }
}

fn table(program: &Program, i: usize, canonical: &[crate::switch::program::ActionNo]) -> Table {
    let table = &program.tables[i];
    let field = |(n, field): (usize, &crate::switch::program::KeyField)| {
        let kind = match field.kind {
            MatchKind::Exact => match_field::MatchType::Exact,
            MatchKind::Lpm => match_field::MatchType::Lpm,
            MatchKind::Ternary => match_field::MatchType::Ternary,
            MatchKind::Range => match_field::MatchType::Range,
        };
        MatchField {
            id: n as u32 + 1,
            name: format!("{n}:{}", field.name),
            bitwidth: field.width() as i32,
            r#match: Some(match_field::Match::MatchType(kind.into())),
            ..MatchField::default()
        }
    };
    let unique = |a: &crate::switch::program::ActionNo| {
        let name = &program.actions[canonical[a.index()].index()].name;
        program.actions.iter().position(|other| &other.name == name)
    };
    let mut numbers: Vec<usize> = table.actions.iter().filter_map(unique).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Table {
        preamble: preamble(prefix::TABLE, i, &table.name),
        match_fields: table.key.fields.iter().enumerate().map(field).collect(),
        action_refs: numbers
            .iter()
            .map(|n| ActionRef { id: self::id(prefix::ACTION, *n), ..ActionRef::default() })
            .collect(),
        size: table.max_size.into(),
        is_const_table: table.const_entries.is_some(),
        ..Table::default()
    }
}
