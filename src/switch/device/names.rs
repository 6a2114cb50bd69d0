//! P4Info's ids against the program's numbers. In: P4Info and a loaded program. Out: a table of both, made once per
//! pipeline. Must not know entries.

use crate::p4runtime::p4info::{Index, MatchType, Table};
use crate::p4runtime::proto::p4::config::v1::P4Info;
use crate::switch::memory::canonical_actions;
use crate::switch::program::{
    ActionNo, CounterNo, Implementation, MeterNo, ProfileNo, Program, RegisterNo, TableNo,
    ValueSetNo,
};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why P4Info and program do not belong together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamesError {
    /// P4Info names something that the program lacks.
    #[error("P4Info has the {kind} '{name}' and the device config has not; compile both together")]
    Missing {
        /// What it is.
        kind: &'static str,
        /// Its full name.
        name: String,
    },
    /// P4Info has no message or contradicts itself.
    #[error("P4Info cannot be used: {0}")]
    Info(String),
}

/// A match field.
#[derive(Clone, Debug)]
pub struct FieldNames {
    /// Its id.
    pub id: u32,
    /// How controllers write it.
    pub kind: MatchType,
    /// Its width in bits.
    pub width: u32,
    /// Its position in the program's key.
    pub at: usize,
}

/// A table.
#[derive(Clone, Debug)]
pub struct TableNames {
    /// Its id.
    pub id: u32,
    /// Its name, for messages.
    pub name: String,
    /// Its number.
    pub no: TableNo,
    /// In P4Info's order.
    pub fields: Vec<FieldNames>,
    /// Actions by id, for tables and their profiles.
    pub actions: BTreeMap<u32, ActionNo>,
    /// It has a direct counter.
    pub counter: Option<u32>,
    /// It has a direct meter.
    pub meter: Option<u32>,
    /// Its profile.
    pub profile: Option<ProfileNo>,
    /// Most entries.
    pub size: usize,
    /// The program's entries cannot be changed.
    pub constant: bool,
}

/// An action.
#[derive(Clone, Debug)]
pub struct ActionNames {
    /// Parameter id, width in bits, first limb.
    pub params: Vec<(u32, u32, u32)>,
    /// Limbs of its data.
    pub limbs: usize,
}

/// A profile.
#[derive(Clone, Debug)]
pub struct ProfileNames {
    /// Its name, for messages.
    pub name: String,
    /// Its number.
    pub no: ProfileNo,
    /// Actions by id.
    pub actions: BTreeMap<u32, ActionNo>,
    /// Most members (without a selector) or most weight over all groups; 0 = no limit but memory.
    pub size: usize,
}

/// Where a controller header's field lies.
#[derive(Clone, Debug)]
pub struct HeaderField {
    /// Its id.
    pub id: u32,
    /// Its width in bits.
    pub width: u32,
    /// Filler that controllers need not know (`@padding`).
    pub padding: bool,
}

/// Everything that has an id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Tables by id.
    pub tables: BTreeMap<u32, TableNames>,
    /// Actions by id.
    pub actions: BTreeMap<u32, ActionNames>,
    /// Id of an action by (canonical) number.
    pub action_ids: BTreeMap<ActionNo, u32>,
    /// Profiles by id.
    pub profiles: BTreeMap<u32, ProfileNames>,
    /// Counter arrays by id.
    pub counters: BTreeMap<u32, CounterNo>,
    /// Meter arrays by id.
    pub meters: BTreeMap<u32, MeterNo>,
    /// Registers by id.
    pub registers: BTreeMap<u32, RegisterNo>,
    /// Value sets by id.
    pub value_sets: BTreeMap<u32, ValueSetNo>,
    /// Digests by id: position in `Program::learn_lists`.
    pub digests: BTreeMap<u32, usize>,
    /// The `packet_in` header.
    pub packet_in: Vec<HeaderField>,
    /// The `packet_out` header.
    pub packet_out: Vec<HeaderField>,
}

fn missing(kind: &'static str, name: &str) -> NamesError {
    NamesError::Missing { kind, name: name.to_owned() }
}

impl Names {
    /// Pairs everything by name.
    ///
    /// # Errors
    /// Names the first object of P4Info that the program lacks.
    pub fn new(index: &Index, program: &Program) -> Result<Self, NamesError> {
        let mut names = Self::default();
        names.pair_actions(index, program);
        // p4c also leaves out tables that match on nothing and do nothing, and keeps them in P4Info.
        let left_out =
            |t: &Table| t.fields.is_empty() && program.table_named(&t.names.name).is_none();
        for table in index.tables().iter().filter(|table| !left_out(table)) {
            let paired = names.table(index, program, table)?;
            names.tables.insert(table.names.id, paired);
        }
        for profile in index.profiles() {
            let name = &profile.names.name;
            let at = program.profiles.iter().position(|p| &p.name == name);
            // And profiles that no table uses.
            if at.is_none() && profile.tables.is_empty() {
                continue;
            }
            let no = ProfileNo::from(at.ok_or_else(|| missing("action profile", name))?);
            let tables = names.tables.values().filter(|t| profile.tables.contains(&t.id));
            let actions = tables.flat_map(|t| t.actions.clone()).collect();
            let size = usize::try_from(profile.size).unwrap_or(0);
            let paired = ProfileNames { name: name.clone(), no, actions, size };
            names.profiles.insert(profile.names.id, paired);
        }
        names.pair_arrays(index, program)?;
        names.packet_in = header(index.info(), "packet_in");
        names.packet_out = header(index.info(), "packet_out");
        Ok(names)
    }

