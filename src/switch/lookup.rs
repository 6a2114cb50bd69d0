//! Table lookup. In: a packed key, and entries packed by the same layout. Out: the entry that wins. Must not know
//! actions, counters or P4Runtime: an entry is a number here.
//!
//! ```text
//!  field widths ──► KeyLayout ──► packed key: &[u64] ──► Lookup::find ──► EntryId
//!                       │                                   ▲
//!                       └────► PackedKey (value, mask, ranges) ── insert / remove
//! ```
//! Three structures, one per kind of table: [`exact`] (hash), [`lpm`] (a trie of 4-bit strides), [`ternary`] (tuple
//! space search in order of priority). [`reference`] is a scan over all entries, obviously right; random entries and
//! keys must agree.

pub mod exact;
pub mod lpm;
pub mod reference;
pub mod ternary;

#[cfg(test)]
mod tests;

use smallvec::SmallVec;
use thiserror::Error;

/// An entry's index in its table's slab.
pub type EntryId = u32;

/// Packed words of a key; four words (256 bits) stay on the stack.
pub type Words = SmallVec<[u64; 4]>;

/// How one key field matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// All bits.
    Exact,
    /// The first bits; at most one such field decides by length.
    Lpm,
    /// Bits under a mask (also P4's `optional`).
    Ternary,
    /// Inclusive bounds, unsigned.
    Range,
}

/// One field of an entry's key; numbers are big-endian byte strings of any length (leading zeros allowed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldMatch<'a> {
    /// All bits equal.
    Exact(&'a [u8]),
    /// The first `prefix_len` bits equal.
    Lpm(&'a [u8], u32),
    /// Value and mask.
    Ternary(&'a [u8], &'a [u8]),
    /// Lowest and highest value, both included.
    Range(&'a [u8], &'a [u8]),
    /// Anything.
    Any,
}

/// Why a key could not be packed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// More or fewer matches than fields.
    #[error("the key has {want} fields, {got} were given; give one match per field, in order")]
    FieldCount {
        /// Fields of the table.
        want: usize,
        /// Matches given.
        got: usize,
    },
    /// A value with bits above the field's width.
    #[error("field {field} is {width} bits wide and 0x{value} does not fit")]
    TooWide {
        /// Index of the field.
        field: usize,
        /// Its width in bits.
        width: u32,
        /// The value in hexadecimal.
        value: String,
    },
    /// The match's kind is not one the field allows.
    #[error("field {field} matches by {kind:?}; give that kind of match")]
    WrongKind {
        /// Index of the field.
        field: usize,
        /// The kind it has.
        kind: FieldKind,
    },
    /// Low bound above the high bound.
    #[error("field {field}: the range's low bound is above its high bound")]
    EmptyRange {
        /// Index of the field.
        field: usize,
    },
}

/// Where a field lies in the packed key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First word; a field wider than 64 bits has its least significant word there.
    pub word: usize,
    /// Bits to shift the value left within the word; 0 for fields wider than 64 bits.
    pub shift: u32,
    /// Width in bits.
    pub width: u32,
}

impl Place {
    /// Words the field touches.
    #[must_use]
    pub fn words(self) -> usize {
        (self.width as usize).div_ceil(64).max(1)
    }

    /// Bits of the field in its `i`-th word.
    #[must_use]
    pub fn keep(self, i: usize) -> u64 {
        low_bits(self.width.saturating_sub(64 * i as u32))
    }

    /// The field out of a packed key, least significant word first; nothing where the key has no such words.
    #[must_use]
    pub fn get(self, key: &[u64]) -> Words {
        let part = key.get(self.word..self.word + self.words()).unwrap_or(&[]);
        part.iter().enumerate().map(|(i, word)| (word >> self.shift) & self.keep(i)).collect()
    }
}

/// Packing of a table's key (the same as [`crate::switch::program::Key`]): no field straddles two words, unless it is
/// wider than 64 bits: then it has words of its own, least significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyLayout {
    fields: Vec<(FieldKind, Place)>,
    words: usize,
}

/// An entry's key, packed: `key & mask == value` and every range holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PackedKey {
    /// Values, already masked.
    pub value: Words,
    /// One bits where the key must equal `value`; a range field has zeros here.
    pub mask: Words,
    /// Range fields that are not `Any`: field, low, high (as many words as the field has, unshifted).
    pub ranges: SmallVec<[(u16, Words, Words); 1]>,
    /// Prefix length of the LPM field, when the table has one.
    pub prefix_len: u32,
}

