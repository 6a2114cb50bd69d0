//! What commands need to be processes: runtimes, signals, the line that says where they listen.
//!
//! In: nothing. Out: tokio runtimes and futures. Must not know the commands.

use anyhow::Context as _;
use std::io::Write;
use tokio::runtime::{Builder, Runtime};

/// For a command that serves: two threads, so that an answer need not wait for a decision.
///
/// # Errors
/// The system gives no threads.
pub fn serving() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("no runtime for the server")
}

/// For a command that asks and waits for the answer.
///
/// # Errors
/// The system gives no descriptors.
pub fn asking() -> anyhow::Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("no runtime for the client")
}

/// For a command that does something else meanwhile: a thread of its own.
///
/// # Errors
/// The system gives no threads.
pub fn beside() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.context("no runtime beside the work")
}

/// Tells where a process listens. That nobody reads it does not matter to the process.
///
/// # Errors
/// The line cannot be written.
pub fn announce(out: &mut dyn Write, line: &str) -> std::io::Result<()> {
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

/// Resolves at SIGINT or SIGTERM; both are caught from now on.
///
/// # Errors
/// The system refuses to tell signals.
pub fn signals() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
