//! From a topology and flows to a network at rest.
//!
//! In: what the run is about. Out: a [`Net`], or why the flows cannot be sent. Must not know events.

use super::{FlowState, HostState, JobState, NO_LINK, Net, SwitchState};
use crate::id::{HostId, JobId};
use crate::sim::SimError;
use crate::sim::host::{Nic, Receiver, Recovery, Sender, Template, frame};
use crate::sim::packet::link::End;
use crate::sim::packet::pool::Pool;
use crate::sim::packet::{Forwarder, Link, Scale, Traffic};
use crate::sim::ring::JobRun;
use crate::time::{Span, Time};
use crate::topology::{FlowKey, Topology};
use crate::workload::{Flow, Job};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What a network is built from.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The fabric at full size.
    pub topology: &'a Topology,
    /// Jobs, indexed by id.
    pub jobs: &'a [Job],
    /// Flows, indexed by id.
    pub flows: &'a [Flow],
    /// σ.
    pub scale: &'a Scale,
    /// How lost packets come back.
    pub recovery: Recovery,
    /// Draws compute jitter.
    pub seed: u64,
}

/// Room for headers that the fabric pushes in front of a frame (tag and tunnels); longer frames are counted as unreadable.
const ENCAPSULATION: usize = 64;

impl<F: Forwarder> Net<F> {
    /// Builds the network; `switches` in order of id. Ports are set up with their scaled rates.
    pub fn new(setup: &Setup<'_>, switches: Vec<F>) -> Result<Self, SimError> {
        let links = links(setup);
        let mut net = Self {
            switches: switches
                .into_iter()
                .map(|forwarder| SwitchState { forwarder, out: Vec::new(), poll_at: Time::NEVER })
                .collect(),
            hosts: hosts(setup),
            flows: flows(setup)?,
            jobs: jobs(setup),
            pool: Pool::new(Template::data_len(setup.scale.payload() as usize) + ENCAPSULATION),
            transport: setup.scale.transport(setup.recovery),
            coupling: setup.scale.coupling(),
            queue_pairs: queue_pairs(setup.flows)?,
            traffic: Traffic::default(),
            finished: Vec::new(),
            iterated: Vec::new(),
            background: Vec::new(),
            speakers: Vec::new(),
            errors: None,
            tap: None,
            trace: None,
            digest: 0,
            links,
        };
        net.wire_ports();
        Ok(net)
    }

    /// Adds the flows of a setup, whose ids go on where those of the network end.
    pub(super) fn append_flows(&mut self, setup: &Setup<'_>) -> Result<(), SimError> {
        let states = flows(setup)?;
        queue_pairs(setup.flows)?;
        let ends = |flow: &Flow| {
            [(flow.dst.0, flow.key.dst_qp), (flow.src.0, flow.reverse.dst_qp)]
                .map(|(host, queue_pair)| (host, queue_pair.unwrap_or_default()))
        };
        for (wanted, flow) in (self.flows.len()..).zip(setup.flows) {
            let taken = ends(flow).into_iter().find_map(|end| self.queue_pairs.get(&end)).copied();
            if flow.id.index() != wanted || taken.is_some() {
                let (first, second) = (taken.unwrap_or(wanted as u32), flow.id.0);
                let queue_pair = flow.key.dst_qp.unwrap_or_default();
                return Err(SimError::SharedQueuePair { first, second, queue_pair });
            }
        }
        self.flows.extend(states);
        for flow in setup.flows {
            self.queue_pairs.extend(ends(flow).map(|end| (end, flow.id.0)));
        }
        Ok(())
    }

    fn wire_ports(&mut self) {
        for (index, link) in self.links.iter().enumerate() {
            let End::Switch(switch, port) = link.from else { continue };
            let state = &mut self.switches[switch.index()];
            let at = usize::from(port.0);
            if state.out.len() <= at {
                state.out.resize(at + 1, NO_LINK);
            }
            state.out[at] = index as u32;
            state.forwarder.set_port(Time::ZERO, port, true, Some(link.rate));
        }
    }
}

fn links(setup: &Setup<'_>) -> Vec<Link> {
    let end = |node, port| match setup.topology.as_switch(node) {
        Some(switch) => End::Switch(switch, port),
        None => End::Host(setup.topology.as_host(node).unwrap_or_default()),
    };
    let scaled = |link: &crate::topology::Link| {
        let nominal = setup.scale.rate(link.rate);
        Link {
            from: end(link.from, link.from_port),
            to: end(link.to, link.to_port),
            nominal,
            rate: nominal,
            delay: link.delay,
            up: true,
            epoch: 0,
        }
    };
    setup.topology.links().iter().map(scaled).collect()
}

