//! Scenario and fabric files that are wrong: each case reaches another error, names its place and says what to do.

use proptest::prelude::*;
use ringpath::topology::import::{ImportError, Lingjun, P4Utils, lingjun, p4utils};
use ringpath::workload::scenario::{ScenarioError, parse, read};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Variant names along the chain of problems: `Fabric/Topology/ZeroRate`.
fn variants(problem: &dyn std::fmt::Debug) -> String {
    let mut text = format!("{problem:?}");
    let mut names = Vec::new();
    loop {
        let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
        let rest = text[name.len()..].to_owned();
        names.push(name);
        let next = match (rest.strip_prefix('('), rest.split_once("source: ")) {
            (Some(inner), _) => inner.to_owned(),
            // Errors of the operating system have an inside of their own.
            (None, Some((_, inner))) if !inner.starts_with("Os") => inner.to_owned(),
            _ => return names.join("/"),
        };
        // `ImportError { file, line, column, problem: X }` stands between.
        text = match next.split_once("problem: ") {
            Some((_, inner)) if next.starts_with("ImportError") => inner.to_owned(),
            _ => next,
        };
    }
}

/// Names of an enum's variants, read from its source.
fn declared(source: &str, name: &str) -> Vec<String> {
    let body = source.split_once(&format!("pub enum {name} {{\n")).unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let variant = |line: &str| {
        let line = line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase))?;
        Some(line.chars().take_while(char::is_ascii_alphanumeric).collect())
    };
    body.lines().filter_map(variant).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topologies")
}

/// A good scenario with one line of each kind, to which cases make one change.
const GOOD: &str = r#"name = "good"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
[[job]]
name = "a"
model = "vgg-16"
workers = ["h1", "h3"]
[[job]]
name = "b"
bytes = "1MB"
compute = "10ms"
workers = ["h2", "h4"]
start = "1s"
[[event]]
at = "2s"
kind = "link-down"
target = "leaf1-spine1"
"#;

fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replacen(from, to, 1)
}

fn event(lines: &str) -> String {
    format!("{GOOD}[[event]]\nat = \"3s\"\n{lines}\n")
}

fn file(name: &str) -> String {
    let start = GOOD.find("[fabric]").unwrap();
    let end = GOOD.find("[[job]]").unwrap();
    format!("{}[fabric]\nfile = \"{name}\"\n{}", &GOOD[..start], &GOOD[end..])
}

