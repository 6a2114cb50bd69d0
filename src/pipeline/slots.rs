//! Slots: the register indices of a flow at its source leaf and at its sink leaf.
//!
//! In: a leaf and an instant. Out: an index, with the epoch that tells this tenant of the index from the last.
//! Must not know: which flow gets the slot, entries, switches' answers.
//!
//! Source and sink leaf number their flows independently, so there are two tables per leaf. Index 0 means "not
//! tracked": when a leaf runs out, further flows get it and a warning, never a refusal (design: data plane,
//! "Telemetry registers"). A freed index rests in quarantine so that packets still under way cannot be counted for
//! the next tenant, and returns with `epoch + 1`, so that its register cells re-base themselves.

use crate::id::SwitchId;
use crate::time::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The index that is never allocated: "not tracked".
pub const UNTRACKED: u16 = 0;

/// An allocated register index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Slot {
    /// Register index; [`UNTRACKED`] when the leaf had none left.
    pub index: u16,
    /// Incarnation of the index: 1..=255 and round again; 0 is what a restarted switch holds, and [`UNTRACKED`] has.
    pub epoch: u8,
    /// The flip value that the previous tenant left behind. A new tenant starts with it, so that its first entry and
    /// the register agree and its first flip is a real one.
    pub flip: u8,
}

/// The epoch after `epoch`; never 0, which is what an empty slot holds.
#[must_use]
pub const fn next_epoch(epoch: u8) -> u8 {
    match epoch {
        u8::MAX => 1,
        epoch => epoch + 1,
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Resting {
    until: Time,
    slot: Slot,
}

/// One leaf's indices of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Table {
    /// First index never handed out so far.
    fresh: u32,
    /// Freed indices, in the order in which they become usable again.
    resting: Vec<Resting>,
}

impl Table {
    const fn new() -> Self {
        Self { fresh: 1, resting: Vec::new() }
    }

    fn allocate(&mut self, now: Time, size: u32) -> Slot {
        if let Some(first) = self.resting.first()
            && first.until <= now
        {
            return self.resting.remove(0).slot;
        }
        if self.fresh >= size {
            return Slot { index: UNTRACKED, ..Slot::default() };
        }
        let index = u16::try_from(self.fresh).unwrap_or(UNTRACKED);
        self.fresh += 1;
        Slot { index, epoch: 1, flip: 0 }
    }

    fn release(&mut self, until: Time, slot: Slot) {
        if slot.index == UNTRACKED {
            return;
        }
        let slot = Slot { epoch: next_epoch(slot.epoch), ..slot };
        let place = self.resting.partition_point(|resting| resting.until <= until);
        self.resting.insert(place, Resting { until, slot });
    }
}

/// Which of the two numberings of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Flows that enter the fabric at this leaf (flip and sequence registers).
    Source,
    /// Flows that leave the fabric at this leaf (telemetry registers).
    Sink,
}

/// How many indices each leaf has, and how long a freed one rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Cells per source register; indices `1..source` are usable.
    pub source: u32,
    /// Cells per sink register; indices `1..sink` are usable.
    pub sink: u32,
    /// Rest of a freed index: two telemetry intervals.
    pub quarantine: Span,
}

impl Sizes {
    /// Registers of the program in `p4/build` (p4/README.md); a slot rests for two telemetry intervals of the default length.
    pub const BUILT_IN: Self =
        Self { source: 4096, sink: 4096, quarantine: Span::from_millis(200) };
}

/// The allocators of all leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    #[serde(with = "as_list")]
    tables: BTreeMap<(SwitchId, Side), Table>,
}

/// JSON objects need text keys, so the map is written as a list of pairs.
mod as_list {
    use super::{BTreeMap, Deserialize, Serialize, Side, SwitchId, Table};
    use serde::{Deserializer, Serializer};

    type Tables = BTreeMap<(SwitchId, Side), Table>;

