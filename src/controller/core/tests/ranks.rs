//! Ranks that speak for themselves: who is gone, and what the others do.

use super::net::Net;
use super::{SOON, fabric};
use crate::controller::messages::{Event, Input, RankSaid, RankState};
use crate::elastic::Generation;
use crate::id::{FlowId, HostId, JobId};
use crate::time::Span;
use crate::workload::{Job, Transport, ring_flows_over};

const JOB: JobId = JobId(0);
const FIRST_PORT: u16 = 20_000;

/// A job over TCP on hosts 0, 2 and 4, running, with all its ranks heard; `jobs` of them, one after the other's ports.
fn running(jobs: u32) -> Net {
    let mut net = Net::new(fabric());
    net.boot();
    let batch = (0..jobs).map(|id| {
        let job = Job { id: JobId(id), ..super::job(&fabric(), id, &[0, 2, 4]).0 };
        let first_port = FIRST_PORT + 3 * u16::try_from(id).unwrap();
        let transport = Transport::Tcp { first_port };
        let flows = ring_flows_over(&fabric(), &job, FlowId(3 * id), transport).unwrap();
        (job, flows)
    });
    net.input(Input::SubmitJobs(batch.collect()));
    net.converge(SOON);
    for job in (0..jobs).map(JobId) {
        for host in [0, 2, 4] {
            say(&mut net, job, host, RankState { joined: true, ..RankState::default() });
        }
    }
    net
}

fn say(net: &mut Net, job: JobId, host: u32, state: RankState) {
    net.input(Input::Rank { job, host: HostId(host), said: RankSaid::State(state) });
}

fn silent(net: &mut Net, job: JobId, host: u32) {
    net.input(Input::Rank { job, host: HostId(host), said: RankSaid::Silent });
}

fn at(iterations: u32) -> RankState {
    RankState { joined: true, iterations, compute: Span::from_millis(5), ..RankState::default() }
}

fn lost(host: u32, generation: u32) -> RankState {
    RankState {
        generation: Generation(generation),
        lost: Some(HostId(host)),
        joined: false,
        ..at(7)
    }
}

fn joined(generation: u32, iterations: u32) -> RankState {
    RankState { generation: Generation(generation), ..at(iterations) }
}

/// Every change of the job's membership: hosts, where they begin, why.
fn regrouped(net: &Net, of: JobId) -> Vec<(Vec<u32>, String)> {
    let told = net.events.iter().filter_map(|event| match event {
        Event::Regrouped { job, ranks, cause, .. } if *job == of => {
            Some((ranks.iter().map(|host| host.0).collect(), cause.clone()))
        }
        _ => None,
    });
    told.collect()
}

fn ready(net: &Net) -> usize {
    net.seen(|event| *event == Event::JobReady { job: JOB })
}

