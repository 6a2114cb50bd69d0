//! The controller reads the fabric: once per interval, every tracked flow at its sink leaf.
//!
//! In: the interval's timer, readout replies, answers to register reads. Out: advances and reads; after each closed
//! interval one call of [`Core::observed`]. Must not judge what it reads: [`Telemetry`] says what is believed.
//!
//! ```text
//!  timer ─► what is left of the last interval is missing ─► observed
//!    └────► every sink leaf: advance ─answered at the first try─► read each slot of the closed interval ─► all in: observed
//!                               └─ otherwise: nobody knows when the interval began or ended there, it is missing
//! ```
//!
//! The copy of a closed interval stays untouched until the leaf is two intervals further, so a slow answer is still right
//! and a second reading gives the same. Numbers at a leaf only go up by one; after an advance of which nobody knows
//! whether it was executed by two, so that the copy that may or may not be closed is never read.

mod exchange;
mod leaf;

use super::super::config::{TelemetryConfig, TelemetryWay};
use super::super::messages::{Event, RequestId, TimerKey};
use super::switch::{Call, Phase};
use super::{Core, CoreError};
use crate::id::{FlowId, SwitchId};
use crate::pipeline::slots::UNTRACKED;
use crate::telemetry::{Missing, Rules, Telemetry, Tenure};
use crate::time::Span;
use crate::topology::Topology;
use crate::units::BitRate;
use leaf::{Leaf, Way};
use std::collections::BTreeMap;

/// The shortest interval: below, the exchange with a leaf takes a good part of it.
const INTERVAL_FLOOR: Span = Span::from_millis(1);
/// Of the reads that a rate cap allows, one in so many is left for repetitions.
const SPARE: u32 = 8;

/// What the core knows of the fabric's telemetry.
pub(super) struct Collector {
    pub(super) telemetry: Telemetry,
    leaves: Vec<Leaf>,
    /// The interval in effect: the configured one, or longer where the rate cap asks for it.
    interval: Span,
    /// The longest that cannot wrap.
    longest: Span,
    /// Number of the running interval; 0 before the first.
    running: u32,
    armed: bool,
    /// The closed interval whose samples are not all in.
    collecting: Option<u32>,
    /// Samples and missing ones before it.
    before: (u64, u64),
    /// Numbers readout requests.
    counter: u32,
    intervals: u64,
}

/// The fastest link of a fabric, in bits per second at full size.
fn port_rate(topology: &Topology) -> BitRate {
    topology.links().iter().map(|link| link.rate).max().unwrap_or_default()
}

/// The longest interval in which half of a 32-bit byte cell is filled at the port's rate.
fn longest(topology: &Topology, scale: f64) -> Span {
    let rate = port_rate(topology).0 as f64 / scale;
    Span::from_secs_f64(2_f64.powi(32) * 8.0 / (2.0 * rate.max(1.0)))
}

impl Collector {
    pub(super) fn new(topology: &Topology, config: &TelemetryConfig) -> Result<Self, CoreError> {
        let scale = if config.scale.is_finite() { config.scale.max(1.0) } else { 1.0 };
        let longest = longest(topology, scale);
        if config.way != TelemetryWay::Off
            && (config.interval < INTERVAL_FLOOR || config.interval > longest)
        {
            return Err(CoreError::TelemetryInterval {
                given: config.interval,
                least: INTERVAL_FLOOR,
                most: longest,
                rate: port_rate(topology),
            });
        }
        let mut leaves = vec![Leaf::default(); topology.switch_count()];
        for host in topology.hosts() {
            leaves[topology.leaf_of(host).index()].has_hosts = true;
        }
        Ok(Self {
            telemetry: Telemetry::new(Rules { scale, port_rate: port_rate(topology) }),
            leaves,
            interval: config.interval,
            longest,
            running: 0,
            armed: false,
            collecting: None,
            before: (0, 0),
            counter: 0,
            intervals: 0,
        })
    }

    fn leaf(&mut self, id: SwitchId) -> &mut Leaf {
        &mut self.leaves[id.index()]
    }

    /// Notes that flows have no sample of the interval that is being collected.
    fn miss(&mut self, flows: &[(FlowId, u16)], reason: Missing) {
        if let Some(number) = self.collecting {
            for (flow, _) in flows {
                self.telemetry.miss(*flow, number, reason);
            }
        }
    }
}

impl Core {
    /// Windows of closed intervals per flow, and what was dropped or is missing.
    #[must_use]
    pub const fn telemetry(&self) -> &Telemetry {
        &self.collector.telemetry
    }

    /// Intervals observed so far, complete or not.
    #[must_use]
    pub const fn intervals(&self) -> u64 {
        self.collector.intervals
    }

    /// Whether a call in flight is one of telemetry.
    #[must_use]
    pub fn is_reading(&self, switch: SwitchId, request: RequestId) -> bool {
        let call = self.switches.get(switch.index()).and_then(|s| s.calls.get(&request));
        matches!(call, Some(Call::Telemetry))
    }

    /// The interval that runs at a leaf, in the leaf's own numbers, as far as is known.
    #[must_use]
    pub fn interval_at(&self, leaf: SwitchId) -> Option<u32> {
        self.collector.leaves.get(leaf.index()).map(|leaf| leaf.number)
    }

