//! What the switches hold, read from the devices themselves and not from the controller's mirror.

use crate::id::SwitchId;
use crate::p4runtime::device::Device as _;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::pipeline::counters::Counters;
use crate::pipeline::labels::Label;
use crate::pipeline::{Program, classify, path_forward};
use crate::sim::fabric::{SharedServer, lock};
use crate::time::Time;
use std::collections::BTreeMap;

/// One switch's entries of the tables that invariants look at.
#[derive(Clone, Debug, Default)]
pub struct SwitchTables {
    /// `classify`.
    pub classify: Vec<(classify::Key, classify::Action)>,
    /// `path_forward`.
    pub labels: BTreeMap<Label, path_forward::Action>,
    /// Entries that are not of the form that our controller writes.
    pub unreadable: Vec<String>,
}

/// All switches' entries.
#[derive(Clone, Debug)]
pub struct Tables {
    program: Program,
    counters: Counters,
    switches: Vec<SwitchTables>,
}

impl Tables {
    /// Nothing read yet.
    #[must_use]
    pub fn new(program: Program, counters: Counters, switches: usize) -> Self {
        Self { program, counters, switches: vec![SwitchTables::default(); switches] }
    }

    /// The program, resolved.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// One switch's entries as last read.
    #[must_use]
    pub fn of(&self, switch: SwitchId) -> &SwitchTables {
        &self.switches[switch.index()]
    }

    /// Reads a switch again.
    pub fn read(&mut self, server: &SharedServer, now: Time, switch: SwitchId) {
        let mut tables = SwitchTables::default();
        let program = &self.program;
        let wanted = [program.classify.id(), program.path_forward.id()];
        for table_id in wanted {
            let entry = proto::TableEntry { table_id, ..Default::default() };
            let entity = proto::Entity { entity: Some(Kind::TableEntry(entry)) };
            // Before a program is loaded a read fails, and the tables are empty.
            let _ = lock(server).device().read(now, &entity, &mut |found| {
                if let Some(Kind::TableEntry(entry)) = found.entity {
                    take(program, &mut tables, &entry);
                }
            });
        }
        self.switches[switch.index()] = tables;
    }

    /// Packets of a switch that had a label without an entry.
    #[must_use]
    pub fn label_misses(&self, server: &SharedServer, now: Time) -> u64 {
        let entity = self.counters.read_label_misses();
        let mut found = Vec::new();
        let _ = lock(server).device().read(now, &entity, &mut |cell| found.push(cell));
        self.counters.sum(&found).0.label_miss
    }
}

fn take(program: &Program, tables: &mut SwitchTables, entry: &proto::TableEntry) {
    if entry.table_id == program.classify.id() {
        match program.classify.from_entry(entry) {
            Ok(pair) => tables.classify.push(pair),
            Err(error) => tables.unreadable.push(error.to_string()),
        }
    } else {
        match program.path_forward.from_entry(entry) {
            Ok((key, action)) => {
                tables.labels.insert(key.label, action);
            }
            Err(error) => tables.unreadable.push(error.to_string()),
        }
    }
}
