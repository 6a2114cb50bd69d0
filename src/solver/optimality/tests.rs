use super::*;

/// A small budget: these tests are about the accounting, the measurement is `ringpath evaluate`'s.
const BUDGET: Budget = Budget { evaluations: 1_500, phases: 1 };

#[test]
fn cases_have_the_shape_that_is_documented_and_differ() {
    let mut shapes = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let case = case(seed);
        assert!((2..=4).contains(&case.leaves) && case.spines == 2);
        assert!(case.leaves * case.hosts_per_leaf <= HOSTS_MAX);
        assert!(CHOOSING.contains(&choosing(&case)), "{case:?}");
        assert_eq!(case.jobs.len(), JOBS);
        for job in &case.jobs {
            assert!((2..=6).contains(&job.ranks.len()) && job.ranks.is_sorted());
            assert!((12..=48).contains(&job.iterations), "{}", job.iterations);
        }
        shapes.insert((case.leaves, case.hosts_per_leaf, choosing(&case)));
    }
    assert!(shapes.len() > 30, "{}", shapes.len());
}

#[test]
fn a_case_travels_as_text_and_gives_the_same_outcome_wherever_it_runs() {
    let there: Case = serde_json::from_str(&serde_json::to_string(&case(3)).unwrap()).unwrap();
    assert_eq!(there, case(3));
    let outcome = run(&there, BUDGET).unwrap();
    assert_eq!(outcome, run(&case(3), BUDGET).unwrap());
    let back: Outcome = serde_json::from_str(&serde_json::to_string(&outcome).unwrap()).unwrap();
    assert_eq!(back.rows.len(), outcome.rows.len());
    for (back, row) in back.rows.iter().zip(&outcome.rows) {
        // Numbers as text may lose their last bit.
        assert!(back.policy == row.policy && (back.of_comm - row.of_comm).abs() < 1e-12);
    }
}

#[test]
fn nobody_with_one_queue_per_job_passes_the_enumerated_optimum_and_somebody_falls_short() {
    let mut short = 0;
    for seed in 0..6 {
        let outcome = run(&case(seed), BUDGET).unwrap();
        assert!(outcome.simulated > 1 && outcome.simulated < outcome.choices, "{outcome:?}");
        // The paper's method may part the flows of a job, and so may `joint`.
        for row in outcome.rows.iter().filter(|row| row.policy != "joint" && row.policy != "paper")
        {
            assert!(row.of_comm <= 1.0 + 1e-9 && row.of_utilisation <= 1.0 + 1e-9, "{row:?}");
            short += u32::from(row.of_comm < 0.97);
        }
        let last = outcome.rows.last().unwrap();
        assert!(last.policy == "joint" && last.of_comm > 0.9 && last.of_utilisation > 0.9);
    }
    assert!(short > 6, "{short}");
}

#[test]
fn a_case_that_nobody_drew_is_refused_with_its_seed() {
    let mut odd = case(1);
    odd.leaves = 0;
    assert!(run(&odd, BUDGET).unwrap_err().to_string().contains("case 1"));
    let mut odd = case(1);
    odd.spines = 8;
    assert!(matches!(run(&odd, BUDGET), Err(CaseError::TooLarge { .. })));
}
