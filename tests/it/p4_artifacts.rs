//! The committed pipeline (`p4/build`) belongs to the committed sources, and `p4/README.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use ringpath::p4runtime::p4info::{Index, Names};
use sha2::{Digest, Sha256};

fn p4_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("p4")
}

fn p4_text(file: &str) -> String {
    let path = p4_dir().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `build/SHA256SUMS` as file → digest.
fn listed_sums() -> BTreeMap<String, String> {
    p4_text("build/SHA256SUMS")
        .lines()
        .map(|line| {
            let (sum, file) = line.split_once("  ").expect("digest, two spaces, file");
            (file.to_owned(), sum.to_owned())
        })
        .collect()
}

#[test]
fn every_p4_source_and_output_has_the_digest_it_was_compiled_with() {
    for (file, sum) in listed_sums() {
        let bytes = fs::read(p4_dir().join(&file)).expect("a listed file exists");
        let actual: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(actual, sum, "{file} has changed since the last `p4/check-artifacts --update`");
    }
}

#[test]
fn no_p4_source_is_missing_from_the_digests() {
    let listed = listed_sums();
    for folder in ["common", "v1model", "tna", "samples"] {
        for entry in fs::read_dir(p4_dir().join(folder)).expect("the folder exists") {
            let name = entry.expect("readable").file_name();
            let file = format!("{folder}/{}", name.to_string_lossy());
            assert!(
                listed.contains_key(&file),
                "{file} is not in build/SHA256SUMS: run `p4/check-artifacts --update`"
            );
        }
    }
}

#[test]
fn the_contract_page_names_every_object_and_field_of_the_p4info() {
    let page = p4_text("README.md");
    let words: BTreeSet<&str> =
        page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let p4info = p4_text("build/ringpath.p4info.txtpb");
    let mut seen = 0;
    for line in p4info.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else {
            continue;
        };
        if key == "alias" || (key == "name" && !value.contains('.')) {
            let name = value.trim_matches('"');
            assert!(words.contains(name), "p4/README.md does not mention `{name}`");
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} names found in the p4info: is it ours?");
}

#[test]
fn the_compiled_programs_hold_no_absolute_path() {
    let programs = [
        ("ringpath", "v1model/main.p4"),
        ("router", "samples/router.p4"),
        ("entities", "samples/entities.p4"),
    ];
    for (name, source) in programs {
        let json = p4_text(&format!("build/{name}.json"));
        for line in json.lines() {
            let line = line.trim();
            assert!(
                !(line.contains("\"filename\" : \"/") || line.contains("\"program\" : \"/")),
                "{line}"
            );
        }
        assert!(json.contains(&format!("\"program\" : \"{source}\"")), "{name}");
    }
}

/// The program for v1model and the program for Tofino.
fn both() -> [Index; 2] {
    ["ringpath", "ringpath-tna"]
        .map(|name| Index::from_text(&p4_text(&format!("build/{name}.p4info.txtpb"))).unwrap())
}

/// Full name and alias of each, sorted; the compiler for Tofino numbers externs as it likes.
fn names<'a>(objects: impl Iterator<Item = &'a Names>) -> Vec<(String, String)> {
    let mut names: Vec<_> =
        objects.map(|names| (names.name.clone(), names.alias.clone())).collect();
    names.sort();
    names
}

/// `left` and `right` of the same name side by side, in the order of `left`.
fn pairs<'a, T>(left: &'a [T], right: &'a [T], name: impl Fn(&T) -> &Names) -> Vec<(&'a T, &'a T)> {
    assert_eq!(names(left.iter().map(&name)), names(right.iter().map(&name)));
    let other = |one: &T| right.iter().find(|other| name(other).name == name(one).name).unwrap();
    left.iter().map(|one| (one, other(one))).collect()
}

#[test]
fn both_programs_have_the_same_tables_keys_actions_and_parameters_with_the_same_ids() {
    let [v1model, tofino] = both();
    let tables = pairs(v1model.tables(), tofino.tables(), |table| &table.names);
    assert_eq!(tables.len(), 8);
    for (one, other) in tables {
        let name = &one.names.name;
        assert_eq!(one.names, other.names);
        assert_eq!(one.fields, other.fields, "key of {name}");
        let actions = |table: &ringpath::p4runtime::p4info::Table| {
            let mut actions: Vec<String> =
                table.actions.iter().map(|used| format!("{used:?}")).collect();
            actions.sort();
            (actions, table.const_default, table.profile.is_some(), table.counter.is_some())
        };
        assert_eq!(actions(one), actions(other), "actions of {name}");
        // A table without a key holds its default entry alone, whatever size the compilers note.
        assert!(one.fields.is_empty() || one.size == other.size, "size of {name}");
    }
    let actions = pairs(v1model.actions(), tofino.actions(), |action| &action.names);
    assert_eq!(actions.len(), 11);
    for (one, other) in actions {
        assert_eq!(one, other);
    }
    let headers = pairs(v1model.headers(), tofino.headers(), |header| &header.names);
    assert_eq!(headers.len(), 2);
    for (one, other) in headers {
        assert_eq!(one, other);
    }
}

#[test]
fn both_programs_have_the_same_names_sizes_and_cells_of_externs() {
    let [v1model, tofino] = both();
    let registers = pairs(v1model.registers(), tofino.registers(), |register| &register.names);
    assert_eq!(registers.len(), 21);
    for (one, other) in registers {
        assert_eq!((&one.cell, one.size), (&other.cell, other.size), "{}", one.names.name);
    }
    let counters = pairs(v1model.counters(), tofino.counters(), |counter| &counter.names);
    assert_eq!(counters.len(), 2);
    for (one, other) in counters {
        assert_eq!((one.unit, one.size), (other.unit, other.size), "{}", one.names.name);
    }
    let direct = pairs(v1model.direct_counters(), tofino.direct_counters(), |one| &one.names);
    assert_eq!(direct.len(), 2);
    for (one, other) in direct {
        assert_eq!((one.unit, one.table), (other.unit, other.table), "{}", one.names.name);
    }
    let profiles = pairs(v1model.profiles(), tofino.profiles(), |profile| &profile.names);
    assert_eq!(profiles.len(), 1);
    for (one, other) in profiles {
        let plain = |profile: &ringpath::p4runtime::p4info::ActionProfile| {
            let size = (profile.size, profile.max_group_size);
            (profile.tables.clone(), profile.with_selector, size)
        };
        assert_eq!(plain(one), plain(other));
    }
}
