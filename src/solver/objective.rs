//! What a choice is worth: the objectives, all from a short simulation of iterating jobs over several draws.
//!
//! In: an [`Instance`], an [`Objective`], planning [`Draws`]. Out: a score per [`Choice`], lower is better. Must not know:
//! how choices are found, the draws that plans are judged by.

use super::fluid::drain::drain;
use super::fluid::{Draws, Metrics, Outcome};
use super::instance::{Choice, Instance, JobShape};
use super::policy::greedy;
use super::rate::{Layout, RateModel};
use super::{Effort, Objective};
use parts::Parts;

mod parts;
#[cfg(test)]
pub(crate) mod tests;

/// Rate that the static estimate grants a flow that strict priority would starve, as a share of its slowest link:
/// without a floor most plans would score infinity.
pub const STATIC_FLOOR: f64 = 0.01;

/// Purpose of the random stream that planning draws come from; judges use another.
pub const PLANNING_DRAWS: &str = "planning-phases";

/// After one draw a choice is given up if it is this much worse than the limit: draws of one choice differ by less.
const HOPELESS: f64 = 1.25;

/// Longest contention-free periods that a run without end is looked at, after some in which it settles.
const WINDOW_PERIODS: f64 = 10.0;
/// See [`WINDOW_PERIODS`].
const WARM_UP_PERIODS: f64 = 2.0;
/// Every job must outlast so many windows, alone, for a run to count as one without end.
const OUTLASTED: f64 = 4.0;

/// From when until when a run is looked at, seconds, if its jobs all go on for much longer than that; `None` if it is simulated to
/// completion.
///
/// Jobs that wait for others to *end* hardly suffer in a short run to completion, and starve in a long one: who plans for jobs of many
/// iterations must not count on their ends.
#[must_use]
pub fn window(instance: &Instance) -> Option<(f64, f64)> {
    let periods: Vec<f64> = (0..instance.jobs.len())
        .map(|job| instance.period(job, greedy::least_alone(instance, job)))
        .collect();
    let longest = periods.iter().copied().fold(0.0, f64::max);
    let until = (WARM_UP_PERIODS + WINDOW_PERIODS) * longest;
    let lasts = |(job, period): (&JobShape, &f64)| {
        f64::from(job.iterations) * period > OUTLASTED * until && job.start <= longest
    };
    let endless = longest > 0.0 && instance.jobs.iter().zip(&periods).all(lasts);
    endless.then_some((WARM_UP_PERIODS * longest, until))
}

/// The instance with no more iterations than a window can hold, for draws.
fn shortened(instance: &Instance, until: f64) -> Instance {
    let mut short = instance.clone();
    for job in 0..short.jobs.len() {
        let period = instance.period(job, greedy::least_alone(instance, job));
        let enough = (1.1 * until / period.max(f64::MIN_POSITIVE)) as u32;
        short.jobs[job].iterations = short.jobs[job].iterations.min(enough.saturating_add(10));
    }
    short
}

/// Everything that scoring needs and that all evaluators of one search share.
#[derive(Clone, Debug)]
pub struct Yardstick {
    /// What is minimised.
    pub objective: Objective,
    /// Planning draws; at least one.
    pub draws: Vec<Draws>,
    /// Contention-free communication seconds of each job.
    pub iso: Vec<f64>,
}

impl Yardstick {
    /// Draws the planning phases of an effort.
    #[must_use]
    pub fn new(instance: &Instance, effort: &Effort<'_>) -> Self {
        let phases = u64::from(effort.phases.max(1));
        let short = window(instance).map(|(_, until)| shortened(instance, until));
        let drawn = short.as_ref().unwrap_or(instance);
        let draw = |index| Draws::random(drawn, effort.seed, PLANNING_DRAWS, index);
        Self {
            objective: effort.objective,
            draws: (0..phases).map(draw).collect(),
            iso: (0..instance.jobs.len()).map(|job| greedy::least_alone(instance, job)).collect(),
        }
    }
}

