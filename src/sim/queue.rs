//! The simulator's clock: events in virtual time.
//!
//! In: events with their time. Out: the earliest, ties in the order in which they were pushed, so that a run is a
//! function of its seed. Must not know what an event means.

use crate::time::Time;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events waiting, keyed (virtual time, sequence number of the push).
#[derive(Clone, Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Entry<E>>,
    now: Time,
    pushed: u64,
    popped: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    at: Time,
    sequence: u64,
    event: E,
}

// `BinaryHeap` gives the largest first, hence the reversed order. Sequence numbers are unique, so two entries never
// compare equal and the event itself takes no part.
impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}
impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}
impl<E> Eq for Entry<E> {}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), now: Time::ZERO, pushed: 0, popped: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event. A time in the past means now: virtual time never runs backwards.
    pub fn push(&mut self, at: Time, event: E) {
        let at = at.max(self.now);
        self.heap.push(Entry { at, sequence: self.pushed, event });
        self.pushed += 1;
    }

    /// Takes the earliest event and moves the clock to it.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let entry = self.heap.pop()?;
        self.now = entry.at;
        self.popped += 1;
        Some((entry.at, entry.event))
    }

    /// Time of the earliest event.
    #[must_use]
    pub fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// Time of the event taken last.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events taken so far.
    #[must_use]
    pub fn handled(&self) -> u64 {
        self.popped
    }

    /// Events waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_at_one_time_come_in_the_order_of_the_push() {
        let mut queue = Queue::default();
        for event in 0..100 {
            queue.push(Time(7), event);
        }
        queue.push(Time(3), 1000);
        assert_eq!(queue.pop(), Some((Time(3), 1000)));
        for event in 0..100 {
            assert_eq!(queue.pop(), Some((Time(7), event)));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn a_push_into_the_past_happens_now() {
        let mut queue = Queue::default();
        queue.push(Time(9), 'a');
        assert_eq!(queue.pop(), Some((Time(9), 'a')));
        queue.push(Time(4), 'b');
        assert_eq!(queue.pop(), Some((Time(9), 'b')));
    }

    proptest! {
        #[test]
        fn the_queue_is_a_stable_sort_by_time(times in prop::collection::vec(0_u64..50, 0..200)) {
            let mut queue = Queue::default();
            for (event, at) in times.iter().enumerate() {
                queue.push(Time(*at), event);
            }
            let mut wanted: Vec<(u64, usize)> = times.iter().copied().enumerate().map(|(e, t)| (t, e)).collect();
            wanted.sort_by_key(|(at, _)| *at);
            let mut got = Vec::new();
            while let Some((at, event)) = queue.pop() {
                got.push((at.0, event));
            }
            prop_assert_eq!(got, wanted);
        }
    }
}
