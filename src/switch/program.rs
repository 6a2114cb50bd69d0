//! The checked, flattened form of a BMv2 program. In: nothing (`load` builds it). Out: plain data that `exec` runs and
//! that the table state is sized by. Must not know JSON, packets or state.
//!
//! Names occur here for error messages, for P4Runtime and for tests only; everything that a packet touches is a dense
//! index. Ids are positions in the vectors of [`Program`], never the `id` attributes of the JSON.

use crate::switch::{
    code::Op,
    deparse::Deparser,
    expr::Expr,
    hash::Algorithm,
    parse::{ParseState, Parser},
    phv::{FieldRef, HeaderNo, Layout},
};

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The index into the owning vector of the program.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            /// Saturates; the loader refuses programs far below that size.
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }
    };
}
pub(crate) use index;

index!(
    /// A table, over all pipelines.
    TableNo
);
index!(
    /// An action of the program.
    ActionNo
);
index!(
    /// An action profile, with or without a selector.
    ProfileNo
);
index!(
    /// An indirect or direct counter array.
    CounterNo
);
index!(
    /// An indirect or direct meter array.
    MeterNo
);
index!(
    /// A register array.
    RegisterNo
);
index!(
    /// A parser value set.
    ValueSetNo
);
index!(
    /// A learn list: the fields that one digest carries. The JSON's 1-based `id` is in [`FieldList::id`].
    LearnNo
);

/// A step of a pipeline; `None` in a `next` ends the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Apply a table.
    Table(TableNo),
    /// Evaluate `Program::conditionals[_]`.
    Conditional(u32),
    /// Run an action without data (`action_calls`), then go to the call's successor: `Program::calls[_]`.
    Call(u32),
}

/// How a key field is matched (BMv2 `match_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchKind {
    /// Equal to the value. `valid` keys are exact keys of width 1 on the header's validity.
    Exact,
    /// Equal in the first `prefix_len` bits.
    Lpm,
    /// Equal under a mask. P4's `optional` arrives as ternary.
    Ternary,
    /// Within two bounds, both included.
    Range,
}

/// One field of a table key and where it sits in the packed key.
///
/// A packed key is a slice of [`Key::limbs`] 64-bit limbs. A field of at most 64 bits lies in one limb: bits
/// `shift .. shift + width` of limb `limb`. A wider field starts at bit 0 of limb `limb`, least significant limb
/// first, and shares its limbs with nobody. Unused bits are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyField {
    /// Name of the match field as the program (and P4Info) has it.
    pub name: String,
    /// How the field is matched.
    pub kind: MatchKind,
    /// Where the value comes from.
    pub source: FieldRef,
    /// Static mask of the program, in limbs as the field lies in the key (least significant first, not shifted);
    /// already applied to keys that reach the state, and to be applied to entries.
    pub mask: Option<Box<[u64]>>,
    /// First limb of the packed key.
    pub limb: u32,
    /// Bit within that limb.
    pub shift: u32,
}

impl KeyField {
    /// Width of the field in bits.
    #[must_use]
    pub const fn width(&self) -> u32 {
        self.source.width
    }
}

/// The key of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The fields in the order of the program; P4Info match field ids follow it.
    pub fields: Vec<KeyField>,
    /// Length of the packed key; 0 for a keyless table, 1 whenever all fields together need at most 64 bits.
    pub limbs: usize,
}

/// Which structure a table needs: the widest of its key kinds (BMv2 `match_type` of the table).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// All fields exact (or no fields at all).
    Exact,
    /// One LPM field, the rest exact.
    Lpm,
    /// At least one ternary field and no range; entries have priorities. May also hold one LPM field.
    Ternary,
    /// At least one range field; entries have priorities.
    Range,
}

/// Where a table's actions come from (BMv2 `type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// The entry holds action and data.
    Simple,
    /// The entry names a member of a profile.
    Indirect(ProfileNo),
    /// The entry names a member or a group of a profile; a group picks the member by hash.
    Selector(ProfileNo),
}

/// Value of one key field in a constant entry; limbs least significant first, not shifted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConstMatch {
    /// The value.
    Exact(Box<[u64]>),
    /// The value and the number of leading bits that count.
    Lpm(Box<[u64]>, u32),
    /// The value (already masked) and the mask.
    Ternary(Box<[u64]>, Box<[u64]>),
    /// Lowest and highest value.
    Range(Box<[u64]>, Box<[u64]>),
}

/// An action of a table with its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// Position in [`Table::actions`].
    pub action: u16,
    /// One flat vector of limbs, laid out by [`Param::limb`].
    pub data: Box<[u64]>,
}

/// An entry fixed by the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstEntry {
    /// One per key field.
    pub matches: Vec<ConstMatch>,
    /// What it runs.
    pub run: Invocation,
    /// **Smaller wins** (the JSON's convention; P4Runtime's is the opposite). 0 when the table has no priorities.
    pub priority: u32,
}

/// The default entry fixed by the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultEntry {
    /// What it runs.
    pub run: Invocation,
    /// The control plane may not change it (`const default_action`).
    pub constant: bool,
}

