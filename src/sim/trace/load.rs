//! Bytes put on each directed link over time.
//!
//! In: frames with the time that they occupy their link. Out: bytes per bucket. Must not know rates.
//!
//! How long a run takes is not known before it ends. So buckets start short, and when a frame lies beyond the last one, neighbours are
//! merged and buckets become twice as long: memory stays the same, and a long run always has between half of [`MAX_BUCKETS`] and all.

use crate::time::{Span, Time};

/// Buckets per link: as many columns as a plot on one page shows apart.
pub const MAX_BUCKETS: usize = 200;
/// Shortest bucket; runs shorter than [`MAX_BUCKETS`] of them have fewer buckets.
pub const SHORTEST_BUCKET: Span = Span::from_millis(1);

/// The recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLoad {
    origin: Option<Time>,
    width: Span,
    /// `[link * MAX_BUCKETS + bucket]`.
    bytes: Vec<u64>,
    /// Bytes before the origin, by link.
    before: Vec<u64>,
    /// Buckets that hold anything.
    used: usize,
}

impl LinkLoad {
    /// A recorder for so many links.
    #[must_use]
    pub fn new(links: usize) -> Self {
        Self {
            origin: None,
            width: SHORTEST_BUCKET,
            bytes: vec![0; links * MAX_BUCKETS],
            before: vec![0; links],
            used: 0,
        }
    }

    /// Buckets count from here; what came before is kept as one sum. Only the first call counts.
    pub fn start(&mut self, origin: Time) {
        self.origin.get_or_insert(origin);
    }

    /// A frame occupies a link from `start` to `end`. Each bucket gets its share, all shares together exactly `bytes`.
    pub fn add(&mut self, link: usize, start: Time, end: Time, bytes: u64) {
        let Some(origin) = self.origin.filter(|origin| end > *origin) else {
            self.before[link] += bytes;
            return;
        };
        let (from, to) = (start.since(origin).0, end.since(origin).0);
        // The instant `end` itself belongs to no frame: one that ends on a boundary lies before it.
        while (to - 1) / self.width.0 >= MAX_BUCKETS as u64 {
            self.widen();
        }
        let row = &mut self.bytes[link * MAX_BUCKETS..][..MAX_BUCKETS];
        let (first, last) = (from / self.width.0, (to - 1) / self.width.0);
        self.used = self.used.max(last as usize + 1);
        if first >= last {
            row[last as usize] += bytes;
            return;
        }
        let mut given = 0;
        for bucket in first..=last {
            let upto = ((bucket + 1) * self.width.0).min(to) - from;
            let share = u128::from(bytes) * u128::from(upto) / u128::from(to - from);
            let share = u64::try_from(share).unwrap_or(bytes);
            row[bucket as usize] += share - given;
            given = share;
        }
    }

    fn widen(&mut self) {
        for row in self.bytes.chunks_exact_mut(MAX_BUCKETS) {
            for bucket in 0..MAX_BUCKETS {
                let pair = row.get(2 * bucket..2 * bucket + 2);
                row[bucket] = pair.map_or(0, |pair| pair.iter().sum());
            }
        }
        self.used = self.used.div_ceil(2);
        self.width = Span(self.width.0.saturating_mul(2));
    }

    /// Length of a bucket.
    #[must_use]
    pub fn bucket(&self) -> Span {
        self.width
    }

    /// Bytes per bucket by link, from the origin to the last bucket in which any link carried something.
    #[must_use]
    pub fn by_link(&self) -> Vec<Vec<u64>> {
        self.bytes.chunks_exact(MAX_BUCKETS).map(|row| row[..self.used].to_vec()).collect()
    }

    /// All bytes put on a link, those before the origin included.
    #[must_use]
    pub fn total(&self, link: usize) -> u64 {
        self.before[link] + self.bytes[link * MAX_BUCKETS..][..MAX_BUCKETS].iter().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_frame_across_a_boundary_is_shared_by_time() {
        let mut load = LinkLoad::new(2);
        load.start(Time(5_000_000));
        load.add(1, Time(5_750_000), Time(6_250_000), 1001);
        load.add(1, Time(6_500_000), Time(7_000_000), 10);
        load.add(0, Time(4_000_000), Time(5_000_000), 7);
        assert_eq!(load.by_link(), [vec![0, 0], vec![500, 511]]);
        assert_eq!((load.total(0), load.total(1)), (7, 1011));
    }

    #[test]
    fn buckets_become_longer_only_when_a_frame_lies_beyond_the_last() {
        let mut load = LinkLoad::new(1);
        load.start(Time::ZERO);
        load.add(0, Time(199_500_000), Time(200_000_000), 10);
        assert_eq!((load.bucket(), load.by_link()[0].len()), (SHORTEST_BUCKET, MAX_BUCKETS));
        load.add(0, Time(199_500_000), Time(200_000_001), 10);
        assert_eq!((load.bucket(), load.by_link()[0].len()), (Span::from_millis(2), 101));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_made_however_long_the_run(
            frames in prop::collection::vec((0_usize..3, 0_u64..5_000_000_000, 1_u64..40_000_000, 1_u64..2000), 1..200),
            origin in 0_u64..50_000_000,
        ) {
            let mut load = LinkLoad::new(3);
            let mut totals = [0_u64; 3];
            let mut last = 0;
            load.start(Time(origin));
            for (link, start, length, bytes) in frames {
                load.add(link, Time(start), Time(start + length), bytes);
                totals[link] += bytes;
                last = last.max((start + length).saturating_sub(origin));
            }
            for (link, total) in totals.into_iter().enumerate() {
                prop_assert_eq!(load.total(link), total);
            }
            let buckets = load.by_link()[0].len() as u64;
            prop_assert_eq!(buckets, last.div_ceil(load.bucket().0));
            let long = last > SHORTEST_BUCKET.0 * MAX_BUCKETS as u64;
            prop_assert!(!long || buckets > MAX_BUCKETS as u64 / 2, "{} buckets of {:?}", buckets, load.bucket());
        }

        /// The twin: every nanosecond of the frame gets its part of the bytes, in fractions.
        #[test]
        fn shares_are_those_of_a_sum_over_fractions(start in 0_u64..9_000_000, length in 1_u64..9_000_000, bytes in 1_u64..5000) {
            let mut load = LinkLoad::new(1);
            load.start(Time::ZERO);
            load.add(0, Time(start), Time(start + length), bytes);
            for (bucket, found) in load.by_link()[0].iter().enumerate() {
                let (from, to) = (bucket as u64 * 1_000_000, (bucket as u64 + 1) * 1_000_000);
                let inside = to.min(start + length).saturating_sub(from.max(start)) as f64;
                let wanted = bytes as f64 * inside / length as f64;
                prop_assert!((*found as f64 - wanted).abs() <= 1.0, "{} {}", found, wanted);
            }
        }
    }
}
