//! Everything that goes into and comes out of the core, in one place.
//!
//! ```text
//!   CLI, API, agents ── SubmitJobs, JobFinished, SetPolicy, Replan ──►┌──────┐──► Persist ──► store
//!   agents, workers ─── Progress, Rank ─────────────────────────────►│      │
//!   ports, probes ───── Link ───────────────────────────────────────►│      │──► OpenStream, Send, CloseStream, Call ──► switch
//!   driver or sim ───── Boot, Timer ────────────────────────────────►│ core │──► Timer ──► driver or sim
//!   switch ──────────── Reply, Stream, StreamEnded ─────────────────►│      │──► Notify ──► log, API, tests
//!                                                                    └──────┘
//! ```
//!
//! In: nothing. Out: the enums [`Input`] and [`Output`]. Must not know what is decided.
//!
//! **Contract for whoever executes outputs**: in order. A [`Output::Persist`] is durable before any later output of the
//! same step, or of a later step, is executed. That is what "acknowledged = durable" and "the target is stored before
//! the first write" rest on. If a commit fails the core must not be stepped again.

use super::rollout::Side;
use super::store::{Batch, Record};
use crate::elastic::Generation;
use crate::feedback::{Action, Why};
use crate::id::{FlowId, HostId, JobId, LinkId, SwitchId};
use crate::p4runtime::proto::p4::v1::{StreamMessageRequest, StreamMessageResponse};
use crate::p4runtime::rpc::{Code, Rpc, RpcResult, StreamEnd};
use crate::pipeline::probe::ProbeKey;
use crate::straggler::{Evidence, Kind};
use crate::time::{Span, Time};
use crate::topology::Path;
use crate::workload::{Flow, Job};
use serde::{Deserialize, Serialize};

/// A call in flight; unique over the life of one core.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RequestId(pub u64);

/// A stream to one switch; unique per switch over the life of one core. Messages of an older stream than the one last
/// opened are ignored.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StreamNo(pub u64);

/// What the core is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// First input, once: what the store holds, and the wall clock for the first election id.
    Boot {
        /// Everything in the store.
        stored: Vec<Record>,
        /// Milliseconds since 1970.
        wall_ms: u64,
        /// Signs this run's probes; drawn anew at every start.
        probe_key: ProbeKey,
    },
    /// A call came to an end. The driver reports a call that it gave up as `DEADLINE_EXCEEDED`; a reply to a call that
    /// the core itself gave up is ignored.
    Reply {
        /// The switch.
        switch: SwitchId,
        /// Which call.
        request: RequestId,
        /// What it came to.
        result: RpcResult,
    },
    /// A message came over a stream.
    Stream {
        /// The switch.
        switch: SwitchId,
        /// Which stream.
        stream: StreamNo,
        /// The message.
        message: StreamMessageResponse,
    },
    /// A stream could not be opened or ended.
    StreamEnded {
        /// The switch.
        switch: SwitchId,
        /// Which stream.
        stream: StreamNo,
        /// Why.
        end: StreamEnd,
    },
    /// A timer that the core set has come.
    Timer(TimerKey),
    /// Jobs arrive, planned together. Ids are the submitter's; job and flow ids must be new, flows must belong to their
    /// job. Each job is accepted or refused on its own.
    SubmitJobs(
        /// Each job with its flows.
        Vec<(Job, Vec<Flow>)>,
    ),
    /// A job departs: its flows lose their entries.
    JobFinished {
        /// The job.
        job: JobId,
    },
    /// A job's agents report after an iteration. Never acknowledged and not stored: the next report says it all again.
    Progress {
        /// The job.
        job: JobId,
        /// Iterations finished so far.
        iterations: u32,
        /// Compute time of the last one, by rank; empty if the agents do not know.
        compute: Vec<Span>,
    },
    /// A rank says something of itself, or nothing any more. Never acknowledged and not stored: each message says it all again.
    Rank {
        /// The job.
        job: JobId,
        /// The rank's host.
        host: HostId,
        /// What.
        said: RankSaid,
    },
    /// A host has failed (its agent is silent) or is back. Jobs on a failed host go on without it.
    Host {
        /// The host.
        host: HostId,
        /// Whether it is there.
        up: bool,
    },
    /// A job's agents have formed the ring that [`Event::Regrouped`] asked for.
    Joined {
        /// The job.
        job: JobId,
        /// The membership that the ring belongs to; another than the newest is refused.
        generation: Generation,
        /// The new ring's flows; ids must be new.
        flows: Vec<Flow>,
    },
    /// One direction of a cable went down or came back. The core takes a cable to be up only while both directions are.
    Link {
        /// The direction.
        link: LinkId,
        /// Whether it carries packets.
        up: bool,
    },
    /// Plan with another of the configured policies from now on.
    SetPolicy {
        /// Its name.
        policy: String,
    },
    /// Plan again with the policy in force.
    Replan,
    /// Read a switch in full and reconcile.
    Resync {
        /// The switch.
        switch: SwitchId,
    },
}

