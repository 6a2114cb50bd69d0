//! Packet files as libpcap writes them. In: bytes of such a file; packets with a time. Out: packets with a time; bytes that tcpdump and
//! tshark read. Must not know ports.

use std::io::{self, Read, Write};
use thiserror::Error;

/// Magic number of files with microseconds, and with nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// First word of a pcapng file.
const PCAPNG: u32 = 0x0a0d_0d0a;
/// The only kind of link that a v1model program can parse.
const ETHERNET: u32 = 1;
/// Longest packet in a file (libpcap's own limit); a longer one means that the file is broken.
pub const PACKET_BYTES_MAX: u32 = 262_144;

/// Why a file of packets cannot be read.
#[derive(Debug, Error)]
pub enum PcapError {
    /// It does not begin as one.
    #[error("not a pcap file: it begins with {0:02x?}; write one with `tcpdump -w FILE`")]
    Magic([u8; 4]),
    /// The newer format.
    #[error("a pcapng file; convert it with `editcap -F pcap IN OUT` or `tcpdump -r IN -w OUT`")]
    Pcapng,
    /// Not Ethernet.
    #[error("its link type is {0}, not Ethernet (1); capture at an Ethernet interface")]
    LinkType(u32),
    /// It ends within a packet.
    #[error("it ends in the middle of packet {0}; was the capture still running?")]
    Cut(u64),
    /// A length that cannot be.
    #[error(
        "packet {number} claims {bytes} bytes, more than {PACKET_BYTES_MAX}; the file is broken"
    )]
    Length {
        /// Which packet, from 1.
        number: u64,
        /// Its length.
        bytes: u32,
    },
    /// The system's.
    #[error("cannot be read")]
    Read(#[from] io::Error),
}

/// A packet of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// When it was captured, nanoseconds since 1970.
    pub time_ns: u64,
    /// What was captured of it.
    pub bytes: Vec<u8>,
    /// Bytes that it had on the wire; more than in `bytes` when the capture cut it.
    pub length: u32,
}

/// Reads packets one by one.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    swapped: bool,
    nanoseconds: bool,
    number: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the file's header.
    ///
    /// # Errors
    /// It is no pcap file of Ethernet packets.
    pub fn new(mut from: R) -> Result<Self, PcapError> {
        let mut header = [0; 24];
        let got = fill(&mut from, &mut header)?;
        let magic = [header[0], header[1], header[2], header[3]];
        let word = u32::from_le_bytes(magic);
        let (swapped, nanoseconds) = match (word, word.swap_bytes()) {
            (MICROSECONDS, _) => (false, false),
            (NANOSECONDS, _) => (false, true),
            (_, MICROSECONDS) => (true, false),
            (_, NANOSECONDS) => (true, true),
            (PCAPNG, _) => return Err(PcapError::Pcapng),
            _ => return Err(PcapError::Magic(magic)),
        };
        if got < header.len() {
            return Err(PcapError::Cut(0));
        }
        let reader = Self { from, swapped, nanoseconds, number: 0 };
        // The upper bits tell whether a frame check sequence follows.
        match reader.word(&header, 20) & 0x0fff_ffff {
            ETHERNET => Ok(reader),
            other => Err(PcapError::LinkType(other)),
        }
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes.get(at..at + 4).and_then(|four| four.first_chunk::<4>());
        let word = u32::from_le_bytes(word.copied().unwrap_or_default());
        if self.swapped { word.swap_bytes() } else { word }
    }

    /// The next packet into `record`; false at the end.
    ///
    /// # Errors
    /// The file is broken or cannot be read.
    pub fn next(&mut self, record: &mut Record) -> Result<bool, PcapError> {
        let mut header = [0; 16];
        let got = fill(&mut self.from, &mut header)?;
        if got == 0 {
            return Ok(false);
        }
        self.number += 1;
        if got < header.len() {
            return Err(PcapError::Cut(self.number));
        }
        let bytes = self.word(&header, 8);
        if bytes > PACKET_BYTES_MAX {
            return Err(PcapError::Length { number: self.number, bytes });
        }
        let unit = if self.nanoseconds { 1 } else { 1_000 };
        let (seconds, part) = (self.word(&header, 0), self.word(&header, 4));
        record.time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(part) * unit;
        record.length = self.word(&header, 12);
        record.bytes.resize(bytes as usize, 0);
        if fill(&mut self.from, &mut record.bytes)? < record.bytes.len() {
            return Err(PcapError::Cut(self.number));
        }
        Ok(true)
    }
}

