//! The switch on real programs: our own, and `tests/data/switch/exercise.p4`, in which a command header asks for one
//! service after the other.

mod control;
mod packets;
mod rig;

use super::*;
use rig::{Rig, ringpath};

#[test]
fn our_program_loads_with_its_p4info() {
    let (switch, _) = ringpath();
    assert_eq!(switch.poll_at(), None);
}

#[test]
fn without_a_program_everything_is_dropped_and_refused() {
    let mut switch = Switch::new(Config::default());
    switch.receive(Time(0), PortNo(1), &[0; 60]);
    assert_eq!(switch.stats().drops(Drop::NoProgram), 1);
    assert_eq!(switch.poll_at(), None);
    let refusal = switch.write(Time(0), &Update::default()).unwrap_err();
    assert_eq!(refusal.code, Code::FailedPrecondition);
}

#[test]
fn a_program_that_is_broken_is_refused_and_the_old_one_stays() {
    let mut rig = Rig::new();
    rig.insert("exact_table", &[("key", rig::exact(5))], 0, ("result_counted", &[("value", 1)]));
    let mut config = rig.config.clone();
    config.p4_device_config = b"{\"header_types\": 3}".to_vec().into();
    let refusal = rig.switch.load_pipeline(Time(0), &config).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidArgument);
    assert!(refusal.message.starts_with("device config:"), "{}", refusal.message);
    assert_eq!(rig.ask(1, 0, 0, 5).unwrap().result, 1);
    rig.switch.load_pipeline(Time(0), &rig.config.clone()).unwrap();
    assert_eq!(rig.read_all("exact_table").len(), 0, "a new program starts without entries");
}

#[test]
fn a_p4info_of_another_program_is_refused_by_name() {
    let rig = Rig::new();
    let mut config = rig.config.clone();
    let info = config.p4info.as_mut().unwrap();
    info.tables[0].preamble.as_mut().unwrap().name = "Enter.other".to_owned();
    let refusal = rig.switch.verify_pipeline(&config).unwrap_err();
    assert!(refusal.message.contains("has the table 'Enter.other'"), "{}", refusal.message);
}
