//! Rates at an instant: strict priority between queues, max-min sharing inside a queue, on every directed link.
//!
//! In: a [`Layout`] (what each unit asks of which link in which queue) and the set of units that have bytes to send.
//! Out: one rate per unit in bytes per second; it may be 0. Must not know: time, jobs, phases.
//!
//! A *unit* is whatever moves at one rate: a single flow ([`Layout::of_flows`], uncoupled: drain times, `rate0`), or a
//! whole ring ([`Layout::of_rings`], the tight form of coupling: every flow of a ring advances at the pace of its
//! slowest). A unit that crosses a link with two flows counts twice there.
//!
//! **Definition.** A unit is limited at link `e` when `e` is full, everything that `e` carries in lower queues than the
//! unit's is 0, and no unit of the unit's own queue on `e` is faster. Rates are right when every unit is limited
//! somewhere ([`limited_everywhere`] checks it). If each unit has one queue the rates are unique, and filling from the
//! highest queue down, the scarcest link first, finds them. If the flows of one ring have different queues the order
//! between two rings may differ from link to link. A unit is then settled as soon as nothing that still moves stands
//! above it; rings that wait for each other in a circle share as if tied. There the model is a guess: in the loose form
//! (`fluid::loose`) such rings have several steady states, and history picks one. `joint` therefore asks more of a choice
//! that mixes queues within a ring.

use super::instance::{Choice, Instance, QUEUES};
use std::collections::BinaryHeap;

mod reference;
#[cfg(test)]
mod tests;

pub use reference::{limited_everywhere, slow_rates};

/// What a unit asks of one link: `count` flows in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Index into the capacities.
    pub link: u32,
    /// Queue there; larger is served first.
    pub queue: u8,
    /// Flows of the unit on this link in this queue.
    pub count: u16,
}

/// The demands of all units, unit by unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    start: Vec<u32>,
    demands: Vec<Demand>,
    /// The one queue of each unit, or `None` if its flows differ.
    queue: Vec<Option<u8>>,
}

impl Layout {
    /// Every flow on its own.
    #[must_use]
    pub fn of_flows(instance: &Instance, choice: &Choice) -> Self {
        let mut layout = Self::default();
        layout.reset();
        for flow in 0..instance.flows.len() {
            layout.add_flow(instance, choice, flow);
            layout.close_unit();
        }
        layout
    }

    /// Every ring as one unit.
    #[must_use]
    pub fn of_rings(instance: &Instance, choice: &Choice) -> Self {
        let mut layout = Self::default();
        layout.set_rings(instance, choice);
        layout
    }

    /// As [`Self::of_rings`], keeping the memory.
    pub fn set_rings(&mut self, instance: &Instance, choice: &Choice) {
        self.reset();
        for ring in &instance.rings {
            for &flow in &ring.flows {
                self.add_flow(instance, choice, flow);
            }
            self.close_unit();
        }
    }

    /// From explicit demands, one list per unit.
    #[must_use]
    pub fn from_demands(units: &[Vec<Demand>]) -> Self {
        let mut layout = Self::default();
        layout.reset();
        for unit in units {
            for &demand in unit {
                layout.add(demand);
            }
            layout.close_unit();
        }
        layout
    }

    fn reset(&mut self) {
        self.start.clear();
        self.start.push(0);
        self.demands.clear();
        self.queue.clear();
    }

    fn add_flow(&mut self, instance: &Instance, choice: &Choice, flow: usize) {
        for &link in instance.links(choice, flow) {
            self.add(Demand { link: link as u32, queue: choice.queue[flow], count: 1 });
        }
    }

    /// Merges with the same link of the unit that is being written. Two flows of one unit in different queues of one
    /// link move at the pace of the lower one, so the lower queue stands for both.
    fn add(&mut self, demand: Demand) {
        let open = self.start.last().map_or(0, |&start| start as usize);
        match self.demands[open..].iter_mut().find(|old| old.link == demand.link) {
            Some(old) => {
                old.count += demand.count;
                old.queue = old.queue.min(demand.queue);
            }
            None => self.demands.push(demand),
        }
    }

