//! The fabric: nodes, directed links, forwarding trees and candidate paths.
//!
//! In: a generator's parameters or an imported file. Out: a checked [`Topology`] that every later module indexes.
//! Must not know: jobs, plans, P4.
//!
//! Numbering: switches first, then hosts (see [`NodeId`]). Every cable is two [`Link`]s, one per direction; parallel
//! cables are separate links on separate ports. A host has one NIC, hence exactly one link each way to one leaf.

use crate::id::{HostId, LinkId, NodeId, PortNo, SwitchId};
use crate::time::Span;
use crate::units::BitRate;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

mod build;
pub mod generate;
pub mod import;
pub mod path;
pub mod state;
pub mod suggest;

pub use build::address;
pub use path::{DEFAULT_MAX_PATHS, Path, PathError, Paths};
pub use state::{LinkSet, LinkState};

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// A switch; `tier` 0 is a leaf (has hosts), larger is further from the hosts.
    Switch {
        /// 0 for a leaf, 1 for a spine or aggregation switch, 2 for a core.
        tier: u8,
    },
    /// A host with one NIC.
    Host {
        /// Address on the fabric; unique.
        ip: Ipv4Addr,
        /// Ethernet address; unique.
        mac: [u8; 6],
    },
}

/// A switch or host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Unique name, as printed in plans (`leaf1`, `spine2`, `h3`).
    pub name: String,
    /// Switch or host.
    pub kind: NodeKind,
}

/// One direction of a cable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Sending node.
    pub from: NodeId,
    /// Port of the sending node (hosts use port 0).
    pub from_port: PortNo,
    /// Receiving node.
    pub to: NodeId,
    /// Port of the receiving node.
    pub to_port: PortNo,
    /// Line rate.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
}

/// A checked fabric. Fields are private so that the numbering and the indices cannot come apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    pub(crate) switch_count: usize,
    /// Links out of each node, ascending by port.
    pub(crate) out_links: Vec<Vec<LinkId>>,
    /// Links into each node, ascending by port.
    pub(crate) in_links: Vec<Vec<LinkId>>,
}

/// Why a set of nodes and cables is not a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Two nodes share a name.
    #[error("two nodes are called '{name}'; names must be unique")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Two hosts share an address.
    #[error("hosts '{first}' and '{second}' share the address {ip}; give each host its own")]
    DuplicateAddress {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The address.
        ip: Ipv4Addr,
    },
    /// Two hosts share an Ethernet address.
    #[error(
        "hosts '{first}' and '{second}' share the Ethernet address {mac}; give each host its own"
    )]
    DuplicateMac {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The address, written as people write it.
        mac: String,
    },
    /// A cable names a node that does not exist.
    #[error(
        "a cable names the node '{name}', which does not exist; declare it or correct the cable"
    )]
    UnknownNode {
        /// The name.
        name: String,
    },
    /// A cable joins a node to itself.
    #[error("a cable joins '{name}' to itself; correct one of its ends or remove it")]
    SelfLoop {
        /// The node.
        name: String,
    },
    /// A host without exactly one cable to a switch.
    #[error(
        "host '{name}' has {cables} cables; each host needs exactly one, to a switch (one NIC per host)"
    )]
    HostCables {
        /// The host.
        name: String,
        /// How many it has.
        cables: usize,
    },
    /// A cable between two hosts.
    #[error("a cable joins the hosts '{a}' and '{b}'; connect each to a switch instead")]
    HostToHost {
        /// One end.
        a: String,
        /// The other end.
        b: String,
    },
    /// A port number that no cable may have.
    #[error("port {port} of '{name}' cannot carry a cable; ports of a switch are 1..={max}")]
    PortRange {
        /// The switch.
        name: String,
        /// The port.
        port: PortNo,
        /// Largest port.
        max: u16,
    },
    /// A port used twice.
    #[error("port {port} of '{name}' is used by two cables; give each a port of its own")]
    PortInUse {
        /// The node.
        name: String,
        /// The port.
        port: PortNo,
    },
    /// A node with more ports than a 9-bit port number can name next to the CPU and drop ports.
    #[error(
        "'{name}' would need {ports} ports; a switch has at most {max}, spread its cables over more switches"
    )]
    TooManyPorts {
        /// The node.
        name: String,
        /// Ports wanted.
        ports: usize,
        /// Ports available.
        max: usize,
    },
    /// More switches than labels and tables are made for.
    #[error(
        "the fabric has {switches} switches; at most {max} are supported (16-bit labels are shared by all trees)"
    )]
    TooManySwitches {
        /// Switches given.
        switches: usize,
        /// Most.
        max: usize,
    },
    /// A zero rate.
    #[error("the cable {from} - {to} has rate 0; give a rate such as 25Gbps")]
    ZeroRate {
        /// One end.
        from: String,
        /// Other end.
        to: String,
    },
    /// Nothing to connect.
    #[error(
        "the fabric has {hosts} hosts and {switches} switches; it needs at least two hosts and one switch"
    )]
    TooSmall {
        /// Hosts given.
        hosts: usize,
        /// Switches given.
        switches: usize,
    },
    /// Some hosts cannot reach each other.
    #[error(
        "'{from}' cannot reach '{to}' through the switches; every pair of hosts must be connected"
    )]
    Disconnected {
        /// A host.
        from: String,
        /// A host that it cannot reach.
        to: String,
    },
}

