//! Match fields as people write them: `dst=10.0.0.0/8`, `port=80&0xff`, `ttl=1..5`.
//! In: words of a command line, or match fields of the protocol. Out: the other, and whether two of them can be hit by one
//! packet. Must not know tables' entries or transports: names and widths come from P4Info.

mod form;

pub use form::Form;

use crate::p4runtime::look::{self, ValueError};
use crate::p4runtime::p4info::{Field, LookupError, MatchType, Table};
use crate::p4runtime::proto::p4::v1::FieldMatch;
use crate::p4runtime::proto::p4::v1::field_match::{
    Exact, FieldMatchType, Lpm, Optional, Range, Ternary,
};
use crate::p4runtime::value;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a word is no match on a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MatchError {
    /// No `=` in the word.
    #[error(
        "'{0}' is no match; write field=value, field=value/prefix, field=value&mask or field=lo..hi"
    )]
    NoEquals(String),
    /// No such field.
    #[error(transparent)]
    Field(#[from] LookupError),
    /// A field that was given before.
    #[error("field '{0}' is given twice; give it once")]
    Twice(String),
    /// A value that does not read.
    #[error("field '{field}' ({width} bits): {source}")]
    Value {
        /// The field.
        field: String,
        /// Its width.
        width: u32,
        /// What is wrong.
        #[source]
        source: ValueError,
    },
    /// A prefix length that is no number or too long.
    #[error("field '{field}': '/{prefix}' is no prefix of {width} bits; write /0 to /{width}")]
    Prefix {
        /// The field.
        field: String,
        /// As written.
        prefix: String,
        /// Its width.
        width: u32,
    },
    /// Ones where the mask has zeros.
    #[error("field '{field}': '{text}' has bits outside its mask; write {better}")]
    OutsideMask {
        /// The field.
        field: String,
        /// As written.
        text: String,
        /// Without these bits.
        better: String,
    },
    /// A range that ends before it starts.
    #[error("field '{field}': the range {text} is empty; write the smaller end first")]
    EmptyRange {
        /// The field.
        field: String,
        /// As written.
        text: String,
    },
    /// A key in a form that the field's match kind does not have.
    #[error("field '{field}' is matched {kind}, so '{text}' cannot be its key; write {better}")]
    WrongForm {
        /// The field.
        field: String,
        /// Match kind in words.
        kind: &'static str,
        /// As written.
        text: String,
        /// What the kind takes.
        better: String,
    },
    /// A field of a key that may not be left out.
    #[error("the key lacks the exact field '{field}'; add {field}=value")]
    Lacks {
        /// The field.
        field: String,
    },
}

/// What is asked of the fields of one table, by field id.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pattern {
    forms: BTreeMap<u32, (Form, String)>,
}

/// The match kind in words.
#[must_use]
pub const fn kind_words(kind: MatchType) -> &'static str {
    match kind {
        MatchType::Exact => "exact",
        MatchType::Lpm => "lpm",
        MatchType::Ternary => "ternary",
        MatchType::Range => "range",
        MatchType::Optional => "optional",
        MatchType::Unspecified => "other",
    }
}

impl Pattern {
    /// Reads words `field=...` against a table.
    ///
    /// # Errors
    /// Names the field and what to write instead.
    pub fn parse<S: AsRef<str>>(table: &Table, words: &[S]) -> Result<Self, MatchError> {
        let mut forms = BTreeMap::new();
        for word in words {
            let word = word.as_ref();
            let (name, text) =
                word.split_once('=').ok_or_else(|| MatchError::NoEquals(word.to_owned()))?;
            let field = table.field_loosely(name)?;
            let form = form(field, text)?;
            if forms.insert(field.id, (form, text.to_owned())).is_some() {
                return Err(MatchError::Twice(field.name.clone()));
            }
        }
        Ok(Self { forms })
    }

    /// Whether nothing is asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Whether some packet with such fields could hit an entry with this key. Fields that the key or the pattern leave
    /// out are don't-care.
    #[must_use]
    pub fn meets(&self, table: &Table, key: &[FieldMatch]) -> bool {
        self.forms.iter().all(|(id, (form, _))| {
            let Some(field) = table.field_by_id(*id) else { return false };
            let held = key.iter().find(|held| held.field_id == *id);
            held.is_none_or(|held| of_message(field, held).is_some_and(|held| form.meets(&held)))
        })
    }

