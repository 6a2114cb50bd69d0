//! Searches of neighbourhoods, for cases in which one simulation of everything takes longer than a planning budget.
//!
//! In: an instance of any size and a start. Out: a better choice, by simulation of a few jobs at a time. Must not know:
//! how the start was found.
//!
//! Round after round, up to [`LANES`] neighbourhoods are taken that do not touch each other: a *core* of jobs that may
//! change, a *halo* of the jobs that share most with them and stay as they are, and the rest of the fabric as capacity that
//! it leaves on average. Each is searched like a small case of its own ([`lane`]), and what is found is kept if the
//! neighbourhood as a whole, halo included, gains by simulation. What lies beyond the halo is not simulated: this is what
//! such a search pays for its size. Whatever the number of threads, the neighbourhoods and their searches are the same.

use super::lane::{self, Lane};
use super::scope::Scope;
use super::starts::Start;
use super::{Found, LANES, estimate};
use crate::solver::Effort;
use crate::solver::instance::{Choice, FlowShape, Instance, JobShape, Ring};
use crate::solver::objective::{Evaluator, Yardstick};
use crate::solver::policy::least_loaded;
use rand::RngExt as _;
use rayon::prelude::*;

/// Jobs that may change together: enough to exchange queues and paths, few enough to be searched in some tens of moves.
const CORE: usize = 4;
/// Jobs of a neighbourhood: with one ring each they stay well within one word of sending rings.
const JOBS_MAX: usize = 28;
/// Moves tried in a neighbourhood.
const MOVES: u64 = 48;
/// Share of a link that a neighbourhood has for itself whatever the others use on average.
const LEAST_LEFT: f64 = 0.25;
/// Iterations of the job with the longest period that are simulated.
const ITERATIONS: f64 = 6.0;
/// Iterations of any job that are simulated at most.
const ITERATIONS_MAX: f64 = 24.0;
/// Draws of start phases at most.
const PHASES_MAX: u32 = 2;
/// Jobs drawn for one more neighbourhood before a round begins with those that were found.
const DRAWS: usize = 16;
/// A neighbourhood's search has come this far down from its warmth: it has no time to wander.
const PROGRESS: f64 = 0.7;

/// Improves a start until the budget is used or `stop` says so. `worth` is the share by which a neighbourhood must gain.
pub(super) fn search(
    instance: &Instance,
    effort: &Effort<'_>,
    scope: &Scope,
    start: Start,
    worth: f64,
) -> Found {
    let rate = least_loaded::rates(instance);
    let mut choice = start.choice;
    let mut evaluations = 0;
    let mut round = 0;
    while evaluations < effort.max_evaluations && !(effort.stop)() {
        let parts = neighbourhoods(instance, &choice, &rate, effort.seed, round);
        if parts.is_empty() {
            break;
        }
        let fabric = Fabric::new(instance, &choice, &rate);
        let found: Vec<(u64, Option<Choice>)> = parts
            .par_iter()
            .enumerate()
            .map(|(id, part)| {
                let mut seeded = Effort { seed: effort.seed ^ round, ..*effort };
                seeded.phases = effort.phases.clamp(1, PHASES_MAX);
                fabric.improve(part, scope, &seeded, (id, worth))
            })
            .collect();
        for (part, (spent, better)) in parts.iter().zip(found) {
            evaluations += spent;
            let Some(better) = better else { continue };
            for (place, &flow) in part.flows(instance).iter().enumerate() {
                choice.path[flow] = better.path[place];
                choice.queue[flow] = better.queue[place];
            }
        }
        round += 1;
    }
    let score = estimate::mean_field(instance, &choice).value(effort.objective);
    Found { choice, score, start: start.name, evaluations }
}

/// Jobs of a neighbourhood, the core first.
struct Part {
    jobs: Vec<usize>,
    core: usize,
}

impl Part {
    /// Its flows, job by job, ring by ring.
    fn flows(&self, instance: &Instance) -> Vec<usize> {
        let rings = self.jobs.iter().flat_map(|&job| &instance.jobs[job].rings);
        rings.flat_map(|&ring| &instance.rings[ring].flows).copied().collect()
    }
}

