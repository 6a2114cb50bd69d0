//! Sets of values of one field. In: byte strings of one length. Out: whether two sets share a value. Must not know P4Info.

/// A set of values. All byte strings of one field have the field's length, big-endian.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// All.
    Any,
    /// One.
    Value(Vec<u8>),
    /// Those that are equal to `value` where `mask` has ones; `value` has zeros elsewhere.
    Masked {
        /// The bits.
        value: Vec<u8>,
        /// Which of them count.
        mask: Vec<u8>,
    },
    /// From `low` to `high`, both included.
    Range {
        /// The smallest.
        low: Vec<u8>,
        /// The largest.
        high: Vec<u8>,
    },
}

impl Form {
    /// Whether it holds no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Range { low, high } if low > high)
    }

    /// The same set in the first variant that can say it, so that equal sets of a field of `width` bits compare equal: an
    /// empty mask is `Any`, a full one a `Value`, as is a range of one.
    #[must_use]
    pub fn normal(&self, width: u32) -> Self {
        let full = prefix_mask(width, width);
        let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        match self {
            Self::Masked { mask, .. } if zero(mask) => Self::Any,
            Self::Masked { value, mask } if *mask == full => Self::Value(value.clone()),
            Self::Range { low, high } if low == high => Self::Value(low.clone()),
            Self::Range { low, high } if zero(low) && *high == full => Self::Any,
            other => other.clone(),
        }
    }

    /// Whether two sets share a value.
    #[must_use]
    pub fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, set) | (set, Self::Any) => !set.is_empty(),
            (Self::Range { low: a, high: b }, Self::Range { low: c, high: d }) => {
                a.max(c) <= b.min(d)
            }
            (Self::Range { low, high }, set) | (set, Self::Range { low, high }) => {
                let (value, mask) = set.bits();
                least(low, &value, &mask).is_some_and(|least| least <= *high)
            }
            (left, right) => {
                let ((a, m), (b, n)) = (left.bits(), right.bits());
                let pairs = a.iter().zip(&b).zip(m.iter().zip(&n));
                a.len() == b.len() && pairs.into_iter().all(|((a, b), (m, n))| (a ^ b) & m & n == 0)
            }
        }
    }

    /// Value and mask of a single value or masked set; nothing counts for others.
    fn bits(&self) -> (Vec<u8>, Vec<u8>) {
        match self {
            Self::Value(value) => (value.clone(), vec![0xff; value.len()]),
            Self::Masked { value, mask } => (value.clone(), mask.clone()),
            Self::Range { low, .. } => (vec![0; low.len()], vec![0; low.len()]),
            Self::Any => (Vec::new(), Vec::new()),
        }
    }
}

/// The mask of a prefix of `length` of `width` bits.
#[must_use]
pub fn prefix_mask(width: u32, length: u32) -> Vec<u8> {
    let bytes = (width as usize).div_ceil(8);
    let spare = bytes * 8 - width as usize;
    let mut mask = vec![0; bytes];
    for bit in spare..spare + length.min(width) as usize {
        mask[bit / 8] |= 0x80 >> (bit % 8);
    }
    mask
}

/// The length of the prefix that a mask is, if it is one.
#[must_use]
pub fn prefix_length(width: u32, mask: &[u8]) -> Option<u32> {
    let length: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    (prefix_mask(width, length) == mask).then_some(length)
}

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] & (0x80 >> (at % 8)) != 0
}

/// The smallest number that is at least `low` and equals `value` where `mask` has ones.
fn least(low: &[u8], value: &[u8], mask: &[u8]) -> Option<Vec<u8>> {
    // The free bits as in `low`: right unless a fixed bit makes the number smaller than `low`.
    let mut number: Vec<u8> = low
        .iter()
        .zip(value)
        .zip(mask)
        .map(|((low, value), mask)| low & !mask | value & mask)
        .collect();
    if number.len() != low.len() {
        return None;
    }
    let bits = number.len() * 8;
    let Some(first) = (0..bits).find(|at| bit(&number, *at) != bit(low, *at)) else {
        return Some(number);
    };
    let turn = if bit(&number, first) {
        // Already larger at `first`: what is free behind it may be zero.
        first
    } else {
        // Smaller at `first`: the last free zero in front of it must become one.
        let free = |at: &usize| !bit(mask, *at) && !bit(&number, *at);
        let at = (0..first).rev().find(free)?;
        number[at / 8] |= 0x80 >> (at % 8);
        at
    };
    for at in turn + 1..bits {
        if !bit(mask, at) {
            number[at / 8] &= !(0x80 >> (at % 8));
        }
    }
    Some(number)
}
