//! Arbitration (section 5) and stream messages (section 16).

use super::{NOW, config, empty, ready};
use crate::p4runtime_text as t;
use ringpath::p4runtime::proto::p4::v1::Uint128;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::proto::p4::v1::stream_error::Details;
use ringpath::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use ringpath::p4runtime::rpc::{Code, Reply};
use ringpath::p4runtime::server::{Profile, STREAMS_PER_ROLE_MAX, Server, StreamId, ToClient};
use ringpath::switch::Switch;

/// A server with streams numbered from 1 in the order of their opening.
struct World {
    server: Server<Switch>,
}

impl World {
    fn new(profile: Profile) -> Self {
        Self { server: empty(profile) }
    }

    fn open(&mut self, count: usize) -> Vec<StreamId> {
        (0..count).map(|_| self.server.open_stream()).collect()
    }

    /// Arbitrates and shows what came of it, for example `2:OK/7 1:ALREADY_EXISTS/7`.
    fn say(&mut self, stream: StreamId, message: &str) -> String {
        let message = t::stream(&format!("arbitration {{ {message} }}"));
        show(&self.server.stream_message(NOW, stream, message))
    }

    fn id(&mut self, stream: StreamId, id: u64) -> String {
        self.say(stream, &format!("device_id: 1 election_id {{ low: {id} }}"))
    }

    fn close(&mut self, stream: StreamId) -> String {
        show(&self.server.close_stream(NOW, stream))
    }
}

fn show(out: &[ToClient]) -> String {
    let parts: Vec<_> = out
        .iter()
        .map(|(stream, item)| match item {
            Ok(message) => match message.update.as_ref().unwrap() {
                Response::Arbitration(update) => {
                    let code = Code::from_number(update.status.as_ref().unwrap().code);
                    let id = update.election_id.map_or("-".to_owned(), |id| id.low.to_string());
                    format!("{}:{code}/{id}", stream.0)
                }
                other => format!("{}:{other:?}", stream.0),
            },
            Err(end) => format!("{}:end {}", stream.0, end.code),
        })
        .collect();
    parts.join(" ")
}

#[test]
fn the_first_with_an_id_is_primary_and_higher_ids_take_over() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(3);
    assert_eq!(w.id(s[0], 5), "1:OK/5");
    assert_eq!(w.id(s[1], 3), "2:ALREADY_EXISTS/5", "a lower id is a backup and only it is told");
    assert_eq!(
        w.id(s[2], 9),
        "1:ALREADY_EXISTS/9 2:ALREADY_EXISTS/9 3:OK/9",
        "others are told first"
    );
    assert_eq!(
        w.id(s[1], 10),
        "1:ALREADY_EXISTS/10 3:ALREADY_EXISTS/10 2:OK/10",
        "a live client may raise its id"
    );
}

#[test]
fn nobody_is_primary_after_the_primary_left_and_its_id_is_remembered() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(3);
    w.id(s[0], 5);
    w.id(s[1], 3);
    assert_eq!(w.close(s[0]), "2:NOT_FOUND/5");
    assert_eq!(w.id(s[2], 4), "3:NOT_FOUND/5", "lower than the highest ever seen");
    assert_eq!(w.id(s[1], 5), "3:ALREADY_EXISTS/5 2:OK/5", "equal is enough");
    assert_eq!(w.close(s[2]), "", "nobody cares about a backup that leaves");
}

#[test]
fn a_primary_can_step_down() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(2);
    w.id(s[0], 5);
    w.id(s[1], 3);
    assert_eq!(w.id(s[0], 4), "1:NOT_FOUND/5 2:NOT_FOUND/5");
    assert_eq!(w.say(s[0], "device_id: 1"), "1:NOT_FOUND/5", "without an id one is a backup");
    assert_eq!(w.id(s[0], 5), "2:ALREADY_EXISTS/5 1:OK/5");
    assert_eq!(w.say(s[0], "device_id: 1"), "1:NOT_FOUND/5 2:NOT_FOUND/5");
}

