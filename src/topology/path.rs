//! Candidate paths, and the trees that give labels their meaning.
//!
//! In: a [`Topology`]. Out: for each pair of leaves the candidate switch-to-switch routes, each on a numbered tree.
//! Must not know: flows, queues, P4 (but it promises what labels need: see the invariant).
//!
//! **Invariant (label = (sink leaf, tree))**: for one sink leaf and one tree, every node has at most one next link
//! over all candidate paths to that leaf. In a leaf-spine a tree is a spine, in a fat-tree a core switch; for any
//! other graph a greedy colouring assigns trees and refuses with the count when 2^16 labels are passed.

use super::Topology;
use crate::id::{HostId, LinkId, NodeId, SwitchId, TreeId};
use serde::{Deserialize, Serialize};

mod trees;

/// Candidate paths per pair of leaves unless asked otherwise: all cores of an 8-port fat-tree, every spine of any
/// fabric that fits one rack row; more candidates cost labels and search time and no longer spread load better.
pub const DEFAULT_MAX_PATHS: usize = 16;

/// Labels that a 16-bit field can carry; 0 means "no label".
pub const MAX_LABELS: usize = 65_535;

/// One route from source host to destination host.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Path {
    /// The tree at the sink leaf; together they are the label.
    pub tree: TreeId,
    /// Directed links from the source host to the destination host, first the host's uplink, last the sink leaf's
    /// downlink. Two hosts on one leaf: exactly two links.
    pub links: Vec<LinkId>,
}

/// Why candidate paths could not be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// More labels than a 16-bit field can carry.
    #[error(
        "the fabric needs {labels} labels ({sinks} sink leaves x {trees} trees); 65535 fit, lower max_paths ({max_paths})"
    )]
    TooManyLabels {
        /// Labels needed.
        labels: usize,
        /// Sink leaves.
        sinks: usize,
        /// Trees per sink.
        trees: usize,
        /// The bound on candidate paths in force.
        max_paths: usize,
    },
    /// No live route between two leaves (all candidates use failed links).
    #[error("no live path from '{from}' to '{to}'")]
    Unreachable {
        /// Source host.
        from: String,
        /// Destination host.
        to: String,
    },
}

/// All candidate paths between leaves, by tree; host paths are made on demand from these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paths {
    /// Number of trees at each sink leaf (the largest over sinks): tree ids are `0..trees`.
    pub(crate) trees: u32,
    /// `next[sink][tree][node]`: link to take at `node` (a switch) towards the sink leaf on that tree.
    pub(crate) next: Vec<Vec<Vec<Option<LinkId>>>>,
    /// `between[source leaf][sink leaf]`: trees on which a shortest candidate path exists, ascending.
    pub(crate) between: Vec<Vec<Vec<TreeId>>>,
    /// Trees that exist because of the cabling alone; ids from here on are detours around failed links.
    pub(crate) lasting: u32,
}

impl Paths {
    /// Number of trees per sink leaf.
    #[must_use]
    pub fn tree_count(&self) -> u32 {
        self.trees
    }

    /// Link to take at `node` for (sink leaf, tree), or `None` off the tree and at the sink leaf itself.
    #[must_use]
    pub fn next_link(&self, sink: SwitchId, tree: TreeId, node: NodeId) -> Option<LinkId> {
        self.next.get(sink.index())?.get(tree.index())?.get(node.index()).copied().flatten()
    }

    /// Trees that carry a candidate path from one leaf to another, ascending. For `source == sink` it is `[TreeId(0)]`.
    #[must_use]
    pub fn trees_between(&self, source: SwitchId, sink: SwitchId) -> &[TreeId] {
        &self.between[source.index()][sink.index()]
    }

    /// The candidate paths from one host to another, ascending by tree. Empty only for `from == to`.
    #[must_use]
    pub fn candidates(&self, topology: &Topology, from: HostId, to: HostId) -> Vec<Path> {
        if from == to {
            return Vec::new();
        }
        let (source, sink) = (topology.leaf_of(from), topology.leaf_of(to));
        self.trees_between(source, sink)
            .iter()
            .map(|&tree| {
                let mut links = vec![topology.uplink(from)];
                links.extend(self.route(topology, source, sink, tree));
                links.push(topology.downlink(to));
                Path { tree, links }
            })
            .collect()
    }

    /// Links from a leaf to a sink leaf on one tree; empty when they are the same, cut short when the tree does not
    /// reach the source.
    #[must_use]
    pub fn route(
        &self,
        topology: &Topology,
        source: SwitchId,
        sink: SwitchId,
        tree: TreeId,
    ) -> Vec<LinkId> {
        let mut links = Vec::new();
        let mut node = topology.switch_node(source);
        while let Some(link) = self.next_link(sink, tree, node) {
            links.push(link);
            node = topology.link(link).to;
        }
        links
    }

    /// The label of (sink leaf, tree), 1..=65535. Numbered tree by tree, so that detour trees added for a failure
    /// take new numbers and shift none: a label's meaning must not change while packets carry it (docs/dataplane).
    #[must_use]
    pub fn label(&self, sink: SwitchId, tree: TreeId) -> u16 {
        let label = 1 + tree.index() * self.next.len() + sink.index();
        // `build` refuses fabrics with more labels than fit.
        u16::try_from(label).unwrap_or(u16::MAX)
    }

    /// Trees that follow from the cabling alone, `0..lasting`: their labels never change. Larger ids are detours around
    /// the failed links given to [`Paths::build`] and mean something else after the next failure.
    #[must_use]
    pub fn lasting_trees(&self) -> u32 {
        self.lasting
    }

    /// Candidate paths of a fabric: for each pair of leaves all shortest routes, at most `max_paths` (at least 1) spread
    /// evenly over the first hops. With failed links, trees keep the numbers and routes they have without failures,
    /// pairs lose the trees that cross a failed link, and a pair that lost all of them gets the shortest live detours
    /// on fresh trees.
    ///
    /// # Errors
    /// [`PathError::TooManyLabels`]; [`PathError::Unreachable`] when failures cut two leaves with hosts apart.
    pub fn build(
        topology: &Topology,
        failed: &super::LinkSet,
        max_paths: usize,
    ) -> Result<Self, PathError> {
        trees::build(topology, failed, max_paths.max(1))
    }
}

#[cfg(test)]
mod tests;
