//! Results in a file: one line of JSON per cell, below a header that says what they are results of.
//!
//! In: settings, cells, results as they come. Out: a file that a stopped run goes on with, and that is put together with those of
//! other shards. Must not know: what a result means.
//!
//! A line is written with one call, so a run that is killed leaves at most its last line cut; a cut line is taken off and its cell
//! done again. The header holds a hash over the specification of every cell and the preset's constants: results of another grid, other
//! seeds or another version of a preset are refused, not mixed.

use super::identity::constants;
use super::run::{Measured, Shard};
use super::{Cell, Settings};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
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
    /// SHA-256 over the settings, all cells and the preset's constants, in hexadecimal.
    pub specification: String,
    /// Cells of the whole experiment.
    pub cells: usize,
}

impl Header {
    /// The header of an experiment.
    #[must_use]
    pub fn new(settings: &Settings, cells: &[Cell]) -> Self {
        // Where a fabric file lies is not what the results are of.
        let settings = Settings { topology: None, ..settings.clone() };
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let constants = constants(settings.preset);
        let specification = Self::hash(&version, &settings, cells, &constants);
        Self { settings, version, specification, cells: cells.len() }
    }

    fn hash(version: &str, settings: &Settings, cells: &[Cell], constants: &Value) -> String {
        let mut hash = Sha256::new();
        hash.update(version.as_bytes());
        // None can fail: keys are strings.
        hash.update(serde_json::to_vec(settings).unwrap_or_default());
        hash.update(serde_json::to_vec(cells).unwrap_or_default());
        hash.update(serde_json::to_vec(constants).unwrap_or_default());
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Header {
    /// Its line, without the end.
    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
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
    #[error("{file} has more than {max} bytes, which is most that is read")]
    TooLarge {
        /// The file.
        file: String,
        /// Most.
        max: u64,
    },
    /// A directory with results of another preset, whose reports would be overwritten.
    #[error(
        "{file} is none of the results of '{preset}', and both would write the same reports; give another --out"
    )]
    Foreign {
        /// The file that is there.
        file: String,
        /// The preset that was to be written.
        preset: String,
    },
    /// Merged results among those that are merged.
    #[error("{dir} is one of the directories that are merged; give another --out")]
    Source {
        /// The directory.
        dir: String,
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
    /// Opens the file of a shard in a directory, which is made; what is in it already is kept, and given back by cell.
    ///
    /// # Errors
    /// [`LedgerError`]; a file of another specification is refused, and so is a directory with results of another preset.
    pub fn open(
        dir: &Path,
        header: &Header,
        cells: &[Cell],
        shard: Shard,
    ) -> Result<(Self, Vec<Line>), LedgerError> {
        std::fs::create_dir_all(dir).map_err(io("create", dir))?;
        own(dir, header)?;
        let path = dir.join(file_name(header, shard));
        let mut done = Found::new();
        if path.exists() {
            let Read { header: found, lines, whole, rest } = read(&path)?;
            match found {
                Some(found) => same(&path, &found, header)?,
                // Our header, cut while it was written; anything else is somebody's file.
                None if header.text().starts_with(rest.trim_ascii()) => {}
                None => {
                    let message = "it has no whole line".to_owned();
                    return Err(LedgerError::Header { file: path.display().to_string(), message });
                }
            }
            take(&mut done, &path, lines, cells)?;
            let file = OpenOptions::new().write(true).open(&path).map_err(io("open", &path))?;
            file.set_len(whole).map_err(io("shorten", &path))?;
        }
        let file =
            OpenOptions::new().create(true).append(true).open(&path).map_err(io("open", &path))?;
        let mut ledger = Self { path, file };
        if ledger.file.metadata().map_err(io("read", &ledger.path))?.len() == 0 {
            ledger.write(header)?;
        }
        Ok((ledger, done.into_values().map(|(line, _)| line).collect()))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// Writing fails.
    pub fn add(
        &mut self,
        index: usize,
        cell: &Cell,
        measured: &Measured,
    ) -> Result<(), LedgerError> {
        let Measured { result, times } = measured.clone();
        self.write(&Line { index, cell: cell.name.clone(), result, times })
    }

    fn write(&mut self, value: &impl Serialize) -> Result<(), LedgerError> {
        let mut text = serde_json::to_vec(value).unwrap_or_default();
        text.push(b'\n');
        self.file.write_all(&text).map_err(io("write", &self.path))
    }
}

/// What a file holds.
struct Read {
    header: Option<Header>,
    /// With their numbers, from 1.
    lines: Vec<(usize, Line)>,
    /// How many bytes of the file are whole lines.
    whole: u64,
    /// What follows them.
    rest: Vec<u8>,
}

/// Results with where they stand, by cell.
type Found = BTreeMap<usize, (Line, String)>;

/// Adds the lines of a file; refuses those of no cell and of a cell that has a result already.
fn take(
    all: &mut Found,
    path: &Path,
    lines: Vec<(usize, Line)>,
    cells: &[Cell],
) -> Result<(), LedgerError> {
    for (number, line) in lines {
        check(path, number, &line, cells)?;
        let second = format!("{}:{number}", path.display());
        if let Some((line, first)) = all.get(&line.index) {
            let (cell, first) = (line.cell.clone(), first.clone());
            return Err(LedgerError::Twice { cell, first, second });
        }
        all.insert(line.index, (line, second));
    }
    Ok(())
}

/// Refuses a directory with results that are none of this preset: reports have the same names for all.
///
/// # Errors
/// [`LedgerError::Foreign`] with the first such file.
pub fn own(dir: &Path, header: &Header) -> Result<(), LedgerError> {
    let preset = super::word(header.settings.preset);
    let ours = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let rest = stem.strip_prefix(&preset);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    if !dir.exists() {
        return Ok(());
    }
    match files(&[dir.to_owned()])?.iter().find(|path| !ours(path)) {
        Some(path) => Err(LedgerError::Foreign { file: path.display().to_string(), preset }),
        None => Ok(()),
    }
}

/// Refuses to write merged results among what they are merged of.
///
/// # Errors
/// [`LedgerError::Source`], and as [`own`].
pub fn apart(out: &Path, dirs: &[PathBuf], header: &Header) -> Result<(), LedgerError> {
    let real = |dir: &Path| std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    if dirs.iter().any(|dir| real(dir) == real(out)) {
        return Err(LedgerError::Source { dir: out.display().to_string() });
    }
    own(out, header)
}

/// Reads a file up to its last whole line.
fn read(path: &Path) -> Result<Read, LedgerError> {
    let name = || path.display().to_string();
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut text))
        .map_err(io("read", path))?;
    if text.len() as u64 > FILE_MAX {
        return Err(LedgerError::TooLarge { file: name(), max: FILE_MAX });
    }
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let rest = text[end..].to_vec();
    let numbered = (1..).zip(text[..end].split(|byte| *byte == b'\n'));
    let mut lines = numbered.filter(|(_, line)| !line.is_empty());
    let Some((_, first)) = lines.next() else {
        return Ok(Read { header: None, lines: Vec::new(), whole: 0, rest });
    };
    let header = serde_json::from_slice(first)
        .map_err(|error| LedgerError::Header { file: name(), message: error.to_string() })?;
    let mut found = Vec::new();
    for (number, line) in lines {
        let line = serde_json::from_slice(line).map_err(|error| LedgerError::Line {
            file: name(),
            line: number,
            message: error.to_string(),
        })?;
        found.push((number, line));
    }
    Ok(Read { header: Some(header), lines: found, whole: end as u64, rest })
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
        if let Some(header) = read(&path)?.header {
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
    let mut all = Found::new();
    let files = files(dirs)?;
    for path in &files {
        let Read { header: found, lines, .. } = read(path)?;
        let Some(found) = found else { continue };
        same(path, &found, header)?;
        take(&mut all, path, lines, cells)?;
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
