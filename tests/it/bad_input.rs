//! Files, words and flags that are wrong: each case reaches another error or another element, names its place and says what
//! to do. One table of at least sixty cases per family.

mod mutations;
mod p4info;
mod program;
mod scenario;
mod stf;
mod topology;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Cases that a family must have.
const CASES_MIN: usize = 60;
/// Longest message; what was written is quoted, but not without end.
const MESSAGE_MAX: usize = 1_000;

/// One wrong input and what came of it.
pub struct Case {
    /// The variants along the chain of errors, as in `Fabric/Topology/ZeroRate`.
    pub kind: String,
    /// The variants that the case is for.
    pub wanted: &'static str,
    /// The message.
    pub shown: String,
    /// How it must begin: file and line, or another place; may be empty where an element names it.
    pub place: String,
    /// What it must contain: the element, and what to do.
    pub part: &'static str,
}

/// Words of which a message has at least one, so that it says what to do or what would be right.
const REMEDIES: [&str; 43] = [
    "write",
    "use ",
    "must",
    "give",
    "add ",
    "remove",
    "choose",
    "did you mean",
    "known",
    "keep",
    "correct",
    "between",
    "at most",
    "at least",
    "raise",
    "needs",
    "start with",
    "unique",
    "start at 1",
    "end it with",
    "expected",
    "define",
    "recompile",
    "rename",
    "split",
    "pad ",
    "make",
    "is this the right file",
    "declare",
    "it has",
    "widths",
    "create",
    "are not negative",
    "cabled to",
    "move ",
    "put ",
    "supported",
    "leave ",
    "break ",
    "name two",
    "connect each",
    "redirect",
    "try '--help'",
];

/// Demands of a family: enough cases, all different, each with place, element and remedy.
pub fn check(family: &str, cases: &[Case]) {
    let mut wrong = Vec::new();
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (number, case) in cases.iter().enumerate() {
        let Case { kind, wanted, shown, place, part } = case;
        if kind != wanted {
            wrong.push(format!("{number}: {kind}, wanted {wanted}: {shown}"));
        }
        if let Some(other) = seen.insert((kind, part), number) {
            wrong.push(format!("cases {other} and {number} reach the same: {kind}, {part}"));
        }
        if !shown.starts_with(place.as_str()) {
            wrong.push(format!("{number} {kind}: wanted to begin with '{place}': {shown}"));
        }
        if part.is_empty() || !shown.contains(part) {
            wrong.push(format!("{number} {kind}: wanted '{part}' in: {shown}"));
        }
        if !REMEDIES.iter().any(|word| shown.contains(word)) {
            wrong.push(format!("{number} {kind}: says nothing to do: {shown}"));
        }
        if shown.len() > MESSAGE_MAX {
            wrong.push(format!("{number} {kind}: {} bytes: {:.200}", shown.len(), shown));
        }
    }
    println!("{family}: {} cases, {} kinds of error", cases.len(), kinds(cases).len());
    assert!(wrong.is_empty(), "{family}, {} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() >= CASES_MIN, "{family} has {} cases", cases.len());
}

fn kinds(cases: &[Case]) -> BTreeSet<&str> {
    cases.iter().map(|case| case.kind.as_str()).collect()
}

/// Demands that every variant of an error has a case, but for those that no input can reach.
pub fn check_variants(source: &str, name: &str, cases: &[Case], unreachable: &[&str]) {
    let reached: BTreeSet<&str> = cases
        .iter()
        .flat_map(|case| case.kind.split('/'))
        .chain(unreachable.iter().copied())
        .collect();
    let missing: Vec<String> = declared(source, name)
        .into_iter()
        .filter(|variant| !reached.contains(variant.as_str()))
        .collect();
    assert!(missing.is_empty(), "variants of {name} without a case: {missing:?}");
}

/// Variant names along the chain of problems: `Fabric/Topology/ZeroRate`.
pub fn variants(problem: &dyn std::fmt::Debug) -> String {
    let mut text = format!("{problem:?}");
    let mut names = Vec::new();
    loop {
        let name: String = text.chars().take_while(char::is_ascii_alphanumeric).collect();
        let rest = text[name.len()..].to_owned();
        if !name.starts_with(char::is_uppercase) {
            return names.join("/");
        }
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
pub fn declared(source: &str, name: &str) -> Vec<String> {
    let body = source.split_once(&format!("pub enum {name} {{\n")).unwrap().1;
    let body = body.split_once("\n}\n").unwrap().0;
    let variant = |line: &str| {
        let line = line.strip_prefix("    ").filter(|line| line.starts_with(char::is_uppercase))?;
        Some(line.chars().take_while(char::is_ascii_alphanumeric).collect())
    };
    body.lines().filter_map(variant).collect()
}

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topologies")
}
