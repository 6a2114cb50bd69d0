//! One factor that makes real models small enough to simulate packet by packet.
//!
//! In: what the jobs send, link rates. Out: σ and everything that follows from it. Must not know hosts or switches.
//!
//! Link rates and message bytes are divided by σ, so a transfer takes as long as at full size; packet size, propagation,
//! compute times and intervals stay. Windows, ring buffers and queues are bytes at full size divided by σ, with a floor
//! in packets below which the packets themselves, and no longer the rates, would decide. Gap thresholds follow the packet
//! time, which grows with σ.

use crate::sim::SimError;
use crate::sim::host::{MAX_WINDOW, Recovery, Transport};
use crate::sim::ring::Coupling;
use crate::time::Span;
use crate::topology::Topology;
use crate::units::BitRate;
use crate::workload::{Flow, Job};

/// Payload bytes per packet: the RoCE MTU that fits a 1500-byte Ethernet.
pub const PAYLOAD: u32 = 1024;
/// Data packets per policy that the default σ keeps to (docs/scheduling, "Packet simulation scale").
pub const PACKET_BUDGET: u64 = 1_000_000;
/// Fewest packets of a window: below, serialization at each hop would limit the rate.
pub const WINDOW_FLOOR: u64 = 16;
/// Chunk that a rank may send before it must receive, and buffer towards its successor: 4 MB as NCCL's default buffer.
pub const RING_BUFFER_BYTES: u64 = 4 << 20;
/// NCCL moves a buffer in 8 slots.
const SLICES_PER_BUFFER: u64 = 8;
/// Fewest packets of a ring buffer: four windows, so that the transport and not the buffer covers the path's latency.
const RING_BUFFER_FLOOR: u64 = 4 * WINDOW_FLOOR;
/// Time without an answer before a sender probes, at least; RoCE NICs are set to some milliseconds.
const TIMEOUT_FLOOR: Span = Span::from_millis(2);
/// Time-outs that a packet may be late behind its successors before it counts as lost, and the least time.
const REORDER_TIMEOUTS: u64 = 32;
const REORDER_FLOOR: Span = Span::from_millis(100);

/// What the scale is chosen from.
#[derive(Clone, Copy, Debug)]
pub struct ScaleInput<'a> {
    /// The fabric.
    pub topology: &'a Topology,
    /// Jobs by id.
    pub jobs: &'a [Job],
    /// Flows by id.
    pub flows: &'a [Flow],
    /// Data packets allowed.
    pub packet_budget: u64,
    /// σ given by the user.
    pub fixed: Option<f64>,
}

/// σ and the transport's and ring's constants at that σ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Rates and bytes are divided by this; at least 1.
    pub sigma: f64,
    /// Data packets of all iterations at this σ, without repetitions.
    pub packets: u64,
    payload: u32,
    slowest: BitRate,
    round_trip: Span,
}

impl Scale {
    /// The smallest σ that keeps the packet budget, or the one given.
    pub fn choose(input: &ScaleInput<'_>) -> Result<Self, SimError> {
        let bytes: f64 = input
            .flows
            .iter()
            .map(|flow| flow.bytes as f64 * iterations(input.jobs, flow) as f64)
            .sum();
        let budget = input.packet_budget.max(1) as f64;
        let sigma = match input.fixed {
            Some(sigma) if sigma.is_finite() && sigma >= 1.0 => sigma,
            Some(sigma) => {
                return Err(SimError::Parameter {
                    name: "packet_scale",
                    value: sigma.max(0.0) as u64,
                    range: "a number of at least 1",
                });
            }
            None => smallest(input, (bytes / f64::from(PAYLOAD) / budget).max(1.0)),
        };
        let slowest = input.topology.links().iter().map(|link| link.rate).min().unwrap_or_default();
        let delay = input.topology.links().iter().map(|link| link.delay.0).max().unwrap_or(0);
        let mut scale = Self {
            sigma,
            packets: count(input, sigma),
            payload: PAYLOAD,
            slowest: BitRate(0),
            round_trip: Span::ZERO,
        };
        scale.slowest = scale.rate(slowest);
        // The longest route of the generators has six links; acknowledgements come back the same way.
        scale.round_trip = Span(2 * 6 * delay + 6 * scale.packet_time(scale.slowest).0);
        Ok(scale)
    }

