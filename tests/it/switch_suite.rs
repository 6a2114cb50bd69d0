//! p4c's own v1model cases: what BMv2 and our switch make of each (`tests/data/stf-suite.csv`), and the page that says so.

use crate::rig::repo;
use ringpath::switch::stf;
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct Row {
    set: String,
    case: String,
    bmv2: String,
    ours: String,
    reason: String,
}

fn rows() -> Vec<Row> {
    let mut reader = csv::Reader::from_path(repo("tests/data/stf-suite.csv")).unwrap();
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(header, ["set", "case", "bmv2", "ringpath", "reason"]);
    let row = |record: csv::StringRecord| {
        let at = |i: usize| record[i].to_owned();
        Row { set: at(0), case: at(1), bmv2: at(2), ours: at(3), reason: at(4) }
    };
    reader.records().map(|record| row(record.unwrap())).collect()
}

fn verdict(folder: &Path, case: &str) -> Result<bool, String> {
    let json = std::fs::read(folder.join(format!("{case}.json"))).map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(folder.join(format!("{case}.stf"))).unwrap();
    let lines = stf::parse(&text).map_err(|e| e.to_string())?;
    let report = stf::run(&json, &lines).map_err(|e| e.to_string())?;
    for failure in &report.failures {
        println!("{case}:{}: {}\n{}", failure.line, failure.message, failure.diff());
    }
    Ok(report.passed())
}

#[test]
fn the_list_has_every_case_none_that_only_bmv2_passes_and_a_reason_for_each_other() {
    let rows = rows();
    let names: Vec<_> = rows.iter().map(|row| (&row.set, &row.case)).collect();
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
    for (set, most) in [("p4_14_samples", 46), ("p4_16_samples", 188)] {
        assert_eq!(rows.iter().filter(|row| row.set == set).count(), most, "{set}");
    }
    for row in &rows {
        for result in [&row.bmv2, &row.ours] {
            assert!(["pass", "fail"].contains(&result.as_str()), "{row:?}");
        }
        assert!(row.bmv2 == "fail" || row.ours == "pass", "BMv2 passes it: {row:?}");
        let both = row.bmv2 == "pass" && row.ours == "pass";
        assert_eq!(both, row.reason.is_empty(), "{row:?}");
    }
}

#[test]
fn the_page_of_the_switch_shows_the_suite_as_it_is() {
    let page = std::fs::read_to_string(repo("docs/switch-conformance.md")).unwrap();
    let rows = rows();
    for set in ["p4_16_samples", "p4_14_samples"] {
        let of_set = |result: fn(&Row) -> &String| {
            rows.iter().filter(|row| row.set == set && result(row) == "pass").count()
        };
        let all = rows.iter().filter(|row| row.set == set).count();
        let (bmv2, ours) = (of_set(|row| &row.bmv2), of_set(|row| &row.ours));
        let line = format!("| `{set}` | {all} | {bmv2} | {ours} |");
        assert!(page.contains(&line), "the page lacks {line}");
    }
    for row in rows.iter().filter(|row| !row.reason.is_empty()) {
        let line = format!("| `{}` | {} | {} | {} |", row.case, row.bmv2, row.ours, row.reason);
        assert!(page.contains(&line), "the page lacks {line}");
    }
}

/// Tests that the checklist names exist, under these names.
#[test]
fn the_checklist_names_tests_that_exist() {
    let page = std::fs::read_to_string(repo("docs/switch-conformance.md")).unwrap();
    let list = page.split("## Checklist").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut sources = String::new();
    let mut folders = vec![repo("src/switch"), repo("tests/it")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                sources += &std::fs::read_to_string(path).unwrap();
            }
        }
    }
    let cases: Vec<String> = rows().into_iter().map(|row| row.case).collect();
    let mut found = 0;
    for line in list.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| feature"))
    {
        let tests = line.rsplit('|').nth(1).unwrap();
        for name in tests.split('`').skip(1).step_by(2) {
            let known = sources.contains(&format!("fn {name}(")) || cases.iter().any(|c| c == name);
            assert!(known, "no test and no case is called {name}: {line}");
            found += 1;
        }
        assert!(tests.contains('`'), "without a test: {line}");
    }
    assert!(found > 60, "{found} tests");
}

/// Recomputes our column. Needs the cases compiled by whoever has p4c: `STF_CASES=DIR` with `DIR/SET/NAME.json` and
/// `NAME.stf` (docs/switch-conformance.md says how).
#[test]
#[ignore = "needs STF_CASES=DIR, p4c's cases compiled with p4c-bm2-ss"]
fn our_column_is_what_comes_out() {
    let folder = PathBuf::from(std::env::var("STF_CASES").expect("set STF_CASES"));
    let rows = rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let result = verdict(&folder.join(&row.set), &row.case);
        let now = if result == Ok(true) { "pass" } else { "fail" };
        if now != row.ours {
            wrong.push(format!("{}/{}: {now}, not {}: {result:?}", row.set, row.case, row.ours));
        }
    }
    for set in ["p4_14_samples", "p4_16_samples"] {
        for entry in std::fs::read_dir(folder.join(set)).unwrap() {
            let path = entry.unwrap().path();
            let case = path.file_stem().unwrap().to_string_lossy().into_owned();
            let listed = rows.iter().any(|row| row.set == set && row.case == case);
            if path.extension().is_some_and(|e| e == "stf") && !listed {
                wrong.push(format!("{set}/{case} is not listed"));
            }
        }
    }
    println!("{} cases", rows.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
