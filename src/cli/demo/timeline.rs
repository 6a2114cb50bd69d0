//! What happened in a run, in words.
//!
//! In: the script's steps and the controller's notices, with names for their numbers. Out: [`TimelineItem`]s in order. Must not decide
//! what is shown where: every item carries its kind, and the report chooses.

use crate::controller::messages::Event as Notice;
use crate::id::{FlowId, HostId, JobId, LinkId, SwitchId};
use crate::plan::path_names;
use crate::report::timeline::{Kind, TimelineItem, settle};
use crate::sim::trace::Recording;
use crate::sim::world::Step;
use crate::time::Time;
use crate::topology::Topology;
use crate::workload::{Flow, Job};
use serde_json::Value;

/// Names for the numbers that notices carry.
pub(super) struct Names<'a> {
    /// The policy that the run was made with.
    pub(super) policy: &'a str,
    /// The fabric.
    pub(super) topology: &'a Topology,
    /// Jobs by id.
    pub(super) jobs: &'a [Job],
    /// Flows by id.
    pub(super) flows: &'a [Flow],
}

impl Names<'_> {
    fn job(&self, job: JobId) -> String {
        self.jobs.get(job.index()).map_or_else(|| format!("job {job}"), |job| job.name.clone())
    }

    fn host(&self, host: HostId) -> &str {
        &self.topology.node(self.topology.host_node(host)).name
    }

    fn switch(&self, switch: SwitchId) -> &str {
        &self.topology.node(self.topology.switch_node(switch)).name
    }

    /// A cable by its two ends, the same for both directions.
    fn cable(&self, link: LinkId) -> String {
        let link = self.topology.link(link.min(self.topology.reverse(link)));
        let name = |node| &self.topology.node(node).name;
        format!("{}-{}", name(link.from), name(link.to))
    }

    fn flow(&self, flow: FlowId) -> String {
        match self.flows.get(flow.index()) {
            Some(known) => {
                let (from, to) = (self.host(known.src), self.host(known.dst));
                format!("flow {flow} ({}, {from} to {to})", self.job(known.job))
            }
            None => format!("flow {flow}"),
        }
    }
}

/// Milliseconds from `origin` to `at`; negative before it.
pub(super) fn ms(origin: Time, at: Time) -> f64 {
    (at.since(origin).as_secs_f64() - origin.since(at).as_secs_f64()) * 1e3
}

/// The timeline of a run.
pub(super) fn timeline(names: &Names<'_>, recording: &Recording) -> Vec<TimelineItem> {
    let item = |at: Time, (kind, what, detail): Told| TimelineItem {
        at_ms: ms(recording.origin, at),
        kind,
        what,
        detail,
    };
    let steps = recording.steps.iter();
    let mut items: Vec<TimelineItem> =
        steps.filter_map(|(at, step)| Some(item(*at, script(names, step)?))).collect();
    let notices = recording.notices.iter();
    items.extend(notices.filter_map(|(at, notice)| Some(item(*at, told(names, notice)?))));
    settle(&mut items);
    items
}

type Told = (Kind, String, String);

fn plain(kind: Kind, what: String) -> Option<Told> {
    Some((kind, what, String::new()))
}

