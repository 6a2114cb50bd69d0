//! One table of the program, resolved: ids instead of names, widths checked.
//!
//! In: a table's names as we use them ([`Spec`]) and the program's P4Info. Out: entries made of numbers, and numbers
//! taken from entries. Must not know what any table is for: the files beside it do.

use crate::p4runtime::p4info::{Index, LookupError, MatchType, Table as TableInfo};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::field_match::FieldMatchType;
use crate::p4runtime::value;

/// How a key field is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask.
    Ternary,
}

/// A field or parameter: its name in the P4 source and the bits that our values need.
pub type Slot = (&'static str, u32);

/// What we expect of a table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Alias of the table in P4Info.
    pub table: &'static str,
    /// Key fields with their kinds, in the order in which this module passes values.
    pub keys: &'static [(&'static str, MatchKind, u32)],
    /// Actions with their parameters, in the order in which this module passes values.
    pub actions: &'static [(&'static str, &'static [Slot])],
}

/// Why the program is not the one that this controller was written for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// A name that P4Info does not have, or has twice.
    #[error("{what} '{name}' is not in the program's P4Info ({detail}); load the program in p4/")]
    Missing {
        /// Table, field, action, parameter, counter.
        what: &'static str,
        /// The name looked for.
        name: String,
        /// What the look-up said.
        detail: String,
    },
    /// A field that is matched in another way.
    #[error("key field '{field}' of table '{table}' is matched as {found}, {wanted:?} is needed")]
    Kind {
        /// The table.
        table: String,
        /// The field.
        field: String,
        /// What P4Info says.
        found: String,
        /// What we use.
        wanted: MatchKind,
    },
    /// A field or parameter too narrow for our values.
    #[error("'{name}' of table '{table}' has {found} bits, {wanted} are needed")]
    Narrow {
        /// The table.
        table: String,
        /// Field or parameter.
        name: String,
        /// Bits in P4Info.
        found: u32,
        /// Bits needed.
        wanted: u32,
    },
    /// A program compiled for a target that this controller does not know.
    #[error(
        "the program was compiled for '{found}'; v1model and tna are known: load one of those in p4/build"
    )]
    Architecture {
        /// What P4Info says.
        found: String,
    },
    /// A table whose entries should name members and groups, but has no action profile.
    #[error("table '{table}' has no action profile; it is needed for equal-cost groups")]
    NoProfile {
        /// The table.
        table: String,
    },
}

/// Why an entry is not one that this program's tables can hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// An entry of another table.
    #[error("the entry belongs to table {found}, not to '{table}' ({wanted})")]
    Table {
        /// The table asked.
        table: &'static str,
        /// Its id.
        wanted: u32,
        /// The entry's table id.
        found: u32,
    },
    /// An action that the table's file does not use.
    #[error("table '{table}' has no action with id {action} that this controller uses")]
    Action {
        /// The table.
        table: &'static str,
        /// The action id.
        action: u32,
    },
    /// A field or parameter that is missing, of another kind, or beyond our type.
    #[error("'{name}' of an entry of table '{table}' is missing or out of range")]
    Value {
        /// The table.
        table: &'static str,
        /// Field or parameter.
        name: &'static str,
    },
}

/// One key value, in the order of [`Spec::keys`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// For an exact field; for a ternary field all bits count.
    Is(u128),
    /// Value and prefix length.
    Prefix(u128, i32),
    /// Ternary don't-care.
    Any,
}

#[derive(Clone, Debug)]
struct FieldRef {
    name: &'static str,
    id: u32,
    kind: MatchKind,
    bits: u32,
}

