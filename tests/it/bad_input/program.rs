//! BMv2 JSON programs, one change away from a small good one.

use super::{Case, check, check_variants, variants};
use ringpath::switch::load::{MAX_JSON_BYTES, load};
use serde_json::{Value, json};

/// A hand-written program with one of everything.
const SMALL: &str = include_str!("../../data/switch/small.json");

fn changed(pointer: &str, value: Option<Value>) -> String {
    let mut program: Value = serde_json::from_str(SMALL).unwrap();
    match value {
        Some(value) => *program.pointer_mut(pointer).expect(pointer) = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = program.pointer_mut(parent).expect(pointer);
            parent.as_object_mut().unwrap().remove(key).expect(pointer);
        }
    }
    program.to_string()
}

fn case(wanted: &'static str, program: &[u8], part: &'static str) -> Case {
    let error = load(program).err().unwrap_or_else(|| panic!("accepted, wanted {wanted}: {part}"));
    let (kind, shown) = (variants(&error), error.to_string());
    let kind = kind.split('/').next().unwrap_or_default().to_owned();
    Case { kind, wanted, shown, place: String::new(), part }
}

/// JSON pointer, its new value (or removal), the variant, and what the message must contain.
fn changes() -> Vec<(&'static str, Option<Value>, &'static str, &'static str)> {
    let set = |pointer, value: Value, variant, part| (pointer, Some(value), variant, part);
    vec![
        set(
            "/__meta__/version",
            json!([3, 0]),
            "Version",
            "JSON version [3,0] is not supported: this switch reads 2.0 to 2.24; recompile with a matching p4c-bm2-ss",
        ),
        set(
            "/__meta__/version",
            json!("2.23"),
            "Version",
            "JSON version \"2.23\" is not supported: this switch reads 2.0 to 2.24; recompile with a matching p4c-bm2-ss",
        ),
        (
            "/header_types",
            None,
            "Missing",
            "the program: attribute `header_types` is missing; recompile the program with p4c-bm2-ss",
        ),
        (
            "/pipelines/0/tables/0/next_tables",
            None,
            "Missing",
            "table `ingress.by_kind` at small.p4(60): attribute `next_tables` is missing; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/headers",
            json!({}),
            "WrongType",
            "the program: `headers` should be a list, but is {}; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/headers/2/id",
            json!(-1),
            "WrongType",
            "header `outer`: `id` should be an integer from 0 to 4294967295, but is -1; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/headers/3/name",
            json!("outer"),
            "Duplicate",
            "header `outer`: header `outer` is defined twice; rename one of them",
        ),
        set(
            "/parsers/0/parse_states/1/name",
            json!("start"),
            "Duplicate",
            "parser state `start`: parser state `start` is defined twice; rename one of them",
        ),
        set(
            "/headers/2/header_type",
            json!("ghost_t"),
            "Unknown",
            "header `outer`: there is no header type `ghost_t`; define it or correct the reference",
        ),
        set(
            "/actions/1/primitives/0/parameters/0/value/1",
            json!("ghost"),
            "Unknown",
            "action `send` at small.p4(42): there is no field `standard_metadata.ghost`; define it or correct the reference",
        ),
        set(
            "/parsers/0/parse_states/0/transitions/0/next_state",
            json!("ghost"),
            "Unknown",
            "parser state `start`: there is no parser state `ghost`; define it or correct the reference",
        ),
        set(
            "/pipelines/0/tables/0/action_ids/0",
            json!(99),
            "Unknown",
            "table `ingress.by_kind` at small.p4(60): there is no action with id `99`; define it or correct the reference",
        ),
        set(
            "/pipelines/0/init_table",
            json!("ghost"),
            "Unknown",
            "pipeline `ingress`: there is no table or condition `ghost`; define it or correct the reference",
        ),
        set(
            "/header_types/0/fields/0/1",
            json!(0),
            "Width",
            "header type `scalars_t`: `tmp` is 0 bits wide; widths from 1 to 16384 are supported, choose another type",
        ),
        set(
            "/header_types/0/fields/0/1",
            json!(1_000_000),
            "Width",
            "header type `scalars_t`: `tmp` is 1000000 bits wide; widths from 1 to 16384 are supported, choose another type",
        ),
        set(
            "/actions/1/runtime_data/0/bitwidth",
            json!(0),
            "Width",
            "action `send`: `port` is 0 bits wide; widths from 1 to 16384 are supported, choose another type",
        ),
        set(
            "/header_types/2/fields/0/1",
            json!(7),
            "HeaderNotBytes",
            "header `outer`: its fields total 31 bits, not whole bytes; pad the header to a multiple of 8 bits",
        ),
        set(
            "/header_types/5/fields/0/1",
            json!("*"),
            "SecondVarbit",
            "header type `options_t`: a header may have one variable-length field; `data` is the second, split the header",
        ),
        set(
            "/actions/4/primitives/0/parameters/1/value",
            json!("five"),
            "Hex",
            "action `stacks`: `five` is not a hexadecimal number; write it like 0x1f",
        ),
        set(
            "/actions/2/primitives/0/op",
            json!("launch"),
            "Unsupported",
            "action `drop`: primitive `launch` is not supported by this switch; express it otherwise or open an i",
        ),
        set(
            "/calculations/0/algo",
            json!("md5"),
            "Unsupported",
            "calculation `calc`: hash algorithm `md5` is not supported by this switch; express it otherwise or op",
        ),
        set(
            "/extern_instances",
            json!([{"name": "x", "id": 0, "type": "Ext"}]),
            "Unsupported",
            "extern instance `x`: extern type `Ext` is not supported by this switch; express it otherwise or open",
        ),
        set(
            "/pipelines/0/tables/0/key/0/match_type",
            json!("fuzzy"),
            "Unsupported",
            "table `ingress.by_kind` at small.p4(60): match type `fuzzy` is not supported by this switch; express",
        ),
        set(
            "/actions/1/primitives/0/parameters",
            json!([]),
            "ParameterCount",
            "action `send` at small.p4(42): `assign` takes 2 parameters, not 0; correct the call",
        ),
        set(
            "/actions/2/primitives/0/parameters/0",
            json!({"type": "hexstr", "value": "0x1"}),
            "ParameterType",
            "action `drop`: parameter 1 of `mark_to_drop` should be a header, but is {\"type\":\"hexstr\",\"value\":\"0x",
        ),
        set(
            "/actions/1/primitives/0/parameters/0",
            json!({"type": "hexstr", "value": "0x1"}),
            "ParameterType",
            "action `send` at small.p4(42): parameter 1 of `assign` should be a field that can be written, but is",
        ),
        set(
            "/checksums/0/if_cond/value/op",
            json!("not"),
            "OperandType",
            "checksum `sum`: operator `not` needs truth value operands; correct the expression",
        ),
        set(
            "/actions/3/primitives/1/parameters/1/value",
            json!("0x9"),
            "Jump",
            "action `loop`: jump to 9, but the action has 4 statements; recompile the program",
        ),
        set(
            "/parsers/0/parse_states/0/transitions/0/value",
            json!("0x0001"),
            "TransitionWidth",
            "parser state `start`: a transition value has 2 bytes where the key has 1; correct the constant's width",
        ),
        set(
            "/parse_vsets/0/compressed_bitwidth",
            json!(9),
            "ValueSetWidth",
            "parser state `start`: value set `kinds` has 9 bits, its key 8; make them equal",
        ),
        set(
            "/pipelines/0/tables/0/match_type",
            json!("exact"),
            "MatchType",
            "table `ingress.by_kind` at small.p4(60): match type `exact` does not cover its key field of type `te",
        ),
        set(
            "/pipelines/0/tables/0/key/0/match_type",
            json!("lpm"),
            "SecondLpm",
            "table `ingress.by_kind` at small.p4(60): the key has 2 lpm fields; at most one is possible, use ternary for the rest",
        ),
        set(
            "/pipelines/0/tables/0/default_entry/action_id",
            json!(3),
            "ActionNotInTable",
            "table `ingress.by_kind` at small.p4(60): action `loop` is not among the table's actions; add it to `actions`",
        ),
        set(
            "/pipelines/0/tables/0/default_entry/action_data",
            json!(["0x1"]),
            "ActionData",
            "table `ingress.by_kind` at small.p4(60): action `drop` takes 0 values, not 1; correct the entry",
        ),
        set(
            "/pipelines/0/tables/0/entries/0/match_key",
            json!([]),
            "EntryKey",
            "table `ingress.by_kind` at small.p4(60): entry 0 has 0 match fields, the key has 2; correct the entry",
        ),
        set(
            "/pipelines/0/tables/0/entries/0/action_entry/action_data/0",
            json!("0x200"),
            "Value",
            "table `ingress.by_kind` at small.p4(60): value `0x200` does not fit 9 bits; correct the entry",
        ),
        set(
            "/pipelines/0/conditionals/0/false_next",
            json!("ingress.by_kind"),
            "Cycle",
            "table `ingress.by_kind`: the control flow comes back to it, which would never end; break the cycle",
        ),
        set(
            "/pipelines/1/name",
            json!("exgress"),
            "NotV1model",
            "there is no pipeline `egress`, which v1model needs; compile with p4c-bm2-ss --arch v1model",
        ),
        set(
            "/parsers",
            json!([]),
            "NotV1model",
            "there is no parser `parser`, which v1model needs; compile with p4c-bm2-ss --arch v1model",
        ),
        set(
            "/register_arrays/0/size",
            json!(4_000_000_000_u32),
            "TooMany",
            "register `cells`: 64-bit words of registers: 4000000000 is more than 16777216; make the program smaller",
        ),
        set(
            "/actions/4/primitives/2/parameters/1/value",
            json!("outer"),
            "TypeMismatch",
            "action `stacks`: `item_t` and `outer_t` have different types; copy between instances of one type",
        ),
        set(
            "/header_unions/0/header_ids",
            json!([8, 7]),
            "TypeMismatch",
            "header union `u`: `u_t` and `its header_ids` have different types; copy between instances of one type",
        ),
        (
            "/pipelines/0/action_profiles/0/selector",
            None,
            "Profile",
            "table `ingress.spread`: table type `indirect_ws` does not fit profile `group`: the profile has no se",
        ),
        (
            "/headers",
            None,
            "Missing",
            "the program: attribute `headers` is missing; recompile the program with p4c-bm2-ss",
        ),
        (
            "/pipelines",
            None,
            "Missing",
            "the program: attribute `pipelines` is missing; recompile the program with p4c-bm2-ss",
        ),
        (
            "/actions/1/primitives/0/op",
            None,
            "Missing",
            "action `send` at small.p4(42): attribute `op` is missing; recompile the program with p4c-bm2-ss",
        ),
        (
            "/parsers/0/init_state",
            None,
            "Missing",
            "parser `parser`: attribute `init_state` is missing; recompile the program with p4c-bm2-ss",
        ),
        (
            "/counter_arrays/0/size",
            None,
            "Missing",
            "counter `hits`: attribute `size` is missing; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/actions",
            json!(7),
            "WrongType",
            "the program: `actions` should be a list, but is 7; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/parsers/0/parse_states/0/parser_ops/0/parameters",
            json!("x"),
            "WrongType",
            "parser state `start`: `parameters` should be a list, but is \"x\"; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/pipelines/0/tables/0/max_size",
            json!("many"),
            "WrongType",
            "table `ingress.by_kind` at small.p4(60): `max_size` should be an integer from 0 to 4294967295, but i",
        ),
        set(
            "/actions/1/name",
            json!(5),
            "WrongType",
            "action `?`: `name` should be a string, but is 5; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/register_arrays/1/name",
            json!("cells"),
            "Duplicate",
            "register `cells`: register `cells` is defined twice; rename one of them",
        ),
        set(
            "/meter_arrays/0/size",
            json!(-4),
            "WrongType",
            "meter `meter`: `size` should be an integer from 0 to 4294967295, but is -4; recompile the program with p4c-bm2-ss",
        ),
        set(
            "/header_stacks/0/header_ids/0",
            json!(77),
            "Unknown",
            "header stack `items`: there is no header with id `77`; define it or correct the reference",
        ),
        set(
            "/deparsers/0/order/0",
            json!("ghost"),
            "Unknown",
            "deparser `deparser`: there is no header `ghost`; define it or correct the reference",
        ),
        set(
            "/counter_arrays/1/binding",
            json!("ingress.ghost"),
            "Unknown",
            "counter `direct`: there is no table `ingress.ghost`; define it or correct the reference",
        ),
        set(
            "/field_lists/0/elements/0/value/0",
            json!("ghost"),
            "Unknown",
            "field list `kept`: there is no header `ghost`; define it or correct the reference",
        ),
        set(
            "/register_arrays/0/bitwidth",
            json!(0),
            "Width",
            "register `cells`: `cells` is 0 bits wide; widths from 1 to 16384 are supported, choose another type",
        ),
        set(
            "/parsers/0/parse_states/0/parser_ops/0/op",
            json!("teleport"),
            "Unsupported",
            "parser state `start`: parser operation `teleport` is not supported by this switch; express it otherw",
        ),
        set(
            "/parsers/0/init_state",
            json!("ghost"),
            "Unknown",
            "parser `parser`: there is no parser state `ghost`; define it or correct the reference",
        ),
        set(
            "/pipelines/0/name",
            json!("ongress"),
            "NotV1model",
            "there is no pipeline `ingress`, which v1model needs; compile with p4c-bm2-ss --arch v1model",
        ),
        set(
            "/counter_arrays/0/size",
            json!(4_000_000_000_u32),
            "TooMany",
            "counter `hits`: counter cells: 4000000000 is more than 16777216; make the program smaller",
        ),
    ]
}

#[test]
fn every_bad_program_is_refused_with_its_element_and_a_remedy() {
    let mut cases: Vec<Case> = changes()
        .into_iter()
        .map(|(pointer, value, wanted, part)| {
            case(wanted, changed(pointer, value).as_bytes(), part)
        })
        .collect();
    let deep = "[".repeat(200) + &"]".repeat(200);
    cases.push(case("NotJson", b"table t {", "not JSON: expected"));
    cases.push(case(
        "TooDeep",
        deep.as_bytes(),
        "the program: the expression is nested deeper than",
    ));
    cases.push(case("WrongType", b"[]", "the program: `program` should be a JSON object"));
    cases.push(case("TooLarge", &vec![b' '; MAX_JSON_BYTES + 1], "bytes, more than"));
    check("BMv2 JSON", &cases);
    let source = include_str!("../../../src/switch/load/error.rs");
    check_variants(source, "LoadError", &cases, &[]);
}
