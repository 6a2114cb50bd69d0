//! Both ends of the P4Runtime protocol, version 1.5.
//!
//! ```text
//!  pipeline ─Update─► rpc::Rpc ─► client* ─gRPC─► server::service* ─► server ─► device (trait)
//!  controller ◄─────── session ◄── stream ◄─────────────────────────── outbox ◄───┘   (* = does I/O)
//! ```
//!
//! In: generated messages (`proto`), values (`value`), P4Info (`p4info`). Out: calls as values, a client, a server.
//! Must not know our own P4 program: every name and width comes from P4Info.

pub mod client;
pub mod device;
pub mod look;
pub mod matches;
pub mod p4info;
pub mod proto;
pub mod rpc;
pub mod server;
pub mod session;
pub mod show;
pub mod status;
pub mod text;
pub mod tls;
pub mod value;
