//! `ringpath worker`: one rank of a synthetic training job, on the host where it is started.
//!
//! In: the ranks' addresses in ring order, bytes, compute time. Out: a line per iteration. Must not plan; to the fabric it is a program
//! that uses TCP.

use super::{Exit, Format, job};
use crate::time::Span;
use crate::units::Bytes;
use crate::worker::{Iteration, Spec, connect};
use serde_json::json;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// Arguments of `ringpath worker`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example, one line on each of two hosts:
  ringpath worker --rank 0 --peers 10.0.0.1,10.0.1.1 --first-port 6000 --bytes 10MB --compute 50ms --iterations 20
  ringpath worker --rank 1 --peers 10.0.0.1,10.0.1.1 --first-port 6000 --bytes 10MB --compute 50ms --iterations 20")]
pub struct Args {
    /// This rank, from 0.
    #[arg(long, value_name = "N")]
    pub rank: usize,
    /// Addresses of all ranks in ring order.
    #[arg(long, value_name = "IP,IP,…", value_delimiter = ',', required = true)]
    pub peers: Vec<IpAddr>,
    /// Port of the first ring edge, as given to `ringpath job submit --tcp`; each edge takes one more.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub first_port: u16,
    /// Gradient bytes, reduced in every iteration.
    #[arg(long, value_name = "BYTES")]
    pub bytes: Bytes,
    /// Time that an iteration computes; the worker sleeps meanwhile.
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub compute: Span,
    /// A file with the share of its speed at which the worker computes, for example 0.5; read before every iteration, so that a slow host can
    /// be played. Without the file, or while it is not there, the share is 1.
    #[arg(long, value_name = "FILE")]
    pub pace_file: Option<PathBuf>,
    /// Iterations.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub iterations: u32,
    /// Parallel rings.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub channels: u16,
    /// Name of the job; ranks of other jobs are turned away.
    #[arg(long, value_name = "NAME", default_value = "job")]
    pub job: String,
    /// How long to wait for the other ranks, and later for a byte of one.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub patience: Span,
    /// Tell the controller here how far the job is (rank 0 does).
    #[arg(long, value_name = "HOST:PORT|unix:PATH", env = "RINGPATH_CONTROLLER")]
    pub controller: Option<String>,
    /// How the iterations are printed; JSON is a line per iteration.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Runs the rank.
///
/// # Errors
/// A ring that is none, a port that is taken, a rank that is missing, went away or sent something wrong; a controller that does not
/// know the job.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let runtime = super::process::asking()?;
    let told = args.controller.as_ref().filter(|_| args.rank == 0);
    let mut client = match told {
        Some(address) => Some(runtime.block_on(job::connect(address))?),
        None => None,
    };
    let mut ring = connect(Spec {
        job: args.job.clone(),
        rank: args.rank,
        peers: args.peers.clone(),
        first_port: args.first_port,
        channels: args.channels,
        bytes: args.bytes.0,
        compute: args.compute,
        pace: args.pace_file.clone(),
        patience: Duration::from_nanos(args.patience.0),
    })?;
    let mut failed: Option<anyhow::Error> = None;
    let ended = ring.run(args.iterations, &mut |iteration| {
        if let Some(client) = &mut client {
            let report = job::report(client, &args.job, iteration.number + 1);
            if let Err(error) = runtime.block_on(report) {
                // The job goes on; the plan only knows less of it.
                tracing::warn!(
                    "the controller was not told of iteration {}: {error:#}",
                    iteration.number
                );
            }
        }
        if failed.is_none() {
            failed = print(args.output, out, iteration).err().map(Into::into);
        }
    });
    ended?;
    failed.map_or(Ok(Exit::Done), Err)
}

fn print(output: Format, out: &mut dyn Write, iteration: Iteration) -> std::io::Result<()> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (compute, communication) = (ms(iteration.compute), ms(iteration.communication));
    match output {
        Format::Table => writeln!(
            out,
            "iteration {:4}: computed {compute:9.3} ms, reduced {communication:9.3} ms",
            iteration.number
        )?,
        Format::Json => {
            let began = iteration.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            let line = json!({
                "iteration": iteration.number, "compute_ms": compute, "comm_ms": communication,
                "comm_began_s": began.as_secs_f64(),
            });
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}
