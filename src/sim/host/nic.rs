//! One network interface: acknowledgements first, then the queues of the plan from the highest down, and within a queue
//! the flows in turn, one packet each.
//!
//! A NIC serves traffic classes as a switch port serves queues (802.1Qaz strict priority; Crux sets the class with
//! `ibv_modify_qp`), so the host link shares its rate by the same rule as every other link.
//!
//! In: which flows have something to say, and in which queue. Out: whose turn it is. Must not know what they say: a packet is made when its
//! transmission starts, so it carries the newest state and nothing is copied twice.

use std::collections::VecDeque;

/// Queues of an interface, as of a switch port.
pub const QUEUES: usize = 8;

/// Turns of the flows of one host. Bounded: a flow stands at most once in each line.
#[derive(Clone, Debug, Default)]
pub struct Nic {
    control: VecDeque<Turn>,
    /// One line per queue; larger is served first.
    data: [VecDeque<u32>; QUEUES],
    /// A packet is on its way out.
    pub busy: bool,
}

/// A turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The flow's receiver here has an acknowledgement to send.
    Control(u32),
    /// The flow's sender here may have a probe to send.
    Probe(u32),
    /// The flow's sender here may have a packet to send.
    Data(u32),
}

impl Nic {
    /// Lines a flow's receiver up; the caller keeps the flag that it stands there.
    pub fn line_up_control(&mut self, flow: u32) {
        self.control.push_back(Turn::Control(flow));
    }

    /// Lines a flow's probe up. Probes do not wait behind the data of higher queues: a flow with unacknowledged data
    /// must be heard by its first switch once per time-out, or a flip would take its silence for an empty network.
    pub fn line_up_probe(&mut self, flow: u32) {
        self.control.push_back(Turn::Probe(flow));
    }

    /// Lines a flow's sender up in a queue (beyond the last: the last); the caller keeps the flag that it stands there.
    pub fn line_up_data(&mut self, flow: u32, queue: u8) {
        self.data[usize::from(queue).min(QUEUES - 1)].push_back(flow);
    }

    /// Who is next.
    pub fn turn(&mut self) -> Option<Turn> {
        if let Some(turn) = self.control.pop_front() {
            return Some(turn);
        }
        self.data.iter_mut().rev().find_map(VecDeque::pop_front).map(Turn::Data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_go_first_and_flows_take_turns() {
        let mut nic = Nic::default();
        nic.line_up_data(1, 0);
        nic.line_up_data(2, 0);
        nic.line_up_control(9);
        assert_eq!(nic.turn(), Some(Turn::Control(9)));
        assert_eq!(nic.turn(), Some(Turn::Data(1)));
        nic.line_up_data(1, 0);
        assert_eq!(nic.turn(), Some(Turn::Data(2)));
        assert_eq!(nic.turn(), Some(Turn::Data(1)));
        assert_eq!(nic.turn(), None);
    }

    #[test]
    fn probes_go_first_then_higher_queues_and_an_unknown_one_counts_as_the_highest() {
        let mut nic = Nic::default();
        nic.line_up_data(1, 0);
        nic.line_up_data(2, 5);
        nic.line_up_data(3, 200);
        nic.line_up_probe(1);
        assert_eq!(nic.turn(), Some(Turn::Probe(1)));
        assert_eq!(nic.turn(), Some(Turn::Data(3)));
        assert_eq!(nic.turn(), Some(Turn::Data(2)));
        assert_eq!(nic.turn(), Some(Turn::Data(1)));
    }
}
