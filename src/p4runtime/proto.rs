//! The protocol's messages and service stubs, generated from `proto/` at build time.
//! In: nothing. Out: plain structs. Must not be edited by hand or extended with behaviour.

#![allow(missing_docs, deprecated, clippy::all, clippy::pedantic, clippy::doc_markdown)]

/// Messages of the package `p4`.
pub mod p4 {
    /// The service: `p4runtime.proto` and `p4data.proto`.
    pub mod v1 {
        tonic::include_proto!("p4.v1");
    }
    /// Descriptions of programs.
    pub mod config {
        /// `p4info.proto` and `p4types.proto`.
        pub mod v1 {
            tonic::include_proto!("p4.config.v1");
        }
    }
}

/// Messages of the package `google`.
pub mod google {
    /// `status.proto` and `code.proto`.
    pub mod rpc {
        tonic::include_proto!("google.rpc");
    }
}

/// Messages of the package `ringpath`, our own.
pub mod ringpath {
    /// `controller.proto`, `role.proto` and `switch.proto`.
    pub mod v1 {
        tonic::include_proto!("ringpath.v1");
    }
}

/// The serialised `FileDescriptorSet` of everything above, for gRPC reflection and for comparing with other copies.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
