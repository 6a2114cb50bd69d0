//! Who is primary (section 5, "Client Arbitration and Controller Replication").
//! In: arbitration messages and ends of streams. Out: notifications and ends. Must not know devices or programs.
//!
//! Per role the server remembers the highest election id that it has ever seen; only a client with an id at least as high
//! becomes primary. When the primary leaves, nobody is primary until the next accepted arbitration. PI (profile Bmv2)
//! remembers nothing: the connected client with the highest id is primary, an unset id counts as 0.

use super::role::Scope;
use super::{
    Profile, ROLE_NAME_BYTES_MAX, ROLES_MAX, STREAMS_PER_ROLE_MAX, StreamId, ToClient, number,
    uint128,
};
use crate::p4runtime::proto::google::rpc::Status;
use crate::p4runtime::proto::p4::v1::stream_message_response::Update;
use crate::p4runtime::proto::p4::v1::{MasterArbitrationUpdate, Role, StreamMessageResponse};
use crate::p4runtime::rpc::{Code, Failure, StreamEnd};
use std::collections::BTreeMap;

/// One role.
#[derive(Debug, Default)]
struct State {
    /// What the last primary asked to be in scope.
    config: Option<prost_types::Any>,
    scope: Scope,
    /// Highest id ever seen (profile Spec), or the primary's (profile Bmv2).
    highest: Option<u128>,
    /// Live clients and their ids.
    clients: BTreeMap<StreamId, Option<u128>>,
    primary: Option<StreamId>,
}

/// All roles and the streams that hold them.
#[derive(Debug)]
pub(super) struct Roles {
    profile: Profile,
    by_name: BTreeMap<String, State>,
    /// The role of each stream that has arbitrated.
    of_stream: BTreeMap<StreamId, String>,
}

/// What a stream is to its role.
pub(super) enum Standing<'a> {
    /// It has not arbitrated.
    Stranger,
    /// It may not act now.
    Backup,
    /// It may act within this scope.
    Primary(&'a Scope),
}

impl Roles {
    pub(super) fn new(profile: Profile) -> Self {
        // The default role exists from the start (section 5.1).
        let by_name = BTreeMap::from([(String::new(), State::default())]);
        Self { profile, by_name, of_stream: BTreeMap::new() }
    }

