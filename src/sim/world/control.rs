//! The control plane's events: calls and messages on their way, answers, timers.

use super::{Event, Happened, World, WorldError};
use crate::controller::messages::{Event as Notice, Input, Output, RequestId, StreamNo, TimerKey};
use crate::elastic::Generation;
use crate::id::{JobId, SwitchId};
use crate::p4runtime::proto::p4::v1::stream_message_response::Update;
use crate::p4runtime::proto::p4::v1::{StreamMessageRequest, StreamMessageResponse};
use crate::p4runtime::rpc::{Code, Failure, Rpc, RpcResult, StreamEnd};
use crate::sim::fault::Fate;
use crate::sim::wire::{Said, Wire};
use crate::time::{Span, Time};
use rand::RngExt as _;
use std::hash::Hasher as _;

/// Ranges from which control-plane delays are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Controller to switch, and switch to controller: shortest.
    pub shortest: Span,
    /// And longest.
    pub longest: Span,
    /// Time that a switch takes for a call.
    pub service: Span,
}

impl Default for Delays {
    /// A management network within one building, and a switch that programs its hardware for a moment.
    fn default() -> Self {
        Self {
            shortest: Span::from_micros(50),
            longest: Span::from_micros(250),
            service: Span::from_micros(100),
        }
    }
}

/// Something on its way.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    Open { switch: SwitchId, stream: StreamNo },
    Close { switch: SwitchId, stream: StreamNo },
    Send { switch: SwitchId, stream: StreamNo, messages: Vec<StreamMessageRequest> },
    Call { switch: SwitchId, call: Sent, rpc: Rpc },
    Late { switch: SwitchId, call: Sent, rpc: Rpc },
    Reply { switch: SwitchId, request: RequestId, result: RpcResult },
    Message { switch: SwitchId, stream: StreamNo, message: StreamMessageResponse },
    Ended { switch: SwitchId, stream: StreamNo, end: StreamEnd },
    Timer(TimerKey),
    Script(super::Step),
    Fault(u32),
    Report(JobId),
    Joined { job: JobId, generation: Generation },
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    request: RequestId,
    deadline: Time,
    /// Telemetry: it draws its delays apart.
    reading: bool,
}

/// Control events by place, so that the queue carries small numbers.
#[derive(Debug, Default)]
pub struct Control {
    waiting: Vec<Option<Waiting>>,
    free: Vec<u32>,
    /// Streams keep their order: when the last message to and from a switch arrives.
    to_switch: Vec<Time>,
    from_switch: Vec<Time>,
    digest: u64,
}

impl Control {
    fn put(&mut self, waiting: Waiting) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.waiting[place as usize] = Some(waiting);
                place
            }
            None => {
                self.waiting.push(Some(waiting));
                self.waiting.len() as u32 - 1
            }
        }
    }

    /// Hash over everything that was on its way and arrived.
    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    /// Folds an event into the digest: its text form is a function of its value, and control events are few.
    fn note(&mut self, now: Time, waiting: &Waiting) {
        let mut hash = rustc_hash::FxHasher::default();
        hash.write_u64(self.digest);
        hash.write_u64(now.0);
        hash.write(format!("{waiting:?}").as_bytes());
        self.digest = hash.finish();
    }

    pub(super) fn in_use(&self) -> usize {
        self.waiting.len() - self.free.len()
    }

    fn take(&mut self, place: u32) -> Option<Waiting> {
        self.free.push(place);
        self.waiting.get_mut(place as usize)?.take()
    }

    fn after(line: &mut Vec<Time>, switch: SwitchId, at: Time) -> Time {
        if line.len() <= switch.index() {
            line.resize(switch.index() + 1, Time::ZERO);
        }
        let at = at.max(line[switch.index()]);
        line[switch.index()] = at;
        at
    }
}

impl<W: Wire> World<W> {
    pub(super) fn push(&mut self, at: Time, waiting: Waiting) {
        let place = self.control.put(waiting);
        self.queue.push(at, Event::Control(place));
    }

    pub(super) fn delay(&mut self) -> Span {
        self.drawn_delay(false)
    }

