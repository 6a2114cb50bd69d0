//! `[[event]]`: what happens during the run.
//!
//! In: the sections, the fabric, the jobs. Out: events ascending by time, jobs with the start of their arrival.
//! Must not know: who reacts.

use super::draw::Draw;
use super::error::{Problem, ScenarioError};
use super::jobs::{Jobs, Nodes, host, span, span_or_range};
use super::read::MAX_EVENTS;
use super::toml_reader::{Entry, Section};
use super::{Event, EventKind};
use crate::id::{HostId, JobId, LinkId, NodeId};
use crate::time::Span;
use crate::topology::suggest::hint;
use crate::topology::{LinkSet, Topology};

const EVENT: &[&str] = &[
    "at",
    "kind",
    "target",
    "factor",
    "lasts",
    "source",
    "destination",
    "rate",
    "policy",
    "count",
];

/// Kinds with the keys that each takes besides `at` and `kind`.
const KINDS: [(&str, &[&str]); 11] = [
    ("host-slow", &["target", "factor", "lasts"]),
    ("host-fail", &["target"]),
    ("link-down", &["target"]),
    ("link-up", &["target"]),
    ("link-slow", &["target", "factor", "lasts"]),
    ("background-flow", &["source", "destination", "rate", "lasts"]),
    ("job-arrival", &["target"]),
    ("job-departure", &["target"]),
    ("replan", &[]),
    ("set-policy", &["policy"]),
    ("move-flows", &["count"]),
];
/// Longest text of a cable: two names of 128 characters and a dash.
const MAX_CABLE_TEXT: usize = 257;
/// Slowest host or link: below this it has failed, and times would only grow without bound.
const MIN_FACTOR: f64 = 0.001;

struct Context<'a> {
    topology: &'a Topology,
    nodes: &'a Nodes,
    draw: Draw,
    section: Section<'a>,
    kind: &'static str,
}

pub(super) fn read(
    top: &Section<'_>,
    topology: &Topology,
    jobs: &mut Jobs,
    seed: u64,
) -> Result<Vec<Event>, ScenarioError> {
    let Some(list) = top.get("event") else { return Ok(Vec::new()) };
    let entries = list.list("a list of [[event]] sections")?;
    let count = entries.len() as u64;
    if count > MAX_EVENTS {
        return Err(list.error(Problem::TooMany { what: "events", count, max: MAX_EVENTS }));
    }
    let nodes = std::mem::take(&mut jobs.nodes);
    let mut events: Vec<(Event, Section<'_>)> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        let section = entry.section(format!("[[event]] {}", i + 1), EVENT)?;
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
        let written = section.need("kind", "\"link-down\"")?.choice(&names)?;
        // `choice` returns one of the names.
        let Some(&(kind, keys)) = KINDS.iter().find(|kind| kind.0 == written) else { continue };
        section.only(kind, &[&["at", "kind"], keys].concat())?;
        let mut draw = Draw::new(seed, "event", i as u64);
        let (first, last) = span_or_range(&section.need("at", "\"2s\"")?)?;
        let at = draw.between(first, last);
        let mut context = Context { topology, nodes: &nodes, draw, section, kind };
        let kind = event(&mut context, jobs, at)?;
        events.push((Event { at, kind }, context.section));
    }
    events.sort_by_key(|(event, _)| event.at);
    check_order(&events, topology, jobs)?;
    Ok(events.into_iter().map(|(event, _)| event).collect())
}

