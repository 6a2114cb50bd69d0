//! Reactions to stragglers as changes of goals: rolled out, stored, taken back.

use super::net::Net;
use super::{SOON, tuned};
use crate::controller::config::FeedbackConfig;
use crate::controller::messages::{Event, Input};
use crate::feedback::{Mode, Outcome, Why};
use crate::id::{FlowId, JobId, LinkId};
use crate::straggler::{Evidence, Suspect};
use crate::topology::Path;

const FLOW: FlowId = FlowId(0);

fn net(mode: Mode) -> Net {
    tuned(move |config| config.feedback = FeedbackConfig::new(mode, 0.2))
}

fn place(net: &Net) -> (Path, u8) {
    let goal = &net.core.goals()[&FLOW];
    (goal.path.clone(), goal.forward.queue)
}

/// Flow 0 waits on its way to a spine or from there.
fn evidence(net: &Net) -> Evidence {
    let (path, _) = place(net);
    let suspect = |link: &LinkId| Suspect { link: *link, factor: 0.3 };
    let suspects = path.links[1..3].iter().map(suspect).collect();
    Evidence { interval: 9, rate: 1e9, progress: 0.3, share: 0.9, suspects, ..Evidence::default() }
}

fn react(net: &mut Net) {
    let evidence = evidence(net);
    net.core.react(JobId(0), FLOW, &evidence);
    pump(net);
}

/// A report that says nothing new lets the core do what is due.
fn pump(net: &mut Net) {
    net.input(Input::Progress { job: JobId(0), iterations: 0, compute: Vec::new() });
    net.converge(SOON);
    net.assert_as_wanted();
}

#[test]
fn a_straggler_leaves_the_suspects_and_the_plan_keeps_its_generation() {
    let mut net = net(Mode::Best);
    let (before, generation) = (place(&net), net.core.generation());
    react(&mut net);
    let after = place(&net);
    assert!(before.0.links[1..3].iter().all(|link| !after.0.links.contains(link)));
    assert_eq!((after.1, net.core.generation()), (before.1, generation));
    let told = |event: &Event| matches!(event, Event::StragglerRerouted { flow: FLOW, gain, .. } if *gain > 0.01);
    assert_eq!(net.seen(told), 1);
    assert_eq!(net.core.feedback().factors().len(), 2);
}

#[test]
fn reactions_and_slow_links_survive_the_controller_and_a_new_plan_ends_the_reaction_only() {
    let mut net = net(Mode::Best);
    react(&mut net);
    let (there, factors) = (place(&net), net.core.feedback().factors());
    net.crash();
    net.converge(SOON);
    assert_eq!(place(&net), there);
    assert_eq!(net.core.feedback().factors(), factors);
    assert!(net.core.feedback().reaction(FLOW).is_some());
    net.input(Input::Replan);
    net.converge(SOON);
    assert!(net.core.feedback().reaction(FLOW).is_none());
    assert_eq!(net.core.feedback().factors(), factors, "plans still know");
}

#[test]
fn what_did_not_help_is_taken_back() {
    let mut net = net(Mode::Raise);
    let before = place(&net);
    react(&mut net);
    assert_eq!(place(&net), (before.0.clone(), before.1 + 1));
    let reaction = net.core.feedback().reaction(FLOW).unwrap().clone();
    net.core.conclude(Outcome::Undo(reaction, Why::NoFaster));
    pump(&mut net);
    assert_eq!(place(&net), before);
    let told = |event: &Event| {
        matches!(event, Event::ReactionUndone { flow: FLOW, why: Why::NoFaster, .. })
    };
    assert_eq!(net.seen(told), 1);
}

#[test]
fn without_feedback_verdicts_change_nothing() {
    let mut net = net(Mode::None);
    let before = place(&net);
    react(&mut net);
    assert_eq!(place(&net), before);
}
