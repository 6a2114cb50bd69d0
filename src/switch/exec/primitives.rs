//! Instructions other than arithmetic and jumps. In: an instruction. Out: changed headers, state, asks.

use crate::switch::{
    code::Op,
    exec::{
        CloneAsk, Machine, Stop, copy,
        headers::{Headers, take_limbs},
    },
    phv::{FieldRef, HeaderNo},
    program::{CounterNo, MeterNo, RegisterNo},
    state::{State, Step},
};

/// Largest number that the target keeps in an ask; sessions, lists and lengths are 32 bits wide at most.
fn ask(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl<S: State> Machine<'_, S> {
    pub(super) fn primitive(&mut self, op: Op) -> Result<(), Stop> {
        match op {
            Op::Extract { .. }
            | Op::ExtractVarbit { .. }
            | Op::ExtractNext { .. }
            | Op::ExtractUnionNext { .. }
            | Op::Advance { .. }
            | Op::Verify { .. }
            | Op::Lookahead { .. } => self.parser_op(op),
            Op::Exit
            | Op::Hash { .. }
            | Op::Count { .. }
            | Op::Meter { .. }
            | Op::RegisterRead { .. }
            | Op::RegisterWrite { .. }
            | Op::Random { .. }
            | Op::Drop
            | Op::DropIn { .. }
            | Op::CloneIngress { .. }
            | Op::CloneEgress { .. }
            | Op::Resubmit { .. }
            | Op::Recirculate { .. }
            | Op::Digest { .. }
            | Op::Truncate { .. }
            | Op::Assert { .. }
            | Op::Log { .. } => {
                self.extern_op(op);
                Ok(())
            }
            _ => {
                self.header_op(op);
                Ok(())
            }
        }
    }

    fn slot(&self, slot: u32) -> u64 {
        self.packet.phv.slots[slot as usize]
    }

    fn put(&mut self, slot: u32, value: u64) {
        self.packet.phv.slots[slot as usize] = value;
    }

    fn header_op(&mut self, op: Op) {
        let slots = &mut self.packet.phv.slots;
        let read = |slots: &[u64], slot: u32| slots[slot as usize];
        let mut h = Headers { program: self.program, slots };
        let known = match op {
            Op::SetValid { h: n } => h.set_valid(n.into()),
            Op::SetInvalid { h: n } => h.set_invalid(n.into()),
            Op::SetValidAt { a } => h.set_valid(read(h.slots, a)),
            Op::SetInvalidAt { a } => h.set_invalid(read(h.slots, a)),
            Op::AssignHeader { d, a } => h.assign(read(h.slots, d), read(h.slots, a)),
            Op::AssignUnion { d, a } => h.assign_union(read(h.slots, d), read(h.slots, a)),
            Op::Push { s, a } => {
                h.shift_stack(s, read(h.slots, a), true);
                true
            }
            Op::Pop { s, a } => {
                h.shift_stack(s, read(h.slots, a), false);
                true
            }
            Op::PushUnion { s, a } => {
                h.shift_union_stack(s, read(h.slots, a), true);
                true
            }
            Op::PopUnion { s, a } => {
                h.shift_union_stack(s, read(h.slots, a), false);
                true
            }
            Op::AssignStack { d, a } => h.assign_stack(d, a),
            Op::AssignUnionStack { d, a } => h.assign_union_stack(d, a),
            Op::AssignVarbit { d, a } => h.assign_varbit(d, a),
            Op::LoadField { d, dw, a, f } => h.load_field(d, dw, a, f),
            Op::StoreField { d, f, a, aw } => h.store_field(d, f, a, aw),
            other => {
                let (d, value) = h.choose(other);
                h.slots[d as usize] = value;
                true
            }
        };
        self.packet.faults.index += u64::from(!known);
    }

    fn extern_op(&mut self, op: Op) {
        let program = self.program;
        self.watch(Step::Call(op));
        match op {
            Op::Exit => self.packet.asks.exit = true,
            Op::Hash { w, d, n, b, c } => {
                let hash = self.calculation(n, self.packet.payload);
                let base = self.slot(b);
                let value = base.wrapping_add(hash % self.slot(c).max(1));
                self.packet.phv.set(FieldRef { slot: d, width: w.into() }, value);
            }
            Op::Count { n, a } => {
                let counted = self.state.count(CounterNo(n), self.slot(a), self.facts);
                self.packet.faults.index += u64::from(!counted);
            }
            Op::Meter { w, d, n, a } => {
                match self.state.meter(MeterNo(n), self.slot(a), self.facts) {
                    Some(color) => {
                        self.packet.phv.set(FieldRef { slot: d, width: w.into() }, color.into());
                    }
                    None => self.packet.faults.index += 1,
                }
            }
            Op::RegisterRead { d, dw, n, a } => {
                self.register_read(FieldRef { slot: d, width: dw }, n, a)
            }
            Op::RegisterWrite { n, a, b, bw } => {
                self.register_write(n, a, FieldRef { slot: b, width: bw })
            }
            Op::Random { w, d, b, c } => {
                let (low, high) = (self.slot(b), self.slot(c));
                if low <= high {
                    let draw = self.state.random();
                    let value = match (high - low).checked_add(1) {
                        // The bias of a remainder is below 2^-16 for the 48-bit ranges that programs use.
                        Some(span) => low + draw % span,
                        None => draw,
                    };
                    self.packet.phv.set(FieldRef { slot: d, width: w.into() }, value);
                }
            }
            Op::Drop => {
                let port = self.packet.drop_port.into();
                self.packet.phv.set(program.intrinsic.egress_spec, port);
                self.packet.phv.set(program.intrinsic.mcast_grp, 0);
            }
            Op::DropIn { d, dw, a, aw } => {
                let port = self.packet.drop_port.into();
                self.packet.phv.set(FieldRef { slot: d, width: dw }, port);
                self.packet.phv.set(FieldRef { slot: a, width: aw }, 0);
            }
            Op::CloneIngress { a, b } | Op::CloneEgress { a, b } => {
                let (session, list) = (ask(self.slot(a)), ask(self.slot(b)));
                self.packet.asks.clone = Some(CloneAsk { session, list });
            }
            Op::Resubmit { a } => self.packet.asks.resubmit = Some(ask(self.slot(a))),
            Op::Recirculate { a } => self.packet.asks.recirculate = Some(ask(self.slot(a))),
            Op::Digest { a } => self.packet.asks.digest = Some(ask(self.slot(a))),
            Op::Truncate { a } => self.packet.asks.truncate = Some(ask(self.slot(a))),
            Op::Assert { a } => self.packet.faults.assertion += u64::from(self.slot(a) == 0),
            Op::Log { n } => self.log(n),
            _ => {}
        }
    }

    fn cell(&self, register: u32, index: u64) -> Option<std::ops::Range<usize>> {
        let array = &self.program.registers[register as usize];
        if index >= array.size.into() {
            return None;
        }
        let first = index as usize * array.limbs();
        Some(first..first + array.limbs())
    }

    fn register_read(&mut self, to: FieldRef, register: u32, index: u32) {
        let cell = self.cell(register, self.slot(index));
        let Some(cell) = cell.and_then(|range| self.state.cells(RegisterNo(register)).get(range))
        else {
            self.packet.faults.index += 1;
            return;
        };
        let first = to.slot as usize;
        let slots = &mut self.packet.phv.slots[first..first + to.limbs()];
        for (i, slot) in slots.iter_mut().enumerate() {
            *slot = cell.get(i).copied().unwrap_or(0);
        }
        if let Some(top) = slots.last_mut() {
            *top &= to.top_mask();
        }
    }

    fn register_write(&mut self, register: u32, index: u32, from: FieldRef) {
        let range = self.cell(register, self.slot(index));
        let width = self.program.registers[register as usize].width;
        let top = FieldRef { slot: 0, width }.top_mask();
        let Some(cell) =
            range.and_then(|range| self.state.cells(RegisterNo(register)).get_mut(range))
        else {
            self.packet.faults.index += 1;
            return;
        };
        let slots = self.packet.phv.limbs(from);
        for (i, limb) in cell.iter_mut().enumerate() {
            *limb = slots.get(i).copied().unwrap_or(0);
        }
        if let Some(last) = cell.last_mut() {
            *last &= top;
        }
    }

    fn log(&self, message: u32) {
        if !tracing::enabled!(target: "p4", tracing::Level::INFO) {
            return;
        }
        let message = &self.program.messages[message as usize];
        let mut text = String::new();
        let mut values = message.values.iter();
        for (i, part) in message.format.split("{}").enumerate() {
            if i > 0
                && let Some(at) = values.next()
            {
                let value = crate::switch::expr::wide::read(&self.packet.phv.slots, *at, false);
                text.push_str(&value.to_string());
            }
            text.push_str(part);
        }
        tracing::info!(target: "p4", "{text}");
    }

    fn parser_op(&mut self, op: Op) -> Result<(), Stop> {
        let errors = self.program.core_errors;
        match op {
            Op::Extract { h } => self.extract(HeaderNo(h), 0),
            Op::ExtractVarbit { h, a } => self.extract(HeaderNo(h), self.slot(a)),
            Op::ExtractNext { s, varbit, a } => {
                let stack = &self.program.layout.stacks[s as usize];
                let next = self.slot(stack.next) as usize;
                let header = stack.headers.get(next).copied();
                let header = header.ok_or(Stop::Parser(errors.stack_out_of_bounds))?;
                self.extract(header, if varbit { self.slot(a) } else { 0 })?;
                self.put(stack.next, next as u64 + 1);
                Ok(())
            }
            Op::ExtractUnionNext { s, m, varbit, a } => {
                let stack = &self.program.layout.union_stacks[s as usize];
                let next = self.slot(stack.next) as usize;
                let union = stack.unions.get(next);
                let union = union.ok_or(Stop::Parser(errors.stack_out_of_bounds))?;
                let (_, header) = self.program.layout.unions[union.index()].members[m as usize];
                self.extract(header, if varbit { self.slot(a) } else { 0 })?;
                self.put(stack.next, next as u64 + 1);
                Ok(())
            }
            Op::Advance { a } => {
                let bits = self.slot(a);
                if !bits.is_multiple_of(8) {
                    return Err(Stop::Parser(errors.parser_invalid_argument));
                }
                let left = (self.packet.bytes.len() - self.cursor) as u64;
                if bits / 8 > left {
                    return Err(Stop::Parser(errors.packet_too_short));
                }
                self.cursor += (bits / 8) as usize;
                Ok(())
            }
            Op::Verify { a, b } => {
                if self.slot(a) == 0 {
                    return Err(Stop::Parser(ask(self.slot(b))));
                }
                Ok(())
            }
            Op::Lookahead { d, dw, at } => self.lookahead(FieldRef { slot: d, width: dw }, at),
            _ => Ok(()),
        }
    }

    fn lookahead(&mut self, to: FieldRef, at: u32) -> Result<(), Stop> {
        let start = self.cursor * 8 + at as usize;
        if start + to.width as usize > self.packet.bytes.len() * 8 {
            return Err(Stop::Parser(self.program.core_errors.packet_too_short));
        }
        let first = to.slot as usize;
        let limbs = &mut self.packet.phv.slots[first..first + to.limbs()];
        take_limbs(limbs, &self.packet.bytes, start, to.width);
        Ok(())
    }

    fn extract(&mut self, number: HeaderNo, varbit: u64) -> Result<(), Stop> {
        let errors = self.program.core_errors;
        let header = &self.program.layout.headers[number.index()];
        if !varbit.is_multiple_of(8) {
            return Err(Stop::Parser(errors.parser_invalid_argument));
        }
        let needed = u64::from(header.bits).saturating_add(varbit) / 8;
        if needed > (self.packet.bytes.len() - self.cursor) as u64 {
            return Err(Stop::Parser(errors.packet_too_short));
        }
        if varbit > header.varbit.map_or(0, |v| v.max_bits).into() {
            return Err(Stop::Parser(errors.header_too_short));
        }
        let cursor = self.cursor;
        let crate::switch::exec::Packet { phv, bytes, .. } = &mut *self.packet;
        let mut headers = Headers { program: self.program, slots: &mut phv.slots };
        headers.extract(header, bytes, cursor, varbit as u32);
        self.cursor += headers.bytes(header);
        Ok(())
    }
}

