//! Table `traffic_class`: the queue of untagged packets by DSCP. In: code point, queue. Out: entries. Must not know who
//! marks packets.

use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;

const SPEC: Spec = Spec {
    table: "traffic_class",
    keys: &[("dscp", MatchKind::Exact, 6)],
    actions: &[("set_queue", &[("queue", 3)])],
};

/// The code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// DSCP, 0..=63.
    pub dscp: u8,
}

/// `set_queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The queue, 0..=6; the control queue is refused by the program for edge ports.
    pub queue: u8,
}

/// The resolved table.
#[derive(Clone, Debug)]
pub struct Table(pub(super) Schema);

impl Table {
    /// Finds the table in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when the program is another one.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        Schema::resolve(index, &SPEC).map(Self)
    }

    /// The entry for a key and an action.
    #[must_use]
    pub fn to_entry(&self, key: Key, action: Action) -> TableEntry {
        self.0.entry(&[Part::Is(key.dscp.into())], 0, 0, &[action.queue.into()])
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        let [Part::Is(dscp)] = self.0.parts(entry)?[..] else {
            return Err(self.0.wrong("dscp"));
        };
        let dscp = u8::try_from(dscp).map_err(|_| self.0.wrong("dscp"))?;
        let (_, args) = self.0.own_action(entry)?;
        let queue = args.first().and_then(|queue| u8::try_from(*queue).ok());
        Ok((Key { dscp }, Action { queue: queue.ok_or(self.0.wrong("queue"))? }))
    }
}
