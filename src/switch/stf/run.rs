//! Running a case. In: a program and commands. Out: a [`Report`]. Must not know the text form.
//!
//! Time is virtual: a second passes between a command that changes the switch and the next packet (as in p4c's
//! driver), a millisecond between packets.

mod target;

use crate::id::PortNo;
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::p4::config::v1::{P4Info, Preamble};
use crate::p4runtime::proto::p4::v1::{
    Action, Entity, FieldMatch, ForwardingPipelineConfig, TableAction, TableEntry, Update, action,
    entity::Entity as Kinds, table_action, update,
};
use crate::switch::program::{self, MatchKind};
use crate::switch::stf::{
    Command, Line, StfError,
    info::{self, prefix},
    parse::{Named, Pattern},
    report::{Came, Failure, Kind, Report, compare},
    values::{field_match, fitting, key_named, named, value_of},
};
use crate::switch::{Config, Sent, Switch, load};
use crate::time::{Span, Time};
use std::collections::BTreeMap;

/// Between a change and the next packet.
const SETTLE: Span = Span::from_millis(1_000);
/// Between packets.
const GAP: Span = Span::from_millis(1);

#[derive(Default)]
struct Expected {
    any: bool,
    patterns: Vec<(usize, Pattern)>,
}

/// A program that cases run on.
pub struct Program {
    json: Vec<u8>,
    program: program::Program,
    info: P4Info,
    /// (kind, short name) → full name.
    aliases: BTreeMap<(&'static str, String), String>,
}

impl Program {
    /// Loads a BMv2 JSON. A P4Info is checked against it, and its aliases may then be used in cases.
    ///
    /// # Errors
    /// The program does not load, or the P4Info is not its.
    pub fn new(json: &[u8], p4info: Option<&P4Info>) -> Result<Self, StfError> {
        let program = load::load(json)?;
        if let Some(p4info) = p4info {
            let config = pipeline(p4info.clone(), json);
            Switch::new(Config::default()).verify_pipeline(&config).map_err(StfError::Pipeline)?;
        }
        let info = info::of_program(&program);
        let aliases = p4info.map(aliases).unwrap_or_default();
        Ok(Self { json: json.to_vec(), program, info, aliases })
    }

    /// Runs a case on a fresh switch with eight queues per port.
    ///
    /// # Errors
    /// A line names what the program lacks, or the switch refuses it.
    pub fn run(&self, case: &[Line]) -> Result<Report, StfError> {
        let mut runner = self.runner(case)?;
        for line in case {
            let wrong = |message| StfError::Line { line: line.number, message };
            runner.command(line).map_err(wrong)?;
        }
        runner.advance(SETTLE);
        Ok(runner.compare())
    }

    /// Runs a case on a fresh switch that is traced, calls `watch` after each packet, and gives the switch and its time
    /// for more. What the case expects does not matter.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn trace(
        &self,
        case: &[Line],
        watch: &mut dyn FnMut(&mut Switch),
    ) -> Result<(Switch, Time), StfError> {
        let mut runner = self.runner(case)?;
        runner.switch.set_trace(true);
        for line in case {
            let wrong = |message| StfError::Line { line: line.number, message };
            runner.command(line).map_err(wrong)?;
            if matches!(line.command, Command::Packet { .. }) {
                runner.drain();
                watch(&mut runner.switch);
            }
        }
        runner.advance(SETTLE);
        Ok((runner.switch, runner.now))
    }