/// Scores choices, component by component ([`parts`]); owns an engine, so each thread has its own.
#[derive(Clone, Debug)]
pub struct Evaluator<'a> {
    instance: &'a Instance,
    yardstick: &'a Yardstick,
    parts: Parts<'a>,
    outcome: Outcome,
    /// Choices scored so far.
    pub evaluations: u64,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of choices on an instance.
    #[must_use]
    pub fn new(instance: &'a Instance, yardstick: &'a Yardstick) -> Self {
        let parts = Parts::new(instance);
        Self { instance, yardstick, parts, outcome: Outcome::default(), evaluations: 0 }
    }

    /// Score of a choice, lower is better. May return `f64::INFINITY` once it is clear that the score lies far above
    /// `limit`.
    pub fn score(&mut self, choice: &Choice, limit: f64) -> f64 {
        self.evaluations += 1;
        match self.yardstick.objective {
            Objective::Drain => drain(self.instance, choice).sum(),
            Objective::Static => static_estimate(self.instance, choice),
            objective => self.simulate(choice, objective, limit),
        }
    }

    fn simulate(&mut self, choice: &Choice, objective: Objective, limit: f64) -> f64 {
        self.parts.load(choice);
        let mut sum = Metrics::default();
        let count = self.yardstick.draws.len() as f64;
        for index in 0..self.yardstick.draws.len() {
            let metrics = self.run(index);
            sum.comm_mean += metrics.comm_mean / count;
            sum.comm_max += metrics.comm_max / count;
            sum.slowdown += metrics.slowdown / count;
            sum.utilisation += metrics.utilisation / count;
            if index == 0 && given_up(value(objective, &metrics), limit) {
                return f64::INFINITY;
            }
        }
        value(objective, &sum)
    }

    fn run(&mut self, draw: usize) -> Metrics {
        self.parts.run(&self.yardstick.draws, draw, &mut self.outcome);
        Metrics::of(self.instance, &self.outcome, &self.yardstick.iso)
    }

    /// Components that were not simulated because they were known.
    #[must_use]
    pub fn remembered(&self) -> u64 {
        self.parts.remembered
    }

    /// Figures of a choice under each planning draw.
    pub fn metrics(&mut self, choice: &Choice) -> Vec<Metrics> {
        self.parts.load(choice);
        (0..self.yardstick.draws.len()).map(|draw| self.run(draw)).collect()
    }
}

/// Scores of minus utilisation are negative: there "worse" means nearer to 0.
fn given_up(value: f64, limit: f64) -> bool {
    if limit >= 0.0 { value > limit * HOPELESS } else { value > limit / HOPELESS }
}

/// The simulated objectives as functions of the figures.
#[must_use]
pub fn value(objective: Objective, metrics: &Metrics) -> f64 {
    match objective {
        Objective::Comm => metrics.comm_mean,
        Objective::Utilisation => -metrics.utilisation,
        Objective::Slowdown => metrics.slowdown,
        Objective::Max => metrics.comm_max,
        Objective::Both | Objective::Drain | Objective::Static => {
            metrics.comm_mean / metrics.utilisation.max(f64::MIN_POSITIVE)
        }
    }
}

/// Mean over jobs of the time one iteration's bytes take while all flows send all the time (strict priority, rates never
/// below [`STATIC_FLOOR`] of the path's slowest link), seconds.
#[must_use]
pub fn static_estimate(instance: &Instance, choice: &Choice) -> f64 {
    let layout = Layout::of_flows(instance, choice);
    let active: Vec<u32> = (0..instance.flows.len() as u32).collect();
    let mut rates = vec![0.0; instance.flows.len()];
    RateModel::new(instance.capacity.len()).rates(&layout, &instance.capacity, &active, &mut rates);
    let mut job_time = vec![0.0_f64; instance.jobs.len()];
    for (id, flow) in instance.flows.iter().enumerate() {
        let links = instance.links(choice, id).iter();
        let line = links.map(|&link| instance.capacity[link]).fold(f64::INFINITY, f64::min);
        let seconds = flow.bytes / rates[id].max(STATIC_FLOOR * line);
        job_time[flow.job] = job_time[flow.job].max(seconds);
    }
    let senders = job_time.iter().filter(|&&time| time > 0.0).count().max(1);
    job_time.iter().sum::<f64>() / senders as f64
}
