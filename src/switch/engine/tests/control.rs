use super::super::*;
use super::rig::{Rig, command, exact, lpm, optional, range, ternary};
use crate::p4runtime::proto::p4::v1::action_profile_group::Member;
use crate::p4runtime::proto::p4::v1::action_profile_group::member::WatchKind;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update as Said;
use crate::p4runtime::proto::p4::v1::table_action::Type as ActionType;
use crate::p4runtime::proto::p4::v1::table_entry::IdleTimeout;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember,
    CounterData, CounterEntry, DigestEntry, DirectCounterEntry, FieldMatch, Index as Cell,
    MeterConfig, MeterEntry, P4Data, P4StructLike, RegisterEntry, TableAction, TableEntry,
    ValueSetEntry, ValueSetMember, digest_entry,
};
use crate::p4runtime::value::encode;

const MISS: u32 = 0xffff_ffff;

#[test]
fn every_kind_of_match_hits_and_misses() {
    let mut rig = Rig::new();
    rig.insert("exact_table", &[("key", exact(5))], 0, ("result_counted", &[("value", 50)]));
    rig.insert("lpm_table", &[("key", lpm(0x0a00_0000, 8))], 0, ("result", &[("value", 8)]));
    rig.insert("lpm_table", &[("key", lpm(0x0a01_0000, 16))], 0, ("result", &[("value", 16)]));
    rig.insert("lpm_table", &[], 0, ("result", &[("value", 1)]));
    let any = [("key", ternary(1, 1))];
    rig.insert("ternary_table", &any, 10, ("result", &[("value", 10)]));
    let both = [("key", ternary(1, 1)), ("arg", optional(9))];
    rig.insert("ternary_table", &both, 20, ("result", &[("value", 20)]));
    rig.insert("range_table", &[("key", range(100, 200))], 1, ("result", &[("value", 1)]));
    rig.insert("range_table", &[("key", range(150, 150))], 2, ("result", &[("value", 2)]));
    for (op, arg, key, want) in [
        (1, 0, 5, 50),
        (1, 0, 6, MISS),
        (2, 0, 0x0a01_0203, 16),
        (2, 0, 0x0a02_0203, 8),
        (2, 0, 0x0b00_0000, 1),
        (3, 0, 3, 10),
        (3, 9, 3, 20),
        (3, 9, 2, MISS),
        (4, 0, 100, 1),
        (4, 0, 150, 2),
        (4, 0, 200, 1),
        (4, 0, 201, MISS),
        (5, 0, 7, 70),
        (5, 0, 8, 71),
        (5, 0, 9, 72),
    ] {
        assert_eq!(rig.ask(op, arg, 0, key).unwrap().result, want, "op {op} arg {arg} key {key}");
    }
}

#[test]
fn entries_read_back_as_written() {
    let mut rig = Rig::new();
    rig.insert("lpm_table", &[("key", lpm(0x0a00_0000, 8))], 0, ("result", &[("value", 8)]));
    rig.insert("lpm_table", &[], 0, ("result", &[("value", 0)]));
    let key = [("key", ternary(0x0100, 0x0f00)), ("arg", optional(0))];
    rig.insert("ternary_table", &key, 5, ("result", &[("value", 20)]));
    rig.insert("range_table", &[("key", range(0, 200))], 1, ("missed", &[]));
    let written = |rig: &Rig, table: &str, key: &[_], priority, action| {
        let action = ActionType::Action(action);
        rig.entry(table, key, priority, Some(action))
    };
    let result = |rig: &Rig, value| rig.action("result", &[("value", value)]);
    let first = written(&rig, "lpm_table", &[("key", lpm(0x0a00_0000, 8))], 0, result(&rig, 8));
    let second = written(&rig, "lpm_table", &[], 0, result(&rig, 0));
    assert_eq!(rig.read_all("lpm_table"), [first, second]);
    let third = written(&rig, "ternary_table", &key, 5, result(&rig, 20));
    assert_eq!(rig.read_all("ternary_table"), [third]);
    let fourth =
        written(&rig, "range_table", &[("key", range(0, 200))], 1, rig.action("missed", &[]));
    assert_eq!(rig.read_all("range_table"), [fourth]);
    // All tables at once: these four, the const entries and the entry of `deliver`.
    assert_eq!(rig.read(Kinds::TableEntry(TableEntry::default())).len(), 4 + 3 + 1);
    let constant = rig.read_all("const_table");
    assert!(constant.iter().all(|entry| entry.is_const && entry.priority > 0), "{constant:?}");
}

