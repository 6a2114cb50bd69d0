//! Registers and readout messages become samples.
//!
//! In: slots and intervals to ask about; packet-ins and answers to Reads. Out: requests, and [`Sample`]s: plain numbers of
//! one slot and one closed interval, in the target's ticks (each sample says how long one is). Must not know flows, windows,
//! or what a number is good for.
//!
//! Two ways lead to the same cells (p4/README.md, "Registers" and "Controller messages"): *readout packets*, answered by
//! the program on the CPU port, and P4Runtime *RegisterEntry* reads. All arithmetic on cells is modulo 2³².

mod readout;
mod registers;

pub use readout::{Answer, Readout, Request};
pub use registers::{Read, Registers};

use super::target::Tick;

/// Cumulative cells of a slot: monotone, modulo 2³²; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets.
    pub packets: u32,
    /// IPv4 total lengths.
    pub bytes: u32,
    /// Missing sequence numbers; a difference is signed.
    pub lost: u32,
    /// Packets behind a later one.
    pub reordered: u32,
}

/// What a slot saw in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Packets.
    pub packets: u32,
    /// IPv4 total lengths.
    pub bytes: u32,
    /// Active time, ticks.
    pub active: u32,
    /// Sum over packets of the path's queue delay, ticks.
    pub delay_sum: u32,
    /// Largest of those delays, ticks.
    pub delay_max: u32,
    /// Largest depth that any packet met, packets.
    pub depth_max: u32,
    /// When the first packet came, ticks of the sink leaf's clock.
    pub first: u32,
    /// When the last packet came, ticks of the sink leaf's clock.
    pub last: u32,
}

/// One slot's answer about one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The slot.
    pub slot: u16,
    /// The epoch in force at the slot: whose packets it counts.
    pub epoch: u8,
    /// The interval asked for.
    pub interval: u32,
    /// The interval that was running when the cells were read.
    pub running: u32,
    /// What `switch_config` said then; 0 = the switch restarted and was not programmed since.
    pub incarnation: u32,
    /// The length of every tick here.
    pub tick: Tick,
    /// The sink leaf's clock at reading, ticks; registers do not tell it.
    pub time_ticks: Option<u32>,
    /// Cumulative cells.
    pub totals: Totals,
    /// The interval's cells; `None` when no packet came in it.
    pub cell: Option<Cell>,
}

#[cfg(test)]
mod tests;
