//! Quantities with units, as people write them. In: text such as `25Gbps`, `1.34GB`, `250ms`. Out: exact integers in
//! bits per second, bytes and nanoseconds. Must not know files: callers add the place to the error.

use crate::time::Span;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A link or flow rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Why a quantity could not be read; says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Nothing before the unit, or not a number.
    #[error("'{text}' does not start with a number; write for example {example}")]
    NotANumber {
        /// What was written.
        text: String,
        /// What would have been right.
        example: &'static str,
    },
    /// A number without a unit.
    #[error("'{text}' has no unit; write for example {example}")]
    NoUnit {
        /// What was written.
        text: String,
        /// What would have been right.
        example: &'static str,
    },
    /// A unit that does not belong to this quantity.
    #[error("'{unit}' in '{text}' is not a unit of {quantity}; use one of {known}")]
    UnknownUnit {
        /// What was written.
        text: String,
        /// The part that is not known.
        unit: String,
        /// The quantity wanted.
        quantity: &'static str,
        /// All units that would do.
        known: String,
    },
    /// Negative, or larger than fits in 64 bits.
    #[error("'{text}' is out of range for {quantity}: it must lie between 0 and {max}")]
    OutOfRange {
        /// What was written.
        text: String,
        /// The quantity wanted.
        quantity: &'static str,
        /// The largest value.
        max: u64,
    },
}

struct Scale {
    quantity: &'static str,
    example: &'static str,
    units: &'static [(&'static str, f64)],
}

const RATE: Scale = Scale {
    quantity: "a bit rate",
    example: "25Gbps",
    units: &[("Tbps", 1e12), ("Gbps", 1e9), ("Mbps", 1e6), ("kbps", 1e3), ("bps", 1.0)],
};
const SIZE: Scale = Scale {
    quantity: "a size",
    example: "1.34GB",
    units: &[
        ("TiB", 1_099_511_627_776.0),
        ("GiB", 1_073_741_824.0),
        ("MiB", 1_048_576.0),
        ("KiB", 1_024.0),
        ("TB", 1e12),
        ("GB", 1e9),
        ("MB", 1e6),
        ("kB", 1e3),
        ("B", 1.0),
    ],
};
const SPAN: Scale = Scale {
    quantity: "a time",
    example: "250ms",
    units: &[
        ("min", 60e9),
        ("ms", 1e6),
        ("us", 1e3),
        ("µs", 1e3),
        ("ns", 1.0),
        ("s", 1e9),
        ("h", 3600e9),
    ],
};

/// Largest value accepted: 2^53, the integers that an f64 holds exactly, far above any real quantity here.
const MAX_QUANTITY: u64 = 1 << 53;

fn parse(text: &str, scale: &Scale) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let split =
        trimmed.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(trimmed.len());
    let (number, unit) = (trimmed[..split].trim(), &trimmed[split..]);
    let value: f64 = number
        .parse()
        .map_err(|_| UnitError::NotANumber { text: text.to_owned(), example: scale.example })?;
    if unit.is_empty() {
        return Err(UnitError::NoUnit { text: text.to_owned(), example: scale.example });
    }
    let Some((_, factor)) = scale.units.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
            quantity: scale.quantity,
            known: scale.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
        });
    };
    let scaled = (value * factor).round();
    if !(0.0..=MAX_QUANTITY as f64).contains(&scaled) {
        return Err(UnitError::OutOfRange {
            text: text.to_owned(),
            quantity: scale.quantity,
            max: MAX_QUANTITY,
        });
    }
    Ok(scaled as u64)
}

fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    for (name, factor) in units {
        if value >= *factor {
            let scaled = value as f64 / *factor as f64;
            let text = format!("{scaled:.3}");
            return write!(f, "{}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    let (name, _) = units.last().copied().unwrap_or(("", 1));
    write!(f, "{value}{name}")
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &RATE).map(Self)
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &SIZE).map(Self)
    }
}

impl FromStr for Span {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &SPAN).map(Self)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(
            f,
            self.0,
            &[
                ("Tbps", 1_000_000_000_000),
                ("Gbps", 1_000_000_000),
                ("Mbps", 1_000_000),
                ("kbps", 1_000),
                ("bps", 1),
            ],
        )
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(
            f,
            self.0,
            &[
                ("TB", 1_000_000_000_000),
                ("GB", 1_000_000_000),
                ("MB", 1_000_000),
                ("kB", 1_000),
                ("B", 1),
            ],
        )
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)])
    }
}

macro_rules! serde_as_text {
    ($name:ident) => {
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
serde_as_text!(BitRate);
serde_as_text!(Bytes);

impl BitRate {
    /// Time to put `bytes` on a wire of this rate, rounded up to a nanosecond; a rate of 0 never finishes
    /// (`u64::MAX` ns).
    #[must_use]
    pub fn transmission(self, bytes: u64) -> Span {
        if self.0 == 0 {
            return Span(u64::MAX);
        }
        let ns = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_people_write_them() {
        assert_eq!("25Gbps".parse(), Ok(BitRate(25_000_000_000)));
        assert_eq!("1.34GB".parse(), Ok(Bytes(1_340_000_000)));
        assert_eq!("4MiB".parse(), Ok(Bytes(4_194_304)));
        assert_eq!("250ms".parse(), Ok(Span(250_000_000)));
        assert_eq!(" 1e3 kbps ".trim().parse(), Ok(BitRate(1_000_000)));
        assert_eq!("1min".parse(), Ok(Span(60_000_000_000)));
    }

    #[test]
    fn wrong_quantities_say_what_to_write() {
        for (text, part) in [
            ("fast", "does not start with a number"),
            ("25", "has no unit"),
            ("25Gb", "is not a unit"),
            ("-1Gbps", "out of range"),
            ("1e30Gbps", "out of range"),
        ] {
            let error = text.parse::<BitRate>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn display_reads_back() {
        for value in [0_u64, 1, 999, 25_000_000_000, 1_500_000] {
            assert_eq!(BitRate(value).to_string().parse(), Ok(BitRate(value)));
            assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
            assert_eq!(Span(value).to_string().parse(), Ok(Span(value)));
        }
    }

    #[test]
    fn transmission_rounds_up_and_never_divides_by_zero() {
        assert_eq!(BitRate(1_000_000_000).transmission(1500), Span(12_000));
        assert_eq!(BitRate(3).transmission(1), Span(2_666_666_667));
        assert_eq!(BitRate(0).transmission(1), Span(u64::MAX));
    }
}
