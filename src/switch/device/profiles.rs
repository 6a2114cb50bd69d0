//! Members and groups of action profiles. In: `ActionProfileMember`, `ActionProfileGroup`. Out: the same, read back.
//! Must not know tables beyond how many entries name a member or group.

use super::names::ProfileNames;
use super::{Control, Done, refuse, unknown_id};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::proto::p4::v1::action_profile_group::{self, member::WatchKind};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::update::Type;
use crate::p4runtime::proto::p4::v1::{ActionProfileGroup, ActionProfileMember};
use crate::p4runtime::rpc::Code;
use crate::switch::profile::{
    Choice, Choices, Group, MAX_GROUP_WEIGHT, MAX_PROFILE_GROUPS, Member, Profile,
};
use std::sync::Arc;

type Emit<'a> = &'a mut dyn FnMut(Kinds);

impl Control {
    fn profile(&self, names: &ProfileNames) -> &Profile {
        &self.memory.profiles[names.no.index()]
    }

    fn profile_mut(&mut self, names: &ProfileNames) -> &mut Profile {
        &mut self.memory.profiles[names.no.index()]
    }

    pub(crate) fn write_member(&mut self, kind: Type, member: &ActionProfileMember) -> Done {
        let all = Arc::clone(&self.names);
        let id = member.action_profile_id;
        let names = all.profiles.get(&id).ok_or_else(|| unknown_id("action profile", id))?;
        let exists = self.profile(names).members.contains_key(&member.member_id);
        check_presence(kind, exists, &format!("member {} of '{}'", member.member_id, names.name))?;
        if kind == Type::Delete {
            let users = self.profile(names).members.get(&member.member_id).map_or(0, |m| m.users);
            if users > 0 {
                let text = format!(
                    "member {} of '{}' is named by {users} groups or entries; change them first",
                    member.member_id, names.name
                );
                return refuse(self.in_use(), text);
            }
            self.profile_mut(names).members.remove(&member.member_id);
            return Ok(());
        }
        let Some(action) = &member.action else {
            return refuse(Code::InvalidArgument, format!("'{}': no action", names.name));
        };
        let bound = self.bind(&names.name, &names.actions, action)?;
        self.no_one_shots(names)?;
        if kind == Type::Insert {
            let members = self.profile(names).members.len();
            if names.size > 0 && members >= names.size {
                return self.full(format!("'{}' is full with {members} members", names.name));
            }
        }
        let members = &mut self.profile_mut(names).members;
        let users = members.get(&member.member_id).map_or(0, |old| old.users);
        members.insert(member.member_id, Member { bound, users });
        Ok(())
    }

    pub(crate) fn write_group(&mut self, kind: Type, group: &ActionProfileGroup) -> Done {
        let all = Arc::clone(&self.names);
        let id = group.action_profile_id;
        let names = all.profiles.get(&id).ok_or_else(|| unknown_id("action profile", id))?;
        let what = format!("group {} of '{}'", group.group_id, names.name);
        let old = self.profile(names).groups.get(&group.group_id).cloned();
        check_presence(kind, old.is_some(), &what)?;
        let users = old.as_ref().map_or(0, |old| old.users);
        if kind == Type::Delete {
            if users > 0 {
                let text = format!("{what} is named by {users} entries; change them first");
                return refuse(self.in_use(), text);
            }
            self.replace_group(names, group.group_id, None);
            return Ok(());
        }
        self.no_one_shots(names)?;
        if kind == Type::Insert && self.profile(names).groups.len() >= MAX_PROFILE_GROUPS {
            return self.full(format!("'{}' has {MAX_PROFILE_GROUPS} groups", names.name));
        }
        let max_size = group.max_size;
        if let Some(old) = old.filter(|old| old.max_size != max_size) {
            let text = format!("{what}: max_size is {} and cannot change", old.max_size);
            return refuse(Code::InvalidArgument, text);
        }
        if usize::try_from(max_size).is_ok_and(|size| size > MAX_GROUP_WEIGHT) {
            return self.full(format!("{what}: max_size {max_size} is above {MAX_GROUP_WEIGHT}"));
        }
        let choices = self.choices(names, &what, group)?;
        let Some(choices) = Choices::new(choices, &|port| self.memory.is_up(port)) else {
            return self.full(format!("{what}: the weights are too large"));
        };
        self.replace_group(names, group.group_id, Some(Group { choices, max_size, users }));
        Ok(())
    }

