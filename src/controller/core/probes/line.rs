//! What probes say of one direction of a cable. In: probes sent and heard. Out: when it died and when it may be used again. Must not know
//! switches, keys, or time: it counts probes.
//!
//! ```text
//!            3 missed in a row, or heard at a wrong port
//!    Up ───────────────────────────────────────────────────► Down
//!     ▲                                                        │
//!     └──── 10 · 2^relapses heard in a row at the right one ◄──┘
//! ```

use crate::id::{PortNo, SwitchId};

/// Probes without an answer after which a link is dead.
pub const DEAD: u64 = 3;
/// Probes in a row after which one that was dead is used again.
pub const ALIVE: u32 = 10;
/// Most doublings of that: at ten probes per second a link that flaps without end then needs a minute of probes in a row.
const RELAPSES_MAX: u32 = 6;
/// A link that stays alive for so many probes has no past: a minute at the usual interval.
const CALM: u64 = 600;

/// What a probe came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changed.
    Same,
    /// The link is used again.
    Up,
    /// The link is dead.
    Down,
    /// The probe is old news: given up already, or a copy of one that was heard.
    Stale,
}

/// One direction of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Number of the newest probe.
    sent: u64,
    /// Everything up to this one was heard or given up.
    settled: u64,
    /// Probes given up or jumped over, since the start.
    pub lost: u64,
    down: bool,
    /// Heard in a row at the right port while down.
    good: u32,
    relapses: u32,
    /// Heard since it was last taken into use; `None` before it ever was down.
    calm: Option<u64>,
    /// Where its probes come out instead.
    pub stray: Option<(SwitchId, PortNo)>,
}

impl Line {
    /// Whether it is dead.
    #[cfg(test)]
    const fn is_down(&self) -> bool {
        self.down
    }

    /// Probes that must be heard in a row before it is used again.
    pub const fn needed(&self) -> u32 {
        ALIVE << self.relapses
    }

    /// Nothing can be concluded from silence for now: one of its ends is not ready.
    pub const fn pause(&mut self) {
        self.settled = self.sent;
    }

    /// Time for the next probe: its number, and what the silence since the last ones means.
    pub fn send(&mut self) -> (u64, Verdict) {
        let mut verdict = Verdict::Same;
        if self.sent - self.settled >= DEAD {
            self.settled += 1;
            self.lost += 1;
            self.good = 0;
            if !self.down {
                self.die();
                verdict = Verdict::Down;
            }
        }
        self.sent += 1;
        (self.sent, verdict)
    }

    /// A genuine probe came in at the right port.
    pub fn hear(&mut self, counter: u64) -> Verdict {
        if !self.take(counter) {
            return Verdict::Stale;
        }
        self.stray = None;
        if !self.down {
            self.calm = self.calm.map(|heard| heard + 1);
            return Verdict::Same;
        }
        self.good += 1;
        if self.good < self.needed() {
            return Verdict::Same;
        }
        self.down = false;
        self.calm = Some(0);
        Verdict::Up
    }

    /// A genuine probe came in where it should not.
    pub fn hear_astray(&mut self, counter: u64, at: (SwitchId, PortNo)) -> Verdict {
        if !self.take(counter) {
            return Verdict::Stale;
        }
        self.stray = Some(at);
        self.good = 0;
        if self.down {
            return Verdict::Same;
        }
        self.die();
        Verdict::Down
    }

    /// Settles a probe; `false` if it was.
    const fn take(&mut self, counter: u64) -> bool {
        if counter <= self.settled || counter > self.sent {
            return false;
        }
        let missed = counter - self.settled - 1;
        if missed > 0 {
            self.lost += missed;
            self.good = 0;
        }
        self.settled = counter;
        true
    }

