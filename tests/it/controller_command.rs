//! `ringpath controller` and `ringpath job` as people use them: processes, a file of jobs, and the switches looked into by our own
//! inspection commands, which know nothing of the controller.

use crate::inspect::{Switch, output, ringpath, stderr};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

/// Two leaves, a spine, four hosts; two jobs over both leaves.
const SCENARIO: &str = r#"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 2
host_link = "1Gbps"
fabric_link = "1Gbps"

[[job]]
name = "first"
bytes = "10MB"
compute = "50ms"
workers = ["h1", "h3"]

[[job]]
name = "second"
bytes = "20MB"
compute = "50ms"
workers = ["h2", "h4"]
"#;

pub(crate) struct Fabric {
    folder: tempfile::TempDir,
    switches: Vec<Switch>,
}

impl Fabric {
    fn start() -> Self {
        Self::of(SCENARIO)
    }

    /// Two leaves and a spine, whatever else the scenario says.
    pub(crate) fn of(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("fabric.toml"), scenario).unwrap();
        let one = || Switch::start(&["--no-p4", "--priority-queues", "8"]);
        Self { folder, switches: (0..3).map(|_| one()).collect() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn scenario(&self) -> String {
        self.path("fabric.toml").display().to_string()
    }

    fn flags(&self) -> Vec<String> {
        let names = ["leaf1", "leaf2", "spine1"].iter().zip(&self.switches);
        names
            .flat_map(|(name, switch)| {
                ["--switch".to_owned(), format!("{name}={},1", switch.address)]
            })
            .collect()
    }
}

pub(crate) struct Controller {
    child: Child,
    address: String,
    /// Where its metrics are, without the scheme.
    page: String,
}

impl Controller {
    fn start(fabric: &Fabric) -> Self {
        Self::planning(fabric, "least-loaded")
    }

    fn planning(fabric: &Fabric, policy: &str) -> Self {
        Self::with(fabric, &["--policy", policy])
    }

    pub(crate) fn with(fabric: &Fabric, more: &[&str]) -> Self {
        let mut child = ringpath()
            .args(["controller", &fabric.scenario()])
            .args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--store"])
            .arg(fabric.path("store.redb"))
            .arg("--local")
            .arg(fabric.path("local"))
            .args(fabric.flags())
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told = line.trim().strip_prefix("controller on ").expect("an address");
        let (address, page) = told.split_once(", metrics on http://").expect("a page");
        Self { child, address: address.to_owned(), page: page.to_owned() }
    }

    pub(crate) fn job(&self, args: &[&str]) -> Output {
        output(ringpath().arg("job").args(args).args(["--controller", &self.address]))
    }

    pub(crate) fn jobs(&self) -> Value {
        let listed = self.job(&["list", "-o", "json"]);
        assert_eq!(listed.status.code(), Some(0), "{}", stderr(&listed));
        serde_json::from_slice(&listed.stdout).unwrap()
    }

