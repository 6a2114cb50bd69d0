//! Reads the source tree and holds it to the rules of docs/architecture.md: who may import whom, where async and P4
//! names may occur, how long files and functions may be, and that every P4 name in `pipeline` exists in the p4info.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Longest file, inline tests included; above it a reader finds two concepts in one.
const FILE_LINES_MAX: usize = 800;
/// Longest function. 70 is the aim (see `FUNCTION_LINES_AIM`); nothing may pass this.
const FUNCTION_LINES_MAX: usize = 90;
/// Functions longer than this are allowed only as a small share of all.
const FUNCTION_LINES_AIM: usize = 70;
/// Largest share of functions above the aim.
const LONG_FUNCTIONS_SHARE: f64 = 0.03;

/// What everything above the controller may name, and the controller itself.
const BELOW_CONTROLLER: [&str; 10] = [
    "topology",
    "workload",
    "plan",
    "solver",
    "elastic",
    "p4runtime",
    "pipeline",
    "telemetry",
    "straggler",
    "feedback",
];

/// Modules that a module may name besides itself and `id`, `units`, `time`.
fn may_import() -> BTreeMap<&'static str, Vec<&'static str>> {
    let and = |more: &[&'static str]| [&BELOW_CONTROLLER[..], more].concat();
    BTreeMap::from([
        ("id", vec![]),
        ("units", vec![]),
        ("time", vec![]),
        ("topology", vec![]),
        ("workload", vec!["topology"]),
        ("plan", vec!["topology"]),
        ("solver", vec!["topology", "workload", "plan"]),
        ("elastic", vec!["workload", "solver"]),
        ("p4runtime", vec![]),
        ("pipeline", vec!["topology", "plan", "p4runtime"]),
        ("switch", vec!["p4runtime"]),
        ("telemetry", vec!["pipeline"]),
        ("straggler", vec!["telemetry"]),
        ("feedback", vec!["topology", "workload", "plan", "solver", "straggler"]),
        ("controller", and(&[])),
        ("sim", and(&["switch", "controller"])),
        ("report", vec![]),
        ("worker", vec![]),
        ("evaluate", and(&["switch", "controller", "sim", "report"])),
        ("cli", and(&["switch", "controller", "sim", "report", "worker", "evaluate"])),
    ])
}

/// Files that may use tokio or tonic: drivers, the client and server ends, the binary's edge.
const ASYNC_ALLOWED: &[&str] = &[
    "src/p4runtime/client",
    "src/p4runtime/status.rs",
    "src/p4runtime/server",
    "src/p4runtime/proto",
    "src/sim/wire",
    "src/controller/driver",
    "src/cli",
];

/// The file that shares memory with the kernel.
const UNSAFE_ALLOWED: &str = "src/switch/port/ring.rs";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn walk(dir: &Path, extension: &str, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            walk(&path, extension, into);
        } else if path.extension().is_some_and(|found| found == extension) {
            into.push(path);
        }
    }
}

/// Every Rust file under `dir` as (path relative to the root, text).
fn sources(dir: &str) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    walk(&root().join(dir), "rs", &mut paths);
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.strip_prefix(root()).unwrap().to_string_lossy().into_owned(), text)
        })
        .collect()
}

/// `src/solver/rate.rs` → `solver`.
fn module_of(path: &str) -> &str {
    let rest = path.strip_prefix("src/").unwrap_or(path);
    rest.split(['/', '.']).next().unwrap_or(rest)
}

