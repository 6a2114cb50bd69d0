//! What happened and when, for the terminal and for the page.
//!
//! In: [`TimelineItem`]s of one or more policies. Out: a list of few lines, the most important first to be kept. Must not know who
//! reported an item or why.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines that the terminal shows, headline included: what fits on a screen below the table.
pub const MAX_LINES: usize = 25;
/// Policies named in one line; more are counted.
const MAX_NAMED: usize = 2;

/// What sort of thing happened. In order of importance, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A flow fell behind, was helped, recovered.
    Straggler,
    /// A job started again from an earlier step.
    Restart,
    /// The scenario changed the fabric or the jobs.
    Scenario,
    /// A switch was lost, came back, or is somebody else's.
    Switch,
    /// Something was refused.
    Refused,
    /// The controller heard of a link or a host.
    Link,
    /// A plan was made.
    Plan,
    /// A job started or left.
    Job,
    /// A change could not wait for a silence.
    Forced,
    /// A plan is in force.
    Installed,
    /// Anything else that the controller told.
    Other,
}

impl Kind {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Straggler => "straggler",
            Self::Restart => "restart",
            Self::Scenario => "scenario",
            Self::Switch => "switch",
            Self::Link => "link",
            Self::Refused => "refused",
            Self::Job => "job",
            Self::Plan => "plan",
            Self::Forced => "forced",
            Self::Installed => "installed",
            Self::Other => "other",
        }
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineItem {
    /// Milliseconds since the first plan was in force; before it, negative.
    pub at_ms: f64,
    /// What sort of thing.
    pub kind: Kind,
    /// What happened, in a few words.
    pub what: String,
    /// More of it; may be empty.
    pub detail: String,
}

/// Puts items in order of time and removes what is told twice: both directions of a cable, both legs of a flow.
pub fn settle(items: &mut Vec<TimelineItem>) {
    items.sort_by(|a, b| {
        a.at_ms.total_cmp(&b.at_ms).then(a.kind.cmp(&b.kind)).then_with(|| a.what.cmp(&b.what))
    });
    items.dedup_by(|a, b| {
        (a.at_ms.to_bits(), a.kind, &a.what, &a.detail)
            == (b.at_ms.to_bits(), b.kind, &b.what, &b.detail)
    });
}

/// Items of all policies that read the same at the same tenth of a millisecond.
struct Line<'a> {
    tenths: i64,
    item: &'a TimelineItem,
    /// Policies in which it happened, with how often.
    who: BTreeMap<usize, usize>,
}

/// The timeline of several policies as text of at most [`MAX_LINES`] lines; empty if nothing happened. When there is more, each kind keeps
/// its first lines in turn, so that many of one kind do not hide the others, and the last line says how many were left out.
#[must_use]
pub fn text(policies: &[(&str, &[TimelineItem])]) -> String {
    let mut lines = merge(policies);
    if lines.is_empty() {
        return String::new();
    }
    let room = MAX_LINES - 1;
    let mut left_out = 0;
    if lines.len() > room {
        // What happened everywhere comes first, then what happened in the policy named last: the demo names ours last.
        let rank = |line: &Line<'_>| (line.who.len(), line.who.keys().next_back().copied());
        lines.sort_by_key(|line| (line.item.kind, std::cmp::Reverse(rank(line)), line.tenths));
        let mut seen: BTreeMap<Kind, usize> = BTreeMap::new();
        let mut turns: Vec<(usize, Line<'_>)> = Vec::with_capacity(lines.len());
        for line in lines {
            let turn = seen.entry(line.item.kind).or_default();
            turns.push((*turn, line));
            *turn += 1;
        }
        turns.sort_by_key(|(turn, line)| (*turn, line.item.kind));
        left_out = turns.len() - (room - 1);
        turns.truncate(room - 1);
        lines = turns.into_iter().map(|(_, line)| line).collect();
    }
    lines.sort_by_key(|line| (line.tenths, line.item.kind));
    let names: Vec<&str> = policies.iter().map(|(name, _)| *name).collect();
    let who: Vec<String> = lines.iter().map(|line| named(line, &names)).collect();
    let width = who.iter().map(|who| who.chars().count()).max().unwrap_or(0);
    let mut out = String::from("timeline, ms since the first plan was in force\n");
    for (line, who) in lines.iter().zip(&who) {
        let TimelineItem { at_ms, kind, what, detail } = line.item;
        let colon = if detail.is_empty() { "" } else { ": " };
        // Writing into a string cannot fail.
        let _ =
            writeln!(out, "{at_ms:>10.1}  {who:width$}  {:9}  {what}{colon}{detail}", kind.word());
    }
    if left_out > 0 {
        let _ = writeln!(out, "{:>10}  {left_out} more, less important", "...");
    }
    out
}

fn merge<'a>(policies: &[(&str, &'a [TimelineItem])]) -> Vec<Line<'a>> {
    let mut lines: BTreeMap<(i64, Kind, &str, &str), Line<'a>> = BTreeMap::new();
    for (policy, (_, items)) in policies.iter().enumerate() {
        for item in *items {
            let tenths = (item.at_ms * 10.0).round() as i64;
            let key = (tenths, item.kind, item.what.as_str(), item.detail.as_str());
            let line = lines.entry(key).or_insert(Line { tenths, item, who: BTreeMap::new() });
            *line.who.entry(policy).or_default() += 1;
        }
    }
    lines.into_values().collect()
}