    fn runner(&self, case: &[Line]) -> Result<Runner<'_>, StfError> {
        // No CPU port: packets to any port number are looked at as bytes.
        let cpu_port = PortNo(u16::MAX);
        let config = Config { cpu_port, priority_queues: 8, ..Config::default() };
        let mut switch = Switch::new(config);
        let pipeline = pipeline(self.info.clone(), &self.json);
        switch.load_pipeline(Time::ZERO, &pipeline).map_err(StfError::Pipeline)?;
        let ports = case.iter().filter_map(|line| match line.command {
            Command::Packet { port, .. } | Command::Expect { port, .. } => Some((port, Vec::new())),
            _ => None,
        });
        Ok(Runner {
            switch,
            program: self,
            now: Time::ZERO,
            changed: false,
            sent_line: 0,
            left: Vec::new(),
            expected: BTreeMap::new(),
            received: ports.collect(),
            entries: Vec::new(),
            sessions: BTreeMap::new(),
            groups: BTreeMap::new(),
            nodes: Vec::new(),
            report: Report::default(),
        })
    }

    /// The number of a thing by its alias, its name or the end of its name.
    fn named<'a, I: Iterator<Item = &'a String> + Clone>(
        &'a self,
        kind: &'static str,
        name: &str,
        names: impl FnOnce(&'a program::Program) -> I,
    ) -> Result<usize, String> {
        let full = self.aliases.get(&(kind, name.to_owned()));
        named(names(&self.program), kind, full.map_or(name, String::as_str))
    }
}

fn pipeline(p4info: P4Info, json: &[u8]) -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: json.to_vec().into(),
        ..ForwardingPipelineConfig::default()
    }
}

fn aliases(info: &P4Info) -> BTreeMap<(&'static str, String), String> {
    let mut aliases = BTreeMap::new();
    let mut add = |kind, preamble: &Option<Preamble>| {
        if let Some(preamble) = preamble {
            aliases.insert((kind, preamble.alias.clone()), preamble.name.clone());
        }
    };
    info.tables.iter().for_each(|one| add("table", &one.preamble));
    info.actions.iter().for_each(|one| add("action", &one.preamble));
    info.counters.iter().for_each(|one| add("counter", &one.preamble));
    info.direct_counters.iter().for_each(|one| add("counter", &one.preamble));
    info.meters.iter().for_each(|one| add("meter", &one.preamble));
    info.registers.iter().for_each(|one| add("register", &one.preamble));
    aliases
}

/// Runs a case on a program without a P4Info.
///
/// # Errors
/// As [`Program::new`] and [`Program::run`].
pub fn run(json: &[u8], case: &[Line]) -> Result<Report, StfError> {
    Program::new(json, None)?.run(case)
}

/// Runs a switch from `now` until no packet is left inside; returns when that was.
pub fn drain(switch: &mut Switch, mut now: Time, out: &mut dyn FnMut(Sent<'_>)) -> Time {
    while switch.packets_held() > 0 {
        let Some(next) = switch.poll_at() else { break };
        now = now.max(next);
        switch.advance(now, out);
    }
    now
}

struct Runner<'a> {
    switch: Switch,
    program: &'a Program,
    now: Time,
    /// The switch changed since the last packet.
    changed: bool,
    /// Line of the last `packet`.
    sent_line: usize,
    /// Port and bytes of every packet that left since then, by any port.
    left: Vec<(u16, Vec<u8>)>,
    expected: BTreeMap<u16, Expected>,
    /// By port that the case names.
    received: BTreeMap<u16, Vec<Came>>,
    /// Entries that the case added, with their labels.
    entries: Vec<(Option<String>, TableEntry)>,
    /// Clone sessions, with the group of those that go to one.
    sessions: BTreeMap<u32, Option<u32>>,
    groups: BTreeMap<u32, Vec<usize>>,
    nodes: Vec<(u16, Vec<u16>)>,
    report: Report,
}

