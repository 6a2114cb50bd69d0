//! Hosts fail, and jobs go on without them.

use super::net::{Net, job};
use super::{SOON, fabric, running};
use crate::controller::messages::{Event, Input};
use crate::elastic::Generation;
use crate::id::{FlowId, HostId, JobId};
use crate::workload::{Flow, ring_flows};

fn fail(net: &mut Net, host: u32) {
    net.input(Input::Host { host: HostId(host), up: false });
}

/// The ring that the last command asked for, numbered from `first`.
fn ring(net: &Net, first: u32) -> (Generation, Vec<Flow>) {
    let command = net.events.iter().rev().find_map(|event| match event {
        Event::Regrouped { generation, ranks, .. } => Some((*generation, ranks.clone())),
        _ => None,
    });
    let (generation, ranks) = command.expect("a command");
    let mut spec = job(&fabric(), 0, &[0, 2, 4]).0;
    spec.ranks = ranks;
    (generation, ring_flows(&fabric(), &spec, FlowId(first)).unwrap())
}

fn join(net: &mut Net, (generation, flows): (Generation, Vec<Flow>)) {
    net.input(Input::Joined { job: JobId(0), generation, flows });
}

fn rejected(net: &Net, words: &str) -> bool {
    let about =
        |event: &&Event| matches!(event, Event::Rejected { reason } if reason.contains(words));
    net.events.iter().any(|event| about(&event))
}

#[test]
fn survivors_get_a_command_the_old_entries_go_and_the_new_ring_is_planned() {
    let mut net = running();
    net.input(Input::Progress { job: JobId(0), iterations: 4, compute: Vec::new() });
    fail(&mut net, 2);
    net.converge(SOON);
    assert!(net.core.goals().is_empty(), "the old ring has left");
    net.assert_as_wanted();
    let told = |event: &Event| {
        matches!(event, Event::Regrouped { job: JobId(0), generation: Generation(1), ranks, from: 4, cause, .. }
            if *ranks == [HostId(0), HostId(4)] && cause == "host h3 failed")
    };
    assert_eq!(net.seen(told), 1, "{:?}", net.events);
    let new = ring(&net, 3);
    let ready = |event: &Event| matches!(event, Event::JobReady { job: JobId(0) });
    assert_eq!(net.seen(ready), 1, "the ring of before");
    join(&mut net, new);
    assert_eq!(net.seen(ready), 1, "nothing is installed yet");
    net.converge(SOON);
    assert_eq!(net.seen(ready), 2);
    net.assert_as_wanted();
    let planned: Vec<u32> = net.core.goals().keys().map(|flow| flow.0).collect();
    assert_eq!(planned, [3, 4]);
    // The failure is old news, and a host that never was is no news.
    let events = net.events.len();
    fail(&mut net, 2);
    assert_eq!(net.events.len(), events);
    fail(&mut net, 99);
    assert!(rejected(&net, "no host 99"));
}

#[test]
fn a_ring_of_another_membership_job_or_host_is_refused_and_says_why() {
    let mut net = running();
    fail(&mut net, 2);
    let new = ring(&net, 3);
    join(&mut net, (Generation(0), new.1.clone()));
    assert!(rejected(&net, "form the newest"));
    net.input(Input::Joined { job: JobId(7), generation: new.0, flows: Vec::new() });
    assert!(rejected(&net, "no job 7"));
    let other = job(&fabric(), 0, &[0, 5]).1;
    join(&mut net, (new.0, other));
    assert!(rejected(&net, "joins other hosts"));
    let leaving = ring(&net, 0);
    join(&mut net, leaving);
    assert!(rejected(&net, "there is a flow 0 already"), "ids of flows that still leave are taken");
    join(&mut net, new.clone());
    join(&mut net, new);
    assert!(rejected(&net, "has its ring"));
    net.converge(SOON);
    net.assert_as_wanted();
}

#[test]
fn the_command_survives_the_controller_whenever_it_dies() {
    for cut in 0..12 {
        let mut net = running();
        net.cut = Some(cut);
        fail(&mut net, 2);
        net.run(SOON);
        net.cut = None;
        net.crash();
        net.converge(SOON);
        // Agents repeat what they see: the host is still gone.
        fail(&mut net, 2);
        let new = ring(&net, 3);
        assert_eq!(new.0, Generation(1), "cut after {cut}");
        join(&mut net, new);
        net.converge(SOON);
        net.assert_as_wanted();
        assert_eq!(net.core.goals().len(), 2, "cut after {cut}");
    }
}

#[test]
fn a_single_survivor_goes_on_without_a_ring_and_a_job_without_any_is_stopped() {
    let mut net = running();
    fail(&mut net, 2);
    fail(&mut net, 4);
    net.converge(SOON);
    let alone = |event: &Event| matches!(event, Event::Regrouped { generation: Generation(2), ranks, .. } if *ranks == [HostId(0)]);
    assert_eq!(net.seen(alone), 1, "{:?}", net.events);
    let ring_of_two = vec![job(&fabric(), 1, &[0, 2]).1[0].clone()];
    join(&mut net, (Generation(2), ring_of_two));
    assert!(rejected(&net, "joins other hosts"));
    join(&mut net, (Generation(2), Vec::new()));
    let accepted = |event: &Event| matches!(event, Event::JobAccepted { job: JobId(0), .. });
    assert_eq!(net.seen(accepted), 2, "submitted, and formed anew");
    net.converge(SOON);
    assert!(net.core.goals().is_empty());
    fail(&mut net, 0);
    let stopped = |event: &Event| matches!(event, Event::JobStopped { job: JobId(0), reason } if reason.contains("lost all its hosts"));
    assert_eq!(net.seen(stopped), 1, "{:?}", net.events);
    net.converge(SOON);
    net.assert_as_wanted();
}

#[test]
fn a_job_on_a_failed_host_is_refused_until_the_host_is_back() {
    let mut net = running();
    fail(&mut net, 3);
    let again = || {
        let (mut spec, mut flows) = job(&fabric(), 5, &[0, 3, 5]);
        spec.id = JobId(5);
        flows.iter_mut().for_each(|flow| flow.job = JobId(5));
        Input::SubmitJobs(vec![(spec, flows)])
    };
    net.input(again());
    let refused = |event: &Event| matches!(event, Event::JobRefused { reason, .. } if reason.contains("has failed"));
    assert_eq!(net.seen(refused), 1, "{:?}", net.events);
    net.input(Input::Host { host: HostId(3), up: true });
    net.input(again());
    net.converge(SOON);
    assert_eq!(net.core.goals().len(), 6, "the host is back");
}
