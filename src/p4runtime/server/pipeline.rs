//! Set- and GetForwardingPipelineConfig (sections 14 and 15).
//! In: requests. Out: a program on the device. Must not know the format of the device config.
//!
//! A saved program is tried on a blank device of the same kind: writes between VERIFY_AND_SAVE and COMMIT go there and are
//! replayed when it is committed, so that the running program is not disturbed. RECONCILE_AND_COMMIT does the same with
//! what the running program holds.

use super::check::Check;
use super::write::{Done, replay};
use super::{Profile, SAVED_UPDATES_MAX, Server};
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::get_forwarding_pipeline_config_request::ResponseType;
use crate::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Replication;
use crate::p4runtime::proto::p4::v1::set_forwarding_pipeline_config_request::Action;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry,
    DigestEntry, Entity, ForwardingPipelineConfig, GetForwardingPipelineConfigRequest,
    GetForwardingPipelineConfigResponse, MeterConfig, MeterEntry, MulticastGroupEntry,
    PacketReplicationEngineEntry, RegisterEntry, SetForwardingPipelineConfigRequest, TableEntry,
    Update, ValueSetEntry,
};
use crate::p4runtime::rpc::{Code, Failure};
use crate::time::Time;
use std::sync::Arc;

/// A program with its P4Info read.
#[derive(Clone)]
pub(super) struct Program {
    pub(super) config: ForwardingPipelineConfig,
    pub(super) index: Arc<Index>,
}

/// A program that waits for COMMIT.
pub(super) struct Saved<D> {
    pub(super) program: Program,
    /// A blank device that runs it.
    pub(super) trial: D,
    /// What was written since, to be replayed.
    updates: Vec<Update>,
}

impl<D: Device> Saved<D> {
    /// Remembers what took effect.
    pub(super) fn keep(&mut self, done: Done) -> Result<(), Failure> {
        if self.updates.len() + done.effective.len() > SAVED_UPDATES_MAX {
            let text = format!("more than {SAVED_UPDATES_MAX} updates since the program was saved");
            return Err(Failure::new(Code::ResourceExhausted, text));
        }
        self.updates.extend(done.effective);
        done.result
    }
}

impl<D: Device> Server<D> {
    pub(super) fn set_pipeline(
        &mut self,
        now: Time,
        request: SetForwardingPipelineConfigRequest,
    ) -> Result<(), Failure> {
        self.may_write(request.device_id, &request.role, request.election_id)?;
        if !self.roles.scope(&request.role).is_none_or(super::role::Scope::pipeline) {
            let text = "the pipeline is not in the role's scope";
            return Err(Failure::new(Code::PermissionDenied, text));
        }
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        match action {
            Action::Unspecified => {
                Err(Failure::new(Code::InvalidArgument, "the request has no action"))
            }
            Action::Verify => self.verify(request.config).map(|_| ()),
            Action::VerifyAndSave => {
                let program = self.verify(request.config)?;
                self.saved = Some(self.tried(now, program)?);
                Ok(())
            }
            Action::VerifyAndCommit => {
                let program = self.verify(request.config)?;
                self.commit(now, program, &[])
            }
            Action::Commit => self.commit_saved(now, request.config.is_some()),
            Action::ReconcileAndCommit => self.reconcile(now, request.config),
        }
    }

    /// Starts a program without a client: the one that the switch was started with.
    ///
    /// # Errors
    /// As SetForwardingPipelineConfig; the server is then as before.
    pub fn boot(&mut self, now: Time, config: ForwardingPipelineConfig) -> Result<(), Failure> {
        let program = self.verify(Some(config))?;
        self.commit(now, program, &[])
    }

    /// The program can be run here.
    fn verify(&self, config: Option<ForwardingPipelineConfig>) -> Result<Program, Failure> {
        let refuse = |text: String| Failure::new(self.bad_config(), text);
        let config = config.ok_or_else(|| {
            Failure::new(Code::InvalidArgument, "the request has no config to verify")
        })?;
        let info =
            config.p4info.clone().ok_or_else(|| refuse("the config has no p4info".into()))?;
        let index = Index::new(info).map_err(|error| refuse(format!("p4info: {error}")))?;
        self.device.verify_pipeline(&config).map_err(|refusal| refuse(refusal.message))?;
        Ok(Program { config, index: Arc::new(index) })
    }

