//! What takes more than one request: what a device sees, batches, pipelines, arbitration, streams. What single requests are
//! answered is in `tests/it/conformance`.

use crate::p4runtime_text as t;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::v1::ForwardingPipelineConfig;
use ringpath::p4runtime::proto::p4::v1::forwarding_pipeline_config::Cookie;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::rpc::{Code, Failure, Reply};
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::switch::{Config, Switch};
use ringpath::time::Time;

mod cases;
mod streams;

const NOW: Time = Time(1_000_000_000);
const INFO: &str = include_str!("../data/conformance/program.p4info.txtpb");
const PROGRAM: &[u8] = include_bytes!("../data/conformance/program.json");

pub fn config() -> ForwardingPipelineConfig {
    ForwardingPipelineConfig {
        p4info: Some(Index::from_text(INFO).unwrap().info().clone()),
        p4_device_config: PROGRAM.into(),
        cookie: Some(Cookie { cookie: 77 }),
    }
}

/// A switch without program or clients.
pub fn empty(profile: Profile) -> Server<Switch> {
    let mimic_bmv2 = profile == Profile::Bmv2;
    Server::new(Switch::new(Config { device_id: 1, mimic_bmv2, ..Config::default() }), profile)
}

/// A switch that runs the program, with one client that is primary with election id 5.
pub fn ready(profile: Profile) -> Server<Switch> {
    let mut server = empty(profile);
    let stream = server.open_stream();
    server.stream_message(NOW, stream, t::arbitration(5));
    let set = t::pipeline(5, Action::VerifyAndCommit, Some(config()));
    assert_eq!(server.call(NOW, set), Ok(Reply::SetPipeline));
    server
}

/// The code of a Write of one update, as its detail says.
fn update_code(server: &mut Server<Switch>, update: &str) -> (Code, String) {
    match server.call(NOW, t::write(5, &format!("updates {{ {update} }}"))) {
        Ok(_) => (Code::Ok, String::new()),
        Err(failure) => detail(&failure),
    }
}

fn detail(failure: &Failure) -> (Code, String) {
    assert_eq!((failure.code, failure.updates.len()), (Code::Unknown, 1), "{failure}");
    let error = &failure.updates[0];
    (Code::from_number(error.canonical_code), error.message.clone())
}

#[test]
fn leading_zeros_are_accepted_and_not_returned() {
    let mut server = ready(Profile::Spec);
    let padded = cases::exact("'\\0\\0\\x07'", &cases::watched("'\\0\\x07'"));
    assert_eq!(update_code(&mut server, &format!("type: INSERT {padded}")).0, Code::Ok);
    let short = cases::exact("'\\x07'", &cases::watched("'\\x07'"));
    assert_eq!(update_code(&mut server, &format!("type: INSERT {short}")).0, Code::AlreadyExists);
    let Ok(Reply::Read(read)) = server.call(NOW, t::read("table_entry { table_id: 0x02000001 }"))
    else {
        panic!()
    };
    let t::Table { action, key } = t::table(&read[0]);
    assert_eq!((action, key), (vec![7], vec![7]));
}

/// What `Device` promises to devices: canonical byte strings, matches and parameters in the order of P4Info. The fake
/// device keeps what it is given, so it shows what arrived.
#[test]
fn devices_see_canonical_values_in_the_order_of_p4info() {
    let mut server = Server::new(crate::fake_device::FakeDevice::new(1), Profile::Spec);
    let stream = server.open_stream();
    server.stream_message(NOW, stream, t::arbitration(5));
    assert_eq!(server.call(NOW, t::set_pipeline(5)), Ok(Reply::SetPipeline));
    let entry = |key: &str, params: &str| {
        format!(
            "updates {{ type: INSERT entity {{ table_entry {{ table_id: 0x02000002 priority: 1 {key} \
             action {{ action {{ action_id: 0x01000002 {params} }} }} }} }} }}"
        )
    };
    let shuffled = entry(
        "match { field_id: 3 ternary { value: '\\0\\x1' mask: '\\0\\0\\xf' } } match { field_id: 1 exact { value: '\\0\\x7' } }",
        "params { param_id: 2 value: '\\0\\0\\x2' } params { param_id: 1 value: '\\0\\x1' }",
    );
    let canonical = entry(
        "match { field_id: 1 exact { value: '\\x7' } } match { field_id: 3 ternary { value: '\\x1' mask: '\\xf' } }",
        "params { param_id: 1 value: '\\x1' } params { param_id: 2 value: '\\x2' }",
    );
    let ringpath::p4runtime::rpc::Rpc::Write(wanted) = t::write(5, &canonical) else { panic!() };
    assert_eq!(server.call(NOW, t::write(5, &shuffled)), Ok(Reply::Write));
    let stored: Vec<_> = server.device().state.values().cloned().collect();
    assert_eq!(stored, [wanted.updates[0].entity.clone().unwrap()]);
}

