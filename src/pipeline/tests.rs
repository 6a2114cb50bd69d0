//! The pipeline's tables, labels, entry sets and reconciling against the committed program.

mod tofino;

use super::*;
use crate::id::{LinkId, PortNo, SwitchId, TreeId};
use crate::p4runtime::proto::p4::config::v1 as info;
use crate::pipeline::reconcile::owner;
use crate::topology::generate::LeafSpine;
use crate::topology::{FlowKey, LinkSet, Paths, Topology};
use crate::units::BitRate;
use proto::update::Type;
use std::net::Ipv4Addr;

/// The committed P4Info of the program.
pub(crate) fn p4info() -> info::P4Info {
    index().info().clone()
}

fn index() -> Index {
    Index::from_text(include_str!("../../p4/build/ringpath.p4info.txtpb")).unwrap()
}

/// The program, resolved.
pub(crate) fn program() -> Program {
    Program::resolve(&index()).unwrap()
}

/// Two leaves, two spines, two hosts a leaf.
pub(crate) fn small_fabric() -> Topology {
    LeafSpine::new(2, 2, 2, BitRate(25_000_000_000)).build().unwrap()
}

fn flow_key(qp: u32) -> FlowKey {
    FlowKey {
        src: Ipv4Addr::new(10, 0, 0, 1),
        dst: Ipv4Addr::new(10, 0, 1, 1),
        protocol: 17,
        src_port: None,
        dst_port: Some(4791),
        dst_qp: Some(qp),
    }
}

fn tag(label: u16, old_label: u16) -> classify::Action {
    classify::Action {
        label: Label(label),
        queue: 5,
        src_slot: 4095,
        slot: 17,
        epoch: 255,
        flip: 254,
        old_label: Label(old_label),
        old_queue: 6,
        force: true,
        flip_gap: 123_456,
    }
}

#[test]
fn every_table_reads_back_what_it_wrote() {
    let program = program();
    for key in [flow_key(0xff_ffff), FlowKey { dst_qp: None, src_port: Some(0), ..flow_key(0) }] {
        let entry = program.classify.to_entry(key, tag(65_535, 1));
        assert_eq!(program.classify.from_entry(&entry), Ok((key, tag(65_535, 1))));
        assert!(entry.priority > 0, "a ternary table needs a priority");
    }
    for role in [port_role::Role::Edge, port_role::Role::Fabric, port_role::Role::Cpu] {
        let (key, action) = (port_role::Key { port: PortNo(511) }, port_role::Action { role });
        let entry = program.port_role.to_entry(key, action);
        assert_eq!(program.port_role.from_entry(&entry), Ok((key, action)));
    }
    let label = path_forward::Key { label: Label(300) };
    for action in [path_forward::Action::Forward { port: PortNo(256) }, path_forward::Action::Sink]
    {
        let entry = program.path_forward.to_entry(label, action);
        assert_eq!(program.path_forward.from_entry(&entry), Ok((label, action)));
    }
    let address = Ipv4Addr::new(10, 200, 0, 255);
    let (key, action) = (host::Key { address }, host::Action { port: PortNo(7) });
    assert_eq!(program.host.from_entry(&program.host.to_entry(key, action)), Ok((key, action)));
    let (key, action) = (arp::Key { address }, arp::Action { mac: [2, 0, 0xff, 0, 1, 0] });
    assert_eq!(program.arp.from_entry(&program.arp.to_entry(key, action)), Ok((key, action)));
    let (key, action) = (traffic_class::Key { dscp: 63 }, traffic_class::Action { queue: 6 });
    let entry = program.traffic_class.to_entry(key, action);
    assert_eq!(program.traffic_class.from_entry(&entry), Ok((key, action)));
    for length in [0, 24, 32] {
        let address = if length == 0 { Ipv4Addr::UNSPECIFIED } else { address };
        let key = route::Key { address, length };
        for action in [
            route::Action::Member { port: PortNo(509) },
            route::Action::Group { leaf: SwitchId(700) },
        ] {
            let entry = program.route.to_entry(key, action);
            // Members and groups are told apart by the entry, not by the id.
            assert_eq!(program.route.from_entry(&entry), Ok((key, action)));
        }
    }
    let action = switch_config::Action { incarnation: u32::MAX, idle_gap: 200 };
    let entry = program.switch_config.to_entry(action);
    assert!(entry.is_default_action);
    assert_eq!(program.switch_config.from_entry(&entry), Ok(action));
}

