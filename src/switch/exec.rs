//! Running a program on one packet. In: a program, a packet, the state behind the tables. Out: changed headers, and
//! what the program asked of the target ([`Asks`]). Must not know ports, queues, time beyond the [`Facts`] it is given.
//!
//! The target drives the phases; nothing is allocated per packet once the buffers have grown:
//!
//! ```text
//!  load(bytes) ─► set intrinsic fields ─► parse ─► run(ingress) ─► …traffic manager… ─► run(egress) ─► deparse(out)
//! ```
//!
//! No program and no packet can make it panic, hang or grow: indices were checked by the loader or are checked here
//! (out of range reads as 0 and writes nothing, counted in [`Faults`]), backward jumps and parser states are budgeted.

mod headers;
mod primitives;
#[cfg(test)]
mod tests;

use crate::switch::{
    code::Op,
    expr::{Expr, narrow, wide},
    parse::StateNo,
    phv::{FieldRef, Phv, mask},
    program::{Input, Node, Program, Table, TableNo},
    state::{Facts, Lookup, State, Step},
};
use headers::Headers;

/// Backward jumps of all actions of one pass. A loop in P4 runs over header stacks or a few dozen values; one packet
/// must not hold a switch for longer than a millisecond.
pub const MAX_BACKWARD_JUMPS: u32 = 8_192;
/// Parser states entered per packet: a packet of 9,216 bytes could be a stack of as many one-byte headers, no more.
pub const MAX_PARSER_STATES: u32 = 10_240;

/// A clone that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloneAsk {
    /// Clone session.
    pub session: u32,
    /// Field list to keep, 0 for none.
    pub list: u32,
}

/// What the program asked of the target in this pass. The last call wins, as in simple_switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// A copy to a clone session; the pass tells from where.
    pub clone: Option<CloneAsk>,
    /// Start over with the packet as received, keeping a field list.
    pub resubmit: Option<u32>,
    /// Start over with the packet as deparsed, keeping a field list.
    pub recirculate: Option<u32>,
    /// Send the digest with this learn list id.
    pub digest: Option<u32>,
    /// Cut the packet to this many bytes when it leaves.
    pub truncate: Option<u32>,
    /// The program ended the pipeline early.
    pub exit: bool,
}

/// Things that went wrong in a program, counted for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Index beyond a register, counter, meter or header stack.
    pub index: u64,
    /// Actions or parsers stopped by a budget.
    pub budget: u64,
    /// `assert` or `assume` that did not hold. BMv2 aborts the process; here the pass goes on.
    pub assertion: u64,
}

/// A packet in the switch.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// Headers and metadata.
    pub phv: Phv,
    /// The bytes that the parser read.
    pub bytes: Vec<u8>,
    /// Where the payload starts in `bytes`: everything before it was extracted.
    pub payload: usize,
    /// What the program asked for in this pass; the target clears it between passes.
    pub asks: Asks,
    /// Counted since the packet was made; the target may collect and clear.
    pub faults: Faults,
    /// Value that `mark_to_drop` writes.
    pub drop_port: u16,
    key: Vec<u64>,
    buffer: Vec<u8>,
}

impl Packet {
    /// A buffer for packets of that program. Reuse it.
    #[must_use]
    pub fn new(program: &Program, drop_port: u16) -> Self {
        let limbs = program.tables.iter().map(|t| t.key.limbs).max().unwrap_or(0);
        let parser = program.states.iter().map(|s| s.key_limbs).max();
        Self {
            phv: Phv::new(&program.layout),
            drop_port,
            key: vec![0; limbs.max(parser.unwrap_or(0))],
            ..Self::default()
        }
    }

    /// Starts over with new bytes: metadata 0, headers invalid, nothing asked.
    pub fn load(&mut self, program: &Program, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.restart(program);
    }

    /// Starts over with the bytes at hand.
    pub fn restart(&mut self, program: &Program) {
        self.payload = 0;
        self.asks = Asks::default();
        self.phv.reset(&program.layout);
    }

    /// Becomes a copy of `other` (multicast): headers, metadata, bytes.
    pub fn copy_from(&mut self, other: &Self) {
        self.phv.slots.copy_from_slice(&other.phv.slots);
        self.bytes.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.payload = other.payload;
        self.asks = other.asks;
        self.drop_port = other.drop_port;
    }