fn event(context: &mut Context<'_>, jobs: &mut Jobs, at: Span) -> Result<EventKind, ScenarioError> {
    Ok(match context.kind {
        "host-slow" => {
            let (factor, lasts) = (context.factor()?, context.lasts()?);
            EventKind::HostSlow { host: context.host()?, factor, lasts }
        }
        "host-fail" => EventKind::HostFail { host: context.host()? },
        "link-down" => EventKind::LinkDown { link: context.cable()? },
        "link-up" => EventKind::LinkUp { link: context.cable()? },
        "link-slow" => {
            let (factor, lasts) = (context.factor()?, context.lasts()?);
            EventKind::LinkSlow { link: context.cable()?, factor, lasts }
        }
        "background-flow" => context.background()?,
        "job-arrival" => {
            let (job, entry) = context.job(jobs)?;
            if std::mem::replace(&mut jobs.has_start[job.index()], true) {
                let name = jobs.jobs[job.index()].name.clone();
                return Err(entry.error(Problem::StartTwice { key: entry.key.clone(), name }));
            }
            jobs.jobs[job.index()].start = at;
            EventKind::JobArrival { job }
        }
        "job-departure" => EventKind::JobDeparture { job: context.job(jobs)?.0 },
        "replan" => EventKind::Replan,
        "set-policy" => {
            EventKind::SetPolicy { policy: context.section.need("policy", "\"joint\"")?.name()? }
        }
        _ => EventKind::MoveFlows {
            count: context.section.need("count", "10")?.int(1, 1_000_000)? as u32,
        },
    })
}

