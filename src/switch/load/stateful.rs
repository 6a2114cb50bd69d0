//! Everything that is neither header nor control flow: arrays, lists, calculations, checksums, metadata. In: JSON.
//! Out: the corresponding parts of the program.

use crate::switch::{
    code::Op,
    expr::wide,
    load::{
        Loader, Scope,
        error::LoadError,
        headers::MAX_FIELD_BITS,
        read::{Object, Read},
    },
    phv::FieldRef,
    program::{
        Calculation, Checksum, CoreErrors, Counter, FieldList, Input, Intrinsic, Meter, Register,
        ValueSet,
    },
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Most register limbs, counter cells and meter cells of a program, each: 128 MB of registers.
const MAX_CELLS: u64 = 1 << 24;
/// Members of a value set when the JSON names no size.
const DEFAULT_SET_SIZE: u32 = 1_024;

fn insert(
    map: &mut BTreeMap<String, u32>,
    o: &Object<'_>,
    kind: &'static str,
    number: usize,
) -> Read<String> {
    let name = o.text("name")?.to_owned();
    if map.insert(name.clone(), number as u32).is_some() {
        return Err(LoadError::Duplicate { place: o.place.clone(), kind, name });
    }
    Ok(name)
}

impl<'a> Loader<'a> {
    pub(super) fn stateful(&mut self) -> Read<()> {
        if let Some(instance) = self.root.list_or_empty("extern_instances")?.first() {
            let o = Object::named(instance, "extern instance");
            return Err(o.unsupported("extern type", o.text("type")?));
        }
        self.errors()?;
        self.counters()?;
        self.meters()?;
        self.registers()?;
        for json in self.root.list_or_empty("parse_vsets")? {
            let o = Object::named(json, "value set");
            let name =
                insert(&mut self.names.value_sets, &o, "value set", self.program.value_sets.len())?;
            let width = o.number("compressed_bitwidth")?;
            let max_size = match o.optional("max_size") {
                Some(_) => o.number("max_size")?,
                None => DEFAULT_SET_SIZE,
            };
            self.program.value_sets.push(ValueSet { name, width, max_size });
        }
        self.program.learn_lists = self.lists("learn_lists", "digest")?;
        self.program.field_lists = self.lists("field_lists", "field list")?;
        for json in self.root.list_or_empty("calculations")? {
            let o = Object::named(json, "calculation");
            let number = self.calculation(&o, o.text("name")?)?;
            insert(&mut self.names.calculations, &o, "calculation", number as usize)?;
        }
        Ok(())
    }

    fn errors(&mut self) -> Read<()> {
        for pair in self.root.list_or_empty("errors")? {
            let name = self.root.item_text(pair, 0, "errors: [name, value]")?;
            let value = pair.get(1).and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok());
            let value = value.ok_or_else(|| self.root.wrong("errors", "[name, value]", pair))?;
            self.program.errors.push((name.to_owned(), value));
        }
        // Core errors that the program does not number follow its largest number, as in BMv2.
        let mut next = self.program.errors.iter().map(|(_, v)| v.saturating_add(1)).max();
        let mut value = |name: &str| {
            if let Some((_, v)) = self.program.errors.iter().find(|(n, _)| n == name) {
                return *v;
            }
            let v = next.unwrap_or(0);
            next = Some(v.saturating_add(1));
            v
        };
        self.program.core_errors = CoreErrors {
            no_error: value("NoError"),
            packet_too_short: value("PacketTooShort"),
            no_match: value("NoMatch"),
            stack_out_of_bounds: value("StackOutOfBounds"),
            header_too_short: value("HeaderTooShort"),
            parser_timeout: value("ParserTimeout"),
            parser_invalid_argument: value("ParserInvalidArgument"),
        };
        Ok(())
    }

    fn cells(
        &self,
        o: &Object<'_>,
        what: &'static str,
        sizes: impl Iterator<Item = u64>,
    ) -> Read<()> {
        o.at_most(what, sizes.fold(0, u64::saturating_add), MAX_CELLS)
    }

    fn counters(&mut self) -> Read<()> {
        for json in self.root.list_or_empty("counter_arrays")? {
            let o = Object::named(json, "counter");
            let number = self.program.counters.len();
            let name = insert(&mut self.names.counters, &o, "counter", number)?;
            let direct = o.truth("is_direct", false)?;
            if direct {
                let table = o.text("binding")?.to_owned();
                self.names.direct_counters.insert(table, number as u32);
            }
            // The size of a direct counter is its table's.
            let size = if direct { 0 } else { o.number("size")? };
            self.program.counters.push(Counter { name, size, table: None });
            self.cells(&o, "counter cells", self.program.counters.iter().map(|c| c.size.into()))?;
        }
        Ok(())
    }

    fn meters(&mut self) -> Read<()> {
        for json in self.root.list_or_empty("meter_arrays")? {
            let o = Object::named(json, "meter");
            let number = self.program.meters.len();
            let name = insert(&mut self.names.meters, &o, "meter", number)?;
            let direct = o.truth("is_direct", false)?;
            if direct && let Some(target) = o.optional("result_target") {
                let (at, _, _) = self.field_at(&o, target)?;
                self.names.meter_targets.insert(number as u32, at);
            }
            let size = if direct { 0 } else { o.number("size")? };
            let bytes = match o.text("type")? {
                "bytes" => true,
                "packets" => false,
                other => return Err(o.unsupported("meter type", other)),
            };
            let rates =
                if o.optional("rate_count").is_some() { o.number("rate_count")? } else { 2 };
            self.program.meters.push(Meter { name, size, bytes, rates, table: None });
            self.cells(&o, "meter cells", self.program.meters.iter().map(|m| m.size.into()))?;
        }
        Ok(())
    }

    fn registers(&mut self) -> Read<()> {
        for json in self.root.list_or_empty("register_arrays")? {
            let o = Object::named(json, "register");
            let name =
                insert(&mut self.names.registers, &o, "register", self.program.registers.len())?;
            let (size, width) = (o.number("size")?, o.number("bitwidth")?);
            if !(1..=MAX_FIELD_BITS).contains(&width) {
                let (place, limit) = (o.place.clone(), MAX_FIELD_BITS);
                return Err(LoadError::Width { place, name, width: width.into(), limit });
            }
            self.program.registers.push(Register { name, size, width });
            let limbs = |r: &Register| u64::from(r.size).saturating_mul(r.limbs() as u64);
            self.cells(&o, "64-bit words of registers", self.program.registers.iter().map(limbs))?;
        }
        Ok(())
    }

    fn lists(&mut self, attribute: &'static str, kind: &'static str) -> Read<Vec<FieldList>> {
        let mut lists: Vec<FieldList> = Vec::new();
        for json in self.root.list_or_empty(attribute)? {
            let o = Object::named(json, kind);
            let id = o.number("id")?;
            if lists.iter().any(|l| l.id == id) {
                let (place, name) = (o.place.clone(), id.to_string());
                return Err(LoadError::Duplicate { place, kind, name });
            }
            let mut fields = Vec::new();
            for element in o.list("elements")? {
                self.list_element(&o, element, &mut fields)?;
            }
            let name = o.text_or_null("name")?.unwrap_or_default().to_owned();
            lists.push(FieldList { id, name, fields });
        }
        Ok(lists)
    }

    fn list_element(
        &mut self,
        o: &Object<'_>,
        json: &Value,
        fields: &mut Vec<FieldRef>,
    ) -> Read<()> {
        let value = json.get("value").unwrap_or(&Value::Null);
        match json.get("type").and_then(Value::as_str).unwrap_or("?") {
            "field" => fields.push(self.field_at(o, value)?.0),
            "header" => {
                let name = value.as_str().unwrap_or("?");
                let header = self.header_named(o, name)?;
                let header = &self.builder.layout.headers[header.index()];
                fields.extend(header.fields.iter().map(|f| f.at));
            }
            "hexstr" => {
                let text = value.as_str().ok_or_else(|| o.wrong("value", "a string", value))?;
                let bits = json.get("bitwidth").and_then(Value::as_u64);
                let digits = text.trim_start_matches("0x").len() as u64 * 4;
                let width = u32::try_from(bits.unwrap_or(digits)).unwrap_or(u32::MAX);
                o.at_most("bits of a constant", width.into(), MAX_FIELD_BITS.into())?;
                let number = o.hex(text)?;
                fields.push(self.builder.constant_field(&number, width.max(1)));
            }
            other => return Err(o.unsupported("list element of type", other)),
        }
        Ok(())
    }

    /// Adds `{algo, input}` to the program's calculations and gives its position.
    pub(super) fn calculation(&mut self, o: &Object<'_>, name: &str) -> Read<u32> {
        let algorithm = o.text("algo")?;
        let algorithm =
            algorithm.parse().map_err(|()| o.unsupported("hash algorithm", algorithm))?;
        let mut inputs = Vec::new();
        for json in o.list("input")? {
            inputs.push(self.input(o, json)?);
        }
        let calculations = &mut self.program.calculations;
        calculations.push(Calculation { name: name.to_owned(), algorithm, inputs });
        Ok(calculations.len() as u32 - 1)
    }

    fn input(&self, o: &Object<'_>, json: &Value) -> Read<Input> {
        let value = json.get("value").unwrap_or(&Value::Null);
        Ok(match json.get("type").and_then(Value::as_str).unwrap_or("?") {
            "field" => {
                let (at, _, header) = self.field_at(o, value)?;
                let header = &self.builder.layout.headers[header.index()];
                let varbit = header.varbit.filter(|v| header.fields[v.field as usize].at == at);
                Input::Field { at, valid: header.valid, length: varbit.map(|v| v.length) }
            }
            "hexstr" => {
                let text = value.as_str().ok_or_else(|| o.wrong("value", "a string", value))?;
                let width = json.get("bitwidth").and_then(Value::as_u64);
                let width = width.ok_or_else(|| LoadError::Missing {
                    place: o.place.clone(),
                    attribute: "bitwidth",
                })?;
                o.at_most("bits of a constant", width, MAX_FIELD_BITS.into())?;
                let at = FieldRef { slot: 0, width: width as u32 };
                let mut limbs = vec![0; at.limbs()];
                if width > 0 {
                    wide::write(&mut limbs, at, &o.hex(text)?);
                }
                Input::Constant(limbs.into(), at.width)
            }
            "header" => Input::Header(self.header_named(o, value.as_str().unwrap_or("?"))?),
            "payload" => Input::Payload,
            other => return Err(o.unsupported("input of type", other)),
        })
    }

    pub(super) fn checksums(&mut self) -> Read<()> {
        for json in self.root.list_or_empty("checksums")? {
            let o = Object::named(json, "checksum");
            let kind = o.text_or_null("type")?.unwrap_or("generic");
            if kind != "generic" {
                return Err(o.unsupported("checksum type", kind));
            }
            let (target, _, header) = self.field_at(&o, o.get("target")?)?;
            let name = o.text("calculation")?;
            let calculation =
                *self.names.calculations.get(name).ok_or_else(|| o.unknown("calculation", name))?;
            let condition = match o.optional("if_cond") {
                None => None,
                Some(json) => {
                    let expr = self.number(&o, json, Scope::default())?;
                    let entry = self.builder.here();
                    let result = self.builder.truth(&expr);
                    self.builder.emit(Op::End);
                    self.builder.end_statement();
                    Some((entry, result))
                }
            };
            self.program.checksums.push(Checksum {
                name: o.text("name")?.into(),
                target,
                valid: self.builder.layout.headers[header.index()].valid,
                calculation,
                condition,
                verify: o.truth("verify", true)?,
                update: o.truth("update", true)?,
            });
        }
        Ok(())
    }

    /// Finds the target's metadata: aliases first, then the names themselves. Links direct arrays to their tables.
    pub(super) fn intrinsic(&mut self) -> Read<()> {
        let mut aliases = BTreeMap::new();
        for alias in self.root.list_or_empty("field_aliases")? {
            let name = self.root.item_text(alias, 0, "field_aliases")?;
            let value = alias.get(1).unwrap_or(&Value::Null);
            aliases.insert(name, self.field_at(&self.root, value)?.0);
        }
        let layout = &self.builder.layout;
        let find = |header: &str, field: &str| {
            let alias = aliases.get(format!("{header}.{field}").as_str()).copied();
            alias.or_else(|| layout.field_named(header, field)).unwrap_or_default()
        };
        let (s, i, q) = ("standard_metadata", "intrinsic_metadata", "queueing_metadata");
        self.program.intrinsic = Intrinsic {
            ingress_port: find(s, "ingress_port"),
            egress_spec: find(s, "egress_spec"),
            egress_port: find(s, "egress_port"),
            packet_length: find(s, "packet_length"),
            instance_type: find(s, "instance_type"),
            parser_error: find(s, "parser_error"),
            checksum_error: find(s, "checksum_error"),
            ingress_global_timestamp: find(i, "ingress_global_timestamp"),
            egress_global_timestamp: find(i, "egress_global_timestamp"),
            mcast_grp: find(i, "mcast_grp"),
            egress_rid: find(i, "egress_rid"),
            priority: find(i, "priority"),
            enq_timestamp: find(q, "enq_timestamp"),
            enq_qdepth: find(q, "enq_qdepth"),
            deq_timedelta: find(q, "deq_timedelta"),
            deq_qdepth: find(q, "deq_qdepth"),
            qid: find(q, "qid"),
        };
        if self.program.intrinsic.egress_spec.width == 0 {
            let name = "standard_metadata.egress_spec";
            return Err(LoadError::NotV1model { kind: "field", name });
        }
        self.link_direct();
        Ok(())
    }

    fn link_direct(&mut self) {
        let program = &mut self.program;
        for (i, table) in program.tables.iter().enumerate() {
            if let Some(counter) = table.counter {
                let counter = &mut program.counters[counter.index()];
                (counter.table, counter.size) = (Some(i.into()), table.max_size);
            }
            if let Some((meter, _)) = table.meter {
                let meter = &mut program.meters[meter.index()];
                (meter.table, meter.size) = (Some(i.into()), table.max_size);
            }
        }
    }
}
