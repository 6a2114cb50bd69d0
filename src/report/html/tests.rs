//! The page as a whole: well-formed, self-contained, safe with any name, complete.

use super::*;
use crate::report::demo::{Limit, Packets, Restart, Straggler};
use crate::report::timeline::{Kind, TimelineItem};
use crate::report::trace::{FlowPlan, IterationTrace, JobTrace, LinkTrace, PlanTrace, QueueDelay};
use std::collections::BTreeMap;

const NASTY: &str = "<b>&\"'</script><!--";

fn row(name: &str) -> Row {
    Row {
        name: name.to_owned(),
        comm_ms_mean: 150.0,
        comm_ms_per_job: BTreeMap::from([(NASTY.to_owned(), 150.0)]),
        gpu_utilisation: 0.5,
        packets: Packets::default(),
        forced_flips: 0,
        switch_passes: 0,
        entries_written: 1,
        telemetry: crate::report::demo::Telemetry::default(),
        stragglers: vec![Straggler {
            job: NASTY.to_owned(),
            flow: 3,
            link: Some(NASTY.to_owned()),
            slow_at_ms: Some(1.0),
            flagged_at_ms: 2.0,
            raised_at_ms: None,
            kept: Some(true),
            evidence: NASTY.to_owned(),
        }],
        restarts: vec![Restart {
            job: NASTY.to_owned(),
            cause: NASTY.to_owned(),
            iterations_lost: 1,
            duration_ms: Some(30.0),
        }],
    }
}

fn report(policies: Vec<Row>) -> Report {
    Report {
        seed: 3,
        source: "packet",
        packet_scale: 400.0,
        scenario: NASTY.to_owned(),
        policies,
        contention_free: Limit {
            comm_ms_mean: 100.0,
            comm_ms_per_job: BTreeMap::from([(NASTY.to_owned(), 100.0)]),
            gpu_utilisation: 0.8,
        },
        switches: 8,
        entries_written: 1,
    }
}

fn plan(generation: u64, path: &str) -> PlanTrace {
    let flow = |flow, path: &str| FlowPlan {
        flow,
        job: NASTY.to_owned(),
        from: NASTY.to_owned(),
        to: "h2".to_owned(),
        path: path.to_owned(),
        queue: 3,
    };
    let mut flows = vec![flow(0, path), flow(1, "same")];
    if generation == 1 {
        flows.push(flow(2, "gone"));
    }
    PlanTrace { at_ms: 12.0, generation, flows }
}

fn trace(policy: &str) -> PolicyTrace {
    let item = |at_ms, kind| TimelineItem {
        at_ms,
        kind,
        what: NASTY.to_owned(),
        detail: NASTY.to_owned(),
    };
    PolicyTrace {
        policy: policy.to_owned(),
        duration_ms: 3000.0,
        bucket_ms: 16.0,
        links: vec![
            LinkTrace {
                from: NASTY.to_owned(),
                to: "spine1".to_owned(),
                at_host: false,
                share: vec![0.5; 188],
                mean: 0.5,
            },
            LinkTrace { from: "h1".to_owned(), at_host: true, ..LinkTrace::default() },
        ],
        jobs: vec![JobTrace {
            name: NASTY.to_owned(),
            alone_ms: Some(100.0),
            iterations: vec![
                IterationTrace {
                    start_ms: 0.0,
                    comm_start_ms: 50.0,
                    comm_end_ms: 180.0,
                    end_ms: 180.0
                };
                700
            ],
        }],
        queues: vec![
            QueueDelay::default(),
            QueueDelay {
                queue: 1,
                packets: 9,
                p50_us: 3.0,
                p90_us: 4.0,
                p99_us: 5.0,
                p999_us: 6.0,
                max_us: 7e9,
            },
        ],
        plans: vec![plan(1, NASTY), plan(2, "leaf1 spine2 leaf3")],
        plans_left_out: 2,
        timeline: vec![item(-1.0, Kind::Plan), item(2.0, Kind::Scenario), item(2.5, Kind::Other)],
    }
}

fn nasty() -> String {
    let about = About {
        command: format!("ringpath demo --scenario {NASTY}"),
        facts: vec![(NASTY.to_owned(), NASTY.to_owned())],
        versions: NASTY.to_owned(),
    };
    page(&report(vec![row(NASTY), row("joint")]), &[trace(NASTY), trace("joint")], &about)
}

/// Elements that have no end tag.
const VOID: [&str; 2] = ["meta", "br"];