#[test]
fn reads_filter_by_key_priority_and_action() {
    let mut rig = Rig::new();
    for (value, priority) in [(1, 10), (1, 20), (2, 10)] {
        let key = [("key", ternary(value, 0xff))];
        rig.insert("ternary_table", &key, priority, ("result", &[("value", value)]));
    }
    rig.insert("ternary_table", &[("key", ternary(3, 0xff))], 10, ("missed", &[]));
    let count = |entry: TableEntry| rig.read(Kinds::TableEntry(entry)).len();
    assert_eq!(count(rig.entry("ternary_table", &[("key", ternary(1, 0xff))], 0, None)), 2);
    assert_eq!(count(rig.entry("ternary_table", &[("key", ternary(1, 0xff))], 20, None)), 1);
    assert_eq!(count(rig.entry("ternary_table", &[("key", ternary(1, 0xff))], 30, None)), 0);
    assert_eq!(count(rig.entry("ternary_table", &[], 10, None)), 3);
    let missed = ActionType::Action(rig.action("missed", &[]));
    assert_eq!(count(rig.entry("ternary_table", &[], 0, Some(missed))), 1);
}

#[test]
fn wrong_updates_get_the_codes_of_the_specification() {
    let mut rig = Rig::new();
    let action =
        |rig: &Rig| Some(ActionType::Action(rig.action("result_counted", &[("value", 1)])));
    let entry = |rig: &Rig, key| rig.entry("exact_table", &[("key", exact(key))], 0, action(rig));
    let one = Kinds::TableEntry(entry(&rig, 1));
    assert_eq!(rig.write(Type::Modify, one.clone()), Err(Code::NotFound));
    assert_eq!(rig.write(Type::Delete, one.clone()), Err(Code::NotFound));
    rig.write(Type::Insert, one.clone()).unwrap();
    assert_eq!(rig.write(Type::Insert, one.clone()), Err(Code::AlreadyExists));
    for key in 2..=16 {
        let more = Kinds::TableEntry(entry(&rig, key));
        rig.write(Type::Insert, more).unwrap();
    }
    let more = Kinds::TableEntry(entry(&rig, 17));
    assert_eq!(rig.write(Type::Insert, more.clone()), Err(Code::ResourceExhausted));
    rig.write(Type::Delete, one).unwrap();
    rig.write(Type::Insert, more).unwrap();
    let constant = rig.entry("const_table", &[("key", ternary(1, 1))], 9, None);
    assert_eq!(rig.write(Type::Insert, Kinds::TableEntry(constant)), Err(Code::PermissionDenied));
    let mut default = rig.entry("const_table", &[], 0, None);
    default.is_default_action = true;
    assert_eq!(rig.write(Type::Modify, Kinds::TableEntry(default)), Err(Code::PermissionDenied));
}

#[test]
fn bmv2s_codes_are_given_when_asked_for() {
    let mut rig = Rig::with(Config { mimic_bmv2: true, ..Config::default() });
    for key in 0..17 {
        let action = ActionType::Action(rig.action("result_counted", &[("value", 1)]));
        let entry = rig.entry("exact_table", &[("key", exact(key))], 0, Some(action));
        let want = if key < 16 { Ok(()) } else { Err(Code::Unknown) };
        assert_eq!(rig.write(Type::Insert, Kinds::TableEntry(entry)), want);
    }
    let register_id = rig.info.register("cells").unwrap().names.id;
    let cell = RegisterEntry { register_id, ..RegisterEntry::default() };
    assert_eq!(rig.write(Type::Modify, Kinds::RegisterEntry(cell)), Err(Code::Unimplemented));
}

