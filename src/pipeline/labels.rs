//! Labels: 16-bit names of forwarding trees.
//!
//! In: the candidate trees of a [`Topology`]. Out: a number per (sink leaf, tree), and the hops that the number
//! stands for. Must not know: flows, plans, which entries are installed where.
//!
//! **Invariant**: the meaning of a number never changes (design: data plane, "Changing path or queue", 1). When the
//! candidate trees are computed anew after a link went down or came back:
//! - a tree that only lost or regained hops of its old meaning keeps its number, and the old hops stay installed;
//! - a tree with a hop that its number does not stand for gets a new number; the old one retires.
//!
//! A number is given up ([`Labels::forget`]) only after the controller has seen that nothing can carry it.

use crate::id::{LinkId, SwitchId, TreeId};
use crate::topology::{Path, Paths, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The number of a tree in the tag. 0 is never used, so that a zeroed tag names no tree.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Label(pub u16);

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a label stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// The leaf at which packets leave the fabric.
    pub sink: SwitchId,
    /// The tree at that leaf, as numbered when the label was made.
    pub tree: TreeId,
    /// Link to take at each switch on the tree; the sink itself is not among them.
    pub hops: BTreeMap<SwitchId, LinkId>,
}

/// Why a path has no label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// All 65,535 numbers carry a meaning.
    #[error(
        "no label is left for tree {tree} of leaf {sink}: all 65535 are in use; lower max_paths or let retired labels be removed"
    )]
    Exhausted {
        /// The sink leaf.
        sink: SwitchId,
        /// The tree.
        tree: TreeId,
    },
    /// The path's tree was never adopted.
    #[error("tree {tree} of leaf {sink} has no label; adopt the candidate paths first")]
    Unknown {
        /// The sink leaf.
        sink: SwitchId,
        /// The tree.
        tree: TreeId,
    },
    /// The path leaves its own tree.
    #[error(
        "label {label} (leaf {sink}, tree {tree}) does not lead from leaf {source_leaf} along the path's links"
    )]
    Astray {
        /// The label of the path's tree.
        label: Label,
        /// The sink leaf.
        sink: SwitchId,
        /// The tree.
        tree: TreeId,
        /// The leaf where the path enters.
        source_leaf: SwitchId,
    },
}

/// All labels with a meaning, current and retired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Labels {
    meanings: BTreeMap<Label, Meaning>,
    /// The label of each candidate tree of the newest [`Paths`].
    #[serde(with = "as_list")]
    current: BTreeMap<(SwitchId, TreeId), Label>,
    /// The number last given out; search for a free one goes on from here, so that a number rests as long as possible.
    last: u16,
}

/// JSON objects need text keys, so the map is written as a list of pairs.
mod as_list {
    use super::{BTreeMap, Deserialize, Label, Serialize, SwitchId, TreeId};
    use serde::{Deserializer, Serializer};

    type Current = BTreeMap<(SwitchId, TreeId), Label>;

    pub(super) fn serialize<S: Serializer>(current: &Current, s: S) -> Result<S::Ok, S::Error> {
        current.iter().collect::<Vec<_>>().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Current, D::Error> {
        Ok(Vec::<((SwitchId, TreeId), Label)>::deserialize(d)?.into_iter().collect())
    }
}

impl Labels {
    /// Gives every candidate tree a label, keeping the numbers whose meaning still holds. Returns the labels that are
    /// new, ascending.
    ///
    /// # Errors
    /// [`LabelError::Exhausted`] when all numbers are taken; labels given before stay.
    pub fn adopt(&mut self, topology: &Topology, paths: &Paths) -> Result<Vec<Label>, LabelError> {
        let mut added = Vec::new();
        let mut current = BTreeMap::new();
        for meaning in candidate_trees(topology, paths) {
            let key = (meaning.sink, meaning.tree);
            let kept = self.find(&meaning);
            let label = match kept {
                Some(label) => label,
                None => {
                    let label = self.unused(key)?;
                    self.last = label.0;
                    self.meanings.insert(label, meaning);
                    added.push(label);
                    label
                }
            };
            current.insert(key, label);
        }
        self.current = current;
        Ok(added)
    }

    /// A label whose meaning covers every hop of `meaning`: the one of the same tree if it still does, else any.
    fn find(&self, meaning: &Meaning) -> Option<Label> {
        let covers = |label: &Label| {
            let known = &self.meanings[label];
            known.sink == meaning.sink
                && meaning.hops.iter().all(|(switch, link)| known.hops.get(switch) == Some(link))
        };
        let same_tree = self.current.get(&(meaning.sink, meaning.tree)).filter(|l| covers(l));
        same_tree.copied().or_else(|| {
            // Two trees of one sink must not end on one label by a meaning that is merely small (a tree that lost all
            // its hops is covered by every label of the sink), hence the tree has to be equal too.
            self.meanings
                .iter()
                .filter(|(_, known)| known.tree == meaning.tree)
                .map(|(label, _)| label)
                .find(|label| covers(label))
                .copied()
        })
    }

