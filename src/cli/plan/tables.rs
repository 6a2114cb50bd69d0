//! A plan as tables for people. In: the document. Out: text. Must not know: anything that the JSON does not.

use super::document::Document;
use crate::units::{BitRate, Bytes};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use std::io::Write;

/// Flows printed; `-o json` has them all.
const MAX_FLOWS: usize = 100;

pub(super) fn print(
    document: &Document,
    notes: &[String],
    out: &mut dyn Write,
) -> std::io::Result<()> {
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    let objective = &document.objective;
    writeln!(out, "solver {}, seed {}", document.solver, document.seed)?;
    let unit = if objective.unit == "1" { String::new() } else { format!(" {}", objective.unit) };
    write!(out, "objective {}: {:.6}{unit}", objective.name, objective.value)?;
    let bound = document.bounds.iter().find(|bound| bound.name == "objective");
    match (bound, document.gap) {
        (Some(bound), Some(gap)) => {
            writeln!(out, ", bound {:.6}{unit}, gap {:.1} %", bound.value, gap * 100.0)?;
        }
        _ => writeln!(out, ", no bound known")?,
    }
    let (sum, least) = (document.drain_sum_s, document.drain_bound_s);
    writeln!(out, "drain sum {sum:.6} s, no plan below {least:.6} s")?;
    let mut jobs = table(&["job", "comm", "drain"], &[1, 2]);
    for job in &document.jobs {
        jobs.add_row([job.name.clone(), seconds(job.comm_s), seconds(job.drain_s)]);
    }
    writeln!(out, "{jobs}")?;
    let mut flows = table(
        &["flow", "job", "channel", "path", "queue", "bytes", "first rate", "drain"],
        &[0, 2, 4, 5, 6, 7],
    );
    for (id, flow) in document.flows.iter().enumerate().take(MAX_FLOWS) {
        flows.add_row([
            id.to_string(),
            flow.job.clone(),
            flow.channel.to_string(),
            flow.path.join(" > "),
            flow.queue.to_string(),
            Bytes(flow.bytes).to_string(),
            BitRate(flow.rate0_bps.round() as u64).to_string(),
            seconds(flow.drain_s),
        ]);
    }
    writeln!(out, "{flows}")?;
    if document.flows.len() > MAX_FLOWS {
        writeln!(out, "and {} more flows (-o json has all)", document.flows.len() - MAX_FLOWS)?;
    }
    Ok(())
}

fn table(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header.to_vec());
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn seconds(seconds: f64) -> String {
    format!("{:.3} ms", seconds * 1e3)
}
