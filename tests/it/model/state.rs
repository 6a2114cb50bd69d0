//! What a P4Runtime server must hold: a map from keys to entities, written from the specification's sections 9 and 12
//! alone. It judges well-formed updates; several things may be wrong with one at once, and then any of their codes will do.

use prost::Message as _;
use ringpath::p4runtime::p4info::{ActionProfile, Index, SizeSemantics, Table};
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Copies;
use ringpath::p4runtime::proto::p4::v1::table_action::Type as Run;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CounterData, CounterEntry, Entity, Index as Cell,
    MeterConfig, MeterEntry, RegisterEntry, TableAction, TableEntry, Update,
};
use ringpath::p4runtime::rpc::Code;
use std::collections::BTreeMap;

/// Arrays with more cells are left out: reading all of them after every batch would take most of the time.
pub const CELLS_MAX: i64 = 64;

/// What names an entity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Entry(u32, Vec<u8>, i32),
    Default(u32),
    Member(u32, u32),
    Group(u32, u32),
    Counter(u32, i64),
    Meter(u32, i64),
    Register(u32, i64),
    ValueSet(u32),
    Multicast(u32),
    Session(u32),
    Digest(u32),
}

pub type State = BTreeMap<Key, Entity>;

fn entry_key(entry: &TableEntry) -> Key {
    if entry.is_default_action {
        return Key::Default(entry.table_id);
    }
    let mut fields = entry.r#match.clone();
    fields.sort_by_key(|field| field.field_id);
    let name = TableEntry { r#match: fields, ..TableEntry::default() };
    Key::Entry(entry.table_id, name.encode_to_vec(), entry.priority)
}

/// The key of an entity that was read; an index that is unset has none.
pub fn key(entity: &Entity) -> Option<Key> {
    let cell = |index: &Option<Cell>| index.map(|index| index.index);
    Some(match entity.entity.as_ref()? {
        Kinds::TableEntry(entry) => entry_key(entry),
        Kinds::ActionProfileMember(member) => {
            Key::Member(member.action_profile_id, member.member_id)
        }
        Kinds::ActionProfileGroup(group) => Key::Group(group.action_profile_id, group.group_id),
        Kinds::CounterEntry(entry) => Key::Counter(entry.counter_id, cell(&entry.index)?),
        Kinds::MeterEntry(entry) => Key::Meter(entry.meter_id, cell(&entry.index)?),
        Kinds::RegisterEntry(entry) => Key::Register(entry.register_id, cell(&entry.index)?),
        Kinds::ValueSetEntry(entry) => Key::ValueSet(entry.value_set_id),
        Kinds::PacketReplicationEngineEntry(entry) => match entry.r#type.as_ref()? {
            Copies::MulticastGroupEntry(group) => Key::Multicast(group.multicast_group_id),
            Copies::CloneSessionEntry(session) => Key::Session(session.session_id),
        },
        Kinds::DigestEntry(entry) => Key::Digest(entry.digest_id),
        Kinds::DirectCounterEntry(entry) => entry_key(entry.table_entry.as_ref()?),
        Kinds::DirectMeterEntry(entry) => entry_key(entry.table_entry.as_ref()?),
        Kinds::ExternEntry(_) => return None,
    })
}

/// The order of repeated fields means nothing (section 8.2), but for backups, which stay as they are.
pub fn sorted(mut entity: Entity) -> Entity {
    match entity.entity.as_mut() {
        Some(Kinds::TableEntry(entry)) => {
            entry.r#match.sort_by_key(|field| field.field_id);
            match entry.action.as_mut().and_then(|action| action.r#type.as_mut()) {
                Some(Run::Action(action)) => action.params.sort_by_key(|param| param.param_id),
                Some(Run::ActionProfileActionSet(set)) => {
                    for action in set.action_profile_actions.iter_mut().flat_map(|a| &mut a.action)
                    {
                        action.params.sort_by_key(|param| param.param_id);
                    }
                }
                _ => {}
            }
        }
        Some(Kinds::ActionProfileMember(member)) => {
            member.action.iter_mut().for_each(|a| a.params.sort_by_key(|param| param.param_id));
        }
        Some(Kinds::ActionProfileGroup(group)) => group.members.sort_by_key(|m| m.member_id),
        Some(Kinds::ValueSetEntry(set)) => {
            set.members.iter_mut().for_each(|m| m.r#match.sort_by_key(|field| field.field_id));
        }
        _ => {}
    }
    entity
}

/// The model.
#[derive(Clone)]
pub struct Model<'a> {
    pub index: &'a Index,
    pub state: State,
    /// Default entries as the program has them.
    defaults: State,
}

