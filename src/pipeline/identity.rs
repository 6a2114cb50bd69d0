//! When two entities are the same: keys by value, contents by value.
//!
//! In: entities as written or read. Out: ordered keys, and a normal form that `==` compares. Must not know which
//! tables there are, or who owns an entity.
//!
//! Switches may send byte strings with other leading zeros, fields and parameters in another order, ternary values
//! with bits outside their mask, and counters that we never set; none of that is a difference (design: control,
//! "Compare").

use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::field_match::FieldMatchType;
use crate::p4runtime::value;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One field of a key, canonical: no leading zeros, no bits outside the mask.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// Equal to.
    Exact(Vec<u8>),
    /// Value, mask.
    Ternary(Vec<u8>, Vec<u8>),
    /// Value, prefix length.
    Lpm(Vec<u8>, i32),
    /// Low, high.
    Range(Vec<u8>, Vec<u8>),
    /// Present and equal to.
    Optional(Vec<u8>),
    /// A kind that this program has no use for; kept so that two such entries are not mistaken for one.
    Other,
}

/// What names an entity on a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EntityKey {
    /// A member of an action profile.
    Member {
        /// Profile id.
        profile: u32,
        /// Member id.
        member: u32,
    },
    /// A group of an action selector.
    Group {
        /// Profile id.
        profile: u32,
        /// Group id.
        group: u32,
    },
    /// A table entry; priority is part of the key (P4Runtime specification, section 9.1).
    Entry {
        /// Table id.
        table: u32,
        /// 0 unless the key has ternary, range or optional fields.
        priority: i32,
        /// (field id, match), ascending by id.
        fields: Vec<(u32, Field)>,
    },
    /// The default entry of a table.
    Default {
        /// Table id.
        table: u32,
    },
    /// A multicast group.
    Multicast(u32),
    /// A clone session.
    Clone(u32),
}

impl fmt::Display for EntityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member { profile, member } => write!(f, "member {member} of profile {profile}"),
            Self::Group { profile, group } => write!(f, "group {group} of profile {profile}"),
            Self::Default { table } => write!(f, "default entry of table {table}"),
            Self::Multicast(group) => write!(f, "multicast group {group}"),
            Self::Clone(session) => write!(f, "clone session {session}"),
            Self::Entry { table, priority, fields } => {
                write!(f, "entry of table {table}")?;
                for (id, field) in fields {
                    write!(f, " {id}={field}")?;
                }
                if *priority != 0 { write!(f, " priority {priority}") } else { Ok(()) }
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(v) => write!(f, "{}", Hex(v)),
            Self::Ternary(v, m) => write!(f, "{}&{}", Hex(v), Hex(m)),
            Self::Lpm(v, len) => write!(f, "{}/{len}", Hex(v)),
            Self::Range(low, high) => write!(f, "{}..{}", Hex(low), Hex(high)),
            Self::Optional(v) => write!(f, "?{}", Hex(v)),
            Self::Other => f.write_str("(other)"),
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The key of an entity; `None` for kinds that reconciling does not touch (counters, meters, registers, digests).
#[must_use]
pub fn key_of(entity: &proto::Entity) -> Option<EntityKey> {
    match entity.entity.as_ref()? {
        Kind::TableEntry(entry) if entry.is_default_action => {
            Some(EntityKey::Default { table: entry.table_id })
        }
        Kind::TableEntry(entry) => {
            let mut fields: Vec<(u32, Field)> =
                entry.r#match.iter().filter_map(|m| Some((m.field_id, field(m)?))).collect();
            fields.sort_unstable();
            Some(EntityKey::Entry { table: entry.table_id, priority: entry.priority, fields })
        }
        Kind::ActionProfileMember(m) => {
            Some(EntityKey::Member { profile: m.action_profile_id, member: m.member_id })
        }
        Kind::ActionProfileGroup(g) => {
            Some(EntityKey::Group { profile: g.action_profile_id, group: g.group_id })
        }
        Kind::PacketReplicationEngineEntry(pre) => {
            use proto::packet_replication_engine_entry::Type;
            match pre.r#type.as_ref()? {
                Type::MulticastGroupEntry(m) => Some(EntityKey::Multicast(m.multicast_group_id)),
                Type::CloneSessionEntry(c) => Some(EntityKey::Clone(c.session_id)),
            }
        }
        _ => None,
    }
}

