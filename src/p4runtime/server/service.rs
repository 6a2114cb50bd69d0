//! The server as a tonic service.
//! In: gRPC requests, a shared `Server`, a clock. Out: gRPC responses; messages to streams in the order in which the server
//! made them. Must not know what requests mean: every decision is `Server`'s.
//!
//! Everything that leaves the server is put into its stream's queue while the server is locked, so that streams see
//! messages in the order of the decisions, whichever task made them.

use super::{Profile, Server, StreamId, ToClient};
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::p4::v1::p4_runtime_server::P4Runtime;
use crate::p4runtime::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, Entity, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, ReadRequest, ReadResponse,
    SetForwardingPipelineConfigRequest, SetForwardingPipelineConfigResponse, StreamMessageRequest,
    StreamMessageResponse, WriteRequest, WriteResponse,
};
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc, RpcResult, StreamEnd};
use crate::p4runtime::status::{from_end, to_status};
use crate::time::Time;
use prost::Message as _;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// Messages that wait for one client. A client that lets more pile up is cut off: dropping some silently would make a
/// run depend on how fast the client is scheduled.
pub const STREAM_QUEUE_MAX: usize = 65_536;
/// Open streams of one server, arbitrated or not; above the 16 per role that arbitration allows.
pub const STREAMS_OPEN_MAX: usize = 256;
/// Bytes of entities in one ReadResponse; clients take 4 MiB by default.
pub const CHUNK_BYTES: usize = 1 << 20;

/// The clock of a server: wall time for real, frozen virtual time in a simulation.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;
/// Called after every request, when the server is free again: a device may have something to do sooner than it thought.
pub type Wake = Arc<dyn Fn() + Send + Sync>;
/// A server that a simulator, ports and gRPC tasks share.
pub type Shared<D> = Arc<Mutex<Server<D>>>;

type Item = Result<StreamMessageResponse, Status>;

/// A shared server with its clock and open streams; cheap to clone.
pub struct Handle<D> {
    server: Shared<D>,
    clock: Clock,
    wake: Option<Wake>,
    streams: Arc<Mutex<BTreeMap<StreamId, Outgoing>>>,
    counts: Arc<Counts>,
}

impl<D> Clone for Handle<D> {
    fn clone(&self) -> Self {
        Self {
            server: Arc::clone(&self.server),
            clock: Arc::clone(&self.clock),
            wake: self.wake.clone(),
            streams: Arc::clone(&self.streams),
            counts: Arc::clone(&self.counts),
        }
    }
}

/// The server's end of one stream.
struct Outgoing {
    queue: mpsc::Sender<StreamMessageResponse>,
    /// Why the stream ended, read when the queue is empty.
    end: Arc<Mutex<Option<Status>>>,
}

