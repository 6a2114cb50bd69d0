//! Names and values of STF lines against a program. In: words, fields. Out: numbers, masks, match fields, or what to write
//! instead. Must not know commands or a switch.

use crate::p4runtime::proto::p4::v1::field_match;
use crate::switch::program::{KeyField, MatchKind};
use num_bigint::BigUint;

/// Names listed in a message at most.
const LISTED_MAX: usize = 8;

/// What could have been meant, or what there is.
fn near<'a>(wanted: &str, names: impl Iterator<Item = &'a String> + Clone) -> String {
    let near = crate::p4runtime::p4info::nearest(wanted, names.clone().map(|name| short(name)));
    if !near.is_empty() {
        return format!("; did you mean {}?", near.join(" or "));
    }
    let known: Vec<&str> = names.take(LISTED_MAX).map(String::as_str).collect();
    if known.is_empty() {
        "; it has none".to_owned()
    } else {
        format!("; it has {}", known.join(", "))
    }
}

/// The last part of a name.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A number that a field or parameter of `width` bits can hold.
pub(super) fn fitting(what: &str, width: u32, value: BigUint) -> Result<BigUint, String> {
    if value.bits() > u64::from(width) {
        return Err(format!(
            "{what} has {width} bits and {value:#x} needs {}; write a smaller number",
            value.bits()
        ));
    }
    Ok(value)
}

/// Exact name, else the only name that ends so.
pub(super) fn named<'a>(
    names: impl Iterator<Item = &'a String> + Clone,
    kind: &str,
    wanted: &str,
) -> Result<usize, String> {
    if let Some(at) = names.clone().position(|name| name == wanted) {
        return Ok(at);
    }
    let names_again = names.clone();
    let mut found = names.enumerate().filter(|(_, name)| name.ends_with(wanted));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some((_, a)), Some((_, b))) => {
            Err(format!("{kind} `{wanted}` may be `{a}` or `{b}`; write more of the name"))
        }
        (None, _) => {
            Err(format!("the program has no {kind} `{wanted}`{}", near(wanted, names_again)))
        }
    }
}

/// Match fields are named like `data.f1`, `h$0.x` (element 0 of a stack) or by the end of their name.
pub(super) fn key_named(fields: &[KeyField], name: &str) -> Option<usize> {
    let mut wanted = String::new();
    let mut rest = name;
    while let Some(at) = rest.find('$') {
        let digits = rest[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        wanted.push_str(&rest[..at]);
        if digits > 0 {
            wanted.push_str(&format!("[{}]", &rest[at + 1..at + 1 + digits]));
        } else {
            wanted.push('$');
        }
        rest = &rest[at + 1 + digits..];
    }
    wanted.push_str(rest);
    let valid = wanted.strip_suffix(".valid").map(|header| format!("{header}.$valid$"));
    let all = [
        Some(wanted.clone()),
        Some(format!("{wanted}.$valid$")),
        Some(format!("{wanted}$")),
        valid,
    ];
    let exact = |w: &String| fields.iter().position(|f| f.name == *w);
    let ends = |w: &String| fields.iter().position(|f| f.name.ends_with(&format!(".{w}")));
    let mut all = all.into_iter().flatten();
    all.clone().find_map(|w| exact(&w)).or_else(|| all.find_map(|w| ends(&w)))
}

fn radix(text: &str) -> (&str, u32) {
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'b' | b'B', ..] => (&text[2..], 2),
        [b'0', b'o' | b'O', ..] => (&text[2..], 8),
        _ => (text, 10),
    }
}

pub(super) fn value_of(text: &str) -> Result<BigUint, String> {
    let (digits, base) = radix(text);
    let value = BigUint::parse_bytes(digits.as_bytes(), base);
    value.ok_or_else(|| format!("`{text}` is not a number; write it as 7, 0x1f or 0b101"))
}

/// Digits with `*` → value and mask. Digits that are not written do not count either.
fn masked(text: &str) -> Result<(BigUint, BigUint), String> {
    let (digits, base) = radix(text);
    let ones = char::from_digit(base - 1, base).unwrap_or('f');
    let value = digits.replace('*', "0");
    let mask: String = digits.chars().map(|c| if c == '*' { '0' } else { ones }).collect();
    if base == 10 {
        return Err(format!(
            "`{text}`: a ternary value has a base; write 0x1f, 0b101 or 0o17, with * for any digit"
        ));
    }
    let parse = |t: &str| BigUint::parse_bytes(t.as_bytes(), base);
    parse(&value)
        .zip(parse(&mask))
        .ok_or_else(|| format!("`{text}` is not a number; write it as 0x1f, with * for any digit"))
}

fn bytes(value: &BigUint) -> Vec<u8> {
    value.to_bytes_be()
}

/// The match of one field; `None` is "any".
pub(super) fn field_match(
    field: &KeyField,
    value: Option<&str>,
) -> Result<Option<field_match::FieldMatchType>, String> {
    use field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};
    let Some(text) = value else {
        return Ok((field.kind == MatchKind::Exact)
            .then(|| FieldMatchType::Exact(Exact { value: vec![0] })));
    };
    let fits =
        |value: BigUint| fitting(&format!("match field `{}`", field.name), field.width(), value);
    Ok(Some(match field.kind {
        MatchKind::Exact => FieldMatchType::Exact(Exact { value: bytes(&fits(value_of(text)?)?) }),
        MatchKind::Lpm => {
            let (value, length) = match text.split_once('/') {
                Some((value, length)) => {
                    let known = length.parse().ok().filter(|length: &u32| *length <= field.width());
                    let length = known.ok_or_else(|| {
                        let (name, width) = (&field.name, field.width());
                        format!("match field `{name}`: `{length}` is no prefix length; write 0 to {width}")
                    })?;
                    (fits(value_of(value)?)?, length)
                }
                None => {
                    let written = radix(text).0.chars().filter(|c| *c != '*').count() as u32;
                    (fits(value_of(&text.replace('*', "0"))?)?, (4 * written).min(field.width()))
                }
            };
            if length == 0 {
                return Ok(None);
            }
            FieldMatchType::Lpm(Lpm { value: bytes(&value), prefix_len: length as i32 })
        }
        MatchKind::Ternary => {
            let (value, mask) = masked(text)?;
            let value = fits(value)?;
            if mask == BigUint::ZERO {
                return Ok(None);
            }
            let full = (BigUint::from(1_u8) << field.width()) - 1_u8;
            FieldMatchType::Ternary(Ternary { value: bytes(&value), mask: bytes(&(mask & full)) })
        }
        MatchKind::Range => {
            let (low, high) = text.split_once("->").unwrap_or((text, text));
            let (low, high) = (fits(value_of(low)?)?, fits(value_of(high)?)?);
            if low > high {
                let name = &field.name;
                return Err(format!(
                    "match field `{name}`: the range {text} is empty; write LOW->HIGH"
                ));
            }
            FieldMatchType::Range(Range { low: bytes(&low), high: bytes(&high) })
        }
    }))
}
