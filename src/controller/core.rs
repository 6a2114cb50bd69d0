//! The controller's decisions: `step(now, input) -> outputs`, pure and deterministic.
//!
//! In: [`Input`]s and the instant at which each is handled. Out: [`Output`]s, to be executed in order. Must not read a
//! clock, open a socket, or depend on the order of a hash.
//!
//! ```text
//!  input ─► what it says about switches, links, jobs
//!                │
//!                ▼  after every input, in this order
//!   links changed? ─► candidate paths, labels, wanted entries        (fabric.rs)
//!   jobs, paths or policy changed? ─► plan ─► goals                  (planning.rs)
//!   flow off its goal, labels in, leg settled? ─► change, journalled (flows.rs)
//!   switch to look at? ─► reconcile ─► writes whose needs are there  (writes.rs)
//!   everything on goal? ─► Installed
//! ```
//!
//! **Barriers.** An update goes out when what it needs is *known to be installed*: members before groups before
//! entries on one switch; a label's entry after that of the next switch towards the sink; a flow's entry after its
//! labels' entries on every switch of the way. So the labels of a path appear from the sink leaf upwards, a flow never
//! carries a label that is not complete, and a dead switch holds up only the labels that lead through it.

use super::config::Config;
use super::messages::{Event, Input, Output, RequestId, TimerKey};
use super::rollout::{FlowState, Goal, Side};
use super::store::{Batch, Key, Record};
use crate::elastic::Generation;
use crate::id::{FlowId, HostId, JobId, SwitchId};
use crate::p4runtime::rpc::Rpc;
use crate::p4runtime::session::Event as SessionEvent;
use crate::pipeline::labels::{Label, LabelError, Labels};
use crate::pipeline::slots::Slots;
use crate::pipeline::{EntityKey, Fabric};
use crate::time::{Span, Time};
use crate::topology::{LinkSet, PathError, Paths};
use crate::workload::{Flow, Job};
use std::collections::{BTreeMap, BTreeSet};

mod bringup;
mod fabric;
mod feedback;
mod flows;
mod members;
mod planning;
mod probes;
mod ranks;
mod retire;
mod session;
mod switch;
mod telemetry;
mod view;
mod writes;

#[cfg(test)]
mod tests;

pub use probes::{INTERVAL_FLOOR, ProbeCounts};
pub use ranks::Membership;
use switch::{Call, Phase, Switch};

/// Rounds of one step. Each input changes the state of one switch, link or job, and its consequences run through links,
/// plan, flows and switches at most once or twice; the bound turns a mistake there into delay instead of a hang.
const ROUNDS: usize = 8;

/// Why a core cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoreError {
    /// No device id for some switch.
    #[error(
        "{given} device ids for {switches} switches; give one per switch, in the order of the topology"
    )]
    DeviceIds {
        /// Ids given.
        given: usize,
        /// Switches.
        switches: usize,
    },
    /// A policy that does not exist.
    #[error("there is no policy '{name}'; choose one of: {known}")]
    Policy {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// No candidate paths.
    #[error(transparent)]
    Paths(#[from] PathError),
    /// Too many labels.
    #[error(transparent)]
    Labels(#[from] LabelError),
    /// A telemetry interval in which cells wrap, or too short to be read.
    #[error(
        "a telemetry interval of {given} is out of range: with ports of {rate} give --telemetry-interval from {least} to {most}, above which 32-bit byte counts can wrap"
    )]
    TelemetryInterval {
        /// The interval.
        given: Span,
        /// The shortest.
        least: Span,
        /// The longest.
        most: Span,
        /// The fastest port.
        rate: crate::units::BitRate,
    },
}

/// What the entries of all switches depend on, and what failures change.
struct Ground {
    /// Directions that are down: reported so, or silent.
    down: LinkSet,
    /// Directions that port events report down.
    reported: LinkSet,
    /// Directions over which probes do not come.
    silent: LinkSet,
    /// Links that plans and groups avoid: both directions of cables that are down, and all links of excluded switches.
    failed: LinkSet,
    paths: Paths,
    labels: Labels,
}

