//! The network's state and its event handlers for switches and links; hosts and jobs are the parts.
//!
//! In: events. Out: more events, counts. Must not know what a forwarder does inside.

mod background;
mod build;
mod hosts;
mod jobs;

pub use background::Offer;
pub use build::Setup;

use super::link::End;
use super::pool::Pool;
use super::{Forwarder, Link, NetEvent, Traffic};
use crate::id::{HostId, JobId, LinkId, SwitchId};
use crate::sim::host::{Nic, Receiver, Sender, Template, Transport};
use crate::sim::queue::Queue;
use crate::sim::ring::{Coupling, JobRun};
use crate::sim::trace::NetTrace;
use crate::time::{Span, Time};
use rand_pcg::Pcg64;
use rustc_hash::FxHashMap;
use std::net::Ipv4Addr;

/// No link behind a port.
const NO_LINK: u32 = u32::MAX;

/// The packet network over switches of type `F`.
pub struct Net<F> {
    switches: Vec<SwitchState<F>>,
    links: Vec<Link>,
    hosts: Vec<HostState>,
    flows: Vec<FlowState>,
    jobs: Vec<JobState>,
    pool: Pool,
    transport: Transport,
    coupling: Coupling,
    /// (host, queue pair) to flow, for frames that arrive at a host.
    queue_pairs: FxHashMap<(u32, u32), u32>,
    traffic: Traffic,
    finished: Vec<JobId>,
    iterated: Vec<JobId>,
    background: Vec<background::Source>,
    speakers: Vec<SwitchId>,
    errors: Option<LinkErrors>,
    tap: Option<Tap>,
    /// Kept only for runs that are reported.
    trace: Option<Box<NetTrace>>,
    digest: u64,
}

/// Where a tap sees a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A switch begins to send it over the link.
    Leaves,
    /// It has come over the link to a switch.
    Arrives,
}

/// Sees every frame that a switch receives or sends: when, over which link, its bytes.
pub type Tap = Box<dyn FnMut(Time, LinkId, Passage, &[u8]) + Send>;

struct SwitchState<F> {
    forwarder: F,
    /// Link out of each port, `NO_LINK` if none.
    out: Vec<u32>,
    /// Time of the poll event that counts; earlier ones pushed and superseded are ignored.
    poll_at: Time,
}

struct HostState {
    address: Ipv4Addr,
    uplink: u32,
    nic: Nic,
    /// Its interface is silent for good.
    failed: bool,
    /// Share of its computing speed.
    pace: f64,
}

struct FlowState {
    src: u32,
    dst: u32,
    job: u32,
    /// The ring's edge into the sender, and out of the receiver.
    before: u32,
    after: u32,
    sender: Sender,
    receiver: Receiver,
    data: Template,
    back: Template,
    /// Packets per iteration and payload of the last one.
    packets: u64,
    last_payload: u32,
    /// Packet numbers of the current iteration.
    base: u64,
    end: u64,
    /// Stands in line at its host.
    /// Queue at the sending interface.
    class: u8,
    sender_lined_up: bool,
    receiver_lined_up: bool,
    sender_timer: bool,
    receiver_timer: bool,
    reordered: u64,
    /// When the iteration's communication began; how long it took, and how often, from the second iteration on.
    begun: Time,
    took: Span,
    completed: u32,
    /// Its job goes on without it; what is still on its way counts for nothing.
    retired: bool,
}

struct JobState {
    run: JobRun,
    ranks: Vec<HostId>,
    flows: Vec<u32>,
    /// Flows whose data of this iteration is not complete yet.
    open: u32,
}

struct LinkErrors {
    /// Of a million frames so many are lost.
    per_million: u32,
    random: Pcg64,
}