    /// Telemetry has draws of its own, so that a run goes the same way however, and whether, the fabric is read.
    fn drawn_delay(&mut self, reading: bool) -> Span {
        let Delays { shortest, longest, .. } = self.delays;
        let random = if reading { &mut self.reading } else { &mut self.random };
        Span(random.random_range(shortest.0..=longest.0.max(shortest.0)))
    }

    /// Steps the core and starts what it wants done, in order.
    pub(super) fn step_core(&mut self, input: Input) -> Result<(), WorldError> {
        let now = self.queue.now();
        for output in self.core.step(now, input) {
            self.execute(now, output)?;
        }
        Ok(())
    }

    fn execute(&mut self, now: Time, output: Output) -> Result<(), WorldError> {
        match output {
            Output::Persist(batch) => {
                use crate::controller::store::Store as _;
                let done = self.store.commit(&batch);
                done.map_err(|error| WorldError::Store { reason: error.to_string() })?;
            }
            Output::OpenStream { switch, stream } => {
                let at = self.arrival(now, switch);
                self.push(at, Waiting::Open { switch, stream });
            }
            Output::Send { switch, stream, messages } => {
                let at = match messages.iter().all(is_packet_out) {
                    true => self.in_line(now, switch, true),
                    false => self.arrival(now, switch),
                };
                self.push(at, Waiting::Send { switch, stream, messages });
            }
            Output::CloseStream { switch, stream } => {
                let at = self.arrival(now, switch);
                self.push(at, Waiting::Close { switch, stream });
            }
            Output::Call { switch, request, deadline, rpc } => {
                let reading = self.core.is_reading(switch, request);
                let at = now + self.drawn_delay(reading);
                if let Some(out) = self.calls_out.get_mut(switch.index()) {
                    *out += 1;
                }
                let call = Sent { request, deadline, reading };
                self.push(at, Waiting::Call { switch, call, rpc });
            }
            Output::Timer { at, key } => self.push(at, Waiting::Timer(key)),
            Output::Notify(notice) => self.notice(now, notice)?,
        }
        Ok(())
    }

    /// Streams are ordered: a message never overtakes the one before it.
    fn arrival(&mut self, now: Time, switch: SwitchId) -> Time {
        self.in_line(now, switch, false)
    }

    fn in_line(&mut self, now: Time, switch: SwitchId, reading: bool) -> Time {
        let at = now + self.drawn_delay(reading);
        Control::after(&mut self.control.to_switch, switch, at)
    }

    fn delivery(&mut self, now: Time, switch: SwitchId, reading: bool) -> Time {
        let at = now + self.drawn_delay(reading);
        Control::after(&mut self.control.from_switch, switch, at)
    }

    pub(super) fn control_event(&mut self, now: Time, place: u32) -> Result<Happened, WorldError> {
        let Some(waiting) = self.control.take(place) else { return Ok(Happened::Stepped) };
        if let Some(end) = self.asleep(now, &waiting) {
            self.oversleep(now, end, waiting);
            return Ok(Happened::Stepped);
        }
        self.control.note(now, &waiting);
        let input = match waiting {
            Waiting::Open { switch, stream } => {
                self.wire.open(switch, now, stream)?;
                self.touched(now, switch)?;
                return Ok(Happened::Executed(switch, false));
            }
            Waiting::Close { switch, stream } => {
                self.wire.close(switch, now, stream)?;
                self.touched(now, switch)?;
                return Ok(Happened::Executed(switch, false));
            }
            Waiting::Send { switch, stream, messages } => {
                self.wire.send(switch, now, stream, &messages)?;
                self.touched(now, switch)?;
                return Ok(Happened::Executed(switch, false));
            }
            Waiting::Late { switch, call, rpc } => {
                let changes = matches!(rpc, Rpc::Write(_) | Rpc::SetPipeline(_));
                let result = self.wire.call(switch, now, rpc.clone())?;
                self.counts.updates += if call.reading { 0 } else { executed(&rpc, &result) };
                self.touched(now, switch)?;
                return Ok(Happened::Executed(switch, changes));
            }
            Waiting::Call { switch, call, rpc } => return self.call(now, switch, call, rpc),
            Waiting::Script(step) => {
                self.scripted(now, step)?;
                return Ok(Happened::Scripted);
            }
            Waiting::Fault(number) => return self.fault(now, number),
            Waiting::Reply { switch, request, result } => {
                if let Some(out) = self.calls_out.get_mut(switch.index()) {
                    *out = out.saturating_sub(1);
                }
                Input::Reply { switch, request, result }
            }
            Waiting::Message { switch, stream, message } => {
                self.counts.messages += 1;
                Input::Stream { switch, stream, message }
            }
            Waiting::Ended { switch, stream, end } => Input::StreamEnded { switch, stream, end },
            Waiting::Timer(key) => Input::Timer(key),
            Waiting::Joined { job, generation } => {
                let own = self.flows.iter().filter(|flow| self.is_member(flow, generation, job));
                let flows = own.cloned().collect();
                Input::Joined { job, generation, flows }
            }
            Waiting::Report(job) => {
                let (iterations, compute) = self.net.report(job);
                Input::Progress { job, iterations, compute }
            }
        };
        self.step_core(input)?;
        Ok(Happened::Stepped)
    }

