//! From a file to a [`Scenario`], section by section.
//!
//! In: bytes. Out: a scenario or the first error. Must not know: what sections contain (each has its own file).

use super::error::{Problem, ScenarioError};
use super::toml_reader::{Section, Source};
use super::{Scenario, events, fabric, jobs};
use std::path::Path;
use toml::de::DeTable;

/// Largest scenario file: a hundred times the largest that makes sense, small enough to read without thought.
pub const MAX_FILE: u64 = 4 << 20;
/// Most jobs: far above what one fabric holds, low enough that a slip of a `count` cannot fill memory.
pub const MAX_JOBS: u64 = 10_000;
/// Most events, for the same reason.
pub const MAX_EVENTS: u64 = 10_000;

const TOP: &[&str] =
    &["name", "seed", "packet_scale", "max_paths", "fabric", "placement", "job", "event"];

/// Reads a scenario file; `seed` overrides the file's (else 0).
///
/// # Errors
/// [`ScenarioError`] with file, line, column and remedy.
pub fn read(path: &Path, seed: Option<u64>) -> Result<Scenario, ScenarioError> {
    let file = path.display().to_string();
    let source = Source { file: &file, text: "" };
    let bytes = load(path, MAX_FILE).map_err(|problem| source.whole(problem))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| source.whole(Problem::NotText))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut scenario = parse(text, &file, path.parent().unwrap_or(Path::new(".")), seed)?;
    if scenario.name.is_empty() {
        scenario.name = stem.unwrap_or_default();
    }
    Ok(scenario)
}

/// The bytes of a file of at most `max` bytes. Devices and pipes that never end are cut there, too.
pub(super) fn load(path: &Path, max: u64) -> Result<Vec<u8>, Problem> {
    use std::io::Read as _;
    let io = |source| Problem::Io { source };
    let file = std::fs::File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > max {
        let bytes = path.metadata().map_or(max + 1, |data| data.len().max(max + 1));
        return Err(Problem::TooLarge { bytes, max });
    }
    Ok(bytes)
}

/// Reads scenario text. `file` is for messages, `folder` is where `[fabric] file` is looked for.
///
/// # Errors
/// See [`read`].
pub fn parse(
    text: &str,
    file: &str,
    folder: &Path,
    seed: Option<u64>,
) -> Result<Scenario, ScenarioError> {
    let source = Source { file, text };
    if text.len() as u64 > MAX_FILE {
        return Err(source.whole(Problem::TooLarge { bytes: text.len() as u64, max: MAX_FILE }));
    }
    let document = DeTable::parse(text).map_err(|error| {
        // The parser's message may run over lines; the first says what was wrong, the rest lists what it expected.
        let message = error.message().split('\n').collect::<Vec<_>>().join("; ");
        source.error(&error.span().unwrap_or(0..0), Problem::Syntax { message })
    })?;
    let top = Section::open(&source, "the file".into(), 0..0, document.get_ref(), TOP)?;
    let name = top.get("name").map_or(Ok(String::new()), |entry| entry.name())?;
    // Read even where the caller's seed counts, so that a file is good or bad whatever the flags are.
    let own_seed = top.int_or("seed", 0, 0, i64::MAX as u64)?;
    let seed = seed.unwrap_or(own_seed);
    let packet_scale = match top.get("packet_scale") {
        None => None,
        Some(entry) => Some(entry.int(1, 1_000_000)? as u32),
    };
    let default_paths = crate::topology::DEFAULT_MAX_PATHS as u64;
    let max_paths = top.int_or("max_paths", default_paths, 1, 1024)? as usize;
    let fabric = fabric::read(&top, folder)?;
    let mut jobs = jobs::read(&top, &fabric.topology, seed)?;
    let events = events::read(&top, &fabric.topology, &mut jobs, seed)?;
    Ok(Scenario {
        name,
        seed,
        topology: fabric.topology,
        queues: fabric.queues,
        max_paths,
        jobs: jobs.jobs,
        any_order: jobs.any_order,
        events,
        packet_scale,
        notes: fabric.notes,
    })
}
