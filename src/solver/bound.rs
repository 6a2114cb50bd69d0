//! What no plan can pass: bounds beside every figure.
//!
//! In: an [`Instance`] and the [`Draws`] of a run. Out: [`Bound`]s, each named for what it bounds and argued where it is
//! computed. Must not know: any plan. (The bound of drain times is `plan::bound`'s.)
//!
//! | name | bounds | argument |
//! |---|---|---|
//! | `iso-comm` | mean communication time from below | [`iso_comm`] |
//! | `iso-comm-max` | largest communication time from below | same |
//! | `iso-utilisation` | GPU utilisation from above | [`iso_utilisation`] |
//! | `cut-utilisation` | GPU utilisation of this run from above | [`cut_utilisation`] |
//! | `steady-utilisation` | GPU utilisation while all jobs run, from above | [`steady_utilisation`] |
//!
//! There is no useful bound of mean communication time above `iso-comm`: jobs that wait for each other elsewhere can
//! always be imagined to interleave, and nothing here proves that they cannot.

use super::fluid::Draws;
use super::instance::Instance;
use super::policy::greedy;
use good_lp::{
    Expression, ProblemVariables, Solution as _, SolverModel as _, Variable, microlp, variable,
};

#[cfg(test)]
mod tests;

/// A bound with its name and value.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What it bounds; see the module's table.
    pub name: &'static str,
    /// Seconds, or a share of 1 for utilisations.
    pub value: f64,
}

/// All bounds of one run.
#[must_use]
pub fn all(instance: &Instance, draws: &Draws) -> Vec<Bound> {
    let iso = iso_comm(instance);
    let senders = iso.iter().filter(|&&seconds| seconds > 0.0).count().max(1) as f64;
    let bound = |name, value| Bound { name, value };
    vec![
        bound("iso-comm", iso.iter().sum::<f64>() / senders),
        bound("iso-comm-max", iso.iter().copied().fold(0.0, f64::max)),
        bound("iso-utilisation", iso_utilisation(instance, draws)),
        bound("cut-utilisation", cut_utilisation(instance, draws)),
        bound("steady-utilisation", steady_utilisation(instance)),
    ]
}

/// Communication seconds of each job that no plan undercuts: all bytes of an iteration cross the host links that every
/// candidate path uses, and no link carries more than its capacity; other jobs only take capacity away.
#[must_use]
pub fn iso_comm(instance: &Instance) -> Vec<f64> {
    (0..instance.jobs.len()).map(|job| greedy::least_alone(instance, job)).collect()
}

/// Window of each job if it met nobody: an iteration lasts at least its compute, and at least the compute before its
/// communication plus [`iso_comm`].
fn iso_windows(instance: &Instance, draws: &Draws) -> Vec<f64> {
    let iso = iso_comm(instance);
    let window = |job: usize| -> f64 {
        let before = 1.0 - instance.jobs[job].overlap;
        draws.compute[job].iter().map(|&compute| compute.max(before * compute + iso[job])).sum()
    };
    (0..instance.jobs.len()).map(window).collect()
}

fn compute_weight(instance: &Instance, draws: &Draws) -> f64 {
    let jobs = instance.jobs.iter().zip(&draws.compute);
    jobs.map(|(job, times)| job.gpus * times.iter().sum::<f64>()).sum()
}

/// GPU utilisation if no job met another: compute is given, windows are at least `iso_windows`.
#[must_use]
pub fn iso_utilisation(instance: &Instance, draws: &Draws) -> f64 {
    let windows = iso_windows(instance, draws);
    let total: f64 = instance.jobs.iter().zip(&windows).map(|(job, w)| job.gpus * w).sum();
    if total > 0.0 { compute_weight(instance, draws) / total } else { 1.0 }
}

/// A set of links and, for each job, the share of its total capacity that one iteration keeps busy, in seconds: bytes
/// of the flows that cannot avoid the set / sum of capacities.
struct Cut {
    seconds: Vec<f64>,
}

