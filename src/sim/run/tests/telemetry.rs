//! What samples say against what the simulator knows: every frame that enters, crosses and leaves the fabric.
//!
//! The truth is counted outside the switches: frames are numbered in the order in which they enter at their source leaf,
//! followed from hop to hop by that number, and assigned to the interval that runs at the sink leaf when they leave it.

use super::*;
use crate::controller::{TelemetryConfig, TelemetryWay};
use crate::id::{FlowId, LinkId, SwitchId};
use crate::sim::fabric::lock;
use crate::sim::fault::Fault;
use crate::sim::packet::net::Passage;
use crate::sim::world::{Happened, World};
use crate::telemetry::{Interval, Totals};
use crate::time::{Time, stream};
use crate::topology::Topology;
use crate::units::BitRate;
use crate::workload::Flow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Mutex;

/// A frame of a flow, as bytes tell it.
struct Parsed {
    key: (Ipv4Addr, u32),
    length: u64,
    /// (slot, epoch, sequence number) of the tag.
    tag: Option<(u16, u8, u32)>,
}

fn parse(bytes: &[u8]) -> Option<Parsed> {
    let number = |at: usize, len: usize| {
        let part = bytes.get(at..at + len)?;
        Some(part.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
    };
    let tagged = number(12, 2)? == 0x88b5;
    let ip = if tagged { 38 } else { 14 };
    if number(ip - 2, 2)? != 0x0800 || number(ip + 9, 1)? != 17 || number(ip + 22, 2)? != 4791 {
        return None;
    }
    let to = Ipv4Addr::from(number(ip + 16, 4)? as u32);
    let tag = (number(18, 2)? as u16, number(20, 1)? as u8, number(22, 4)? as u32);
    Some(Parsed {
        key: (to, number(ip + 33, 3)? as u32),
        length: number(ip + 2, 2)?,
        tag: tagged.then_some(tag),
    })
}

/// A frame inside a switch.
#[derive(Clone, Copy)]
struct Inside {
    seq: u32,
    at: Time,
    /// When it entered the fabric.
    entered: Time,
    /// Nanoseconds spent in switches before.
    delay: u64,
}

/// What left a sink leaf for one flow in one interval.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    packets: u64,
    bytes: u64,
    delay: u64,
    delay_max: u64,
    /// Active time, without and with the gaps that are on the edge.
    active: (u64, u64),
}

struct Truth {
    topology: Topology,
    flows: BTreeMap<(Ipv4Addr, u32), Flow>,
    idle_gap: u64,
    entered: BTreeMap<FlowId, u32>,
    /// The number that the first frame of a flow got.
    base: BTreeMap<FlowId, u32>,
    inside: BTreeMap<(SwitchId, FlowId), VecDeque<Inside>>,
    under_way: BTreeMap<(FlowId, u32), Inside>,
    counted: BTreeMap<(FlowId, u32), Counted>,
    /// Sequence numbers in the order of delivery, with the last in-order packet.
    delivered: BTreeMap<FlowId, Vec<u32>>,
    last: BTreeMap<FlowId, Inside>,
    /// Epochs that each slot of a leaf was seen with.
    epochs: BTreeMap<(SwitchId, u16), BTreeSet<u8>>,
    /// Flows of a switch that restarted: nobody can say which of their frames it forwarded, so they are only counted.
    loose: BTreeSet<FlowId>,
    /// Times that each switch restarted: it numbers intervals anew.
    lives: BTreeMap<SwitchId, u32>,
    /// The running interval of each switch, and when each began.
    running: BTreeMap<SwitchId, u32>,
    begun: BTreeMap<(SwitchId, u32), Time>,
}

type Seen = (Time, LinkId, Passage, Vec<u8>);

impl Truth {
    fn new(topology: &Topology, flows: &[Flow], idle_gap: Span) -> Self {
        let key = |flow: &Flow| (flow.key.dst, flow.key.dst_qp.unwrap());
        Self {
            topology: topology.clone(),
            flows: flows.iter().map(|flow| (key(flow), flow.clone())).collect(),
            idle_gap: idle_gap.0,
            entered: BTreeMap::new(),
            base: BTreeMap::new(),
            inside: BTreeMap::new(),
            under_way: BTreeMap::new(),
            counted: BTreeMap::new(),
            delivered: BTreeMap::new(),
            last: BTreeMap::new(),
            epochs: BTreeMap::new(),
            loose: BTreeSet::new(),
            lives: BTreeMap::new(),
            running: BTreeMap::new(),
            begun: BTreeMap::new(),
        }
    }

