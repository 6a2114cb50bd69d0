//! Stragglers: judged once per closed interval, helped one flow at a time.
//!
//! In: closed intervals, agents' reports. Out: verdicts told, another goal for a flow (the usual rollout takes it there), links
//! that plans take to be slow. Must not judge or choose: [`Detector`] and [`Feedback`] do.
//!
//! A reaction changes one goal and keeps the generation. A new plan ends all reactions: it gives every flow its place.

use super::super::config::FeedbackConfig;
use super::super::messages::Event;
use super::super::rollout::{Goal, Route, Side, Stage};
use super::{Core, Key};
use crate::feedback::{Action, Feedback, Mode, Outcome, Place, Reaction, Situation, choose};
use crate::id::{FlowId, JobId, LinkId};
use crate::plan::{Assignment, RAISED_QUEUE};
use crate::solver::instance::Choice;
use crate::straggler::{Closed, Detector, Evidence, Expected, Kind, Verdict};
use crate::telemetry::Interval;
use crate::time::Span;
use std::collections::BTreeMap;

/// What the core remembers from interval to interval.
pub(super) struct Watch {
    detector: Detector,
    pub(super) feedback: Feedback,
    places: BTreeMap<FlowId, Standing>,
}

/// Where a flow's packets go, as far as the controller knows.
struct Standing {
    route: Route,
    queue: u8,
    links: Vec<LinkId>,
    /// First interval in which nothing else was in force.
    since: Option<u32>,
}

impl Watch {
    pub(super) fn new(config: &FeedbackConfig) -> Self {
        Self {
            detector: Detector::new(config.rule),
            feedback: Feedback::new(config.settings),
            places: BTreeMap::new(),
        }
    }

    /// A new plan is the target: flows have to settle anew.
    pub(super) fn replanned(&mut self) {
        self.feedback.replanned();
        for standing in self.places.values_mut() {
            standing.since = None;
        }
    }
}

impl Core {
    /// Reactions, pauses and slow links.
    #[must_use]
    pub const fn feedback(&self) -> &Feedback {
        &self.watch.feedback
    }

    /// An agent's word on what its ranks computed.
    pub(super) fn computed(&mut self, job: JobId, compute: &[Span]) {
        if self.jobs.contains_key(&job) {
            self.watch.detector.reported(job, compute);
        }
    }

    /// A job is gone.
    pub(super) fn forget_job(&mut self, job: JobId) {
        self.watch.detector.job_gone(job);
    }

    /// The samples of a closed interval are in.
    pub(super) fn judge(&mut self, number: u32) {
        let plan = self.expected(number);
        let telemetry = &self.collector.telemetry;
        let sample = |expected: &Expected| {
            let interval = telemetry.window(expected.flow)?.get(number)?;
            Some((expected.flow, *interval))
        };
        let flows: BTreeMap<FlowId, Interval> = plan.iter().filter_map(sample).collect();
        let slow = self.watch.feedback.factors();
        let topology = &self.config.topology;
        let line = |link: LinkId| topology.link(link).rate.0 as f64 / 8.0;
        let capacity = |link: LinkId| line(link) * slow.get(&link).copied().unwrap_or(1.0);
        let closed = Closed { number, flows: &flows };
        let findings = self.watch.detector.interval(closed, &plan, &capacity);
        let framing = self.watch.detector.rule().framing;
        let links: BTreeMap<FlowId, &Expected> =
            plan.iter().map(|expected| (expected.flow, expected)).collect();
        let mut outcomes = self.watch.feedback.tick(number);
        for (flow, evidence) in &findings.looks {
            for link in links.get(flow).into_iter().flat_map(|expected| &expected.links) {
                self.watch.feedback.seen(*link, evidence.rate * framing / line(*link));
            }
            outcomes.extend(self.watch.feedback.looked(*flow, evidence));
        }
        for outcome in outcomes {
            self.conclude(outcome);
        }
        for verdict in &findings.verdicts {
            self.flagged(verdict);
        }
        // A straggler whose pause is over, or that was flagged before anything could be done.
        for (flow, evidence) in &findings.looks {
            self.help(*flow, evidence);
        }
        if self.watch.feedback.factors() != slow {
            self.dirty.insert(Key::Feedback);
        }
    }

