//! What hosts do: take turns at the interface, answer, repeat.

use super::background::FIRST_TURN;
use super::{FlowState, Net};
use crate::sim::host::frame::{Kind, unwrap_near};
use crate::sim::host::nic::Turn;
use crate::sim::host::{Arrival, Frame, Transmit};
use crate::sim::packet::{Forwarder, NetEvent};
use crate::sim::queue::Queue;
use crate::time::Time;

impl FlowState {
    /// Payload bytes of a packet: all are full but the last of each iteration.
    fn payload(&self, psn: u64, full: u32) -> u32 {
        // `end` is the end of the newest iteration; a repetition never belongs to an older one, because an iteration
        // starts only when the one before it has arrived everywhere.
        if psn + 1 == self.end { self.last_payload } else { full }
    }
}

impl<F: Forwarder> Net<F> {
    /// A sender may have something to say: lines it up at its host.
    pub(super) fn activate<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
    ) {
        let state = &mut self.flows[flow as usize];
        if state.sender_lined_up || !state.sender.ready(&self.transport) {
            return;
        }
        state.sender_lined_up = true;
        let (host, class) = (state.src, state.class);
        self.hosts[host as usize].nic.line_up_data(flow, class);
        self.pump(queue, now, host);
    }

    fn acknowledge<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.receiver_lined_up || !state.receiver.has_pending() {
            return;
        }
        state.receiver_lined_up = true;
        let host = state.dst;
        self.hosts[host as usize].nic.line_up_control(flow);
        self.pump(queue, now, host);
    }

    pub(super) fn nic_free<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        host: u32,
    ) {
        self.hosts[host as usize].nic.busy = false;
        self.pump(queue, now, host);
    }

    /// Puts the next frame on the wire if the interface is free.
    pub(super) fn pump<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, host: u32) {
        let state = &self.hosts[host as usize];
        if state.nic.busy || state.failed {
            return;
        }
        while let Some(turn) = self.hosts[host as usize].nic.turn() {
            let frame = match turn {
                Turn::Control(flow) => self.control_frame(flow),
                Turn::Probe(flow) => self.probe_frame(flow),
                Turn::Data(turn) if turn >= FIRST_TURN => self.background_frame(turn),
                Turn::Data(flow) => self.data_frame(queue, now, flow),
            };
            if let Some((frame, len)) = frame {
                let link = self.hosts[host as usize].uplink;
                let state = &self.links[link as usize];
                self.pool.seal(frame, len, state.epoch);
                let done = now + state.rate.transmission(len as u64);
                if let Some(trace) = &mut self.trace {
                    trace.load.add(link as usize, now, done, len as u64);
                }
                queue.push(done, NetEvent::NicFree(host).into());
                queue.push(done + state.delay, NetEvent::Arrive { link, frame }.into());
                self.hosts[host as usize].nic.busy = true;
                return;
            }
        }
    }

    fn probe_frame(&mut self, flow: u32) -> Option<(u32, usize)> {
        let state = &mut self.flows[flow as usize];
        let high = state.sender.take_probe()?;
        let (handle, place) = self.pool.reserve();
        let len = state.data.write(place, Kind::Probe, high, 0, true);
        self.traffic.control_sent += 1;
        Some((handle, len))
    }

    fn control_frame(&mut self, flow: u32) -> Option<(u32, usize)> {
        let credit = self.credit(flow);
        let state = &mut self.flows[flow as usize];
        state.receiver_lined_up = false;
        let (kind, psn) = state.receiver.answer(credit)?;
        let (handle, place) = self.pool.reserve();
        let len = state.back.write(place, kind, psn, 0, false);
        self.traffic.control_sent += 1;
        Some((handle, len))
    }

    /// First packet number for which the receiving rank of a flow has no room.
    pub(super) fn credit(&self, flow: u32) -> u64 {
        let state = &self.flows[flow as usize];
        let passed_on = self.flows[state.after as usize].sender.high();
        self.coupling.credit(state.receiver.expected(), passed_on)
    }

    fn data_frame<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
    ) -> Option<(u32, usize)> {
        let transport = self.transport;
        let state = &mut self.flows[flow as usize];
        state.sender_lined_up = false;
        let transmit = state.sender.transmit(now, &transport)?;
        let (handle, place) = self.pool.reserve();
        let len = match transmit {
            Transmit::Probe(psn) => {
                self.traffic.control_sent += 1;
                state.data.write(place, Kind::Probe, psn, 0, true)
            }
            Transmit::Data(psn) => {
                self.traffic.sent += 1;
                let payload = state.payload(psn, transport.payload) as usize;
                let every = u64::from(transport.ack_every);
                let ask = psn % every == every - 1 || psn + 1 == state.end;
                state.data.write(place, Kind::Data, psn, payload, ask)
            }
        };
        if state.sender.ready(&transport) {
            state.sender_lined_up = true;
            self.hosts[state.src as usize].nic.line_up_data(flow, state.class);
        }
        self.watch_sender(queue, flow);
        self.offer_room(flow);
        Some((handle, len))
    }

    /// What a rank has passed on frees room for the edge before it.
    fn offer_room(&mut self, flow: u32) {
        let before = self.flows[flow as usize].before;
        let credit = self.credit(before);
        let state = &mut self.flows[before as usize];
        // Acknowledgements carry the credit; a frame of its own is worth while only when much has become free.
        if credit >= state.receiver.advertised() + (self.coupling.buffer / 2).max(1) {
            state.receiver.announce_credit();
            // The interface is about to be busy; the frame takes its turn.
            if !state.receiver_lined_up {
                state.receiver_lined_up = true;
                let host = state.dst;
                self.hosts[host as usize].nic.line_up_control(before);
            }
        }
    }

    fn watch_sender<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let Some(at) = state.sender.deadline()
            && !state.sender_timer
        {
            state.sender_timer = true;
            queue.push(at, NetEvent::SenderTimer(flow).into());
        }
    }

    fn watch_receiver<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if let Some(at) = state.receiver.nak_at()
            && !state.receiver_timer
        {
            state.receiver_timer = true;
            queue.push(at, NetEvent::ReceiverTimer(flow).into());
        }
    }

    pub(super) fn sender_timer<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
    ) {
        let transport = self.transport;
        let state = &mut self.flows[flow as usize];
        state.sender_timer = false;
        let probe = state.sender.expire(now, &transport);
        self.watch_sender(queue, flow);
        if probe {
            let host = self.flows[flow as usize].src;
            self.hosts[host as usize].nic.line_up_probe(flow);
            self.pump(queue, now, host);
        }
    }

    pub(super) fn receiver_timer<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
    ) {
        let state = &mut self.flows[flow as usize];
        state.receiver_timer = false;
        if state.receiver.expire(now) {
            self.acknowledge(queue, now, flow);
        }
        self.watch_receiver(queue, flow);
    }

    /// A frame has arrived at a host.
    pub(super) fn host_receive<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        host: u32,
        handle: u32,
    ) {
        if self.hosts[host as usize].failed {
            self.traffic.host_down += 1;
            return;
        }
        let address = self.hosts[host as usize].address;
        let Some(frame) = Frame::parse(self.pool.frame(handle), address) else {
            self.traffic.unreadable += 1;
            return;
        };
        let Some(&flow) = self.queue_pairs.get(&(host, frame.queue_pair)) else {
            if self.is_background(host, frame.queue_pair) {
                self.traffic.background_delivered += 1;
            } else {
                self.traffic.unreadable += 1;
            }
            return;
        };
        let forward = matches!(frame.kind, Kind::Data | Kind::Probe);
        let state = &self.flows[flow as usize];
        if (if forward { state.dst } else { state.src }) != host {
            self.traffic.unreadable += 1;
            return;
        }
        match frame.kind {
            Kind::Data => self.receive_data(queue, now, flow, &frame),
            Kind::Probe => {
                self.traffic.control_delivered += 1;
                let transport = self.transport;
                let receiver = &mut self.flows[flow as usize].receiver;
                let high = unwrap_near(frame.psn, 24, receiver.expected());
                receiver.probe(now, high, &transport);
                self.acknowledge(queue, now, flow);
                self.watch_receiver(queue, flow);
            }
            Kind::Ack { credit } => self.receive_ack(queue, now, flow, (&frame, credit, None)),
            Kind::Nak { credit, gap_end, answer } => {
                self.receive_ack(queue, now, flow, (&frame, credit, Some((gap_end, answer))));
            }
        }
    }

    fn receive_data<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
        frame: &Frame,
    ) {
        let transport = self.transport;
        let state = &mut self.flows[flow as usize];
        let psn = unwrap_near(frame.psn, 24, state.receiver.expected());
        let late = state.receiver.is_late(psn) && !state.sender.was_repeated(psn);
        let before = state.receiver.expected();
        match state.receiver.data(now, psn, frame.ack_request, &transport) {
            Arrival::Duplicate => self.traffic.duplicated += 1,
            Arrival::Refused => self.traffic.refused += 1,
            Arrival::InOrder | Arrival::Early => {
                self.traffic.delivered += 1;
                self.traffic.reordered += u64::from(late);
                state.reordered += u64::from(late);
            }
        }
        let expected = state.receiver.expected();
        self.acknowledge(queue, now, flow);
        self.watch_receiver(queue, flow);
        if expected > before {
            self.progress(queue, now, flow, expected);
        }
    }

    fn receive_ack<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
        (frame, credit, gap): (&Frame, u32, Option<(u32, bool)>),
    ) {
        self.traffic.control_delivered += 1;
        let transport = self.transport;
        let sender = &mut self.flows[flow as usize].sender;
        let expected = unwrap_near(frame.psn, 24, sender.acked());
        let credit = unwrap_near(credit, 32, sender.credit());
        sender.acknowledge(now, expected, credit, &transport);
        if let Some((gap_end, answer)) = gap {
            let gap_end = unwrap_near(gap_end, 32, expected);
            sender.missing(now, (expected, gap_end), answer, &transport);
        }
        self.activate(queue, now, flow);
        self.watch_sender(queue, flow);
    }
}
