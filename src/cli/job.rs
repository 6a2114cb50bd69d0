//! `ringpath job`: submit, list and cancel jobs at a running controller.
//!
//! In: scenario files with jobs, names. Out: what the controller said. Must not plan or look into switches.

use super::{Exit, Format, exit, grid};
use crate::p4runtime::proto::ringpath::v1::controller_client::ControllerClient;
use crate::p4runtime::proto::ringpath::v1::{
    CancelJobRequest, FlowState, JobSpec, JobState, ListJobsRequest, ReplanRequest,
    SubmitJobsRequest, Transport, WatchEventsRequest, submit_jobs_request::Wait as Until,
    transport,
};
use crate::time::Span;
use crate::topology::Topology;
use crate::topology::suggest::hint;
use crate::workload::Job;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// Longest wait for a connection: the service is on this machine.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest wait for an answer that needs no switch. A plan may be in the making, and is waited for.
const ANSWER: Duration = Duration::from_secs(30);

/// An answer, or that there was none in time.
async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> anyhow::Result<T> {
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => Ok(answer.map_err(|status| refused(&status))?.into_inner()),
        Err(_) => {
            anyhow::bail!("the controller did not answer within {limit:?}; does it still run?")
        }
    }
}

/// Arguments of `ringpath job`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath job submit fabric.toml                  all jobs of the file, planned together
  ringpath job submit fabric.toml bert --wait installed
  ringpath job list
  ringpath job cancel bert
  ringpath job replan --policy crux                plan all jobs anew
  ringpath job watch                               everything the controller tells, a line of JSON each")]
pub struct Args {
    /// Address of the controller's service, or unix:PATH of its local socket.
    #[arg(
        long,
        value_name = "HOST:PORT|unix:PATH",
        env = "RINGPATH_CONTROLLER",
        default_value = "127.0.0.1:9580",
        global = true
    )]
    pub controller: String,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Things to do with jobs.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Submit jobs of a scenario file. Exit code 3 if one was refused.
    Submit(Submit),
    /// Show the jobs, their flows' paths and queues.
    List {
        /// How they are printed.
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },
    /// Remove jobs.
    Cancel {
        /// Their names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Plan all jobs again, with another policy if one is named.
    Replan {
        /// Policy, from now on; the one in force by default.
        #[arg(long, value_name = "NAME")]
        policy: Option<String>,
    },
    /// Print what the controller tells, until interrupted: one line of JSON per event.
    Watch,
}

/// Arguments of `ringpath job submit`.
#[derive(Clone, Debug, clap::Args)]
pub struct Submit {
    /// Scenario file with the jobs. Its fabric must be the controller's.
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Which of them; all by default.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Draws the hosts of jobs that name none; the file's own, or 0, by default.
    #[arg(long)]
    pub seed: Option<u64>,
    /// Until when to wait.
    #[arg(long, value_enum, default_value_t = Wait::Accepted)]
    pub wait: Wait,
    /// The jobs speak TCP: flow i of the first job uses port PORT + i of its receiver, and so on. RoCEv2 otherwise.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub tcp: Option<u16>,
    /// How the answer is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// How far a submission is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// Accepted, durably.
    Accepted,
    /// All paths installed.
    Installed,
}

/// Speaks to the controller.
///
/// # Errors
/// Nobody answers there; the controller's refusal; a scenario that cannot be read.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let runtime = super::process::asking()?;
    runtime.block_on(async {
        match &args.command {
            Command::Submit(submit) => submit.run(args, out).await,
            Command::List { output } => list(args, *output, out).await,
            Command::Cancel { names } => cancel(args, names, out).await,
            Command::Replan { policy } => replan(args, policy.as_deref(), out).await,
            Command::Watch => watch(args, out).await,
        }
    })
}

/// A connection to a controller.
///
/// # Errors
/// No address; nobody there.
pub async fn connect(address: &str) -> anyhow::Result<ControllerClient<Channel>> {
    let uri =
        if address.starts_with("unix:") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri).map_err(|_| {
        exit::usage(format!(
            "--controller '{address}' is no address; write for example 127.0.0.1:9580, or unix:PATH"
        ))
    })?;
    let channel = endpoint.connect_timeout(CONNECT).connect().await;
    let channel = channel.with_context(|| {
        format!(
            "no controller at {address}; is `ringpath controller` running there? See --controller"
        )
    })?;
    Ok(ControllerClient::new(channel))
}

/// A refusal, in the controller's words.
#[must_use]
pub fn refused(status: &tonic::Status) -> anyhow::Error {
    anyhow::anyhow!("{}", status.message())
}

impl Submit {
    async fn run(&self, args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
        let scenario = super::scenario(&self.scenario, self.seed)?;
        for name in &self.names {
            if !scenario.jobs.iter().any(|job| job.name == *name) {
                let hint = hint(name, scenario.jobs.iter().map(|job| job.name.as_str()));
                return Err(exit::usage(format!("the file has no job '{name}'{hint}")));
            }
        }
        let wanted = |job: &&Job| self.names.is_empty() || self.names.contains(&job.name);
        let jobs: Vec<&Job> = scenario.jobs.iter().filter(wanted).collect();
        let jobs = specs(&scenario.topology, &jobs, self.tcp)?;
        let wait = match self.wait {
            Wait::Accepted => Until::Accepted,
            Wait::Installed => Until::Installed,
        };
        let request = SubmitJobsRequest { jobs, wait: wait.into() };
        let answer = connect(&args.controller).await?.submit_jobs(request).await;
        let results = answer.map_err(|status| refused(&status))?.into_inner().results;
        let row = |result: &_| {
            let crate::p4runtime::proto::ringpath::v1::submit_jobs_response::Result {
                name,
                id,
                generation,
                refusal,
            } = result;
            json!({ "name": name, "id": id, "generation": generation, "refusal": refusal })
        };
        grid::write(
            self.output,
            out,
            || results.iter().map(row).collect::<Vec<Value>>().into(),
            |out| {
                for result in &results {
                    match result.refusal.as_str() {
                        "" => writeln!(
                            out,
                            "{}: accepted, generation {}",
                            result.name, result.generation
                        )?,
                        why => writeln!(out, "{}: refused: {why}", result.name)?,
                    }
                }
                Ok(())
            },
        )?;
        let all = results.iter().all(|result| result.refusal.is_empty());
        Ok(if all { Exit::Done } else { Exit::CheckFailed })
    }
}

