use super::*;
use crate::switch::Config;
use crate::switch::port::frame::finish;
use crate::switch::port::ring::{HEADROOM, Offload, Received, RxRing, TxSocket};
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::Ordering;

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
    ports.slots.push(Slot { face, kind, recorders: None, held: false, waiting: false });
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

/// A port whose frames go to the other end of a pair of sockets, which is full when its reader is slow, and that end.
fn with_reader() -> (Ports, UnixDatagram) {
    let (mut ports, faces) = Ports::new(&[("1@nowhere".parse().unwrap(), None)]).unwrap();
    let face = Arc::clone(&faces[0]);
    let (ours, reader) = UnixDatagram::pair().unwrap();
    reader.set_nonblocking(true).unwrap();
    let (silent, socket) = (UnixDatagram::unbound().unwrap(), TxSocket::over(ours.into()));
    let _ = face.set_up(true);
    let ring = RxRing::silent(silent.into());
    let kind = Kind::Interface(Interface::over(Arc::clone(&face), ring, socket));
    ports.slots.push(Slot { face, kind, recorders: None, held: false, waiting: false });
    (ports, reader)
}

fn push(ports: &mut Ports, number: u32) {
    let Kind::Interface(interface) = &mut ports.slots[0].kind else { unreachable!() };
    ports.slots[0].held = !interface.push(&number.to_be_bytes());
}

#[test]
fn a_full_interface_is_asked_again_only_when_it_takes_more_and_counts_one_wait() {
    let (mut ports, reader) = with_reader();
    let waker = Waker::new().unwrap();
    let waits = |ports: &Ports| ports.slots[0].face.counters.waits.load(Ordering::Relaxed);
    let mut pushed = 0;
    while !ports.slots[0].waiting {
        push(&mut ports, pushed);
        pushed += 1;
        ports.flush();
    }
    while !ports.slots[0].held {
        push(&mut ports, pushed);
        pushed += 1;
    }
    for _ in 0..100 {
        assert!(!ports.flush(), "the port stays full");
        ports.wait(&waker, Time::ZERO, Some(Time::ZERO));
        assert!(ports.slots[0].waiting, "nobody has read");
    }
    assert_eq!(waits(&ports), 1, "bursts of other ports do not count");
    let mut came = Vec::new();
    for _ in 0..100 {
        let mut frame = [0; 8];
        while let Ok(4) = reader.recv(&mut frame) {
            came.push(u32::from_be_bytes(*frame.first_chunk().unwrap()));
        }
        ports.wait(&waker, Time::ZERO, Some(Time::ZERO));
    }
    assert!(!ports.slots[0].waiting && ports.flush(), "the switch can be told");
    assert!(came.into_iter().eq(0..pushed), "all have arrived, in order");
}
