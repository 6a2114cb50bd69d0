//! A controller's session with one switch: arbitration, back-off, re-opening. Sans-IO.
//!
//! ```text
//!             Start                 epoch held              OK
//!   Idle ───────────► AwaitEpoch ───────────► Arbitrating ──────► Primary
//!    ▲ Stop (from      ▲   ▲                    │  │  │              │ not OK, stream gone, write denied:
//!    │ everywhere)     │   └──── NOT_FOUND ─────┘  │  │              │ Demoted first
//!    │                 │       (ask above it)      │  └─ ALREADY_EXISTS ──► Foreign (or, to take over, Backoff)
//!    │                 └────────────── Backoff ◄───┘ stream ended, no answer
//! ```
//!
//! In: what the core wants, what the stream says, time. Out: what to do, in order. Must not know clocks, sockets or the
//! store: the election id's epoch comes from the core, which stores it durably before it hands it over.
//!
//! Rules (specification section 5): an election id is {high: epoch, low: 1}. A live primary with a
//! higher id is never climbed over unless `takeover` is set: the switch is foreign. Nobody primary but a higher id
//! remembered: ask for an epoch above it. "Already exists": our own old stream is still open at the server; wait and take
//! the next epoch. After every new stream the core must read everything before it writes.

use crate::p4runtime::proto::p4::v1::stream_message_request::Update as Request;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use crate::p4runtime::proto::p4::v1::{
    MasterArbitrationUpdate, Role, StreamMessageRequest, StreamMessageResponse, Uint128,
};
use crate::p4runtime::rpc::{Code, StreamEnd};
use crate::time::{Span, Time};

/// First wait before a stream is opened again.
pub const BACKOFF_MIN: Span = Span::from_millis(500);
/// Longest wait; each failure doubles it up to here, so a dead switch costs an attempt in eight seconds.
pub const BACKOFF_MAX: Span = Span::from_millis(8_000);
/// Time for the answer to an arbitration. A server may first finish the Writes of the old primary.
pub const ANSWER_TIMEOUT: Span = Span::from_millis(5_000);

/// Whose session, and as what.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The switch's P4Runtime device id.
    pub device_id: u64,
    /// The role to hold; `None` is the default role with full access.
    pub role: Option<Role>,
}

/// What happens to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The controller leads and wants to be primary; may be repeated to change `takeover`.
    Start {
        /// Climb over a live foreign primary.
        takeover: bool,
    },
    /// The controller no longer leads (or shuts down): let go at once.
    Stop,
    /// The core has stored this epoch durably.
    Epoch(u64),
    /// The stream said something.
    Message(StreamMessageResponse),
    /// The stream has ended, or could not be opened.
    Ended(StreamEnd),
    /// A call was refused as a whole with `PERMISSION_DENIED`, `FAILED_PRECONDITION` or `NOT_FOUND`: what was
    /// believed about the switch is no longer true.
    Denied,
    /// The time of the last `Timer` action has come; early or stale ones do no harm.
    Timer,
}

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Store an epoch of at least this, durably, then answer with `Event::Epoch`.
    NeedEpoch {
        /// The smallest epoch that would do.
        least: u64,
    },
    /// Open the stream. Failure to do so is `Event::Ended`.
    OpenStream,
    /// Send on the stream that was opened last.
    Send(StreamMessageRequest),
    /// Close the stream; nothing more may be reported of it.
    CloseStream,
    /// Call back with `Event::Timer` at this time; replaces the timer before.
    Timer(Time),
    /// We are primary with this id: read everything, then write.
    Primary(Uint128),
    /// We are primary no longer: stop writing and drop what waits.
    Demoted,
    /// Another live controller is primary with this id; leave the switch out of planning and tell people.
    Foreign(Uint128),
    /// The stream ended for this reason; another attempt follows.
    Failed(StreamEnd),
    /// A packet, digest, notification or error of the switch.
    Deliver(StreamMessageResponse),
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not wanted.
    Idle,
    /// Waits for the core to store an epoch.
    AwaitEpoch,
    /// Waits for the answer to an arbitration.
    Arbitrating {
        /// Until then.
        until: Time,
    },
    /// May write.
    Primary,
    /// Another controller is primary.
    Foreign,
    /// Waits before the next attempt.
    Backoff {
        /// Until then.
        until: Time,
    },
}

