//! Hosts, transport and rings over switches that only forward.

use super::*;
use crate::id::{FlowId, NodeId, PortNo};
use crate::sim::SimError;
use crate::sim::host::Recovery;
use crate::sim::packet::ideal::IdealSwitch;
use crate::sim::packet::{Scale, ScaleInput};
use crate::time::{Span, stream};
use crate::topology::{FlowKey, Link as Cable, Node, NodeKind, Topology};
use crate::units::{BitRate, Bytes};
use crate::workload::{Flow, Job};

const RATE: BitRate = BitRate(1_000_000_000);

/// Hosts on one switch, or half of them on each of two switches joined by one cable.
fn fabric(hosts: u32, switches: u32) -> Topology {
    let mut nodes: Vec<Node> = (0..switches)
        .map(|s| Node { name: format!("s{s}"), kind: NodeKind::Switch { tier: 0 } })
        .collect();
    let mut links = Vec::new();
    let mut out_links = vec![Vec::new(); (switches + hosts) as usize];
    let mut in_links = out_links.clone();
    let mut join = |a: u32, a_port: u16, b: u32, b_port: u16| {
        for (from, from_port, to, to_port) in [(a, a_port, b, b_port), (b, b_port, a, a_port)] {
            out_links[from as usize].push(LinkId::from(links.len()));
            in_links[to as usize].push(LinkId::from(links.len()));
            links.push(Cable {
                from: NodeId(from),
                from_port: PortNo(from_port),
                to: NodeId(to),
                to_port: PortNo(to_port),
                rate: RATE,
                delay: Span::from_micros(1),
            });
        }
    };
    for host in 0..hosts {
        nodes.push(Node {
            name: format!("h{host}"),
            kind: NodeKind::Host { ip: Ipv4Addr::from(0x0a00_0001 + host), mac: [host as u8; 6] },
        });
        join(switches + host, 0, host * switches / hosts, host as u16 + 1);
    }
    if switches == 2 {
        join(0, 100, 1, 100);
    }
    Topology { nodes, links, switch_count: switches as usize, out_links, in_links }
}

fn key(src: u32, dst: u32, queue_pair: u32) -> FlowKey {
    FlowKey {
        src: Ipv4Addr::from(0x0a00_0001 + src),
        dst: Ipv4Addr::from(0x0a00_0001 + dst),
        protocol: 17,
        src_port: None,
        dst_port: Some(4791),
        dst_qp: Some(queue_pair),
    }
}

/// A ring job over `ranks`, and its flows appended.
fn job(id: u32, ranks: &[u32], gradient: u64, flows: &mut Vec<Flow>) -> Job {
    let n = ranks.len() as u64;
    for edge in 0..ranks.len() {
        let (src, dst) = (ranks[edge], ranks[(edge + 1) % ranks.len()]);
        let flow = FlowId::from(flows.len());
        flows.push(Flow {
            id: flow,
            job: JobId(id),
            channel: 0,
            edge: edge as u16,
            src: HostId(src),
            dst: HostId(dst),
            bytes: (2 * (n - 1) * gradient).div_ceil(n),
            key: key(src, dst, 0x100 + flow.0),
            reverse: key(dst, src, 0x900 + flow.0),
        });
    }
    Job {
        id: JobId(id),
        name: format!("j{id}"),
        model: "custom".into(),
        ranks: ranks.iter().map(|rank| HostId(*rank)).collect(),
        gpus_per_rank: 1,
        gradient: Bytes(gradient),
        compute: Span::from_millis(2),
        overlap: 0.0,
        jitter: 0.03,
        iterations: 3,
        start: Span::ZERO,
        channels: 1,
    }
}

struct Case {
    topology: Topology,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    capacity: usize,
    sigma: f64,
    recovery: Recovery,
}

impl Case {
    fn new(hosts: u32, switches: u32, rings: &[&[u32]], gradient: u64) -> Self {
        let mut flows = Vec::new();
        let jobs = (0..).zip(rings).map(|(id, ring)| job(id, ring, gradient, &mut flows)).collect();
        Self {
            topology: fabric(hosts, switches),
            jobs,
            flows,
            capacity: 1000,
            sigma: 1.0,
            recovery: Recovery::Selective,
        }
    }

