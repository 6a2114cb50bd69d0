//! Read patterns: an entity with unset parts stands for all that fit (sections 9 and 13.2).

use super::{Check, Checked, Profile, invalid};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::{Kind, Table};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::{Entity, TableEntry, table_action};
use crate::p4runtime::rpc::Code;

impl Check<'_> {
    /// Checks a pattern and makes it canonical.
    pub(in crate::p4runtime::server) fn pattern(&self, entity: &mut Entity) -> Checked {
        let Some(entity) = entity.entity.as_mut() else {
            return Err(invalid("the pattern has no entity; say which kind to read"));
        };
        if self.profile == Profile::Bmv2 {
            pi_refuses_reads(entity)?;
        }
        let index = self.index;
        match entity {
            Kinds::ExternEntry(_) => Err(Refusal::new(
                Code::Unimplemented,
                "externs of other architectures are not supported",
            )),
            Kinds::TableEntry(entry) => self.table_pattern(entry),
            Kinds::ActionProfileMember(member) => {
                let id = member.action_profile_id;
                self.optional(
                    Kind::ActionProfile,
                    id,
                    index.profile_by_id(id),
                    member.member_id == 0,
                )
            }
            Kinds::ActionProfileGroup(group) => {
                let id = group.action_profile_id;
                self.optional(Kind::ActionProfile, id, index.profile_by_id(id), group.group_id == 0)
            }
            Kinds::MeterEntry(entry) => {
                let (id, cell) = (entry.meter_id, entry.index.map(|index| index.index));
                let meter = index.meter_by_id(id);
                self.optional(Kind::Meter, id, meter, cell.is_none())?;
                meter.map_or(Ok(()), |meter| self.cell(&meter.names.name, meter.size, cell))
            }
            Kinds::CounterEntry(entry) => {
                let (id, cell) = (entry.counter_id, entry.index.map(|index| index.index));
                let counter = index.counter_by_id(id);
                self.optional(Kind::Counter, id, counter, cell.is_none())?;
                counter.map_or(Ok(()), |counter| self.cell(&counter.names.name, counter.size, cell))
            }
            Kinds::RegisterEntry(entry) => {
                let (id, cell) = (entry.register_id, entry.index.map(|index| index.index));
                let register = index.register_by_id(id);
                self.optional(Kind::Register, id, register, cell.is_none())?;
                register
                    .map_or(Ok(()), |register| self.cell(&register.names.name, register.size, cell))
            }
            Kinds::DirectMeterEntry(entry) => {
                self.direct_pattern(entry.table_entry.as_mut(), |table| table.meter, "meter")
            }
            Kinds::DirectCounterEntry(entry) => {
                self.direct_pattern(entry.table_entry.as_mut(), |table| table.counter, "counter")
            }
            Kinds::PacketReplicationEngineEntry(entry) if entry.r#type.is_none() => {
                Err(invalid("the replication pattern is neither group nor clone session"))
            }
            Kinds::PacketReplicationEngineEntry(_) => Ok(()),
            Kinds::ValueSetEntry(entry) => {
                let id = entry.value_set_id;
                self.optional(Kind::ValueSet, id, index.value_set_by_id(id), true)
            }
            Kinds::DigestEntry(entry) => {
                let id = entry.digest_id;
                self.optional(Kind::Digest, id, index.digest_by_id(id), true)
            }
        }
    }

    /// An id that may be 0 for all, as long as nothing narrower is asked for.
    fn optional<T>(&self, kind: Kind, id: u32, found: Option<&T>, wide: bool) -> Checked {
        if id == 0 {
            if wide {
                return Ok(());
            }
            let words = kind.words();
            return Err(invalid(format!("{words} id is 0, so nothing below it can be named")));
        }
        self.object(kind, id, found).map(|_| ())
    }

    /// Section 9.1.6.
    fn table_pattern(&self, entry: &mut TableEntry) -> Checked {
        if entry.table_id == 0 {
            let narrower = !entry.r#match.is_empty()
                || entry.action.is_some()
                || entry.priority != 0
                || !entry.metadata.is_empty()
                || cookie(entry) != 0;
            if narrower {
                return Err(invalid("table id is 0, so no other filter can be used"));
            }
            return Ok(());
        }
        let id = entry.table_id;
        let table = self.object(Kind::Table, id, self.index.table_by_id(id))?;
        let owner = &table.names.name;
        if entry.is_default_action {
            if !entry.r#match.is_empty() || entry.priority != 0 {
                return Err(invalid(format!(
                    "'{owner}': the default entry has neither key nor priority"
                )));
            }
        } else if !entry.r#match.is_empty() {
            self.read_key(table, entry)?;
        } else if entry.priority < 0 {
            return Err(invalid(format!("'{owner}': priority is negative")));
        }
        if let Some(action) = &entry.action {
            let Some(table_action::Type::Action(action)) = &action.r#type else {
                return Err(invalid(format!(
                    "'{owner}': entries can be filtered by action id only"
                )));
            };
            let id = action.action_id;
            self.object(Kind::Action, id, self.index.action_by_id(id))?;
            if !table.actions.iter().any(|candidate| candidate.id == id) {
                return Err(invalid(format!("'{owner}' does not have the action {id:#010x}")));
            }
        }
        let ages = table.idle_timeout && !entry.is_default_action;
        if entry.time_since_last_hit.is_some() && !ages {
            return Err(invalid(format!("'{owner}': its entries do not age")));
        }
        if entry.counter_data.is_some() && table.counter.is_none() {
            return Err(invalid(format!("'{owner}' has no direct counter")));
        }
        let meter = entry.meter_config.is_some() || entry.meter_counter_data.is_some();
        if meter && table.meter.is_none() {
            return Err(invalid(format!("'{owner}' has no direct meter")));
        }
        Ok(())
    }

    /// A key in a pattern is complete; its priority may be left out (0 is any).
    fn read_key(&self, table: &Table, entry: &mut TableEntry) -> Checked {
        let any = entry.priority == 0 && table.needs_priority();
        if any {
            return self.key(&table.names.name, &table.fields, &mut entry.r#match);
        }
        self.entry_key(table, entry)
    }

    fn direct_pattern(
        &self,
        entry: Option<&mut TableEntry>,
        resource: impl Fn(&Table) -> Option<u32>,
        what: &str,
    ) -> Checked {
        let Some(entry) = entry.filter(|entry| entry.table_id != 0) else {
            if self.profile == Profile::Bmv2 {
                let text =
                    format!("Reading all direct {what}s for ALL tables is not supported yet");
                return Err(Refusal::new(Code::Unimplemented, text));
            }
            return Ok(());
        };
        let id = entry.table_id;
        let table = self.object(Kind::Table, id, self.index.table_by_id(id))?;
        if resource(table).is_none() {
            return Err(invalid(format!("'{}' has no direct {what}", table.names.name)));
        }
        if entry.is_default_action && (!entry.r#match.is_empty() || entry.priority != 0) {
            let owner = &table.names.name;
            return Err(invalid(format!(
                "'{owner}': the default entry has neither key nor priority"
            )));
        }
        if entry.r#match.is_empty() {
            return Ok(());
        }
        self.read_key(table, entry)
    }
}

#[allow(deprecated, reason = "older clients keep their cookie in controller_metadata")]
fn cookie(entry: &TableEntry) -> u64 {
    entry.controller_metadata
}

/// What PI does not offer, with its texts (PI proto/frontend/src/device_mgr.cpp).
fn pi_refuses_reads(entity: &Kinds) -> Checked {
    let text = match entity {
        Kinds::RegisterEntry(_) => "Register reads are not supported yet",
        Kinds::ValueSetEntry(_) => "ValueSet reads are not supported yet",
        Kinds::DigestEntry(entry) if entry.digest_id == 0 => {
            "Wildcard reads are not supported for digests yet"
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(Code::Unimplemented, text))
}
