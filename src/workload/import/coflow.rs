//! `coflow-benchmark` traces (`FB2010-1Hr-150-0.txt`): MapReduce shuffles of one hour on 150 racks.
//!
//! In: the text. Out: [`Shuffles`]. Must not know: rings; a shuffle is none, so whoever makes jobs of them says what was assumed.
//!
//! First line: ports and coflows. Then one line per coflow: `id arrival_ms mappers rack… reducers rack:MB…`.

use super::{ImportError, ImportProblem};
use crate::topology::MAX_PORT;
use crate::workload::scenario::MAX_SPAN;

/// Most coflows, mappers and reducers: far above any published trace.
const MAX_COUNT: u64 = 1_000_000;
/// Most ports: ten to a leaf, with one to spare for a trace that counts from 1, so that no spine has more ports than a switch may.
const MAX_PORTS: u64 = 10 * MAX_PORT as u64 - 1;
/// Latest arrival, ms: a scenario's jobs start within a day.
const MAX_ARRIVAL_MS: u64 = MAX_SPAN.0 / 1_000_000;
/// Most of all reducers of a coflow together, MB: a petabyte.
const MAX_MB: f64 = 1e9;

/// One coflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Shuffle {
    /// Its number in the file.
    pub id: u64,
    /// When it arrives, milliseconds after the start.
    pub arrival_ms: u64,
    /// Ports that send.
    pub mappers: Vec<u32>,
    /// Ports that receive, with what each receives of all mappers together, MB.
    pub reducers: Vec<(u32, f64)>,
}

impl Shuffle {
    /// Ports that take part, sorted, each once.
    #[must_use]
    pub fn ports(&self) -> Vec<u32> {
        let reducers = self.reducers.iter().map(|reducer| reducer.0);
        let mut ports: Vec<u32> = self.mappers.iter().copied().chain(reducers).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// All that is received, MB.
    #[must_use]
    pub fn total_mb(&self) -> f64 {
        self.reducers.iter().map(|reducer| reducer.1).sum()
    }
}

/// A trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shuffles {
    /// Ports (racks), numbered from 1 as far as the file goes; a file that counts from 0 has a port 0.
    pub ports: u32,
    /// By line.
    pub coflows: Vec<Shuffle>,
}

/// Reads a trace.
///
/// # Errors
/// [`ImportError`] with line and column.
pub fn coflows(bytes: &[u8], file: &str) -> Result<Shuffles, ImportError> {
    let text = super::text(bytes, file)?;
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((number, first)) = lines.next() else {
        return Err(super::whole(file, ImportProblem::NoCoflows));
    };
    let mut words = Words::new(file, number, first);
    let ports = words.count("the number of ports, at most 5089", MAX_PORTS)?;
    let wanted = words.count("the number of coflows", MAX_COUNT)?;
    words.end()?;
    let ports = u32::try_from(ports).unwrap_or(u32::MAX);
    let mut coflows = Vec::new();
    for (number, line) in lines {
        coflows.push(coflow(Words::new(file, number, line), ports)?);
    }
    let found = coflows.len() as u64;
    if found != wanted {
        return Err(super::whole(file, ImportProblem::CoflowCount { wanted, found }));
    }
    Ok(Shuffles { ports, coflows })
}

fn coflow(mut words: Words<'_>, ports: u32) -> Result<Shuffle, ImportError> {
    let id = words.count("a coflow's number", u64::MAX)?;
    let arrival_ms = words.count("an arrival in milliseconds, within a day", MAX_ARRIVAL_MS)?;
    let count = words.count("the number of mappers", MAX_COUNT)?;
    let mut mappers = Vec::new();
    for _ in 0..count {
        let (column, word) = words.next("a mapper's port")?;
        mappers.push(words.port(column, word, ports)?);
    }
    let count = words.count("the number of reducers", MAX_COUNT)?;
    let mut reducers = Vec::new();
    let mut sum = 0.0;
    for _ in 0..count {
        let wanted = "a reducer as port:MB";
        let (column, word) = words.next(wanted)?;
        let bad = || words.bad(column, wanted, word);
        let (port, mb) = word.split_once(':').ok_or_else(bad)?;
        let mb: f64 = mb.parse().map_err(|_| bad())?;
        sum += mb;
        if !(0.0..=MAX_MB).contains(&mb) || sum > MAX_MB {
            return Err(bad());
        }
        reducers.push((words.port(column, port, ports)?, mb));
    }
    words.end()?;
    Ok(Shuffle { id, arrival_ms, mappers, reducers })
}

