//! What is believed of one sample. In: samples, tenures. Out: intervals, or the reason why there is none. Must not know
//! how samples travel.
//!
//! ```text
//!             follow (new flow)            sample of the epoch
//!   nothing ───────────────────► Fresh ───────────────────────────► Running ──┐ sample: interval = cell, totals - base
//!                                  │ other epoch: no packet yet,      ▲  ▲    │
//!                                  ▼ an interval without packets      │  └────┘
//!                                Fresh                                │
//!   follow (other epoch or incarnation of a flow that may be sending) │
//!      ──────────────► Rebasing ── first sample of the epoch: only its totals are taken
//! ```

use super::window::{Interval, Window};
use crate::id::FlowId;
use crate::pipeline::telemetry::{self as cells, Cell, Sample};
use crate::time::Span;
use crate::units::BitRate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What does not depend on the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Bytes at the switch are multiplied by this (σ of the packet simulation; 1 in reality).
    pub scale: f64,
    /// The fastest port, at full size: nothing counted may pass it.
    pub port_rate: BitRate,
}

/// Who a slot's cells must belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tenure {
    /// Slot at the sink leaf.
    pub slot: u16,
    /// Epoch that the flow's packets carry.
    pub epoch: u8,
    /// Incarnation of the sink leaf.
    pub incarnation: u32,
}

/// Why a sample was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dropped {
    /// The slot counted for somebody else.
    Epoch,
    /// The switch restarted, or was never programmed by this controller.
    Incarnation,
    /// The leaf was not in the interval after the one asked for.
    Interval,
    /// The first sample after the slot began anew under a flow that was sending: it starts in the middle.
    Rebased,
    /// More than the port carries in that time, or cells that contradict each other: a switch that lies.
    Impossible,
    /// Of a flow that is not followed (any more).
    Unknown,
    /// A second answer to one request, or one that came when it had been given up.
    Late,
}

impl std::fmt::Display for Dropped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Epoch => "epoch",
            Self::Incarnation => "incarnation",
            Self::Interval => "interval",
            Self::Rebased => "rebased",
            Self::Impossible => "impossible",
            Self::Unknown => "unknown",
            Self::Late => "late",
        })
    }
}

/// Why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// No answer in three tries, or none before the next interval closed.
    NoAnswer,
    /// The leaf is out of reach, or not programmed.
    Unreachable,
    /// When the interval began or ended at the leaf is not known.
    Unbounded,
    /// More slots than may be read in the longest interval that cannot wrap.
    RateCap,
}

/// Everything counted since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Samples believed.
    pub samples: u64,
    /// Intervals of flows without one, whatever the reason: those in `missing_by`, and those whose sample was dropped.
    pub missing: u64,
    /// Intervals that nobody answered for, by reason.
    pub missing_by: BTreeMap<Missing, u64>,
    /// Samples not believed, by reason.
    pub dropped: BTreeMap<Dropped, u64>,
    /// Bytes of all intervals, at full size.
    pub bytes_seen: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// No packet of the epoch was seen; the first finds every cell at zero.
    Fresh,
    /// Packets of another epoch may share an interval with the first of this one.
    Rebasing,
    /// The totals of the last sample.
    Running(cells::Totals),
}

#[derive(Clone, Debug)]
struct Track {
    tenure: Tenure,
    base: Base,
    window: Window,
}

/// The windows of all flows, and what was dropped or is missing.
#[derive(Clone, Debug)]
pub struct Telemetry {
    rules: Rules,
    tracks: BTreeMap<FlowId, Track>,
    totals: Totals,
}

