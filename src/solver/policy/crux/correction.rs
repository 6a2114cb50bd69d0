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

/// Iterations of the longer job simulated at most: some pairs never fall into a cycle.
const ITERATIONS_MAX: f64 = 64.0;

/// Two jobs on one link, preemptive strict priority, seconds.
#[derive(Clone, Copy, Debug)]
struct Link {
    pulses: [Pulse; 2],
    now: f64,
    got: [f64; 2],
    /// Communication left of the current iteration.
    left: [f64; 2],
    /// When it may begin.
    send_at: [f64; 2],
    compute_end: [f64; 2],
}

impl Link {
    /// Both start with their communication at 0.
    fn new(pulses: [Pulse; 2]) -> Self {
        let left = pulses.map(|pulse| pulse.comm);
        Self { pulses, now: 0.0, got: [0.0; 2], left, send_at: [0.0; 2], compute_end: [0.0; 2] }
    }

    /// Moves to the next event, at most to `horizon`. Returns whether job 0 has just finished its communication.
    fn step(&mut self, horizon: f64) -> bool {
        let sending =
            [0, 1].map(|job| self.pulses[job].comm > 0.0 && self.send_at[job] <= self.now);
        let served = if sending[0] { Some(0) } else { sending[1].then_some(1) };
        let mut next = horizon;
        for (job, sends) in sending.into_iter().enumerate() {
            if !sends && self.pulses[job].comm > 0.0 {
                next = next.min(self.send_at[job]);
            }
        }
        let mut first_finished = false;
        if let Some(job) = served {
            let done = self.now + self.left[job];
            let finishes = done <= next;
            next = next.min(done);
            self.got[job] += next - self.now;
            self.left[job] -= next - self.now;
            let pulse = self.pulses[job];
            // Not "nothing is left": rounding can leave so little that adding it to `now` changes nothing, for ever.
            if finishes {
                // The next iteration begins when this one has computed and communicated.
                let begin = next.max(self.compute_end[job]);
                self.left[job] = pulse.comm;
                self.send_at[job] = begin + (1.0 - pulse.overlap) * pulse.compute;
                self.compute_end[job] = begin + pulse.compute;
                first_finished = job == 0;
            }
        }
        self.now = next;
        first_finished
    }

    /// Everything that decides the future, relative to now.
    fn phase(&self) -> [f64; 6] {
        let wait = |time: f64| (time - self.now).max(0.0);
        let [a, b] = self.send_at.map(wait);
        let [c, d] = self.compute_end.map(wait);
        [self.left[0], self.left[1], a, b, c, d]
    }
}

/// Network seconds that `[first, second]` get within `horizon` seconds when `first` always goes first (preemptive);
/// both start with their communication at 0.
#[must_use]
pub fn network_seconds(first: Pulse, second: Pulse, horizon: f64) -> [f64; 2] {
    let mut link = Link::new([first, second]);
    while link.now < horizon {
        link.step(horizon);
    }
    link.got
}

/// Share of the time in which `[first, second]` hold the link in the long run: over one cycle of their common pattern
/// (4 s and 6 s in the paper's example 1, 12 s together), or over the longest run allowed if no pattern repeats.
#[must_use]
pub fn network_shares(first: Pulse, second: Pulse) -> [f64; 2] {
    let horizon = ITERATIONS_MAX * first.period().max(second.period());
    let mut link = Link::new([first, second]);
    let mut seen: Vec<(Link, [f64; 6])> = Vec::new();
    while link.now < horizon {
        if !link.step(horizon) {
            continue;
        }
        let phase = link.phase();
        let same = |old: &[f64; 6]| {
            old.iter().zip(&phase).all(|(a, b)| (a - b).abs() <= 1e-9 * horizon / ITERATIONS_MAX)
        };
        if let Some((old, _)) = seen.iter().find(|(_, old)| same(old)) {
            return [0, 1].map(|job| (link.got[job] - old.got[job]) / (link.now - old.now));
        }
        if seen.len() < PHASES_MAX {
            seen.push((link, phase));
        }
    }
    link.got.map(|seconds| seconds / horizon)
}

/// Phases remembered while looking for a cycle.
const PHASES_MAX: usize = 512;

/// `k_j` of `job` against the job with most traffic: what `job` gains by going first over what `reference` gains.
#[must_use]
pub fn correction(reference: Pulse, job: Pulse) -> f64 {
    if job.comm <= 0.0 || reference.comm <= 0.0 {
        return 1.0;
    }
    let [ref_first, job_second] = network_shares(reference, job);
    let [job_first, ref_second] = network_shares(job, reference);
    let (ref_gain, job_gain) = (ref_first - ref_second, job_first - job_second);
    let nothing = 1e-6;
    if ref_gain > nothing {
        (job_gain / ref_gain).clamp(0.0, CORRECTION_MAX)
    } else if job_gain > nothing {
        CORRECTION_MAX
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_tiny_beside_their_period_come_to_an_end() {
        // The time left after rounding was once larger than the threshold for "done" and smaller than the clock's step.
        for step in 0..2_000_u32 {
            let tiny = |comm: f64| Pulse { compute: 1.0 / 3.0, overlap: 0.5, comm };
            let comm = 1e-7 * (1.0 + f64::from(step) / 7.0);
            let [a, b] = network_shares(tiny(comm), tiny(comm * 0.7));
            assert!(a > 0.0 && b > 0.0 && a + b < 1.0, "{comm}: {a} {b}");
        }
    }
}
