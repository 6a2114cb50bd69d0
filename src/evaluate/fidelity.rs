//! Preset `fidelity`: how far estimates and the fluid model are from packets, on the same plans.
//!
//! In: a size. Out: per case and policy the communication time of the run, of every job and of every flow by packets, by the fluid
//! simulation, by the mean-field estimate, by one-shot drain times and by the static estimate; distributions of the errors; whether
//! each ranks the policies as packets do, and which pairs it misranks. Must not know: how a policy works.
//!
//! Compute times are exact and starts are the same in both simulations, so what differs is the network's doing. Flows of one ring are
//! coupled: the fluid model gives them all the ring's time.

use super::compare::{Entrant, alien, named};
use super::draw::{Case, Drawn, Fabric};
use super::paper::FULL_PERCENT;
use super::stats::{kendall, mean, quantile};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary, finite};
use crate::controller::{Artifacts, Planning, SharedPolicy};
use crate::plan::Plan;
use crate::report::evaluation::{Entry, Mark, Page, Table};
use crate::sim::run::{Options, RunSpec, flow_times};
use crate::sim::wire::WireKind;
use crate::solver::fluid::drain::drain;
use crate::solver::fluid::{Draws, Fluid, Metrics, Outcome};
use crate::solver::instance::Instance;
use crate::solver::objective::static_estimate;
use crate::solver::policy::joint::estimate;
use crate::solver::{Effort, Objective, Policy, Problem, bound};
use crate::time::{Span, stream};
use crate::workload::place::RingOrder;
use crate::workload::scenario::{DEFAULT_QUEUES, Scenario};
use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Seeds per fabric.
const SEEDS: u64 = 5;
/// Data packets per run; σ follows.
const PACKETS: u64 = 300_000;
/// And of the small form.
const SMALL_PACKETS: u64 = 60_000;
/// Search of `joint`.
const EVALUATIONS: u64 = 1_000;
/// Planning draws.
pub(super) const PHASES: u32 = 4;
/// Whose plans are compared.
const POLICIES: [&str; 8] =
    ["ecmp", "least-loaded", "sebf", "sincronia", "gsched-g1", "crux", "paper", "joint"];
/// And in the small form.
const SMALL_POLICIES: [&str; 4] = ["ecmp", "least-loaded", "crux", "joint"];
/// Longest contention-free periods that jobs run for.
pub(super) const PERIODS: f64 = 10.0;
/// Models, in the order of the figures of a [`Point`].
const MODELS: [&str; 4] = ["fluid", "mean-field", "drain", "static"];
/// Policies nearer than this by packets are a tie: misranking them means nothing.
const TIE: f64 = 0.01;

/// See the module.
pub struct Fidelity {
    artifacts: Artifacts,
    seeds: u64,
    small: bool,
}

/// A cell: one plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    case: Case,
    policy: String,
    evaluations: u64,
    packets: u64,
}

/// Communication milliseconds of one thing (run, job or flow); `None` where a model says nothing of such a thing.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Point {
    packets: f64,
    /// By [`MODELS`].
    models: [Option<f64>; 4],
}

/// What one plan came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Compared {
    sigma: f64,
    comm: Point,
    /// Packets, fluid, mean-field.
    utilisation: [f64; 3],
    jobs: Vec<Point>,
    flows: Vec<Point>,
}

impl Compared {
    /// Refuses figures that JSON cannot hold.
    fn check(&self) -> Result<(), EvaluateError> {
        finite("\u{3c3}", self.sigma)?;
        for value in self.utilisation {
            finite("a utilisation", value)?;
        }
        let runs = [("the run", std::slice::from_ref(&self.comm))];
        for (what, points) in
            runs.into_iter().chain([("job", &self.jobs[..]), ("flow", &self.flows[..])])
        {
            for (number, point) in points.iter().enumerate() {
                let of = |who: &str| format!("the communication time of {what} {number} by {who}");
                finite(of("packets"), point.packets)?;
                for (model, value) in MODELS.iter().zip(point.models) {
                    finite(of(model), value.unwrap_or_default())?;
                }
            }
        }
        Ok(())
    }
}