    /// What the stream may do.
    pub(super) fn standing(&self, stream: StreamId) -> Standing<'_> {
        let state = self.of_stream.get(&stream).and_then(|role| self.by_name.get(role));
        match state {
            None => Standing::Stranger,
            Some(state) if state.primary == Some(stream) => Standing::Primary(&state.scope),
            Some(_) => Standing::Backup,
        }
    }

    /// The primaries of all roles with their scopes, in role order.
    pub(super) fn primaries(&self) -> impl Iterator<Item = (StreamId, &Scope)> {
        self.by_name
            .values()
            .filter_map(|state| state.primary.map(|primary| (primary, &state.scope)))
    }

    /// The scope of a role; `None` if nobody ever had it.
    pub(super) fn scope(&self, role: &str) -> Option<&Scope> {
        self.by_name.get(role).map(|state| &state.scope)
    }

    /// NOT_FOUND for a role that nobody has, PERMISSION_DENIED unless the id is the primary's.
    pub(super) fn may_write(&self, role: &str, election: Option<u128>) -> Result<(), Failure> {
        let denied = |text: &str| Failure::new(Code::PermissionDenied, text);
        if self.profile == Profile::Bmv2 {
            let state = self.by_name.get("");
            let clients = state.map_or(0, |state| state.clients.len());
            let primary = state.and_then(|state| state.highest.filter(|_| clients > 0));
            return match (clients, election) {
                // PI takes writes without an id as long as nobody is connected.
                (0, None) => Ok(()),
                (0, Some(_)) => Err(denied("Not primary")),
                (_, id) if Some(id.unwrap_or(0)) == primary => Ok(()),
                _ => Err(denied("Not primary")),
            };
        }
        let Some(state) = self.by_name.get(role) else {
            return Err(Failure::new(Code::NotFound, format!("there is no role '{role}'")));
        };
        let Some(primary) = state.primary else {
            return Err(denied("nobody is primary; win arbitration first"));
        };
        let id = state.clients.get(&primary).copied().flatten();
        if election.is_none() || election != id {
            return Err(denied("the election id is not the primary's"));
        }
        Ok(())
    }

    /// Handles an arbitration message (section 5.3). Ends the stream when the message is not acceptable.
    pub(super) fn arbitrate(
        &mut self,
        stream: StreamId,
        device: u64,
        message: MasterArbitrationUpdate,
    ) -> Vec<ToClient> {
        match self.admit(stream, device, &message) {
            Ok(name) => self.elect(stream, &name, device, message),
            Err(end) => {
                let mut out = self.leave(stream, device);
                out.push((stream, Err(end)));
                out
            }
        }
    }

    /// The checks before a message counts; returns the role's name.
    fn admit(
        &mut self,
        stream: StreamId,
        device: u64,
        message: &MasterArbitrationUpdate,
    ) -> Result<String, StreamEnd> {
        let end = |code, message: String| StreamEnd { code, message };
        let name = self.role_name(message);
        let held = self.of_stream.get(&stream);
        if message.device_id != device {
            let code = if held.is_some() { Code::FailedPrecondition } else { Code::NotFound };
            let id = message.device_id;
            return Err(end(
                code,
                format!("there is no device {id} on this stream; it is {device}"),
            ));
        }
        if held.is_some_and(|held| *held != name) {
            let text = "a stream keeps its role; open another stream for another role";
            return Err(end(Code::FailedPrecondition, text.to_owned()));
        }
        let config = message.role.as_ref().and_then(|role| role.config.as_ref());
        if self.profile == Profile::Spec
            && let Err(text) = Scope::from_config(config)
        {
            return Err(end(Code::InvalidArgument, text));
        }
        if name.len() > ROLE_NAME_BYTES_MAX {
            let text = format!("role names have at most {ROLE_NAME_BYTES_MAX} bytes");
            return Err(end(Code::InvalidArgument, text));
        }
        let known = self.by_name.len();
        if !self.by_name.contains_key(&name) && known >= ROLES_MAX {
            let text = format!("this server remembers at most {ROLES_MAX} roles");
            return Err(end(Code::ResourceExhausted, text));
        }
        let state = self.by_name.entry(name.clone()).or_default();
        let id = election(self.profile, message);
        let taken = state.clients.iter().any(|(other, has)| *other != stream && *has == id);
        if id.is_some() && taken {
            return Err(end(Code::InvalidArgument, "Election id already exists".to_owned()));
        }
        let joined = state.clients.contains_key(&stream);
        if !joined && state.clients.len() >= STREAMS_PER_ROLE_MAX {
            let text = format!("the role has its {STREAMS_PER_ROLE_MAX} streams; close one");
            return Err(end(Code::ResourceExhausted, text));
        }
        Ok(name)
    }

    fn role_name(&self, message: &MasterArbitrationUpdate) -> String {
        match (&message.role, self.profile) {
            (Some(role), Profile::Spec) => role.name.clone(),
            // PI ignores roles.
            _ => String::new(),
        }
    }

    /// Counts an admitted message and tells whom it concerns.
    fn elect(
        &mut self,
        stream: StreamId,
        name: &str,
        device: u64,
        message: MasterArbitrationUpdate,
    ) -> Vec<ToClient> {
        let profile = self.profile;
        let id = election(profile, &message);
        self.of_stream.insert(stream, name.to_owned());
        let state = self.by_name.entry(name.to_owned()).or_default();
        let before = state.primary;
        let same = state.clients.insert(stream, id) == Some(id);
        if profile == Profile::Bmv2 {
            state.promote();
            if state.primary != before {
                return state.tell_all(name, device, profile);
            }
            // PI does not answer when nothing changed.
            return if same { Vec::new() } else { state.tell(stream, name, device, profile) };
        }
        let wins = id.is_some_and(|id| state.highest.is_none_or(|highest| id >= highest));
        if wins {
            let config = message.role.and_then(|role| role.config);
            state.scope = Scope::from_config(config.as_ref()).unwrap_or_default();
            state.config = config;
            state.highest = id;
            state.primary = Some(stream);
            return state.tell_all(name, device, profile);
        }
        if before == Some(stream) {
            state.primary = None;
            return state.tell_all(name, device, profile);
        }
        state.tell(stream, name, device, profile)
    }

    /// A stream has ended; tells the others if it was the primary's.
    pub(super) fn leave(&mut self, stream: StreamId, device: u64) -> Vec<ToClient> {
        let Some(name) = self.of_stream.remove(&stream) else { return Vec::new() };
        let profile = self.profile;
        let Some(state) = self.by_name.get_mut(&name) else { return Vec::new() };
        state.clients.remove(&stream);
        if state.primary != Some(stream) {
            return Vec::new();
        }
        state.primary = None;
        if profile == Profile::Bmv2 {
            state.promote();
        }
        state.tell_all(&name, device, profile)
    }
}

/// The id that a message carries; PI reads an unset one as 0.
fn election(profile: Profile, message: &MasterArbitrationUpdate) -> Option<u128> {
    let id = message.election_id.map(number);
    match profile {
        Profile::Spec => id,
        Profile::Bmv2 => Some(id.unwrap_or(0)),
    }
}

impl State {
    /// PI's rule: the connected client with the highest id is primary.
    fn promote(&mut self) {
        let first = self.clients.iter().max_by_key(|(_, id)| **id);
        self.primary = first.map(|(stream, _)| *stream);
        self.highest = first.and_then(|(_, id)| *id);
    }

    /// Notifies everybody of the role, the primary last (section 5.3: others are told before it).
    fn tell_all(&self, name: &str, device: u64, profile: Profile) -> Vec<ToClient> {
        let others = self.clients.keys().copied().filter(|stream| Some(*stream) != self.primary);
        others
            .chain(self.primary)
            .flat_map(|stream| self.tell(stream, name, device, profile))
            .collect()
    }

    /// The notification for one client (section 5.4).
    fn tell(&self, stream: StreamId, name: &str, device: u64, profile: Profile) -> Vec<ToClient> {
        let (code, text) = match self.primary {
            Some(primary) if primary == stream => (Code::Ok, "Is primary"),
            Some(_) => (Code::AlreadyExists, "Is backup"),
            None => (Code::NotFound, "There is no primary"),
        };
        let named = profile == Profile::Spec && (!name.is_empty() || self.config.is_some());
        let role = named.then(|| Role {
            name: name.to_owned(),
            config: self.config.clone(),
            ..Role::default()
        });
        let status = Status { code: code.number(), message: text.to_owned(), details: Vec::new() };
        let update = Update::Arbitration(MasterArbitrationUpdate {
            device_id: device,
            role,
            election_id: self.highest.map(uint128),
            status: Some(status),
        });
        vec![(stream, Ok(StreamMessageResponse { update: Some(update) }))]
    }
}
