//! Reconciling one switch: what goes out now, and what the answers mean.
//!
//! In: wanted and present entities, answers to Writes and keyed Reads. Out: Writes of one level at a time, Reads of what
//! is in doubt. Must not know why something is wanted.

use super::super::messages::{Event, RequestId, TimerKey};
use super::super::outcome::{self, CallVerdict, UpdateVerdict};
use super::Core;
use super::switch::{Call, Phase};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc, RpcResult};
use crate::pipeline::entry_set::label_key;
use crate::pipeline::identity::{key_of, read_request};
use crate::pipeline::labels::Label;
use crate::pipeline::{Change, EntityKey, Level, Need, Owner, reconcile};
use std::collections::BTreeSet;

/// A second full read follows an unknown outcome after so many call deadlines: whatever was delayed has arrived then.
pub(super) const VERIFY_AFTER: u64 = 2;

impl Core {
    pub(super) fn replied(&mut self, id: SwitchId, request: RequestId, result: RpcResult) {
        let Some(switch) = self.switches.get_mut(id.index()) else { return };
        // Given up before, or of an earlier session.
        let Some(call) = switch.calls.remove(&request) else { return };
        // What is read of the fabric changes nothing that could be written.
        switch.pump |= !matches!(call, Call::Telemetry);
        match call {
            Call::Check => self.checked(id, result),
            Call::Load => self.loaded(id, result),
            Call::ReadAll => self.read_done(id, result),
            Call::ReadKeys(keys) => self.keys_read(id, keys, result),
            Call::Write(changes) => self.written(id, changes, result),
            Call::ReadFlips => self.flips_read(id, result),
            Call::ReadCounter(label) => self.counter_read(id, label, result),
            Call::Telemetry => self.telemetry_replied(id, request, result),
        }
    }

    pub(super) fn call_expired(&mut self, id: SwitchId, request: RequestId) {
        let pending = self.switches.get(id.index()).is_some_and(|s| s.calls.contains_key(&request));
        if pending {
            let failure = Failure::new(Code::DeadlineExceeded, "no answer within the deadline");
            self.replied(id, request, Err(failure));
        }
    }

    /// Sends what can be sent to one switch now.
    pub(super) fn pump(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        if switch.phase != Phase::Active || switch.paused {
            return;
        }
        if switch.resync {
            if switch.calls.is_empty() {
                self.read_all(id);
            }
            return;
        }
        self.read_tainted(id);
        let (changes, waiting) = self.open_changes(id);
        self.send_changes(id, changes);
        let switch = &mut self.switches[id.index()];
        let quiet = switch.busy.is_empty() && switch.tainted.is_empty();
        if !waiting && quiet && !switch.synced {
            switch.synced = true;
            self.notify(Event::Synced { switch: id });
            self.include(id);
        }
    }

    /// Changes that may be sent now, and whether any others remain.
    fn open_changes(&mut self, id: SwitchId) -> (Vec<Change>, bool) {
        let switch = &self.switches[id.index()];
        let result = reconcile(&self.config.program, &switch.wanted, &switch.present);
        let mut waiting = false;
        let mut open = Vec::new();
        for change in result.changes {
            if switch.refused.get(&change.key) == Some(&change.entity) {
                continue;
            }
            waiting |= !self.held_up(id, &change);
            let unclear = switch.busy.contains(&change.key) || switch.tainted.contains(&change.key);
            if !unclear && self.ready(id, &change) {
                open.push(change);
            }
        }
        let new = result.conflicts.into_iter().filter(|key| !switch.conflicts.contains(key));
        for key in new.collect::<Vec<_>>() {
            let text = key.to_string();
            self.switches[id.index()].conflicts.insert(key);
            self.notify(Event::Conflict { switch: id, key: text });
        }
        (open, waiting)
    }

    /// Whether everything that a change needs is known to be installed, or, for a removal, gone.
    fn ready(&self, id: SwitchId, change: &Change) -> bool {
        let switch = &self.switches[id.index()];
        if change.kind == Type::Delete {
            return match change.level {
                Level::Label(_) => self.label_removable(id, &change.key),
                _ => true,
            };
        }
        let Some(wanted) = switch.wanted.get(&change.key) else { return false };
        wanted.needs.iter().all(|need| match need {
            Need::Here(key) => switch.holds(key),
            Need::Label { switch: next, label } => {
                let key = label_key(&self.config.program, *label);
                key.is_some_and(|key| self.switches[next.index()].holds(&key))
            }
            Need::Walk { label } => self.label_installed(id, *label),
        })
    }