    /// Copies the fields of a field list from another packet; unknown ids copy nothing.
    pub fn keep(&mut self, program: &Program, list: u32, from: &Phv) {
        let Some(list) = program.field_lists.iter().find(|l| l.id == list) else { return };
        for at in &list.fields {
            let range = at.slot as usize..at.slot as usize + at.limbs();
            self.phv.slots[range.clone()].copy_from_slice(&from.slots[range]);
        }
    }

    /// Parses from byte 0: extracts headers, sets `parser_error` and `checksum_error`. A parse error does not drop.
    pub fn parse<S: State>(&mut self, program: &Program, state: &mut S, facts: Facts) {
        let mut machine = Machine::new(program, self, state, facts);
        let error = match program.parsers.first() {
            Some(parser) => machine.parser(parser.first),
            None => program.core_errors.no_error,
        };
        let payload = machine.cursor;
        let left = machine.packet.bytes.len().saturating_sub(payload);
        machine.watch(Step::Parsed { error, payload: left });
        let wrong = machine.checksum_error();
        self.payload = payload;
        self.phv.set(program.intrinsic.parser_error, error.into());
        self.phv.set(program.intrinsic.checksum_error, wrong.into());
    }

    /// Runs `Program::pipelines[pipeline]`; a missing pipeline does nothing.
    pub fn run<S: State>(
        &mut self,
        program: &Program,
        pipeline: usize,
        state: &mut S,
        facts: Facts,
    ) {
        let Some(pipeline) = program.pipelines.get(pipeline) else { return };
        self.asks.exit = false;
        let mut machine = Machine::new(program, self, state, facts);
        machine.watch(Step::Look);
        machine.pipeline(pipeline.first);
        machine.watch(Step::Look);
    }

    /// Updates checksums and appends the packet to `out`, truncated if the program asked for it.
    pub fn deparse<S: State>(
        &mut self,
        program: &Program,
        state: &mut S,
        facts: Facts,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let mut machine = Machine::new(program, self, state, facts);
        machine.watch(Step::Look);
        machine.update_checksums();
        machine.watch(Step::Look);
        if let Some(deparser) = program.deparsers.first() {
            if let Some(entry) = deparser.entry {
                machine.code(entry);
            }
            Headers { program, slots: &mut machine.packet.phv.slots }.emit(&deparser.order, out);
        }
        out.extend_from_slice(self.bytes.get(self.payload..).unwrap_or_default());
        if let Some(length) = self.asks.truncate {
            out.truncate(start.saturating_add(length as usize));
        }
    }
}

/// Why code stopped before its end.
enum Stop {
    /// The parser found an error: its value.
    Parser(u32),
    /// The budget is used up.
    Budget,
}

/// Slots as instructions see them.
struct Slots<'a>(&'a mut [u64]);

impl Slots<'_> {
    #[inline(always)]
    fn get(&self, slot: u32) -> u64 {
        self.0[slot as usize]
    }

    #[inline(always)]
    fn put(&mut self, width: u8, slot: u32, value: u64) {
        self.0[slot as usize] = value & u64::MAX.wrapping_shr(64_u32.wrapping_sub(width.into()));
    }
}

struct Machine<'a, S> {
    program: &'a Program,
    packet: &'a mut Packet,
    state: &'a mut S,
    facts: Facts,
    /// Bytes that the parser has consumed.
    cursor: usize,
    budget: u32,
}

impl<'a, S: State> Machine<'a, S> {
    fn new(program: &'a Program, packet: &'a mut Packet, state: &'a mut S, facts: Facts) -> Self {
        Self { program, packet, state, facts, cursor: 0, budget: MAX_BACKWARD_JUMPS }
    }

    /// Tells a state that watches what happens; compiles to nothing for one that does not.
    #[inline(always)]
    fn watch(&mut self, step: Step) {
        self.state.watch(step, &self.packet.phv.slots);
    }

    /// Runs code; the only errors that matter outside parsers are budgets.
    fn code(&mut self, entry: u32) {
        if let Err(Stop::Budget) = self.execute(entry) {
            self.packet.faults.budget += 1;
        }
    }