    fn see(&mut self, (now, link, passage, bytes): &Seen) {
        let Some(parsed) = parse(bytes) else { return };
        let Some(flow) = self.flows.get(&parsed.key).map(|flow| flow.id) else { return };
        let link = self.topology.link(*link);
        let (from, to) = (self.topology.as_switch(link.from), self.topology.as_switch(link.to));
        match (passage, from, to) {
            (Passage::Leaves, Some(leaf), None) if self.loose.contains(&flow) => {
                self.count(flow, leaf, parsed.length);
            }
            _ if self.loose.contains(&flow) => {}
            (Passage::Arrives, None, Some(leaf)) => {
                let seq = self.entered.entry(flow).or_default();
                let frame = Inside { seq: *seq, at: *now, entered: *now, delay: 0 };
                *seq += 1;
                self.inside.entry((leaf, flow)).or_default().push_back(frame);
            }
            (Passage::Arrives, Some(_), Some(switch)) => {
                let (slot, epoch, seq) = parsed.tag.expect("a tag between switches");
                self.epochs.entry((switch, slot)).or_default().insert(epoch);
                let seq = seq.wrapping_sub(self.base.get(&flow).copied().unwrap_or(0));
                let Some(frame) = self.under_way.remove(&(flow, seq)) else { return };
                self.inside
                    .entry((switch, flow))
                    .or_default()
                    .push_back(Inside { at: *now, ..frame });
            }
            (Passage::Leaves, Some(switch), _) => {
                let waiting = self.inside.get_mut(&(switch, flow));
                let Some(mut frame) = waiting.and_then(VecDeque::pop_front) else { return };
                frame.delay += (*now - frame.at).0;
                match parsed.tag {
                    Some((_, _, seq)) => {
                        // A source slot goes on counting where the tenant before left off.
                        let base = seq.wrapping_sub(frame.seq);
                        let base = *self.base.entry(flow).or_insert(base);
                        let about = "order and number";
                        assert_eq!(
                            seq,
                            frame.seq.wrapping_add(base),
                            "flow {flow} at {switch}: {about}"
                        );
                        self.under_way.insert((flow, frame.seq), frame);
                    }
                    None => self.deliver(flow, switch, *now, parsed.length, frame),
                }
            }
            _ => {}
        }
    }

    /// A number that is not used again after a restart.
    fn number(&self, leaf: SwitchId, number: u32) -> u32 {
        self.lives.get(&leaf).copied().unwrap_or(0) * 1_000_000 + number
    }

    fn count(&mut self, flow: FlowId, leaf: SwitchId, length: u64) -> &mut Counted {
        let number = self.running.get(&leaf).copied().unwrap_or(0);
        let counted = self.counted.entry((flow, number)).or_default();
        counted.packets += 1;
        counted.bytes += length;
        counted
    }

    fn deliver(&mut self, flow: FlowId, leaf: SwitchId, now: Time, length: u64, frame: Inside) {
        let (last, idle_gap) = (self.last.get(&flow).copied(), self.idle_gap);
        let seqs = self.delivered.entry(flow).or_default();
        let in_order = seqs.iter().max().is_none_or(|max| frame.seq > *max);
        seqs.push(frame.seq);
        if in_order {
            self.last.insert(flow, Inside { at: now, ..frame });
        }
        let counted = self.count(flow, leaf, length);
        counted.delay += frame.delay;
        counted.delay_max = counted.delay_max.max(frame.delay);
        if let Some(last) = last.filter(|_| in_order) {
            let (silence, gap) = ((frame.entered - last.entered).0, (now - last.at).0);
            // Ticks, and a clock that is up to 100 ppm off.
            let edge = 2_000 + idle_gap / 5_000;
            counted.active.0 += if silence + edge <= idle_gap { gap } else { 0 };
            counted.active.1 += if silence <= idle_gap + edge { gap } else { 0 };
        }
    }

