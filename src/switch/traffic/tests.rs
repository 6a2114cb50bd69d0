use super::*;
use crate::time::stream;
use rand::RngExt as _;

const P: PortNo = PortNo(1);

fn traffic(queues: u8, packets: u32) -> Traffic<u32> {
    Traffic::new(Limits { queues, packets, bytes: None })
}

/// Serves everything due; each packet is as long as `length` says. Returns (item, start, end).
fn serve(traffic: &mut Traffic<u32>, now: u64, length: u64) -> Vec<(u32, u64, u64)> {
    let mut out = Vec::new();
    while let Some(next) = traffic.dequeue(Time(now)) {
        let end = traffic.transmitted(next.port, next.start, length);
        out.push((next.item, next.start.0, end.0));
    }
    out
}

#[test]
fn the_highest_queue_goes_first_and_each_queue_keeps_its_order() {
    let mut t = traffic(8, 64);
    for (item, queue) in [(0, 0), (1, 7), (2, 3), (3, 7), (4, 0)] {
        t.enqueue(Time(5), P, queue, 100, item).unwrap();
    }
    let order: Vec<u32> = serve(&mut t, 5, 100).iter().map(|(item, _, _)| *item).collect();
    assert_eq!(order, [1, 3, 2, 0, 4]);
    assert_eq!(t.next(), None);
}

#[test]
fn all_queues_of_a_port_share_one_shaper() {
    let mut t = traffic(2, 64);
    t.set_port(P, true, Some(BitRate(1_000_000_000)), &mut |_, _| {});
    for item in 0..4 {
        t.enqueue(Time(0), P, u64::from(item % 2), 1500, item).unwrap();
    }
    let out = serve(&mut t, 1_000_000, 1500);
    let want = [(1, 0, 12_000), (3, 12_000, 24_000), (0, 24_000, 36_000), (2, 36_000, 48_000)];
    assert_eq!(out, want);
}

#[test]
fn a_packet_that_comes_later_never_overtakes_a_service_that_has_begun() {
    for looks in [vec![0, 500, 12_000, 30_000], vec![30_000]] {
        let mut t = traffic(2, 64);
        t.set_port(P, true, Some(BitRate(1_000_000_000)), &mut |_, _| {});
        t.enqueue(Time(0), P, 0, 1500, 0).unwrap();
        t.enqueue(Time(0), P, 0, 1500, 1).unwrap();
        let mut out = Vec::new();
        if looks.len() > 1 {
            out.extend(serve(&mut t, 0, 1500));
        }
        t.enqueue(Time(500), P, 1, 1500, 2).unwrap();
        for now in looks {
            out.extend(serve(&mut t, now, 1500));
        }
        assert_eq!(out, [(0, 0, 12_000), (2, 12_000, 24_000), (1, 24_000, 36_000)]);
    }
}

#[test]
fn a_full_queue_drops_its_tail_by_packets_or_bytes() {
    let mut t = Traffic::new(Limits { queues: 2, packets: 3, bytes: Some(1000) });
    for item in 0..3 {
        t.enqueue(Time(0), P, 0, 300, item).unwrap();
    }
    assert_eq!(t.enqueue(Time(0), P, 0, 10, 3), Err((Reject::Full, 3)));
    assert_eq!((t.depth(P, 0), t.depth_bytes(P, 0)), (3, 900));
    t.enqueue(Time(0), P, 1, 900, 4).unwrap();
    assert_eq!(t.enqueue(Time(0), P, 1, 101, 5), Err((Reject::Full, 5)));
    t.enqueue(Time(0), P, 1, 100, 6).unwrap();
    assert_eq!(t.enqueue(Time(0), P, 2, 1, 7), Err((Reject::Priority, 7)));
    assert_eq!(t.enqueue(Time(0), PortNo(512), 0, 1, 8), Err((Reject::NoPort, 8)));
    serve(&mut t, 0, 1);
    assert_eq!((t.depth_bytes(P, 0), t.depth_bytes(P, 1)), (0, 0));
}

