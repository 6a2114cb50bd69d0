//! What a switch holds, in names and in the forms that people write.
//! In: entities that a switch sent, P4Info. Out: plain values that print and become JSON. Must not know transports or how
//! a table is drawn; trusts nothing that the switch says.

mod cells;

pub use cells::{Cell, Count, CounterCell, RegisterCell, is_zero, plain, type_words};

use crate::p4runtime::look;
use crate::p4runtime::matches;
use crate::p4runtime::p4info::{Index, Table};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::table_action::Type as ActionKind;
use crate::p4runtime::proto::p4::v1::{self as p4, Entity, MeterConfig, TableEntry};
use serde_json::{Map, Value, json};
use std::fmt;
use thiserror::Error;

/// Why an answer makes no sense against the P4Info. With a P4Info from a file the likeliest cause is another program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the switch's answer contradicts the P4Info: {what}; check that --p4info is of the program that the switch runs, or leave it out"
)]
pub struct Nonsense {
    /// What is wrong.
    pub what: What,
}

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum What {
    /// Another kind of entity than was asked for, or none.
    #[error("asked for {wanted}, it sent {found}")]
    Kind {
        /// Asked for, in words.
        wanted: &'static str,
        /// Sent, in words.
        found: &'static str,
    },
    /// An entity of another object than was asked for.
    #[error("asked for '{wanted}', it sent an entity of id {found:#010x}")]
    Object {
        /// Name asked for.
        wanted: String,
        /// Id sent.
        found: u32,
    },
    /// An id that the program does not have.
    #[error("{owner} has no {kind} with id {id:#x}")]
    Unknown {
        /// Where it occurred.
        owner: String,
        /// Kind in words.
        kind: &'static str,
        /// The id.
        id: u32,
    },
    /// A match that does not fit its field.
    #[error("an entry of '{table}' has a match on '{field}' that does not fit its kind or width")]
    Match {
        /// The table.
        table: String,
        /// The field.
        field: String,
    },
    /// An index that is missing, negative or beyond the array.
    #[error("'{array}' has {size} cells and it sent index {}", .index.map_or("none".to_owned(), |index| index.to_string()))]
    Index {
        /// The array.
        array: String,
        /// Its cells.
        size: i64,
        /// As sent.
        index: Option<i64>,
    },
    /// A cell whose value does not have the type of the P4Info.
    #[error("'{owner}' holds {wanted}, and it sent something else")]
    Data {
        /// The register.
        owner: String,
        /// Its type in words.
        wanted: String,
    },
}

impl From<What> for Nonsense {
    fn from(what: What) -> Self {
        Self { what }
    }
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Full name.
    pub name: String,
    /// Short name.
    pub alias: String,
    /// Parameters and their values, in the order of the action.
    pub params: Vec<(String, String)>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let params: Vec<String> =
            self.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}({})", self.alias, params.join(", "))
    }
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Does {
    /// Nothing is said.
    Nothing,
    /// One action.
    Action(Call),
    /// A member of the table's action profile.
    Member(u32),
    /// A group of the table's selector.
    Group(u32),
    /// Actions with weights, written in one go.
    Set(Vec<(Call, i32)>),
}

impl fmt::Display for Does {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::Action(call) => write!(f, "{call}"),
            Self::Member(id) => write!(f, "member {id}"),
            Self::Group(id) => write!(f, "group {id}"),
            Self::Set(calls) => {
                let calls: Vec<String> =
                    calls.iter().map(|(call, weight)| format!("{weight}x {call}")).collect();
                f.write_str(&calls.join(" | "))
            }
        }
    }
}

/// A table entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Full name of its table.
    pub table: String,
    /// The entry for packets that match nothing.
    pub is_default: bool,
    /// Given by the program for ever.
    pub is_const: bool,
    /// Larger wins; 0 where the table has none.
    pub priority: i32,
    /// Fields that it does not leave open, in the table's order, as a person would write them.
    pub key: Vec<(String, String)>,
    /// What it does.
    pub does: Does,
    /// Its direct counter, if it was read.
    pub counter: Option<Count>,
    /// Its direct meter, if it was read and set.
    pub meter: Option<MeterConfig>,
    /// Nanoseconds without a hit after which the controller is told; 0 = never.
    pub idle_timeout_ns: i64,
    /// Nanoseconds since the last hit, if it was read.
    pub since_hit_ns: Option<i64>,
    /// The controller's mark: text if it is some, else hexadecimal.
    pub metadata: Option<String>,
}

