//! Who is held up, and by what: telemetry against what the plan expects.
//!
//! In: closed [`Interval`]s of all flows, the plan in force ([`Expected`]), link capacities, compute times as agents report
//! them. Out: [`Verdict`]s with their numbers. Must not know what is done about them, jobs' models, registers.
//!
//! **Network.** The flows of a ring advance together, so bytes, rate and step time of all of them are those of the slowest
//! edge and say nothing about which edge that is; the ratio of a flow's rate to its ring's median is 1 for the culprit, too.
//! Two things do tell:
//! 1. *Waiting.* Only where the network holds a flow up do its packets wait in switch queues, all the time. The share of
//!    its active time in which a flow is network-limited is taken as `min(1, q, mean wait / largest wait)`: `q` is the mean
//!    number of its own packets that wait (sum of waits / active time), and if a share of the packets waited no longer than
//!    the longest, the mean is at most that share of it. Both have no unit, so neither depends on the packet time.
//! 2. *Work conservation.* While a packet of a flow waits at a link, that link is busy with this flow or with flows of the
//!    same or a higher queue. What all of these carried over link e while the flow was active, over what e can carry in
//!    that time, is the flow's *progress* against what the plan leaves it. If even the busiest link of the path was busy for
//!    less than (1 - ρ) of the time in which the flow waited, some link is slower than it should be, or carries what nobody
//!    planned. Ordinary contention, at whatever priorities, cannot look like that: what the others took is counted.
//!
//! The others' bytes are counted as if they had all passed while the flow was active; that errs on the side of no verdict.
//! **Host.** A ring that is slow while no path of it is busy is held up by a sender or receiver: a compute straggler if the
//! agent says so, else unknown. Nobody is ever raised for that.

use crate::id::{FlowId, JobId, LinkId};
use crate::telemetry::Interval;
use crate::time::Span;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod compute;
mod look;
#[cfg(test)]
mod tests;

pub use compute::{Report, Reports};
use look::Look;

/// What slow means for a network-limited flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    /// The busiest link of its path was busy for less than (1 - ρ) of the time.
    #[default]
    Work,
    /// Its rate lies below (1 - ρ) times the median of its ring: kept to be compared with (docs/feedback.md).
    RingMedian,
}

/// Thresholds. The defaults are the published ones where there are any (ρ); the others are explained here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// What slow means.
    pub test: Test,
    /// ρ: how far below expectation is slow, 0..1. Published default 0.20; production systems notice changes of 0.10.
    pub rho: f64,
    /// Looks in a row that must say the same; one alone may have caught others' bytes of the interval before. 2.
    pub looks: u32,
    /// Packets of a look: fewer say more about packet times than about rates. 32.
    pub packets: u64,
    /// Intervals that a look may take to come by its packets: a flow that sends in short bursts is seen, later. 8.
    pub merge: u32,
    /// Share of the active time that must be network-limited. 0.5.
    pub share: f64,
    /// Lost packets, as a share, from which on a flow counts as network-limited all the time. 0.01.
    pub loss: f64,
    /// Intervals after a change of plan, path or queue that are not looked at: rates settle, senders' windows move. 2.
    pub settle: u32,
    /// Waiting that an idle path causes, seconds: subtracted from what is measured. Follows the packet time.
    pub floor: f64,
    /// Bytes on the wire per byte that telemetry counts (IPv4 lengths): Ethernet and tag headers of full packets. 1.035.
    pub framing: f64,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            test: Test::default(),
            rho: 0.20,
            looks: 2,
            packets: 32,
            merge: 8,
            share: 0.5,
            loss: 0.01,
            settle: 2,
            floor: 0.0,
            framing: 1.035,
        }
    }
}

impl Rule {
    /// Progress below which a flow is slow, for a share of time in which it was limited.
    fn slow(&self, share: f64) -> f64 {
        (1.0 - self.rho) * share
    }

    /// Progress from which a slow flow is well again: half of ρ, so that one at the threshold does not flap.
    fn well(&self, share: f64) -> f64 {
        (1.0 - self.rho / 2.0) * share
    }
}

/// A flow as the plan in force has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The flow.
    pub flow: FlowId,
    /// Its job.
    pub job: JobId,
    /// Its channel: flows of one (job, channel) are one ring.
    pub channel: u16,
    /// Its place in the ring, which is the rank that sends it.
    pub edge: u16,
    /// The queue that its packets are in.
    pub queue: u8,
    /// Links that its packets may take, in order; both paths while a change is under way. The first leaves the host,
    /// and no switch sees how long packets wait before it.
    pub links: Vec<LinkId>,
    /// First interval that begins with this path and queue in force and nothing else; `None` while a change is under way.
    pub since: Option<u32>,
}

/// Where a verdict puts the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A link of the flow's path is slow, or carries what nobody planned.
    Network,
    /// The sending rank computes too long; its agent says so.
    Compute,
    /// The path is empty and nobody says why the ring is slow.
    Unknown,
}

