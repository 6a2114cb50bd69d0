//! How long plans take and how good they are, in one process, beside twins where there are any.
//!
//! `cargo bench --bench solver` measures the goals: first plan, plan within its budget, a plan after a change, three
//! candidates of feedback, memory; and evaluation by component beside evaluation of the whole.
//! `cargo bench --bench solver -- large` does so with 10,000 flows.
//! `cargo bench --bench solver -- optimality FIRST LAST [EVALUATIONS]` enumerates the cases of those seeds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench is a driver: it prints and reads a clock"
)]

use ringpath::id::JobId;
use ringpath::solver::fluid::{Draws, Fluid, Metrics, Outcome};
use ringpath::solver::instance::{Choice, Instance};
use ringpath::solver::objective::{Evaluator, Yardstick, value};
use ringpath::solver::optimality::{Budget, case, run};
use ringpath::solver::policy::{greedy, joint};
use ringpath::solver::{Effort, InForce, Objective, Problem};
use ringpath::time::Span;
use ringpath::topology::generate::LeafSpine;
use ringpath::topology::{DEFAULT_MAX_PATHS, LinkSet, Path, Paths, Topology};
use ringpath::units::BitRate;
use ringpath::workload::place::{RingOrder, place};
use ringpath::workload::{Flow, Job, models};
use std::time::{Duration, Instant};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    match words.first().map(String::as_str) {
        Some("optimality") => optimality(number(1).unwrap_or(0), number(2).unwrap_or(9), number(3)),
        Some("large") => {
            goals(&Fleet::new((64, 16, 16), 1_250, 8), Duration::from_secs(10));
        }
        _ => {
            let fleet = Fleet::new((16, 8, 16), 64, 8);
            goals(&fleet, Duration::from_secs(2));
            by_component();
        }
    }
    println!("resident memory at its highest: {} MB", peak_mb());
}

/// Jobs on a leaf-spine fabric of 25 Gb/s, and what policies want to know of them.
struct Fleet {
    topology: Topology,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    paths: Vec<Vec<Path>>,
}

impl Fleet {
    fn new((leaves, spines, hosts): (u32, u32, u32), count: usize, ranks: usize) -> Self {
        let rate = BitRate(25_000_000_000);
        let topology = LeafSpine::new(leaves, spines, hosts, rate).build().expect("a fabric");
        let taken = vec![0; topology.host_count()];
        let per_host = (count * ranks).div_ceil(topology.host_count()) as u32 + 1;
        let sizes = vec![ranks; count];
        let rings = place(&sizes, &taken, per_host, RingOrder::Sorted, 1).expect("room");
        let jobs: Vec<Job> =
            rings.into_iter().enumerate().map(|(id, ranks)| job(id, ranks)).collect();
        let flows = ringpath::workload::flows(&topology, &jobs).expect("flows");
        let trees = Paths::build(&topology, &LinkSet::default(), DEFAULT_MAX_PATHS).expect("paths");
        let paths = flows.iter().map(|f| trees.candidates(&topology, f.src, f.dst)).collect();
        Self { topology, jobs, flows, paths }
    }

    fn problem<'a>(&'a self, in_force: InForce<'a>) -> Problem<'a> {
        Problem {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &self.flows,
            paths: &self.paths,
            levels: 6,
            in_force,
        }
    }
}

fn job(id: usize, ranks: Vec<ringpath::id::HostId>) -> Job {
    let model = &models::MODELS[id % models::MODELS.len()];
    Job {
        id: JobId::from(id),
        name: format!("job{id}"),
        model: model.name.to_owned(),
        ranks,
        gpus_per_rank: 4,
        gradient: model.gradient(),
        compute: Span::from_secs_f64(model.compute().as_secs_f64()),
        overlap: 0.0,
        jitter: 0.03,
        iterations: 12,
        start: Span::ZERO,
        channels: 1,
    }
}

fn effort<'a>(evaluations: u64, stop: &'a (dyn Fn() -> bool + Sync)) -> Effort<'a> {
    Effort { seed: 1, max_evaluations: evaluations, stop, objective: Objective::Both, phases: 2 }
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    println!("{what}: {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
    result
}

/// The speed goals on one fleet.
fn goals(fleet: &Fleet, budget: Duration) {
    println!("{} jobs, {} flows", fleet.jobs.len(), fleet.flows.len());
    let problem = fleet.problem(InForce::default());
    let instance = timed("  problem as arrays", || Instance::new(&problem));
    let first = timed("  first plan", || joint::search(&instance, &effort(0, &|| false)));
    let mut whole = instance.clone();
    let most = (2_500 / fleet.jobs.len()).clamp(2, 12) as u32;
    whole.jobs.iter_mut().for_each(|job| job.iterations = most);
    let draws = Draws::random(&whole, 5, "bench-judge", 0);
    let judge = |choice: &Choice| judged(&whole, choice, &draws);
    let before = timed("  one simulation that judges", || judge(&first.choice));
    for share in [4, 1] {
        let (from, until) = (Instant::now(), budget / share);
        let stop = move || from.elapsed() >= until;
        let found = joint::search(&instance, &effort(u64::MAX, &stop));
        println!(
            "  after {:.1} s: {} evaluations, judged objective {:.4} of the first plan's",
            from.elapsed().as_secs_f64(),
            found.evaluations,
            judge(&found.choice) / before
        );
    }
    // One job leaves, one arrives: routes of all others are in force.
    let mut routes: Vec<Option<(Path, u8)>> = fleet
        .paths
        .iter()
        .zip(first.choice.path.iter().zip(&first.choice.queue))
        .map(|(paths, (&path, &queue))| Some((paths[usize::from(path)].clone(), queue)))
        .collect();
    for flow in fleet.flows.iter().filter(|flow| flow.job.index() == 3) {
        routes[flow.id.index()] = None;
    }
    let changed = fleet.problem(InForce { done: &[], routes: &routes });
    timed("  plan after an arrival, problem included", || {
        ringpath::solver::Policy::plan(&joint::Joint, &changed, &effort(0, &|| false))
    });
    timed("  three candidates of feedback", || candidates(&instance, &first.choice));
}