/// Words of a line with their columns.
struct Words<'a> {
    file: &'a str,
    line: u64,
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn new(file: &'a str, line: u64, text: &'a str) -> Self {
        Self { file, line, text, at: 0 }
    }

    fn peek(&self) -> Option<(u64, &'a str)> {
        let rest = &self.text[self.at..];
        let start = rest.find(|c: char| !c.is_whitespace())?;
        let word = rest[start..].split(char::is_whitespace).next().unwrap_or("");
        Some(((self.at + start) as u64 + 1, word))
    }

    fn next(&mut self, wanted: &'static str) -> Result<(u64, &'a str), ImportError> {
        let Some((column, word)) = self.peek() else {
            let column = self.text.len() as u64 + 1;
            return Err(self.fail(column, ImportProblem::LineEnds { wanted }));
        };
        self.at = column as usize - 1 + word.len();
        Ok((column, word))
    }

    fn count(&mut self, wanted: &'static str, max: u64) -> Result<u64, ImportError> {
        let (column, word) = self.next(wanted)?;
        let value = word.parse::<u64>().ok().filter(|value| *value <= max);
        value.ok_or_else(|| self.bad(column, wanted, word))
    }

    fn port(&self, column: u64, word: &str, ports: u32) -> Result<u32, ImportError> {
        let wanted = "a port up to the number of ports in line 1";
        let port = word.parse::<u32>().ok().filter(|port| *port <= ports);
        port.ok_or_else(|| self.bad(column, wanted, word))
    }

    fn end(&self) -> Result<(), ImportError> {
        match self.peek() {
            None => Ok(()),
            Some((column, word)) => Err(self.bad(column, "the end of the line", word)),
        }
    }

    fn bad(&self, column: u64, wanted: &'static str, word: &str) -> ImportError {
        let text = word.chars().take(40).collect();
        self.fail(column, ImportProblem::BadWord { wanted, text })
    }

    fn fail(&self, column: u64, problem: ImportProblem) -> ImportError {
        ImportError { file: self.file.to_owned(), line: self.line, column, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "150 2\n1 0 2 3 4 2 4:6.0 9:10.5\n2 1500 1 150 1 7:0.5\n";

    #[test]
    fn ports_arrivals_and_amounts_are_read() {
        let trace = coflows(TEXT.as_bytes(), "fb.txt").unwrap();
        assert_eq!((trace.ports, trace.coflows.len()), (150, 2));
        let first = &trace.coflows[0];
        assert_eq!((first.id, first.arrival_ms, first.total_mb()), (1, 0, 16.5));
        assert_eq!(first.ports(), [3, 4, 9]);
        assert_eq!(trace.coflows[1].arrival_ms, 1500);
    }

    #[test]
    fn what_cannot_be_read_is_named_by_line_and_column() {
        let cases = [
            (TEXT.replace("9:10.5", "9-10.5"), "fb.txt:2:19: '9-10.5'"),
            (TEXT.replace("9:10.5", "9:-1"), "fb.txt:2:19: "),
            (TEXT.replace(" 9:10.5", ""), "fb.txt:2:18: the line ends"),
            (TEXT.replace("150 1 7", "151 1 7"), "fb.txt:3:10: '151'"),
            (TEXT.replace("7:0.5", "7:0.5 8"), "fb.txt:3:22: '8'"),
            (TEXT.replace("150 2", "150 3"), "fb.txt: "),
            (TEXT.replace("150 2", "many 2"), "fb.txt:1:1: 'many'"),
            (TEXT.replace("150 2", "5090 2"), "fb.txt:1:1: '5090'"),
            (TEXT.replace("2 1500", "2 86400001"), "fb.txt:3:3: '86400001'"),
            (TEXT.replace("4:6.0 9:10.5", "4:6e8 9:6e8"), "fb.txt:2:19: '9:6e8'"),
            (String::new(), "fb.txt: "),
        ];
        for (text, wanted) in cases {
            let error = coflows(text.as_bytes(), "fb.txt").unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{wanted} against {error}");
        }
    }
}
