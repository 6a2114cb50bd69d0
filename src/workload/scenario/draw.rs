//! Draws from the seed, one stream per purpose and thing. In: seed, purpose, index. Out: times and choices.
//! Must not know: what for.

use crate::time::{Span, stream};
use rand::RngExt as _;
use rand_pcg::Pcg64;

/// One stream of draws.
pub(super) struct Draw(Pcg64);

impl Draw {
    pub(super) fn new(seed: u64, purpose: &str, index: u64) -> Self {
        Self(stream(seed, purpose, index))
    }

    /// Uniform in `first..=last`; one that is not later than `first` gives `first`.
    pub(super) fn between(&mut self, first: Span, last: Span) -> Span {
        if first >= last {
            return first;
        }
        Span(self.0.random_range(first.0..=last.0))
    }

    /// `span` times a factor uniform in `1 - spread ..= 1 + spread`.
    pub(super) fn spread(&mut self, span: Span, spread: f64) -> Span {
        if spread <= 0.0 {
            return span;
        }
        let factor = self.0.random_range(1.0 - spread..=1.0 + spread);
        Span((span.0 as f64 * factor).round() as u64)
    }

    /// One of a list, `None` if it is empty.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        if choices.is_empty() {
            return None;
        }
        Some(choices[self.0.random_range(0..choices.len())])
    }
}
