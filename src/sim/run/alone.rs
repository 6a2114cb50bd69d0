//! The contention-free limit: each job alone on the fabric.
//!
//! In: a scenario. Out: communication time per job. Computed in the packet simulation, at the run's σ, with the same hosts and
//! links, over switches that only forward in order (no scheduling is needed for one job); its flows are placed one by
//! one on the candidate path with the least of the job's own load.

use super::{RunError, RunSpec};
use crate::id::{JobId, PortNo};
use crate::sim::packet::ideal::IdealSwitch;
use crate::sim::packet::{Net, NetEvent, Scale, ScaleInput, Setup};
use crate::sim::queue::Queue;
use crate::time::{Span, Time};
use crate::topology::{LinkSet, Path, Paths, Topology};
use crate::workload::{Flow, Job, flows};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Iterations run alone: the first is not counted, and without others each is like the next up to jitter.
const ITERATIONS: u32 = 4;

/// Mean communication time of iterations 2.. by job name, milliseconds, each job alone.
///
/// # Errors
/// As [`super::run`], before anything has run.
pub fn contention_free(spec: &RunSpec<'_>) -> Result<BTreeMap<String, f64>, RunError> {
    let scenario = spec.scenario;
    let all = flows(&scenario.topology, &scenario.jobs)?;
    let scale = Scale::choose(&ScaleInput {
        topology: &scenario.topology,
        jobs: &scenario.jobs,
        flows: &all,
        packet_budget: spec.options.packet_budget,
        fixed: scenario.packet_scale.map(f64::from),
    })?;
    let paths = Paths::build(&scenario.topology, &LinkSet::new(), scenario.max_paths)
        .map_err(crate::controller::core::CoreError::from)?;
    let times: Vec<Result<(String, f64), RunError>> = scenario
        .jobs
        .par_iter()
        .map(|job| Ok((job.name.clone(), alone(spec, job, &scale, &paths)?)))
        .collect();
    times.into_iter().collect()
}

fn alone(spec: &RunSpec<'_>, job: &Job, scale: &Scale, paths: &Paths) -> Result<f64, RunError> {
    let topology = &spec.scenario.topology;
    let job = Job {
        id: JobId(0),
        start: Span::ZERO,
        iterations: job.iterations.min(ITERATIONS),
        ..job.clone()
    };
    let jobs = [job];
    let flows = flows(topology, &jobs)?;
    let chosen = place(topology, &flows, paths);
    let room = scale.transport(spec.options.recovery).window as usize * flows.len();
    let setup = Setup {
        topology,
        jobs: &jobs,
        flows: &flows,
        scale,
        recovery: spec.options.recovery,
        seed: spec.options.seed.unwrap_or(spec.scenario.seed),
    };
    let mut net = Net::new(&setup, switches(topology, &flows, &chosen, room))?;
    let mut queue: Queue<NetEvent> = Queue::default();
    net.start_job(&mut queue, Time::ZERO, JobId(0));
    while let Some((now, event)) = queue.pop() {
        net.handle(&mut queue, now, event);
    }
    let history = net.job(JobId(0)).history();
    let counted = if history.len() > 1 { &history[1..] } else { history };
    let sum: f64 = counted.iter().map(|it| (it.comm_end - it.comm_start).as_secs_f64()).sum();
    Ok(sum * 1e3 / counted.len().max(1) as f64)
}

/// Each flow on its candidate with the least loaded fullest link.
fn place(topology: &Topology, flows: &[Flow], paths: &Paths) -> Vec<Path> {
    let mut load = vec![0.0_f64; topology.links().len()];
    let mut chosen = Vec::with_capacity(flows.len());
    for flow in flows {
        let cost = |path: &Path| {
            let seconds = |link: &crate::id::LinkId| {
                (load[link.index()] + flow.bytes as f64) / topology.link(*link).rate.0 as f64
            };
            path.links.iter().map(seconds).fold(0.0, f64::max)
        };
        let candidates = paths.candidates(topology, flow.src, flow.dst);
        let best = candidates.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let Some(path) = best else { continue };
        for link in &path.links {
            load[link.index()] += flow.bytes as f64;
        }
        chosen.push(path);
    }
    chosen
}

/// Forwarders that know exactly these flows; acknowledgements come back the way the data went.
fn switches(topology: &Topology, flows: &[Flow], chosen: &[Path], room: usize) -> Vec<IdealSwitch> {
    let mut switches = vec![IdealSwitch::new(room); topology.switch_count()];
    let mut route = |link, destination, queue_pair: Option<u32>| {
        let link: &crate::topology::Link = topology.link(link);
        if let Some(switch) = topology.as_switch(link.from) {
            let port: PortNo = link.from_port;
            switches[switch.index()].route(destination, queue_pair.unwrap_or(0), port);
        }
    };
    for (flow, path) in flows.iter().zip(chosen) {
        for link in &path.links {
            route(*link, flow.key.dst, flow.key.dst_qp);
            route(topology.reverse(*link), flow.reverse.dst, flow.reverse.dst_qp);
        }
    }
    switches
}
