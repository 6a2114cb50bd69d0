//! The P4Runtime server of one device, without I/O.
//!
//! ```text
//!  stream messages ─► arbitration ─┐                       ┌─► check (P4Info) ─► device.write / read
//!  calls ──────────────────────────┴─► who may? (primary) ─┤
//!                                                          └─► pipeline (verify, save, commit, reconcile)
//!  device outbox ─► drain ─► streams of the primaries
//! ```
//!
//! In: stream messages and calls, each with `now`. Out: messages to streams, results of calls. Must not know sockets,
//! clocks or which switch it serves (`Device`). Section numbers are those of the P4Runtime specification 1.5.

mod arbitration;
mod check;
pub mod feed;
pub mod listen;
mod pipeline;
mod read;
mod role;
pub mod service;
mod stream;
pub mod tls;
mod write;

use crate::p4runtime::device::Device;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::{
    CapabilitiesRequest, CapabilitiesResponse, ForwardingPipelineConfig, StreamMessageResponse,
    Uint128,
};
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc, RpcResult, StreamEnd};
use crate::time::Time;
use arbitration::Roles;
use pipeline::{Program, Saved};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Version of the protocol that `Capabilities` reports.
pub const API_VERSION: &str = "1.5.0";
/// The version that PI reports (proto/server/pi_server.cpp).
pub const API_VERSION_BMV2: &str = "1.3.0";
/// Controllers per role, as in PI; one more is refused with `RESOURCE_EXHAUSTED`.
pub const STREAMS_PER_ROLE_MAX: usize = 16;
/// Roles that a server remembers. Each keeps its highest election id for ever, so they must not grow without bound.
pub const ROLES_MAX: usize = 64;
/// Longest name of a role, for the same reason.
pub const ROLE_NAME_BYTES_MAX: usize = 256;
/// Updates in one Write; 50 times what clients should send, and bounds the work under one lock.
pub const UPDATES_MAX: usize = 25_000;
/// Patterns in one Read.
pub const PATTERNS_MAX: usize = 1_000;
/// Updates kept between VERIFY_AND_SAVE and COMMIT.
pub const SAVED_UPDATES_MAX: usize = 1_000_000;

/// Whose behaviour the server shows where the specification and BMv2's PI differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The specification's.
    #[default]
    Spec,
    /// PI's, as used by simple_switch_grpc: no RegisterEntry, no atomic batches, table full is UNKNOWN, one
    /// ReadResponse, backups are promoted, no election id is remembered, too wide is INVALID_ARGUMENT.
    Bmv2,
}

/// Names a stream of one server; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// What a client's stream gets: a message, or its end with a status.
pub type ToClient = (StreamId, Result<StreamMessageResponse, StreamEnd>);

/// The server of one device.
pub struct Server<D> {
    device: D,
    profile: Profile,
    roles: Roles,
    next_stream: u64,
    /// Streams that were opened and have not ended. The transport bounds them (`service::STREAMS_OPEN_MAX`).
    streams: BTreeSet<StreamId>,
    /// The program that runs.
    program: Option<Program>,
    /// The program that waits for COMMIT, with a blank device on which writes are tried.
    saved: Option<Saved<D>>,
}

impl<D: Device> Server<D> {
    /// A server without program and clients.
    #[must_use]
    pub fn new(device: D, profile: Profile) -> Self {
        Self {
            device,
            profile,
            roles: Roles::new(profile),
            next_stream: 0,
            streams: BTreeSet::new(),
            program: None,
            saved: None,
        }
    }

    /// The device, for ports and statistics.
    #[must_use]
    pub fn device(&self) -> &D {
        &self.device
    }

    /// The device, to let packets and time in.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// The profile it was made with.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// P4Info of the program that runs.
    #[must_use]
    pub fn index(&self) -> Option<&Arc<Index>> {
        self.program.as_ref().map(|program| &program.index)
    }

    /// The program that runs, as it was set.
    #[must_use]
    pub fn config(&self) -> Option<&ForwardingPipelineConfig> {
        self.program.as_ref().map(|program| &program.config)
    }

    /// Executes a call. A Read whose patterns partly fail returns the failure; the entities of the others are only
    /// seen through `read`.
    pub fn call(&mut self, now: Time, rpc: Rpc) -> RpcResult {
        match rpc {
            Rpc::Capabilities(request) => self.capabilities(&request).map(Reply::Capabilities),
            Rpc::Write(request) => self.write(now, request).map(|()| Reply::Write),
            Rpc::Read(request) => {
                let mut entities = Vec::new();
                self.read(now, request, &mut |entity| entities.push(entity))?;
                Ok(Reply::Read(entities))
            }
            Rpc::SetPipeline(request) => {
                self.set_pipeline(now, request).map(|()| Reply::SetPipeline)
            }
            Rpc::GetPipeline(request) => self.get_pipeline(&request).map(Reply::GetPipeline),
        }
    }

    /// Section 17.
    fn capabilities(&self, request: &CapabilitiesRequest) -> Result<CapabilitiesResponse, Failure> {
        if request.device_id != 0 {
            self.known_device(request.device_id)?;
        }
        let version = match self.profile {
            Profile::Spec => API_VERSION,
            Profile::Bmv2 => API_VERSION_BMV2,
        };
        Ok(CapabilitiesResponse { p4runtime_api_version: version.to_owned(), experimental: None })
    }

    fn known_device(&self, id: u64) -> Result<(), Failure> {
        let own = self.device.device_id();
        if id == own {
            return Ok(());
        }
        Err(Failure::new(Code::NotFound, format!("there is no device {id}; this one is {own}")))
    }

    /// The first checks of Write and SetForwardingPipelineConfig (sections 12 and 14): device, role, primary.
    fn may_write(&self, device: u64, role: &str, election: Option<Uint128>) -> Result<(), Failure> {
        self.known_device(device)?;
        let election = election.map(number);
        self.roles.may_write(role, election)
    }

    /// The program that Reads and Writes refer to: the saved one if there is one (section 14, VERIFY_AND_SAVE).
    fn current(&self) -> Result<&Program, Failure> {
        let saved = self.saved.as_ref().map(|saved| &saved.program);
        saved.or(self.program.as_ref()).ok_or_else(|| {
            let text =
                "no forwarding pipeline config is set; use SetForwardingPipelineConfig first";
            Failure::new(Code::FailedPrecondition, text)
        })
    }
}

/// An election id as a number.
const fn number(id: Uint128) -> u128 {
    ((id.high as u128) << 64) | id.low as u128
}

/// A number as an election id.
const fn uint128(id: u128) -> Uint128 {
    Uint128 { high: (id >> 64) as u64, low: id as u64 }
}