    fn restarted(&mut self, switch: SwitchId) {
        *self.lives.entry(switch).or_default() += 1;
        let leaf = |host| self.topology.leaf_of(host) == switch;
        let touched = self.flows.values().filter(|flow| leaf(flow.src) || leaf(flow.dst));
        self.loose.extend(touched.map(|flow| flow.id));
    }

    fn lost_and_reordered(&self, flow: FlowId) -> (i64, u64) {
        let seqs = self.delivered.get(&flow).map_or(&[][..], Vec::as_slice);
        let mut top = None;
        let mut reordered = 0;
        for seq in seqs {
            reordered += u64::from(top.is_some_and(|top| *seq < top));
            top = top.max(Some(*seq));
        }
        // What was lost before the first that arrived cannot be missed.
        let first = seqs.first().map_or(0, |first| i64::from(*first));
        let sent = top.map_or(0, |top| i64::from(top) + 1 - first);
        (sent - seqs.len() as i64, reordered)
    }
}

/// A run with its truth, and what the controller observed.
struct Watched {
    truth: Truth,
    /// (flow, number at the leaf) to the interval.
    observed: BTreeMap<(FlowId, u32), Interval>,
    totals: Totals,
    intervals: u64,
    leaves: (usize, usize),
    notices: Vec<(Time, Notice)>,
    /// Sink leaves whose clock passed the wrap while there was traffic.
    wrapped: usize,
    looked: Time,
}

/// What to watch.
struct Watch {
    scenario: Scenario,
    telemetry: TelemetryConfig,
    faults: Vec<Fault>,
    mimic_bmv2: bool,
    /// Frames lost on links, of a million.
    errors: u32,
    report_finished: bool,
}

impl Watch {
    fn new(seed: u64, way: TelemetryWay, interval_ms: u64) -> Self {
        let interval = Span::from_millis(interval_ms);
        Self {
            scenario: calm(seed),
            telemetry: TelemetryConfig { way, interval, ..TelemetryConfig::default() },
            faults: Vec::new(),
            mimic_bmv2: false,
            errors: 0,
            report_finished: false,
        }
    }

    /// Runs, and calls `also` whenever an interval was observed.
    fn run(&self, also: &mut dyn FnMut(&World<DirectWire>, u32)) -> Watched {
        let options = Options {
            telemetry: self.telemetry,
            faults: self.faults.clone(),
            mimic_bmv2: self.mimic_bmv2,
            report_finished: self.report_finished,
            wait_linger: true,
            ..Options::default()
        };
        let spec = RunSpec { options, ..spec(&self.scenario, WireKind::Direct) };
        let assembly = assemble(&spec).expect("a world");
        let gap = crate::pipeline::Settings::new("sim", assembly.facts.scale.slowest_packet_time());
        let wire = DirectWire::new(&assembly.servers);
        let mut world = assembly.into_world(wire);
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let into = seen.clone();
        world.net.set_tap(Box::new(move |now, link, passage, bytes| {
            into.lock().unwrap().push((now, link, passage, bytes.to_vec()));
        }));
        if self.errors > 0 {
            world.net.set_link_errors(self.errors, stream(self.scenario.seed, "errors", 0));
        }
        let mut watched = Watched {
            truth: Truth::new(&world.topology, world.flows(), gap.idle_gap),
            observed: BTreeMap::new(),
            totals: Totals::default(),
            intervals: 0,
            leaves: (0, 0),
            notices: Vec::new(),
            wrapped: 0,
            looked: Time::ZERO,
        };
        world
            .run(&mut |world: &mut World<DirectWire>, now, happened| {
                watched.look(world, now, happened, &seen, also);
                Ok::<(), WorldError>(())
            })
            .expect("an end");
        watched.totals = world.core.telemetry().totals().clone();
        watched.leaves = world.core.telemetry_leaves();
        watched.notices = world.notices.clone();
        watched
    }
}

