//! `ringpath counter`: the counters of a switch, indexed and of table entries.
//!
//! In: a switch, a counter's name, indices or matches. Out: tables or JSON.

use super::grid::{grid, write};
use super::select::Select;
use super::table::{self, Common};
use super::target::Session;
use super::{Exit, exit};
use crate::p4runtime::matches::Pattern;
use crate::p4runtime::p4info::{Counter, CounterUnit, Index};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::{CounterEntry, Index as At};
use crate::p4runtime::show::{Count, CounterCell, Entry};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `ringpath counter`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with counters.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// List the counters of the program.
    Ls(Common),
    /// Show what one counter is, and its sums.
    Show(One),
    /// Show cells, or entries with their counts.
    Read(Read),
}

/// One counter.
#[derive(Clone, Debug, clap::Args)]
pub struct One {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "COUNTER")]
    pub name: String,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Cells or entries to read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath counter read port_counter 0..7 --nonzero
  ringpath counter read ipv4_lpm_counter dstAddr=10.0.0.0/8 -o json")]
pub struct Read {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "COUNTER")]
    pub name: String,
    /// Cells, such as 7 or 0..15; for a counter of table entries matches, such as field=value. All if not given.
    #[arg(value_name = "INDEX|FIELD=VALUE")]
    pub which: Vec<String>,
    /// Leave out what has counted nothing.
    #[arg(long)]
    pub nonzero: bool,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Runs a verb.
///
/// # Errors
/// Wrong names, indices and matches are wrong use; the rest is what the switch refuses.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Ls(common) => ls(common, out),
        Verb::Show(one) => show(one, out),
        Verb::Read(read) => counts(read, out),
    }
}

/// The counter of a name: indexed ones first.
fn named<'a>(index: &'a Index, name: &str) -> anyhow::Result<&'a Counter> {
    match (index.counter(name), index.direct_counter(name)) {
        (Ok(counter), _) | (Err(_), Ok(counter)) => Ok(counter),
        (Err(indexed), Err(direct)) => {
            // Whichever error has a suggestion says more.
            let (indexed, direct) = (indexed.to_string(), direct.to_string());
            let text = if indexed.contains("did you mean") || !direct.contains("did you mean") {
                indexed
            } else {
                direct
            };
            Err(exit::usage(format!("{text}; see `ringpath counter ls`")))
        }
    }
}

const fn unit(counter: &Counter) -> &'static str {
    match counter.unit {
        CounterUnit::Packets => "packets",
        CounterUnit::Bytes => "bytes",
        CounterUnit::Both => "packets and bytes",
        CounterUnit::Unspecified => "?",
    }
}

fn table_name<'a>(index: &'a Index, counter: &Counter) -> Option<&'a str> {
    Some(index.table_by_id(counter.table?)?.names.name.as_str())
}

fn declared(index: &Index, counter: &Counter) -> Value {
    let table = table_name(index, counter);
    json!({
        "name": counter.names.name,
        "alias": counter.names.alias,
        "id": counter.names.id,
        "direct": table.is_some(),
        "table": table,
        "size": if table.is_some() { Value::Null } else { json!(counter.size) },
        "unit": unit(counter),
    })
}

fn ls(common: &Common, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let index = common.target.index()?;
    let all: Vec<&Counter> = index.counters().iter().chain(index.direct_counters()).collect();
    let document =
        || json!({ "counters": all.iter().map(|at| declared(&index, at)).collect::<Vec<_>>() });
    write(common.output, out, document, |out| {
        let mut grid = grid(&["counter", "cells", "of table", "counts"], &[1]);
        for counter in &all {
            let table = table_name(&index, counter);
            grid.add_row([
                counter.names.name.clone(),
                table.map_or_else(|| counter.size.to_string(), |_| String::new()),
                table.unwrap_or_default().to_owned(),
                unit(counter).to_owned(),
            ]);
        }
        writeln!(out, "{grid}")
    })?;
    Ok(Exit::Done)
}

/// What a counter holds.
enum Held {
    Cells(Vec<CounterCell>),
    Entries(Vec<Entry>),
}

impl Held {
    fn counts(&self) -> Vec<Count> {
        match self {
            Self::Cells(cells) => cells.iter().map(|cell| cell.value).collect(),
            Self::Entries(entries) => {
                entries.iter().map(|entry| entry.counter.unwrap_or_default()).collect()
            }
        }
    }
}

