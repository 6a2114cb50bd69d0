//! Any requests: records as `ringpath::p4runtime::server::feed` has them. The first byte chooses whose answers the server gives.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::{
    ForwardingPipelineConfig, MasterArbitrationUpdate, StreamMessageRequest, Uint128,
    stream_message_request,
};
use ringpath::p4runtime::rpc::Rpc;
use ringpath::p4runtime::server::feed::{Client, feed};
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::time::Time;
use ringpath_fuzz::{PROGRAMS, bare};

const ELECTION: u128 = 7;

thread_local!(static CONFIG: ForwardingPipelineConfig = {
    let info = include_str!("../../tests/data/conformance/program.p4info.txtpb");
    ForwardingPipelineConfig {
        p4info: Some(Index::from_text(info).expect("the P4Info is right").info().clone()),
        p4_device_config: PROGRAMS[3].to_vec().into(),
        cookie: None,
    }
});

fuzz_target!(|data: &[u8]| {
    let [first, records @ ..] = data else { return };
    let profile = if first & 1 == 0 { Profile::Spec } else { Profile::Bmv2 };
    let mut server = Server::new(bare(), profile);
    CONFIG.with(|config| server.boot(Time::ZERO, config.clone()).expect("the program runs"));
    let stream = server.open_stream();
    let arbitration = MasterArbitrationUpdate {
        election_id: Some(Uint128 { high: 0, low: ELECTION as u64 }),
        ..MasterArbitrationUpdate::default()
    };
    let update = Some(stream_message_request::Update::Arbitration(arbitration));
    drop(server.stream_message(Time::ZERO, stream, StreamMessageRequest { update }));
    feed(&mut server, Client { stream, election: ELECTION }, Time::ZERO, records);
    // Whatever happened, it still answers.
    server.call(Time::ZERO, Rpc::Capabilities(Default::default())).expect("capabilities");
});