#[test]
fn an_entry_of_another_table_is_refused() {
    let program = program();
    let entry = program
        .host
        .to_entry(host::Key { address: Ipv4Addr::LOCALHOST }, host::Action { port: PortNo(1) });
    assert!(matches!(program.arp.from_entry(&entry), Err(EntryError::Table { .. })));
    let mut entry = program.classify.to_entry(flow_key(1), tag(1, 1));
    entry.action = None;
    assert!(matches!(program.classify.from_entry(&entry), Err(EntryError::Action { .. })));
}

#[test]
fn a_program_that_differs_is_refused_by_what_differs() {
    type Damage = fn(&mut info::P4Info);
    type Expected = fn(&ProgramError) -> bool;
    let cases: [(Damage, Expected); 4] = [
        (
            |p| p.tables.retain(|t| t.preamble.as_ref().is_none_or(|p| p.alias != "arp")),
            |e| matches!(e, ProgramError::Missing { what: "table", name, .. } if name == "arp"),
        ),
        (
            |p| p.tables[1].match_fields[5].name = "qp".into(),
            |e| matches!(e, ProgramError::Missing { what: "key field", name, .. } if name == "dst_qp"),
        ),
        (
            |p| p.tables[3].match_fields[0].bitwidth = 16,
            |e| matches!(e, ProgramError::Narrow { found: 16, wanted: 32, .. }),
        ),
        (
            |p| p.tables[1].match_fields[0].r#match = p.tables[0].match_fields[0].r#match.clone(),
            |e| matches!(e, ProgramError::Kind { field, .. } if field == "src_addr"),
        ),
    ];
    for (damage, expected) in cases {
        let mut p4info = p4info();
        damage(&mut p4info);
        let error = Program::resolve(&Index::new(p4info).unwrap()).unwrap_err();
        assert!(expected(&error), "{error}");
    }
}

/// A fabric with its labels, for `entries`.
struct World {
    program: Program,
    topology: Topology,
    paths: Paths,
    failed: LinkSet,
    labels: Labels,
    settings: Settings,
}

impl World {
    fn new(topology: Topology) -> Self {
        let failed = LinkSet::new();
        let paths = Paths::build(&topology, &failed, 16).unwrap();
        let mut labels = Labels::default();
        labels.adopt(&topology, &paths).unwrap();
        let settings = Settings::new("test", crate::time::Span(480));
        Self { program: program(), topology, paths, failed, labels, settings }
    }

    fn fabric(&self) -> Fabric<'_> {
        Fabric {
            program: &self.program,
            topology: &self.topology,
            paths: &self.paths,
            failed: &self.failed,
            labels: &self.labels,
            settings: &self.settings,
        }
    }

    fn wanted(&self, switch: SwitchId) -> EntrySet {
        entries(&self.fabric(), switch, 7, [])
    }

    fn fail(&mut self, link: LinkId) {
        self.failed.insert_cable(&self.topology, link);
        self.paths = Paths::build(&self.topology, &self.failed, 16).unwrap();
        self.labels.adopt(&self.topology, &self.paths).unwrap();
    }
}

/// Follows `path_forward` entries over all switches' wanted sets.
fn walk(world: &World, leaf: SwitchId, label: Label) -> Option<SwitchId> {
    let mut at = leaf;
    for _ in 0..8 {
        let key = entry_set::label_key(&world.program, label)?;
        let wanted = world.wanted(at);
        let Some(Kind::TableEntry(entry)) = &wanted.get(&key)?.entity.entity else { return None };
        match world.program.path_forward.from_entry(entry).ok()?.1 {
            path_forward::Action::Sink => return Some(at),
            path_forward::Action::Forward { port } => {
                let node = world.topology.switch_node(at);
                let links = world.topology.out_links(node).iter();
                let link = links.map(|l| world.topology.link(*l)).find(|l| l.from_port == port)?;
                at = world.topology.as_switch(link.to)?;
            }
        }
    }
    None
}

#[test]
fn every_candidate_path_has_a_label_that_leads_along_it() {
    let world = World::new(LeafSpine::new(3, 2, 2, BitRate(1_000_000_000)).build().unwrap());
    let hosts: Vec<_> = world.topology.hosts().collect();
    for &from in &hosts {
        for &to in hosts.iter().filter(|to| **to != from) {
            for path in world.paths.candidates(&world.topology, from, to) {
                let label = world.labels.of_path(&world.topology, &path).unwrap();
                let (leaf, sink) = (world.topology.leaf_of(from), world.topology.leaf_of(to));
                assert_eq!(walk(&world, leaf, label), Some(sink));
            }
        }
    }
}

