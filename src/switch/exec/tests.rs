//! Parsers, headers, checksums and deparsers on a hand-written program (`tests/data/switch/small.json`).

use super::*;
use crate::switch::load::load;
use crate::switch::phv::HeaderNo;
use crate::switch::program::{CounterNo, MeterNo, RegisterNo, ValueSetNo};
use crate::switch::state::Outcome;

/// Misses every table; the value set holds `member`.
#[derive(Default)]
struct Misses {
    member: u64,
}

impl State for Misses {
    fn apply(&mut self, _: TableNo, _: &Lookup<'_>, _: &mut [u64]) -> Outcome {
        Outcome::default()
    }
    fn count(&mut self, _: CounterNo, _: u64, _: Facts) -> bool {
        true
    }
    fn meter(&mut self, _: MeterNo, _: u64, _: Facts) -> Option<u8> {
        Some(0)
    }
    fn cells(&mut self, _: RegisterNo) -> &mut [u64] {
        &mut []
    }
    fn value_set_contains(&self, _: ValueSetNo, key: &[u64]) -> bool {
        key == [self.member]
    }
    fn random(&mut self) -> u64 {
        0
    }
}

struct Rig {
    program: Program,
    packet: Packet,
    state: Misses,
}

impl Rig {
    fn new() -> Self {
        let json = include_str!("../../../tests/data/switch/small.json");
        let program = load(json.as_bytes()).unwrap();
        let packet = Packet::new(&program, 511);
        Self { program, packet, state: Misses { member: 0xff } }
    }

    fn parse(&mut self, bytes: &[u8]) -> u64 {
        self.packet.load(&self.program, bytes);
        self.packet.parse(&self.program, &mut self.state, Facts::default());
        self.packet.phv.get(self.program.intrinsic.parser_error)
    }

    fn deparse(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.packet.deparse(&self.program, &mut self.state, Facts::default(), &mut out);
        out
    }

    /// What comes out, apart from the checksum, which is bytes 2 and 3.
    fn round_trip(&mut self, bytes: &[u8]) -> Vec<u8> {
        assert_eq!(self.parse(bytes), 0);
        let mut out = self.deparse();
        out[2..4].copy_from_slice(&bytes[2..4]);
        out
    }

    fn get(&self, header: &str, field: &str) -> u64 {
        self.packet.phv.get(self.program.layout.field_named(header, field).unwrap())
    }

    fn header(&self, name: &str) -> HeaderNo {
        self.program.layout.header_named(name).unwrap()
    }

    fn headers(&mut self) -> Headers<'_> {
        Headers { program: &self.program, slots: &mut self.packet.phv.slots }
    }
}

#[test]
fn a_packet_that_is_too_short_passes_as_it_came() {
    let mut rig = Rig::new();
    assert_eq!(rig.parse(&[1, 2, 3]), 1, "PacketTooShort");
    assert_eq!(rig.get("outer", "$valid$"), 0);
    assert_eq!(rig.deparse(), [1, 2, 3]);
    assert_eq!(rig.parse(&[]), 1);
}

#[test]
fn a_stack_fills_up_and_one_element_too_many_is_an_error() {
    let mut rig = Rig::new();
    let bytes = [1, 0, 0, 0, 0x00, 0x07, 0x80, 0x09, 0xaa];
    assert_eq!(rig.round_trip(&bytes), bytes);
    assert_eq!((rig.get("items[0]", "value"), rig.get("items[1]", "value")), (7, 9));
    assert_eq!(rig.parse(&[1, 0, 0, 0, 0, 7, 0, 9, 0, 1]), 3, "StackOutOfBounds");
    assert_eq!(rig.get("items[1]", "value"), 9, "what was extracted stays");
}

#[test]
fn a_wide_field_and_a_look_ahead_are_read_and_written_back() {
    let mut rig = Rig::new();
    let mut bytes = vec![0x8a, 0, 0, 0];
    bytes.extend(1..=16);
    bytes.push(0xee);
    assert_eq!(rig.round_trip(&bytes), bytes);
    assert_eq!(rig.get("scalars", "key"), 2, "8 bits, 8 bits ahead");
    let at = rig.program.layout.field_named("address", "address").unwrap();
    assert_eq!(rig.packet.phv.limbs(at), [0x090a_0b0c_0d0e_0f10, 0x0102_0304_0506_0708]);
    bytes.truncate(12);
    assert_eq!(rig.parse(&bytes), 1, "half an address");
}

#[test]
fn a_variable_length_header_keeps_its_length() {
    let mut rig = Rig::new();
    for length in [0_u8, 1, 5, 16] {
        let mut bytes = vec![2, 0, 0, 0, length];
        bytes.extend((0..length).map(|i| i + 1));
        bytes.extend([0xaa, 0xbb]);
        assert_eq!(rig.round_trip(&bytes), bytes, "length {length}");
    }
    let too_long = [&[2, 0, 0, 0, 17][..], &[0; 20]].concat();
    let wanted = u64::from(rig.program.core_errors.header_too_short);
    assert_eq!(rig.parse(&too_long), wanted, "longer than the header may be");
}

#[test]
fn verify_stops_the_parser_with_the_error_of_the_program() {
    let mut rig = Rig::new();
    assert_eq!(rig.parse(&[1, 0xf0, 0, 0, 0x80, 1]), 7);
    assert_eq!(rig.get("items[0]", "$valid$"), 0);
    assert_eq!(rig.get("outer", "count"), 15);
}

