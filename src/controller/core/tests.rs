//! The core against servers of fake devices, in virtual time.

mod device;
mod feedback;
mod members;
mod net;
mod planning;
mod probes;
mod ranks;

use super::*;
use crate::controller::record;
use crate::controller::store::RedbStore;
use crate::id::{LinkId, NodeId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::rpc::Code;
use crate::pipeline::{host, identity};
use crate::topology::Topology;
use crate::topology::generate::LeafSpine;
use crate::units::BitRate;
use device::Flips;
use net::{Net, WriteFault, job};
use std::net::Ipv4Addr;

const SOON: Span = Span::from_millis(2_000);
const LEAF: SwitchId = SwitchId(0);

/// Three leaves, two spines, two hosts a leaf.
fn fabric() -> Topology {
    LeafSpine::new(3, 2, 2, BitRate(25_000_000_000)).build().unwrap()
}

/// A net with one job over all three leaves, installed.
fn running() -> Net {
    tuned(|_| {})
}

fn tuned(tune: impl Fn(&mut Config) + 'static) -> Net {
    let mut net = Net::tuned(fabric(), tune);
    net.boot();
    net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
    net.converge(SOON);
    net
}

/// A spine that flow 0 crosses, and its uplink there.
fn uplink(net: &Net) -> LinkId {
    net.core.goals()[&FlowId(0)].path.links[1]
}

#[test]
fn a_cold_start_programs_every_switch_and_a_second_look_changes_nothing() {
    let mut net = running();
    net.assert_as_wanted();
    for switch in fabric().switches() {
        assert_eq!(net.device(switch).loads, 1, "switch {switch}");
    }
    assert_eq!(net.seen(|e| matches!(e, Event::Installed { generation: 1 })), 1);
    assert_eq!(net.core.goals().len(), 3);
    let flow = net.core.flow(FlowId(0)).unwrap();
    assert!(flow.leg(Side::Forward).source_slot.index > 0);
    assert_eq!(flow.leg(Side::Reverse).now.queue, crate::plan::CONTROL_QUEUE);
    let updates = net.updates();
    for switch in fabric().switches() {
        net.input(Input::Resync { switch });
    }
    net.run(SOON);
    assert!(net.core.converged());
    assert_eq!(net.updates(), updates, "reconciling what is equal writes nothing");
}

#[test]
fn a_switch_with_our_program_is_not_loaded_again_but_read_in_full() {
    let mut net = running();
    let (loads, reads) = (net.device(LEAF).loads, net.calls["Read"]);
    let updates = net.updates();
    net.crash();
    net.converge(SOON);
    assert_eq!(net.device(LEAF).loads, loads);
    assert!(net.calls["Read"] >= reads + fabric().switch_count());
    assert_eq!(net.updates(), updates, "a restarted controller finds everything as it should be");
    net.assert_as_wanted();
}

#[test]
fn a_plan_change_moves_every_flow_with_one_modify_each() {
    let mut net = running();
    let before = net.core.goals().clone();
    let updates = net.updates();
    net.input(Input::SetPolicy { policy: "second".into() });
    net.converge(SOON);
    net.assert_as_wanted();
    let moved = before.iter().filter(|(id, goal)| net.core.goals()[id].path != goal.path).count();
    assert_eq!(moved, 3);
    assert_eq!(net.updates() - updates, 6, "one MODIFY per leg, no label work");
    let leg = *net.core.flow(FlowId(0)).unwrap().leg(Side::Forward);
    assert_ne!(leg.now, leg.old);
    assert_eq!((leg.flip, leg.force), (1, false));
    assert_eq!(net.seen(|e| matches!(e, Event::FlipForced { .. })), 0);
}

#[test]
fn a_flow_without_a_gap_is_forced_after_the_deadline_and_not_before() {
    for flips in [Flips::Never, Flips::Unreadable] {
        let mut net = running();
        for switch in fabric().switches() {
            net.device(switch).flips = flips;
        }
        net.input(Input::SetPolicy { policy: "second".into() });
        net.run(Span::from_millis(400));
        assert!(!net.core.converged());
        assert_eq!(net.seen(|e| matches!(e, Event::FlipForced { .. })), 0);
        net.converge(SOON);
        assert_eq!(net.seen(|e| matches!(e, Event::FlipForced { .. })), 6, "{flips:?}");
        net.assert_as_wanted();
    }
}

#[test]
fn a_second_change_waits_until_the_first_is_in_force() {
    let mut net = running();
    for switch in fabric().switches() {
        net.device(switch).flips = Flips::Never;
    }
    net.input(Input::SetPolicy { policy: "second".into() });
    net.run(Span::from_millis(100));
    net.input(Input::SetPolicy { policy: "first".into() });
    net.run(Span::from_millis(100));
    let leg = *net.core.flow(FlowId(0)).unwrap().leg(Side::Forward);
    assert_eq!(leg.flip, 1, "no second flip value may be written before the first is in force");
    for switch in fabric().switches() {
        net.device(switch).flips = Flips::AtOnce;
    }
    net.converge(SOON);
    assert_eq!(net.core.flow(FlowId(0)).unwrap().leg(Side::Forward).flip, 2);
    assert_eq!(net.seen(|e| matches!(e, Event::FlipForced { .. })), 0);
}

#[test]
fn a_dead_link_moves_its_flows_at_once_by_force_and_the_others_not_at_all() {
    let mut net = running();
    let dead = uplink(&net);
    let crosses = |net: &Net, link| {
        let goals = net.core.goals().iter();
        let cable = [link, fabric().reverse(link)];
        let hit = goals.filter(|(_, goal)| goal.path.links.iter().any(|link| cable.contains(link)));
        hit.map(|(id, _)| *id).collect::<Vec<_>>()
    };
    let hit = crosses(&net, dead);
    let at = net.now;
    net.link(dead, false);
    net.converge(SOON);
    assert!(net.now.since(at) < Span::from_millis(10), "{:?}", net.now.since(at));
    assert_eq!(crosses(&net, dead), []);
    for (id, goal) in net.core.goals() {
        let leg = net.core.flow(*id).unwrap().leg(Side::Forward);
        assert_eq!(leg.force, hit.contains(id), "{goal:?}");
    }
    net.assert_as_wanted();
    net.link(dead, true);
    net.converge(SOON);
    assert_eq!(crosses(&net, dead), hit, "back on the first path");
    net.assert_as_wanted();
}

#[test]
fn a_departed_job_leaves_no_entry_and_its_slots_rest() {
    let mut net = running();
    let slot = net.core.flow(FlowId(0)).unwrap().leg(Side::Forward).sink_slot;
    net.input(Input::JobFinished { job: JobId(0) });
    net.converge(SOON);
    net.assert_as_wanted();
    assert_eq!(net.core.outside(), 0);
    assert!(net.core.flow(FlowId(0)).is_none());
    net.input(Input::SubmitJobs(vec![job(&fabric(), 1, &[0, 2, 4])]));
    net.converge(SOON);
    let new = net.core.flow(FlowId(3)).unwrap().leg(Side::Forward).sink_slot;
    assert_ne!(new.index, slot.index, "still in quarantine");
    net.run(Span::from_millis(300));
    net.input(Input::SubmitJobs(vec![job(&fabric(), 2, &[0, 2, 4])]));
    net.converge(SOON);
    let again = net.core.flow(FlowId(6)).unwrap().leg(Side::Forward).sink_slot;
    assert_eq!((again.index, again.epoch), (slot.index, slot.epoch + 1));
}

#[test]
fn jobs_that_cannot_be_are_refused_with_the_reason() {
    let mut net = running();
    let (twin, flows) = job(&fabric(), 0, &[0, 2, 4]);
    let (other, mut alien) = job(&fabric(), 1, &[0, 2, 4]);
    alien[0].dst = crate::id::HostId(77);
    let (third, mut clash) = job(&fabric(), 2, &[0, 2, 4]);
    clash[0].key = flows[0].key;
    net.input(Input::SubmitJobs(vec![(twin, flows), (other, alien), (third, clash)]));
    let reasons: Vec<&str> = net
        .events
        .iter()
        .filter_map(|event| match event {
            Event::JobRefused { reason, .. } => Some(reason.as_str()),
            _ => None,
        })
        .collect();
    for (reason, part) in
        reasons.iter().zip(["job 0 already", "two hosts", "queue pair of another"])
    {
        assert!(reason.contains(part), "{reason}");
    }
    assert_eq!((reasons.len(), net.core.generation()), (3, 1));
}

#[test]
fn what_a_lost_request_or_reply_did_is_found_by_reading_before_writing_again() {
    let faults = [
        WriteFault::LoseRequest,
        WriteFault::LoseReply,
        WriteFault::Fail(Code::Unavailable),
        WriteFault::FailAfter(Code::DeadlineExceeded),
        WriteFault::FailAfter(Code::ResourceExhausted),
        WriteFault::Fail(Code::InvalidArgument),
    ];
    for fault in faults {
        let mut net = running();
        net.write_faults.push_back((LEAF, fault.clone()));
        let updates = net.updates();
        net.input(Input::SetPolicy { policy: "second".into() });
        net.converge(Span::from_millis(5_000));
        net.assert_as_wanted();
        assert_eq!(net.updates() - updates, 6, "{fault:?}: nothing is done twice");
        assert_eq!(net.seen(|e| matches!(e, Event::Refused { .. })), 0, "{fault:?}");
    }
}

#[test]
fn a_batch_that_was_too_large_is_halved() {
    let mut net = Net::new(fabric());
    net.write_faults.push_back((LEAF, WriteFault::Fail(Code::ResourceExhausted)));
    net.boot();
    net.converge(SOON);
    net.assert_as_wanted();
}

/// Fits every entry of a flow.
fn flow_entry(key: &EntityKey, _kind: Type) -> bool {
    matches!(key, EntityKey::Entry { priority, .. } if *priority > 0)
}

#[test]
fn unclear_answers_to_one_update_are_read_and_tried_again_a_bounded_number_of_times() {
    for code in [Code::Aborted, Code::Internal, Code::Unknown, Code::AlreadyExists, Code::NotFound]
    {
        let mut net = running();
        net.device(LEAF).faults.extend([(flow_entry as fn(&EntityKey, Type) -> bool, code); 2]);
        net.input(Input::SetPolicy { policy: "second".into() });
        net.converge(SOON);
        net.assert_as_wanted();
        assert_eq!(net.seen(|e| matches!(e, Event::Refused { .. })), 0, "{code}");
    }
}

#[test]
fn a_flow_whose_change_is_refused_stays_where_it_is_and_is_reported() {
    for code in
        [Code::InvalidArgument, Code::OutOfRange, Code::Unimplemented, Code::PermissionDenied]
    {
        let mut net = running();
        let before = net.core.flow(FlowId(0)).unwrap().leg(Side::Forward).now;
        // One leg of flow 0 and one of flow 2 start at leaf 0; both are refused once.
        net.device(LEAF).faults.extend([(flow_entry as fn(&EntityKey, Type) -> bool, code); 2]);
        net.input(Input::SetPolicy { policy: "second".into() });
        net.converge(SOON);
        net.assert_as_wanted();
        assert_eq!(net.seen(|e| matches!(e, Event::Refused { .. })), 2, "{code}");
        assert_eq!(net.core.flow(FlowId(0)).unwrap().leg(Side::Forward).now, before);
        net.input(Input::Replan);
        net.converge(SOON);
        assert_ne!(
            net.core.flow(FlowId(0)).unwrap().leg(Side::Forward).now,
            before,
            "the next plan tries again"
        );
    }
}

#[test]
fn a_full_table_is_surfaced_and_not_tried_again() {
    let mut net = Net::new(fabric());
    net.boot();
    net.converge(SOON);
    net.device(LEAF).faults.push_back((flow_entry, Code::ResourceExhausted));
    net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
    net.converge(SOON);
    assert_eq!(net.seen(|e| matches!(e, Event::TableFull { .. })), 1);
    let updates = net.updates();
    net.run(SOON);
    assert_eq!(net.updates(), updates);
}

#[test]
fn after_a_broken_stream_the_switch_is_read_in_full_and_drift_is_repaired() {
    let mut net = running();
    net.check_labels = false;
    let key =
        net.device(LEAF).entities.keys().find(|key| flow_entry(key, Type::Insert)).unwrap().clone();
    net.device(LEAF).entities.remove(&key);
    net.break_stream(LEAF);
    assert!(!net.core.converged());
    net.converge(SOON);
    net.assert_as_wanted();
    assert_eq!(net.device(LEAF).loads, 1, "same cookie, no load");
}

#[test]
fn a_restarted_switch_is_loaded_and_filled_and_its_flows_get_new_epochs() {
    let mut net = running();
    net.check_labels = false;
    net.input(Input::SetPolicy { policy: "second".into() });
    net.converge(SOON);
    let epoch =
        |net: &Net, flow| net.core.flow(FlowId(flow)).unwrap().leg(Side::Forward).sink_slot.epoch;
    let before: Vec<u8> = (0..3).map(|flow| epoch(&net, flow)).collect();
    net.restart(LEAF);
    net.converge(SOON);
    net.assert_as_wanted();
    net.assert_labels_installed();
    assert_eq!(net.seen(|e| matches!(e, Event::Restarted { .. })), 1);
    // Flow 0 leaves leaf 0, flow 2 ends there, flow 1 has nothing to do with it.
    let after: Vec<u8> = (0..3).map(|flow| epoch(&net, flow)).collect();
    assert_eq!(after, [before[0] + 1, before[1], before[2] + 1]);
    let leg = net.core.flow(FlowId(0)).unwrap().leg(Side::Forward);
    assert_eq!(
        leg.now, leg.old,
        "the lost flip register must not send packets back to the old path"
    );
}

#[test]
fn foreign_entries_are_left_alone_and_a_clash_is_reported_and_not_overwritten() {
    let mut net = Net::new(fabric());
    net.boot();
    net.converge(SOON);
    let program = crate::pipeline::tests::program();
    let entry = |address: Ipv4Addr| {
        let key = host::Key { address };
        let entry = program.host.to_entry(key, host::Action { port: crate::id::PortNo(99) });
        let entity = proto::Entity { entity: Some(Kind::TableEntry(entry)) };
        (identity::key_of(&entity).unwrap(), entity)
    };
    let topology = fabric();
    let clash = entry(topology.host_ip(topology.hosts().next().unwrap()));
    let other = entry(Ipv4Addr::new(192, 0, 2, 1));
    for (key, entity) in [&clash, &other] {
        net.device(LEAF).entities.insert(key.clone(), entity.clone());
    }
    net.input(Input::Resync { switch: LEAF });
    net.run(SOON);
    assert_eq!(net.seen(|e| matches!(e, Event::Conflict { .. })), 1);
    for (key, entity) in [&clash, &other] {
        assert_eq!(net.device(LEAF).entities.get(key), Some(entity));
    }
    assert!(net.core.converged(), "a conflict is reported, not waited for");
}

#[test]
fn losing_primacy_stops_writes_at_once_and_the_switch_is_excluded() {
    let mut net = running();
    net.take_over(LEAF, u128::MAX);
    net.run(Span::from_millis(10));
    assert_eq!(net.seen(|e| matches!(e, Event::Foreign { switch: LEAF, .. })), 1);
    let updates = net.device(LEAF).updates;
    net.input(Input::SetPolicy { policy: "second".into() });
    net.run(SOON);
    assert_eq!(net.device(LEAF).updates, updates);
    assert!(!net.core.uses(LEAF));
    assert!(net.core.converged(), "the other leaves go on");
}

#[test]
fn a_remembered_higher_election_id_is_climbed_over_and_stored_first() {
    let mut net = Net::new(fabric());
    let high = 1_900_000_000_000_u64;
    let stream = net.take_over(LEAF, u128::from(high) << 64);
    net.servers[0].close_stream(net.now, stream);
    net.boot();
    net.converge(SOON);
    let stored = net.store.load().unwrap();
    assert!(stored.contains(&Record::Epoch(high + 1)), "{stored:?}");
}

#[test]
fn a_dead_switch_does_not_slow_the_others_and_plans_avoid_it_in_time() {
    let mut net = Net::new(fabric());
    let spine = SwitchId(4);
    net.dead.insert(spine);
    net.boot();
    net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
    net.run(Span::from_millis(50));
    let through = |net: &Net| {
        let topology = fabric();
        let goals = net.core.goals().values();
        let links = goals.flat_map(|goal| goal.path.links.clone());
        links.filter(|link| topology.link(*link).to == topology.switch_node(spine)).count()
    };
    // Flows that do not need the dead spine are in place already.
    assert!(net.core.outside() <= through(&net).max(1));
    net.converge(Span::from_millis(10_000));
    assert_eq!(net.seen(|e| matches!(e, Event::SwitchLost { switch } if *switch == spine)), 1);
    assert_eq!(through(&net), 0);
    net.dead.remove(&spine);
    net.run(Span::from_millis(20_000));
    net.converge(SOON);
    assert_eq!(net.seen(|e| matches!(e, Event::SwitchBack { switch } if *switch == spine)), 1);
    net.assert_as_wanted();
}

#[test]
fn flows_leave_a_switch_that_died_once_it_counts_as_lost() {
    let mut net = running();
    let spine = fabric().as_switch(fabric().link(uplink(&net)).to).unwrap();
    let through = |net: &Net| {
        let topology = fabric();
        let node = topology.switch_node(spine);
        let goals = net.core.goals().values();
        goals.filter(|goal| goal.path.links.iter().any(|l| topology.link(*l).to == node)).count()
    };
    assert!(through(&net) > 0);
    net.dead.insert(spine);
    net.break_stream(spine);
    net.run(Span::from_millis(2_900));
    assert!(through(&net) > 0, "a short outage moves nothing");
    net.run(Span::from_millis(200));
    assert_eq!(through(&net), 0);
    assert!(net.core.converged(), "{}", net.core.describe_switches());
    let leg = *net.core.flow(FlowId(0)).unwrap().leg(Side::Forward);
    assert_eq!((leg.now, leg.force), (leg.old, true), "no packet may take the unknown path again");
    net.assert_as_wanted();
}

#[test]
fn a_crash_between_any_two_steps_of_a_change_ends_on_the_stored_target() {
    let mut steps = 0;
    loop {
        let mut net = running();
        net.input(Input::SetPolicy { policy: "second".into() });
        let until = net.now + SOON;
        let mut left = steps;
        while left > 0 && !net.core.converged() && net.step(until) {
            left -= 1;
        }
        let done = net.core.converged();
        let goals = net.core.goals().clone();
        net.crash();
        net.converge(Span::from_millis(5_000));
        assert_eq!(net.core.goals(), &goals, "after {steps} steps");
        net.assert_as_wanted();
        if done {
            break;
        }
        steps += 1;
    }
    assert!(steps > 10, "only {steps} places to crash at");
}

#[test]
fn a_controller_on_a_file_goes_on_where_the_killed_one_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let mut net = Net::new(fabric());
    net.store = Box::new(RedbStore::open(&path).unwrap());
    net.boot();
    net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
    net.converge(SOON);
    net.input(Input::SetPolicy { policy: "second".into() });
    let goals = net.core.goals().clone();
    // The file as the disk has it in the middle of the change; the killed process closes nothing.
    let copy = dir.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    net.store = Box::new(RedbStore::open(&copy).unwrap());
    net.crash();
    net.converge(SOON);
    assert_eq!((net.core.goals(), net.core.generation()), (&goals, 2));
    net.assert_as_wanted();
}