/// A link that may be the cause, and how fast it would then be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// The link.
    pub link: LinkId,
    /// Share of its rate, 0..=1, that explains what was seen.
    pub factor: f64,
}

/// The numbers behind a verdict, of the last look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Last interval looked at.
    pub interval: u32,
    /// Intervals of the look.
    pub intervals: u32,
    /// Looks in a row that said the same.
    pub looks: u32,
    /// Packets.
    pub packets: u64,
    /// Packets lost.
    pub lost: i64,
    /// Active time, seconds.
    pub active_s: f64,
    /// Bytes per active second, at full size.
    pub rate: f64,
    /// Mean waiting of a packet above the path's floor, seconds.
    pub wait_s: f64,
    /// Share of the active time in which the flow was network-limited, 0..=1.
    pub share: f64,
    /// Progress against what the plan leaves the flow: what it and flows of its queue or above carried over the busiest
    /// link of its path, over what that link can carry in the active time.
    pub progress: f64,
    /// The same on the sending host's own link.
    pub sending: f64,
    /// Median of the rates in its ring over this flow's rate, for the record: 1 where all advance together.
    pub ring: f64,
    /// Links that may be the cause.
    pub suspects: Vec<Suspect>,
    /// Compute: the rank's time over the ring's typical one; 0 if no agent reported.
    pub compute: f64,
}

/// A flow that is held up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The flow.
    pub flow: FlowId,
    /// By what.
    pub kind: Kind,
    /// The numbers.
    pub evidence: Evidence,
}

/// One closed interval of the fabric.
#[derive(Clone, Copy, Debug)]
pub struct Closed<'a> {
    /// Its number.
    pub number: u32,
    /// What every flow with telemetry did; a flow that is absent is missing.
    pub flows: &'a BTreeMap<FlowId, Interval>,
}

/// What one interval taught.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Looks that this interval completed, ascending by flow.
    pub looks: Vec<(FlowId, Evidence)>,
    /// Flows that became stragglers with it.
    pub verdicts: Vec<Verdict>,
    /// Flows that are none any more.
    pub recovered: Vec<FlowId>,
}

/// What is remembered about one flow.
#[derive(Clone, Debug, Default)]
struct Track {
    since: Option<u32>,
    look: Look,
    bad: u32,
    good: u32,
    /// Looks in a row in which the ring was slow and this flow's path empty.
    empty: u32,
    flagged: Option<Kind>,
    last: Option<Evidence>,
}

/// Judges interval by interval. Bounded by the number of flows.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    rule: Rule,
    reports: Reports,
    tracks: BTreeMap<FlowId, Track>,
    /// The rank of each job that computes too long. Plans do not change that.
    computing: BTreeMap<JobId, usize>,
}

impl Detector {
    /// A detector that has seen nothing.
    #[must_use]
    pub fn new(rule: Rule) -> Self {
        Self { rule, ..Self::default() }
    }

    /// The thresholds.
    #[must_use]
    pub const fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Judges one closed interval. `capacity` is a link's rate by plan, bytes per second; `plan` names a flow once.
    pub fn interval(
        &mut self,
        closed: Closed<'_>,
        plan: &[Expected],
        capacity: &dyn Fn(LinkId) -> f64,
    ) -> Findings {
        let known: BTreeSet<FlowId> = plan.iter().map(|expected| expected.flow).collect();
        self.tracks.retain(|flow, _| known.contains(flow));
        let loads = look::loads(closed, plan, self.rule.framing);
        let fastest = look::fastest(closed, plan, &self.rule);
        let medians = look::medians(closed, plan);
        let mut findings = Findings::default();
        for expected in plan {
            let Some(look) = self.look(closed, expected, &loads) else { continue };
            let mut evidence = look.evidence(expected, &self.rule, capacity);
            evidence.interval = closed.number;
            let median = medians.get(&(expected.job, expected.channel)).copied();
            evidence.ring = median.unwrap_or(0.0) / evidence.rate.max(f64::MIN_POSITIVE);
            let share = (evidence.share, &self.rule);
            evidence.suspects = look.suspects(expected, share, capacity, &fastest);
            self.weigh(expected.flow, evidence, &mut findings);
        }
        self.hosts(closed.number, plan, &mut findings);
        findings
    }

    /// Adds an interval to a flow's look; returns the look if that completes it.
    fn look(&mut self, closed: Closed<'_>, of: &Expected, loads: &look::Loads) -> Option<Look> {
        let track = self.tracks.entry(of.flow).or_default();
        let Some(since) = of.since else {
            *track = Track::default();
            return None;
        };
        if track.since != Some(since) {
            *track = Track { since: Some(since), ..Track::default() };
        }
        let age = closed.number.wrapping_sub(since);
        if age < self.rule.settle || age > u32::MAX / 2 {
            return None;
        }
        let sample = closed.flows.get(&of.flow);
        let whole = sample.is_some_and(|sample| track.look.add(sample, loads, of, &self.rule));
        let enough = track.look.packets >= self.rule.packets;
        if whole && !enough && track.look.intervals < self.rule.merge {
            return None;
        }
        // Complete; or too thin; or a sample of it, or of a flow that it may wait for, is missing.
        let look = std::mem::take(&mut track.look);
        (whole && enough).then_some(look)
    }

