//! A program's P4Info, checked once and indexed by id and by name.
//! In: a P4Info message or p4c's text (`*.p4info.txtpb`). Out: `Index`, whose objects are found by id, full name, alias
//! or unique suffix of the name. Must not know our own program: it works for any P4Info.

mod check;
mod lookup;

pub use check::P4InfoError;
pub use lookup::LookupError;
pub(crate) use lookup::nearest;

use crate::p4runtime::look::Look;
use crate::p4runtime::proto::p4::config::v1 as config;
use crate::p4runtime::text::{self, TextError};
use std::collections::BTreeMap;

pub use config::action_ref::Scope;
pub use config::counter_spec::Unit as CounterUnit;
pub use config::match_field::MatchType;
pub use config::meter_spec::{Type as MeterType, Unit as MeterUnit};

/// The kinds of objects that have an id; the top byte of the id says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Match-action table.
    Table,
    /// Action.
    Action,
    /// Action profile or selector.
    ActionProfile,
    /// Indexed counter.
    Counter,
    /// Counter of table entries.
    DirectCounter,
    /// Indexed meter.
    Meter,
    /// Meter of table entries.
    DirectMeter,
    /// Register.
    Register,
    /// Digest.
    Digest,
    /// Parser value set.
    ValueSet,
    /// Header of packet-in or packet-out.
    PacketHeader,
    /// Instance of an extern of another architecture.
    Extern,
}

impl Kind {
    /// The kind in words, for messages.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Action => "action",
            Self::ActionProfile => "action profile",
            Self::Counter => "counter",
            Self::DirectCounter => "direct counter",
            Self::Meter => "meter",
            Self::DirectMeter => "direct meter",
            Self::Register => "register",
            Self::Digest => "digest",
            Self::ValueSet => "value set",
            Self::PacketHeader => "packet header",
            Self::Extern => "extern",
        }
    }
}

/// Id and names of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Unique over the program.
    pub id: u32,
    /// Full name, with the controls it stands in.
    pub name: String,
    /// Short name, unique in its kind; may be empty in hand-written P4Info.
    pub alias: String,
}

impl Names {
    /// What a person would call it: the alias, else the last part of the name.
    #[must_use]
    pub fn short(&self) -> &str {
        let last = self.name.rsplit('.').next().unwrap_or(&self.name);
        if self.alias.is_empty() { last } else { &self.alias }
    }
}

/// A value that a controller sets or reads: an action parameter or a field of a packet header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Unique in its action or header.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Bits; 0 for a translated string (any bytes).
    pub width: u32,
    /// How it is printed.
    pub look: Look,
}

/// One field of a table's key or of a value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Unique in its table.
    pub id: u32,
    /// Name of the key.
    pub name: String,
    /// Bits; 0 for a translated string (any bytes, exact or optional only).
    pub width: u32,
    /// How it is printed.
    pub look: Look,
    /// How it is compared; `Unspecified` for a kind of the architecture, which nobody can write.
    pub kind: MatchType,
}

/// An action that a table may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionUse {
    /// The action.
    pub id: u32,
    /// Where the table may use it.
    pub scope: Scope,
}

/// A match-action table.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Id and names.
    pub names: Names,
    /// The key in order.
    pub fields: Vec<Field>,
    /// Its actions.
    pub actions: Vec<ActionUse>,
    /// The default action when it is constant.
    pub const_default: Option<u32>,
    /// Action profile or selector; `None` for a direct table.
    pub profile: Option<u32>,
    /// Its direct counter.
    pub counter: Option<u32>,
    /// Its direct meter.
    pub meter: Option<u32>,
    /// Entries wanted; 0 when the program does not say.
    pub size: i64,
    /// Entries can age.
    pub idle_timeout: bool,
    /// Entries are given by the program for ever.
    pub is_const: bool,
    /// The program gives entries.
    pub has_initial_entries: bool,
}