#[test]
fn a_recording_replayed_gives_the_same_outputs() {
    let mut net = running();
    net.input(Input::SetPolicy { policy: "second".into() });
    net.write_faults.push_back((LEAF, WriteFault::FailAfter(Code::Unavailable)));
    net.converge(SOON);
    net.restart(SwitchId(3));
    net.check_labels = false;
    net.converge(SOON);
    let mut core = net.fresh_core();
    for (line, outputs) in &net.recording {
        let (at, input) = record::from_line(line).unwrap();
        assert_eq!(&format!("{:?}", core.step(at, input)), outputs, "{line}");
    }
    assert!(net.recording.len() > 50);
}

/// The link between two switches, given by their numbers.
fn between(topology: &Topology, from: u32, to: u32) -> LinkId {
    let links = topology.out_links(NodeId(from)).iter().copied();
    let mut links = links.filter(|link| topology.link(*link).to == NodeId(to));
    links.next().unwrap()
}

/// Leaf 0 can reach leaf 1 only by way of leaf 2, then everything is whole again.
fn after_a_detour() -> (Net, Label) {
    let mut net = running();
    let topology = fabric();
    let dead = [between(&topology, 0, 3), between(&topology, 1, 4)];
    for link in dead {
        net.link(link, false);
    }
    net.converge(SOON);
    let goal = net.core.goals()[&FlowId(0)].clone();
    assert_eq!(goal.path.links.len(), 6, "host, leaf, spine, leaf, spine, leaf, host");
    assert_eq!(net.walk(LEAF, goal.forward.label), Some(SwitchId(1)));
    for link in dead {
        net.link(link, true);
    }
    net.converge(SOON);
    assert_ne!(net.core.goals()[&FlowId(0)].forward.label, goal.forward.label);
    (net, goal.forward.label)
}

