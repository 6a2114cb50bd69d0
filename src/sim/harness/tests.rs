//! The harness on a few seeds, and that it finds what is broken.

use super::*;
use crate::controller::Artifacts;

fn harness() -> Harness {
    Harness {
        artifacts: Artifacts::built_in().expect("the program"),
        policy: std::sync::Arc::new(crate::solver::policy::by_name("crux").expect("a policy")),
        statements: crate::sim::invariant::all,
    }
}

#[test]
fn seeds_with_faults_keep_every_invariant() {
    let seeds: u64 = std::env::var("SIM_SEEDS").map_or(12, |text| text.parse().expect("a number"));
    let first: u64 = std::env::var("SIM_FIRST").map_or(0, |text| text.parse().expect("a number"));
    let outcomes = harness().run(first..first + seeds, 2, &|outcome| {
        if let Some(failure) = &outcome.failure {
            println!(
                "seed {}: {}\n  faults {:?}\n  shortest {:?}: {}",
                outcome.seed, failure.what, outcome.faults, failure.shortest, failure.shortest_what
            );
        }
    });
    let broken: Vec<u64> =
        outcomes.iter().filter(|o| o.failure.is_some()).map(|o| o.seed).collect();
    assert_eq!(broken, Vec::<u64>::new());
    assert!(outcomes.iter().map(|o| o.faults.len()).sum::<usize>() > 10, "no faults were drawn");
    assert!(outcomes.iter().all(|o| o.events > 1000));
    println!("{} events", outcomes.iter().map(|o| o.events).sum::<u64>());
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    let harness = harness();
    let (a, b) = (harness.seed(3), harness.seed(3));
    assert_eq!((a.digest, a.events, a.faults), (b.digest, b.events, b.faults));
}

/// Broken as soon as a switch has restarted, or a cable is down: a statement that faults do break.
struct NothingHappens;

impl crate::sim::invariant::Invariant for NothingHappens {
    fn name(&self) -> &'static str {
        "NothingHappens"
    }

    fn check(
        &mut self,
        view: &crate::sim::invariant::View<'_>,
        _: &Happened,
    ) -> crate::sim::invariant::Finding {
        if view.restarted { Err(("no restart".into(), "a restart".into())) } else { Ok(()) }
    }
}

#[test]
fn a_broken_statement_is_reported_with_the_one_fault_that_breaks_it() {
    let mut harness = harness();
    harness.statements = || vec![Box::new(NothingHappens)];
    let is_restart = |fault: &&Fault| matches!(fault, Fault::Restart { .. });
    let seed = (0..200)
        .find(|seed| {
            let topology = small_scenario(*seed).expect("a scenario").topology;
            let faults = Faults::draw(*seed, &topology, HORIZON);
            faults.len() > 2 && faults.iter().filter(is_restart).count() > 0
        })
        .expect("a seed with a restart among other faults");
    let outcome = harness.seed(seed);
    let failure = outcome.failure.expect("the statement is broken");
    assert_eq!(failure.shortest.len(), 1, "{failure:?}");
    assert!(failure.shortest.iter().all(|fault| is_restart(&fault)), "{failure:?}");
    for part in ["NothingHappens", "no restart", "a restart", "Restarted"] {
        assert!(failure.what.contains(part), "{part} in {}", failure.what);
    }
}

#[test]
fn a_label_or_queue_that_is_wrong_on_a_device_is_found() {
    use crate::id::SwitchId;
    use crate::p4runtime::device::Device as _;
    use crate::p4runtime::proto::p4::v1 as proto;
    use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
    use crate::sim::fabric::lock;
    let harness = harness();
    for (what, wanted) in [("delete", "LabelsInstalled"), ("raise", "QueueInRange")] {
        let scenario = small_scenario(1).expect("a scenario");
        let (mut world, mut checker) = harness.world(&scenario, &[]).expect("a world");
        world.boot().expect("a start");
        while world.origin().is_none() {
            let (now, happened) = world.step().expect("a step").expect("an event");
            checker.check(&world, now, happened).expect("all is well");
        }
        let program = checker.program().clone();
        let now = world.queue.now();
        let (table_id, kind) = match what {
            "delete" => (program.path_forward.id(), proto::update::Type::Delete),
            _ => (program.classify.id(), proto::update::Type::Modify),
        };
        let pattern = proto::TableEntry { table_id, ..Default::default() };
        let pattern = proto::Entity { entity: Some(Kind::TableEntry(pattern)) };
        let mut broken = 0;
        for switch in scenario.topology.switches() {
            let server = world.servers[switch.index()].clone();
            let mut entries = Vec::new();
            lock(&server).device().read(now, &pattern, &mut |e| entries.push(e)).expect("a read");
            for entity in &mut entries {
                if let Some(Kind::TableEntry(entry)) = &mut entity.entity
                    && what == "raise"
                {
                    let (key, mut tag) = program.classify.from_entry(entry).expect("ours");
                    if tag.queue == crate::plan::CONTROL_QUEUE {
                        continue;
                    }
                    tag.queue = crate::plan::CONTROL_QUEUE;
                    *entry = program.classify.to_entry(key, tag);
                }
                let update = proto::Update { r#type: kind.into(), entity: Some(entity.clone()) };
                lock(&server).device_mut().write(now, &update).expect("a write");
                broken += 1;
            }
            let happened = Happened::Executed(switch, true);
            let verdict = checker.check(&world, now, happened);
            if broken > 0 {
                let violation = verdict.expect_err("a wrong table");
                assert_eq!(violation.invariant, wanted, "{violation}");
                break;
            }
            assert_ne!(switch, SwitchId::from(scenario.topology.switch_count() - 1));
        }
    }
}
