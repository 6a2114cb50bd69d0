//! Table `port_role`: which ports are trusted. In: port, role. Out: entries. Must not know the cabling.
//!
//! A tag, probe or CPU header that arrives on an edge port is dropped and counted by the program.

use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;

const SPEC: Spec = Spec {
    table: "port_role",
    keys: &[("ingress_port", MatchKind::Exact, 9)],
    actions: &[("set_port_role", &[("role", 2)])],
};

/// The port on which packets arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The port.
    pub port: PortNo,
}

/// What is on the other side of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A host: trusted with nothing. The program's default.
    Edge = 0,
    /// Another switch of the fabric.
    Fabric = 1,
    /// The controller.
    Cpu = 2,
}

/// `set_port_role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The role.
    pub role: Role,
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
        self.0.entry(&[Part::Is(key.port.0.into())], 0, 0, &[action.role as u128])
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        let [Part::Is(port)] = self.0.parts(entry)?[..] else {
            return Err(self.0.wrong("ingress_port"));
        };
        let port = u16::try_from(port).map_err(|_| self.0.wrong("ingress_port"))?;
        let role = match self.0.own_action(entry)?.1[..] {
            [0] => Role::Edge,
            [1] => Role::Fabric,
            [2] => Role::Cpu,
            _ => return Err(self.0.wrong("role")),
        };
        Ok((Key { port: PortNo(port) }, Action { role }))
    }
}