/// Every link that some flow cannot avoid, and every set in [`Instance::cuts`].
fn cuts(instance: &Instance) -> Vec<Cut> {
    let single = (0..instance.capacity.len()).map(|link| vec![link]);
    let mut found = Vec::new();
    for links in single.chain(instance.cuts.iter().cloned()) {
        let capacity: f64 = links.iter().map(|&link| instance.capacity[link]).sum();
        let mut member = vec![false; instance.capacity.len()];
        links.iter().for_each(|&link| member[link] = true);
        let mut seconds = vec![0.0; instance.jobs.len()];
        for flow in &instance.flows {
            let crosses = |path: &Vec<usize>| path.iter().any(|&link| member[link]);
            if flow.candidates.iter().all(crosses) {
                seconds[flow.job] += flow.bytes / capacity;
            }
        }
        if seconds.iter().filter(|&&s| s > 0.0).count() > 1 {
            found.push(Cut { seconds });
        }
    }
    found
}

/// Rounds of adding violated inequalities; each leaves a valid, only weaker bound.
const CUTTING_ROUNDS: usize = 40;

/// Room for the linear solver's rounding.
const LP_SLACK: f64 = 1e-6;

/// GPU utilisation of one run to completion from above.
///
/// Let C_j be the end of job j, counted from the first start of any job. Through a cut, job j must send
/// `p_j = iterations * seconds` of the cut's capacity by C_j, and the cut serves at most one second per second. For any
/// set A of jobs in order of their ends, `C_k >= sum of p_i, i <= k`; times p_k and summed:
/// `sum over A of p_j C_j >= (sum p_j)^2 / 2 + (sum p_j^2) / 2` (Queyranne 1993, for one machine; sharing the cut changes
/// nothing, only conservation is used). With `window_j = C_j - start_j >= iso_window_j`, the smallest
/// `sum gpus_j * window_j` under all these inequalities is a linear program; violated ones (prefixes of the jobs by C_j
/// suffice) are added until none is left. Compute is fixed, so the bound is compute / that sum.
#[must_use]
pub fn cut_utilisation(instance: &Instance, draws: &Draws) -> f64 {
    let first = draws.start.iter().copied().fold(f64::INFINITY, f64::min);
    let iso = iso_windows(instance, draws);
    let iso_total: f64 = instance.jobs.iter().zip(&iso).map(|(job, w)| job.gpus * w).sum();
    let work: Vec<Vec<f64>> = cuts(instance)
        .into_iter()
        .map(|cut| {
            let jobs = instance.jobs.iter().zip(cut.seconds);
            jobs.map(|(job, seconds)| seconds * f64::from(job.iterations)).collect()
        })
        .collect();
    let mut rows: Vec<(usize, Vec<usize>)> = Vec::new();
    let mut total = iso_total;
    for _ in 0..CUTTING_ROUNDS {
        let Some(windows) = least_windows(instance, &iso, &work, &rows, draws, first) else {
            break;
        };
        let sum: f64 = instance.jobs.iter().zip(&windows).map(|(job, w)| job.gpus * w).sum();
        total = total.max(sum * (1.0 - LP_SLACK));
        let ends: Vec<f64> =
            windows.iter().zip(&draws.start).map(|(w, start)| w + start - first).collect();
        let before = rows.len();
        for (cut, work) in work.iter().enumerate() {
            if let Some(set) = violated(work, &ends) {
                rows.push((cut, set));
            }
        }
        if rows.len() == before {
            break;
        }
    }
    if total > 0.0 { compute_weight(instance, draws) / total } else { 1.0 }
}

