//! Well-formed updates of every kind, drawn from P4Info. Values come from few, so that updates meet each other.

use super::state::{CELLS_MAX, Key, Model};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use ringpath::p4runtime::p4info::{
    ActionProfile, Field, MatchType, MeterType, Scope, SizeSemantics, Table,
};
use ringpath::p4runtime::proto::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as Bits;
use ringpath::p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec;
use ringpath::p4runtime::proto::p4::v1::action_profile_action::WatchKind;
use ringpath::p4runtime::proto::p4::v1::action_profile_group::member::WatchKind as GroupWatch;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use ringpath::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Copies;
use ringpath::p4runtime::proto::p4::v1::replica::PortKind;
use ringpath::p4runtime::proto::p4::v1::table_action::Type as Run;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{self as p4, Entity, TableEntry, Update};
use ringpath::p4runtime::value::encode;

#[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
fn note(entry: &mut TableEntry, (metadata, cookie): (Vec<u8>, u64)) {
    (entry.metadata, entry.controller_metadata) = (metadata, cookie);
}

/// Draws from one seed.
pub struct Draw<'a> {
    pub rng: Pcg64,
    pub model: &'a Model<'a>,
}

impl<'a> Draw<'a> {
    pub fn new(seed: u64, model: &'a Model<'a>) -> Self {
        Self { rng: Pcg64::seed_from_u64(seed), model }
    }