    fn execute(&mut self, entry: u32) -> Result<(), Stop> {
        let program = self.program;
        let mut at = entry as usize;
        loop {
            let s = &mut Slots(&mut self.packet.phv.slots);
            let op = program.code.get(at).copied().unwrap_or(Op::End);
            at += 1;
            match op {
                Op::End => return Ok(()),
                Op::Move { w, d, a } => s.put(w, d, s.get(a)),
                Op::Add { w, d, a, b } => s.put(w, d, s.get(a).wrapping_add(s.get(b))),
                Op::Sub { w, d, a, b } => s.put(w, d, s.get(a).wrapping_sub(s.get(b))),
                Op::Mul { w, d, a, b } => s.put(w, d, s.get(a).wrapping_mul(s.get(b))),
                Op::And { w, d, a, b } => s.put(w, d, s.get(a) & s.get(b)),
                Op::Or { w, d, a, b } => s.put(w, d, s.get(a) | s.get(b)),
                Op::Xor { w, d, a, b } => s.put(w, d, s.get(a) ^ s.get(b)),
                Op::Not { w, d, a } => s.put(w, d, !s.get(a)),
                Op::Shl { w, d, a, b } => s.put(w, d, shift_left(s.get(a), s.get(b))),
                Op::Shr { w, d, a, b } => s.put(w, d, shift_right(s.get(a), s.get(b))),
                Op::Eq { w, d, a, b } => s.put(w, d, (s.get(a) == s.get(b)).into()),
                Op::Ne { w, d, a, b } => s.put(w, d, (s.get(a) != s.get(b)).into()),
                Op::Less { w, d, a, b } => s.put(w, d, (s.get(a) < s.get(b)).into()),
                Op::LessEq { w, d, a, b } => s.put(w, d, (s.get(a) <= s.get(b)).into()),
                Op::Select { w, d, a, b, c } => {
                    s.put(w, d, if s.get(c) != 0 { s.get(a) } else { s.get(b) });
                }
                Op::Copy { d, dw, a, aw } => copy(s.0, d, dw, a, aw),
                Op::Jump { to } => at = to as usize,
                Op::JumpIfZero { a, to } if s.get(a) == 0 => at = to as usize,
                Op::JumpIfZero { .. } => {}
                Op::JumpBackIfZero { a, .. } if s.get(a) != 0 => {}
                Op::JumpBack { to } | Op::JumpBackIfZero { to, .. } => {
                    self.budget = self.budget.checked_sub(1).ok_or(Stop::Budget)?;
                    at = to as usize;
                }
                Op::Wide { d, dw, e } => {
                    evaluate(&program.wide[e as usize], s.0, FieldRef { slot: d, width: dw });
                }
                rare if arithmetic(s, rare) => {}
                other => self.primitive(other)?,
            }
        }
    }

    fn pipeline(&mut self, first: Option<Node>) {
        let program = self.program;
        let mut at = first;
        while let Some(node) = at {
            if self.packet.asks.exit {
                return;
            }
            at = match node {
                Node::Table(table) => self.apply(table),
                Node::Conditional(n) => {
                    let conditional = &program.conditionals[n as usize];
                    self.code(conditional.entry);
                    let taken = self.packet.phv.slots[conditional.result as usize] != 0;
                    self.watch(Step::Condition { number: n, holds: taken });
                    if taken { conditional.when_true } else { conditional.when_false }
                }
                Node::Call(n) => {
                    let call = &program.calls[n as usize];
                    self.watch(Step::Action(call.action));
                    self.code(program.actions[call.action.index()].entry);
                    call.next
                }
            };
        }
    }

    fn apply(&mut self, number: TableNo) -> Option<Node> {
        let program = self.program;
        self.watch(Step::Look);
        let table = &program.tables[number.index()];
        if let (Some(position), Some(default)) = (table.fixed, &table.default) {
            let params = program.layout.params as usize;
            let data = &default.run.data;
            self.packet.phv.slots[params..params + data.len()].copy_from_slice(data);
            return self.branch(table, false, Some(position.into()));
        }
        let Packet { phv, key, bytes, payload, buffer, .. } = &mut *self.packet;
        let key = &mut key[..table.key.limbs];
        key.fill(0);
        for field in &table.key.fields {
            pack(key, field.limb, field.shift, &phv.slots, field.source);
            if let Some(mask) = &field.mask {
                for (i, m) in mask.iter().enumerate() {
                    // A masked field of at most 64 bits may share its limb, so only its own bits are cut.
                    let own = if field.width() >= 64 { u64::MAX } else { mask_at(field.width()) };
                    key[field.limb as usize + i] &= !((own & !m) << field.shift);
                }
            }
        }
        let (fields, data) = phv.slots.split_at_mut(program.layout.params as usize);
        let calculation = match table.implementation {
            crate::switch::program::Implementation::Selector(p) => {
                program.profiles[p.index()].selector
            }
            _ => None,
        };
        let buffer = std::cell::RefCell::new(buffer);
        let payload = bytes.get(*payload..).unwrap_or_default();
        let selector = || {
            let Some(calculation) = calculation else { return 0 };
            let mut buffer = buffer.borrow_mut();
            calculate(program, calculation, fields, payload, &mut buffer)
        };
        let lookup = Lookup { key, facts: self.facts, selector: &selector };
        let outcome = self.state.apply(number, &lookup, data);
        if let (Some(color), Some((_, target))) = (outcome.color, table.meter) {
            self.packet.phv.set(target, color.into());
        }
        let action = outcome.action.map(usize::from).filter(|a| *a < table.actions.len());
        self.branch(table, outcome.hit, action)
    }