/// What a rank's process, or the agent of its host, says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RankSaid {
    /// How it is.
    State(RankState),
    /// It is done and says no more.
    Left,
    /// The stream over which it spoke ended without that.
    Silent,
}

/// How a rank is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankState {
    /// The membership that it belongs to.
    pub generation: Generation,
    /// Whether it is joined to both its neighbours.
    pub joined: bool,
    /// Iterations that it has finished.
    pub iterations: u32,
    /// Compute time of the last one.
    pub compute: Span,
    /// The neighbour that broke off; the ring is then no more.
    pub lost: Option<HostId>,
    /// The neighbour from which nothing comes; the ring stands, and the neighbour may only be slow.
    pub stalled: Option<HostId>,
}

/// What the core wants done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Make durable before going on.
    Persist(Batch),
    /// Open a stream; messages sent before it is open are kept and follow.
    OpenStream {
        /// The switch.
        switch: SwitchId,
        /// The new stream.
        stream: StreamNo,
    },
    /// Send messages over an open stream, in order.
    Send {
        /// The switch.
        switch: SwitchId,
        /// Which stream.
        stream: StreamNo,
        /// The messages.
        messages: Vec<StreamMessageRequest>,
    },
    /// Close a stream. Its `StreamEnded` may follow or not.
    CloseStream {
        /// The switch.
        switch: SwitchId,
        /// Which stream.
        stream: StreamNo,
    },
    /// Make a call and report its end as [`Input::Reply`].
    Call {
        /// The switch.
        switch: SwitchId,
        /// Names the call in the reply.
        request: RequestId,
        /// When the core gives it up; the driver's own deadline on the wire.
        deadline: Time,
        /// The call.
        rpc: Rpc,
    },
    /// Report [`Input::Timer`] at an instant. Timers are never cancelled; the core ignores those that no longer matter.
    Timer {
        /// When.
        at: Time,
        /// Which.
        key: TimerKey,
    },
    /// Tell whoever listens.
    Notify(Event),
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerKey {
    /// The session of a switch wants to be stepped.
    Session(SwitchId),
    /// A call has had its time.
    Call(SwitchId, RequestId),
    /// A switch that refused or failed may be tried again.
    Retry(SwitchId),
    /// A call to a switch had an unknown outcome some time ago: a Write that was delayed may have been executed since
    /// it was read, so it is read in full once more.
    Verify(SwitchId),
    /// A switch has been out of reach for long; `u64` counts the outage.
    Lost(SwitchId, u64),
    /// Look whether flips have come into force; force those whose deadline has passed.
    Flips,
    /// Look whether retired labels may be removed.
    Labels,
    /// The telemetry interval ends.
    Telemetry,
    /// Readouts of a switch may have been lost.
    Readout(SwitchId),
    /// Probes are due.
    Probes,
    /// What is not clear about a job's ranks has had its time.
    Ranks(JobId),
}

