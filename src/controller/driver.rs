//! Runs a core in real time: over gRPC to the switches, with a store on disk and the machine's clock.
//!
//! ```text
//!  API, CLI ── Handle ──►┐                      ┌─► store (durable before anything later)
//!  switches ── answers ─►├─ one loop ──► core ──┼─► links: one task per stream, one per call
//!  timers ──────────────►┘                      └─► events to whoever listens
//! ```
//! In: a core, a store, the address of every switch. Out: what the core wants done, done; events. Must not decide anything: which
//! input follows which output is the core's business, and a recording of the inputs (`record`) replays every decision.
//!
//! One loop steps the core, so inputs have one order. It never waits for a switch: calls and streams are tasks of their own, each
//! with the core's deadline, and a stream that takes its messages too slowly is cut off rather than waited for.

pub mod api;
mod link;
pub mod metrics;
mod timers;

use super::core::Core;
use super::messages::{Event, Input, Output};
use super::record;
use super::store::{Store, StoreError};
use crate::id::SwitchId;
use crate::p4runtime::client::tls::Credentials;
use crate::pipeline::probe::ProbeKey;
use crate::time::{Span, Time};
use link::{Cables, Link};
use metrics::CallTimes;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use timers::Timers;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Inputs that wait for the core. Calls in flight are bounded per switch and streams wait at the socket, so this is a cushion for
/// bursts of packet-ins, not a store.
const INPUTS_MAX: usize = 4_096;
/// Events that a listener may lag behind before it misses some: more than one plan of a large fabric makes.
const EVENTS_MAX: usize = 16_384;

/// Where a switch is reached.
#[derive(Clone, Debug)]
pub struct Peer {
    /// For messages.
    pub name: String,
    /// `http://host:port`, or `https://` with credentials.
    pub address: String,
    /// Certificates, where the switch wants them.
    pub credentials: Option<Credentials>,
}

/// Why a driver ended.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// Not one address per switch.
    #[error(
        "{given} addresses for {switches} switches; give one per switch, in the order of the topology"
    )]
    Peers {
        /// Addresses given.
        given: usize,
        /// Switches of the core.
        switches: usize,
    },
    /// The store failed: nothing may be decided any more, since nothing can be promised.
    #[error("the store failed and the controller stops; start it again once this is mended")]
    Store(#[from] StoreError),
    /// The recording cannot be written.
    #[error("the recording cannot be written; free space or leave out --record")]
    Record(#[source] std::io::Error),
    /// An input that has no recorded form.
    #[error("an input cannot be recorded")]
    Line(#[from] record::RecordError),
    /// The clock of the machine is before 1970.
    #[error("the machine's clock is before 1970; set it")]
    Clock,
    /// No random numbers.
    #[error("the system gives no random numbers to sign probes with")]
    Random,
}

/// Why a request to the controller had no answer: it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the controller has ended")]
pub struct Gone;

type Look = Box<dyn FnOnce(&Core) + Send>;

enum Ask {
    Input(Box<Input>),
    Look(Look),
    Stop,
}

/// Speaks to a running driver. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    asks: mpsc::Sender<Ask>,
    /// Weak, so that whoever waits for an event of a driver that has ended hears of its end.
    events: broadcast::WeakSender<(Time, Event)>,
    calls: CallTimes,
}

impl Handle {
    /// The time that calls to switches took.
    #[must_use]
    pub const fn call_times(&self) -> &CallTimes {
        &self.calls
    }

    /// Hands the core an input; returns when it is queued, not when it is handled.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn input(&self, input: Input) -> Result<(), Gone> {
        self.asks.send(Ask::Input(Box::new(input))).await.map_err(|_| Gone)
    }

    /// Reads something of the core between two steps.
    ///
    /// # Errors
    /// [`Gone`].
    pub async fn look<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Core) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let look: Look = Box::new(move |core| {
            // Whoever asked may have gone away; that is theirs to know.
            let _ = answer.send(read(core));
        });
        self.asks.send(Ask::Look(look)).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Events from now on, each with its time since the controller started. A listener that lags more than 16,384 behind is told
    /// how many it missed.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<(Time, Event)> {
        match self.events.upgrade() {
            Some(events) => events.subscribe(),
            None => broadcast::channel(1).1,
        }
    }

    /// Asks the driver to end. What is stored stays; the next controller goes on from there.
    pub async fn stop(&self) {
        // One that has ended needs no asking.
        let _ = self.asks.send(Ask::Stop).await;
    }
}

/// What a driver is made with.
pub struct Parts<S> {
    /// The core, not booted.
    pub core: Core,
    /// Where it remembers.
    pub store: S,
    /// The switches, in the topology's order.
    pub peers: Vec<Peer>,
    /// Where inputs are recorded, if they are.
    pub record: Option<Box<dyn Write + Send>>,
}

/// A core in real time. See the module's head.
pub struct Driver<S> {
    core: Core,
    store: S,
    links: Vec<Link>,
    timers: Timers,
    started: Instant,
    asks: mpsc::Receiver<Ask>,
    inputs: mpsc::Receiver<Input>,
    events: broadcast::Sender<(Time, Event)>,
    record: Option<Box<dyn Write + Send>>,
}

