//! docs/p4runtime-conformance.md from the rows.

use super::{Row, Sent, bmv2, rows};
use ringpath::p4runtime::server::Profile;
use std::fmt::Write as _;

/// Sections of the specification (P4Runtime 1.5) that rows name.
const SECTIONS: &[(&str, &str)] = &[
    ("5", "Client Arbitration and Controller Replication"),
    ("5.2", "Role Config"),
    ("5.3", "Rules for Handling MasterArbitrationUpdate Messages Received from Controllers"),
    ("5.4", "Client Arbitration Notifications"),
    ("8.1", "Default-valued Fields"),
    ("8.2", "Read-Write Symmetry"),
    ("8.3", "Bytestrings"),
    ("9.1", "TableEntry"),
    ("9.1.1", "Match Format"),
    ("9.1.2", "Action Specification"),
    ("9.1.3", "Default Entry"),
    ("9.1.4", "Constant Tables"),
    ("9.1.5", "Preinitialized tables"),
    ("9.1.6", "Wildcard Reads"),
    ("9.1.7", "Direct Resources"),
    ("9.1.8", "Idle-timeout"),
    ("9.2.1", "Member Programming"),
    ("9.2.2", "Group Programming"),
    ("9.2.2.1", "Rules on Setting max_size"),
    ("9.2.3", "One Shot Action Selector Programming"),
    ("9.2.3.1", "Constraints on action selector programming"),
    ("9.3.1", "DirectCounterEntry"),
    ("9.3.2", "CounterEntry"),
    ("9.4", "MeterEntry & DirectMeterEntry"),
    ("9.4.1", "DirectMeterEntry"),
    ("9.4.2", "MeterEntry"),
    ("9.4.3", "MeterCounterData"),
    ("9.5", "PacketReplicationEngineEntry"),
    ("9.5.1", "MulticastGroupEntry"),
    ("9.5.1.1", "Valid Values for multicast_group_id"),
    ("9.5.2", "CloneSessionEntry"),
    ("9.5.2.1", "Valid Values for session_id"),
    ("9.6", "ValueSetEntry"),
    ("9.7", "RegisterEntry"),
    ("9.8", "DigestEntry"),
    ("9.9", "ExternEntry"),
    ("12", "Write RPC"),
    ("12.1", "Batching and Ordering of Updates"),
    ("12.2", "Batch Atomicity"),
    ("12.3", "Error Reporting"),
    ("13", "Read RPC"),
    ("13.2", "Wildcard Reads"),
    ("13.3", "Batch Processing"),
    ("14", "SetForwardingPipelineConfig RPC"),
    ("15", "GetForwardingPipelineConfig RPC"),
    ("16.1", "Packet I/O"),
    ("16.2.1", "Unset Election ID"),
    ("16.5", "Architecture-Specific Notifications"),
    ("16.6", "Stream Error Reporting"),
    ("17", "Capabilities RPC"),
];

const HEAD: &str = "# P4Runtime conformance

Made from the rows of `tests/it/conformance`, which `cargo test` sends to the embedded switch; do not edit, write
`RINGPATH_BLESS=1 cargo test --test it conformance_page`. Sections are those of the P4Runtime specification 1.5. *Answer* is what the
specification asks for and the server gives; *mimic* is what `--mimic-bmv2` gives where that differs; *BMv2* is what a
simple_switch_grpc gave where it differs from the answer (`tests/data/conformance/bmv2.tsv` holds all it gave; rows of arbitration, streams
and calls without a program were not sent to it). `--mimic-bmv2` copies what controllers run into, not everything.
A Write row sends one update, a Batch row a whole WriteRequest, whose outcomes are listed in order; `call:` marks a call that fails as a
whole. A Kept row writes an entity and must read back exactly it; a Shows row writes and then reads. Arbitration rows say what each stream is
told, in that order.
";

pub fn title(section: &str) -> Option<&'static str> {
    SECTIONS.iter().find(|(number, _)| *number == section).map(|(_, title)| *title)
}

fn kind(row: &Row) -> String {
    let update = |text: &str| {
        let kind = ["INSERT", "MODIFY", "DELETE"]
            .into_iter()
            .find(|k| text.starts_with(&format!("type: {k}")));
        format!("Write {}", kind.unwrap_or("")).trim_end().to_owned()
    };
    match &row.sent {
        Sent::Write(text) => update(text),
        Sent::Batch(_) => "Batch".into(),
        Sent::Read(_) => "Read".into(),
        Sent::Kept(..) => "Kept".into(),
        Sent::Shows(..) => "Shows".into(),
        Sent::Set(..) => "Set".into(),
        Sent::Call(_) | Sent::Bare(_) => "Call".into(),
        Sent::Message(_) => "Stream".into(),
        Sent::Arbitration(_) => "Arbitration".into(),
    }
}

/// A cell: what differs from the answer, short enough for a table.
fn cell(text: &str, answer: &str) -> String {
    if text == answer {
        return String::new();
    }
    if text.starts_with('[') { "other fields".to_owned() } else { text.replace('|', "/") }
}

fn page() -> String {
    let (rows, measured) = (rows(), bmv2::measured());
    let differ =
        rows.iter().filter(|row| row.want(Profile::Bmv2) != row.want(Profile::Spec)).count();
    let asked = rows.iter().filter_map(|row| Some((row, measured.get(&bmv2::name(row))?)));
    let (mut sent, mut other, mut unlike) = (0, 0, 0);
    for (row, got) in asked {
        sent += 1;
        other += usize::from(*got != row.want(Profile::Spec));
        unlike += usize::from(*got != row.want(Profile::Bmv2));
    }
    let mut page = format!(
        "{HEAD}\n{} rows. `--mimic-bmv2` answers {differ} of them in another way. Of {sent} rows that were sent to simple_switch_grpc, it answers {} as the specification asks, and {} as `--mimic-bmv2` does.\n",
        rows.len(),
        sent - other,
        sent - unlike
    );
    for (section, title) in SECTIONS {
        let here: Vec<_> = rows.iter().filter(|row| row.section == *section).collect();
        if here.is_empty() {
            continue;
        }
        let _ = write!(
            page,
            "\n## {section} {title}\n\n| what is sent | as | answer | mimic | BMv2 |\n|---|---|---|---|---|\n"
        );
        for row in here {
            let answer = row.want(Profile::Spec);
            let mimic = cell(&row.want(Profile::Bmv2), &answer);
            let real =
                measured.get(&bmv2::name(row)).map_or("–".to_owned(), |got| cell(got, &answer));
            let answer = answer.replace('|', "/");
            let _ =
                writeln!(page, "| {} | {} | {answer} | {mimic} | {real} |", row.what, kind(row));
        }
    }
    page
}

#[test]
fn the_conformance_page_shows_the_rows() {
    let path = crate::rig::repo("docs/p4runtime-conformance.md");
    let page = page();
    if std::env::var_os("RINGPATH_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == page,
        "docs/p4runtime-conformance.md is stale: RINGPATH_BLESS=1 cargo test --test it conformance_page"
    );
}