    /// Whether this is exactly an entry's key.
    #[must_use]
    pub fn is_key(&self, table: &Table, key: &[FieldMatch]) -> bool {
        table.fields.iter().all(|field| {
            let held = key.iter().find(|held| held.field_id == field.id);
            let held = held.map_or(Some(Form::Any), |held| of_message(field, held));
            let wanted = self.forms.get(&field.id).map_or(&Form::Any, |(form, _)| form);
            held.is_some_and(|held| held.normal(field.width) == wanted.normal(field.width))
        })
    }

    /// The pattern as the key of one entry, for a Read.
    ///
    /// # Errors
    /// Names a field that the key lacks or whose form does not suit its match kind.
    pub fn key(&self, table: &Table) -> Result<Vec<FieldMatch>, MatchError> {
        let mut key = Vec::new();
        for field in &table.fields {
            let lacks = || MatchError::Lacks { field: field.name.clone() };
            match self.forms.get(&field.id) {
                None if field.kind == MatchType::Exact => return Err(lacks()),
                None => {}
                Some((form, text)) => key.extend(message(field, form, text)?),
            }
        }
        Ok(key)
    }
}

/// Reads the part behind `=`.
fn form(field: &Field, text: &str) -> Result<Form, MatchError> {
    if text == "*" {
        return Ok(Form::Any);
    }
    let bytes = |text: &str| {
        look::parse(text, field.width).map_err(|source| MatchError::Value {
            field: field.name.clone(),
            width: field.width,
            source,
        })
    };
    // A leading ? says "optional" to other tools; here the field's kind decides.
    let text = text.strip_prefix('?').unwrap_or(text);
    if field.width == 0 {
        // Text may contain anything, slashes and dots included (`Ethernet1/2`).
        return Ok(Form::Value(bytes(text)?));
    }
    if let Some((low, high)) = text.split_once("..") {
        let form = Form::Range { low: bytes(low)?, high: bytes(high)? };
        let (field, text) = (field.name.clone(), text.to_owned());
        return if form.is_empty() {
            Err(MatchError::EmptyRange { field, text })
        } else {
            Ok(form)
        };
    }
    if let Some((front, mask)) = text.split_once('&') {
        return inside(field, text, bytes(front)?, bytes(mask.trim_start_matches('&'))?);
    }
    if let Some((front, prefix)) = text.split_once('/') {
        let length: Option<u32> = prefix.parse().ok().filter(|length| *length <= field.width);
        let length = length.ok_or_else(|| MatchError::Prefix {
            field: field.name.clone(),
            prefix: prefix.to_owned(),
            width: field.width,
        })?;
        return inside(field, text, bytes(front)?, form::prefix_mask(field.width, length));
    }
    Ok(Form::Value(bytes(text)?))
}

/// A value with a mask that covers it.
fn inside(field: &Field, text: &str, value: Vec<u8>, mask: Vec<u8>) -> Result<Form, MatchError> {
    let kept: Vec<u8> = value.iter().zip(&mask).map(|(value, mask)| value & mask).collect();
    if kept != value {
        let better = show_masked(field, &kept, &mask);
        let (field, text) = (field.name.clone(), text.to_owned());
        return Err(MatchError::OutsideMask { field, text, better });
    }
    Ok(Form::Masked { value, mask })
}

