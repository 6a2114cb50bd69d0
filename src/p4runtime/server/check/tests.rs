//! The byte arithmetic of keys against the same in 128-bit integers.

use super::key::{all_ones, compare, covered, trailing_zeros};
use crate::p4runtime::value::encode;
use proptest::prelude::*;

fn ones(width: u32) -> u128 {
    if width == 128 { u128::MAX } else { (1 << width) - 1 }
}

proptest! {
    #[test]
    fn byte_strings_behave_like_integers(
        left: u128, right: u128, width in 1_u32..=128, shift in 0_u32..128,
    ) {
        // Shifted values have long runs of zeros at either end, which random ones have not.
        let (left, right) = ((left << shift) & ones(width), right & ones(width));
        let (a, b) = (encode(left), encode(right));
        prop_assert_eq!(compare(&a, &b), left.cmp(&right));
        prop_assert_eq!(covered(&a, &b), left & right == left);
        prop_assert!(covered(&encode(left & right), &b));
        prop_assert_eq!(trailing_zeros(&a, width), left.trailing_zeros().min(width));
        prop_assert_eq!(all_ones(&a, width), left == ones(width));
        prop_assert!(all_ones(&encode(ones(width)), width));
    }
}
