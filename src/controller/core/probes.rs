//! The controller looks at the cables itself: a probe per direction of every cable between switches and interval.
//!
//! In: a timer; packet-ins. Out: probes; links that are dead, back, or lead elsewhere than the cabling says; switches that have restarted. Must
//! not plan.
//!
//! **When silence counts.** A direction is judged when both its ends are ready (programmed, the receiving port known as one of the fabric)
//! *and* have shown that they can do this: some probe of the sender was heard, and some probe was heard at the receiver. So a fabric whose
//! switches take no packet-outs, or have no cables at all, keeps its links, and so does a controller that starts. While a port is
//! reported down its silence means nothing: port events are faster where switches tell them, in both directions.
//!
//! **Bursts.** BMv2 holds 64 packets for its CPU port. The interval is cut into slots, and the probes that end at one switch are spread over
//! them.

mod line;

use super::super::config::ProbeConfig;
use super::super::messages::{Event, Output, TimerKey};
use super::Core;
use super::switch::Phase;
use crate::id::{LinkId, PortNo, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::pipeline::probe::{Heard, Probe, ProbeKey};
use crate::time::Span;
use crate::topology::Topology;
use line::{Line, Verdict};
use std::collections::BTreeMap;

/// Parts of an interval.
const SLOTS: usize = 10;
/// The shortest interval: a switch in software needs milliseconds for a packet when it is busy, and three must be missed.
pub const INTERVAL_FLOOR: Span = Span::from_millis(10);

/// What became of probes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCounts {
    /// Sent.
    pub sent: u64,
    /// Heard where they should be, in time.
    pub heard: u64,
    /// Of those that counted, never heard.
    pub lost: u64,
    /// Heard at a wrong port.
    pub astray: u64,
    /// Not made by this controller, or damaged: dropped.
    pub forged: u64,
    /// Copies and latecomers: dropped.
    pub stale: u64,
}

/// What the core knows from probes.
pub(super) struct Prober {
    pub(super) key: ProbeKey,
    /// The interval in effect, if probes are sent.
    pub(super) interval: Option<Span>,
    /// Directions between switches by id.
    lines: BTreeMap<LinkId, Line>,
    /// Which of them have their turn together.
    pub(super) slots: Vec<Vec<LinkId>>,
    /// The link out of each port.
    ports: BTreeMap<(u32, PortNo), LinkId>,
    turn: usize,
    armed: bool,
    /// A probe of this switch was heard somewhere.
    speaks: Vec<bool>,
    /// A probe was heard here.
    hears: Vec<bool>,
    /// Stamps of switches after which they were read, so that one that always stamps something else is not read for ever.
    stamps: Vec<(u32, u32)>,
    counts: ProbeCounts,
}

impl Prober {
    pub(super) fn new(topology: &Topology, config: &ProbeConfig) -> Self {
        let inner: Vec<LinkId> = (0..topology.links().len())
            .map(LinkId::from)
            .filter(|l| topology.is_inner(*l))
            .collect();
        let interval = config.interval.map(|asked| {
            // All probes of one interval within the budget.
            let needed = inner.len() as u64 * 1_000_000_000 / u64::from(config.budget.max(1));
            asked.max(INTERVAL_FLOOR).max(Span(needed))
        });
        let mut by_end: BTreeMap<SwitchId, Vec<LinkId>> = BTreeMap::new();
        for link in &inner {
            if let Some(end) = topology.as_switch(topology.link(*link).to) {
                by_end.entry(end).or_default().push(*link);
            }
        }
        let mut slots = vec![Vec::new(); SLOTS];
        for (end, links) in by_end {
            for (at, link) in links.iter().enumerate() {
                // Evenly over the interval, and each switch's first in another slot.
                slots[(at * SLOTS / links.len() + end.index()) % SLOTS].push(*link);
            }
        }
        let port =
            |link: &LinkId| ((topology.link(*link).from.0, topology.link(*link).from_port), *link);
        let switches = topology.switch_count();
        Self {
            key: ProbeKey::default(),
            interval,
            ports: inner.iter().map(port).collect(),
            lines: inner.into_iter().map(|link| (link, Line::default())).collect(),
            slots,
            turn: 0,
            armed: false,
            speaks: vec![false; switches],
            hears: vec![false; switches],
            stamps: vec![(0, 0); switches],
            counts: ProbeCounts::default(),
        }
    }
}

impl Core {
    /// What became of probes so far.
    #[must_use]
    pub fn probe_counts(&self) -> ProbeCounts {
        let lost = self.prober.lines.values().map(|line| line.lost).sum();
        ProbeCounts { lost, ..self.prober.counts }
    }

    /// Time between two probes of one link; `None` if none are sent.
    #[must_use]
    pub const fn probe_interval(&self) -> Option<Span> {
        self.prober.interval
    }

    /// Directions between switches that may be used, and those that may not.
    #[must_use]
    pub fn inner_links(&self) -> (usize, usize) {
        let dead = |link: &&LinkId| self.ground.down.contains(**link);
        let down = self.prober.lines.keys().filter(dead).count();
        (self.prober.lines.len() - down, down)
    }

    /// At the end of every step: keeps the timer going.
    pub(super) fn watch_probes(&mut self) {
        if let (Some(interval), false) = (self.prober.interval, self.prober.armed) {
            self.prober.armed = true;
            self.set_timer(Span(interval.0 / SLOTS as u64), TimerKey::Probes);
        }
    }

