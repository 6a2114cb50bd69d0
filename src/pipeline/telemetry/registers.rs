//! The same cells by RegisterEntry.
//!
//! In: slots and an interval; entities read. Out: entities to read or write; samples. Must not know who asks, or retries.
//!
//! A Read is not one instant on every target, so only the copy of a *closed* interval is asked for: nobody writes it any
//! more. The running interval and the default entry of `switch_config` are read in the same message, so that an answer
//! tells whether it is still about the interval and the life of the switch that it was meant for.
//!
//! Where each pipe of a switch has registers of its own, a slot's cells are all taken from one pipe: the one that counted in
//! the interval, else the only one that knows the slot.

use super::{Cell, Sample, Totals};
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::value;
use crate::pipeline::pipes::Cells;
use crate::pipeline::schema::ProgramError;
use crate::pipeline::switch_config;
use crate::pipeline::target::{Target, Tick};

/// Registers by slot, in the order of [`Registers::slot`].
const BY_SLOT: [&str; 5] = ["sink_epoch", "packets", "bytes", "lost", "reordered"];
/// Registers by slot and copy, in the order of [`Registers::copy`].
const BY_COPY: [&str; 9] = [
    "interval_number",
    "interval_packets",
    "interval_bytes",
    "interval_active",
    "interval_delay_sum",
    "interval_delay_max",
    "interval_depth_max",
    "interval_first",
    "interval_last",
];

/// The register of the running interval, and those of the cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    tick: Tick,
    interval: u32,
    slot: [u32; BY_SLOT.len()],
    copy: [u32; BY_COPY.len()],
}

/// What one Read told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The running interval.
    pub running: u32,
    /// What `switch_config` says; 0 = not programmed.
    pub incarnation: u32,
    /// A sample per slot whose cells were all there.
    pub samples: Vec<Sample>,
}

