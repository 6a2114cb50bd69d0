//! One direction of a cable while the simulation runs.
//!
//! In: the topology's link, the scale, failures. Out: where a frame arrives and how fast it goes. Must not know frames.

use crate::id::{HostId, PortNo, SwitchId};
use crate::time::Span;
use crate::units::BitRate;

/// The far or near end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A port of a switch.
    Switch(SwitchId, PortNo),
    /// A host's interface.
    Host(HostId),
}

/// State of one directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Sending end.
    pub from: End,
    /// Receiving end.
    pub to: End,
    /// Rate after scaling, undisturbed.
    pub nominal: BitRate,
    /// Rate in force.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// Whether frames pass.
    pub up: bool,
    /// Grows whenever the link goes down: a frame sent in an earlier epoch was on the wire and is lost.
    pub epoch: u32,
}

impl Link {
    /// Takes the link up or down.
    pub fn set_up(&mut self, up: bool) {
        if self.up && !up {
            self.epoch = self.epoch.wrapping_add(1);
        }
        self.up = up;
    }

    /// Whether a frame sent in `epoch` arrives.
    #[must_use]
    pub fn carries(&self, epoch: u32) -> bool {
        self.up && self.epoch == epoch
    }
}