/// The canonical form of one field; `None` when it is don't-care and hence no part of the key.
fn field(m: &proto::FieldMatch) -> Option<Field> {
    let canonical = |bytes: &[u8]| value::canonical(bytes).to_vec();
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    match m.field_match_type.as_ref()? {
        FieldMatchType::Exact(e) => Some(Field::Exact(canonical(&e.value))),
        FieldMatchType::Ternary(t) if zero(&t.mask) => None,
        FieldMatchType::Ternary(t) => {
            Some(Field::Ternary(canonical(&masked(&t.value, &t.mask)), canonical(&t.mask)))
        }
        FieldMatchType::Lpm(l) if l.prefix_len == 0 => None,
        FieldMatchType::Lpm(l) => Some(Field::Lpm(canonical(&l.value), l.prefix_len)),
        FieldMatchType::Range(r) => Some(Field::Range(canonical(&r.low), canonical(&r.high))),
        FieldMatchType::Optional(o) => Some(Field::Optional(canonical(&o.value))),
        FieldMatchType::Other(_) => Some(Field::Other),
    }
}

/// `bytes & mask`, both big-endian and of any length.
fn masked(bytes: &[u8], mask: &[u8]) -> Vec<u8> {
    let length = bytes.len().min(mask.len());
    let low = |all: &[u8]| all[all.len() - length..].to_vec();
    low(bytes).iter().zip(low(mask)).map(|(b, m)| b & m).collect()
}

/// The entity without what reconciling ignores, every number canonical, every unordered list sorted.
#[must_use]
pub fn normal_form(entity: &proto::Entity) -> proto::Entity {
    let mut entity = entity.clone();
    match entity.entity.as_mut() {
        Some(Kind::TableEntry(entry)) => normalise_entry(entry),
        Some(Kind::ActionProfileMember(member)) => {
            member.action.iter_mut().for_each(normalise_action);
        }
        Some(Kind::ActionProfileGroup(group)) => {
            group.members.sort_by_key(|member| member.member_id);
        }
        _ => {}
    }
    entity
}

fn normalise_entry(entry: &mut proto::TableEntry) {
    entry.r#match.retain(|m| field(m).is_some());
    entry.r#match.sort_by_key(|m| m.field_id);
    for m in &mut entry.r#match {
        let shorten = |bytes: &mut Vec<u8>| *bytes = value::canonical(bytes).to_vec();
        match m.field_match_type.as_mut() {
            Some(FieldMatchType::Exact(e)) => shorten(&mut e.value),
            Some(FieldMatchType::Ternary(t)) => {
                t.value = masked(&t.value, &t.mask);
                shorten(&mut t.value);
                shorten(&mut t.mask);
            }
            Some(FieldMatchType::Lpm(l)) => shorten(&mut l.value),
            Some(FieldMatchType::Range(r)) => {
                shorten(&mut r.low);
                shorten(&mut r.high);
            }
            Some(FieldMatchType::Optional(o)) => shorten(&mut o.value),
            Some(FieldMatchType::Other(_)) | None => {}
        }
    }
    entry.meter_config = None;
    entry.counter_data = None;
    entry.meter_counter_data = None;
    entry.time_since_last_hit = None;
    use proto::table_action::Type;
    if let Some(Type::Action(action)) = entry.action.as_mut().and_then(|a| a.r#type.as_mut()) {
        normalise_action(action);
    }
}

fn normalise_action(action: &mut proto::Action) {
    action.params.sort_by_key(|param| param.param_id);
    for param in &mut action.params {
        param.value = value::canonical(&param.value).to_vec();
    }
}

/// An entity that reads exactly the one named by `key`; `None` for an entry whose fields are all don't-care, which
/// cannot be told from "every entry of the table".
#[must_use]
pub fn read_request(key: &EntityKey) -> Option<proto::Entity> {
    let kind = match key {
        EntityKey::Member { profile, member } => {
            Kind::ActionProfileMember(proto::ActionProfileMember {
                action_profile_id: *profile,
                member_id: *member,
                action: None,
            })
        }
        EntityKey::Group { profile, group } => {
            Kind::ActionProfileGroup(proto::ActionProfileGroup {
                action_profile_id: *profile,
                group_id: *group,
                ..Default::default()
            })
        }
        EntityKey::Default { table } => Kind::TableEntry(proto::TableEntry {
            table_id: *table,
            is_default_action: true,
            ..Default::default()
        }),
        EntityKey::Entry { fields, .. } if fields.is_empty() => return None,
        EntityKey::Entry { table, priority, fields } => Kind::TableEntry(proto::TableEntry {
            table_id: *table,
            priority: *priority,
            r#match: fields.iter().map(|(id, field)| field_match(*id, field)).collect(),
            ..Default::default()
        }),
        EntityKey::Multicast(_) | EntityKey::Clone(_) => return None,
    };
    Some(proto::Entity { entity: Some(kind) })
}