#[test]
fn no_election_id_is_reported_before_there_was_a_primary_and_zero_is_an_id() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(3);
    assert_eq!(w.say(s[0], "device_id: 1"), "1:NOT_FOUND/-");
    assert_eq!(w.say(s[1], "device_id: 1"), "2:NOT_FOUND/-", "several may have no id");
    assert_eq!(w.id(s[2], 0), "1:ALREADY_EXISTS/0 2:ALREADY_EXISTS/0 3:OK/0");
}

#[test]
fn bad_arbitration_ends_the_stream_with_its_reason() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(6);
    w.id(s[0], 5);
    assert_eq!(w.say(s[1], "device_id: 2 election_id { low: 9 }"), "2:end NOT_FOUND");
    assert_eq!(w.id(s[2], 5), "3:end INVALID_ARGUMENT", "the id is in use");
    assert_eq!(
        w.say(s[3], "device_id: 1 role { config { type_url: 'x/y' } }"),
        "4:end INVALID_ARGUMENT"
    );
    w.id(s[4], 3);
    assert_eq!(w.id(s[4], 5), "5:end INVALID_ARGUMENT", "also for a live client");
    assert_eq!(
        w.say(s[0], "device_id: 2 election_id { low: 5 }"),
        "1:end FAILED_PRECONDITION",
        "a stream keeps its device"
    );
    w.id(s[5], 7);
    assert_eq!(
        w.say(s[5], "device_id: 1 role { name: 'other' } election_id { low: 7 }"),
        "6:end FAILED_PRECONDITION",
        "and its role"
    );
}

#[test]
fn a_primary_whose_stream_is_ended_is_primary_no_longer() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(2);
    w.id(s[0], 5);
    w.id(s[1], 3);
    let out = w.say(s[0], "device_id: 2 election_id { low: 5 }");
    assert_eq!(out, "2:NOT_FOUND/5 1:end FAILED_PRECONDITION");
}

#[test]
fn what_a_client_sends_on_an_ended_stream_is_dropped() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(2);
    assert_eq!(w.say(s[0], "device_id: 2"), "1:end NOT_FOUND");
    assert_eq!(w.id(s[0], 9), "", "it cannot become primary without anybody to hear it");
    w.close(s[1]);
    assert_eq!(w.id(s[1], 9), "");
    assert_eq!(w.close(s[0]), "");
}

#[test]
fn too_many_streams_of_a_role_are_refused() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(STREAMS_PER_ROLE_MAX + 1);
    for (place, stream) in s[..STREAMS_PER_ROLE_MAX].iter().enumerate() {
        assert!(w.id(*stream, 100 - place as u64).contains("100"));
    }
    assert_eq!(w.id(s[STREAMS_PER_ROLE_MAX], 1), "17:end RESOURCE_EXHAUSTED");
    w.close(s[3]);
    let again = w.open(1);
    assert_eq!(w.id(again[0], 1), "18:ALREADY_EXISTS/100");
}

#[test]
fn each_role_has_its_own_primary_and_memory() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(2);
    w.id(s[0], 5);
    assert_eq!(w.say(s[1], "device_id: 1 role { name: 'b' } election_id { low: 2 }"), "2:OK/2");
    assert_eq!(w.close(s[1]), "");
    assert_eq!(w.id(s[0], 6), "1:OK/6");
}

#[test]
fn writes_need_the_primarys_id_and_end_with_it() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(2);
    w.id(s[0], 5);
    let set = |id| t::pipeline(id, Action::VerifyAndCommit, Some(config()));
    assert_eq!(w.server.call(NOW, set(4)).unwrap_err().code, Code::PermissionDenied);
    assert_eq!(w.server.call(NOW, set(5)), Ok(Reply::SetPipeline));
    assert_eq!(w.server.call(NOW, t::write(5, "")), Ok(Reply::Write));
    w.id(s[1], 6);
    assert_eq!(w.server.call(NOW, t::write(5, "")).unwrap_err().code, Code::PermissionDenied);
    assert_eq!(w.server.call(NOW, t::write(6, "")), Ok(Reply::Write));
    w.close(s[1]);
    assert_eq!(w.server.call(NOW, t::write(6, "")).unwrap_err().code, Code::PermissionDenied);
    assert!(w.server.call(NOW, t::read("table_entry { }")).is_ok(), "anybody may read");
}

