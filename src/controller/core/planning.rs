//! Jobs come and go, and every flow gets a goal.
//!
//! In: jobs, departures, policy changes. Out: a plan, checked, as goals; the target in the store. Must not write entries.
//!
//! Policies want dense ids and at least one path per flow: the problem handed to them holds the jobs all of whose
//! flows have a live path, renumbered. A ring with one edge cut makes no progress, so the other edges of such a job
//! stay where they are.

use super::super::messages::Event;
use super::super::rollout::{Goal, Route};
use super::{Core, Key};
use crate::id::{FlowId, JobId, SwitchId};
use crate::p4runtime::rpc::Code;
use crate::pipeline::EntityKey;
use crate::pipeline::labels::LabelError;
use crate::plan::{Assignment, CONTROL_QUEUE, Plan};
use crate::solver::{Effort, InForce, Problem};
use crate::topology::{LinkState, Path, Topology};
use crate::workload::{Flow, Job};
use std::collections::{BTreeMap, BTreeSet};

/// The part of the jobs that can be planned, renumbered.
pub(super) struct Part {
    topology: Topology,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    pub(super) paths: Vec<Vec<Path>>,
    /// Finished iterations.
    done: Vec<u32>,
    /// What the plan in force says.
    routes: Vec<Option<(Path, u8)>>,
    /// The real id of each dense flow id.
    pub(super) ids: Vec<FlowId>,
    unroutable: usize,
}

impl Part {
    /// As policies see it.
    pub(super) fn problem(&self, levels: u8) -> Problem<'_> {
        Problem {
            topology: &self.topology,
            jobs: &self.jobs,
            flows: &self.flows,
            paths: &self.paths,
            levels,
            in_force: InForce { done: &self.done, routes: &self.routes },
        }
    }
}

/// IP protocol number.
const TCP: u8 = 6;

impl Core {
    pub(super) fn submit(&mut self, jobs: Vec<(Job, Vec<Flow>)>) {
        let mut accepted = Vec::new();
        for (job, flows) in jobs {
            match self.check_job(&job, &flows) {
                Err(reason) => self.notify(Event::JobRefused { job: job.id, reason }),
                Ok(()) => {
                    accepted.push(job.id);
                    self.unready.insert(job.id);
                    self.dirty.insert(Key::Job(job.id));
                    self.first_ports.extend(first_port(&flows).map(|port| (job.id, port)));
                    self.jobs.insert(job.id, (job, flows.iter().map(|flow| flow.id).collect()));
                    self.flows.extend(flows.into_iter().map(|flow| (flow.id, flow)));
                }
            }
        }
        if accepted.is_empty() {
            return;
        }
        self.replan = true;
        let generation = self.generation + 1;
        for job in accepted {
            self.notify(Event::JobAccepted { job, generation });
        }
    }

    fn check_job(&self, job: &Job, flows: &[Flow]) -> Result<(), String> {
        let limits = &self.config.limits;
        if self.jobs.contains_key(&job.id) {
            return Err(format!("there is a job {} already; take another id", job.id));
        }
        if self.jobs.len() >= limits.jobs {
            return Err(format!(
                "{} jobs are running, the limit is {}",
                self.jobs.len(),
                limits.jobs
            ));
        }
        if let Some(host) = job.ranks.iter().find(|host| self.failed_hosts.contains(host)) {
            return Err(format!("host {host} has failed; choose another"));
        }
        self.check_flows(job.id, flows)
    }

