//! `[[job]]` and `[placement]`.
//!
//! In: the sections and the fabric. Out: jobs with hosts. Must not know: events.

use super::contention_free_iteration;
use super::draw::Draw;
use super::error::{Problem, ScenarioError};
use super::read::MAX_JOBS;
use super::toml_reader::{Entry, Section};
use crate::id::{HostId, JobId, NodeId};
use crate::time::Span;
use crate::topology::Topology;
use crate::topology::suggest::hint;
use crate::units::Bytes;
use crate::workload::place::{RingOrder, place};
use crate::workload::{FlowError, Job, flows, models};
use std::collections::BTreeMap;

const JOB: &[&str] = &[
    "name",
    "model",
    "bytes",
    "workers",
    "compute",
    "compute_spread",
    "iterations",
    "start",
    "overlap",
    "jitter",
    "channels",
    "gpus",
    "count",
    "ring_order",
];
const PLACEMENT: &[&str] = &["jobs_per_host", "ring"];

/// Jobs per host unless the file says otherwise: one NIC, one job.
const DEFAULT_JOBS_PER_HOST: u64 = 1;
const DEFAULT_ITERATIONS: u64 = 10;
/// GPUs per host and job unless the file says otherwise.
const DEFAULT_GPUS: u64 = 8;
/// Largest gradient: 1 PB per iteration would be a slip of the unit.
pub const MAX_GRADIENT: u64 = 1_000_000_000_000_000;
/// Longest compute time and start, for the same reason: one day.
pub const MAX_SPAN: Span = Span(86_400_000_000_000);

/// Jobs, and what events need to know about them.
pub(super) struct Jobs {
    pub(super) jobs: Vec<Job>,
    pub(super) nodes: Nodes,
    pub(super) by_name: BTreeMap<String, JobId>,
    /// Whether the file gives the job a start.
    pub(super) has_start: Vec<bool>,
    /// Jobs whose ring order is open.
    pub(super) any_order: Vec<JobId>,
}

/// One `[[job]]` before its hosts are known.
struct Wanted {
    job: Job,
    workers: Workers,
    start: Start,
    spread: f64,
    any_order: bool,
}

enum Workers {
    Hosts,
    Count(usize),
}

enum Start {
    Absent,
    Between(Span, Span),
    /// Uniform over one contention-free iteration.
    Random,
}

/// Nodes by name, so that long lists of hosts are read in reasonable time.
pub(super) type Nodes = BTreeMap<String, NodeId>;

pub(super) fn read(
    top: &Section<'_>,
    topology: &Topology,
    seed: u64,
) -> Result<Jobs, ScenarioError> {
    let (per_host, ring) = placement(top)?;
    let named = topology.nodes().iter().enumerate();
    let nodes: Nodes = named.map(|(i, node)| (node.name.clone(), NodeId::from(i))).collect();
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut by_name = BTreeMap::new();
    let entries = match top.get("job") {
        None => Vec::new(),
        Some(entry) => entry.list("a list of [[job]] sections")?,
    };
    for (i, entry) in entries.iter().enumerate() {
        let section = entry.section(format!("[[job]] {}", i + 1), JOB)?;
        let count = section.int_or("count", 1, 1, MAX_JOBS)?;
        let base = section.need("name", "\"bert-0\"")?;
        for copy in 0..count {
            let name = match section.get("count") {
                None => base.name()?,
                Some(_) => format!("{}-{copy}", base.name()?),
            };
            let id = JobId::from(wanted.len());
            if wanted.len() as u64 >= MAX_JOBS {
                let count = wanted.len() as u64 + 1;
                return Err(section.error(Problem::TooMany { what: "jobs", count, max: MAX_JOBS }));
            }
            if by_name.insert(name.clone(), id).is_some() {
                return Err(base.error(Problem::DuplicateJob { name }));
            }
            wanted.push(job(&section, id, name, (topology, &nodes))?);
        }
    }
    if wanted.is_empty() {
        return Err(top.source.whole(Problem::NoJobs));
    }
    place_all(&mut wanted, topology, (per_host, ring), seed)
        .map_err(|source| top.source.whole(Problem::NoRoom { source }))?;
    let open = wanted.iter().filter(|wanted| wanted.any_order);
    let any_order = open.map(|wanted| wanted.job.id).collect();
    let has_start = wanted.iter().map(|job| !matches!(job.start, Start::Absent)).collect();
    let jobs = wanted.into_iter().map(|wanted| settle(wanted, topology, seed)).collect();
    Ok(Jobs { jobs, nodes, by_name, has_start, any_order })
}

