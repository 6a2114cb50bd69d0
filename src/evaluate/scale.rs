//! Preset `scale`: how plans and planning time grow from 10 to 10,000 flows.
//!
//! In: a size, optionally Lingjun's `topo.csv` (847 hosts). Out: per fabric and policy what the mean-field estimate and, up to
//! [`JUDGED_FLOWS`], the fluid simulation say of the plan; planning times beside, which differ from machine to machine. Must not know:
//! how a policy works. Cells run one after the other, each with all cores.

use super::compare::{Entrant, Protocol, alien, named};
use super::draw::{Case, Drawn, Fabric};
use super::judge::{Figures, Judge};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary, finite};
use crate::report::evaluation::{Entry, Page, Table};
use crate::solver::instance::Instance;
use crate::solver::policy::joint::estimate;
use crate::solver::{Effort, policy};
use crate::topology::Topology;
use crate::topology::import::{Lingjun, lingjun};
use crate::workload::place::RingOrder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::io::Read as _;

/// Flows up to which plans are judged by the fluid simulation; above, one run takes minutes.
pub(super) const JUDGED_FLOWS: usize = 300;
/// Flows up to which the paper's backtracking takes part.
pub(super) const PAPER_FLOWS: usize = 300;
/// Search of `joint`: its first plan, and one that has searched.
const SEARCHED: u64 = 1_000;
/// Evaluations times flows at most: one evaluation takes longer the more flows there are.
pub(super) const SEARCHED_FLOWS: u64 = 50_000;
pub(super) const PROTOCOL: Protocol =
    Protocol { evaluations: SEARCHED, planning_draws: 4, judging_draws: 1 };
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
    /// What the fabric file describes, and the file's hash.
    file: Option<(Topology, String)>,
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

impl Plan {
    /// Refuses figures that JSON cannot hold.
    fn check(&self) -> Result<(), EvaluateError> {
        let of = |what: &str| format!("{what} of '{}'", self.policy);
        finite(of("the estimated communication time"), self.estimate_comm_ms)?;
        finite(of("the estimated utilisation"), self.estimate_utilisation)?;
        let Some(judged) = &self.judged else { return Ok(()) };
        finite(of("the communication time"), judged.comm_ms)?;
        finite(of("the utilisation"), judged.utilisation)?;
        finite(of("the slowdown"), judged.slowdown)?;
        finite(of("the largest slowdown"), judged.slowdown_max)
    }
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
    /// A fabric file that cannot be read or is none.
    pub fn new(settings: &Settings) -> Result<Self, EvaluateError> {
        let file = settings.topology.as_ref().map(|file| load(file)).transpose()?;
        let fabrics = if settings.small { &FABRICS[..3] } else { &FABRICS[..] };
        Ok(Self { fabrics, seeds: settings.seeds(1, 1), file })
    }

    fn drawn(&self, spec: &Spec) -> Result<Drawn, EvaluateError> {
        let Some(wanted) = &spec.file else { return spec.case.draw() };
        let Some((topology, _)) = self.file.as_ref().filter(|file| file.1 == *wanted) else {
            return Err(EvaluateError::Case(
                "the fabric file is not the one that the results are of".to_owned(),
            ));
        };
        let places = topology.host_count() * spec.case.jobs_per_nic as usize;
        let wanted = spec.case.sizes_for(places * spec.case.full_percent as usize / 100);
        spec.case.populate(topology.clone(), &wanted)
    }
}

