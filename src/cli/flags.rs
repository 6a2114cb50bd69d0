//! Flags that several commands take, and what they stand for in the library.
//!
//! In: words of the command line. Out: the library's values. Must not know what the commands do with them.

use crate::controller::{TelemetryConfig, TelemetryWay};
use crate::feedback::Mode;
use crate::solver::Objective;
use crate::time::Span;

/// What is read of the fabric, and what is done about stragglers.
#[derive(Clone, Debug, clap::Args)]
pub struct Watch {
    /// How the controller reads the switches' registers while jobs run (docs/telemetry.md).
    #[arg(long, value_enum, default_value_t = Reading::Auto)]
    pub telemetry: Reading,
    /// How often it reads them, for example `100ms`.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub telemetry_interval: Span,
    /// How stragglers are helped (docs/feedback.md); in `demo`, in the second run of `joint`, which `none` leaves out.
    #[arg(long, value_enum, default_value_t = Help::Best)]
    pub feedback: Help,
    /// How far below expectation a flow must be to count as a straggler, as a share.
    #[arg(long, value_name = "X", default_value_t = RHO, value_parser = rho)]
    pub rho: f64,
}

/// ρ as published.
pub const RHO: f64 = 0.2;

impl Watch {
    /// The telemetry that the flags ask for.
    #[must_use]
    pub fn telemetry(&self) -> TelemetryConfig {
        let (way, interval) = (self.telemetry.into(), self.telemetry_interval);
        TelemetryConfig { way, interval, ..TelemetryConfig::default() }
    }
}

/// What is done about stragglers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Help {
    /// Nothing.
    None,
    /// One queue up (the published method).
    Raise,
    /// The best of nothing, another path, one queue up, by simulation on measured capacities.
    Best,
}

impl From<Help> for Mode {
    fn from(help: Help) -> Self {
        match help {
            Help::None => Self::None,
            Help::Raise => Self::Raise,
            Help::Best => Self::Best,
        }
    }
}

/// Reads ρ.
///
/// # Errors
/// Says what is allowed.
pub fn rho(text: &str) -> Result<f64, String> {
    let value: f64 =
        text.parse().map_err(|_| format!("'{text}' is no number; write for example 0.2"))?;
    if value > 0.0 && value < 1.0 {
        return Ok(value);
    }
    Err(format!("ρ = {text} is out of range; it is a share above 0 and below 1, by default 0.2"))
}

/// Objectives as flags (docs/scheduling).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Goal {
    /// Mean communication time over jobs.
    Comm,
    /// GPU utilisation.
    Utilisation,
    /// Mean communication time over utilisation.
    Both,
    /// Mean slowdown against a job alone.
    Slowdown,
    /// Largest communication time.
    Max,
    /// Sum of drain times when all flows start together.
    Drain,
    /// Static estimate with all flows active.
    Static,
}

impl From<Goal> for Objective {
    fn from(goal: Goal) -> Self {
        match goal {
            Goal::Comm => Self::Comm,
            Goal::Utilisation => Self::Utilisation,
            Goal::Both => Self::Both,
            Goal::Slowdown => Self::Slowdown,
            Goal::Max => Self::Max,
            Goal::Drain => Self::Drain,
            Goal::Static => Self::Static,
        }
    }
}

/// Ways of reading registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Reading {
    /// By RegisterEntry where a switch offers it, by readout packets elsewhere.
    Auto,
    /// By packets to and from the CPU port.
    Readout,
    /// By RegisterEntry only.
    Register,
    /// Not at all.
    Off,
}

impl From<Reading> for TelemetryWay {
    fn from(reading: Reading) -> Self {
        match reading {
            Reading::Auto => Self::Auto,
            Reading::Readout => Self::Readout,
            Reading::Register => Self::Register,
            Reading::Off => Self::Off,
        }
    }
}
