//! Pipelines: profiles, tables with keys and entries, conditions, and the graph between them. In: JSON. Out: the
//! corresponding parts of the program; every path through the graph ends.

use crate::switch::{
    code::Op,
    expr::wide,
    load::{
        Loader, Scope,
        error::LoadError,
        read::{Object, Read},
    },
    phv::FieldRef,
    program::{
        ActionNo, Call, Conditional, ConstEntry, ConstMatch, CounterNo, DefaultEntry,
        Implementation, Invocation, Key, KeyField, MatchKind, MeterNo, Node, Pipeline, Profile,
        ProfileNo, Table, TableKind, TableNo,
    },
};
use num_bigint::BigInt;
use serde_json::Value;
use std::collections::BTreeMap;

/// Most limbs of a key: 4,096 bits.
const MAX_KEY_LIMBS: u64 = 64;

/// Lays fields out in a packed key: see [`KeyField`].
#[derive(Debug, Default)]
pub(super) struct Packer {
    limbs: usize,
    used: u32,
}

impl Packer {
    /// First limb and shift of the next field.
    pub(super) fn place(&mut self, width: u32) -> (u32, u32) {
        if width > 64 || self.limbs == 0 || self.used + width > 64 {
            let first = self.limbs;
            self.limbs += width.div_ceil(64).max(1) as usize;
            self.used = if width > 64 { 64 } else { width };
            return (first as u32, 0);
        }
        let shift = self.used;
        self.used += width;
        (self.limbs as u32 - 1, shift)
    }

    pub(super) fn limbs(&self) -> usize {
        self.limbs
    }
}

/// Where names of a pipeline lead.
type Nodes<'a> = BTreeMap<&'a str, Node>;

/// Successors of a table: see [`Table`].
struct Branches {
    hit: Option<Option<Node>>,
    miss: Option<Option<Node>>,
    next: Vec<Option<Node>>,
    base: Option<Node>,
}

impl<'a> Loader<'a> {
    pub(super) fn pipelines(&mut self) -> Read<()> {
        let list = self.root.list("pipelines")?;
        for name in ["ingress", "egress"] {
            let json = list.iter().find(|p| p.get("name").and_then(Value::as_str) == Some(name));
            let json = json.ok_or(LoadError::NotV1model { kind: "pipeline", name })?;
            let object = Object::named(json, "pipeline");
            self.pipeline(&object)?;
        }
        self.bindings()
    }

    /// A direct counter counts for a table that exists; else its counts would be lost without a word.
    fn bindings(&self) -> Read<()> {
        for json in self.root.list_or_empty("counter_arrays")? {
            let counter = Object::named(json, "counter");
            if !counter.truth("is_direct", false)? {
                continue;
            }
            let name = counter.text("binding")?;
            if self.program.tables.iter().all(|table| table.name != name) {
                return Err(counter.unknown("table", name));
            }
        }
        Ok(())
    }

    fn pipeline(&mut self, o: &Object<'a>) -> Read<()> {
        self.profiles(o)?;
        let nodes = self.nodes(o)?;
        for json in o.list_or_empty("tables")? {
            let table = Object::named(json, "table");
            let table = self.table(&table, &nodes)?;
            self.program.tables.push(table);
        }
        for json in o.list_or_empty("conditionals")? {
            let c = Object::named(json, "condition");
            let expr = self.number(&c, c.get("expression")?, Scope::default())?;
            let entry = self.builder.here();
            let result = self.builder.truth(&expr);
            self.builder.emit(Op::End);
            self.builder.end_statement();
            self.program.conditionals.push(Conditional {
                name: c.text("name")?.into(),
                text: c.source_text(),
                entry,
                result,
                when_true: node(&c, &nodes, c.text_or_null("true_next")?)?,
                when_false: node(&c, &nodes, c.text_or_null("false_next")?)?,
            });
        }
        for json in o.list_or_empty("action_calls")? {
            let c = Object::named(json, "action call");
            let action = self.action(&c, c.number("action_id")?)?;
            if self.program.actions[action.index()].data_limbs > 0 {
                let name = self.program.actions[action.index()].name.clone();
                return Err(action_data(&c, name, 0, 1));
            }
            let next = node(&c, &nodes, c.text_or_null("next_node")?)?;
            self.program.calls.push(Call { action, next });
        }
        let first = node(o, &nodes, o.text_or_null("init_table")?)?;
        self.program.pipelines.push(Pipeline { name: o.text("name")?.into(), first });
        self.check_cycles(o, first)
    }

