//! A host fails under a job of real processes: controller, switches, four workers over TCP; the others finish.

use crate::controller_command::{Controller, Fabric};
use crate::inspect::{output, ringpath, stderr};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

const ITERATIONS: u64 = 25;
/// Far longer than anything here takes; only a hang reaches it.
const WATCHDOG: Duration = Duration::from_secs(60);

const SCENARIO: &str = r#"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 2
host_link = "1Gbps"
fabric_link = "1Gbps"

[[job]]
name = "ring"
bytes = "400kB"
compute = "60ms"
iterations = 25
workers = ["h1", "h2", "h3", "h4"]
"#;

/// What one process printed, line by line, with its number; `None` at its end.
type Said = (usize, Option<Value>);

/// A child that does not outlive the test.
struct Process(Child);

impl Process {
    fn start(number: usize, command: &mut std::process::Command, said: &Sender<Said>) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = said.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test may be over.
                let _ = said.send((number, serde_json::from_str(&line).ok()));
            }
            let _ = said.send((number, None));
        });
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn worker(local: &str, (rank, host): (usize, &str), port: u16) -> std::process::Command {
    let mut command = ringpath();
    command
        .args(["worker", "--job", "ring", "--rank", &rank.to_string()])
        .args(["--peers", "127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1"])
        .args(["--first-port", &port.to_string(), "--bytes", "400kB", "--compute", "60ms"])
        .args(["--iterations", &ITERATIONS.to_string(), "--patience", "20s", "-o", "json"])
        .args(["--controller", local, "--host", host]);
    command
}

/// (iteration, membership) of a line.
fn read(line: &Value) -> (u64, u64) {
    (line["iteration"].as_u64().unwrap(), line["generation"].as_u64().unwrap())
}

/// Lines of the workers until all have ended; `dead` is killed after its fifth iteration, when `before` has been called.
fn play(
    workers: &mut [Process],
    dead: usize,
    said: &Receiver<Said>,
    before: &mut dyn FnMut(),
    after: &mut dyn FnMut(),
) -> Vec<Vec<(u64, u64)>> {
    let mut lines = vec![Vec::new(); workers.len()];
    let mut open = workers.len();
    while open > 0 {
        let (number, line) = said.recv_timeout(WATCHDOG).expect("the workers stand still");
        match line {
            Some(line) => lines[number].push(read(&line)),
            None => open -= 1,
        }
        if number == dead && lines[dead].len() == 5 {
            before();
            // SIGKILL; it may print no more, or a line that was on its way.
            workers[dead].0.kill().unwrap();
            after();
        }
    }
    lines
}

