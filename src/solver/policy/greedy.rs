//! Placing flows one after the other on the least loaded candidate path: the step that most policies share.
//!
//! In: an order of flows and what each adds to its links. Out: a path per flow. Must not know: queues.

use crate::solver::instance::Instance;

/// Loads of the links while flows are placed.
#[derive(Clone, Debug)]
pub struct Loads {
    load: Vec<f64>,
}

impl Loads {
    /// An empty fabric.
    #[must_use]
    pub fn new(instance: &Instance) -> Self {
        Self { load: vec![0.0; instance.capacity.len()] }
    }

    /// Adds `bytes` (per iteration, per second: the caller's choice) of one flow on one of its candidate paths.
    /// Negative bytes take a flow off.
    pub fn add(&mut self, instance: &Instance, flow: usize, path: usize, bytes: f64) {
        for &link in &instance.flows[flow].candidates[path] {
            self.load[link] += bytes / instance.capacity[link];
        }
    }

    /// The candidate whose most loaded link is loaded least once the flow is on it; then the smallest sum, then the
    /// lowest index. Links that all candidates use (the hosts' own) tell nothing and are left out.
    #[must_use]
    pub fn least(&self, instance: &Instance, flow: usize, bytes: f64) -> usize {
        let candidates = &instance.flows[flow].candidates;
        let mut best = (f64::INFINITY, f64::INFINITY, 0);
        for (index, path) in candidates.iter().enumerate() {
            let inner = if path.len() > 2 { &path[1..path.len() - 1] } else { &path[..] };
            let after = |&link: &usize| self.load[link] + bytes / instance.capacity[link];
            let worst = inner.iter().map(after).fold(0.0, f64::max);
            let sum: f64 = inner.iter().map(after).sum();
            let better = worst < best.0 * (1.0 - 1e-12)
                || (worst <= best.0 * (1.0 + 1e-12) && sum < best.1 * (1.0 - 1e-12));
            if better {
                best = (worst, sum, index);
            }
        }
        best.2
    }
}

/// Places flows in the given order; `bytes(flow)` is what each adds to its links. Flows that are not in `order` keep
/// candidate 0.
#[must_use]
pub fn place(instance: &Instance, order: &[usize], bytes: impl Fn(usize) -> f64) -> Vec<u16> {
    let mut loads = Loads::new(instance);
    let mut paths = vec![0; instance.flows.len()];
    for &flow in order {
        let path = loads.least(instance, flow, bytes(flow));
        loads.add(instance, flow, path, bytes(flow));
        paths[flow] = path as u16;
    }
    paths
}

/// Flows job by job in the given order of jobs, each job's largest first, equal ones by id.
#[must_use]
pub fn flows_of(instance: &Instance, jobs: &[usize]) -> Vec<usize> {
    let mut order = Vec::with_capacity(instance.flows.len());
    for &job in jobs {
        let from = order.len();
        for &ring in &instance.jobs[job].rings {
            order.extend_from_slice(&instance.rings[ring].flows);
        }
        order[from..].sort_by(|&a, &b| {
            instance.flows[b].bytes.total_cmp(&instance.flows[a].bytes).then(a.cmp(&b))
        });
    }
    order
}

/// Jobs by a key, largest first, equal ones by id.
#[must_use]
pub fn jobs_by(instance: &Instance, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut jobs: Vec<usize> = (0..instance.jobs.len()).collect();
    let keys: Vec<f64> = jobs.iter().map(|&job| key(job)).collect();
    jobs.sort_by(|&a, &b| keys[b].total_cmp(&keys[a]).then(a.cmp(&b)));
    jobs
}

/// Contention-free communication seconds of a job whatever its paths: the busiest of the links that all candidates of a
/// flow share (the hosts' links; every link for a flow with one candidate), and no flow faster than its widest path.
#[must_use]
pub fn least_alone(instance: &Instance, job: usize) -> f64 {
    let mut load = vec![0.0_f64; instance.capacity.len()];
    let mut slowest = 0.0_f64;
    let narrowest = |path: &Vec<usize>| {
        path.iter().map(|&link| instance.capacity[link]).fold(f64::INFINITY, f64::min)
    };
    for &ring in &instance.jobs[job].rings {
        for &flow in &instance.rings[ring].flows {
            let candidates = &instance.flows[flow].candidates;
            let widest = candidates.iter().map(narrowest).fold(0.0, f64::max);
            slowest = slowest.max(instance.flows[flow].bytes / widest);
            let shared = |link: &&usize| candidates.iter().all(|path| path.contains(link));
            for &link in candidates[0].iter().filter(shared) {
                load[link] += instance.flows[flow].bytes / instance.capacity[link];
            }
        }
    }
    load.into_iter().fold(slowest, f64::max)
}

/// Queue of each job when an order of jobs (first served first) is cut into `levels` groups whose sizes differ by at
/// most one, larger groups last. The first group gets queue `levels - 1`, or one queue per job if there are few.
#[must_use]
pub fn balanced_queues(order: &[usize], levels: u8) -> Vec<u8> {
    let groups = usize::from(levels).min(order.len()).max(1);
    let mut queues = vec![0; order.len()];
    for (position, &job) in order.iter().enumerate() {
        let group = position * groups / order.len().max(1);
        queues[job] = levels - 1 - group as u8;
    }
    queues
}
