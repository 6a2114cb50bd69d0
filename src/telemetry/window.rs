//! The last closed intervals of one flow. In: intervals by number. Out: the same, gaps visible. Must not know samples.

use crate::time::Span;
use serde::Serialize;
use std::collections::VecDeque;

/// Intervals kept per flow: at 100 ms more than six seconds, several iterations of any job and many times what a verdict
/// looks back; 10,000 flows take 50 MB.
pub const WINDOW_INTERVALS: usize = 64;

/// One closed interval of one flow; times on the sink leaf's clock, bytes and packets at the sink leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Counted by the controller from 1; the same number is (almost) the same time at all leaves.
    pub number: u32,
    /// How long the interval lasted.
    pub length: Span,
    /// Packets that left the sink leaf towards the host.
    pub packets: u64,
    /// Their IPv4 total lengths, at full size when the fabric is scaled.
    pub bytes: u64,
    /// Time between packets, without the pauses in which the source was silent. A pause counts in the interval in which
    /// it ends, so this may pass `length`.
    pub active: Span,
    /// Mean over packets of the time spent in the queues of the path; 0 without packets.
    pub delay_mean: Span,
    /// The largest.
    pub delay_max: Span,
    /// Largest queue that any packet met on its path, packets.
    pub depth_max: u32,
    /// Sequence numbers found missing since the sample before, minus those that came late after all.
    pub lost: i64,
    /// Packets that came behind a later one since the sample before.
    pub reordered: u64,
}

/// The newest intervals of one flow. An interval in which no packet came is there, with `packets` = 0; a *missing* one is
/// a gap. At most [`WINDOW_INTERVALS`] numbers are spanned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Place i holds number `newest - (len - 1 - i)`.
    places: VecDeque<Option<Interval>>,
    newest: u32,
}

impl Window {
    /// Adds an interval; numbers skipped since the last are gaps. One that is not newer than the newest is ignored.
    pub fn push(&mut self, interval: Interval) {
        self.advance(interval.number, Some(interval));
    }

    /// Notes that an interval is missing.
    pub fn miss(&mut self, number: u32) {
        self.advance(number, None);
    }

    fn advance(&mut self, number: u32, place: Option<Interval>) {
        if self.places.is_empty() {
            self.newest = number.wrapping_sub(1);
        }
        let ahead = number.wrapping_sub(self.newest);
        // Half of all numbers are behind.
        if ahead == 0 || ahead > u32::MAX / 2 {
            return;
        }
        let gaps = (ahead as usize - 1).min(WINDOW_INTERVALS);
        self.places.extend(std::iter::repeat_n(None, gaps));
        self.places.push_back(place);
        let surplus = self.places.len().saturating_sub(WINDOW_INTERVALS);
        self.places.drain(..surplus);
        self.newest = number;
    }

    /// Number of the newest interval, missing or not; `None` before the first.
    #[must_use]
    pub fn newest(&self) -> Option<u32> {
        (!self.places.is_empty()).then_some(self.newest)
    }

    /// The newest interval, unless it is missing.
    #[must_use]
    pub fn last(&self) -> Option<&Interval> {
        self.places.back()?.as_ref()
    }

    /// One interval, unless it is missing, too old or not yet closed.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Interval> {
        let back = self.newest.wrapping_sub(number) as usize;
        let at = self.places.len().checked_sub(1)?.checked_sub(back)?;
        self.places.get(at)?.as_ref()
    }

    /// Every place, newest last; `None` = missing.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Option<&Interval>> + ExactSizeIterator {
        self.places.iter().map(Option::as_ref)
    }

    /// The newest `count` places, newest last; fewer when fewer are known.
    pub fn tail(&self, count: usize) -> impl DoubleEndedIterator<Item = Option<&Interval>> {
        let skip = self.places.len().saturating_sub(count);
        self.places.iter().skip(skip).map(Option::as_ref)
    }

    /// Intervals spanned, gaps included; at most [`WINDOW_INTERVALS`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is known yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Intervals missing among those spanned.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.places.iter().filter(|place| place.is_none()).count()
    }
}
