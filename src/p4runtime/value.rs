//! Numbers on the wire (P4Runtime specification, section 8.3, "Bytestrings").
//! In: integers or byte strings. Out: the canonical form, which is big-endian, as short as possible, and one zero byte
//! for zero. Must not know P4Info: who knows a width passes it.
//!
//! Values wider than 128 bits are handled as bytes throughout; `encode` and `decode` serve the common narrow ones.

/// The canonical byte string of a number.
#[must_use]
pub fn encode(value: u128) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    canonical(&bytes).to_vec()
}

/// The number in a byte string, canonical or not; `None` when it is empty or needs more than 128 bits.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<u128> {
    if bytes.is_empty() {
        return None;
    }
    let short = canonical(bytes);
    if short.len() > 16 {
        return None;
    }
    Some(short.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
}

/// The number in a byte string if it is valid on the wire and fits into 64 bits; for fields known to be that narrow.
#[must_use]
pub fn decode_u64(bytes: &[u8]) -> Option<u64> {
    decode(bytes).and_then(|value| u64::try_from(value).ok())
}

/// The canonical part of a byte string: leading zeros dropped, one kept for zero. Empty stays empty.
#[must_use]
pub fn canonical(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    &bytes[zeros.min(bytes.len().saturating_sub(1))..]
}

/// Whether a byte string has the form that servers must send: not empty, no leading zero.
#[must_use]
pub fn is_canonical(bytes: &[u8]) -> bool {
    !bytes.is_empty() && canonical(bytes).len() == bytes.len()
}

/// Whether two byte strings hold the same number, however many leading zeros they carry. An empty string is no number
/// and equals only itself.
#[must_use]
pub fn same(left: &[u8], right: &[u8]) -> bool {
    canonical(left) == canonical(right)
}

/// Number of significant bits: 0 for zero and for the empty string.
#[must_use]
pub fn bit_length(bytes: &[u8]) -> usize {
    let short = canonical(bytes);
    match short.first() {
        None => 0,
        Some(first) => short.len() * 8 - first.leading_zeros() as usize,
    }
}

/// The value as exactly `width_bits.div_ceil(8)` bytes, zeros in front; `None` when it does not fit into the width or
/// is empty.
#[must_use]
pub fn padded(bytes: &[u8], width_bits: usize) -> Option<Vec<u8>> {
    if bytes.is_empty() || bit_length(bytes) > width_bits {
        return None;
    }
    let short = canonical(bytes);
    let length = width_bits.div_ceil(8);
    // A zero in a field of width zero has one canonical byte and no place for it.
    let short = &short[short.len().saturating_sub(length)..];
    let mut out = vec![0; length - short.len()];
    out.extend_from_slice(short);
    Some(out)
}

/// The canonical part of a two's complement byte string (type `int<W>`): copies of the sign bit dropped, one kept.
/// Empty stays empty.
#[must_use]
pub fn canonical_signed(bytes: &[u8]) -> &[u8] {
    let repeats = bytes.windows(2).take_while(|pair| match pair[0] {
        0x00 => pair[1] & 0x80 == 0,
        0xff => pair[1] & 0x80 != 0,
        _ => false,
    });
    &bytes[repeats.count()..]
}

/// Number of bits that a two's complement number needs, the sign included: 1 for 0 and -1, 0 for the empty string.
#[must_use]
pub fn bit_length_signed(bytes: &[u8]) -> usize {
    let short = canonical_signed(bytes);
    match short.first() {
        None => 0,
        Some(first) => {
            let copies =
                if first & 0x80 == 0 { first.leading_zeros() } else { first.leading_ones() };
            short.len() * 8 + 1 - copies as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_specification_hold() {
        // Section 8.3: 99 in a bit<8>, 12388 in a bit<16>, 0 in any width.
        assert_eq!(encode(99), [0x63]);
        assert_eq!(encode(12388), [0x30, 0x64]);
        assert_eq!(encode(0), [0]);
        assert_eq!(decode(&[0, 0x63]), Some(99));
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[1; 17]), None);
        assert_eq!(decode(&[0; 40]), Some(0));
        assert!(
            !is_canonical(&[])
                && !is_canonical(&[0, 1])
                && is_canonical(&[0])
                && is_canonical(&[1, 0])
        );
        assert!(
            same(&[0, 0, 5], &[5])
                && same(&[0], &[0, 0])
                && !same(&[], &[0])
                && !same(&[5], &[5, 0])
        );
    }

    #[test]
    fn padding_fills_to_the_width_and_refuses_what_does_not_fit() {
        assert_eq!(padded(&[1], 9), Some(vec![0, 1]));
        assert_eq!(padded(&[0, 0, 1, 0xff], 9), Some(vec![1, 0xff]));
        assert_eq!(padded(&[2, 0], 9), None);
        assert_eq!(padded(&[0xff; 5], 33), None);
        assert_eq!(padded(&[], 8), None);
        assert_eq!(padded(&[0], 0), Some(vec![]));
    }

    #[test]
    fn signed_examples_of_the_specification_hold() {
        // Section 8.3: 99 and -99 in an int<8>, -739 in an int<12>, and what does not fit.
        assert_eq!(canonical_signed(&[0xff, 0x9d]), [0x9d]);
        assert_eq!(canonical_signed(&[0x00, 0x00]), [0x00]);
        assert_eq!(canonical_signed(&[0xff, 0xff]), [0xff]);
        assert_eq!(canonical_signed(&[0x00, 0x9d]), [0x00, 0x9d]);
        assert_eq!(bit_length_signed(&[0x63]), 8);
        assert_eq!(bit_length_signed(&[0xff, 0x9d]), 8);
        assert_eq!(bit_length_signed(&[0xfd, 0x1d]), 11);
        assert_eq!(bit_length_signed(&[0x00, 0x9d]), 9);
        assert_eq!(bit_length_signed(&[0x8d, 0x1d]), 16);
        assert_eq!(
            (bit_length_signed(&[0]), bit_length_signed(&[0xff]), bit_length_signed(&[])),
            (1, 1, 0)
        );
    }

    proptest! {
        #[test]
        fn encoding_is_canonical_and_decodes_to_the_same_number(value: u128, zeros in 0_usize..4) {
            let bytes = encode(value);
            prop_assert!(is_canonical(&bytes));
            prop_assert_eq!(decode(&bytes), Some(value));
            prop_assert_eq!(bit_length(&bytes), 128 - value.leading_zeros() as usize);
            let long = [vec![0; zeros], bytes.clone()].concat();
            prop_assert!(same(&long, &bytes));
            prop_assert_eq!(decode(&long), Some(value));
            prop_assert_eq!(padded(&long, 128).map(|bytes| bytes.len()), Some(16));
        }
    }
}