    /// Whether flows may join those that are there.
    pub(super) fn check_flows(&self, job: JobId, flows: &[Flow]) -> Result<(), String> {
        let limits = &self.config.limits;
        if self.flows.len() + flows.len() > limits.flows {
            let total = self.flows.len() + flows.len();
            return Err(format!("there would be {total} flows, the limit is {}", limits.flows));
        }
        let keys = |flow: &Flow| [flow.key, flow.reverse];
        let mut used: BTreeSet<_> = self.flows.values().flat_map(keys).collect();
        let mut ids = BTreeSet::new();
        let hosts = self.config.topology.host_count();
        for flow in flows {
            let id = flow.id;
            if flow.job != job {
                return Err(format!("flow {id} belongs to job {}, not to {job}", flow.job));
            }
            // A leaving flow keeps its id and slots until its entries are gone.
            let taken = self.flows.contains_key(&id) || self.states.contains_key(&id);
            if taken || !ids.insert(id) {
                return Err(format!("there is a flow {id} already; take another id"));
            }
            if flow.src == flow.dst || flow.src.index().max(flow.dst.index()) >= hosts {
                return Err(format!("flow {id} does not join two hosts of the topology"));
            }
            if !keys(flow).iter().all(|key| used.insert(*key)) {
                return Err(format!(
                    "flow {id} has the addresses, ports and queue pair of another"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, job: JobId) {
        let Some((_, flows)) = self.jobs.remove(&job) else {
            let reason = format!("there is no job {job}; nothing was changed");
            self.notify(Event::Rejected { reason });
            return;
        };
        self.done.remove(&job);
        self.forget_job(job);
        self.memberships.remove(&job);
        self.first_ports.remove(&job);
        self.ranks.forget(job);
        self.forming.remove(&job);
        self.unready.remove(&job);
        self.dirty.extend([Key::Job(job), Key::Target]);
        for flow in flows {
            self.flows.remove(&flow);
            self.goals.remove(&flow);
            self.leave(flow);
        }
        self.replan = true;
        self.notify(Event::JobRemoved { job });
    }

    /// Agents know how far a job is. Reports may come late or twice: the largest counts.
    pub(super) fn progressed(&mut self, job: JobId, iterations: u32) {
        if self.jobs.contains_key(&job) {
            let done = self.done.entry(job).or_default();
            *done = iterations.max(*done);
        }
    }

    pub(super) fn set_policy(&mut self, policy: String) {
        if self.config.policies.iter().any(|known| known.name() == policy) {
            self.replan |= self.policy != policy;
            self.policy = policy;
            return;
        }
        let known = self.policies().collect::<Vec<_>>().join(", ");
        let reason = format!("there is no policy '{policy}'; choose one of: {known}");
        self.notify(Event::Rejected { reason });
    }

    /// Plans all jobs anew. The target is stored before anything of it is written.
    pub(super) fn plan(&mut self) {
        self.replan = false;
        let part = self.part();
        let policies = self.config.policies.iter();
        let Some(policy) = policies.clone().find(|policy| policy.name() == self.policy) else {
            return;
        };
        let problem = part.problem(self.config.planning.levels);
        let effort = Effort {
            seed: self.config.seed,
            max_evaluations: self.config.planning.max_evaluations,
            stop: &|| false,
            objective: self.config.planning.objective,
            phases: self.config.planning.phases,
        };
        let plan = if part.flows.is_empty() {
            Plan { generation: 0, policy: self.policy.clone(), assignments: Vec::new() }
        } else {
            policy.plan(&problem, &effort)
        };
        match self.goals_of(&part, &plan) {
            Ok(goals) => self.adopt_goals(goals, part.unroutable),
            Err(reason) => self.notify(Event::Rejected { reason }),
        }
    }

    pub(super) fn part(&self) -> Part {
        let topology = &self.config.topology;
        let factor = self.watch.feedback.factors();
        let state = LinkState { failed: self.ground.failed.clone(), factor };
        let mut part = Part {
            topology: state.apply(topology),
            jobs: Vec::new(),
            flows: Vec::new(),
            paths: Vec::new(),
            done: Vec::new(),
            routes: Vec::new(),
            ids: Vec::new(),
            unroutable: 0,
        };
        for (job, ids) in self.jobs.values() {
            let flows: Vec<&Flow> = ids.iter().filter_map(|id| self.flows.get(id)).collect();
            let paths: Vec<Vec<Path>> = flows.iter().map(|flow| self.candidates(flow)).collect();
            if paths.iter().any(Vec::is_empty) {
                part.unroutable += flows.len();
                continue;
            }
            let dense = JobId::from(part.jobs.len());
            part.done.push(self.done.get(&job.id).copied().unwrap_or(0));
            part.jobs.push(Job { id: dense, ..job.clone() });
            for (flow, paths) in flows.into_iter().zip(paths) {
                let id = FlowId::from(part.flows.len());
                let goal = self.goals.get(&flow.id);
                let route = |goal: &Goal| (goal.path.clone(), self.planned_queue(flow.id, goal));
                part.routes.push(goal.map(route));
                part.ids.push(flow.id);
                part.flows.push(Flow { id, job: dense, ..flow.clone() });
                part.paths.push(paths);
            }
        }
        part
    }

    /// Live candidate paths of a flow whose answers have a live way back as well.
    fn candidates(&self, flow: &Flow) -> Vec<Path> {
        let topology = &self.config.topology;
        let excluded = |leaf: SwitchId| self.switches[leaf.index()].excluded;
        if excluded(topology.leaf_of(flow.src)) || excluded(topology.leaf_of(flow.dst)) {
            return Vec::new();
        }
        if self.way_back(flow, None).is_none() {
            return Vec::new();
        }
        let paths = self.ground.paths.candidates(topology, flow.src, flow.dst);
        paths.into_iter().filter(|path| self.live(path)).collect()
    }

    /// The path of a flow's answers: on the same tree if that is live, else on the first that is.
    fn way_back(&self, flow: &Flow, path: Option<&Path>) -> Option<Path> {
        let topology = &self.config.topology;
        let paths = self.ground.paths.candidates(topology, flow.dst, flow.src);
        let mut live: Vec<Path> = paths.into_iter().filter(|path| self.live(path)).collect();
        let same = path.and_then(|path| live.iter().position(|back| back.tree == path.tree));
        (!live.is_empty()).then(|| live.swap_remove(same.unwrap_or(0)))
    }

    /// Checks a policy's answer and turns it into goals.
    fn goals_of(&self, part: &Part, plan: &Plan) -> Result<BTreeMap<FlowId, Goal>, String> {
        let (given, wanted) = (plan.assignments.len(), part.flows.len());
        if given != wanted {
            let policy = &plan.policy;
            return Err(format!(
                "policy '{policy}' placed {given} of {wanted} flows; the old plan stays"
            ));
        }
        let mut goals = BTreeMap::new();
        for (place, assignment) in plan.assignments.iter().enumerate() {
            let id = part.ids[place];
            let known = assignment.flow.index() == place
                && assignment.queue < self.config.planning.levels
                && part.paths[place].contains(&assignment.path);
            if !known {
                let policy = &plan.policy;
                return Err(format!(
                    "policy '{policy}' gave flow {id} no candidate path or a queue beyond its levels; the old plan stays"
                ));
            }
            let goal = self.goal(id, assignment).map_err(|error| error.to_string())?;
            goals.extend(goal.map(|goal| (id, goal)));
        }
        Ok(goals)
    }

    pub(super) fn goal(
        &self,
        id: FlowId,
        assignment: &Assignment,
    ) -> Result<Option<Goal>, LabelError> {
        let topology = &self.config.topology;
        let flow = self.flows.get(&id);
        let back = flow.and_then(|flow| self.way_back(flow, Some(&assignment.path)));
        let Some(back) = back else { return Ok(None) };
        let labels = &self.ground.labels;
        let forward = labels.of_path(topology, &assignment.path)?;
        let reverse = labels.of_path(topology, &back)?;
        Ok(Some(Goal {
            forward: Route { label: forward, queue: assignment.queue },
            reverse: Route { label: reverse, queue: CONTROL_QUEUE },
            path: assignment.path.clone(),
            reason: assignment.reason.clone(),
        }))
    }

    fn adopt_goals(&mut self, goals: BTreeMap<FlowId, Goal>, unroutable: usize) {
        let reached = |(id, goal): &(&FlowId, &Goal)| {
            self.states.get(id).is_some_and(|state| state.reached(goal))
        };
        let changed = goals.iter().filter(|goal| !reached(goal)).count();
        self.generation += 1;
        self.watch.replanned();
        self.unsettled.extend(goals.keys());
        self.goals = goals;
        self.dirty.extend([Key::Target, Key::Feedback]);
        // A new plan may try again what a switch refused under the old one.
        let classify = self.config.program.classify.id();
        let of_flow =
            |key: &EntityKey| matches!(key, EntityKey::Entry { table, .. } if *table == classify);
        for switch in &mut self.switches {
            switch.refused.retain(|key, _| !of_flow(key));
        }
        self.notify(Event::Planned {
            generation: self.generation,
            policy: self.policy.clone(),
            flows: self.goals.len(),
            changed,
            unroutable,
        });
    }

    /// A flow's entry was refused for good: what is in force becomes the goal until the next plan.
    pub(super) fn give_up_goal(&mut self, flow: FlowId, code: Code) {
        let Some(state) = self.states.get(&flow) else { return };
        if let Some(goal) = self.goals.get_mut(&flow) {
            goal.forward = state.leg(super::Side::Forward).now;
            goal.reverse = state.leg(super::Side::Reverse).now;
            goal.reason = format!("kept: the switch refused the change ({code})");
            self.dirty.insert(Key::Target);
        }
    }
}

/// Port of the first edge of a ring, if it is over TCP: edges are numbered from there.
fn first_port(flows: &[Flow]) -> Option<u16> {
    let tcp = |flow: &Flow| if flow.key.protocol == TCP { flow.key.dst_port } else { None };
    flows.first().and_then(tcp)
}