    fn close_unit(&mut self) {
        let open = self.start.last().map_or(0, |&start| start as usize);
        let unit = &self.demands[open..];
        let first = unit.first().map_or(0, |demand| demand.queue);
        self.queue.push(unit.iter().all(|demand| demand.queue == first).then_some(first));
        self.start.push(self.demands.len() as u32);
    }

    /// Number of units.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there are no units.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// What a unit asks for.
    #[must_use]
    pub fn demands(&self, unit: usize) -> &[Demand] {
        &self.demands[self.start[unit] as usize..self.start[unit + 1] as usize]
    }
}

/// Relative slack within which two shares are the same: far above rounding, far below any real difference.
const SAME: f64 = 1e-9;

/// Rounds of handing out what a circle of waiting rings left over. Each round fills at least one more link, and the
/// second almost always finds nothing; the bound keeps the cost of the odd case small.
const TOP_UP_ROUNDS: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct LinkState {
    residual: f64,
    counts: [u16; QUEUES],
    /// Bit per queue with a unit that is not settled.
    waiting: u8,
    /// Smallest share among the units on the highest waiting queue.
    lowest: f64,
    /// Whether one of those units waits for somebody elsewhere.
    impure: bool,
    stamp: u32,
    /// First demand of the chain of this link.
    head: u32,
}

impl LinkState {
    fn top(&self) -> u8 {
        7_u8.saturating_sub(self.waiting.leading_zeros() as u8)
    }

    fn share(&self) -> f64 {
        self.residual.max(0.0) / f64::from(self.counts[usize::from(self.top())].max(1))
    }

    fn share_if_tied(&self) -> f64 {
        let all: u16 = self.counts.iter().sum();
        self.residual.max(0.0) / f64::from(all.max(1))
    }
}

/// With more units than this in one queue the heap pays for itself.
const MANY_UNITS: usize = 12;

/// A link by its share; the least share is the greatest, as [`BinaryHeap`] wants it. Equal shares: lowest link first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Least {
    share: f64,
    link: u32,
}

impl Eq for Least {}

impl Ord for Least {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.share.total_cmp(&self.share).then(other.link.cmp(&self.link))
    }
}

impl PartialOrd for Least {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Copy, Debug)]
struct Standing {
    share: f64,
    link: u32,
    /// Somebody that still moves stands above the unit on one of its links.
    blocked: bool,
    /// Its share cannot change any more: its scarcest link is settled by units that are all as limited as it is.
    forced: bool,
}

/// Computes rates; owns the working memory so that repeated calls allocate nothing.
#[derive(Clone, Debug, Default)]
pub struct RateModel {
    links: Vec<LinkState>,
    stamp: u32,
    waiting: Vec<u32>,
    standing: Vec<Standing>,
    /// Of [`Self::chain`]: links in use, and by demand its unit and the next demand on its link.
    touched: Vec<u32>,
    owner: Vec<u32>,
    next: Vec<u32>,
    settled: Vec<bool>,
}

/// The end of a chain.
const NOBODY: u32 = u32::MAX;

impl RateModel {
    /// A model for `links` links.
    #[must_use]
    pub fn new(links: usize) -> Self {
        Self { links: vec![LinkState::default(); links], ..Self::default() }
    }

    /// Rates of the `active` units in bytes per second, written to `rates[unit]`; other entries are left alone.
    /// Units without demands (nothing leaves the host) get `f64::INFINITY`.
    pub fn rates(&mut self, layout: &Layout, capacity: &[f64], active: &[u32], rates: &mut [f64]) {
        self.open(layout, capacity, active, rates);
        let one_queue = active.iter().all(|&unit| layout.queue[unit as usize].is_some());
        if one_queue {
            self.fill_by_queue(layout, rates);
            return;
        }
        let mut exact = self.fill_mixed(layout, rates);
        for _ in 0..TOP_UP_ROUNDS {
            if exact {
                break;
            }
            self.waiting.extend_from_slice(active);
            let links = &self.links;
            let room = |demand: &Demand| {
                let link = demand.link as usize;
                links[link].residual > SAME * capacity[link]
            };
            self.waiting.retain(|&unit| {
                let demands = layout.demands(unit as usize);
                !demands.is_empty() && demands.iter().all(room)
            });
            self.recount(layout);
            exact = self.waiting.is_empty() | self.fill_mixed(layout, rates);
        }
    }

