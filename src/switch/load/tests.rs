//! Good programs load, and nothing makes the loader or a program panic. Bad programs: tests/it/bad_input/program.rs.

use super::*;
use crate::switch::{
    exec::Packet,
    program::{Call, CounterNo, MeterNo, Node, Pipeline, RegisterNo, TableNo, ValueSetNo},
    state::{Facts, Lookup, Outcome, State},
};
use proptest::prelude::*;
use serde_json::json;

/// Our own program, as the P4 compiler wrote it.
const RINGPATH: &[u8] = include_bytes!("../../../p4/build/ringpath.json");
/// A hand-written program with one of everything.
const SMALL: &str = include_str!("../../../tests/data/switch/small.json");

static OURS: std::sync::LazyLock<Program> = std::sync::LazyLock::new(|| load(RINGPATH).unwrap());

fn small() -> Value {
    serde_json::from_str(SMALL).unwrap()
}

#[test]
fn our_program_loads_and_needs_no_big_integers() {
    let program = load(RINGPATH).unwrap();
    assert!(program.wide.is_empty(), "{:?}", program.wide);
    assert!(program.tables.len() > 5 && program.registers.len() > 5);
}

#[test]
fn a_program_with_one_of_everything_loads() {
    let program = load(SMALL.as_bytes()).unwrap();
    let table = &program.tables[program.table_named("ingress.by_kind").unwrap().index()];
    assert_eq!(table.key.limbs, 3, "8 bits, then 128 bits in limbs of their own");
    assert_eq!(table.const_entries.as_ref().map(Vec::len), Some(1));
    assert_eq!(table.counter, Some(CounterNo(1)));
    assert_eq!(program.actions[1].data_limbs, 3, "9 bits and 70 bits");
    let errors = program.core_errors;
    assert_eq!((errors.packet_too_short, errors.stack_out_of_bounds), (1, 3));
    assert_eq!(errors.no_match, 8, "after the largest of the program");
}

fn changed(pointer: &str, value: Option<Value>) -> Value {
    let mut program = small();
    match value {
        Some(value) => *program.pointer_mut(pointer).expect(pointer) = value,
        None => {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let parent = program.pointer_mut(parent).expect(pointer);
            parent.as_object_mut().unwrap().remove(key).expect(pointer);
        }
    }
    program
}

#[test]
fn a_message_may_have_no_parameters() {
    for nothing in [json!({}), json!([])] {
        let vector = json!({"type": "parameters_vector", "value": nothing});
        let parameters = json!([{"type": "string", "value": "here"}, vector]);
        let message = json!({"op": "log_msg", "parameters": parameters});
        let program = changed("/actions/2/primitives/0", Some(message));
        assert_eq!(load(program.to_string().as_bytes()).unwrap().messages.len(), 1);
    }
}

#[test]
fn errors_name_element_place_and_remedy() {
    let pointer = "/actions/1/primitives/0/parameters/0/value/1";
    let program = changed(pointer, Some(json!("ghost"))).to_string();
    assert_eq!(
        load(program.as_bytes()).unwrap_err().to_string(),
        "action `send` at small.p4(42): there is no field `standard_metadata.ghost`; define it or correct the reference"
    );
}

/// Answers everything in turn, so that all actions run.
#[derive(Default)]
struct Anything {
    calls: u64,
    cells: Vec<u64>,
}

impl State for Anything {
    fn apply(&mut self, _: TableNo, lookup: &Lookup<'_>, data: &mut [u64]) -> Outcome {
        self.calls += 1;
        data.fill(self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let action = (self.calls ^ (lookup.selector)()) % 7;
        Outcome {
            hit: !self.calls.is_multiple_of(3),
            action: (action != 6).then_some(action as u16),
            color: Some((self.calls % 3) as u8),
        }
    }
    fn count(&mut self, _: CounterNo, index: u64, _: Facts) -> bool {
        index < 4
    }
    fn meter(&mut self, _: MeterNo, index: u64, _: Facts) -> Option<u8> {
        (index < 4).then_some(1)
    }
    fn cells(&mut self, _: RegisterNo) -> &mut [u64] {
        &mut self.cells
    }
    fn value_set_contains(&self, _: ValueSetNo, key: &[u64]) -> bool {
        key.iter().sum::<u64>() % 2 == 0
    }
    fn random(&mut self) -> u64 {
        self.calls
    }
}

fn run_all(program: &Program, packets: &[Vec<u8>]) {
    let mut state = Anything { calls: 0, cells: vec![0; 64] };
    let mut packet = Packet::new(program, 511);
    let mut out = Vec::new();
    // Every action as a pipeline of its own, reachable or not.
    let mut all = program.clone();
    let actions = 0..program.actions.len();
    all.calls = actions.clone().map(|i| Call { action: ActionNo::from(i), next: None }).collect();
    let first = |i| Some(Node::Call(i as u32));
    all.pipelines = actions.map(|i| Pipeline { name: String::new(), first: first(i) }).collect();
    let slots = packet.phv.slots.len();
    for bytes in packets {
        let facts = Facts { now_us: 1, length: bytes.len() as u32 };
        packet.load(program, bytes);
        packet.parse(program, &mut state, facts);
        packet.run(program, 0, &mut state, facts);
        packet.run(program, 1, &mut state, facts);
        for action in 0..all.pipelines.len() {
            packet.run(&all, action, &mut state, facts);
        }
        out.clear();
        packet.deparse(program, &mut state, facts, &mut out);
        assert_eq!(packet.phv.slots.len(), slots);
        assert_eq!(packet.phv.slots[0], 0, "the null slot was written");
    }
}

/// All places of a JSON value, by pointer.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{i}"), into);
            }
        }
        Value::Object(items) => {
            for (key, item) in items {
                pointers(item, &format!("{at}/{key}"), into);
            }
        }
        _ => {}
    }
}

