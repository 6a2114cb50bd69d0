//! Results in a file: one line of JSON per cell, below a header that says what they are results of.
//!
//! In: settings, cells, results as they come. Out: a file that a stopped run goes on with, and that is put together with those of
//! other shards. Must not know: what a result means.
//!
//! A line is written with one call, so a run that is killed leaves at most its last line cut; a cut line is taken off and its cell
//! done again. The header holds a hash over the specification of every cell: results of another grid, other seeds or another version
//! of a preset are refused, not mixed.

use super::run::{Measured, Shard};
use super::{Cell, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Largest file of results that is read: a hundred times the largest preset's.
const FILE_MAX: u64 = 4 << 30;

/// First line of every file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What was asked for.
    pub settings: Settings,
    /// Version of the program.
    pub version: String,
    /// SHA-256 over the settings and all cells, in hexadecimal.
    pub specification: String,
    /// Cells of the whole experiment.
    pub cells: usize,
}

impl Header {
    /// The header of an experiment.
    #[must_use]
    pub fn new(settings: &Settings, cells: &[Cell]) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let mut hash = Sha256::new();
        hash.update(version.as_bytes());
        // Neither can fail: keys are strings.
        hash.update(serde_json::to_vec(settings).unwrap_or_default());
        hash.update(serde_json::to_vec(cells).unwrap_or_default());
        let digest = hash.finalize();
        let specification = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { settings: settings.clone(), version, specification, cells: cells.len() }
    }
}

/// One line below the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The cell's place among all cells.
    pub index: usize,
    /// Its name.
    pub cell: String,
    /// What it measured.
    pub result: Value,
    /// Seconds that parts of it took on the machine that ran it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<(String, f64)>,
}

/// Why results cannot be kept or put together.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Reading or writing failed.
    #[error("cannot {verb} {file}: {source}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With what.
        file: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file of something else.
    #[error("{file}:1: not the header of an experiment's results ({message}); give another --out")]
    Header {
        /// The file.
        file: String,
        /// What the parser says.
        message: String,
    },
    /// Results of another specification.
    #[error(
        "{file} holds results of {found}, and these would be of {wanted}; give another --out, or remove the file"
    )]
    Mixed {
        /// The file.
        file: String,
        /// What it holds.
        found: String,
        /// What was to be added.
        wanted: String,
    },
    /// A line in the middle that is no result.
    #[error("{file}:{line}: not a result ({message}); remove the line and the cell is run again")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A result of a cell that the experiment does not have.
    #[error("{file}:{line}: there is no cell '{cell}' at {index}; remove the line")]
    Unknown {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// The cell.
        cell: String,
        /// Its place.
        index: usize,
    },
    /// A cell with two results.
    #[error("cell '{cell}' has a result in {first} and in {second}; merge shards of one run")]
    Twice {
        /// The cell.
        cell: String,
        /// Where first.
        first: String,
        /// And where again.
        second: String,
    },
    /// Cells without a result.
    #[error(
        "{missing} of {cells} cells have no result, first '{first}' (shard {} of a run in {shards}); run that shard again with the same --out", hint(*index, *shards)
    )]
    Gaps {
        /// How many.
        missing: usize,
        /// Of how many.
        cells: usize,
        /// The first.
        first: String,
        /// Its place.
        index: usize,
        /// Shards, as far as file names tell.
        shards: usize,
    },
    /// Nothing to merge.
    #[error("no results (*.jsonl) in {dirs}")]
    Nothing {
        /// Where.
        dirs: String,
    },
    /// A file beyond what is read.
    #[error("{file} has {bytes} bytes; at most {max} are read")]
    TooLarge {
        /// The file.
        file: String,
        /// Its size.
        bytes: u64,
        /// Most.
        max: u64,
    },
}

fn hint(index: usize, shards: usize) -> String {
    format!("{}", index % shards.max(1))
}

fn io(verb: &'static str, file: &Path) -> impl FnOnce(std::io::Error) -> LedgerError {
    let file = file.display().to_string();
    move |source| LedgerError::Io { verb, file, source }
}

/// A file of results that grows.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    done: BTreeMap<usize, Line>,
}

/// Name of the file that a shard writes.
#[must_use]
pub fn file_name(header: &Header, shard: Shard) -> String {
    let preset = super::word(header.settings.preset);
    match shard {
        Shard::WHOLE => format!("{preset}.jsonl"),
        Shard { index, count } => format!("{preset}-{index}-of-{count}.jsonl"),
    }
}

impl Ledger {
    /// Opens the file of a shard in a directory, which is made; what is in it already is kept.
    ///
    /// # Errors
    /// [`LedgerError`]; a file of another specification is refused.
    pub fn open(
        dir: &Path,
        header: &Header,
        cells: &[Cell],
        shard: Shard,
    ) -> Result<Self, LedgerError> {
        std::fs::create_dir_all(dir).map_err(io("create", dir))?;
        let path = dir.join(file_name(header, shard));
        let mut done = BTreeMap::new();
        if path.exists() {
            let (found, lines, whole) = read(&path)?;
            if let Some(found) = found {
                same(&path, &found, header)?;
            }
            for (number, line) in lines {
                check(&path, number, &line, cells)?;
                done.insert(line.index, line);
            }
            let file = OpenOptions::new().write(true).open(&path).map_err(io("open", &path))?;
            file.set_len(whole).map_err(io("shorten", &path))?;
        }
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(io("open", &path))?;
        let mut ledger = Self { path, file, done };
        if ledger.file.metadata().map_err(io("read", &ledger.path))?.len() == 0 {
            ledger.write(header)?;
        }
        Ok(ledger)
    }