impl Watched {
    fn look(
        &mut self,
        world: &World<DirectWire>,
        now: Time,
        happened: Happened,
        seen: &Mutex<Vec<Seen>>,
        also: &mut dyn FnMut(&World<DirectWire>, u32),
    ) {
        for frame in seen.lock().unwrap().drain(..) {
            self.truth.see(&frame);
        }
        if let Happened::Restarted(switch) = happened {
            self.truth.restarted(switch);
        }
        for switch in world.topology.switches() {
            let server = lock(&world.servers[switch.index()]);
            let running = server.device().register("interval", 0).unwrap_or(0) as u32;
            let running = self.truth.number(switch, running);
            let clock = server.device().config().clock;
            if self.truth.running.insert(switch, running) != Some(running) {
                self.truth.begun.insert((switch, running), now);
            }
            let wraps = |at: Time| clock.local_us(at) >> 32;
            let ends = world.topology.hosts().any(|host| world.topology.leaf_of(host) == switch);
            let wrapped = ends && !world.jobs_done() && wraps(self.looked) != wraps(now);
            self.wrapped += usize::from(wrapped);
        }
        self.looked = now;
        if world.core.intervals() != self.intervals {
            self.intervals = world.core.intervals();
            let mut newest = None;
            for (flow, window) in world.core.telemetry().windows() {
                newest = newest.max(window.newest());
                let leaf = self.sink(flow);
                if let Some(interval) = window.last() {
                    let number = world.core.interval_at(leaf).expect("a leaf") - 1;
                    let number = self.truth.number(leaf, number);
                    self.observed.insert((flow, number), *interval);
                }
            }
            also(world, newest.unwrap_or(0));
        }
    }

    fn sink(&self, flow: FlowId) -> SwitchId {
        let flow = self.truth.flows.values().find(|known| known.id == flow).expect("the flow");
        self.truth.topology.leaf_of(flow.dst)
    }

    /// Every interval that was believed is what left the sink leaf in it.
    fn assert_true(&self) {
        for ((flow, number), interval) in &self.observed {
            let about = || format!("flow {flow}, interval {number} of its leaf: {interval:?}");
            let counted = self.truth.counted.get(&(*flow, *number)).copied().unwrap_or_default();
            assert_eq!(
                (interval.packets, interval.bytes),
                (counted.packets, counted.bytes),
                "{}",
                about()
            );
            self.assert_length(*flow, *number, interval);
            if self.truth.loose.contains(flow) {
                continue;
            }
            // A tick per hop and packet, another for the mean, and 100 ppm.
            let near = |ns: u64, wanted: u64, ticks: u64| {
                ns.abs_diff(wanted) <= ticks * 1_000 + wanted / 5_000
            };
            let sum = interval.delay_mean.0 * interval.packets;
            assert!(near(sum, counted.delay, 4 * counted.packets), "{counted:?} {}", about());
            assert!(near(interval.delay_max.0, counted.delay_max, 4), "{counted:?} {}", about());
            let slack = 1_000 * (counted.packets + 1);
            let (least, most) = counted.active;
            let active = interval.active.0;
            assert!(
                active + slack + least / 5_000 >= least && active <= most + slack + most / 5_000,
                "{counted:?} {}",
                about()
            );
        }
    }

    fn assert_length(&self, flow: FlowId, number: u32, interval: &Interval) {
        let leaf = self.sink(flow);
        let begun = |number| *self.truth.begun.get(&(leaf, number)).expect("a beginning");
        let (from, to) = (begun(number), begun(number + 1));
        // By RegisterEntry a boundary is known within half a round trip.
        let error = interval.length.0.abs_diff((to - from).0);
        assert!(error <= 700_000, "flow {flow}: {from:?} to {to:?}, {interval:?}");
    }

    /// Sums over all intervals, per flow: packets, losses, late ones.
    fn sums(&self) -> BTreeMap<FlowId, (u64, i64, u64)> {
        let mut sums: BTreeMap<FlowId, (u64, i64, u64)> = BTreeMap::new();
        for ((flow, _), interval) in &self.observed {
            let sum = sums.entry(*flow).or_default();
            sum.0 += interval.packets;
            sum.1 += interval.lost;
            sum.2 += interval.reordered;
        }
        sums
    }
}

