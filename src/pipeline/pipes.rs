//! One cell, several values: a switch whose pipes keep memory of their own.
//!
//! In: register entries as a switch answered. Out: one value per pipe for each cell, and what they mean together. Must not
//! know what a register is for.
//!
//! A packet meets the memory of one ingress pipe and one egress pipe, so a flow's cells are written in one pipe and stay zero in the
//! others, unless another flow came to a slot by another pipe later: what the first left there is never cleared. A switch may answer with an entry
//! per pipe under the same index, or with one entry whose data lists them; both are read. State is taken from the only pipe that has any.

use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::proto::p4::v1::p4_data::Data;
use crate::p4runtime::value;
use std::collections::BTreeMap;

/// The cells of a Read, by register and index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    values: BTreeMap<(u32, i64), Vec<u32>>,
}

impl Cells {
    /// Collects the register entries among entities, in their order: the first value of a cell is that of pipe 0.
    #[must_use]
    pub fn of(entities: &[proto::Entity]) -> Self {
        let mut cells = Self::default();
        for entity in entities {
            if let Some(Kind::RegisterEntry(entry)) = &entity.entity
                && let Some(index) = &entry.index
                && let Some(numbers) = entry.data.as_ref().and_then(numbers)
            {
                cells.values.entry((entry.register_id, index.index)).or_default().extend(numbers);
            }
        }
        cells
    }

    /// How many pipes have told of any of these cells.
    #[must_use]
    pub fn pipes(&self) -> usize {
        self.values.values().map(Vec::len).max().unwrap_or(0)
    }

    /// All cells of a register, ascending by index: the index, and one value per pipe.
    pub fn of_register(&self, register: u32) -> impl Iterator<Item = (i64, &[u32])> {
        let range = self.values.range((register, i64::MIN)..=(register, i64::MAX));
        range.map(|((_, index), values)| (*index, &values[..]))
    }

    /// What one pipe holds.
    #[must_use]
    pub fn in_pipe(&self, register: u32, index: i64, pipe: usize) -> Option<u32> {
        self.values.get(&(register, index))?.get(pipe).copied()
    }

    /// The state of a cell: the value of the only pipe where it is not zero; zero when there is none. `None` when nothing was told of the
    /// cell, or several pipes hold something and not the same.
    #[must_use]
    pub fn state(&self, register: u32, index: i64) -> Option<u32> {
        let mut held = self.values.get(&(register, index))?.iter().filter(|value| **value != 0);
        let first = held.next().copied().unwrap_or(0);
        held.all(|other| *other == first).then_some(first)
    }
}

/// The numbers of a cell's data, one per pipe; `None` when they are no numbers of 32 bits.
fn numbers(data: &proto::P4Data) -> Option<Vec<u32>> {
    match data.data.as_ref()? {
        Data::Bitstring(bytes) => Some(vec![u32::try_from(value::decode(bytes)?).ok()?]),
        Data::Tuple(list) => {
            let each = list.members.iter().map(|member| match numbers(member)?[..] {
                [number] => Some(number),
                _ => None,
            });
            each.collect()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(number: u32) -> proto::P4Data {
        proto::P4Data { data: Some(Data::Bitstring(value::encode(number.into()))) }
    }

    fn entry(register_id: u32, index: i64, data: proto::P4Data) -> proto::Entity {
        let index = Some(proto::Index { index });
        let entry = proto::RegisterEntry { register_id, index, data: Some(data) };
        proto::Entity { entity: Some(Kind::RegisterEntry(entry)) }
    }

    fn list(numbers: &[u32]) -> proto::P4Data {
        let members = numbers.iter().copied().map(data).collect();
        proto::P4Data { data: Some(Data::Tuple(proto::P4StructLike { members })) }
    }

    #[test]
    fn an_entry_per_pipe_and_a_list_of_pipes_are_the_same() {
        let apart: Vec<_> = [0, 9, 0, 0].map(|number| entry(5, 3, data(number))).into();
        let together = [entry(5, 3, list(&[0, 9, 0, 0]))];
        assert_eq!(Cells::of(&apart), Cells::of(&together));
        let cells = Cells::of(&apart);
        assert_eq!(
            (cells.pipes(), cells.in_pipe(5, 3, 1), cells.in_pipe(5, 3, 4)),
            (4, Some(9), None)
        );
        assert_eq!(cells.of_register(5).collect::<Vec<_>>(), [(3, &[0, 9, 0, 0][..])]);
    }

    #[test]
    fn state_is_that_of_the_only_pipe_that_holds_any() {
        let cells = Cells::of(&[
            entry(5, 0, list(&[0, 7, 0, 0])),
            entry(5, 1, list(&[0, 0])),
            entry(5, 2, data(8)),
            entry(5, 3, list(&[6, 6])),
            entry(5, 4, list(&[1, 0, 2])),
        ]);
        let state = |index| cells.state(5, index);
        assert_eq!([state(0), state(1), state(2)], [Some(7), Some(0), Some(8)]);
        assert_eq!([state(3), state(9)], [Some(6), None]);
        assert_eq!((state(4), cells.state(6, 0)), (None, None));
    }
}
