//! `ringpath register`: the registers of a switch and their cells.
//!
//! In: a switch, a register's name, indices. Out: tables or JSON.

use super::grid::{grid, write};
use super::select::Select;
use super::table::Common;
use super::target::Session;
use super::{Exit, exit};
use crate::p4runtime::p4info::{Index, Register};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::{Index as At, RegisterEntry};
use crate::p4runtime::show::{RegisterCell, is_zero, plain, type_words};
use serde_json::{Value, json};
use std::io::Write;

/// Arguments of `ringpath register`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done with registers.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Verb {
    /// List the registers of the program.
    Ls(Common),
    /// Show what one register is and how much of it is used.
    Show(One),
    /// Show cells.
    Read(Read),
}

/// One register.
#[derive(Clone, Debug, clap::Args)]
pub struct One {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "REGISTER")]
    pub name: String,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Cells to read.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  ringpath register read flow_bytes --nonzero
  ringpath register read flow_bytes 7 100..120 -o json")]
pub struct Read {
    /// Full name, alias or unique end of the name.
    #[arg(value_name = "REGISTER")]
    pub name: String,
    /// Cells, such as 7 or 0..15 (both ends included); all if not given.
    #[arg(value_name = "INDEX")]
    pub indices: Vec<String>,
    /// Leave out cells that hold 0.
    #[arg(long)]
    pub nonzero: bool,
    /// Flags of all verbs.
    #[command(flatten)]
    pub common: Common,
}

/// Runs a verb.
///
/// # Errors
/// Wrong names and indices are wrong use; the rest is what the switch refuses.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    match &args.verb {
        Verb::Ls(common) => ls(common, out),
        Verb::Show(one) => show(one, out),
        Verb::Read(read) => cells(read, out),
    }
}

fn named<'a>(index: &'a Index, name: &str) -> anyhow::Result<&'a Register> {
    index
        .register(name)
        .map_err(|error| exit::usage(format!("{error}; see `ringpath register ls`")))
}

fn declared(register: &Register) -> Value {
    json!({
        "name": register.names.name,
        "alias": register.names.alias,
        "id": register.names.id,
        "size": register.size,
        "type": type_words(&register.cell),
    })
}

fn fetch(
    session: &Session,
    index: &Index,
    register: &Register,
    select: &Select,
) -> anyhow::Result<Vec<RegisterCell>> {
    let pattern = |at: Option<i64>| {
        Kinds::RegisterEntry(RegisterEntry {
            register_id: register.names.id,
            index: at.map(|index| At { index }),
            data: None,
        })
    };
    let patterns = match select.single() {
        Some(list) => list.into_iter().map(|at| pattern(Some(at))).collect(),
        None => vec![pattern(None)],
    };
    let what = format!("reading register '{}'", register.names.name);
    let mut cells = Vec::new();
    for entity in session.read_all(&what, patterns)? {
        let cell = RegisterCell::of_register(index, register, &entity)?;
        if select.holds(cell.index) {
            cells.push(cell);
        }
    }
    Ok(cells)
}

fn ls(common: &Common, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let index = common.target.index()?;
    let registers = index.registers();
    let document = || {
        let list: Vec<Value> = registers.iter().map(declared).collect();
        json!({ "registers": list })
    };
    write(common.output, out, document, |out| {
        let mut grid = grid(&["register", "cells", "type"], &[1]);
        for register in registers {
            grid.add_row([
                register.names.name.clone(),
                register.size.to_string(),
                type_words(&register.cell),
            ]);
        }
        writeln!(out, "{grid}")
    })?;
    Ok(Exit::Done)
}

fn show(one: &One, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = one.common.target.open()?;
    let register = named(&index, &one.name)?;
    let all =
        Select::parse("register", register.size, &[]).map_err(|e| exit::usage(e.to_string()))?;
    let cells = fetch(&session, &index, register, &all)?;
    let used: Vec<&RegisterCell> = cells.iter().filter(|cell| !is_zero(&cell.value)).collect();
    let largest = used
        .iter()
        .filter_map(|cell| Some((cell.value.as_u64()?, cell.index)))
        .max_by_key(|(value, index)| (*value, std::cmp::Reverse(*index)));
    let mut document = declared(register);
    if let Value::Object(map) = &mut document {
        map.insert("nonzero".to_owned(), json!(used.len()));
        let largest = largest.map(|(value, index)| json!({ "index": index, "value": value }));
        map.insert("largest".to_owned(), json!(largest));
    }
    write(
        one.common.output,
        out,
        || document.clone(),
        |out| {
            writeln!(out, "register  {}", register.names.name)?;
            writeln!(out, "id        {:#010x}", register.names.id)?;
            writeln!(out, "type      {}", type_words(&register.cell))?;
            writeln!(out, "cells     {}, {} of them not 0", cells.len(), used.len())?;
            if let Some((value, index)) = largest {
                writeln!(out, "largest   {value} in cell {index}")?;
            }
            Ok(())
        },
    )?;
    Ok(Exit::Done)
}

fn cells(read: &Read, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (session, index) = read.common.target.open()?;
    let register = named(&index, &read.name)?;
    let array = format!("register '{}'", register.names.name);
    let select = Select::parse(&array, register.size, &read.indices)
        .map_err(|error| exit::usage(error.to_string()))?;
    let mut cells = fetch(&session, &index, register, &select)?;
    let count = cells.len();
    cells.retain(|cell| !read.nonzero || !is_zero(&cell.value));
    let document = || {
        let list: Vec<Value> =
            cells.iter().map(|cell| json!({ "index": cell.index, "value": cell.value })).collect();
        let mut document = declared(register);
        document["cells"] = json!(list);
        document
    };
    write(read.common.output, out, document, |out| {
        let kept = cells.len();
        let of = if read.nonzero {
            format!("{kept} of {count} cells are not 0")
        } else {
            format!("{count} cells")
        };
        writeln!(out, "{}: {of}", register.names.name)?;
        if cells.is_empty() {
            return Ok(());
        }
        let mut grid = grid(&["index", "value"], &[0, 1]);
        for cell in &cells {
            grid.add_row([cell.index.to_string(), plain(&cell.value)]);
        }
        writeln!(out, "{grid}")
    })?;
    Ok(Exit::Done)
}