    fn nodes(&self, o: &Object<'a>) -> Read<Nodes<'a>> {
        let mut nodes = Nodes::new();
        let p = &self.program;
        for (attribute, kind, base) in [
            ("tables", "table", p.tables.len()),
            ("conditionals", "condition", p.conditionals.len()),
            ("action_calls", "action call", p.calls.len()),
        ] {
            for (i, json) in o.list_or_empty(attribute)?.iter().enumerate() {
                let item = Object::named(json, kind);
                let name = item.text("name")?;
                let number = (base + i) as u32;
                let node = match attribute {
                    "tables" => Node::Table(TableNo(number)),
                    "conditionals" => Node::Conditional(number),
                    _ => Node::Call(number),
                };
                let taken = nodes.insert(name, node).is_some()
                    || (attribute == "tables" && p.table_named(name).is_some());
                if taken {
                    let (place, name) = (item.place.clone(), name.into());
                    return Err(LoadError::Duplicate { place, kind, name });
                }
            }
        }
        Ok(nodes)
    }

    fn profiles(&mut self, o: &Object<'a>) -> Read<()> {
        for json in o.list_or_empty("action_profiles")? {
            let p = Object::named(json, "action profile");
            let name = p.text("name")?.to_owned();
            if self.program.profiles.iter().any(|known| known.name == name) {
                let place = p.place.clone();
                return Err(LoadError::Duplicate { place, kind: "action profile", name });
            }
            let selector = match p.optional("selector") {
                None => None,
                Some(json) => {
                    let selector = p.part(json);
                    let calculation =
                        self.calculation(&selector, &format!("selector of {name}"))?;
                    Some(calculation)
                }
            };
            let max_size = p.number("max_size")?;
            self.program.profiles.push(Profile { name, max_size, selector });
        }
        Ok(())
    }

    fn action(&self, o: &Object<'_>, id: u32) -> Read<ActionNo> {
        let action = self.names.actions.get(&id).copied();
        action.ok_or_else(|| o.unknown("action with id", &id.to_string()))
    }

    /// The actions of a table with their names: names repeat (`NoAction`), ids do not.
    fn table_actions(&self, o: &Object<'_>) -> Read<Vec<ActionNo>> {
        let actions = &self.program.actions;
        if o.optional("action_ids").is_some() {
            let number = |id: &Value| {
                let id = id.as_u64().and_then(|id| u32::try_from(id).ok());
                self.action(o, id.unwrap_or(u32::MAX))
            };
            return o.list("action_ids")?.iter().map(number).collect();
        }
        let number = |name: &Value| {
            let name = name.as_str().unwrap_or("?");
            let index = actions.iter().position(|a| a.name == name);
            index.map(ActionNo::from).ok_or_else(|| o.unknown("action", name))
        };
        o.list("actions")?.iter().map(number).collect()
    }

    fn table(&self, o: &Object<'_>, nodes: &Nodes<'_>) -> Read<Table> {
        let name = o.text("name")?.to_owned();
        let number = TableNo::from(self.program.tables.len());
        let key = self.key(o)?;
        let kind = table_kind(o, &key)?;
        let actions = self.table_actions(o)?;
        o.at_most("actions of a table", actions.len() as u64, u16::MAX.into())?;
        let max_size = if o.optional("max_size").is_some() { o.number("max_size")? } else { 1_024 };
        let branches = self.branches(o, nodes, &actions)?;
        let with_counters = o.truth("with_counters", false)?;
        let implementation = self.implementation(o)?;
        let counter = self.direct_counter(&name);
        let meter = self.direct_meter(o)?;
        let default = self.default_entry(o, &actions)?;
        let plain = key.fields.is_empty()
            && implementation == Implementation::Simple
            && counter.is_none()
            && meter.is_none()
            && !with_counters;
        let fixed = default.as_ref().filter(|d| plain && d.constant).map(|d| d.run.action);
        let table = Table {
            pipeline: self.program.pipelines.len() as u32,
            kind,
            implementation,
            max_size,
            counter,
            with_counters,
            meter,
            idle_timeout: o.truth("support_timeout", false)?,
            default,
            fixed,
            const_entries: self.const_entries(o, &key, &actions)?,
            next_hit: branches.hit,
            next_miss: branches.miss,
            next: branches.next,
            base_next: branches.base,
            name,
            key,
            actions,
        };
        debug_assert_eq!(number.index(), self.program.tables.len());
        Ok(table)
    }

    fn branches(&self, o: &Object<'_>, nodes: &Nodes<'_>, actions: &[ActionNo]) -> Read<Branches> {
        let mut next = vec![None; actions.len()];
        let base = node(o, nodes, o.text_or_null("base_default_next")?)?;
        let (mut hit, mut miss) = (None, None);
        let branches = o.get("next_tables")?;
        let branches =
            branches.as_object().ok_or_else(|| o.wrong("next_tables", "an object", branches))?;
        for (on, target) in branches {
            let target = match target {
                Value::Null => None,
                target => target.as_str().map(Some).ok_or_else(|| {
                    o.wrong("next_tables", "names of tables or conditions", target)
                })?,
            };
            let target = node(o, nodes, target)?;
            match on.as_str() {
                "__HIT__" => hit = Some(target),
                "__MISS__" => miss = Some(target),
                action => {
                    for (i, a) in actions.iter().enumerate() {
                        if self.program.actions[a.index()].name == action {
                            next[i] = target;
                        }
                    }
                }
            }
        }
        // Where only one of the two is given, the other continues at the base (BMv2).
        if hit.is_some() || miss.is_some() {
            hit = hit.or(Some(base));
            miss = miss.or(Some(base));
        }
        Ok(Branches { hit, miss, next, base })
    }

    fn direct_counter(&self, table: &str) -> Option<CounterNo> {
        let bound = self.names.direct_counters.get(table);
        bound.map(|n| CounterNo(*n))
    }

    fn direct_meter(&self, o: &Object<'_>) -> Read<Option<(MeterNo, FieldRef)>> {
        let Some(name) = o.text_or_null("direct_meters")? else { return Ok(None) };
        let meter = *self.names.meters.get(name).ok_or_else(|| o.unknown("meter", name))?;
        let target = self.names.meter_targets.get(&meter).copied().unwrap_or_default();
        Ok(Some((MeterNo(meter), target)))
    }

    fn implementation(&self, o: &Object<'_>) -> Read<Implementation> {
        let kind = o.text_or_null("type")?.unwrap_or("simple");
        if kind == "simple" {
            return Ok(Implementation::Simple);
        }
        if kind != "indirect" && kind != "indirect_ws" {
            return Err(o.unsupported("table of type", kind));
        }
        let name = o.text("action_profile")?;
        let index = self.program.profiles.iter().position(|p| p.name == name);
        let index = index.ok_or_else(|| o.unknown("action profile", name))?;
        let profile = ProfileNo::from(index);
        match (kind, self.program.profiles[index].selector) {
            ("indirect", _) => Ok(Implementation::Indirect(profile)),
            (_, Some(_)) => Ok(Implementation::Selector(profile)),
            (_, None) => Err(LoadError::Profile {
                place: o.place.clone(),
                table_type: kind.into(),
                profile: name.into(),
                why: "the profile has no selector",
            }),
        }
    }

    fn key(&self, o: &Object<'_>) -> Read<Key> {
        let mut packer = Packer::default();
        let mut fields = Vec::new();
        for json in o.list_or_empty("key")? {
            let item = o.part(json);
            let target = item.get("target")?;
            let kind = item.text("match_type")?;
            let (source, default_name) = if kind == "valid" {
                let name =
                    target.as_str().ok_or_else(|| o.wrong("target", "a header name", target))?;
                let header = self.header_named(&item, name)?;
                let valid = self.builder.layout.headers[header.index()].valid;
                (FieldRef { slot: valid, width: 1 }, name.to_owned())
            } else {
                let (at, _, _) = self.field_at(&item, target)?;
                let part = |i| target.get(i).and_then(Value::as_str).unwrap_or("?");
                (at, format!("{}.{}", part(0), part(1)))
            };
            let kind = match kind {
                "exact" | "valid" => MatchKind::Exact,
                "lpm" => MatchKind::Lpm,
                "ternary" | "optional" => MatchKind::Ternary,
                "range" => MatchKind::Range,
                other => return Err(item.unsupported("match type", other)),
            };
            let mask = match item.text_or_null("mask")? {
                None => None,
                Some(text) => {
                    let bytes = item.hex_bytes(text)?;
                    Some(crate::switch::phv::from_big_endian(&bytes, source.limbs()))
                }
            };
            let (limb, shift) = packer.place(source.width);
            o.at_most("64-bit words of the key", packer.limbs() as u64, MAX_KEY_LIMBS)?;
            let name = item.text_or_null("name")?.map_or(default_name, str::to_owned);
            fields.push(KeyField { name, kind, source, mask, limb, shift });
        }
        Ok(Key { fields, limbs: packer.limbs() })
    }

    /// Position in the table's actions and data of `{action_id, action_data}`.
    fn invocation(&self, o: &Object<'_>, actions: &[ActionNo]) -> Read<Invocation> {
        let action = self.action(o, o.number("action_id")?)?;
        let known = &self.program.actions[action.index()];
        let position = actions.iter().position(|a| *a == action).ok_or_else(|| {
            LoadError::ActionNotInTable { place: o.place.clone(), action: known.name.clone() }
        })?;
        let values = o.list_or_empty("action_data")?;
        if values.len() != known.params.len() {
            let (expected, found) = (known.params.len(), values.len());
            return Err(action_data(o, known.name.clone(), expected, found));
        }
        let mut data = vec![0; known.data_limbs];
        for (param, value) in known.params.iter().zip(values) {
            let limbs = value_limbs(o, value, param.width)?;
            data[param.limb as usize..param.limb as usize + limbs.len()].copy_from_slice(&limbs);
        }
        Ok(Invocation { action: position as u16, data: data.into() })
    }

    fn default_entry(&self, o: &Object<'_>, actions: &[ActionNo]) -> Read<Option<DefaultEntry>> {
        let Some(json) = o.optional("default_entry") else { return Ok(None) };
        let entry = o.part(json);
        let run = self.invocation(&entry, actions)?;
        let constant =
            entry.truth("action_const", false)? && entry.truth("action_entry_const", false)?;
        Ok(Some(DefaultEntry { run, constant }))
    }

    fn const_entries(
        &self,
        o: &Object<'_>,
        key: &Key,
        actions: &[ActionNo],
    ) -> Read<Option<Vec<ConstEntry>>> {
        if o.optional("entries").is_none() {
            return Ok(None);
        }
        let mut entries = Vec::new();
        for (i, json) in o.list("entries")?.iter().enumerate() {
            let entry = o.part(json);
            let matches = entry.list("match_key")?;
            if matches.len() != key.fields.len() {
                let place = entry.place.clone();
                let (expected, found) = (key.fields.len(), matches.len());
                return Err(LoadError::EntryKey { place, entry: i, expected, found });
            }
            let matches = matches
                .iter()
                .zip(&key.fields)
                .map(|(json, field)| const_match(&entry, json, field))
                .collect::<Read<_>>()?;
            let run = self.invocation(&entry.part(entry.get("action_entry")?), actions)?;
            let has_priority = entry.optional("priority").is_some();
            let priority = if has_priority { entry.number("priority")? } else { 0 };
            entries.push(ConstEntry { matches, run, priority });
        }
        Ok(Some(entries))
    }

    fn successors(&self, node: Node) -> Vec<Option<Node>> {
        match node {
            Node::Table(t) => {
                let table = &self.program.tables[t.index()];
                let mut all = table.next.clone();
                all.extend([table.base_next]);
                all.extend(table.next_hit);
                all.extend(table.next_miss);
                all
            }
            Node::Conditional(n) => {
                let c = &self.program.conditionals[n as usize];
                vec![c.when_true, c.when_false]
            }
            Node::Call(n) => vec![self.program.calls[n as usize].next],
        }
    }

    fn node_name(&self, node: Node) -> String {
        match node {
            Node::Table(t) => format!("table `{}`", self.program.tables[t.index()].name),
            Node::Conditional(n) => {
                format!("condition `{}`", self.program.conditionals[n as usize].name)
            }
            Node::Call(n) => format!("action call {n}"),
        }
    }

    /// Walks the graph depth first, without recursion: a program may be one long chain.
    fn check_cycles(&self, o: &Object<'_>, first: Option<Node>) -> Read<()> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            Open,
            Done,
        }
        let code = |node: Node| match node {
            Node::Table(t) => (0, t.0),
            Node::Conditional(n) => (1, n),
            Node::Call(n) => (2, n),
        };
        let mut marks = BTreeMap::new();
        let mut stack: Vec<(Node, bool)> = first.into_iter().map(|n| (n, false)).collect();
        while let Some((node, leaving)) = stack.pop() {
            if leaving {
                marks.insert(code(node), Mark::Done);
                continue;
            }
            match marks.get(&code(node)) {
                Some(Mark::Done) => continue,
                Some(Mark::Open) => {
                    let mut place = o.place.clone();
                    place.element = self.node_name(node);
                    return Err(LoadError::Cycle { place });
                }
                None => {}
            }
            marks.insert(code(node), Mark::Open);
            stack.push((node, true));
            for next in self.successors(node).into_iter().flatten() {
                if marks.get(&code(next)) != Some(&Mark::Done) {
                    stack.push((next, false));
                }
            }
        }
        Ok(())
    }
}

