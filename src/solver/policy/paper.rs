//! `paper`: the seed method as its abstract states it.
//!
//! Formula: static throughput of a flow in queue q on a path = min over its links e of
//! `max(C_e - rates of the flows above q on e, floor * C_e) / (flows in queue q on e)`; completion of a job = its largest
//! bytes / throughput. Steps: jobs in turn; for each, a binary search on its completion time T; a T is feasible if
//! backtracking over its flows finds a (path, queue) for every one such that all are done by T. Source: the abstract of
//! the method this project grew from (joint path and priority selection for Ring-AllReduce flows).
//!
//! What the abstract leaves open, and our inference: the order of jobs (longest contention-free communication first,
//! so that short jobs, placed last, may pass them); what a placed job may lose (anything: only the job in turn is
//! looked at); the choice among feasible assignments (lowest queue first, then the least loaded path, so that queues
//! are climbed only when T needs it); the floor ([`FLOOR`]: without it a starved flow's time is infinite); the bound of
//! the backtracking ([`NODES_MAX`]); the last step of the binary search (1 % of T). Its run-time part, raising
//! stragglers, is the controller's, not the plan's.

use super::greedy;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance, QUEUES};
use crate::solver::{Effort, Policy, Problem};

#[cfg(test)]
mod tests;

/// Share of a link that a starved flow is assumed to get.
pub const FLOOR: f64 = 0.01;

/// (path, queue) pairs that one feasibility check tries at most; then T counts as infeasible.
pub const NODES_MAX: usize = 512;

/// Steps of the binary search at most: from a factor of 1 / [`FLOOR`] x queues down to 1 %.
const SEARCH_STEPS: usize = 18;

/// See the module.
pub struct Paper;

impl Policy for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = choose(&instance);
        let state = State::of(&instance, &choice, |_| true);
        Instance::plan(problem, &choice, self.name(), |flow| {
            let seconds = instance.flows[flow].bytes / state.throughput[flow];
            format!("static estimate {:.1} ms", seconds * 1e3)
        })
    }
}

/// The policy on an instance.
#[must_use]
pub fn choose(instance: &Instance) -> Choice {
    let mut choice = Choice::first(instance.flows.len());
    let order = greedy::jobs_by(instance, |job| greedy::least_alone(instance, job));
    let mut placed = vec![false; instance.jobs.len()];
    for job in order {
        let mut state = State::of(instance, &choice, |other| placed[other]);
        state.plan_job(&mut choice, job);
        placed[job] = true;
    }
    choice
}

/// Plans one job anew, all others staying where they are.
pub fn replan_job(instance: &Instance, choice: &mut Choice, job: usize) {
    State::of(instance, choice, |other| other != job).plan_job(choice, job);
}

/// Static throughputs of the placed flows.
struct State<'a> {
    instance: &'a Instance,
    /// Flows per link and queue.
    count: Vec<[u16; QUEUES]>,
    /// Sum of throughputs per link and queue, bytes per second.
    used: Vec<[f64; QUEUES]>,
    throughput: Vec<f64>,
}

impl<'a> State<'a> {
    fn of(instance: &'a Instance, choice: &Choice, placed: impl Fn(usize) -> bool) -> Self {
        let links = instance.capacity.len();
        let mut state = Self {
            instance,
            count: vec![[0; QUEUES]; links],
            used: vec![[0.0; QUEUES]; links],
            throughput: vec![0.0; instance.flows.len()],
        };
        let mut flows: Vec<usize> =
            (0..instance.flows.len()).filter(|&f| placed(instance.flows[f].job)).collect();
        flows.sort_by_key(|&flow| (std::cmp::Reverse(choice.queue[flow]), flow));
        for &flow in &flows {
            for &link in instance.links(choice, flow) {
                state.count[link][usize::from(choice.queue[flow])] += 1;
            }
        }
        for &flow in &flows {
            let (queue, path) = (usize::from(choice.queue[flow]), instance.links(choice, flow));
            let rate = state.rate(path, queue, 0);
            state.throughput[flow] = rate;
            for &link in path {
                state.used[link][queue] += rate;
            }
        }
        state
    }

    /// Throughput on a path in a queue, with `more` flows beside those counted.
    fn rate(&self, path: &[usize], queue: usize, more: u16) -> f64 {
        let share = |&link: &usize| {
            let above: f64 = self.used[link][queue + 1..].iter().sum();
            let capacity = self.instance.capacity[link];
            (capacity - above).max(FLOOR * capacity)
                / f64::from((self.count[link][queue] + more).max(1))
        };
        path.iter().map(share).fold(f64::INFINITY, f64::min)
    }

    fn plan_job(&mut self, choice: &mut Choice, job: usize) {
        let flows = greedy::flows_of(self.instance, &[job]);
        if flows.is_empty() {
            return;
        }
        let mut low = greedy::least_alone(self.instance, job);
        let mut high = low * (flows.len() + self.instance.flows.len()) as f64 / FLOOR;
        for step in 0..SEARCH_STEPS {
            // Geometric halves: T spans orders of magnitude. The first try is the contention-free time itself.
            let middle = if step == 0 { low * (1.0 + 1e-9) } else { (low * high).sqrt() };
            let mut trial = choice.clone();
            let mut nodes = 0;
            if self.fits(&mut trial, &flows, 0, middle, &mut nodes) {
                *choice = trial;
                high = middle;
            } else {
                low = middle;
            }
            if high <= low * 1.01 {
                break;
            }
        }
    }

    /// Backtracking: whether `flows[at..]` can be placed so that all flows of the list are done by `time`. Leaves the
    /// state as it was; the assignment is in `choice`.
    fn fits(
        &mut self,
        choice: &mut Choice,
        flows: &[usize],
        at: usize,
        time: f64,
        nodes: &mut usize,
    ) -> bool {
        let Some(&flow) = flows.get(at) else {
            return flows.iter().all(|&flow| {
                let path = self.instance.links(choice, flow);
                let rate = self.rate(path, usize::from(choice.queue[flow]), 0);
                self.instance.flows[flow].bytes / rate <= time
            });
        };
        let shape = &self.instance.flows[flow];
        for queue in 0..usize::from(self.instance.levels) {
            let mut options: Vec<(f64, usize)> = (0..shape.candidates.len())
                .map(|path| (self.rate(&shape.candidates[path], queue, 1), path))
                .filter(|&(rate, _)| shape.bytes / rate <= time)
                .collect();
            options.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (_, path) in options {
                *nodes += 1;
                if *nodes > NODES_MAX {
                    return false;
                }
                choice.path[flow] = path as u16;
                choice.queue[flow] = queue as u8;
                self.count_flow(&shape.candidates[path], queue, true);
                let fits = self.fits(choice, flows, at + 1, time, nodes);
                self.count_flow(&shape.candidates[path], queue, false);
                if fits {
                    return true;
                }
            }
        }
        false
    }

    fn count_flow(&mut self, path: &[usize], queue: usize, add: bool) {
        for &link in path {
            let count = &mut self.count[link][queue];
            *count = if add { *count + 1 } else { *count - 1 };
        }
    }
}
