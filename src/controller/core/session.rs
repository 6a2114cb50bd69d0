//! One stream per switch, and who is primary there.
//!
//! In: arbitration answers, stream ends, timers. Out: streams opened and closed, election ids, `became_primary`. Must not
//! know what is done once primary.
//!
//! Election id = {high: epoch, low: 1}; the epoch is stored before it is first sent (design: control, "Identity" and
//! "Arbitration answers").
//!
//! ```text
//!  Closed ──open──► Asked ──OK──────────────────────────► Primary ──not OK──► (as the code says)
//!    ▲                │ ALREADY_EXISTS ──► Foreign, or with `takeover` reported + 1
//!    │                │ NOT_FOUND ───────► epoch above the reported one, asked again
//!    └── stream ended: pause, doubling; INVALID_ARGUMENT (our own old stream): another epoch
//! ```

use super::super::config::{Config, Limits};
use super::super::messages::{Event, Output, StreamNo, TimerKey};
use super::switch::Phase;
use super::{Core, Key};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update;
use crate::p4runtime::rpc::{Code, StreamEnd};
use crate::time::Span;

/// Pause after "election id already exists": the server has not seen the end of our old stream yet.
const OWN_STREAM_PAUSE: Span = Span::from_millis(500);

/// Where the arbitration with one switch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Asked,
    Primary,
    Foreign,
}

/// One switch's session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    device_id: u64,
    state: State,
    /// The epoch last sent.
    epoch: u64,
    pause: Span,
    /// A reopening is under way: a `Session` timer is set.
    waiting: bool,
}

/// A session that has not started.
pub(super) const fn new(device_id: u64, config: &Config) -> Session {
    Session {
        device_id,
        state: State::Closed,
        epoch: 0,
        pause: config.limits.retry,
        waiting: false,
    }
}

/// The id that Writes carry.
pub(super) const fn election_id(session: &Session) -> Option<proto::Uint128> {
    Some(proto::Uint128 { high: session.epoch, low: 1 })
}

fn longer(pause: Span, limits: &Limits) -> Span {
    Span(pause.0.saturating_mul(2)).min(limits.retry_max)
}

impl Core {
    /// Opens a new stream and asks to be primary.
    pub(super) fn start_session(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        switch.stream = StreamNo(switch.stream.0 + 1);
        let stream = switch.stream;
        self.emit(Output::OpenStream { switch: id, stream });
        self.arbitrate(id);
    }

    fn arbitrate(&mut self, id: SwitchId) {
        let epoch = self.epoch;
        let switch = &mut self.switches[id.index()];
        switch.session.state = State::Asked;
        switch.session.epoch = epoch;
        let request = proto::StreamMessageRequest {
            update: Some(proto::stream_message_request::Update::Arbitration(
                proto::MasterArbitrationUpdate {
                    device_id: switch.session.device_id,
                    election_id: election_id(&switch.session),
                    ..Default::default()
                },
            )),
        };
        let stream = switch.stream;
        self.emit(Output::Send { switch: id, stream, messages: vec![request] });
    }

    pub(super) fn streamed(
        &mut self,
        id: SwitchId,
        stream: StreamNo,
        message: proto::StreamMessageResponse,
    ) {
        let current = self.switches.get(id.index()).is_some_and(|switch| switch.stream == stream);
        if !current {
            return;
        }
        // Packet-ins, digests and notifications have no listener yet.
        if let Some(Update::Arbitration(update)) = message.update {
            self.arbitrated(id, &update);
        }
    }

    fn arbitrated(&mut self, id: SwitchId, update: &proto::MasterArbitrationUpdate) {
        let code = update.status.as_ref().map_or(Code::Ok, |status| Code::from_number(status.code));
        let (high, low) = update.election_id.as_ref().map_or((0, 0), |id| (id.high, id.low));
        let was_primary = self.switches[id.index()].session.state == State::Primary;
        if code == Code::Ok {
            let switch = &mut self.switches[id.index()];
            switch.session.state = State::Primary;
            switch.session.pause = self.config.limits.retry;
            if !was_primary {
                self.became_primary(id);
            }
            return;
        }
        if was_primary {
            self.went_down(id);
        }
        match code {
            // Nobody is primary, and the server remembers a higher id.
            Code::NotFound => self.climb(id, high),
            Code::AlreadyExists if self.config.takeover => self.climb(id, high),
            _ => self.foreign(id, high, low),
        }
    }

    /// Asks again with an epoch above `reported`.
    fn climb(&mut self, id: SwitchId, reported: u64) {
        self.raise_epoch(reported);
        self.arbitrate(id);
    }

    fn raise_epoch(&mut self, reported: u64) {
        self.epoch = self.epoch.max(reported).saturating_add(1);
        self.dirty.insert(Key::Epoch);
    }

    fn foreign(&mut self, id: SwitchId, high: u64, low: u64) {
        let switch = &mut self.switches[id.index()];
        let known = switch.session.state == State::Foreign;
        switch.session.state = State::Foreign;
        switch.phase = Phase::Foreign;
        switch.forget_calls();
        if !known {
            self.notify(Event::Foreign { switch: id, high, low });
            self.exclude(id);
        }
    }

    pub(super) fn stream_ended(&mut self, id: SwitchId, stream: StreamNo, end: StreamEnd) {
        let Some(switch) = self.switches.get(id.index()) else { return };
        if switch.stream != stream || switch.session.waiting {
            return;
        }
        if end.code == Code::InvalidArgument {
            self.raise_epoch(0);
            let session = &mut self.switches[id.index()].session;
            session.pause = session.pause.max(OWN_STREAM_PAUSE);
        }
        self.reopen_later(id);
    }

    /// Gives the stream up and starts again: a Write said that this controller is not primary, or the pipeline is gone.
    pub(super) fn restart_session(&mut self, id: SwitchId) {
        let switch = &self.switches[id.index()];
        if switch.session.waiting {
            return;
        }
        let stream = switch.stream;
        self.emit(Output::CloseStream { switch: id, stream });
        self.reopen_later(id);
    }

    fn reopen_later(&mut self, id: SwitchId) {
        let limits = self.config.limits;
        let switch = &mut self.switches[id.index()];
        switch.session.state = State::Closed;
        switch.session.waiting = true;
        let pause = switch.session.pause;
        switch.session.pause = longer(pause, &limits);
        // What was in flight may still be executed after the next full read.
        let in_flight = switch.writes_in_flight() > 0;
        self.went_down(id);
        self.set_timer(pause, TimerKey::Session(id));
        if in_flight {
            let after = Span(limits.call.0.saturating_mul(super::writes::VERIFY_AFTER));
            self.set_timer(after, TimerKey::Verify(id));
        }
    }

    pub(super) fn session_timer(&mut self, id: SwitchId) {
        let Some(switch) = self.switches.get_mut(id.index()) else { return };
        if std::mem::take(&mut switch.session.waiting) {
            self.start_session(id);
        }
    }
}