/// The fabric of a file and the file's hash. It is read and parsed before any cell runs.
fn load(file: &str) -> Result<(Topology, String), EvaluateError> {
    let fail = |reason: String| EvaluateError::File { file: file.to_owned(), reason };
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|open| open.take(FILE_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| fail(error.to_string()))?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(fail(format!("it has more than {FILE_MAX} bytes, which is most that is read")));
    }
    let fabric =
        lingjun(&bytes, file, &Lingjun::default()).map_err(|error| fail(error.to_string()))?;
    let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((fabric.topology, hash))
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
            if let Some((_, hash)) = &self.file {
                let case = case((1, 1, 1, 2), seed);
                let spec = Spec { case, file: Some(hash.clone()), evaluations: SEARCHED };
                cells.push(Cell::new(format!("Lingjun 100G, 2/NIC seed {seed}"), &spec)?);
            }
        }
        Ok(cells)
    }

    fn measure(&self, cell: &Cell, clock: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let spec: Spec = cell.spec()?;
        let drawn = self.drawn(&spec)?;
        let flows = drawn.flows.len();
        let judge = (flows <= JUDGED_FLOWS)
            .then(|| Judge::new(&drawn, spec.case.seed, PROTOCOL.judging_draws));
        let problem = drawn.problem();
        let instance = Instance::new(&problem);
        let (mut plans, mut times) = (Vec::new(), Vec::new());
        for (entrant, evaluations) in entrants(flows, spec.evaluations) {
            let policy = named(&entrant.policy)?;
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
            let choice = Instance::choice(&problem, &plan).ok_or_else(|| alien(&entrant.policy))?;
            let estimate = estimate::mean_field(&instance, &choice).0;
            let judged = match &judge {
                None => None,
                Some(judge) => {
                    let shifts = policy.shifts(&problem, &plan);
                    let draws = judge.figures(&drawn, &plan, shifts.as_deref());
                    Some(Figures::mean(&draws.ok_or_else(|| alien(&entrant.policy))?))
                }
            };
            let plan = Plan {
                policy: name.clone(),
                estimate_comm_ms: estimate.comm_mean * 1e3,
                estimate_utilisation: estimate.utilisation,
                judged,
            };
            plan.check()?;
            plans.push(plan);
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
        let read = super::read::<Spec, Outcome>(results)?;
        let names = results.iter().map(|(cell, _)| cell.name.clone());
        let rows: Vec<(String, Outcome)> =
            names.zip(read.into_iter().map(|(_, outcome)| outcome)).collect();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Name;
    use crate::evaluate::compare::compare;

    #[test]
    fn policies_that_ask_for_phases_are_judged_with_them_as_in_the_preset_paper() {
        let preset = Scale::new(&Settings { small: true, ..Settings::new(Name::Scale) }).unwrap();
        let cell = preset.cells().unwrap().swap_remove(1);
        let spec = Spec { evaluations: 2, ..cell.spec().unwrap() };
        let cell = Cell::new(cell.name, &spec).unwrap();
        let measured = preset.measure(&cell, &|| crate::time::Span::ZERO).unwrap();
        let outcome: Outcome = serde_json::from_value(measured.result).unwrap();
        let own = outcome.plans.iter().find(|plan| plan.policy == "cassini").unwrap();
        let protocol = Protocol { evaluations: 2, ..PROTOCOL };
        let there = compare(&spec.case, &[Entrant::of("cassini")], protocol).unwrap();
        assert_eq!(own.judged, there.mean("cassini"));
    }

    #[test]
    fn a_fabric_file_that_is_none_is_refused_before_any_cell_runs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("topo.csv");
        std::fs::write(&path, "no,fabric\n1,2\n").unwrap();
        let topology = Some(path.display().to_string());
        let settings = Settings { small: true, topology, ..Settings::new(Name::Scale) };
        let error = Scale::new(&settings).err().unwrap();
        assert!(matches!(error, EvaluateError::File { .. }), "{error}");
    }

    #[test]
    fn a_figure_that_json_cannot_hold_is_named() {
        let plan = |estimate_comm_ms| Plan {
            policy: "ecmp".to_owned(),
            estimate_comm_ms,
            estimate_utilisation: 0.5,
            judged: None,
        };
        plan(1.0).check().unwrap();
        let error = plan(f64::NAN).check().unwrap_err().to_string();
        assert!(error.contains("estimated communication time of 'ecmp' is NaN"), "{error}");
    }
}
