//! How long plans take and how good they are.
//!
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

use ringpath::solver::optimality::{Budget, case, run};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    if words.first().is_some_and(|word| word == "optimality") {
        optimality(number(1).unwrap_or(0), number(2).unwrap_or(9), number(3));
    }
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