#[test]
fn the_default_entry_changes_and_goes_back() {
    let mut rig = Rig::new();
    let action = ActionType::Action(rig.action("result", &[("value", 77)]));
    let mut default = rig.entry("lpm_table", &[], 0, Some(action));
    default.is_default_action = true;
    rig.write(Type::Modify, Kinds::TableEntry(default.clone())).unwrap();
    assert_eq!(rig.ask(2, 0, 0, 1).unwrap().result, 77);
    let mut asked = rig.entry("lpm_table", &[], 0, None);
    asked.is_default_action = true;
    assert_eq!(rig.read(Kinds::TableEntry(asked.clone())), [Kinds::TableEntry(default)]);
    rig.write(Type::Modify, Kinds::TableEntry(asked)).unwrap();
    assert_eq!(rig.ask(2, 0, 0, 1).unwrap().result, MISS);
}

#[test]
fn direct_counters_and_meters_follow_their_entry() {
    let mut rig = Rig::new();
    let action = ActionType::Action(rig.action("result_counted", &[("value", 1)]));
    let mut entry = rig.entry("exact_table", &[("key", exact(5))], 0, Some(action));
    // 100 bytes of burst: the first packet of 60 is green, the second yellow, the third red.
    let meter = MeterConfig { cir: 1, cburst: 100, pir: 1, pburst: 130, eburst: 0 };
    entry.meter_config = Some(meter);
    rig.write(Type::Insert, Kinds::TableEntry(entry.clone())).unwrap();
    let colors: Vec<u16> = (0..3).map(|_| rig.ask(1, 0, 9, 5).unwrap().index).collect();
    assert_eq!(colors, [0, 1, 2]);
    let mut asked = rig.entry("exact_table", &[("key", exact(5))], 0, None);
    asked.counter_data = Some(CounterData::default());
    asked.meter_config = Some(MeterConfig::default());
    let read = rig.read(Kinds::TableEntry(asked));
    let [Kinds::TableEntry(read)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(read.counter_data, Some(CounterData { byte_count: 180, packet_count: 3 }));
    assert_eq!(read.meter_config, Some(meter));
    assert_eq!(rig.read_all("exact_table")[0].counter_data, None, "only when asked for");

    let pattern = DirectCounterEntry::default();
    let all = rig.read(Kinds::DirectCounterEntry(pattern));
    let [Kinds::DirectCounterEntry(one)] = &all[..] else { panic!("{all:?}") };
    assert_eq!(one.data, Some(CounterData { byte_count: 180, packet_count: 3 }));
    // MODIFY leaves the counter unless it is set, and resets the meter unless it is set.
    entry.meter_config = None;
    rig.write(Type::Modify, Kinds::TableEntry(entry)).unwrap();
    assert_eq!(rig.ask(1, 0, 9, 5).unwrap().index, 0);
    // The same for the counter's own entity (section 9.3.1).
    let data = |data| DirectCounterEntry { table_entry: one.table_entry.clone(), data };
    rig.write(Type::Modify, Kinds::DirectCounterEntry(data(None))).unwrap();
    assert_eq!(
        rig.read(Kinds::DirectCounterEntry(data(None)))[0],
        Kinds::DirectCounterEntry(data(Some(CounterData { byte_count: 240, packet_count: 4 })))
    );
    let zero = data(Some(CounterData::default()));
    rig.write(Type::Modify, Kinds::DirectCounterEntry(zero)).unwrap();
    let all = rig.read(Kinds::DirectCounterEntry(DirectCounterEntry::default()));
    let [Kinds::DirectCounterEntry(one)] = &all[..] else { panic!("{all:?}") };
    assert_eq!(one.data, Some(CounterData::default()));
}

#[test]
fn counters_and_meters_are_read_and_written_by_index_or_whole() {
    let mut rig = Rig::new();
    rig.ask(8, 0, 3, 0);
    rig.ask(8, 0, 8, 0); // beyond the array: counts nothing
    let counter_id = rig.info.counter("seen").unwrap().names.id;
    let all = CounterEntry { counter_id, ..CounterEntry::default() };
    let packets = |rig: &Rig| -> Vec<i64> {
        let read = rig.read(Kinds::CounterEntry(all));
        let count = |kind: &Kinds| match kind {
            Kinds::CounterEntry(entry) => entry.data.unwrap().packet_count,
            other => panic!("{other:?}"),
        };
        read.iter().map(count).collect()
    };
    assert_eq!(packets(&rig), [0, 0, 0, 1, 0, 0, 0, 0]);
    let data = Some(CounterData { byte_count: 0, packet_count: 9 });
    rig.write(Type::Modify, Kinds::CounterEntry(CounterEntry { data, ..all })).unwrap();
    assert_eq!(packets(&rig), [9; 8]);
    let index = Some(Cell { index: 8 });
    let beyond = CounterEntry { index, ..all };
    assert_eq!(rig.write(Type::Modify, Kinds::CounterEntry(beyond)), Err(Code::OutOfRange));

    let meter_id = rig.info.meter("police").unwrap().names.id;
    let config = Some(MeterConfig { cir: 1, cburst: 1, pir: 2, pburst: 2, eburst: 0 });
    let index = Some(Cell { index: 2 });
    let entry = MeterEntry { meter_id, index, config, counter_data: None };
    rig.write(Type::Modify, Kinds::MeterEntry(entry)).unwrap();
    let colors: Vec<u32> = (0..3).map(|_| rig.ask(9, 0, 2, 0).unwrap().result).collect();
    assert_eq!(colors, [0, 1, 2]);
    assert_eq!(rig.ask(9, 0, 1, 0).unwrap().result, 0, "not configured: green");
}

#[test]
fn registers_are_read_and_written_from_both_sides() {
    let mut rig = Rig::new();
    assert_eq!(rig.ask(10, 0, 4, 0xabcd).unwrap().result, 0);
    let register_id = rig.info.register("cells").unwrap().names.id;
    let data = |value| Some(P4Data { data: Some(Data::Bitstring(encode(value))) });
    let cell = |index, value| RegisterEntry {
        register_id,
        index: Some(Cell { index }),
        data: data(value),
    };
    let pattern = RegisterEntry { register_id, index: Some(Cell { index: 4 }), data: None };
    assert_eq!(rig.read(Kinds::RegisterEntry(pattern)), [Kinds::RegisterEntry(cell(4, 0xabcd))]);
    rig.write(Type::Modify, Kinds::RegisterEntry(cell(4, 0x1234_5678))).unwrap();
    assert_eq!(rig.ask(10, 0, 4, 0).unwrap().result, 0x1234_5678);
    let whole = RegisterEntry { register_id, index: None, data: data(3) };
    rig.write(Type::Modify, Kinds::RegisterEntry(whole.clone())).unwrap();
    let all = rig.read(Kinds::RegisterEntry(RegisterEntry { data: None, ..whole }));
    let want: Vec<Kinds> = (0..16).map(|i| Kinds::RegisterEntry(cell(i, 3))).collect();
    assert_eq!(all, want);

    // A cell of 128 bits: key ++ 5.
    let register_id = rig.info.register("wide").unwrap().names.id;
    assert_eq!(rig.ask(11, 0, 1, 0xfeed).unwrap().result, 0);
    let index = Some(Cell { index: 1 });
    let read = rig.read(Kinds::RegisterEntry(RegisterEntry { register_id, index, data: None }));
    let value = data((0xfeed << 96) | 5);
    assert_eq!(read, [Kinds::RegisterEntry(RegisterEntry { register_id, index, data: value })]);
    assert_eq!(rig.ask(11, 0, 1, 0).unwrap().result, 0xfeed);
}

fn member(rig: &Rig, profile: &str, member_id: u32, action: (&str, &[(&str, u128)])) -> Kinds {
    Kinds::ActionProfileMember(ActionProfileMember {
        action_profile_id: rig.info.profile(profile).unwrap().names.id,
        member_id,
        action: Some(rig.action(action.0, action.1)),
    })
}

fn group(rig: &Rig, group_id: u32, members: &[(u32, i32, Option<u128>)]) -> Kinds {
    let member = |(member_id, weight, watch): &(u32, i32, Option<u128>)| Member {
        member_id: *member_id,
        weight: *weight,
        watch_kind: watch.map(|port| WatchKind::WatchPort(encode(port))),
    };
    Kinds::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: rig.info.profile("choices").unwrap().names.id,
        group_id,
        members: members.iter().map(member).collect(),
        max_size: 0,
    })
}

