//! The switch that a command looks into: flags, connection, reads.
//!
//! In: flags. Out: P4Info and entities, or an error that says what was asked, of whom, why it failed and what to do. Reads
//! never open a stream and never send an election id, so that they disturb no controller.

use super::exit;
use crate::p4runtime::client::tls::Credentials;
use crate::p4runtime::client::{Client, Limits};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use crate::p4runtime::proto::p4::v1::{
    CapabilitiesRequest, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    ReadRequest,
};
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc};
use crate::p4runtime::status::to_failure;
use crate::p4runtime::tls::{Certificates, Identity, PrivateKey};
use crate::time::Span;
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

/// Which switch, and how to reach it.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Switch")]
pub struct Target {
    /// Address of the switch's P4Runtime server.
    #[arg(
        long,
        alias = "grpc-addr",
        value_name = "HOST:PORT",
        env = "RINGPATH_ADDRESS",
        default_value = "127.0.0.1:9559"
    )]
    pub address: String,
    /// Device id that the server expects.
    #[arg(long, value_name = "N", env = "RINGPATH_DEVICE_ID", default_value_t = 0, value_parser = super::number)]
    pub device_id: u64,
    /// P4Info of the program (p4c's text form); fetched from the switch if not given.
    #[arg(long, value_name = "FILE")]
    pub p4info: Option<PathBuf>,
    /// Longest wait for an answer, such as 500ms.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub timeout: Span,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
}

/// Whom to believe, and who to be.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "TLS")]
#[group(id = "tls-of-a-client")]
pub struct TlsFlags {
    /// Authority (PEM) that signed the switch's certificate; TLS is used if it is given.
    #[arg(long = "cacert", value_name = "FILE", env = "RINGPATH_CACERT")]
    pub tls_cacert: Option<PathBuf>,
    /// Certificate (PEM) to show to a switch that wants one.
    #[arg(long = "cert", value_name = "FILE", env = "RINGPATH_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Key of that certificate (PEM); refused if every user of the machine may read it.
    #[arg(
        long = "key",
        alias = "private-key",
        value_name = "FILE",
        env = "RINGPATH_KEY",
        requires = "tls_cert"
    )]
    pub tls_key: Option<PathBuf>,
}

impl TlsFlags {
    /// Reads the files; `None` without an authority.
    ///
    /// # Errors
    /// A file that cannot be read or is no PEM; a key that everybody may read.
    pub fn load(&self) -> anyhow::Result<Option<Credentials>> {
        let Some(authority) = &self.tls_cacert else {
            if self.tls_cert.is_some() {
                let text = "--cert: give --cacert FILE too, the authority that signed the switch's certificate";
                return Err(exit::usage(text.to_owned()));
            }
            return Ok(None);
        };
        let identity = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => {
                let key = PrivateKey::read(key)?;
                if let Some(note) = key.note() {
                    tracing::warn!("{note}");
                }
                Some(Identity { chain: Certificates::read(cert)?, key })
            }
            _ => None,
        };
        Ok(Some(Credentials { authorities: Certificates::read(authority)?, identity }))
    }
}

/// A request that a switch did not fulfil.
#[derive(Debug, Error)]
#[error("{what} at {address} (device {device}) failed: {failure}{}", advice(*code, what, *from_file))]
struct Refused {
    what: String,
    address: String,
    device: u64,
    code: Code,
    /// P4Info came from a file, which may be of another program.
    from_file: bool,
    failure: Failure,
}

/// What to do about a failure, by its code.
fn advice(code: Code, what: &str, from_file: bool) -> &'static str {
    match code {
        Code::InvalidArgument | Code::NotFound if from_file => {
            "; is --p4info of the program that the switch runs?"
        }
        Code::Unimplemented if what.contains("register") => {
            "; BMv2 has no registers over P4Runtime: use its simple_switch_CLI (register_read), or counters"
        }
        Code::Unimplemented => "; this switch does not offer it",
        Code::FailedPrecondition => {
            "; the switch has no program (BMv2 says so of a wrong --device-id too): let a controller push one, or start `ringpath switch PROGRAM.json --p4info FILE`"
        }
        Code::NotFound => "; see --device-id",
        Code::Unauthenticated => "; see --cacert, --cert and --key",
        Code::PermissionDenied => "; the server wants to know who asks",
        Code::DeadlineExceeded | Code::Cancelled => {
            "; is it a P4Runtime server? Raise --timeout if it is slow"
        }
        Code::Unavailable | Code::Internal | Code::Unknown => {
            "; does a P4Runtime server listen there?"
        }
        _ => "",
    }
}

/// An open connection.
pub struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
    target: Target,
}

impl Target {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there, or the address is none.
    pub fn connect(&self) -> anyhow::Result<Session> {
        let (url, credentials) = self.url()?;
        let runtime = super::process::asking()?;
        let limits = Limits { connect: self.wait(), ..Limits::default() };
        let client = runtime.block_on(Client::connect_with(&url, credentials.as_ref(), limits))?;
        Ok(Session { runtime, client, target: self.clone() })
    }

    /// The address with its scheme, and credentials if it is `https`.
    fn url(&self) -> anyhow::Result<(String, Option<Credentials>)> {
        let credentials = self.tls.load()?;
        let (scheme, other) = match credentials {
            Some(_) => ("https://", "http://"),
            None => ("http://", "https://"),
        };
        if self.address.starts_with(other) {
            let what = match credentials {
                Some(_) => "--cacert is for https; leave it or the http:// out",
                None => "give --cacert FILE, the authority that signed the switch's certificate",
            };
            return Err(exit::usage(format!("--address {}: {what}", self.address)));
        }
        let url = match self.address.starts_with(scheme) {
            true => self.address.clone(),
            false => format!("{scheme}{}", self.address),
        };
        Ok((url, credentials))
    }

