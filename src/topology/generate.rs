//! Fabrics from a few numbers.
//!
//! In: sizes and rates. Out: a [`Topology`]. Must not know: files.
//!
//! Names: `leaf1`, `spine1`, `h1`; in a fat-tree `edge1`, `agg1`, `core1`. Hosts are numbered leaf by leaf.

use super::{Cable, Node, NodeKind, Topology, TopologyError, address};
use crate::time::Span;
use crate::units::BitRate;
use serde::{Deserialize, Serialize};

/// Most hosts per leaf: one leaf is one /24 (see [`address`]).
pub const MAX_HOSTS_PER_LEAF: u32 = 254;
/// Most cables of a generated fabric: a fat-tree of 40-port switches has 48,000; more is surely a typing error and
/// would only fill memory.
pub const MAX_CABLES: u64 = 1 << 16;
/// Propagation delay of a cable unless the file says otherwise: 100 m of fibre at 5 ns/m.
pub const DEFAULT_DELAY: Span = Span(500);

/// Why the numbers do not make a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// A count that must not be 0.
    #[error("{what} is 0; give at least 1")]
    Zero {
        /// Which count.
        what: &'static str,
    },
    /// More hosts on one leaf than one prefix has addresses.
    #[error(
        "{hosts} hosts per leaf are too many; a leaf has one /24 prefix, that is at most {max}"
    )]
    HostsPerLeaf {
        /// Hosts per leaf wanted.
        hosts: u32,
        /// Most.
        max: u32,
    },
    /// More cables than anything real.
    #[error(
        "the fabric would have {cables} cables; at most {max} are supported, use smaller counts"
    )]
    TooLarge {
        /// Cables wanted.
        cables: u64,
        /// Most.
        max: u64,
    },
    /// Spines cannot be divided by the oversubscription.
    #[error(
        "oversubscription {oversubscription} does not divide {spines} spines; choose a divisor, or `thin = true` to \
         narrow the links instead of removing spines"
    )]
    Oversubscription {
        /// Factor wanted.
        oversubscription: u32,
        /// Spines at 1:1.
        spines: u32,
    },
    /// A fat-tree needs an even number of ports.
    #[error("a fat-tree needs an even k between 2 and 40, not {k}")]
    FatTreeK {
        /// Ports per switch.
        k: u32,
    },
    /// The result is no fabric.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Two layers: every leaf is cabled once to every spine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeafSpine {
    /// Leaves, at least 1.
    pub leaves: u32,
    /// Spines at oversubscription 1, at least 1.
    pub spines: u32,
    /// Hosts on each leaf, 1..=254.
    pub hosts_per_leaf: u32,
    /// Rate of host cables.
    pub host_link: BitRate,
    /// Rate of leaf-spine cables at oversubscription 1.
    pub fabric_link: BitRate,
    /// Propagation delay of every cable.
    pub delay: Span,
    /// Factor by which the capacity above the leaves is cut, at least 1.
    pub oversubscription: u32,
    /// Cut it by narrower cables (`true`) or by fewer spines (`false`). What can be gained differs by a factor.
    pub thin: bool,
}

impl LeafSpine {
    /// The size most examples use: `leaves` x `spines`, 1:1, all cables at `rate`.
    #[must_use]
    pub fn new(leaves: u32, spines: u32, hosts_per_leaf: u32, rate: BitRate) -> Self {
        Self {
            leaves,
            spines,
            hosts_per_leaf,
            host_link: rate,
            fabric_link: rate,
            delay: DEFAULT_DELAY,
            oversubscription: 1,
            thin: false,
        }
    }

    /// Makes the fabric.
    ///
    /// # Errors
    /// See [`GenerateError`].
    pub fn build(&self) -> Result<Topology, GenerateError> {
        for (what, count) in [
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("hosts_per_leaf", self.hosts_per_leaf),
            ("oversubscription", self.oversubscription),
        ] {
            if count == 0 {
                return Err(GenerateError::Zero { what });
            }
        }
        let (hosts, max) = (self.hosts_per_leaf, MAX_HOSTS_PER_LEAF);
        if hosts > max {
            return Err(GenerateError::HostsPerLeaf { hosts, max });
        }
        let (spines, fabric_link) = self.fabric()?;
        let per_leaf = u64::from(spines) + u64::from(hosts);
        check_size(u64::from(self.leaves) * per_leaf)?;

        let leaf = |l: u32| format!("leaf{}", l + 1);
        let spine = |s: u32| format!("spine{}", s + 1);
        let mut nodes: Vec<Node> = (0..self.leaves).map(|l| switch(leaf(l), 0)).collect();
        nodes.extend((0..spines).map(|s| switch(spine(s), 1)));
        let mut cables = Vec::new();
        for l in 0..self.leaves {
            for h in 0..hosts {
                let name = format!("h{}", l * hosts + h + 1);
                nodes.push(host(name.clone(), l, h)?);
                cables.push(cable(name, leaf(l), self.host_link, self.delay));
            }
            for s in 0..spines {
                cables.push(cable(leaf(l), spine(s), fabric_link, self.delay));
            }
        }
        Ok(Topology::build(nodes, &cables)?)
    }

