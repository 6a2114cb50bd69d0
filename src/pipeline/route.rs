//! Table `route` and its action selector `ecmp`: where untagged packets go. In: prefix, ports. Out: entries, members,
//! groups. Must not know the cabling.
//!
//! Members and groups have no room for an ownership mark, so ours lie in a reserved range of ids: whatever is in
//! [`OURS`] belongs to this controller (design: control, "Ownership").

use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::id::{PortNo, SwitchId};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::TableEntry;
use std::net::Ipv4Addr;
use std::ops::Range;

const SPEC: Spec = Spec {
    table: "route",
    keys: &[("dst_addr", MatchKind::Lpm, 32)],
    actions: &[("route_to", &[("port", 9)])],
};

/// Ids of members and groups that belong to this controller. The range starts far above what a person would type and
/// has room for all ports and, as groups, for all leaves.
pub const OURS: Range<u32> = 0x0052_0000..0x0053_0000;

/// A destination prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Network address.
    pub address: Ipv4Addr,
    /// Prefix length, 0..=32.
    pub length: u8,
}

/// Where to: one port, or any of a leaf's equal-cost ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The member that sends to one port.
    Member {
        /// The port.
        port: PortNo,
    },
    /// The group of next hops towards a leaf.
    Group {
        /// The leaf.
        leaf: SwitchId,
    },
}

/// The resolved table and its action profile.
#[derive(Clone, Debug)]
pub struct Table {
    pub(super) schema: Schema,
    profile: u32,
    /// Most members of a group; 0 means that the program sets no limit.
    group_limit: usize,
}

impl Table {
    /// Finds the table in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when the program is another one, or the table has no action profile.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let schema = Schema::resolve(index, &SPEC)?;
        let profile = schema.profile()?;
        let limit = index.profile_by_id(profile).map_or(0, |profile| profile.max_group_size);
        Ok(Self { schema, profile, group_limit: usize::try_from(limit).unwrap_or(0) })
    }

    /// The id of the action profile.
    #[must_use]
    pub const fn profile(&self) -> u32 {
        self.profile
    }

    /// The id of the member that sends to `port`.
    #[must_use]
    pub fn member_id(port: PortNo) -> u32 {
        OURS.start + u32::from(port.0)
    }

    /// The id of the group towards `leaf`. Wraps beyond 65,536 leaves, which no fabric with 16-bit labels has.
    #[must_use]
    pub fn group_id(leaf: SwitchId) -> u32 {
        OURS.start + (leaf.0 & 0xffff)
    }

    /// The member that sends to `port`.
    #[must_use]
    pub fn member(&self, port: PortNo) -> proto::ActionProfileMember {
        proto::ActionProfileMember {
            action_profile_id: self.profile,
            member_id: Self::member_id(port),
            action: Some(self.schema.action(0, &[port.0.into()])),
        }
    }

    /// The group of `ports` towards `leaf`, each with weight 1. `room` is the most ports that it may ever have: the size
    /// of a group is fixed when it is created (P4Runtime specification, section 9.2.2). Ports beyond the program's
    /// limit are left out.
    #[must_use]
    pub fn group(
        &self,
        leaf: SwitchId,
        ports: &[PortNo],
        room: usize,
    ) -> proto::ActionProfileGroup {
        let limit = if self.group_limit == 0 { usize::MAX } else { self.group_limit };
        let members = ports.iter().take(limit).map(|port| proto::action_profile_group::Member {
            member_id: Self::member_id(*port),
            weight: 1,
            ..Default::default()
        });
        proto::ActionProfileGroup {
            action_profile_id: self.profile,
            group_id: Self::group_id(leaf),
            members: members.collect(),
            max_size: i32::try_from(room.min(limit)).unwrap_or(i32::MAX),
        }
    }

    /// The entry for a key and an action.
    #[must_use]
    pub fn to_entry(&self, key: Key, action: Action) -> TableEntry {
        use proto::table_action::Type;
        let to = match action {
            Action::Member { port } => Type::ActionProfileMemberId(Self::member_id(port)),
            Action::Group { leaf } => Type::ActionProfileGroupId(Self::group_id(leaf)),
        };
        let parts = [Part::Prefix(u32::from(key.address).into(), key.length.into())];
        TableEntry {
            action: Some(proto::TableAction { r#type: Some(to) }),
            ..self.schema.key(&parts, 0)
        }
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        use proto::table_action::Type;
        let wrong = || self.schema.wrong("dst_addr");
        let (address, length) = match self.schema.parts(entry)?[..] {
            [Part::Prefix(address, length)] => (address, length),
            [Part::Any] => (0, 0),
            _ => return Err(wrong()),
        };
        let address = Ipv4Addr::from(u32::try_from(address).map_err(|_| wrong())?);
        let length = u8::try_from(length).map_err(|_| wrong())?;
        let offset = |id: u32| id.checked_sub(OURS.start).ok_or(self.schema.wrong("member"));
        let action = match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            Some(Type::ActionProfileMemberId(id)) => {
                let port = u16::try_from(offset(*id)?).map_err(|_| self.schema.wrong("member"))?;
                Action::Member { port: PortNo(port) }
            }
            Some(Type::ActionProfileGroupId(id)) => Action::Group { leaf: SwitchId(offset(*id)?) },
            _ => return Err(EntryError::Action { table: self.schema.name(), action: 0 }),
        };
        Ok((Key { address, length }, action))
    }
}
