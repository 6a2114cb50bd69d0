//! `ringpath import`: jobs from what other programs wrote, as parts of a scenario file.
//!
//! In: logs and traces. Out: `[[job]]` in TOML (of traces with the fabric), with what was assumed in comments. Must not plan.

use super::Exit;
use super::exit::usage;
use crate::time::Span;
use crate::units::Bytes;
use crate::workload::import::{RingJob, nccl};
use crate::workload::scenario::{MAX_FILE, MAX_GRADIENT, MAX_JOBS, MAX_SPAN};
use anyhow::Context as _;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

mod coflow;
mod lingjun;

/// Largest log that is read: a hundred thousand ranks write less.
const LOG_MAX: u64 = 1 << 30;

/// Arguments of `ringpath import`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What wrote the files.
    #[command(subcommand)]
    pub source: Source,
}

/// Programs whose files are read.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Source {
    /// Ring order, hosts and channels of a job from NCCL's logs (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET).
    Nccl(Nccl),
    /// Jobs, hosts and times of the Alibaba Lingjun dataset 2023 (job.csv, worker.csv, topo.csv).
    Lingjun(lingjun::Lingjun),
    /// Shuffles of a coflow-benchmark trace, each as a ring over its racks.
    Coflow(coflow::Coflow),
}

/// Arguments of `ringpath import nccl`.
#[derive(Clone, Debug, clap::Args)]
pub struct Nccl {
    /// Logs of all processes of the job.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// Name of the job.
    #[arg(long, value_name = "NAME", default_value = "job")]
    pub name: String,
    /// Gradient bytes of one replica, which the log does not say.
    #[arg(long, value_name = "BYTES")]
    pub bytes: Bytes,
    /// Compute time of one iteration, which the log does not say.
    #[arg(long, value_name = "TIME")]
    pub compute: Span,
    /// Which one, where the processes have several communicators.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub communicator: usize,
}

/// Reads and prints.
///
/// # Errors
/// A file that cannot be read; a log that says nothing usable, by line and column.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.source {
        Source::Nccl(args) => from_logs(args, out)?,
        Source::Lingjun(args) => lingjun::run(args, out)?,
        Source::Coflow(args) => coflow::run(args, out)?,
    }
    Ok(Exit::Done)
}

/// A whole file, with its name for messages.
fn load(path: &Path, advice: &str) -> anyhow::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(LOG_MAX + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read {}", path.display()))?;
    anyhow::ensure!(
        bytes.len() as u64 <= LOG_MAX,
        "{} has more than {LOG_MAX} bytes{advice}",
        path.display()
    );
    Ok((path.display().to_string(), bytes))
}

/// A comment that stays in its line, whatever a file says.
fn comment(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    let mut line = String::from("# ");
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    writeln!(out, "{line}")
}

/// Refuses what the reader of scenarios would: too many jobs, too much text.
fn fits(jobs: usize, text: &[u8], advice: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        jobs as u64 <= MAX_JOBS,
        "these are {jobs} jobs; a scenario has at most {MAX_JOBS}; {advice}"
    );
    anyhow::ensure!(
        text.len() as u64 <= MAX_FILE,
        "the scenario would have {} bytes; at most {MAX_FILE} are read; {advice}",
        text.len()
    );
    Ok(())
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn from_logs(args: &Nccl, out: &mut dyn Write) -> anyhow::Result<()> {
    if !(1..=MAX_GRADIENT).contains(&args.bytes.0) {
        let max = Bytes(MAX_GRADIENT);
        anyhow::bail!(usage(format!(
            "--bytes {} is out of range; it may be 1 B to {max}",
            args.bytes
        )));
    }
    if args.compute > MAX_SPAN {
        anyhow::bail!(usage(format!("--compute {} is longer than a day", args.compute)));
    }
    let advice = "; keep the lines with 'NCCL INFO'";
    let logs =
        args.logs.iter().map(|path| load(path, advice)).collect::<anyhow::Result<Vec<_>>>()?;
    let borrowed: Vec<(&str, &[u8])> =
        logs.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let job = nccl(&borrowed, args.communicator)?;
    Ok(print(args, &job, out)?)
}

fn print(args: &Nccl, job: &RingJob, out: &mut dyn Write) -> std::io::Result<()> {
    for note in &job.notes {
        comment(out, note)?;
    }
    for (host, interface, address) in &job.addresses {
        comment(out, &format!("{host}: {interface} {address}"))?;
    }
    for (host, device) in &job.devices {
        comment(out, &format!("{host}: sends by network device {device}"))?;
    }
    let hosts: Vec<String> = job.hosts.iter().map(|host| quoted(host)).collect();
    writeln!(out, "[[job]]\nname = {}", quoted(&args.name))?;
    writeln!(
        out,
        "bytes = {}\ncompute = {}",
        quoted(&args.bytes.to_string()),
        quoted(&args.compute.to_string())
    )?;
    writeln!(out, "workers = [{}]", hosts.join(", "))?;
    writeln!(out, "gpus = {}\nchannels = {}", job.ranks_per_host, job.channels)
}