#[test]
fn a_role_writes_and_sees_only_what_is_in_its_scope() {
    use prost::Message as _;
    let mut server = ready(Profile::Spec);
    let scope = ringpath::p4runtime::proto::ringpath::v1::RoleConfig {
        object_ids: vec![0x0200_0001],
        ..Default::default()
    };
    let mut message = t::stream(
        "arbitration { device_id: 1 role { name: 'cell' config { type_url: 'type.googleapis.com/ringpath.v1.RoleConfig' } } election_id { low: 1 } }",
    );
    if let Some(ringpath::p4runtime::proto::p4::v1::stream_message_request::Update::Arbitration(
        update,
    )) = &mut message.update
    {
        update.role.as_mut().unwrap().config.as_mut().unwrap().value = scope.encode_to_vec();
    }
    let stream = server.open_stream();
    assert_eq!(show(&server.stream_message(NOW, stream, message)), "2:OK/1");
    let mut as_role = |updates: &str| {
        let ringpath::p4runtime::rpc::Rpc::Write(mut request) = t::write(1, updates) else {
            panic!()
        };
        request.role = "cell".to_owned();
        server.call(NOW, ringpath::p4runtime::rpc::Rpc::Write(request))
    };
    let own = super::cases::exact("'\\x1'", &super::cases::watched("'\\x1'"));
    assert_eq!(as_role(&format!("updates {{ type: INSERT {own} }}")), Ok(Reply::Write));
    let other = "updates { type: MODIFY entity { counter_entry { counter_id: 0x12000001 } } }";
    let failure = as_role(other).unwrap_err();
    assert_eq!(failure.updates[0].canonical_code, Code::PermissionDenied.number());
    let ringpath::p4runtime::rpc::Rpc::Read(mut request) = t::read("table_entry { }") else {
        panic!()
    };
    request.role = "cell".to_owned();
    let Ok(Reply::Read(seen)) = server.call(NOW, ringpath::p4runtime::rpc::Rpc::Read(request))
    else {
        panic!()
    };
    assert_eq!(seen.len(), 1, "constant entries of other tables are left out");
    let error = server.stream_message(NOW, stream, t::packet_out("x", 1));
    assert_eq!(stream_error(&error).0, Code::PermissionDenied);
}

/// PI: no memory, promotion, an unset id is 0.
#[test]
fn the_bmv2_profile_promotes_backups_and_remembers_nothing() {
    let mut w = World::new(Profile::Bmv2);
    let s = w.open(4);
    assert_eq!(w.id(s[0], 9), "1:OK/9");
    assert_eq!(w.id(s[1], 3), "2:ALREADY_EXISTS/9");
    assert_eq!(w.id(s[1], 3), "", "nothing changed, nothing is said");
    assert_eq!(w.close(s[0]), "2:OK/3", "the next-highest is promoted");
    assert_eq!(w.close(s[1]), "");
    assert_eq!(w.id(s[2], 1), "3:OK/1", "a lower id than ever before");
    assert_eq!(w.say(s[3], "device_id: 1"), "4:ALREADY_EXISTS/1");
    assert_eq!(w.close(s[2]), "4:OK/0");
    let unset = t::pipeline(0, Action::VerifyAndCommit, Some(config()));
    assert_eq!(w.server.call(NOW, unset), Ok(Reply::SetPipeline));
}

fn stream_error(out: &[ToClient]) -> (Code, Option<Details>) {
    let [(_, Ok(message))] = out else { panic!("{out:?}") };
    let Some(Response::Error(error)) = &message.update else { panic!("{message:?}") };
    (Code::from_number(error.canonical_code), error.details.clone())
}

