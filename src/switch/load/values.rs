//! Values and expressions of the JSON → typed trees. In: "type value" objects. Out: [`Operand`]s.

use crate::switch::{
    expr::{Binary, Cast, Expr, HeaderExpr, Place as Target, UnionExpr},
    load::{
        Loader, Scope,
        error::LoadError,
        headers::MAX_FIELD_BITS,
        read::{Object, Read, describe},
    },
    phv::{FieldRef, Header, HeaderNo, StackNo, UnionNo, UnionStackNo},
};
use serde_json::Value;

/// A value with its type.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    Number(Expr),
    Truth(Expr),
    Header(HeaderExpr),
    Union(UnionExpr),
    Stack(StackNo),
    UnionStack(UnionStackNo),
}

impl Operand {
    fn kind(&self) -> &'static str {
        match self {
            Operand::Number(_) => "a number",
            Operand::Truth(_) => "a truth value",
            Operand::Header(_) => "a header",
            Operand::Union(_) => "a header union",
            Operand::Stack(_) => "a header stack",
            Operand::UnionStack(_) => "a stack of header unions",
        }
    }
}

fn position<T>(list: &[T], is: impl Fn(&T) -> bool) -> Option<u32> {
    list.iter().position(is).and_then(|i| u32::try_from(i).ok())
}

