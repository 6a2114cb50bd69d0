//! The fluid model: jobs that iterate over a fabric whose links carry bytes at the rates of [`super::rate`].
//!
//! In: an [`Instance`], a [`Choice`] and [`Draws`] (start phases, compute times of every iteration). Out: an
//! [`Outcome`] per job and [`Metrics`] over jobs, as docs/scheduling defines them. Must not know: how the choice was
//! found, packets.
//!
//! An iteration computes; when `(1 - overlap)` of the compute time has passed its rings start to send; it ends when
//! compute and all rings are done, and the next begins at once. Between two events (a ring starts or ends) the set of
//! sending rings is fixed and so are all rates: the simulation jumps from event to event. An event changes only the rates
//! of rings that it can reach over links in use ([`components`]); rates of such a component are remembered, because
//! iterating jobs come back to the same few sets hundreds of times.

use super::Shift;
use super::instance::{Choice, Instance, JobShape};
use super::rate::{Layout, RateModel};
use components::Components;
use rand::RngExt as _;

mod components;
pub mod drain;
pub mod loose;
mod metrics;
#[cfg(test)]
mod tests;
pub mod window;

pub use metrics::{Metrics, alone, contention_free};

/// Everything random about one run, drawn before it starts so that all policies meet the same run.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// Seconds from the start of the run to the first iteration of each job.
    pub start: Vec<f64>,
    /// Compute seconds of each iteration of each job.
    pub compute: Vec<Vec<f64>>,
}

/// A compute time is never drawn below this share of its mean (a normal draw has no lower end).
const LEAST_COMPUTE: f64 = 0.1;

impl Draws {
    /// No jitter, jobs start when they say.
    #[must_use]
    pub fn exact(instance: &Instance) -> Self {
        let compute = |job: &super::instance::JobShape| vec![job.compute; job.iterations as usize];
        Self {
            start: instance.jobs.iter().map(|job| job.start).collect(),
            compute: instance.jobs.iter().map(compute).collect(),
        }
    }

    /// Start phases uniform over each job's contention-free period, compute times normal with the job's jitter: what a
    /// planner may assume. A start that the job asks for within its first period counts as a phase (and is drawn anew);
    /// a later one is an arrival and is kept. `purpose` keeps planning draws apart from judging draws.
    #[must_use]
    pub fn random(instance: &Instance, seed: u64, purpose: &str, index: u64) -> Self {
        let first = Choice::first(instance.flows.len());
        let mut draws = Self::jittered(instance, seed, purpose, index);
        for (id, job) in instance.jobs.iter().enumerate() {
            let mut random = crate::time::stream(seed ^ PHASE_SALT, purpose, stream_of(index, id));
            let period = instance.period(id, instance.alone(&first, id));
            let arrival = if job.start < period { 0.0 } else { job.start };
            draws.start[id] = arrival + period * random.random::<f64>();
        }
        draws
    }

    /// Jobs start when they say, compute times normal with the job's jitter: the run that judges a plan.
    #[must_use]
    pub fn jittered(instance: &Instance, seed: u64, purpose: &str, index: u64) -> Self {
        let mut draws = Self::exact(instance);
        for (id, job) in instance.jobs.iter().enumerate() {
            let mut random = crate::time::stream(seed, purpose, stream_of(index, id));
            for compute in &mut draws.compute[id] {
                *compute *= (1.0 + job.jitter * normal(&mut random)).max(LEAST_COMPUTE);
            }
        }
        draws
    }
}

impl Draws {
    /// The same run with jobs that wait for their phase before the first iteration: each start is put off to the next
    /// instant that fits the job's shift. Later iterations drift as compute times and contention have it.
    #[must_use]
    pub fn aligned(&self, shifts: &[Shift]) -> Self {
        let mut draws = self.clone();
        for (start, shift) in draws.start.iter_mut().zip(shifts) {
            if shift.period > 0.0 {
                *start += (shift.at - *start).rem_euclid(shift.period);
            }
        }
        draws
    }
}