    pub(super) fn serialize<S: Serializer>(tables: &Tables, s: S) -> Result<S::Ok, S::Error> {
        tables.iter().collect::<Vec<_>>().serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Tables, D::Error> {
        Ok(Vec::<((SwitchId, Side), Table)>::deserialize(d)?.into_iter().collect())
    }
}

impl Slots {
    /// An index of `leaf`, or [`UNTRACKED`] when none is free.
    pub fn allocate(&mut self, now: Time, leaf: SwitchId, side: Side, sizes: Sizes) -> Slot {
        let size = match side {
            Side::Source => sizes.source,
            Side::Sink => sizes.sink,
        };
        self.tables.entry((leaf, side)).or_insert_with(Table::new).allocate(now, size)
    }

    /// Gives an index back; it rests for `sizes.quarantine`.
    pub fn release(&mut self, now: Time, leaf: SwitchId, side: Side, slot: Slot, sizes: Sizes) {
        let table = self.tables.entry((leaf, side)).or_insert_with(Table::new);
        table.release(now + sizes.quarantine, slot);
    }

    /// To be called after loading from the store: instants of an earlier run mean nothing on this run's clock, so
    /// every resting index rests in full again.
    pub fn restart_quarantine(&mut self, now: Time, sizes: Sizes) {
        for resting in self.tables.values_mut().flat_map(|table| &mut table.resting) {
            resting.until = now + sizes.quarantine;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: SwitchId = SwitchId(2);
    const SIZES: Sizes = Sizes { source: 4, sink: 3, quarantine: Span(100) };

    #[test]
    fn source_and_sink_number_their_flows_independently_and_never_use_zero() {
        let mut slots = Slots::default();
        let mut take = |side| slots.allocate(Time(0), LEAF, side, SIZES).index;
        assert_eq!([take(Side::Source), take(Side::Source), take(Side::Sink)], [1, 2, 1]);
    }

    #[test]
    fn a_leaf_without_a_free_index_hands_out_untracked() {
        let mut slots = Slots::default();
        let taken: Vec<u16> =
            (0..4).map(|_| slots.allocate(Time(0), LEAF, Side::Sink, SIZES).index).collect();
        assert_eq!(taken, [1, 2, UNTRACKED, UNTRACKED]);
    }

    #[test]
    fn a_freed_index_rests_and_returns_with_the_next_epoch_and_its_flip() {
        let mut slots = Slots::default();
        let mut first = slots.allocate(Time(0), LEAF, Side::Sink, SIZES);
        let _second = slots.allocate(Time(0), LEAF, Side::Sink, SIZES);
        first.epoch = 255;
        first.flip = 9;
        slots.release(Time(50), LEAF, Side::Sink, first, SIZES);
        assert_eq!(slots.allocate(Time(149), LEAF, Side::Sink, SIZES).index, UNTRACKED);
        let again = slots.allocate(Time(150), LEAF, Side::Sink, SIZES);
        assert_eq!(again, Slot { index: 1, epoch: 1, flip: 9 });
    }

    #[test]
    fn untracked_is_never_freed_into_the_pool() {
        let mut slots = Slots::default();
        slots.release(Time(0), LEAF, Side::Source, Slot::default(), SIZES);
        assert_eq!(slots.allocate(Time(1_000), LEAF, Side::Source, SIZES).index, 1);
    }

    #[test]
    fn a_reloaded_allocator_continues_and_rests_in_full_again() {
        let mut slots = Slots::default();
        let first = slots.allocate(Time(0), LEAF, Side::Sink, SIZES);
        slots.release(Time(900), LEAF, Side::Sink, first, SIZES);
        let text = serde_json::to_string(&slots).unwrap();
        let mut loaded: Slots = serde_json::from_str(&text).unwrap();
        assert_eq!(loaded, slots);
        loaded.restart_quarantine(Time(10), SIZES);
        assert_eq!(loaded.allocate(Time(109), LEAF, Side::Sink, SIZES).index, 2);
        assert_eq!(loaded.allocate(Time(110), LEAF, Side::Sink, SIZES).index, 1);
    }
}
