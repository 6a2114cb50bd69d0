//! An experiment's tables and charts as one page, in the look of the demo's.
//!
//! In: a [`Page`]. Out: HTML that opens offline; without script everything is there. Must not know: presets.

use super::STYLE;
use super::chart::{self, Axis};
use super::text::{C, Esc};
use crate::report::evaluation::{Chart, Mark, Page, Table};
use std::fmt::Write as _;

/// What the demo's page does not need: bold for marked entries, a table of contents in two columns, room for wide tables.
const MORE: &str =
    "td.good,td.bad{font-weight:600}.toc{columns:2;font-size:14px}main{max-width:1400px}";
/// Rows drawn in one chart; the tables hold all.
const MAX_ROWS: usize = 64;

/// The page. `command` makes it again; `versions` names the program.
#[must_use]
pub fn page(page: &Page, command: &str, versions: &str) -> String {
    let mut out = String::with_capacity(1 << 18);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\"><title>{0}</title>\n<style>{STYLE}{MORE}</style></head>\n\
         <body><header><h1>{0}</h1>",
        Esc(&page.title)
    );
    for paragraph in &page.question {
        let _ = write!(out, "<p class=\"soft\">{}</p>", Esc(paragraph));
    }
    out.push_str("<dl class=\"facts\">");
    for (name, value) in &page.facts {
        let _ = write!(out, "<div><dt>{}</dt><dd>{}</dd></div>", Esc(name), Esc(value));
    }
    let _ = write!(
        out,
        "<div class=\"wide\"><dt>command</dt><dd><code>{}</code></dd></div></dl></header>\n<main>",
        Esc(command)
    );
    contents(&mut out, page);
    for (number, figure) in page.charts.iter().enumerate() {
        rows_of_points(&mut out, number, figure);
    }
    for table in &page.tables {
        section(&mut out, table);
    }
    let _ =
        write!(out, "</main>\n<footer><p>Made by {}.</p></footer></body></html>\n", Esc(versions));
    out
}

fn contents(out: &mut String, page: &Page) {
    out.push_str("<section><h2>Contents</h2><ul class=\"toc\">");
    for table in &page.tables {
        let _ = write!(out, "<li><a href=\"#{}\">{}</a></li>", Esc(&table.name), Esc(&table.title));
    }
    out.push_str("</ul></section>");
}

fn section(out: &mut String, table: &Table) {
    let _ = write!(
        out,
        "\n<section id=\"{}\"><h2>{}</h2><p class=\"soft\">{}</p><div class=\"scroll\"><table><thead><tr>",
        Esc(&table.name),
        Esc(&table.title),
        Esc(&table.note)
    );
    let right: Vec<bool> = (0..table.columns.len()).map(|column| table.numeric(column)).collect();
    for (column, name) in table.columns.iter().enumerate() {
        let class = if right[column] { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", Esc(name));
    }
    out.push_str("</tr></thead><tbody>");
    for row in &table.rows {
        out.push_str("<tr>");
        for (column, entry) in row.iter().enumerate() {
            let side = if right.get(column) == Some(&true) { "n" } else { "" };
            let mark = match entry.mark {
                Mark::Plain => "",
                Mark::Good => " good",
                Mark::Bad => " bad",
            };
            let _ = write!(out, "<td class=\"{side}{mark}\">{}</td>", Esc(&entry.text));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></section>");
}

/// The highest value worth an axis: what lies beyond is drawn at its end.
fn high(figure: &Chart) -> f64 {
    let values = figure.rows.iter().flat_map(|(_, points)| points.iter().map(|point| point.1));
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let most = values.get(values.len() * 99 / 100).or(values.last()).copied().unwrap_or(1.0);
    most.max(figure.reference * 1.2).max(1e-9) * 1.04
}

fn rows_of_points(out: &mut String, number: usize, figure: &Chart) {
    const STEP: f64 = 18.0;
    let rows = &figure.rows[..figure.rows.len().min(MAX_ROWS)];
    let (left, right, top) = (250.0, 1090.0, 18.0);
    let bottom = top + STEP * rows.len() as f64;
    let high = high(figure);
    let x = Axis { low: 0.0, high, from: left, to: right };
    let _ = write!(out, "<figure><h3>{}</h3>", Esc(&figure.title));
    let words = "One row per case, one point per series; the dashed line says no difference.";
    chart::open(out, &format!("c{number}"), (1100.0, bottom + 40.0), (&figure.title, words), "");
    let ticks: Vec<(f64, String)> =
        chart::ticks(high, 8).into_iter().map(|v| (v, chart::label(v))).collect();
    chart::x_axis(out, x, &ticks, (top, bottom));
    for (place, (name, points)) in rows.iter().enumerate() {
        let y = top + STEP * (place as f64 + 0.5);
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{left} {0}H{right}\"/><text class=\"e\" x=\"{1}\" y=\"{2}\">{3}</text>",
            C(y),
            left - 10.0,
            C(y + 4.0),
            Esc(name)
        );
        for &(series, value) in points.iter().filter(|point| point.1.is_finite()) {
            let tip = format!(
                "{name}, {}: {value:.3}",
                figure.series.get(series).map_or("", String::as_str)
            );
            chart::marker(out, series, (x.at(value), y), 5.0, &tip);
        }
    }
    let _ = write!(
        out,
        "<path class=\"limit\" d=\"M{0} {top}V{1}\"/><text class=\"q e\" x=\"{right}\" y=\"{2}\">{3}</text></svg><div \
         class=\"legend\">",
        C(x.at(figure.reference)),
        C(bottom),
        C(bottom + 33.0),
        Esc(&figure.axis)
    );
    for (series, name) in figure.series.iter().enumerate() {
        out.push_str("<span class=\"key\"><svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">");
        chart::marker(out, series, (7.0, 7.0), 5.0, "");
        let _ = write!(out, "</svg>{}</span>", Esc(name));
    }
    out.push_str("</div></figure>");
    if figure.rows.len() > MAX_ROWS {
        let _ = write!(
            out,
            "<p class=\"soft\">{} more rows are in the tables only.</p>",
            figure.rows.len() - MAX_ROWS
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::evaluation::Entry;

    #[test]
    fn the_page_is_whole_offline_and_lets_no_name_out_of_its_place() {
        let mut table = Table::new("t", "<b>T", "note", &["case", "value"]);
        table.rows.push(vec![Entry::text("</td><script>"), Entry::change(0.1, true)]);
        let rows = vec![("a".to_owned(), vec![(0, 0.5), (1, f64::NAN)])];
        let figure = Chart {
            title: "c".into(),
            axis: "x".into(),
            series: vec!["one".into(), "two".into()],
            rows,
            reference: 1.0,
        };
        let whole = Page {
            title: "P".into(),
            charts: vec![figure],
            tables: vec![table],
            ..Page::default()
        };
        let html = page(&whole, "ringpath", "ringpath 0");
        assert!(html.contains("&lt;/td&gt;&lt;script&gt;") && !html.contains("<script"), "{html}");
        assert!(html.contains("class=\"n bad\">+10.0 %") && !html.contains("http"), "{html}");
        assert_eq!(html, page(&whole, "ringpath", "ringpath 0"));
    }
}
