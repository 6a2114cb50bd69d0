//! Actions and primitive calls → code. In: JSON. Out: `Program::actions` and instructions.

use crate::switch::{
    code::Op,
    expr::{Binary, Expr, HeaderExpr, Place as Target},
    load::{
        Loader, Scope,
        error::LoadError,
        headers::MAX_FIELD_BITS,
        read::{Object, Read, describe},
        values::Operand,
    },
    phv::{FieldRef, HeaderNo},
    program::{Action, ActionNo, Message, Param},
};
use serde_json::Value;

/// Most limbs of action data: entries hold it, so it must stay small.
const MAX_DATA_LIMBS: u64 = 4_096;

/// One primitive call.
pub(super) struct Call<'a> {
    pub(super) object: Object<'a>,
    pub(super) op: &'a str,
    pub(super) parameters: &'a [Value],
    pub(super) scope: Scope<'a>,
}

impl<'a> Call<'a> {
    pub(super) fn new(outer: &Object<'a>, json: &'a Value, scope: Scope<'a>) -> Read<Self> {
        let object = outer.part(json);
        let op = object.text("op")?;
        let parameters = object.list_or_empty("parameters")?;
        Ok(Self { object, op, parameters, scope })
    }

    fn takes(&self, count: usize, expected: &'static str) -> Read<()> {
        if self.parameters.len() == count {
            return Ok(());
        }
        let (place, op) = (self.object.place.clone(), self.op.to_owned());
        Err(LoadError::ParameterCount { place, op, expected, found: self.parameters.len() })
    }

    fn wrong(&self, position: usize, expected: &'static str) -> LoadError {
        LoadError::ParameterType {
            place: self.object.place.clone(),
            op: self.op.into(),
            position: position + 1,
            expected,
            found: self.parameters.get(position).map_or_else(|| "missing".into(), describe),
        }
    }
}

impl<'a> Loader<'a> {
    /// All actions: first their data, so that its place is known, then their code.
    pub(super) fn actions(&mut self) -> Read<()> {
        let list = self.root.list("actions")?;
        for json in list {
            let object = Object::named(json, "action");
            let (params, data_limbs) = parameters(&object)?;
            let number = ActionNo::from(self.program.actions.len());
            let name = object.text("name")?.to_owned();
            if self.names.actions.insert(object.number("id")?, number).is_some() {
                let place = object.place.clone();
                return Err(LoadError::Duplicate { place, kind: "action id", name });
            }
            self.program.actions.push(Action { name, params, data_limbs, entry: 0 });
        }
        let limbs = self.program.actions.iter().map(|a| a.data_limbs).max().unwrap_or(0);
        let layout = &mut self.builder.layout;
        layout.params = layout.initial.len() as u32;
        layout.params_limbs = limbs as u32;
        layout.initial.resize(layout.initial.len() + limbs, 0);
        for (i, json) in list.iter().enumerate() {
            let object = Object::named(json, "action");
            let params = self.program.actions[i].params.clone();
            let primitives = object.list_or_empty("primitives")?;
            self.program.actions[i].entry = self.code(&object, primitives, &params)?;
        }
        Ok(())
    }

    /// Code of an action; jumps count primitives.
    fn code(&mut self, object: &Object<'_>, primitives: &[Value], params: &[Param]) -> Read<u32> {
        let entry = self.builder.here();
        let mut starts = Vec::with_capacity(primitives.len() + 1);
        let mut jumps = Vec::new();
        for (i, json) in primitives.iter().enumerate() {
            starts.push(self.builder.here());
            let scope = Scope { params, parser: false };
            let call = Call::new(object, json, scope)?;
            match call.op {
                "_jump" | "_jump_if_zero" => {
                    let target = self.jump(&call, primitives.len())?;
                    jumps.push((self.builder.here() - 1, target, target <= i));
                }
                _ => self.primitive(&call)?,
            }
            self.builder.end_statement();
        }
        starts.push(self.builder.here());
        self.builder.emit(Op::End);
        for (at, target, back) in jumps {
            let (to, op) = (starts[target], &mut self.builder.code[at as usize]);
            *op = match (*op, back) {
                (Op::JumpIfZero { a, .. }, true) => Op::JumpBackIfZero { a, to },
                (Op::JumpIfZero { a, .. }, false) => Op::JumpIfZero { a, to },
                (_, true) => Op::JumpBack { to },
                (_, false) => Op::Jump { to },
            };
        }
        Ok(entry)
    }

