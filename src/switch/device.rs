//! The switch as a P4Runtime server sees it. In: updates and patterns that the server has checked against P4Info. Out:
//! changed state, entities, stream messages. Must not know clients; must not touch packets but those from and to the
//! controller.
//!
//! ```text
//!  Update ─► entries │ direct │ profiles │ arrays │ copies ─► memory, replication
//!  Entity ◄─ (the same files read what they write, in canonical form and ascending order)
//!  stream: packets to and from the CPU port, digests, idle notifications
//! ```

pub mod arrays;
pub mod copies;
pub mod direct;
pub mod entries;
pub mod names;
pub mod profiles;
pub mod stream;

use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{
    CloneSessionEntry, Entity, MulticastGroupEntry, Update, ValueSetEntry,
};
use crate::p4runtime::rpc::Code;
use crate::switch::memory::Memory;
use crate::switch::replication::Replication;
use names::Names;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a write gives.
pub type Done = Result<(), Refusal>;

/// Everything that writes can change, with the names that they use. Cloned for a checkpoint.
#[derive(Clone, Debug)]
pub struct Control {
    /// P4Info.
    pub index: Arc<Index>,
    /// P4Info's ids against the program's numbers.
    pub names: Arc<Names>,
    /// Tables, profiles, arrays.
    pub memory: Memory,
    /// Groups and sessions as packets use them.
    pub replication: Replication,
    /// Groups as the controller wrote them.
    groups: BTreeMap<u32, MulticastGroupEntry>,
    /// Sessions as the controller wrote them.
    sessions: BTreeMap<u32, CloneSessionEntry>,
    /// Value sets as the controller wrote them.
    value_sets: BTreeMap<u32, ValueSetEntry>,
    /// Digests that are switched on.
    pub digests: stream::Digests,
    /// BMv2's answers where it differs.
    pub mimic_bmv2: bool,
    /// What the Epoch lies before the zero of the switch's clock, in nanoseconds.
    pub epoch_ns: u64,
}

/// A refusal with its text.
pub(crate) fn refuse<T>(code: Code, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::new(code, message))
}

pub(crate) fn unknown_id(kind: &str, id: u32) -> Refusal {
    Refusal::new(Code::NotFound, format!("the program has no {kind} with id {id}"))
}

impl Control {
    /// Fresh state.
    #[must_use]
    pub fn new(index: Arc<Index>, names: Arc<Names>, memory: Memory, mimic_bmv2: bool) -> Self {
        Self {
            index,
            names,
            memory,
            replication: Replication::default(),
            groups: BTreeMap::new(),
            sessions: BTreeMap::new(),
            value_sets: BTreeMap::new(),
            digests: stream::Digests::default(),
            mimic_bmv2,
            epoch_ns: 0,
        }
    }

    /// Executes one update. `now_us` is the switch's local time.
    ///
    /// # Errors
    /// As [`crate::p4runtime::device::Device::write`].
    pub fn write(&mut self, now_us: u64, update: &Update) -> Done {
        let kind = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
        if kind == Type::Unspecified {
            return refuse(Code::InvalidArgument, "the update has no type");
        }
        let Some(entity) = update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) else {
            return refuse(Code::InvalidArgument, "the update has no entity");
        };
        match entity {
            Kinds::TableEntry(entry) => self.write_entry(now_us, kind, entry),
            Kinds::DirectCounterEntry(entry) => self.write_direct_counter(entry),
            Kinds::DirectMeterEntry(entry) => self.write_direct_meter(entry),
            Kinds::ActionProfileMember(member) => self.write_member(kind, member),
            Kinds::ActionProfileGroup(group) => self.write_group(kind, group),
            Kinds::CounterEntry(entry) => self.write_counter(entry),
            Kinds::MeterEntry(entry) => self.write_meter(entry),
            Kinds::RegisterEntry(entry) => self.write_register(entry),
            Kinds::ValueSetEntry(entry) => self.write_value_set(entry),
            Kinds::PacketReplicationEngineEntry(entry) => self.write_copies(kind, entry),
            Kinds::DigestEntry(entry) => self.write_digest(kind, entry),
            Kinds::ExternEntry(entry) => refuse(
                Code::Unimplemented,
                format!("v1model has no extern of type {}", entry.extern_type_id),
            ),
        }
    }

    /// Emits what fits a pattern.
    ///
    /// # Errors
    /// As [`crate::p4runtime::device::Device::read`].
    pub fn read(&self, now_us: u64, pattern: &Entity, emit: &mut dyn FnMut(Entity)) -> Done {
        let Some(pattern) = pattern.entity.as_ref() else {
            return refuse(Code::InvalidArgument, "the pattern has no entity");
        };
        let mut send = |entity: Kinds| emit(Entity { entity: Some(entity) });
        match pattern {
            Kinds::TableEntry(entry) => self.read_entries(now_us, entry, &mut send),
            Kinds::DirectCounterEntry(entry) => self.read_direct_counters(entry, &mut send),
            Kinds::DirectMeterEntry(entry) => self.read_direct_meters(entry, &mut send),
            Kinds::ActionProfileMember(member) => self.read_members(member, &mut send),
            Kinds::ActionProfileGroup(group) => self.read_groups(group, &mut send),
            Kinds::CounterEntry(entry) => self.read_counters(entry, &mut send),
            Kinds::MeterEntry(entry) => self.read_meters(entry, &mut send),
            Kinds::RegisterEntry(entry) => self.read_registers(entry, &mut send),
            Kinds::ValueSetEntry(entry) => self.read_value_sets(entry, &mut send),
            Kinds::PacketReplicationEngineEntry(entry) => self.read_copies(entry, &mut send),
            Kinds::DigestEntry(entry) => self.read_digests(entry, &mut send),
            Kinds::ExternEntry(entry) => refuse(
                Code::Unimplemented,
                format!("v1model has no extern of type {}", entry.extern_type_id),
            ),
        }
    }

    /// The code for what others still name, which BMv2 calls UNKNOWN.
    pub(crate) fn in_use(&self) -> Code {
        if self.mimic_bmv2 { Code::Unknown } else { Code::FailedPrecondition }
    }

    /// RESOURCE_EXHAUSTED, which BMv2 calls UNKNOWN.
    pub(crate) fn full<T>(&self, message: String) -> Result<T, Refusal> {
        refuse(if self.mimic_bmv2 { Code::Unknown } else { Code::ResourceExhausted }, message)
    }
}
