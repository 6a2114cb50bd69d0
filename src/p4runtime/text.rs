//! Reads protobuf text format, the form in which p4c writes P4Info and people write entries.
//! In: a message's full name and a text. Out: the message, or an error with line, column and remedy. Must not know what
//! the message means: it is driven by the descriptors of `proto`, so it reads every message of the protocol.
//!
//! The text is turned into wire bytes, which the generated code then decodes; this keeps one definition of each message.
//! Reading text needs no reflection library: descriptors are built in for gRPC reflection anyway, and this is all that
//! would be used of one.

mod lex;
mod schema;
mod wire;

use lex::{Lexer, Token};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use schema::{Field, MessageType, Schema};
use std::collections::BTreeMap;
use std::fmt;

/// Deepest nesting of messages accepted. P4Info needs about eight; the bound keeps a hostile text off the stack.
const DEPTH_MAX: usize = 64;

/// A place in a text, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct TextError {
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
}

/// What is wrong at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum What {
    /// A character that starts nothing.
    #[error("unexpected character {0:?}; use quotes around text")]
    Character(char),
    /// A string without its closing quote on the same line.
    #[error("string is not closed; end it with {0}")]
    OpenString(char),
    /// A backslash followed by something unknown.
    #[error(
        "bad escape '\\{0}'; use \\n, \\r, \\t, \\\", \\', \\\\, \\x41, \\101, \\u0041 or \\U00000041"
    )]
    Escape(String),
    /// Something else was needed here.
    #[error("expected {wanted}, found {found}")]
    Expected {
        /// In words.
        wanted: &'static str,
        /// As written, or "the end".
        found: String,
    },
    /// A field that the message does not have.
    #[error("{message} has no field '{field}'{}", suggest(.near))]
    UnknownField {
        /// Full name of the message.
        message: String,
        /// The field as written.
        field: String,
        /// Names most like it.
        near: Vec<String>,
    },
    /// A field that can be given once was given again.
    #[error("field '{field}' was already given in line {line}; give it once")]
    Twice {
        /// The field.
        field: String,
        /// Where it was given first.
        line: usize,
    },
    /// Two fields of which only one may be given.
    #[error("'{field}' excludes '{other}' given in line {line}; give one of them")]
    Excluded {
        /// The second field.
        field: String,
        /// The first field.
        other: String,
        /// Where it was given.
        line: usize,
    },
    /// A number that does not fit the field.
    #[error("{value} does not fit '{field}': it must lie between {low} and {high}")]
    Range {
        /// The number as written.
        value: String,
        /// The field.
        field: String,
        /// Smallest value.
        low: i128,
        /// Largest value.
        high: i128,
    },
    /// A name that the enum does not have.
    #[error("{message} has no value '{name}'; use one of {known}")]
    UnknownValue {
        /// Full name of the enum.
        message: String,
        /// The name as written.
        name: String,
        /// All names.
        known: String,
    },
    /// A string field whose bytes are no UTF-8.
    #[error("field '{0}' must be valid UTF-8; only fields of type bytes may hold other bytes")]
    NotUtf8(String),
    /// A message type that nobody has heard of.
    #[error("message type '{0}' is not part of P4Runtime; give one such as p4.v1.TableEntry")]
    UnknownMessage(String),
    /// Too many open braces.
    #[error("messages are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// A kind of field that P4Runtime does not use.
    #[error("field '{0}' has a type that P4Runtime does not use (float or group)")]
    Unsupported(String),
    /// The bytes made from the text do not decode; this is a fault of the reader.
    #[error("the text reads but does not decode: {0}")]
    Decode(String),
}

fn suggest(near: &[String]) -> String {
    match near {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(" or ")),
    }
}

/// Reads a message of the P4Runtime protocol by its full name, for example `p4.config.v1.P4Info`.
///
/// Errors: the first place where the text is no such message. `M` must be the type of that name, else the result is
/// whatever the bytes mean to it.
pub fn parse<M: Message + Default>(name: &str, text: &str) -> Result<M, TextError> {
    let start = Place { line: 1, column: 1 };
    let bytes = to_wire(name, text)?;
    M::decode(bytes.as_slice())
        .map_err(|error| TextError { place: start, what: What::Decode(error.to_string()) })
}

/// The wire form of a text.
fn to_wire(name: &str, text: &str) -> Result<Vec<u8>, TextError> {
    let mut reader = Reader { schema: Schema::built_in(), lexer: Lexer::new(text)? };
    let place = reader.lexer.place();
    let kind = reader
        .schema
        .message(name)
        .ok_or_else(|| TextError { place, what: What::UnknownMessage(name.to_owned()) })?;
    let mut out = Vec::new();
    reader.fields(kind, None, 0, &mut out)?;
    Ok(out)
}

struct Reader<'t> {
    schema: &'static Schema,
    lexer: Lexer<'t>,
}

/// Which fields of a message have been given, and where.
#[derive(Default)]
struct Given {
    fields: BTreeMap<i32, usize>,
    oneofs: BTreeMap<i32, (String, usize)>,
}