impl Fidelity {
    /// The preset in a size.
    ///
    /// # Errors
    /// The built-in program cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        let artifacts = super::detection::artifacts()?;
        Ok(Self { artifacts, seeds: settings.seeds(SEEDS, 1), small: settings.small })
    }

    fn packets(&self, drawn: &Drawn, plan: &Plan, spec: &Spec) -> Result<Packets, EvaluateError> {
        let scenario = Scenario {
            name: "fidelity".to_owned(),
            seed: spec.case.seed,
            topology: drawn.topology.clone(),
            queues: DEFAULT_QUEUES,
            max_paths: crate::topology::DEFAULT_MAX_PATHS,
            jobs: drawn.jobs.clone(),
            any_order: Vec::new(),
            events: Vec::new(),
            packet_scale: None,
            notes: Vec::new(),
        };
        let fixed: SharedPolicy = Arc::new(Fixed(plan.clone()));
        let run = RunSpec {
            scenario: &scenario,
            policies: &[fixed],
            policy: Fixed::NAME,
            artifacts: &self.artifacts,
            wire: WireKind::Direct,
            planning: Planning {
                levels: scenario.levels(),
                max_paths: scenario.max_paths,
                max_evaluations: 1,
                objective: Objective::default(),
                phases: 1,
            },
            options: Options {
                packet_budget: spec.packets,
                report_finished: false,
                ..Options::default()
            },
        };
        let (result, flows) =
            flow_times(&run).map_err(|error| EvaluateError::Run(Box::new(error)))?;
        let jobs = drawn
            .jobs
            .iter()
            .map(|job| result.comm_ms_per_job.get(&job.name).copied().unwrap_or(0.0));
        Ok(Packets {
            sigma: result.packet_scale,
            comm_ms: result.comm_ms_mean,
            utilisation: result.gpu_utilisation,
            jobs: jobs.collect(),
            flows: flows.into_iter().map(|flow| flow.map_or(0.0, |s| s * 1e3)).collect(),
        })
    }
}

/// What packets say.
struct Packets {
    sigma: f64,
    comm_ms: f64,
    utilisation: f64,
    jobs: Vec<f64>,
    flows: Vec<f64>,
}

/// A policy that has one plan.
struct Fixed(Plan);

impl Fixed {
    const NAME: &str = "fixed";
}

impl Policy for Fixed {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn plan(&self, _: &Problem<'_>, _: &Effort<'_>) -> Plan {
        self.0.clone()
    }
}

/// A case with exact compute times and drawn starts.
fn drawn(case: &Case) -> Result<Drawn, EvaluateError> {
    let mut drawn = case.draw()?;
    drawn.shorten(PERIODS);
    for (id, job) in drawn.jobs.iter_mut().enumerate() {
        let mut random = stream(case.seed, "fidelity-start", id as u64);
        let period = job.compute.as_secs_f64();
        job.start = Span::from_secs_f64(period * random.random::<f64>());
        job.jitter = 0.0;
    }
    Ok(drawn)
}