/// Ports by how many of 1,000 keys went there.
fn spread(rig: &mut Rig) -> Vec<(u16, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for key in 0..1000 {
        for out in rig.all(6, 1, 0, key * 7919) {
            *counts.entry(out.port).or_insert(0) += 1;
        }
    }
    counts.into_iter().collect()
}

#[test]
fn a_group_spreads_by_hash_and_weight_over_members_whose_ports_are_up() {
    let mut rig = Rig::new();
    for id in 1..=3 {
        let one = member(&rig, "choices", id, ("send", &[("port", u128::from(id) + 10)]));
        rig.write(Type::Insert, one).unwrap();
    }
    let wanted = group(&rig, 9, &[(1, 1, None), (2, 2, Some(12)), (3, 1, None)]);
    rig.write(Type::Insert, wanted.clone()).unwrap();
    let action = Some(ActionType::ActionProfileGroupId(9));
    let entry = rig.entry("selected_fields", &[("arg", exact(1))], 0, action);
    rig.write(Type::Insert, Kinds::TableEntry(entry.clone())).unwrap();
    let counts = spread(&mut rig);
    let [(11, a), (12, b), (13, c)] = counts[..] else { panic!("{counts:?}") };
    assert!(
        (200..300).contains(&a) && (430..570).contains(&b) && (200..300).contains(&c),
        "{counts:?}"
    );
    let again = spread(&mut rig);
    assert_eq!(again, counts, "one flow keeps its member");

    rig.switch.set_port(PortNo(12), false, None);
    let counts = spread(&mut rig);
    assert!(matches!(counts[..], [(11, _), (13, _)]), "{counts:?}");
    let sent: usize = counts.iter().map(|(_, count)| count).sum();
    assert_eq!(sent, 1000, "nothing is sent into the port that is down");
    rig.switch.set_port(PortNo(12), true, None);
    assert_eq!(spread(&mut rig), again);

    let pattern = group(&rig, 0, &[]);
    assert_eq!(rig.read(pattern), std::slice::from_ref(&wanted));
    // What is in use stays.
    let used = member(&rig, "choices", 1, ("send", &[("port", 11)]));
    assert_eq!(rig.write(Type::Delete, used.clone()), Err(Code::FailedPrecondition));
    assert_eq!(rig.write(Type::Delete, wanted.clone()), Err(Code::FailedPrecondition));
    rig.write(Type::Delete, Kinds::TableEntry(entry)).unwrap();
    rig.write(Type::Delete, wanted).unwrap();
    rig.write(Type::Delete, used).unwrap();
}

