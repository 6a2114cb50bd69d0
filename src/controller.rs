//! The controller: it owns the loop from jobs to installed entries.
//!
//! In: jobs, link and switch events, answers of switches ([`messages::Input`]). Out: calls, stream messages, records,
//! timers, events ([`messages::Output`]). [`core`] decides and does no I/O; whoever drives it does (the simulator in
//! virtual time, [`driver`] over sockets). Must not know the switch's implementation.

pub mod config;
pub mod core;
pub mod driver;
pub mod messages;
pub mod outcome;
pub mod record;
pub mod rollout;
pub mod store;

pub use config::{
    Artifacts, Config, FeedbackConfig, Limits, Planning, ProbeConfig, SharedPolicy,
    TelemetryConfig, TelemetryWay, policies,
};
pub use messages::{Event, Input, Output, RequestId, StreamNo, TimerKey};