/// Ports 1..=`MAX_PORT` carry cables: 510 is the CPU port and 511 drops (BMv2 `--cpu-port`, `--drop-port`).
pub const MAX_PORT: u16 = 509;

/// Most switches of one fabric: 65,535 labels leave each of them 31 trees, and the table of next hops of the largest
/// fabric stays below a few hundred megabytes.
pub const MAX_SWITCHES: usize = 2048;

/// A cable, as generators and importers describe it: both directions have the same rate and delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Name of one end.
    pub a: String,
    /// Port at `a`; `None` takes the next free one (hosts always use port 0).
    pub a_port: Option<PortNo>,
    /// Name of the other end.
    pub b: String,
    /// Port at `b`, as `a_port`.
    pub b_port: Option<PortNo>,
    /// Line rate of each direction.
    pub rate: BitRate,
    /// Propagation delay of each direction.
    pub delay: Span,
}

impl Topology {
    /// Number of switches; they are nodes `0..switch_count`.
    #[must_use]
    pub fn switch_count(&self) -> usize {
        self.switch_count
    }

    /// Number of hosts.
    #[must_use]
    pub fn host_count(&self) -> usize {
        self.nodes.len() - self.switch_count
    }

    /// All nodes, switches first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All directed links.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// One node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// One directed link.
    #[must_use]
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }

    /// The node of a switch.
    #[must_use]
    pub fn switch_node(&self, switch: SwitchId) -> NodeId {
        NodeId(switch.0)
    }

    /// The node of a host.
    #[must_use]
    pub fn host_node(&self, host: HostId) -> NodeId {
        NodeId::from(self.switch_count + host.index())
    }

    /// The switch that a node is, if it is one.
    #[must_use]
    pub fn as_switch(&self, node: NodeId) -> Option<SwitchId> {
        (node.index() < self.switch_count).then_some(SwitchId(node.0))
    }

    /// The host that a node is, if it is one.
    #[must_use]
    pub fn as_host(&self, node: NodeId) -> Option<HostId> {
        node.index().checked_sub(self.switch_count).map(HostId::from)
    }

    /// Switch ids in order.
    pub fn switches(&self) -> impl Iterator<Item = SwitchId> + use<> {
        (0..self.switch_count).map(SwitchId::from)
    }

    /// Host ids in order.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.host_count()).map(HostId::from)
    }

    /// Links out of a node, ascending by port.
    #[must_use]
    pub fn out_links(&self, node: NodeId) -> &[LinkId] {
        &self.out_links[node.index()]
    }

    /// Links into a node, ascending by port.
    #[must_use]
    pub fn in_links(&self, node: NodeId) -> &[LinkId] {
        &self.in_links[node.index()]
    }

    /// The host's link towards the fabric.
    #[must_use]
    pub fn uplink(&self, host: HostId) -> LinkId {
        self.out_links[self.host_node(host).index()][0]
    }

    /// The fabric's link towards the host.
    #[must_use]
    pub fn downlink(&self, host: HostId) -> LinkId {
        self.in_links[self.host_node(host).index()][0]
    }

    /// The leaf that a host is cabled to.
    #[must_use]
    pub fn leaf_of(&self, host: HostId) -> SwitchId {
        SwitchId(self.link(self.uplink(host)).to.0)
    }

    /// Node by exact name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(NodeId::from)
    }

    /// Every cable, by its even direction.
    pub fn cables(&self) -> impl Iterator<Item = LinkId> + use<> {
        // `build` lays the two directions of a cable next to each other, even id first.
        (0..self.links.len()).step_by(2).map(LinkId::from)
    }

    /// Whether a link joins two switches.
    #[must_use]
    pub fn is_inner(&self, link: LinkId) -> bool {
        let link = self.link(link);
        self.as_switch(link.from).is_some() && self.as_switch(link.to).is_some()
    }

    /// The opposite direction of the same cable.
    #[must_use]
    pub fn reverse(&self, id: LinkId) -> LinkId {
        // As in `cables`.
        LinkId(id.0 ^ 1)
    }

    /// The host's IPv4 address (`UNSPECIFIED` cannot happen for a host that `build` accepted).
    #[must_use]
    pub fn host_ip(&self, host: HostId) -> Ipv4Addr {
        match self.node(self.host_node(host)).kind {
            NodeKind::Host { ip, .. } => ip,
            NodeKind::Switch { .. } => Ipv4Addr::UNSPECIFIED,
        }
    }

    /// The host's Ethernet address.
    #[must_use]
    pub fn host_mac(&self, host: HostId) -> [u8; 6] {
        match self.node(self.host_node(host)).kind {
            NodeKind::Host { mac, .. } => mac,
            NodeKind::Switch { .. } => [0; 6],
        }
    }
}

/// What `classify` matches for one direction of one flow: IPv4 5-tuple, and the RoCEv2 destination QP (0 for TCP and
/// plain UDP). Sources: IBTA annex A17 (RoCEv2, UDP port 4791, BTH DestQP 24 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FlowKey {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// IP protocol (6 TCP, 17 UDP).
    pub protocol: u8,
    /// Source port; `None` matches any (RoCEv2 source ports are entropy, not identity).
    pub src_port: Option<u16>,
    /// Destination port.
    pub dst_port: Option<u16>,
    /// Destination queue pair, 24 bits; `None` matches any.
    pub dst_qp: Option<u32>,
}
