//! A rank of a synthetic training job: it computes by sleeping and reduces a real buffer over TCP, ring by ring.
//!
//! In: who the ranks are, bytes, times. Out: the time of each iteration, or who went away. Must not know controllers, switches, plans: to
//! the fabric it is one more program that uses TCP.
//!
//! ```text
//!  compute (sleep) ─► ring AllReduce: n-1 steps that add, n-1 steps that copy ─► check the sum ─► next iteration
//!                        each step: one n-th of the buffer to the next rank, one n-th from the one before, at the same time
//! ```
//! Edge `i` of channel `c` is the connection from rank `i` to rank `i + 1`, on port `first_port + c * ranks + i` of the receiver, as
//! `workload::Transport::Tcp` tells the switches.

mod breaker;
mod connect;
pub mod elastic;
mod pace;
pub mod post;
mod ring;

pub use breaker::Breaker;
pub use connect::{Ring, WorkerError, connect};
pub use post::{Member, Order, Post, State};

use crate::time::Span;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What a rank needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Name of the job; ranks of other jobs are turned away.
    pub job: String,
    /// This rank.
    pub rank: usize,
    /// Addresses of all ranks in ring order, at least 2.
    pub peers: Vec<IpAddr>,
    /// Which membership of the job this is; ranks of another are turned away.
    pub generation: u32,
    /// Port of edge 0 of channel 0.
    pub first_port: u16,
    /// Parallel rings, each with an equal share of the buffer.
    pub channels: u16,
    /// Gradient bytes, reduced in every iteration.
    pub bytes: u64,
    /// Time that an iteration computes.
    pub compute: Span,
    /// A file with the share of its speed at which the rank computes, read before every iteration; 1 without it.
    pub pace: Option<PathBuf>,
    /// How long to wait for the other ranks to be there, and later for the next byte of one.
    pub patience: Duration,
}

/// What one iteration took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// From 0.
    pub number: u32,
    /// Time that it computed.
    pub compute: Duration,
    /// Time from the first byte handed to TCP to the last byte reduced.
    pub communication: Duration,
    /// When the first byte was handed to TCP, by the machine's clock.
    pub began: SystemTime,
}

/// Most channels: each has a thread, and NCCL uses at most half as many.
pub const CHANNELS_MAX: u16 = 64;
/// Largest buffer: a rank holds it twice.
pub const BYTES_MAX: u64 = 8 << 30;
