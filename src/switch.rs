//! The embedded P4 switch. In: a BMv2 JSON program, P4Runtime updates, packets with a port and a time. Out: packets
//! with a port and a time, and messages for the controller. Must not know our program, a clock, a socket.
//!
//! ```text
//!  JSON ─load─► Program ─┐
//!                        ▼
//!  bytes ─► parse ─► ingress ─► traffic manager ─► egress ─► deparse ─► bytes        (exec runs the boxes,
//!                      │  ▲                           │                               the traffic manager sits between)
//!                      ▼  │                           ▼
//!                    State: tables, profiles, counters, meters, registers
//! ```

pub mod code;
pub mod config;
pub mod deparse;
pub mod lookup;
pub mod meter;
pub mod parse;
pub mod phv;
pub mod program;
pub mod replication;
pub mod state;
pub mod stats;
pub mod traffic;

pub use config::{Clock, Config};
pub use stats::{Drop, Stats};

use crate::id::PortNo;
use crate::time::Time;
use crate::units::BitRate;

/// Longest packet: a jumbo frame with room for the headers that a program adds. BMv2 takes 10,000 bytes.
pub const MAX_PACKET_BYTES: usize = 16 * 1024;

/// Packets inside a switch at one time. More than 64 packets in 8 queues of 64 ports never wait in one.
pub const MAX_PACKETS: usize = 64 * 1024;

/// Times that a packet and its clones may be resubmitted, recirculated or cloned. BMv2 lets a program do so for ever; in
/// virtual time that would never end. Programs that loop on purpose stay far below.
pub const MAX_PASSES: u16 = 256;

/// A packet that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent<'a> {
    /// The port.
    pub port: PortNo,
    /// What is on the wire.
    pub bytes: &'a [u8],
    /// When its first bit leaves.
    pub start: Time,
    /// When its last bit has left: `start + bytes * 8 / rate`, and `start` on an unshaped port.
    pub end: Time,
}

/// A switch. Call [`Switch::receive`] for each packet, [`Switch::advance`] when [`Switch::poll_at`] says so.
pub struct Switch {
    config: Config,
    traffic: traffic::Traffic<u32>,
    stats: Stats,
}

impl Switch {
    /// A switch without a program: it drops everything.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { traffic: traffic::Traffic::new(config.limits()), stats: Stats::default(), config }
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes a packet: parser, ingress, and into a queue. Nothing leaves before [`Switch::advance`].
    pub fn receive(&mut self, _now: Time, port: PortNo, bytes: &[u8]) {
        self.stats.received(port, bytes.len() as u64);
        self.stats.drop(Drop::NoProgram);
    }

    /// When the switch next wants [`Switch::advance`]; `None` when nothing waits.
    #[must_use]
    pub fn poll_at(&self) -> Option<Time> {
        self.traffic.next()
    }

    /// Runs egress for every packet whose turn has come by `now` and hands out what is sent. Packets for the CPU port
    /// go to the outbox instead.
    pub fn advance(&mut self, now: Time, _out: &mut dyn FnMut(Sent<'_>)) {
        while self.traffic.dequeue(now).is_some() {}
    }

    /// Sets a port up or down, and its shaper in bits per second (`None` = unshaped). Ports start up and unshaped. A
    /// port that goes down loses what its queues hold.
    pub fn set_port(&mut self, port: PortNo, up: bool, rate: Option<BitRate>) {
        let stats = &mut self.stats;
        self.traffic.set_port(port, up, rate, &mut |_, _| stats.drop(Drop::PortDown));
    }

    /// What it counted.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
