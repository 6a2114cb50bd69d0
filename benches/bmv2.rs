//! Our data plane and a plain IPv4 router on the embedded switch and on BMv2, in one run: `cargo bench --bench bmv2`. BMv2 is `simple_switch_grpc` on
//! the PATH (or `SIMPLE_SWITCH`), whose build decides much: the figures of a build without optimisation or with logging macros say
//! nothing. Without it that half is skipped by name.
//!
//! BMv2 reads and writes pcap files, so no network device is in the way, and spreads a packet's way over five threads. Its
//! processor time is read per thread, which also holds on a busy machine: the busiest thread bounds its packets per second,
//! the sum is what one core could do.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    dead_code,
    reason = "a bench is a driver: it prints, reads a clock and starts a process"
)]

#[path = "../tests/it/rig.rs"]
mod rig;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ringpath::id::PortNo;
use ringpath::time::Span;
use serde_json::{Value, json};

use rig::{Key, Rig, is, repo};
use ringpath::switch::Config;
use ringpath::switch::port::pcap::Writer;

/// Packets that BMv2 gets per case: about 3 s of its processor time.
const BMV2_PACKETS: u32 = 100_000;
/// Packets per round on the embedded switch; the fastest of [`ROUNDS`] counts.
const PACKETS: u32 = 20_000;
const ROUNDS: u32 = 25;
/// BMv2 is done when its output has not grown for so long.
const QUIET: Duration = Duration::from_secs(2);

/// Prefixes of the router.
const PREFIXES: u128 = 1_000;

type Args = Vec<(&'static str, u128)>;

/// A table entry for either switch.
struct Entry {
    table: &'static str,
    keys: Vec<Key<'static>>,
    action: &'static str,
    args: Args,
}

struct Case {
    name: &'static str,
    program: &'static str,
    entries: Vec<Entry>,
    from: u16,
    to: u16,
    packet: Vec<u8>,
}

fn entry(table: &'static str, keys: &[Key<'static>], action: &'static str, args: Args) -> Entry {
    Entry { table, keys: keys.to_vec(), action, args }
}

fn fabric() -> Entry {
    entry("port_role", &[is("ingress_port", 10)], "set_port_role", vec![("role", 1)])
}

fn flow() -> Entry {
    let keys = [is("src_addr", 0x0A00_0001), is("dst_addr", 0x0A00_0002), is("protocol", 6)];
    let args = [
        ("label", 0x101),
        ("queue", 3),
        ("src_slot", 1),
        ("slot", 21),
        ("epoch", 9),
        ("flip", 0),
        ("old_label", 0x101),
        ("old_queue", 3),
        ("force", 0),
        ("flip_gap", 200),
    ];
    entry("classify", &keys, "tag", args.to_vec())
}

fn sink() -> Entry {
    entry("path_forward", &[is("label", 0x101)], "sink", vec![])
}

fn host() -> Entry {
    entry("host", &[is("dst_addr", 0x0A00_0002)], "to_host", vec![("port", 2)])
}

fn forward(port: u128) -> Entry {
    entry("path_forward", &[is("label", 0x101)], "forward", vec![("port", port)])
}

/// [`PREFIXES`] routes of 24 bits, of which one leads to the packet's destination.
fn routes() -> Vec<Entry> {
    let route = |n: u128| {
        let key = Key { name: "dst_addr", value: 0x0A00_0000 + (n << 8), extent: Some(24) };
        let args = vec![("next_hop_mac", 0x0200_0000_0002), ("port_mac", 0x0200_0000_0099)];
        entry("route", &[key], "forward", [args, vec![("port", 2)]].concat())
    };
    (0..PREFIXES).map(route).collect()
}

