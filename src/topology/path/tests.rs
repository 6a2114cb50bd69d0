//! Paths on leaf-spine, fat-tree and random graphs, with and without failures.

use super::trees::every_tree_reaches_its_sink;
use super::*;
use crate::time::{Span, stream};
use crate::topology::generate::{FatTree, LeafSpine};
use crate::topology::{Cable, LinkSet, Node, NodeKind, address};
use crate::units::BitRate;
use proptest::prelude::*;

const RATE: BitRate = BitRate(25_000_000_000);

fn leaf_spine() -> Topology {
    LeafSpine::new(4, 4, 4, RATE).build().unwrap()
}

fn fat_tree(k: u32) -> Topology {
    FatTree { k, host_link: RATE, fabric_link: RATE, delay: Span(500) }.build().unwrap()
}

fn names(topology: &Topology, path: &Path) -> Vec<String> {
    let mut nodes = vec![topology.link(path.links[0]).from];
    nodes.extend(path.links.iter().map(|&link| topology.link(link).to));
    nodes.into_iter().map(|node| topology.node(node).name.clone()).collect()
}

#[test]
fn in_a_leaf_spine_a_tree_is_a_spine() {
    let topology = leaf_spine();
    let paths = Paths::build(&topology, &LinkSet::new(), DEFAULT_MAX_PATHS).unwrap();
    assert_eq!(paths.tree_count(), 4);
    for from in topology.hosts() {
        for to in topology.hosts().filter(|&to| to != from) {
            let candidates = paths.candidates(&topology, from, to);
            if topology.leaf_of(from) == topology.leaf_of(to) {
                assert_eq!(candidates.len(), 1);
                assert_eq!(candidates[0].links.len(), 2);
                continue;
            }
            assert_eq!(candidates.len(), 4);
            for path in &candidates {
                let spine = format!("spine{}", path.tree.0 + 1);
                assert_eq!(names(&topology, path)[2], spine);
                assert_eq!(path.links.len(), 4);
            }
        }
    }
}

#[test]
fn in_a_fat_tree_a_tree_is_a_core() {
    let topology = fat_tree(4);
    let paths = Paths::build(&topology, &LinkSet::new(), DEFAULT_MAX_PATHS).unwrap();
    assert_eq!(paths.tree_count(), 4);
    let (h1, far) = (HostId(0), HostId(15));
    for path in paths.candidates(&topology, h1, far) {
        assert_eq!(names(&topology, &path)[3], format!("core{}", path.tree.0 + 1));
    }
    // Two edges of one pod: one path per aggregation switch.
    let near = paths.candidates(&topology, h1, HostId(2));
    assert_eq!(near.iter().map(|path| path.links.len()).collect::<Vec<_>>(), [4, 4]);
    assert!(every_tree_reaches_its_sink(&topology, &paths));
}

#[test]
fn a_bound_on_paths_spreads_them_over_the_first_hops() {
    let topology = fat_tree(8);
    let paths = Paths::build(&topology, &LinkSet::new(), 4).unwrap();
    let candidates = paths.candidates(&topology, HostId(0), HostId(127));
    let mut second: Vec<String> =
        candidates.iter().map(|path| names(&topology, path)[2].clone()).collect();
    second.sort();
    assert_eq!(second, ["agg1", "agg2", "agg3", "agg4"]);
}

#[test]
fn a_failed_cable_takes_its_tree_away_and_renumbers_nothing() {
    let topology = leaf_spine();
    let whole = Paths::build(&topology, &LinkSet::new(), DEFAULT_MAX_PATHS).unwrap();
    let mut failed = LinkSet::new();
    let up = whole.candidates(&topology, HostId(0), HostId(15))[1].links[1];
    failed.insert_cable(&topology, up);
    let paths = Paths::build(&topology, &failed, DEFAULT_MAX_PATHS).unwrap();
    let trees =
        |paths: &Paths, a: u32, b: u32| paths.trees_between(SwitchId(a), SwitchId(b)).to_vec();
    assert_eq!(trees(&paths, 0, 3), [TreeId(0), TreeId(2), TreeId(3)]);
    assert_eq!(trees(&paths, 3, 0), [TreeId(0), TreeId(2), TreeId(3)]);
    assert_eq!(trees(&paths, 1, 2), trees(&whole, 1, 2));
    assert_eq!(paths.tree_count(), whole.tree_count());
    for sink in topology.switches() {
        for tree in (0..4).map(TreeId) {
            assert_eq!(paths.label(sink, tree), whole.label(sink, tree));
            for node in topology.switches().map(|switch| topology.switch_node(switch)) {
                assert_eq!(paths.next_link(sink, tree, node), whole.next_link(sink, tree, node));
            }
        }
    }
}

