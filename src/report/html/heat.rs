//! Load of links over time, hottest first.
//!
//! In: shares per link and bucket. Out: heat maps, one for the fabric and one for hosts' links. Must not know the fabric.
//!
//! One path per colour holds all cells of that colour, and equal neighbours are one rectangle: a page of six policies with 64 links and
//! 200 buckets stays well below a megabyte.

use super::chart::{self, Axis, Mark};
use super::text::{C, Esc};
use crate::report::trace::{LinkTrace, PolicyTrace};
use std::fmt::Write as _;

/// Colours; each stands for a tenth of the link's rate.
const LEVELS: usize = 10;
/// Links shown between switches: all of the default fabric, and what fits on one page of any other.
const MAX_FABRIC: usize = 40;
/// Links shown between hosts and switches.
const MAX_HOST: usize = 24;
const WIDTH: f64 = 1100.0;
const LEFT: f64 = 128.0;
const RIGHT: f64 = 1050.0;
const ROW: f64 = 13.0;
const TOP: f64 = 18.0;

pub(super) fn figure(out: &mut String, number: usize, trace: &PolicyTrace, marks: &[Mark]) {
    out.push_str("<h3>Link load over time</h3>");
    let fabric: Vec<&LinkTrace> = trace.links.iter().filter(|link| !link.at_host).collect();
    let host: Vec<&LinkTrace> = trace.links.iter().filter(|link| link.at_host).collect();
    legend(out);
    if !fabric.is_empty() {
        map(out, &format!("hf{number}"), trace, ("between switches", fabric, MAX_FABRIC), marks);
    }
    if !host.is_empty() {
        map(
            out,
            &format!("hh{number}"),
            trace,
            ("between hosts and leaves", host, MAX_HOST),
            marks,
        );
    }
}

fn legend(out: &mut String) {
    out.push_str("<div class=\"legend\"><span>Share of the link's rate: 0 %<span class=\"ramp\">");
    for level in 1..=LEVELS {
        let _ = write!(out, "<b style=\"background:var(--h{level})\"></b>");
    }
    out.push_str(
        "</span>100 %</span><span class=\"soft\">Dashed lines and letters: events of the timeline below.</span></div>",
    );
}