impl<'a> Context<'a> {
    fn target(&self, example: &'static str) -> Result<Entry<'a>, ScenarioError> {
        self.section.need("target", example)
    }

    fn factor(&self) -> Result<f64, ScenarioError> {
        self.section.need("factor", "0.5")?.number(MIN_FACTOR, 1.0)
    }

    fn lasts(&self) -> Result<Option<Span>, ScenarioError> {
        self.section.get("lasts").map(|entry| span(&entry)).transpose()
    }

    fn host(&mut self) -> Result<HostId, ScenarioError> {
        let entry = self.target("\"h9\"")?;
        if entry.str("the name of a host in quotes")? == "random" {
            let hosts: Vec<HostId> = self.topology.hosts().collect();
            let key = entry.key.clone();
            return self
                .draw
                .one_of(&hosts)
                .ok_or_else(|| entry.error(Problem::NothingToDraw { key }));
        }
        host(&entry, self.topology, self.nodes)
    }

    /// The even link of a cable: `"leaf1-spine2"`, two names, a host's name for its only cable, or `"random"`.
    fn cable(&mut self) -> Result<LinkId, ScenarioError> {
        let entry = self.target("\"leaf1-spine2\"")?;
        if entry.is_list() {
            let ends = entry.list("two names")?;
            let [a, b] = ends.as_slice() else { return Err(bad_cable(&entry, "a list")) };
            return self.between(&entry, self.node(a)?, self.node(b)?);
        }
        let text = entry.str("a cable, such as \"leaf1-spine2\" or [\"leaf1\", \"spine2\"]")?;
        let topology = self.topology;
        if text == "random" {
            let cables: Vec<LinkId> =
                topology.cables().filter(|cable| topology.is_inner(*cable)).collect();
            let key = entry.key.clone();
            let drawn = self.draw.one_of(&cables);
            return drawn.ok_or_else(|| entry.error(Problem::NothingToDraw { key }));
        }
        if text.len() > MAX_CABLE_TEXT {
            return Err(bad_cable(&entry, text));
        }
        // Node names may contain '-': try every one of them as the separator.
        let splits = text.match_indices('-').map(|(i, _)| (&text[..i], &text[i + 1..]));
        for (a, b) in splits.clone() {
            if let (Some(&a), Some(&b)) = (self.nodes.get(a), self.nodes.get(b)) {
                return self.between(&entry, a, b);
            }
        }
        match text.split_once('-') {
            Some((a, b)) => {
                let unknown = if self.nodes.contains_key(a) { b } else { a };
                Err(self.unknown_node(&entry, unknown))
            }
            None => Err(bad_cable(&entry, text)),
        }
    }

    fn node(&self, entry: &Entry<'_>) -> Result<NodeId, ScenarioError> {
        let name = entry.str("the name of a node in quotes")?;
        self.nodes.get(name).copied().ok_or_else(|| self.unknown_node(entry, name))
    }

    fn unknown_node(&self, entry: &Entry<'_>, name: &str) -> ScenarioError {
        let nodes = self.topology.nodes();
        let hint = hint(name, nodes.iter().map(|node| node.name.as_str()));
        let (key, name) = (entry.key.clone(), name.chars().take(80).collect());
        entry.error(Problem::UnknownNode { key, what: "host or switch", name, hint })
    }

    fn between(&self, entry: &Entry<'_>, a: NodeId, b: NodeId) -> Result<LinkId, ScenarioError> {
        let (topology, out) = (self.topology, self.topology.out_links(a));
        let name = |node| topology.node(node).name.clone();
        match out.iter().find(|&&link| topology.link(link).to == b) {
            Some(link) => Ok(LinkId(link.0 & !1)),
            None => Err(entry.error(Problem::NoCable {
                key: entry.key.clone(),
                a: name(a),
                b: name(b),
                neighbours: {
                    let names = out.iter().take(16).map(|&link| name(topology.link(link).to));
                    names.collect::<Vec<_>>().join(", ")
                },
            })),
        }
    }

    fn background(&self) -> Result<EventKind, ScenarioError> {
        let from = host(&self.section.need("source", "\"h1\"")?, self.topology, self.nodes)?;
        let entry = self.section.need("destination", "\"h9\"")?;
        let to = host(&entry, self.topology, self.nodes)?;
        if from == to {
            let name = self.topology.node(self.topology.host_node(to)).name.clone();
            return Err(entry.error(Problem::SameHost { key: entry.key.clone(), name }));
        }
        let entry = self.section.need("rate", "\"10Gbps\"")?;
        let rate: crate::units::BitRate = entry.unit()?;
        if rate.0 == 0 {
            let (key, value) = (entry.key.clone(), rate.to_string());
            let (min, max) = ("1bps".to_owned(), "the link's rate".to_owned());
            return Err(entry.error(Problem::OutOfRange { key, value, min, max }));
        }
        Ok(EventKind::BackgroundFlow { from, to, rate, lasts: self.lasts()? })
    }

    fn job(&self, jobs: &Jobs) -> Result<(JobId, Entry<'a>), ScenarioError> {
        let entry = self.target("\"bert-0\"")?;
        let name = entry.str("the name of a job in quotes")?;
        match jobs.by_name.get(name) {
            Some(&job) => Ok((job, entry)),
            None => Err(entry.error(Problem::UnknownJob {
                key: entry.key.clone(),
                name: name.chars().take(80).collect(),
                hint: hint(name, jobs.by_name.keys().map(String::as_str)),
            })),
        }
    }
}

fn bad_cable(entry: &Entry<'_>, text: &str) -> ScenarioError {
    let value = text.chars().take(80).collect();
    entry.error(Problem::BadCable { key: entry.key.clone(), value })
}

/// What can only be seen once all events stand in order.
fn check_order(
    events: &[(Event, Section<'_>)],
    topology: &Topology,
    jobs: &Jobs,
) -> Result<(), ScenarioError> {
    let mut down = LinkSet::new();
    for (event, section) in events {
        let key = "target".to_owned();
        match &event.kind {
            EventKind::LinkDown { link } => {
                down.insert(*link);
            }
            EventKind::LinkUp { link } if !down.remove(*link) => {
                let link = topology.link(*link);
                let name = |node| topology.node(node).name.clone();
                let (a, b) = (name(link.from), name(link.to));
                return Err(section.error(Problem::NotDown { key, a, b }));
            }
            EventKind::JobDeparture { job } if event.at < jobs.jobs[job.index()].start => {
                let job = &jobs.jobs[job.index()];
                let (name, start) = (job.name.clone(), job.start.to_string());
                return Err(section.error(Problem::DepartsEarly { key, name, start }));
            }
            _ => {}
        }
    }
    Ok(())
}
