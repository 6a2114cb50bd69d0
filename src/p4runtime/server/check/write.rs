//! Updates of every entity (section 9, entity by entity).

use super::action::{Place, group_size, older_watch, weights_fit};
use super::{Check, Checked, MULTICAST_GROUP_MAX, Profile, invalid};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::{Kind, MeterType, Table};
use crate::p4runtime::proto::p4::v1::action_profile_group::member::WatchKind as GroupWatch;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use crate::p4runtime::proto::p4::v1::replica::PortKind;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry,
    DigestEntry, DirectCounterEntry, DirectMeterEntry, MeterConfig, MeterCounterData, MeterEntry,
    MulticastGroupEntry, RegisterEntry, Replica, TableEntry, Update, ValueSetEntry,
};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;
use std::collections::BTreeSet;

impl Check<'_> {
    /// Checks an update and makes it canonical.
    pub(in crate::p4runtime::server) fn update(&self, update: &mut Update) -> Checked {
        let kind = match Type::try_from(update.r#type) {
            Ok(Type::Unspecified) | Err(_) => {
                return Err(invalid("the update has no type; use INSERT, MODIFY or DELETE"));
            }
            Ok(kind) => kind,
        };
        let entity = update.entity.as_mut().and_then(|entity| entity.entity.as_mut());
        let Some(entity) = entity else {
            return Err(invalid("the update has no entity"));
        };
        if self.profile == Profile::Bmv2 {
            pi_refuses_writes(entity)?;
        }
        match entity {
            Kinds::ExternEntry(_) => Err(Refusal::new(
                Code::Unimplemented,
                "externs of other architectures are not supported",
            )),
            Kinds::TableEntry(entry) => self.table_entry(kind, entry),
            Kinds::ActionProfileMember(member) => self.member(kind, member),
            Kinds::ActionProfileGroup(group) => self.group(kind, group),
            Kinds::MeterEntry(entry) => self.meter(kind, entry),
            Kinds::DirectMeterEntry(entry) => self.direct_meter(kind, entry),
            Kinds::CounterEntry(entry) => self.counter(kind, entry),
            Kinds::DirectCounterEntry(entry) => self.direct_counter(kind, entry),
            Kinds::PacketReplicationEngineEntry(entry) => match entry.r#type.as_mut() {
                Some(Replication::MulticastGroupEntry(group)) => self.multicast(kind, group),
                Some(Replication::CloneSessionEntry(session)) => self.clone_session(kind, session),
                None => Err(invalid("the replication entry is neither group nor clone session")),
            },
            Kinds::ValueSetEntry(entry) => self.value_set(kind, entry),
            Kinds::RegisterEntry(entry) => self.register(kind, entry),
            Kinds::DigestEntry(entry) => self.digest(kind, entry),
        }
    }

    fn table_entry(&self, kind: Type, entry: &mut TableEntry) -> Checked {
        let id = entry.table_id;
        let table = self.object(Kind::Table, id, self.index.table_by_id(id))?;
        let owner = &table.names.name;
        if entry.is_default_action {
            return self.default_entry(kind, table, entry);
        }
        if table.fields.is_empty() && kind == Type::Insert {
            return Err(invalid(format!(
                "'{owner}' has no key; only its default entry can be set"
            )));
        }
        if entry.is_const {
            return Err(invalid(format!("'{owner}': is_const is the program's to set")));
        }
        if table.is_const && (kind != Type::Modify || !only_resources(entry)) {
            let text = format!(
                "'{owner}' is constant; only counters and meters of its entries can be written"
            );
            return Err(Refusal::new(Code::PermissionDenied, text));
        }
        self.entry_key(table, entry)?;
        if kind == Type::Delete {
            return Ok(());
        }
        if kind == Type::Insert && entry.action.is_none() {
            return Err(invalid(format!("'{owner}': an entry needs an action")));
        }
        if let Some(action) = entry.action.as_mut() {
            self.table_action(table, Place::Entry, action)?;
        }
        self.age(table, entry)?;
        self.direct(table, entry)
    }

    /// Key and priority, which name an entry (section 9.1).
    pub(super) fn entry_key(&self, table: &Table, entry: &mut TableEntry) -> Checked {
        let owner = &table.names.name;
        self.key(owner, &table.fields, &mut entry.r#match)?;
        match (table.needs_priority(), entry.priority) {
            (_, priority) if priority < 0 => {
                Err(invalid(format!("'{owner}': priority {priority} is negative")))
            }
            (true, 0) => Err(invalid(format!(
                "'{owner}': a priority above 0 is needed for its ternary, range or optional fields"
            ))),
            (false, priority) if priority != 0 => Err(invalid(format!(
                "'{owner}': priority {priority} is not 0, though no field is ternary, range or optional"
            ))),
            _ => Ok(()),
        }
    }

    /// Section 9.1.3.
    fn default_entry(&self, kind: Type, table: &Table, entry: &mut TableEntry) -> Checked {
        let owner = &table.names.name;
        if kind != Type::Modify {
            return Err(invalid(format!(
                "'{owner}': the default entry is always there; use MODIFY"
            )));
        }
        if !entry.r#match.is_empty() || entry.priority != 0 {
            return Err(invalid(format!(
                "'{owner}': the default entry has neither key nor priority"
            )));
        }
        if entry.is_const {
            return Err(invalid(format!("'{owner}': is_const is the program's to set")));
        }
        if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
            return Err(invalid(format!("'{owner}': the default entry does not age")));
        }
        if table.const_default.is_some() || table.profile.is_some() {
            let text = format!("'{owner}': the default action is constant");
            return Err(Refusal::new(Code::PermissionDenied, text));
        }
        if let Some(action) = entry.action.as_mut() {
            self.table_action(table, Place::Default, action)?;
        }
        self.direct(table, entry)
    }

    /// Section 9.1.8.
    fn age(&self, table: &Table, entry: &TableEntry) -> Checked {
        let owner = &table.names.name;
        if entry.time_since_last_hit.is_some() {
            return Err(invalid(format!("'{owner}': time_since_last_hit is read, not written")));
        }
        if entry.idle_timeout_ns < 0 {
            return Err(invalid(format!("'{owner}': idle_timeout_ns is negative; 0 is for ever")));
        }
        if entry.idle_timeout_ns != 0 && (!table.idle_timeout || table.is_const) {
            return Err(invalid(format!(
                "'{owner}': its entries do not age; leave idle_timeout_ns out"
            )));
        }
        Ok(())
    }

    /// Direct resources within a table entry (section 9.1.7).
    fn direct(&self, table: &Table, entry: &TableEntry) -> Checked {
        let owner = &table.names.name;
        let meter = table.meter.and_then(|id| self.index.direct_meter_by_id(id));
        if let Some(config) = &entry.meter_config {
            let Some(meter) = meter else {
                return Err(invalid(format!("'{owner}' has no direct meter")));
            };
            rates(owner, meter.kind, config)?;
        }
        if let Some(data) = &entry.counter_data {
            if table.counter.is_none() {
                return Err(invalid(format!("'{owner}' has no direct counter")));
            }
            counts(owner, data)?;
        }
        if let Some(data) = &entry.meter_counter_data {
            if meter.is_none() {
                return Err(invalid(format!("'{owner}' has no direct meter")));
            }
            colours(owner, data)?;
        }
        Ok(())
    }

    fn member(&self, kind: Type, member: &mut ActionProfileMember) -> Checked {
        let id = member.action_profile_id;
        let profile = self.object(Kind::ActionProfile, id, self.index.profile_by_id(id))?;
        let owner = &profile.names.name;
        if member.member_id == 0 {
            return Err(invalid(format!("'{owner}': member id is 0; ids start at 1")));
        }
        if kind == Type::Delete {
            return Ok(());
        }
        match member.action.as_mut() {
            Some(action) => self.member_action(profile, action),
            None => Err(invalid(format!("'{owner}': a member needs an action"))),
        }
    }

    fn group(&self, kind: Type, group: &mut ActionProfileGroup) -> Checked {
        let id = group.action_profile_id;
        let profile = self.object(Kind::ActionProfile, id, self.index.profile_by_id(id))?;
        let owner = &profile.names.name;
        if !profile.with_selector {
            return Err(invalid(format!("'{owner}' has no selector and so no groups")));
        }
        if group.group_id == 0 {
            return Err(invalid(format!("'{owner}': group id is 0; ids start at 1")));
        }
        if kind == Type::Delete {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for member in &mut group.members {
            number_to_watch(owner, &mut member.watch_kind)?;
            if let Some(GroupWatch::WatchPort(port)) = member.watch_kind.as_mut() {
                self.watch_port(owner, port)?;
            }
            if member.member_id == 0 || !seen.insert(member.member_id) {
                let id = member.member_id;
                return Err(invalid(format!(
                    "'{owner}': member {id} is 0 or given twice; use weights"
                )));
            }
        }
        let weights: Vec<i32> = group.members.iter().map(|member| member.weight).collect();
        weights_fit(profile, &weights)?;
        let (most, wanted) = (profile.max_group_size, group.max_size);
        if wanted < 0 || most > 0 && !(1..=most).contains(&wanted) {
            return Err(invalid(format!("'{owner}': max_size {wanted} is not in 1..={most}")));
        }
        let size = group_size(profile, &weights);
        if wanted > 0 && size > i64::from(wanted) {
            let text = format!("'{owner}': the group has size {size}, its max_size is {wanted}");
            return Err(Refusal::new(Code::ResourceExhausted, text));
        }
        Ok(())
    }

    fn meter(&self, kind: Type, entry: &MeterEntry) -> Checked {
        let id = entry.meter_id;
        let meter = self.object(Kind::Meter, id, self.index.meter_by_id(id))?;
        let owner = &meter.names.name;
        only_modify(kind, owner)?;
        let index = entry.index.map(|index| index.index);
        if index.is_none() && self.profile == Profile::Bmv2 {
            return Err(Refusal::new(
                Code::Unimplemented,
                "Wildcard write is not supported for indirect meters yet",
            ));
        }
        self.cell(owner, meter.size, index)?;
        entry.config.as_ref().map_or(Ok(()), |config| rates(owner, meter.kind, config))?;
        entry.counter_data.as_ref().map_or(Ok(()), |data| colours(owner, data))
    }

    fn direct_meter(&self, kind: Type, entry: &mut DirectMeterEntry) -> Checked {
        let table = self.direct_table(kind, entry.table_entry.as_mut())?;
        let owner = &table.names.name;
        let Some(meter) = table.meter.and_then(|id| self.index.direct_meter_by_id(id)) else {
            return Err(invalid(format!("'{owner}' has no direct meter")));
        };
        entry.config.as_ref().map_or(Ok(()), |config| rates(owner, meter.kind, config))?;
        entry.counter_data.as_ref().map_or(Ok(()), |data| colours(owner, data))
    }

    fn counter(&self, kind: Type, entry: &CounterEntry) -> Checked {
        let id = entry.counter_id;
        let counter = self.object(Kind::Counter, id, self.index.counter_by_id(id))?;
        let owner = &counter.names.name;
        only_modify(kind, owner)?;
        let index = entry.index.map(|index| index.index);
        if index.is_none() && self.profile == Profile::Bmv2 {
            return Err(Refusal::new(
                Code::Unimplemented,
                "Wildcard write is not supported for indirect counters yet",
            ));
        }
        self.cell(owner, counter.size, index)?;
        entry.data.as_ref().map_or(Ok(()), |data| counts(owner, data))
    }

    fn direct_counter(&self, kind: Type, entry: &mut DirectCounterEntry) -> Checked {
        let table = self.direct_table(kind, entry.table_entry.as_mut())?;
        let owner = &table.names.name;
        if table.counter.is_none() {
            return Err(invalid(format!("'{owner}' has no direct counter")));
        }
        entry.data.as_ref().map_or(Ok(()), |data| counts(owner, data))
    }

    /// The table of a direct resource, its entry's key checked.
    fn direct_table(&self, kind: Type, entry: Option<&mut TableEntry>) -> Checked<&Table> {
        let Some(entry) = entry else {
            return Err(invalid("a direct counter or meter is named by a table entry; give one"));
        };
        let id = entry.table_id;
        let table = self.object(Kind::Table, id, self.index.table_by_id(id))?;
        only_modify(kind, &table.names.name)?;
        if !entry.is_default_action {
            self.entry_key(table, entry)?;
        } else if !entry.r#match.is_empty() || entry.priority != 0 {
            let owner = &table.names.name;
            return Err(invalid(format!(
                "'{owner}': the default entry has neither key nor priority"
            )));
        }
        Ok(table)
    }

    fn multicast(&self, kind: Type, group: &mut MulticastGroupEntry) -> Checked {
        let id = group.multicast_group_id;
        if id == 0 {
            return Err(invalid("multicast group id is 0, which only reads may use"));
        }
        if id > MULTICAST_GROUP_MAX {
            let text = format!("multicast group {id} is above {MULTICAST_GROUP_MAX}");
            return Err(Refusal::new(Code::OutOfRange, text));
        }
        if kind == Type::Delete {
            return Ok(());
        }
        self.replicas(&format!("multicast group {id}"), &mut group.replicas)
    }

    fn clone_session(&self, kind: Type, session: &mut CloneSessionEntry) -> Checked {
        let id = session.session_id;
        if id == 0 {
            return Err(invalid("clone session id is 0, which only reads may use"));
        }
        if kind == Type::Delete {
            return Ok(());
        }
        if session.packet_length_bytes < 0 {
            return Err(invalid(format!(
                "clone session {id}: packet length is negative; 0 is whole packets"
            )));
        }
        self.replicas(&format!("clone session {id}"), &mut session.replicas)
    }

    /// Ports are there, and every (port, instance) is unique, backups included (section 9.5.1).
    fn replicas(&self, owner: &str, replicas: &mut [Replica]) -> Checked {
        let mut seen = BTreeSet::new();
        for replica in replicas {
            number_to_port(replica);
            let Some(PortKind::Port(bytes)) = replica.port_kind.as_mut() else {
                return Err(invalid(format!("{owner}: a replica has no port")));
            };
            self.bits(|| format!("{owner}: port"), 32, bytes)?;
            let port = bytes.clone();
            let mut pairs = vec![(port.clone(), replica.instance)];
            for backup in &mut replica.backup_replicas {
                self.bits(|| format!("{owner}: backup port"), 32, &mut backup.port)?;
                if backup.port == port {
                    return Err(invalid(format!("{owner}: a backup has the port of its replica")));
                }
                pairs.push((backup.port.clone(), backup.instance));
            }
            for pair in pairs {
                let instance = pair.1;
                if !seen.insert(pair) {
                    return Err(invalid(format!(
                        "{owner}: port and instance {instance} are given twice"
                    )));
                }
            }
        }
        Ok(())
    }

    fn value_set(&self, kind: Type, entry: &mut ValueSetEntry) -> Checked {
        let id = entry.value_set_id;
        let set = self.object(Kind::ValueSet, id, self.index.value_set_by_id(id))?;
        let owner = &set.names.name;
        only_modify(kind, owner)?;
        let count = entry.members.len();
        if i64::try_from(count).is_ok_and(|count| count > set.size) {
            let text = format!("'{owner}' holds {} members, the request has {count}", set.size);
            return Err(Refusal::new(Code::ResourceExhausted, text));
        }
        for place in 0..count {
            let (before, rest) = entry.members.split_at_mut(place);
            let Some(member) = rest.first_mut() else { break };
            self.key(owner, &set.fields, &mut member.r#match)?;
            if before.contains(member) {
                let text = format!("'{owner}': member {place} is there already");
                return Err(Refusal::new(Code::AlreadyExists, text));
            }
        }
        Ok(())
    }

    fn register(&self, kind: Type, entry: &mut RegisterEntry) -> Checked {
        let id = entry.register_id;
        let register = self.object(Kind::Register, id, self.index.register_by_id(id))?;
        let owner = &register.names.name;
        only_modify(kind, owner)?;
        self.cell(owner, register.size, entry.index.map(|index| index.index))?;
        match entry.data.as_mut() {
            Some(data) => self.data(&format!("'{owner}'"), &register.cell, data),
            None => Err(invalid(format!("'{owner}': there is no data to write"))),
        }
    }

    fn digest(&self, kind: Type, entry: &DigestEntry) -> Checked {
        let id = entry.digest_id;
        let digest = self.object(Kind::Digest, id, self.index.digest_by_id(id))?;
        let owner = &digest.names.name;
        match (kind, &entry.config) {
            (Type::Delete, _) | (_, None) => Ok(()),
            (_, Some(config)) => {
                let least = config.max_timeout_ns.min(config.ack_timeout_ns);
                if least < 0 || config.max_list_size < 0 {
                    return Err(invalid(format!("'{owner}': times and sizes are not negative")));
                }
                Ok(())
            }
        }
    }
}

