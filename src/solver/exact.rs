//! The best choice of all, by enumeration with branch and bound: the oracle for small cases.
//!
//! In: an [`Instance`], a [`Yardstick`], how fine queues are chosen. Out: a choice that no other beats under the same
//! draws. Must not know: how policies search.
//!
//! Paths are assigned flow by flow. A partial assignment cannot lead below the objective with each job's communication
//! at what its own assigned flows already need on their busiest link, and every window at the contention-free one; a
//! branch whose bound is no better than the best choice known is cut. At each leaf all queue patterns are tried, up to
//! renaming of queues: only the order matters. With a queue per job two more things are left out, both without loss:
//! path assignments whose rings contend in the same way as those of one tried before, and queue patterns that order
//! every two jobs that contend as one tried before ([`contention`] argues why).

use super::Objective;
use super::fluid::Metrics;
use super::fluid::drain::drain;
use super::instance::{Choice, Instance};
use super::objective::{Evaluator, Yardstick, static_estimate, value};
use super::policy::greedy;
use contention::{Contention, Relations};
use rustc_hash::FxHashSet;

mod contention;
#[cfg(test)]
mod tests;

/// What gets a queue of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// One queue per job.
    Jobs,
    /// One queue per flow.
    Flows,
}

/// The optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// A best choice; the first in order of enumeration.
    pub choice: Choice,
    /// Its score.
    pub score: f64,
    /// Choices simulated.
    pub evaluations: u64,
    /// Partial path assignments that were cut.
    pub cut: u64,
}

/// The case is too large to enumerate.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "{choices:.0} choices are more than the {limit} that may be enumerated; use fewer jobs, levels or candidate paths"
)]
pub struct TooLarge {
    /// Paths x queue patterns.
    pub choices: f64,
    /// The limit given.
    pub limit: u64,
}

/// Finds the optimum of the yardstick's objective.
///
/// # Errors
/// [`TooLarge`] when there are more than `limit` choices.
pub fn search(
    instance: &Instance,
    yardstick: &Yardstick,
    grain: Grain,
    limit: u64,
) -> Result<Optimum, TooLarge> {
    let mut optima = optima(instance, yardstick, &[yardstick.objective], grain, limit)?;
    optima.pop().ok_or(TooLarge { choices: 0.0, limit })
}

/// Number of choices: candidate paths of every flow x queues of every job or flow.
#[must_use]
pub fn choices(instance: &Instance, grain: Grain) -> f64 {
    let units = match grain {
        Grain::Jobs => instance.jobs.len(),
        Grain::Flows => instance.flows.len(),
    };
    let paths: f64 = instance.flows.iter().map(|flow| flow.candidates.len() as f64).product();
    paths * f64::from(instance.levels).powi(units as i32)
}

/// Finds the optima of several objectives in one enumeration, in their order; the yardstick gives draws and
/// contention-free times. `evaluations` and `cut` count the whole enumeration.
///
/// # Errors
/// [`TooLarge`] when there are more than `limit` choices.
pub fn optima(
    instance: &Instance,
    yardstick: &Yardstick,
    objectives: &[Objective],
    grain: Grain,
    limit: u64,
) -> Result<Vec<Optimum>, TooLarge> {
    let choices = choices(instance, grain);
    if choices > limit as f64 {
        return Err(TooLarge { choices, limit });
    }
    let units = match grain {
        Grain::Jobs => instance.jobs.len(),
        Grain::Flows => instance.flows.len(),
    };
    let patterns = patterns(units, instance.levels);
    // One-shot figures let flows of a ring run apart, and flows with queues of their own break the argument.
    let simulated = |o: &Objective| !matches!(o, Objective::Drain | Objective::Static);
    let reduces = grain == Grain::Jobs && objectives.iter().all(simulated);
    let none = Optimum {
        choice: Choice::first(instance.flows.len()),
        score: f64::INFINITY,
        evaluations: 0,
        cut: 0,
    };
    let mut search = Search {
        instance,
        yardstick,
        evaluator: Evaluator::new(instance, yardstick),
        relations: Relations::of(&patterns).filter(|_| reduces),
        contention: Contention::new(instance),
        known: FxHashSet::default(),
        patterns,
        grain,
        choice: Choice::first(instance.flows.len()),
        load: vec![vec![0.0; instance.capacity.len()]; instance.jobs.len()],
        busiest: (0..instance.jobs.len()).map(|job| greedy::least_alone(instance, job)).collect(),
        objectives,
        best: vec![none; objectives.len()],
        simulated: 0,
        cut: 0,
    };
    search.assign(0);
    let (evaluations, cut) = (search.simulated, search.cut);
    Ok(search.best.into_iter().map(|best| Optimum { evaluations, cut, ..best }).collect())
}

/// All vectors of `units` queues below `levels` whose used queues are 0..k for some k.
fn patterns(units: usize, levels: u8) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut pattern = vec![0_u8; units];
    loop {
        let used = pattern.iter().fold(0_u32, |used, &queue| used | 1 << queue);
        if used & (used + 1) == 0 {
            all.push(pattern.clone());
        }
        let Some(position) = pattern.iter().position(|&queue| queue + 1 < levels) else {
            return all;
        };
        pattern[..position].fill(0);
        pattern[position] += 1;
    }
}

