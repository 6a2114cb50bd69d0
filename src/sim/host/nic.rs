//! One network interface: acknowledgements first, then the flows in turn, one packet each.
//!
//! In: which flows have something to say. Out: whose turn it is. Must not know what they say: a packet is made when its
//! transmission starts, so it carries the newest state and nothing is copied twice.

use std::collections::VecDeque;

/// Turns of the flows of one host. Bounded: a flow stands at most once in each line.
#[derive(Clone, Debug, Default)]
pub struct Nic {
    control: VecDeque<u32>,
    data: VecDeque<u32>,
    /// A packet is on its way out.
    pub busy: bool,
}

/// A turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The flow's receiver here has an acknowledgement to send.
    Control(u32),
    /// The flow's sender here may have a packet to send.
    Data(u32),
}

impl Nic {
    /// Lines a flow's receiver up; the caller keeps the flag that it stands there.
    pub fn line_up_control(&mut self, flow: u32) {
        self.control.push_back(flow);
    }

    /// Lines a flow's sender up; the caller keeps the flag that it stands there.
    pub fn line_up_data(&mut self, flow: u32) {
        self.data.push_back(flow);
    }

    /// Who is next.
    pub fn turn(&mut self) -> Option<Turn> {
        if let Some(flow) = self.control.pop_front() {
            return Some(Turn::Control(flow));
        }
        self.data.pop_front().map(Turn::Data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_go_first_and_flows_take_turns() {
        let mut nic = Nic::default();
        nic.line_up_data(1);
        nic.line_up_data(2);
        nic.line_up_control(9);
        assert_eq!(nic.turn(), Some(Turn::Control(9)));
        assert_eq!(nic.turn(), Some(Turn::Data(1)));
        nic.line_up_data(1);
        assert_eq!(nic.turn(), Some(Turn::Data(2)));
        assert_eq!(nic.turn(), Some(Turn::Data(1)));
        assert_eq!(nic.turn(), None);
    }
}
