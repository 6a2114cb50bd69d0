use super::*;
use crate::p4runtime::p4info::Index;

fn ringpath() -> (Switch, Index) {
    let json = include_bytes!("../../../p4/build/ringpath.json");
    let info = Index::from_text(include_str!("../../../p4/build/ringpath.p4info.txtpb")).unwrap();
    let mut switch = Switch::new(Config { priority_queues: 8, ..Config::default() });
    let config = ForwardingPipelineConfig {
        p4info: Some(info.info().clone()),
        p4_device_config: json.to_vec().into(),
        cookie: None,
    };
    switch.load_pipeline(Time(0), &config).unwrap();
    (switch, info)
}

#[test]
fn our_program_loads_with_its_p4info() {
    let (switch, _) = ringpath();
    assert_eq!(switch.poll_at(), None);
}
