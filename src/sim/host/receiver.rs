//! The receiving end of one flow.
//!
//! In: packet numbers as they arrive. Out: how far the data is complete, acknowledgements, and the truth about
//! duplicates and order. Must not know bytes or links.

use super::frame::Kind;
use super::{MAX_WINDOW, Recovery, Transport};
use crate::time::Time;

/// What a data packet was to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The expected one, possibly completing what came early.
    InOrder,
    /// Beyond the expected one; kept.
    Early,
    /// Beyond the expected one; thrown away (go-back-N, or outside the window).
    Refused,
    /// Had arrived before.
    Duplicate,
}

/// Receiving state.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    expected: u64,
    /// One past the highest number that arrived.
    highest: u64,
    /// Bit `psn % MAX_WINDOW`: arrived early.
    early: [u64; (MAX_WINDOW / 64) as usize],
    early_count: u32,
    /// One past the highest number that a probe says was sent.
    probed: u64,
    /// When the gap counts as a loss (selective).
    nak_at: Option<Time>,
    /// The gap that was reported (go-back-N).
    nak_sent_for: Option<u64>,
    pending: Pending,
    advertised: u64,
}

/// The acknowledgement that waits for its turn at the NIC; the state is read when it goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    Nothing,
    Ack,
    Nak,
    Answer(u64),
}

impl Receiver {
    /// First number that has not arrived; everything below is complete.
    #[must_use]
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// When an open gap counts as a loss.
    #[must_use]
    pub fn nak_at(&self) -> Option<Time> {
        self.nak_at
    }

    /// Whether an acknowledgement waits.
    #[must_use]
    pub fn has_pending(&self) -> bool {
        self.pending != Pending::Nothing
    }

    /// Up to which number the sender was told that there is room.
    #[must_use]
    pub fn advertised(&self) -> u64 {
        self.advertised
    }

    /// The sender knows from the start that there is room below `credit`.
    pub fn assume_advertised(&mut self, credit: u64) {
        self.advertised = self.advertised.max(credit);
    }

    /// Whether a number lower than `psn`'s successors has come before it: it arrives behind a later packet.
    #[must_use]
    pub fn is_late(&self, psn: u64) -> bool {
        psn + 1 < self.highest
    }

