//! Scenarios small enough for hundreds of runs a minute, and unlike each other.

use crate::id::{HostId, JobId};
use crate::sim::SimError;
use crate::time::{Span, stream};
use crate::topology::generate::LeafSpine;
use crate::units::{BitRate, Bytes};
use crate::workload::Job;
use crate::workload::scenario::{DEFAULT_QUEUES, Event, EventKind, Scenario};
use rand::RngExt as _;
use rand_pcg::Pcg64;

/// Link rate: a packet takes about ten microseconds.
const RATE: BitRate = BitRate(1_000_000_000);
/// Moves and re-plans start within this time of the first plan.
const BUSY: Span = Span::from_millis(300);

/// A fabric of 2 or 3 leaves with 2 or 3 spines, 2 or 3 jobs, moves of flows at random times. A function of the seed.
pub fn small_scenario(seed: u64) -> Result<Scenario, SimError> {
    let mut random = stream(seed, "small scenario", 0);
    let leaves = random.random_range(2..=3);
    let spines = random.random_range(2..=3);
    let hosts_per_leaf = 2;
    let topology = LeafSpine::new(leaves, spines, hosts_per_leaf, RATE)
        .build()
        .map_err(|error| SimError::Fabric { reason: error.to_string() })?;
    let hosts = topology.host_count() as u32;
    let jobs = (0..random.random_range(2..=3)).map(|id| job(&mut random, id, hosts)).collect();
    let mut events: Vec<Event> = (0..random.random_range(2..=6))
        .map(|_| {
            let at = Span(random.random_range(0..BUSY.0));
            let kind = match random.random_range(0..4) {
                0 => EventKind::Replan,
                _ => EventKind::MoveFlows { count: random.random_range(1..=4) },
            };
            Event { at, kind }
        })
        .collect();
    events.sort_by_key(|event| event.at);
    Ok(Scenario {
        name: format!("small-{seed}"),
        seed,
        topology,
        queues: DEFAULT_QUEUES,
        max_paths: 8,
        jobs,
        events,
        packet_scale: Some(1),
        any_order: Vec::new(),
        notes: Vec::new(),
    })
}

/// A ring over random hosts, light enough that a run has a few thousand packets.
fn job(random: &mut Pcg64, id: u32, hosts: u32) -> Job {
    let mut all: Vec<u32> = (0..hosts).collect();
    let ranks = random.random_range(2..=hosts.min(4)) as usize;
    for at in 0..ranks {
        let other = random.random_range(at..all.len());
        all.swap(at, other);
    }
    Job {
        id: JobId(id),
        name: format!("job-{id}"),
        model: "custom".into(),
        ranks: all[..ranks].iter().copied().map(HostId).collect(),
        gpus_per_rank: 1,
        gradient: Bytes(random.random_range(8_000..40_000)),
        compute: Span(random.random_range(10_000_000..40_000_000)),
        overlap: [0.0, 0.5][random.random_range(0..2)],
        jitter: 0.03,
        iterations: random.random_range(6..=12),
        start: Span(random.random_range(0..20_000_000)),
        channels: random.random_range(1..=2),
    }
}
