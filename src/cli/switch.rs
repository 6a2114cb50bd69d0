//! `ringpath switch`: the embedded P4 switch as a process, for other people's controllers and for a look around.
//!
//! In: simple_switch_grpc's command line. Out: one line with the address; then the switch runs until SIGINT or SIGTERM. The
//! program is given here or pushed later by a client.

use super::{Exit, exit, process, target::read_p4info};
use crate::id::PortNo;
use crate::p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use crate::p4runtime::server::listen::listen_beside;
use crate::p4runtime::server::tls::Tls;
use crate::p4runtime::server::{Profile, Server};
use crate::switch::real_time::Driver;
use crate::switch::traffic::{MAX_QUEUES, PORT_MAX};
use crate::switch::{Config, MAX_PACKETS, Switch};
use crate::time::Time;
use anyhow::Context as _;
use clap::Parser as _;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tonic::service::Routes;

mod outside;
mod peer;
pub mod rate;
mod statistics;
mod stats;
mod tls;
pub mod trace;

pub use outside::Outside;
pub use peer::Foreign;
pub use statistics::Statistics;
pub use stats::StatsFlags;
pub use tls::TlsFlags;

/// Where the server listens if nothing else is said.
const ADDRESS: &str = "127.0.0.1:9559";

/// A number between two others.
fn within<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    text: &str,
    low: T,
    high: T,
) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| (&low..=&high).contains(&number));
    number.ok_or_else(|| format!("it must be a number between {low} and {high}"))
}

fn cpu_port(text: &str) -> Result<u16, String> {
    within(text, 1, PORT_MAX)
}

fn drop_port(text: &str) -> Result<u16, String> {
    within(text, 0, PORT_MAX)
}

fn queues(text: &str) -> Result<u8, String> {
    within(text, 1, MAX_QUEUES)
}

fn depth(text: &str) -> Result<u32, String> {
    within(text, 1, MAX_PACKETS as u32)
}

/// Arguments of `ringpath switch`. What simple_switch_grpc wants behind `--` is taken before it as well.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath switch build/basic.json --p4info build/basic.p4info.txtpb
  sudo ringpath switch build/basic.json --p4info build/basic.p4info.txtpb -i 1@veth0 -i 2@veth2
  ringpath switch --no-p4 --device-id 1 -- --grpc-server-addr 127.0.0.1:50051 --cpu-port 255
  ringpath switch --no-p4 --grpc-server-addr 127.0.0.1:0     the system chooses a port; the first line says which
  ringpath switch --stats -o json                            what the switch at 127.0.0.1:9559 has counted")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Something else than to run it as a process.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Program: the JSON that p4c-bm2-ss writes. Without one, clients push it.
    #[arg(value_name = "PROGRAM.json")]
    pub program: Option<PathBuf>,
    /// P4Info of the program (p4c's text form); without it the program runs, but clients can name nothing in it.
    #[arg(long, value_name = "FILE", requires = "program")]
    pub p4info: Option<PathBuf>,
    /// Start without a program, as simple_switch_grpc says it.
    #[arg(long, conflicts_with = "program")]
    pub no_p4: bool,
    /// Id that P4Runtime requests must carry.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = super::number)]
    pub device_id: u64,
    /// Answer as BMv2's server does where it differs from the P4Runtime specification.
    #[arg(long)]
    pub mimic_bmv2: bool,
    /// Ports.
    #[command(flatten)]
    pub outside: Outside,
    /// A look at a switch that runs.
    #[command(flatten)]
    pub look: StatsFlags,
    /// Flags of the target.
    #[command(flatten)]
    pub own: Own,
    /// Flags of simple_switch_grpc that mean nothing here.
    #[command(flatten)]
    pub foreign: Foreign,
    /// The same flags behind `--`, where simple_switch_grpc wants them.
    #[arg(last = true, value_name = "TARGET FLAGS")]
    pub behind: Vec<String>,
}

/// What else can be done with an embedded switch.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Show step by step what packets meet in a program.
    Trace(trace::Args),
    /// Set how fast a port of a running switch may send.
    PortRate(rate::Args),
}

/// Flags that simple_switch_grpc takes behind `--`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Target")]
pub struct Own {
    /// Address of the P4Runtime server; port 0 lets the system choose, beyond loopback only with TLS. Default
    /// 127.0.0.1:9559.
    #[arg(long, value_name = "IP:PORT")]
    pub grpc_server_addr: Option<String>,
    /// Certificates.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Packets sent to this port go to the controller. Default 510.
    #[arg(long, value_name = "PORT", value_parser = cpu_port)]
    pub cpu_port: Option<u16>,
    /// Packets sent to this port are dropped. Default 511.
    #[arg(long, value_name = "PORT", value_parser = drop_port)]
    pub drop_port: Option<u16>,
    /// Strict-priority queues per port, the highest number first. Default 1.
    #[arg(long, value_name = "N", value_parser = queues)]
    pub priority_queues: Option<u8>,
    /// Packets that fit into each queue (BMv2 sets it over Thrift). Default 64.
    #[arg(long, value_name = "PACKETS", value_parser = depth)]
    pub queue_depth: Option<u32>,
}