    /// The next slot's probes.
    pub(super) fn send_probes(&mut self) {
        self.prober.armed = false;
        self.prober.turn = (self.prober.turn + 1) % SLOTS;
        let links = self.prober.slots[self.prober.turn].clone();
        let mut messages: BTreeMap<SwitchId, Vec<proto::StreamMessageRequest>> = BTreeMap::new();
        for link in links {
            let Some((from, to)) = self.ends(link) else { continue };
            if !self.carries_probes(link, from, to) {
                self.prober.lines.entry(link).or_default().pause();
                continue;
            }
            let judged = self.prober.speaks[from.index()] && self.prober.hears[to.index()];
            let line = self.prober.lines.entry(link).or_default();
            if !judged {
                line.pause();
            }
            let (counter, verdict) = line.send();
            self.prober.counts.sent += 1;
            let probe = Probe {
                switch: from.0,
                port: self.config.topology.link(link).from_port,
                incarnation: self.switches[from.index()].incarnation,
                counter,
            };
            let message = self.config.program.probes.packet_out(&self.prober.key, probe);
            messages.entry(from).or_default().push(message);
            self.judged(link, verdict);
        }
        for (switch, messages) in messages {
            let stream = self.switches[switch.index()].stream;
            self.emit(Output::Send { switch, stream, messages });
        }
    }

    fn ends(&self, link: LinkId) -> Option<(SwitchId, SwitchId)> {
        let (topology, link) = (&self.config.topology, self.config.topology.link(link));
        Some((topology.as_switch(link.from)?, topology.as_switch(link.to)?))
    }

    /// Whether a probe would be sent on, and told of where it comes out.
    fn carries_probes(&self, link: LinkId, from: SwitchId, to: SwitchId) -> bool {
        let port = self.config.topology.link(link).to_port;
        let (from, to) = (&self.switches[from.index()], &self.switches[to.index()]);
        !self.ports_down(link)
            && from.phase == Phase::Active
            && from.incarnation != 0
            && to.incarnation != 0
            && self.config.program.fabric_port(port).is_some_and(|key| to.holds(&key))
    }

    /// A packet-in, which may be a probe.
    pub(super) fn probe_heard(&mut self, id: SwitchId, packet: &proto::PacketIn) {
        if self.prober.interval.is_none() {
            return;
        }
        match self.config.program.probes.heard(&self.prober.key, packet) {
            None => {}
            Some(Err(_)) => self.prober.counts.forged += 1,
            Some(Ok(heard)) => self.genuine(id, heard),
        }
    }

    fn genuine(&mut self, id: SwitchId, heard: Heard) {
        let Heard { probe, ingress, .. } = heard;
        // The key is ours, so the fabric has such a port.
        let Some(&link) = self.prober.ports.get(&(probe.switch, probe.port)) else { return };
        let Some((from, to)) = self.ends(link) else { return };
        let right = to == id && self.config.topology.link(link).to_port == ingress;
        let line = self.prober.lines.entry(link).or_default();
        let before = line.stray;
        let verdict = match right {
            true => line.hear(probe.counter),
            false => line.hear_astray(probe.counter, (id, ingress)),
        };
        if verdict == Verdict::Stale {
            self.prober.counts.stale += 1;
            return;
        }
        self.prober.speaks[from.index()] = true;
        self.prober.hears[id.index()] = true;
        let count =
            if right { &mut self.prober.counts.heard } else { &mut self.prober.counts.astray };
        *count += 1;
        if !right && before != Some((id, ingress)) {
            let expected = self.port_name(to, self.config.topology.link(link).to_port);
            let found = self.port_name(id, ingress);
            self.notify(Event::Miswired { link, expected, found });
        }
        self.judged(link, verdict);
        self.check_stamp(from, heard.sent_incarnation);
        self.check_stamp(id, heard.incarnation);
    }

    fn port_name(&self, switch: SwitchId, port: PortNo) -> String {
        let topology = &self.config.topology;
        format!("{} port {}", topology.node(topology.switch_node(switch)).name, port.0)
    }

    fn judged(&mut self, link: LinkId, verdict: Verdict) {
        match verdict {
            Verdict::Same | Verdict::Stale => {}
            Verdict::Up => {
                self.silent_link(link, false);
                self.notify(Event::LinkBack { link });
            }
            Verdict::Down => {
                self.silent_link(link, true);
                let needed = self.prober.lines.get(&link).map_or(0, Line::needed);
                self.notify(Event::LinkDead { link, needed });
            }
        }
    }

    /// A switch stamps its incarnation on every probe: another than it was given says that it has restarted, and whatever it holds is
    /// looked at.
    fn check_stamp(&mut self, id: SwitchId, stamp: u32) {
        let switch = &mut self.switches[id.index()];
        let pair = (switch.incarnation, stamp);
        // A switch that is being programmed stamps the old one for a moment.
        let settled = switch.phase == Phase::Active && switch.synced && switch.incarnation != 0;
        if stamp == switch.incarnation || !settled || self.prober.stamps[id.index()] == pair {
            return;
        }
        self.prober.stamps[id.index()] = pair;
        switch.resync = true;
        switch.pump = true;
    }
}