#[test]
fn depths_are_those_of_bmv2_before_insertion_and_after_removal() {
    let mut t = traffic(1, 64);
    t.set_queue_rate(P, 0, 10);
    let mut before = Vec::new();
    for item in 0..8 {
        before.push(t.depth(P, 0));
        t.enqueue(Time(0), P, 0, 100, item).unwrap();
    }
    let mut after = Vec::new();
    while let Some(next) = t.dequeue(Time(1_000_000_000)) {
        after.push((next.left, next.start.since(next.enqueued).0 / 1_000_000));
    }
    assert_eq!(before, [0, 1, 2, 3, 4, 5, 6, 7]);
    // Packet i of eight leaves i tenths of a second later (facts-dataplane 3: gaps of 100 ms at 10 pps).
    let want: Vec<(u32, u64)> = (0..8).map(|i| (7 - i, 100 * u64::from(i))).collect();
    assert_eq!(after, want);
}

#[test]
fn a_paced_high_queue_lets_the_low_queue_go_meanwhile() {
    let mut t = traffic(2, 64);
    t.set_queue_rate(P, 1, 1000);
    t.enqueue(Time(0), P, 1, 1, 10).unwrap();
    t.enqueue(Time(0), P, 1, 1, 11).unwrap();
    t.enqueue(Time(0), P, 0, 1, 0).unwrap();
    assert_eq!(serve(&mut t, 0, 1), [(10, 0, 0), (0, 0, 0)]);
    assert_eq!(t.next(), Some(Time(1_000_000)));
    assert_eq!(serve(&mut t, 1_000_000, 1), [(11, 1_000_000, 1_000_000)]);
}

#[test]
fn a_port_that_goes_down_loses_its_queues_and_takes_nothing() {
    let mut t = traffic(2, 64);
    t.enqueue(Time(0), P, 0, 1, 0).unwrap();
    t.enqueue(Time(0), P, 1, 1, 1).unwrap();
    let mut lost = Vec::new();
    t.set_port(P, false, None, &mut |queue, item| lost.push((queue, item)));
    assert_eq!(lost, [(1, 1), (0, 0)]);
    assert_eq!(t.next(), None);
    assert_eq!(t.enqueue(Time(1), P, 0, 1, 2), Err((Reject::PortDown, 2)));
    t.set_port(P, true, None, &mut |_, _| {});
    t.enqueue(Time(2), P, 0, 1, 3).unwrap();
    assert_eq!(serve(&mut t, 2, 1), [(3, 2, 2)]);
}

#[test]
fn rounding_never_adds_up() {
    let mut t = traffic(1, 4096);
    let rate = BitRate(400_000_000_000);
    t.set_port(P, true, Some(rate), &mut |_, _| {});
    for item in 0..1000 {
        t.enqueue(Time(0), P, 0, 64, item).unwrap();
    }
    let out = serve(&mut t, u64::MAX - 1, 64);
    // 64 bytes take 1.28 ns.
    assert_eq!(out[0].2, rate.transmission(64).0);
    assert_eq!(out[999].2, 1280);
}

#[test]
fn a_shaper_of_zero_stops_the_port_and_is_not_waited_for() {
    let mut t = traffic(1, 4);
    t.set_port(P, true, Some(BitRate(0)), &mut |_, _| {});
    t.enqueue(Time(0), P, 0, 1, 0).unwrap();
    t.enqueue(Time(0), P, 0, 1, 1).unwrap();
    assert_eq!(serve(&mut t, 0, 1), [(0, 0, u64::MAX)]);
    assert_eq!(t.next(), None);
}

