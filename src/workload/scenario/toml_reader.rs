//! Typed access to parsed TOML that never loses the place.
//!
//! In: a table with spans. Out: values of the wanted type, or a [`ScenarioError`] at the value. Must not know: which keys
//! mean what.

use super::error::{Place, Problem, ScenarioError};
use crate::topology::suggest::hint;
use crate::units::UnitError;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The file being read.
pub(super) struct Source<'a> {
    /// Its name, as given.
    pub(super) file: &'a str,
    /// Its text.
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// Line and column of a byte range's start.
    pub(super) fn place(&self, span: &Range<usize>) -> Place {
        let mut end = span.start.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &self.text[..end];
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or("").chars().count();
        Place { file: self.file.to_owned(), line, column }
    }

    /// An error at a byte range.
    pub(super) fn error(&self, span: &Range<usize>, problem: Problem) -> ScenarioError {
        ScenarioError { place: self.place(span), problem: Box::new(problem) }
    }

    /// An error about the whole file.
    pub(super) fn whole(&self, problem: Problem) -> ScenarioError {
        ScenarioError {
            place: Place { file: self.file.to_owned(), line: 0, column: 0 },
            problem: Box::new(problem),
        }
    }
}

/// One table of the file whose keys are all known.
pub(super) struct Section<'a> {
    pub(super) source: &'a Source<'a>,
    /// How messages call it: `[fabric]`, `[[job]] 2`.
    pub(super) name: String,
    /// Where it stands.
    pub(super) span: Range<usize>,
    table: &'a DeTable<'a>,
}

impl<'a> Section<'a> {
    /// Opens a table; refuses keys that are not in `known`.
    pub(super) fn open(
        source: &'a Source<'a>,
        name: String,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        known: &[&str],
    ) -> Result<Self, ScenarioError> {
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                let written = key.get_ref().to_string();
                let hint = hint(&written, known.iter().copied());
                let (section, known) = (name, known.join(", "));
                let problem = Problem::UnknownKey { section, key: written, hint, known };
                return Err(source.error(&key.span(), problem));
            }
        }
        Ok(Self { source, name, span, table })
    }

    /// Refuses keys that are known but mean nothing for this kind.
    pub(super) fn only(&self, kind: &str, keys: &[&str]) -> Result<(), ScenarioError> {
        for key in self.table.keys() {
            if !keys.contains(&key.get_ref().as_ref()) {
                let problem = Problem::KeyNotForKind {
                    section: self.name.clone(),
                    key: key.get_ref().to_string(),
                    kind: kind.to_owned(),
                    known: keys.join(", "),
                };
                return Err(self.source.error(&key.span(), problem));
            }
        }
        Ok(())
    }

    /// A value, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'a>> {
        let value = self.table.get(key)?;
        Some(Entry { source: self.source, key: key.to_owned(), value })
    }

    /// A value that has to be there.
    pub(super) fn need(
        &self,
        key: &str,
        example: &'static str,
    ) -> Result<Entry<'a>, ScenarioError> {
        self.get(key).ok_or_else(|| {
            let (section, key) = (self.name.clone(), key.to_owned());
            self.error(Problem::MissingKey { section, key, example })
        })
    }

    /// Refuses two keys that exclude each other, at the second.
    pub(super) fn not_both(
        &self,
        first: &'static str,
        second: &'static str,
        why: &'static str,
    ) -> Result<(), ScenarioError> {
        match (self.get(first), self.get(second)) {
            (Some(_), Some(entry)) => {
                let section = self.name.clone();
                Err(entry.error(Problem::BothKeys { section, first, second, why }))
            }
            _ => Ok(()),
        }
    }

    /// An error at the head of the section.
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        self.source.error(&self.span, problem)
    }

    /// `get` for a quantity with a default.
    pub(super) fn unit_or<T: FromStr<Err = UnitError>>(
        &self,
        key: &str,
        default: T,
    ) -> Result<T, ScenarioError> {
        self.get(key).map_or(Ok(default), |entry| entry.unit())
    }

    /// `get` for an integer with a default.
    pub(super) fn int_or(
        &self,
        key: &str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Result<u64, ScenarioError> {
        self.get(key).map_or(Ok(default), |entry| entry.int(min, max))
    }

    /// `get` for a real number with a default.
    pub(super) fn number_or(
        &self,
        key: &str,
        default: f64,
        min: f64,
        max: f64,
    ) -> Result<f64, ScenarioError> {
        self.get(key).map_or(Ok(default), |entry| entry.number(min, max))
    }
}