impl<S: Store> Driver<S> {
    /// A driver at rest and the handle to it.
    ///
    /// # Errors
    /// [`DriverError::Peers`].
    #[allow(clippy::disallowed_methods, reason = "the driver owns the controller's clock")]
    pub fn new(parts: Parts<S>) -> Result<(Self, Handle), DriverError> {
        let switches = parts.core.switch_count();
        if parts.peers.len() != switches {
            return Err(DriverError::Peers { given: parts.peers.len(), switches });
        }
        let (asks, asked) = mpsc::channel(INPUTS_MAX);
        let (input, inputs) = mpsc::channel(INPUTS_MAX);
        let (events, _) = broadcast::channel(EVENTS_MAX);
        let calls = CallTimes::default();
        let links = parts.peers.into_iter().enumerate();
        let links = links.map(|(at, peer)| {
            let switch = SwitchId::from(at);
            let cables = cables(&parts.core, switch);
            Link::new(switch, peer, cables, calls.clone(), input.clone())
        });
        let links = links.collect();
        let driver = Self {
            core: parts.core,
            store: parts.store,
            links,
            timers: Timers::default(),
            started: Instant::now(),
            asks: asked,
            inputs,
            events,
            record: parts.record,
        };
        let events = driver.events.downgrade();
        Ok((driver, Handle { asks, events, calls }))
    }

    /// Boots the core and runs until somebody asks it to stop. Needs a runtime with several threads: a plan takes a while and must not
    /// hold up the switches' answers.
    ///
    /// # Errors
    /// [`DriverError`]; the store holds everything that was acknowledged.
    pub async fn run(mut self) -> Result<(), DriverError> {
        let stored = self.store.load()?;
        self.step(Input::Boot { stored, wall_ms: wall_ms()?, probe_key: probe_key()? })?;
        // Timers and everything else take turns: neither a switch that never stops talking nor a row of due timers holds up the other.
        let mut timers_turn = true;
        loop {
            if std::mem::take(&mut timers_turn)
                && let Some(key) = self.timers.pop(self.now())
            {
                self.step(Input::Timer(key))?;
                continue;
            }
            timers_turn = true;
            let due = self.timers.next().map(|at| Duration::from_nanos(at.since(self.now()).0));
            let input = tokio::select! {
                ask = self.asks.recv() => match ask {
                    Some(Ask::Input(input)) => *input,
                    Some(Ask::Look(look)) => {
                        tokio::task::block_in_place(|| look(&self.core));
                        continue;
                    }
                    Some(Ask::Stop) | None => return self.end(),
                },
                input = self.inputs.recv() => match input {
                    Some(input) => input,
                    None => return self.end(),
                },
                () = sleep(due) => continue,
            };
            self.step(input)?;
        }
    }

    fn end(mut self) -> Result<(), DriverError> {
        match &mut self.record {
            Some(record) => record.flush().map_err(DriverError::Record),
            None => Ok(()),
        }
    }

    /// Time since the controller started.
    fn now(&self) -> Time {
        Time::ZERO + Span(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn step(&mut self, input: Input) -> Result<(), DriverError> {
        let now = self.now();
        if let Some(record) = &mut self.record {
            let line = record::to_line(now, &input)?;
            // At once: a recording is wanted when the controller did not end well.
            writeln!(record, "{line}")
                .and_then(|()| record.flush())
                .map_err(DriverError::Record)?;
        }
        let outputs = tokio::task::block_in_place(|| self.core.step(now, input));
        for output in outputs {
            self.execute(now, output)?;
        }
        Ok(())
    }

    fn execute(&mut self, now: Time, output: Output) -> Result<(), DriverError> {
        match output {
            Output::Persist(batch) => tokio::task::block_in_place(|| self.store.commit(&batch))?,
            Output::OpenStream { switch, stream } => {
                if let Some(link) = self.links.get_mut(switch.index()) {
                    link.open(stream);
                }
            }
            Output::Send { switch, stream, messages } => {
                if let Some(link) = self.links.get_mut(switch.index()) {
                    link.send(stream, messages);
                }
            }
            Output::CloseStream { switch, stream } => {
                if let Some(link) = self.links.get_mut(switch.index()) {
                    link.close(stream);
                }
            }
            Output::Call { switch, request, deadline, rpc } => {
                if let Some(link) = self.links.get(switch.index()) {
                    link.call(request, Duration::from_nanos(deadline.since(now).0), rpc);
                }
            }
            Output::Timer { at, key } => self.timers.set(at, key),
            Output::Notify(event) => {
                tracing::info!(?event);
                // Nobody may be listening.
                let _ = self.events.send((now, event));
            }
        }
        Ok(())
    }
}

/// What the ports of a switch lead to.
fn cables(core: &Core, switch: SwitchId) -> Cables {
    let topology = core.topology();
    let links = topology.out_links(topology.switch_node(switch)).iter();
    Cables {
        device_id: core.device_id(switch),
        links: links.map(|link| (topology.link(*link).from_port, *link)).collect(),
    }
}

/// Sleeps; for ever without a time.
async fn sleep(due: Option<Duration>) {
    match due {
        Some(due) => tokio::time::sleep(due).await,
        None => std::future::pending().await,
    }
}

/// A key that nobody knows, for this run.
fn probe_key() -> Result<ProbeKey, DriverError> {
    use ring::rand::SecureRandom as _;
    let mut key = [0; 32];
    ring::rand::SystemRandom::new().fill(&mut key).map_err(|_| DriverError::Random)?;
    Ok(ProbeKey(key))
}

#[allow(clippy::disallowed_methods, reason = "the driver owns the controller's clock")]
fn wall_ms() -> Result<u64, DriverError> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| DriverError::Clock)?;
    u64::try_from(since.as_millis()).map_err(|_| DriverError::Clock)
}
