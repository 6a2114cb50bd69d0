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
mod bad_input;
mod conformance;
mod controller_command;
mod data_plane;
mod demo_report;
mod detection;
mod driver;
mod elastic;
mod evaluate;
mod events;
mod fake_device;
mod import_command;
mod inspect;
mod interop;
mod links;
mod model;
mod p4_artifacts;
mod p4runtime_grpc;
mod p4runtime_proto;
mod p4runtime_server;
mod p4runtime_text;
mod p4runtime_tls;
mod plan_command;
mod rig;
mod stf;
mod stf_command;
mod switch_allocations;
mod switch_ports;
mod switch_statistics;
mod switch_stf;
mod switch_suite;
mod switch_trace;
