//! The bound against hand-made cases and against every plan of small ones.

use super::*;
use crate::id::{FlowId, NodeId};
use crate::plan::{Assignment, Plan, drain};
use crate::time::stream;
use crate::topology::generate::LeafSpine;
use crate::topology::{LinkSet, Paths};
use crate::units::BitRate;
use proptest::prelude::*;

fn demand(job: u32, src: u32, dst: u32, bytes: u64) -> Demand {
    Demand { job: JobId(job), src: HostId(src), dst: HostId(dst), bytes }
}

#[test]
fn on_one_link_the_bound_is_shortest_first() {
    // 8 bit/s. Jobs of 1, 2 and 3 bytes out of one host: 1 + 3 + 6.
    let topology = LeafSpine::new(1, 1, 4, BitRate(8)).build().unwrap();
    let demands = [demand(0, 0, 1, 3), demand(1, 0, 2, 1), demand(2, 0, 3, 2)];
    assert_eq!(drain_sum(&topology, &LinkState::default(), &demands), 10.0);
    assert_eq!(drain_sum(&topology, &LinkState::default(), &[]), 0.0);
}

#[test]
fn jobs_that_meet_nowhere_add_their_times_alone_to_the_busiest_link() {
    let topology = LeafSpine::new(2, 2, 4, BitRate(8)).build().unwrap();
    let demands = [demand(0, 0, 1, 4), demand(1, 0, 2, 2), demand(2, 4, 5, 7)];
    assert_eq!(drain_sum(&topology, &LinkState::default(), &demands), 2.0 + 6.0 + 7.0);
    // Jobs 0, 1 meet at host 0 and jobs 2, 3 at host 4: moves find both machines.
    let demands = [demand(0, 0, 1, 4), demand(1, 0, 2, 2), demand(2, 4, 5, 7), demand(3, 4, 6, 7)];
    assert_eq!(drain_sum(&topology, &LinkState::default(), &demands), 2.0 + 6.0 + 7.0 + 14.0);
}

#[test]
fn the_links_above_a_leaf_are_one_machine_and_failed_ones_do_not_count() {
    // Four hosts of leaf 1 send 8 bytes each over two uplinks of 1 byte/s: 16 s together, 8 s apart.
    let topology = LeafSpine::new(2, 2, 4, BitRate(8)).build().unwrap();
    let demands: Vec<Demand> = (0..4).map(|host| demand(host, host, 4 + host, 8)).collect();
    let mut links = LinkState::default();
    assert_eq!(drain_sum(&topology, &links, &demands), 4.0 + 8.0 + 12.0 + 16.0);
    let up = *topology.out_links(NodeId(0)).last().unwrap();
    links.failed.insert_cable(&topology, up);
    assert_eq!(drain_sum(&topology, &links, &demands), 8.0 + 16.0 + 24.0 + 32.0);
}

/// Smallest drain sum over every choice of path and queue.
fn enumerate(topology: &Topology, demands: &[Demand], levels: u8) -> f64 {
    let paths = Paths::build(topology, &LinkSet::new(), 4).unwrap();
    let rates = LinkState::default().rates(topology);
    let choices: Vec<Vec<Assignment>> = demands
        .iter()
        .enumerate()
        .map(|(i, demand)| {
            let candidates = paths.candidates(topology, demand.src, demand.dst);
            let all =
                candidates.into_iter().flat_map(|path| (0..levels).map(move |q| (path.clone(), q)));
            all.map(|(path, queue)| Assignment {
                flow: FlowId::from(i),
                path,
                queue,
                reason: String::new(),
            })
            .collect()
        })
        .collect();
    let total: usize = choices.iter().map(Vec::len).product();
    let mut best = f64::INFINITY;
    for mut code in 0..total {
        let mut assignments = Vec::new();
        for choice in &choices {
            assignments.push(choice[code % choice.len()].clone());
            code /= choice.len();
        }
        let plan = Plan { generation: 0, policy: String::new(), assignments };
        let done = drain::completions(&rates, demands, &plan);
        let sum: f64 = drain::by_job(demands, &done).iter().map(|job| job.1.unwrap()).sum();
        best = best.min(sum);
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_plan_of_a_small_case_beats_the_bound(seed in any::<u64>(), flows in 2_usize..5) {
        let mut rng = stream(seed, "bound", 0);
        let mut fabric = LeafSpine::new(2, 2, 2, BitRate(800));
        fabric.fabric_link = BitRate(rng.random_range(200..800));
        let topology = fabric.build().unwrap();
        let demands: Vec<Demand> = (0..flows)
            .map(|_| {
                let src = rng.random_range(0..4);
                let dst = (src + rng.random_range(1..4)) % 4;
                demand(rng.random_range(0..3), src, dst, rng.random_range(1..50))
            })
            .collect();
        let bound = drain_sum(&topology, &LinkState::default(), &demands);
        let best = enumerate(&topology, &demands, 2);
        prop_assert!(bound > 0.0);
        prop_assert!(bound <= best * (1.0 + 1e-6), "bound {bound} above {best} for {demands:?}");
    }
}
