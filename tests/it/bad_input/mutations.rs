//! Files that nobody wrote on purpose: what is read is whole, what is not is refused with its name, and nothing panics.

use super::folder;
use super::scenario::GOOD;
use proptest::prelude::*;
use ringpath::p4runtime::matches::Pattern;
use ringpath::p4runtime::p4info::Index;
use ringpath::switch::stf;
use ringpath::topology::import::{Lingjun, P4Utils, lingjun, p4utils};
use ringpath::workload::scenario::parse;
use std::path::{Path, PathBuf};

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
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(300)))]

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

    #[test]
    fn mutated_stf_cases_are_run_or_refused_with_their_line(
        edits in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0_usize..12, proptest::sample::select(WORDS.to_vec())), 1..4),
    ) {
        let mut text: Vec<char> = super::stf::GOOD.chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, piece.chars());
        }
        let text: String = text.into_iter().collect();
        let outcome = stf::parse(&text).and_then(|lines| stf::run(super::stf::PROGRAM, &lines));
        if let Err(error) = outcome {
            prop_assert!(error.to_string().starts_with("line "), "{error}");
        }
    }

    #[test]
    fn mutated_p4info_and_any_match_are_read_or_refused(
        at in any::<prop::sample::Index>(), cut in 0_usize..20,
        piece in proptest::sample::select(WORDS.to_vec()),
        word in "[a-z.]{0,6}[=]?[0-9a-fx:./&*?-]{0,12}",
    ) {
        let mut text: Vec<char> = super::p4info::PROGRAM.chars().collect();
        let at = at.index(text.len());
        let end = (at + cut).min(text.len());
        text.splice(at..end, piece.chars());
        let text: String = text.into_iter().collect();
        if let Ok(index) = Index::from_text(&text) {
            for table in index.tables() {
                for name in ["", "hdr.e=", "l=", "t=", "r=", "o=", "port="] {
                    let _ = Pattern::parse(table, &[format!("{name}{word}")]);
                }
            }
        }
    }
}

/// Pieces of the two languages and what does not belong there.
const WORDS: [&str; 20] = [
    "*",
    "0x",
    "$",
    ":",
    "(",
    ")",
    ",",
    "/99",
    "->",
    "-1",
    "511",
    "512",
    "99999999999999999999",
    "\n",
    " ",
    "{",
    "}",
    "\u{0}",
    "é",
    "0b2",
];
