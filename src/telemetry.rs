//! Samples of switches become bounded windows of closed intervals, one window per flow.
//!
//! In: [`Sample`]s with the interval and length that the collector knows, and what it could not get. Out: [`Window`]s,
//! and counts of what was dropped or is missing, by reason. Must not know how samples travel, jobs, paths, or what slow is.
//!
//! A sample is used only if it belongs to the tenant of the slot (epoch), to this life of the switch (incarnation) and
//! to the interval asked for; anything else is dropped and counted, and the interval is *missing*: it is never filled
//! with an older one. All times are differences on the sink leaf's clock. Cumulative cells are compared modulo 2³².

mod track;
mod window;

pub use track::{Dropped, Missing, Rules, Telemetry, Tenure, Totals};
pub use window::{Interval, WINDOW_INTERVALS, Window};

#[cfg(test)]
mod tests;
