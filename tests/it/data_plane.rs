//! The data plane's behaviour where time, queues or groups matter: flips at pauses, active time, queue delay, ECMP, queues of
//! untagged traffic, drop reasons. (What one packet shows is in tests/data/stf.)

use std::collections::BTreeMap;

use ringpath::id::PortNo;
use ringpath::p4runtime::proto::p4::v1::{
    self as p4, Entity, entity, table_action::Type as TableAction, update::Type as Kind,
};
use ringpath::time::{Span, Time};
use ringpath::units::BitRate;

use crate::rig::{Key, Rig, is};

const TAG: u16 = 0x88B5;

fn ethernet(ether_type: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ether_type.to_be_bytes());
    frame
}

fn checksum(header: &[u8]) -> u16 {
    let words = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}

/// What a test varies in a TCP segment.
#[derive(Clone, Copy)]
struct Segment {
    src: u32,
    dst: u32,
    src_port: u16,
    ttl: u8,
    dscp: u8,
    ident: u16,
    payload: usize,
}

const SEGMENT: Segment = Segment {
    src: 0x0A00_0001,
    dst: 0x0A00_0002,
    src_port: 5000,
    ttl: 64,
    dscp: 0,
    ident: 7,
    payload: 20,
};

impl Segment {
    fn ipv4(self) -> Vec<u8> {
        let length = u16::try_from(40 + self.payload).unwrap();
        let mut packet = vec![0x45, self.dscp << 2];
        packet.extend(length.to_be_bytes());
        packet.extend(self.ident.to_be_bytes());
        packet.extend([0x40, 0, self.ttl, 6, 0, 0]);
        packet.extend(self.src.to_be_bytes());
        packet.extend(self.dst.to_be_bytes());
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(self.src_port.to_be_bytes());
        packet.extend(6000u16.to_be_bytes());
        packet.extend([0; 16]);
        packet.resize(usize::from(length), 0);
        packet
    }

    fn frame(self) -> Vec<u8> {
        [ethernet(0x0800), self.ipv4()].concat()
    }
}

/// A tag as the last hop before the sink leaf sends it.
#[derive(Clone, Copy)]
struct Tag {
    label: u16,
    queue: u8,
    slot: u16,
    epoch: u8,
    seq: u32,
    time: u32,
    delay: u32,
    depth: u16,
}

const AT_SINK: Tag =
    Tag { label: 0x101, queue: 3, slot: 21, epoch: 1, seq: 0, time: 0, delay: 0, depth: 0 };

impl Tag {
    fn frame(self) -> Vec<u8> {
        let mut frame = ethernet(TAG);
        frame.extend([0x10 | self.queue << 1, 2]);
        frame.extend(self.label.to_be_bytes());
        frame.extend(self.slot.to_be_bytes());
        frame.extend([self.epoch, 0]);
        for word in [self.seq, self.time, self.delay] {
            frame.extend(word.to_be_bytes());
        }
        frame.extend(self.depth.to_be_bytes());
        frame.extend(0x0800u16.to_be_bytes());
        frame.extend(SEGMENT.ipv4());
        frame
    }
}

