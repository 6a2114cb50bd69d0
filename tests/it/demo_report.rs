//! `ringpath demo`: its page and its timeline, on a scenario small enough for a test.

use clap::Parser as _;
use ringpath::cli::{Cli, Exit, exit, run};
use std::path::Path;

/// Two jobs that meet, a cable that fails and comes back; a few hundred packets.
const SCENARIO: &str = r#"
packet_scale = 200

[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_link = "10Gbps"
fabric_link = "10Gbps"

[[job]]
name = "one"
bytes = "20MB"
compute = "20ms"
workers = ["h1", "h3"]
iterations = 6

[[job]]
name = "two"
bytes = "10MB"
compute = "10ms"
workers = ["h2", "h4", "h1"]
iterations = 6

[[event]]
at = "60ms"
kind = "link-down"
target = "leaf1-spine1"

[[event]]
at = "120ms"
kind = "link-up"
target = "leaf1-spine1"
"#;

fn demo(dir: &Path, arguments: &[&str]) -> (anyhow::Result<Exit>, String) {
    // Without a name of its own a scenario has that of its file, which nobody checks.
    let file = dir.join("<b>&\".toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let file = file.display().to_string();
    let fixed = ["ringpath", "demo", "--scenario", &file, "--wire", "direct"];
    let policies = ["--policy", "ecmp", "--policy", "sebf"];
    let cli = Cli::try_parse_from([&fixed[..], &policies[..], arguments].concat()).unwrap();
    let mut out = Vec::new();
    let result = run(cli.command, &mut out);
    (result, String::from_utf8(out).unwrap())
}

#[test]
fn the_page_is_the_same_bytes_for_the_same_seed_and_the_terminal_tells_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let mut pages = Vec::new();
    let mut text = String::new();
    for name in ["a.html", "b.html"] {
        let file = dir.path().join(name);
        let (result, out) = demo(dir.path(), &["--report", &file.display().to_string()]);
        assert_eq!(result.unwrap(), Exit::Done);
        assert!(out.trim_end().ends_with(name), "{out}");
        pages.push(std::fs::read_to_string(file).unwrap());
        text = out;
    }
    assert!(pages[0] == pages[1], "two runs of one seed gave two pages");
    let page = &pages[0];
    assert!(!page.contains("http") && !page.contains("<b>&"), "a name was not escaped");
    assert!(page.contains("<h1>Ringpath: scenario &lt;b&gt;&amp;&quot;</h1>"));
    for part in ["leaf1-spine1 goes down", "Plan 2 at ", "id=\"p1\"", "queue 7", "spine2"] {
        assert!(page.contains(part), "{part} is missing");
    }
    let (_, timeline) = text.split_once("timeline, ms").expect("a timeline");
    assert!(timeline.lines().count() <= 26, "{timeline}");
    for part in ["60.0  all", "leaf1-spine1 goes down", "120.0  all", "plan 2"] {
        assert!(timeline.contains(part), "{part} is missing in\n{timeline}");
    }
}

#[test]
fn json_is_json_alone_and_no_report_is_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let (result, out) = demo(dir.path(), &["-o", "json", "--no-report"]);
    assert_eq!(result.unwrap(), Exit::Done);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    for list in ["stragglers", "restarts"] {
        assert_eq!(json["policies"][1][list], serde_json::json!([]), "{list}");
    }
    assert!(json.get("timeline").is_none());
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(files, 1, "only the scenario");
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_after_the_results() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("missing/report.html").display().to_string();
    let (result, out) = demo(dir.path(), &["--report", &file]);
    let error = result.unwrap_err();
    assert_eq!(exit::of(&error), Exit::Failed);
    let text = exit::chain(&error);
    for part in [&file, "--report FILE", "--no-report", "results above are complete"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(
        out.contains("│ sebf") && out.contains("timeline, ms"),
        "the results came first:\n{out}"
    );
}