/// Neighbourhoods of one round: no core meets another's core or halo.
fn neighbourhoods(
    instance: &Instance,
    choice: &Choice,
    rate: &[f64],
    seed: u64,
    round: u64,
) -> Vec<Part> {
    let mut random = crate::time::stream(seed, "joint-neighbourhood", round);
    let mut users: Vec<Vec<u32>> = vec![Vec::new(); instance.capacity.len()];
    for flow in 0..instance.flows.len() {
        instance.links(choice, flow).iter().for_each(|&link| users[link].push(flow as u32));
    }
    let senders: Vec<usize> =
        (0..instance.jobs.len()).filter(|&job| !instance.jobs[job].rings.is_empty()).collect();
    let mut in_core = vec![false; instance.jobs.len()];
    let mut in_any = in_core.clone();
    let mut parts = Vec::new();
    for _ in 0..DRAWS {
        if parts.len() == LANES || senders.is_empty() {
            break;
        }
        let first = senders[random.random_range(0..senders.len())];
        if in_any[first] {
            continue;
        }
        let mut jobs = vec![first];
        nearest(instance, choice, rate, &users, &mut jobs, CORE);
        let core = jobs.len();
        nearest(instance, choice, rate, &users, &mut jobs, JOBS_MAX);
        let apart = jobs[..core].iter().all(|&job| !in_any[job])
            && jobs[core..].iter().all(|&job| !in_core[job]);
        if apart {
            jobs.iter().for_each(|&job| in_any[job] = true);
            jobs[..core].iter().for_each(|&job| in_core[job] = true);
            parts.push(Part { jobs, core });
        }
    }
    parts
}

/// Adds the jobs that use most of the links of those that are there, up to `count` jobs in all.
fn nearest(
    instance: &Instance,
    choice: &Choice,
    rate: &[f64],
    users: &[Vec<u32>],
    jobs: &mut Vec<usize>,
    count: usize,
) {
    let mut shared = vec![0.0_f64; instance.jobs.len()];
    let mut seen = vec![false; instance.capacity.len()];
    let rings = jobs.iter().flat_map(|&job| &instance.jobs[job].rings);
    for &flow in rings.flat_map(|&ring| &instance.rings[ring].flows) {
        for &link in instance.links(choice, flow) {
            if std::mem::replace(&mut seen[link], true) {
                continue;
            }
            for &user in &users[link] {
                let user = user as usize;
                shared[instance.flows[user].job] += rate[user] / instance.capacity[link];
            }
        }
    }
    jobs.iter().for_each(|&job| shared[job] = 0.0);
    let mut order: Vec<usize> = (0..shared.len()).filter(|&job| shared[job] > 0.0).collect();
    order.sort_by(|&a, &b| shared[b].total_cmp(&shared[a]).then(a.cmp(&b)));
    jobs.extend(order.into_iter().take(count.saturating_sub(jobs.len())));
}

/// The whole case, as the neighbourhoods of a round see it.
struct Fabric<'a> {
    instance: &'a Instance,
    choice: &'a Choice,
    rate: &'a [f64],
    /// Average bytes per second on each link.
    load: Vec<f64>,
}

impl<'a> Fabric<'a> {
    fn new(instance: &'a Instance, choice: &'a Choice, rate: &'a [f64]) -> Self {
        let mut load = vec![0.0; instance.capacity.len()];
        for (flow, rate) in rate.iter().enumerate() {
            instance.links(choice, flow).iter().for_each(|&link| load[link] += rate);
        }
        Self { instance, choice, rate, load }
    }

