//! Jobs between messages and the core's types. In: specifications with names. Out: jobs with ids and flows; and back, with where
//! each flow goes. Must not ask or tell anybody.

use super::{Core, FlowId, JobId, Side, Span, Status, proto};
use crate::plan::path_names;
use crate::topology::Topology;
use crate::topology::suggest::hint;
use crate::units::Bytes;
use crate::workload::scenario::{MAX_GRADIENT, MAX_SPAN};
use crate::workload::{Flow, Job, Transport, ring_flows_over};
use std::collections::BTreeSet;

/// Longest name of a job: a line of a table.
const NAME_MAX: usize = 128;

/// Jobs with ids that are free, each with its flows.
pub fn read(core: &Core, specs: &[proto::JobSpec]) -> Result<Vec<(Job, Vec<Flow>)>, Status> {
    let topology = core.topology();
    let mut names: BTreeSet<&str> = core.jobs().map(|(job, _)| job.name.as_str()).collect();
    let (mut next, mut first) = core.next_ids();
    let mut room = core.room_for_flows();
    let mut jobs = Vec::with_capacity(specs.len());
    for spec in specs {
        if !names.insert(&spec.name) {
            let text =
                format!("there is a job '{}' already; cancel it or take another name", spec.name);
            return Err(Status::already_exists(text));
        }
        let wrong = |what: String| Status::invalid_argument(format!("job '{}': {what}", spec.name));
        let job = job(topology, spec, next).map_err(wrong)?;
        let transport = transport(spec.transport.as_ref()).map_err(wrong)?;
        // Before they are built: a number of channels is quickly written.
        let flows = job.ranks.len() * usize::from(job.channels);
        if flows > room {
            return Err(wrong(format!(
                "{flows} flows are more than the {room} for which there is room; use fewer channels"
            )));
        }
        room -= flows;
        let flows = ring_flows_over(topology, &job, first, transport)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        next = JobId(next.0.saturating_add(1));
        first = FlowId::from(first.index() + flows.len());
        jobs.push((job, flows));
    }
    Ok(jobs)
}

fn job(topology: &Topology, spec: &proto::JobSpec, id: JobId) -> Result<Job, String> {
    if spec.name.is_empty() || spec.name.len() > NAME_MAX || spec.name.contains(char::is_control) {
        return Err(format!("a name has 1 to {NAME_MAX} visible characters"));
    }
    let host = |name: &String| {
        let node = topology.find(name).and_then(|node| topology.as_host(node));
        node.ok_or_else(|| {
            let hosts =
                topology.hosts().map(|host| topology.node(topology.host_node(host)).name.as_str());
            format!("there is no host '{name}'{}", hint(name, hosts))
        })
    };
    let ranks = spec.hosts.iter().map(host).collect::<Result<Vec<_>, _>>()?;
    if spec.gradient_bytes == 0 || spec.gradient_bytes > MAX_GRADIENT {
        return Err(format!("gradient_bytes is {}; give 1 to {MAX_GRADIENT}", spec.gradient_bytes));
    }
    if Span(spec.compute_ns) > MAX_SPAN {
        return Err(format!("compute_ns is {}; give at most {}", spec.compute_ns, MAX_SPAN.0));
    }
    if !(0.0..=1.0).contains(&spec.overlap) {
        return Err(format!("overlap is {}; give a share from 0 to 1", spec.overlap));
    }
    let channels = u16::try_from(spec.channels.max(1))
        .map_err(|_| format!("channels is {}; give at most {}", spec.channels, u16::MAX))?;
    Ok(Job {
        id,
        name: spec.name.clone(),
        model: if spec.model.is_empty() { "custom".to_owned() } else { spec.model.clone() },
        ranks,
        gpus_per_rank: spec.gpus_per_host.max(1),
        gradient: Bytes(spec.gradient_bytes),
        compute: Span(spec.compute_ns),
        overlap: spec.overlap,
        jitter: 0.0,
        iterations: spec.iterations.max(1),
        start: Span::ZERO,
        channels,
    })
}

fn transport(given: Option<&proto::Transport>) -> Result<Transport, String> {
    use proto::transport::Kind;
    match given.and_then(|transport| transport.kind.as_ref()) {
        None | Some(Kind::RoceV2(_)) => Ok(Transport::RoceV2),
        Some(Kind::Tcp(tcp)) => {
            let first_port = u16::try_from(tcp.first_port)
                .map_err(|_| format!("first_port is {}; ports end at 65535", tcp.first_port))?;
            Ok(Transport::Tcp { first_port })
        }
    }
}

/// A job as it is told.
pub fn told(core: &Core, job: &Job, flows: &[FlowId]) -> proto::JobState {
    let topology = core.topology();
    let name = |host| topology.node(topology.host_node(host)).name.clone();
    let own = flows.iter().filter_map(|flow| core.flow_spec(*flow));
    proto::JobState {
        id: job.id.0,
        spec: Some(proto::JobSpec {
            name: job.name.clone(),
            model: job.model.clone(),
            hosts: job.ranks.iter().copied().map(name).collect(),
            gpus_per_host: job.gpus_per_rank,
            gradient_bytes: job.gradient.0,
            compute_ns: job.compute.0,
            overlap: job.overlap,
            iterations: job.iterations,
            channels: job.channels.into(),
            transport: own.clone().next().map(carried),
        }),
        ready: core.is_ready(job.id),
        iterations_done: core.iterations_done(job.id),
        membership: core.membership(job.id).map_or(0, |membership| membership.generation.0),
        flows: own.map(|flow| flow_state(core, flow)).collect(),
    }
}

/// The transport of a job by its first flow.
fn carried(first: &Flow) -> proto::Transport {
    use proto::transport::{Kind, RoceV2, Tcp};
    let kind = match (first.key.protocol, first.key.dst_port) {
        (6, Some(port)) => Kind::Tcp(Tcp { first_port: port.into() }),
        _ => Kind::RoceV2(RoceV2 {}),
    };
    proto::Transport { kind: Some(kind) }
}

fn flow_state(core: &Core, flow: &Flow) -> proto::FlowState {
    let topology = core.topology();
    let name = |host| topology.node(topology.host_node(host)).name.clone();
    let goal = core.goals().get(&flow.id);
    let path = goal.map_or_else(Vec::new, |goal| path_names(topology, &goal.path));
    let reached = goal.zip(core.flow(flow.id)).is_some_and(|(goal, state)| state.reached(goal));
    proto::FlowState {
        id: flow.id.0,
        channel: flow.channel.into(),
        source: name(flow.src),
        destination: name(flow.dst),
        bytes_per_iteration: flow.bytes,
        path: path.into_iter().map(str::to_owned).collect(),
        queue: goal.map_or(0, |goal| goal.route(Side::Forward).queue.into()),
        in_force: reached,
    }
}
