//! From a fresh stream to a switch that is known: which program runs, everything it holds, whether it restarted.
//!
//! In: answers to GetPipeline, SetPipeline and full Reads. Out: calls, and a switch in phase `Active`. Must not write
//! entries.

use super::super::messages::{Event, TimerKey};
use super::super::outcome;
use super::switch::{Call, Phase};
use super::{Core, Key};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::rpc::{Code, Failure, Reply, Rpc};
use crate::pipeline::Present;
use crate::pipeline::labels::Label;
use crate::time::stream;
use rand::RngExt as _;

impl Core {
    /// This controller is primary: find out what the switch runs and holds, whatever it held before.
    pub(super) fn became_primary(&mut self, id: SwitchId) {
        self.notify(Event::Primary { switch: id });
        self.check_pipeline(id);
    }

    fn check_pipeline(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        switch.phase = Phase::Checking;
        let request = proto::GetForwardingPipelineConfigRequest {
            device_id: switch.device_id,
            response_type: proto::get_forwarding_pipeline_config_request::ResponseType::CookieOnly
                .into(),
        };
        self.call(id, Call::Check, self.config.limits.call, Rpc::GetPipeline(request));
    }

    pub(super) fn checked(&mut self, id: SwitchId, result: Result<Reply, Failure>) {
        match result {
            Ok(Reply::GetPipeline(response)) => {
                // No program yet: nothing can lean on the switch.
                let Some(config) = response.config else { return self.load_pipeline(id) };
                match config.cookie.map(|cookie| cookie.cookie) {
                    Some(cookie) if cookie == self.cookie => self.read_all(id),
                    cookie => self.other_program(id, cookie.unwrap_or(0)),
                }
            }
            // How PI says the same.
            Err(failure) if failure.code == Code::FailedPrecondition => self.load_pipeline(id),
            Ok(_) => self.pause(id),
            Err(failure) => self.bring_up_failed(id, &failure),
        }
    }

    /// Loading clears the switch, so flows have to be moved away first, unless told otherwise.
    fn other_program(&mut self, id: SwitchId, cookie: u64) {
        if self.config.force_pipeline || self.drained(id) {
            self.load_pipeline(id);
            return;
        }
        self.switches[id.index()].phase = Phase::Draining;
        self.notify(Event::PipelineForeign { switch: id, cookie });
        self.exclude(id);
    }

    /// Loads our program onto switches that wait for it and that no flow leans on any more.
    pub(super) fn load_drained(&mut self) {
        for index in 0..self.switches.len() {
            let id = SwitchId::from(index);
            if self.switches[index].phase != Phase::Draining {
                continue;
            }
            if self.drained(id) {
                self.load_pipeline(id);
            }
        }
    }

    /// Whether no entry of a flow that has a goal names a label that leads through the switch.
    fn drained(&self, id: SwitchId) -> bool {
        let mut states = self.states.values().filter(|state| self.goals.contains_key(&state.flow));
        !states.any(|state| {
            let mut legs = state.legs.iter();
            legs.any(|leg| {
                self.leads_through(leg.leaf, leg.now.label, id)
                    || self.leads_through(leg.leaf, leg.old.label, id)
            })
        })
    }

    fn leads_through(&self, leaf: SwitchId, label: Label, id: SwitchId) -> bool {
        let meaning = self.ground.labels.meaning(label);
        let walk = meaning.and_then(|meaning| meaning.walk(&self.config.topology, leaf));
        walk.is_some_and(|walk| walk.contains(&id))
    }

    fn load_pipeline(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        switch.phase = Phase::Loading;
        let request = proto::SetForwardingPipelineConfigRequest {
            device_id: switch.device_id,
            election_id: super::session::election_id(&switch.session),
            action: proto::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
            config: Some(self.config.artifacts.forwarding_config()),
            ..Default::default()
        };
        self.call(id, Call::Load, self.config.limits.push, Rpc::SetPipeline(request));
    }

    pub(super) fn loaded(&mut self, id: SwitchId, result: Result<Reply, Failure>) {
        match result {
            Ok(_) => {
                self.notify(Event::PipelineLoaded { switch: id });
                self.read_all(id);
            }
            Err(failure) => {
                if matches!(failure.code, Code::InvalidArgument | Code::Unimplemented) {
                    let (code, message) = (failure.code, failure.message.clone());
                    let key = "forwarding pipeline".to_owned();
                    self.notify(Event::Refused { switch: id, key, code, message });
                }
                self.bring_up_failed(id, &failure);
            }
        }
    }

