//! What a training loop and its controller have to tell each other, one newest thing each way. In: orders, states. Out: the same, to whoever
//! waits on the other side. Must not know how they travel.
//!
//! Nothing queues: a state replaces the one before, whether that was taken or not, so neither side ever waits for the other to read.

use super::{Breaker, WorkerError};
use crate::time::Span;
use std::net::IpAddr;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One rank of a membership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its host's name.
    pub host: String,
    /// Where it is.
    pub address: IpAddr,
}

/// The ring that is to be formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Number of the membership; only rises.
    pub generation: u32,
    /// Its ranks in ring order.
    pub members: Vec<Member>,
    /// Port of edge 0 of channel 0.
    pub first_port: u16,
    /// Time that an iteration computes.
    pub compute: Span,
    /// Whether it may send.
    pub go: bool,
    /// The iteration to begin with.
    pub from: u32,
}

/// How a rank is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The membership that it belongs to.
    pub generation: u32,
    /// Whether its ring stands.
    pub joined: bool,
    /// Iterations that it has finished.
    pub iterations: u32,
    /// Compute time of the last one.
    pub compute: Duration,
    /// Host of the neighbour that broke off.
    pub lost: Option<String>,
    /// Host of the neighbour from which nothing comes; it is awaited all the same.
    pub stalled: Option<String>,
    /// It is done.
    pub leaving: bool,
}

#[derive(Default)]
struct Inner {
    order: Option<Order>,
    over: Option<String>,
    state: State,
    guarded: Option<(u32, Breaker)>,
}

/// Both directions.
pub struct Post {
    inner: Mutex<Inner>,
    ordered: Condvar,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Post {
    /// Empty; `wake` is called whenever the rank's state has changed.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self { inner: Mutex::default(), ordered: Condvar::new(), wake: Box::new(wake) }
    }

    /// The rank's state.
    #[must_use]
    pub fn state(&self) -> State {
        self.lock().state.clone()
    }

    /// Leaves an order. A ring of an older membership ends at once.
    pub fn order(&self, order: Order) {
        let mut inner = self.lock();
        if inner.order.as_ref().is_some_and(|held| held.generation > order.generation) {
            return;
        }
        if let Some((_, ring)) = inner.guarded.take_if(|(of, _)| *of < order.generation) {
            ring.trip();
        }
        inner.order = Some(order);
        self.ordered.notify_all();
    }

    /// The rank is no part of its job any more, or there is no job.
    pub fn over(&self, reason: String) {
        let mut inner = self.lock();
        if let Some((_, ring)) = inner.guarded.take() {
            ring.trip();
        }
        inner.over = Some(reason);
        self.ordered.notify_all();
    }

    /// Changes the rank's state.
    pub(super) fn say(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock().state);
        (self.wake)();
    }

    /// The next newer order trips the breaker; one that is there already does so now.
    pub(super) fn guard(&self, generation: u32, ring: &Breaker) {
        let mut inner = self.lock();
        let newer = inner.order.as_ref().is_some_and(|order| order.generation > generation);
        if newer || inner.over.is_some() {
            ring.trip();
        } else {
            inner.guarded = Some((generation, ring.clone()));
        }
    }

    /// Waits for the order of a membership after `generation`, or any.
    pub(super) fn newer(
        &self,
        generation: Option<u32>,
        patience: Duration,
    ) -> Result<Order, WorkerError> {
        self.wait(patience, |order| generation.is_none_or(|old| order.generation > old))
    }

    /// Waits until the ring of a membership may send, or there is a newer one.
    pub(super) fn go(&self, generation: u32, patience: Duration) -> Result<Order, WorkerError> {
        self.wait(patience, |order| order.go || order.generation > generation)
    }

    #[allow(clippy::disallowed_methods, reason = "a worker is a process; it waits in real time")]
    fn wait(
        &self,
        patience: Duration,
        wanted: impl Fn(&Order) -> bool,
    ) -> Result<Order, WorkerError> {
        let begin = Instant::now();
        let mut inner = self.lock();
        loop {
            if let Some(reason) = &inner.over {
                return Err(WorkerError::Over { reason: reason.clone() });
            }
            if let Some(order) = inner.order.as_ref().filter(|order| wanted(order)) {
                return Ok(order.clone());
            }
            let left = patience.checked_sub(begin.elapsed()).filter(|left| !left.is_zero());
            let left = left.ok_or(WorkerError::NoOrder { patience })?;
            let waited = self.ordered.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Everything in it is replaced as a whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
