//! How one flow gets from the path and queue it is on to those it should be on.
//!
//! In: a new route for a leg, acknowledgements, flips seen in force. Out: the tag of its `classify` entry. Must not know
//! the other flows, switches' answers, time.
//!
//! ```text
//!            change(route, orderly)                         settle()
//!  Settled ─────────────────────────► Flipping ───────────────────────────► Settled
//!    │  old = now, now = route,          │ packets use `old` until the first   now = what every packet uses
//!    │  flip + 1                         │ gap ≥ flip_gap after the MODIFY
//!    └── change(route, force) ──────────►│ force(): the deadline has passed, or the old path is dead
//! ```
//!
//! A leg is one direction of a flow at the leaf where that direction enters. The two legs of a flow change
//! independently: any mixture of old and new is safe, because every label, old or new, is installed on all its hops.

use crate::id::{FlowId, SwitchId};
use crate::pipeline::classify;
use crate::pipeline::labels::Label;
use crate::pipeline::slots::{Slot, UNTRACKED, next_epoch};
use crate::topology::{FlowKey, Path};
use serde::{Deserialize, Serialize};

/// Which of the two entries of a flow.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Data.
    #[default]
    Forward,
    /// ACK, NAK, CNP.
    Reverse,
}

/// Both sides, in the order in which they are handled.
pub const SIDES: [Side; 2] = [Side::Forward, Side::Reverse];

/// What the packets of a leg are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The tree to the sink leaf.
    pub label: Label,
    /// The queue on every hop.
    pub queue: u8,
}

/// Whether a change of a leg is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Every packet uses `now`.
    Settled,
    /// Packets may still use `old`.
    Flipping,
}

/// One direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegState {
    /// Where it enters the fabric.
    pub leaf: SwitchId,
    /// Where it leaves the fabric.
    pub sink: SwitchId,
    /// Which packets.
    pub key: FlowKey,
    /// Flip and sequence registers at `leaf`.
    pub source_slot: Slot,
    /// Telemetry registers at `sink`; `epoch` is the flow's incarnation.
    pub sink_slot: Slot,
    /// The route that is written.
    pub now: Route,
    /// The route before.
    pub old: Route,
    /// The flip value that is written.
    pub flip: u8,
    /// Whether the change does not wait for a gap.
    pub force: bool,
    /// Whether a change is under way.
    pub stage: Stage,
}

impl LegState {
    /// A leg that has never sent.
    #[must_use]
    pub const fn new(
        leaf: SwitchId,
        sink: SwitchId,
        key: FlowKey,
        source_slot: Slot,
        sink_slot: Slot,
        route: Route,
    ) -> Self {
        Self {
            leaf,
            sink,
            key,
            source_slot,
            sink_slot,
            now: route,
            old: route,
            flip: source_slot.flip,
            force: false,
            stage: Stage::Settled,
        }
    }

    /// The tag of the leg's `classify` entry.
    #[must_use]
    pub const fn tag(&self, flip_gap: u32) -> classify::Action {
        classify::Action {
            label: self.now.label,
            queue: self.now.queue,
            src_slot: self.source_slot.index,
            slot: self.sink_slot.index,
            epoch: self.sink_slot.epoch,
            flip: self.flip,
            old_label: self.old.label,
            old_queue: self.old.queue,
            force: self.force,
            flip_gap,
        }
    }

    /// Starts a change. Without `force` the leg must be settled: a second value written before the first is in force
    /// would let packets overtake (p4/README, "Rules for `classify` entries").
    pub const fn change(&mut self, to: Route, force: bool) {
        self.old = self.now;
        self.now = to;
        self.flip = self.flip.wrapping_add(1);
        self.force = force;
        // An untracked leg has no flip register: the new route applies at once.
        let tracked = self.source_slot.index != UNTRACKED;
        self.stage = if tracked { Stage::Flipping } else { Stage::Settled };
    }

    /// A change away from a route of which nobody knows whether it is still installed: no packet may take it again.
    pub const fn jump(&mut self, to: Route) {
        self.change(to, true);
        self.old = to;
    }

    /// The old route may not be installed any more: no packet may take it again.
    pub fn abandon_old(&mut self) {
        self.old = self.now;
        self.force |= self.stage == Stage::Flipping;
    }

    /// The change can wait no longer.
    pub const fn force(&mut self) {
        self.force = true;
    }

    /// The written flip is in force.
    pub const fn settle(&mut self) {
        self.stage = Stage::Settled;
    }

    /// The registers at `leaf` were lost: the stored flip is unknown, so both routes become the written one, and the
    /// sequence starts anew, which is another incarnation for the sink.
    pub const fn source_restarted(&mut self) {
        self.old = self.now;
        self.force = false;
        self.stage = Stage::Settled;
        self.sink_restarted();
    }

