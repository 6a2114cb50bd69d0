//! Crux's correction factor k: two jobs on one link, both orders.
//!
//! In: compute time, overlap and communication time of two jobs. Out: network seconds each gets, and k. Must not know:
//! the fabric.

/// One job as the two-job simulation sees it, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pulse {
    /// Compute of one iteration.
    pub compute: f64,
    /// Share of the compute that overlaps with communication.
    pub overlap: f64,
    /// Communication of one iteration when it has the link for itself.
    pub comm: f64,
}

impl Pulse {
    fn period(&self) -> f64 {
        self.compute.max((1.0 - self.overlap) * self.compute + self.comm)
    }
}

/// k of a job that gains by being first while the reference gains nothing.
pub const CORRECTION_MAX: f64 = 10.0;

/// Iterations of the longer job simulated at most: periods without a small common multiple would never end.
const ITERATIONS_MAX: f64 = 64.0;

/// Network seconds that `[first, second]` get within `horizon` seconds when `first` always goes first (preemptive);
/// both start with their communication at 0.
#[must_use]
pub fn network_seconds(first: Pulse, second: Pulse, horizon: f64) -> [f64; 2] {
    let pulses = [first, second];
    let mut got = [0.0_f64; 2];
    // Remaining communication (> 0: sending), else the time at which the next communication starts.
    let mut left = [first.comm, second.comm];
    let mut compute_end = [0.0_f64; 2];
    let mut send_at = [0.0_f64; 2];
    let mut now = 0.0;
    while now < horizon {
        let sending = [0, 1].map(|job| left[job] > 0.0 && send_at[job] <= now);
        let served = if sending[0] { Some(0) } else { sending[1].then_some(1) };
        let mut next = horizon;
        for job in 0..2 {
            if !sending[job] && pulses[job].comm > 0.0 {
                next = next.min(send_at[job].max(now));
            }
        }
        if let Some(job) = served {
            next = next.min(now + left[job]);
            got[job] += next - now;
            left[job] -= next - now;
            if left[job] <= 1e-12 * pulses[job].comm {
                // The next iteration begins when this one has computed and communicated.
                let begin = next.max(compute_end[job]);
                left[job] = pulses[job].comm;
                send_at[job] = begin + (1.0 - pulses[job].overlap) * pulses[job].compute;
                compute_end[job] = begin + pulses[job].compute;
            }
        }
        now = next;
    }
    got
}

/// `k_j` of `job` against the job with most traffic: what `job` gains by going first over what `reference` gains.
#[must_use]
pub fn correction(reference: Pulse, job: Pulse) -> f64 {
    if job.comm <= 0.0 || reference.comm <= 0.0 {
        return 1.0;
    }
    let horizon = horizon(reference.period(), job.period());
    let [ref_first, job_second] = network_seconds(reference, job, horizon);
    let [job_first, ref_second] = network_seconds(job, reference, horizon);
    let (ref_gain, job_gain) = (ref_first - ref_second, job_first - job_second);
    let nothing = 1e-9 * horizon;
    if ref_gain > nothing {
        (job_gain / ref_gain).max(0.0)
    } else if job_gain > nothing {
        CORRECTION_MAX
    } else {
        1.0
    }
}

/// Least common multiple in whole milliseconds, at most [`ITERATIONS_MAX`] of the longer period.
fn horizon(a: f64, b: f64) -> f64 {
    let whole = |seconds: f64| ((seconds * 1e3).round() as u64).max(1);
    let (a_ms, b_ms) = (whole(a), whole(b));
    let (mut x, mut y) = (a_ms, b_ms);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    let multiple = (a_ms / x) as f64 * b_ms as f64 / 1e3;
    multiple.min(ITERATIONS_MAX * a.max(b))
}
