//! Shortest routes and the greedy choice of trees.
//!
//! In: a fabric and its failed links. Out: [`Paths`]. Must not know: labels' use.
//!
//! For one sink, routes are taken one after the other, furthest sources first, and each goes on the tree that it shares
//! most nodes with among those that agree with it at *every* common node; else on a new tree. A union of routes that
//! agree wherever they meet gives every node one next link and leads from every node to the sink, so no tree can loop.
//! In a leaf-spine this makes tree = spine, in a fat-tree tree = core, and costs nothing extra for any other graph.

use super::{MAX_LABELS, PathError, Paths};
use crate::id::{LinkId, SwitchId, TreeId};
use crate::topology::{LinkSet, Topology};
use std::collections::VecDeque;

/// Distance of switches that cannot reach the sink.
const FAR: u32 = u32::MAX;

/// See [`Paths::build`].
pub(super) fn build(
    topology: &Topology,
    failed: &LinkSet,
    max_paths: usize,
) -> Result<Paths, PathError> {
    let none = LinkSet::new();
    let leaves = leaves(topology);
    let switches = topology.switch_count();
    let mut paths = Paths {
        trees: 0,
        next: vec![Vec::new(); switches],
        between: vec![vec![Vec::new(); switches]; switches],
        lasting: 0,
    };
    for &sink in &leaves {
        let reach = Reach::new(topology, &none, sink);
        for source in furthest_first(&leaves, &reach) {
            for route in reach.routes(topology, source, max_paths) {
                let tree = place(topology, &mut paths.next[sink.index()], 0, &route);
                paths.between[source.index()][sink.index()].push(tree);
            }
        }
    }
    paths.trees = largest(&paths.next).max(1);
    paths.lasting = paths.trees;
    if !failed.is_empty() {
        avoid(topology, failed, max_paths, &leaves, &mut paths)?;
    }
    for row in &mut paths.between {
        for trees in row {
            trees.sort_unstable();
        }
    }
    let (sinks, trees) = (switches, paths.trees as usize);
    if sinks * trees > MAX_LABELS {
        let labels = sinks * trees;
        return Err(PathError::TooManyLabels { labels, sinks, trees, max_paths });
    }
    for &sink in &leaves {
        paths.next[sink.index()].resize(trees, vec![None; switches]);
    }
    Ok(paths)
}

/// Takes away the trees that cross failed links and adds detours where none is left.
fn avoid(
    topology: &Topology,
    failed: &LinkSet,
    max_paths: usize,
    leaves: &[SwitchId],
    paths: &mut Paths,
) -> Result<(), PathError> {
    let fresh = paths.lasting as usize;
    for &sink in leaves {
        let reach = Reach::new(topology, failed, sink);
        for source in furthest_first(leaves, &reach) {
            if source == sink {
                continue;
            }
            let mut trees = std::mem::take(&mut paths.between[source.index()][sink.index()]);
            trees.retain(|&tree| {
                !paths.route(topology, source, sink, tree).iter().any(|&link| failed.contains(link))
            });
            if trees.is_empty() {
                for route in reach.routes(topology, source, max_paths) {
                    trees.push(place(topology, &mut paths.next[sink.index()], fresh, &route));
                }
            }
            if trees.is_empty() {
                return Err(unreachable(topology, source, sink));
            }
            paths.between[source.index()][sink.index()] = trees;
        }
    }
    paths.trees = paths.trees.max(largest(&paths.next));
    Ok(())
}

fn unreachable(topology: &Topology, source: SwitchId, sink: SwitchId) -> PathError {
    let host_at = |leaf| {
        let host = topology.hosts().find(|&host| topology.leaf_of(host) == leaf);
        host.map_or_else(String::new, |host| topology.node(topology.host_node(host)).name.clone())
    };
    PathError::Unreachable { from: host_at(source), to: host_at(sink) }
}

