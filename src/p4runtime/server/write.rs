//! Write: batches, their atomicity and their errors (section 12).
//! In: a request. Out: nothing, or a failure with one outcome per update. Must not know how the device stores entries.

use super::check::Check;
use super::role::Scope;
use super::{Profile, Server, UPDATES_MAX};
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::write_request::Atomicity;
use crate::p4runtime::proto::p4::v1::{Error, Update, WriteRequest};
use crate::p4runtime::rpc::{Code, Failure};
use crate::time::Time;
use std::sync::Arc;

/// What is asked of a batch whose update failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Go on.
    Continue,
    /// Undo everything. Packets run only between calls, so this is atomic for them too (section 12.2).
    AllOrNothing,
}

impl<D: Device> Server<D> {
    pub(super) fn write(&mut self, now: Time, request: WriteRequest) -> Result<(), Failure> {
        self.may_write(request.device_id, &request.role, request.election_id)?;
        let index = Arc::clone(&self.current()?.index);
        let mode = self.mode(request.atomicity)?;
        if request.updates.len() > UPDATES_MAX {
            let (count, most) = (request.updates.len(), UPDATES_MAX);
            let text = format!("{count} updates in one Write; send at most {most}");
            return Err(Failure::new(Code::ResourceExhausted, text));
        }
        let scope = self.roles.scope(&request.role).cloned().unwrap_or_default();
        let batch = Batch { index: &index, profile: self.profile, scope, mode };
        match self.saved.as_mut() {
            // Between VERIFY_AND_SAVE and COMMIT writes go to the program to come.
            Some(saved) => {
                let done = batch.run(now, &mut saved.trial, request.updates);
                saved.keep(done)
            }
            None => batch.run(now, &mut self.device, request.updates).result,
        }
    }

    fn mode(&self, atomicity: i32) -> Result<Mode, Failure> {
        match Atomicity::try_from(atomicity) {
            Ok(Atomicity::ContinueOnError) => Ok(Mode::Continue),
            Ok(_) if self.profile == Profile::Bmv2 => Err(Failure::new(
                Code::Unimplemented,
                "Support for atomic write modes has not been implemented yet",
            )),
            Ok(Atomicity::RollbackOnError | Atomicity::DataplaneAtomic) => Ok(Mode::AllOrNothing),
            Err(_) => {
                Err(Failure::new(Code::InvalidArgument, format!("unknown atomicity {atomicity}")))
            }
        }
    }
}

/// Everything needed to execute updates on one device.
struct Batch<'a> {
    index: &'a Index,
    profile: Profile,
    scope: Scope,
    mode: Mode,
}

/// What a batch came to.
pub(super) struct Done {
    pub(super) result: Result<(), Failure>,
    /// The updates that took effect, in canonical form.
    pub(super) effective: Vec<Update>,
}

impl Batch<'_> {
    fn run<D: Device>(&self, now: Time, device: &mut D, updates: Vec<Update>) -> Done {
        let before = (self.mode == Mode::AllOrNothing).then(|| device.checkpoint());
        let mut outcomes = Vec::with_capacity(updates.len());
        let mut effective = Vec::new();
        let mut failed = false;
        for mut update in updates {
            if failed && self.mode == Mode::AllOrNothing {
                outcomes.push(Err(aborted()));
                continue;
            }
            let outcome = self.one(now, device, &mut update);
            failed |= outcome.is_err();
            if outcome.is_ok() {
                effective.push(update);
            }
            outcomes.push(outcome);
        }
        if !failed {
            return Done { result: Ok(()), effective };
        }
        if let Some(before) = before {
            device.restore(before);
            effective.clear();
            for outcome in &mut outcomes {
                if outcome.is_ok() {
                    *outcome = Err(aborted());
                }
            }
        }
        let updates = outcomes.into_iter().map(error).collect();
        let failure = Failure {
            code: Code::Unknown,
            message: "some updates of the Write failed; see the details".to_owned(),
            updates,
        };
        Done { result: Err(failure), effective }
    }

    fn one<D: Device>(
        &self,
        now: Time,
        device: &mut D,
        update: &mut Update,
    ) -> Result<(), Refusal> {
        // First, so that a role learns nothing of what is not its own.
        if let Some(entity) = &update.entity
            && !self.scope.entity(entity)
        {
            return Err(Refusal::new(
                Code::PermissionDenied,
                "the object is not in the role's scope",
            ));
        }
        Check { index: self.index, profile: self.profile }.update(update)?;
        device.write(now, update).map_err(|refusal| match (self.profile, refusal.code) {
            // PI has no code for a full table.
            (Profile::Bmv2, Code::ResourceExhausted) => {
                Refusal::new(Code::Unknown, refusal.message)
            }
            _ => refusal,
        })
    }
}

fn aborted() -> Refusal {
    Refusal::new(Code::Aborted, "undone because another update of the batch failed")
}

/// The outcome of one update or pattern as it goes into the details of a status.
pub(super) fn error(outcome: Result<(), Refusal>) -> Error {
    match outcome {
        Ok(()) => Error::default(),
        Err(refusal) => Error {
            canonical_code: refusal.code.number(),
            message: refusal.message,
            ..Error::default()
        },
    }
}

/// Executes checked updates of which each must succeed, for replaying; the first refusal is returned.
pub(super) fn replay<D: Device>(
    now: Time,
    device: &mut D,
    check: Check<'_>,
    updates: &[Update],
) -> Result<(), Refusal> {
    for update in updates {
        let mut update = update.clone();
        check.update(&mut update)?;
        device.write(now, &update)?;
    }
    Ok(())
}
