//! The packet's way through the switch. In: packets with a port and a time, updates from the server. Out: packets with
//! a port and a time, messages in the outbox. Must not know our program or how entries are stored.
//!
//! ```text
//!                ┌────────── resubmit ───────────┐
//!                ▼                               │
//!  receive ─► [parse ─► ingress ─► clone, digest, resubmit, multicast, drop] ─► queues ◄── clones of egress
//!                ▲                                                                 │ advance
//!                │                                                                 ▼
//!                └────────────── recirculate ◄── deparse ◄── drop ◄── clone ◄── [egress]
//!                                                   │
//!                                                   └─► Sent, or PacketIn on the CPU port
//! ```
//! The order of the decisions after ingress and egress is simple_switch's (`simple_switch.cpp`, `ingress_thread` and
//! `egress_thread`), and so are the values of the metadata. Packets live in slots that are used again, so a switch that
//! has seen its busiest moment allocates nothing for a packet; only packets to the controller and digests do.

#[macro_use]
mod watch;
mod copies;
#[cfg(test)]
mod tests;

use crate::id::PortNo;
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::{
    DigestListAck, Entity, ForwardingPipelineConfig, PacketOut, StreamMessageResponse, Update,
};
use crate::p4runtime::rpc::Code;
use crate::switch::device::{Control, names::Names, stream::SWEEP};
use crate::switch::exec::{Asks, Packet};
use crate::switch::load::{self, LoadError};
use crate::switch::memory::Memory;
use crate::switch::program::Program;
use crate::switch::state::Facts;
use crate::switch::trace::{Kind, Trace};
use crate::switch::traffic::{Dequeued, Traffic};
use crate::switch::{
    Config, Drop, MAX_INPUT, MAX_OUTBOX, MAX_PACKET_BYTES, MAX_PACKETS, MAX_PASSES, Stats,
};
use crate::time::Time;
use crate::units::BitRate;
use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use watch::{dropped, hex};

/// Where a packet copy comes from (`standard_metadata.instance_type`).
mod instance {
    pub(super) const NORMAL: u64 = 0;
    pub(super) const INGRESS_CLONE: u64 = 1;
    pub(super) const EGRESS_CLONE: u64 = 2;
    pub(super) const RECIRCULATED: u64 = 4;
    pub(super) const REPLICATED: u64 = 5;
    pub(super) const RESUBMITTED: u64 = 6;
}

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<'a> {
    /// The port.
    pub port: PortNo,
    /// The queue it waited in.
    pub queue: u8,
    /// When it came into that queue.
    pub enqueued: Time,
    /// What is on the wire.
    pub bytes: &'a [u8],
    /// When its first bit leaves.
    pub start: Time,
    /// When its last bit has left: `start + bytes * 8 / rate`, and `start` on an unshaped port.
    pub end: Time,
}

/// What became of a packet that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is on its way, and the port takes more.
    More,
    /// It is on its way, and the port takes no more: it is held until [`Switch::release`].
    Full,
    /// It is lost.
    Lost(Drop),
}

/// A packet in a slot.
#[derive(Clone, Debug)]
struct Held {
    packet: Packet,
    /// Bytes when it came in (or was recirculated): what counters count.
    length: u32,
    /// Resubmitted, recirculated or cloned so often.
    passes: u16,
}

/// A program with its state.
struct Loaded {
    program: Arc<Program>,
    control: Control,
}

/// A switch. Call [`Switch::receive`] for each packet, [`Switch::advance`] when [`Switch::poll_at`] says so.
pub struct Switch {
    config: Config,
    loaded: Option<Box<Loaded>>,
    traffic: Traffic<u32>,
    stats: Stats,
    slots: Vec<Held>,
    free: Vec<u32>,
    /// Resubmitted and recirculated packets.
    input: VecDeque<u32>,
    /// Targets of the copies being made.
    targets: Vec<(PortNo, u16)>,
    deparsed: Vec<u8>,
    outbox: Vec<StreamMessageResponse>,
    down: BTreeSet<PortNo>,
    /// When entries are looked at for their age; `None` while none ages.
    sweep_at: Option<Time>,
    /// What packets meet, when somebody wants to know.
    trace: Option<Box<Trace>>,
}

