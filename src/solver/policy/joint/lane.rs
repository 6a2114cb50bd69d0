//! One search lane: propose a move, simulate, accept or forget.
//!
//! In: a start, a budget of evaluations. Out: the best choice met. Must not know: other lanes.

use super::moves::Mover;
use super::scope::Scope;
use super::starts::Start;
use crate::solver::Effort;
use crate::solver::instance::{Choice, Instance};
use crate::solver::objective::{Evaluator, Yardstick};
use rand::RngExt as _;
use rand_pcg::Pcg64;

/// A choice this much worse (relative) is accepted with probability 1/e at the start of the search.
const WARMTH: f64 = 0.01;

/// Moves that a kick makes at once.
const KICK: usize = 4;

/// A choice in which some ring has flows in different queues must be better by this share: there the tight form of the
/// rate model is off by a few per cent against the loose one, elsewhere by a few per mille.
const MIXED_DOUBT: f64 = 0.03;

/// `stop` is asked once in so many evaluations.
const ASK_EVERY: u64 = 16;

/// A lane with its own engine and random stream.
pub(super) struct Lane<'a> {
    instance: &'a Instance,
    evaluator: Evaluator<'a>,
    mover: Mover<'a>,
    scope: &'a Scope,
    random: Pcg64,
    current: Start,
    proposal: Choice,
    pub best: Start,
}

impl<'a> Lane<'a> {
    pub fn new(
        (instance, yardstick, scope): (&'a Instance, &'a Yardstick, &'a Scope),
        effort: &Effort<'_>,
        id: usize,
        start: &Start,
    ) -> Self {
        Self {
            instance,
            evaluator: Evaluator::new(instance, yardstick),
            mover: Mover::new(instance, scope),
            scope,
            random: crate::time::stream(effort.seed, "joint-lane", id as u64),
            current: start.clone(),
            proposal: start.choice.clone(),
            best: start.clone(),
        }
    }

    /// Goes on from another choice, kicked.
    pub fn restart(&mut self, from: &Start) {
        self.best = from.clone();
        self.current = from.clone();
        for _ in 0..KICK {
            self.mover.propose(&mut self.current.choice, &mut self.random);
            self.scope.confine_move(self.instance, &from.choice, &mut self.current.choice);
        }
        self.current.score = scored(self.instance, &mut self.evaluator, &self.current.choice);
        self.keep();
    }

    /// Spends `budget` evaluations; `progress` of the whole search, 0..1, cools the acceptance.
    pub fn search(&mut self, budget: u64, progress: f64, stop: &(dyn Fn() -> bool + Sync)) {
        for turn in 0..budget {
            if turn % ASK_EVERY == 0 && stop() {
                return;
            }
            self.proposal.clone_from(&self.current.choice);
            self.mover.propose(&mut self.proposal, &mut self.random);
            self.scope.confine_move(self.instance, &self.current.choice, &mut self.proposal);
            if self.proposal == self.current.choice {
                continue;
            }
            let score = self.evaluator.score(&self.proposal, self.current.score);
            let score = doubted(self.instance, &self.proposal, score);
            let warmth = WARMTH * (1.0 - progress).powi(2) * self.current.score.abs();
            let worse = score - self.current.score;
            let draw: f64 = self.random.random();
            if worse <= 0.0 || (worse.is_finite() && draw < (-worse / warmth).exp()) {
                std::mem::swap(&mut self.current.choice, &mut self.proposal);
                self.current.score = score;
                self.keep();
            }
        }
    }

    fn keep(&mut self) {
        if self.current.score < self.best.score {
            self.best.clone_from(&self.current);
        }
    }
}

/// The score of a choice, doubted where it is to be.
pub(super) fn scored(instance: &Instance, evaluator: &mut Evaluator<'_>, choice: &Choice) -> f64 {
    let score = evaluator.score(choice, f64::INFINITY);
    doubted(instance, choice, score)
}

/// A score with [`MIXED_DOUBT`] added where it applies.
pub(super) fn doubted(instance: &Instance, choice: &Choice, score: f64) -> f64 {
    let mixed = instance.rings.iter().any(|ring| {
        let mut queues = ring.flows.iter().map(|&flow| choice.queue[flow]);
        let first = queues.next();
        queues.any(|queue| Some(queue) != first)
    });
    if mixed && score.is_finite() { score + MIXED_DOUBT * score.abs() } else { score }
}