/// (variants, text, line, what the message must contain)
fn scenario_cases() -> Vec<(&'static str, String, usize, &'static str)> {
    let fabric =
        |to: &str| with("kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 2", to);
    vec![
        ("TooLarge", " ".repeat(5 << 20), 0, "at most 4194304"),
        ("Syntax", with("leaves = 2", "leaves = "), 4, "not valid TOML"),
        ("UnknownKey", with("leaves =", "leavs ="), 4, "did you mean 'leaves'?"),
        (
            "KeyNotForKind",
            with("leaves = 2", "leaves = 2\nk = 4"),
            5,
            "'k' does not belong to [fabric] of kind 'leaf-spine'",
        ),
        (
            "MissingKey",
            with("leaves = 2\n", ""),
            2,
            "[fabric] needs 'leaves'; write for example leaves = 4",
        ),
        (
            "BothKeys",
            with("model = \"vgg-16\"", "model = \"vgg-16\"\nbytes = \"1MB\""),
            10,
            "both 'model' and 'bytes'",
        ),
        (
            "WrongType",
            with("leaves = 2", "leaves = \"2\""),
            4,
            "'leaves' is a string; it must be an integer",
        ),
        ("Unit/NotANumber", with("\"1MB\"", "\"big\""), 13, "write for example 1.34GB"),
        ("Unit/NoUnit", with("\"10ms\"", "\"10\""), 14, "has no unit; write for example 250ms"),
        ("Unit/UnknownUnit", with("\"1MB\"", "\"1Mb\""), 13, "use one of TiB"),
        ("Unit/OutOfRange", with("\"1MB\"", "\"-1MB\""), 13, "between 0 and"),
        (
            "OutOfRange",
            with("leaves = 2", "leaves = 0"),
            4,
            "'leaves' is 0; it must lie between 1 and",
        ),
        ("EmptyRange", with("\"1s\"", "[\"2s\", \"1s\"]"), 16, "write [earliest, latest]"),
        (
            "UnknownChoice",
            with("\"leaf-spine\"", "\"leaf-spline\""),
            3,
            "did you mean 'leaf-spine'?",
        ),
        ("BadName", with("\"a\"", "\"a b\""), 8, "'name' is 'a b'; a name has"),
        (
            "Fabric/HostsPerLeaf",
            with("hosts_per_leaf = 2", "hosts_per_leaf = 255"),
            2,
            "255 hosts per leaf are too many",
        ),
        ("Fabric/TooLarge", with("leaves = 2", "leaves = 4000000000"), 2, "use smaller counts"),
        (
            "Fabric/Oversubscription",
            with("spines = 2", "spines = 2\noversubscription = 3"),
            2,
            "3 does not divide 2 spines",
        ),
        (
            "Fabric/FatTreeK",
            fabric("kind = \"fat-tree\"\nk = 5"),
            2,
            "an even k between 2 and 40, not 5",
        ),
        (
            "Fabric/Topology/TooManyPorts",
            with("spines = 2", "spines = 508"),
            2,
            "'leaf1' would need 510 ports",
        ),
        (
            "Fabric/Topology/TooManySwitches",
            with("leaves = 2", "leaves = 2047"),
            2,
            "2049 switches; at most 2048",
        ),
        (
            "Fabric/Topology/ZeroRate",
            with("spines = 2", "spines = 2\nfabric_link = \"0bps\""),
            2,
            "has rate 0; give a rate such as 25Gbps",
        ),
        (
            "Fabric/Topology/TooSmall",
            with("leaves = 2", "leaves = 1").replace("hosts_per_leaf = 2", "hosts_per_leaf = 1"),
            2,
            "at least two hosts",
        ),
        ("FabricFile", file("missing.csv"), 3, "missing.csv: No such file"),
        ("Import/MissingColumn", file("README.md"), 3, "the first line must be ip,DSW,PSW,ASW"),
        ("NoJobs", GOOD[..GOOD.find("[[job]]").unwrap()].to_owned(), 0, "add at least one [[job]]"),
        (
            "TooMany",
            with("name = \"a\"", "name = \"a\"\ncount = 9999")
                + &GOOD[GOOD.find("[[job]]").unwrap()..]
                    .replace("name = \"b\"", "name = \"c\"\ncount = 2"),
            0,
            "at most 10000 are supported",
        ),
        ("DuplicateJob", with("name = \"b\"", "name = \"a\""), 12, "a second job is called 'a'"),
        ("UnknownModel", with("vgg-16", "vgg-61"), 9, "did you mean 'vgg-16'?"),
        ("NoSize", with("model = \"vgg-16\"\n", ""), 7, "neither 'model' nor 'bytes'"),
        (
            "UnknownNode",
            with("[\"h1\", \"h3\"]", "[\"h1\", \"h33\"]"),
            10,
            "'workers[1]': the fabric has no host 'h33'; did you mean 'h3'?",
        ),
        ("WrongNode", with("[\"h1\", \"h3\"]", "[\"h1\", \"leaf1\"]"), 10, "'leaf1' is a switch"),
        (
            "Ring/TooFewRanks",
            with("[\"h1\", \"h3\"]", "[\"h1\"]"),
            10,
            "a ring needs at least 2 hosts",
        ),
        (
            "Ring/HostTwice",
            with("[\"h1\", \"h3\"]", "[\"h1\", \"h3\", \"h1\"]"),
            10,
            "host 'h1' twice",
        ),
        ("NoRoom/NoRoom", with("[\"h1\", \"h3\"]", "3"), 0, "raise jobs_per_host"),
        (
            "NoCable",
            with("leaf1-spine1", "leaf1-leaf2"),
            20,
            "'leaf1' is cabled to h1, h2, spine1, spine2",
        ),
        ("BadCable", with("leaf1-spine1", "leaf1"), 20, "a cable is written \"leaf1-spine2\""),
        (
            "SameHost",
            event(
                "kind = \"background-flow\"\nsource = \"h1\"\ndestination = \"h1\"\nrate = \"1Gbps\"",
            ),
            25,
            "name two hosts",
        ),
        (
            "UnknownJob",
            event("kind = \"job-departure\"\ntarget = \"c\""),
            24,
            "no job is called 'c'",
        ),
        (
            "StartTwice",
            event("kind = \"job-arrival\"\ntarget = \"b\""),
            24,
            "'b' already has a start",
        ),
        (
            "DepartsEarly",
            event("kind = \"job-departure\"\ntarget = \"b\"")
                .replace("at = \"3s\"", "at = \"0.5s\""),
            21,
            "move the departure after 1s",
        ),
        (
            "NotDown",
            event("kind = \"link-up\"\ntarget = \"leaf2-spine1\""),
            21,
            "leaf2 - spine1 is not down",
        ),
        (
            "NothingToDraw",
            file("one-switch.json")
                .replace("\"h3\"", "\"h2\"")
                .replace("workers = [\"h2\", \"h4\"]", "workers = [\"h1\", \"h2\"]")
                .replace("leaf1-spine1", "random"),
            17,
            "no cable between two switches",
        ),
    ]
}

