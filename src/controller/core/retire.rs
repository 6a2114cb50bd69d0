//! Removing labels that no candidate tree uses any more.
//!
//! In: retired labels, counters of their entries. Out: labels given up, so that their entries are wanted no more. Must
//! not remove an entry itself.
//!
//! A label goes when nothing can carry it (design: data plane, "Removing a label"): no journal and no read-back entry
//! names it, its counters were the same on all its switches in two reads [`label_quiet`] apart, and [`label_rest`] has
//! passed since. Counters and not a timer show that a path is empty, because strict priority can hold a packet without
//! limit.
//!
//! [`label_quiet`]: super::super::config::Limits::label_quiet
//! [`label_rest`]: super::super::config::Limits::label_rest

use super::super::messages::{Event, TimerKey};
use super::super::rollout::{LegState, SIDES, Stage};
use super::switch::{Call, Phase};
use super::{Core, Key};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::rpc::{Reply, Rpc, RpcResult};
use crate::pipeline::entry_set::label_key;
use crate::pipeline::identity::read_request;
use crate::pipeline::labels::{Label, Meaning};
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A label on its way out.
pub(super) struct Retiring {
    /// What it stands for; kept until its entries are gone, for the order of removal.
    pub(super) meaning: Meaning,
    /// Packets counted per switch, and since when they have not changed.
    counted: BTreeMap<SwitchId, (u64, Time)>,
    /// Given up: entries are being removed.
    forgotten: bool,
}

impl Core {
    /// Starts and drops the watch over retired labels.
    pub(super) fn watch_labels(&mut self) {
        let retired = self.ground.labels.retired();
        if retired.is_empty() && self.retiring.is_empty() {
            return;
        }
        // A detour that came back into use is not retired any more.
        self.retiring.retain(|label, watch| watch.forgotten || retired.contains(label));
        for label in retired {
            let Some(meaning) = self.ground.labels.meaning(label) else { continue };
            let meaning = meaning.clone();
            let new = Retiring { meaning, counted: BTreeMap::new(), forgotten: false };
            self.retiring.entry(label).or_insert(new);
        }
        let key = |label| label_key(&self.config.program, label);
        let gone: Vec<Label> = self
            .retiring
            .iter()
            .filter(|(_, watch)| watch.forgotten)
            .map(|(label, _)| *label)
            .collect();
        for label in gone {
            let held = key(label)
                .is_some_and(|key| self.switches.iter().any(|s| s.present.get(&key).is_some()));
            if !held {
                self.retiring.remove(&label);
            }
        }
        if !self.labels_timer && !self.retiring.is_empty() {
            self.labels_timer = true;
            self.set_timer(self.config.limits.label_quiet, TimerKey::Labels);
        }
    }

    /// Looks at every retired label: unnamed, counted, given up.
    pub(super) fn poll_labels(&mut self) {
        let labels: Vec<Label> = self
            .retiring
            .iter()
            .filter(|(_, watch)| !watch.forgotten)
            .map(|(label, _)| *label)
            .collect();
        for label in labels {
            if self.name_no_more(label) {
                if let Some(watch) = self.retiring.get_mut(&label) {
                    watch.counted.clear();
                }
                continue;
            }
            if self.quiet(label) {
                self.give_up(label);
            } else {
                self.count(label);
            }
        }
    }

    /// Takes the label out of settled legs that only remember it; `true` while something names it.
    fn name_no_more(&mut self, label: Label) -> bool {
        let mut named = self.label_named(label);
        for id in self.states.keys().copied().collect::<Vec<_>>() {
            for side in SIDES {
                let Some(leg) = self.states.get(&id).map(|state| *state.leg(side)) else {
                    continue;
                };
                if leg.now.label != label && leg.old.label != label {
                    continue;
                }
                named = true;
                if leg.stage == Stage::Settled && leg.now.label != label {
                    self.edit_leg(id, side, LegState::drop_old);
                }
            }
        }
        named
    }

    /// Whether the counters have stood still on all its switches for long enough.
    fn quiet(&self, label: Label) -> bool {
        let Some(watch) = self.retiring.get(&label) else { return false };
        let limits = &self.config.limits;
        let long = limits.label_quiet + limits.label_rest;
        on_tree(&watch.meaning).iter().all(|switch| {
            watch.counted.get(switch).is_some_and(|(_, since)| self.now.since(*since) >= long)
        })
    }

    fn count(&mut self, label: Label) {
        let Some(watch) = self.retiring.get(&label) else { return };
        let request = label_key(&self.config.program, label).and_then(|key| read_request(&key));
        let Some(mut entity) = request else { return };
        if let Some(Kind::TableEntry(entry)) = entity.entity.as_mut() {
            entry.counter_data = Some(proto::CounterData::default());
        }
        for id in on_tree(&watch.meaning) {
            let switch = &self.switches[id.index()];
            if switch.phase != Phase::Active {
                continue;
            }
            let (device_id, entities) = (switch.device_id, vec![entity.clone()]);
            let request = proto::ReadRequest { device_id, entities, ..Default::default() };
            self.call(id, Call::ReadCounter(label), self.config.limits.call, Rpc::Read(request));
        }
    }

    pub(super) fn counter_read(&mut self, id: SwitchId, label: Label, result: RpcResult) {
        let Ok(Reply::Read(entities)) = result else { return };
        let packets = entities.iter().find_map(|entity| match &entity.entity {
            Some(Kind::TableEntry(entry)) => Some(entry.counter_data.as_ref()?.packet_count),
            _ => None,
        });
        // An entry that is not there cannot have counted; one without a counter proves nothing.
        let packets = match packets {
            Some(packets) => u64::try_from(packets).unwrap_or(0),
            None if entities.is_empty() => 0,
            None => return,
        };
        let now = self.now;
        if let Some(watch) = self.retiring.get_mut(&label) {
            let counted = watch.counted.entry(id).or_insert((packets, now));
            if counted.0 != packets {
                *counted = (packets, now);
            }
        }
    }

    fn give_up(&mut self, label: Label) {
        self.ground.labels.forget(label);
        if let Some(watch) = self.retiring.get_mut(&label) {
            watch.forgotten = true;
        }
        self.dirty.insert(Key::Labels);
        self.notify(Event::LabelRemoved { label: label.0 });
        for index in 0..self.switches.len() {
            self.rebuild_wanted(SwitchId::from(index));
        }
    }
}

/// The switches that hold an entry of the label.
fn on_tree(meaning: &Meaning) -> BTreeSet<SwitchId> {
    meaning.hops.keys().copied().chain([meaning.sink]).collect()
}
