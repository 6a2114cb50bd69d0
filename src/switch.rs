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

pub mod bits;
pub mod code;
pub mod deparse;
pub mod exec;
pub mod expr;
pub mod hash;
pub mod load;
pub mod parse;
pub mod phv;
pub mod program;
pub mod state;
