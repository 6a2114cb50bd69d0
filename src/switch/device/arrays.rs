//! Counter, meter and register arrays, and value sets. In: entries with an index, or without one (all cells). Out: the
//! same, read back. Must not know packets.

use super::direct::count_of;
use super::{Control, Done, refuse, unknown_id};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::proto::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as BitType;
use crate::p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::field_match::FieldMatchType;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::proto::p4::v1::{
    CounterData, CounterEntry, FieldMatch, Index, MeterConfig, MeterCounterData, MeterEntry,
    P4Data, RegisterEntry, ValueSetEntry,
};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;
use crate::switch::lookup::{PackedKey, Words, prefix_mask, words_of};
use crate::switch::memory::ValueSet;
use crate::switch::meter::{Meter, Rates};
use crate::switch::stats::Count;
use num_bigint::BigUint;
use std::collections::BTreeMap;
use std::ops::Range;

type Emit<'a> = &'a mut dyn FnMut(Kinds);

pub(crate) fn counter_data(count: &Count) -> CounterData {
    CounterData { byte_count: count.bytes as i64, packet_count: count.packets as i64 }
}

pub(crate) fn rates(config: &MeterConfig) -> Rates {
    Rates {
        cir: config.cir.unsigned_abs(),
        cburst: config.cburst.unsigned_abs(),
        pir: config.pir.unsigned_abs(),
        pburst: config.pburst.unsigned_abs(),
        eburst: config.eburst.unsigned_abs(),
    }
}

pub(crate) fn meter_config(rates: &Rates) -> MeterConfig {
    MeterConfig {
        cir: rates.cir as i64,
        cburst: rates.cburst as i64,
        pir: rates.pir as i64,
        pburst: rates.pburst as i64,
        eburst: rates.eburst as i64,
    }
}

pub(crate) fn meter_counter_data(meter: &Meter) -> MeterCounterData {
    let [green, yellow, red] = meter.counts().map(|count| Some(counter_data(&count)));
    MeterCounterData { green, yellow, red }
}

/// The cells that an index names.
fn cells(what: &str, size: usize, index: Option<&Index>) -> Result<Range<usize>, Refusal> {
    let Some(index) = index else { return Ok(0..size) };
    match usize::try_from(index.index) {
        Err(_) => {
            refuse(Code::InvalidArgument, format!("{what}: index {} is negative", index.index))
        }
        Ok(at) if at >= size => refuse(
            Code::OutOfRange,
            format!(
                "{what}: index {at} is beyond its {size} cells; use 0 to {}",
                size.saturating_sub(1)
            ),
        ),
        Ok(at) => Ok(at..at + 1),
    }
}

/// The arrays that an id names: all for 0.
fn chosen<T: Copy>(map: &BTreeMap<u32, T>, kind: &str, id: u32) -> Result<Vec<(u32, T)>, Refusal> {
    match id {
        0 => Ok(map.iter().map(|(id, no)| (*id, *no)).collect()),
        id => match map.get(&id) {
            Some(no) => Ok(vec![(id, *no)]),
            None => Err(unknown_id(kind, id)),
        },
    }
}

fn at(index: usize) -> Option<Index> {
    Some(Index { index: index as i64 })
}

impl Control {
    pub(crate) fn write_counter(&mut self, entry: &CounterEntry) -> Done {
        let no = self.names.counters.get(&entry.counter_id);
        let no = *no.ok_or_else(|| unknown_id("counter", entry.counter_id))?;
        let array = &mut self.memory.counters[no.index()];
        let range = cells("counter", array.len(), entry.index.as_ref())?;
        // Without data the value stays (section 9.3.2).
        if let Some(data) = &entry.data {
            array[range].fill(count_of(data));
        }
        Ok(())
    }

    pub(crate) fn read_counters(&self, asked: &CounterEntry, emit: Emit<'_>) -> Done {
        for (id, no) in chosen(&self.names.counters, "counter", asked.counter_id)? {
            let array = &self.memory.counters[no.index()];
            for index in cells("counter", array.len(), asked.index.as_ref())? {
                emit(Kinds::CounterEntry(CounterEntry {
                    counter_id: id,
                    index: at(index),
                    data: Some(counter_data(&array[index])),
                }));
            }
        }
        Ok(())
    }

