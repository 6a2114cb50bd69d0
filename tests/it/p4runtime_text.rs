//! Short ways to write P4Runtime requests in tests, most of them in text format.

use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::field_match::FieldMatchType;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::proto::p4::v1::stream_message_request::Update as Request;
use ringpath::p4runtime::proto::p4::v1::{
    Entity, ForwardingPipelineConfig, PacketOut, ReadRequest, SetForwardingPipelineConfigRequest,
    StreamMessageRequest, Uint128, WriteRequest, entity, forwarding_pipeline_config, table_action,
};
use ringpath::p4runtime::rpc::Rpc;
use ringpath::p4runtime::text;

pub const P4INFO: &str = include_str!("../data/p4info/conformance.txtpb");

pub fn stream(message: &str) -> StreamMessageRequest {
    text::parse("p4.v1.StreamMessageRequest", message).unwrap()
}

pub fn arbitration(election: u64) -> StreamMessageRequest {
    stream(&format!("arbitration {{ device_id: 1 election_id {{ low: {election} }} }}"))
}

pub fn packet_out(payload: &str, port: u16) -> StreamMessageRequest {
    StreamMessageRequest { update: packet(payload, port).map(Request::Packet) }
}

pub fn packet(payload: &str, port: u16) -> Option<PacketOut> {
    let metadata = format!(
        "metadata {{ metadata_id: 1 value: '\\x{:x}' }} metadata {{ metadata_id: 2 value: '\\0' }}",
        port
    );
    Some(text::parse("p4.v1.PacketOut", &format!("payload: '{payload}' {metadata}")).unwrap())
}

pub fn config() -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(Index::from_text(P4INFO).unwrap().info().clone()),
        p4_device_config: b"program".as_slice().into(),
        cookie: Some(forwarding_pipeline_config::Cookie { cookie: 77 }),
    }
}

pub fn set_pipeline(election: u64) -> Rpc {
    pipeline(election, Action::VerifyAndCommit, Some(config()))
}

pub fn pipeline(election: u64, action: Action, config: Option<ForwardingPipelineConfig>) -> Rpc {
    Rpc::SetPipeline(SetForwardingPipelineConfigRequest {
        device_id: 1,
        election_id: Some(Uint128 { high: 0, low: election }),
        action: action.into(),
        config,
        ..SetForwardingPipelineConfigRequest::default()
    })
}

/// `updates` in text format, as in `updates { type: INSERT entity { ... } }`.
pub fn write(election: u64, updates: &str) -> Rpc {
    let head = format!("device_id: 1 election_id {{ low: {election} }} ");
    let request: WriteRequest = text::parse("p4.v1.WriteRequest", &format!("{head}{updates}"))
        .unwrap_or_else(|error| panic!("{error} in {updates}"));
    Rpc::Write(request)
}

/// One pattern in text format.
pub fn read(pattern: &str) -> Rpc {
    let request: ReadRequest =
        text::parse("p4.v1.ReadRequest", &format!("device_id: 1 entities {{ {pattern} }}"))
            .unwrap_or_else(|error| panic!("{error} in {pattern}"));
    Rpc::Read(request)
}

/// An INSERT into `exact_t` with key and argument `port`.
pub fn exact_insert(port: u16) -> String {
    let value = format!("'\\x{port:x}'");
    format!(
        "updates {{ type: INSERT entity {{ table_entry {{ table_id: 0x02000001 match {{ field_id: 1 exact {{ value: {value} }} }} \
         action {{ action {{ action_id: 0x01000002 params {{ param_id: 1 value: {value} }} params {{ param_id: 2 value: '\\x2' }} }} }} }} }} }}"
    )
}

/// Key and first argument of an entry with one exact field and a direct action.
pub struct Table {
    pub key: Vec<u8>,
    pub action: Vec<u8>,
}

pub fn table(entity: &Entity) -> Table {
    let Some(entity::Entity::TableEntry(entry)) = &entity.entity else { panic!("{entity:?}") };
    let Some(FieldMatchType::Exact(exact)) = &entry.r#match[0].field_match_type else { panic!() };
    let Some(table_action::Type::Action(action)) = &entry.action.as_ref().unwrap().r#type else {
        panic!()
    };
    Table { key: exact.value.clone(), action: action.params[0].value.clone() }
}