/// The session with one switch.
#[derive(Clone, Debug)]
pub struct Session {
    config: Config,
    state: State,
    /// The stream is open as far as we know.
    open: bool,
    takeover: bool,
    /// The last epoch from the core.
    epoch: Option<u64>,
    /// The epoch of the last arbitration sent: what the server knows us by.
    sent: Option<u64>,
    /// The smallest epoch that may be used next.
    least: u64,
    /// An epoch has been asked for and not yet come.
    asked: bool,
    /// The next wait.
    backoff: Span,
}

impl Session {
    /// A session that waits for `Start`.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Idle,
            open: false,
            takeover: false,
            epoch: None,
            sent: None,
            least: 0,
            asked: false,
            backoff: BACKOFF_MIN,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether Writes may be sent.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        self.state == State::Primary
    }

    /// The id for Writes while primary.
    #[must_use]
    pub fn election_id(&self) -> Option<Uint128> {
        self.sent.filter(|_| self.is_primary()).map(id)
    }

    /// Takes an event and says what to do.
    #[must_use]
    pub fn step(&mut self, now: Time, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        match event {
            Event::Start { takeover } => self.start(now, takeover, &mut out),
            Event::Stop => self.stop(&mut out),
            Event::Epoch(epoch) => {
                self.asked = false;
                self.epoch = self.epoch.max(Some(epoch));
                if self.state == State::AwaitEpoch {
                    self.arbitrate(now, &mut out);
                }
            }
            Event::Message(message) if self.open => self.message(now, message, &mut out),
            Event::Ended(end) if self.open => self.ended(now, end, &mut out),
            // Left over from a stream that was closed.
            Event::Message(_) | Event::Ended(_) => {}
            Event::Denied => {
                if self.is_primary() {
                    out.push(Action::Demoted);
                    self.close(&mut out);
                    self.back_off(now, &mut out);
                }
            }
            Event::Timer => self.timer(now, &mut out),
        }
        out
    }

    fn start(&mut self, now: Time, takeover: bool, out: &mut Vec<Action>) {
        self.takeover = takeover;
        match self.state {
            State::Idle => {
                self.backoff = BACKOFF_MIN;
                self.arbitrate(now, out);
            }
            State::Foreign if takeover => self.arbitrate(now, out),
            _ => {}
        }
    }

    fn stop(&mut self, out: &mut Vec<Action>) {
        if self.is_primary() {
            out.push(Action::Demoted);
        }
        self.close(out);
        // Whoever leads next may have used higher ones: the next leadership asks for its own.
        self.epoch = None;
        // What was sent once is the floor of whatever comes later: election ids never fall.
        self.least = self.least.max(self.sent.unwrap_or(0));
        self.state = State::Idle;
    }

    fn close(&mut self, out: &mut Vec<Action>) {
        if std::mem::take(&mut self.open) {
            out.push(Action::CloseStream);
        }
    }

    /// Asks to be primary, with an epoch that may be used, on a stream that is open.
    fn arbitrate(&mut self, now: Time, out: &mut Vec<Action>) {
        let Some(epoch) = self.epoch.filter(|epoch| *epoch >= self.least) else {
            self.state = State::AwaitEpoch;
            if !std::mem::replace(&mut self.asked, true) {
                out.push(Action::NeedEpoch { least: self.least });
            }
            return;
        };
        if !std::mem::replace(&mut self.open, true) {
            out.push(Action::OpenStream);
        }
        let update = MasterArbitrationUpdate {
            device_id: self.config.device_id,
            role: self.config.role.clone(),
            election_id: Some(id(epoch)),
            status: None,
        };
        self.sent = Some(epoch);
        out.push(Action::Send(StreamMessageRequest { update: Some(Request::Arbitration(update)) }));
        let until = now + ANSWER_TIMEOUT;
        self.state = State::Arbitrating { until };
        out.push(Action::Timer(until));
    }

    fn back_off(&mut self, now: Time, out: &mut Vec<Action>) {
        let until = now + self.backoff;
        self.backoff = Span(self.backoff.0.saturating_mul(2).min(BACKOFF_MAX.0));
        self.state = State::Backoff { until };
        out.push(Action::Timer(until));
    }

    fn message(&mut self, now: Time, message: StreamMessageResponse, out: &mut Vec<Action>) {
        let Some(Response::Arbitration(update)) = &message.update else {
            out.push(Action::Deliver(message));
            return;
        };
        let code = update.status.as_ref().map_or(Code::Unknown, |s| Code::from_number(s.code));
        let reported = update.election_id;
        if code == Code::Ok {
            return self.won(out);
        }
        let arbitrating = matches!(self.state, State::Arbitrating { .. });
        let ours = self.sent.map(id).map(number);
        if arbitrating && reported.map(number) < ours && reported.is_some() {
            // Sent before our arbitration was handled; the answer is still to come.
            return;
        }
        if self.is_primary() {
            out.push(Action::Demoted);
        }
        if let Some(reported) = reported {
            // An id beats {h, l} when its epoch is above h; {h, 1} would do for l = 0, but the next is as good.
            self.least = self.least.max(reported.high.saturating_add(1));
        }
        let climbs = self.sent.is_none_or(|sent| sent < self.least);
        match (code, reported) {
            (Code::AlreadyExists, Some(primary)) => {
                out.push(Action::Foreign(primary));
                if self.takeover {
                    // Two controllers that take over would fight at line rate; the wait bounds it.
                    self.back_off(now, out);
                } else {
                    self.state = State::Foreign;
                }
            }
            // Nobody is primary: try again with an id above the one remembered.
            (_, Some(_)) if climbs => self.arbitrate(now, out),
            // The same answer would come again at once.
            _ => self.back_off(now, out),
        }
    }

    fn won(&mut self, out: &mut Vec<Action>) {
        if self.is_primary() {
            return;
        }
        self.state = State::Primary;
        self.backoff = BACKOFF_MIN;
        if let Some(epoch) = self.sent {
            out.push(Action::Primary(id(epoch)));
        }
    }

    fn ended(&mut self, now: Time, end: StreamEnd, out: &mut Vec<Action>) {
        self.open = false;
        if self.is_primary() {
            out.push(Action::Demoted);
        }
        if end.code == Code::InvalidArgument {
            // The id is still held by our own old stream.
            self.least = self.least.max(self.sent.map_or(0, |epoch| epoch.saturating_add(1)));
        }
        out.push(Action::Failed(end));
        self.back_off(now, out);
    }

    fn timer(&mut self, now: Time, out: &mut Vec<Action>) {
        match self.state {
            State::Arbitrating { until } if now >= until => {
                self.close(out);
                let message = "no answer to the arbitration".to_owned();
                out.push(Action::Failed(StreamEnd { code: Code::DeadlineExceeded, message }));
                self.back_off(now, out);
            }
            State::Backoff { until } if now >= until => self.arbitrate(now, out),
            _ => {}
        }
    }
}

/// The election id of an epoch.
const fn id(epoch: u64) -> Uint128 {
    Uint128 { high: epoch, low: 1 }
}

/// An election id as a number.
const fn number(id: Uint128) -> u128 {
    ((id.high as u128) << 64) | id.low as u128
}

#[cfg(test)]
mod tests;
