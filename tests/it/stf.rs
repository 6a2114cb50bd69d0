//! The data plane's behaviour, file by file: each `tests/data/stf/*.stf` runs on the embedded switch with the compiled
//! pipeline. The files are plain STF, so that p4c's own driver and simple_switch can run them too.

mod language;

use std::collections::BTreeMap;
use std::fs;

use language::{Command, Pattern, parse};

use crate::rig::{Rig, is, repo};

/// A clock that starts 30 ms before its 32 low bits of microseconds wrap: within every file here.
const NEAR_WRAP_NS: u64 = ((1 << 32) - 30_000) * 1_000;

fn matches(pattern: &Pattern, bytes: &[u8]) -> bool {
    let nibbles: Vec<u8> = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let long_enough = if pattern.exact {
        nibbles.len() == pattern.nibbles.len()
    } else {
        nibbles.len() >= pattern.nibbles.len()
    };
    let mut pairs = pattern.nibbles.iter().zip(&nibbles);
    long_enough && pairs.all(|(want, got)| want.is_none_or(|want| want == *got))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

/// Runs one file. The packets that leave each port must be the expected ones, in order; no port may send more.
fn run(text: &str, clock_offset_ns: u64) -> Result<(), String> {
    let mut rig = Rig::new(clock_offset_ns);
    let mut sent: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    let mut wanted: BTreeMap<u16, Vec<(usize, Pattern)>> = BTreeMap::new();
    for (line, command) in parse(text)? {
        match command {
            Command::Add { table, priority, keys, action, args } => {
                let keys: Vec<_> = keys.iter().map(|(name, value)| is(name, *value)).collect();
                let args: Vec<_> =
                    args.iter().map(|(name, value)| (name.as_str(), *value)).collect();
                rig.add(&table, priority, &keys, &action, &args);
            }
            Command::Packet { port, bytes } => {
                for packet in rig.send(port, &bytes) {
                    sent.entry(packet.port).or_default().push(packet.bytes);
                }
            }
            Command::Expect { port, pattern } => {
                wanted.entry(port).or_default().push((line, pattern));
            }
        }
    }
    let faults = &rig.switch.stats().faults;
    if faults.index + faults.budget + faults.assertion > 0 {
        return Err(format!("the program reached beyond its registers: {faults:?}"));
    }
    for (port, patterns) in &wanted {
        let packets = sent.remove(port).unwrap_or_default();
        for (place, (line, pattern)) in patterns.iter().enumerate() {
            match packets.get(place) {
                None => return Err(format!("line {line}: port {port} sent {place} packets only")),
                Some(got) if !matches(pattern, got) => {
                    return Err(format!("line {line}: port {port} sent {}", hex(got)));
                }
                Some(_) => {}
            }
        }
        if let Some(extra) = packets.get(patterns.len()) {
            return Err(format!("port {port} also sent {}", hex(extra)));
        }
    }
    match sent.first_key_value() {
        Some((port, packets)) => Err(format!("port {port} sent {}", hex(&packets[0]))),
        None => Ok(()),
    }
}

#[test]
fn every_stf_file_of_the_data_plane_passes_on_the_embedded_switch_with_any_clock() {
    let mut files: Vec<_> =
        fs::read_dir(repo("tests/data/stf")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 19, "only {} STF files", files.len());
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for offset in [0, 123_456_789, NEAR_WRAP_NS] {
            if let Err(why) = run(&text, offset) {
                failures.push(format!("{} (clock + {offset} ns): {why}", file.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_wrong_expectation_fails_and_names_its_line() {
    let text = fs::read_to_string(repo("tests/data/stf/transit.stf")).unwrap();
    let one_hop_more = text.replacen(
        "expect 2 02000000 00020200 00000001 88B51602",
        "expect 2 02000000 00020200 00000001 88B51603",
        1,
    );
    assert_ne!(text, one_hop_more);
    let missing = text.replacen("expect 1", "# expect 1", 1);
    let extra = format!("{text}expect 2 00\n");
    for (broken, word) in
        [(one_hop_more, "line"), (missing, "port 1 sent"), (extra, "packets only")]
    {
        let why = run(&broken, 0).unwrap_err();
        assert!(why.contains(word), "{why}");
    }
    assert_eq!(run(&text, 0), Ok(()));
}

#[test]
fn lines_that_the_runner_does_not_know_are_refused_with_their_number() {
    for (text, word) in [
        ("wait 3", "`wait`"),
        ("packet 1 0G", "`G`"),
        ("packet 1 0", "half a byte"),
        ("packet 1 0*", "`*`"),
        ("packet x 00", "port number"),
        ("add classify", "parentheses"),
        ("add host dst_addr:ten to_host(port:1)", "`ten`"),
        ("expect 1", "no data"),
    ] {
        let why = parse(&format!("# head\n{text}\n")).unwrap_err();
        assert!(why.starts_with("line 2: ") && why.contains(word), "{text}: {why}");
    }
}
