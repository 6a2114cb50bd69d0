use super::*;
use crate::evaluate::Name;
use serde_json::json;

fn cells(count: usize) -> Vec<Cell> {
    let cell = |i: usize| Cell::new(format!("cell {i}"), &json!({ "i": i })).unwrap();
    (0..count).map(cell).collect()
}

fn header(count: usize) -> Header {
    Header::new(&Settings::new(Name::Paper), &cells(count))
}

fn measured(value: u64) -> Measured {
    Measured { result: json!(value), times: Vec::new() }
}

fn fill(dir: &Path, count: usize, shard: Shard, only: &[usize]) {
    let (mut ledger, _) = Ledger::open(dir, &header(count), &cells(count), shard).unwrap();
    for &index in only {
        ledger.add(index, &cells(count)[index], &measured(index as u64)).unwrap();
    }
}

#[test]
fn a_cut_line_is_taken_off_and_what_stands_before_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3, Shard::WHOLE, &[2, 0]);
    let path = dir.path().join("paper.jsonl");
    let whole = std::fs::read(&path).unwrap();
    for cut in 1..8 {
        std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let (_, done) = Ledger::open(dir.path(), &header(3), &cells(3), Shard::WHOLE).unwrap();
        assert_eq!(done.iter().map(|line| line.index).collect::<Vec<_>>(), [2], "cut by {cut}");
    }
    fill(dir.path(), 3, Shard::WHOLE, &[0]);
    assert_eq!(std::fs::read(&path).unwrap(), whole, "the cell is simply done again");
}

#[test]
fn a_file_that_was_cut_in_its_header_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("paper.jsonl"), b"{\"settings\":").unwrap();
    fill(dir.path(), 1, Shard::WHOLE, &[0]);
    assert_eq!(merge(&[dir.path().to_owned()], &header(1), &cells(1)).unwrap().len(), 1);
}

#[test]
fn results_of_another_grid_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3, Shard::WHOLE, &[0]);
    let error = Ledger::open(dir.path(), &header(4), &cells(4), Shard::WHOLE).unwrap_err();
    assert!(matches!(error, LedgerError::Mixed { .. }), "{error}");
    let other = Settings { seeds: Some(3), ..Settings::new(Name::Paper) };
    let error = merge(&[dir.path().to_owned()], &Header::new(&other, &cells(3)), &cells(3));
    assert!(matches!(error, Err(LedgerError::Mixed { .. })), "{error:?}");
}

#[test]
fn shards_join_in_the_order_of_the_cells() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(a.path(), 4, Shard { index: 0, count: 2 }, &[2, 0]);
    fill(b.path(), 4, Shard { index: 1, count: 2 }, &[3, 1]);
    let dirs = [b.path().to_owned(), a.path().to_owned()];
    let lines = merge(&dirs, &header(4), &cells(4)).unwrap();
    assert_eq!(lines.iter().map(|line| line.result.clone()).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn gaps_and_duplicates_are_named() {
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fill(a.path(), 4, Shard { index: 0, count: 2 }, &[0, 2]);
    fill(b.path(), 4, Shard { index: 1, count: 2 }, &[3]);
    let dirs = [a.path().to_owned(), b.path().to_owned()];
    let gap = merge(&dirs, &header(4), &cells(4)).unwrap_err().to_string();
    assert!(gap.contains("1 of 4") && gap.contains("'cell 1' (shard 1 of a run in 2)"), "{gap}");
    fill(b.path(), 4, Shard { index: 1, count: 2 }, &[1, 2]);
    let twice = merge(&dirs, &header(4), &cells(4)).unwrap_err().to_string();
    assert!(twice.contains("'cell 2'") && twice.contains("paper-0-of-2.jsonl:3"), "{twice}");
    let empty = tempfile::tempdir().unwrap();
    let nothing = super::header(&[empty.path().to_owned()]).unwrap_err();
    assert!(matches!(nothing, LedgerError::Nothing { .. }), "{nothing}");
}

#[test]
fn a_line_that_was_edited_is_named_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 3, Shard::WHOLE, &[0, 1]);
    let path = dir.path().join("paper.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"index\":0,", "\"index\":0;")).unwrap();
    let error = Ledger::open(dir.path(), &header(3), &cells(3), Shard::WHOLE).unwrap_err();
    assert!(error.to_string().contains("paper.jsonl:2"), "{error}");
    std::fs::write(&path, text.replace("\"cell 1\"", "\"cell 7\"")).unwrap();
    let error = Ledger::open(dir.path(), &header(3), &cells(3), Shard::WHOLE).unwrap_err();
    assert!(matches!(error, LedgerError::Unknown { line: 3, .. }), "{error}");
}

#[test]
fn a_file_that_is_not_ours_keeps_its_bytes_even_without_a_whole_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("paper.jsonl");
    for theirs in ["notes", "\n\nnotes", "{\"settings\":{\"preset\":\"load\""] {
        std::fs::write(&path, theirs).unwrap();
        let error = Ledger::open(dir.path(), &header(1), &cells(1), Shard::WHOLE).unwrap_err();
        assert!(matches!(error, LedgerError::Header { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
    }
}

#[test]
fn a_cell_twice_in_one_file_is_refused_and_empty_lines_count_as_lines() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2, Shard::WHOLE, &[0]);
    let path = dir.path().join("paper.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, line) = text.split_once('\n').unwrap();
    std::fs::write(&path, format!("{head}\n\n{line}\n{line}")).unwrap();
    let error = Ledger::open(dir.path(), &header(2), &cells(2), Shard::WHOLE).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LedgerError::Twice { .. }), "{text}");
    assert!(text.contains("paper.jsonl:3") && text.contains("paper.jsonl:5"), "{text}");
}

#[test]
fn a_directory_serves_one_preset_and_no_merge_into_itself() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), 2, Shard { index: 0, count: 2 }, &[0]);
    fill(dir.path(), 2, Shard { index: 1, count: 2 }, &[1]);
    let load = Header::new(&Settings::new(Name::Load), &cells(2));
    let error = Ledger::open(dir.path(), &load, &cells(2), Shard::WHOLE).unwrap_err();
    assert!(matches!(error, LedgerError::Foreign { .. }), "{error}");
    assert!(!dir.path().join("load.jsonl").exists());
    let dirs = [dir.path().to_owned()];
    let error = apart(&dir.path().join("."), &dirs, &header(2)).unwrap_err();
    assert!(matches!(error, LedgerError::Source { .. }), "{error}");
    apart(&dir.path().join("joined"), &dirs, &header(2)).unwrap();
}

#[test]
fn results_are_the_same_wherever_the_fabric_file_lies_and_others_with_other_constants() {
    let at =
        |path: &str| Settings { topology: Some(path.to_owned()), ..Settings::new(Name::Scale) };
    assert_eq!(Header::new(&at("/a/topo.csv"), &cells(2)), Header::new(&at("b.csv"), &cells(2)));
    let settings = Settings::new(Name::Ablation);
    let hash = |constants| Header::hash("1", &settings, &cells(2), &constants);
    assert_ne!(hash(json!([1])), hash(json!([2])));
    let own =
        Header::hash(env!("CARGO_PKG_VERSION"), &settings, &cells(2), &constants(Name::Ablation));
    assert_eq!(Header::new(&settings, &cells(2)).specification, own);
}