#[test]
fn a_label_needs_its_next_hop_and_a_sink_needs_nothing() {
    let world = World::new(small_fabric());
    for switch in world.topology.switches() {
        for (key, wanted) in world.wanted(switch).iter() {
            let Level::Label(depth) = wanted.level else { continue };
            let Some(Kind::TableEntry(entry)) = &wanted.entity.entity else { panic!("{key}") };
            let (_, action) = world.program.path_forward.from_entry(entry).unwrap();
            match action {
                path_forward::Action::Sink => assert_eq!((depth, wanted.needs.len()), (0, 0)),
                path_forward::Action::Forward { .. } => {
                    assert!(matches!(wanted.needs[..], [Need::Label { .. }]), "{key}");
                }
            }
        }
    }
}

#[test]
fn a_failed_link_changes_no_label_and_takes_its_port_out_of_the_groups() {
    let mut world = World::new(small_fabric());
    let before = world.labels.clone();
    let leaf = SwitchId(0);
    let uplink = world.topology.out_links(world.topology.switch_node(leaf))[0..]
        .iter()
        .copied()
        .find(|l| world.topology.as_switch(world.topology.link(*l).to).is_some())
        .unwrap();
    let group = EntityKey::Group {
        profile: world.program.route.profile(),
        group: route::Table::group_id(SwitchId(1)),
    };
    let members = |world: &World| match &world.wanted(leaf).get(&group).unwrap().entity.entity {
        Some(Kind::ActionProfileGroup(group)) => group.members.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(members(&world), 2);
    world.fail(uplink);
    assert_eq!(members(&world), 1);
    assert_eq!(before.all().collect::<Vec<_>>(), world.labels.all().collect::<Vec<_>>());
}

#[test]
fn a_label_that_would_mean_something_else_gets_a_new_number_and_the_old_one_retires() {
    // Three leaves on a ring of cables without spines would need another generator; instead the trees of a leaf-spine
    // fabric are swapped by hand, which is what a detour tree does between two failures.
    let world = World::new(small_fabric());
    let mut labels = world.labels.clone();
    let mut swapped = world.paths.clone();
    for sink in swapped.next.iter_mut().filter(|trees| trees.len() > 1) {
        sink.swap(0, 1);
    }
    let added = labels.adopt(&world.topology, &swapped).unwrap();
    assert!(!added.is_empty());
    for label in &added {
        assert!(world.labels.meaning(*label).is_none(), "label {label} had a meaning");
    }
    for (label, meaning) in world.labels.all() {
        assert_eq!(labels.meaning(label), Some(meaning), "label {label} changed its meaning");
    }
    assert_eq!(labels.retired().len(), added.len());
    labels.adopt(&world.topology, &world.paths).unwrap();
    for sink in [SwitchId(0), SwitchId(1)] {
        let tree = TreeId(1);
        assert_eq!(
            labels.of_tree(sink, tree),
            world.labels.of_tree(sink, tree),
            "old meaning, old number"
        );
    }
    let gone = labels.retired()[0];
    labels.forget(gone);
    assert_eq!(labels.meaning(gone), None);
    let used = labels.of_tree(SwitchId(1), TreeId(1)).unwrap();
    labels.forget(used);
    assert!(labels.meaning(used).is_some(), "a label in use is not forgotten");
}

/// What a switch holds after the given updates.
fn apply(present: &mut Present, updates: &[proto::Update], mark: &str) {
    for update in updates {
        let entity = update.entity.as_ref().unwrap();
        let key = identity::key_of(entity).unwrap();
        match update.r#type() {
            Type::Insert => {
                assert!(present.get(&key).is_none(), "INSERT of {key}, which exists");
                present.put(entity, mark);
            }
            Type::Modify => present.put(entity, mark),
            Type::Delete => {
                assert!(present.get(&key).is_some(), "DELETE of {key}, which does not exist");
                present.remove(&key);
            }
            Type::Unspecified => panic!("update without a type"),
        }
    }
}

#[test]
fn reconciling_reaches_wanted_in_order_and_then_has_nothing_to_do() {
    let world = World::new(small_fabric());
    let mut wanted = world.wanted(SwitchId(0));
    wanted.put_leg(&world.fabric(), &Leg { key: flow_key(9), tag: tag(1, 2) });
    let mark = &world.settings.mark;
    let mut present = Present::default();
    let result = reconcile(&world.program, &wanted, &present);
    assert_eq!(result.changes.len(), wanted.len());
    let mut seen = Vec::new();
    for level in result.levels() {
        apply(&mut present, &level, mark);
        seen.extend(level.iter().map(|u| identity::key_of(u.entity.as_ref().unwrap()).unwrap()));
        for (key, wish) in wanted.iter().filter(|(key, _)| seen.contains(key)) {
            for need in &wish.needs {
                if let Need::Here(needed) = need {
                    assert!(seen.contains(needed), "{key} was written before {needed}");
                }
            }
        }
    }
    assert_eq!(reconcile(&world.program, &wanted, &present).changes, []);
}

