//! Table `classify`: which label, queue and slots a flow gets at its source leaf. In: flow key, tag. Out: entries.
//! Must not know jobs, or why a flow got its label.
//!
//! Every flow has one entry per direction. All entries have one priority for their whole life, because priority is
//! part of the key: their keys never overlap, so it decides nothing.

use super::labels::Label;
use super::schema::{EntryError, MatchKind, Part, ProgramError, Schema, Spec};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1::TableEntry;
use crate::topology::FlowKey;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;

const SPEC: Spec = Spec {
    table: "classify",
    keys: &[
        ("src_addr", MatchKind::Ternary, 32),
        ("dst_addr", MatchKind::Ternary, 32),
        ("protocol", MatchKind::Ternary, 8),
        ("src_port", MatchKind::Ternary, 16),
        ("dst_port", MatchKind::Ternary, 16),
        ("dst_qp", MatchKind::Ternary, 24),
    ],
    actions: &[(
        "tag",
        &[
            ("label", 16),
            ("queue", 3),
            ("src_slot", 16),
            ("slot", 16),
            ("epoch", 8),
            ("flip", 8),
            ("old_label", 16),
            ("old_queue", 3),
            ("force", 1),
            ("flip_gap", 32),
        ],
    )],
};

/// The priority of every entry; any value above 0 would do.
pub const PRIORITY: i32 = 100;

/// Which packets: the flow's 5-tuple and queue pair.
pub type Key = FlowKey;

/// `tag`: what the source leaf writes into the tag, and how a change comes into force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// The tree to the sink leaf.
    pub label: Label,
    /// Queue on every hop, 0..=7, larger served first.
    pub queue: u8,
    /// Flip and sequence registers at the source leaf; 0 is untracked.
    pub src_slot: u16,
    /// Telemetry registers at the sink leaf; 0 is untracked.
    pub slot: u16,
    /// The flow's incarnation at the sink's slot.
    pub epoch: u8,
    /// While the source leaf's stored value differs, `old_label` and `old_queue` are used.
    pub flip: u8,
    /// The label before the last change.
    pub old_label: Label,
    /// The queue before the last change.
    pub old_queue: u8,
    /// Flip with the next packet, whatever the gap.
    pub force: bool,
    /// Silence after which a flip may happen, in ticks of the target (1 µs on v1model).
    pub flip_gap: u32,
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
        let any = |part: Option<u128>| part.map_or(Part::Any, Part::Is);
        let parts = [
            Part::Is(u32::from(key.src).into()),
            Part::Is(u32::from(key.dst).into()),
            Part::Is(key.protocol.into()),
            any(key.src_port.map(Into::into)),
            any(key.dst_port.map(Into::into)),
            any(key.dst_qp.map(Into::into)),
        ];
        let args = [
            action.label.0.into(),
            action.queue.into(),
            action.src_slot.into(),
            action.slot.into(),
            action.epoch.into(),
            action.flip.into(),
            action.old_label.0.into(),
            action.old_queue.into(),
            action.force.into(),
            action.flip_gap.into(),
        ];
        self.0.entry(&parts, PRIORITY, 0, &args)
    }

    /// The key and action of an entry.
    ///
    /// # Errors
    /// [`EntryError`] when it is not one that [`Table::to_entry`] makes.
    pub fn from_entry(&self, entry: &TableEntry) -> Result<(Key, Action), EntryError> {
        Ok((self.key(entry)?, self.action(entry)?))
    }

    fn key(&self, entry: &TableEntry) -> Result<Key, EntryError> {
        let parts = self.0.parts(entry)?;
        let field = |at: usize, name| match parts[at] {
            Part::Is(value) => u32::try_from(value).map(Some).map_err(|_| self.0.wrong(name)),
            Part::Any => Ok(None),
            Part::Prefix(..) => Err(self.0.wrong(name)),
        };
        let must = |at, name| field(at, name)?.ok_or(self.0.wrong(name));
        let port = |at, name| {
            field(at, name)?.map(u16::try_from).transpose().map_err(|_| self.0.wrong(name))
        };
        Ok(FlowKey {
            src: Ipv4Addr::from(must(0, "src_addr")?),
            dst: Ipv4Addr::from(must(1, "dst_addr")?),
            protocol: u8::try_from(must(2, "protocol")?).map_err(|_| self.0.wrong("protocol"))?,
            src_port: port(3, "src_port")?,
            dst_port: port(4, "dst_port")?,
            dst_qp: field(5, "dst_qp")?,
        })
    }

    fn action(&self, entry: &TableEntry) -> Result<Action, EntryError> {
        let (_, args) = self.0.own_action(entry)?;
        let names = SPEC.actions[0].1;
        let at = |place: usize| {
            let value = args.get(place).copied();
            value.and_then(|v| u32::try_from(v).ok()).ok_or(self.0.wrong(names[place].0))
        };
        let short = |place| u16::try_from(at(place)?).map_err(|_| self.0.wrong(names[place].0));
        let byte = |place| u8::try_from(at(place)?).map_err(|_| self.0.wrong(names[place].0));
        Ok(Action {
            label: Label(short(0)?),
            queue: byte(1)?,
            src_slot: short(2)?,
            slot: short(3)?,
            epoch: byte(4)?,
            flip: byte(5)?,
            old_label: Label(short(6)?),
            old_queue: byte(7)?,
            force: at(8)? != 0,
            flip_gap: at(9)?,
        })
    }
}
