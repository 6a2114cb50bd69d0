//! The problem as arrays: links, flows, rings and jobs by dense index, rates in bytes per second, times in seconds.
//!
//! In: a [`Problem`] (or numbers, in tests). Out: an [`Instance`] that the rate model, the fluid simulation and every
//! policy share, and [`Choice`]s that turn back into a [`Plan`]. Must not know: how a choice is found.

use super::Problem;
use crate::id::{LinkId, NodeId};
use crate::plan::{Assignment, Plan};
use crate::workload::Job;
use std::collections::BTreeMap;

/// Queues that exist at all on a port (docs/dataplane); a policy uses `0..levels` of them.
pub const QUEUES: usize = 8;

/// One flow: a ring edge of one channel.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowShape {
    /// Its job.
    pub job: usize,
    /// Its ring, an index into [`Instance::rings`].
    pub ring: usize,
    /// Bytes per iteration.
    pub bytes: f64,
    /// Candidate paths, each a list of indices into [`Instance::capacity`]. Never empty.
    pub candidates: Vec<Vec<usize>>,
}

/// The flows of one channel of one job: they progress together.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    /// Its job.
    pub job: usize,
    /// Bytes that every flow of the ring sends per iteration (the largest, should they differ).
    pub bytes: f64,
    /// Flows in ring order.
    pub flows: Vec<usize>,
}

/// What of a job decides its rhythm.
#[derive(Clone, Debug, PartialEq)]
pub struct JobShape {
    /// Compute seconds of one iteration.
    pub compute: f64,
    /// Share of the compute time that overlaps with communication, 0..=1.
    pub overlap: f64,
    /// Standard deviation of the compute time, relative.
    pub jitter: f64,
    /// Iterations until the job is done, at least 1.
    pub iterations: u32,
    /// Share of the job's iterations that this is, 0..=1: what is behind a job counts in its figures and cannot be changed.
    pub ahead: f64,
    /// Seconds from the start of the run to the first iteration.
    pub start: f64,
    /// GPUs: the job's weight in GPU utilisation.
    pub gpus: f64,
    /// Its rings, one per channel; empty for a job that stays on one host.
    pub rings: Vec<usize>,
}

/// A problem as arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Instance {
    /// Capacity of each link that some candidate path uses, bytes per second.
    pub capacity: Vec<f64>,
    /// The topology's id of each link in `capacity`.
    pub link_ids: Vec<LinkId>,
    /// Flows, by flow id.
    pub flows: Vec<FlowShape>,
    /// Rings, by job, then channel.
    pub rings: Vec<Ring>,
    /// Jobs, by job id.
    pub jobs: Vec<JobShape>,
    /// Sets of links that act as one wide link in bounds: all links out of a switch towards other switches, all links
    /// into it from other switches. (Single links are cuts too and are not listed.)
    pub cuts: Vec<Vec<usize>>,
    /// Queues that may be used: `0..levels`, larger served first.
    pub levels: u8,
}

/// A path and a queue for every flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Choice {
    /// Index into the flow's candidates.
    pub path: Vec<u16>,
    /// Queue of the flow, below [`Instance::levels`].
    pub queue: Vec<u8>,
}

impl Choice {
    /// First candidate and queue 0 for every flow.
    #[must_use]
    pub fn first(flows: usize) -> Self {
        Self { path: vec![0; flows], queue: vec![0; flows] }
    }
}

impl Instance {
    /// Reads a problem. Flows of one (job, channel) become one ring, in the order of their ids.
    #[must_use]
    pub fn new(problem: &Problem<'_>) -> Self {
        let mut index: BTreeMap<LinkId, usize> = BTreeMap::new();
        let used = problem.paths.iter().flatten().flat_map(|path| path.links.iter().copied());
        for link in used {
            index.insert(link, 0);
        }
        for (position, slot) in index.values_mut().enumerate() {
            *slot = position;
        }
        let capacity =
            index.keys().map(|&link| problem.topology.link(link).rate.0 as f64 / 8.0).collect();
        let mut jobs: Vec<JobShape> = problem
            .jobs
            .iter()
            .enumerate()
            .map(|(id, job)| job_shape(job, problem.in_force.done.get(id).copied().unwrap_or(0)))
            .collect();
        let mut rings: Vec<Ring> = Vec::new();
        let mut ring_of: BTreeMap<(usize, u16), usize> = BTreeMap::new();
        for flow in problem.flows {
            ring_of.insert((flow.job.index(), flow.channel), 0);
        }
        for (position, (&(job, _), slot)) in ring_of.iter_mut().enumerate() {
            *slot = position;
            rings.push(Ring { job, bytes: 0.0, flows: Vec::new() });
            jobs[job].rings.push(position);
        }
        let mut flows = Vec::with_capacity(problem.flows.len());
        for (id, flow) in problem.flows.iter().enumerate() {
            let ring = ring_of[&(flow.job.index(), flow.channel)];
            let bytes = flow.bytes as f64;
            rings[ring].bytes = rings[ring].bytes.max(bytes);
            rings[ring].flows.push(id);
            let candidates = problem.paths[id]
                .iter()
                .map(|path| path.links.iter().map(|link| index[link]).collect())
                .collect();
            flows.push(FlowShape { job: flow.job.index(), ring, bytes, candidates });
        }
        let levels = problem.levels.clamp(1, QUEUES as u8);
        let cuts = cuts(problem, &index);
        let link_ids = index.into_keys().collect();
        Self { capacity, link_ids, flows, rings, jobs, cuts, levels }
    }

