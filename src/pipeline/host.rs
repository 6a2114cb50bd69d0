//! Table `host`: the port of each host on a sink leaf. In: address, port. Out: entries. Must not know the cabling.

use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::id::PortNo;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;
use std::net::Ipv4Addr;

const SPEC: Spec = Spec {
    table: "host",
    keys: &[("dst_addr", MatchKind::Exact, 32)],
    actions: &[("to_host", &[("port", 9)])],
};

/// The inner destination address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The host's address.
    pub address: Ipv4Addr,
}

/// `to_host`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The host's port.
    pub port: PortNo,
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
        let address = Part::Is(u32::from(key.address).into());
        self.0.entry(&[address], 0, 0, &[action.port.0.into()])
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        let [Part::Is(address)] = self.0.parts(entry)?[..] else {
            return Err(self.0.wrong("dst_addr"));
        };
        let address = u32::try_from(address).map_err(|_| self.0.wrong("dst_addr"))?;
        let (_, args) = self.0.own_action(entry)?;
        let port = args.first().and_then(|port| u16::try_from(*port).ok());
        let port = PortNo(port.ok_or(self.0.wrong("port"))?);
        Ok((Key { address: Ipv4Addr::from(address) }, Action { port }))
    }
}
