use super::*;

/// Our own program, as the P4 compiler wrote it.
const RINGPATH: &[u8] = include_bytes!("../../../p4/build/ringpath.json");

#[test]
fn our_program_loads_and_needs_no_big_integers() {
    let program = load(RINGPATH).unwrap();
    assert!(program.wide.is_empty(), "{:?}", program.wide);
    assert!(program.tables.iter().any(|t| t.name.ends_with("classify")));
}
