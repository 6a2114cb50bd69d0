//! A switch that only forwards: a table from (destination address, queue pair) to port, one FIFO queue per port.
//!
//! In: frames of hosts. Out: the same frames, in order. Must not know P4. It is the slow-changing peer in tests of the
//! transport, and the network of the contention-free limit.

use super::{Departure, Forwarder};
use crate::id::PortNo;
use crate::time::Time;
use crate::units::BitRate;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A static FIFO forwarder.
#[derive(Clone, Debug, Default)]
pub struct IdealSwitch {
    /// (IPv4 destination, queue pair) to port; queue pair 0 stands for any.
    routes: FxHashMap<(u32, u32), PortNo>,
    ports: Vec<Port>,
    /// Frames that no route took.
    pub unrouted: u64,
    /// Frames that found their queue full.
    pub overflowed: u64,
    /// Longest queue allowed, in frames.
    pub capacity: usize,
}

#[derive(Clone, Debug, Default)]
struct Port {
    /// Frames with their arrival.
    queue: VecDeque<(Time, Vec<u8>)>,
    /// When the frame at the head has left.
    head_done: Option<Time>,
    rate: Option<BitRate>,
    down: bool,
}

impl Port {
    fn duration(&self, len: usize) -> crate::time::Span {
        self.rate.map_or(crate::time::Span::ZERO, |rate| rate.transmission(len as u64))
    }
}

impl IdealSwitch {
    /// A switch with queues of `capacity` frames and no routes.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Sends frames for `destination` and `queue_pair` (0: any) to a port.
    pub fn route(&mut self, destination: std::net::Ipv4Addr, queue_pair: u32, port: PortNo) {
        self.routes.insert((u32::from(destination), queue_pair), port);
    }

    fn port(&mut self, port: PortNo) -> &mut Port {
        let index = usize::from(port.0);
        if self.ports.len() <= index {
            self.ports.resize_with(index + 1, Port::default);
        }
        &mut self.ports[index]
    }

    fn lookup(&self, bytes: &[u8]) -> Option<PortNo> {
        let word =
            |at: usize| bytes.get(at..at + 4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
        let destination = word(30)?;
        let queue_pair = word(46)? & 0x00ff_ffff;
        self.routes
            .get(&(destination, queue_pair))
            .or_else(|| self.routes.get(&(destination, 0)))
            .copied()
    }
}

impl Forwarder for IdealSwitch {
    fn receive(&mut self, now: Time, _port: PortNo, bytes: &[u8]) -> Option<Time> {
        let capacity = self.capacity;
        let Some(out) = self.lookup(bytes) else {
            self.unrouted += 1;
            return self.poll_at();
        };
        let port = self.port(out);
        if port.down || port.queue.len() >= capacity {
            self.overflowed += 1;
            return self.poll_at();
        }
        port.queue.push_back((now, bytes.to_vec()));
        if port.head_done.is_none() {
            port.head_done = Some(now + port.duration(bytes.len()));
        }
        self.poll_at()
    }

    fn advance(&mut self, now: Time, out: &mut dyn FnMut(Departure<'_>)) -> Option<Time> {
        for (index, port) in self.ports.iter_mut().enumerate() {
            while let Some(end) = port.head_done.filter(|end| *end <= now) {
                if let Some((enqueued, frame)) = port.queue.pop_front() {
                    let start = Time(end.0.saturating_sub(port.duration(frame.len()).0));
                    let (port, bytes) = (PortNo(index as u16), &frame[..]);
                    out(Departure { port, queue: 0, bytes, enqueued, start, end });
                }
                port.head_done = port.queue.front().map(|next| end + port.duration(next.1.len()));
            }
        }
        self.poll_at()
    }

    fn poll_at(&self) -> Option<Time> {
        self.ports.iter().filter_map(|port| port.head_done).min()
    }

    fn set_port(
        &mut self,
        _now: Time,
        port: PortNo,
        up: bool,
        rate: Option<BitRate>,
    ) -> Option<Time> {
        let state = self.port(port);
        state.rate = rate;
        state.down = !up;
        if !up {
            let lost = state.queue.len() as u64;
            state.queue.clear();
            state.head_done = None;
            self.overflowed += lost;
        }
        self.poll_at()
    }
}
