//! What is done about a straggler, and whether it helped.
//!
//! In: a network verdict, the planning problem, the plan in force. Out: a [`Reaction`] (another queue or path for that one
//! flow), later whether it is kept; the links that plans should take to be slower. Must not know telemetry, entries, sessions.
//!
//! ```text
//!             verdict, not pausing                two looks at the new place
//!   (none) ───────────────────────► on trial ───────────────────────────────► kept: faster by ρ/2 or more
//!     ▲                                 │                                         │ a raise is a loan: back when it is over
//!     └── pause, twice as long each time┴──► undone: not faster, or no traffic    ▼ a path stays until the next plan
//! ```
//!
//! - [`Mode::Raise`] is the published method: one queue up, at most one level above the plan, at most one raised flow per
//!   link; above the highest queue of plans lies the one kept for raised stragglers.
//! - [`Mode::Best`] simulates ([`choose`]) doing nothing, each other path, and the raise, on capacities as measured, and
//!   takes the best if it gains 1 % or more of the objective.
//!
//! A path that was left for a faster one was slow: its suspected links are kept as *slow links*, so that later plans know.
//! Nobody uses a link that plans avoid, so nobody can see it recover; a slow link is therefore forgotten after a while, and
//! each time that it turns out to be still slow it is remembered for twice as long.

use crate::id::{FlowId, LinkId};
use crate::plan::RAISED_QUEUE;
use crate::straggler::{Evidence, Suspect};
use crate::topology::Path;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

mod choose;
#[cfg(test)]
mod tests;

pub use choose::{Proposal, Situation, choose};

/// How stragglers are helped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Not at all; verdicts are still told.
    None,
    /// One queue up (the published method).
    Raise,
    /// The best of nothing, another path, one queue up, by simulation on measured capacities.
    #[default]
    Best,
}

/// Thresholds and bounds. Times are in telemetry intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How.
    pub mode: Mode,
    /// Share of the objective that a reaction must gain by simulation. 0.01.
    pub gain: f64,
    /// A reaction is kept if the flow's rate while active rises by this share: ρ/2, 0.10.
    pub keep: f64,
    /// Looks after the change that decide. 2.
    pub looks: u32,
    /// Intervals after which a reaction without those looks is undone: the flow has stopped sending. 64.
    pub patience: u32,
    /// Pause of a flow after an undone reaction; doubles up to `pause_max`. 8.
    pub pause: u32,
    /// Longest pause. 512.
    pub pause_max: u32,
    /// How long a kept raise lasts. What made it necessary may be over, and it costs others. 128.
    pub loan: u32,
    /// How long a link found slow is remembered; doubles up to `memory_max` when it is found slow again. 256.
    pub memory: u32,
    /// Longest memory. 8192.
    pub memory_max: u32,
    /// Start phases that each candidate is simulated with. 2.
    pub phases: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            gain: 0.01,
            keep: 0.10,
            looks: 2,
            patience: 64,
            pause: 8,
            pause_max: 512,
            loan: 128,
            memory: 256,
            memory_max: 8192,
            phases: 2,
        }
    }
}

/// What a reaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// One queue up, same path.
    Raise,
    /// Another path, same queue.
    Reroute,
}

/// Path and queue of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The path.
    pub path: Path,
    /// The queue.
    pub queue: u8,
}

/// What was done for one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reaction {
    /// The flow.
    pub flow: FlowId,
    /// What.
    pub action: Action,
    /// Where the flow was by plan.
    pub from: Place,
    /// Where it is now.
    pub to: Place,
    /// Share of the objective that the simulation promised; 0 where nothing was simulated.
    pub gain: f64,
    /// The verdict's numbers.
    pub evidence: Evidence,
    /// Interval in which it was decided.
    pub at: u32,
    /// Whether it was confirmed.
    pub kept: bool,
    /// Rates of the looks since it is in force, bytes per active second.
    pub rates: Vec<f64>,
}

impl Reaction {
    /// A reaction on trial.
    #[must_use]
    pub fn new(action: Action, from: Place, to: Place, evidence: Evidence, flow: FlowId) -> Self {
        let at = evidence.interval;
        Self { flow, action, from, to, gain: 0.0, evidence, at, kept: false, rates: Vec::new() }
    }

