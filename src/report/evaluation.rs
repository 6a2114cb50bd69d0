//! What an experiment came to, for people: tables and charts of plain values.
//!
//! In: a [`Page`]. Out: text for the terminal, Markdown, CSV per table; [`super::html::evaluation`] makes the page. The same values
//! give the same bytes. Must not know: presets, where a number came from.

use std::fmt::Write as _;

/// Tables and charts with what was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// What was asked, and how it was measured; one paragraph each.
    pub question: Vec<String>,
    /// Facts with their names.
    pub facts: Vec<(String, String)>,
    /// Charts, above the tables.
    pub charts: Vec<Chart>,
    /// Tables; the first [`Page::shown`] are printed on a terminal.
    pub tables: Vec<Table>,
    /// How many tables a terminal shows.
    pub shown: usize,
}

/// One table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Short name, also of its CSV file: letters, digits, `-`.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub note: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, as long as `columns`.
    pub rows: Vec<Vec<Entry>>,
}

/// How an entry is to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// As it stands.
    #[default]
    Plain,
    /// To the better.
    Good,
    /// To the worse.
    Bad,
}

/// One entry of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// As people read it.
    pub text: String,
    /// The number behind it, for CSV.
    pub value: Option<f64>,
    /// How it is to be taken.
    pub mark: Mark,
}

impl Entry {
    /// Words.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Nothing to show.
    #[must_use]
    pub fn nothing() -> Self {
        Self::text("\u{2013}")
    }

    /// A number with so many digits behind the point; one that is not finite is nothing.
    #[must_use]
    pub fn number(value: f64, digits: usize) -> Self {
        if !value.is_finite() {
            return Self::nothing();
        }
        Self { text: format!("{value:.digits$}"), value: Some(value), mark: Mark::Plain }
    }

    /// As [`Self::number`], or nothing.
    #[must_use]
    pub fn maybe(value: Option<f64>, digits: usize) -> Self {
        value.map_or_else(Self::nothing, |value| Self::number(value, digits))
    }

    /// A count.
    #[must_use]
    pub fn count(value: u64) -> Self {
        Self { text: value.to_string(), value: Some(value as f64), mark: Mark::Plain }
    }

    /// A share of 1 as a change in per cent, marked by whether it is to the better.
    #[must_use]
    pub fn change(share: f64, less_is_better: bool) -> Self {
        if !share.is_finite() {
            return Self::nothing();
        }
        let percent = share * 100.0;
        let mark = match (percent.abs() < 0.05, (percent < 0.0) == less_is_better) {
            (true, _) => Mark::Plain,
            (false, true) => Mark::Good,
            (false, false) => Mark::Bad,
        };
        Self { text: format!("{percent:+.1} %"), value: Some(share), mark }
    }

    /// The same entry, taken otherwise.
    #[must_use]
    pub fn marked(self, mark: Mark) -> Self {
        Self { mark, ..self }
    }
}

/// Rows of points: one row per case, one point per series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub axis: String,
    /// Names of the series, in the order of their markers.
    pub series: Vec<String>,
    /// Cases with their points: (series, value).
    pub rows: Vec<(String, Vec<(usize, f64)>)>,
}

impl Chart {
    /// Where a dashed line says "no difference": charts are of ratios.
    pub const REFERENCE: f64 = 1.0;

    /// A chart.
    #[must_use]
    pub fn new(
        title: &str,
        axis: &str,
        series: &[&str],
        rows: Vec<(String, Vec<(usize, f64)>)>,
    ) -> Self {
        let series = series.iter().map(|&name| name.to_owned()).collect();
        Self { title: title.to_owned(), axis: axis.to_owned(), series, rows }
    }
}

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new(name: &str, title: &str, note: &str, columns: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds to the last row.
    pub fn extend(&mut self, entries: impl IntoIterator<Item = Entry>) {
        if let Some(row) = self.rows.last_mut() {
            row.extend(entries);
        }
    }

    /// Whether a column holds numbers only, and some.
    #[must_use]
    pub fn numeric(&self, column: usize) -> bool {
        let entries = || self.rows.iter().filter_map(|row| row.get(column));
        entries().any(|entry| entry.value.is_some())
            && entries().all(|entry| entry.value.is_some() || entry.text == "\u{2013}")
    }

    /// As CSV: numbers in full, words as they are.
    ///
    /// # Errors
    /// None in practice: memory does not fail.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.columns)?;
        for row in &self.rows {
            writer.write_record(row.iter().map(|entry| match entry.value {
                Some(value) => value.to_string(),
                None if entry.text == "\u{2013}" => String::new(),
                None => entry.text.clone(),
            }))?;
        }
        writer.into_inner().map_err(|error| csv::Error::from(error.into_error()))
    }

    /// As Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        let line = |out: &mut String, parts: &[String]| {
            let _ = writeln!(out, "| {} |", parts.join(" | "));
        };
        let clean = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        line(&mut out, &self.columns.iter().map(|name| clean(name)).collect::<Vec<_>>());
        let rule = |column| if self.numeric(column) { "---:" } else { "---" }.to_owned();
        line(&mut out, &(0..self.columns.len()).map(rule).collect::<Vec<_>>());
        for row in &self.rows {
            line(&mut out, &row.iter().map(|entry| clean(&entry.text)).collect::<Vec<_>>());
        }
        out
    }
}

impl Page {
    /// All of it as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n", self.title);
        for paragraph in &self.question {
            let _ = write!(out, "\n{paragraph}\n");
        }
        for (name, value) in &self.facts {
            let _ = write!(out, "\n- {name}: {value}");
        }
        out.push('\n');
        for table in &self.tables {
            let _ = write!(out, "\n## {}\n\n", table.title);
            if !table.note.is_empty() {
                let _ = write!(out, "{}\n\n", table.note);
            }
            out.push_str(&table.markdown());
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("t", "T", "", &["case", "ms", "change"]);
        table.rows.push(vec![
            Entry::text("a|b, \"c\""),
            Entry::number(1.0 / 3.0, 1),
            Entry::change(-0.25, true),
        ]);
        table.rows.push(vec![Entry::text("d"), Entry::number(f64::NAN, 1), Entry::nothing()]);
        table
    }

    #[test]
    fn csv_keeps_numbers_in_full_and_quotes_what_must_be_quoted() {
        let text = String::from_utf8(table().csv().unwrap()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, ["case,ms,change", "\"a|b, \"\"c\"\"\",0.3333333333333333,-0.25", "d,,"]);
    }

    #[test]
    fn markdown_sets_numbers_to_the_right_and_lets_no_bar_through() {
        let text = table().markdown();
        assert!(text.contains("| --- | ---: | ---: |"), "{text}");
        assert!(text.contains("a\\|b") && text.contains("-25.0 %"), "{text}");
    }

    #[test]
    fn a_change_is_marked_by_whether_it_is_better() {
        assert_eq!(Entry::change(-0.1, true).mark, Mark::Good);
        assert_eq!(Entry::change(-0.1, false).mark, Mark::Bad);
        assert_eq!(Entry::change(0.0001, false).mark, Mark::Plain);
    }
}
