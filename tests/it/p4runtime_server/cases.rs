//! Requests that several tests of the server send.

use ringpath::p4runtime::rpc::Code;

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

/// Updates that PI answers in its own way, and a part of its text.
#[rustfmt::skip] // one case a line reads as a table
pub fn bmv2() -> Vec<(String, Code, &'static str)> {
    let modify = |entity: &str| format!("type: MODIFY entity {{ {entity} }}");
    vec![
        (modify("register_entry { register_id: 0x16000001 index { } data { bitstring: '\\x1' } }"), Code::Unimplemented, "Register writes are not supported yet"),
        (modify("value_set_entry { value_set_id: 0x03000001 }"), Code::Unimplemented, "ValueSet writes are not supported yet"),
        (modify("counter_entry { counter_id: 0x12000001 }"), Code::Unimplemented, "Wildcard write is not supported for indirect counters yet"),
        (modify("meter_entry { meter_id: 0x14000001 }"), Code::Unimplemented, "Wildcard write is not supported for indirect meters yet"),
    ]
}
