//! Ring-AllReduce as hosts run it: who may send how much, and a job's iterations.
//!
//! In: how many packets of each ring edge have arrived. Out: how far each edge may send; when an iteration's
//! communication begins and ends. Must not know frames, links or switches.
//!
//! A ring of n ranks takes 2(n-1) steps; in step k a rank sends what it received (and reduced) in step k-1, so over one
//! iteration every edge carries the same number of bytes and byte b of an edge needs byte b - `ahead` of the edge before it
//! (Patarasuk & Yuan 2009; with chunked buffers as NCCL's ring kernel runs them, `ahead` is the chunk that a rank may send
//! before it has to receive; with `ahead` = S/n it is the textbook ring). The successor reduces and forwards before it
//! frees a buffer, so an edge is at most `buffer` past what its successor has passed on. Data moves on in slices.

use crate::id::JobId;
use crate::time::{Span, Time, stream};
use rand::RngExt as _;
use rand_pcg::Pcg64;

/// Limits of the coupling, in packets of full size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coupling {
    /// How far a rank may be past what its predecessor delivered.
    pub ahead: u64,
    /// How far a rank may be past what its successor has passed on.
    pub buffer: u64,
    /// Received data is usable in units of this.
    pub slice: u64,
}

impl Coupling {
    /// First packet number that an edge must not send yet. The iteration's packets are `base..end`; the predecessor's edge
    /// has delivered everything below `delivered`.
    #[must_use]
    pub fn limit(&self, base: u64, end: u64, delivered: u64) -> u64 {
        if delivered >= end {
            return end;
        }
        let got = delivered.saturating_sub(base);
        let usable = got - got % self.slice.max(1);
        end.min(base + usable + self.ahead)
    }

    /// First packet number for which the receiving rank has no room: it has received all below `delivered` of this edge
    /// and sent all below `sent` on its own edge.
    #[must_use]
    pub fn credit(&self, delivered: u64, sent: u64) -> u64 {
        delivered.min(sent) + self.buffer
    }
}

/// Times of one finished iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iteration {
    /// When its compute started.
    pub start: Time,
    /// First byte handed to the transport by any rank.
    pub comm_start: Time,
    /// Last byte of the AllReduce at the last rank.
    pub comm_end: Time,
    /// Compute time of each rank at full speed, which is the useful work.
    pub compute: Span,
    /// When compute and communication were both done.
    pub end: Time,
    /// Ranks that did it.
    pub ranks: usize,
}

/// Where a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not started.
    Waiting,
    /// In its iterations.
    Running,
    /// All iterations done, at this time.
    Finished(Time),
}

/// What the machine asks for at the start of an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// When communication starts.
    pub comm_at: Time,
    /// When compute is done.
    pub compute_end: Time,
}

/// One job's iterations: compute, communicate, again. Fixed number to completion.
#[derive(Clone, Debug)]
pub struct JobRun {
    /// The job.
    pub id: JobId,
    compute: Span,
    overlap: f64,
    jitter: f64,
    pace: f64,
    iterations: u32,
    random: Pcg64,
    phase: Phase,
    /// From when on how many ranks held their GPUs; the first entry is the start.
    members: Vec<(Time, usize)>,
    ranks: usize,
    current: Iteration,
    compute_end: Time,
    compute_done: bool,
    comm_done: bool,
    history: Vec<Iteration>,
}

impl JobRun {
    /// A job that has not started. Compute times are drawn from (seed, job) alone, so policies see the same draws.
    #[must_use]
    pub fn new(job: &crate::workload::Job, seed: u64) -> Self {
        let nothing = Iteration {
            start: Time::ZERO,
            comm_start: Time::ZERO,
            comm_end: Time::ZERO,
            compute: Span::ZERO,
            end: Time::ZERO,
            ranks: job.ranks.len(),
        };
        Self {
            id: job.id,
            compute: job.compute,
            overlap: job.overlap.clamp(0.0, 1.0),
            jitter: job.jitter.max(0.0),
            pace: 1.0,
            iterations: job.iterations.max(1),
            random: stream(seed, "compute jitter", u64::from(job.id.0)),
            phase: Phase::Waiting,
            members: Vec::new(),
            ranks: job.ranks.len(),
            current: nothing,
            compute_end: Time::ZERO,
            compute_done: false,
            comm_done: false,
            history: Vec::new(),
        }
    }