impl Registers {
    /// Finds the registers in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when one is missing.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let id = |name: &str| {
            let found = index.register(name).map(|register| register.names.id);
            found.map_err(|error| ProgramError::Missing {
                what: "register",
                name: name.to_owned(),
                detail: error.to_string(),
            })
        };
        let mut slot = [0; BY_SLOT.len()];
        for (cell, name) in slot.iter_mut().zip(BY_SLOT) {
            *cell = id(name)?;
        }
        let mut copy = [0; BY_COPY.len()];
        for (cell, name) in copy.iter_mut().zip(BY_COPY) {
            *cell = id(name)?;
        }
        Ok(Self { tick: Target::of(index)?.tick(), interval: id("interval")?, slot, copy })
    }

    /// Ids of all registers of the telemetry.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        [self.interval].into_iter().chain(self.slot).chain(self.copy)
    }

    /// Reads the running interval: shows whether the switch offers RegisterEntry at all.
    #[must_use]
    pub fn probe(&self) -> proto::Entity {
        entity(self.interval, 0, None)
    }

    /// Sets the running interval.
    #[must_use]
    pub fn advance(&self, interval: u32) -> proto::Update {
        proto::Update {
            r#type: proto::update::Type::Modify.into(),
            entity: Some(entity(self.interval, 0, Some(interval))),
        }
    }

    /// Reads the cells of slots for one interval, the running interval, and what the switch was told about itself.
    #[must_use]
    pub fn read(
        &self,
        config: &switch_config::Table,
        slots: &[u16],
        interval: u32,
    ) -> Vec<proto::Entity> {
        let default = proto::TableEntry {
            table_id: config.id(),
            is_default_action: true,
            ..Default::default()
        };
        let mut entities =
            vec![self.probe(), proto::Entity { entity: Some(Kind::TableEntry(default)) }];
        for slot in slots {
            entities.extend(self.slot.iter().map(|id| entity(*id, (*slot).into(), None)));
            let copy = copy_of(*slot, interval);
            entities.extend(self.copy.iter().map(|id| entity(*id, copy, None)));
        }
        entities
    }

    /// The samples in the answer to [`Registers::read`]. A slot of which a cell is absent has none.
    #[must_use]
    pub fn samples(
        &self,
        config: &switch_config::Table,
        (slots, interval): (&[u16], u32),
        entities: &[proto::Entity],
    ) -> Read {
        let cells = Cells::of(entities);
        let incarnation = entities.iter().find_map(|entity| match &entity.entity {
            Some(Kind::TableEntry(entry)) if entry.is_default_action => {
                config.from_entry(entry).ok().map(|action| action.incarnation)
            }
            _ => None,
        });
        let incarnation = incarnation.unwrap_or(0);
        let running = self.running(&cells, 0).unwrap_or(0);
        let base = Sample { interval, incarnation, tick: self.tick, ..Sample::default() };
        let samples = slots.iter().filter_map(|slot| self.sample(&cells, *slot, base)).collect();
        Read { running, incarnation, samples }
    }

    /// The running interval of a pipe.
    fn running(&self, cells: &Cells, pipe: usize) -> Option<u32> {
        cells.in_pipe(self.interval, 0, pipe)
    }

    /// The sample of the pipe that has one to tell; `None` when a cell is absent, or when several pipes have.
    fn sample(&self, cells: &Cells, slot: u16, base: Sample) -> Option<Sample> {
        let pipes = 0..cells.pipes();
        let samples: Vec<Sample> =
            pipes.filter_map(|pipe| self.sample_of(cells, pipe, slot, base)).collect();
        let only = |told: fn(&Sample) -> bool| {
            let mut telling = samples.iter().filter(|sample| told(sample));
            telling.next().map(|first| (*first, telling.next().is_none()))
        };
        let counted = only(|sample| sample.cell.is_some());
        let known = counted.or_else(|| only(|sample| sample.epoch != 0));
        match known {
            Some((sample, alone)) => alone.then_some(sample),
            None => samples.first().copied(),
        }
    }

    fn sample_of(&self, cells: &Cells, pipe: usize, slot: u16, base: Sample) -> Option<Sample> {
        let at = |id: &u32, index: i64| cells.in_pipe(*id, index, pipe);
        let [epoch, packets, bytes, lost, reordered] =
            self.slot.each_ref().map(|id| at(id, slot.into()));
        let copy = copy_of(slot, base.interval);
        let [number, of_interval @ ..] = self.copy.each_ref().map(|id| at(id, copy));
        let [cell_packets, cell_bytes, active, delay_sum, delay_max, depth_max, first, last] =
            of_interval;
        let cell = Cell {
            packets: cell_packets?,
            bytes: cell_bytes?,
            active: active?,
            delay_sum: delay_sum?,
            delay_max: delay_max?,
            depth_max: depth_max?,
            first: first?,
            last: last?,
        };
        Some(Sample {
            slot,
            epoch: u8::try_from(epoch?).ok()?,
            running: self.running(cells, pipe).unwrap_or(0),
            totals: Totals { packets: packets?, bytes: bytes?, lost: lost?, reordered: reordered? },
            cell: (number? == base.interval).then_some(cell),
            ..base
        })
    }

    /// The running interval in the answer to [`Registers::probe`].
    #[must_use]
    pub fn running_in(&self, entities: &[proto::Entity]) -> Option<u32> {
        self.running(&Cells::of(entities), 0)
    }
}

/// Index of a slot's copy of an interval.
fn copy_of(slot: u16, interval: u32) -> i64 {
    2 * i64::from(slot) + i64::from(interval & 1)
}

fn entity(register_id: u32, index: i64, number: Option<u32>) -> proto::Entity {
    let data = number.map(|number| proto::P4Data {
        data: Some(proto::p4_data::Data::Bitstring(value::encode(number.into()))),
    });
    let index = Some(proto::Index { index });
    let entry = proto::RegisterEntry { register_id, index, data };
    proto::Entity { entity: Some(Kind::RegisterEntry(entry)) }
}