    /// Whether a change waits for what convergence does not wait for: a switch that plans avoid, or an entity that was
    /// refused or is somebody else's.
    fn held_up(&self, id: SwitchId, change: &Change) -> bool {
        let program = &self.config.program;
        if change.kind == Type::Delete {
            let watch = program.label_of(&change.key).and_then(|label| self.retiring.get(&label));
            let hops = watch.map(|watch| watch.meaning.hops.keys());
            return hops.is_some_and(|mut hops| hops.any(|at| self.switches[at.index()].excluded));
        }
        let Some(wanted) = self.switches[id.index()].wanted.get(&change.key) else { return false };
        wanted.needs.iter().any(|need| match need {
            Need::Here(key) => self.switches[id.index()].denied(key),
            Need::Label { switch, label } => self.label_denied(*switch, *label),
            Need::Walk { label } => self.label_denied(id, *label),
        })
    }

    /// Whether a label cannot be installed on some switch between `from` and its sink for now.
    pub(super) fn label_denied(&self, from: SwitchId, label: Label) -> bool {
        let meaning = self.ground.labels.meaning(label);
        let walk = meaning.and_then(|meaning| meaning.walk(&self.config.topology, from));
        let key = label_key(&self.config.program, label);
        walk.unwrap_or_default().into_iter().any(|at| {
            let switch = &self.switches[at.index()];
            switch.excluded || key.as_ref().is_some_and(|key| switch.denied(key))
        })
    }

    /// Sends changes of the lowest rank in batches, as many as the window allows.
    fn send_changes(&mut self, id: SwitchId, changes: Vec<Change>) {
        let switch = &self.switches[id.index()];
        let Some(lowest) = changes.first().map(Change::rank) else { return };
        let rank = switch.rank_in_flight().unwrap_or(lowest);
        let level: Vec<Change> = changes.into_iter().filter(|c| c.rank() == rank).collect();
        let room = self.config.limits.window.saturating_sub(switch.writes_in_flight());
        let batch = switch.batch.max(1);
        for changes in level.chunks(batch).take(room) {
            let switch = &mut self.switches[id.index()];
            switch.busy.extend(changes.iter().map(|change| change.key.clone()));
            switch.synced = false;
            let request = proto::WriteRequest {
                device_id: switch.device_id,
                election_id: super::session::election_id(&switch.session),
                updates: changes.iter().map(Change::update).collect(),
                ..Default::default()
            };
            self.call(
                id,
                Call::Write(changes.to_vec()),
                self.config.limits.call,
                Rpc::Write(request),
            );
        }
    }

    fn written(&mut self, id: SwitchId, changes: Vec<Change>, result: RpcResult) {
        let switch = &mut self.switches[id.index()];
        for change in &changes {
            switch.busy.remove(&change.key);
        }
        let failure = match result {
            Ok(Reply::Write) => {
                for change in &changes {
                    self.done(id, change);
                }
                self.switches[id.index()].pause = self.config.limits.retry;
                return self.wake();
            }
            Ok(_) => Failure::new(Code::Internal, "the answer is not one to a Write"),
            Err(failure) => failure,
        };
        match outcome::call(&failure, changes.len()) {
            CallVerdict::PerUpdate => {
                for (change, error) in changes.iter().zip(&failure.updates) {
                    let code = Code::from_number(error.canonical_code);
                    self.update_answered(id, change, code, &error.message);
                }
            }
            CallVerdict::NotPrimary => self.restart_session(id),
            // Without a pipeline or device the switch has to be brought up again, from the stream on.
            CallVerdict::PipelineGone => self.restart_session(id),
            CallVerdict::Unknown => self.unknown(id, &changes),
            CallVerdict::TooLarge => {
                self.halve(id, changes.len());
                self.unknown(id, &changes);
            }
            CallVerdict::Malformed if changes.len() > 1 => {
                self.halve(id, changes.len());
                self.unknown(id, &changes);
            }
            CallVerdict::Malformed => {
                for change in &changes {
                    self.refuse(id, change, failure.code, &failure.message);
                }
            }
        }
        self.wake();
    }

    fn update_answered(&mut self, id: SwitchId, change: &Change, code: Code, message: &str) {
        match outcome::update(change.kind, code, self.table_full(id, &change.key)) {
            UpdateVerdict::Done => self.done(id, change),
            UpdateVerdict::Exists | UpdateVerdict::Unclear => self.doubt(id, change, code, message),
            UpdateVerdict::Drifted => {
                let switch = &mut self.switches[id.index()];
                switch.present.remove(&change.key);
                switch.resync = true;
            }
            UpdateVerdict::Full => {
                let key = change.key.to_string();
                self.notify(Event::TableFull { switch: id, key });
                self.set_aside(id, change, code);
            }
            UpdateVerdict::Permanent => self.refuse(id, change, code, message),
        }
    }

    /// The switch did what the change asked for.
    fn done(&mut self, id: SwitchId, change: &Change) {
        let switch = &mut self.switches[id.index()];
        switch.tries.remove(&change.key);
        switch.refused.remove(&change.key);
        match change.kind {
            Type::Delete => switch.present.remove(&change.key),
            _ => switch.present.put(&change.entity, &self.config.settings.mark),
        }
        self.leg_written(id, &change.key);
    }

