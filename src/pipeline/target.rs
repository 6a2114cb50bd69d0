//! What differs between the targets that the program is compiled for.
//!
//! In: P4Info (its architecture). Out: the length of a tick with every conversion from and to it, the CPU port, and what
//! the program cannot do there. Must not know tables, entries, or which switch it is.
//!
//! The deviations are listed and explained in p4/README.md, "Tofino"; v1model has none.

use super::schema::ProgramError;
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::time::Span;

/// What the program was compiled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// BMv2's simple_switch and the embedded switch.
    #[default]
    V1model,
    /// Tofino 1.
    Tofino,
}

impl Target {
    /// The target that a P4Info was made for; one that does not say so is v1model's.
    ///
    /// # Errors
    /// [`ProgramError::Architecture`] for any other.
    pub fn of(index: &Index) -> Result<Self, ProgramError> {
        match index.info().pkg_info.as_ref().map_or("", |info| info.arch.as_str()) {
            "" | "v1model" => Ok(Self::V1model),
            "tna" => Ok(Self::Tofino),
            other => Err(ProgramError::Architecture { found: other.to_owned() }),
        }
    }

    /// The tick of its clock.
    #[must_use]
    pub const fn tick(self) -> Tick {
        match self {
            Self::V1model => Tick::MICROSECOND,
            Self::Tofino => Tick::SHIFTED,
        }
    }

    /// The port of packets from and to the controller; on Tofino a constant of the program that depends on the board
    /// (p4/tna/externs.p4).
    #[must_use]
    pub const fn cpu_port(self) -> PortNo {
        match self {
            Self::V1model => PortNo(510),
            Self::Tofino => PortNo(192),
        }
    }

    /// A gap threshold in ticks: rounded up, and no longer than the target can compare.
    #[must_use]
    pub fn gap(self, span: Span) -> u32 {
        let longest = match self {
            Self::V1model => u32::MAX,
            // A register's sign bit tells: a longer silence would pass for a short one (p4/README.md, "Deviations").
            Self::Tofino => i32::MAX.cast_unsigned(),
        };
        self.tick().count(span).min(longest)
    }
}

/// The length of a tick, nanoseconds.
///
/// Clocks and their differences are 32 bits of ticks. A difference is taken modulo 2³², so the clock may wrap between
/// two readings; two readings further apart than a whole turn, 71.6 minutes on v1model and 73.3 on Tofino, cannot be told from nearer ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick(u32);

impl Default for Tick {
    fn default() -> Self {
        Self::MICROSECOND
    }
}

impl Tick {
    /// v1model's clock counts microseconds.
    pub const MICROSECOND: Self = Self(1_000);
    /// Tofino's counts nanoseconds; the program drops the low ten bits.
    pub const SHIFTED: Self = Self(1_024);

    /// A number of ticks as a span.
    #[must_use]
    pub const fn span(self, ticks: u64) -> Span {
        Span(ticks.saturating_mul(self.0 as u64))
    }

    /// A span in ticks, rounded up; `u32::MAX` for spans beyond.
    #[must_use]
    pub fn count(self, span: Span) -> u32 {
        u32::try_from(span.0.div_ceil(self.0.into())).unwrap_or(u32::MAX)
    }

    /// The span between two readings of one clock.
    #[must_use]
    pub const fn between(self, earlier: u32, later: u32) -> Span {
        self.span(later.wrapping_sub(earlier) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_converted_by_the_length_of_the_target_s_tick() {
        let (micro, shifted) = (Target::V1model.tick(), Target::Tofino.tick());
        assert_eq!((micro.span(1_000), shifted.span(1_000)), (Span(1_000_000), Span(1_024_000)));
        // 200 µs, the default gap: a threshold is never shorter than asked for.
        let gap = Span::from_micros(200);
        assert_eq!((micro.count(gap), shifted.count(gap)), (200, 196));
        assert!(shifted.span(196) >= gap && shifted.span(195) < gap);
        assert_eq!((micro.count(Span(1)), shifted.count(Span::ZERO)), (1, 0));
        assert_eq!(micro.count(Span(u64::MAX)), u32::MAX);
    }

    #[test]
    fn a_difference_of_readings_survives_the_wrap_of_the_clock() {
        for target in [Target::V1model, Target::Tofino] {
            let tick = target.tick();
            assert_eq!(tick.between(7, 19), tick.span(12));
            assert_eq!(tick.between(u32::MAX - 4, 7), tick.span(12));
            assert_eq!(tick.between(1, 0) + tick.span(1), tick.span(1 << 32));
        }
    }

    #[test]
    fn a_gap_is_no_longer_than_the_target_can_compare() {
        let hour = Span(3_600_000_000_000);
        assert_eq!(Target::V1model.gap(hour), 3_600_000_000);
        assert_eq!(Target::Tofino.gap(hour), 0x7fff_ffff);
        assert_eq!(Target::Tofino.gap(Span::from_millis(1)), 977);
    }
}
