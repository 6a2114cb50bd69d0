//! One run: the controller's core, the wire, the switches and the hosts on one clock.
//!
//! In: what is to run and happen ([`Parts`], [`Script`]). Out: a finished world, to measure and to check. Must not know policies'
//! insides, the P4 program, or real time.
//!
//! ```text
//!   Core::step ──Output──► execute ──drawn delay──► Arrive ──► Wire ◄──► server ◄─lock─► Switch ◄──frames── Net (hosts, links)
//!       ▲                                                        │
//!       └──────Input── Reply, Stream ◄──drawn delay──────────────┘
//! ```

mod control;
mod regroup;
mod restart;
mod script;

pub use control::{Control, Delays};
pub use regroup::Regrouped;
pub use script::{Script, Step};

use crate::controller::core::Core;
use crate::controller::messages::{Event as Notice, Input};
use crate::controller::store::MemoryStore;
use crate::id::{JobId, SwitchId};
use crate::pipeline::probe::ProbeKey;
use crate::sim::fabric::{FabricSwitch, Losses, SharedServer};
use crate::sim::fault::Faults;
use crate::sim::host::Recovery;
use crate::sim::packet::{Net, NetEvent, Scale};
use crate::sim::queue::Queue;
use crate::sim::shuffle::Shuffle;
use crate::sim::trace::PlanLog;
use crate::sim::wire::{Wire, WireError};
use crate::time::{Span, Time, stream};
use crate::topology::Topology;
use crate::workload::{Flow, Job};
use rand::RngExt as _;
use rand_pcg::Pcg64;
use std::sync::Arc;

/// Longest virtual time of a run: a job that cannot finish (a dead path that nobody repairs) must not spin forever.
pub const MAX_VIRTUAL: Span = Span(3_600_000_000_000);

/// An event of the world.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Of the packet network.
    Net(NetEvent),
    /// Of the control plane; the number is its place in [`World::control`].
    Control(u32),
}

impl From<NetEvent> for Event {
    fn from(event: NetEvent) -> Self {
        Self::Net(event)
    }
}

/// Why a run ended before its time.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorldError {
    /// The wire broke.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The store refused a batch.
    #[error("the store refused a batch: {reason}")]
    Store {
        /// Why.
        reason: String,
    },
    /// The controller refused a job.
    #[error("the controller refused job '{job}': {reason}")]
    JobRefused {
        /// The job's name.
        job: String,
        /// Why.
        reason: String,
    },
    /// Nothing more can happen, or too much time has passed, and jobs are not finished.
    #[error(
        "after {seconds:.3} s of virtual time these jobs are not finished: {jobs}; installed generation {installed:?}"
    )]
    Unfinished {
        /// Virtual time.
        seconds: f64,
        /// Names of the jobs.
        jobs: String,
        /// Last generation that was installed.
        installed: Option<u64>,
    },
}

/// What a world is made of.
pub struct Parts<W> {
    /// The fabric at full size.
    pub topology: Topology,
    /// Jobs by id.
    pub jobs: Vec<Job>,
    /// Flows by id.
    pub flows: Vec<Flow>,
    /// The packet network around the servers' switches.
    pub net: Net<FabricSwitch>,
    /// The servers, by switch id.
    pub servers: Vec<SharedServer>,
    /// The wire to them.
    pub wire: W,
    /// The controller.
    pub core: Core,
    /// What happens.
    pub script: Script,
    /// The controller's policies, to order moves from.
    pub shuffle: Vec<Arc<Shuffle>>,
    /// What goes wrong.
    pub faults: Faults,
    /// Control-plane delays.
    pub delays: Delays,
    /// σ, for the packets of rings that are formed during the run.
    pub scale: Scale,
    /// How hosts recover lost packets.
    pub recovery: Recovery,
    /// Draws delays.
    pub seed: u64,
}

