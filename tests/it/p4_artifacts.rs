//! The committed pipeline (`p4/build`) belongs to the committed sources, and `p4/README.md` describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

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
    for folder in ["common", "v1model", "samples"] {
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