#[test]
fn an_empty_group_is_a_hit_that_does_nothing() {
    let mut rig = Rig::new();
    let empty = group(&rig, 4, &[]);
    rig.write(Type::Insert, empty).unwrap();
    let action = Some(ActionType::ActionProfileGroupId(4));
    let entry = rig.entry("selected_fields", &[("arg", exact(1))], 0, action);
    rig.write(Type::Insert, Kinds::TableEntry(entry)).unwrap();
    assert_eq!(rig.ask(6, 1, 0, 0).unwrap().port, 2);
    let action = Some(ActionType::ActionProfileGroupId(5));
    let unknown = rig.entry("selected_fields", &[("arg", exact(2))], 0, action);
    assert_eq!(rig.write(Type::Insert, Kinds::TableEntry(unknown)), Err(Code::NotFound));
}

#[test]
fn a_profile_that_no_table_uses_may_be_missing_from_the_program() {
    let rig = Rig::new();
    let with = |table_ids: Vec<u32>| {
        let mut config = rig.config.clone();
        let mut info = config.p4info.take().unwrap();
        let mut profile = info.action_profiles[0].clone();
        profile.table_ids = table_ids;
        let names = profile.preamble.as_mut().unwrap();
        (names.id, names.name, names.alias) = (0x1100_abcd, "Ingress.idle".into(), "idle".into());
        info.action_profiles.push(profile);
        config.p4info = Some(info);
        rig.switch.verify_pipeline(&config)
    };
    assert_eq!(with(Vec::new()), Ok(()));
    let used = rig.info.info().tables[0].preamble.as_ref().unwrap().id;
    assert!(with(vec![used]).is_err_and(|refusal| refusal.message.contains("Ingress.idle")));
}