    /// When the switch that something is for wakes up, if it stalls.
    fn asleep(&self, now: Time, waiting: &Waiting) -> Option<Time> {
        match waiting {
            Waiting::Open { switch, .. }
            | Waiting::Close { switch, .. }
            | Waiting::Send { switch, .. }
            | Waiting::Call { switch, .. }
            | Waiting::Late { switch, .. } => self.faults.stalled_until(*switch, now),
            _ => None,
        }
    }

    /// What comes to a switch that stalls is executed when it wakes up. A caller waits until its deadline and no longer.
    fn oversleep(&mut self, now: Time, end: Time, waiting: Waiting) {
        match waiting {
            Waiting::Call { switch, call, rpc } if call.deadline < end => {
                let gone = Failure::new(Code::DeadlineExceeded, "no answer before the deadline");
                let (at, request) = (call.deadline.max(now), call.request);
                self.push(at, Waiting::Reply { switch, request, result: Err(gone) });
                self.push(end, Waiting::Late { switch, call, rpc });
            }
            other => self.push(end, other),
        }
    }

    /// The exchange of a call: the world stands still until the switch has answered.
    fn call(
        &mut self,
        now: Time,
        switch: SwitchId,
        Sent { request, deadline, reading }: Sent,
        rpc: Rpc,
    ) -> Result<Happened, WorldError> {
        let changes = matches!(rpc, Rpc::Write(_) | Rpc::SetPipeline(_));
        let fate = match reading {
            true => self.faults.on_reading(switch),
            false => self.faults.on_call(switch, &rpc),
        };
        let sent = match &fate {
            Fate::Refuse { update, .. } => without(&rpc, *update),
            _ => rpc.clone(),
        };
        let mut result = match fate {
            Fate::Fail(code) => Err(Failure::new(code, "drawn by the simulation")),
            _ => self.wire.call(switch, now, sent)?,
        };
        self.faults.distort_answer(switch, &mut result);
        self.counts.calls += 1;
        // An interval that begins is no entry.
        self.counts.updates += if reading { 0 } else { executed(&rpc, &result) };
        self.touched(now, switch)?;
        let answer = now + self.delays.service + self.drawn_delay(reading);
        let result = match fate {
            Fate::Normal | Fate::Fail(_) => Some(result),
            Fate::LoseReply => None,
            Fate::Refuse { update, code } => Some(with_refusal(&rpc, result, update, code)),
        };
        match result {
            Some(result) if answer <= deadline => {
                self.push(answer, Waiting::Reply { switch, request, result });
            }
            _ => {
                let gone = Failure::new(Code::DeadlineExceeded, "no answer before the deadline");
                self.push(deadline.max(now), Waiting::Reply { switch, request, result: Err(gone) });
            }
        }
        Ok(Happened::Executed(switch, changes))
    }

    /// After every exchange: what the switch says, and when its data path wants to run.
    pub(super) fn touched(&mut self, now: Time, switch: SwitchId) -> Result<(), WorldError> {
        self.net.touched(&mut self.queue, switch);
        self.drain(now, switch)
    }