/// The prefix of jobs by end whose inequality is violated most.
fn violated(work: &[f64], ends: &[f64]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..work.len()).filter(|&job| work[job] > 0.0).collect();
    order.sort_by(|&a, &b| ends[a].total_cmp(&ends[b]).then(a.cmp(&b)));
    let (mut sum, mut squares, mut weighted) = (0.0, 0.0, 0.0);
    let mut worst = (0.0, 0);
    for (position, &job) in order.iter().enumerate() {
        sum += work[job];
        squares += work[job] * work[job];
        weighted += work[job] * ends[job];
        let least = 0.5 * (sum * sum + squares);
        let lack = (least - weighted) / least;
        if lack > worst.0 + LP_SLACK {
            worst = (lack, position + 1);
        }
    }
    order.truncate(worst.1);
    (worst.1 > 0).then_some(order)
}

/// The windows of least total under the inequalities of `rows` (cut, set of jobs).
fn least_windows(
    instance: &Instance,
    iso: &[f64],
    work: &[Vec<f64>],
    rows: &[(usize, Vec<usize>)],
    draws: &Draws,
    first: f64,
) -> Option<Vec<f64>> {
    let mut variables = ProblemVariables::new();
    let windows: Vec<Variable> =
        iso.iter().map(|&least| variables.add(variable().min(least))).collect();
    let gpus = instance.jobs.iter().map(|job| job.gpus);
    let total: Expression = gpus.zip(&windows).map(|(gpus, &window)| gpus * window).sum();
    let mut model = variables.minimise(total).using(microlp);
    for (cut, set) in rows {
        let work = &work[*cut];
        let sum: f64 = set.iter().map(|&job| work[job]).sum();
        let squares: f64 = set.iter().map(|&job| work[job] * work[job]).sum();
        let shift: f64 = set.iter().map(|&job| work[job] * (draws.start[job] - first)).sum();
        // Divided by `sum` to keep the numbers near 1.
        let left: Expression = set.iter().map(|&job| work[job] / sum * windows[job]).sum();
        model = model.with(left.geq((0.5 * (sum * sum + squares) - shift) / sum));
    }
    let solution = model.solve().ok()?;
    Some(windows.iter().map(|&window| solution.value(window)).collect())
}

/// GPU utilisation while all jobs run, in the long run, from above.
///
/// With f_j iterations of job j per second: each GPU of j computes `compute_j * f_j` of the time; `f_j <= 1 / period_j` of
/// the job alone; through every cut, the jobs' seconds per iteration times f_j sum to at most 1. The largest
/// `sum gpus_j compute_j f_j / sum gpus_j` is a linear program. A run in which jobs end one after the other may pass it
/// (those left have the fabric for themselves): [`cut_utilisation`] bounds that.
#[must_use]
pub fn steady_utilisation(instance: &Instance) -> f64 {
    let iso = iso_comm(instance);
    let gpus: f64 = instance.jobs.iter().map(|job| job.gpus).sum();
    if gpus <= 0.0 {
        return 1.0;
    }
    let mut variables = ProblemVariables::new();
    let jobs = instance.jobs.iter().enumerate();
    let rates: Vec<Variable> = jobs
        .map(|(id, _)| {
            let period = instance.period(id, iso[id]).max(f64::MIN_POSITIVE);
            variables.add(variable().min(0.0).max(1.0 / period))
        })
        .collect();
    let busy = |job: usize| instance.jobs[job].gpus * instance.jobs[job].compute;
    let computing: Expression = rates.iter().enumerate().map(|(job, &rate)| busy(job) * rate).sum();
    let mut model = variables.maximise(computing).using(microlp);
    for cut in cuts(instance) {
        let load: Expression =
            cut.seconds.iter().zip(&rates).map(|(&seconds, &rate)| seconds * rate).sum();
        model = model.with(load.leq(1.0));
    }
    match model.solve() {
        Ok(solution) => {
            let sum: f64 =
                rates.iter().enumerate().map(|(job, &rate)| busy(job) * solution.value(rate)).sum();
            (sum / gpus * (1.0 + LP_SLACK)).min(1.0)
        }
        // Without a solution only the trivial bound is proven.
        Err(_) => 1.0,
    }
}
