//! The program's own counters: packets dropped by reason, flips forced.
//!
//! In: P4Info once, the answer to a Read. Out: numbers by name. Must not know who reads, or what a number is good for.

use super::schema::ProgramError;
use crate::p4runtime::p4info::Index;
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use serde::{Deserialize, Serialize};

/// The counters, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    drops: u32,
    forced_flips: u32,
}

/// Packets that a switch's program counted, by reason (p4/README.md, "Counters").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// 1: a tag or controller message came from an edge port.
    pub edge_header: u64,
    /// 2: a tag had passed too many switches, or was of an unknown version.
    pub hop_limit: u64,
    /// 3: no entry for a label. The packet goes on untagged; it is lost only if nothing else knows it, and then it is
    /// counted here and not again.
    pub label_miss: u64,
    /// 4: a label ended at a leaf that does not know the host.
    pub host_miss: u64,
    /// 5: untagged and without a route.
    pub no_route: u64,
    /// 6: routed with a TTL of 0 or 1.
    pub ttl: u64,
    /// 7: of a protocol that the program does not forward.
    pub unhandled: u64,
    /// 8: a controller message that makes no sense.
    pub bad_message: u64,
}

impl Drops {
    /// Sum over all reasons but `label_miss`.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.edge_header
            + self.hop_limit
            + self.host_miss
            + self.no_route
            + self.ttl
            + self.unhandled
            + self.bad_message
    }

    fn reason(&mut self, index: i64) -> Option<&mut u64> {
        Some(match index {
            1 => &mut self.edge_header,
            2 => &mut self.hop_limit,
            3 => &mut self.label_miss,
            4 => &mut self.host_miss,
            5 => &mut self.no_route,
            6 => &mut self.ttl,
            7 => &mut self.unhandled,
            8 => &mut self.bad_message,
            _ => return None,
        })
    }
}

impl Counters {
    /// Finds the counters in the program.
    ///
    /// # Errors
    /// [`ProgramError`] when the program has no such counter.
    pub fn resolve(index: &Index) -> Result<Self, ProgramError> {
        let id = |name: &str| {
            index.counter(name).map(|counter| counter.names.id).map_err(|error| {
                ProgramError::Missing {
                    what: "counter",
                    name: name.to_owned(),
                    detail: error.to_string(),
                }
            })
        };
        Ok(Self { drops: id("drops")?, forced_flips: id("forced_flips")? })
    }

    /// Reads every cell of both counters.
    #[must_use]
    pub fn read_all(&self) -> Vec<proto::Entity> {
        [self.drops, self.forced_flips].into_iter().map(|id| read(id, None)).collect()
    }

    /// Reads the label misses alone.
    #[must_use]
    pub fn read_label_misses(&self) -> proto::Entity {
        read(self.drops, Some(3))
    }

    /// The drops and the forced flips in the answer to [`Counters::read_all`].
    #[must_use]
    pub fn sum(&self, entities: &[proto::Entity]) -> (Drops, u64) {
        let (mut drops, mut forced) = (Drops::default(), 0);
        for entity in entities {
            let Some(Kind::CounterEntry(entry)) = &entity.entity else { continue };
            let count =
                entry.data.as_ref().map_or(0, |data| u64::try_from(data.packet_count).unwrap_or(0));
            if entry.counter_id == self.forced_flips {
                forced += count;
            } else if entry.counter_id == self.drops
                && let Some(cell) = entry.index.as_ref().and_then(|at| drops.reason(at.index))
            {
                *cell += count;
            }
        }
        (drops, forced)
    }
}

fn read(counter_id: u32, index: Option<i64>) -> proto::Entity {
    let index = index.map(|index| proto::Index { index });
    let entry = proto::CounterEntry { counter_id, index, data: None };
    proto::Entity { entity: Some(Kind::CounterEntry(entry)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: Counters = Counters { drops: 7, forced_flips: 9 };

    fn cell(counter_id: u32, index: i64, packets: i64) -> proto::Entity {
        let data = proto::CounterData { byte_count: 0, packet_count: packets };
        let entry = proto::CounterEntry {
            counter_id,
            index: Some(proto::Index { index }),
            data: Some(data),
        };
        proto::Entity { entity: Some(Kind::CounterEntry(entry)) }
    }

    #[test]
    fn cells_are_summed_under_their_reasons() {
        let cells: Vec<proto::Entity> = (0..16).map(|index| cell(7, index, 1 << index)).collect();
        let (drops, forced) = COUNTERS.sum(&cells);
        assert_eq!((drops.label_miss, drops.bad_message, forced), (8, 256, 0));
        assert_eq!(drops.others() + drops.label_miss, 0b1_1111_1110);
        let (drops, forced) = COUNTERS.sum(&[cell(9, 3, 5), cell(9, 4, 6), cell(8, 3, 7)]);
        assert_eq!((drops, forced), (Drops::default(), 11));
    }
}
