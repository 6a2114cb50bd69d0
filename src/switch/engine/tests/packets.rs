use super::super::*;
use super::rig::{Rig, command, exact};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Copies;
use crate::p4runtime::proto::p4::v1::replica::PortKind;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update as Said;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    CloneSessionEntry, MulticastGroupEntry, PacketIn, PacketMetadata, PacketReplicationEngineEntry,
    Replica,
};
use crate::p4runtime::value::encode;

fn replica(port: u128, instance: u32) -> Replica {
    let port_kind = Some(PortKind::Port(encode(port)));
    Replica { instance, port_kind, ..Replica::default() }
}

fn copies(kind: Copies) -> Kinds {
    Kinds::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })
}

fn session(rig: &mut Rig, session_id: u32, replicas: Vec<Replica>, packet_length_bytes: i32) {
    let session =
        CloneSessionEntry { session_id, replicas, packet_length_bytes, class_of_service: 0 };
    rig.write(Type::Insert, copies(Copies::CloneSessionEntry(session))).unwrap();
}

#[test]
fn a_packet_goes_through_and_is_counted() {
    let mut rig = Rig::new();
    let out = rig.ask(0, 7, 3, 9).unwrap();
    assert_eq!((out.port, out.op, out.arg, out.index, out.key, out.length), (2, 0, 7, 3, 9, 60));
    let stats = rig.switch.stats();
    assert_eq!(stats.port(PortNo(1)).received.bytes, 60);
    assert_eq!(stats.port(PortNo(2)).sent.packets, 1);
    assert_eq!(stats.port(PortNo(2)).queues[0].sent.bytes, 60);
    assert_eq!(stats.all_drops(), 0);
}

#[test]
fn drops_are_counted_by_reason() {
    let mut rig = Rig::new();
    assert!(rig.ask(20, 0, 0, 0).is_none());
    assert!(rig.ask(22, 0, 0, 0).is_none());
    assert!(rig.ask(13, 0, 77, 0).is_none());
    rig.switch.receive(Time(0), PortNo(1), &vec![0; MAX_PACKET_BYTES + 1]);
    rig.switch.set_port(PortNo(2), false, None);
    assert!(rig.ask(0, 0, 0, 0).is_none());
    rig.switch.set_port(PortNo(1), false, None);
    assert!(rig.ask(0, 0, 0, 0).is_none());
    let drops = |reason| rig.switch.stats().drops(reason);
    assert_eq!(drops(Drop::Ingress), 1);
    assert_eq!(drops(Drop::Egress), 1);
    assert_eq!(drops(Drop::NoReplica), 1);
    assert_eq!(drops(Drop::TooLong), 1);
    assert_eq!(drops(Drop::PortDown), 2);
    assert_eq!(rig.switch.stats().all_drops(), 6);
}

#[test]
fn short_packets_are_parser_errors_and_go_on() {
    let mut rig = Rig::new();
    rig.switch.receive(Time(0), PortNo(1), &command(0, 0, 0, 0)[..18]);
    assert_eq!(rig.switch.stats().parser_errors, 1);
    assert_eq!(rig.sent().len(), 1);
}

#[test]
fn priorities_choose_queues_behind_one_shaper() {
    let mut rig = Rig::new();
    rig.switch.set_port(PortNo(2), true, Some(BitRate(480_000_000))); // 60 bytes: 1 µs
    for (key, queue) in [(0, 1), (1, 1), (2, 7), (3, 0)] {
        rig.switch.receive(Time(0), PortNo(1), &command(12, queue, 0, key));
    }
    assert_eq!(rig.switch.poll_at(), Some(Time(0)));
    rig.now = 10_000;
    let out = rig.sent();
    let order: Vec<(u32, u64, u64)> = out.iter().map(|o| (o.key, o.start, o.end)).collect();
    assert_eq!(order, [(2, 0, 1000), (0, 1000, 2000), (1, 2000, 3000), (3, 3000, 4000)]);
    // deq_timedelta is in microseconds; enq_qdepth counts the packets that were there before.
    let seen: Vec<(u32, u16)> = out.iter().map(|o| (o.result, o.index)).collect();
    assert_eq!(seen, [(0, 0), (1, 0), (2, 1), (3, 0)]);
}