impl<'a> Model<'a> {
    /// From what a fresh program holds.
    pub fn new(index: &'a Index, fresh: State) -> Self {
        let is_default = |key: &Key| matches!(key, Key::Default(_));
        let defaults = fresh.iter().filter(|(key, _)| is_default(key));
        let defaults = defaults.map(|(key, entity)| (key.clone(), entity.clone())).collect();
        Self { index, state: fresh, defaults }
    }

    fn table(&self, id: u32) -> &'a Table {
        self.index.table_by_id(id).unwrap()
    }

    fn entries(&self) -> impl Iterator<Item = &TableEntry> {
        self.state.values().filter_map(|entity| match &entity.entity {
            Some(Kinds::TableEntry(entry)) => Some(entry),
            _ => None,
        })
    }

    /// Actions of the entries of a profile's tables.
    fn runs(&self, profile: u32) -> impl Iterator<Item = &Run> {
        let of = move |entry: &&TableEntry| self.table(entry.table_id).profile == Some(profile);
        self.entries().filter(of).filter_map(|entry| entry.action.as_ref()?.r#type.as_ref())
    }

    fn one_shots(&self, profile: u32) -> bool {
        self.runs(profile).any(|run| matches!(run, Run::ActionProfileActionSet(_)))
    }

    /// Executes a well-formed update, or says what may be wrong with it.
    pub fn execute(&mut self, update: &Update) -> Vec<Code> {
        let entity = sorted(update.entity.clone().unwrap());
        let kind = update.r#type();
        match entity.entity.as_ref().unwrap() {
            Kinds::TableEntry(entry) if entry.is_default_action => self.default(entry),
            Kinds::TableEntry(entry) => self.entry(kind, entry),
            Kinds::ActionProfileMember(member) => self.member(kind, member),
            Kinds::ActionProfileGroup(group) => self.group(kind, group),
            Kinds::CounterEntry(entry) => self.counter(entry),
            Kinds::MeterEntry(entry) => self.meter(entry),
            Kinds::RegisterEntry(entry) => self.register(entry),
            Kinds::DirectCounterEntry(direct) => {
                let data = direct.data;
                self.resource(&key(&entity).unwrap(), |entry| {
                    entry.counter_data = data.or(entry.counter_data);
                })
            }
            Kinds::DirectMeterEntry(direct) => {
                let config = direct.config;
                self.resource(&key(&entity).unwrap(), |entry| entry.meter_config = config)
            }
            Kinds::ValueSetEntry(_) => {
                self.state.insert(key(&entity).unwrap(), entity);
                Vec::new()
            }
            _ => self.plain(kind, entity),
        }
    }

    /// Entities of which nothing matters but whether they are there.
    fn plain(&mut self, kind: Type, entity: Entity) -> Vec<Code> {
        let name = key(&entity).unwrap();
        let wrong = presence(kind, self.state.contains_key(&name));
        if wrong.is_empty() {
            self.put(kind, name, entity);
        }
        wrong
    }

    fn put(&mut self, kind: Type, name: Key, entity: Entity) {
        match kind {
            Type::Delete => drop(self.state.remove(&name)),
            _ => drop(self.state.insert(name, entity)),
        }
    }

    fn resource(&mut self, name: &Key, change: impl FnOnce(&mut TableEntry)) -> Vec<Code> {
        match self.state.get_mut(name).and_then(|entity| entity.entity.as_mut()) {
            Some(Kinds::TableEntry(entry)) => {
                change(entry);
                Vec::new()
            }
            _ => vec![Code::NotFound],
        }
    }

    fn default(&mut self, entry: &TableEntry) -> Vec<Code> {
        let name = entry_key(entry);
        let old = self.state.get(&name).cloned();
        let new = match (&entry.action, old.and_then(|entity| entity.entity)) {
            (None, _) => self.defaults[&name].clone(),
            (Some(_), Some(Kinds::TableEntry(old))) => {
                let counted = self.table(entry.table_id).counter.map(|_| CounterData::default());
                let counter_data = entry.counter_data.or(old.counter_data).or(counted);
                wrap(TableEntry { counter_data, meter_counter_data: None, ..entry.clone() })
            }
            _ => panic!("a table without default entry"),
        };
        self.state.insert(name, new);
        Vec::new()
    }

    fn entry(&mut self, kind: Type, entry: &TableEntry) -> Vec<Code> {
        let table = self.table(entry.table_id);
        let name = entry_key(entry);
        let old = match self.state.get(&name).map(|entity| &entity.entity) {
            Some(Some(Kinds::TableEntry(old))) => Some(old.clone()),
            _ => None,
        };
        let mut wrong = presence(kind, old.is_some());
        if kind != Type::Delete {
            wrong.extend(entry.action.as_ref().and_then(|action| self.reference(table, action)));
        }
        let same = |e: &&TableEntry| e.table_id == entry.table_id && !e.is_default_action;
        let held = self.entries().filter(same).count();
        if kind == Type::Insert && held as i64 >= table.size {
            wrong.push(Code::ResourceExhausted);
        }
        if !wrong.is_empty() {
            return wrong;
        }
        let counted = table.counter.map(|_| CounterData::default());
        let before = old.as_ref().and_then(|old| old.counter_data);
        let counter_data = entry.counter_data.or(before).or(counted);
        let new = match old {
            // Only direct resources of constant entries change.
            Some(old) if table.is_const => {
                TableEntry { counter_data, meter_config: entry.meter_config, ..old }
            }
            old => TableEntry {
                action: entry.action.clone().or(old.and_then(|old| old.action)),
                counter_data,
                meter_counter_data: None,
                ..entry.clone()
            },
        };
        self.put(kind, name, wrap(new));
        Vec::new()
    }

    /// What an entry refers to is there, and in the selector's style.
    fn reference(&self, table: &Table, action: &TableAction) -> Option<Code> {
        let profile = table.profile?;
        let there = |name: Key| (!self.state.contains_key(&name)).then_some(Code::NotFound);
        match action.r#type.as_ref()? {
            Run::ActionProfileMemberId(id) => there(Key::Member(profile, *id)),
            Run::ActionProfileGroupId(id) => there(Key::Group(profile, *id)),
            Run::ActionProfileActionSet(_) => {
                let other = |key: &Key| matches!(key, Key::Member(p, _) | Key::Group(p, _) if *p == profile);
                self.state.keys().any(other).then_some(Code::InvalidArgument)
            }
            Run::Action(_) => None,
        }
    }

    fn member(&mut self, kind: Type, member: &ActionProfileMember) -> Vec<Code> {
        let (profile, id) = (member.action_profile_id, member.member_id);
        let name = Key::Member(profile, id);
        let mut wrong = presence(kind, self.state.contains_key(&name));
        let in_groups = self.state.values().any(|entity| match &entity.entity {
            Some(Kinds::ActionProfileGroup(group)) => {
                group.action_profile_id == profile
                    && group.members.iter().any(|m| m.member_id == id)
            }
            _ => false,
        });
        let in_entries = self.runs(profile).any(|run| *run == Run::ActionProfileMemberId(id));
        if kind == Type::Delete && (in_groups || in_entries) {
            wrong.push(Code::FailedPrecondition);
        }
        if kind != Type::Delete && self.one_shots(profile) {
            wrong.push(Code::InvalidArgument);
        }
        let size = self.index.profile_by_id(profile).unwrap().size;
        let held =
            self.state.keys().filter(|key| matches!(key, Key::Member(p, _) if *p == profile));
        if kind == Type::Insert && size > 0 && held.count() as i64 >= size {
            wrong.push(Code::ResourceExhausted);
        }
        if wrong.is_empty() {
            self.put(
                kind,
                name,
                Entity { entity: Some(Kinds::ActionProfileMember(member.clone())) },
            );
        }
        wrong
    }

    fn group(&mut self, kind: Type, group: &ActionProfileGroup) -> Vec<Code> {
        let (profile, id) = (group.action_profile_id, group.group_id);
        let name = Key::Group(profile, id);
        let old = match self.state.get(&name).map(|entity| &entity.entity) {
            Some(Some(Kinds::ActionProfileGroup(old))) => Some(old.max_size),
            _ => None,
        };
        let mut wrong = presence(kind, old.is_some());
        if kind == Type::Delete {
            if self.runs(profile).any(|run| *run == Run::ActionProfileGroupId(id)) {
                wrong.push(Code::FailedPrecondition);
            }
        } else {
            if self.one_shots(profile) || old.is_some_and(|size| size != group.max_size) {
                wrong.push(Code::InvalidArgument);
            }
            let there = |id| self.state.contains_key(&Key::Member(profile, id));
            if group.members.iter().any(|member| !there(member.member_id)) {
                wrong.push(Code::NotFound);
            }
            if group.max_size > 0
                && size_of(self.index.profile_by_id(profile).unwrap(), group) > group.max_size
            {
                wrong.push(Code::ResourceExhausted);
            }
        }
        if wrong.is_empty() {
            self.put(kind, name, Entity { entity: Some(Kinds::ActionProfileGroup(group.clone())) });
        }
        wrong
    }

    fn counter(&mut self, entry: &CounterEntry) -> Vec<Code> {
        let size = self.index.counter_by_id(entry.counter_id).unwrap().size;
        for index in cells(entry.index, size) {
            if entry.data.is_some() {
                let cell = CounterEntry { index: Some(Cell { index }), ..*entry };
                self.state.insert(
                    Key::Counter(entry.counter_id, index),
                    Entity { entity: Some(Kinds::CounterEntry(cell)) },
                );
            }
        }
        Vec::new()
    }

    fn meter(&mut self, entry: &MeterEntry) -> Vec<Code> {
        let size = self.index.meter_by_id(entry.meter_id).unwrap().size;
        for index in cells(entry.index, size) {
            let cell = MeterEntry { index: Some(Cell { index }), counter_data: None, ..*entry };
            self.state.insert(
                Key::Meter(entry.meter_id, index),
                Entity { entity: Some(Kinds::MeterEntry(cell)) },
            );
        }
        Vec::new()
    }

    fn register(&mut self, entry: &RegisterEntry) -> Vec<Code> {
        let size = self.index.register_by_id(entry.register_id).unwrap().size;
        for index in cells(entry.index, size) {
            let cell = RegisterEntry { index: Some(Cell { index }), ..entry.clone() };
            self.state.insert(
                Key::Register(entry.register_id, index),
                Entity { entity: Some(Kinds::RegisterEntry(cell)) },
            );
        }
        Vec::new()
    }
}

