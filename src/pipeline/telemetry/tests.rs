//! Requests, replies and register reads against the layouts of p4/README.md.

use super::*;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::pipeline::tests::program;

fn reply(op: u8, reason: u8) -> proto::PacketIn {
    let mut frame = vec![0; 12];
    frame.extend([0x88, 0xb6, 0x52, 0x50, 1, op]);
    frame.extend([0xa1, 0, 0, 9, 0, 17, 0, 0, 0, 0, 0, 6]);
    // Stamp, then cells: each word is its own place in the frame.
    for place in (30..98_u32).step_by(4) {
        frame.extend(if place == 62 { 6 } else { place }.to_be_bytes());
    }
    frame.extend([3, 0, 0, 0]);
    let metadata = vec![
        proto::PacketMetadata { metadata_id: 1, value: vec![1, 254] },
        proto::PacketMetadata { metadata_id: 2, value: vec![reason] },
    ];
    proto::PacketIn { payload: frame, metadata }
}

fn wanted() -> Sample {
    Sample {
        slot: 17,
        epoch: 3,
        interval: 6,
        running: 38,
        incarnation: 34,
        tick: Tick::default(),
        time_ticks: Some(30),
        totals: Totals { packets: 46, bytes: 50, lost: 54, reordered: 58 },
        cell: Some(Cell {
            packets: 66,
            bytes: 70,
            active: 74,
            delay_sum: 78,
            delay_max: 82,
            depth_max: 86,
            first: 90,
            last: 94,
        }),
    }
}

#[test]
fn a_request_has_the_bytes_of_the_contract() {
    let readout = program().readout;
    let message = readout.packet_out(0xa100_0009, Request::Read { slot: 17, interval: 6 });
    let Some(proto::stream_message_request::Update::Packet(packet)) = message.update else {
        panic!("a packet-out");
    };
    let head = [0x88, 0xb6, 0x52, 0x50, 1, 1, 0xa1, 0, 0, 9, 0, 17, 0, 0, 0, 0, 0, 6];
    assert_eq!(packet.payload[..12], [0; 12]);
    assert_eq!(packet.payload[12..], head);
    assert_eq!((packet.metadata[0].metadata_id, &packet.metadata[0].value[..]), (1, &[1, 254][..]));
    let message = readout.packet_out(1, Request::Advance { interval: 0x0102_0304 });
    let Some(proto::stream_message_request::Update::Packet(packet)) = message.update else {
        panic!("a packet-out");
    };
    assert_eq!(packet.payload[17], 2);
    assert_eq!(packet.payload[22..], [0, 0, 0, 0, 1, 2, 3, 4]);
}

#[test]
fn a_reply_gives_every_cell_and_an_absent_interval_none() {
    let readout = program().readout;
    let answer = readout.answer(&reply(1, 1)).unwrap();
    let request = Request::Read { slot: 17, interval: 6 };
    assert_eq!(answer, Answer { id: 0xa100_0009, request, sample: wanted() });
    let advance = readout.answer(&reply(2, 1)).unwrap();
    assert_eq!(advance.request, Request::Advance { interval: 6 });
    let mut other = reply(1, 1);
    let mut frame = other.payload.to_vec();
    frame[65] = 4;
    other.payload = frame;
    assert_eq!(readout.answer(&other).unwrap().sample, Sample { cell: None, ..wanted() });
}

#[test]
fn other_packets_and_broken_replies_are_not_answers() {
    let readout = program().readout;
    let with = |edit: fn(&mut Vec<u8>)| {
        let mut packet = reply(1, 1);
        let mut frame = packet.payload.to_vec();
        edit(&mut frame);
        packet.payload = frame;
        packet
    };
    for packet in [
        reply(1, 2),
        with(|frame| frame[12] = 8),
        with(|frame| frame[15] = 0),
        with(|frame| frame[16] = 2),
        with(|frame| frame.truncate(21)),
        proto::PacketIn::default(),
    ] {
        assert_eq!((readout.id_of(&packet), readout.answer(&packet)), (None, None));
    }
    // Ours by its id, but nothing to read in it.
    for packet in [reply(3, 1), with(|frame| frame.truncate(101))] {
        assert_eq!((readout.id_of(&packet), readout.answer(&packet)), (Some(0xa100_0009), None));
    }
}

