//! What is decided about a switch before it has a program. In: flags or a scenario. Out: plain values. Must not know
//! programs.

use crate::id::PortNo;
use crate::switch::traffic::Limits;
use crate::time::Time;

/// A switch's own clock: every switch of a fabric runs with another offset and speed, as real ones do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What it shows at the start of the run, in nanoseconds.
    pub offset_ns: u64,
    /// How much faster than true time it runs, in parts per million.
    pub skew_ppm: i32,
}

impl Clock {
    /// Nanoseconds that the clock shows at `now`.
    #[must_use]
    pub fn local_ns(self, now: Time) -> u64 {
        if self.skew_ppm == 0 {
            // Most clocks, several times per packet: a division of 128 bits is not for nothing.
            return self.offset_ns.saturating_add(now.0);
        }
        let drift = i128::from(now.0) * i128::from(self.skew_ppm) / 1_000_000;
        let shown = i128::from(self.offset_ns) + i128::from(now.0) + drift;
        u64::try_from(shown.max(0)).unwrap_or(u64::MAX)
    }

    /// Microseconds that the clock shows at `now`: the unit of v1model's time stamps.
    #[must_use]
    pub fn local_us(self, now: Time) -> u64 {
        self.local_ns(now) / 1_000
    }
}

/// A switch's settings. `Config::default()` is what simple_switch_grpc starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The id that P4Runtime requests must carry.
    pub device_id: u64,
    /// Packets sent here go to the controller.
    pub cpu_port: PortNo,
    /// Packets sent here are dropped.
    pub drop_port: PortNo,
    /// Priority queues per port, 1 to 32.
    pub priority_queues: u8,
    /// Packets that fit into one queue (BMv2: 64).
    pub queue_packets: u32,
    /// Bytes that fit into one queue; `None` = packets decide alone, as on BMv2.
    pub queue_bytes: Option<u64>,
    /// Answer where PI and BMv2 differ from the specification as they do (facts C.7), to test controllers against.
    pub mimic_bmv2: bool,
    /// The switch's clock.
    pub clock: Clock,
    /// Nanoseconds from the Epoch to the clock's zero, for the times in messages to controllers; 0 in virtual time.
    pub epoch_ns: u64,
    /// Seed of the `random` extern.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            device_id: 0,
            cpu_port: PortNo(510),
            drop_port: PortNo(511),
            priority_queues: 1,
            queue_packets: 64,
            queue_bytes: None,
            mimic_bmv2: false,
            clock: Clock::default(),
            epoch_ns: 0,
            seed: 0,
        }
    }
}

impl Config {
    /// The queues' limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            queues: self.priority_queues,
            packets: self.queue_packets,
            bytes: self.queue_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skewed_clock_drifts_from_its_offset() {
        let clock = Clock { offset_ns: 5_000, skew_ppm: 100 };
        assert_eq!(clock.local_ns(Time(0)), 5_000);
        assert_eq!(clock.local_ns(Time(1_000_000_000)), 5_000 + 1_000_000_000 + 100_000);
        let slow = Clock { offset_ns: 0, skew_ppm: -100 };
        assert_eq!(slow.local_us(Time(1_000_000_000)), 999_900);
        assert_eq!(Clock { offset_ns: u64::MAX, skew_ppm: 0 }.local_ns(Time(5)), u64::MAX);
    }
}
