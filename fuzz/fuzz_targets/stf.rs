//! Any text is no STF, does not fit the program, or runs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringpath::switch::stf::{Program, parse};
use ringpath_fuzz::PROGRAMS;

thread_local!(static PROGRAM: Program = Program::new(PROGRAMS[3], None).expect("the program loads"));

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(case) = parse(text) {
        PROGRAM.with(|program| {
            if let Ok(report) = program.run(&case) {
                for failure in &report.failures {
                    std::hint::black_box(failure.diff());
                }
            }
        });
    }
});