/// What stands behind `--`, parsed by the same rules.
#[derive(Debug, clap::Parser)]
#[command(name = "ringpath switch ... --", no_binary_name = true, disable_help_flag = true)]
struct Behind {
    #[command(flatten)]
    own: Own,
    #[command(flatten)]
    foreign: Foreign,
}

/// Settings, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen.
    pub addr: SocketAddr,
    /// The switch's.
    pub config: Config,
    /// Whose answers the server gives.
    pub profile: Profile,
    /// Certificates, if TLS was asked for.
    pub tls: Option<Tls>,
    /// Flags that were accepted and do nothing, each with the reason, and other doubts.
    pub notes: Vec<String>,
}

impl Args {
    fn behind(&self) -> anyhow::Result<Behind> {
        Behind::try_parse_from(&self.behind).map_err(|error| {
            let text = error.render().to_string();
            let text = text.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
            exit::usage(format!("behind '--': {text}"))
        })
    }

    /// The address of a switch to look at.
    fn asked(&self) -> anyhow::Result<String> {
        let late = self.behind()?.own.grpc_server_addr;
        let text = late.or_else(|| self.own.grpc_server_addr.clone());
        Ok(text.unwrap_or_else(|| ADDRESS.to_owned()))
    }

    /// Brings both sides of `--` together.
    ///
    /// # Errors
    /// A flag that cannot be honoured, with what works instead.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let behind = self.behind()?;
        let mut notes = self.foreign.check()?;
        notes.extend(behind.foreign.check()?);
        let default = Config::default();
        let pick = |late: Option<u16>, early: Option<u16>, default: PortNo| {
            late.or(early).map_or(default, PortNo)
        };
        let own = (&behind.own, &self.own);
        let config = Config {
            device_id: self.device_id,
            cpu_port: pick(own.0.cpu_port, own.1.cpu_port, default.cpu_port),
            drop_port: pick(own.0.drop_port, own.1.drop_port, default.drop_port),
            priority_queues: own
                .0
                .priority_queues
                .or(own.1.priority_queues)
                .unwrap_or(default.priority_queues),
            queue_packets: own.0.queue_depth.or(own.1.queue_depth).unwrap_or(default.queue_packets),
            mimic_bmv2: self.mimic_bmv2,
            ..default
        };
        if config.cpu_port == config.drop_port {
            let text = format!(
                "--cpu-port and --drop-port are both {}; choose two ports",
                config.cpu_port.0
            );
            return Err(exit::usage(text));
        }
        let (tls, doubts) = own.0.tls.or(&own.1.tls).load()?;
        notes.extend(doubts);
        let addr = own.0.grpc_server_addr.as_ref().or(own.1.grpc_server_addr.as_ref());
        let (addr, narrowed) = address(addr.map_or(ADDRESS, String::as_str), tls.is_some())?;
        notes.extend(narrowed);
        if !addr.ip().is_loopback() && !tls.as_ref().is_some_and(Tls::mutual) {
            notes.push(format!("whoever reaches {addr} may program this switch; --grpc-server-with-client-auth lets in only those with a certificate"));
        }
        let profile = if self.mimic_bmv2 { Profile::Bmv2 } else { Profile::Spec };
        Ok(Settings { addr, config, profile, tls, notes })
    }
}

/// The address to listen on, which must be loopback if there is no TLS; and a note if it is narrower than what was asked for. Scripts for
/// simple_switch_grpc write 0.0.0.0 and mean a controller on the same machine.
fn address(text: &str, secure: bool) -> anyhow::Result<(SocketAddr, Option<String>)> {
    let plain = text.replacen("localhost:", "127.0.0.1:", 1);
    let addr: SocketAddr = plain.parse().map_err(|_| {
        exit::usage(format!(
            "--grpc-server-addr '{text}' is no address; write for example 127.0.0.1:9559"
        ))
    })?;
    if !secure && addr.ip().is_unspecified() {
        let ip: IpAddr =
            if addr.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        let narrow = SocketAddr::new(ip, addr.port());
        let note = format!(
            "--grpc-server-addr {text}: without TLS only this machine is served, at {narrow}; give --grpc-server-ssl with certificates to serve others"
        );
        return Ok((narrow, Some(note)));
    }
    if !secure && !addr.ip().is_loopback() {
        return Err(exit::usage(format!(
            "--grpc-server-addr {text}: without TLS only loopback is served; give --grpc-server-ssl with certificates, or write 127.0.0.1:{} and reach it from elsewhere with `ssh -L`",
            addr.port()
        )));
    }
    Ok((addr, None))
}

