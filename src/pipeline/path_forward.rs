//! Table `path_forward`: where a label leads at this switch. In: label, port or sink. Out: entries. Must not know which
//! label means what.

use super::labels::Label;
use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;

const SPEC: Spec = Spec {
    table: "path_forward",
    keys: &[("label", MatchKind::Exact, 16)],
    actions: &[("forward", &[("port", 9)]), ("sink", &[])],
};

/// The label in the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The label.
    pub label: Label,
}

/// What to do with a packet of that label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// `forward`: on towards the sink leaf.
    Forward {
        /// The port.
        port: PortNo,
    },
    /// `sink`: this switch is the sink leaf.
    Sink,
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

    /// The table's id in P4Info.
    #[must_use]
    pub const fn id(&self) -> u32 {
        self.0.id()
    }

    /// The entry for a key and an action.
    #[must_use]
    pub fn to_entry(&self, key: Key, action: Action) -> TableEntry {
        let parts = [Part::Is(key.label.0.into())];
        match action {
            Action::Forward { port } => self.0.entry(&parts, 0, 0, &[port.0.into()]),
            Action::Sink => self.0.entry(&parts, 0, 1, &[]),
        }
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        let [Part::Is(label)] = self.0.parts(entry)?[..] else {
            return Err(self.0.wrong("label"));
        };
        let label = Label(u16::try_from(label).map_err(|_| self.0.wrong("label"))?);
        let action = match self.0.own_action(entry)? {
            (0, args) => {
                let port = args.first().and_then(|port| u16::try_from(*port).ok());
                Action::Forward { port: PortNo(port.ok_or(self.0.wrong("port"))?) }
            }
            _ => Action::Sink,
        };
        Ok((Key { label }, action))
    }
}
