//! TLS of the client. In: whom to believe and who to be. Out: connections, and what TLS had against those that failed. Must not
//! know calls.

use crate::p4runtime::tls::{Certificates, H2, Identity};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, AlertDescription, CertificateError, ClientConfig, RootCertStore};
use tonic::codegen::http::Uri;

/// Whom a client believes, and who it says it is.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Authorities of which one has signed the server's certificate. The system's are not used: a switch's certificate
    /// is its operator's, and no public authority should be able to stand for it.
    pub authorities: Certificates,
    /// What the client shows to a server that wants a certificate.
    pub identity: Option<Identity>,
}

/// Why credentials cannot be used.
#[derive(Debug, Error)]
pub enum CredentialsError {
    /// PEM that does not decode.
    #[error("the {what} does not decode")]
    Decode {
        /// Which of the files.
        what: &'static str,
        /// Why; pem errors quote no content.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// An authority is of a kind that is not known.
    #[error("an authority's certificate cannot be used")]
    Authority(#[source] rustls::Error),
    /// Certificate and key of the client do not belong together.
    #[error("certificate and key of the client cannot be used")]
    Identity(#[source] rustls::Error),
}

impl Credentials {
    fn config(&self) -> Result<ClientConfig, CredentialsError> {
        let mut roots = RootCertStore::empty();
        for authority in self.authorities.decoded().map_err(|source| CredentialsError::Decode {
            what: "authority's certificate",
            source,
        })? {
            roots.add(authority).map_err(CredentialsError::Authority)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(CredentialsError::Authority)?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let chain = own.chain.decoded().map_err(|source| CredentialsError::Decode {
                    what: "client's certificate",
                    source,
                })?;
                let key = PrivateKeyDer::from_pem_slice(own.key.pem())
                    .map_err(|source| CredentialsError::Decode { what: "client's key", source })?;
                builder.with_client_auth_cert(chain, key).map_err(CredentialsError::Identity)?
            }
        };
        config.alpn_protocols.push(H2.to_vec());
        Ok(config)
    }
}

/// What TLS had against a connection after it was open. TLS 1.3 lets a client begin before the server has judged its
/// certificate, and what the server then says would be lost among the causes of a call that was given up.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<Mutex<Option<String>>>);

impl Heard {
    /// The last thing said.
    pub(super) fn get(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, said: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }
}

/// Opens sockets and shakes hands.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
    heard: Heard,
}

impl Connector {
    pub(super) fn new(credentials: &Credentials) -> Result<Self, CredentialsError> {
        let tls = TlsConnector::from(Arc::new(credentials.config()?));
        Ok(Self { tls, heard: Heard::default() })
    }

    pub(super) fn heard(&self) -> Heard {
        self.heard.clone()
    }

    /// A connection to the host and port of an address, which the server's certificate must be for.
    pub(super) async fn connect(self, address: Uri) -> io::Result<TokioIo<Listened>> {
        let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let socket = TcpStream::connect((host, address.port_u16().unwrap_or(443))).await?;
        socket.set_nodelay(true)?;
        let stream = self.tls.connect(name, socket).await?;
        self.heard.set(None);
        Ok(TokioIo::new(Listened { stream, heard: self.heard }))
    }
}

/// A connection that remembers what TLS said when it broke.
pub(super) struct Listened {
    stream: TlsStream<TcpStream>,
    heard: Heard,
}

impl AsyncRead for Listened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        if let Poll::Ready(Err(error)) = &poll
            && let Some(said) = reason(error)
        {
            self.heard.set(Some(said));
        }
        poll
    }
}

impl AsyncWrite for Listened {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// What TLS had against a connection, in the words of who has to mend it; `None` for other errors.
pub(super) fn reason(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(cause) = next {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let found = cause
            .downcast_ref::<rustls::Error>()
            .or_else(|| inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()));
        if let Some(found) = found {
            return Some(format!("{}: {found}", words(found)));
        }
        next = cause.source();
    }
    None
}

fn words(error: &rustls::Error) -> &'static str {
    use CertificateError as Bad;
    match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::UnknownIssuer | Bad::BadSignature => {
                "the server's certificate was not signed by the authority given"
            }
            Bad::Expired | Bad::ExpiredContext { .. } => "the server's certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet"
            }
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                "the server's certificate is for another name than the address given"
            }
            _ => "the server's certificate is not accepted",
        },
        rustls::Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => "the server wants a certificate of the client",
            AlertDescription::UnknownCA | AlertDescription::DecryptError => {
                "the server does not know the authority that signed the client's certificate"
            }
            AlertDescription::CertificateExpired => "the client's certificate has expired",
            _ => "the server refuses the connection",
        },
        rustls::Error::InvalidMessage(_) => "what listens there does not speak TLS",
        _ => "TLS failed",
    }
}
