//! Lets real time into a switch: one thread that advances it when something is due or was asked for.
//! In: the handle of a shared server, its clock, wake-ups. Out: packets for ports. Must not know programs or requests.
//!
//! ```text
//!  request ─► server ─► wake ─┐            ┌─► queues, digests, ageing ─► packet-ins to clients
//!                             ├─► thread ──┤
//!  poll_at is reached ────────┘            └─► packets to ports
//! ```
//! The thread sleeps until the switch's next instant or a wake-up, whichever comes first; it never polls.

use crate::id::PortNo;
use crate::p4runtime::server::service::{Clock, Handle, Shared, Wake};
use crate::switch::Switch;
use crate::time::Time;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a switch sends by its ports, handed to `send` outside the server's lock.
pub type Port = Box<dyn FnMut(PortNo, &[u8]) + Send>;

/// What the thread waits for.
#[derive(Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct State {
    woken: bool,
    stopped: bool,
}

impl Signal {
    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_one();
    }

    /// Waits until woken, stopped or `limit` has passed; `None` waits for ever. Returns whether to stop.
    fn wait(&self, limit: Option<Duration>) -> bool {
        let calm = |state: &mut State| !state.woken && !state.stopped;
        let state = lock(&self.state);
        let mut state = match limit {
            None => self.changed.wait_while(state, calm).unwrap_or_else(PoisonError::into_inner),
            Some(limit) => {
                let waited = self.changed.wait_timeout_while(state, limit, calm);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.woken = false;
        state.stopped
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere must not stop the switch.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A switch that real time drives. Stops when dropped.
pub struct Driver {
    handle: Handle<Switch>,
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread. The clock starts at 0 now. `send` gets what leaves by ports.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(server: Shared<Switch>, send: Port) -> std::io::Result<Self> {
        let clock = clock();
        let signal = Arc::<Signal>::default();
        let waker = Arc::clone(&signal);
        let wake: Wake = Arc::new(move || waker.set(|state| state.woken = true));
        let handle = Handle::new(server, Arc::clone(&clock)).waking(wake);
        let (driven, waited) = (handle.clone(), Arc::clone(&signal));
        let thread = std::thread::Builder::new()
            .name("switch".to_owned())
            .spawn(move || run(&driven, &clock, &waited, send))?;
        Ok(Self { handle, signal, thread: Some(thread) })
    }

    /// The handle to serve clients with and to let packets in by.
    #[must_use]
    pub fn handle(&self) -> &Handle<Switch> {
        &self.handle
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.signal.set(|state| state.stopped = true);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic; if it did, there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the driver owns the process's clock")]
fn clock() -> Clock {
    let start = Instant::now();
    Arc::new(move || Time(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)))
}

fn run(handle: &Handle<Switch>, clock: &Clock, signal: &Signal, mut send: Port) {
    let mut packets: Vec<(PortNo, Vec<u8>)> = Vec::new();
    loop {
        let next = handle.drive(|switch, now| {
            switch.advance(now, &mut |sent| packets.push((sent.port, sent.bytes.to_vec())));
            switch.poll_at()
        });
        for (port, bytes) in packets.drain(..) {
            send(port, &bytes);
        }
        let limit = next.map(|at| Duration::from_nanos(at.since(clock()).0));
        if signal.wait(limit) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4runtime::server::{Profile, Server};
    use crate::switch::Config;
    use std::sync::mpsc;

    #[test]
    fn a_driver_sleeps_through_wake_ups_without_work_and_stops_when_dropped() {
        let server = Server::new(Switch::new(Config::default()), Profile::Spec);
        let (sender, receiver) = mpsc::channel();
        let send: Port = Box::new(move |port, bytes| {
            let _ = sender.send((port, bytes.to_vec()));
        });
        let driver = Driver::start(Arc::new(Mutex::new(server)), send).unwrap();
        driver.handle().pump();
        driver.handle().pump();
        drop(driver);
        assert!(receiver.recv().is_err(), "the thread has ended and dropped its sender");
    }

    #[test]
    fn a_wait_ends_at_a_wake_up_a_stop_or_its_limit() {
        let signal = Signal::default();
        assert!(!signal.wait(Some(Duration::ZERO)));
        signal.set(|state| state.woken = true);
        assert!(!signal.wait(None), "a wake-up before the wait is not lost");
        assert!(!signal.wait(Some(Duration::from_millis(1))), "and counts once");
        signal.set(|state| state.stopped = true);
        assert!(signal.wait(None));
    }
}