/// Runs the switch until a signal ends it.
///
/// # Errors
/// Wrong flags; a program that does not load; an address that cannot be had.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.command {
        Some(Command::Trace(args)) => return trace::run(args, out),
        Some(Command::PortRate(args)) => return rate::run(args, out),
        None => {}
    }
    if args.look.stats {
        return args.look.run(&args.asked()?, args.device_id, out);
    }
    let settings = args.settings()?;
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    let mut server = Server::new(Switch::new(settings.config.clone()), settings.profile);
    if let Some(program) = &args.program {
        load(&mut server, program, args.p4info.as_deref())?;
    }
    let ports = args.outside.open(&settings.config)?;
    let driver =
        Driver::start(Arc::new(Mutex::new(server)), ports).context("no thread for the switch")?;
    let runtime = process::serving()?;
    runtime.block_on(async {
        // Before the address is told, so that whoever reads it may already send a signal.
        let stop = process::signals()?;
        let beside = Routes::new(Statistics::of(&driver, args.device_id));
        let (tls, handle) = (settings.tls.clone(), driver.handle().clone());
        let listening = listen_beside(settings.addr, tls, handle, beside).await?;
        process::announce(
            out,
            &format!("P4Runtime on {}, device {}", listening.addr(), args.device_id),
        )?;
        stop.await;
        anyhow::Ok(())
    })?;
    // A client that holds a stream open must not hold up the end.
    runtime.shutdown_background();
    drop(driver);
    Ok(Exit::Done)
}

/// Starts the program given on the command line.
fn load(server: &mut Server<Switch>, program: &Path, p4info: Option<&Path>) -> anyhow::Result<()> {
    let json = std::fs::read(program)
        .with_context(|| format!("cannot read the program {}", program.display()))?;
    let Some(path) = p4info else {
        tracing::warn!(
            "without --p4info clients can name nothing in {} until they push a program",
            program.display()
        );
        return server
            .device_mut()
            .load_json(Time::ZERO, &json)
            .with_context(|| format!("cannot run {}", program.display()));
    };
    let config = ForwardingPipelineConfig {
        p4info: Some(read_p4info(path)?.info().clone()),
        p4_device_config: json.into(),
        cookie: None,
    };
    server.boot(Time::ZERO, config).map_err(|failure| {
        anyhow::anyhow!(
            "cannot run {} with {}: {}",
            program.display(),
            path.display(),
            failure.message
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn flags_of_the_target_count_on_either_side_of_the_dashes_and_behind_them_first() {
        let config = |flags: &str| {
            let line = ["x"].into_iter().chain(flags.split_whitespace());
            let config = Line::try_parse_from(line).unwrap().args.settings().unwrap().config;
            (config.queue_packets, config.priority_queues, config.cpu_port.0)
        };
        assert_eq!(config(""), (64, 1, 510));
        assert_eq!(config("--queue-depth 9 --priority-queues 8"), (9, 8, 510));
        let both = "--queue-depth 9 --cpu-port 3 -- --queue-depth 7 --priority-queues 2";
        assert_eq!(config(both), (7, 2, 3));
    }

    #[test]
    fn flags_of_bmv2_that_change_nothing_are_noted_one_by_one() {
        let flags = "--thrift-port 9090 --nanolog ipc:///x -L debug --log-flush --dump-packet-data 9 \
                     --max-port-count 8 --notifications-addr ipc:///y --debugger --log-file-max-size 9 \
                     --no-p4 --log-console -- --max-mc-groups 7";
        let line = ["x"].into_iter().chain(flags.split_whitespace());
        let notes = Line::try_parse_from(line).unwrap().args.settings().unwrap().notes;
        assert_eq!(notes.len(), 10, "{notes:?}");
        assert!(notes.iter().all(|note| note.contains(" does nothing: ")), "{notes:?}");
    }

    #[test]
    fn an_address_of_all_interfaces_means_this_machine_unless_there_is_tls() {
        for (asked, narrow) in [("0.0.0.0:50051", "127.0.0.1:50051"), ("[::]:5", "[::1]:5")] {
            let (addr, note) = address(asked, false).unwrap();
            assert_eq!(addr.to_string(), narrow);
            assert!(note.unwrap().contains("only this machine is served"));
            let (addr, note) = address(asked, true).unwrap();
            assert_eq!((addr.to_string().as_str(), note), (asked, None));
        }
        assert!(address("192.0.2.1:50051", false).is_err());
    }
}