    fn open(&mut self, layout: &Layout, capacity: &[f64], active: &[u32], rates: &mut [f64]) {
        self.stamp = self.stamp.wrapping_add(1);
        self.waiting.clear();
        for &unit in active {
            let demands = layout.demands(unit as usize);
            rates[unit as usize] = if demands.is_empty() { f64::INFINITY } else { 0.0 };
            if !demands.is_empty() {
                self.waiting.push(unit);
            }
            for demand in demands {
                let state = &mut self.links[demand.link as usize];
                if state.stamp != self.stamp {
                    *state = LinkState {
                        residual: capacity[demand.link as usize],
                        stamp: self.stamp,
                        ..LinkState::default()
                    };
                }
                state.counts[usize::from(demand.queue)] += demand.count;
                state.waiting |= 1 << demand.queue;
            }
        }
    }

    fn recount(&mut self, layout: &Layout) {
        for &unit in &self.waiting {
            for demand in layout.demands(unit as usize) {
                let state = &mut self.links[demand.link as usize];
                state.counts[usize::from(demand.queue)] += demand.count;
                state.waiting |= 1 << demand.queue;
            }
        }
    }

    /// Every unit has one queue: highest queue first, scarcest link first inside it.
    fn fill_by_queue(&mut self, layout: &Layout, rates: &mut [f64]) {
        let queue_of = |unit: u32| layout.queue[unit as usize].unwrap_or(0);
        self.waiting.sort_unstable_by_key(|&unit| (queue_of(unit), unit));
        while let Some(&last) = self.waiting.last() {
            let queue = queue_of(last);
            let from = self.waiting.partition_point(|&unit| queue_of(unit) < queue);
            if self.waiting.len() - from > MANY_UNITS {
                self.fill_by_link(layout, queue, from, rates);
            }
            while self.waiting.len() > from {
                self.standing.clear();
                let mut least = f64::INFINITY;
                for &unit in &self.waiting[from..] {
                    let share = layout
                        .demands(unit as usize)
                        .iter()
                        .map(|demand| {
                            let state = &self.links[demand.link as usize];
                            state.residual.max(0.0)
                                / f64::from(state.counts[usize::from(queue)].max(1))
                        })
                        .fold(f64::INFINITY, f64::min);
                    least = least.min(share);
                    self.standing.push(Standing { share, link: 0, blocked: false, forced: true });
                }
                let mut keep = from;
                for position in from..self.waiting.len() {
                    let unit = self.waiting[position];
                    if self.standing[position - from].share <= least * (1.0 + SAME) {
                        self.settle(layout, unit, least, rates);
                    } else {
                        self.waiting[keep] = unit;
                        keep += 1;
                    }
                }
                self.waiting.truncate(keep);
            }
        }
    }

    /// One queue with many units: links by share in a heap, so that each settled unit costs its own links only. Shares
    /// never fall while units are settled at the least one, so an outdated entry is found when it comes up.
    fn fill_by_link(&mut self, layout: &Layout, queue: u8, from: usize, rates: &mut [f64]) {
        let units = self.waiting.split_off(from);
        self.chain(layout, &units);
        let level = usize::from(queue);
        let share = |state: &LinkState| state.residual.max(0.0) / f64::from(state.counts[level]);
        let least = |&link: &u32| Least { share: share(&self.links[link as usize]), link };
        let mut heap: BinaryHeap<Least> = self.touched.iter().map(least).collect();
        while let Some(least) = heap.pop() {
            let state = &self.links[least.link as usize];
            if state.counts[level] == 0 {
                continue;
            }
            let now = share(state);
            if now > least.share * (1.0 + SAME) {
                heap.push(Least { share: now, link: least.link });
                continue;
            }
            let mut at = state.head;
            while at != NOBODY {
                let unit = self.owner[at as usize];
                if !std::mem::replace(&mut self.settled[unit as usize], true) {
                    self.settle(layout, unit, now, rates);
                }
                at = self.next[at as usize];
            }
        }
    }

