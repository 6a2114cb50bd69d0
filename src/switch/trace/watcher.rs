//! The state that watches. In: what the interpreter asks of the state, and its steps. Out: the same answers, and events.

use super::event::Kind;
use super::{Trace, show};
use crate::switch::code::Op;
use crate::switch::memory::Memory;
use crate::switch::phv::FieldRef;
use crate::switch::program::{CounterNo, MeterNo, Program, RegisterNo, TableNo, ValueSetNo};
use crate::switch::state::{Facts, Lookup, Outcome, State, Step};
use std::sync::Arc;

/// A [`Memory`] that notes in a [`Trace`] what the interpreter does.
pub struct Watcher<'a> {
    memory: &'a mut Memory,
    trace: &'a mut Trace,
    program: Arc<Program>,
    parsing: bool,
    /// The next step of the interpreter begins a phase: what differs from before it is not the program's doing.
    fresh: bool,
}

impl<'a> Watcher<'a> {
    /// Watches one phase of the packet in that slot.
    pub fn new(memory: &'a mut Memory, trace: &'a mut Trace, slot: u32) -> Self {
        trace.current = trace.number(slot);
        let program = Arc::clone(memory.program());
        Self { memory, trace, program, parsing: false, fresh: true }
    }

    fn call(&mut self, op: Op, slots: &[u64]) {
        let slot = |at: u32| slots.get(at as usize).copied().unwrap_or(0);
        let program = &self.program;
        let cell = |name: &str, size: u32, at: u32| {
            let index = slot(at);
            let beyond = if index >= size.into() { ", which it does not have" } else { "" };
            format!("{name}[{index}]{beyond}")
        };
        let what = match op {
            Op::Count { n, a } => {
                let counter = &program.counters[n as usize];
                format!("counts {}", cell(&counter.name, counter.size, a))
            }
            Op::Meter { n, a, .. } => {
                let meter = &program.meters[n as usize];
                format!("meters {}", cell(&meter.name, meter.size, a))
            }
            Op::RegisterRead { n, a, .. } => {
                let register = &program.registers[n as usize];
                format!("reads {}", cell(&register.name, register.size, a))
            }
            Op::RegisterWrite { n, a, b, bw } => {
                let register = &program.registers[n as usize];
                let value = show::hex(show::limbs(slots, FieldRef { slot: b, width: bw }), bw);
                format!("writes {} = {value}", cell(&register.name, register.size, a))
            }
            Op::Hash { n, .. } => {
                let calculation = &program.calculations[n as usize];
                format!("hashes with {:?}", calculation.algorithm).to_lowercase()
            }
            Op::Random { b, c, .. } => format!("draws between {} and {}", slot(b), slot(c)),
            Op::Drop | Op::DropIn { .. } => "mark_to_drop".to_owned(),
            Op::CloneIngress { a, b } | Op::CloneEgress { a, b } => {
                format!("asks for a clone to session {}, keeping list {}", slot(a), slot(b))
            }
            Op::Resubmit { a } => format!("asks to be resubmitted, keeping list {}", slot(a)),
            Op::Recirculate { a } => format!("asks to be recirculated, keeping list {}", slot(a)),
            Op::Digest { a } => format!("asks for a digest of list {}", slot(a)),
            Op::Truncate { a } => format!("asks to be cut to {} bytes", slot(a)),
            Op::Assert { a } if slot(a) == 0 => "an assertion does not hold".to_owned(),
            Op::Exit => "exit".to_owned(),
            Op::Log { n } => {
                let message = &program.messages[n as usize];
                let mut text = message.format.clone();
                for at in &message.values {
                    text = text.replacen("{}", &show::hex(show::limbs(slots, *at), at.width), 1);
                }
                format!("says \"{text}\"")
            }
            _ => return,
        };
        self.trace.push(Kind::Call { what });
    }
}

impl State for Watcher<'_> {
    fn apply(&mut self, table: TableNo, lookup: &Lookup<'_>, data: &mut [u64]) -> Outcome {
        let fields = &self.program.tables[table.index()].key.fields;
        let entries = &self.memory.tables[table.index()];
        let hit = entries.find(lookup.key).and_then(|id| entries.get(id));
        let entry = hit.map(|entry| show::entry(fields, entry));
        let key = show::key(fields, lookup.key);
        let outcome = self.memory.apply(table, lookup, data);
        let table = self.program.tables[table.index()].name.clone();
        self.trace.push(Kind::Table { table, key, hit: outcome.hit, entry });
        outcome
    }

    fn count(&mut self, counter: CounterNo, index: u64, facts: Facts) -> bool {
        self.memory.count(counter, index, facts)
    }

    fn meter(&mut self, meter: MeterNo, index: u64, facts: Facts) -> Option<u8> {
        self.memory.meter(meter, index, facts)
    }

    fn cells(&mut self, register: RegisterNo) -> &mut [u64] {
        self.memory.cells(register)
    }

    fn value_set_contains(&self, set: ValueSetNo, key: &[u64]) -> bool {
        self.memory.value_set_contains(set, key)
    }

    fn random(&mut self) -> u64 {
        self.memory.random()
    }

    fn watch(&mut self, step: Step, slots: &[u64]) {
        if std::mem::take(&mut self.fresh) {
            self.trace.look(slots);
        } else {
            self.trace.changes(&self.program.layout, slots, self.parsing);
        }
        let program = Arc::clone(&self.program);
        match step {
            Step::State(state) => {
                self.parsing = true;
                let state = program.states[state.index()].name.clone();
                self.trace.push(Kind::State { state });
            }
            Step::Parsed { error, payload } => {
                let named = program.errors.iter().find(|(_, value)| *value == error);
                let name = named.map_or_else(|| error.to_string(), |(name, _)| name.clone());
                let error = (error != program.core_errors.no_error).then_some(name);
                self.trace.push(Kind::Parsed { error, payload });
                self.parsing = false;
            }
            Step::Checksum { number, good } => {
                let target = program.checksums[number].target;
                let field = show::field_name(&program.layout, target);
                self.trace.push(Kind::Checksum { field, good });
            }
            Step::Condition { number, holds } => {
                let conditional = &program.conditionals[number as usize];
                let condition =
                    conditional.text.clone().unwrap_or_else(|| conditional.name.clone());
                self.trace.push(Kind::Condition { condition, holds });
            }
            Step::Action(action) => {
                let parameters = show::parameters(&program, action.index(), slots);
                let action = program.actions[action.index()].name.clone();
                self.trace.push(Kind::Action { action, parameters });
            }
            Step::Call(op) => self.call(op, slots),
            Step::Look => {}
        }
    }
}