/// An IPv4 packet of 1,000 bytes from 10.0.0.1 to 10.0.0.2, tagged for label 0x101 or not.
fn packet(tagged: bool) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if tagged {
        bytes.extend([0x88, 0xB5, 0x16, 1, 1, 1, 0, 21, 9, 0]);
        bytes.extend([0; 14]);
    }
    bytes.extend([8, 0, 0x45, 0, 3, 0xE8, 0, 7, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x13, 0x88, 0x17, 0x70]);
    bytes.resize(if tagged { 1_038 } else { 1_014 }, 0);
    let header = bytes.len() - 1_000;
    let sum: u32 = bytes[header..header + 20]
        .chunks_exact(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let checksum = !((sum & 0xFFFF) as u16 + (sum >> 16) as u16);
    bytes[header + 10..header + 12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn cases() -> Vec<Case> {
    let case = |name, program, entries, from, to| Case {
        name,
        program,
        entries,
        from,
        to,
        packet: packet(from == 10),
    };
    let ours = |name, entries, from, to| case(name, "ringpath", entries, from, to);
    vec![
        ours("source leaf (classify, number, push)", vec![flow(), forward(10)], 1, 10),
        ours("transit (forward by label)", vec![fabric(), forward(2)], 10, 2),
        ours("sink leaf (telemetry, pop)", vec![fabric(), sink(), host()], 10, 2),
        ours("untagged (to an attached host)", vec![host()], 1, 2),
        case("IPv4 router, 1,000 prefixes", "router", routes(), 1, 2),
    ]
}

/// Nanoseconds per packet on the embedded switch, parser to deparser.
fn embedded(case: &Case) -> f64 {
    // Port 510 is an ordinary port here, as it is on a simple_switch without a controller.
    let config = Config { cpu_port: PortNo(509), priority_queues: 8, ..Config::default() };
    let mut rig = Rig::of(case.program, config);
    for entry in &case.entries {
        let priority = i32::from(entry.table == "classify");
        rig.add(entry.table, priority, &entry.keys, entry.action, &entry.args);
    }
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let mut sent = 0u32;
        let started = Instant::now();
        for _ in 0..PACKETS {
            rig.now += Span::from_micros(1);
            rig.switch.receive(rig.now, PortNo(case.from), &case.packet);
            rig.switch.advance(rig.now, &mut |packet| {
                sent += u32::from(packet.port.0 == case.to);
            });
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS));
        assert_eq!(sent, PACKETS, "{}", case.name);
    }
    best
}

fn find<'a>(things: &'a mut Value, name: &str) -> &'a mut Value {
    let suffix = format!(".{name}");
    let mut things = things.as_array_mut().unwrap().iter_mut();
    things.find(|thing| thing["name"].as_str().unwrap().ends_with(&suffix)).unwrap()
}

/// The case's program with its entries as entries of the program: BMv2 needs no controller then.
fn program_with(case: &Case) -> Value {
    let file = repo("p4/build").join(format!("{}.json", case.program));
    let mut program: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for entry in &case.entries {
        let action = find(&mut program["actions"], entry.action).clone();
        let names = action["runtime_data"].as_array().unwrap().iter();
        let data: Vec<String> = names
            .map(|param| entry.args.iter().find(|arg| param["name"] == arg.0).unwrap().1)
            .map(|value| format!("{value:#x}"))
            .collect();
        let table = find(&mut program["pipelines"][0]["tables"], entry.table);
        let fields = table["key"].as_array().unwrap().iter();
        let key: Vec<Value> = fields.map(|field| match_key(entry, field)).collect();
        let line = json!({
            "match_key": key,
            "action_entry": { "action_id": action["id"], "action_data": data },
            "priority": 1,
        });
        match table["entries"].as_array_mut() {
            Some(list) => list.push(line),
            None => table["entries"] = json!([line]),
        }
    }
    program
}

fn match_key(entry: &Entry, field: &Value) -> Value {
    let key = entry.keys.iter().find(|key| field["name"] == key.name);
    let given = key.map(|key| key.value);
    let bytes = match field["name"].as_str().unwrap() {
        "src_addr" | "dst_addr" => 4,
        "dst_qp" => 3,
        "protocol" => 1,
        _ => 2,
    };
    let hex = |value: u128| format!("0x{value:0width$x}", width = 2 * bytes);
    match field["match_type"].as_str().unwrap() {
        "ternary" => json!({
            "match_type": "ternary",
            "key": hex(given.unwrap_or(0)),
            "mask": hex(if given.is_some() { (1 << (8 * bytes)) - 1 } else { 0 }),
        }),
        "lpm" => json!({
            "match_type": "lpm",
            "key": hex(given.unwrap()),
            "prefix_length": key.unwrap().extent.unwrap(),
        }),
        _ => json!({ "match_type": "exact", "key": hex(given.unwrap()) }),
    }
}

