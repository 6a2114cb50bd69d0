//! What is done to a well-formed update to make it wrong, and the code that the specification then demands whatever the
//! server holds. Each returns `None` where it does not apply.

use super::draw::Draw;
use ringpath::p4runtime::p4info::{MatchType, Scope, Table};
use ringpath::p4runtime::proto::p4::v1::action_profile_group::member::WatchKind as GroupWatch;
use ringpath::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use ringpath::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use ringpath::p4runtime::proto::p4::v1::packet_replication_engine_entry::Type as Copies;
use ringpath::p4runtime::proto::p4::v1::replica::PortKind;
use ringpath::p4runtime::proto::p4::v1::table_action::Type as Run;
use ringpath::p4runtime::proto::p4::v1::update::Type;
use ringpath::p4runtime::proto::p4::v1::{self as p4, TableEntry, Update};
use ringpath::p4runtime::rpc::Code::{
    self, AlreadyExists, InvalidArgument, OutOfRange, PermissionDenied, ResourceExhausted,
};

pub type Mutation = fn(&mut Draw<'_>, &mut Update) -> Option<Code>;

/// Every mutation by name; the names of the first dozen are those of sonic-pins' fuzzer.
pub const MUTATIONS: &[(&str, Mutation)] = &[
    ("INVALID_TABLE_ID", |d, u| {
        entry(u).map(|e| {
            e.table_id = [0, 0x0200_ffff, 0x0100_0001][d.below(3)];
            InvalidArgument
        })
    }),
    ("INVALID_ACTION_ID", |d, u| {
        action(u).map(|a| {
            a.action_id = [0, 0x0100_ffff, 0x0200_0001][d.below(3)];
            InvalidArgument
        })
    }),
    ("INVALID_MATCH_FIELD_ID", |_, u| {
        Some(&mut fields(u)?.first_mut()?.field_id).map(|id| {
            *id = 99;
            InvalidArgument
        })
    }),
    ("MISSING_MANDATORY_MATCH_FIELD", missing_exact),
    ("DUPLICATE_MATCH_FIELD", |_, u| {
        let fields = fields(u)?;
        let first = fields.first()?.clone();
        fields.push(first);
        Some(InvalidArgument)
    }),
    ("INVALID_TABLE_IMPLEMENTATION", wrong_implementation),
    ("INVALID_ACTION_SELECTOR_WEIGHT", wrong_weight),
    ("INVALID_PORT", wrong_port),
    ("INVALID_REFERRING_ID", |_, u| match run(u)? {
        Run::ActionProfileMemberId(id) | Run::ActionProfileGroupId(id) => {
            *id = 0;
            Some(InvalidArgument)
        }
        _ => None,
    }),
    ("no type", |_, u| {
        u.r#type = 0;
        Some(InvalidArgument)
    }),
    ("no entity", |_, u| {
        u.entity = None;
        Some(InvalidArgument)
    }),
    ("a type that the entity does not take", wrong_type),
    ("action of another table", |d, u| {
        let table = table_of(d, u)?;
        let other = d
            .model
            .index
            .actions()
            .iter()
            .find(|a| table.actions.iter().all(|may| may.id != a.names.id))?
            .names
            .id;
        action(u)?.action_id = other;
        Some(InvalidArgument)
    }),
    ("action out of its scope", out_of_scope),
    ("parameter missing", |_, u| action(u)?.params.pop().map(|_| InvalidArgument)),
    ("parameter twice", |_, u| {
        let params = &mut action(u)?.params;
        let first = params.first()?.clone();
        params.push(first);
        Some(InvalidArgument)
    }),
    ("parameter that the action lacks", |_, u| {
        action(u)?.params.push(p4::action::Param { param_id: 77, value: vec![0] });
        Some(InvalidArgument)
    }),
    ("parameter too wide", |_, u| {
        action(u)?.params.first_mut()?.value = vec![1; 40];
        Some(OutOfRange)
    }),
    ("parameter empty", |_, u| {
        action(u)?.params.first_mut()?.value.clear();
        Some(InvalidArgument)
    }),
    ("wrong kind of match", wrong_match),
    ("value too wide", |d, u| {
        bytes(d, u).map(|value| {
            *value = vec![1; 40];
            OutOfRange
        })
    }),
    ("value empty", |d, u| {
        bytes(d, u).map(|value| {
            value.clear();
            OutOfRange
        })
    }),
    ("don't-care written out", dont_care),
    ("bits that do not count", extra_bits),
    ("priority of the wrong kind", wrong_priority),
    ("is_const", |_, u| {
        entry(u).map(|e| {
            e.is_const = true;
            InvalidArgument
        })
    }),
    ("age that is not there", |d, u| {
        let ages = table_of(d, u)?.idle_timeout;
        let delete = u.r#type() == Type::Delete;
        let e = entry(u)?;
        if delete {
            return None;
        }
        match d.below(3) {
            0 => e.time_since_last_hit = Some(Default::default()),
            1 if !ages || e.is_default_action => e.idle_timeout_ns = 5,
            _ => e.idle_timeout_ns = -5,
        }
        Some(InvalidArgument)
    }),
    ("direct resource that is not there", |d, u| {
        let table = table_of(d, u)?;
        if u.r#type() == Type::Delete {
            return None;
        }
        let e = entry(u)?;
        match (table.counter, table.meter) {
            (None, _) => e.counter_data = Some(Default::default()),
            (_, None) => e.meter_config = Some(Default::default()),
            _ => e.counter_data = Some(p4::CounterData { byte_count: -1, packet_count: 0 }),
        }
        Some(InvalidArgument)
    }),
    ("write to a constant table", |d, u| {
        if !table_of(d, u)?.is_const || entry(u)?.is_default_action {
            return None;
        }
        u.r#type = [Type::Insert, Type::Delete][d.below(2)].into();
        Some(PermissionDenied)
    }),
    ("default entry inserted or deleted", |d, u| {
        if !entry(u)?.is_default_action {
            return None;
        }
        u.r#type = [Type::Insert, Type::Delete][d.below(2)].into();
        Some(InvalidArgument)
    }),
    ("default entry with a priority", |_, u| {
        entry(u).filter(|e| e.is_default_action).map(|e| {
            e.priority = 1;
            InvalidArgument
        })
    }),
    ("INSERT without action", |_, u| {
        if u.r#type() != Type::Insert {
            return None;
        }
        entry(u)?.action = None;
        Some(InvalidArgument)
    }),
    ("id 0 of a member or group", |_, u| match kind(u)? {
        Kinds::ActionProfileMember(m) => {
            m.member_id = 0;
            Some(InvalidArgument)
        }
        Kinds::ActionProfileGroup(g) => {
            g.group_id = 0;
            Some(InvalidArgument)
        }
        _ => None,
    }),
    ("profile that does not exist", |_, u| match kind(u)? {
        Kinds::ActionProfileMember(m) => {
            m.action_profile_id = 0x1100_ffff;
            Some(InvalidArgument)
        }
        Kinds::ActionProfileGroup(g) => {
            g.action_profile_id = 0;
            Some(InvalidArgument)
        }
        _ => None,
    }),
    ("member of a group twice", |_, u| {
        if u.r#type() == Type::Delete {
            return None;
        }
        let Kinds::ActionProfileGroup(g) = kind(u)? else { return None };
        let first = g.members.first()?.clone();
        g.members.push(first);
        Some(InvalidArgument)
    }),
    ("max_size beyond the program's", |d, u| {
        if u.r#type() == Type::Delete {
            return None;
        }
        let Kinds::ActionProfileGroup(g) = kind(u)? else { return None };
        let most = d.model.index.profile_by_id(g.action_profile_id)?.max_group_size;
        g.max_size = if most > 0 { most + 1 } else { -1 };
        Some(InvalidArgument)
    }),
    ("index negative", |_, u| {
        index(u).map(|i| {
            i.index = -1;
            InvalidArgument
        })
    }),
    ("index beyond the array", |_, u| {
        index(u).map(|i| {
            i.index = 1 << 30;
            OutOfRange
        })
    }),
    ("array that does not exist", |_, u| {
        match kind(u)? {
            Kinds::CounterEntry(e) => e.counter_id = 0,
            Kinds::MeterEntry(e) => e.meter_id = 0x1400_ffff,
            Kinds::RegisterEntry(e) => e.register_id = 0x1200_0001,
            Kinds::ValueSetEntry(e) => e.value_set_id = 0,
            Kinds::DigestEntry(e) => e.digest_id = 0x1700_0fff,
            _ => return None,
        }
        Some(InvalidArgument)
    }),
    ("register of another type", |_, u| {
        let Kinds::RegisterEntry(e) = kind(u)? else { return None };
        e.data = Some(p4::P4Data { data: Some(p4::p4_data::Data::Bool(true)) });
        Some(InvalidArgument)
    }),
    ("register too wide", |_, u| {
        let Kinds::RegisterEntry(e) = kind(u)? else { return None };
        e.data = Some(p4::P4Data { data: Some(p4::p4_data::Data::Bitstring(vec![1; 40])) });
        Some(OutOfRange)
    }),
    ("negative counts and rates", |_, u| match kind(u)? {
        Kinds::CounterEntry(e) => {
            e.data = Some(p4::CounterData { byte_count: -1, packet_count: 0 });
            Some(InvalidArgument)
        }
        Kinds::MeterEntry(e) => {
            e.config = Some(p4::MeterConfig { cir: -1, ..Default::default() });
            Some(InvalidArgument)
        }
        _ => None,
    }),
    ("counts by colour", |_, u| {
        let Kinds::MeterEntry(e) = kind(u)? else { return None };
        e.counter_data = Some(p4::MeterCounterData {
            red: Some(p4::CounterData { packet_count: 1, byte_count: 0 }),
            ..Default::default()
        });
        Some(InvalidArgument)
    }),
    ("value set with too many members", |d, u| {
        let Kinds::ValueSetEntry(e) = kind(u)? else { return None };
        let set = d.model.index.value_set_by_id(e.value_set_id)?;
        if set.fields.len() != 1 {
            return None;
        }
        e.members = (0..=set.size as u8)
            .map(|n| p4::ValueSetMember {
                r#match: vec![p4::FieldMatch {
                    field_id: set.fields[0].id,
                    field_match_type: Some(FieldMatchType::Exact(field_match::Exact {
                        value: vec![n],
                    })),
                }],
            })
            .collect();
        Some(ResourceExhausted)
    }),
    ("value set with a member twice", |d, u| {
        let Kinds::ValueSetEntry(e) = kind(u)? else { return None };
        let set = d.model.index.value_set_by_id(e.value_set_id)?;
        if e.members.len() as i64 >= set.size {
            return None;
        }
        let first = e.members.first()?.clone();
        e.members.push(first);
        Some(AlreadyExists)
    }),
    ("group or session 0", |_, u| {
        match copies(u)? {
            Copies::MulticastGroupEntry(g) => g.multicast_group_id = 0,
            Copies::CloneSessionEntry(s) => s.session_id = 0,
        }
        Some(InvalidArgument)
    }),
    ("replica twice", |_, u| {
        let list = replicas(u)?;
        let first = list.first()?.clone();
        list.push(first);
        Some(InvalidArgument)
    }),
    ("replica without port", |_, u| {
        replicas(u)?.first_mut()?.port_kind = None;
        Some(InvalidArgument)
    }),
    ("instance beyond 16 bits", |_, u| {
        replicas(u)?.first_mut()?.instance = 70_000;
        Some(InvalidArgument)
    }),
    ("class of service without queue", |_, u| {
        if u.r#type() == Type::Delete {
            return None;
        }
        let Copies::CloneSessionEntry(s) = copies(u)? else { return None };
        s.class_of_service = 1000;
        Some(InvalidArgument)
    }),
    ("digest with negative times", |_, u| {
        if u.r#type() == Type::Delete {
            return None;
        }
        let Kinds::DigestEntry(e) = kind(u)? else { return None };
        e.config = Some(p4::digest_entry::Config { ack_timeout_ns: -1, ..Default::default() });
        Some(InvalidArgument)
    }),
    ("a direct resource of no entry", |_, u| {
        match kind(u)? {
            Kinds::DirectCounterEntry(e) => e.table_entry = None,
            Kinds::DirectMeterEntry(e) => e.table_entry = None,
            _ => return None,
        }
        Some(InvalidArgument)
    }),
];