/// A form as one field of a key; `None` for don't-care.
fn message(field: &Field, form: &Form, text: &str) -> Result<Option<FieldMatch>, MatchError> {
    let short = |bytes: &[u8]| value::canonical(bytes).to_vec();
    let wrong = |better: &str| MatchError::WrongForm {
        field: field.name.clone(),
        kind: kind_words(field.kind),
        text: text.to_owned(),
        better: format!("{}={better}", field.name),
    };
    let (form, full) = (form.normal(field.width), form::prefix_mask(field.width, field.width));
    let kind = match (field.kind, form) {
        (MatchType::Exact, Form::Value(value)) => {
            FieldMatchType::Exact(Exact { value: short(&value) })
        }
        (MatchType::Exact, _) => return Err(wrong("value")),
        (_, Form::Any) => return Ok(None),
        (MatchType::Optional, Form::Value(value)) => {
            FieldMatchType::Optional(Optional { value: short(&value) })
        }
        (MatchType::Optional, _) => return Err(wrong("value or leave it out")),
        (MatchType::Lpm, Form::Value(value)) => {
            // Widths are at most 65,536.
            FieldMatchType::Lpm(Lpm { value: short(&value), prefix_len: field.width as i32 })
        }
        (MatchType::Lpm, Form::Masked { value, mask }) => {
            let length =
                form::prefix_length(field.width, &mask).ok_or_else(|| wrong("value/length"))?;
            FieldMatchType::Lpm(Lpm { value: short(&value), prefix_len: length as i32 })
        }
        (MatchType::Lpm, Form::Range { .. }) => return Err(wrong("value/length")),
        (MatchType::Ternary, Form::Value(value)) => {
            FieldMatchType::Ternary(Ternary { value: short(&value), mask: short(&full) })
        }
        (MatchType::Ternary, Form::Masked { value, mask }) => {
            FieldMatchType::Ternary(Ternary { value: short(&value), mask: short(&mask) })
        }
        (MatchType::Ternary, Form::Range { .. }) => return Err(wrong("value&mask")),
        (MatchType::Range, Form::Value(value)) => {
            FieldMatchType::Range(Range { low: short(&value), high: short(&value) })
        }
        (MatchType::Range, Form::Range { low, high }) => {
            FieldMatchType::Range(Range { low: short(&low), high: short(&high) })
        }
        (MatchType::Range, Form::Masked { .. }) => return Err(wrong("lo..hi")),
        (MatchType::Unspecified, _) => return Err(wrong("nothing: P4Runtime has no form for it")),
    };
    Ok(Some(FieldMatch { field_id: field.id, field_match_type: Some(kind) }))
}

/// A field of a key as a form; `None` when it does not fit the field (wrong kind, too wide, a prefix too long).
#[must_use]
pub fn of_message(field: &Field, held: &FieldMatch) -> Option<Form> {
    let width = field.width as usize;
    let bytes = |bytes: &[u8]| {
        if width == 0 { Some(bytes.to_vec()) } else { value::padded(bytes, width) }
    };
    let form = match (field.kind, held.field_match_type.as_ref()?) {
        (MatchType::Exact, FieldMatchType::Exact(exact)) => Form::Value(bytes(&exact.value)?),
        (MatchType::Optional, FieldMatchType::Optional(optional)) => {
            Form::Value(bytes(&optional.value)?)
        }
        (MatchType::Lpm, FieldMatchType::Lpm(lpm)) => {
            let length =
                u32::try_from(lpm.prefix_len).ok().filter(|length| *length <= field.width)?;
            Form::Masked { value: bytes(&lpm.value)?, mask: form::prefix_mask(field.width, length) }
        }
        (MatchType::Ternary, FieldMatchType::Ternary(ternary)) => {
            Form::Masked { value: bytes(&ternary.value)?, mask: bytes(&ternary.mask)? }
        }
        (MatchType::Range, FieldMatchType::Range(range)) => {
            Form::Range { low: bytes(&range.low)?, high: bytes(&range.high)? }
        }
        _ => return None,
    };
    Some(form)
}

/// A form as a person would write it.
#[must_use]
pub fn show(field: &Field, form: &Form) -> String {
    let print = |bytes: &[u8]| look::print(field.look, field.width, bytes);
    match form {
        Form::Any => "*".to_owned(),
        Form::Value(value) => print(value),
        Form::Masked { value, mask } => show_masked(field, value, mask),
        Form::Range { low, high } => format!("{}..{}", print(low), print(high)),
    }
}

fn show_masked(field: &Field, value: &[u8], mask: &[u8]) -> String {
    let print = |bytes: &[u8]| look::print(field.look, field.width, bytes);
    let length = form::prefix_length(field.width, mask);
    match (field.kind, field.look, length) {
        (MatchType::Lpm, _, Some(length)) => format!("{}/{length}", print(value)),
        (_, _, Some(length)) if length == field.width => print(value),
        (_, look::Look::Ipv4 | look::Look::Ipv6, Some(length)) => {
            format!("{}/{length}", print(value))
        }
        (_, look::Look::Number | look::Look::Hex | look::Look::Text, _) => {
            format!("{}&{}", look::hex(value), look::hex(mask))
        }
        _ => format!("{}&{}", print(value), print(mask)),
    }
}

#[cfg(test)]
mod tests;
