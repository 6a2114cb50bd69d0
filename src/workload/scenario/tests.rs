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
