//! Commands for what is not a table: clone sessions, multicast, registers, counters, meters; and reading them. Part of the
//! runner.

use super::Runner;
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::p4::v1::{
    CloneSessionEntry, CounterData, CounterEntry, DirectCounterEntry, Entity, Index, MeterConfig,
    MeterEntry, MulticastGroupEntry, P4Data, PacketReplicationEngineEntry, RegisterEntry, Replica,
    TableEntry, entity::Entity as Kinds, p4_data, packet_replication_engine_entry, replica, update,
};
use crate::switch::stf::{
    Cell, Command, Reading,
    info::{self, prefix},
    report::{Failure, Kind, Value},
    values::value_of,
};
use num_bigint::BigUint;

/// Cells of a register that are put into the report at most.
const MAX_CELLS_SHOWN: usize = 64;

impl Runner<'_> {
    pub(super) fn change_target(&mut self, command: &Command) -> Result<(), String> {
        use update::Type::{Delete, Insert, Modify};
        match command {
            Command::MirrorPort(session, port) => {
                self.sessions.insert(*session, None);
                self.session(Insert, *session, vec![replica(0, *port)])
            }
            Command::MirrorGroup(session, group) => {
                self.sessions.insert(*session, Some(*group));
                self.session(Insert, *session, self.replicas(*group))
            }
            Command::MirrorDelete(session) => {
                self.sessions.remove(session);
                self.session(Delete, *session, Vec::new())
            }
            Command::Group(group) => {
                self.groups.insert(*group, Vec::new());
                self.group(Insert, *group)
            }
            Command::Node(rid, ports) => {
                self.nodes.push((*rid, ports.clone()));
                Ok(())
            }
            Command::NodeUpdate(node, ports) => self.node_update(*node, ports),
            Command::Associate(group, node) => {
                if *node >= self.nodes.len() {
                    return Err(format!("there is no node {node}; create it with mc_node_create"));
                }
                let members = self.groups.get_mut(group);
                members
                    .ok_or_else(|| {
                        format!("there is no group {group}; create it with mc_mgrp_create")
                    })?
                    .push(*node);
                self.group(Modify, *group)
            }
            Command::RegisterWrite(name, index, value) => {
                let bytes = value_of(value)?.to_bytes_be();
                self.register(name, Some(*index), bytes)
            }
            Command::RegisterReset(name) => self.register(name, None, vec![0]),
            Command::CounterWrite(name, index, packet_count, byte_count) => {
                let counter_id = info::id(prefix::COUNTER, self.counter(name)?);
                let data =
                    Some(CounterData { packet_count: *packet_count, byte_count: *byte_count });
                let index = Some(Index { index: *index });
                self.write(Modify, Kinds::CounterEntry(CounterEntry { counter_id, index, data }))
            }
            Command::MeterRates(name, index, rates) => self.meter_rates(name, *index, rates),
            _ => Ok(()),
        }
    }

    fn node_update(&mut self, node: usize, ports: &[u16]) -> Result<(), String> {
        let known = self.nodes.get_mut(node);
        known
            .ok_or_else(|| format!("there is no node {node}; create it with mc_node_create"))?
            .1
            .clone_from(&ports.to_vec());
        let members = self.groups.iter().filter(|(_, nodes)| nodes.contains(&node));
        let groups: Vec<u32> = members.map(|(group, _)| *group).collect();
        groups.into_iter().try_for_each(|group| self.group(update::Type::Modify, group))
    }

    fn replicas(&self, group: u32) -> Vec<Replica> {
        let members = self.groups.get(&group).map_or(&[][..], Vec::as_slice);
        let nodes = members.iter().filter_map(|n| self.nodes.get(*n));
        nodes.flat_map(|(rid, ports)| ports.iter().map(|p| replica(*rid, *p))).collect()
    }

    /// Writes a group, and again the clone sessions that go to it.
    fn group(&mut self, kind: update::Type, group: u32) -> Result<(), String> {
        let replicas = self.replicas(group);
        let entry = MulticastGroupEntry {
            multicast_group_id: group,
            replicas: replicas.clone(),
            ..MulticastGroupEntry::default()
        };
        let entry = packet_replication_engine_entry::Type::MulticastGroupEntry(entry);
        self.write(kind, copies(entry))?;
        let uses = self.sessions.iter().filter(|(_, to)| **to == Some(group));
        let sessions: Vec<u32> = uses.map(|(session, _)| *session).collect();
        let modify = update::Type::Modify;
        sessions.into_iter().try_for_each(|session| self.session(modify, session, replicas.clone()))
    }

    fn session(
        &mut self,
        kind: update::Type,
        session_id: u32,
        replicas: Vec<Replica>,
    ) -> Result<(), String> {
        let entry = CloneSessionEntry { session_id, replicas, ..CloneSessionEntry::default() };
        self.write(kind, copies(packet_replication_engine_entry::Type::CloneSessionEntry(entry)))
    }

    fn register(&mut self, name: &str, index: Option<i64>, bytes: Vec<u8>) -> Result<(), String> {
        let entry = RegisterEntry {
            register_id: info::id(prefix::REGISTER, self.register_named(name)?),
            index: index.map(|index| Index { index }),
            data: Some(P4Data { data: Some(p4_data::Data::Bitstring(bytes)) }),
        };
        self.write(update::Type::Modify, Kinds::RegisterEntry(entry))
    }

    fn register_named(&self, name: &str) -> Result<usize, String> {
        self.program.named("register", name, |p| p.registers.iter().map(|r| &r.name))
    }

    fn counter(&self, name: &str) -> Result<usize, String> {
        self.program.named("counter", name, |p| p.counters.iter().map(|c| &c.name))
    }

    fn meter(&self, name: &str) -> Result<usize, String> {
        self.program.named("meter", name, |p| p.meters.iter().map(|m| &m.name))
    }

    /// BMv2's command line takes rates in units per microsecond, lowest first; P4Runtime in units per second.
    fn meter_rates(
        &mut self,
        name: &str,
        index: Option<i64>,
        rates: &[(f64, i64)],
    ) -> Result<(), String> {
        let number = self.meter(name)?;
        let [(cir, cburst), (pir, pburst)] = rates else {
            return Err(format!(
                "there are {} rates; write two as RATE:BURST, the lower first",
                rates.len()
            ));
        };
        let per_second = |rate: f64| (rate * 1e6).round() as i64;
        let config = MeterConfig {
            cir: per_second(*cir),
            cburst: *cburst,
            pir: per_second(*pir),
            pburst: *pburst,
            ..MeterConfig::default()
        };
        let entry = MeterEntry {
            meter_id: info::id(prefix::METER, number),
            index: index.map(|index| Index { index }),
            config: Some(config),
            ..MeterEntry::default()
        };
        self.write(update::Type::Modify, Kinds::MeterEntry(entry))
    }

    fn read(&self, pattern: Kinds) -> Result<Vec<Kinds>, String> {
        let mut found = Vec::new();
        let pattern = Entity { entity: Some(pattern) };
        let mut emit = |entity: Entity| found.extend(entity.entity);
        self.switch.read(self.now, &pattern, &mut emit).map_err(|refusal| refusal.to_string())?;
        Ok(found)
    }

    /// The counts of a cell of an array, or of a labelled entry.
    fn counts(&self, name: &str, cell: &Cell) -> Result<CounterData, String> {
        let number = self.counter(name)?;
        let counter = &self.program.program.counters[number];
        let found = match (cell, counter.table) {
            (Cell::Index(index), None) => {
                let counter_id = info::id(prefix::COUNTER, number);
                let index = Some(Index { index: *index });
                self.read(Kinds::CounterEntry(CounterEntry { counter_id, index, data: None }))?
            }
            (Cell::Label(label), Some(table)) => {
                let entry = self.labelled(label)?;
                if entry.table_id != info::id(prefix::TABLE, table.index()) {
                    let table = &self.program.program.tables[table.index()].name;
                    return Err(format!(
                        "`{name}` counts `{table}`, and {label} is not an entry of it"
                    ));
                }
                self.read(Kinds::DirectCounterEntry(DirectCounterEntry {
                    table_entry: Some(TableEntry { action: None, ..entry.clone() }),
                    data: None,
                }))?
            }
            (Cell::Index(_), Some(table)) => {
                let table = &self.program.program.tables[table.index()].name;
                return Err(format!(
                    "`{name}` counts the entries of `{table}`; name one with add ... = LABEL and write {name}($LABEL)"
                ));
            }
            (Cell::Label(label), None) => {
                return Err(format!(
                    "`{name}` is an array, and {label} is no number; write {name}(INDEX)"
                ));
            }
        };
        let data = found.into_iter().find_map(|kind| match kind {
            Kinds::CounterEntry(entry) => entry.data,
            Kinds::DirectCounterEntry(entry) => entry.data,
            _ => None,
        });
        Ok(data.unwrap_or_default())
    }

    pub(super) fn check_counter(
        &mut self,
        line: usize,
        name: &str,
        cell: &Cell,
        condition: Option<&(bool, String, i64)>,
    ) -> Result<(), String> {
        let data = self.counts(name, cell)?;
        let Some((bytes, op, wanted)) = condition else { return Ok(()) };
        self.report.checks += 1;
        let (value, unit) =
            if *bytes { (data.byte_count, "bytes") } else { (data.packet_count, "packets") };
        let holds = match op.as_str() {
            "==" => value == *wanted,
            "!=" => value != *wanted,
            "<" => value < *wanted,
            "<=" => value <= *wanted,
            ">" => value > *wanted,
            ">=" => value >= *wanted,
            // The parser lets no other pass.
            _ => true,
        };
        if !holds {
            let message =
                format!("counter {name}({cell}) has {value} {unit}, which is not {op} {wanted}");
            let kind = Kind::Counter;
            let failure =
                Failure { line, port: None, kind, message, expected: None, received: None };
            self.report.failures.push(failure);
        }
        Ok(())
    }

    pub(super) fn reading(&mut self, line: usize, reading: &Reading) -> Result<(), String> {
        let (what, value) = match reading {
            Reading::Mirror(session) => {
                (format!("clone session {session}"), self.mirror(*session)?)
            }
            Reading::Counter(name, index) => {
                let data = self.counts(name, &Cell::Index(*index))?;
                let value = format!("packets={} bytes={}", data.packet_count, data.byte_count);
                (format!("{name}[{index}]"), value)
            }
            Reading::Register(name, index) => {
                let cells = self.register_cells(name, *index)?;
                let place = index.map_or(String::new(), |index| index.to_string());
                (format!("{name}[{place}]"), cells)
            }
            Reading::Meter(name, index) => {
                let value = self.meter_config(name, *index)?;
                (format!("{name}[{index}]"), value)
            }
        };
        self.report.values.push(Value { line, what, value });
        Ok(())
    }

    fn mirror(&self, session_id: u32) -> Result<String, String> {
        let entry = CloneSessionEntry { session_id, ..CloneSessionEntry::default() };
        let entry = copies(packet_replication_engine_entry::Type::CloneSessionEntry(entry));
        let replicas = self.read(entry)?.into_iter().find_map(|kind| match kind {
            Kinds::PacketReplicationEngineEntry(entry) => match entry.r#type {
                Some(packet_replication_engine_entry::Type::CloneSessionEntry(session)) => {
                    Some(session.replicas)
                }
                _ => None,
            },
            _ => None,
        });
        let Some(replicas) = replicas else { return Ok("none".to_owned()) };
        let ports = replicas.iter().map(|replica| match &replica.port_kind {
            Some(replica::PortKind::Port(port)) => {
                format!("port {} instance {}", BigUint::from_bytes_be(port), replica.instance)
            }
            _ => format!("instance {}", replica.instance),
        });
        Ok(ports.collect::<Vec<_>>().join(", "))
    }

    fn register_cells(&self, name: &str, index: Option<i64>) -> Result<String, String> {
        let entry = RegisterEntry {
            register_id: info::id(prefix::REGISTER, self.register_named(name)?),
            index: index.map(|index| Index { index }),
            data: None,
        };
        let cells = self.read(Kinds::RegisterEntry(entry))?;
        let value = |kind: &Kinds| match kind {
            Kinds::RegisterEntry(RegisterEntry {
                data: Some(P4Data { data: Some(p4_data::Data::Bitstring(bytes)) }),
                ..
            }) => BigUint::from_bytes_be(bytes).to_string(),
            _ => "?".to_owned(),
        };
        let mut shown: Vec<String> = cells.iter().take(MAX_CELLS_SHOWN).map(value).collect();
        if cells.len() > MAX_CELLS_SHOWN {
            shown.push(format!("… {} more", cells.len() - MAX_CELLS_SHOWN));
        }
        Ok(shown.join(" "))
    }

    fn meter_config(&self, name: &str, index: i64) -> Result<String, String> {
        let meter_id = info::id(prefix::METER, self.meter(name)?);
        let index = Some(Index { index });
        let found =
            self.read(Kinds::MeterEntry(MeterEntry { meter_id, index, ..MeterEntry::default() }))?;
        let config = found.into_iter().find_map(|kind| match kind {
            Kinds::MeterEntry(entry) => entry.config,
            _ => None,
        });
        // In the units of meter_set_rates.
        let rate = |per_second: i64| per_second as f64 / 1e6;
        Ok(config.map_or("no rates".to_owned(), |config| {
            let (low, high) = (rate(config.cir), rate(config.pir));
            format!("{low}:{} {high}:{}", config.cburst, config.pburst)
        }))
    }
}

fn replica(instance: u16, port: u16) -> Replica {
    let port = crate::p4runtime::value::encode(port.into());
    Replica {
        instance: instance.into(),
        port_kind: Some(replica::PortKind::Port(port)),
        ..Replica::default()
    }
}

fn copies(entry: packet_replication_engine_entry::Type) -> Kinds {
    Kinds::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(entry) })
}
