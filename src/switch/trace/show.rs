//! Slots, keys and entries as text. In: a program and its numbers. Out: names and hexadecimal values. Must not know steps.

use super::event::{Entry, Kind, Match, Named};
use crate::switch::lookup::{PackedKey, Place, Words};
use crate::switch::phv::{FieldRef, Header, Layout};
use crate::switch::program::{KeyField, MatchKind, Program};
use crate::switch::table::{self, Run};

/// A number of `width` bits in hexadecimal, all its digits.
pub(super) fn hex(limbs: &[u64], width: u32) -> String {
    let digit = |i: u32| {
        let nibble = limbs.get(i as usize / 16).map_or(0, |limb| (limb >> (4 * (i % 16))) & 0xf);
        char::from_digit(nibble as u32, 16).unwrap_or('?')
    };
    let digits: String = (0..width.div_ceil(4).max(1)).rev().map(digit).collect();
    format!("0x{digits}")
}

pub(super) fn limbs(slots: &[u64], at: FieldRef) -> &[u64] {
    slots.get(at.slot as usize..at.slot as usize + at.limbs()).unwrap_or_default()
}

/// The width that a field has in this packet: a varbit field has its present length.
fn width(header: &Header, number: usize, slots: &[u64]) -> u32 {
    match header.varbit {
        Some(varbit) if varbit.field as usize == number => {
            slots.get(varbit.length as usize).map_or(0, |length| *length as u32)
        }
        _ => header.fields[number].at.width,
    }
}

fn value(header: &Header, number: usize, slots: &[u64]) -> String {
    match width(header, number, slots) {
        0 => "empty".to_owned(),
        width => hex(limbs(slots, header.fields[number].at), width),
    }
}

/// What differs between two header vectors, header by header.
pub(super) fn changes(layout: &Layout, before: &[u64], now: &[u64], parsing: bool) -> Vec<Kind> {
    let mut found = Vec::new();
    for header in &layout.headers {
        let valid = |slots: &[u64]| header.metadata || slots[header.valid as usize] != 0;
        match (valid(before), valid(now)) {
            (false, true) => {
                let field = |number: usize| Named {
                    name: header.fields[number].name.clone(),
                    value: value(header, number, now),
                };
                let fields = (0..header.fields.len()).map(field).collect();
                let header = header.name.clone();
                found.push(Kind::Header { header, extracted: parsing, fields });
            }
            (true, false) => found.push(Kind::Removed { header: header.name.clone() }),
            (true, true) => {
                for number in 0..header.fields.len() {
                    let (from, to) = (value(header, number, before), value(header, number, now));
                    if from != to {
                        let field = format!("{}.{}", header.name, header.fields[number].name);
                        found.push(Kind::Changed { field, from, to });
                    }
                }
            }
            (false, false) => {}
        }
    }
    found
}

/// The name of a field, or of the slot where there is none.
pub(super) fn field_name(layout: &Layout, at: FieldRef) -> String {
    let headers = layout.headers.iter();
    let mut all = headers.flat_map(|header| header.fields.iter().map(move |field| (header, field)));
    all.find(|(_, field)| field.at.slot == at.slot).map_or_else(
        || format!("slot {}", at.slot),
        |(h, field)| format!("{}.{}", h.name, field.name),
    )
}

/// A field's limbs out of packed words.
fn unpack(words: &[u64], field: &KeyField) -> Words {
    let (word, shift, width) = (field.limb as usize, field.shift, field.width());
    Place { word, shift, width }.get(words)
}

/// The key that a packet asks with.
pub(super) fn key(fields: &[KeyField], words: &[u64]) -> Vec<Named> {
    let named = |field: &KeyField| Named {
        name: field.name.clone(),
        value: hex(&unpack(words, field), field.width()),
    };
    fields.iter().map(named).collect()
}

fn one_match(number: usize, field: &KeyField, key: &PackedKey) -> String {
    let width = field.width();
    let (value, mask) = (unpack(&key.value, field), unpack(&key.mask, field));
    let text = hex(&value, width);
    let open = mask.iter().all(|limb| *limb == 0);
    match field.kind {
        MatchKind::Exact => text,
        MatchKind::Range => match key.ranges.iter().find(|(at, _, _)| usize::from(*at) == number) {
            Some((_, low, high)) => format!("{}..{}", hex(low, width), hex(high, width)),
            None => "*".to_owned(),
        },
        MatchKind::Lpm | MatchKind::Ternary if open => "*".to_owned(),
        MatchKind::Lpm => {
            let length: u32 = mask.iter().map(|limb| limb.count_ones()).sum();
            format!("{text}/{length}")
        }
        MatchKind::Ternary => {
            let ones: u32 = mask.iter().map(|limb| limb.count_ones()).sum();
            if ones == width { text } else { format!("{text}&{}", hex(&mask, width)) }
        }
    }
}

pub(super) fn entry(fields: &[KeyField], entry: &table::Entry) -> Entry {
    let one = |(number, field): (usize, &KeyField)| Match {
        name: field.name.clone(),
        value: one_match(number, field, &entry.key),
    };
    let through = match &entry.run {
        Run::Action(_) => None,
        Run::Member(id) => Some(format!("member {id}")),
        Run::Group(id) => Some(format!("group {id}")),
        Run::OneShot(_) => Some("its own group".to_owned()),
    };
    Entry {
        matches: fields.iter().enumerate().map(one).collect(),
        priority: entry.priority,
        constant: entry.constant,
        through,
    }
}

/// The parameters of an action that is about to run.
pub(super) fn parameters(program: &Program, action: usize, slots: &[u64]) -> Vec<Named> {
    let first = program.layout.params;
    let named = |param: &crate::switch::program::Param| {
        let at = FieldRef { slot: first + param.limb, width: param.width };
        Named { name: param.name.clone(), value: hex(limbs(slots, at), param.width) }
    };
    program.actions[action].params.iter().map(named).collect()
}