    /// Runs the action at that position of the table and gives the next step.
    fn branch(&mut self, table: &Table, hit: bool, action: Option<usize>) -> Option<Node> {
        let program = self.program;
        if let Some(action) = action {
            let action = table.actions[action];
            self.watch(Step::Action(action));
            self.code(program.actions[action.index()].entry);
        }
        let branch = if hit { table.next_hit } else { table.next_miss };
        match (branch, action) {
            (Some(next), _) => next,
            (None, Some(action)) => table.next.get(action).copied().flatten(),
            (None, None) => table.base_next,
        }
    }

    /// Runs the parser and gives the error value.
    fn parser(&mut self, first: StateNo) -> u32 {
        let program = self.program;
        let mut at = Some(first);
        let mut left = MAX_PARSER_STATES;
        while let Some(number) = at {
            if left == 0 {
                self.packet.faults.budget += 1;
                return program.core_errors.parser_timeout;
            }
            left -= 1;
            let state = &program.states[number.index()];
            self.watch(Step::State(number));
            match self.execute(state.entry) {
                Ok(()) => {}
                Err(Stop::Parser(error)) => return error,
                Err(Stop::Budget) => {
                    self.packet.faults.budget += 1;
                    return program.core_errors.parser_timeout;
                }
            }
            let Packet { phv, key, .. } = &mut *self.packet;
            at = state.next(self.state, &phv.slots, key);
        }
        program.core_errors.no_error
    }

    fn condition(&mut self, condition: Option<(u32, u32)>) -> bool {
        let Some((entry, result)) = condition else { return true };
        self.code(entry);
        self.packet.phv.slots[result as usize] != 0
    }

    fn calculation(&mut self, number: u32, payload: usize) -> u64 {
        let Packet { phv, bytes, buffer, .. } = &mut *self.packet;
        let payload = bytes.get(payload..).unwrap_or_default();
        calculate(self.program, number, &phv.slots, payload, buffer)
    }

    fn checksum_error(&mut self) -> bool {
        let program = self.program;
        let mut wrong = false;
        for (number, checksum) in program.checksums.iter().enumerate().filter(|(_, c)| c.verify) {
            if self.packet.phv.slots[checksum.valid as usize] == 0
                || !self.condition(checksum.condition)
            {
                continue;
            }
            let computed = self.calculation(checksum.calculation, self.cursor);
            let good = computed == self.packet.phv.get(checksum.target);
            self.watch(Step::Checksum { number, good });
            wrong |= !good;
        }
        wrong
    }

    fn update_checksums(&mut self) {
        let program = self.program;
        for checksum in program.checksums.iter().filter(|c| c.update) {
            if !self.condition(checksum.condition) {
                continue;
            }
            let payload = self.packet.payload;
            let computed = self.calculation(checksum.calculation, payload);
            self.packet.phv.set(checksum.target, computed);
        }
    }
}

const fn mask_at(width: u32) -> u64 {
    mask(width)
}