impl Telemetry {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, tracks: BTreeMap::new(), totals: Totals::default() }
    }

    /// From now on the flow's samples must have this tenure. The window of a flow that was followed before is kept.
    pub fn follow(&mut self, flow: FlowId, tenure: Tenure) {
        match self.tracks.get_mut(&flow) {
            Some(track) if track.tenure == tenure => {}
            Some(track) => {
                track.tenure = tenure;
                track.base = Base::Rebasing;
            }
            None => {
                let track = Track { tenure, base: Base::Fresh, window: Window::default() };
                self.tracks.insert(flow, track);
            }
        }
    }

    /// As [`Telemetry::follow`] for a flow that may have sent before this controller knew it (it was restarted).
    pub fn resume(&mut self, flow: FlowId, tenure: Tenure) {
        let track = Track { tenure, base: Base::Rebasing, window: Window::default() };
        self.tracks.entry(flow).or_insert(track);
        self.follow(flow, tenure);
    }

    /// Forgets the flows that are gone.
    pub fn retain(&mut self, mut stays: impl FnMut(FlowId) -> bool) {
        self.tracks.retain(|flow, _| stays(*flow));
    }

    /// A sample for interval `number` of a flow, which is `asked` at the leaf and lasted `length`.
    ///
    /// # Errors
    /// The reason why it was not believed, which is counted; the interval is missing then.
    pub fn take(
        &mut self,
        flow: FlowId,
        (number, asked): (u32, u32),
        length: Span,
        sample: &Sample,
    ) -> Result<(), Dropped> {
        let rules = self.rules;
        let result = match self.tracks.get_mut(&flow) {
            Some(track) => track.interval(&rules, (number, asked), length, sample),
            None => Err(Dropped::Unknown),
        };
        match result {
            Ok(interval) => {
                self.totals.samples += 1;
                self.totals.bytes_seen += interval.bytes;
                if let Some(track) = self.tracks.get_mut(&flow) {
                    track.window.push(interval);
                }
                Ok(())
            }
            Err(reason) => {
                self.drop_sample(reason);
                self.gap(flow, number);
                Err(reason)
            }
        }
    }

    /// Counts an answer that belongs to nothing that is being waited for.
    pub fn drop_sample(&mut self, reason: Dropped) {
        *self.totals.dropped.entry(reason).or_default() += 1;
    }

    /// There is no sample for an interval of a flow.
    pub fn miss(&mut self, flow: FlowId, number: u32, reason: Missing) {
        if self.tracks.contains_key(&flow) {
            *self.totals.missing_by.entry(reason).or_default() += 1;
            self.gap(flow, number);
        }
    }

    fn gap(&mut self, flow: FlowId, number: u32) {
        if let Some(track) = self.tracks.get_mut(&flow) {
            self.totals.missing += 1;
            track.window.miss(number);
        }
    }

    /// The window of a flow.
    #[must_use]
    pub fn window(&self, flow: FlowId) -> Option<&Window> {
        self.tracks.get(&flow).map(|track| &track.window)
    }

    /// All windows in order of flows.
    pub fn windows(&self) -> impl Iterator<Item = (FlowId, &Window)> {
        self.tracks.iter().map(|(flow, track)| (*flow, &track.window))
    }

    /// What was counted so far.
    #[must_use]
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }
}

impl Track {
    fn interval(
        &mut self,
        rules: &Rules,
        (number, asked): (u32, u32),
        length: Span,
        sample: &Sample,
    ) -> Result<Interval, Dropped> {
        if sample.incarnation != self.tenure.incarnation || sample.slot != self.tenure.slot {
            return Err(Dropped::Incarnation);
        }
        if sample.interval != asked || sample.running != asked.wrapping_add(1) {
            return Err(Dropped::Interval);
        }
        let empty = Interval { number, length, ..Interval::default() };
        if sample.epoch != self.tenure.epoch {
            // The last tenant's cells are still there: of this one not a single packet has come.
            return match self.base {
                Base::Fresh => Ok(empty),
                _ => Err(Dropped::Epoch),
            };
        }
        rules.check(length, sample)?;
        let base = match std::mem::replace(&mut self.base, Base::Running(sample.totals)) {
            Base::Fresh => cells::Totals::default(),
            Base::Rebasing => return Err(Dropped::Rebased),
            Base::Running(totals) => totals,
        };
        let lost = sample.totals.lost.wrapping_sub(base.lost).cast_signed();
        let reordered = sample.totals.reordered.wrapping_sub(base.reordered);
        let cell = sample.cell.unwrap_or_default();
        let mean = u64::from(cell.delay_sum).checked_div(cell.packets.into()).unwrap_or(0);
        Ok(Interval {
            packets: cell.packets.into(),
            bytes: rules.full_size(cell.bytes),
            active: sample.tick.span(cell.active.into()),
            delay_mean: sample.tick.span(mean),
            delay_max: sample.tick.span(cell.delay_max.into()),
            depth_max: cell.depth_max,
            lost: lost.into(),
            reordered: reordered.into(),
            ..empty
        })
    }
}

impl Rules {
    fn full_size(&self, bytes: u32) -> u64 {
        (f64::from(bytes) * self.scale).round() as u64
    }

    /// The interval is at most half of what 32 bits can count at the port's rate, so twice the rate cannot be a wrap.
    fn check(&self, length: Span, sample: &Sample) -> Result<(), Dropped> {
        let Some(cell) = sample.cell else { return Ok(()) };
        // A packet that left just before the interval began may be counted in it.
        const SLACK_BYTES: f64 = 65_536.0;
        let most = self.port_rate.0 as f64 / 8.0 / self.scale * length.as_secs_f64() * 2.0;
        let Cell { packets, bytes, delay_sum, delay_max, first, last, .. } = cell;
        // An IPv4 header has 20 bytes.
        let short = u64::from(bytes) < 20 * u64::from(packets) || packets == 0;
        let backwards = last.wrapping_sub(first) > u32::MAX / 2;
        let bent = u64::from(delay_sum) > u64::from(packets) * u64::from(delay_max);
        if f64::from(bytes) > most + SLACK_BYTES || short || backwards || bent {
            return Err(Dropped::Impossible);
        }
        Ok(())
    }
}
