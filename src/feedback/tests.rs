use super::*;
use crate::id::{HostId, JobId, TreeId};
use crate::solver::instance::Choice;
use crate::solver::{Objective, Problem};
use crate::time::Span;
use crate::topology::generate::LeafSpine;
use crate::topology::{DEFAULT_MAX_PATHS, LinkSet, Paths, Topology};
use crate::units::{BitRate, Bytes};
use crate::workload::{Flow, Job, flows};
use proptest::prelude::*;

fn evidence(at: u32, rate: f64, suspects: &[(u32, f64)]) -> Evidence {
    let suspect = |&(link, factor): &(u32, f64)| Suspect { link: LinkId(link), factor };
    let suspects = suspects.iter().map(suspect).collect();
    Evidence { interval: at, rate, suspects, ..Evidence::default() }
}

fn place(links: &[u32], queue: u8) -> Place {
    let links = links.iter().map(|link| LinkId(*link)).collect();
    Place { path: Path { tree: TreeId(0), links }, queue }
}

fn reroute(at: u32) -> Reaction {
    let evidence = evidence(at, 100.0, &[(1, 0.5), (2, 0.5), (3, 0.5)]);
    let (from, to) = (place(&[0, 1, 2, 3], 2), place(&[0, 11, 12, 3], 2));
    Reaction::new(Action::Reroute, from, to, evidence, FlowId(7))
}

fn raise(flow: u32, at: u32, links: &[u32], to: u8) -> Reaction {
    let (from, to) = (place(links, to - 1), place(links, to));
    Reaction::new(Action::Raise, from, to, evidence(at, 100.0, &[]), FlowId(flow))
}

#[test]
fn a_path_that_proves_faster_is_kept_and_the_links_it_left_are_slow_for_later_plans() {
    let mut feedback = Feedback::new(Settings::default());
    assert!(feedback.may_react(FlowId(7), 10));
    feedback.begin(reroute(10));
    let slow = BTreeMap::from([(LinkId(1), 0.5), (LinkId(2), 0.5)]);
    assert_eq!(feedback.factors(), slow, "link 3 is on both paths");
    assert!(!feedback.may_react(FlowId(7), 11), "one reaction at a time");
    assert_eq!(feedback.looked(FlowId(7), &evidence(13, 190.0, &[])), None);
    let outcome = feedback.looked(FlowId(7), &evidence(14, 195.0, &[]));
    let Some(Outcome::Keep(kept)) = outcome else { panic!("{outcome:?}") };
    assert!((kept.speedup() - 1.925).abs() < 1e-9);
    assert_eq!(feedback.factors(), slow);
    feedback.replanned();
    assert_eq!(feedback.factors(), slow, "a new plan still knows");
    feedback.seen(LinkId(1), 0.54);
    feedback.seen(LinkId(2), 0.56);
    assert_eq!(feedback.factors().len(), 1, "what goes over a link at more is proof");
}

#[test]
fn a_reaction_that_does_not_help_is_undone_and_the_pause_doubles_up_to_its_bound() {
    let settings = Settings { pause: 8, pause_max: 20, ..Settings::default() };
    let mut feedback = Feedback::new(settings);
    let mut now = 10;
    for pause in [8, 16, 20, 20] {
        assert!(feedback.may_react(FlowId(7), now));
        feedback.begin(reroute(now));
        feedback.looked(FlowId(7), &evidence(now + 3, 104.0, &[]));
        let outcome = feedback.looked(FlowId(7), &evidence(now + 4, 105.0, &[]));
        assert!(matches!(outcome, Some(Outcome::Undo(_, Why::NoFaster))), "{outcome:?}");
        assert!(feedback.factors().is_empty(), "the links it left are no slower than the others");
        let until = now + 4 + pause;
        assert!(!feedback.may_react(FlowId(7), until - 1));
        now = until;
    }
}

#[test]
fn a_trial_without_traffic_ends_and_a_kept_raise_is_a_loan() {
    let settings = Settings { patience: 20, loan: 50, ..Settings::default() };
    let mut feedback = Feedback::new(settings);
    feedback.begin(raise(1, 10, &[1], 3));
    assert_eq!(feedback.tick(29), []);
    assert!(matches!(feedback.tick(30)[..], [Outcome::Undo(_, Why::NoTraffic)]));
    feedback.begin(raise(2, 40, &[1], 3));
    feedback.looked(FlowId(2), &evidence(43, 150.0, &[]));
    let outcome = feedback.looked(FlowId(2), &evidence(44, 150.0, &[]));
    assert!(matches!(outcome, Some(Outcome::Keep(_))));
    assert_eq!(feedback.tick(93), []);
    assert!(matches!(feedback.tick(94)[..], [Outcome::Undo(_, Why::LoanOver)]));
}

