//! `ringpath switch --stats`: asks a switch that runs what it counted. In: its address. Out: tables or JSON. It changes nothing and needs no
//! program, P4Info or primary controller.

use super::super::grid::{grid, write};
use super::super::target::{Session, Target, TlsFlags};
use super::super::{Exit, Format};
use crate::p4runtime::proto::ringpath::v1::switch_client::SwitchClient;
use crate::p4runtime::proto::ringpath::v1::{
    Count, GetStatisticsRequest, GetStatisticsResponse, PortEvent, PortStatistics,
    WatchPortsRequest,
};
use crate::time::Span;
use serde_json::{Map, Value, json};
use std::io::Write;
use tonic::Streaming;

/// Longest wait for an answer.
pub(super) const PATIENCE: Span = Span(10_000_000_000);

/// Flags of a look at a switch that runs.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Statistics")]
pub struct StatsFlags {
    /// Start no switch: print what the one at --grpc-server-addr with --device-id has counted.
    #[arg(long, conflicts_with_all = ["program", "no_p4", "interface", "pcap", "use_files", "port_rate", "mimic_bmv2"])]
    pub stats: bool,
    /// Then tell of ports that go up or down, until stopped.
    #[arg(long, requires = "stats")]
    pub watch: bool,
    /// How it is printed.
    #[arg(short, long, value_enum, default_value_t, requires = "stats")]
    pub output: Format,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
}

impl StatsFlags {
    /// Prints the statistics of a switch.
    ///
    /// # Errors
    /// Nobody listens there, or it is another kind of switch.
    pub fn run(&self, address: &str, device_id: u64, out: &mut dyn Write) -> anyhow::Result<Exit> {
        let (address, tls) = (address.to_owned(), self.tls.clone());
        let target = Target { address, device_id, p4info: None, timeout: PATIENCE, tls };
        let session = target.connect()?;
        let what = "reading the statistics (ringpath.v1.Switch, which only `ringpath switch` has)";
        let stats = session.beside(what, async |channel| {
            let request = GetStatisticsRequest { device_id };
            Ok(SwitchClient::new(channel).get_statistics(request).await?.into_inner())
        })?;
        write(self.output, out, || document(&stats), |out| tables(&stats, out))?;
        out.flush()?;
        if self.watch {
            let events = session.beside("watching the ports", async |channel| {
                let request = WatchPortsRequest { device_id };
                Ok(SwitchClient::new(channel).watch_ports(request).await?.into_inner())
            })?;
            self.tell(&session, events, out)?;
        }
        Ok(Exit::Done)
    }

    fn tell(
        &self,
        session: &Session,
        mut events: Streaming<PortEvent>,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        while let Some(event) = session.next(&mut events)? {
            let PortEvent { port, interface, up, reason } = event;
            match self.output {
                Format::Json => {
                    writeln!(
                        out,
                        "{}",
                        json!({"port": port, "interface": interface, "up": up, "reason": reason})
                    )?;
                }
                Format::Table => {
                    let state = if up { "up" } else { "down" };
                    writeln!(out, "port {port} ({interface}) {state}: {reason}")?;
                }
            }
            out.flush()?;
        }
        Ok(())
    }
}

fn both(count: Option<Count>) -> Value {
    let Count { packets, bytes } = count.unwrap_or_default();
    json!({"packets": packets, "bytes": bytes})
}