#[test]
fn samples_say_what_was_delivered_lost_and_delayed() {
    let (mut lost, mut wrapped, mut packets) = (0, 0, 0);
    for seed in 0..6 {
        let way = [TelemetryWay::Readout, TelemetryWay::Register][seed as usize % 2];
        let mut watch = Watch::new(seed, way, 10);
        watch.errors = if seed < 2 { 0 } else { 20_000 };
        let watched = watch.run(&mut |_, _| {});
        watched.assert_true();
        assert_eq!((watched.totals.missing, &watched.totals.dropped), (0, &BTreeMap::new()));
        for (flow, (count, missing, late)) in watched.sums() {
            let truth = &watched.truth;
            let delivered = truth.delivered.get(&flow).map_or(0, Vec::len) as u64;
            // When the interval before the first advance began is not known.
            let early = truth.counted.get(&(flow, 0)).map_or(0, |counted| counted.packets);
            assert_eq!(count, delivered - early, "seed {seed}, flow {flow}");
            assert_eq!((missing, late), truth.lost_and_reordered(flow), "seed {seed}, flow {flow}");
            packets += count;
            lost += missing;
        }
        wrapped += watched.wrapped;
    }
    assert!(packets > 5_000 && lost > 50, "{packets} packets, {lost} lost");
    assert!(wrapped > 0, "no sink leaf's clock wrapped");
}

#[test]
fn both_ways_give_the_same_cells_of_one_run() {
    use crate::p4runtime::proto::p4::v1::ReadRequest;
    use crate::p4runtime::rpc::{Reply, Rpc};
    let mut compared = 0;
    for seed in 0..3 {
        let watch = Watch::new(seed, TelemetryWay::Readout, 10);
        watch.run(&mut |world, _| {
            let now = world.queue.now();
            let program = world.core.program();
            let cells = program.cells.clone().expect("registers");
            for (flow, window) in world.core.telemetry().windows() {
                let Some(interval) = window.last() else { continue };
                let leg = world.core.flow(flow).expect("a flow").legs[0];
                let number = world.core.interval_at(leg.sink).expect("a leaf") - 1;
                let slots = [leg.sink_slot.index];
                let request = ReadRequest {
                    device_id: crate::sim::fabric::device_id(leg.sink),
                    entities: cells.read(&program.switch_config, &slots, number),
                    ..Default::default()
                };
                let mut server = lock(&world.servers[leg.sink.index()]);
                let Ok(Reply::Read(entities)) = server.call(now, Rpc::Read(request)) else {
                    panic!("registers of {}", leg.sink);
                };
                let read = cells.samples(&program.switch_config, (&slots, number), &entities);
                let cell = read.samples[0].cell.unwrap_or_default();
                let us = |span: Span| (span.0 / 1_000) as u32;
                let mean = cell.delay_sum.checked_div(cell.packets).unwrap_or(0);
                let by_register = [cell.packets, cell.bytes, cell.active, mean, cell.delay_max];
                let (packets, bytes) = (interval.packets as u32, interval.bytes as u32);
                let times = [interval.active, interval.delay_mean, interval.delay_max].map(us);
                assert_eq!(by_register, [packets, bytes, times[0], times[1], times[2]]);
                assert_eq!(cell.depth_max, interval.depth_max);
                compared += usize::from(packets > 0);
            }
        });
    }
    assert!(compared > 50, "{compared} cells compared");
}

#[test]
fn the_way_is_chosen_by_what_a_switch_offers() {
    let ways = |way, mimic_bmv2| {
        let watched = Watch { mimic_bmv2, ..Watch::new(1, way, 20) }.run(&mut |_, _| {});
        watched.assert_true();
        (watched.leaves, watched.totals.samples > 0)
    };
    let leaves = calm(1).topology.hosts().count() / 2;
    assert_eq!(ways(TelemetryWay::Auto, false), ((0, leaves), true));
    assert_eq!(ways(TelemetryWay::Auto, true), ((leaves, 0), true));
    assert_eq!(ways(TelemetryWay::Readout, false), ((leaves, 0), true));
    // Register reads only, from switches that have none: nothing is read, and the run goes on.
    assert_eq!(ways(TelemetryWay::Register, true), ((0, 0), false));
}