/// Objective of a whole run; lower is better.
fn judged(instance: &Instance, choice: &Choice, draws: &Draws) -> f64 {
    let iso: Vec<f64> =
        (0..instance.jobs.len()).map(|job| greedy::least_alone(instance, job)).collect();
    let mut outcome = Outcome::default();
    let mut fluid = Fluid::new(instance);
    fluid.load(choice);
    fluid.run(draws, &mut outcome);
    value(Objective::Both, &Metrics::of(instance, &outcome, &iso))
}

/// A flow stays, gets another path, gets a higher queue: eight iterations of the longest job each, one draw.
fn candidates(instance: &Instance, choice: &Choice) -> f64 {
    let mut short = instance.clone();
    short.jobs.iter_mut().for_each(|job| job.iterations = 8);
    let one = Effort { phases: 1, ..effort(1, &|| false) };
    let yardstick = Yardstick::new(&short, &one);
    let mut evaluator = Evaluator::new(&short, &yardstick);
    let flow =
        (0..choice.path.len()).find(|&flow| instance.flows[flow].candidates.len() > 1).unwrap_or(0);
    let mut other = choice.clone();
    other.path[flow] = u16::from(other.path[flow] == 0);
    let mut raised = choice.clone();
    raised.queue[flow] = 5;
    [choice, &other, &raised]
        .map(|c| evaluator.score(c, f64::INFINITY))
        .into_iter()
        .fold(0.0, f64::max)
}

/// Moves of one job on sixteen fabrics side by side: by component beside the whole run.
fn by_component() {
    let mut fleet = Fleet::new((16, 2, 4), 32, 2);
    // Two jobs on each leaf pair and none across: sixteen or more components.
    for (id, job) in fleet.jobs.iter_mut().enumerate() {
        let pair = id / 4 * 8;
        job.ranks = [pair + id % 4, pair + 4 + id % 4].map(ringpath::id::HostId::from).to_vec();
    }
    fleet.flows = ringpath::workload::flows(&fleet.topology, &fleet.jobs).expect("flows");
    let trees =
        Paths::build(&fleet.topology, &LinkSet::default(), DEFAULT_MAX_PATHS).expect("paths");
    fleet.paths =
        fleet.flows.iter().map(|f| trees.candidates(&fleet.topology, f.src, f.dst)).collect();
    let instance = Instance::new(&fleet.problem(InForce::default()));
    let yardstick = Yardstick::new(&instance, &effort(1, &|| false));
    let mut evaluator = Evaluator::new(&instance, &yardstick);
    let mut choice = Choice::first(instance.flows.len());
    let rounds = 2_000;
    let moves = |choice: &mut Choice, round: usize| {
        let flow = round * 7 % choice.queue.len();
        choice.queue[flow] = ((round / choice.queue.len()) % 6) as u8;
    };
    let started = Instant::now();
    for round in 0..rounds {
        moves(&mut choice, round);
        evaluator.score(&choice, f64::INFINITY);
    }
    let parts = started.elapsed().as_secs_f64();
    let mut fluid = Fluid::new(&instance);
    let mut outcome = Outcome::default();
    let started = Instant::now();
    for round in 0..rounds {
        moves(&mut choice, round);
        fluid.load(&choice);
        for draws in &yardstick.draws {
            fluid.run(draws, &mut outcome);
        }
    }
    let whole = started.elapsed().as_secs_f64();
    println!(
        "moves of one job among {}: {:.1} us by component, {:.1} us whole, ratio {:.1}",
        fleet.jobs.len(),
        parts / rounds as f64 * 1e6,
        whole / rounds as f64 * 1e6,
        whole / parts
    );
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
/// A share of the optimum and the case where it was reached.
type Share = (f64, u64);

/// Mean and worst share of the optimum, policy by policy.
fn optimality(first: u64, last: u64, evaluations: Option<u64>) {
    let mut budget = Budget::default();
    budget.evaluations = evaluations.unwrap_or(budget.evaluations);
    let started = Instant::now();
    let mut table: Vec<(String, Vec<Share>, Vec<Share>)> = Vec::new();
    let mut simulated = 0;
    for seed in first..=last {
        let outcome = run(&case(seed), budget).expect("a case that was drawn");
        simulated += outcome.simulated;
        for (at, row) in outcome.rows.into_iter().enumerate() {
            if table.len() <= at {
                table.push((row.policy, Vec::new(), Vec::new()));
            }
            table[at].1.push((row.of_comm, seed));
            table[at].2.push((row.of_utilisation, seed));
        }
    }
    let count = (last - first + 1) as f64;
    println!(
        "{count} cases, {:.0} choices simulated each, {:.2} s each",
        simulated as f64 / count,
        started.elapsed().as_secs_f64() / count
    );
    for (policy, comm, utilisation) in table {
        let show = |shares: &[Share]| {
            let worst = shares
                .iter()
                .copied()
                .fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a });
            let mean = shares.iter().map(|share| share.0).sum::<f64>() / count;
            let below = shares.iter().filter(|share| share.0 < 0.95).count();
            format!("mean {:.4} worst {:.4} (case {}), {below} below 0.95", mean, worst.0, worst.1)
        };
        println!("{policy:17} comm {}   utilisation {}", show(&comm), show(&utilisation));
    }
}
