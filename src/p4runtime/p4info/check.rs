//! From a P4Info message to an index, refusing what contradicts itself.
//! In: the message. Out: `Index` or the first contradiction. Must not know what the objects are for.
//!
//! Checked: ids are non-zero, unique and of their kind (section 6.3), references point to objects of the right kind,
//! widths and sizes are possible, match kinds are known.

use super::{
    Action, ActionProfile, ActionUse, Counter, Digest, Field, Index, Kind, MatchType, Meter, Names,
    PacketHeader, Param, Register, Scope, SizeSemantics, Table, ValueSet, config,
};
use crate::p4runtime::look::Look;
use config::action_profile::SelectorSizeSemantics;
use config::match_field::Match;
use config::p4_ids::Prefix;
use config::table::IdleTimeoutBehavior;
use std::collections::{BTreeMap, BTreeSet};

/// Widest value accepted, in bits. P4 has no limit; this is far above any header field and keeps allocations small.
const WIDTH_MAX: i32 = 1 << 16;

/// Why a P4Info contradicts itself; each names the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum P4InfoError {
    /// An object without preamble, that is, without id and name.
    #[error("{kind} number {place} has no preamble; give it an id and a name")]
    NoPreamble {
        /// Kind in words.
        kind: &'static str,
        /// From 0, in the list of its kind.
        place: usize,
    },
    /// Id 0, or an id whose top byte is not that of the kind.
    #[error("{kind} '{name}' has id {id:#010x}; ids of this kind start with {prefix:#04x}")]
    WrongId {
        /// Kind in words.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The id.
        id: u32,
        /// The right top byte.
        prefix: u32,
    },
    /// Two objects with one id.
    #[error(
        "id {id:#010x} is given to both '{first}' and '{second}'; ids are unique over the program"
    )]
    DuplicateId {
        /// The id.
        id: u32,
        /// Who has it.
        first: String,
        /// Who wants it too.
        second: String,
    },
    /// Two fields or parameters of one object with one id, or one with id 0.
    #[error(
        "'{owner}': field or parameter '{name}' has id {id}, which is 0 or taken; ids start at 1 and are unique"
    )]
    WrongMemberId {
        /// The object.
        owner: String,
        /// The field or parameter.
        name: String,
        /// Its id.
        id: u32,
    },
    /// A reference to nothing, or to another kind.
    #[error(
        "'{owner}' refers to {wanted} {id:#010x}, which does not exist; define it or correct the id"
    )]
    Dangling {
        /// The object.
        owner: String,
        /// Kind wanted, in words.
        wanted: &'static str,
        /// The id.
        id: u32,
    },
    /// A negative or absurd width.
    #[error("'{owner}': '{name}' is {width} bits wide; widths lie between 0 and {WIDTH_MAX}")]
    Width {
        /// The object.
        owner: String,
        /// The field or parameter.
        name: String,
        /// Its width in bits.
        width: i32,
    },
    /// A negative size.
    #[error("'{owner}' has size {size}; sizes are not negative")]
    Size {
        /// The object.
        owner: String,
        /// Its size.
        size: i64,
    },
    /// A match kind that is missing or not a number of the protocol.
    #[error(
        "'{owner}': field '{name}' has match type {value}; use EXACT, LPM, TERNARY, RANGE or OPTIONAL"
    )]
    MatchKind {
        /// The object.
        owner: String,
        /// The field.
        name: String,
        /// The number given; 0 when none was.
        value: i32,
    },
    /// A register or digest without a type.
    #[error("'{owner}' has no type_spec; give the type of a cell or sample")]
    NoType {
        /// The object.
        owner: String,
    },
}

type Result<T> = std::result::Result<T, P4InfoError>;

/// Collects ids as objects are read.
#[derive(Default)]
struct Ids {
    by_id: BTreeMap<u32, (Kind, usize)>,
    names: BTreeMap<u32, String>,
}

impl Ids {
    fn take(
        &mut self,
        kind: Kind,
        prefix: Prefix,
        place: usize,
        preamble: Option<&config::Preamble>,
    ) -> Result<Names> {
        let preamble = preamble.ok_or(P4InfoError::NoPreamble { kind: kind.words(), place })?;
        let names =
            Names { id: preamble.id, name: preamble.name.clone(), alias: preamble.alias.clone() };
        let prefix = prefix as u32;
        if names.id >> 24 != prefix {
            return Err(P4InfoError::WrongId {
                kind: kind.words(),
                name: names.name,
                id: names.id,
                prefix,
            });
        }
        self.enter(kind, place, &names)?;
        Ok(names)
    }

