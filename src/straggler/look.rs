//! One look at a flow: as many intervals as it takes to see enough packets.
//!
//! In: intervals of all flows, the plan. Out: sums, and the numbers of a verdict. Must not know thresholds' consequences.

use super::{Closed, Evidence, Expected, Rule, Suspect};
use crate::id::{JobId, LinkId};
use crate::telemetry::Interval;
use std::collections::BTreeMap;

/// Queues of a port.
const QUEUES: usize = 8;
/// Active time is never taken as shorter than this when something is divided by it, seconds.
const LEAST_ACTIVE: f64 = 1e-9;
/// A link is never suspected to be slower than this share of its rate; slower ones have failed.
const LEAST_FACTOR: f64 = 0.01;

/// What the flows of each queue carried over a link in one interval, bytes on the wire; `NaN` where a sample is missing.
pub(super) type Loads = BTreeMap<LinkId, [f64; QUEUES]>;

/// Sums over the links of all flows. A flow whose change is under way counts on both of its paths.
pub(super) fn loads(closed: Closed<'_>, plan: &[Expected], framing: f64) -> Loads {
    let mut loads = Loads::new();
    for expected in plan {
        let bytes = closed.flows.get(&expected.flow).map_or(f64::NAN, |s| s.bytes as f64 * framing);
        for link in &expected.links {
            loads.entry(*link).or_default()[usize::from(expected.queue) % QUEUES] += bytes;
        }
    }
    loads
}

/// Highest rate at which any one flow with enough packets went over each link while it was active, bytes on the wire per
/// second: the link is no slower than that.
pub(super) fn fastest(closed: Closed<'_>, plan: &[Expected], rule: &Rule) -> BTreeMap<LinkId, f64> {
    let mut fastest: BTreeMap<LinkId, f64> = BTreeMap::new();
    for expected in plan.iter().filter(|expected| expected.since.is_some()) {
        let Some(sample) = closed.flows.get(&expected.flow) else { continue };
        if sample.packets < rule.packets {
            continue;
        }
        let rate = rate(sample.bytes as f64, sample.active.as_secs_f64()) * rule.framing;
        for link in &expected.links {
            let known = fastest.entry(*link).or_default();
            *known = known.max(rate);
        }
    }
    fastest
}

/// Median rate of each ring's flows while active; absent when a sample of the ring is missing.
pub(super) fn medians(closed: Closed<'_>, plan: &[Expected]) -> BTreeMap<(JobId, u16), f64> {
    let mut rates: BTreeMap<(JobId, u16), Vec<f64>> = BTreeMap::new();
    for expected in plan {
        let sample = closed.flows.get(&expected.flow);
        let rate = sample.map_or(f64::NAN, |s| rate(s.bytes as f64, s.active.as_secs_f64()));
        rates.entry((expected.job, expected.channel)).or_default().push(rate);
    }
    let median = |(ring, mut rates): (_, Vec<f64>)| {
        rates.sort_by(f64::total_cmp);
        rates.iter().all(|rate| !rate.is_nan()).then(|| (ring, rates[rates.len() / 2]))
    };
    rates.into_iter().filter_map(median).collect()
}

fn rate(bytes: f64, active: f64) -> f64 {
    bytes / active.max(LEAST_ACTIVE)
}

/// Sums over the intervals of a look.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub intervals: u32,
    pub packets: u64,
    bytes: f64,
    active: f64,
    wait_sum: f64,
    wait_max: f64,
    lost: i64,
    /// Bytes on the wire over each link of the path in the flow's queue or above, its own included.
    carried: Vec<f64>,
}

impl Look {
    /// Adds an interval; `false` when a flow that shares a link in the same queue or above is missing.
    pub fn add(&mut self, sample: &Interval, loads: &Loads, of: &Expected, rule: &Rule) -> bool {
        self.carried.resize(of.links.len(), 0.0);
        for (sum, link) in self.carried.iter_mut().zip(&of.links) {
            let from = usize::from(of.queue) % QUEUES;
            *sum += loads.get(link).map_or(0.0, |queues| queues[from..].iter().sum());
        }
        let above = |wait: f64| (wait - rule.floor).max(0.0);
        self.intervals += 1;
        self.packets += sample.packets;
        self.bytes += sample.bytes as f64;
        self.active += sample.active.as_secs_f64();
        self.wait_sum += above(sample.delay_mean.as_secs_f64()) * sample.packets as f64;
        self.wait_max = self.wait_max.max(above(sample.delay_max.as_secs_f64()));
        self.lost += sample.lost;
        self.carried.iter().all(|sum| sum.is_finite())
    }

    /// Share of the active time in which the flow was network-limited.
    fn share(&self, rule: &Rule) -> f64 {
        let packets = self.packets.max(1) as f64;
        if self.lost as f64 >= rule.loss * packets {
            return 1.0;
        }
        let waiting = self.wait_sum / self.active.max(LEAST_ACTIVE);
        let even = if self.wait_max > 0.0 { self.wait_sum / packets / self.wait_max } else { 0.0 };
        waiting.min(even).min(1.0)
    }

    /// Share of the active time for which a link was busy with the flow and those that it has to let pass.
    fn busy(&self, place: usize, capacity: f64) -> f64 {
        self.carried[place] / (capacity * self.active.max(LEAST_ACTIVE)).max(f64::MIN_POSITIVE)
    }

    /// Busiest link whose queue switches see (all but the first).
    pub fn progress(&self, of: &Expected, capacity: &dyn Fn(LinkId) -> f64) -> f64 {
        let links = of.links.iter().enumerate().skip(1);
        links.map(|(place, link)| self.busy(place, capacity(*link))).fold(0.0, f64::max)
    }

    /// Busy share of the sending host's own link.
    pub fn sending(&self, of: &Expected, capacity: &dyn Fn(LinkId) -> f64) -> f64 {
        of.links.first().map_or(0.0, |link| self.busy(0, capacity(*link)))
    }

    /// The numbers; interval, ring and suspects are the caller's.
    pub fn evidence(
        &self,
        of: &Expected,
        rule: &Rule,
        capacity: &dyn Fn(LinkId) -> f64,
    ) -> Evidence {
        Evidence {
            intervals: self.intervals,
            packets: self.packets,
            lost: self.lost,
            active_s: self.active,
            rate: rate(self.bytes, self.active),
            wait_s: self.wait_sum / self.packets.max(1) as f64,
            share: self.share(rule),
            progress: self.progress(of, capacity),
            sending: self.sending(of, capacity),
            ..Evidence::default()
        }
    }

    /// Links that would explain what was seen if they were slower, and that nobody was seen to be faster on.
    pub fn suspects(
        &self,
        of: &Expected,
        (share, rule): (f64, &Rule),
        capacity: &dyn Fn(LinkId) -> f64,
        fastest: &BTreeMap<LinkId, f64>,
    ) -> Vec<Suspect> {
        let slack = rule.rho / 2.0;
        let links = of.links.iter().enumerate().skip(1);
        let suspects = links.map(|(place, &link)| {
            let factor = self.busy(place, capacity(link)) / share.max(rule.share);
            Suspect { link, factor: factor.max(LEAST_FACTOR) }
        });
        suspects
            .filter(|suspect| suspect.factor < 1.0 - slack)
            .filter(|suspect| {
                let seen = fastest.get(&suspect.link).copied().unwrap_or(0.0);
                seen <= suspect.factor * (1.0 + slack) * capacity(suspect.link)
            })
            .collect()
    }
}