#[test]
fn a_label_of_a_detour_is_removed_from_the_source_down_when_nothing_can_carry_it() {
    let (mut net, label) = after_a_detour();
    let key = crate::pipeline::entry_set::label_key(net.core.program(), label).unwrap();
    let held = |net: &Net| {
        let topology = fabric();
        let switches = topology.switches();
        switches.filter(|s| net.servers[s.index()].device().entities.contains_key(&key)).count()
    };
    let all = held(&net);
    assert!(all >= 5, "{all}");
    net.run(Span::from_millis(10_500));
    assert_eq!(held(&net), all, "it rests for eleven seconds");
    let until = net.now + Span::from_millis(6_000);
    while net.step(until) {
        for leaf in fabric().switches() {
            let here = net.servers[leaf.index()].device().entities.contains_key(&key);
            assert!(!here || net.walk(leaf, label).is_some(), "cut below switch {leaf}");
        }
    }
    assert_eq!(held(&net), 0);
    assert!(net.seen(|e| matches!(e, Event::LabelRemoved { label: l } if *l == label.0)) == 1);
    net.converge(SOON);
    net.assert_as_wanted();
}

#[test]
fn a_label_whose_counters_still_run_stays() {
    let (mut net, label) = after_a_detour();
    for _ in 0..20 {
        net.device(SwitchId(1)).packets += 1;
        net.run(Span::from_millis(1_000));
    }
    assert_eq!(net.seen(|e| matches!(e, Event::LabelRemoved { .. })), 0);
    assert_eq!(net.walk(LEAF, label), Some(SwitchId(1)));
}

