//! The kernel's side of a port: packet sockets, the ring they share with the kernel, waiting, and the state of links.
//! In: interface names and indices. Out: frames as the kernel gives them, system errors. Must not know the switch. This is the only
//! file that may use `unsafe`, block by block.
//!
//! ```text
//!  interface ─► [slot 0 | slot 1 | ... ] TPACKET_V2, shared memory ─► RxRing::take     (frames longer than a slot: a copy by recv)
//!  interface ◄─ sendmmsg ◄─ TxSocket::send
//! ```
//! V2 and not V3: a V3 block is handed over when it is full or after a time-out, which adds up to a millisecond per hop. Sending has no
//! ring: `sendmmsg` copies a batch in one call and was faster on veth (`docs/switch-ports.md`).

#![allow(
    unsafe_code,
    reason = "the ring is memory shared with the kernel; every block says why it is sound"
)]
#![deny(clippy::undocumented_unsafe_blocks)]

use std::ffi::CString;
use std::io::{Error, ErrorKind, Result};
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Bytes in front of each received frame: what is left of the kernel's `virtio_net_hdr`, room for a VLAN tag.
pub const HEADROOM: usize = 10;
/// Longest frame that comes out of the kernel: a TCP segment of 64 KiB not yet cut, with its headers.
pub const FRAME_BYTES_MAX: usize = (1 << 16) + 256;
/// Slots of one port's ring: 2 ms of packets at half a million a second, the time that another thread may keep a core.
pub const SLOTS: u32 = 1_024;
/// Bytes that frames longer than a slot may hold while they wait (64 of the longest), as the kernel counts.
const COPIES_BYTES: libc::c_int = 8 << 20;
/// Frames in one system call. More gain little, and hold back the next look at the other ports.
pub const SEND_MAX: usize = 32;

fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = check(unsafe {
        libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol)
    })?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets a socket option whose value is plain data.
fn set<T: Copy>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: T) -> Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` lives through the call and has `length` bytes.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length)
    })
    .map(drop)
}

fn bind_to(fd: &OwnedFd, index: u32, protocol: u16) -> Result<()> {
    // SAFETY: all zeros is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` lives through the call and has `length` bytes.
    check(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) }).map(drop)
}

/// The error that waits at a socket, which is then cleared; `None` if there is none.
fn pending_error(fd: &OwnedFd) -> Option<Error> {
    let mut code: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `code` and `length` live through the call, and `length` is the size of `code`.
    let result = unsafe {
        let value = (&raw mut code).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, value, &raw mut length)
    };
    (result == 0 && code != 0).then(|| Error::from_raw_os_error(code))
}

/// What the sender left for the hardware to do (`struct virtio_net_hdr`, in the machine's byte order).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// Offset in the frame from which a checksum has to be computed, and of its field from there; `None` = it is there.
    pub checksum: Option<(u16, u16)>,
    /// Kind of a segment that has to be cut (`VIRTIO_NET_HDR_GSO_*`), 0 = none.
    pub segment: u8,
    /// Bytes of payload in each piece.
    pub segment_bytes: u16,
}

impl Offload {
    /// Reads the 10 bytes of a `virtio_net_hdr`.
    #[must_use]
    pub fn read(header: [u8; HEADROOM]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let needs = header[0] & 1 != 0;
        Self {
            checksum: needs.then(|| (word(6), word(8))),
            // Bit 7 only says that ECN is in use.
            segment: header[1] & 0x7f,
            segment_bytes: word(4),
        }
    }
}

/// A frame as the kernel gives it.
#[derive(Debug)]
pub struct Received<'a> {
    /// [`HEADROOM`] bytes that may be overwritten, then the frame.
    pub buffer: &'a mut [u8],
    /// What is left to do.
    pub offload: Offload,
    /// A VLAN tag that was taken off: EtherType and tag control information.
    pub vlan: Option<(u16, u16)>,
}