#[test]
fn a_link_is_trusted_again_after_a_while_and_longer_doubted_when_it_disappoints() {
    let settings = Settings { memory: 100, memory_max: 150, ..Settings::default() };
    let mut feedback = Feedback::new(settings);
    feedback.begin(reroute(10));
    feedback.replanned();
    feedback.tick(109);
    assert_eq!(feedback.factors().len(), 2);
    feedback.tick(110);
    assert!(feedback.factors().is_empty());
    feedback.begin(reroute(200));
    feedback.replanned();
    feedback.tick(349);
    assert_eq!(feedback.factors().len(), 2, "150 intervals, the bound");
    feedback.tick(350);
    assert!(feedback.factors().is_empty());
}

#[test]
fn a_raise_goes_one_queue_up_and_above_the_plans_highest_into_the_raised_one() {
    let feedback = Feedback::new(Settings::default());
    assert_eq!(feedback.raised_queue(0, 6, &[]), Some(1));
    assert_eq!(feedback.raised_queue(5, 6, &[]), Some(RAISED_QUEUE));
    assert_eq!(feedback.raised_queue(2, 3, &[]), Some(RAISED_QUEUE));
    assert_eq!(feedback.raised_queue(RAISED_QUEUE, 6, &[]), None);
}

#[test]
fn without_feedback_nothing_is_done() {
    let settings = Settings { mode: Mode::None, ..Settings::default() };
    assert!(!Feedback::new(settings).may_react(FlowId(0), 100));
}

proptest! {
    /// Verdicts fall on random flows of two rings over shared links, looks confirm or not at random: on no link there is
    /// ever more than one raised flow, and nobody is more than one level above the plan.
    #[test]
    fn two_rings_on_one_link_never_both_climb(
        steps in prop::collection::vec((0_u32..8, 0_u32..4, prop::bool::ANY), 1..200)
    ) {
        let mut feedback = Feedback::new(Settings { pause: 1, ..Settings::default() });
        let plan: Vec<(u8, [u32; 3])> =
            (0..8).map(|flow| ((flow % 6) as u8, [20 + flow, flow % 2, 4 + flow / 4])).collect();
        for (now, (flow, what, faster)) in (1_u32..).zip(steps) {
            let (queue, links) = plan[flow as usize];
            let ids = links.map(LinkId);
            let id = FlowId(flow);
            match what {
                0 | 1 if feedback.may_react(id, now) => {
                    if let Some(to) = feedback.raised_queue(queue, 6, &ids) {
                        let (from, to) = (place(&links, queue), place(&links, to));
                        feedback.begin(Reaction::new(Action::Raise, from, to, evidence(now, 1.0, &[]), id));
                    }
                }
                2 => { feedback.looked(id, &evidence(now, if faster { 2.0 } else { 1.0 }, &[])); }
                _ => { feedback.tick(now); }
            }
            let raised: Vec<&Reaction> =
                (0..8).filter_map(|flow| feedback.reaction(FlowId(flow))).collect();
            for reaction in &raised {
                prop_assert_eq!(reaction.to.queue, reaction.from.queue + 1);
                let link = |other: &&&Reaction| {
                    let links = &reaction.to.path.links;
                    other.to.path.links.iter().any(|link| links.contains(link))
                };
                prop_assert_eq!(raised.iter().filter(link).count(), 1, "only itself");
            }
        }
    }

    /// A straggler whose measured rate only jitters by up to 30 % around the same mean: the reactions that it gets thin
    /// out, because a reaction that does not help is paid for with a pause that doubles.
    #[test]
    fn jitter_of_thirty_per_cent_makes_no_oscillation(
        rates in prop::collection::vec(0.7_f64..1.3, 2_000)
    ) {
        let mut feedback = Feedback::new(Settings::default());
        let (mut changes, mut late) = (0, 0);
        let mut looks = 0;
        for (now, rate) in (0_u32..).zip(rates) {
            let ended = feedback.looked(FlowId(7), &evidence(now, 100.0 * rate, &[])).is_some();
            let ended = ended | !feedback.tick(now).is_empty();
            if ended || looks == 0 {
                looks = 4;
            }
            looks -= 1;
            // Always flagged: the worst case for the reactions.
            let began = feedback.may_react(FlowId(7), now);
            if began {
                let mut reaction = raise(7, now, &[1], 3);
                reaction.evidence.rate = 100.0;
                feedback.begin(reaction);
            }
            changes += u32::from(began) + u32::from(ended);
            late += u32::from(now >= 1_000) * (u32::from(began) + u32::from(ended));
        }
        prop_assert!(changes <= 120, "{} changes in 2,000 intervals", changes);
        prop_assert!(late <= 60, "{} in the second half", late);
    }
}

