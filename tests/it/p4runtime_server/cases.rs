//! The tables: what is asked, and the code that the specification gives it.

use ringpath::p4runtime::rpc::Code;

pub struct Write {
    pub section: &'static str,
    pub what: &'static str,
    /// Updates that must succeed first.
    pub before: Vec<String>,
    pub update: String,
    pub want: Code,
}

pub struct Read {
    pub section: &'static str,
    pub what: &'static str,
    pub before: Vec<String>,
    pub pattern: String,
    pub want: Code,
    /// How many entities, where it matters.
    pub found: Option<usize>,
}

/// An entry of `exact_t`; `value` is a string literal.
pub fn exact(value: &str, rest: &str) -> String {
    format!(
        "entity {{ table_entry {{ table_id: 0x02000001 match {{ field_id: 1 exact {{ value: {value} }} }} {rest} }} }}"
    )
}

/// The action of `exact_t`.
pub fn watched(port: &str) -> String {
    format!(
        "action {{ action {{ action_id: 0x01000004 params {{ param_id: 1 value: {port} }} }} }}"
    )
}

/// The action of most other tables.
const FORWARD: &str = "action { action { action_id: 0x01000002 params { param_id: 1 value: '\\x1' } params { param_id: 2 value: '\\x2' } } }";
/// The same without the message around it, for members.
const FORWARD_MEMBER: &str = "action { action_id: 0x01000002 params { param_id: 1 value: '\\x1' } params { param_id: 2 value: '\\x2' } }";

fn table(id: u32, rest: &str) -> String {
    format!("entity {{ table_entry {{ table_id: {id} {rest} }} }}")
}

/// An entry of `all_kinds` with its exact field, priority 1 and `forward`.
fn kinds(rest: &str) -> String {
    let exact = "match { field_id: 1 exact { value: '\\x1' } }";
    table(0x0200_0002, &format!("{exact} priority: 1 {FORWARD} {rest}"))
}

/// A default entry.
fn default(id: u32, rest: &str) -> String {
    table(id, &format!("is_default_action: true {rest}"))
}

fn profile(kind: &str, rest: &str) -> String {
    format!("entity {{ action_profile_{kind} {{ {rest} }} }}")
}

const ECMP: &str = "action_profile_id: 0x11000001";
const PROFILE: &str = "action_profile_id: 0x11000002";

fn member(owner: &str, id: u32, rest: &str) -> String {
    profile("member", &format!("{owner} member_id: {id} {rest}"))
}

fn group(members: &str, rest: &str) -> String {
    profile("group", &format!("{ECMP} group_id: 1 max_size: 4 {members} {rest}"))
}

/// Members 1 and 2 of the selector.
pub fn members() -> Vec<String> {
    (1..=2).map(|id| format!("type: INSERT {}", member(ECMP, id, FORWARD_MEMBER))).collect()
}

fn one_shot(set: &str) -> String {
    table(0x0200_0005, &format!("action {{ action_profile_action_set {{ {set} }} }}"))
}

fn shot(weight: i32) -> String {
    format!("action_profile_actions {{ {FORWARD_MEMBER} weight: {weight} }}")
}

fn entity(text: &str) -> String {
    format!("entity {{ {text} }}")
}

fn multicast(rest: &str) -> String {
    entity(&format!("packet_replication_engine_entry {{ multicast_group_entry {{ {rest} }} }}"))
}

fn session(rest: &str) -> String {
    entity(&format!("packet_replication_engine_entry {{ clone_session_entry {{ {rest} }} }}"))
}

fn pvs(values: &[u16]) -> String {
    let members: String = values
        .iter()
        .map(|value| {
            format!("members {{ match {{ field_id: 1 exact {{ value: '\\x{value:x}' }} }} }} ")
        })
        .collect();
    entity(&format!("value_set_entry {{ value_set_id: 0x03000001 {members} }}"))
}

type Row = (&'static str, &'static str, String, Code);

fn rows(before: Vec<String>, rows: Vec<Row>) -> Vec<Write> {
    rows.into_iter()
        .map(|(section, what, update, want)| Write {
            section,
            what,
            before: before.clone(),
            update,
            want,
        })
        .collect()
}

fn insert(text: &str) -> String {
    format!("type: INSERT {text}")
}

fn modify(text: &str) -> String {
    format!("type: MODIFY {text}")
}

fn delete(text: &str) -> String {
    format!("type: DELETE {text}")
}

