//! The sessions' side of the core: what a switch's [`Session`] wants done, done.
//!
//! In: stream messages, stream ends, timers, refused calls. Out: streams opened and closed, epochs stored before they are
//! sent, `became_primary`, foreign switches. Must not decide arbitration: the session does.

use super::super::config::Config;
use super::super::messages::{Event, Output, StreamNo, TimerKey};
use super::switch::Phase;
use super::writes::VERIFY_AFTER;
use super::{Core, Key};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::rpc::StreamEnd;
use crate::p4runtime::session::{self, Action, Session};
use crate::time::Span;

/// A session that has not started.
pub(super) fn new(device_id: u64) -> Session {
    Session::new(session::Config { device_id, role: None })
}

/// Whether a session may take a switch over from another live controller.
pub(super) const fn start(config: &Config) -> session::Event {
    session::Event::Start { takeover: config.takeover }
}

impl Core {
    /// Tells a switch's session something, and does what it wants.
    pub(super) fn tell(&mut self, id: SwitchId, event: session::Event) {
        let now = self.now;
        let mut actions = self.switches[id.index()].session.step(now, event);
        // An epoch is answered at once: it is stored before the arbitration that carries it goes out.
        while !actions.is_empty() {
            let mut more = Vec::new();
            for action in actions {
                if let Some(event) = self.act(id, action) {
                    more.extend(self.switches[id.index()].session.step(now, event));
                }
            }
            actions = more;
        }
    }

    fn act(&mut self, id: SwitchId, action: Action) -> Option<session::Event> {
        match action {
            Action::NeedEpoch { least } => {
                if self.epoch < least {
                    self.epoch = least;
                    self.dirty.insert(Key::Epoch);
                }
                return Some(session::Event::Epoch(self.epoch));
            }
            Action::OpenStream => {
                let switch = &mut self.switches[id.index()];
                switch.stream = StreamNo(switch.stream.0 + 1);
                let stream = switch.stream;
                self.emit(Output::OpenStream { switch: id, stream });
            }
            Action::Send(message) => {
                let stream = self.switches[id.index()].stream;
                self.emit(Output::Send { switch: id, stream, messages: vec![message] });
            }
            Action::CloseStream => {
                let stream = self.switches[id.index()].stream;
                self.emit(Output::CloseStream { switch: id, stream });
            }
            Action::Timer(at) => self.emit(Output::Timer { at, key: TimerKey::Session(id) }),
            Action::Primary(_) => self.became_primary(id),
            Action::Demoted => self.demoted(id),
            Action::Foreign(other) => self.foreign(id, other),
            Action::Deliver(message) => self.delivered(id, &message),
            // The session tries again by itself.
            Action::Failed(_) => {}
        }
        None
    }

    /// A packet, digest or notification. Readout replies are matched by their id before anything else is looked at, probes by their MAC; the
    /// rest has no listener yet.
    fn delivered(&mut self, id: SwitchId, message: &proto::StreamMessageResponse) {
        if let Some(proto::stream_message_response::Update::Packet(packet)) = &message.update {
            self.readout_answered(id, packet);
            self.probe_heard(id, packet);
        }
    }

    /// No Write may go out any more.
    fn demoted(&mut self, id: SwitchId) {
        // What was in flight may still be executed after the next full read.
        let in_flight = self.switches[id.index()].writes_in_flight() > 0;
        self.went_down(id);
        if in_flight {
            let after = Span(self.config.limits.call.0.saturating_mul(VERIFY_AFTER));
            self.set_timer(after, TimerKey::Verify(id));
        }
    }

    fn foreign(&mut self, id: SwitchId, other: proto::Uint128) {
        let switch = &mut self.switches[id.index()];
        switch.phase = Phase::Foreign;
        switch.forget_calls();
        let known = switch.excluded;
        self.telemetry_down(id);
        self.exclude(id);
        if !known {
            self.notify(Event::Foreign { switch: id, high: other.high, low: other.low });
        }
    }

    pub(super) fn streamed(
        &mut self,
        id: SwitchId,
        stream: StreamNo,
        message: proto::StreamMessageResponse,
    ) {
        if self.current(id, stream) {
            self.tell(id, session::Event::Message(message));
        }
    }

    pub(super) fn stream_ended(&mut self, id: SwitchId, stream: StreamNo, end: StreamEnd) {
        if self.current(id, stream) {
            self.tell(id, session::Event::Ended(end));
        }
    }

    fn current(&self, id: SwitchId, stream: StreamNo) -> bool {
        self.switches.get(id.index()).is_some_and(|switch| switch.stream == stream)
    }

    /// A call said that this controller is not primary, or that the pipeline is gone.
    pub(super) fn restart_session(&mut self, id: SwitchId) {
        self.tell(id, session::Event::Denied);
    }
}

/// The id that Writes carry; the server refuses them when there is none.
pub(super) fn election_id(session: &Session) -> Option<proto::Uint128> {
    session.election_id()
}
