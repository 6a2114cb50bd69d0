//! Where the search begins: cheap complete choices, ranked by the mean-field estimate, the best simulated.
//!
//! In: an instance. Out: choices with simulated scores, best first. Must not know: moves, lanes.

use super::super::{crux, greedy, least_loaded, paper, sebf, sincronia};
use super::scope::Scope;
use super::{Found, by_duty, estimate, lane};
use crate::solver::Effort;
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, Yardstick};
use rand::seq::SliceRandom as _;
use rayon::prelude::*;

/// Random orders of jobs among the starts.
const RANDOM_ORDERS: u64 = 12;

/// Starts simulated beside the named policies.
const SIMULATED: usize = 12;

/// A choice with its score.
#[derive(Clone, Debug)]
pub(super) struct Start {
    pub name: String,
    pub choice: Choice,
    pub score: f64,
}

impl Start {
    pub fn found(self, evaluations: u64) -> Found {
        Found { choice: self.choice, score: self.score, start: self.name, evaluations }
    }
}

/// Starts simulated between two questions to `stop`.
const CHUNK: usize = 4;

/// The best starts with their simulated scores, best first. Never empty. At least one start is simulated whatever the
/// budget and `stop` say; they are taken in the order of the estimate.
pub(super) fn simulated(
    instance: &Instance,
    effort: &Effort<'_>,
    yardstick: &Yardstick,
    present: Option<&Start>,
    scope: &Scope,
) -> Vec<Start> {
    let mut starts = ranked(instance, effort, scope);
    // What is in force is a start whatever the estimate thinks of it.
    starts.splice(0..0, present.cloned());
    let budget = (effort.max_evaluations as usize).clamp(1, starts.len());
    let mut done = 0;
    while done < budget && (done == 0 || !(effort.stop)()) {
        let until = (done + CHUNK).min(budget);
        starts[done..until].par_iter_mut().for_each(|start| {
            let score = Evaluator::new(instance, yardstick).score(&start.choice, f64::INFINITY);
            start.score = lane::doubted(instance, &start.choice, score);
        });
        done = until;
    }
    starts.truncate(done);
    starts.sort_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.name.cmp(&b.name)));
    starts
}

/// What is in force, with each new flow on the least loaded of its paths in the queue of the job's last known
/// flow, or in the lowest. `None` if nothing is in force.
pub(super) fn in_force(instance: &Instance, routes: &[Option<(u16, u8)>]) -> Option<Start> {
    let known = |flow: usize| routes.get(flow).copied().flatten();
    let mut choice = Choice::first(instance.flows.len());
    let rate = least_loaded::rates(instance);
    let mut loads = greedy::Loads::new(instance);
    let mut queue_of = vec![0; instance.jobs.len()];
    let mut new = Vec::new();
    for flow in 0..instance.flows.len() {
        let Some((path, queue)) = known(flow) else {
            new.push(flow);
            continue;
        };
        (choice.path[flow], choice.queue[flow]) = (path, queue);
        queue_of[instance.flows[flow].job] = queue;
        loads.add(instance, flow, path.into(), rate[flow]);
    }
    for &flow in &new {
        let path = loads.least(instance, flow, rate[flow]);
        loads.add(instance, flow, path, rate[flow]);
        choice.path[flow] = path as u16;
        choice.queue[flow] = queue_of[instance.flows[flow].job];
    }
    let name = "the plan in force".to_owned();
    (new.len() < instance.flows.len()).then_some(Start { name, choice, score: f64::INFINITY })
}

/// The named policies and the best of the ordered placements, by the mean-field estimate, which is their score for now. Only
/// those that cost next to nothing if `stop` says so already or there is no budget.
pub(super) fn ranked(instance: &Instance, effort: &Effort<'_>, scope: &Scope) -> Vec<Start> {
    let first = quick(instance, effort, scope);
    if effort.max_evaluations == 0 || (effort.stop)() {
        return first;
    }
    let mut starts = ordered(instance, effort.seed);
    by_estimate(instance, effort, scope, &mut starts);
    starts.truncate(SIMULATED);
    starts.extend(named(instance, effort));
    by_estimate(instance, effort, scope, &mut starts);
    starts
}