/// A received frame, or what could not be had.
#[derive(Debug)]
pub enum Taken<'a> {
    /// A whole frame.
    Frame(Received<'a>),
    /// A frame of so many bytes for which there was no room.
    TooLong(u32),
}

/// The receiving side of an interface.
#[derive(Debug)]
pub struct RxRing {
    socket: OwnedFd,
    memory: *mut u8,
    bytes: usize,
    slot_bytes: usize,
    next: u32,
    /// For frames longer than a slot.
    long: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and has no tie to a thread.
unsafe impl Send for RxRing {}

impl Drop for RxRing {
    fn drop(&mut self) {
        // SAFETY: `memory` and `bytes` are of a mapping that exists and that only this value uses.
        let _ = unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

impl RxRing {
    /// Starts to receive everything that comes in at an interface, whomever it is for. `mtu` decides the size of a slot.
    ///
    /// # Errors
    /// The system's: no right to do so (EPERM), no such interface (ENODEV), no memory.
    pub fn open(index: u32, mtu: u32) -> Result<Self> {
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        let packet = libc::SOL_PACKET;
        set(
            &socket,
            packet,
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as libc::c_int,
        )?;
        set(&socket, packet, libc::PACKET_VNET_HDR, 1 as libc::c_int)?;
        // Frames that do not fit into a slot come whole by recv.
        set(&socket, packet, libc::PACKET_COPY_THRESH, 1 as libc::c_int)?;
        if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, COPIES_BYTES).is_err() {
            set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, COPIES_BYTES)?;
        }
        // Older kernels do not have it; `take` looks as well.
        let _ = set(&socket, packet, libc::PACKET_IGNORE_OUTGOING, 1 as libc::c_int);
        let slot_bytes = slot_bytes(mtu);
        let bytes = slot_bytes * SLOTS as usize;
        let block = slot_bytes.max(1 << 16);
        let request = libc::tpacket_req {
            tp_block_size: block as u32,
            tp_block_nr: (bytes / block) as u32,
            tp_frame_size: slot_bytes as u32,
            tp_frame_nr: SLOTS,
        };
        set(&socket, packet, libc::PACKET_RX_RING, request)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of the ring just made, at a place that the kernel chooses.
        let memory = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        if memory == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let ring =
            Self { socket, memory: memory.cast(), bytes, slot_bytes, next: 0, long: Vec::new() };
        let all = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&ring.socket, packet, libc::PACKET_ADD_MEMBERSHIP, all)?;
        bind_to(&ring.socket, index, libc::ETH_P_ALL as u16)?;
        Ok(ring)
    }