    /// PI answers UNKNOWN where the specification asks for INVALID_ARGUMENT.
    fn bad_config(&self) -> Code {
        match self.profile {
            Profile::Spec => Code::InvalidArgument,
            Profile::Bmv2 => Code::Unknown,
        }
    }

    /// The program on a blank device.
    fn tried(&self, now: Time, program: Program) -> Result<Saved<D>, Failure> {
        let mut trial = self.device.blank();
        trial
            .load_pipeline(now, &program.config)
            .map_err(|refusal| Failure::new(self.bad_config(), refusal.message))?;
        Ok(Saved { program, trial, updates: Vec::new() })
    }

    /// Starts a program and replays updates that a blank device has accepted.
    fn commit(&mut self, now: Time, program: Program, updates: &[Update]) -> Result<(), Failure> {
        self.device
            .load_pipeline(now, &program.config)
            .map_err(|refusal| Failure::new(self.bad_config(), refusal.message))?;
        let check = Check { index: &program.index, profile: self.profile };
        let replayed = replay(now, &mut self.device, check, updates);
        self.program = Some(program);
        self.saved = None;
        replayed.map_err(|refusal| {
            let text = format!("the program runs, but not all was replayed: {refusal}");
            Failure::new(Code::Internal, text)
        })
    }

    fn commit_saved(&mut self, now: Time, has_config: bool) -> Result<(), Failure> {
        if has_config {
            let text = "COMMIT starts the saved program and takes no config";
            return Err(Failure::new(Code::InvalidArgument, text));
        }
        let Some(saved) = self.saved.take() else {
            let text = "no program is saved; use VERIFY_AND_SAVE first";
            return Err(Failure::new(Code::NotFound, text));
        };
        self.commit(now, saved.program, &saved.updates)
    }

    fn reconcile(
        &mut self,
        now: Time,
        config: Option<ForwardingPipelineConfig>,
    ) -> Result<(), Failure> {
        let program = self.verify(config)?;
        if self.program.is_none() {
            return self.commit(now, program, &[]);
        }
        let held = self.held(now).map_err(|refusal| {
            Failure::new(Code::Internal, format!("the present state cannot be read: {refusal}"))
        })?;
        let mut saved = self.tried(now, program)?;
        let mut updates = self.superseded(now, &saved).map_err(|refusal| {
            Failure::new(Code::Internal, format!("the new program cannot be read: {refusal}"))
        })?;
        updates.extend(held);
        let check = Check { index: &saved.program.index, profile: self.profile };
        replay(now, &mut saved.trial, check, &updates).map_err(|refusal| {
            let text =
                format!("the present state does not fit the new program: {}", refusal.message);
            Failure::new(self.bad_config(), text)
        })?;
        self.commit(now, saved.program, &updates)
    }

