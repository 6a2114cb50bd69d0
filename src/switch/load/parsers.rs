//! Parsers and deparsers. In: JSON. Out: `Program::parsers`, `states`, `deparsers` and their code.

use crate::switch::{
    code::Op,
    deparse::Deparser,
    expr::{Expr, Place as Target},
    load::{
        Loader, Scope,
        actions::Call,
        error::LoadError,
        pipelines::Packer,
        read::{Object, Read},
        values::Operand,
    },
    parse::{KeyPart, MAX_SET_LIMBS, Matcher, ParseState, Parser, StateNo, Transition},
    phv::{HeaderNo, mask},
    program::ValueSetNo,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where extracted bits go.
enum Destination {
    Header(HeaderNo),
    Stack(u32, HeaderNo),
    UnionStack(u32, u32, HeaderNo),
}

impl Destination {
    fn sample(&self) -> HeaderNo {
        match self {
            Destination::Header(h)
            | Destination::Stack(_, h)
            | Destination::UnionStack(_, _, h) => *h,
        }
    }
}

impl<'a> Loader<'a> {
    pub(super) fn parsers(&mut self) -> Read<()> {
        for json in self.root.list("parsers")? {
            let object = Object::named(json, "parser");
            let states = object.list("parse_states")?;
            let mut numbers = BTreeMap::new();
            for (i, state) in states.iter().enumerate() {
                let state = Object::named(state, "parser state");
                let name = state.text("name")?;
                let number = StateNo::from(self.program.states.len() + i);
                if numbers.insert(name, number).is_some() {
                    let (place, name) = (state.place.clone(), name.into());
                    return Err(LoadError::Duplicate { place, kind: "parser state", name });
                }
            }
            let first = object.text("init_state")?;
            let first = *numbers.get(first).ok_or_else(|| object.unknown("parser state", first))?;
            for state in states {
                let state = Object::named(state, "parser state");
                let state = self.parse_state(&state, &numbers)?;
                self.program.states.push(state);
            }
            let name = object.text("name")?.to_owned();
            self.program.parsers.push(Parser { name, first });
        }
        if self.program.parsers.is_empty() {
            return Err(LoadError::NotV1model { kind: "parser", name: "parser" });
        }
        Ok(())
    }

    fn parse_state(
        &mut self,
        o: &Object<'_>,
        states: &BTreeMap<&str, StateNo>,
    ) -> Read<ParseState> {
        let entry = self.builder.here();
        for json in o.list_or_empty("parser_ops")? {
            let call = Call::new(o, json, Scope { params: &[], parser: true })?;
            self.parser_op(&call)?;
            self.builder.end_statement();
        }
        let mut packer = Packer::default();
        let mut key = Vec::new();
        for part in o.list_or_empty("transition_key")? {
            let scope = Scope { params: &[], parser: true };
            let expr = self.number(o, part, scope)?;
            let width = width_of(&expr).ok_or_else(|| {
                o.wrong("transition_key", "a field, stack field or lookahead", part)
            })?;
            let at = self.builder.field(&expr, width);
            let (limb, shift) = packer.place(width);
            key.push(KeyPart { at, limb, shift });
        }
        self.builder.emit(Op::End);
        self.builder.end_statement();
        let key_limbs = packer.limbs();
        let mut transitions = Vec::new();
        let mut default = None;
        for json in o.list_or_empty("transitions")? {
            let item = o.part(json);
            match self.transition(&item, &key, key_limbs, states)? {
                Transition { when: Matcher::Default, next } => default = next,
                // Without a key there is nothing to compare: only the default counts (BMv2).
                _ if key.is_empty() => {}
                transition => transitions.push(transition),
            }
        }
        transitions.push(Transition { when: Matcher::Default, next: default });
        Ok(ParseState { name: o.text("name")?.into(), entry, key, key_limbs, transitions })
    }

    fn transition(
        &self,
        o: &Object<'_>,
        key: &[KeyPart],
        limbs: usize,
        states: &BTreeMap<&str, StateNo>,
    ) -> Read<Transition> {
        let next = match o.text_or_null("next_state")? {
            None => None,
            Some(name) => Some(*states.get(name).ok_or_else(|| o.unknown("parser state", name))?),
        };
        let kind = o.text_or_null("type")?.unwrap_or("hexstr");
        let value = o.text_or_null("value")?;
        let when = match (kind, value) {
            ("default", _) | ("hexstr", Some("default")) => Matcher::Default,
            ("hexstr", _) => {
                let value = self.key_bytes(o, o.text("value")?, key, limbs)?;
                let mask = match o.text_or_null("mask")? {
                    Some(text) => self.key_bytes(o, text, key, limbs)?,
                    None => full_mask(key, limbs),
                };
                let value = value.iter().zip(&mask).map(|(v, m)| v & m).collect();
                Matcher::Value { value, mask }
            }
            ("parse_vset", _) => self.set_matcher(o, o.text("value")?, key)?,
            (other, _) => return Err(o.unsupported("transition of type", other)),
        };
        Ok(Transition { when, next })
    }

    fn set_matcher(&self, o: &Object<'_>, name: &str, key: &[KeyPart]) -> Read<Matcher> {
        let set = *self.names.value_sets.get(name).ok_or_else(|| o.unknown("value set", name))?;
        if o.optional("mask").is_some() {
            return Err(o.unsupported("mask on value set", name));
        }
        let key_bits: u32 = key.iter().map(|p| p.at.width).sum();
        let set_bits = self.program.value_sets[set as usize].width;
        if key_bits != set_bits || key_bits as usize > 64 * MAX_SET_LIMBS {
            let (place, set) = (o.place.clone(), name.into());
            return Err(LoadError::ValueSetWidth { place, set, set_bits, key_bits });
        }
        Ok(Matcher::Set(ValueSetNo(set)))
    }

    /// Byte-padded parts → packed key.
    fn key_bytes(
        &self,
        o: &Object<'_>,
        text: &str,
        key: &[KeyPart],
        limbs: usize,
    ) -> Read<Box<[u64]>> {
        let bytes = o.hex_bytes(text)?;
        let expected = key.iter().map(|p| p.at.width.div_ceil(8) as usize).sum();
        if bytes.len() != expected && !key.is_empty() {
            let place = o.place.clone();
            return Err(LoadError::TransitionWidth { place, expected, found: bytes.len() });
        }
        let mut out = vec![0; limbs];
        let mut rest = bytes.as_slice();
        for part in key {
            let (own, after) = rest.split_at(part.at.width.div_ceil(8) as usize);
            rest = after;
            let value = crate::switch::phv::from_big_endian(own, part.at.limbs());
            for (i, limb) in value.iter().enumerate() {
                out[part.limb as usize + i] |= limb << part.shift;
            }
        }
        Ok(out.into())
    }

    fn parser_op(&mut self, call: &Call<'_>) -> Read<()> {
        let o = &call.object;
        let null = Value::Null;
        let parameter = |i: usize| call.parameters.get(i).unwrap_or(&null);
        match call.op {
            "extract" => self.extract(o, parameter(0), None),
            "extract_VL" => {
                let length = self.number(o, parameter(1), call.scope)?;
                self.extract(o, parameter(0), Some(&length))
            }
            "set" => {
                let target = self.operand(o, parameter(0), call.scope)?;
                let target = self.target(&target).filter(|t| matches!(t, Target::Field(_)));
                let target =
                    target.ok_or_else(|| o.wrong("parameters", "a field to set", parameter(0)))?;
                let value = self.number(o, parameter(1), call.scope)?;
                self.builder.assign(&target, &value);
                Ok(())
            }
            "verify" => {
                let condition = match self.operand(o, parameter(0), call.scope)? {
                    Operand::Truth(e) | Operand::Number(e) => e,
                    _ => return Err(o.wrong("parameters", "a truth value", parameter(0))),
                };
                let error = match parameter(1).as_i64() {
                    Some(n) => Expr::number(n),
                    None => self.number(o, parameter(1), call.scope)?,
                };
                let (a, b) = (self.builder.truth(&condition), self.builder.value(&error));
                self.builder.emit(Op::Verify { a, b });
                Ok(())
            }
            "shift" => {
                let bytes = parameter(0).as_u64().and_then(|n| n.checked_mul(8));
                let bits = bytes.ok_or_else(|| o.wrong("parameters", "bytes", parameter(0)))?;
                let a = self.builder.constant(bits);
                self.builder.emit(Op::Advance { a });
                Ok(())
            }
            "advance" => {
                let bits = self.number(o, parameter(0), call.scope)?;
                let a = self.builder.value(&bits);
                self.builder.emit(Op::Advance { a });
                Ok(())
            }
            "primitive" => {
                let inner = Call::new(o, parameter(0), call.scope)?;
                self.primitive(&inner)
            }
            other => Err(o.unsupported("parser operation", other)),
        }
    }

    fn extract(&mut self, o: &Object<'_>, json: &Value, length: Option<&Expr>) -> Read<()> {
        let into = self.extract_target(o, json)?;
        let header = &self.builder.layout.headers[into.sample().index()];
        if header.metadata {
            return Err(o.wrong("parameters", "a header, not metadata", json));
        }
        if header.varbit.is_some() != length.is_some() {
            let expected = if length.is_some() {
                "a header with a variable-length field"
            } else {
                "a header of fixed length (use extract_VL)"
            };
            return Err(o.wrong("parameters", expected, json));
        }
        let varbit = length.is_some();
        let a = match length {
            Some(expr) => self.builder.value(expr),
            None => 0,
        };
        self.builder.emit(match into {
            Destination::Header(h) if varbit => Op::ExtractVarbit { h: h.0, a },
            Destination::Header(h) => Op::Extract { h: h.0 },
            Destination::Stack(s, _) => Op::ExtractNext { s, varbit, a },
            Destination::UnionStack(s, m, _) => Op::ExtractUnionNext { s, m, varbit, a },
        });
        Ok(())
    }

    fn extract_target(&self, o: &Object<'_>, json: &Value) -> Read<Destination> {
        let kind = json.get("type").and_then(Value::as_str).unwrap_or("?");
        let value = json.get("value").unwrap_or(&Value::Null);
        let text = || value.as_str().ok_or_else(|| o.wrong("parameters", "a name", json));
        let layout = &self.builder.layout;
        Ok(match kind {
            "regular" => Destination::Header(self.header_named(o, text()?)?),
            "stack" => {
                let stack = self.stack_named(o, text()?)?;
                Destination::Stack(stack.0, layout.stacks[stack.index()].headers[0])
            }
            "union_stack" => {
                let what = "[union stack, member]";
                let stack = self.union_stack_named(o, o.item_text(value, 0, what)?)?;
                let member = self.member_named(o, stack, o.item_text(value, 1, what)?)?;
                let union = layout.union_stacks[stack.index()].unions[0];
                let header = layout.unions[union.index()].members[member as usize].1;
                Destination::UnionStack(stack.0, member, header)
            }
            _ => return Err(o.wrong("parameters", "regular, stack or union_stack", json)),
        })
    }

    pub(super) fn deparsers(&mut self) -> Read<()> {
        for json in self.root.list("deparsers")? {
            let o = Object::named(json, "deparser");
            let mut order = Vec::new();
            for name in o.list("order")? {
                let name = name
                    .as_str()
                    .ok_or_else(|| o.wrong("order", "a list of header names", name))?;
                order.push(self.header_named(&o, name)?);
            }
            let primitives = o.list_or_empty("primitives")?;
            let entry = (!primitives.is_empty()).then(|| self.builder.here());
            for json in primitives {
                // p4c wraps them like parser operations or writes them plainly.
                let outer = Call::new(&o, json, Scope::default())?;
                let call = match outer.op {
                    "primitive" => match outer.parameters.first() {
                        Some(inner) => Call::new(&o, inner, Scope::default())?,
                        None => return Err(o.wrong("primitives", "a call", json)),
                    },
                    _ => outer,
                };
                self.primitive(&call)?;
                self.builder.end_statement();
            }
            if entry.is_some() {
                self.builder.emit(Op::End);
            }
            self.program.deparsers.push(Deparser { name: o.text("name")?.into(), order, entry });
        }
        Ok(())
    }
}

fn width_of(expr: &Expr) -> Option<u32> {
    match expr {
        Expr::Field { at, .. } => Some(at.width),
        Expr::Dynamic { width, .. } | Expr::Lookahead { width, .. } => Some(*width),
        _ => None,
    }
}

fn full_mask(key: &[KeyPart], limbs: usize) -> Box<[u64]> {
    let mut out = vec![0; limbs];
    for part in key {
        let count = part.at.limbs();
        for i in 0..count {
            let own = if i + 1 == count { part.at.top_mask() } else { mask(64) };
            out[part.limb as usize + i] |= own << part.shift;
        }
    }
    out.into()
}
