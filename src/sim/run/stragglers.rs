//! What the controller found slow and did about it, as a list.
//!
//! In: the controller's notices, what the scenario slowed down. Out: one [`Straggler`] per verdict. Must not judge.

use super::assemble::Facts;
use crate::controller::messages::Event as Notice;
use crate::id::{FlowId, JobId, LinkId};
use crate::sim::wire::Wire;
use crate::sim::world::World;
use crate::straggler::{Evidence, Kind};
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// One flow that was found to hold its ring up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Straggler {
    /// The flow's job, by name.
    pub job: String,
    /// The flow's number.
    pub flow: u32,
    /// `network`, `compute` or `unknown`.
    pub cause: Kind,
    /// The link that is suspected, `from-to`; where several are, the one that the scenario slowed down, else the first.
    pub link: Option<String>,
    /// When the scenario slowed that link down, milliseconds after the first plan was installed.
    pub slow_at_ms: Option<f64>,
    /// When the flow was flagged, on the same clock.
    pub flagged_at_ms: f64,
    /// When it was first raised or rerouted for that; `None` if it was not.
    pub raised_at_ms: Option<f64>,
    /// Whether later looks confirmed what was done last; `None` if nothing was, or the run or a new plan ended the trial.
    pub kept: Option<bool>,
    /// What the verdict rests on, in words.
    pub evidence: String,
}

/// The verdicts of a run in the order in which they were reached.
pub fn stragglers<W: Wire>(facts: &Facts, world: &World<W>) -> Vec<Straggler> {
    let origin = world.origin().unwrap_or_default();
    let ms = |at: Time| (at - origin).as_secs_f64() * 1e3;
    let mut list: Vec<Straggler> = Vec::new();
    for (at, notice) in &world.notices {
        let latest = |list: &mut Vec<Straggler>, flow: FlowId, change: &dyn Fn(&mut Straggler)| {
            if let Some(straggler) = list.iter_mut().rev().find(|known| known.flow == flow.0) {
                change(straggler);
            }
        };
        match notice {
            Notice::StragglerFlagged { flow, job, kind, evidence } => {
                let (link, slow_at) = suspected(facts, world, origin, (*at, evidence));
                list.push(Straggler {
                    job: job_name(world, *job),
                    flow: flow.0,
                    cause: *kind,
                    link: link.map(|link| link_name(world, link)),
                    slow_at_ms: slow_at.map(ms),
                    flagged_at_ms: ms(*at),
                    raised_at_ms: None,
                    kept: None,
                    evidence: words(*kind, evidence),
                });
            }
            Notice::StragglerRaised { flow, .. } | Notice::StragglerRerouted { flow, .. } => {
                latest(&mut list, *flow, &|known| {
                    known.raised_at_ms.get_or_insert(ms(*at));
                });
            }
            Notice::ReactionKept { flow, .. } => {
                latest(&mut list, *flow, &|known| known.kept = Some(true));
            }
            Notice::ReactionUndone { flow, .. } => {
                latest(&mut list, *flow, &|known| known.kept = Some(false));
            }
            _ => {}
        }
    }
    list
}

/// The suspect that was slowed down last, and when; else the first suspect.
fn suspected<W: Wire>(
    facts: &Facts,
    world: &World<W>,
    origin: Time,
    (at, evidence): (Time, &Evidence),
) -> (Option<LinkId>, Option<Time>) {
    let suspects = || evidence.suspects.iter().map(|suspect| suspect.link);
    for (slowed, cable) in facts.slowed.iter().rev().filter(|(slowed, _)| origin + *slowed <= at) {
        let reverse = world.topology.reverse(*cable);
        if let Some(link) = suspects().find(|link| *link == *cable || *link == reverse) {
            return (Some(link), Some(origin + *slowed));
        }
    }
    (suspects().next(), None)
}

fn job_name<W: Wire>(world: &World<W>, job: JobId) -> String {
    world.jobs().get(job.index()).map_or_else(|| job.to_string(), |job| job.name.clone())
}

fn link_name<W: Wire>(world: &World<W>, link: LinkId) -> String {
    let link = world.topology.link(link);
    format!("{}-{}", world.topology.node(link.from).name, world.topology.node(link.to).name)
}

fn words(kind: Kind, evidence: &Evidence) -> String {
    let Evidence { progress, share, active_s, packets, looks, compute, .. } = evidence;
    let wait = evidence.wait_s * 1e3;
    match kind {
        Kind::Compute => {
            format!("computes {compute:.2} times as long as its ring, {looks} reports in a row")
        }
        Kind::Network => format!(
            "progress {progress:.2} of plan, limited by the network for {share:.2} of {active_s:.3} s active, {packets} \
             packets, mean wait {wait:.2} ms, {looks} looks in a row"
        ),
        Kind::Unknown => format!(
            "progress {progress:.2} of plan on empty paths in {active_s:.3} s active, {packets} packets, {looks} looks in a row"
        ),
    }
}
