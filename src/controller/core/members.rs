//! Hosts fail, jobs go on without them.
//!
//! In: hosts that fail and come back, rings that agents have formed. Out: commands to agents
//! ([`Event::Regrouped`]), jobs and flows for the next plan. Must not know plans.
//!
//! Persist, then command: a job's new membership is stored before its agents hear of it, so a controller that dies in
//! between repeats the command. The old ring's flows leave at once; those of the new ring are planned when the agents have
//! formed it, and the agents resume when that plan is installed.

use super::super::messages::Event;
use super::{Core, Key};
use crate::elastic::{self, Generation};
use crate::id::{HostId, JobId};
use crate::workload::{Flow, Job};
use std::collections::BTreeSet;

impl Core {
    pub(super) fn host(&mut self, host: HostId, up: bool) {
        let hosts = self.config.topology.host_count();
        if host.index() >= hosts {
            let reason = format!("there is no host {host}; the fabric has {hosts}");
            self.notify(Event::Rejected { reason });
            return;
        }
        if up {
            self.failed_hosts.remove(&host);
            return;
        }
        let cause = format!("host {} failed", self.host_name(host));
        self.host_failed(host, &cause);
    }

    /// One host's death is one event for all its jobs.
    pub(super) fn host_failed(&mut self, host: HostId, cause: &str) {
        if !self.failed_hosts.insert(host) {
            return;
        }
        let hit = |entry: &(&JobId, &(Job, Vec<_>))| entry.1.0.ranks.contains(&host);
        let jobs: Vec<JobId> = self.jobs.iter().filter(hit).map(|(id, _)| *id).collect();
        for job in jobs {
            self.leave_out(job, &self.failed_hosts.clone(), cause);
        }
    }

    /// A job goes on without some hosts, and without ranks that are done.
    pub(super) fn leave_out(&mut self, id: JobId, gone: &BTreeSet<HostId>, cause: &str) {
        let Some((job, _)) = self.jobs.get(&id) else { return };
        let gone: BTreeSet<HostId> = gone.union(&self.have_left(id)).copied().collect();
        match elastic::shrink(job, &gone) {
            Ok(None) => {}
            Ok(Some(shrunk)) => self.new_ring(id, shrunk, cause),
            Err(error) => self.stop_job(id, format!("{cause}: {error}")),
        }
    }

    /// A job's ranks, less those that are done, form their ring anew.
    pub(super) fn form_again(&mut self, id: JobId, cause: &str) {
        let Some((job, _)) = self.jobs.get(&id) else { return };
        match elastic::shrink(job, &self.have_left(id)) {
            Ok(shrunk) => self.new_ring(id, shrunk.unwrap_or_else(|| job.clone()), cause),
            Err(error) => self.stop_job(id, format!("{cause}: {error}")),
        }
    }

    fn new_ring(&mut self, id: JobId, job: Job, cause: &str) {
        let ports = self.fresh_ports(&job);
        if self.first_ports.contains_key(&id) && ports.is_none() {
            return self.stop_job(id, format!("{cause}: no TCP ports are left for its new ring"));
        }
        self.first_ports.extend(ports.map(|port| (id, port)));
        let Some((spec, old)) = self.jobs.get_mut(&id) else { return };
        *spec = job;
        for flow in std::mem::take(old) {
            self.flows.remove(&flow);
            self.goals.remove(&flow);
            self.leave(flow);
        }
        let generation = self.memberships.entry(id).or_default();
        *generation = generation.next();
        self.forming.insert(id);
        self.unready.remove(&id);
        self.dirty.extend([Key::Job(id), Key::Target]);
        self.replan = true;
        self.ask_for_ring(id, cause);
        self.expect_ring(id);
    }

    /// After a restart: commands that may not have reached the agents are given again.
    pub(super) fn ask_for_rings(&mut self) {
        for job in self.forming.clone() {
            self.ask_for_ring(job, "the controller restarted");
        }
    }

    fn ask_for_ring(&mut self, id: JobId, cause: &str) {
        let Some((job, _)) = self.jobs.get(&id) else { return };
        let event = Event::Regrouped {
            job: id,
            generation: self.generation_of(id),
            ranks: job.ranks.clone(),
            compute: job.compute,
            from: self.done.get(&id).copied().unwrap_or(0),
            cause: cause.to_owned(),
        };
        self.notify(event);
    }

    pub(super) fn joined(&mut self, id: JobId, generation: Generation, flows: Vec<Flow>) {
        if let Err(reason) = self.check_joined(id, generation, &flows) {
            self.notify(Event::Rejected { reason });
            return;
        }
        if let Some((_, own)) = self.jobs.get_mut(&id) {
            own.extend(flows.iter().map(|flow| flow.id));
        }
        self.flows.extend(flows.into_iter().map(|flow| (flow.id, flow)));
        self.forming.remove(&id);
        self.unready.insert(id);
        self.dirty.insert(Key::Job(id));
        self.replan = true;
        let generation = self.generation + 1;
        self.notify(Event::JobAccepted { job: id, generation });
    }

    fn check_joined(
        &self,
        id: JobId,
        generation: Generation,
        flows: &[Flow],
    ) -> Result<(), String> {
        let Some((job, _)) = self.jobs.get(&id) else {
            return Err(format!("there is no job {id}; its agents may stop"));
        };
        let newest = self.generation_of(id);
        if generation != newest {
            return Err(format!(
                "job {id} is at membership {newest}, a ring of membership {generation} came; form the newest"
            ));
        }
        if !self.forming.contains(&id) {
            return Err(format!("job {id} has its ring of membership {newest} already"));
        }
        let ends: BTreeSet<HostId> = flows.iter().flat_map(|flow| [flow.src, flow.dst]).collect();
        let alone = job.ranks.len() == 1 && flows.is_empty();
        if !alone && ends != job.ranks.iter().copied().collect() {
            return Err(format!(
                "the ring of job {id} joins other hosts than membership {newest} has"
            ));
        }
        self.check_flows(id, flows)
    }
}