    /// Emits a jump without its target and gives the target.
    fn jump(&mut self, call: &Call<'_>, length: usize) -> Read<usize> {
        let conditional = call.op == "_jump_if_zero";
        call.takes(1 + usize::from(conditional), if conditional { "2" } else { "1" })?;
        let position = usize::from(conditional);
        let target = match self.numeric(call, position)? {
            Expr::Const(n) => n,
            _ => return Err(call.wrong(position, "a constant")),
        };
        let place = || call.object.place.clone();
        let out = || LoadError::Jump {
            place: place(),
            target: i64::try_from(&target).unwrap_or(i64::MAX),
            length,
        };
        let target = usize::try_from(&target).map_err(|_| out())?;
        if target > length {
            return Err(out());
        }
        if conditional {
            let condition = self.numeric(call, 0)?;
            let a = self.builder.truth(&condition);
            self.builder.emit(Op::JumpIfZero { a, to: 0 });
        } else {
            self.builder.emit(Op::Jump { to: 0 });
        }
        Ok(target)
    }

    fn any(&self, call: &Call<'_>, position: usize) -> Read<Operand> {
        let json = call.parameters.get(position).unwrap_or(&Value::Null);
        self.operand(&call.object, json, call.scope)
    }

    fn numeric(&self, call: &Call<'_>, position: usize) -> Read<Expr> {
        match self.any(call, position)? {
            Operand::Number(e) | Operand::Truth(e) => Ok(e),
            _ => Err(call.wrong(position, "a number")),
        }
    }

    fn written(&self, call: &Call<'_>, position: usize) -> Read<Target> {
        let operand = self.any(call, position)?;
        self.target(&operand).ok_or_else(|| call.wrong(position, "a field that can be written"))
    }

    fn header_at(&self, call: &Call<'_>, position: usize) -> Read<HeaderExpr> {
        match self.any(call, position)? {
            Operand::Header(h) => Ok(h),
            _ => Err(call.wrong(position, "a header")),
        }
    }

    fn slot(&mut self, call: &Call<'_>, position: usize) -> Read<u32> {
        let expr = self.numeric(call, position)?;
        Ok(self.builder.value(&expr))
    }

    /// An array or calculation named by a parameter.
    fn named(&self, call: &Call<'_>, position: usize, kind: &'static str) -> Read<u32> {
        let json = call.parameters.get(position);
        let is = json.and_then(|j| j.get("type")).and_then(Value::as_str) == Some(kind);
        let name = json.and_then(|j| j.get("value")).and_then(Value::as_str).filter(|_| is);
        let name = name.ok_or_else(|| call.wrong(position, kind))?;
        let map = match kind {
            "register_array" => &self.names.registers,
            "counter_array" => &self.names.counters,
            "meter_array" => &self.names.meters,
            _ => &self.names.calculations,
        };
        map.get(name).copied().ok_or_else(|| call.object.unknown(kind, name))
    }

    /// Code for one primitive call other than jumps.
    pub(super) fn primitive(&mut self, call: &Call<'_>) -> Read<()> {
        match call.op {
            "assign" | "modify_field" => {
                call.takes(2, "2")?;
                let (target, value) = (self.written(call, 0)?, self.numeric(call, 1)?);
                self.builder.assign(&target, &value);
                Ok(())
            }
            "add_header"
            | "add_header_fast"
            | "remove_header"
            | "assign_header"
            | "copy_header"
            | "assign_VL"
            | "push"
            | "pop"
            | "assign_union"
            | "assign_header_stack"
            | "assign_union_stack" => self.header_primitive(call),
            "register_read"
            | "register_write"
            | "count"
            | "execute_meter"
            | "modify_field_with_hash_based_offset"
            | "modify_field_rng_uniform" => self.extern_primitive(call),
            "log_msg" => self.log(call),
            "exit" => {
                self.builder.emit(Op::Exit);
                Ok(())
            }
            "no_op" => Ok(()),
            "add_to_field"
            | "subtract_from_field"
            | "add"
            | "subtract"
            | "bit_and"
            | "bit_or"
            | "bit_xor"
            | "shift_left"
            | "shift_right" => self.arithmetic_primitive(call),
            "assert" | "assume" => {
                call.takes(1, "1")?;
                let condition = self.numeric(call, 0)?;
                let a = self.builder.truth(&condition);
                self.builder.emit(Op::Assert { a });
                Ok(())
            }
            _ => self.packet_primitive(call),
        }
    }

