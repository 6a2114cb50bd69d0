//! Table entries with their direct resources. In: `TableEntry`. Out: the same, in canonical form, read back from what
//! packets use; nothing is stored twice. Must not know packets.

use super::arrays::{counter_data, meter_config, meter_counter_data, rates};
use super::direct::count_of;
use super::names::{FieldNames, TableNames};
use super::{Control, Done, refuse, unknown_id};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::MatchType;
use crate::p4runtime::proto::p4::v1::action_profile_action::WatchKind;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use crate::p4runtime::proto::p4::v1::table_action::Type as ActionType;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, FieldMatch, TableAction, TableEntry,
    action, table_entry,
};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;
use crate::switch::lookup::{EntryId, FieldMatch as Matched, PackedKey, words_of};
use crate::switch::meter::Meter;
use crate::switch::phv::big_endian;
use crate::switch::profile::{Bound, Choice, Choices};
use crate::switch::program::ActionNo;
use crate::switch::stats::Count;
use crate::switch::table::{Entry, Note, OneShot, Run, Table};
use std::collections::BTreeMap;

type Emit<'a> = &'a mut dyn FnMut(Kinds);

/// Canonical bytes of limbs (least significant first).
pub(crate) fn bytes_of(limbs: &[u64], width: u32) -> Vec<u8> {
    value::canonical(&big_endian(limbs, width.max(1))).to_vec()
}

fn bad_value(what: &str, bytes: &[u8], width: u32) -> Refusal {
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    Refusal::new(Code::OutOfRange, format!("{what}: 0x{hex} does not fit into {width} bits"))
}

impl Control {
    pub(crate) fn table(&self, id: u32) -> Result<&TableNames, Refusal> {
        self.names.tables.get(&id).ok_or_else(|| unknown_id("table", id))
    }

    pub(crate) fn state(&self, names: &TableNames) -> &Table {
        &self.memory.tables[names.no.index()]
    }

    /// An action's data in the program's form.
    pub(crate) fn bind(
        &self,
        owner: &str,
        actions: &BTreeMap<u32, ActionNo>,
        action: &Action,
    ) -> Result<Bound, Refusal> {
        let (Some(no), Some(names)) =
            (actions.get(&action.action_id), self.names.actions.get(&action.action_id))
        else {
            let text = format!("'{owner}' has no action with id {}", action.action_id);
            return refuse(Code::InvalidArgument, text);
        };
        let mut data = vec![0; names.limbs];
        for param in &action.params {
            let place = names.params.iter().find(|(id, _, _)| *id == param.param_id);
            let Some((_, width, limb)) = place else {
                let text = format!("'{owner}': the action has no parameter {}", param.param_id);
                return refuse(Code::InvalidArgument, text);
            };
            let Some(words) = words_of(&param.value, *width) else {
                return Err(bad_value(owner, &param.value, *width));
            };
            let start = *limb as usize;
            if let Some(place) = data.get_mut(start..start + words.len()) {
                place.copy_from_slice(&words);
            }
        }
        Ok(Bound { action: *no, data: data.into() })
    }

    /// The action as controllers write it.
    pub(crate) fn unbind(&self, bound: &Bound) -> Action {
        let id = self.names.action_ids.get(&bound.action).copied().unwrap_or(0);
        let Some(names) = self.names.actions.get(&id) else { return Action::default() };
        let param = |(id, width, limb): &(u32, u32, u32)| {
            let start = *limb as usize;
            let limbs = bound.data.get(start..start + width.div_ceil(64) as usize);
            action::Param { param_id: *id, value: bytes_of(limbs.unwrap_or(&[]), *width) }
        };
        Action { action_id: id, params: names.params.iter().map(param).collect() }
    }

