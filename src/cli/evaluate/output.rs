//! Results as tables on the terminal, JSON, CSV, Markdown and one page.
//!
//! In: a finished experiment. Out: text, files. Must not know: how results came about.

use crate::cli::Format;
use crate::cli::grid::{grid, write as choose};
use crate::evaluate::ledger::{Header, Line, file_name};
use crate::evaluate::run::{Measured, Shard};
use crate::evaluate::{Cell, Preset, Settings, Summary, word};
use crate::report::evaluation::{Entry, Page, Table};
use crate::report::html;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;

/// A finished experiment.
pub(super) struct Done<'a> {
    pub settings: Settings,
    pub preset: &'a dyn Preset,
    pub cells: Vec<Cell>,
    /// By cell.
    pub results: Vec<Measured>,
}

/// Prints, and writes files if there is a directory for them.
///
/// # Errors
/// A file that cannot be written; a result that is none of the preset.
pub(super) fn write(
    done: &Done<'_>,
    dir: Option<&Path>,
    format: Format,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let results: Vec<(Cell, Value)> = done
        .cells
        .iter()
        .cloned()
        .zip(done.results.iter().map(|measured| measured.result.clone()))
        .collect();
    let summary = done.preset.summarise(&results)?;
    let times = times(done);
    let document = document(done, &summary)?;
    if let Some(dir) = dir {
        files(done, (&summary, &document), times.as_ref(), dir)?;
    }
    choose(
        format,
        out,
        || document.clone(),
        |out| {
            print(&summary.page, out)?;
            if let Some(times) = &times {
                section(times, out)?;
            }
            Ok(())
        },
    )
}

fn print(page: &Page, out: &mut dyn Write) -> std::io::Result<()> {
    for (name, value) in &page.facts {
        writeln!(out, "{name}: {value}")?;
    }
    for table in page.tables.iter().take(page.shown) {
        section(table, out)?;
    }
    if page.tables.len() > page.shown {
        let rest: Vec<&str> =
            page.tables.iter().skip(page.shown).map(|table| table.name.as_str()).collect();
        writeln!(out, "\nWith --out DIR also: {}", rest.join(", "))?;
    }
    Ok(())
}

fn section(table: &Table, out: &mut dyn Write) -> std::io::Result<()> {
    let columns: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let right: Vec<usize> = (0..columns.len()).filter(|column| table.numeric(*column)).collect();
    let mut grid = grid(&columns, &right);
    for row in &table.rows {
        grid.add_row(row.iter().map(|entry| entry.text.as_str()));
    }
    writeln!(out, "\n{}\n{grid}", table.title)
}

/// Settings, then the preset's rows.
fn document(done: &Done<'_>, summary: &Summary) -> anyhow::Result<Value> {
    let mut document = serde_json::to_value(&done.settings)?;
    let facts = summary.page.facts.iter().map(|(name, value)| (name.clone(), json!(value)));
    let facts = Value::Object(facts.collect());
    document["source"] = json!(summary.source);
    document["seeds"] = json!(summary.seeds);
    document["facts"] = facts;
    document["rows"] = summary.rows.clone();
    Ok(document)
}

/// What took how long on this machine, if the preset measures that.
fn times(done: &Done<'_>) -> Option<Table> {
    let first = done.results.iter().find(|measured| !measured.times.is_empty())?;
    let names: Vec<&str> = first.times.iter().map(|(name, _)| name.as_str()).collect();
    let columns = [&["cell"][..], &names].concat();
    let mut table = Table::new(
        "times",
        "Seconds on this machine",
        "Measured, so not the same from run to run.",
        &columns,
    );
    for (cell, measured) in done.cells.iter().zip(&done.results) {
        let of = |name: &&str| {
            let found = measured.times.iter().find(|time| time.0 == *name);
            Entry::maybe(found.map(|time| time.1), 4)
        };
        let mut row = vec![Entry::text(&cell.name)];
        row.extend(names.iter().map(of));
        table.rows.push(row);
    }
    Some(table)
}

fn files(
    done: &Done<'_>,
    (summary, document): (&Summary, &Value),
    times: Option<&Table>,
    dir: &Path,
) -> anyhow::Result<()> {
    let put = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let mut json = serde_json::to_vec_pretty(document)?;
    json.push(b'\n');
    put("report.json", &json)?;
    put("report.md", summary.page.markdown().as_bytes())?;
    let versions = concat!("ringpath ", env!("CARGO_PKG_VERSION"));
    let page = html::evaluation::page(&summary.page, &command(&done.settings), versions);
    put("report.html", page.as_bytes())?;
    for table in summary.page.tables.iter().chain(times) {
        put(&format!("{}.csv", table.name), &table.csv()?)?;
    }
    Ok(())
}

/// The command that gives these results again, on one machine.
fn command(settings: &Settings) -> String {
    let mut text = format!("ringpath evaluate --preset {}", word(settings.preset));
    let plain = Settings::new(settings.preset);
    if settings.small {
        text.push_str(" --small");
    }
    if let Some(seeds) = settings.seeds {
        text.push_str(&format!(" --seeds {seeds}"));
    }
    if settings.rho != plain.rho {
        text.push_str(&format!(" --rho {}", settings.rho));
    }
    if settings.rule != plain.rule {
        text.push_str(" --rule ring-median");
    }
    for fabric in &settings.fabrics {
        text.push_str(&format!(" --fabric {}", word(fabric)));
    }
    if let Some(file) = &settings.topology {
        // The page is the same wherever the file lies.
        let file = Path::new(file).file_name().unwrap_or_default();
        text.push_str(&format!(" --topology {}", file.display()));
    }
    text
}

/// Writes joined results as one shard would have.
///
/// # Errors
/// The file cannot be written.
pub(super) fn joined(done: &Done<'_>, dir: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let header = Header::new(&done.settings, &done.cells);
    let mut text = serde_json::to_vec(&header)?;
    for (index, (cell, measured)) in done.cells.iter().zip(&done.results).enumerate() {
        let Measured { result, times } = measured.clone();
        text.push(b'\n');
        let line = Line { index, cell: cell.name.clone(), result, times };
        text.extend(serde_json::to_vec(&line)?);
    }
    text.push(b'\n');
    let path = dir.join(file_name(&header, Shard::WHOLE));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
