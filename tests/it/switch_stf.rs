//! STF cases of our own programs; those of the data plane are run by `stf.rs`.

use ringpath::switch::stf;
use std::path::Path;

fn check(json: &[u8], case: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(case).map_err(|e| e.to_string())?;
    let lines = stf::parse(&text).map_err(|e| e.to_string())?;
    let report = stf::run(json, &lines).map_err(|e| e.to_string())?;
    if report.passed() { Ok(()) } else { Err(format!("{:#?}", report.failures)) }
}

#[test]
fn the_tutorials_case_passes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let json = std::fs::read(root.join("p4/build/reflect.json")).unwrap();
    check(&json, &root.join("tests/data/samples/reflect.stf")).unwrap();
}

/// `values.stf` was made with simple_switch (docs/switch-conformance.md).
#[test]
fn hashes_wide_numbers_unions_and_stacks_have_the_values_that_bmv2_gives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/switch");
    let json = std::fs::read(root.join("values.json")).unwrap();
    assert_eq!(check(&json, &root.join("values.stf")), Ok(()));
}
