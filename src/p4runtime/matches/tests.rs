//! Patterns against keys: words, forms, and sets compared with plain enumeration.

use super::*;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::text;
use proptest::prelude::*;

const PROGRAM: &str = r#"
actions { preamble { id: 0x01000001 name: "a" alias: "a" } }
tables {
  preamble { id: 0x02000001 name: "In.all" alias: "all" }
  match_fields { id: 1 name: "hdr.e" bitwidth: 9 match_type: EXACT }
  match_fields { id: 2 name: "hdr.ip.dstAddr" bitwidth: 32 match_type: LPM }
  match_fields { id: 3 name: "hdr.t" bitwidth: 16 match_type: TERNARY }
  match_fields { id: 4 name: "hdr.r" bitwidth: 12 match_type: RANGE }
  match_fields { id: 5 name: "hdr.dst_mac" bitwidth: 48 match_type: OPTIONAL }
  action_refs { id: 0x01000001 }
}
tables {
  preamble { id: 0x02000002 name: "In.named" alias: "named" }
  match_fields { id: 1 name: "port" match_type: EXACT }
  match_fields { id: 2 name: "x.port2" bitwidth: 8 match_type: EXACT }
  match_fields { id: 3 name: "y.port2" bitwidth: 8 match_type: EXACT }
  action_refs { id: 0x01000001 }
}
"#;

fn index() -> Index {
    Index::from_text(PROGRAM).unwrap()
}

fn key(text: &str) -> Vec<FieldMatch> {
    let entry =
        text::parse::<crate::p4runtime::proto::p4::v1::TableEntry>("p4.v1.TableEntry", text);
    entry.unwrap().r#match
}

fn pattern(words: &[&str]) -> Result<Pattern, MatchError> {
    Pattern::parse(index().table("all").unwrap(), words)
}

const ENTRY: &str = r#"
match { field_id: 1 exact { value: "\x07" } }
match { field_id: 2 lpm { value: "\x0a\x00\x00\x00" prefix_len: 8 } }
match { field_id: 3 ternary { value: "\x01\x00" mask: "\xff\x00" } }
match { field_id: 4 range { low: "\x05" high: "\x01\x00" } }
match { field_id: 5 optional { value: "\x02\x00\x00\x00\x00\x01" } }
"#;