#[test]
fn a_rank_that_is_silent_and_lost_by_a_neighbour_has_failed_and_the_others_form_a_ring_and_go_on() {
    let mut net = running(1);
    for host in [0, 2, 4] {
        say(&mut net, JOB, host, at(7));
    }
    say(&mut net, JOB, 4, at(8));
    assert_eq!(net.core.iterations_done(JOB), 7, "as far as the last");
    silent(&mut net, JOB, 2);
    assert_eq!(regrouped(&net, JOB), [], "one witness");
    say(&mut net, JOB, 4, lost(2, 0));
    let cause = "host h3 failed: it is silent, and h5 misses it".to_owned();
    assert_eq!(regrouped(&net, JOB), [(vec![0, 4], cause)]);
    // Whom the others lose when the ring comes down is no news.
    say(&mut net, JOB, 0, lost(4, 0));
    net.run(SOON);
    assert_eq!(regrouped(&net, JOB).len(), 1);
    let membership = net.core.membership(JOB).unwrap();
    assert_eq!((membership.generation, membership.ready), (Generation(1), false));
    assert_eq!(membership.first_port, Some(FIRST_PORT + 3), "not the ports of before");

    say(&mut net, JOB, 0, joined(1, 7));
    assert!(net.core.goals().is_empty(), "one has joined");
    say(&mut net, JOB, 4, joined(1, 8));
    net.converge(SOON);
    assert_eq!(ready(&net), 2, "the first ring and the second");
    let membership = net.core.membership(JOB).unwrap();
    assert_eq!((membership.ready, membership.from), (true, 7), "where the last of them is");
    let ports: Vec<Option<u16>> =
        net.core.goals().keys().map(|id| net.core.flow_spec(*id).unwrap().key.dst_port).collect();
    assert_eq!(ports, [Some(FIRST_PORT + 3), Some(FIRST_PORT + 4)]);
    net.assert_as_wanted();
    // The dead host may come back, for other jobs.
    assert!(net.core.failed_hosts.contains(&HostId(2)));
    say(&mut net, JOB, 2, at(7));
    assert!(!net.core.failed_hosts.contains(&HostId(2)));
    assert_eq!(regrouped(&net, JOB).len(), 1);
}

#[test]
fn one_witness_is_not_enough_however_long_it_stands() {
    let mut net = running(1);
    silent(&mut net, JOB, 2);
    net.run(Span::from_millis(120_000));
    assert_eq!(regrouped(&net, JOB), [], "its stream broke, its neighbours have it");
    let mut net = running(1);
    net.link(fabric().uplink(HostId(2)), false);
    net.run(Span::from_millis(120_000));
    assert_eq!(regrouped(&net, JOB), [], "it is heard");
}

#[test]
fn a_cable_that_is_down_is_a_witness_whenever_it_is_told() {
    let cause = |why: &str| format!("host h3 failed: {why}");
    let mut net = running(1);
    silent(&mut net, JOB, 2);
    net.link(fabric().downlink(HostId(2)), false);
    let told = (vec![0, 4], cause("it is silent, and its cable is down"));
    assert_eq!(regrouped(&net, JOB), [told]);
    let mut net = running(1);
    net.link(fabric().uplink(HostId(2)), false);
    say(&mut net, JOB, 0, lost(2, 0));
    let told = (vec![0, 4], cause("its cable is down, and h1 misses it"));
    assert_eq!(regrouped(&net, JOB), [told]);
}

#[test]
fn a_neighbour_that_waits_in_vain_is_a_witness_but_says_nothing_of_one_that_is_heard() {
    let waits = |host| RankState { stalled: Some(HostId(host)), ..at(7) };
    let mut net = running(1);
    say(&mut net, JOB, 4, waits(2));
    say(&mut net, JOB, 0, waits(4));
    net.run(Span::from_millis(120_000));
    assert_eq!(regrouped(&net, JOB), [], "all are heard: one is slow");
    silent(&mut net, JOB, 2);
    let cause = "host h3 failed: it is silent, and h5 misses it".to_owned();
    assert_eq!(regrouped(&net, JOB), [(vec![0, 4], cause)]);
}

#[test]
fn where_all_are_heard_the_same_ring_is_formed_anew_but_not_for_ever() {
    let mut net = running(1);
    for host in [0, 2, 4] {
        say(&mut net, JOB, host, at(7));
    }
    for ring in 0..3 {
        say(&mut net, JOB, 4, lost(2, ring));
        net.run(Span::from_millis(4_900));
        assert_eq!(regrouped(&net, JOB).len(), ring as usize, "a silence may follow");
        net.run(Span::from_millis(200));
        let (ranks, why) = regrouped(&net, JOB).swap_remove(ring as usize);
        assert_eq!(ranks, [0, 2, 4]);
        assert_eq!(why, "h5 has lost the connection to h3, which is heard");
        for host in [0, 2, 4] {
            say(&mut net, JOB, host, joined(ring + 1, 7));
        }
        net.converge(SOON);
    }
    say(&mut net, JOB, 4, lost(2, 3));
    net.run(Span::from_millis(5_100));
    let stopped = |event: &Event| matches!(event, Event::JobStopped { job: JOB, reason } if reason.contains("between h5 and h3"));
    assert_eq!(net.seen(stopped), 1, "{:?}", net.events.last());
    assert_eq!(net.core.membership(JOB), None);
}