    /// Members and one-shot sets exclude each other (section 9.2.3).
    fn no_one_shots(&self, names: &ProfileNames) -> Done {
        match self.profile(names).one_shots {
            0 => Ok(()),
            count => refuse(
                Code::InvalidArgument,
                format!(
                    "'{}' is used by {count} one-shot sets, so members and groups cannot be",
                    names.name
                ),
            ),
        }
    }

    fn choices(
        &self,
        names: &ProfileNames,
        what: &str,
        group: &ActionProfileGroup,
    ) -> Result<Vec<Choice<u32>>, Refusal> {
        let mut choices = Vec::new();
        for member in &group.members {
            if !self.profile(names).members.contains_key(&member.member_id) {
                let text = format!("{what}: there is no member {}", member.member_id);
                return refuse(Code::NotFound, text);
            }
            let watch_bytes = match &member.watch_kind {
                Some(WatchKind::WatchPort(port)) => port.clone(),
                _ => Vec::new(),
            };
            choices.push(Choice {
                what: member.member_id,
                weight: member.weight.unsigned_abs(),
                watch: super::copies::watched(what, &watch_bytes)?,
                watch_bytes,
            });
        }
        // Ascending ids: the order in which BMv2 counts members.
        choices.sort_by_key(|choice| choice.what);
        Ok(choices)
    }

    fn replace_group(&mut self, names: &ProfileNames, id: u32, group: Option<Group>) {
        let profile = self.profile_mut(names);
        if let Some(group) = &group {
            group.choices.all().iter().for_each(|choice| profile.use_member(choice.what, 1));
        }
        let old = match group {
            Some(group) => profile.groups.insert(id, group),
            None => profile.groups.remove(&id),
        };
        if let Some(old) = old {
            old.choices.all().iter().for_each(|choice| profile.use_member(choice.what, -1));
        }
    }

    /// The profiles that a pattern names: all for id 0.
    fn profiles_of(&self, id: u32) -> Result<Vec<(u32, &ProfileNames)>, Refusal> {
        match id {
            0 => Ok(self.names.profiles.iter().map(|(id, names)| (*id, names)).collect()),
            id => match self.names.profiles.get(&id) {
                Some(names) => Ok(vec![(id, names)]),
                None => Err(unknown_id("action profile", id)),
            },
        }
    }

    pub(crate) fn read_members(&self, asked: &ActionProfileMember, emit: Emit<'_>) -> Done {
        for (id, names) in self.profiles_of(asked.action_profile_id)? {
            for (member_id, member) in &self.profile(names).members {
                if asked.member_id == 0 || asked.member_id == *member_id {
                    emit(Kinds::ActionProfileMember(ActionProfileMember {
                        action_profile_id: id,
                        member_id: *member_id,
                        action: Some(self.unbind(&member.bound)),
                    }));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn read_groups(&self, asked: &ActionProfileGroup, emit: Emit<'_>) -> Done {
        let member = |choice: &Choice<u32>| action_profile_group::Member {
            member_id: choice.what,
            weight: choice.weight as i32,
            watch_kind: (!choice.watch_bytes.is_empty())
                .then(|| WatchKind::WatchPort(choice.watch_bytes.clone())),
        };
        for (id, names) in self.profiles_of(asked.action_profile_id)? {
            for (group_id, group) in &self.profile(names).groups {
                if asked.group_id == 0 || asked.group_id == *group_id {
                    emit(Kinds::ActionProfileGroup(ActionProfileGroup {
                        action_profile_id: id,
                        group_id: *group_id,
                        members: group.choices.all().iter().map(member).collect(),
                        max_size: group.max_size,
                    }));
                }
            }
        }
        Ok(())
    }
}

/// INSERT needs absence, MODIFY and DELETE need presence.
pub(crate) fn check_presence(kind: Type, exists: bool, what: &str) -> Done {
    match (kind, exists) {
        (Type::Insert, true) => refuse(Code::AlreadyExists, format!("{what} exists already")),
        (Type::Modify | Type::Delete, false) => {
            refuse(Code::NotFound, format!("{what} does not exist"))
        }
        _ => Ok(()),
    }
}