    /// Where the job stands.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// When it ended, if it has and was not cancelled.
    #[must_use]
    pub fn finished_at(&self) -> Option<Time> {
        match self.phase {
            Phase::Finished(at) if self.history.len() >= self.iterations as usize => Some(at),
            _ => None,
        }
    }

    /// When its first iteration started.
    #[must_use]
    pub fn started(&self) -> Time {
        self.members.first().map_or(Time::ZERO, |first| first.0)
    }

    /// Rank-seconds of useful compute in all finished iterations, and rank-seconds held from the start until `end`.
    #[must_use]
    pub fn rank_seconds(&self, end: Time) -> (f64, f64) {
        let busy = self.history.iter().map(|it| it.compute.as_secs_f64() * it.ranks as f64).sum();
        let until = self.members.iter().skip(1).map(|next| next.0).chain([end]);
        let held = self.members.iter().zip(until);
        let held = held.map(|(&(from, ranks), to)| (to - from).as_secs_f64() * ranks as f64).sum();
        (busy, held)
    }

    /// The membership changed: the iteration under way is dropped, and the next one, after [`Self::start`], is computed by
    /// `ranks` ranks for `compute` each. Returns whether an iteration was under way.
    pub fn regroup(&mut self, now: Time, ranks: usize, compute: Span) -> bool {
        let lost = self.phase == Phase::Running;
        if !matches!(self.phase, Phase::Finished(_)) {
            self.phase = Phase::Waiting;
        }
        self.ranks = ranks;
        self.compute = compute;
        if !self.members.is_empty() {
            self.members.push((now, ranks));
        }
        lost
    }

    /// Whether communication of the iteration under way starts at `now`; events of a dropped iteration do not count.
    #[must_use]
    pub fn communicates_at(&self, now: Time) -> bool {
        self.phase == Phase::Running && self.current.comm_start == now
    }

    /// Finished iterations.
    #[must_use]
    pub fn history(&self) -> &[Iteration] {
        &self.history
    }

    /// From the next iteration on the slowest rank computes at `pace` of its speed (above 0, at most 1), and all wait for it.
    pub fn set_pace(&mut self, pace: f64) {
        self.pace = pace.clamp(1e-3, 1.0);
    }

    /// Ends the job where it stands; the iteration under way does not count.
    pub fn cancel(&mut self, now: Time) {
        self.phase = Phase::Finished(now);
    }

    /// Starts the first iteration.
    pub fn start(&mut self, now: Time) -> Begin {
        self.phase = Phase::Running;
        if self.members.is_empty() {
            self.members.push((now, self.ranks));
        }
        self.begin(now)
    }

    fn begin(&mut self, now: Time) -> Begin {
        let compute = Span::from_secs_f64(self.compute.as_secs_f64() * self.draw());
        let takes = Span::from_secs_f64(compute.as_secs_f64() / self.pace);
        let before = Span::from_secs_f64(takes.as_secs_f64() * (1.0 - self.overlap));
        self.current = Iteration {
            start: now,
            comm_start: now + before,
            comm_end: Time::ZERO,
            compute,
            end: Time::ZERO,
            ranks: self.ranks,
        };
        self.compute_end = now + takes;
        self.compute_done = false;
        self.comm_done = false;
        Begin { comm_at: now + before, compute_end: self.compute_end }
    }

    /// 1 + a normal deviate of the wanted spread, cut at three deviations and never below a tenth.
    fn draw(&mut self) -> f64 {
        // Twelve uniforms make a normal deviate good to three deviations, without transcendental functions whose last
        // bit could differ between platforms.
        let sum: f64 = (0..12).map(|_| self.random.random::<f64>()).sum();
        (1.0 + self.jitter * (sum - 6.0).clamp(-3.0, 3.0)).max(0.1)
    }

    /// Compute of the current iteration is done. Returns the next iteration's times if that ended this one. An end that is
    /// not due belongs to a dropped iteration and is ignored.
    pub fn compute_done(&mut self, now: Time) -> Option<Begin> {
        if now != self.compute_end {
            return None;
        }
        self.compute_done = true;
        self.turn(now)
    }

