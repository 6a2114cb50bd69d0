//! Completion times worked out by hand, and properties of the rates.

use super::*;
use crate::id::{FlowId, HostId, LinkId, TreeId};
use crate::plan::Assignment;
use crate::topology::Path;
use proptest::prelude::*;

/// A flow of `bytes` over links, in a queue; job = flow number unless given.
fn plan(flows: &[(&[u32], u8)]) -> Plan {
    let assignment = |(i, (links, queue)): (usize, &(&[u32], u8))| Assignment {
        flow: FlowId::from(i),
        path: Path { tree: TreeId(0), links: links.iter().map(|&link| LinkId(link)).collect() },
        queue: *queue,
        reason: String::new(),
    };
    Plan {
        generation: 0,
        policy: "test".into(),
        assignments: flows.iter().enumerate().map(assignment).collect(),
    }
}

fn demands(bytes: &[u64]) -> Vec<Demand> {
    let demand =
        |(i, &bytes)| Demand { job: JobId::from(i), src: HostId(0), dst: HostId(1), bytes };
    bytes.iter().enumerate().map(demand).collect()
}

fn close(found: &[Option<f64>], wanted: &[f64]) {
    assert_eq!(found.len(), wanted.len());
    for (found, wanted) in found.iter().zip(wanted) {
        let found = found.unwrap();
        assert!((found - wanted).abs() < 1e-6 * wanted.max(1e-9), "{found} instead of {wanted}");
    }
}

#[test]
fn flows_in_one_queue_share_and_speed_up_as_others_finish() {
    // 8 bit/s: 1 byte/s. Three flows of 1, 2 and 3 bytes: 1/3 byte/s each until 3 s, 1/2 until 5 s, then 1.
    let plan = plan(&[(&[0], 0), (&[0], 0), (&[0], 0)]);
    close(&completions(&[BitRate(8)], &demands(&[1, 2, 3]), &plan), &[3.0, 5.0, 6.0]);
}

#[test]
fn a_higher_queue_goes_first_and_a_lower_one_takes_what_is_left() {
    let plan = plan(&[(&[0], 0), (&[0], 2), (&[0, 1], 1)]);
    let rates = [BitRate(8), BitRate(4)];
    let at_first = rates_now(&rates, &plan, &[true, true, true]);
    assert_eq!(at_first, [0.0, 8.0, 0.0]);
    // Flow 2 is held to 4 bit/s by its second link, and flow 0 takes the other half.
    assert_eq!(rates_now(&rates, &plan, &[true, false, true]), [4.0, 0.0, 4.0]);
    // 1: 2 bytes at 1 byte/s. 2: 1 byte at 0.5 from 2 s to 4 s. 0: 2 bytes: 1 by 4 s, the other at 1 byte/s.
    close(&completions(&rates, &demands(&[2, 2, 1]), &plan), &[5.0, 2.0, 4.0]);
}

#[test]
fn max_min_gives_the_unbottlenecked_flow_the_rest() {
    // Links 0 (10) and 1 (4): flow 0 on both, flow 1 on 1 only, flow 2 on 0 only.
    let plan = plan(&[(&[0, 1], 3), (&[1], 3), (&[0], 3)]);
    assert_eq!(rates_now(&[BitRate(10), BitRate(4)], &plan, &[true; 3]), [2.0, 2.0, 8.0]);
}

#[test]
fn empty_flows_are_done_at_once_and_dead_links_never() {
    let plan = plan(&[(&[0], 0), (&[1], 0), (&[0], 1)]);
    let found = completions(&[BitRate(8), BitRate(0)], &demands(&[0, 1, 1]), &plan);
    assert_eq!(found, [Some(0.0), None, Some(1.0)]);
    let mut demands = demands(&[0, 1, 1]);
    demands[2].job = JobId(0);
    assert_eq!(by_job(&demands, &found), [(JobId(0), Some(1.0)), (JobId(1), None)]);
}

proptest! {
    /// What max-min under priorities means: no link is over its rate, and every flow crosses a full link on which no
    /// flow of a lower queue gets anything and none of its own queue gets more.
    #[test]
    fn every_flow_is_held_by_a_full_link_where_it_is_among_the_largest(
        flows in proptest::collection::vec((proptest::collection::btree_set(0_u32..5, 1..4), 0_u8..3), 1..9),
        rates in proptest::collection::vec(1_u64..1_000, 5),
    ) {
        let lists: Vec<Vec<u32>> = flows.iter().map(|flow| flow.0.iter().copied().collect()).collect();
        let flows: Vec<(&[u32], u8)> =
            lists.iter().zip(&flows).map(|(links, flow)| (links.as_slice(), flow.1)).collect();
        let plan = plan(&flows);
        let rates: Vec<BitRate> = rates.into_iter().map(BitRate).collect();
        let found = rates_now(&rates, &plan, &vec![true; flows.len()]);
        let on = |link: u32| flows.iter().enumerate().filter(move |(_, flow)| flow.0.contains(&link));
        for (link, rate) in rates.iter().enumerate() {
            let sum: f64 = on(link as u32).map(|(i, _)| found[i]).sum();
            prop_assert!(sum <= rate.0 as f64 * (1.0 + 1e-6));
        }
        for (i, (links, queue)) in flows.iter().enumerate() {
            let held = links.iter().any(|&link| {
                let capacity = rates[link as usize].0 as f64;
                let above: f64 = on(link).filter(|(_, f)| f.1 >= *queue).map(|(j, _)| found[j]).sum();
                let largest =
                    on(link).filter(|(_, f)| f.1 == *queue).map(|(j, _)| found[j]).fold(0.0, f64::max);
                above >= capacity * (1.0 - 1e-6) && found[i] >= largest - capacity * 1e-6
            });
            prop_assert!(held, "flow {i} of {flows:?} with {found:?} on {rates:?}");
        }
    }
}