/// The twin: all packets in one list, the winner found by looking at each.
#[test]
fn the_manager_agrees_with_a_list_that_is_searched() {
    for seed in 0..20 {
        let mut rng = stream(seed, "traffic test", 0);
        let mut t = traffic(4, 5);
        let rates = [None, Some(BitRate(8_000_000_000)), Some(BitRate(3_333_333))];
        let mut twin: Vec<(u64, u16, u64, u32, u64)> = Vec::new(); // enqueued, port, queue, item, length
        let mut busy = [0_u64; 3];
        for (port, rate) in rates.iter().enumerate() {
            t.set_port(PortNo(port as u16), true, *rate, &mut |_, _| {});
        }
        let (mut now, mut item, mut served, mut dropped) = (0, 0, 0, 0);
        for _ in 0..400 {
            now += rng.random_range(0..3000_u64);
            while let Some(next) = t.dequeue(Time(now)) {
                let start = |p: &(u64, u16, u64, u32, u64)| p.0.max(busy[usize::from(p.1)]);
                let begin = twin.iter().map(|p| (start(p), p.1)).min().unwrap();
                let there = twin.iter().filter(|p| p.1 == begin.1 && p.0 <= begin.0);
                let best = there.max_by_key(|p| (p.2, std::cmp::Reverse(p.3))).copied().unwrap();
                assert_eq!((next.start.0, next.port.0, next.item), (begin.0, best.1, best.3));
                let end = t.transmitted(next.port, next.start, best.4);
                busy[usize::from(best.1)] = end.0;
                twin.retain(|p| p.3 != best.3);
                served += 1;
            }
            for _ in 0..rng.random_range(0..6) {
                let (port, queue) = (rng.random_range(0..3_u16), rng.random_range(0..4_u64));
                let length = rng.random_range(1..1500_u32);
                let depth = twin.iter().filter(|p| p.1 == port && p.2 == queue).count();
                let taken = t.enqueue(Time(now), PortNo(port), queue, length, item).is_ok();
                assert_eq!(taken, depth < 5);
                if taken {
                    twin.push((now, port, queue, item, u64::from(length)));
                } else {
                    dropped += 1;
                }
                item += 1;
            }
        }
        assert!(served > 100 && dropped > 10, "{served} {dropped}");
    }
}

#[test]
fn a_held_port_keeps_its_packets_by_priority_and_drops_only_what_its_queues_cannot_hold() {
    let mut t = traffic(2, 2);
    t.enqueue(Time(1), P, 0, 100, 0).unwrap();
    t.hold(P);
    t.enqueue(Time(2), P, 0, 100, 1).unwrap();
    t.enqueue(Time(3), P, 1, 100, 2).unwrap();
    assert_eq!(t.enqueue(Time(4), P, 0, 100, 3), Err((Reject::Full, 3)));
    assert_eq!((t.next(), t.dequeue(Time(1_000))), (None, None));
    let other = PortNo(2);
    t.enqueue(Time(5), other, 0, 100, 9).unwrap();
    assert_eq!(serve(&mut t, 10, 100), [(9, 5, 5)], "other ports go on");
    t.release(Time(50), P);
    assert_eq!(serve(&mut t, 60, 100), [(2, 50, 50), (0, 50, 50), (1, 50, 50)]);
}

#[test]
fn a_release_in_the_middle_of_a_transmission_does_not_shorten_it() {
    let mut t = traffic(1, 8);
    t.set_port(P, true, Some(BitRate(1_000_000_000)), &mut |_, _| {});
    t.enqueue(Time(0), P, 0, 1500, 0).unwrap();
    t.enqueue(Time(0), P, 0, 1500, 1).unwrap();
    let first = t.dequeue(Time(0)).unwrap();
    assert_eq!(t.transmitted(P, first.start, 1500), Time(12_000));
    t.hold(P);
    t.release(Time(5_000), P);
    assert_eq!(t.next(), Some(Time(12_000)));
    t.release(Time(20_000), P);
    assert_eq!(t.next(), Some(Time(12_000)), "it was not held");
}
