//! Actions of entries, members and one-shot sets (sections 9.1.2 and 9.2).

use super::{Check, Checked, invalid};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::{ActionProfile, ActionUse, Kind, Scope, SizeSemantics, Table};
use crate::p4runtime::proto::p4::v1::action_profile_action::WatchKind;
use crate::p4runtime::proto::p4::v1::action_profile_action_set::{
    ActionSelectionMode, SizeSemantics as Override,
};
use crate::p4runtime::proto::p4::v1::table_action::Type;
use crate::p4runtime::proto::p4::v1::{Action, ActionProfileActionSet, TableAction};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;

/// Where an action is about to be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Entry,
    Default,
    Group,
}

impl Place {
    /// Whether the scope of P4Info allows this use.
    fn allows(self, scope: Scope) -> bool {
        match self {
            Self::Entry => matches!(scope, Scope::TableAndDefault | Scope::TableOnly),
            Self::Default => matches!(scope, Scope::TableAndDefault | Scope::DefaultOnly),
            Self::Group => scope == Scope::GroupAction,
        }
    }
}

impl Check<'_> {
    /// The action of an entry or default entry fits the table's implementation.
    pub(super) fn table_action(
        &self,
        table: &Table,
        place: Place,
        action: &mut TableAction,
    ) -> Checked {
        let owner = &table.names.name;
        let profile = table.profile.and_then(|id| self.index.profile_by_id(id));
        match (action.r#type.as_mut(), profile) {
            (None, _) => Err(invalid(format!("'{owner}': the action is empty"))),
            (Some(Type::Action(action)), None) => self.action(owner, &table.actions, place, action),
            (Some(Type::ActionProfileMemberId(id)), Some(_)) => reference(owner, "member", *id),
            (Some(Type::ActionProfileGroupId(id)), Some(profile)) if profile.with_selector => {
                reference(owner, "group", *id)
            }
            (Some(Type::ActionProfileActionSet(set)), Some(profile)) if profile.with_selector => {
                self.one_shot(table, profile, set)
            }
            (Some(given), _) => {
                let given = match given {
                    Type::Action(_) => "an action",
                    Type::ActionProfileMemberId(_) => "a member",
                    Type::ActionProfileGroupId(_) => "a group",
                    Type::ActionProfileActionSet(_) => "a one-shot action set",
                };
                let wanted = match profile {
                    None => "a direct table, which takes an action",
                    Some(profile) if profile.with_selector => {
                        "a table with a selector, which takes a member, a group or a one-shot action set"
                    }
                    Some(_) => "an indirect table, which takes a member",
                };
                Err(invalid(format!("'{owner}' is {wanted}; the request gives {given}")))
            }
        }
    }

    /// The action of a member: one that the profile's tables may use in entries.
    pub(super) fn member_action(&self, profile: &ActionProfile, action: &mut Action) -> Checked {
        // Tables that share a profile have the same actions (section 9.2.1), so the first speaks for all.
        let table = profile.tables.first().and_then(|id| self.index.table_by_id(*id));
        let actions = table.map_or(&[][..], |table| &table.actions);
        self.action(&profile.names.name, actions, Place::Entry, action)
    }

    fn action(
        &self,
        owner: &str,
        actions: &[ActionUse],
        place: Place,
        action: &mut Action,
    ) -> Checked {
        let id = action.action_id;
        let known = self.object(Kind::Action, id, self.index.action_by_id(id))?;
        let name = &known.names.name;
        let Some(found) = actions.iter().find(|candidate| candidate.id == id) else {
            return Err(invalid(format!("'{owner}' does not have the action '{name}'")));
        };
        if !place.allows(found.scope) {
            let (scope, place) = (
                found.scope.as_str_name(),
                match place {
                    Place::Entry => "in an entry",
                    Place::Default => "as the default action",
                    Place::Group => "as a group action",
                },
            );
            let text = format!("'{owner}': action '{name}' is {scope} and cannot be used {place}");
            return Err(Refusal::new(Code::PermissionDenied, text));
        }
        let mut seen = vec![false; known.params.len()];
        for given in &mut action.params {
            let place = known.params.iter().position(|param| param.id == given.param_id);
            let Some(place) = place else {
                return Err(invalid(format!("'{name}' has no parameter {}", given.param_id)));
            };
            let param = &known.params[place];
            if std::mem::replace(&mut seen[place], true) {
                return Err(invalid(format!(
                    "'{name}': parameter '{}' is given twice",
                    param.name
                )));
            }
            if given.value.is_empty() && self.profile == super::Profile::Spec {
                return Err(invalid(format!("'{name}': parameter '{}' has no value", param.name)));
            }
            let what = || format!("'{name}': parameter '{}'", param.name);
            self.bits(what, param.width, &mut given.value)?;
        }
        if let Some(missing) = seen.iter().position(|seen| !seen) {
            let param = &known.params[missing].name;
            return Err(invalid(format!("'{name}': parameter '{param}' is missing")));
        }
        action
            .params
            .sort_by_key(|given| known.params.iter().position(|param| param.id == given.param_id));
        Ok(())
    }

    fn one_shot(
        &self,
        table: &Table,
        profile: &ActionProfile,
        set: &mut ActionProfileActionSet,
    ) -> Checked {
        let owner = &table.names.name;
        if let Some(action) = set.group_action.as_mut() {
            self.action(owner, &table.actions, Place::Group, action)?;
        }
        for member in &mut set.action_profile_actions {
            let Some(action) = member.action.as_mut() else {
                return Err(invalid(format!("'{owner}': an action of the set is missing")));
            };
            self.action(owner, &table.actions, Place::Entry, action)?;
            number_to_watch(owner, &mut member.watch_kind)?;
            if let Some(WatchKind::WatchPort(port)) = member.watch_kind.as_mut() {
                self.watch_port(owner, port)?;
            }
        }
        self.overrides(owner, profile, set)?;
        let weights: Vec<i32> =
            set.action_profile_actions.iter().map(|member| member.weight).collect();
        weights_fit(profile, &weights)?;
        let most = profile.max_group_size;
        let size = group_size(profile, &weights);
        if most > 0 && size > i64::from(most) {
            return Err(invalid(format!(
                "'{owner}': the set has size {size}, groups hold at most {most}"
            )));
        }
        Ok(())
    }

    /// A port whose state decides about a member; empty is none (section 9.2.2).
    pub(super) fn watch_port(&self, owner: &str, port: &mut Vec<u8>) -> Checked {
        if port.is_empty() {
            return Ok(());
        }
        self.bits(|| format!("'{owner}': watch port"), 32, port)
            .map_err(|refusal| invalid(refusal.message))
    }

    /// Only what the selector is declared with is offered (section 9.2.3).
    fn overrides(
        &self,
        owner: &str,
        profile: &ActionProfile,
        set: &ActionProfileActionSet,
    ) -> Checked {
        let mode = ActionSelectionMode::try_from(set.action_selection_mode)
            .map_err(|_| invalid(format!("'{owner}': unknown selection mode")))?;
        let size = Override::try_from(set.size_semantics)
            .map_err(|_| invalid(format!("'{owner}': unknown size semantics")))?;
        let declared = match profile.semantics {
            SizeSemantics::SumOfWeights => Override::SumOfWeights,
            SizeSemantics::SumOfMembers { .. } => Override::SumOfMembers,
        };
        let default_size = size == Override::DefaultSizeDeterminedByActionSelector;
        if mode == ActionSelectionMode::Random || !(default_size || size == declared) {
            let text =
                format!("'{owner}': selection mode and size cannot differ from the selector's");
            return Err(Refusal::new(Code::Unimplemented, text));
        }
        Ok(())
    }
}