/// Keeps the stream of start phases apart from that of compute times.
const PHASE_SALT: u64 = 0x9e37_79b9_7f4a_7c15;

fn stream_of(index: u64, job: usize) -> u64 {
    (index << 32) | job as u64
}

/// A standard normal draw (Box & Muller 1958).
fn normal(random: &mut impl rand::Rng) -> f64 {
    let (u, v): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// What one run did to each job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Mean communication seconds over iterations 2..=n (over the only one if n = 1).
    pub comm: Vec<f64>,
    /// Seconds from the first iteration's start to the last one's end.
    pub window: Vec<f64>,
    /// Compute seconds inside the window.
    pub compute: Vec<f64>,
    /// Jobs that could not finish (a flow without capacity).
    pub stalled: Vec<bool>,
}

/// One iteration of a job in a run that was watched; seconds after the start of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Its compute began.
    pub begin: f64,
    /// How long it computes.
    pub compute: f64,
    /// Its first byte; infinite if the run was ended before.
    pub comm_start: f64,
    /// Its last byte; infinite if the run was ended before.
    pub comm_end: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// Computing; nothing may be sent yet.
    #[default]
    Before,
    /// Sending; compute may still run.
    Sending,
    /// All sent; compute still runs.
    After,
    Done,
}

#[derive(Clone, Copy, Debug, Default)]
struct JobState {
    stage: Stage,
    /// When the stage ends by itself: communication start in `Before`, compute end in `After`, never otherwise.
    timer: f64,
    compute_end: f64,
    begin: f64,
    comm_start: f64,
    comm_end: f64,
    iteration: u32,
    rings_left: u32,
    comm_sum: f64,
}

/// Compute seconds of an iteration; beyond what was drawn, the mean.
fn compute(shape: &JobShape, drawn: &[f64], iteration: u32) -> f64 {
    drawn.get(iteration as usize).copied().unwrap_or(shape.compute)
}

impl JobState {
    fn current(&self, compute: f64) -> Iteration {
        let Self { begin, comm_start, comm_end, .. } = *self;
        Iteration { begin, compute, comm_start, comm_end }
    }
}

/// A run engine for one instance; reusable, so that thousands of evaluations allocate nothing.
#[derive(Clone, Debug)]
pub struct Fluid<'a> {
    instance: &'a Instance,
    layout: Layout,
    model: RateModel,
    jobs: Vec<JobState>,
    left: Vec<f64>,
    active: Vec<u32>,
    rates: Vec<f64>,
    /// Jobs that run, ascending.
    members: Vec<u32>,
    components: Components,
    /// Rings that started or ended at the present event.
    changed: Vec<u32>,
    /// Iterations that ended, by job, of a run that is watched.
    history: Option<Vec<Vec<Iteration>>>,
}

impl<'a> Fluid<'a> {
    /// An engine without a choice; call [`Self::load`] first.
    #[must_use]
    pub fn new(instance: &'a Instance) -> Self {
        let rings = instance.rings.len();
        Self {
            instance,
            layout: Layout::default(),
            model: RateModel::new(instance.capacity.len()),
            jobs: Vec::new(),
            left: vec![0.0; rings],
            active: Vec::with_capacity(rings),
            rates: vec![0.0; rings],
            members: Vec::new(),
            components: Components::default(),
            changed: Vec::new(),
            history: None,
        }
    }

    /// Takes a choice; rates remembered for another choice are forgotten. All jobs will run.
    pub fn load(&mut self, choice: &Choice) {
        self.layout.set_rings(self.instance, choice);
        self.members.clear();
        self.members.extend(0..self.instance.jobs.len() as u32);
        self.components.open(self.instance, &self.layout, &self.members);
    }

