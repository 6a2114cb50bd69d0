//! Match by mask, range and priority. In: packed keys with masks. Out: the entry with the highest priority among those
//! that match. Must not know prefixes: a prefix is a mask here.
//!
//! Tuple space search: entries with compatible masks share one hash map, keyed by the bits under the *tuple's* mask,
//! which is a subset of every member's mask; the rest of the key is checked on the few candidates of a bucket. Tuples
//! are visited in falling order of their best priority, and the visit ends as soon as no later tuple can win. Sharing a
//! coarser tuple keeps their number small when prefixes of many lengths are mixed (the idea of TupleMerge, Daly et al.,
//! 2019). A range goes into the hash by the leading bits that its bounds have in common.
//!
//! Worst case: masks without any common structure end in the tuple without bits, which is a scan in order of priority,
//! so a lookup is never slower than the scan by more than [`MAX_TUPLES`] hashes.

use super::exact::Exact;
use super::{EntryId, FieldKind, KeyLayout, PackedKey, Rank, Words};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Hash maps per table. Beyond this the hashes of a miss would cost more than longer buckets do.
pub const MAX_TUPLES: usize = 64;

/// Candidates in a bucket before a finer tuple is opened: checking eight costs about as much as one more hash.
pub const BUCKET_GOAL: usize = 8;

#[derive(Clone, Debug)]
struct Candidate {
    key: PackedKey,
    rank: Rank,
    tuple_mask: Words,
}

type Bucket = SmallVec<[(Rank, EntryId); 2]>;

#[derive(Clone, Debug)]
struct Tuple {
    mask: Words,
    bits: u32,
    map: Exact,
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    ranks: BTreeSet<Rank>,
    best: Rank,
}

/// All entries of a table with priorities.
#[derive(Clone, Debug)]
pub struct Ternary {
    layout: KeyLayout,
    /// In falling order of `best`; none is empty.
    tuples: Vec<Tuple>,
    candidates: Vec<Option<Candidate>>,
}

impl Ternary {
    /// An empty structure.
    #[must_use]
    pub fn new(layout: KeyLayout) -> Self {
        Self { layout, tuples: Vec::new(), candidates: Vec::new() }
    }

    /// Hash maps in use, at most [`MAX_TUPLES`] + 1.
    #[must_use]
    pub fn tuple_count(&self) -> usize {
        self.tuples.len()
    }

    /// Adds an entry.
    pub fn insert(&mut self, id: EntryId, key: &PackedKey, rank: Rank) {
        let (value, mask) = self.hash_bits(key);
        let mask = self.choose_mask(&value, &mask);
        let tuple = match self.tuples.iter_mut().find(|tuple| tuple.mask == mask) {
            Some(tuple) => tuple,
            None => {
                self.tuples.push(Tuple::new(mask.clone(), rank));
                let last = self.tuples.len() - 1;
                &mut self.tuples[last]
            }
        };
        tuple.insert(&value, rank, id);
        self.tuples.sort_by_key(|tuple| Reverse(tuple.best));
        let index = id as usize;
        if self.candidates.len() <= index {
            self.candidates.resize(index + 1, None);
        }
        self.candidates[index] = Some(Candidate { key: key.clone(), rank, tuple_mask: mask });
    }

    /// Removes an entry; nothing happens if it is not there.
    pub fn remove(&mut self, id: EntryId, key: &PackedKey) {
        let Some(candidate) = self.candidates.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        let (value, _) = self.hash_bits(key);
        let Some(at) = self.tuples.iter().position(|t| t.mask == candidate.tuple_mask) else {
            return;
        };
        self.tuples[at].remove(&value, candidate.rank, id);
        if self.tuples[at].ranks.is_empty() {
            self.tuples.remove(at);
        }
        self.tuples.sort_by_key(|tuple| Reverse(tuple.best));
    }

