//! The plans of a run: the first in full, and what each later one changed.
//!
//! In: plans in order. Out: tables, changed cells marked by an arrow and a colour. Must not know policies.

use super::text::{Esc, Short};
use crate::report::trace::{FlowPlan, PlanChange, PlanTrace, PolicyTrace, changes};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Re-plans shown; the rest is counted.
const MAX_PLANS: usize = 16;
/// Rows of one table; the rest is counted.
const MAX_ROWS: usize = 256;

pub(super) fn tables(out: &mut String, trace: &PolicyTrace) {
    out.push_str("<h3>Plans</h3>");
    let Some(first) = trace.plans.first() else {
        out.push_str("<p>No plan was made.</p>");
        return;
    };
    let mut first_change = true;
    for pair in trace.plans.windows(2).take(MAX_PLANS) {
        if let [before, after] = pair {
            change(out, before, after, first_change);
            first_change = false;
        }
    }
    let shown = trace.plans.len().min(MAX_PLANS + 1);
    let more = (trace.plans.len() - shown) as u64 + trace.plans_left_out;
    if more > 0 {
        let _ = write!(out, "<p class=\"soft\">{more} later plans are not shown.</p>");
    }
    if trace.plans.len() == 1 {
        out.push_str("<p>The first plan stayed in force to the end.</p>");
    }
    let _ = write!(
        out,
        "<details><summary>Plan {}, the first: all {} flows</summary><div class=\"scroll\"><table><thead><tr><th>job</th><th>flow</th>\
         <th>path</th><th class=\"n\">queue</th></tr></thead><tbody>",
        first.generation,
        first.flows.len()
    );
    for flow in first.flows.iter().take(MAX_ROWS) {
        ends(out, flow);
        let _ = write!(
            out,
            "<td class=\"path\">{}</td><td class=\"n\">{}</td></tr>",
            Esc(&flow.path),
            flow.queue
        );
    }
    out.push_str("</tbody></table></div>");
    rest(out, first.flows.len());
    out.push_str("</details>");
}

fn ends(out: &mut String, flow: &FlowPlan) {
    let _ = write!(
        out,
        "<tr><td>{}</td><td>{} \u{2192} {}</td>",
        Esc(&flow.job),
        Esc(&flow.from),
        Esc(&flow.to)
    );
}

fn rest(out: &mut String, rows: usize) {
    if rows > MAX_ROWS {
        let _ = write!(out, "<p class=\"soft\">{} more flows are not shown.</p>", rows - MAX_ROWS);
    }
}

/// How many flows of which jobs left, in words; empty if none did.
fn gone(found: &[PlanChange<'_>]) -> String {
    let mut jobs: BTreeMap<&str, usize> = BTreeMap::new();
    for flow in found.iter().filter(|change| change.after.is_none()) {
        *jobs.entry(flow.before.map_or("", |flow| flow.job.as_str())).or_default() += 1;
    }
    let jobs: Vec<String> =
        jobs.iter().map(|(job, flows)| format!("{job} left with {flows} flows")).collect();
    jobs.join(", ")
}

fn change(out: &mut String, before: &PlanTrace, after: &PlanTrace, open: bool) {
    let mut found = changes(before, after);
    let gone = gone(&found);
    found.retain(|change| change.after.is_some());
    let moved = found.iter().filter(|change| change.path()).count();
    let requeued = found.iter().filter(|change| change.queue()).count();
    let title = format!(
        "Plan {} at {} ms: {} of {} flows changed, {moved} their path, {requeued} their queue{}{gone}",
        after.generation,
        Short(after.at_ms),
        found.len(),
        after.flows.len(),
        if gone.is_empty() { "" } else { "; " }
    );
    if found.is_empty() {
        let _ = write!(out, "<p class=\"plan\">{}</p>", Esc(&title));
        return;
    }
    let _ = write!(
        out,
        "<details{}><summary>{}</summary><div class=\"scroll\"><table><thead><tr><th>job</th><th>flow</th><th>path under plan {2}</th>\
         <th>path under plan {3}</th><th class=\"n\">queue under {2}</th><th class=\"n\">under {3}</th></tr></thead><tbody>",
        if open { " open=\"\"" } else { "" },
        Esc(&title),
        before.generation,
        after.generation
    );
    for change in found.iter().take(MAX_ROWS) {
        row(out, change);
    }
    out.push_str("</tbody></table></div>");
    rest(out, found.len());
    out.push_str("</details>");
}

fn row(out: &mut String, change: &PlanChange<'_>) {
    let Some(flow) = change.before.or(change.after) else { return };
    ends(out, flow);
    let path =
        |flow: Option<&FlowPlan>| flow.map_or("\u{2013}".to_owned(), |flow| flow.path.clone());
    let queue =
        |flow: Option<&FlowPlan>| flow.map_or("\u{2013}".to_owned(), |flow| flow.queue.to_string());
    let mark = |changed| if changed { " chg" } else { "" };
    let _ = write!(
        out,
        "<td class=\"path\">{}</td><td class=\"path{}\">{}</td><td class=\"n\">{}</td><td class=\"n{}\">{}</td></tr>",
        Esc(&path(change.before)),
        mark(change.path()),
        Esc(&path(change.after)),
        queue(change.before),
        mark(change.queue()),
        queue(change.after)
    );
}
