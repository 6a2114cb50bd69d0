//! How near to the best plan of all: small cases in the shape of Crux's optimality test, enumerated whole.
//!
//! In: a seed, a budget. Out: plain values: a [`Case`], and an [`Outcome`] with the enumerated optimum and what each
//! policy reaches of it. Must not know: files, tables, how cases are spread over machines. Both depend on their arguments
//! only, so any share of the seeds can run anywhere and in any order.
//!
//! **Cases** (Crux, SIGCOMM 2024, section 4.4: up to 20 hosts of 8 GPUs, 2-4 leaves, 2 spines, 5 jobs, 3 levels): see
//! [`case`]. **The space of the oracle**: one of the candidate paths for every flow x one of 3 queues for every job,
//! enumerated without exception ([`super::exact`]; only what cannot differ is left out). **What is compared**: both metrics
//! of the fluid simulation of iterating jobs, mean over the same planning draws for oracle and policies. `joint-job-queues`
//! searches exactly the oracle's space, so it can reach 1 and never pass it; `joint` may also give the flows of one job
//! different queues, which the oracle does not, so it can pass 1.

use super::exact::{self, Grain};
use super::fluid::Metrics;
use super::instance::{Choice, Instance};
use super::objective::{Evaluator, Yardstick};
use super::policy::joint::{self, scope::Scope};
use super::policy::{crux, ecmp, least_loaded, paper, sebf, sincronia};
use super::{Effort, InForce, Objective, Problem};
use crate::id::JobId;
use crate::time::Span;
use crate::topology::generate::LeafSpine;
use crate::topology::{LinkSet, Paths};
use crate::units::BitRate;
use crate::workload::{Job, models};
use rand::RngExt as _;
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Jobs of every case.
pub const JOBS: usize = 5;
/// Queues of every case.
pub const LEVELS: u8 = 3;
/// Hosts of a case at most.
pub const HOSTS_MAX: u32 = 20;
/// Flows with a choice of path in a case: fewer give no choice to speak of, more cannot be enumerated in seconds.
pub const CHOOSING: std::ops::RangeInclusive<usize> = 5..=10;
/// Iterations of the job with the longest period; the others run for about as long.
const ITERATIONS: f64 = 12.0;
/// Iterations of a job at most: it then ends before the others, as jobs do.
const ITERATIONS_MAX: f64 = 48.0;
/// Draws until a case has [`CHOOSING`] flows; nearly all need fewer than ten.
const ATTEMPTS: u64 = 1_000;
/// Choices that are enumerated at most: 2 paths of 10 flows, 3 queues of 5 jobs.
const ENUMERATED_MAX: u64 = (1 << 10) * 243;

/// One case as a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Its seed.
    pub seed: u64,
    /// Leaf switches.
    pub leaves: u32,
    /// Spine switches.
    pub spines: u32,
    /// Hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// Rate of every cable, bit/s.
    pub rate_bps: u64,
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// What may be spent on one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Choices that each search simulates.
    pub evaluations: u64,
    /// Planning draws of start phases and compute times.
    pub phases: u32,
}

impl Default for Budget {
    /// About a quarter of a second per search on one core.
    fn default() -> Self {
        Self { evaluations: 12_000, phases: 2 }
    }
}

/// What became of one case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The case.
    pub seed: u64,
    /// Flows with more than one candidate path.
    pub choosing: usize,
    /// Choices of the oracle's space: paths x queues.
    pub choices: u64,
    /// Choices that were simulated; all others could not differ from one of these, or not be better.
    pub simulated: u64,
    /// The least mean communication time, seconds.
    pub best_comm_s: f64,
    /// The most GPU utilisation, 0..=1.
    pub best_utilisation: f64,
    /// What policies reach, `joint` last.
    pub rows: Vec<Row>,
}

/// What one policy reaches on one case; those that search do so once per metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The policy.
    pub policy: String,
    /// Mean communication time, seconds.
    pub comm_s: f64,
    /// GPU utilisation, 0..=1.
    pub utilisation: f64,
    /// Optimum / communication time: 1 is the optimum.
    pub of_comm: f64,
    /// Utilisation / optimum: 1 is the optimum.
    pub of_utilisation: f64,
}

