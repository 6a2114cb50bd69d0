//! The rollout: flows move from where they are to their goals, one by one.
//!
//! In: goals, acknowledged entries, flips seen in force. Out: journalled flow states, wanted `classify` entries, forced
//! flips. Must not plan or send updates.
//!
//! A leg changes when the labels of its new route are installed on every hop and its last change is in force. A dead
//! route does not wait for either flip or gap: nothing that was sent along it will arrive.

use super::super::messages::{Event, TimerKey};
use super::super::rollout::{FlowState, LegState, SIDES, Side, Stage};
use super::switch::{Call, Phase};
use super::{Core, Key, fabric};
use crate::id::{FlowId, JobId, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc};
use crate::pipeline::entry_set::{label_key, leg_key};
use crate::pipeline::labels::Label;
use crate::pipeline::slots::{self, Slot, UNTRACKED};
use crate::pipeline::{Leg, reconcile::MAX_BATCH};

impl Core {
    /// Starts every change that can start now, and forgets flows that have left.
    pub(super) fn start_changes(&mut self) {
        for flow in self.unsettled.clone() {
            let leaving = self.states.get(&flow).is_some_and(|state| state.leaving);
            if leaving {
                self.release_if_gone(flow);
            } else if self.advance_flow(flow) {
                self.unsettled.remove(&flow);
            }
        }
        self.load_drained();
    }

    /// Whether there is nothing left to do for the flow until its goal changes.
    fn advance_flow(&mut self, id: FlowId) -> bool {
        let Some(goal) = self.goals.get(&id).cloned() else { return true };
        if !self.states.contains_key(&id) {
            self.place(id);
            return false;
        }
        let mut reached = true;
        for side in SIDES {
            let Some(state) = self.states.get(&id) else { return true };
            let (leg, to) = (*state.leg(side), goal.route(side));
            if leg.now == to {
                reached &= leg.stage == Stage::Settled;
                continue;
            }
            reached = false;
            if !self.label_installed(leg.leaf, to.label) {
                continue;
            }
            let dead = self.route_dead(leg.leaf, leg.now.label);
            if self.label_denied(leg.leaf, leg.now.label) {
                self.edit_leg(id, side, |leg| leg.jump(to));
            } else if leg.stage == Stage::Settled || dead {
                self.edit_leg(id, side, |leg| leg.change(to, dead));
            }
        }
        reached
    }

    /// First entries of a flow: slots at both leaves, both legs on their goal.
    fn place(&mut self, id: FlowId) {
        let (Some(flow), Some(goal)) = (self.flows.get(&id).cloned(), self.goals.get(&id).cloned())
        else {
            return;
        };
        let topology = &self.config.topology;
        let (leaf, sink) = (topology.leaf_of(flow.src), topology.leaf_of(flow.dst));
        let (now, sizes) = (self.now, self.config.slots);
        let source = self.slots.allocate(now, leaf, slots::Side::Source, sizes);
        let tracked = self.slots.allocate(now, sink, slots::Side::Sink, sizes);
        // Answers keep their order by a source slot of their own; nobody reads telemetry about them.
        let back = self.slots.allocate(now, sink, slots::Side::Source, sizes);
        let forward = LegState::new(leaf, sink, flow.key, source, tracked, goal.forward);
        let reverse = LegState::new(sink, leaf, flow.reverse, back, Slot::default(), goal.reverse);
        self.states.insert(id, FlowState { flow: id, legs: [forward, reverse], leaving: false });
        self.dirty.extend([Key::Slots, Key::Flow(id)]);
        if [source.index, tracked.index, back.index].contains(&UNTRACKED) {
            self.notify(Event::Untracked { flow: id });
        }
        for side in SIDES {
            self.index_leg(id, side);
            self.put_leg(id, side);
        }
    }

    /// Changes a leg in the journal and in what its leaf should hold.
    pub(super) fn edit_leg(&mut self, id: FlowId, side: Side, edit: impl FnOnce(&mut LegState)) {
        if let Some(state) = self.states.get_mut(&id) {
            edit(state.leg_mut(side));
            self.dirty.insert(Key::Flow(id));
            self.flips.remove(&(id, side));
            self.put_leg(id, side);
        }
    }

    fn put_leg(&mut self, id: FlowId, side: Side) {
        let Some(state) = self.states.get(&id) else { return };
        let leg = state.leg(side);
        let gap = self.config.program.target.gap(self.config.settings.flip_gap);
        let entry = Leg { key: leg.key, tag: leg.tag(gap) };
        let switch = &mut self.switches[leg.leaf.index()];
        switch.wanted.put_leg(&fabric(&self.config, &self.ground), &entry);
        switch.synced = false;
        switch.pump = true;
        self.unsettled.insert(id);
    }

    fn index_leg(&mut self, id: FlowId, side: Side) {
        let Some(state) = self.states.get(&id) else { return };
        let leg = state.leg(side);
        if let Some(key) = leg_key(&self.config.program, leg.key) {
            self.legs.insert((leg.leaf, key), (id, side));
        }
    }