#[derive(Clone, Debug)]
struct ActionRef {
    id: u32,
    params: Vec<(&'static str, u32)>,
}

/// A resolved table.
#[derive(Clone, Debug)]
pub struct Schema {
    name: &'static str,
    id: u32,
    profile: Option<u32>,
    size: u64,
    fields: Vec<FieldRef>,
    actions: Vec<ActionRef>,
}

impl Schema {
    /// Finds a table and everything of it that `spec` names.
    ///
    /// # Errors
    /// [`ProgramError`] names the first thing that is missing, of another kind or too narrow.
    pub fn resolve(index: &Index, spec: &Spec) -> Result<Self, ProgramError> {
        let table = index.table(spec.table).map_err(|e| missing("table", spec.table, &e))?;
        let fields =
            spec.keys.iter().map(|key| field(table, spec.table, key)).collect::<Result<_, _>>()?;
        let actions = spec
            .actions
            .iter()
            .map(|(name, params)| action(index, spec.table, name, params))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            name: spec.table,
            id: table.names.id,
            profile: table.profile,
            size: u64::try_from(table.size).unwrap_or(0),
            fields,
            actions,
        })
    }

    /// The table's id in P4Info.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The table's alias.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Entries that the table is declared to hold.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The id of the table's action profile.
    ///
    /// # Errors
    /// [`ProgramError::NoProfile`] for a direct table.
    pub fn profile(&self) -> Result<u32, ProgramError> {
        self.profile.ok_or_else(|| ProgramError::NoProfile { table: self.name.to_owned() })
    }

    /// An action with its arguments, in the order of [`Spec::actions`].
    #[must_use]
    pub fn action(&self, action: usize, args: &[u128]) -> proto::Action {
        let action = &self.actions[action];
        let params = action.params.iter().zip(args);
        proto::Action {
            action_id: action.id,
            params: params
                .map(|((_, id), arg)| proto::action::Param {
                    param_id: *id,
                    value: value::encode(*arg),
                })
                .collect(),
        }
    }

    /// An entry without action.
    #[must_use]
    pub fn key(&self, parts: &[Part], priority: i32) -> proto::TableEntry {
        let matches = self.fields.iter().zip(parts).filter_map(|(field, part)| {
            Some(proto::FieldMatch {
                field_id: field.id,
                field_match_type: Some(field_match(field, *part)?),
            })
        });
        proto::TableEntry {
            table_id: self.id,
            r#match: matches.collect(),
            priority,
            ..Default::default()
        }
    }

    /// An entry with one of the table's own actions.
    #[must_use]
    pub fn entry(
        &self,
        parts: &[Part],
        priority: i32,
        action: usize,
        args: &[u128],
    ) -> proto::TableEntry {
        use proto::table_action::Type;
        let action = proto::TableAction { r#type: Some(Type::Action(self.action(action, args))) };
        proto::TableEntry { action: Some(action), ..self.key(parts, priority) }
    }

    /// The key of an entry, in the order of [`Spec::keys`].
    ///
    /// # Errors
    /// [`EntryError`] for another table, a missing exact field, a mask that is not all ones, a value beyond 128 bits.
    pub fn parts(&self, entry: &proto::TableEntry) -> Result<Vec<Part>, EntryError> {
        if entry.table_id != self.id {
            return Err(EntryError::Table {
                table: self.name,
                wanted: self.id,
                found: entry.table_id,
            });
        }
        self.fields.iter().map(|field| self.part(field, entry)).collect()
    }

    fn part(&self, field: &FieldRef, entry: &proto::TableEntry) -> Result<Part, EntryError> {
        let wrong = || EntryError::Value { table: self.name, name: field.name };
        let found = entry.r#match.iter().find(|m| m.field_id == field.id);
        let number = |bytes: &[u8]| value::decode(bytes).ok_or_else(wrong);
        match (field.kind, found.and_then(|m| m.field_match_type.as_ref())) {
            (MatchKind::Exact, Some(FieldMatchType::Exact(e))) => Ok(Part::Is(number(&e.value)?)),
            (MatchKind::Ternary | MatchKind::Lpm, None) => Ok(Part::Any),
            (MatchKind::Ternary, Some(FieldMatchType::Ternary(t)))
                if number(&t.mask)? == ones(field.bits) =>
            {
                Ok(Part::Is(number(&t.value)?))
            }
            (MatchKind::Lpm, Some(FieldMatchType::Lpm(l))) => {
                Ok(Part::Prefix(number(&l.value)?, l.prefix_len))
            }
            _ => Err(wrong()),
        }
    }

    /// Which action an entry has, and its arguments in the order of [`Spec::actions`].
    ///
    /// # Errors
    /// [`EntryError`] for an action that is not in the specification or has no such parameter.
    pub fn arguments(&self, action: &proto::Action) -> Result<(usize, Vec<u128>), EntryError> {
        let place = self.actions.iter().position(|known| known.id == action.action_id);
        let place =
            place.ok_or(EntryError::Action { table: self.name, action: action.action_id })?;
        let args = self.actions[place].params.iter().map(|(name, id)| {
            let param = action.params.iter().find(|param| param.param_id == *id);
            param
                .and_then(|param| value::decode(&param.value))
                .ok_or(EntryError::Value { table: self.name, name })
        });
        Ok((place, args.collect::<Result<_, _>>()?))
    }

    /// As [`Schema::arguments`], for an entry of a direct table.
    ///
    /// # Errors
    /// [`EntryError`] also when the entry names a member or group, or nothing.
    pub fn own_action(&self, entry: &proto::TableEntry) -> Result<(usize, Vec<u128>), EntryError> {
        use proto::table_action::Type;
        match entry.action.as_ref().and_then(|action| action.r#type.as_ref()) {
            Some(Type::Action(action)) => self.arguments(action),
            _ => Err(EntryError::Action { table: self.name, action: 0 }),
        }
    }

    /// The error for a value that does not fit the table file's type.
    #[must_use]
    pub const fn wrong(&self, name: &'static str) -> EntryError {
        EntryError::Value { table: self.name, name }
    }
}