    /// The AllReduce is complete at all ranks. Returns as `compute_done`.
    pub fn comm_done(&mut self, now: Time) -> Option<Begin> {
        self.current.comm_end = now;
        self.comm_done = true;
        self.turn(now)
    }

    fn turn(&mut self, now: Time) -> Option<Begin> {
        if !(self.compute_done && self.comm_done) || self.phase != Phase::Running {
            return None;
        }
        self.history.push(Iteration { end: now, ..self.current });
        if self.history.len() >= self.iterations as usize {
            self.phase = Phase::Finished(now);
            return None;
        }
        Some(self.begin(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HostId;
    use crate::units::Bytes;
    use crate::workload::Job;

    fn job(overlap: f64, jitter: f64) -> Job {
        Job {
            id: JobId(0),
            name: "j".into(),
            model: "custom".into(),
            ranks: vec![HostId(0), HostId(1)],
            gpus_per_rank: 1,
            gradient: Bytes(1000),
            compute: Span(1000),
            overlap,
            jitter,
            iterations: 2,
            start: Span::ZERO,
            channels: 1,
        }
    }

    #[test]
    fn an_edge_sends_a_chunk_and_then_what_the_edge_before_it_delivered() {
        let coupling = Coupling { ahead: 4, buffer: 8, slice: 2 };
        assert_eq!(coupling.limit(100, 120, 100), 104);
        assert_eq!(coupling.limit(100, 120, 103), 106, "whole slices only");
        assert_eq!(coupling.limit(100, 120, 118), 120, "never past the iteration");
        assert_eq!(coupling.limit(100, 121, 121), 121, "the last slice may be short");
        assert_eq!(coupling.credit(110, 104), 112);
    }

    #[test]
    fn any_ring_comes_to_its_end_whatever_the_order_of_turns() {
        // Twin by brute force: edges move one packet at a time in random order, delivered at once.
        for seed in 0..50 {
            let mut random = stream(seed, "ring", 0);
            let n = random.random_range(2..7_usize);
            let coupling = Coupling {
                ahead: random.random_range(1..9),
                buffer: random.random_range(1..9),
                slice: 1,
            };
            let end = random.random_range(1..60_u64);
            let mut sent = vec![0_u64; n];
            let mut idle = 0;
            while sent.iter().any(|count| *count < end) {
                let edge = random.random_range(0..n);
                let before = sent[(edge + n - 1) % n];
                let after = sent[(edge + 1) % n];
                let may = coupling.limit(0, end, before).min(coupling.credit(sent[edge], after));
                if sent[edge] < may {
                    sent[edge] += 1;
                    assert!(sent[edge] <= before + coupling.ahead);
                    idle = 0;
                } else {
                    idle += 1;
                    assert!(idle < 10_000, "seed {seed} stands still at {sent:?}");
                }
            }
        }
    }

    #[test]
    fn an_iteration_ends_when_compute_and_communication_have() {
        let mut run = JobRun::new(&job(0.25, 0.0), 1);
        let begin = run.start(Time(100));
        assert_eq!(begin, Begin { comm_at: Time(850), compute_end: Time(1100) });
        assert_eq!(run.comm_done(Time(900)), None, "compute still runs");
        let second = run.compute_done(Time(1100)).expect("second iteration");
        assert_eq!(second.comm_at, Time(1850));
        run.compute_done(Time(2100));
        assert_eq!(run.comm_done(Time(5000)), None);
        assert_eq!(run.phase(), Phase::Finished(Time(5000)));
        assert_eq!(run.history().len(), 2);
    }

    #[test]
    fn jitter_has_the_wanted_spread_and_repeats_by_seed() {
        let draws = |seed| {
            let mut run = JobRun::new(&job(0.0, 0.03), seed);
            (0..4000).map(|_| run.draw()).collect::<Vec<f64>>()
        };
        let values = draws(5);
        let mean = values.iter().sum::<f64>() / 4000.0;
        let spread = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
        assert!((mean - 1.0).abs() < 0.002 && (spread - 0.03).abs() < 0.002, "{mean} {spread}");
        assert_eq!(values, draws(5));
        assert_ne!(values, draws(6));
    }
}
