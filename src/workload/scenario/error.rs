//! What can be wrong with a scenario file. In: place and offending value. Out: a sentence with file, line, key and
//! remedy. Must not know: how it was noticed.

use crate::topology::generate::GenerateError;
use crate::topology::import::ImportError;
use crate::units::UnitError;
use crate::workload::FlowError;
use crate::workload::place::NoRoom;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the file as given.
    pub file: String,
    /// Line from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Column from 1, in characters.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line == 0 {
            return write!(f, "{}", self.file);
        }
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Why a scenario file cannot be used, and where.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ScenarioError {
    /// Where.
    pub place: Place,
    /// What, and what to do. The message above contains it whole, so it is no `source`.
    pub problem: Box<Problem>,
}

/// What is wrong; every variant says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error("cannot read the file: {source}; check the path and its permissions")]
    Io {
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is larger than any scenario.
    #[error("the file has {bytes} bytes; a scenario has at most {max}, is this the right file?")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// Largest size.
        max: u64,
    },
    /// Not text.
    #[error("the file is not UTF-8 text; save it as UTF-8, or is this the right file?")]
    NotText,
    /// Not TOML.
    #[error("not valid TOML: {message}")]
    Syntax {
        /// What the parser says.
        message: String,
    },
    /// A key that means nothing.
    #[error("{section} has no key '{key}'{hint}; known keys: {known}")]
    UnknownKey {
        /// Where it stands.
        section: String,
        /// The key.
        key: String,
        /// "did you mean".
        hint: String,
        /// All keys.
        known: String,
    },
    /// A key that means nothing for this kind.
    #[error(
        "'{key}' does not belong to {section} of kind '{kind}'; remove it (keys of '{kind}': {known})"
    )]
    KeyNotForKind {
        /// Where it stands.
        section: String,
        /// The key.
        key: String,
        /// The kind.
        kind: String,
        /// Keys of this kind.
        known: String,
    },
    /// A key that has to be there.
    #[error("{section} needs '{key}'; write for example {key} = {example}")]
    MissingKey {
        /// Where it is missing.
        section: String,
        /// The key.
        key: String,
        /// A value that would do.
        example: &'static str,
    },
    /// Two keys that exclude each other.
    #[error("{section} has both '{first}' and '{second}'; keep one of them ({why})")]
    BothKeys {
        /// Where they stand.
        section: String,
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why not both.
        why: &'static str,
    },
    /// A value of the wrong type.
    #[error("'{key}' is {found}; it must be {wanted}")]
    WrongType {
        /// The key.
        key: String,
        /// What was written.
        found: String,
        /// What is needed, with an example.
        wanted: &'static str,
    },
    /// A quantity without or with a wrong unit.
    #[error("'{key}': {source}")]
    Unit {
        /// The key.
        key: String,
        /// What is wrong with it.
        source: UnitError,
    },
    /// A number out of range.
    #[error("'{key}' is {value}; it must lie between {min} and {max}")]
    OutOfRange {
        /// The key.
        key: String,
        /// What was written.
        value: String,
        /// Smallest.
        min: String,
        /// Largest.
        max: String,
    },
    /// A range whose end comes before its start.
    #[error("'{key}' ends before it starts; write [earliest, latest]")]
    EmptyRange {
        /// The key.
        key: String,
    },
    /// A word that is none of the choices.
    #[error("'{key}' is '{value}'{hint}; choose one of {choices}")]
    UnknownChoice {
        /// The key.
        key: String,
        /// What was written.
        value: String,
        /// "did you mean".
        hint: String,
        /// What exists.
        choices: String,
    },
    /// An empty name, or one that tables and paths could not show.
    #[error("'{key}' is '{value}'; write 1 to 64 letters, digits, '-', '_' or '.'")]
    BadName {
        /// The key.
        key: String,
        /// What was written.
        value: String,
    },
    /// A fabric that cannot be built from the numbers.
    #[error("[fabric] cannot be built: {source}")]
    Fabric {
        /// Why.
        source: GenerateError,
    },
    /// A fabric file that cannot be opened.
    #[error("'file': cannot read {file}: {source}; give a path relative to the scenario file")]
    FabricFile {
        /// The path tried.
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A fabric file that cannot be understood.
    #[error("[fabric] file: {source}")]
    Import {
        /// Where in that file, and why.
        source: ImportError,
    },
    /// No jobs.
    #[error("the scenario has no jobs; add at least one [[job]] with a name, a model and workers")]
    NoJobs,
    /// More jobs or events than supported.
    #[error("the scenario has {count} {what}; at most {max} are supported")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many.
        count: u64,
        /// Most.
        max: u64,
    },
    /// Two jobs of one name.
    #[error("a second job is called '{name}'; names must be unique")]
    DuplicateJob {
        /// The name.
        name: String,
    },
    /// A model that the table does not have.
    #[error(
        "there is no model '{model}'{hint}; known models: {known}; or give bytes and compute instead"
    )]
    UnknownModel {
        /// What was written.
        model: String,
        /// "did you mean".
        hint: String,
        /// All models.
        known: String,
    },
    /// A job without size.
    #[error(
        "{section} has neither 'model' nor 'bytes'; write model = \"bert-large\", or bytes and compute"
    )]
    NoSize {
        /// The job.
        section: String,
    },
    /// A host or switch that the fabric does not have.
    #[error("'{key}': the fabric has no {what} '{name}'{hint}")]
    UnknownNode {
        /// The key.
        key: String,
        /// Host or node.
        what: &'static str,
        /// What was written.
        name: String,
        /// "did you mean", or which names exist.
        hint: String,
    },
    /// A node that exists but is of the other sort.
    #[error("'{key}': '{name}' is a {is}; give the name of a {needs}")]
    WrongNode {
        /// The key.
        key: String,
        /// The node.
        name: String,
        /// What it is.
        is: &'static str,
        /// What is needed.
        needs: &'static str,
    },
    /// Two nodes without a cable between them.
    #[error("'{key}': no cable joins '{a}' and '{b}'; '{a}' is cabled to {neighbours}")]
    NoCable {
        /// The key.
        key: String,
        /// One node.
        a: String,
        /// The other.
        b: String,
        /// What the first is cabled to.
        neighbours: String,
    },
    /// A cable that is not written as two names.
    #[error(
        "'{key}' is '{value}'; write a cable as \"leaf1-spine2\" or [\"leaf1\", \"spine2\"], or \"random\""
    )]
    BadCable {
        /// The key.
        key: String,
        /// What was written.
        value: String,
    },
    /// Both ends of a flow on one host.
    #[error("'{key}': a flow from '{name}' to itself uses no network; name two hosts")]
    SameHost {
        /// The key.
        key: String,
        /// The host.
        name: String,
    },
    /// Workers that make no ring.
    #[error("'{key}': {source}")]
    Ring {
        /// The key.
        key: String,
        /// Why.
        source: FlowError,
    },
    /// More workers than places.
    #[error("{source}")]
    NoRoom {
        /// Numbers.
        source: NoRoom,
    },
    /// An event about a job that does not exist.
    #[error("'{key}': no job is called '{name}'{hint}")]
    UnknownJob {
        /// The key.
        key: String,
        /// What was written.
        name: String,
        /// "did you mean".
        hint: String,
    },
    /// A job with two starts.
    #[error("'{key}': job '{name}' already has a start; remove its 'start', or this event")]
    StartTwice {
        /// The key.
        key: String,
        /// The job.
        name: String,
    },
    /// A job that leaves before it comes.
    #[error(
        "'{key}': job '{name}' would depart before it starts; move the departure after {start}"
    )]
    DepartsEarly {
        /// The key.
        key: String,
        /// The job.
        name: String,
        /// When it starts.
        start: String,
    },
    /// A cable that comes up without having gone down.
    #[error("'{key}': the cable {a} - {b} is not down at that time; put a link-down before it")]
    NotDown {
        /// The key.
        key: String,
        /// One end.
        a: String,
        /// Other end.
        b: String,
    },
    /// A target "random" where there is nothing to draw from.
    #[error("'{key}': there is no cable between two switches to draw from; name a cable")]
    NothingToDraw {
        /// The key.
        key: String,
    },
}