    /// Spines and fabric rate after oversubscription.
    fn fabric(&self) -> Result<(u32, BitRate), GenerateError> {
        let (oversubscription, spines) = (self.oversubscription, self.spines);
        if self.thin {
            Ok((spines, BitRate(self.fabric_link.0 / u64::from(oversubscription))))
        } else if spines.is_multiple_of(oversubscription) {
            Ok((spines / oversubscription, self.fabric_link))
        } else {
            Err(GenerateError::Oversubscription { oversubscription, spines })
        }
    }
}

/// Three layers of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 cores, k^3/4 hosts
/// (Al-Fares et al., SIGCOMM 2008).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FatTree {
    /// Ports per switch, even, 2..=40 (2,000 switches, 16,000 hosts).
    pub k: u32,
    /// Rate of host cables.
    pub host_link: BitRate,
    /// Rate of all cables between switches.
    pub fabric_link: BitRate,
    /// Propagation delay of every cable.
    pub delay: Span,
}

impl FatTree {
    /// Makes the fabric.
    ///
    /// # Errors
    /// See [`GenerateError`].
    pub fn build(&self) -> Result<Topology, GenerateError> {
        let k = self.k;
        if !k.is_multiple_of(2) || !(2..=40).contains(&k) {
            return Err(GenerateError::FatTreeK { k });
        }
        let half = k / 2;
        check_size(3 * u64::from(k).pow(3) / 4)?;
        let edge = |pod: u32, i: u32| format!("edge{}", pod * half + i + 1);
        let agg = |pod: u32, i: u32| format!("agg{}", pod * half + i + 1);
        let core = |i: u32| format!("core{}", i + 1);
        let pairs = |a: u32, b: u32| (0..a).flat_map(move |i| (0..b).map(move |j| (i, j)));

        let mut nodes: Vec<Node> = pairs(k, half).map(|(p, i)| switch(edge(p, i), 0)).collect();
        nodes.extend(pairs(k, half).map(|(p, i)| switch(agg(p, i), 1)));
        nodes.extend((0..half * half).map(|i| switch(core(i), 2)));
        let mut cables = Vec::new();
        for (pod, e) in pairs(k, half) {
            for h in 0..half {
                let leaf = pod * half + e;
                let name = format!("h{}", leaf * half + h + 1);
                nodes.push(host(name.clone(), leaf, h)?);
                cables.push(cable(name, edge(pod, e), self.host_link, self.delay));
            }
            for a in 0..half {
                cables.push(cable(edge(pod, e), agg(pod, a), self.fabric_link, self.delay));
            }
        }
        for (pod, a) in pairs(k, half) {
            for c in 0..half {
                let up = core(a * half + c);
                cables.push(cable(agg(pod, a), up, self.fabric_link, self.delay));
            }
        }
        Ok(Topology::build(nodes, &cables)?)
    }
}

fn check_size(cables: u64) -> Result<(), GenerateError> {
    if cables > MAX_CABLES {
        return Err(GenerateError::TooLarge { cables, max: MAX_CABLES });
    }
    Ok(())
}

fn switch(name: String, tier: u8) -> Node {
    Node { name, kind: NodeKind::Switch { tier } }
}

/// Host `h` (from 0) of leaf `leaf` (from 0).
fn host(name: String, leaf: u32, h: u32) -> Result<Node, GenerateError> {
    let too_large = || GenerateError::TooLarge { cables: u64::from(leaf), max: MAX_CABLES };
    let leaf = u16::try_from(leaf + 1).map_err(|_| too_large())?;
    let number = u8::try_from(h + 1)
        .map_err(|_| GenerateError::HostsPerLeaf { hosts: h + 1, max: MAX_HOSTS_PER_LEAF })?;
    let (ip, mac) = address(leaf, number);
    Ok(Node { name, kind: NodeKind::Host { ip, mac } })
}

fn cable(a: String, b: String, rate: BitRate, delay: Span) -> Cable {
    Cable { a, a_port: None, b, b_port: None, rate, delay }
}