    /// Deletions of the entries with which the new program begins in tables that the running one has too: what these
    /// tables hold now is what counts.
    fn superseded(&self, now: Time, saved: &Saved<D>) -> Result<Vec<Update>, Refusal> {
        let Some(running) = &self.program else { return Ok(Vec::new()) };
        let mut updates = Vec::new();
        let pattern = Entity { entity: Some(Kinds::TableEntry(TableEntry::default())) };
        saved.trial.read(now, &pattern, &mut |entity| {
            if let Some(Kinds::TableEntry(entry)) = &entity.entity
                && !entry.is_const
                && running.index.table_by_id(entry.table_id).is_some_and(|table| !table.is_const)
            {
                updates.push(Update { r#type: Type::Delete.into(), entity: Some(entity) });
            }
        })?;
        Ok(updates)
    }

    /// Everything that was written to the running program, as updates in an order in which references exist.
    fn held(&self, now: Time) -> Result<Vec<Update>, Refusal> {
        let mut updates = Vec::new();
        for (kind, pattern) in state_patterns() {
            let pattern = Entity { entity: Some(pattern) };
            let read = self.device.read(now, &pattern, &mut |mut entity| {
                if let Some(Kinds::TableEntry(entry)) = entity.entity.as_mut() {
                    // The new program brings its own constant entries.
                    if entry.is_const || self.is_const_table(entry.table_id) {
                        return;
                    }
                    entry.time_since_last_hit = None;
                    entry.meter_counter_data = None;
                }
                // An empty value set is what a program begins with.
                if !matches!(&entity.entity, Some(Kinds::ValueSetEntry(set)) if set.members.is_empty()) {
                    updates.push(Update { r#type: kind.into(), entity: Some(entity) });
                }
            });
            // What a device does not offer (registers, as on BMv2) it does not hold.
            read.or_else(|refusal| match refusal.code {
                Code::Unimplemented => Ok(()),
                _ => Err(refusal),
            })?;
        }
        self.held_defaults(now, &mut updates)?;
        Ok(updates)
    }

    fn is_const_table(&self, id: u32) -> bool {
        let index = self.program.as_ref().map(|program| &program.index);
        index.and_then(|index| index.table_by_id(id)).is_some_and(|table| table.is_const)
    }

    /// Default entries that can be changed; wildcard reads leave them out.
    fn held_defaults(&self, now: Time, updates: &mut Vec<Update>) -> Result<(), Refusal> {
        let Some(program) = &self.program else { return Ok(()) };
        for table in program.index.tables() {
            if table.const_default.is_some() || table.profile.is_some() {
                continue;
            }
            let entry = TableEntry {
                table_id: table.names.id,
                is_default_action: true,
                counter_data: table.counter.map(|_| CounterData::default()),
                meter_config: table.meter.map(|_| MeterConfig::default()),
                ..TableEntry::default()
            };
            let pattern = Entity { entity: Some(Kinds::TableEntry(entry)) };
            self.device.read(now, &pattern, &mut |entity| {
                updates.push(Update { r#type: Type::Modify.into(), entity: Some(entity) });
            })?;
        }
        Ok(())
    }

    pub(super) fn get_pipeline(
        &self,
        request: &GetForwardingPipelineConfigRequest,
    ) -> Result<GetForwardingPipelineConfigResponse, Failure> {
        self.known_device(request.device_id)?;
        let kind = ResponseType::try_from(request.response_type).map_err(|_| {
            let number = request.response_type;
            Failure::new(Code::InvalidArgument, format!("unknown response type {number}"))
        })?;
        let Some(program) = &self.program else {
            if self.profile == Profile::Bmv2 {
                let text = "No forwarding pipeline config set for this device";
                return Err(Failure::new(Code::FailedPrecondition, text));
            }
            return Ok(GetForwardingPipelineConfigResponse { config: None });
        };
        let stored = &program.config;
        let info = matches!(kind, ResponseType::All | ResponseType::P4infoAndCookie);
        let device = matches!(kind, ResponseType::All | ResponseType::DeviceConfigAndCookie);
        let config = ForwardingPipelineConfig {
            p4info: if info { stored.p4info.clone() } else { None },
            p4_device_config: if device {
                stored.p4_device_config.clone()
            } else {
                Default::default()
            },
            cookie: stored.cookie,
        };
        Ok(GetForwardingPipelineConfigResponse { config: Some(config) })
    }
}

/// One wildcard pattern per kind of state, referenced objects before those that refer to them.
fn state_patterns() -> Vec<(Type, Kinds)> {
    let replication = |kind| {
        Kinds::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(kind) })
    };
    let multicast = Replication::MulticastGroupEntry(MulticastGroupEntry::default());
    let session = Replication::CloneSessionEntry(CloneSessionEntry::default());
    let entries = TableEntry {
        counter_data: Some(CounterData::default()),
        meter_config: Some(MeterConfig::default()),
        ..TableEntry::default()
    };
    vec![
        (Type::Insert, replication(multicast)),
        (Type::Insert, replication(session)),
        (Type::Insert, Kinds::ActionProfileMember(ActionProfileMember::default())),
        (Type::Insert, Kinds::ActionProfileGroup(ActionProfileGroup::default())),
        (Type::Insert, Kinds::TableEntry(entries)),
        (Type::Modify, Kinds::ValueSetEntry(ValueSetEntry::default())),
        (Type::Modify, Kinds::RegisterEntry(RegisterEntry::default())),
        (Type::Modify, Kinds::CounterEntry(CounterEntry::default())),
        (Type::Modify, Kinds::MeterEntry(MeterEntry::default())),
        (Type::Insert, Kinds::DigestEntry(DigestEntry::default())),
    ]
}