fn field_match(id: u32, field: &Field) -> proto::FieldMatch {
    use proto::field_match::{Exact, Lpm, Optional, Range, Ternary};
    let kind = match field.clone() {
        Field::Exact(value) => Some(FieldMatchType::Exact(Exact { value })),
        Field::Ternary(value, mask) => Some(FieldMatchType::Ternary(Ternary { value, mask })),
        Field::Lpm(value, prefix_len) => Some(FieldMatchType::Lpm(Lpm { value, prefix_len })),
        Field::Range(low, high) => Some(FieldMatchType::Range(Range { low, high })),
        Field::Optional(value) => Some(FieldMatchType::Optional(Optional { value })),
        Field::Other => None,
    };
    proto::FieldMatch { field_id: id, field_match_type: kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::field_match::{Exact, Ternary};

    fn entry(fields: Vec<(u32, FieldMatchType)>, params: Vec<(u32, Vec<u8>)>) -> proto::Entity {
        let params = params
            .into_iter()
            .map(|(param_id, value)| proto::action::Param { param_id, value })
            .collect();
        proto::Entity {
            entity: Some(Kind::TableEntry(proto::TableEntry {
                table_id: 7,
                priority: 5,
                r#match: fields
                    .into_iter()
                    .map(|(field_id, kind)| proto::FieldMatch {
                        field_id,
                        field_match_type: Some(kind),
                    })
                    .collect(),
                action: Some(proto::TableAction {
                    r#type: Some(proto::table_action::Type::Action(proto::Action {
                        action_id: 3,
                        params,
                    })),
                }),
                ..Default::default()
            })),
        }
    }

    fn ternary(value: &[u8], mask: &[u8]) -> FieldMatchType {
        FieldMatchType::Ternary(Ternary { value: value.to_vec(), mask: mask.to_vec() })
    }

    fn exact(value: &[u8]) -> FieldMatchType {
        FieldMatchType::Exact(Exact { value: value.to_vec() })
    }

    #[test]
    fn order_leading_zeros_masked_bits_and_counters_make_no_difference() {
        let one = entry(
            vec![(1, exact(&[9])), (2, ternary(&[0x12], &[0xf0]))],
            vec![(1, vec![5]), (2, vec![0])],
        );
        let mut other = entry(
            vec![
                (2, ternary(&[0, 0xab, 0x1f], &[0, 0xf0])),
                (1, exact(&[0, 0, 9])),
                (3, ternary(&[1], &[0])),
            ],
            vec![(2, vec![0, 0]), (1, vec![0, 5])],
        );
        if let Some(Kind::TableEntry(e)) = other.entity.as_mut() {
            e.counter_data = Some(proto::CounterData { byte_count: 4, packet_count: 1 });
        }
        assert_eq!(key_of(&one), key_of(&other));
        assert_eq!(normal_form(&one), normal_form(&other));
    }

    #[test]
    fn another_value_mask_priority_or_parameter_is_a_difference() {
        let base = || entry(vec![(2, ternary(&[0x10], &[0xf0]))], vec![(1, vec![5])]);
        let mask = entry(vec![(2, ternary(&[0x10], &[0xff]))], vec![(1, vec![5])]);
        let value = entry(vec![(2, ternary(&[0x20], &[0xf0]))], vec![(1, vec![5])]);
        let mut priority = base();
        if let Some(Kind::TableEntry(e)) = priority.entity.as_mut() {
            e.priority = 6;
        }
        for other in [mask, value, priority] {
            assert_ne!(key_of(&base()), key_of(&other));
        }
        let param = entry(vec![(2, ternary(&[0x10], &[0xf0]))], vec![(1, vec![6])]);
        assert_eq!(key_of(&base()), key_of(&param));
        assert_ne!(normal_form(&base()), normal_form(&param));
    }

    #[test]
    fn a_key_can_be_read_alone_unless_it_matches_everything() {
        let entity = entry(vec![(1, exact(&[9])), (2, ternary(&[0x10], &[0xf0]))], vec![]);
        let key = key_of(&entity).unwrap();
        let request = read_request(&key).unwrap();
        assert_eq!(key_of(&request), Some(key));
        let everything = key_of(&entry(vec![(2, ternary(&[1], &[0]))], vec![])).unwrap();
        assert_eq!(read_request(&everything), None);
    }
}