/// Where PI differs (facts are PI's proto/frontend/src/device_mgr.cpp), the profile Bmv2 does as PI does.
#[test]
fn the_bmv2_profile_answers_as_pi_does() {
    for (update, want, text) in cases::bmv2() {
        let mut server = ready(Profile::Bmv2);
        let (code, message) = update_code(&mut server, &update);
        assert_eq!(code, want, "{update}: {message}");
        assert!(message.contains(text), "{update}: {message}");
    }
    let mut server = ready(Profile::Bmv2);
    for port in 0..4 {
        let entry = cases::exact(&format!("'\\x{port:x}'"), &cases::watched("'\\x1'"));
        assert_eq!(update_code(&mut server, &format!("type: INSERT {entry}")).0, Code::Ok);
    }
    let fifth = cases::exact("'\\x9'", &cases::watched("'\\x1'"));
    let (code, message) = update_code(&mut server, &format!("type: INSERT {fifth}"));
    assert_eq!(code, Code::Unknown, "PI has no code for a full table: {message}");
    let failure =
        server.call(NOW, t::read("register_entry { register_id: 0x16000001 }")).unwrap_err();
    assert_eq!(failure, Failure::new(Code::Unimplemented, "Register reads are not supported yet"));
}

/// Section 12.3: one outcome per update in their order, those that succeeded included.
#[test]
fn a_failed_batch_lists_every_outcome_and_keeps_what_succeeded() {
    let mut server = ready(Profile::Spec);
    let insert = |port: &str| {
        format!("updates {{ type: INSERT {} }}", cases::exact(port, &cases::watched(port)))
    };
    let batch =
        [insert("'\\x1'"), insert("'\\xff\\xff'"), insert("'\\x1'"), insert("'\\x2'")].join("\n");
    let failure = server.call(NOW, t::write(5, &batch)).unwrap_err();
    let codes: Vec<_> =
        failure.updates.iter().map(|e| Code::from_number(e.canonical_code)).collect();
    assert_eq!(codes, [Code::Ok, Code::OutOfRange, Code::AlreadyExists, Code::Ok]);
    assert_eq!(count(&mut server), 2);
}

/// Section 12.2.
#[test]
fn a_rolled_back_batch_leaves_nothing_behind() {
    for mode in ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"] {
        let mut server = ready(Profile::Spec);
        let insert = |port: &str| {
            format!("updates {{ type: INSERT {} }}", cases::exact(port, &cases::watched(port)))
        };
        assert_eq!(server.call(NOW, t::write(5, &insert("'\\x1'"))), Ok(Reply::Write));
        let batch = format!(
            "atomicity: {mode} updates {{ type: DELETE {} }} {} {} {}",
            cases::exact("'\\x1'", ""),
            insert("'\\x2'"),
            insert("'\\x2'"),
            insert("'\\x3'")
        );
        let failure = server.call(NOW, t::write(5, &batch)).unwrap_err();
        let codes: Vec<_> =
            failure.updates.iter().map(|e| Code::from_number(e.canonical_code)).collect();
        assert_eq!(
            codes,
            [Code::Aborted, Code::Aborted, Code::AlreadyExists, Code::Aborted],
            "{mode}"
        );
        assert_eq!(count(&mut server), 1, "{mode}: the old entry is back, the new ones are gone");
        let good = format!("atomicity: {mode} {} {}", insert("'\\x2'"), insert("'\\x3'"));
        assert_eq!(server.call(NOW, t::write(5, &good)), Ok(Reply::Write), "{mode}");
    }
    let mut server = ready(Profile::Bmv2);
    let failure = server.call(NOW, t::write(5, "atomicity: ROLLBACK_ON_ERROR")).unwrap_err();
    assert_eq!((failure.code, failure.updates.len()), (Code::Unimplemented, 0));
}

/// Entries of `exact_t`.
fn count(server: &mut Server<Switch>) -> usize {
    match server.call(NOW, t::read("table_entry { table_id: 0x02000001 }")) {
        Ok(Reply::Read(entities)) => entities.len(),
        other => panic!("{other:?}"),
    }
}