    /// What every flow should be doing, and notes which changes have come into force meanwhile.
    fn expected(&mut self, number: u32) -> Vec<Expected> {
        let goals = &self.goals;
        self.watch.places.retain(|flow, _| goals.contains_key(flow));
        self.watch.feedback.retain(|flow| goals.contains_key(&flow));
        let mut plan = Vec::with_capacity(self.goals.len());
        for (id, goal) in &self.goals {
            let Some(flow) = self.flows.get(id) else { continue };
            let there = self.states.get(id).is_some_and(|state| state.reached(goal));
            let standing = self.watch.places.entry(*id).or_insert_with(|| Standing::at(goal));
            if standing.route != goal.forward {
                // Packets may take either path until the change is in force.
                let old = std::mem::replace(standing, Standing::at(goal));
                standing.queue = standing.queue.max(old.queue);
                let gone = old.links.into_iter().filter(|link| !goal.path.links.contains(link));
                standing.links.extend(gone.collect::<Vec<_>>());
            }
            plan.push(Expected {
                flow: *id,
                job: flow.job,
                channel: flow.channel,
                edge: flow.edge,
                queue: standing.queue,
                links: standing.links.clone(),
                since: standing.since,
            });
            if there && standing.since.is_none() {
                *standing = Standing { since: Some(number.wrapping_add(1)), ..Standing::at(goal) };
            }
        }
        plan
    }

    fn flagged(&mut self, verdict: &Verdict) {
        let Some(job) = self.flows.get(&verdict.flow).map(|flow| flow.job) else { return };
        self.notify(Event::StragglerFlagged {
            flow: verdict.flow,
            job,
            kind: verdict.kind,
            evidence: verdict.evidence.clone(),
        });
    }

    fn help(&mut self, flow: FlowId, evidence: &Evidence) {
        let network = self.watch.detector.flagged(flow) == Some(Kind::Network);
        let job = self.flows.get(&flow).map(|flow| flow.job);
        if let (true, Some(job)) = (network && evidence.looks > 0, job)
            && self.watch.feedback.may_react(flow, evidence.interval)
        {
            self.react(job, flow, evidence);
        }
    }

    /// Does for a straggler what helps most, if anything does.
    pub(super) fn react(&mut self, job: JobId, flow: FlowId, evidence: &Evidence) {
        let Some(goal) = self.goals.get(&flow).cloned() else { return };
        let from = Place { path: goal.path.clone(), queue: goal.forward.queue };
        let levels = self.config.planning.levels;
        let raise = self.watch.feedback.raised_queue(from.queue, levels, &from.path.links);
        let raise = raise
            .filter(|queue| *queue != RAISED_QUEUE || !self.raised_before(flow, &from.path.links));
        let reaction = match self.watch.feedback.settings().mode {
            Mode::None => None,
            Mode::Raise => raise.map(|queue| (Action::Raise, Place { queue, ..from.clone() }, 0.0)),
            Mode::Best => self.best(flow, evidence, raise),
        };
        let Some((action, to, gain)) = reaction else {
            // Nothing helps now; the verdict stands until the flow is well.
            self.watch.feedback.rest(flow, evidence.interval);
            return;
        };
        let percent = gain * 100.0;
        let why = match action {
            Action::Raise => format!("raised: progress {:.2} of plan", evidence.progress),
            Action::Reroute => {
                format!("rerouted: progress {:.2}, gains {percent:.1} %", evidence.progress)
            }
        };
        if !self.move_flow(flow, &to, why) {
            return;
        }
        let evidence = evidence.clone();
        let told = evidence.clone();
        self.notify(match action {
            Action::Raise => {
                let (from, to) = (from.queue, to.queue);
                Event::StragglerRaised { flow, job, from, to, gain, evidence: told }
            }
            Action::Reroute => {
                let (from, to) = (from.path.clone(), to.path.clone());
                Event::StragglerRerouted { flow, job, from, to, gain, evidence: told }
            }
        });
        let reaction = Reaction { gain, ..Reaction::new(action, from, to, evidence, flow) };
        self.watch.feedback.begin(reaction);
        self.dirty.insert(Key::Feedback);
    }

