//! The sending end of one flow.
//!
//! In: how far the ring allows, acknowledgements. Out: which packet goes next, when silence becomes suspicious. Must not
//! know bytes, links, or time beyond the `now` it is given.

use super::{Recovery, Transport};
use crate::time::Time;
use std::collections::{BTreeSet, VecDeque};

/// What goes out next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// The packet with this number.
    Data(u64),
    /// A probe; this is the first number never sent.
    Probe(u64),
}

/// Sending state. Packet numbers count from 0 over the whole run.
#[derive(Clone, Debug, Default)]
pub struct Sender {
    next: u64,
    high: u64,
    acked: u64,
    credit: u64,
    limit: u64,
    /// Ranges to send again; bounded by the window.
    repeat: VecDeque<(u64, u64)>,
    /// Numbers sent more than once and not acknowledged (selective).
    repeated: BTreeSet<u64>,
    /// Everything below was possibly sent more than once (go-back-N).
    rewound: u64,
    probe: bool,
    repeated_since_probe: bool,
    deadline: Option<Time>,
    stopped: bool,
    repeats: u64,
    timeouts: u64,
}

impl Sender {
    /// First number never sent.
    #[must_use]
    pub fn high(&self) -> u64 {
        self.high
    }

    /// First number not acknowledged.
    #[must_use]
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Up to which number the receiver has said it has room.
    #[must_use]
    pub fn credit(&self) -> u64 {
        self.credit
    }

    /// When silence becomes a time-out; `None` while everything is acknowledged.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Data packets sent again.
    #[must_use]
    pub fn repeats(&self) -> u64 {
        self.repeats
    }

    /// Time-outs.
    #[must_use]
    pub fn timeouts(&self) -> u64 {
        self.timeouts
    }

    /// Whether this number was sent more than once; such a packet says nothing about the order of the network.
    #[must_use]
    pub fn was_repeated(&self, psn: u64) -> bool {
        psn < self.rewound || self.repeated.contains(&psn)
    }