    /// To wait on.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The error that waits at the socket (the interface went down or away), which is then cleared.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        pending_error(&self.socket)
    }

    /// Frames that came while the ring was full, since the last call.
    #[must_use]
    pub fn overflowed(&self) -> u64 {
        let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `stats` and `length` live through the call, and `length` is the size of `stats`.
        let result = unsafe {
            let (value, name) = ((&raw mut stats).cast(), libc::PACKET_STATISTICS);
            libc::getsockopt(self.fd(), libc::SOL_PACKET, name, value, &raw mut length)
        };
        if result == 0 { stats.tp_drops.into() } else { 0 }
    }

    /// Hands over the next frame, if one is there. Our own packets are passed over. Returns whether a slot was taken.
    pub fn take(&mut self, give: &mut dyn FnMut(Taken<'_>)) -> bool {
        let at = self.next as usize * self.slot_bytes;
        // SAFETY: `next` < SLOTS, so the slot lies within the mapping; slots are aligned to 16 bytes.
        let slot = unsafe { self.memory.add(at) };
        let header = slot.cast::<libc::tpacket2_hdr>();
        // SAFETY: the kernel writes this field too, so it is an atomic to both; it is aligned and lives as long as the mapping.
        let status = unsafe { AtomicU32::from_ptr((&raw mut (*header).tp_status).cast()) };
        // Everything that the kernel wrote before it set the bit is seen after this.
        let state = status.load(Ordering::Acquire);
        if state & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the slot is ours until the status says otherwise, and a header stands at its start.
        let facts = unsafe { header.read() };
        let kind_at =
            align(size_of::<libc::tpacket2_hdr>()) + offset_of!(libc::sockaddr_ll, sll_pkttype);
        // SAFETY: a sockaddr_ll follows the header, aligned to 16 bytes.
        let outgoing = unsafe { slot.add(kind_at).read() } == libc::PACKET_OUTGOING;
        let start = usize::from(facts.tp_mac);
        let end = start + facts.tp_snaplen as usize;
        if state & libc::TP_STATUS_COPY != 0 {
            // SAFETY: these bytes lie within the slot, which is ours until the status changes, which happens below.
            let begin = unsafe {
                let there = facts.tp_snaplen as usize * usize::from(end <= self.slot_bytes);
                std::slice::from_raw_parts(slot.add(start.min(self.slot_bytes)), there)
            };
            let vlan = tag(state, &facts);
            let copy = self.long_frame(begin, facts.tp_len as usize);
            match copy {
                // Passed over, and its copy with it.
                _ if outgoing => {}
                Some(buffer) => give(frame(buffer, vlan)),
                None => give(Taken::TooLong(facts.tp_len)),
            }
        } else if outgoing {
            // Passed over.
        } else if facts.tp_snaplen < facts.tp_len || start < HEADROOM || end > self.slot_bytes {
            give(Taken::TooLong(facts.tp_len));
        } else {
            // SAFETY: these bytes lie within the slot (just checked), which is ours until the status changes, which happens below,
            // after the last use of the slice.
            let buffer = unsafe {
                std::slice::from_raw_parts_mut(slot.add(start - HEADROOM), end - start + HEADROOM)
            };
            give(frame(buffer, tag(state, &facts)));
        }
        self.next = (self.next + 1) % SLOTS;
        // The kernel sees the slot free only after everything above.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        true
    }

    /// The copy of a frame of `bytes` bytes of which a slot holds only the beginning; `None` if there is none, or if it does not fit
    /// into [`FRAME_BYTES_MAX`] either.
    fn long_frame(&mut self, begin: &[u8], bytes: usize) -> Option<&mut [u8]> {
        self.long.resize(HEADROOM + FRAME_BYTES_MAX, 0);
        let found = copy_of(&self.socket, &mut self.long, begin, bytes);
        if found { self.long.get_mut(..HEADROOM + bytes) } else { None }
    }
}

/// Looks for the copy of a frame of `bytes` bytes that begins with `begin` among those that wait at a socket, and puts it into `buffer`.
///
/// Slots and copies are two queues in the same order, but one can lose what the other keeps. A copy that belongs to no slot any more is
/// passed over, so that a frame is never given the bytes of another one.
fn copy_of(socket: &OwnedFd, buffer: &mut [u8], begin: &[u8], bytes: usize) -> bool {
    // No more can wait than there are slots.
    for _ in 0..=SLOTS {
        // SAFETY: the kernel writes at most `buffer.len()` bytes to `buffer`, which lives through the call.
        let got = unsafe {
            let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
            libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags)
        };
        let Ok(got) = usize::try_from(got) else {
            // The interface went down: that is told once, in place of the copy, which still waits.
            if Error::last_os_error().raw_os_error() == Some(libc::ENETDOWN) {
                continue;
            }
            return false;
        };
        if got == HEADROOM + bytes && buffer.get(HEADROOM..).is_some_and(|f| f.starts_with(begin)) {
            return true;
        }
    }
    false
}

fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(libc::TPACKET_ALIGNMENT)
}

/// Powers of two, so that slots fill blocks: 2 KiB for Ethernet's 1,500 bytes, more where longer frames are usual. Longer ones, which
/// only the sender's kernel makes, take the slower way by recv.
pub(super) fn slot_bytes(mtu: u32) -> usize {
    let front = align(size_of::<libc::tpacket2_hdr>()) + size_of::<libc::sockaddr_ll>() + 64;
    (front + mtu.min(9_216) as usize).next_power_of_two()
}

