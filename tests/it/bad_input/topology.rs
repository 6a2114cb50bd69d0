//! Fabric files: Lingjun's `topo.csv` and p4-utils' `topology.json`.

use super::{Case, check, check_variants, variants};
use ringpath::topology::import::{ImportError, Lingjun, P4Utils, lingjun, p4utils};
use ringpath::units::BitRate;

fn csv(text: &[u8]) -> ImportError {
    lingjun(text, "topo.csv", &Lingjun::default()).unwrap_err()
}

fn json(text: &str) -> ImportError {
    p4utils(text.as_bytes(), "t.json", &P4Utils::default()).unwrap_err()
}

const JSON: &str = r#"{
"hosts": {"h1": {}, "h2": {}},
"switches": ["s1", "s2"],
"links": [["h1", "s1"],
          ["h2", "s2"],
          ["s1", "s2"]]
}"#;

fn import_cases() -> Vec<(&'static str, ImportError, &'static str)> {
    let header = "ip,DSW,PSW,ASW\n";
    let rows = |rows: &str| csv(format!("{header}{rows}").as_bytes());
    let change = |from: &str, to: &str| {
        assert!(JSON.contains(from), "{from}");
        json(&JSON.replacen(from, to, 1))
    };
    let rack: String = (0..255).map(|i| format!("host{i},G,P,S\n")).collect();
    let racks: String = (0..20_000).map(|i| format!("host{i},G,P,S{i}\n")).collect();
    let zero = lingjun(b"", "topo.csv", &Lingjun { uplinks: 0, ..Lingjun::default() }).unwrap_err();
    let no_core = Lingjun { core_uplinks: 0, ..Lingjun::default() };
    let no_core = lingjun(b"", "topo.csv", &no_core).unwrap_err();
    let unrated = Lingjun { host_link: BitRate(0), ..Lingjun::default() };
    let unrated = lingjun(b"ip,DSW,PSW,ASW\na,G,P,S\nb,G,P,S\n", "topo.csv", &unrated).unwrap_err();
    vec![
        ("NotText", csv(b"ip,DSW,PSW,ASW\n\xff,G,P,S\n"), "topo.csv:2: not UTF-8"),
        (
            "MissingColumn",
            csv(b"ip,DSW,PSW\nx,G,P\n"),
            "topo.csv:1: the header has no column 'ASW'",
        ),
        ("Fields", rows("a,G,P,S\nb,G,P\n"), "topo.csv:3: this row has 3 fields and the header 4"),
        ("Empty", rows("a,G,,S\n"), "topo.csv:2:3: column 'PSW' is empty"),
        ("BadName", rows("a b,G,P,S\n"), "topo.csv:2:1: 'a b' cannot be a name"),
        (
            "HostTwice",
            rows("a,G,P,S\nb,G,P,S\na,G,P,T\n"),
            "topo.csv:4:1: host 'a' has already been given in line 2",
        ),
        ("RackFull", rows(&rack), "topo.csv:256: rack P.S has more than 254 hosts"),
        ("ZeroOption", zero, "topo.csv: uplinks is 0; give at least 1"),
        ("TooLarge", rows(&racks), "more than 65536 nodes"),
        (
            "Json",
            change("\"s1\", \"s2\"],\n\"links\"", "\"s1\", \"s2\",\n\"links\""),
            "t.json:4:8: not valid JSON",
        ),
        (
            "WrongType",
            change("[\"h2\", \"s2\"]", "\"h2-s2\""),
            "t.json:5:11: links[1] must be a list [end, end]",
        ),
        (
            "MissingKey",
            change("\"switches\"", "\"routers\""),
            "t.json:1:1: the file has no key 'switches'",
        ),
        (
            "UnknownNode",
            change("[\"s1\", \"s2\"]]", "[\"s1\", \"s22\"]]"),
            "t.json:6:18: links[2][1] names 's22', which is in neither hosts nor switches; did you mean 's2'?",
        ),
        (
            "BadPort",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2-p510\"]"),
            "t.json:5:18: links[1][1]: '510' is no port",
        ),
        (
            "BadAddress",
            change("\"h2\": {}", "\"h2\": {\"mac\": \"01:00:00:00:00:01\"}"),
            "t.json:2:35: host 'h2': '\"01:00:00:00:00:01\"' is no Ethernet address",
        ),
        (
            "BadQuantity",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2\", 0, -1]"),
            "t.json:5:11: links[1]: the bandwidth is -1",
        ),
        (
            "Topology/DuplicateName",
            change("[\"s1\", \"s2\"]", "[\"s1\", \"s2\", \"s2\"]"),
            "two nodes are called 's2'",
        ),
        (
            "Topology/DuplicateAddress",
            change(
                "{\"h1\": {}, \"h2\": {}}",
                "{\"h1\": {\"ip\": \"1.2.3.4\"}, \"h2\": {\"ip\": \"1.2.3.4/8\"}}",
            ),
            "share the address 1.2.3.4",
        ),
        (
            "Topology/DuplicateMac",
            change(
                "{\"h1\": {}, \"h2\": {}}",
                "{\"h1\": {\"mac\": \"2:0:0:0:0:1\"}, \"h2\": {\"mac\": \"02-00-00-00-00-01\"}}",
            ),
            "share the Ethernet address 02:00:00:00:00:01",
        ),
        ("Topology/SelfLoop", change("[\"s1\", \"s2\"]]", "[\"s1\", \"s1\"]]"), "'s1' to itself"),
        (
            "Topology/HostToHost",
            change("[\"s1\", \"s2\"]]", "[\"h1\", \"h2\"]]"),
            "the hosts 'h1' and 'h2'; connect",
        ),
        (
            "Topology/HostCables",
            change("[\"h2\", \"s2\"]", "[\"h1\", \"s2\"]"),
            "'h1' has 2 cables",
        ),
        (
            "Topology/PortInUse",
            change("[\"s1\", \"s2\"]]", "[\"s1-p7\", \"s2\"], [\"s2\", \"s1-p7\"]]"),
            "port 7 of 's1' is used by two",
        ),
        (
            "Topology/Disconnected",
            change(",\n          [\"s1\", \"s2\"]", ""),
            "'h1' cannot reach 'h2'",
        ),
        (
            "Topology/TooSmall",
            json(&JSON.replace(", \"h2\": {}", "").replace("[\"h2\", \"s2\"],", "")),
            "1 hosts and 2 switches",
        ),
        ("NotText", csv(b"\xff"), "topo.csv:1: not UTF-8"),
        (
            "NotText",
            p4utils(b"\xff{}", "t.json", &P4Utils::default()).unwrap_err(),
            "t.json: not UTF-8",
        ),
        ("MissingColumn", csv(b""), "topo.csv:1: the header has no column 'ip'"),
        ("MissingColumn", csv(b"ip,PSW,ASW\n"), "has no column 'DSW'"),
        ("MissingColumn", csv(b"ip,DSW,ASW\n"), "has no column 'PSW'"),
        ("Fields", rows("a,G,P,S,X\n"), "topo.csv:2: this row has 5 fields and the header 4"),
        ("Empty", rows(",G,P,S\n"), "topo.csv:2:1: column 'ip' is empty"),
        ("Empty", rows("a,,P,S\n"), "topo.csv:2:2: column 'DSW' is empty"),
        ("Empty", rows("a,G,P,\n"), "topo.csv:2:4: column 'ASW' is empty"),
        ("BadName", rows("a,G:1,P,S\n"), "topo.csv:2:2: 'G:1' cannot be a name"),
        ("BadName", rows("a,G,P'1,S\n"), "topo.csv:2:3: 'P'1' cannot be a name"),
        ("BadName", rows(&format!("a,G,P,{}\n", "x".repeat(129))), "topo.csv:2:4: 'xxx"),
        ("ZeroOption", no_core, "topo.csv: core_uplinks is 0; give at least 1"),
        ("Topology/TooSmall", rows("a,G,P,S\n"), "the fabric has 1 hosts"),
        ("Topology/TooSmall", csv(header.as_bytes()), "the fabric has 0 hosts and 0 switches"),
        ("Topology/Disconnected", rows("a,G,P,S\nb,H,Q,T\n"), "'a' cannot reach 'b'"),
        ("Topology/DuplicateName", rows("a,G,P,1\nb,G,P,2\n"), "two nodes are called 'P.1'"),
        ("Topology/TooManySwitches", rows(&leaves(2_049, 1)), "at most 2048 are supported"),
        ("Topology/TooManyPorts", rows(&leaves(600, 600)), "'P0.1' would need 6"),
        ("Topology/ZeroRate", unrated, "has rate 0; give a rate"),
        ("Json", json(""), "t.json:1: not valid JSON: EOF while parsing a value; correct"),
        ("Json", json("{\"hosts\": "), "t.json:1:10: not valid JSON"),
        ("Json", json("{\"hosts\": [],}"), "t.json:1:14: not valid JSON: trailing comma"),
        ("WrongType", json("[]"), "t.json:1:1: the file must be an object"),
        ("WrongType", json("{\"topology\": 3}"), "t.json:1:14: 'topology' must be an object"),
        (
            "WrongType",
            change("{\"h1\": {}, \"h2\": {}}", "7"),
            "t.json:2:10: 'hosts' must be a list",
        ),
        (
            "WrongType",
            change("[\"s1\", \"s2\"],\n\"links\"", "[\"s1\", 2],\n\"links\""),
            "t.json:3:20: 'switches'",
        ),
        (
            "WrongType",
            json(r#"{"hosts": [], "switches": [], "links": {}}"#),
            "'links' must be a list",
        ),
        (
            "WrongType",
            change("[\"h2\", \"s2\"]", "[\"h2\"]"),
            "t.json:5:11: links[1] must be a list [end, end], perhaps",
        ),
        (
            "WrongType",
            change("[[\"h1\", \"s1\"]", "[[\"h1\", \"s1\", 1, 2, 3]"),
            "links[0] must be a list",
        ),
        (
            "WrongType",
            change("[\"h2\", \"s2\"]", "[\"h2\", 2]"),
            "t.json:5:18: links[1][1] must be a name",
        ),
        ("MissingKey", change("\"hosts\"", "\"host\""), "the file has no key 'hosts'"),
        ("MissingKey", change("\"links\"", "\"link\""), "the file has no key 'links'"),
        ("MissingKey", json("{\"topology\": {}}"), "'topology' has no key 'hosts'"),
        (
            "UnknownNode",
            change("[[\"h1\"", "[[\"router-7\""),
            "t.json:4:12: links[0][0] names 'router-7'",
        ),
        (
            "BadPort",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2-p0\"]"),
            "links[1][1]: '0' is no port",
        ),
        (
            "BadPort",
            change("[\"s1\", \"s2\"]]", "[\"s1-px\", \"s2\"]]"),
            "links[2][0]: 'x' is no port",
        ),
        (
            "BadAddress",
            change("\"h1\": {}", "\"h1\": {\"ip\": \"10.0.0\"}"),
            "t.json:2:24: host 'h1': '\"10.0.0\"' is no IPv4",
        ),
        (
            "BadAddress",
            change("\"h1\": {}", "\"h1\": {\"ip\": 7}"),
            "host 'h1': '7' is no IPv4 address",
        ),
        (
            "BadAddress",
            change("\"h1\": {}", "\"h1\": {\"mac\": \"1:2:3\"}"),
            "host 'h1': '\"1:2:3\"' is no Ethernet",
        ),
        (
            "BadQuantity",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2\", \"-1ms\"]"),
            "links[1]: the delay is \"-1ms\"; write",
        ),
        (
            "BadQuantity",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2\", 20000]"),
            "the delay is 20000",
        ),
        (
            "BadQuantity",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2\", 0, \"fast\"]"),
            "the bandwidth is \"fast\"",
        ),
        (
            "BadQuantity",
            change("[\"h2\", \"s2\"]", "[\"h2\", \"s2\", {\"bw\": 0}]"),
            "the bandwidth is 0",
        ),
        ("BadName", change("\"h1\": {}", "\"h 1\": {}"), "t.json:2:18: 'h 1' cannot be a name"),
        (
            "BadName",
            change("[\"s1\", \"s2\"],\n\"links\"", "[\"s1\", \"\"],\n\"links\""),
            "'' cannot be a name",
        ),
        ("RackFull", json(&crowd(255)), "t.json:1:2958: rack s1 has more than 254 hosts"),
        ("TooLarge", json(&crowd(65_536)), "t.json: the fabric has more than 65536 nodes"),
        ("Topology/HostCables", change(",\n          [\"h2\", \"s2\"]", ""), "'h2' has 0 cables"),
    ]
}