    pub(crate) fn write_meter(&mut self, entry: &MeterEntry) -> Done {
        let no = self.names.meters.get(&entry.meter_id);
        let no = *no.ok_or_else(|| unknown_id("meter", entry.meter_id))?;
        let array = &mut self.memory.meters[no.index()];
        let range = cells("meter", array.len(), entry.index.as_ref())?;
        let config = entry.config.as_ref().map(rates);
        for meter in &mut array[range] {
            meter.configure(config);
            if entry.counter_data.is_some() {
                meter.clear_counts();
            }
        }
        Ok(())
    }

    pub(crate) fn read_meters(&self, asked: &MeterEntry, emit: Emit<'_>) -> Done {
        for (id, no) in chosen(&self.names.meters, "meter", asked.meter_id)? {
            let array = &self.memory.meters[no.index()];
            for index in cells("meter", array.len(), asked.index.as_ref())? {
                let counted = asked.counter_data.is_some();
                emit(Kinds::MeterEntry(MeterEntry {
                    meter_id: id,
                    index: at(index),
                    config: array[index].rates().map(|rates| meter_config(&rates)),
                    counter_data: counted.then(|| meter_counter_data(&array[index])),
                }));
            }
        }
        Ok(())
    }

    /// True for a register of `int<W>`, whose byte strings carry a sign.
    fn signed(&self, register: u32) -> bool {
        let spec = self.index.register_by_id(register).and_then(|r| r.cell.type_spec.as_ref());
        let Some(TypeSpec::Bitstring(bits)) = spec else { return false };
        matches!(bits.type_spec, Some(BitType::Int(_)))
    }

    pub(crate) fn write_register(&mut self, entry: &RegisterEntry) -> Done {
        if self.mimic_bmv2 {
            return refuse(Code::Unimplemented, "Register writes are not supported yet");
        }
        let no = self.names.registers.get(&entry.register_id);
        let no = *no.ok_or_else(|| unknown_id("register", entry.register_id))?;
        let register = self.memory.program().registers[no.index()].clone();
        let signed = self.signed(entry.register_id);
        let bytes = match entry.data.as_ref().and_then(|data| data.data.as_ref()) {
            Some(Data::Bitstring(bytes) | Data::EnumValue(bytes)) => bytes.clone(),
            Some(Data::Bool(truth)) => vec![u8::from(*truth)],
            _ => {
                let text =
                    format!("'{}' holds bit strings of {} bits", register.name, register.width);
                return refuse(Code::InvalidArgument, text);
            }
        };
        let Some(words) = words_from(&bytes, register.width, signed) else {
            let text =
                format!("'{}': the value needs more than {} bits", register.name, register.width);
            return refuse(Code::OutOfRange, text);
        };
        let limbs = register.limbs();
        let array = &mut self.memory.registers[no.index()];
        let size = array.len() / limbs.max(1);
        for index in cells(&register.name, size, entry.index.as_ref())? {
            array[index * limbs..(index + 1) * limbs].copy_from_slice(&words[..limbs]);
        }
        Ok(())
    }

    pub(crate) fn read_registers(&self, asked: &RegisterEntry, emit: Emit<'_>) -> Done {
        if self.mimic_bmv2 {
            return refuse(Code::Unimplemented, "Register reads are not supported yet");
        }
        for (id, no) in chosen(&self.names.registers, "register", asked.register_id)? {
            let register = &self.memory.program().registers[no.index()];
            let signed = self.signed(id);
            let truth = self
                .index
                .register_by_id(id)
                .is_some_and(|r| matches!(r.cell.type_spec, Some(TypeSpec::Bool(_))));
            let limbs = register.limbs();
            let array = &self.memory.registers[no.index()];
            let size = array.len() / limbs.max(1);
            for index in cells(&register.name, size, asked.index.as_ref())? {
                let cell = &array[index * limbs..(index + 1) * limbs];
                let data = match truth {
                    true => Data::Bool(cell.iter().any(|limb| *limb != 0)),
                    false => Data::Bitstring(bytes_from(cell, register.width, signed)),
                };
                emit(Kinds::RegisterEntry(RegisterEntry {
                    register_id: id,
                    index: at(index),
                    data: Some(P4Data { data: Some(data) }),
                }));
            }
        }
        Ok(())
    }

