//! Table `switch_config`: what a switch is told about itself. In: incarnation, gap. Out: the default entry. Must not know
//! which switch it is.
//!
//! The table has no key: its default action carries the values. A default entry can only be modified.

use super::schema::{EntryError, ProgramError, Schema, Spec};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;

const SPEC: Spec = Spec {
    table: "switch_config",
    keys: &[],
    actions: &[("set_switch_config", &[("incarnation", 32), ("idle_gap", 32)])],
};

/// `set_switch_config`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Random value that a restarted switch has lost.
    pub incarnation: u32,
    /// Silence of a source that counts as idle, in ticks of the target (1 µs on v1model).
    pub idle_gap: u32,
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

    /// The default entry.
    #[must_use]
    pub fn to_entry(&self, action: Action) -> TableEntry {
        let args = [action.incarnation.into(), action.idle_gap.into()];
        TableEntry { is_default_action: true, ..self.0.entry(&[], 0, 0, &args) }
    }

    /// The action of the default entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<Action, EntryError> {
        self.0.parts(entry)?;
        let (_, args) = self.0.own_action(entry)?;
        let at = |place: usize, name| {
            let value = args.get(place).and_then(|value| u32::try_from(*value).ok());
            value.ok_or(self.0.wrong(name))
        };
        Ok(Action { incarnation: at(0, "incarnation")?, idle_gap: at(1, "idle_gap")? })
    }
}
