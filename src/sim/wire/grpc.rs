//! The wire with real sockets: one gRPC server per switch on loopback, one real client to each.
//!
//! In: as [`Wire`]. Out: as [`Wire`]; the same answers as [`super::DirectWire`], after the bytes have been over a socket and back. Must
//! not let real time into the run: it waits until both ends have counted the same messages.
//!
//! The servers' clock is the frozen virtual time. Exchanges are made one after the other; each is short, and the run needs a few
//! hundred of them.

use super::{Said, Wire, WireError};
use crate::controller::messages::StreamNo;
use crate::id::SwitchId;
use crate::p4runtime::client::{Client, Limits, StreamReceiver, StreamSender};
use crate::p4runtime::proto::p4::v1::StreamMessageRequest;
use crate::p4runtime::rpc::{Code, Rpc, RpcResult, StreamEnd};
use crate::p4runtime::server::listen::{Listening, listen};
use crate::p4runtime::server::service::Handle;
use crate::sim::fabric::SharedServer;
use crate::switch::Switch;
use crate::time::Time;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest real time that one exchange may take. It ends the run with the name of the switch; no result depends on it.
pub const WATCHDOG: Duration = Duration::from_secs(30);
/// Threads that serve the sockets: one would do, two let a client and a server run at once.
const WORKERS: usize = 2;
/// How long to wait, when the other thread has not got on by itself, before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Looks without a pause: a message over loopback takes some ten microseconds.
const QUICK_LOOKS: u32 = 100;

/// Real clients to real servers.
pub struct GrpcWire {
    // Before the runtime, so that connections end while it still runs.
    switches: Vec<Endpoint>,
    now: Arc<AtomicU64>,
    runtime: Runtime,
    watchdog: Duration,
}

struct Endpoint {
    name: String,
    listening: Listening,
    handle: Handle<Switch>,
    client: Client,
    streams: BTreeMap<StreamNo, (StreamSender, StreamReceiver)>,
    said: Vec<(StreamNo, Said)>,
    /// Messages over all streams since the start.
    sent: u64,
    arrived: u64,
}

/// Bytes over the sockets of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBytes {
    /// Into the server.
    pub read: u64,
    /// Out of it.
    pub written: u64,
}

impl GrpcWire {
    /// Starts a server and a client for each switch.
    ///
    /// # Errors
    /// [`WireError::Start`] names the switch.
    pub fn start(servers: &[SharedServer], topology: &Topology) -> Result<Self, WireError> {
        let failed =
            |switch: &str, reason: String| WireError::Start { switch: switch.to_owned(), reason };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .enable_all()
            .build()
            .map_err(|error| failed("(all)", error.to_string()))?;
        let now = Arc::new(AtomicU64::new(0));
        let mut switches = Vec::with_capacity(servers.len());
        for (index, server) in servers.iter().enumerate() {
            let switch = SwitchId::from(index);
            let name = topology.node(topology.switch_node(switch)).name.clone();
            let clock = now.clone();
            let time = Arc::new(move || Time(clock.load(Ordering::Acquire)));
            let handle = Handle::new(server.clone(), time);
            let listening = runtime
                .block_on(listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), handle.clone()))
                .map_err(|error| failed(&name, chain(&error)))?;
            let address = format!("http://{}", listening.addr());
            let client = runtime
                .block_on(Client::connect(&address, Limits::default()))
                .map_err(|error| failed(&name, chain(&error)))?;
            switches.push(Endpoint {
                name,
                listening,
                handle,
                client,
                streams: BTreeMap::new(),
                said: Vec::new(),
                sent: 0,
                arrived: 0,
            });
        }
        Ok(Self { switches, now, runtime, watchdog: WATCHDOG })
    }

    /// Bytes that a server's sockets have carried.
    #[must_use]
    pub fn socket_bytes(&self, switch: SwitchId) -> SocketBytes {
        let listening = &self.switches[switch.index()].listening;
        SocketBytes { read: listening.bytes_read(), written: listening.bytes_written() }
    }

    /// Cuts a server's sockets, as pulling its cable would: the next exchange with it fails.
    pub fn cut(&self, switch: SwitchId) {
        self.switches[switch.index()].listening.cut();
    }

    /// Another patience; for tests.
    #[must_use]
    pub fn with_watchdog(mut self, watchdog: Duration) -> Self {
        self.watchdog = watchdog;
        self
    }

    /// Runs one exchange under the watchdog, with the servers' clock at `now`.
    fn exchange<T>(
        &mut self,
        switch: SwitchId,
        now: Time,
        rpc: &'static str,
        what: impl AsyncFnOnce(&mut Endpoint) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        self.now.store(now.0, Ordering::Release);
        let endpoint = &mut self.switches[switch.index()];
        let name = endpoint.name.clone();
        let watchdog = self.watchdog;
        let done =
            self.runtime.block_on(async { tokio::time::timeout(watchdog, what(endpoint)).await });
        done.unwrap_or(Err(WireError::Stuck { switch: name, rpc, seconds: watchdog.as_secs() }))
    }
}

impl Endpoint {
    fn broken(&self, rpc: &'static str, reason: String) -> WireError {
        WireError::Connection { switch: self.name.clone(), rpc, reason }
    }

