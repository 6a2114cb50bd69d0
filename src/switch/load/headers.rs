//! Header types, instances, stacks and unions → the layout of the packet header vector. In: JSON. Out: [`Layout`]
//! without constants and temporaries.

use crate::switch::{
    load::{
        error::LoadError,
        read::{Object, Read},
    },
    phv::{
        Field, FieldRef, Header, HeaderNo, Layout, Stack, Union, UnionNo, UnionStack, VarBit,
        WireField,
    },
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Widest field. v1model itself has no limit; 2^14 bits hold any header that fits a jumbo frame's first kilobytes.
pub const MAX_FIELD_BITS: u32 = 16_384;
/// Most slots of fields in a program: half a megabyte per packet in flight.
pub const MAX_FIELD_SLOTS: u32 = 65_536;
/// Largest varbit field when the JSON names no `max_length`: what an IPv4 header can have.
const DEFAULT_VARBIT_BITS: u32 = 320;

struct TypeField {
    name: String,
    width: u32,
    signed: bool,
}

struct HeaderType {
    fields: Vec<TypeField>,
    varbit: Option<usize>,
}

/// Header types and unions by name, for references.
#[derive(Default)]
struct Types<'a> {
    headers: BTreeMap<&'a str, HeaderType>,
    unions: BTreeMap<&'a str, Vec<(String, String)>>,
}

fn insert_new<'a, T>(
    map: &mut BTreeMap<&'a str, T>,
    object: &Object<'a>,
    kind: &'static str,
    value: T,
) -> Read<()> {
    let name = object.text("name")?;
    if map.insert(name, value).is_some() {
        let place = object.place.clone();
        return Err(LoadError::Duplicate { place, kind, name: name.into() });
    }
    Ok(())
}

fn header_type(object: &Object<'_>) -> Read<HeaderType> {
    let mut fields = Vec::new();
    let mut varbit = None;
    for field in object.list("fields")? {
        let name = object.item_text(field, 0, "fields")?;
        let width = field.get(1).unwrap_or(&Value::Null);
        if fields.iter().any(|f: &TypeField| f.name == name) {
            let place = object.place.clone();
            return Err(LoadError::Duplicate { place, kind: "field", name: name.into() });
        }
        let signed = match field.get(2) {
            None => false,
            Some(flag) => flag
                .as_bool()
                // p4c writes 0 for `bool` fields.
                .or(flag.as_u64().map(|n| n != 0))
                .ok_or_else(|| object.wrong("fields", "[name, width, signed]", field))?,
        };
        if field.get(3).and_then(Value::as_bool) == Some(true) {
            return Err(object.unsupported("saturating field", name));
        }
        let width = if width.as_str() == Some("*") {
            if varbit.replace(fields.len()).is_some() {
                let place = object.place.clone();
                return Err(LoadError::SecondVarbit { place, name: name.into() });
            }
            0
        } else {
            width_of(object, name, width)?
        };
        fields.push(TypeField { name: name.into(), width, signed });
    }
    if let Some(index) = varbit {
        if object.optional("length_exp").is_some() {
            return Err(object.unsupported("attribute", "length_exp"));
        }
        fields[index].width = varbit_width(object, &fields)?;
    }
    Ok(HeaderType { fields, varbit })
}

fn width_of(object: &Object<'_>, name: &str, width: &Value) -> Read<u32> {
    let bits =
        width.as_i64().ok_or_else(|| object.wrong("fields", "[name, width, signed]", width))?;
    u32::try_from(bits).ok().filter(|w| (1..=MAX_FIELD_BITS).contains(w)).ok_or_else(|| {
        LoadError::Width {
            place: object.place.clone(),
            name: name.into(),
            width: bits,
            limit: MAX_FIELD_BITS,
        }
    })
}

fn varbit_width(object: &Object<'_>, fields: &[TypeField]) -> Read<u32> {
    if object.optional("max_length").is_none() {
        return Ok(DEFAULT_VARBIT_BITS);
    }
    // `max_length` counts the whole header in bytes.
    let fixed: u64 = fields.iter().map(|f| u64::from(f.width)).sum();
    let bits = u64::from(object.number("max_length")?) * 8;
    object.at_most("bits of the variable-length field", bits, u64::from(MAX_FIELD_BITS))?;
    // At least a byte, so that it has a slot.
    Ok((u32::try_from(bits.saturating_sub(fixed)).unwrap_or(0) / 8 * 8).max(8))
}

