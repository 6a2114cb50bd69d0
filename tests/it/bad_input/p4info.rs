//! P4Info in p4c's text form: texts that do not read, and descriptions that contradict themselves.

use super::{Case, check, check_variants, variants};
use ringpath::p4runtime::p4info::{Index, ReadError};

/// A good description, to which cases make one change.
pub const PROGRAM: &str = include_str!("../../data/p4info/conformance.txtpb");

fn case(wanted: &'static str, text: &str, part: &'static str) -> Case {
    let error = Index::from_text(text).err().unwrap_or_else(|| panic!("accepted, wanted {part}"));
    let shown = error.to_string();
    match &error {
        // A text has a place, a contradiction an object.
        ReadError::Text(error) => {
            let place = format!("{}: ", error.place);
            Case { kind: format!("Text/{}", variants(&error.what)), wanted, shown, place, part }
        }
        ReadError::Info(error) => {
            let kind = format!("Info/{}", variants(error));
            Case { kind, wanted, shown, place: String::new(), part }
        }
    }
}

fn change(from: &str, to: &str) -> String {
    assert!(PROGRAM.contains(from), "{from}");
    PROGRAM.replacen(from, to, 1)
}

/// Texts that are no P4Info.
fn texts() -> Vec<Case> {
    let table = |inside: &str| format!("tables {{\n  {inside}\n}}");
    vec![
        case(
            "Text/Character",
            "tables {\n  $ }",
            "line 2, column 3: unexpected character '$'; use quotes",
        ),
        case(
            "Text/OpenString",
            &table("preamble { name: \"abc"),
            "string is not closed; end it with \"",
        ),
        case("Text/Escape", &table("preamble { name: 'a\\q' }"), "bad escape '\\q'; use"),
        case("Text/Expected", &table("size 8"), "expected ':' after the name of a field"),
        case("Text/Expected", &table("size: eight"), "expected a number, found 'eight'"),
        case("Text/Expected", &table("is_const_table: maybe"), "expected true or false"),
        case("Text/Expected", &table("preamble: 3"), "expected '{'"),
        case("Text/Expected", &table("action_refs: [{ id: 1 } { id: 2 }]"), "expected ',' or ']'"),
        case(
            "Text/Expected",
            "tables {",
            "expected a field name or the closing brace, found the end",
        ),
        case("Text/Expected", "}", "expected a field name, found '}'"),
        case("Text/Expected", &table("preamble { name: 7 }"), "expected a string in quotes"),
        case(
            "Text/Expected",
            "{\"tables\": []}",
            "line 1, column 1: expected a field name, found '{'",
        ),
        case("Text/UnknownField", "tabels { }", "has no field 'tabels'; did you mean 'tables'?"),
        case(
            "Text/UnknownField",
            &table("sise: 8"),
            "p4.config.v1.Table has no field 'sise'; did you mean 'size'?",
        ),
        case("Text/UnknownField", &change("bitwidth: 9", "bitwidht: 9"), "line 5, column 38"),
        case(
            "Text/Twice",
            &table("size: 8 size: 9"),
            "field 'size' was already given in line 2; give it once",
        ),
        case(
            "Text/Excluded",
            &table("match_fields { match_type: EXACT\nother_match_type: 'x' }"),
            "'other_match_type' excludes 'match_type' given in line 2; give one of them",
        ),
        case(
            "Text/Range",
            &table("size: 9223372036854775808"),
            "does not fit 'size': it must lie between",
        ),
        case(
            "Text/Range",
            &table("preamble { id: -1 }"),
            "-1 does not fit 'id': it must lie between 0 and",
        ),
        case(
            "Text/UnknownValue",
            &table("match_fields { match_type: EXAKT }"),
            "has no value 'EXAKT'; use one of",
        ),
        case(
            "Text/NotUtf8",
            &table("preamble { name: '\\377' }"),
            "field 'name' must be valid UTF-8",
        ),
        case(
            "Text/UnknownMessage",
            &table("other_properties { [type.googleapis.com/no.Such] { } }"),
            "message type 'no.Such' is not part of P4Runtime",
        ),
    ]
}

/// Objects of every kind without preamble, and with an id of another kind.
fn preambles() -> Vec<Case> {
    let kinds = [
        (
            "tables",
            "table number 0 has no preamble; give it",
            "table 'x' has id 0x00000007; ids of this kind start with 0x02",
        ),
        (
            "actions",
            "action number 0 has no preamble; give it",
            "action 'x' has id 0x00000007; ids of this kind start with 0x01",
        ),
        (
            "action_profiles",
            "action profile number 0 has no",
            "action profile 'x' has id 0x00000007",
        ),
        (
            "counters",
            "counter number 0 has no preamble; give",
            "counter 'x' has id 0x00000007; ids of this kind start with 0x12",
        ),
        (
            "direct_counters",
            "direct counter number 0 has no",
            "direct counter 'x' has id 0x00000007",
        ),
        (
            "meters",
            "meter number 0 has no preamble; give it",
            "meter 'x' has id 0x00000007; ids of this kind start with 0x14",
        ),
        ("direct_meters", "direct meter number 0 has no", "direct meter 'x' has id 0x00000007"),
        ("registers", "register number 0 has no", "register 'x' has id 0x00000007"),
        ("digests", "digest number 0 has no", "digest 'x' has id 0x00000007"),
        ("value_sets", "value set number 0 has no", "value set 'x' has id 0x00000007"),
        (
            "controller_packet_metadata",
            "packet header number 0 has no",
            "packet header 'x' has id 0x00000007",
        ),
    ];
    let mut cases = Vec::new();
    for (list, absent, wrong) in kinds {
        cases.push(case("Info/NoPreamble", &format!("{list} {{ }}"), absent));
        let text = format!("{list} {{ preamble {{ id: 7 name: \"x\" }} }}");
        cases.push(case("Info/WrongId", &text, wrong));
    }
    cases
}