#[test]
fn a_restarted_switch_never_gives_a_sample_that_is_not_true() {
    let mut refused = 0;
    for seed in 0..6 {
        let way = [TelemetryWay::Readout, TelemetryWay::Register][seed as usize % 2];
        let mut watch = Watch::new(seed, way, 10);
        let switch = SwitchId(seed as u32 % 2);
        let at = Time(150_000_000);
        watch.faults = vec![Fault::Restart { switch, at, keep_pipeline: seed % 3 == 0 }];
        watch.scenario.jobs.iter_mut().for_each(|job| job.iterations *= 3);
        let watched = watch.run(&mut |_, _| {});
        watched.assert_true();
        let gaps = watched.totals.missing;
        let after = |((flow, number), interval): (&(FlowId, u32), &Interval)| {
            let begun = watched.truth.begun[&(watched.sink(*flow), *number)];
            begun > at && interval.packets > 0 && watched.sink(*flow) == switch
        };
        assert!(gaps > 0, "seed {seed}: a restart leaves no gap");
        let crosses = watched.observed.keys().any(|(flow, _)| watched.sink(*flow) == switch);
        assert!(!crosses || watched.observed.iter().any(after), "seed {seed}: never read again");
        refused += watched.totals.dropped.values().sum::<u64>();
    }
    assert!(refused > 0, "no sample of a restarted leaf or flow was refused");
}

#[test]
fn a_reused_slot_never_counts_for_the_flow_before() {
    let mut reused = 0;
    for seed in [2, 3, 5] {
        let mut watch = Watch::new(seed, TelemetryWay::Auto, 20);
        watch.report_finished = true;
        let job = watch.scenario.jobs.last().expect("a job").id;
        let at = Span::from_millis(2_000);
        watch.scenario.events.push(Event { at, kind: EventKind::JobArrival { job } });
        let watched = watch.run(&mut |_, _| {});
        watched.assert_true();
        reused += watched.truth.epochs.values().filter(|epochs| epochs.len() > 1).count();
        let late = watched.observed.iter().filter(|((flow, _), interval)| {
            let flow = watched.truth.flows.values().find(|known| known.id == *flow);
            flow.is_some_and(|flow| flow.job == job) && interval.packets > 0
        });
        assert!(late.count() > 0, "seed {seed}: nothing of the late job was seen");
    }
    assert!(reused > 0, "no slot was used twice");
}

#[test]
fn lost_and_repeated_answers_leave_gaps_and_no_wrong_interval() {
    for seed in 0..3 {
        let mut watch = Watch::new(seed, TelemetryWay::Readout, 90);
        let faults = watch.scenario.topology.switches();
        watch.faults =
            faults.map(|switch| Fault::PacketIns { switch, lost: 150, twice: 150 }).collect();
        watch.scenario.jobs.iter_mut().for_each(|job| job.iterations *= 5);
        let watched = watch.run(&mut |_, _| {});
        watched.assert_true();
        let totals = &watched.totals;
        // An answer is lost three times in a row now and then; one that came twice is of no use.
        assert!(totals.missing > 0 && totals.dropped.len() == 1, "{totals:?}");
        assert!(totals.samples > totals.missing, "{totals:?}");
        for (flow, (_, missing, late)) in watched.sums() {
            assert_eq!((missing, late), watched.truth.lost_and_reordered(flow), "flow {flow}");
        }
    }
}

#[test]
fn a_rate_cap_stretches_the_interval_and_says_so() {
    let mut watch = Watch::new(1, TelemetryWay::Readout, 10);
    watch.telemetry.rate_cap = 50;
    let watched = watch.run(&mut |_, _| {});
    watched.assert_true();
    let mut told = watched.notices.iter().filter_map(|(_, notice)| match notice {
        Notice::TelemetryInterval { interval, slots, rate_cap } => {
            Some((*interval, *slots, *rate_cap))
        }
        _ => None,
    });
    let (interval, slots, rate_cap) = told.next_back().expect("it says so");
    assert_eq!(rate_cap, 50);
    let needed = slots as f64 / 50.0;
    assert!(interval.as_secs_f64() > needed, "{interval} for {slots} slots");
    assert!(interval.as_secs_f64() < 3.0 * needed + 0.1, "{interval} for {slots} slots");
    assert_eq!(watched.totals.missing_by, BTreeMap::new(), "{:?}", watched.totals);
}

