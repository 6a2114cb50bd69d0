//! What happens during a run by the scenario's will: arrivals, failures, changes of plan.

use super::{World, WorldError};
use crate::controller::messages::Input;
use crate::id::{HostId, JobId, LinkId, SwitchId};
use crate::sim::packet::net::Offer;
use crate::sim::wire::Wire;
use crate::sim::world::control::Waiting;
use crate::time::{Span, Time};
use crate::units::BitRate;

/// One thing that happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A job's traffic starts (its plan is installed).
    Start(JobId),
    /// A job is submitted.
    Submit(JobId),
    /// A job is cancelled.
    Cancel(JobId),
    /// Both directions of a cable go up or down, at the rate that they have.
    Cable {
        /// Either direction.
        link: LinkId,
        /// Whether it carries anything.
        up: bool,
    },
    /// Both directions of a cable run at a share of the nominal rate; a cable that is down stays down.
    CableRate {
        /// Either direction.
        link: LinkId,
        /// Share of the nominal rate.
        share: f64,
    },
    /// The controller hears of a link.
    LinkNotice {
        /// The direction.
        link: LinkId,
        /// Whether it is up.
        up: bool,
    },
    /// The controller plans with another policy.
    Policy(String),
    /// The controller plans again.
    Replan,
    /// So many flows get another candidate path and queue.
    Move(u32),
    /// The controller reads a switch in full and reconciles.
    Resync(SwitchId),
    /// A host computes at a share of its speed.
    Pace(HostId, f64),
    /// A host falls silent.
    Fail(HostId),
    /// The controller hears of a host.
    HostNotice {
        /// The host.
        host: HostId,
        /// Whether it is there.
        up: bool,
    },
    /// Traffic of no job starts.
    Background {
        /// Sender.
        from: HostId,
        /// Receiver.
        to: HostId,
        /// Offered rate, already scaled.
        rate: BitRate,
        /// For how long.
        lasts: Span,
    },
}

/// Everything that happens, and how the run ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Jobs submitted at the start; the first plan contains them all.
    pub initial: Vec<JobId>,
    /// Steps by time after the first plan was installed.
    pub steps: Vec<(Span, Step)>,
    /// How long after a link's change the controller hears of it (port events of the switches).
    pub link_notice: Span,
    /// How long after a host's failure the controller hears of it: three heartbeats of its agent, 100 ms apart.
    pub host_notice: Span,
    /// How long the surviving workers of a job take to form a new ring. They keep their processes; a process group that is
    /// made anew takes about half a second.
    pub rejoin: Span,
    /// Whether the controller hears of jobs that finish.
    pub report_finished: bool,
    /// How long the run may go on after the last job, for packets still in flight.
    pub linger: Span,
    /// Whether it goes on that long in any case, to see what the controller does.
    pub wait_linger: bool,
    /// Milliseconds since 1970 that the controller is told at boot.
    pub wall_ms: u64,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            initial: Vec::new(),
            steps: Vec::new(),
            link_notice: Span::from_millis(1),
            host_notice: Span::from_millis(300),
            rejoin: Span::from_millis(500),
            report_finished: true,
            linger: Span::from_millis(10_000),
            wait_linger: false,
            // Any fixed instant; this one is the first of January 2026.
            wall_ms: 1_767_225_600_000,
        }
    }
}

/// Steps kept for the report: every scenario file has fewer events, and a world driven step by step must not grow for ever.
pub const MAX_STEPS_KEPT: usize = 100_000;

impl<W: Wire> World<W> {
    /// Adds a step to the script while the world runs.
    pub fn schedule(&mut self, at: Time, step: Step) {
        self.push(at, Waiting::Script(step));
    }

    /// Hands jobs to the controller, planned together; their traffic waits for the plan.
    pub(super) fn submit(&mut self, jobs: &[JobId]) -> Result<(), WorldError> {
        let mut batch = Vec::with_capacity(jobs.len());
        for job in jobs {
            let Some(spec) = self.jobs.get(job.index()).cloned() else { continue };
            let flows = self.flows.iter().filter(|flow| flow.job == *job).cloned().collect();
            self.progress.submitted += 1;
            self.progress.waiting.push((*job, false));
            batch.push((spec, flows));
        }
        self.step_core(Input::SubmitJobs(batch))
    }