/// Why a case cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// No such fabric.
    #[error("case {seed} has no fabric; take the case from `optimality::case`")]
    Fabric {
        /// The case.
        seed: u64,
        /// What is wrong with its size.
        #[source]
        source: crate::topology::generate::GenerateError,
    },
    /// No candidate paths.
    #[error("case {seed} has no paths; take the case from `optimality::case`")]
    Paths {
        /// The case.
        seed: u64,
        /// What is wrong.
        #[source]
        source: crate::topology::PathError,
    },
    /// Jobs that the fabric cannot hold.
    #[error("case {seed} has no flows; take the case from `optimality::case`")]
    Flows {
        /// The case.
        seed: u64,
        /// What is wrong with its jobs.
        #[source]
        source: crate::workload::FlowError,
    },
    /// Too many choices.
    #[error("case {seed} cannot be enumerated; take the case from `optimality::case`")]
    TooLarge {
        /// The case.
        seed: u64,
        /// How large it is.
        #[source]
        source: exact::TooLarge,
    },
}

/// Draws a case: 2-4 leaves, 2 spines, all cables at 25 or 100 Gb/s, at most [`HOSTS_MAX`] hosts of 8 GPUs, one or two jobs
/// per NIC; 5 jobs on 2-6 random hosts each (rings in host order), models evenly from the table, compute times spread by
/// ±10 %, 3 % jitter, an overlap of 0, 25 or 50 %. Drawn anew until every job has two hosts and the number of flows with a choice lies in [`CHOOSING`].
#[must_use]
pub fn case(seed: u64) -> Case {
    let mut drawn = draw(seed, 0);
    for attempt in 1..ATTEMPTS {
        if drawn.jobs.iter().all(|job| job.ranks.len() >= 2) && CHOOSING.contains(&choosing(&drawn))
        {
            break;
        }
        drawn = draw(seed, attempt);
    }
    drawn
}

fn draw(seed: u64, attempt: u64) -> Case {
    let mut random = crate::time::stream(seed, "optimality", attempt);
    let leaves = random.random_range(2..=4_u32);
    let hosts_per_leaf = random.random_range(3..=HOSTS_MAX / leaves);
    let rate_bps = if random.random_bool(0.5) { 25_000_000_000 } else { 100_000_000_000 };
    let per_nic = random.random_range(1..=2_u32);
    let hosts = leaves * hosts_per_leaf;
    let mut taken = vec![0; hosts as usize];
    let mut jobs = Vec::with_capacity(JOBS);
    for id in 0..JOBS {
        let mut free: Vec<usize> = (0..taken.len()).filter(|&host| taken[host] < per_nic).collect();
        free.shuffle(&mut random);
        let size = random.random_range(2..=6_usize).min(free.len());
        free.truncate(size);
        free.sort_unstable();
        free.iter().for_each(|&host| taken[host] += 1);
        let model = &models::MODELS[random.random_range(0..models::MODELS.len())];
        let spread = random.random_range(0.9..1.1);
        jobs.push(Job {
            id: JobId::from(id),
            name: format!("job{id}"),
            model: model.name.to_owned(),
            ranks: free.into_iter().map(crate::id::HostId::from).collect(),
            gpus_per_rank: 8,
            gradient: model.gradient(),
            compute: Span::from_secs_f64(model.compute().as_secs_f64() * spread),
            overlap: 0.25 * f64::from(random.random_range(0..=2_u32)),
            jitter: 0.03,
            iterations: 1,
            start: Span::ZERO,
            channels: 1,
        });
    }
    let mut case = Case { seed, leaves, spines: 2, hosts_per_leaf, rate_bps, jobs };
    even_out(&mut case);
    case
}

/// Iterations such that all jobs run about equally long when they meet nobody.
fn even_out(case: &mut Case) {
    let rate = case.rate_bps as f64 / 8.0;
    let period = |job: &Job| {
        let bytes = crate::workload::edge_bytes(job.gradient.0, job.ranks.len(), job.channels);
        let compute = job.compute.as_secs_f64();
        compute.max((1.0 - job.overlap) * compute + bytes as f64 / rate)
    };
    let longest = case.jobs.iter().map(period).fold(0.0, f64::max);
    for job in &mut case.jobs {
        let count = (ITERATIONS * longest / period(job)).round().min(ITERATIONS_MAX);
        job.iterations = count as u32;
    }
}

