//! `ringpath table`: the tables of a switch and their entries.
//!
//! In: a switch, a table's name, matches. Out: tables or JSON. Exit code 1 if `read` finds no such entry.

use super::grid::{grid, write};
use super::target::{Session, Target};
use super::{Exit, Format, exit};
use crate::p4runtime::matches::{Pattern, kind_words};
use crate::p4runtime::p4info::{Index, Table};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::table_entry::IdleTimeout;
use crate::p4runtime::proto::p4::v1::{CounterData, FieldMatch, MeterConfig, TableEntry};
use crate::p4runtime::show::{Does, Entry, table_entry};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `ringpath table`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with tables.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// List the tables of the program.
    Ls(Common),
    /// Show what one table is, and how full.
    Info(One),
    /// Show entries, of one table or of all.
    Show(Show),
    /// Show the one entry with this key.
    Read(Read),
}

/// Flags of all verbs.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// The switch.
    #[command(flatten)]
    pub target: Target,
    /// How the result is printed.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// One table.
#[derive(Clone, Debug, clap::Args)]
pub struct One {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "TABLE")]
    pub name: String,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Entries to show.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath table show                              every entry of every table
  ringpath table show ipv4_lpm dstAddr=10.0.1.7    entries that a packet to 10.0.1.7 could hit
  ringpath table show acl 'src=10.0.0.0/8' port=1..1023 proto='0x6&0xff' -o json")]
pub struct Show {
    /// Full name, alias or unique end of the name; all tables if not given.
    #[arg(value_name = "TABLE")]
    pub name: Option<String>,
    /// Only entries that a packet with such fields could hit: field=value, /prefix, &mask, lo..hi.
    #[arg(value_name = "FIELD=VALUE")]
    pub filters: Vec<String>,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// The entry to read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Example:
  ringpath table read ipv4_lpm dstAddr=10.0.1.0/24")]
pub struct Read {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "TABLE")]
    pub name: String,
    /// The whole key; fields that the entry leaves open are left out.
    #[arg(value_name = "FIELD=VALUE")]
    pub key: Vec<String>,
    /// Priority of the entry; any if not given.
    #[arg(long, value_name = "N")]
    pub priority: Option<i32>,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Runs a verb.
///
/// # Errors
/// Wrong names and matches are wrong use; the rest is what the switch refuses.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Ls(common) => ls(common, out),
        Verb::Info(one) => info(one, out),
        Verb::Show(show) => entries(show, out),
        Verb::Read(read) => read_one(read, out),
    }
}

/// The table of a name; an unknown one is wrong use.
pub(super) fn named<'a>(index: &'a Index, name: &str) -> anyhow::Result<&'a Table> {
    index.table(name).map_err(|error| exit::usage(format!("{error}; see `ringpath table ls`")))
}

/// Matches on a table; wrong ones are wrong use.
pub(super) fn pattern(table: &Table, words: &[String]) -> anyhow::Result<Pattern> {
    Pattern::parse(table, words)
        .map_err(|error| exit::usage(format!("table '{}': {error}", table.names.name)))
}

