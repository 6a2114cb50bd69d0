//! What a window of an endless run shows of a job.
//!
//! In: a job's [`Iteration`]s, the window. Out: [`Seen`]. Must not know: other jobs, choices.

use super::Iteration;

/// A job in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Mean communication seconds of the iterations whose last byte falls into the window; if there is none, how long the one under
    /// way has lasted by its end: a job that is starved must not look as if it sent nothing.
    pub comm: f64,
    /// Whether an iteration's last byte falls into the window.
    pub ended: bool,
    /// Compute seconds inside the window.
    pub compute: f64,
}

/// Looks at a job from an instant until another, seconds.
#[must_use]
pub fn seen(iterations: &[Iteration], (from, until): (f64, f64)) -> Seen {
    let (mut sum, mut count, mut compute) = (0.0, 0.0, 0.0);
    for it in iterations {
        compute += ((it.begin + it.compute).min(until) - it.begin.max(from)).max(0.0);
        if it.comm_end > from && it.comm_end <= until {
            sum += it.comm_end - it.comm_start;
            count += 1.0;
        }
    }
    if count > 0.0 {
        return Seen { comm: sum / count, ended: true, compute };
    }
    let begun = iterations.iter().map(|it| it.comm_start).rfind(|start| start.is_finite());
    Seen { comm: until - begun.unwrap_or(from), ended: false, compute }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn it(begin: f64, compute: f64, comm: f64) -> Iteration {
        let comm_start = begin + compute;
        Iteration { begin, compute, comm_start, comm_end: comm_start + comm }
    }

    #[test]
    fn only_iterations_that_end_in_the_window_count_for_communication() {
        let all = [it(0.0, 1.0, 1.0), it(2.0, 1.0, 3.0), it(6.0, 1.0, 1.0)];
        let of = |window| seen(&all, window);
        assert_eq!(of((3.0, 7.0)), Seen { comm: 3.0, ended: true, compute: 1.0 });
        assert_eq!(of((3.0, 9.0)), Seen { comm: 2.0, ended: true, compute: 1.0 });
        assert_eq!(of((2.5, 6.5)).compute, 1.0, "half of the second's and half of the third's");
    }

    #[test]
    fn a_job_that_never_gets_through_counts_as_long_as_it_has_waited() {
        let all = [it(0.0, 1.0, f64::INFINITY)];
        assert_eq!(seen(&all, (3.0, 7.0)), Seen { comm: 6.0, ended: false, compute: 0.0 });
    }
}
