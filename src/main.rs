//! The `ringpath` binary.

fn main() {}
