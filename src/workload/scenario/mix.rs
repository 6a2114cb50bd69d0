//! Jobs for a fabric that comes without any.
//!
//! In: a fabric, how many jobs. Out: a scenario: models evenly from the sourced table, rings of 2, 4, 4 and 8 hosts in
//! turn (the sizes of docs/scheduling's evaluation), hosts drawn. Must not know: where the fabric came from.

use super::draw::Draw;
use super::error::{Place, Problem, ScenarioError};
use super::{DEFAULT_QUEUES, Scenario, contention_free_iteration};
use crate::id::JobId;
use crate::time::Span;
use crate::topology::Topology;
use crate::topology::import::Imported;
use crate::workload::place::{RingOrder, place};
use crate::workload::{Job, models};

/// Hosts per ring, in turn.
const WORKERS: [usize; 4] = [2, 4, 4, 8];
/// Iterations of every job: enough for phases to wander against each other.
const ITERATIONS: u32 = 10;

/// A scenario with `count` jobs on a fabric, at most `per_host` of them on one host.
///
/// # Errors
/// [`Problem::NoJobs`], [`Problem::TooMany`], [`Problem::NoRoom`], under the name `file`.
pub fn populate(
    fabric: Imported,
    file: &str,
    count: u32,
    per_host: u32,
    seed: u64,
) -> Result<Scenario, ScenarioError> {
    let fail = |problem| ScenarioError {
        place: Place { file: file.to_owned(), line: 0, column: 0 },
        problem: Box::new(problem),
    };
    let Imported { topology, mut notes } = fabric;
    if count == 0 {
        return Err(fail(Problem::NoJobs));
    }
    let (wanted, max) = (u64::from(count), super::MAX_JOBS);
    if wanted > max {
        return Err(fail(Problem::TooMany { what: "jobs", count: wanted, max }));
    }
    let hosts = topology.host_count();
    let sizes: Vec<usize> =
        (0..count as usize).map(|i| WORKERS[i % WORKERS.len()].min(hosts)).collect();
    let taken = vec![0; hosts];
    let rings = place(&sizes, &taken, per_host, RingOrder::Sorted, seed)
        .map_err(|source| fail(Problem::NoRoom { source }))?;
    let jobs =
        rings.into_iter().enumerate().map(|(i, ranks)| job(&topology, i, ranks, seed)).collect();
    notes
        .push(format!("{count} jobs placed at random, at most {per_host} on a host (seed {seed})"));
    Ok(Scenario {
        name: file.to_owned(),
        seed,
        topology,
        queues: DEFAULT_QUEUES,
        max_paths: crate::topology::DEFAULT_MAX_PATHS,
        jobs,
        events: Vec::new(),
        packet_scale: None,
        any_order: Vec::new(),
        notes,
    })
}

fn job(topology: &Topology, i: usize, ranks: Vec<crate::id::HostId>, seed: u64) -> Job {
    let model = &models::MODELS[i % models::MODELS.len()];
    let mut job = Job {
        id: JobId::from(i),
        name: format!("{}-{i}", model.name),
        model: model.name.to_owned(),
        ranks,
        gpus_per_rank: 8,
        gradient: model.gradient(),
        compute: Draw::new(seed, "compute-spread", i as u64).spread(model.compute(), 0.1),
        overlap: 0.0,
        jitter: 0.03,
        iterations: ITERATIONS,
        start: Span::ZERO,
        channels: 1,
    };
    let period = contention_free_iteration(topology, &job);
    job.start = Draw::new(seed, "start", i as u64).between(Span::ZERO, period);
    job
}