/// Submits the job; its first port.
fn submit(fabric: &Fabric, controller: &Controller) -> u16 {
    let port = crate::controller_command::free_ports(12);
    let scenario = fabric.scenario();
    let tcp = port.to_string();
    let done = controller.job(&["submit", &scenario, "--tcp", &tcp, "--wait", "installed"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    port
}

/// A worker per host.
fn all(local: &str, port: u16) -> (Vec<Process>, Receiver<Said>) {
    let (sender, said) = mpsc::channel();
    let hosts = ["h1", "h2", "h3", "h4"].iter().enumerate();
    let start = |(rank, host): (usize, &&str)| {
        Process::start(rank, &mut worker(local, (rank, host), port), &sender)
    };
    (hosts.map(start).collect(), said)
}

#[test]
fn when_a_worker_is_killed_the_others_form_a_ring_of_their_own_and_finish_every_iteration() {
    let fabric = Fabric::of(SCENARIO);
    let controller = Controller::with(&fabric, &["--policy", "least-loaded"]);
    let port = submit(&fabric, &controller);
    let local = format!("unix:{}", fabric.path("local").display());
    let (watched, events) = mpsc::channel();
    let mut watch = ringpath();
    watch.args(["job", "watch", "--controller", &local]);
    let _watch = Process::start(0, &mut watch, &watched);
    let (mut workers, said) = all(&local, port);
    let dead = 2;
    let lines = play(&mut workers, dead, &said, &mut || {}, &mut || {});
    for (rank, worker) in workers.iter_mut().enumerate() {
        let ended = worker.0.wait().unwrap();
        assert_eq!(ended.success(), rank != dead, "rank {rank}: {ended}");
    }
    for (rank, lines) in lines.iter().enumerate().filter(|(rank, _)| *rank != dead) {
        // A rank that was ahead does the broken step again; else each comes once, and the memberships do not mix.
        let (before, after): (Vec<_>, Vec<_>) = lines.iter().partition(|(_, of)| *of == 0);
        let numbers: Vec<u64> = after.iter().map(|(number, _)| *number).collect();
        let from = numbers[0];
        assert!(after.iter().all(|(_, of)| *of == 1), "rank {rank}: {lines:?}");
        assert_eq!(numbers, (from..ITERATIONS).collect::<Vec<_>>(), "rank {rank}");
        let first: Vec<u64> = before.iter().map(|(number, _)| *number).collect();
        assert_eq!(first, (0..first.len() as u64).collect::<Vec<_>>(), "rank {rank}");
        assert!((from..=from + 1).contains(&(first.len() as u64)), "rank {rank}: {lines:?}");
    }
    let told = std::iter::from_fn(|| events.recv_timeout(WATCHDOG).ok())
        .filter_map(|(_, line)| line)
        .map(|line| line["event"].clone())
        .find(|event| event["event"] == "regrouped")
        .expect("the change is told");
    assert_eq!(told["ranks"], serde_json::json!([0, 1, 3]));
    let cause = told["cause"].as_str().unwrap();
    assert!(cause.starts_with("host h3 failed: it is silent, and h"), "{cause}");
    let jobs = controller.jobs();
    assert_eq!(jobs[0]["hosts"], serde_json::json!(["h1", "h2", "h4"]));
    assert_eq!(jobs[0]["membership"], 1);
    assert_eq!(jobs[0]["first_port"], port + 4, "above those of the first ring");
    assert_eq!(jobs[0]["iterations_done"], ITERATIONS, "every rank's progress was heard");
}

#[test]
fn a_host_that_fails_while_the_controller_is_away_is_given_up_by_the_next_one() {
    let fabric = Fabric::of(SCENARIO);
    let flags = ["--policy", "least-loaded"];
    let mut controllers = vec![Controller::with(&fabric, &flags)];
    let port = submit(&fabric, &controllers[0]);
    let local = format!("unix:{}", fabric.path("local").display());
    let (mut workers, said) = all(&local, port);
    let dead = 1;
    let controllers = std::cell::RefCell::new(&mut controllers);
    // Dropping one kills it.
    let lines =
        play(&mut workers, dead, &said, &mut || controllers.borrow_mut().clear(), &mut || {
            controllers.borrow_mut().push(Controller::with(&fabric, &flags))
        });
    for (rank, lines) in lines.iter().enumerate().filter(|(rank, _)| *rank != dead) {
        assert_eq!(lines.last(), Some(&(ITERATIONS - 1, 1)), "rank {rank}: {lines:?}");
        assert!(workers[rank].0.wait().unwrap().success(), "rank {rank}");
    }
    let jobs = controllers.borrow()[0].jobs();
    assert_eq!(jobs[0]["hosts"], serde_json::json!(["h1", "h3", "h4"]));
    assert_eq!(jobs[0]["iterations_done"], ITERATIONS);
}

#[test]
fn a_worker_that_the_controller_has_no_place_for_says_so_at_once() {
    let fabric = Fabric::of(SCENARIO);
    let controller = Controller::with(&fabric, &["--policy", "least-loaded"]);
    let local = format!("unix:{}", fabric.path("local").display());
    let port = crate::controller_command::free_ports(4);
    let nobody = output(&mut worker(&local, (0, "h1"), port));
    assert_eq!(nobody.status.code(), Some(1));
    assert!(stderr(&nobody).contains("there is no job 'ring'"), "{}", stderr(&nobody));
    let submitted = controller.job(&["submit", &fabric.scenario(), "--tcp", &port.to_string()]);
    assert_eq!(submitted.status.code(), Some(0), "{}", stderr(&submitted));
    let strange = output(&mut worker(&local, (0, "h9"), port));
    assert!(stderr(&strange).contains("has no host 'h9'"), "{}", stderr(&strange));
}
