//! Traffic of no job: constant-rate sources that nobody acknowledges and the switches do not classify.

use super::Net;
use crate::id::HostId;
use crate::sim::host::frame::{Kind, ROCE_PORT, Template};
use crate::sim::packet::{Forwarder, NetEvent};
use crate::sim::queue::Queue;
use crate::time::{Span, Time};
use crate::topology::FlowKey;
use crate::units::BitRate;
use std::net::Ipv4Addr;

/// Queue pairs of background sources count down from the top of the 24-bit range, away from those of flows.
const TOP_QUEUE_PAIR: u32 = 0x00ff_fffe;
/// Background sources stand in line at their interfaces under numbers from here on; flows have smaller ones.
pub(super) const FIRST_TURN: u32 = 1 << 31;
/// Packets that wait at the source, as a socket buffer holds; more are never offered.
const BACKLOG: u32 = 64;

/// A wish for background traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Offered rate on the wire, already scaled.
    pub rate: BitRate,
    /// When it ends.
    pub until: Time,
}

/// A source at work.
pub(super) struct Source {
    src: u32,
    dst: u32,
    queue_pair: u32,
    template: Template,
    interval: Span,
    until: Time,
    waiting: u32,
    number: u64,
    lined_up: bool,
}

impl<F: Forwarder> Net<F> {
    /// Starts a background source.
    pub fn start_background<E: From<NetEvent>>(
        &mut self,
        queue: &mut Queue<E>,
        now: Time,
        offer: &Offer,
        macs: ([u8; 6], [u8; 6]),
    ) {
        let id = self.background.len() as u32;
        let queue_pair = TOP_QUEUE_PAIR - id;
        let key = FlowKey {
            src: self.address(offer.from),
            dst: self.address(offer.to),
            protocol: 17,
            src_port: None,
            dst_port: Some(ROCE_PORT),
            dst_qp: Some(queue_pair),
        };
        let frame = Template::data_len(self.transport.payload as usize) as u64;
        self.background.push(Source {
            src: offer.from.0,
            dst: offer.to.0,
            queue_pair,
            template: Template::new(&key, macs, id as u16),
            interval: offer.rate.transmission(frame).max(Span(1)),
            until: offer.until,
            waiting: 0,
            number: 0,
            lined_up: false,
        });
        queue.push(now, NetEvent::Offer(id).into());
    }

    fn address(&self, host: HostId) -> Ipv4Addr {
        self.hosts[host.index()].address
    }

    pub(super) fn offer<E: From<NetEvent>>(&mut self, queue: &mut Queue<E>, now: Time, id: u32) {
        let turn = FIRST_TURN + id;
        let source = &mut self.background[id as usize];
        if now >= source.until {
            return;
        }
        source.waiting = (source.waiting + 1).min(BACKLOG);
        queue.push(now + source.interval, NetEvent::Offer(id).into());
        if !source.lined_up {
            source.lined_up = true;
            let host = source.src;
            self.hosts[host as usize].nic.line_up_data(turn, 0);
            self.pump(queue, now, host);
        }
    }

    pub(super) fn background_frame(&mut self, turn: u32) -> Option<(u32, usize)> {
        let source = &mut self.background[(turn - FIRST_TURN) as usize];
        source.lined_up = false;
        source.waiting = source.waiting.checked_sub(1)?;
        let payload = self.transport.payload as usize;
        let (handle, place) = self.pool.reserve();
        let len = source.template.write(place, Kind::Data, source.number, payload, false);
        source.number += 1;
        self.traffic.background_sent += 1;
        if source.waiting > 0 {
            source.lined_up = true;
            self.hosts[source.src as usize].nic.line_up_data(turn, 0);
        }
        Some((handle, len))
    }

    /// Whether a queue pair at a host belongs to a background source.
    pub(super) fn is_background(&self, host: u32, queue_pair: u32) -> bool {
        self.background.iter().any(|source| source.dst == host && source.queue_pair == queue_pair)
    }

    /// Ends every background source now.
    pub fn stop_background(&mut self, now: Time) {
        for source in &mut self.background {
            source.until = source.until.min(now);
        }
    }
}
