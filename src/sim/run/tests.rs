//! Whole runs: the controller's core, the P4Runtime server, the compiled program on embedded switches, hosts.

use super::*;
use crate::controller::messages::Event as Notice;
use crate::plan::{Assignment, Plan};
use crate::sim::harness::small_scenario;
use crate::solver::{Effort, Objective, Policy, Problem};
use crate::time::Span;
use crate::workload::scenario::{Event, EventKind};
use std::sync::{Arc, LazyLock};

mod probes;
mod telemetry;

/// Spreads flows over paths and queues in turn.
struct InTurn;

impl Policy for InTurn {
    fn name(&self) -> &'static str {
        "in-turn"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let assign = |(i, flow): (usize, &crate::workload::Flow)| Assignment {
            flow: flow.id,
            path: problem.paths[i][i % problem.paths[i].len()].clone(),
            queue: i as u8 % problem.levels,
            reason: "in turn".into(),
        };
        Plan {
            generation: 0,
            policy: self.name().into(),
            assignments: problem.flows.iter().enumerate().map(assign).collect(),
        }
    }
}

fn in_turn() -> SharedPolicy {
    Arc::new(InTurn)
}

fn planning(scenario: &Scenario) -> Planning {
    Planning {
        levels: scenario.levels(),
        max_paths: scenario.max_paths,
        max_evaluations: 1,
        objective: Objective::default(),
        phases: 1,
    }
}

fn spec<'a>(scenario: &'a Scenario, wire: WireKind) -> RunSpec<'a> {
    static ARTIFACTS: LazyLock<Artifacts> =
        LazyLock::new(|| Artifacts::built_in().expect("the program"));
    static POLICIES: LazyLock<[SharedPolicy; 1]> = LazyLock::new(|| [in_turn()]);
    RunSpec {
        scenario,
        policies: &*POLICIES,
        policy: "in-turn",
        artifacts: &ARTIFACTS,
        wire,
        planning: planning(scenario),
        options: Options::default(),
    }
}

fn go(scenario: &Scenario, wire: WireKind) -> Result<RunResult, RunError> {
    run(&spec(scenario, wire))
}

fn calm(seed: u64) -> Scenario {
    let mut scenario = small_scenario(seed).expect("a scenario");
    scenario.events.clear();
    scenario
}

#[test]
fn a_policy_runs_through_controller_servers_and_p4_switches_without_loss() {
    for seed in 0..4 {
        let result = go(&calm(seed), WireKind::Direct).expect("a result");
        let packets = result.packets;
        assert!(packets.sent > 100, "{result:?}");
        assert_eq!(packets.delivered, packets.sent, "{result:?}");
        assert_eq!(packets.control_delivered, packets.control_sent, "{result:?}");
        assert_eq!((packets.duplicated, packets.reordered, packets.repeated), (0, 0, 0));
        assert_eq!(packets.dropped, Dropped::default(), "{result:?}");
        assert!(result.entries_written > 0 && result.gpu_utilisation > 0.1, "{result:?}");
    }
}

#[test]
fn both_wires_give_the_same_bytes_and_so_do_two_runs() {
    let mut scenario = calm(11);
    let at = Span::from_millis(30);
    scenario.events.push(Event { at, kind: EventKind::MoveFlows { count: 3 } });
    let direct = go(&scenario, WireKind::Direct).expect("a result");
    let again = go(&scenario, WireKind::Direct).expect("a result");
    let grpc = go(&scenario, WireKind::Grpc).expect("a result");
    assert_eq!(direct, again);
    assert_eq!(direct, grpc);
    scenario.seed += 1;
    let other = go(&scenario, WireKind::Direct).expect("a result");
    assert_ne!(direct.digest, other.digest, "another seed is another run");
}