/// Descriptions that contradict themselves, one change away from a good one.
fn contradictions() -> Vec<Case> {
    let action = "actions { preamble { id: 0x01000009 name: \"x\" }";
    vec![
        case(
            "Info/DuplicateId",
            &change("id: 0x02000002 name", "id: 0x02000001 name"),
            "is given to both 'MyIngress.exact_t'",
        ),
        case(
            "Info/WrongMemberId",
            &change("id: 2 name: \"hdr.l\"", "id: 1 name: \"hdr.l\""),
            "'hdr.l' has id 1, which is 0 or taken",
        ),
        case(
            "Info/WrongMemberId",
            &format!("{action} params {{ id: 0 name: \"p\" }} }}"),
            "'x': field or parameter 'p' has id 0",
        ),
        case(
            "Info/Dangling",
            &change("action_refs { id: 0x01000001 }", "action_refs { id: 9 }"),
            "'MyIngress.exact_t' refers to action 0x00000009",
        ),
        case(
            "Info/Dangling",
            &change("const_default_action_id: 0x01000001", "const_default_action_id: 8"),
            "'MyIngress.lpm_t' refers to action 0x00000008",
        ),
        case(
            "Info/Dangling",
            &change("direct_resource_ids: [0x13000001,", "direct_resource_ids: [5,"),
            "refers to direct counter or meter 0x00000005",
        ),
        case(
            "Info/Dangling",
            &change("implementation_id: 0x11000001", "implementation_id: 7"),
            "refers to action profile 0x00000007",
        ),
        case(
            "Info/Dangling",
            "direct_counters { preamble { id: 0x13000001 name: \"c\" } direct_table_id: 3 }",
            "'c' refers to table 0x00000003",
        ),
        case(
            "Info/Dangling",
            "direct_meters { preamble { id: 0x15000001 name: \"m\" } direct_table_id: 3 }",
            "'m' refers to table 0x00000003",
        ),
        case(
            "Info/Dangling",
            "action_profiles { preamble { id: 0x11000001 name: \"p\" } table_ids: 3 }",
            "'p' refers to table 0x00000003",
        ),
        case(
            "Info/Width",
            &change("bitwidth: 9", "bitwidth: -1"),
            "'MyIngress.exact_t': 'hdr.a' is -1 bits wide; widths lie between",
        ),
        case(
            "Info/Width",
            &format!("{action} params {{ id: 1 name: \"p\" bitwidth: 65537 }} }}"),
            "'x': 'p' is 65537 bits wide",
        ),
        case(
            "Info/Size",
            &change("size: 4\n", "size: -4\n"),
            "'MyIngress.exact_t' has size -4; sizes are not negative",
        ),
        case(
            "Info/Size",
            "counters { preamble { id: 0x12000001 name: \"c\" } size: -1 }",
            "'c' has size -1",
        ),
        case(
            "Info/Size",
            "meters { preamble { id: 0x14000001 name: \"m\" } size: -1 }",
            "'m' has size -1",
        ),
        case(
            "Info/Size",
            "value_sets { preamble { id: 0x03000001 name: \"v\" } size: -1 }",
            "'v' has size -1",
        ),
        case(
            "Info/Size",
            "action_profiles { preamble { id: 0x11000001 name: \"p\" } max_group_size: -1 }",
            "'p' has size -1",
        ),
        case(
            "Info/NoType",
            "registers { preamble { id: 0x16000001 name: \"r\" } }",
            "'r' has no type_spec",
        ),
        case(
            "Info/NoType",
            "digests { preamble { id: 0x17000001 name: \"d\" } }",
            "'d' has no type_spec",
        ),
        case(
            "Info/MatchKind",
            &change("bitwidth: 9 match_type: EXACT", "bitwidth: 9"),
            "field 'hdr.a' has match type 0; use",
        ),
        case(
            "Info/MatchKind",
            &change("match_type: LPM", "match_type: 77"),
            "field 'hdr.l' has match type 77; use",
        ),
    ]
}

#[test]
fn every_bad_p4info_is_refused_with_place_or_object_and_remedy() {
    let cases: Vec<Case> = texts().into_iter().chain(preambles()).chain(contradictions()).collect();
    check("p4info", &cases);
    let what = include_str!("../../../src/p4runtime/text.rs");
    // Nesting has a test of its own; no field of P4Info has a type that the reader lacks; the wire form is the reader's own.
    check_variants(what, "What", &cases, &["TooDeep", "Unsupported", "Decode"]);
    check_variants(
        include_str!("../../../src/p4runtime/p4info/check.rs"),
        "P4InfoError",
        &cases,
        &[],
    );
}
