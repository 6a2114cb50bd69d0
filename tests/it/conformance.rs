//! The conformance table: every row names a section of the P4Runtime specification (1.5), what is sent, and what must come
//! back, from the server as the specification wants it and, where PI (BMv2's server) differs, from `--mimic-bmv2`.
//!
//! The rows run against the embedded switch in process, and docs/p4runtime-conformance.md is made of them:
//!
//!     RINGPATH_BLESS=1 cargo test --test it conformance_page
//!
//! What BMv2 itself answers is asked where a simple_switch_grpc is on the PATH (with RINGPATH_BLESS=1 kept for the page):
//!
//!     cargo test --test it -- --ignored real_simple_switch
//!
//! Requests are in protobuf text format; `E` stands for the program p4/samples/entities.p4, `C` for tests/data/conformance.

use crate::p4runtime_text as t;
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::proto::p4::config::v1::P4Info;
use ringpath::p4runtime::proto::p4::v1::forwarding_pipeline_config::Cookie;
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use ringpath::p4runtime::proto::p4::v1::{Entity, ForwardingPipelineConfig};
use ringpath::p4runtime::rpc::{Code, Failure, Reply, Rpc, RpcResult};
use ringpath::p4runtime::server::{Profile, Server, StreamId, ToClient};
use ringpath::switch::{Config, Switch};
use ringpath::time::Time;
use std::sync::LazyLock;

mod arrays;
mod bmv2;
mod bytes;
mod calls;
mod copies;
mod feed;
mod page;
mod profiles;
mod reads;
mod streams;
mod tables;

const NOW: Time = Time(1_000_000_000);
/// Election id of the client that sends the rows.
const ID: u64 = 5;

/// The program that a row is about, perhaps with its P4Info changed: p4c has no way to say some of it.
#[derive(Clone, Copy)]
pub struct Program {
    pub name: char,
    pub change: fn(&mut P4Info),
}

pub const E: Program = Program { name: 'E', change: |_| {} };
pub const C: Program = Program { name: 'C', change: |_| {} };

impl Program {
    pub fn config(self) -> ForwardingPipelineConfig {
        static PARSED: LazyLock<[P4Info; 2]> = LazyLock::new(|| {
            [
                include_str!("../../p4/build/entities.p4info.txtpb"),
                include_str!("../data/conformance/program.p4info.txtpb"),
            ]
            .map(|text| Index::from_text(text).unwrap().info().clone())
        });
        let (info, json): (&P4Info, &'static [u8]) = match self.name {
            'E' => (&PARSED[0], include_bytes!("../../p4/build/entities.json")),
            _ => (&PARSED[1], include_bytes!("../data/conformance/program.json")),
        };
        let mut info = info.clone();
        (self.change)(&mut info);
        ForwardingPipelineConfig {
            p4info: Some(info),
            p4_device_config: json.into(),
            cookie: Some(Cookie { cookie: 77 }),
        }
    }
}

/// What is sent, and so what is compared.
#[derive(Clone)]
pub enum Sent {
    /// One update: its code.
    Write(String),
    /// A Write with everything after the election id: the code of every update, or the call's.
    Batch(String),
    /// One pattern: its code, or how many entities it finds.
    Read(String),
    /// An update, then a pattern: is what is read what was written?
    Kept(String, String),
    /// An update, then a pattern: what is read, in text format.
    Shows(String, String),
    /// SetForwardingPipelineConfig.
    Set(Action, Option<Program>),
    /// Any call of its own: its code.
    Call(fn() -> Rpc),
    /// A call without client or program.
    Bare(fn() -> Rpc),
    /// A message of the primary on its stream: the StreamError that comes back.
    Message(String),
    /// Messages of several streams, `(stream, message)`: what the last one leads to.
    Arbitration(Vec<(usize, String)>),
}

pub struct Row {
    pub section: &'static str,
    pub what: &'static str,
    pub program: Program,
    /// Updates that must succeed first.
    pub before: Vec<String>,
    pub sent: Sent,
    pub spec: String,
    /// Where PI differs.
    pub bmv2: Option<String>,
}

