//! What jobs do: compute, hand their gradients to the transport, wait for each other.

use super::{Net, Setup};
use crate::id::{FlowId, HostId, JobId};
use crate::sim::SimError;
use crate::sim::packet::{Forwarder, NetEvent};
use crate::sim::queue::Queue;
use crate::sim::ring::{Begin, Phase};
use crate::time::{Span, Time};

impl<F: Forwarder> Net<F> {
    /// Starts a job's first iteration.
    pub fn start_job<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, job: JobId) {
        if self.jobs[job.index()].run.phase() != Phase::Waiting {
            return; // cancelled before it started
        }
        let begin = self.jobs[job.index()].run.start(now);
        Self::begin(queue, job.0, begin);
    }

    /// Queue of a flow's data at its sending interface: the host's side of the plan. Unknown flows are ignored.
    pub fn set_class(&mut self, flow: FlowId, class: u8) {
        if let Some(state) = self.flows.get_mut(flow.index()) {
            state.class = class;
        }
    }

    /// From its next iteration on, a job waits for a host that computes at `pace` of its speed (1: full speed again).
    pub fn set_host_pace(&mut self, host: HostId, pace: f64) {
        self.hosts[host.index()].pace = pace;
        for job in &mut self.jobs {
            if job.ranks.contains(&host) {
                let paces = job.ranks.iter().map(|rank| self.hosts[rank.index()].pace);
                job.run.set_pace(paces.fold(1.0, f64::min));
            }
        }
    }

    /// A host's interface falls silent for good. Rings through it stand still until somebody regroups or cancels the jobs.
    pub fn fail_host(&mut self, host: HostId) {
        self.hosts[host.index()].failed = true;
    }

    /// A job goes on with another membership: what it was sending is dropped, its new ring is `flows` (numbered after all
    /// flows so far), and its next iteration begins with [`Self::start_job`]. `setup` holds the new job in its place.
    /// Returns whether an iteration was under way.
    ///
    /// # Errors
    /// As [`Net::new`]; nothing is changed then.
    pub fn regroup_job(
        &mut self,
        now: Time,
        job: JobId,
        setup: &Setup<'_>,
    ) -> Result<bool, SimError> {
        let Some(spec) = setup.jobs.get(job.index()) else { return Ok(false) };
        self.append_flows(setup)?;
        for &flow in &self.jobs[job.index()].flows {
            let state = &mut self.flows[flow as usize];
            state.sender.stop();
            state.retired = true;
        }
        let paces = spec.ranks.iter().map(|rank| self.hosts[rank.index()].pace);
        let pace = paces.fold(1.0, f64::min);
        let state = &mut self.jobs[job.index()];
        state.flows = setup.flows.iter().map(|flow| flow.id.0).collect();
        state.ranks.clone_from(&spec.ranks);
        state.open = 0;
        state.run.set_pace(pace);
        Ok(state.run.regroup(now, spec.ranks.len(), spec.compute))
    }

    /// Ends a job where it stands; packets under way still arrive. Returns whether it was not finished before.
    pub fn cancel_job(&mut self, now: Time, job: JobId) -> bool {
        let state = &mut self.jobs[job.index()];
        if matches!(state.run.phase(), Phase::Finished(_)) {
            return false;
        }
        state.run.cancel(now);
        for flow in &state.flows {
            let state = &mut self.flows[*flow as usize];
            state.sender.stop();
        }
        true
    }

    fn begin<E: From<NetEvent>>(queue: &mut Queue<E>, job: u32, begin: Begin) {
        queue.push(begin.comm_at, NetEvent::CommStart(job).into());
        queue.push(begin.compute_end, NetEvent::ComputeEnd(job).into());
    }

    pub(super) fn compute_end<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        job: u32,
    ) {
        let next = self.jobs[job as usize].run.compute_done(now);
        self.turn(queue, job, next);
    }

    /// Jobs that have finished an iteration since the last call, in the order in which they did; a job that is over is
    /// among [`Self::take_finished`] instead.
    pub fn take_iterated(&mut self) -> Vec<JobId> {
        std::mem::take(&mut self.iterated)
    }

    /// Finished iterations of a job and what each of its ranks computed in the last one, as their agents measure it.
    #[must_use]
    pub fn report(&self, job: JobId) -> (u32, Vec<Span>) {
        let state = &self.jobs[job.index()];
        let history = state.run.history();
        let compute = history.last().map(|last| last.compute).unwrap_or_default();
        let pace = |rank: &HostId| self.hosts[rank.index()].pace;
        let took = |rank| Span::from_secs_f64(compute.as_secs_f64() / pace(rank));
        (history.len() as u32, state.ranks.iter().map(took).collect())
    }

    /// Mean seconds from the start of an iteration's communication until a flow's bytes of it had all arrived, from the second
    /// iteration on; `None` if there was none.
    #[must_use]
    pub fn flow_seconds(&self, flow: FlowId) -> Option<f64> {
        let state = self.flows.get(flow.index())?;
        let count = f64::from(state.completed);
        (state.completed > 0).then(|| state.took.as_secs_f64() / count)
    }

    fn turn<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, job: u32, next: Option<Begin>) {
        match next {
            Some(begin) => {
                self.iterated.push(JobId(job));
                Self::begin(queue, job, begin);
            }
            None => {
                let run = &self.jobs[job as usize].run;
                if matches!(run.phase(), Phase::Finished(at) if at == queue.now())
                    && !self.finished.contains(&run.id)
                {
                    self.finished.push(run.id);
                }
            }
        }
    }

    /// All ranks hand their gradients to the transport.
    pub(super) fn comm_start<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        job: u32,
    ) {
        if !self.jobs[job as usize].run.communicates_at(now) {
            return; // cancelled or regrouped meanwhile
        }
        let flows = std::mem::take(&mut self.jobs[job as usize].flows);
        self.jobs[job as usize].open = flows.len() as u32;
        for &flow in &flows {
            let state = &mut self.flows[flow as usize];
            state.begun = now;
            state.base = state.end;
            state.end += state.packets;
            let (base, end) = (state.base, state.end);
            state.sender.allow(self.coupling.limit(base, end, base));
            // The buffers are empty at both ends, and both ends know it.
            state.sender.grant(base + self.coupling.buffer);
            state.receiver.assume_advertised(base + self.coupling.buffer);
        }
        for &flow in &flows {
            self.activate(queue, now, flow);
        }
        let silent = flows.is_empty();
        self.jobs[job as usize].flows = flows;
        if silent {
            let next = self.jobs[job as usize].run.comm_done(now);
            self.turn(queue, job, next);
        }
    }

    /// A flow's data is complete up to `expected`: the next edge may go on, and the iteration may be over.
    pub(super) fn progress<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        flow: u32,
        expected: u64,
    ) {
        let state = &self.flows[flow as usize];
        if state.retired {
            return;
        }
        let (after, job, complete) = (state.after, state.job, expected == state.end);
        let limit = self.coupling.limit(state.base, state.end, expected);
        self.flows[after as usize].sender.allow(limit);
        self.activate(queue, now, after);
        if complete && self.jobs[job as usize].run.phase() == Phase::Running {
            let state = &mut self.flows[flow as usize];
            // The first iteration starts into a settling fabric, as in the jobs' own figures.
            if state.base > 0 {
                state.took = Span(state.took.0 + (now - state.begun).0);
                state.completed += 1;
            }
            let state = &mut self.jobs[job as usize];
            state.open -= 1;
            if state.open == 0 {
                let next = state.run.comm_done(now);
                self.turn(queue, job, next);
            }
        }
    }
}
