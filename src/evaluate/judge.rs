//! Judges plans by the fluid simulation over a long window, on draws that no planner saw.
//!
//! In: [`Drawn`], a plan. Out: [`Figures`] per draw, and bounds. Must not know: who made the plan.
//!
//! Jobs run without end. After [`WARM_UP`] longest contention-free periods a window of [`WINDOW`] such periods is looked at:
//! communication times of the iterations whose last byte falls into it, and the compute seconds in it. Planning draws come from the
//! stream `planning-phases`, judging takes `judging-phases`.

use super::draw::Drawn;
use super::stats::mean;
use crate::plan::Plan;
use crate::solver::fluid::{Draws, Fluid, Iteration, window};
use crate::solver::instance::{Choice, Instance, JobShape};
use crate::solver::{Shift, bound};
use serde::{Deserialize, Serialize};

/// Longest periods before the window.
pub const WARM_UP: f64 = 8.0;
/// Longest periods in the window.
pub const WINDOW: f64 = 40.0;
/// Stream of judging draws.
pub(super) const JUDGING_DRAWS: &str = "judging-phases";

/// How a plan did in one draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Mean over jobs of their mean communication time, ms.
    pub comm_ms: f64,
    /// Compute seconds of all GPUs / (GPUs x window).
    pub utilisation: f64,
    /// Mean over jobs of communication time / contention-free communication time.
    pub slowdown: f64,
    /// The largest over jobs.
    pub slowdown_max: f64,
    /// Jobs of which no iteration ended in the window; their communication counts as long as it has lasted.
    pub starved: u32,
}

impl Figures {
    /// Mean over draws; starved jobs are summed up.
    #[must_use]
    pub fn mean(all: &[Self]) -> Self {
        let over = |figure: fn(&Self) -> f64| mean(all.iter().map(figure));
        Self {
            comm_ms: over(|f| f.comm_ms),
            utilisation: over(|f| f.utilisation),
            slowdown: over(|f| f.slowdown),
            slowdown_max: over(|f| f.slowdown_max),
            starved: all.iter().map(|f| f.starved).sum(),
        }
    }
}

/// What no plan passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Mean over jobs of the communication time alone on the fabric, ms: a bound from below.
    pub alone_comm_ms: f64,
    /// GPU utilisation if every job were alone.
    pub alone_utilisation: f64,
    /// GPU utilisation in the long run from above: linear program over host links and cuts (`solver::bound`). In a window an
    /// iteration's compute may lie inside and its bytes outside, at most one per job.
    pub utilisation_bound: f64,
}

/// A judge of plans for one case.
pub struct Judge {
    /// The case with jobs that outlast the window.
    instance: Instance,
    draws: Vec<Draws>,
    iso: Vec<f64>,
    longest: f64,
}

impl Judge {
    /// A judge with so many draws.
    #[must_use]
    pub fn new(drawn: &Drawn, seed: u64, draws: u64) -> Self {
        let mut instance = Instance::new(&drawn.problem());
        let iso = bound::iso_comm(&instance);
        let end = (WARM_UP + WINDOW) * drawn.longest;
        for (job, &alone) in iso.iter().enumerate() {
            let period = instance.period(job, alone).max(1e-6);
            // No job is faster than alone; the rest is for jitter and for the phase before its first iteration.
            instance.jobs[job].iterations = (1.1 * end / period) as u32 + 10;
        }
        let draws =
            (0..draws).map(|index| Draws::random(&instance, seed, JUDGING_DRAWS, index)).collect();
        Self { instance, draws, iso, longest: drawn.longest }
    }

    /// How a plan does in each draw; `None` for a plan that is none of this case. `shifts` are the phases that its policy asks
    /// of the jobs, if it does: the first iterations keep them.
    #[must_use]
    pub fn figures(
        &self,
        drawn: &Drawn,
        plan: &Plan,
        shifts: Option<&[Shift]>,
    ) -> Option<Vec<Figures>> {
        let choice = Instance::choice(&drawn.problem(), plan)?;
        let Some(shifts) = shifts else { return Some(self.under(&choice, &self.draws)) };
        let draws: Vec<Draws> = self.draws.iter().map(|draws| draws.aligned(shifts)).collect();
        Some(self.under(&choice, &draws))
    }

    fn under(&self, choice: &Choice, draws: &[Draws]) -> Vec<Figures> {
        let (from, until) = (WARM_UP * self.longest, (WARM_UP + WINDOW) * self.longest);
        let mut fluid = Fluid::new(&self.instance);
        fluid.load(choice);
        let one = |draws: &Draws| {
            let history = fluid.watch(until, draws);
            self.read(&history, from, until)
        };
        draws.iter().map(one).collect()
    }

    /// Bounds of this case.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let senders: Vec<f64> = self.iso.iter().copied().filter(|iso| *iso > 0.0).collect();
        let jobs = || self.instance.jobs.iter().enumerate();
        let gpus: f64 = jobs().map(|(_, job)| job.gpus).sum();
        let busy = |(id, job): (usize, &JobShape)| {
            job.gpus * job.compute / self.instance.period(id, self.iso[id])
        };
        Limits {
            alone_comm_ms: mean(senders) * 1e3,
            alone_utilisation: jobs().map(busy).sum::<f64>() / gpus,
            utilisation_bound: bound::steady_utilisation(&self.instance),
        }
    }

    fn read(&self, history: &[Vec<Iteration>], from: f64, until: f64) -> Figures {
        let (mut comm, mut slowdown) = (Vec::new(), Vec::new());
        let (mut busy, mut gpus, mut starved) = (0.0, 0.0, 0);
        for ((job, iterations), iso) in self.instance.jobs.iter().zip(history).zip(&self.iso) {
            let seen = window::seen(iterations, (from, until));
            busy += job.gpus * seen.compute;
            gpus += job.gpus;
            if *iso <= 0.0 {
                continue;
            }
            starved += u32::from(!seen.ended);
            comm.push(seen.comm * 1e3);
            slowdown.push(seen.comm / iso);
        }
        Figures {
            comm_ms: mean(comm),
            utilisation: busy / (gpus * (until - from)),
            slowdown_max: slowdown.iter().copied().fold(0.0, f64::max),
            slowdown: mean(slowdown),
            starved,
        }
    }
}