/// The value of a calculation over the slots and the payload.
pub(crate) fn calculate(
    program: &Program,
    number: u32,
    slots: &[u64],
    payload: &[u8],
    buffer: &mut Vec<u8>,
) -> u64 {
    let calculation = &program.calculations[number as usize];
    buffer.clear();
    let mut writer = crate::switch::bits::Writer::new(buffer);
    let mut with_payload = false;
    for input in &calculation.inputs {
        match input {
            Input::Field { at, valid, length } if slots[*valid as usize] != 0 => {
                let limbs = &slots[at.slot as usize..at.slot as usize + at.limbs()];
                let width = match length {
                    Some(length) => (slots[*length as usize] as u32).min(at.width),
                    None => at.width,
                };
                writer.push_limbs(&limbs[..width.div_ceil(64) as usize], width);
            }
            Input::Header(h) if slots[program.layout.headers[h.index()].valid as usize] != 0 => {
                headers::emit(program, slots, *h, &mut writer);
            }
            Input::Field { .. } | Input::Header(_) => {}
            Input::Constant(limbs, width) => writer.push_limbs(limbs, *width),
            Input::Payload => with_payload = true,
        }
    }
    writer.finish();
    if with_payload {
        buffer.extend_from_slice(payload);
    }
    crate::switch::hash::hash(calculation.algorithm, buffer)
}

/// Puts a field into a packed key.
pub(crate) fn pack(key: &mut [u64], limb: u32, shift: u32, slots: &[u64], source: FieldRef) {
    let (limb, slot) = (limb as usize, source.slot as usize);
    if source.width <= 64 {
        key[limb] |= slots[slot] << shift;
    } else {
        let limbs = source.limbs();
        key[limb..limb + limbs].copy_from_slice(&slots[slot..slot + limbs]);
    }
}

/// Evaluates an expression that 64-bit arithmetic cannot.
fn evaluate(expr: &Expr, slots: &mut [u64], to: FieldRef) {
    match narrow::low(expr, slots).filter(|_| to.width <= narrow::MAX_WIDTH) {
        Some(value) => narrow::write(slots, to, value),
        None => wide::write(slots, to, &wide::evaluate(expr, slots)),
    }
}

fn shift_left(value: u64, by: u64) -> u64 {
    if by < 64 { value << by } else { 0 }
}

fn shift_right(value: u64, by: u64) -> u64 {
    if by < 64 { value >> by } else { 0 }
}

/// Copies a field of `aw` bits over one of `dw` bits.
fn copy(slots: &mut [u64], d: u32, dw: u32, a: u32, aw: u32) {
    let to = FieldRef { slot: d, width: dw };
    let (target, source) = (to.limbs(), FieldRef { slot: a, width: aw }.limbs());
    let (d, a) = (d as usize, a as usize);
    let common = target.min(source);
    slots.copy_within(a..a + common, d);
    slots[d + common..d + target].fill(0);
    if let Some(top) = slots[d..d + target].last_mut() {
        *top &= to.top_mask();
    }
}

/// The less frequent arithmetic. False if the instruction is something else.
fn arithmetic(s: &mut Slots<'_>, op: Op) -> bool {
    let extend = |value: u64, width: u8| {
        let unused = 64_u32.saturating_sub(width.into());
        ((value << unused) as i64 >> unused) as u64
    };
    match op {
        Op::Extend { w, d, a } => s.put(64, d, extend(s.get(a), w)),
        Op::Div { w, d, a, b } => s.put(w, d, s.get(a).checked_div(s.get(b)).unwrap_or(0)),
        Op::Rem { w, d, a, b } => s.put(w, d, s.get(a).checked_rem(s.get(b)).unwrap_or(0)),
        Op::Sar { w, d, a, b } => s.put(w, d, (s.get(a) as i64 >> s.get(b).min(63)) as u64),
        Op::LessSigned { w, d, a, b } => {
            s.put(w, d, ((s.get(a) as i64) < s.get(b) as i64).into());
        }
        Op::LessEqSigned { w, d, a, b } => {
            s.put(w, d, (s.get(a) as i64 <= s.get(b) as i64).into());
        }
        Op::Bits { w, d, a, b } => {
            let (limb, shift) = ((a + b / 64) as usize, b % 64);
            let low = s.0[limb] >> shift;
            let high = if shift == 0 || u32::from(w) <= 64 - shift {
                0
            } else {
                s.0[limb + 1] << (64 - shift)
            };
            s.put(w, d, low | high);
        }
        Op::Saturate { w, n, d, a } => {
            let most = i64::MAX >> 64_u32.saturating_sub(n.into()).min(63);
            s.put(w, d, (s.get(a) as i64).clamp(-most - 1, most) as u64);
        }
        Op::SaturateUnsigned { w, n, signed, d, a } => {
            let value = s.get(a);
            let negative = signed && (value as i64) < 0;
            s.put(w, d, if negative { 0 } else { value.min(mask(n.into())) });
        }
        _ => return false,
    }
    true
}