#[test]
fn a_pattern_meets_an_entry_that_some_packet_could_hit() {
    let index = index();
    let table = index.table("all").unwrap();
    let cases = [
        (&["e=7"][..], true),
        (&["e=8"], false),
        (&["e=6..8"], true),
        (&["dstAddr=10.1.2.3"], true),
        (&["hdr.ip.dstAddr=10.0.0.0/16"], true),
        (&["hdr.ip.dstAddr=0.0.0.0/0"], true),
        (&["dstAddr=11.0.0.0/8"], false),
        (&["t=0x1ff"], true),
        (&["t=0x200&0xf00"], false),
        (&["t=0&0x1"], true),
        (&["r=5", "t=0x100"], true),
        (&["r=4"], false),
        (&["r=0x100..0x200"], true),
        (&["r=0x101..0x200"], false),
        (&["r=0x200&0xf00"], false),
        (&["dst_mac=02:00:00:00:00:01", "e=7"], true),
        (&["dst_mac=?02:00:00:00:00:02"], false),
        (&["dst_mac=*"], true),
    ];
    for (words, meets) in cases {
        assert_eq!(pattern(words).unwrap().meets(table, &key(ENTRY)), meets, "{words:?}");
    }
    // What an entry leaves out is don't-care.
    let open = key(r#"match { field_id: 1 exact { value: "\x07" } }"#);
    assert!(pattern(&["r=9", "dst_mac=1"]).unwrap().meets(table, &open));
    assert!(!pattern(&["r=9", "e=1"]).unwrap().meets(table, &open));
}

#[test]
fn a_key_is_written_in_any_form_that_says_the_same() {
    let index = index();
    let table = index.table("all").unwrap();
    let words = ["e=7", "dstAddr=10.0.0.0/8", "t=0x100&0xff00", "r=5..256", "dst_mac=2:0:0:0:0:1"];
    let wanted = pattern(&words).unwrap();
    assert!(wanted.is_key(table, &key(ENTRY)));
    assert_eq!(wanted.key(table).unwrap(), key(ENTRY));
    // A prefix on a ternary field, a full range and a full prefix are the same key as their other spellings.
    let other =
        pattern(&["e=7", "dstAddr=10.0.0.0&0xff000000", "t=0x100/8", "r=5..0x100", words[4]]);
    assert_eq!(other.unwrap().key(table).unwrap(), key(ENTRY));
    let open = pattern(&["e=7", "r=0..0xfff", "t=0/0", "dstAddr=*"]).unwrap();
    assert_eq!(open.key(table).unwrap(), key(r#"match { field_id: 1 exact { value: "\x07" } }"#));
    assert!(!open.is_key(table, &key(ENTRY)));
    let exact = pattern(&["e=7", "dstAddr=10.0.0.1", "r=9"]).unwrap().key(table).unwrap();
    let wanted = r#"match { field_id: 1 exact { value: "\x07" } }
        match { field_id: 2 lpm { value: "\x0a\x00\x00\x01" prefix_len: 32 } }
        match { field_id: 4 range { low: "\x09" high: "\x09" } }"#;
    assert_eq!(exact, key(wanted));
}

#[test]
fn what_is_shown_reads_as_the_same_set() {
    let index = index();
    let table = index.table("all").unwrap();
    let shown: Vec<String> = key(ENTRY)
        .iter()
        .map(|held| {
            let field = table.field_by_id(held.field_id).unwrap();
            format!("{}={}", field.name, show(field, &of_message(field, held).unwrap()))
        })
        .collect();
    let wanted = [
        "hdr.e=7",
        "hdr.ip.dstAddr=10.0.0.0/8",
        "hdr.t=0x100&0xff00",
        "hdr.r=5..256",
        "hdr.dst_mac=02:00:00:00:00:01",
    ];
    assert_eq!(shown, wanted);
    assert!(Pattern::parse(table, &shown).unwrap().is_key(table, &key(ENTRY)));
}

#[test]
fn text_fields_take_any_text_and_suffixes_must_be_unique() {
    let index = index();
    let table = index.table("named").unwrap();
    let words = ["port=Ethernet1/2..3&4"];
    let pattern = Pattern::parse(table, &words).unwrap();
    let held = r#"match { field_id: 1 exact { value: "Ethernet1/2..3&4" } }"#;
    assert!(pattern.meets(table, &key(held)));
    assert!(!pattern.meets(table, &key(r#"match { field_id: 1 exact { value: "Ethernet" } }"#)));
    let error = Pattern::parse(table, &["port2=1"]).unwrap_err().to_string();
    assert!(error.contains("x.port2, y.port2"), "{error}");
    assert!(Pattern::parse(table, &["y.port2=1"]).is_ok());
}

#[test]
fn a_held_key_of_another_kind_or_width_has_no_form() {
    let index = index();
    let table = index.table("all").unwrap();
    for held in [
        r#"match { field_id: 1 lpm { value: "\x07" prefix_len: 3 } }"#,
        r#"match { field_id: 1 exact { value: "\xff\xff" } }"#,
        r#"match { field_id: 2 lpm { value: "\x07" prefix_len: 33 } }"#,
        r#"match { field_id: 2 lpm { value: "\x07" prefix_len: -1 } }"#,
        "match { field_id: 3 }",
    ] {
        let held = &key(held)[0];
        assert_eq!(of_message(table.field_by_id(held.field_id).unwrap(), held), None);
    }
}

/// A set over 6 bits, drawn at random.
fn small() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Any),
        (0_u8..64).prop_map(|value| Form::Value(vec![value])),
        (0_u8..64, 0_u8..64)
            .prop_map(|(value, mask)| Form::Masked { value: vec![value & mask], mask: vec![mask] }),
        (0_u8..64, 0_u8..64)
            .prop_map(|(low, high)| Form::Range { low: vec![low], high: vec![high] }),
    ]
}

/// The slow twin: whether a set holds a number.
fn holds(form: &Form, number: u8) -> bool {
    match form {
        Form::Any => true,
        Form::Value(value) => value[0] == number,
        Form::Masked { value, mask } => number & mask[0] == value[0],
        Form::Range { low, high } => (low[0]..=high[0]).contains(&number),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(2_000)))]

    #[test]
    fn sets_meet_exactly_when_enumeration_finds_a_common_number(left in small(), right in small()) {
        let common = (0..64).any(|number| holds(&left, number) && holds(&right, number));
        prop_assert_eq!(left.meets(&right), common);
        prop_assert_eq!(left.normal(6).meets(&right.normal(6)), common);
    }
}