    /// Arithmetic of compilers from before there was `assign`: `f += a`, or `f = a op b`.
    fn arithmetic_primitive(&mut self, call: &Call<'_>) -> Read<()> {
        let in_place = call.op.ends_with("_field");
        call.takes(if in_place { 2 } else { 3 }, if in_place { "2" } else { "3" })?;
        let target = self.written(call, 0)?;
        let first = usize::from(!in_place);
        let (a, b) = (self.numeric(call, first)?, self.numeric(call, first + 1)?);
        let op = match call.op {
            "add_to_field" | "add" => Binary::Add,
            "bit_and" => Binary::And,
            "bit_or" => Binary::Or,
            "bit_xor" => Binary::Xor,
            "shift_left" => Binary::Shl,
            "shift_right" => Binary::Shr,
            _ => Binary::Sub,
        };
        self.builder.assign(&target, &Expr::binary(op, a, b));
        Ok(())
    }

    /// Requests to the target.
    fn packet_primitive(&mut self, call: &Call<'_>) -> Read<()> {
        let op = match call.op {
            "mark_to_drop" => {
                call.takes(1, "1")?;
                let header = self.header_at(call, 0)?;
                self.drop_op(&header)
            }
            "drop" => Op::Drop,
            "clone_ingress_pkt_to_egress" | "clone_egress_pkt_to_egress" => {
                call.takes(2, "2")?;
                let (a, b) = (self.slot(call, 0)?, self.slot(call, 1)?);
                match call.op {
                    "clone_ingress_pkt_to_egress" => Op::CloneIngress { a, b },
                    _ => Op::CloneEgress { a, b },
                }
            }
            "generate_digest" => {
                call.takes(2, "2")?;
                Op::Digest { a: self.slot(call, 1)? }
            }
            "resubmit" | "recirculate" | "truncate" => {
                call.takes(1, "1")?;
                let a = self.slot(call, 0)?;
                match call.op {
                    "resubmit" => Op::Resubmit { a },
                    "recirculate" => Op::Recirculate { a },
                    _ => Op::Truncate { a },
                }
            }
            other => return Err(call.object.unsupported("primitive", other)),
        };
        self.builder.emit(op);
        Ok(())
    }

    /// Where an action takes the standard metadata as a parameter, p4c works on a copy and copies it back behind.
    fn drop_op(&self, header: &HeaderExpr) -> Op {
        let HeaderExpr::Known(number) = header else { return Op::Drop };
        let header = &self.builder.layout.headers[number.index()];
        let find = |name: &str| header.fields.iter().find(|f| f.name == name).map(|f| f.at);
        match find("egress_spec").filter(|_| header.name != "standard_metadata") {
            Some(spec) => {
                let group = find("mcast_grp").unwrap_or_default();
                Op::DropIn { d: spec.slot, dw: spec.width, a: group.slot, aw: group.width }
            }
            None => Op::Drop,
        }
    }

