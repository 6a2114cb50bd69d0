//! What a finished world says (docs/scheduling, "Metrics").

use super::RunError;
use super::assemble::Facts;
use super::stragglers::{Straggler, stragglers};
use crate::id::{JobId, SwitchId};
use crate::p4runtime::proto::p4::v1::ReadRequest;
use crate::p4runtime::rpc::{Reply, Rpc};
use crate::pipeline::counters::Drops;
use crate::sim::fabric::{lock, switch_losses};
use crate::sim::packet::Traffic;
use crate::sim::wire::{Wire, WireError};
use crate::sim::world::World;
use crate::telemetry::Totals;
use crate::time::Time;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Packets lost, by reason. Acknowledgements count as packets here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The program met a label that it had no entry for (its own counter, read over the wire).
    pub label_miss: u64,
    /// A switch's queue was full.
    pub queue_full: u64,
    /// The link was down.
    pub link_down: u64,
    /// The host had failed.
    pub host_down: u64,
    /// Anything else that the program or a switch dropped.
    pub other: u64,
}

/// What happened to data packets, counted by the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Put on the wire by hosts, repetitions included.
    pub sent: u64,
    /// Arrived for the first time.
    pub delivered: u64,
    /// Arrived again.
    pub duplicated: u64,
    /// Arrived behind a later one of their flow, though sent once.
    pub reordered: u64,
    /// Sent again.
    pub repeated: u64,
    /// Acknowledgements and probes put on the wire.
    pub control_sent: u64,
    /// Acknowledgements and probes that arrived.
    pub control_delivered: u64,
    /// Lost.
    pub dropped: Dropped,
}

/// A job that went on with another membership.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Restart {
    /// The job's name.
    pub job: String,
    /// Why.
    pub cause: String,
    /// Iterations that were under way and were done anew.
    pub iterations_lost: u32,
    /// When the failure happened, milliseconds after the first plan was installed.
    pub failed_at_ms: f64,
    /// From the failure to the beginning of the next iteration, milliseconds; `None` if it never came.
    pub duration_ms: Option<f64>,
}

/// One policy's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The policy.
    pub policy: String,
    /// Seed of the run.
    pub seed: u64,
    /// σ: link rates and message bytes were divided by this.
    pub packet_scale: f64,
    /// Unweighted mean over jobs of their communication time, milliseconds.
    pub comm_ms_mean: f64,
    /// Mean communication time over iterations 2..n, by job name, milliseconds.
    pub comm_ms_per_job: BTreeMap<String, f64>,
    /// Compute seconds of all GPUs / (GPUs x time from each job's start to its end).
    pub gpu_utilisation: f64,
    /// Packets.
    pub packets: Packets,
    /// Jobs that went on with another membership.
    pub restarts: Vec<Restart>,
    /// Verdicts, and what was done about them.
    pub stragglers: Vec<Straggler>,
    /// Flips that happened without a gap, counted by the program.
    pub forced_flips: u64,
    /// Updates that the switches executed for the controller.
    pub entries_written: u64,
    /// Calls that the switches answered.
    pub calls: u64,
    /// Frames that switches took in.
    pub switch_passes: u64,
    /// Events of the run.
    pub events: u64,
    /// Virtual time from the first installed plan to the end, seconds.
    pub virtual_s: f64,
    /// Hash over all events and what they carried: equal for equal runs.
    pub digest: u64,
    /// What the controller read of the fabric.
    pub telemetry: Telemetry,
}

/// What the controller read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// `readout`, `register`, `mixed` if leaves differ, or `off`.
    pub way: String,
    /// Closed intervals, complete or not.
    pub intervals: u64,
    /// Samples believed, missing and dropped.
    #[serde(flatten)]
    pub totals: Totals,
}

fn telemetry(core: &crate::controller::core::Core) -> Telemetry {
    let way = match core.telemetry_leaves() {
        (0, 0) => "off",
        (_, 0) => "readout",
        (0, _) => "register",
        _ => "mixed",
    };
    let totals = core.telemetry().totals().clone();
    Telemetry { way: way.to_owned(), intervals: core.intervals(), totals }
}

