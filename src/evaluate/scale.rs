//! Preset `scale`: how plans and planning time grow from 10 to 10,000 flows.
//!
//! In: a size, optionally Lingjun's `topo.csv` (847 hosts). Out: per fabric and policy what the mean-field estimate and, up to
//! [`JUDGED_FLOWS`], the fluid simulation say of the plan; planning times beside, which differ from machine to machine. Must not know:
//! how a policy works. Cells run one after the other, each with all cores.

use super::compare::{Entrant, Protocol};
use super::draw::{Case, Drawn, Fabric};
use super::judge::{Figures, Judge};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary};
use crate::report::evaluation::{Entry, Page, Table};
use crate::solver::instance::Instance;
use crate::solver::policy::joint::estimate;
use crate::solver::{Effort, policy};
use crate::topology::import::{Lingjun, lingjun};
use crate::workload::place::RingOrder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Flows up to which plans are judged by the fluid simulation; above, one run takes minutes.
const JUDGED_FLOWS: usize = 300;
/// Flows up to which the paper's backtracking takes part.
const PAPER_FLOWS: usize = 300;
/// Search of `joint`: its first plan, and one that has searched.
const SEARCHED: u64 = 1_000;
/// Evaluations times flows at most: one evaluation takes longer the more flows there are.
const SEARCHED_FLOWS: u64 = 50_000;
const PROTOCOL: Protocol = Protocol { evaluations: SEARCHED, planning_draws: 4, judging_draws: 1 };
/// Leaves, spines, hosts per leaf, jobs per interface: 14, 28, 115, 460, 921, 3,686 and 11,059 places, nine tenths of all.
const FABRICS: [(u32, u32, u32, u32); 7] = [
    (4, 4, 4, 1),
    (8, 4, 4, 1),
    (16, 8, 8, 1),
    (16, 8, 16, 2),
    (32, 16, 32, 1),
    (64, 16, 32, 2),
    (64, 32, 64, 3),
];
/// Sizes of rings.
const SIZES: [usize; 6] = [2, 4, 4, 8, 16, 32];
/// Largest fabric file that is read.
const FILE_MAX: u64 = 64 << 20;

/// See the module.
pub struct Scale {
    fabrics: &'static [(u32, u32, u32, u32)],
    seeds: u64,
    /// Name, bytes, hash.
    file: Option<(String, Vec<u8>, String)>,
}

/// A cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Spec {
    case: Case,
    /// SHA-256 of the fabric file that takes the place of the case's fabric.
    file: Option<String>,
    evaluations: u64,
}

/// What one policy came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Plan {
    policy: String,
    estimate_comm_ms: f64,
    estimate_utilisation: f64,
    judged: Option<Figures>,
}

/// What one cell came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Outcome {
    hosts: usize,
    jobs: usize,
    flows: usize,
    links: usize,
    plans: Vec<Plan>,
}

impl Scale {
    /// The preset in a size.
    ///
    /// # Errors
    /// A fabric file that cannot be read.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        let file = settings.topology.as_ref().map(|file| load(file)).transpose()?;
        let fabrics = if settings.small { &FABRICS[..3] } else { &FABRICS[..] };
        Ok(Self { fabrics, seeds: settings.seeds(1, 1), file })
    }

    fn drawn(&self, spec: &Spec, cell: &Cell) -> Result<Drawn, EvaluateError> {
        let fail = |reason: String| EvaluateError::Cell { cell: cell.name.clone(), reason };
        let Some(wanted) = &spec.file else { return spec.case.draw() };
        let Some((name, bytes, hash)) = self.file.as_ref().filter(|file| file.2 == *wanted) else {
            return Err(fail("the fabric file is not the one that the results are of".to_owned()));
        };
        debug_assert_eq!(hash, wanted);
        let fabric =
            lingjun(bytes, name, &Lingjun::default()).map_err(|error| fail(error.to_string()))?;
        let places = fabric.topology.host_count() * spec.case.jobs_per_nic as usize;
        let wanted = spec.case.sizes_for(places * spec.case.full_percent as usize / 100);
        spec.case.populate(fabric.topology, &wanted)
    }
}

fn load(file: &str) -> Result<(String, Vec<u8>, String), EvaluateError> {
    let fail = |reason: String| EvaluateError::File { file: file.to_owned(), reason };
    let size = std::fs::metadata(file).map_err(|error| fail(error.to_string()))?.len();
    if size > FILE_MAX {
        return Err(fail(format!("it has {size} bytes, at most {FILE_MAX} are read")));
    }
    let bytes = std::fs::read(file).map_err(|error| fail(error.to_string()))?;
    let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((file.to_owned(), bytes, hash))
}