impl Row {
    pub fn new(
        section: &'static str,
        what: &'static str,
        sent: Sent,
        spec: impl Into<String>,
    ) -> Self {
        Self { section, what, program: E, before: Vec::new(), sent, spec: spec.into(), bmv2: None }
    }

    pub fn after(mut self, before: &[String]) -> Self {
        self.before.extend_from_slice(before);
        self
    }

    pub fn with(mut self, program: Program) -> Self {
        self.program = program;
        self
    }

    /// What PI answers.
    pub fn pi(mut self, want: impl Into<String>) -> Self {
        self.bmv2 = Some(want.into());
        self
    }

    pub fn want(&self, profile: Profile) -> String {
        let want = match profile {
            Profile::Bmv2 => self.bmv2.as_ref().unwrap_or(&self.spec),
            Profile::Spec => &self.spec,
        };
        // PI ends a Read with its first error and gives no details.
        let single = profile == Profile::Bmv2 && matches!(self.sent, Sent::Read(_));
        let failed =
            want.split(", ").find(|part| !part.starts_with("OK") && !part.contains("entit"));
        match failed {
            Some(code) if single && !code.contains(' ') => format!("call: {code}"),
            _ => want.clone(),
        }
    }
}

pub fn write(section: &'static str, what: &'static str, update: String, want: Code) -> Row {
    Row::new(section, what, Sent::Write(update), want.name())
}

pub fn read(section: &'static str, what: &'static str, pattern: &str, want: &str) -> Row {
    Row::new(section, what, Sent::Read(pattern.to_owned()), want)
}

pub fn kept(section: &'static str, what: &'static str, update: String, pattern: &str) -> Row {
    Row::new(section, what, Sent::Kept(update, pattern.to_owned()), "as written")
}

pub fn insert(entity: &str) -> String {
    format!("type: INSERT entity {{ {entity} }}")
}

pub fn modify(entity: &str) -> String {
    format!("type: MODIFY entity {{ {entity} }}")
}

pub fn delete(entity: &str) -> String {
    format!("type: DELETE entity {{ {entity} }}")
}

/// Every row of the table, in the order of the page.
pub fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    rows.extend(bytes::rows());
    rows.extend(tables::rows());
    rows.extend(profiles::rows());
    rows.extend(arrays::rows());
    rows.extend(copies::rows());
    rows.extend(reads::rows());
    rows.extend(calls::rows());
    rows.extend(streams::rows());
    rows
}

/// Whoever answers: the switch in process, or BMv2 behind a socket.
pub trait Arm {
    fn call(&mut self, rpc: Rpc) -> RpcResult;
    fn message(&mut self, text: &str) -> String;
    fn arbitrate(&mut self, steps: &[(usize, String)]) -> String;
    /// Without client and program.
    fn bare(&mut self, rpc: Rpc) -> RpcResult;
}

