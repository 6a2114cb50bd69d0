//! The result of `ringpath demo`: one row per policy, the contention-free limit beside them.
//!
//! In: measured values of the packet simulation. Out: the JSON documented in `docs/cli.md` (keys are stable) and a table.

use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// Everything that `ringpath demo` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Seed of placement, start phases, jitter and faults.
    pub seed: u64,
    /// Where the figures come from, always the packet simulation: `packet`.
    pub source: &'static str,
    /// σ: rates and bytes of the scenario were divided by this before packets were simulated.
    pub packet_scale: f64,
    /// Name of the scenario.
    pub scenario: String,
    /// One per policy, in the order they were asked for.
    pub policies: Vec<Row>,
    /// What each job would have alone on the fabric; no policy can beat its communication time.
    pub contention_free: Limit,
    /// Switches, each with its own P4Runtime server.
    pub switches: usize,
    /// Entries written over P4Runtime by the last policy's run, per policy (all runs program the whole fabric).
    pub entries_written: u64,
}

/// The contention-free limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Mean over jobs, milliseconds.
    pub comm_ms_mean: f64,
    /// Milliseconds per job.
    pub comm_ms_per_job: BTreeMap<String, f64>,
    /// GPU utilisation if every job ran alone.
    pub gpu_utilisation: f64,
}

/// One policy's run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Policy.
    pub name: String,
    /// Unweighted mean over jobs of `comm_ms_per_job`.
    pub comm_ms_mean: f64,
    /// Mean communication time over iterations 2…n of each job, milliseconds.
    pub comm_ms_per_job: BTreeMap<String, f64>,
    /// Σ compute seconds inside the window / Σ (ranks × window), 0..=1.
    pub gpu_utilisation: f64,
    /// Packets of the transport, data and acknowledgements.
    pub packets: Packets,
    /// Flows moved at once because their link was dead or no gap came in time.
    pub forced_flips: u64,
    /// Packets that went through a P4 switch, counted once per switch.
    pub switch_passes: u64,
    /// Entries written over P4Runtime (inserts, modifications and deletions that a switch accepted).
    pub entries_written: u64,
    /// What the controller read of the fabric meanwhile.
    pub telemetry: Telemetry,
    /// Flows that fell behind and what was done about them, in order of time; empty where nothing looked for them.
    pub stragglers: Vec<Straggler>,
    /// Jobs that had to start again from an earlier step, in order of time.
    pub restarts: Vec<Restart>,
}

/// What the controller read of the fabric (docs/telemetry.md).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Telemetry {
    /// `readout`, `register`, `mixed` or `off`.
    pub way: String,
    /// Closed intervals, complete or not.
    pub intervals: u64,
    /// Intervals of flows that were read and believed.
    pub samples: u64,
    /// Intervals of flows without a sample.
    pub missing: u64,
    /// Samples that were not believed, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// IPv4 bytes of all samples, at full size.
    pub bytes_seen: u64,
}

/// One flow that was found to hold its ring up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    /// The flow's job, by name.
    pub job: String,
    /// The flow's number.
    pub flow: u32,
    /// The link that was slow, `from-to`, where it is known.
    pub link: Option<String>,
    /// When it became slow, milliseconds since the first plan was in force; unknown outside a simulation.
    pub slow_at_ms: Option<f64>,
    /// When it was flagged, on the same clock.
    pub flagged_at_ms: f64,
    /// When a reaction was in force; `None` if there was none.
    pub raised_at_ms: Option<f64>,
    /// Whether the next intervals confirmed the reaction; `None` if there was none, or the run ended before.
    pub kept: Option<bool>,
    /// What the verdict rests on, in words.
    pub evidence: String,
}

/// One job that started again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Restart {
    /// The job, by name.
    pub job: String,
    /// Why, in words.
    pub cause: String,
    /// Iterations whose work was lost.
    pub iterations_lost: u32,
    /// From the cause to the first new iteration, milliseconds; `None` if it never came.
    pub duration_ms: Option<f64>,
}

/// Packet accounting by the hosts and the switches' own counters:
/// `sent + control_sent = delivered + duplicated + control_delivered + Σ dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Data handed to the network by hosts, repetitions included.
    pub sent: u64,
    /// Data that arrived for the first time.
    pub delivered: u64,
    /// Data that a receiver already had.
    pub duplicated: u64,
    /// Data, sent once, that arrived behind a later packet of its flow.
    pub reordered: u64,
    /// Data sent again.
    pub repeated: u64,
    /// Acknowledgements and probes handed to the network.
    pub control_sent: u64,
    /// Acknowledgements and probes that arrived.
    pub control_delivered: u64,
    /// By reason.
    pub dropped: Dropped,
}

/// Packets lost, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// No `path_forward` entry for a label.
    pub label_miss: u64,
    /// Tail drop in a switch queue.
    pub queue_full: u64,
    /// In flight on, or sent to, a dead link.
    pub link_down: u64,
    /// To or from a dead host.
    pub host_down: u64,
    /// Everything else.
    pub other: u64,
}

