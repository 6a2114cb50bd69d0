//! TLS of the listener (specification, section 4.1: the server should be reached over TLS).
//! In: certificates, accepted sockets. Out: connections whose peer has proved itself, and a line in the log for each that
//! has not. Must not know requests.

use super::listen::Counted;
use crate::p4runtime::tls::{Certificates, H2, Identity};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

/// Longest handshake; a peer that opens a socket and says nothing would otherwise hold one of the connections for ever.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a refused peer has to read the reason.
const FAREWELL: Duration = Duration::from_secs(1);
/// What it may still send meanwhile: more than the first flight of any client.
const FAREWELL_BYTES_MAX: u64 = 64 << 10;

/// Why certificates cannot be used.
#[derive(Debug, Error)]
pub enum TlsError {
    /// PEM that does not decode.
    #[error("the {what} does not decode")]
    Decode {
        /// Which of the files.
        what: &'static str,
        /// Why; pem errors quote no content.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not belong together, or are of a kind that is not known.
    #[error("certificate and key of the server cannot be used")]
    Identity(#[source] rustls::Error),
    /// The authority for clients cannot be used.
    #[error("the authority that clients are verified against cannot be used")]
    ClientAuthority(#[source] VerifierBuilderError),
    /// A certificate among the authorities cannot be used.
    #[error("a certificate among the authorities cannot be used")]
    Root(#[source] rustls::Error),
}

/// A server's identity, and who may connect.
#[derive(Clone)]
pub struct Tls {
    acceptor: TlsAcceptor,
    mutual: bool,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("mutual", &self.mutual).finish_non_exhaustive()
    }
}

impl Tls {
    /// A server that shows `identity`. With `clients`, only peers whose certificate one of these authorities signed may
    /// connect.
    ///
    /// # Errors
    /// A certificate or key that does not decode, or that does not fit the other.
    pub fn new(identity: &Identity, clients: Option<&Certificates>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Identity)?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let mut roots = RootCertStore::empty();
                for authority in authorities
                    .decoded()
                    .map_err(|source| TlsError::Decode { what: "authority for clients", source })?
                {
                    roots.add(authority).map_err(TlsError::Root)?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider)
                    .build()
                    .map_err(TlsError::ClientAuthority)?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let chain = identity
            .chain
            .decoded()
            .map_err(|source| TlsError::Decode { what: "server's certificate", source })?;
        let key = PrivateKeyDer::from_pem_slice(identity.key.pem())
            .map_err(|source| TlsError::Decode { what: "server's key", source })?;
        let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Identity)?;
        config.alpn_protocols.push(H2.to_vec());
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), mutual: clients.is_some() })
    }

    /// Whether clients must show a certificate.
    #[must_use]
    pub fn mutual(&self) -> bool {
        self.mutual
    }

    /// Shakes hands; a peer that fails is told, logged with the reason and dropped.
    pub(super) async fn accept(
        &self,
        peer: SocketAddr,
        socket: Counted,
    ) -> Option<TlsStream<Counted>> {
        let accepting = self.acceptor.accept(socket).into_fallible();
        match tokio::time::timeout(HANDSHAKE, accepting).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err((error, socket))) => {
                tracing::warn!(%peer, %error, "TLS handshake failed; the connection is closed");
                // It does not matter how the peer leaves.
                let _ = tokio::time::timeout(FAREWELL, farewell(socket)).await;
                None
            }
            Err(_) => {
                tracing::warn!(%peer, "no TLS handshake within {HANDSHAKE:?}; the connection is closed");
                None
            }
        }
    }
}

/// Lets a peer read why it was refused. A socket that is closed with unread bytes in it is reset, and a reset takes the
/// alert with it.
async fn farewell(mut socket: Counted) -> std::io::Result<()> {
    socket.shutdown().await?;
    let mut unread = (&mut socket).take(FAREWELL_BYTES_MAX);
    tokio::io::copy(&mut unread, &mut tokio::io::sink()).await?;
    Ok(())
}