fn action_data(o: &Object<'_>, action: String, expected: usize, found: usize) -> LoadError {
    LoadError::ActionData { place: o.place.clone(), action, expected, found }
}

fn node(o: &Object<'_>, nodes: &Nodes<'_>, name: Option<&str>) -> Read<Option<Node>> {
    match name {
        None => Ok(None),
        Some(name) => {
            let node = nodes.get(name).copied();
            node.map(Some).ok_or_else(|| o.unknown("table or condition", name))
        }
    }
}

/// A hexadecimal value as limbs of a width.
fn value_limbs(o: &Object<'_>, json: &Value, width: u32) -> Read<Box<[u64]>> {
    let text = json.as_str().ok_or_else(|| o.wrong("value", "a hexadecimal string", json))?;
    let value = o.hex(text)?;
    let half = BigInt::from(1) << width;
    if value >= half || value < -half {
        return Err(LoadError::Value { place: o.place.clone(), text: text.into(), width });
    }
    let at = FieldRef { slot: 0, width };
    let mut limbs = vec![0; at.limbs()];
    wide::write(&mut limbs, at, &value);
    Ok(limbs.into())
}

fn const_match(entry: &Object<'_>, json: &Value, field: &KeyField) -> Read<ConstMatch> {
    let o = entry.part(json);
    let width = field.width();
    let limbs = |attribute: &'static str| value_limbs(&o, o.get(attribute)?, width);
    Ok(match field.kind {
        MatchKind::Exact => match o.get("key")? {
            Value::Bool(b) => ConstMatch::Exact(Box::new([u64::from(*b)])),
            _ => ConstMatch::Exact(limbs("key")?),
        },
        MatchKind::Lpm => {
            let length = o.number("prefix_length")?;
            o.at_most("prefix length", length.into(), width.into())?;
            ConstMatch::Lpm(limbs("key")?, length)
        }
        MatchKind::Ternary => {
            let mask = limbs("mask")?;
            let key = limbs("key")?.iter().zip(&mask).map(|(k, m)| k & m).collect();
            ConstMatch::Ternary(key, mask)
        }
        MatchKind::Range => ConstMatch::Range(limbs("start")?, limbs("end")?),
    })
}

fn table_kind(o: &Object<'_>, key: &Key) -> Read<TableKind> {
    let text = o.text("match_type")?;
    let kind = match text {
        "exact" => TableKind::Exact,
        "lpm" => TableKind::Lpm,
        "ternary" => TableKind::Ternary,
        "range" => TableKind::Range,
        other => return Err(o.unsupported("match type", other)),
    };
    let rank = |k: MatchKind| match k {
        MatchKind::Exact => 0,
        MatchKind::Lpm => 1,
        MatchKind::Ternary => 2,
        MatchKind::Range => 3,
    };
    for field in &key.fields {
        if rank(field.kind) > kind as u8 {
            return Err(LoadError::MatchType {
                place: o.place.clone(),
                table: text.into(),
                field: format!("{:?}", field.kind).to_lowercase(),
            });
        }
    }
    let lpm = key.fields.iter().filter(|f| f.kind == MatchKind::Lpm).count();
    if lpm > 1 {
        return Err(LoadError::SecondLpm { place: o.place.clone(), count: lpm });
    }
    Ok(kind)
}
