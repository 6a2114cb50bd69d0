//! What the agents of a job do when a host fails: stop, form the ring that the controller asks for, go on.
//!
//! In: failures, the controller's command. Out: new flows in the network, the answer to the controller, a record of what it cost. Must not
//! know how the controller chose the membership.

use super::{Step, World, WorldError};
use crate::controller::messages::Event as Notice;
use crate::elastic::Generation;
use crate::id::{FlowId, HostId, JobId};
use crate::sim::packet::net::Setup;
use crate::sim::wire::Wire;
use crate::sim::world::control::Waiting;
use crate::time::Time;
use crate::workload::{Flow, Job, ring_flows};
use std::collections::BTreeMap;

/// One change of a job's membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regrouped {
    /// The job.
    pub job: JobId,
    /// Its new membership.
    pub generation: Generation,
    /// Why.
    pub cause: String,
    /// When the first of its hosts failed.
    pub failed_at: Time,
    /// When the controller gave the command.
    pub told_at: Time,
    /// When the first iteration of the new membership began; `None` if it has not.
    pub resumed_at: Option<Time>,
    /// Iterations that were under way and are done anew.
    pub iterations_lost: u32,
    /// First flow of the new ring.
    first: FlowId,
}

/// What failures did so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    failed: BTreeMap<HostId, Time>,
    changes: Vec<Regrouped>,
}

impl<W: Wire> World<W> {
    /// Changes of memberships, in the order of the commands.
    #[must_use]
    pub fn regrouped(&self) -> &[Regrouped] {
        &self.regrouped.changes
    }

    /// A host falls silent. Its jobs stand still; the controller hears of it when heartbeats are missing.
    pub(super) fn fail(&mut self, now: Time, host: HostId) {
        if self.regrouped.failed.insert(host, now).is_some() {
            return;
        }
        self.net.fail_host(host);
        let at = now + self.script.host_notice;
        self.push(at, Waiting::Script(Step::HostNotice { host, up: false }));
    }

    /// A job's traffic starts, unless the plan that it waits for is another by now.
    pub(super) fn start(&mut self, now: Time, job: JobId) {
        if self.progress.waiting.iter().any(|(waiting, _)| *waiting == job) {
            return;
        }
        self.net.start_job(&mut self.queue, now, job);
        let open = |change: &&mut Regrouped| change.job == job && change.resumed_at.is_none();
        if let Some(change) = self.regrouped.changes.iter_mut().rev().find(open) {
            change.resumed_at = Some(now);
        }
    }

    /// The agents carry out a change of membership and answer when the new ring stands.
    pub(super) fn regroup(&mut self, now: Time, command: &Notice) -> Result<(), WorldError> {
        let Notice::Regrouped { job, generation, ranks, compute, cause, .. } = command else {
            return Ok(());
        };
        let (job, generation) = (*job, *generation);
        let at = now + self.script.rejoin + self.delay();
        let known = self
            .regrouped
            .changes
            .iter()
            .any(|change| change.job == job && change.generation == generation);
        if known {
            // The command came again: the ring stands or is being formed.
            self.push(at, Waiting::Joined { job, generation });
            return Ok(());
        }
        let Some(spec) = self.jobs.get_mut(job.index()) else { return Ok(()) };
        let gone: Vec<HostId> =
            spec.ranks.iter().copied().filter(|host| !ranks.contains(host)).collect();
        *spec = Job { ranks: ranks.clone(), compute: *compute, ..spec.clone() };
        let first = FlowId::from(self.flows.len());
        // A single survivor needs no ring.
        let flows = match ranks.len() {
            1 => Ok(Vec::new()),
            _ => ring_flows(&self.topology, spec, first),
        };
        let flows = flows.map_err(|error| self.broken(job, error.to_string()))?;
        let setup = Setup {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &flows,
            scale: &self.scale,
            recovery: self.recovery,
            seed: self.seed,
        };
        let lost = self.net.regroup_job(now, job, &setup);
        let lost = lost.map_err(|error| self.broken(job, error.to_string()))?;
        self.flows.extend(flows);
        let failed = gone.iter().filter_map(|host| self.regrouped.failed.get(host)).min();
        self.regrouped.changes.push(Regrouped {
            job,
            generation,
            cause: cause.clone(),
            failed_at: failed.copied().unwrap_or(now),
            told_at: now,
            resumed_at: None,
            iterations_lost: u32::from(lost),
            first,
        });
        self.progress.waiting.retain(|(waiting, _)| *waiting != job);
        self.progress.waiting.push((job, false));
        self.push(at, Waiting::Joined { job, generation });
        Ok(())
    }

    fn broken(&self, job: JobId, reason: String) -> WorldError {
        let job = self.jobs.get(job.index()).map_or("?", |job| job.name.as_str()).to_owned();
        WorldError::JobRefused { job, reason }
    }

    /// Whether a flow belongs to a membership of a job.
    pub(super) fn is_member(&self, flow: &Flow, generation: Generation, job: JobId) -> bool {
        let own = self.regrouped.changes.iter().filter(|change| change.job == job);
        let begin = |at: Generation| own.clone().find(|change| change.generation == at);
        let after = own.clone().find(|change| change.generation > generation);
        flow.job == job
            && begin(generation).is_some_and(|change| flow.id >= change.first)
            && after.is_none_or(|change| flow.id < change.first)
    }

    /// The controller has given a job up.
    pub(super) fn stopped(&mut self, now: Time, job: JobId) {
        self.progress.waiting.retain(|(waiting, _)| *waiting != job);
        if self.net.cancel_job(now, job) {
            self.progress.open = self.progress.open.saturating_sub(1);
        }
    }
}