impl KeyLayout {
    /// Lays out fields of these kinds and widths (bits), in order.
    #[must_use]
    pub fn new(fields: &[(FieldKind, u32)]) -> Self {
        let mut placed = Vec::with_capacity(fields.len());
        let mut used: Vec<u32> = Vec::new(); // bits taken per word
        for &(kind, width) in fields {
            let own_words = width > 64;
            let word = if own_words {
                let first = used.len();
                used.resize(first + (width as usize).div_ceil(64).max(1), 64);
                first
            } else {
                let free = used.iter().position(|bits| bits + width <= 64);
                free.unwrap_or_else(|| {
                    used.push(0);
                    used.len() - 1
                })
            };
            let shift = if own_words { 0 } else { used[word] };
            if !own_words {
                used[word] += width;
            }
            // A zero-width field may sit at shift 64, which no shift instruction allows.
            placed.push((kind, Place { word, shift: shift.min(63), width }));
        }
        Self { fields: placed, words: used.len() }
    }

    /// Takes over a layout: kind, first word, shift and width of each field, and the words of a key.
    #[must_use]
    pub fn at(fields: impl Iterator<Item = (FieldKind, usize, u32, u32)>, words: usize) -> Self {
        let place = |(kind, word, shift, width)| (kind, Place { word, shift, width });
        Self { fields: fields.map(place).collect(), words }
    }

    /// Words of a packed key.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// True for a table without key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Kind and place of a field, `None` past the last.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<(FieldKind, Place)> {
        self.fields.get(index).copied()
    }

    /// Index of the LPM field that decides, if the key has one.
    #[must_use]
    pub fn lpm_field(&self) -> Option<usize> {
        self.fields.iter().position(|(kind, _)| *kind == FieldKind::Lpm)
    }

    /// Writes a field of at most 64 bits into a zeroed key. Bits above the width are cut.
    #[inline]
    pub fn put(&self, key: &mut [u64], field: usize, value: u64) {
        if let Some((_, place)) = self.fields.get(field)
            && let Some(word) = key.get_mut(place.word)
        {
            *word |= (value & low_bits(place.width)) << place.shift;
        }
    }

    /// Writes a field of any width into a zeroed key, from words with the least significant first.
    pub fn put_wide(&self, key: &mut [u64], field: usize, value: &[u64]) {
        let Some((_, place)) = self.field(field) else { return };
        for (i, part) in value.iter().take(place.words()).enumerate() {
            if let Some(word) = key.get_mut(place.word + i) {
                *word |= (part & place.keep(i)) << place.shift;
            }
        }
    }

    /// Packs an entry's key.
    ///
    /// # Errors
    /// Names the field that has too many bits, the wrong kind of match or an empty range.
    pub fn pack(&self, matches: &[FieldMatch<'_>]) -> Result<PackedKey, KeyError> {
        if matches.len() != self.fields.len() {
            return Err(KeyError::FieldCount { want: self.fields.len(), got: matches.len() });
        }
        let zero: Words = SmallVec::from_elem(0, self.words);
        let mut packed = PackedKey { value: zero.clone(), mask: zero, ..PackedKey::default() };
        for (index, field_match) in matches.iter().enumerate() {
            self.pack_field(&mut packed, index, *field_match)?;
        }
        for (value, mask) in packed.value.iter_mut().zip(&packed.mask) {
            *value &= mask;
        }
        Ok(packed)
    }

    fn pack_field(
        &self,
        packed: &mut PackedKey,
        index: usize,
        field_match: FieldMatch<'_>,
    ) -> Result<(), KeyError> {
        let (kind, place) = self.fields[index];
        let number = |bytes: &[u8]| {
            words_of(bytes, place.width).ok_or_else(|| KeyError::TooWide {
                field: index,
                width: place.width,
                value: bytes.iter().map(|b| format!("{b:02x}")).collect(),
            })
        };
        let ones = || prefix_mask(place.width, place.width);
        let (value, mask) = match (kind, field_match) {
            (_, FieldMatch::Any) => return Ok(()),
            (_, FieldMatch::Exact(value)) if kind != FieldKind::Range => {
                if kind == FieldKind::Lpm {
                    packed.prefix_len = place.width;
                }
                (number(value)?, ones())
            }
            (FieldKind::Lpm | FieldKind::Ternary, FieldMatch::Lpm(value, prefix_len)) => {
                let prefix_len = prefix_len.min(place.width);
                if kind == FieldKind::Lpm {
                    packed.prefix_len = prefix_len;
                }
                (number(value)?, prefix_mask(place.width, prefix_len))
            }
            (FieldKind::Ternary, FieldMatch::Ternary(value, mask)) => {
                (number(value)?, number(mask)?)
            }
            (FieldKind::Range, FieldMatch::Exact(value)) => {
                let value = number(value)?;
                packed.ranges.push((index as u16, value.clone(), value));
                return Ok(());
            }
            (FieldKind::Range, FieldMatch::Range(low, high)) => {
                let (low, high) = (number(low)?, number(high)?);
                if !at_most(&low, &high) {
                    return Err(KeyError::EmptyRange { field: index });
                }
                packed.ranges.push((index as u16, low, high));
                return Ok(());
            }
            _ => return Err(KeyError::WrongKind { field: index, kind }),
        };
        self.put_wide(&mut packed.value, index, &value);
        self.put_wide(&mut packed.mask, index, &mask);
        Ok(())
    }

    /// Reads a field back out of a packed key, least significant word first.
    #[must_use]
    pub fn get(&self, key: &[u64], field: usize) -> Words {
        self.field(field).map_or_else(Words::new, |(_, place)| place.get(key))
    }

    /// True when the key satisfies every range of the entry.
    #[must_use]
    pub fn ranges_hold(&self, packed: &PackedKey, key: &[u64]) -> bool {
        packed.ranges.iter().all(|(field, low, high)| {
            let Some((_, place)) = self.field(*field as usize) else { return false };
            if place.width <= 64 {
                let value =
                    key.get(place.word).map_or(0, |word| (word >> place.shift) & place.keep(0));
                return low[0] <= value && value <= high[0];
            }
            let Some(value) = key.get(place.word..place.word + place.words()) else { return false };
            at_most(low, value) && at_most(value, high)
        })
    }
}