    /// Whether another flow may still have packets in the raised queue of one of these links: it was lowered, and that is
    /// not in force yet.
    fn raised_before(&self, flow: FlowId, links: &[LinkId]) -> bool {
        self.states.values().filter(|state| state.flow != flow).any(|state| {
            let leg = state.leg(Side::Forward);
            let old = leg.stage == Stage::Flipping && leg.old.queue == RAISED_QUEUE;
            let standing = self.watch.places.get(&state.flow);
            let shares = standing
                .is_none_or(|standing| standing.links.iter().any(|link| links.contains(link)));
            (old || leg.now.queue == RAISED_QUEUE) && shares
        })
    }

    /// The best of nothing, other paths and a raise, simulated on measured capacities.
    fn best(
        &self,
        flow: FlowId,
        evidence: &Evidence,
        raise: Option<u8>,
    ) -> Option<(Action, Place, f64)> {
        let part = self.part();
        let place = part.ids.iter().position(|id| *id == flow)?;
        let mut choice = Choice::first(part.ids.len());
        for (at, id) in part.ids.iter().enumerate() {
            let goal = self.goals.get(id)?;
            // A path that is no candidate any more means that a new plan is under way.
            let path = part.paths[at].iter().position(|path| *path == goal.path)?;
            choice.path[at] = u16::try_from(path).ok()?;
            choice.queue[at] = goal.forward.queue;
        }
        let problem = part.problem(self.config.planning.levels);
        let situation = Situation {
            problem: &problem,
            choice: &choice,
            flow: place,
            suspects: &evidence.suspects,
            raise,
            objective: self.config.planning.objective,
            seed: self.config.seed,
        };
        let best = choose(&situation, self.watch.feedback.settings())?;
        let path = part.paths[place].get(usize::from(best.path))?.clone();
        Some((best.action, Place { path, queue: best.queue }, best.gain))
    }

    /// Gives a flow another goal; `false` if its path has no label.
    fn move_flow(&mut self, flow: FlowId, to: &Place, reason: String) -> bool {
        let assignment = Assignment { flow, path: to.path.clone(), queue: to.queue, reason };
        let Ok(Some(goal)) = self.goal(flow, &assignment) else { return false };
        self.goals.insert(flow, goal);
        self.unsettled.insert(flow);
        self.dirty.insert(Key::Target);
        true
    }

    /// A reaction is confirmed or undone.
    pub(super) fn conclude(&mut self, outcome: Outcome) {
        self.dirty.insert(Key::Feedback);
        let (reaction, why) = match outcome {
            Outcome::Keep(reaction) => (reaction, None),
            Outcome::Undo(reaction, why) => (reaction, Some(why)),
        };
        let Reaction { flow, action, .. } = reaction;
        let Some(job) = self.flows.get(&flow).map(|flow| flow.job) else { return };
        let speedup = reaction.speedup();
        let Some(why) = why else {
            self.notify(Event::ReactionKept { flow, job, action, speedup });
            return;
        };
        self.watch.detector.forget(flow);
        let there =
            |goal: &Goal| goal.path == reaction.to.path && goal.forward.queue == reaction.to.queue;
        if self.goals.get(&flow).is_some_and(there) {
            self.move_flow(flow, &reaction.from, "by plan: the reaction was undone".into());
        }
        self.notify(Event::ReactionUndone { flow, job, action, speedup, why });
    }

    /// The queue that a flow has by plan: not the one that it is raised to.
    pub(super) fn planned_queue(&self, flow: FlowId, goal: &Goal) -> u8 {
        let reaction = self.watch.feedback.reaction(flow);
        reaction.map_or(goal.forward.queue, |reaction| reaction.from.queue)
    }
}

impl Standing {
    fn at(goal: &Goal) -> Self {
        let (route, queue) = (goal.forward, goal.forward.queue);
        Self { route, queue, links: goal.path.links.clone(), since: None }
    }
}
