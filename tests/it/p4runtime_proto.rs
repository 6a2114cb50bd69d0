//! The descriptor set that reflection serves, and its export for comparison with the published package.

use prost::Message as _;
use prost_types::FileDescriptorSet;
use ringpath::p4runtime::proto::DESCRIPTOR_SET;

/// `tests/interop/descriptors.py` compares the file field by field with PyPI's `p4runtime`.
#[test]
fn writes_the_descriptor_set() {
    let set = FileDescriptorSet::decode(DESCRIPTOR_SET).unwrap();
    let services: Vec<_> = set
        .file
        .iter()
        .flat_map(|file| {
            file.service.iter().map(|service| format!("{}.{}", file.package(), service.name()))
        })
        .collect();
    assert_eq!(services, ["p4.v1.P4Runtime", "ringpath.v1.Controller", "ringpath.v1.Switch"]);
    if let Some(path) = std::env::var_os("RINGPATH_DESCRIPTORS") {
        std::fs::write(path, DESCRIPTOR_SET).unwrap();
    }
}