    fn metrics(&self) -> String {
        let (address, path) = self.page.split_once('/').unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Ends it as a service manager does, and gives its exit code.
    fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first of some ports in a row that nobody has right now, and that no other test of this process gets; below those that the system
/// gives away.
pub(crate) fn free_ports(count: u16) -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 12_000 + u16::try_from(std::process::id() % 15_000).unwrap();
    loop {
        let first = start + NEXT.fetch_add(count, Ordering::Relaxed);
        let mut ports = first..first + count;
        if ports.all(|port| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
}

/// Entries of `classify` at a switch.
fn classified(switch: &Switch) -> usize {
    let text = switch.text(&["table", "show", "classify", "-o", "json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    document["entries"].as_array().unwrap().iter().filter(|entry| entry["default"] != true).count()
}

#[test]
fn jobs_are_submitted_installed_listed_cancelled_and_survive_the_controller() {
    let fabric = Fabric::start();
    let controller = Controller::start(&fabric);
    let submitted = controller.job(&["submit", &fabric.scenario(), "--wait", "installed"]);
    let said = String::from_utf8(submitted.stdout.clone()).unwrap();
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    assert!(
        said.contains("first: accepted, generation 1") && said.contains("second: accepted"),
        "{said}"
    );

    let jobs = controller.jobs();
    let flow = &jobs[0]["flows"][0];
    assert_eq!(jobs[0]["name"], "first");
    assert_eq!(flow["path"], serde_json::json!(["h1", "leaf1", "spine1", "leaf2", "h3"]));
    assert_eq!((&jobs[0]["ready"], &flow["in_force"]), (&true.into(), &true.into()), "{jobs:#}");
    // Data of two flows and answers of two others start at each leaf.
    let figures = controller.metrics();
    assert!(figures.starts_with("HTTP/1.1 200 OK"), "{figures}");
    for wanted in [
        "ringpath_jobs 2",
        "ringpath_flows 4",
        "ringpath_switch_used{switch=\"leaf2\"} 1",
        "rpc=\"Write\"",
    ] {
        assert!(figures.contains(wanted), "{wanted} is not in\n{figures}");
    }
    assert_eq!([0, 1, 2].map(|at| classified(&fabric.switches[at])), [4, 4, 0]);

    let again = controller.job(&["submit", &fabric.scenario(), "first"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("there is a job 'first' already"), "{}", stderr(&again));

    assert_eq!(controller.terminate(), Some(0));
    let controller = Controller::start(&fabric);
    assert_eq!(
        controller.jobs()[1]["flows"],
        jobs[1]["flows"],
        "what was acknowledged is still there"
    );
    let cancelled = controller.job(&["cancel", "first"]);
    assert_eq!(cancelled.status.code(), Some(0), "{}", stderr(&cancelled));
    let nobody = controller.job(&["cancel", "first"]);
    assert!(stderr(&nobody).contains("there is no job 'first'"), "{}", stderr(&nobody));
    let tcp = controller.job(&[
        "submit",
        &fabric.scenario(),
        "first",
        "--tcp",
        "6000",
        "--wait",
        "installed",
    ]);
    assert_eq!(tcp.status.code(), Some(0), "{}", stderr(&tcp));
    let text = fabric.switches[0].text(&["table", "show", "classify"]);
    assert!(text.contains("6000"), "{text}");
}

/// Questions until something must have happened: each starts a process, so they take some ten seconds.
const QUESTIONS: usize = 1_000;

/// Asks until all flows are in force, by queues as wanted.
fn settle(controller: &Controller, wanted: impl Fn(&[u64]) -> bool) {
    let mut last = Value::Null;
    for _ in 0..QUESTIONS {
        last = controller.jobs();
        let jobs = last.as_array().unwrap();
        let flows = || jobs.iter().flat_map(|job| job["flows"].as_array().unwrap());
        let queues: Vec<u64> = flows().map(|flow| flow["queue"].as_u64().unwrap()).collect();
        if flows().all(|flow| flow["in_force"] == true) && wanted(&queues) {
            return;
        }
    }
    panic!("it never was so: {last:#}");
}

#[test]
fn the_policy_that_is_asked_for_counts_even_if_the_store_remembers_another() {
    let fabric = Fabric::start();
    let controller = Controller::planning(&fabric, "least-loaded");
    let submitted = controller.job(&["submit", &fabric.scenario(), "--wait", "installed"]);
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    settle(&controller, |queues| queues == [0, 0, 0, 0]);
    assert_eq!(controller.terminate(), Some(0));
    let controller = Controller::planning(&fabric, "sebf");
    settle(&controller, |queues| queues.iter().any(|queue| *queue > 0));
}

#[test]
fn processes_that_loopback_does_not_reach_use_the_local_socket() {
    use std::os::unix::fs::PermissionsExt as _;
    let fabric = Fabric::start();
    let mut controller = Controller::start(&fabric);
    let local = fabric.path("local");
    let unix = format!("unix:{}", local.display());
    let ask =
        |words: &[&str]| output(ringpath().arg("job").args(words).args(["--controller", &unix]));
    let submitted = ask(&["submit", &fabric.scenario(), "first", "--wait", "installed"]);
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    assert_eq!(std::fs::metadata(&local).unwrap().permissions().mode() & 0o777, 0o600);

    let second = output(
        ringpath()
            .args(["controller", &fabric.scenario(), "--listen", "127.0.0.1:0", "--store"])
            .arg(fabric.path("other.redb"))
            .arg("--local")
            .arg(&local)
            .args(fabric.flags()),
    );
    assert!(stderr(&second).contains("another process listens on"), "{}", stderr(&second));
    assert_eq!(ask(&["list"]).status.code(), Some(0), "the first one goes on");

    // One that is killed leaves its socket; the next takes the place.
    controller.child.kill().unwrap();
    controller.child.wait().unwrap();
    assert!(local.exists());
    let next = Controller::start(&fabric);
    let listed = ask(&["list", "-o", "json"]);
    assert!(String::from_utf8(listed.stdout).unwrap().contains("\"first\""));
    assert_eq!(next.terminate(), Some(0));
    assert!(!local.exists(), "one that ends well leaves nothing");
    assert!(stderr(&ask(&["list"])).contains("no controller at unix:"));
}

#[test]
fn a_new_plan_is_made_on_demand_with_the_policy_named() {
    let fabric = Fabric::start();
    let controller = Controller::planning(&fabric, "least-loaded");
    let submitted = controller.job(&["submit", &fabric.scenario(), "--wait", "installed"]);
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    let replan = |args: &[&str]| {
        let done = controller.job(&[&["replan"], args].concat());
        (String::from_utf8(done.stdout.clone()).unwrap(), stderr(&done))
    };
    assert_eq!(replan(&[]).0, "generation 2\n");
    settle(&controller, |queues| queues == [0, 0, 0, 0]);
    assert_eq!(replan(&["--policy", "sebf"]).0, "generation 3\n");
    settle(&controller, |queues| queues.iter().any(|queue| *queue > 0));
    let refused = replan(&["--policy", "sebg"]).1;
    assert!(refused.contains("no policy 'sebg'") && refused.contains("mean 'sebf'?"), "{refused}");
    assert_eq!(replan(&[]).0, "generation 4\n", "a refusal plans nothing");
}

fn refused(args: &[&str]) -> String {
    let output = output(ringpath().args(args));
    assert_ne!(output.status.code(), Some(0), "{args:?}");
    stderr(&output)
}

#[test]
fn what_cannot_work_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fabric.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let scenario = file.to_str().unwrap();
    let store = folder.path().join("store.redb");
    let with = |more: &[&'static str]| {
        refused(&[&["controller", scenario, "--store", store.to_str().unwrap()], more].concat())
    };
    assert!(with(&[]).contains("leaf1, leaf2, spine1"));
    assert!(with(&["--switch", "leaf1"]).contains("write for example leaf1="));
    let all = [
        "--switch",
        "leaf1=127.0.0.1:1",
        "--switch",
        "leaf2=127.0.0.1:1",
        "--switch",
        "spine1=127.0.0.1:1",
    ];
    let policy = with(&[&all[..], &["--policy", "best"]].concat());
    assert!(policy.contains("there is no policy 'best'; choose one of"), "{policy}");
    for flag in ["--listen", "--metrics"] {
        let free = if flag == "--listen" { "--metrics" } else { "--listen" };
        let outside = with(&[&all[..], &[free, "127.0.0.1:0", flag, "0.0.0.0:0"]].concat());
        assert!(outside.contains("only this machine is served"), "{flag}: {outside}");
    }
    let bare = with(&[&all[..], &["--cert", "x.pem", "--key", "x.key"]].concat());
    assert!(bare.contains("--cert: give --cacert FILE too"), "{bare}");
    assert!(!Path::new("ringpath.redb").exists());

    let nobody = ["--controller", "127.0.0.1:1"];
    let lost = refused(&[&["job", "list"], &nobody[..]].concat());
    assert!(
        lost.contains("no controller at 127.0.0.1:1") && lost.contains("ringpath controller"),
        "{lost}"
    );
    let typo = refused(&[&["job", "submit", scenario, "firts"], &nobody[..]].concat());
    assert!(typo.contains("no job 'firts'") && typo.contains("first"), "{typo}");
}