impl Loader<'_> {
    /// The header of that name.
    pub(super) fn header_named(&self, o: &Object<'_>, name: &str) -> Read<HeaderNo> {
        self.builder.layout.header_named(name).ok_or_else(|| o.unknown("header", name))
    }

    fn header(&self, number: HeaderNo) -> &Header {
        &self.builder.layout.headers[number.index()]
    }

    /// `[header, field]` → the field's place, sign and the header.
    pub(super) fn field_at(
        &self,
        o: &Object<'_>,
        value: &Value,
    ) -> Read<(FieldRef, bool, HeaderNo)> {
        let number = self.header_named(o, o.item_text(value, 0, "[header, field]")?)?;
        let name = o.item_text(value, 1, "[header, field]")?;
        let header = self.header(number);
        if name == "$valid$" {
            return Ok((FieldRef { slot: header.valid, width: 1 }, false, number));
        }
        let field = header.fields.iter().find(|f| f.name == name);
        let field = field.ok_or_else(|| o.unknown("field", &format!("{}.{name}", header.name)))?;
        Ok((field.at, field.signed, number))
    }

    pub(super) fn stack_named(&self, o: &Object<'_>, name: &str) -> Read<StackNo> {
        position(&self.builder.layout.stacks, |s| s.name == name)
            .map(StackNo)
            .ok_or_else(|| o.unknown("header stack", name))
    }

    pub(super) fn union_stack_named(&self, o: &Object<'_>, name: &str) -> Read<UnionStackNo> {
        position(&self.builder.layout.union_stacks, |s| s.name == name)
            .map(UnionStackNo)
            .ok_or_else(|| o.unknown("header union stack", name))
    }

    /// A header with the type of what the expression names.
    pub(super) fn sample(&self, header: &HeaderExpr) -> HeaderNo {
        let layout = &self.builder.layout;
        match header {
            HeaderExpr::Known(h) => *h,
            HeaderExpr::Element(s, _) | HeaderExpr::Last(s) => layout.stacks[s.index()].headers[0],
            HeaderExpr::Member(union, m) => {
                layout.unions[self.sample_union(union).index()].members[*m as usize].1
            }
        }
    }

    fn sample_union(&self, union: &UnionExpr) -> UnionNo {
        match union {
            UnionExpr::Known(u) => *u,
            UnionExpr::Element(s, _) | UnionExpr::Last(s) => {
                self.builder.layout.union_stacks[s.index()].unions[0]
            }
        }
    }

    /// Position of a named member of the unions in a stack.
    pub(super) fn member_named(
        &self,
        o: &Object<'_>,
        stack: UnionStackNo,
        name: &str,
    ) -> Read<u32> {
        let union = self.sample_union(&UnionExpr::Last(stack));
        position(&self.builder.layout.unions[union.index()].members, |(m, _)| m == name)
            .ok_or_else(|| o.unknown("union member", name))
    }

    /// A field of a header, by position; headers known now give the field itself.
    fn access(&self, header: HeaderExpr, field: u32) -> Option<Expr> {
        let sample = self.header(self.sample(&header)).fields.get(field as usize)?;
        Some(match header {
            HeaderExpr::Known(_) => Expr::Field { at: sample.at, signed: sample.signed },
            header => {
                Expr::Dynamic { header, field, width: sample.at.width, signed: sample.signed }
            }
        })
    }

    fn named_access(&self, o: &Object<'_>, header: HeaderExpr, name: &str) -> Read<Expr> {
        let fields = &self.header(self.sample(&header)).fields;
        position(fields, |f| f.name == name)
            .and_then(|i| self.access(header, i))
            .ok_or_else(|| o.unknown("field", name))
    }

    /// Any value.
    pub(super) fn operand(&self, o: &Object<'_>, json: &Value, scope: Scope<'_>) -> Read<Operand> {
        let value = json
            .get("value")
            .ok_or(LoadError::Missing { place: o.place.clone(), attribute: "value" })?;
        let kind = json.get("type").and_then(Value::as_str).unwrap_or("?");
        let text = || value.as_str().ok_or_else(|| o.wrong("value", "a string", value));
        Ok(match kind {
            "expression" if value.get("op").is_some() => self.operation(o, value, scope)?,
            "expression" => self.operand(o, value, scope)?,
            "field" => {
                let (at, signed, _) = self.field_at(o, value)?;
                Operand::Number(Expr::Field { at, signed })
            }
            "hexstr" => Operand::Number(Expr::Const(o.hex(text()?)?)),
            "bool" => {
                let b = value.as_bool().ok_or_else(|| o.wrong("value", "true or false", value))?;
                Operand::Truth(Expr::Bool(b))
            }
            "local" | "runtime_data" => Operand::Number(self.parameter(o, value, scope)?),
            "header" => Operand::Header(HeaderExpr::Known(self.header_named(o, text()?)?)),
            "header_stack" => Operand::Stack(self.stack_named(o, text()?)?),
            "header_union" => {
                let name = text()?;
                let union = position(&self.builder.layout.unions, |u| u.name == name)
                    .ok_or_else(|| o.unknown("header union", name))?;
                Operand::Union(UnionExpr::Known(UnionNo(union)))
            }
            "header_union_stack" => Operand::UnionStack(self.union_stack_named(o, text()?)?),
            "stack_field" => {
                let stack = self.stack_named(o, o.item_text(value, 0, "[stack, field]")?)?;
                let name = o.item_text(value, 1, "[stack, field]")?;
                Operand::Number(self.named_access(o, HeaderExpr::Last(stack), name)?)
            }
            "union_stack_field" => {
                let what = "[union stack, member, field]";
                let stack = self.union_stack_named(o, o.item_text(value, 0, what)?)?;
                let member = self.member_named(o, stack, o.item_text(value, 1, what)?)?;
                let header = HeaderExpr::Member(UnionExpr::Last(stack), member);
                Operand::Number(self.named_access(o, header, o.item_text(value, 2, what)?)?)
            }
            "lookahead" if scope.parser => Operand::Number(self.lookahead(o, value)?),
            "register" => self.register_cell(o, value, scope)?,
            other => return Err(o.unsupported("value of type", other)),
        })
    }

    fn parameter(&self, o: &Object<'_>, value: &Value, scope: Scope<'_>) -> Read<Expr> {
        let index = value.as_u64().and_then(|i| usize::try_from(i).ok());
        let param = index
            .and_then(|i| scope.params.get(i))
            .ok_or_else(|| o.unknown("action parameter", &describe(value)))?;
        let slot = self.builder.layout.params + param.limb;
        Ok(Expr::Field { at: FieldRef { slot, width: param.width }, signed: false })
    }

    fn lookahead(&self, o: &Object<'_>, value: &Value) -> Read<Expr> {
        let item = |i: usize| value.get(i).and_then(Value::as_u64).and_then(|n| n.try_into().ok());
        match (item(0), item(1)) {
            (Some(at), Some(width)) if (1..=MAX_FIELD_BITS).contains(&width) && at <= 1 << 20 => {
                Ok(Expr::Lookahead { at, width })
            }
            _ => Err(o.wrong("lookahead", "[offset in bits, width in bits]", value)),
        }
    }

    fn register_cell(&self, o: &Object<'_>, value: &Value, scope: Scope<'_>) -> Read<Operand> {
        let name = o.item_text(value, 0, "[register, index]")?;
        let register =
            *self.names.registers.get(name).ok_or_else(|| o.unknown("register", name))?;
        let index = value.get(1).unwrap_or(&Value::Null);
        let index = Box::new(self.number(o, index, scope)?);
        let width = self.program.registers[register as usize].width;
        Ok(Operand::Number(Expr::Register { register, index, width }))
    }

    /// A value that must be a number (a truth value counts as 0 or 1).
    pub(super) fn number(&self, o: &Object<'_>, json: &Value, scope: Scope<'_>) -> Read<Expr> {
        match self.operand(o, json, scope)? {
            Operand::Number(e) | Operand::Truth(e) => Ok(e),
            other => Err(o.wrong("value", "a number", &Value::from(other.kind()))),
        }
    }

    /// What an assignment may write, or `None`.
    pub(super) fn target(&self, operand: &Operand) -> Option<Target> {
        match operand {
            Operand::Number(Expr::Field { at, .. })
                if at.slot >= self.builder.layout.metadata.start
                    && at.slot < self.builder.layout.reset_end =>
            {
                Some(Target::Field(*at))
            }
            Operand::Number(Expr::Dynamic { header, field, width, .. }) => {
                Some(Target::Dynamic(header.clone(), *field, *width))
            }
            _ => None,
        }
    }

    fn operation(&self, o: &Object<'_>, json: &Value, scope: Scope<'_>) -> Read<Operand> {
        let op = json.get("op").and_then(Value::as_str).unwrap_or("?");
        let null = Value::Null;
        let (left, right) = (json.get("left").unwrap_or(&null), json.get("right").unwrap_or(&null));
        match op {
            "access_field" | "access_union_header" => {
                let index = right.as_u64().and_then(|i| u32::try_from(i).ok());
                let index = index.ok_or_else(|| o.wrong("right", "a position", right))?;
                return self.access_operation(o, op, self.operand(o, left, scope)?, index);
            }
            "?" => {
                let cond = json.get("cond").unwrap_or(&null);
                return self.select(o, self.number(o, cond, scope)?, left, right, scope);
            }
            _ => {}
        }
        let y = self.operand(o, right, scope);
        if left.is_null() {
            return self.unary(o, op, y?);
        }
        self.binary(o, op, self.operand(o, left, scope)?, y?)
    }

    fn wrong_operands(&self, o: &Object<'_>, op: &str, expected: &'static str) -> LoadError {
        LoadError::OperandType { place: o.place.clone(), op: op.into(), expected }
    }

    fn access_operation(&self, o: &Object<'_>, op: &str, left: Operand, i: u32) -> Read<Operand> {
        let unknown = || o.unknown("member at position", &i.to_string());
        match (op, left) {
            ("access_field", Operand::Header(header)) => {
                self.access(header, i).map(Operand::Number).ok_or_else(unknown)
            }
            ("access_union_header", Operand::Union(union)) => {
                let members =
                    &self.builder.layout.unions[self.sample_union(&union).index()].members;
                let (_, header) = members.get(i as usize).ok_or_else(unknown)?;
                Ok(Operand::Header(match union {
                    UnionExpr::Known(_) => HeaderExpr::Known(*header),
                    union => HeaderExpr::Member(union, i),
                }))
            }
            _ => Err(self.wrong_operands(o, op, "a header or union and a position as")),
        }
    }

    fn select(
        &self,
        o: &Object<'_>,
        cond: Expr,
        left: &Value,
        right: &Value,
        scope: Scope<'_>,
    ) -> Read<Operand> {
        let choose = |a, b| Expr::Select(Box::new(cond), Box::new(a), Box::new(b));
        match (self.operand(o, left, scope)?, self.operand(o, right, scope)?) {
            (Operand::Number(a), Operand::Number(b)) => Ok(Operand::Number(choose(a, b))),
            (Operand::Truth(a), Operand::Truth(b)) => Ok(Operand::Truth(choose(a, b))),
            _ => Err(self.wrong_operands(o, "?", "two numbers or two truth values as")),
        }
    }

    fn unary(&self, o: &Object<'_>, op: &str, operand: Operand) -> Read<Operand> {
        let layout = &self.builder.layout;
        let count = |s: StackNo| Expr::Field {
            at: FieldRef { slot: layout.stacks[s.index()].next, width: 32 },
            signed: false,
        };
        Ok(match (op, operand) {
            ("+", Operand::Number(a)) => Operand::Number(a),
            ("-", Operand::Number(a)) => {
                Operand::Number(Expr::binary(Binary::Sub, Expr::number(0), a))
            }
            ("~", Operand::Number(a)) => Operand::Number(Expr::Complement(Box::new(a))),
            ("not", Operand::Truth(a)) => Operand::Truth(Expr::Not(Box::new(a))),
            ("d2b", Operand::Number(a)) => {
                Operand::Truth(Expr::binary(Binary::Ne, a, Expr::number(0)))
            }
            ("b2d", Operand::Truth(a)) => Operand::Number(a),
            ("valid", Operand::Header(h)) => Operand::Truth(Expr::Valid(h)),
            ("valid_union", Operand::Union(u)) => Operand::Truth(Expr::UnionValid(u)),
            ("size_stack", Operand::Stack(s)) => Operand::Number(count(s)),
            ("last_stack_index", Operand::Stack(s)) => {
                Operand::Number(Expr::binary(Binary::Sub, count(s), Expr::number(1)))
            }
            ("+" | "-" | "~" | "d2b", _) => return Err(self.wrong_operands(o, op, "number")),
            ("not" | "b2d", _) => return Err(self.wrong_operands(o, op, "truth value")),
            ("valid", _) => return Err(self.wrong_operands(o, op, "header")),
            ("valid_union", _) => return Err(self.wrong_operands(o, op, "header union")),
            ("size_stack" | "last_stack_index", _) => {
                return Err(self.wrong_operands(o, op, "header stack"));
            }
            _ => return Err(o.unsupported("operator", op)),
        })
    }

    fn binary(&self, o: &Object<'_>, op: &str, x: Operand, y: Operand) -> Read<Operand> {
        if let (Operand::Number(a), Operand::Number(b)) = (&x, &y)
            && let Some(result) = self.arithmetic(o, op, a, b)?
        {
            return Ok(result);
        }
        let not = |e| Operand::Truth(Expr::Not(Box::new(e)));
        Ok(match (op, x, y) {
            ("and", Operand::Truth(a), Operand::Truth(b)) => {
                Operand::Truth(Expr::binary(Binary::And, a, b))
            }
            ("or", Operand::Truth(a), Operand::Truth(b)) => {
                Operand::Truth(Expr::binary(Binary::Or, a, b))
            }
            ("==", Operand::Truth(a), Operand::Truth(b)) => {
                Operand::Truth(Expr::binary(Binary::Eq, a, b))
            }
            ("!=", Operand::Truth(a), Operand::Truth(b)) => {
                Operand::Truth(Expr::binary(Binary::Ne, a, b))
            }
            ("==", Operand::Header(a), Operand::Header(b)) => Operand::Truth(Expr::HeaderEq(a, b)),
            ("!=", Operand::Header(a), Operand::Header(b)) => not(Expr::HeaderEq(a, b)),
            ("==", Operand::Union(a), Operand::Union(b)) => Operand::Truth(Expr::UnionEq(a, b)),
            ("!=", Operand::Union(a), Operand::Union(b)) => not(Expr::UnionEq(a, b)),
            ("dereference_header_stack", Operand::Stack(s), Operand::Number(i)) => {
                Operand::Header(HeaderExpr::Element(s, Box::new(i)))
            }
            ("dereference_union_stack", Operand::UnionStack(s), Operand::Number(i)) => {
                Operand::Union(UnionExpr::Element(s, Box::new(i)))
            }
            ("and" | "or", ..) => return Err(self.wrong_operands(o, op, "truth value")),
            ("==" | "!=", ..) => return Err(self.wrong_operands(o, op, "equal types of")),
            ("dereference_header_stack" | "dereference_union_stack", ..) => {
                return Err(self.wrong_operands(o, op, "a stack and a number as"));
            }
            (op, ..) if arithmetic_operator(op).is_some() => {
                return Err(self.wrong_operands(o, op, "number"));
            }
            _ => return Err(o.unsupported("operator", op)),
        })
    }

    /// Operators on two numbers; `None` for other operators.
    fn arithmetic(&self, o: &Object<'_>, op: &str, a: &Expr, b: &Expr) -> Read<Option<Operand>> {
        let cast = match op {
            "two_comp_mod" => Some(Cast::Wrap),
            "sat_cast" => Some(Cast::Saturate),
            "usat_cast" => Some(Cast::SaturateUnsigned),
            _ => None,
        };
        if let Some(cast) = cast {
            let Expr::Const(n) = b else {
                return Err(self.wrong_operands(o, op, "a number and a constant width as"));
            };
            let width = u32::try_from(n).ok().filter(|w| (1..=MAX_FIELD_BITS).contains(w));
            let width = width.ok_or_else(|| LoadError::Width {
                place: o.place.clone(),
                name: op.into(),
                width: i64::try_from(n).unwrap_or(i64::MAX),
                limit: MAX_FIELD_BITS,
            })?;
            return Ok(Some(Operand::Number(Expr::Cast(cast, Box::new(a.clone()), width))));
        }
        let Some((binary, swap)) = arithmetic_operator(op) else { return Ok(None) };
        let (a, b) = if swap { (b.clone(), a.clone()) } else { (a.clone(), b.clone()) };
        let result = Expr::binary(binary, a, b);
        let comparison = matches!(binary, Binary::Eq | Binary::Ne | Binary::Less | Binary::LessEq);
        Ok(Some(if comparison { Operand::Truth(result) } else { Operand::Number(result) }))
    }
}

/// The operator and whether its operands change places.
fn arithmetic_operator(op: &str) -> Option<(Binary, bool)> {
    Some(match op {
        "+" => (Binary::Add, false),
        "-" => (Binary::Sub, false),
        "*" => (Binary::Mul, false),
        "/" => (Binary::Div, false),
        "%" => (Binary::Rem, false),
        "&" => (Binary::And, false),
        "|" => (Binary::Or, false),
        "^" => (Binary::Xor, false),
        "<<" => (Binary::Shl, false),
        ">>" => (Binary::Shr, false),
        "==" => (Binary::Eq, false),
        "!=" => (Binary::Ne, false),
        "<" => (Binary::Less, false),
        "<=" => (Binary::LessEq, false),
        ">" => (Binary::Less, true),
        ">=" => (Binary::LessEq, true),
        _ => return None,
    })
}
