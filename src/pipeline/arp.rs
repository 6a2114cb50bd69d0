//! Table `arp`: answers to address requests. In: address, Ethernet address. Out: entries. Must not know the cabling.

use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;
use std::net::Ipv4Addr;

const SPEC: Spec = Spec {
    table: "arp",
    keys: &[("target_addr", MatchKind::Exact, 32)],
    actions: &[("arp_reply", &[("mac", 48)])],
};

/// The address asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The address.
    pub address: Ipv4Addr,
}

/// `arp_reply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The host's Ethernet address.
    pub mac: [u8; 6],
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
        let mac = action.mac.iter().fold(0_u128, |mac, byte| mac << 8 | u128::from(*byte));
        self.0.entry(&[Part::Is(u32::from(key.address).into())], 0, 0, &[mac])
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        let [Part::Is(address)] = self.0.parts(entry)?[..] else {
            return Err(self.0.wrong("target_addr"));
        };
        let address = u32::try_from(address).map_err(|_| self.0.wrong("target_addr"))?;
        let (_, args) = self.0.own_action(entry)?;
        let value = args.first().filter(|mac| **mac < 1 << 48).ok_or(self.0.wrong("mac"))?;
        let mut mac = [0; 6];
        mac.copy_from_slice(&value.to_be_bytes()[10..]);
        Ok((Key { address: Ipv4Addr::from(address) }, Action { mac }))
    }
}
