//! A port on a Linux interface. In: the interface's name. Out: whole frames; the state of the link. Must not know the switch.
//!
//! ```text
//!            made anew, or first seen
//!   absent ───────────────────────────► open, down ◄──────► open, up
//!      ▲                                    │                  │
//!      └──────────── deleted, or moved to another namespace ───┘
//! ```
//! The link is looked at when the kernel tells that some link has changed, when a socket reports an error, and once a second
//! ([`AGAIN`]) while it is absent. It is found by its name, so an interface that is deleted and made anew is the same port.

use super::frame::{Cutter, finish};
use super::ring::{Link, Links, RxRing, SEND_MAX, Taken, TxSocket};
use super::{Counters, Face, count};
use crate::time::Span;
use std::io::ErrorKind;
use std::os::fd::RawFd;
use std::sync::Arc;

/// Between two attempts to open an interface that is not there, or that could not be opened.
pub const AGAIN: Span = Span(1_000_000_000);

/// What comes in.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A frame.
    Frame(&'a [u8]),
    /// A frame that was too long.
    TooLong,
}

/// Frames that wait for the next system call, in one piece of memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each frame ends.
    ends: Vec<usize>,
    /// Frames that are gone.
    gone: usize,
}

impl Batch {
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.bytes.extend_from_slice(frame);
        self.ends.push(self.bytes.len());
    }

    /// Frames pushed since it was last empty.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.ends.len() - self.gone
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied()).skip(self.gone);
        ranges.filter_map(|(start, end)| self.bytes.get(start..end))
    }

    pub(super) fn advance(&mut self, frames: usize) {
        self.gone += frames;
        if self.gone >= self.ends.len() {
            self.bytes.clear();
            self.ends.clear();
            self.gone = 0;
        }
    }
}

struct Open {
    link: Link,
    ring: RxRing,
    socket: TxSocket,
}

/// A port on an interface.
pub struct Interface {
    face: Arc<Face>,
    open: Option<Open>,
    batch: Batch,
    pub(super) cutter: Cutter,
}

impl Interface {
    /// A port that is not open yet.
    #[must_use]
    pub fn new(face: Arc<Face>) -> Self {
        Self { face, open: None, batch: Batch::default(), cutter: Cutter::default() }
    }

    /// A port that is up at these sockets.
    #[cfg(test)]
    pub(super) fn over(face: Arc<Face>, ring: RxRing, socket: TxSocket) -> Self {
        let open = Open { link: Link { index: 1, up: true, mtu: 1_500 }, ring, socket };
        Self { open: Some(open), ..Self::new(face) }
    }

    /// Whether the interface is there and open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// To wait on for frames, and for room.
    #[must_use]
    pub fn fds(&self) -> Option<(RawFd, RawFd)> {
        self.open.as_ref().map(|open| (open.ring.fd(), open.socket.fd()))
    }

    /// Looks at the interface anew, and opens it if it is there. Returns whether the port is up, and why.
    ///
    /// # Errors
    /// The interface is not there, or cannot be opened; the port is then down.
    pub fn look(&mut self, links: &Links) -> Result<Link, std::io::Error> {
        let found = links.get(&self.face.name);
        if let Some(open) = &mut self.open {
            // Clears what made the wait end.
            let _ = (open.ring.error(), open.socket.error());
            match &found {
                Ok(link) if link.index == open.link.index => open.link = *link,
                _ => self.open = None,
            }
        }
        let link = found.and_then(|link| self.opened(link));
        if !matches!(link, Ok(Link { up: true, .. })) {
            let lost = self.batch.waiting();
            count(&self.face.counters.down, lost as u64);
            self.batch.advance(lost);
        }
        link
    }

    fn opened(&mut self, link: Link) -> Result<Link, std::io::Error> {
        if self.open.is_none() {
            let ring = RxRing::open(link.index, link.mtu)?;
            self.open = Some(Open { link, ring, socket: TxSocket::open(link.index)? });
        }
        Ok(link)
    }

    /// Whether a frame can be had that no descriptor tells of: the next piece of a long segment.
    #[must_use]
    pub fn has_piece(&self) -> bool {
        self.cutter.waits()
    }

    /// Gives the next frame, at most one: a piece of a long segment is one. Returns whether there was something, if only a frame to count.
    pub fn receive(&mut self, give: &mut dyn FnMut(Incoming<'_>)) -> bool {
        if self.cutter.next(&mut |piece| give(Incoming::Frame(piece))) {
            return true;
        }
        let Some(open) = &mut self.open else { return false };
        let (counters, cutter) = (&self.face.counters, &mut self.cutter);
        open.ring.take(&mut |taken| match taken {
            Taken::TooLong(_) => {
                count(&counters.long_in, 1);
                give(Incoming::TooLong);
            }
            Taken::Frame(received) => {
                if finish(received, cutter, &mut |frame| give(Incoming::Frame(frame))).is_err() {
                    count(&counters.uncut, 1);
                }
            }
        })
    }

    /// Reads the kernel's count of frames that found the ring full.
    pub fn count_overflow(&self) {
        if let Some(open) = &self.open {
            count(&self.face.counters.overflowed, open.ring.overflowed());
        }
    }

    /// Takes a frame to be sent with the next [`Interface::flush`]; returns whether it takes another one.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        self.batch.push(frame);
        self.batch.len() < SEND_MAX
    }

    /// Sends what was pushed. Returns whether all is gone; else the interface takes no more for now.
    pub fn flush(&mut self) -> bool {
        let counters = &self.face.counters;
        while self.batch.waiting() > 0 {
            let Some(open) = &self.open else {
                count(&counters.down, self.batch.waiting() as u64);
                self.batch.advance(self.batch.waiting());
                break;
            };
            match open.socket.send(self.batch.frames()) {
                Ok(sent) => self.batch.advance(sent),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    count(&counters.waits, 1);
                    return false;
                }
                Err(error) => {
                    count(counter_of(counters, &error), 1);
                    self.batch.advance(1);
                }
            }
        }
        true
    }
}

/// Where a packet is counted that the kernel refused with this error.
fn counter_of<'a>(
    counters: &'a Counters,
    error: &std::io::Error,
) -> &'a std::sync::atomic::AtomicU64 {
    match error.raw_os_error() {
        Some(libc::EMSGSIZE) => &counters.long_out,
        Some(libc::ENOBUFS) => &counters.refused,
        Some(libc::ENETDOWN | libc::ENODEV | libc::ENXIO) => &counters.down,
        _ => &counters.unfit,
    }
}