/// One value and where it stands.
pub(super) struct Entry<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) key: String,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Entry<'a> {
    /// An error at the value.
    pub(super) fn error(&self, problem: Problem) -> ScenarioError {
        self.source.error(&self.value.span(), problem)
    }

    fn wrong<T>(&self, wanted: &'static str) -> Result<T, ScenarioError> {
        let found = match self.value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a real number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time of day",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let (key, found) = (self.key.clone(), found.to_owned());
        Err(self.error(Problem::WrongType { key, found, wanted }))
    }

    /// Whether it is a string.
    pub(super) fn is_str(&self) -> bool {
        self.value.get_ref().is_str()
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self) -> bool {
        self.value.get_ref().is_array()
    }

    /// A string.
    pub(super) fn str(&self, wanted: &'static str) -> Result<&'a str, ScenarioError> {
        self.value.get_ref().as_str().map_or_else(|| self.wrong(wanted), Ok)
    }

    /// A name: 1 to 64 of a few characters, so that tables, paths and file names can show it.
    pub(super) fn name(&self) -> Result<String, ScenarioError> {
        let value = self.str("a name in quotes, such as \"bert-0\"")?;
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if value.is_empty() || value.len() > 64 || !value.chars().all(fine) {
            let value = value.chars().take(80).collect();
            return Err(self.error(Problem::BadName { key: self.key.clone(), value }));
        }
        Ok(value.to_owned())
    }

    /// A word out of a few.
    pub(super) fn choice(&self, choices: &[&str]) -> Result<String, ScenarioError> {
        let value = self.str("one word in quotes")?;
        if choices.contains(&value) {
            return Ok(value.to_owned());
        }
        Err(self.error(Problem::UnknownChoice {
            key: self.key.clone(),
            value: value.chars().take(80).collect(),
            hint: hint(value, choices.iter().copied()),
            choices: choices.join(", "),
        }))
    }

    /// A quantity with its unit, as text.
    pub(super) fn unit<T: FromStr<Err = UnitError>>(&self) -> Result<T, ScenarioError> {
        let text = self
            .str("a quantity with its unit in quotes, such as \"25Gbps\", \"1.3GB\", \"250ms\"")?;
        text.parse().map_err(|source| self.error(Problem::Unit { key: self.key.clone(), source }))
    }

    /// An integer within bounds.
    pub(super) fn int(&self, min: u64, max: u64) -> Result<u64, ScenarioError> {
        let Some(integer) = self.value.get_ref().as_integer() else {
            return self.wrong("an integer, without quotes");
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            _ => Err(self.out_of_range(integer.as_str(), min, max)),
        }
    }

    /// A real number (or an integer) within bounds.
    pub(super) fn number(&self, min: f64, max: f64) -> Result<f64, ScenarioError> {
        let text = match self.value.get_ref() {
            DeValue::Float(float) => float.as_str(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
            _ => return self.wrong("a number, without quotes"),
        };
        match text.parse::<f64>() {
            Ok(value) if (min..=max).contains(&value) => Ok(value),
            _ => Err(self.out_of_range(text, min, max)),
        }
    }

    fn out_of_range(&self, value: &str, min: impl ToString, max: impl ToString) -> ScenarioError {
        let (min, max) = (min.to_string(), max.to_string());
        let value = value.chars().take(40).collect();
        self.error(Problem::OutOfRange { key: self.key.clone(), value, min, max })
    }

    /// `true` or `false`.
    pub(super) fn flag(&self) -> Result<bool, ScenarioError> {
        self.value
            .get_ref()
            .as_bool()
            .map_or_else(|| self.wrong("true or false, without quotes"), Ok)
    }

    /// The entries of a list; their keys are `key[0]`, `key[1]`...
    pub(super) fn list(&self, wanted: &'static str) -> Result<Vec<Entry<'a>>, ScenarioError> {
        let Some(array) = self.value.get_ref().as_array() else { return self.wrong(wanted) };
        let entry = |(i, value): (usize, &'a Spanned<DeValue<'a>>)| Entry {
            source: self.source,
            key: format!("{}[{i}]", self.key),
            value,
        };
        Ok(array.iter().enumerate().map(entry).collect())
    }

    /// A table.
    pub(super) fn section(
        &self,
        name: String,
        known: &[&str],
    ) -> Result<Section<'a>, ScenarioError> {
        match self.value.get_ref().as_table() {
            Some(table) => Section::open(self.source, name, self.value.span(), table, known),
            None => self.wrong("a table, such as [fabric] or [[job]]"),
        }
    }
}
