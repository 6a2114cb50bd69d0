//! Running a case. In: a program and commands. Out: a [`Report`]. Must not know the text form.
//!
//! Time is virtual: a second passes between a command that changes the switch and the next packet (as in p4c's
//! driver), a millisecond between packets.

use crate::id::PortNo;
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::p4::v1::{
    Action, CloneSessionEntry, CounterData, CounterEntry, Entity, FieldMatch,
    ForwardingPipelineConfig, Index, MeterConfig, MeterEntry, MulticastGroupEntry, P4Data,
    PacketReplicationEngineEntry, RegisterEntry, Replica, TableAction, TableEntry, Update, action,
    entity::Entity as Kinds, p4_data, packet_replication_engine_entry, replica, table_action,
    update,
};
use crate::switch::program::{MatchKind, Program};
use crate::switch::stf::{
    Command, Line, StfError,
    info::{self, prefix},
    parse::{Named, Pattern},
    values::{field_match, fitting, key_named, named, value_of},
};
use crate::switch::{Config, Switch, load};
use crate::time::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Between a change and the next packet.
const SETTLE: Span = Span::from_millis(1_000);
/// Between packets.
const GAP: Span = Span::from_millis(1);

/// What went wrong, and how much was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Packets sent.
    pub packets: usize,
    /// Packets expected.
    pub expected: usize,
    /// Line (0 when none is to blame) and what was wrong.
    pub failures: Vec<(usize, String)>,
}

impl Report {
    /// Everything came as expected.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }
}

#[derive(Default)]
struct Expected {
    any: bool,
    patterns: Vec<(usize, Pattern)>,
}

struct Runner {
    switch: Switch,
    program: Program,
    now: Time,
    /// The switch changed since the last packet.
    changed: bool,
    expected: BTreeMap<u16, Expected>,
    received: BTreeMap<u16, Vec<Vec<u8>>>,
    groups: BTreeMap<u32, Vec<usize>>,
    nodes: Vec<(u16, Vec<u16>)>,
    report: Report,
}

/// Runs a case on a fresh switch with eight queues per port.
///
/// # Errors
/// The program does not load, or a line names what the program lacks.
pub fn run(json: &[u8], case: &[Line]) -> Result<Report, StfError> {
    let program = load::load(json)?;
    // No CPU port: packets to any port number are looked at as bytes.
    let cpu_port = PortNo(u16::MAX);
    let config = Config { cpu_port, priority_queues: 8, ..Config::default() };
    let mut switch = Switch::new(config);
    let pipeline = ForwardingPipelineConfig {
        p4info: Some(info::of_program(&program)),
        p4_device_config: json.to_vec().into(),
        ..ForwardingPipelineConfig::default()
    };
    switch.load_pipeline(Time::ZERO, &pipeline).map_err(StfError::Pipeline)?;
    let ports = case.iter().filter_map(|line| match line.command {
        Command::Packet { port, .. } | Command::Expect { port, .. } => Some((port, Vec::new())),
        _ => None,
    });
    let mut runner = Runner {
        switch,
        program,
        now: Time::ZERO,
        changed: false,
        expected: BTreeMap::new(),
        received: ports.collect(),
        groups: BTreeMap::new(),
        nodes: Vec::new(),
        report: Report::default(),
    };
    for line in case {
        let wrong = |message| StfError::Line { line: line.number, message };
        runner.command(line).map_err(wrong)?;
    }
    runner.advance(SETTLE);
    Ok(runner.compare())
}

impl Runner {
    fn advance(&mut self, by: Span) {
        self.now += by;
        let received = &mut self.received;
        self.switch.advance(self.now, &mut |sent| {
            if let Some(packets) = received.get_mut(&sent.port.0) {
                packets.push(sent.bytes.to_vec());
            }
        });
    }

    fn command(&mut self, line: &Line) -> Result<(), String> {
        match &line.command {
            Command::Packet { port, bytes } => {
                self.advance(if self.changed { SETTLE } else { GAP });
                self.changed = false;
                self.report.packets += 1;
                self.switch.receive(self.now, PortNo(*port), bytes);
                self.advance(Span::ZERO);
                Ok(())
            }
            Command::Expect { port, pattern } => {
                let expected = self.expected.entry(*port).or_default();
                match pattern {
                    None => expected.any = true,
                    Some(pattern) => {
                        self.report.expected += 1;
                        expected.patterns.push((line.number, pattern.clone()));
                    }
                }
                Ok(())
            }
            Command::Wait => {
                self.advance(SETTLE);
                Ok(())
            }
            Command::Ignored(_) => Ok(()),
            Command::CheckCounter(name, index, condition) => {
                self.check_counter(line.number, name, *index, condition.as_ref())
            }
            change => {
                self.changed = true;
                self.change(change)
            }
        }
    }