/// Reads until the buffer is full or the source ends; returns how much.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match from.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(got) => done += got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes packets.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Writes the file's header.
    ///
    /// # Errors
    /// The sink's.
    pub fn new(mut to: W) -> io::Result<Self> {
        for word in [NANOSECONDS, 0x0004_0002, 0, 0, PACKET_BYTES_MAX, ETHERNET] {
            to.write_all(&word.to_le_bytes())?;
        }
        Ok(Self(to))
    }

    /// Writes a packet with its time, nanoseconds since 1970.
    ///
    /// # Errors
    /// The sink's.
    pub fn write(&mut self, time_ns: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u32;
        let (seconds, part) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
        for word in [seconds as u32, part as u32, length, length] {
            self.0.write_all(&word.to_le_bytes())?;
        }
        self.0.write_all(bytes)
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// The sink's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<Vec<Record>, PcapError> {
        let mut reader = Reader::new(bytes)?;
        let (mut all, mut record) = (Vec::new(), Record::default());
        while reader.next(&mut record)? {
            all.push(record.clone());
        }
        Ok(all)
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).unwrap();
        writer.write(1_700_000_000_123_456_789, &[1; 60]).unwrap();
        writer.write(1_700_000_001_000_000_001, &[2; 3]).unwrap();
        writer.flush().unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read_back() {
        let want = [
            Record { time_ns: 1_700_000_000_123_456_789, bytes: vec![1; 60], length: 60 },
            Record { time_ns: 1_700_000_001_000_000_001, bytes: vec![2; 3], length: 3 },
        ];
        assert_eq!(read(&written()).unwrap(), want);
    }

    #[test]
    fn files_of_either_byte_order_with_microseconds_are_read_and_cut_packets_are_told() {
        for big in [false, true] {
            let words = [MICROSECONDS, 0, 0, 0, 96, 1, 5, 7, 2, 1_000];
            let order = |word: u32| if big { word.to_be_bytes() } else { word.to_le_bytes() };
            let mut bytes: Vec<u8> = words.into_iter().flat_map(order).collect();
            bytes.extend([0xaa, 0xbb]);
            let want = Record { time_ns: 5_000_007_000, bytes: vec![0xaa, 0xbb], length: 1_000 };
            assert_eq!(read(&bytes).unwrap(), [want]);
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_the_reader_panic_or_give_more_than_there_is(
            head in prop_oneof![Just(Vec::new()), Just(written())],
            rest in proptest::collection::vec(any::<u8>(), 0..200),
            at in any::<proptest::sample::Index>(),
            value in any::<u8>(),
        ) {
            let mut bytes = [head, rest].concat();
            if !bytes.is_empty() {
                *at.get_mut(&mut bytes) = value;
            }
            if let Ok(records) = read(&bytes) {
                let total: usize = records.iter().map(|record| 16 + record.bytes.len()).sum();
                prop_assert_eq!(total + 24, bytes.len());
            }
        }
    }

    #[test]
    fn broken_files_are_refused_with_the_place() {
        let good = written();
        let changed = |at: usize, word: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
            bytes
        };
        for (bytes, text) in [
            (good[..good.len() - 1].to_vec(), "middle of packet 2"),
            (good[..30].to_vec(), "middle of packet 1"),
            (good[..10].to_vec(), "middle of packet 0"),
            (changed(0, PCAPNG), "pcapng"),
            (changed(0, 7), "not a pcap file"),
            (changed(20, 113), "link type is 113"),
            (changed(32, 300_000), "packet 1 claims 300000"),
            (Vec::new(), "not a pcap file"),
        ] {
            let error = read(&bytes).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
