//! Generates the protocol code from `proto/` with a pure-Rust compiler: cargo is enough, `protoc` is never looked for.

use prost::Message as _;
use std::error::Error;
use std::path::PathBuf;

const ROOTS: [&str; 5] = [
    "p4/v1/p4runtime.proto",
    "google/rpc/code.proto",
    "ringpath/v1/controller.proto",
    "ringpath/v1/role.proto",
    "ringpath/v1/switch.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let descriptors = protox::compile(ROOTS, ["proto"])?;
    // Kept for gRPC reflection and for the comparison with the published package (tests/interop/descriptors.py).
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        // A program is hundreds of kilobytes and is handed around per switch: share it instead of copying.
        .bytes(".p4.v1.ForwardingPipelineConfig.p4_device_config")
        .compile_fds(descriptors)?;
    Ok(())
}
