//! Sections 9.3, 9.4, 9.6, 9.7, 9.8: counters, meters, value sets, registers, digests.

use super::tables::{exact, watched};
use super::{Code, E, Program, Row, Sent, delete, insert, kept, modify, read, write};
use ringpath::p4runtime::proto::p4::config::v1::meter_spec::Type as MeterType;

pub fn rows() -> Vec<Row> {
    [counters(), meters(), kinds_of_meters(), value_sets(), registers(), digests()]
        .into_iter()
        .flatten()
        .collect()
}

fn direct(kind: &str, port: u8, rest: &str) -> String {
    format!(
        "direct_{kind}_entry {{ table_entry {{ table_id: 0x02000001 match {{ field_id: 1 exact {{ value: '\\x{port}' }} }} }} {rest} }}"
    )
}

fn counter(rest: &str) -> String {
    format!("counter_entry {{ counter_id: 0x12000001 {rest} }}")
}

fn meter(rest: &str) -> String {
    format!("meter_entry {{ meter_id: 0x14000001 {rest} }}")
}

const RATES: &str = "config { cir: 1 cburst: 2 pir: 3 pburst: 4 }";

#[rustfmt::skip] // one row a line reads as a table
fn counters() -> Vec<Row> {
    use Code::*;
    let there = [insert(&exact("'\\x1'", &format!("{} counter_data {{ packet_count: 3 }}", watched("'\\x1'"))))];
    let shows = |section, what, update: String, pattern: String, want: &str| Row::new(section, what, Sent::Shows(update, pattern), want);
    vec![
        write("9.3.1", "MODIFY of a direct counter", modify(&direct("counter", 1, "data { packet_count: 1 }")), Ok).after(&there),
        write("9.3.1", "INSERT of a direct counter", insert(&direct("counter", 1, "data { }")), InvalidArgument).after(&there),
        write("9.3.1", "DELETE of a direct counter", delete(&direct("counter", 1, "")), InvalidArgument).after(&there),
        write("9.3.1", "a direct counter of no entry", modify(&direct("counter", 5, "data { }")), NotFound),
        write("9.3.1", "a direct counter that names no entry", modify("direct_counter_entry { data { } }"), InvalidArgument),
        write("9.3.1", "a direct counter of a table without", modify("direct_counter_entry { table_entry { table_id: 0x02000003 } data { } }"), InvalidArgument),
        shows("9.3.1", "MODIFY without data leaves the count", modify(&direct("counter", 1, "")), direct("counter", 1, ""), "3 packets").after(&there),
        shows("9.3.1", "MODIFY with empty data makes the count 0", modify(&direct("counter", 1, "data { }")), direct("counter", 1, ""), "0 packets").after(&there),
        read("9.3.1", "the direct counter of an entry", &direct("counter", 1, ""), "OK, 1 entity").after(&there),
        read("9.3.1", "the direct counter of no entry", &direct("counter", 9, ""), "NOT_FOUND").after(&there),
        read("9.3.1", "all direct counters of a table", "direct_counter_entry { table_entry { table_id: 0x02000001 } }", "OK, 1 entity").after(&there),
        read("9.3.1", "all direct counters of all tables, constant entries included", "direct_counter_entry { }", "OK, 4 entities").after(&there).pi("UNIMPLEMENTED"),
        read("9.3.1", "the direct counter of a default entry", "direct_counter_entry { table_entry { table_id: 0x0200000b is_default_action: true } }", "OK, 1 entity"),
        read("9.3.1", "direct counters of a table without", "direct_counter_entry { table_entry { table_id: 0x02000003 } }", "INVALID_ARGUMENT"),
        write("9.3.2", "a counter cell", modify(&counter("index { index: 7 } data { packet_count: 1 }")), Ok),
        kept("9.3.2", "a counter cell reads back", modify(&counter("index { index: 3 } data { byte_count: 8 packet_count: 1 }")), &counter("index { index: 3 }")),
        write("9.3.2", "all counter cells", modify(&counter("data { packet_count: 1 }")), Ok).pi("UNIMPLEMENTED"),
        shows("9.3.2", "MODIFY of a cell without data leaves the count", modify(&counter("index { index: 3 }")), counter("index { index: 3 }"), "6 packets").after(&[modify(&counter("index { index: 3 } data { packet_count: 6 }"))]),
        write("9.3.2", "INSERT of a counter", insert(&counter("index { } data { }")), InvalidArgument),
        write("9.3.2", "DELETE of a counter", delete(&counter("index { }")), InvalidArgument),
        write("9.3.2", "a negative counter index", modify(&counter("index { index: -1 } data { }")), InvalidArgument),
        write("9.3.2", "a counter index beyond the size", modify(&counter("index { index: 8 } data { }")), OutOfRange).pi("UNKNOWN"),
        write("9.3.2", "a negative count in a counter cell", modify(&counter("index { } data { byte_count: -1 }")), InvalidArgument),
        write("9.3.2", "a counter that does not exist", modify("counter_entry { counter_id: 0x120000ff index { } }"), InvalidArgument),
        read("9.3.2", "all counters", "counter_entry { }", "OK, 11 entities"),
        read("9.3.2", "all cells of a counter", &counter(""), "OK, 8 entities"),
        read("9.3.2", "a counter cell to read beyond the size", &counter("index { index: 8 }"), "OUT_OF_RANGE").pi("UNKNOWN"),
        read("9.3.2", "a negative counter cell to read", &counter("index { index: -3 }"), "INVALID_ARGUMENT"),
        read("9.3.2", "a counter to read that does not exist", "counter_entry { counter_id: 0x120000ff }", "INVALID_ARGUMENT"),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn meters() -> Vec<Row> {
    use Code::*;
    let there = [insert(&exact("'\\x1'", &format!("{} meter_{RATES}", watched("'\\x1'"))))];
    let shows = |section, what, update: String, pattern: String, want: &str| Row::new(section, what, Sent::Shows(update, pattern), want);
    vec![
        write("9.4.1", "MODIFY of a direct meter", modify(&direct("meter", 1, RATES)), Ok).after(&there),
        write("9.4.1", "INSERT of a direct meter", insert(&direct("meter", 1, RATES)), InvalidArgument).after(&there),
        write("9.4.1", "DELETE of a direct meter", delete(&direct("meter", 1, "")), InvalidArgument).after(&there),
        write("9.4.1", "a direct meter of no entry", modify(&direct("meter", 5, RATES)), NotFound),
        write("9.4.1", "a direct meter of a table without", modify(&format!("direct_meter_entry {{ table_entry {{ table_id: 0x02000003 }} {RATES} }}")), InvalidArgument),
        write("9.4.1", "direct counts by colour above 0", modify(&direct("meter", 1, "counter_data { yellow { packet_count: 1 } }")), InvalidArgument).after(&there),
        write("9.4.1", "direct counts by colour cleared", modify(&direct("meter", 1, "counter_data { }")), Ok).after(&there),
        shows("9.4.1", "MODIFY of a direct meter without config makes it green", modify(&direct("meter", 1, "")), direct("meter", 1, ""), "no rates").after(&there),
        read("9.4.1", "the direct meter of an entry", &direct("meter", 1, ""), "OK, 1 entity").after(&there),
        read("9.4.1", "the direct meter of no entry", &direct("meter", 9, ""), "NOT_FOUND").after(&there),
        read("9.4.1", "all direct meters of all tables", "direct_meter_entry { }", "OK, 1 entity").after(&there).pi("UNIMPLEMENTED"),
        write("9.4.2", "a meter cell", modify(&meter(&format!("index {{ index: 7 }} {RATES}"))), Ok),
        kept("9.4.2", "a meter cell reads back", modify(&meter(&format!("index {{ index: 3 }} {RATES}"))), &meter("index { index: 3 }")),
        write("9.4.2", "all meter cells", modify(&meter(RATES)), Ok).pi("UNIMPLEMENTED"),
        shows("9.4.2", "MODIFY of a cell without config makes it green", modify(&meter("index { index: 3 }")), meter("index { index: 3 }"), "no rates").after(&[modify(&meter(&format!("index {{ index: 3 }} {RATES}")))]),
        write("9.4.2", "INSERT of a meter", insert(&meter("index { }")), InvalidArgument),
        write("9.4.2", "DELETE of a meter", delete(&meter("index { }")), InvalidArgument),
        write("9.4.2", "a negative meter index", modify(&meter("index { index: -1 }")), InvalidArgument),
        write("9.4.2", "a meter index beyond the size", modify(&meter("index { index: 8 }")), OutOfRange).pi("UNKNOWN"),
        write("9.4.2", "a meter that does not exist", modify("meter_entry { meter_id: 0x140000ff index { } }"), InvalidArgument),
        read("9.4.2", "all meters", "meter_entry { }", "OK, 10 entities"),
        read("9.4.2", "all cells of a meter", &meter(""), "OK, 8 entities"),
        read("9.4.2", "a meter cell to read beyond the size", &meter("index { index: 8 }"), "OUT_OF_RANGE").pi("UNKNOWN"),
        write("9.4.3", "counts by colour cleared", modify(&meter(&format!("index {{ }} {RATES} counter_data {{ green {{ }} }}"))), Ok),
        write("9.4.3", "counts by colour above 0", modify(&meter("index { } counter_data { green { byte_count: 5 } }")), InvalidArgument),
    ]
}

const ONE_RATE: Program = Program {
    change: |info| {
        info.meters.iter_mut().for_each(|meter| {
            meter.spec.as_mut().unwrap().r#type = MeterType::SingleRateThreeColor.into()
        })
    },
    ..E
};
const TWO_COLOURS: Program = Program {
    change: |info| {
        info.meters.iter_mut().for_each(|meter| {
            meter.spec.as_mut().unwrap().r#type = MeterType::SingleRateTwoColor.into()
        })
    },
    ..E
};

#[rustfmt::skip] // one row a line reads as a table
fn kinds_of_meters() -> Vec<Row> {
    use Code::*;
    let cell = |config: &str| meter(&format!("index {{ }} config {{ {config} }}"));
    let single = "cir: 5 cburst: 6 pir: 5 pburst: 6";
    vec![
        write("9.4", "two rates with eburst", modify(&cell("eburst: 1")), InvalidArgument),
        write("9.4", "a negative rate", modify(&cell("cir: -1")), InvalidArgument),
        write("9.4", "one rate: pir and pburst as cir and cburst", modify(&cell(single)), Ok).with(ONE_RATE),
        kept("9.4", "one rate: eburst reads back", modify(&cell(&format!("{single} eburst: 9"))), &meter("index { }")).with(ONE_RATE),
        write("9.4", "one rate: another pir", modify(&cell("cir: 5 cburst: 6 pir: 7 pburst: 6")), InvalidArgument).with(ONE_RATE),
        write("9.4", "one rate: another pburst", modify(&cell("cir: 5 cburst: 6 pir: 5 pburst: 7")), InvalidArgument).with(ONE_RATE),
        write("9.4", "two colours: pir and pburst as cir and cburst", modify(&cell(single)), Ok).with(TWO_COLOURS),
        write("9.4", "two colours: eburst", modify(&cell(&format!("{single} eburst: 9"))), InvalidArgument).with(TWO_COLOURS),
        write("9.4", "two colours: another pir", modify(&cell("cir: 5 cburst: 6 pir: 7 pburst: 6")), InvalidArgument).with(TWO_COLOURS),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn value_sets() -> Vec<Row> {
    use Code::*;
    let plain = |values: &[u16]| {
        let members: String = values.iter().map(|value| format!("members {{ match {{ field_id: 1 exact {{ value: '\\x{value:x}' }} }} }} ")).collect();
        format!("value_set_entry {{ value_set_id: 0x03000001 {members} }}")
    };
    let picky = |fields: &str| format!("value_set_entry {{ value_set_id: 0x03000002 members {{ match {{ field_id: 1 exact {{ value: '\\x1' }} }} {fields} }} }}");
    let all = "match { field_id: 2 ternary { value: '\\x1' mask: '\\x0f\\x01' } } match { field_id: 3 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } } match { field_id: 4 range { low: '\\x3' high: '\\x01\\x05' } } match { field_id: 5 optional { value: '\\x1' } }";
    vec![
        write("9.6", "members of a value set", modify(&plain(&[1, 2])), Ok).pi("UNIMPLEMENTED"),
        kept("9.6", "a value set reads back", modify(&plain(&[1, 2])), "value_set_entry { value_set_id: 0x03000001 }").pi("UNIMPLEMENTED"),
        kept("9.6", "a member of every kind of match reads back", modify(&picky(all)), "value_set_entry { value_set_id: 0x03000002 }").pi("UNIMPLEMENTED"),
        write("9.6", "an empty value set", modify(&plain(&[])), Ok).pi("UNIMPLEMENTED"),
        write("9.6", "INSERT of a value set", insert(&plain(&[1])), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.6", "DELETE of a value set", delete(&plain(&[])), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.6", "as many members as the set holds", modify(&plain(&[1, 2, 3, 4])), Ok).pi("UNIMPLEMENTED"),
        write("9.6", "more members than the set holds", modify(&plain(&[1, 2, 3, 4, 5])), ResourceExhausted).pi("UNIMPLEMENTED"),
        write("9.6", "a member twice", modify(&plain(&[1, 1])), AlreadyExists).pi("UNIMPLEMENTED"),
        write("9.6", "a member twice, once with leading zeros", modify("value_set_entry { value_set_id: 0x03000001 members { match { field_id: 1 exact { value: '\\x1' } } } members { match { field_id: 1 exact { value: '\\0\\x1' } } } }"), AlreadyExists).pi("UNIMPLEMENTED"),
        write("9.6", "a member without its exact field", modify(&picky(all).replace("match { field_id: 1 exact { value: '\\x1' } }", "")), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.6", "a member that leaves the rest open", modify(&picky("")), Ok).pi("UNIMPLEMENTED"),
        write("9.6", "a member with mask 0", modify(&picky("match { field_id: 2 ternary { value: '\\0' mask: '\\0' } }")), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.6", "a member with the wrong kind of match", modify(&picky("match { field_id: 2 exact { value: '\\0' } }")), InvalidArgument).pi("UNIMPLEMENTED"),
        write("9.6", "a member too wide", modify("value_set_entry { value_set_id: 0x03000001 members { match { field_id: 1 exact { value: '\\x1\\0\\0' } } } }"), OutOfRange).pi("UNIMPLEMENTED"),
        write("9.6", "a value set that does not exist", modify("value_set_entry { value_set_id: 0x030000ff }"), InvalidArgument).pi("UNIMPLEMENTED"),
        read("9.6", "all value sets", "value_set_entry { }", "OK, 2 entities").pi("UNIMPLEMENTED"),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn registers() -> Vec<Row> {
    use Code::*;
    let cell = |rest: &str| format!("register_entry {{ register_id: 0x16000001 {rest} }}");
    let rows = vec![
        write("9.7", "a register cell", modify(&cell("index { index: 7 } data { bitstring: '\\xff\\xff\\xff\\xff' }")), Ok),
        kept("9.7", "a register cell reads back", modify(&cell("index { index: 7 } data { bitstring: '\\xff' }")), &cell("index { index: 7 }")),
        write("9.7", "all register cells", modify(&cell("data { bitstring: '\\x1' }")), Ok),
        write("9.7", "a negative register index", modify(&cell("index { index: -1 } data { bitstring: '\\x1' }")), InvalidArgument),
        write("9.7", "a register index beyond the size", modify(&cell("index { index: 8 } data { bitstring: '\\x1' }")), OutOfRange),
        write("9.7", "a boolean for a bit string", modify(&cell("index { } data { bool: true }")), InvalidArgument),
        write("9.7", "a struct for a bit string", modify(&cell("index { } data { struct { } }")), InvalidArgument),
        write("9.7", "an enum value for a bit string", modify(&cell("index { } data { enum_value: '\\x1' }")), InvalidArgument),
        write("9.7", "empty data", modify(&cell("index { } data { }")), InvalidArgument),
        write("9.7", "a register without data", modify(&cell("index { }")), InvalidArgument),
        write("9.7", "INSERT of a register", insert(&cell("index { } data { bitstring: '\\x1' }")), InvalidArgument),
        write("9.7", "DELETE of a register", delete(&cell("index { }")), InvalidArgument),
        write("9.7", "a register that does not exist", modify("register_entry { register_id: 0x160000ff data { bitstring: '\\x1' } }"), InvalidArgument),
        read("9.7", "all registers", "register_entry { }", "OK, 20 entities"),
        read("9.7", "all cells of a register", &cell(""), "OK, 8 entities"),
        read("9.7", "one register cell", &cell("index { }"), "OK, 1 entity"),
        read("9.7", "a register cell to read beyond the size", &cell("index { index: 8 }"), "OUT_OF_RANGE"),
        read("9.7", "a negative register cell to read", &cell("index { index: -1 }"), "INVALID_ARGUMENT"),
    ];
    rows.into_iter().map(|row| row.pi("UNIMPLEMENTED")).collect()
}

#[rustfmt::skip] // one row a line reads as a table
fn digests() -> Vec<Row> {
    use Code::*;
    let digest = |rest: &str| format!("digest_entry {{ digest_id: 385960041 {rest} }}");
    let on = [insert(&digest("config { max_list_size: 1 }"))];
    vec![
        write("9.8", "a digest switched on", insert(&digest("config { max_list_size: 1 }")), Ok),
        write("9.8", "a digest switched on twice", insert(&digest("config { }")), AlreadyExists).after(&on),
        write("9.8", "MODIFY of a digest", modify(&digest("config { max_list_size: 5 max_timeout_ns: 6 }")), Ok).after(&on),
        write("9.8", "MODIFY of a digest that is off", modify(&digest("config { }")), NotFound),
        write("9.8", "DELETE of a digest", delete(&digest("")), Ok).after(&on),
        write("9.8", "DELETE of a digest with a nonsensical config", delete(&digest("config { max_timeout_ns: -1 }")), Ok).after(&on),
        write("9.8", "DELETE of a digest that is off", delete(&digest("")), NotFound),
        write("9.8", "a negative time", insert(&digest("config { max_timeout_ns: -1 }")), InvalidArgument),
        write("9.8", "a negative list size", insert(&digest("config { max_list_size: -1 }")), InvalidArgument),
        write("9.8", "a digest that does not exist", insert("digest_entry { digest_id: 0x170000ff config { } }"), InvalidArgument),
        kept("9.8", "a digest's config reads back", insert(&digest("config { max_list_size: 3 max_timeout_ns: 4 ack_timeout_ns: 5 }")), &digest("")),
        kept("9.8", "a digest without config reads back without", insert(&digest("")), &digest("")),
        read("9.8", "digests that are on", "digest_entry { }", "OK, 1 entity").after(&on).pi("UNIMPLEMENTED"),
        read("9.8", "one digest", &digest(""), "OK, 1 entity").after(&on),
    ]
}