    /// Finds the owners of all `classify` keys, after loading.
    pub(super) fn index_legs(&mut self) {
        for id in self.states.keys().copied().collect::<Vec<_>>() {
            for side in SIDES {
                self.index_leg(id, side);
            }
        }
    }

    /// The flow's job is gone: its entries are wanted no more.
    pub(super) fn leave(&mut self, id: FlowId) {
        let Some(state) = self.states.get_mut(&id) else { return };
        state.leaving = true;
        self.dirty.insert(Key::Flow(id));
        self.unsettled.insert(id);
        let legs = state.legs;
        let fabric = fabric(&self.config, &self.ground);
        for (leg, side) in legs.iter().zip(SIDES) {
            self.flips.remove(&(id, side));
            let switch = &mut self.switches[leg.leaf.index()];
            switch.wanted.remove_leg(&fabric, leg.key);
            switch.synced = false;
            switch.pump = true;
        }
    }

    /// Gives the slots of a leaving flow back once both entries are known to be gone.
    fn release_if_gone(&mut self, id: FlowId) {
        let Some(state) = self.states.get(&id) else { return };
        let legs = state.legs;
        let gone = |leg: &LegState| {
            let switch = &self.switches[leg.leaf.index()];
            leg_key(&self.config.program, leg.key).is_none_or(|key| {
                switch.phase == Phase::Active
                    && switch.present.get(&key).is_none()
                    && !switch.busy.contains(&key)
                    && !switch.tainted.contains(&key)
            })
        };
        if !legs.iter().all(gone) {
            return;
        }
        let (now, sizes) = (self.now, self.config.slots);
        for leg in &legs {
            let source = leg.freed_source();
            self.slots.release(now, leg.leaf, slots::Side::Source, source, sizes);
            self.slots.release(now, leg.sink, slots::Side::Sink, leg.sink_slot, sizes);
            if let Some(key) = leg_key(&self.config.program, leg.key) {
                self.legs.remove(&(leg.leaf, key));
            }
        }
        self.states.remove(&id);
        self.unsettled.remove(&id);
        self.dirty.extend([Key::Slots, Key::Flow(id)]);
    }

    /// Whether all of a job's flows are planned and both directions of each are installed, with every hop of their labels.
    pub(super) fn job_ready(&self, job: JobId) -> bool {
        let Some((_, flows)) = self.jobs.get(&job) else { return false };
        let installed = |leg: &LegState| {
            let key = leg_key(&self.config.program, leg.key);
            key.is_some_and(|key| self.switches[leg.leaf.index()].holds(&key))
                && self.label_installed(leg.leaf, leg.now.label)
        };
        !self.replan
            && !self.forming.contains(&job)
            && flows.iter().all(|flow| {
                self.goals.contains_key(flow)
                    && self.states.get(flow).is_some_and(|state| state.legs.iter().all(installed))
            })
    }

    /// Whether a label is known to be installed on every switch from `leaf` to its sink.
    pub(super) fn label_installed(&self, leaf: SwitchId, label: Label) -> bool {
        let meaning = self.ground.labels.meaning(label);
        let walk = meaning.and_then(|meaning| meaning.walk(&self.config.topology, leaf));
        let key = label_key(&self.config.program, label);
        let (Some(walk), Some(key)) = (walk, key) else { return false };
        walk.iter().all(|switch| self.switches[switch.index()].holds(&key))
    }

    /// Whether a route crosses a cable that is down.
    fn route_dead(&self, leaf: SwitchId, label: Label) -> bool {
        let Some(meaning) = self.ground.labels.meaning(label) else { return false };
        let walk = meaning.walk(&self.config.topology, leaf).unwrap_or_default();
        walk.iter().filter_map(|switch| meaning.hops.get(switch)).any(|link| self.dead(*link))
    }

    /// Packets that still wait for a gap on a dead old route are lost: their legs flip at once. An old route through a
    /// switch that plans avoid is named no more: nobody knows whether its labels are still there.
    pub(super) fn leave_dead_routes(&mut self) {
        for id in self.states.keys().copied().collect::<Vec<_>>() {
            for side in SIDES {
                let Some(leg) = self.states.get(&id).map(|state| *state.leg(side)) else {
                    continue;
                };
                let waiting = leg.stage == Stage::Flipping && !leg.force;
                if leg.old.label != leg.now.label && self.label_denied(leg.leaf, leg.old.label) {
                    self.edit_leg(id, side, LegState::abandon_old);
                } else if waiting && self.route_dead(leg.leaf, leg.old.label) {
                    self.edit_leg(id, side, LegState::force);
                }
            }
        }
    }

    /// A restarted switch has lost the registers of the flows that enter or leave there.
    pub(super) fn rebase_flows(&mut self, restarted: SwitchId) {
        for id in self.states.keys().copied().collect::<Vec<_>>() {
            for side in SIDES {
                let Some(leg) = self.states.get(&id).map(|state| *state.leg(side)) else {
                    continue;
                };
                if leg.leaf == restarted {
                    self.edit_leg(id, side, LegState::source_restarted);
                } else if leg.sink == restarted && leg.sink_slot.index != UNTRACKED {
                    self.edit_leg(id, side, LegState::sink_restarted);
                }
            }
        }
    }