    /// Only these jobs (ascending) of the loaded choice will run; no other job may share a link with them.
    pub fn select(&mut self, jobs: &[u32]) {
        self.members.clear();
        self.members.extend_from_slice(jobs);
        self.components.open(self.instance, &self.layout, &self.members);
    }

    /// What every ring asks of every link under the loaded choice.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Runs every selected job to completion; the entries of other jobs in `outcome` mean nothing.
    pub fn run(&mut self, draws: &Draws, outcome: &mut Outcome) {
        self.run_until(f64::INFINITY, draws, outcome);
    }

    /// Runs until an instant, and tells of every iteration of every selected job; the last ones may not have ended by then.
    pub fn watch(&mut self, until: f64, draws: &Draws) -> Vec<Vec<Iteration>> {
        let mut outcome = Outcome::default();
        self.history = Some(vec![Vec::new(); self.instance.jobs.len()]);
        self.run_until(until, draws, &mut outcome);
        let mut history = self.history.take().unwrap_or_default();
        for &job in &self.members {
            let job = job as usize;
            let (state, shape) = (&self.jobs[job], &self.instance.jobs[job]);
            if state.stage != Stage::Done {
                let compute = compute(shape, &draws.compute[job], state.iteration);
                history[job].push(state.current(compute));
            }
        }
        history
    }

    /// As [`Self::run`], but only as far as the end of a window and with the figures of the window: of a job that ends in it they
    /// mean nothing.
    pub fn run_window(&mut self, span: (f64, f64), draws: &Draws, outcome: &mut Outcome) {
        let history = self.watch(span.1, draws);
        let count = self.instance.jobs.len();
        *outcome = Outcome {
            comm: vec![0.0; count],
            window: vec![span.1 - span.0; count],
            compute: vec![0.0; count],
            stalled: vec![false; count],
        };
        for &job in &self.members {
            let seen = window::seen(&history[job as usize], span);
            outcome.comm[job as usize] = seen.comm;
            outcome.compute[job as usize] = seen.compute;
        }
    }

    fn run_until(&mut self, until: f64, draws: &Draws, outcome: &mut Outcome) {
        self.begin(draws, outcome);
        let mut now = 0.0;
        while let Some(next) = self.next_event(now) {
            if next > until {
                break;
            }
            for &ring in &self.active {
                self.left[ring as usize] -= self.rates[ring as usize] * (next - now);
            }
            now = next;
            self.changed.clear();
            self.finish_rings(now, draws, outcome);
            self.fire_timers(now, draws, outcome);
            if !self.changed.is_empty() {
                let network = (&self.layout, &self.instance.capacity[..]);
                let (changed, rates) = (&self.changed, &mut self.rates);
                self.components.refresh(network, changed, &self.active, &mut self.model, rates);
            }
        }
        for &id in &self.members {
            let id = id as usize;
            let state = &self.jobs[id];
            outcome.stalled[id] = state.stage != Stage::Done;
            let counted = self.instance.jobs[id].iterations.saturating_sub(1).max(1);
            outcome.comm[id] = state.comm_sum / f64::from(counted);
            outcome.window[id] -= draws.start[id];
        }
    }

    fn begin(&mut self, draws: &Draws, outcome: &mut Outcome) {
        let count = self.instance.jobs.len();
        outcome.comm.clear();
        outcome.comm.resize(count, 0.0);
        outcome.window.clear();
        outcome.window.resize(count, 0.0);
        outcome.stalled.clear();
        outcome.stalled.resize(count, false);
        outcome.compute.clear();
        outcome.compute.resize(count, 0.0);
        self.active.clear();
        self.components.begin();
        self.jobs.resize(count, JobState::default());
        for &id in &self.members {
            let id = id as usize;
            let (job, start, compute) =
                (&self.instance.jobs[id], draws.start[id], &draws.compute[id]);
            outcome.compute[id] = compute.iter().sum::<f64>();
            let first = compute.first().copied().unwrap_or(0.0);
            self.jobs[id] = JobState {
                stage: Stage::Before,
                timer: start + (1.0 - job.overlap) * first,
                compute_end: start + first,
                begin: start,
                comm_start: f64::INFINITY,
                comm_end: f64::INFINITY,
                iteration: 0,
                rings_left: 0,
                comm_sum: 0.0,
            };
        }
    }

