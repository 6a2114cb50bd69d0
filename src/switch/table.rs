//! The entries of one table. In: packed keys from packets, entries from the control plane. Out: what to run; counts and
//! times kept per entry. Must not know P4Runtime's messages or the meaning of an action.

use crate::switch::lookup::{EntryId, FieldKind, FieldMatch, KeyLayout, Lookup, PackedKey, Rank};
use crate::switch::meter::Meter;
use crate::switch::profile::{Bound, Choices};
use crate::switch::program::{self, ActionNo, ConstMatch, MatchKind};
use crate::switch::stats::Count;
use rustc_hash::FxHashMap;

/// Entries of one table, whatever the program declares: what fits into memory by a wide margin.
pub const MAX_ENTRIES: u32 = 4 << 20;

/// What a hit runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// An action.
    Action(Bound),
    /// A member of the table's profile.
    Member(u32),
    /// A group of the table's profile.
    Group(u32),
    /// A group that belongs to this entry alone.
    OneShot(OneShot),
}

/// A group that belongs to one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneShot {
    /// What it chooses from.
    pub choices: Choices<Bound>,
    /// The selection mode and the size semantics as the controller wrote them; they may repeat the selector's.
    pub written: (i32, i32),
}

/// What the controller notes with an entry; the switch only keeps it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Note {
    /// `metadata`.
    pub metadata: Vec<u8>,
    /// `controller_metadata`, its predecessor.
    pub cookie: u64,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it matches.
    pub key: PackedKey,
    /// Larger wins; 0 in tables without priorities.
    pub priority: i32,
    /// What it runs.
    pub run: Run,
    /// Packets that hit it.
    pub count: Count,
    /// Its meter.
    pub meter: Meter,
    /// Nanoseconds without a hit until the controller is told; 0 = never.
    pub idle_timeout_ns: i64,
    /// Local time of the last hit (or of the insertion), microseconds.
    pub last_hit_us: u64,
    /// Local time of the last idle notification, if it has not been hit since.
    pub notified_us: Option<u64>,
    /// The controller's own.
    pub note: Note,
    /// Given by the program.
    pub constant: bool,
}

impl Entry {
    /// An entry that has seen nothing yet.
    #[must_use]
    pub fn new(key: PackedKey, priority: i32, run: Run) -> Self {
        Self {
            key,
            priority,
            run,
            count: Count::default(),
            meter: Meter::default(),
            idle_timeout_ns: 0,
            last_hit_us: 0,
            notified_us: None,
            note: Note::default(),
            constant: false,
        }
    }
}

/// The default entry.
#[derive(Clone, Debug, Default)]
pub struct DefaultEntry {
    /// What a miss runs; `None` runs nothing.
    pub run: Option<Run>,
    /// The controller's own.
    pub note: Note,
    /// Packets that missed.
    pub count: Count,
    /// Its meter, which counts only once the controller has given it rates: BMv2's direct meters know no misses.
    pub meter: Meter,
}

/// All entries of a table.
#[derive(Clone, Debug)]
pub struct Table {
    layout: KeyLayout,
    lookup: Lookup,
    entries: Vec<Option<Box<Entry>>>,
    free: Vec<EntryId>,
    ids: FxHashMap<(PackedKey, i32), EntryId>,
    sequence: u64,
    /// What a miss runs.
    pub default: DefaultEntry,
}

/// How a key is laid out for [`KeyLayout`].
#[must_use]
pub fn layout(key: &program::Key) -> KeyLayout {
    let place = |field: &program::KeyField| {
        let kind = match field.kind {
            MatchKind::Exact => FieldKind::Exact,
            MatchKind::Lpm => FieldKind::Lpm,
            MatchKind::Ternary => FieldKind::Ternary,
            MatchKind::Range => FieldKind::Range,
        };
        (kind, field.limb as usize, field.shift, field.width())
    };
    KeyLayout::at(key.fields.iter().map(place), key.limbs)
}

impl Table {
    /// An empty table for keys of this layout.
    #[must_use]
    pub fn new(layout: KeyLayout) -> Self {
        Self {
            lookup: Lookup::new(&layout),
            layout,
            entries: Vec::new(),
            free: Vec::new(),
            ids: FxHashMap::default(),
            sequence: 0,
            default: DefaultEntry::default(),
        }
    }

    /// How its keys are packed.
    #[must_use]
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// True when entries carry priorities.
    #[must_use]
    pub fn by_priority(&self) -> bool {
        self.lookup.by_priority()
    }