fn placement(top: &Section<'_>) -> Result<(u32, RingOrder), ScenarioError> {
    let Some(entry) = top.get("placement") else {
        return Ok((DEFAULT_JOBS_PER_HOST as u32, RingOrder::Sorted));
    };
    let section = entry.section("[placement]".into(), PLACEMENT)?;
    let per_host = section.int_or("jobs_per_host", DEFAULT_JOBS_PER_HOST, 1, 64)? as u32;
    let ring = match section.get("ring") {
        None => RingOrder::Sorted,
        Some(entry) => match entry.choice(&["sorted", "shuffled"])?.as_str() {
            "sorted" => RingOrder::Sorted,
            _ => RingOrder::Shuffled,
        },
    };
    Ok((per_host, ring))
}

fn job(
    section: &Section<'_>,
    id: JobId,
    name: String,
    (topology, nodes): (&Topology, &Nodes),
) -> Result<Wanted, ScenarioError> {
    section.not_both("model", "bytes", "a model has its size")?;
    let (model, gradient, compute) = size(section)?;
    let (workers, ranks) = workers(section, topology, nodes)?;
    let max = topology.host_count() as u64;
    let job = Job {
        id,
        name,
        model,
        ranks,
        gpus_per_rank: section.int_or("gpus", DEFAULT_GPUS, 1, 1024)? as u32,
        gradient,
        compute,
        overlap: section.number_or("overlap", 0.0, 0.0, 1.0)?,
        jitter: section.number_or("jitter", 0.0, 0.0, 0.5)?,
        iterations: section.int_or("iterations", DEFAULT_ITERATIONS, 1, 1_000_000)? as u32,
        start: Span::ZERO,
        channels: section.int_or("channels", 1, 1, 64)? as u16,
    };
    if let Workers::Hosts = workers {
        let source = flows(topology, std::slice::from_ref(&job)).err();
        if let Some(source) = source {
            let entry = section.need("workers", "4")?;
            return Err(entry.error(Problem::Ring { key: "workers".into(), source }));
        }
    } else if let Workers::Count(n) = workers
        && n as u64 > max
    {
        let entry = section.need("workers", "4")?;
        let (key, value) = ("workers".to_owned(), n.to_string());
        let (min, max) = ("2".to_owned(), format!("{max}, the hosts of the fabric"));
        return Err(entry.error(Problem::OutOfRange { key, value, min, max }));
    }
    let start = start(section)?;
    let spread = section.number_or("compute_spread", 0.0, 0.0, 0.5)?;
    let any_order = match section.get("ring_order") {
        None => false,
        Some(entry) => entry.choice(&["given", "any"])? == "any",
    };
    Ok(Wanted { job, workers, start, spread, any_order })
}

/// Model name, gradient and compute time.
fn size(section: &Section<'_>) -> Result<(String, Bytes, Span), ScenarioError> {
    let row = match section.get("model") {
        None => None,
        Some(entry) => {
            let name = entry.str("the name of a model in quotes")?;
            let names = || models::MODELS.iter().map(|model| model.name);
            Some(models::find(name).ok_or_else(|| {
                entry.error(Problem::UnknownModel {
                    model: name.chars().take(80).collect(),
                    hint: hint(name, names()),
                    known: names().collect::<Vec<_>>().join(", "),
                })
            })?)
        }
    };
    let compute = match (section.get("compute"), row) {
        (Some(entry), _) => span(&entry)?,
        (None, Some(model)) => model.compute(),
        (None, None) if section.get("bytes").is_none() => {
            return Err(section.error(Problem::NoSize { section: section.name.clone() }));
        }
        (None, None) => span(&section.need("compute", "\"290ms\"")?)?,
    };
    let (name, gradient) = match (row, section.get("bytes")) {
        (Some(model), _) => (model.name, model.gradient()),
        (None, Some(entry)) => {
            let bytes: Bytes = entry.unit()?;
            if !(1..=MAX_GRADIENT).contains(&bytes.0) {
                let (min, max) = (Bytes(1).to_string(), Bytes(MAX_GRADIENT).to_string());
                let (key, value) = (entry.key.clone(), bytes.to_string());
                return Err(entry.error(Problem::OutOfRange { key, value, min, max }));
            }
            ("custom", bytes)
        }
        (None, None) => {
            return Err(section.error(Problem::NoSize { section: section.name.clone() }));
        }
    };
    Ok((name.to_owned(), gradient, compute))
}

/// A time of at most a day.
pub(super) fn span(entry: &Entry<'_>) -> Result<Span, ScenarioError> {
    let span: Span = entry.unit()?;
    if span > MAX_SPAN {
        let (key, value) = (entry.key.clone(), span.to_string());
        let (min, max) = ("0s".to_owned(), MAX_SPAN.to_string());
        return Err(entry.error(Problem::OutOfRange { key, value, min, max }));
    }
    Ok(span)
}