/// Hands out slots.
#[derive(Default)]
struct Slots {
    next: u32,
}

impl Slots {
    fn take(&mut self, object: &Object<'_>, count: u32) -> Read<u32> {
        let first = self.next;
        let end = u64::from(first) + u64::from(count);
        object.at_most("64-bit slots of headers and metadata", end, u64::from(MAX_FIELD_SLOTS))?;
        self.next += count;
        Ok(first)
    }
}

/// Ids of the JSON → positions.
#[derive(Default)]
struct Ids {
    headers: BTreeMap<u32, HeaderNo>,
    unions: BTreeMap<u32, UnionNo>,
}

/// Builds the layout up to the fields.
pub fn layout(root: &Object<'_>) -> Read<Layout> {
    let types = types(root)?;
    let mut layout = Layout::default();
    let mut ids = Ids::default();
    instances(root, &types, &mut layout, &mut ids)?;
    let mut slots = Slots { next: 1 };
    for header in layout.headers.iter_mut().filter(|h| !h.metadata) {
        header.valid = slots.take(root, 1)?;
    }
    stacks(root, &mut layout, &ids, &mut slots)?;
    unions(root, &types, &mut layout, &mut ids)?;
    union_stacks(root, &mut layout, &ids, &mut slots)?;
    let first = slots.next;
    place_fields(root, &types, &mut layout, &mut slots, true)?;
    layout.metadata = first..slots.next;
    place_fields(root, &types, &mut layout, &mut slots, false)?;
    layout.reset_end = slots.next;
    layout.one = slots.take(root, 1)?;
    layout.initial = vec![0; slots.next as usize];
    layout.initial[layout.one as usize] = 1;
    let one = layout.one;
    for header in layout.headers.iter_mut().filter(|h| h.metadata) {
        header.valid = one;
    }
    Ok(layout)
}

fn types<'a>(root: &Object<'a>) -> Read<Types<'a>> {
    let mut types = Types::default();
    for json in root.list("header_types")? {
        let object = Object::named(json, "header type");
        let value = header_type(&object)?;
        insert_new(&mut types.headers, &object, "header type", value)?;
    }
    for json in root.list_or_empty("header_union_types")? {
        let object = Object::named(json, "header union type");
        let mut members = Vec::new();
        for member in object.list("headers")? {
            let name = object.item_text(member, 0, "headers")?;
            let member_type = object.item_text(member, 1, "headers")?;
            members.push((name.to_owned(), member_type.to_owned()));
        }
        insert_new(&mut types.unions, &object, "header union type", members)?;
    }
    Ok(types)
}

fn instances(root: &Object<'_>, types: &Types<'_>, layout: &mut Layout, ids: &mut Ids) -> Read<()> {
    for json in root.list("headers")? {
        let object = Object::named(json, "header");
        let (name, type_name) = (object.text("name")?, object.text("header_type")?);
        if !types.headers.contains_key(type_name) {
            return Err(object.unknown("header type", type_name));
        }
        let header = HeaderNo::from(layout.headers.len());
        if layout.header_named(name).is_some()
            || ids.headers.insert(object.number("id")?, header).is_some()
        {
            let place = object.place.clone();
            return Err(LoadError::Duplicate { place, kind: "header", name: name.into() });
        }
        layout.headers.push(Header {
            name: name.into(),
            type_name: type_name.into(),
            metadata: object.truth("metadata", false)?,
            fields: Vec::new(),
            valid: 0,
            base: 0,
            slots: 0,
            bits: 0,
            varbit: None,
            wire: Box::default(),
            union: None,
        });
    }
    Ok(())
}

fn place_fields(
    root: &Object<'_>,
    types: &Types<'_>,
    layout: &mut Layout,
    slots: &mut Slots,
    metadata: bool,
) -> Read<()> {
    for header in layout.headers.iter_mut().filter(|h| h.metadata == metadata) {
        let Some(header_type) = types.headers.get(header.type_name.as_str()) else { continue };
        header.base = slots.next;
        let (mut bits, mut offset) = (0_u64, 0_u32);
        let mut wire = Vec::new();
        for (i, field) in header_type.fields.iter().enumerate() {
            let at =
                FieldRef { slot: slots.take(root, field.width.div_ceil(64))?, width: field.width };
            if header_type.varbit == Some(i) {
                let length = slots.take(root, 1)?;
                header.varbit = Some(VarBit { field: i as u32, max_bits: field.width, length });
                offset = 0;
            } else {
                wire.push(WireField { slot: at.slot, width: at.width, offset });
                offset = offset.saturating_add(field.width);
                bits += u64::from(field.width);
            }
            header.fields.push(Field { name: field.name.clone(), at, signed: field.signed });
        }
        header.slots = slots.next - header.base;
        header.wire = wire.into();
        // Metadata is never on the wire, so only headers must be whole bytes.
        let place = || crate::switch::load::error::Place {
            element: format!("header `{}`", header.name),
            source: None,
        };
        if !metadata && bits % 8 != 0 {
            return Err(LoadError::HeaderNotBytes { place: place(), bits });
        }
        header.bits = u32::try_from(bits).unwrap_or(u32::MAX);
    }
    Ok(())
}

