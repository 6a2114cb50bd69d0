//! Good files: what the importers make of them. Bad ones: `tests/it/bad_input.rs`.

use super::*;
use crate::id::{HostId, NodeId, SwitchId};
use crate::time::Span;
use crate::topology::{LinkSet, NodeKind, Paths};
use crate::units::BitRate;
use std::path::Path;

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topologies").join(name))
        .unwrap()
}

fn node(topology: &Topology, name: &str) -> NodeId {
    topology.find(name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_rack_is_a_pair_of_psw_and_asw_and_parallel_links_lead_to_switches_of_their_own() {
    let imported = lingjun(&data("topo.csv"), "topo.csv", &Lingjun::default()).unwrap();
    let topology = imported.topology;
    // 3 racks; 4 planes of 2 PSW switches and 2 DSW switches each.
    assert_eq!((topology.host_count(), topology.switch_count()), (5, 3 + 4 * (2 + 2)));
    // Twelve characters are enough for the last three, not for the first two.
    for host in ["aaaaaaaaaaaa01", "aaaaaaaaaaaa02", "bbbbbbbbbbbb", "cccccccccccc"] {
        node(&topology, host);
    }
    let leaf =
        |host| topology.node(topology.switch_node(topology.leaf_of(HostId(host)))).name.clone();
    assert_eq!((leaf(0), leaf(2), leaf(3)), ("P1.S1".into(), "P1.S2".into(), "P2.S1".into()));
    let paths = Paths::build(&topology, &LinkSet::new(), 16).unwrap();
    assert_eq!(paths.candidates(&topology, HostId(0), HostId(2)).len(), 4);
    assert_eq!(paths.candidates(&topology, HostId(0), HostId(3)).len(), 8);
    assert!(imported.notes.iter().any(|note| note.contains("assumed")), "{:?}", imported.notes);
}

#[test]
fn merged_parallel_links_are_one_link_of_their_sum() {
    let options = Lingjun { merge: true, ..Lingjun::default() };
    let topology = lingjun(&data("topo.csv"), "topo.csv", &options).unwrap().topology;
    assert_eq!(topology.switch_count(), 3 + 2 + 1);
    let up = topology.out_links(node(&topology, "P1.S1")).last().copied().unwrap();
    assert_eq!(topology.link(up).rate, BitRate(800_000_000_000));
    let paths = Paths::build(&topology, &LinkSet::new(), 16).unwrap();
    assert_eq!(paths.candidates(&topology, HostId(0), HostId(3)).len(), 1);
}

#[test]
fn the_real_lingjun_topology_has_847_hosts_in_119_racks() {
    let beside = ["../shared/data", "../../shared/data"];
    let path = beside
        .map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("lingjun-topo.csv"))
        .into_iter()
        .find(|path| path.exists())
        .unwrap_or_default();
    let Ok(bytes) = std::fs::read(&path) else {
        println!(
            "skipped: the_real_lingjun_topology_has_847_hosts_in_119_racks needs ../shared/data/lingjun-topo.csv"
        );
        return;
    };
    let topology = lingjun(&bytes, "lingjun-topo.csv", &Lingjun::default()).unwrap().topology;
    let racks = topology.switches().filter(|&switch| {
        matches!(topology.node(topology.switch_node(switch)).kind, NodeKind::Switch { tier: 0 })
    });
    assert_eq!((topology.host_count(), racks.count()), (847, 119));
    let paths = Paths::build(&topology, &LinkSet::new(), 16).unwrap();
    let far = topology.hosts().map(|host| paths.candidates(&topology, HostId(0), host).len());
    assert_eq!(far.max(), Some(8));
}

#[test]
fn a_p4utils_file_keeps_its_ports_addresses_rates_and_delays() {
    let imported = p4utils(&data("triangle.json"), "triangle.json", &P4Utils::default()).unwrap();
    let topology = imported.topology;
    assert_eq!((topology.switch_count(), topology.host_count()), (3, 3));
    assert_eq!(topology.host_ip(HostId(1)).to_string(), "10.0.2.2");
    assert_eq!(topology.host_mac(HostId(0)), [8, 0, 0, 0, 1, 0x11]);
    assert_eq!(topology.leaf_of(HostId(2)), SwitchId(2));
    let between = |a: &str, b: &str| {
        let (a, b) = (node(&topology, a), node(&topology, b));
        let out = topology.out_links(a).iter().map(|&link| topology.link(link));
        out.clone().find(|link| link.to == b).unwrap().clone()
    };
    let link = between("s1", "s3");
    assert_eq!((link.from_port.0, link.to_port.0), (3, 2));
    assert_eq!((link.rate, link.delay), (BitRate(200_000_000), Span::from_millis(5)));
    let link = between("h3", "s3");
    assert_eq!(
        (link.to_port.0, link.rate, link.delay),
        (1, BitRate(1_000_000_000), Span::from_millis(2))
    );
    assert_eq!(between("s2", "s3").rate, P4Utils::default().fabric_link);
    assert_eq!(imported.notes.len(), 1);
    assert!(
        imported.notes[0].starts_with("3 of 6 links have no bandwidth"),
        "{:?}",
        imported.notes
    );
}

#[test]
fn tiers_of_a_p4utils_file_are_distances_from_the_hosts() {
    let text = r#"{"hosts": ["h1", "h2"], "switches": ["core", "a", "b", "up"],
        "links": [["h1", "a"], ["h2", "b"], ["a", "up"], ["up", "core"], ["up", "b"]]}"#;
    let topology = p4utils(text.as_bytes(), "t.json", &P4Utils::default()).unwrap().topology;
    let tiers: Vec<NodeKind> = topology.nodes()[..4].iter().map(|node| node.kind).collect();
    assert_eq!(tiers, [2, 0, 0, 1].map(|tier| NodeKind::Switch { tier }));
}
