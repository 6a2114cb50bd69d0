//! Tracing: what `ringpath switch trace` prints, and that a traced switch does what an untraced one does.

use crate::inspect::{output, ringpath};
use crate::rig::repo;
use ringpath::id::PortNo;
use ringpath::p4runtime::device::Device as _;
use ringpath::switch::{Config, Switch, stf};
use ringpath::time::{Span, Time};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = "tests/data/switch/exercise.json";

/// A command packet to station 2: op, arg, index, key.
fn command(op: u8, arg: u8, index: u16, key: u32) -> String {
    format!("000000000002000000000001 88b6 {op:02x}{arg:02x}{index:04x}{key:08x}00000000")
}

fn trace(entries: &str, packets: &[String], flags: &[&str]) -> (Option<i32>, String, String) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("entries");
    std::fs::write(&file, entries).unwrap();
    let mut run = ringpath();
    run.args(["switch", "trace"]).arg(repo(PROGRAM)).arg("--entries").arg(&file).args(flags);
    for packet in packets {
        run.arg("--packet").arg(packet);
    }
    let got = output(&mut run);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (got.status.code(), text(got.stdout), text(got.stderr))
}

#[test]
fn a_trace_shows_states_headers_tables_entries_actions_changes_queues_and_outputs() {
    let entries = "add deliver dst:0x2 send(port:2)\nadd ternary_table 7 key:0x0000000* arg:0x03 result(value:9)\n";
    let (code, text, errors) = trace(entries, &[format!("1:{}", command(3, 3, 0, 5))], &[]);
    assert_eq!(code, Some(0), "{errors}");
    let wanted = [
        "#0   in   port 1, 26 bytes: 00000000000200000000000188b603030000000000050000",
        "#0   ingress, instance type 0",
        "#0     state start",
        "#0     state ethernet",
        "#0       extracts ethernet: dst=0x000000000002 src=0x000000000001 type=0x88b6",
        "#0     state command",
        "#0       extracts command: op=0x03 arg=0x03 index=0x0000 key=0x00000005 result=0x00000000",
        "#0     parsed; 0 bytes of payload",
        "#0     table Enter.deliver: hit for dst=0x000000000002",
        "#0       entry dst=0x000000000002",
        "#0       Enter.send(port=0x002)",
        "#0         standard_metadata.egress_spec: 0x000 -> 0x002",
        "#0     if h.command.op == 3: yes",
        "#0     table Enter.ternary_table: hit for key=0x00000005 arg=0x03",
        "#0       entry key=0x00000000&0xfffffff0 arg=0x03 priority 8",
        "#0       Enter.result(value=0x00000009)",
        "#0         command.result: 0x00000000 -> 0x00000009",
        "#0   queue 0 of port 2, 0 packets in it",
        "#0   egress, port 2, queue 0, waited 0 us, 0 packets left",
        "#0   out  port 2, 26 bytes: 00000000000200000000000188b603030000000000050000",
    ];
    let mut at = 0;
    for line in wanted {
        let found = text[at..].find(line);
        at += found.unwrap_or_else(|| panic!("no `{line}` behind {at} in\n{text}"));
    }
}

#[test]
fn copies_calls_misses_and_drops_are_told_with_the_packet_they_belong_to() {
    let entries = "add deliver dst:0x2 send(port:2)\nmirroring_add 5 6\n";
    let packets = [
        format!("1:{}", command(14, 0, 5, 7)), // clone to session 5
        format!("1:{}", command(10, 0, 3, 9)), // register
        format!("1:{}", command(16, 1, 0, 0)), // resubmitted once
        format!("1:{}", command(20, 0, 0, 0)), // dropped
        format!("1:{}", command(14, 0, 9, 7)), // no such session
        "1:0000".to_owned(),                   // too short
    ];
    let (code, text, errors) = trace(entries, &packets, &[]);
    assert_eq!(code, Some(0), "{errors}");
    for line in [
        "#0         asks for a clone to session 5, keeping list 1",
        "#0     clone: packet 1",
        "#1   out  port 6",
        "#2         reads Enter.cells[3]",
        "#2         writes Enter.cells[3] = 0x00000009",
        "#3     resubmitted: packet 4",
        "#4   ingress, instance type 6",
        "#5         mark_to_drop",
        "#5   drop: dropped by the program's ingress",
        "#6   drop: clone session unknown",
        "#7     parser error PacketTooShort; 2 bytes of payload",
        "#7     table Enter.deliver: miss for dst=0x000000000000",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
}

#[test]
fn json_has_the_same_events_and_an_stf_case_brings_its_own_packets() {
    let entries = format!(
        "add deliver dst:0x2 send(port:2)\npacket 4 {}\nexpect 9 00\n",
        command(0, 0, 0, 0)
    );
    let (code, text, errors) = trace(&entries, &[], &["-o", "json"]);
    assert_eq!(code, Some(0), "{errors}");
    let all: Value = serde_json::from_str(&text).unwrap();
    let events = all["events"].as_array().unwrap();
    let named = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!((&named("received")["port"], &all["lost"]), (&4.into(), &0.into()));
    let table = named("table");
    assert_eq!((&table["hit"], &table["table"]), (&true.into(), &"Enter.deliver".into()));
    assert_eq!(table["entry"]["matches"][0]["value"], "0x000000000002");
    assert_eq!(named("action")["parameters"][0]["value"], "0x002");
    assert_eq!((&named("sent")["port"], &named("sent")["packet"]), (&2.into(), &0.into()));
}

#[test]
fn entries_may_be_p4runtime_text() {
    let info = repo("tests/data/switch/exercise.p4info.txtpb");
    let text = std::fs::read_to_string(&info).unwrap();
    let id_before = |alias: &str| -> u32 {
        let at = text.find(&format!("alias: \"{alias}\"")).unwrap();
        let id = text[..at].rsplit("id: ").next().unwrap();
        id.split_whitespace().next().unwrap().parse().unwrap()
    };
    let entry = format!(
        "table_entry {{ table_id: {} match {{ field_id: 1 exact {{ value: \"\\x02\" }} }} \
         action {{ action {{ action_id: {} params {{ param_id: 1 value: \"\\x03\" }} }} }} }}",
        id_before("deliver"),
        id_before("send")
    );
    let packets = [format!("1:{}", command(0, 0, 0, 0))];
    let flags = ["--p4info", info.to_str().unwrap()];
    for whole in [
        format!("updates {{ type: INSERT entity {{ {entry} }} }}\n"),
        format!("# as read\nentities {{ {entry} }}\n"),
    ] {
        let (code, text, errors) = trace(&whole, &packets, &flags);
        assert_eq!(code, Some(0), "{errors}");
        assert!(text.contains("#0   out  port 3"), "{text}");
        let (code, _, errors) = trace(&whole, &packets, &[]);
        assert_eq!((code, errors.contains("give --p4info FILE too")), (Some(2), true), "{errors}");
    }
}

#[test]
fn packets_of_a_file_come_in_by_the_given_port() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.pcap");
    let packet = [0_u8; 20];
    let mut writer =
        ringpath::switch::port::pcap::Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
    for time_ns in [1_000_000, 4_000_000] {
        writer.write(time_ns, &packet).unwrap();
    }
    writer.flush().unwrap();
    let mut run = ringpath();
    run.args(["switch", "trace"]).arg(repo(PROGRAM)).arg("--pcap").arg(&path);
    let got = output(run.args(["--port", "7"]));
    assert_eq!(got.status.code(), Some(0));
    let text = String::from_utf8(got.stdout).unwrap();
    assert_eq!(text.matches("in   port 7, 20 bytes").count(), 2, "{text}");
}

