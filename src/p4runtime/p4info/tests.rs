//! Lookups on a small program, and one P4Info for every contradiction.

use super::*;

const PROGRAM: &str = include_str!("../../../tests/data/p4info/conformance.txtpb");

fn program() -> Index {
    Index::from_text(PROGRAM).unwrap()
}

#[test]
fn objects_are_found_by_name_alias_suffix_and_id() {
    let index = program();
    let table = index.table("MyIngress.all_kinds").unwrap();
    assert_eq!(index.table("all_kinds").unwrap(), table);
    assert_eq!(index.table_by_id(0x0200_0002).unwrap(), table);
    assert_eq!(index.action("drop").unwrap().names.id, 0x0100_0003, "a suffix that is no alias");
    assert_eq!(table.field("hdr.t").unwrap().id, 3);
    assert_eq!(index.action("forward").unwrap().param("mac").unwrap().width, 48);
    assert_eq!(index.header("packet_out").unwrap().field("egress_port").unwrap().width, 9);
    assert_eq!(index.kind(0x1600_0001), Some(Kind::Register));
    assert!(index.action_by_id(0x0200_0002).is_none(), "an id of another kind");
    assert_eq!(index.registers().len(), 2);
    assert_eq!(index.direct_counter("exact_counter").unwrap().table, Some(0x0200_0001));
}

#[test]
fn tables_know_their_rules() {
    let index = program();
    let table = |name| index.table(name).unwrap();
    assert!(table("all_kinds").needs_priority());
    assert!(!table("exact_t").needs_priority() && !table("lpm_t").needs_priority());
    assert!(table("exact_t").idle_timeout && !table("lpm_t").idle_timeout);
    assert_eq!(table("exact_t").counter, Some(0x1300_0001));
    assert_eq!(table("exact_t").meter, Some(0x1500_0001));
    assert_eq!(table("lpm_t").const_default, Some(0x0100_0001));
    assert_eq!(table("route").profile, Some(0x1100_0001));
    assert!(table("const_t").is_const && table("const_t").has_initial_entries);
    assert_eq!(table("exact_t").actions[1].scope, Scope::TableOnly);
    assert_eq!(table("named").fields[0].width, 0);
    assert_eq!(table("named").fields[0].look, Look::Text);
    assert_eq!(table("lpm_t").fields[0].look, Look::Ipv4, "a prefix of 32 bits");
    assert_eq!(table("all_kinds").fields[2].look, Look::Number);
}

#[test]
fn unknown_names_get_the_nearest_and_ambiguous_ones_get_all() {
    let index = program();
    let text = index.table("exakt_t").unwrap_err().to_string();
    assert_eq!(text, "no table is called 'exakt_t'; did you mean 'exact_t'?");
    let text = index.action("forward").unwrap().param("prt").unwrap_err().to_string();
    assert_eq!(text, "no parameter is called 'prt' in 'MyIngress.forward'; did you mean 'port'?");
    assert_eq!(
        index.digest("zzz").unwrap_err().to_string(),
        "no digest is called 'zzz'; known are 'learn_t'"
    );
    let mut info = index.info().clone();
    info.tables[1].preamble.as_mut().unwrap().name = "Other.exact_t".to_owned();
    info.tables[0].preamble.as_mut().unwrap().alias = String::new();
    let index = Index::new(info).unwrap();
    let text = index.table("exact_t").unwrap_err().to_string();
    assert!(text.contains("MyIngress.exact_t, Other.exact_t"), "{text}");
}

#[test]
fn every_contradiction_is_named() {
    type Change = fn(&mut config::P4Info);
    let cases: [(Change, &str); 16] = [
        (|i| i.tables[0].preamble = None, "table number 0 has no preamble"),
        (|i| i.actions[1].preamble.as_mut().unwrap().id = 7, "ids of this kind start with 0x01"),
        (|i| i.tables[0].preamble.as_mut().unwrap().id = 0, "has id 0x00000000"),
        (|i| i.tables[1].preamble.as_mut().unwrap().id = 0x0200_0001, "is given to both"),
        (|i| i.tables[1].match_fields[1].id = 1, "field or parameter 'hdr.l' has id 1"),
        (|i| i.actions[1].params[0].id = 0, "'port' has id 0"),
        (|i| i.tables[0].action_refs[0].id = 9, "refers to action 0x00000009"),
        (|i| i.tables[2].const_default_action_id = 9, "refers to action 0x00000009"),
        (|i| i.tables[4].implementation_id = 0x0200_0001, "refers to action profile 0x02000001"),
        (|i| i.tables[0].direct_resource_ids[0] = 5, "direct counter or meter 0x00000005"),
        (|i| i.direct_counters[0].direct_table_id = 5, "refers to table 0x00000005"),
        (|i| i.action_profiles[0].table_ids[0] = 5, "refers to table 0x00000005"),
        (|i| i.actions[1].params[0].bitwidth = -1, "is -1 bits wide"),
        (|i| i.registers[0].size = -1, "has size -1"),
        (|i| i.registers[0].type_spec = None, "has no type_spec"),
        (|i| i.tables[0].match_fields[0].r#match = None, "has match type 0"),
    ];
    for (change, part) in cases {
        let mut info = program().info().clone();
        change(&mut info);
        let error = Index::new(info).unwrap_err().to_string();
        assert!(error.contains(part), "wanted {part}, got {error}");
    }
}

#[test]
fn text_errors_carry_the_place() {
    let text = PROGRAM.replacen("bitwidth: 9", "bitwidht: 9", 1);
    let error = Index::from_text(&text).unwrap_err().to_string();
    assert!(
        error.starts_with("line 5, column 38: p4.config.v1.MatchField has no field 'bitwidht'"),
        "{error}"
    );
}

/// Those that are committed, and those of a directory that RINGPATH_P4INFO_DIR names, such as a compiler's outputs.
#[test]
fn every_p4info_at_hand_is_read() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let asked = std::env::var_os("RINGPATH_P4INFO_DIR").map(std::path::PathBuf::from);
    let mut read = 0;
    for dir in [root.join("p4/build"), root.join("tests/data/p4info")].into_iter().chain(asked) {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().contains(".p4info.txt") {
                read += 1;
                let text = std::fs::read_to_string(&path).unwrap();
                Index::from_text(&text)
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
        }
    }
    assert!(read >= 5, "{read} files");
}
