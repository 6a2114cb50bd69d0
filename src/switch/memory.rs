//! Everything that a program keeps between packets. In: the program's declarations, then packed keys and cell indices.
//! Out: actions with their data, colours, cells. Must not know headers, ports' queues or messages; `device` fills it
//! from the control plane.

use crate::id::PortNo;
use crate::switch::lookup::PackedKey;
use crate::switch::meter::Meter;
use crate::switch::profile::{Bound, Profile};
use crate::switch::program::{
    self, ActionNo, CounterNo, Implementation, MeterNo, Program, RegisterNo, TableNo, ValueSetNo,
};
use crate::switch::state::{Facts, Lookup, Outcome, State};
use crate::switch::stats::Count;
use crate::switch::table::{self, Run, Table};
use crate::time::stream;
use rand::RngExt as _;
use rand_pcg::Pcg64;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Cells of one counter, meter or register array; 16 Mi cells are 128 MiB of counters, beyond any switch.
pub const MAX_CELLS: u32 = 16 << 20;

/// Members of one value set as stored: the members match in order of insertion.
#[derive(Clone, Debug, Default)]
pub struct ValueSet {
    /// Limbs under masks: (value, mask), least significant first.
    pub members: Vec<PackedKey>,
}

/// Tables, profiles, arrays.
#[derive(Clone, Debug)]
pub struct Memory {
    program: Arc<Program>,
    /// By `TableNo`: the canonical number of each of its actions.
    actions: Arc<[Vec<ActionNo>]>,
    /// By `TableNo`.
    pub tables: Vec<Table>,
    /// By `ProfileNo`.
    pub profiles: Vec<Profile>,
    /// By `CounterNo`; empty for direct counters, which live in the entries.
    pub counters: Vec<Vec<Count>>,
    /// By `MeterNo`; empty for direct meters.
    pub meters: Vec<Vec<Meter>>,
    /// By `RegisterNo`.
    pub registers: Vec<Vec<u64>>,
    /// By `ValueSetNo`.
    pub value_sets: Vec<ValueSet>,
    /// Ports that are down: watched members are out.
    pub down: BTreeSet<PortNo>,
    random: Pcg64,
}

impl Memory {
    /// Fresh state for a program: its constant and default entries, zeros elsewhere. Sizes beyond [`MAX_CELLS`] are cut
    /// (the loader refuses them first).
    #[must_use]
    pub fn new(program: Arc<Program>, seed: u64, down: BTreeSet<PortNo>) -> Self {
        let cells = |direct: Option<TableNo>, size: u32| match direct {
            Some(_) => 0,
            None => size.min(MAX_CELLS) as usize,
        };
        let canonical = canonical_actions(&program);
        let numbers = |t: &program::Table| -> Vec<ActionNo> {
            t.actions.iter().map(|a| canonical[a.index()]).collect()
        };
        let actions: Arc<[Vec<ActionNo>]> = program.tables.iter().map(numbers).collect();
        let tables = program.tables.iter().zip(actions.iter());
        Self {
            tables: tables.map(|(declared, actions)| new_table(declared, actions)).collect(),
            actions,
            profiles: vec![Profile::default(); program.profiles.len()],
            counters: program
                .counters
                .iter()
                .map(|c| vec![Count::default(); cells(c.table, c.size)])
                .collect(),
            meters: program
                .meters
                .iter()
                .map(|m| vec![Meter::default(); cells(m.table, m.size)])
                .collect(),
            registers: program
                .registers
                .iter()
                .map(|r| vec![0; r.size.min(MAX_CELLS) as usize * r.limbs()])
                .collect(),
            value_sets: vec![ValueSet::default(); program.value_sets.len()],
            down,
            random: stream(seed, "switch random", 0),
            program,
        }
    }

    /// The program that this is the state of.
    #[must_use]
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Notes that a port went up or down, and lets groups that watch ports choose again.
    pub fn set_port(&mut self, port: PortNo, up: bool) {
        let changed = if up { self.down.remove(&port) } else { self.down.insert(port) };
        if !changed {
            return;
        }
        let is_up = |port: PortNo| !self.down.contains(&port);
        for profile in &mut self.profiles {
            for group in profile.groups.values_mut().filter(|g| !g.choices.watches_nothing()) {
                group.choices.refresh(&is_up);
            }
        }
        for entry in self.tables.iter_mut().flat_map(Table::iter_mut) {
            if let Run::OneShot(set) = &mut entry.run {
                set.choices.refresh(&is_up);
            }
        }
    }

    /// What a miss of this table runs when the controller has said nothing.
    #[must_use]
    pub fn program_default(&self, table: TableNo) -> Option<Run> {
        default_run(self.program.tables.get(table.index())?, &self.actions[table.index()])
    }

    /// Whether a port is up as far as anybody said.
    #[must_use]
    pub fn is_up(&self, port: PortNo) -> bool {
        !self.down.contains(&port)
    }
}