    fn change(&mut self, command: &Command) -> Result<(), String> {
        use update::Type::{Delete, Insert, Modify};
        match command {
            Command::Add { table, priority, keys, action, args } => {
                let entry = self.entry(table, *priority, keys, action, args)?;
                self.write(Insert, Kinds::TableEntry(entry))
            }
            Command::SetDefault { table, action, args } => {
                let number = self.table(table)?;
                let action = Some(self.action(number, action, args)?);
                let table_id = info::id(prefix::TABLE, number);
                let entry = TableEntry {
                    table_id,
                    action,
                    is_default_action: true,
                    ..TableEntry::default()
                };
                self.write(Modify, Kinds::TableEntry(entry))
            }
            Command::MirrorPort(session, port) => self.session(*session, vec![replica(0, *port)]),
            Command::MirrorGroup(session, group) => {
                let replicas = self.replicas(*group);
                self.session(*session, replicas)
            }
            Command::MirrorDelete(session) => {
                let entry =
                    CloneSessionEntry { session_id: *session, ..CloneSessionEntry::default() };
                self.write(
                    Delete,
                    copies(packet_replication_engine_entry::Type::CloneSessionEntry(entry)),
                )
            }
            Command::Group(group) => {
                self.groups.insert(*group, Vec::new());
                self.group(Insert, *group)
            }
            Command::Node(rid, ports) => {
                self.nodes.push((*rid, ports.clone()));
                Ok(())
            }
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
                let number = named(self.program.counters.iter().map(|c| &c.name), "counter", name)?;
                let data =
                    Some(CounterData { packet_count: *packet_count, byte_count: *byte_count });
                let (counter_id, index) =
                    (info::id(prefix::COUNTER, number), Some(Index { index: *index }));
                self.write(Modify, Kinds::CounterEntry(CounterEntry { counter_id, index, data }))
            }
            Command::MeterRates(name, index, rates) => self.meter(name, *index, rates),
            _ => Ok(()),
        }
    }

    fn write(&mut self, kind: update::Type, entity: Kinds) -> Result<(), String> {
        let update = Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) };
        self.switch.write(self.now, &update).map_err(|refusal| refusal.to_string())
    }

    fn table(&self, name: &str) -> Result<usize, String> {
        named(self.program.tables.iter().map(|t| &t.name), "table", name)
    }

    fn action(&self, table: usize, name: &str, args: &[Named]) -> Result<TableAction, String> {
        let actions = &self.program.actions;
        let names = self.program.tables[table].actions.iter().map(|a| &actions[a.index()].name);
        let local = named(names.clone(), "action", name)?;
        let full = names.clone().nth(local).map_or("", String::as_str);
        let number = actions.iter().position(|a| a.name == full).unwrap_or(0);
        let mut params = Vec::new();
        for (i, param) in actions[number].params.iter().enumerate() {
            let value = args.iter().find(|(name, _)| *name == param.name);
            let (_, value) = value.ok_or_else(|| {
                let name = &param.name;
                format!("action `{full}` lacks the parameter `{name}`; add {name}:VALUE")
            })?;
            let what = format!("`{full}`: parameter `{}`", param.name);
            let value = fitting(&what, param.width, value_of(value)?)?.to_bytes_be();
            params.push(action::Param { param_id: i as u32 + 1, value });
        }
        if let Some((extra, _)) =
            args.iter().find(|(name, _)| actions[number].params.iter().all(|p| p.name != *name))
        {
            let known: Vec<&str> =
                actions[number].params.iter().map(|param| param.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("action `{full}` has no parameter `{extra}`; it has {known}"));
        }
        let action = Action { action_id: info::id(prefix::ACTION, number), params };
        Ok(TableAction { r#type: Some(table_action::Type::Action(action)) })
    }

    fn entry(
        &self,
        table: &str,
        priority: Option<i32>,
        keys: &[Named],
        action: &str,
        args: &[Named],
    ) -> Result<TableEntry, String> {
        let number = self.table(table)?;
        let fields = &self.program.tables[number].key.fields;
        let mut values: Vec<Option<&str>> = vec![None; fields.len()];
        for (name, value) in keys {
            let at = key_named(fields, name).ok_or_else(|| {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let known = known.join(", ");
                format!("table `{table}` has no match field `{name}`; it has {known}")
            })?;
            values[at] = Some(value);
        }
        let mut matches = Vec::new();
        for (i, (field, value)) in fields.iter().zip(values).enumerate() {
            if let Some(kind) = field_match(field, value)? {
                let field_match_type = Some(kind);
                matches.push(FieldMatch { field_id: i as u32 + 1, field_match_type });
            }
        }
        let by_priority =
            fields.iter().any(|f| matches!(f.kind, MatchKind::Ternary | MatchKind::Range));
        Ok(TableEntry {
            table_id: info::id(prefix::TABLE, number),
            r#match: matches,
            action: Some(self.action(number, action, args)?),
            // P4Runtime has no priority 0; the order of the rest is kept.
            priority: if by_priority { priority.unwrap_or(0).saturating_add(1) } else { 0 },
            ..TableEntry::default()
        })
    }

    fn replicas(&self, group: u32) -> Vec<Replica> {
        let members = self.groups.get(&group).map_or(&[][..], Vec::as_slice);
        let nodes = members.iter().filter_map(|n| self.nodes.get(*n));
        nodes.flat_map(|(rid, ports)| ports.iter().map(|p| replica(*rid, *p))).collect()
    }

    fn group(&mut self, kind: update::Type, group: u32) -> Result<(), String> {
        let replicas = self.replicas(group);
        let entry = MulticastGroupEntry {
            multicast_group_id: group,
            replicas,
            ..MulticastGroupEntry::default()
        };
        self.write(kind, copies(packet_replication_engine_entry::Type::MulticastGroupEntry(entry)))
    }

    fn session(&mut self, session_id: u32, replicas: Vec<Replica>) -> Result<(), String> {
        let entry = CloneSessionEntry { session_id, replicas, ..CloneSessionEntry::default() };
        let entry = copies(packet_replication_engine_entry::Type::CloneSessionEntry(entry));
        self.write(update::Type::Insert, entry)
    }

    fn register(&mut self, name: &str, index: Option<i64>, bytes: Vec<u8>) -> Result<(), String> {
        let number = named(self.program.registers.iter().map(|r| &r.name), "register", name)?;
        let entry = RegisterEntry {
            register_id: info::id(prefix::REGISTER, number),
            index: index.map(|index| Index { index }),
            data: Some(P4Data { data: Some(p4_data::Data::Bitstring(bytes)) }),
        };
        self.write(update::Type::Modify, Kinds::RegisterEntry(entry))
    }

    /// BMv2's command line takes rates in units per microsecond, lowest first; P4Runtime in units per second.
    fn meter(
        &mut self,
        name: &str,
        index: Option<i64>,
        rates: &[(f64, i64)],
    ) -> Result<(), String> {
        let number = named(self.program.meters.iter().map(|m| &m.name), "meter", name)?;
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

    fn check_counter(
        &mut self,
        line: usize,
        name: &str,
        index: i64,
        condition: Option<&(bool, String, i64)>,
    ) -> Result<(), String> {
        let number = named(self.program.counters.iter().map(|c| &c.name), "counter", name)?;
        let counter_id = info::id(prefix::COUNTER, number);
        let entry = CounterEntry { counter_id, index: Some(Index { index }), data: None };
        let mut found = None;
        let pattern = Entity { entity: Some(Kinds::CounterEntry(entry)) };
        let mut emit = |entity: Entity| {
            if let Some(Kinds::CounterEntry(entry)) = entity.entity {
                found = entry.data;
            }
        };
        self.switch.read(self.now, &pattern, &mut emit).map_err(|refusal| refusal.to_string())?;
        let (Some(data), Some((bytes, op, wanted))) = (found, condition) else { return Ok(()) };
        let value = if *bytes { data.byte_count } else { data.packet_count };
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
            let text = format!("counter {name}({index}) is {value}, which is not {op} {wanted}");
            self.report.failures.push((line, text));
        }
        Ok(())
    }

    fn compare(mut self) -> Report {
        let ports: BTreeSet<u16> = self.received.keys().copied().collect();
        for port in ports {
            let got = self.received.remove(&port).unwrap_or_default();
            let expected = self.expected.remove(&port).unwrap_or_default();
            if expected.any && expected.patterns.is_empty() {
                continue;
            }
            let failures = &mut self.report.failures;
            if got.len() != expected.patterns.len() {
                let line = expected.patterns.get(got.len()).map_or(0, |(line, _)| *line);
                let first = got.get(expected.patterns.len()).map_or(String::new(), |packet| {
                    format!("; the first too many is {}", hex(packet))
                });
                let (n, m) = (got.len(), expected.patterns.len());
                failures.push((line, format!("port {port}: {n} packets, expected {m}{first}")));
            }
            for ((line, pattern), packet) in expected.patterns.iter().zip(&got) {
                if let Some(why) = pattern.mismatch(packet) {
                    let text = format!(
                        "port {port}: {why}\n  got      {}\n  expected {pattern}",
                        hex(packet)
                    );
                    failures.push((*line, text));
                }
            }
        }
        self.report
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
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