/// Three starts within milliseconds, by the estimate.
pub(super) fn quick(instance: &Instance, effort: &Effort<'_>, scope: &Scope) -> Vec<Start> {
    let spread = least_loaded::choose(instance);
    let queues = greedy::balanced_queues(&by_duty(instance), instance.levels);
    let queue = instance.flows.iter().map(|flow| queues[flow.job]).collect();
    let by_duty = Choice { path: spread.path.clone(), queue };
    let start = |name: &str, choice| Start { name: name.to_owned(), choice, score: f64::INFINITY };
    let mut starts = vec![
        start("sebf", sebf::choose(instance)),
        start("duty, groups", by_duty),
        start("least-loaded", spread),
    ];
    by_estimate(instance, effort, scope, &mut starts);
    starts
}

/// Brings starts into the scope and sorts them by the estimate.
fn by_estimate(instance: &Instance, effort: &Effort<'_>, scope: &Scope, starts: &mut [Start]) {
    starts.par_iter_mut().for_each(|start| {
        scope.confine(instance, &mut start.choice);
        start.score = estimate::mean_field(instance, &start.choice).value(effort.objective);
    });
    starts.sort_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.name.cmp(&b.name)));
}

fn named(instance: &Instance, effort: &Effort<'_>) -> Vec<Start> {
    let start = |name: &str, choice| Start { name: name.to_owned(), choice, score: f64::INFINITY };
    let spread = least_loaded::choose(instance);
    let mut starts = vec![start("sebf", sebf::choose(instance))];
    // Orders that compare every job with every other one keep the first plan of many jobs waiting.
    if instance.jobs.len() <= ORDERED_JOBS_MAX {
        let by_bottleneck = sincronia::choose(instance, spread.path.clone()).0;
        starts.push(start("sincronia", by_bottleneck));
        starts.push(start("crux", crux::choose(instance, effort.seed)));
    }
    starts.push(start("least-loaded", spread));
    // Backtracking grows faster than the rest; on large cases the first plan would wait for it.
    if instance.flows.len() <= PAPER_FLOWS_MAX {
        starts.push(start("paper", paper::choose(instance)));
    }
    starts
}

/// Jobs up to which Sincronia and Crux are among the starts, and orders are drawn at random.
const ORDERED_JOBS_MAX: usize = 256;

/// Flows up to which the paper's method is among the starts.
const PAPER_FLOWS_MAX: usize = 256;

/// Greedy placements in several orders of jobs, each with one queue and with groups of jobs in that order.
fn ordered(instance: &Instance, seed: u64) -> Vec<Start> {
    let comm = |job: usize| greedy::least_alone(instance, job);
    let duty = by_duty(instance);
    let mut orders = vec![
        ("duty".to_owned(), duty.clone()),
        ("size".to_owned(), greedy::jobs_by(instance, |job| -comm(job))),
        ("period".to_owned(), greedy::jobs_by(instance, |job| -instance.period(job, comm(job)))),
        ("gpus".to_owned(), greedy::jobs_by(instance, |job| instance.jobs[job].gpus)),
    ];
    for (name, order) in orders.clone() {
        orders.push((format!("reverse {name}"), order.into_iter().rev().collect()));
    }
    let drawn = if duty.len() <= ORDERED_JOBS_MAX { RANDOM_ORDERS } else { 0 };
    for index in 0..drawn {
        let mut order = duty.clone();
        order.shuffle(&mut crate::time::stream(seed, "joint-order", index));
        orders.push((format!("random order {index}"), order));
    }
    let rate = least_loaded::rates(instance);
    let mut starts = Vec::new();
    for (name, order) in orders {
        let flows = greedy::flows_of(instance, &order);
        let path = greedy::place(instance, &flows, |flow| rate[flow]);
        let queues = greedy::balanced_queues(&order, instance.levels);
        let by_job = instance.flows.iter().map(|flow| queues[flow.job]).collect();
        let one = vec![0; instance.flows.len()];
        for (kind, queue) in [("groups", by_job), ("one queue", one)] {
            starts.push(Start {
                name: format!("{name}, {kind}"),
                choice: Choice { path: path.clone(), queue },
                score: f64::INFINITY,
            });
        }
    }
    starts
}
