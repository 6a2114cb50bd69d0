//! What the commands print about a switch that answers well.

use super::{Primary, Switch, data, ours, ringpath};
use serde_json::{Value, json};

/// The values of one key in a list of objects.
fn column<'a>(list: &'a Value, key: &str) -> Vec<&'a Value> {
    list.as_array().unwrap().iter().map(|item| &item[key]).collect()
}

fn keys(value: &Value) -> String {
    value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pushed_program_is_described_without_files() {
    let (switch, _primary) = ours();
    let shown = switch.json(&["p4info", "show"]);
    assert_eq!(keys(&shown), "name version arch cookie p4runtime_version counts");
    assert_eq!(shown["arch"], "v1model");
    assert_eq!(shown["cookie"], 0xc0ffee);
    assert_eq!(shown["p4runtime_version"], "1.5.0");
    assert!(shown["counts"]["table"].as_u64() > Some(5), "{shown}");
    let text = switch.text(&["p4info", "show"]);
    assert!(text.contains("cookie         0xc0ffee\n"), "{text}");

    let one = switch.json(&["p4info", "show", "path_forward"]);
    let table = &one["objects"][0];
    assert_eq!(keys(table), "kind name alias id size key actions");
    assert_eq!(table["key"], json!([{ "field": "label", "match": "exact", "bits": 16 }]));
    let text = switch.text(&["p4info", "show", "tag"]);
    assert!(text.starts_with("action LeafIngress.classify.tag\n"), "{text}");
    assert!(text.contains("    label/16\n") && text.contains("    flip_gap/32\n"), "{text}");

    let all = switch.json(&["p4info", "ls"]);
    let kinds = column(&all["objects"], "kind");
    for kind in ["table", "action", "counter", "direct counter", "register", "packet header"] {
        assert!(kinds.contains(&&json!(kind)), "{kind}");
    }
    // The file says the same as the switch, without any switch.
    let file = crate::rig::repo("p4/build/ringpath.p4info.txtpb");
    let output = ringpath()
        .args(["p4info", "ls", "-o", "json", "--p4info", &file.display().to_string()])
        .args(["--address", "127.0.0.1:1"])
        .output()
        .unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), all);
}