    /// The key has to be read before it is written again; a bounded number of times.
    fn doubt(&mut self, id: SwitchId, change: &Change, code: Code, message: &str) {
        let limit = self.config.limits.tries;
        let switch = &mut self.switches[id.index()];
        let tries = switch.tries.entry(change.key.clone()).or_insert(0);
        *tries += 1;
        if *tries > limit {
            self.refuse(id, change, code, message);
        } else {
            switch.tainted.insert(change.key.clone());
        }
    }

    fn refuse(&mut self, id: SwitchId, change: &Change, code: Code, message: &str) {
        let (key, message) = (change.key.to_string(), message.to_owned());
        self.notify(Event::Refused { switch: id, key, code, message });
        self.set_aside(id, change, code);
    }

    /// The change is not tried again while the same is wanted. A flow whose change was refused stays where it is.
    fn set_aside(&mut self, id: SwitchId, change: &Change, code: Code) {
        let switch = &mut self.switches[id.index()];
        switch.tries.remove(&change.key);
        switch.refused.insert(change.key.clone(), change.entity.clone());
        if change.kind == Type::Modify {
            self.revert_leg(id, &change.key, code);
        }
    }

    /// The switch may have done all, some or none of a Write.
    fn unknown(&mut self, id: SwitchId, changes: &[Change]) {
        let after = self.config.limits.call;
        let switch = &mut self.switches[id.index()];
        switch.tainted.extend(changes.iter().map(|change| change.key.clone()));
        self.pause(id);
        let after = crate::time::Span(after.0.saturating_mul(VERIFY_AFTER));
        self.set_timer(after, TimerKey::Verify(id));
    }

    fn halve(&mut self, id: SwitchId, sent: usize) {
        let switch = &mut self.switches[id.index()];
        switch.batch = (sent / 2).max(1);
    }

    /// Whether the table of a key holds as many entries as it is declared to.
    fn table_full(&self, id: SwitchId, key: &EntityKey) -> bool {
        let EntityKey::Entry { table, .. } = key else { return false };
        let size = self.config.program.table_size(*table);
        let same = |key: &EntityKey| matches!(key, EntityKey::Entry { table: t, .. } if t == table);
        let held = self.switches[id.index()].present.iter().filter(|(key, _)| same(key)).count();
        size.is_some_and(|size| held as u64 >= size)
    }

    fn read_tainted(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        if switch.tainted.is_empty() || switch.has_call(|call| matches!(call, Call::ReadKeys(_))) {
            return;
        }
        let keys: BTreeSet<EntityKey> =
            switch.tainted.iter().take(switch.batch.max(1)).cloned().collect();
        let entities: Option<Vec<_>> = keys.iter().map(read_request).collect();
        let Some(entities) = entities else {
            // A key that matches everything cannot be read alone.
            switch.resync = true;
            switch.pump = true;
            return;
        };
        let device_id = switch.device_id;
        let request = proto::ReadRequest { device_id, entities, ..Default::default() };
        self.call(id, Call::ReadKeys(keys), self.config.limits.call, Rpc::Read(request));
    }

    fn keys_read(&mut self, id: SwitchId, keys: BTreeSet<EntityKey>, result: RpcResult) {
        let entities = match result {
            Ok(Reply::Read(entities)) => entities,
            Err(failure)
                if matches!(
                    outcome::call(&failure, 0),
                    CallVerdict::NotPrimary | CallVerdict::PipelineGone
                ) =>
            {
                return self.restart_session(id);
            }
            _ => return self.pause(id),
        };
        let mark = &self.config.settings.mark;
        let switch = &mut self.switches[id.index()];
        for key in &keys {
            switch.tainted.remove(key);
            switch.present.remove(key);
        }
        for entity in &entities {
            if key_of(entity).is_some_and(|key| keys.contains(&key)) {
                switch.present.put(entity, mark);
            }
        }
        switch.pause = self.config.limits.retry;
        for key in &keys {
            self.leg_written(id, key);
        }
        self.wake();
    }

    /// Whether a label's entry may be removed here: nothing upstream sends the label on, and no entry of ours, known or
    /// in doubt, gives it to packets.
    fn label_removable(&self, id: SwitchId, key: &EntityKey) -> bool {
        let program = &self.config.program;
        let Some(label) = program.label_of(key) else { return true };
        let upstream = self.retiring.get(&label).is_none_or(|retiring| {
            let mut hops = retiring.meaning.hops.iter();
            hops.all(|(from, link)| {
                let to = self.config.topology.as_switch(self.config.topology.link(*link).to);
                to != Some(id) || self.switches[from.index()].present.get(key).is_none()
            })
        });
        upstream && !self.label_named(label)
    }

    /// Whether some switch holds, as far as is known, an entry that gives the label to packets.
    pub(super) fn label_named(&self, label: Label) -> bool {
        let program = &self.config.program;
        let mut held = self.switches.iter().flat_map(|switch| switch.present.iter());
        held.any(|(_, held)| {
            held.owner == Owner::Ours
                && program
                    .tag_of(&held.entity)
                    .is_some_and(|tag| tag.label == label || tag.old_label == label)
        })
    }
}