#[test]
fn a_rank_that_dies_while_the_ring_is_formed_is_left_out_of_the_next() {
    let mut net = running(1);
    silent(&mut net, JOB, 2);
    say(&mut net, JOB, 4, lost(2, 0));
    say(&mut net, JOB, 0, RankState { joined: false, ..joined(1, 7) });
    silent(&mut net, JOB, 4);
    net.run(Span::from_millis(5_100));
    assert_eq!(regrouped(&net, JOB).last().unwrap().0, [0]);
    // The last one needs no ring, only the word.
    say(&mut net, JOB, 0, joined(2, 7));
    net.converge(SOON);
    assert!(net.core.membership(JOB).unwrap().ready);
    assert!(net.core.goals().is_empty());
}

#[test]
fn a_rank_that_is_heard_and_joins_no_ring_costs_its_job_and_not_its_host() {
    let mut net = running(1);
    silent(&mut net, JOB, 2);
    say(&mut net, JOB, 0, lost(2, 0));
    say(&mut net, JOB, 0, joined(1, 7));
    say(&mut net, JOB, 4, RankState { joined: false, ..joined(1, 7) });
    net.run(Span::from_millis(66_000));
    let cause = "the ranks on h5 did not form the new ring".to_owned();
    assert_eq!(regrouped(&net, JOB).last(), Some(&(vec![0], cause)));
}

#[test]
fn a_rank_whose_host_is_otherwise_heard_leaves_its_own_job_only() {
    let mut net = running(2);
    silent(&mut net, JOB, 2);
    say(&mut net, JOB, 0, lost(2, 0));
    let cause = "the rank on h3 is gone: it is silent, and h1 misses it".to_owned();
    assert_eq!(regrouped(&net, JOB), [(vec![0, 4], cause)]);
    assert_eq!(regrouped(&net, JobId(1)), []);
    assert_eq!(net.core.membership(JOB).unwrap().first_port, Some(FIRST_PORT + 6));
    // The host itself takes both with it.
    let mut net = running(2);
    silent(&mut net, JOB, 2);
    silent(&mut net, JobId(1), 2);
    say(&mut net, JOB, 0, lost(2, 0));
    assert_eq!([JOB, JobId(1)].map(|job| regrouped(&net, job).len()), [1, 1]);
}

#[test]
fn ranks_that_are_done_form_no_other_ring() {
    let mut net = running(1);
    net.input(Input::Rank { job: JOB, host: HostId(0), said: RankSaid::Left });
    net.run(SOON);
    assert_eq!(regrouped(&net, JOB), []);
    silent(&mut net, JOB, 2);
    say(&mut net, JOB, 4, lost(2, 0));
    assert_eq!(regrouped(&net, JOB)[0].0, [4]);
}

#[test]
fn a_controller_that_restarts_while_a_ring_is_formed_hears_of_it_again() {
    let mut net = running(1);
    silent(&mut net, JOB, 2);
    say(&mut net, JOB, 4, lost(2, 0));
    let port = net.core.membership(JOB).unwrap().first_port;
    net.crash();
    assert_eq!(net.core.membership(JOB).unwrap().first_port, port);
    for host in [0, 4] {
        say(&mut net, JOB, host, joined(1, 9));
    }
    net.converge(SOON);
    let membership = net.core.membership(JOB).unwrap();
    assert_eq!((membership.ready, membership.from), (true, 9));
    assert_eq!(net.core.goals().len(), 2);
}