#[test]
fn a_wire_whose_socket_is_cut_ends_the_run_naming_the_switch() {
    use crate::id::SwitchId;
    use crate::sim::wire::GrpcWire;
    let scenario = calm(5);
    let assembly = assemble(&spec(&scenario, WireKind::Grpc)).expect("a world");
    let wire = GrpcWire::start(&assembly.servers, &scenario.topology).expect("servers");
    let mut world = assembly.into_world(wire);
    world.boot().expect("a start");
    let victim = SwitchId(1);
    let mut cut = false;
    let error = loop {
        match world.step() {
            Ok(Some(_)) if !cut && world.counts().updates > 20 => {
                for switch in scenario.topology.switches() {
                    let bytes = world.wire_mut().socket_bytes(switch);
                    assert!(bytes.read > 1000 && bytes.written > 100, "{switch}: {bytes:?}");
                }
                world.wire_mut().cut(victim);
                cut = true;
            }
            Ok(Some(_)) => {}
            Ok(None) => panic!("the run ended although a socket was cut"),
            Err(error) => break error,
        }
    };
    let name = &scenario.topology.node(scenario.topology.switch_node(victim)).name;
    assert!(error.to_string().contains(name.as_str()), "{error} names {name}");
}

#[test]
fn a_stuck_exchange_ends_the_run_naming_switch_and_call() {
    use crate::sim::wire::GrpcWire;
    let scenario = calm(5);
    let assembly = assemble(&spec(&scenario, WireKind::Grpc)).expect("a world");
    let wire = GrpcWire::start(&assembly.servers, &scenario.topology).expect("servers");
    // No exchange over a socket is done in no time.
    let mut world = assembly.into_world(wire.with_watchdog(std::time::Duration::ZERO));
    world.boot().expect("a start");
    let error = loop {
        match world.step() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the run ended although a switch was stuck"),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    let names = scenario.topology.nodes().iter().map(|node| format!("'{}'", node.name));
    assert!(names.into_iter().any(|name| text.contains(&name)), "{text}");
    // Which exchange is caught first depends on the machine; each is named.
    let calls = ["StreamChannel", "SetForwardingPipelineConfig", "Capabilities", "Read", "Write"];
    let named = calls.iter().any(|call| text.contains(&format!("{call} got no answer within")));
    assert!(named, "{text}");
}

/// A busy fabric whose flows are moved again as soon as their last move is in force.
fn restless(seed: u64, moves: u32) -> Scenario {
    let mut scenario = calm(seed);
    for job in &mut scenario.jobs {
        job.iterations = 11 * moves;
        job.compute = Span::from_millis(4);
        job.gradient = crate::units::Bytes(20_000);
    }
    // The controller looks every 50 ms whether flips are in force.
    let at = |i: u32| Span::from_micros(5_000 + u64::from(i) * 55_000);
    scenario.events =
        (0..moves).map(|i| Event { at: at(i), kind: EventKind::MoveFlows { count: 24 } }).collect();
    scenario
}

#[test]
fn a_thousand_orderly_changes_lose_and_reorder_nothing() {
    use crate::sim::host::Recovery;
    use crate::workload::flows;
    let mut moved = 0;
    let many = |seed: &u64| {
        let scenario = calm(*seed);
        flows(&scenario.topology, &scenario.jobs).is_ok_and(|flows| flows.len() >= 16)
    };
    let mut seeds = (0..1000).filter(many);
    for (recovery, moves) in [(Recovery::Selective, 55), (Recovery::GoBackN, 45)] {
        let scenario = restless(seeds.next().expect("a scenario with many flows"), moves);
        let options = Options { recovery, ..Options::default() };
        let spec = RunSpec { options, ..spec(&scenario, WireKind::Direct) };
        let assembly = assemble(&spec).expect("a world");
        let (wire, facts) = (DirectWire::new(&assembly.servers), assembly.facts.clone());
        let mut world = assembly.into_world(wire);
        world.run(&mut |_, _, _| Ok::<(), WorldError>(())).expect("an end");
        moved += world
            .notices
            .iter()
            .map(|(_, notice)| match notice {
                Notice::Planned { changed, generation, .. } if *generation > 1 => *changed,
                _ => 0,
            })
            .sum::<usize>();
        let result = measure::measure("in-turn", &facts, &mut world).expect("figures");
        let packets = result.packets;
        assert_eq!(packets.delivered, packets.sent, "{result:?}");
        assert_eq!((packets.duplicated, packets.repeated), (0, 0), "{result:?}");
        assert_eq!(packets.dropped, Dropped::default(), "{result:?}");
        assert_eq!((packets.reordered, result.forced_flips), (0, 0), "{result:?}");
    }
    assert!(moved >= 1_000, "only {moved} changes were made");
}

#[test]
fn a_job_alone_computes_and_communicates_in_turn_and_no_policy_beats_its_time_alone() {
    let mut scenario = calm(4);
    scenario.jobs.truncate(1);
    let job = &mut scenario.jobs[0];
    (job.overlap, job.jitter, job.iterations) = (0.0, 0.0, 20);
    job.gradient = crate::units::Bytes(2_000_000);
    let (compute_ms, ranks) = (job.compute.as_secs_f64() * 1e3, job.ranks.len() as f64);
    let name = job.name.clone();
    let result = go(&scenario, WireKind::Direct).expect("a result");
    let alone = contention_free(&spec(&scenario, WireKind::Direct)).expect("times")[&name];
    // Every edge carries 2(n-1)/n of the gradient over 1 Gb/s, in frames of 1082 bytes with 1024 of payload.
    let line_ms = 2.0 * (ranks - 1.0) / ranks * 2e6 * 8.0 / 1e9 * 1e3 * 1082.0 / 1024.0;
    let comm = result.comm_ms_per_job[&name];
    assert!(alone > line_ms && alone < 1.1 * line_ms, "{alone} ms alone, {line_ms} at line rate");
    assert!(comm > 0.99 * alone, "{comm} ms with a policy, {alone} ms alone");
    assert_eq!(result.comm_ms_mean, comm);
    let wanted = compute_ms / (compute_ms + comm);
    assert!((result.gpu_utilisation / wanted - 1.0).abs() < 0.01, "{result:?}, wanted {wanted}");
}

#[test]
fn watching_a_run_changes_none_of_its_figures() {
    let mut scenario = calm(8);
    let at = Span::from_millis(30);
    scenario.events.push(Event { at, kind: EventKind::MoveFlows { count: 3 } });
    let spec = spec(&scenario, WireKind::Direct);
    let plain = run(&spec).expect("a result");
    let (watched, first) = watch(&spec).expect("a result");
    let (_, second) = watch(&spec).expect("a result");
    assert_eq!(plain, watched);
    assert_eq!(first, second, "one seed, one recording");
    assert!(first.plans.len() >= 2 && first.plans[0].flows != first.plans[1].flows);
    assert!(first.steps.iter().any(|(_, step)| *step == crate::sim::world::Step::Move(3)));
}

#[test]
fn the_load_recorded_is_what_the_switches_counted_and_waits_are_one_per_frame() {
    use crate::sim::fabric::lock;
    for seed in [1, 6] {
        let scenario = calm(seed);
        let spec = spec(&scenario, WireKind::Direct);
        let assembly = assemble(&spec).expect("a world");
        let wire = DirectWire::new(&assembly.servers);
        let mut world = assembly.into_world(wire);
        world.record(scenario.queues);
        world.run(&mut |_, _, _| Ok::<(), WorldError>(())).expect("an end");
        let (mut bytes, mut frames) = (0, 0);
        for (index, link) in scenario.topology.links().iter().enumerate() {
            let counted = match scenario.topology.as_switch(link.from) {
                Some(from) => {
                    let server = lock(&world.servers[from.index()]);
                    let sent = server.device().stats().port(link.from_port).sent;
                    frames += sent.packets;
                    sent.bytes
                }
                // Nothing is lost on a calm fabric, so a leaf has received what the host has sent.
                None => {
                    let to = scenario.topology.as_switch(link.to).expect("a leaf");
                    let server = lock(&world.servers[to.index()]);
                    server.device().stats().port(link.to_port).received.bytes
                }
            };
            let trace = world.net.trace_mut().expect("a trace");
            assert_eq!(trace.load.total(index), counted, "link {index}");
            bytes += counted;
        }
        let recording = record::recording(&mut world);
        let waits: u64 = recording.waits.iter().map(|waits| waits.frames).sum();
        assert_eq!((waits, recording.waits.len()), (frames, 8));
        let load: u64 = recording.load.iter().flatten().sum();
        assert_eq!(load, bytes, "nothing was sent before the first plan was in force");
        assert!(bytes > 100_000, "{bytes}");
        let busiest = recording.load.iter().zip(&recording.rates).map(|(row, rate)| {
            let most = rate.0 as f64 / 8.0 * recording.bucket.as_secs_f64();
            row.iter().max().map_or(0.0, |bytes| *bytes as f64 / most)
        });
        let busiest = busiest.fold(0.0, f64::max);
        assert!(busiest > 0.05 && busiest <= 1.0 + 1e-3, "{busiest} of a link's rate");
    }
}

#[test]
fn iterations_are_recorded_from_compute_to_end() {
    let scenario = calm(2);
    let (_, recording) = watch(&spec(&scenario, WireKind::Direct)).expect("a result");
    for (job, history) in scenario.jobs.iter().zip(&recording.iterations) {
        assert_eq!(history.len(), job.iterations as usize);
        for pair in history.windows(2) {
            assert_eq!(pair[0].end, pair[1].start, "iterations follow without a gap");
        }
        for it in history {
            assert!(
                it.start <= it.comm_start && it.comm_start < it.comm_end && it.comm_end <= it.end
            );
            assert!(it.end <= recording.end);
        }
    }
}

#[test]
fn a_failed_host_shrinks_its_jobs_and_the_others_do_not_notice() {
    let mut scenario = calm(3);
    let template = scenario.jobs[0].clone();
    let ring = |id: usize, hosts: &[u32]| crate::workload::Job {
        id: crate::id::JobId::from(id),
        name: format!("job-{id}"),
        ranks: hosts.iter().copied().map(crate::id::HostId).collect(),
        iterations: 40,
        ..template.clone()
    };
    scenario.jobs = vec![ring(0, &[0, 2, 1]), ring(1, &[2, 3]), ring(2, &[1, 3])];
    let at = Span::from_millis(200);
    scenario.events.push(Event { at, kind: EventKind::HostFail { host: crate::id::HostId(2) } });
    let spec = spec(&scenario, WireKind::Direct);
    let assembly = assemble(&spec).expect("a world");
    let wire = DirectWire::new(&assembly.servers);
    let facts = assembly.facts.clone();
    let mut world = assembly.into_world(wire);
    world.run(&mut |_, _, _| Ok::<(), WorldError>(())).expect("an end");
    let changes = world.regrouped();
    let jobs: Vec<u32> = changes.iter().map(|change| change.job.0).collect();
    assert_eq!(jobs, [0, 1], "{changes:?}");
    for change in changes {
        assert_eq!((change.generation.0, change.iterations_lost), (1, 1));
        assert_eq!(change.told_at - change.failed_at, Span::from_millis(300), "three heartbeats");
        let took = change.resumed_at.expect("it went on") - change.failed_at;
        assert!(took > Span::from_millis(800) && took < Span::from_millis(900), "{took:?}");
        assert!(change.cause.contains("failed"));
    }
    for (job, left) in [(0, 2), (1, 1), (2, 2)] {
        let history = world.net.job(crate::id::JobId(job)).history();
        assert_eq!((history.len(), history.last().map(|it| it.ranks)), (40, Some(left)), "{job}");
    }
    let result = measure::measure("in-turn", &facts, &mut world).expect("figures");
    assert!(result.packets.dropped.host_down > 0);
    assert_eq!(result.packets.dropped.label_miss, 0);
    let lost: Vec<_> =
        result.restarts.iter().map(|it| (it.job.as_str(), it.iterations_lost)).collect();
    assert_eq!(lost, [("job-0", 1), ("job-1", 1)]);
}

#[test]
fn a_job_whose_hosts_all_fail_is_stopped_and_the_run_ends() {
    let mut scenario = calm(3);
    scenario.jobs.truncate(1);
    scenario.jobs[0].iterations = 1_000;
    let hosts = scenario.jobs[0].ranks.clone();
    let fail = |(i, host): (u64, &crate::id::HostId)| Event {
        at: Span::from_millis(200 + 50 * i),
        kind: EventKind::HostFail { host: *host },
    };
    scenario.events = (0..).zip(&hosts).map(fail).collect();
    let spec = spec(&scenario, WireKind::Direct);
    let assembly = assemble(&spec).expect("a world");
    let wire = DirectWire::new(&assembly.servers);
    let mut world = assembly.into_world(wire);
    world.run(&mut |_, _, _| Ok::<(), WorldError>(())).expect("an end");
    let stopped = |notice: &(_, Notice)| matches!(&notice.1, Notice::JobStopped { reason, .. } if reason.contains("lost all its hosts"));
    assert!(world.notices.iter().any(stopped), "{:?}", world.notices);
}

#[test]
fn a_second_failure_before_the_ring_stands_leads_to_the_newest_membership_only() {
    let mut scenario = calm(3);
    scenario.jobs.truncate(1);
    scenario.jobs[0].ranks = [0, 2, 1, 3].map(crate::id::HostId).to_vec();
    scenario.jobs[0].iterations = 40;
    for (ms, host) in [(200, 2), (600, 3)] {
        let kind = EventKind::HostFail { host: crate::id::HostId(host) };
        scenario.events.push(Event { at: Span::from_millis(ms), kind });
    }
    let spec = spec(&scenario, WireKind::Direct);
    let assembly = assemble(&spec).expect("a world");
    let wire = DirectWire::new(&assembly.servers);
    let mut world = assembly.into_world(wire);
    world.run(&mut |_, _, _| Ok::<(), WorldError>(())).expect("an end");
    let changes = world.regrouped();
    let resumed: Vec<bool> = changes.iter().map(|change| change.resumed_at.is_some()).collect();
    assert_eq!(resumed, [false, true], "{changes:?}");
    assert_eq!(changes.iter().map(|change| change.iterations_lost).sum::<u32>(), 1);
    let history = world.net.job(crate::id::JobId(0)).history();
    assert_eq!(history.len(), 40);
    assert_eq!(history.last().map(|it| it.ranks), Some(2));
}

#[test]
fn a_cable_that_is_down_stays_down_when_its_rate_changes_and_keeps_its_rate_when_it_comes_back() {
    let mut scenario = calm(3);
    let link = scenario.topology.uplink(scenario.topology.hosts().next().expect("a host"));
    let ms = Span::from_millis;
    scenario.jobs.truncate(1);
    scenario.jobs[0].iterations = 60;
    let slow = EventKind::LinkSlow { link, factor: 0.5, lasts: Some(ms(200)) };
    for (at, kind) in [
        (100, EventKind::LinkDown { link }),
        (150, slow),
        (250, EventKind::LinkUp { link }),
        (500, EventKind::Replan),
    ] {
        scenario.events.push(Event { at: ms(at), kind });
    }
    let assembly = assemble(&spec(&scenario, WireKind::Direct)).expect("a world");
    let wire = DirectWire::new(&assembly.servers);
    let mut world = assembly.into_world(wire);
    let mut seen = Vec::new();
    let reverse = scenario.topology.reverse(link);
    world
        .run(&mut |world, _, _| {
            let share = |link| {
                let link = world.net.link(link);
                (link.up, (link.rate.0 as f64 / link.nominal.0 as f64 * 100.0).round() as u32)
            };
            if seen.last() != Some(&(share(link), share(reverse))) {
                seen.push((share(link), share(reverse)));
            }
            Ok::<(), WorldError>(())
        })
        .expect("an end");
    let wanted = [(true, 100), (false, 100), (false, 50), (true, 50), (true, 100)];
    assert_eq!(seen, wanted.map(|state| (state, state)), "both directions at once");
}