    /// Reads everything. Nothing else is in flight then.
    pub(super) fn read_all(&mut self, id: SwitchId) {
        let switch = &mut self.switches[id.index()];
        switch.phase = Phase::Reading;
        switch.resync = false;
        switch.synced = false;
        switch.tainted.clear();
        let request = proto::ReadRequest {
            device_id: switch.device_id,
            entities: self.config.program.read_all(),
            ..Default::default()
        };
        self.call(id, Call::ReadAll, self.config.limits.call, Rpc::Read(request));
    }

    pub(super) fn read_done(&mut self, id: SwitchId, result: Result<Reply, Failure>) {
        let entities = match result {
            Ok(Reply::Read(entities)) => entities,
            Ok(_) => return self.pause(id),
            Err(failure) => return self.bring_up_failed(id, &failure),
        };
        // Members, groups and routes may be as many as entries again; a switch that sends more is not believed.
        let bound = self.config.program.capacity().saturating_mul(2);
        if entities.len() > bound {
            let found = entities.len();
            self.notify(Event::Rejected {
                reason: format!(
                    "switch {id} answered a read with {found} entities, its tables hold half of {bound}; check the switch"
                ),
            });
            return self.pause(id);
        }
        let incarnation = self.incarnation_in(&entities);
        let switch = &mut self.switches[id.index()];
        switch.present = Present::from_read(&entities, &self.config.settings.mark);
        switch.phase = Phase::Active;
        switch.out = false;
        switch.refused.clear();
        switch.tries.clear();
        switch.pause = self.config.limits.retry;
        let known = switch.incarnation;
        if incarnation != known || known == 0 {
            self.restarted(id, known != 0);
        }
        self.report_read(id, entities.len());
        self.wake();
        self.check_legs(id);
    }

    fn report_read(&mut self, id: SwitchId, entities: usize) {
        let switch = &self.switches[id.index()];
        let result =
            crate::pipeline::reconcile(&self.config.program, &switch.wanted, &switch.present);
        let (changes, foreign) = (result.changes.len(), result.foreign);
        self.notify(Event::Read { switch: id, entities, changes, foreign });
    }

    /// The incarnation that a full read found; 0 when the switch was not programmed.
    fn incarnation_in(&self, entities: &[proto::Entity]) -> u32 {
        let table = &self.config.program.switch_config;
        let entry = entities.iter().find_map(|entity| match &entity.entity {
            Some(Kind::TableEntry(entry)) if entry.is_default_action => {
                table.from_entry(entry).ok()
            }
            _ => None,
        });
        entry.map_or(0, |action| action.incarnation)
    }

    /// The switch has lost its registers, or was never programmed: a new incarnation, and new epochs for the flows
    /// whose registers it kept.
    fn restarted(&mut self, id: SwitchId, known: bool) {
        let old = self.switches[id.index()].incarnation;
        // The last value seeds the next, so that a restarted controller does not draw the same again.
        let mut random = stream(self.config.seed ^ u64::from(old), "incarnation", id.0.into());
        let incarnation = random.random_range(1..=u32::MAX);
        self.switches[id.index()].incarnation = incarnation;
        self.dirty.insert(Key::Switch(id));
        if known {
            self.notify(Event::Restarted { switch: id });
            self.rebase_flows(id);
        }
        self.rebuild_wanted(id);
    }

    fn bring_up_failed(&mut self, id: SwitchId, failure: &Failure) {
        match outcome::call(failure, 0) {
            outcome::CallVerdict::NotPrimary => self.restart_session(id),
            outcome::CallVerdict::PipelineGone
                if self.switches[id.index()].phase == Phase::Reading =>
            {
                self.check_pipeline(id);
            }
            _ => self.pause(id),
        }
    }

    /// Tries again after a pause that doubles.
    pub(super) fn pause(&mut self, id: SwitchId) {
        let limits = self.config.limits;
        let switch = &mut self.switches[id.index()];
        if switch.paused {
            return;
        }
        switch.paused = true;
        let pause = switch.pause;
        switch.pause = crate::time::Span(pause.0.saturating_mul(2)).min(limits.retry_max);
        self.set_timer(pause, TimerKey::Retry(id));
    }

    pub(super) fn retry(&mut self, id: SwitchId) {
        let Some(switch) = self.switches.get_mut(id.index()) else { return };
        if !std::mem::take(&mut switch.paused) {
            return;
        }
        let idle = switch.calls.is_empty();
        match switch.phase {
            Phase::Checking if idle => self.check_pipeline(id),
            Phase::Loading if idle => self.load_pipeline(id),
            Phase::Reading if idle => self.read_all(id),
            _ => switch.pump = true,
        }
    }
}
