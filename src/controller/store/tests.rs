//! Stores: both backs, crashes, versions, locks.

use super::*;
use crate::id::SwitchId;
use tempfile::TempDir;

fn records() -> Vec<Record> {
    vec![
        Record::Epoch(7),
        Record::Labels(Labels::default()),
        Record::Slots(Slots::default()),
        Record::Switch { switch: SwitchId(3), incarnation: 9 },
        Record::Target { generation: 4, policy: "first".into(), goals: BTreeMap::new() },
        Record::Feedback(feedback()),
        Record::Event { number: 2, at: Time(5), event: Event::Synced { switch: SwitchId(1) } },
    ]
}

/// With a reaction on trial and two slow links.
fn feedback() -> Feedback {
    use crate::feedback::{Action, Place, Reaction, Settings};
    use crate::straggler::{Evidence, Suspect};
    use crate::topology::Path;
    let place = |queue, link| {
        let links = vec![crate::id::LinkId(link)];
        Place { path: Path { tree: crate::id::TreeId(0), links }, queue }
    };
    let suspects = vec![Suspect { link: crate::id::LinkId(1), factor: 0.25 }];
    let evidence = Evidence { interval: 4, rate: 1.5e9, suspects, ..Evidence::default() };
    let mut feedback = Feedback::new(Settings::default());
    let (from, to) = (place(2, 1), place(2, 5));
    feedback.begin(Reaction::new(Action::Reroute, from, to, evidence, FlowId(7)));
    feedback
}

fn put(records: Vec<Record>) -> Batch {
    Batch { puts: records, deletes: Vec::new() }
}

/// Both backs, each with what keeps it alive.
fn backs() -> Vec<(Box<dyn Store>, Option<TempDir>)> {
    let dir = tempfile::tempdir().unwrap();
    let redb = RedbStore::open(&dir.path().join("store")).unwrap();
    vec![(Box::new(MemoryStore::new()), None), (Box::new(redb), Some(dir))]
}

#[test]
fn what_is_committed_is_loaded_in_key_order_and_deleted_records_are_gone() {
    for (mut store, _dir) in backs() {
        assert_eq!(store.load().unwrap(), []);
        let mut shuffled = records();
        shuffled.reverse();
        store.commit(&put(shuffled)).unwrap();
        assert_eq!(store.load().unwrap(), records());
        let batch = Batch { puts: vec![Record::Epoch(8)], deletes: vec![Key::Target, Key::Labels] };
        store.commit(&batch).unwrap();
        let keys: Vec<Key> = store.load().unwrap().iter().map(Record::key).collect();
        assert_eq!(
            keys,
            [Key::Epoch, Key::Slots, Key::Switch(SwitchId(3)), Key::Feedback, Key::Event(2)]
        );
        assert_eq!(store.load().unwrap()[0], Record::Epoch(8));
    }
}

#[test]
fn texts_of_keys_sort_as_the_keys_do() {
    let mut keys =
        vec![Key::Event(10), Key::Event(9), Key::Flow(FlowId(100)), Key::Flow(FlowId(20))];
    keys.extend(records().iter().map(Record::key));
    keys.extend([Key::Job(JobId(2)), Key::Job(JobId(11)), Key::Switch(SwitchId(12))]);
    let mut by_text = keys.clone();
    by_text.sort_by_key(|key| key_text(*key));
    keys.sort_unstable();
    assert_eq!(by_text, keys);
}

#[test]
fn a_file_that_was_closed_without_notice_holds_every_acknowledged_batch() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut store = RedbStore::open(&path).unwrap();
    store.commit(&put(records())).unwrap();
    // A crash runs no destructor: copy the file as the disk has it while the store is open.
    let copy = dir.path().join("after-crash");
    std::fs::copy(&path, &copy).unwrap();
    assert_eq!(RedbStore::open(&copy).unwrap().load().unwrap(), records());
}

#[test]
fn a_second_controller_on_one_file_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let first = RedbStore::open(&path).unwrap();
    let error = RedbStore::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }), "{error}");
    assert!(error.to_string().contains("--store"), "{error}");
    drop(first);
    RedbStore::open(&path).unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    std::fs::write(&path, "not a database, but long enough to look at").unwrap();
    assert!(matches!(RedbStore::open(&path), Err(StoreError::Open { .. })));
}

#[test]
fn a_record_of_another_version_is_refused_whatever_its_shape() {
    let bytes = br#"{"version":2,"record":{"unheard-of":[1,2,3]}}"#;
    assert!(matches!(decode("k", bytes), Err(StoreError::Version { found: 2, .. })));
    assert!(matches!(decode("k", b"{"), Err(StoreError::Record { .. })));
    let bytes = br#"{"version":1,"record":{"unheard-of":[1,2,3]}}"#;
    assert!(matches!(decode("k", bytes), Err(StoreError::Record { .. })));
}
