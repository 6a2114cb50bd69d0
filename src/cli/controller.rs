//! `ringpath controller`: the controller as a process, for switches that are there already.
//!
//! In: a scenario file (its fabric; its jobs are submitted with `ringpath job`), the address of every switch. Out: one line with the
//! address of its service; then it runs until SIGINT or SIGTERM. What it promised is in the store; started again it goes on.

use super::flags::{Goal, Watch};
use super::target::TlsFlags;
use super::{Exit, exit, process};
use crate::controller::core::{Core, INTERVAL_FLOOR};
use crate::controller::driver::{Driver, Parts, Peer, api, metrics};
use crate::controller::store::RedbStore;
use crate::controller::{
    Artifacts, Config, FeedbackConfig, Input, Limits, Planning, ProbeConfig, policies,
};
use crate::p4runtime::p4info::Index;
use crate::pipeline::slots::Sizes;
use crate::pipeline::{Program, Settings};
use crate::time::Span;
use crate::topology::Topology;
use crate::topology::suggest::hint;
use crate::units::{BitRate, UnitError};
use crate::workload::scenario::Scenario;
use anyhow::Context as _;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

/// Evaluations per plan: about a quarter of a second for eight jobs, so that a plan does not keep events waiting long.
const EVALUATIONS: u64 = 2_000;
/// Start phases assumed while planning.
const PHASES: u32 = 4;
/// Bytes of a full packet with our tag.
const PACKET_BYTES: u64 = 1_538;

/// Arguments of `ringpath controller`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example, with two switches on this machine:
  ringpath switch --no-p4 --device-id 1 --priority-queues 8 --grpc-server-addr 127.0.0.1:50051 -i 1@veth1 &
  ringpath switch --no-p4 --device-id 2 --priority-queues 8 --grpc-server-addr 127.0.0.1:50052 -i 1@veth2 &
  ringpath controller fabric.toml --switch leaf1=127.0.0.1:50051,1 --switch leaf2=127.0.0.1:50052,2
  ringpath job submit fabric.toml")]
pub struct Args {
    /// Scenario file with the fabric. Its jobs and events are left alone.
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Where a switch of the fabric is: its name there, its P4Runtime address, its device id. Once per switch.
    #[arg(long = "switch", value_name = "NAME=HOST:PORT[,DEVICE]", value_parser = place)]
    pub switches: Vec<(String, Place)>,
    /// Where everything that must survive is kept; made if it is not there.
    #[arg(long, value_name = "FILE", default_value = "ringpath.redb")]
    pub store: PathBuf,
    /// Address of the controller's own service; loopback only, port 0 lets the system choose.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9580")]
    pub listen: SocketAddr,
    /// Offer the service on a Unix-domain socket here, too, for processes of the same user (or root) in other network namespaces; they say
    /// `--controller unix:PATH`.
    #[arg(long, value_name = "PATH")]
    pub local: Option<PathBuf>,
    /// Address of a page with figures for Prometheus, at /metrics; loopback only. None unless given.
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,
    /// TLS towards the switches.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Policy that plans.
    #[arg(long, value_name = "NAME", default_value = "joint")]
    pub policy: String,
    /// What planning minimises.
    #[arg(long, value_enum, default_value_t = Goal::Both)]
    pub objective: Goal,
    /// What is read of the fabric and done about stragglers.
    #[command(flatten)]
    pub watch: Watch,
    /// Queue of untagged packets with a DSCP, 0 (the default of all) to 6; once per code point.
    #[arg(long = "dscp", value_name = "DSCP=QUEUE", value_parser = class)]
    pub classes: Vec<(u8, u8)>,
    /// How often every cable between switches is probed in each direction, at least 10ms; three missed probes take it out of use, ten in a row
    /// bring it back. `0ms` sends none.
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub probe_interval: Span,
    /// Marks our entries on switches that others use, too; the same for all controllers of one fabric.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub cluster: String,
    /// Silence after which a flow changes path or queue, below 500ms; must exceed the longest wait in queues, or packets overtake. Default: 32
    /// packet times of the slowest link, at least 200us.
    #[arg(long, value_name = "TIME", value_parser = flip_gap)]
    pub flip_gap: Option<Span>,
    /// Seed of every random choice; the file's own, or 0, by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Replace another program on a switch, which clears the switch.
    #[arg(long)]
    pub force_pipeline: bool,
    /// Take switches over from another live controller.
    #[arg(long)]
    pub takeover: bool,
    /// Add every input here, one line each, from which every decision can be repeated; each start begins with its own boot line.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// Highest queue for untagged packets: the one above is for control (p4/README.md).
const QUEUE_MAX: u8 = 6;

fn class(text: &str) -> Result<(u8, u8), String> {
    let read = |text: &str, max: u8| text.parse::<u8>().ok().filter(|number| *number <= max);
    let class = text
        .split_once('=')
        .and_then(|(dscp, queue)| Some((read(dscp, 63)?, read(queue, QUEUE_MAX)?)));
    class.ok_or_else(|| {
        format!("'{text}' is no class; a code point from 0 to 63 and a queue from 0 to {QUEUE_MAX}, for example 40=5")
    })
}

/// Where a switch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    address: String,
    device_id: u64,
}

