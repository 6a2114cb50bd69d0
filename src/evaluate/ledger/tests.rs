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
    let mut ledger = Ledger::open(dir, &header(count), &cells(count), shard).unwrap();
    for &index in only {
        ledger.add(index, &cells(count)[index], measured(index as u64)).unwrap();
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
        let ledger = Ledger::open(dir.path(), &header(3), &cells(3), Shard::WHOLE).unwrap();
        assert_eq!(ledger.done().keys().copied().collect::<Vec<_>>(), [2], "cut by {cut}");
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