    pub(crate) fn pack(
        &self,
        names: &TableNames,
        given: &[FieldMatch],
    ) -> Result<PackedKey, Refusal> {
        let layout = self.state(names).layout();
        let mut matches = vec![Matched::Any; layout.len()];
        for field_match in given {
            let field = names.fields.iter().find(|field| field.id == field_match.field_id);
            let (Some(field), Some(kind)) = (field, &field_match.field_match_type) else {
                let text = format!("'{}' has no match field {}", names.name, field_match.field_id);
                return refuse(Code::InvalidArgument, text);
            };
            matches[field.at] = match kind {
                FieldMatchType::Exact(exact) => Matched::Exact(&exact.value),
                FieldMatchType::Optional(optional) => Matched::Exact(&optional.value),
                FieldMatchType::Lpm(lpm) => Matched::Lpm(&lpm.value, lpm.prefix_len.unsigned_abs()),
                FieldMatchType::Ternary(ternary) => Matched::Ternary(&ternary.value, &ternary.mask),
                FieldMatchType::Range(range) => Matched::Range(&range.low, &range.high),
                FieldMatchType::Other(_) => {
                    let text = format!("'{}': v1model has no such kind of match", names.name);
                    return refuse(Code::Unimplemented, text);
                }
            };
        }
        for field in &names.fields {
            if field.kind == MatchType::Exact && matches[field.at] == Matched::Any {
                let text = format!("'{}': exact field {} is missing", names.name, field.id);
                return refuse(Code::InvalidArgument, text);
            }
        }
        layout.pack(&matches).map_err(|error| {
            Refusal::new(Code::InvalidArgument, format!("'{}': {error}", names.name))
        })
    }