fn tag_args(flip: u128, force: u128, flip_gap: u128) -> [(&'static str, u128); 10] {
    [
        ("label", if flip == 0 { 0x101 } else { 0x102 }),
        ("queue", if flip == 0 { 3 } else { 5 }),
        ("src_slot", 1),
        ("slot", 21),
        ("epoch", 1),
        ("flip", flip),
        ("old_label", 0x101),
        ("old_queue", 3),
        ("force", force),
        ("flip_gap", flip_gap),
    ]
}

fn flow_key() -> [Key<'static>; 3] {
    [is("src_addr", SEGMENT.src.into()), is("dst_addr", SEGMENT.dst.into()), is("src_port", 5000)]
}

/// A source leaf: the flow of `SEGMENT` enters by port 1; label 0x101 leaves by port 10, 0x102 by port 11.
fn source_leaf(clock_offset_ns: u64) -> Rig {
    let mut rig = Rig::new(clock_offset_ns);
    rig.add("path_forward", 0, &[is("label", 0x101)], "forward", &[("port", 10)]);
    rig.add("path_forward", 0, &[is("label", 0x102)], "forward", &[("port", 11)]);
    rig.add("classify", 7, &flow_key(), "tag", &tag_args(0, 0, 50_000));
    rig
}

/// The controller's change of path: one MODIFY of the flow's entry.
fn modify_flow(rig: &mut Rig, flip: u128, force: u128, flip_gap: u128) {
    let action = TableAction::Action(rig.action("tag", &tag_args(flip, force, flip_gap)));
    let entity = rig.entry("classify", 7, &flow_key(), action);
    rig.write(Kind::Modify, entity);
}

/// Sends one packet of the flow at `at`; the port that it leaves by, with its queue and number.
fn flow_packet(rig: &mut Rig, at: Time) -> (u16, u8, u32) {
    rig.now = at;
    let sent = rig.send(1, &SEGMENT.frame());
    assert_eq!(sent.len(), 1);
    let bytes = &sent[0].bytes;
    let seq = u32::from_be_bytes(bytes[22..26].try_into().unwrap());
    let time = u32::from_be_bytes(bytes[26..30].try_into().unwrap());
    let clock = rig.switch.config().clock.local_us(at);
    assert_eq!(u64::from(time), clock & 0xffff_ffff, "the source's time is its clock at ingress");
    (sent[0].port, bytes[14] >> 1 & 7, seq)
}

fn ms(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// Clock offsets that a flip or a gap must not notice: none, some, and one that wraps within the test.
const OFFSETS_NS: [u64; 3] = [0, 987_654_321_000, ((1 << 32) - 120_000) * 1_000];

#[test]
fn a_flow_changes_path_and_queue_at_its_first_pause_and_keeps_its_order() {
    for offset in OFFSETS_NS {
        let mut rig = source_leaf(offset);
        let mut seq = 0;
        let mut expect = |rig: &mut Rig, at: u64, port: u16, queue: u8| {
            assert_eq!(flow_packet(rig, ms(at)), (port, queue, seq), "at {at} ms, offset {offset}");
            seq += 1;
        };
        for step in 0..5 {
            expect(&mut rig, 100 + 20 * step, 10, 3);
        }
        modify_flow(&mut rig, 1, 0, 50_000);
        // 20 ms apart, the pause that counts is 50 ms: the old path, however many packets.
        for step in 5..15 {
            expect(&mut rig, 100 + 20 * step, 10, 3);
        }
        // Exactly 50 ms after the last one.
        expect(&mut rig, 430, 11, 5);
        for step in 0..5 {
            expect(&mut rig, 450 + 20 * step, 11, 5);
        }
        assert_eq!(rig.register("source_flip", 1), 1);
        assert_eq!(rig.counter("forced_flips", 1), 0);
    }
}

#[test]
fn a_forced_flip_happens_at_once_and_is_counted_once() {
    let mut rig = source_leaf(0);
    assert_eq!(flow_packet(&mut rig, ms(100)).0, 10);
    modify_flow(&mut rig, 1, 1, 50_000);
    for step in 0..4 {
        assert_eq!(flow_packet(&mut rig, ms(120 + 20 * step)).0, 11);
    }
    assert_eq!(rig.counter("forced_flips", 1), 1);
    // Forced, but the flow has paused anyway: nothing was disturbed, nothing is counted.
    modify_flow(&mut rig, 2, 1, 50_000);
    assert_eq!(flow_packet(&mut rig, ms(900)).0, 11);
    assert_eq!(rig.register("source_flip", 1), 2);
    assert_eq!(rig.counter("forced_flips", 1), 1);
}

/// A sink leaf: fabric port 10, the host of `SEGMENT.dst` on port 2, silence longer than 1 ms is idle, interval 1 runs.
fn sink_leaf(clock_offset_ns: u64) -> Rig {
    let mut rig = Rig::new(clock_offset_ns);
    rig.add("port_role", 0, &[is("ingress_port", 10)], "set_port_role", &[("role", 1)]);
    rig.add("path_forward", 0, &[is("label", 0x101)], "sink", &[]);
    rig.add("host", 0, &[is("dst_addr", SEGMENT.dst.into())], "to_host", &[("port", 2)]);
    let config = [("incarnation", 99), ("idle_gap", 1_000)];
    rig.add("switch_config", 0, &[], "set_switch_config", &config);
    rig.set_register("interval", 0, 1);
    rig
}

/// A packet at the sink: arrival in µs, source time in µs, sequence number.
type Arrival = (u64, u32, u32);

fn deliver(rig: &mut Rig, packets: &[Arrival]) {
    for (arrival, time, seq) in packets {
        rig.now = Time::ZERO + Span::from_micros(*arrival);
        rig.switch.receive(rig.now, PortNo(10), &Tag { time: *time, seq: *seq, ..AT_SINK }.frame());
        assert_eq!(rig.run(rig.now).len(), 1, "delivered at once");
    }
}

/// The copy of slot 21 for interval 1.
const COPY: i64 = 2 * 21 + 1;

#[test]
fn active_time_leaves_out_the_pauses_of_the_source_and_counts_those_of_the_network() {
    for offset in OFFSETS_NS {
        // (packets, active time)
        let cases: [(&[Arrival], u128); 5] = [
            // Back to back: every gap counts, the first packet has none.
            (&[(1_000, 5_000, 0), (1_300, 5_300, 1), (1_700, 5_700, 2)], 700),
            // The source paused for 10 ms: idle.
            (
                &[(1_000, 5_000, 0), (1_300, 5_300, 1), (11_300, 15_300, 2), (11_600, 15_600, 3)],
                600,
            ),
            // The network held the flow up for 10 ms, the source did not pause: active all the time.
            (&[(1_000, 5_000, 0), (1_300, 5_300, 1), (11_300, 5_600, 2)], 10_300),
            // A loss in between makes no difference.
            (&[(1_000, 5_000, 0), (1_300, 5_300, 1), (1_900, 5_900, 4)], 900),
            // Source time wraps, and a late packet (0) neither adds nor disturbs.
            (
                &[
                    (1_000, u32::MAX - 99, 1),
                    (1_200, 100, 2),
                    (1_250, u32::MAX - 199, 0),
                    (1_500, 400, 3),
                ],
                500,
            ),
        ];
        for (packets, active) in cases {
            let mut rig = sink_leaf(offset);
            deliver(&mut rig, packets);
            assert_eq!(
                rig.register("interval_active", COPY),
                active,
                "{packets:?}, offset {offset}"
            );
            let ticks = |us: u64| u128::from((offset / 1_000 + us) & 0xffff_ffff);
            assert_eq!(rig.register("interval_first", COPY), ticks(packets[0].0));
            assert_eq!(rig.register("interval_last", COPY), ticks(packets[packets.len() - 1].0));
        }
    }
}

#[test]
fn active_time_goes_on_across_an_interval_and_belongs_to_the_later_one() {
    let mut rig = sink_leaf(0);
    deliver(&mut rig, &[(1_000, 0, 0), (1_400, 400, 1)]);
    rig.set_register("interval", 0, 2);
    deliver(&mut rig, &[(1_900, 900, 2), (2_000, 1_000, 3)]);
    assert_eq!(rig.register("interval_active", COPY), 400);
    assert_eq!(rig.register("interval_active", COPY - 1), 600);
    assert_eq!(rig.register("interval_packets", COPY), 2);
    assert_eq!(rig.register("interval_packets", COPY - 1), 2);
}

#[test]
fn queue_delay_and_depth_of_every_hop_add_up_in_the_tag_and_reach_the_sinks_cells() {
    // Host port of 8 Mbit/s: a frame of 74 bytes takes 74 µs. Four packets at once wait 0, 74, 148, 222 µs.
    let mut rig = sink_leaf(0);
    rig.switch.set_port(PortNo(2), true, Some(BitRate(8_000_000)));
    rig.now = Time::ZERO + Span::from_millis(5);
    for seq in 0..4 {
        let tag = Tag { seq, delay: 1_000, depth: if seq == 0 { 9 } else { 0 }, ..AT_SINK };
        rig.switch.receive(rig.now, PortNo(10), &tag.frame());
    }
    let sent = rig.run(ms(50));
    assert_eq!(sent.len(), 4);
    assert_eq!(sent[0].bytes, SEGMENT.frame());
    assert_eq!(sent[0].bytes.len(), 74);
    assert_eq!(rig.register("interval_delay_sum", COPY), 4 * 1_000 + 74 + 148 + 222);
    assert_eq!(rig.register("interval_delay_max", COPY), 1_222);
    assert_eq!(rig.register("interval_depth_max", COPY), 9);
    assert_eq!(rig.register("interval_bytes", COPY), 4 * 60);
    // Arrival at the sink is the moment at which the packet leaves the last queue.
    assert_eq!(rig.register("interval_first", COPY), 5_000);
    assert_eq!(rig.register("interval_last", COPY), 5_222);
    // The depth that a packet found here counts when nothing deeper lay before: the first leaves at once, the last finds four.
    let mut rig = sink_leaf(0);
    rig.switch.set_port(PortNo(2), true, Some(BitRate(8_000_000)));
    for seq in 0..6 {
        rig.switch.receive(rig.now, PortNo(10), &Tag { seq, ..AT_SINK }.frame());
        rig.run(rig.now);
    }
    rig.run(ms(50));
    assert_eq!(rig.register("interval_depth_max", COPY), 4);
}

/// A router: prefix 10.1/16 by a group of ports 10, 11, 12; 10.1.2/24 by port 13.
fn router() -> Rig {
    let mut rig = Rig::new(0);
    let profile = rig.index.profile("ecmp").unwrap().names.id;
    for port in [10u32, 11, 12, 13] {
        let member = p4::ActionProfileMember {
            action_profile_id: profile,
            member_id: port,
            action: Some(rig.action("route_to", &[("port", port.into())])),
        };
        let entity = Entity { entity: Some(entity::Entity::ActionProfileMember(member)) };
        rig.write(Kind::Insert, entity);
    }
    let member = |port| p4::action_profile_group::Member {
        member_id: port,
        weight: 1,
        ..Default::default()
    };
    let group = p4::ActionProfileGroup {
        action_profile_id: profile,
        group_id: 1,
        members: vec![member(10), member(11), member(12)],
        max_size: 64,
    };
    rig.write(Kind::Insert, Entity { entity: Some(entity::Entity::ActionProfileGroup(group)) });
    let prefix =
        |value: u32, length| Key { name: "dst_addr", value: value.into(), extent: Some(length) };
    let wide =
        rig.entry("route", 0, &[prefix(0x0A01_0000, 16)], TableAction::ActionProfileGroupId(1));
    rig.write(Kind::Insert, wide);
    let narrow =
        rig.entry("route", 0, &[prefix(0x0A01_0200, 24)], TableAction::ActionProfileMemberId(13));
    rig.write(Kind::Insert, narrow);
    rig
}

#[test]
fn a_routed_hop_takes_the_longest_prefix_lowers_the_ttl_and_keeps_the_checksum_true() {
    let mut rig = router();
    // All identifications: the checksum passes through every value, the two where the carry matters included.
    for (ttl, step) in [(2, 331), (64, 1), (255, 331)] {
        for ident in (0..=u16::MAX).step_by(step) {
            let segment = Segment { dst: 0x0A01_0209, ttl, ident, ..SEGMENT };
            let sent = rig.send(1, &segment.frame());
            assert_eq!(sent.len(), 1);
            assert_eq!(sent[0].port, 13);
            assert_eq!(sent[0].bytes, Segment { ttl: ttl - 1, ..segment }.frame(), "{ident}");
        }
    }
}

#[test]
fn ecmp_keeps_a_flow_on_one_member_and_the_next_tier_chooses_independently() {
    let mut rig = router();
    let mut choose = |ttl: u8, src_port: u16| {
        let segment = Segment { dst: 0x0A01_0105, ttl, src_port, ..SEGMENT };
        let sent = rig.send(1, &segment.frame());
        sent[0].port
    };
    let mut pairs: BTreeMap<(u16, u16), u32> = BTreeMap::new();
    for src_port in 1_000..1_900 {
        let (first, next) = (choose(64, src_port), choose(63, src_port));
        assert_eq!(choose(64, src_port), first, "one flow, one path");
        *pairs.entry((first, next)).or_default() += 1;
    }
    // 900 flows over 3 x 3 pairs of members: 100 each, if the tiers are independent (sd about 9.4).
    assert_eq!(pairs.len(), 9, "{pairs:?}");
    assert!(pairs.values().all(|count| (60..=140).contains(count)), "{pairs:?}");
}

#[test]
fn ecmp_spreads_the_queue_pairs_of_one_nic_pair() {
    let mut rig = router();
    let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
    for qp in 0..300u32 {
        let mut frame = Segment { dst: 0x0A01_0105, src_port: 49_152, ..SEGMENT }.frame();
        frame[23] = 17;
        frame[36..38].copy_from_slice(&4791u16.to_be_bytes());
        frame[46..50].copy_from_slice(&qp.to_be_bytes());
        *ports.entry(rig.send(1, &frame)[0].port).or_default() += 1;
    }
    assert!(ports.len() == 3 && ports.values().all(|count| *count > 60), "{ports:?}");
}

#[test]
fn untagged_packets_take_the_queue_of_their_dscp_but_never_the_control_queue() {
    let mut rig = Rig::new(0);
    rig.add("host", 0, &[is("dst_addr", SEGMENT.dst.into())], "to_host", &[("port", 2)]);
    rig.add("traffic_class", 0, &[is("dscp", 46)], "set_queue", &[("queue", 5)]);
    rig.add("traffic_class", 0, &[is("dscp", 48)], "set_queue", &[("queue", 7)]);
    for (dscp, queue) in [(0, 0), (46, 5), (48, 0), (10, 0)] {
        let before = rig.switch.stats().port(PortNo(2));
        rig.send(1, &Segment { dscp, ..SEGMENT }.frame());
        let after = rig.switch.stats().port(PortNo(2));
        let count = |stats: &ringpath::switch::stats::PortStats, queue: usize| {
            stats.queues.get(queue).map_or(0, |queue| queue.sent.packets)
        };
        for q in 0..8 {
            let sent = count(&after, q) - count(&before, q);
            assert_eq!(sent, u64::from(q == queue), "DSCP {dscp}, queue {q}");
        }
    }
}

#[test]
fn every_packet_that_is_not_delivered_counts_under_its_reason() {
    let mut rig = router();
    rig.add("port_role", 0, &[is("ingress_port", 10)], "set_port_role", &[("role", 1)]);
    rig.add("path_forward", 0, &[is("label", 0x101)], "sink", &[]);
    let tagged = |label| Tag { label, ..AT_SINK }.frame();
    let hops = |hops| {
        let mut frame = tagged(0x101);
        frame[15] = hops;
        frame
    };
    let to = |dst, ttl| Segment { dst, ttl, ..SEGMENT }.frame();
    let message = [ethernet(0x88B6), vec![0x52, 0x50, 1, 1], vec![0; 12]].concat();
    // (reason, port, packet)
    let cases = [
        (1, 1, tagged(0x101)),
        (1, 1, message.clone()),
        (2, 10, hops(8)),
        (3, 10, tagged(0x999)),
        (4, 10, tagged(0x101)),
        (5, 1, to(0xC0A8_0001, 64)),
        (6, 1, to(0x0A01_0105, 1)),
        (6, 1, to(0x0A01_0105, 0)),
        (7, 1, [ethernet(0x86DD), vec![0; 40]].concat()),
        (8, 10, message),
    ];
    for (reason, port, packet) in cases {
        let before: Vec<i64> = (0..16).map(|cell| rig.counter("drops", cell)).collect();
        assert!(rig.send(port, &packet).is_empty(), "reason {reason}");
        for (cell, old) in (0..16).zip(before) {
            let counted = rig.counter("drops", cell) - old;
            assert_eq!(counted, i64::from(cell == reason), "reason {reason}, cell {cell}");
        }
    }
    // A label miss whose destination is routed is counted all the same, and goes on.
    let mut frame = ethernet(TAG);
    frame.extend(&tagged(0x999)[14..38]);
    frame.extend(Segment { dst: 0x0A01_0209, ..SEGMENT }.ipv4());
    let sent = rig.send(10, &frame);
    assert_eq!(sent.len(), 1);
    assert_eq!(rig.counter("drops", 3), 2);
}
