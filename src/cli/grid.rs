//! Tables for people, and the choice between them and JSON. In: header, rows, columns of numbers. Out: text. Must not know
//! what is in them.

use super::Format;
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use std::io::Write;

/// A table with this header, whose columns `right` hold numbers.
#[must_use]
pub fn grid(header: &[&str], right: &[usize]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header(header.to_vec());
    for &column in right {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Writes `document` as JSON or lets `table` write for people.
///
/// # Errors
/// Writing fails.
pub fn write(
    format: Format,
    out: &mut dyn Write,
    document: impl FnOnce() -> serde_json::Value,
    table: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    match format {
        Format::Table => table(out)?,
        Format::Json => {
            serde_json::to_writer_pretty(&mut *out, &document())?;
            writeln!(out)?;
        }
    }
    Ok(())
}
