//! Exact match by hash. In: packed keys. Out: the entry, or nothing. Must not know masks.

use super::{EntryId, Words};
use rustc_hash::FxHashMap;

/// Keys of one and two words are hashed without a pointer in between; most tables have such keys.
#[derive(Clone, Debug)]
pub enum Exact {
    /// Up to 64 bits (also a table without key).
    One(FxHashMap<u64, EntryId>),
    /// Up to 128 bits.
    Two(FxHashMap<[u64; 2], EntryId>),
    /// Wider.
    Many(FxHashMap<Box<[u64]>, EntryId>),
}

impl Exact {
    /// An empty map for keys of `words` words.
    #[must_use]
    pub fn new(words: usize) -> Self {
        match words {
            0 | 1 => Self::One(FxHashMap::default()),
            2 => Self::Two(FxHashMap::default()),
            _ => Self::Many(FxHashMap::default()),
        }
    }

    /// Adds or replaces.
    pub fn insert(&mut self, key: &[u64], id: EntryId) {
        match self {
            Self::One(map) => map.insert(key.first().copied().unwrap_or(0), id),
            Self::Two(map) => map.insert(pair(key), id),
            Self::Many(map) => map.insert(key.into(), id),
        };
    }

    /// Removes, if present.
    pub fn remove(&mut self, key: &[u64]) {
        match self {
            Self::One(map) => map.remove(&key.first().copied().unwrap_or(0)),
            Self::Two(map) => map.remove(&pair(key)),
            Self::Many(map) => map.remove(key),
        };
    }

    /// The entry with this key.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        match self {
            Self::One(map) => map.get(&key.first().copied().unwrap_or(0)).copied(),
            Self::Two(map) => map.get(&pair(key)).copied(),
            Self::Many(map) => map.get(key).copied(),
        }
    }

    /// The entry whose key is `key & mask`.
    #[inline]
    #[must_use]
    pub fn find_masked(&self, key: &[u64], mask: &[u64]) -> Option<EntryId> {
        match (self, key, mask) {
            (Self::One(map), [k, ..], [m, ..]) => map.get(&(k & m)).copied(),
            (Self::Two(map), [k0, k1, ..], [m0, m1, ..]) => map.get(&[k0 & m0, k1 & m1]).copied(),
            _ => {
                let masked: Words = key.iter().zip(mask).map(|(k, m)| k & m).collect();
                self.find(&masked)
            }
        }
    }

    /// The number for this key, which the closure makes if it is new.
    pub fn get_or_insert(&mut self, key: &[u64], make: impl FnOnce() -> EntryId) -> EntryId {
        if let Some(id) = self.find(key) {
            return id;
        }
        let id = make();
        self.insert(key, id);
        id
    }
}

#[inline]
fn pair(key: &[u64]) -> [u64; 2] {
    match key {
        [a, b, ..] => [*a, *b],
        [a] => [*a, 0],
        [] => [0, 0],
    }
}
