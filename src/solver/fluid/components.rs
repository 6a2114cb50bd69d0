//! Which rates an event changes: those of sending rings that are joined to it by links in use, and nobody else's.
//!
//! In: what rings ask of links, which rings send, which of them started or ended. Out: their rates brought up to date. Must
//! not know: time, jobs' stages.
//!
//! Sending rings fall into components that share no link; the rates of one depend on its members alone. So only the
//! components that the changed rings touch are computed, and with at most [`NARROW`] rings each is remembered by its set.

use crate::solver::instance::Instance;
use crate::solver::rate::{Layout, RateModel};
use rustc_hash::FxHashMap;

/// Rings whose sets fit into one word.
const NARROW: usize = 64;

/// Components remembered at most; enough for every set of 12 rings and reset when full.
const REMEMBERED: usize = 4096;

/// Finds components and remembers their rates.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    narrow: bool,
    /// Narrow: bit of each ring, ring of each bit, and for each bit the rings that share a link with it, itself too.
    bit: Vec<u32>,
    rings: Vec<u32>,
    near: Vec<u64>,
    on_link: Vec<u64>,
    /// Narrow: set of rings → place of its rates, in order of bits.
    memo: FxHashMap<u64, u32>,
    remembered: Vec<f64>,
    /// Wide: rings of each link, link by link, and marks of what was visited.
    starts: Vec<u32>,
    users: Vec<u32>,
    link_mark: Vec<u32>,
    ring_mark: Vec<u32>,
    sends: Vec<bool>,
    round: u32,
    /// Rings of the component at hand, ascending; rings still to visit.
    found: Vec<u32>,
    todo: Vec<u32>,
}

impl Components {
    /// Prepares for the rings of these jobs under a layout; forgets everything else.
    pub(super) fn open(&mut self, instance: &Instance, layout: &Layout, jobs: &[u32]) {
        self.memo.clear();
        self.remembered.clear();
        self.rings.clear();
        for &job in jobs {
            self.rings.extend(instance.jobs[job as usize].rings.iter().map(|&ring| ring as u32));
        }
        self.bit.resize(instance.rings.len(), 0);
        self.narrow = self.rings.len() <= NARROW;
        let links = instance.capacity.len();
        if self.narrow {
            self.open_narrow(layout, links);
        } else {
            self.open_wide(layout, links);
        }
    }

    fn open_narrow(&mut self, layout: &Layout, links: usize) {
        self.on_link.resize(links, 0);
        let demands = |ring: u32| layout.demands(ring as usize).iter().map(|d| d.link as usize);
        for (bit, &ring) in self.rings.iter().enumerate() {
            self.bit[ring as usize] = bit as u32;
            demands(ring).for_each(|link| self.on_link[link] |= 1 << bit);
        }
        self.near.clear();
        for (bit, &ring) in self.rings.iter().enumerate() {
            let near = demands(ring).fold(1 << bit, |near, link| near | self.on_link[link]);
            self.near.push(near);
        }
        // Left clean for the next time, at the cost of the links that were used.
        for &ring in &self.rings {
            demands(ring).for_each(|link| self.on_link[link] = 0);
        }
    }

    fn open_wide(&mut self, layout: &Layout, links: usize) {
        let demands = |ring: u32| layout.demands(ring as usize).iter().map(|d| d.link as usize);
        self.starts.clear();
        self.starts.resize(links + 1, 0);
        for &ring in &self.rings {
            demands(ring).for_each(|link| self.starts[link + 1] += 1);
        }
        for link in 0..links {
            self.starts[link + 1] += self.starts[link];
        }
        self.users.clear();
        self.users.resize(self.starts[links] as usize, 0);
        let mut next = self.starts.clone();
        for &ring in &self.rings {
            for link in demands(ring) {
                self.users[next[link] as usize] = ring;
                next[link] += 1;
            }
        }
        self.round = 0;
        self.link_mark.clear();
        self.link_mark.resize(links, 0);
        self.ring_mark.clear();
        self.ring_mark.resize(layout.len(), 0);
        self.sends.clear();
        self.sends.resize(layout.len(), false);
    }

