//! A P4Runtime client over gRPC: executes calls and holds one stream.
//! In: calls and stream messages as values. Out: results and stream messages. Must not know arbitration or retries:
//! those are decided by `session` and by the controller.

pub mod tls;

use crate::p4runtime::proto::p4::v1::p4_runtime_client::P4RuntimeClient;
use crate::p4runtime::proto::p4::v1::{ReadResponse, StreamMessageRequest, StreamMessageResponse};
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc, RpcResult, StreamEnd};
use crate::p4runtime::status::{HEADER_BYTES, HEADER_BYTES_PER_UPDATE, to_end, to_failure};
use std::time::Duration;
use thiserror::Error;
use tls::{Connector, Credentials, CredentialsError, Heard};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};

/// Stream messages that wait for the network; a sender waits when more pile up.
const SEND_QUEUE: usize = 1_024;

/// What a client takes from a server before it cuts it off.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Updates in the largest Write that will be sent; sets the size of the header list that errors come in.
    pub updates: u32,
    /// Bytes of the largest message.
    pub message_bytes: usize,
    /// Entities in the answer to one Read.
    pub entities: usize,
    /// Time to connect.
    pub connect: Duration,
}

impl Default for Limits {
    /// 500 updates, 16 MiB (PI answers a Read in one message), 1 M entities, 5 s.
    fn default() -> Self {
        Self {
            updates: 500,
            message_bytes: 16 << 20,
            entities: 1_000_000,
            connect: Duration::from_secs(5),
        }
    }
}

/// Why there is no connection.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The address is none.
    #[error(
        "'{address}' is no address of a P4Runtime server; write for example http://127.0.0.1:9559"
    )]
    Address {
        /// As given.
        address: String,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// The credentials are none.
    #[error("the certificates for {address} cannot be used")]
    Credentials {
        /// As given.
        address: String,
        /// Why.
        #[source]
        source: CredentialsError,
    },
    /// One side does not believe the other.
    #[error("no TLS connection to {address}: {reason}")]
    Tls {
        /// As given.
        address: String,
        /// What TLS had against it.
        reason: String,
    },
    /// Nobody answers there.
    #[error("cannot connect to {address}; is the switch running?")]
    Connect {
        /// As given.
        address: String,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
}

/// A connection to one server. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    inner: P4RuntimeClient<Channel>,
    channel: Channel,
    limits: Limits,
    heard: Heard,
}

impl Client {
    /// Connects to `http://host:port`.
    pub async fn connect(address: &str, limits: Limits) -> Result<Self, ConnectError> {
        Self::connect_with(address, None, limits).await
    }

    /// Connects to `https://host:port` with credentials, or to `http://host:port` without. A server that wants a
    /// certificate of the client says so at the first call: TLS 1.3 lets a client begin before it is judged.
    pub async fn connect_with(
        address: &str,
        credentials: Option<&Credentials>,
        limits: Limits,
    ) -> Result<Self, ConnectError> {
        let bad = |source| ConnectError::Address { address: address.to_owned(), source };
        let endpoint = |address: String| {
            let endpoint = Endpoint::from_shared(address).map_err(bad)?;
            let header_bytes = HEADER_BYTES_PER_UPDATE.saturating_mul(limits.updates);
            Ok(endpoint
                .connect_timeout(limits.connect)
                .tcp_nodelay(true)
                .http2_max_header_list_size(HEADER_BYTES.saturating_add(header_bytes)))
        };
        let (connected, heard) = match credentials {
            None => (endpoint(address.to_owned())?.connect().await, Heard::default()),
            Some(credentials) => {
                let connector = Connector::new(credentials).map_err(|source| {
                    ConnectError::Credentials { address: address.to_owned(), source }
                })?;
                let heard = connector.heard();
                let open = move |to| connector.clone().connect(to);
                // tonic is not to shake hands itself, so it is told http; calls carry the true scheme.
                let plain = endpoint(address.replacen("https://", "http://", 1))?;
                let endpoint = plain.origin(endpoint(address.to_owned())?.uri().clone());
                (endpoint.connect_with_connector(tower::service_fn(open)).await, heard)
            }
        };
        let channel = connected.map_err(|source| match tls::reason(&source) {
            Some(reason) => ConnectError::Tls { address: address.to_owned(), reason },
            None => ConnectError::Connect { address: address.to_owned(), source },
        })?;
        let inner = P4RuntimeClient::new(channel.clone());
        let inner = inner.max_decoding_message_size(limits.message_bytes);
        Ok(Self { inner, channel, limits, heard })
    }