    /// The registers at `sink` were lost: the epoch goes up, so that no sequence number of before is expected.
    pub const fn sink_restarted(&mut self) {
        if self.sink_slot.index != UNTRACKED {
            self.sink_slot.epoch = next_epoch(self.sink_slot.epoch);
        }
    }

    /// The change was refused: the leg is what the switch's entry says.
    pub const fn revert(&mut self, tag: &classify::Action) {
        self.now = Route { label: tag.label, queue: tag.queue };
        self.old = Route { label: tag.old_label, queue: tag.old_queue };
        self.flip = tag.flip;
        self.force = tag.force;
        self.stage = Stage::Settled;
    }

    /// Names the old route no more; allowed once settled.
    pub const fn drop_old(&mut self) {
        self.old = self.now;
        self.force = false;
    }

    /// The source slot as it is given back: the next tenant starts with this tenant's flip.
    #[must_use]
    pub const fn freed_source(&self) -> Slot {
        Slot { flip: self.flip, ..self.source_slot }
    }
}

/// Where a flow should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Goal {
    /// Route of the data.
    pub forward: Route,
    /// Route of the answers.
    pub reverse: Route,
    /// The path of the data.
    pub path: Path,
    /// The policy's reason.
    pub reason: String,
}

impl Goal {
    /// The route of one side.
    #[must_use]
    pub const fn route(&self, side: Side) -> Route {
        match side {
            Side::Forward => self.forward,
            Side::Reverse => self.reverse,
        }
    }
}

/// One flow's entries: the journal of the rollout. Stored before every write that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowState {
    /// The flow.
    pub flow: FlowId,
    /// Its two legs.
    pub legs: [LegState; 2],
    /// Its job is gone: entries are to be removed, then slots given back.
    pub leaving: bool,
}

impl FlowState {
    /// One leg.
    #[must_use]
    pub const fn leg(&self, side: Side) -> &LegState {
        &self.legs[side as usize]
    }

    /// One leg, to change it.
    pub const fn leg_mut(&mut self, side: Side) -> &mut LegState {
        &mut self.legs[side as usize]
    }

    /// Whether the flow is wholly on its goal and nothing is under way.
    #[must_use]
    pub fn reached(&self, goal: &Goal) -> bool {
        SIDES.iter().all(|side| {
            let leg = self.leg(*side);
            leg.stage == Stage::Settled && leg.now == goal.route(*side)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn leg(source_slot: u16) -> LegState {
        let key = FlowKey {
            src: Ipv4Addr::new(10, 0, 0, 1),
            dst: Ipv4Addr::new(10, 0, 0, 2),
            protocol: 6,
            src_port: Some(1),
            dst_port: Some(2),
            dst_qp: None,
        };
        let slot = |index| Slot { index, epoch: 255, flip: 255 };
        let route = Route { label: Label(1), queue: 3 };
        LegState::new(SwitchId(0), SwitchId(1), key, slot(source_slot), slot(4), route)
    }

    #[test]
    fn a_new_leg_uses_its_route_whatever_flip_the_register_holds() {
        let tag = leg(7).tag(200);
        assert_eq!((tag.label, tag.queue), (tag.old_label, tag.old_queue));
        assert_eq!((tag.flip, tag.src_slot, tag.slot, tag.flip_gap), (255, 7, 4, 200));
    }

    #[test]
    fn a_change_keeps_the_old_route_and_writes_another_flip() {
        let mut leg = leg(7);
        leg.change(Route { label: Label(2), queue: 5 }, false);
        let tag = leg.tag(200);
        assert_eq!(
            (tag.label, tag.queue, tag.old_label, tag.old_queue),
            (Label(2), 5, Label(1), 3)
        );
        assert_eq!((tag.flip, tag.force, leg.stage), (0, false, Stage::Flipping));
        leg.force();
        assert!(leg.tag(200).force);
        leg.settle();
        assert_eq!(leg.stage, Stage::Settled);
    }

    #[test]
    fn an_untracked_leg_changes_at_once() {
        let mut leg = leg(UNTRACKED);
        leg.change(Route { label: Label(2), queue: 5 }, false);
        assert_eq!(leg.stage, Stage::Settled);
    }

    #[test]
    fn after_lost_registers_no_packet_can_take_the_old_route_and_the_epoch_is_new() {
        let mut leg = leg(7);
        leg.change(Route { label: Label(2), queue: 5 }, true);
        leg.source_restarted();
        let tag = leg.tag(200);
        assert_eq!(
            (tag.label, tag.old_label, tag.force, tag.epoch),
            (Label(2), Label(2), false, 1)
        );
        assert_eq!(leg.stage, Stage::Settled);
        assert_eq!(leg.freed_source().flip, 0);
    }
}