/// Entries of a table that meet a pattern, the highest priority first, with counters and ages where it has them.
pub(super) fn fetch(
    session: &Session,
    index: &Index,
    table: &Table,
    pattern: &Pattern,
) -> anyhow::Result<Vec<Entry>> {
    let wanted = |entry: &TableEntry| pattern.meets(table, &entry.r#match);
    read_entries(session, index, table, request(table, Vec::new()), &wanted)
}

/// A pattern that asks for all that a table's entries have.
fn request(table: &Table, key: Vec<FieldMatch>) -> TableEntry {
    TableEntry {
        table_id: table.names.id,
        r#match: key,
        counter_data: table.counter.map(|_| CounterData::default()),
        meter_config: table.meter.map(|_| MeterConfig::default()),
        time_since_last_hit: table.idle_timeout.then(IdleTimeout::default),
        ..TableEntry::default()
    }
}

fn read_entries(
    session: &Session,
    index: &Index,
    table: &Table,
    request: TableEntry,
    wanted: &dyn Fn(&TableEntry) -> bool,
) -> anyhow::Result<Vec<Entry>> {
    let what = format!("reading table '{}'", table.names.name);
    let mut found = Vec::new();
    for entity in session.read(&what, Kinds::TableEntry(request))? {
        let entry = table_entry(&entity)?;
        // Every entry is checked, also those that are not shown: a switch that lies is told.
        let shown = Entry::new(index, table, entry)?;
        if wanted(entry) {
            found.push(shown);
        }
    }
    found.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
    Ok(found)
}

/// The default entry; `None` where the switch does not give one.
fn default_entry(session: &Session, index: &Index, table: &Table) -> anyhow::Result<Option<Entry>> {
    let request =
        TableEntry { table_id: table.names.id, is_default_action: true, ..TableEntry::default() };
    let found = read_entries(session, index, table, request, &|entry| entry.is_default_action)?;
    Ok(found.into_iter().find(|entry| entry.does != Does::Nothing))
}

fn declared(index: &Index, table: &Table) -> Value {
    let key: Vec<Value> = table
        .fields
        .iter()
        .map(|field| {
            json!({ "field": field.name, "match": kind_words(field.kind), "bits": field.width })
        })
        .collect();
    let actions: Vec<&str> = actions(index, table).collect();
    let name = |id: Option<u32>, find: &dyn Fn(u32) -> Option<String>| id.and_then(find);
    json!({
        "name": table.names.name,
        "alias": table.names.alias,
        "id": table.names.id,
        "size": table.size,
        "key": key,
        "actions": actions,
        "const": table.is_const,
        "idle_timeout": table.idle_timeout,
        "counter": name(table.counter, &|id| Some(index.direct_counter_by_id(id)?.names.name.clone())),
        "meter": name(table.meter, &|id| Some(index.direct_meter_by_id(id)?.names.name.clone())),
        "profile": name(table.profile, &|id| Some(index.profile_by_id(id)?.names.name.clone())),
    })
}

fn actions<'a>(index: &'a Index, table: &'a Table) -> impl Iterator<Item = &'a str> {
    table.actions.iter().filter_map(|used| Some(index.action_by_id(used.id)?.names.short()))
}

/// The key in one line: `hdr.ipv4.dstAddr lpm/32`.
fn key_words(table: &Table) -> String {
    let fields: Vec<String> = table
        .fields
        .iter()
        .map(|field| match field.width {
            0 => format!("{} {} text", field.name, kind_words(field.kind)),
            width => format!("{} {}/{width}", field.name, kind_words(field.kind)),
        })
        .collect();
    if fields.is_empty() { "(none)".to_owned() } else { fields.join(", ") }
}

fn ls(common: &Common, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let index = common.target.index()?;
    let tables = index.tables();
    let document = || json!({ "tables": tables.iter().map(|table| declared(&index, table)).collect::<Vec<_>>() });
    write(common.output, out, document, |out| {
        let mut grid = grid(&["table", "size", "key", "actions"], &[1]);
        for table in tables {
            grid.add_row([
                table.names.name.clone(),
                table.size.to_string(),
                key_words(table),
                actions(&index, table).collect::<Vec<_>>().join(", "),
            ]);
        }
        writeln!(out, "{grid}")
    })?;
    Ok(Exit::Done)
}

fn info(one: &One, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = one.common.target.open()?;
    let table = named(&index, &one.name)?;
    let used = fetch(&session, &index, table, &Pattern::default())?.len();
    let default = default_entry(&session, &index, table)?;
    let mut document = declared(&index, table);
    if let Value::Object(map) = &mut document {
        map.insert("used".to_owned(), json!(used));
        let action =
            default.as_ref().map_or(Value::Null, |entry| entry.document()["action"].clone());
        map.insert("default_action".to_owned(), action);
    }
    write(
        one.common.output,
        out,
        || document.clone(),
        |out| {
            writeln!(out, "table    {}", table.names.name)?;
            writeln!(out, "id       {:#010x}", table.names.id)?;
            writeln!(out, "entries  {used} of {}", table.size)?;
            writeln!(out, "key      {}", key_words(table))?;
            writeln!(out, "actions  {}", actions(&index, table).collect::<Vec<_>>().join(", "))?;
            if let Some(entry) = &default {
                writeln!(out, "default  {}", entry.does)?;
            }
            for (words, key) in [("counter", "counter"), ("meter", "meter"), ("profile", "profile")]
            {
                if let Some(name) = document[key].as_str() {
                    writeln!(out, "{words:<8} {name}")?;
                }
            }
            if table.is_const {
                writeln!(out, "const    its entries come from the program")?;
            }
            Ok(())
        },
    )?;
    Ok(Exit::Done)
}

/// Entries of one table with their heading.
struct Found<'a> {
    table: &'a Table,
    entries: Vec<Entry>,
    default: Option<Entry>,
}

