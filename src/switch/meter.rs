//! Meters: two rates, three colours. In: a packet's length and a time. Out: green, yellow or red. Must not know what is
//! done about it.
//!
//! As BMv2 (`bm_sim/meters.cpp`, after RFC 2698, colour-blind): two buckets fill with tokens counted from one origin in
//! whole microseconds; the peak bucket is asked first (too little: red, nothing is taken from the committed one), then
//! the committed one (too little: yellow, the peak bucket has paid). A meter that was never configured says green.

/// 0 green, 1 yellow, 2 red: the numbers that v1model programs see.
pub const GREEN: u8 = 0;
/// See [`GREEN`].
pub const YELLOW: u8 = 1;
/// See [`GREEN`].
pub const RED: u8 = 2;

/// Rates per second and burst sizes, in packets or bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Committed rate.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate, not below the committed one.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
    /// Excess burst of a single-rate meter (RFC 2697); 0 for one of two rates.
    pub eburst: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bucket {
    tokens: u64,
    /// Tokens given since the origin of time.
    given: u64,
}

impl Bucket {
    fn take(&mut self, now_us: u64, rate: u64, burst: u64, cost: u64) -> bool {
        let total = u128::from(now_us) * u128::from(rate) / 1_000_000;
        let total = u64::try_from(total).unwrap_or(u64::MAX);
        // A clock that is set back gives nothing until it has caught up.
        let fresh = total.saturating_sub(self.given);
        self.given = self.given.max(total);
        self.tokens = self.tokens.saturating_add(fresh).min(burst);
        let enough = self.tokens >= cost;
        if enough {
            self.tokens -= cost;
        }
        enough
    }
}

/// One meter cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    rates: Option<Rates>,
    committed: Bucket,
    peak: Bucket,
    /// Packets by colour: green, yellow, red.
    counts: [super::stats::Count; 3],
}

impl Meter {
    /// Sets the rates and fills both buckets; `None` returns to always green. Counts stay (section 9.4.1).
    pub fn configure(&mut self, rates: Option<Rates>) {
        *self = Self { rates, counts: self.counts, ..Self::default() };
        if let Some(rates) = rates {
            self.committed.tokens = rates.cburst;
            self.peak.tokens = if rates.eburst > 0 { rates.eburst } else { rates.pburst };
        }
    }

    /// Forgets the counts by colour.
    pub fn clear_counts(&mut self) {
        self.counts = Default::default();
    }

    /// The rates, if configured.
    #[must_use]
    pub fn rates(&self) -> Option<Rates> {
        self.rates
    }

    /// Packets and bytes by colour (P4Runtime's `MeterCounterData`).
    #[must_use]
    pub fn counts(&self) -> [super::stats::Count; 3] {
        self.counts
    }

    /// Colours one packet: `cost` is 1 for a meter of packets, the length for one of bytes.
    pub fn execute(&mut self, now_us: u64, cost: u64, length: u64) -> u8 {
        let color = match self.rates {
            None => GREEN,
            Some(rates) if rates.eburst > 0 => self.single_rate(now_us, rates, cost),
            Some(rates) => self.two_rates(now_us, rates, cost),
        };
        self.counts[usize::from(color)].add(length);
        color
    }

    fn two_rates(&mut self, now_us: u64, rates: Rates, cost: u64) -> u8 {
        if !self.peak.take(now_us, rates.pir, rates.pburst, cost) {
            RED
        } else if !self.committed.take(now_us, rates.cir, rates.cburst, cost) {
            YELLOW
        } else {
            GREEN
        }
    }

    /// RFC 2697, colour-blind: what the committed bucket cannot hold fills the excess one, which is `peak` here.
    fn single_rate(&mut self, now_us: u64, rates: Rates, cost: u64) -> u8 {
        let had = self.committed.tokens;
        let given = self.committed.given;
        let green = self.committed.take(now_us, rates.cir, rates.cburst, cost);
        let fresh = self.committed.given - given;
        let spilled = had.saturating_add(fresh).saturating_sub(rates.cburst);
        self.peak.tokens = self.peak.tokens.saturating_add(spilled).min(rates.eburst);
        if green {
            return GREEN;
        }
        if self.peak.tokens < cost {
            return RED;
        }
        self.peak.tokens -= cost;
        YELLOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(cir: u64, cburst: u64, pir: u64, pburst: u64) -> Meter {
        let mut meter = Meter::default();
        meter.configure(Some(Rates { cir, cburst, pir, pburst, eburst: 0 }));
        meter
    }

    #[test]
    fn a_meter_without_rates_is_green() {
        let mut meter = Meter::default();
        assert!((0..100).all(|_| meter.execute(0, 1_000_000, 1) == GREEN));
    }

    #[test]
    fn bursts_go_green_then_yellow_then_red_and_refill_with_time() {
        let mut m = meter(1, 2, 2, 4);
        let colors: Vec<u8> = (0..6).map(|_| m.execute(0, 1, 100)).collect();
        assert_eq!(colors, [GREEN, GREEN, YELLOW, YELLOW, RED, RED]);
        // Half a second: one peak token, no committed one.
        assert_eq!(m.execute(500_000, 1, 100), YELLOW);
        assert_eq!(m.execute(1_000_000, 1, 100), GREEN);
        assert_eq!(m.execute(1_000_000, 1, 100), RED);
        assert_eq!(m.counts().map(|count| count.packets), [3, 3, 3]);
    }

    #[test]
    fn a_single_rate_meter_spends_the_committed_burst_then_the_excess_one_and_refills_in_that_order()
     {
        let mut m = Meter::default();
        m.configure(Some(Rates { cir: 1, cburst: 2, pir: 1, pburst: 2, eburst: 3 }));
        let colors: Vec<u8> = (0..6).map(|_| m.execute(0, 1, 1)).collect();
        assert_eq!(colors, [GREEN, GREEN, YELLOW, YELLOW, YELLOW, RED]);
        // Three seconds: two tokens fill the committed bucket, the third spills into the excess one.
        let colors: Vec<u8> = (0..4).map(|_| m.execute(3_000_000, 1, 1)).collect();
        assert_eq!(colors, [GREEN, GREEN, YELLOW, RED]);
    }

    #[test]
    fn counts_survive_new_rates_and_green_packets_of_a_meter_without_rates_count() {
        let mut m = Meter::default();
        m.execute(0, 1, 100);
        m.configure(Some(Rates { cir: 1, cburst: 1, pir: 1, pburst: 1, eburst: 0 }));
        m.execute(0, 1, 100);
        assert_eq!(m.counts()[0].packets, 2);
        m.clear_counts();
        assert_eq!(m.counts()[0].packets, 0);
    }

    #[test]
    fn red_packets_cost_no_committed_tokens() {
        let mut m = meter(10, 1000, 10, 100);
        assert_eq!(m.execute(0, 500, 500), RED);
        assert_eq!(m.execute(0, 100, 100), GREEN);
    }

    #[test]
    fn fractions_of_tokens_are_not_lost_between_packets() {
        let mut m = meter(3, 1, 3, 1);
        // Asked every 100 ms for 10 s: 31 tokens in all (30 and the full bucket at the start).
        let green = (0..=100).filter(|i| m.execute(i * 100_000, 1, 1) == GREEN).count();
        assert_eq!(green, 31);
    }
}