impl Switch {
    /// A switch without a program: it drops everything.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            traffic: Traffic::new(config.limits()),
            stats: Stats::default(),
            config,
            loaded: None,
            slots: Vec::new(),
            free: Vec::new(),
            input: VecDeque::new(),
            targets: Vec::new(),
            deparsed: Vec::new(),
            outbox: Vec::new(),
            down: BTreeSet::new(),
            sweep_at: None,
            trace: None,
        }
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether anything waits for the controller.
    #[must_use]
    pub fn has_messages(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Packets inside.
    #[must_use]
    pub fn packets_held(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// A cell of a register, by the register's name or the last part of it, to look at from outside; `None` if there is no
    /// such cell, or one wider than 64 bits.
    #[must_use]
    pub fn register(&self, name: &str, index: usize) -> Option<u64> {
        let memory = &self.loaded.as_ref()?.control.memory;
        let named = |full: &str| full == name || full.rsplit('.').next() == Some(name);
        let registers = &memory.program().registers;
        let at = registers.iter().position(|register| named(&register.name))?;
        let narrow = registers[at].limbs() == 1;
        memory.registers[at].get(index).copied().filter(|_| narrow)
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The traffic manager, to look at its queues.
    #[must_use]
    pub fn traffic(&self) -> &Traffic<u32> {
        &self.traffic
    }

    /// Whether a port is up.
    #[must_use]
    pub fn is_up(&self, port: PortNo) -> bool {
        !self.down.contains(&port)
    }

    /// Tells at which time of day the clock's zero was, in nanoseconds since the Epoch, as [`Config::epoch_ns`] does before.
    pub fn began(&mut self, epoch_ns: u64) {
        self.config.epoch_ns = epoch_ns;
        if let Some(loaded) = &mut self.loaded {
            loaded.control.epoch_ns = epoch_ns;
        }
    }

    /// Starts a program without P4Info: it runs, but no controller can name anything in it. Forgets all state of the
    /// program before, and the packets in its queues.
    ///
    /// # Errors
    /// Says what is wrong with the JSON; the switch is then as before.
    pub fn load_json(&mut self, _now: Time, json: &[u8]) -> Result<(), LoadError> {
        let program = Arc::new(load::load(json)?);
        let index = Arc::new(Index::default());
        self.start(program, index, Names::default());
        Ok(())
    }

    fn start(&mut self, program: Arc<Program>, index: Arc<Index>, names: Names) {
        let stats = &mut self.stats;
        self.traffic.clear(&mut |_| stats.drop(Drop::NoProgram));
        self.input.clear();
        self.slots.clear();
        self.free.clear();
        self.sweep_at = None;
        let memory = Memory::new(Arc::clone(&program), self.config.seed, self.down.clone());
        let mut control = Control::new(index, Arc::new(names), memory, self.config.mimic_bmv2);
        control.epoch_ns = self.config.epoch_ns;
        self.loaded = Some(Box::new(Loaded { program, control }));
    }

    /// Takes a packet: parser, ingress, and into a queue. Nothing leaves before [`Switch::advance`].
    pub fn receive(&mut self, now: Time, port: PortNo, bytes: &[u8]) {
        self.stats.received(port, bytes.len() as u64);
        if self.down.contains(&port) {
            return self.lose(None, Drop::PortDown);
        }
        self.enter(now, port, bytes);
    }

    fn enter(&mut self, now: Time, port: PortNo, bytes: &[u8]) {
        if bytes.len() > MAX_PACKET_BYTES {
            return self.lose(None, Drop::TooLong);
        }
        let Some(slot) = self.slot() else { return };
        let Some(loaded) = &self.loaded else { return };
        let program = &*loaded.program;
        let held = &mut self.slots[slot as usize];
        held.length = bytes.len() as u32;
        held.passes = 0;
        held.packet.load(program, bytes);
        let (phv, at) = (&mut held.packet.phv, &program.intrinsic);
        phv.set(at.ingress_port, port.0.into());
        phv.set(at.packet_length, bytes.len() as u64);
        phv.set(at.ingress_global_timestamp, self.config.clock.local_us(now));
        let length = bytes.len();
        self.note(slot, || Kind::Received { port: port.0, length, bytes: hex(bytes) });
        self.ingress(now, slot);
        self.drain_input(now);
    }

    /// A free slot; counts the loss if there is none.
    fn slot(&mut self) -> Option<u32> {
        let Some(loaded) = &self.loaded else {
            self.lose(None, Drop::NoProgram);
            return None;
        };
        let slot = if let Some(slot) = self.free.pop() {
            slot
        } else if self.slots.len() >= MAX_PACKETS {
            self.lose(None, Drop::NoBuffer);
            return None;
        } else {
            let packet = Packet::new(&loaded.program, self.config.drop_port.0);
            self.slots.push(Held { packet, length: 0, passes: 0 });
            (self.slots.len() - 1) as u32
        };
        if let Some(trace) = &mut self.trace {
            trace.born(slot);
        }
        Some(slot)
    }

    fn drop(&mut self, slot: u32, reason: Drop) {
        self.lose(Some(slot), reason);
        self.free.push(slot);
    }

    fn drain_input(&mut self, now: Time) {
        while let Some(slot) = self.input.pop_front() {
            self.ingress(now, slot);
        }
    }

    /// Parser, ingress, and what ingress decided.
    fn ingress(&mut self, now: Time, slot: u32) {
        let Some(loaded) = &mut self.loaded else { return };
        let Loaded { program, control } = &mut **loaded;
        let held = &mut self.slots[slot as usize];
        let now_us = self.config.clock.local_us(now);
        let facts = Facts { now_us, length: held.length };
        if let Some(trace) = &mut self.trace {
            let instance_type = held.packet.phv.get(program.intrinsic.instance_type);
            trace.note(slot, Kind::Ingress { instance_type });
        }
        let memory = &mut control.memory;
        watched!(&mut self.trace, slot, memory, |s| held.packet.parse(program, s, facts));
        if held.packet.phv.get(program.intrinsic.parser_error) != 0 {
            self.stats.parser_errors += 1;
        }
        let memory = &mut control.memory;
        watched!(&mut self.trace, slot, memory, |s| held.packet.run(program, 0, s, facts));
        self.stats.collect(&mut held.packet.faults);
        let asks = held.packet.asks;
        held.packet.asks = Asks { truncate: asks.truncate, ..Asks::default() };
        let at = &program.intrinsic;
        let (spec, group) =
            (held.packet.phv.get(at.egress_spec), held.packet.phv.get(at.mcast_grp));
        if let Some(clone) = asks.clone {
            self.clone_ingress(now, slot, clone);
        }
        if let Some(list) = asks.digest {
            self.digest(now, slot, list);
        }
        if let Some(list) = asks.resubmit {
            return self.resubmit(slot, list);
        }
        if group != 0 {
            return self.multicast(now, slot, group);
        }
        if spec == u64::from(self.config.drop_port.0) {
            return self.drop(slot, Drop::Ingress);
        }
        self.set(slot, |at| at.instance_type, instance::NORMAL);
        self.enqueue(now, slot, PortNo(spec as u16));
    }

    fn set(
        &mut self,
        slot: u32,
        field: impl Fn(&crate::switch::program::Intrinsic) -> crate::switch::phv::FieldRef,
        value: u64,
    ) {
        if let Some(loaded) = &self.loaded {
            let field = field(&loaded.program.intrinsic);
            self.slots[slot as usize].packet.phv.set(field, value);
        }
    }

    /// Puts a packet into the queue that its priority names, with the metadata of that moment.
    fn enqueue(&mut self, now: Time, slot: u32, port: PortNo) {
        let Some(loaded) = &self.loaded else { return };
        let at = &loaded.program.intrinsic;
        let held = &mut self.slots[slot as usize];
        let queue = held.packet.phv.get(at.priority);
        let length = held.length;
        match self.traffic.admit(port, queue, length) {
            Ok(number) => {
                let depth = self.traffic.depth(port, number);
                held.packet.phv.set(at.enq_timestamp, self.config.clock.local_us(now));
                held.packet.phv.set(at.enq_qdepth, depth.into());
                self.stats.depth(port, number, depth + 1);
                self.note(slot, || Kind::Queued { port: port.0, queue: number, depth });
                if let Err((reject, slot)) = self.traffic.enqueue(now, port, queue, length, slot) {
                    self.drop(slot, reject.into());
                }
            }
            Err(crate::switch::traffic::Reject::Full) => {
                self.stats.full(port, queue as u8, length.into());
                self.note(slot, || dropped(Drop::QueueFull));
                self.free.push(slot);
            }
            Err(reject) => self.drop(slot, reject.into()),
        }
    }

    /// When the switch next wants [`Switch::advance`]; `None` when nothing waits.
    #[must_use]
    pub fn poll_at(&self) -> Option<Time> {
        let digests = self.loaded.as_ref().and_then(|loaded| loaded.control.digests_due());
        [self.traffic.next(), digests, self.sweep_at].into_iter().flatten().min()
    }

    /// Runs egress for every packet whose turn has come by `now` and hands out what is sent. Packets for the CPU port
    /// go to the outbox instead.
    pub fn advance(&mut self, now: Time, out: &mut dyn FnMut(Sent<'_>)) {
        self.advance_into(now, &mut |sent| {
            out(sent);
            Taken::More
        });
    }

    /// As [`Switch::advance`], for ports that may be full: `out` says what became of each packet. What waits for a full
    /// port waits in its queues.
    pub fn advance_into(&mut self, now: Time, out: &mut dyn FnMut(Sent<'_>) -> Taken) {
        while let Some(next) = self.traffic.dequeue(now) {
            let start = next.start;
            self.egress(next, out);
            self.drain_input(start);
        }
        let local_ns = self.config.clock.local_ns(now);
        if let Some(loaded) = &mut self.loaded {
            loaded.control.send_digests(now, local_ns, &mut self.outbox);
            if self.sweep_at.is_some_and(|at| at <= now) {
                loaded.control.sweep(local_ns, &mut self.outbox);
                self.sweep_at = Some(now + SWEEP);
            }
        }
    }

    fn egress(&mut self, next: Dequeued<u32>, out: &mut dyn FnMut(Sent<'_>) -> Taken) {
        let Some(loaded) = &mut self.loaded else { return };
        let Loaded { program, control } = &mut **loaded;
        let (slot, now_us) = (next.item, self.config.clock.local_us(next.start));
        let held = &mut self.slots[slot as usize];
        let facts = Facts { now_us, length: held.length };
        let length = copies::wire_length(program, &held.packet);
        let (phv, at) = (&mut held.packet.phv, &program.intrinsic);
        phv.set(at.egress_global_timestamp, now_us);
        phv.set(at.deq_timedelta, now_us.wrapping_sub(phv.get(at.enq_timestamp)) & 0xffff_ffff);
        phv.set(at.deq_qdepth, next.left.into());
        phv.set(at.qid, next.queue.into());
        phv.set(at.egress_port, next.port.0.into());
        phv.set(at.egress_spec, u64::from(self.config.drop_port.0) + 1);
        phv.set(at.packet_length, length);
        if let Some(trace) = &mut self.trace {
            let waited_us = phv.get(at.deq_timedelta);
            let (port, queue, left) = (next.port.0, next.queue, next.left);
            trace.note(slot, Kind::Egress { port, queue, waited_us, left });
        }
        let memory = &mut control.memory;
        watched!(&mut self.trace, slot, memory, |s| held.packet.run(program, 1, s, facts));
        let asks = held.packet.asks;
        let spec = held.packet.phv.get(at.egress_spec);
        self.stats.collect(&mut held.packet.faults);
        if let Some(clone) = asks.clone {
            self.clone_egress(next.start, slot, clone);
        }
        if spec == u64::from(self.config.drop_port.0) {
            return self.drop(slot, Drop::Egress);
        }
        let Some(loaded) = &mut self.loaded else { return };
        let Loaded { program, control } = &mut **loaded;
        let held = &mut self.slots[slot as usize];
        self.deparsed.clear();
        let (memory, out_bytes) = (&mut control.memory, &mut self.deparsed);
        watched!(&mut self.trace, slot, memory, |s| held
            .packet
            .deparse(program, s, facts, out_bytes));
        if let Some(list) = asks.recirculate {
            return self.recirculate(slot, list);
        }
        self.transmit(&next, out);
    }

    fn transmit(&mut self, next: &Dequeued<u32>, out: &mut dyn FnMut(Sent<'_>) -> Taken) {
        let bytes = &self.deparsed;
        let length = bytes.len() as u64;
        let end = self.traffic.transmitted(next.port, next.start, length);
        let mut lost = None;
        if let Some(trace) = &mut self.trace {
            let (port, length, bytes) = (next.port.0, bytes.len(), hex(bytes));
            let to_controller = next.port == self.config.cpu_port;
            let out = Kind::Sent { port, length, bytes: bytes.clone() };
            let packet_in = Kind::PacketIn { length, bytes };
            trace.note(next.item, if to_controller { packet_in } else { out });
        }
        if next.port == self.config.cpu_port {
            if self.outbox.len() >= MAX_OUTBOX {
                self.stats.drop(Drop::OutboxFull);
            } else if let Some(loaded) = &self.loaded {
                self.stats.packet_ins += 1;
                self.outbox.push(loaded.control.packet_in(bytes));
            }
        } else {
            let Dequeued { port, queue, enqueued, start, .. } = *next;
            match out(Sent { port, queue, enqueued, bytes, start, end }) {
                Taken::More => {}
                Taken::Full => self.traffic.hold(port),
                Taken::Lost(reason) => lost = Some(reason),
            }
        }
        match lost {
            None => self.stats.sent(next.port, next.queue, length),
            Some(reason) => self.stats.drop(reason),
        }
        self.free.push(next.item);
    }

    /// Lets a port that said [`Taken::Full`] serve again. Changes nothing at another.
    pub fn release(&mut self, now: Time, port: PortNo) {
        self.traffic.release(now, port);
    }

    /// Counts a packet that was lost outside, before it came in or after it was handed out.
    pub fn lost_outside(&mut self, reason: Drop) {
        self.stats.drop(reason);
    }

    /// Sets a port up or down, and its shaper in bits per second (`None` = unshaped). Ports start up and unshaped. A
    /// port that goes down loses what its queues hold.
    pub fn set_port(&mut self, port: PortNo, up: bool, rate: Option<BitRate>) {
        let (stats, free) = (&mut self.stats, &mut self.free);
        self.traffic.set_port(port, up, rate, &mut |_, slot| {
            stats.drop(Drop::PortDown);
            free.push(slot);
        });
        if up {
            self.down.remove(&port);
        } else {
            self.down.insert(port);
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.control.memory.set_port(port, up);
        }
    }

    fn compile(
        &self,
        config: &ForwardingPipelineConfig,
    ) -> Result<(Program, Index, Names), Refusal> {
        let bad = |text: String| Refusal::new(Code::InvalidArgument, text);
        let Some(info) = &config.p4info else {
            return Err(bad("the pipeline config has no P4Info".to_owned()));
        };
        let index = Index::new(info.clone()).map_err(|error| bad(error.to_string()))?;
        let program = load::load(&config.p4_device_config);
        let program = program.map_err(|error| bad(format!("device config: {error}")))?;
        let names = Names::new(&index, &program).map_err(|error| bad(error.to_string()))?;
        Ok((program, index, names))
    }

    fn ready(&self) -> Result<&Loaded, Refusal> {
        let text = "the switch has no program; set a forwarding pipeline config first";
        self.loaded.as_deref().ok_or_else(|| Refusal::new(Code::FailedPrecondition, text))
    }
}

impl Device for Switch {
    fn device_id(&self) -> u64 {
        self.config.device_id
    }

    fn verify_pipeline(&self, config: &ForwardingPipelineConfig) -> Result<(), Refusal> {
        self.compile(config).map(|_| ())
    }

    fn load_pipeline(
        &mut self,
        _now: Time,
        config: &ForwardingPipelineConfig,
    ) -> Result<(), Refusal> {
        let (program, index, names) = self.compile(config)?;
        self.start(Arc::new(program), Arc::new(index), names);
        Ok(())
    }

    fn blank(&self) -> Self {
        Self::new(self.config.clone())
    }

    fn write(&mut self, now: Time, update: &Update) -> Result<(), Refusal> {
        self.ready()?;
        let Some(loaded) = &mut self.loaded else { return Ok(()) };
        loaded.control.write(self.config.clock.local_us(now), update)?;
        if loaded.control.ages() {
            self.sweep_at.get_or_insert(now + SWEEP);
        } else {
            self.sweep_at = None;
        }
        Ok(())
    }

    fn read(
        &self,
        now: Time,
        entity: &Entity,
        emit: &mut dyn FnMut(Entity),
    ) -> Result<(), Refusal> {
        let now_us = self.config.clock.local_us(now);
        self.ready()?.control.read(now_us, entity, emit)
    }

    fn packet_out(&mut self, now: Time, packet: &PacketOut) -> Result<(), Refusal> {
        let bytes = self.ready()?.control.packet_out(packet);
        if bytes.len() > MAX_PACKET_BYTES {
            let text = format!("the packet has {} bytes, at most {MAX_PACKET_BYTES}", bytes.len());
            return Err(Refusal::new(Code::InvalidArgument, text));
        }
        let port = self.config.cpu_port;
        self.stats.received(port, bytes.len() as u64);
        self.enter(now, port, &bytes);
        Ok(())
    }

    fn digest_ack(&mut self, _now: Time, ack: &DigestListAck) {
        if let Some(loaded) = &mut self.loaded {
            loaded.control.acknowledge(ack);
        }
    }

    fn take_outbox(&mut self) -> Vec<StreamMessageResponse> {
        std::mem::take(&mut self.outbox)
    }

    fn checkpoint(&self) -> Box<dyn Any + Send> {
        Box::new(self.loaded.as_ref().map(|loaded| loaded.control.clone()))
    }

    fn restore(&mut self, checkpoint: Box<dyn Any + Send>) {
        let Ok(control) = checkpoint.downcast::<Option<Control>>() else { return };
        if let (Some(control), Some(loaded)) = (*control, &mut self.loaded)
            && Arc::ptr_eq(control.memory.program(), &loaded.program)
        {
            loaded.control = control;
        }
    }
}