    /// Searches one neighbourhood: evaluations spent, and paths and queues of its flows if they are better.
    fn improve(
        &self,
        part: &Part,
        scope: &Scope,
        effort: &Effort<'_>,
        (id, worth): (usize, f64),
    ) -> (u64, Option<Choice>) {
        let flows = part.flows(self.instance);
        let small = self.cut_out(part, &flows);
        let own = |flow: &usize| self.instance.flows[*flow].job;
        let core = &part.jobs[..part.core];
        let scope = Scope {
            paths: scope.paths.as_ref().map(|all| flows.iter().map(|&flow| all[flow]).collect()),
            frozen: flows.iter().map(|flow| !core.contains(&own(flow))).collect(),
            ..scope.clone()
        };
        let choice = Choice {
            path: flows.iter().map(|&flow| self.choice.path[flow]).collect(),
            queue: flows.iter().map(|&flow| self.choice.queue[flow]).collect(),
        };
        let yardstick = Yardstick::new(&small, effort);
        let mut evaluator = Evaluator::new(&small, &yardstick);
        let score = lane::scored(&small, &mut evaluator, &choice);
        let start = Start { name: String::new(), choice, score };
        let mut lane = Lane::new((&small, &yardstick, &scope), effort, id, &start);
        lane.search(MOVES, PROGRESS, effort.stop);
        let gain = score - lane.best.score;
        (MOVES + 1, (gain > worth * score.abs()).then_some(lane.best.choice))
    }

    /// The neighbourhood as a small case; its links have what the others leave.
    fn cut_out(&self, part: &Part, flows: &[usize]) -> Instance {
        let mut left = self.load.clone();
        for &flow in flows {
            let links = self.instance.links(self.choice, flow);
            links.iter().for_each(|&link| left[link] -= self.rate[flow]);
        }
        let mut small = Instance {
            capacity: Vec::new(),
            link_ids: Vec::new(),
            flows: Vec::with_capacity(flows.len()),
            rings: Vec::new(),
            jobs: Vec::new(),
            cuts: Vec::new(),
            levels: self.instance.levels,
        };
        let mut place = vec![usize::MAX; self.instance.capacity.len()];
        for &job in &part.jobs {
            let mut shape = JobShape { rings: Vec::new(), ..self.instance.jobs[job].clone() };
            for &ring in &self.instance.jobs[job].rings {
                let whole = &self.instance.rings[ring];
                let first = small.flows.len();
                for &flow in &whole.flows {
                    let candidates = &self.instance.flows[flow].candidates;
                    let mut link_of = |&link: &usize| {
                        if place[link] == usize::MAX {
                            place[link] = small.capacity.len();
                            let capacity = self.instance.capacity[link];
                            small.capacity.push((capacity - left[link]).max(LEAST_LEFT * capacity));
                            small.link_ids.push(self.instance.link_ids[link]);
                        }
                        place[link]
                    };
                    let candidates =
                        candidates.iter().map(|path| path.iter().map(&mut link_of).collect());
                    small.flows.push(FlowShape {
                        job: small.jobs.len(),
                        ring: small.rings.len(),
                        bytes: self.instance.flows[flow].bytes,
                        candidates: candidates.collect(),
                    });
                }
                shape.rings.push(small.rings.len());
                small.rings.push(Ring {
                    job: small.jobs.len(),
                    bytes: whole.bytes,
                    flows: (first..small.flows.len()).collect(),
                });
            }
            small.jobs.push(shape);
        }
        shorten(&mut small);
        small
    }
}

/// Every job runs for as long as the one with the longest period takes for [`ITERATIONS`], from now: a job that arrives later
/// counts as there. Jobs without end keep theirs: of them a window is simulated anyway.
pub(super) fn shorten(small: &mut Instance) {
    small.jobs.iter_mut().for_each(|job| job.start = 0.0);
    if crate::solver::objective::window(small).is_some() {
        return;
    }
    let period = |job: usize| {
        let comm = crate::solver::policy::greedy::least_alone(small, job);
        small.period(job, comm).max(f64::MIN_POSITIVE)
    };
    let periods: Vec<f64> = (0..small.jobs.len()).map(period).collect();
    let horizon = ITERATIONS * periods.iter().copied().fold(0.0, f64::max);
    for (job, period) in small.jobs.iter_mut().zip(periods) {
        let fits = (horizon / period).ceil().clamp(2.0, ITERATIONS_MAX);
        job.iterations = job.iterations.min(fits as u32);
    }
}