/// Reached by [`read`] only, see below.
const BY_READ: [&str; 2] = ["Io", "NotText"];

fn fail(text: &str) -> ScenarioError {
    parse(text, "bad.toml", &folder(), Some(0)).err().unwrap_or_else(|| panic!("accepted:\n{text}"))
}

#[test]
fn the_scenario_that_cases_start_from_is_good() {
    let scenario = parse(GOOD, "good.toml", &folder(), None).unwrap();
    assert_eq!((scenario.jobs.len(), scenario.events.len()), (2, 1));
}

#[test]
fn every_bad_scenario_reaches_its_own_error_and_names_place_and_remedy() {
    let mut reached = BTreeSet::new();
    for (wanted, text, line, part) in scenario_cases() {
        let error = fail(&text);
        let shown = error.to_string();
        assert_eq!(variants(&error.problem), wanted, "{shown}");
        assert!(reached.insert(wanted), "{wanted} has two cases");
        assert!(shown.contains(part), "{wanted}: wanted '{part}' in: {shown}");
        assert!(shown.starts_with("bad.toml"), "{shown}");
        if line > 0 {
            assert!(
                shown.starts_with(&format!("bad.toml:{line}:")),
                "{wanted} at line {line}: {shown}"
            );
        }
        assert!(shown.len() < 1_000, "{shown}");
    }
    let source = include_str!("../../src/workload/scenario/error.rs");
    let covered: BTreeSet<&str> =
        reached.iter().map(|path| path.split('/').next().unwrap()).chain(BY_READ).collect();
    let missing: Vec<String> = declared(source, "Problem")
        .into_iter()
        .filter(|variant| !covered.contains(variant.as_str()))
        .collect();
    println!("{} scenario cases; variants without a case: {missing:?}", reached.len());
    assert!(missing.is_empty(), "variants without a case: {missing:?}");
    assert!(reached.len() >= 40);
}