    /// Time of the next event and, for the ring that ends then, its remaining bytes set to exactly what will flow.
    fn next_event(&mut self, now: f64) -> Option<f64> {
        let mut next = f64::INFINITY;
        for &id in &self.members {
            next = next.min(self.jobs[id as usize].timer);
        }
        let mut first = None;
        for &ring in &self.active {
            let end = now + self.left[ring as usize] / self.rates[ring as usize];
            if end < next {
                next = end;
                first = Some(ring);
            }
        }
        if let Some(ring) = first {
            // Rounding must not leave a crumb behind that would need another event.
            self.left[ring as usize] = self.rates[ring as usize] * (next - now);
        }
        next.is_finite().then_some(next)
    }

    fn finish_rings(&mut self, now: f64, draws: &Draws, outcome: &mut Outcome) {
        let mut position = 0;
        while position < self.active.len() {
            let ring = self.active[position] as usize;
            if self.left[ring] > self.instance.rings[ring].bytes * 1e-9 {
                position += 1;
                continue;
            }
            self.active.swap_remove(position);
            self.changed.push(ring as u32);
            let job = self.instance.rings[ring].job;
            self.jobs[job].rings_left -= 1;
            if self.jobs[job].rings_left == 0 {
                self.communicated(job, now, draws, outcome);
            }
        }
    }

    fn communicated(&mut self, job: usize, now: f64, draws: &Draws, outcome: &mut Outcome) {
        let state = &mut self.jobs[job];
        state.comm_end = now;
        if state.iteration > 0 || self.instance.jobs[job].iterations == 1 {
            state.comm_sum += now - state.comm_start;
        }
        if state.compute_end > now {
            state.stage = Stage::After;
            state.timer = state.compute_end;
        } else {
            self.next_iteration(job, now, draws, outcome);
        }
    }

    fn next_iteration(&mut self, job: usize, now: f64, draws: &Draws, outcome: &mut Outcome) {
        let shape = &self.instance.jobs[job];
        let state = &mut self.jobs[job];
        if let Some(history) = &mut self.history {
            history[job].push(state.current(compute(shape, &draws.compute[job], state.iteration)));
        }
        state.begin = now;
        state.comm_start = f64::INFINITY;
        state.comm_end = f64::INFINITY;
        state.iteration += 1;
        if state.iteration >= shape.iterations {
            state.stage = Stage::Done;
            state.timer = f64::INFINITY;
            outcome.window[job] = now;
            return;
        }
        let compute = compute(shape, &draws.compute[job], state.iteration);
        state.stage = Stage::Before;
        state.timer = now + (1.0 - shape.overlap) * compute;
        state.compute_end = now + compute;
    }

    fn fire_timers(&mut self, now: f64, draws: &Draws, outcome: &mut Outcome) {
        for member in 0..self.members.len() {
            let job = self.members[member] as usize;
            if self.jobs[job].timer > now {
                continue;
            }
            if self.jobs[job].stage == Stage::After {
                self.next_iteration(job, now, draws, outcome);
                continue;
            }
            let shape = &self.instance.jobs[job];
            let state = &mut self.jobs[job];
            state.stage = Stage::Sending;
            state.timer = f64::INFINITY;
            state.comm_start = now;
            state.rings_left = shape.rings.len() as u32;
            if shape.rings.is_empty() {
                self.communicated(job, now, draws, outcome);
            }
            for &ring in &shape.rings {
                self.left[ring] = self.instance.rings[ring].bytes;
                self.active.push(ring as u32);
                self.changed.push(ring as u32);
            }
        }
    }
}
