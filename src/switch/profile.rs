//! Action profiles and selectors. In: members and groups from the control plane, a hash per packet. Out: the member to
//! run. Must not know tables or messages.
//!
//! A group's member is `hash % active members`, members in ascending order of their ids, each as often as its weight
//! says (BMv2 has no weights; its order is that of the handles, which ascend as ids do). A member whose watch port is
//! down is not active.

use crate::id::PortNo;
use crate::switch::program::ActionNo;
use std::collections::BTreeMap;

/// Sum of weights of one group; a packet's choice is one index into a list of this length.
pub const MAX_GROUP_WEIGHT: usize = 16 * 1024;

/// Groups of one profile.
pub const MAX_PROFILE_GROUPS: usize = 64 * 1024;

/// An action with its data, named independently of any table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The action.
    pub action: ActionNo,
    /// Its data, as [`crate::switch::program::Invocation::data`].
    pub data: Box<[u64]>,
}

/// A member of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// What it runs.
    pub bound: Bound,
    /// Groups and entries that name it; it cannot be deleted while there are any.
    pub users: u32,
}

/// One choice of a group or of a one-shot action set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<T> {
    /// A member's id, or an action.
    pub what: T,
    /// Relative share as the controller wrote it; 0 (weights are disallowed) counts as 1.
    pub weight: u32,
    /// The choice is out while this port is down.
    pub watch: Option<PortNo>,
    /// The watch port as the controller wrote it.
    pub watch_bytes: Vec<u8>,
}

/// Choices, and the list that a hash indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices<T> {
    all: Vec<Choice<T>>,
    /// Index into `all`, each as often as its weight, watch ports considered.
    active: Vec<u16>,
}

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Self { all: Vec::new(), active: Vec::new() }
    }
}

impl<T> Choices<T> {
    /// A list of choices; `None` when the weights sum to more than [`MAX_GROUP_WEIGHT`].
    #[must_use]
    pub fn new(all: Vec<Choice<T>>, up: &dyn Fn(PortNo) -> bool) -> Option<Self> {
        let sum: u64 = all.iter().map(|choice| u64::from(choice.weight.max(1))).sum();
        if sum > MAX_GROUP_WEIGHT as u64 {
            return None;
        }
        let mut choices = Self { all, active: Vec::new() };
        choices.refresh(up);
        Some(choices)
    }

    /// Looks at the watch ports again.
    pub fn refresh(&mut self, up: &dyn Fn(PortNo) -> bool) {
        self.active.clear();
        for (index, choice) in self.all.iter().enumerate() {
            if choice.watch.is_none_or(up) {
                let times = choice.weight.max(1) as usize;
                self.active.extend(std::iter::repeat_n(index as u16, times));
            }
        }
    }

    /// The choice for a hash; `None` when none is active.
    #[inline]
    pub fn pick(&self, hash: u64) -> Option<&T> {
        let place = hash.checked_rem(self.active.len() as u64)?;
        self.all.get(usize::from(self.active[place as usize])).map(|choice| &choice.what)
    }

    /// All choices in order.
    #[must_use]
    pub fn all(&self) -> &[Choice<T>] {
        &self.all
    }

    /// True when the list would be the same whatever ports are up.
    #[must_use]
    pub fn watches_nothing(&self) -> bool {
        self.all.iter().all(|choice| choice.watch.is_none())
    }
}

/// A group of members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its members.
    pub choices: Choices<u32>,
    /// Size that the controller asked for; 0 = the profile's.
    pub max_size: i32,
    /// Entries that name it.
    pub users: u32,
}

/// One profile's members and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// By member id.
    pub members: BTreeMap<u32, Member>,
    /// By group id.
    pub groups: BTreeMap<u32, Group>,
    /// Entries with a one-shot set. While there are any there are neither members nor groups (section 9.2.3).
    pub one_shots: u32,
}

impl Profile {
    /// What a group runs for a hash; `None` for an empty or unknown group.
    #[must_use]
    pub fn pick(&self, group: u32, hash: u64) -> Option<&Bound> {
        let member = self.groups.get(&group)?.choices.pick(hash)?;
        self.members.get(member).map(|member| &member.bound)
    }

    /// Changes how many groups and entries name a member.
    pub fn use_member(&mut self, member: u32, delta: i32) {
        if let Some(member) = self.members.get_mut(&member) {
            member.users = member.users.saturating_add_signed(delta);
        }
    }

    /// Changes how many entries name a group.
    pub fn use_group(&mut self, group: u32, delta: i32) {
        if let Some(group) = self.groups.get_mut(&group) {
            group.users = group.users.saturating_add_signed(delta);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(what: u32, weight: u32, watch: Option<u16>) -> Choice<u32> {
        Choice { what, weight, watch: watch.map(PortNo), watch_bytes: Vec::new() }
    }

    #[test]
    fn the_hash_modulo_the_active_weight_chooses() {
        let list = vec![choice(10, 1, None), choice(20, 2, Some(7)), choice(30, 1, None)];
        let mut choices = Choices::new(list, &|_| true).unwrap();
        let picked = |choices: &Choices<u32>| -> Vec<u32> {
            (0..8).filter_map(|hash| choices.pick(hash).copied()).collect()
        };
        assert_eq!(picked(&choices), [10, 20, 20, 30, 10, 20, 20, 30]);
        choices.refresh(&|port| port != PortNo(7));
        assert_eq!(picked(&choices), [10, 30, 10, 30, 10, 30, 10, 30]);
        choices.refresh(&|_| true);
        assert_eq!(picked(&choices)[1], 20);
    }

    #[test]
    fn an_empty_group_picks_nothing_and_too_much_weight_is_refused() {
        assert_eq!(Choices::<u32>::default().pick(5), None);
        let heavy = vec![choice(1, MAX_GROUP_WEIGHT as u32, None), choice(2, 1, None)];
        assert!(Choices::new(heavy, &|_| true).is_none());
    }
}
