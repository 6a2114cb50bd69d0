//! A fabric on which jobs hardly meet: what is slow there is slow for a reason.
//!
//! In: a seed. Out: a scenario. Must not know detectors.

use crate::id::JobId;
use crate::sim::SimError;
use crate::time::Span;
use crate::topology::generate::LeafSpine;
use crate::units::BitRate;
use crate::workload::place::{RingOrder, place};
use crate::workload::scenario::{DEFAULT_QUEUES, Scenario, contention_free_iteration};
use crate::workload::{Job, models};
use rand::RngExt as _;

/// Models and workers: 14 of 32 places, so a host with two jobs is the exception.
const JOBS: [(&str, usize); 4] =
    [("gpt2-small", 4), ("vgg-16", 4), ("bert-large-v100", 4), ("resnet-50", 2)];
/// Jobs that may share a host: now and then a flow is planned below another.
const JOBS_PER_HOST: u32 = 2;
/// Every job runs for about so long.
const LENGTH: Span = Span::from_millis(8_000);

/// The fabric of the default scenario with half of its jobs. `jitter` is every job's spread of compute times.
///
/// # Errors
/// None in practice: sizes and names are constants.
pub fn light(seed: u64, jitter: f64) -> Result<Scenario, SimError> {
    let fabric = |reason: String| SimError::Fabric { reason };
    let topology = LeafSpine::new(4, 4, 4, BitRate(25_000_000_000))
        .build()
        .map_err(|error| fabric(error.to_string()))?;
    let counts = JOBS.map(|job| job.1);
    let taken = vec![0; topology.host_count()];
    let rings = place(&counts, &taken, JOBS_PER_HOST, RingOrder::Shuffled, seed)
        .map_err(|error| fabric(error.to_string()))?;
    let mut jobs = Vec::new();
    for (place, ((name, _), ranks)) in JOBS.iter().zip(rings).enumerate() {
        let model =
            models::find(name).ok_or_else(|| fabric(format!("there is no model '{name}'")))?;
        let mut job = Job {
            id: JobId::from(place),
            name: (*name).to_owned(),
            model: (*name).to_owned(),
            ranks,
            gpus_per_rank: 4,
            gradient: model.gradient(),
            compute: model.compute(),
            overlap: 0.0,
            jitter,
            iterations: 1,
            start: Span::ZERO,
            channels: 1,
        };
        let period = contention_free_iteration(&topology, &job).as_secs_f64();
        job.iterations = (LENGTH.as_secs_f64() / period).round().max(2.0) as u32;
        let mut random = crate::time::stream(seed, "start", place as u64);
        job.start = Span::from_secs_f64(period * random.random::<f64>());
        jobs.push(job);
    }
    Ok(Scenario {
        name: "light".into(),
        seed,
        topology,
        queues: DEFAULT_QUEUES,
        max_paths: crate::topology::DEFAULT_MAX_PATHS,
        jobs,
        events: Vec::new(),
        packet_scale: None,
        any_order: Vec::new(),
        notes: Vec::new(),
    })
}
