//! Reading and writing fields that start at any bit. In: bytes in network order. Out: 64-bit values and back. Must not
//! know what a field is.

/// The `width` bits (1..=64) at bit `at` of the bytes, right-aligned. Bits beyond the end are 0.
#[must_use]
pub fn read(bytes: &[u8], at: usize, width: u32) -> u64 {
    let (first, skip) = (at / 8, (at % 8) as u32);
    if let Some(window) = bytes.get(first..first + 8)
        && let Ok(window) = <[u8; 8]>::try_from(window)
        && skip + width <= 64
    {
        return (u64::from_be_bytes(window) << skip) >> (64 - width);
    }
    let mut value = 0_u128;
    for i in 0..9 {
        value = value << 8 | u128::from(bytes.get(first + i).copied().unwrap_or(0));
    }
    let cut = value << (56 + skip) >> (128 - width);
    cut as u64
}

/// Appends fields to a buffer, most significant bit first.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    bits: u32,
}

impl<'a> Writer<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, word: 0, bits: 0 }
    }

    /// Appends the low `width` bits (0..=64) of `value`; higher bits must be 0.
    pub fn push(&mut self, value: u64, width: u32) {
        let total = self.bits + width;
        if total < 64 {
            self.word = self.word << width | value;
            self.bits = total;
            return;
        }
        let rest = total - 64;
        let full = if self.bits == 0 {
            value >> rest
        } else {
            self.word << (64 - self.bits) | value >> rest
        };
        self.out.extend_from_slice(&full.to_be_bytes());
        self.word = if rest == 0 { 0 } else { value & (u64::MAX >> (64 - rest)) };
        self.bits = rest;
    }

    /// Appends a value of any width: limbs, least significant first.
    pub fn push_limbs(&mut self, limbs: &[u64], width: u32) {
        if width <= 64 {
            if let Some(limb) = limbs.first() {
                self.push(*limb, width);
            }
            return;
        }
        let mut left = width;
        for limb in limbs.iter().rev() {
            let part = if left.is_multiple_of(64) { 64 } else { left % 64 };
            self.push(*limb, part);
            left -= part;
        }
    }

    /// Whether the bits so far are whole bytes.
    #[must_use]
    pub fn aligned(&self) -> bool {
        self.bits.is_multiple_of(8)
    }

    /// Fills the last byte with zeros and hands the bytes over.
    pub fn finish(self) {
        let bytes = self.bits.div_ceil(8);
        if bytes > 0 {
            let word = self.word << (64 - self.bits);
            self.out.extend_from_slice(&word.to_be_bytes()[..bytes as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(fields in proptest::collection::vec((1_u32..=64, any::<u64>()), 1..40)) {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            for (width, value) in &fields {
                writer.push(value & (u64::MAX >> (64 - width)), *width);
            }
            writer.finish();
            let mut at = 0;
            for (width, value) in &fields {
                prop_assert_eq!(read(&bytes, at, *width), value & (u64::MAX >> (64 - width)));
                at += *width as usize;
            }
            prop_assert_eq!(bytes.len(), at.div_ceil(8));
        }
    }

    #[test]
    fn bits_beyond_the_end_read_as_zero() {
        assert_eq!(read(&[0xff], 4, 16), 0xf000);
        assert_eq!(read(&[], 0, 64), 0);
        assert_eq!(read(&[0xff], 4000, 64), 0);
    }

    #[test]
    fn wide_values_go_out_most_significant_limb_first() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.push(1, 4);
        writer.push_limbs(&[0x1122_3344_5566_7788, 0xa], 68);
        writer.finish();
        assert_eq!(bytes, [0x1a, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    }
}