impl Preset for Scale {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let mut cells = Vec::new();
        let case = |(leaves, spines, hosts_per_leaf, jobs_per_nic), seed| Case {
            fabric: Fabric {
                leaves,
                spines,
                hosts_per_leaf,
                oversubscription: 1,
                thin: false,
                gbps: 100,
            },
            jobs_per_nic,
            full_percent: 90,
            sizes: SIZES.into(),
            order: RingOrder::Sorted,
            seed,
        };
        for seed in 0..self.seeds {
            for &fabric in self.fabrics {
                let case = case(fabric, seed);
                let name = format!("{} seed {seed}", case.name());
                cells.push(Cell::new(name, &Spec { case, file: None, evaluations: SEARCHED })?);
            }
            if let Some((_, _, hash)) = &self.file {
                let case = case((1, 1, 1, 2), seed);
                let spec = Spec { case, file: Some(hash.clone()), evaluations: SEARCHED };
                cells.push(Cell::new(format!("Lingjun 100G, 2/NIC seed {seed}"), &spec)?);
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, clock: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let spec: Spec = serde_json::from_value(cell.spec.clone())?;
        let drawn = self.drawn(&spec, cell)?;
        let flows = drawn.flows.len();
        let judge = (flows <= JUDGED_FLOWS)
            .then(|| Judge::new(&drawn, spec.case.seed, PROTOCOL.judging_draws));
        let problem = drawn.problem();
        let instance = Instance::new(&problem);
        let (mut plans, mut times) = (Vec::new(), Vec::new());
        for (entrant, evaluations) in entrants(flows, spec.evaluations) {
            let Some(policy) = policy::by_name(&entrant.policy) else { continue };
            let effort = Effort {
                seed: spec.case.seed,
                max_evaluations: evaluations,
                stop: &|| false,
                objective: entrant.objective,
                phases: PROTOCOL.planning_draws,
            };
            let begin = clock();
            let plan = policy.plan(&problem, &effort);
            let took = clock().as_secs_f64() - begin.as_secs_f64();
            let name = match evaluations {
                1 => "joint, first plan".to_owned(),
                _ => entrant.name(),
            };
            let Some(choice) = Instance::choice(&problem, &plan) else { continue };
            let estimate = estimate::mean_field(&instance, &choice).0;
            plans.push(Plan {
                policy: name.clone(),
                estimate_comm_ms: estimate.comm_mean * 1e3,
                estimate_utilisation: estimate.utilisation,
                judged: judge.as_ref().map(|judge| Figures::mean(&judge.of_choice(&choice))),
            });
            times.push((name, took));
        }
        let outcome = Outcome {
            hosts: drawn.topology.host_count(),
            jobs: drawn.jobs.len(),
            flows,
            links: drawn.topology.links().len(),
            plans,
        };
        Ok(Measured { result: serde_json::to_value(outcome)?, times })
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let mut rows = Vec::new();
        for (cell, result) in results {
            let outcome: Outcome = serde_json::from_value(result.clone())?;
            rows.push((cell.name.clone(), outcome));
        }
        let page = Page {
            title: "Ringpath evaluation: scale".to_owned(),
            question: vec![format!(
                "How do plans and planning time grow from 10 to 10,000 flows? 1:1 fabrics at 100 Gb/s, nine tenths of the places taken. \
                 The estimate is the mean-field one; up to {JUDGED_FLOWS} flows the fluid simulation judges as in the preset paper. \
                 Planning times are measured on the machine and stand apart."
            )],
            facts: vec![("source".to_owned(), "mean-field estimate, fluid simulation".to_owned())],
            charts: Vec::new(),
            tables: vec![table(&rows)],
            shown: 1,
        };
        Ok(Summary { source: "fluid", seeds: self.seeds, rows: serde_json::to_value(&rows)?, page })
    }

    fn alone(&self) -> bool {
        true
    }
}

/// Policies with their evaluations; `joint` twice.
fn entrants(flows: usize, searched: u64) -> Vec<(Entrant, u64)> {
    let names = policy::names().into_iter().filter(|name| !name.starts_with("joint"));
    let mut all: Vec<(Entrant, u64)> = names
        .filter(|name| *name != "paper" || flows <= PAPER_FLOWS)
        .map(|name| (Entrant::of(name), searched))
        .collect();
    all.push((Entrant::of("joint"), 1));
    let affordable = SEARCHED_FLOWS / flows.max(1) as u64;
    all.push((Entrant::of("joint"), searched.min(affordable).max(2)));
    all
}

fn table(rows: &[(String, Outcome)]) -> Table {
    let mut table = Table::new(
        "scale",
        "Plans by size",
        "",
        &[
            "fabric",
            "hosts",
            "jobs",
            "flows",
            "policy",
            "estimated comm ms",
            "estimated utilisation",
            "judged comm ms",
            "judged utilisation",
        ],
    );
    for (name, outcome) in rows {
        for plan in &outcome.plans {
            table.rows.push(vec![
                Entry::text(name),
                Entry::count(outcome.hosts as u64),
                Entry::count(outcome.jobs as u64),
                Entry::count(outcome.flows as u64),
                Entry::text(&plan.policy),
                Entry::number(plan.estimate_comm_ms, 1),
                Entry::number(plan.estimate_utilisation, 4),
                Entry::maybe(plan.judged.map(|judged| judged.comm_ms), 1),
                Entry::maybe(plan.judged.map(|judged| judged.utilisation), 4),
            ]);
        }
    }
    table
}