    /// Takes everything that the server has put into its streams, and ends of streams that it has closed.
    async fn collect(&mut self) -> Result<(), WireError> {
        while self.arrived < self.handle.sent() || self.handle.streams_open() < self.streams.len() {
            let Some((stream, said)) = self.any_message().await else {
                return Err(WireError::Lost {
                    switch: self.name.clone(),
                    sent: self.handle.sent(),
                    arrived: self.arrived,
                });
            };
            match &said {
                Said::Message(_) => self.arrived += 1,
                Said::Ended(end) => {
                    self.streams.remove(&stream);
                    // A status that only the transport can give means that the socket is gone.
                    if end.code == Code::Unavailable {
                        return Err(self.broken("StreamChannel", end.message.clone()));
                    }
                }
            }
            self.said.push((stream, said));
        }
        Ok(())
    }

    /// The next message of any stream.
    async fn any_message(&mut self) -> Option<(StreamNo, Said)> {
        loop {
            let alone = self.streams.len() == 1;
            for (stream, (_, receiver)) in &mut self.streams {
                let next = if alone {
                    receiver.next().await
                } else {
                    tokio::select! {
                        biased;
                        next = receiver.next() => next,
                        () = tokio::time::sleep(LOOK_AGAIN) => continue,
                    }
                };
                let said = match next {
                    Ok(message) => Said::Message(message),
                    Err(end) => Said::Ended(end),
                };
                return Some((*stream, said));
            }
            if self.streams.is_empty() {
                return None;
            }
        }
    }

    /// Closes streams from this side and waits until the server knows.
    async fn close(&mut self, streams: &[StreamNo]) -> Result<(), WireError> {
        // What was said before the end must not be lost: the other wire keeps it too.
        self.collect().await?;
        for stream in streams {
            self.streams.remove(stream);
        }
        let (handle, left) = (self.handle.clone(), self.streams.len());
        until(|| handle.streams_open() <= left).await;
        Ok(())
    }
}

/// Waits for another thread's progress.
async fn until(reached: impl Fn() -> bool) {
    let mut looks = 0;
    while !reached() {
        looks += 1;
        if looks < QUICK_LOOKS {
            std::thread::yield_now();
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl Wire for GrpcWire {
    fn open(&mut self, switch: SwitchId, now: Time, stream: StreamNo) -> Result<(), WireError> {
        self.exchange(switch, now, "StreamChannel", async |endpoint: &mut Endpoint| {
            let halves = endpoint.client.open_stream();
            endpoint.streams.insert(stream, halves);
            let (handle, wanted) = (endpoint.handle.clone(), endpoint.streams.len());
            until(|| handle.streams_open() >= wanted).await;
            Ok(())
        })
    }

    fn call(&mut self, switch: SwitchId, now: Time, rpc: Rpc) -> Result<RpcResult, WireError> {
        let name = rpc.name();
        self.exchange(switch, now, name, async |endpoint: &mut Endpoint| {
            let result = endpoint.client.call(rpc, None).await;
            match result {
                // A server of ours never answers so by itself.
                Err(failure) if matches!(failure.code, Code::Unavailable | Code::Cancelled) => {
                    Err(endpoint.broken(name, failure.message))
                }
                Err(failure) if failure.message.contains("transport error") => {
                    Err(endpoint.broken(name, failure.message))
                }
                result => Ok(result),
            }
        })
    }

    fn send(
        &mut self,
        switch: SwitchId,
        now: Time,
        stream: StreamNo,
        messages: &[StreamMessageRequest],
    ) -> Result<(), WireError> {
        let messages = messages.to_vec();
        self.exchange(switch, now, "StreamChannel", async |endpoint: &mut Endpoint| {
            for message in messages {
                let Some((sender, _)) = endpoint.streams.get(&stream) else { break };
                if sender.send(message).await.is_err() {
                    break;
                }
                endpoint.sent += 1;
                let (handle, sent) = (endpoint.handle.clone(), endpoint.sent);
                until(|| handle.received() >= sent).await;
                endpoint.collect().await?;
            }
            Ok(())
        })
    }

    fn close(&mut self, switch: SwitchId, now: Time, stream: StreamNo) -> Result<(), WireError> {
        self.exchange(switch, now, "StreamChannel", async |endpoint: &mut Endpoint| {
            endpoint.close(&[stream]).await
        })
    }

    fn break_streams(&mut self, switch: SwitchId, now: Time) -> Result<(), WireError> {
        self.exchange(switch, now, "StreamChannel", async |endpoint: &mut Endpoint| {
            let streams: Vec<StreamNo> = endpoint.streams.keys().copied().collect();
            endpoint.close(&streams).await?;
            for stream in streams {
                let end = StreamEnd { code: Code::Unavailable, message: super::RESET.into() };
                endpoint.said.push((stream, Said::Ended(end)));
            }
            Ok(())
        })
    }

    fn drain(&mut self, switch: SwitchId, now: Time) -> Result<Vec<(StreamNo, Said)>, WireError> {
        self.exchange(switch, now, "StreamChannel", async |endpoint: &mut Endpoint| {
            endpoint.handle.pump();
            endpoint.collect().await?;
            let mut said = std::mem::take(&mut endpoint.said);
            said.sort_by_key(|(stream, _)| *stream);
            Ok(said)
        })
    }
}
