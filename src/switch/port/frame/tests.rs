use super::super::ring::Offload;
use super::*;
use proptest::prelude::*;

/// Byte by byte, as RFC 1071 tells it: the twin of `checksum(sum(..))`.
fn twin(bytes: &[u8]) -> u16 {
    let mut total = 0_u32;
    for pair in bytes.chunks(2) {
        total += u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        total = (total & 0xffff) + (total >> 16);
    }
    if total == 0xffff { 0xffff } else { !(total as u16) }
}

/// Ethernet, IPv4, TCP with 12 bytes of options, `payload` bytes that count up; checksums left open as a stack with offload does.
fn tcp(payload: usize, flags: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 1, 2]);
    frame.extend([
        0x13, 0x88, 0x17, 0x70, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x80, flags, 1, 0, 0, 0, 0, 0,
    ]);
    frame.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame.extend((0..payload).map(|n| n as u8));
    let length = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    let header = twin(&frame[14..34]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    let pseudo = !twin(&pseudo(&frame, 34)[..12]);
    frame[50..52].copy_from_slice(&pseudo.to_be_bytes());
    frame
}

/// IPv4's pseudo header and the segment.
fn pseudo(frame: &[u8], transport: usize) -> Vec<u8> {
    let mut bytes = frame[transport - 8..transport].to_vec();
    let length = (frame.len() - transport) as u16;
    bytes.extend([0, frame[transport - 11]]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(&frame[transport..]);
    bytes
}

fn run(frame: &[u8], offload: Offload, vlan: Option<(u16, u16)>) -> Result<Vec<Vec<u8>>, Unfit> {
    let mut buffer = vec![0xee; HEADROOM];
    buffer.extend(frame);
    let mut out = Vec::new();
    let received = Received { buffer: &mut buffer, offload, vlan };
    let (mut cutter, mut give) = (Cutter::default(), |frame: &[u8]| out.push(frame.to_vec()));
    finish(received, &mut cutter, &mut give)?;
    while cutter.next(&mut give) {}
    Ok(out)
}

/// The sum over data with a right checksum in it is all ones.
fn right(bytes: &[u8]) -> bool {
    twin(bytes) == 0xffff || !twin(bytes) == 0xffff
}

#[test]
fn the_fast_sum_agrees_with_the_slow_one_at_every_length() {
    let bytes: Vec<u8> =
        (0..3_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for length in (0..70).chain([1_499, 1_500, 2_999]) {
        for from in 0..3.min(length + 1) {
            let part = &bytes[from.min(length)..length];
            assert_eq!(checksum(sum(part)), twin(part), "{from}..{length}");
        }
    }
}

#[test]
fn a_checksum_that_was_left_open_is_completed() {
    for payload in [0, 1, 100, 1_001] {
        let frame = tcp(payload, 0x18);
        assert!(!right(&pseudo(&frame, 34)), "it is open before");
        let offload = Offload { checksum: Some((34, 16)), ..Offload::default() };
        let out = run(&frame, offload, None).unwrap();
        assert_eq!(out.len(), 1);
        assert!(right(&pseudo(&out[0], 34)), "{payload}");
        assert_eq!(out[0][..50], frame[..50]);
        assert_eq!(out[0][52..], frame[52..]);
    }
}

#[test]
fn a_frame_with_nothing_left_to_do_stays_as_it_is() {
    let frame = tcp(33, 0x10);
    assert_eq!(run(&frame, Offload::default(), None), Ok(vec![frame]));
    assert_eq!(
        run(&[1, 2, 3], Offload::default(), None).unwrap(),
        [vec![1, 2, 3]],
        "too short for an address"
    );
}

#[test]
fn a_vlan_tag_goes_back_behind_the_addresses_after_the_checksum() {
    let frame = tcp(10, 0x10);
    let offload = Offload { checksum: Some((34, 16)), ..Offload::default() };
    let plain = run(&frame, offload, None).unwrap().remove(0);
    let tagged = run(&frame, offload, Some((0x88a8, 0x6123))).unwrap().remove(0);
    assert_eq!(tagged[..12], plain[..12]);
    assert_eq!(tagged[12..16], [0x88, 0xa8, 0x61, 0x23]);
    assert_eq!(tagged[16..], plain[12..]);
    assert_eq!(run(&[0; 11], Offload::default(), Some((0x8100, 5))), Err(Unfit::Short));
}

#[test]
fn a_long_tcp_segment_is_cut_into_segments_that_a_card_would_have_sent() {
    let frame = tcp(2_500, 0x80 | 0x18 | 0x01); // CWR, ACK, PSH, FIN
    let offload = Offload { checksum: Some((34, 16)), segment: 1, segment_bytes: 1_000 };
    for vlan in [None, Some((0x8100, 7))] {
        let out = run(&frame, offload, vlan).unwrap();
        let ip = if vlan.is_some() { 18 } else { 14 };
        let transport = ip + 20;
        let mut payload: Vec<u8> = Vec::new();
        for (number, piece) in out.iter().enumerate() {
            let length = u16::from_be_bytes([piece[ip + 2], piece[ip + 3]]);
            assert_eq!(usize::from(length), piece.len() - ip);
            assert!(
                right(&piece[ip..transport]) && right(&pseudo(piece, transport)),
                "piece {number}"
            );
            let id = u16::from_be_bytes([piece[ip + 4], piece[ip + 5]]);
            assert_eq!(id, 0xffff_u16.wrapping_add(number as u16));
            let sequence =
                u32::from_be_bytes(piece[transport + 4..transport + 8].try_into().unwrap());
            assert_eq!(sequence, 0xffff_ff00_u32.wrapping_add(1_000 * number as u32));
            payload.extend(&piece[transport + 32..]);
        }
        assert_eq!(
            out.iter().map(|piece| piece[transport + 13]).collect::<Vec<_>>(),
            [0x90, 0x10, 0x19]
        );
        assert_eq!(payload, frame[66..]);
    }
}

#[test]
fn long_udp_and_ipv6_segments_are_cut_too() {
    let mut frame = vec![0; 12];
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64]);
    frame.extend(0..32);
    frame.extend([0, 1, 0, 2, 0, 0, 0, 0]);
    frame.extend([7; 25]);
    let offload = Offload { checksum: None, segment: 5, segment_bytes: 10 };
    let out = run(&frame, offload, None).unwrap();
    assert_eq!(out.iter().map(|piece| piece.len() - 62).collect::<Vec<_>>(), [10, 10, 5]);
    for piece in &out {
        let length = (piece.len() - 54) as u16;
        assert_eq!(
            (&piece[18..20], &piece[58..60]),
            (&length.to_be_bytes()[..], &length.to_be_bytes()[..])
        );
        let mut bytes = piece[22..54].to_vec();
        bytes.extend([0, 17]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(&piece[54..]);
        assert!(right(&bytes));
    }
}

#[test]
fn a_segment_is_given_piece_by_piece_and_only_if_the_pieces_are_not_too_many() {
    let frame = tcp(2 * segment::PIECES_MAX, 0x10);
    let mut cutter = Cutter::default();
    assert_eq!(cutter.load(&frame, 1, 2), Ok(()));
    for left in (0..segment::PIECES_MAX).rev() {
        let mut given = 0;
        assert!(cutter.next(&mut |_| given += 1));
        assert_eq!((given, cutter.waits()), (1, left > 0));
    }
    assert!(!cutter.next(&mut |_| panic!("there is none")));
    assert_eq!(cutter.load(&frame, 1, 1_000), Ok(()));
    assert_eq!(cutter.load(&frame, 1, 1), Err(Unfit::Pieces));
    assert!(!cutter.waits(), "what waited is forgotten, as what was refused");
}

#[test]
fn what_cannot_be_cut_is_refused_whatever_it_claims() {
    let frame = tcp(2_000, 0x10);
    let offload = |segment, segment_bytes| Offload { checksum: None, segment, segment_bytes };
    for (kind, size, why) in [
        (4, 1_000, Unfit::Segment),
        (3, 1_000, Unfit::Segment),
        (5, 1_000, Unfit::Segment),
        (1, 0, Unfit::Short),
    ] {
        assert_eq!(run(&frame, offload(kind, size), None), Err(why), "{kind} {size}");
    }
    let open = Offload { checksum: Some((1_000, 16)), ..Offload::default() };
    assert_eq!(run(&frame[..100], open, None), Err(Unfit::Short));
    // No prefix and no odd byte makes it panic.
    for length in 0..120 {
        for kind in [1, 4, 5] {
            let _ = run(&frame[..length], offload(kind, 9), Some((0x8100, 1)));
            for value in [0, 0x40, 0x4f, 0xff] {
                let mut broken = frame[..120].to_vec();
                broken[length] = value;
                let _ = run(&broken, offload(kind, 9), None);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_frame_and_no_offload_makes_it_panic_and_pieces_hold_the_whole_payload(
        start in prop_oneof![Just(Vec::new()), Just(tcp(0, 0x18)), Just(tcp(0, 0x18)[..34].to_vec())],
        rest in proptest::collection::vec(any::<u8>(), 0..400),
        broken in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        header in any::<[u8; HEADROOM]>(),
        kind in prop_oneof![Just(0_u8), Just(1), Just(4), Just(5), any::<u8>()],
        segment_bytes in prop_oneof![1_u16..60, any::<u16>()],
        vlan in proptest::option::of((any::<u16>(), any::<u16>())),
    ) {
        let mut frame = [start, rest].concat();
        if let Some((at, value)) = broken.filter(|_| !frame.is_empty()) {
            *at.get_mut(&mut frame) = value;
        }
        let offload = Offload { segment: kind, segment_bytes, ..Offload::read(header) };
        if let Ok(pieces) = run(&frame, offload, vlan) {
            let tag = if vlan.is_some() { 4 } else { 0 };
            let total: usize = pieces.iter().map(Vec::len).sum();
            prop_assert!(!pieces.is_empty() && total >= frame.len() + tag);
            let head = pieces[0].len().saturating_sub(usize::from(offload.segment_bytes));
            let repeated = if kind == 0 { 0 } else { (pieces.len() - 1) * head };
            prop_assert!(pieces.len() == 1 || total == frame.len() + tag + repeated);
        }
    }
}