#[test]
fn what_is_not_wanted_any_more_is_removed_in_reverse_order() {
    let world = World::new(small_fabric());
    let mut wanted = world.wanted(SwitchId(0));
    wanted.put_leg(&world.fabric(), &Leg { key: flow_key(9), tag: tag(1, 2) });
    let mut present = Present::default();
    for level in reconcile(&world.program, &wanted, &present).levels() {
        apply(&mut present, &level, &world.settings.mark);
    }
    let nothing = EntrySet::default();
    let result = reconcile(&world.program, &nothing, &present);
    let ranks: Vec<Level> = result.changes.iter().map(|change| change.level).collect();
    let mut sorted = ranks.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(ranks, sorted);
    assert!(result.changes.iter().all(|change| change.kind == Type::Delete));
    assert_eq!(
        result.changes.len(),
        wanted.len() - 1,
        "all but the default entry, which has no DELETE"
    );
}

#[test]
fn foreign_and_constant_entries_are_never_touched_and_a_wanted_foreign_key_is_a_conflict() {
    let world = World::new(small_fabric());
    let wanted = world.wanted(SwitchId(0));
    let mut present = Present::default();
    let entry = |address: [u8; 4], metadata: &str, is_const| proto::Entity {
        entity: Some(Kind::TableEntry(proto::TableEntry {
            metadata: metadata.as_bytes().to_vec(),
            is_const,
            ..world.program.host.to_entry(
                host::Key { address: Ipv4Addr::from(address) },
                host::Action { port: PortNo(77) },
            )
        })),
    };
    let own = world.topology.hosts().next().unwrap();
    let clash = entry(world.topology.host_ip(own).octets(), "somebody", false);
    for entity in
        [&clash, &entry([1, 1, 1, 1], "", false), &entry([1, 1, 1, 2], "ringpath/test", true)]
    {
        present.put(entity, &world.settings.mark);
    }
    let stale = entry([1, 1, 1, 3], "ringpath/test", false);
    present.put(&stale, &world.settings.mark);
    let result = reconcile(&world.program, &wanted, &present);
    assert_eq!(result.conflicts, [identity::key_of(&clash).unwrap()]);
    assert_eq!(result.foreign, 2);
    let touched: Vec<_> = result.changes.iter().filter(|c| present.get(&c.key).is_some()).collect();
    assert_eq!(touched.len(), 1, "only the stale entry of ours: {touched:?}");
    assert_eq!(
        (touched[0].kind, Some(&touched[0].key)),
        (Type::Delete, identity::key_of(&stale).as_ref())
    );
}

#[test]
fn members_and_groups_are_ours_by_their_reserved_ids() {
    let member = |member_id| proto::Entity {
        entity: Some(Kind::ActionProfileMember(proto::ActionProfileMember {
            action_profile_id: 1,
            member_id,
            action: None,
        })),
    };
    assert_eq!(owner(&member(route::OURS.start + 1), "ringpath/test"), Owner::Ours);
    assert_eq!(owner(&member(1), "ringpath/test"), Owner::Foreign);
}

#[test]
fn adding_and_removing_a_leg_equals_building_the_set_anew() {
    let world = World::new(small_fabric());
    let (one, two) =
        (Leg { key: flow_key(1), tag: tag(1, 1) }, Leg { key: flow_key(2), tag: tag(2, 1) });
    let mut set = entries(&world.fabric(), SwitchId(0), 7, [&one]);
    set.put_leg(&world.fabric(), &Leg { tag: tag(2, 2), ..one });
    set.put_leg(&world.fabric(), &two);
    set.remove_leg(&world.fabric(), one.key);
    assert_eq!(set, entries(&world.fabric(), SwitchId(0), 7, [&two]));
}

#[test]
fn gaps_follow_the_packet_time_above_their_floor() {
    let slow = Settings::new("c", crate::time::Span::from_micros(100));
    assert_eq!(slow.flip_gap, crate::time::Span::from_micros(3_200));
    assert_eq!(
        Settings::new("c", crate::time::Span(1)).idle_gap,
        crate::time::Span::from_micros(200)
    );
}
