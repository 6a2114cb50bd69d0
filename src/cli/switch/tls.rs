//! Certificates of the switch's server, with simple_switch_grpc's flags. In: flags. Out: what the listener needs, and doubts
//! about the files. A flag that would have no effect is refused: who gives a certificate means to be protected by it.

use super::super::exit;
use crate::p4runtime::server::tls::Tls;
use crate::p4runtime::tls::{Certificates, Identity, PrivateKey};
use std::path::PathBuf;

/// Flags that simple_switch_grpc takes behind `--`.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS")]
pub struct TlsFlags {
    /// Serve over TLS; needs a certificate and its key.
    #[arg(long)]
    pub grpc_server_ssl: bool,
    /// Authority (PEM) that must have signed the certificates of clients; needs --grpc-server-with-client-auth.
    #[arg(long, value_name = "FILE")]
    pub grpc_server_cacert: Option<PathBuf>,
    /// Certificate of the server (PEM), followed by those between it and its authority.
    #[arg(long, value_name = "FILE")]
    pub grpc_server_cert: Option<PathBuf>,
    /// Key of that certificate (PEM); refused if every user of the machine may read it.
    #[arg(long, value_name = "FILE")]
    pub grpc_server_key: Option<PathBuf>,
    /// Let in only clients with a certificate (mutual TLS).
    #[arg(long)]
    pub grpc_server_with_client_auth: bool,
}

impl TlsFlags {
    /// These flags, with those of the other side of `--` where one is not given here.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            grpc_server_ssl: self.grpc_server_ssl || other.grpc_server_ssl,
            grpc_server_cacert: self
                .grpc_server_cacert
                .clone()
                .or(other.grpc_server_cacert.clone()),
            grpc_server_cert: self.grpc_server_cert.clone().or(other.grpc_server_cert.clone()),
            grpc_server_key: self.grpc_server_key.clone().or(other.grpc_server_key.clone()),
            grpc_server_with_client_auth: self.grpc_server_with_client_auth
                || other.grpc_server_with_client_auth,
        }
    }

    /// Reads the files: the listener's settings, `None` without `--grpc-server-ssl`, and what is doubtful.
    ///
    /// # Errors
    /// A flag without effect or one that is missing (wrong use); a file that cannot be used.
    pub fn load(&self) -> anyhow::Result<(Option<Tls>, Vec<String>)> {
        let given = [
            ("--grpc-server-cacert", self.grpc_server_cacert.is_some()),
            ("--grpc-server-cert", self.grpc_server_cert.is_some()),
            ("--grpc-server-key", self.grpc_server_key.is_some()),
            ("--grpc-server-with-client-auth", self.grpc_server_with_client_auth),
        ];
        if !self.grpc_server_ssl {
            return match given.iter().find(|(_, given)| *given) {
                Some((flag, _)) => Err(exit::usage(format!(
                    "{flag}: without --grpc-server-ssl the server is not protected; add it"
                ))),
                None => Ok((None, Vec::new())),
            };
        }
        let (Some(cert), Some(key)) = (&self.grpc_server_cert, &self.grpc_server_key) else {
            let text = "--grpc-server-ssl: give --grpc-server-cert FILE and --grpc-server-key FILE";
            return Err(exit::usage(text.to_owned()));
        };
        let clients = match (&self.grpc_server_cacert, self.grpc_server_with_client_auth) {
            (Some(path), true) => Some(Certificates::read(path)?),
            (None, true) => {
                let text = "--grpc-server-with-client-auth: give --grpc-server-cacert FILE, the authority of the clients";
                return Err(exit::usage(text.to_owned()));
            }
            (Some(_), false) => {
                let text = "--grpc-server-cacert: clients are not asked for certificates; add --grpc-server-with-client-auth";
                return Err(exit::usage(text.to_owned()));
            }
            (None, false) => None,
        };
        let identity = Identity { chain: Certificates::read(cert)?, key: PrivateKey::read(key)? };
        let doubts = identity.key.note().map(str::to_owned).into_iter().collect();
        let tls = Tls::new(&identity, clients.as_ref())?;
        Ok((Some(tls), doubts))
    }
}