#[test]
fn a_priority_without_a_queue_is_dropped_and_full_queues_lose_their_tail() {
    let mut rig = Rig::with(Config { priority_queues: 2, queue_packets: 3, ..Config::default() });
    assert!(rig.ask(12, 2, 0, 0).is_none());
    for key in 0..5 {
        rig.switch.receive(Time(0), PortNo(1), &command(12, 1, 0, key));
    }
    let kept: Vec<u32> = rig.sent().iter().map(|out| out.key).collect();
    assert_eq!(kept, [0, 1, 2]);
    let stats = rig.switch.stats();
    assert_eq!((stats.drops(Drop::Priority), stats.drops(Drop::QueueFull)), (1, 2));
    let queue = stats.port(PortNo(2)).queues[1];
    assert_eq!((queue.full.packets, queue.max_depth), (2, 3));
}

#[test]
fn multicast_makes_one_copy_per_replica_with_its_instance() {
    let mut rig = Rig::new();
    let replicas = vec![replica(4, 40), replica(5, 50), replica(4, 41)];
    let group =
        MulticastGroupEntry { multicast_group_id: 3, replicas, ..MulticastGroupEntry::default() };
    rig.write(Type::Insert, copies(Copies::MulticastGroupEntry(group.clone()))).unwrap();
    let read = rig.read(copies(Copies::MulticastGroupEntry(MulticastGroupEntry::default())));
    assert_eq!(read, [copies(Copies::MulticastGroupEntry(group.clone()))]);
    let mut out: Vec<(u16, u32)> =
        rig.all(13, 0, 3, 0).iter().map(|out| (out.port, out.result)).collect();
    out.sort_unstable();
    assert_eq!(out, [(4, 40), (4, 41), (5, 50)]);
    rig.write(Type::Delete, copies(Copies::MulticastGroupEntry(group))).unwrap();
    assert_eq!(rig.all(13, 0, 3, 0), []);
}

#[test]
fn an_ingress_clone_is_the_packet_as_received_with_the_kept_fields() {
    let mut rig = Rig::new();
    session(&mut rig, 5, vec![replica(7, 0)], 0);
    let out = rig.all(14, 0, 5, 1234);
    let original = out.iter().find(|out| out.port == 2).unwrap();
    let clone = out.iter().find(|out| out.port == 7).unwrap();
    assert_eq!(original.result, 1);
    assert_eq!((clone.result, clone.arg), (1234, 0xc1));
    // An unknown session clones nothing; the original goes on.
    assert_eq!(rig.all(14, 0, 6, 0).len(), 1);
    assert_eq!(rig.switch.stats().drops(Drop::NoSession), 1);
}

#[test]
fn an_egress_clone_has_the_headers_of_egress_and_is_cut_to_its_sessions_length() {
    let mut rig = Rig::new();
    session(&mut rig, 5, vec![replica(7, 0), replica(8, 0)], 30);
    let out = rig.all(15, 0, 5, 99);
    let ports: Vec<(u16, u32, usize)> =
        out.iter().map(|out| (out.port, out.result, out.length)).collect();
    assert_eq!(ports, [(2, 0, 60), (7, 100, 30), (8, 100, 30)]);
}

#[test]
fn resubmitted_and_recirculated_packets_come_back_with_their_kept_fields() {
    let mut rig = Rig::new();
    assert_eq!(rig.ask(16, 3, 0, 0).unwrap().result, 3);
    assert_eq!(rig.ask(17, 5, 0, 0).unwrap().result, 5);
}

#[test]
fn a_packet_that_goes_round_too_often_is_dropped_and_counted() {
    let mut rig = Rig::new();
    let most = MAX_PASSES as u8;
    assert_eq!(rig.ask(17, most, 0, 0).unwrap().result, u32::from(most));
    assert_eq!(rig.ask(16, most, 0, 0).unwrap().result, u32::from(most));
    assert_eq!(rig.switch.stats().drops(Drop::Passes), 0);
    assert_eq!(rig.ask(17, most + 1, 0, 0), None);
    assert_eq!(rig.ask(16, most + 1, 0, 0), None);
    assert_eq!(rig.switch.stats().drops(Drop::Passes), 2);
}

#[test]
fn truncate_cuts_what_leaves() {
    let mut rig = Rig::new();
    assert_eq!(rig.ask(23, 0, 33, 0).unwrap().length, 33);
}

