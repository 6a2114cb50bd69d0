//! Speed of the switch: lookups beside the scan that they must agree with, our program's time per packet beside the
//! plainest forwarder there is (copy the bytes, note the port), and an access list by mask beside the same list by hash.
//! `cargo bench --bench switch` prints divan's table and then the ratios, measured in the same run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench is a driver: it prints and reads a clock"
)]

#[path = "../tests/it/rig.rs"]
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
mod rig;

use divan::{Bencher, black_box};
use rand::RngExt as _;
use rig::{Key, Rig, is};
use ringpath::id::PortNo;
use ringpath::p4runtime::device::Device as _;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use ringpath::p4runtime::proto::p4::v1::table_action::Type as ActionType;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{
    Action, Entity, FieldMatch, ForwardingPipelineConfig, TableAction, TableEntry, Update, action,
};
use ringpath::p4runtime::value::encode;
use ringpath::switch::lookup::reference::Reference;
use ringpath::switch::lookup::{FieldKind, FieldMatch as Matched, KeyLayout, Lookup, Rank};
use ringpath::switch::{Config, Switch};
use ringpath::time::{Span, Time, stream};
use std::time::Instant;

/// Entries of every table.
const ENTRIES: u32 = 10_000;
/// Keys that are looked up in turn: three quarters hit.
const KEYS: usize = 4096;

fn main() {
    divan::main();
    ratios();
    access_list_ratios();
}

/// A table of [`ENTRIES`] entries, its twin, and keys.
struct Tables {
    fast: Lookup,
    twin: Reference,
    keys: Vec<Vec<u64>>,
}

#[derive(Clone, Copy)]
enum Shape {
    Exact,
    Lpm,
    /// One mask, as our `classify` has it: source, destination and queue pair.
    Classify,
    /// Prefixes of all lengths on both addresses, as access lists have them.
    AccessList,
}

fn tables(shape: Shape) -> Tables {
    let fields = match shape {
        Shape::Exact => vec![(FieldKind::Exact, 32)],
        Shape::Lpm => vec![(FieldKind::Lpm, 32)],
        Shape::Classify | Shape::AccessList => {
            [32, 32, 8, 16, 16, 24].map(|width| (FieldKind::Ternary, width)).to_vec()
        }
    };
    let layout = KeyLayout::new(&fields);
    let (mut fast, mut twin) = (Lookup::new(&layout), Reference::new(layout.clone()));
    let mut rng = stream(7, "switch bench", 0);
    let mut keys = Vec::new();
    for id in 0..ENTRIES {
        let (a, b) = (rng.random::<u32>().to_be_bytes(), rng.random::<u32>().to_be_bytes());
        let (len_a, len_b) = (rng.random_range(8..=32), rng.random_range(8..=32));
        let matches = match shape {
            Shape::Exact => vec![Matched::Exact(&a)],
            Shape::Lpm => vec![Matched::Lpm(&a, len_a)],
            Shape::Classify => vec![
                Matched::Exact(&a),
                Matched::Exact(&b),
                Matched::Any,
                Matched::Any,
                Matched::Any,
                Matched::Exact(&b[1..]),
            ],
            Shape::AccessList => vec![
                Matched::Lpm(&a, len_a),
                Matched::Lpm(&b, len_b),
                Matched::Exact(&[17]),
                Matched::Any,
                Matched::Any,
                Matched::Any,
            ],
        };
        let packed = layout.pack(&matches).unwrap();
        let priority = if fast.by_priority() { rng.random_range(1..1000) } else { 0 };
        let rank = Rank { priority, sequence: u64::from(id) };
        fast.insert(id, &packed, rank);
        twin.insert(id, &packed, rank);
        if keys.len() < KEYS && rng.random_range(0..2) == 0 {
            let mut key = packed.value.to_vec();
            if keys.len() % 4 == 3 {
                key[0] ^= 0x8000_0000; // most of these miss
            }
            keys.push(key);
        }
    }
    Tables { fast, twin, keys }
}

