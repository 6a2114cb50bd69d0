//! BMv2 JSON → [`Program`]. In: the bytes of a `.json` file. Out: a checked, flattened program, or a [`LoadError`] that
//! names the element, its place in the P4 source and the remedy. Must not know packets or state.
//!
//! Everything that later code relies on is checked here once: names resolve, widths and counts agree, control flow
//! ends, sizes are bounded. No input makes it panic.

mod actions;
pub mod error;
mod headers;
mod parsers;
mod pipelines;
mod read;
mod stateful;
mod values;

pub use error::{LoadError, Place};

use crate::switch::{
    expr::Builder,
    program::{ActionNo, Param, Program},
};
use read::{Object, Read};
use serde_json::Value;
use std::collections::BTreeMap;

/// Largest program file. The largest programs of p4c's test data have 2 MB.
pub const MAX_JSON_BYTES: usize = 64 << 20;
/// Deepest nesting of the JSON: what the parser takes without using the stack up.
pub const MAX_DEPTH: usize = 127;
/// JSON versions 2.0 to this are read (BMv2's own `max_minor_version`).
pub const NEWEST_VERSION: (u64, u64) = (2, 24);
/// Most slots of a packet, constants and temporaries included: one megabyte.
const MAX_SLOTS: u64 = 131_072;

/// Loads and checks a program.
///
/// # Errors
/// [`LoadError`]: the file is not JSON, not of a supported version, contradicts itself or uses what is not supported.
pub fn load(json: &[u8]) -> Result<Program, LoadError> {
    if json.len() > MAX_JSON_BYTES {
        return Err(LoadError::TooLarge { bytes: json.len(), limit: MAX_JSON_BYTES });
    }
    check_depth(json)?;
    let value: Value =
        serde_json::from_slice(json).map_err(|source| LoadError::NotJson { source })?;
    let root = Object::root(&value);
    check_version(&root)?;
    let layout = headers::layout(&root)?;
    let mut loader = Loader {
        root,
        builder: Builder::new(layout),
        program: Program::default(),
        names: Names::default(),
    };
    loader.stateful()?;
    loader.actions()?;
    loader.parsers()?;
    loader.deparsers()?;
    loader.pipelines()?;
    loader.checksums()?;
    loader.intrinsic()?;
    let slots = loader.builder.layout.initial.len() as u64;
    loader.root.at_most("slots", slots, MAX_SLOTS)?;
    let Loader { builder, mut program, .. } = loader;
    program.layout = builder.layout;
    program.code = builder.code;
    program.wide = builder.wide;
    Ok(program)
}

/// A JSON file being loaded.
struct Loader<'a> {
    root: Object<'a>,
    builder: Builder,
    program: Program,
    names: Names,
}

/// Names and ids of the JSON → positions.
#[derive(Default)]
struct Names {
    actions: BTreeMap<u32, ActionNo>,
    counters: BTreeMap<String, u32>,
    /// Direct counters by the name of their table.
    direct_counters: BTreeMap<String, u32>,
    meters: BTreeMap<String, u32>,
    registers: BTreeMap<String, u32>,
    value_sets: BTreeMap<String, u32>,
    calculations: BTreeMap<String, u32>,
    /// Where each direct meter's colour goes: header and field.
    meter_targets: BTreeMap<u32, crate::switch::phv::FieldRef>,
}

/// What names mean where an expression stands.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    /// Parameters of the action around.
    params: &'a [Param],
    /// Inside a parser: the unread packet can be looked at.
    parser: bool,
}

/// Bounds the nesting before the recursive parser sees the text.
fn check_depth(json: &[u8]) -> Read<()> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let place = Place { element: "the program".into(), source: None };
            return Err(LoadError::TooDeep { place, limit: MAX_DEPTH });
        }
    }
    Ok(())
}

/// Files without a version are old hand-written ones, which BMv2 takes, too.
fn check_version(root: &Object<'_>) -> Read<()> {
    if !root.json.is_object() {
        return Err(root.wrong("program", "a JSON object", root.json));
    }
    let Some(version) = root.json.get("__meta__").and_then(|m| m.get("version")) else {
        return Ok(());
    };
    let number = |i: usize| version.get(i).and_then(Value::as_u64);
    match (number(0), number(1)) {
        (Some(major), Some(minor)) if major == NEWEST_VERSION.0 && minor <= NEWEST_VERSION.1 => {
            Ok(())
        }
        _ => Err(LoadError::Version {
            found: read::describe(version),
            newest: format!("{}.{}", NEWEST_VERSION.0, NEWEST_VERSION.1),
        }),
    }
}

#[cfg(test)]
mod tests;