/// Two jobs of two ranks each between the same two leaves, on hosts of their own.
struct Case {
    topology: Topology,
    jobs: Vec<Job>,
    flows: Vec<Flow>,
    paths: Vec<Vec<Path>>,
}

fn case(spines: u32) -> Case {
    let topology = LeafSpine::new(2, spines, 2, BitRate(1_000_000_000)).build().unwrap();
    let job = |id: u32, ranks: [u32; 2]| Job {
        id: JobId(id),
        name: format!("job{id}"),
        model: "custom".into(),
        ranks: ranks.map(HostId).to_vec(),
        gpus_per_rank: 1,
        gradient: Bytes(10_000_000),
        compute: Span::from_millis(100),
        overlap: 0.0,
        jitter: 0.03,
        iterations: 50,
        start: Span::ZERO,
        channels: 1,
    };
    let jobs = vec![job(0, [0, 2]), job(1, [1, 3])];
    let flows = flows(&topology, &jobs).unwrap();
    let all = Paths::build(&topology, &LinkSet::new(), DEFAULT_MAX_PATHS).unwrap();
    let paths = flows.iter().map(|flow| all.candidates(&topology, flow.src, flow.dst)).collect();
    Case { topology, jobs, flows, paths }
}

fn chosen(
    case: &Case,
    choice: &Choice,
    raise: Option<u8>,
    suspects: &[Suspect],
) -> Option<Proposal> {
    let problem = Problem {
        topology: &case.topology,
        jobs: &case.jobs,
        flows: &case.flows,
        paths: &case.paths,
        levels: 6,
        in_force: Default::default(),
    };
    let situation = Situation {
        problem: &problem,
        choice,
        flow: 0,
        suspects,
        raise,
        objective: Objective::Both,
        seed: 1,
    };
    choose(&situation, &Settings::default())
}

fn suspects(path: &Path, factor: f64) -> Vec<Suspect> {
    path.links[1..].iter().map(|link| Suspect { link: *link, factor }).collect()
}

#[test]
fn a_slow_link_is_avoided_by_the_other_path() {
    let case = case(2);
    let choice = Choice { path: vec![0, 0, 1, 1], queue: vec![2; 4] };
    let proposal = chosen(&case, &choice, Some(3), &suspects(&case.paths[0][0], 0.4)).unwrap();
    assert_eq!((proposal.action, proposal.path, proposal.queue), (Action::Reroute, 1, 2));
    assert!(proposal.gain > 0.01 && proposal.gain < 0.6, "{proposal:?}");
}

#[test]
fn without_another_path_a_slow_link_is_borne_and_a_flow_in_the_lowest_queue_is_raised() {
    let mut case = case(1);
    case.jobs.truncate(1);
    case.flows.truncate(2);
    case.paths.truncate(2);
    for (queue, wanted) in [(2, None), (0, Some(Action::Raise))] {
        let choice = Choice { path: vec![0; 2], queue: vec![queue; 2] };
        let proposal = chosen(&case, &choice, Some(queue + 1), &suspects(&case.paths[0][0], 0.4));
        assert_eq!(proposal.map(|proposal| proposal.action), wanted, "queue {queue}");
    }
}

#[test]
fn a_path_that_is_as_slow_for_others_is_not_taken_for_less_than_it_costs() {
    // The other spine is full of the other job's four channels, and the link is hardly slow.
    let mut case = case(2);
    case.jobs[1].gradient = Bytes(80_000_000);
    case.flows = flows(&case.topology, &case.jobs).unwrap();
    let choice = Choice { path: vec![0, 0, 1, 1], queue: vec![2, 2, 5, 5] };
    assert_eq!(chosen(&case, &choice, None, &suspects(&case.paths[0][0], 0.97)), None);
}