#[test]
fn both_wires_give_the_same_bytes_with_either_way() {
    for way in [TelemetryWay::Readout, TelemetryWay::Register] {
        let scenario = calm(11);
        let telemetry = TelemetryConfig { way, ..TelemetryConfig::default() };
        let go = |wire| {
            let options = Options { telemetry, ..Options::default() };
            run(&RunSpec { options, ..spec(&scenario, wire) }).expect("a result")
        };
        let direct = go(WireKind::Direct);
        assert_eq!(direct, go(WireKind::Grpc));
        assert!(direct.telemetry.totals.samples > 0, "{direct:?}");
    }
}

#[test]
fn a_run_goes_the_same_way_however_it_is_read() {
    let go = |way| {
        let mut watch = Watch::new(3, way, 10);
        let at = Span::from_millis(30);
        watch.scenario.events.push(Event { at, kind: EventKind::MoveFlows { count: 3 } });
        let watched = watch.run(&mut |_, _| {});
        // What the controller told, to the nanosecond, and the order of every flow's packets.
        (watched.notices, watched.truth.delivered)
    };
    let off = go(TelemetryWay::Off);
    assert!(off.0.len() > 10, "{:?}", off.0);
    for way in [TelemetryWay::Readout, TelemetryWay::Register] {
        let read = go(way);
        assert_eq!(read.0, off.0, "{way:?}");
        assert_eq!(read.1, off.1, "{way:?}");
    }
}

#[test]
fn an_interval_in_which_cells_can_wrap_is_refused_by_the_name_of_its_flag() {
    let mut scenario = calm(0);
    let rate = BitRate(400_000_000_000);
    scenario.topology = crate::topology::generate::LeafSpine::new(2, 2, 2, rate).build().unwrap();
    scenario.jobs.truncate(1);
    scenario.jobs[0].ranks = vec![crate::id::HostId(0), crate::id::HostId(2)];
    let build = |ms| {
        let interval = Span::from_millis(ms);
        let telemetry = TelemetryConfig { interval, ..TelemetryConfig::default() };
        let options = Options { telemetry, ..Options::default() };
        assemble(&RunSpec { options, ..spec(&scenario, WireKind::Direct) }).map(|_| ())
    };
    let refusal = build(43).unwrap_err().to_string();
    for part in ["43ms", "--telemetry-interval", "42.95ms", "400Gbps"] {
        assert!(refusal.contains(part), "{part} is not in: {refusal}");
    }
    assert!(build(42).is_ok() && build(0).is_err());
}

#[test]
fn a_switch_that_lies_or_stalls_is_not_believed_and_never_takes_the_loop_down() {
    for (seed, way) in (0..).zip([TelemetryWay::Readout, TelemetryWay::Auto]) {
        let run = |faults: &dyn Fn(SwitchId) -> Fault| {
            let mut watch = Watch::new(seed, way, 90);
            let switches = watch.scenario.topology.switches();
            watch.faults = switches.map(faults).collect();
            watch.scenario.jobs.iter_mut().for_each(|job| job.iterations *= 3);
            // Ends only when all jobs have: a loop that falls over ends with an error.
            watch.run(&mut |_, _| {}).totals
        };
        let honest = run(&|switch| Fault::Lies { switch, share: 0 });
        let lying = run(&|switch| Fault::Lies { switch, share: 700 });
        let dropped = |totals: &Totals| totals.dropped.values().sum::<u64>();
        assert!(dropped(&lying) > dropped(&honest) + 20, "{way:?}: {lying:?} against {honest:?}");
        assert!(lying.samples < honest.samples / 2, "{way:?}: {lying:?} against {honest:?}");
        if way == TelemetryWay::Auto {
            let code = crate::p4runtime::rpc::Code::Internal;
            let failing = run(&|switch| Fault::Reading { switch, share: 500, code });
            assert!(failing.missing > honest.missing && failing.samples > 0, "{failing:?}");
            assert!(failing.samples < honest.samples, "{failing:?} against {honest:?}");
        }
        let (at, lasts) = (Time(100_000_000), Span::from_millis(300));
        let stalled = run(&|switch| Fault::Stall { switch, at, lasts });
        assert!(stalled.missing > honest.missing, "{way:?}: {stalled:?}");
        assert!(stalled.samples > 0, "{way:?}: it went on");
    }
}
