//! `ringpath switch port-rate`: how fast a port of a running switch may send from now on. In: its address, ports with rates. Out: what was
//! set. Must not do anything else to it.

use super::super::Exit;
use super::super::target::{Target, TlsFlags};
use super::outside::PortRate;
use super::stats::PATIENCE;
use super::{ADDRESS, outside};
use crate::p4runtime::proto::ringpath::v1::SetPortRateRequest;
use crate::p4runtime::proto::ringpath::v1::switch_client::SwitchClient;
use std::io::Write;

/// Arguments of `ringpath switch port-rate`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath switch port-rate 3=10Mbps            a link that runs at half its rate
  ringpath switch port-rate 3=20Mbps 4=none")]
pub struct Args {
    /// A port and its shaper's rate: bits per second, or such as 10Mbps, or none.
    #[arg(required = true, value_name = "PORT=RATE", value_parser = outside::change)]
    pub changes: Vec<PortRate>,
    /// Address of the switch.
    #[arg(long, value_name = "IP:PORT", default_value = ADDRESS)]
    pub grpc_server_addr: String,
    /// Its device id.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = super::super::number)]
    pub device_id: u64,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
}

/// Sets the rates, one after the other.
///
/// # Errors
/// Nobody listens there, another kind of switch, no such port.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (address, device_id) = (args.grpc_server_addr.clone(), args.device_id);
    let target =
        Target { address, device_id, p4info: None, timeout: PATIENCE, tls: args.tls.clone() };
    let session = target.connect()?;
    for change in &args.changes {
        let what = "setting a port's rate (ringpath.v1.Switch, which only `ringpath switch` has)";
        session.beside(what, async |channel| {
            let port = change.port.map_or(0, |port| port.0.into());
            let bits_per_second = change.rate.map(|rate| rate.0);
            let request = SetPortRateRequest { device_id, port, bits_per_second };
            SwitchClient::new(channel).set_port_rate(request).await
        })?;
        writeln!(out, "{change}")?;
    }
    Ok(Exit::Done)
}
