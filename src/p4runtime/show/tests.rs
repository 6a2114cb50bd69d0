//! Answers of a switch, good and nonsensical, on a small program.

use super::*;
use crate::p4runtime::text;

const PROGRAM: &str = include_str!("../../../tests/data/p4info/conformance.txtpb");

fn entity(text: &str) -> Entity {
    text::parse("p4.v1.Entity", text).unwrap()
}

fn entry(table: &str, text: &str) -> Result<Entry, Nonsense> {
    let index = Index::from_text(PROGRAM).unwrap();
    let entity = entity(&format!("table_entry {{ {text} }}"));
    Entry::new(&index, index.table(table).unwrap(), table_entry(&entity)?)
}

/// An index whose one register has a cell of this type.
fn registers(spec: &str) -> Index {
    let text = format!(
        r#"registers {{ preamble {{ id: 0x16000001 name: "r" }} type_spec {{ {spec} }} size: 4 }}
        type_info {{
          structs {{ key: "Flow" value {{
            members {{ name: "n" type_spec {{ bitstring {{ bit {{ bitwidth: 8 }} }} }} }}
            members {{ name: "ok" type_spec {{ bool {{ }} }} }} }} }}
          new_types {{ key: "N" value {{ original_type {{ bitstring {{ bit {{ bitwidth: 8 }} }} }} }} }}
          serializable_enums {{ key: "E" value {{ members {{ name: "red" value: "\x01" }} }} }}
        }}"#
    );
    Index::from_text(&text).unwrap()
}

fn cell(spec: &str, data: &str) -> Result<Value, Nonsense> {
    let index = registers(spec);
    let sent = entity(&format!(
        "register_entry {{ register_id: 0x16000001 index {{ index: 1 }} data {{ {data} }} }}"
    ));
    RegisterCell::of_register(&index, &index.registers()[0], &sent).map(|cell| cell.value)
}

#[test]
fn cells_are_shown_by_their_type() {
    let bits = |kind: &str, width: u32| format!("bitstring {{ {kind} {{ bitwidth: {width} }} }}");
    let marked = r#"bitstring { bit { bitwidth: 32 } annotations: "@format(IPV4_ADDRESS)" }"#;
    let cases = [
        (bits("bit", 32), r#"bitstring: "\x01\x00""#, "256"),
        (bits("bit", 72), r#"bitstring: "\x01\x00""#, "0x100"),
        (bits("int", 8), r#"bitstring: "\xff""#, "-1"),
        (bits("int", 16), r#"bitstring: "\x7f\x00""#, "32512"),
        (marked.to_owned(), r#"bitstring: "\x0a\x00\x00\x01""#, "10.0.0.1"),
        ("bool { }".to_owned(), "bool: true", "true"),
        (
            r#"struct { name: "Flow" }"#.to_owned(),
            r#"struct { members { bitstring: "\x07" } members { bool: false } }"#,
            "{n=7, ok=false}",
        ),
        (r#"new_type { name: "N" }"#.to_owned(), r#"bitstring: "\x09""#, "9"),
        (r#"serializable_enum { name: "E" }"#.to_owned(), r#"enum_value: "\x01""#, "red"),
    ];
    for (spec, data, shown) in cases {
        assert_eq!(plain(&cell(&spec, data).unwrap()), shown, "{spec}");
    }
}

#[test]
fn zero_is_zero_in_every_look() {
    for zero in ["0", "false", "null", "\"0x0\"", "\"0.0.0.0\"", "\"::\"", "[0, 0]", "{\"a\": 0}"] {
        assert!(is_zero(&serde_json::from_str(zero).unwrap()), "{zero}");
    }
    for other in ["1", "-1", "true", "\"0x10\"", "\"0.0.0.1\"", "[0, 1]", "{\"a\": \"red\"}"] {
        assert!(!is_zero(&serde_json::from_str(other).unwrap()), "{other}");
    }
}

#[test]
fn nonsense_is_named_and_never_shown() {
    let bit8 = "bitstring { bit { bitwidth: 8 } }";
    for data in [r#"bitstring: "\x01\x00""#, "bool: true", "", r#"bitstring: """#] {
        let error = cell(bit8, data).unwrap_err().to_string();
        assert!(error.contains("'r' holds bit<8>") && error.contains("--p4info"), "{error}");
    }
    let index = registers(bit8);
    let register = &index.registers()[0];
    let cases = [
        ("register_entry { register_id: 0x16000002 }", "an entity of id 0x16000002"),
        ("register_entry { register_id: 0x16000001 }", "'r' has 4 cells and it sent index none"),
        ("register_entry { register_id: 0x16000001 index { index: 4 } }", "it sent index 4"),
        ("register_entry { register_id: 0x16000001 index { index: -1 } }", "it sent index -1"),
        ("counter_entry { }", "asked for register cells, it sent a counter cell"),
        ("", "it sent nothing"),
    ];
    for (sent, part) in cases {
        let error = RegisterCell::of_register(&index, register, &entity(sent)).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
    let cases = [
        ("table_id: 0x02000002", "asked for 'MyIngress.exact_t'"),
        ("table_id: 0x02000001 match { field_id: 77 }", "no match field with id 0x4d"),
        ("table_id: 0x02000001 match { field_id: 1 lpm { } }", "does not fit its kind or width"),
        ("table_id: 0x02000001 action { action { action_id: 9 } }", "no action with id 0x9"),
        (
            "table_id: 0x02000001 action { action { action_id: 0x01000002 params { param_id: 9 } } }",
            "no parameter with id 0x9",
        ),
    ];
    for (sent, part) in cases {
        let error = entry("exact_t", sent).unwrap_err().to_string();
        assert!(error.contains(part), "wanted {part}: {error}");
    }
    assert!(table_entry(&entity("digest_entry { }")).is_err());
}

#[test]
fn an_entry_becomes_json_with_documented_keys() {
    let shown = entry(
        "exact_t",
        r#"table_id: 0x02000001
        match { field_id: 1 exact { value: "\x07" } }
        action { action { action_id: 0x01000002 params { param_id: 1 value: "\x03" } } }
        counter_data { packet_count: 2 byte_count: 90 }
        idle_timeout_ns: 5 time_since_last_hit { elapsed_ns: 3 } metadata: "mine""#,
    )
    .unwrap();
    let text = shown.document().to_string();
    assert!(
        text.starts_with(
            r#"{"table":"MyIngress.exact_t","default":false,"const":false,"priority":0,"match":{"#
        ),
        "{text}"
    );
    for part in [
        r#""action":{"name":"MyIngress.forward","params":{"port":"3"}}"#,
        r#""counter":{"packets":2,"bytes":90},"idle_timeout_ns":5,"since_hit_ns":3,"metadata":"mine"}"#,
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(shown.does.to_string(), "forward(port=3)");
    let group = entry("route", "table_id: 0x02000005 action { action_profile_group_id: 4 }");
    assert_eq!(group.unwrap().does.to_string(), "group 4");
    let set = r#"table_id: 0x02000005 action { action_profile_action_set {
        action_profile_actions { weight: 2 action { action_id: 0x01000002 } } } }"#;
    assert_eq!(entry("route", set).unwrap().does.to_string(), "2x forward()");
}
