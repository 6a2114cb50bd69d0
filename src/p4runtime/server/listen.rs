//! A gRPC listener for one server: plain on loopback, with TLS anywhere.
//! In: an address, perhaps certificates, and a handle. Out: the bound address, byte counts of the sockets, and a way to cut them. Must not know
//! requests.

use super::service::{Handle, Service};
use super::tls::Tls;
use crate::p4runtime::device::Device;
use crate::p4runtime::proto::DESCRIPTOR_SET;
use crate::p4runtime::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tokio_stream::{Stream, StreamExt as _};
use tonic::service::Routes;
use tonic::transport::server::{Connected, TcpConnectInfo};

/// Connections of one server at a time; more are closed at once. Sixteen controllers with a few channels each.
pub const CONNECTIONS_MAX: usize = 64;
/// Largest request: a device config of a large program is a few MiB; the specification asks for at least 4 MiB.
pub const RECEIVE_BYTES_MAX: usize = 64 << 20;
/// Concurrent calls on one connection.
const CALLS_PER_CONNECTION_MAX: u32 = 256;

/// How often a peer on a network is asked whether it is still there, and how long it may take to say so. Until then a
/// controller whose host has died stays primary, and its successor cannot use its election id.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// Why nothing listens.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Without TLS only loopback is allowed.
    #[error("will not listen on {0} without TLS; use a loopback address such as 127.0.0.1:9559")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {addr}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The descriptors for reflection do not decode.
    #[error("reflection is not available")]
    Reflection(#[from] tonic_reflection::server::Error),
}

/// Bytes over all connections of one server since it listens.
#[derive(Debug, Default)]
struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
    accepted: AtomicU64,
}

/// The second handles of the open sockets, through which they can be cut.
type Sockets = Arc<Mutex<Vec<Weak<std::net::TcpStream>>>>;

/// A listener that runs. Dropping it cuts all connections.
#[derive(Debug)]
pub struct Listening {
    addr: SocketAddr,
    traffic: Arc<Traffic>,
    sockets: Sockets,
    task: JoinHandle<()>,
}

impl Listening {
    /// The bound address, with the port that the system chose when 0 was asked for.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Bytes that came in over the sockets.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.traffic.read.load(Ordering::Relaxed)
    }

    /// Bytes that went out over the sockets.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.traffic.written.load(Ordering::Relaxed)
    }

    /// Connections accepted so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.traffic.accepted.load(Ordering::Relaxed)
    }

    /// Cuts every connection at once, in mid-message if need be, and stops listening: what a killed switch looks
    /// like to its clients.
    pub fn cut(&self) {
        self.task.abort();
        for socket in lock(&self.sockets).drain(..).filter_map(|socket| socket.upgrade()) {
            // It may be closed already; then there is nothing to cut.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.cut();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a shared server with gRPC reflection on a loopback address; port 0 lets the system choose. Must be called
/// within a tokio runtime, on which the connections are served.
pub async fn listen<D: Device + 'static>(
    addr: SocketAddr,
    handle: Handle<D>,
) -> Result<Listening, ListenError> {
    listen_with(addr, None, handle).await
}

/// As [`listen`], with TLS if there are certificates; only then the address may be another than loopback.
pub async fn listen_with<D: Device + 'static>(
    addr: SocketAddr,
    tls: Option<Tls>,
    handle: Handle<D>,
) -> Result<Listening, ListenError> {
    listen_beside(addr, tls, handle, Routes::default()).await
}