fn replacement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!({})),
        Just(json!(true)),
        Just(json!("")),
        Just(json!("0x0")),
        Just(json!("0xffffffffffffffffffffffffffffffffffff")),
        Just(json!("-0x1")),
        Just(json!("outer")),
        Just(json!("items")),
        Just(json!("start")),
        Just(json!("drop")),
        any::<i64>().prop_map(|n| json!(n)),
        (0_u32..70).prop_map(|n| json!(n)),
        any::<u32>().prop_map(|n| json!(n)),
        Just(json!({"type": "hexstr", "value": "0x1"})),
        Just(json!({"type": "field", "value": ["address", "address"]})),
        Just(json!({"type": "lookahead", "value": [4, 77]})),
        Just(json!({"type": "stack_field", "value": ["items", "value"]})),
        Just(
            json!({"type": "expression", "value": {"op": "-", "left": null, "right": {"type": "field", "value": ["scalars", "sign"]}}})
        ),
        Just(
            json!({"type": "expression", "value": {"op": "%", "left": {"type": "hexstr", "value": "0x5"}, "right": {"type": "field", "value": ["scalars", "key"]}}})
        ),
        Just(
            json!({"type": "expression", "value": {"op": "<<", "left": {"type": "hexstr", "value": "0x5"}, "right": {"type": "field", "value": ["address", "address"]}}})
        ),
    ]
}

proptest! {
    // PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases.max(300)))]
    #[test]
    fn no_json_and_no_packet_makes_it_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), proptest::option::weighted(0.8, replacement())), 1..4),
        packets in proptest::collection::vec(
            (prop_oneof![Just(1_u8), Just(2), Just(0x8a), any::<u8>()], proptest::collection::vec(any::<u8>(), 0..60))
                .prop_map(|(kind, mut rest)| { rest.insert(0, kind); rest }),
            1..6,
        ),
    ) {
        let mut program = small();
        for (index, value) in edits {
            let mut all = Vec::new();
            pointers(&program, "", &mut all);
            let pointer = index.get(&all).clone();
            match (value, pointer.rsplit_once('/')) {
                (Some(value), _) => *program.pointer_mut(&pointer).unwrap() = value,
                (None, Some((parent, key))) => match program.pointer_mut(parent).unwrap() {
                    Value::Object(object) => { object.remove(key); }
                    Value::Array(list) => { list.remove(key.parse().unwrap()); }
                    _ => {}
                },
                (None, None) => program = Value::Null,
            }
        }
        if let Ok(program) = load(program.to_string().as_bytes()) {
            run_all(&program, &packets);
        }
    }

    #[test]
    fn no_packet_makes_our_program_panic(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..120), 1..3),
        kinds in proptest::collection::vec(prop_oneof![Just(0x0800_u16), Just(0x88b5), Just(0x88b6), Just(0x0806)], 3),
    ) {
        let mut packets = packets;
        for (packet, kind) in packets.iter_mut().zip(&kinds) {
            if packet.len() > 15 {
                packet[12..14].copy_from_slice(&kind.to_be_bytes());
                packet[14] = 0x45;
            }
        }
        run_all(&OURS, &packets);
    }
}

#[test]
fn a_loop_that_never_ends_is_stopped_and_counted() {
    // `loop` jumps back while scalars.key is 0, which it stays.
    let mut json = small();
    json["pipelines"][1]["tables"][0]["default_entry"]["action_id"] = json!(3);
    let program = load(json.to_string().as_bytes()).unwrap();
    let mut packet = Packet::new(&program, 511);
    packet.load(&program, &[0; 4]);
    let mut state = Anything { calls: 0, cells: vec![0; 8] };
    packet.run(&program, 1, &mut state, Facts::default());
    assert_eq!(packet.faults.budget, 1);
    assert_eq!(packet.phv.get(program.layout.field_named("scalars", "tmp").unwrap()), 8_193);
}

#[test]
fn arithmetic_of_older_compilers_assigns_its_result() {
    let mut json = small();
    json["actions"][3]["primitives"] = json!([
        {"op": "subtract_from_field", "parameters": [{"type": "field", "value": ["scalars", "tmp"]}, {"type": "hexstr", "value": "0x1"}]},
        {"op": "shift_right", "parameters": [
            {"type": "field", "value": ["scalars", "key"]}, {"type": "field", "value": ["scalars", "tmp"]}, {"type": "hexstr", "value": "0x1c"}]}
    ]);
    json["pipelines"][1]["tables"][0]["default_entry"]["action_id"] = json!(3);
    let program = load(json.to_string().as_bytes()).unwrap();
    let mut packet = Packet::new(&program, 511);
    packet.run(&program, 1, &mut Anything::default(), Facts::default());
    let get = |field| packet.phv.get(program.layout.field_named("scalars", field).unwrap());
    assert_eq!((get("tmp"), get("key")), (0xffff_ffff, 0xf));
}
