//! What a choice is worth: the objectives, all from a short simulation of iterating jobs over several draws.
//!
//! In: an [`Instance`], an [`Objective`], planning [`Draws`]. Out: a score per [`Choice`], lower is better. Must not know:
//! how choices are found, the draws that plans are judged by.

use super::fluid::drain::drain;
use super::fluid::{Draws, Fluid, Metrics, Outcome};
use super::instance::{Choice, Instance, JobShape};
use super::policy::greedy;
use super::rate::{Layout, RateModel};
use super::{Effort, Objective};

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

/// Scores choices; owns an engine, so each thread has its own.
#[derive(Clone, Debug)]
pub struct Evaluator<'a> {
    instance: &'a Instance,
    yardstick: &'a Yardstick,
    fluid: Fluid<'a>,
    outcome: Outcome,
    window: Option<(f64, f64)>,
    /// Choices scored so far.
    pub evaluations: u64,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of choices on an instance.
    #[must_use]
    pub fn new(instance: &'a Instance, yardstick: &'a Yardstick) -> Self {
        let (fluid, outcome, window) = (Fluid::new(instance), Outcome::default(), window(instance));
        Self { instance, yardstick, fluid, outcome, window, evaluations: 0 }
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
        self.fluid.load(choice);
        let mut sum = Metrics::default();
        let count = self.yardstick.draws.len() as f64;
        for (index, draws) in self.yardstick.draws.iter().enumerate() {
            let metrics = self.run(draws);
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

    fn run(&mut self, draws: &Draws) -> Metrics {
        if let Some(span) = self.window {
            let history = self.fluid.watch(span.1, draws);
            return Metrics::of_window(self.instance, &history, &self.yardstick.iso, span);
        }
        self.fluid.run(draws, &mut self.outcome);
        Metrics::of(self.instance, &self.outcome, &self.yardstick.iso)
    }

    /// Figures of a choice under each planning draw.
    pub fn metrics(&mut self, choice: &Choice) -> Vec<Metrics> {
        self.fluid.load(choice);
        let draws = &self.yardstick.draws;
        draws.iter().map(|draws| self.run(draws)).collect()
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

#[cfg(test)]
mod tests {
    use super::super::tests::instance;
    use super::*;

    /// One link; the first job nearly fills it, the second wants half of it.
    fn crowded(iterations: u32) -> Instance {
        let one = |bytes| vec![(bytes, vec![vec![vec![0]]])];
        let mut built = instance(&[1.0], &[(0.1, one(1.0)), (1.0, one(1.0))]);
        built.jobs.iter_mut().for_each(|job| job.iterations = iterations);
        built
    }

    fn comm(instance: &Instance, queue: [u8; 2]) -> f64 {
        let effort = Effort {
            seed: 0,
            max_evaluations: 1,
            stop: &|| false,
            objective: Objective::Comm,
            phases: 2,
        };
        let yardstick = Yardstick::new(instance, &effort);
        let choice = Choice { path: vec![0; 2], queue: queue.into() };
        Evaluator::new(instance, &yardstick).score(&choice, f64::INFINITY)
    }

    #[test]
    fn jobs_without_end_are_not_planned_as_if_others_ended() {
        let (short, long) = (crowded(5), crowded(1_000));
        assert!(window(&short).is_none() && window(&long).is_some());
        // To completion, putting the full job first costs the other little: it has the link for itself soon.
        assert!(comm(&short, [1, 0]) < 3.0, "{}", comm(&short, [1, 0]));
        // Without an end the other gets a tenth of the link for ever.
        assert!(comm(&long, [1, 0]) > 4.0, "{}", comm(&long, [1, 0]));
        assert!(comm(&long, [0, 0]) < 2.5 && comm(&long, [0, 1]) < 2.5);
    }

    #[test]
    fn a_window_sees_what_a_long_run_to_completion_sees() {
        let long = crowded(1_000);
        let completed = {
            let draws = Draws::random(&long, 0, PLANNING_DRAWS, 0);
            let mut fluid = Fluid::new(&long);
            fluid.load(&Choice { path: vec![0; 2], queue: vec![0, 1] });
            let mut outcome = Outcome::default();
            fluid.run(&draws, &mut outcome);
            Metrics::of(&long, &outcome, &[1.0, 1.0]).comm_mean
        };
        let seen = comm(&long, [0, 1]);
        assert!((seen / completed - 1.0).abs() < 0.1, "{seen} against {completed}");
    }
}