    fn build(&self) -> (Net<IdealSwitch>, Queue<NetEvent>, Scale) {
        let scale = Scale::choose(&ScaleInput {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &self.flows,
            packet_budget: 1_000_000,
            fixed: Some(self.sigma),
        })
        .expect("a scale");
        let hosts = self.topology.host_count() as u32;
        let switches = self.topology.switch_count() as u32;
        let forwarders = (0..switches)
            .map(|switch| {
                let mut forwarder = IdealSwitch::new(self.capacity);
                for host in 0..hosts {
                    let here = host * switches / hosts == switch;
                    let port = PortNo(if here { host as u16 + 1 } else { 100 });
                    forwarder.route(Ipv4Addr::from(0x0a00_0001 + host), 0, port);
                }
                forwarder
            })
            .collect();
        let setup = Setup {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &self.flows,
            scale: &scale,
            recovery: self.recovery,
            seed: 7,
        };
        let mut net = Net::new(&setup, forwarders).expect("a network");
        let mut queue = Queue::default();
        for job in &self.jobs {
            net.start_job(&mut queue, Time::ZERO, job.id);
        }
        (net, queue, scale)
    }

    fn run(&self) -> Net<IdealSwitch> {
        let (mut net, mut queue, _) = self.build();
        finish(&mut net, &mut queue);
        net
    }
}

fn finish(net: &mut Net<IdealSwitch>, queue: &mut Queue<NetEvent>) {
    while let Some((now, event)) = queue.pop() {
        net.handle(queue, now, event);
        assert!(now < Time(600_000_000_000), "ten minutes are enough for any test here");
    }
    for job in &net.jobs {
        assert!(
            matches!(job.run.phase(), crate::sim::ring::Phase::Finished(_)),
            "{:?}: {:?} of 3 iterations, {:?}",
            job.run.id,
            job.run.history().len(),
            net.traffic()
        );
    }
}

fn comm_ms(net: &Net<IdealSwitch>, job: u32) -> f64 {
    let history = net.job(JobId(job)).history();
    let sum: f64 = history.iter().map(|it| (it.comm_end - it.comm_start).as_secs_f64()).sum();
    sum * 1e3 / history.len() as f64
}

fn conserved(net: &Net<IdealSwitch>) {
    let traffic = net.traffic();
    let dropped: u64 =
        net.switches.iter().map(|s| s.forwarder.overflowed + s.forwarder.unrouted).sum();
    assert_eq!(
        traffic.sent + traffic.control_sent,
        traffic.delivered
            + traffic.duplicated
            + traffic.refused
            + traffic.control_delivered
            + traffic.host_down
            + traffic.link_down
            + traffic.link_error
            + traffic.unreadable
            + dropped,
        "every frame sent is accounted for: {traffic:?}, dropped {dropped}"
    );
    assert_eq!(traffic.unreadable, 0);
}

#[test]
fn a_ring_alone_takes_the_time_of_its_bytes_and_loses_nothing() {
    let case = Case::new(4, 1, &[&[0, 1, 2, 3]], 10_000_000);
    let net = case.run();
    let traffic = net.traffic();
    assert_eq!(traffic.delivered, traffic.sent);
    assert_eq!(
        (traffic.duplicated, traffic.reordered, traffic.repeated, traffic.timeouts),
        (0, 0, 0, 0)
    );
    conserved(&net);
    // 15 MB per edge at 1 Gb/s with 1082-byte frames of 1024 bytes payload: 126.8 ms.
    let ideal = 15e6 * 8.0 / 1e9 * 1082.0 / 1024.0 * 1e3;
    let comm = comm_ms(&net, 0);
    assert!(comm > ideal && comm < ideal * 1.02, "{comm} ms, {ideal} ms at line rate");
}

#[test]
fn two_rings_over_one_cable_share_it() {
    let case = Case::new(4, 2, &[&[0, 2], &[1, 3]], 4_000_000);
    let net = case.run();
    let alone = Case::new(4, 2, &[&[0, 2]], 4_000_000).run();
    let (both, one) = (comm_ms(&net, 0), comm_ms(&alone, 0));
    // Compute phases leave gaps in which one ring has the cable alone.
    assert!(both > 1.8 * one && both < 2.05 * one, "{both} ms together, {one} ms alone");
    assert_eq!(net.traffic().sent, net.traffic().delivered);
}