#[test]
fn a_one_shot_set_works_as_a_group_does() {
    let mut rig = Rig::new();
    let choice = |rig: &Rig, port| ActionProfileAction {
        action: Some(rig.action("send", &[("port", port)])),
        weight: 1,
        watch_kind: None,
    };
    let set = ActionProfileActionSet {
        action_profile_actions: vec![choice(&rig, 21), choice(&rig, 22)],
        ..ActionProfileActionSet::default()
    };
    let action = Some(ActionType::ActionProfileActionSet(set));
    let entry = rig.entry("selected_fields", &[("arg", exact(1))], 0, action);
    rig.write(Type::Insert, Kinds::TableEntry(entry.clone())).unwrap();
    let counts = spread(&mut rig);
    assert!(matches!(counts[..], [(21, 400..=600), (22, 400..=600)]), "{counts:?}");
    assert_eq!(rig.read_all("selected_fields"), [entry]);
}

#[test]
fn a_member_changes_all_entries_that_name_it() {
    let mut rig = Rig::new();
    let before = member(&rig, "members", 1, ("result", &[("value", 5)]));
    rig.write(Type::Insert, before).unwrap();
    let action = Some(ActionType::ActionProfileMemberId(1));
    let entry = rig.entry("plain_profile", &[("arg", exact(3))], 0, action);
    rig.write(Type::Insert, Kinds::TableEntry(entry)).unwrap();
    assert_eq!(rig.ask(7, 3, 0, 0).unwrap().result, 5);
    let after = member(&rig, "members", 1, ("result", &[("value", 6)]));
    rig.write(Type::Modify, after.clone()).unwrap();
    assert_eq!(rig.ask(7, 3, 0, 0).unwrap().result, 6);
    assert_eq!(rig.write(Type::Delete, after), Err(Code::FailedPrecondition));
    for id in 2..=5 {
        let one = member(&rig, "members", id, ("result", &[("value", 1)]));
        let want = if id < 5 { Ok(()) } else { Err(Code::ResourceExhausted) };
        assert_eq!(rig.write(Type::Insert, one), want, "the profile holds 4");
    }
}