/// Sections 12, 13, 14, 15, 17: the checks before anything else, in their order.
#[test]
fn calls_are_refused_as_a_whole_in_the_order_of_the_specification() {
    type Case = (&'static str, fn(&str) -> ringpath::p4runtime::rpc::Rpc, &'static str, Code);
    let cases: [Case; 9] = [
        ("12 unknown device", raw_write, "device_id: 2 election_id { low: 5 }", Code::NotFound),
        (
            "12 unknown role",
            raw_write,
            "device_id: 1 role: 'x' election_id { low: 5 }",
            Code::NotFound,
        ),
        ("12 another id", raw_write, "device_id: 1 election_id { low: 6 }", Code::PermissionDenied),
        ("12 no id", raw_write, "device_id: 1", Code::PermissionDenied),
        (
            "12 primary, but no program",
            raw_write,
            "device_id: 1 election_id { low: 5 }",
            Code::FailedPrecondition,
        ),
        ("13 unknown device", raw_read, "device_id: 2", Code::NotFound),
        (
            "13 no program",
            raw_read,
            "device_id: 1 entities { table_entry { } }",
            Code::FailedPrecondition,
        ),
        ("17 unknown device", capabilities, "device_id: 2", Code::NotFound),
        ("15 unknown device", get_pipeline, "device_id: 2", Code::NotFound),
    ];
    for (what, rpc, text, want) in cases {
        let mut server = empty(Profile::Spec);
        let stream = server.open_stream();
        server.stream_message(NOW, stream, t::arbitration(5));
        let failure = server.call(NOW, rpc(text)).unwrap_err();
        assert_eq!((failure.code, failure.updates.len()), (want, 0), "{what}: {failure}");
    }
}

fn raw_write(text: &str) -> ringpath::p4runtime::rpc::Rpc {
    let parsed = ringpath::p4runtime::text::parse("p4.v1.WriteRequest", text);
    ringpath::p4runtime::rpc::Rpc::Write(parsed.unwrap())
}

fn raw_read(text: &str) -> ringpath::p4runtime::rpc::Rpc {
    let parsed = ringpath::p4runtime::text::parse("p4.v1.ReadRequest", text);
    ringpath::p4runtime::rpc::Rpc::Read(parsed.unwrap())
}

fn capabilities(text: &str) -> ringpath::p4runtime::rpc::Rpc {
    let parsed = ringpath::p4runtime::text::parse("p4.v1.CapabilitiesRequest", text);
    ringpath::p4runtime::rpc::Rpc::Capabilities(parsed.unwrap())
}

fn get_pipeline(text: &str) -> ringpath::p4runtime::rpc::Rpc {
    let name = "p4.v1.GetForwardingPipelineConfigRequest";
    let parsed = ringpath::p4runtime::text::parse(name, text);
    ringpath::p4runtime::rpc::Rpc::GetPipeline(parsed.unwrap())
}

/// Section 13.3: entities of the good patterns, then one outcome per pattern.
#[test]
fn a_read_with_a_bad_pattern_still_delivers_the_others() {
    let mut server = ready(Profile::Spec);
    assert_eq!(
        update_code(
            &mut server,
            &format!("type: INSERT {}", cases::exact("'\\x1'", &cases::watched("'\\x1'")))
        )
        .0,
        Code::Ok
    );
    let rpc = raw_read(
        "device_id: 1 entities { table_entry { table_id: 0x02000001 } } entities { } entities { table_entry { table_id: 0x02000001 } }",
    );
    let ringpath::p4runtime::rpc::Rpc::Read(request) = rpc else { panic!() };
    let mut entities = Vec::new();
    let failure = server.read(NOW, request, &mut |entity| entities.push(entity)).unwrap_err();
    assert_eq!(entities.len(), 2);
    let codes: Vec<_> = failure.updates.iter().map(|error| error.canonical_code).collect();
    assert_eq!((failure.code, codes), (Code::Unknown, vec![0, 3, 0]));
}

/// Section 17.
#[test]
fn capabilities_report_the_version_of_the_profile() {
    for (profile, version) in [(Profile::Spec, "1.5.0"), (Profile::Bmv2, "1.3.0")] {
        for device in ["", "device_id: 1"] {
            let Ok(Reply::Capabilities(reply)) = empty(profile).call(NOW, capabilities(device))
            else {
                panic!()
            };
            assert_eq!(reply.p4runtime_api_version, version);
        }
    }
}

