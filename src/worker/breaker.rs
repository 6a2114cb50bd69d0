//! Ends from outside what a rank waits for. In: connections, a sleeper. Out: all of them end when it is tripped. Must not know why.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Cheap to clone; clones are one.
#[derive(Clone, Debug, Default)]
pub struct Breaker(Arc<(Mutex<Guarded>, Condvar)>);

#[derive(Debug, Default)]
struct Guarded {
    tripped: bool,
    connections: Vec<TcpStream>,
}

impl Breaker {
    /// Ends every connection and every sleep, now and from now on.
    pub fn trip(&self) {
        let mut guarded = self.lock();
        guarded.tripped = true;
        for connection in guarded.connections.drain(..) {
            // One that has ended already needs no ending.
            let _ = connection.shutdown(Shutdown::Both);
        }
        self.0.1.notify_all();
    }

    /// Whether it was tripped.
    #[must_use]
    pub fn is_tripped(&self) -> bool {
        self.lock().tripped
    }

    pub(super) fn guard(&self, connection: &TcpStream) -> std::io::Result<()> {
        let mut guarded = self.lock();
        if guarded.tripped {
            return connection.shutdown(Shutdown::Both);
        }
        guarded.connections.push(connection.try_clone()?);
        Ok(())
    }

    /// Sleeps; `false` if it was tripped meanwhile.
    pub(super) fn sleep(&self, time: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.lock(), time, |guarded| !guarded.tripped);
        let (guarded, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !guarded.tripped
    }

    fn lock(&self) -> MutexGuard<'_, Guarded> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
