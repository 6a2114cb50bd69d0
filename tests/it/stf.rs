//! The data plane's behaviour, file by file: each `tests/data/stf/*.stf` runs on the embedded switch with the compiled
//! pipeline. The files are plain STF, so that p4c's own driver and simple_switch can run them too.

use std::collections::BTreeMap;
use std::fs;

use ringpath::switch::stf::parse::Pattern;
use ringpath::switch::stf::{self, Command, Line, parse};

use crate::rig::{Rig, is, repo};

/// A clock that starts 30 ms before its 32 low bits of microseconds wrap: within every file here.
const NEAR_WRAP_NS: u64 = ((1 << 32) - 30_000) * 1_000;

/// The numbers of keys and arguments; our files need no masks and prefixes.
fn numbers(named: &[(String, String)]) -> Result<Vec<(&str, u128)>, String> {
    let one = |(name, value): &(String, String)| {
        match value.strip_prefix("0x") {
            Some(digits) => u128::from_str_radix(digits, 16),
            None => value.parse(),
        }
        .map_err(|_| format!("`{value}` of {name} is no number"))
    };
    named.iter().map(|pair| Ok((pair.0.as_str(), one(pair)?))).collect()
}

/// Runs one file. The packets that leave each port must be the expected ones, in order; no port may send more.
fn run(text: &str, clock_offset_ns: u64) -> Result<(), String> {
    let mut rig = Rig::new(clock_offset_ns);
    let mut sent: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    let mut wanted: BTreeMap<u16, Vec<(usize, Pattern)>> = BTreeMap::new();
    for Line { number, command } in parse(text).map_err(|error| error.to_string())? {
        let at = |why| format!("line {number}: {why}");
        match command {
            Command::Add { table, priority, keys, action, args, label: None } => {
                let keys = numbers(&keys).map_err(at)?;
                let keys: Vec<_> = keys.into_iter().map(|(name, value)| is(name, value)).collect();
                let args = numbers(&args).map_err(at)?;
                rig.add(&table, priority.unwrap_or(0), &keys, &action, &args);
            }
            Command::SetDefault { table, action, args } => {
                rig.add(&table, 0, &[], &action, &numbers(&args).map_err(at)?);
            }
            Command::Packet { port, bytes } => {
                for packet in rig.send(port, &bytes) {
                    sent.entry(packet.port).or_default().push(packet.bytes);
                }
            }
            Command::Expect { port, pattern: Some(pattern) } => {
                wanted.entry(port).or_default().push((number, pattern));
            }
            other => return Err(at(format!("this says too little, or nothing, here: {other:?}"))),
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
                Some(got) => {
                    if let Some(why) = pattern.mismatch(got) {
                        return Err(format!("line {line}: port {port} sent {got:02x?}: {why}"));
                    }
                }
            }
        }
        if let Some(extra) = packets.get(patterns.len()) {
            return Err(format!("port {port} also sent {extra:02x?}"));
        }
    }
    match sent.first_key_value() {
        Some((port, packets)) => Err(format!("port {port} sent {:02x?}", packets[0])),
        None => Ok(()),
    }
}

#[test]
fn every_stf_file_of_the_data_plane_passes_on_the_embedded_switch_with_any_clock_and_by_its_own_runner()
 {
    let mut files: Vec<_> =
        fs::read_dir(repo("tests/data/stf")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 19, "only {} STF files", files.len());
    let json = fs::read(repo("p4/build/ringpath.json")).unwrap();
    let mut failures = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // The switch's own runner, which names tables by the JSON alone.
        let report = stf::run(&json, &parse(&text).unwrap()).unwrap();
        if !report.passed() {
            failures.push(format!("{}: {:#?}", file.display(), report.failures));
        }
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
        ("wait 3", "Wait"),
        ("no_packet", "NoPacket"),
        ("add host dst_addr:1 to_host(port:1) = $a", "Some(\"a\")"),
        ("await 3", "`await`"),
        ("packet 1 0G", "`G`"),
        ("packet 1 0", "not whole bytes"),
        ("packet 1 0*", "`*`"),
        ("packet x 00", "`x` is not a number"),
        ("add classify", "no action with ( )"),
        ("add host dst_addr:ten to_host(port:1)", "`ten`"),
        ("expect 1", "pattern: None"),
    ] {
        let why = run(&format!("# head\n{text}\n"), 0).unwrap_err();
        assert!(why.starts_with("line 2: ") && why.contains(word), "{text}: {why}");
    }
}
