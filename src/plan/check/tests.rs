//! A good plan passes; each way to break it has its own violation.

use super::*;
use crate::id::{HostId, JobId};
use crate::plan::Assignment;
use crate::topology::generate::LeafSpine;
use crate::topology::{LinkSet, Path, Paths};
use crate::units::BitRate;

fn case() -> (Topology, Vec<Demand>, Plan) {
    let topology = LeafSpine::new(2, 2, 2, BitRate(1_000)).build().unwrap();
    let paths = Paths::build(&topology, &LinkSet::new(), 4).unwrap();
    let demand = |src, dst| Demand { job: JobId(0), src: HostId(src), dst: HostId(dst), bytes: 1 };
    let demands = vec![demand(0, 2), demand(0, 3), demand(2, 3)];
    let assignments = demands.iter().enumerate().map(|(i, demand)| Assignment {
        flow: FlowId::from(i),
        path: paths.candidates(&topology, demand.src, demand.dst).last().unwrap().clone(),
        queue: 5,
        reason: String::new(),
    });
    let plan = Plan { generation: 1, policy: "test".into(), assignments: assignments.collect() };
    (topology, demands, plan)
}

fn violations(change: impl FnOnce(&Topology, &mut Plan, &mut LinkState)) -> Vec<Violation> {
    let (topology, demands, mut plan) = case();
    let mut links = LinkState::default();
    change(&topology, &mut plan, &mut links);
    check(&topology, &links, &demands, 6, &plan)
}

#[test]
fn a_plan_of_candidate_paths_passes() {
    assert_eq!(violations(|_, _, _| {}), []);
}

#[test]
fn each_mistake_has_its_own_violation() {
    type Break = fn(&Topology, &mut Plan, &mut LinkState);
    let cases: [(Break, &str); 11] = [
        (|_, plan, _| drop(plan.assignments.pop()), "2 assignments for 3 flows"),
        (|_, plan, _| plan.assignments.swap(0, 1), "assignment 0 is for flow 1"),
        (
            |_, plan, _| plan.assignments[1].queue = 6,
            "flow 1 has queue 6; plans use queues below 6",
        ),
        (|_, plan, _| plan.assignments[0].path.links[1] = LinkId(999), "flow 0 uses link 999"),
        (
            |_, plan, _| {
                plan.assignments[0].path.links.remove(0);
            },
            "does not start with the cable of its source 'h1'",
        ),
        (
            |_, plan, _| {
                plan.assignments[0].path.links.pop();
            },
            "does not end with the cable of its destination 'h3'",
        ),
        (
            |_, plan, _| plan.assignments[2].path.links.clear(),
            "does not start with the cable of its source 'h3'",
        ),
        (
            |_, plan, _| {
                plan.assignments[0].path.links.remove(1);
            },
            "breaks after hop 1: 'leaf1' is reached and 'spine2' is left",
        ),
        (
            |topology, plan, _| {
                let up = plan.assignments[0].path.links[1];
                let detour = [up, topology.reverse(up)];
                plan.assignments[0].path.links.splice(1..1, detour);
            },
            "flow 0 passes 'leaf1' twice",
        ),
        (
            |_, plan, links| {
                links.failed.insert(plan.assignments[1].path.links[2]);
            },
            "the link spine2 -> leaf2, which is down",
        ),
        (
            |topology, plan, _| {
                let paths = Paths::build(topology, &LinkSet::new(), 4).unwrap();
                let other = &paths.candidates(topology, HostId(0), HostId(2))[0];
                plan.assignments[0].path = Path { tree: TreeId(1), links: other.links.clone() };
            },
            "flows 0 and 1 both go to leaf 'leaf2' on tree 1, but leave 'leaf1' on different links",
        ),
    ];
    for (change, part) in cases {
        let found = violations(change);
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains(part)), "wanted '{part}' in {texts:?}");
    }
}

#[test]
fn thousands_of_violations_are_cut() {
    let (topology, demand, plan) = case();
    let demands: Vec<Demand> = (0..1_000).map(|_| demand[0]).collect();
    let mut plan = Plan { assignments: vec![plan.assignments[0].clone(); 1_000], ..plan };
    for assignment in &mut plan.assignments {
        assignment.queue = 200;
    }
    assert_eq!(check(&topology, &LinkState::default(), &demands, 6, &plan).len(), MAX_VIOLATIONS);
}