/// Sends a row and puts into words what came back.
pub fn answer(arm: &mut dyn Arm, row: &Row) -> String {
    match &row.sent {
        Sent::Arbitration(steps) => return arm.arbitrate(steps),
        Sent::Bare(rpc) => return outcome(&arm.bare(rpc())),
        _ => {}
    }
    let set = t::pipeline(ID, Action::VerifyAndCommit, Some(row.program.config()));
    if let Err(failure) = arm.call(set) {
        return format!("no pipeline: {failure}");
    }
    for update in &row.before {
        let done = outcome(&arm.call(t::write(ID, &format!("updates {{ {update} }}"))));
        if done != "OK" {
            return format!("before: {done}");
        }
    }
    match &row.sent {
        Sent::Write(update) => outcome(&arm.call(t::write(ID, &format!("updates {{ {update} }}")))),
        Sent::Batch(text) => outcome(&arm.call(t::write(ID, text))),
        Sent::Read(pattern) => outcome(&arm.call(t::read(pattern))),
        Sent::Kept(update, pattern) => {
            let rpc = t::write(ID, &format!("updates {{ {update} }}"));
            let Rpc::Write(request) = &rpc else { unreachable!() };
            let written = request.updates[0].entity.clone().unwrap();
            match (outcome(&arm.call(rpc)).as_str(), arm.call(t::read(pattern))) {
                ("OK", Ok(Reply::Read(read))) if read == [written.clone()] => "as written".into(),
                ("OK", Ok(Reply::Read(read))) => format!("{read:?}"),
                ("OK", other) => outcome(&other),
                (refused, _) => refused.to_owned(),
            }
        }
        Sent::Shows(update, pattern) => {
            match outcome(&arm.call(t::write(ID, &format!("updates {{ {update} }}")))).as_str() {
                "OK" => match arm.call(t::read(pattern)) {
                    Ok(Reply::Read(read)) => read.iter().map(shown).collect::<Vec<_>>().join(" | "),
                    other => outcome(&other),
                },
                refused => refused.to_owned(),
            }
        }
        Sent::Set(action, program) => {
            outcome(&arm.call(t::pipeline(ID, *action, program.map(Program::config))))
        }
        Sent::Call(rpc) => outcome(&arm.call(rpc())),
        Sent::Message(text) => arm.message(text),
        Sent::Arbitration(_) | Sent::Bare(_) => unreachable!(),
    }
}

/// `OK`, `OK, 3 entities`, the codes of a batch, or `call: CODE` for a call that failed as a whole.
pub fn outcome(result: &RpcResult) -> String {
    match result {
        Ok(Reply::Read(entities)) => match entities.len() {
            1 => "OK, 1 entity".to_owned(),
            count => format!("OK, {count} entities"),
        },
        Ok(Reply::GetPipeline(reply)) => match &reply.config {
            None => "OK, no config".to_owned(),
            Some(config) => {
                let parts = [
                    ("p4info", config.p4info.is_some()),
                    ("device config", !config.p4_device_config.is_empty()),
                    ("cookie", config.cookie.is_some()),
                ];
                let there: Vec<_> =
                    parts.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
                format!("OK, {}", there.join(" + "))
            }
        },
        Ok(Reply::Capabilities(reply)) => format!("OK, {}", reply.p4runtime_api_version),
        Ok(_) => "OK".to_owned(),
        Err(Failure { code, updates, .. }) if updates.is_empty() => format!("call: {code}"),
        Err(Failure { updates, .. }) => {
            let codes = updates.iter().map(|error| Code::from_number(error.canonical_code).name());
            codes.collect::<Vec<_>>().join(", ")
        }
    }
}

/// What of an entity is compared in `Shows` rows: the parts that a row of that kind is about.
fn shown(entity: &Entity) -> String {
    use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
    let count = |data: Option<ringpath::p4runtime::proto::p4::v1::CounterData>| {
        data.map_or("no count".to_owned(), |d| format!("{} packets", d.packet_count))
    };
    let rates = |config: Option<ringpath::p4runtime::proto::p4::v1::MeterConfig>| {
        config.map_or("no rates".to_owned(), |c| format!("cir {}", c.cir))
    };
    match entity.entity.as_ref().unwrap() {
        Kinds::TableEntry(entry) => {
            let action = match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
                Some(ringpath::p4runtime::proto::p4::v1::table_action::Type::Action(action)) => {
                    format!("action {:#x}", action.action_id)
                }
                Some(_) => "indirect".to_owned(),
                None => "no action".to_owned(),
            };
            let fields: Vec<_> = entry.r#match.iter().map(|m| m.field_id.to_string()).collect();
            format!(
                "fields {} priority {} {action}, {}, {}{}{}{}",
                if fields.is_empty() { "-".to_owned() } else { fields.join(" ") },
                entry.priority,
                count(entry.counter_data),
                rates(entry.meter_config),
                if entry.is_const { ", const" } else { "" },
                if entry.is_default_action { ", default" } else { "" },
                if entry.time_since_last_hit.is_some() { ", age" } else { "" },
            )
        }
        Kinds::CounterEntry(entry) => count(entry.data),
        Kinds::DirectCounterEntry(entry) => count(entry.data),
        Kinds::MeterEntry(entry) => rates(entry.config),
        Kinds::DirectMeterEntry(entry) => rates(entry.config),
        other => format!("{other:?}"),
    }
}

