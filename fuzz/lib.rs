//! What the fuzz targets share: programs, and switches that packets go through. Panics are what a fuzzer looks for.

use ringpath::id::PortNo;
use ringpath::switch::{Config, Switch, stf};
use ringpath::time::{Span, Time};

/// The project's own programs.
pub const PROGRAMS: [&[u8]; 4] = [
    include_bytes!("../p4/build/ringpath.json"),
    include_bytes!("../tests/data/switch/exercise.json"),
    include_bytes!("../tests/data/switch/small.json"),
    include_bytes!("../tests/data/conformance/program.json"),
];

/// Entries and sessions for [`PROGRAMS`], so that packets get past the first miss.
pub const SETUP: [&str; 4] = [
    "add port_role ingress_port:1 port_role.set_port_role(role:1)\n\
     add path_forward label:257 path.forward(port:2)\nadd path_forward label:258 path.forward(port:1)\n",
    "add deliver dst:0x2 send(port:2)\nadd exact_table key:5 result_counted(value:1)\n\
     add lpm_table key:0x0a000000/8 result(value:2)\nadd ternary_table 3 key:0x0*000000 arg:0x01 result(value:3)\n\
     add range_table 4 key:1->9 result(value:4)\nmirroring_add 5 6\nmc_mgrp_create 5\n\
     mc_node_create 1 3 4\nmc_node_associate 5 0\nmeter_array_set_rates police 0.000001:1 0.000002:2\n",
    "",
    "",
];

/// A switch with a program and what its case sets up.
///
/// # Panics
/// The project's own files are wrong.
#[must_use]
pub fn switch(number: usize) -> (Switch, Time) {
    let case = stf::parse(SETUP[number]).expect("the set-up is STF");
    let program = stf::Program::new(PROGRAMS[number], None).expect("the program loads");
    let (mut switch, now) = program.trace(&case, &mut |_| {}).expect("the set-up fits the program");
    switch.set_trace(false);
    (switch, now)
}

/// Sends a packet and lets everything happen that follows from it. A switch that still holds packets or wants to be called
/// again and again without end is a hang.
///
/// # Panics
/// Packets are left inside.
pub fn send(switch: &mut Switch, now: &mut Time, port: u16, bytes: &[u8]) {
    use ringpath::p4runtime::device::Device as _;
    *now += Span::from_micros(100);
    switch.receive(*now, PortNo(port), bytes);
    for _ in 0..100_000 {
        if switch.packets_held() == 0 {
            // Nobody may fill the memory by not reading.
            drop(switch.take_outbox());
            return;
        }
        if let Some(next) = switch.poll_at() {
            *now = (*now).max(next);
        }
        switch.advance(*now, &mut |_| {});
    }
    panic!("{} packets never leave", switch.packets_held());
}

/// A bare switch with eight queues.
#[must_use]
pub fn bare() -> Switch {
    Switch::new(Config { priority_queues: 8, ..Config::default() })
}
