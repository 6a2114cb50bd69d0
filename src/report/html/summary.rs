//! All policies side by side.
//!
//! In: the rows of the table. Out: the same table, and two charts: communication against utilisation, and the slowdown of every job.
//! Must not know how a policy works.

use super::chart::{self, Axis};
use super::text::{C, Esc, Short};
use crate::report::demo::{Report, Row};
use std::fmt::Write as _;

const SIZE: (f64, f64) = (540.0, 340.0);
/// Jobs drawn in the slowdown chart.
const MAX_JOBS: usize = 24;

pub(super) fn section(out: &mut String, report: &Report) {
    out.push_str("<section id=\"summary\"><h2>Policies compared</h2>");
    table(out, report);
    out.push_str("<div class=\"two\">");
    trade(out, report);
    slowdowns(out, report);
    out.push_str("</div></section>");
}

/// A change in per cent, coloured by whether it is to the better.
fn change(value: f64, base: Option<f64>, less_is_better: bool) -> String {
    let Some(base) = base.filter(|base| *base > 0.0) else { return "\u{2013}".to_owned() };
    let percent = (value / base - 1.0) * 100.0;
    let class = match (percent.abs() < 0.05, (percent < 0.0) == less_is_better) {
        (true, _) => "soft",
        (false, true) => "good",
        (false, false) => "bad",
    };
    format!("<span class=\"{class}\">{percent:+.1} %</span>")
}

fn table(out: &mut String, report: &Report) {
    let base = report.baseline();
    let versus = base.map_or("baseline", |row| row.name.as_str());
    let _ = write!(
        out,
        "<div class=\"scroll\"><table><thead><tr><th>policy</th><th class=\"n\">communication ms</th><th class=\"n\">vs {0}</th><th \
         class=\"n\">GPU utilisation</th><th class=\"n\">vs {0}</th><th class=\"n\">slowdown</th><th class=\"n\">lost</th><th \
         class=\"n\">reordered</th><th class=\"n\">forced</th></tr></thead><tbody>",
        Esc(versus)
    );
    let (base_ms, base_util) =
        (base.map(|row| row.comm_ms_mean), base.map(|row| row.gpu_utilisation));
    for (number, row) in report.policies.iter().enumerate() {
        out.push_str("<tr><th>");
        chart::key(out, number, &row.name);
        let _ = write!(
            out,
            "</th><td class=\"n\">{:.1}</td><td class=\"n\">{}</td><td class=\"n\">{:.3}</td><td class=\"n\">{}</td><td \
             class=\"n\">{:.2}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            row.comm_ms_mean,
            change(row.comm_ms_mean, base_ms, true),
            row.gpu_utilisation,
            change(row.gpu_utilisation, base_util, false),
            report.slowdown(row),
            row.packets.dropped.total(),
            row.packets.reordered,
            row.forced_flips
        );
    }
    let limit = &report.contention_free;
    let _ = write!(
        out,
        "<tr class=\"limit-row\"><th>each job alone</th><td class=\"n\">{:.1}</td><td class=\"n\">{}</td><td class=\"n\">{:.3}</td><td \
         class=\"n\">{}</td><td class=\"n\">1.00</td><td></td><td></td><td></td></tr></tbody></table></div><p class=\"soft\">Communication: \
         from the first byte of an AllReduce to the last at the last rank, mean over iterations 2 and on, then over jobs. Slowdown: \
         communication against the job alone on the fabric, which no policy can beat, mean over jobs. Forced: changes of path or queue that \
         could not wait for a silence of the flow.</p>",
        limit.comm_ms_mean,
        change(limit.comm_ms_mean, base_ms, true),
        limit.gpu_utilisation,
        change(limit.gpu_utilisation, base_util, false)
    );
}

/// Communication against utilisation: a policy named for one loses on the other.
fn trade(out: &mut String, report: &Report) {
    let (left, right, top, bottom) = (46.0, 522.0, 18.0, 300.0);
    let limit = &report.contention_free;
    let most = |limit: f64, of: fn(&Row) -> f64| {
        report.policies.iter().map(of).fold(limit, f64::max).max(1e-9) * 1.08
    };
    let x_high = most(limit.comm_ms_mean, |row| row.comm_ms_mean);
    let y_high = most(limit.gpu_utilisation, |row| row.gpu_utilisation);
    let x = Axis { low: 0.0, high: x_high, from: left, to: right };
    let y = Axis { low: 0.0, high: y_high, from: bottom, to: top };
    out.push_str("<figure><h3>Communication against GPU utilisation</h3>");
    let desc = "One point per policy: communication time to the right, GPU utilisation upwards. The cross is every job alone.";
    chart::open(out, "trade", SIZE, ("Communication time against GPU utilisation", desc), "");
    let ticks: Vec<(f64, String)> =
        chart::ticks(x_high, 6).into_iter().map(|v| (v, chart::label(v))).collect();
    chart::x_axis(out, x, &ticks, (top, bottom));
    chart::y_axis(out, y, &chart::ticks(y_high, 5), (left, right));
    let _ = write!(
        out,
        "<text class=\"q e\" x=\"{right}\" y=\"{}\">communication, ms (less is better)</text><text class=\"q\" x=\"{}\" y=\"11\">GPU \
         utilisation (more is better)</text>",
        bottom + 33.0,
        left - 30.0
    );
    let (cx, cy) = (x.at(limit.comm_ms_mean), y.at(limit.gpu_utilisation));
    let _ = write!(
        out,
        "<path class=\"limit\" style=\"stroke-dasharray:none\" d=\"M{} {}l10 10m0 -10l-10 10\"/><text class=\"q\" x=\"{}\" y=\"{}\">each job \
         alone</text>",
        C(cx - 5.0),
        C(cy - 5.0),
        C(cx + 11.0),
        C(cy + 4.0)
    );
    let points: Vec<(f64, f64)> = report
        .policies
        .iter()
        .map(|row| (x.at(row.comm_ms_mean), y.at(row.gpu_utilisation)))
        .collect();
    for ((number, row), label_y) in report.policies.iter().enumerate().zip(spread(&points)) {
        let (px, py) = points[number];
        let tip = format!("{}: {:.1} ms, {:.3}", row.name, row.comm_ms_mean, row.gpu_utilisation);
        chart::marker(out, number, (px, py), 5.5, &tip);
        let (class, dx) = if px > 430.0 { ("e", -10.0) } else { ("", 10.0) };
        let _ = write!(
            out,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            C(px + dx),
            C(label_y + 4.0),
            Esc(&row.name)
        );
    }
    out.push_str("</svg></figure>");
}

