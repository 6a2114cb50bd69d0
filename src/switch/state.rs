//! The seam between the interpreter and everything a program keeps between packets. In: packed keys, cell indices,
//! the packet's length and time. Out: which action to run with which data, register cells, colours. Must not know how
//! either side works: the interpreter never sees an entry, the state never sees a header.

use crate::switch::code::Op;
use crate::switch::parse::StateNo;
use crate::switch::program::{ActionNo, CounterNo, MeterNo, RegisterNo, TableNo, ValueSetNo};

/// What the state may need to know about the packet that asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Local time of the switch in microseconds since its start (meters, idle timeouts).
    pub now_us: u64,
    /// Length in bytes that counters and meters account: the packet's length when it came in (BMv2).
    pub length: u32,
}

/// One table application.
pub struct Lookup<'a> {
    /// The packed key, laid out by [`crate::switch::program::KeyField`]; `Key::limbs` long.
    pub key: &'a [u64],
    /// The packet.
    pub facts: Facts,
    /// Hash of the selector's input fields of this packet. Computed when called: only a hit on a group needs it. The
    /// member is `hash % member count` over the active members in their order (BMv2's default).
    pub selector: &'a dyn Fn() -> u64,
}

/// What a table application gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// An entry matched. A hit on an empty group is a hit with no action.
    pub hit: bool,
    /// Position in `Table::actions` of the action to run; `None` runs nothing and continues at `Table::base_next`.
    pub action: Option<u16>,
    /// Colour of the table's direct meter, if it has one and an entry matched: 0 green, 1 yellow, 2 red.
    pub color: Option<u8>,
}

/// A step of the interpreter, for a state that watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A parser state begins.
    State(StateNo),
    /// The parser is done.
    Parsed {
        /// Value of the error, [`crate::switch::program::CoreErrors::no_error`] for none.
        error: u32,
        /// Bytes that it has not extracted.
        payload: usize,
    },
    /// A checksum was verified.
    Checksum {
        /// Position in `Program::checksums`.
        number: usize,
        /// It is as computed.
        good: bool,
    },
    /// A condition between tables was evaluated.
    Condition {
        /// Position in `Program::conditionals`.
        number: u32,
        /// Its value.
        holds: bool,
    },
    /// An action begins; its data are in place.
    Action(ActionNo),
    /// An instruction that reaches beyond the packet is about to run.
    Call(Op),
    /// Nothing by itself: what comes next is another's doing.
    Look,
}

/// What a program keeps between packets. Every index is in range for its array unless said otherwise.
pub trait State {
    /// Looks up `lookup.key` in `table`, counts and meters the hit, notes the time for idle timeouts, and copies the
    /// data of the action to run to the front of `data` (`data.len()` is at least `Action::data_limbs`).
    fn apply(&mut self, table: TableNo, lookup: &Lookup<'_>, data: &mut [u64]) -> Outcome;

    /// Counts one packet in a cell. The index may be out of range: then nothing is counted and false returned.
    fn count(&mut self, counter: CounterNo, index: u64, facts: Facts) -> bool;

    /// Marks one packet with a cell: 0 green, 1 yellow, 2 red. `None` if the index is out of range.
    fn meter(&mut self, meter: MeterNo, index: u64, facts: Facts) -> Option<u8>;

    /// All cells of a register, `Register::limbs` limbs each, least significant first. The interpreter checks the
    /// range and keeps bits beyond the width zero.
    fn cells(&mut self, register: RegisterNo) -> &mut [u64];

    /// Whether the set has a member that matches. `key` has the parser state's key as big-endian bits without
    /// padding, right-aligned in limbs, least significant limb first; `ValueSet::width` bits.
    fn value_set_contains(&self, set: ValueSetNo, key: &[u64]) -> bool;

    /// A step of the interpreter with the header vector before it. Nothing, unless the packet is traced.
    #[inline(always)]
    fn watch(&mut self, step: Step, slots: &[u64]) {
        let _ = (step, slots);
    }

    /// The next draw of the switch's seeded generator (the `random` extern).
    fn random(&mut self) -> u64;
}