fn place(text: &str) -> Result<(String, Place), String> {
    let wrong = || format!("'{text}' is no switch; write for example leaf1=127.0.0.1:50051,1");
    let (name, place) = text.split_once('=').ok_or_else(wrong)?;
    let (address, device) = place.split_once(',').unwrap_or((place, "0"));
    let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    if name.is_empty() || port.is_none() {
        return Err(wrong());
    }
    let device_id = super::number(device)?;
    Ok((name.to_owned(), Place { address: address.to_owned(), device_id }))
}

/// A change that waited for no shorter a silence than the deadline would always be forced.
fn flip_gap(text: &str) -> Result<Span, String> {
    let gap: Span = text.parse().map_err(|error: UnitError| error.to_string())?;
    let deadline = Limits::default().flip_deadline;
    match gap < deadline {
        true => Ok(gap),
        false => Err(format!(
            "{gap} is not below {deadline}, after which changes are forced; give a shorter time"
        )),
    }
}

/// Runs the controller until a signal ends it.
///
/// # Errors
/// A scenario that cannot be read; a switch without an address or an address without a switch; a store that another process has;
/// an address that cannot be had; a store that fails later.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let scenario = super::scenario(&args.scenario, args.seed)?;
    let places = places(&scenario.topology, &args.switches)?;
    let store = RedbStore::open(&args.store)?;
    let record = args.record.as_ref().map(|path| {
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            // It holds this run's probe key, without which nothing could be decided again.
            .mode(0o600)
            .open(path)
            .with_context(|| format!("cannot write the recording {}", path.display()))?;
        anyhow::Ok(Box::new(BufWriter::new(file)) as Box<dyn Write + Send>)
    });
    let core = Core::new(config(args, &scenario, &places)?)?;
    let credentials = args.tls.load()?;
    let scheme = if credentials.is_some() { "https" } else { "http" };
    let peers = places.into_iter().map(|(name, place)| {
        let address = format!("{scheme}://{}", place.address);
        Peer { name, address, credentials: credentials.clone() }
    });
    let parts = Parts { core, store, peers: peers.collect(), record: record.transpose()? };
    let runtime = process::serving()?;
    let ended = runtime.block_on(async {
        // Before the address is told, so that whoever reads it may already send a signal.
        let stop = process::signals()?;
        let (driver, handle) = Driver::new(parts)?;
        // The store remembers the policy of the last plan; what is asked for now counts.
        handle.input(Input::SetPolicy { policy: args.policy.clone() }).await?;
        let service = api::Api::new(handle.clone());
        let serving = api::serve(args.listen, &service).await?;
        let _local = match &args.local {
            Some(path) => Some(api::serve_local(path, &service).await?),
            None => None,
        };
        let page = match args.metrics {
            Some(addr) => Some(metrics::serve(addr, handle.clone(), handle.call_times()).await?),
            None => None,
        };
        let metrics = page.as_ref().map_or_else(String::new, |page| {
            format!(", metrics on http://{}/metrics", page.addr())
        });
        process::announce(out, &format!("controller on {}{metrics}", serving.addr()))?;
        let running = tokio::spawn(driver.run());
        let stopped = async {
            stop.await;
            handle.stop().await;
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = running => ended.context("the controller broke off")?.context("the controller ended"),
            () = stopped => Ok(()),
        }
    });
    runtime.shutdown_background();
    ended.map(|()| Exit::Done)
}

/// One place per switch of the fabric, in its order.
fn places(topology: &Topology, given: &[(String, Place)]) -> anyhow::Result<Vec<(String, Place)>> {
    let names: Vec<String> = topology
        .switches()
        .map(|switch| topology.node(topology.switch_node(switch)).name.clone())
        .collect();
    let mut by_name: BTreeMap<&str, &Place> = BTreeMap::new();
    for (name, place) in given {
        if !names.contains(name) {
            let hint = hint(name, names.iter().map(String::as_str));
            return Err(exit::usage(format!(
                "--switch {name}: the fabric has no such switch{hint}"
            )));
        }
        if by_name.insert(name, place).is_some() {
            return Err(exit::usage(format!("--switch {name} is given twice")));
        }
    }
    let missing: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !by_name.contains_key(name)).collect();
    if !missing.is_empty() {
        let (count, list) = (missing.len(), missing.join(", "));
        return Err(exit::usage(format!(
            "{count} switches have no address: {list}; give --switch NAME=HOST:PORT,DEVICE for each"
        )));
    }
    let place =
        |name: String| by_name.get(name.as_str()).map(|&place| (name.clone(), place.clone()));
    Ok(names.into_iter().filter_map(place).collect())
}

