//! The embedded P4 switch. In: a BMv2 JSON program, P4Runtime updates, packets with a port and a time. Out: packets
//! with a port and a time, and messages for the controller. Must not know our program, a clock, a socket; of a switch that is
//! a process only `real_time`, which drives it, owns a clock, and only `port`, which brings its packets, knows sockets and files.
//!
//! ```text
//!  JSON ─load─► Program ─┐
//!                        ▼
//!  bytes ─► parse ─► ingress ─► traffic manager ─► egress ─► deparse ─► bytes        (exec runs the boxes,
//!                      │  ▲                           │                               the traffic manager sits between)
//!                      ▼  │                           ▼
//!                    State: tables, profiles, counters, meters, registers
//! ```

pub mod bits;
pub mod code;
pub mod config;
pub mod deparse;
pub mod device;
pub mod engine;
pub mod exec;
pub mod expr;
pub mod hash;
pub mod load;
pub mod lookup;
pub mod memory;
pub mod meter;
pub mod parse;
pub mod phv;
pub mod port;
pub mod profile;
pub mod program;
pub mod real_time;
pub mod replication;
pub mod state;
pub mod stats;
pub mod stf;
pub mod table;
pub mod trace;
pub mod traffic;

pub use config::{Clock, Config};
pub use engine::{Sent, Switch, Taken};
pub use load::LoadError;
pub use stats::{Drop, Stats};

/// Longest packet: a jumbo frame with room for the headers that a program adds. BMv2 takes 10,000 bytes.
pub const MAX_PACKET_BYTES: usize = 16 * 1024;

/// Packets inside a switch at one time. More than 64 packets in 8 queues of 64 ports never wait in one.
pub const MAX_PACKETS: usize = 64 * 1024;

/// Times that a packet and its clones may be resubmitted, recirculated or cloned. BMv2 lets a program do so for ever; in
/// virtual time that would never end. Programs that loop on purpose stay far below.
pub const MAX_PASSES: u16 = 128;

/// Resubmitted and recirculated packets that wait for ingress (BMv2's own limit); more are dropped.
pub const MAX_INPUT: usize = 1024;

/// Messages that wait for the controller. A controller that reads nothing must not fill the memory; it loses packet-ins.
pub const MAX_OUTBOX: usize = 16 * 1024;