    /// The links that a flow uses under a choice.
    #[must_use]
    pub fn links(&self, choice: &Choice, flow: usize) -> &[usize] {
        &self.flows[flow].candidates[usize::from(choice.path[flow])]
    }

    /// Seconds that one iteration's bytes keep each link busy for one job, over its flows: (link, seconds), ascending
    /// by link. With `M_{j,e}` bytes on link `e` of `B_e` bytes per second this is `M_{j,e} / B_e` (Crux, section 3).
    #[must_use]
    pub fn job_load(&self, choice: &Choice, job: usize) -> Vec<(usize, f64)> {
        let mut load: BTreeMap<usize, f64> = BTreeMap::new();
        for &ring in &self.jobs[job].rings {
            for &flow in &self.rings[ring].flows {
                for &link in self.links(choice, flow) {
                    *load.entry(link).or_default() += self.flows[flow].bytes / self.capacity[link];
                }
            }
        }
        load.into_iter().collect()
    }

    /// Contention-free communication seconds of one iteration of a job under a choice: the busiest link alone.
    #[must_use]
    pub fn alone(&self, choice: &Choice, job: usize) -> f64 {
        self.job_load(choice, job).iter().map(|&(_, seconds)| seconds).fold(0.0, f64::max)
    }

    /// Seconds per iteration of a job whose communication takes `comm` seconds: compute and the part of the
    /// communication that no compute hides.
    #[must_use]
    pub fn period(&self, job: usize, comm: f64) -> f64 {
        let shape = &self.jobs[job];
        shape.compute.max((1.0 - shape.overlap) * shape.compute + comm)
    }

    /// Turns a choice into a plan, with one reason per flow.
    #[must_use]
    pub fn plan(
        problem: &Problem<'_>,
        choice: &Choice,
        policy: &str,
        reason: impl Fn(usize) -> String,
    ) -> Plan {
        let assignments = problem
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| Assignment {
                flow: flow.id,
                path: problem.paths[index][usize::from(choice.path[index])].clone(),
                queue: choice.queue[index],
                reason: reason(index),
            })
            .collect();
        Plan { generation: 1, policy: policy.to_owned(), assignments }
    }

    /// Reads a plan back into indices; `None` if a flow's path is not among its candidates, or flows are missing.
    #[must_use]
    pub fn choice(problem: &Problem<'_>, plan: &Plan) -> Option<Choice> {
        let mut choice = Choice::first(problem.flows.len());
        if plan.assignments.len() != problem.flows.len() {
            return None;
        }
        for (index, assignment) in plan.assignments.iter().enumerate() {
            let position = problem.paths[index].iter().position(|path| *path == assignment.path)?;
            choice.path[index] = u16::try_from(position).ok()?;
            choice.queue[index] = assignment.queue;
        }
        Some(choice)
    }
}

/// A job of which `done` iterations are behind it.
fn job_shape(job: &Job, done: u32) -> JobShape {
    let all = job.iterations.max(1);
    let left = all.saturating_sub(done).max(1);
    JobShape {
        compute: job.compute.as_secs_f64(),
        overlap: job.overlap.clamp(0.0, 1.0),
        jitter: job.jitter.max(0.0),
        iterations: left,
        ahead: f64::from(left) / f64::from(all),
        start: if done == 0 { job.start.as_secs_f64() } else { 0.0 },
        gpus: job.ranks.len() as f64 * f64::from(job.gpus_per_rank.max(1)),
        rings: Vec::new(),
    }
}

/// Links between switches, grouped by the switch they leave and by the switch they enter.
fn cuts(problem: &Problem<'_>, index: &BTreeMap<LinkId, usize>) -> Vec<Vec<usize>> {
    let topology = problem.topology;
    let mut groups: BTreeMap<(NodeId, bool), Vec<usize>> = BTreeMap::new();
    for (&id, &position) in index {
        let link = topology.link(id);
        let (from, to) = (topology.as_switch(link.from), topology.as_switch(link.to));
        if from.is_some() && to.is_some() {
            groups.entry((link.from, false)).or_default().push(position);
            groups.entry((link.to, true)).or_default().push(position);
        }
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}
