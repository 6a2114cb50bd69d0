//! Generates the protocol code.
fn main() {}