/// A match-action table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// The pipeline that applies it.
    pub pipeline: u32,
    /// What is matched.
    pub key: Key,
    /// Which lookup it needs.
    pub kind: TableKind,
    /// Where entries keep their actions.
    pub implementation: Implementation,
    /// Declared size in entries.
    pub max_size: u32,
    /// The actions that entries may run; entries name them by position.
    pub actions: Vec<ActionNo>,
    /// Counter that each hit counts, if any (BMv2 counts hits only).
    pub counter: Option<CounterNo>,
    /// True when the table has counters that no `counter_arrays` element names (`with_counters` of old compilers).
    pub with_counters: bool,
    /// Meter that each hit executes, if any, and the field that takes the colour.
    pub meter: Option<(MeterNo, FieldRef)>,
    /// Entries may carry an idle timeout.
    pub idle_timeout: bool,
    /// The program's default entry.
    pub default: Option<DefaultEntry>,
    /// Position of the action that every application runs, with the default entry's data: a keyless table whose default
    /// is constant, which is what compilers make of statements between tables. The state is not asked.
    pub fixed: Option<u16>,
    /// Entries of the program; `Some` (even if empty) makes the table immutable.
    pub const_entries: Option<Vec<ConstEntry>>,
    /// Successor after a hit or a miss, where the program branches on it.
    pub next_hit: Option<Option<Node>>,
    /// See `next_hit`.
    pub next_miss: Option<Option<Node>>,
    /// Successor by position in `actions`, used when `next_hit`/`next_miss` are absent.
    pub next: Vec<Option<Node>>,
    /// Successor when no action ran.
    pub base_next: Option<Node>,
}

/// One parameter of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Name as in P4Info.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// First limb in the action data; a parameter of w bits takes ceil(w/64) limbs, least significant first.
    pub limb: u32,
}

/// An action: its data layout and its code.
#[derive(Clone, Debug)]
pub struct Action {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Parameters in P4Info order.
    pub params: Vec<Param>,
    /// Length of the action data in limbs.
    pub data_limbs: usize,
    /// First instruction in `Program::code`; the action ends at `Op::End`.
    pub entry: u32,
}

/// A condition between tables.
#[derive(Clone, Debug)]
pub struct Conditional {
    /// Name given by the compiler (`node_3`).
    pub name: String,
    /// The condition as the source has it, where the compiler tells.
    pub text: Option<String>,
    /// First instruction in `Program::code`.
    pub entry: u32,
    /// Slot that holds the truth value after the code has run.
    pub result: u32,
    /// Successor when non-zero.
    pub when_true: Option<Node>,
    /// Successor when zero.
    pub when_false: Option<Node>,
}

/// A direct call of an action without data.
#[derive(Clone, Debug)]
pub struct Call {
    /// The action.
    pub action: ActionNo,
    /// Successor.
    pub next: Option<Node>,
}

/// A top-level control flow: `ingress` or `egress`.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Name.
    pub name: String,
    /// First step.
    pub first: Option<Node>,
}

/// An action profile.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Largest number of members.
    pub max_size: u32,
    /// Present if groups may be used: the calculation that hashes the packet. [`crate::switch::state::Lookup`] hands its
    /// value to the state on demand.
    pub selector: Option<u32>,
}

/// A counter array. Every counter counts packets and bytes, whatever its P4 type.
#[derive(Clone, Debug)]
pub struct Counter {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Cells; for a direct counter the table's size.
    pub size: u32,
    /// The table of a direct counter.
    pub table: Option<TableNo>,
}

/// A meter array (two-rate three-colour).
#[derive(Clone, Debug)]
pub struct Meter {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Cells; for a direct meter the table's size.
    pub size: u32,
    /// Counts bytes; packets otherwise.
    pub bytes: bool,
    /// Rates per cell (2 for v1model).
    pub rates: u32,
    /// The table of a direct meter.
    pub table: Option<TableNo>,
}

/// A register array.
#[derive(Clone, Debug)]
pub struct Register {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Number of cells.
    pub size: u32,
    /// Width of a cell in bits; a cell takes ceil(width/64) limbs, least significant first.
    pub width: u32,
}

impl Register {
    /// Limbs per cell.
    #[must_use]
    pub const fn limbs(&self) -> usize {
        self.width.div_ceil(64) as usize
    }
}

/// A parser value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Full name, equal to the P4Info name.
    pub name: String,
    /// Width of a member in bits, without padding between fields.
    pub width: u32,
    /// Most members.
    pub max_size: u32,
}

/// A list of values: what a digest carries, or what survives clone, resubmit and recirculate.
#[derive(Clone, Debug)]
pub struct FieldList {
    /// Id as primitives use it; 0 never occurs (it means "none").
    pub id: u32,
    /// Name (digests: equal to the P4Info name; field lists: the compiler's).
    pub name: String,
    /// The fields.
    pub fields: Vec<FieldRef>,
}