fn fetch(
    session: &Session,
    index: &Index,
    counter: &Counter,
    which: &[String],
) -> anyhow::Result<Held> {
    if let Some(table) = counter.table.and_then(|id| index.table_by_id(id)) {
        let pattern =
            if which.is_empty() { Pattern::default() } else { table::pattern(table, which)? };
        return Ok(Held::Entries(table::fetch(session, index, table, &pattern)?));
    }
    let array = format!("counter '{}'", counter.names.name);
    let select = Select::parse(&array, counter.size, which)
        .map_err(|error| exit::usage(error.to_string()))?;
    let pattern = |at: Option<i64>| {
        Kinds::CounterEntry(CounterEntry {
            counter_id: counter.names.id,
            index: at.map(|index| At { index }),
            data: None,
        })
    };
    let patterns = match select.single() {
        Some(list) => list.into_iter().map(|at| pattern(Some(at))).collect(),
        None => vec![pattern(None)],
    };
    let mut cells = Vec::new();
    for entity in session.read_all(&format!("reading {array}"), patterns)? {
        let cell = CounterCell::of_counter(counter, &entity)?;
        if select.holds(cell.index) {
            cells.push(cell);
        }
    }
    Ok(Held::Cells(cells))
}

fn is_used(count: &Count) -> bool {
    *count != Count::default()
}

fn show(one: &One, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = one.common.target.open()?;
    let counter = named(&index, &one.name)?;
    let counts = fetch(&session, &index, counter, &[])?.counts();
    let used = counts.iter().filter(|count| is_used(count)).count();
    let sum = counts.iter().fold(Count::default(), |sum, count| Count {
        packets: sum.packets.saturating_add(count.packets),
        bytes: sum.bytes.saturating_add(count.bytes),
    });
    let mut document = declared(&index, counter);
    if let Value::Object(map) = &mut document {
        map.insert("nonzero".to_owned(), json!(used));
        map.insert("sum".to_owned(), sum.document());
    }
    let table = table_name(&index, counter);
    let cells = if table.is_some() { "entries" } else { "cells" };
    write(
        one.common.output,
        out,
        || document,
        |out| {
            writeln!(out, "counter  {}", counter.names.name)?;
            writeln!(out, "id       {:#010x}", counter.names.id)?;
            if let Some(table) = table {
                writeln!(out, "table    {table}")?;
            }
            writeln!(out, "counts   {}", unit(counter))?;
            writeln!(out, "{cells:<8} {}, {used} of them not 0", counts.len())?;
            writeln!(out, "sum      {} packets, {} bytes", sum.packets, sum.bytes)
        },
    )?;
    Ok(Exit::Done)
}

fn counts(read: &Read, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = read.common.target.open()?;
    let counter = named(&index, &read.name)?;
    let mut held = fetch(&session, &index, counter, &read.which)?;
    if read.nonzero {
        match &mut held {
            Held::Cells(cells) => cells.retain(|cell| is_used(&cell.value)),
            Held::Entries(entries) => {
                entries.retain(|entry| entry.counter.as_ref().is_some_and(is_used));
            }
        }
    }
    let document = || {
        let mut document = declared(&index, counter);
        match &held {
            Held::Cells(cells) => {
                let list = cells.iter().map(|cell| {
                    let Count { packets, bytes } = cell.value;
                    json!({ "index": cell.index, "packets": packets, "bytes": bytes })
                });
                document["cells"] = list.collect();
            }
            Held::Entries(entries) => {
                document["entries"] = entries.iter().map(Entry::document).collect();
            }
        }
        document
    };
    write(read.common.output, out, document, |out| print(counter, &held, out))?;
    Ok(Exit::Done)
}

fn print(counter: &Counter, held: &Held, out: &mut dyn Write) -> std::io::Result<()> {
    let header = match held {
        Held::Cells(cells) => {
            writeln!(out, "{}: {} cells", counter.names.name, cells.len())?;
            ["index", "packets", "bytes"]
        }
        Held::Entries(entries) => {
            writeln!(out, "{}: {} entries", counter.names.name, entries.len())?;
            ["entry", "packets", "bytes"]
        }
    };
    let counts = held.counts();
    if counts.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = match held {
        Held::Cells(cells) => cells.iter().map(|cell| cell.index.to_string()).collect(),
        Held::Entries(entries) => entries.iter().map(key_words).collect(),
    };
    let mut grid = grid(&header, &[1, 2]);
    for (name, count) in names.into_iter().zip(counts) {
        grid.add_row([name, count.packets.to_string(), count.bytes.to_string()]);
    }
    writeln!(out, "{grid}")
}

/// An entry's key in one line.
fn key_words(entry: &Entry) -> String {
    let fields: Vec<String> =
        entry.key.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let key = if fields.is_empty() { "*".to_owned() } else { fields.join(" ") };
    if entry.priority == 0 { key } else { format!("{key} (priority {})", entry.priority) }
}