/// What `-o json` prints; its keys are stable.
fn document(stats: &GetStatisticsResponse) -> Value {
    let port = |port: &PortStatistics| {
        let queues: Vec<Value> = port
            .queues
            .iter()
            .map(|queue| {
                json!({
                    "queue": queue.queue,
                    "sent": both(queue.sent),
                    "full": both(queue.full),
                    "packets": queue.packets,
                    "bytes": queue.bytes,
                    "max_packets": queue.max_packets,
                })
            })
            .collect();
        let counters = port.interface_counters.iter();
        let counters: Map<String, Value> =
            counters.map(|count| (count.name.clone(), count.value.into())).collect();
        json!({
            "port": port.port,
            "interface": port.interface,
            "up": port.up,
            "received": both(port.received),
            "sent": both(port.sent),
            "queues": queues,
            "interface_counters": counters,
        })
    };
    let losses: Map<String, Value> =
        stats.losses.iter().map(|loss| (loss.reason.clone(), loss.packets.into())).collect();
    json!({
        "device_id": stats.device_id,
        "time_ns": stats.time_ns,
        "ports": stats.ports.iter().map(port).collect::<Vec<_>>(),
        "losses": losses,
        "parser_errors": stats.parser_errors,
        "index_faults": stats.index_faults,
        "budget_faults": stats.budget_faults,
        "assertion_faults": stats.assertion_faults,
        "packet_ins": stats.packet_ins,
        "digests_lost": stats.digests_lost,
        "packets_held": stats.packets_held,
    })
}

/// Ports and queues, then whatever is not zero.
fn tables(stats: &GetStatisticsResponse, out: &mut dyn Write) -> std::io::Result<()> {
    let header = [
        "port",
        "interface",
        "state",
        "queue",
        "received",
        "sent",
        "bytes sent",
        "full",
        "waiting",
        "most",
    ];
    let mut table = grid(&header, &[0, 3, 4, 5, 6, 7, 8, 9]);
    for port in &stats.ports {
        let state = if port.up { "up" } else { "down" };
        let (received, sent) = (port.received.unwrap_or_default(), port.sent.unwrap_or_default());
        let (full, waiting) =
            (port.queues.iter().filter_map(|queue| queue.full), port.queues.iter());
        table.add_row([
            port.port.to_string(),
            port.interface.clone(),
            state.to_owned(),
            "all".to_owned(),
            received.packets.to_string(),
            sent.packets.to_string(),
            sent.bytes.to_string(),
            full.map(|count| count.packets).sum::<u64>().to_string(),
            waiting.map(|queue| u64::from(queue.packets)).sum::<u64>().to_string(),
            port.queues.iter().map(|queue| queue.max_packets).max().unwrap_or(0).to_string(),
        ]);
        // A single queue is the row above.
        for queue in port.queues.iter().filter(|_| port.queues.len() > 1) {
            let (sent, full) = (queue.sent.unwrap_or_default(), queue.full.unwrap_or_default());
            let mut row = vec![String::new(); 3];
            row.extend([queue.queue.to_string(), String::new()]);
            let numbers = [
                sent.packets,
                sent.bytes,
                full.packets,
                queue.packets.into(),
                queue.max_packets.into(),
            ];
            row.extend(numbers.map(|number| number.to_string()));
            table.add_row(row);
        }
    }
    writeln!(
        out,
        "device {}, {:.1} s after its start",
        stats.device_id,
        stats.time_ns as f64 / 1e9
    )?;
    writeln!(out, "{table}")?;
    let losses = stats.losses.iter().map(|loss| (format!("lost, {}", loss.meaning), loss.packets));
    let counters = stats.ports.iter().flat_map(|port| {
        let of = format!("port {} ({})", port.port, port.interface);
        port.interface_counters
            .iter()
            .map(move |count| (format!("{of} {}", count.name), count.value))
    });
    let others = [
        ("parser errors", stats.parser_errors),
        ("accesses beyond an array", stats.index_faults),
        ("actions or parsers without end", stats.budget_faults),
        ("assertions that failed", stats.assertion_faults),
        ("packets to the controller", stats.packet_ins),
        ("digests lost", stats.digests_lost),
        ("packets inside now", stats.packets_held),
    ];
    let others = others.into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in losses.chain(counters).chain(others).filter(|(_, value)| *value > 0) {
        writeln!(out, "{value:>12}  {name}")?;
    }
    Ok(())
}
