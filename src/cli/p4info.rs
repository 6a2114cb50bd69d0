//! `ringpath p4info`: what a program offers to controllers, from a file or from a switch.
//!
//! In: a switch or a P4Info file, a name. Out: tables or JSON.

use super::grid::{grid, write};
use super::table::Common;
use super::{Exit, exit};
use crate::p4runtime::matches::kind_words;
use crate::p4runtime::p4info::{Index, Kind, LookupError, Names, Param};
use crate::p4runtime::show::type_words;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Arguments of `ringpath p4info`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with P4Info.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// List the program's objects: tables, actions, counters, registers and the rest.
    Ls(Common),
    /// Show the program as a whole, or everything about one object.
    Show(Show),
}

/// The object to show.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath p4info show                        program, version, cookie, number of objects
  ringpath p4info show ipv4_lpm               key, actions, parameters
  ringpath p4info show --p4info basic.p4info.txtpb forward -o json")]
pub struct Show {
    /// Full name, alias or unique end of the name; the whole program if not given.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Runs a verb.
///
/// # Errors
/// Wrong names are wrong use; the rest is what the switch refuses or the file lacks.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Ls(common) => ls(common, out),
        Verb::Show(show) => match &show.name {
            Some(name) => object(show, name, out),
            None => program(&show.common, out),
        },
    }
}

/// An object with what is said of it in a list.
struct Object {
    kind: Kind,
    names: Names,
    about: Vec<(&'static str, Value)>,
}

fn params(list: &[Param]) -> Value {
    list.iter().map(|param| json!({ "name": param.name, "bits": param.width })).collect()
}

/// Every object in the order of the kinds.
fn objects(index: &Index) -> Vec<Object> {
    let mut all = Vec::new();
    let mut add = |kind, names: &Names, about: Vec<(&'static str, Value)>| {
        all.push(Object { kind, names: names.clone(), about });
    };
    for table in index.tables() {
        let key: Value = table
            .fields
            .iter()
            .map(|f| json!({ "field": f.name, "match": kind_words(f.kind), "bits": f.width }))
            .collect();
        let actions: Vec<&str> = table
            .actions
            .iter()
            .filter_map(|used| Some(index.action_by_id(used.id)?.names.short()))
            .collect();
        let about = vec![("size", json!(table.size)), ("key", key), ("actions", json!(actions))];
        add(Kind::Table, &table.names, about);
    }
    for action in index.actions() {
        add(Kind::Action, &action.names, vec![("params", params(&action.params))]);
    }
    for profile in index.profiles() {
        let about = vec![("size", json!(profile.size)), ("selector", json!(profile.with_selector))];
        add(Kind::ActionProfile, &profile.names, about);
    }
    let table = |id: Option<u32>| {
        id.and_then(|id| Some(json!(index.table_by_id(id)?.names.name))).unwrap_or(Value::Null)
    };
    for counter in index.counters() {
        add(Kind::Counter, &counter.names, vec![("size", json!(counter.size))]);
    }
    for counter in index.direct_counters() {
        add(Kind::DirectCounter, &counter.names, vec![("table", table(counter.table))]);
    }
    for meter in index.meters() {
        add(Kind::Meter, &meter.names, vec![("size", json!(meter.size))]);
    }
    for meter in index.direct_meters() {
        add(Kind::DirectMeter, &meter.names, vec![("table", table(meter.table))]);
    }
    for register in index.registers() {
        let cell = json!(type_words(&register.cell));
        add(Kind::Register, &register.names, vec![("size", json!(register.size)), ("type", cell)]);
    }
    for digest in index.digests() {
        let sample = json!(type_words(&digest.sample));
        add(Kind::Digest, &digest.names, vec![("type", sample)]);
    }
    for set in index.value_sets() {
        add(Kind::ValueSet, &set.names, vec![("size", json!(set.size))]);
    }
    for header in index.headers() {
        add(Kind::PacketHeader, &header.names, vec![("fields", params(&header.fields))]);
    }
    all
}

fn document(object: &Object) -> Value {
    let mut map = Map::new();
    map.insert("kind".to_owned(), json!(object.kind.words()));
    map.insert("name".to_owned(), json!(object.names.name));
    map.insert("alias".to_owned(), json!(object.names.alias));
    map.insert("id".to_owned(), json!(object.names.id));
    for (key, value) in &object.about {
        map.insert((*key).to_owned(), value.clone());
    }
    Value::Object(map)
}

/// A property in one line.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let name = ["field", "name"].iter().find_map(|key| map.get(*key)).map(words);
            let kind = map.get("match").map(|kind| format!(" {}", words(kind))).unwrap_or_default();
            let bits = map.get("bits").map(words).unwrap_or_default();
            format!("{}{kind}/{bits}", name.unwrap_or_default())
        }
        other => other.to_string(),
    }
}