type Result2 = Result<(), TextError>;

impl Reader<'_> {
    /// Reads fields until `close` (or the end, for the outermost message).
    fn fields(
        &mut self,
        kind: &'static MessageType,
        close: Option<char>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result2 {
        if depth > DEPTH_MAX {
            return Err(self.error(What::TooDeep));
        }
        let mut given = Given::default();
        loop {
            match self.lexer.peek() {
                Token::End if close.is_none() => return Ok(()),
                Token::Punct(c) if Some(*c) == close => {
                    self.lexer.next()?;
                    return Ok(());
                }
                Token::Punct('[') if kind.name == "google.protobuf.Any" => {
                    self.any(depth, out)?;
                }
                Token::Word(_) => self.field(kind, depth, &mut given, out)?,
                _ if close.is_some() => {
                    return Err(self.expected("a field name or the closing brace"));
                }
                _ => return Err(self.expected("a field name")),
            }
            if matches!(self.lexer.peek(), Token::Punct(',' | ';')) {
                self.lexer.next()?;
            }
        }
    }

    fn field(
        &mut self,
        kind: &'static MessageType,
        depth: usize,
        given: &mut Given,
        out: &mut Vec<u8>,
    ) -> Result2 {
        let Token::Word(name) = self.lexer.peek().clone() else {
            return Err(self.expected("a field name"));
        };
        let Some(field) = kind.fields.get(&name) else {
            let names = kind.fields.keys().map(String::as_str);
            let near = super::p4info::nearest(&name, names);
            let message = kind.name.clone();
            return Err(self.error(What::UnknownField { message, field: name, near }));
        };
        self.once(field, given)?;
        self.lexer.next()?;
        let colon = matches!(self.lexer.peek(), Token::Punct(':'));
        if colon {
            self.lexer.next()?;
        }
        let is_message = field.kind == Type::Message;
        if !colon && !is_message {
            return Err(self.expected("':' after the name of a field that is no message"));
        }
        if field.label == Label::Repeated && matches!(self.lexer.peek(), Token::Punct('[')) {
            return self.list(field, depth, out);
        }
        self.value(field, depth, out)
    }

    /// Refuses a second value for a field or oneof that takes one.
    fn once(&self, field: &Field, given: &mut Given) -> Result2 {
        let line = self.lexer.place().line;
        if field.label != Label::Repeated
            && let Some(line) = given.fields.insert(field.number, line)
        {
            return Err(self.error(What::Twice { field: field.name.clone(), line }));
        }
        if let Some(oneof) = field.oneof
            && let Some((other, line)) = given.oneofs.insert(oneof, (field.name.clone(), line))
        {
            return Err(self.error(What::Excluded { field: field.name.clone(), other, line }));
        }
        Ok(())
    }

    /// `[a, b, c]` for a repeated field.
    fn list(&mut self, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result2 {
        self.lexer.next()?;
        if matches!(self.lexer.peek(), Token::Punct(']')) {
            self.lexer.next()?;
            return Ok(());
        }
        loop {
            self.value(field, depth, out)?;
            match self.lexer.peek() {
                Token::Punct(',') => self.lexer.next()?,
                Token::Punct(']') => {
                    self.lexer.next()?;
                    return Ok(());
                }
                _ => return Err(self.expected("',' or ']' in a list")),
            };
        }
    }

    fn value(&mut self, field: &'static Field, depth: usize, out: &mut Vec<u8>) -> Result2 {
        match field.kind {
            Type::Message => {
                let kind = self.message_type(&field.type_name)?;
                let body = self.braced(kind, depth)?;
                wire::bytes(field.number, &body, out);
            }
            Type::String | Type::Bytes => {
                let place = self.lexer.place();
                let bytes = self.string()?;
                if field.kind == Type::String && std::str::from_utf8(&bytes).is_err() {
                    return Err(TextError { place, what: What::NotUtf8(field.name.clone()) });
                }
                wire::bytes(field.number, &bytes, out);
            }
            Type::Bool => {
                let value = self.boolean()?;
                wire::varint_field(field.number, u64::from(value), out);
            }
            Type::Enum => {
                let value = self.enum_value(field)?;
                wire::varint_field(field.number, value, out);
            }
            Type::Int32 => self.integer(field, i32::MIN.into(), i32::MAX.into(), out)?,
            Type::Int64 => self.integer(field, i64::MIN.into(), i64::MAX.into(), out)?,
            Type::Uint32 => self.integer(field, 0, u32::MAX.into(), out)?,
            Type::Uint64 => self.integer(field, 0, u64::MAX.into(), out)?,
            _ => return Err(self.error(What::Unsupported(field.name.clone()))),
        }
        Ok(())
    }

    /// `{ ... }` or `< ... >`: the wire form of what is inside.
    fn braced(&mut self, kind: &'static MessageType, depth: usize) -> Result<Vec<u8>, TextError> {
        let close = match self.lexer.peek() {
            Token::Punct('{') => '}',
            Token::Punct('<') => '>',
            _ => return Err(self.expected("'{'")),
        };
        self.lexer.next()?;
        let mut body = Vec::new();
        self.fields(kind, Some(close), depth + 1, &mut body)?;
        Ok(body)
    }

    /// `[type.googleapis.com/full.Name] { ... }` inside a google.protobuf.Any.
    fn any(&mut self, depth: usize, out: &mut Vec<u8>) -> Result2 {
        self.lexer.next()?;
        let mut url = String::new();
        loop {
            match self.lexer.next()? {
                Token::Word(word) => url.push_str(&word),
                Token::Punct(c @ ('/' | '.')) => url.push(c),
                Token::Punct(']') => break,
                _ => return Err(self.expected("a type such as [type.googleapis.com/p4.v1.Error]")),
            }
        }
        if matches!(self.lexer.peek(), Token::Punct(':')) {
            self.lexer.next()?;
        }
        let kind = self.message_type(url.rsplit('/').next().unwrap_or_default())?;
        let body = self.braced(kind, depth)?;
        wire::bytes(1, url.as_bytes(), out);
        wire::bytes(2, &body, out);
        Ok(())
    }

    fn message_type(&self, name: &str) -> Result<&'static MessageType, TextError> {
        self.schema.message(name).ok_or_else(|| self.error(What::UnknownMessage(name.to_owned())))
    }

    /// One or more adjacent string literals.
    fn string(&mut self) -> Result<Vec<u8>, TextError> {
        let Token::Text(mut bytes) = self.lexer.peek().clone() else {
            return Err(self.expected("a string in quotes"));
        };
        self.lexer.next()?;
        while let Token::Text(more) = self.lexer.peek() {
            bytes.extend_from_slice(more);
            self.lexer.next()?;
        }
        Ok(bytes)
    }

    fn boolean(&mut self) -> Result<bool, TextError> {
        let value = match self.lexer.peek() {
            Token::Word(word) => match word.as_str() {
                "true" | "True" | "t" => true,
                "false" | "False" | "f" => false,
                _ => return Err(self.expected("true or false")),
            },
            Token::Number(digits) if digits == "1" || digits == "0" => digits == "1",
            _ => return Err(self.expected("true or false")),
        };
        self.lexer.next()?;
        Ok(value)
    }

    fn enum_value(&mut self, field: &Field) -> Result<u64, TextError> {
        let Token::Word(name) = self.lexer.peek().clone() else {
            let value = self.number(field, i32::MIN.into(), i32::MAX.into())?;
            return Ok(value);
        };
        let values = self
            .schema
            .enumeration(&field.type_name)
            .ok_or_else(|| self.error(What::UnknownMessage(field.type_name.clone())))?;
        let Some((_, number)) = values.iter().find(|(known, _)| *known == name) else {
            let known = values.iter().map(|(known, _)| known.as_str()).collect::<Vec<_>>();
            let (message, known) = (field.type_name.clone(), known.join(", "));
            return Err(self.error(What::UnknownValue { message, name, known }));
        };
        self.lexer.next()?;
        Ok(wire::signed(i64::from(*number)))
    }

    fn integer(&mut self, field: &Field, low: i128, high: i128, out: &mut Vec<u8>) -> Result2 {
        let value = self.number(field, low, high)?;
        wire::varint_field(field.number, value, out);
        Ok(())
    }

    /// A decimal, hexadecimal or octal number with an optional sign, as a varint's value.
    fn number(&mut self, field: &Field, low: i128, high: i128) -> Result<u64, TextError> {
        let place = self.lexer.place();
        let negative = matches!(self.lexer.peek(), Token::Punct('-'));
        if negative {
            self.lexer.next()?;
        }
        let Token::Number(text) = self.lexer.peek().clone() else {
            return Err(self.expected("a number"));
        };
        let (digits, radix) = match text.as_bytes() {
            [b'0', b'x' | b'X', ..] => (&text[2..], 16),
            [b'0', _, ..] => (&text[1..], 8),
            _ => (text.as_str(), 10),
        };
        let out_of_range = || TextError {
            place,
            what: What::Range {
                value: format!("{}{text}", if negative { "-" } else { "" }),
                field: field.name.clone(),
                low,
                high,
            },
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return Err(self.expected("a whole number"));
        }
        let value = i128::from_str_radix(digits, radix).map_err(|_| out_of_range())?;
        let value = if negative { -value } else { value };
        if value < low || value > high {
            return Err(out_of_range());
        }
        self.lexer.next()?;
        // Negative numbers travel as 64-bit two's complement; the range check makes both conversions exact.
        Ok(i64::try_from(value).map_or_else(|_| u64::try_from(value).unwrap_or(0), wire::signed))
    }

    fn error(&self, what: What) -> TextError {
        TextError { place: self.lexer.place(), what }
    }

    fn expected(&self, wanted: &'static str) -> TextError {
        self.error(What::Expected { wanted, found: self.lexer.peek().to_string() })
    }
}

#[cfg(test)]
mod tests;