fn entries(show: &Show, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = show.common.target.open()?;
    let tables: Vec<&Table> = match &show.name {
        Some(name) => vec![named(&index, name)?],
        None => index.tables().iter().collect(),
    };
    let mut all = Vec::new();
    for table in tables {
        let pattern = pattern(table, &show.filters)?;
        let entries = fetch(&session, &index, table, &pattern)?;
        // A filter asks who could be hit; that the default entry is hit when nobody else is needs no line.
        let default =
            if pattern.is_empty() { default_entry(&session, &index, table)? } else { None };
        all.push(Found { table, entries, default });
    }
    let document = || {
        let entries = all.iter().flat_map(|found| found.entries.iter().chain(&found.default));
        json!({ "entries": entries.map(Entry::document).collect::<Vec<_>>() })
    };
    write(show.common.output, out, document, |out| {
        for found in &all {
            print(found, show.filters.is_empty(), out)?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// One row per entry, one column per field of the key.
fn print(found: &Found<'_>, all: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let Found { table, entries, default } = found;
    let count = entries.len();
    let what = match (all, count) {
        (true, _) => format!("{count} of {} entries", table.size),
        (false, 1) => "1 entry matches".to_owned(),
        (false, _) => format!("{count} entries match"),
    };
    writeln!(out, "{}: {what}", table.names.name)?;
    if entries.is_empty() && default.is_none() {
        return Ok(());
    }
    let mut header: Vec<&str> = table.fields.iter().map(|field| field.name.as_str()).collect();
    let mut right = Vec::new();
    if table.needs_priority() {
        right.push(header.len());
        header.push("priority");
    }
    header.push("action");
    if table.counter.is_some() {
        right.extend([header.len(), header.len() + 1]);
        header.extend(["packets", "bytes"]);
    }
    let mut grid = grid(&header, &right);
    for entry in entries.iter().chain(default) {
        let field = |place: usize, name: &String| {
            let held = entry.key.iter().find(|(field, _)| field == name);
            match (entry.is_default, place) {
                (true, 0) => "(default)".to_owned(),
                (true, _) => String::new(),
                (false, _) => held.map_or_else(|| "*".to_owned(), |(_, value)| value.clone()),
            }
        };
        let mut row: Vec<String> =
            table.fields.iter().enumerate().map(|(place, at)| field(place, &at.name)).collect();
        if table.needs_priority() {
            row.push(if entry.is_default { String::new() } else { entry.priority.to_string() });
        }
        row.push(entry.does.to_string());
        if table.counter.is_some() {
            let count = entry.counter.as_ref();
            row.push(count.map_or_else(String::new, |count| count.packets.to_string()));
            row.push(count.map_or_else(String::new, |count| count.bytes.to_string()));
        }
        grid.add_row(row);
    }
    writeln!(out, "{grid}")
}

fn read_one(read: &Read, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = read.common.target.open()?;
    let table = named(&index, &read.name)?;
    let pattern = pattern(table, &read.key)?;
    let key = pattern
        .key(table)
        .map_err(|error| exit::usage(format!("table '{}': {error}", table.names.name)))?;
    if table.fields.is_empty() {
        let text = format!(
            "table '{}' has no key, so its only entry is the default one; use `ringpath table show {}`",
            table.names.name, read.name
        );
        return Err(exit::usage(text));
    }
    // Switches differ in how they read one entry of a table with priorities, and an entry that leaves all open has no key
    // to ask for; then all are read and compared here.
    let alone = !key.is_empty() && !table.needs_priority();
    let request = request(table, if alone { key } else { Vec::new() });
    let wanted = |entry: &TableEntry| {
        pattern.is_key(table, &entry.r#match)
            && read.priority.is_none_or(|priority| entry.priority == priority)
    };
    let found = read_entries(&session, &index, table, request, &wanted)?;
    if found.is_empty() {
        anyhow::bail!(
            "table '{}' has no entry with the key {}; `ringpath table show {} {}` shows what such packets hit",
            table.names.name,
            if read.key.is_empty() {
                "that leaves all fields open".to_owned()
            } else {
                read.key.join(" ")
            },
            read.name,
            read.key.join(" ")
        );
    }
    let document = || json!({ "entries": found.iter().map(Entry::document).collect::<Vec<_>>() });
    write(read.common.output, out, document, |out| {
        for entry in &found {
            describe(entry, out)?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// An entry with all that is known of it, one line each.
fn describe(entry: &Entry, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "table         {}", entry.table)?;
    for (field, value) in &entry.key {
        writeln!(out, "  {field} = {value}")?;
    }
    if entry.priority != 0 {
        writeln!(out, "priority      {}", entry.priority)?;
    }
    writeln!(out, "action        {}", entry.does)?;
    if let Some(count) = &entry.counter {
        writeln!(out, "counter       {} packets, {} bytes", count.packets, count.bytes)?;
    }
    if let Some(meter) = &entry.meter {
        writeln!(
            out,
            "meter         cir {} cburst {} pir {} pburst {}",
            meter.cir, meter.cburst, meter.pir, meter.pburst
        )?;
    }
    if entry.idle_timeout_ns != 0 {
        writeln!(out, "idle timeout  {} ms", entry.idle_timeout_ns / 1_000_000)?;
    }
    if let Some(elapsed) = entry.since_hit_ns {
        writeln!(out, "last hit      {} ms ago", elapsed / 1_000_000)?;
    }
    if let Some(metadata) = &entry.metadata {
        writeln!(out, "metadata      {metadata}")?;
    }
    if entry.is_const {
        writeln!(out, "const         given by the program")?;
    }
    Ok(())
}