    /// A switch confirmed an entry; if it is a leg's newest, the leg has come a step further.
    pub(super) fn leg_written(&mut self, at: SwitchId, key: &crate::pipeline::EntityKey) {
        let Some(&(id, side)) = self.legs.get(&(at, key.clone())) else { return };
        self.unsettled.insert(id);
        let switch = &self.switches[at.index()];
        let newest = match (switch.wanted.get(key), switch.present.get(key)) {
            (Some(wanted), Some(held)) => wanted.entity == held.entity,
            _ => false,
        };
        let Some(state) = self.states.get_mut(&id) else { return };
        let leg = state.leg_mut(side);
        if !newest || leg.stage != Stage::Flipping {
            return;
        }
        if leg.force {
            leg.settle();
            self.dirty.insert(Key::Flow(id));
            self.flips.remove(&(id, side));
            self.notify(Event::FlipForced { flow: id, side });
        } else {
            let now = self.now;
            self.flips.entry((id, side)).or_insert(now);
            self.time_flips();
        }
    }

    /// A change of a leg was refused: what the switch holds is what the flow keeps.
    pub(super) fn revert_leg(
        &mut self,
        at: SwitchId,
        key: &crate::pipeline::EntityKey,
        code: Code,
    ) {
        let Some(&(id, side)) = self.legs.get(&(at, key.clone())) else { return };
        let held = self.switches[at.index()].present.get(key);
        let Some(tag) = held.and_then(|held| self.config.program.tag_of(&held.entity)) else {
            return;
        };
        self.edit_leg(id, side, |leg| leg.revert(&tag));
        self.give_up_goal(id, code);
    }

    /// After a full read: every entry that is as wanted counts as written.
    pub(super) fn check_legs(&mut self, at: SwitchId) {
        let from = (at, crate::pipeline::EntityKey::Member { profile: 0, member: 0 });
        let keys: Vec<_> = self
            .legs
            .range(from..)
            .take_while(|((leaf, _), _)| *leaf == at)
            .map(|((_, key), _)| key.clone())
            .collect();
        for key in keys {
            self.leg_written(at, &key);
        }
    }

    fn time_flips(&mut self) {
        if !self.flips_timer && !self.flips.is_empty() {
            self.flips_timer = true;
            self.set_timer(self.config.limits.flip_poll, TimerKey::Flips);
        }
    }

    /// Forces what has waited for too long, and asks the leaves which flips are in force.
    pub(super) fn poll_flips(&mut self) {
        self.flips_timer = false;
        let deadline = self.config.limits.flip_deadline;
        for ((id, side), since) in self.flips.clone() {
            if self.now.since(since) >= deadline {
                self.edit_leg(id, side, LegState::force);
            }
        }
        for index in 0..self.switches.len() {
            self.read_flips(SwitchId::from(index));
        }
        self.time_flips();
    }

    fn read_flips(&mut self, at: SwitchId) {
        let switch = &self.switches[at.index()];
        let asking = switch.has_call(|call| matches!(call, Call::ReadFlips));
        if switch.phase != Phase::Active || switch.no_registers || asking {
            return;
        }
        let legs =
            self.flips.keys().filter_map(|(id, side)| Some(*self.states.get(id)?.leg(*side)));
        let slots = legs.filter(|leg| leg.leaf == at).map(|leg| leg.source_slot.index);
        let program = &self.config.program;
        let entities: Vec<_> =
            slots.filter_map(|slot| program.read_flip(slot)).take(MAX_BATCH).collect();
        if entities.is_empty() {
            return;
        }
        let device_id = switch.device_id;
        let request = proto::ReadRequest { device_id, entities, ..Default::default() };
        self.call(at, Call::ReadFlips, self.config.limits.call, Rpc::Read(request));
    }

    pub(super) fn flips_read(&mut self, at: SwitchId, result: Result<Reply, Failure>) {
        let entities = match result {
            Ok(Reply::Read(entities)) => entities,
            // BMv2 has no RegisterEntry (PI's device manager); the deadline forces what nobody can see.
            Err(failure) if super::super::outcome::not_offered(&failure) => {
                self.switches[at.index()].no_registers = true;
                return;
            }
            // Anything else: the next poll asks again.
            _ => return,
        };
        for (slot, flip) in self.config.program.flips_of(&entities) {
            let in_force = self.flips.keys().copied().find(|(id, side)| {
                self.states.get(id).is_some_and(|state| {
                    let leg = state.leg(*side);
                    leg.leaf == at && leg.source_slot.index == slot && leg.flip == flip
                })
            });
            let Some((id, side)) = in_force else { continue };
            self.flips.remove(&(id, side));
            if let Some(state) = self.states.get_mut(&id) {
                state.leg_mut(side).settle();
                self.dirty.insert(Key::Flow(id));
                self.unsettled.insert(id);
            }
        }
    }
}
