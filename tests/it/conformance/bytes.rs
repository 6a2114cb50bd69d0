//! Section 8: byte strings, set and unset fields, read-write symmetry.

use super::tables::{exact, forward, kinds, watched};
use super::{Code, Row, insert, kept, modify, read, write};

fn small(value: &str) -> String {
    modify(&format!(
        "register_entry {{ register_id: 0x16000002 index {{ }} data {{ bitstring: {value} }} }}"
    ))
}

fn cell(value: &str) -> String {
    modify(&format!(
        "register_entry {{ register_id: 0x16000001 index {{ }} data {{ bitstring: {value} }} }}"
    ))
}

#[rustfmt::skip] // one row a line reads as a table
pub fn rows() -> Vec<Row> {
    use Code::*;
    let port = |value: &str| insert(&exact(value, &watched("'\\x1'")));
    let wide = |value: &str| insert(&format!("table_entry {{ table_id: 0x02000006 priority: 1 match {{ field_id: 1 ternary {{ value: {value} mask: {value} }} }} action {{ action {{ action_id: 0x01000002 }} }} }}"));
    let ones = format!("'{}'", "\\xff".repeat(16));
    vec![
        // Table 3 and 4 of the specification, on fields of the same kinds.
        write("8.3", "bit<9>: 511", port("'\\x01\\xff'"), Ok),
        write("8.3", "bit<9>: 512", port("'\\x02\\x00'"), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<9>: 65536", port("'\\x01\\x00\\x00'"), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<9>: leading zero bytes, as many as one likes", port("'\\0\\0\\0\\0\\0\\0\\0\\x01'"), Ok),
        write("8.3", "bit<9>: an empty string", port("''"), OutOfRange).pi("OK"),
        write("8.3", "bit<9>: zero as one byte", port("'\\0'"), Ok),
        write("8.3", "bit<128>: all ones", wide(&ones), Ok),
        write("8.3", "bit<128>: 17 bytes that begin with zero", wide(&format!("'\\0{}", &ones[1..])), Ok),
        write("8.3", "bit<128>: 17 bytes that do not", wide(&format!("'\\x1{}", &ones[1..])), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<12>: 4095", insert(&kinds("match { field_id: 3 ternary { value: '\\x0f\\xff' mask: '\\x0f\\xff' } }", &forward("'\\x1'"))), Ok),
        write("8.3", "bit<12>: 4096", insert(&kinds("match { field_id: 3 ternary { value: '\\x10\\0' mask: '\\x10\\0' } }", &forward("'\\x1'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<12>: a mask too wide", insert(&kinds("match { field_id: 3 ternary { value: '\\0' mask: '\\x1f\\xff' } }", &forward("'\\x1'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<16>: a range's end too wide", insert(&kinds("match { field_id: 4 range { low: '\\0' high: '\\x01\\0\\0' } }", &forward("'\\x1'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<1>: 2 in an optional field", insert(&kinds("match { field_id: 5 optional { value: '\\x2' } }", &forward("'\\x1'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "bit<32>: a prefix too wide", insert(&kinds("match { field_id: 2 lpm { value: '\\x1\\0\\0\\0\\0' prefix_len: 8 } }", &forward("'\\x1'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "a parameter of 9 bits too wide", insert(&exact("'\\x1'", &watched("'\\x02\\0'"))), OutOfRange).pi("INVALID_ARGUMENT"),
        write("8.3", "a parameter with leading zeros", insert(&exact("'\\x1'", &watched("'\\0\\0\\x01'"))), Ok),
        write("8.3", "int<8>: 99", small("'\\x63'"), Ok).pi("UNIMPLEMENTED"),
        write("8.3", "int<8>: -99", small("'\\x9d'"), Ok).pi("UNIMPLEMENTED"),
        write("8.3", "int<8>: -99 with its sign repeated", small("'\\xff\\x9d'"), Ok).pi("UNIMPLEMENTED"),
        write("8.3", "int<8>: 157, which needs 9 bits", small("'\\0\\x9d'"), OutOfRange).pi("UNIMPLEMENTED"),
        write("8.3", "int<8>: -129", small("'\\xff\\x7f'"), OutOfRange).pi("UNIMPLEMENTED"),
        write("8.3", "int<8>: an empty string", small("''"), OutOfRange).pi("UNIMPLEMENTED"),
        write("8.3", "bit<32> register: 2^32", cell("'\\x1\\0\\0\\0\\0'"), OutOfRange).pi("UNIMPLEMENTED"),
        kept("8.3", "int<8>: -128 reads back as one byte", small("'\\x80'"), "register_entry { register_id: 0x16000002 index { } }").pi("UNIMPLEMENTED"),
        kept("8.2", "an exact entry with metadata and idle timeout", insert(&exact("'\\x01\\xfe'", &format!("{} metadata: 'm' idle_timeout_ns: 5000000000", watched("'\\x1'")))), "table_entry { table_id: 0x02000001 }"),
        kept("8.2", "controller_metadata, the older cookie", insert(&exact("'\\x1'", &format!("{} controller_metadata: 18446744073709551615", watched("'\\x1'")))), "table_entry { table_id: 0x02000001 }"),
        kept("8.2", "an entry of all match kinds", insert(&kinds("match { field_id: 2 lpm { value: '\\x0a\\0\\0\\0' prefix_len: 8 } } match { field_id: 3 ternary { value: '\\x1' mask: '\\xf\\xff' } } match { field_id: 4 range { low: '\\0' high: '\\x9' } } match { field_id: 5 optional { value: '\\0' } }", &forward("'\\x1'"))), "table_entry { table_id: 0x02000002 }"),
        kept("8.2", "an entry that leaves all but its exact field open", insert(&kinds("", &forward("'\\x1'"))), "table_entry { table_id: 0x02000002 }"),
        kept("8.2", "a value of 128 bits", wide(&ones), "table_entry { table_id: 0x02000006 }"),
        kept("8.2", "a register cell of 48 bits", modify("register_entry { register_id: 0x16000003 index { index: 3 } data { bitstring: '\\xff\\0\\0\\0\\0\\x1' } }"), "register_entry { register_id: 0x16000003 index { index: 3 } }").pi("UNIMPLEMENTED"),
        write("8.1", "table id 0 in a write", insert("table_entry { }"), InvalidArgument),
        write("8.1", "action id 0", insert(&exact("'\\x1'", "action { action { } }")), InvalidArgument),
        write("8.1", "profile id 0", insert("action_profile_member { member_id: 1 }"), InvalidArgument),
        write("8.1", "counter id 0", modify("counter_entry { index { } data { } }"), InvalidArgument),
        write("8.1", "meter id 0", modify("meter_entry { index { } }"), InvalidArgument),
        write("8.1", "register id 0", modify("register_entry { index { } data { bitstring: '\\0' } }"), InvalidArgument).pi("UNIMPLEMENTED"),
        write("8.1", "value set id 0", modify("value_set_entry { }"), InvalidArgument).pi("UNIMPLEMENTED"),
        write("8.1", "digest id 0", insert("digest_entry { config { } }"), InvalidArgument),
        read("8.1", "an index that is set to its default is cell 0", "counter_entry { counter_id: 0x12000001 index { } }", "OK, 1 entity"),
        read("8.1", "an index that is unset is all cells", "counter_entry { counter_id: 0x12000001 }", "OK, 8 entities"),
    ]
}