    /// Leaves that are read by readout packets, and by RegisterEntry.
    #[must_use]
    pub fn telemetry_leaves(&self) -> (usize, usize) {
        let count = |way| self.collector.leaves.iter().filter(|leaf| leaf.used == way).count();
        (count(Some(Way::Readout)), count(Some(Way::Register)))
    }

    const fn reads(&self) -> bool {
        !matches!(self.config.telemetry.way, TelemetryWay::Off)
    }

    /// Flows of an earlier run of the controller: packets of theirs may have come before.
    pub(super) fn resume_telemetry(&mut self) {
        if self.reads() {
            for (flow, tenure, _) in self.tracked() {
                self.collector.telemetry.resume(flow, tenure);
            }
        }
    }

    /// At the end of every step: keeps the timer going while there is something to read, and finds out how.
    pub(super) fn watch_telemetry(&mut self) {
        if !self.reads() || self.states.is_empty() {
            return;
        }
        if !self.collector.armed {
            self.collector.armed = true;
            self.set_timer(self.collector.interval, TimerKey::Telemetry);
        }
        for index in 0..self.switches.len() {
            let leaf = &self.collector.leaves[index];
            if leaf.has_hosts && leaf.way.is_none() && self.switches[index].phase == Phase::Active {
                self.choose_way(SwitchId::from(index));
            }
        }
    }

    /// Flows with a telemetry slot, what their samples must have, and where.
    fn tracked(&self) -> Vec<(FlowId, Tenure, SwitchId)> {
        let states = self.states.values().filter(|state| !state.leaving);
        let legs = states.map(|state| (state.flow, state.legs[0]));
        let tracked = legs.filter(|(_, leg)| leg.sink_slot.index != UNTRACKED);
        tracked
            .map(|(flow, leg)| {
                let incarnation = self.switches[leg.sink.index()].incarnation;
                let (slot, epoch) = (leg.sink_slot.index, leg.sink_slot.epoch);
                (flow, Tenure { slot, epoch, incarnation }, leg.sink)
            })
            .collect()
    }

    /// The running interval ends.
    pub(super) fn next_interval(&mut self) {
        self.collector.armed = false;
        if !self.reads() {
            return;
        }
        for index in 0..self.switches.len() {
            self.give_up_reads(SwitchId::from(index), Missing::NoAnswer);
            self.collector.leaves[index].asked = false;
        }
        self.check_observed();
        let mut flows: BTreeMap<SwitchId, Vec<(FlowId, u16)>> = BTreeMap::new();
        let tracked = self.tracked();
        let known: std::collections::BTreeSet<FlowId> =
            tracked.iter().map(|(flow, ..)| *flow).collect();
        self.collector.telemetry.retain(|flow| known.contains(&flow));
        for (flow, tenure, leaf) in tracked {
            self.collector.telemetry.follow(flow, tenure);
            flows.entry(leaf).or_default().push((flow, tenure.slot));
        }
        self.stretch(&flows);
        let closed = self.collector.running;
        self.collector.running = closed.wrapping_add(1);
        self.collector.collecting = (closed > 0).then_some(closed);
        let totals = self.collector.telemetry.totals();
        self.collector.before = (totals.samples, totals.missing);
        for index in 0..self.switches.len() {
            let id = SwitchId::from(index);
            self.close_interval(id, flows.remove(&id).unwrap_or_default());
        }
        self.check_observed();
    }

    /// A rate cap that does not reach for all slots makes the interval longer, up to the longest that cannot wrap.
    fn stretch(&mut self, flows: &BTreeMap<SwitchId, Vec<(FlowId, u16)>>) {
        let slots = flows.values().map(Vec::len).max().unwrap_or(0) as u64;
        let TelemetryConfig { interval, rate_cap, .. } = self.config.telemetry;
        let needed = (slots + 1) * u64::from(SPARE) / u64::from(SPARE - 1) + 1;
        let needed = Span((needed * 1_000_000_000).div_ceil(u64::from(rate_cap.max(1))));
        let stretched = interval.max(needed.min(self.collector.longest));
        if stretched != self.collector.interval {
            self.collector.interval = stretched;
            let rest = Span(stretched.0.saturating_mul(2));
            self.config.slots.quarantine = self.config.slots.quarantine.max(rest);
            let slots = slots as usize;
            self.notify(Event::TelemetryInterval { interval: stretched, slots, rate_cap });
        }
        let reads = stretched.as_secs_f64() * f64::from(rate_cap);
        let budget = (reads as u32).max(2);
        self.collector.leaves.iter_mut().for_each(|leaf| leaf.budget = budget);
    }

    /// Calls [`Core::observed`] when nothing more is awaited.
    fn check_observed(&mut self) {
        if let Some(number) = self.collector.collecting
            && self.collector.leaves.iter().all(Leaf::is_done)
        {
            self.collector.collecting = None;
            self.collector.intervals += 1;
            self.observed(number);
        }
    }

    /// The samples of a closed interval are all in or given up. Called exactly once per interval, in order of numbers;
    /// [`Core::telemetry`] holds the windows.
    fn observed(&mut self, interval: u32) {
        self.judge(interval);
        if self.config.telemetry.report {
            let totals = self.collector.telemetry.totals();
            let (samples, missing) = self.collector.before;
            let (samples, missing) = (totals.samples - samples, totals.missing - missing);
            self.notify(Event::Telemetry { interval, flows: samples + missing, missing });
        }
    }
}