/// As [`listen_with`], with other services of the same process beside P4Runtime, which reflection knows from their descriptors.
pub async fn listen_beside<D: Device + 'static>(
    addr: SocketAddr,
    tls: Option<Tls>,
    handle: Handle<D>,
    beside: Routes,
) -> Result<Listening, ListenError> {
    if tls.is_none() && !addr.ip().is_loopback() {
        return Err(ListenError::NotLoopback(addr));
    }
    let bind = |source| ListenError::Bind { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(bind)?;
    let addr = listener.local_addr().map_err(bind)?;
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
    };
    // Older tools ask for v1alpha.
    let (v1, v1alpha) = (reflection().build_v1()?, reflection().build_v1alpha()?);
    let service =
        P4RuntimeServer::new(Service::new(handle)).max_decoding_message_size(RECEIVE_BYTES_MAX);
    let (traffic, sockets) = (Arc::<Traffic>::default(), Sockets::default());
    let incoming = {
        let (traffic, sockets) = (Arc::clone(&traffic), Arc::clone(&sockets));
        TcpListenerStream::new(listener)
            .filter_map(move |stream| admit(stream, &traffic, &sockets).transpose())
    };
    // A peer on loopback closes its sockets when it dies; one on a network may be gone without a word.
    let far = tls.is_some();
    let router = tonic::transport::Server::builder()
        .http2_keepalive_interval(far.then_some(KEEPALIVE))
        .http2_keepalive_timeout(far.then_some(KEEPALIVE))
        .max_concurrent_streams(CALLS_PER_CONNECTION_MAX)
        .add_routes(beside)
        .add_service(service)
        .add_service(v1)
        .add_service(v1alpha);
    let task = tokio::spawn(async move {
        let served = match tls {
            None => router.serve_with_incoming(incoming).await,
            Some(tls) => {
                let (ready, secured) = mpsc::channel(CONNECTIONS_MAX);
                tokio::select! {
                    served = router.serve_with_incoming(ReceiverStream::new(secured)) => served,
                    () = secure(incoming, tls, ready) => Ok(()),
                }
            }
        };
        if let Err(error) = served {
            tracing::warn!(%addr, %error, "P4Runtime listener stopped");
        }
    });
    Ok(Listening { addr, traffic, sockets, task })
}

/// Shakes hands with every peer at the same time and hands on those that succeed.
async fn secure(
    mut incoming: impl Stream<Item = io::Result<Counted>> + Unpin,
    tls: Tls,
    ready: mpsc::Sender<io::Result<TlsStream<Counted>>>,
) {
    while let Some(next) = incoming.next().await {
        let (tls, ready) = (tls.clone(), ready.clone());
        match next {
            // `CONNECTIONS_MAX` bounds these tasks: a socket counts from when it was accepted.
            Ok(socket) => drop(tokio::spawn(async move {
                if let Some(stream) = tls.accept(socket.peer, socket).await {
                    // The listener has stopped if nobody takes it.
                    let _ = ready.send(Ok(stream)).await;
                }
            })),
            Err(error) => {
                if ready.send(Err(error)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Takes a connection in, or closes it when there are too many. A peer that is gone already is no error of the listener.
fn admit(
    stream: io::Result<TcpStream>,
    traffic: &Arc<Traffic>,
    sockets: &Sockets,
) -> io::Result<Option<Counted>> {
    let stream = stream?.into_std()?;
    let mut sockets = lock(sockets);
    sockets.retain(|socket| socket.strong_count() > 0);
    if sockets.len() >= CONNECTIONS_MAX {
        return Ok(None);
    }
    let (Ok(peer), Ok(())) = (stream.peer_addr(), stream.set_nodelay(true)) else {
        return Ok(None);
    };
    let second = Arc::new(stream.try_clone()?);
    sockets.push(Arc::downgrade(&second));
    traffic.accepted.fetch_add(1, Ordering::Relaxed);
    let stream = TcpStream::from_std(stream)?;
    Ok(Some(Counted { stream, peer, traffic: Arc::clone(traffic), _second: second }))
}

/// A socket that counts its bytes.
pub(super) struct Counted {
    stream: TcpStream,
    peer: SocketAddr,
    traffic: Arc<Traffic>,
    /// Lives as long as the connection, so that `Listening::cut` finds only open ones.
    _second: Arc<std::net::TcpStream>,
}

impl Connected for Counted {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = buf.filled().len() - before;
        self.traffic.read.fetch_add(read as u64, Ordering::Relaxed);
        poll
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Counted {
    fn count(&self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = &poll {
            self.traffic.written.fetch_add(*written as u64, Ordering::Relaxed);
        }
        poll
    }
}