impl Headers<'_> {
    fn assign_stack(&mut self, d: u32, a: u32) -> bool {
        let stacks = &self.program.layout.stacks;
        let (to, from) = (&stacks[d as usize], &stacks[a as usize]);
        for (x, y) in to.headers.iter().zip(&from.headers) {
            self.assign(x.0.into(), y.0.into());
        }
        self.slots[to.next as usize] = self.slots[from.next as usize].min(to.headers.len() as u64);
        true
    }

    fn assign_union_stack(&mut self, d: u32, a: u32) -> bool {
        let stacks = &self.program.layout.union_stacks;
        let (to, from) = (&stacks[d as usize], &stacks[a as usize]);
        for (x, y) in to.unions.iter().zip(&from.unions) {
            self.assign_union(x.0.into(), y.0.into());
        }
        self.slots[to.next as usize] = self.slots[from.next as usize].min(to.unions.len() as u64);
        true
    }

    fn assign_varbit(&mut self, d: u32, a: u32) -> bool {
        let header = |n: u32| &self.program.layout.headers[n as usize];
        let (to, from) = (header(d), header(a));
        let (Some(x), Some(y)) = (to.varbit, from.varbit) else { return false };
        let length = self.slots[y.length as usize].min(x.max_bits.into());
        let (target, source) = (to.fields[x.field as usize].at, from.fields[y.field as usize].at);
        copy(self.slots, target.slot, target.width, source.slot, source.width);
        self.slots[x.length as usize] = length;
        true
    }

    fn load_field(&mut self, d: u32, dw: u32, a: u32, f: u32) -> bool {
        let header = self.slots[a as usize];
        match self.field(header, f) {
            Some(range) => {
                copy(self.slots, d, dw, range.start as u32, 64 * range.len() as u32);
                true
            }
            None => {
                let limbs = FieldRef { slot: d, width: dw }.limbs();
                self.slots[d as usize..d as usize + limbs].fill(0);
                false
            }
        }
    }

    fn store_field(&mut self, d: u32, f: u32, a: u32, aw: u32) -> bool {
        let header = usize::try_from(self.slots[d as usize]).unwrap_or(usize::MAX);
        let header = self.program.layout.headers.get(header);
        let Some(field) = header.and_then(|h| h.fields.get(f as usize)) else { return false };
        copy(self.slots, field.at.slot, field.at.width, a, aw);
        true
    }

    /// Instructions that only compute a slot from headers.
    fn choose(&self, op: Op) -> (u32, u64) {
        let s = |slot: u32| self.slots[slot as usize];
        match op {
            Op::Element { d, s: stack, a } => (d, self.element(stack, s(a))),
            Op::Last { d, s: stack } => {
                let next = s(self.program.layout.stacks[stack as usize].next);
                (d, self.element(stack, next.wrapping_sub(1)))
            }
            Op::UnionElement { d, s: stack, a } => (d, self.union_element(stack, s(a))),
            Op::UnionLast { d, s: stack } => {
                let next = s(self.program.layout.union_stacks[stack as usize].next);
                (d, self.union_element(stack, next.wrapping_sub(1)))
            }
            Op::Member { d, a, m } => (d, self.member(s(a), m)),
            Op::ValidAt { d, a } => (d, self.valid(s(a)).into()),
            Op::UnionValid { d, a } => (d, self.valid_member(s(a)).is_some().into()),
            Op::HeaderEq { d, a, b } => (d, self.equal(s(a), s(b)).into()),
            Op::UnionEq { d, a, b } => {
                let equal = match (self.valid_member(s(a)), self.valid_member(s(b))) {
                    (Some((i, x)), Some((j, y))) => i == j && self.equal(x.0.into(), y.0.into()),
                    _ => false,
                };
                (d, equal.into())
            }
            // Slot 0 is never written by code; an unknown instruction keeps it as it is.
            _ => (0, 0),
        }
    }
}