#[test]
fn transitions_go_by_value_mask_set_and_default() {
    let mut rig = Rig::new();
    let address = [&[0, 0, 0, 0][..], &[9; 16]].concat();
    for (kind, extracted) in [(0x80, 1), (0x8f, 1), (0x90, 0), (0xff, 1), (0x03, 0)] {
        let mut bytes = address.clone();
        bytes[0] = kind;
        rig.parse(&bytes);
        assert_eq!(rig.get("address", "$valid$"), extracted, "kind {kind:#x}");
    }
    rig.state.member = 3;
    let mut bytes = address;
    bytes[0] = 3;
    rig.parse(&bytes);
    assert_eq!(rig.get("address", "$valid$"), 1, "now in the set");
}

#[test]
fn checksums_are_verified_after_parsing_and_updated_before_deparsing() {
    let mut rig = Rig::new();
    rig.parse(&[3, 0x21, 0, 0, 0x55]);
    assert_eq!(rig.get("standard_metadata", "checksum_error"), 1);
    let out = rig.deparse();
    // Kind and flags are one word, then 16 zero bits, then the payload padded with zeros.
    let sum = !(0x0321_u16 + 0x5500);
    assert_eq!(out, [3, 0x21, (sum >> 8) as u8, sum as u8, 0x55]);
    rig.parse(&out);
    assert_eq!(rig.get("standard_metadata", "checksum_error"), 0);
}

#[test]
fn a_union_has_one_valid_member() {
    let mut rig = Rig::new();
    rig.parse(&[3, 0, 0, 0]);
    let (item, address) = (rig.header("u.item"), rig.header("u.address"));
    rig.headers().set_valid(item.0.into());
    assert_eq!(rig.headers().valid_member(0), Some((0, item)));
    rig.headers().set_valid(address.0.into());
    assert_eq!(rig.headers().valid_member(0), Some((1, address)));
    rig.headers().set_invalid(address.0.into());
    assert_eq!(rig.headers().valid_member(0), None);
}

#[test]
fn push_and_pop_shift_the_elements_and_set_valid_clears() {
    let mut rig = Rig::new();
    rig.parse(&[1, 0, 0, 0, 0x00, 0x07, 0x80, 0x09]);
    rig.headers().shift_stack(0, 1, true);
    let seen = |rig: &Rig| {
        let one = |i: usize| {
            let name = format!("items[{i}]");
            (rig.get(&name, "$valid$") != 0).then(|| rig.get(&name, "value"))
        };
        [one(0), one(1)]
    };
    assert_eq!(seen(&rig), [None, Some(7)], "9 fell off the end");
    let first = rig.header("items[0]");
    rig.headers().set_valid(first.0.into());
    assert_eq!(seen(&rig), [Some(0), Some(7)]);
    rig.headers().shift_stack(0, 1, false);
    assert_eq!(seen(&rig), [Some(7), None]);
    rig.headers().shift_stack(0, 1_000, false);
    assert_eq!(seen(&rig), [None, None]);
}

#[test]
fn kept_fields_survive_and_the_rest_of_the_metadata_does_not() {
    let mut rig = Rig::new();
    rig.parse(&[3, 0, 0, 0]);
    let tmp = rig.program.layout.field_named("scalars", "tmp").unwrap();
    let key = rig.program.layout.field_named("scalars", "key").unwrap();
    rig.packet.phv.set(tmp, 77);
    rig.packet.phv.set(key, 5);
    let before = rig.packet.phv.clone();
    rig.packet.restart(&rig.program);
    rig.packet.keep(&rig.program, 1, &before);
    assert_eq!((rig.packet.phv.get(tmp), rig.packet.phv.get(key)), (77, 0));
    rig.packet.keep(&rig.program, 9, &before);
    assert_eq!(rig.packet.phv.get(key), 0, "an unknown list keeps nothing");
}

#[test]
fn a_packet_cut_by_truncate_loses_its_end() {
    let mut rig = Rig::new();
    rig.parse(&[3, 0, 0, 0, 1, 2, 3, 4]);
    rig.packet.asks.truncate = Some(6);
    assert_eq!(rig.deparse().len(), 6);
}

#[test]
fn mark_to_drop_marks_the_copy_that_it_is_given() {
    let json = include_str!("../../../tests/data/switch/small.json");
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    let mut copy = json["headers"][1].clone();
    copy["name"] = "copy".into();
    copy["id"] = 99.into();
    json["headers"].as_array_mut().unwrap().push(copy);
    json["actions"][2]["primitives"][0]["parameters"][0]["value"] = "copy".into();
    let program = load(json.to_string().as_bytes()).unwrap();
    let mut rig = Rig { packet: Packet::new(&program, 511), program, state: Misses::default() };
    let at = |rig: &Rig, header, field| rig.program.layout.field_named(header, field).unwrap();
    for header in ["copy", "standard_metadata"] {
        rig.packet.phv.set(at(&rig, header, "egress_spec"), 7);
        rig.packet.phv.set(at(&rig, header, "mcast_grp"), 8);
    }
    let entry = rig.program.actions[2].entry;
    Machine::new(&rig.program, &mut rig.packet, &mut rig.state, Facts::default()).code(entry);
    assert_eq!((rig.get("copy", "egress_spec"), rig.get("copy", "mcast_grp")), (511, 0));
    let own =
        (rig.get("standard_metadata", "egress_spec"), rig.get("standard_metadata", "mcast_grp"));
    assert_eq!(own, (7, 8));
}