/// `a <= b` for numbers of as many words, least significant first.
fn at_most(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().le(b.iter().rev())
}

/// The lowest `bits` bits set; all 64 for 64 and more.
#[must_use]
pub fn low_bits(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A big-endian byte string as words, least significant first; `None` when it has bits above `width`.
#[must_use]
pub fn words_of(bytes: &[u8], width: u32) -> Option<Words> {
    let count = (width as usize).div_ceil(64).max(1);
    let mut words: Words = SmallVec::from_elem(0, count);
    for (position, byte) in bytes.iter().rev().enumerate() {
        let bit = position as u64 * 8;
        let room = u64::from(width).saturating_sub(bit);
        if room < 8 && u64::from(*byte) >> room != 0 {
            return None;
        }
        if *byte != 0 {
            words[position / 8] |= u64::from(*byte) << (bit % 64);
        }
    }
    Some(words)
}

/// A mask of `width` bits, of which the first (most significant) `prefix` are set; least significant word first.
#[must_use]
pub fn prefix_mask(width: u32, prefix: u32) -> Words {
    let count = width.div_ceil(64).max(1);
    let below = width.saturating_sub(prefix);
    let part =
        |i: u32| low_bits(width.saturating_sub(64 * i)) & !low_bits(below.saturating_sub(64 * i));
    (0..count).map(part).collect()
}

/// Which structure serves a table.
#[derive(Clone, Debug)]
pub enum Lookup {
    /// All fields exact.
    Exact(exact::Exact),
    /// One LPM field, the rest exact.
    Lpm(lpm::Lpm),
    /// Priorities decide.
    Ternary(ternary::Ternary),
}

/// One candidate: among matching entries the higher priority wins, then the earlier insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Larger wins. Unused (0) for exact and LPM.
    pub priority: i32,
    /// Order of insertion, smaller wins among equal priorities.
    pub sequence: u64,
}

impl Ord for Rank {
    /// The preferred entry is the greater one.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.priority.cmp(&other.priority).then(other.sequence.cmp(&self.sequence))
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Lookup {
    /// The structure that fits the layout: any ternary or range field → ternary; one LPM field → trie; else hash.
    /// Two LPM fields have no order of lengths, so they are served by priority too.
    #[must_use]
    pub fn new(layout: &KeyLayout) -> Self {
        let count =
            |want: FieldKind| layout.fields.iter().filter(|(kind, _)| *kind == want).count();
        if count(FieldKind::Ternary) + count(FieldKind::Range) > 0 || count(FieldKind::Lpm) > 1 {
            Self::Ternary(ternary::Ternary::new(layout.clone()))
        } else if let Some(field) = layout.lpm_field() {
            Self::Lpm(lpm::Lpm::new(layout, field))
        } else {
            Self::Exact(exact::Exact::new(layout.words()))
        }
    }

    /// True when entries carry priorities.
    #[must_use]
    pub fn by_priority(&self) -> bool {
        matches!(self, Self::Ternary(_))
    }

    /// Adds an entry. The caller has made sure that no entry has the same key and priority.
    pub fn insert(&mut self, id: EntryId, key: &PackedKey, rank: Rank) {
        match self {
            Self::Exact(exact) => exact.insert(&key.value, id),
            Self::Lpm(lpm) => lpm.insert(key, id),
            Self::Ternary(ternary) => ternary.insert(id, key, rank),
        }
    }

    /// Removes an entry that was inserted with this key; nothing happens if it is not there.
    pub fn remove(&mut self, id: EntryId, key: &PackedKey) {
        match self {
            Self::Exact(exact) => exact.remove(&key.value),
            Self::Lpm(lpm) => lpm.remove(key),
            Self::Ternary(ternary) => ternary.remove(id, key),
        }
    }

    /// The winning entry for a packed key of [`KeyLayout::words`] words.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        match self {
            Self::Exact(exact) => exact.find(key),
            Self::Lpm(lpm) => lpm.find(key),
            Self::Ternary(ternary) => ternary.find(key),
        }
    }
}