#[test]
fn full_queues_lose_packets_and_both_ways_of_recovery_deliver_each_once() {
    for recovery in [Recovery::Selective, Recovery::GoBackN] {
        let mut case = Case::new(4, 2, &[&[0, 2], &[1, 3]], 200_000);
        case.capacity = 20;
        case.recovery = recovery;
        let net = case.run();
        let traffic = net.traffic();
        assert!(traffic.repeated > 0, "{recovery:?} lost nothing");
        let wanted: u64 = net.flows.iter().map(|flow| flow.packets * 3).sum();
        assert_eq!(traffic.delivered, wanted, "{recovery:?}");
        assert_eq!(traffic.reordered, 0, "a repetition is no reordering");
        conserved(&net);
    }
}

#[test]
fn a_ring_completes_although_links_lose_one_percent() {
    for (recovery, seed) in [(Recovery::Selective, 1), (Recovery::GoBackN, 2)] {
        let mut case = Case::new(4, 2, &[&[0, 1, 2, 3]], 300_000);
        case.recovery = recovery;
        let (mut net, mut queue, _) = case.build();
        net.set_link_errors(10_000, stream(seed, "link errors", 0));
        finish(&mut net, &mut queue);
        let traffic = net.traffic();
        assert!(traffic.link_error > 20, "{traffic:?}");
        let wanted: u64 = net.flows.iter().map(|flow| flow.packets * 3).sum();
        assert_eq!(traffic.delivered, wanted);
        conserved(&net);
    }
}

#[test]
fn a_cable_that_comes_back_delays_the_ring_and_repeats_only_what_was_lost() {
    let case = Case::new(4, 2, &[&[0, 2]], 4_000_000);
    let (mut net, mut queue, _) = case.build();
    let cable = LinkId(8);
    let (down, up) = (Time(10_000_000), Time(200_000_000));
    let mut steps = vec![(up, true), (down, false)];
    while let Some((now, event)) = queue.pop() {
        if let Some((_, state)) = steps.pop_if(|(at, _)| *at <= now) {
            net.set_link(&mut queue, now, cable, (state, 1.0));
            net.set_link(&mut queue, now, LinkId(9), (state, 1.0));
        }
        net.handle(&mut queue, now, event);
    }
    let traffic = net.traffic();
    assert!(traffic.repeated > 0 && traffic.timeouts > 0, "{traffic:?}");
    assert_eq!(traffic.duplicated, 0, "a time-out never repeats what only waits: {traffic:?}");
    let wanted: u64 = net.flows.iter().map(|flow| flow.packets * 3).sum();
    assert_eq!(traffic.delivered, wanted);
    conserved(&net);
    assert!(net.job(JobId(0)).history()[0].comm_end > up);
}

