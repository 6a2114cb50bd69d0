//! Our P4 program seen from Rust.
//!
//! ```text
//!  labels, slots (allocators) ─┐
//!  topology, paths, legs ──────┴─► entries ─EntrySet─► reconcile ─Change by level─► controller
//!                                     what the switch holds ─Present─┘
//! ```
//!
//! In: topology, candidate paths, labels, the legs of flows; P4Info once. Out: typed entries, and the updates between
//! what is wanted and what is there. Must not know jobs, sessions, sockets. P4 names occur here and in `p4/` only:
//! one file per table, each with its key, its action and the verbs `resolve`, `to_entry`, `from_entry`.
//!
//! Registers and readout replies become samples in `telemetry`; nothing else here depends on them.

pub mod arp;
pub mod classify;
pub mod counters;
pub mod entry_set;
pub mod host;
pub mod identity;
pub mod labels;
pub mod message;
pub mod path_forward;
pub mod pipes;
pub mod port_role;
pub mod probe;
pub mod reconcile;
pub mod route;
pub mod schema;
pub mod slots;
pub mod switch_config;
pub mod target;
pub mod telemetry;
pub mod traffic_class;

#[cfg(test)]
pub(crate) mod tests;

pub use entry_set::{EntrySet, Fabric, Leg, Level, Need, Settings, Wanted, entries};
pub use identity::EntityKey;
pub use labels::{Label, Labels};
pub use reconcile::{Change, Owner, Present, Reconciliation, reconcile};
pub use schema::{EntryError, ProgramError};
pub use target::Target;

use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;

/// Every table of the program, resolved once.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it was compiled for: ticks, CPU port, deviations.
    pub target: Target,
    /// Which ports are trusted.
    pub port_role: port_role::Table,
    /// Flows to labels.
    pub classify: classify::Table,
    /// Labels to ports.
    pub path_forward: path_forward::Table,
    /// Hosts to ports.
    pub host: host::Table,
    /// Untagged traffic to ports.
    pub route: route::Table,
    /// Untagged traffic to queues.
    pub traffic_class: traffic_class::Table,
    /// Answers to address requests.
    pub arp: arp::Table,
    /// What a switch is told about itself.
    pub switch_config: switch_config::Table,
    /// The register with the flip in force per source slot; absent on targets that keep it elsewhere.
    flip_register: Option<u32>,
    /// Readout packets.
    pub readout: telemetry::Readout,
    /// Probes of links.
    pub probes: probe::Probes,
    /// Telemetry registers; absent on targets that have no such names.
    pub cells: Option<telemetry::Registers>,
}

impl Program {
    /// Resolves every name.
    ///
    /// # Errors
    /// [`ProgramError`] names the first thing that the program lacks.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let (headers, target) = (message::Headers::resolve(index)?, Target::of(index)?);
        Ok(Self {
            target,
            port_role: port_role::Table::resolve(index)?,
            classify: classify::Table::resolve(index)?,
            path_forward: path_forward::Table::resolve(index)?,
            host: host::Table::resolve(index)?,
            route: route::Table::resolve(index)?,
            traffic_class: traffic_class::Table::resolve(index)?,
            arp: arp::Table::resolve(index)?,
            switch_config: switch_config::Table::resolve(index)?,
            flip_register: index.register("source_flip").ok().map(|register| register.names.id),
            readout: telemetry::Readout::new(headers, target),
            probes: probe::Probes::new(headers),
            cells: telemetry::Registers::resolve(index).ok(),
        })
    }

    /// The entry that makes a port one of the fabric.
    #[must_use]
    pub fn fabric_port(&self, port: PortNo) -> Option<EntityKey> {
        let action = port_role::Action { role: port_role::Role::Fabric };
        let entry = self.port_role.to_entry(port_role::Key { port }, action);
        identity::key_of(&proto::Entity { entity: Some(Kind::TableEntry(entry)) })
    }

    /// Reads everything that reconciling looks at: all entries, our default entry, all members and groups.
    /// (A wildcard read leaves default entries out; P4Runtime specification, section 9.1.)
    #[must_use]
    pub fn read_all(&self) -> Vec<proto::Entity> {
        let default = proto::TableEntry {
            table_id: self.switch_config.id(),
            is_default_action: true,
            ..Default::default()
        };
        [
            Kind::TableEntry(proto::TableEntry::default()),
            Kind::TableEntry(default),
            Kind::ActionProfileMember(proto::ActionProfileMember::default()),
            Kind::ActionProfileGroup(proto::ActionProfileGroup::default()),
        ]
        .into_iter()
        .map(|kind| proto::Entity { entity: Some(kind) })
        .collect()
    }

    /// Reads the flip in force of one source slot; `None` when the program has no such register.
    #[must_use]
    pub fn read_flip(&self, src_slot: u16) -> Option<proto::Entity> {
        let kind = Kind::RegisterEntry(proto::RegisterEntry {
            register_id: self.flip_register?,
            index: Some(proto::Index { index: src_slot.into() }),
            data: None,
        });
        Some(proto::Entity { entity: Some(kind) })
    }

    /// The source slots and flips that a read of [`Program::read_flip`]s returned. A slot about which the pipes of a switch
    /// disagree is left out: nobody knows its flip.
    #[must_use]
    pub fn flips_of(&self, entities: &[proto::Entity]) -> Vec<(u16, u8)> {
        let Some(register) = self.flip_register else { return Vec::new() };
        let cells = pipes::Cells::of(entities);
        let flip = |(index, _)| {
            let flip = cells.state(register, index)?;
            Some((u16::try_from(index).ok()?, u8::try_from(flip).ok()?))
        };
        cells.of_register(register).filter_map(flip).collect()
    }

    /// The label of a `path_forward` entry's key; `None` for any other key.
    #[must_use]
    pub fn label_of(&self, key: &EntityKey) -> Option<Label> {
        let EntityKey::Entry { table, fields, .. } = key else { return None };
        let [(_, identity::Field::Exact(bytes))] = &fields[..] else { return None };
        if *table != self.path_forward.id() {
            return None;
        }
        let label = crate::p4runtime::value::decode(bytes)?;
        Some(Label(u16::try_from(label).ok()?))
    }

    /// The tag that a `classify` entry gives; `None` for any other entity.
    #[must_use]
    pub fn tag_of(&self, entity: &proto::Entity) -> Option<classify::Action> {
        let Some(Kind::TableEntry(entry)) = &entity.entity else { return None };
        if entry.table_id != self.classify.id() {
            return None;
        }
        self.classify.from_entry(entry).ok().map(|(_, tag)| tag)
    }

    /// Entries that a table of ours is declared to hold.
    #[must_use]
    pub fn table_size(&self, table: u32) -> Option<u64> {
        let schemas = [
            &self.port_role.0,
            &self.classify.0,
            &self.path_forward.0,
            &self.host.0,
            &self.route.schema,
            &self.traffic_class.0,
            &self.arp.0,
        ];
        schemas.into_iter().find(|schema| schema.id() == table).map(schema::Schema::size)
    }

    /// Entries that the tables are declared to hold together; a read of more than twice that is cut off.
    #[must_use]
    pub fn capacity(&self) -> usize {
        let sizes = [
            self.port_role.0.size(),
            self.classify.0.size(),
            self.path_forward.0.size(),
            self.host.0.size(),
            self.route.schema.size(),
            self.traffic_class.0.size(),
            self.arp.0.size(),
        ];
        usize::try_from(sizes.iter().sum::<u64>()).unwrap_or(usize::MAX)
    }
}