    /// Mean rate since, over the rate before; 0 before the first look.
    #[must_use]
    pub fn speedup(&self) -> f64 {
        let mean = self.rates.iter().sum::<f64>() / self.rates.len().max(1) as f64;
        mean / self.evidence.rate.max(f64::MIN_POSITIVE)
    }
}

/// Why a reaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Two looks saw the flow no faster.
    NoFaster,
    /// The flow has not sent enough to tell.
    NoTraffic,
    /// A raise's time is over.
    LoanOver,
}

/// A decision about a reaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It stays.
    Keep(Reaction),
    /// The flow goes back.
    Undo(Reaction, Why),
}

/// A link that is slower than it should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowLink {
    /// Share of its rate.
    pub factor: f64,
    /// Interval at which it is forgotten.
    pub until: u32,
    /// How long it is remembered when found slow.
    pub memory: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pause {
    until: u32,
    length: u32,
}

/// Reactions, pauses and slow links. Bounded by flows and links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    settings: Settings,
    reactions: BTreeMap<FlowId, Reaction>,
    pauses: BTreeMap<FlowId, Pause>,
    slow: BTreeMap<LinkId, SlowLink>,
}

impl Feedback {
    /// Nothing done yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Thresholds and bounds.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether something may be done for a flow now.
    #[must_use]
    pub fn may_react(&self, flow: FlowId, now: u32) -> bool {
        let pausing = self.pauses.get(&flow).is_some_and(|pause| now < pause.until);
        self.settings.mode != Mode::None && !self.reactions.contains_key(&flow) && !pausing
    }

    /// The queue that a flow of a planned queue may be raised to: one up, the raised queue above the plans' highest;
    /// `None` when another raised flow crosses one of its links.
    #[must_use]
    pub fn raised_queue(&self, queue: u8, levels: u8, links: &[LinkId]) -> Option<u8> {
        let taken: BTreeSet<LinkId> = self.raised_links().collect();
        let to = if queue + 1 < levels { queue + 1 } else { RAISED_QUEUE };
        (queue < RAISED_QUEUE && !links.iter().any(|link| taken.contains(link))).then_some(to)
    }

