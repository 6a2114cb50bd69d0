//! A lower bound on the sum of job completion times that no choice of paths and queues can beat.
//!
//! In: link rates, what flows ask for. Out: seconds. Must not know: any plan.
//!
//! **Claim.** All flows start at 0. Take sets of links ("machines") such that every path of a flow that the machine
//! counts crosses the machine: a host's uplink, its downlink, and all links out of (or into) the switches below one
//! leaf or pod. Let `p(j, m)` be the bits of job j counted at m over the sum of m's link rates. Give every job j *one* machine
//! `m(j)`. Then in every plan `Σ C_j ≥ Σ_m S_m`, with `S_m` = the sum of prefix sums of the `p(j, m)` of the jobs given
//! to m in ascending order.
//!
//! **Proof.** Fix a plan and a machine m with jobs J, numbered so that `C_1 ≤ C_2 ≤ ...`. By time `C_k` all bits of jobs
//! 1..k counted at m have crossed m, and links carry at most their rate, so `C_k ≥ Σ_{i≤k} p(i, m)`. Summing over k gives
//! a sum of prefix sums in some order; ascending order makes that sum smallest (exchange two neighbours that are not
//! ascending: the sum does not grow). Every job is given to exactly one machine, so summing over machines counts every
//! `C_j` once. Priorities, preemption and fairness play no part: only conservation does. ∎
//!
//! Any gift of jobs to machines is valid; a large one is searched greedily: start with every job where it is slowest
//! alone, then give a machine all its jobs, or move one job, as long as that helps.

use super::Demand;
use crate::id::{HostId, JobId, LinkId};
use crate::topology::{LinkState, NodeKind, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of moves: each round costs jobs x machines sums, and gains become negligible after the first few.
const MAX_ROUNDS: usize = 8;
/// Above this many (job, machine) pairs with traffic moves are skipped; the bound stays valid.
const MAX_PAIRS: usize = 20_000;

/// Proven lower bound of the sum over jobs of their completion times, in seconds; see the head comment. 0 without
/// demands. Flows that cannot complete at all (their machine has rate 0) are left out.
#[must_use]
pub fn drain_sum(topology: &Topology, links: &LinkState, demands: &[Demand]) -> f64 {
    let machines = machines(topology, links, demands);
    let jobs: BTreeSet<JobId> = demands.iter().map(|demand| demand.job).collect();
    // Where each job is slowest alone.
    let alone: BTreeMap<JobId, usize> = jobs
        .iter()
        .filter_map(|&job| {
            let at = |&m: &usize| machines[m].get(&job).copied().unwrap_or(0.0);
            let slowest = (0..machines.len()).max_by(|a, b| at(a).total_cmp(&at(b)))?;
            Some((job, slowest))
        })
        .collect();
    let mut best = Gift::new(&machines, alone);
    if machines.iter().map(BTreeMap::len).sum::<usize>() <= MAX_PAIRS {
        best.improve();
    }
    best.total
}

/// Seconds that each job with traffic there needs on one machine.
type Machine = BTreeMap<JobId, f64>;

fn machines(topology: &Topology, links: &LinkState, demands: &[Demand]) -> Vec<Machine> {
    let mut machines = Vec::new();
    let rate = |link: LinkId| links.rate(topology, link).0 as f64;
    let mut sources: BTreeMap<HostId, BTreeMap<JobId, f64>> = BTreeMap::new();
    let mut sinks = sources.clone();
    for demand in demands {
        let bits = demand.bytes as f64 * 8.0;
        *sources.entry(demand.src).or_default().entry(demand.job).or_default() += bits;
        *sinks.entry(demand.dst).or_default().entry(demand.job).or_default() += bits;
    }
    let mut add = |bits: BTreeMap<JobId, f64>, capacity: f64| {
        if capacity > 0.0 && !bits.is_empty() {
            machines.push(bits.into_iter().map(|(job, bits)| (job, bits / capacity)).collect());
        }
    };
    for (host, bits) in sources {
        add(bits, rate(topology.uplink(host)));
    }
    for (host, bits) in sinks {
        add(bits, rate(topology.downlink(host)));
    }
    let top = topology.nodes().iter().map(|node| tier(&node.kind)).max().unwrap_or(0);
    for below in 1..=top {
        for group in groups(topology, below) {
            let (mut out, mut into) = (BTreeMap::new(), BTreeMap::new());
            for demand in demands {
                let inside = |host| group.contains(&topology.leaf_of(host).index());
                let bits = demand.bytes as f64 * 8.0;
                match (inside(demand.src), inside(demand.dst)) {
                    (true, false) => *out.entry(demand.job).or_default() += bits,
                    (false, true) => *into.entry(demand.job).or_default() += bits,
                    _ => {}
                }
            }
            let (leaving, entering) = crossing(topology, &group);
            add(out, leaving.into_iter().map(rate).sum());
            add(into, entering.into_iter().map(rate).sum());
        }
    }
    machines
}

fn tier(kind: &NodeKind) -> u8 {
    match kind {
        NodeKind::Switch { tier } => *tier,
        NodeKind::Host { .. } => 0,
    }
}

/// Connected groups of switches whose tier is less than `below`: leaves for 1, pods for 2.
fn groups(topology: &Topology, below: u8) -> Vec<BTreeSet<usize>> {
    let low =
        |node: usize| node < topology.switch_count() && tier(&topology.nodes()[node].kind) < below;
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for start in (0..topology.switch_count()).filter(|&node| low(node)) {
        if !seen.insert(start) {
            continue;
        }
        let mut group = BTreeSet::from([start]);
        let mut todo = vec![start];
        while let Some(node) = todo.pop() {
            for &link in topology.out_links(crate::id::NodeId::from(node)) {
                let to = topology.link(link).to.index();
                if low(to) && seen.insert(to) {
                    group.insert(to);
                    todo.push(to);
                }
            }
        }
        groups.push(group);
    }
    groups
}

/// Links between switches that leave and that enter a group.
fn crossing(topology: &Topology, group: &BTreeSet<usize>) -> (Vec<LinkId>, Vec<LinkId>) {
    let (mut leaving, mut entering) = (Vec::new(), Vec::new());
    for (i, link) in topology.links().iter().enumerate() {
        let outside = |node: usize| node < topology.switch_count() && !group.contains(&node);
        let (from, to) = (link.from.index(), link.to.index());
        if group.contains(&from) && outside(to) {
            leaving.push(LinkId::from(i));
        } else if outside(from) && group.contains(&to) {
            entering.push(LinkId::from(i));
        }
    }
    (leaving, entering)
}

/// One machine for each job.
struct Gift<'a> {
    machines: &'a [Machine],
    given: BTreeMap<JobId, usize>,
    /// Seconds at each machine, ascending.
    loads: Vec<Vec<f64>>,
    total: f64,
}

