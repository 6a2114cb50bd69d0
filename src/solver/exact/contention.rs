//! Which path assignments and queue patterns cannot differ in any figure of the fluid model.
//!
//! In: an instance, a choice whose jobs have one queue each. Out: a key that is equal only for choices of paths under which
//! every queue pattern gives the same run, and the pairs of jobs whose order matters. Must not know: scores.
//!
//! **Why this loses nothing.** A ring moves at one rate x_r, and link e allows `sum over r of c_{r,e} x_r <= C_e`, c being
//! flows of r on e. With one queue per ring the rates are, queue after queue from the highest, the max-min vector over
//! what these inequalities leave: they depend on the *set* of solutions only. So (1) the names of links do not matter, only
//! the set of rows `c_{.,e} / C_e`; (2) a row that is nowhere above another row follows from it, for every prefix of
//! queues as well, and can go; (3) a row with one ring orders nobody; two jobs that stand in no common row that is left
//! could swap or tie without any effect.

use crate::solver::instance::{Choice, Instance};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// `c_{r,e} / C_e` by ring.
type Row = Vec<f64>;

/// Reads what a choice of paths makes contend.
pub(super) struct Contention {
    rings: usize,
    job_of: Vec<usize>,
    /// Rows of links whose users no choice changes, without rows that follow from others.
    fixed: Vec<Row>,
    /// Links that some choice puts a flow on or takes it off, and their place among the rows that are counted anew.
    place: Vec<Option<usize>>,
    counted: Vec<Row>,
}

impl Contention {
    pub(super) fn new(instance: &Instance) -> Self {
        let mut place = vec![None; instance.capacity.len()];
        let mut varying = 0;
        for flow in &instance.flows {
            for &link in flow.candidates.iter().flatten() {
                if place[link].is_none() && !flow.candidates.iter().all(|path| path.contains(&link))
                {
                    place[link] = Some(varying);
                    varying += 1;
                }
            }
        }
        let rings = instance.rings.len();
        let mut fixed = vec![vec![0.0; rings]; instance.capacity.len()];
        for flow in &instance.flows {
            for &link in flow.candidates[0].iter().filter(|&&link| place[link].is_none()) {
                fixed[link][flow.ring] += 1.0 / instance.capacity[link];
            }
        }
        let mut contention = Self {
            rings,
            job_of: instance.rings.iter().map(|ring| ring.job).collect(),
            fixed: Vec::new(),
            place,
            counted: vec![vec![0.0; rings]; varying],
        };
        contention.fixed = needed(&fixed, &[]);
        contention
    }

    /// The key, and a mask with both bits of every pair of jobs that stand in one row ([`Relations`]).
    pub(super) fn of(&mut self, instance: &Instance, choice: &Choice) -> (Vec<u64>, u128) {
        self.counted.iter_mut().for_each(|row| row.fill(0.0));
        for (id, flow) in instance.flows.iter().enumerate() {
            for &link in instance.links(choice, id) {
                if let Some(place) = self.place[link] {
                    self.counted[place][flow.ring] += 1.0 / instance.capacity[link];
                }
            }
        }
        let mut rows = needed(&self.counted, &self.fixed);
        rows.sort_by(|a, b| {
            a.iter().zip(b).fold(Ordering::Equal, |order, (a, b)| order.then(a.total_cmp(b)))
        });
        let mut pairs = 0_u128;
        for row in rows.iter().chain(&self.fixed) {
            for a in (0..self.rings).filter(|&ring| row[ring] > 0.0) {
                for b in (0..a).filter(|&ring| row[ring] > 0.0) {
                    if self.job_of[a] != self.job_of[b] {
                        pairs |= pair(self.job_of[a], self.job_of[b], 3);
                    }
                }
            }
        }
        (rows.into_iter().flatten().map(f64::to_bits).collect(), pairs)
    }
}

/// The rows that do not follow from another one or from `given`; of equal ones the first.
fn needed(rows: &[Row], given: &[Row]) -> Vec<Row> {
    let follows = |row: &Row, from: &Row| row.iter().zip(from).all(|(a, b)| a <= b);
    let mut kept: Vec<Row> = Vec::new();
    for row in rows {
        let used = row.iter().any(|&share| share > 0.0);
        if !used || given.iter().chain(&kept).any(|other| follows(row, other)) {
            continue;
        }
        kept.retain(|other| !follows(other, row));
        kept.push(row.clone());
    }
    kept
}

/// Two bits per pair of jobs.
fn pair(a: usize, b: usize, bits: u128) -> u128 {
    let (a, b) = (a.min(b), a.max(b));
    bits << (2 * (b * (b - 1) / 2 + a))
}

/// Jobs whose pairs fit into 128 bits at two bits each.
const JOBS_MAX: usize = 11;

/// How each queue pattern orders every two jobs, and which patterns stand for all others.
pub(super) struct Relations {
    /// Per pattern: below, equal or above for each pair of jobs.
    codes: Vec<u128>,
    /// By mask of pairs: one pattern for each order of those pairs.
    known: FxHashMap<u128, Vec<usize>>,
}

impl Relations {
    /// `None` for more than [`JOBS_MAX`] jobs.
    pub(super) fn of(patterns: &[Vec<u8>]) -> Option<Self> {
        let jobs = patterns.first().map_or(0, Vec::len);
        let code = |pattern: &Vec<u8>| {
            let mut code = 0;
            for b in 0..jobs {
                for a in 0..b {
                    code |= pair(
                        a,
                        b,
                        match pattern[a].cmp(&pattern[b]) {
                            Ordering::Less => 0,
                            Ordering::Equal => 1,
                            Ordering::Greater => 2,
                        },
                    );
                }
            }
            code
        };
        (jobs <= JOBS_MAX).then(|| Self {
            codes: patterns.iter().map(code).collect(),
            known: FxHashMap::default(),
        })
    }

    /// Patterns, by index, that differ in the order of some pair in the mask; the first of each kind.
    pub(super) fn representatives(&mut self, pairs: u128) -> Vec<usize> {
        let codes = &self.codes;
        let list = self.known.entry(pairs).or_insert_with(|| {
            let mut seen = std::collections::BTreeSet::new();
            (0..codes.len()).filter(|&pattern| seen.insert(codes[pattern] & pairs)).collect()
        });
        list.clone()
    }
}
