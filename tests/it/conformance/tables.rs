//! Section 9.1: table entries, and the generalities of Update (section 12).

use super::{C, Code, Row, Sent, delete, insert, kept, modify, write};

/// An entry of `exact_t`; `value` is a string literal.
pub fn exact(value: &str, rest: &str) -> String {
    format!(
        "table_entry {{ table_id: 0x02000001 match {{ field_id: 1 exact {{ value: {value} }} }} {rest} }}"
    )
}

/// The action of `exact_t`.
pub fn watched(port: &str) -> String {
    format!(
        "action {{ action {{ action_id: 0x01000003 params {{ param_id: 1 value: {port} }} }} }}"
    )
}

/// `forward` without the messages around it.
pub fn bare_forward(port: &str) -> String {
    format!(
        "action_id: 0x01000001 params {{ param_id: 1 value: {port} }} params {{ param_id: 2 value: '\\x2' }}"
    )
}

/// The action of most other tables.
pub fn forward(port: &str) -> String {
    format!("action {{ action {{ {} }} }}", bare_forward(port))
}

/// An entry of `kinds_t` with its exact field and priority 1.
pub fn kinds(fields: &str, rest: &str) -> String {
    format!(
        "table_entry {{ table_id: 0x02000002 priority: 1 match {{ field_id: 1 exact {{ value: '\\x1' }} }} {fields} {rest} }}"
    )
}

pub fn entry(id: u32, rest: &str) -> String {
    format!("table_entry {{ table_id: {id} {rest} }}")
}

fn default(id: u32, rest: &str) -> String {
    entry(id, &format!("is_default_action: true {rest}"))
}

pub fn rows() -> Vec<Row> {
    [updates(), keys(), actions(), defaults(), constants(), direct(), idle()]
        .into_iter()
        .flatten()
        .collect()
}

