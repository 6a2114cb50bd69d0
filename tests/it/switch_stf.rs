//! STF cases: ours, and any that `STF_CASES` names (a directory with NAME.json and NAME.stf).

use ringpath::switch::stf;
use std::path::{Path, PathBuf};

fn with_extension(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    paths
}

fn check(json: &[u8], case: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(case).map_err(|e| e.to_string())?;
    let lines = stf::parse(&text).map_err(|e| e.to_string())?;
    let report = stf::run(json, &lines).map_err(|e| e.to_string())?;
    if report.passed() { Ok(()) } else { Err(format!("{:#?}", report.failures)) }
}

#[test]
fn every_case_of_our_program_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let json = std::fs::read(root.join("p4/build/ringpath.json")).unwrap();
    let cases = with_extension(&root.join("tests/data/stf"), "stf");
    assert!(cases.len() >= 15, "{} cases", cases.len());
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| check(&json, case).err().map(|why| format!("{}: {why}", case.display())))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_tutorials_case_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let json = std::fs::read(root.join("p4/build/reflect.json")).unwrap();
    check(&json, &root.join("tests/data/samples/reflect.stf")).unwrap();
}

/// Not part of the project: p4c's own cases, compiled by whoever has p4c.
#[test]
#[ignore = "needs STF_CASES=DIR with NAME.json and NAME.stf, e.g. p4c's test data compiled with p4c-bm2-ss"]
fn cases_of_a_directory_pass() {
    let dir = PathBuf::from(std::env::var("STF_CASES").expect("set STF_CASES"));
    let cases = with_extension(&dir, "stf");
    let mut failed = Vec::new();
    for case in &cases {
        let json = std::fs::read(case.with_extension("json")).unwrap_or_default();
        if let Err(why) = check(&json, case) {
            failed.push(format!("{}: {why}", case.display()));
        }
    }
    println!("{} of {} pass", cases.len() - failed.len(), cases.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
