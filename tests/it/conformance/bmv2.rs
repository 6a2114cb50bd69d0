//! The same rows over gRPC to a simple_switch_grpc, so that the page can say what BMv2 answers. Rows of arbitration, of
//! streams and of calls without a program are left out: they would each need a switch of their own.

use super::{Arm, ID, Row, Sent, answer, rows};
use crate::p4runtime_text as t;
use ringpath::p4runtime::client::{Client, Limits, StreamReceiver, StreamSender};
use ringpath::p4runtime::rpc::{Rpc, RpcResult};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longer than it thinks about any of these rows, but for one on which it never ends.
const WATCHDOG: Duration = Duration::from_secs(5);

/// A simple_switch_grpc with a client that is primary.
struct Real {
    child: Child,
    runtime: tokio::runtime::Runtime,
    client: Client,
    _stream: (StreamSender, StreamReceiver),
}

impl Real {
    fn start() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new("simple_switch_grpc")
            .args(["--no-p4", "--device-id", "1", "-L", "off", "--"])
            .args(["--grpc-server-addr", &free.to_string(), "--cpu-port", "510"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("simple_switch_grpc is on the PATH");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (client, stream) = runtime.block_on(async {
            let address = format!("http://{free}");
            let client = loop {
                match Client::connect(&address, Limits::default()).await {
                    Ok(client) => break client,
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            let (to, mut from) = client.open_stream();
            to.send(t::arbitration(ID)).await.unwrap();
            tokio::time::timeout(WATCHDOG, from.next()).await.unwrap().unwrap();
            (client, (to, from))
        });
        Self { child, runtime, client, _stream: stream }
    }
}

impl Real {
    /// Whether it still answers, and soon.
    fn alive(&mut self) -> bool {
        let rpc = Rpc::Capabilities(Default::default());
        self.runtime.block_on(self.client.call(rpc, Some(Duration::from_secs(2)))).is_ok()
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Arm for Real {
    fn call(&mut self, rpc: Rpc) -> RpcResult {
        self.runtime.block_on(self.client.call(rpc, Some(WATCHDOG)))
    }

    fn message(&mut self, _: &str) -> String {
        unreachable!("left out")
    }

    fn arbitrate(&mut self, _: &[(usize, String)]) -> String {
        unreachable!("left out")
    }

    fn bare(&mut self, _: Rpc) -> RpcResult {
        unreachable!("left out")
    }
}

fn left_out(row: &Row) -> bool {
    matches!(row.sent, Sent::Arbitration(_) | Sent::Bare(_) | Sent::Message(_))
}

/// How a row is called in the file.
pub fn name(row: &Row) -> String {
    format!("{}\t{}", row.section, row.what)
}

/// What a simple_switch_grpc answered when it was last asked, by row.
pub fn measured() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(file()).unwrap_or_default();
    let line = |line: &str| {
        let (name, got) = line.rsplit_once('\t')?;
        Some((name.to_owned(), got.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

fn file() -> std::path::PathBuf {
    crate::rig::repo("tests/data/conformance/bmv2.tsv")
}

/// Asks again: `RINGPATH_BLESS=1` keeps what came back.
#[test]
#[ignore = "needs simple_switch_grpc, which no registry has; .ci/run runs this where it is on the PATH"]
fn real_simple_switch_answers_as_it_did_when_the_page_was_made() {
    let mut real = Real::start();
    let mut got = BTreeMap::new();
    for row in rows().iter().filter(|row| !left_out(row)) {
        let mut answered = answer(&mut real, row);
        if answered.starts_with("no pipeline") {
            // A row before it has left the switch unable to take a program (after VERIFY_AND_SAVE, for example).
            real = Real::start();
            answered = answer(&mut real, row);
        }
        if !real.alive() {
            answered = "no answer any more".to_owned();
            real = Real::start();
        }
        got.insert(name(row), answered.replace(['\t', '\n'], " "));
    }
    if std::env::var_os("RINGPATH_BLESS").is_some() {
        let text: String = got.iter().map(|(name, got)| format!("{name}\t{got}\n")).collect();
        std::fs::write(file(), text).unwrap();
    }
    let before = measured();
    let changed: Vec<_> =
        got.iter().filter(|(name, got)| before.get(*name) != Some(*got)).collect();
    assert!(changed.is_empty(), "{changed:#?}");
}