/// What the scenario did.
fn script(names: &Names<'_>, step: &Step) -> Option<Told> {
    let said = |what: String| plain(Kind::Scenario, what);
    match step {
        Step::Start(job) => plain(Kind::Job, format!("{} starts", names.job(*job))),
        Step::Submit(job) => said(format!("{} arrives", names.job(*job))),
        Step::Cancel(job) => said(format!("{} is cancelled", names.job(*job))),
        Step::Cable { link, up: false } => said(format!("{} goes down", names.cable(*link))),
        Step::Cable { link, up: true } => said(format!("{} comes back", names.cable(*link))),
        Step::CableRate { link, share } if *share < 1.0 => {
            said(format!("{} runs at {:.0} % of its rate", names.cable(*link), share * 100.0))
        }
        Step::CableRate { link, .. } => {
            said(format!("{} runs at its full rate", names.cable(*link)))
        }
        Step::LinkNotice { link, up } => {
            let state = if *up { "up" } else { "down" };
            plain(
                Kind::Link,
                format!("the controller hears that {} is {state}", names.cable(*link)),
            )
        }
        Step::Policy(policy) => said(format!("the policy becomes {policy}")),
        Step::Replan => said("a new plan is asked for".to_owned()),
        Step::Move(count) => said(format!("{count} flows are to be moved")),
        Step::Resync(switch) => said(format!("{} is to be read in full", names.switch(*switch))),
        Step::Pace(host, pace) if *pace < 1.0 => {
            said(format!("{} computes at {:.0} % of its speed", names.host(*host), pace * 100.0))
        }
        Step::Pace(host, _) => said(format!("{} computes at full speed", names.host(*host))),
        Step::HostNotice { host, up } => {
            let state = if *up { "is back" } else { "is silent" };
            let what = format!("the controller hears that {} {state}", names.host(*host));
            plain(Kind::Link, what)
        }
        Step::Fail(host) => said(format!("{} fails", names.host(*host))),
        Step::Background { from, to, rate, .. } => Some((
            Kind::Scenario,
            format!("background traffic from {} to {}", names.host(*from), names.host(*to)),
            format!("{rate} at the scale of the simulation"),
        )),
    }
}

/// What the controller told; `None` for the daily round of bringing switches up. What has no words of its own yet goes by its name.
fn told(names: &Names<'_>, notice: &Notice) -> Option<Told> {
    Some(match notice {
        Notice::Primary { .. }
        | Notice::PipelineLoaded { .. }
        | Notice::Read { .. }
        | Notice::Synced { .. }
        | Notice::JobReady { .. }
        | Notice::LabelRemoved { .. } => return None,
        // Nobody need look at it: everything stays where it is.
        Notice::Planned { generation, changed: 0, .. } if *generation > 1 => {
            (Kind::Other, format!("plan {generation} changes nothing"), String::new())
        }
        Notice::Planned { generation, policy, flows, changed, unroutable } => {
            let without = match unroutable {
                0 => String::new(),
                count => format!(", {count} have no live path"),
            };
            let by = if names.policy == policy { String::new() } else { format!(" by {policy}") };
            let detail = if *generation <= 1 {
                format!("{flows} flows{without}")
            } else {
                format!("{changed} of {flows} flows change{without}")
            };
            (Kind::Plan, format!("plan {generation}{by}"), detail)
        }
        Notice::Installed { generation } => {
            (Kind::Installed, format!("plan {generation} is in force"), String::new())
        }
        Notice::FlipForced { flow, .. } => {
            (Kind::Forced, format!("{} moves without waiting", names.flow(*flow)), String::new())
        }
        // The jobs of the first plan are there from the start.
        Notice::JobAccepted { generation, .. } if *generation <= 1 => return None,
        Notice::JobAccepted { job, generation } => (
            Kind::Job,
            format!("{} is accepted", names.job(*job)),
            format!("for plan {generation}"),
        ),
        Notice::JobRemoved { job } => {
            (Kind::Job, format!("{} leaves", names.job(*job)), String::new())
        }
        Notice::JobRefused { job, reason } => {
            (Kind::Refused, format!("{} is refused", names.job(*job)), reason.clone())
        }
        Notice::Rejected { reason } => {
            (Kind::Refused, "a request is rejected".to_owned(), reason.clone())
        }
        Notice::Refused { switch, key, code, message } => {
            let what = format!("{} refuses an update", names.switch(*switch));
            (Kind::Refused, what, format!("{key}: {code}, {message}"))
        }
        Notice::SwitchLost { switch } => {
            (Kind::Switch, format!("{} is out of reach", names.switch(*switch)), String::new())
        }
        Notice::SwitchBack { switch } => {
            (Kind::Switch, format!("{} is back", names.switch(*switch)), String::new())
        }
        Notice::Restarted { switch } => {
            (Kind::Switch, format!("{} has restarted", names.switch(*switch)), String::new())
        }
        Notice::Regrouped { job, generation, ranks, from, cause, .. } => {
            let what = format!("{} goes on with {} hosts", names.job(*job), ranks.len());
            (
                Kind::Restart,
                what,
                format!("{cause}; membership {generation}, from iteration {from}"),
            )
        }
        Notice::JobStopped { job, reason } => {
            (Kind::Restart, format!("{} cannot go on", names.job(*job)), reason.clone())
        }
        other => return reaction(names, other).or_else(|| unnamed(names, other)),
    })
}

