//! `ringpath import lingjun`: a window of the trace as a scenario.
//!
//! In: job.csv, worker.csv, topo.csv. Out: fabric and jobs in TOML. Must not know how files are read.

use super::{comment, fits, load, quoted};
use crate::cli::exit::usage;
use crate::time::Span;
use crate::topology::import::{Lingjun as Options, lingjun as fabric};
use crate::workload::import::{Trace, TraceJob, assumed, lingjun, minute};
use crate::workload::{edge_bytes, models};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Longest window: a job's start in a scenario is at most a day.
const DAY_S: f64 = 86_400.0;

/// Most iterations that a scenario's job may have.
const MAX_ITERATIONS: u32 = 1_000_000;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Lingjun {
    /// The dataset's job.csv.
    #[arg(long, value_name = "FILE")]
    pub jobs: PathBuf,
    /// The dataset's worker.csv.
    #[arg(long, value_name = "FILE")]
    pub workers: PathBuf,
    /// The dataset's topo.csv; hosts that it does not have are left out.
    #[arg(long, value_name = "FILE")]
    pub topology: PathBuf,
    /// First minute of the window, as in `2023/8/1 00:00`; that of the first job by default.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Length of the window, at most a day; jobs that begin in it are taken.
    #[arg(long = "for", value_name = "TIME", default_value = "3600s")]
    pub length: Span,
    /// Every job's model; by default the name in the trace where it says one, else all of the table in turn.
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Iterations of every job; by default as many as fit into its running time if it meets nobody.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_ITERATIONS)))]
    pub iterations: Option<u32>,
}

pub(super) fn run(args: &Lingjun, out: &mut dyn Write) -> anyhow::Result<()> {
    if args.length.as_secs_f64() > DAY_S {
        anyhow::bail!(usage(
            "--for is longer than a day; a scenario's jobs start within one".to_owned()
        ));
    }
    if let Some(model) = args.model.as_ref().filter(|model| models::find(model).is_none()) {
        let known: Vec<&str> = models::MODELS.iter().map(|model| model.name).collect();
        anyhow::bail!(usage(format!(
            "there is no model '{model}'; there are {}",
            known.join(", ")
        )));
    }
    let (jobs, workers, topo) =
        (load(&args.jobs, "")?, load(&args.workers, "")?, load(&args.topology, "")?);
    let options = Options::default();
    let topology = fabric(&topo.1, &topo.0, &options)?.topology;
    let known: BTreeSet<&str> = topology.nodes().iter().map(|node| node.name.as_str()).collect();
    let Trace { jobs: all, mut notes } = lingjun((&jobs.0, &jobs.1), (&workers.0, &workers.1))?;
    let first = match &args.from {
        Some(text) => minute(text)
            .ok_or_else(|| usage(format!("--from '{text}' is no time; write 2023/8/1 00:00")))?,
        None => all.first().map_or(0, |job| job.begin),
    };
    let last = first as f64 + args.length.as_secs_f64() / 60.0;
    let inside = |job: &TraceJob| job.begin >= first && (job.begin as f64) < last;
    let (total, mut strangers, mut small) = (all.len(), 0, 0);
    let mut taken = Vec::new();
    for mut job in all.into_iter().filter(inside) {
        let before = job.hosts.len();
        for host in &mut job.hosts {
            let short: String = host.0.chars().take(12).collect();
            if known.contains(short.as_str()) {
                host.0 = short;
            }
        }
        job.hosts.retain(|host| known.contains(host.0.as_str()));
        strangers += before - job.hosts.len();
        if job.hosts.len() < 2 {
            small += 1;
        } else {
            taken.push(job);
        }
    }
    notes.push(format!(
        "{} of {total} jobs that ran on several hosts begin in the window",
        taken.len() + small
    ));
    if strangers > 0 {
        notes.push(format!(
            "{strangers} hosts of these are not in topo.csv; {small} jobs are left out for it"
        ));
    }
    anyhow::ensure!(
        !taken.is_empty(),
        "no job of the trace begins in the window on two hosts of topo.csv or more; choose another --from"
    );
    let mut text = Vec::new();
    write(args, &taken, (first, &notes, &options), &mut text)?;
    fits(taken.len(), &text, "choose a shorter window with --for")?;
    out.write_all(&text)?;
    Ok(())
}

fn write(
    args: &Lingjun,
    jobs: &[TraceJob],
    (first, notes, options): (i64, &[String], &Options),
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for note in notes {
        comment(out, note)?;
    }
    writeln!(
        out,
        "# sizes and compute times are not in the trace: each job has a model of the table, named in the trace or in turn"
    )?;
    writeln!(
        out,
        "# link rates are not in topo.csv: hosts have {}, switches {}",
        options.host_link, options.fabric_link
    )?;
    writeln!(
        out,
        "name = \"lingjun\"\n\n[fabric]\nkind = \"lingjun\"\nfile = {}",
        quoted(&absolute(&args.topology))
    )?;
    for (turn, job) in jobs.iter().enumerate() {
        let name = args.model.as_deref().unwrap_or(&job.model);
        let (model, said) = assumed(name, turn);
        let gpus = job.hosts.iter().map(|host| host.1).max().unwrap_or(1);
        let hosts: Vec<String> = job.hosts.iter().map(|host| quoted(&host.0)).collect();
        let said = if said { "" } else { " (assumed)" };
        writeln!(
            out,
            "\n[[job]]\nname = {}\nmodel = {} # in the trace: \"{}\"{said}",
            quoted(&job.name),
            quoted(model.name),
            job.model.escape_debug()
        )?;
        writeln!(
            out,
            "workers = [{}]\ngpus = {gpus}\nstart = \"{}s\"",
            hosts.join(", "),
            (job.begin - first) * 60
        )?;
        let bytes = edge_bytes(model.gradient().0, job.hosts.len(), 1);
        let period = model.compute() + options.host_link.transmission(bytes);
        let running = (job.end - job.begin).max(1) as f64 * 60.0;
        let fit = (running / period.as_secs_f64()).max(1.0) as u32;
        match args.iterations {
            Some(iterations) => writeln!(out, "iterations = {iterations}")?,
            None if fit > MAX_ITERATIONS => writeln!(
                out,
                "iterations = {MAX_ITERATIONS} # the most that a scenario may have; {fit} fit into its running time"
            )?,
            None => writeln!(out, "iterations = {fit}")?,
        }
    }
    Ok(())
}

/// A path that holds wherever the scenario file is put.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
