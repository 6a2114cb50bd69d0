//! Scenario files.

use super::{Case, check, check_variants, folder, variants};
use ringpath::workload::scenario::{ScenarioError, parse, read};
use std::path::Path;

/// A good scenario with one line of each kind, to which cases make one change.
pub const GOOD: &str = r#"name = "good"
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
        ("BadName", with("\"a\"", "\"a b\""), 8, "'name' is 'a b'; write 1 to 64"),
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
        ("BadCable", with("leaf1-spine1", "leaf1"), 20, "write a cable as \"leaf1-spine2\""),
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
        (
            "UnknownKey",
            with("name = \"good\"", "name = \"good\"\nsede = 1"),
            2,
            "the file has no key 'sede'; did you mean 'seed'?",
        ),
        ("UnknownKey", with("model =", "modle ="), 9, "[[job]] 1 has no key 'modle'"),
        (
            "UnknownKey",
            event("kind = \"replan\"\nwhen = \"2s\""),
            24,
            "[[event]] 2 has no key 'when'",
        ),
        (
            "UnknownKey",
            format!("{GOOD}[placement]\nrings = \"sorted\"\n"),
            22,
            "[placement] has no key 'rings'; did you mean 'ring'?",
        ),
        (
            "KeyNotForKind",
            event("kind = \"replan\"\ntarget = \"h1\""),
            24,
            "'target' does not belong to [[event]] 2 of kind 'replan'",
        ),
        (
            "KeyNotForKind",
            fabric("kind = \"fat-tree\"\nk = 4\nleaves = 2"),
            5,
            "'leaves' does not belong to [fabric] of kind 'fat-tree'",
        ),
        ("MissingKey", with("name = \"a\"\n", ""), 7, "[[job]] 1 needs 'name'; write"),
        ("MissingKey", with("workers = [\"h1\", \"h3\"]\n", ""), 7, "[[job]] 1 needs 'workers'"),
        ("MissingKey", with("compute = \"10ms\"\n", ""), 11, "[[job]] 2 needs 'compute'"),
        ("MissingKey", with("at = \"2s\"\n", ""), 17, "[[event]] 1 needs 'at'"),
        ("MissingKey", with("kind = \"link-down\"\n", ""), 17, "[[event]] 1 needs 'kind'"),
        ("MissingKey", with("target = \"leaf1-spine1\"\n", ""), 17, "[[event]] 1 needs 'target'"),
        (
            "MissingKey",
            event("kind = \"host-slow\"\ntarget = \"h1\""),
            21,
            "[[event]] 2 needs 'factor'",
        ),
        (
            "MissingKey",
            event("kind = \"background-flow\"\nsource = \"h1\"\ndestination = \"h2\""),
            21,
            "[[event]] 2 needs 'rate'",
        ),
        (
            "MissingKey",
            GOOD[GOOD.find("[[job]]").unwrap()..].to_owned(),
            0,
            "the file needs 'fabric'",
        ),
        (
            "WrongType",
            with("[\"h1\", \"h3\"]", "true"),
            10,
            "'workers' is true or false; it must be",
        ),
        ("WrongType", with("name = \"a\"", "name = 7"), 8, "'name' is an integer"),
        ("WrongType", with("\"2s\"", "[\"1s\"]"), 18, "'at' is a list of another length"),
        ("OutOfRange", with("spines = 2", "spines = 2\nqueues = 9"), 6, "'queues' is 9"),
        (
            "OutOfRange",
            with("name = \"good\"", "name = \"good\"\nmax_paths = 0"),
            2,
            "'max_paths' is 0; it must lie between 1",
        ),
        (
            "OutOfRange",
            with("name = \"good\"", "name = \"good\"\nseed = -1"),
            2,
            "'seed' is -1; it must lie between 0",
        ),
        ("OutOfRange", with("start = \"1s\"", "jitter = 0.9"), 16, "'jitter' is 0.9"),
        ("OutOfRange", with("start = \"1s\"", "overlap = -0.1"), 16, "'overlap' is -0.1"),
        ("OutOfRange", with("start = \"1s\"", "channels = 65"), 16, "'channels' is 65"),
        ("OutOfRange", with("start = \"1s\"", "gpus = 0"), 16, "'gpus' is 0"),
        ("OutOfRange", with("start = \"1s\"", "iterations = 0"), 16, "'iterations' is 0"),
        (
            "OutOfRange",
            event("kind = \"host-slow\"\ntarget = \"h1\"\nfactor = 2.0"),
            25,
            "'factor' is 2",
        ),
        ("OutOfRange", event("kind = \"move-flows\"\ncount = 0"), 24, "'count' is 0"),
        (
            "Unit/NoUnit",
            event(
                "kind = \"background-flow\"\nsource = \"h1\"\ndestination = \"h2\"\nrate = \"5\"",
            ),
            26,
            "'rate': '5' has no unit",
        ),
        ("UnknownChoice", with("\"link-down\"", "\"link-dwon\""), 19, "did you mean 'link-down'?"),
        (
            "UnknownChoice",
            format!("{GOOD}[placement]\nring = \"shufled\"\n"),
            22,
            "'ring' is 'shufled'; did you mean 'shuffled'?",
        ),
        (
            "UnknownNode",
            with("leaf1-spine1", "leaf1-spine9"),
            20,
            "'target': the fabric has no host or switch",
        ),
        (
            "WrongNode",
            event("kind = \"host-fail\"\ntarget = \"spine2\""),
            24,
            "'spine2' is a switch; give the name of a host",
        ),
        (
            "BadName",
            event("kind = \"set-policy\"\npolicy = \"no policy\""),
            24,
            "'policy' is 'no policy'",
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
    let cases: Vec<Case> = scenario_cases()
        .into_iter()
        .map(|(wanted, text, line, part)| {
            let error = fail(&text);
            let place = if line > 0 { format!("bad.toml:{line}:") } else { "bad.toml".to_owned() };
            Case { kind: variants(&error.problem), wanted, shown: error.to_string(), place, part }
        })
        .collect();
    check("scenario", &cases);
    let source = include_str!("../../../src/workload/scenario/error.rs");
    check_variants(source, "Problem", &cases, &BY_READ);
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
