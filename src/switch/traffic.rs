//! The traffic manager. In: packets with a port, a queue and a length. Out: the packet that leaves next, and when. Must
//! not know what a packet is: it carries a `T`.
//!
//! ```text
//!  enqueue ─► [queue N-1]──┐
//!             [   ...   ]──┼─► highest queue with a packet that may go ─► one shaper per port (bits/s) ─► wire
//!             [queue  0 ]──┘
//! ```
//! Strict priority, highest number first, tail drop. Unlike BMv2 (`bm_sim/queueing.h`, whose rates are per queue and in
//! packets, and whose four workers let one port's queues starve another's) all queues of a port share one shaper, as
//! the queues of a link do. BMv2's packet rates exist too: a queue's head may go at `max(enqueued, last + 1/pps)`,
//! fixed when it is enqueued.
//!
//! Time is the caller's. A service starts at the first instant when the port is free and a packet may go, however late
//! [`Traffic::dequeue`] is called, and chooses among the packets that were there at that instant; so results do not
//! depend on how often the caller looks. A port may also be held ([`Traffic::hold`]) while whatever is behind it takes
//! nothing, so that packets wait here, by priority and bounded, and not in a queue that nobody sees.

#[cfg(test)]
mod tests;

use crate::id::PortNo;
use crate::time::{Span, Time};
use crate::units::BitRate;
use std::collections::VecDeque;

/// Largest number of a port: v1model's have 9 bits.
pub const PORT_MAX: u16 = 511;

/// Ports that may have queues.
pub const MAX_PORTS: usize = PORT_MAX as usize + 1;

/// Priority queues per port: BMv2's limit, and as many as 5 bits of a priority can name.
pub const MAX_QUEUES: u8 = 32;

/// What every queue starts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Queues per port, 1 to [`MAX_QUEUES`].
    pub queues: u8,
    /// Packets that fit into one queue.
    pub packets: u32,
    /// Bytes that fit into one queue; `None` = packets decide alone.
    pub bytes: Option<u64>,
}

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// The queue has its fill of packets or bytes (tail drop).
    Full,
    /// No queue of that number.
    Priority,
    /// The port is down.
    PortDown,
    /// No port of that number.
    NoPort,
}

/// A packet that leaves its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dequeued<T> {
    /// Its port.
    pub port: PortNo,
    /// Its queue.
    pub queue: u8,
    /// The packet.
    pub item: T,
    /// When it was enqueued.
    pub enqueued: Time,
    /// When its service starts: when the port was free and the packet's turn came.
    pub start: Time,
    /// Packets left in its queue.
    pub left: u32,
}

#[derive(Clone, Debug)]
struct Held<T> {
    item: T,
    length: u32,
    enqueued: Time,
    send: Time,
}

#[derive(Clone, Debug)]
struct Queue<T> {
    held: VecDeque<Held<T>>,
    bytes: u64,
    max_packets: u32,
    /// Time between two packets; zero = no packet rate.
    gap: Span,
    last_send: Option<Time>,
}

#[derive(Clone, Debug)]
struct Port<T> {
    queues: Vec<Queue<T>>,
    up: bool,
    /// Nothing goes until it is let go.
    held: bool,
    rate: Option<BitRate>,
    busy_until: Time,
    /// Part of a nanosecond, in units of 1/rate, by which `busy_until` was rounded up.
    credit: u128,
    /// Next service; `NEVER` when nothing waits.
    next: Time,
}

/// Queues of all ports.
#[derive(Clone, Debug)]
pub struct Traffic<T> {
    limits: Limits,
    ports: Vec<Option<Box<Port<T>>>>,
    /// Ports that exist, in order of number.
    known: Vec<u16>,
}

impl<T> Queue<T> {
    fn new(packets: u32) -> Self {
        Self {
            held: VecDeque::new(),
            bytes: 0,
            max_packets: packets,
            gap: Span::ZERO,
            last_send: None,
        }
    }
}

impl<T> Port<T> {
    fn refresh(&mut self) {
        if self.held {
            self.next = Time::NEVER;
            return;
        }
        let heads = self.queues.iter().filter_map(|queue| queue.held.front());
        let first = heads.map(|held| held.send).min();
        self.next = first.map_or(Time::NEVER, |send| send.max(self.busy_until));
    }
}

