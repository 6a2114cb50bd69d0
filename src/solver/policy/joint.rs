//! `joint`: path and queue of every flow together, judged by simulating the jobs that they serve.
//!
//! Formula: minimise the effort's objective (default: mean communication time / GPU utilisation) of the fluid simulation,
//! averaged over several planning draws of start phases and compute times.
//!
//! Steps:
//! 1. Starts: least loaded paths, SEBF, Crux, the paper's method, and greedy placements in several orders of jobs with
//!    one queue, one queue per group of jobs in that order, and its reverse. Ranked by a mean-field estimate
//!    ([`estimate`]); the best few and the named policies (SEBF, Sincronia, Crux, ...) are simulated.
//! 2. Lanes: [`LANES`] searches run side by side from the best starts. Each proposes random moves (set a queue, swap
//!    jobs, insert a job and shift others, re-path a flow, a job, a pair on a hot link, exchange paths, flatten a link
//!    to one queue, re-plan a job by the paper's binary search) and accepts by simulation only, a little worse with
//!    falling probability (simulated annealing, Kirkpatrick et al. 1983).
//! 3. Rounds: after each, the lanes that lag restart from the best choice found, kicked by some moves.
//!
//! Above 256 rings one simulation of everything takes too long: the best start by the estimate is improved neighbourhood by
//! neighbourhood ([`local`]). A plan in force is one more start ([`search_from`]).
//!
//! Source: ours. The number of lanes is fixed and each has its own random stream, so the result is the same for any
//! number of threads. Budget: the effort's evaluations; `stop` is asked within the lanes.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, Yardstick};
use crate::solver::{Effort, Policy, Problem};
use crate::topology::Path;
use rayon::prelude::*;
use scope::Scope;

pub mod estimate;
mod lane;
mod local;
mod moves;
pub mod scope;
mod starts;
#[cfg(test)]
mod tests;

/// Searches side by side. More lanes explore wider and go less deep for the same budget; 8 keep eight cores busy and
/// did best on the default scenario among 4, 8 and 16.
pub const LANES: usize = 8;

/// Evaluations of one lane between two exchanges.
const ROUND: u64 = 50;

/// Rounds from warm to cold; then the search warms up again. A deadline may end the search at any time, so one long
/// cooling over the whole budget would often be cut while still warm.
const CYCLE: u64 = 12;

/// See the module.
pub struct Joint;

impl Policy for Joint {
    fn name(&self) -> &'static str {
        "joint"
    }

    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan {
        plan_within(problem, effort, self.name(), &Scope::everything())
    }
}

/// The plan of a search that may choose what `scope` says, under a policy's name.
pub(super) fn plan_within(
    problem: &Problem<'_>,
    effort: &Effort<'_>,
    name: &str,
    scope: &Scope,
) -> Plan {
    let instance = Instance::new(problem);
    let found = search_within(&instance, effort, &in_force(problem), scope);
    Instance::plan(problem, &found.choice, name, |flow| {
        let queue = found.choice.queue[flow];
        format!("queue {queue} and path by simulation, started from {}", found.start)
    })
}

/// The best choice found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The choice.
    pub choice: Choice,
    /// Its score under the planning draws, lower is better.
    pub score: f64,
    /// Name of the start it grew from.
    pub start: String,
    /// Choices simulated.
    pub evaluations: u64,
}

/// Candidate and queue in force of each flow; `None` where there is none, or none that is still a candidate.
fn in_force(problem: &Problem<'_>) -> Vec<Option<(u16, u8)>> {
    let route = |(flow, paths): (usize, &Vec<Path>)| {
        let (path, queue) = problem.in_force.routes.get(flow)?.as_ref()?;
        let position = paths.iter().position(|candidate| candidate == path)?;
        let usable = *queue < problem.levels;
        usable.then_some((u16::try_from(position).ok()?, *queue))
    };
    problem.paths.iter().enumerate().map(route).collect()
}