/// Ring edges between different leaves.
fn choosing(case: &Case) -> usize {
    let leaf = |host: crate::id::HostId| host.index() / case.hosts_per_leaf as usize;
    let edges = |job: &Job| {
        let next = job.ranks.iter().cycle().skip(1);
        job.ranks.iter().zip(next).filter(|(a, b)| leaf(**a) != leaf(**b)).count()
    };
    case.jobs.iter().map(edges).sum()
}

/// Enumerates a case and lets the policies plan it.
///
/// # Errors
/// [`CaseError`] for a case that [`case`] did not make.
pub fn run(case: &Case, budget: Budget) -> Result<Outcome, CaseError> {
    let seed = case.seed;
    let rate = BitRate(case.rate_bps);
    let topology = LeafSpine::new(case.leaves, case.spines, case.hosts_per_leaf, rate)
        .build()
        .map_err(|source| CaseError::Fabric { seed, source })?;
    let flows = crate::workload::flows(&topology, &case.jobs)
        .map_err(|source| CaseError::Flows { seed, source })?;
    let trees = Paths::build(&topology, &LinkSet::default(), crate::topology::DEFAULT_MAX_PATHS)
        .map_err(|source| CaseError::Paths { seed, source })?;
    let paths: Vec<_> =
        flows.iter().map(|flow| trees.candidates(&topology, flow.src, flow.dst)).collect();
    measure(
        case,
        budget,
        &Problem {
            topology: &topology,
            jobs: &case.jobs,
            flows: &flows,
            paths: &paths,
            levels: LEVELS,
            in_force: InForce::default(),
        },
    )
}

fn measure(case: &Case, budget: Budget, problem: &Problem<'_>) -> Result<Outcome, CaseError> {
    let seed = case.seed;
    let instance = Instance::new(problem);
    let effort = |objective| Effort {
        seed,
        max_evaluations: budget.evaluations,
        stop: &|| false,
        objective,
        phases: budget.phases,
    };
    let yardstick = Yardstick::new(&instance, &effort(Objective::Comm));
    let metrics = [Objective::Comm, Objective::Utilisation];
    let optima = exact::optima(&instance, &yardstick, &metrics, Grain::Jobs, ENUMERATED_MAX)
        .map_err(|source| CaseError::TooLarge { seed, source })?;
    let (best_comm_s, best_utilisation) = (optima[0].score, -optima[1].score);
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let mut judge = |choice: &Choice| Metrics::mean(&evaluator.metrics(choice));
    let mut rows = Vec::new();
    let mut row = |policy: &str, comm: Metrics, utilisation: Metrics| {
        rows.push(Row {
            policy: policy.to_owned(),
            comm_s: comm.comm_mean,
            utilisation: utilisation.utilisation,
            of_comm: best_comm_s / comm.comm_mean,
            of_utilisation: utilisation.utilisation / best_utilisation,
        });
    };
    for (name, choice) in baselines(problem, &instance, seed) {
        let metrics = judge(&choice);
        row(name, metrics, metrics);
    }
    for (name, scope) in [("joint-job-queues", Scope::job_queues()), ("joint", Scope::everything())]
    {
        let mut found = |objective| {
            judge(&joint::search_within(&instance, &effort(objective), &[], &scope).choice)
        };
        let (comm, utilisation) = (found(Objective::Comm), found(Objective::Utilisation));
        row(name, comm, utilisation);
    }
    Ok(Outcome {
        seed,
        choosing: instance.flows.iter().filter(|flow| flow.candidates.len() > 1).count(),
        choices: exact::choices(&instance, Grain::Jobs) as u64,
        simulated: optima[0].evaluations,
        best_comm_s,
        best_utilisation,
        rows,
    })
}

fn baselines(problem: &Problem<'_>, instance: &Instance, seed: u64) -> Vec<(&'static str, Choice)> {
    let spread = least_loaded::choose(instance);
    let hashed = Choice { path: ecmp::paths(problem), ..Choice::first(instance.flows.len()) };
    vec![
        ("ecmp", hashed),
        ("sebf", sebf::choose(instance)),
        ("sincronia", sincronia::choose(instance, spread.path.clone()).0),
        ("least-loaded", spread),
        ("crux", crux::choose(instance, seed)),
        ("paper", paper::choose(instance)),
    ]
}