/// The classes, each code point once.
fn classes(args: &Args) -> anyhow::Result<Vec<(u8, u8)>> {
    let mut classes = args.classes.clone();
    classes.sort_unstable();
    match classes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(exit::usage(format!("--dscp {} is given twice", pair[0].0))),
        None => Ok(classes),
    }
}

fn config(args: &Args, scenario: &Scenario, places: &[(String, Place)]) -> anyhow::Result<Config> {
    let artifacts = Artifacts::built_in().context("the built-in P4 program")?;
    let index = Index::new(artifacts.p4info.clone()).context("the built-in p4info")?;
    let rates = scenario.topology.links().iter().map(|link| link.rate);
    let slowest = rates.filter(|rate| rate.0 > 0).min().unwrap_or(BitRate(1_000_000_000));
    let packet = slowest.transmission(PACKET_BYTES);
    let mut settings = Settings::new(&args.cluster, packet);
    settings.classes = classes(args)?;
    settings.flip_gap = args.flip_gap.unwrap_or(settings.flip_gap);
    let interval = Some(args.probe_interval).filter(|interval| *interval > Span::ZERO);
    if interval.is_some_and(|interval| interval < INTERVAL_FLOOR) {
        let asked = args.probe_interval;
        return Err(exit::usage(format!(
            "--probe-interval {asked}: switches in software cannot follow; give at least {INTERVAL_FLOOR}, or 0ms for none"
        )));
    }
    Ok(Config {
        topology: scenario.topology.clone(),
        device_ids: places.iter().map(|(_, place)| place.device_id).collect(),
        program: Program::resolve(&index)?,
        artifacts,
        settings,
        slots: Sizes::BUILT_IN,
        policies: policies(),
        policy: args.policy.clone(),
        planning: Planning {
            levels: scenario.levels(),
            max_paths: scenario.max_paths,
            max_evaluations: EVALUATIONS,
            objective: args.objective.into(),
            phases: PHASES,
        },
        seed: scenario.seed,
        force_pipeline: args.force_pipeline,
        takeover: args.takeover,
        limits: Limits::default(),
        telemetry: args.watch.telemetry(),
        feedback: FeedbackConfig::new(args.watch.feedback.into(), args.watch.rho)
            .with_packet_time(packet),
        probes: ProbeConfig { interval, ..ProbeConfig::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::generate::LeafSpine;

    #[test]
    fn a_class_is_a_code_point_and_a_queue_below_that_of_control() {
        assert_eq!(class("40=5"), Ok((40, 5)));
        for bad in ["", "40", "64=1", "40=7", "=1", "a=b"] {
            assert!(class(bad).unwrap_err().contains("for example 40=5"), "{bad}");
        }
    }

    #[test]
    fn a_switch_is_a_name_an_address_and_perhaps_a_device() {
        let (name, at) = place("leaf1=10.0.0.1:50051,7").unwrap();
        assert_eq!(
            (name.as_str(), at.address.as_str(), at.device_id),
            ("leaf1", "10.0.0.1:50051", 7)
        );
        assert_eq!(place("s=[::1]:1").unwrap().1.device_id, 0);
        for bad in [
            "",
            "leaf1",
            "=a:1",
            "leaf1=",
            "leaf1=host",
            "leaf1=host:x",
            "leaf1=h:70000",
            "leaf1=h:1,x",
        ] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn changes_wait_for_less_than_their_deadline() {
        assert_eq!(flip_gap("120ms"), Ok(Span::from_millis(120)));
        for (bad, said) in [("500ms", "shorter time"), ("1s", "shorter time"), ("long", "long")] {
            assert!(flip_gap(bad).unwrap_err().contains(said), "{bad}");
        }
    }

    #[test]
    fn every_switch_needs_an_address_and_every_address_a_switch() {
        let topology = LeafSpine::new(2, 1, 1, BitRate(1_000_000_000)).build().unwrap();
        let given = |names: &[&str]| -> Vec<(String, Place)> {
            names.iter().map(|name| place(&format!("{name}=127.0.0.1:1")).unwrap()).collect()
        };
        let found = places(&topology, &given(&["spine1", "leaf2", "leaf1"])).unwrap();
        let order: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(order, ["leaf1", "leaf2", "spine1"]);
        let refused = |names: &[&str]| places(&topology, &given(names)).unwrap_err().to_string();
        assert!(refused(&["leaf1"]).contains("leaf2, spine1"));
        assert!(refused(&["leaf3"]).contains("no such switch"));
        assert!(refused(&["leaf1", "leaf1"]).contains("twice"));
    }
}