/// A time, or `[earliest, latest]` to draw from.
pub(super) fn span_or_range(entry: &Entry<'_>) -> Result<(Span, Span), ScenarioError> {
    if !entry.is_list() {
        let at = span(entry)?;
        return Ok((at, at));
    }
    let wanted = "a time such as \"1s\" or two of them [earliest, latest]";
    match entry.list(wanted)?.as_slice() {
        [first, last] => {
            let (first, last) = (span(first)?, span(last)?);
            if first > last {
                return Err(entry.error(Problem::EmptyRange { key: entry.key.clone() }));
            }
            Ok((first, last))
        }
        _ => {
            let (key, found) = (entry.key.clone(), "a list of another length".to_owned());
            Err(entry.error(Problem::WrongType { key, found, wanted }))
        }
    }
}

fn start(section: &Section<'_>) -> Result<Start, ScenarioError> {
    match section.get("start") {
        None => Ok(Start::Absent),
        Some(entry) if entry.is_str() && entry.str("")? == "random" => Ok(Start::Random),
        Some(entry) => span_or_range(&entry).map(|(first, last)| Start::Between(first, last)),
    }
}

fn workers(
    section: &Section<'_>,
    topology: &Topology,
    nodes: &Nodes,
) -> Result<(Workers, Vec<HostId>), ScenarioError> {
    let entry = section.need("workers", "4 (or a list of hosts in ring order)")?;
    if !entry.is_list() {
        let wanted = "a number of workers or a list of hosts";
        return match entry.int(2, u64::from(u16::MAX)) {
            Ok(n) => Ok((Workers::Count(n as usize), Vec::new())),
            Err(mut error) => {
                if let Problem::WrongType { wanted: said, .. } = &mut *error.problem {
                    *said = wanted;
                }
                Err(error)
            }
        };
    }
    let names = entry.list("a list of hosts")?;
    let hosts =
        names.iter().map(|name| host(name, topology, nodes)).collect::<Result<Vec<_>, _>>()?;
    if hosts.len() > usize::from(u16::MAX) || hosts.len() < 2 {
        let (job, ranks) = (section.name.clone(), hosts.len());
        let source = FlowError::TooFewRanks { job, ranks };
        return Err(entry.error(Problem::Ring { key: entry.key.clone(), source }));
    }
    Ok((Workers::Hosts, hosts))
}

/// The host of a name.
pub(super) fn host(
    entry: &Entry<'_>,
    topology: &Topology,
    nodes: &Nodes,
) -> Result<HostId, ScenarioError> {
    let name = entry.str("the name of a host in quotes")?;
    match nodes.get(name).map(|&node| topology.as_host(node)) {
        Some(Some(host)) => Ok(host),
        Some(None) => Err(entry.error(Problem::WrongNode {
            key: entry.key.clone(),
            name: name.to_owned(),
            is: "switch",
            needs: "host",
        })),
        None => {
            let hosts = &topology.nodes()[topology.switch_count()..];
            let mut hint = hint(name, hosts.iter().map(|host| host.name.as_str()));
            if let (true, [first, .., last]) = (hint.is_empty(), hosts) {
                hint = format!("; its hosts are {} to {}", first.name, last.name);
            }
            let name = name.chars().take(80).collect();
            Err(entry.error(Problem::UnknownNode {
                key: entry.key.clone(),
                what: "host",
                name,
                hint,
            }))
        }
    }
}

fn place_all(
    wanted: &mut [Wanted],
    topology: &Topology,
    (per_host, ring): (u32, RingOrder),
    seed: u64,
) -> Result<(), crate::workload::place::NoRoom> {
    let mut taken = vec![0_u32; topology.host_count()];
    for host in wanted.iter().flat_map(|wanted| &wanted.job.ranks) {
        taken[host.index()] += 1;
    }
    let counts: Vec<usize> = wanted
        .iter()
        .filter_map(|wanted| match wanted.workers {
            Workers::Count(n) => Some(n),
            Workers::Hosts => None,
        })
        .collect();
    let mut rings = place(&counts, &taken, per_host, ring, seed)?.into_iter();
    for wanted in wanted {
        if let Workers::Count(_) = wanted.workers {
            wanted.job.ranks = rings.next().unwrap_or_default();
        }
    }
    Ok(())
}

/// Draws what the file leaves open once the hosts are known.
fn settle(wanted: Wanted, topology: &Topology, seed: u64) -> Job {
    let Wanted { mut job, start, spread, .. } = wanted;
    let index = u64::from(job.id.0);
    job.compute = Draw::new(seed, "compute-spread", index).spread(job.compute, spread);
    let mut phase = Draw::new(seed, "start", index);
    job.start = match start {
        Start::Absent => Span::ZERO,
        Start::Between(first, last) => phase.between(first, last),
        Start::Random => phase.between(Span::ZERO, contention_free_iteration(topology, &job)),
    };
    job
}