/// A plan in force stays unless another is better by this share: every change disturbs the flows that it moves, and
/// below this the planning draws decide rather than the plan.
pub const WORTH_A_CHANGE: f64 = 0.02;

/// Searches until the budget is used or `stop` says so. Always returns at least the best start.
#[must_use]
pub fn search(instance: &Instance, effort: &Effort<'_>) -> Found {
    search_within(instance, effort, &[], &Scope::everything())
}

/// As [`search`], from what is in force: it is one more start, with new flows on the least loaded of their paths. It stays
/// if nothing found is better by [`WORTH_A_CHANGE`], and what is found changes no flow that need not change. `routes` holds
/// candidate and queue by flow; a flow without is new.
#[must_use]
pub fn search_from(
    instance: &Instance,
    effort: &Effort<'_>,
    routes: &[Option<(u16, u8)>],
) -> Found {
    search_within(instance, effort, routes, &Scope::everything())
}

/// As [`search_from`], choosing only what `scope` leaves open.
#[must_use]
pub fn search_within(
    instance: &Instance,
    effort: &Effort<'_>,
    routes: &[Option<(u16, u8)>],
    scope: &Scope,
) -> Found {
    let mut present = starts::in_force(instance, routes);
    if let Some(start) = &mut present {
        scope.confine(instance, &mut start.choice);
    }
    let rings = instance.rings.len();
    if rings > SIMULATED_RINGS_MAX {
        return search_parts(instance, effort, present, scope);
    }
    if rings > WHOLE_RUN_RINGS_MAX {
        let mut short = instance.clone();
        local::shorten(&mut short);
        return search_simulated(&short, effort, present, scope);
    }
    search_simulated(instance, effort, present, scope)
}

fn search_simulated(
    instance: &Instance,
    effort: &Effort<'_>,
    present: Option<starts::Start>,
    scope: &Scope,
) -> Found {
    if let (Some(present), 0) = (&present, effort.max_evaluations) {
        // Asked for at once: what is in force, with new flows where there is room.
        let score = estimate::mean_field(instance, &present.choice).value(effort.objective);
        return Found { score, ..present.clone().found(0) };
    }
    let found = explore(instance, effort, present.as_ref(), scope);
    let Some(present) = present else {
        return found;
    };
    let yardstick = Yardstick::new(instance, effort);
    let mut evaluator = Evaluator::new(instance, &yardstick);
    let score = lane::scored(instance, &mut evaluator, &present.choice);
    if score - found.score <= WORTH_A_CHANGE * score.abs() {
        return Found { score, ..present.found(found.evaluations + 1) };
    }
    trim(instance, &mut evaluator, &present.choice, found)
}

/// Changed flows above which changes are taken back job by job instead.
const TRIMMED_FLOWS_MAX: usize = 256;

/// Takes back every change that the score does not miss, flow by flow or, if there are very many, job by job.
fn trim(
    instance: &Instance,
    evaluator: &mut Evaluator<'_>,
    present: &Choice,
    mut found: Found,
) -> Found {
    let same = |found: &Choice, flow: usize| {
        found.path[flow] == present.path[flow] && found.queue[flow] == present.queue[flow]
    };
    let changed: Vec<usize> =
        (0..instance.flows.len()).filter(|&flow| !same(&found.choice, flow)).collect();
    let groups: Vec<Vec<usize>> = if changed.len() <= TRIMMED_FLOWS_MAX {
        changed.into_iter().map(|flow| vec![flow]).collect()
    } else {
        (0..instance.jobs.len()).map(|job| greedy::flows_of(instance, &[job])).collect()
    };
    for flows in groups {
        if flows.iter().all(|&flow| same(&found.choice, flow)) {
            continue;
        }
        let mut back = found.choice.clone();
        for &flow in &flows {
            (back.path[flow], back.queue[flow]) = (present.path[flow], present.queue[flow]);
        }
        found.evaluations += 1;
        let score = lane::scored(instance, evaluator, &back);
        if score <= found.score {
            found.score = score;
            found.choice = back;
        }
    }
    found
}

