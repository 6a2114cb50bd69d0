//! What a role may see and change (section 5.2).
//! In: the `config` of a role. Out: yes or no per object. Must not know clients.
//!
//! The specification leaves the format of the config to an agreement outside the protocol. Ours is
//! `ringpath.v1.RoleConfig` (proto/ringpath/v1/role.proto); without a config a role may do everything.

use crate::p4runtime::proto::p4::v1::Entity;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::ringpath::v1::RoleConfig;
use prost::Message as _;
use std::collections::BTreeSet;

/// Type name of the only config that is understood.
const CONFIG_TYPE: &str = "ringpath.v1.RoleConfig";

/// What a role may see and change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Scope {
    /// Everything.
    #[default]
    Full,
    /// Some of it.
    Some {
        /// Ids of tables, profiles, counters and so on.
        objects: BTreeSet<u32>,
        /// Multicast groups and clone sessions.
        replication: bool,
        /// Receives packet-ins and sends packet-outs.
        packets: bool,
        /// May set the program.
        pipeline: bool,
    },
}

impl Scope {
    /// Reads a config; the error says what would be understood.
    pub(super) fn from_config(config: Option<&prost_types::Any>) -> Result<Self, String> {
        let Some(config) = config else { return Ok(Self::Full) };
        if config.type_url.rsplit('/').next() != Some(CONFIG_TYPE) {
            let url = &config.type_url;
            return Err(format!("role config is '{url}'; leave it out or use {CONFIG_TYPE}"));
        }
        let read = RoleConfig::decode(config.value.as_slice())
            .map_err(|error| format!("role config does not decode: {error}"))?;
        Ok(Self::Some {
            objects: read.object_ids.into_iter().collect(),
            replication: read.replication,
            packets: read.packets,
            pipeline: read.pipeline,
        })
    }

    /// Whether an object's id is in scope.
    pub(super) fn holds(&self, id: u32) -> bool {
        match self {
            Self::Full => true,
            Self::Some { objects, .. } => objects.contains(&id),
        }
    }

    /// Whether packets are in scope.
    pub(super) fn packets(&self) -> bool {
        matches!(self, Self::Full | Self::Some { packets: true, .. })
    }

    /// Whether setting the program is in scope.
    pub(super) fn pipeline(&self) -> bool {
        matches!(self, Self::Full | Self::Some { pipeline: true, .. })
    }

    /// Whether an entity is in scope.
    pub(super) fn entity(&self, entity: &Entity) -> bool {
        let Self::Some { replication, .. } = self else { return true };
        match &entity.entity {
            None => true,
            Some(Kinds::PacketReplicationEngineEntry(_)) => *replication,
            Some(kind) => self.holds(object_id(kind)),
        }
    }
}

/// The id of the object that an entity belongs to.
fn object_id(entity: &Kinds) -> u32 {
    let of_entry = |entry: Option<&crate::p4runtime::proto::p4::v1::TableEntry>| {
        entry.map_or(0, |entry| entry.table_id)
    };
    match entity {
        Kinds::ExternEntry(entry) => entry.extern_id,
        Kinds::TableEntry(entry) => entry.table_id,
        Kinds::ActionProfileMember(member) => member.action_profile_id,
        Kinds::ActionProfileGroup(group) => group.action_profile_id,
        Kinds::MeterEntry(entry) => entry.meter_id,
        Kinds::DirectMeterEntry(entry) => of_entry(entry.table_entry.as_ref()),
        Kinds::CounterEntry(entry) => entry.counter_id,
        Kinds::DirectCounterEntry(entry) => of_entry(entry.table_entry.as_ref()),
        Kinds::PacketReplicationEngineEntry(_) => 0,
        Kinds::ValueSetEntry(entry) => entry.value_set_id,
        Kinds::RegisterEntry(entry) => entry.register_id,
        Kinds::DigestEntry(entry) => entry.digest_id,
    }
}
