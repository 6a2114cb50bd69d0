//! Iteration times of every job.
//!
//! In: times of iterations, the contention-free time. Out: one small chart per job. Must not know why an iteration was slow.

use super::chart::{self, Axis, Mark};
use super::text::{C, Esc, Short};
use crate::report::trace::{IterationTrace, JobTrace, PolicyTrace};
use std::fmt::Write as _;

/// Iterations drawn per job; of more, every second, third ... is drawn.
const MAX_POINTS: usize = 300;
/// Jobs drawn; a page with more has no reader.
const MAX_JOBS: usize = 48;
const SIZE: (f64, f64) = (350.0, 178.0);
const LEFT: f64 = 44.0;
const RIGHT: f64 = 344.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 154.0;

pub(super) fn figure(out: &mut String, number: usize, trace: &PolicyTrace, marks: &[Mark]) {
    let _ = write!(
        out,
        "<h3>Iteration times per job</h3><div class=\"legend\"><span><i style=\"--c:var(--s{0})\"></i>communication</span><span><i \
         class=\"dash\" style=\"--c:var(--ink)\"></i>communication with the fabric to itself</span><span><i \
         style=\"--c:var(--soft)\"></i>whole iteration, compute included</span></div><div class=\"many\">",
        number % chart::SERIES
    );
    for (place, job) in trace.jobs.iter().take(MAX_JOBS).enumerate() {
        panel(out, (number, place), (trace, job), marks);
    }
    out.push_str("</div>");
    let left_out = trace.jobs.len().saturating_sub(MAX_JOBS);
    if left_out > 0 {
        let _ = write!(out, "<p class=\"soft\">{left_out} more jobs are not drawn.</p>");
    }
}

fn comm(iteration: &IterationTrace) -> f64 {
    iteration.comm_end_ms - iteration.comm_start_ms
}

fn whole(iteration: &IterationTrace) -> f64 {
    iteration.end_ms - iteration.start_ms
}

/// Mean over iterations 2 and on, as in the table; of a single iteration that one.
fn mean(job: &JobTrace) -> Option<f64> {
    let counted = if job.iterations.len() > 1 { &job.iterations[1..] } else { &job.iterations };
    let sum: f64 = counted.iter().map(comm).sum();
    (!counted.is_empty()).then(|| sum / counted.len() as f64)
}

fn caption(job: &JobTrace) -> String {
    match (mean(job), job.alone_ms.filter(|alone| *alone > 0.0)) {
        (None, _) => "no iteration was finished".to_owned(),
        (Some(mean), None) => format!("{} ms", Short(mean)),
        (Some(mean), Some(alone)) => {
            format!("{} ms, {:.2} \u{d7} alone ({} ms)", Short(mean), mean / alone, Short(alone))
        }
    }
}

fn panel(
    out: &mut String,
    (number, place): (usize, usize),
    (trace, job): (&PolicyTrace, &JobTrace),
    marks: &[Mark],
) {
    let caption = caption(job);
    let _ = write!(
        out,
        "<figure><h4>{}</h4><figcaption>{}</figcaption>",
        Esc(&job.name),
        Esc(&caption)
    );
    let step = job.iterations.len().div_ceil(MAX_POINTS).max(1);
    let points: Vec<(usize, &IterationTrace)> =
        job.iterations.iter().enumerate().step_by(step).collect();
    let highest = points.iter().map(|(_, iteration)| comm(iteration).max(whole(iteration)));
    let high = highest.fold(job.alone_ms.unwrap_or(0.0), f64::max) * 1.06;
    let x = Axis { low: 0.0, high: trace.duration_ms, from: LEFT, to: RIGHT };
    let y = Axis { low: 0.0, high, from: BOTTOM, to: TOP };
    let title = format!("Iterations of {} under {}", job.name, trace.policy);
    let desc = format!("Milliseconds per iteration over time. Communication: {caption}.");
    chart::open(out, &format!("i{number}-{place}"), SIZE, (&title, &desc), "");
    let _ = write!(out, "<text class=\"q sm e\" x=\"{}\" y=\"9\">ms</text>", C(LEFT - 6.0));
    chart::y_axis(out, y, &chart::ticks(high, 4), (LEFT, RIGHT));
    let seconds = chart::ticks(trace.duration_ms / 1e3, 4);
    let ticks: Vec<(f64, String)> =
        seconds.iter().map(|s| (s * 1e3, format!("{} s", chart::label(*s)))).collect();
    chart::x_axis(out, x, &ticks, (BOTTOM, BOTTOM + 3.0));
    chart::draw_marks(out, x, marks, (TOP - 4.0, BOTTOM));
    line(out, &points, (x, y), ("all", ""), whole);
    let colour = format!(" style=\"stroke:var(--s{})\"", number % chart::SERIES);
    line(out, &points, (x, y), ("ln", &colour), comm);
    if let Some(alone) = job.alone_ms {
        let _ = write!(out, "<path class=\"limit\" d=\"M{LEFT} {}H{RIGHT}\"/>", C(y.at(alone)));
    }
    for (index, iteration) in &points {
        let at = (x.at(iteration.start_ms), y.at(comm(iteration)));
        let tip = format!(
            "iteration {} at {:.2} s: {} ms, whole {} ms",
            index + 1,
            iteration.start_ms / 1e3,
            Short(comm(iteration)),
            Short(whole(iteration))
        );
        let _ = write!(
            out,
            "<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.7\" style=\"fill:var(--s{})\"><title>{}</title></circle>",
            C(at.0),
            C(at.1),
            number % chart::SERIES,
            Esc(&tip)
        );
    }
    out.push_str("</svg>");
    if step > 1 {
        let _ = write!(out, "<figcaption>One of {step} iterations is drawn.</figcaption>");
    }
    out.push_str("</figure>");
}

fn line(
    out: &mut String,
    points: &[(usize, &IterationTrace)],
    (x, y): (Axis, Axis),
    (class, style): (&str, &str),
    value: fn(&IterationTrace) -> f64,
) {
    let mut path = String::new();
    for (_, iteration) in points {
        let letter = if path.is_empty() { 'M' } else { 'L' };
        let _ =
            write!(path, "{letter}{} {}", C(x.at(iteration.start_ms)), C(y.at(value(iteration))));
    }
    if !path.is_empty() {
        let _ = write!(out, "<path class=\"{class}\"{style} d=\"{path}\"/>");
    }
}
