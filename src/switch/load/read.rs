//! Reading JSON attributes with errors that say where. In: JSON values. Out: typed values or a [`LoadError`].

use crate::switch::load::error::{LoadError, Place};
use num_bigint::BigInt;
use serde_json::Value;

/// Result of reading.
pub type Read<T> = Result<T, LoadError>;

/// An object of the JSON and where it is.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// The JSON object (any other type reads as an object without attributes).
    pub json: &'a Value,
    /// For errors.
    pub place: Place,
}

/// What a JSON value is, for error messages; long values are cut.
pub fn describe(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn source_of(json: &Value) -> Option<String> {
    let info = json.get("source_info")?;
    let file = info.get("filename")?.as_str()?;
    let line = info.get("line")?.as_u64()?;
    Some(format!("{file}({line})"))
}

impl<'a> Object<'a> {
    /// The whole program.
    pub fn root(json: &'a Value) -> Self {
        Self { json, place: Place { element: "the program".into(), source: None } }
    }

    /// A named element, e.g. `table`.
    pub fn named(json: &'a Value, kind: &str) -> Self {
        let name = json.get("name").and_then(Value::as_str).unwrap_or("?");
        Self { json, place: Place { element: format!("{kind} `{name}`"), source: source_of(json) } }
    }

    /// A part of this element: keeps the element's name, takes the part's source position if it has one.
    pub fn part(&self, json: &'a Value) -> Self {
        let mut place = self.place.clone();
        if let Some(source) = source_of(json) {
            place.source = Some(source);
        }
        Self { json, place }
    }

    /// The text of this element in the P4 source, where the compiler tells.
    pub fn source_text(&self) -> Option<String> {
        Some(self.json.get("source_info")?.get("source_fragment")?.as_str()?.to_owned())
    }

    /// An attribute that must be there.
    pub fn get(&self, attribute: &'static str) -> Read<&'a Value> {
        self.json
            .get(attribute)
            .ok_or_else(|| LoadError::Missing { place: self.place.clone(), attribute })
    }

    /// An attribute that may be missing or null.
    pub fn optional(&self, attribute: &str) -> Option<&'a Value> {
        self.json.get(attribute).filter(|v| !v.is_null())
    }

    /// The error for an attribute of the wrong type.
    pub fn wrong(&self, attribute: &str, expected: &'static str, found: &Value) -> LoadError {
        LoadError::WrongType {
            place: self.place.clone(),
            attribute: attribute.into(),
            expected,
            found: describe(found),
        }
    }

    /// A string attribute.
    pub fn text(&self, attribute: &'static str) -> Read<&'a str> {
        let value = self.get(attribute)?;
        value.as_str().ok_or_else(|| self.wrong(attribute, "a string", value))
    }

    /// A string attribute or null/missing.
    pub fn text_or_null(&self, attribute: &'static str) -> Read<Option<&'a str>> {
        match self.optional(attribute) {
            None => Ok(None),
            Some(value) => {
                value.as_str().map(Some).ok_or_else(|| self.wrong(attribute, "a string", value))
            }
        }
    }

    /// A non-negative integer attribute.
    pub fn number(&self, attribute: &'static str) -> Read<u32> {
        let value = self.get(attribute)?;
        value
            .as_u64()
            .and_then(|n| u32::try_from(n).ok())
            .ok_or_else(|| self.wrong(attribute, "an integer from 0 to 4294967295", value))
    }

    /// A truth attribute; missing or null is `default`.
    pub fn truth(&self, attribute: &'static str, default: bool) -> Read<bool> {
        match self.optional(attribute) {
            None => Ok(default),
            Some(value) => {
                value.as_bool().ok_or_else(|| self.wrong(attribute, "true or false", value))
            }
        }
    }

    /// A list attribute.
    pub fn list(&self, attribute: &'static str) -> Read<&'a [Value]> {
        let value = self.get(attribute)?;
        value.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong(attribute, "a list", value))
    }

    /// A list attribute; missing or null is empty.
    pub fn list_or_empty(&self, attribute: &'static str) -> Read<&'a [Value]> {
        match self.optional(attribute) {
            None => Ok(&[]),
            Some(value) => value
                .as_array()
                .map(Vec::as_slice)
                .ok_or_else(|| self.wrong(attribute, "a list", value)),
        }
    }

    /// An element of a list as a string.
    pub fn item_text(&self, list: &'a Value, index: usize, what: &'static str) -> Read<&'a str> {
        list.get(index).and_then(Value::as_str).ok_or_else(|| self.wrong(what, what, list))
    }

    /// A hexadecimal number with an optional sign.
    pub fn hex(&self, text: &str) -> Read<BigInt> {
        let error = || LoadError::Hex { place: self.place.clone(), text: text.into() };
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let digits = digits.strip_prefix("0x").unwrap_or(digits);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(error());
        }
        let value = BigInt::parse_bytes(digits.as_bytes(), 16).ok_or_else(error)?;
        Ok(if negative { -value } else { value })
    }

    /// A hexadecimal string as bytes, one per two digits.
    pub fn hex_bytes(&self, text: &str) -> Read<Vec<u8>> {
        let error = || LoadError::Hex { place: self.place.clone(), text: text.into() };
        let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
        if digits.is_empty() {
            return Err(error());
        }
        let nibble = |b: u8| (b as char).to_digit(16).map(|d| d as u8).ok_or_else(error);
        let (odd, even) = digits.split_at(digits.len() % 2);
        let mut bytes = Vec::with_capacity(digits.len().div_ceil(2));
        for b in odd {
            bytes.push(nibble(*b)?);
        }
        for pair in even.chunks_exact(2) {
            bytes.push(nibble(pair[0])? << 4 | nibble(pair[1])?);
        }
        Ok(bytes)
    }

    /// An error about a reference to something undefined.
    pub fn unknown(&self, kind: &'static str, name: &str) -> LoadError {
        LoadError::Unknown { place: self.place.clone(), kind, name: name.into() }
    }

    /// An error about something valid that this switch lacks.
    pub fn unsupported(&self, what: &'static str, name: &str) -> LoadError {
        LoadError::Unsupported { place: self.place.clone(), what, name: name.into() }
    }

    /// Refuses sizes that would let a small file take all memory.
    pub fn at_most(&self, what: &'static str, found: u64, limit: u64) -> Read<()> {
        if found <= limit {
            return Ok(());
        }
        Err(LoadError::TooMany { place: self.place.clone(), what, found, limit })
    }
}