fn explore(
    instance: &Instance,
    effort: &Effort<'_>,
    present: Option<&starts::Start>,
    scope: &Scope,
) -> Found {
    let yardstick = Yardstick::new(instance, effort);
    let mut pool = starts::simulated(instance, effort, &yardstick, present, scope);
    let mut evaluations = pool.len() as u64;
    let mut lanes: Vec<lane::Lane<'_>> = (0..LANES)
        .map(|id| {
            lane::Lane::new((instance, &yardstick, scope), effort, id, &pool[id % pool.len()])
        })
        .collect();
    pool.truncate(1);
    let Some(mut best) = pool.pop() else {
        let choice = Choice::first(instance.flows.len());
        return Found { choice, score: f64::INFINITY, start: String::new(), evaluations };
    };
    if instance.flows.is_empty() {
        return best.found(evaluations);
    }
    let rounds = effort.max_evaluations.saturating_sub(evaluations) / (ROUND * LANES as u64);
    for round in 0..rounds {
        if (effort.stop)() {
            break;
        }
        let progress = (round % CYCLE) as f64 / rounds.min(CYCLE) as f64;
        lanes.par_iter_mut().for_each(|lane| lane.search(ROUND, progress, effort.stop));
        evaluations += ROUND * LANES as u64;
        for lane in &lanes {
            if lane.best.score < best.score {
                best = lane.best.clone();
            }
        }
        exchange(&mut lanes, &best);
    }
    best.found(evaluations)
}

/// Rings above which only a few iterations of each job are simulated: a whole run would leave a search few moves.
const WHOLE_RUN_RINGS_MAX: usize = 32;

/// Rings above which one simulation of everything takes longer than a planning budget. Such cases are searched
/// neighbourhood by neighbourhood ([`local`]).
const SIMULATED_RINGS_MAX: usize = 256;

/// Share by which a neighbourhood must gain where nothing is in force: above the noise of its draws.
const WORTH_IN_PARTS: f64 = 0.002;

/// From what is in force, else from the best start by the estimate. The score is the estimate.
fn search_parts(
    instance: &Instance,
    effort: &Effort<'_>,
    present: Option<starts::Start>,
    scope: &Scope,
) -> Found {
    let worth = if present.is_some() { WORTH_A_CHANGE } else { WORTH_IN_PARTS };
    let start = present.or_else(|| starts::quick(instance, effort, scope).into_iter().next());
    match start {
        Some(start) => local::search(instance, effort, scope, start, worth),
        None => Found {
            choice: Choice::first(instance.flows.len()),
            score: f64::INFINITY,
            start: String::new(),
            evaluations: 0,
        },
    }
}

/// The half of the lanes with the worse current choice goes on from the best one.
fn exchange(lanes: &mut [lane::Lane<'_>], best: &starts::Start) {
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by(|&a, &b| lanes[a].best.score.total_cmp(&lanes[b].best.score).then(a.cmp(&b)));
    for &id in order.iter().skip(lanes.len() / 2) {
        lanes[id].restart(best);
    }
}

/// Order of jobs by the share of time they would communicate alone, least first: what to serve first when nothing else
/// is known.
#[must_use]
pub fn by_duty(instance: &Instance) -> Vec<usize> {
    let duty = |job: usize| {
        let comm = greedy::least_alone(instance, job);
        comm / instance.period(job, comm).max(f64::MIN_POSITIVE)
    };
    greedy::jobs_by(instance, |job| -duty(job))
}

/// A fresh evaluator for tests and reports.
#[must_use]
pub fn evaluator<'a>(instance: &'a Instance, yardstick: &'a Yardstick) -> Evaluator<'a> {
    Evaluator::new(instance, yardstick)
}