/// Answers a Read with cells that hold what the packet of [`reply`] holds.
fn registers(asked: &[proto::Entity], number: u32) -> Vec<proto::Entity> {
    let program = program();
    let names = ["interval", "sink_epoch", "packets", "bytes", "lost", "reordered"];
    let copies = ["number", "packets", "bytes", "active", "delay_sum", "delay_max", "depth_max"];
    let copies = copies.into_iter().chain(["first", "last"]).map(|name| format!("interval_{name}"));
    let index = crate::p4runtime::p4info::Index::new(crate::pipeline::tests::p4info()).unwrap();
    let values = [38, 3, 46, 50, 54, 58, number, 66, 70, 74, 78, 82, 86, 90, 94];
    let names = names.into_iter().map(str::to_owned).chain(copies);
    let by_id: Vec<(u32, u32)> =
        names.map(|name| index.register(&name).unwrap().names.id).zip(values).collect();
    let answer = |entity: &proto::Entity| match &entity.entity {
        Some(proto::entity::Entity::RegisterEntry(entry)) => {
            let (_, value) = by_id.iter().find(|(id, _)| *id == entry.register_id).unwrap();
            let data =
                proto::p4_data::Data::Bitstring(crate::p4runtime::value::encode((*value).into()));
            let mut entry = entry.clone();
            entry.data = Some(proto::P4Data { data: Some(data) });
            proto::Entity { entity: Some(proto::entity::Entity::RegisterEntry(entry)) }
        }
        _ => {
            let action = crate::pipeline::switch_config::Action { incarnation: 34, idle_gap: 1 };
            let entry = program.switch_config.to_entry(action);
            proto::Entity { entity: Some(proto::entity::Entity::TableEntry(entry)) }
        }
    };
    asked.iter().map(answer).collect()
}

#[test]
fn registers_and_readout_packets_give_the_same_sample() {
    let program = program();
    let cells = program.cells.clone().unwrap();
    let asked = cells.read(&program.switch_config, &[17], 6);
    let indices: Vec<i64> = asked
        .iter()
        .filter_map(|entity| match &entity.entity {
            Some(proto::entity::Entity::RegisterEntry(entry)) => Some(entry.index.unwrap().index),
            _ => None,
        })
        .collect();
    assert_eq!(indices, [[0].as_slice(), &[17; 5], &[34; 9]].concat());
    let read = cells.samples(&program.switch_config, (&[17], 6), &registers(&asked, 6));
    let same = Sample { time_ticks: None, ..wanted() };
    assert_eq!(read, Read { running: 38, incarnation: 34, samples: vec![same] });
    let read = cells.samples(&program.switch_config, (&[17], 6), &registers(&asked, 4));
    assert_eq!(read.samples, [Sample { cell: None, ..same }]);
}

#[test]
fn a_slot_of_which_a_cell_is_absent_has_no_sample() {
    let program = program();
    let cells = program.cells.clone().unwrap();
    let asked = cells.read(&program.switch_config, &[17, 18], 7);
    let mut answer = registers(&asked, 7);
    let read = |answer: &[proto::Entity]| {
        let read = cells.samples(&program.switch_config, (&[17, 18], 7), answer);
        read.samples.iter().map(|sample| sample.slot).collect::<Vec<_>>()
    };
    assert_eq!(read(&answer), [17, 18]);
    answer.remove(5);
    assert_eq!(read(&answer), [18]);
    answer.pop();
    assert_eq!(read(&answer), [0_u16; 0]);
    assert_eq!(cells.running_in(&registers(&[cells.probe()], 7)), Some(38));
}