#[test]
fn a_crash_after_any_output_loses_nothing_that_was_acknowledged() {
    let mut outputs = 0;
    loop {
        let mut net = Net::new(fabric());
        net.boot();
        net.converge(SOON);
        net.cut = Some(outputs);
        net.input(Input::SubmitJobs(vec![job(&fabric(), 0, &[0, 2, 4])]));
        net.run(Span::from_millis(5));
        let acknowledged = net.seen(|e| matches!(e, Event::JobAccepted { .. })) == 1;
        let done = net.cut != Some(0);
        net.crash();
        net.converge(SOON);
        net.assert_as_wanted();
        let placed = net.core.goals().len();
        assert!(placed == 3 || !acknowledged, "{placed} flows after a crash at output {outputs}");
        if done {
            break;
        }
        outputs += 1;
    }
    assert!(outputs > 15, "only {outputs} places to crash at");
}

#[test]
fn an_election_epoch_is_never_used_twice_even_when_the_clock_goes_back() {
    let mut net = running();
    let epoch = |net: &Net| match net.store.load().unwrap()[0] {
        Record::Epoch(epoch) => epoch,
        ref other => panic!("{other:?}"),
    };
    let before = epoch(&net);
    net.wall_ms -= 3_600_000;
    net.crash();
    assert_eq!(epoch(&net), before + 1);
    net.converge(SOON);
}

