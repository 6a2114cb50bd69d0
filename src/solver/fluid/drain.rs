//! Drain times: every flow starts at 0 with one iteration's bytes, rings are not coupled, rates are recomputed at each
//! completion.
//!
//! In: an [`Instance`] and a [`Choice`]. Out: seconds until each flow is done, and each flow's rate at 0. This is the
//! figure that anybody can recompute from the printed plan alone; as an objective it exists for ablation. Must not
//! know: iterations, phases.

use crate::solver::instance::{Choice, Instance};
use crate::solver::rate::{Layout, RateModel};

/// Drain times and first rates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drain {
    /// Rate of each flow while all flows send, bytes per second.
    pub rate0: Vec<f64>,
    /// Seconds until each flow has sent its bytes; infinite only for a flow over a link without capacity.
    pub flow: Vec<f64>,
    /// The largest over the job's flows; 0 for a job without flows.
    pub job: Vec<f64>,
}

impl Drain {
    /// Sum over jobs, seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.job.iter().sum()
    }
}

/// Simulates the drain.
#[must_use]
pub fn drain(instance: &Instance, choice: &Choice) -> Drain {
    let layout = Layout::of_flows(instance, choice);
    let count = instance.flows.len();
    let mut model = RateModel::new(instance.capacity.len());
    let mut result = Drain {
        rate0: vec![0.0; count],
        flow: vec![f64::INFINITY; count],
        job: vec![0.0; instance.jobs.len()],
    };
    let mut left: Vec<f64> = instance.flows.iter().map(|flow| flow.bytes).collect();
    let mut active: Vec<u32> = (0..count as u32).collect();
    let mut rates = vec![0.0; count];
    let mut now = 0.0;
    let mut first = true;
    while !active.is_empty() {
        model.rates(&layout, &instance.capacity, &active, &mut rates);
        if first {
            result.rate0.copy_from_slice(&rates);
            first = false;
        }
        let step = active
            .iter()
            .map(|&flow| left[flow as usize] / rates[flow as usize])
            .filter(|step| !step.is_nan())
            .fold(f64::INFINITY, f64::min);
        if !step.is_finite() {
            break;
        }
        now += step;
        active.retain(|&flow| {
            let id = flow as usize;
            // The flow that set the step ends here whatever rounding says.
            let ends = left[id] / rates[id] <= step * (1.0 + 1e-12);
            left[id] -= rates[id] * step;
            if ends {
                result.flow[id] = now;
            }
            !ends
        });
    }
    for (id, flow) in instance.flows.iter().enumerate() {
        result.job[flow.job] = result.job[flow.job].max(result.flow[id]);
    }
    result
}