    fn header_primitive(&mut self, call: &Call<'_>) -> Read<()> {
        match call.op {
            "add_header" | "add_header_fast" | "remove_header" => {
                call.takes(1, "1")?;
                let add = call.op != "remove_header";
                let op = match (self.header_at(call, 0)?, add) {
                    (HeaderExpr::Known(h), true) => Op::SetValid { h: h.0 },
                    (HeaderExpr::Known(h), false) => Op::SetInvalid { h: h.0 },
                    (header, true) => Op::SetValidAt { a: self.builder.header(&header) },
                    (header, false) => Op::SetInvalidAt { a: self.builder.header(&header) },
                };
                self.builder.emit(op);
            }
            "assign_header" | "copy_header" => {
                call.takes(2, "2")?;
                let (d, a) = (self.header_at(call, 0)?, self.header_at(call, 1)?);
                self.same_type(call, self.sample(&d), self.sample(&a))?;
                let (d, a) = (self.builder.header(&d), self.builder.header(&a));
                self.builder.emit(Op::AssignHeader { d, a });
            }
            "assign_VL" => {
                call.takes(2, "2")?;
                let (d, a) = (self.varbit(call, 0)?, self.varbit(call, 1)?);
                self.builder.emit(Op::AssignVarbit { d: d.0, a: a.0 });
            }
            "push" | "pop" => {
                call.takes(2, "2")?;
                let a = self.slot(call, 1)?;
                let op = match (self.any(call, 0)?, call.op == "push") {
                    (Operand::Stack(s), true) => Op::Push { s: s.0, a },
                    (Operand::Stack(s), false) => Op::Pop { s: s.0, a },
                    (Operand::UnionStack(s), true) => Op::PushUnion { s: s.0, a },
                    (Operand::UnionStack(s), false) => Op::PopUnion { s: s.0, a },
                    _ => return Err(call.wrong(0, "a header stack")),
                };
                self.builder.emit(op);
            }
            _ => return self.aggregate_assignment(call),
        }
        Ok(())
    }

    fn aggregate_assignment(&mut self, call: &Call<'_>) -> Read<()> {
        call.takes(2, "2")?;
        let layout = &self.builder.layout;
        let op = match (self.any(call, 0)?, self.any(call, 1)?) {
            (Operand::Union(d), Operand::Union(a)) => {
                let (d, a) = (self.builder.union(&d), self.builder.union(&a));
                Op::AssignUnion { d, a }
            }
            (Operand::Stack(d), Operand::Stack(a)) => {
                let first = |s: usize| layout.stacks[s].headers[0];
                self.same_type(call, first(d.index()), first(a.index()))?;
                Op::AssignStack { d: d.0, a: a.0 }
            }
            (Operand::UnionStack(d), Operand::UnionStack(a)) => {
                Op::AssignUnionStack { d: d.0, a: a.0 }
            }
            _ => return Err(call.wrong(0, "two unions, two stacks or two stacks of unions")),
        };
        self.builder.emit(op);
        Ok(())
    }

    fn same_type(&self, call: &Call<'_>, d: HeaderNo, a: HeaderNo) -> Read<()> {
        let type_of = |h: HeaderNo| &self.builder.layout.headers[h.index()].type_name;
        let (left, right) = (type_of(d), type_of(a));
        if left == right {
            return Ok(());
        }
        let place = call.object.place.clone();
        Err(LoadError::TypeMismatch { place, left: left.clone(), right: right.clone() })
    }

    /// The header whose varbit field a parameter names.
    fn varbit(&self, call: &Call<'_>, position: usize) -> Read<HeaderNo> {
        let expected = "a variable-length field";
        let value = call.parameters[position].get("value").unwrap_or(&Value::Null);
        if call.parameters[position].get("type").and_then(Value::as_str) != Some("field") {
            return Err(call.wrong(position, expected));
        }
        let (at, _, header) = self.field_at(&call.object, value)?;
        let header_fields = &self.builder.layout.headers[header.index()];
        match header_fields.varbit {
            Some(v) if header_fields.fields[v.field as usize].at == at => Ok(header),
            _ => Err(call.wrong(position, expected)),
        }
    }

    /// Runs `emit` on the field that a primitive writes; fields of headers chosen at run time go through a temporary.
    fn write_to(&mut self, target: &Target, emit: impl FnOnce(&mut Self, FieldRef)) {
        match target {
            Target::Field(at) => emit(self, *at),
            Target::Dynamic(header, field, width) => {
                // The temporary starts with the present value: a primitive that writes nothing leaves it.
                let present = Expr::Dynamic {
                    header: header.clone(),
                    field: *field,
                    width: *width,
                    signed: false,
                };
                let at = self.builder.field(&present, *width);
                emit(self, at);
                self.builder.assign(target, &Expr::Field { at, signed: false });
            }
        }
    }