impl Table {
    /// Whether entries carry a priority above 0: the key has a ternary, range or optional field (section 9.1).
    #[must_use]
    pub fn needs_priority(&self) -> bool {
        self.fields.iter().any(|field| {
            matches!(field.kind, MatchType::Ternary | MatchType::Range | MatchType::Optional)
        })
    }

    /// The field with this id.
    #[must_use]
    pub fn field_by_id(&self, id: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.id == id)
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Result<&Field, LookupError> {
        lookup::member("match field", &self.names.name, name, &self.fields, |field| &field.name)
    }

    /// The field with this name or unique suffix of the name (`dstAddr` for `hdr.ipv4.dstAddr`).
    pub fn field_loosely(&self, name: &str) -> Result<&Field, LookupError> {
        lookup::suffix("match field", &self.names.name, name, &self.fields, |field| &field.name)
    }
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Id and names.
    pub names: Names,
    /// Its parameters in order.
    pub params: Vec<Param>,
}

impl Action {
    /// The parameter with this name.
    pub fn param(&self, name: &str) -> Result<&Param, LookupError> {
        lookup::member("parameter", &self.names.name, name, &self.params, |param| &param.name)
    }
}

/// How a selector counts sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeSemantics {
    /// By weights.
    SumOfWeights,
    /// By members, each of at most this weight (0: any).
    SumOfMembers {
        /// Largest weight of one member; 0 when the program does not say.
        max_member_weight: i32,
    },
}

/// An action profile or selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionProfile {
    /// Id and names.
    pub names: Names,
    /// The tables that use it.
    pub tables: Vec<u32>,
    /// Whether it has groups.
    pub with_selector: bool,
    /// Members (or, over all groups, weights) wanted; 0 when the program does not say.
    pub size: i64,
    /// Most members or weight of a group; 0 when the program does not say.
    pub max_group_size: i32,
    /// How sizes count.
    pub semantics: SizeSemantics,
    /// Every weight must be left out.
    pub weights_disallowed: bool,
}

/// A counter, indexed or direct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Id and names.
    pub names: Names,
    /// What it counts.
    pub unit: CounterUnit,
    /// Cells of an indexed counter; 0 for a direct one.
    pub size: i64,
    /// Table of a direct counter.
    pub table: Option<u32>,
}

/// A meter, indexed or direct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Id and names.
    pub names: Names,
    /// What it measures.
    pub unit: MeterUnit,
    /// The algorithm.
    pub kind: MeterType,
    /// Cells of an indexed meter; 0 for a direct one.
    pub size: i64,
    /// Table of a direct meter.
    pub table: Option<u32>,
}

/// A register array.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// Id and names.
    pub names: Names,
    /// Type of a cell.
    pub cell: config::P4DataTypeSpec,
    /// Number of cells.
    pub size: i64,
}

/// A digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Digest {
    /// Id and names.
    pub names: Names,
    /// Type of one sample.
    pub sample: config::P4DataTypeSpec,
}

/// A parser value set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet {
    /// Id and names.
    pub names: Names,
    /// Fields of a member in order.
    pub fields: Vec<Field>,
    /// Most members.
    pub size: i64,
}

/// The header of packets to or from the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// Id and names; the name is `packet_in` or `packet_out`.
    pub names: Names,
    /// Its fields in order.
    pub fields: Vec<Param>,
}

impl PacketHeader {
    /// The field with this name.
    pub fn field(&self, name: &str) -> Result<&Param, LookupError> {
        lookup::member("metadata", &self.names.name, name, &self.fields, |field| &field.name)
    }
}