fn header_ids(object: &Object<'_>, attribute: &'static str, ids: &Ids) -> Read<Vec<HeaderNo>> {
    let find = |id: &Value| {
        let number = id.as_u64().and_then(|n| u32::try_from(n).ok());
        number
            .and_then(|n| ids.headers.get(&n).copied())
            .ok_or_else(|| object.unknown("header with id", &id.to_string()))
    };
    object.list(attribute)?.iter().map(find).collect()
}

fn stacks(root: &Object<'_>, layout: &mut Layout, ids: &Ids, slots: &mut Slots) -> Read<()> {
    for json in root.list_or_empty("header_stacks")? {
        let object = Object::named(json, "header stack");
        let headers = header_ids(&object, "header_ids", ids)?;
        let type_name = object.text("header_type")?;
        for header in &headers {
            let header = &layout.headers[header.index()];
            if header.type_name != type_name {
                return Err(LoadError::TypeMismatch {
                    place: object.place.clone(),
                    left: type_name.into(),
                    right: header.type_name.clone(),
                });
            }
        }
        if headers.is_empty() {
            return Err(object.wrong("header_ids", "a list with at least one id", object.json));
        }
        let next = slots.take(root, 1)?;
        layout.stacks.push(Stack { name: object.text("name")?.into(), headers, next });
    }
    Ok(())
}

fn unions(root: &Object<'_>, types: &Types<'_>, layout: &mut Layout, ids: &mut Ids) -> Read<()> {
    for json in root.list_or_empty("header_unions")? {
        let object = Object::named(json, "header union");
        let type_name = object.text("union_type")?;
        let members = types
            .unions
            .get(type_name)
            .ok_or_else(|| object.unknown("header union type", type_name))?;
        let headers = header_ids(&object, "header_ids", ids)?;
        let union = UnionNo::from(layout.unions.len());
        let fits = members.len() == headers.len()
            && members
                .iter()
                .zip(&headers)
                .all(|((_, wanted), h)| layout.headers[h.index()].type_name == *wanted);
        if !fits {
            return Err(LoadError::TypeMismatch {
                place: object.place.clone(),
                left: type_name.into(),
                right: "its header_ids".into(),
            });
        }
        for header in &headers {
            layout.headers[header.index()].union = Some(union);
        }
        if ids.unions.insert(object.number("id")?, union).is_some() {
            let (place, name) = (object.place.clone(), object.text("name")?.into());
            return Err(LoadError::Duplicate { place, kind: "header union", name });
        }
        layout.unions.push(Union {
            name: object.text("name")?.into(),
            members: members.iter().map(|(name, _)| name.clone()).zip(headers).collect(),
        });
    }
    Ok(())
}

fn union_stacks(root: &Object<'_>, layout: &mut Layout, ids: &Ids, slots: &mut Slots) -> Read<()> {
    for json in root.list_or_empty("header_union_stacks")? {
        let object = Object::named(json, "header union stack");
        let find = |id: &Value| {
            let number = id.as_u64().and_then(|n| u32::try_from(n).ok());
            number
                .and_then(|n| ids.unions.get(&n).copied())
                .ok_or_else(|| object.unknown("header union with id", &id.to_string()))
        };
        let unions: Vec<UnionNo> =
            object.list("header_union_ids")?.iter().map(find).collect::<Read<_>>()?;
        let arities = unions.iter().map(|u| layout.unions[u.index()].members.len());
        if unions.is_empty() || arities.clone().min() != arities.max() {
            return Err(object.wrong("header_union_ids", "ids of unions of one type", object.json));
        }
        let next = slots.take(root, 1)?;
        layout.union_stacks.push(UnionStack { name: object.text("name")?.into(), unions, next });
    }
    Ok(())
}
