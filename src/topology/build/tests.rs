//! Every way in which nodes and cables can fail to be a fabric, and what a good one looks like.

use super::*;
use crate::id::{HostId, SwitchId};
use crate::time::Span;
use crate::topology::LinkState;
use crate::topology::generate::{FatTree, GenerateError, LeafSpine};
use crate::units::BitRate;

fn s(name: &str) -> Node {
    Node { name: name.into(), kind: NodeKind::Switch { tier: 0 } }
}

fn h(name: &str, number: u8) -> Node {
    let (ip, mac) = address(1, number);
    Node { name: name.into(), kind: NodeKind::Host { ip, mac } }
}

fn c(a: &str, b: &str) -> Cable {
    Cable {
        a: a.into(),
        a_port: None,
        b: b.into(),
        b_port: None,
        rate: BitRate(1_000),
        delay: Span(1),
    }
}

fn at(mut cable: Cable, a: Option<u16>, b: Option<u16>) -> Cable {
    (cable.a_port, cable.b_port) = (a.map(PortNo), b.map(PortNo));
    cable
}

#[test]
fn switches_come_first_and_cables_are_pairs_of_links() {
    let nodes = vec![h("h1", 1), s("a"), h("h2", 2), s("b")];
    let cables = [
        c("h1", "a"),
        at(c("a", "b"), Some(7), None),
        c("b", "h2"),
        at(c("b", "a"), None, Some(1)),
    ];
    let topology = Topology::build(nodes, &cables).unwrap();
    let names: Vec<&str> = topology.nodes().iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "h1", "h2"]);
    assert_eq!((topology.switch_count(), topology.host_count()), (2, 2));
    for (i, link) in topology.links().iter().enumerate() {
        let back = topology.link(topology.reverse(LinkId::from(i)));
        assert_eq!((link.from, link.from_port), (back.to, back.to_port));
    }
    // Port 1 of `a` is asked for by the fourth cable, so the first takes 2.
    let ports = |node: u32| -> Vec<u16> {
        let out = topology.out_links(NodeId(node)).iter();
        out.map(|&id| topology.link(id).from_port.0).collect()
    };
    assert_eq!((ports(0), ports(1), ports(2)), (vec![1, 2, 7], vec![1, 2, 3], vec![0]));
    assert_eq!(topology.leaf_of(HostId(1)), SwitchId(1));
    assert_eq!(topology.link(topology.downlink(HostId(0))).from, NodeId(0));
    assert_eq!(topology.find("b"), Some(NodeId(1)));
}

#[test]
fn each_way_to_be_no_fabric_has_its_own_error_that_names_the_culprit() {
    let two = || vec![s("a"), h("h1", 1), h("h2", 2)];
    let good = || vec![c("h1", "a"), c("h2", "a")];
    let plus = |cable: Cable| [good(), vec![cable]].concat();
    let mut twin = h("h2", 2);
    twin.kind = NodeKind::Host { ip: Ipv4Addr::new(9, 9, 9, 9), mac: address(1, 1).1 };
    let mut still = c("a", "b");
    still.rate = BitRate(0);
    let with_b = || [two(), vec![s("b")]].concat();
    let many: Vec<Cable> = (0..510).map(|_| c("a", "b")).collect();
    let cases: Vec<(Vec<Node>, Vec<Cable>, &str)> = vec![
        (vec![s("a"), h("h1", 1)], vec![c("h1", "a")], "1 hosts and 1 switches"),
        (vec![h("h1", 1), h("h2", 2)], vec![], "2 hosts and 0 switches"),
        ([two(), vec![s("h2")]].concat(), good(), "two nodes are called 'h2'"),
        (vec![s("a"), h("h1", 1), h("h2", 1)], good(), "'h1' and 'h2' share the address 10.0.1.1"),
        (vec![s("a"), h("h1", 1), twin], good(), "Ethernet address 02:00:0a:00:01:01"),
        (two(), plus(c("a", "leaf9")), "'leaf9', which does not exist"),
        (two(), plus(c("a", "a")), "'a' to itself"),
        (two(), plus(c("h1", "h2")), "hosts 'h1' and 'h2'"),
        (with_b(), plus(still), "a - b has rate 0"),
        (two(), plus(c("h1", "a")), "'h1' has 2 cables"),
        (two(), vec![c("h1", "a")], "'h2' has 0 cables"),
        (with_b(), plus(at(c("a", "b"), Some(510), None)), "port 510 of 'a'"),
        (with_b(), plus(at(c("a", "b"), None, Some(0))), "port 0 of 'b'"),
        (
            with_b(),
            [plus(at(c("a", "b"), Some(3), None)), vec![at(c("b", "a"), None, Some(3))]].concat(),
            "port 3 of 'a' is used by two",
        ),
        (with_b(), [good(), many].concat(), "'a' would need 512 ports"),
        (with_b(), vec![c("h1", "a"), c("h2", "b")], "'h1' cannot reach 'h2'"),
        (
            (0..2049).map(|i| s(&i.to_string())).chain(two()).collect(),
            good(),
            "2050 switches; at most 2048",
        ),
    ];
    for (nodes, cables, part) in cases {
        let error = Topology::build(nodes, &cables).unwrap_err().to_string();
        assert!(error.contains(part), "wanted '{part}' in: {error}");
    }
}

