//! The report of `ringpath demo` as one page.
//!
//! In: the figures of [`Report`], one [`PolicyTrace`] per policy, what was run. Out: HTML that opens offline and holds everything it
//! needs: style and a little script are inside, charts are SVG, and without script everything is still there, one policy below the
//! other. The same values give the same bytes. Must not know files, clocks, or how anything was measured.

mod chart;
pub mod evaluation;
mod events;
mod heat;
mod iterations;
mod plans;
mod queues;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use super::demo::{Report, Row};
use super::trace::PolicyTrace;
use chart::SERIES;
use std::fmt::Write as _;
use text::Esc;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// What was run, for the head of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Command that gives this report again.
    pub command: String,
    /// Facts with their names, such as `fabric` and `8 switches`.
    pub facts: Vec<(String, String)>,
    /// Version of the program, and of what it was built with.
    pub versions: String,
}

/// The page.
#[must_use]
pub fn page(report: &Report, traces: &[PolicyTrace], about: &About) -> String {
    let mut out = String::with_capacity(1 << 20);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>Ringpath: {}, seed \
         {}</title>\n<style>{STYLE}</style></head>\n<body><header>",
        Esc(&report.scenario),
        report.seed
    );
    head(&mut out, report, about);
    out.push_str("</header>\n<main>");
    summary::section(&mut out, report);
    navigation(&mut out, report);
    for (number, row) in report.policies.iter().enumerate() {
        policy(
            &mut out,
            report,
            (number, row),
            traces.iter().find(|trace| trace.policy == row.name),
        );
    }
    let _ = write!(
        out,
        "</main>\n<footer><p>Made by {} from packets that went through the P4 switches of the simulation; nothing on this page comes from \
         a model. Rates and message bytes were divided by \u{3c3} = {}: transfers take as long as at full size, but a single packet takes \
         \u{3c3} times as long, so queueing delays are those of this simulation and not of the fabric at full size.</p></footer>\n<div \
         id=\"tip\" role=\"status\"></div>\n<script>{SCRIPT}</script></body></html>\n",
        Esc(&about.versions),
        report.packet_scale
    );
    out
}

fn head(out: &mut String, report: &Report, about: &About) {
    let _ = write!(
        out,
        "<h1>Ringpath: scenario {}</h1><p class=\"soft\">Training jobs on a fabric of {} P4 switches, the same jobs under each policy, packet by \
         packet.</p><dl class=\"facts\">",
        Esc(&report.scenario),
        report.switches
    );
    let own = [
        ("seed".to_owned(), report.seed.to_string()),
        ("\u{3c3}".to_owned(), report.packet_scale.to_string()),
    ];
    for (name, value) in own.iter().chain(&about.facts) {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Esc(name), Esc(value));
    }
    let _ = write!(
        out,
        "<div class=\"wide\"><dt>command</dt><dd><code>{}</code></dd></div></dl>",
        Esc(&about.command)
    );
}

fn navigation(out: &mut String, report: &Report) {
    out.push_str("<nav aria-label=\"Policies\"><span>Policy by policy</span>");
    for (number, row) in report.policies.iter().enumerate() {
        let _ = write!(out, "<a href=\"#p{number}\">{}</a>", Esc(&row.name));
    }
    out.push_str("</nav>");
}

fn policy(
    out: &mut String,
    report: &Report,
    (number, row): (usize, &Row),
    trace: Option<&PolicyTrace>,
) {
    let _ = write!(
        out,
        "\n<section class=\"policy\" id=\"p{number}\" style=\"--c:var(--s{})\"><h2>{}</h2><p class=\"soft\">{:.1} ms communication in the \
         mean over jobs, GPUs used to {:.1} %, {} packets lost, {} reordered.</p>",
        number % SERIES,
        Esc(&row.name),
        row.comm_ms_mean,
        row.gpu_utilisation * 100.0,
        row.packets.dropped.total(),
        row.packets.reordered
    );
    match trace {
        None => out.push_str("<p>This run was not recorded.</p>"),
        Some(trace) => {
            let marked = events::marked(&trace.timeline);
            heat::figure(out, number, trace, &marked);
            iterations::figure(out, number, trace, &marked);
            queues::figure(out, number, trace, report.packet_scale);
            plans::tables(out, trace);
            events::tables(out, row, trace, &marked);
        }
    }
    out.push_str("</section>");
}