    pub fn below(&mut self, most: usize) -> usize {
        self.rng.random_range(0..most.max(1))
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub fn pick<'b, T>(&mut self, list: &'b [T]) -> Option<&'b T> {
        (!list.is_empty()).then(|| &list[self.below(list.len())])
    }

    /// A number of at most `width` bits, often a small one.
    fn number(&mut self, width: u32) -> u128 {
        let most = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
        match self.below(8) {
            0 => most,
            1 => most >> 1,
            2 => self.rng.random::<u128>() & most,
            _ => self.below(3) as u128 & most,
        }
    }

    fn value(&mut self, width: u32) -> Vec<u8> {
        encode(self.number(width))
    }

    fn port(&mut self) -> Vec<u8> {
        encode(self.rng.random_range(0..512_u128))
    }

    /// A part of a key; `None` is don't-care.
    fn part(&mut self, field: &Field) -> Option<p4::FieldMatch> {
        let most = if field.width >= 128 { u128::MAX } else { (1 << field.width) - 1 };
        if field.kind != MatchType::Exact && self.chance(3) {
            return None;
        }
        let kind = match field.kind {
            MatchType::Exact => {
                FieldMatchType::Exact(field_match::Exact { value: self.value(field.width) })
            }
            MatchType::Optional => {
                FieldMatchType::Optional(field_match::Optional { value: self.value(field.width) })
            }
            MatchType::Lpm => {
                let length = self.rng.random_range(1..=field.width);
                let value = self.number(field.width) & (most << (field.width - length));
                FieldMatchType::Lpm(field_match::Lpm {
                    value: encode(value),
                    prefix_len: length as i32,
                })
            }
            MatchType::Ternary => {
                let mask = self.number(field.width).max(1);
                let value = self.number(field.width) & mask;
                FieldMatchType::Ternary(field_match::Ternary {
                    value: encode(value),
                    mask: encode(mask),
                })
            }
            MatchType::Range => {
                let (a, b) = (self.number(field.width), self.number(field.width));
                let (low, high) = (a.min(b), a.max(b));
                if low == 0 && high == most {
                    return None;
                }
                FieldMatchType::Range(field_match::Range { low: encode(low), high: encode(high) })
            }
            MatchType::Unspecified => panic!("no such field in these programs"),
        };
        Some(p4::FieldMatch { field_id: field.id, field_match_type: Some(kind) })
    }

    pub fn action(&mut self, table: &Table, default: bool) -> Option<p4::Action> {
        let fits = |scope: Scope| match default {
            true => matches!(scope, Scope::TableAndDefault | Scope::DefaultOnly),
            false => matches!(scope, Scope::TableAndDefault | Scope::TableOnly),
        };
        let may: Vec<u32> = table.actions.iter().filter(|a| fits(a.scope)).map(|a| a.id).collect();
        let id = *self.pick(&may)?;
        let params = &self.model.index.action_by_id(id).unwrap().params;
        let params = params
            .iter()
            .map(|param| p4::action::Param { param_id: param.id, value: self.value(param.width) });
        Some(p4::Action { action_id: id, params: params.collect() })
    }

    fn member_action(&mut self, profile: &ActionProfile) -> Option<p4::Action> {
        let table = self.model.index.table_by_id(*profile.tables.first()?)?;
        self.action(table, false)
    }

    fn weight(&mut self, profile: &ActionProfile) -> i32 {
        if profile.weights_disallowed { 0 } else { self.rng.random_range(1..4) }
    }

    fn watch(&mut self) -> Option<Vec<u8>> {
        self.chance(3).then(|| self.port())
    }

    /// The id of a member or group, mostly of one that is there.
    fn reference(&mut self, profile: u32, group: bool) -> u32 {
        let there: Vec<u32> = self
            .model
            .state
            .keys()
            .filter_map(|key| match key {
                Key::Member(of, id) if *of == profile && !group => Some(*id),
                Key::Group(of, id) if *of == profile && group => Some(*id),
                _ => None,
            })
            .collect();
        let other = self.rng.random_range(1..5);
        if self.chance(6) { other } else { self.pick(&there).copied().unwrap_or(other) }
    }

    /// One-shot sets in some profiles, members in the others, and now and then the other of the two.
    fn run(&mut self, table: &Table) -> Option<Run> {
        let Some(profile) = table.profile.and_then(|id| self.model.index.profile_by_id(id)) else {
            return Some(Run::Action(self.action(table, false)?));
        };
        let one_shot = profile.with_selector && (one_shot_style(profile)) != self.chance(8);
        if !one_shot {
            let group = profile.with_selector && self.chance(2);
            let id = self.reference(profile.names.id, group);
            return Some(if group {
                Run::ActionProfileGroupId(id)
            } else {
                Run::ActionProfileMemberId(id)
            });
        }
        let most = if profile.max_group_size > 0 { profile.max_group_size } else { 12 };
        let (mut left, mut actions) = (most, Vec::new());
        for _ in 0..self.below(4) {
            let weight = self.weight(profile);
            let counted = match profile.semantics {
                SizeSemantics::SumOfWeights if !profile.weights_disallowed => weight,
                _ => 1,
            };
            if counted > left {
                break;
            }
            left -= counted;
            actions.push(p4::ActionProfileAction {
                action: Some(self.member_action(profile)?),
                weight,
                watch_kind: self.watch().map(WatchKind::WatchPort),
            });
        }
        let mut set =
            p4::ActionProfileActionSet { action_profile_actions: actions, ..Default::default() };
        if self.chance(4) {
            set.action_selection_mode =
                p4::action_profile_action_set::ActionSelectionMode::Hash.into();
        }
        Some(Run::ActionProfileActionSet(set))
    }

    fn counts(&mut self) -> p4::CounterData {
        p4::CounterData { byte_count: self.below(1000) as i64, packet_count: self.below(10) as i64 }
    }

    fn rates(&mut self, kind: MeterType) -> p4::MeterConfig {
        let (cir, cburst) = (self.below(9) as i64, self.below(9) as i64);
        match kind {
            MeterType::TwoRateThreeColor => {
                p4::MeterConfig { cir, cburst, pir: cir + 1, pburst: cburst + 5, eburst: 0 }
            }
            MeterType::SingleRateThreeColor => p4::MeterConfig {
                cir,
                cburst,
                pir: cir,
                pburst: cburst,
                eburst: self.below(9) as i64,
            },
            MeterType::SingleRateTwoColor => {
                p4::MeterConfig { cir, cburst, pir: cir, pburst: cburst, eburst: 0 }
            }
        }
    }

    fn notes(&mut self) -> (Vec<u8>, u64) {
        let metadata = if self.chance(3) { vec![self.below(3) as u8; 3] } else { Vec::new() };
        (metadata, if self.chance(4) { self.rng.random() } else { 0 })
    }

    /// Direct resources, where the table has them.
    fn resources(&mut self, table: &Table, entry: &mut TableEntry) {
        if table.counter.is_some() && self.chance(2) {
            entry.counter_data = Some(self.counts());
        }
        let meter = table.meter.and_then(|id| self.model.index.direct_meter_by_id(id));
        if let Some(meter) = meter.filter(|_| self.chance(2)) {
            entry.meter_config = Some(self.rates(meter.kind));
        }
    }

    fn kind(&mut self) -> Type {
        [Type::Insert, Type::Insert, Type::Insert, Type::Modify, Type::Delete][self.below(5)]
    }

    fn named_entry(&mut self, table: &Table) -> TableEntry {
        // Half of the time one that is there.
        let there: Vec<TableEntry> = self
            .model
            .state
            .values()
            .filter_map(|entity| match &entity.entity {
                Some(Kinds::TableEntry(e))
                    if e.table_id == table.names.id && !e.is_default_action =>
                {
                    Some(e.clone())
                }
                _ => None,
            })
            .collect();
        let mut entry = TableEntry { table_id: table.names.id, ..Default::default() };
        match self.pick(&there).cloned().filter(|_| self.chance(2)) {
            Some(old) => (entry.r#match, entry.priority) = (old.r#match, old.priority),
            None => {
                entry.r#match = table.fields.iter().filter_map(|field| self.part(field)).collect();
                entry.priority =
                    if table.needs_priority() { self.rng.random_range(1..4) } else { 0 };
            }
        }
        entry
    }

    fn table_update(&mut self, table: &Table) -> Option<Update> {
        if table.const_default.is_none()
            && table.profile.is_none()
            && (table.fields.is_empty() || self.chance(8))
        {
            let mut entry = TableEntry {
                table_id: table.names.id,
                is_default_action: true,
                ..Default::default()
            };
            if !self.chance(4) {
                entry.action =
                    Some(p4::TableAction { r#type: Some(Run::Action(self.action(table, true)?)) });
                note(&mut entry, self.notes());
                self.resources(table, &mut entry);
            }
            return Some(update(Type::Modify, Kinds::TableEntry(entry)));
        }
        if table.fields.is_empty() {
            return None;
        }
        let mut entry = self.named_entry(table);
        if table.is_const {
            self.resources(table, &mut entry);
            let any = table.counter.or(table.meter).is_some();
            return any.then(|| update(Type::Modify, Kinds::TableEntry(entry)));
        }
        let kind = self.kind();
        if kind != Type::Delete {
            note(&mut entry, self.notes());
            self.resources(table, &mut entry);
            if table.idle_timeout && self.chance(3) {
                entry.idle_timeout_ns = 1 + self.below(1000) as i64;
            }
            if kind == Type::Insert || !self.chance(3) {
                entry.action = Some(p4::TableAction { r#type: Some(self.run(table)?) });
            }
        }
        Some(update(kind, Kinds::TableEntry(entry)))
    }

    fn direct_update(&mut self, table: &Table) -> Option<Update> {
        let default = table.const_default.is_none()
            && table.profile.is_none()
            && (table.fields.is_empty() || self.chance(4));
        let named = match default {
            true => TableEntry {
                table_id: table.names.id,
                is_default_action: true,
                ..Default::default()
            },
            false if table.fields.is_empty() => return None,
            false => self.named_entry(table),
        };
        let meter = table.meter.and_then(|id| self.model.index.direct_meter_by_id(id));
        let kind = match meter.filter(|_| table.counter.is_none() || self.chance(2)) {
            Some(meter) => Kinds::DirectMeterEntry(p4::DirectMeterEntry {
                table_entry: Some(named),
                config: (!self.chance(3)).then(|| self.rates(meter.kind)),
                counter_data: None,
            }),
            None => {
                table.counter?;
                let data = (!self.chance(3)).then(|| self.counts());
                Kinds::DirectCounterEntry(p4::DirectCounterEntry { table_entry: Some(named), data })
            }
        };
        Some(update(Type::Modify, kind))
    }

    fn profile_update(&mut self, profile: &ActionProfile) -> Option<Update> {
        if one_shot_style(profile) && !self.chance(8) {
            return None;
        }
        let (owner, kind) = (profile.names.id, self.kind());
        let id = self.rng.random_range(1..5);
        if !profile.with_selector || self.chance(2) {
            let action =
                if kind == Type::Delete { None } else { Some(self.member_action(profile)?) };
            let member =
                p4::ActionProfileMember { action_profile_id: owner, member_id: id, action };
            return Some(update(kind, Kinds::ActionProfileMember(member)));
        }
        let mut members = Vec::new();
        for member_id in 1..5 {
            let there = self.model.state.contains_key(&Key::Member(owner, member_id));
            if self.chance(if there { 2 } else { 12 }) {
                let watch_kind = self.watch().map(GroupWatch::WatchPort);
                members.push(p4::action_profile_group::Member {
                    member_id,
                    weight: self.weight(profile),
                    watch_kind,
                });
            }
        }
        let max_size = match profile.max_group_size {
            0 => [0, 3, 20][self.below(3)],
            most => [most, most / 2][self.below(2)],
        };
        let group =
            p4::ActionProfileGroup { action_profile_id: owner, group_id: id, members, max_size };
        Some(update(kind, Kinds::ActionProfileGroup(group)))
    }

    fn cell(&mut self, size: i64) -> Option<p4::Index> {
        (!self.chance(8)).then(|| p4::Index { index: self.below(size as usize) as i64 })
    }

    fn array_update(&mut self) -> Option<Update> {
        let index = self.model.index;
        let kind = match self.below(3) {
            0 => {
                let counter =
                    self.pick(index.counters()).filter(|counter| counter.size <= CELLS_MAX)?;
                let cell = self.cell(counter.size);
                let data = (!self.chance(4)).then(|| self.counts());
                Kinds::CounterEntry(p4::CounterEntry {
                    counter_id: counter.names.id,
                    index: cell,
                    data,
                })
            }
            1 => {
                let meter = self.pick(index.meters()).filter(|meter| meter.size <= CELLS_MAX)?;
                let cell = self.cell(meter.size);
                let config = (!self.chance(4)).then(|| self.rates(meter.kind));
                Kinds::MeterEntry(p4::MeterEntry {
                    meter_id: meter.names.id,
                    index: cell,
                    config,
                    counter_data: None,
                })
            }
            _ => {
                let register =
                    self.pick(index.registers()).filter(|register| register.size <= CELLS_MAX)?;
                let cell = self.cell(register.size);
                let TypeSpec::Bitstring(bits) = register.cell.type_spec.as_ref()? else {
                    return None;
                };
                let bytes = match bits.type_spec.as_ref()? {
                    Bits::Bit(bit) => self.value(bit.bitwidth as u32),
                    Bits::Int(int) => signed(
                        self.number(int.bitwidth as u32 - 1) as i128 - self.below(2) as i128 * 5,
                    ),
                    Bits::Varbit(_) => return None,
                };
                let data = Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(bytes)) });
                Kinds::RegisterEntry(p4::RegisterEntry {
                    register_id: register.names.id,
                    index: cell,
                    data,
                })
            }
        };
        Some(update(Type::Modify, kind))
    }

    fn set_update(&mut self) -> Option<Update> {
        let set = self.pick(self.model.index.value_sets())?;
        let mut members: Vec<p4::ValueSetMember> = Vec::new();
        for _ in 0..self.below(set.size as usize + 1) {
            let member = p4::ValueSetMember {
                r#match: set.fields.iter().filter_map(|field| self.part(field)).collect(),
            };
            if !members.contains(&member) {
                members.push(member);
            }
        }
        let entry = p4::ValueSetEntry { value_set_id: set.names.id, members };
        Some(update(Type::Modify, Kinds::ValueSetEntry(entry)))
    }

    fn replicas(&mut self) -> Vec<p4::Replica> {
        let count = self.below(4) as u32;
        (0..count)
            .map(|instance| {
                // Instances differ, so that no pair of port and instance comes twice.
                let port = self.rng.random_range(0..500_u128);
                let backups = (0..self.below(3) as u32).map(|n| p4::BackupReplica {
                    port: encode(port + 1 + u128::from(n)),
                    instance: 100 * (instance + 1) + n,
                });
                p4::Replica {
                    instance,
                    backup_replicas: backups.collect(),
                    port_kind: Some(PortKind::Port(encode(port))),
                }
            })
            .collect()
    }

    fn copies_update(&mut self) -> Update {
        let (id, kind) = (self.rng.random_range(1..4), self.kind());
        let copies = match self.chance(2) {
            true => Copies::MulticastGroupEntry(p4::MulticastGroupEntry {
                multicast_group_id: id,
                replicas: self.replicas(),
                metadata: self.notes().0,
            }),
            false => Copies::CloneSessionEntry(p4::CloneSessionEntry {
                session_id: id,
                replicas: self.replicas(),
                class_of_service: self.below(4) as u32,
                packet_length_bytes: self.below(3) as i32 * 100,
            }),
        };
        update(
            kind,
            Kinds::PacketReplicationEngineEntry(p4::PacketReplicationEngineEntry {
                r#type: Some(copies),
            }),
        )
    }

    fn digest_update(&mut self) -> Option<Update> {
        let digest = self.pick(self.model.index.digests())?;
        let config = (!self.chance(4)).then(|| p4::digest_entry::Config {
            max_timeout_ns: self.below(5) as i64,
            max_list_size: self.below(5) as i32,
            ack_timeout_ns: self.below(5) as i64,
        });
        let entry = p4::DigestEntry { digest_id: digest.names.id, config };
        Some(update(self.kind(), Kinds::DigestEntry(entry)))
    }

    /// A well-formed update.
    pub fn update(&mut self) -> Update {
        let index = self.model.index;
        loop {
            let drawn = match self.below(16) {
                0..7 => self.pick(index.tables()).and_then(|table| self.table_update(table)),
                7 | 8 => self.pick(index.tables()).and_then(|table| self.direct_update(table)),
                9..12 => {
                    self.pick(index.profiles()).and_then(|profile| self.profile_update(profile))
                }
                12 => self.array_update(),
                13 => self.set_update(),
                14 => Some(self.copies_update()),
                _ => self.digest_update(),
            };
            if let Some(drawn) = drawn {
                return drawn;
            }
        }
    }
}

/// Whether a profile is mostly programmed by one-shot sets.
fn one_shot_style(profile: &ActionProfile) -> bool {
    profile.with_selector && (profile.names.id >> 1).is_multiple_of(2)
}

pub fn update(kind: Type, entity: Kinds) -> Update {
    Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) }
}

/// The shortest two's complement of a number (section 8.3).
fn signed(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let same =
        |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80);
    let extra = bytes.windows(2).take_while(|pair| same(pair)).count();
    bytes[extra..].to_vec()
}