fn map(
    out: &mut String,
    id: &str,
    trace: &PolicyTrace,
    (what, mut links, most): (&str, Vec<&LinkTrace>, usize),
    marks: &[Mark],
) {
    links.sort_by(|a, b| {
        b.mean.total_cmp(&a.mean).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    let left_out = links.len().saturating_sub(most);
    let below = links.get(most).map(|link| link.mean);
    links.truncate(most);
    let bottom = TOP + ROW * links.len() as f64;
    let axis = Axis { low: 0.0, high: trace.duration_ms, from: LEFT, to: RIGHT };
    // Cells are placed by time, so that the last bucket, which the end of the run cuts, is as wide as it is long.
    let cell = axis.at(trace.bucket_ms) - LEFT;
    let title = format!("Load of the links {what} under {}", trace.policy);
    let hottest = links.first().map_or(String::new(), |link| {
        format!(
            " The hottest is {} to {}, {:.0} % in the mean.",
            link.from,
            link.to,
            link.mean * 100.0
        )
    });
    let desc = format!(
        "Heat map, one row per directed link, hottest first, {:.1} seconds from left to right.{hottest}",
        trace.duration_ms / 1e3
    );
    out.push_str("<figure><div class=\"scroll\">");
    let data =
        format!(" data-heat=\"{LEFT} {cell:.4} {TOP} {ROW} {}\"", chart::label(trace.bucket_ms));
    chart::open(out, id, (WIDTH, bottom + 22.0), (&title, &desc), &data);
    let _ =
        write!(out, "<path class=\"ground\" d=\"M{LEFT} {TOP}H{RIGHT}V{}H{LEFT}z\"/>", C(bottom));
    cells(out, &links, axis, trace.bucket_ms);
    names(out, &links);
    let seconds = chart::ticks(trace.duration_ms / 1e3, 10);
    let ticks: Vec<(f64, String)> =
        seconds.iter().map(|s| (s * 1e3, format!("{} s", chart::label(*s)))).collect();
    chart::x_axis(out, axis, &ticks, (bottom, bottom + 3.0));
    chart::draw_marks(out, axis, marks, (TOP - 3.0, bottom));
    let more = match below {
        Some(mean) => format!("; {left_out} more, each at most {:.0} % in the mean", mean * 100.0),
        None => String::new(),
    };
    let _ = write!(
        out,
        "</svg></div><figcaption>Links {what}, hottest first{more}. At the right the mean over the run.</figcaption></figure>"
    );
}

/// The colour of a share: 0 for nothing, then one per tenth.
fn level(share: f64) -> usize {
    if share <= 0.0005 { 0 } else { ((share * LEVELS as f64).ceil() as usize).clamp(1, LEVELS) }
}

fn cells(out: &mut String, links: &[&LinkTrace], axis: Axis, bucket_ms: f64) {
    let mut paths = vec![String::new(); LEVELS + 1];
    for (row, link) in links.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let mut from = 0;
        while from < link.share.len() {
            let colour = level(link.share[from]);
            let run =
                link.share[from..].iter().take_while(|share| level(**share) == colour).count();
            let (x, to) =
                (axis.at(from as f64 * bucket_ms), axis.at((from + run) as f64 * bucket_ms));
            if colour > 0 && to > x {
                let (h, w) = (C(ROW - 1.0), C(C(to).rounded() - C(x).rounded()));
                let _ = write!(paths[colour], "M{} {}h{w}v{h}h-{w}z", C(x), C(y));
            }
            from += run;
        }
    }
    for (level, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let _ = write!(out, "<path style=\"fill:var(--h{level})\" d=\"{path}\"/>");
    }
}

/// Names at the left, means at the right, and the values for the tooltip: two hexadecimal digits per bucket.
fn names(out: &mut String, links: &[&LinkTrace]) {
    for (row, link) in links.iter().enumerate() {
        let y = TOP + ROW * row as f64 + 10.0;
        let _ =
            write!(out, "<g data-l=\"{0} \u{2192} {1}\" data-v=\"", Esc(&link.from), Esc(&link.to));
        for share in &link.share {
            let _ = write!(out, "{:02x}", (share * 255.0).round().clamp(0.0, 255.0) as u8);
        }
        let _ = write!(
            out,
            "\"><text class=\"sm e\" x=\"{}\" y=\"{}\">{} \u{2192} {}</text><text class=\"sm q e\" x=\"{}\" y=\"{1}\">{:.0} %</text></g>",
            C(LEFT - 6.0),
            C(y),
            Esc(&link.from),
            Esc(&link.to),
            C(WIDTH - 14.0),
            link.mean * 100.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_tenths_and_nothing_is_no_colour() {
        let shares = [0.0, 0.0001, 0.01, 0.1, 0.100_1, 0.95, 1.0, 1.2, f64::NAN];
        assert_eq!(shares.map(level), [0, 0, 1, 1, 2, 10, 10, 10, 1]);
    }

    #[test]
    fn equal_neighbours_are_one_rectangle_of_their_common_length() {
        let link = LinkTrace { share: vec![0.0, 0.35, 0.31, 0.35, 0.9], ..LinkTrace::default() };
        let axis = Axis { low: 0.0, high: 50.0, from: 0.0, to: 100.0 };
        let mut out = String::new();
        cells(&mut out, &[&link], axis, 10.0);
        assert_eq!(
            out,
            "<path style=\"fill:var(--h4)\" d=\"M20 18h60v12h-60z\"/><path style=\"fill:var(--h9)\" d=\"M80 18h20v12h-20z\"/>"
        );
    }
}
