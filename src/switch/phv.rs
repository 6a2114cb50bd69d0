//! The packet header vector: one flat array of 64-bit slots. In: field references resolved by the loader. Out: values.
//! Must not know what a field means.
//!
//! Everything an instruction can name is a slot: header and metadata fields, validity bits, stack counters, varbit
//! lengths, constants, action data and temporaries. A field of w bits takes ceil(w/64) slots, least significant limb
//! first, and unused high bits are zero (signed fields too: they are extended when an expression reads them). So an
//! instruction is three indices, and reading a constant costs the same as reading a field.
//!
//! ```text
//!  0    1..                                                                  reset_end
//!  null │ validity │ stack counters │ metadata │ header fields, varbits │ constants │ action data │ temporaries
//! ```

use crate::switch::program::index;
use smallvec::SmallVec;

index!(
    /// A header or metadata instance.
    HeaderNo
);
index!(
    /// A header stack.
    StackNo
);
index!(
    /// A header union.
    UnionNo
);
index!(
    /// A header union stack.
    UnionStackNo
);

/// A value's place: first slot and width. Width 0 is the absent field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldRef {
    /// First slot.
    pub slot: u32,
    /// Width in bits.
    pub width: u32,
}

impl FieldRef {
    /// Number of slots.
    #[must_use]
    pub const fn limbs(self) -> usize {
        self.width.div_ceil(64) as usize
    }

    /// Mask of the highest limb.
    #[must_use]
    pub const fn top_mask(self) -> u64 {
        mask(if self.width == 0 { 0 } else { (self.width - 1) % 64 + 1 })
    }
}

/// The lowest `width` bits set; all 64 from width 64 on.
#[must_use]
pub const fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// A field of a header type instance.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name within its header.
    pub name: String,
    /// Its place. The width of a varbit field is its largest width.
    pub at: FieldRef,
    /// Two's complement (`int<w>`).
    pub signed: bool,
}

/// The variable-length field of a header.
#[derive(Clone, Copy, Debug)]
pub struct VarBit {
    /// Position among the header's fields; also the number of `wire` fields in front of it.
    pub field: u32,
    /// Most bits it can hold; a multiple of 8.
    pub max_bits: u32,
    /// Slot with the present length in bits.
    pub length: u32,
}

/// A field as it lies in a packet.
#[derive(Clone, Copy, Debug)]
pub struct WireField {
    /// First slot.
    pub slot: u32,
    /// Width in bits.
    pub width: u32,
    /// Distance in bits from the start of the header, or from the end of the varbit field for fields behind it.
    pub offset: u32,
}

/// A header or metadata instance. Instances of one type have the same inner layout, so a field of a stack element
/// chosen at run time is the element's `base` plus a distance.
#[derive(Clone, Debug)]
pub struct Header {
    /// Instance name.
    pub name: String,
    /// Type name.
    pub type_name: String,
    /// Metadata is always valid and never on the wire.
    pub metadata: bool,
    /// Fields in wire order.
    pub fields: Vec<Field>,
    /// Slot of the validity bit.
    pub valid: u32,
    /// First slot of the fields.
    pub base: u32,
    /// Slots of the fields, a varbit length slot included.
    pub slots: u32,
    /// Bits on the wire without the varbit field; a multiple of 8 for headers on the wire.
    pub bits: u32,
    /// The varbit field, if any.
    pub varbit: Option<VarBit>,
    /// The fixed fields as extraction and deparsing walk them; fields after the varbit field count from its end.
    pub wire: Box<[WireField]>,
    /// The union that it is a member of.
    pub union: Option<UnionNo>,
}

/// A header stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Name.
    pub name: String,
    /// Elements in order.
    pub headers: Vec<HeaderNo>,
    /// Slot of `nextIndex`.
    pub next: u32,
}

/// A header union: at most one member is valid.
#[derive(Clone, Debug)]
pub struct Union {
    /// Name.
    pub name: String,
    /// Member names with their instances.
    pub members: Vec<(String, HeaderNo)>,
}

/// A stack of header unions.
#[derive(Clone, Debug)]
pub struct UnionStack {
    /// Name.
    pub name: String,
    /// Elements in order.
    pub unions: Vec<UnionNo>,
    /// Slot of `nextIndex`.
    pub next: u32,
}

