//! `ringpath switch` as a process, and the commands that look into it: what they print in both formats, what they refuse,
//! and that they disturb nobody.

use crate::p4runtime_text as t;
use crate::rig::{Rig, is, repo};
use ringpath::p4runtime::client::{Client, Limits, StreamReceiver, StreamSender};
use ringpath::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use ringpath::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use ringpath::p4runtime::proto::p4::v1::{
    self as p4, Entity, ForwardingPipelineConfig, Update, WriteRequest, table_action, update,
};
use ringpath::p4runtime::rpc::{Reply, Rpc};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

mod refusals;
mod views;

/// Longer than any step takes; only a hang reaches it.
const WATCHDOG: Duration = Duration::from_secs(60);

/// The program under test.
pub fn ringpath() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringpath"));
    // The machine's settings must not reach the tests.
    for name in ["RINGPATH_ADDRESS", "RINGPATH_DEVICE_ID", "RINGPATH_LOG"] {
        command.env_remove(name);
    }
    command
}

/// What a command prints until it ends; one that does not end is killed, and then has no exit code.
pub fn output(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let (done, waiting) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(child.wait_with_output()));
    match waiting.recv_timeout(WATCHDOG) {
        Ok(output) => output.unwrap(),
        Err(_) => {
            assert!(Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
            waiting.recv().unwrap().unwrap()
        }
    }
}

/// A switch that was started by hand; killed when dropped.
pub struct Switch {
    child: Child,
    pub address: String,
}

impl Switch {
    /// Starts `ringpath switch` with device id 1 on a port that the system chooses.
    pub fn start(args: &[&str]) -> Self {
        let mut child = ringpath()
            .args(["switch", "--device-id", "1", "--grpc-server-addr", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("P4Runtime on ").and_then(|rest| rest.split_once(','));
        let address = address.unwrap_or_else(|| panic!("no address in '{line}'")).0.to_owned();
        Self { child, address }
    }

    /// With the conformance program on the command line.
    pub fn conforming(more: &[&str]) -> Self {
        let (json, info) = (data("program.json"), data("program.p4info.txtpb"));
        Self::start(&[&[json.as_str(), "--p4info", &info], more].concat())
    }

    /// Runs a command against it.
    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = ringpath();
        command.args(args).args(["--address", &self.address, "--device-id", "1"]);
        output(&mut command)
    }

    /// What a command that must work prints.
    pub fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The JSON of a command that must work.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["-o", "json"]].concat())).unwrap()
    }

    /// Sends a signal and waits for the end: exit code, `None` if the signal killed it.
    fn signal(&mut self, name: &str) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of the conformance program.
pub fn data(name: &str) -> String {
    repo("tests/data/conformance").join(name).display().to_string()
}

/// A client that is primary with election id 5, and its stream.
pub struct Primary {
    runtime: Runtime,
    client: Client,
    to: StreamSender,
    from: StreamReceiver,
}

impl Primary {
    pub fn new(switch: &Switch) -> Self {
        let runtime = Runtime::new().unwrap();
        let url = format!("http://{}", switch.address);
        let client = runtime.block_on(Client::connect(&url, Limits::default())).unwrap();
        let (to, from) = {
            let _guard = runtime.enter();
            client.open_stream()
        };
        let mut primary = Self { runtime, client, to, from };
        primary.send(t::arbitration(5));
        match primary.next() {
            Response::Arbitration(update) => assert_eq!(update.status.unwrap().code, 0),
            other => panic!("{other:?}"),
        }
        primary
    }

    pub fn send(&self, message: p4::StreamMessageRequest) {
        self.runtime.block_on(self.to.send(message)).unwrap();
    }

    pub fn next(&mut self) -> Response {
        let next = async { tokio::time::timeout(WATCHDOG, self.from.next()).await };
        self.runtime.block_on(next).unwrap().unwrap().update.unwrap()
    }

    pub fn call(&self, rpc: Rpc) -> Reply {
        self.runtime.block_on(self.client.call(rpc, Some(WATCHDOG))).unwrap()
    }

    pub fn push(&self, config: ForwardingPipelineConfig) {
        let set = t::pipeline(5, Action::VerifyAndCommit, Some(config));
        assert_eq!(self.call(set), Reply::SetPipeline);
    }