#[test]
fn two_runs_give_the_same_outputs() {
    let run = || {
        let mut net = running();
        net.link(uplink(&net), false);
        net.converge(SOON);
        (format!("{:?}", net.events), net.store.load().unwrap(), net.now)
    };
    assert_eq!(run(), run());
}

#[test]
fn a_switch_with_another_program_is_drained_first_or_replaced_by_force() {
    for force in [false, true] {
        let mut net = tuned(move |config| config.force_pipeline = force);
        net.check_labels = false;
        let spine = SwitchId(3);
        net.load_other_program(spine);
        net.break_stream(spine);
        net.converge(Span::from_millis(10_000));
        net.run(SOON);
        net.converge(SOON);
        let foreign = net.seen(|e| matches!(e, Event::PipelineForeign { .. }));
        assert_eq!(foreign, usize::from(!force));
        assert!(net.core.uses(spine));
        net.assert_as_wanted();
    }
}

#[test]
fn a_configuration_that_contradicts_itself_is_refused() {
    let make = |tune: fn(&mut Config)| Core::new(net::config(fabric(), tune)).err();
    assert!(matches!(make(|c| c.policy = "none".into()), Some(CoreError::Policy { .. })));
    assert!(matches!(
        make(|c| c.device_ids.truncate(1)),
        Some(CoreError::DeviceIds { given: 1, .. })
    ));
}
