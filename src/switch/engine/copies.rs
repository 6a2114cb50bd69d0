//! Copies and second passes: clone, multicast, resubmit, recirculate; digests. Part of the engine.

use super::{Drop, Held, MAX_INPUT, MAX_PASSES, PortNo, Switch, Time, instance};
use crate::switch::exec::{Asks, CloneAsk, Packet};
use crate::switch::program::Program;
use crate::switch::state::Facts;
use crate::switch::trace::Kind;

/// Bytes that the packet would have on the wire now: its valid headers and its payload. simple_switch keeps this number
/// in a packet register (`primitives.cpp`, `add_header` and `remove_header`).
pub(super) fn wire_length(program: &Program, packet: &Packet) -> u64 {
    let payload = packet.bytes.len().saturating_sub(packet.payload) as u64;
    let Some(deparser) = program.deparsers.first() else { return payload };
    let slots = &packet.phv.slots;
    let mut bits = 0;
    for number in &deparser.order {
        let header = &program.layout.headers[number.index()];
        if slots[header.valid as usize] != 0 {
            bits += u64::from(header.bits);
            bits += header.varbit.map_or(0, |varbit| slots[varbit.length as usize]);
        }
    }
    payload + bits / 8
}

impl Switch {
    /// A slot for a copy of the packet in `slot`, or its next pass; `None` if it has had too many.
    fn next_pass(&mut self, slot: u32) -> Option<u32> {
        let passes = self.slots[slot as usize].passes.saturating_add(1);
        if passes > MAX_PASSES {
            self.lose(Some(slot), Drop::Passes);
            return None;
        }
        let copy = self.slot()?;
        let length = self.slots[slot as usize].length;
        let held = &mut self.slots[copy as usize];
        (held.passes, held.length) = (passes, length);
        Some(copy)
    }

    /// Original and copy, to be changed together.
    fn two(&mut self, from: u32, to: u32) -> Option<(&mut Held, &mut Held)> {
        let pair = self.slots.get_disjoint_mut([from as usize, to as usize]).ok()?;
        let [from, to] = pair;
        Some((from, to))
    }

    /// Ports and instances of a clone session's copies, into `self.targets`; false if there is no session.
    fn session_targets(&mut self, session: u32) -> bool {
        let Some(loaded) = &self.loaded else { return false };
        let down = &self.down;
        self.targets.clear();
        let Some(session) = loaded.control.replication.sessions.get(&session) else { return false };
        let target =
            |r: &crate::switch::replication::Replica| r.target(|port| !down.contains(&port));
        self.targets.extend(session.replicas.iter().map(target));
        true
    }

    /// The packet as received, parsed again, its metadata cut down to a field list.
    pub(super) fn clone_ingress(&mut self, now: Time, slot: u32, ask: CloneAsk) {
        if !self.session_targets(ask.session) {
            return self.lose(Some(slot), Drop::NoSession);
        }
        let Some(copy) = self.next_pass(slot) else { return };
        self.note_copy(slot, copy, "clone");
        let now_us = self.config.clock.local_us(now);
        let Some(loaded) = &mut self.loaded else { return };
        let program = std::sync::Arc::clone(&loaded.program);
        let Ok([from, to]) = self.slots.get_disjoint_mut([slot as usize, copy as usize]) else {
            return;
        };
        let at = &program.intrinsic;
        to.packet.load(&program, &from.packet.bytes);
        to.packet.phv.set(at.ingress_port, from.packet.phv.get(at.ingress_port));
        let facts = Facts { now_us, length: from.length };
        let memory = &mut loaded.control.memory;
        watched!(&mut self.trace, copy, memory, |s| to.packet.parse(&program, s, facts));
        to.packet.phv.reset_metadata(&program.layout);
        to.packet.keep(&program, ask.list, &from.packet.phv);
        to.packet.phv.set(at.instance_type, instance::INGRESS_CLONE);
        self.send_clone(now, copy, ask.session);
    }

    /// The packet with its headers as they are after egress, its metadata cut down to a field list.
    pub(super) fn clone_egress(&mut self, now: Time, slot: u32, ask: CloneAsk) {
        if !self.session_targets(ask.session) {
            return self.lose(Some(slot), Drop::NoSession);
        }
        let Some(copy) = self.next_pass(slot) else { return };
        self.note_copy(slot, copy, "clone");
        let Some(loaded) = &self.loaded else { return };
        let program = std::sync::Arc::clone(&loaded.program);
        let Some((from, to)) = self.two(slot, copy) else { return };
        to.packet.copy_from(&from.packet);
        to.packet.phv.reset_metadata(&program.layout);
        to.packet.keep(&program, ask.list, &from.packet.phv);
        to.packet.phv.set(program.intrinsic.instance_type, instance::EGRESS_CLONE);
        self.send_clone(now, copy, ask.session);
    }