/// The compiler makes several actions of one P4 action, one per use. Entries and members name the first of equal name
/// and data, so that tables can share them.
#[must_use]
pub fn canonical_actions(program: &Program) -> Vec<ActionNo> {
    let same = |a: &program::Action, b: &program::Action| a.name == b.name && a.params == b.params;
    let first = |action| program.actions.iter().position(|other| same(action, other));
    let mut canonical = Vec::with_capacity(program.actions.len());
    for (at, action) in program.actions.iter().enumerate() {
        canonical.push(ActionNo::from(first(action).unwrap_or(at)));
    }
    canonical
}

fn new_table(declared: &program::Table, actions: &[ActionNo]) -> Table {
    let mut table = Table::new(table::layout(&declared.key));
    table.insert_constants(declared, actions);
    table.default.run = default_run(declared, actions);
    table
}

/// What a miss runs when the controller has said nothing. `actions` are the table's canonical numbers.
fn default_run(declared: &program::Table, actions: &[ActionNo]) -> Option<Run> {
    let run = &declared.default.as_ref()?.run;
    let action = actions.get(usize::from(run.action))?;
    Some(Run::Action(Bound { action: *action, data: run.data.clone() }))
}

impl State for Memory {
    #[inline]
    fn apply(&mut self, number: TableNo, lookup: &Lookup<'_>, data: &mut [u64]) -> Outcome {
        let Some(table) = self.tables.get_mut(number.index()) else { return Outcome::default() };
        let declared = &self.program.tables[number.index()];
        let mut outcome = Outcome::default();
        let hit = table.find(lookup.key);
        let run = match hit.and_then(|id| table.get_mut(id)) {
            Some(entry) => {
                outcome.hit = true;
                let length = u64::from(lookup.facts.length);
                entry.count.add(length);
                entry.last_hit_us = lookup.facts.now_us;
                if let Some((meter, _)) = declared.meter {
                    let bytes = self.program.meters.get(meter.index()).is_some_and(|m| m.bytes);
                    let cost = if bytes { length } else { 1 };
                    outcome.color = Some(entry.meter.execute(lookup.facts.now_us, cost, length));
                }
                Some(&entry.run)
            }
            None => {
                let length = u64::from(lookup.facts.length);
                table.default.count.add(length);
                if let (Some((meter, _)), Some(_)) = (declared.meter, table.default.meter.rates()) {
                    let bytes = self.program.meters.get(meter.index()).is_some_and(|m| m.bytes);
                    let cost = if bytes { length } else { 1 };
                    let meter = &mut table.default.meter;
                    outcome.color = Some(meter.execute(lookup.facts.now_us, cost, length));
                }
                table.default.run.as_ref()
            }
        };
        let profile = match declared.implementation {
            Implementation::Simple => None,
            Implementation::Indirect(p) | Implementation::Selector(p) => {
                self.profiles.get(p.index())
            }
        };
        let bound = match run {
            None => None,
            Some(Run::Action(bound)) => Some(bound),
            Some(Run::Member(id)) => profile.and_then(|p| p.members.get(id)).map(|m| &m.bound),
            Some(Run::Group(id)) => profile.and_then(|p| p.pick(*id, (lookup.selector)())),
            Some(Run::OneShot(set)) => set.choices.pick((lookup.selector)()),
        };
        if let Some(bound) = bound {
            outcome.action = position(&self.actions[number.index()], bound.action);
            let length = bound.data.len().min(data.len());
            data[..length].copy_from_slice(&bound.data[..length]);
        }
        outcome
    }

    fn count(&mut self, counter: CounterNo, index: u64, facts: Facts) -> bool {
        let cells = self.counters.get_mut(counter.index());
        let Some(cell) = cells.and_then(|cells| cells.get_mut(usize::try_from(index).ok()?)) else {
            return false;
        };
        cell.add(u64::from(facts.length));
        true
    }

    fn meter(&mut self, meter: MeterNo, index: u64, facts: Facts) -> Option<u8> {
        let cell = self.meters.get_mut(meter.index())?.get_mut(usize::try_from(index).ok()?)?;
        let length = u64::from(facts.length);
        let bytes = self.program.meters.get(meter.index()).is_some_and(|m| m.bytes);
        Some(cell.execute(facts.now_us, if bytes { length } else { 1 }, length))
    }

    #[inline]
    fn cells(&mut self, register: RegisterNo) -> &mut [u64] {
        self.registers.get_mut(register.index()).map_or(&mut [], |cells| &mut cells[..])
    }

    fn value_set_contains(&self, set: ValueSetNo, key: &[u64]) -> bool {
        let Some(set) = self.value_sets.get(set.index()) else { return false };
        set.members.iter().any(|member| {
            let bits = key.iter().zip(&member.mask).zip(&member.value);
            bits.into_iter().all(|((k, m), v)| k & m == *v)
        })
    }

    fn random(&mut self) -> u64 {
        self.random.random()
    }
}

/// Position of an action among a table's few actions.
#[inline]
fn position(actions: &[ActionNo], action: ActionNo) -> Option<u16> {
    actions.iter().position(|a| *a == action).map(|at| at as u16)
}
