//! The rows as bytes, and bytes that are near them: whatever a peer sends, the server answers and goes on.

use super::{E, ID, InProcess, NOW, Sent, rows};
use crate::model::cases;
use crate::p4runtime_text as t;
use proptest::prelude::*;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::rpc::Rpc;
use ringpath::p4runtime::server::feed::{Client, feed, record_of};
use ringpath::p4runtime::server::{Profile, Server, StreamId};
use ringpath::switch::Switch;
use std::sync::LazyLock;

const CLIENT: Client = Client { stream: StreamId(1), election: ID as u128 };

/// Every update and pattern of the table as a record.
fn records() -> Vec<Vec<u8>> {
    let write = |update: &str| match t::write(ID, &format!("updates {{ {update} }}")) {
        Rpc::Write(request) => record_of(0, &request),
        _ => None,
    };
    let read = |pattern: &str| match t::read(pattern) {
        Rpc::Read(request) => record_of(1, &request),
        _ => None,
    };
    let mut records = Vec::new();
    for row in rows().iter().filter(|row| row.program.name == 'E') {
        records.extend(row.before.iter().filter_map(|update| write(update)));
        match &row.sent {
            Sent::Write(update) => records.extend(write(update)),
            Sent::Read(pattern) => records.extend(read(pattern)),
            Sent::Kept(update, pattern) | Sent::Shows(update, pattern) => {
                records.extend(write(update));
                records.extend(read(pattern));
            }
            Sent::Message(text) => records.extend(record_of(5, &t::stream(text))),
            Sent::Arbitration(steps) => {
                let (_, text) = &steps[steps.len() - 1];
                let message = if text == "close" {
                    String::new()
                } else {
                    format!("arbitration {{ {text} }}")
                };
                records
                    .extend(record_of(if text == "close" { 7 } else { 6 }, &t::stream(&message)));
            }
            _ => {}
        }
    }
    records
}

fn ready(profile: Profile) -> Server<Switch> {
    let mut server = InProcess::new(profile).server;
    server.call(NOW, t::pipeline(ID, Action::VerifyAndCommit, Some(E.config()))).unwrap();
    server
}

#[test]
fn every_row_can_be_fed_as_bytes() {
    let records = records();
    for profile in [Profile::Spec, Profile::Bmv2] {
        let mut server = ready(profile);
        assert_eq!(feed(&mut server, CLIENT, NOW, &records.concat()), records.len());
        let cut = records.concat();
        assert!(feed(&mut server, CLIENT, NOW, &cut[..cut.len() - 1]) < records.len());
    }
}

/// A corpus for `fuzz/`: each record alone, and all of them. Where to is said by `RINGPATH_SEEDS`; without it, nothing is done.
#[test]
fn writes_seeds() {
    let Ok(folder) = std::env::var("RINGPATH_SEEDS") else { return };
    std::fs::create_dir_all(&folder).unwrap();
    let records = records();
    for (number, record) in records.iter().enumerate() {
        let bytes = [&[0], record.as_slice()].concat();
        std::fs::write(format!("{folder}/record-{number}"), bytes).unwrap();
    }
    std::fs::write(format!("{folder}/all"), [&[1], records.concat().as_slice()].concat()).unwrap();
}

static RECORDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(records);

/// A session of records, some with bytes changed, cut or repeated.
fn session() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let record = (any::<prop::sample::Index>(), prop::collection::vec(change, 0..4));
    prop::collection::vec(record, 1..40).prop_map(|picked| {
        let mut bytes = Vec::new();
        for (at, changes) in picked {
            let mut record = at.get(&RECORDS).clone();
            // The first bytes say the kind and the length; a wrong length ends the session.
            let body = record.len() - 3;
            for (place, byte) in changes.into_iter().filter(|_| body > 0) {
                record[3 + place.index(body)] = byte;
            }
            bytes.extend(record);
        }
        bytes
    })
}

proptest! {
    #![proptest_config(cases(64, 1))]

    #[test]
    fn no_bytes_make_the_server_panic(bytes in session(), mimic: bool) {
        let mut server = ready(if mimic { Profile::Bmv2 } else { Profile::Spec });
        feed(&mut server, CLIENT, NOW, &bytes);
        // Whatever happened, it still answers.
        prop_assert!(server.call(NOW, Rpc::Capabilities(Default::default())).is_ok());
    }

    #[test]
    fn bytes_at_random_make_no_panic_either(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut server = ready(Profile::Spec);
        feed(&mut server, CLIENT, NOW, &bytes);
    }
}