impl<'a> Gift<'a> {
    fn new(machines: &'a [Machine], given: BTreeMap<JobId, usize>) -> Self {
        let mut loads = vec![Vec::new(); machines.len()];
        for (job, &m) in &given {
            loads[m].push(machines[m].get(job).copied().unwrap_or(0.0));
        }
        for load in &mut loads {
            load.sort_by(f64::total_cmp);
        }
        let total = loads.iter().map(|load| prefix_sums(load)).sum();
        Self { machines, given, loads, total }
    }

    /// Whole machines, then single moves, in order, until a round brings nothing.
    fn improve(&mut self) {
        let jobs: Vec<JobId> = self.given.keys().copied().collect();
        for _ in 0..MAX_ROUNDS {
            let before = self.total;
            for (m, machine) in self.machines.iter().enumerate() {
                let mut given = self.given.clone();
                given.extend(machine.keys().map(|&job| (job, m)));
                let gift = Gift::new(self.machines, given);
                if gift.total > self.total {
                    *self = gift;
                }
            }
            for &job in &jobs {
                self.best_machine(job);
            }
            if self.total <= before * (1.0 + 1e-9) {
                return;
            }
        }
    }

    fn best_machine(&mut self, job: JobId) {
        let Some(&from) = self.given.get(&job) else { return };
        let load = |m: usize| self.machines[m].get(&job).copied();
        let mut without = self.loads[from].clone();
        let own = load(from).unwrap_or(0.0);
        if let Some(at) = without.iter().position(|&seconds| seconds == own) {
            without.remove(at);
        }
        let loss = prefix_sums(&self.loads[from]) - prefix_sums(&without);
        let mut best: Option<(f64, usize, Vec<f64>)> = None;
        for m in (0..self.machines.len()).filter(|&m| m != from) {
            let Some(seconds) = load(m) else { continue };
            let mut with = self.loads[m].clone();
            let at = with.partition_point(|&other| other < seconds);
            with.insert(at, seconds);
            let gain = prefix_sums(&with) - prefix_sums(&self.loads[m]) - loss;
            if gain > 0.0 && best.as_ref().is_none_or(|(most, ..)| gain > *most) {
                best = Some((gain, m, with));
            }
        }
        if let Some((_, m, with)) = best {
            self.given.insert(job, m);
            self.loads[from] = without;
            self.loads[m] = with;
            self.total = self.loads.iter().map(|load| prefix_sums(load)).sum();
        }
    }
}

/// `a₁ + (a₁ + a₂) + ...` of an ascending list.
fn prefix_sums(ascending: &[f64]) -> f64 {
    let mut prefix = 0.0;
    let mut sum = 0.0;
    for seconds in ascending {
        prefix += seconds;
        sum += prefix;
    }
    sum
}

#[cfg(test)]
mod tests;