    /// A link rate at this scale; at least 1 bit/s.
    #[must_use]
    pub fn rate(&self, rate: BitRate) -> BitRate {
        BitRate(((rate.0 as f64 / self.sigma).round() as u64).max(1))
    }

    /// Message bytes at this scale; at least 1.
    #[must_use]
    pub fn bytes(&self, bytes: u64) -> u64 {
        ((bytes as f64 / self.sigma).round() as u64).max(1)
    }

    /// Payload of a full packet.
    #[must_use]
    pub fn payload(&self) -> u32 {
        self.payload
    }

    /// Packets and payload bytes of the last one, for one iteration of a flow.
    #[must_use]
    pub fn message(&self, flow: &Flow) -> (u64, u32) {
        let bytes = self.bytes(flow.bytes);
        let packets = bytes.div_ceil(u64::from(self.payload));
        let last = bytes - (packets - 1) * u64::from(self.payload);
        (packets, last as u32)
    }

    /// Time of a full packet with its headers on a link of (scaled) rate.
    #[must_use]
    pub fn packet_time(&self, rate: BitRate) -> Span {
        rate.transmission(crate::sim::host::Template::data_len(self.payload as usize) as u64)
    }

    /// Time of a full packet on the fabric's slowest link at this scale: gap thresholds follow it.
    #[must_use]
    pub fn slowest_packet_time(&self) -> Span {
        self.packet_time(self.slowest)
    }

    fn packets_of(&self, bytes: u64, floor: u64) -> u64 {
        (bytes as f64 / self.sigma / f64::from(self.payload)).round().max(floor as f64) as u64
    }

    /// The transport at this scale: a window of one bandwidth-delay product, floor [`WINDOW_FLOOR`].
    #[must_use]
    pub fn transport(&self, recovery: Recovery) -> Transport {
        let product = self.slowest.0 as f64 / 8.0 * self.round_trip.as_secs_f64();
        let packets = (product / f64::from(self.payload)).ceil() as u64;
        let window = packets.clamp(WINDOW_FLOOR, u64::from(MAX_WINDOW) / 2) as u32;
        let windows = Span(4 * u64::from(window) * self.slowest_packet_time().0);
        let timeout = TIMEOUT_FLOOR.max(windows);
        Transport {
            payload: self.payload,
            window,
            ack_every: window / 4,
            recovery,
            timeout,
            reorder_wait: REORDER_FLOOR.max(Span(REORDER_TIMEOUTS * timeout.0)),
        }
    }

    /// The ring's buffers at this scale.
    #[must_use]
    pub fn coupling(&self) -> Coupling {
        let buffer = self.packets_of(RING_BUFFER_BYTES, RING_BUFFER_FLOOR);
        let slice = (self.packets_of(RING_BUFFER_BYTES, 1) / SLICES_PER_BUFFER).max(1);
        Coupling { ahead: buffer, buffer, slice }
    }
}

fn iterations(jobs: &[Job], flow: &Flow) -> u64 {
    jobs.get(flow.job.index()).map_or(0, |job| u64::from(job.iterations.max(1)))
}

fn count(input: &ScaleInput<'_>, sigma: f64) -> u64 {
    input
        .flows
        .iter()
        .map(|flow| {
            let bytes = ((flow.bytes as f64 / sigma).round() as u64).max(1);
            bytes.div_ceil(u64::from(PAYLOAD)) * iterations(input.jobs, flow)
        })
        .sum()
}

/// The smallest whole σ that keeps the budget. Rounding up to whole packets can pass it; then σ grows. When every message
/// already is one packet, no σ keeps the budget and the last one tried stands.
fn smallest(input: &ScaleInput<'_>, start: f64) -> f64 {
    const MAX_STEPS: u32 = 1000;
    let mut sigma = start.ceil();
    for _ in 0..MAX_STEPS {
        if count(input, sigma) <= input.packet_budget {
            break;
        }
        sigma = (sigma * 1.002).max(sigma + 1.0).ceil();
    }
    sigma
}
