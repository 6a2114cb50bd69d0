//! Whether a switch under load keeps its memory. `cargo bench --bench endurance -- 100000000` sends that many packets (a
//! million without a number) through our program and through one that uses every service of the switch, with queues that
//! overflow, clones, replicas, second passes, digests, packet-ins, entries that come and go, and prints the resident memory
//! as it goes. Virtual time: a microsecond per packet. Ends with 1 when memory leaves a band of 1 % around what it was after
//! the warm-up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench is a driver: it prints and reads a clock"
)]

use rand::RngExt as _;
use rand_pcg::Pcg64;
use ringpath::id::PortNo;
use ringpath::p4runtime::device::Device as _;
use ringpath::p4runtime::proto::p4::v1::{
    Action, Entity, FieldMatch, TableAction, TableEntry, Update, action, entity, field_match,
    table_action, update,
};
use ringpath::p4runtime::value::encode;
use ringpath::switch::stf::info::{id, prefix};
use ringpath::switch::{Drop, Switch, stf};
use ringpath::time::{Span, Time, stream};
use ringpath::units::BitRate;
use std::process::ExitCode;
use std::time::Instant;

/// Lines that are printed, the warm-up's included.
const SAMPLES: u64 = 25;
/// Samples that are warm-up.
const WARM_UP: u64 = 2;
/// Packets between two readings of the outbox and two changes of the tables.
const BATCH: u64 = 1_000;
/// Entries that come and go.
const ENTRIES: u32 = 16;

const OURS: &str = "add port_role ingress_port:1 port_role.set_port_role(role:1)\n\
    add path_forward label:257 path.forward(port:2)\nadd path_forward label:258 path.forward(port:1)\n";
const EVERYTHING: &str = "add deliver dst:0x2 send(port:2)\nmirroring_add 5 2\nmc_mgrp_create 5\n\
    mc_node_create 1 2 4\nmc_node_associate 5 0\nmeter_array_set_rates police 0.1:10 0.2:20\n";

/// A tagged packet of a transit switch: label 257 goes to port 2.
const TAGGED: &str = "020000000002020000000001 88B5 1601 01010015 09000000 004D0102 03040000 00000000 0800 \
    4500002C123440004006 1496 0A0000010A000002 138817700000000100000000 5010FFFF00000000 72696E67";

fn switch(json: &[u8], setup: &str) -> (Switch, Time) {
    let case = stf::parse(setup).unwrap();
    let program = stf::Program::new(json, None).unwrap();
    let (mut switch, now) = program.trace(&case, &mut |_| {}).unwrap();
    switch.set_trace(false);
    // A quarter of what comes, so that its queues are full and drop.
    switch.set_port(PortNo(2), true, Some(BitRate(200_000_000)));
    (switch, now)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().filter(|c| !c.is_whitespace()).collect();
    digits
        .chunks(2)
        .map(|d| u8::from_str_radix(&d.iter().collect::<String>(), 16).unwrap())
        .collect()
}

/// Resident memory in KiB.
fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4
}

/// Inserts an entry into `exact_table`, or deletes it.
fn churn(switch: &mut Switch, now: Time, kind: update::Type, key: u32) {
    let program = switch.program().unwrap();
    let table = program.table_named("Enter.exact_table").unwrap();
    let action = program.actions.iter().position(|a| a.name == "Enter.result_counted").unwrap();
    let value = encode(u128::from(key));
    let exact = field_match::Exact { value: value.clone() };
    let param = action::Param { param_id: 1, value };
    let action = Action { action_id: id(prefix::ACTION, action), params: vec![param] };
    let entry = TableEntry {
        table_id: id(prefix::TABLE, table.index()),
        r#match: vec![FieldMatch {
            field_id: 1,
            field_match_type: Some(field_match::FieldMatchType::Exact(exact)),
        }],
        action: Some(TableAction { r#type: Some(table_action::Type::Action(action)) }),
        ..TableEntry::default()
    };
    let entity = Some(Entity { entity: Some(entity::Entity::TableEntry(entry)) });
    switch.write(now, &Update { r#type: kind.into(), entity }).unwrap();
}

struct Load {
    ours: (Switch, Time),
    all: (Switch, Time),
    random: Pcg64,
    packet: Vec<u8>,
    tagged: Vec<u8>,
    left: u64,
}

impl Load {
    fn one(&mut self, number: u64) {
        let (switch, now) = if number.is_multiple_of(4) {
            self.packet.clone_from(&self.tagged);
            self.packet[19] = 1 + (number / 4 % 2) as u8;
            &mut self.ours
        } else {
            self.packet.clear();
            let op = self.random.random_range(0..=24_u8);
            self.packet.extend([0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x88, 0xb6, op]);
            let arg = self.random.random_range(0..4_u8);
            self.packet.extend([arg, 0, 5, 0, 0, 0, self.random.random_range(0..20)]);
            self.packet.resize(self.random.random_range(26..400), 0);
            &mut self.all
        };
        *now += Span::from_micros(1);
        switch.receive(*now, PortNo(1), &self.packet);
        let left = &mut self.left;
        switch.advance(*now, &mut |_| *left += 1);
        if number.is_multiple_of(BATCH) {
            drop(self.ours.0.take_outbox());
            drop(self.all.0.take_outbox());
            let turn = (number / BATCH) as u32;
            let kind = if (turn / ENTRIES).is_multiple_of(2) {
                update::Type::Insert
            } else {
                update::Type::Delete
            };
            churn(&mut self.all.0, self.all.1, kind, turn % ENTRIES);
        }
    }
}

fn main() -> ExitCode {
    let packets = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(1_000_000_u64);
    let mut load = Load {
        ours: switch(include_bytes!("../p4/build/ringpath.json"), OURS),
        all: switch(include_bytes!("../tests/data/switch/exercise.json"), EVERYTHING),
        random: stream(1, "endurance", 0),
        packet: Vec::new(),
        tagged: bytes(TAGGED),
        left: 0,
    };
    let (start, every) = (Instant::now(), (packets / SAMPLES).max(1));
    let (mut warm, mut flat, mut sent) = (0, true, 0);
    println!("{:>14} {:>12} {:>10} {:>8}", "packets", "virtual s", "RSS KiB", "change");
    for sample in 1..=SAMPLES {
        for _ in 0..every {
            load.one(sent);
            sent += 1;
        }
        let now_kib = resident_kib();
        if sample <= WARM_UP {
            warm = now_kib;
        }
        let change = (now_kib as f64 - warm as f64) / warm as f64;
        flat &= change.abs() <= 0.01;
        let seconds = load.all.1.0 as f64 / 1e9;
        println!("{sent:>14} {seconds:>12.1} {now_kib:>10} {:>7.2}%", 100.0 * change);
    }
    let (dropped, full) =
        (load.all.0.stats().all_drops(), load.all.0.stats().drops(Drop::QueueFull));
    println!(
        "{} left, {dropped} dropped ({full} at full queues), {:.0} s, memory {}",
        load.left,
        start.elapsed().as_secs_f64(),
        if flat { "flat" } else { "NOT FLAT" }
    );
    assert!(load.left > 0 && full > 0, "the load does not load");
    if flat { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