struct Search<'a> {
    instance: &'a Instance,
    yardstick: &'a Yardstick,
    evaluator: Evaluator<'a>,
    patterns: Vec<Vec<u8>>,
    /// Set where contention decides everything.
    relations: Option<Relations>,
    contention: Contention,
    /// Contentions that were tried with all patterns.
    known: FxHashSet<Vec<u64>>,
    grain: Grain,
    choice: Choice,
    /// Seconds per iteration that each job's assigned flows keep each link busy.
    load: Vec<Vec<f64>>,
    /// Communication seconds that each job cannot undercut any more.
    busiest: Vec<f64>,
    objectives: &'a [Objective],
    best: Vec<Optimum>,
    simulated: u64,
    cut: u64,
}

impl Search<'_> {
    fn assign(&mut self, flow: usize) {
        if self.hopeless() {
            self.cut += 1;
            return;
        }
        let Some(shape) = self.instance.flows.get(flow) else {
            self.try_patterns();
            return;
        };
        for (index, path) in shape.candidates.iter().enumerate() {
            let before = self.busiest[shape.job];
            for &link in path {
                let load = &mut self.load[shape.job][link];
                *load += shape.bytes / self.instance.capacity[link];
                self.busiest[shape.job] = self.busiest[shape.job].max(*load);
            }
            self.choice.path[flow] = index as u16;
            self.assign(flow + 1);
            for &link in path {
                self.load[shape.job][link] -= shape.bytes / self.instance.capacity[link];
            }
            self.busiest[shape.job] = before;
        }
    }

    /// Whether no completion of the current paths is better than the best known, for any objective.
    fn hopeless(&self) -> bool {
        let pairs = self.objectives.iter().zip(&self.best);
        pairs.into_iter().all(|(&objective, best)| self.bound(objective) >= best.score)
    }

    /// No completion of the current paths scores below this.
    fn bound(&self, objective: Objective) -> f64 {
        match objective {
            Objective::Drain => self.busiest.iter().sum(),
            Objective::Static => f64::NEG_INFINITY,
            objective => {
                let runs = self.yardstick.draws.iter().map(|draws| self.figures(&draws.compute));
                // A hair below, so that rounding never cuts an optimum that meets its bound.
                let bound = value(objective, &Metrics::mean(&runs.collect::<Vec<_>>()));
                bound - 1e-9 * bound.abs()
            }
        }
    }

    fn figures(&self, compute: &[Vec<f64>]) -> Metrics {
        let mut metrics = Metrics::default();
        let (mut senders, mut busy, mut total) = (0.0_f64, 0.0, 0.0);
        for (id, job) in self.instance.jobs.iter().enumerate() {
            let before = 1.0 - job.overlap;
            busy += job.gpus * compute[id].iter().sum::<f64>();
            let least = |&time: &f64| time.max(before * time + self.busiest[id]);
            total += job.gpus * compute[id].iter().map(least).sum::<f64>();
            if self.yardstick.iso[id] > 0.0 {
                senders += 1.0;
                metrics.comm_mean += self.busiest[id];
                metrics.slowdown += self.busiest[id] / self.yardstick.iso[id];
                metrics.comm_max = metrics.comm_max.max(self.busiest[id]);
            }
        }
        metrics.comm_mean /= senders.max(1.0);
        metrics.slowdown /= senders.max(1.0);
        metrics.utilisation = if total > 0.0 { busy / total } else { 1.0 };
        metrics
    }

    fn try_patterns(&mut self) {
        let Some(relations) = &mut self.relations else {
            for pattern in 0..self.patterns.len() {
                self.try_pattern(pattern);
            }
            return;
        };
        let (key, pairs) = self.contention.of(self.instance, &self.choice);
        if !self.known.insert(key) {
            return;
        }
        for pattern in relations.representatives(pairs) {
            self.try_pattern(pattern);
        }
    }

    fn try_pattern(&mut self, pattern: usize) {
        let pattern = &self.patterns[pattern];
        for (flow, shape) in self.instance.flows.iter().enumerate() {
            self.choice.queue[flow] = match self.grain {
                Grain::Jobs => pattern[shape.job],
                Grain::Flows => pattern[flow],
            };
        }
        self.simulated += 1;
        // Every draw counts: giving up after the first, as searches do, could lose the optimum.
        let one_shot = |o: &Objective| matches!(o, Objective::Drain | Objective::Static);
        let mean = match self.objectives.iter().all(one_shot) {
            true => Metrics::default(),
            false => Metrics::mean(&self.evaluator.metrics(&self.choice)),
        };
        for (objective, best) in self.objectives.iter().zip(&mut self.best) {
            let score = match objective {
                Objective::Drain => drain(self.instance, &self.choice).sum(),
                Objective::Static => static_estimate(self.instance, &self.choice),
                simulated => value(*simulated, &mean),
            };
            if score < best.score {
                best.score = score;
                best.choice.clone_from(&self.choice);
            }
        }
    }
}