/// Rows of `racks` racks with one host each, spread over `racks / share` PSW names.
fn leaves(racks: usize, share: usize) -> String {
    (0..racks).map(|i| format!("host{i},G,P{},S{i}\n", i / share)).collect()
}

/// A `topology.json` with so many hosts on one switch.
fn crowd(hosts: usize) -> String {
    let names: Vec<String> = (0..hosts).map(|i| format!("\"h{i}\": {{}}")).collect();
    let links: Vec<String> = (0..hosts).map(|i| format!("[\"h{i}\", \"s1\"]")).collect();
    let (names, links) = (names.join(", "), links.join(", "));
    format!("{{\"hosts\": {{{names}}}, \"switches\": [\"s1\"], \"links\": [{links}]}}")
}

/// The CSV reader reads from text and allows rows of any length: nothing is left for it to refuse.
const UNREACHABLE: [&str; 1] = ["Csv"];

#[test]
fn every_bad_fabric_file_reaches_its_own_error_and_names_line_or_element() {
    let cases: Vec<Case> = import_cases()
        .into_iter()
        .map(|(wanted, error, part)| {
            let (kind, shown) = (variants(&error.problem), error.to_string());
            Case { kind, wanted, shown, place: error.file.clone(), part }
        })
        .collect();
    check("topology", &cases);
    let source = include_str!("../../../src/topology/import.rs");
    check_variants(source, "ImportProblem", &cases, &UNREACHABLE);
}