fn each<'a>(keys: &'a [Vec<u64>]) -> impl FnMut() -> &'a [u64] {
    let mut at = 0;
    move || {
        at = (at + 1) % keys.len();
        &keys[at]
    }
}

fn bench_fast(bencher: Bencher<'_, '_>, shape: Shape) {
    let tables = tables(shape);
    let mut next = each(&tables.keys);
    bencher.bench_local(move || black_box(tables.fast.find(black_box(next()))));
}

fn bench_twin(bencher: Bencher<'_, '_>, shape: Shape) {
    let tables = tables(shape);
    let mut next = each(&tables.keys);
    bencher.bench_local(move || black_box(tables.twin.find(black_box(next()))));
}

macro_rules! lookups {
    ($($fast:ident $twin:ident $shape:ident;)*) => {
        $(
            #[divan::bench]
            fn $fast(bencher: Bencher<'_, '_>) {
                bench_fast(bencher, Shape::$shape);
            }
            #[divan::bench]
            fn $twin(bencher: Bencher<'_, '_>) {
                bench_twin(bencher, Shape::$shape);
            }
        )*
    };
}

lookups! {
    exact_10k exact_10k_scan Exact;
    lpm_10k lpm_10k_scan Lpm;
    classify_10k classify_10k_scan Classify;
    access_list_10k access_list_10k_scan AccessList;
}

/// Our program on a leaf: packets of one flow are tagged, labelled ones forwarded.
struct Leaf {
    switch: Switch,
    now: u64,
}