/// Reads tags as a strict parser does: every start has its end, in order; attributes are quoted; text holds no `<` or bare `&`.
/// Content of `style` and `script` is skipped. Returns the tags seen.
fn check(page: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    while let Some(at) = rest.find('<') {
        entities(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(end) = rest.strip_prefix('/') {
            let (name, after) = end.split_once('>').expect("an end tag");
            assert_eq!(open.pop(), Some(name), "before {}", &after[..after.len().min(80)]);
            rest = after;
            continue;
        }
        let name_end = rest.find([' ', '>', '/']).expect("a tag");
        let (name, after) = rest.split_at(name_end);
        assert!(!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        let (after, empty) = attributes(after);
        seen.push(name.to_owned());
        rest = after;
        if name == "style" || name == "script" {
            let end = format!("</{name}>");
            let at = rest.find(&end).expect("its end");
            rest = &rest[at + end.len()..];
        } else if !empty && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?} {rest}");
    seen
}

fn attributes(mut rest: &str) -> (&str, bool) {
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("/>") {
            return (after, true);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (after, false);
        }
        let (name, value) = rest.split_once("=\"").expect("a quoted attribute");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "attribute {name}");
        let (value, after) = value.split_once('"').expect("the end of a value");
        assert!(!value.contains(['<', '>']), "{name}={value}");
        entities(value);
        rest = after;
    }
}

fn entities(text: &str) {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|entity| text[at..].starts_with(entity)), "{}", &text[at..]);
    }
}

#[test]
fn the_page_is_well_formed_whatever_things_are_called() {
    let page = nasty();
    let seen = check(&page);
    assert!(!page.contains("<b>&") && !page.contains("<!--"), "a name became a tag");
    assert_eq!(seen.iter().filter(|tag| *tag == "script").count(), 1);
    for tag in ["nav", "section", "svg", "table", "details", "desc", "title"] {
        assert!(seen.iter().any(|found| found == tag), "{tag} is missing");
    }
}

#[test]
fn the_page_needs_nothing_from_anywhere() {
    let page = nasty();
    for part in ["http", "//cdn", "<link", "<img", "src=", "@import", "url(", "<iframe", "fetch("] {
        assert!(!page.contains(part), "{part}");
    }
}

#[test]
fn every_figure_has_a_title_and_a_description_of_its_own() {
    let page = nasty();
    let figures: Vec<&str> = page.split("role=\"img\" aria-labelledby=\"").skip(1).collect();
    assert_eq!(figures.len(), 2 + 2 * 4, "two for all, four per policy");
    let mut ids: Vec<&str> = figures.iter().map(|rest| rest.split('"').next().unwrap()).collect();
    for (id, figure) in ids.iter().zip(&figures) {
        let (title, desc) = id.split_once(' ').unwrap();
        assert!(figure.contains(&format!("<title id=\"{title}\">")), "{id}");
        assert!(figure.contains(&format!("<desc id=\"{desc}\">")), "{id}");
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), figures.len(), "ids are not unique");
}

#[test]
fn changed_cells_are_marked_and_unchanged_flows_are_not_listed_as_changed() {
    let page = page(&report(vec![row("joint")]), &[trace("joint")], &About::default());
    let title = "Plan 2 at 12.0 ms: 1 of 2 flows changed, 1 their path, 0 their queue; ";
    assert!(page.contains(title) && page.contains("left with 1 flows"));
    assert_eq!(page.matches("class=\"path chg\">leaf1 spine2 leaf3<").count(), 1);
    assert_eq!(page.matches("chg\">").count(), 1, "the queue stayed");
    assert!(page.contains("2 later plans are not shown"));
}

#[test]
fn marks_in_charts_are_the_letters_of_the_timeline() {
    let page = page(&report(vec![row("joint")]), &[trace("joint")], &About::default());
    // Before the first plan, and of kinds that change nothing, there is no letter.
    assert_eq!(page.matches("<tr><th>a</th>").count(), 1);
    assert_eq!(page.matches("<tr><th></th>").count(), 1 + 2, "one is the table's head");
    assert_eq!(page.matches(">a</text>").count(), 3, "two heat maps and one job");
}

#[test]
fn a_report_without_policies_traces_or_packets_still_opens() {
    check(&page(&report(Vec::new()), &[], &About::default()));
    check(&page(&report(vec![row("joint")]), &[], &About::default()));
    let empty = PolicyTrace { policy: "joint".to_owned(), ..PolicyTrace::default() };
    check(&page(&report(vec![row("joint")]), &[empty], &About::default()));
}