#[test]
fn the_scale_keeps_communication_times() {
    // In the range of the default scenario: some thousand packets per iteration, ring buffers at their floor.
    let mut case = Case::new(4, 2, &[&[0, 1, 2, 3], &[1, 2]], 240_000_000);
    let mut times = Vec::new();
    for sigma in [80.0, 160.0] {
        case.sigma = sigma;
        let net = case.run();
        times.push((comm_ms(&net, 0), comm_ms(&net, 1)));
    }
    for pair in times.windows(2) {
        let off = |a: f64, b: f64| (a / b - 1.0).abs();
        assert!(
            off(pair[0].0, pair[1].0) < 0.02 && off(pair[0].1, pair[1].1) < 0.02,
            "more than 2 % apart: {times:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_seed_others() {
    let case = Case::new(4, 2, &[&[0, 1, 2, 3], &[1, 2]], 100_000);
    let (a, b) = (case.run().digest(), case.run().digest());
    assert_eq!(a, b);
    let mut other = Case::new(4, 2, &[&[0, 1, 2, 3], &[1, 2]], 100_000);
    other.jobs[0].compute = Span::from_micros(2001);
    assert_ne!(a, other.run().digest());
}

#[test]
fn flows_that_no_host_can_send_are_refused_with_their_number() {
    use crate::sim::SimError;
    let refuse = |change: &dyn Fn(&mut Vec<Flow>)| {
        let mut case = Case::new(4, 1, &[&[0, 1, 2, 3]], 1000);
        change(&mut case.flows);
        let scale = Scale::choose(&ScaleInput {
            topology: &case.topology,
            jobs: &case.jobs,
            flows: &case.flows,
            packet_budget: 1000,
            fixed: None,
        })
        .expect("a scale");
        let setup = Setup {
            topology: &case.topology,
            jobs: &case.jobs,
            flows: &case.flows,
            scale: &scale,
            recovery: Recovery::Selective,
            seed: 1,
        };
        Net::new(&setup, vec![IdealSwitch::new(10)]).err()
    };
    let what = "another protocol than UDP";
    assert_eq!(refuse(&|f| f[2].key.protocol = 6), Some(SimError::FlowKey { flow: 2, what }));
    assert_eq!(
        refuse(&|f| f[1].key.dst_qp = None),
        Some(SimError::FlowKey { flow: 1, what: "no queue pair" })
    );
    assert_eq!(
        refuse(&|f| f[1].reverse.dst_qp = f[0].key.dst_qp),
        Some(SimError::SharedQueuePair { first: 0, second: 1, queue_pair: 0x100 })
    );
    assert_eq!(
        refuse(&|f| f[3].edge = 7),
        Some(SimError::BrokenRing { job: 0, channel: 0, flows: 4, ranks: 4 })
    );
}

#[test]
fn background_traffic_takes_its_share_and_a_slow_host_holds_its_job_up() {
    let case = Case::new(4, 2, &[&[0, 2]], 4_000_000);
    let alone = case.run();
    let (mut net, mut queue, _) = case.build();
    let offer = Offer {
        from: HostId(1),
        to: HostId(3),
        rate: BitRate(RATE.0 / 2),
        until: Time(2_000_000_000),
    };
    net.start_background(&mut queue, Time::ZERO, &offer, ([1; 6], [3; 6]));
    finish(&mut net, &mut queue);
    let traffic = net.traffic();
    assert!(traffic.background_delivered > 1000, "{traffic:?}");
    assert_eq!(traffic.background_delivered, traffic.background_sent);
    let (with, without) = (comm_ms(&net, 0), comm_ms(&alone, 0));
    assert!(with > 1.1 * without, "{with} ms beside background, {without} ms alone");

    let (mut net, mut queue, _) = case.build();
    net.set_host_pace(HostId(2), 0.5);
    finish(&mut net, &mut queue);
    let iterations = |net: &Net<IdealSwitch>| net.job(JobId(0)).history().to_vec();
    let (slow, fast) = (iterations(&net), iterations(&alone));
    let gap = |it: &[crate::sim::ring::Iteration]| (it[2].comm_start - it[1].comm_end).0 as f64;
    assert!((gap(&slow) / gap(&fast) - 2.0).abs() < 0.01, "compute takes twice as long");
    assert_eq!(slow[2].compute, fast[2].compute, "and is the same work");
}

#[test]
fn a_failed_host_stops_its_rings_and_no_other_until_they_are_cancelled() {
    let case = Case::new(4, 2, &[&[0, 2], &[1, 3]], 1_000_000);
    let (mut net, mut queue, _) = case.build();
    let (mut failed, mut cancelled) = (false, false);
    while let Some((now, event)) = queue.pop() {
        if !failed && now > Time(5_000_000) {
            failed = true;
            net.fail_host(HostId(2));
        }
        if !cancelled && now > Time(500_000_000) {
            cancelled = true;
            assert_eq!(net.job(JobId(0)).phase(), crate::sim::ring::Phase::Running, "it waits");
            assert!(net.cancel_job(now, JobId(0)));
        }
        net.handle(&mut queue, now, event);
        assert!(now < Time(60_000_000_000), "senders of a dead job fall silent");
    }
    assert!(cancelled);
    assert_eq!(net.job(JobId(1)).history().len(), 3);
    assert!(net.job(JobId(0)).history().len() < 3);
    assert!(net.traffic().host_down > 0);
    conserved(&net);
}

#[test]
fn a_regrouped_job_does_its_broken_iteration_again_on_a_smaller_ring() {
    let case = Case::new(4, 2, &[&[0, 2, 1], &[1, 3]], 1_000_000);
    let (mut net, mut queue, scale) = case.build();
    let mut jobs = case.jobs.clone();
    let mut flows = case.flows.clone();
    let old = flows.len();
    jobs[0] = Job { compute: Span::from_millis(3), ..job(0, &[0, 1], 1_000_000, &mut flows) };
    let (mut failed, mut resumed) = (None, false);
    while let Some((now, event)) = queue.pop() {
        // In the middle of the second iteration's communication.
        if failed.is_none() && net.job(JobId(0)).history().len() == 1 {
            let first = net.job(JobId(0)).history()[0];
            if now > first.comm_end + Span::from_millis(4) {
                net.fail_host(HostId(2));
                failed = Some(now);
            }
        }
        if let Some(failed) = failed
            && !resumed
            && now > failed + Span::from_millis(100)
        {
            let setup = Setup {
                topology: &case.topology,
                jobs: &jobs,
                flows: &flows[old..],
                scale: &scale,
                recovery: case.recovery,
                seed: 1,
            };
            assert_eq!(net.regroup_job(now, JobId(0), &setup), Ok(true), "one was under way");
            let again = net.regroup_job(now, JobId(0), &setup);
            assert!(matches!(again, Err(SimError::SharedQueuePair { .. })), "{again:?}");
            net.start_job(&mut queue, now, JobId(0));
            resumed = true;
        }
        net.handle(&mut queue, now, event);
        assert!(now < Time(60_000_000_000));
    }
    let run = net.job(JobId(0));
    let ranks: Vec<usize> = run.history().iter().map(|it| it.ranks).collect();
    assert_eq!(ranks, [3, 2, 2], "three iterations in all, the broken one counts once");
    let end = run.finished_at().expect("it finished");
    let (busy, held) = run.rank_seconds(end);
    let useful: f64 =
        run.history().iter().map(|it| it.compute.as_secs_f64() * it.ranks as f64).sum();
    assert!((busy - useful).abs() < 1e-12);
    let whole = (end - run.started()).as_secs_f64();
    assert!(
        held > 2.0 * whole && held < 3.0 * whole,
        "two GPUs all the time, the third until it was gone"
    );
    assert_eq!(net.job(JobId(1)).history().len(), 3);
    conserved(&net);
}

#[test]
fn what_a_regrouped_job_left_behind_counts_for_nothing_at_whatever_instant() {
    let case = Case::new(4, 2, &[&[0, 2, 1]], 200_000);
    // All instants of the run in coarse steps, and every single event before the end of the second iteration.
    let (mut net, mut queue, _) = case.build();
    let (mut count, mut turn) = (0_u32, 0);
    while let Some((now, event)) = queue.pop() {
        net.handle(&mut queue, now, event);
        count += 1;
        if turn == 0 && net.job(JobId(0)).history().len() == 2 {
            turn = count;
        }
    }
    for at in (1..40).map(|part| count * part / 40).chain(turn - 40..=turn) {
        let (mut net, mut queue, scale) = case.build();
        let mut jobs = case.jobs.clone();
        let mut flows = case.flows.clone();
        let old = flows.len();
        jobs[0] = job(0, &[0, 1], 200_000, &mut flows);
        let mut handled = 0;
        while let Some((now, event)) = queue.pop() {
            if handled == at {
                let setup = Setup {
                    topology: &case.topology,
                    jobs: &jobs,
                    flows: &flows[old..],
                    scale: &scale,
                    recovery: case.recovery,
                    seed: 1,
                };
                net.regroup_job(now, JobId(0), &setup).expect("a ring");
                net.start_job(&mut queue, now, JobId(0));
            }
            handled += 1;
            net.handle(&mut queue, now, event);
        }
        let history = net.job(JobId(0)).history();
        assert_eq!(history.len(), 3, "event {at}");
        // 200 kB over each edge of two take 1.6 ms at 1 Gb/s, headers not counted; compute about 2 ms.
        for pair in history.windows(2).filter(|pair| pair[1].ranks == 2) {
            let comm = pair[1].comm_end - pair[1].comm_start;
            assert!(comm > Span::from_micros(1_600), "event {at}: {history:?}");
            let before = pair[1].comm_start - pair[0].comm_end;
            assert!(before >= pair[1].compute, "event {at}: {history:?}");
        }
        conserved(&net);
    }
}
