use super::*;
use crate::solver::Objective;
use crate::topology::generate::LeafSpine;
use crate::units::{BitRate, Bytes};
use std::collections::BTreeSet;

fn fabric() -> Topology {
    LeafSpine::new(4, 2, 4, BitRate(25_000_000_000)).build().unwrap()
}

fn job(id: usize, hosts: &[usize]) -> Job {
    Job {
        id: JobId::from(id),
        name: format!("job{id}"),
        model: "custom".into(),
        ranks: hosts.iter().copied().map(HostId::from).collect(),
        gpus_per_rank: 1,
        gradient: Bytes(400_000_000),
        compute: crate::time::Span::from_millis(80),
        overlap: 0.0,
        jitter: 0.0,
        iterations: 8,
        start: crate::time::Span::ZERO,
        channels: 1,
    }
}

fn effort() -> Effort<'static> {
    let objective = Objective::Comm;
    Effort { seed: 1, max_evaluations: 1, stop: &|| false, objective, phases: 2 }
}

fn crossings(topology: &Topology, ranks: &[HostId]) -> usize {
    let next = ranks.iter().cycle().skip(1);
    ranks.iter().zip(next).filter(|(a, b)| topology.leaf_of(**a) != topology.leaf_of(**b)).count()
}

#[test]
fn orders_keep_the_hosts_and_all_but_the_given_one_cross_once_per_leaf() {
    let topology = fabric();
    let ranks = job(0, &[0, 4, 8, 1, 5, 9]).ranks;
    let orders = candidates(&topology, &ranks, 3);
    assert!(orders[0] == ranks && orders.len() > 2 && orders.len() <= ORDERS_MAX);
    let hosts: BTreeSet<HostId> = ranks.iter().copied().collect();
    for order in &orders[1..] {
        assert_eq!(order.iter().copied().collect::<BTreeSet<_>>(), hosts);
        assert_eq!(crossings(&topology, order), 3);
    }
    assert_eq!(orders.iter().collect::<BTreeSet<_>>().len(), orders.len());
    // Nothing to choose on one leaf.
    assert_eq!(candidates(&topology, &job(0, &[1, 0]).ranks, 3), [job(0, &[1, 0]).ranks]);
}

#[test]
fn a_free_ring_that_zigzags_is_straightened_and_a_bound_one_is_not() {
    let topology = fabric();
    let ground = Ground { topology: &topology, max_paths: 8, levels: 6 };
    let jobs = [job(0, &[0, 4, 1, 5, 2, 6]), job(1, &[8, 4, 9, 5, 10, 6])];
    let both = [JobId(0), JobId(1)];
    let arranged = arrange(&ground, &jobs, &both, &effort()).unwrap();
    assert!(arranged.iter().all(|job| crossings(&topology, &job.ranks) == 2), "{arranged:?}");
    assert_eq!(arranged, arrange(&ground, &jobs, &both, &effort()).unwrap());
    let one = arrange(&ground, &jobs, &both[1..], &effort()).unwrap();
    assert_eq!(one[0], jobs[0]);
    assert_eq!(crossings(&topology, &one[1].ranks), 2);
    assert_eq!(arrange(&ground, &jobs, &[], &effort()).unwrap(), jobs);
}

#[test]
fn no_choice_makes_the_cheap_plans_worse() {
    let topology = fabric();
    let ground = Ground { topology: &topology, max_paths: 8, levels: 6 };
    let trees = Paths::build(&topology, &LinkSet::default(), 8).unwrap();
    let mut gains = Vec::new();
    for seed in 0..6 {
        let sizes = [5, 4, 6];
        let order = crate::workload::place::RingOrder::Shuffled;
        let rings = crate::workload::place::place(&sizes, &[0; 16], 1, order, seed).unwrap();
        let jobs: Vec<Job> = rings
            .into_iter()
            .enumerate()
            .map(|(id, ranks)| Job { ranks, ..job(id, &[]) })
            .collect();
        let free: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let arranged = arrange(&ground, &jobs, &free, &effort()).unwrap();
        let before = worth(&ground, &trees, &jobs, &effort()).unwrap();
        let after = worth(&ground, &trees, &arranged, &effort()).unwrap();
        assert!(after <= before);
        gains.push(1.0 - after / before);
    }
    // One job on each NIC: with two the NICs are the bottleneck, and no order helps.
    assert!(gains.iter().filter(|&&gain| gain > 0.01).count() >= 3, "{gains:?}");
}

#[test]
fn a_job_that_the_fabric_cannot_hold_is_an_error() {
    let topology = fabric();
    let ground = Ground { topology: &topology, max_paths: 8, levels: 6 };
    let error = arrange(&ground, &[job(0, &[0])], &[JobId(0)], &effort()).unwrap_err();
    assert!(matches!(error, RingOrderError::Flows(_)), "{error}");
}
