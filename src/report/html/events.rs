//! What happened: the timeline, stragglers, restarts.
//!
//! In: timeline items, rows of the JSON. Out: tables, and the letters by which charts point at them. Must not know who reported it.

use super::chart::{Mark, letters};
use super::text::Esc;
use crate::report::demo::{Restart, Row, Straggler};
use crate::report::timeline::{Kind, TimelineItem};
use crate::report::trace::PolicyTrace;
use std::fmt::Write as _;

/// Rows of the timeline; the rest is counted.
const MAX_ROWS: usize = 300;

/// Kinds that charts point at: what changes the fabric or the plan.
fn is_marked(item: &TimelineItem) -> bool {
    let kinds = [Kind::Straggler, Kind::Restart, Kind::Scenario, Kind::Switch, Kind::Plan];
    item.at_ms > 0.0 && kinds.contains(&item.kind)
}

/// The marks of a timeline, in its order.
pub(super) fn marked(timeline: &[TimelineItem]) -> Vec<Mark> {
    letters(timeline.iter().filter(|item| is_marked(item)).map(|item| item.at_ms))
}

pub(super) fn tables(out: &mut String, row: &Row, trace: &PolicyTrace, marks: &[Mark]) {
    out.push_str("<h3>Stragglers and restarts</h3>");
    if row.stragglers.is_empty() && row.restarts.is_empty() {
        out.push_str("<p>No flow was flagged, and no job started again.</p>");
    }
    if !row.stragglers.is_empty() {
        stragglers(out, &row.stragglers);
    }
    if !row.restarts.is_empty() {
        restarts(out, &row.restarts);
    }
    timeline(out, &trace.timeline, marks);
}

fn timeline(out: &mut String, items: &[TimelineItem], marks: &[Mark]) {
    out.push_str("<h3>Timeline</h3>");
    if items.is_empty() {
        out.push_str("<p>Nothing happened.</p>");
        return;
    }
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th></th><th class=\"n\">ms</th><th>kind</th><th>what</th><th>detail</th></tr></thead>\
         <tbody>",
    );
    let mut marks = marks.iter();
    for item in items.iter().take(MAX_ROWS) {
        let letter = if is_marked(item) { marks.next().map(|mark| mark.letter) } else { None };
        let (class, letter) =
            letter.map_or(("tag", String::new()), |letter| ("tag k", letter.to_string()));
        let _ = write!(
            out,
            "<tr><th>{letter}</th><td class=\"n\">{:.1}</td><td><span class=\"{class}\">{}</span></td><td>{}</td><td>{}</td></tr>",
            item.at_ms,
            item.kind.word(),
            Esc(&item.what),
            Esc(&item.detail)
        );
    }
    out.push_str(
        "</tbody></table></div><p class=\"soft\">Milliseconds since the first plan was in force.",
    );
    if items.len() > MAX_ROWS {
        let _ = write!(out, " {} later items are not shown.", items.len() - MAX_ROWS);
    }
    out.push_str("</p>");
}

fn ms(value: Option<f64>) -> String {
    value.map_or("\u{2013}".to_owned(), |value| format!("{value:.1}"))
}

fn stragglers(out: &mut String, stragglers: &[Straggler]) {
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>job</th><th>flow</th><th>link</th><th class=\"n\">slow at ms</th><th \
         class=\"n\">flagged</th><th class=\"n\">helped</th><th>kept</th><th>evidence</th></tr></thead><tbody>",
    );
    for straggler in stragglers.iter().take(MAX_ROWS) {
        let kept = match straggler.kept {
            Some(true) => "yes",
            Some(false) => "undone",
            None => "\u{2013}",
        };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1}</td><td class=\"n\">{}</td><td>{kept}</td>\
             <td>{}</td></tr>",
            Esc(&straggler.job),
            straggler.flow,
            Esc(straggler.link.as_deref().unwrap_or("\u{2013}")),
            ms(straggler.slow_at_ms),
            straggler.flagged_at_ms,
            ms(straggler.raised_at_ms),
            Esc(&straggler.evidence)
        );
    }
    out.push_str("</tbody></table></div>");
}

fn restarts(out: &mut String, restarts: &[Restart]) {
    out.push_str(
        "<div class=\"scroll\"><table><thead><tr><th>job</th><th>cause</th><th class=\"n\">iterations lost</th><th class=\"n\">took \
         ms</th></tr></thead><tbody>",
    );
    for restart in restarts.iter().take(MAX_ROWS) {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            Esc(&restart.job),
            Esc(&restart.cause),
            restart.iterations_lost,
            ms(restart.duration_ms)
        );
    }
    out.push_str("</tbody></table></div>");
}