    fn enter(&mut self, kind: Kind, place: usize, names: &Names) -> Result<()> {
        if let Some(first) = self.names.insert(names.id, names.name.clone()) {
            return Err(P4InfoError::DuplicateId {
                id: names.id,
                first,
                second: names.name.clone(),
            });
        }
        self.by_id.insert(names.id, (kind, place));
        Ok(())
    }

    fn require(&self, owner: &Names, kind: Kind, id: u32) -> Result<()> {
        match self.by_id.get(&id) {
            Some((found, _)) if *found == kind => Ok(()),
            _ => Err(P4InfoError::Dangling { owner: owner.name.clone(), wanted: kind.words(), id }),
        }
    }
}

/// Reads a list of one kind.
fn read<P, T>(list: &[P], mut one: impl FnMut(usize, &P) -> Result<T>) -> Result<Vec<T>> {
    list.iter().enumerate().map(|(place, object)| one(place, object)).collect()
}

pub(super) fn build(info: config::P4Info) -> Result<Index> {
    let mut ids = Ids::default();
    let actions = read(&info.actions, |place, action| {
        let names = ids.take(Kind::Action, Prefix::Action, place, action.preamble.as_ref())?;
        let params = members(&info, &names, &action.params)?;
        Ok(Action { names, params })
    })?;
    let profiles = read(&info.action_profiles, |place, profile| {
        let preamble = profile.preamble.as_ref();
        let names = ids.take(Kind::ActionProfile, Prefix::ActionProfile, place, preamble)?;
        action_profile(names, profile)
    })?;
    let (counters, direct_counters) = counters(&info, &mut ids)?;
    let (meters, direct_meters) = meters(&info, &mut ids)?;
    let registers = read(&info.registers, |place, register| {
        let names =
            ids.take(Kind::Register, Prefix::Register, place, register.preamble.as_ref())?;
        let cell = type_of(&names, register.type_spec.as_ref())?;
        Ok(Register { size: size(&names, register.size.into())?, names, cell })
    })?;
    let digests = read(&info.digests, |place, digest| {
        let names = ids.take(Kind::Digest, Prefix::Digest, place, digest.preamble.as_ref())?;
        let sample = type_of(&names, digest.type_spec.as_ref())?;
        Ok(Digest { names, sample })
    })?;
    let value_sets = read(&info.value_sets, |place, set| {
        let names = ids.take(Kind::ValueSet, Prefix::ValueSet, place, set.preamble.as_ref())?;
        let fields = fields(&info, &names, &set.r#match)?;
        Ok(ValueSet { size: size(&names, set.size.into())?, names, fields })
    })?;
    let headers = read(&info.controller_packet_metadata, |place, header| {
        let preamble = header.preamble.as_ref();
        let names = ids.take(Kind::PacketHeader, Prefix::ControllerHeader, place, preamble)?;
        let fields = members(&info, &names, &header.metadata)?;
        Ok(PacketHeader { names, fields })
    })?;
    externs(&info, &mut ids)?;
    let tables = read(&info.tables, |place, message| {
        let names = ids.take(Kind::Table, Prefix::Table, place, message.preamble.as_ref())?;
        table(&info, &ids, names, message)
    })?;
    let index = Index {
        tables,
        actions,
        profiles,
        counters,
        direct_counters,
        meters,
        direct_meters,
        registers,
        digests,
        value_sets,
        headers,
        by_id: ids.by_id,
        info,
    };
    references(&index)?;
    Ok(index)
}

fn counters(info: &config::P4Info, ids: &mut Ids) -> Result<(Vec<Counter>, Vec<Counter>)> {
    let indexed = read(&info.counters, |place, counter| {
        let names = ids.take(Kind::Counter, Prefix::Counter, place, counter.preamble.as_ref())?;
        let unit = counter.spec.as_ref().map_or_else(Default::default, config::CounterSpec::unit);
        Ok(Counter { size: size(&names, counter.size)?, names, unit, table: None })
    })?;
    let direct = read(&info.direct_counters, |place, counter| {
        let preamble = counter.preamble.as_ref();
        let names = ids.take(Kind::DirectCounter, Prefix::DirectCounter, place, preamble)?;
        let unit = counter.spec.as_ref().map_or_else(Default::default, config::CounterSpec::unit);
        Ok(Counter { names, unit, size: 0, table: Some(counter.direct_table_id) })
    })?;
    Ok((indexed, direct))
}

fn meters(info: &config::P4Info, ids: &mut Ids) -> Result<(Vec<Meter>, Vec<Meter>)> {
    let spec = |spec: Option<&config::MeterSpec>| {
        spec.map_or_else(Default::default, |spec| (spec.unit(), spec.r#type()))
    };
    let indexed = read(&info.meters, |place, meter| {
        let names = ids.take(Kind::Meter, Prefix::Meter, place, meter.preamble.as_ref())?;
        let (unit, kind) = spec(meter.spec.as_ref());
        Ok(Meter { size: size(&names, meter.size)?, names, unit, kind, table: None })
    })?;
    let direct = read(&info.direct_meters, |place, meter| {
        let preamble = meter.preamble.as_ref();
        let names = ids.take(Kind::DirectMeter, Prefix::DirectMeter, place, preamble)?;
        let (unit, kind) = spec(meter.spec.as_ref());
        Ok(Meter { names, unit, kind, size: 0, table: Some(meter.direct_table_id) })
    })?;
    Ok((indexed, direct))
}

/// Externs of other architectures only take their ids; nobody can write them.
fn externs(info: &config::P4Info, ids: &mut Ids) -> Result<()> {
    let instances = info.externs.iter().flat_map(|kind| &kind.instances);
    for (place, instance) in instances.enumerate() {
        let kind = Kind::Extern;
        let preamble = instance
            .preamble
            .as_ref()
            .ok_or(P4InfoError::NoPreamble { kind: kind.words(), place })?;
        let names =
            Names { id: preamble.id, name: preamble.name.clone(), alias: preamble.alias.clone() };
        ids.enter(kind, place, &names)?;
    }
    Ok(())
}

fn table(info: &config::P4Info, ids: &Ids, names: Names, message: &config::Table) -> Result<Table> {
    let actions = message
        .action_refs
        .iter()
        .map(|action| {
            ids.require(&names, Kind::Action, action.id)?;
            let scope = Scope::try_from(action.scope).unwrap_or_default();
            Ok(ActionUse { id: action.id, scope })
        })
        .collect::<Result<Vec<_>>>()?;
    let const_default = some(message.const_default_action_id);
    if let Some(id) = const_default {
        ids.require(&names, Kind::Action, id)?;
    }
    let profile = some(message.implementation_id);
    if let Some(id) = profile {
        ids.require(&names, Kind::ActionProfile, id)?;
    }
    let (mut counter, mut meter) = (None, None);
    for id in &message.direct_resource_ids {
        match ids.by_id.get(id) {
            Some((Kind::DirectCounter, _)) => counter = Some(*id),
            Some((Kind::DirectMeter, _)) => meter = Some(*id),
            // Direct resources of other architectures exist and are nobody's business here.
            Some((Kind::Extern, _)) => {}
            _ => {
                let (owner, wanted) = (names.name.clone(), "direct counter or meter");
                return Err(P4InfoError::Dangling { owner, wanted, id: *id });
            }
        }
    }
    Ok(Table {
        fields: fields(info, &names, &message.match_fields)?,
        actions,
        const_default,
        profile,
        counter,
        meter,
        size: size(&names, message.size)?,
        idle_timeout: message.idle_timeout_behavior() == IdleTimeoutBehavior::NotifyControl,
        is_const: message.is_const_table,
        has_initial_entries: message.has_initial_entries,
        names,
    })
}

fn action_profile(names: Names, message: &config::ActionProfile) -> Result<ActionProfile> {
    let semantics = match &message.selector_size_semantics {
        Some(SelectorSizeSemantics::SumOfMembers(members)) => {
            SizeSemantics::SumOfMembers { max_member_weight: members.max_member_weight }
        }
        Some(SelectorSizeSemantics::SumOfWeights(_)) | None => SizeSemantics::SumOfWeights,
    };
    size(&names, message.max_group_size.into())?;
    Ok(ActionProfile {
        tables: message.table_ids.clone(),
        with_selector: message.with_selector,
        size: size(&names, message.size)?,
        max_group_size: message.max_group_size,
        semantics,
        weights_disallowed: message.weights_disallowed,
        names,
    })
}

/// References that could not be checked on the way because their objects came later.
fn references(index: &Index) -> Result<()> {
    let dangling = |owner: &Names, id| P4InfoError::Dangling {
        owner: owner.name.clone(),
        wanted: Kind::Table.words(),
        id,
    };
    let direct = index.direct_counters.iter().map(|counter| (&counter.names, counter.table));
    let direct = direct.chain(index.direct_meters.iter().map(|meter| (&meter.names, meter.table)));
    for (names, table) in direct {
        if let Some(id) = table.filter(|id| index.table_by_id(*id).is_none()) {
            return Err(dangling(names, id));
        }
    }
    for profile in &index.profiles {
        if let Some(id) = profile.tables.iter().find(|id| index.table_by_id(**id).is_none()) {
            return Err(dangling(&profile.names, *id));
        }
    }
    Ok(())
}

fn fields(info: &config::P4Info, owner: &Names, list: &[config::MatchField]) -> Result<Vec<Field>> {
    let plain = members(info, owner, list)?;
    plain
        .into_iter()
        .zip(list)
        .map(|(Param { id, name, width, look }, message)| {
            let kind = match message.r#match {
                Some(Match::OtherMatchType(_)) => MatchType::Unspecified,
                Some(Match::MatchType(number)) => match MatchType::try_from(number) {
                    Ok(kind) if kind != MatchType::Unspecified => kind,
                    _ => {
                        let owner = owner.name.clone();
                        return Err(P4InfoError::MatchKind { owner, name, value: number });
                    }
                },
                None => {
                    let owner = owner.name.clone();
                    return Err(P4InfoError::MatchKind { owner, name, value: 0 });
                }
            };
            let formatted =
                message.annotations.iter().any(|text| text.trim().starts_with("@format"));
            let look = match (kind, width) {
                // Prefixes of these widths are routes.
                (MatchType::Lpm, 32) if !formatted => Look::Ipv4,
                (MatchType::Lpm, 128) if !formatted => Look::Ipv6,
                _ => look,
            };
            Ok(Field { id, name, width, look, kind })
        })
        .collect()
}

/// What match fields, action parameters and packet metadata have in common.
trait Member {
    /// Id, name, width in bits.
    fn parts(&self) -> (u32, &String, i32);
    /// Annotations as written, and the name of the type if it has one.
    fn marks(&self) -> (&[String], Option<&config::P4NamedType>);
}

macro_rules! member {
    ($($type:ty)*) => {
        $(impl Member for $type {
            fn parts(&self) -> (u32, &String, i32) {
                (self.id, &self.name, self.bitwidth)
            }
            fn marks(&self) -> (&[String], Option<&config::P4NamedType>) {
                (&self.annotations, self.type_name.as_ref())
            }
        })*
    };
}

member!(config::MatchField config::action::Param config::controller_packet_metadata::Metadata);

/// How a member is printed: as its annotations say, else those of its type, else as its name suggests.
fn look_of<P: Member>(info: &config::P4Info, member: &P, name: &str, width: u32) -> Look {
    let (own, named) = member.marks();
    let types = info.type_info.as_ref().map(|types| &types.new_types);
    let of_type = named.and_then(|named| types?.get(&named.name)).map(|spec| &spec.annotations);
    let annotations: Vec<String> =
        own.iter().chain(of_type.into_iter().flatten()).cloned().collect();
    Look::of(name, width, &annotations)
}

fn members<P: Member>(info: &config::P4Info, owner: &Names, list: &[P]) -> Result<Vec<Param>> {
    let mut taken = BTreeSet::new();
    list.iter()
        .map(|member| {
            let (id, name, width) = member.parts();
            let (owner, name) = (owner.name.clone(), name.clone());
            if id == 0 || !taken.insert(id) {
                return Err(P4InfoError::WrongMemberId { owner, name, id });
            }
            match u32::try_from(width) {
                Ok(bits) if width <= WIDTH_MAX => {
                    let look = look_of(info, member, &name, bits);
                    Ok(Param { id, name, width: bits, look })
                }
                _ => Err(P4InfoError::Width { owner, name, width }),
            }
        })
        .collect()
}

fn size(owner: &Names, size: i64) -> Result<i64> {
    if size < 0 {
        return Err(P4InfoError::Size { owner: owner.name.clone(), size });
    }
    Ok(size)
}

fn type_of(owner: &Names, spec: Option<&config::P4DataTypeSpec>) -> Result<config::P4DataTypeSpec> {
    spec.cloned().ok_or_else(|| P4InfoError::NoType { owner: owner.name.clone() })
}

const fn some(id: u32) -> Option<u32> {
    if id == 0 { None } else { Some(id) }
}
