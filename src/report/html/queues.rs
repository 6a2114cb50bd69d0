//! How long packets wait, by queue.
//!
//! In: percentiles per queue. Out: a chart over a logarithmic axis and the same numbers as a table. Must not know what the queues are
//! for, beyond the two that docs/dataplane keeps.

use super::chart::{self, Axis};
use super::text::{C, Short};
use crate::report::trace::{PolicyTrace, QueueDelay};
use std::fmt::Write as _;

const WIDTH: f64 = 540.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 528.0;
const TOP: f64 = 8.0;
const ROW: f64 = 26.0;
/// Where waits of nothing, or almost, are drawn, µs.
const LEAST_US: f64 = 1.0;

pub(super) fn figure(out: &mut String, number: usize, trace: &PolicyTrace, sigma: f64) {
    out.push_str("<h3>Queueing delay per switch queue</h3>");
    let mut queues: Vec<&QueueDelay> = trace.queues.iter().filter(|q| q.packets > 0).collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.queue));
    if queues.is_empty() {
        out.push_str("<p>No packet went through a switch.</p>");
        return;
    }
    out.push_str("<div class=\"two\"><figure>");
    plot(out, number, trace, &queues);
    out.push_str("</figure><div class=\"scroll\">");
    table(out, trace, &queues);
    let _ = write!(
        out,
        "</div></div><p class=\"soft\">From entering an egress queue to the start of transmission, over all switches. Queue 7 is served \
         first and carries acknowledgements and control, queue 6 flows raised by feedback, 0 to 5 data as planned (0 also what belongs to \
         no plan). At \u{3c3} = {sigma} a packet takes \u{3c3} times as long as on the fabric at full size, and so do these waits.</p>"
    );
}

fn decades(queues: &[&QueueDelay]) -> i32 {
    let longest = queues.iter().map(|queue| queue.max_us).fold(LEAST_US * 10.0, f64::max);
    longest.log10().ceil().clamp(1.0, 12.0) as i32
}

fn place(us: f64) -> f64 {
    us.max(LEAST_US).log10()
}

fn decade(power: i32) -> String {
    match power {
        0..=2 => format!("{} \u{b5}s", 10_u64.pow(power as u32)),
        3..=5 => format!("{} ms", 10_u64.pow(power as u32 - 3)),
        _ => format!("{} s", 10_u64.pow((power as u32).saturating_sub(6))),
    }
}

fn plot(out: &mut String, number: usize, trace: &PolicyTrace, queues: &[&QueueDelay]) {
    let bottom = TOP + ROW * queues.len() as f64;
    let most = decades(queues);
    let axis = Axis { low: 0.0, high: f64::from(most), from: LEFT, to: RIGHT };
    let title = format!("Queueing delay per queue under {}", trace.policy);
    let worst = queues.iter().max_by(|a, b| a.p99_us.total_cmp(&b.p99_us));
    let worst = worst.map_or(String::new(), |queue| {
        format!(
            " Longest 99th percentile: {} \u{b5}s in queue {}.",
            Short(queue.p99_us),
            queue.queue
        )
    });
    let desc = format!("One row per queue, median to maximum over a logarithmic axis.{worst}");
    chart::open(out, &format!("q{number}"), (WIDTH, bottom + 44.0), (&title, &desc), "");
    let ticks: Vec<(f64, String)> =
        (0..=most).map(|power| (f64::from(power), decade(power))).collect();
    chart::x_axis(out, axis, &ticks, (TOP, bottom));
    let colour = number % chart::SERIES;
    for (row, queue) in queues.iter().enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let at = |us: f64| C(axis.at(place(us)));
        let _ = write!(
            out,
            "<text class=\"e\" x=\"{}\" y=\"{}\">queue {}</text>",
            C(LEFT - 10.0),
            C(y + 4.0),
            queue.queue
        );
        // The line grows thinner the fewer packets wait so long.
        let parts = [
            (queue.p50_us, queue.p90_us, 9),
            (queue.p90_us, queue.p99_us, 5),
            (queue.p99_us, queue.p999_us, 3),
            (queue.p999_us, queue.max_us, 1),
        ];
        for (from, to, width) in parts {
            let _ = write!(
                out,
                "<path class=\"wait\" style=\"stroke:var(--s{colour});stroke-width:{width}\" d=\"M{} {}H{}\"/>",
                at(from),
                C(y),
                at(to)
            );
        }
        let x = axis.at(place(queue.p50_us));
        let tip = format!("queue {}: median {} \u{b5}s", queue.queue, Short(queue.p50_us));
        let _ = write!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"6\" style=\"fill:var(--card);stroke:var(--s{colour});stroke-width:2.5\"><title>{tip}</title></circle>",
            C(x),
            C(y)
        );
    }
    let _ = write!(
        out,
        "<text class=\"q sm\" x=\"{LEFT}\" y=\"{}\">circle: median; line, ever thinner: to 90, 99, 99.9 % and maximum; logarithmic</text></svg>",
        C(bottom + 36.0)
    );
}

fn table(out: &mut String, trace: &PolicyTrace, queues: &[&QueueDelay]) {
    out.push_str(
        "<table><thead><tr><th>queue</th><th class=\"n\">packets</th><th class=\"n\">p50 \u{b5}s</th><th class=\"n\">p90</th><th \
         class=\"n\">p99</th><th class=\"n\">p99.9</th><th class=\"n\">max</th></tr></thead><tbody>",
    );
    for queue in queues {
        let _ = write!(out, "<tr><th>{}</th><td class=\"n\">{}</td>", queue.queue, queue.packets);
        for us in [queue.p50_us, queue.p90_us, queue.p99_us, queue.p999_us, queue.max_us] {
            let _ = write!(out, "<td class=\"n\">{}</td>", Short(us));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    let idle: Vec<String> = trace
        .queues
        .iter()
        .filter(|queue| queue.packets == 0)
        .map(|queue| queue.queue.to_string())
        .collect();
    if !idle.is_empty() {
        let _ = write!(out, "<p class=\"soft\">Not used: queue {}.</p>", idle.join(", "));
    }
}