/// The controller. See the module's head.
pub struct Core {
    config: Config,
    cookie: u64,
    now: Time,
    outputs: Vec<Output>,
    /// Records to be written before the next other output.
    dirty: BTreeSet<Key>,
    booted: bool,
    epoch: u64,
    ground: Ground,
    slots: Slots,
    jobs: BTreeMap<JobId, (Job, Vec<FlowId>)>,
    /// Which membership each job has.
    memberships: BTreeMap<JobId, Generation>,
    /// Jobs whose ranks wait for their paths.
    unready: BTreeSet<JobId>,
    /// Jobs whose agents form a ring.
    forming: BTreeSet<JobId>,
    /// Port of the first edge of each ring over TCP.
    first_ports: BTreeMap<JobId, u16>,
    /// What ranks say of themselves; never stored.
    ranks: ranks::Ranks,
    /// Hosts that have failed.
    failed_hosts: BTreeSet<HostId>,
    /// Finished iterations, as agents last told.
    done: BTreeMap<JobId, u32>,
    flows: BTreeMap<FlowId, Flow>,
    states: BTreeMap<FlowId, FlowState>,
    goals: BTreeMap<FlowId, Goal>,
    /// Flows to look at: off their goal, or leaving.
    unsettled: BTreeSet<FlowId>,
    /// Owner of each `classify` key, by leaf.
    legs: BTreeMap<(SwitchId, EntityKey), (FlowId, Side)>,
    /// Changes that are written and not known to be in force, with the instant of the acknowledgement.
    flips: BTreeMap<(FlowId, Side), Time>,
    flips_timer: bool,
    retiring: BTreeMap<Label, retire::Retiring>,
    labels_timer: bool,
    policy: String,
    generation: u64,
    installed: u64,
    replan: bool,
    rebuild: bool,
    switches: Vec<Switch>,
    next_request: u64,
    next_event: u64,
    /// Events of this step, to be stored with the next batch.
    logged: Vec<(u64, Event)>,
    /// What is read of the fabric; never stored.
    collector: telemetry::Collector,
    watch: feedback::Watch,
    prober: probes::Prober,
}

/// The entries' view of the core's state; a function of its parts, so that switches can be changed meanwhile.
fn fabric<'a>(config: &'a Config, ground: &'a Ground) -> Fabric<'a> {
    Fabric {
        program: &config.program,
        topology: &config.topology,
        paths: &ground.paths,
        failed: &ground.failed,
        labels: &ground.labels,
        settings: &config.settings,
    }
}

impl Core {
    /// A core that has not been booted: the first input must be [`Input::Boot`].
    ///
    /// # Errors
    /// [`CoreError`] when the configuration contradicts itself.
    pub fn new(mut config: Config) -> Result<Self, CoreError> {
        let collector = telemetry::Collector::new(&config.topology, &config.telemetry)?;
        config.slots.quarantine =
            config.slots.quarantine.max(Span(config.telemetry.interval.0.saturating_mul(2)));
        let switches = config.topology.switch_count();
        if config.device_ids.len() != switches {
            return Err(CoreError::DeviceIds { given: config.device_ids.len(), switches });
        }
        if !config.policies.iter().any(|policy| policy.name() == config.policy) {
            let known: Vec<&str> = config.policies.iter().map(|policy| policy.name()).collect();
            return Err(CoreError::Policy { name: config.policy, known: known.join(", ") });
        }
        let failed = LinkSet::new();
        let paths = Paths::build(&config.topology, &failed, config.planning.max_paths)?;
        let mut labels = Labels::default();
        labels.adopt(&config.topology, &paths)?;
        let cookie = config.artifacts.cookie();
        let switches = config
            .topology
            .switches()
            .map(|id| {
                let device_id = config.device_ids[id.index()];
                let session = session::new(device_id);
                Switch::new(id, device_id, session, config.limits.batch, config.limits.retry)
            })
            .collect();
        Ok(Self {
            cookie,
            now: Time::ZERO,
            outputs: Vec::new(),
            dirty: BTreeSet::new(),
            booted: false,
            epoch: 0,
            ground: Ground {
                down: LinkSet::new(),
                reported: LinkSet::new(),
                silent: LinkSet::new(),
                failed,
                paths,
                labels,
            },
            slots: Slots::default(),
            jobs: BTreeMap::new(),
            memberships: BTreeMap::new(),
            unready: BTreeSet::new(),
            forming: BTreeSet::new(),
            first_ports: BTreeMap::new(),
            ranks: ranks::Ranks::default(),
            failed_hosts: BTreeSet::new(),
            done: BTreeMap::new(),
            flows: BTreeMap::new(),
            states: BTreeMap::new(),
            goals: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            legs: BTreeMap::new(),
            flips: BTreeMap::new(),
            flips_timer: false,
            retiring: BTreeMap::new(),
            labels_timer: false,
            policy: config.policy.clone(),
            generation: 0,
            installed: 0,
            replan: false,
            rebuild: false,
            switches,
            next_request: 0,
            next_event: 0,
            logged: Vec::new(),
            collector,
            watch: feedback::Watch::new(&config.feedback),
            prober: probes::Prober::new(&config.topology, &config.probes),
            config,
        })
    }

