//! Any JSON is refused or loads; what loads takes packets.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ringpath::time::Time;
use ringpath_fuzz::{bare, send};

fuzz_target!(|data: &[u8]| -> Corpus {
    let mut switch = bare();
    if switch.load_json(Time::ZERO, data).is_err() {
        return Corpus::Keep;
    }
    let mut now = Time::ZERO;
    for (port, length) in [(0, 0), (1, 14), (2, 64), (510, 300)] {
        let packet: Vec<u8> = (0..length).map(|i: u16| (i * 37) as u8).collect();
        send(&mut switch, &mut now, port, &packet);
    }
    Corpus::Keep
});
