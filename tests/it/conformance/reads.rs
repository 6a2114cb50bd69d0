//! Sections 9.1.6 and 13: wildcards, filters, batches of patterns.

use super::tables::{exact, forward, kinds, watched};
use super::{Code, Row, Rpc, Sent, insert, read};

fn raw(text: &str) -> Rpc {
    Rpc::Read(ringpath::p4runtime::text::parse("p4.v1.ReadRequest", text).unwrap())
}

#[rustfmt::skip] // one row a line reads as a table
pub fn rows() -> Vec<Row> {
    use Code::*;
    let one = |port: &str, rest: &str| insert(&exact(port, &format!("{} {rest}", watched(port))));
    let two = [one("'\\x1'", ""), one("'\\x2'", "metadata: 'mine' controller_metadata: 8")];
    let mixed = [insert(&kinds("", &forward("'\\x1'"))), insert(&kinds("match { field_id: 5 optional { value: '\\x1' } }", &forward("'\\x1'")).replace("priority: 1", "priority: 2"))];
    let table = |rest: &str| format!("table_entry {{ table_id: 0x02000001 {rest} }}");
    let key = "match { field_id: 1 exact { value: '\\x2' } }";
    let after = |rows: Vec<Row>, before: &[String]| -> Vec<Row> { rows.into_iter().map(|row| row.after(before)).collect() };
    let mut rows = after(vec![
        read("9.1.6", "all tables, entries of the program included", "table_entry { }", "OK, 7 entities"),
        read("9.1.6", "table 0 with a priority", "table_entry { priority: 1 }", "INVALID_ARGUMENT"),
        read("9.1.6", "table 0 with metadata", "table_entry { metadata: 'mine' }", "INVALID_ARGUMENT"),
        read("9.1.6", "table 0 with controller_metadata", "table_entry { controller_metadata: 8 }", "INVALID_ARGUMENT"),
        read("9.1.6", "table 0 with an action", "table_entry { action { action { action_id: 0x01000003 } } }", "INVALID_ARGUMENT"),
        read("9.1.6", "table 0 with a key", &format!("table_entry {{ {key} }}"), "INVALID_ARGUMENT"),
        read("9.1.6", "a table", &table(""), "OK, 2 entities"),
        read("9.1.6", "a table that does not exist", "table_entry { table_id: 0x020000ff }", "INVALID_ARGUMENT"),
        read("9.1.6", "one entry", &table(key), "OK, 1 entity"),
        read("9.1.6", "one entry by leading zeros", &table("match { field_id: 1 exact { value: '\\0\\x2' } }"), "OK, 1 entity"),
        read("9.1.6", "an entry that is not there", &table("match { field_id: 1 exact { value: '\\x3' } }"), "OK, 0 entities"),
        read("9.1.6", "a key too wide", &table("match { field_id: 1 exact { value: '\\x3\\0' } }"), "OUT_OF_RANGE").pi("INVALID_ARGUMENT"),
        read("9.1.6", "a key of another kind", &table("match { field_id: 1 ternary { value: '\\x3' mask: '\\x3' } }"), "INVALID_ARGUMENT"),
        read("9.1.6", "the default entry", &table("is_default_action: true"), "OK, 1 entity"),
        read("9.1.6", "the default entry with a key", &table(&format!("is_default_action: true {key}")), "INVALID_ARGUMENT"),
        read("9.1.6", "the default entry if it has an action that it has not", &table("is_default_action: true action { action { action_id: 0x01000002 } }"), "OK, 0 entities"),
        read("9.1.6", "entries with an action", &table("action { action { action_id: 0x01000003 } }"), "OK, 2 entities"),
        read("9.1.6", "entries with another action", &table("action { action { action_id: 0x01000001 } }"), "OK, 0 entities"),
        read("9.1.6", "entries with an action of other tables", "table_entry { table_id: 0x02000002 action { action { action_id: 0x01000003 } } }", "INVALID_ARGUMENT"),
        read("9.1.6", "entries with a member", "table_entry { table_id: 0x02000009 action { action_profile_member_id: 1 } }", "INVALID_ARGUMENT"),
        read("9.1.6", "entries with metadata", &table("metadata: 'mine'"), "OK, 1 entity"),
        read("9.1.6", "entries with other metadata", &table("metadata: 'yours'"), "OK, 0 entities"),
        read("9.1.6", "entries with controller_metadata", &table("controller_metadata: 8"), "OK, 1 entity"),
        read("9.1.6", "entries with other controller_metadata", &table("controller_metadata: 9"), "OK, 0 entities"),
        read("9.1.6", "a table twice in one Read gives its entries twice", "table_entry { table_id: 0x02000001 } } entities { table_entry { table_id: 0x02000001 }", "OK, 4 entities"),
        read("9.1.8", "ages of a table that does not age", "table_entry { table_id: 0x02000002 time_since_last_hit { } }", "INVALID_ARGUMENT"),
        read("9.1.8", "the age of a default entry", &table("is_default_action: true time_since_last_hit { }"), "INVALID_ARGUMENT"),
        read("9.1.7", "counts of a table without direct counter", "table_entry { table_id: 0x02000002 counter_data { } }", "INVALID_ARGUMENT"),
        read("9.1.7", "rates of a table without direct meter", "table_entry { table_id: 0x02000002 meter_config { } }", "INVALID_ARGUMENT"),
        read("9.1.7", "counts of all tables, where there are any", "table_entry { counter_data { } }", "OK, 7 entities"),
    ], &two);
    rows.extend(after(vec![
        read("9.1.6", "entries with a priority", "table_entry { table_id: 0x02000002 priority: 2 }", "OK, 1 entity"),
        read("9.1.6", "entries with a priority that none has", "table_entry { table_id: 0x02000002 priority: 3 }", "OK, 0 entities"),
        read("9.1.6", "a key and a priority", "table_entry { table_id: 0x02000002 priority: 1 match { field_id: 1 exact { value: '\\x1' } } }", "OK, 1 entity"),
        read("9.1.6", "a key and another entry's priority", "table_entry { table_id: 0x02000002 priority: 2 match { field_id: 1 exact { value: '\\x1' } } }", "OK, 0 entities"),
        read("9.1.6", "a negative priority to read", "table_entry { table_id: 0x02000002 priority: -2 }", "INVALID_ARGUMENT"),
    ], &mixed));
    rows.extend([
        read("13.2", "an entity without a kind", "", "INVALID_ARGUMENT"),
        read("13.2", "an extern of another architecture", "extern_entry { }", "UNIMPLEMENTED"),
        read("13.3", "a bad pattern between good ones", "table_entry { } } entities { } entities { table_entry { }", "OK, INVALID_ARGUMENT, OK"),
        Row::new("13", "a Read of another device", Sent::Call(|| raw("device_id: 2 entities { table_entry { } }")), "call: NOT_FOUND"),
        Row::new("13", "a Read of nothing", Sent::Call(|| raw("device_id: 1")), "OK, 0 entities"),
        Row::new("13", "a Read before there is a program", Sent::Bare(|| raw("device_id: 1 entities { table_entry { } }")), "call: FAILED_PRECONDITION"),
    ]);
    let _ = Ok;
    rows
}