fn tag(state: u32, facts: &libc::tpacket2_hdr) -> Option<(u16, u16)> {
    let valid = state & libc::TP_STATUS_VLAN_VALID != 0;
    let kind =
        if state & libc::TP_STATUS_VLAN_TPID_VALID != 0 { facts.tp_vlan_tpid } else { 0x8100 };
    valid.then_some((kind, facts.tp_vlan_tci))
}

fn frame(buffer: &mut [u8], vlan: Option<(u16, u16)>) -> Taken<'_> {
    match buffer.first_chunk::<HEADROOM>().copied() {
        Some(header) => Taken::Frame(Received { buffer, offload: Offload::read(header), vlan }),
        None => Taken::TooLong(0),
    }
}

/// The sending side of an interface. It receives nothing.
#[derive(Debug)]
pub struct TxSocket(OwnedFd);

impl TxSocket {
    /// Opens the way out by an interface.
    ///
    /// # Errors
    /// The system's, as of [`RxRing::open`].
    pub fn open(index: u32) -> Result<Self> {
        let socket = socket(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        bind_to(&socket, index, 0)?;
        Ok(Self(socket))
    }

    /// To wait on until it takes more.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// The error that waits at the socket, which is then cleared.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        pending_error(&self.0)
    }

    /// Sends the first of these frames, at most [`SEND_MAX`]. Returns how many are gone, at least one unless there is none.
    ///
    /// # Errors
    /// Why the first did not go: `WouldBlock` = later, anything else = never.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> Result<usize> {
        // SAFETY: all zeros is a valid iovec and a valid mmsghdr: null pointers with length 0.
        let (mut vectors, mut messages): ([libc::iovec; SEND_MAX], [libc::mmsghdr; SEND_MAX]) =
            unsafe { (zeroed(), zeroed()) };
        let mut count = 0;
        for (frame, (vector, message)) in frames.zip(vectors.iter_mut().zip(&mut messages)) {
            vector.iov_base = frame.as_ptr().cast_mut().cast();
            vector.iov_len = frame.len();
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` messages point to vectors, and those to frames, which all live through the call; the kernel
        // only reads the frames.
        let sent = unsafe {
            let flags = libc::MSG_DONTWAIT as _;
            libc::sendmmsg(self.0.as_raw_fd(), messages.as_mut_ptr(), count, flags)
        };
        check(sent).map(|sent| sent as usize)
    }
}

/// What an interface is and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number, which changes when it is made anew.
    pub index: u32,
    /// Switched on, and the other end is there.
    pub up: bool,
    /// Longest packet without its Ethernet header, bytes.
    pub mtu: u32,
}

/// Asks for links, and tells when one may have changed.
#[derive(Debug)]
pub struct Links {
    asks: OwnedFd,
    news: OwnedFd,
}

impl Links {
    /// Starts to listen for changes of links in this network namespace.
    ///
    /// # Errors
    /// The system's.
    pub fn open() -> Result<Self> {
        let news = socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        // SAFETY: all zeros is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: `address` lives through the call and has `length` bytes.
        check(unsafe { libc::bind(news.as_raw_fd(), (&raw const address).cast(), length) })?;
        Ok(Self { asks: socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?, news })
    }

    /// To wait on: readable when a link may have changed.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.news.as_raw_fd()
    }

    /// Takes the news without reading them: whoever is concerned asks. Lost ones (ENOBUFS) are news as well.
    pub fn clear(&self) {
        let mut buffer = [0_u8; 4_096];
        loop {
            // SAFETY: the kernel writes at most the buffer's length into it.
            let got = unsafe {
                libc::recv(self.fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT)
            };
            if got <= 0 && Error::last_os_error().raw_os_error() != Some(libc::ENOBUFS) {
                return;
            }
        }
    }

    /// An interface by its name.
    ///
    /// # Errors
    /// The system's; ENODEV if there is none.
    pub fn get(&self, name: &str) -> Result<Link> {
        let wrong = || Error::new(ErrorKind::InvalidInput, "no interface can have that name");
        let name = CString::new(name).map_err(|_| wrong())?;
        // SAFETY: all zeros is a valid ifreq.
        let mut request: libc::ifreq = unsafe { zeroed() };
        let bytes = name.as_bytes_with_nul();
        for (to, from) in
            request.ifr_name.get_mut(..bytes.len()).ok_or_else(wrong)?.iter_mut().zip(bytes)
        {
            *to = *from as libc::c_char;
        }
        let mut ask = |what: libc::Ioctl| {
            // SAFETY: these requests read the name in `request` and write its union; it lives through the call.
            check(unsafe { libc::ioctl(self.asks.as_raw_fd(), what, &raw mut request) })
                .map(|_| request.ifr_ifru)
        };
        // SAFETY: SIOCGIFINDEX sets this member.
        let index = unsafe { ask(libc::SIOCGIFINDEX)?.ifru_ifindex };
        // SAFETY: SIOCGIFFLAGS sets this member.
        let flags = unsafe { ask(libc::SIOCGIFFLAGS)?.ifru_flags };
        // SAFETY: SIOCGIFMTU sets this member.
        let mtu = unsafe { ask(libc::SIOCGIFMTU)?.ifru_mtu };
        let wanted = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        Ok(Link { index: index as u32, up: flags & wanted == wanted, mtu: mtu.max(0) as u32 })
    }
}

/// Wakes a thread that waits. Cheap to clone; all clones wake the same thread.
#[derive(Clone, Debug)]
pub struct Waker(std::sync::Arc<OwnedFd>);

impl Waker {
    /// One that nobody has called yet.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> Result<Self> {
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(std::sync::Arc::new(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// To wait on.
    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Ends the present wait, or the next one.
    pub fn wake(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: 8 bytes are read from `one`. A failure means that the count is full, and then the thread wakes anyway.
        let _ = unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Forgets the calls so far.
    pub fn clear(&self) {
        let mut count = [0_u8; 8];
        // SAFETY: 8 bytes are written to `count`. A failure means that nobody called.
        let _ = unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// What to wait for at one descriptor, and what came of it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Watch(libc::pollfd);

impl Watch {
    /// Waits for something to read, and for room to write if `write`.
    #[must_use]
    pub fn new(fd: RawFd, write: bool) -> Self {
        let events = if write { libc::POLLOUT } else { libc::POLLIN };
        Self(libc::pollfd { fd, events, revents: 0 })
    }

    /// Something can be read or written, or an error waits.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.0.revents != 0
    }

    /// An error waits.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.0.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0
    }
}

/// Waits until one of them is ready or the limit has passed; `None` = for ever. A signal ends the wait too.
///
/// # Errors
/// The system's: no memory.
pub fn wait(watches: &mut [Watch], limit: Option<Duration>) -> Result<()> {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `Watch` is a pollfd; the kernel reads and writes `watches.len()` of them; `limit` is null or lives through the call.
    let result = unsafe {
        libc::ppoll(
            watches.as_mut_ptr().cast(),
            watches.len() as libc::nfds_t,
            limit,
            std::ptr::null(),
        )
    };
    match check(result) {
        Err(error) if error.kind() != ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
impl RxRing {
    /// A ring in which nothing ever comes, to wait on at a socket of any kind: for tests without an interface.
    pub(super) fn silent(socket: OwnedFd) -> Self {
        let (slot_bytes, flags) = (256, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let bytes = slot_bytes * SLOTS as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of zeros, at a place that the kernel chooses.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        Self { socket, memory: memory.cast(), bytes, slot_bytes, next: 0, long: Vec::new() }
    }
}

#[cfg(test)]
impl TxSocket {
    /// A connected socket of any kind as a way out: for tests without an interface.
    pub(super) fn over(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

#[cfg(test)]
mod tests;
