//! What charts share: axes, ticks, markers, the frame with title and description.
//!
//! In: numbers. Out: SVG. Must not know what the numbers are.

use super::text::{C, Esc};
use std::fmt::Write as _;

/// Line styles and markers told apart; more series start again from the first.
pub(super) const SERIES: usize = 8;
/// Letters that mark events in charts.
const MAX_MARKS: usize = 26;

/// A linear map from values to places.
#[derive(Clone, Copy)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Axis {
    /// The place of a value; values outside stay at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let span = self.high - self.low;
        let part = if span > 0.0 { ((value - self.low) / span).clamp(0.0, 1.0) } else { 0.0 };
        self.from + part * (self.to - self.from)
    }
}

/// Multiples of 1, 2 or 5 times a power of ten from 0 up to `high`, about `wanted` of them.
pub(super) fn ticks(high: f64, wanted: usize) -> Vec<f64> {
    if !(high.is_finite() && high > 0.0) {
        return vec![0.0];
    }
    let rough = high / wanted.max(1) as f64;
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(high);
    let count = (high / step + 1e-9).floor().min(1000.0) as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

/// A tick's label: no more digits than its step needs.
pub(super) fn label(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Opens a figure's SVG: what a screen reader says first, then what is in it. `extra` are further attributes.
pub(super) fn open(out: &mut String, id: &str, size: (f64, f64), words: (&str, &str), extra: &str) {
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"{extra}><title id=\"{id}-t\">{}</title>\
         <desc id=\"{id}-d\">{}</desc>",
        C(size.0),
        C(size.1),
        Esc(words.0),
        Esc(words.1)
    );
}

/// Horizontal axis with grid lines from `top` to `bottom` and labels below.
pub(super) fn x_axis(
    out: &mut String,
    axis: Axis,
    marks: &[(f64, String)],
    (top, bottom): (f64, f64),
) {
    for (value, text) in marks {
        let x = C(axis.at(*value));
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{x} {}V{}\"/><text class=\"q m\" x=\"{x}\" y=\"{}\">{}</text>",
            C(top),
            C(bottom),
            C(bottom + 15.0),
            Esc(text)
        );
    }
}

/// Vertical axis with grid lines from `left` to `right` and labels at the left.
pub(super) fn y_axis(out: &mut String, axis: Axis, marks: &[f64], (left, right): (f64, f64)) {
    for value in marks {
        let y = axis.at(*value);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{} {}H{}\"/><text class=\"q e\" x=\"{}\" y=\"{}\">{}</text>",
            C(left),
            C(y),
            C(right),
            C(left - 6.0),
            C(y + 4.0),
            label(*value)
        );
    }
}

/// A series' marker: shape and colour both say which, so that neither is needed alone. `tip` is shown on hover.
pub(super) fn marker(out: &mut String, series: usize, (x, y): (f64, f64), r: f64, tip: &str) {
    let (l, t, b, w) = (C(x - r), C(y - r), C(y + r), C(2.0 * r));
    let d = match series % SERIES {
        0 => format!("M{l} {0}a{1} {1} 0 1 0 {w} 0a{1} {1} 0 1 0 -{w} 0z", C(y), C(r)),
        1 => format!("M{l} {t}h{w}v{w}h-{w}z"),
        2 => format!("M{} {t}L{} {b}H{l}z", C(x), C(x + r)),
        3 => format!("M{} {t}L{} {}L{} {b}L{l} {}z", C(x), C(x + r), C(y), C(x), C(y)),
        4 => format!("M{} {b}L{} {t}H{l}z", C(x), C(x + r)),
        5 => {
            let a = r * 0.36;
            let (p, q) = (C(2.0 * a), C(r - a));
            format!("M{} {t}h{p}v{q}h{q}v{p}h-{q}v{q}h-{p}v-{q}h-{q}v-{p}h{q}z", C(x - a))
        }
        6 => format!("M{} {t}H{}L{} {b}H{}z", C(x - r * 0.4), C(x + r * 0.4), C(x + r), C(x - r)),
        _ => format!("M{l} {t}L{} {}L{l} {b}z", C(x + r), C(y)),
    };
    let _ =
        write!(out, "<path class=\"dot\" style=\"fill:var(--s{})\" d=\"{d}\">", series % SERIES);
    if !tip.is_empty() {
        let _ = write!(out, "<title>{}</title>", Esc(tip));
    }
    out.push_str("</path>");
}