    pub(crate) fn write_value_set(&mut self, entry: &ValueSetEntry) -> Done {
        let id = entry.value_set_id;
        let no = *self.names.value_sets.get(&id).ok_or_else(|| unknown_id("value set", id))?;
        let declared = &self.memory.program().value_sets[no.index()];
        if entry.members.len() > declared.max_size as usize {
            let text = format!("'{}' holds {} members", declared.name, declared.max_size);
            return self.full(text);
        }
        let (name, width) = (declared.name.clone(), declared.width);
        let mut set = ValueSet::default();
        for member in &entry.members {
            set.members.extend(self.set_member(id, &name, width, &member.r#match)?);
        }
        self.memory.value_sets[no.index()] = set;
        self.value_sets.insert(id, entry.clone());
        Ok(())
    }

    /// The fields of a member side by side, the first one on top, as the parser joins its key: one key under a mask, or
    /// one for each prefix that ranges are made of.
    fn set_member(
        &self,
        id: u32,
        name: &str,
        width: u32,
        matches: &[FieldMatch],
    ) -> Result<Vec<PackedKey>, Refusal> {
        let limbs = width.div_ceil(64).max(1) as usize;
        let zero: Words = smallvec::SmallVec::from_elem(0, limbs);
        let mut keys = vec![PackedKey { value: zero.clone(), mask: zero, ..PackedKey::default() }];
        let fields =
            self.index.value_set_by_id(id).map(|set| set.fields.clone()).unwrap_or_default();
        let mut below: u32 = fields.iter().map(|field| field.width).sum();
        for field in &fields {
            below -= field.width;
            let found = matches.iter().find(|m| m.field_id == field.id);
            let Some(kind) = found.and_then(|m| m.field_match_type.as_ref()) else { continue };
            let Some(masks) = under_masks(kind, field.width) else {
                let text = format!("'{name}': a value needs more than {} bits", field.width);
                return refuse(Code::OutOfRange, text);
            };
            if keys.len() * masks.len() > MAX_SET_KEYS {
                let text = format!(
                    "'{name}': the ranges of one member need more than {MAX_SET_KEYS} masks"
                );
                return self.full(text);
            }
            keys =
                keys.iter().flat_map(|key| masks.iter().map(|m| joined(key, m, below))).collect();
        }
        Ok(keys)
    }

    pub(crate) fn read_value_sets(&self, asked: &ValueSetEntry, emit: Emit<'_>) -> Done {
        for (id, _) in chosen(&self.names.value_sets, "value set", asked.value_set_id)? {
            let stored = self.value_sets.get(&id).cloned();
            let empty = ValueSetEntry { value_set_id: id, members: Vec::new() };
            emit(Kinds::ValueSetEntry(stored.unwrap_or(empty)));
        }
        Ok(())
    }
}

/// Keys that one member of a value set may become; a range of w bits makes at most 2w - 2.
const MAX_SET_KEYS: usize = 4096;

/// A match as (value, mask) pairs of which one must fit; `None` if a value is too wide.
fn under_masks(kind: &FieldMatchType, width: u32) -> Option<Vec<(Words, Words)>> {
    let one = |value: &[u8], mask: Option<Words>| {
        let (value, mask) = (words_of(value, width)?, mask?);
        Some(vec![(value.iter().zip(&mask).map(|(v, m)| v & m).collect(), mask)])
    };
    match kind {
        FieldMatchType::Exact(exact) => one(&exact.value, Some(prefix_mask(width, width))),
        FieldMatchType::Optional(optional) => one(&optional.value, Some(prefix_mask(width, width))),
        FieldMatchType::Ternary(ternary) => one(&ternary.value, words_of(&ternary.mask, width)),
        FieldMatchType::Lpm(lpm) => {
            one(&lpm.value, Some(prefix_mask(width, lpm.prefix_len.unsigned_abs())))
        }
        FieldMatchType::Range(range) => prefixes(&range.low, &range.high, width)
            .into_iter()
            .map(|(value, length)| Some((words_of(&value, width)?, prefix_mask(width, length))))
            .collect(),
        FieldMatchType::Other(_) => None,
    }
}

/// The fewest prefixes (value, length) that make up a range, both ends included.
fn prefixes(low: &[u8], high: &[u8], width: u32) -> Vec<(Vec<u8>, u32)> {
    let (mut low, high) = (BigUint::from_bytes_be(low), BigUint::from_bytes_be(high));
    let mut list = Vec::new();
    while low <= high {
        // As large as `low` is aligned, and not beyond `high`.
        let aligned = low.trailing_zeros().unwrap_or(u64::from(width)).min(u64::from(width));
        let room = (&high - &low + 1_u8).bits() - 1;
        let free = aligned.min(room);
        list.push((low.to_bytes_be(), width - free as u32));
        low += BigUint::from(1_u8) << free;
    }
    list
}

/// A key with one more field in it.
fn joined(key: &PackedKey, (value, mask): &(Words, Words), below: u32) -> PackedKey {
    let mut key = key.clone();
    or_shifted(&mut key.value, value, below);
    or_shifted(&mut key.mask, mask, below);
    key
}

/// `target |= value << shift`, both least significant word first.
fn or_shifted(target: &mut [u64], value: &[u64], shift: u32) {
    let (word, bit) = (shift as usize / 64, shift % 64);
    for (i, part) in value.iter().enumerate() {
        if let Some(low) = target.get_mut(word + i) {
            *low |= part << bit;
        }
        if bit > 0
            && let Some(high) = target.get_mut(word + i + 1)
        {
            *high |= part >> (64 - bit);
        }
    }
}

/// A byte string, with a sign if `signed` (section 8.4), as a pattern of `width` bits.
fn words_from(bytes: &[u8], width: u32, signed: bool) -> Option<Words> {
    if !signed {
        return words_of(bytes, width);
    }
    let room = width.saturating_sub(1);
    if bytes.first().is_none_or(|first| *first < 0x80) {
        return words_of(bytes, room).and(words_of(bytes, width));
    }
    // The pattern of -n is the complement of the pattern of n - 1.
    let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    let mut words = words_of(&flipped, room).and(words_of(&flipped, width))?;
    for (i, word) in words.iter_mut().enumerate() {
        *word = !*word & crate::switch::lookup::low_bits(width.saturating_sub(64 * i as u32));
    }
    Some(words)
}

/// The canonical byte string of a pattern of `width` bits.
fn bytes_from(limbs: &[u64], width: u32, signed: bool) -> Vec<u8> {
    let bytes = super::entries::bytes_of(limbs, width);
    if !signed || width == 0 {
        return bytes;
    }
    let top =
        limbs.get((width as usize - 1) / 64).is_some_and(|l| l >> ((width - 1) % 64) & 1 == 1);
    let full = value::padded(&bytes, width as usize).unwrap_or(bytes);
    let mut extended = full.clone();
    if top
        && !width.is_multiple_of(8)
        && let Some(first) = extended.first_mut()
    {
        *first |= 0xff << (width % 8);
    }
    // Drop leading bytes that only repeat the sign.
    let sign = if top { 0xff } else { 0 };
    let same_sign = |next: u8| (next >= 0x80) == top;
    let mut start = 0;
    while start + 1 < extended.len() && extended[start] == sign && same_sign(extended[start + 1]) {
        start += 1;
    }
    extended.drain(..start);
    if !top && extended.first().is_some_and(|first| *first >= 0x80) {
        extended.insert(0, 0);
    }
    extended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_cells_keep_their_sign_through_bytes() {
        for (width, number, bytes) in [
            (8, 0x7f_u64, vec![0x7f]),
            (8, 0xff, vec![0xff]),
            (9, 0x1ff, vec![0xff]),
            (9, 0x080, vec![0x00, 0x80]),
            (9, 0x100, vec![0xff, 0x00]),
            (16, 0xff7f, vec![0xff, 0x7f]),
            (32, 0, vec![0]),
        ] {
            assert_eq!(bytes_from(&[number], width, true), bytes, "{number:x} in {width} bits");
            assert_eq!(words_from(&bytes, width, true).unwrap()[..], [number]);
        }
        assert_eq!(words_from(&[0x80], 7, true), None);
        assert_eq!(bytes_from(&[0x80], 8, false), [0x80]);
    }

    #[test]
    fn a_range_becomes_prefixes_that_cover_exactly_its_values() {
        for (low, high) in
            [(0_u8, 254_u8), (1, 254), (5, 5), (7, 8), (0, 127), (128, 255), (3, 200)]
        {
            let list = prefixes(&[low], &[high], 8);
            for value in 0..=255_u8 {
                let fits = |(start, length): &(Vec<u8>, u32)| {
                    let free = 8 - length;
                    u32::from(start.last().copied().unwrap_or(0)) >> free
                        == u32::from(value) >> free
                };
                assert_eq!(
                    list.iter().filter(|p| fits(p)).count(),
                    usize::from((low..=high).contains(&value)),
                    "{low}..={high}: {value}"
                );
            }
            assert!(list.len() <= 14, "{low}..={high}: {}", list.len());
        }
    }

    #[test]
    fn an_index_is_negative_or_beyond_or_one_cell() {
        let code = |index| cells("r", 4, Some(&Index { index })).map_err(|refusal| refusal.code);
        assert_eq!(code(-1), Err(Code::InvalidArgument));
        assert_eq!(code(4), Err(Code::OutOfRange));
        assert_eq!((code(3), cells("r", 4, None)), (Ok(3..4), Ok(0..4)));
    }
}
