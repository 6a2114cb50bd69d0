//! Keys of table entries and members of value sets (section 9.1.1, "Match Format").

use super::{Check, Checked, invalid};
use crate::p4runtime::p4info::{Field, MatchType};
use crate::p4runtime::proto::p4::v1::FieldMatch;
use crate::p4runtime::proto::p4::v1::field_match::{self, FieldMatchType};
use crate::p4runtime::value;
use std::cmp::Ordering;

impl Check<'_> {
    /// Checks a key, makes its values canonical and puts its parts into the order of `fields`.
    pub(super) fn key(&self, owner: &str, fields: &[Field], key: &mut [FieldMatch]) -> Checked {
        let mut seen = vec![false; fields.len()];
        for part in key.iter_mut() {
            let place = fields.iter().position(|field| field.id == part.field_id);
            let Some(place) = place else {
                return Err(invalid(format!("'{owner}' has no match field {}", part.field_id)));
            };
            if std::mem::replace(&mut seen[place], true) {
                let name = &fields[place].name;
                return Err(invalid(format!("'{owner}': field '{name}' is given twice")));
            }
            self.part(owner, &fields[place], part)?;
        }
        for (field, seen) in fields.iter().zip(seen) {
            if field.kind == MatchType::Exact && !seen {
                let name = &field.name;
                return Err(invalid(format!(
                    "'{owner}': exact field '{name}' is missing; it has no don't-care"
                )));
            }
        }
        key.sort_by_key(|part| fields.iter().position(|field| field.id == part.field_id));
        Ok(())
    }

    fn part(&self, owner: &str, field: &Field, part: &mut FieldMatch) -> Checked {
        let what = || format!("'{owner}': field '{}'", field.name);
        let Some(value) = part.field_match_type.as_mut() else {
            return Err(invalid(format!("{} has no value; leave don't-care fields out", what())));
        };
        match (field.kind, value) {
            (MatchType::Exact, FieldMatchType::Exact(exact)) => {
                self.bits(what, field.width, &mut exact.value)
            }
            (MatchType::Optional, FieldMatchType::Optional(optional)) => {
                self.bits(what, field.width, &mut optional.value)
            }
            (MatchType::Lpm, FieldMatchType::Lpm(lpm)) => self.lpm(what, field.width, lpm),
            (MatchType::Ternary, FieldMatchType::Ternary(ternary)) => {
                self.ternary(what, field.width, ternary)
            }
            (MatchType::Range, FieldMatchType::Range(range)) => {
                self.range(what, field.width, range)
            }
            (kind, _) => Err(invalid(format!(
                "{} is {}, the request gives another kind of match",
                what(),
                kind.as_str_name()
            ))),
        }
    }

    fn lpm(&self, what: impl Fn() -> String, width: u32, lpm: &mut field_match::Lpm) -> Checked {
        self.bits(&what, width, &mut lpm.value)?;
        let length = match u32::try_from(lpm.prefix_len) {
            Ok(0) => {
                let text =
                    format!("{}: prefix length 0 is don't-care; leave the field out", what());
                return Err(invalid(text));
            }
            Ok(length) if length <= width => length,
            _ => {
                let (what, length) = (what(), lpm.prefix_len);
                return Err(invalid(format!(
                    "{what}: prefix length {length} is not in 1..={width}"
                )));
            }
        };
        if trailing_zeros(&lpm.value, width) < width - length {
            return Err(invalid(format!("{}: bits after the /{length} prefix must be 0", what())));
        }
        Ok(())
    }

    fn ternary(
        &self,
        what: impl Fn() -> String,
        width: u32,
        ternary: &mut field_match::Ternary,
    ) -> Checked {
        self.bits(&what, width, &mut ternary.value)?;
        self.bits(&what, width, &mut ternary.mask)?;
        if ternary.mask == [0] {
            return Err(invalid(format!("{}: mask 0 is don't-care; leave the field out", what())));
        }
        if !covered(&ternary.value, &ternary.mask) {
            return Err(invalid(format!(
                "{}: the value has ones where the mask has zeros",
                what()
            )));
        }
        Ok(())
    }

    fn range(
        &self,
        what: impl Fn() -> String,
        width: u32,
        range: &mut field_match::Range,
    ) -> Checked {
        self.bits(&what, width, &mut range.low)?;
        self.bits(&what, width, &mut range.high)?;
        if compare(&range.low, &range.high) == Ordering::Greater {
            return Err(invalid(format!("{}: low is above high", what())));
        }
        if range.low == [0] && all_ones(&range.high, width) {
            let text = format!(
                "{}: the range covers every value, which is don't-care; leave the field out",
                what()
            );
            return Err(invalid(text));
        }
        Ok(())
    }
}

/// Number of zero bits at the end of a canonical value in a field of `width` bits.
pub(super) fn trailing_zeros(bytes: &[u8], width: u32) -> u32 {
    let mut zeros = 0;
    for byte in bytes.iter().rev() {
        if *byte != 0 {
            return zeros + byte.trailing_zeros();
        }
        zeros += 8;
    }
    width
}

/// Whether `value & mask == value`, both canonical.
pub(super) fn covered(value: &[u8], mask: &[u8]) -> bool {
    value == [0]
        || value.len() <= mask.len()
            && value.iter().rev().zip(mask.iter().rev()).all(|(value, mask)| value & mask == *value)
}

/// The order of two canonical unsigned numbers.
pub(super) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

/// Whether a canonical value is the largest of its width.
pub(super) fn all_ones(bytes: &[u8], width: u32) -> bool {
    value::bit_length(bytes) == width as usize
        && bytes.iter().map(|byte| byte.count_ones()).sum::<u32>() == width
}
