//! Cells of registers and counters. In: entities of an array, P4Info. Out: index and value. Must not know tables.

use super::{Nonsense, What, words};
use crate::p4runtime::look::{self, Look};
use crate::p4runtime::p4info::{Counter, Index, Register};
use crate::p4runtime::proto::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as Bits;
use crate::p4runtime::proto::p4::config::v1::p4_data_type_spec::TypeSpec;
use crate::p4runtime::proto::p4::config::v1::p4_new_type_spec::Representation;
use crate::p4runtime::proto::p4::config::v1::{
    P4BitstringLikeTypeSpec, P4DataTypeSpec, P4TypeInfo,
};
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::proto::p4::v1::{CounterData, Entity, P4Data};
use crate::p4runtime::value;
use serde_json::{Map, Value, json};

/// Deepest nesting of a cell's type that is followed; P4 programs need two or three.
const DEPTH_MAX: usize = 16;

/// Packets and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Count {
    /// Packets.
    pub packets: i64,
    /// Bytes.
    pub bytes: i64,
}

impl From<&CounterData> for Count {
    fn from(data: &CounterData) -> Self {
        Self { packets: data.packet_count, bytes: data.byte_count }
    }
}

impl Count {
    /// As JSON.
    #[must_use]
    pub fn document(&self) -> Value {
        json!({ "packets": self.packets, "bytes": self.bytes })
    }
}

/// A cell of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<T> {
    /// Place in the array, from 0.
    pub index: i64,
    /// What it holds.
    pub value: T,
}

/// A cell of a register: number, truth value, text, list or members by name.
pub type RegisterCell = Cell<Value>;
/// A cell of a counter.
pub type CounterCell = Cell<Count>;

/// The index of a cell, which must lie in the array.
fn place(array: &str, size: i64, index: Option<i64>) -> Result<i64, Nonsense> {
    let fine = index.filter(|index| (0..size).contains(index));
    fine.ok_or_else(|| What::Index { array: array.to_owned(), size, index }.into())
}

impl CounterCell {
    /// A cell of a counter.
    ///
    /// # Errors
    /// Says what contradicts the P4Info.
    pub fn of_counter(counter: &Counter, entity: &Entity) -> Result<Self, Nonsense> {
        let Some(Kinds::CounterEntry(entry)) = &entity.entity else {
            return Err(What::Kind { wanted: "counter cells", found: words(entity) }.into());
        };
        let name = &counter.names.name;
        if entry.counter_id != counter.names.id {
            return Err(What::Object { wanted: name.clone(), found: entry.counter_id }.into());
        }
        let index = entry.index.as_ref().map(|index| index.index);
        let value = entry.data.as_ref().map(Count::from).unwrap_or_default();
        Ok(Self { index: place(name, counter.size, index)?, value })
    }
}

impl RegisterCell {
    /// A cell of a register.
    ///
    /// # Errors
    /// Says what contradicts the P4Info.
    pub fn of_register(
        index: &Index,
        register: &Register,
        entity: &Entity,
    ) -> Result<Self, Nonsense> {
        let Some(Kinds::RegisterEntry(entry)) = &entity.entity else {
            return Err(What::Kind { wanted: "register cells", found: words(entity) }.into());
        };
        let name = &register.names.name;
        if entry.register_id != register.names.id {
            return Err(What::Object { wanted: name.clone(), found: entry.register_id }.into());
        }
        let at = place(name, register.size, entry.index.as_ref().map(|index| index.index))?;
        let types = index.info().type_info.as_ref();
        let shown = entry.data.as_ref().and_then(|data| data_of(types, &register.cell, data, 0));
        let value = shown.ok_or_else(|| {
            let wanted = type_words(&register.cell);
            What::Data { owner: name.clone(), wanted }
        })?;
        Ok(Self { index: at, value })
    }
}