impl Entry {
    /// Reads an entry of a table.
    ///
    /// # Errors
    /// Says what contradicts the P4Info.
    pub fn new(index: &Index, table: &Table, entry: &TableEntry) -> Result<Self, Nonsense> {
        let owner = &table.names.name;
        if entry.table_id != table.names.id {
            return Err(What::Object { wanted: owner.clone(), found: entry.table_id }.into());
        }
        if let Some(held) = entry.r#match.iter().find(|m| table.field_by_id(m.field_id).is_none()) {
            let (owner, id) = (format!("table '{owner}'"), held.field_id);
            return Err(What::Unknown { owner, kind: "match field", id }.into());
        }
        let mut key = Vec::new();
        for field in &table.fields {
            let Some(held) = entry.r#match.iter().find(|held| held.field_id == field.id) else {
                continue;
            };
            let form = matches::of_message(field, held)
                .ok_or_else(|| What::Match { table: owner.clone(), field: field.name.clone() })?;
            key.push((field.name.clone(), matches::show(field, &form)));
        }
        let mark = &entry.metadata;
        Ok(Self {
            table: owner.clone(),
            is_default: entry.is_default_action,
            is_const: entry.is_const,
            priority: entry.priority,
            key,
            does: does(index, entry)?,
            counter: entry.counter_data.as_ref().map(Count::from),
            meter: entry.meter_config,
            idle_timeout_ns: entry.idle_timeout_ns,
            since_hit_ns: entry.time_since_last_hit.as_ref().map(|idle| idle.elapsed_ns),
            metadata: (!mark.is_empty()).then(|| look::print(look::Look::Text, 0, mark)),
        })
    }

    /// The entry as JSON; the keys are documented in docs/cli.md.
    #[must_use]
    pub fn document(&self) -> Value {
        let mut map = Map::new();
        map.insert("table".to_owned(), json!(self.table));
        map.insert("default".to_owned(), json!(self.is_default));
        map.insert("const".to_owned(), json!(self.is_const));
        map.insert("priority".to_owned(), json!(self.priority));
        map.insert("match".to_owned(), pairs(&self.key));
        map.insert("action".to_owned(), does_document(&self.does));
        if let Some(count) = &self.counter {
            map.insert("counter".to_owned(), count.document());
        }
        if let Some(meter) = &self.meter {
            let rates = json!({
                "cir": meter.cir, "cburst": meter.cburst, "pir": meter.pir, "pburst": meter.pburst
            });
            map.insert("meter".to_owned(), rates);
        }
        if self.idle_timeout_ns != 0 {
            map.insert("idle_timeout_ns".to_owned(), json!(self.idle_timeout_ns));
        }
        if let Some(elapsed) = self.since_hit_ns {
            map.insert("since_hit_ns".to_owned(), json!(elapsed));
        }
        if let Some(metadata) = &self.metadata {
            map.insert("metadata".to_owned(), json!(metadata));
        }
        Value::Object(map)
    }
}

fn pairs(list: &[(String, String)]) -> Value {
    Value::Object(list.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

fn call_document(call: &Call) -> Value {
    json!({ "name": call.name, "params": pairs(&call.params) })
}

fn does_document(does: &Does) -> Value {
    match does {
        Does::Nothing => Value::Null,
        Does::Action(call) => call_document(call),
        Does::Member(id) => json!({ "member": id }),
        Does::Group(id) => json!({ "group": id }),
        Does::Set(calls) => {
            let set: Vec<Value> = calls
                .iter()
                .map(|(call, weight)| json!({ "action": call_document(call), "weight": weight }))
                .collect();
            json!({ "set": set })
        }
    }
}

fn does(index: &Index, entry: &TableEntry) -> Result<Does, Nonsense> {
    let Some(kind) = entry.action.as_ref().and_then(|action| action.r#type.as_ref()) else {
        return Ok(Does::Nothing);
    };
    Ok(match kind {
        ActionKind::Action(action) => Does::Action(call(index, action)?),
        ActionKind::ActionProfileMemberId(id) => Does::Member(*id),
        ActionKind::ActionProfileGroupId(id) => Does::Group(*id),
        ActionKind::ActionProfileActionSet(set) => {
            let mut calls = Vec::new();
            for action in &set.action_profile_actions {
                calls.push((
                    call(index, &action.action.clone().unwrap_or_default())?,
                    action.weight,
                ));
            }
            Does::Set(calls)
        }
    })
}

/// An action in names.
fn call(index: &Index, sent: &p4::Action) -> Result<Call, Nonsense> {
    let id = sent.action_id;
    let action = index.action_by_id(id).ok_or_else(|| What::Unknown {
        owner: "the program".to_owned(),
        kind: "action",
        id,
    })?;
    let known = |id: u32| action.params.iter().any(|param| param.id == id);
    if let Some(stranger) = sent.params.iter().find(|param| !known(param.param_id)) {
        let (owner, id) = (format!("action '{}'", action.names.name), stranger.param_id);
        return Err(What::Unknown { owner, kind: "parameter", id }.into());
    }
    let params = action.params.iter().filter_map(|param| {
        let held = sent.params.iter().find(|held| held.param_id == param.id)?;
        Some((param.name.clone(), look::print(param.look, param.width, &held.value)))
    });
    let (name, alias) = (action.names.name.clone(), action.names.short().to_owned());
    Ok(Call { name, alias, params: params.collect() })
}

/// The kind of an entity in words.
#[must_use]
pub const fn words(entity: &Entity) -> &'static str {
    match &entity.entity {
        None => "nothing",
        Some(Kinds::ExternEntry(_)) => "an extern",
        Some(Kinds::TableEntry(_)) => "a table entry",
        Some(Kinds::ActionProfileMember(_)) => "a profile member",
        Some(Kinds::ActionProfileGroup(_)) => "a profile group",
        Some(Kinds::MeterEntry(_)) => "a meter cell",
        Some(Kinds::DirectMeterEntry(_)) => "a direct meter",
        Some(Kinds::CounterEntry(_)) => "a counter cell",
        Some(Kinds::DirectCounterEntry(_)) => "a direct counter",
        Some(Kinds::PacketReplicationEngineEntry(_)) => "a group or session",
        Some(Kinds::ValueSetEntry(_)) => "a value set",
        Some(Kinds::RegisterEntry(_)) => "a register cell",
        Some(Kinds::DigestEntry(_)) => "a digest",
    }
}

/// The table entry in an answer.
///
/// # Errors
/// It is another entity.
pub fn table_entry(entity: &Entity) -> Result<&TableEntry, Nonsense> {
    match &entity.entity {
        Some(Kinds::TableEntry(entry)) => Ok(entry),
        _ => Err(What::Kind { wanted: "table entries", found: words(entity) }.into()),
    }
}

#[cfg(test)]
mod tests;
