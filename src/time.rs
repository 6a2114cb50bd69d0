//! Virtual time and the seeded generator. In: a seed, a `now` from whoever owns the clock. Out: instants, spans,
//! random streams. Must not read a clock: cores take `now` as an argument.

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use std::ops::{Add, AddAssign, Sub};

/// An instant in nanoseconds since the start of the run (virtual or monotone, the owner of the clock decides).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Seconds since the start of the run.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of whole microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// A span of seconds, rounded to nanoseconds. Negative and NaN become zero, too large saturates.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// The span in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    /// Saturates at zero.
    fn sub(self, earlier: Self) -> Span {
        self.since(earlier)
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// A random stream of its own for each (seed, purpose, index): adding a draw to one purpose never shifts the draws
/// of another, so a scenario's placement stays the same when, say, jitter learns a new draw.
#[must_use]
pub fn stream(seed: u64, purpose: &str, index: u64) -> Pcg64 {
    // FNV-1a over the purpose; any fixed mixing will do, and this one is short and stable across platforms.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in purpose.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut key = [0_u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&hash.to_le_bytes());
    // The second half selects the generator's increment, whose lowest bit is forced to 1: keep the index clear of it.
    key[17..25].copy_from_slice(&index.to_le_bytes());
    Pcg64::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;

    #[test]
    fn streams_differ_by_seed_purpose_and_index_and_repeat() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).random::<u64>();
        assert_eq!(draw(1, "jitter", 0), draw(1, "jitter", 0));
        assert_ne!(draw(1, "jitter", 0), draw(2, "jitter", 0));
        assert_ne!(draw(1, "jitter", 0), draw(1, "placement", 0));
        assert_ne!(draw(1, "jitter", 0), draw(1, "jitter", 1));
    }

    #[test]
    fn spans_saturate_instead_of_wrapping() {
        assert_eq!(Time(5) - Time(9), Span::ZERO);
        assert_eq!(Time::NEVER + Span(1), Time::NEVER);
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
    }
}