/// Brings a watch port given in the older numeric field, where 0 is none, into the present one.
#[allow(deprecated, reason = "older clients still use the field")]
fn number_to_watch(owner: &str, watch: &mut Option<WatchKind>) -> Checked {
    if let Some(WatchKind::Watch(number)) = watch {
        *watch = older_watch(owner, *number)?.map(WatchKind::WatchPort);
    }
    Ok(())
}

/// The bytes of a watch port in the older numeric form.
pub(super) fn older_watch(owner: &str, number: i32) -> Checked<Option<Vec<u8>>> {
    match u32::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number) => Ok(Some(value::encode(number.into()))),
        Err(_) => Err(invalid(format!("'{owner}': watch port {number} is negative"))),
    }
}

/// Members and groups have ids above 0.
fn reference(owner: &str, what: &str, id: u32) -> Checked {
    if id == 0 {
        return Err(invalid(format!("'{owner}': {what} id is 0; ids start at 1")));
    }
    Ok(())
}

/// Each weight is allowed by the profile (sections 9.2.2 and 9.2.3).
pub(super) fn weights_fit(profile: &ActionProfile, weights: &[i32]) -> Checked {
    let owner = &profile.names.name;
    for weight in weights {
        if profile.weights_disallowed {
            if *weight != 0 {
                return Err(invalid(format!(
                    "'{owner}' has no weights; leave weight {weight} out"
                )));
            }
            continue;
        }
        if *weight <= 0 {
            return Err(invalid(format!("'{owner}': weight {weight} is not above 0")));
        }
        if let SizeSemantics::SumOfMembers { max_member_weight: most } = profile.semantics
            && most > 0
            && *weight > most
        {
            return Err(invalid(format!(
                "'{owner}': weight {weight} is above {most}, the most of one member"
            )));
        }
    }
    Ok(())
}

/// Size of a group as the profile counts it; without weights every member counts 1.
pub(super) fn group_size(profile: &ActionProfile, weights: &[i32]) -> i64 {
    match profile.semantics {
        SizeSemantics::SumOfWeights if !profile.weights_disallowed => {
            weights.iter().map(|weight| i64::from(*weight)).sum()
        }
        _ => i64::try_from(weights.len()).unwrap_or(i64::MAX),
    }
}