/// Heights for labels beside points: pushed down where one would cover another.
fn spread(points: &[(f64, f64)]) -> Vec<f64> {
    const LINE: f64 = 13.0;
    const NEAR: f64 = 90.0;
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|a, b| points[*a].1.total_cmp(&points[*b].1));
    let mut places = vec![0.0; points.len()];
    let mut done: Vec<usize> = Vec::new();
    for at in order {
        let mut y = points[at].1;
        for before in &done {
            let near = (points[*before].0 - points[at].0).abs() < NEAR;
            if near && (y - places[*before]).abs() < LINE {
                y = places[*before] + LINE;
            }
        }
        places[at] = y;
        done.push(at);
    }
    places
}

/// Every job's communication time relative to alone, all policies in one row.
fn slowdowns(out: &mut String, report: &Report) {
    let alone = &report.contention_free.comm_ms_per_job;
    let jobs: Vec<(&String, f64)> = alone
        .iter()
        .map(|(job, ms)| (job, *ms))
        .filter(|(_, ms)| *ms > 0.0)
        .take(MAX_JOBS)
        .collect();
    let ratio =
        |row: &Row, job: &str, ms: f64| row.comm_ms_per_job.get(job).map(|found| found / ms);
    let all = jobs
        .iter()
        .flat_map(|(job, ms)| report.policies.iter().filter_map(move |row| ratio(row, job, *ms)));
    let high = all.fold(2.0, f64::max) * 1.04;
    let (left, right, top) = (104.0, 526.0, 18.0);
    let step = ((300.0 - top) / jobs.len().max(1) as f64).clamp(18.0, 47.0);
    let bottom = top + step * jobs.len() as f64;
    let x = Axis { low: 0.0, high, from: left, to: right };
    out.push_str("<figure><h3>Slowdown of each job</h3>");
    let desc = "One row per job, one point per policy: communication time divided by the job's time alone. The dashed line is 1.";
    chart::open(
        out,
        "slow",
        (SIZE.0, bottom + 40.0),
        ("Slowdown of each job under each policy", desc),
        "",
    );
    let ticks: Vec<(f64, String)> = chart::ticks(high, 6)
        .into_iter()
        .map(|v| (v, format!("{}\u{d7}", chart::label(v))))
        .collect();
    chart::x_axis(out, x, &ticks, (top, bottom));
    for (place, (job, ms)) in jobs.iter().enumerate() {
        let y = top + step * (place as f64 + 0.5);
        chart::lane(out, y, (left, right), job);
        for (number, row) in report.policies.iter().enumerate() {
            if let Some(value) = ratio(row, job, *ms) {
                let tip = format!(
                    "{job}, {}: {value:.2} \u{d7} alone, {} ms",
                    row.name,
                    Short(value * ms)
                );
                chart::marker(out, number, (x.at(value), y), 5.5, &tip);
            }
        }
    }
    let words = "communication against alone (less is better)";
    chart::limit(out, x.at(1.0), (top, bottom), (right, words));
    out.push_str("</svg>");
    chart::legend(out, report.policies.iter().map(|row| row.name.as_str()));
    out.push_str("</figure>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_points_that_lie_together_do_not_cover_each_other() {
        let points = [(100.0, 50.0), (110.0, 52.0), (105.0, 53.0), (400.0, 50.0)];
        let places = spread(&points);
        assert_eq!(places, [50.0, 63.0, 76.0, 50.0]);
    }

    #[test]
    fn a_change_is_coloured_by_whether_it_is_better() {
        assert!(change(80.0, Some(100.0), true).contains("good\">-20.0 %"));
        assert!(change(80.0, Some(100.0), false).contains("bad\">-20.0 %"));
        assert!(change(100.0, Some(100.0), true).contains("soft"));
        assert_eq!(change(1.0, None, true), "\u{2013}");
    }
}