    fn pair_actions(&mut self, index: &Index, program: &Program) {
        let canonical = canonical_actions(program);
        for action in index.actions() {
            let Some(at) = program.actions.iter().position(|a| a.name == action.names.name) else {
                // The compiler leaves out actions that no table can reach.
                continue;
            };
            let declared = &program.actions[at];
            let place = |(i, param): (usize, &crate::p4runtime::p4info::Param)| {
                let by_name = declared.params.iter().find(|p| p.name == param.name);
                let found = by_name.or_else(|| declared.params.get(i))?;
                Some((param.id, found.width, found.limb))
            };
            let params = action.params.iter().enumerate().filter_map(place).collect();
            let names = ActionNames { params, limbs: declared.data_limbs };
            self.actions.insert(action.names.id, names);
            self.action_ids.insert(canonical[at], action.names.id);
        }
    }

    fn table(
        &self,
        index: &Index,
        program: &Program,
        table: &Table,
    ) -> Result<TableNames, NamesError> {
        let name = &table.names.name;
        let no = program.table_named(name).ok_or_else(|| missing("table", name))?;
        let declared = &program.tables[no.index()];
        let mut fields = Vec::new();
        for (i, field) in table.fields.iter().enumerate() {
            let by_name = declared.key.fields.iter().position(|f| f.name == field.name);
            let at = by_name.or((i < declared.key.fields.len()).then_some(i));
            let at = at.ok_or_else(|| missing("match field", &format!("{name}.{}", field.name)))?;
            let width = declared.key.fields[at].width();
            fields.push(FieldNames { id: field.id, kind: field.kind, width, at });
        }
        let canonical = canonical_actions(program);
        let mut actions = BTreeMap::new();
        for used in &table.actions {
            let Some(action) = index.action_by_id(used.id) else { continue };
            let mut numbers = declared.actions.iter();
            let found = numbers.find(|no| program.actions[no.index()].name == action.names.name);
            if let Some(no) = found {
                actions.insert(used.id, canonical[no.index()]);
            }
        }
        let profile = match declared.implementation {
            Implementation::Simple => None,
            Implementation::Indirect(p) | Implementation::Selector(p) => Some(p),
        };
        Ok(TableNames {
            id: table.names.id,
            name: name.clone(),
            no,
            fields,
            actions,
            counter: table.counter,
            meter: table.meter,
            profile,
            size: size_of(table, declared),
            constant: table.is_const,
        })
    }

    fn pair_arrays(&mut self, index: &Index, program: &Program) -> Result<(), NamesError> {
        for counter in index.counters() {
            let at = program.counters.iter().position(|c| c.name == counter.names.name);
            let at = at.ok_or_else(|| missing("counter", &counter.names.name))?;
            self.counters.insert(counter.names.id, CounterNo::from(at));
        }
        for meter in index.meters() {
            let at = program.meters.iter().position(|m| m.name == meter.names.name);
            let at = at.ok_or_else(|| missing("meter", &meter.names.name))?;
            self.meters.insert(meter.names.id, MeterNo::from(at));
        }
        for register in index.registers() {
            let at = program.registers.iter().position(|r| r.name == register.names.name);
            let at = at.ok_or_else(|| missing("register", &register.names.name))?;
            self.registers.insert(register.names.id, RegisterNo::from(at));
        }
        for set in index.value_sets() {
            let at = program.value_sets.iter().position(|s| s.name == set.names.name);
            let at = at.ok_or_else(|| missing("value set", &set.names.name))?;
            self.value_sets.insert(set.names.id, ValueSetNo::from(at));
        }
        for digest in index.digests() {
            let at = program.learn_lists.iter().position(|l| l.name == digest.names.name);
            let at = at.ok_or_else(|| missing("digest", &digest.names.name))?;
            self.digests.insert(digest.names.id, at);
        }
        Ok(())
    }

    /// The table of a number.
    #[must_use]
    pub fn table_of(&self, no: TableNo) -> Option<&TableNames> {
        self.tables.values().find(|table| table.no == no)
    }
}

/// P4Info's size is what controllers count on. The compiler declares a table with initial entries as large as they are
/// many; a constant table needs no more.
fn size_of(
    table: &crate::p4runtime::p4info::Table,
    declared: &crate::switch::program::Table,
) -> usize {
    let declared = declared.max_size.max(1) as usize;
    let promised = usize::try_from(table.size).unwrap_or(0);
    if table.is_const { declared } else { declared.max(promised) }
}

fn header(info: &P4Info, name: &str) -> Vec<HeaderField> {
    let is_it = |h: &&crate::p4runtime::proto::p4::config::v1::ControllerPacketMetadata| {
        h.preamble.as_ref().is_some_and(|p| p.name == name)
    };
    let Some(header) = info.controller_packet_metadata.iter().find(is_it) else {
        return Vec::new();
    };
    let field =
        |m: &crate::p4runtime::proto::p4::config::v1::controller_packet_metadata::Metadata| {
            HeaderField {
                id: m.id,
                width: m.bitwidth.unsigned_abs(),
                padding: m.annotations.iter().any(|a| a.starts_with("@padding")),
            }
        };
    header.metadata.iter().map(field).collect()
}
