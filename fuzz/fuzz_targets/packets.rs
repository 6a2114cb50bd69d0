//! Any packets into the project's programs: which program, then packets as port, length, bytes. The switches live on from
//! one input to the next, as they would; now and then they begin anew, so that one input alone shows what it does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringpath::switch::Switch;
use ringpath::time::Time;
use ringpath_fuzz::{PROGRAMS, send, switch};
use std::cell::RefCell;

/// Inputs until a switch begins anew.
const FRESH_AFTER: u32 = 100_000;

struct Running {
    switches: Vec<(Switch, Time)>,
    inputs: u32,
}

fn fresh() -> Running {
    Running { switches: (0..PROGRAMS.len()).map(switch).collect(), inputs: 0 }
}

thread_local!(static RUNNING: RefCell<Running> = RefCell::new(fresh()));

fuzz_target!(|data: &[u8]| {
    let [program, rest @ ..] = data else { return };
    RUNNING.with_borrow_mut(|running| {
        running.inputs += 1;
        if running.inputs > FRESH_AFTER {
            *running = fresh();
        }
        let number = usize::from(*program) % running.switches.len();
        let (switch, now) = &mut running.switches[number];
        let mut rest = rest;
        while let [port, length, tail @ ..] = rest {
            let (packet, next) = tail.split_at(usize::from(*length).min(tail.len()));
            let port = if *port == 255 { 510 } else { u16::from(*port) };
            send(switch, now, port, packet);
            rest = next;
        }
    });
});