#[rustfmt::skip] // one row a line reads as a table
fn updates() -> Vec<Row> {
    use Code::*;
    let one = exact("'\\x1'", &watched("'\\x1'"));
    let there = [insert(&one)];
    let full: Vec<_> = (0..6).map(|p| insert(&exact(&format!("'\\x{p}'"), &watched("'\\x1'")))).collect();
    vec![
        write("12", "an update without a type", format!("entity {{ {one} }}"), InvalidArgument),
        write("12", "an update without an entity", "type: INSERT".into(), InvalidArgument),
        write("12", "an entity without a kind", "type: INSERT entity { }".into(), InvalidArgument),
        write("12", "INSERT", insert(&one), Ok),
        write("12", "INSERT of what is there", insert(&one), AlreadyExists).after(&there),
        write("12", "MODIFY of what is not there", modify(&one), NotFound),
        write("12", "DELETE of what is not there", delete(&one), NotFound),
        write("12", "MODIFY", modify(&exact("'\\x1'", &watched("'\\x9'"))), Ok).after(&there),
        write("12", "DELETE", delete(&exact("'\\x1'", "")), Ok).after(&there),
        write("12", "DELETE with a nonsensical action, timeout and metadata", delete(&exact("'\\x1'", "action { action { action_id: 5 } } idle_timeout_ns: -9 metadata: 'x' time_since_last_hit { }")), Ok).after(&there),
        Row::new("12", "a refused INSERT leaves the entry as it was", Sent::Kept(insert(&one), "table_entry { table_id: 0x02000001 }".into()), "as written"),
        write("9.1", "INSERT into a full table", insert(&exact("'\\x9'", &watched("'\\x1'"))), ResourceExhausted).after(&full).pi("UNKNOWN"),
        write("9.1", "MODIFY in a full table", modify(&exact("'\\x1'", &watched("'\\x2'"))), Ok).after(&full),
        write("9.1", "a table that does not exist", insert(&entry(0x0200_00ff, "")), InvalidArgument),
        write("9.1", "an action's id as a table", insert(&entry(0x0100_0001, "")), InvalidArgument),
        write("9.1", "INSERT into a table without key", insert(&entry(0x0200_000b, &forward("'\\x1'"))), InvalidArgument),
        write("9.1", "is_const in an INSERT", insert(&exact("'\\x1'", &format!("is_const: true {}", watched("'\\x1'")))), InvalidArgument),
        write("9.1", "is_const in a MODIFY", modify(&exact("'\\x1'", &format!("is_const: true {}", watched("'\\x1'")))), InvalidArgument).after(&there),
        write("9.1", "is_const in a DELETE", delete(&exact("'\\x1'", "is_const: true")), InvalidArgument).after(&there),
        write("9.1", "a priority without ternary, range or optional fields", insert(&exact("'\\x1'", &format!("priority: 1 {}", watched("'\\x1'")))), InvalidArgument),
        write("9.1", "a priority in a table of an LPM field", insert(&entry(0x0200_0003, &format!("priority: 1 match {{ field_id: 1 lpm {{ value: '\\x0a\\0\\0\\0' prefix_len: 8 }} }} {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1", "no priority with ternary fields", insert(&kinds("", &forward("'\\x1'")).replace("priority: 1", "")), InvalidArgument),
        write("9.1", "a negative priority", insert(&kinds("", &forward("'\\x1'")).replace("priority: 1", "priority: -1")), InvalidArgument),
        write("9.1", "the largest priority", insert(&kinds("", &forward("'\\x1'")).replace("priority: 1", "priority: 2147483647")), Ok),
        write("9.1", "the same key with another priority", insert(&kinds("", &forward("'\\x1'")).replace("priority: 1", "priority: 2")), Ok).after(&[insert(&kinds("", &forward("'\\x1'")))]),
        write("9.1", "another key with the same priority", insert(&kinds("match { field_id: 5 optional { value: '\\x1' } }", &forward("'\\x1'"))), Ok).after(&[insert(&kinds("", &forward("'\\x1'")))]),
        write("9.1", "the same key and priority", insert(&kinds("", &forward("'\\x2'"))), AlreadyExists).after(&[insert(&kinds("", &forward("'\\x1'")))]),
        write("9.1", "MODIFY with another priority names another entry", modify(&kinds("", &forward("'\\x1'")).replace("priority: 1", "priority: 2")), NotFound).after(&[insert(&kinds("", &forward("'\\x1'")))]),
        write("9.1", "DELETE with another priority names another entry", delete(&kinds("", "").replace("priority: 1", "priority: 2")), NotFound).after(&[insert(&kinds("", &forward("'\\x1'")))]),
        write("9.1", "INSERT with metadata", insert(&exact("'\\x1'", &format!("metadata: 'mine' {}", watched("'\\x1'")))), Ok),
        write("9.1", "leading zeros name the same entry", insert(&exact("'\\0\\0\\x1'", &watched("'\\x1'"))), AlreadyExists).after(&there),
        write("9.9", "an extern of another architecture", insert("extern_entry { }"), Unimplemented),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn keys() -> Vec<Row> {
    use Code::*;
    let with = |fields: &str| insert(&kinds(fields, &forward("'\\x1'")));
    vec![
        write("9.1.1", "an exact field left out", insert(&entry(0x0200_0002, &format!("priority: 1 {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1.1", "a field that the table does not have", with("match { field_id: 9 exact { value: '\\x1' } }"), InvalidArgument),
        write("9.1.1", "field id 0", with("match { exact { value: '\\x1' } }"), InvalidArgument),
        write("9.1.1", "a field given twice", with("match { field_id: 1 exact { value: '\\x2' } }"), InvalidArgument),
        write("9.1.1", "a field without value", with("match { field_id: 3 }"), InvalidArgument),
        write("9.1.1", "exact for a ternary field", with("match { field_id: 3 exact { value: '\\x2' } }"), InvalidArgument),
        write("9.1.1", "ternary for an LPM field", with("match { field_id: 2 ternary { value: '\\x2' mask: '\\x2' } }"), InvalidArgument),
        write("9.1.1", "LPM for an optional field", with("match { field_id: 5 lpm { value: '\\x1' prefix_len: 1 } }"), InvalidArgument),
        write("9.1.1", "range for an exact field", insert(&kinds("", &forward("'\\x1'")).replace("exact { value: '\\x1' }", "range { low: '\\0' high: '\\x1' }")), InvalidArgument),
        write("9.1.1", "fields in another order", insert(&entry(0x0200_0002, &format!("priority: 1 match {{ field_id: 5 optional {{ value: '\\x1' }} }} match {{ field_id: 1 exact {{ value: '\\x1' }} }} {}", forward("'\\x1'")))), Ok),
        write("9.1.1", "only the exact field", with(""), Ok),
        write("9.1.1", "prefix length 0, which is don't-care", with("match { field_id: 2 lpm { value: '\\0' } }"), InvalidArgument),
        write("9.1.1", "prefix length beyond the width", with("match { field_id: 2 lpm { value: '\\x1' prefix_len: 33 } }"), InvalidArgument),
        write("9.1.1", "a negative prefix length", with("match { field_id: 2 lpm { value: '\\x1' prefix_len: -1 } }"), InvalidArgument),
        write("9.1.1", "ones after the prefix", with("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\x01' prefix_len: 31 } }"), InvalidArgument),
        write("9.1.1", "a prefix", with("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } }"), Ok),
        write("9.1.1", "a prefix of the whole width", with("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\x1' prefix_len: 32 } }"), Ok),
        write("9.1.1", "a prefix of zeros", with("match { field_id: 2 lpm { value: '\\0' prefix_len: 8 } }"), Ok),
        write("9.1.1", "mask 0, which is don't-care", with("match { field_id: 3 ternary { value: '\\0' mask: '\\0' } }"), InvalidArgument),
        write("9.1.1", "ones where the mask has zeros", with("match { field_id: 3 ternary { value: '\\x3' mask: '\\x1' } }"), InvalidArgument),
        write("9.1.1", "a value shorter than its mask", with("match { field_id: 3 ternary { value: '\\x1' mask: '\\x0f\\x01' } }"), Ok),
        write("9.1.1", "a mask with holes", with("match { field_id: 3 ternary { value: '\\x05' mask: '\\x0a\\x05' } }"), Ok),
        write("9.1.1", "low above high", with("match { field_id: 4 range { low: '\\x2' high: '\\x1' } }"), InvalidArgument),
        write("9.1.1", "a range of one value", with("match { field_id: 4 range { low: '\\x2' high: '\\x2' } }"), Ok),
        write("9.1.1", "the whole range, which is don't-care", with("match { field_id: 4 range { low: '\\0' high: '\\xff\\xff' } }"), InvalidArgument),
        write("9.1.1", "nearly the whole range", with("match { field_id: 4 range { low: '\\0' high: '\\xff\\xfe' } }"), Ok),
        write("9.1.1", "an optional value", with("match { field_id: 5 optional { value: '\\x1' } }"), Ok),
        write("9.1.1", "don't-care for everything in a table without exact fields", insert(&entry(0x0200_0003, &forward("'\\x1'"))), Ok),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn actions() -> Vec<Row> {
    use Code::*;
    let with = |action: &str| insert(&exact("'\\x1'", &format!("action {{ action {{ {action} }} }}")));
    let there = [insert(&exact("'\\x1'", &watched("'\\x1'")))];
    let indirect = |action: &str| insert(&entry(0x0200_0009, &format!("priority: 1 match {{ field_id: 1 ternary {{ value: '\\x1' mask: '\\x1' }} }} {action}")));
    vec![
        write("9.1.2", "INSERT without action", insert(&exact("'\\x1'", "")), InvalidArgument),
        write("9.1.2", "an empty action", insert(&exact("'\\x1'", "action { }")), InvalidArgument),
        write("9.1.2", "an action that does not exist", with("action_id: 0x010000ff"), InvalidArgument),
        write("9.1.2", "an action of other tables", insert(&kinds("", &watched("'\\x1'"))), InvalidArgument),
        write("9.1.2", "a default-only action in an entry", with("action_id: 0x01000002"), PermissionDenied),
        write("9.1.2", "a table-only action in an entry", insert(&exact("'\\x1'", &forward("'\\x1'"))), Ok),
        write("9.1.2", "a table-only action as default", modify(&default(0x0200_0001, &forward("'\\x1'"))), PermissionDenied),
        write("9.1.2", "a parameter left out", with("action_id: 0x01000003"), InvalidArgument),
        write("9.1.2", "a parameter too many", with("action_id: 0x01000003 params { param_id: 1 value: '\\x1' } params { param_id: 2 value: '\\x1' }"), InvalidArgument),
        write("9.1.2", "a parameter given twice", with("action_id: 0x01000003 params { param_id: 1 value: '\\x1' } params { param_id: 1 value: '\\x1' }"), InvalidArgument),
        write("9.1.2", "a parameter id that the action does not have", with("action_id: 0x01000003 params { param_id: 7 value: '\\x1' }"), InvalidArgument),
        write("9.1.2", "a parameter without value", with("action_id: 0x01000003 params { param_id: 1 }"), InvalidArgument).pi("OK"),
        write("9.1.2", "parameters in another order", insert(&kinds("", "action { action { action_id: 0x01000001 params { param_id: 2 value: '\\x2' } params { param_id: 1 value: '\\x1' } } }")), Ok),
        write("9.1.2", "a member in a direct table", insert(&exact("'\\x1'", "action { action_profile_member_id: 1 }")), InvalidArgument),
        write("9.1.2", "a group in a direct table", insert(&exact("'\\x1'", "action { action_profile_group_id: 1 }")), InvalidArgument),
        write("9.1.2", "a one-shot set in a direct table", insert(&exact("'\\x1'", "action { action_profile_action_set { } }")), InvalidArgument),
        write("9.1.2", "an action in an indirect table", indirect(&forward("'\\x1'")), InvalidArgument),
        write("9.1.2", "a group in a table without selector", indirect("action { action_profile_group_id: 1 }"), InvalidArgument),
        write("9.1.2", "a member that does not exist", indirect("action { action_profile_member_id: 9 }"), NotFound),
        write("9.1.2", "member 0", indirect("action { action_profile_member_id: 0 }"), InvalidArgument),
        write("9.1.2", "MODIFY without action", modify(&exact("'\\x1'", "")), Ok).after(&there),
        Row::new("9.1.2", "MODIFY without action keeps the action", Sent::Shows(modify(&exact("'\\x1'", "metadata: 'x'")), "table_entry { table_id: 0x02000001 }".into()), "fields 1 priority 0 action 0x1000003, no count, no rates").after(&there),
        write("9.1.2", "MODIFY to another action", modify(&exact("'\\x1'", &forward("'\\x1'"))), Ok).after(&there),
        write("9.1.2", "MODIFY to a default-only action", modify(&exact("'\\x1'", "action { action { action_id: 0x01000002 } }")), PermissionDenied).after(&there),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn defaults() -> Vec<Row> {
    use Code::*;
    let drop = "action { action { action_id: 0x01000002 } }";
    let sized = "action { action { action_id: 0x01000005 params { param_id: 3 value: '\\x7' } } }";
    let read = "table_entry { table_id: 0x02000001 is_default_action: true counter_data { } meter_config { } }";
    let keyless = "table_entry { table_id: 0x0200000b is_default_action: true counter_data { } }";
    let rich = modify(&default(0x0200_0001, &format!("{drop} metadata: 'm' counter_data {{ packet_count: 4 }} meter_config {{ cir: 1 cburst: 1 pir: 2 pburst: 2 }}")));
    vec![
        write("9.1.3", "INSERT of a default entry", insert(&default(0x0200_0001, drop)), InvalidArgument),
        write("9.1.3", "DELETE of a default entry", delete(&default(0x0200_0001, "")), InvalidArgument),
        write("9.1.3", "MODIFY of a default entry", modify(&default(0x0200_0001, drop)), Ok),
        kept("9.1.3", "a default entry reads back", modify(&default(0x0200_0001, &format!("{drop} metadata: 'm'"))), "table_entry { table_id: 0x02000001 is_default_action: true }"),
        kept("9.1.3", "the default entry of a table without key", modify(&default(0x0200_000b, sized)), "table_entry { table_id: 0x0200000b is_default_action: true }"),
        write("9.1.3", "reset of a default entry", modify(&default(0x0200_0001, "")), Ok),
        Row::new("9.1.3", "a reset returns the program's action and forgets the rest", Sent::Shows(modify(&default(0x0200_0001, "")), read.into()), "fields - priority 0 action 0x1445b37, 0 packets, no rates, default").after(std::slice::from_ref(&rich)).pi("fields - priority 0 action 0x1445b37, 0 packets, no rates, default"),
        write("9.1.3", "a constant default action", modify(&default(0x0200_0003, &forward("'\\x1'"))), PermissionDenied),
        write("9.1.3", "reset of a constant default action", modify(&default(0x0200_0003, "")), PermissionDenied),
        write("9.1.3", "the default action of an indirect table", modify(&default(0x0200_0009, "action { action_profile_member_id: 1 }")), PermissionDenied),
        write("9.1.3", "the default action of a table with a selector", modify(&default(0x0200_0007, &forward("'\\x1'"))), PermissionDenied),
        write("9.1.3", "a default entry with a key", modify(&default(0x0200_0001, &format!("match {{ field_id: 1 exact {{ value: '\\x1' }} }} {drop}"))), InvalidArgument),
        write("9.1.3", "a default entry with a priority", modify(&default(0x0200_0001, &format!("priority: 1 {drop}"))), InvalidArgument),
        write("9.1.3", "is_const in a default entry", modify(&default(0x0200_0001, &format!("is_const: true {drop}"))), InvalidArgument),
        Row::new("9.1.3", "a default entry has direct resources as others have", Sent::Shows(rich, read.into()), "fields - priority 0 action 0x1000002, 4 packets, cir 1, default"),
        Row::new("9.1.3", "the direct counter of a default entry", Sent::Shows(modify("direct_counter_entry { table_entry { table_id: 0x0200000b is_default_action: true } data { packet_count: 6 } }"), keyless.into()), "fields - priority 0 action 0x1445b37, 6 packets, no rates, default"),
        write("9.1.3", "a count for a table without direct counter", modify(&default(0x0200_0002, "counter_data { }")), InvalidArgument),
        write("9.1.8", "a default entry that ages", modify(&default(0x0200_0001, &format!("idle_timeout_ns: 1 {drop}"))), InvalidArgument),
        write("9.1.8", "time_since_last_hit in a default entry", modify(&default(0x0200_0001, &format!("time_since_last_hit {{ }} {drop}"))), InvalidArgument),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn constants() -> Vec<Row> {
    use Code::*;
    let first = "priority: 3 match { field_id: 1 exact { value: '\\x1' } } match { field_id: 2 ternary { value: '\\x10' mask: '\\x0f\\xf0' } }";
    let new = "priority: 9 match { field_id: 1 exact { value: '\\x9' } }";
    let tallied = "action { action { action_id: 0x01000004 } }";
    let seven = "match { field_id: 1 exact { value: '\\x7' } }";
    let read = "table_entry { table_id: 0x02000004 priority: 3 counter_data { } }";
    vec![
        write("9.1.4", "INSERT into a constant table", insert(&entry(0x0200_0004, &format!("{new} {tallied}"))), PermissionDenied),
        write("9.1.4", "DELETE from a constant table", delete(&entry(0x0200_0004, first)), PermissionDenied),
        write("9.1.4", "MODIFY of a constant entry's action", modify(&entry(0x0200_0004, &format!("{first} {tallied}"))), PermissionDenied),
        write("9.1.4", "MODIFY of a constant entry's metadata", modify(&entry(0x0200_0004, &format!("{first} metadata: 'x' counter_data {{ }}"))), PermissionDenied),
        write("9.1.4", "MODIFY of a constant entry's count", modify(&entry(0x0200_0004, &format!("{first} counter_data {{ packet_count: 5 }}"))), Ok),
        Row::new("9.1.4", "a constant entry's count is written and read, and it says that it is constant", Sent::Shows(modify(&entry(0x0200_0004, &format!("{first} counter_data {{ packet_count: 5 }}"))), read.into()), "fields 1 2 priority 3 action 0x1000004, 5 packets, no rates, const"),
        Row::new("9.1.4", "the same through its own entity", Sent::Shows(modify(&format!("direct_counter_entry {{ table_entry {{ table_id: 0x02000004 {first} }} data {{ packet_count: 6 }} }}")), read.into()), "fields 1 2 priority 3 action 0x1000004, 6 packets, no rates, const"),
        write("9.1.4", "a count of a constant entry that is not there", modify(&entry(0x0200_0004, &format!("{new} counter_data {{ }}"))), NotFound),
        write("9.1.4", "MODIFY in a constant table without direct resources", modify("table_entry { table_id: 0x02000004 match { field_id: 1 exact { value: '\\x1' } } }"), PermissionDenied).with(C),
        Row::new("9.1.4", "priorities of constant entries fall from the first to the last", Sent::Read("table_entry { table_id: 0x02000004 priority: 1 }".into()), "OK, 1 entity"),
        write("9.1.4", "the default action of a constant table", modify(&default(0x0200_0004, tallied)), Ok),
        write("9.1.5", "MODIFY of an entry that the program began with", modify(&entry(0x0200_0005, &format!("{seven} {}", forward("'\\x5'")))), Ok),
        write("9.1.5", "DELETE of an entry that the program began with", delete(&entry(0x0200_0005, seven)), Ok),
        write("9.1.5", "INSERT of an entry that the program began with", insert(&entry(0x0200_0005, &format!("{seven} {}", forward("'\\x5'")))), AlreadyExists),
        write("9.1.5", "INSERT beside entries that the program began with", insert(&entry(0x0200_0005, &format!("match {{ field_id: 1 exact {{ value: '\\x9' }} }} {}", forward("'\\x5'")))), Ok).pi("UNKNOWN"),
        Row::new("9.1.5", "entries that the program began with can be read", Sent::Read("table_entry { table_id: 0x02000005 }".into()), "OK, 2 entities"),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn direct() -> Vec<Row> {
    use Code::*;
    let with = |rest: &str| exact("'\\x1'", &format!("{} {rest}", watched("'\\x1'")));
    let counted = [insert(&with("counter_data { packet_count: 3 } meter_config { cir: 1 cburst: 1 pir: 2 pburst: 2 }"))];
    let all = "table_entry { table_id: 0x02000001 counter_data { } meter_config { } }";
    let none = "table_entry { table_id: 0x02000001 }";
    let shows = |what, update: String, pattern: &str, want: &str| Row::new("9.1.7", what, Sent::Shows(update, pattern.to_owned()), want);
    vec![
        shows("INSERT with a count and rates", counted[0].clone(), all, "fields 1 priority 0 action 0x1000003, 3 packets, cir 1"),
        shows("INSERT without: count 0, default rates", insert(&with("")), all, "fields 1 priority 0 action 0x1000003, 0 packets, no rates"),
        shows("a Read that does not ask gets neither", counted[0].clone(), none, "fields 1 priority 0 action 0x1000003, no count, no rates"),
        shows("MODIFY without a count keeps it, without rates resets them", modify(&with("")), all, "fields 1 priority 0 action 0x1000003, 3 packets, no rates").after(&counted),
        shows("MODIFY with a count and rates sets both", modify(&with("counter_data { packet_count: 9 } meter_config { cir: 4 cburst: 1 pir: 5 pburst: 2 }")), all, "fields 1 priority 0 action 0x1000003, 9 packets, cir 4").after(&counted),
        shows("after DELETE and INSERT the count is 0", insert(&with("")), all, "fields 1 priority 0 action 0x1000003, 0 packets, no rates").after(&counted).after(&[delete(&with(""))]),
        write("9.1.7", "a count in a table without direct counter", insert(&kinds("", &format!("counter_data {{ }} {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1.7", "rates in a table without direct meter", insert(&kinds("", &format!("meter_config {{ }} {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1.7", "counts by colour in a table without direct meter", insert(&kinds("", &format!("meter_counter_data {{ }} {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1.7", "INSERT with counts by colour above 0", insert(&with("meter_counter_data { green { packet_count: 1 } }")), InvalidArgument),
        write("9.1.7", "INSERT with counts by colour of 0", insert(&with("meter_counter_data { green { } red { } }")), Ok),
        write("9.1.7", "MODIFY with counts by colour above 0", modify(&with("meter_counter_data { red { byte_count: 1 } }")), InvalidArgument).after(&counted),
        write("9.1.7", "a negative count", insert(&with("counter_data { packet_count: -1 }")), InvalidArgument),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn idle() -> Vec<Row> {
    use Code::*;
    let with = |rest: &str| exact("'\\x1'", &format!("{} {rest}", watched("'\\x1'")));
    let there = [insert(&with(""))];
    vec![
        write("9.1.8", "an idle timeout", insert(&with("idle_timeout_ns: 1000000")), Ok),
        write("9.1.8", "an idle timeout shorter than the switch can watch", insert(&with("idle_timeout_ns: 1")), Ok),
        write("9.1.8", "an idle timeout in a table that does not age", insert(&kinds("", &format!("idle_timeout_ns: 1 {}", forward("'\\x1'")))), InvalidArgument),
        write("9.1.8", "a negative idle timeout", insert(&with("idle_timeout_ns: -1")), InvalidArgument),
        write("9.1.8", "time_since_last_hit in a write", insert(&with("time_since_last_hit { }")), InvalidArgument),
        write("9.1.8", "time_since_last_hit in a write to a table that does not age", insert(&kinds("", &format!("time_since_last_hit {{ }} {}", forward("'\\x1'")))), InvalidArgument),
        Row::new("9.1.8", "the age of an entry without timeout, if asked for", Sent::Shows(modify(&with("")), "table_entry { table_id: 0x02000001 time_since_last_hit { } }".into()), "fields 1 priority 0 action 0x1000003, no count, no rates, age").after(&there),
        kept("9.1.8", "an idle timeout reads back to the nanosecond", insert(&with("idle_timeout_ns: 1234567891")), "table_entry { table_id: 0x02000001 }"),
    ]
}