fn write_pcap(path: &Path, packet: &[u8], count: u32) {
    let mut file = Vec::with_capacity(24 + count as usize * (16 + packet.len()));
    let mut writer = Writer::new(&mut file).unwrap();
    for n in 0..u64::from(count) {
        let time_ns = n / 1_000 * 1_000_000_000 + n % 1_000 * 1_000;
        writer.write(time_ns, packet).unwrap();
    }
    fs::write(path, file).unwrap();
}

/// Processor seconds of each thread, most first (`/proc/PID/task/TID/schedstat`, first number, nanoseconds).
fn threads(process: &Child) -> Vec<f64> {
    let tasks = fs::read_dir(format!("/proc/{}/task", process.id())).unwrap();
    let mut used: Vec<f64> = tasks
        .filter_map(|task| fs::read_to_string(task.unwrap().path().join("schedstat")).ok())
        .filter_map(|line| line.split(' ').next()?.parse::<f64>().ok())
        .map(|ns| ns / 1e9)
        .collect();
    used.sort_by(|a, b| b.total_cmp(a));
    used
}

/// Nanoseconds of processor time per packet on BMv2: of its busiest thread, and of all.
fn bmv2(case: &Case, switch: &str) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("program.json"), program_with(case).to_string()).unwrap();
    write_pcap(&at("from_in.pcap"), &case.packet, BMV2_PACKETS);
    write_pcap(&at("to_in.pcap"), &[], 0);
    let mut process = Command::new(switch)
        .args(["--use-files", "1", "-L", "off"])
        .args(["-i", &format!("{}@{}", case.from, at("from").display())])
        .args(["-i", &format!("{}@{}", case.to, at("to").display())])
        .arg(at("program.json"))
        .args(["--", "--priority-queues", "8", "--grpc-server-addr", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let size = || fs::metadata(at("to_out.pcap")).map_or(0, |file| file.len());
    let (mut last, mut since) = (0, Instant::now());
    // What it used before the first packet: loading the program.
    let mut before = Vec::new();
    let after = loop {
        sleep(Duration::from_millis(20));
        assert!(process.try_wait().unwrap().is_none(), "{switch} ended early");
        if size() <= 24 {
            before = threads(&process);
        }
        if size() != last {
            (last, since) = (size(), Instant::now());
        } else if last > 24 && since.elapsed() > QUIET {
            break threads(&process);
        }
        assert!(since.elapsed() < Duration::from_secs(60), "{switch} sends nothing");
    };
    process.kill().unwrap();
    process.wait().unwrap();
    let per_packet = |seconds: f64| seconds * 1e9 / f64::from(BMV2_PACKETS);
    let loading: f64 = before.iter().sum();
    (per_packet(after[0]), per_packet(after.iter().sum::<f64>() - loading))
}

fn main() {
    let switch = std::env::var("SIMPLE_SWITCH").unwrap_or("simple_switch_grpc".to_owned());
    let present = Command::new(&switch).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !present {
        println!("SKIPPED BMv2: no {switch} on the PATH (set SIMPLE_SWITCH)");
    }
    println!("nanoseconds per packet of 1,000 bytes (IPv4)");
    println!("{:38} {:>8} {:>13} {:>11}", "", "embedded", "BMv2: busiest", "all threads");
    for case in cases() {
        let ours = embedded(&case);
        if present {
            let (busiest, all) = bmv2(&case, &switch);
            println!(
                "{:38} {ours:8.0} {busiest:13.0} {all:11.0}   {:.0}x its busiest thread, {:.0}x per core",
                case.name,
                busiest / ours,
                all / ours,
            );
        } else {
            println!("{:38} {ours:8.0}", case.name);
        }
    }
}