impl<F: Forwarder> Net<F> {
    /// Handles one event.
    pub fn handle<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, event: NetEvent) {
        self.note(now, event);
        match event {
            NetEvent::Arrive { link, frame } => self.arrive(queue, now, link, frame),
            NetEvent::Poll(switch) => self.poll(queue, now, switch),
            NetEvent::NicFree(host) => self.nic_free(queue, now, host),
            NetEvent::SenderTimer(flow) => self.sender_timer(queue, now, flow),
            NetEvent::ReceiverTimer(flow) => self.receiver_timer(queue, now, flow),
            NetEvent::CommStart(job) => self.comm_start(queue, now, job),
            NetEvent::ComputeEnd(job) => self.compute_end(queue, now, job),
            NetEvent::Offer(source) => self.offer(queue, now, source),
        }
    }

    /// Folds an event into the digest of the run.
    fn note(&mut self, now: Time, event: NetEvent) {
        let (kind, a, b) = match event {
            NetEvent::Arrive { link, frame } => {
                // A few words of the frame stand for it: tag, queue pair and sequence number lie in its first 80 bytes.
                let bytes = self.pool.frame(frame);
                let mut sum = bytes.len() as u64;
                for word in bytes[..bytes.len().min(80)].chunks_exact(8) {
                    let word = word.try_into().map_or(0, u64::from_le_bytes);
                    sum = mix(sum, word);
                }
                (1, u64::from(link), sum)
            }
            NetEvent::Poll(switch) => (2, u64::from(switch), 0),
            NetEvent::NicFree(host) => (3, u64::from(host), 0),
            NetEvent::SenderTimer(flow) => (4, u64::from(flow), 0),
            NetEvent::ReceiverTimer(flow) => (5, u64::from(flow), 0),
            NetEvent::CommStart(job) => (6, u64::from(job), 0),
            NetEvent::ComputeEnd(job) => (7, u64::from(job), 0),
            NetEvent::Offer(source) => (8, u64::from(source), 0),
        };
        self.digest = mix(mix(mix(self.digest, now.0), kind | a << 8), b);
    }

    /// A frame reaches the end of its link.
    fn arrive<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        link: u32,
        frame: u32,
    ) {
        let state = &self.links[link as usize];
        let to = state.to;
        if !state.carries(self.pool.epoch(frame)) {
            self.traffic.link_down += 1;
        } else if self.link_error() {
            self.traffic.link_error += 1;
        } else {
            match to {
                End::Switch(switch, port) => {
                    self.traffic.switch_passes += 1;
                    if let Some(tap) = &mut self.tap {
                        tap(now, LinkId(link), Passage::Arrives, self.pool.frame(frame));
                    }
                    let next = self.switches[switch.index()].forwarder.receive(
                        now,
                        port,
                        self.pool.frame(frame),
                    );
                    self.listen(switch);
                    self.schedule_poll(queue, switch.0, next);
                }
                End::Host(host) => self.host_receive(queue, now, host.0, frame),
            }
        }
        self.pool.release(frame);
    }

    fn link_error(&mut self) -> bool {
        use rand::RngExt as _;
        match &mut self.errors {
            Some(errors) => errors.random.random_range(0..1_000_000) < errors.per_million,
            None => false,
        }
    }

    /// Asks for a poll at `next` unless an earlier one is on its way.
    fn schedule_poll<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        switch: u32,
        next: Option<Time>,
    ) {
        let state = &mut self.switches[switch as usize];
        if let Some(at) = next
            && at.max(queue.now()) < state.poll_at
        {
            state.poll_at = at.max(queue.now());
            queue.push(state.poll_at, NetEvent::Poll(switch).into());
        }
    }

    fn poll<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, switch: u32) {
        let Self { switches, links, pool, traffic, tap, trace, .. } = self;
        let state = &mut switches[switch as usize];
        if state.poll_at != now {
            return; // an earlier poll took its place and asked again
        }
        state.poll_at = Time::NEVER;
        let out = &state.out;
        let next = state.forwarder.advance(now, &mut |departure| {
            let link = out.get(usize::from(departure.port.0)).copied().unwrap_or(NO_LINK);
            let Some(target) = links.get(link as usize) else {
                traffic.unreadable += 1; // a port without a cable
                return;
            };
            if let Some(tap) = tap {
                tap(now, LinkId(link), Passage::Leaves, departure.bytes);
            }
            if let Some(trace) = trace {
                let (start, end) = (departure.start, departure.end);
                trace.load.add(link as usize, start, end, departure.bytes.len() as u64);
                trace.waits.add(departure.queue, start.since(departure.enqueued));
            }
            match pool.store(departure.bytes, target.epoch) {
                Some(frame) => {
                    let at = departure.end + target.delay;
                    queue.push(at, NetEvent::Arrive { link, frame }.into());
                }
                None => traffic.unreadable += 1,
            }
        });
        self.listen(SwitchId(switch));
        self.schedule_poll(queue, switch, next);
    }

    /// Notes a switch that has something to say.
    fn listen(&mut self, switch: SwitchId) {
        if self.switches[switch.index()].forwarder.speaks() {
            self.speakers.push(switch);
        }
    }

    /// A switch may want to run at another time than it did: something outside the network's events touched it.
    pub fn touched<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, switch: SwitchId) {
        let next = self.switches[switch.index()].forwarder.poll_at();
        self.schedule_poll(queue, switch.0, next);
    }

    /// Takes a link up or down, at a share of its nominal rate (at least 1 bit/s).
    pub fn set_link<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        link: LinkId,
        (up, share): (bool, f64),
    ) {
        let state = &mut self.links[link.index()];
        state.set_up(up);
        let rate = (state.nominal.0 as f64 * share.clamp(0.0, 1.0)) as u64;
        state.rate = crate::units::BitRate(rate.max(1));
        if let End::Switch(switch, port) = state.from {
            let rate = state.rate;
            let forwarder = &mut self.switches[switch.index()].forwarder;
            let next = forwarder.set_port(now, port, up, Some(rate));
            self.schedule_poll(queue, switch.0, next);
        }
    }

    /// Loses so many of a million frames on every link, drawn from `random`.
    pub fn set_link_errors(&mut self, per_million: u32, random: Pcg64) {
        self.errors = Some(LinkErrors { per_million, random });
    }

    /// Shows every frame at every switch to `tap`.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }

    /// From now on keeps what a report shows, for switches with so many queues per port.
    pub fn record(&mut self, queues: u8) {
        self.trace = Some(Box::new(NetTrace::new(self.links.len(), queues)));
    }

    /// What was recorded so far, if anything is.
    pub fn trace_mut(&mut self) -> Option<&mut NetTrace> {
        self.trace.as_deref_mut()
    }

    /// One switch.
    #[must_use]
    pub fn forwarder(&self, switch: SwitchId) -> &F {
        &self.switches[switch.index()].forwarder
    }

    /// One switch, to change; call [`Net::touched`] afterwards.
    pub fn forwarder_mut(&mut self, switch: SwitchId) -> &mut F {
        &mut self.switches[switch.index()].forwarder
    }

    /// Packet counts so far; repetitions and time-outs are summed over the senders.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let mut traffic = self.traffic;
        traffic.repeated = self.flows.iter().map(|flow| flow.sender.repeats()).sum();
        traffic.timeouts = self.flows.iter().map(|flow| flow.sender.timeouts()).sum();
        traffic
    }

    /// Whether a job has finished since the last [`Net::take_finished`].
    #[must_use]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// A switch that has something to say to its controller, each once per occasion.
    pub fn take_speaker(&mut self) -> Option<SwitchId> {
        self.speakers.pop()
    }

    /// A switch has restarted: its ports are set up again as its links are.
    pub fn rewire<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, switch: SwitchId) {
        let Self { switches, links, .. } = self;
        let state = &mut switches[switch.index()];
        for link in links.iter() {
            if let End::Switch(from, port) = link.from
                && from == switch
            {
                state.forwarder.set_port(now, port, link.up, Some(link.rate));
            }
        }
        // What it held is lost, so is the time at which it wanted to send it.
        state.poll_at = Time::NEVER;
        self.touched(queue, switch);
    }

    /// The same over all flows.
    #[must_use]
    pub fn reordered_total(&self) -> u64 {
        self.traffic.reordered
    }

    /// Packets of a flow that arrived behind a later one and had been sent once.
    #[must_use]
    pub fn reordered(&self, flow: crate::id::FlowId) -> u64 {
        self.flows[flow.index()].reordered
    }

    /// Jobs that finished since the last call.
    pub fn take_finished(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.finished)
    }

    /// One job's iterations.
    #[must_use]
    pub fn job(&self, job: JobId) -> &JobRun {
        &self.jobs[job.index()].run
    }

    /// Hash over every event so far with its time and what it carried.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Whether no frame is on a link and no switch holds one.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.pool.in_use() == 0 && self.switches.iter().all(|switch| switch.poll_at == Time::NEVER)
    }

    /// Host behind an id, for messages.
    #[must_use]
    pub fn host_address(&self, host: HostId) -> Ipv4Addr {
        self.hosts[host.index()].address
    }

    /// Link state.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }
}

/// One step of a hash in which every bit of the input reaches every bit of the output after two steps.
fn mix(state: u64, word: u64) -> u64 {
    (state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests;