/// Reads the counters over the wire and sums up.
pub fn measure<W: Wire>(
    policy: &str,
    facts: &Facts,
    world: &mut World<W>,
) -> Result<RunResult, RunError> {
    let (drops, forced_flips) = program_counters(facts, world)?;
    let traffic = world.net.traffic();
    let (comm_ms_per_job, gpu_utilisation) = jobs(world);
    let comm_ms_mean =
        comm_ms_per_job.values().sum::<f64>() / (comm_ms_per_job.len().max(1) as f64);
    let counts = world.counts();
    let begin = world.origin().unwrap_or_default();
    Ok(RunResult {
        policy: policy.to_owned(),
        seed: facts.seed,
        packet_scale: facts.scale.sigma,
        comm_ms_mean,
        comm_ms_per_job,
        gpu_utilisation,
        packets: packets(&traffic, &drops, world),
        restarts: restarts(world, begin),
        stragglers: stragglers(facts, world),
        forced_flips,
        entries_written: counts.updates,
        calls: counts.calls,
        switch_passes: traffic.switch_passes,
        events: world.queue.handled(),
        virtual_s: (world.queue.now() - begin).as_secs_f64(),
        digest: world.digest(),
        telemetry: telemetry(&world.core),
    })
}

/// The program's counters of all switches, read as any client reads them.
fn program_counters<W: Wire>(
    facts: &Facts,
    world: &mut World<W>,
) -> Result<(Drops, u64), RunError> {
    let now = world.queue.now();
    let mut entities = Vec::new();
    for (switch, device_id) in (0..).map(SwitchId).zip(facts.device_ids.iter().copied()) {
        let request =
            ReadRequest { device_id, entities: facts.counters.read_all(), ..Default::default() };
        match world.wire_mut().call(switch, now, Rpc::Read(request))? {
            Ok(Reply::Read(found)) => entities.extend(found),
            Ok(_) => {}
            Err(failure) => {
                return Err(WireError::Connection {
                    switch: switch.to_string(),
                    rpc: "Read",
                    reason: failure.to_string(),
                }
                .into());
            }
        }
    }
    Ok(facts.counters.sum(&entities))
}

fn jobs<W: Wire>(world: &World<W>) -> (BTreeMap<String, f64>, f64) {
    let mut comm = BTreeMap::new();
    let (mut busy, mut held) = (0.0, 0.0);
    for job in world.jobs() {
        let run = world.net.job(job.id);
        let history = run.history();
        // The first iteration starts into an empty or a settling fabric; a job of one iteration has no other.
        let counted = if history.len() > 1 { &history[1..] } else { history };
        if !counted.is_empty() {
            let sum: f64 =
                counted.iter().map(|it| (it.comm_end - it.comm_start).as_secs_f64()).sum();
            comm.insert(job.name.clone(), sum * 1e3 / counted.len() as f64);
        }
        if let Some(end) = run.finished_at() {
            let gpus = f64::from(job.gpus_per_rank);
            let (computed, taken) = run.rank_seconds(end);
            busy += gpus * computed;
            held += gpus * taken;
        }
    }
    (comm, if held > 0.0 { busy / held } else { 0.0 })
}

fn restarts<W: Wire>(world: &World<W>, begin: Time) -> Vec<Restart> {
    let ms = |from: Time, to: Time| (to - from).as_secs_f64() * 1e3;
    let name = |job: JobId| world.jobs().get(job.index()).map(|job| job.name.clone());
    let changes = world.regrouped().iter();
    changes
        .map(|change| Restart {
            job: name(change.job).unwrap_or_default(),
            cause: change.cause.clone(),
            iterations_lost: change.iterations_lost,
            failed_at_ms: ms(begin, change.failed_at),
            duration_ms: change.resumed_at.map(|resumed| ms(change.failed_at, resumed)),
        })
        .collect()
}

fn packets<W: Wire>(traffic: &Traffic, drops: &Drops, world: &World<W>) -> Packets {
    let mut losses = world.restart_losses();
    for server in &world.servers {
        losses.add(switch_losses(lock(server).device()));
    }
    // What the program drops, the switch counts as dropped by its ingress, whatever the program's reason was.
    let other = losses.other.saturating_sub(drops.label_miss);
    Packets {
        sent: traffic.sent,
        delivered: traffic.delivered,
        duplicated: traffic.duplicated,
        reordered: traffic.reordered,
        repeated: traffic.repeated,
        control_sent: traffic.control_sent,
        control_delivered: traffic.control_delivered,
        dropped: Dropped {
            label_miss: drops.label_miss,
            queue_full: losses.queue_full,
            link_down: traffic.link_down + losses.port_down,
            host_down: traffic.host_down,
            other: other + traffic.link_error + traffic.unreadable,
        },
    }
}