fn entry(
    info: &Index,
    table: &str,
    key: &[(&str, FieldMatchType)],
    priority: i32,
    name: &str,
    params: &[(&str, u128)],
) -> Update {
    let (table, action) = (info.table(table).unwrap(), info.action(name).unwrap());
    let field = |(name, kind): &(&str, FieldMatchType)| FieldMatch {
        field_id: table.field(name).unwrap().id,
        field_match_type: Some(kind.clone()),
    };
    let param = |(name, value): &(&str, u128)| action::Param {
        param_id: action.param(name).unwrap().id,
        value: encode(*value),
    };
    let action = Action { action_id: action.names.id, params: params.iter().map(param).collect() };
    let entry = TableEntry {
        table_id: table.names.id,
        r#match: key.iter().map(field).collect(),
        priority,
        action: Some(TableAction { r#type: Some(ActionType::Action(action)) }),
        ..TableEntry::default()
    };
    let entity = Some(Entity { entity: Some(Kinds::TableEntry(entry)) });
    Update { r#type: Type::Insert.into(), entity }
}

fn exact(value: u128) -> FieldMatchType {
    FieldMatchType::Exact(field_match::Exact { value: encode(value) })
}

fn ternary(value: u128, mask: u128) -> FieldMatchType {
    FieldMatchType::Ternary(field_match::Ternary { value: encode(value), mask: encode(mask) })
}

fn leaf() -> Leaf {
    let text = include_str!("../p4/build/ringpath.p4info.txtpb");
    let info = Index::from_text(text).unwrap();
    let mut switch = Switch::new(Config { priority_queues: 8, ..Config::default() });
    let config = ForwardingPipelineConfig {
        p4info: Some(info.info().clone()),
        p4_device_config: include_bytes!("../p4/build/ringpath.json").to_vec().into(),
        cookie: None,
    };
    switch.load_pipeline(Time(0), &config).unwrap();
    let key = |qp: u128| {
        [
            ("src_addr", ternary(0x0a00_0001, 0xffff_ffff)),
            ("dst_addr", ternary(0x0a00_0002, 0xffff_ffff)),
            ("dst_qp", ternary(qp, 0xff_ffff)),
        ]
    };
    let params = [
        ("label", 5),
        ("queue", 3),
        ("src_slot", 1),
        ("slot", 1),
        ("epoch", 1),
        ("flip", 0),
        ("old_label", 5),
        ("old_queue", 3),
        ("force", 0),
        ("flip_gap", 200),
    ];
    let mut updates: Vec<Update> =
        (0..1000).map(|qp| entry(&info, "classify", &key(qp), 10, "tag", &params)).collect();
    updates.push(entry(
        &info,
        "path_forward",
        &[("label", exact(5))],
        0,
        "forward",
        &[("port", 2)],
    ));
    updates.push(entry(
        &info,
        "host",
        &[("dst_addr", exact(0x0a00_0002))],
        0,
        "to_host",
        &[("port", 3)],
    ));
    let role = [("role", 1)];
    updates.push(entry(
        &info,
        "port_role",
        &[("ingress_port", exact(9))],
        0,
        "set_port_role",
        &role,
    ));
    for update in updates {
        switch.write(Time(0), &update).unwrap();
    }
    Leaf { switch, now: 0 }
}

impl Leaf {
    fn packet(&mut self, port: u16, bytes: &[u8]) -> u64 {
        self.now += 1000;
        self.switch.receive(Time(self.now), PortNo(port), bytes);
        let mut left = 0;
        self.switch.advance(Time(self.now), &mut |sent| {
            left += sent.bytes.len() as u64;
            black_box(sent.bytes);
        });
        left
    }
}

/// A RoCEv2 packet of `length` bytes from 10.0.0.1 to 10.0.0.2.
fn roce(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[12..14].copy_from_slice(&[0x08, 0x00]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&(length as u16 - 14).to_be_bytes());
    (bytes[22], bytes[23]) = (64, 17);
    bytes[26..30].copy_from_slice(&[10, 0, 0, 1]);
    bytes[30..34].copy_from_slice(&[10, 0, 0, 2]);
    bytes[36..38].copy_from_slice(&4791_u16.to_be_bytes());
    bytes[49] = 0x77;
    bytes
}

/// The same packet as it comes from the fabric, tagged for label 5.
fn tagged(length: usize) -> Vec<u8> {
    let inner = roce(length - 24);
    let mut bytes = inner[..12].to_vec();
    bytes.extend_from_slice(&[0x88, 0xb5]);
    let mut tag = [0_u8; 24];
    tag[0] = (TAG_VERSION << 4) | (3 << 1);
    (tag[3], tag[5], tag[6]) = (5, 1, 1);
    tag[22..24].copy_from_slice(&[0x08, 0x00]);
    bytes.extend_from_slice(&tag);
    bytes.extend_from_slice(&inner[14..]);
    bytes
}

/// `TAG_VERSION` of p4/common/types.p4.
const TAG_VERSION: u8 = 1;

/// The plainest forwarder: copy the packet, look the port up in an array.
struct Plain {
    ports: [u16; 512],
    buffer: Vec<u8>,
}

impl Plain {
    fn packet(&mut self, port: u16, bytes: &[u8]) -> u64 {
        self.buffer.clear();
        self.buffer.extend_from_slice(black_box(bytes));
        u64::from(black_box(self.ports[usize::from(port)])) + black_box(&self.buffer).len() as u64
    }
}

const LENGTHS: [usize; 2] = [128, 1500];

#[divan::bench(args = LENGTHS)]
fn tag_a_packet(bencher: Bencher<'_, '_>, length: usize) {
    let (mut leaf, packet) = (leaf(), roce(length));
    bencher.bench_local(move || black_box(leaf.packet(1, &packet)));
}

#[divan::bench(args = LENGTHS)]
fn forward_a_tagged_packet(bencher: Bencher<'_, '_>, length: usize) {
    let (mut leaf, packet) = (leaf(), tagged(length));
    bencher.bench_local(move || black_box(leaf.packet(9, &packet)));
}

#[divan::bench(args = LENGTHS)]
fn copy_a_packet(bencher: Bencher<'_, '_>, length: usize) {
    let (mut plain, packet) = (Plain { ports: [2; 512], buffer: Vec::new() }, roce(length));
    bencher.bench_local(move || black_box(plain.packet(1, &packet)));
}

/// An access list of [`ENTRIES`] entries: who may speak to whom by which service.
struct AccessList {
    rig: Rig,
    /// One packet per allowed conversation, at most [`KEYS`]; each meets an entry of either table.
    packets: Vec<Vec<u8>>,
    at: usize,
}

/// How the entries of the list by mask look.
#[derive(Clone, Copy)]
enum Masks {
    /// All bits of all fields, as in the list by hash.
    Whole,
    /// Prefixes of 8 to 32 bits on both addresses.
    Prefixes,
    /// As filters look: a site's prefix or any on either side, mostly TCP, mostly few services.
    Filter,
}

/// Source, destination, protocol, destination port, each with the bits that count.
fn line(masks: Masks, rng: &mut rand_pcg::Pcg64, sites: &[u32]) -> [(u32, u32); 4] {
    const SERVICES: [u32; 8] = [80, 443, 22, 25, 53, 8080, 123, 161];
    const LENGTHS: [u32; 9] = [16, 20, 24, 24, 24, 28, 32, 32, 32];
    let mut site = |any: f64| {
        let (low, base) = (rng.random::<u32>() & 0xffff, sites[rng.random_range(0..sites.len())]);
        let length = LENGTHS[rng.random_range(0..LENGTHS.len())];
        let length = if rng.random_bool(any) { 0 } else { length };
        (base & 0xffff_0000 | low, length)
    };
    let (source, destination) = (site(0.4), site(0.05));
    let service = SERVICES[rng.random_range(0..SERVICES.len())];
    let random: [u32; 3] = rng.random();
    match masks {
        Masks::Whole => [(random[0], 32), (random[1], 32), (17, 8), (random[2] & 0xffff, 16)],
        Masks::Prefixes => {
            let lengths = [rng.random_range(8..=32), rng.random_range(8..=32)];
            [(random[0], lengths[0]), (random[1], lengths[1]), (17, 8), (random[2] & 0xffff, 0)]
        }
        Masks::Filter => {
            let protocol = if rng.random_bool(0.6) { (6, 8) } else { (17, 8) };
            let known = rng.random_bool(0.7);
            let port = if known { service } else { random[2] & 0xffff };
            let length = if rng.random_bool(0.3) { 0 } else { 16 };
            [source, destination, protocol, (port, length)]
        }
    }
}

/// The bits that a prefix of `length` of `width` keeps.
fn prefix(width: u32, length: u32) -> u128 {
    ((1 << length) - 1) << (width - length)
}

/// An IPv4 packet from the first address to the second, from port 7.
fn datagram([source, destination, protocol, port]: [u32; 4]) -> Vec<u8> {
    let mut bytes = roce(128);
    bytes[23] = protocol as u8;
    bytes[26..30].copy_from_slice(&source.to_be_bytes());
    bytes[30..34].copy_from_slice(&destination.to_be_bytes());
    bytes[34..36].copy_from_slice(&7_u16.to_be_bytes());
    bytes[36..38].copy_from_slice(&(port as u16).to_be_bytes());
    bytes
}

fn access_list(masks: Masks) -> AccessList {
    let mut rig = Rig::of("acl", Config::default());
    let mut rng = stream(11, "access list", 0);
    let sites: Vec<u32> = (0..60).map(|_| rng.random()).collect();
    let mut packets = Vec::new();
    const FIELDS: [(&str, u32); 4] = [
        ("hdr.ipv4.src_addr", 32),
        ("hdr.ipv4.dst_addr", 32),
        ("hdr.ipv4.protocol", 8),
        ("meta.dst_port", 16),
    ];
    for priority in 1..=ENTRIES {
        let line = line(masks, &mut rng, &sites);
        let key = |((name, width), (value, length)): (&(&'static str, u32), (u32, u32))| {
            let mask = prefix(*width, length);
            Key { name, value: u128::from(value) & mask, extent: Some(mask) }
        };
        let by_mask: Vec<Key<'_>> =
            FIELDS.iter().zip(line).map(key).filter(|key| key.extent != Some(0)).collect();
        rig.add("acl_ternary", priority as i32, &by_mask, "permit", &[("port", 3)]);
        // The conversation: what the entry leaves open is drawn.
        let talk: Vec<u32> = FIELDS
            .iter()
            .zip(line)
            .map(|((_, width), (value, length))| {
                let mask = prefix(*width, length) as u32;
                let all = prefix(*width, *width) as u32;
                value & mask | rng.random::<u32>() & all & !mask
            })
            .collect();
        let mut exact: Vec<Key<'_>> = FIELDS
            .iter()
            .zip(&talk)
            .map(|((name, _), value)| is(name, u128::from(*value)))
            .collect();
        exact.push(is("meta.src_port", 7));
        rig.add("acl_exact", 0, &exact, "permit", &[("port", 3)]);
        if packets.len() < KEYS {
            packets.push(datagram([talk[0], talk[1], talk[2], talk[3]]));
        }
    }
    AccessList { rig, packets, at: 0 }
}

impl AccessList {
    fn packet(&mut self, port: u16) -> u64 {
        self.at = (self.at + 1) % self.packets.len();
        self.rig.now += Span::from_micros(1);
        self.rig.switch.receive(self.rig.now, PortNo(port), &self.packets[self.at]);
        let mut left = 0;
        self.rig.switch.advance(self.rig.now, &mut |sent| {
            left += sent.bytes.len() as u64;
            black_box(sent.bytes);
        });
        left
    }
}

fn access_list_ratios() {
    println!(
        "\naccess list, {ENTRIES} entries      by mask   by hash    ratio   (per packet of 128 bytes)"
    );
    for (name, masks) in [
        ("whole fields", Masks::Whole),
        ("prefixes of 8 to 32 bits", Masks::Prefixes),
        ("a filter's mix", Masks::Filter),
    ] {
        let mut list = access_list(masks);
        for (port, table) in [(1, "hash"), (2, "mask")] {
            let left: u64 = (0..list.packets.len()).map(|_| list.packet(port)).sum();
            assert_eq!(
                left,
                128 * list.packets.len() as u64,
                "{name}, by {table}: every packet is permitted"
            );
        }
        let hash = nanoseconds(50, || list.packet(1));
        let mask = nanoseconds(50, || list.packet(2));
        println!("{name:30} {mask:8.0} ns {hash:6.0} ns {:8.2}x", mask / hash);
    }
}

/// Median nanoseconds per call over 201 batches. A batch should take some ten microseconds: short enough to fall
/// between two switches of the scheduler on a busy machine.
fn nanoseconds(batch: u32, mut call: impl FnMut() -> u64) -> f64 {
    let mut times: Vec<f64> = (0..201)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..batch {
                black_box(call());
            }
            start.elapsed().as_nanos() as f64 / f64::from(batch)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn ratios() {
    println!("\nlookups, {ENTRIES} entries          structure      scan    ratio");
    for (name, shape) in [
        ("exact", Shape::Exact),
        ("longest prefix", Shape::Lpm),
        ("classify (one mask)", Shape::Classify),
        ("access list (all masks)", Shape::AccessList),
    ] {
        let tables = tables(shape);
        let mut next = each(&tables.keys);
        let fast = nanoseconds(500, || tables.fast.find(next()).map_or(0, u64::from));
        let scan = nanoseconds(1, || tables.twin.find(next()).map_or(0, u64::from));
        println!("{name:30} {fast:8.1} ns {scan:9.0} ns {:7.0}x", scan / fast);
    }
    println!("\nour program, 1,000 flows         per packet   a copy    ratio   packets/s");
    for length in LENGTHS {
        let mut plain = Plain { ports: [2; 512], buffer: Vec::new() };
        for (name, port, packet) in [("tag", 1, roce(length)), ("forward", 9, tagged(length))] {
            let mut leaf = leaf();
            assert!(leaf.packet(port, &packet) > 0, "{name}: the packet was lost");
            let ours = nanoseconds(20, || leaf.packet(port, &packet));
            let copy = nanoseconds(1_000, || plain.packet(port, &packet));
            let title = format!("{name}, {length} bytes");
            println!(
                "{title:30} {ours:8.0} ns {copy:7.1} ns {:7.0}x {:10.0}",
                ours / copy,
                1e9 / ours
            );
        }
    }
}
