//! All ports of a switch, for the thread that drives it. In: what is wanted on the command line; the switch; the time. Out: packets into the
//! switch in bursts, batches of packets to interfaces, ports set up and down. Part of `port`.

use super::file::{FileError, Files};
use super::interface::{AGAIN, Incoming, Interface};
use super::record::Recorder;
use super::ring::{Link, Links, SEND_MAX, Waker, Watch};
use super::{Board, Event, Face, PORT_MAX, Spec, count};
use crate::id::PortNo;
use crate::switch::{Drop, Sent, Switch, Taken};
use crate::time::{Span, Time};
use crate::units::BitRate;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Frames from one port between two looks at what leaves, each piece of a long segment one of them. Fewer than a queue usually holds (64), so that a
/// burst alone fills none; enough that lock, clock and system calls are shared by many.
const BURST: usize = 32;

/// Why the ports cannot be had.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A port or an interface is named twice.
    #[error("{0} is given twice; each port has one interface, and each interface one port")]
    Twice(String),
    /// There is no such interface.
    #[error(
        "there is no interface {0}; `ip link` lists those of this network namespace, `ip link add {0} type veth peer name PEER` makes a pair"
    )]
    Absent(String),
    /// Not allowed.
    #[error(
        "no right to open packet sockets on {0}; run as root or give CAP_NET_RAW (`sudo setcap cap_net_raw+ep PROGRAM`)"
    )]
    Denied(String),
    /// The system does not let us.
    #[error("cannot open {name}")]
    Open {
        /// The interface.
        name: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Packet files.
    #[error(transparent)]
    File(#[from] FileError),
    /// The folder for packet files.
    #[error("'{}' is no folder; make it first (when it is the program: write --pcap=. and the program behind it)", .0.display())]
    Folder(PathBuf),
}

enum Kind {
    Interface(Interface),
    Files(Files),
}

struct Slot {
    face: Arc<Face>,
    kind: Kind,
    /// What comes in and what goes out.
    recorders: Option<(Recorder, Recorder)>,
    /// The switch was told that it is full.
    held: bool,
    /// Frames wait until the interface takes more; nothing is sent before its socket is ready or its link has gone.
    waiting: bool,
}

/// A switch's ports.
#[derive(Default)]
pub struct Ports {
    board: Arc<Board>,
    /// In order of number.
    slots: Vec<Slot>,
    /// Place in `slots` of each port.
    index: Vec<Option<u16>>,
    links: Option<Links>,
    /// Ports to be set up or down in the switch.
    changes: Vec<(Arc<Face>, bool)>,
    look_at: Time,
    /// Time of day when the switch's clock began, nanoseconds since 1970.
    began_ns: u64,
    /// When the first packet of the files comes in, and when it was captured.
    files: Option<(Time, u64)>,
    watches: Vec<Watch>,
    ready: Vec<usize>,
}

/// Ports wanted, with the rate of each one's shaper.
pub type Wanted = [(Spec, Option<BitRate>)];

impl Ports {
    fn new(wanted: &Wanted) -> Result<(Self, Vec<Arc<Face>>), OpenError> {
        let mut wanted: Vec<_> = wanted.iter().collect();
        wanted.sort_by_key(|(spec, _)| spec.port);
        let mut names: Vec<_> = wanted.iter().map(|(spec, _)| spec.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(OpenError::Twice(format!("interface {}", pair[0])));
        }
        if let Some(pair) = wanted.windows(2).find(|pair| pair[0].0.port == pair[1].0.port) {
            return Err(OpenError::Twice(format!("port {}", pair[0].0.port.0)));
        }
        let faces: Vec<_> =
            wanted.iter().map(|(spec, rate)| Arc::new(Face::new(spec, *rate))).collect();
        let mut index = vec![None; usize::from(PORT_MAX) + 1];
        for (place, face) in faces.iter().enumerate() {
            if let Some(slot) = index.get_mut(usize::from(face.port.0)) {
                *slot = Some(place as u16);
            }
        }
        let board = Arc::new(Board::new(faces.clone()));
        Ok((Self { board, index, ..Self::default() }, faces))
    }

    /// Opens interfaces. With a folder, the packets of each are recorded there.
    ///
    /// # Errors
    /// One of them is not there or not ours.
    pub fn interfaces(wanted: &Wanted, pcap: Option<&Path>) -> Result<Self, OpenError> {
        let (mut ports, faces) = Self::new(wanted)?;
        if let Some(folder) = pcap.filter(|folder| !folder.is_dir()) {
            return Err(OpenError::Folder(folder.to_owned()));
        }
        if faces.is_empty() {
            return Ok(ports);
        }
        let failed = |name: &str, source: std::io::Error| match source.raw_os_error() {
            Some(libc::ENODEV) => OpenError::Absent(name.to_owned()),
            Some(libc::EPERM | libc::EACCES) => OpenError::Denied(name.to_owned()),
            _ => OpenError::Open { name: name.to_owned(), source },
        };
        let links = Links::open().map_err(|error| failed("links", error))?;
        for face in faces {
            let mut interface = Interface::new(Arc::clone(&face));
            let link = interface.look(&links).map_err(|error| failed(&face.name, error))?;
            ports.changes.push((Arc::clone(&face), link.up));
            face.set_up(link.up);
            let recorders = pcap.map(|folder| recorders(folder, &face.name)).transpose()?;
            let kind = Kind::Interface(interface);
            ports.slots.push(Slot { face, kind, recorders, held: false, waiting: false });
        }
        ports.links = Some(links);
        ports.look_at = Time::NEVER;
        Ok(ports)
    }

    /// Opens packet files in a folder instead of interfaces. The first packet comes in after `pause`, the others as long after it as
    /// they were captured after it.
    ///
    /// # Errors
    /// One of them is broken.
    pub fn files(wanted: &Wanted, folder: &Path, pause: Span) -> Result<Self, OpenError> {
        let (mut ports, faces) = Self::new(wanted)?;
        let mut first = None;
        for face in faces {
            let files = Files::open(folder, &face.name)?;
            first = first.into_iter().chain(files.captured_at()).min();
            ports.changes.push((Arc::clone(&face), true));
            face.set_up(true);
            let kind = Kind::Files(files);
            ports.slots.push(Slot { face, kind, recorders: None, held: false, waiting: false });
        }
        ports.files = first.map(|first| (Time::ZERO + pause, first));
        ports.look_at = Time::NEVER;
        Ok(ports)
    }

    /// What others may see of them.
    #[must_use]
    pub fn board(&self) -> &Arc<Board> {
        &self.board
    }

    /// Tells the time of day at which the switch's clock began, for recorded packets.
    pub(crate) fn began(&mut self, ns: u64) {
        self.began_ns = ns;
    }

    /// The port of that number; `None` if no interface and no file is behind it.
    fn slot(&mut self, port: PortNo) -> Option<&mut Slot> {
        let place = self.index.get(usize::from(port.0)).copied().flatten()?;
        self.slots.get_mut(usize::from(place))
    }

    /// Waits until something can be done or the limit has passed.
    pub(crate) fn wait(&mut self, waker: &Waker, now: Time, limit: Option<Time>) {
        if limit.is_none_or(|at| at > now) {
            self.flush_records();
        }
        self.watches.clear();
        self.watches.push(Watch::new(waker.fd(), false));
        self.watches.extend(self.links.as_ref().map(|links| Watch::new(links.fd(), false)));
        let fixed = self.watches.len();
        for slot in &self.slots {
            if let Kind::Interface(interface) = &slot.kind
                && let Some((ring, socket)) = interface.fds()
            {
                self.watches.push(Watch::new(ring, false));
                self.watches.extend(slot.waiting.then(|| Watch::new(socket, true)));
            }
        }
        let look = self.links.as_ref().map(|_| self.look_at);
        let at = [limit, look, self.file_due()].into_iter().flatten().min();
        let limit = at.filter(|at| *at < Time::NEVER).map(|at| at.since(now));
        let limit = limit.map(|limit| std::time::Duration::from_nanos(limit.0));
        // It fails only for lack of memory. Then nothing is known, and everything is looked at.
        let blind = super::ring::wait(&mut self.watches, limit).is_err();
        self.waited(waker, fixed, blind);
    }

    /// Sorts out what a wait has found; the first `fixed` watches belong to no port. Sends what waited for an interface that takes more.
    fn waited(&mut self, waker: &Waker, fixed: usize, blind: bool) {
        let ready = |watch: &Watch| blind || watch.ready();
        if self.watches.first().is_some_and(ready) {
            waker.clear();
        }
        self.ready.clear();
        let mut watches = self.watches.iter().skip(fixed);
        let mut failed = self.links.is_some() && self.watches.get(1).is_some_and(ready);
        for (place, slot) in self.slots.iter_mut().enumerate() {
            let Kind::Interface(interface) = &mut slot.kind else { continue };
            let mut frames = interface.has_piece();
            if interface.is_open() {
                let ring = watches.next();
                let socket = if slot.waiting { watches.next() } else { None };
                let broken = [ring, socket].into_iter().flatten().any(Watch::failed);
                failed |= broken;
                frames |= ring.is_some_and(ready);
                // With an error the link is looked at first, which may end the wait in another way.
                if !broken && socket.is_some_and(ready) {
                    slot.waiting = !interface.flush();
                }
            }
            if frames {
                self.ready.push(place);
            }
        }
        if failed {
            self.look_at = Time::ZERO;
        }
    }

    /// Looks at the links if one may have changed.
    pub(crate) fn look(&mut self, now: Time) {
        let Some(links) = self.links.as_ref().filter(|_| self.look_at <= now) else { return };
        links.clear();
        self.look_at = Time::NEVER;
        for slot in &mut self.slots {
            let Kind::Interface(interface) = &mut slot.kind else { continue };
            let found = interface.look(links);
            if !interface.is_open() {
                self.look_at = now + AGAIN;
            }
            let up = matches!(found, Ok(Link { up: true, .. }));
            // What waited is gone with the link.
            slot.waiting &= up;
            if slot.face.set_up(up) {
                let reason = match &found {
                    Ok(link) if link.up => "the interface is up".to_owned(),
                    Ok(_) => "the interface or its other end is down".to_owned(),
                    Err(error) => format!("the interface cannot be opened: {error}"),
                };
                let Face { port, name, .. } = &*slot.face;
                tracing::info!(port = port.0, interface = %name, up, %reason, "port");
                self.changes.push((Arc::clone(&slot.face), up));
                self.board.tell(&Event { port: *port, name: name.clone(), up, reason });
            }
        }
    }

    /// Ports from which frames can be taken.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Takes a burst of frames from the `place`th of the ready ports, and batches what leaves. Returns whether more may wait there.
    pub(crate) fn receive(&mut self, place: usize, switch: &mut Switch, now: Time) -> bool {
        self.apply(switch, now);
        let wall = self.began_ns.saturating_add(now.0);
        let Some(slot) = self.ready.get(place).and_then(|place| self.slots.get_mut(*place)) else {
            return false;
        };
        let Kind::Interface(interface) = &mut slot.kind else { return false };
        let (face, recorders) = (&slot.face, &mut slot.recorders);
        // A burst alone must not fill a queue.
        let burst = BURST.min(switch.config().queue_packets as usize);
        let mut more = true;
        for _ in 0..burst {
            more = interface.receive(&mut |incoming| match incoming {
                Incoming::TooLong => switch.lost_outside(Drop::TooLong),
                Incoming::Frame(frame) => {
                    if let Some((record, _)) = recorders {
                        note(face, record.write(wall, frame));
                    }
                    switch.receive(now, face.port, frame);
                }
            });
            if !more {
                break;
            }
        }
        self.send(switch, now);
        more
    }

    /// Counts what found the ring of the `place`th of the ready ports full: a system call, so not part of [`Ports::receive`].
    pub(crate) fn count_overflow(&self, place: usize) {
        let slot = self.ready.get(place).and_then(|place| self.slots.get(*place));
        if let Some(Slot { kind: Kind::Interface(interface), .. }) = slot {
            interface.count_overflow();
        }
    }

    /// When the next packet of a file is due.
    fn file_due(&self) -> Option<Time> {
        let (start, origin) = self.files?;
        let times = self.slots.iter().filter_map(|slot| match &slot.kind {
            Kind::Files(files) => files.next_at(start, origin),
            Kind::Interface(_) => None,
        });
        times.min()
    }

    /// Takes a burst of packets of files, those that are due, in order of their capture.
    pub(crate) fn receive_files(&mut self, switch: &mut Switch, now: Time) {
        let Some((start, origin)) = self.files else { return };
        for _ in 0..BURST {
            let due = self.slots.iter_mut().filter_map(|slot| match &mut slot.kind {
                Kind::Files(files) => {
                    let at = files.next_at(start, origin).filter(|at| *at <= now)?;
                    Some((at, slot.face.port, files))
                }
                Kind::Interface(_) => None,
            });
            let Some((_, port, files)) = due.min_by_key(|(at, port, _)| (*at, *port)) else {
                return;
            };
            files.receive(|frame| match frame {
                Some(frame) => switch.receive(now, port, frame),
                None => switch.lost_outside(Drop::TooLong),
            });
            self.send(switch, now);
        }
    }

    /// Lets everything happen that is due, and batches what leaves. Returns when the switch wants to be asked again.
    pub(crate) fn advance(&mut self, switch: &mut Switch, now: Time) -> Option<Time> {
        self.apply(switch, now);
        self.receive_files(switch, now);
        self.send(switch, now);
        switch.poll_at()
    }

    /// Tells the switch of ports that went up or down, and of those that take packets again.
    fn apply(&mut self, switch: &mut Switch, now: Time) {
        for (face, up) in self.changes.drain(..) {
            switch.set_port(face.port, up, face.rate());
        }
        for slot in &mut self.slots {
            if slot.held && !slot.waiting {
                slot.held = false;
                switch.release(now, slot.face.port);
            }
        }
    }

    fn send(&mut self, switch: &mut Switch, now: Time) {
        switch.advance_into(now, &mut |sent| self.push(now, &sent));
    }

    fn push(&mut self, now: Time, sent: &Sent<'_>) -> Taken {
        let wall = self.began_ns.saturating_add(now.0);
        let Some(slot) = self.slot(sent.port) else { return Taken::Lost(Drop::NoInterface) };
        if let Some((_, record)) = &mut slot.recorders {
            note(&slot.face, record.write(wall, sent.bytes));
        }
        match &mut slot.kind {
            Kind::Files(files) => note(&slot.face, files.push(wall, sent.bytes)),
            Kind::Interface(interface) => {
                if !interface.push(sent.bytes) {
                    slot.held = true;
                    return Taken::Full;
                }
            }
        }
        Taken::More
    }

    /// Sends the batches, but for those that wait for their interface: [`Ports::wait`] sends them when it takes more. Returns whether a
    /// port that was full takes packets again.
    pub(crate) fn flush(&mut self) -> bool {
        let mut again = false;
        for slot in &mut self.slots {
            if let Kind::Interface(interface) = &mut slot.kind {
                slot.waiting = slot.waiting || !interface.flush();
                again |= slot.held && !slot.waiting;
            }
        }
        again
    }

    fn flush_records(&mut self) {
        for slot in &mut self.slots {
            if let Some((came, left)) = &mut slot.recorders {
                note(&slot.face, came.flush());
                note(&slot.face, left.flush());
            }
            if let Kind::Files(files) = &mut slot.kind {
                note(&slot.face, files.flush());
            }
        }
    }

    /// Writes what is left to write.
    pub(crate) fn close(&mut self) {
        for slot in &mut self.slots {
            slot.waiting = false;
        }
        self.flush();
        self.flush_records();
    }
}

fn recorders(folder: &Path, name: &str) -> Result<(Recorder, Recorder), OpenError> {
    let side = |side| {
        let file = format!("{}", folder.join(format!("{name}_{side}.pcap")).display());
        Recorder::create(folder, name, side).map_err(|source| FileError::Out { file, source })
    };
    Ok((side("in")?, side("out")?))
}

/// Counts a packet that could not be recorded.
fn note(face: &Face, written: bool) {
    if !written {
        count(&face.counters.unrecorded, 1);
    }
}

/// A batch and what a queue holds must both take a burst, or a burst alone would lose packets.
const _: () = assert!(BURST <= SEND_MAX && BURST < 64);

#[cfg(test)]
mod tests;