/// Messages over all streams since the start, so that a simulator can wait until everything sent has arrived.
#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    sent: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere must not take the server down; library code does not panic, so the state is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Device + 'static> Handle<D> {
    /// A handle on a shared server.
    #[must_use]
    pub fn new(server: Shared<D>, clock: Clock) -> Self {
        Self { server, clock, wake: None, streams: Arc::default(), counts: Arc::default() }
    }

    /// Has `wake` called after every request of a client, for a driver that lets time into the device.
    #[must_use]
    pub fn waking(self, wake: Wake) -> Self {
        Self { wake: Some(wake), ..self }
    }

    /// Lets the driver of the device do something with it, sends what the device emits meanwhile, and wakes nobody.
    pub fn drive<R>(&self, action: impl FnOnce(&mut D, Time) -> R) -> R {
        self.quietly(|server, now| (action(server.device_mut(), now), Vec::new()))
    }

    /// Has the driver look at the device again, as after a client's request.
    pub fn wake(&self) {
        if let Some(wake) = &self.wake {
            wake();
        }
    }

    /// The shared server.
    #[must_use]
    pub fn server(&self) -> &Shared<D> {
        &self.server
    }

    /// Stream messages that clients have sent and the server has handled.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::Acquire)
    }

    /// Stream messages put into clients' queues.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Acquire)
    }

    /// Streams that are open. A stream that a client has closed counts until the server has forgotten it.
    #[must_use]
    pub fn streams_open(&self) -> usize {
        // The server's lock first: whoever closes a stream holds it until all is done.
        let _server = lock(&self.server);
        lock(&self.streams).len()
    }

    /// Sends what the device has put into its outbox, for whoever let packets or time into the device.
    pub fn pump(&self) {
        self.locked(|_, _| ((), Vec::new()));
    }

    /// Executes a call and sends what the device emitted meanwhile.
    pub fn call(&self, rpc: Rpc) -> RpcResult {
        self.locked(|server, now| (server.call(now, rpc), Vec::new()))
    }

    fn locked<R>(&self, action: impl FnOnce(&mut Server<D>, Time) -> (R, Vec<ToClient>)) -> R {
        let result = self.quietly(action);
        self.wake();
        result
    }

    fn quietly<R>(&self, action: impl FnOnce(&mut Server<D>, Time) -> (R, Vec<ToClient>)) -> R {
        let mut server = lock(&self.server);
        let now = (self.clock)();
        let (result, out) = action(&mut server, now);
        self.deliver(&mut server, now, out);
        let emitted = server.drain(now);
        self.deliver(&mut server, now, emitted);
        result
    }

    /// Puts messages into the queues; the caller holds the server's lock.
    fn deliver(&self, server: &mut Server<D>, now: Time, out: Vec<ToClient>) {
        let mut pending = out;
        let mut streams = lock(&self.streams);
        while !pending.is_empty() {
            let mut more = Vec::new();
            for (id, item) in pending {
                let Some(outgoing) = streams.get(&id) else { continue };
                let end = match item {
                    Ok(message) => match outgoing.queue.try_send(message) {
                        Ok(()) => {
                            self.counts.sent.fetch_add(1, Ordering::AcqRel);
                            continue;
                        }
                        Err(_) => StreamEnd {
                            code: Code::ResourceExhausted,
                            message: format!(
                                "{STREAM_QUEUE_MAX} messages wait; the client is too slow"
                            ),
                        },
                    },
                    Err(end) => end,
                };
                *lock(&outgoing.end) = Some(from_end(&end));
                // Without its sender the queue runs dry, and then the status is sent.
                streams.remove(&id);
                more.extend(server.close_stream(now, id));
            }
            pending = more;
        }
    }

    fn open(&self) -> Result<(StreamId, mpsc::Receiver<StreamMessageResponse>, EndSlot), Status> {
        let (queue, receiver) = mpsc::channel(STREAM_QUEUE_MAX);
        let end = EndSlot::default();
        let mut server = lock(&self.server);
        let mut streams = lock(&self.streams);
        if streams.len() >= STREAMS_OPEN_MAX {
            let text = format!("{STREAMS_OPEN_MAX} streams are open; close one");
            return Err(Status::resource_exhausted(text));
        }
        let id = server.open_stream();
        streams.insert(id, Outgoing { queue, end: Arc::clone(&end) });
        Ok((id, receiver, end))
    }

    fn message(&self, id: StreamId, message: StreamMessageRequest) {
        self.locked(|server, now| ((), server.stream_message(now, id, message)));
        self.counts.received.fetch_add(1, Ordering::AcqRel);
    }

    fn close(&self, id: StreamId) {
        self.locked(|server, now| {
            lock(&self.streams).remove(&id);
            ((), server.close_stream(now, id))
        });
    }
}

type EndSlot = Arc<Mutex<Option<Status>>>;

/// What tonic reads a stream's responses from. Dropped when the client is gone, which closes the stream.
struct Responses<D: Device + 'static> {
    queue: mpsc::Receiver<StreamMessageResponse>,
    end: EndSlot,
    handle: Handle<D>,
    id: StreamId,
    reader: AbortHandle,
}

impl<D: Device + 'static> Stream for Responses<D> {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item>> {
        match self.queue.poll_recv(cx) {
            Poll::Ready(Some(message)) => Poll::Ready(Some(Ok(message))),
            Poll::Ready(None) => {
                let end = lock(&self.end).take();
                Poll::Ready(end.map(Err))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<D: Device + 'static> Drop for Responses<D> {
    fn drop(&mut self) {
        self.reader.abort();
        self.handle.close(self.id);
    }
}

/// The tonic service.
pub struct Service<D>(Handle<D>);

impl<D: Device + 'static> Service<D> {
    /// A service over a shared server.
    #[must_use]
    pub fn new(handle: Handle<D>) -> Self {
        Self(handle)
    }
}