fn kind(update: &mut Update) -> Option<&mut Kinds> {
    update.entity.as_mut()?.entity.as_mut()
}

fn entry(update: &mut Update) -> Option<&mut TableEntry> {
    match kind(update)? {
        Kinds::TableEntry(entry) => Some(entry),
        _ => None,
    }
}

fn table_of<'a>(draw: &Draw<'a>, update: &mut Update) -> Option<&'a Table> {
    let index = draw.model.index;
    match kind(update)? {
        Kinds::TableEntry(entry) => index.table_by_id(entry.table_id),
        Kinds::ActionProfileMember(member) => {
            index.table_by_id(*index.profile_by_id(member.action_profile_id)?.tables.first()?)
        }
        _ => None,
    }
}

fn run(update: &mut Update) -> Option<&mut Run> {
    if update.r#type() == Type::Delete {
        return None;
    }
    entry(update)?.action.as_mut()?.r#type.as_mut()
}

/// Some action of the update that counts, whatever it is part of.
fn action(update: &mut Update) -> Option<&mut p4::Action> {
    if update.r#type() == Type::Delete {
        return None;
    }
    match kind(update)? {
        Kinds::ActionProfileMember(member) => member.action.as_mut(),
        Kinds::TableEntry(entry) => match entry.action.as_mut()?.r#type.as_mut()? {
            Run::Action(action) => Some(action),
            Run::ActionProfileActionSet(set) => {
                set.action_profile_actions.first_mut()?.action.as_mut()
            }
            _ => None,
        },
        _ => None,
    }
}

