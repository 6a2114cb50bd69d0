//! The same tables, entries, samples and counters with the P4Info of the Tofino program, and with several pipes.

use super::*;
use crate::pipeline::counters::{Counters, Drops};
use crate::pipeline::target::Tick;
use crate::pipeline::telemetry::{Cell, Request, Sample, Totals};
use proto::p4_data::Data;

fn tofino_index() -> Index {
    Index::from_text(include_str!("../../../p4/build/ringpath-tna.p4info.txtpb")).unwrap()
}

fn tofino() -> Program {
    Program::resolve(&tofino_index()).unwrap()
}

/// A register entry that a pipe answers with.
fn cell(register_id: u32, index: i64, number: u32) -> proto::Entity {
    let data = Data::Bitstring(crate::p4runtime::value::encode(number.into()));
    let data = Some(proto::P4Data { data: Some(data) });
    let index = Some(proto::Index { index });
    let entry = proto::RegisterEntry { register_id, index, data };
    proto::Entity { entity: Some(Kind::RegisterEntry(entry)) }
}

#[test]
fn the_program_for_tofino_resolves_and_its_externs_are_found_by_name() {
    let (one, other) = (program(), tofino());
    assert_eq!((one.target, other.target), (Target::V1model, Target::Tofino));
    // Ids of tables are a contract, ids of externs are not.
    assert_eq!(one.classify.id(), other.classify.id());
    assert_eq!(one.switch_config.id(), other.switch_config.id());
    assert_ne!(one.cells.unwrap(), other.cells.unwrap());
    assert!(other.flip_register.is_some_and(|id| Some(id) != one.flip_register));
    assert_ne!(Counters::resolve(&index()).unwrap(), Counters::resolve(&tofino_index()).unwrap());
    let mut stranger = p4info();
    stranger.pkg_info.as_mut().unwrap().arch = "psa".into();
    let error = Program::resolve(&Index::new(stranger).unwrap()).unwrap_err();
    assert_eq!(error, ProgramError::Architecture { found: "psa".into() });
}

/// An entity without the id of its action profile, which the compilers choose.
fn without_profile(entity: &proto::Entity) -> proto::Entity {
    let mut entity = entity.clone();
    match entity.entity.as_mut() {
        Some(Kind::ActionProfileMember(member)) => member.action_profile_id = 0,
        Some(Kind::ActionProfileGroup(group)) => group.action_profile_id = 0,
        _ => {}
    }
    entity
}

#[test]
fn both_targets_hold_the_same_entries_but_for_profile_ids_and_the_length_of_ticks() {
    let v1model = World::new(small_fabric());
    let tofino = World { program: tofino(), ..World::new(small_fabric()) };
    let leg = Leg { key: flow_key(1), tag: tag(1, 1) };
    let all = |world: &World, switch| -> Vec<(Level, proto::Entity)> {
        let set = entries(&world.fabric(), switch, 7, [&leg]);
        let mut all: Vec<_> =
            set.iter().map(|(_, w)| (w.level, without_profile(&w.entity))).collect();
        all.sort_by_key(|(level, entity)| (*level, format!("{entity:?}")));
        all
    };
    let mut configs = Vec::new();
    for switch in v1model.topology.switches() {
        let (one, other) = (all(&v1model, switch), all(&tofino, switch));
        assert!(one.len() > 8 && one.len() == other.len());
        for ((level, one), (other_level, other)) in one.iter().zip(&other) {
            assert_eq!(level, other_level);
            if *level != Level::Default {
                assert_eq!(one, other);
                continue;
            }
            for (world, entity) in [(&v1model, one), (&tofino, other)] {
                let Some(Kind::TableEntry(entry)) = &entity.entity else { panic!("{entity:?}") };
                configs.push(world.program.switch_config.from_entry(entry).unwrap());
            }
        }
    }
    let config = |idle_gap| switch_config::Action { incarnation: 7, idle_gap };
    assert_eq!(v1model.settings.idle_gap, crate::time::Span::from_micros(200));
    assert_eq!(configs[..2], [config(200), config(196)]);
}

#[test]
fn every_table_of_the_tofino_program_reads_back_what_it_wrote() {
    let program = tofino();
    let entry = program.classify.to_entry(flow_key(0xff_ffff), tag(65_535, 1));
    assert_eq!(program.classify.from_entry(&entry), Ok((flow_key(0xff_ffff), tag(65_535, 1))));
    let key = route::Key { address: Ipv4Addr::new(10, 0, 1, 0), length: 24 };
    let action = route::Action::Group { leaf: SwitchId(3) };
    assert_eq!(program.route.from_entry(&program.route.to_entry(key, action)), Ok((key, action)));
    let label = path_forward::Key { label: Label(9) };
    let action = path_forward::Action::Forward { port: PortNo(188) };
    let entry = program.path_forward.to_entry(label, action);
    assert_eq!(program.path_forward.from_entry(&entry), Ok((label, action)));
}