impl Runner<'_> {
    fn advance(&mut self, by: Span) {
        self.now += by;
        self.run(|switch, now, out| {
            switch.advance(now, out);
            now
        });
    }

    /// Runs the switch and notes what leaves; `what` says until when.
    fn run(&mut self, what: impl FnOnce(&mut Switch, Time, &mut dyn FnMut(Sent<'_>)) -> Time) {
        let (received, left, line) = (&mut self.received, &mut self.left, self.sent_line);
        self.now = what(&mut self.switch, self.now, &mut |sent| {
            if let Some(packets) = received.get_mut(&sent.port.0) {
                packets.push((line, sent.bytes.to_vec()));
            }
            left.push((sent.port.0, sent.bytes.to_vec()));
        });
    }

    /// Advances until no packet is left inside.
    fn drain(&mut self) {
        self.run(drain);
    }

    fn command(&mut self, line: &Line) -> Result<(), String> {
        match &line.command {
            Command::Packet { port, bytes } => {
                self.advance(if self.changed { SETTLE } else { GAP });
                self.changed = false;
                self.report.packets += 1;
                self.sent_line = line.number;
                self.left.clear();
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
            Command::NoPacket => {
                self.no_packet(line.number);
                Ok(())
            }
            Command::CheckCounter(name, cell, condition) => {
                self.check_counter(line.number, name, cell, condition.as_ref())
            }
            Command::Read(reading) => self.reading(line.number, reading),
            change => {
                self.changed = true;
                self.change(change)
            }
        }
    }

    /// Nothing may have left since the last packet.
    fn no_packet(&mut self, line: usize) {
        self.advance(SETTLE);
        self.report.checks += 1;
        for (port, bytes) in std::mem::take(&mut self.left) {
            // It is reported here and not once more among the port's packets.
            if let Some(packets) = self.received.get_mut(&port) {
                packets.retain(|(sent, got)| *sent != self.sent_line || *got != bytes);
            }
            let message = format!("port {port}: this packet left");
            let (kind, port) = (Kind::NoPacket, Some(port));
            let failure =
                Failure { line, port, kind, message, expected: None, received: Some(bytes) };
            self.report.failures.push(failure);
        }
    }

    fn labelled(&self, label: &str) -> Result<&TableEntry, String> {
        let found = self.entries.iter().find(|(known, _)| known.as_deref() == Some(label));
        found
            .map(|(_, entry)| entry)
            .ok_or_else(|| format!("no entry is called {label}; name it with add ... = {label}"))
    }

    /// Deletes the entry of that name, or all that the case added.
    fn remove(&mut self, label: Option<&String>) -> Result<(), String> {
        if let Some(label) = label {
            self.labelled(label)?;
        }
        let all = std::mem::take(&mut self.entries);
        let (gone, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(known, _)| label.is_none() || known.as_ref() == label);
        self.entries = kept;
        gone.into_iter()
            .try_for_each(|(_, entry)| self.write(update::Type::Delete, Kinds::TableEntry(entry)))
    }

    fn change(&mut self, command: &Command) -> Result<(), String> {
        use update::Type::{Insert, Modify};
        match command {
            Command::Add { table, priority, keys, action, args, label } => {
                let entry = self.entry(table, *priority, keys, action, args)?;
                if label.is_some() && self.entries.iter().any(|(known, _)| known == label) {
                    let label = label.as_deref().unwrap_or_default();
                    return Err(format!("another entry is called {label}; choose another label"));
                }
                self.write(Insert, Kinds::TableEntry(entry.clone()))?;
                self.entries.push((label.clone(), entry));
                Ok(())
            }
            Command::Remove(label) => self.remove(label.as_ref()),
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
            other => self.change_target(other),
        }
    }

    fn write(&mut self, kind: update::Type, entity: Kinds) -> Result<(), String> {
        let update = Update { r#type: kind.into(), entity: Some(Entity { entity: Some(entity) }) };
        self.switch.write(self.now, &update).map_err(|refusal| refusal.to_string())
    }

    fn table(&self, name: &str) -> Result<usize, String> {
        self.program.named("table", name, |program| program.tables.iter().map(|t| &t.name))
    }

    fn action(&self, table: usize, name: &str, args: &[Named]) -> Result<TableAction, String> {
        let program = &self.program.program;
        let actions = &program.actions;
        let names = program.tables[table].actions.iter().map(|a| &actions[a.index()].name);
        let local = self.program.named("action", name, |_| names.clone())?;
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
        let fields = &self.program.program.tables[number].key.fields;
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

    fn compare(mut self) -> Report {
        for (port, got) in &self.received {
            let expected = self.expected.remove(port).unwrap_or_default();
            if !expected.any || !expected.patterns.is_empty() {
                self.report.failures.extend(compare(*port, &expected.patterns, got));
            }
        }
        self.report
    }
}