/// Section 14, action by action.
#[test]
fn pipelines_are_verified_saved_committed_and_reconciled() {
    let mut server = ready(Profile::Spec);
    let mut set = |action, config: Option<ForwardingPipelineConfig>| {
        server.call(NOW, t::pipeline(5, action, config)).map_err(|failure| failure.code)
    };
    let bad_json =
        ForwardingPipelineConfig { p4_device_config: b"{".as_slice().into(), ..config() };
    let no_info = ForwardingPipelineConfig { p4info: None, ..config() };
    let done = Ok(Reply::SetPipeline);
    let cases = [
        (Action::Unspecified, Some(config()), Err(Code::InvalidArgument)),
        (Action::Verify, None, Err(Code::InvalidArgument)),
        (Action::Verify, Some(bad_json.clone()), Err(Code::InvalidArgument)),
        (Action::Verify, Some(no_info), Err(Code::InvalidArgument)),
        (Action::Verify, Some(config()), done.clone()),
        (Action::VerifyAndCommit, Some(bad_json), Err(Code::InvalidArgument)),
        (Action::VerifyAndCommit, None, Err(Code::InvalidArgument)),
        (Action::Commit, None, Err(Code::NotFound)),
        (Action::Commit, Some(config()), Err(Code::InvalidArgument)),
        (Action::VerifyAndSave, None, Err(Code::InvalidArgument)),
        (Action::VerifyAndSave, Some(config()), done.clone()),
        (Action::Commit, Some(config()), Err(Code::InvalidArgument)),
        (Action::Commit, None, done.clone()),
        (Action::Commit, None, Err(Code::NotFound)),
        (Action::ReconcileAndCommit, None, Err(Code::InvalidArgument)),
        (Action::ReconcileAndCommit, Some(config()), done),
    ];
    for (place, (action, config, want)) in cases.into_iter().enumerate() {
        assert_eq!(set(action, config), want, "case {place}: {action:?}");
    }
}

/// Section 14: VERIFY leaves entries alone, VERIFY_AND_COMMIT forgets them, COMMIT replays what was written since the
/// program was saved, RECONCILE_AND_COMMIT keeps them.
#[test]
fn entries_live_and_die_as_each_action_says() {
    let insert = |port: &str| format!("type: INSERT {}", cases::exact(port, &cases::watched(port)));
    let after = |action, writes: &[&str]| {
        let mut server = ready(Profile::Spec);
        assert_eq!(update_code(&mut server, &insert("'\\x1'")).0, Code::Ok);
        assert_eq!(
            server.call(NOW, t::pipeline(5, action, Some(config()))),
            Ok(Reply::SetPipeline)
        );
        for port in writes {
            assert_eq!(update_code(&mut server, &insert(port)).0, Code::Ok);
        }
        server
    };
    assert_eq!(count(&mut after(Action::Verify, &[])), 1);
    assert_eq!(count(&mut after(Action::VerifyAndCommit, &[])), 0);
    assert_eq!(count(&mut after(Action::ReconcileAndCommit, &[])), 1);
    let mut server = after(Action::VerifyAndSave, &["'\\x1'", "'\\x2'", "'\\x3'"]);
    assert_eq!(count(&mut server), 3, "reads refer to the saved program");
    assert_eq!(server.call(NOW, t::pipeline(5, Action::Commit, None)), Ok(Reply::SetPipeline));
    assert_eq!(count(&mut server), 3, "and its writes are replayed");
}

/// Section 14: a state that the new program cannot hold is refused and kept.
#[test]
fn reconcile_refuses_a_program_that_the_state_does_not_fit() {
    let mut server = ready(Profile::Spec);
    let insert = format!("type: INSERT {}", cases::exact("'\\x1'", &cases::watched("'\\x1'")));
    assert_eq!(update_code(&mut server, &insert).0, Code::Ok);
    let narrow = INFO.replacen("bitwidth: 9", "bitwidth: 9\n    annotations: \"@narrow\"", 1);
    assert_ne!(narrow, INFO);
    let mut other = config();
    let info = other.p4info.as_mut().unwrap();
    // The new P4Info no longer lets the table use the action of the entry.
    info.tables[0].action_refs.retain(|action| action.id != 0x0100_0004);
    let failure =
        server.call(NOW, t::pipeline(5, Action::ReconcileAndCommit, Some(other))).unwrap_err();
    assert_eq!(failure.code, Code::InvalidArgument, "{failure}");
    assert_eq!(count(&mut server), 1);
}

/// Section 15.
#[test]
fn the_pipeline_is_returned_as_it_was_set() {
    let mut server = empty(Profile::Spec);
    let Ok(Reply::GetPipeline(none)) = server.call(NOW, get_pipeline("device_id: 1")) else {
        panic!()
    };
    assert_eq!(none.config, None);
    let mut server = ready(Profile::Spec);
    let mut get = |kind: &str| {
        let text = format!("device_id: 1 response_type: {kind}");
        let Ok(Reply::GetPipeline(reply)) = server.call(NOW, get_pipeline(&text)) else { panic!() };
        reply.config.unwrap()
    };
    let all = config();
    let cookie = ForwardingPipelineConfig { cookie: all.cookie, ..Default::default() };
    assert_eq!(get("ALL"), all);
    assert_eq!(get("COOKIE_ONLY"), cookie);
    assert_eq!(
        get("P4INFO_AND_COOKIE"),
        ForwardingPipelineConfig { p4info: all.p4info.clone(), ..cookie.clone() }
    );
    let device =
        ForwardingPipelineConfig { p4_device_config: all.p4_device_config.clone(), ..cookie };
    assert_eq!(get("DEVICE_CONFIG_AND_COOKIE"), device);
}