fn compared(drawn: &Drawn, plan: &Plan, packets: Packets) -> Option<Compared> {
    let problem = drawn.problem();
    let instance = Instance::new(&problem);
    let choice = Instance::choice(&problem, plan)?;
    let draws = Draws::exact(&instance);
    let (mut fluid, mut outcome) = (Fluid::new(&instance), Outcome::default());
    fluid.load(&choice);
    fluid.run(&draws, &mut outcome);
    let metrics = Metrics::of(&instance, &outcome, &bound::iso_comm(&instance));
    let field = estimate::mean_field(&instance, &choice).0;
    let drained = drain(&instance, &choice);
    let senders = drained.job.iter().filter(|seconds| **seconds > 0.0).count().max(1) as f64;
    let ms = |seconds: f64| Some(seconds * 1e3);
    let comm = Point {
        packets: packets.comm_ms,
        models: [
            ms(metrics.comm_mean),
            ms(field.comm_mean),
            ms(drained.sum() / senders),
            ms(static_estimate(&instance, &choice)),
        ],
    };
    let job = |(id, packets): (usize, &f64)| Point {
        packets: *packets,
        models: [ms(outcome.comm[id]), None, ms(drained.job[id]), None],
    };
    let flow = |(id, packets): (usize, &f64)| {
        let rate = drained.rate0[id];
        let alone = (rate > 0.0).then(|| instance.flows[id].bytes / rate * 1e3);
        let ring = outcome.comm[instance.flows[id].job];
        Point { packets: *packets, models: [ms(ring), None, ms(drained.flow[id]), alone] }
    };
    Some(Compared {
        sigma: packets.sigma,
        comm,
        utilisation: [packets.utilisation, metrics.utilisation, field.utilisation],
        jobs: packets.jobs.iter().enumerate().map(job).collect(),
        flows: packets.flows.iter().enumerate().map(flow).collect(),
    })
}