/// The embedded switch in process. Every row gets a new one.
struct InProcess {
    profile: Profile,
    server: Server<Switch>,
}

fn empty(profile: Profile) -> Server<Switch> {
    let mimic_bmv2 = profile == Profile::Bmv2;
    Server::new(Switch::new(Config { device_id: 1, mimic_bmv2, ..Config::default() }), profile)
}

impl InProcess {
    fn new(profile: Profile) -> Self {
        let mut server = empty(profile);
        let stream = server.open_stream();
        server.stream_message(NOW, stream, t::arbitration(ID));
        Self { profile, server }
    }
}

impl Arm for InProcess {
    fn call(&mut self, rpc: Rpc) -> RpcResult {
        self.server.call(NOW, rpc)
    }

    fn message(&mut self, text: &str) -> String {
        said(&self.server.stream_message(NOW, StreamId(1), t::stream(text)))
    }

    fn arbitrate(&mut self, steps: &[(usize, String)]) -> String {
        let mut server = empty(self.profile);
        let most = steps.iter().map(|(stream, _)| *stream).max().unwrap_or(0);
        let streams: Vec<_> = (0..most).map(|_| server.open_stream()).collect();
        let mut last = String::new();
        for (stream, message) in steps {
            let stream = streams[stream - 1];
            last = match message.as_str() {
                "close" => said(&server.close_stream(NOW, stream)),
                text => {
                    let message = t::stream(&format!("arbitration {{ {text} }}"));
                    said(&server.stream_message(NOW, stream, message))
                }
            };
        }
        last
    }

    fn bare(&mut self, rpc: Rpc) -> RpcResult {
        empty(self.profile).call(NOW, rpc)
    }
}

/// What streams get, in the order in which they get it: `2: ALREADY_EXISTS, id 5; 1: OK, id 5`.
fn said(out: &[ToClient]) -> String {
    let part = |(stream, item): &ToClient| match item {
        Ok(message) => match message.update.as_ref().unwrap() {
            Response::Arbitration(update) => {
                let code = Code::from_number(update.status.as_ref().unwrap().code);
                let id =
                    update.election_id.map_or("no id".to_owned(), |id| format!("id {}", id.low));
                format!("{}: {code}, {id}", stream.0)
            }
            Response::Error(error) => {
                format!("StreamError {}", Code::from_number(error.canonical_code))
            }
            other => format!("{other:?}"),
        },
        Err(end) => format!("{}: ended {}", stream.0, end.code),
    };
    match out {
        [] => "nothing is said".to_owned(),
        out => out.iter().map(part).collect::<Vec<_>>().join("; "),
    }
}

fn check(profile: Profile) {
    let rows = rows();
    let mut wrong = Vec::new();
    for row in &rows {
        let got = answer(&mut InProcess::new(profile), row);
        if got != row.want(profile) {
            let (section, what) = (row.section, row.what);
            wrong.push(format!("{section} {what}: wanted {}, got {got}", row.want(profile)));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn every_row_of_the_conformance_table_gets_what_its_section_says() {
    check(Profile::Spec);
}

#[test]
fn the_bmv2_profile_gives_the_second_column() {
    check(Profile::Bmv2);
}

#[test]
fn the_table_is_as_large_as_it_claims_and_names_real_sections() {
    let rows = rows();
    assert!(rows.len() > 250, "{} rows", rows.len());
    for row in &rows {
        assert!(page::title(row.section).is_some(), "{}: no section {}", row.what, row.section);
    }
    let mut names: Vec<_> = rows.iter().map(|row| (row.section, row.what)).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        assert_ne!(pair[0], pair[1], "two rows of one name");
    }
}
