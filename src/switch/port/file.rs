//! A port on packet files, for running a program over captures without root. In: `NAME_in.pcap`. Out: its packets at their time;
//! `NAME_out.pcap`. Part of `port`.

use super::pcap::{PcapError, Reader, Record};
use super::record::Recorder;
use crate::time::{Span, Time};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use thiserror::Error;

/// Why a port cannot have its files.
#[derive(Debug, Error)]
pub enum FileError {
    /// The packets cannot be read.
    #[error("{file}")]
    In {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: PcapError,
    },
    /// The packets cannot be written.
    #[error("cannot write {file}")]
    Out {
        /// The file.
        file: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A port on two files.
#[derive(Debug)]
pub struct Files {
    name: String,
    reader: Option<Reader<BufReader<File>>>,
    /// The next packet, if `reader` is there.
    record: Record,
    writer: Recorder,
}

impl Files {
    /// Opens `FOLDER/NAME_in.pcap` and makes `FOLDER/NAME_out.pcap`. A port without a file has nothing to read.
    ///
    /// # Errors
    /// The file is no pcap file; no file can be made.
    pub fn open(folder: &Path, name: &str) -> Result<Self, FileError> {
        let path = folder.join(format!("{name}_in.pcap"));
        let read = |source| FileError::In { file: path.display().to_string(), source };
        let reader = match File::open(&path) {
            Ok(file) => Some(Reader::new(BufReader::new(file)).map_err(read)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(read(error.into())),
        };
        let file = format!("{}", folder.join(format!("{name}_out.pcap")).display());
        let writer = Recorder::create(folder, name, "out");
        let writer = writer.map_err(|source| FileError::Out { file, source })?;
        let name = path.display().to_string();
        let mut files = Self { name, reader, record: Record::default(), writer };
        files.step();
        Ok(files)
    }

    /// Reads the next packet.
    fn step(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        match reader.next(&mut self.record) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::warn!("{}: {error}; its other packets are left out", self.name),
        }
        self.reader = None;
    }

    /// When the next packet was captured, nanoseconds since 1970; `None` at the end.
    #[must_use]
    pub fn captured_at(&self) -> Option<u64> {
        self.reader.as_ref().map(|_| self.record.time_ns)
    }

    /// When the next packet comes in, if packets of `origin` come in at `start`.
    #[must_use]
    pub fn next_at(&self, start: Time, origin: u64) -> Option<Time> {
        self.captured_at().map(|at| start + Span(at.saturating_sub(origin)))
    }

    /// Gives the next packet, `None` for one that the capture has cut, and goes on to the one behind it.
    pub fn receive(&mut self, give: impl FnOnce(Option<&[u8]>)) {
        let whole = self.record.bytes.len() >= self.record.length as usize;
        give(whole.then_some(self.record.bytes.as_slice()));
        self.step();
    }

    /// Writes a packet.
    pub fn push(&mut self, time_ns: u64, frame: &[u8]) -> bool {
        self.writer.write(time_ns, frame)
    }

    /// Hands on what is buffered.
    pub fn flush(&mut self) -> bool {
        self.writer.flush()
    }
}
