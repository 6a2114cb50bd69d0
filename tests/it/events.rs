//! What happens in a scenario file happens in the packet simulation: each kind of event alone, against the same run
//! without it.

use ringpath::controller::{Artifacts, Planning, SharedPolicy};
use ringpath::sim::run::{Options, RunResult, RunSpec, run};
use ringpath::sim::wire::WireKind;
use ringpath::solver::policy::least_loaded::LeastLoaded;
use ringpath::solver::{Objective, Policy};
use ringpath::workload::scenario::read;
use std::sync::Arc;

/// Two jobs on two leaves; each host serves one job, so without events nobody waits for anybody in the fabric. Hosts are
/// numbered leaf by leaf.
const CALM: &str = r#"
name = "calm"
packet_scale = 2000

[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
host_link = "10Gbps"
fabric_link = "40Gbps"

[[job]]
name = "a"
bytes = "200MB"
compute = "100ms"
jitter = 0.0
workers = ["h1", "h5", "h2"]
iterations = 10

[[job]]
name = "b"
bytes = "200MB"
compute = "100ms"
jitter = 0.0
workers = ["h3", "h7"]
iterations = 10
"#;

fn go(events: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scenario.toml");
    std::fs::write(&file, format!("{CALM}{events}")).unwrap();
    let scenario = read(&file, Some(1)).unwrap();
    let artifacts = Artifacts::built_in().unwrap();
    let policy: SharedPolicy = Arc::new(LeastLoaded);
    let result = run(&RunSpec {
        scenario: &scenario,
        policies: std::slice::from_ref(&policy),
        policy: LeastLoaded.name(),
        artifacts: &artifacts,
        wire: WireKind::Direct,
        planning: Planning {
            levels: scenario.levels(),
            max_paths: scenario.max_paths,
            max_evaluations: 1,
            objective: Objective::default(),
            phases: 1,
        },
        options: Options::default(),
    })
    .unwrap();
    assert_eq!(result.packets.dropped.label_miss, 0, "{result:?}");
    assert_eq!(result.packets.duplicated, 0, "{result:?}");
    result
}

fn event(keys: &str) -> RunResult {
    go(&format!("[[event]]\nat = \"1s\"\n{keys}\n"))
}

/// How much longer a job communicates than without the event.
fn stretch(with: &RunResult, without: &RunResult, job: &str) -> f64 {
    with.comm_ms_per_job[job] / without.comm_ms_per_job[job]
}

#[test]
fn every_kind_of_event_does_what_it_says_and_no_more() {
    let calm = go("");
    let only = |result: &RunResult, job: &str, least: f64| {
        let other = if job == "a" { "b" } else { "a" };
        let (own, others) = (stretch(result, &calm, job), stretch(result, &calm, other));
        assert!(own > least, "{job} communicates {own} as long as without");
        assert!((others - 1.0).abs() < 0.02, "{other} communicates {others} as long as without");
    };

    let slow = event("kind = \"link-slow\"\ntarget = \"leaf2-h5\"\nfactor = 0.5");
    only(&slow, "a", 1.3);
    let for_a_while =
        event("kind = \"link-slow\"\ntarget = \"leaf2-h5\"\nfactor = 0.5\nlasts = \"1s\"");
    let (whole, part) = (stretch(&slow, &calm, "a"), stretch(&for_a_while, &calm, "a"));
    assert!(part > 1.05 && part < whole - 0.1, "{part} against {whole}");

    // A busy neighbour on the sender's own interface has the lowest queue, as the jobs have under this policy.
    let noisy = event(
        "kind = \"background-flow\"\nsource = \"h1\"\ndestination = \"h8\"\nrate = \"10Gbps\"\nlasts = \"2s\"",
    );
    only(&noisy, "a", 1.1);

    // Compute is not communication: the run takes longer, the AllReduce does not.
    let tired = event("kind = \"host-slow\"\ntarget = \"h2\"\nfactor = 0.25");
    assert!(tired.virtual_s > calm.virtual_s + 1.0, "{} s", tired.virtual_s);
    for job in ["a", "b"] {
        assert!((stretch(&tired, &calm, job) - 1.0).abs() < 0.02, "{job}");
    }

    let down = event("kind = \"link-down\"\ntarget = \"leaf1-spine1\"");
    let back = go("[[event]]\nat = \"1s\"\nkind = \"link-down\"\ntarget = \"leaf1-spine1\"\n
        [[event]]\nat = \"2s\"\nkind = \"link-up\"\ntarget = \"leaf1-spine1\"\n");
    for result in [&down, &back] {
        let longest = stretch(result, &calm, "a").max(stretch(result, &calm, "b"));
        assert!(longest < 1.3, "the other spine has room: {longest}");
        assert!(result.entries_written > calm.entries_written, "flows were moved");
    }
    assert!(back.entries_written > down.entries_written, "and the labels came back");
}

#[test]
fn jobs_come_and_go_and_a_failed_host_costs_one_iteration() {
    let calm = go("");
    let late = go(
        "\n[[job]]\nname = \"late\"\nbytes = \"200MB\"\ncompute = \"100ms\"\njitter = 0.0\nworkers = [\"h3\", \"h7\"]\niterations = 4\n
        [[event]]\nat = \"500ms\"\nkind = \"job-arrival\"\ntarget = \"late\"\n",
    );
    assert!(late.comm_ms_per_job.contains_key("late"));
    assert!(stretch(&late, &calm, "b") > 1.1, "they share two interfaces");
    assert!((stretch(&late, &calm, "a") - 1.0).abs() < 0.05);

    let gone = event("kind = \"job-departure\"\ntarget = \"a\"");
    assert!(gone.packets.sent < calm.packets.sent * 9 / 10);
    assert!((stretch(&gone, &calm, "b") - 1.0).abs() < 0.02);

    let failed = event("kind = \"host-fail\"\ntarget = \"h2\"");
    let [restart] = &failed.restarts[..] else { panic!("{:?}", failed.restarts) };
    assert_eq!((restart.job.as_str(), restart.iterations_lost), ("a", 1));
    assert_eq!(restart.cause, "host h2 failed");
    let took = restart.duration_ms.unwrap();
    assert!(took > 800.0 && took < 1_000.0, "three heartbeats and a new ring: {took} ms");
    assert!((restart.failed_at_ms - 1_000.0).abs() < 1.0);
    assert!(stretch(&failed, &calm, "a") < 1.0, "a ring of two sends less per edge");
    assert!((stretch(&failed, &calm, "b") - 1.0).abs() < 0.02);
    assert!(failed.packets.dropped.host_down > 0);
}