    /// Puts what a switch has said on its way.
    pub(super) fn drain(&mut self, now: Time, switch: SwitchId) -> Result<(), WorldError> {
        for (stream, mut said) in self.wire.drain(switch, now)? {
            if let Said::Message(message) = &mut said {
                self.faults.distort_packet(switch, message);
            }
            let packet = matches!(&said, Said::Message(message)
                if matches!(message.update, Some(Update::Packet(_))));
            let copies = if packet { self.faults.on_packet_in(switch) } else { 1 };
            if copies == 2
                && let Said::Message(message) = &said
            {
                let (at, message) = (self.delivery(now, switch, true), message.clone());
                self.push(at, Waiting::Message { switch, stream, message });
            }
            if copies == 0 {
                continue;
            }
            let at = self.delivery(now, switch, packet);
            let waiting = match said {
                Said::Message(message) => Waiting::Message { switch, stream, message },
                Said::Ended(end) => Waiting::Ended { switch, stream, end },
            };
            self.push(at, waiting);
        }
        Ok(())
    }

    /// Hosts sort their data into the plan's queues, as an agent with a traffic-class policy does. A packet is made when
    /// its transmission starts, so a change here never reorders a flow.
    fn set_host_classes(&mut self) {
        for (&flow, goal) in self.core.goals() {
            self.net.set_class(flow, goal.forward.queue);
        }
    }

    fn notice(&mut self, now: Time, notice: Notice) -> Result<(), WorldError> {
        match &notice {
            Notice::JobAccepted { .. } => self.accepted(),
            Notice::JobReady { job } => self.ready(now, *job),
            Notice::JobRefused { job, reason } => {
                let name = self.jobs.get(job.index()).map_or("?", |job| job.name.as_str());
                let job = name.to_owned();
                return Err(WorldError::JobRefused { job, reason: reason.clone() });
            }
            Notice::Installed { generation } => self.installed(now, *generation),
            Notice::Planned { .. }
            | Notice::StragglerRaised { .. }
            | Notice::ReactionUndone { .. } => self.set_host_classes(),
            Notice::FlipForced { .. } => self.counts.forced += 1,
            Notice::Regrouped { .. } => self.regroup(now, &notice)?,
            Notice::JobStopped { job, .. } => self.stopped(now, *job),
            _ => {}
        }
        if let Some(plans) = &mut self.plans {
            plans.note(now, self.core.generation(), self.core.goals());
        }
        if self.notices.len() < MAX_NOTICES {
            self.notices.push((now, notice));
        }
        Ok(())
    }
}

/// Notices kept: far more than any run of a sane controller makes, and a bound for one that is not.
const MAX_NOTICES: usize = 1_000_000;

fn is_packet_out(message: &StreamMessageRequest) -> bool {
    use crate::p4runtime::proto::p4::v1::stream_message_request::Update;
    matches!(message.update, Some(Update::Packet(_)))
}

/// Updates of a Write that the switch executed.
fn executed(rpc: &Rpc, result: &RpcResult) -> u64 {
    let Rpc::Write(write) = rpc else { return 0 };
    match result {
        Ok(_) => write.updates.len() as u64,
        Err(failure) => {
            failure.updates.iter().filter(|error| error.canonical_code == 0).count() as u64
        }
    }
}

/// A Write without one of its updates.
fn without(rpc: &Rpc, update: usize) -> Rpc {
    let mut rpc = rpc.clone();
    if let Rpc::Write(write) = &mut rpc
        && update < write.updates.len()
    {
        write.updates.remove(update);
    }
    rpc
}

/// The answer to a Write of which one update was refused and the rest was given to the switch.
fn with_refusal(rpc: &Rpc, result: RpcResult, update: usize, code: Code) -> RpcResult {
    use crate::p4runtime::proto::p4::v1::Error;
    let Rpc::Write(write) = rpc else { return result };
    let mut outcomes = match result {
        Ok(_) => vec![Error::default(); write.updates.len().saturating_sub(1)],
        Err(failure) if failure.updates.is_empty() => return Err(failure),
        Err(failure) => failure.updates,
    };
    let refusal = Error {
        canonical_code: code.number(),
        message: "drawn by the simulation".into(),
        ..Error::default()
    };
    outcomes.insert(update.min(outcomes.len()), refusal);
    let mut failure = Failure::new(Code::Unknown, "some updates failed");
    failure.updates = outcomes;
    Err(failure)
}
