//! What agents report about computing: which rank takes longer than its ring.
//!
//! In: compute times of one iteration, one per rank. Out: the rank that is slow for good, with its excess. Must not know flows.

use super::Rule;
use crate::id::JobId;
use crate::time::Span;
use std::collections::{BTreeMap, VecDeque};

/// Iterations in a row in which a rank must be slow. Under jitter of 30 % each of four ranks is, by chance, in a fifth of
/// all iterations, so in eight in a row once in a hundred thousand.
const REPORTS: usize = 8;

/// A rank that computes too long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The rank.
    pub rank: usize,
    /// Its mean time over the ring's typical one.
    pub ratio: f64,
    /// Iterations behind it.
    pub reports: usize,
}

/// The last reports of every job. Bounded by jobs and [`REPORTS`].
#[derive(Clone, Debug, Default)]
pub struct Reports {
    jobs: BTreeMap<JobId, VecDeque<Vec<f64>>>,
}

impl Reports {
    /// Takes one iteration's compute times, by rank. A report of fewer than two ranks says nothing.
    pub fn add(&mut self, job: JobId, compute: &[Span]) {
        if compute.len() < 2 {
            return;
        }
        let times: Vec<f64> = compute.iter().map(|span| span.as_secs_f64()).collect();
        let reports = self.jobs.entry(job).or_default();
        if reports.back().is_some_and(|last| last.len() != times.len()) {
            reports.clear();
        }
        reports.push_back(times);
        if reports.len() > REPORTS {
            reports.pop_front();
        }
    }

    /// Forgets a job.
    pub fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
    }

    /// The slowest rank of a job, if it was slower than its ring by more than ρ in every iteration that is remembered.
    #[must_use]
    pub fn slowest(&self, job: JobId, rule: &Rule) -> Option<Report> {
        let reports = self.jobs.get(&job).filter(|reports| reports.len() == REPORTS)?;
        let ranks = reports.back()?.len();
        let mut sums = vec![0.0_f64; ranks];
        let mut always = vec![true; ranks];
        for times in reports {
            let mut sorted = times.clone();
            sorted.sort_by(f64::total_cmp);
            // The lower middle: of two ranks the faster one is what the other should be like.
            let typical = sorted[(ranks - 1) / 2];
            for (rank, time) in times.iter().enumerate() {
                let ratio = time / typical;
                sums[rank] += ratio;
                always[rank] &= ratio.is_finite() && ratio > 1.0 + rule.rho;
            }
        }
        let slow = (0..ranks).filter(|rank| always[*rank]);
        slow.max_by(|a, b| sums[*a].total_cmp(&sums[*b])).map(|rank| Report {
            rank,
            ratio: sums[rank] / REPORTS as f64,
            reports: REPORTS,
        })
    }
}
