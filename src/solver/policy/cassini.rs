//! `cassini`: no queues, but jobs that start their iterations at times at which they miss each other on shared links.
//!
//! Formula: job j is a circle of perimeter `T_j` (its contention-free iteration) on which it asks link e for
//! `d_{j,e} = M_{j,e} / comm_j` bytes per second during its communication and for nothing else. On one link the circles are
//! laid on one of the perimeter of their least common multiple and rotated by `t_j`; the score of the rotations is
//! `1 - mean over the circle of max(0, sum of demands - C_e) / C_e`, 1 when nobody meets.
//!
//! Steps: (1) paths are least loaded, all flows have queue 0. (2) For every link with several jobs the rotations with the
//! best score, in steps of 5 degrees. (3) Affinity graph: jobs and links, an edge where a job uses a link; breadth first from
//! a reference job, a job that is reached over link l from job j gets `t_k = (t_j - t_j^l + t_k^l) mod T_k`.
//!
//! Source: CASSINI (Rajasekaran et al., NSDI 2024, arXiv 2308.00852): circles, unified circle, score, affinity graph. Our
//! inference: rotations of more than two jobs on a link are found one job at a time, in [`PASSES`] passes; the unified circle
//! of periods without a short common multiple ends after [`LAPS_MAX`] of the longest; links are taken worst first; CASSINI
//! drops candidate *placements* whose graph has a loop, here hosts are given, so an edge that would close a loop is left
//! out; a shift is a phase of every iteration ([`Shift`]), which who paces the iterations has to keep. The fluid simulation
//! takes shifts ([`crate::solver::fluid::Draws::aligned`]), the packet simulation and the controller do not pace jobs: there
//! this policy is one queue on least loaded paths.

use super::least_loaded;
use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem, Shift};
use std::collections::{BTreeSet, VecDeque};

#[cfg(test)]
mod tests;

/// Rotations tried per job: 5 degrees each.
pub const STEPS: usize = 72;
/// Samples of a unified circle per lap of its longest circle.
const SAMPLES: usize = 144;
/// Laps of the longest circle after which a unified circle ends at the latest.
pub const LAPS_MAX: usize = 12;
/// Passes over the jobs of a link: later ones hardly ever change a rotation.
const PASSES: usize = 3;
/// Two periods are multiples of each other within this share.
const SAME_PERIOD: f64 = 0.01;

/// See the module.
pub struct Cassini;

impl Policy for Cassini {
    fn name(&self) -> &'static str {
        "cassini"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let instance = Instance::new(problem);
        let choice = least_loaded::choose(&instance);
        let shifts = shifts(&instance, &choice);
        Instance::plan(problem, &choice, self.name(), |flow| {
            let shift = &shifts[instance.flows[flow].job];
            format!("phase {:.1} of {:.1} ms", shift.at * 1e3, shift.period * 1e3)
        })
    }

    fn shifts(&self, problem: &Problem<'_>, plan: &Plan) -> Option<Vec<Shift>> {
        let choice = Instance::choice(problem, plan)?;
        Some(shifts(&Instance::new(problem), &choice))
    }
}

/// A job on one link.
#[derive(Clone, Copy, Debug)]
pub struct Circle {
    /// Seconds of one lap.
    pub period: f64,
    /// When the communication begins and how long it lasts, seconds from the start of a lap.
    pub comm: (f64, f64),
    /// Share of the link that it asks for meanwhile.
    pub demand: f64,
}

impl Circle {
    /// Demand at an instant when laps start at `shift`.
    fn at(&self, time: f64, shift: f64) -> f64 {
        let (begin, lasts) = self.comm;
        let on = (time - shift - begin).rem_euclid(self.period) < lasts;
        if on { self.demand } else { 0.0 }
    }
}