impl Dropped {
    /// All reasons together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.label_miss + self.queue_full + self.link_down + self.host_down + self.other
    }
}

impl Report {
    /// The row of the policy that figures are set against.
    pub(super) fn baseline(&self) -> Option<&Row> {
        self.policies.iter().find(|row| row.name == "crux").or_else(|| self.policies.first())
    }
}

/// `-18.4 %`, or `-` without something to compare with.
fn change(value: f64, base: Option<f64>) -> String {
    match base {
        Some(base) if base > 0.0 => format!("{:+.1} %", (value / base - 1.0) * 100.0),
        _ => "-".to_owned(),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "scenario {}, seed {}; source: packet simulation through {} P4 switches, σ = {}",
            self.scenario, self.seed, self.switches, self.packet_scale
        )?;
        let base = self.baseline();
        let versus = base.map_or_else(|| "baseline".to_owned(), |row| row.name.clone());
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        table.set_header([
            "policy".to_owned(),
            "comm ms".to_owned(),
            format!("vs {versus}"),
            "GPU util".to_owned(),
            format!("vs {versus}"),
            "slowdown".to_owned(),
            "lost".to_owned(),
            "reordered".to_owned(),
            "forced".to_owned(),
        ]);
        for row in &self.policies {
            table.add_row([
                row.name.clone(),
                format!("{:.1}", row.comm_ms_mean),
                change(row.comm_ms_mean, base.map(|row| row.comm_ms_mean)),
                format!("{:.3}", row.gpu_utilisation),
                change(row.gpu_utilisation, base.map(|row| row.gpu_utilisation)),
                format!("{:.2}", self.slowdown(row)),
                row.packets.dropped.total().to_string(),
                row.packets.reordered.to_string(),
                row.forced_flips.to_string(),
            ]);
        }
        table.add_row([
            "(alone)".to_owned(),
            format!("{:.1}", self.contention_free.comm_ms_mean),
            change(self.contention_free.comm_ms_mean, base.map(|row| row.comm_ms_mean)),
            format!("{:.3}", self.contention_free.gpu_utilisation),
            change(self.contention_free.gpu_utilisation, base.map(|row| row.gpu_utilisation)),
            "1.00".to_owned(),
        ]);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(f, "{table}")
    }
}

impl Report {
    /// Mean over jobs of communication time / contention-free communication time.
    pub(super) fn slowdown(&self, row: &Row) -> f64 {
        let ratios = row.comm_ms_per_job.iter().filter_map(|(job, ms)| {
            let alone = *self.contention_free.comm_ms_per_job.get(job)?;
            (alone > 0.0).then_some(ms / alone)
        });
        let (sum, count) =
            ratios.fold((0.0, 0_u32), |(sum, count), ratio| (sum + ratio, count + 1));
        sum / f64::from(count.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, ms: f64, utilisation: f64) -> Row {
        Row {
            name: name.to_owned(),
            comm_ms_mean: ms,
            comm_ms_per_job: BTreeMap::from([("a".to_owned(), ms)]),
            gpu_utilisation: utilisation,
            packets: Packets::default(),
            forced_flips: 0,
            switch_passes: 0,
            entries_written: 1,
            telemetry: Telemetry::default(),
            stragglers: Vec::new(),
            restarts: Vec::new(),
        }
    }

    fn report() -> Report {
        Report {
            seed: 3,
            source: "packet",
            packet_scale: 400.0,
            scenario: "default".to_owned(),
            policies: vec![row("crux", 200.0, 0.5), row("joint", 150.0, 0.6)],
            contention_free: Limit {
                comm_ms_mean: 100.0,
                comm_ms_per_job: BTreeMap::from([("a".to_owned(), 100.0)]),
                gpu_utilisation: 0.8,
            },
            switches: 8,
            entries_written: 1,
        }
    }

    #[test]
    fn the_table_sets_every_policy_against_crux_and_the_limit() {
        let text = report().to_string();
        for part in ["vs crux", "-25.0 %", "+20.0 %", "1.50", "(alone)", "-50.0 %", "σ = 400"] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn the_json_has_the_documented_keys() {
        let json = serde_json::to_value(report()).unwrap();
        for key in ["seed", "packet_scale", "policies", "switches", "entries_written"] {
            assert!(json.get(key).is_some(), "{key}");
        }
        let packets = &json["policies"][0]["packets"];
        for key in ["sent", "delivered", "duplicated", "reordered", "dropped"] {
            assert!(packets.get(key).is_some(), "{key}");
        }
        for key in ["stragglers", "restarts"] {
            assert!(json["policies"][0][key].is_array(), "{key}");
        }
        for key in ["label_miss", "queue_full", "link_down", "host_down", "other"] {
            assert!(packets["dropped"].get(key).is_some(), "{key}");
        }
    }
}