    /// Nobody sends: a run begins.
    pub(super) fn begin(&mut self) {
        self.sends.fill(false);
    }

    /// Brings `rates` up to date after `changed` rings started or ended; `active` are those that send now.
    pub(super) fn refresh(
        &mut self,
        (layout, capacity): (&Layout, &[f64]),
        changed: &[u32],
        active: &[u32],
        model: &mut RateModel,
        rates: &mut [f64],
    ) {
        if self.narrow {
            self.refresh_narrow((layout, capacity), changed, active, model, rates);
        } else {
            self.refresh_wide((layout, capacity), changed, active, model, rates);
        }
    }

    fn refresh_narrow(
        &mut self,
        (layout, capacity): (&Layout, &[f64]),
        changed: &[u32],
        active: &[u32],
        model: &mut RateModel,
        rates: &mut [f64],
    ) {
        let sending = active.iter().fold(0_u64, |set, &ring| set | 1 << self.bit[ring as usize]);
        let mut left = changed
            .iter()
            .fold(0_u64, |set, &ring| set | self.near[self.bit[ring as usize] as usize])
            & sending;
        while left != 0 {
            let component = self.flood(left & left.wrapping_neg(), sending);
            left &= !component;
            if let Some(&place) = self.memo.get(&component) {
                for (bit, rate) in bits(component).zip(&self.remembered[place as usize..]) {
                    rates[self.rings[bit] as usize] = *rate;
                }
                continue;
            }
            if self.memo.len() >= REMEMBERED {
                self.memo.clear();
                self.remembered.clear();
            }
            // One order per set, so that rounding cannot depend on the way into the set.
            self.found.clear();
            self.found.extend(bits(component).map(|bit| self.rings[bit]));
            model.rates(layout, capacity, &self.found, rates);
            self.memo.insert(component, self.remembered.len() as u32);
            self.remembered.extend(self.found.iter().map(|&ring| rates[ring as usize]));
        }
    }

    /// The rings that send and are joined to `seed`.
    fn flood(&self, seed: u64, sending: u64) -> u64 {
        let (mut component, mut edge) = (seed, seed);
        while edge != 0 {
            let near = bits(edge).fold(0, |near, bit| near | self.near[bit]);
            edge = near & sending & !component;
            component |= edge;
        }
        component
    }

    fn refresh_wide(
        &mut self,
        (layout, capacity): (&Layout, &[f64]),
        changed: &[u32],
        active: &[u32],
        model: &mut RateModel,
        rates: &mut [f64],
    ) {
        self.round += 1;
        changed.iter().for_each(|&ring| self.sends[ring as usize] = false);
        active.iter().for_each(|&ring| self.sends[ring as usize] = true);
        for &ring in changed {
            // A ring that has ended is a bridge to those that it leaves behind; they may be several components by now,
            // which are computed together: that is the same, only not as short.
            self.found.clear();
            self.todo.push(ring);
            while let Some(ring) = self.todo.pop() {
                if std::mem::replace(&mut self.ring_mark[ring as usize], self.round) == self.round {
                    continue;
                }
                if self.sends[ring as usize] {
                    self.found.push(ring);
                }
                self.visit_links(layout, ring);
            }
            self.found.sort_unstable();
            if !self.found.is_empty() {
                model.rates(layout, capacity, &self.found, rates);
            }
        }
    }

    fn visit_links(&mut self, layout: &Layout, ring: u32) {
        for demand in layout.demands(ring as usize) {
            let link = demand.link as usize;
            if std::mem::replace(&mut self.link_mark[link], self.round) == self.round {
                continue;
            }
            let (from, to) = (self.starts[link] as usize, self.starts[link + 1] as usize);
            let sends = |&&user: &&u32| self.sends[user as usize];
            self.todo.extend(self.users[from..to].iter().filter(sends));
        }
    }
}

/// Positions of the bits of a set, ascending.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(bit)
    })
}
