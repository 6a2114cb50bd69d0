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
use crate::id::{FlowId, HostId, JobId, SwitchId};
use crate::workload::{Flow, Job};
use std::collections::BTreeSet;

impl Core {
    /// Jobs by id, each with its flows' ids.
    pub fn jobs(&self) -> impl Iterator<Item = (&Job, &[FlowId])> {
        self.jobs.values().map(|(job, flows)| (job, flows.as_slice()))
    }

    /// A flow of some job.
    #[must_use]
    pub fn flow_of_job(&self, flow: FlowId) -> Option<&Flow> {
        self.flows.get(&flow)
    }

    /// Whether everything that a job's flows need is installed.
    #[must_use]
    pub fn is_ready(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job) && !self.unready.contains(&job) && !self.forming.contains(&job)
    }

    /// Iterations of a job that its agents have reported as done.
    #[must_use]
    pub fn iterations_done(&self, job: JobId) -> u32 {
        self.done.get(&job).copied().unwrap_or(0)
    }

    /// Flows that may still be added.
    #[must_use]
    pub fn room_for_flows(&self) -> usize {
        self.config.limits.flows.saturating_sub(self.flows.len())
    }

    /// Ids that no job and no flow has: the next job's, and the first of its flows'.
    #[must_use]
    pub fn next_ids(&self) -> (JobId, FlowId) {
        let job = self.jobs.keys().next_back().map_or(0, |job| job.0 + 1);
        let last = self.flows.keys().next_back().max(self.states.keys().next_back());
        (JobId(job), FlowId(last.map_or(0, |flow| flow.0 + 1)))
    }

    /// The fabric.
    #[must_use]
    pub const fn topology(&self) -> &crate::topology::Topology {
        &self.config.topology
    }

    /// P4Runtime device id of a switch; 0 for one that the fabric does not have.
    #[must_use]
    pub fn device_id(&self, switch: SwitchId) -> u64 {
        self.config.device_ids.get(switch.index()).copied().unwrap_or(0)
    }

    /// Name of the policy in force.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

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
        if !self.failed_hosts.insert(host) {
            return;
        }
        let name = self.config.topology.node(self.config.topology.host_node(host)).name.clone();
        let cause = format!("host {name} failed");
        let hit = |entry: &(&JobId, &(Job, Vec<_>))| entry.1.0.ranks.contains(&host);
        let jobs: Vec<JobId> = self.jobs.iter().filter(hit).map(|(id, _)| *id).collect();
        for job in jobs {
            self.regroup(job, &cause);
        }
    }

    /// Takes the failed hosts out of a job.
    fn regroup(&mut self, id: JobId, cause: &str) {
        let Some((job, old)) = self.jobs.get_mut(&id) else { return };
        match elastic::shrink(job, &self.failed_hosts) {
            Ok(None) => return,
            Ok(Some(shrunk)) => *job = shrunk,
            Err(error) => {
                let reason = format!("{cause}: {error}");
                self.notify(Event::JobStopped { job: id, reason });
                self.finish(id);
                return;
            }
        }
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
            generation: self.memberships.get(&id).copied().unwrap_or_default(),
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
        let newest = self.memberships.get(&id).copied().unwrap_or_default();
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