/// Code without comments; strings stay. Good enough for names, and it cannot miss a `use`.
fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The part of a file before its inline tests.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// Names after `crate::`, also inside `use crate::{a, b::c}`.
fn crate_modules_named(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        if let Some(group) = rest.strip_prefix('{') {
            let mut depth = 0_i32;
            let mut part = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => names.push(std::mem::take(&mut part)),
                    _ if depth == 0 => part.push(c),
                    _ => {}
                }
            }
            names.push(part);
        } else {
            names.push(rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    names
        .into_iter()
        .map(|name| name.trim().split("::").next().unwrap_or("").to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn modules_import_only_what_the_architecture_allows() {
    let rules = may_import();
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let module = module_of(&path);
        if module == "main" || module == "lib" || is_test_file(&path) {
            continue;
        }
        let Some(allowed) = rules.get(module) else {
            wrong.push(format!("{path}: module '{module}' has no row in the import table"));
            continue;
        };
        for name in crate_modules_named(&without_comments(without_tests(&text))) {
            let known = rules.contains_key(name.as_str());
            let fine = name == module
                || ["id", "units", "time"].contains(&name.as_str())
                || allowed.contains(&name.as_str());
            if known && !fine {
                wrong.push(format!("{path}: '{module}' must not know '{name}'"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pipeline_does_not_touch_the_protocol_ends() {
    for (path, text) in sources("src") {
        if module_of(&path) == "pipeline" {
            let code = without_comments(without_tests(&text));
            for end in ["p4runtime::client", "p4runtime::server"] {
                assert!(!code.contains(end), "{path} names {end}");
            }
        }
    }
}

#[test]
fn async_lives_only_in_drivers_and_protocol_ends() {
    let wrong: Vec<_> = sources("src")
        .into_iter()
        .filter(|(path, _)| !ASYNC_ALLOWED.iter().any(|allowed| path.starts_with(allowed)))
        .filter(|(_, text)| {
            let code = without_comments(without_tests(text));
            ["tokio", "tonic", "async fn", ".await"].iter().any(|word| code.contains(word))
        })
        .map(|(path, _)| path)
        .collect();
    assert!(wrong.is_empty(), "tokio, tonic or async in {wrong:?}");
}

#[test]
fn the_switch_has_never_heard_of_our_program() {
    for (path, text) in sources("src") {
        if ["switch", "p4runtime", "solver"].contains(&module_of(&path)) && !is_test_file(&path) {
            let code = without_comments(without_tests(&text));
            for name in ["\"classify\"", "\"path_forward\"", "\"switch_config\"", "src_slot"] {
                assert!(!code.contains(name), "{path} knows the P4 name {name}");
            }
        }
    }
}

#[test]
fn unsafe_is_in_the_packet_ring_only_and_hash_maps_of_std_are_absent() {
    for (path, text) in sources("src") {
        let code = without_comments(&text);
        // clippy demands a reason for each block there (`undocumented_unsafe_blocks`).
        let ring = path == UNSAFE_ALLOWED;
        for word in ["unsafe {", "unsafe fn", "collections::HashMap", "collections::HashSet"] {
            let allowed = ring && word == "unsafe {";
            assert!(allowed || !code.contains(word), "{path} contains '{word}'");
        }
    }
}

/// (first line, length) of each function, by its indentation: rustfmt closes a function at the column it opened.
fn functions(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let trimmed = line.trim_start();
        let starts = [
            "fn ",
            "pub fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "async fn ",
            "pub async fn ",
            "const fn ",
            "pub const fn ",
        ]
        .iter()
        .any(|prefix| trimmed.starts_with(prefix));
        match open {
            None if starts
                && !line.trim_end().ends_with(';')
                && !line.trim_end().ends_with('}') =>
            {
                open = Some((number, indent))
            }
            Some((first, column)) if indent == column && trimmed.starts_with('}') => {
                found.push((first + 1, number - first + 1));
                open = None;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn files_and_functions_stay_short() {
    let (mut wrong, mut long, mut all) = (Vec::new(), 0_usize, 0_usize);
    for (path, text) in sources("src").into_iter().chain(sources("tests/it")) {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{path} has {lines} lines, at most {FILE_LINES_MAX}"));
        }
        // A table of cases in a test is long because it is a table.
        let checked = if path.starts_with("src") && !is_test_file(&path) {
            functions(&text)
        } else {
            Vec::new()
        };
        for (line, length) in checked {
            all += 1;
            long += usize::from(length > FUNCTION_LINES_AIM);
            if length > FUNCTION_LINES_MAX {
                wrong.push(format!(
                    "{path}:{line}: a function of {length} lines, at most {FUNCTION_LINES_MAX}"
                ));
            }
        }
    }
    let share = long as f64 / all.max(1) as f64;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        share <= LONG_FUNCTIONS_SHARE,
        "{long} of {all} functions pass {FUNCTION_LINES_AIM} lines"
    );
}

#[test]
fn every_module_opens_with_its_purpose() {
    for (path, text) in sources("src") {
        if is_test_file(&path) {
            continue; // its module's head comment says what is tested
        }
        let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
        assert!(first.is_some_and(|line| line.starts_with("//!")), "{path} has no head comment");
    }
}

/// Words in quotes that `pipeline` uses for something else than a name of the P4 program: kinds of objects in messages, names of modules for
/// serde, architectures.
const NOT_P4_NAMES: &[&str] =
    &["action", "as_list", "counter", "member", "parameter", "register", "table", "tna", "v1model"];

/// Identifiers in double quotes.
fn quoted_names(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = code;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((inside, next)) = after.split_once('"') else { break };
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if inside.starts_with(|c: char| c.is_ascii_lowercase()) && inside.chars().all(word) {
            names.push(inside);
        }
        rest = next;
    }
    names
}

#[test]
fn every_p4_name_in_pipeline_exists_in_the_p4info() {
    let p4info = std::fs::read_to_string(root().join("p4/build/ringpath.p4info.txtpb")).unwrap();
    // Tables, actions, registers and counters are named by alias; keys, parameters and packet metadata by name.
    let exists = |name: &str| {
        [format!("alias: \"{name}\""), format!("name: \"{name}\"")]
            .iter()
            .any(|line| p4info.contains(line.as_str()))
    };
    let (mut wrong, mut found) = (Vec::new(), 0);
    for (path, text) in sources("src") {
        if module_of(&path) != "pipeline" || is_test_file(&path) {
            continue;
        }
        let code = without_comments(without_tests(&text));
        for name in quoted_names(&code) {
            if exists(name) {
                found += 1;
            } else if !NOT_P4_NAMES.contains(&name) {
                wrong.push(format!("{path}: the program has nothing called '{name}'"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(found > 40, "only {found} names found: the search is broken");
}