impl<T> Traffic<T> {
    /// Empty queues. The number of queues is kept within 1 and [`MAX_QUEUES`].
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limits = Limits { queues: limits.queues.clamp(1, MAX_QUEUES), ..limits };
        let mut ports = Vec::new();
        ports.resize_with(MAX_PORTS, || None);
        Self { limits, ports, known: Vec::new() }
    }

    /// Queues per port.
    #[must_use]
    pub fn queues(&self) -> u8 {
        self.limits.queues
    }

    fn port_mut(&mut self, port: PortNo) -> Option<&mut Port<T>> {
        let limits = self.limits;
        let slot = self.ports.get_mut(usize::from(port.0))?;
        if slot.is_none() {
            let at = self.known.partition_point(|known| *known < port.0);
            self.known.insert(at, port.0);
        }
        Some(slot.get_or_insert_with(|| {
            Box::new(Port {
                queues: (0..limits.queues).map(|_| Queue::new(limits.packets)).collect(),
                up: true,
                held: false,
                rate: None,
                busy_until: Time::ZERO,
                credit: 0,
                next: Time::NEVER,
            })
        }))
    }

    /// Sets a port up or down and its shaper (`None` = unshaped). A port that goes down loses what its queues hold, in
    /// order from the highest queue: `lost` gets the packets.
    pub fn set_port(
        &mut self,
        port: PortNo,
        up: bool,
        rate: Option<BitRate>,
        lost: &mut dyn FnMut(u8, T),
    ) {
        let Some(state) = self.port_mut(port) else { return };
        if state.rate != rate {
            state.credit = 0;
            if state.busy_until == Time::NEVER {
                // A packet sent at rate 0 never ends; with a new rate it is given up.
                state.busy_until = Time::ZERO;
            }
        }
        state.rate = rate;
        state.up = up;
        if !up {
            for (number, queue) in state.queues.iter_mut().enumerate().rev() {
                queue.bytes = 0;
                queue.held.drain(..).for_each(|held| lost(number as u8, held.item));
            }
        }
        state.refresh();
    }

    /// Starts no service at a port until [`Traffic::release`]: what is behind it is full.
    pub fn hold(&mut self, port: PortNo) {
        if let Some(state) = self.port_mut(port) {
            state.held = true;
            state.refresh();
        }
    }

    /// Lets a held port serve again, from `now` on. Changes nothing at a port that is not held.
    pub fn release(&mut self, now: Time, port: PortNo) {
        let Some(state) = self.port_mut(port).filter(|state| state.held) else { return };
        state.held = false;
        if state.busy_until < now {
            (state.busy_until, state.credit) = (now, 0);
        }
        state.refresh();
    }

    /// Empties all queues; ports, rates and depths stay.
    pub fn clear(&mut self, lost: &mut dyn FnMut(T)) {
        for state in self.ports.iter_mut().flatten() {
            for queue in &mut state.queues {
                queue.bytes = 0;
                queue.held.drain(..).for_each(|held| lost(held.item));
            }
            state.refresh();
        }
    }

    /// Sets BMv2's packet rate of one queue (packets per second, 0 = none) for packets enqueued from now on.
    pub fn set_queue_rate(&mut self, port: PortNo, queue: u8, pps: u64) {
        if let Some(state) = self.port_mut(port)
            && let Some(queue) = state.queues.get_mut(usize::from(queue))
        {
            queue.gap = Span(1_000_000_000_u64.checked_div(pps).unwrap_or(0));
        }
    }

    /// Sets how many packets fit into one queue; what it holds beyond stays.
    pub fn set_queue_depth(&mut self, port: PortNo, queue: u8, packets: u32) {
        if let Some(state) = self.port_mut(port)
            && let Some(queue) = state.queues.get_mut(usize::from(queue))
        {
            queue.max_packets = packets;
        }
    }

    /// Rate of a port's shaper; `None` = unshaped.
    #[must_use]
    pub fn rate(&self, port: PortNo) -> Option<BitRate> {
        self.ports.get(usize::from(port.0))?.as_ref()?.rate
    }

    /// Packets in a queue.
    #[must_use]
    pub fn depth(&self, port: PortNo, queue: u8) -> u32 {
        self.queue(port, queue).map_or(0, |queue| queue.held.len() as u32)
    }

    /// Bytes in a queue.
    #[must_use]
    pub fn depth_bytes(&self, port: PortNo, queue: u8) -> u64 {
        self.queue(port, queue).map_or(0, |queue| queue.bytes)
    }

    fn queue(&self, port: PortNo, queue: u8) -> Option<&Queue<T>> {
        let state = self.ports.get(usize::from(port.0))?.as_ref()?;
        state.queues.get(usize::from(queue))
    }

    /// Whether a packet of `length` bytes would be taken now.
    ///
    /// # Errors
    /// Says why not.
    pub fn admit(&mut self, port: PortNo, queue: u64, length: u32) -> Result<u8, Reject> {
        let (queues, bytes) = (self.limits.queues, self.limits.bytes);
        let state = self.port_mut(port).ok_or(Reject::NoPort)?;
        if !state.up {
            return Err(Reject::PortDown);
        }
        if queue >= u64::from(queues) {
            return Err(Reject::Priority);
        }
        let number = queue as u8;
        let queue = &state.queues[usize::from(number)];
        let full = queue.held.len() >= queue.max_packets as usize
            || bytes.is_some_and(|bytes| queue.bytes + u64::from(length) > bytes);
        if full { Err(Reject::Full) } else { Ok(number) }
    }

    /// Puts a packet that [`Traffic::admit`] would take at the end of a queue.
    ///
    /// # Errors
    /// As `admit`; the packet comes back.
    pub fn enqueue(
        &mut self,
        now: Time,
        port: PortNo,
        queue: u64,
        length: u32,
        item: T,
    ) -> Result<(), (Reject, T)> {
        let number = match self.admit(port, queue, length) {
            Ok(number) => number,
            Err(reject) => return Err((reject, item)),
        };
        let Some(state) = self.port_mut(port) else { return Err((Reject::NoPort, item)) };
        let queue = &mut state.queues[usize::from(number)];
        let send = match queue.last_send {
            Some(last) if queue.gap != Span::ZERO => now.max(last + queue.gap),
            _ => now,
        };
        queue.last_send = Some(send);
        queue.bytes += u64::from(length);
        queue.held.push_back(Held { item, length, enqueued: now, send });
        if !state.held {
            state.next = state.next.min(send.max(state.busy_until));
        }
        Ok(())
    }

    /// When the next service starts; `None` when no packet waits, or only on ports that never send.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.next_port().map(|(time, _)| time)
    }

    /// The earliest service; among ports of one time the lowest number.
    fn next_port(&self) -> Option<(Time, u16)> {
        let times = self.known.iter().filter_map(|number| {
            let state = self.ports[usize::from(*number)].as_ref()?;
            (state.next < Time::NEVER).then_some((state.next, *number))
        });
        times.min()
    }

    /// The packet whose service starts next, if it starts at `now` or before.
    pub fn dequeue(&mut self, now: Time) -> Option<Dequeued<T>> {
        let (start, number) = self.next_port().filter(|(start, _)| *start <= now)?;
        let state = self.ports[usize::from(number)].as_mut()?;
        let may_go = |queue: &Queue<T>| queue.held.front().is_some_and(|head| head.send <= start);
        let queue = state.queues.iter().rposition(may_go)?;
        let served = &mut state.queues[queue];
        let held = served.held.pop_front()?;
        served.bytes -= u64::from(held.length);
        let left = served.held.len() as u32;
        state.refresh();
        Some(Dequeued {
            port: PortNo(number),
            queue: queue as u8,
            item: held.item,
            enqueued: held.enqueued,
            start,
            left,
        })
    }

    /// Says that the packet just dequeued goes out with `bytes` bytes; the port is busy until the returned time, when
    /// its last bit has left. A packet that egress dropped takes no time: do not call this for it.
    ///
    /// Times are rounded up to nanoseconds, but the rounding is given back to the packet that follows without a gap, so
    /// that the rate holds in the long run.
    pub fn transmitted(&mut self, port: PortNo, start: Time, bytes: u64) -> Time {
        let Some(state) = self.port_mut(port) else { return start };
        let Some(rate) = state.rate else { return start };
        if rate.0 == 0 {
            state.busy_until = Time::NEVER;
            state.refresh();
            return Time::NEVER;
        }
        let credit = if start == state.busy_until { state.credit } else { 0 };
        let work = (u128::from(bytes) * 8 * 1_000_000_000).saturating_sub(credit);
        let ns = work.div_ceil(u128::from(rate.0));
        state.credit = ns * u128::from(rate.0) - work;
        state.busy_until = start + Span(u64::try_from(ns).unwrap_or(u64::MAX));
        state.refresh();
        state.busy_until
    }
}
