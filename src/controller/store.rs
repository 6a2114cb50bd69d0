//! What must survive the controller: jobs, target, election epoch, allocators, flow states, incarnations, event log.
//!
//! In: [`Batch`]es of versioned [`Record`]s. Out: all records, after a restart. Must not know what they mean.
//!
//! Wanted entries are not stored: they follow from topology, target and program (design: control, "Store").
//! [`memory`] serves tests and one-shot runs, [`redb`] one controller on one machine.

use super::messages::Event;
use super::rollout::{FlowState, Goal};
use crate::elastic::Generation;
use crate::feedback::Feedback;
use crate::id::{FlowId, JobId, SwitchId};
use crate::pipeline::labels::Labels;
use crate::pipeline::slots::Slots;
use crate::time::Time;
use crate::workload::{Flow, Job};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub mod memory;
pub mod redb;

pub use memory::MemoryStore;
pub use redb::RedbStore;

/// Version of the records' form. A store with another one is refused: silently dropping a field would lose state.
pub const VERSION: u16 = 1;

/// Names a record; the order of keys is the order of loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// The highest election epoch used.
    Epoch,
    /// The label allocator.
    Labels,
    /// The slot allocators.
    Slots,
    /// The incarnation last written to a switch.
    Switch(SwitchId),
    /// A job.
    Job(JobId),
    /// The target of the rollout.
    Target,
    /// Reactions to stragglers.
    Feedback,
    /// A flow's entries.
    Flow(FlowId),
    /// One line of the event log.
    Event(u64),
}

/// One thing that survives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// The highest election epoch used so far.
    Epoch(u64),
    /// The label allocator.
    Labels(Labels),
    /// The slot allocators.
    Slots(Slots),
    /// The incarnation of a switch.
    Switch {
        /// The switch.
        switch: SwitchId,
        /// The value last written to it.
        incarnation: u32,
    },
    /// A job and its flows.
    Job {
        /// The job.
        job: Job,
        /// Its flows.
        flows: Vec<Flow>,
        /// Its membership.
        #[serde(default)]
        generation: Generation,
        /// Whether its agents have been told to form a ring and have not answered.
        #[serde(default)]
        forming: bool,
        /// Port of the first edge of its ring, if that is over TCP.
        #[serde(default)]
        first_port: Option<u16>,
    },
    /// Where the rollout goes.
    Target {
        /// Generation of the plan.
        generation: u64,
        /// Policy that made it.
        policy: String,
        /// Goal of every flow that has a live path.
        goals: BTreeMap<FlowId, Goal>,
    },
    /// Reactions to stragglers, their pauses, slow links.
    Feedback(Feedback),
    /// The journal of one flow.
    Flow(FlowState),
    /// One event.
    Event {
        /// Its number.
        number: u64,
        /// When, on the clock of the run that saw it.
        at: Time,
        /// What.
        event: Event,
    },
}

impl Record {
    /// The record's name.
    #[must_use]
    pub const fn key(&self) -> Key {
        match self {
            Self::Epoch(_) => Key::Epoch,
            Self::Labels(_) => Key::Labels,
            Self::Slots(_) => Key::Slots,
            Self::Switch { switch, .. } => Key::Switch(*switch),
            Self::Job { job, .. } => Key::Job(job.id),
            Self::Target { .. } => Key::Target,
            Self::Feedback(_) => Key::Feedback,
            Self::Flow(flow) => Key::Flow(flow.flow),
            Self::Event { number, .. } => Key::Event(*number),
        }
    }
}

/// Changes that become durable together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// Records to write, later ones of one key win.
    pub puts: Vec<Record>,
    /// Records to remove.
    pub deletes: Vec<Key>,
}

impl Batch {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.puts.is_empty() && self.deletes.is_empty()
    }
}

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error(
        "the store {path} is in use by another process; one controller at a time may run on it (stop the other, or give this one its own --store)"
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be opened or is no store.
    #[error("the store {path} cannot be opened; check the path and its permissions")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Box<::redb::Error>,
    },
    /// A transaction failed; nothing of it is durable.
    #[error("the store {path} cannot {verb}; nothing was changed (is the disk full?)")]
    Io {
        /// The file.
        path: PathBuf,
        /// Read or commit.
        verb: &'static str,
        /// Why.
        #[source]
        source: Box<::redb::Error>,
    },
    /// Written by another version of this program.
    #[error(
        "record {key} of the store has version {found}, this program reads version {VERSION}; use the program that wrote it, or start with an empty store"
    )]
    Version {
        /// The record.
        key: String,
        /// Its version.
        found: u16,
    },
    /// A record that cannot be decoded.
    #[error(
        "record {key} of the store cannot be read; restore the file from a copy, or start with an empty store"
    )]
    Record {
        /// The record.
        key: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

/// Where records live.
pub trait Store: Send {
    /// All records, ascending by key.
    ///
    /// # Errors
    /// When a record cannot be read or has another version.
    fn load(&self) -> Result<Vec<Record>, StoreError>;

    /// Makes a batch durable. On an error nothing of it is.
    ///
    /// # Errors
    /// When the disk refuses.
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError>;
}

#[derive(Serialize, Deserialize)]
struct Envelope<T> {
    version: u16,
    record: T,
}

fn encode(record: &Record) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&Envelope { version: VERSION, record })
        .map_err(|source| StoreError::Record { key: format!("{:?}", record.key()), source })
}

fn decode(key: &str, bytes: &[u8]) -> Result<Record, StoreError> {
    let broken = |source| StoreError::Record { key: key.to_owned(), source };
    // The version first: a record of another version need not have a shape that we know.
    let Envelope { version, .. }: Envelope<serde_json::Value> =
        serde_json::from_slice(bytes).map_err(broken)?;
    if version != VERSION {
        return Err(StoreError::Version { key: key.to_owned(), found: version });
    }
    let envelope: Envelope<Record> = serde_json::from_slice(bytes).map_err(broken)?;
    Ok(envelope.record)
}

/// The key as text, such that the order of texts is the order of keys.
fn key_text(key: Key) -> String {
    match key {
        Key::Epoch => "0/epoch".to_owned(),
        Key::Labels => "1/labels".to_owned(),
        Key::Slots => "2/slots".to_owned(),
        Key::Switch(switch) => format!("3/switch/{:010}", switch.0),
        Key::Job(job) => format!("4/job/{:010}", job.0),
        Key::Target => "5/target".to_owned(),
        Key::Feedback => "5a/feedback".to_owned(),
        Key::Flow(flow) => format!("6/flow/{:010}", flow.0),
        Key::Event(number) => format!("7/event/{number:020}"),
    }
}

#[cfg(test)]
mod tests;