#[test]
fn packets_from_and_to_the_controller_carry_their_headers() {
    let mut rig = Rig::new();
    let out_id = rig.info.header("packet_out").unwrap().field("egress_port").unwrap().id;
    let packet = PacketOut {
        payload: command(0, 1, 2, 3),
        metadata: vec![PacketMetadata { metadata_id: out_id, value: encode(300) }],
    };
    rig.switch.packet_out(Time(0), &packet).unwrap();
    let out = rig.sent();
    assert_eq!((out.len(), out[0].port, out[0].key, out[0].length), (1, 300, 3, 60));

    assert!(rig.ask(19, 99, 0, 0xabcd).is_none());
    let said = rig.outbox();
    let [StreamMessageResponse { update: Some(Said::Packet(PacketIn { payload, metadata })) }] =
        &said[..]
    else {
        panic!("{said:?}")
    };
    assert_eq!(payload, &command(19, 99, 0, 0xabcd));
    let header = rig.info.header("packet_in").unwrap();
    let value = |name: &str| {
        let id = header.field(name).unwrap().id;
        metadata.iter().find(|m| m.metadata_id == id).unwrap().value.clone()
    };
    assert_eq!((value("ingress_port"), value("reason")), (encode(1), encode(99)));
    assert_eq!(rig.switch.stats().packet_ins, 1);
}

#[test]
fn a_controller_that_reads_nothing_loses_packets_and_not_the_memory() {
    let mut rig = Rig::new();
    for _ in 0..MAX_OUTBOX + 5 {
        rig.all(19, 0, 0, 0);
    }
    assert_eq!(rig.switch.stats().drops(Drop::OutboxFull), 5);
    assert_eq!(rig.outbox().len(), MAX_OUTBOX);
}

#[test]
fn the_programs_clock_is_the_switchs_own() {
    let clock = crate::switch::Clock { offset_ns: 5_000_000, skew_ppm: 100 };
    let mut rig = Rig::with(Config { clock, ..Config::default() });
    rig.now = 1_000_000_000;
    assert_eq!(rig.ask(24, 0, 0, 0).unwrap().result, 5_000 + 1_000_000 + 100);
}

#[test]
fn buffers_are_given_back_on_every_way_out() {
    let mut rig = Rig::new();
    session(&mut rig, 5, vec![replica(7, 0), replica(8, 0)], 0);
    rig.insert("deliver", &[("dst", exact(3))], 0, ("send", &[("port", 510)]));
    for round in 0..50 {
        for op in 0..=24 {
            rig.all(op, 3, 5, round);
        }
        rig.switch.set_port(PortNo(2), round % 2 == 0, None);
    }
    assert_eq!(rig.switch.free.len(), rig.switch.slots.len());
    assert!(rig.switch.slots.len() < 10, "{}", rig.switch.slots.len());
}

#[test]
fn packets_for_a_full_port_wait_before_egress_and_only_the_queue_loses_some() {
    let mut rig = Rig::new();
    let mut left = 0;
    for _ in 0..3 {
        rig.switch.receive(Time(0), PortNo(1), &command(0, 0, 0, 0));
    }
    rig.switch.advance_into(Time(0), &mut |_| {
        left += 1;
        if left == 2 { Taken::Full } else { Taken::More }
    });
    assert_eq!((left, rig.switch.poll_at()), (2, None), "the third waits, and nothing is due");
    for _ in 0..70 {
        rig.switch.receive(Time(5), PortNo(1), &command(0, 0, 0, 0));
    }
    assert_eq!(rig.switch.stats().drops(Drop::QueueFull), 7, "a queue holds 64");
    rig.switch.release(Time(1_000), PortNo(2));
    rig.now = 1_000;
    let out = rig.sent();
    assert_eq!((out.len(), out[0].start), (64, 1_000));
    assert_eq!(rig.switch.stats().port(PortNo(2)).sent.packets, 66);
}

#[test]
fn a_packet_that_nobody_takes_is_a_loss_and_not_sent() {
    let mut rig = Rig::new();
    rig.switch.receive(Time(0), PortNo(1), &command(0, 0, 0, 0));
    rig.switch.advance_into(Time(0), &mut |_| Taken::Lost(Drop::NoInterface));
    let stats = rig.switch.stats();
    assert_eq!((stats.drops(Drop::NoInterface), stats.port(PortNo(2)).sent.packets), (1, 0));
    assert_eq!(rig.switch.packets_held(), 0);
}