    /// Writes updates in text format.
    pub fn write(&self, updates: &str) {
        assert_eq!(self.call(t::write(5, updates)), Reply::Write);
    }

    pub fn insert(&self, entities: Vec<Entity>) {
        let insert = |entity| Update { r#type: update::Type::Insert.into(), entity: Some(entity) };
        let request = WriteRequest {
            device_id: 1,
            election_id: Some(p4::Uint128 { high: 0, low: 5 }),
            updates: entities.into_iter().map(insert).collect(),
            ..WriteRequest::default()
        };
        assert_eq!(self.call(Rpc::Write(request)), Reply::Write);
    }
}

/// A packet that the conformance program sends straight back: its header names the controller's port, 510.
fn to_controller(payload: &str) -> p4::StreamMessageRequest {
    t::stream(&format!(
        r#"packet {{ payload: "{payload}" metadata {{ metadata_id: 1 value: "\x01\xfe" }}
        metadata {{ metadata_id: 2 value: "\x00" }} }}"#
    ))
}

/// Our own program with a few entries, pushed by a client as a controller does it.
pub fn ours() -> (Switch, Primary) {
    let switch = Switch::start(&["--no-p4", "--priority-queues", "8"]);
    let primary = Primary::new(&switch);
    let rig = Rig::new(0);
    primary.push(ForwardingPipelineConfig {
        p4info: Some(rig.index.info().clone()),
        p4_device_config: std::fs::read(repo("p4/build/ringpath.json")).unwrap().into(),
        cookie: Some(p4::forwarding_pipeline_config::Cookie { cookie: 0xc0ffee }),
    });
    let action = |name, args: &[(&str, u128)]| table_action::Type::Action(rig.action(name, args));
    let tag = [
        ("label", 3),
        ("queue", 6),
        ("src_slot", 1),
        ("slot", 2),
        ("epoch", 1),
        ("flip", 0),
        ("old_label", 3),
        ("old_queue", 6),
        ("force", 0),
        ("flip_gap", 1000),
    ];
    let addresses = [is("src_addr", 0x0a00_0001), is("dst_addr", 0x0a00_0102)];
    primary.insert(vec![
        rig.entry("path_forward", 0, &[is("label", 3)], action("forward", &[("port", 7)])),
        rig.entry("path_forward", 0, &[is("label", 4)], action("sink", &[])),
        rig.entry("classify", 10, &addresses, action("tag", &tag)),
        rig.entry("classify", 20, &addresses[..1], action("tag", &tag)),
    ]);
    (switch, primary)
}

#[test]
fn what_a_client_sends_runs_through_the_program_in_real_time_and_comes_back() {
    let switch = Switch::conforming(&[]);
    let mut primary = Primary::new(&switch);
    primary.send(to_controller("ping"));
    match primary.next() {
        Response::Packet(packet) => assert_eq!(packet.payload, b"ping"),
        other => panic!("{other:?}"),
    }
    let counted = switch.json(&["counter", "read", "drops", "0"]);
    assert_eq!(counted["cells"][0]["packets"], 1, "{counted}");
}

#[test]
fn looking_around_neither_opens_streams_nor_moves_the_primary() {
    let switch = Switch::conforming(&[]);
    let mut primary = Primary::new(&switch);
    for args in [
        &["p4info", "show"][..],
        &["p4info", "ls"],
        &["table", "ls"],
        &["table", "show"],
        &["table", "info", "exact_t"],
        &["register", "read", "cells"],
        &["counter", "read", "drops"],
        &["counter", "show", "exact_counter"],
    ] {
        switch.text(args);
    }
    // Had anybody arbitrated, the primary would have been told before it gets its packet.
    primary.send(to_controller("still here"));
    assert!(matches!(primary.next(), Response::Packet(_)));
    primary.write(&t::exact_insert(1));
}

#[test]
fn signals_end_the_switch_cleanly_even_with_a_client_on_it() {
    for name in ["-TERM", "-INT"] {
        let mut switch = Switch::conforming(&[]);
        let _primary = Primary::new(&switch);
        assert_eq!(switch.signal(name), Some(0), "{name}");
    }
}

#[test]
fn a_closed_standard_output_is_no_error() {
    let mut child = ringpath()
        .args(["p4info", "ls", "--p4info", &data("program.p4info.txtpb")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}