/// A run under way.
pub struct World<W> {
    /// The clock.
    pub queue: Queue<Event>,
    /// The packet network.
    pub net: Net<FabricSwitch>,
    /// The fabric at full size.
    pub topology: Topology,
    /// The servers, by switch id.
    pub servers: Vec<SharedServer>,
    /// The controller.
    pub core: Core,
    /// The controller's store.
    pub store: MemoryStore,
    /// What goes wrong.
    pub faults: Faults,
    /// What the controller told, with times.
    pub notices: Vec<(Time, Notice)>,
    /// What the script did, with times; the first [`script::MAX_STEPS_KEPT`].
    pub steps: Vec<(Time, Step)>,
    /// The plans so far, if the run is recorded.
    plans: Option<PlanLog>,
    wire: W,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    script: Script,
    shuffle: Vec<Arc<Shuffle>>,
    lost_in_restarts: Losses,
    control: Control,
    random: Pcg64,
    /// Draws the delays of telemetry.
    reading: Pcg64,
    delays: Delays,
    progress: Progress,
    counts: ControlCounts,
    calls_out: Vec<u32>,
    scale: Scale,
    recovery: Recovery,
    seed: u64,
    regrouped: regroup::Log,
}

/// Where a run stands.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Jobs submitted and not yet accepted.
    submitted: u32,
    /// Jobs whose traffic waits for its paths, and whether they are there.
    waiting: Vec<(JobId, bool)>,
    installed: Option<u64>,
    /// When jobs' clocks start: the first plan is installed.
    origin: Option<Time>,
    /// Jobs that will still finish.
    open: u32,
}

/// What the control plane did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlCounts {
    /// Calls executed at switches.
    pub calls: u64,
    /// Updates of entries that switches executed; telemetry writes none.
    pub updates: u64,
    /// Messages delivered over streams to the controller.
    pub messages: u64,
    /// Flips that the controller forced.
    pub forced: u64,
}

/// What an event was, for invariants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// In the packet network.
    Net(NetEvent),
    /// A call was executed at a switch; `true` if it could change entries.
    Executed(SwitchId, bool),
    /// A switch restarted.
    Restarted(SwitchId),
    /// The controller was stepped.
    Stepped,
    /// Something of the script.
    Scripted,
}

impl<W: Wire> World<W> {
    /// A world before its first event.
    #[must_use]
    pub fn new(parts: Parts<W>) -> Self {
        let open = parts.jobs.len() as u32;
        let switches = parts.topology.switch_count();
        Self {
            queue: Queue::default(),
            net: parts.net,
            topology: parts.topology,
            servers: parts.servers,
            core: parts.core,
            store: MemoryStore::default(),
            faults: parts.faults,
            notices: Vec::new(),
            steps: Vec::new(),
            plans: None,
            wire: parts.wire,
            jobs: parts.jobs,
            flows: parts.flows,
            script: parts.script,
            shuffle: parts.shuffle,
            lost_in_restarts: Losses::default(),
            control: Control::default(),
            random: stream(parts.seed, "control delays", 0),
            reading: stream(parts.seed, "telemetry delays", 0),
            delays: parts.delays,
            progress: Progress { open, ..Progress::default() },
            counts: ControlCounts::default(),
            calls_out: vec![0; switches],
            scale: parts.scale,
            recovery: parts.recovery,
            seed: parts.seed,
            regrouped: regroup::Log::default(),
        }
    }

    /// From now on keeps what a report shows, for switches with so many queues per port.
    pub fn record(&mut self, queues: u8) {
        self.net.record(queues);
        self.plans = Some(PlanLog::default());
    }

    /// Takes the plans that were recorded.
    pub fn take_plans(&mut self) -> PlanLog {
        self.plans.take().unwrap_or_default()
    }

    /// Boots the controller and submits the jobs that are there from the start.
    pub fn boot(&mut self) -> Result<(), WorldError> {
        self.schedule_faults();
        let boot = Input::Boot {
            stored: Vec::new(),
            wall_ms: self.script.wall_ms,
            probe_key: ProbeKey(stream(self.seed, "probe key", 0).random()),
        };
        self.step_core(boot)?;
        let initial: Vec<JobId> = self.script.initial.clone();
        self.submit(&initial)
    }

