//! `ringpath fabric`: what a scenario file comes to, for whoever builds it: testbeds, scripts, people.
//!
//! In: a scenario file. Out: nodes, addresses, ports, cables, jobs with their hosts, events with their times. Must not build anything.

use super::{Exit, Format, grid};
use crate::workload::scenario::{Event, EventKind, Scenario};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `ringpath fabric`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Scenario file (TOML).
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Draws what the file leaves open; the file's own, or 0, by default.
    #[arg(long)]
    pub seed: Option<u64>,
    /// How it is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Prints the fabric.
///
/// # Errors
/// A scenario that cannot be read.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let scenario = super::scenario(&args.scenario, args.seed)?;
    grid::write(args.output, out, || document(&scenario), |out| tables(&scenario, out))?;
    Ok(Exit::Done)
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn document(scenario: &Scenario) -> Value {
    let topology = &scenario.topology;
    let name = |node| topology.node(node).name.clone();
    let host = |host| name(topology.host_node(host));
    json!({
        "name": scenario.name,
        "seed": scenario.seed,
        "queues": scenario.queues,
        "switches": topology.switches().map(|switch| name(topology.switch_node(switch))).collect::<Vec<_>>(),
        "hosts": topology.hosts().map(|id| json!({
            "name": host(id),
            "ip": topology.host_ip(id).to_string(),
            "mac": mac(topology.host_mac(id)),
        })).collect::<Vec<_>>(),
        "cables": topology.cables().map(|cable| topology.link(cable)).map(|link| json!({
            "a": name(link.from), "a_port": link.from_port.0, "b": name(link.to), "b_port": link.to_port.0,
            "rate_bps": link.rate.0, "delay_ns": link.delay.0,
        })).collect::<Vec<_>>(),
        "jobs": scenario.jobs.iter().map(|job| json!({
            "name": job.name,
            "hosts": job.ranks.iter().map(|rank| host(*rank)).collect::<Vec<_>>(),
            "gradient_bytes": job.gradient.0, "compute_ns": job.compute.0, "overlap": job.overlap, "jitter": job.jitter,
            "iterations": job.iterations, "start_ns": job.start.0, "channels": job.channels, "gpus_per_host": job.gpus_per_rank,
        })).collect::<Vec<_>>(),
        "events": scenario.events.iter().map(|event| told(scenario, event)).collect::<Vec<_>>(),
    })
}

/// An event with names in place of ids.
fn told(scenario: &Scenario, event: &Event) -> Value {
    let topology = &scenario.topology;
    let host = |id| topology.node(topology.host_node(id)).name.clone();
    let cable = |id| {
        let link = topology.link(id);
        json!([topology.node(link.from).name, topology.node(link.to).name])
    };
    let job = |id: crate::id::JobId| scenario.jobs.get(id.index()).map(|job| job.name.clone());
    let lasts = |lasts: Option<crate::time::Span>| lasts.map(|lasts| lasts.0);
    let mut value = match &event.kind {
        EventKind::HostSlow { host: id, factor, lasts: time } => {
            json!({ "kind": "host-slow", "host": host(*id), "factor": factor, "lasts_ns": lasts(*time) })
        }
        EventKind::HostFail { host: id } => json!({ "kind": "host-fail", "host": host(*id) }),
        EventKind::LinkDown { link } => json!({ "kind": "link-down", "cable": cable(*link) }),
        EventKind::LinkUp { link } => json!({ "kind": "link-up", "cable": cable(*link) }),
        EventKind::LinkSlow { link, factor, lasts: time } => {
            json!({ "kind": "link-slow", "cable": cable(*link), "factor": factor, "lasts_ns": lasts(*time) })
        }
        EventKind::BackgroundFlow { from, to, rate, lasts: time } => json!({
            "kind": "background-flow", "source": host(*from), "destination": host(*to), "rate_bps": rate.0,
            "lasts_ns": lasts(*time),
        }),
        EventKind::JobArrival { job: id } => json!({ "kind": "job-arrival", "job": job(*id) }),
        EventKind::JobDeparture { job: id } => json!({ "kind": "job-departure", "job": job(*id) }),
        EventKind::Replan => json!({ "kind": "replan" }),
        EventKind::SetPolicy { policy } => json!({ "kind": "set-policy", "policy": policy }),
        EventKind::MoveFlows { count } => json!({ "kind": "move-flows", "count": count }),
    };
    value["at_ns"] = event.at.0.into();
    value
}

fn tables(scenario: &Scenario, out: &mut dyn Write) -> std::io::Result<()> {
    let topology = &scenario.topology;
    let mut hosts = grid::grid(&["host", "address", "Ethernet", "switch", "port"], &[4]);
    for id in topology.hosts() {
        let up = topology.link(topology.uplink(id));
        hosts.add_row([
            topology.node(topology.host_node(id)).name.clone(),
            topology.host_ip(id).to_string(),
            mac(topology.host_mac(id)),
            topology.node(up.to).name.clone(),
            up.to_port.0.to_string(),
        ]);
    }
    writeln!(out, "{hosts}")?;
    let mut inner = grid::grid(&["switch", "port", "switch", "port", "rate"], &[1, 3, 4]);
    for cable in topology.cables().filter(|cable| topology.is_inner(*cable)) {
        let link = topology.link(cable);
        inner.add_row([
            topology.node(link.from).name.clone(),
            link.from_port.0.to_string(),
            topology.node(link.to).name.clone(),
            link.to_port.0.to_string(),
            link.rate.to_string(),
        ]);
    }
    writeln!(out, "{inner}")?;
    let mut jobs =
        grid::grid(&["job", "hosts in ring order", "bytes", "compute", "iterations"], &[2, 3, 4]);
    for job in &scenario.jobs {
        let ring =
            job.ranks.iter().map(|rank| topology.node(topology.host_node(*rank)).name.clone());
        jobs.add_row([
            job.name.clone(),
            ring.collect::<Vec<_>>().join(" "),
            job.gradient.to_string(),
            job.compute.to_string(),
            job.iterations.to_string(),
        ]);
    }
    writeln!(out, "{jobs}")
}