/// Brings a watch port given in the older numeric field into the present one.
#[allow(deprecated, reason = "older clients still use the field")]
fn number_to_watch(owner: &str, watch: &mut Option<GroupWatch>) -> Checked {
    if let Some(GroupWatch::Watch(number)) = watch {
        *watch = older_watch(owner, *number)?.map(GroupWatch::WatchPort);
    }
    Ok(())
}

/// Brings a port given in the older numeric field into the present one, so that devices see one form.
#[allow(deprecated, reason = "older clients still use the field")]
fn number_to_port(replica: &mut Replica) {
    if let Some(PortKind::EgressPort(number)) = replica.port_kind {
        replica.port_kind = Some(PortKind::Port(value::encode(number.into())));
    }
}

/// What PI does not offer, with its texts (PI proto/frontend/src/device_mgr.cpp).
fn pi_refuses_writes(entity: &Kinds) -> Checked {
    let text = match entity {
        Kinds::RegisterEntry(_) => "Register writes are not supported yet",
        Kinds::ValueSetEntry(_) => "ValueSet writes are not supported yet",
        _ => return Ok(()),
    };
    Err(Refusal::new(Code::Unimplemented, text))
}

/// Whether a MODIFY asks for nothing but direct resources, all that a constant entry allows (section 9.1.4).
#[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
fn only_resources(entry: &TableEntry) -> bool {
    entry.action.is_none() && entry.metadata.is_empty() && entry.controller_metadata == 0
}