fn cells(index: Option<Cell>, size: i64) -> std::ops::Range<i64> {
    index.map_or(0..size, |index| index.index..index.index + 1)
}

fn wrap(entry: TableEntry) -> Entity {
    Entity { entity: Some(Kinds::TableEntry(entry)) }
}

fn presence(kind: Type, there: bool) -> Vec<Code> {
    match (kind, there) {
        (Type::Insert, true) => vec![Code::AlreadyExists],
        (Type::Modify | Type::Delete, false) => vec![Code::NotFound],
        _ => Vec::new(),
    }
}

/// Size of a group as its profile counts it (section 9.2.2).
pub fn size_of(profile: &ActionProfile, group: &ActionProfileGroup) -> i32 {
    match profile.semantics {
        SizeSemantics::SumOfWeights if !profile.weights_disallowed => {
            group.members.iter().map(|member| member.weight).sum()
        }
        _ => group.members.len() as i32,
    }
}

/// Patterns that read everything, counts and rates included.
pub fn everything(index: &Index) -> Vec<Entity> {
    let replication = |kind| {
        Kinds::PacketReplicationEngineEntry(
            ringpath::p4runtime::proto::p4::v1::PacketReplicationEngineEntry { r#type: Some(kind) },
        )
    };
    let entries = TableEntry {
        counter_data: Some(CounterData::default()),
        meter_config: Some(MeterConfig::default()),
        ..TableEntry::default()
    };
    let mut kinds = vec![
        Kinds::TableEntry(entries),
        Kinds::ActionProfileMember(Default::default()),
        Kinds::ActionProfileGroup(Default::default()),
        Kinds::ValueSetEntry(Default::default()),
        replication(Copies::MulticastGroupEntry(Default::default())),
        replication(Copies::CloneSessionEntry(Default::default())),
        Kinds::DigestEntry(Default::default()),
    ];
    let arrays = index.counters().iter().filter(|array| array.size <= CELLS_MAX);
    kinds.extend(arrays.map(|array| {
        Kinds::CounterEntry(CounterEntry { counter_id: array.names.id, ..Default::default() })
    }));
    let arrays = index.meters().iter().filter(|array| array.size <= CELLS_MAX);
    kinds.extend(arrays.map(|array| {
        Kinds::MeterEntry(MeterEntry { meter_id: array.names.id, ..Default::default() })
    }));
    let arrays = index.registers().iter().filter(|array| array.size <= CELLS_MAX);
    kinds.extend(arrays.map(|array| {
        Kinds::RegisterEntry(RegisterEntry { register_id: array.names.id, ..Default::default() })
    }));
    kinds.extend(index.tables().iter().map(|table| {
        Kinds::TableEntry(TableEntry {
            table_id: table.names.id,
            is_default_action: true,
            counter_data: table.counter.map(|_| CounterData::default()),
            meter_config: table.meter.map(|_| MeterConfig::default()),
            ..TableEntry::default()
        })
    }));
    kinds.into_iter().map(|kind| Entity { entity: Some(kind) }).collect()
}