/// Where a program keeps the metadata that the target reads and writes. Absent fields have width 0: reading gives 0,
/// writing does nothing. Names are those of simple_switch (`docs/simple_switch.md`).
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are named after the metadata fields of simple_switch")]
pub struct Intrinsic {
    pub ingress_port: FieldRef,
    pub egress_spec: FieldRef,
    pub egress_port: FieldRef,
    pub packet_length: FieldRef,
    pub instance_type: FieldRef,
    pub parser_error: FieldRef,
    pub checksum_error: FieldRef,
    pub ingress_global_timestamp: FieldRef,
    pub egress_global_timestamp: FieldRef,
    pub mcast_grp: FieldRef,
    pub egress_rid: FieldRef,
    pub priority: FieldRef,
    pub enq_timestamp: FieldRef,
    pub enq_qdepth: FieldRef,
    pub deq_timedelta: FieldRef,
    pub deq_qdepth: FieldRef,
    pub qid: FieldRef,
}

/// What a calculation hashes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A field, if its header (slot of its validity) is valid.
    Field {
        /// Where it is.
        at: FieldRef,
        /// Slot of the header's validity.
        valid: u32,
        /// Slot of the present length in bits, for a varbit field.
        length: Option<u32>,
    },
    /// A constant: limbs, least significant first, and its width.
    Constant(Box<[u64]>, u32),
    /// A whole header, if valid.
    Header(HeaderNo),
    /// What the parser has not extracted.
    Payload,
}

/// A hash over packet contents.
#[derive(Clone, Debug)]
pub struct Calculation {
    /// Name.
    pub name: String,
    /// Algorithm.
    pub algorithm: Algorithm,
    /// What it covers.
    pub inputs: Vec<Input>,
}

/// A checksum field.
#[derive(Clone, Debug)]
pub struct Checksum {
    /// Name.
    pub name: String,
    /// The field that carries it.
    pub target: FieldRef,
    /// Slot of the validity of the field's header.
    pub valid: u32,
    /// Position in `Program::calculations`.
    pub calculation: u32,
    /// Code of the condition and the slot of its value; `None` is always.
    pub condition: Option<(u32, u32)>,
    /// Checked after parsing.
    pub verify: bool,
    /// Written before deparsing.
    pub update: bool,
}

/// A `log_msg` call.
#[derive(Clone, Debug)]
pub struct Message {
    /// Text with `{}` for each value.
    pub format: String,
    /// The values.
    pub values: Vec<FieldRef>,
}

/// Error values of the P4 core library as the program numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in core.p4")]
pub struct CoreErrors {
    pub no_error: u32,
    pub packet_too_short: u32,
    pub no_match: u32,
    pub stack_out_of_bounds: u32,
    pub header_too_short: u32,
    pub parser_timeout: u32,
    pub parser_invalid_argument: u32,
}

/// A program that passed every check of the loader.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Slots of the packet header vector and what they hold.
    pub layout: Layout,
    /// Instructions of actions, conditions, parser expressions and checksum conditions.
    pub code: Vec<Op>,
    /// Parsers; v1model has one.
    pub parsers: Vec<Parser>,
    /// States of all parsers.
    pub states: Vec<ParseState>,
    /// Deparsers; v1model has one.
    pub deparsers: Vec<Deparser>,
    /// Ingress first, egress second.
    pub pipelines: Vec<Pipeline>,
    /// Tables of all pipelines.
    pub tables: Vec<Table>,
    /// Actions.
    pub actions: Vec<Action>,
    /// Conditions of all pipelines.
    pub conditionals: Vec<Conditional>,
    /// Direct action calls.
    pub calls: Vec<Call>,
    /// Action profiles of all pipelines.
    pub profiles: Vec<Profile>,
    /// Counter arrays.
    pub counters: Vec<Counter>,
    /// Meter arrays.
    pub meters: Vec<Meter>,
    /// Register arrays.
    pub registers: Vec<Register>,
    /// Parser value sets.
    pub value_sets: Vec<ValueSet>,
    /// Digests.
    pub learn_lists: Vec<FieldList>,
    /// What clone, resubmit and recirculate keep.
    pub field_lists: Vec<FieldList>,
    /// Metadata shared with the target.
    pub intrinsic: Intrinsic,
    /// Parser errors: name and value.
    pub errors: Vec<(String, u32)>,
    /// Values of the errors that the parser itself raises.
    pub core_errors: CoreErrors,
    /// Expressions that need integers of any size: [`Op::Wide`].
    pub wide: Vec<Expr>,
    /// Hashes over packet contents.
    pub calculations: Vec<Calculation>,
    /// Checksums in the order in which they are verified and updated.
    pub checksums: Vec<Checksum>,
    /// `log_msg` calls.
    pub messages: Vec<Message>,
}

impl Program {
    /// The table of that full name.
    #[must_use]
    pub fn table_named(&self, name: &str) -> Option<TableNo> {
        self.tables.iter().position(|t| t.name == name).map(TableNo::from)
    }

    /// The pipeline of that name.
    #[must_use]
    pub fn pipeline_named(&self, name: &str) -> Option<&Pipeline> {
        self.pipelines.iter().find(|p| p.name == name)
    }
}