#[test]
fn generators_make_the_sizes_that_they_promise() {
    let mut fabric = LeafSpine::new(4, 4, 4, BitRate(25_000_000_000));
    let topology = fabric.build().unwrap();
    assert_eq!((topology.switch_count(), topology.host_count()), (8, 16));
    assert_eq!(topology.links().len(), 2 * (16 + 16));
    assert_eq!(topology.host_ip(HostId(5)), Ipv4Addr::new(10, 0, 2, 2));
    assert_eq!(topology.node(topology.host_node(HostId(15))).name, "h16");

    fabric.oversubscription = 2;
    assert_eq!(fabric.build().unwrap().switch_count(), 6);
    fabric.thin = true;
    let thin = fabric.build().unwrap();
    assert_eq!(thin.switch_count(), 8);
    let up = thin.out_links(NodeId(0)).last().copied().unwrap();
    assert_eq!(thin.link(up).rate, BitRate(12_500_000_000));
    assert_eq!(thin.link(thin.uplink(HostId(0))).rate, BitRate(25_000_000_000));

    let rate = BitRate(1_000_000_000);
    let tree = FatTree { k: 4, host_link: rate, fabric_link: rate, delay: Span(500) };
    let topology = tree.build().unwrap();
    assert_eq!((topology.switch_count(), topology.host_count()), (20, 16));
    assert_eq!(topology.links().len(), 2 * 48);
    for switch in topology.switches() {
        assert_eq!(topology.out_links(topology.switch_node(switch)).len(), 4);
    }
}

#[test]
fn generators_refuse_sizes_that_make_no_sense() {
    let rate = BitRate(1_000_000_000);
    let make = |change: &dyn Fn(&mut LeafSpine)| {
        let mut fabric = LeafSpine::new(4, 4, 4, rate);
        change(&mut fabric);
        fabric.build().unwrap_err()
    };
    assert_eq!(make(&|f| f.leaves = 0), GenerateError::Zero { what: "leaves" });
    assert_eq!(
        make(&|f| f.hosts_per_leaf = 255),
        GenerateError::HostsPerLeaf { hosts: 255, max: 254 }
    );
    assert_eq!(
        make(&|f| f.oversubscription = 3),
        GenerateError::Oversubscription { oversubscription: 3, spines: 4 }
    );
    assert!(matches!(make(&|f| f.leaves = u32::MAX), GenerateError::TooLarge { .. }));
    assert!(matches!(
        make(&|f| f.spines = 506),
        GenerateError::Topology(TopologyError::TooManyPorts { .. })
    ));
    assert!(matches!(
        make(&|f| f.fabric_link = BitRate(0)),
        GenerateError::Topology(TopologyError::ZeroRate { .. })
    ));
    for k in [0, 3, 42] {
        let tree = FatTree { k, host_link: rate, fabric_link: rate, delay: Span(500) };
        assert_eq!(tree.build().unwrap_err(), GenerateError::FatTreeK { k });
    }
}

#[test]
fn failed_and_slow_links_change_rates_and_nothing_else() {
    let topology = LeafSpine::new(2, 2, 1, BitRate(1_000)).build().unwrap();
    let mut state = LinkState::default();
    state.failed.insert_cable(&topology, LinkId(3));
    state.factor.insert(LinkId(0), 0.25);
    state.factor.insert(LinkId(1), f64::NAN);
    state.factor.insert(LinkId(4), 2.0);
    let rates = state.rates(&topology);
    assert_eq!(
        (rates[0], rates[2], rates[3], rates[4]),
        (BitRate(250), BitRate(0), BitRate(0), BitRate(1_000))
    );
    let now = state.apply(&topology);
    assert_eq!(now.links().iter().map(|link| link.rate).collect::<Vec<_>>(), rates);
    state.failed.remove_cable(&topology, LinkId(2));
    assert!(state.failed.is_empty());
}
