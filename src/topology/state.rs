//! What has happened to links since they were cabled.
//!
//! In: link ids that failed or run slow. Out: the set of failed links, and the rate of every link as it is now.
//! Must not know: who noticed, or what is done about it.

use super::Topology;
use crate::id::LinkId;
use crate::units::BitRate;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A set of directed links.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkSet(BTreeSet<LinkId>);

impl LinkSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one direction; `false` if it was there.
    pub fn insert(&mut self, link: LinkId) -> bool {
        self.0.insert(link)
    }

    /// Adds both directions of the cable that `link` is one direction of.
    pub fn insert_cable(&mut self, topology: &Topology, link: LinkId) {
        self.0.insert(link);
        self.0.insert(topology.reverse(link));
    }

    /// Removes one direction; `false` if it was not there.
    pub fn remove(&mut self, link: LinkId) -> bool {
        self.0.remove(&link)
    }

    /// Removes both directions of the cable that `link` is one direction of.
    pub fn remove_cable(&mut self, topology: &Topology, link: LinkId) {
        self.0.remove(&link);
        self.0.remove(&topology.reverse(link));
    }

    /// Whether a link is in the set.
    #[must_use]
    pub fn contains(&self, link: LinkId) -> bool {
        self.0.contains(&link)
    }

    /// Whether the set has no links.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of directed links.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Links in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<LinkId> for LinkSet {
    fn from_iter<I: IntoIterator<Item = LinkId>>(links: I) -> Self {
        Self(links.into_iter().collect())
    }
}

/// Failed and degraded links. A failed link has rate 0; a degraded one its line rate times a factor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkState {
    /// Links that carry nothing.
    pub failed: LinkSet,
    /// Factor in 0..=1 on the line rate; links that are not named run at 1.
    pub factor: BTreeMap<LinkId, f64>,
}

impl LinkState {
    /// Rate of one link now. Rounded to whole bit/s.
    #[must_use]
    pub fn rate(&self, topology: &Topology, link: LinkId) -> BitRate {
        if self.failed.contains(link) {
            return BitRate(0);
        }
        let line = topology.link(link).rate;
        match self.factor.get(&link) {
            None => line,
            // A factor outside 0..=1 (or NaN) can only come from a caller's arithmetic: clamp, never speed a link up.
            Some(factor) => BitRate((line.0 as f64 * factor.clamp(0.0, 1.0)).round() as u64),
        }
    }

    /// Rates of all links now, indexed by `LinkId`.
    #[must_use]
    pub fn rates(&self, topology: &Topology) -> Vec<BitRate> {
        (0..topology.links().len()).map(|i| self.rate(topology, LinkId::from(i))).collect()
    }

    /// The same fabric with every link at its rate of now, as `solver::Problem` wants it.
    #[must_use]
    pub fn apply(&self, topology: &Topology) -> Topology {
        let mut now = topology.clone();
        for (i, link) in now.links.iter_mut().enumerate() {
            link.rate = self.rate(topology, LinkId::from(i));
        }
        now
    }
}