/// All writes.
pub fn writes() -> Vec<Write> {
    let one = || vec![insert(&exact("'\\x1'", &watched("'\\x1'")))];
    let full =
        || (0..4).map(|p| insert(&exact(&format!("'\\x{p}'"), &watched("'\\x1'")))).collect();
    let mut grouped = members();
    grouped.push(insert(&group("members { member_id: 1 weight: 1 }", "")));
    let mut list = rows(vec![], entries());
    list.extend(rows(vec![], keys()));
    list.extend(rows(vec![], actions()));
    list.extend(rows(vec![], defaults()));
    list.extend(rows(vec![], direct()));
    list.extend(rows(one(), on_an_entry()));
    list.extend(rows(
        full(),
        vec![(
            "12",
            "INSERT into a full table",
            insert(&exact("'\\x9'", &watched("'\\x1'"))),
            Code::ResourceExhausted,
        )],
    ));
    list.extend(rows(vec![], profiles()));
    list.extend(rows(members(), groups()));
    list.extend(rows(grouped, on_a_group()));
    list.extend(rows(vec![], one_shots()));
    list.extend(rows(vec![], arrays()));
    list.extend(rows(vec![], replication()));
    list.extend(rows(vec![], others()));
    list
}

#[rustfmt::skip] // one case a line reads as a table
fn entries() -> Vec<Row> {
    use Code::*;
    let exact1 = exact("'\\x1'", &watched("'\\x1'"));
    vec![
        ("12", "an update without a type", exact1.clone(), InvalidArgument),
        ("12", "an update without an entity", "type: INSERT".into(), InvalidArgument),
        ("12", "INSERT", insert(&exact1), Ok),
        ("12", "MODIFY of what is not there", modify(&exact1), NotFound),
        ("12", "DELETE of what is not there", delete(&exact1), NotFound),
        ("8.1", "table id 0", insert(&table(0, "")), InvalidArgument),
        ("9.1", "a table that does not exist", insert(&table(0x0200_00ff, "")), InvalidArgument),
        ("9.1", "an action's id as a table", insert(&table(0x0100_0002, "")), InvalidArgument),
        ("9.1", "INSERT into a table without key", insert(&table(0x0200_0007, FORWARD)), InvalidArgument),
        ("9.1", "is_const in a write", insert(&exact("'\\x1'", &format!("is_const: true {}", watched("'\\x1'")))), InvalidArgument),
        ("9.1", "a priority without ternary fields", insert(&exact("'\\x1'", &format!("priority: 1 {}", watched("'\\x1'")))), InvalidArgument),
        ("9.1", "a negative priority", insert(&kinds("").replace("priority: 1", "priority: -1")), InvalidArgument),
        ("9.1", "no priority with ternary fields", insert(&kinds("").replace("priority: 1", "")), InvalidArgument),
        ("9.1", "INSERT with metadata", insert(&exact("'\\x1'", &format!("metadata: 'mine' {}", watched("'\\x1'")))), Ok),
        ("9.1.4", "INSERT into a constant table", insert(&table(0x0200_0004, &format!("match {{ field_id: 1 exact {{ value: '\\x9' }} }} {FORWARD}"))), PermissionDenied),
        ("9.1.4", "DELETE from a constant table", delete(&table(0x0200_0004, "match { field_id: 1 exact { value: '\\x1' } }")), PermissionDenied),
        ("9.1.4", "MODIFY of a constant entry's action", modify(&table(0x0200_0004, &format!("match {{ field_id: 1 exact {{ value: '\\x1' }} }} {FORWARD}"))), PermissionDenied),
        ("9.9", "an extern of another architecture", insert("entity { extern_entry { } }"), Unimplemented),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn keys() -> Vec<Row> {
    use Code::*;
    let table2 =
        |fields: &str| insert(&table(0x0200_0002, &format!("{fields} priority: 1 {FORWARD}")));
    vec![
        ("9.1.1", "an exact field left out", table2(""), InvalidArgument),
        ("9.1.1", "a field that the table does not have", insert(&kinds("match { field_id: 9 exact { value: '\\x1' } }")), InvalidArgument),
        ("9.1.1", "a field given twice", insert(&kinds("match { field_id: 1 exact { value: '\\x2' } }")), InvalidArgument),
        ("9.1.1", "a field without value", insert(&kinds("match { field_id: 3 }")), InvalidArgument),
        ("9.1.1", "the wrong kind of match", insert(&kinds("match { field_id: 3 exact { value: '\\x2' } }")), InvalidArgument),
        ("9.1.1", "only the exact field", insert(&kinds("")), Ok),
        ("8.3", "an exact value too wide", insert(&exact("'\\x02\\x00'", &watched("'\\x1'"))), OutOfRange),
        ("8.3", "an empty byte string", insert(&exact("''", &watched("'\\x1'"))), OutOfRange),
        ("8.3", "leading zeros", insert(&exact("'\\0\\0\\0\\x1'", &watched("'\\x1'"))), Ok),
        ("9.1.1", "prefix length 0", insert(&kinds("match { field_id: 2 lpm { value: '\\0' } }")), InvalidArgument),
        ("9.1.1", "prefix length beyond the width", insert(&kinds("match { field_id: 2 lpm { value: '\\x1' prefix_len: 33 } }")), InvalidArgument),
        ("9.1.1", "a negative prefix length", insert(&kinds("match { field_id: 2 lpm { value: '\\x1' prefix_len: -1 } }")), InvalidArgument),
        ("9.1.1", "ones after the prefix", insert(&kinds("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\x01' prefix_len: 31 } }")), InvalidArgument),
        ("9.1.1", "a prefix", insert(&kinds("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } }")), Ok),
        ("9.1.1", "prefix of zeros", insert(&kinds("match { field_id: 2 lpm { value: '\\0' prefix_len: 8 } }")), Ok),
        ("9.1.1", "mask 0", insert(&kinds("match { field_id: 3 ternary { value: '\\0' mask: '\\0' } }")), InvalidArgument),
        ("9.1.1", "ones where the mask has zeros", insert(&kinds("match { field_id: 3 ternary { value: '\\x3' mask: '\\x1' } }")), InvalidArgument),
        ("8.3", "a mask too wide", insert(&kinds("match { field_id: 3 ternary { value: '\\0' mask: '\\x10\\0' } }")), OutOfRange),
        ("9.1.1", "a value shorter than its mask", insert(&kinds("match { field_id: 3 ternary { value: '\\x1' mask: '\\x0f\\x01' } }")), Ok),
        ("9.1.1", "low above high", insert(&kinds("match { field_id: 4 range { low: '\\x2' high: '\\x1' } }")), InvalidArgument),
        ("9.1.1", "the whole range", insert(&kinds("match { field_id: 4 range { low: '\\0' high: '\\xff\\xff' } }")), InvalidArgument),
        ("9.1.1", "nearly the whole range", insert(&kinds("match { field_id: 4 range { low: '\\0' high: '\\xff\\xfe' } }")), Ok),
        ("8.3", "an optional value too wide", insert(&kinds("match { field_id: 5 optional { value: '\\x2' } }")), OutOfRange),
        ("9.1.1", "an optional value", insert(&kinds("match { field_id: 5 optional { value: '\\x1' } }")), Ok),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn actions() -> Vec<Row> {
    use Code::*;
    let with =
        |action: &str| insert(&exact("'\\x1'", &format!("action {{ action {{ {action} }} }}")));
    let indirect = |action: &str| {
        insert(&table(
            0x0200_0006,
            &format!("match {{ field_id: 1 exact {{ value: '\\x1' }} }} {action}"),
        ))
    };
    vec![
        ("9.1.2", "INSERT without action", insert(&exact("'\\x1'", "")), InvalidArgument),
        ("9.1.2", "an empty action", insert(&exact("'\\x1'", "action { }")), InvalidArgument),
        ("9.1.2", "an action that does not exist", with("action_id: 0x010000ff"), InvalidArgument),
        ("9.1.2", "an action of other tables", insert(&kinds("").replace("0x01000002", "0x01000004")), InvalidArgument),
        ("9.1.2", "a default-only action in an entry", with("action_id: 0x01000003"), PermissionDenied),
        ("9.1.2", "a parameter left out", with("action_id: 0x01000004"), InvalidArgument),
        ("9.1.2", "a parameter too many", with("action_id: 0x01000004 params { param_id: 1 value: '\\x1' } params { param_id: 2 value: '\\x1' }"), InvalidArgument),
        ("9.1.2", "a parameter given twice", with("action_id: 0x01000004 params { param_id: 1 value: '\\x1' } params { param_id: 1 value: '\\x1' }"), InvalidArgument),
        ("9.1.2", "a parameter without value", with("action_id: 0x01000004 params { param_id: 1 }"), InvalidArgument),
        ("8.3", "a parameter too wide", with("action_id: 0x01000004 params { param_id: 1 value: '\\x02\\0' }"), OutOfRange),
        ("9.1.2", "a member in a direct table", insert(&exact("'\\x1'", "action { action_profile_member_id: 1 }")), InvalidArgument),
        ("9.1.2", "an action in an indirect table", indirect(FORWARD), InvalidArgument),
        ("9.1.2", "a group in a table without selector", indirect("action { action_profile_group_id: 1 }"), InvalidArgument),
        ("9.1.2", "a member that does not exist", indirect("action { action_profile_member_id: 9 }"), NotFound),
        ("9.1.2", "member 0", indirect("action { action_profile_member_id: 0 }"), InvalidArgument),
        ("9.2.3", "a one-shot set in a table without selector", indirect("action { action_profile_action_set { } }"), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn defaults() -> Vec<Row> {
    use Code::*;
    let drop = "action { action { action_id: 0x01000003 } }";
    vec![
        ("9.1.3", "INSERT of a default entry", insert(&default(0x0200_0001, drop)), InvalidArgument),
        ("9.1.3", "DELETE of a default entry", delete(&default(0x0200_0001, "")), InvalidArgument),
        ("9.1.3", "MODIFY of a default entry", modify(&default(0x0200_0001, drop)), Ok),
        ("9.1.3", "reset of a default entry", modify(&default(0x0200_0001, "")), Ok),
        ("9.1.3", "the default entry of a table without key", modify(&default(0x0200_0007, FORWARD)), Ok),
        ("9.1.2", "a table-only action as default", modify(&default(0x0200_0001, FORWARD)), PermissionDenied),
        ("9.1.3", "a constant default action", modify(&default(0x0200_0003, FORWARD)), PermissionDenied),
        ("9.1.3", "the default action of an indirect table", modify(&default(0x0200_0006, "action { action_profile_member_id: 1 }")), PermissionDenied),
        ("9.1.3", "a default entry with a key", modify(&default(0x0200_0001, &format!("match {{ field_id: 1 exact {{ value: '\\x1' }} }} {drop}"))), InvalidArgument),
        ("9.1.3", "a default entry with a priority", modify(&default(0x0200_0001, &format!("priority: 1 {drop}"))), InvalidArgument),
        ("9.1.8", "a default entry that ages", modify(&default(0x0200_0001, &format!("idle_timeout_ns: 1 {drop}"))), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn direct() -> Vec<Row> {
    use Code::*;
    let entry = |rest: &str| insert(&exact("'\\x1'", &format!("{} {rest}", watched("'\\x1'"))));
    vec![
        ("9.1.7", "an initial count", entry("counter_data { packet_count: 3 }"), Ok),
        ("9.1.7", "a count in a table without direct counter", insert(&kinds("counter_data { }")), InvalidArgument),
        ("9.1.7", "rates in a table without direct meter", insert(&kinds("meter_config { }")), InvalidArgument),
        ("9.1.7", "counts by colour above 0", entry("meter_counter_data { green { packet_count: 1 } }"), InvalidArgument),
        ("9.4", "a meter with eburst", entry("meter_config { eburst: 1 }"), InvalidArgument),
        ("9.1.8", "an idle timeout", entry("idle_timeout_ns: 1000000"), Ok),
        ("9.1.8", "an idle timeout in a table that does not age", insert(&kinds("idle_timeout_ns: 1")), InvalidArgument),
        ("9.1.8", "a negative idle timeout", entry("idle_timeout_ns: -1"), InvalidArgument),
        ("9.1.8", "time_since_last_hit in a write", entry("time_since_last_hit { }"), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn on_an_entry() -> Vec<Row> {
    use Code::*;
    let direct = |kind: &str, rest: &str| {
        entity(&format!(
            "direct_{kind}_entry {{ table_entry {{ table_id: 0x02000001 match {{ field_id: 1 exact {{ value: '\\x1' }} }} }} {rest} }}"
        ))
    };
    vec![
        ("12", "INSERT twice", insert(&exact("'\\x1'", &watched("'\\x1'"))), AlreadyExists),
        ("9.1.2", "MODIFY without action", modify(&exact("'\\x1'", "")), Ok),
        ("9.1", "DELETE with a nonsensical action", delete(&exact("'\\x1'", "action { action { action_id: 5 } } idle_timeout_ns: -9")), Ok),
        ("9.3.1", "MODIFY of a direct counter", modify(&direct("counter", "data { packet_count: 1 }")), Ok),
        ("9.3.1", "INSERT of a direct counter", insert(&direct("counter", "")), InvalidArgument),
        ("9.3.1", "a direct counter of no entry", modify(&direct("counter", "data { }").replace("'\\x1'", "'\\x5'")), NotFound),
        ("9.3.1", "a direct counter without entry", modify("entity { direct_counter_entry { } }"), InvalidArgument),
        ("9.4.1", "MODIFY of a direct meter", modify(&direct("meter", "config { cir: 1 cburst: 1 pir: 2 pburst: 2 }")), Ok),
        ("9.4.1", "DELETE of a direct meter", delete(&direct("meter", "")), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn profiles() -> Vec<Row> {
    use Code::*;
    vec![
        ("9.2.1", "a member", insert(&member(PROFILE, 1, FORWARD_MEMBER)), Ok),
        ("9.2.1", "a member without action", insert(&member(PROFILE, 1, "")), InvalidArgument),
        ("9.2.1", "member 0", insert(&member(PROFILE, 0, FORWARD_MEMBER)), InvalidArgument),
        ("9.2.1", "a member with an action of other tables", insert(&member(PROFILE, 1, "action { action_id: 0x01000003 }")), InvalidArgument),
        ("9.2.1", "MODIFY of a member that is not there", modify(&member(PROFILE, 1, FORWARD_MEMBER)), NotFound),
        ("9.2.1", "DELETE of a member that is not there", delete(&member(PROFILE, 1, "")), NotFound),
        ("9.2.1", "a profile that does not exist", insert(&member("action_profile_id: 0x110000ff", 1, FORWARD_MEMBER)), InvalidArgument),
        ("9.2.2", "a group of a profile without selector", insert(&profile("group", &format!("{PROFILE} group_id: 1"))), InvalidArgument),
        ("9.2.2", "an empty group", insert(&group("", "")), Ok),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn groups() -> Vec<Row> {
    use Code::*;
    let two = "members { member_id: 1 weight: 1 } members { member_id: 2 weight: 2 }";
    vec![
        ("9.2.1", "a member twice", insert(&member(ECMP, 1, FORWARD_MEMBER)), AlreadyExists),
        ("9.2.2", "a group", insert(&group(two, "")), Ok),
        ("9.2.2", "a group with a member that does not exist", insert(&group("members { member_id: 9 weight: 1 }", "")), NotFound),
        ("9.2.2", "a group with a member twice", insert(&group("members { member_id: 1 weight: 1 } members { member_id: 1 weight: 1 }", "")), InvalidArgument),
        ("9.2.2", "weight 0", insert(&group("members { member_id: 1 }", "")), InvalidArgument),
        ("9.2.2", "group 0", insert(&group(two, "").replace("group_id: 1", "group_id: 0")), InvalidArgument),
        ("9.2.2.1", "max_size above the program's", insert(&group(two, "").replace("max_size: 4", "max_size: 9")), InvalidArgument),
        ("9.2.2.1", "max_size left out", insert(&group(two, "").replace("max_size: 4", "")), InvalidArgument),
        ("9.2.2.1", "more weight than max_size", insert(&group("members { member_id: 1 weight: 5 }", "")), ResourceExhausted),
        ("9.2.3", "a one-shot set beside members", insert(&one_shot(&shot(1))), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn on_a_group() -> Vec<Row> {
    use Code::*;
    vec![
        ("9.2.1", "DELETE of a member in a group", delete(&member(ECMP, 1, "")), FailedPrecondition),
        ("9.2.1", "DELETE of a member in no group", delete(&member(ECMP, 2, "")), Ok),
        ("9.2.2", "INSERT of a group twice", insert(&group("", "")), AlreadyExists),
        ("9.2.2", "MODIFY of a group's members", modify(&group("members { member_id: 2 weight: 3 }", "")), Ok),
        ("9.2.2", "MODIFY of max_size", modify(&group("", "").replace("max_size: 4", "max_size: 3")), InvalidArgument),
        ("9.1.2", "an entry on a group", insert(&table(0x0200_0005, "action { action_profile_group_id: 1 }")), Ok),
        ("9.1.2", "an entry on a group that does not exist", insert(&table(0x0200_0005, "action { action_profile_group_id: 2 }")), NotFound),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn one_shots() -> Vec<Row> {
    use Code::*;
    vec![
        ("9.2.3", "a one-shot set", insert(&one_shot(&format!("{} {}", shot(1), shot(2)))), Ok),
        ("9.2.3", "an action with weight 0", insert(&one_shot(&shot(0))), InvalidArgument),
        ("9.2.3", "more weight than a group holds", insert(&one_shot(&shot(9))), InvalidArgument),
        ("9.2.3", "an action of other tables", insert(&one_shot("action_profile_actions { action { action_id: 0x01000003 } weight: 1 }")), InvalidArgument),
        ("9.2.3", "no action", insert(&one_shot("action_profile_actions { weight: 1 }")), InvalidArgument),
        ("9.2.3", "random selection", insert(&one_shot(&format!("action_selection_mode: RANDOM {}", shot(1)))), Unimplemented),
        ("9.2.3", "a group action that is none", insert(&one_shot(&format!("group_{FORWARD_MEMBER} {}", shot(1)))), PermissionDenied),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn arrays() -> Vec<Row> {
    use Code::*;
    let counter =
        |rest: &str| entity(&format!("counter_entry {{ counter_id: 0x12000001 {rest} }}"));
    let meter = |rest: &str| entity(&format!("meter_entry {{ meter_id: 0x14000001 {rest} }}"));
    let cell = |rest: &str| entity(&format!("register_entry {{ register_id: 0x16000001 {rest} }}"));
    let small = |value: &str| {
        modify(&entity(&format!(
            "register_entry {{ register_id: 0x16000002 index {{ }} data {{ bitstring: {value} }} }}"
        )))
    };
    vec![
        ("9.3.2", "a counter cell", modify(&counter("index { index: 7 } data { packet_count: 1 }")), Ok),
        ("9.3.2", "all counter cells", modify(&counter("data { packet_count: 1 }")), Ok),
        ("9.3.2", "INSERT of a counter", insert(&counter("index { }")), InvalidArgument),
        ("9.3.2", "a negative counter index", modify(&counter("index { index: -1 }")), InvalidArgument),
        ("9.3.2", "a counter index beyond the size", modify(&counter("index { index: 8 }")), OutOfRange),
        ("9.4.2", "a meter cell", modify(&meter("index { index: 7 } config { cir: 1 cburst: 2 pir: 3 pburst: 4 }")), Ok),
        ("9.4.2", "all meter cells", modify(&meter("")), Ok),
        ("9.4.2", "DELETE of a meter", delete(&meter("index { }")), InvalidArgument),
        ("9.4.2", "a meter index beyond the size", modify(&meter("index { index: 8 }")), OutOfRange),
        ("9.4", "eburst for two rates", modify(&meter("index { } config { eburst: 1 }")), InvalidArgument),
        ("9.4", "a negative rate", modify(&meter("index { } config { cir: -1 }")), InvalidArgument),
        ("9.7", "a register cell", modify(&cell("index { index: 7 } data { bitstring: '\\xff\\xff\\xff\\xff' }")), Ok),
        ("9.7", "all register cells", modify(&cell("data { bitstring: '\\x1' }")), Ok),
        ("9.7", "a negative register index", modify(&cell("index { index: -1 } data { bitstring: '\\x1' }")), InvalidArgument),
        ("9.7", "a register index beyond the size", modify(&cell("index { index: 8 } data { bitstring: '\\x1' }")), OutOfRange),
        ("9.7", "a register value of another type", modify(&cell("index { } data { bool: true }")), InvalidArgument),
        ("9.7", "a register without value", modify(&cell("index { }")), InvalidArgument),
        ("9.7", "INSERT of a register", insert(&cell("index { } data { bitstring: '\\x1' }")), InvalidArgument),
        ("8.3", "a register value too wide", modify(&cell("index { } data { bitstring: '\\x1\\0\\0\\0\\0' }")), OutOfRange),
        ("8.3", "-1 in an int<8>", small("'\\xff'"), Ok),
        ("8.3", "-1 in an int<8> with its sign repeated", small("'\\xff\\xff'"), Ok),
        ("8.3", "255 in an int<8>", small("'\\0\\xff'"), OutOfRange),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn replication() -> Vec<Row> {
    use Code::*;
    let copy = |port: u32, instance: u32| {
        format!("replicas {{ port: '\\x{port:x}' instance: {instance} }}")
    };
    vec![
        ("9.5.1", "a group", insert(&multicast(&format!("multicast_group_id: 1 {} {}", copy(1, 1), copy(1, 2)))), Ok),
        ("9.5.1", "a group by the older port field", insert(&multicast("multicast_group_id: 1 replicas { egress_port: 3 instance: 1 }")), Ok),
        ("9.5.1", "group 0", insert(&multicast("")), InvalidArgument),
        ("9.5.1", "a group id too large", insert(&multicast("multicast_group_id: 32768")), OutOfRange),
        ("9.5.1", "port and instance twice", insert(&multicast(&format!("multicast_group_id: 1 {0} {0}", copy(1, 1)))), InvalidArgument),
        ("9.5.1", "a replica without port", insert(&multicast("multicast_group_id: 1 replicas { instance: 1 }")), InvalidArgument),
        ("9.5.1", "a backup on its replica's port", insert(&multicast("multicast_group_id: 1 replicas { port: '\\x1' backup_replicas { port: '\\x1' instance: 2 } }")), InvalidArgument),
        ("9.5.1", "MODIFY of a group that is not there", modify(&multicast("multicast_group_id: 1")), NotFound),
        ("9.5.1", "DELETE of a group that is not there", delete(&multicast("multicast_group_id: 1")), NotFound),
        ("9.5.2", "a clone session", insert(&session(&format!("session_id: 5 packet_length_bytes: 64 {}", copy(1, 1)))), Ok),
        ("9.5.2", "session 0", insert(&session("")), InvalidArgument),
        ("9.5.2", "a negative packet length", insert(&session("session_id: 5 packet_length_bytes: -1")), InvalidArgument),
        ("9.5", "neither group nor session", insert("entity { packet_replication_engine_entry { } }"), InvalidArgument),
    ]
}

#[rustfmt::skip] // one case a line reads as a table
fn others() -> Vec<Row> {
    use Code::*;
    let digest = |rest: &str| entity(&format!("digest_entry {{ digest_id: 385960041 {rest} }}"));
    vec![
        ("9.6", "members of a value set", modify(&pvs(&[1, 2])), Ok),
        ("9.6", "an empty value set", modify(&pvs(&[])), Ok),
        ("9.6", "INSERT of a value set", insert(&pvs(&[1])), InvalidArgument),
        ("9.6", "too many members", modify(&pvs(&[1, 2, 3, 4, 5])), ResourceExhausted),
        ("9.6", "a member twice", modify(&pvs(&[1, 1])), AlreadyExists),
        ("9.8", "a digest switched on", insert(&digest("config { max_list_size: 1 }")), Ok),
        ("9.8", "MODIFY of a digest that is off", modify(&digest("config { }")), NotFound),
        ("9.8", "DELETE of a digest that is off", delete(&digest("")), NotFound),
        ("9.8", "a negative time", insert(&digest("config { max_timeout_ns: -1 }")), InvalidArgument),
    ]
}

/// All reads.
#[rustfmt::skip] // one case a line reads as a table
pub fn reads() -> Vec<Read> {
    use Code::*;
    let entry = |port: &str| insert(&exact(port, &watched(port)));
    let two = vec![entry("'\\x1'"), entry("'\\x2'")];
    let rows: Vec<(&str, &str, &str, Code, Option<usize>)> = vec![
        ("13.2", "no entity", "", InvalidArgument, None),
        ("13.2", "all tables, constant entries included", "table_entry { }", Ok, Some(4)),
        ("9.1.6", "table 0 with another filter", "table_entry { priority: 1 }", InvalidArgument, None),
        ("9.1.6", "a table", "table_entry { table_id: 0x02000001 }", Ok, Some(2)),
        ("9.1.6", "a table that does not exist", "table_entry { table_id: 0x020000ff }", InvalidArgument, None),
        ("9.1.6", "one entry", "table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: '\\x2' } } }", Ok, Some(1)),
        ("9.1.6", "an entry that is not there", "table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: '\\x3' } } }", Ok, Some(0)),
        ("9.1.6", "a key too wide", "table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: '\\x3\\0' } } }", OutOfRange, None),
        ("9.1.6", "the default entry", "table_entry { table_id: 0x02000001 is_default_action: true }", Ok, Some(1)),
        ("9.1.6", "entries with an action", "table_entry { table_id: 0x02000001 action { action { action_id: 0x01000004 } } }", Ok, Some(2)),
        ("9.1.6", "entries with another action", "table_entry { table_id: 0x02000001 action { action { action_id: 0x01000002 } } }", Ok, Some(0)),
        ("9.1.6", "entries with an action of other tables", "table_entry { table_id: 0x02000002 action { action { action_id: 0x01000004 } } }", InvalidArgument, None),
        ("9.1.6", "entries with a member", "table_entry { table_id: 0x02000006 action { action_profile_member_id: 1 } }", InvalidArgument, None),
        ("9.1.6", "entries with metadata", "table_entry { table_id: 0x02000001 metadata: 'mine' }", Ok, Some(0)),
        ("9.1.8", "ages of a table that does not age", "table_entry { table_id: 0x02000002 time_since_last_hit { } }", InvalidArgument, None),
        ("9.1.7", "counts of a table without direct counter", "table_entry { table_id: 0x02000002 counter_data { } }", InvalidArgument, None),
        ("9.3.1", "all direct counters", "direct_counter_entry { }", Ok, Some(2)),
        ("9.3.1", "a direct counter", "direct_counter_entry { table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: '\\x1' } } } }", Ok, Some(1)),
        ("9.3.1", "a direct counter of no entry", "direct_counter_entry { table_entry { table_id: 0x02000001 match { field_id: 1 exact { value: '\\x9' } } } }", NotFound, None),
        ("9.3.1", "direct counters of a table without", "direct_counter_entry { table_entry { table_id: 0x02000002 } }", InvalidArgument, None),
        ("9.3.2", "a counter", "counter_entry { counter_id: 0x12000001 }", Ok, Some(8)),
        ("9.3.2", "all counters", "counter_entry { }", Ok, Some(8)),
        ("9.3.2", "a counter cell", "counter_entry { counter_id: 0x12000001 index { index: 3 } }", Ok, Some(1)),
        ("9.3.2", "a negative cell", "counter_entry { counter_id: 0x12000001 index { index: -3 } }", InvalidArgument, None),
        ("9.3.2", "a cell of all counters", "counter_entry { index { index: 3 } }", InvalidArgument, None),
        ("9.4.2", "a meter cell beyond the size", "meter_entry { meter_id: 0x14000001 index { index: 8 } }", OutOfRange, None),
        ("9.7", "all registers", "register_entry { }", Ok, Some(16)),
        ("9.7", "a register cell", "register_entry { register_id: 0x16000001 index { } }", Ok, Some(1)),
        ("9.7", "a register cell beyond the size", "register_entry { register_id: 0x16000001 index { index: 8 } }", OutOfRange, None),
        ("9.2.1", "all members", "action_profile_member { }", Ok, Some(0)),
        ("9.2.1", "a member of all profiles", "action_profile_member { member_id: 1 }", InvalidArgument, None),
        ("9.5.1", "all groups", "packet_replication_engine_entry { multicast_group_entry { } }", Ok, Some(0)),
        ("9.5", "neither group nor session", "packet_replication_engine_entry { }", InvalidArgument, None),
        ("9.8", "digests that are on", "digest_entry { }", Ok, Some(0)),
        ("9.9", "externs of another architecture", "extern_entry { }", Unimplemented, None),
    ];
    rows.into_iter()
        .map(|(section, what, pattern, want, found)| Read {
            section,
            what,
            before: two.clone(),
            pattern: pattern.to_owned(),
            want,
            found,
        })
        .collect()
}

/// An update in canonical form and the pattern that reads exactly it. Members 1 and 2 of the selector exist.
#[rustfmt::skip] // one case a line reads as a table
pub fn symmetric() -> Vec<(String, &'static str)> {
    let lpm = "match { field_id: 1 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } }";
    vec![
        (insert(&exact("'\\x1'", &format!("{} metadata: 'm' idle_timeout_ns: 5", watched("'\\x1'")))), "table_entry { table_id: 0x02000001 }"),
        (insert(&kinds("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } } match { field_id: 3 ternary { value: '\\x1' mask: '\\xf\\xff' } } match { field_id: 4 range { low: '\\0' high: '\\x9' } } match { field_id: 5 optional { value: '\\0' } }")), "table_entry { table_id: 0x02000002 }"),
        (insert(&table(0x0200_0003, &format!("{lpm} {FORWARD}"))), "table_entry { table_id: 0x02000003 }"),
        (insert(&table(0x0200_0005, &format!("{lpm} action {{ action_profile_member_id: 2 }}"))), "table_entry { table_id: 0x02000005 }"),
        (insert(&group("members { member_id: 1 weight: 1 } members { member_id: 2 weight: 3 watch_port: '\\x4' }", "")), "action_profile_group { }"),
        (insert(&multicast("multicast_group_id: 1 replicas { port: '\\x1' instance: 2 } metadata: 'm'")), "packet_replication_engine_entry { multicast_group_entry { } }"),
        (insert(&session("session_id: 5 packet_length_bytes: 64 replicas { port: '\\x1' instance: 2 }")), "packet_replication_engine_entry { clone_session_entry { } }"),
        (modify(&pvs(&[1, 2])), "value_set_entry { }"),
        (modify(&entity("register_entry { register_id: 0x16000002 index { index: 3 } data { bitstring: '\\x80' } }")), "register_entry { register_id: 0x16000002 index { index: 3 } }"),
        (modify(&entity("counter_entry { counter_id: 0x12000001 index { index: 3 } data { byte_count: 8 packet_count: 1 } }")), "counter_entry { counter_id: 0x12000001 index { index: 3 } }"),
        (modify(&entity("meter_entry { meter_id: 0x14000001 index { index: 3 } config { cir: 1 cburst: 2 pir: 3 pburst: 4 } }")), "meter_entry { meter_id: 0x14000001 index { index: 3 } }"),
        (insert(&entity("digest_entry { digest_id: 385960041 config { max_list_size: 3 max_timeout_ns: 4 ack_timeout_ns: 5 } }")), "digest_entry { }"),
    ]
}

/// Updates that PI answers in its own way, and a part of its text.
#[rustfmt::skip] // one case a line reads as a table
pub fn bmv2() -> Vec<(String, Code, &'static str)> {
    vec![
        (modify(&entity("register_entry { register_id: 0x16000001 index { } data { bitstring: '\\x1' } }")), Code::Unimplemented, "Register writes are not supported yet"),
        (modify(&pvs(&[1])), Code::Unimplemented, "ValueSet writes are not supported yet"),
        (modify(&entity("counter_entry { counter_id: 0x12000001 }")), Code::Unimplemented, "Wildcard write is not supported for indirect counters yet"),
        (modify(&entity("meter_entry { meter_id: 0x14000001 }")), Code::Unimplemented, "Wildcard write is not supported for indirect meters yet"),
        (insert(&exact("'\\x02\\0'", &watched("'\\x1'"))), Code::InvalidArgument, ""),
        (insert(&exact("''", &watched("'\\x1'"))), Code::Ok, ""),
    ]
}