/// Something worth telling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Event {
    /// This controller is primary at a switch.
    Primary {
        /// The switch.
        switch: SwitchId,
    },
    /// Another controller is primary at a switch; it is excluded from planning.
    Foreign {
        /// The switch.
        switch: SwitchId,
        /// The other's election id.
        high: u64,
        /// Its low half.
        low: u64,
    },
    /// The program was loaded onto a switch, which cleared it.
    PipelineLoaded {
        /// The switch.
        switch: SwitchId,
    },
    /// A switch runs another program, and flows may lean on it; `force_pipeline` would replace it.
    PipelineForeign {
        /// The switch.
        switch: SwitchId,
        /// Its cookie.
        cookie: u64,
    },
    /// A switch had lost its incarnation: it restarted since it was programmed.
    Restarted {
        /// The switch.
        switch: SwitchId,
    },
    /// A switch was read in full.
    Read {
        /// The switch.
        switch: SwitchId,
        /// Entities held.
        entities: usize,
        /// Updates to be made.
        changes: usize,
        /// Entities of others.
        foreign: usize,
    },
    /// A switch holds exactly what is wanted (conflicts and refusals excepted).
    Synced {
        /// The switch.
        switch: SwitchId,
    },
    /// A key that is wanted is somebody else's.
    Conflict {
        /// The switch.
        switch: SwitchId,
        /// The key, in words.
        key: String,
    },
    /// An update was refused for good; it is not tried again until something else is wanted.
    Refused {
        /// The switch.
        switch: SwitchId,
        /// The key, in words.
        key: String,
        /// The refusal's code.
        code: Code,
        /// The switch's text.
        message: String,
    },
    /// A table is full: flows beyond are left untagged.
    TableFull {
        /// The switch.
        switch: SwitchId,
        /// The key that found no room, in words.
        key: String,
    },
    /// A switch has been out of reach for so long that plans avoid it.
    SwitchLost {
        /// The switch.
        switch: SwitchId,
    },
    /// A lost switch is programmed again, and plans may use it.
    SwitchBack {
        /// The switch.
        switch: SwitchId,
    },
    /// A job was accepted and is durable; its flows are part of plans from this generation on.
    JobAccepted {
        /// The job.
        job: JobId,
        /// The generation.
        generation: u64,
    },
    /// Everything that a job's flows need is installed: its ranks may send. Once per submission and per membership, and
    /// again after a restart of the controller. Other jobs may still be on their way to the same plan.
    JobReady {
        /// The job.
        job: JobId,
    },
    /// A job was not accepted.
    JobRefused {
        /// The job.
        job: JobId,
        /// Why, and what to do.
        reason: String,
    },
    /// A job's membership changed. This is the command to its agents: stop the old ring, form the new one, begin again with
    /// iteration `from` and answer with [`Input::Joined`]. Repeated after a restart of the controller; agents that have
    /// done it already answer again.
    Regrouped {
        /// The job.
        job: JobId,
        /// The new membership.
        generation: Generation,
        /// Its hosts, in ring order.
        ranks: Vec<HostId>,
        /// Compute time of each rank from now on: the global batch is shared by fewer.
        compute: Span,
        /// Iterations that are done; the one after is begun anew.
        from: u32,
        /// Why.
        cause: String,
    },
    /// A job cannot go on and was removed.
    JobStopped {
        /// The job.
        job: JobId,
        /// Why, and what to do.
        reason: String,
    },
    /// A job is gone.
    JobRemoved {
        /// The job.
        job: JobId,
    },
    /// A new plan is the target.
    Planned {
        /// Its generation.
        generation: u64,
        /// The policy.
        policy: String,
        /// Flows placed.
        flows: usize,
        /// Flows whose path or queue differs from what is in force.
        changed: usize,
        /// Flows without any live path.
        unroutable: usize,
    },
    /// A request names something that does not exist.
    Rejected {
        /// Why, and what to do.
        reason: String,
    },
    /// A flow's change could not wait for a gap (dead link, or none came).
    FlipForced {
        /// The flow.
        flow: FlowId,
        /// Which of its entries.
        side: Side,
    },
    /// Every flow is on its target, and every reachable switch holds what is wanted.
    Installed {
        /// The generation reached.
        generation: u64,
    },
    /// A label that nothing can carry any more was removed.
    LabelRemoved {
        /// The number.
        label: u16,
    },
    /// The telemetry interval changed: so many slots of one leaf cannot be read more often under the rate cap.
    TelemetryInterval {
        /// Its new length.
        interval: Span,
        /// Slots of the leaf with the most.
        slots: usize,
        /// Reads per second and switch.
        rate_cap: u32,
    },
    /// The samples of a closed interval are all in or given up; told only when the configuration asks for it.
    Telemetry {
        /// The interval.
        interval: u32,
        /// Flows read.
        flows: u64,
        /// Those of which there is no sample.
        missing: u64,
    },
    /// A flow is held up.
    StragglerFlagged {
        /// The flow.
        flow: FlowId,
        /// Its job.
        job: JobId,
        /// By what.
        kind: Kind,
        /// The numbers.
        evidence: Evidence,
    },
    /// A straggler goes one queue up.
    StragglerRaised {
        /// The flow.
        flow: FlowId,
        /// Its job.
        job: JobId,
        /// Its queue by plan.
        from: u8,
        /// Its queue from now on.
        to: u8,
        /// Share of the objective that it should gain; 0 where nothing was simulated.
        gain: f64,
        /// Why.
        evidence: Evidence,
    },
    /// A straggler takes another path.
    StragglerRerouted {
        /// The flow.
        flow: FlowId,
        /// Its job.
        job: JobId,
        /// Its path by plan.
        from: Path,
        /// Its path from now on.
        to: Path,
        /// Share of the objective that it should gain.
        gain: f64,
        /// Why.
        evidence: Evidence,
    },
    /// A reaction made its flow faster and stays.
    ReactionKept {
        /// The flow.
        flow: FlowId,
        /// Its job.
        job: JobId,
        /// What was done.
        action: Action,
        /// Rate since over rate before.
        speedup: f64,
    },
    /// A reaction was taken back.
    ReactionUndone {
        /// The flow.
        flow: FlowId,
        /// Its job.
        job: JobId,
        /// What was done.
        action: Action,
        /// Rate since over rate before; 0 if it was never seen.
        speedup: f64,
        /// Why it was taken back.
        why: Why,
    },
    /// Probes of a link are missing, or come out elsewhere: plans avoid its cable.
    LinkDead {
        /// The direction.
        link: LinkId,
        /// Probes that must be heard in a row before it is used again.
        needed: u32,
    },
    /// Probes cross a link that was dead: plans may use it.
    LinkBack {
        /// The direction.
        link: LinkId,
    },
    /// A link does not lead where the cabling says: mend the cable, or the fabric's description.
    Miswired {
        /// The direction.
        link: LinkId,
        /// Switch and port at which its probes should come in.
        expected: String,
        /// Where they do.
        found: String,
    },
    /// A leaf has no free slot; a flow is not tracked.
    Untracked {
        /// The flow.
        flow: FlowId,
    },
}