    /// The entry with the best rank among those that match.
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        let mut best: Option<(Rank, EntryId)> = None;
        for tuple in &self.tuples {
            if best.is_some_and(|(rank, _)| rank > tuple.best) {
                break;
            }
            let Some(bucket) = tuple.map.find_masked(key, &tuple.mask) else { continue };
            for (rank, id) in &tuple.buckets[bucket as usize] {
                if best.is_some_and(|(won, _)| won > *rank) {
                    break;
                }
                if self.matches(*id, key) {
                    best = Some((*rank, *id));
                    break;
                }
            }
        }
        best.map(|(_, id)| id)
    }

    #[inline]
    fn matches(&self, id: EntryId, key: &[u64]) -> bool {
        let Some(Some(candidate)) = self.candidates.get(id as usize) else { return false };
        let entry = &candidate.key;
        let masked = key.iter().zip(&entry.mask).zip(&entry.value);
        masked.into_iter().all(|((k, m), v)| k & m == *v)
            && (entry.ranges.is_empty() || self.layout.ranges_hold(entry, key))
    }

    /// Value and mask with the common leading bits of ranges added.
    fn hash_bits(&self, key: &PackedKey) -> (Words, Words) {
        let (mut value, mut mask) = (key.value.clone(), key.mask.clone());
        for (field, low, high) in &key.ranges {
            let Some((FieldKind::Range, _)) = self.layout.field(*field as usize) else { continue };
            let differ = low.iter().zip(high).rposition(|(a, b)| a != b);
            let mut common: Words = SmallVec::from_elem(u64::MAX, low.len());
            if let Some(at) = differ {
                let same = (low[at] ^ high[at]).leading_zeros();
                common[at] = if same == 0 { 0 } else { u64::MAX << (64 - same) };
                common[..at].fill(0);
            }
            let start: Words = low.iter().zip(&common).map(|(l, c)| l & c).collect();
            self.layout.put_wide(&mut mask, *field as usize, &common);
            self.layout.put_wide(&mut value, *field as usize, &start);
        }
        (value, mask)
    }

    /// The mask of the tuple an entry goes to: the finest existing one with room in its bucket; else the entry's own
    /// mask cut to whole bytes; else its own mask; when there are too many tuples, the finest that exists, or none.
    fn choose_mask(&self, value: &[u64], mask: &Words) -> Words {
        let mut finest: Option<(&Tuple, usize)> = None;
        let mut roomy: Option<&Tuple> = None;
        for tuple in &self.tuples {
            if !tuple.mask.iter().zip(mask).all(|(t, m)| t & !m == 0) {
                continue;
            }
            let used = tuple.bucket_len(value);
            if finest.is_none_or(|(best, _)| tuple.bits > best.bits) {
                finest = Some((tuple, used));
            }
            if used < BUCKET_GOAL && roomy.is_none_or(|best| tuple.bits > best.bits) {
                roomy = Some(tuple);
            }
        }
        if let Some(tuple) = roomy {
            return tuple.mask.clone();
        }
        let exists = |mask: &Words| self.tuples.iter().any(|tuple| &tuple.mask == mask);
        let bytes: Words = mask.iter().map(|word| whole_bytes(*word)).collect();
        if self.tuples.len() >= MAX_TUPLES {
            return finest
                .map_or_else(|| SmallVec::from_elem(0, mask.len()), |(t, _)| t.mask.clone());
        }
        if exists(&bytes) { mask.clone() } else { bytes }
    }
}

/// Keeps the bytes that are all ones.
fn whole_bytes(word: u64) -> u64 {
    word.to_be_bytes()
        .iter()
        .fold(0, |kept, byte| (kept << 8) | if *byte == 0xff { 0xff } else { 0 })
}

impl Tuple {
    fn new(mask: Words, best: Rank) -> Self {
        Self {
            bits: mask.iter().map(|word| word.count_ones()).sum(),
            map: Exact::new(mask.len()),
            mask,
            buckets: Vec::new(),
            free: Vec::new(),
            ranks: BTreeSet::new(),
            best,
        }
    }

    fn bucket_len(&self, value: &[u64]) -> usize {
        let bucket = self.map.find_masked(value, &self.mask);
        bucket.map_or(0, |bucket| self.buckets[bucket as usize].len())
    }

    fn insert(&mut self, value: &[u64], rank: Rank, id: EntryId) {
        let masked: Words = value.iter().zip(&self.mask).map(|(v, m)| v & m).collect();
        let (buckets, free) = (&mut self.buckets, &mut self.free);
        let bucket = self.map.get_or_insert(&masked, || {
            free.pop().unwrap_or_else(|| {
                buckets.push(Bucket::new());
                (buckets.len() - 1) as u32
            })
        });
        let bucket = &mut self.buckets[bucket as usize];
        let at = bucket.partition_point(|(other, _)| *other > rank);
        bucket.insert(at, (rank, id));
        self.ranks.insert(rank);
        self.best = self.best.max(rank);
    }

    fn remove(&mut self, value: &[u64], rank: Rank, id: EntryId) {
        let masked: Words = value.iter().zip(&self.mask).map(|(v, m)| v & m).collect();
        let Some(index) = self.map.find(&masked) else { return };
        let bucket = &mut self.buckets[index as usize];
        bucket.retain(|(_, other)| *other != id);
        if bucket.is_empty() {
            self.map.remove(&masked);
            self.free.push(index);
        }
        self.ranks.remove(&rank);
        if let Some(best) = self.ranks.last() {
            self.best = *best;
        }
    }
}
