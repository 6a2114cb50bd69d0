//! Direct counters and meters, named by the table entry that they belong to. In: `DirectCounterEntry`, `DirectMeterEntry`.
//! Out: the same, read from what packets change. Must not know packets.

use super::arrays::{counter_data, meter_config, meter_counter_data, rates};
use super::names::TableNames;
use super::{Control, Done, refuse, unknown_id};
use crate::p4runtime::device::Refusal;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kinds;
use crate::p4runtime::proto::p4::v1::{
    CounterData, DirectCounterEntry, DirectMeterEntry, TableEntry,
};
use crate::p4runtime::rpc::Code;
use crate::switch::meter::Meter;
use crate::switch::stats::Count;

type Emit<'a> = &'a mut dyn FnMut(Kinds);

pub(crate) fn count_of(data: &CounterData) -> Count {
    Count { packets: data.packet_count as u64, bytes: data.byte_count as u64 }
}

impl Control {
    /// The counter and the meter of an entry, or of the default entry.
    fn direct(&mut self, entry: Option<&TableEntry>) -> Result<(&mut Count, &mut Meter), Refusal> {
        let Some(entry) = entry else {
            return refuse(Code::InvalidArgument, "a direct resource is named by a table entry");
        };
        let names = std::sync::Arc::clone(&self.names);
        let names = names.tables.get(&entry.table_id);
        let names = names.ok_or_else(|| unknown_id("table", entry.table_id))?;
        if entry.is_default_action {
            let default = &mut self.memory.tables[names.no.index()].default;
            return Ok((&mut default.count, &mut default.meter));
        }
        let key = self.pack(names, &entry.r#match)?;
        let found = self.state(names).same(&key, entry.priority);
        let state = &mut self.memory.tables[names.no.index()];
        let missing =
            || Refusal::new(Code::NotFound, format!("'{}' has no entry with this key", names.name));
        let entry = found.and_then(|id| state.get_mut(id)).ok_or_else(missing)?;
        Ok((&mut entry.count, &mut entry.meter))
    }

    pub(crate) fn write_direct_counter(&mut self, direct: &DirectCounterEntry) -> Done {
        let (count, _) = self.direct(direct.table_entry.as_ref())?;
        // Without data the value stays (section 9.3.1).
        if let Some(data) = &direct.data {
            *count = count_of(data);
        }
        Ok(())
    }

    pub(crate) fn write_direct_meter(&mut self, direct: &DirectMeterEntry) -> Done {
        let (_, meter) = self.direct(direct.table_entry.as_ref())?;
        meter.configure(direct.config.as_ref().map(rates));
        if direct.counter_data.is_some() {
            meter.clear_counts();
        }
        Ok(())
    }

    /// Visits the entries that a direct resource's pattern names, with the entry as its key alone.
    fn each_direct(
        &self,
        asked: Option<&TableEntry>,
        wanted: impl Fn(&TableNames) -> bool,
        visit: &mut dyn FnMut(TableEntry, &Count, &Meter),
    ) -> Done {
        let all = TableEntry::default();
        let asked = asked.unwrap_or(&all);
        let tables: Vec<&TableNames> = match asked.table_id {
            0 => self.names.tables.values().filter(|names| wanted(names)).collect(),
            id => vec![self.table(id)?],
        };
        for names in tables {
            let named = TableEntry { table_id: names.id, ..TableEntry::default() };
            if asked.is_default_action {
                let default = &self.state(names).default;
                let named = TableEntry { is_default_action: true, ..named };
                visit(named, &default.count, &default.meter);
                continue;
            }
            let key = if asked.r#match.is_empty() {
                None
            } else {
                Some(self.pack(names, &asked.r#match)?)
            };
            for (_, entry) in self.state(names).iter() {
                let fits = key.as_ref().is_none_or(|key| *key == entry.key)
                    && (asked.priority == 0 || asked.priority == entry.priority);
                if fits {
                    let named = TableEntry {
                        r#match: self.unpack(names, &entry.key),
                        priority: entry.priority,
                        ..named.clone()
                    };
                    visit(named, &entry.count, &entry.meter);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn read_direct_counters(&self, asked: &DirectCounterEntry, emit: Emit<'_>) -> Done {
        let wanted = |names: &TableNames| names.counter.is_some();
        self.each_direct(asked.table_entry.as_ref(), wanted, &mut |named, count, _| {
            emit(Kinds::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(named),
                data: Some(counter_data(count)),
            }));
        })
    }

    pub(crate) fn read_direct_meters(&self, asked: &DirectMeterEntry, emit: Emit<'_>) -> Done {
        let wanted = |names: &TableNames| names.meter.is_some();
        self.each_direct(asked.table_entry.as_ref(), wanted, &mut |named, _, meter| {
            let counted = asked.counter_data.is_some();
            emit(Kinds::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(named),
                config: meter.rates().map(|rates| meter_config(&rates)),
                counter_data: counted.then(|| meter_counter_data(meter)),
            }));
        })
    }
}
