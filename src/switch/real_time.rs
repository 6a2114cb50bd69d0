//! Lets real time and the outside into a switch: one thread that takes what comes by its ports and does what is due.
//! In: the handle of a shared server, its ports, its clock, wake-ups. Out: packets by ports. Must not know programs or requests.
//!
//! ```text
//!  request ─► server ─► wake ─┐            ┌─► queues, digests, ageing ─► packet-ins to clients
//!  frames at a port ──────────┼─► thread ──┤
//!  poll_at is reached ────────┤            └─► packets to ports
//!  room at a full port, link ─┘
//! ```
//! The thread sleeps until one of these, whichever comes first; it never polls. It holds the server's lock for one burst of one port at a
//! time. It waits, sends, counts and follows links outside; inside are only the system calls that fetch a frame longer than a slot of the
//! ring, that write a full buffer of recorded packets, and that read and write packet files. There is one such thread: the switch's state is behind one lock, so a second one
//! would wait for the first (`docs/switch-ports.md` has the measurement).

use crate::p4runtime::server::service::{Clock, Handle, Shared, Wake};
use crate::switch::Switch;
use crate::switch::port::{Board, Ports, ring::Waker};
use crate::time::Time;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

/// A switch that real time drives. Stops when dropped.
pub struct Driver {
    handle: Handle<Switch>,
    board: Arc<Board>,
    waker: Waker,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Driver {
    /// Starts the thread. The clock starts at 0 now, and what carries the time of day, recorded packets and messages to controllers, counts
    /// from this instant.
    ///
    /// # Errors
    /// The system gives no thread or no descriptor.
    pub fn start(server: Shared<Switch>, mut ports: Ports) -> std::io::Result<Self> {
        let (clock, began_ns) = (clock(), time_of_day());
        ports.began(began_ns);
        server.lock().unwrap_or_else(PoisonError::into_inner).device_mut().began(began_ns);
        let board = Arc::clone(ports.board());
        let (waker, stopped) = (Waker::new()?, Arc::<AtomicBool>::default());
        let called = waker.clone();
        let wake: Wake = Arc::new(move || called.wake());
        let handle = Handle::new(server, Arc::clone(&clock)).waking(wake);
        let (driven, waited, ends) = (handle.clone(), waker.clone(), Arc::clone(&stopped));
        let thread = std::thread::Builder::new()
            .name("switch".to_owned())
            .spawn(move || run(&driven, &clock, &waited, &ends, ports))?;
        Ok(Self { handle, board, waker, stopped, thread: Some(thread) })
    }

    /// The handle to serve clients with and to let packets in by.
    #[must_use]
    pub fn handle(&self) -> &Handle<Switch> {
        &self.handle
    }

    /// The ports, to look at.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.waker.wake();
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

/// Nanoseconds since the Epoch; 0 if the machine's clock is before it.
#[allow(clippy::disallowed_methods, reason = "recorded packets and messages carry the time of day")]
fn time_of_day() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn run(
    handle: &Handle<Switch>,
    clock: &Clock,
    waker: &Waker,
    stopped: &AtomicBool,
    mut ports: Ports,
) {
    while !stopped.load(Ordering::Acquire) {
        let mut again = false;
        for place in 0..ports.ready() {
            again |= handle.drive(|switch, now| ports.receive(place, switch, now));
            ports.flush();
            ports.count_overflow(place);
        }
        ports.look(clock());
        let mut next = handle.drive(|switch, now| ports.advance(switch, now));
        again |= ports.flush();
        if again {
            next = Some(Time::ZERO);
        }
        ports.wait(waker, clock(), next);
    }
    ports.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4runtime::server::{Profile, Server};
    use crate::switch::Config;
    use std::sync::Mutex;

    #[test]
    fn a_driver_sleeps_through_wake_ups_without_work_and_stops_when_dropped() {
        let server = Server::new(Switch::new(Config::default()), Profile::Spec);
        let server = Arc::new(Mutex::new(server));
        let driver = Driver::start(Arc::clone(&server), Ports::default()).unwrap();
        driver.handle().pump();
        driver.handle().pump();
        drop(driver);
        assert_eq!(Arc::strong_count(&server), 1, "the thread has ended and dropped its handle");
    }

    #[test]
    fn messages_count_from_the_instant_at_which_the_drivers_clock_began() {
        let server = Server::new(Switch::new(Config::default()), Profile::Spec);
        let server = Arc::new(Mutex::new(server));
        let before = time_of_day();
        let driver = Driver::start(Arc::clone(&server), Ports::default()).unwrap();
        let (began, after) = (server.lock().unwrap().device().config().epoch_ns, time_of_day());
        assert!((before..=after).contains(&began), "{before} {began} {after}");
        drop(driver);
    }

    #[test]
    fn a_wait_ends_at_a_wake_up_even_if_it_came_before() {
        let waker = Waker::new().unwrap();
        let mut ports = Ports::default();
        waker.wake();
        waker.clone().wake();
        ports.wait(&waker, Time(0), None);
        let mut watch = [crate::switch::port::ring::Watch::new(waker.fd(), false)];
        crate::switch::port::ring::wait(&mut watch, Some(std::time::Duration::ZERO)).unwrap();
        assert!(!watch[0].ready(), "both calls count once");
    }
}