    /// One look's consequence.
    fn weigh(&mut self, flow: FlowId, mut evidence: Evidence, findings: &mut Findings) {
        let rule = self.rule;
        let Some(track) = self.tracks.get_mut(&flow) else { return };
        let limited = evidence.share > rule.share;
        let slow = limited
            && match rule.test {
                Test::Work => evidence.progress < rule.slow(evidence.share),
                Test::RingMedian => evidence.ring * (1.0 - rule.rho) > 1.0,
            };
        let well =
            evidence.share <= rule.share / 2.0 || evidence.progress >= rule.well(evidence.share);
        let busy = evidence.progress.max(evidence.sending);
        let empty = !limited && busy < rule.slow(1.0);
        track.bad = if slow { track.bad + 1 } else { 0 };
        track.good = if well { track.good + 1 } else { 0 };
        track.empty = if empty { track.empty + 1 } else { 0 };
        evidence.looks = track.bad.max(track.empty);
        let over = match track.flagged {
            Some(Kind::Network) => track.good >= rule.looks,
            Some(Kind::Unknown) => !empty,
            _ => false,
        };
        if over {
            track.flagged = None;
            findings.recovered.push(flow);
        }
        if track.bad >= rule.looks && track.flagged != Some(Kind::Network) {
            track.flagged = Some(Kind::Network);
            let evidence = evidence.clone();
            findings.verdicts.push(Verdict { flow, kind: Kind::Network, evidence });
        }
        track.last = Some(evidence.clone());
        findings.looks.push((flow, evidence));
    }

    /// Rings that agents say are held up by a rank, and rings that are slow though no link of theirs is busy.
    fn hosts(&mut self, number: u32, plan: &[Expected], findings: &mut Findings) {
        let mut rings: BTreeMap<(JobId, u16), Vec<&Expected>> = BTreeMap::new();
        for expected in plan {
            rings.entry((expected.job, expected.channel)).or_default().push(expected);
        }
        for ((job, _), ring) in rings {
            if self.agents(number, job, &ring, findings) {
                continue;
            }
            let track = |expected: &&Expected| self.tracks.get(&expected.flow);
            let empty = |track: &Track| track.empty >= self.rule.looks;
            let all_empty = ring.iter().all(|expected| track(expected).is_some_and(empty));
            let first = ring[0].flow;
            let Some(track) = self.tracks.get_mut(&first).filter(|_| all_empty) else { continue };
            if track.flagged.is_none() {
                track.flagged = Some(Kind::Unknown);
                let evidence = track.last.clone().unwrap_or_default();
                findings.verdicts.push(Verdict { flow: first, kind: Kind::Unknown, evidence });
            }
        }
    }

    /// Tells a compute straggler once; whether a job has one.
    fn agents(
        &mut self,
        number: u32,
        job: JobId,
        ring: &[&Expected],
        findings: &mut Findings,
    ) -> bool {
        let Some(report) = self.reports.slowest(job, &self.rule) else {
            if let Some(rank) = self.computing.remove(&job) {
                let sent = ring.iter().filter(|expected| usize::from(expected.edge) == rank);
                findings.recovered.extend(sent.map(|expected| expected.flow));
            }
            return false;
        };
        if self.computing.insert(job, report.rank) == Some(report.rank) {
            return true;
        }
        for expected in ring.iter().filter(|e| usize::from(e.edge) == report.rank) {
            let last = self.tracks.get(&expected.flow).and_then(|track| track.last.clone());
            let evidence = Evidence {
                interval: number,
                looks: report.reports as u32,
                compute: report.ratio,
                ..last.unwrap_or_default()
            };
            let (flow, kind) = (expected.flow, Kind::Compute);
            findings.verdicts.push(Verdict { flow, kind, evidence });
        }
        true
    }

    /// An agent's word: compute times of one iteration, by rank.
    pub fn reported(&mut self, job: JobId, compute: &[Span]) {
        self.reports.add(job, compute);
    }

    /// A job is gone.
    pub fn job_gone(&mut self, job: JobId) {
        self.reports.forget(job);
        self.computing.remove(&job);
    }

    /// Whether a flow counts as held up now.
    #[must_use]
    pub fn flagged(&self, flow: FlowId) -> Option<Kind> {
        self.tracks.get(&flow)?.flagged
    }

    /// The last look at a flow.
    #[must_use]
    pub fn last(&self, flow: FlowId) -> Option<&Evidence> {
        self.tracks.get(&flow)?.last.as_ref()
    }

    /// Lets a flow be flagged again: the reaction to its verdict is over.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(track) = self.tracks.get_mut(&flow) {
            track.flagged = None;
            track.bad = 0;
        }
    }
}