    /// Number of entries, the default not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True without entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The entry that a packed key hits. A table without key has no entries, so it always misses.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u64]) -> Option<EntryId> {
        if self.ids.is_empty() { None } else { self.lookup.find(key) }
    }

    /// The entry with exactly this key and priority.
    #[must_use]
    pub fn same(&self, key: &PackedKey, priority: i32) -> Option<EntryId> {
        // The tuple is built once per control-plane call; packets never come here.
        self.ids.get(&(key.clone(), priority)).copied()
    }

    /// An entry by its number.
    #[must_use]
    pub fn get(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(id as usize)?.as_deref()
    }

    /// An entry by its number, to be changed; its key and priority must stay.
    #[must_use]
    pub fn get_mut(&mut self, id: EntryId) -> Option<&mut Entry> {
        self.entries.get_mut(id as usize)?.as_deref_mut()
    }

    /// All entries in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (EntryId, &Entry)> {
        self.entries.iter().enumerate().filter_map(|(id, e)| Some((id as EntryId, e.as_deref()?)))
    }

    /// All entries, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter_map(|entry| entry.as_deref_mut())
    }

    /// Adds an entry; `None` if there is one with the same key and priority.
    pub fn insert(&mut self, entry: Entry) -> Option<EntryId> {
        let name = (entry.key.clone(), entry.priority);
        if self.ids.contains_key(&name) {
            return None;
        }
        let id = self.free.pop().unwrap_or(self.entries.len() as EntryId);
        let rank = Rank { priority: entry.priority, sequence: self.sequence };
        self.sequence += 1;
        self.lookup.insert(id, &entry.key, rank);
        self.ids.insert(name, id);
        if id as usize == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[id as usize] = Some(Box::new(entry));
        Some(id)
    }

    /// Removes an entry.
    pub fn remove(&mut self, id: EntryId) -> Option<Box<Entry>> {
        let entry = self.entries.get_mut(id as usize)?.take()?;
        self.lookup.remove(id, &entry.key);
        self.ids.remove(&(entry.key.clone(), entry.priority));
        self.free.push(id);
        Some(entry)
    }

    /// Adds the program's entries. JSON priorities count upwards (1 wins over 2), P4Runtime's downwards, so they are
    /// mirrored within the table. `actions` are the table's actions by canonical number. Entries that the layout
    /// refuses are left out: the loader has checked them.
    pub fn insert_constants(&mut self, table: &program::Table, actions: &[ActionNo]) {
        let Some(constants) = &table.const_entries else { return };
        let last = constants.iter().map(|entry| entry.priority).max().unwrap_or(0);
        for constant in constants {
            let bytes: Vec<(Vec<u8>, Vec<u8>, u32)> =
                constant.matches.iter().map(const_bytes).collect();
            let matches: Vec<FieldMatch<'_>> = constant
                .matches
                .iter()
                .zip(&bytes)
                .map(|(m, (a, b, len))| match m {
                    ConstMatch::Exact(_) => FieldMatch::Exact(a),
                    ConstMatch::Lpm(..) => FieldMatch::Lpm(a, *len),
                    ConstMatch::Ternary(..) => FieldMatch::Ternary(a, b),
                    ConstMatch::Range(..) => FieldMatch::Range(a, b),
                })
                .collect();
            let Ok(key) = self.layout.pack(&matches) else { continue };
            let Some(action) = actions.get(usize::from(constant.run.action)) else {
                continue;
            };
            let bound = Bound { action: *action, data: constant.run.data.clone() };
            let priority =
                if self.by_priority() { (last - constant.priority + 1) as i32 } else { 0 };
            let mut entry = Entry::new(key, priority, Run::Action(bound));
            entry.constant = true;
            self.insert(entry);
        }
    }
}

fn const_bytes(field: &ConstMatch) -> (Vec<u8>, Vec<u8>, u32) {
    let bytes = |limbs: &[u64]| limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
    match field {
        ConstMatch::Exact(value) => (bytes(value), Vec::new(), 0),
        ConstMatch::Lpm(value, len) => (bytes(value), Vec::new(), *len),
        ConstMatch::Ternary(a, b) | ConstMatch::Range(a, b) => (bytes(a), bytes(b), 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(action: u32) -> Run {
        Run::Action(Bound { action: ActionNo(action), data: Box::new([]) })
    }

    #[test]
    fn a_key_and_priority_exist_once_and_numbers_are_used_again() {
        let mut table = Table::new(KeyLayout::new(&[(FieldKind::Ternary, 8)]));
        let key = |value: u8| table_key(&[value]);
        fn table_key(value: &[u8]) -> PackedKey {
            let layout = KeyLayout::new(&[(FieldKind::Ternary, 8)]);
            layout.pack(&[FieldMatch::Ternary(value, &[0xff])]).unwrap()
        }
        let first = table.insert(Entry::new(key(1), 5, run(0))).unwrap();
        assert_eq!(table.insert(Entry::new(key(1), 5, run(1))), None);
        let second = table.insert(Entry::new(key(1), 6, run(1))).unwrap();
        assert_eq!(table.find(&[1]), Some(second));
        table.remove(second).unwrap();
        assert_eq!(table.find(&[1]), Some(first));
        assert_eq!(table.insert(Entry::new(key(2), 1, run(2))), Some(second));
        assert_eq!((table.len(), table.same(&key(2), 1)), (2, Some(second)));
        assert_eq!(table.same(&key(2), 2), None);
    }

    #[test]
    fn the_programs_entries_win_in_their_order() {
        let layout = KeyLayout::new(&[(FieldKind::Ternary, 8)]);
        let entry = |priority, action, mask: u64| program::ConstEntry {
            matches: vec![ConstMatch::Ternary(Box::new([0]), Box::new([mask]))],
            run: program::Invocation { action, data: Box::new([]) },
            priority,
        };
        let constants = vec![entry(2, 0, 0), entry(1, 1, 0xff)];
        let mut table = Table::new(layout);
        let actions = [ActionNo(10), ActionNo(11)];
        table.insert_constants(&tests_table(constants), &actions);
        let action = |key: u64| match &table.get(table.find(&[key]).unwrap()).unwrap().run {
            Run::Action(bound) => bound.action.0,
            _ => panic!(),
        };
        assert_eq!((action(0), action(9)), (11, 10));
    }

    fn tests_table(constants: Vec<program::ConstEntry>) -> program::Table {
        program::Table {
            fixed: None,
            name: String::new(),
            pipeline: 0,
            key: program::Key::default(),
            kind: program::TableKind::Ternary,
            implementation: program::Implementation::Simple,
            max_size: 10,
            actions: vec![ActionNo(10), ActionNo(11)],
            counter: None,
            with_counters: false,
            meter: None,
            idle_timeout: false,
            default: None,
            const_entries: Some(constants),
            next_hit: None,
            next_miss: None,
            next: Vec::new(),
            base_next: None,
        }
    }
}
