//! Integration tests, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs
)]

mod architecture;
mod data_plane;
mod p4_artifacts;
mod p4runtime_proto;
mod rig;
mod stf;
