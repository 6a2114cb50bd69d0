//! Preset `optimality`: how near to the best plan of all.
//!
//! In: a number of cases. Out: small cases in the shape of Crux's test (5 jobs, 3 levels, up to 20 hosts), each enumerated whole, and what
//! share of the optimum every policy reaches, for communication and for utilisation. Must not know how cases are drawn and enumerated:
//! that is [`crate::solver::optimality`]'s.

use super::stats::{mean, quantile};
use super::{Cell, Clock, EvaluateError, Measured, Preset, Settings, Summary};
use crate::report::evaluation::{Entry, Mark, Page, Table};
use crate::solver::optimality::{Budget, Outcome, Row, case, run};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Cases, as many as Crux's authors ran.
const CASES: u64 = 1_500;
/// Cases of the small form.
const SMALL_CASES: u64 = 10;
/// A share of the optimum from which on a plan counts as optimal: rounding.
const OPTIMAL: f64 = 1.0 - 1e-6;
/// What Crux's paper reports of itself, one mechanism at a time with the others optimal: path, priority, compression.
const PUBLISHED: &str = "97.69 %, 97.24 %, 97.12 %";

/// See the module.
pub struct Optimality {
    cases: u64,
}

impl Optimality {
    /// The preset in a size; seeds are cases.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        Self { cases: settings.seeds(CASES, SMALL_CASES) }
    }
}

/// A cell.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Spec {
    seed: u64,
    budget: Budget,
}

/// A metric's name, and a policy's share of the optimum in it.
type Metric = (&'static str, fn(&Row) -> f64);

/// One policy over all cases, one metric.
#[derive(Serialize)]
struct Reached {
    policy: String,
    metric: &'static str,
    cases: usize,
    mean: f64,
    median: f64,
    p5: f64,
    least: f64,
    /// Cases in which the optimum is reached (or passed, by policies outside the oracle's space).
    optimal: usize,
}

impl Preset for Optimality {
    fn cells(&self) -> Result<Vec<Cell>, EvaluateError> {
        let budget = Budget::default();
        let cell = |seed| Cell::new(format!("case {seed}"), &Spec { seed, budget });
        (0..self.cases).map(cell).collect()
    }

    fn measure(&self, cell: &Cell, _: &Clock<'_>) -> Result<Measured, EvaluateError> {
        let spec: Spec = cell.spec()?;
        let outcome = run(&case(spec.seed), spec.budget)
            .map_err(|error| EvaluateError::Case(error.to_string()))?;
        Measured::of(&outcome)
    }

    fn summarise(&self, results: &[(Cell, Value)]) -> Result<Summary, EvaluateError> {
        let read = super::read::<Spec, Outcome>(results)?;
        let outcomes: Vec<Outcome> = read.into_iter().map(|(_, outcome)| outcome).collect();
        let mut rows = Vec::new();
        let metrics: [Metric; 2] =
            [("communication", |row| row.of_comm), ("utilisation", |row| row.of_utilisation)];
        for (metric, of) in metrics {
            for policy in outcomes.first().map(|first| &first.rows).into_iter().flatten() {
                rows.push(reached(&outcomes, &policy.policy, (metric, of)));
            }
        }
        let page = Page {
            title: "Ringpath evaluation: optimality".to_owned(),
            question: vec![
                "How near does every policy come to the best plan of all? Small cases in the shape of Crux's test, every choice of paths \
                 by flow and queues by job enumerated; both metrics by the fluid simulation over the same draws for all."
                    .to_owned(),
                "joint may also give the flows of one job different queues, which the oracle does not, so it can pass 100 %. Searching \
                 policies search once per metric."
                    .to_owned(),
            ],
            facts: vec![
                ("source".to_owned(), "fluid simulation".to_owned()),
                ("cases".to_owned(), outcomes.len().to_string()),
                ("Crux of itself (path, priority, compression)".to_owned(), PUBLISHED.to_owned()),
            ],
            charts: Vec::new(),
            tables: vec![table(&rows), cases(&outcomes)],
            shown: 1,
        };
        Ok(Summary { source: "fluid", seeds: self.cases, rows: serde_json::to_value(&rows)?, page })
    }
}

fn reached(outcomes: &[Outcome], policy: &str, (metric, of): Metric) -> Reached {
    let row = |outcome: &Outcome| outcome.rows.iter().find(|row| row.policy == policy).map(of);
    let shares: Vec<f64> = outcomes.iter().filter_map(row).collect();
    Reached {
        policy: policy.to_owned(),
        metric,
        cases: shares.len(),
        mean: mean(shares.iter().copied()),
        median: quantile(&shares, 0.5),
        p5: quantile(&shares, 0.05),
        least: quantile(&shares, 0.0),
        optimal: shares.iter().filter(|share| **share >= OPTIMAL).count(),
    }
}

/// A share of 1 in per cent.
fn percent(share: f64) -> Entry {
    let shown = Entry::number(share * 100.0, 2);
    Entry { text: format!("{} %", shown.text), value: Some(share), mark: Mark::Plain }
}

fn table(rows: &[Reached]) -> Table {
    let mut table = Table::new(
        "optimality",
        "Share of the optimum",
        "Optimum over communication time, utilisation over optimum.",
        &["metric", "policy", "cases", "mean", "median", "5 %", "least", "optimal"],
    );
    for row in rows {
        table.rows.push(vec![
            Entry::text(row.metric),
            Entry::text(&row.policy),
            Entry::count(row.cases as u64),
            percent(row.mean),
            percent(row.median),
            percent(row.p5),
            percent(row.least),
            Entry::count(row.optimal as u64),
        ]);
    }
    table
}

fn cases(outcomes: &[Outcome]) -> Table {
    let names: Vec<&str> = outcomes
        .first()
        .map(|first| first.rows.iter().map(|row| row.policy.as_str()).collect())
        .unwrap_or_default();
    let fixed =
        ["case", "choosing flows", "choices", "simulated", "best comm ms", "best utilisation"];
    let columns = [&fixed[..], &names].concat();
    let note = "Communication: share of the optimum, by policy.";
    let mut table = Table::new("cases", "Every case", note, &columns);
    for outcome in outcomes {
        let mut row = vec![
            Entry::count(outcome.seed),
            Entry::count(outcome.choosing as u64),
            Entry::count(outcome.choices),
            Entry::count(outcome.simulated),
            Entry::number(outcome.best_comm_s * 1e3, 2),
            Entry::number(outcome.best_utilisation, 4),
        ];
        row.extend(outcome.rows.iter().map(|row| percent(row.of_comm)));
        table.rows.push(row);
    }
    table
}
