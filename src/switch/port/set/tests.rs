use super::*;
use crate::switch::Config;
use crate::switch::port::frame::finish;
use crate::switch::port::ring::{HEADROOM, Offload, Received};

/// A port on an interface that is not there, and in it a TCP segment to be cut into `pieces`.
fn with_segment(pieces: usize) -> Ports {
    let spec: Spec = "1@nowhere".parse().unwrap();
    let (mut ports, faces) = Ports::new(&[(spec, None)]).unwrap();
    let face = Arc::clone(&faces[0]);
    let mut interface = Interface::new(Arc::clone(&face));
    let mut buffer = vec![0; HEADROOM + 54 + 10 * pieces];
    buffer[HEADROOM + 12..HEADROOM + 15].copy_from_slice(&[8, 0, 0x45]);
    (buffer[HEADROOM + 23], buffer[HEADROOM + 46]) = (6, 0x50);
    let offload = Offload { checksum: None, segment: 1, segment_bytes: 10 };
    let received = Received { buffer: &mut buffer, offload, vlan: None };
    finish(received, &mut interface.cutter, &mut |_| {}).unwrap();
    let kind = Kind::Interface(interface);
    ports.slots.push(Slot { face, kind, rate: None, recorders: None, held: false, waiting: false });
    ports
}

#[test]
fn a_long_segment_comes_in_in_bursts_though_no_descriptor_tells_of_its_pieces() {
    // The first piece was given when the segment came.
    let mut ports = with_segment(1 + 2 * BURST + 5);
    let mut switch = Switch::new(Config::default());
    let waker = Waker::new().unwrap();
    let mut came = Vec::new();
    for _ in 0..5 {
        ports.wait(&waker, Time::ZERO, Some(Time::ZERO));
        for place in 0..ports.ready() {
            let before = switch.stats().drops(Drop::NoProgram);
            let more = ports.receive(place, &mut switch, Time::ZERO);
            came.push((switch.stats().drops(Drop::NoProgram) - before, more));
        }
    }
    let burst = BURST as u64;
    assert_eq!(came, [(burst, true), (burst, true), (5, false)]);
}
