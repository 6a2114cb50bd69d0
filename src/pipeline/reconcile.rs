//! From what a switch should hold and what it holds to the updates between, in order.
//!
//! In: an [`EntrySet`] and the [`Present`] entities. Out: [`Change`]s by level, conflicts, the number of foreign entries.
//! Must not know sessions, batches in flight, or why something is wanted.
//!
//! Ownership: table entries carry our mark in `metadata`; members and groups have reserved ids. What is not ours is
//! never changed; a key that we want and that is foreign is a conflict, reported and left alone. `is_const` entries
//! belong to the program. Default entries belong to the program's tables: only MODIFY exists for them.

use super::entry_set::{EntrySet, Level};
use super::identity::{EntityKey, key_of, normal_form};
use super::{Program, route};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::update::Type;
use std::collections::BTreeMap;

/// Updates per Write. PI's reply carries one status per update in trailing metadata of at most 8 KiB plus what the
/// client allows; 500 fits the header limit that our client sets (P4Runtime specification, section 12.3).
pub const MAX_BATCH: usize = 500;

/// Whose an entity on a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Ours, by mark or reserved id.
    Ours,
    /// Somebody else's.
    Foreign,
    /// The program's own (`is_const`).
    Program,
}

/// One entity on a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// In normal form.
    pub entity: proto::Entity,
    /// Whose it is.
    pub owner: Owner,
}

/// What a switch holds, as last read or confirmed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Present {
    entities: BTreeMap<EntityKey, Held>,
}

impl Present {
    /// What a Read returned. Entities of kinds that reconciling does not touch are left out.
    #[must_use]
    pub fn from_read(entities: &[proto::Entity], mark: &str) -> Self {
        let mut present = Self::default();
        for entity in entities {
            present.put(entity, mark);
        }
        present
    }

    /// Takes one entity as read or written.
    pub fn put(&mut self, entity: &proto::Entity, mark: &str) {
        if let Some(key) = key_of(entity) {
            let owner = owner(entity, mark);
            self.entities.insert(key, Held { entity: normal_form(entity), owner });
        }
    }

    /// Takes note that an entity is not there.
    pub fn remove(&mut self, key: &EntityKey) {
        self.entities.remove(key);
    }

    /// The entity under a key.
    #[must_use]
    pub fn get(&self, key: &EntityKey) -> Option<&Held> {
        self.entities.get(key)
    }

    /// All entities by key.
    pub fn iter(&self) -> impl Iterator<Item = (&EntityKey, &Held)> {
        self.entities.iter()
    }

    /// Number of entities.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether the switch holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }
}

/// Whose an entity is.
#[must_use]
pub fn owner(entity: &proto::Entity, mark: &str) -> Owner {
    let reserved = |id: u32| if route::OURS.contains(&id) { Owner::Ours } else { Owner::Foreign };
    match entity.entity.as_ref() {
        Some(Kind::TableEntry(entry)) if entry.is_const => Owner::Program,
        Some(Kind::TableEntry(entry)) if entry.is_default_action => Owner::Ours,
        Some(Kind::TableEntry(entry)) if entry.metadata == mark.as_bytes() => Owner::Ours,
        Some(Kind::ActionProfileMember(member)) => reserved(member.member_id),
        Some(Kind::ActionProfileGroup(group)) => reserved(group.group_id),
        _ => Owner::Foreign,
    }
}

/// One update towards what is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// INSERT, MODIFY or DELETE.
    pub kind: Type,
    /// What is changed.
    pub key: EntityKey,
    /// The entity as it goes on the wire.
    pub entity: proto::Entity,
    /// Place in the order of writing.
    pub level: Level,
}

impl Change {
    /// The change as an update of a Write.
    #[must_use]
    pub fn update(&self) -> proto::Update {
        proto::Update { r#type: self.kind.into(), entity: Some(self.entity.clone()) }
    }

    /// Sorts creations and modifications upwards by level, then deletions downwards.
    #[must_use]
    pub fn rank(&self) -> (bool, u16) {
        let level = match self.level {
            Level::Member => 0,
            Level::Group => 1,
            Level::Entry => 2,
            Level::Default => 3,
            Level::Label(depth) => 4 + u16::from(depth),
            Level::Flow => 5 + u16::from(u8::MAX),
        };
        match self.kind {
            Type::Delete => (true, u16::MAX - level),
            _ => (false, level),
        }
    }
}

/// What lies between wanted and present.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconciliation {
    /// In the order of writing.
    pub changes: Vec<Change>,
    /// Keys that are wanted and foreign, ascending.
    pub conflicts: Vec<EntityKey>,
    /// Foreign entities, conflicts included.
    pub foreign: usize,
}

impl Reconciliation {
    /// Groups of updates; a group may be sent in parallel batches when all of the group before have been answered.
    #[must_use]
    pub fn levels(&self) -> Vec<Vec<proto::Update>> {
        let groups = self.changes.chunk_by(|a, b| a.rank() == b.rank());
        groups.map(|group| group.iter().map(Change::update).collect()).collect()
    }
}

/// The updates that turn `present` into `wanted`. Nothing foreign is touched.
#[must_use]
pub fn reconcile(program: &Program, wanted: &EntrySet, present: &Present) -> Reconciliation {
    let mut result = Reconciliation::default();
    for (key, wish) in wanted.iter() {
        let change = |kind| Change {
            kind,
            key: key.clone(),
            entity: wish.entity.clone(),
            level: wish.level,
        };
        match present.get(key) {
            None if matches!(key, EntityKey::Default { .. }) => {
                result.changes.push(change(Type::Modify));
            }
            None => result.changes.push(change(Type::Insert)),
            Some(held) if held.owner != Owner::Ours => result.conflicts.push(key.clone()),
            Some(held) if held.entity != wish.entity => result.changes.push(change(Type::Modify)),
            Some(_) => {}
        }
    }
    for (key, held) in present.iter() {
        let unwanted = wanted.get(key).is_none();
        match held.owner {
            Owner::Foreign => result.foreign += 1,
            // Without the program's own default action at hand there is nothing to modify an unwanted default to.
            Owner::Ours if unwanted && !matches!(key, EntityKey::Default { .. }) => {
                let level = level_of(program, key);
                let entity = bare(&held.entity);
                result.changes.push(Change { kind: Type::Delete, key: key.clone(), entity, level });
            }
            Owner::Ours | Owner::Program => {}
        }
    }
    result.changes.sort_by(|a, b| (a.rank(), &a.key).cmp(&(b.rank(), &b.key)));
    result
}

/// The level of an entity of ours that is not wanted any more. The depth of a label's entry is not known from the entry;
/// the order between switches is the controller's business.
fn level_of(program: &Program, key: &EntityKey) -> Level {
    match key {
        EntityKey::Member { .. } => Level::Member,
        EntityKey::Group { .. } => Level::Group,
        EntityKey::Default { .. } => Level::Default,
        EntityKey::Entry { table, .. } if *table == program.classify.id() => Level::Flow,
        EntityKey::Entry { table, .. } if *table == program.path_forward.id() => Level::Label(0),
        _ => Level::Entry,
    }
}

/// A DELETE looks only at the key; sending less keeps batches small.
fn bare(entity: &proto::Entity) -> proto::Entity {
    let mut entity = entity.clone();
    match entity.entity.as_mut() {
        Some(Kind::TableEntry(entry)) => {
            entry.action = None;
            entry.metadata.clear();
        }
        Some(Kind::ActionProfileMember(member)) => member.action = None,
        Some(Kind::ActionProfileGroup(group)) => group.members.clear(),
        _ => {}
    }
    entity
}