/// What was seen of a straggler and done about it.
fn reaction(names: &Names<'_>, notice: &Notice) -> Option<Told> {
    let path = |path| path_names(names.topology, path).join(" ");
    let gain = |gain: f64| match gain > 0.0 {
        true => format!(", should gain {:.1} %", gain * 100.0),
        false => String::new(),
    };
    let (what, detail) = match notice {
        Notice::StragglerFlagged { flow, kind, evidence, .. } => (
            format!("{} is flagged", names.flow(*flow)),
            format!(
                "{}: progress {:.0} %, network-limited {:.0} % of {:.2} s active, {} packets, {} looks",
                format!("{kind:?}").to_lowercase(),
                evidence.progress * 100.0,
                evidence.share * 100.0,
                evidence.active_s,
                evidence.packets,
                evidence.looks
            ),
        ),
        Notice::StragglerRaised { flow, from, to, gain: expected, .. } => (
            format!("{} is raised", names.flow(*flow)),
            format!("queue {from} to {to}{}", gain(*expected)),
        ),
        Notice::StragglerRerouted { flow, from, to, gain: expected, .. } => (
            format!("{} takes another path", names.flow(*flow)),
            format!("{} instead of {}{}", path(to), path(from), gain(*expected)),
        ),
        Notice::ReactionKept { flow, speedup, .. } => (
            format!("{} keeps what it was given", names.flow(*flow)),
            format!("{speedup:.2} times its rate before"),
        ),
        Notice::ReactionUndone { flow, speedup, why, .. } => (
            format!("{} goes back to its plan", names.flow(*flow)),
            format!("{why:?}, {speedup:.2} times its rate before"),
        ),
        _ => return None,
    };
    Some((Kind::Straggler, what, detail))
}