/// An answer of another kind than the call cannot happen; it is reported rather than trusted.
fn mismatch(reply: &Reply) -> Status {
    Status::internal(format!("the server answered with {reply:?}"))
}

#[tonic::async_trait]
impl<D: Device + 'static> P4Runtime for Service<D> {
    async fn write(
        &self,
        request: Request<WriteRequest>,
    ) -> Result<Response<WriteResponse>, Status> {
        match self.0.call(Rpc::Write(request.into_inner())).map_err(|f| to_status(&f))? {
            Reply::Write => Ok(Response::new(WriteResponse {})),
            other => Err(mismatch(&other)),
        }
    }

    type ReadStream = Pin<Box<dyn Stream<Item = Result<ReadResponse, Status>> + Send>>;

    async fn read(
        &self,
        request: Request<ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let mut entities = Vec::new();
        let (result, profile) = self.0.locked(|server, now| {
            let emit = &mut |entity| entities.push(entity);
            let result = server.read(now, request.into_inner(), emit);
            ((result, server.profile()), Vec::new())
        });
        let failure = match result {
            Err(failure) if failure.updates.is_empty() => return Err(to_status(&failure)),
            other => other.err(),
        };
        Ok(Response::new(Box::pin(responses(entities, failure, profile))))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<SetForwardingPipelineConfigResponse>, Status> {
        match self.0.call(Rpc::SetPipeline(request.into_inner())).map_err(|f| to_status(&f))? {
            Reply::SetPipeline => Ok(Response::new(SetForwardingPipelineConfigResponse {})),
            other => Err(mismatch(&other)),
        }
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<GetForwardingPipelineConfigResponse>, Status> {
        match self.0.call(Rpc::GetPipeline(request.into_inner())).map_err(|f| to_status(&f))? {
            Reply::GetPipeline(response) => Ok(Response::new(response)),
            other => Err(mismatch(&other)),
        }
    }

    type StreamChannelStream = Pin<Box<dyn Stream<Item = Item> + Send>>;

    async fn stream_channel(
        &self,
        request: Request<Streaming<StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        let (id, queue, end) = self.0.open()?;
        let handle = self.0.clone();
        let mut requests = request.into_inner();
        let reading = handle.clone();
        let reader = tokio::spawn(async move {
            // A broken stream and a closed one mean the same: the client is gone (section 5).
            while let Ok(Some(message)) = requests.message().await {
                reading.message(id, message);
            }
            reading.close(id);
        });
        let reader = reader.abort_handle();
        Ok(Response::new(Box::pin(Responses { queue, end, handle, id, reader })))
    }

    async fn capabilities(
        &self,
        request: Request<CapabilitiesRequest>,
    ) -> Result<Response<CapabilitiesResponse>, Status> {
        match self.0.call(Rpc::Capabilities(request.into_inner())).map_err(|f| to_status(&f))? {
            Reply::Capabilities(response) => Ok(Response::new(response)),
            other => Err(mismatch(&other)),
        }
    }
}

/// Entities cut into messages, then the failure if there is one.
fn responses(
    entities: Vec<Entity>,
    failure: Option<Failure>,
    profile: Profile,
) -> impl Stream<Item = Result<ReadResponse, Status>> {
    let mut entities = entities.into_iter().peekable();
    // PI always answers with exactly one message.
    let mut single = profile == Profile::Bmv2;
    let chunks = std::iter::from_fn(move || {
        if std::mem::take(&mut single) {
            return Some(ReadResponse { entities: entities.by_ref().collect() });
        }
        entities.peek()?;
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while let Some(entity) = entities.peek() {
            bytes += entity.encoded_len();
            if bytes > CHUNK_BYTES && !chunk.is_empty() {
                break;
            }
            chunk.extend(entities.next());
        }
        Some(ReadResponse { entities: chunk })
    });
    let failure = failure.map(|failure| Err(to_status(&failure)));
    tokio_stream::iter(chunks.map(Ok).chain(failure))
}
