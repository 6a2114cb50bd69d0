//! Crux's priority compression: unique priorities into few levels (algorithm 1).
//!
//! In: priority and intensity of every job, and which jobs share a link. Out: a level per job, 0 served first. Must
//! not know: queues' numbers, paths.

use rand::RngExt as _;

/// Random topological orders tried (the paper's m).
pub const ORDERS: usize = 10;

/// Cuts jobs into at most `levels` levels so that, of two jobs that share a link, the one with higher priority never
/// has the lower level, and the intensity of jobs that are served before a job they share a link with is as large as
/// the orders tried allow. Equal priorities: the lower index counts as higher.
#[must_use]
pub fn compress(
    priority: &[f64],
    intensity: &[f64],
    shares: &[Vec<bool>],
    levels: usize,
    seed: u64,
) -> Vec<usize> {
    let count = priority.len();
    if count == 0 {
        return Vec::new();
    }
    let above =
        |a: usize, b: usize| priority[a] > priority[b] || (priority[a] == priority[b] && a < b);
    // weight[a][b] > 0: edge a -> b of the contention DAG. An infinite intensity belongs to a job without links.
    let weight: Vec<Vec<f64>> = (0..count)
        .map(|a| {
            let edge = |b: usize| a != b && shares[a][b] && above(a, b);
            (0..count).map(|b| if edge(b) { intensity[a] } else { 0.0 }).collect()
        })
        .collect();
    let mut best: Option<(f64, Vec<usize>)> = None;
    for index in 0..ORDERS {
        let mut random = crate::time::stream(seed, "crux-order", index as u64);
        let order = topological_order(&weight, &mut random);
        let (value, ends) = cut(&order, &weight, levels.max(1));
        if best.as_ref().is_none_or(|(best, _)| value > *best) {
            let mut level = vec![0; count];
            for (position, &job) in order.iter().enumerate() {
                level[job] = ends.partition_point(|&end| end <= position);
            }
            best = Some((value, level));
        }
    }
    best.map(|(_, level)| level).unwrap_or_default()
}

/// A topological order that takes a random one of the jobs nobody is waiting above.
fn topological_order(weight: &[Vec<f64>], random: &mut impl rand::Rng) -> Vec<usize> {
    let count = weight.len();
    let into = |job: usize| (0..count).filter(|&other| weight[other][job] > 0.0).count();
    let mut waiting: Vec<usize> = (0..count).map(into).collect();
    let mut ready: Vec<usize> = (0..count).filter(|&job| waiting[job] == 0).collect();
    let mut order = Vec::with_capacity(count);
    while !ready.is_empty() {
        let job = ready.swap_remove(random.random_range(0..ready.len()));
        order.push(job);
        for other in 0..count {
            if weight[job][other] > 0.0 {
                waiting[other] -= 1;
                if waiting[other] == 0 {
                    ready.push(other);
                }
            }
        }
    }
    order
}

/// `f(i, k) = max over j < i of f(j, k-1) + C(j, i)`, where C is the weight from the first j jobs of the order to jobs
/// j..i. Returns the value and the ends of the groups (exclusive, all but the last).
fn cut(order: &[usize], weight: &[Vec<f64>], levels: usize) -> (f64, Vec<usize>) {
    let count = order.len();
    let levels = levels.min(count);
    // crossing[j][i] = weight from order[..j] to order[j..i].
    let mut crossing = vec![vec![0.0; count + 1]; count + 1];
    // Weight from order[..j] into each place, one more source with every j.
    let mut into = vec![0.0; count];
    for (j, row) in crossing.iter_mut().enumerate() {
        if j > 0 {
            let from = &weight[order[j - 1]];
            (j..count).for_each(|i| into[i] += from[order[i]]);
        }
        for i in j..count {
            row[i + 1] = row[i] + into[i];
        }
    }
    let mut value = vec![vec![f64::NEG_INFINITY; count + 1]; levels + 1];
    let mut from = vec![vec![0; count + 1]; levels + 1];
    value[1][1..].fill(0.0);
    for level in 2..=levels {
        for i in level..=count {
            // The best cut never moves back as i grows (quadrangle inequality), so the search starts at the last one.
            for j in from[level][i - 1].max(level - 1)..i {
                let candidate = value[level - 1][j] + crossing[j][i];
                if candidate > value[level][i] {
                    value[level][i] = candidate;
                    from[level][i] = j;
                }
            }
        }
    }
    let mut ends = Vec::with_capacity(levels);
    let mut i = count;
    for level in (2..=levels).rev() {
        i = from[level][i];
        ends.push(i);
    }
    ends.reverse();
    (value[levels][count], ends)
}