/// A program's P4Info, checked and indexed. Cheap to look up, immutable.
#[derive(Clone, Debug, Default)]
pub struct Index {
    info: config::P4Info,
    tables: Vec<Table>,
    actions: Vec<Action>,
    profiles: Vec<ActionProfile>,
    counters: Vec<Counter>,
    direct_counters: Vec<Counter>,
    meters: Vec<Meter>,
    direct_meters: Vec<Meter>,
    registers: Vec<Register>,
    digests: Vec<Digest>,
    value_sets: Vec<ValueSet>,
    headers: Vec<PacketHeader>,
    /// Kind and place in its list of every id.
    by_id: BTreeMap<u32, (Kind, usize)>,
}

/// Why a text is no usable P4Info.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The text is not a P4Info message.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The message contradicts itself.
    #[error(transparent)]
    Info(#[from] P4InfoError),
}

impl Index {
    /// Checks and indexes a P4Info message.
    pub fn new(info: config::P4Info) -> Result<Self, P4InfoError> {
        check::build(info)
    }

    /// Reads p4c's text form. Errors carry line and column, or the object that is wrong.
    pub fn from_text(text: &str) -> Result<Self, ReadError> {
        Ok(Self::new(text::parse("p4.config.v1.P4Info", text)?)?)
    }

    /// The message it was made from.
    #[must_use]
    pub fn info(&self) -> &config::P4Info {
        &self.info
    }

    /// The kind of an id, if the program has it.
    #[must_use]
    pub fn kind(&self, id: u32) -> Option<Kind> {
        self.by_id.get(&id).map(|(kind, _)| *kind)
    }

    fn get<'a, T>(&self, list: &'a [T], kind: Kind, id: u32) -> Option<&'a T> {
        let (found, place) = self.by_id.get(&id)?;
        if *found == kind { list.get(*place) } else { None }
    }
}

impl Index {
    /// Ids of the objects of any kind that a name means, as the finders of each kind understand it.
    ///
    /// # Errors
    /// No kind has it: the nearest names of all kinds; or the first kind for which it is ambiguous.
    pub fn find_any(&self, name: &str) -> Result<Vec<u32>, LookupError> {
        let found = [
            self.table(name).map(|object| object.names.id),
            self.action(name).map(|object| object.names.id),
            self.profile(name).map(|object| object.names.id),
            self.counter(name).map(|object| object.names.id),
            self.direct_counter(name).map(|object| object.names.id),
            self.meter(name).map(|object| object.names.id),
            self.direct_meter(name).map(|object| object.names.id),
            self.register(name).map(|object| object.names.id),
            self.digest(name).map(|object| object.names.id),
            self.value_set(name).map(|object| object.names.id),
            self.header(name).map(|object| object.names.id),
        ];
        lookup::any(name, found.into_iter())
    }
}

macro_rules! finders {
    ($($type:ident $kind:ident $list:ident $by_name:ident $by_id:ident;)*) => {
        impl Index {
            $(
                /// All of them, in the order of P4Info.
                #[must_use]
                pub fn $list(&self) -> &[$type] {
                    &self.$list
                }
                /// The one with this full name, alias or unique suffix of the name.
                pub fn $by_name(&self, name: &str) -> Result<&$type, LookupError> {
                    lookup::object(Kind::$kind, name, &self.$list, |object| &object.names)
                }
                /// The one with this id.
                #[must_use]
                pub fn $by_id(&self, id: u32) -> Option<&$type> {
                    self.get(&self.$list, Kind::$kind, id)
                }
            )*
        }
    };
}

finders! {
    Table Table tables table table_by_id;
    Action Action actions action action_by_id;
    ActionProfile ActionProfile profiles profile profile_by_id;
    Counter Counter counters counter counter_by_id;
    Counter DirectCounter direct_counters direct_counter direct_counter_by_id;
    Meter Meter meters meter meter_by_id;
    Meter DirectMeter direct_meters direct_meter direct_meter_by_id;
    Register Register registers register register_by_id;
    Digest Digest digests digest digest_by_id;
    ValueSet ValueSet value_sets value_set value_set_by_id;
    PacketHeader PacketHeader headers header header_by_id;
}

#[cfg(test)]
mod tests;