/// A row's line across the chart, with its name at the left.
pub(super) fn lane(out: &mut String, y: f64, (left, right): (f64, f64), name: &str) {
    let _ = write!(
        out,
        "<path class=\"axis\" d=\"M{left} {0}H{right}\"/><text class=\"e\" x=\"{1}\" y=\"{2}\">{3}</text>",
        C(y),
        left - 10.0,
        C(y + 4.0),
        Esc(name)
    );
}

/// The dashed line of a limit, and the horizontal axis' name at the right below it.
pub(super) fn limit(
    out: &mut String,
    x: f64,
    (top, bottom): (f64, f64),
    (right, words): (f64, &str),
) {
    let _ = write!(
        out,
        "<path class=\"limit\" d=\"M{0} {top}V{1}\"/><text class=\"q e\" x=\"{right}\" y=\"{2}\">{3}</text>",
        C(x),
        C(bottom),
        C(bottom + 33.0),
        Esc(words)
    );
}

/// A series' marker and name, for tables and legends.
pub(super) fn key(out: &mut String, series: usize, name: &str) {
    out.push_str("<span class=\"key\"><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">");
    marker(out, series, (7.0, 7.0), 5.0, "");
    let _ = write!(out, "</svg>{}</span>", Esc(name));
}

/// The keys of all series.
pub(super) fn legend<'a>(out: &mut String, names: impl Iterator<Item = &'a str>) {
    out.push_str("<div class=\"legend\">");
    for (series, name) in names.enumerate() {
        key(out, series, name);
    }
    out.push_str("</div>");
}

/// An event marked in charts: when, and its letter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mark {
    pub(super) at_ms: f64,
    pub(super) letter: char,
}

/// Letters for the first events worth a line in a chart.
pub(super) fn letters(times: impl Iterator<Item = f64>) -> Vec<Mark> {
    ('a'..='z').zip(times).take(MAX_MARKS).map(|(letter, at_ms)| Mark { at_ms, letter }).collect()
}

/// Draws marks; those too close to be told apart share one line, `a-c`.
pub(super) fn draw_marks(out: &mut String, axis: Axis, marks: &[Mark], (top, bottom): (f64, f64)) {
    const APART: f64 = 14.0;
    let mut rest = marks;
    while let Some(first) = rest.first() {
        let x = axis.at(first.at_ms);
        let same = rest.iter().take_while(|mark| axis.at(mark.at_ms) - x < APART).count().max(1);
        let last = rest[same - 1].letter;
        let name =
            if same == 1 { first.letter.to_string() } else { format!("{}-{last}", first.letter) };
        let _ = write!(
            out,
            "<path class=\"halo\" d=\"M{0} {1}V{2}\"/><path class=\"mark\" d=\"M{0} {1}V{2}\"/><text class=\"sm b m\" x=\"{0}\" y=\"{3}\">{name}</text>",
            C(x),
            C(top),
            C(bottom),
            C(top - 3.0)
        );
        rest = &rest[same..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_stay_inside() {
        assert_eq!(ticks(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(0.9, 3), [0.0, 0.5]);
        assert_eq!(ticks(0.0, 3), [0.0]);
        assert_eq!(ticks(f64::INFINITY, 3), [0.0]);
        for high in [0.003, 1.0, 7.7, 123.4, 98_765.0] {
            let found = ticks(high, 5);
            assert!(
                (3..=7).contains(&found.len()) && *found.last().unwrap() <= high * 1.0001,
                "{found:?}"
            );
        }
        assert_eq!([0.0, 0.5, 2000.0].map(label), ["0", "0.5", "2000"]);
    }

    #[test]
    fn marks_that_lie_together_share_a_line() {
        let axis = Axis { low: 0.0, high: 1000.0, from: 0.0, to: 100.0 };
        let marks = letters([10.0, 20.0, 900.0].into_iter());
        let mut out = String::new();
        draw_marks(&mut out, axis, &marks, (0.0, 10.0));
        assert_eq!(out.matches("class=\"mark\"").count(), 2, "{out}");
        assert!(out.contains(">a-b<") && out.contains(">c<"), "{out}");
    }
}
