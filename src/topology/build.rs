//! From nodes and cables to a checked [`Topology`].
//!
//! In: nodes in any order, cables by name. Out: switches first, dense ids, ports given, both directions of every cable
//! next to each other; or the first reason why it is no fabric. Must not know: where the description came from.

use super::{Cable, Link, MAX_PORT, MAX_SWITCHES, Node, NodeKind, Topology, TopologyError};
use crate::id::{LinkId, NodeId, PortNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

/// Addresses of the `host`-th host (from 1, at most 254) of the `leaf`-th leaf (from 1): `10.hi.lo.host/24` with
/// `leaf = 256 * hi + lo`, so that one leaf is one prefix, and a locally administered MAC that repeats the IP.
#[must_use]
pub fn address(leaf: u16, host: u8) -> (Ipv4Addr, [u8; 6]) {
    let [high, low] = leaf.to_be_bytes();
    (Ipv4Addr::new(10, high, low, host), [2, 0, 10, high, low, host])
}

impl Topology {
    /// Checks nodes and cables and numbers them: switches first and then hosts, each in the order given. Cable `i`
    /// becomes links `2i` (a to b) and `2i + 1` (b to a). Cables without a port take the lowest port of a switch that
    /// no other cable asks for, in the order of the cables.
    ///
    /// # Errors
    /// Every [`TopologyError`]; the first one found, looking at nodes before cables before connectivity.
    pub fn build(nodes: Vec<Node>, cables: &[Cable]) -> Result<Self, TopologyError> {
        let (switches, hosts): (Vec<Node>, Vec<Node>) =
            nodes.into_iter().partition(|node| matches!(node.kind, NodeKind::Switch { .. }));
        if hosts.len() < 2 || switches.is_empty() {
            return Err(TopologyError::TooSmall { hosts: hosts.len(), switches: switches.len() });
        }
        let switch_count = switches.len();
        if switch_count > MAX_SWITCHES {
            return Err(TopologyError::TooManySwitches {
                switches: switch_count,
                max: MAX_SWITCHES,
            });
        }
        let nodes: Vec<Node> = switches.into_iter().chain(hosts).collect();
        let index = index_names(&nodes)?;
        check_addresses(&nodes[switch_count..])?;
        let ends = resolve(cables, &index, switch_count)?;
        check_host_cables(&nodes, &ends, switch_count)?;
        let ports = assign_ports(&nodes, cables, &ends, switch_count)?;

        let mut links = Vec::with_capacity(2 * cables.len());
        for ((cable, &(a, b)), &(a_port, b_port)) in cables.iter().zip(&ends).zip(&ports) {
            let (from, to) = (NodeId::from(a), NodeId::from(b));
            let (rate, delay) = (cable.rate, cable.delay);
            links.push(Link { from, from_port: a_port, to, to_port: b_port, rate, delay });
            links.push(Link {
                from: to,
                from_port: b_port,
                to: from,
                to_port: a_port,
                rate,
                delay,
            });
        }
        let mut topology = Self {
            out_links: vec![Vec::new(); nodes.len()],
            in_links: vec![Vec::new(); nodes.len()],
            nodes,
            links,
            switch_count,
        };
        topology.index_links();
        topology.check_connected()?;
        Ok(topology)
    }

    fn index_links(&mut self) {
        for (i, link) in self.links.iter().enumerate() {
            self.out_links[link.from.index()].push(LinkId::from(i));
            self.in_links[link.to.index()].push(LinkId::from(i));
        }
        let links = &self.links;
        for out in &mut self.out_links {
            out.sort_by_key(|id| links[id.index()].from_port);
        }
        for into in &mut self.in_links {
            into.sort_by_key(|id| links[id.index()].to_port);
        }
    }

    /// Cables run both ways and hosts have one cable each, so reaching every host from the first is enough.
    fn check_connected(&self) -> Result<(), TopologyError> {
        let first = self.switch_count;
        let mut seen = vec![false; self.nodes.len()];
        let mut queue = VecDeque::from([first]);
        seen[first] = true;
        while let Some(node) = queue.pop_front() {
            for &id in &self.out_links[node] {
                let to = self.link(id).to.index();
                if !seen[to] {
                    seen[to] = true;
                    queue.push_back(to);
                }
            }
        }
        match (first..self.nodes.len()).find(|&node| !seen[node]) {
            None => Ok(()),
            Some(lost) => Err(TopologyError::Disconnected {
                from: self.nodes[first].name.clone(),
                to: self.nodes[lost].name.clone(),
            }),
        }
    }
}

fn index_names(nodes: &[Node]) -> Result<BTreeMap<&str, usize>, TopologyError> {
    let mut index = BTreeMap::new();
    for (i, node) in nodes.iter().enumerate() {
        if index.insert(node.name.as_str(), i).is_some() {
            return Err(TopologyError::DuplicateName { name: node.name.clone() });
        }
    }
    Ok(index)
}

fn check_addresses(hosts: &[Node]) -> Result<(), TopologyError> {
    let mut ips: BTreeMap<Ipv4Addr, &str> = BTreeMap::new();
    let mut macs: BTreeMap<[u8; 6], &str> = BTreeMap::new();
    for host in hosts {
        let NodeKind::Host { ip, mac } = host.kind else { continue };
        let second = host.name.clone();
        if let Some(first) = ips.insert(ip, &host.name) {
            return Err(TopologyError::DuplicateAddress { first: first.to_owned(), second, ip });
        }
        if let Some(first) = macs.insert(mac, &host.name) {
            let mac = mac.map(|byte| format!("{byte:02x}")).join(":");
            return Err(TopologyError::DuplicateMac { first: first.to_owned(), second, mac });
        }
    }
    Ok(())
}

type Ends = Vec<(usize, usize)>;

fn resolve(
    cables: &[Cable],
    index: &BTreeMap<&str, usize>,
    switch_count: usize,
) -> Result<Ends, TopologyError> {
    let find = |name: &String| {
        index
            .get(name.as_str())
            .copied()
            .ok_or_else(|| TopologyError::UnknownNode { name: name.clone() })
    };
    let mut ends = Vec::with_capacity(cables.len());
    for cable in cables {
        let (a, b) = (find(&cable.a)?, find(&cable.b)?);
        if a == b {
            return Err(TopologyError::SelfLoop { name: cable.a.clone() });
        }
        if a >= switch_count && b >= switch_count {
            return Err(TopologyError::HostToHost { a: cable.a.clone(), b: cable.b.clone() });
        }
        if cable.rate.0 == 0 {
            return Err(TopologyError::ZeroRate { from: cable.a.clone(), to: cable.b.clone() });
        }
        ends.push((a, b));
    }
    Ok(ends)
}

fn check_host_cables(
    nodes: &[Node],
    ends: &Ends,
    switch_count: usize,
) -> Result<(), TopologyError> {
    let mut cables = vec![0_usize; nodes.len()];
    for &(a, b) in ends {
        cables[a] += 1;
        cables[b] += 1;
    }
    match (switch_count..nodes.len()).find(|&host| cables[host] != 1) {
        None => Ok(()),
        Some(host) => {
            Err(TopologyError::HostCables { name: nodes[host].name.clone(), cables: cables[host] })
        }
    }
}

fn assign_ports(
    nodes: &[Node],
    cables: &[Cable],
    ends: &Ends,
    switch_count: usize,
) -> Result<Vec<(PortNo, PortNo)>, TopologyError> {
    let mut used: Vec<BTreeSet<u16>> = vec![BTreeSet::new(); switch_count];
    let mut count = vec![0_usize; switch_count];
    let wanted = |cable: &Cable, (a, b): (usize, usize)| [(a, cable.a_port), (b, cable.b_port)];
    for (cable, &pair) in cables.iter().zip(ends) {
        for (node, port) in wanted(cable, pair) {
            let Some(taken) = used.get_mut(node) else { continue };
            count[node] += 1;
            let Some(port) = port else { continue };
            let name = nodes[node].name.clone();
            if port.0 == 0 || port.0 > MAX_PORT {
                return Err(TopologyError::PortRange { name, port, max: MAX_PORT });
            }
            if !taken.insert(port.0) {
                return Err(TopologyError::PortInUse { name, port });
            }
        }
    }
    let max = usize::from(MAX_PORT);
    if let Some(node) = (0..switch_count).find(|&node| count[node] > max) {
        let (name, ports) = (nodes[node].name.clone(), count[node]);
        return Err(TopologyError::TooManyPorts { name, ports, max });
    }
    let mut next = vec![1_u16; switch_count];
    let mut give = |node: usize, port: Option<PortNo>| {
        if node >= switch_count {
            return PortNo(0);
        }
        port.unwrap_or_else(|| {
            while used[node].contains(&next[node]) {
                next[node] += 1;
            }
            next[node] += 1;
            PortNo(next[node] - 1)
        })
    };
    Ok(cables
        .iter()
        .zip(ends)
        .map(|(cable, &(a, b))| (give(a, cable.a_port), give(b, cable.b_port)))
        .collect())
}

#[cfg(test)]
mod tests;