/// Sections 16.1 and 16.6.
#[test]
fn bad_stream_messages_get_a_stream_error_that_names_them() {
    let one = "metadata { metadata_id: 1 value: '\\x1' }";
    let two = "metadata { metadata_id: 2 value: '\\0' }";
    let cases = [
        (format!("packet {{ payload: 'x' {one} }}"), Code::InvalidArgument, "a field is missing"),
        (
            format!("packet {{ payload: 'x' {one} {two} {two} }}"),
            Code::InvalidArgument,
            "a field is there twice",
        ),
        (
            format!(
                "packet {{ payload: 'x' {one} {two} metadata {{ metadata_id: 7 value: '\\x1' }} }}"
            ),
            Code::InvalidArgument,
            "a field is unknown",
        ),
        (
            format!(
                "packet {{ payload: 'x' {two} metadata {{ metadata_id: 1 value: '\\x02\\0' }} }}"
            ),
            Code::InvalidArgument,
            "a value is too wide",
        ),
        ("digest_ack { digest_id: 5 }".to_owned(), Code::InvalidArgument, "the digest is unknown"),
        ("other { type_url: 'x/y' }".to_owned(), Code::Unimplemented, "nobody understands it"),
        (String::new(), Code::InvalidArgument, "it is empty"),
    ];
    for (message, want, why) in cases {
        let mut server = ready(Profile::Spec);
        let sent = t::stream(&message);
        let out = server.stream_message(NOW, StreamId(1), sent.clone());
        let (code, details) = stream_error(&out);
        assert_eq!(code, want, "{why}");
        if let Some(Details::PacketOut(error)) = &details {
            let returned = error
                .packet_out
                .clone()
                .map(ringpath::p4runtime::proto::p4::v1::stream_message_request::Update::Packet);
            assert_eq!(returned, sent.update, "{why}: the packet comes back as it was sent");
        } else {
            assert!(!message.starts_with("packet") && details.is_some(), "{why}");
        }
        let mut quiet = ready(Profile::Bmv2);
        assert_eq!(
            show(&quiet.stream_message(NOW, StreamId(1), sent)),
            "",
            "{why}: PI keeps silent"
        );
    }
}

#[test]
fn only_the_primary_may_send_packets_and_acknowledgements() {
    let mut server = ready(Profile::Spec);
    let stranger = server.open_stream();
    let backup = server.open_stream();
    server.stream_message(NOW, backup, t::arbitration(1));
    for stream in [stranger, backup] {
        let out = server.stream_message(NOW, stream, t::packet_out("x", 1));
        assert_eq!(stream_error(&out).0, Code::PermissionDenied);
        let ack = t::stream("digest_ack { digest_id: 385960041 }");
        let (code, details) = stream_error(&server.stream_message(NOW, stream, ack));
        assert_eq!(code, Code::PermissionDenied);
        assert!(matches!(details, Some(Details::DigestListAck(_))));
    }
    assert_eq!(show(&server.stream_message(NOW, StreamId(1), t::packet_out("x", 1))), "");
}

#[test]
fn a_packet_out_before_the_program_is_refused() {
    let mut w = World::new(Profile::Spec);
    let s = w.open(1);
    w.id(s[0], 5);
    let out = w.server.stream_message(NOW, s[0], t::packet_out("x", 1));
    assert_eq!(stream_error(&out).0, Code::FailedPrecondition);
}

/// Packets from the CPU port reach the primary of every role that may see them, and nobody else.
#[test]
fn packet_ins_go_to_primaries_only() {
    let mut server = ready(Profile::Spec);
    let backup = server.open_stream();
    server.stream_message(NOW, backup, t::arbitration(1));
    // Out of the CPU port, that is, back to the controller.
    let packet = "packet { payload: 'a packet that is long enough' metadata { metadata_id: 1 value: '\\x01\\xfe' } metadata { metadata_id: 2 value: '\\0' } }";
    assert_eq!(show(&server.stream_message(NOW, StreamId(1), t::stream(packet))), "");
    server
        .device_mut()
        .advance(ringpath::time::Time(NOW.0 + 1_000_000), &mut |_| panic!("no port is named"));
    let out = server.drain(NOW);
    let [(stream, Ok(message))] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(*stream, StreamId(1));
    let Some(Response::Packet(packet_in)) = &message.update else { panic!("{message:?}") };
    assert_eq!(packet_in.payload, b"a packet that is long enough");
    assert_eq!(packet_in.metadata[0].value, [1, 0xfe]);
    assert_eq!(show(&server.drain(NOW)), "", "once");
    let _ = Uint128::default();
}
