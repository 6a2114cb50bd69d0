//! `ringpath plan`: the JSON's shape, its figures recomputed, its bounds, its refusals.

use clap::Parser as _;
use ringpath::cli::plan::{Case, figures};
use ringpath::cli::{Cli, Exit, exit, run};
use ringpath::plan::{bound, check, drain};
use ringpath::solver::fluid::drain::drain as fast_drain;
use ringpath::solver::instance::Instance;
use ringpath::solver::{Effort, Objective, policy};
use ringpath::workload::scenario::read;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn scenario(name: &str) -> String {
    root("examples/scenarios").join(name).display().to_string()
}

fn plan(arguments: &[&str]) -> anyhow::Result<(Exit, String)> {
    let cli = Cli::try_parse_from([&["ringpath", "plan"], arguments].concat())?;
    let mut out = Vec::new();
    let exit = run(cli.command, &mut out)?;
    Ok((exit, String::from_utf8(out)?))
}

fn json(arguments: &[&str]) -> Value {
    let (exit, text) = plan(&[arguments, &["-o", "json"]].concat()).unwrap();
    assert_eq!(exit, Exit::Done);
    serde_json::from_str(&text).unwrap()
}

fn keys(value: &Value) -> String {
    value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
}

/// Runs the plain Python checker on a document; `None` without a Python.
fn python_says(document: &Value) -> Option<String> {
    let mut child = Command::new("python3")
        .arg(root("tests/interop/check_plan.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    // A checker that fails early closes its input.
    let _ = child.stdin.take().unwrap().write_all(document.to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

#[test]
fn the_json_has_the_documented_keys_in_order() {
    let document =
        json(&[&scenario("small.toml"), "--solver", "least-loaded", "--objective", "static"]);
    assert_eq!(
        keys(&document),
        "solver seed objective bounds gap drain_sum_s drain_bound_s links jobs flows"
    );
    assert_eq!(keys(&document["objective"]), "name value unit");
    assert_eq!(keys(&document["bounds"][0]), "name value");
    assert_eq!(keys(&document["links"][0]), "from to capacity_bps");
    assert_eq!(keys(&document["jobs"][0]), "name comm_s drain_s");
    assert_eq!(
        keys(&document["flows"][0]),
        "job channel src dst bytes queue path rate0_bps drain_s"
    );
    // The static estimate has no bound.
    assert_eq!(document["gap"], Value::Null);
    assert_eq!(
        (document["solver"].as_str(), document["seed"].as_u64()),
        (Some("least-loaded"), Some(0))
    );
    assert_eq!(document["links"].as_array().unwrap().len(), 2 * (4 + 4));
    // 2 hosts x 1 channel and 3 hosts x 2 channels.
    assert_eq!(document["flows"].as_array().unwrap().len(), 8);
    assert_eq!(document["flows"][0]["path"][0], "h1");
    assert_eq!(document["flows"][0]["bytes"], 51_120_000);
}

#[test]
fn an_independent_checker_in_python_recomputes_every_solvers_plan_and_catches_a_changed_one() {
    for solver in policy::names() {
        let mut document = json(&[
            &scenario("default.toml"),
            "--solver",
            solver,
            "--seed",
            "5",
            "--evaluations",
            "60",
        ]);
        let Some(said) = python_says(&document) else {
            println!("skipped: python3 is not installed");
            return;
        };
        assert!(said.ends_with("jobs agree\n"), "{solver}: {said}");
        let drain = document["flows"][2]["drain_s"].as_f64().unwrap();
        document["flows"][2]["drain_s"] = Value::from(drain * 1.001);
        let said = python_says(&document).unwrap();
        assert!(said.contains("drain_s of flow 2: recomputed"), "{solver}: {said}");
    }
}

#[test]
fn parallel_cables_are_named_apart_and_still_recomputed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.json");
    let links = r#"[["h1","a"],["h2","a"],["h3","b"],["h4","b"],["a","b",0,100],["a","b",0,100]]"#;
    let text = format!(r#"{{"hosts":["h1","h2","h3","h4"],"switches":["a","b"],"links":{links}}}"#);
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let document = json(&["--topology-json", &file, "--jobs", "2", "--solver", "least-loaded"]);
    let named: Vec<&str> = document["links"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|link| link["to"].as_str())
        .collect();
    assert!(named.contains(&"a:3=b:3") && named.contains(&"a:4=b:4"), "{named:?}");
    if let Some(said) = python_says(&document) {
        assert!(said.ends_with("jobs agree\n"), "{said}");
    }
}

#[test]
fn drain_times_of_the_solver_and_of_the_plain_recomputation_agree_and_respect_the_bound() {
    for (name, seed) in
        [("small.toml", 0), ("default.toml", 1), ("default.toml", 2), ("link-failure.toml", 3)]
    {
        let case = Case::new(read(Path::new(&scenario(name)), Some(seed)).unwrap()).unwrap();
        let problem = case.problem();
        let demands = figures::demands(&case.flows);
        let least = bound::drain_sum(&case.topology, &case.links, &demands);
        for policy in policy::all() {
            let stop = || false;
            let effort = Effort {
                seed,
                max_evaluations: 60,
                stop: &stop,
                objective: Objective::Drain,
                phases: 1,
            };
            let plan = policy.plan(&problem, &effort);
            assert_eq!(check(&case.topology, &case.links, &demands, problem.levels, &plan), []);
            let fast =
                fast_drain(&Instance::new(&problem), &Instance::choice(&problem, &plan).unwrap());
            let slow = drain::completions(&case.links.rates(&case.topology), &demands, &plan);
            for (fast, slow) in fast.flow.iter().zip(&slow) {
                let slow = slow.unwrap();
                assert!(
                    (fast - slow).abs() <= 1e-6 * slow,
                    "{name} {}: {fast} {slow}",
                    policy.name()
                );
            }
            let sum: f64 = drain::by_job(&demands, &slow).iter().map(|job| job.1.unwrap()).sum();
            assert!(
                least > 0.0 && least <= sum * (1.0 + 1e-9),
                "{name} {}: {least} {sum}",
                policy.name()
            );
        }
    }
}

#[test]
fn no_objective_is_better_than_its_bound() {
    let folder = scenario("small.toml");
    for objective in ["comm", "utilisation", "both", "slowdown", "max", "drain"] {
        let document = json(&[&folder, "--objective", objective, "--evaluations", "100"]);
        let value = document["objective"]["value"].as_f64().unwrap();
        let bounds = document["bounds"].as_array().unwrap();
        let bound =
            bounds.iter().find(|bound| bound["name"] == "objective").unwrap()["value"].as_f64();
        let (bound, better) = (bound.unwrap(), document["gap"].as_f64().unwrap());
        assert!(better >= 0.0);
        match objective {
            "utilisation" => assert!(value <= bound * (1.0 + 1e-9), "{objective}: {value} {bound}"),
            _ => assert!(value >= bound * (1.0 - 1e-9), "{objective}: {value} {bound}"),
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let small = scenario("default.toml");
    let once = plan(&[&small, "--evaluations", "80", "-o", "json"]).unwrap().1;
    assert_eq!(once, plan(&[&small, "--evaluations", "80", "-o", "json"]).unwrap().1);
    assert_ne!(
        once,
        plan(&[&small, "--evaluations", "80", "--seed", "9", "-o", "json"]).unwrap().1
    );
}

#[test]
fn a_lingjun_csv_gets_jobs_placed_and_says_what_it_assumed() {
    let file = root("tests/data/topologies/topo.csv").display().to_string();
    let (_, text) = plan(&[
        "--topology-csv",
        &file,
        "--jobs",
        "3",
        "--solver",
        "sebf",
        "--host-link",
        "10Gbps",
    ])
    .unwrap();
    assert!(text.contains("assumed, as topo.csv has no links: host links 10Gbps"), "{text}");
    assert!(text.contains("3 jobs placed at random"), "{text}");
    assert!(text.contains("bert-large-1"), "{text}");
    let merged =
        json(&["--topology-csv", &file, "--jobs", "2", "--merge-parallel", "--solver", "ecmp"]);
    let links = merged["links"].as_array().unwrap();
    assert!(links.iter().any(|link| link["capacity_bps"] == 800_000_000_000_u64));
}

#[test]
fn the_real_lingjun_topology_is_planned() {
    let beside =
        ["../shared/data", "../../shared/data"].map(|folder| root(folder).join("lingjun-topo.csv"));
    let Some(file) = beside.iter().find(|file| file.exists()) else {
        println!(
            "skipped: the_real_lingjun_topology_is_planned needs ../shared/data/lingjun-topo.csv"
        );
        return;
    };
    let file = file.display().to_string();
    let document = json(&[
        "--topology-csv",
        &file,
        "--jobs",
        "40",
        "--solver",
        "joint",
        "--evaluations",
        "60",
    ]);
    assert_eq!(document["jobs"].as_array().unwrap().len(), 40);
    if let Some(said) = python_says(&document) {
        assert!(said.ends_with("jobs agree\n"), "{said}");
    }
}

#[test]
fn explain_says_why_and_whom_a_flow_meets() {
    let (_, text) =
        plan(&[&scenario("small.toml"), "--solver", "least-loaded", "--explain", "0"]).unwrap();
    assert!(text.starts_with("flow 0: queue"), "{text}");
    assert!(text.contains("why: ") && text.contains("yields to"), "{text}");
}

#[test]
fn wrong_use_is_refused_with_what_would_be_right() {
    let refuse = |arguments: &[&str]| plan(arguments).unwrap_err();
    let small = scenario("small.toml");
    let error = refuse(&[&small, "--solver", "joit"]);
    assert_eq!(exit::of(&error), Exit::Usage);
    assert!(error.to_string().contains("did you mean 'joint'?"), "{error}");
    let error = refuse(&[&small, "--explain", "99", "--solver", "ecmp"]);
    assert_eq!((exit::of(&error), error.to_string().contains("flows 0 to 7")), (Exit::Usage, true));
    let error = refuse(&["/nonexistent/s.toml"]);
    assert_eq!(exit::of(&error), Exit::Failed);
    assert!(
        exit::chain(&error).starts_with("/nonexistent/s.toml: cannot read the file"),
        "{error}"
    );
    let error = refuse(&["--topology-csv", "/nonexistent/t.csv"]);
    assert!(exit::chain(&error).contains("cannot read /nonexistent/t.csv"), "{error}");
    let csv = root("tests/data/topologies/topo.csv").display().to_string();
    let error = refuse(&["--topology-csv", &csv, "--jobs", "50"]);
    assert!(error.to_string().contains("raise jobs_per_host"), "{error}");
}

#[test]
fn links_that_fail_at_the_start_are_planned_around() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    let text = std::fs::read_to_string(scenario("small.toml")).unwrap();
    let down = "\n[[event]]\nat = \"0s\"\nkind = \"link-down\"\ntarget = \"leaf1-spine1\"\n";
    std::fs::write(&path, text + down).unwrap();
    let document = json(&[&path.display().to_string(), "--solver", "ecmp"]);
    for flow in document["flows"].as_array().unwrap() {
        let nodes: Vec<&str> =
            flow["path"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(!nodes.contains(&"spine1"), "{nodes:?}");
    }
}

#[test]
fn a_ring_whose_order_is_open_changes_leaf_as_seldom_as_it_can() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.toml");
    let fabric = "[fabric]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\nhost_link = \"10Gbps\"\n\
        fabric_link = \"10Gbps\"\n";
    let crossing = |order: &str| {
        let job = |name: &str| {
            format!(
                "\n[[job]]\nname = \"{name}\"\nbytes = \"200MB\"\ncompute = \"80ms\"\niterations = 6\n{order}\
                 workers = [\"h1\", \"h4\", \"h2\", \"h5\", \"h3\", \"h6\"]\n"
            )
        };
        let place = "\n[placement]\njobs_per_host = 2\n";
        std::fs::write(&path, format!("{fabric}{place}{}{}", job("a"), job("b"))).unwrap();
        let document = json(&[&path.display().to_string(), "--solver", "least-loaded"]);
        let flows = document["flows"].as_array().unwrap();
        assert_eq!(flows.len(), 12);
        flows.iter().filter(|flow| flow["path"].as_array().unwrap().len() > 3).count()
    };
    assert_eq!(crossing(""), 12);
    assert_eq!(crossing("ring_order = \"any\"\n"), 4);
}