#[test]
fn wrong_use_is_told_with_what_to_write() {
    let none = trace("add deliver dst:0x2 send(port:2)\n", &[], &[]);
    assert_eq!((none.0, none.2.contains("there is no packet; give --packet")), (Some(2), true));
    let odd = trace("", &["1:0".to_owned()], &[]);
    assert_eq!((odd.0, odd.2.contains("not whole bytes")), (Some(2), true), "{}", odd.2);
    let (code, _, errors) = trace("add delver dst:0x2 send(port:2)\n", &["1:00".to_owned()], &[]);
    assert_eq!(code, Some(1));
    assert!(errors.contains("line 1") && errors.contains("did you mean"), "{errors}");
}

/// Everything that a switch shows: what left, when, what it counted, its registers.
fn run(traced: bool, program: &str, case: &str, packets: &[Vec<u8>]) -> (Vec<String>, String) {
    let json = std::fs::read(repo(program)).unwrap();
    let lines = stf::parse(case).unwrap();
    let (mut switch, mut now) =
        stf::Program::new(&json, None).unwrap().trace(&lines, &mut |_| {}).unwrap();
    switch.set_trace(traced);
    let mut seen = Vec::new();
    let mut events = 0;
    for packet in packets {
        switch.receive(now, PortNo(1), packet);
        while let Some(next) = switch.poll_at().filter(|_| switch.packets_held() > 0) {
            now = now.max(next);
            switch.advance(now, &mut |sent| seen.push(format!("{sent:?}")));
        }
        events += switch.take_trace().0.len();
        now += Span::from_millis(1);
    }
    assert_eq!(events > packets.len(), traced, "{events} events");
    seen.push(format!("{:?} {:?}", switch.take_outbox(), switch.register("cells", 5)));
    (seen, format!("{:?}", switch.stats()))
}

#[test]
fn a_traced_switch_does_what_an_untraced_one_does() {
    let case = "add deliver dst:0x2 send(port:2)\nmirroring_add 5 6\nmc_mgrp_create 5\n\
                mc_node_create 1 3 4\nmc_node_associate 5 0\nadd exact_table key:5 result_counted(value:1)\n\
                meter_array_set_rates police 0.000001:1 0.000002:2\n";
    let mut packets = Vec::new();
    for op in 0..=24_u8 {
        for (arg, key) in [(0, 5), (3, 7), (2, 0xffff_ffff)] {
            let mut bytes = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1, 0x88, 0xb6, op, arg, 0, 5];
            bytes.extend(u32::to_be_bytes(key));
            bytes.resize(60, 0xaa);
            packets.push(bytes);
        }
    }
    packets.push(vec![1, 2, 3]);
    assert_eq!(run(true, PROGRAM, case, &packets), run(false, PROGRAM, case, &packets));
}

#[test]
fn without_a_trace_there_are_no_events() {
    let mut switch = Switch::new(Config::default());
    let json = std::fs::read(repo(PROGRAM)).unwrap();
    switch.load_json(Time::ZERO, &json).unwrap();
    switch.receive(Time::ZERO, PortNo(1), &[0; 60]);
    assert_eq!(switch.take_trace().0, []);
    switch.set_trace(true);
    switch.receive(Time::ZERO, PortNo(1), &[0; 60]);
    assert!(!switch.take_trace().0.is_empty());
    switch.set_trace(false);
    assert_eq!(switch.take_trace().0, []);
}