#[test]
fn leaves_without_a_common_spine_get_a_detour_on_a_new_tree() {
    let topology = LeafSpine::new(3, 2, 1, RATE).build().unwrap();
    let link = |from: &str, to: &str| {
        let (from, to) = (topology.find(from).unwrap(), topology.find(to).unwrap());
        *topology.out_links(from).iter().find(|&&id| topology.link(id).to == to).unwrap()
    };
    let mut failed = LinkSet::new();
    failed.insert_cable(&topology, link("leaf1", "spine1"));
    failed.insert_cable(&topology, link("leaf2", "spine2"));
    let paths = Paths::build(&topology, &failed, DEFAULT_MAX_PATHS).unwrap();
    let detour = paths.candidates(&topology, HostId(0), HostId(1));
    assert_eq!(detour.len(), 1);
    assert!(detour[0].tree.0 >= paths.lasting_trees());
    assert_eq!(
        names(&topology, &detour[0]),
        ["h1", "leaf1", "spine2", "leaf3", "spine1", "leaf2", "h2"]
    );
    assert!(every_tree_reaches_its_sink(&topology, &paths));

    failed.insert_cable(&topology, link("leaf1", "spine2"));
    let error = Paths::build(&topology, &failed, DEFAULT_MAX_PATHS).unwrap_err();
    assert!(matches!(error, PathError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("'h1'"), "{error}");
}

#[test]
fn more_labels_than_sixteen_bits_are_refused_with_the_count() {
    // 3 leaves on 255 spines: 258 switches x 255 trees.
    let topology = LeafSpine::new(3, 255, 1, RATE).build().unwrap();
    let error = Paths::build(&topology, &LinkSet::new(), 1000).unwrap_err();
    assert_eq!(
        error,
        PathError::TooManyLabels { labels: 65_790, sinks: 258, trees: 255, max_paths: 1000 }
    );
    assert!(Paths::build(&topology, &LinkSet::new(), DEFAULT_MAX_PATHS).is_ok());
}

/// A connected graph of up to eight switches with random extra cables (parallel ones too), one host on each.
fn random_graph(seed: u64) -> Topology {
    let mut rng = stream(seed, "random-graph", 0);
    let switches = rng.random_range(2..=8_usize);
    let mut nodes = Vec::new();
    let mut cables = Vec::new();
    let cable = |a: String, b: String| Cable {
        a,
        a_port: None,
        b,
        b_port: None,
        rate: RATE,
        delay: Span(500),
    };
    for i in 0..switches {
        let (ip, mac) = address(u16::try_from(i + 1).unwrap(), 1);
        nodes.push(Node { name: format!("s{i}"), kind: NodeKind::Switch { tier: 0 } });
        nodes.push(Node { name: format!("h{i}"), kind: NodeKind::Host { ip, mac } });
        cables.push(cable(format!("h{i}"), format!("s{i}")));
        if i > 0 {
            cables.push(cable(format!("s{i}"), format!("s{}", rng.random_range(0..i))));
        }
    }
    for _ in 0..rng.random_range(0..10) {
        let (a, b) = (rng.random_range(0..switches), rng.random_range(0..switches));
        if a != b {
            cables.push(cable(format!("s{a}"), format!("s{b}")));
        }
    }
    Topology::build(nodes, &cables).unwrap()
}

/// Slow twin of the hop counts: Floyd-Warshall over live links.
fn hops(topology: &Topology, failed: &LinkSet) -> Vec<Vec<Option<usize>>> {
    let n = topology.switch_count();
    let mut d = vec![vec![None; n]; n];
    for (i, row) in d.iter_mut().enumerate() {
        row[i] = Some(0);
    }
    for (i, link) in topology.links().iter().enumerate() {
        let (a, b) = (link.from.index(), link.to.index());
        if a < n && b < n && !failed.contains(LinkId::from(i)) {
            d[a][b] = Some(1);
        }
    }
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                if let (Some(x), Some(y)) = (d[i][k], d[k][j])
                    && d[i][j].is_none_or(|old| x + y < old)
                {
                    d[i][j] = Some(x + y);
                }
            }
        }
    }
    d
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn on_any_graph_paths_are_live_simple_bounded_and_keep_the_label_invariant(
        seed in any::<u64>(), max_paths in 1_usize..6, failures in 0_usize..3,
    ) {
        let topology = random_graph(seed);
        let mut rng = stream(seed, "failures", 0);
        let mut failed = LinkSet::new();
        for _ in 0..failures {
            let link = LinkId::from(rng.random_range(0..topology.links().len()));
            let ends = [topology.link(link).from, topology.link(link).to];
            if ends.iter().all(|&end| topology.as_switch(end).is_some()) {
                failed.insert_cable(&topology, link);
            }
        }
        let live = hops(&topology, &failed);
        let whole = hops(&topology, &LinkSet::new());
        let cut = live.iter().flatten().any(Option::is_none);
        match Paths::build(&topology, &failed, max_paths) {
            Err(PathError::Unreachable { .. }) => prop_assert!(cut),
            Err(error) => prop_assert!(false, "{error}"),
            Ok(paths) => {
                prop_assert!(!cut);
                prop_assert!(every_tree_reaches_its_sink(&topology, &paths));
                for from in topology.hosts() {
                    for to in topology.hosts().filter(|&to| to != from) {
                        let (a, b) = (topology.leaf_of(from).index(), topology.leaf_of(to).index());
                        let candidates = paths.candidates(&topology, from, to);
                        prop_assert!((1..=max_paths).contains(&candidates.len()));
                        for path in &candidates {
                            for pair in path.links.windows(2) {
                                prop_assert_eq!(topology.link(pair[0]).to, topology.link(pair[1]).from);
                            }
                            prop_assert!(path.links.iter().all(|&link| !failed.contains(link)));
                            let length = Some(path.links.len() - 2);
                            prop_assert!(length == whole[a][b] || length == live[a][b]);
                            prop_assert_eq!(path.links[0], topology.uplink(from));
                            prop_assert_eq!(path.links.last(), Some(&topology.downlink(to)));
                        }
                        let mut distinct: Vec<_> = candidates.iter().map(|path| &path.links).collect();
                        distinct.sort();
                        distinct.dedup();
                        prop_assert_eq!(distinct.len(), candidates.len());
                    }
                }
            }
        }
    }
}