    fn send_clone(&mut self, now: Time, copy: u32, session: u32) {
        let Some(loaded) = &self.loaded else { return };
        let session = loaded.control.replication.sessions.get(&session);
        let (queue, truncate) = session.map_or((0, None), |s| (s.queue, s.truncate));
        if queue > 0 {
            self.set(copy, |at| at.priority, queue.into());
        }
        self.slots[copy as usize].packet.asks = Asks { truncate, ..Asks::default() };
        self.copy_to_targets(now, copy, Drop::NoSession);
    }

    /// One copy per target, the last of them the packet itself.
    fn copy_to_targets(&mut self, now: Time, slot: u32, without: Drop) {
        let targets = std::mem::take(&mut self.targets);
        if let Some((last, rest)) = targets.split_last() {
            for (port, rid) in rest {
                let Some(copy) = self.slot() else { break };
                self.note_copy(slot, copy, "replica");
                let Some((from, to)) = self.two(slot, copy) else { break };
                (to.length, to.passes) = (from.length, from.passes);
                to.packet.copy_from(&from.packet);
                self.set(copy, |at| at.egress_rid, (*rid).into());
                self.enqueue(now, copy, *port);
            }
            self.set(slot, |at| at.egress_rid, last.1.into());
            self.enqueue(now, slot, last.0);
        } else {
            self.drop(slot, without);
        }
        self.targets = targets;
    }

    pub(super) fn multicast(&mut self, now: Time, slot: u32, group: u64) {
        self.set(slot, |at| at.instance_type, instance::REPLICATED);
        let Some(loaded) = &self.loaded else { return };
        let down = &self.down;
        self.targets.clear();
        let found = u32::try_from(group).ok();
        if let Some(replicas) = found.and_then(|id| loaded.control.replication.groups.get(&id)) {
            let up = |port: PortNo| !down.contains(&port);
            self.targets.extend(replicas.iter().map(|replica| replica.target(up)));
        }
        self.copy_to_targets(now, slot, Drop::NoReplica);
    }

    pub(super) fn digest(&mut self, now: Time, slot: u32, list: u32) {
        let Some(loaded) = &mut self.loaded else { return };
        let lists = &loaded.program.learn_lists;
        let Some(at) = lists.iter().position(|learn| learn.id == list) else { return };
        let phv = &self.slots[slot as usize].packet.phv;
        let values: Vec<Vec<u8>> =
            lists[at].fields.iter().map(|field| phv.bytes(*field).to_vec()).collect();
        let local_ns = self.config.clock.local_ns(now);
        let room = self.outbox.len() < super::MAX_OUTBOX;
        let taken = room && loaded.control.sample(now, local_ns, at, &values, &mut self.outbox);
        if !taken {
            self.stats.digests_lost += 1;
        }
        if let Some(trace) = &mut self.trace {
            let fields = values.iter().map(|value| format!("0x{}", super::hex(value))).collect();
            let name = loaded.program.learn_lists[at].name.clone();
            trace.note(slot, Kind::Digest { name, fields });
        }
    }

    /// Starts over with the bytes as received.
    pub(super) fn resubmit(&mut self, slot: u32, list: u32) {
        let bytes = std::mem::take(&mut self.slots[slot as usize].packet.bytes);
        let length = self.slots[slot as usize].length;
        self.again(slot, list, &bytes, (instance::RESUBMITTED, length));
        self.slots[slot as usize].packet.bytes = bytes;
        self.free.push(slot);
    }

    /// Starts over with the bytes in `self.deparsed`.
    pub(super) fn recirculate(&mut self, slot: u32, list: u32) {
        let bytes = std::mem::take(&mut self.deparsed);
        self.again(slot, list, &bytes, (instance::RECIRCULATED, bytes.len() as u32));
        self.deparsed = bytes;
        self.free.push(slot);
    }

    /// Queues a next pass with these bytes, instance type and length.
    fn again(&mut self, slot: u32, list: u32, bytes: &[u8], (kind, length): (u64, u32)) {
        if self.input.len() >= MAX_INPUT {
            return self.lose(Some(slot), Drop::InputFull);
        }
        let Some(next) = self.next_pass(slot) else { return };
        let resubmitted = kind == instance::RESUBMITTED;
        self.note_copy(slot, next, if resubmitted { "resubmitted" } else { "recirculated" });
        let Some(loaded) = &self.loaded else { return };
        let program = std::sync::Arc::clone(&loaded.program);
        let Some((from, to)) = self.two(slot, next) else { return };
        to.packet.load(&program, bytes);
        to.packet.keep(&program, list, &from.packet.phv);
        to.length = length;
        to.packet.phv.set(program.intrinsic.instance_type, kind);
        to.packet.phv.set(program.intrinsic.packet_length, length.into());
        self.input.push_back(next);
    }
}