#[test]
fn entries_of_our_program_are_listed_filtered_and_read() {
    let (switch, _primary) = ours();
    let text = switch.text(&["table", "show", "classify"]);
    assert!(text.starts_with("LeafIngress.classify.classify: 2 of 16384 entries\n"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("tag(")).collect();
    assert!(rows[0].contains("20") && rows[1].contains("10.0.1.2"), "highest first: {text}");
    assert!(rows[0].starts_with("│ 10.0.0.1") && rows[0].contains("queue=6"), "{text}");
    assert!(text.contains("(default)") && text.contains("NoAction()"), "{text}");

    let shown = switch.json(&["table", "show", "classify", "dst_addr=10.0.1.0/24"]);
    assert_eq!(column(&shown["entries"], "priority"), [&json!(20), &json!(10)]);
    let shown = switch.json(&["table", "show", "classify", "dst_addr=10.0.2.0/24"]);
    assert_eq!(column(&shown["entries"], "priority"), [&json!(20)]);
    let entry = &shown["entries"][0];
    assert_eq!(keys(entry), "table default const priority match action counter");
    assert_eq!(entry["match"], json!({ "src_addr": "10.0.0.1" }));
    assert_eq!(entry["action"]["name"], "LeafIngress.classify.tag");
    assert_eq!(entry["action"]["params"]["flip_gap"], "1000");
    assert_eq!(entry["counter"], json!({ "packets": 0, "bytes": 0 }));
    let text = switch.text(&["table", "show", "classify", "src_addr=10.0.0.2"]);
    assert_eq!(text, "LeafIngress.classify.classify: 0 entries match\n");

    let text = switch.text(&["table", "read", "path_forward", "label=0x3"]);
    assert!(text.contains("  label = 3\n") && text.contains("forward(port=7)\n"), "{text}");
    let read = switch.json(&["table", "read", "classify", "src_addr=10.0.0.1"]);
    assert_eq!(column(&read["entries"], "priority"), [&json!(20)], "the key, not what it covers");

    let info = switch.json(&["table", "info", "path_forward"]);
    assert_eq!(
        keys(&info),
        "name alias id size key actions const idle_timeout counter meter profile used default_action"
    );
    assert_eq!((&info["used"], &info["size"]), (&json!(2), &json!(16384)));
    assert_eq!(info["default_action"]["name"], "LeafIngress.path.path_miss");
    let text = switch.text(&["table", "info", "path_forward"]);
    assert!(text.contains("entries  2 of 16384\n") && text.contains("label exact/16\n"), "{text}");

    let counted = switch.json(&["counter", "read", "path_counter", "label=4"]);
    assert_eq!((&counted["direct"], &counted["size"]), (&json!(true), &Value::Null));
    assert_eq!(counted["entries"][0]["match"], json!({ "label": "4" }));
    assert_eq!(counted["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn every_table_of_a_program_is_listed_and_all_entries_are_shown_together() {
    let switch = Switch::conforming(&[]);
    let listed = switch.json(&["table", "ls"]);
    let names = column(&listed["tables"], "alias");
    assert_eq!(
        names,
        ["exact_t", "all_kinds", "lpm_t", "const_t", "route", "indirect", "keyless", "named"]
    );
    assert_eq!(listed["tables"][0]["counter"], "MyIngress.exact_counter");
    assert_eq!(listed["tables"][4]["profile"], "MyIngress.ecmp");
    let text = switch.text(&["table", "ls"]);
    assert!(text.contains("e exact/8, l lpm/32, t ternary/12, r range/16, o optional/1"), "{text}");
    let shown = switch.json(&["table", "show"]);
    let const_entries: Vec<&Value> = shown["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["const"] == json!(true) && entry["default"] == json!(false))
        .collect();
    assert_eq!(const_entries.len(), 2, "{shown}");
    assert_eq!(
        const_entries[0]["action"]["params"],
        json!({ "port": "2", "mac": "00:00:00:00:00:00" })
    );
    let text = switch.text(&["table", "show", "keyless"]);
    assert!(text.contains("MyIngress.keyless: 0 of"), "{text}");
}

#[test]
fn all_match_kinds_print_in_the_form_that_filters_take() {
    let switch = Switch::conforming(&[]);
    let primary = Primary::new(&switch);
    primary.write(
        r#"updates { type: INSERT entity { table_entry { table_id: 0x02000002 priority: 7
          match { field_id: 1 exact { value: "\x01" } }
          match { field_id: 2 lpm { value: "\x0a\x00\x00\x00" prefix_len: 8 } }
          match { field_id: 3 ternary { value: "\x02" mask: "\x0f" } }
          match { field_id: 4 range { low: "\x05" high: "\x09" } }
          match { field_id: 5 optional { value: "\x01" } }
          action { action { action_id: 0x01000002 params { param_id: 1 value: "\x03" }
            params { param_id: 2 value: "\x02\x00\x00\x00\x00\x07" } } } metadata: "mine" } } }"#,
    );
    let shown = switch.json(&["table", "show", "all_kinds", "t=0xf2"]);
    let entry = &shown["entries"][0];
    let wanted = json!({ "e": "1", "l": "10.0.0.0/8", "t": "0x2&0xf", "r": "5..9", "o": "1" });
    assert_eq!(entry["match"], wanted);
    assert_eq!(entry["action"]["params"], json!({ "port": "3", "mac": "02:00:00:00:00:07" }));
    assert_eq!(entry["metadata"], "mine");
    // What was printed is a key.
    let words: Vec<String> = wanted
        .as_object()
        .unwrap()
        .iter()
        .map(|(field, value)| format!("{field}={}", value.as_str().unwrap()))
        .collect();
    let mut read = vec!["table", "read", "all_kinds", "--priority", "7"];
    read.extend(words.iter().map(String::as_str));
    assert_eq!(&switch.json(&read)["entries"][0], entry);
}

#[test]
fn cells_of_registers_and_counters_are_read_by_index_range_and_content() {
    let switch = Switch::conforming(&[]);
    let primary = Primary::new(&switch);
    primary.write(
        r#"updates { type: MODIFY entity { register_entry { register_id: 0x16000001
          index { index: 3 } data { bitstring: "\x01\x00" } } } }
        updates { type: MODIFY entity { register_entry { register_id: 0x16000001
          index { index: 6 } data { bitstring: "\x07" } } } }
        updates { type: MODIFY entity { register_entry { register_id: 0x16000002
          index { index: 1 } data { bitstring: "\xff" } } } }
        updates { type: MODIFY entity { counter_entry { counter_id: 0x12000001
          index { index: 4 } data { packet_count: 2 byte_count: 99 } } } }"#,
    );
    let listed = switch.json(&["register", "ls"]);
    assert_eq!(column(&listed["registers"], "type"), ["bit<32>", "int<8>"]);
    let read = switch.json(&["register", "read", "cells", "--nonzero"]);
    assert_eq!(keys(&read), "name alias id size type cells");
    assert_eq!(read["cells"], json!([{ "index": 3, "value": 256 }, { "index": 6, "value": 7 }]));
    let read = switch.json(&["register", "read", "MyIngress.cells", "2..3", "7"]);
    assert_eq!(column(&read["cells"], "value"), [&json!(0), &json!(256), &json!(0)]);
    let read = switch.json(&["register", "read", "smalls", "1"]);
    assert_eq!(read["cells"], json!([{ "index": 1, "value": -1 }]));
    let text = switch.text(&["register", "read", "cells", "--nonzero"]);
    assert!(text.starts_with("MyIngress.cells: 2 of 8 cells are not 0\n"), "{text}");
    let shown = switch.json(&["register", "show", "cells"]);
    assert_eq!(shown["largest"], json!({ "index": 3, "value": 256 }));
    let text = switch.text(&["register", "show", "cells"]);
    assert!(text.contains("cells     8, 2 of them not 0\nlargest   256 in cell 3\n"), "{text}");

    let listed = switch.json(&["counter", "ls"]);
    assert_eq!(column(&listed["counters"], "direct"), [&json!(false), &json!(true)]);
    let read = switch.json(&["counter", "read", "drops", "--nonzero"]);
    assert_eq!(read["cells"], json!([{ "index": 4, "packets": 2, "bytes": 99 }]));
    let shown = switch.json(&["counter", "show", "drops"]);
    assert_eq!(shown["sum"], json!({ "packets": 2, "bytes": 99 }));
    let text = switch.text(&["counter", "show", "exact_counter"]);
    assert!(text.contains("table    MyIngress.exact_t\n"), "{text}");
}

#[test]
fn a_p4info_file_stands_in_where_the_switch_gives_none() {
    // Without P4Info the program runs, but its server has none to give.
    let switch = Switch::start(&[&data("program.json"), "--log", "error"]);
    let output = switch.run(&["table", "ls"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(super::stderr(&output).contains("no program"), "{}", super::stderr(&output));
    let info = data("program.p4info.txtpb");
    let text = switch.text(&["table", "ls", "--p4info", &info]);
    assert!(text.contains("MyIngress.exact_t"), "{text}");
}