    fn unused(&self, (sink, tree): (SwitchId, TreeId)) -> Result<Label, LabelError> {
        let after = (self.last..u16::MAX).map(|n| n + 1);
        after
            .chain(1..=self.last)
            .map(Label)
            .find(|label| !self.meanings.contains_key(label))
            .ok_or(LabelError::Exhausted { sink, tree })
    }

    /// What a label stands for, `None` for a number without meaning.
    #[must_use]
    pub fn meaning(&self, label: Label) -> Option<&Meaning> {
        self.meanings.get(&label)
    }

    /// All labels with a meaning, ascending.
    pub fn all(&self) -> impl Iterator<Item = (Label, &Meaning)> {
        self.meanings.iter().map(|(label, meaning)| (*label, meaning))
    }

    /// Labels that no candidate tree uses any more, ascending.
    #[must_use]
    pub fn retired(&self) -> Vec<Label> {
        let current: std::collections::BTreeSet<Label> = self.current.values().copied().collect();
        self.meanings.keys().filter(|label| !current.contains(label)).copied().collect()
    }

    /// Gives a retired label up; its number may get a new meaning later. Ignored for a label in use.
    pub fn forget(&mut self, label: Label) {
        if self.retired().contains(&label) {
            self.meanings.remove(&label);
        }
    }

    /// The label that leads along `path`.
    ///
    /// # Errors
    /// [`LabelError::Unknown`] for a tree that was not adopted, [`LabelError::Astray`] when the label's hops are not
    /// the path's links (the path belongs to other candidate trees).
    pub fn of_path(&self, topology: &Topology, path: &Path) -> Result<Label, LabelError> {
        let fabric = path.links.get(1..path.links.len().saturating_sub(1)).unwrap_or_default();
        let source = path.links.first().map_or(SwitchId(0), |l| SwitchId(topology.link(*l).to.0));
        let sink = fabric.last().map_or(source, |last| SwitchId(topology.link(*last).to.0));
        let label = self.of_tree(sink, path.tree)?;
        let astray = LabelError::Astray { label, sink, tree: path.tree, source_leaf: source };
        let hops = &self.meanings.get(&label).ok_or_else(|| astray.clone())?.hops;
        let follows = fabric.iter().all(|link| {
            let from = SwitchId(topology.link(*link).from.0);
            hops.get(&from) == Some(link)
        });
        if follows { Ok(label) } else { Err(astray) }
    }

    /// The current label of a candidate tree.
    ///
    /// # Errors
    /// [`LabelError::Unknown`] for a tree that was not adopted.
    pub fn of_tree(&self, sink: SwitchId, tree: TreeId) -> Result<Label, LabelError> {
        self.current.get(&(sink, tree)).copied().ok_or(LabelError::Unknown { sink, tree })
    }
}

impl Meaning {
    /// The switches from `leaf` to the sink along the label, both included; `None` when it does not lead there.
    #[must_use]
    pub fn walk(&self, topology: &Topology, leaf: SwitchId) -> Option<Vec<SwitchId>> {
        let mut at = leaf;
        let mut walked = vec![at];
        while at != self.sink {
            let link = self.hops.get(&at)?;
            at = topology.as_switch(topology.link(*link).to)?;
            if walked.contains(&at) {
                return None;
            }
            walked.push(at);
        }
        Some(walked)
    }
}

/// Every (sink leaf, tree) that some pair of leaves may use, with its hops, in (sink, tree) order.
fn candidate_trees(topology: &Topology, paths: &Paths) -> Vec<Meaning> {
    let mut leaves: Vec<SwitchId> = topology.hosts().map(|host| topology.leaf_of(host)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    let mut trees = BTreeMap::new();
    for &sink in &leaves {
        for &source in &leaves {
            for &tree in paths.trees_between(source, sink) {
                trees.entry((sink, tree)).or_insert_with(|| hops(topology, paths, sink, tree));
            }
        }
    }
    trees.into_iter().map(|((sink, tree), hops)| Meaning { sink, tree, hops }).collect()
}

fn hops(
    topology: &Topology,
    paths: &Paths,
    sink: SwitchId,
    tree: TreeId,
) -> BTreeMap<SwitchId, LinkId> {
    topology
        .switches()
        .filter(|switch| *switch != sink)
        .filter_map(|switch| {
            let link = paths.next_link(sink, tree, topology.switch_node(switch))?;
            Some((switch, link))
        })
        .collect()
}
