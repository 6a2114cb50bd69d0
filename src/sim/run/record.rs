//! What a finished world leaves for a report.
//!
//! In: a world that has run. Out: [`Recording`]; empty where the world was not asked to record. Must not know reports.

use crate::sim::ring::Iteration;
use crate::sim::trace::Recording;
use crate::sim::wire::Wire;
use crate::sim::world::World;

/// Takes what was recorded out of the world.
pub fn recording<W: Wire>(world: &mut World<W>) -> Recording {
    let origin = world.origin().unwrap_or_default();
    let iterations: Vec<Vec<Iteration>> =
        world.jobs().iter().map(|job| world.net.job(job.id).history().to_vec()).collect();
    let ends = iterations.iter().flatten().map(|iteration| iteration.end);
    let end = ends.max().unwrap_or(origin);
    let (plans, plans_left_out) = world.take_plans().finish();
    let links = world.topology.links().len();
    let rates = (0..links).map(|link| world.net.link(link.into()).nominal).collect();
    let (bucket, load, waits) = match world.net.trace_mut() {
        Some(trace) => (trace.load.bucket(), trace.load.by_link(), trace.waits.percentiles()),
        None => Default::default(),
    };
    Recording {
        origin,
        end: end.max(origin),
        bucket,
        load,
        rates,
        waits,
        flows: world.flows().to_vec(),
        iterations,
        plans,
        plans_left_out,
        steps: std::mem::take(&mut world.steps),
        notices: std::mem::take(&mut world.notices),
    }
}