/// Phase of every job, by job id.
#[must_use]
pub fn shifts(instance: &Instance, choice: &Choice) -> Vec<Shift> {
    let circles = |job: usize| -> Vec<(usize, Circle)> {
        let comm = instance.alone(choice, job);
        let shape = &instance.jobs[job];
        let period = instance.period(job, comm).max(f64::MIN_POSITIVE);
        let begin = (1.0 - shape.overlap) * shape.compute;
        let circle = |(link, seconds): (usize, f64)| {
            (link, Circle { period, comm: (begin, comm), demand: seconds / comm })
        };
        instance.job_load(choice, job).into_iter().map(circle).collect()
    };
    let mut users: Vec<Vec<(usize, Circle)>> = vec![Vec::new(); instance.capacity.len()];
    for job in 0..instance.jobs.len() {
        circles(job).into_iter().for_each(|(link, circle)| users[link].push((job, circle)));
    }
    users.retain(|users| users.len() > 1);
    // Links that the same jobs share with the same demands have the same answer.
    let mut links: Vec<(f64, Vec<(usize, f64)>)> = Vec::new();
    for users in &users {
        let circles: Vec<Circle> = users.iter().map(|(_, circle)| *circle).collect();
        let before = score(&circles, &vec![0.0; circles.len()]);
        let jobs = users.iter().map(|&(job, _)| job);
        links.push((before, jobs.zip(rotations(&circles)).collect()));
    }
    links.sort_by(|a, b| a.0.total_cmp(&b.0));
    let periods: Vec<f64> = (0..instance.jobs.len())
        .map(|job| instance.period(job, instance.alone(choice, job)).max(f64::MIN_POSITIVE))
        .collect();
    walk(&links, &periods)
}

/// Breadth first over the affinity graph from each job that nothing has reached.
fn walk(links: &[(f64, Vec<(usize, f64)>)], periods: &[f64]) -> Vec<Shift> {
    let mut at: Vec<Option<f64>> = vec![None; periods.len()];
    let mut crossed = BTreeSet::new();
    for reference in 0..periods.len() {
        if at[reference].is_some() {
            continue;
        }
        at[reference] = Some(0.0);
        let mut queue = VecDeque::from([reference]);
        while let Some(job) = queue.pop_front() {
            for (id, (_, rotations)) in links.iter().enumerate() {
                let Some(&(_, own)) = rotations.iter().find(|(user, _)| *user == job) else {
                    continue;
                };
                if !crossed.insert(id) {
                    continue;
                }
                let base = at[job].unwrap_or(0.0);
                for &(other, rotation) in rotations {
                    if at[other].is_none() {
                        at[other] = Some((base - own + rotation).rem_euclid(periods[other]));
                        queue.push_back(other);
                    }
                }
            }
        }
    }
    at.iter().zip(periods).map(|(at, &period)| Shift { at: at.unwrap_or(0.0), period }).collect()
}

/// Length of the unified circle: the least multiple of the longest period that is one of all others, or [`LAPS_MAX`] laps.
fn perimeter(circles: &[Circle]) -> (f64, usize) {
    let longest = circles.iter().map(|circle| circle.period).fold(0.0, f64::max);
    let fits = |laps: &usize| {
        circles.iter().all(|circle| {
            let turns = *laps as f64 * longest / circle.period;
            (turns - turns.round()).abs() <= SAME_PERIOD * *laps as f64
        })
    };
    let laps = (1..LAPS_MAX).find(fits).unwrap_or(LAPS_MAX);
    (laps as f64 * longest, laps)
}

/// Score of rotations in seconds: 1 when no more is ever asked for than the link has.
#[must_use]
pub fn score(circles: &[Circle], shifts: &[f64]) -> f64 {
    let (length, laps) = perimeter(circles);
    let samples = SAMPLES * laps;
    let excess = |sample: usize| {
        let time = (sample as f64 + 0.5) / samples as f64 * length;
        let demand: f64 = circles.iter().zip(shifts).map(|(c, &shift)| c.at(time, shift)).sum();
        (demand - 1.0).max(0.0)
    };
    1.0 - (0..samples).map(excess).sum::<f64>() / samples as f64
}

/// Rotations of the jobs of one link in seconds; the first stays at 0. Of equal scores the smallest rotation.
#[must_use]
pub fn rotations(circles: &[Circle]) -> Vec<f64> {
    let mut shifts = vec![0.0; circles.len()];
    for _ in 0..PASSES {
        for job in 1..circles.len() {
            let mut best = (f64::NEG_INFINITY, 0.0);
            for step in 0..STEPS {
                shifts[job] = step as f64 / STEPS as f64 * circles[job].period;
                let score = score(circles, &shifts);
                if score > best.0 + 1e-12 {
                    best = (score, shifts[job]);
                }
            }
            shifts[job] = best.1;
        }
    }
    shifts
}