/// A notice by its own name and fields, with names for the numbers among them.
fn unnamed(names: &Names<'_>, notice: &Notice) -> Option<Told> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(notice) else { return None };
    let name = match fields.shift_remove("event") {
        Some(Value::String(name)) => name,
        _ => "notice".to_owned(),
    };
    let kind = if name.contains("straggler") {
        Kind::Straggler
    } else if name.contains("restart") {
        Kind::Restart
    } else {
        Kind::Other
    };
    let field = |(key, value): (&String, &Value)| {
        let number = value.as_u64().and_then(|value| u32::try_from(value).ok());
        match (key.as_str(), number, value) {
            ("job", Some(job), _) => names.job(JobId(job)),
            ("flow", Some(flow), _) => names.flow(FlowId(flow)),
            ("switch", Some(switch), _) if (switch as usize) < names.topology.switch_count() => {
                names.switch(SwitchId(switch)).to_owned()
            }
            ("link", Some(link), _) if (link as usize) < names.topology.links().len() => {
                names.cable(LinkId(link))
            }
            ("host", Some(host), _) if (host as usize) < names.topology.host_count() => {
                names.host(HostId(host)).to_owned()
            }
            (key, _, Value::String(text)) => format!("{key} {text}"),
            (key, _, value) => format!("{key} {value}"),
        }
    };
    let detail: Vec<String> = fields.iter().map(field).collect();
    Some((kind, name.replace('-', " "), detail.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::straggler::Evidence;
    use crate::time::Span;
    use crate::workload::scenario::default_scenario;

    fn recording(steps: Vec<(Time, Step)>, notices: Vec<(Time, Notice)>) -> Recording {
        Recording {
            origin: Time(5_000_000),
            end: Time(9_000_000),
            bucket: Span(1),
            load: Vec::new(),
            rates: Vec::new(),
            waits: Vec::new(),
            flows: Vec::new(),
            iterations: Vec::new(),
            plans: Vec::new(),
            plans_left_out: 0,
            steps,
            notices,
        }
    }

    fn names<'a>(scenario: &'a crate::workload::Scenario, flows: &'a [Flow]) -> Names<'a> {
        Names { policy: "joint", topology: &scenario.topology, jobs: &scenario.jobs, flows }
    }

    #[test]
    fn both_directions_are_one_item_and_times_count_from_the_first_plan() {
        let scenario = default_scenario(0).unwrap();
        let flows = crate::workload::flows(&scenario.topology, &scenario.jobs).unwrap();
        let names = names(&scenario, &flows);
        let link = LinkId(0);
        let notice = |link| Step::LinkNotice { link, up: false };
        let steps = vec![
            (Time(7_000_000), Step::Cable { link, up: false }),
            (Time(8_000_000), notice(link)),
            (Time(8_000_000), notice(scenario.topology.reverse(link))),
        ];
        let planned = Notice::Planned {
            generation: 1,
            policy: "paper".into(),
            flows: 32,
            changed: 32,
            unroutable: 0,
        };
        let items = timeline(&names, &recording(steps, vec![(Time(4_500_000), planned)]));
        let shown: Vec<String> = items
            .iter()
            .map(|item| {
                format!("{} {} {} {}", item.at_ms, item.kind.word(), item.what, item.detail)
            })
            .collect();
        let cable = names.cable(link);
        assert_eq!(
            shown,
            [
                "-0.5 plan plan 1 by paper 32 flows".to_owned(),
                format!("2 scenario {cable} goes down "),
                format!("3 link the controller hears that {cable} is down "),
            ]
        );
    }

    #[test]
    fn a_straggler_is_told_with_its_numbers_and_what_was_done() {
        let scenario = default_scenario(0).unwrap();
        let flows = crate::workload::flows(&scenario.topology, &scenario.jobs).unwrap();
        let names = names(&scenario, &flows);
        let (flow, job) = (FlowId(0), JobId(0));
        let evidence = Evidence { progress: 0.5, share: 0.7, packets: 99, ..Evidence::default() };
        let flagged = Notice::StragglerFlagged {
            flow,
            job,
            kind: crate::straggler::Kind::Network,
            evidence: evidence.clone(),
        };
        let (kind, what, detail) = told(&names, &flagged).unwrap();
        assert_eq!(kind, Kind::Straggler);
        assert!(
            what.starts_with("flow 0 (gpt2-small, h") && what.ends_with("is flagged"),
            "{what}"
        );
        assert!(detail.contains("progress 50 %, network-limited 70 %"), "{detail}");
        let raised = Notice::StragglerRaised { flow, job, from: 1, to: 2, gain: 0.04, evidence };
        let (_, what, detail) = told(&names, &raised).unwrap();
        assert!(what.ends_with("is raised"), "{what}");
        assert_eq!(detail, "queue 1 to 2, should gain 4.0 %");
    }

    #[test]
    fn a_notice_without_words_goes_by_its_name_with_names_for_numbers() {
        let scenario = default_scenario(0).unwrap();
        let flows = crate::workload::flows(&scenario.topology, &scenario.jobs).unwrap();
        let names = names(&scenario, &flows);
        let (_, what, detail) = told(&names, &Notice::Untracked { flow: FlowId(0) }).unwrap();
        assert_eq!(what, "untracked");
        assert!(detail.starts_with("flow 0 (gpt2-small, h"), "{detail}");
        let conflict = Notice::Conflict { switch: SwitchId(1), key: "acl 3".into() };
        let (kind, what, detail) = told(&names, &conflict).unwrap();
        assert_eq!(
            (kind, what.as_str(), detail.as_str()),
            (Kind::Other, "conflict", "leaf2, key acl 3")
        );
        assert_eq!(told(&names, &Notice::Synced { switch: SwitchId(0) }), None);
        let plan = |generation, changed| {
            let policy = "joint".to_owned();
            let notice = Notice::Planned { generation, policy, flows: 5, changed, unroutable: 0 };
            told(&names, &notice).unwrap().0
        };
        assert_eq!((plan(2, 0), plan(2, 1), plan(1, 0)), (Kind::Other, Kind::Plan, Kind::Plan));
    }
}
