//! Sections 12, 14, 15, 17: what is checked before anything else, batches, pipelines, capabilities.

use super::tables::{exact, watched};
use super::{Action, C, E, Program, Row, Rpc, Sent, delete, insert};

fn parsed<M: prost::Message + Default>(name: &str, text: &str) -> M {
    ringpath::p4runtime::text::parse(name, text).unwrap()
}

fn write(text: &str) -> Rpc {
    Rpc::Write(parsed("p4.v1.WriteRequest", text))
}

fn set(text: &str) -> Rpc {
    Rpc::SetPipeline(parsed("p4.v1.SetForwardingPipelineConfigRequest", text))
}

fn get(text: &str) -> Rpc {
    Rpc::GetPipeline(parsed("p4.v1.GetForwardingPipelineConfigRequest", text))
}

fn capabilities(text: &str) -> Rpc {
    Rpc::Capabilities(parsed("p4.v1.CapabilitiesRequest", text))
}

pub fn rows() -> Vec<Row> {
    [checks(), batches(), pipelines(), others()].into_iter().flatten().collect()
}

#[rustfmt::skip] // one row a line reads as a table
fn checks() -> Vec<Row> {
    let row = |section, what, rpc: fn() -> Rpc, want: &str| Row::new(section, what, Sent::Call(rpc), want);
    let bare = |section, what, rpc: fn() -> Rpc, want: &str| Row::new(section, what, Sent::Bare(rpc), want);
    vec![
        row("12", "a Write to another device", || write("device_id: 2 election_id { low: 5 }"), "call: NOT_FOUND"),
        row("12", "a Write for a role that nobody has", || write("device_id: 1 role: 'x' election_id { low: 5 }"), "call: NOT_FOUND").pi("OK"),
        row("12", "a Write with an id above the primary's", || write("device_id: 1 election_id { low: 6 }"), "call: PERMISSION_DENIED"),
        row("12", "a Write with an id below the primary's", || write("device_id: 1 election_id { low: 4 }"), "call: PERMISSION_DENIED"),
        row("12", "a Write whose id differs in its upper half", || write("device_id: 1 election_id { low: 5 high: 1 }"), "call: PERMISSION_DENIED"),
        row("12", "a Write without an id", || write("device_id: 1"), "call: PERMISSION_DENIED"),
        row("12", "a Write of nothing", || write("device_id: 1 election_id { low: 5 }"), "OK"),
        bare("12", "a Write when nobody is primary", || write("device_id: 1 election_id { low: 5 }"), "call: PERMISSION_DENIED"),
        row("14", "a pipeline for another device", || set("device_id: 2 election_id { low: 5 } action: VERIFY"), "call: NOT_FOUND"),
        row("14", "a pipeline from a role that nobody has", || set("device_id: 1 role: 'x' election_id { low: 5 } action: VERIFY"), "call: NOT_FOUND").pi("call: INVALID_ARGUMENT"),
        row("14", "a pipeline from a backup", || set("device_id: 1 election_id { low: 4 } action: VERIFY"), "call: PERMISSION_DENIED"),
        row("14", "a pipeline without an action", || set("device_id: 1 election_id { low: 5 }"), "call: INVALID_ARGUMENT"),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn batches() -> Vec<Row> {
    let one = |kind: &str, port: &str| format!("updates {{ type: {kind} entity {{ {} }} }} ", exact(port, &watched(port)));
    let four = one("INSERT", "'\\x1'") + &one("INSERT", "'\\x2'") + &one("INSERT", "'\\x1'") + &one("DELETE", "'\\x9'");
    let wide = one("INSERT", "'\\x1'") + &one("INSERT", "'\\xff\\xff'") + &one("INSERT", "'\\x2'");
    let row = |section, what, text: String, want: &str| Row::new(section, what, Sent::Batch(text), want);
    vec![
        row("12.3", "every update gets its outcome, those that succeeded included", four.clone(), "OK, OK, ALREADY_EXISTS, NOT_FOUND"),
        row("12.3", "a malformed update does not stop the others", wide, "OK, OUT_OF_RANGE, OK").pi("OK, INVALID_ARGUMENT, OK"),
        row("12.3", "a batch that succeeds has no details", one("INSERT", "'\\x1'") + &one("INSERT", "'\\x2'"), "OK"),
        row("12.2", "ROLLBACK_ON_ERROR with an error", format!("atomicity: ROLLBACK_ON_ERROR {four}"), "ABORTED, ABORTED, ALREADY_EXISTS, ABORTED").pi("call: UNIMPLEMENTED"),
        row("12.2", "ROLLBACK_ON_ERROR without one", format!("atomicity: ROLLBACK_ON_ERROR {}", one("INSERT", "'\\x1'")), "OK").pi("call: UNIMPLEMENTED"),
        row("12.2", "DATAPLANE_ATOMIC with an error", format!("atomicity: DATAPLANE_ATOMIC {four}"), "ABORTED, ABORTED, ALREADY_EXISTS, ABORTED").pi("call: UNIMPLEMENTED"),
        row("12.2", "DATAPLANE_ATOMIC without one", format!("atomicity: DATAPLANE_ATOMIC {}", one("INSERT", "'\\x1'")), "OK").pi("call: UNIMPLEMENTED"),
        row("12.1", "dependent updates of one batch run in their order", format!("updates {{ {} }} {}", insert(&exact("'\\x3'", &watched("'\\x1'"))), one("MODIFY", "'\\x3'")) + &format!("updates {{ {} }}", delete(&exact("'\\x3'", ""))), "OK"),
    ]
}

const BAD_INFO: Program =
    Program { change: |info| info.tables[0].preamble.as_mut().unwrap().id = 0, ..E };
const OTHER_INFO: Program = Program {
    change: |info| info.tables[0].preamble.as_mut().unwrap().name = "nowhere".into(),
    ..E
};

#[rustfmt::skip] // one row a line reads as a table
fn pipelines() -> Vec<Row> {
    let row = |what, action, program, want: &str| Row::new("14", what, Sent::Set(action, program), want);
    let entry = [insert(&exact("'\\x1'", &watched("'\\x1'")))];
    let invalid = "call: INVALID_ARGUMENT";
    vec![
        row("VERIFY", Action::Verify, Some(C), "OK"),
        row("VERIFY without a config", Action::Verify, None, invalid),
        row("VERIFY of a P4Info with an object of id 0", Action::Verify, Some(BAD_INFO), invalid).pi("call: UNKNOWN"),
        row("VERIFY of a P4Info of another program", Action::Verify, Some(OTHER_INFO), invalid).pi("call: UNKNOWN"),
        row("VERIFY_AND_SAVE", Action::VerifyAndSave, Some(C), "OK"),
        row("VERIFY_AND_SAVE without a config", Action::VerifyAndSave, None, invalid),
        row("VERIFY_AND_COMMIT", Action::VerifyAndCommit, Some(C), "OK"),
        row("VERIFY_AND_COMMIT without a config", Action::VerifyAndCommit, None, invalid),
        row("VERIFY_AND_COMMIT of a P4Info of another program", Action::VerifyAndCommit, Some(OTHER_INFO), invalid).pi("call: UNKNOWN"),
        row("COMMIT with nothing saved", Action::Commit, None, "call: NOT_FOUND"),
        row("COMMIT with a config", Action::Commit, Some(E), invalid),
        row("RECONCILE_AND_COMMIT of the same program", Action::ReconcileAndCommit, Some(E), "OK").after(&entry),
        row("RECONCILE_AND_COMMIT of a program that the state does not fit", Action::ReconcileAndCommit, Some(C), invalid).after(&entry).pi("call: UNKNOWN"),
        row("RECONCILE_AND_COMMIT without a config", Action::ReconcileAndCommit, None, invalid),
    ]
}

#[rustfmt::skip] // one row a line reads as a table
fn others() -> Vec<Row> {
    let row = |section, what, rpc: fn() -> Rpc, want: &str| Row::new(section, what, Sent::Call(rpc), want);
    let bare = |section, what, rpc: fn() -> Rpc, want: &str| Row::new(section, what, Sent::Bare(rpc), want);
    vec![
        row("15", "ALL", || get("device_id: 1"), "OK, p4info + device config + cookie"),
        row("15", "COOKIE_ONLY", || get("device_id: 1 response_type: COOKIE_ONLY"), "OK, cookie"),
        row("15", "P4INFO_AND_COOKIE", || get("device_id: 1 response_type: P4INFO_AND_COOKIE"), "OK, p4info + cookie"),
        row("15", "DEVICE_CONFIG_AND_COOKIE", || get("device_id: 1 response_type: DEVICE_CONFIG_AND_COOKIE"), "OK, device config + cookie"),
        row("15", "another device", || get("device_id: 2"), "call: NOT_FOUND"),
        bare("15", "before there is a program", || get("device_id: 1"), "OK, no config").pi("call: FAILED_PRECONDITION"),
        row("17", "the server's version", || capabilities(""), "OK, 1.5.0").pi("OK, 1.3.0"),
        row("17", "the version for a device", || capabilities("device_id: 1"), "OK, 1.5.0").pi("OK, 1.3.0"),
        row("17", "the version for another device", || capabilities("device_id: 2"), "call: NOT_FOUND"),
    ]
}