impl Preset for Fidelity {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let orders = [(RingOrder::Sorted, 2), (RingOrder::Shuffled, 1)];
        let (orders, packets) = match self.small {
            true => (&orders[..1], SMALL_PACKETS),
            false => (&orders[..], PACKETS),
        };
        let policies = if self.small { &SMALL_POLICIES[..] } else { &POLICIES[..] };
        let mut cells = Vec::new();
        for &(order, oversubscription) in orders {
            let fabric = Fabric {
                leaves: 4,
                spines: 4,
                hosts_per_leaf: 4,
                oversubscription,
                thin: false,
                gbps: 25,
            };
            for seed in 0..self.seeds {
                for &policy in policies {
                    let case = Case {
                        fabric,
                        jobs_per_nic: 2,
                        full_percent: FULL_PERCENT,
                        sizes: vec![2, 4, 4, 8],
                        order,
                        seed,
                    };
                    let name =
                        format!("{} {}, {policy} seed {seed}", case.name(), super::word(order));
                    let policy = policy.to_owned();
                    let spec = Spec { case, policy, evaluations: EVALUATIONS, packets };
                    cells.push(Cell::new(name, &spec)?);
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let spec: Spec = cell.spec()?;
        let drawn = drawn(&spec.case)?;
        let entrant = Entrant::of(&spec.policy);
        let policy = named(&entrant.policy)?;
        let effort = Effort {
            seed: spec.case.seed,
            max_evaluations: spec.evaluations,
            stop: &|| false,
            objective: entrant.objective,
            phases: PHASES,
        };
        let plan = policy.plan(&drawn.problem(), &effort);
        let packets = self.packets(&drawn, &plan, &spec)?;
        let compared = compared(&drawn, &plan, packets).ok_or_else(|| alien(&entrant.policy))?;
        compared.check()?;
        Measured::of(&compared)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let read = super::read::<Spec, Compared>(results)?;
        let ranks: Vec<Rank> = read.chunk_by(|a, b| a.0.case == b.0.case).flat_map(ranks).collect();
        let page = page(&read, &ranks, self.seeds);
        let plans: Vec<Value> = results
            .iter()
            .map(|(cell, result)| serde_json::json!({ "cell": cell.name, "result": result }))
            .collect();
        let rows = serde_json::json!({ "ranks": ranks, "plans": plans });
        Ok(Summary { source: "packet", seeds: self.seeds, rows, page })
    }
}

/// How one model ranks the policies of one case.
#[derive(Serialize)]
struct Rank {
    case: String,
    model: &'static str,
    /// Kendall's tau-b against packets.
    tau: f64,
    /// Whether the best policy by the model is the best by packets, and how much worse it is by packets otherwise.
    best: String,
    best_by_packets: String,
    regret: f64,
    /// Pairs in the wrong order that packets tell apart: better by the model, better by packets, by how much (packets).
    misranked: Vec<(String, String, f64)>,
}

fn ranks(group: &[(Spec, Compared)]) -> Vec<Rank> {
    let packets: Vec<f64> = group.iter().map(|(_, c)| c.comm.packets).collect();
    let name = |place: usize| group[place].0.policy.clone();
    let least = |values: &[f64]| {
        (0..values.len()).min_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap_or(0)
    };
    let rank = |(number, model): (usize, &'static str)| {
        let values: Vec<f64> =
            group.iter().map(|(_, c)| c.comm.models[number].unwrap_or(f64::NAN)).collect();
        let (own, real) = (least(&values), least(&packets));
        let mut misranked = Vec::new();
        for i in 0..values.len() {
            for j in 0..values.len() {
                let lead = packets[i] / packets[j] - 1.0;
                if values[i] < values[j] && lead > TIE {
                    misranked.push((name(i), name(j), lead));
                }
            }
        }
        let case = &group[0].0.case;
        Rank {
            case: format!("{} {} seed {}", case.name(), super::word(case.order), case.seed),
            model,
            tau: kendall(&values, &packets),
            best: name(own),
            best_by_packets: name(real),
            regret: packets[own] / packets[real] - 1.0,
            misranked,
        }
    };
    MODELS.into_iter().enumerate().map(rank).collect()
}

fn page(read: &[(Spec, Compared)], ranks: &[Rank], seeds: u64) -> Page {
    let sigmas: Vec<f64> = read.iter().map(|(_, compared)| compared.sigma).collect();
    let (low, high) = (quantile(&sigmas, 0.0), quantile(&sigmas, 1.0));
    let tau = |model: &str| mean(ranks.iter().filter(|rank| rank.model == model).map(|r| r.tau));
    Page {
        title: "Ringpath evaluation: fidelity".to_owned(),
        question: vec![
            "How far are estimates and the fluid model from packets, on the same plans? Compute times are exact and starts the same in \
             both, so what differs is the network's doing."
                .to_owned(),
        ],
        facts: vec![
            ("source".to_owned(), "packet simulation against models".to_owned()),
            ("seeds".to_owned(), seeds.to_string()),
            ("\u{3c3}".to_owned(), format!("{low:.0} to {high:.0}")),
            ("rank agreement of the fluid model".to_owned(), format!("{:.2}", tau("fluid"))),
        ],
        charts: Vec::new(),
        tables: vec![errors(read), agreement(ranks), misranked(ranks), plans(read)],
        shown: 3,
    }
}

/// One line of the table of errors.
fn error_row(what: &str, model: &str, errors: &[f64]) -> Vec<Entry> {
    let share = |share| Entry::change(quantile(errors, share), true).marked(Mark::Plain);
    let size: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
    vec![
        Entry::text(what),
        Entry::text(model),
        Entry::count(errors.len() as u64),
        share(0.0),
        share(0.05),
        share(0.5),
        share(0.95),
        share(1.0),
        Entry::change(mean(size), true).marked(Mark::Plain),
    ]
}

fn errors(read: &[(Spec, Compared)]) -> Table {
    let mut table = Table::new(
        "errors",
        "Errors against packets",
        "Model over packets, less one: least, 5, 50, 95 % and most over all plans, and the mean of their sizes. drain: all flows start at \
         once, one iteration; static: all flows send all the time.",
        &["of", "model", "count", "least", "5 %", "median", "95 %", "most", "mean size"],
    );
    let over = |points: &mut dyn Iterator<Item = &Point>, number: usize| -> Vec<f64> {
        points
            .filter_map(|point| Some(point.models[number]? / point.packets - 1.0))
            .filter(|error| error.is_finite())
            .collect()
    };
    for (what, kind) in [("run", 0), ("job", 1), ("flow", 2)] {
        for (number, model) in MODELS.into_iter().enumerate() {
            let found: Vec<f64> = read
                .iter()
                .flat_map(|(_, compared)| match kind {
                    0 => over(&mut std::iter::once(&compared.comm), number),
                    1 => over(&mut compared.jobs.iter(), number),
                    _ => over(&mut compared.flows.iter(), number),
                })
                .collect();
            if !found.is_empty() {
                table.rows.push(error_row(what, model, &found));
            }
        }
    }
    for (number, model) in MODELS.iter().enumerate().take(2) {
        let error = |(_, c): &(Spec, Compared)| c.utilisation[number + 1] / c.utilisation[0] - 1.0;
        let found: Vec<f64> = read.iter().map(error).collect();
        table.rows.push(error_row("GPU utilisation", model, &found));
    }
    table
}

fn agreement(ranks: &[Rank]) -> Table {
    let mut table = Table::new(
        "ranks",
        "Do models rank policies as packets do?",
        "By mean communication time, case by case. tau: Kendall's, 1 is the same order. Best agrees: the policy that the model puts first \
         is first by packets too. Regret: by how much its pick is slower by packets than the best.",
        &[
            "model",
            "cases",
            "tau, mean",
            "tau, least",
            "best agrees",
            "regret, mean",
            "regret, most",
            "pairs misranked",
        ],
    );
    for model in MODELS {
        let own: Vec<&Rank> = ranks.iter().filter(|rank| rank.model == model).collect();
        let taus: Vec<f64> = own.iter().map(|rank| rank.tau).collect();
        let regrets: Vec<f64> = own.iter().map(|rank| rank.regret).collect();
        let agree = own.iter().filter(|rank| rank.best == rank.best_by_packets).count();
        let pairs: usize = own.iter().map(|rank| rank.misranked.len()).sum();
        table.rows.push(vec![
            Entry::text(model),
            Entry::count(own.len() as u64),
            Entry::number(mean(taus.iter().copied()), 2),
            Entry::number(quantile(&taus, 0.0), 2),
            Entry::text(format!("{agree}/{}", own.len())),
            Entry::change(mean(regrets.iter().copied()), true).marked(Mark::Plain),
            Entry::change(quantile(&regrets, 1.0), true).marked(Mark::Plain),
            Entry::count(pairs as u64),
        ]);
    }
    table
}

fn misranked(ranks: &[Rank]) -> Table {
    let mut table = Table::new(
        "misranked",
        "Where the fluid model misranks policies",
        "Pairs of one case that packets tell apart by more than 1 %, and that the fluid model puts the other way round.",
        &["case", "better by the model", "better by packets", "by packets"],
    );
    for rank in ranks.iter().filter(|rank| rank.model == MODELS[0]) {
        for (own, real, lead) in &rank.misranked {
            table.rows.push(vec![
                Entry::text(&rank.case),
                Entry::text(own),
                Entry::text(real),
                Entry::change(*lead, true),
            ]);
        }
    }
    table
}

fn plans(read: &[(Spec, Compared)]) -> Table {
    let mut table = Table::new(
        "plans",
        "Every plan",
        "Mean communication ms over jobs, and GPU utilisation.",
        &[
            "case",
            "seed",
            "policy",
            "\u{3c3}",
            "packets",
            "fluid",
            "mean-field",
            "drain",
            "static",
            "utilisation",
            "fluid ",
            "mean-field ",
        ],
    );
    for (spec, compared) in read {
        let mut row = vec![
            Entry::text(format!("{} {}", spec.case.name(), super::word(spec.case.order))),
            Entry::count(spec.case.seed),
            Entry::text(&spec.policy),
            Entry::number(compared.sigma, 0),
            Entry::number(compared.comm.packets, 1),
        ];
        row.extend(compared.comm.models.iter().map(|model| Entry::maybe(*model, 1)));
        row.extend(compared.utilisation.iter().map(|value| Entry::number(*value, 4)));
        table.rows.push(row);
    }
    table
}
