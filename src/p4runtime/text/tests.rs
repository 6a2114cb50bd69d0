//! Texts against what they mean, and one text for every way of being wrong.

use super::*;
use crate::p4runtime::proto::p4::config::v1::{P4Info, Table};
use crate::p4runtime::proto::p4::v1::{FieldMatch, TableEntry, Update, field_match, update};

fn table(text: &str) -> Result<Table, TextError> {
    parse("p4.config.v1.Table", text)
}

#[test]
fn the_forms_that_mean_the_same_read_the_same() {
    let plain = table(
        "preamble { id: 33554433 name: \"a.b\" } size: 8 action_refs { id: 1 } action_refs { id: 2 }",
    );
    for text in [
        "preamble: < id: 0x2000001, name: 'a.' \"b\"; >; size: 010; action_refs: [{ id: 1 }, { id: 2 }]",
        "# comment\npreamble\n{ # more\nid : 33554433 name : 'a\\x2e\\142' } size: 8 action_refs {id:1}action_refs {id:2}",
        "\u{feff}preamble { id: 33554433, name: '\\u0061\\U0000002eb' }, size: +8 action_refs { id: 1 } action_refs { id: 2 }"
            .replace('+', "").as_str(),
    ] {
        assert_eq!(table(text), plain, "{text}");
    }
    assert_eq!(plain.unwrap().action_refs.len(), 2);
}

#[test]
fn numbers_names_and_bytes_read_as_the_wire_carries_them() {
    let entry: TableEntry = parse(
        "p4.v1.TableEntry",
        r#"table_id: 4294967295 priority: -2147483648 idle_timeout_ns: -9223372036854775808 is_const: true
           match { field_id: 1 ternary { value: "\000\377\n" mask: '\xff' } } metadata: "\303\050" "#,
    )
    .unwrap();
    assert_eq!(
        (entry.table_id, entry.priority, entry.idle_timeout_ns),
        (u32::MAX, i32::MIN, i64::MIN)
    );
    assert_eq!(entry.metadata, [0xc3, 0x28]);
    let ternary = field_match::Ternary { value: vec![0, 255, 10], mask: vec![255] };
    let wanted = FieldMatch {
        field_id: 1,
        field_match_type: Some(field_match::FieldMatchType::Ternary(ternary)),
    };
    assert_eq!(entry.r#match, [wanted]);
    let update: Update =
        parse("p4.v1.Update", "type: MODIFY entity { register_entry { } }").unwrap();
    assert_eq!(update.r#type(), update::Type::Modify);
    let by_number: Update = parse("p4.v1.Update", "type: 2 entity { register_entry { } }").unwrap();
    assert_eq!(by_number, update);
}

#[test]
fn maps_and_expanded_any_are_read() {
    let info: P4Info = parse(
        "p4.config.v1.P4Info",
        r#"type_info { structs { key: "s" value { members { name: "m" } } } structs { key: "t" value { } } }
           externs { instances { info { [type.googleapis.com/p4.config.v1.P4Ids] { } } } }"#,
    )
    .unwrap();
    let types = info.type_info.unwrap();
    assert_eq!(types.structs.len(), 2);
    assert_eq!(types.structs["s"].members[0].name, "m");
    let any = info.externs[0].instances[0].info.clone().unwrap();
    assert_eq!(any.type_url, "type.googleapis.com/p4.config.v1.P4Ids");
}

/// Text, place, and a part of the message.
const WRONG: [(&str, (usize, usize), &str); 24] = [
    ("size: 8\n  $", (2, 3), "unexpected character '$'"),
    ("preamble {\n name: \"abc\n }", (2, 8), "string is not closed; end it with \""),
    ("preamble { name: 'a\\q' }", (1, 21), "bad escape '\\q'"),
    ("preamble { name: '\\xzz' }", (1, 20), "bad escape '\\x'"),
    ("preamble { name: '\\ud800' }", (1, 20), "bad escape '\\ud800'"),
    ("preamble { name: '\\777' }", (1, 20), "bad escape '\\777'"),
    ("sise: 8", (1, 1), "has no field 'sise'; did you mean 'size'?"),
    ("size 8", (1, 6), "expected ':'"),
    ("size: eight", (1, 7), "expected a number, found 'eight'"),
    ("size: 8 size: 9", (1, 9), "already given in line 1"),
    ("size: 9223372036854775808", (1, 7), "must lie between"),
    ("size: 99999999999999999999999999999999999999999999", (1, 7), "must lie between"),
    ("size: 0x", (1, 7), "expected a whole number"),
    ("size: 1.5", (1, 8), "expected a field name, found '.'"),
    ("match_fields { match_type: EXAKT }", (1, 28), "use one of UNSPECIFIED, EXACT, LPM"),
    (
        "match_fields { match_type: EXACT\nother_match_type: 'x' }",
        (2, 1),
        "excludes 'match_type' given in line 1",
    ),
    ("is_const_table: maybe", (1, 17), "expected true or false"),
    ("preamble { name: '\\377' }", (1, 18), "must be valid UTF-8"),
    ("preamble { id: -1 }", (1, 16), "-1 does not fit 'id'"),
    ("preamble { id: 1", (1, 17), "closing brace, found the end"),
    ("preamble: 3", (1, 11), "expected '{'"),
    ("action_refs: [{ id: 1 } { id: 2 }]", (1, 25), "expected ',' or ']'"),
    (
        "other_properties { [type.googleapis.com/no.Such] { } }",
        (1, 50),
        "'no.Such' is not part of P4Runtime",
    ),
    ("size: 8 }", (1, 9), "expected a field name, found '}'"),
];

#[test]
fn every_wrong_text_is_refused_at_its_place_with_a_remedy() {
    for (text, (line, column), part) in WRONG {
        let error = table(text).unwrap_err();
        assert_eq!(error.place, Place { line, column }, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn deep_nesting_is_refused_before_the_stack_is() {
    let text = "preamble { doc: < ".to_owned();
    assert!(table(&text).is_err());
    let deep = "struct { members { ".repeat(20_000);
    let error =
        parse::<crate::p4runtime::proto::p4::v1::P4Data>("p4.v1.P4Data", &deep).unwrap_err();
    assert_eq!(error.what, What::TooDeep);
}

#[test]
fn an_unknown_message_name_is_an_error() {
    let error = parse::<Table>("p4.config.v1.Tabel", "").unwrap_err();
    assert_eq!(error.what, What::UnknownMessage("p4.config.v1.Tabel".to_owned()));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[a-z_ {}<>\\[\\]:,;'\"\\\\0-9\n#./-]{0,60}") {
        let _ = table(&text);
        let _ = table(&format!("preamble {{ {text}"));
    }
}