#[test]
fn a_readout_request_names_the_cpu_port_of_the_target() {
    let port = |program: &Program| {
        let message = program.readout.packet_out(1, Request::Advance { interval: 2 });
        let Some(proto::stream_message_request::Update::Packet(packet)) = message.update else {
            panic!("a packet-out");
        };
        packet.metadata[0].value.to_vec()
    };
    assert_eq!((port(&program()), port(&tofino())), (vec![1, 254], vec![192]));
}

/// What a pipe answers to `asked`: every cell `base` more than its place in the question, but the epoch, the interval's number and
/// the running interval as given; all zero without them.
fn pipe(asked: &[proto::Entity], held: Option<(u32, u32)>, base: u32) -> Vec<proto::Entity> {
    let registers = asked.iter().filter_map(|entity| match &entity.entity {
        Some(Kind::RegisterEntry(entry)) => Some(entry),
        _ => None,
    });
    let answers = registers.zip(0..).map(|(entry, place)| {
        let number = match (place, held) {
            (0, _) => 8,
            (_, None) => 0,
            (1, Some((epoch, _))) => epoch,
            (6, Some((_, number))) => number,
            (place, Some(_)) => base + place,
        };
        cell(entry.register_id, entry.index.unwrap().index, number)
    });
    answers.collect()
}

#[test]
fn a_slot_s_sample_is_that_of_the_pipe_that_counted_in_the_interval() {
    let program = tofino();
    let cells = program.cells.clone().unwrap();
    let asked = cells.read(&program.switch_config, &[17], 7);
    let action = switch_config::Action { incarnation: 34, idle_gap: 1 };
    let config = Kind::TableEntry(program.switch_config.to_entry(action));
    let read = |pipes: [Option<(u32, u32)>; 3]| {
        let mut answer = vec![proto::Entity { entity: Some(config.clone()) }];
        for (held, base) in pipes.into_iter().zip([100, 200, 300]) {
            answer.extend(pipe(&asked, held, base));
        }
        let read = cells.samples(&program.switch_config, (&[17], 7), &answer);
        assert_eq!((read.running, read.incarnation), (8, 34));
        read.samples
    };
    let totals = Totals { packets: 202, bytes: 203, lost: 204, reordered: 205 };
    let counted = Cell {
        packets: 207,
        bytes: 208,
        active: 209,
        delay_sum: 210,
        delay_max: 211,
        depth_max: 212,
        first: 213,
        last: 214,
    };
    let base = Sample {
        slot: 17,
        epoch: 3,
        interval: 7,
        running: 8,
        incarnation: 34,
        ..Sample::default()
    };
    let wanted = Sample { tick: Tick::SHIFTED, totals, cell: Some(counted), ..base };
    assert_eq!(read([None, Some((3, 7)), None]), [wanted]);
    // Another pipe had the slot once, for another flow.
    assert_eq!(read([Some((2, 4)), Some((3, 7)), None]), [wanted]);
    // Nothing in the interval: the only pipe that knows the slot.
    assert_eq!(read([None, Some((3, 5)), None]), [Sample { cell: None, ..wanted }]);
    // Two that tell, or two that know: nobody can say.
    assert_eq!(read([Some((2, 7)), Some((3, 7)), None]), []);
    assert_eq!(read([Some((2, 4)), Some((3, 5)), None]), []);
    // Never used.
    assert_eq!(read([None; 3]), [Sample { epoch: 0, tick: Tick::SHIFTED, ..base }]);
}

#[test]
fn counters_of_several_pipes_are_summed() {
    let index = tofino_index();
    let counters = Counters::resolve(&index).unwrap();
    let id = |name: &str| index.counter(name).unwrap().names.id;
    let count = |counter_id, at, packet_count| {
        let data = Some(proto::CounterData { byte_count: 0, packet_count });
        let entry =
            proto::CounterEntry { counter_id, index: Some(proto::Index { index: at }), data };
        proto::Entity { entity: Some(Kind::CounterEntry(entry)) }
    };
    let (drops, forced) = (id("drops"), id("forced_flips"));
    let cells = [count(drops, 5, 3), count(drops, 5, 4), count(forced, 9, 1), count(forced, 9, 1)];
    assert_eq!(counters.sum(&cells), (Drops { no_route: 7, ..Drops::default() }, 2));
}

#[test]
fn a_flip_is_that_of_the_only_pipe_that_has_one() {
    for program in [program(), tofino()] {
        let register = program.flip_register.unwrap();
        let asked = program.read_flip(9).unwrap();
        assert_eq!(crate::pipeline::identity::key_of(&asked), None);
        let answer = [cell(register, 9, 0), cell(register, 9, 5), cell(register, 10, 6)];
        assert_eq!(program.flips_of(&answer), [(9, 5), (10, 6)]);
        // Two pipes with different flips tell nothing about the slot; another register nothing about flips.
        let answer = [cell(register, 9, 4), cell(register, 9, 5), cell(register + 1, 10, 6)];
        assert_eq!(program.flips_of(&answer), []);
    }
}