    /// Chains the demands of these units link by link, units ascending.
    fn chain(&mut self, layout: &Layout, units: &[u32]) {
        self.touched.clear();
        self.next.resize(layout.demands.len(), NOBODY);
        self.owner.resize(layout.demands.len(), NOBODY);
        self.settled.resize(layout.len(), false);
        for &unit in units {
            self.settled[unit as usize] = false;
            for demand in layout.demands(unit as usize) {
                self.links[demand.link as usize].head = NOBODY;
            }
        }
        for &unit in units.iter().rev() {
            let first = layout.start[unit as usize];
            for (index, demand) in (first..).zip(layout.demands(unit as usize)) {
                let state = &mut self.links[demand.link as usize];
                if state.head == NOBODY {
                    self.touched.push(demand.link);
                }
                self.owner[index as usize] = unit;
                self.next[index as usize] = std::mem::replace(&mut state.head, index);
            }
        }
    }

    /// Gives a unit `extra` on top of what it has and takes it off its links.
    fn settle(&mut self, layout: &Layout, unit: u32, extra: f64, rates: &mut [f64]) {
        rates[unit as usize] += extra;
        for demand in layout.demands(unit as usize) {
            let state = &mut self.links[demand.link as usize];
            state.residual -= extra * f64::from(demand.count);
            let count = &mut state.counts[usize::from(demand.queue)];
            *count -= demand.count;
            if *count == 0 {
                state.waiting &= !(1 << demand.queue);
            }
        }
    }

    /// Units may have different queues on different links. Returns whether every step was forced.
    fn fill_mixed(&mut self, layout: &Layout, rates: &mut [f64]) -> bool {
        let mut exact = true;
        while !self.waiting.is_empty() {
            self.stand(layout);
            let least = |test: fn(&Standing) -> bool| {
                self.standing.iter().filter(|s| test(s)).map(|s| s.share).reduce(f64::min)
            };
            let kinds: [fn(&Standing) -> bool; 2] = [|s| s.forced, |s| !s.blocked];
            let (share, may_settle): (f64, fn(&Standing) -> bool) =
                match (least(kinds[0]), least(kinds[1])) {
                    (Some(share), _) => (share, kinds[0]),
                    (None, Some(share)) => (share, kinds[1]),
                    (None, None) => (self.tie(layout), |_| true),
                };
            exact &= self.standing.iter().any(|s| s.forced);
            let mut keep = 0;
            for position in 0..self.waiting.len() {
                let (unit, standing) = (self.waiting[position], self.standing[position]);
                if may_settle(&standing) && standing.share <= share * (1.0 + SAME) {
                    self.settle(layout, unit, share, rates);
                } else {
                    self.waiting[keep] = unit;
                    keep += 1;
                }
            }
            self.waiting.truncate(keep);
        }
        exact
    }

    /// Share, scarcest link and blocking of every waiting unit; marks on links follow.
    fn stand(&mut self, layout: &Layout) {
        self.standing.clear();
        for &unit in &self.waiting {
            let mut standing =
                Standing { share: f64::INFINITY, link: 0, blocked: false, forced: false };
            for demand in layout.demands(unit as usize) {
                let state = &mut self.links[demand.link as usize];
                state.impure = false;
                state.lowest = f64::INFINITY;
                if state.top() != demand.queue {
                    standing.blocked = true;
                } else if state.share() < standing.share {
                    standing.share = state.share();
                    standing.link = demand.link;
                }
            }
            self.standing.push(standing);
        }
        for (&unit, standing) in self.waiting.iter().zip(&self.standing) {
            for demand in layout.demands(unit as usize) {
                let state = &mut self.links[demand.link as usize];
                if state.top() == demand.queue {
                    state.impure |= standing.blocked;
                    if !standing.blocked {
                        state.lowest = state.lowest.min(standing.share);
                    }
                }
            }
        }
        for standing in &mut self.standing {
            let state = &self.links[standing.link as usize];
            standing.forced =
                !standing.blocked && !state.impure && state.lowest >= standing.share * (1.0 - SAME);
        }
    }

    /// Everybody waits for somebody: shares as if all were in one queue.
    fn tie(&mut self, layout: &Layout) -> f64 {
        let mut least = f64::INFINITY;
        for (&unit, standing) in self.waiting.iter().zip(&mut self.standing) {
            standing.share = layout
                .demands(unit as usize)
                .iter()
                .map(|demand| self.links[demand.link as usize].share_if_tied())
                .fold(f64::INFINITY, f64::min);
            least = least.min(standing.share);
        }
        least
    }
}