    /// Results that are in the file, by cell.
    #[must_use]
    pub fn done(&self) -> &BTreeMap<usize, Line> {
        &self.done
    }

    /// Adds a result.
    ///
    /// # Errors
    /// Writing fails.
    pub fn add(
        &mut self,
        index: usize,
        cell: &Cell,
        measured: Measured,
    ) -> Result<(), LedgerError> {
        let Measured { result, times } = measured;
        let line = Line { index, cell: cell.name.clone(), result, times };
        self.write(&line)?;
        self.done.insert(index, line);
        Ok(())
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), LedgerError> {
        let mut text = serde_json::to_vec(value).unwrap_or_default();
        text.push(b'\n');
        self.file.write_all(&text).map_err(io("write", &self.path))
    }
}

/// Header, lines with their numbers, and how many bytes of the file are whole lines.
type Read = (Option<Header>, Vec<(usize, Line)>, u64);

/// Reads a file up to its last whole line.
fn read(path: &Path) -> Result<Read, LedgerError> {
    let name = || path.display().to_string();
    let bytes = std::fs::metadata(path).map_err(io("read", path))?.len();
    if bytes > FILE_MAX {
        return Err(LedgerError::TooLarge { file: name(), bytes, max: FILE_MAX });
    }
    let text = std::fs::read(path).map_err(io("read", path))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = text[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return Ok((None, Vec::new(), 0)) };
    let header = serde_json::from_slice(first)
        .map_err(|error| LedgerError::Header { file: name(), message: error.to_string() })?;
    let mut found = Vec::new();
    for (number, line) in (2..).zip(lines) {
        let line = serde_json::from_slice(line).map_err(|error| LedgerError::Line {
            file: name(),
            line: number,
            message: error.to_string(),
        })?;
        found.push((number, line));
    }
    Ok((Some(header), found, whole as u64))
}

fn same(path: &Path, found: &Header, wanted: &Header) -> Result<(), LedgerError> {
    let words = |header: &Header| {
        let Settings { preset, small, seeds, .. } = &header.settings;
        let form = if *small { "small form, " } else { "" };
        let seeds = seeds.map_or_else(String::new, |seeds| format!("{seeds} seeds, "));
        let short: String = header.specification.chars().take(12).collect();
        format!(
            "'{}' ({form}{seeds}{} cells, version {}, specification {short})",
            super::word(preset),
            header.cells,
            header.version
        )
    };
    if found == wanted {
        return Ok(());
    }
    let (found, wanted) = (words(found), words(wanted));
    Err(LedgerError::Mixed { file: path.display().to_string(), found, wanted })
}

fn check(path: &Path, number: usize, line: &Line, cells: &[Cell]) -> Result<(), LedgerError> {
    if cells.get(line.index).is_some_and(|cell| cell.name == line.cell) {
        return Ok(());
    }
    Err(LedgerError::Unknown {
        file: path.display().to_string(),
        line: number,
        cell: line.cell.clone(),
        index: line.index,
    })
}

/// The header of the first file of results in some directories: what there is to merge.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn header(dirs: &[PathBuf]) -> Result<Header, LedgerError> {
    for path in files(dirs)? {
        if let (Some(header), _, _) = read(&path)? {
            return Ok(header);
        }
    }
    let dirs = dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ");
    Err(LedgerError::Nothing { dirs })
}

/// Puts the results of some directories together, in the order of the cells.
///
/// # Errors
/// A cell without a result or with two, files of different specifications: each by name.
pub fn merge(dirs: &[PathBuf], header: &Header, cells: &[Cell]) -> Result<Vec<Line>, LedgerError> {
    let mut all: BTreeMap<usize, (Line, String)> = BTreeMap::new();
    let files = files(dirs)?;
    for path in &files {
        let (found, lines, _) = read(path)?;
        let Some(found) = found else { continue };
        same(path, &found, header)?;
        for (number, line) in lines {
            check(path, number, &line, cells)?;
            let place = format!("{}:{number}", path.display());
            if let Some((line, first)) = all.get(&line.index) {
                let (cell, first) = (line.cell.clone(), first.clone());
                return Err(LedgerError::Twice { cell, first, second: place });
            }
            all.insert(line.index, (line, place));
        }
    }
    let missing = |index: &usize| !all.contains_key(index);
    if let Some(index) = (0..cells.len()).find(missing) {
        return Err(LedgerError::Gaps {
            missing: cells.len() - all.len(),
            cells: cells.len(),
            first: cells[index].name.clone(),
            index,
            shards: shards(&files),
        });
    }
    Ok(all.into_values().map(|(line, _)| line).collect())
}

/// Every `*.jsonl` of the directories, sorted by name within each.
fn files(dirs: &[PathBuf]) -> Result<Vec<PathBuf>, LedgerError> {
    let mut all = Vec::new();
    for dir in dirs {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(io("read", dir))? {
            let path = entry.map_err(io("read", dir))?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
        found.sort();
        all.extend(found);
    }
    Ok(all)
}

/// Shards of the run, as file names tell (`…-of-8.jsonl`); 1 if they do not.
fn shards(files: &[PathBuf]) -> usize {
    let count = |path: &PathBuf| {
        let stem = path.file_stem()?.to_str()?;
        stem.rsplit_once("-of-")?.1.parse().ok()
    };
    files.iter().find_map(count).unwrap_or(1)
}
