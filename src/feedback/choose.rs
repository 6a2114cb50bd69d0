//! Nothing, another path, or one queue up: by simulation on capacities as measured.
//!
//! In: the problem, the plan in force, the flow, links that may be slow and how slow they would be. Out: the candidate that
//! gains most, if it gains enough. Must not know what was tried before.
//!
//! What was seen fits each suspected link: each is one hypothesis, all are equally likely, and a candidate is worth its mean
//! over them. Under a hypothesis the link has the rate that was measured there. If the flow is in the lowest queue there is a
//! second kind of hypothesis: the link is as fast as ever and carries traffic that nobody planned, which has the lowest queue,
//! too. Then the link leaves the measured rate to those in the lowest queue and all of it to those above, so that a raise helps.
//! What is right is seen afterwards: a reaction that helps under a wrong hypothesis only is undone.

use super::{Action, Settings};
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, Yardstick};
use crate::solver::{Effort, Objective, Problem};
use crate::straggler::Suspect;

/// Paths tried at most: candidate paths are bounded, too, and beyond some the best ones differ little.
const MAX_PATHS: usize = 8;
/// Suspected links taken up at most; a path through a fat-tree has five whose queues are seen.
const MAX_SUSPECTS: usize = 5;
/// Iterations of the job with the longest period that are simulated; jobs may have many thousands.
const ITERATIONS: f64 = 8.0;

/// What a decision is made from.
pub struct Situation<'a> {
    /// Jobs, flows and candidate paths; link rates as the plan knows them.
    pub problem: &'a Problem<'a>,
    /// The plan in force.
    pub choice: &'a Choice,
    /// The flow, by place in the problem.
    pub flow: usize,
    /// Links that may be the cause.
    pub suspects: &'a [Suspect],
    /// The queue that the flow may be raised to.
    pub raise: Option<u8>,
    /// What is minimised.
    pub objective: Objective,
    /// Seed of the start phases.
    pub seed: u64,
}

/// The best candidate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Proposal {
    /// What to do.
    pub action: Action,
    /// Its path, by place among the flow's candidates.
    pub path: u16,
    /// Its queue.
    pub queue: u8,
    /// Share of the objective that it gains.
    pub gain: f64,
}

/// One candidate.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    action: Option<Action>,
    path: u16,
    queue: u8,
    score: f64,
}

/// The best candidate, if it gains at least [`Settings::gain`].
#[must_use]
pub fn choose(situation: &Situation<'_>, settings: &Settings) -> Option<Proposal> {
    let mut instance = Instance::new(situation.problem);
    shorten(&mut instance, situation.choice);
    let mut candidates = candidates(situation);
    let suspects = &situation.suspects[..situation.suspects.len().min(MAX_SUSPECTS)];
    for suspect in suspects {
        let Some(link) = instance.link_ids.iter().position(|id| *id == suspect.link) else {
            continue;
        };
        let mut measured = instance.clone();
        measured.capacity[link] *= suspect.factor;
        let raised = |candidate: &Candidate| candidate.action == Some(Action::Raise);
        let slow = |_: &Candidate| &measured;
        weigh(situation, settings, &mut candidates, &slow);
        if situation.choice.queue[situation.flow] == 0 {
            let busy = |candidate: &Candidate| match raised(candidate) {
                true => &instance,
                false => &measured,
            };
            weigh(situation, settings, &mut candidates, &busy);
        }
    }
    let none = candidates.first()?.score;
    let best = candidates.iter().min_by(|a, b| a.score.total_cmp(&b.score))?;
    // Scores of utilisation are negative.
    let gain = (none - best.score) / none.abs();
    let action = best.action.filter(|_| gain.is_finite() && gain >= settings.gain)?;
    Some(Proposal { action, path: best.path, queue: best.queue, gain })
}

/// Nothing first, so that it wins ties; then paths that avoid a suspect; then the raise.
fn candidates(situation: &Situation<'_>) -> Vec<Candidate> {
    let (path, queue) =
        (situation.choice.path[situation.flow], situation.choice.queue[situation.flow]);
    let paths = &situation.problem.paths[situation.flow];
    let avoids = |place: &usize| {
        situation.suspects.iter().any(|suspect| !paths[*place].links.contains(&suspect.link))
    };
    let others = (0..paths.len()).filter(|place| *place != usize::from(path)).filter(avoids);
    let reroute = |place: usize| Candidate {
        action: Some(Action::Reroute),
        path: place as u16,
        queue,
        score: 0.0,
    };
    let raise = |queue| Candidate { action: Some(Action::Raise), path, queue, score: 0.0 };
    std::iter::once(Candidate { action: None, path, queue, score: 0.0 })
        .chain(others.take(MAX_PATHS).map(reroute))
        .chain(situation.raise.map(raise))
        .collect()
}

/// Adds each candidate's score under one hypothesis.
fn weigh<'a>(
    situation: &Situation<'_>,
    settings: &Settings,
    candidates: &mut [Candidate],
    instance: &dyn Fn(&Candidate) -> &'a Instance,
) {
    let effort = Effort {
        seed: situation.seed,
        max_evaluations: u64::MAX,
        stop: &|| false,
        objective: situation.objective,
        phases: settings.phases,
    };
    let Some(first) = candidates.first() else { return };
    // One set of start phases for all: they are those of the hypothesis in which nothing is done.
    let yardstick = Yardstick::new(instance(first), &effort);
    for candidate in candidates {
        let mut choice = situation.choice.clone();
        choice.path[situation.flow] = candidate.path;
        choice.queue[situation.flow] = candidate.queue;
        let mut evaluator = Evaluator::new(instance(candidate), &yardstick);
        candidate.score += evaluator.score(&choice, f64::INFINITY);
    }
}

/// Every job runs for as long as the one with the longest period takes for a few iterations.
fn shorten(instance: &mut Instance, choice: &Choice) {
    let jobs = 0..instance.jobs.len();
    let periods: Vec<f64> =
        jobs.map(|job| instance.period(job, instance.alone(choice, job))).collect();
    let horizon = ITERATIONS * periods.iter().copied().fold(0.0, f64::max);
    for (job, period) in instance.jobs.iter_mut().zip(periods) {
        let fits = (horizon / period.max(f64::MIN_POSITIVE)).ceil().max(2.0);
        // Jobs in progress count from now: an arrival of long ago is none, and what is behind a job is no matter here.
        job.start = 0.0;
        job.ahead = 1.0;
        job.iterations = job.iterations.min(fits as u32);
    }
}