    fn wait(&self) -> Duration {
        Duration::from_nanos(self.timeout.0)
    }

    /// P4Info alone: from the file if one is given, else from the switch.
    ///
    /// # Errors
    /// The file or the switch's answer is no P4Info.
    pub fn index(&self) -> anyhow::Result<Index> {
        match &self.p4info {
            Some(path) => read_p4info(path),
            None => self.connect()?.index(),
        }
    }

    /// Connection and P4Info.
    ///
    /// # Errors
    /// As `connect` and `index`.
    pub fn open(&self) -> anyhow::Result<(Session, Index)> {
        // A bad file is told before the network is touched.
        let index = self.p4info.as_deref().map(read_p4info).transpose()?;
        let session = self.connect()?;
        let index = match index {
            Some(index) => index,
            None => session.index()?,
        };
        Ok((session, index))
    }
}

/// Reads a P4Info file.
///
/// # Errors
/// It cannot be read, or is no P4Info; with line and column.
pub fn read_p4info(path: &Path) -> anyhow::Result<Index> {
    let bytes =
        std::fs::read(path).with_context(|| format!("cannot read --p4info {}", path.display()))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        anyhow::anyhow!("{}: not text; give p4c's text form (*.p4info.txtpb)", path.display())
    })?;
    Index::from_text(&text).with_context(|| format!("{} is no usable P4Info", path.display()))
}

impl Session {
    fn call(&self, what: &str, rpc: Rpc) -> anyhow::Result<Reply> {
        let reply = self.runtime.block_on(self.client.call(rpc, Some(self.target.wait())));
        reply.map_err(|failure| self.refused(what, failure))
    }

    fn refused(&self, what: &str, failure: Failure) -> anyhow::Error {
        // The details say more than the UNKNOWN that a Read with failed patterns carries.
        let detail = failure.updates.iter().find(|error| error.canonical_code != 0);
        let code = detail.map_or(failure.code, |error| Code::from_number(error.canonical_code));
        Refused {
            what: what.to_owned(),
            address: self.target.address.clone(),
            device: self.target.device_id,
            code,
            from_file: self.target.p4info.is_some(),
            failure,
        }
        .into()
    }

    /// Executes a call of another service of the same server.
    ///
    /// # Errors
    /// It was refused, or there was no answer in time.
    pub fn beside<T>(
        &self,
        what: &str,
        call: impl AsyncFnOnce(Channel) -> Result<T, Status>,
    ) -> anyhow::Result<T> {
        let reply = self.runtime.block_on(async {
            let channel = self.client.channel();
            tokio::time::timeout(self.target.wait(), call(channel)).await.unwrap_or_else(|_| {
                let text = format!("no answer in {}", self.target.timeout);
                Err(Status::deadline_exceeded(text))
            })
        });
        reply.map_err(|status| self.refused(what, to_failure(&status)))
    }

    /// The next message of such a call's stream, however long it takes; `None` when the server has ended it.
    ///
    /// # Errors
    /// The stream broke.
    pub fn next<T>(&self, stream: &mut Streaming<T>) -> anyhow::Result<Option<T>> {
        let next = self.runtime.block_on(stream.message());
        next.map_err(|status| self.refused("the stream", to_failure(&status)))
    }

    /// Program and cookie, without the device's part.
    ///
    /// # Errors
    /// The switch refuses, or has no program.
    pub fn pipeline(&self) -> anyhow::Result<ForwardingPipelineConfig> {
        let request = GetForwardingPipelineConfigRequest {
            device_id: self.target.device_id,
            response_type: ResponseType::P4infoAndCookie.into(),
        };
        let what = "getting the program";
        match self.call(what, Rpc::GetPipeline(request))? {
            Reply::GetPipeline(reply) => Ok(reply.config.unwrap_or_default()),
            _ => anyhow::bail!("{what}: the answer is of another call"),
        }
    }

    /// P4Info of the program that runs.
    ///
    /// # Errors
    /// As `pipeline`, or its P4Info contradicts itself.
    pub fn index(&self) -> anyhow::Result<Index> {
        let (address, device) = (&self.target.address, self.target.device_id);
        let info = self.pipeline()?.p4info.with_context(|| {
            format!(
                "{address} (device {device}) answers, but has no P4Info to give: no program is loaded, or its server does not keep it; push a program or give --p4info FILE"
            )
        })?;
        Index::new(info).with_context(|| {
            format!("the P4Info that {address} gave is not usable; give --p4info FILE")
        })
    }

    /// Version of the protocol that the server speaks; `None` if it does not say.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        let request = CapabilitiesRequest { device_id: 0 };
        match self.call("asking for its version", Rpc::Capabilities(request)) {
            Ok(Reply::Capabilities(reply)) => Some(reply.p4runtime_api_version),
            _ => None,
        }
    }

    /// Reads one pattern. `what` completes the error: "reading table 't'".
    ///
    /// # Errors
    /// The switch refuses.
    pub fn read(&self, what: &str, pattern: Kinds) -> anyhow::Result<Vec<Entity>> {
        self.read_all(what, vec![pattern])
    }

    /// Reads several patterns in one request.
    ///
    /// # Errors
    /// The switch refuses.
    pub fn read_all(&self, what: &str, patterns: Vec<Kinds>) -> anyhow::Result<Vec<Entity>> {
        let request = ReadRequest {
            device_id: self.target.device_id,
            entities: patterns.into_iter().map(|kind| Entity { entity: Some(kind) }).collect(),
            ..ReadRequest::default()
        };
        match self.call(what, Rpc::Read(request))? {
            Reply::Read(entities) => Ok(entities),
            _ => anyhow::bail!("{what}: the answer is of another call"),
        }
    }
}