    fn bit(psn: u64) -> (usize, u64) {
        let at = psn % u64::from(MAX_WINDOW);
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn has_early(&self, psn: u64) -> bool {
        let (word, bit) = Self::bit(psn);
        self.early[word] & bit != 0
    }

    /// A data packet arrived.
    pub fn data(
        &mut self,
        now: Time,
        psn: u64,
        ack_request: bool,
        transport: &Transport,
    ) -> Arrival {
        if ack_request {
            self.ask(Pending::Ack);
        }
        if psn < self.expected {
            self.ask(Pending::Ack);
            return Arrival::Duplicate;
        }
        if psn > self.expected {
            return self.beyond(now, psn, transport);
        }
        self.highest = self.highest.max(psn + 1);
        self.expected += 1;
        self.nak_sent_for = None;
        self.absorb();
        // Progress shows that the path of what is missing is alive: it may wait in a queue, so the wait starts again.
        self.nak_at = None;
        self.suspect(now, transport);
        Arrival::InOrder
    }

    fn beyond(&mut self, now: Time, psn: u64, transport: &Transport) -> Arrival {
        self.highest = self.highest.max(psn + 1);
        match transport.recovery {
            Recovery::GoBackN => {
                if self.nak_sent_for != Some(self.expected) {
                    self.nak_sent_for = Some(self.expected);
                    self.ask(Pending::Nak);
                }
                Arrival::Refused
            }
            Recovery::Selective => {
                if psn >= self.expected + u64::from(MAX_WINDOW) {
                    return Arrival::Refused;
                }
                if self.has_early(psn) {
                    return Arrival::Duplicate;
                }
                let (word, bit) = Self::bit(psn);
                self.early[word] |= bit;
                self.early_count += 1;
                self.suspect(now, transport);
                Arrival::Early
            }
        }
    }

    /// Takes over what came early and now is in order.
    fn absorb(&mut self) {
        if self.early_count == 0 {
            return;
        }
        while self.early_count > 0 && self.has_early(self.expected) {
            let (word, bit) = Self::bit(self.expected);
            self.early[word] &= !bit;
            self.early_count -= 1;
            self.expected += 1;
        }
        self.ask(Pending::Ack);
    }

    /// If something is known to have been sent and is not here, waits for it from now on.
    fn suspect(&mut self, now: Time, transport: &Transport) {
        if transport.recovery == Recovery::Selective
            && self.nak_at.is_none()
            && self.expected < self.highest.max(self.probed)
        {
            self.nak_at = Some(now + transport.reorder_wait);
        }
    }

    /// A probe arrived; `high` is the first number that the sender never sent. Go-back-N answers at once with what is
    /// missing; a selective receiver says how far it is and waits for what may only be late.
    pub fn probe(&mut self, now: Time, high: u64, transport: &Transport) {
        match transport.recovery {
            Recovery::GoBackN => self.ask(Pending::Answer(high)),
            Recovery::Selective => {
                self.probed = self.probed.max(high);
                self.suspect(now, transport);
                self.ask(Pending::Ack);
            }
        }
    }

    /// The wait for late packets is over. Returns whether a NAK is to go out. If the repetition is lost too, the next
    /// packet or probe starts another wait.
    pub fn expire(&mut self, now: Time) -> bool {
        match self.nak_at {
            Some(at) if at <= now => {}
            _ => return false,
        }
        self.nak_at = None;
        self.ask(Pending::Nak);
        true
    }

    /// There is room beyond what the sender knows.
    pub fn announce_credit(&mut self) {
        self.ask(Pending::Ack);
    }

    /// A stronger statement replaces a weaker one.
    fn ask(&mut self, wanted: Pending) {
        let rank = |pending: Pending| match pending {
            Pending::Nothing => 0,
            Pending::Ack => 1,
            Pending::Nak => 2,
            Pending::Answer(_) => 3,
        };
        if rank(wanted) >= rank(self.pending) {
            self.pending = wanted;
        }
    }

    /// Takes the acknowledgement that waits: its kind and number.
    pub fn answer(&mut self, credit: u64) -> Option<(Kind, u64)> {
        let low = credit as u32;
        let kind = match std::mem::take(&mut self.pending) {
            Pending::Nothing => return None,
            Pending::Ack => Kind::Ack { credit: low },
            Pending::Nak => {
                let gap_end = self.gap_end(self.highest.max(self.probed)) as u32;
                Kind::Nak { credit: low, gap_end, answer: false }
            }
            Pending::Answer(high) => {
                let gap_end = self.gap_end(high) as u32;
                Kind::Nak { credit: low, gap_end, answer: true }
            }
        };
        self.advertised = self.advertised.max(credit);
        Some((kind, self.expected))
    }

    /// First number after the gap at `expected`: what came early, else `high`.
    fn gap_end(&self, high: u64) -> u64 {
        (self.expected..high).find(|psn| self.has_early(*psn)).unwrap_or(high.max(self.expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn transport(recovery: Recovery) -> Transport {
        Transport {
            payload: 1000,
            window: 16,
            ack_every: 2,
            recovery,
            timeout: Span(100),
            reorder_wait: Span(10),
        }
    }

    #[test]
    fn a_late_packet_within_the_wait_is_no_loss() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::Selective));
        assert_eq!(receiver.data(Time(0), 0, false, &transport), Arrival::InOrder);
        assert_eq!(receiver.data(Time(1), 2, false, &transport), Arrival::Early);
        assert_eq!(receiver.nak_at(), Some(Time(11)));
        assert!(receiver.is_late(1));
        assert_eq!(receiver.data(Time(5), 1, false, &transport), Arrival::InOrder);
        assert_eq!((receiver.expected(), receiver.nak_at()), (3, None));
        assert!(!receiver.expire(Time(11)));
    }

    #[test]
    fn a_gap_that_stays_is_reported_with_both_ends() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::Selective));
        receiver.data(Time(0), 0, false, &transport);
        receiver.data(Time(1), 3, false, &transport);
        receiver.data(Time(2), 5, false, &transport);
        assert!(receiver.expire(Time(11)));
        let wanted = Kind::Nak { credit: 40, gap_end: 3, answer: false };
        assert_eq!(receiver.answer(40), Some((wanted, 1)));
        receiver.data(Time(12), 6, false, &transport);
        assert_eq!((receiver.nak_at(), receiver.has_pending()), (Some(Time(22)), false));
        receiver.data(Time(20), 1, false, &transport);
        assert_eq!(receiver.nak_at(), Some(Time(30)), "progress starts the wait again");
        receiver.data(Time(21), 2, false, &transport);
        assert_eq!(receiver.expected(), 4, "the early 3 is taken over");
        assert_eq!(receiver.nak_at(), Some(Time(31)), "4 is missing");
    }

    #[test]
    fn go_back_n_throws_early_packets_away_and_says_so_once() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::GoBackN));
        assert_eq!(receiver.data(Time(0), 1, false, &transport), Arrival::Refused);
        assert_eq!(
            receiver.answer(9),
            Some((Kind::Nak { credit: 9, gap_end: 2, answer: false }, 0))
        );
        assert_eq!(receiver.data(Time(1), 2, false, &transport), Arrival::Refused);
        assert_eq!(receiver.answer(9), None);
    }

    #[test]
    fn a_probe_is_answered_and_what_is_missing_is_asked_for_after_the_wait() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::Selective));
        receiver.data(Time(0), 0, false, &transport);
        receiver.probe(Time(5), 7, &transport);
        assert_eq!(receiver.answer(9), Some((Kind::Ack { credit: 9 }, 1)));
        receiver.probe(Time(9), 7, &transport);
        assert!(!receiver.expire(Time(14)) && receiver.expire(Time(15)));
        let wanted = Kind::Nak { credit: 9, gap_end: 7, answer: false };
        assert_eq!(receiver.answer(9), Some((wanted, 1)));
        receiver.probe(Time(20), 7, &transport);
        assert!(receiver.expire(Time(30)), "a repetition that is lost too is asked for again");
    }

    #[test]
    fn go_back_n_answers_a_probe_at_once() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::GoBackN));
        receiver.data(Time(0), 0, false, &transport);
        receiver.probe(Time(5), 7, &transport);
        let wanted = Kind::Nak { credit: 9, gap_end: 7, answer: true };
        assert_eq!(receiver.answer(9), Some((wanted, 1)));
    }

    #[test]
    fn a_number_that_arrived_is_a_duplicate_whether_early_or_done() {
        let (mut receiver, transport) = (Receiver::default(), transport(Recovery::Selective));
        receiver.data(Time(0), 0, false, &transport);
        receiver.data(Time(0), 2, false, &transport);
        assert_eq!(receiver.data(Time(1), 0, false, &transport), Arrival::Duplicate);
        assert_eq!(receiver.data(Time(1), 2, false, &transport), Arrival::Duplicate);
    }
}