    fn die(&mut self) {
        self.relapses = match self.calm {
            Some(heard) if heard < CALM => (self.relapses + 1).min(RELAPSES_MAX),
            _ => 0,
        };
        (self.down, self.good) = (true, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: (SwitchId, PortNo) = (SwitchId(1), PortNo(2));

    /// Plays probes: `+` heard before the next, `-` lost, `w` heard at a wrong port, `p` a pause. Answers with a letter where something
    /// changed: `u`, `d`.
    fn play(line: &mut Line, probes: &str) -> String {
        let mut told = String::new();
        for probe in probes.chars() {
            let (counter, sent) = line.send();
            let heard = match probe {
                '+' => line.hear(counter),
                'w' => line.hear_astray(counter, AT),
                'p' => {
                    line.pause();
                    Verdict::Same
                }
                _ => Verdict::Same,
            };
            for verdict in [sent, heard] {
                told.push_str(match verdict {
                    Verdict::Up => "u",
                    Verdict::Down => "d",
                    Verdict::Same => "",
                    Verdict::Stale => "?",
                });
            }
            told.push('.');
        }
        told
    }

    #[test]
    fn three_missed_probes_kill_a_link_and_nothing_less_does() {
        for (probes, wanted, lost) in [
            ("++++", "....", 0),
            ("+--+--+--+", "..........", 6),
            // The verdict falls when the one after the third is due, also if that one comes.
            ("+---", "....", 0),
            ("+----", "....d.", 1),
            ("---+", "...d.", 3),
            ("--p--p--", "........", 0),
        ] {
            let mut line = Line::default();
            assert_eq!((play(&mut line, probes).as_str(), line.lost), (wanted, lost), "{probes}");
        }
    }

    #[test]
    fn ten_in_a_row_revive_it_and_one_gap_begins_the_count_anew() {
        let mut line = Line::default();
        play(&mut line, "----");
        assert!(line.is_down());
        assert_eq!(play(&mut line, "+++++++++"), ".........");
        assert_eq!(play(&mut line, "-+++++++++"), "..........");
        assert_eq!(play(&mut line, "+"), "u.");
        assert!(!line.is_down());
    }

    #[test]
    fn a_link_that_dies_again_soon_must_prove_itself_twice_as_long_and_a_calm_one_is_forgiven() {
        let mut line = Line::default();
        let mut needed = Vec::new();
        for _ in 0..9 {
            play(&mut line, "----");
            needed.push(line.needed());
            let proof = "+".repeat(line.needed() as usize);
            assert!(play(&mut line, &proof).ends_with("u."));
        }
        assert_eq!(needed, [10, 20, 40, 80, 160, 320, 640, 640, 640]);
        play(&mut line, &"+".repeat(600));
        play(&mut line, "----");
        assert_eq!(line.needed(), 10);
    }

    #[test]
    fn copies_old_probes_and_numbers_never_sent_are_stale() {
        let mut line = Line::default();
        let (first, _) = line.send();
        assert_eq!(line.hear(first + 1), Verdict::Stale, "never sent");
        assert_eq!(line.hear(first), Verdict::Same);
        assert_eq!(line.hear(first), Verdict::Stale, "a copy");
        let (late, _) = line.send();
        play(&mut line, "---");
        assert_eq!(line.hear(late), Verdict::Stale, "given up");
        assert!(line.is_down());
        // A copy of the past at a wrong port proves nothing either.
        assert_eq!(line.hear_astray(first, AT), Verdict::Stale);
        assert_eq!(line.stray, None);
    }

    #[test]
    fn a_probe_at_a_wrong_port_kills_at_once_and_the_right_port_revives() {
        let mut line = Line::default();
        assert_eq!(play(&mut line, "+w"), ".d.");
        assert_eq!(line.stray, Some(AT));
        assert_eq!(play(&mut line, "+++++++++w"), "..........", "not long enough");
        assert_eq!(play(&mut line, "++++++++++"), ".........u.");
        assert_eq!(line.stray, None);
    }

    #[test]
    fn an_answer_that_takes_two_intervals_is_no_miss() {
        let mut line = Line::default();
        for number in 1..50_u64 {
            assert_eq!(line.send(), (number, Verdict::Same));
            if let Some(old) = number.checked_sub(2).filter(|old| *old > 0) {
                assert_eq!(line.hear(old), Verdict::Same, "{number}");
            }
        }
        assert_eq!(line.lost, 0);
    }
}