    pub(super) fn accepted(&mut self) {
        self.progress.submitted = self.progress.submitted.saturating_sub(1);
    }

    /// A job's paths are installed: it may start, once the clock of the jobs runs.
    pub(super) fn ready(&mut self, now: Time, job: JobId) {
        for (waiting, ready) in &mut self.progress.waiting {
            *ready |= *waiting == job;
        }
        self.start_ready(now);
    }

    /// A plan is in force. The first one that serves all initial jobs starts the clock of the jobs and of the script.
    pub(super) fn installed(&mut self, now: Time, generation: u64) {
        self.progress.installed = Some(generation);
        let all = self.progress.waiting.iter().all(|(_, ready)| *ready);
        if self.progress.origin.is_none() && self.progress.submitted == 0 && all {
            self.progress.origin = Some(now);
            if let Some(trace) = self.net.trace_mut() {
                trace.load.start(now);
            }
            for (after, step) in self.script.steps.clone() {
                self.push(now + after, Waiting::Script(step));
            }
        }
        self.start_ready(now);
    }

    fn start_ready(&mut self, now: Time) {
        let Some(origin) = self.progress.origin else { return };
        let waiting = std::mem::take(&mut self.progress.waiting);
        for (job, ready) in waiting {
            if ready {
                let start = self.jobs.get(job.index()).map_or(Span::ZERO, |job| job.start);
                self.push((origin + start).max(now), Waiting::Script(Step::Start(job)));
            } else {
                self.progress.waiting.push((job, false));
            }
        }
    }

    pub(super) fn scripted(&mut self, now: Time, step: Step) -> Result<(), WorldError> {
        if self.steps.len() < MAX_STEPS_KEPT {
            self.steps.push((now, step.clone()));
        }
        match step {
            Step::Start(job) => self.start(now, job),
            Step::Submit(job) => self.submit(&[job])?,
            Step::Cancel(job) => {
                self.progress.waiting.retain(|(waiting, _)| *waiting != job);
                if self.net.cancel_job(now, job) {
                    self.cancelled(job)?;
                }
            }
            Step::Cable { link, up } => self.cable(now, link, (Some(up), None)),
            Step::CableRate { link, share } => self.cable(now, link, (None, Some(share))),
            Step::Policy(policy) => self.step_core(Input::SetPolicy { policy })?,
            Step::Replan => self.step_core(Input::Replan)?,
            Step::Move(flows) => {
                self.shuffle.iter().for_each(|policy| policy.order(flows));
                self.step_core(Input::Replan)?;
            }
            Step::Resync(switch) => self.step_core(Input::Resync { switch })?,
            Step::Pace(host, pace) => self.net.set_host_pace(host, pace),
            Step::Fail(host) => self.fail(now, host),
            Step::HostNotice { host, up } => self.step_core(Input::Host { host, up })?,
            Step::Background { from, to, rate, lasts } => {
                let macs = (self.topology.host_mac(from), self.topology.host_mac(to));
                let offer = Offer { from, to, rate, until: now + lasts };
                self.net.start_background(&mut self.queue, now, &offer, macs);
            }
            Step::LinkNotice { link, up } => self.step_core(Input::Link { link, up })?,
        }
        Ok(())
    }

    pub(super) fn cancelled(&mut self, job: JobId) -> Result<(), WorldError> {
        self.progress.open = self.progress.open.saturating_sub(1);
        self.step_core(Input::JobFinished { job })
    }

    /// Both directions change at once, in what is given; the controller hears of either when a port event has travelled.
    pub(super) fn cable(
        &mut self,
        now: Time,
        link: LinkId,
        (up, share): (Option<bool>, Option<f64>),
    ) {
        for link in [link, self.topology.reverse(link)] {
            let state = self.net.link(link);
            let was = state.up;
            let up = up.unwrap_or(was);
            let share = share.unwrap_or(state.rate.0 as f64 / state.nominal.0.max(1) as f64);
            self.net.set_link(&mut self.queue, now, link, (up, share));
            if was != up {
                let at = now + self.script.link_notice;
                self.push(at, Waiting::Script(Step::LinkNotice { link, up }));
            }
        }
    }
}
