//! Read: patterns and their errors (section 11).
//! In: a request. Out: entities one by one, then a failure with one outcome per pattern if any failed. Must not know how
//! the device stores entries or how answers are cut into messages.

use super::check::Check;
use super::write::error;
use super::{PATTERNS_MAX, Profile, Server};
use crate::p4runtime::device::{Device, Refusal};
use crate::p4runtime::proto::p4::v1::{Entity, ReadRequest};
use crate::p4runtime::rpc::{Code, Failure};
use crate::time::Time;
use std::sync::Arc;

impl<D: Device> Server<D> {
    /// Emits the entities of every valid pattern; a failure lists one outcome per pattern (section 11.2).
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
                device.read(now, &pattern, &mut |entity| {
                    if scope.entity(&entity) {
                        emit(entity);
                    }
                })
            })
            .collect();
        if outcomes.iter().all(Result::is_ok) {
            return Ok(());
        }
        let updates = outcomes.into_iter().map(error).collect();
        let message = "some patterns of the Read failed; see the details".to_owned();
        Err(Failure { code: Code::Unknown, message, updates })
    }
}
