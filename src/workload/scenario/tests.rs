//! Scenario files, good and bad.

use super::*;
use std::path::Path;

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_default_scenario_is_the_example_file_for_every_seed() {
    let text = example("default.toml");
    for seed in 0..20 {
        let file = parse(&text, "default.toml", Path::new("."), Some(seed)).unwrap();
        assert_eq!(file, default_scenario(seed).unwrap(), "seed {seed}");
    }
    assert_ne!(default_scenario(1).unwrap(), default_scenario(2).unwrap());
}

#[test]
fn the_default_scenario_puts_two_jobs_on_most_nics() {
    for seed in 0..20 {
        let scenario = default_scenario(seed).unwrap();
        let shared = scenario.topology.hosts().filter(|host| {
            scenario.jobs.iter().filter(|job| job.ranks.contains(host)).count() == 2
        });
        assert!(shared.count() > 8);
        assert_eq!(scenario.levels(), 6);
    }
}

fn read_example(name: &str, seed: Option<u64>) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios").join(name);
    read(&path, seed).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_contention_free_figures_in_the_doc_of_the_default_scenario_hold() {
    let scenario = default_scenario(0).unwrap();
    let comm: Vec<u64> = scenario
        .jobs
        .iter()
        .map(|job| {
            let period = contention_free_iteration(&scenario.topology, job);
            (period.0 - job.compute.0 + 500_000) / 1_000_000
        })
        .collect();
    assert_eq!(comm, [139, 227, 25, 867, 381, 218]);
    let busy = |job: &Job| job.compute.as_secs_f64();
    let window = |job: &Job| contention_free_iteration(&scenario.topology, job).as_secs_f64();
    let sum = |of: &dyn Fn(&Job) -> f64| {
        let weight = |job: &Job| job.ranks.len() as f64 * f64::from(job.iterations);
        scenario.jobs.iter().map(|job| weight(job) * of(job)).sum::<f64>()
    };
    let utilisation = sum(&busy) / sum(&window);
    assert!((utilisation - 0.41).abs() < 0.02, "{utilisation}");
}

#[test]
fn every_kind_of_event_is_read_sorted_and_resolved() {
    let scenario = read_example("link-failure.toml", None);
    assert_eq!(scenario.seed, 7);
    let words: Vec<String> = scenario
        .events
        .iter()
        .map(|event| {
            let json = serde_json::to_value(event).unwrap();
            json["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert!(scenario.events.is_sorted_by_key(|event| event.at));
    for kind in [
        "link-down",
        "link-up",
        "job-arrival",
        "host-slow",
        "link-slow",
        "background-flow",
        "move-flows",
        "set-policy",
        "replan",
        "job-departure",
    ] {
        assert!(words.iter().any(|word| word == kind), "{kind} in {words:?}");
    }
    let late = scenario.jobs.iter().find(|job| job.name == "late").unwrap();
    assert_eq!(late.start, Span::from_millis(1_500));
    let down = scenario.events.iter().find_map(|event| match event.kind {
        EventKind::LinkDown { link } => Some(link),
        _ => None,
    });
    let link = scenario.topology.link(down.unwrap());
    let name = |node| scenario.topology.node(node).name.clone();
    assert_eq!((name(link.from), name(link.to)), ("leaf1".to_owned(), "spine2".to_owned()));
    // "set-policy" and "replan" at one time stay in the order of the file.
    let at = |word: &str| words.iter().position(|other| other == word).unwrap();
    assert!(at("set-policy") < at("replan"));
}

#[test]
fn what_the_file_leaves_open_follows_the_seed_and_what_it_says_does_not() {
    let (one, two) =
        (read_example("link-failure.toml", Some(1)), read_example("link-failure.toml", Some(2)));
    assert_eq!(one, read_example("link-failure.toml", Some(1)));
    let ranks =
        |scenario: &Scenario| scenario.jobs.iter().map(|job| job.ranks.clone()).collect::<Vec<_>>();
    assert_ne!(ranks(&one), ranks(&two));
    assert_ne!(one.jobs[0].start, two.jobs[0].start);
    assert_ne!(one.jobs[0].compute, two.jobs[0].compute);
    for scenario in [&one, &two] {
        assert!(scenario.jobs[0].start <= Span::from_millis(300));
        let model =
            crate::workload::models::find("bert-large-s512").unwrap().compute().as_secs_f64();
        assert!((scenario.jobs[0].compute.as_secs_f64() / model - 1.0).abs() <= 0.1);
    }
    let small = |seed| Scenario { seed: 0, ..read_example("small.toml", Some(seed)) };
    assert_eq!(small(1), small(2));
}

#[test]
fn adding_a_job_at_the_end_moves_no_draw_of_earlier_jobs() {
    let text = example("link-failure.toml");
    let more = format!(
        "{text}\n[[job]]\nname = \"more\"\nmodel = \"vgg-19\"\nworkers = 2\nstart = \"random\"\n"
    );
    let read = |text: &str| parse(text, "s.toml", Path::new("."), Some(4)).unwrap();
    let (before, after) = (read(&text), read(&more));
    assert_eq!(after.jobs.len(), before.jobs.len() + 1);
    for (a, b) in before.jobs.iter().zip(&after.jobs) {
        assert_eq!((a.compute, &a.ranks), (b.compute, &b.ranks));
        assert_eq!(a.start, b.start);
    }
    assert_eq!(before.events, after.events);
}

#[test]
fn a_job_with_a_count_is_many_jobs() {
    let text =
        example("small.toml").replace("name = \"resnet\"\n", "name = \"resnet\"\ncount = 3\n");
    let scenario = parse(&text, "s.toml", Path::new("."), None).unwrap();
    let names: Vec<&str> = scenario.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["resnet-0", "resnet-1", "resnet-2", "vgg"]);
}

#[test]
fn a_fabric_file_is_found_beside_the_scenario() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topologies");
    let text = "[fabric]\nfile = \"topo.csv\"\nuplinks = 2\n[[job]]\nname = \"a\"\nmodel = \"vgg-16\"\nworkers = 3\n";
    let scenario = parse(text, "s.toml", &folder, Some(0)).unwrap();
    assert_eq!(scenario.topology.host_count(), 5);
    assert_eq!(scenario.jobs[0].ranks.len(), 3);
    assert!(
        scenario.notes.iter().any(|note| note.contains("2 uplinks of 200Gbps")),
        "{:?}",
        scenario.notes
    );
}

#[test]
fn a_job_may_leave_the_order_of_its_ring_open() {
    let text = example("small.toml");
    let read = |text: &str| parse(text, "s.toml", Path::new("."), None);
    assert_eq!(read(&text).unwrap().any_order, []);
    let open = text.replace("name = \"vgg\"", "name = \"vgg\"\nring_order = \"any\"");
    let scenario = read(&open).unwrap();
    assert_eq!(scenario.any_order, [scenario.jobs[1].id]);
    assert_eq!(scenario.jobs, read(&text).unwrap().jobs, "reading alone changes no order");
    let given = text.replace("name = \"vgg\"", "name = \"vgg\"\nring_order = \"given\"");
    assert_eq!(read(&given).unwrap().any_order, []);
    let wrong = text.replace("name = \"vgg\"", "name = \"vgg\"\nring_order = \"sorted\"");
    assert!(read(&wrong).unwrap_err().to_string().contains("ring_order"));
}