    /// The ring allows numbers below `limit`. Never shrinks.
    pub fn allow(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// The receiver has room for numbers below `credit`. Never shrinks.
    pub fn grant(&mut self, credit: u64) {
        self.credit = self.credit.max(credit);
    }

    fn end(&self, window: u32) -> u64 {
        self.limit.min(self.credit).min(self.acked + u64::from(window))
    }

    /// Whether something can go out now.
    #[must_use]
    pub fn ready(&self, transport: &Transport) -> bool {
        !self.stopped
            && (self.probe || !self.repeat.is_empty() || self.next < self.end(transport.window))
    }

    /// Takes the probe that waits, if one does: the first number never sent.
    pub fn take_probe(&mut self) -> Option<u64> {
        if self.stopped || !std::mem::take(&mut self.probe) {
            return None;
        }
        self.repeated_since_probe = false;
        Some(self.high)
    }

    /// Takes the next packet.
    pub fn transmit(&mut self, now: Time, transport: &Transport) -> Option<Transmit> {
        if self.stopped {
            return None;
        }
        if let Some(high) = self.take_probe() {
            return Some(Transmit::Probe(high));
        }
        if let Some((from, to)) = self.repeat.front_mut() {
            let psn = *from;
            *from += 1;
            if *from >= *to {
                self.repeat.pop_front();
            }
            self.repeated.insert(psn);
            self.count_repeat();
            return Some(Transmit::Data(psn));
        }
        if self.next >= self.end(transport.window) {
            return None;
        }
        let psn = self.next;
        self.next += 1;
        if psn < self.high {
            self.count_repeat();
        }
        self.high = self.high.max(self.next);
        if self.deadline.is_none() {
            self.deadline = Some(now + transport.timeout);
        }
        Some(Transmit::Data(psn))
    }

    fn count_repeat(&mut self) {
        self.repeats += 1;
        self.repeated_since_probe = true;
    }

    /// An acknowledgement: everything below `expected` has arrived. Nonsense (beyond what was sent) is ignored.
    pub fn acknowledge(&mut self, now: Time, expected: u64, credit: u64, transport: &Transport) {
        if expected > self.high {
            return;
        }
        self.grant(credit);
        if expected <= self.acked {
            return;
        }
        self.acked = expected;
        self.next = self.next.max(expected);
        self.probe = false;
        if !self.repeated.is_empty() {
            self.repeated = self.repeated.split_off(&expected);
        }
        while let Some((from, to)) = self.repeat.front_mut() {
            if *to > expected {
                *from = (*from).max(expected);
                break;
            }
            self.repeat.pop_front();
        }
        self.deadline = (self.acked < self.high && !self.stopped).then(|| now + transport.timeout);
    }

    /// The receiver misses `expected..gap_end`. An answer to a probe is ignored if something was sent again after the probe.
    pub fn missing(
        &mut self,
        now: Time,
        (expected, gap_end): (u64, u64),
        answer: bool,
        transport: &Transport,
    ) {
        if expected > self.high || expected < self.acked || (answer && self.repeated_since_probe) {
            return;
        }
        let gap_end = gap_end.min(self.high);
        if expected < self.high && !self.stopped {
            self.deadline = Some(now + transport.timeout);
        }
        if expected >= gap_end {
            return;
        }
        match transport.recovery {
            Recovery::GoBackN => {
                self.rewound = self.high;
                self.next = expected;
            }
            Recovery::Selective => {
                // One gap is repaired at a time; a later report replaces an earlier one.
                self.repeat.clear();
                self.repeat.push_back((expected, gap_end));
            }
        }
    }

    /// Sends nothing more, not even again.
    pub fn stop(&mut self) {
        self.deadline = None;
        self.stopped = true;
    }

    /// The deadline has passed: asks what has arrived. Returns whether a probe is to go out.
    pub fn expire(&mut self, now: Time, transport: &Transport) -> bool {
        match self.deadline {
            Some(deadline) if deadline <= now => {}
            _ => return false,
        }
        self.timeouts += 1;
        self.deadline = Some(now + transport.timeout);
        self.probe = true;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn transport(recovery: Recovery) -> Transport {
        Transport {
            payload: 1000,
            window: 4,
            ack_every: 2,
            recovery,
            timeout: Span(100),
            reorder_wait: Span(10),
        }
    }

    fn open(recovery: Recovery) -> (Sender, Transport) {
        let mut sender = Sender::default();
        sender.allow(100);
        sender.grant(100);
        (sender, transport(recovery))
    }

    fn take(sender: &mut Sender, transport: &Transport) -> Vec<Transmit> {
        std::iter::from_fn(|| sender.transmit(Time(0), transport)).collect()
    }

    fn data(range: std::ops::Range<u64>) -> Vec<Transmit> {
        range.map(Transmit::Data).collect()
    }

    #[test]
    fn the_window_the_ring_and_the_credit_each_stop_the_sender() {
        let (mut sender, transport) = open(Recovery::Selective);
        assert_eq!(take(&mut sender, &transport), data(0..4), "window");
        sender.acknowledge(Time(1), 2, 5, &transport);
        assert_eq!(
            take(&mut sender, &transport),
            data(4..6),
            "window moves with the acknowledgement"
        );
        let mut sender = Sender::default();
        sender.allow(3);
        sender.grant(2);
        assert_eq!(take(&mut sender, &transport), data(0..2), "credit");
        sender.grant(9);
        assert_eq!(take(&mut sender, &transport), data(2..3), "ring");
    }

    #[test]
    fn selective_repeats_exactly_the_gap_and_go_back_n_everything_from_it() {
        let (mut sender, transport) = open(Recovery::Selective);
        take(&mut sender, &transport);
        sender.missing(Time(1), (1, 3), false, &transport);
        assert_eq!(take(&mut sender, &transport), data(1..3));
        assert!(sender.was_repeated(2) && !sender.was_repeated(3));
        let (mut sender, transport) = open(Recovery::GoBackN);
        take(&mut sender, &transport);
        sender.missing(Time(1), (1, 3), false, &transport);
        assert_eq!(take(&mut sender, &transport), data(1..4));
        assert_eq!(sender.repeats(), 3);
    }

    #[test]
    fn a_time_out_probes_and_never_repeats_data_by_itself() {
        let (mut sender, transport) = open(Recovery::Selective);
        take(&mut sender, &transport);
        assert!(!sender.expire(Time(99), &transport));
        assert!(sender.expire(Time(100), &transport));
        assert_eq!(take(&mut sender, &transport), vec![Transmit::Probe(4)]);
        assert_eq!(sender.deadline(), Some(Time(200)));
        sender.missing(Time(120), (1, 4), true, &transport);
        assert_eq!(take(&mut sender, &transport), data(1..4));
        sender.acknowledge(Time(130), 4, 100, &transport);
        assert_eq!(sender.deadline(), None, "nothing is out");
    }

    #[test]
    fn an_answer_that_crossed_with_a_repetition_is_ignored() {
        let (mut sender, transport) = open(Recovery::Selective);
        take(&mut sender, &transport);
        assert!(sender.expire(Time(100), &transport));
        assert_eq!(take(&mut sender, &transport), vec![Transmit::Probe(4)]);
        sender.missing(Time(110), (1, 2), false, &transport);
        assert_eq!(take(&mut sender, &transport), data(1..2));
        sender.missing(Time(120), (1, 4), true, &transport);
        assert_eq!(take(&mut sender, &transport), vec![]);
    }

    #[test]
    fn an_acknowledgement_of_what_was_never_sent_changes_nothing() {
        let (mut sender, transport) = open(Recovery::Selective);
        take(&mut sender, &transport);
        sender.acknowledge(Time(1), 50, 1 << 40, &transport);
        assert_eq!((sender.acked(), sender.credit()), (0, 100));
    }
}
