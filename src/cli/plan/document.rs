//! The JSON of `ringpath plan -o json`. Keys are stable; times in seconds, rates in bit/s, all numbers finite.
//!
//! `path` lists node names from source host to destination host; each pair of neighbours is one entry of `links`, which
//! has one entry per direction of a cable. Parallel cables between two nodes are named apart by a name of their own
//! between the nodes' names (`leaf1:3=spine1:2`: the ports they use), in `path` as in `links`.

use super::Case;
use super::figures::Figures;
use crate::id::LinkId;
use crate::plan::Plan;
use crate::topology::{Path, Topology};
use serde::Serialize;
use std::collections::BTreeMap;

/// See the module.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Policy.
    pub solver: String,
    /// Seed of scenario and policy.
    pub seed: u64,
    /// What was optimised and what was reached.
    pub objective: Value,
    /// What no plan can beat.
    pub bounds: Vec<Bound>,
    /// Distance of the objective from its bound relative to the bound; null where there is no bound.
    pub gap: Option<f64>,
    /// Sum over jobs of `drain_s`.
    pub drain_sum_s: f64,
    /// Proven lower bound of `drain_sum_s` over all plans.
    pub drain_bound_s: f64,
    /// Directed links.
    pub links: Vec<LinkRow>,
    /// Jobs, in order of submission.
    pub jobs: Vec<JobRow>,
    /// Flows by id.
    pub flows: Vec<FlowRow>,
}

/// A named value with its unit.
#[derive(Debug, Serialize)]
pub struct Value {
    /// Name of the objective.
    pub name: &'static str,
    /// Its value; higher is better for `utilisation` only.
    pub value: f64,
    /// `s`, or `1` for ratios.
    pub unit: &'static str,
}

/// A named bound.
#[derive(Debug, Serialize)]
pub struct Bound {
    /// What it bounds.
    pub name: &'static str,
    /// The bound, in the unit of what it bounds.
    pub value: f64,
}

/// A directed link.
#[derive(Debug, Serialize)]
pub struct LinkRow {
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Capacity now.
    pub capacity_bps: u64,
}

/// A job.
#[derive(Debug, Serialize)]
pub struct JobRow {
    /// Its name.
    pub name: String,
    /// Mean communication time of an iteration in the simulation.
    pub comm_s: f64,
    /// Largest `drain_s` of its flows.
    pub drain_s: f64,
}

/// A flow.
#[derive(Debug, Serialize)]
pub struct FlowRow {
    /// Its job's name.
    pub job: String,
    /// Its channel.
    pub channel: u16,
    /// Sending host.
    pub src: String,
    /// Receiving host.
    pub dst: String,
    /// Bytes per iteration.
    pub bytes: u64,
    /// Strict-priority queue, larger first.
    pub queue: u8,
    /// Node names.
    pub path: Vec<String>,
    /// Rate when all flows start.
    pub rate0_bps: f64,
    /// Completion when all flows start at 0.
    pub drain_s: f64,
}

impl Document {
    /// Puts the figures together.
    ///
    /// # Errors
    /// A figure that is not finite (a flow without capacity).
    pub fn new(case: &Case, plan: &Plan, figures: &Figures) -> anyhow::Result<Self> {
        let names = Names::new(&case.topology);
        let (name, value, unit) = figures.objective;
        let bounds = figures.bounds.iter().map(|&(name, value)| Bound { name, value });
        let jobs = case.scenario.jobs.iter().enumerate().map(|(id, job)| JobRow {
            name: job.name.clone(),
            comm_s: figures.comm[id],
            drain_s: figures.drain.job[id],
        });
        let flows =
            case.flows.iter().zip(&plan.assignments).enumerate().map(|(id, (flow, given))| {
                let host = |host| case.topology.node(case.topology.host_node(host)).name.clone();
                FlowRow {
                    job: case.scenario.jobs[flow.job.index()].name.clone(),
                    channel: flow.channel,
                    src: host(flow.src),
                    dst: host(flow.dst),
                    bytes: flow.bytes,
                    queue: given.queue,
                    path: names.path(&given.path),
                    rate0_bps: figures.drain.rate0[id] * 8.0,
                    drain_s: figures.drain.flow[id],
                }
            });
        let document = Self {
            solver: plan.policy.clone(),
            seed: case.scenario.seed,
            objective: Value { name, value, unit },
            bounds: bounds.collect(),
            gap: figures.gap,
            drain_sum_s: figures.drain.sum(),
            drain_bound_s: figures.drain_bound,
            links: names.links(),
            jobs: jobs.collect(),
            flows: flows.collect(),
        };
        document.check_finite()?;
        Ok(document)
    }

    /// JSON has no infinity: a figure that is not finite would turn into null without a word.
    fn check_finite(&self) -> anyhow::Result<()> {
        let own =
            [self.objective.value, self.drain_sum_s, self.drain_bound_s, self.gap.unwrap_or(0.0)];
        let jobs = self.jobs.iter().flat_map(|job| [job.comm_s, job.drain_s]);
        let flows = self.flows.iter().flat_map(|flow| [flow.rate0_bps, flow.drain_s]);
        let bounds = self.bounds.iter().map(|bound| bound.value);
        let all = own.into_iter().chain(jobs).chain(flows).chain(bounds);
        match all.into_iter().find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => anyhow::bail!(
                "a figure of the plan is {value}: some flow never completes; check links of rate 0 in the scenario"
            ),
        }
    }
}

/// Node names, and names for parallel cables.
struct Names<'a> {
    topology: &'a Topology,
    /// Names of cables (by even link) that have a parallel one.
    parallel: BTreeMap<LinkId, String>,
}

impl<'a> Names<'a> {
    fn new(topology: &'a Topology) -> Self {
        let mut between: BTreeMap<_, Vec<LinkId>> = BTreeMap::new();
        for cable in topology.cables() {
            let link = topology.link(cable);
            let ends = (link.from.min(link.to), link.from.max(link.to));
            between.entry(ends).or_default().push(cable);
        }
        let name = |id: LinkId| {
            let link = topology.link(id);
            let end = |node, port| format!("{}:{port}", topology.node(node).name);
            (id, format!("{}={}", end(link.from, link.from_port), end(link.to, link.to_port)))
        };
        let parallel =
            between.into_values().filter(|cables| cables.len() > 1).flatten().map(name).collect();
        Self { topology, parallel }
    }

    fn cable(&self, link: LinkId) -> Option<&String> {
        self.parallel.get(&LinkId(link.0 & !1))
    }

    fn path(&self, path: &Path) -> Vec<String> {
        let name = |node| self.topology.node(node).name.clone();
        let mut names = Vec::new();
        for &link in &path.links {
            if names.is_empty() {
                names.push(name(self.topology.link(link).from));
            }
            names.extend(self.cable(link).cloned());
            names.push(name(self.topology.link(link).to));
        }
        names
    }

    fn links(&self) -> Vec<LinkRow> {
        let mut rows = Vec::new();
        for (i, link) in self.topology.links().iter().enumerate() {
            let name = |node| self.topology.node(node).name.clone();
            let (from, to, capacity_bps) = (name(link.from), name(link.to), link.rate.0);
            match self.cable(LinkId::from(i)) {
                None => rows.push(LinkRow { from, to, capacity_bps }),
                Some(cable) => {
                    rows.push(LinkRow { from, to: cable.clone(), capacity_bps });
                    rows.push(LinkRow { from: cable.clone(), to, capacity_bps });
                }
            }
        }
        rows
    }
}