#[test]
fn a_value_set_decides_in_the_parser() {
    let mut rig = Rig::new();
    let mut packet = command(0, 0, 0, 0);
    packet[5] = 9; // no entry of `deliver`
    (packet[12], packet[13]) = (0x12, 0x34);
    let port = |rig: &mut Rig| {
        rig.switch.receive(Time(0), PortNo(1), &packet);
        rig.sent().first().map(|out| out.port)
    };
    assert_eq!(port(&mut rig), Some(0));
    let field = FieldMatch {
        field_id: 1,
        field_match_type: Some(FieldMatchType::Exact(field_match::Exact { value: encode(0x1234) })),
    };
    let set = ValueSetEntry {
        value_set_id: rig.info.value_set("special_types").unwrap().names.id,
        members: vec![ValueSetMember { r#match: vec![field] }],
    };
    rig.write(Type::Modify, Kinds::ValueSetEntry(set.clone())).unwrap();
    assert_eq!(port(&mut rig), Some(9));
    assert_eq!(
        rig.read(Kinds::ValueSetEntry(ValueSetEntry::default())),
        [Kinds::ValueSetEntry(set)]
    );
}

#[test]
fn digests_come_in_lists_once_per_sample_until_acknowledged() {
    let mut rig = Rig::new();
    let digest_id = rig.info.digest("sample_t").unwrap().names.id;
    rig.ask(18, 0, 0, 0);
    assert_eq!(rig.outbox(), [], "not switched on");
    let config = digest_entry::Config {
        max_timeout_ns: 1_000_000,
        max_list_size: 2,
        ack_timeout_ns: 1_000_000_000,
    };
    let entry = Kinds::DigestEntry(DigestEntry { digest_id, config: Some(config) });
    rig.write(Type::Insert, entry.clone()).unwrap();
    assert_eq!(rig.read(Kinds::DigestEntry(DigestEntry::default())), [entry]);
    rig.ask(18, 0, 0, 0);
    rig.ask(18, 0, 0, 0);
    assert_eq!(rig.switch.poll_at(), Some(Time(1_000_000)), "one sample waits");
    rig.now = 1_000_000;
    rig.sent();
    let said = rig.outbox();
    let [StreamMessageResponse { update: Some(Said::Digest(list)) }] = &said[..] else {
        panic!("{said:?}")
    };
    let bits = |value| P4Data { data: Some(Data::Bitstring(encode(value))) };
    let sample = P4StructLike { members: vec![bits(1), bits(1)] };
    assert_eq!(list.data, [P4Data { data: Some(Data::Struct(sample)) }]);
    rig.ask(18, 0, 0, 0);
    assert_eq!(rig.switch.poll_at(), None, "known until acknowledged");
    let ack = DigestListAck { digest_id, list_id: list.list_id };
    rig.switch.digest_ack(Time(rig.now), &ack);
    rig.ask(18, 0, 0, 0);
    assert_eq!(rig.switch.poll_at(), Some(Time(2_000_000)));
}

#[test]
fn idle_entries_are_reported_until_they_are_hit() {
    let mut rig = Rig::new();
    let action = ActionType::Action(rig.action("result_counted", &[("value", 1)]));
    let mut entry = rig.entry("exact_table", &[("key", exact(5))], 0, Some(action));
    entry.idle_timeout_ns = 2_500_000_000;
    rig.write(Type::Insert, Kinds::TableEntry(entry.clone())).unwrap();
    let mut reported = Vec::new();
    for second in 1..=11_u64 {
        assert_eq!(rig.switch.poll_at(), Some(Time(second * 1_000_000_000)));
        rig.now = second * 1_000_000_000;
        rig.sent();
        for message in rig.outbox() {
            let Some(Said::IdleTimeoutNotification(note)) = message.update else { panic!() };
            let want = TableEntry { action: None, ..entry.clone() };
            assert_eq!(note.table_entry, [want]);
            reported.push(second);
        }
        if second == 7 {
            rig.ask(1, 0, 0, 5);
        }
    }
    // Idle from 0 on: told at 3 and, a timeout later, at 6 (section 16.4); hit at 7; told at 10.
    assert_eq!(reported, [3, 6, 10]);
    let mut asked = rig.entry("exact_table", &[("key", exact(5))], 0, None);
    asked.time_since_last_hit = Some(IdleTimeout::default());
    let read = rig.read(Kinds::TableEntry(asked));
    let [Kinds::TableEntry(read)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(read.time_since_last_hit, Some(IdleTimeout { elapsed_ns: 4_000_000_000 }));
    rig.write(Type::Delete, Kinds::TableEntry(entry)).unwrap();
    assert_eq!(rig.switch.poll_at(), None);
}

#[test]
fn a_checkpoint_brings_entries_and_registers_back() {
    let mut rig = Rig::new();
    rig.insert("exact_table", &[("key", exact(1))], 0, ("result_counted", &[("value", 11)]));
    rig.ask(10, 0, 4, 0xabcd);
    let checkpoint = rig.switch.checkpoint();
    rig.insert("exact_table", &[("key", exact(2))], 0, ("result_counted", &[("value", 22)]));
    rig.ask(10, 0, 4, 0);
    assert_eq!(rig.ask(1, 0, 0, 2).unwrap().result, 22);
    rig.switch.restore(checkpoint);
    assert_eq!(rig.ask(1, 0, 0, 2).unwrap().result, MISS);
    assert_eq!(rig.ask(1, 0, 0, 1).unwrap().result, 11);
    assert_eq!(rig.ask(10, 0, 4, 0).unwrap().result, 0xabcd);
    rig.switch.restore(Box::new(5_u8));
    assert_eq!(rig.ask(1, 0, 0, 1).unwrap().result, 11, "a foreign checkpoint is ignored");
}

#[test]
fn modify_without_an_action_keeps_it() {
    let mut rig = Rig::new();
    rig.insert("exact_table", &[("key", exact(1))], 0, ("result_counted", &[("value", 11)]));
    let mut entry = rig.entry("exact_table", &[("key", exact(1))], 0, None);
    entry.metadata = vec![1, 2];
    rig.write(Type::Modify, Kinds::TableEntry(entry)).unwrap();
    assert_eq!(rig.ask(1, 0, 0, 1).unwrap().result, 11);
    let read = rig.read_all("exact_table");
    assert_eq!(read[0].metadata, [1, 2]);
    assert!(matches!(read[0].action, Some(TableAction { r#type: Some(ActionType::Action(_)) })));
}