fn only_modify(kind: Type, owner: &str) -> Checked {
    if kind == Type::Modify {
        return Ok(());
    }
    Err(invalid(format!("'{owner}' is always there; use MODIFY")))
}

/// Rates and bursts fit the meter's algorithm (section 9.4).
fn rates(owner: &str, kind: MeterType, config: &MeterConfig) -> Checked {
    let least = config.cir.min(config.cburst).min(config.pir).min(config.pburst).min(config.eburst);
    if least < 0 {
        return Err(invalid(format!("'{owner}': rates and bursts are not negative")));
    }
    let single = config.pir == config.cir && config.pburst == config.cburst;
    match kind {
        MeterType::TwoRateThreeColor if config.eburst != 0 => {
            Err(invalid(format!("'{owner}': a two-rate meter has no eburst")))
        }
        MeterType::SingleRateThreeColor | MeterType::SingleRateTwoColor if !single => Err(invalid(
            format!("'{owner}': a single-rate meter needs pir = cir and pburst = cburst"),
        )),
        MeterType::SingleRateTwoColor if config.eburst != 0 => {
            Err(invalid(format!("'{owner}': a two-colour meter has no eburst")))
        }
        _ => Ok(()),
    }
}

fn counts(owner: &str, data: &CounterData) -> Checked {
    if data.byte_count < 0 || data.packet_count < 0 {
        return Err(invalid(format!("'{owner}': counts are not negative")));
    }
    Ok(())
}

/// Colour counters can only be cleared (section 9.4.1).
fn colours(owner: &str, data: &MeterCounterData) -> Checked {
    let zero = |data: &Option<CounterData>| {
        data.as_ref().is_none_or(|data| data.byte_count == 0 && data.packet_count == 0)
    };
    if zero(&data.green) && zero(&data.yellow) && zero(&data.red) {
        return Ok(());
    }
    Err(invalid(format!("'{owner}': counts by colour can only be cleared; leave them 0")))
}