    pub(crate) fn unpack(&self, names: &TableNames, key: &PackedKey) -> Vec<FieldMatch> {
        let layout = self.state(names).layout();
        let field = |field: &FieldNames| {
            let value = bytes_of(&layout.get(&key.value, field.at), field.width);
            let mask = layout.get(&key.mask, field.at);
            let bits: u32 = mask.iter().map(|word| word.count_ones()).sum();
            let kind = match field.kind {
                MatchType::Exact => FieldMatchType::Exact(field_match::Exact { value }),
                MatchType::Range => {
                    let (_, low, high) =
                        key.ranges.iter().find(|(at, _, _)| usize::from(*at) == field.at)?;
                    FieldMatchType::Range(field_match::Range {
                        low: bytes_of(low, field.width),
                        high: bytes_of(high, field.width),
                    })
                }
                _ if bits == 0 => return None,
                MatchType::Lpm => {
                    FieldMatchType::Lpm(field_match::Lpm { value, prefix_len: bits as i32 })
                }
                MatchType::Optional => FieldMatchType::Optional(field_match::Optional { value }),
                _ => {
                    let mask = bytes_of(&mask, field.width);
                    FieldMatchType::Ternary(field_match::Ternary { value, mask })
                }
            };
            Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) })
        };
        names.fields.iter().filter_map(field).collect()
    }

    fn run(&self, names: &TableNames, action: &TableAction) -> Result<Run, Refusal> {
        let profile = names.profile.and_then(|no| self.memory.profiles.get(no.index()));
        match &action.r#type {
            Some(ActionType::Action(action)) => {
                Ok(Run::Action(self.bind(&names.name, &names.actions, action)?))
            }
            Some(ActionType::ActionProfileMemberId(id)) => {
                if !profile.is_some_and(|profile| profile.members.contains_key(id)) {
                    let text = format!("'{}': there is no member {id}", names.name);
                    return refuse(Code::NotFound, text);
                }
                Ok(Run::Member(*id))
            }
            Some(ActionType::ActionProfileGroupId(id)) => {
                if !profile.is_some_and(|profile| profile.groups.contains_key(id)) {
                    let text = format!("'{}': there is no group {id}", names.name);
                    return refuse(Code::NotFound, text);
                }
                Ok(Run::Group(*id))
            }
            Some(ActionType::ActionProfileActionSet(set)) => self.one_shot(names, set),
            None => refuse(Code::InvalidArgument, format!("'{}': the action is empty", names.name)),
        }
    }

    fn one_shot(&self, names: &TableNames, set: &ActionProfileActionSet) -> Result<Run, Refusal> {
        let profile = names.profile.and_then(|no| self.memory.profiles.get(no.index()));
        if profile.is_some_and(|p| !p.members.is_empty() || !p.groups.is_empty()) {
            let text = format!(
                "'{}': its selector has members or groups, so one-shot sets cannot be used",
                names.name
            );
            return refuse(Code::InvalidArgument, text);
        }
        if set.group_action.is_some() {
            let text = format!("'{}': v1model's selectors have no group action", names.name);
            return refuse(Code::Unimplemented, text);
        }
        if self.mimic_bmv2 && set.action_profile_actions.is_empty() {
            return refuse(Code::Unimplemented, "No support for empty one-shot sets yet");
        }
        let mut choices = Vec::new();
        for choice in &set.action_profile_actions {
            let Some(action) = &choice.action else {
                let text = format!("'{}': an action of the set is empty", names.name);
                return refuse(Code::InvalidArgument, text);
            };
            let watch_bytes = match &choice.watch_kind {
                Some(WatchKind::WatchPort(port)) => port.clone(),
                _ => Vec::new(),
            };
            choices.push(Choice {
                what: self.bind(&names.name, &names.actions, action)?,
                weight: choice.weight.unsigned_abs(),
                watch: super::copies::watched(&names.name, &watch_bytes)?,
                watch_bytes,
            });
        }
        let written = (set.action_selection_mode, set.size_semantics);
        match Choices::new(choices, &|port| self.memory.is_up(port)) {
            Some(choices) => Ok(Run::OneShot(OneShot { choices, written })),
            None => self.full(format!("'{}': the set's weights are too large", names.name)),
        }
    }

    fn action_of(&self, run: &Run) -> TableAction {
        let kind = match run {
            Run::Action(bound) => ActionType::Action(self.unbind(bound)),
            Run::Member(id) => ActionType::ActionProfileMemberId(*id),
            Run::Group(id) => ActionType::ActionProfileGroupId(*id),
            Run::OneShot(set) => {
                let action = |choice: &Choice<Bound>| ActionProfileAction {
                    action: Some(self.unbind(&choice.what)),
                    weight: choice.weight as i32,
                    watch_kind: (!choice.watch_bytes.is_empty())
                        .then(|| WatchKind::WatchPort(choice.watch_bytes.clone())),
                };
                ActionType::ActionProfileActionSet(ActionProfileActionSet {
                    action_profile_actions: set.choices.all().iter().map(action).collect(),
                    action_selection_mode: set.written.0,
                    size_semantics: set.written.1,
                    ..ActionProfileActionSet::default()
                })
            }
        };
        TableAction { r#type: Some(kind) }
    }

    /// Members and groups know how many entries name them, a profile how many have a set of their own.
    fn count_users(&mut self, names: &TableNames, run: &Run, delta: i32) {
        let profile = names.profile.and_then(|no| self.memory.profiles.get_mut(no.index()));
        match (run, profile) {
            (Run::Member(id), Some(profile)) => profile.use_member(*id, delta),
            (Run::Group(id), Some(profile)) => profile.use_group(*id, delta),
            (Run::OneShot(_), Some(profile)) => {
                profile.one_shots = profile.one_shots.saturating_add_signed(delta);
            }
            _ => {}
        }
    }

    pub(crate) fn write_entry(&mut self, now_us: u64, kind: Type, entry: &TableEntry) -> Done {
        let names = std::sync::Arc::clone(&self.names);
        let names = names.tables.get(&entry.table_id);
        let names = names.ok_or_else(|| unknown_id("table", entry.table_id))?;
        if entry.is_default_action {
            return self.write_default(names, kind, entry);
        }
        let resources = names.counter.or(names.meter).is_some();
        if names.constant && !(kind == Type::Modify && entry.action.is_none() && resources) {
            let text = format!("the entries of '{}' are given by the program", names.name);
            return refuse(Code::PermissionDenied, text);
        }
        let key = self.pack(names, &entry.r#match)?;
        let found = self.state(names).same(&key, entry.priority);
        match (kind, found) {
            (Type::Insert, Some(_)) => {
                let text = format!("'{}' has an entry with this key already", names.name);
                refuse(Code::AlreadyExists, text)
            }
            (Type::Insert, None) => self.insert(now_us, names, key, entry),
            (_, None) => {
                refuse(Code::NotFound, format!("'{}' has no entry with this key", names.name))
            }
            (Type::Delete, Some(id)) => {
                if let Some(gone) = self.memory.tables[names.no.index()].remove(id) {
                    self.count_users(names, &gone.run, -1);
                }
                Ok(())
            }
            (_, Some(id)) if names.constant => {
                self.modify_resources(names, id, entry);
                Ok(())
            }
            (_, Some(id)) => self.modify(now_us, names, id, entry),
        }
    }

    fn insert(
        &mut self,
        now_us: u64,
        names: &TableNames,
        key: PackedKey,
        entry: &TableEntry,
    ) -> Done {
        // BMv2 goes by the device config alone.
        let declared = self.memory.program().tables[names.no.index()].max_size.max(1) as usize;
        let size = if self.mimic_bmv2 { declared } else { names.size };
        let size = size.min(crate::switch::table::MAX_ENTRIES as usize);
        if self.state(names).len() >= size {
            return self.full(format!("'{}' is full with {size} entries", names.name));
        }
        let Some(action) = &entry.action else {
            let text = format!("'{}': the entry has no action", names.name);
            return refuse(Code::InvalidArgument, text);
        };
        let run = self.run(names, action)?;
        self.count_users(names, &run, 1);
        let mut new = Entry::new(key, entry.priority, run);
        new.meter.configure(entry.meter_config.as_ref().map(rates));
        new.count = entry.counter_data.as_ref().map_or(Count::default(), count_of);
        new.idle_timeout_ns = entry.idle_timeout_ns;
        new.last_hit_us = now_us;
        new.note = note_of(entry);
        self.memory.tables[names.no.index()].insert(new);
        Ok(())
    }

    fn modify(&mut self, now_us: u64, names: &TableNames, id: EntryId, entry: &TableEntry) -> Done {
        let run = entry.action.as_ref().map(|action| self.run(names, action)).transpose()?;
        self.modify_resources(names, id, entry);
        let Some(old) = self.memory.tables[names.no.index()].get_mut(id) else { return Ok(()) };
        old.idle_timeout_ns = entry.idle_timeout_ns;
        old.last_hit_us = now_us;
        old.notified_us = None;
        old.note = note_of(entry);
        if let Some(run) = run {
            let before = std::mem::replace(&mut old.run, run.clone());
            self.count_users(names, &run, 1);
            self.count_users(names, &before, -1);
        }
        Ok(())
    }

    /// Direct counter and meter of an entry as a MODIFY wants them (section 9.1.7).
    fn modify_resources(&mut self, names: &TableNames, id: EntryId, entry: &TableEntry) {
        let Some(old) = self.memory.tables[names.no.index()].get_mut(id) else { return };
        set_resources(&mut old.count, &mut old.meter, entry);
    }

    fn write_default(&mut self, names: &TableNames, kind: Type, entry: &TableEntry) -> Done {
        if kind != Type::Modify {
            let text = format!("'{}': the default entry can only be modified", names.name);
            return refuse(Code::InvalidArgument, text);
        }
        let program = std::sync::Arc::clone(self.memory.program());
        if program.tables[names.no.index()].default.as_ref().is_some_and(|d| d.constant) {
            let text = format!("the default entry of '{}' is constant", names.name);
            return refuse(Code::PermissionDenied, text);
        }
        let run = match &entry.action {
            Some(action) => Some(self.run(names, action)?),
            None => self.memory.program_default(names.no),
        };
        let reset = entry.action.is_none();
        if let Some(run) = &run {
            self.count_users(names, run, 1);
        }
        let default = &mut self.memory.tables[names.no.index()].default;
        default.note = if reset { Note::default() } else { note_of(entry) };
        match reset {
            true => (default.count, default.meter) = (Count::default(), Meter::default()),
            false => set_resources(&mut default.count, &mut default.meter, entry),
        }
        let before = std::mem::replace(&mut default.run, run);
        if let Some(before) = before {
            self.count_users(names, &before, -1);
        }
        Ok(())
    }

    /// What an entry and the default entry have in common; direct resources only where `asked` has them set.
    #[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
    fn common(
        &self,
        names: &TableNames,
        (note, count, meter): (&Note, &Count, &Meter),
        asked: &TableEntry,
    ) -> TableEntry {
        let counted = asked.counter_data.is_some() && names.counter.is_some();
        let metered = names.meter.is_some();
        TableEntry {
            table_id: names.id,
            meter_config: (metered && asked.meter_config.is_some())
                .then(|| meter.rates().map(|rates| meter_config(&rates)))
                .flatten(),
            counter_data: counted.then(|| counter_data(count)),
            meter_counter_data: (metered && asked.meter_counter_data.is_some())
                .then(|| meter_counter_data(meter)),
            metadata: note.metadata.clone(),
            controller_metadata: note.cookie,
            ..TableEntry::default()
        }
    }

    fn entry_of(
        &self,
        now_us: u64,
        names: &TableNames,
        entry: &Entry,
        asked: &TableEntry,
    ) -> TableEntry {
        let age = || table_entry::IdleTimeout {
            elapsed_ns: i64::try_from(now_us.saturating_sub(entry.last_hit_us) * 1000)
                .unwrap_or(i64::MAX),
        };
        TableEntry {
            r#match: self.unpack(names, &entry.key),
            action: Some(self.action_of(&entry.run)),
            priority: entry.priority,
            idle_timeout_ns: entry.idle_timeout_ns,
            time_since_last_hit: asked.time_since_last_hit.is_some().then(age),
            is_const: entry.constant && names.constant,
            ..self.common(names, (&entry.note, &entry.count, &entry.meter), asked)
        }
    }

    pub(crate) fn read_entries(&self, now_us: u64, asked: &TableEntry, emit: Emit<'_>) -> Done {
        if asked.table_id == 0 {
            for names in self.names.tables.values() {
                self.read_table(now_us, names, asked, emit)?;
            }
            return Ok(());
        }
        self.read_table(now_us, self.table(asked.table_id)?, asked, emit)
    }

    fn read_table(
        &self,
        now_us: u64,
        names: &TableNames,
        asked: &TableEntry,
        emit: Emit<'_>,
    ) -> Done {
        let table = self.state(names);
        let wanted_action = match asked.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            Some(ActionType::Action(action)) => Some(action.action_id),
            _ => None,
        };
        let noted = note_of(asked);
        let fits_filters = |run: &Run, note: &Note| {
            let action = match run {
                Run::Action(bound) => self.names.action_ids.get(&bound.action).copied(),
                _ => None,
            };
            (wanted_action.is_none() || wanted_action == action)
                && (noted.metadata.is_empty() || noted.metadata == note.metadata)
                && (noted.cookie == 0 || noted.cookie == note.cookie)
        };
        if asked.is_default_action {
            let default = &table.default;
            if let Some(run) = default.run.as_ref().filter(|run| fits_filters(run, &default.note)) {
                emit(Kinds::TableEntry(TableEntry {
                    action: Some(self.action_of(run)),
                    is_default_action: true,
                    ..self.common(names, (&default.note, &default.count, &default.meter), asked)
                }));
            }
            return Ok(());
        }
        let key =
            if asked.r#match.is_empty() { None } else { Some(self.pack(names, &asked.r#match)?) };
        let fits = |entry: &Entry| {
            key.as_ref().is_none_or(|key| *key == entry.key)
                && (asked.priority == 0 || asked.priority == entry.priority)
                && fits_filters(&entry.run, &entry.note)
        };
        // A full key and priority name one entry: no need to look at all.
        let one = key.as_ref().filter(|_| asked.priority != 0 || !table.by_priority());
        if let Some(key) = one {
            let found = table.same(key, asked.priority).and_then(|id| table.get(id));
            if let Some(entry) = found.filter(|entry| fits(entry)) {
                emit(Kinds::TableEntry(self.entry_of(now_us, names, entry, asked)));
            }
            return Ok(());
        }
        for (_, entry) in table.iter().filter(|(_, entry)| fits(entry)) {
            emit(Kinds::TableEntry(self.entry_of(now_us, names, entry, asked)));
        }
        Ok(())
    }

    /// The key, priority, timeout and notes of an entry, for idle notifications.
    #[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
    pub(crate) fn named(&self, names: &TableNames, entry: &Entry) -> TableEntry {
        TableEntry {
            table_id: names.id,
            r#match: self.unpack(names, &entry.key),
            priority: entry.priority,
            idle_timeout_ns: entry.idle_timeout_ns,
            metadata: entry.note.metadata.clone(),
            controller_metadata: entry.note.cookie,
            ..TableEntry::default()
        }
    }
}

#[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
fn note_of(entry: &TableEntry) -> Note {
    Note { metadata: entry.metadata.clone(), cookie: entry.controller_metadata }
}

/// Direct resources as a MODIFY wants them (section 9.1.7): no rates are the default rates, no count leaves the count.
/// Rates that are the same as before leave the meter's buckets alone.
fn set_resources(count: &mut Count, meter: &mut Meter, entry: &TableEntry) {
    let new_rates = entry.meter_config.as_ref().map(rates);
    if meter.rates() != new_rates {
        meter.configure(new_rates);
    }
    if entry.meter_counter_data.is_some() {
        meter.clear_counts();
    }
    if let Some(data) = &entry.counter_data {
        *count = count_of(data);
    }
}
