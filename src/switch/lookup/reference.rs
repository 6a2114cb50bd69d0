//! The slow, obviously right lookup: look at every entry, keep the best that matches. In: entries as packed keys. Out:
//! the entry that wins. The clever structures must agree with it on random entries and keys; it also stands beside them
//! in the benches.

use super::{EntryId, FieldKind, KeyLayout, PackedKey, Rank};

/// Entries in the order of insertion.
#[derive(Clone, Debug)]
pub struct Reference {
    layout: KeyLayout,
    /// One LPM field and else exact ones: length decides; with priorities a prefix is just a mask.
    length_decides: bool,
    entries: Vec<(EntryId, PackedKey, Rank)>,
}

impl Reference {
    /// An empty list for keys of this layout.
    #[must_use]
    pub fn new(layout: KeyLayout) -> Self {
        let lpm = layout.lpm_field();
        let rest_exact = (0..layout.len()).all(|i| {
            Some(i) == lpm || layout.field(i).is_some_and(|(kind, _)| kind == FieldKind::Exact)
        });
        Self { layout, length_decides: rest_exact, entries: Vec::new() }
    }

    /// Adds an entry.
    pub fn insert(&mut self, id: EntryId, key: &PackedKey, rank: Rank) {
        self.entries.push((id, key.clone(), rank));
    }

    /// Removes an entry by its number.
    pub fn remove(&mut self, id: EntryId) {
        self.entries.retain(|(other, _, _)| *other != id);
    }

    /// The winner: highest priority, then longest prefix, then earliest insertion.
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        let mut best: Option<(i32, u32, u64, EntryId)> = None;
        for (id, entry, rank) in &self.entries {
            let bits_match = (0..key.len()).all(|i| key[i] & entry.mask[i] == entry.value[i]);
            if !bits_match || !self.layout.ranges_hold(entry, key) {
                continue;
            }
            let length = if self.length_decides { entry.prefix_len } else { 0 };
            let better = best.is_none_or(|(priority, longest, sequence, _)| {
                (rank.priority, length) > (priority, longest)
                    || ((rank.priority, length) == (priority, longest) && rank.sequence < sequence)
            });
            if better {
                best = Some((rank.priority, length, rank.sequence, *id));
            }
        }
        best.map(|(_, _, _, id)| id)
    }
}
