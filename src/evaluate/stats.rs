//! Means and orders. In: numbers. Out: numbers. Must not know what of.

/// Mean; not a number for none.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for value in values {
        sum += value;
        count += 1.0;
    }
    sum / count
}

/// The value below which a share of the values lie (nearest rank); not a number for none.
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1).min(last)).copied().unwrap_or(f64::NAN)
}

/// Kendall's tau-b of two lists of equal length: 1 for the same order, -1 for the reverse. Not a number if one list is all ties or
/// holds a value that is no number, which has no place in an order.
pub(super) fn kendall(a: &[f64], b: &[f64]) -> f64 {
    if a.iter().chain(b).any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let (mut same, mut ties_a, mut ties_b, mut pairs) = (0.0, 0.0, 0.0, 0.0);
    for i in 0..a.len().min(b.len()) {
        for j in 0..i {
            let (x, y) = (a[i] - a[j], b[i] - b[j]);
            pairs += 1.0;
            ties_a += f64::from(u8::from(x == 0.0));
            ties_b += f64::from(u8::from(y == 0.0));
            if x != 0.0 && y != 0.0 {
                same += if (x > 0.0) == (y > 0.0) { 1.0 } else { -1.0 };
            }
        }
    }
    same / ((pairs - ties_a) * (pairs - ties_b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kendall_is_one_for_one_order_and_counts_ties_in_neither() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), 1.0);
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        assert!((kendall(&[1.0, 1.0, 2.0], &[1.0, 2.0, 3.0]) - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12);
        assert!(kendall(&[1.0, 1.0], &[1.0, 2.0]).is_nan());
        assert!(kendall(&[1.0, f64::NAN, 3.0], &[1.0, 2.0, 3.0]).is_nan());
    }

    #[test]
    fn quantiles_are_values_that_occur() {
        let values = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(
            [0.0, 0.5, 0.75, 1.0].map(|share| quantile(&values, share)),
            [1.0, 2.0, 3.0, 4.0]
        );
        assert!(quantile(&[], 0.5).is_nan() && mean([]).is_nan());
    }
}
