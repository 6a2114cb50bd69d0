//! Requests and answers of one leaf, by either way.
//!
//! In: a leaf's queue, packet-ins, replies, time-outs. Out: packet-outs and calls; samples for the windows.

use super::super::super::config::TelemetryWay;
use super::super::super::messages::{Event, Output, RequestId, TimerKey};
use super::super::super::outcome::{self, CallVerdict};
use super::super::Core;
use super::super::session::election_id;
use super::super::switch::{Call, Phase};
use super::leaf::{
    Ask, Boundary, Closed, Pending, READOUT_WINDOW, READS_WINDOW, SLOTS_PER_READ, TRIES, Way,
};
use crate::id::{FlowId, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::rpc::{Failure, Reply, Rpc, RpcResult};
use crate::pipeline::telemetry::{Answer, Request, Sample};
use crate::telemetry::{Dropped, Missing};
use crate::time::{Span, Time};

/// Request ids are 8 bits of session and 24 bits of counter.
const COUNTER_MASK: u32 = 0x00ff_ffff;

impl Core {
    /// Finds out how a leaf is read: by a Read, since BMv2 hides the refusal of a register Write in an UNKNOWN.
    pub(super) fn choose_way(&mut self, id: SwitchId) {
        let wanted = self.config.telemetry.way;
        let probe = self.config.program.cells.as_ref().map(|cells| cells.probe());
        let no_registers = self.switches[id.index()].no_registers;
        let leaf = self.collector.leaf(id);
        if leaf.asked || leaf.refused || leaf.way.is_some() {
            return;
        }
        leaf.asked = true;
        match probe {
            Some(probe) if wanted != TelemetryWay::Readout && !no_registers => {
                let device_id = self.switches[id.index()].device_id;
                let entities = vec![probe];
                let request = proto::ReadRequest { device_id, entities, ..Default::default() };
                self.ask_by_call(id, Ask::Probe, Rpc::Read(request), 1);
            }
            _ => self.set_way(id, Way::Readout),
        }
    }

    fn set_way(&mut self, id: SwitchId, way: Way) {
        if way == Way::Readout && self.config.telemetry.way == TelemetryWay::Register {
            self.collector.leaf(id).refused = true;
            let reason = format!(
                "switch {id} does not offer register reads; use --telemetry readout or auto"
            );
            return self.notify(Event::Rejected { reason });
        }
        let leaf = self.collector.leaf(id);
        leaf.way = Some(way);
        leaf.used = Some(way);
    }

    fn probed(&mut self, id: SwitchId, result: &RpcResult) {
        let running = match result {
            Ok(Reply::Read(entities)) => {
                let cells = self.config.program.cells.as_ref();
                cells.and_then(|cells| cells.running_in(entities))
            }
            Err(failure) if outcome::not_offered(failure) => {
                self.switches[id.index()].no_registers = true;
                return self.set_way(id, Way::Readout);
            }
            // Anything else: it is asked again in the next interval.
            _ => None,
        };
        if let Some(running) = running {
            self.collector.leaf(id).number = running;
            self.set_way(id, Way::Register);
        }
    }

    /// Ends the running interval at a leaf; its flows are read when that is answered.
    pub(super) fn close_interval(&mut self, id: SwitchId, flows: Vec<(FlowId, u16)>) {
        let switch = &self.switches[id.index()];
        let leaf = self.collector.leaf(id);
        if flows.is_empty() {
            leaf.begun = None;
            return;
        }
        let ready = switch.incarnation != 0
            && match leaf.way {
                Some(Way::Readout) => matches!(switch.phase, Phase::Active | Phase::Reading),
                Some(Way::Register) => switch.phase == Phase::Active && !switch.resync,
                None => false,
            };
        if !ready {
            leaf.begun = None;
            return self.collector.miss(&flows, Missing::Unreachable);
        }
        leaf.flows = flows;
        let next = leaf.next_number();
        leaf.queue.push_back(Ask::Advance(next));
        self.pump_reads(id);
    }

    /// Sends what window and rate cap allow.
    pub(super) fn pump_reads(&mut self, id: SwitchId) {
        let mut messages = Vec::new();
        loop {
            let leaf = self.collector.leaf(id);
            let (Some(way), Some(ask)) = (leaf.way, leaf.queue.front()) else { break };
            let window = if way == Way::Readout { READOUT_WINDOW } else { READS_WINDOW };
            if leaf.out.len() >= window {
                break;
            }
            let cost = match ask {
                Ask::Read(slots) => slots.len() as u32,
                _ => 1,
            };
            let Some(budget) = leaf.budget.checked_sub(cost) else {
                let rest = leaf.take_queue();
                self.collector.miss(&rest, Missing::RateCap);
                break;
            };
            leaf.budget = budget;
            let Some(ask) = leaf.queue.pop_front() else { break };
            match way {
                Way::Readout => messages.extend(self.ask_by_packet(id, ask)),
                Way::Register => self.ask_by_register(id, ask),
            }
        }
        self.send_readouts(id, messages);
    }

    fn send_readouts(&mut self, id: SwitchId, messages: Vec<proto::StreamMessageRequest>) {
        if !messages.is_empty() {
            let stream = self.switches[id.index()].stream;
            self.emit(Output::Send { switch: id, stream, messages });
        }
        self.time_reads(id);
    }

    fn ask_by_packet(&mut self, id: SwitchId, ask: Ask) -> Option<proto::StreamMessageRequest> {
        let now = self.now;
        let counter = self.collector.counter & COUNTER_MASK;
        self.collector.counter = self.collector.counter.wrapping_add(1);
        let leaf = self.collector.leaf(id);
        let number = u32::from(leaf.session) << 24 | counter;
        let request = request_of(&ask, leaf.closed)?;
        let pending = Pending { ask, sent: now, due: now + leaf.timeout(), tries: 1 };
        leaf.out.insert(number.into(), pending);
        Some(self.config.program.readout.packet_out(number, request))
    }

    /// The call that asks for something; none where the program has no such cells, or nothing is asked of them.
    fn register_call(&self, id: SwitchId, ask: &Ask) -> Option<Rpc> {
        let program = &self.config.program;
        let cells = program.cells.as_ref()?;
        let switch = &self.switches[id.index()];
        let device_id = switch.device_id;
        match ask {
            Ask::Probe => None,
            Ask::Advance(number) => Some(Rpc::Write(proto::WriteRequest {
                device_id,
                election_id: election_id(&switch.session),
                updates: vec![cells.advance(*number)],
                ..Default::default()
            })),
            Ask::Read(flows) => {
                let slots: Vec<u16> = flows.iter().map(|(_, slot)| *slot).collect();
                let number = self.collector.leaves[id.index()].closed.number;
                let entities = cells.read(&program.switch_config, &slots, number);
                Some(Rpc::Read(proto::ReadRequest { device_id, entities, ..Default::default() }))
            }
        }
    }

    fn ask_by_register(&mut self, id: SwitchId, ask: Ask) {
        if let Some(rpc) = self.register_call(id, &ask) {
            self.ask_by_call(id, ask, rpc, 1);
        }
    }

    fn ask_by_call(&mut self, id: SwitchId, ask: Ask, rpc: Rpc, tries: u8) {
        let now = self.now;
        let number = self.next_request;
        let leaf = self.collector.leaf(id);
        let timeout = leaf.timeout();
        leaf.out.insert(number, Pending { ask, sent: now, due: Time::NEVER, tries });
        self.call(id, Call::Telemetry, timeout, rpc);
    }

    /// A packet-in, which may answer a readout. Its id is looked at before anything else.
    pub(in super::super) fn readout_answered(&mut self, id: SwitchId, packet: &proto::PacketIn) {
        let Some(number) = self.config.program.readout.id_of(packet) else { return };
        let answer = self.config.program.readout.answer(packet);
        let now = self.now;
        let leaf = self.collector.leaf(id);
        let Some(pending) = leaf.out.get(&u64::from(number)) else {
            self.collector.telemetry.drop_sample(Dropped::Late);
            return;
        };
        let wanted = request_of(&pending.ask, leaf.closed);
        let Some(answer) = answer.filter(|answer| Some(answer.request) == wanted) else {
            // Not an answer to what was asked: the request goes on waiting for one.
            self.collector.telemetry.drop_sample(Dropped::Impossible);
            return;
        };
        let Some(pending) = leaf.out.remove(&u64::from(number)) else { return };
        if pending.tries == 1 {
            leaf.measured(now - pending.sent);
        }
        match pending.ask {
            Ask::Probe => {}
            Ask::Advance(number) => self.advance_answered(id, number, pending.tries, &answer),
            Ask::Read(flows) => self.sampled(id, &flows, &[answer.sample]),
        }
        self.pump_reads(id);
        self.check_observed();
    }

    fn advance_answered(&mut self, id: SwitchId, number: u32, tries: u8, answer: &Answer) {
        let (sample, switch) = (&answer.sample, &self.switches[id.index()]);
        if sample.incarnation != switch.incarnation {
            self.collector.telemetry.drop_sample(Dropped::Incarnation);
            return self.rebase_leaf(id, sample.running, Missing::Unreachable);
        }
        if sample.running != number {
            return self.rebase_leaf(id, sample.running, Missing::Unbounded);
        }
        let round_trip = self.collector.leaf(id).round_trip.unwrap_or_default();
        let at = Time(self.now.0.saturating_sub(round_trip.0 / 2));
        let boundary = Boundary { at, ticks: sample.time_ticks.map(|ticks| (ticks, sample.tick)) };
        // Only the first try tells when the interval began: of two, either may have been the one that was executed.
        self.advanced(id, number, (tries == 1).then_some(boundary));
    }

    /// The leaf is in another interval than was believed: its next one is the first with a known beginning.
    fn rebase_leaf(&mut self, id: SwitchId, running: u32, reason: Missing) {
        let leaf = self.collector.leaf(id);
        (leaf.number, leaf.doubt, leaf.begun) = (running, false, None);
        let flows = std::mem::take(&mut leaf.flows);
        self.collector.miss(&flows, reason);
    }

    /// A leaf has begun an interval.
    fn advanced(&mut self, id: SwitchId, number: u32, boundary: Option<Boundary>) {
        let collecting = self.collector.collecting;
        let leaf = self.collector.leaf(id);
        let length = leaf.begun.zip(boundary).map(|(begun, end)| begun.to(end));
        let closed = leaf.number;
        (leaf.number, leaf.doubt, leaf.begun) = (number, false, boundary);
        let flows = std::mem::take(&mut leaf.flows);
        let (Some(length), Some(round)) = (length, collecting) else {
            return self.collector.miss(&flows, Missing::Unbounded);
        };
        leaf.closed = Closed { number: closed, length };
        let per_ask = if leaf.way == Some(Way::Register) { SLOTS_PER_READ } else { 1 };
        // Where the rate cap cuts off, it should not always be the same flows.
        let mut flows = flows;
        let start = round as usize % flows.len().max(1);
        flows.rotate_left(start);
        leaf.queue.extend(flows.chunks(per_ask).map(|flows| Ask::Read(flows.to_vec())));
    }

    fn sampled(&mut self, id: SwitchId, flows: &[(FlowId, u16)], samples: &[Sample]) {
        let Some(number) = self.collector.collecting else { return };
        let Closed { number: asked, length } = self.collector.leaf(id).closed;
        for (flow, slot) in flows {
            let telemetry = &mut self.collector.telemetry;
            match samples.iter().find(|sample| sample.slot == *slot) {
                // What is not believed is counted there.
                Some(sample) => drop(telemetry.take(*flow, (number, asked), length, sample)),
                None => telemetry.miss(*flow, number, Missing::NoAnswer),
            }
        }
    }

    /// A telemetry call came to an end.
    pub(in super::super) fn telemetry_replied(
        &mut self,
        id: SwitchId,
        request: RequestId,
        result: RpcResult,
    ) {
        let now = self.now;
        let switch = &mut self.switches[id.index()];
        switch.pump |= switch.resync;
        let leaf = self.collector.leaf(id);
        // Given up when the interval after it was closed.
        let Some(pending) = leaf.out.remove(&request.0) else { return };
        let round_trip = now - pending.sent;
        if result.is_ok() && pending.tries == 1 {
            leaf.measured(round_trip);
        }
        match (pending.ask, result) {
            (Ask::Probe, result) => self.probed(id, &result),
            (Ask::Advance(number), Ok(_)) => {
                let at = pending.sent + Span(round_trip.0 / 2);
                self.advanced(id, number, Some(Boundary { at, ticks: None }));
            }
            (Ask::Read(flows), Ok(Reply::Read(entities))) => self.cells_read(id, &flows, &entities),
            (ask, Err(failure)) => self.call_failed(id, ask, pending.tries, &failure),
            (ask, Ok(_)) => self.ask_failed(id, ask),
        }
        self.pump_reads(id);
        self.check_observed();
    }

    fn cells_read(&mut self, id: SwitchId, flows: &[(FlowId, u16)], entities: &[proto::Entity]) {
        let program = &self.config.program;
        let slots: Vec<u16> = flows.iter().map(|(_, slot)| *slot).collect();
        let number = self.collector.leaves[id.index()].closed.number;
        if let Some(cells) = &program.cells {
            let read = cells.samples(&program.switch_config, (&slots, number), entities);
            self.sampled(id, flows, &read.samples);
        }
    }

    fn call_failed(&mut self, id: SwitchId, ask: Ask, tries: u8, failure: &Failure) {
        if matches!(outcome::call(failure, 1), CallVerdict::NotPrimary | CallVerdict::PipelineGone)
        {
            self.ask_failed(id, ask);
            return self.restart_session(id);
        }
        let Ask::Read(flows) = &ask else { return self.ask_failed(id, ask) };
        let budget = self.collector.leaf(id).budget.checked_sub(flows.len() as u32);
        let (Some(budget), true) = (budget, tries < TRIES) else {
            return self.ask_failed(id, ask);
        };
        self.collector.leaf(id).budget = budget;
        if let Some(rpc) = self.register_call(id, &ask) {
            self.ask_by_call(id, ask, rpc, tries + 1);
        }
    }

    /// Nobody will answer any more.
    fn ask_failed(&mut self, id: SwitchId, ask: Ask) {
        match ask {
            Ask::Probe => {}
            Ask::Advance(_) => {
                let leaf = self.collector.leaf(id);
                (leaf.doubt, leaf.begun) = (true, None);
                let flows = std::mem::take(&mut leaf.flows);
                self.collector.miss(&flows, Missing::NoAnswer);
            }
            Ask::Read(flows) => self.collector.miss(&flows, Missing::NoAnswer),
        }
    }

    /// Asks again for what got no answer in time.
    pub(in super::super) fn reads_expired(&mut self, id: SwitchId) {
        let now = self.now;
        let Some(leaf) = self.collector.leaves.get_mut(id.index()) else { return };
        leaf.timed = false;
        let due = leaf.out.iter().filter(|(_, pending)| pending.due <= now);
        let due: Vec<u64> = due.map(|(number, _)| *number).collect();
        let mut messages = Vec::new();
        for number in due {
            let leaf = self.collector.leaf(id);
            let Some(mut pending) = leaf.out.remove(&number) else { continue };
            let request = request_of(&pending.ask, leaf.closed);
            let (Some(request), true, Some(budget)) =
                (request, pending.tries < TRIES, leaf.budget.checked_sub(1))
            else {
                self.ask_failed(id, pending.ask);
                continue;
            };
            leaf.budget = budget;
            pending.tries += 1;
            pending.sent = now;
            pending.due = now + leaf.timeout();
            leaf.out.insert(number, pending);
            let number = u32::try_from(number).unwrap_or_default();
            messages.push(self.config.program.readout.packet_out(number, request));
        }
        self.send_readouts(id, messages);
        self.pump_reads(id);
        self.check_observed();
    }

    fn time_reads(&mut self, id: SwitchId) {
        let leaf = self.collector.leaf(id);
        let due = leaf.out.values().map(|pending| pending.due).min();
        if let Some(at) = due.filter(|due| *due < Time::NEVER && !leaf.timed) {
            leaf.timed = true;
            self.emit(Output::Timer { at, key: TimerKey::Readout(id) });
        }
    }

    /// What a leaf has not answered is missing.
    pub(super) fn give_up_reads(&mut self, id: SwitchId, reason: Missing) {
        let leaf = self.collector.leaf(id);
        if leaf.advancing() {
            (leaf.doubt, leaf.begun) = (true, None);
        }
        let flows = leaf.take_waiting();
        self.collector.miss(&flows, reason);
    }

    /// The session with a switch ended.
    pub(in super::super) fn telemetry_down(&mut self, id: SwitchId) {
        self.give_up_reads(id, Missing::Unreachable);
        self.collector.leaf(id).reset();
        self.check_observed();
    }
}

/// The request of a readout packet.
fn request_of(ask: &Ask, closed: Closed) -> Option<Request> {
    match ask {
        Ask::Probe => None,
        Ask::Advance(interval) => Some(Request::Advance { interval: *interval }),
        Ask::Read(flows) => {
            let slot = flows.first()?.1;
            Some(Request::Read { slot, interval: closed.number })
        }
    }
}
