//! What is known of one sink leaf's telemetry. In: nothing. Out: plain state and its small questions. Must not decide.

use crate::id::FlowId;
use crate::pipeline::target::Tick;
use crate::time::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Requests outstanding per switch: hides the round trip, and stays below the 64 packets that BMv2's CPU port holds.
pub(super) const READOUT_WINDOW: usize = 32;
/// Register reads outstanding per switch: each carries many slots.
pub(super) const READS_WINDOW: usize = 4;
/// Slots per register read: the answer stays far below the smallest message limit.
pub(super) const SLOTS_PER_READ: usize = 64;
/// Times that a request is sent before its sample is missing.
pub(super) const TRIES: u8 = 3;
/// Least time-out of a request, and how many smoothed round trips it is otherwise.
const TIMEOUT_FLOOR: Span = Span::from_millis(20);
const TIMEOUT_ROUND_TRIPS: u64 = 4;
/// A new round trip counts for one in so many.
const SMOOTHING: u64 = 8;

/// How a leaf is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Packets to and from the CPU port.
    Readout,
    /// P4Runtime RegisterEntry.
    Register,
}

/// Something to ask a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Whether it offers RegisterEntry.
    Probe,
    /// To begin an interval.
    Advance(u32),
    /// For the cells of slots; one slot per readout packet.
    Read(Vec<(FlowId, u16)>),
}

/// A request that has no answer yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) ask: Ask,
    pub(super) sent: Time,
    /// When it is taken for lost; only for readout packets, calls have a deadline of their own.
    pub(super) due: Time,
    /// How often it was sent.
    pub(super) tries: u8,
}

/// When an interval began: in the controller's time within a round trip, and to the tick where the leaf said so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundary {
    pub(super) at: Time,
    pub(super) ticks: Option<(u32, Tick)>,
}

impl Boundary {
    /// Time to a later one, on the leaf's clock when both are known there.
    pub(super) fn to(self, later: Self) -> Span {
        match (self.ticks, later.ticks) {
            (Some((from, tick)), Some((to, _))) => tick.between(from, to),
            _ => later.at - self.at,
        }
    }
}

/// The interval that was closed last at a leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closed {
    /// The leaf's number of it.
    pub(super) number: u32,
    /// How long it lasted.
    pub(super) length: Span,
}

/// One sink leaf.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    /// Hosts hang on it; no other switch ends a label.
    pub(super) has_hosts: bool,
    /// How it is read; `None` = not known yet.
    pub(super) way: Option<Way>,
    /// The way that was found last, for reports.
    pub(super) used: Option<Way>,
    /// It does not offer the only way allowed.
    pub(super) refused: bool,
    /// It was asked for its way within this interval.
    pub(super) asked: bool,
    /// Counts sessions, modulo 256: the high byte of request ids.
    pub(super) session: u8,
    /// The interval running there, as far as is known.
    pub(super) number: u32,
    /// An advance to the next number may or may not have been executed.
    pub(super) doubt: bool,
    /// When it began; `None` when nobody knows.
    pub(super) begun: Option<Boundary>,
    pub(super) closed: Closed,
    /// Flows that wait for the advance.
    pub(super) flows: Vec<(FlowId, u16)>,
    /// What is to be asked next.
    pub(super) queue: VecDeque<Ask>,
    pub(super) out: BTreeMap<u64, Pending>,
    pub(super) round_trip: Option<Span>,
    /// Reads that the rate cap leaves for this interval.
    pub(super) budget: u32,
    /// A `Readout` timer is on its way.
    pub(super) timed: bool,
}

impl Leaf {
    /// The number that the next interval gets.
    pub(super) const fn next_number(&self) -> u32 {
        self.number.wrapping_add(if self.doubt { 2 } else { 1 })
    }

    /// How long to wait for an answer.
    pub(super) fn timeout(&self) -> Span {
        let round_trips = self.round_trip.unwrap_or_default().0.saturating_mul(TIMEOUT_ROUND_TRIPS);
        TIMEOUT_FLOOR.max(Span(round_trips))
    }

    /// An answer to a request that was sent once took so long.
    pub(super) fn measured(&mut self, round_trip: Span) {
        let old = self.round_trip.unwrap_or(round_trip).0;
        self.round_trip = Some(Span((old * (SMOOTHING - 1) + round_trip.0) / SMOOTHING));
    }

    /// Whether the closed interval's samples are all in or given up.
    pub(super) fn is_done(&self) -> bool {
        let reads = |ask: &Ask| !matches!(ask, Ask::Probe);
        !self.queue.iter().any(reads) && !self.out.values().any(|pending| reads(&pending.ask))
    }

    /// Flows of everything that is not answered; nothing is awaited afterwards, except a probe.
    pub(super) fn take_waiting(&mut self) -> Vec<(FlowId, u16)> {
        let mut flows = std::mem::take(&mut self.flows);
        let mut take = |ask: Ask| {
            if let Ask::Read(slots) = ask {
                flows.extend(slots);
            }
        };
        std::mem::take(&mut self.queue).into_iter().for_each(&mut take);
        for (id, pending) in std::mem::take(&mut self.out) {
            match pending.ask {
                Ask::Probe => drop(self.out.insert(id, pending)),
                ask => take(ask),
            }
        }
        flows
    }

    /// Flows of everything that is not sent yet.
    pub(super) fn take_queue(&mut self) -> Vec<(FlowId, u16)> {
        let asks = std::mem::take(&mut self.queue).into_iter();
        let flows = asks.filter_map(|ask| match ask {
            Ask::Read(flows) => Some(flows),
            _ => None,
        });
        flows.flatten().collect()
    }

    /// Whether an advance is not answered yet.
    pub(super) fn advancing(&self) -> bool {
        self.out.values().any(|pending| matches!(pending.ask, Ask::Advance(_)))
    }

    /// The session ended: nothing is known of the leaf any more.
    pub(super) fn reset(&mut self) {
        *self = Self {
            has_hosts: self.has_hosts,
            used: self.used,
            session: self.session.wrapping_add(1),
            budget: self.budget,
            timed: self.timed,
            ..Self::default()
        };
    }
}