/// Jobs as messages. Over TCP each job's ports begin where those of the one before end.
fn specs(topology: &Topology, jobs: &[&Job], tcp: Option<u16>) -> anyhow::Result<Vec<JobSpec>> {
    let mut port = tcp.map(u32::from);
    let mut specs = Vec::with_capacity(jobs.len());
    for job in jobs {
        let kind = port.map(|first_port| transport::Kind::Tcp(transport::Tcp { first_port }));
        if let Some(port) = &mut port {
            *port += u32::try_from(job.ranks.len() * usize::from(job.channels))?;
        }
        specs.push(JobSpec {
            name: job.name.clone(),
            model: job.model.clone(),
            hosts: job
                .ranks
                .iter()
                .map(|host| topology.node(topology.host_node(*host)).name.clone())
                .collect(),
            gpus_per_host: job.gpus_per_rank,
            gradient_bytes: job.gradient.0,
            compute_ns: job.compute.0,
            overlap: job.overlap,
            iterations: job.iterations,
            channels: job.channels.into(),
            transport: kind.map(|kind| Transport { kind: Some(kind) }),
        });
    }
    Ok(specs)
}

async fn list(args: &Args, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut client = connect(&args.controller).await?;
    let jobs = within(ANSWER, client.list_jobs(ListJobsRequest {})).await?.jobs;
    grid::write(
        output,
        out,
        || jobs.iter().map(document).collect::<Vec<Value>>().into(),
        |out| table(&jobs, out),
    )?;
    Ok(Exit::Done)
}

fn document(job: &JobState) -> Value {
    let spec = job.spec.clone().unwrap_or_default();
    let flow = |flow: &FlowState| {
        json!({
            "id": flow.id, "channel": flow.channel, "source": flow.source, "destination": flow.destination,
            "bytes_per_iteration": flow.bytes_per_iteration, "path": flow.path, "queue": flow.queue,
            "in_force": flow.in_force,
        })
    };
    let first_port = match spec.transport.and_then(|transport| transport.kind) {
        Some(transport::Kind::Tcp(tcp)) => Some(tcp.first_port),
        _ => None,
    };
    json!({
        "name": spec.name, "id": job.id, "membership": job.membership, "first_port": first_port, "model": spec.model, "hosts": spec.hosts, "ready": job.ready,
        "iterations_done": job.iterations_done, "iterations": spec.iterations,
        "gradient_bytes": spec.gradient_bytes, "compute_ms": Span(spec.compute_ns).as_secs_f64() * 1e3,
        "flows": job.flows.iter().map(flow).collect::<Vec<Value>>(),
    })
}

fn table(jobs: &[JobState], out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = grid::grid(
        &["job", "state", "iterations", "flow", "from", "to", "queue", "path", "in force"],
        &[2, 3, 6],
    );
    for job in jobs {
        let spec = job.spec.clone().unwrap_or_default();
        let state = if job.ready { "ready" } else { "waits" };
        let done = format!("{}/{}", job.iterations_done, spec.iterations);
        for (at, flow) in job.flows.iter().enumerate() {
            let first = |text: &str| if at == 0 { text.to_owned() } else { String::new() };
            table.add_row([
                first(&spec.name),
                first(state),
                first(&done),
                flow.id.to_string(),
                flow.source.clone(),
                flow.destination.clone(),
                flow.queue.to_string(),
                if flow.path.is_empty() { "none is alive".to_owned() } else { flow.path.join(" ") },
                if flow.in_force { "yes" } else { "no" }.to_owned(),
            ]);
        }
    }
    writeln!(out, "{table}")
}

async fn cancel(args: &Args, names: &[String], out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut client = connect(&args.controller).await?;
    for name in names {
        within(ANSWER, client.cancel_job(CancelJobRequest { name: name.clone() })).await?;
        writeln!(out, "{name}: cancelled")?;
    }
    Ok(Exit::Done)
}

async fn replan(args: &Args, policy: Option<&str>, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut client = connect(&args.controller).await?;
    let request = ReplanRequest { policy: policy.unwrap_or_default().to_owned() };
    let generation = within(ANSWER, client.replan(request)).await?.generation;
    writeln!(out, "generation {generation}")?;
    Ok(Exit::Done)
}

async fn watch(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let answer = connect(&args.controller).await?.watch_events(WatchEventsRequest {}).await;
    let mut events = answer.map_err(|status| refused(&status))?.into_inner();
    let gone = || format!("the controller at {} went away", args.controller);
    while let Some(told) = events.message().await.map_err(|_| anyhow::anyhow!(gone()))? {
        let at = Span(told.at_ns).as_secs_f64();
        writeln!(out, "{{\"at_s\":{at:.6},\"event\":{}}}", told.event_json)?;
        out.flush()?;
    }
    Ok(Exit::Done)
}
