//! `ringpath evaluate` as a user runs it: shards, merging, going on after a stop, and the same bytes every time.

use assert_cmd::Command;
use std::path::Path;

fn ringpath(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_ringpath")).arg("evaluate").args(args).output().unwrap()
}

fn fine(args: &[&str]) -> String {
    let output = ringpath(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// What is written besides the results: all of it must not depend on who ran which cell.
const FILES: [&str; 6] =
    ["report.html", "report.json", "report.md", "published.csv", "figures.csv", "losses.csv"];
/// The small grid of one seed: four cells.
const GRID: [&str; 5] = ["--preset", "paper", "--small", "--seeds", "1"];

#[test]
fn shards_merge_to_the_bytes_of_one_run_and_a_stopped_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let path = |name: &str| at(name).display().to_string();
    let (whole, parts, joined) = (path("whole"), path("parts"), path("joined"));
    fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
        [&GRID[..], more].concat()
    }
    fine(&with(&["--out", &whole]));
    for shard in ["0/2", "1/2"] {
        fine(&with(&["--out", &parts, "--shard", shard]));
    }
    fine(&["merge", &parts, "--out", &joined]);
    for file in FILES {
        assert!(text(&at("whole").join(file)) == text(&at("joined").join(file)), "{file} differs");
    }

    // Cut in the middle of the last line: that cell is run again, the other is not, and the bytes are the same.
    let ledger = at("whole").join("paper.jsonl");
    let before = text(&ledger);
    std::fs::write(&ledger, &before[..before.len() - 100]).unwrap();
    std::fs::remove_file(at("whole").join("report.html")).unwrap();
    fine(&with(&["--out", &whole]));
    assert_eq!(text(&ledger).lines().count(), before.lines().count());
    assert!(text(&at("whole").join("report.html")) == text(&at("joined").join("report.html")));

    // Another grid must not be mixed in, and a missing part is named.
    let other = ringpath(&["--preset", "paper", "--small", "--seeds", "2", "--out", &whole]);
    let message = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(!other.status.success() && message.contains("give another --out"), "{message}");
    std::fs::remove_file(at("parts").join("paper-1-of-2.jsonl")).unwrap();
    let gap = ringpath(&["merge", &parts]);
    let message = String::from_utf8_lossy(&gap.stderr).into_owned();
    assert!(
        message.contains("2 of 4 cells") && message.contains("shard 1 of a run in 2"),
        "{message}"
    );
    let twice = ringpath(&["merge", &parts, &joined]);
    let message = String::from_utf8_lossy(&twice.stderr).into_owned();
    assert!(!twice.status.success() && message.contains("paper.jsonl:2"), "{message}");
}

#[test]
fn the_json_of_a_preset_has_its_settings_and_rows() {
    let json: serde_json::Value =
        serde_json::from_str(&fine(&[&GRID[..], &["-o", "json"]].concat())).unwrap();
    assert_eq!((json["preset"].as_str(), json["source"].as_str()), (Some("paper"), Some("fluid")));
    assert_eq!(json["seeds"], 1);
    let row = &json["rows"][0];
    for key in ["configuration", "policies", "against", "published", "worst", "utilisation_bound"] {
        assert!(!row[key].is_null(), "{key}");
    }
    assert_eq!(row["published"].as_array().unwrap().len(), 4);
}

#[test]
fn wrong_use_is_refused_in_words() {
    for (args, word) in [
        (vec!["--preset", "paper", "--shard", "2/2", "--out", "x"], "parts are 0 to 1"),
        (vec!["--preset", "paper", "--shard", "0/0", "--out", "x"], "there are no 0 parts"),
        (vec!["--preset", "paper", "--shard", "0/2"], "--out"),
        (vec!["--preset", "paper", "--rho", "0.3"], "--rho means nothing to the preset 'paper'"),
        (vec!["--preset", "rho", "--rho", "0.3"], "only to detection"),
        (vec!["--preset", "load", "--rule", "work"], "only to detection and rho"),
        (vec!["--preset", "scale", "--fabric", "light"], "--fabric means nothing"),
        (vec!["--preset", "rho", "--topology", "x"], "only to scale"),
        (
            vec!["--preset", "scale", "--small", "--topology", "/nonexistent"],
            "cannot read /nonexistent",
        ),
        (vec!["--small"], "--preset"),
    ] {
        let output = ringpath(&args);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(word), "{args:?}: {message}");
    }
}

#[test]
fn settings_from_a_file_are_held_to_the_limits_of_the_flags() {
    let dir = tempfile::tempdir().unwrap();
    let parts = dir.path().join("parts").display().to_string();
    let shard = [&GRID[..], &["--out", &parts, "--shard", "3/4", "-o", "json"]].concat();
    let json: serde_json::Value = serde_json::from_str(&fine(&shard)).unwrap();
    assert_eq!((json["done"].as_u64(), json["cells"].as_u64()), (Some(1), Some(4)), "{json}");
    let ledger = dir.path().join("parts/paper-3-of-4.jsonl");
    let whole = text(&ledger);
    for (from, to, word) in [
        ("\"seeds\":1,", "\"seeds\":18446744073709551615,", "it may be 1 to 100000"),
        ("\"rho\":0.2", "\"rho\":-3.0", "a share above 0 and below 1"),
    ] {
        assert!(whole.contains(from), "{whole}");
        std::fs::write(&ledger, whole.replace(from, to)).unwrap();
        let output = ringpath(&["merge", &parts]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && message.contains(word), "{message}");
    }
    let itself = ringpath(&["merge", &parts, "--out", &parts]);
    let message = String::from_utf8_lossy(&itself.stderr).into_owned();
    assert!(!itself.status.success() && message.contains("one of the directories"), "{message}");
    let other = ringpath(&["--preset", "load", "--small", "--out", &parts]);
    let message = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(
        !other.status.success() && message.contains("none of the results of 'load'"),
        "{message}"
    );
}