fn fields(update: &mut Update) -> Option<&mut Vec<p4::FieldMatch>> {
    match kind(update)? {
        Kinds::TableEntry(entry) if !entry.is_default_action => Some(&mut entry.r#match),
        Kinds::ValueSetEntry(set) => Some(&mut set.members.first_mut()?.r#match),
        _ => None,
    }
}

/// Some value of the key.
fn bytes<'u>(draw: &mut Draw<'_>, update: &'u mut Update) -> Option<&'u mut Vec<u8>> {
    let fields = fields(update)?;
    let place = draw.below(fields.len());
    match fields.get_mut(place)?.field_match_type.as_mut()? {
        FieldMatchType::Exact(exact) => Some(&mut exact.value),
        FieldMatchType::Optional(optional) => Some(&mut optional.value),
        FieldMatchType::Lpm(lpm) => Some(&mut lpm.value),
        FieldMatchType::Ternary(ternary) => Some(&mut ternary.mask),
        FieldMatchType::Range(range) => Some(&mut range.high),
        FieldMatchType::Other(_) => None,
    }
}

fn index(update: &mut Update) -> Option<&mut p4::Index> {
    match kind(update)? {
        Kinds::CounterEntry(entry) => entry.index.as_mut(),
        Kinds::MeterEntry(entry) => entry.index.as_mut(),
        Kinds::RegisterEntry(entry) => entry.index.as_mut(),
        _ => None,
    }
}

fn copies(update: &mut Update) -> Option<&mut Copies> {
    match kind(update)? {
        Kinds::PacketReplicationEngineEntry(entry) => entry.r#type.as_mut(),
        _ => None,
    }
}

fn replicas(update: &mut Update) -> Option<&mut Vec<p4::Replica>> {
    if update.r#type() == Type::Delete {
        return None;
    }
    match copies(update)? {
        Copies::MulticastGroupEntry(group) => Some(&mut group.replicas),
        Copies::CloneSessionEntry(session) => Some(&mut session.replicas),
    }
}

fn missing_exact(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let table = table_of(draw, update)?;
    let exact = table.fields.iter().find(|field| field.kind == MatchType::Exact)?.id;
    let fields = fields(update)?;
    fields.retain(|field| field.field_id != exact);
    Some(InvalidArgument)
}

fn wrong_implementation(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let table = table_of(draw, update)?;
    let profile = table.profile.and_then(|id| draw.model.index.profile_by_id(id));
    let is_const = table.is_const;
    let run = run(update).filter(|_| !is_const)?;
    *run = match profile {
        None => Run::ActionProfileMemberId(1),
        Some(profile) if profile.with_selector => Run::Action(draw.action(table, false)?),
        Some(_) => Run::ActionProfileGroupId(1),
    };
    Some(InvalidArgument)
}

fn wrong_weight(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let bad = [0, -1, -1_000_000][draw.below(3)];
    if let Some(Run::ActionProfileActionSet(set)) = run(update) {
        set.action_profile_actions.first_mut()?.weight = bad;
        return Some(InvalidArgument);
    }
    match (update.r#type(), kind(update)?) {
        (Type::Insert | Type::Modify, Kinds::ActionProfileGroup(group)) => {
            group.members.first_mut()?.weight = bad;
            Some(InvalidArgument)
        }
        _ => None,
    }
}

/// A port that the switch does not have.
fn wrong_port(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let port = vec![2, draw.below(256) as u8];
    if let Some(list) = replicas(update) {
        let replica = list.first_mut()?;
        match replica.backup_replicas.first_mut() {
            Some(backup) => backup.port = port,
            None => replica.port_kind = Some(PortKind::Port(port)),
        }
        return Some(InvalidArgument);
    }
    match (update.r#type(), kind(update)?) {
        (Type::Insert | Type::Modify, Kinds::ActionProfileGroup(group)) => {
            let member = group.members.first_mut()?;
            member.watch_kind = Some(GroupWatch::WatchPort(port));
            Some(InvalidArgument)
        }
        _ => None,
    }
}

fn wrong_type(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let always = matches!(
        kind(update)?,
        Kinds::CounterEntry(_)
            | Kinds::MeterEntry(_)
            | Kinds::RegisterEntry(_)
            | Kinds::ValueSetEntry(_)
            | Kinds::DirectCounterEntry(_)
            | Kinds::DirectMeterEntry(_)
    );
    update.r#type = [Type::Insert, Type::Delete][draw.below(2)].into();
    always.then_some(InvalidArgument)
}

/// A default-only action in an entry, or a table-only one as default.
fn out_of_scope(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let table = table_of(draw, update)?;
    let default = entry(update)?.is_default_action;
    let wrong = if default { Scope::TableOnly } else { Scope::DefaultOnly };
    let id = table.actions.iter().find(|action| action.scope == wrong)?.id;
    let action = action(update)?;
    *action = p4::Action { action_id: id, params: Vec::new() };
    Some(PermissionDenied)
}

fn wrong_match(_: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let field = fields(update)?.first_mut()?;
    field.field_match_type = match field.field_match_type.as_ref()? {
        FieldMatchType::Exact(_) => {
            Some(FieldMatchType::Ternary(field_match::Ternary { value: vec![1], mask: vec![1] }))
        }
        _ => Some(FieldMatchType::Exact(field_match::Exact { value: vec![1] })),
    };
    Some(InvalidArgument)
}

fn dont_care(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let widths: Vec<(u32, u32)> = match kind(update)? {
        Kinds::TableEntry(entry) => {
            let table = draw.model.index.table_by_id(entry.table_id)?;
            table.fields.iter().map(|field| (field.id, field.width)).collect()
        }
        Kinds::ValueSetEntry(set) => {
            let set = draw.model.index.value_set_by_id(set.value_set_id)?;
            set.fields.iter().map(|field| (field.id, field.width)).collect()
        }
        _ => return None,
    };
    let fields = fields(update)?;
    for field in fields {
        let (_, width) = *widths.iter().find(|(id, _)| *id == field.field_id)?;
        match field.field_match_type.as_mut()? {
            FieldMatchType::Lpm(lpm) => (lpm.value, lpm.prefix_len) = (vec![0], 0),
            FieldMatchType::Ternary(ternary) => (ternary.value, ternary.mask) = (vec![0], vec![0]),
            FieldMatchType::Range(range) => {
                let most = (1_u128 << width) - 1;
                (range.low, range.high) = (vec![0], ringpath::p4runtime::value::encode(most));
            }
            _ => continue,
        }
        return Some(InvalidArgument);
    }
    None
}

fn extra_bits(_: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    for field in fields(update)? {
        match field.field_match_type.as_mut()? {
            FieldMatchType::Lpm(lpm) => (lpm.value, lpm.prefix_len) = (vec![1], 1),
            FieldMatchType::Ternary(ternary) => (ternary.value, ternary.mask) = (vec![3], vec![1]),
            FieldMatchType::Range(range) => (range.low, range.high) = (vec![2], vec![1]),
            _ => continue,
        }
        return Some(InvalidArgument);
    }
    None
}

fn wrong_priority(draw: &mut Draw<'_>, update: &mut Update) -> Option<Code> {
    let needs = table_of(draw, update)?.needs_priority();
    let entry = entry(update).filter(|entry| !entry.is_default_action)?;
    entry.priority = if needs { [0, -1][draw.below(2)] } else { [1, -1][draw.below(2)] };
    Some(InvalidArgument)
}

/// Changes that change nothing: zero bytes in front of values, another order of fields and parameters, and whatever is
/// in the parts of a DELETE that do not count.
pub fn harmless(draw: &mut Draw<'_>, update: &mut Update) {
    let pad = |value: &mut Vec<u8>| {
        let zeros = usize::from(value.len() % 2 == 1);
        value.splice(0..0, vec![0; zeros + 1]);
    };
    if draw.chance(3)
        && let Some(fields) = fields(update)
    {
        fields.reverse();
        for field in fields {
            match field.field_match_type.as_mut() {
                Some(FieldMatchType::Exact(exact)) => pad(&mut exact.value),
                Some(FieldMatchType::Optional(optional)) => pad(&mut optional.value),
                Some(FieldMatchType::Lpm(lpm)) => pad(&mut lpm.value),
                Some(FieldMatchType::Ternary(ternary)) => pad(&mut ternary.mask),
                Some(FieldMatchType::Range(range)) => pad(&mut range.low),
                _ => {}
            }
        }
    }
    if draw.chance(3)
        && let Some(action) = action(update)
    {
        action.params.reverse();
        action.params.iter_mut().for_each(|param| pad(&mut param.value));
    }
    if draw.chance(3)
        && let Some(list) = replicas(update)
    {
        for replica in list {
            if let Some(PortKind::Port(port)) = replica.port_kind.as_mut() {
                pad(port);
            }
        }
    }
    if update.r#type() == Type::Delete && draw.chance(2) {
        match kind(update) {
            Some(Kinds::TableEntry(entry)) => {
                entry.action =
                    Some(p4::TableAction { r#type: Some(Run::ActionProfileMemberId(0)) });
                (entry.idle_timeout_ns, entry.metadata) = (-7, vec![9; 9]);
                entry.counter_data = Some(p4::CounterData { byte_count: -1, packet_count: -1 });
            }
            Some(Kinds::ActionProfileGroup(group)) => {
                (group.max_size, group.members) = (-3, vec![Default::default(); 2])
            }
            Some(Kinds::DigestEntry(digest)) => {
                digest.config =
                    Some(p4::digest_entry::Config { max_list_size: -1, ..Default::default() });
            }
            _ => {}
        }
    }
}