#[test]
fn a_missing_or_binary_scenario_file_is_named() {
    let missing = read(Path::new("/nonexistent/s.toml"), None).unwrap_err();
    assert_eq!(variants(&missing.problem), "Io");
    assert!(
        missing.to_string().starts_with("/nonexistent/s.toml: cannot read the file: No such file")
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let binary = read(&path, None).unwrap_err();
    assert_eq!(variants(&binary.problem), "NotText");
    assert!(binary.to_string().contains("s.toml: the file is not UTF-8"));
}

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
            "the hosts 'h1' and 'h2'",
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
            change("{\"h1\": {}, \"h2\": {}}", "{\"h1\": {}}").into_small(),
            "1 hosts and 2 switches",
        ),
    ]
}

/// `TooSmall` needs a file without the second host's link; everything else about the case is as in the others.
trait IntoSmall {
    fn into_small(self) -> ImportError;
}

impl IntoSmall for ImportError {
    fn into_small(self) -> ImportError {
        assert!(self.to_string().contains("'h2'"), "{self}");
        json(&JSON.replace(", \"h2\": {}", "").replace("[\"h2\", \"s2\"],", ""))
    }
}

/// The CSV reader reads from text and allows rows of any length: nothing is left for it to refuse.
const UNREACHABLE: [&str; 1] = ["Csv"];

#[test]
fn every_bad_fabric_file_reaches_its_own_error_and_names_line_or_element() {
    let mut reached = BTreeSet::new();
    for (wanted, error, part) in import_cases() {
        let shown = error.to_string();
        assert_eq!(variants(&error.problem), wanted, "{shown}");
        assert!(reached.insert(wanted), "{wanted} has two cases");
        assert!(shown.contains(part), "{wanted}: wanted '{part}' in: {shown}");
        assert!(shown.starts_with(&error.file), "{shown}");
    }
    let covered: BTreeSet<&str> =
        reached.iter().map(|path| path.split('/').next().unwrap()).chain(UNREACHABLE).collect();
    let missing: Vec<String> =
        declared(include_str!("../../src/topology/import.rs"), "ImportProblem")
            .into_iter()
            .filter(|variant| !covered.contains(variant.as_str()))
            .collect();
    println!("{} fabric cases; variants without a case: {missing:?}", reached.len());
    assert!(missing.is_empty(), "variants without a case: {missing:?}");
}

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut texts: Vec<String> =
        paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.push(GOOD.to_owned());
    texts
}

/// Pieces that a slip of the keyboard, a merge or an attacker might leave.
const PIECES: [&str; 16] = [
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "[[job]]\n",
    "[[event]]\n",
    "-1",
    "99999999999999999999",
    "1e308",
    "\u{0}",
    "é",
    "random",
    "kind = \"replan\"\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_scenarios_are_read_or_refused_with_their_name_and_never_panic(
        pick in any::<prop::sample::Index>(),
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0_usize..24, proptest::sample::select(PIECES.to_vec())), 1..4),
    ) {
        let texts = examples();
        let mut text: Vec<char> = pick.get(&texts).chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, piece.chars());
        }
        let text: String = text.into_iter().collect();
        match parse(&text, "m.toml", &folder(), None) {
            Ok(scenario) => prop_assert!(scenario.jobs.iter().all(|job| job.ranks.len() >= 2)),
            Err(error) => prop_assert!(error.to_string().starts_with("m.toml"), "{error}"),
        }
    }

    #[test]
    fn random_bytes_and_mutated_fabric_files_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(), cut in 0_usize..20,
    ) {
        let _ = lingjun(&bytes, "topo.csv", &Lingjun::default());
        let _ = p4utils(&bytes, "t.json", &P4Utils::default());
        for name in ["topo.csv", "triangle.json", "one-switch.json"] {
            let mut text = std::fs::read(folder().join(name)).unwrap();
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, bytes.iter().copied().take(4));
            let shown = [
                lingjun(&text, "topo.csv", &Lingjun::default()).err(),
                p4utils(&text, "t.json", &P4Utils::default()).err(),
            ];
            for error in shown.into_iter().flatten() {
                prop_assert!(error.to_string().starts_with(&error.file));
            }
        }
    }
}
