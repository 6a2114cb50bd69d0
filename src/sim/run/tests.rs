//! Whole runs: the controller's core, the P4Runtime server, the compiled program on embedded switches, hosts.

use super::*;
use crate::plan::{Assignment, Plan};
use crate::sim::harness::small_scenario;
use crate::solver::{Effort, Objective, Policy, Problem};
use crate::workload::scenario::{Event, EventKind};
use std::sync::Arc;

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

pub(crate) fn in_turn() -> SharedPolicy {
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

fn go(scenario: &Scenario, wire: WireKind, options: Options) -> Result<RunResult, RunError> {
    let artifacts = committed_program()?;
    run(&RunSpec {
        scenario,
        policies: &[in_turn()],
        policy: "in-turn",
        artifacts: &artifacts,
        wire,
        planning: planning(scenario),
        options,
    })
}

fn calm(seed: u64) -> Scenario {
    let mut scenario = small_scenario(seed).expect("a scenario");
    scenario.events.clear();
    scenario
}

#[test]
fn a_policy_runs_through_controller_servers_and_p4_switches_without_loss() {
    for seed in 0..4 {
        let result = go(&calm(seed), WireKind::Direct, Options::default()).expect("a result");
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
    let at = crate::time::Span::from_millis(30);
    scenario.events.push(Event { at, kind: EventKind::MoveFlows { count: 3 } });
    let direct = go(&scenario, WireKind::Direct, Options::default()).expect("a result");
    let again = go(&scenario, WireKind::Direct, Options::default()).expect("a result");
    let grpc = go(&scenario, WireKind::Grpc, Options::default()).expect("a result");
    assert_eq!(direct, again);
    assert_eq!(direct, grpc);
    scenario.seed += 1;
    let other = go(&scenario, WireKind::Direct, Options::default()).expect("a result");
    assert_ne!(direct.digest, other.digest, "another seed is another run");
}

#[test]
fn a_wire_whose_socket_is_cut_ends_the_run_naming_the_switch() {
    use crate::id::SwitchId;
    use crate::sim::wire::GrpcWire;
    let scenario = calm(5);
    let artifacts = committed_program().expect("the program");
    let spec = RunSpec {
        scenario: &scenario,
        policies: &[in_turn()],
        policy: "in-turn",
        artifacts: &artifacts,
        wire: WireKind::Grpc,
        planning: planning(&scenario),
        options: Options::default(),
    };
    let assembly = assemble(&spec).expect("a world");
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
