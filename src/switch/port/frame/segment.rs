//! Cuts a long TCP or UDP segment, as a network card does (TSO, USO). In: the long frame, how much payload a piece may have. Out: the
//! pieces, one at a time, with lengths, identification, sequence numbers, flags and checksums of their own. Part of `frame`.

use super::{Unfit, checksum, sum};

/// `VIRTIO_NET_HDR_GSO_*`.
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP_L4: u8 = 5;

/// Pieces of one segment: 64 KiB at the smallest size that Linux's TCP makes, 36 bytes (`tcp_min_snd_mss` less time stamps), are 1,820. A
/// smaller size would only turn one frame into very many packets.
pub(super) const PIECES_MAX: usize = 2_048;

/// Flags that only the last piece has (FIN, PSH) and that only the first has (CWR).
const LAST_ONLY: u8 = 0x09;
const FIRST_ONLY: u8 = 0x80;

/// Where things stand in the long frame.
#[derive(Debug, Default)]
struct Headers {
    /// The IP header.
    ip: usize,
    v6: bool,
    /// The transport header.
    transport: usize,
    tcp: bool,
    payload: usize,
}

fn word(frame: &[u8], at: usize) -> Result<u16, Unfit> {
    let bytes = frame.get(at..at + 2).and_then(|bytes| bytes.first_chunk::<2>());
    bytes.map(|bytes| u16::from_be_bytes(*bytes)).ok_or(Unfit::Short)
}

fn byte(frame: &[u8], at: usize) -> Result<u8, Unfit> {
    frame.get(at).copied().ok_or(Unfit::Short)
}

fn headers(frame: &[u8], kind: u8) -> Result<Headers, Unfit> {
    let mut at = 12;
    while matches!(word(frame, at)?, 0x8100 | 0x88a8) {
        at += 4;
    }
    let ip = at + 2;
    let (v6, protocol, transport) = match word(frame, at)? {
        0x0800 => (false, byte(frame, ip + 9)?, ip + 4 * usize::from(byte(frame, ip)? & 15)),
        0x86dd => (true, byte(frame, ip + 6)?, ip + 40),
        _ => return Err(Unfit::Segment),
    };
    let (tcp, length) = match (kind, protocol) {
        (TCP_V4, 6) if !v6 => (true, 4 * usize::from(byte(frame, transport + 12)? >> 4)),
        (TCP_V6, 6) if v6 => (true, 4 * usize::from(byte(frame, transport + 12)? >> 4)),
        (UDP_L4, 17) => (false, 8),
        _ => return Err(Unfit::Segment),
    };
    if transport < ip + 20 || length < 8 || (tcp && length < 20) {
        return Err(Unfit::Short);
    }
    Ok(Headers { ip, v6, transport, tcp, payload: transport + length })
}

/// A long segment of which pieces are still to be given, so that whoever takes them can pause. Its memory is used again.
#[derive(Debug, Default)]
pub struct Cutter {
    frame: Vec<u8>,
    at: Headers,
    /// Bytes of payload in each piece.
    size: usize,
    next: usize,
    pieces: usize,
    piece: Vec<u8>,
}

impl Cutter {
    /// Whether there are pieces still to be given.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.next < self.pieces
    }

    /// Starts to cut `frame` into pieces of at most `size` bytes of payload; what waited is forgotten.
    ///
    /// # Errors
    /// The frame is of no kind that can be cut, shorter than it says, or makes more than [`PIECES_MAX`] pieces; nothing waits then.
    pub(super) fn load(&mut self, frame: &[u8], kind: u8, size: usize) -> Result<(), Unfit> {
        self.pieces = 0;
        let at = headers(frame, kind)?;
        let payload = frame.len().checked_sub(at.payload).filter(|_| size > 0);
        let pieces = payload.ok_or(Unfit::Short)?.div_ceil(size).max(1);
        if pieces > PIECES_MAX {
            return Err(Unfit::Pieces);
        }
        self.frame.clear();
        self.frame.extend_from_slice(frame);
        (self.at, self.size, self.next, self.pieces) = (at, size, 0, pieces);
        Ok(())
    }

    /// Gives the next piece; returns whether there was one.
    pub fn next(&mut self, give: &mut dyn FnMut(&[u8])) -> bool {
        if !self.waits() {
            return false;
        }
        let (head, payload) = self.frame.split_at(self.at.payload);
        let (number, from) = (self.next, self.next * self.size);
        self.next += 1;
        self.piece.clear();
        self.piece.extend_from_slice(head);
        self.piece.extend_from_slice(&payload[from..payload.len().min(from + self.size)]);
        let last = self.next == self.pieces;
        mend(&mut self.piece, &self.at, from as u32, (number as u16, last));
        give(&self.piece);
        true
    }
}

fn put(piece: &mut [u8], at: usize, value: u16) {
    piece[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Makes the copied headers those of a piece that begins `offset` bytes into the payload. The headers are there: `headers` looked.
fn mend(piece: &mut [u8], at: &Headers, offset: u32, (number, last): (u16, bool)) {
    let length = piece.len() - at.transport;
    if at.v6 {
        put(piece, at.ip + 4, length as u16);
    } else {
        let identification = u16::from_be_bytes([piece[at.ip + 4], piece[at.ip + 5]]);
        put(piece, at.ip + 2, (piece.len() - at.ip) as u16);
        put(piece, at.ip + 4, identification.wrapping_add(number));
        put(piece, at.ip + 10, 0);
        let value = checksum(sum(&piece[at.ip..at.transport]));
        put(piece, at.ip + 10, value);
    }
    let (protocol, field) = if at.tcp { (6, at.transport + 16) } else { (17, at.transport + 6) };
    if at.tcp {
        let mut sequence = [0; 4];
        sequence.copy_from_slice(&piece[at.transport + 4..at.transport + 8]);
        let sequence = u32::from_be_bytes(sequence).wrapping_add(offset);
        piece[at.transport + 4..at.transport + 8].copy_from_slice(&sequence.to_be_bytes());
        let flags = &mut piece[at.transport + 13];
        *flags &= !(if last { 0 } else { LAST_ONLY } | if number == 0 { 0 } else { FIRST_ONLY });
    } else {
        put(piece, at.transport + 4, length as u16);
    }
    put(piece, field, 0);
    let addresses = if at.v6 { at.ip + 8..at.ip + 40 } else { at.ip + 12..at.ip + 20 };
    let pseudo = sum(&piece[addresses]) + protocol + length as u64;
    let value = checksum(pseudo + sum(&piece[at.transport..]));
    put(piece, field, value);
}