    /// The connection, for other services of the same server.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel.clone()
    }

    /// Executes a call. With a deadline, a server that does not answer in time gives `DEADLINE_EXCEEDED`; it may have
    /// executed the call.
    pub async fn call(&self, rpc: Rpc, deadline: Option<Duration>) -> RpcResult {
        let Some(deadline) = deadline else { return self.execute(rpc, None).await };
        match tokio::time::timeout(deadline, self.execute(rpc, Some(deadline))).await {
            Ok(result) => result,
            Err(_) => {
                Err(Failure::new(Code::DeadlineExceeded, format!("no answer in {deadline:?}")))
            }
        }
    }

    async fn execute(&self, rpc: Rpc, deadline: Option<Duration>) -> RpcResult {
        let mut client = self.inner.clone();
        let failed = |status: Status| failure(&status, &self.heard);
        match rpc {
            Rpc::Capabilities(message) => {
                let reply =
                    client.capabilities(request(message, deadline)).await.map_err(failed)?;
                Ok(Reply::Capabilities(reply.into_inner()))
            }
            Rpc::Write(message) => {
                client.write(request(message, deadline)).await.map_err(failed)?;
                Ok(Reply::Write)
            }
            Rpc::Read(message) => {
                let reply = client.read(request(message, deadline)).await.map_err(failed)?;
                self.collect(reply.into_inner()).await
            }
            Rpc::SetPipeline(message) => {
                let sent = client.set_forwarding_pipeline_config(request(message, deadline)).await;
                sent.map_err(failed)?;
                Ok(Reply::SetPipeline)
            }
            Rpc::GetPipeline(message) => {
                let reply = client.get_forwarding_pipeline_config(request(message, deadline)).await;
                Ok(Reply::GetPipeline(reply.map_err(failed)?.into_inner()))
            }
        }
    }

    async fn collect(&self, mut responses: Streaming<ReadResponse>) -> RpcResult {
        let mut entities = Vec::new();
        while let Some(response) =
            responses.message().await.map_err(|status| failure(&status, &self.heard))?
        {
            entities.extend(response.entities);
            if entities.len() > self.limits.entities {
                let text = format!("the server sent more than {} entities", self.limits.entities);
                return Err(Failure::new(Code::ResourceExhausted, text));
            }
        }
        Ok(Reply::Read(entities))
    }

    /// Opens the stream. Must be called within a tokio runtime. Messages can be sent at once: some servers answer
    /// nothing, not even headers, before the first message.
    #[must_use]
    pub fn open_stream(&self) -> (StreamSender, StreamReceiver) {
        let (sender, receiver) = mpsc::channel(SEND_QUEUE);
        let mut client = self.inner.clone();
        let opening = tokio::spawn(async move {
            let response = client.stream_channel(ReceiverStream::new(receiver)).await?;
            Ok(response.into_inner())
        });
        (StreamSender(sender), StreamReceiver(Receiving::Opening(opening), self.heard.clone()))
    }
}

/// The failure in a status. If the transport failed and TLS said why, that is the reason.
fn failure(status: &Status, heard: &Heard) -> Failure {
    let failure = to_failure(status);
    match heard.get().filter(|_| broken(failure.code)) {
        Some(reason) => Failure::new(Code::Unauthenticated, reason),
        None => failure,
    }
}

/// The same for a stream.
fn end(status: &Status, heard: &Heard) -> StreamEnd {
    let end = to_end(status);
    match heard.get().filter(|_| broken(end.code)) {
        Some(message) => StreamEnd { code: Code::Unauthenticated, message },
        None => end,
    }
}

/// Codes that a broken connection may give.
fn broken(code: Code) -> bool {
    matches!(code, Code::Cancelled | Code::Unknown | Code::Unavailable | Code::Internal)
}

fn request<M>(message: M, deadline: Option<Duration>) -> Request<M> {
    let mut request = Request::new(message);
    if let Some(deadline) = deadline {
        request.set_timeout(deadline);
    }
    request
}

/// The sending half of a stream; dropping it (and its clones) closes the stream.
#[derive(Clone, Debug)]
pub struct StreamSender(mpsc::Sender<StreamMessageRequest>);

impl StreamSender {
    /// Sends a message; waits while the network is slower than the caller. `Err` when the stream has ended; the
    /// receiver knows why.
    pub async fn send(&self, message: StreamMessageRequest) -> Result<(), StreamEnd> {
        self.0.send(message).await.map_err(|_| StreamEnd {
            code: Code::Unavailable,
            message: "the stream has ended".to_owned(),
        })
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct StreamReceiver(Receiving, Heard);

#[derive(Debug)]
enum Receiving {
    Opening(JoinHandle<Result<Streaming<StreamMessageResponse>, Status>>),
    Open(Box<Streaming<StreamMessageResponse>>),
    Ended(StreamEnd),
}

impl StreamReceiver {
    /// The next message, or why there is none; after the end always the same end. Not lost when dropped in the
    /// middle (cancel safe).
    pub async fn next(&mut self) -> Result<StreamMessageResponse, StreamEnd> {
        loop {
            let end = match &mut self.0 {
                Receiving::Opening(task) => match task.await {
                    Ok(Ok(streaming)) => {
                        self.0 = Receiving::Open(Box::new(streaming));
                        continue;
                    }
                    Ok(Err(status)) => end(&status, &self.1),
                    Err(error) => StreamEnd { code: Code::Internal, message: error.to_string() },
                },
                Receiving::Open(streaming) => match streaming.message().await {
                    Ok(Some(message)) => return Ok(message),
                    Ok(None) => {
                        let message = "the server closed the stream".to_owned();
                        StreamEnd { code: Code::Ok, message }
                    }
                    Err(status) => end(&status, &self.1),
                },
                Receiving::Ended(end) => return Err(end.clone()),
            };
            self.0 = Receiving::Ended(end);
        }
    }
}
