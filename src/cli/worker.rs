//! `ringpath worker`: one rank of a synthetic training job, on the host where it is started.
//!
//! In: the ranks' addresses in ring order, bytes, compute time; orders of a controller. Out: a line per iteration; its state to the controller. Must not plan; to the fabric it is a program
//! that uses TCP.

mod attend;

use super::{Exit, Format, process};
use crate::time::Span;
use crate::units::Bytes;
use crate::worker::{Breaker, Iteration, Post, Spec, connect, elastic};
use attend::Courier;
use serde_json::json;
use std::io::Write;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::Notify;

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
    /// The controller that knows the job. It hears how far each rank is and how long it computed; when a host fails, it names the ring of the
    /// others, which begin again with the iteration that broke.
    #[arg(long, value_name = "HOST:PORT|unix:PATH", env = "RINGPATH_CONTROLLER")]
    pub controller: Option<String>,
    /// This host's name in the controller's fabric; by default the controller finds it by the rank's own address among --peers.
    #[arg(long, value_name = "NAME", requires = "controller")]
    pub host: Option<String>,
    /// How the iterations are printed; JSON is a line per iteration.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Longest time to take leave of the controller: a rank that is done must not wait for one that is not there.
const LEAVE: Duration = Duration::from_secs(1);

impl Args {
    fn spec(&self) -> Spec {
        Spec {
            job: self.job.clone(),
            rank: self.rank,
            peers: self.peers.clone(),
            generation: 0,
            first_port: self.first_port,
            channels: self.channels,
            bytes: self.bytes.0,
            compute: self.compute,
            pace: self.pace_file.clone(),
            patience: Duration::from_nanos(self.patience.0),
        }
    }
}

/// Runs the rank.
///
/// # Errors
/// A ring that is none, a port that is taken, a rank that is missing, went away or sent something wrong; with a controller: one that is not there
/// or does not know job or host, or that has no part for the rank any more.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut failed: Option<anyhow::Error> = None;
    let mut done = |generation, iteration| {
        if failed.is_none() {
            failed = print(args.output, out, (generation, iteration)).err().map(Into::into);
        }
    };
    match &args.controller {
        Some(controller) => attended(args, controller, &mut done)?,
        None => connect(args.spec(), &Breaker::default())?.run(
            0..args.iterations,
            &|_| {},
            &mut |iteration| done(0, iteration),
        )?,
    }
    failed.map_or(Ok(Exit::Done), Err)
}

/// Runs the rank as the controller orders, over as many memberships as it takes.
fn attended(
    args: &Args,
    controller: &str,
    done: &mut dyn FnMut(u32, Iteration),
) -> anyhow::Result<()> {
    let spec = args.spec();
    let own = spec.peers.get(spec.rank).map(ToString::to_string);
    let courier = Courier {
        controller: controller.to_owned(),
        job: args.job.clone(),
        host: args.host.clone().or(own).unwrap_or_default(),
    };
    let changed = Arc::new(Notify::new());
    let waker = Arc::clone(&changed);
    let post = Arc::new(Post::new(move || waker.notify_one()));
    let runtime = process::beside()?;
    let (host, stream) = runtime.block_on(courier.begin(&post))?;
    let attending = runtime.spawn(courier.attend(stream, Arc::clone(&post), changed));
    let ended = elastic::run(&spec, &host, args.iterations, &post, done);
    if ended.is_ok() {
        // A controller that does not take it learns from the end of the stream.
        let _ = runtime.block_on(async { tokio::time::timeout(LEAVE, attending).await });
    }
    runtime.shutdown_background();
    ended.map_err(Into::into)
}

fn print(
    output: Format,
    out: &mut dyn Write,
    (generation, iteration): (u32, Iteration),
) -> std::io::Result<()> {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (compute, communication) = (ms(iteration.compute), ms(iteration.communication));
    match output {
        Format::Table => writeln!(
            out,
            "iteration {:4}: computed {compute:9.3} ms, reduced {communication:9.3} ms, membership {generation}",
            iteration.number
        )?,
        Format::Json => {
            let began = iteration.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            let line = json!({
                "iteration": iteration.number, "compute_ms": compute, "comm_ms": communication,
                "comm_began_s": began.as_secs_f64(), "generation": generation,
            });
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}
