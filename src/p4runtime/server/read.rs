//! Read: patterns and their errors (section 13).
//! In: a request. Out: entities one by one, then a failure with one outcome per pattern if any failed. Must not know how
//! the device stores entries or how answers are cut into messages.

use super::check::Check;
use super::write::error;
use super::{PATTERNS_MAX, Profile, Server};
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::{Entity, ReadRequest};
use crate::p4runtime::rpc::{Code, Failure};
use crate::time::Time;
use std::sync::Arc;

impl<D: Device> Server<D> {
    /// Emits the entities of every valid pattern; a failure lists one outcome per pattern (section 13.3).
    pub fn read(
        &self,
        now: Time,
        request: ReadRequest,
        emit: &mut dyn FnMut(Entity),
    ) -> Result<(), Failure> {
        self.known_device(request.device_id)?;
        let index = Arc::clone(&self.current()?.index);
        let role = if self.profile == Profile::Bmv2 { "" } else { request.role.as_str() };
        let Some(scope) = self.roles.scope(role) else {
            return Err(Failure::new(Code::NotFound, format!("there is no role '{role}'")));
        };
        if request.entities.len() > PATTERNS_MAX {
            let text = format!("more than {PATTERNS_MAX} patterns in one Read; split it");
            return Err(Failure::new(Code::ResourceExhausted, text));
        }
        let check = Check { index: &index, profile: self.profile };
        let device = self.saved.as_ref().map_or(&self.device, |saved| &saved.trial);
        let outcomes: Vec<Result<(), Refusal>> = request
            .entities
            .into_iter()
            .map(|mut pattern| {
                check.pattern(&mut pattern)?;
                let mut found = false;
                device.read(now, &pattern, &mut |entity| {
                    found = true;
                    if scope.entity(&entity) {
                        emit(entity);
                    }
                })?;
                if !found && names_one_direct(&pattern) {
                    let text = "the table has no such entry, and so no counter or meter of it";
                    return Err(Refusal::new(Code::NotFound, text));
                }
                Ok(())
            })
            .collect();
        if outcomes.iter().all(Result::is_ok) {
            return Ok(());
        }
        if self.profile == Profile::Bmv2 {
            // PI ends the call with the first error and gives no details.
            let first = outcomes.into_iter().find_map(Result::err);
            let first = first.unwrap_or_else(|| Refusal::new(Code::Unknown, "the Read failed"));
            return Err(Failure::new(first.code, first.message));
        }
        let updates = outcomes.into_iter().map(error).collect();
        let message = "some patterns of the Read failed; see the details".to_owned();
        Err(Failure { code: Code::Unknown, message, updates })
    }
}

/// Whether a pattern asks for the direct counter or meter of one entry, which must exist (sections 9.3.1 and 9.4.1).
fn names_one_direct(pattern: &Entity) -> bool {
    let entry = match &pattern.entity {
        Some(Kinds::DirectCounterEntry(direct)) => direct.table_entry.as_ref(),
        Some(Kinds::DirectMeterEntry(direct)) => direct.table_entry.as_ref(),
        _ => None,
    };
    entry.is_some_and(|entry| !entry.r#match.is_empty())
}