    /// Handles one input at `now`, which never goes back. Outputs are to be executed in order.
    pub fn step(&mut self, now: Time, input: Input) -> Vec<Output> {
        self.now = now;
        self.take(input);
        // A round may ask for another: a switch that came back changes the candidate paths, and they the plan.
        for _ in 0..ROUNDS {
            if !self.booted || !self.round() {
                break;
            }
        }
        if self.booted {
            self.watch_labels();
            self.watch_telemetry();
            self.watch_probes();
            self.announce();
        }
        self.flush();
        std::mem::take(&mut self.outputs)
    }

    /// Brings everything in line with what is known now; `true` if something came up on the way.
    fn round(&mut self) -> bool {
        if self.rebuild {
            self.rebuild_fabric();
        }
        if self.replan {
            self.plan();
        }
        self.start_changes();
        for index in 0..self.switches.len() {
            if std::mem::take(&mut self.switches[index].pump) {
                self.pump(SwitchId::from(index));
            }
        }
        self.rebuild || self.replan || self.switches.iter().any(|switch| switch.pump)
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Boot { stored, wall_ms, probe_key } => {
                self.prober.key = probe_key;
                self.boot(stored, wall_ms);
            }
            // Nothing else means anything before the store was read.
            _ if !self.booted => {}
            Input::Reply { switch, request, result } => self.replied(switch, request, result),
            Input::Stream { switch, stream, message } => self.streamed(switch, stream, message),
            Input::StreamEnded { switch, stream, end } => self.stream_ended(switch, stream, end),
            Input::Timer(key) => self.timer(key),
            Input::SubmitJobs(jobs) => self.submit(jobs),
            Input::JobFinished { job } => self.finish(job),
            Input::Progress { job, iterations, compute } => {
                self.progressed(job, iterations);
                self.computed(job, &compute);
            }
            Input::Rank { job, host, said } => self.rank(job, host, said),
            Input::Host { host, up } => self.host(host, up),
            Input::Joined { job, generation, flows } => self.joined(job, generation, flows),
            Input::Link { link, up } => self.link(link, up),
            Input::SetPolicy { policy } => self.set_policy(policy),
            Input::Replan => self.replan = true,
            Input::Resync { switch } => {
                if let Some(switch) = self.switches.get_mut(switch.index()) {
                    switch.resync = true;
                    switch.pump = true;
                }
            }
        }
    }

    fn timer(&mut self, key: TimerKey) {
        match key {
            TimerKey::Session(switch) if switch.index() < self.switches.len() => {
                self.tell(switch, SessionEvent::Timer);
            }
            TimerKey::Session(_) => {}
            TimerKey::Call(switch, request) => self.call_expired(switch, request),
            TimerKey::Retry(switch) => self.retry(switch),
            TimerKey::Verify(switch) => {
                if let Some(switch) = self.switches.get_mut(switch.index()) {
                    switch.resync = true;
                    switch.pump = true;
                }
            }
            TimerKey::Lost(switch, outage) => self.lost(switch, outage),
            TimerKey::Flips => self.poll_flips(),
            TimerKey::Labels => {
                self.labels_timer = false;
                self.poll_labels();
            }
            TimerKey::Telemetry => self.next_interval(),
            TimerKey::Readout(switch) => self.reads_expired(switch),
            TimerKey::Probes => self.send_probes(),
            TimerKey::Ranks(job) => self.ranks_due(job),
        }
    }

    fn boot(&mut self, stored: Vec<Record>, wall_ms: u64) {
        if self.booted {
            return;
        }
        self.booted = true;
        for record in stored {
            self.restore(record);
        }
        let sizes = self.config.slots;
        self.slots.restart_quarantine(self.now, sizes);
        self.epoch = (self.epoch + 1).max(wall_ms);
        // The labels of a fresh store were made by `new`; those of an old one were just restored and must still cover
        // the candidate paths, which `rebuild_fabric` sees to.
        self.dirty.extend([Key::Epoch, Key::Labels]);
        self.unready.extend(self.jobs.keys());
        self.index_legs();
        self.resume_telemetry();
        self.rebuild_fabric();
        // The stored target stands; only a job that was accepted and never planned wants another.
        self.replan = self.flows.keys().any(|flow| !self.goals.contains_key(flow));
        self.ask_for_rings();
        for index in 0..self.switches.len() {
            self.went_down(SwitchId::from(index));
            let start = session::start(&self.config);
            self.tell(SwitchId::from(index), start);
        }
    }

    fn restore(&mut self, record: Record) {
        match record {
            Record::Epoch(epoch) => self.epoch = epoch,
            Record::Labels(labels) => self.ground.labels = labels,
            Record::Slots(slots) => self.slots = slots,
            Record::Switch { switch, incarnation } => {
                if let Some(switch) = self.switches.get_mut(switch.index()) {
                    switch.incarnation = incarnation;
                }
            }
            Record::Job { job, flows, generation, forming, first_port } => {
                if forming {
                    self.forming.insert(job.id);
                }
                self.memberships.insert(job.id, generation);
                self.first_ports.extend(first_port.map(|port| (job.id, port)));
                self.jobs.insert(job.id, (job, flows.iter().map(|flow| flow.id).collect()));
                self.flows.extend(flows.into_iter().map(|flow| (flow.id, flow)));
            }
            Record::Target { generation, policy, goals } => {
                self.generation = generation;
                self.policy = policy;
                self.unsettled.extend(goals.keys());
                self.goals = goals;
            }
            Record::Flow(state) => {
                self.unsettled.insert(state.flow);
                self.states.insert(state.flow, state);
            }
            Record::Feedback(feedback) => {
                self.watch.feedback = feedback;
                self.watch.feedback.restarted(self.config.feedback.settings);
            }
            Record::Event { number, .. } => self.next_event = self.next_event.max(number + 1),
        }
    }

    /// Adds an output; what is to be stored comes first. The event log alone does not force a commit of its own: it
    /// is written with the next batch, at the latest at the end of the step.
    fn emit(&mut self, output: Output) {
        if self.dirty.iter().any(|key| !matches!(key, Key::Event(_))) {
            self.flush();
        }
        self.outputs.push(output);
    }

    /// Tells an event, and keeps it in the log.
    fn notify(&mut self, event: Event) {
        let number = self.next_event;
        self.next_event += 1;
        self.logged.push((number, event.clone()));
        self.dirty.insert(Key::Event(number));
        if let Some(old) = number.checked_sub(self.config.limits.log) {
            self.dirty.insert(Key::Event(old));
        }
        self.emit(Output::Notify(event));
    }

    fn set_timer(&mut self, after: Span, key: TimerKey) {
        let at = self.now + after;
        self.emit(Output::Timer { at, key });
    }

    /// Makes a call, with a deadline of the core's own.
    fn call(&mut self, switch: SwitchId, call: Call, within: Span, rpc: Rpc) {
        let request = RequestId(self.next_request);
        self.next_request += 1;
        self.switches[switch.index()].calls.insert(request, call);
        let deadline = self.now + within;
        self.emit(Output::Call { switch, request, deadline, rpc });
        self.set_timer(within, TimerKey::Call(switch, request));
    }

    /// Turns the dirty keys into one batch. A key without state is deleted.
    fn flush(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        let mut batch = Batch::default();
        for key in std::mem::take(&mut self.dirty) {
            match self.record(key) {
                Some(record) => batch.puts.push(record),
                None => batch.deletes.push(key),
            }
        }
        self.logged.clear();
        self.outputs.push(Output::Persist(batch));
    }

    fn record(&self, key: Key) -> Option<Record> {
        match key {
            Key::Epoch => Some(Record::Epoch(self.epoch)),
            Key::Labels => Some(Record::Labels(self.ground.labels.clone())),
            Key::Slots => Some(Record::Slots(self.slots.clone())),
            Key::Switch(switch) => {
                let incarnation = self.switches.get(switch.index())?.incarnation;
                Some(Record::Switch { switch, incarnation })
            }
            Key::Job(id) => {
                let (job, flows) = self.jobs.get(&id)?;
                let flows = flows.iter().filter_map(|flow| self.flows.get(flow).cloned());
                let generation = self.generation_of(job.id);
                let forming = self.forming.contains(&job.id);
                let (job, flows) = (job.clone(), flows.collect());
                let first_port = self.first_ports.get(&id).copied();
                Some(Record::Job { job, flows, generation, forming, first_port })
            }
            Key::Target => Some(Record::Target {
                generation: self.generation,
                policy: self.policy.clone(),
                goals: self.goals.clone(),
            }),
            Key::Feedback => Some(Record::Feedback(self.watch.feedback.clone())),
            Key::Flow(flow) => Some(Record::Flow(self.states.get(&flow)?.clone())),
            Key::Event(number) => {
                let (_, event) = self.logged.iter().find(|(logged, _)| *logged == number)?;
                Some(Record::Event { number, at: self.now, event: event.clone() })
            }
        }
    }

    /// Tells which jobs may send, and once per plan that everything is where it should be.
    fn announce(&mut self) {
        let ready: Vec<JobId> =
            self.unready.iter().copied().filter(|job| self.job_ready(*job)).collect();
        for job in ready {
            self.unready.remove(&job);
            self.notify(Event::JobReady { job });
        }
        if self.installed < self.generation && self.converged() {
            self.installed = self.generation;
            self.notify(Event::Installed { generation: self.generation });
        }
    }

    /// Whether every flow with a goal is wholly on it, nothing is leaving, and every switch that plans use holds what
    /// is wanted.
    #[must_use]
    pub fn converged(&self) -> bool {
        self.outside() == 0
            && self
                .switches
                .iter()
                .all(|switch| switch.excluded || (switch.synced && switch.phase == Phase::Active))
    }

    /// Retired labels whose entries are not removed yet: the controller will still write to remove them.
    #[must_use]
    pub fn retiring(&self) -> usize {
        self.retiring.len()
    }

    /// Flows that are not wholly on their goal, and flows that are leaving switches that plans use.
    #[must_use]
    pub fn outside(&self) -> usize {
        let placed = |(id, goal): (&FlowId, &Goal)| {
            self.states.get(id).is_some_and(|state| state.reached(goal))
        };
        let outside = self.goals.iter().filter(|goal| !placed(*goal)).count();
        let used = |state: &FlowState| state.legs.iter().all(|leg| self.uses(leg.leaf));
        outside + self.states.values().filter(|state| state.leaving && used(state)).count()
    }

    /// Generation of the newest plan; 0 before the first.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Where every flow with a live path should be.
    #[must_use]
    pub const fn goals(&self) -> &BTreeMap<FlowId, Goal> {
        &self.goals
    }

    /// What a flow's entries say; `None` before it was placed.
    #[must_use]
    pub fn flow(&self, flow: FlowId) -> Option<&FlowState> {
        self.states.get(&flow)
    }

    /// What a switch should hold.
    #[must_use]
    pub fn wanted(&self, switch: SwitchId) -> Option<&crate::pipeline::EntrySet> {
        self.switches.get(switch.index()).map(|switch| &switch.wanted)
    }

    /// Whether plans use a switch.
    #[must_use]
    pub fn uses(&self, switch: SwitchId) -> bool {
        self.switches.get(switch.index()).is_some_and(|switch| !switch.excluded)
    }

    /// One line per switch: how far it has come and what it waits for; for logs and failed tests.
    #[must_use]
    pub fn describe_switches(&self) -> String {
        let line = |switch: &Switch| {
            format!(
                "switch {}: {:?}{}{}{}, {} calls, {} in doubt, {} refused\n",
                switch.id,
                switch.phase,
                if switch.synced { ", synced" } else { "" },
                if switch.excluded { ", excluded" } else { "" },
                if switch.paused { ", paused" } else { "" },
                switch.calls.len(),
                switch.tainted.len(),
                switch.refused.len()
            )
        };
        self.switches.iter().map(line).collect()
    }

    /// Names and ids of the program.
    #[must_use]
    pub const fn program(&self) -> &crate::pipeline::Program {
        &self.config.program
    }
}