const fn ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

fn field_match(field: &FieldRef, part: Part) -> Option<FieldMatchType> {
    use proto::field_match::{Exact, Lpm, Ternary};
    match (field.kind, part) {
        (_, Part::Any) => None,
        (MatchKind::Exact, Part::Is(v) | Part::Prefix(v, _)) => {
            Some(FieldMatchType::Exact(Exact { value: value::encode(v) }))
        }
        (MatchKind::Ternary, Part::Is(v) | Part::Prefix(v, _)) => {
            let mask = value::encode(ones(field.bits));
            Some(FieldMatchType::Ternary(Ternary { value: value::encode(v), mask }))
        }
        (MatchKind::Lpm, Part::Prefix(_, 0)) => None,
        (MatchKind::Lpm, Part::Prefix(v, prefix_len)) => {
            Some(FieldMatchType::Lpm(Lpm { value: value::encode(v), prefix_len }))
        }
        (MatchKind::Lpm, Part::Is(v)) => {
            let prefix_len = i32::try_from(field.bits).unwrap_or(i32::MAX);
            Some(FieldMatchType::Lpm(Lpm { value: value::encode(v), prefix_len }))
        }
    }
}

fn missing(what: &'static str, name: &str, error: &LookupError) -> ProgramError {
    ProgramError::Missing { what, name: name.to_owned(), detail: error.to_string() }
}

fn field(
    table: &TableInfo,
    table_name: &'static str,
    (name, kind, bits): &(&'static str, MatchKind, u32),
) -> Result<FieldRef, ProgramError> {
    let field = table.field(name).map_err(|e| missing("key field", name, &e))?;
    let wanted = match kind {
        MatchKind::Exact => MatchType::Exact,
        MatchKind::Lpm => MatchType::Lpm,
        MatchKind::Ternary => MatchType::Ternary,
    };
    if field.kind != wanted {
        return Err(ProgramError::Kind {
            table: table_name.to_owned(),
            field: (*name).to_owned(),
            found: field.kind.as_str_name().to_owned(),
            wanted: *kind,
        });
    }
    wide_enough(table_name, name, field.width, *bits)?;
    Ok(FieldRef { name, id: field.id, kind: *kind, bits: field.width })
}

fn action(
    index: &Index,
    table: &'static str,
    name: &'static str,
    params: &[Slot],
) -> Result<ActionRef, ProgramError> {
    let action = index.action(name).map_err(|e| missing("action", name, &e))?;
    let params = params.iter().map(|(param, bits)| {
        let found = action.param(param).map_err(|e| missing("parameter", param, &e))?;
        wide_enough(table, param, found.width, *bits)?;
        Ok((*param, found.id))
    });
    Ok(ActionRef { id: action.names.id, params: params.collect::<Result<_, _>>()? })
}

fn wide_enough(table: &str, name: &str, found: u32, wanted: u32) -> Result<(), ProgramError> {
    if found < wanted {
        return Err(ProgramError::Narrow {
            table: table.to_owned(),
            name: name.to_owned(),
            found,
            wanted,
        });
    }
    Ok(())
}