fn ls(common: &Common, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let index = common.target.index()?;
    let all = objects(&index);
    let document = || json!({ "objects": all.iter().map(document).collect::<Vec<_>>() });
    write(common.output, out, document, |out| {
        let mut grid = grid(&["kind", "name", "id", ""], &[]);
        for object in &all {
            let about: Vec<String> = object
                .about
                .iter()
                .filter(|(key, value)| *key != "actions" && !words(value).is_empty())
                .map(|(key, value)| format!("{key} {}", words(value)))
                .collect();
            grid.add_row([
                object.kind.words().to_owned(),
                object.names.name.clone(),
                format!("{:#010x}", object.names.id),
                about.join(", "),
            ]);
        }
        writeln!(out, "{grid}")
    })?;
    Ok(Exit::Done)
}

fn object(show: &Show, name: &str, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let index = show.common.target.index()?;
    let all = objects(&index);
    let found = find(&index, &all, name)?;
    let document = || json!({ "objects": found.iter().map(|at| document(at)).collect::<Vec<_>>() });
    write(show.common.output, out, document, |out| {
        for object in &found {
            writeln!(out, "{} {}", object.kind.words(), object.names.name)?;
            writeln!(out, "  id       {:#010x}", object.names.id)?;
            writeln!(out, "  alias    {}", object.names.short())?;
            for (key, value) in &object.about {
                match value {
                    Value::Array(list) if list.iter().any(Value::is_object) => {
                        writeln!(out, "  {key}")?;
                        for item in list {
                            writeln!(out, "    {}", words(item))?;
                        }
                    }
                    _ => writeln!(out, "  {key:<8} {}", words(value))?,
                }
            }
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}

/// The objects of any kind that a name means: usually one, more where kinds share a name.
fn find<'a>(index: &Index, all: &'a [Object], name: &str) -> anyhow::Result<Vec<&'a Object>> {
    let found = index
        .find_any(name)
        .map_err(|error: LookupError| exit::usage(format!("{error}; see `ringpath p4info ls`")))?;
    Ok(all.iter().filter(|object| found.contains(&object.names.id)).collect())
}

fn program(common: &Common, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (index, cookie, version) = match &common.target.p4info {
        Some(_) => (common.target.index()?, None, None),
        None => {
            let session = common.target.connect()?;
            let cookie = session.pipeline()?.cookie.map(|cookie| cookie.cookie);
            (session.index()?, cookie, session.version())
        }
    };
    let package = index.info().pkg_info.clone().unwrap_or_default();
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for object in objects(&index) {
        match counts.last_mut() {
            Some((kind, count)) if *kind == object.kind.words() => *count += 1,
            _ => counts.push((object.kind.words(), 1)),
        }
    }
    let document = || {
        let counts: Map<String, Value> =
            counts.iter().map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect();
        json!({
            "name": package.name,
            "version": package.version,
            "arch": package.arch,
            "cookie": cookie,
            "p4runtime_version": version,
            "counts": counts,
        })
    };
    write(common.output, out, document, |out| {
        let lines = [
            ("program", Some(package.name.clone())),
            ("version", Some(package.version.clone())),
            ("architecture", Some(package.arch.clone())),
            ("cookie", cookie.map(|cookie| format!("{cookie:#x}"))),
            ("P4Runtime", version.clone()),
        ];
        for (what, text) in lines {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                writeln!(out, "{what:<14} {text}")?;
            }
        }
        for (kind, count) in &counts {
            writeln!(out, "{:<14} {count}", format!("{kind}s"))?;
        }
        Ok(())
    })?;
    Ok(Exit::Done)
}