fn hosts(setup: &Setup<'_>) -> Vec<HostState> {
    let host = |host: HostId| HostState {
        address: setup.topology.host_ip(host),
        uplink: setup.topology.uplink(host).0,
        nic: Nic::default(),
        failed: false,
        pace: 1.0,
    };
    setup.topology.hosts().map(host).collect()
}

fn jobs(setup: &Setup<'_>) -> Vec<JobState> {
    let mut by_job: Vec<Vec<u32>> = vec![Vec::new(); setup.jobs.len()];
    for flow in setup.flows {
        if let Some(list) = by_job.get_mut(flow.job.index()) {
            list.push(flow.id.0);
        }
    }
    let pairs = setup.jobs.iter().zip(by_job);
    pairs
        .map(|(job, flows)| JobState {
            run: JobRun::new(job, setup.seed),
            ranks: job.ranks.clone(),
            flows,
            open: 0,
        })
        .collect()
}

/// Each ring's flows in order of their edges: (job, channel) to flow ids.
fn rings(setup: &Setup<'_>) -> Result<BTreeMap<(JobId, u16), Vec<u32>>, SimError> {
    let mut rings: BTreeMap<(JobId, u16), Vec<(u16, u32)>> = BTreeMap::new();
    for flow in setup.flows {
        rings.entry((flow.job, flow.channel)).or_default().push((flow.edge, flow.id.0));
    }
    let mut ordered = BTreeMap::new();
    for ((job, channel), mut edges) in rings {
        edges.sort_unstable();
        let ranks = setup.jobs.get(job.index()).map_or(0, |job| job.ranks.len());
        if edges.len() != ranks || edges.iter().enumerate().any(|(i, (e, _))| i != usize::from(*e))
        {
            return Err(SimError::BrokenRing { job: job.0, channel, flows: edges.len(), ranks });
        }
        ordered.insert((job, channel), edges.into_iter().map(|(_, flow)| flow).collect());
    }
    Ok(ordered)
}

fn flows(setup: &Setup<'_>) -> Result<Vec<FlowState>, SimError> {
    let rings = rings(setup)?;
    let mut states = Vec::with_capacity(setup.flows.len());
    for flow in setup.flows {
        check_key(flow, &flow.key)?;
        check_key(flow, &flow.reverse)?;
        let ring = rings.get(&(flow.job, flow.channel)).map_or(&[][..], Vec::as_slice);
        let (n, edge) = (ring.len(), usize::from(flow.edge));
        let macs = (setup.topology.host_mac(flow.src), setup.topology.host_mac(flow.dst));
        let (packets, last_payload) = setup.scale.message(flow);
        // Fibonacci hashing spreads neighbouring ids over the ephemeral ports.
        let entropy = (flow.id.0.wrapping_mul(0x9e37_79b9) >> 16) as u16;
        states.push(FlowState {
            src: flow.src.0,
            dst: flow.dst.0,
            job: flow.job.0,
            before: ring[(edge + n - 1) % n],
            after: ring[(edge + 1) % n],
            sender: Sender::default(),
            receiver: Receiver::default(),
            data: Template::new(&flow.key, macs, entropy),
            back: Template::new(&flow.reverse, (macs.1, macs.0), entropy),
            packets,
            last_payload,
            base: 0,
            end: 0,
            class: 0,
            sender_lined_up: false,
            receiver_lined_up: false,
            sender_timer: false,
            receiver_timer: false,
            reordered: 0,
            begun: Time::ZERO,
            took: Span::ZERO,
            completed: 0,
            retired: false,
        });
    }
    Ok(states)
}

fn check_key(flow: &Flow, key: &FlowKey) -> Result<(), SimError> {
    let what = if key.protocol != 17 {
        "another protocol than UDP"
    } else if key.dst_port.is_some_and(|port| port != frame::ROCE_PORT) {
        "another UDP port than 4791"
    } else if key.dst_qp.is_none() {
        "no queue pair"
    } else {
        return Ok(());
    };
    Err(SimError::FlowKey { flow: flow.id.0, what })
}

fn queue_pairs(flows: &[Flow]) -> Result<FxHashMap<(u32, u32), u32>, SimError> {
    let mut map = FxHashMap::default();
    for flow in flows {
        let ends = [(flow.dst, flow.key.dst_qp), (flow.src, flow.reverse.dst_qp)];
        for (host, queue_pair) in ends {
            let queue_pair = queue_pair.unwrap_or_default();
            if let Some(first) = map.insert((host.0, queue_pair), flow.id.0) {
                return Err(SimError::SharedQueuePair { first, second: flow.id.0, queue_pair });
            }
        }
    }
    Ok(map)
}