/// Switches that have hosts, ascending.
fn leaves(topology: &Topology) -> Vec<SwitchId> {
    let mut leaves: Vec<SwitchId> = topology.hosts().map(|host| topology.leaf_of(host)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

fn furthest_first(leaves: &[SwitchId], reach: &Reach) -> Vec<SwitchId> {
    let mut sources = leaves.to_vec();
    sources.sort_by_key(|source| (std::cmp::Reverse(reach.distance[source.index()]), *source));
    sources
}

fn largest(next: &[Vec<Vec<Option<LinkId>>>]) -> u32 {
    next.iter().map(|trees| u32::try_from(trees.len()).unwrap_or(u32::MAX)).max().unwrap_or(0)
}

/// Puts a route on the best tree with index `first` or above; see the head comment.
fn place(
    topology: &Topology,
    trees: &mut Vec<Vec<Option<LinkId>>>,
    first: usize,
    route: &[LinkId],
) -> TreeId {
    let from = |link: LinkId| topology.link(link).from.index();
    let mut best: Option<(usize, usize)> = None;
    for (index, tree) in trees.iter().enumerate().skip(first) {
        let mut shared = 0;
        let agrees = route.iter().all(|&link| match tree[from(link)] {
            Some(other) => {
                shared += 1;
                other == link
            }
            None => true,
        });
        if agrees && best.is_none_or(|(most, _)| shared > most) {
            best = Some((shared, index));
        }
    }
    let index = best.map_or_else(|| trees.len().max(first), |(_, index)| index);
    while trees.len() <= index {
        trees.push(vec![None; topology.switch_count()]);
    }
    for &link in route {
        trees[index][from(link)] = Some(link);
    }
    TreeId::from(index)
}

/// Hop counts to one sink over live links between switches.
struct Reach {
    sink: SwitchId,
    distance: Vec<u32>,
    /// Live links one hop closer to the sink, per switch, ascending by port.
    closer: Vec<Vec<LinkId>>,
    /// Number of shortest routes per switch, saturating.
    count: Vec<usize>,
}

impl Reach {
    fn new(topology: &Topology, failed: &LinkSet, sink: SwitchId) -> Self {
        let switches = topology.switch_count();
        let mut reach = Self {
            sink,
            distance: vec![FAR; switches],
            closer: vec![Vec::new(); switches],
            count: vec![0; switches],
        };
        reach.distance[sink.index()] = 0;
        reach.count[sink.index()] = 1;
        let mut queue = VecDeque::from([sink]);
        while let Some(at) = queue.pop_front() {
            let far = reach.distance[at.index()] + 1;
            for &into in topology.in_links(topology.switch_node(at)) {
                let Some(back) = topology.as_switch(topology.link(into).from) else { continue };
                if failed.contains(into) {
                    continue;
                }
                if reach.distance[back.index()] == FAR {
                    reach.distance[back.index()] = far;
                    queue.push_back(back);
                }
                // Breadth first: the count of `at` is final once `at` is taken from the queue.
                if reach.distance[back.index()] == far {
                    reach.closer[back.index()].push(into);
                    let more = reach.count[at.index()];
                    reach.count[back.index()] = reach.count[back.index()].saturating_add(more);
                }
            }
        }
        for links in &mut reach.closer {
            links.sort_by_key(|&link| topology.link(link).from_port);
        }
        reach
    }

    /// Shortest routes from a source, at most `budget` of them, the budget dealt out evenly over the next hops. The
    /// source itself gives one empty route if it is the sink, none if it cannot reach it.
    fn routes(&self, topology: &Topology, source: SwitchId, budget: usize) -> Vec<Vec<LinkId>> {
        if source == self.sink {
            return vec![Vec::new()];
        }
        let next = &self.closer[source.index()];
        let at = |link: LinkId| SwitchId(topology.link(link).to.0);
        let available: Vec<usize> = next.iter().map(|&link| self.count[at(link).index()]).collect();
        let mut routes = Vec::new();
        for (&link, share) in next.iter().zip(deal(budget, &available)) {
            if share == 0 {
                continue;
            }
            for rest in self.routes(topology, at(link), share) {
                routes.push([&[link], rest.as_slice()].concat());
            }
        }
        routes
    }
}

/// Deals a budget round robin over takers that each take at most what they have.
fn deal(budget: usize, available: &[usize]) -> Vec<usize> {
    let mut shares = vec![0; available.len()];
    let mut left = budget.min(available.iter().fold(0, |sum: usize, &n| sum.saturating_add(n)));
    while left > 0 {
        for (share, &most) in shares.iter_mut().zip(available) {
            if left > 0 && *share < most {
                *share += 1;
                left -= 1;
            }
        }
    }
    shares
}

/// Whether every tree of every sink leads from each of its switches to the sink: the invariant, checked by walking.
#[cfg(test)]
pub(super) fn every_tree_reaches_its_sink(topology: &Topology, paths: &Paths) -> bool {
    topology.switches().all(|sink| {
        (0..paths.trees).map(TreeId).all(|tree| {
            topology.switches().all(|start| {
                let mut node = topology.switch_node(start);
                if paths.next_link(sink, tree, node).is_none() {
                    return true;
                }
                for _ in 0..topology.switch_count() {
                    match paths.next_link(sink, tree, node) {
                        Some(link) => node = topology.link(link).to,
                        None => break,
                    }
                }
                node == topology.switch_node(sink)
            })
        })
    })
}
