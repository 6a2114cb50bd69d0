//! The core's timers, by time. In: instants and keys. Out: what is due. Must not know a clock.

use crate::controller::messages::TimerKey;
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timers that are set; equal times come in the order of setting.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u64, TimerKey)>>,
    set: u64,
}

impl Timers {
    /// Sets one. The core never cancels; it ignores those that no longer matter.
    pub fn set(&mut self, at: Time, key: TimerKey) {
        self.set += 1;
        self.heap.push(Reverse((at, self.set, key)));
    }

    /// When the next one is due.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// The earliest one if it is due by `now`.
    pub fn pop(&mut self, now: Time) -> Option<TimerKey> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, key))| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SwitchId;

    #[test]
    fn timers_come_when_due_by_time_and_then_by_order_of_setting() {
        let mut timers = Timers::default();
        assert_eq!((timers.next(), timers.pop(Time(9))), (None, None));
        timers.set(Time(5), TimerKey::Flips);
        timers.set(Time(3), TimerKey::Session(SwitchId(1)));
        timers.set(Time(3), TimerKey::Labels);
        assert_eq!(timers.next(), Some(Time(3)));
        assert_eq!(timers.pop(Time(2)), None, "not yet");
        assert_eq!(timers.pop(Time(5)), Some(TimerKey::Session(SwitchId(1))));
        assert_eq!(timers.pop(Time(5)), Some(TimerKey::Labels));
        assert_eq!(timers.pop(Time(5)), Some(TimerKey::Flips));
        assert_eq!(timers.pop(Time(5)), None);
    }
}