    /// Links that raised flows cross.
    fn raised_links(&self) -> impl Iterator<Item = LinkId> + '_ {
        let raised = self.reactions.values().filter(|reaction| reaction.action == Action::Raise);
        raised.flat_map(|reaction| reaction.to.path.links.iter().copied())
    }

    /// Takes a reaction on trial. The links that it leaves count as slow from now on.
    pub fn begin(&mut self, reaction: Reaction) {
        for suspect in left(&reaction) {
            let memory = self.slow.get(&suspect.link).map_or(self.settings.memory, |slow| {
                slow.memory.saturating_mul(2).min(self.settings.memory_max)
            });
            let until = reaction.at.saturating_add(memory);
            self.slow.insert(suspect.link, SlowLink { factor: suspect.factor, until, memory });
        }
        self.reactions.insert(reaction.flow, reaction);
    }

    /// A look at a flow in its new place, or at any other: what it showed of slow links, and whether a trial is over.
    pub fn looked(&mut self, flow: FlowId, evidence: &Evidence) -> Option<Outcome> {
        let reaction = self.reactions.get_mut(&flow)?;
        if reaction.kept {
            return None;
        }
        reaction.rates.push(evidence.rate);
        if reaction.rates.len() < self.settings.looks as usize {
            return None;
        }
        if reaction.speedup() >= 1.0 + self.settings.keep {
            reaction.kept = true;
            reaction.at = evidence.interval;
            let kept = reaction.clone();
            self.pauses.remove(&flow);
            if kept.action == Action::Reroute {
                // From now on it is like any other flow; its place is the plan's.
                self.reactions.remove(&flow);
            }
            return Some(Outcome::Keep(kept));
        }
        self.undo(flow, evidence.interval, Why::NoFaster)
    }

    /// A flow was seen to go over a link at a share of its rate: if that is more than a slow link can carry, it is none.
    pub fn seen(&mut self, link: LinkId, share: f64) {
        let slack = 1.0 + self.settings.keep;
        if self.slow.get(&link).is_some_and(|slow| share > slow.factor * slack) {
            self.slow.remove(&link);
        }
    }

    /// An interval has passed: trials without traffic, loans and memories that are over.
    pub fn tick(&mut self, now: u32) -> Vec<Outcome> {
        let Settings { patience, loan, .. } = self.settings;
        let over = |reaction: &&Reaction| {
            now.saturating_sub(reaction.at) >= if reaction.kept { loan } else { patience }
        };
        let flows: Vec<(FlowId, bool)> =
            self.reactions.values().filter(over).map(|r| (r.flow, r.kept)).collect();
        // A link in doubt is not forgotten, only trusted again: `memory` stays for the next time it is found slow.
        for slow in self.slow.values_mut().filter(|slow| now >= slow.until) {
            slow.factor = 1.0;
        }
        let why = |kept| if kept { Why::LoanOver } else { Why::NoTraffic };
        flows.into_iter().filter_map(|(flow, kept)| self.undo(flow, now, why(kept))).collect()
    }

    fn undo(&mut self, flow: FlowId, now: u32, why: Why) -> Option<Outcome> {
        let reaction = self.reactions.remove(&flow)?;
        for suspect in left(&reaction) {
            // The path that it left was no slower than the other: it is not the links that they do not share.
            self.slow.remove(&suspect.link);
        }
        let Settings { pause, pause_max, .. } = self.settings;
        let longer = |pause: &Pause| pause.length.saturating_mul(2).min(pause_max);
        let length = match why {
            Why::NoFaster => self.pauses.get(&flow).map_or(pause, longer),
            Why::NoTraffic | Why::LoanOver => pause,
        };
        self.pauses.insert(flow, Pause { until: now.saturating_add(length), length });
        Some(Outcome::Undo(reaction, why))
    }

    /// A new plan gives every flow its place: no reaction is under way any more. Pauses and slow links stay.
    pub fn replanned(&mut self) {
        self.reactions.clear();
    }

    /// Keeps what concerns the flows that are still there.
    pub fn retain(&mut self, stays: impl Fn(FlowId) -> bool) {
        self.reactions.retain(|flow, _| stays(*flow));
        self.pauses.retain(|flow, _| stays(*flow));
    }

    /// Nothing would help a flow: no sooner than after a pause is that asked again.
    pub fn rest(&mut self, flow: FlowId, now: u32) {
        let Settings { pause, pause_max, .. } = self.settings;
        let longer = |pause: &Pause| pause.length.saturating_mul(2).min(pause_max);
        let length = self.pauses.get(&flow).map_or(pause, longer);
        self.pauses.insert(flow, Pause { until: now.saturating_add(length), length });
    }

    /// What was done for a flow, if that stands.
    #[must_use]
    pub fn reaction(&self, flow: FlowId) -> Option<&Reaction> {
        self.reactions.get(&flow)
    }

    /// Links that plans should take to be slower, with their share of the rate.
    #[must_use]
    pub fn factors(&self) -> BTreeMap<LinkId, f64> {
        let slow = self.slow.iter().filter(|(_, slow)| slow.factor < 1.0);
        slow.map(|(link, slow)| (*link, slow.factor)).collect()
    }

    /// After a restart the count of intervals starts anew.
    pub fn restarted(&mut self, settings: Settings) {
        self.settings = settings;
        for reaction in self.reactions.values_mut() {
            reaction.at = 0;
        }
        for pause in self.pauses.values_mut() {
            pause.until = pause.length;
        }
        for slow in self.slow.values_mut() {
            slow.until = slow.memory;
        }
    }
}

/// Suspected links that a rerouted flow crosses no more.
fn left(reaction: &Reaction) -> Vec<Suspect> {
    let kept = &reaction.to.path.links;
    let suspects = reaction.evidence.suspects.iter();
    let left = suspects.filter(|suspect| !kept.contains(&suspect.link)).copied();
    if reaction.action == Action::Reroute { left.collect() } else { Vec::new() }
}
