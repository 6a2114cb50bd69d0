//! Records a port's packets. In: packets with the time of day. Out: `NAME_in.pcap` and `NAME_out.pcap`, as simple_switch_grpc's `--pcap`
//! writes them. Part of `port`.

use super::pcap::Writer;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Bytes that wait for one system call; flushed whenever the switch has nothing else to do.
const BUFFER: usize = 1 << 16;

/// One file.
#[derive(Debug)]
pub struct Recorder {
    writer: Writer<BufWriter<File>>,
    dirty: bool,
}

impl Recorder {
    /// Makes `DIR/NAME_SIDE.pcap` anew.
    ///
    /// # Errors
    /// The system's.
    pub fn create(folder: &Path, name: &str, side: &str) -> io::Result<Self> {
        let file = File::create(folder.join(format!("{name}_{side}.pcap")))?;
        let mut writer = Writer::new(BufWriter::with_capacity(BUFFER, file))?;
        writer.flush()?;
        Ok(Self { writer, dirty: false })
    }

    /// Writes a packet; false if the disk is full or the like.
    pub fn write(&mut self, time_ns: u64, bytes: &[u8]) -> bool {
        self.dirty = true;
        self.writer.write(time_ns, bytes).is_ok()
    }

    /// Hands on what is buffered; false as for `write`.
    pub fn flush(&mut self) -> bool {
        !std::mem::take(&mut self.dirty) || self.writer.flush().is_ok()
    }
}
