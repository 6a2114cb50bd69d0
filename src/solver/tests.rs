//! Small instances that the tests of several files share.

use super::instance::{FlowShape, Instance, JobShape, Ring};
use crate::id::LinkId;
use rand::RngExt as _;

/// A job of a small instance: compute seconds and, per ring, bytes and the candidate paths of each flow.
pub(crate) type SmallJob = (f64, Vec<(f64, Vec<Vec<Vec<usize>>>)>);

/// An instance from capacities and, per job, (compute, rings of flows); a flow is (bytes, candidate paths).
pub(crate) fn instance(capacity: &[f64], jobs: &[SmallJob]) -> Instance {
    let mut built = Instance {
        capacity: capacity.to_vec(),
        link_ids: (0..capacity.len()).map(LinkId::from).collect(),
        flows: Vec::new(),
        rings: Vec::new(),
        jobs: Vec::new(),
        cuts: Vec::new(),
        levels: 6,
    };
    for (job, (compute, rings)) in jobs.iter().enumerate() {
        let mut shape = JobShape {
            compute: *compute,
            overlap: 0.0,
            jitter: 0.0,
            iterations: 5,
            ahead: 1.0,
            start: 0.0,
            gpus: 1.0,
            rings: Vec::new(),
        };
        for (bytes, flows) in rings {
            let ring = built.rings.len();
            shape.rings.push(ring);
            let first = built.flows.len();
            built.rings.push(Ring {
                job,
                bytes: *bytes,
                flows: (first..first + flows.len()).collect(),
            });
            for candidates in flows {
                built.flows.push(FlowShape {
                    job,
                    ring,
                    bytes: *bytes,
                    candidates: candidates.clone(),
                });
            }
        }
        built.jobs.push(shape);
    }
    built
}

/// Crux's example 1: J1 computes 2 s and sends 2 s, J2 1 s and 1 s, one link of 1 byte per second.
pub(crate) fn two_jobs_one_link() -> Instance {
    instance(
        &[1.0],
        &[(2.0, vec![(2.0, vec![vec![vec![0]]])]), (1.0, vec![(1.0, vec![vec![vec![0]]])])],
    )
}

/// A random small instance: `hosts` links of 1 up and down, up to two middle links per flow to choose from.
pub(crate) fn random(seed: u64, jobs: usize) -> Instance {
    let mut random = crate::time::stream(seed, "instance", 0);
    let hosts = 4;
    // Links: up 0..4, down 4..8, middle 8..12.
    let capacity: Vec<f64> = (0..12).map(|_| f64::from(random.random_range(2..=6_u32))).collect();
    let shapes: Vec<SmallJob> = (0..jobs)
        .map(|_| {
            let ranks = random.random_range(2..=3_usize);
            let first = random.random_range(0..hosts);
            let bytes = f64::from(random.random_range(1..=20_u32));
            let flows = (0..ranks)
                .map(|edge| {
                    let (from, to) = ((first + edge) % hosts, (first + (edge + 1) % ranks) % hosts);
                    let middle = random.random_range(8..11_usize);
                    vec![vec![from, middle, 4 + to], vec![from, middle + 1, 4 + to]]
                })
                .collect();
            (random.random_range(0.5..5.0), vec![(bytes, flows)])
        })
        .collect();
    let mut built = instance(&capacity, &shapes);
    for job in &mut built.jobs {
        job.overlap = if random.random_bool(0.5) { 0.0 } else { 0.4 };
        job.gpus = f64::from(random.random_range(1..=4_u32));
    }
    built
}