fn named(line: &Line<'_>, names: &[&str]) -> String {
    if line.who.len() == names.len() && names.len() > 1 {
        return "all".to_owned();
    }
    if line.who.len() > MAX_NAMED {
        return format!("{} policies", line.who.len());
    }
    let who: Vec<&str> = line.who.keys().map(|policy| names[*policy]).collect();
    who.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(at_ms: f64, kind: Kind, what: &str, detail: &str) -> TimelineItem {
        TimelineItem { at_ms, kind, what: what.into(), detail: detail.into() }
    }

    #[test]
    fn what_happens_in_all_policies_is_one_line_and_what_differs_is_not() {
        let down = item(2511.3, Kind::Scenario, "leaf1-spine2 goes down", "");
        let plan = |flows| item(2512.3, Kind::Plan, "plan 2", flows);
        let a = [down.clone(), plan("5 flows change")];
        let b = [down.clone(), plan("7 flows change")];
        let c = [down, plan("7 flows change")];
        let text = text(&[("crux", &a), ("joint", &b), ("paper", &c)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[1], "    2511.3  all           scenario   leaf1-spine2 goes down");
        assert_eq!(lines[2], "    2512.3  crux          plan       plan 2: 5 flows change");
        assert_eq!(lines[3], "    2512.3  joint, paper  plan       plan 2: 7 flows change");
    }

    #[test]
    fn a_long_timeline_keeps_what_matters_in_order_of_time() {
        let mut items: Vec<TimelineItem> = (0..40)
            .map(|i| item(f64::from(i), Kind::Installed, &format!("plan {i} in force"), ""))
            .collect();
        items.push(item(900.0, Kind::Straggler, "flow 3 falls behind", ""));
        items.push(item(-3.0, Kind::Restart, "bert starts again", ""));
        let text = text(&[("joint", &items)]);
        assert_eq!(text.lines().count(), MAX_LINES);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in\n{text}"));
        assert!(at("bert starts") < at("plan 0 in force"));
        assert!(at("plan 20 in force") < at("flow 3 falls"));
        assert!(text.ends_with("...  19 more, less important\n"), "{text}");
        assert!(!text.contains("plan 39 in force"));
    }

    #[test]
    fn many_of_an_important_kind_do_not_hide_the_others() {
        let mut items: Vec<TimelineItem> = (0..200)
            .map(|i| item(f64::from(i), Kind::Straggler, &format!("flow {i} falls behind"), ""))
            .collect();
        items.push(item(90.5, Kind::Restart, "bert starts again", ""));
        items.extend((0..3).map(|i| item(f64::from(i), Kind::Plan, &format!("plan {i}"), "")));
        let text = text(&[("joint", &items)]);
        assert_eq!(text.lines().count(), MAX_LINES);
        assert!(text.contains("bert starts again") && text.contains("plan 2"), "{text}");
    }

    #[test]
    fn of_one_kind_what_all_policies_share_is_kept_and_then_what_the_last_one_did() {
        let plans = |policy: usize| -> Vec<TimelineItem> {
            let own = (1..=20).map(|i| f64::from(i) * 10.0 + policy as f64);
            own.chain([500.0])
                .map(|at| item(at, Kind::Plan, &format!("plan at {at}"), ""))
                .collect()
        };
        let (first, last) = (plans(1), plans(2));
        let text = text(&[("crux", &first), ("joint", &last)]);
        assert_eq!(text.matches("joint ").count(), 20, "{text}");
        assert_eq!(text.matches("crux ").count(), 2, "{text}");
        assert_eq!(text.matches("all ").count(), 1, "{text}");
    }

    #[test]
    fn nothing_happened_is_no_text() {
        assert_eq!(text(&[("joint", &[])]), "");
    }

    #[test]
    fn both_directions_of_a_cable_are_told_once() {
        let mut items = vec![
            item(2.0, Kind::Link, "a-b is down", ""),
            item(1.0, Kind::Scenario, "a-b goes down", ""),
            item(2.0, Kind::Link, "a-b is down", ""),
        ];
        settle(&mut items);
        assert_eq!(items.iter().map(|item| item.at_ms).collect::<Vec<_>>(), [1.0, 2.0]);
    }
}