    /// Runs one event; `None` when nothing is left to happen.
    pub fn step(&mut self) -> Result<Option<(Time, Happened)>, WorldError> {
        let Some((now, event)) = self.queue.pop() else { return Ok(None) };
        let happened = match event {
            Event::Net(event) => {
                self.net.handle(&mut self.queue, now, event);
                self.after_net(now)?;
                Happened::Net(event)
            }
            Event::Control(place) => self.control_event(now, place)?,
        };
        Ok(Some((now, happened)))
    }

    /// What packets caused beyond the network: messages of switches, jobs at their end.
    fn after_net(&mut self, now: Time) -> Result<(), WorldError> {
        while let Some(switch) = self.net.take_speaker() {
            self.drain(now, switch)?;
        }
        for job in self.net.take_iterated() {
            let at = now + self.delay();
            self.push(at, control::Waiting::Report(job));
        }
        if self.net.has_finished() {
            for job in self.net.take_finished() {
                self.job_over(job)?;
            }
        }
        Ok(())
    }

    fn job_over(&mut self, job: JobId) -> Result<(), WorldError> {
        self.progress.open = self.progress.open.saturating_sub(1);
        if self.script.report_finished {
            self.step_core(Input::JobFinished { job })?;
        }
        Ok(())
    }

    /// Whether every job has ended.
    #[must_use]
    pub fn jobs_done(&self) -> bool {
        self.progress.open == 0
    }

    /// Runs until every job has ended and the network is quiet. `observe` sees the world after every event and may stop it.
    pub fn run<E: From<WorldError>>(
        &mut self,
        observe: &mut dyn FnMut(&mut Self, Time, Happened) -> Result<(), E>,
    ) -> Result<(), E> {
        self.boot()?;
        let mut deadline = Time::ZERO + MAX_VIRTUAL;
        let mut ending = false;
        loop {
            if self.jobs_done() && !ending {
                ending = true;
                let now = self.queue.now();
                self.net.stop_background(now);
                deadline = now + self.script.linger;
            }
            if ending && self.net.is_quiet() && self.queue.now() >= deadline.min(self.settled()) {
                return Ok(());
            }
            match self.step()? {
                Some((now, happened)) if now <= deadline => observe(self, now, happened)?,
                _ if ending => return Ok(()),
                _ => return Err(self.unfinished().into()),
            }
        }
    }

    /// A run may end as soon as its network is quiet, unless the script wants to see what the controller still does.
    fn settled(&self) -> Time {
        if self.script.wait_linger { Time::NEVER } else { Time::ZERO }
    }

    fn unfinished(&self) -> WorldError {
        let open = |job: &&Job| {
            !matches!(self.net.job(job.id).phase(), crate::sim::ring::Phase::Finished(_))
        };
        let names: Vec<&str> = self.jobs.iter().filter(open).map(|job| job.name.as_str()).collect();
        WorldError::Unfinished {
            seconds: self.queue.now().as_secs_f64(),
            jobs: names.join(", "),
            installed: self.progress.installed,
        }
    }

    /// What the control plane did so far.
    #[must_use]
    pub fn counts(&self) -> ControlCounts {
        self.counts
    }

    /// When the jobs' clocks started: the first plan was installed.
    #[must_use]
    pub fn origin(&self) -> Option<Time> {
        self.progress.origin
    }

    /// Jobs by id.
    #[must_use]
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Flows by id.
    #[must_use]
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Control-plane events on their way.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.control.in_use()
    }

    /// Calls to each switch that have no answer yet.
    #[must_use]
    pub fn calls_out(&self) -> &[u32] {
        &self.calls_out
    }

    /// Packets that switches had lost before they restarted, and those that they held then.
    #[must_use]
    pub fn restart_losses(&self) -> Losses {
        self.lost_in_restarts
    }

    /// Hash over every event so far: those of the network with the frames, those of the control plane with the messages.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.net.digest() ^ self.control.digest().rotate_left(32)
    }

    /// The wire, to read from switches after the run.
    pub fn wire_mut(&mut self) -> &mut W {
        &mut self.wire
    }
}