/// A value of a type; `None` if it has another type.
fn data_of(
    types: Option<&P4TypeInfo>,
    spec: &P4DataTypeSpec,
    data: &P4Data,
    depth: usize,
) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let inner = |spec: &P4DataTypeSpec, data: &P4Data| data_of(types, spec, data, depth + 1);
    match (spec.type_spec.as_ref()?, data.data.as_ref()?) {
        (TypeSpec::Bitstring(bits), Data::Bitstring(bytes)) => bit_string(bits, bytes),
        (TypeSpec::Bitstring(_), Data::Varbit(varbit)) => Some(json!(look::hex(&varbit.bitstring))),
        (TypeSpec::Bool(_), Data::Bool(truth)) => Some(json!(truth)),
        (TypeSpec::Tuple(tuple), Data::Tuple(held))
            if tuple.members.len() == held.members.len() =>
        {
            let members = tuple.members.iter().zip(&held.members);
            members.map(|(spec, data)| inner(spec, data)).collect()
        }
        (TypeSpec::Struct(named), Data::Struct(held)) => {
            let spec = types?.structs.get(&named.name)?;
            if spec.members.len() != held.members.len() {
                return None;
            }
            let mut map = Map::new();
            for (member, data) in spec.members.iter().zip(&held.members) {
                let value = inner(member.type_spec.as_ref()?, data)?;
                map.insert(member.name.clone(), value);
            }
            Some(Value::Object(map))
        }
        (TypeSpec::Enum(_), Data::Enum(name)) => Some(json!(name)),
        (TypeSpec::Error(_), Data::Error(name)) => Some(json!(name)),
        (TypeSpec::SerializableEnum(named), Data::EnumValue(bytes)) => {
            let members = &types?.serializable_enums.get(&named.name)?.members;
            let known = members.iter().find(|member| value::same(&member.value, bytes));
            Some(known.map_or_else(|| json!(look::hex(bytes)), |member| json!(member.name)))
        }
        (TypeSpec::NewType(named), _) => {
            match types?.new_types.get(&named.name)?.representation.as_ref()? {
                Representation::OriginalType(spec) => inner(spec, data),
                Representation::TranslatedType(_) => match data.data.as_ref()? {
                    Data::Bitstring(bytes) => Some(json!(look::hex(bytes))),
                    _ => None,
                },
            }
        }
        _ => None,
    }
}

/// A bit string in the look of its annotations; a number where it is plain and has at most 64 bits.
fn bit_string(spec: &P4BitstringLikeTypeSpec, bytes: &[u8]) -> Option<Value> {
    let (width, signed) = match spec.type_spec.as_ref()? {
        Bits::Bit(bit) => (bit.bitwidth, false),
        Bits::Int(int) => (int.bitwidth, true),
        Bits::Varbit(varbit) => (varbit.max_bitwidth, false),
    };
    let width = u32::try_from(width).ok()?;
    if signed {
        return signed_number(width, bytes);
    }
    if bytes.is_empty() || value::bit_length(bytes) > width as usize {
        return None;
    }
    match Look::of("", width, &spec.annotations) {
        Look::Number => {
            let number = value::decode_u64(bytes).filter(|_| width <= 64);
            Some(number.map_or_else(|| json!(look::hex(bytes)), |number| json!(number)))
        }
        look => Some(json!(look::print(look, width, bytes))),
    }
}

fn signed_number(width: u32, bytes: &[u8]) -> Option<Value> {
    if bytes.is_empty() || value::bit_length_signed(bytes) > width as usize {
        return None;
    }
    let short = value::canonical_signed(bytes);
    if width > 64 || short.len() > 8 {
        return Some(json!(look::hex(bytes)));
    }
    let start = if short[0] & 0x80 == 0 { 0_i64 } else { -1 };
    Some(json!(short.iter().fold(start, |number, byte| number << 8 | i64::from(*byte))))
}

/// A type as in P4: `bit<32>`, `struct Flow`.
#[must_use]
pub fn type_words(spec: &P4DataTypeSpec) -> String {
    match spec.type_spec.as_ref() {
        Some(TypeSpec::Bitstring(bits)) => match bits.type_spec.as_ref() {
            Some(Bits::Bit(bit)) => format!("bit<{}>", bit.bitwidth),
            Some(Bits::Int(int)) => format!("int<{}>", int.bitwidth),
            Some(Bits::Varbit(varbit)) => format!("varbit<{}>", varbit.max_bitwidth),
            None => "bits".to_owned(),
        },
        Some(TypeSpec::Bool(_)) => "bool".to_owned(),
        Some(TypeSpec::Tuple(tuple)) => {
            let members: Vec<String> = tuple.members.iter().map(type_words).collect();
            format!("tuple<{}>", members.join(", "))
        }
        Some(TypeSpec::Struct(named)) => format!("struct {}", named.name),
        Some(TypeSpec::Header(named)) => format!("header {}", named.name),
        Some(TypeSpec::HeaderUnion(named)) => format!("header_union {}", named.name),
        Some(TypeSpec::Enum(named) | TypeSpec::SerializableEnum(named)) => {
            format!("enum {}", named.name)
        }
        Some(TypeSpec::Error(_)) => "error".to_owned(),
        Some(TypeSpec::NewType(named)) => named.name.clone(),
        Some(TypeSpec::HeaderStack(_) | TypeSpec::HeaderUnionStack(_)) => "header stack".to_owned(),
        None => "?".to_owned(),
    }
}

/// Whether a cell holds only zeros.
#[must_use]
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_u64() == Some(0),
        // Looks print zero as 0x0, 0.0.0.0, 00:00:00:00:00:00 or ::
        Value::String(text) => text.chars().all(|c| matches!(c, '0' | 'x' | '.' | ':')),
        Value::Array(list) => list.iter().all(is_zero),
        Value::Object(map) => map.values().all(is_zero),
    }
}

/// A cell in one line, for tables.
#[must_use]
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            format!("({})", list.iter().map(plain).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) => {
            let members: Vec<String> =
                map.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}