    fn extern_primitive(&mut self, call: &Call<'_>) -> Read<()> {
        let width = |at: FieldRef| at.width.min(64) as u8;
        match call.op {
            "register_read" => {
                call.takes(3, "3")?;
                let target = self.written(call, 0)?;
                let n = self.named(call, 1, "register_array")?;
                let a = self.slot(call, 2)?;
                self.write_to(&target, |this, at| {
                    this.builder.emit(Op::RegisterRead { d: at.slot, dw: at.width, n, a });
                });
            }
            "register_write" => {
                call.takes(3, "3")?;
                let n = self.named(call, 0, "register_array")?;
                let a = self.slot(call, 1)?;
                let value = self.numeric(call, 2)?;
                let b = self.builder.field(&value, self.program.registers[n as usize].width);
                self.builder.emit(Op::RegisterWrite { n, a, b: b.slot, bw: b.width });
            }
            "count" => {
                call.takes(2, "2")?;
                let n = self.named(call, 0, "counter_array")?;
                let a = self.slot(call, 1)?;
                self.builder.emit(Op::Count { n, a });
            }
            "execute_meter" => {
                call.takes(3, "3")?;
                let n = self.named(call, 0, "meter_array")?;
                let a = self.slot(call, 1)?;
                let target = self.written(call, 2)?;
                self.write_to(&target, |this, at| {
                    this.builder.emit(Op::Meter { w: width(at), d: at.slot, n, a });
                });
            }
            "modify_field_with_hash_based_offset" => {
                call.takes(4, "4")?;
                let target = self.written(call, 0)?;
                let b = self.slot(call, 1)?;
                let n = self.named(call, 2, "calculation")?;
                let c = self.slot(call, 3)?;
                self.write_to(&target, |this, at| {
                    this.builder.emit(Op::Hash { w: width(at), d: at.slot, n, b, c });
                });
            }
            _ => {
                call.takes(3, "3")?;
                let target = self.written(call, 0)?;
                let (b, c) = (self.slot(call, 1)?, self.slot(call, 2)?);
                self.write_to(&target, |this, at| {
                    this.builder.emit(Op::Random { w: width(at), d: at.slot, b, c });
                });
            }
        }
        Ok(())
    }

    fn log(&mut self, call: &Call<'_>) -> Read<()> {
        let text = call.parameters.first().and_then(|p| p.get("value")).and_then(Value::as_str);
        let format = text.ok_or_else(|| call.wrong(0, "a string"))?.to_owned();
        let mut values = Vec::new();
        if let Some(vector) = call.parameters.get(1) {
            let value = vector.get("value").unwrap_or(&Value::Null);
            // p4c writes an empty vector as an object.
            let none = value.as_object().filter(|object| object.is_empty()).map(|_| &[][..]);
            let list = value.as_array().map(Vec::as_slice).or(none);
            for json in list.ok_or_else(|| call.wrong(1, "a vector of parameters"))? {
                let expr = self.number(&call.object, json, call.scope)?;
                values.push(match &expr {
                    Expr::Field { at, .. } => *at,
                    other => FieldRef { slot: self.builder.value(other), width: 64 },
                });
            }
        }
        let n = self.program.messages.len() as u32;
        self.program.messages.push(Message { format, values });
        self.builder.emit(Op::Log { n });
        Ok(())
    }
}

/// Names, widths and places of the parameters, and the length of the data.
fn parameters(object: &Object<'_>) -> Read<(Vec<Param>, usize)> {
    let mut params = Vec::new();
    let mut limb = 0_u32;
    for json in object.list_or_empty("runtime_data")? {
        let item = object.part(json);
        let (name, width) = (item.text("name")?.to_owned(), item.number("bitwidth")?);
        if !(1..=MAX_FIELD_BITS).contains(&width) {
            let (place, limit) = (object.place.clone(), MAX_FIELD_BITS);
            return Err(LoadError::Width { place, name, width: width.into(), limit });
        }
        params.push(Param { name, width, limb });
        limb += width.div_ceil(64);
        object.at_most("limbs of action data", limb.into(), MAX_DATA_LIMBS)?;
    }
    Ok((params, limb as usize))
}