/// What each slot holds.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Header and metadata instances.
    pub headers: Vec<Header>,
    /// Header stacks.
    pub stacks: Vec<Stack>,
    /// Header unions.
    pub unions: Vec<Union>,
    /// Header union stacks.
    pub union_stacks: Vec<UnionStack>,
    /// Slots of all metadata instances.
    pub metadata: std::ops::Range<u32>,
    /// Slots below this are zeroed for each packet.
    pub reset_end: u32,
    /// Slot that always holds 1: the validity of metadata.
    pub one: u32,
    /// First slot of the running action's data.
    pub params: u32,
    /// Slots reserved for action data: the largest action of the program.
    pub params_limbs: u32,
    /// Start values of all slots: constants, zero elsewhere. Its length is the size of the vector.
    pub initial: Vec<u64>,
}

impl Layout {
    /// The instance of that name.
    #[must_use]
    pub fn header_named(&self, name: &str) -> Option<HeaderNo> {
        self.headers.iter().position(|h| h.name == name).map(HeaderNo::from)
    }

    /// The place of `header.field`; `$valid$` is the validity bit.
    #[must_use]
    pub fn field_named(&self, header: &str, field: &str) -> Option<FieldRef> {
        let header = &self.headers[self.header_named(header)?.index()];
        if field == "$valid$" {
            return Some(FieldRef { slot: header.valid, width: 1 });
        }
        header.fields.iter().find(|f| f.name == field).map(|f| f.at)
    }
}

/// The slots of one packet.
#[derive(Clone, Debug, Default)]
pub struct Phv {
    /// See the module's figure.
    pub slots: Vec<u64>,
}

impl Phv {
    /// An empty vector for programs of that layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self { slots: layout.initial.clone() }
    }

    /// Forgets the packet: all fields 0, all headers invalid. Metadata counts as valid.
    pub fn reset(&mut self, layout: &Layout) {
        self.slots[..layout.reset_end as usize].fill(0);
    }

    /// Zeroes metadata only.
    pub fn reset_metadata(&mut self, layout: &Layout) {
        self.slots[layout.metadata.start as usize..layout.metadata.end as usize].fill(0);
    }

    /// The low 64 bits of a field.
    #[must_use]
    pub fn get(&self, at: FieldRef) -> u64 {
        self.slots[at.slot as usize] & mask(at.width)
    }

    /// Stores into a field of at most 64 bits; higher bits of `value` are cut off.
    pub fn set(&mut self, at: FieldRef, value: u64) {
        self.slots[at.slot as usize] = value & mask(at.width);
    }

    /// All limbs of a field, least significant first.
    #[must_use]
    pub fn limbs(&self, at: FieldRef) -> &[u64] {
        &self.slots[at.slot as usize..at.slot as usize + at.limbs()]
    }

    /// The field as big-endian bytes, ceil(width/8) of them, the value right-aligned (P4Runtime's form before leading
    /// zeros are cut).
    #[must_use]
    pub fn bytes(&self, at: FieldRef) -> SmallVec<[u8; 16]> {
        big_endian(self.limbs(at), at.width)
    }
}

/// Limbs (least significant first) as ceil(width/8) big-endian bytes.
#[must_use]
pub fn big_endian(limbs: &[u64], width: u32) -> SmallVec<[u8; 16]> {
    let length = width.div_ceil(8) as usize;
    (0..length)
        .rev()
        .map(|i| limbs.get(i / 8).map_or(0, |limb| (limb >> (8 * (i % 8))) as u8))
        .collect()
}

/// Big-endian bytes as `limbs` limbs, least significant first; bytes beyond them are cut off.
#[must_use]
pub fn from_big_endian(bytes: &[u8], limbs: usize) -> Box<[u64]> {
    let mut out = vec![0_u64; limbs];
    for (i, byte) in bytes.iter().rev().enumerate() {
        if let Some(limb) = out.get_mut(i / 8) {
            *limb |= u64::from(*byte) << (8 * (i % 8));
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_limbs_convert_both_ways_at_every_width() {
        for width in 1..=200_u32 {
            let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|i| i as u8 + 1).collect();
            let limbs = from_big_endian(&bytes, width.div_ceil(64) as usize);
            assert_eq!(big_endian(&limbs, width).as_slice(), bytes, "width {width}");
        }
    }

    #[test]
    fn a_field_of_width_zero_reads_as_zero_and_ignores_writes() {
        let mut phv = Phv { slots: vec![0; 2] };
        phv.set(FieldRef::default(), 7);
        assert_eq!(phv.get(FieldRef::default()), 0);
        assert_eq!(phv.slots, [0, 0]);
    }
}
