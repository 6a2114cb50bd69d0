//! How long frames wait in the egress queues of switches, by queue number.
//!
//! In: one wait per frame that leaves. Out: percentiles. Must not know ports or flows.

use crate::time::Span;
use hdrhistogram::Histogram;

/// Longest wait told apart; a frame that waited longer counts as this. No window's worth of packets drains that slowly.
pub const MAX_WAIT: Span = Span(600_000_000_000);
/// Significant digits of a recorded wait: a percentile is right to 0.1 %.
pub const DIGITS: u8 = 3;

/// One histogram per queue number, over all ports of all switches.
#[derive(Clone, Debug)]
pub struct QueueWaits {
    queues: Vec<Option<Histogram<u64>>>,
}

/// Percentiles of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The queue; larger is served first.
    pub queue: u8,
    /// Frames that left through it.
    pub frames: u64,
    /// Half of them waited at most this long.
    pub p50: Span,
    /// 90 %.
    pub p90: Span,
    /// 99 %.
    pub p99: Span,
    /// 99.9 %.
    pub p999: Span,
    /// All.
    pub max: Span,
}

impl QueueWaits {
    /// Empty histograms. A histogram takes memory once its queue is used.
    #[must_use]
    pub fn new(queues: u8) -> Self {
        Self { queues: vec![None; usize::from(queues)] }
    }

    /// A frame left its queue after `wait`. A queue number beyond the last is not counted.
    pub fn add(&mut self, queue: u8, wait: Span) {
        let Some(place) = self.queues.get_mut(usize::from(queue)) else { return };
        if place.is_none() {
            // The bounds are constants within what the crate allows.
            *place = Histogram::new_with_max(MAX_WAIT.0, DIGITS).ok();
        }
        if let Some(histogram) = place {
            histogram.saturating_record(wait.min(MAX_WAIT).0);
        }
    }

    /// Percentiles of every queue, by number; zeros for a queue that was never used.
    #[must_use]
    pub fn percentiles(&self) -> Vec<Waits> {
        let of = |(queue, histogram): (u8, &Option<Histogram<u64>>)| {
            let at = |quantile| {
                histogram.as_ref().map_or(Span::ZERO, |h| Span(h.value_at_quantile(quantile)))
            };
            Waits {
                queue,
                frames: histogram.as_ref().map_or(0, Histogram::len),
                p50: at(0.5),
                p90: at(0.9),
                p99: at(0.99),
                p999: at(0.999),
                max: at(1.0),
            }
        };
        (0..).zip(&self.queues).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The twin: sort, and take the smallest value that a share of `quantile` does not exceed.
    fn exact(sorted: &[u64], quantile: f64) -> u64 {
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_waits_to_a_thousandth(
            waits in prop::collection::vec(prop_oneof![20 => 0_u64..50, 40 => 0_u64..2_000_000, 40 => 0_u64..400_000_000_000, 1 => 0_u64..900_000_000_000], 1..3000),
        ) {
            let mut queues = QueueWaits::new(3);
            for wait in &waits {
                queues.add(1, Span(*wait));
                queues.add(3, Span(*wait));
            }
            let mut sorted: Vec<u64> = waits.iter().map(|wait| (*wait).min(MAX_WAIT.0)).collect();
            sorted.sort_unstable();
            let all = queues.percentiles();
            let found = all[1];
            prop_assert_eq!((all.len(), found.frames, all[0].frames), (3, waits.len() as u64, 0));
            let pairs = [(found.p50, 0.5), (found.p90, 0.9), (found.p99, 0.99), (found.p999, 0.999), (found.max, 1.0)];
            for (found, quantile) in pairs {
                let wanted = exact(&sorted, quantile);
                let off = found.0.abs_diff(wanted) as f64;
                prop_assert!(off <= 0.001 * wanted as f64, "{}: {} instead of {}", quantile, found.0, wanted);
            }
        }
    }
}
