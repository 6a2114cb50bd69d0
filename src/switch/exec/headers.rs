//! What instructions do to headers, stacks and unions. In: numbers of headers and slots. Out: changed slots, bytes.

use crate::switch::{
    bits::{self, Writer},
    code::NOWHERE,
    phv::{Header, HeaderNo, WireField},
    program::Program,
};
use smallvec::SmallVec;

/// The headers of one packet.
pub(super) struct Headers<'a> {
    pub(super) program: &'a Program,
    pub(super) slots: &'a mut [u64],
}

/// Appends a header's bits.
pub(super) fn emit(program: &Program, slots: &[u64], number: HeaderNo, writer: &mut Writer<'_>) {
    let header = &program.layout.headers[number.index()];
    let before = header.varbit.map_or(header.wire.len(), |v| v.field as usize);
    let push = |writer: &mut Writer<'_>, field: &WireField| {
        let slot = field.slot as usize;
        if field.width <= 64 {
            writer.push(slots[slot], field.width);
        } else {
            writer.push_limbs(&slots[slot..slot + field.width.div_ceil(64) as usize], field.width);
        }
    };
    header.wire[..before].iter().for_each(|field| push(writer, field));
    if let Some(varbit) = header.varbit {
        let at = header.fields[varbit.field as usize].at;
        let width = (slots[varbit.length as usize] as u32).min(varbit.max_bits);
        let first = at.slot as usize;
        writer.push_limbs(&slots[first..first + width.div_ceil(64) as usize], width);
        header.wire[before..].iter().for_each(|field| push(writer, field));
    }
}

impl<'a> Headers<'a> {
    fn header(&self, number: u64) -> Option<&'a Header> {
        // NOWHERE is beyond every vector.
        self.program.layout.headers.get(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Appends the valid headers in order.
    pub(super) fn emit(&self, order: &[HeaderNo], out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        for number in order {
            let header = &self.program.layout.headers[number.index()];
            if self.slots[header.valid as usize] != 0 {
                emit(self.program, self.slots, *number, &mut writer);
            }
        }
        writer.finish();
    }

    /// Bytes that a header takes on the wire now.
    pub(super) fn bytes(&self, header: &Header) -> usize {
        let varbit = header.varbit.map_or(0, |v| self.slots[v.length as usize]);
        (header.bits as usize + varbit as usize) / 8
    }

    fn mark_valid(&mut self, header: &Header) {
        if let Some(union) = header.union {
            for (_, member) in &self.program.layout.unions[union.index()].members {
                let valid = self.program.layout.headers[member.index()].valid;
                self.slots[valid as usize] = 0;
            }
        }
        self.slots[header.valid as usize] = 1;
    }

    /// `setValid`: fields of a header that was invalid become 0.
    pub(super) fn set_valid(&mut self, number: u64) -> bool {
        let Some(header) = self.header(number) else { return false };
        if self.slots[header.valid as usize] == 0 {
            self.fields(header).fill(0);
            self.mark_valid(header);
        }
        true
    }

    /// `setInvalid`. Metadata stays valid.
    pub(super) fn set_invalid(&mut self, number: u64) -> bool {
        let Some(header) = self.header(number) else { return false };
        if !header.metadata {
            self.slots[header.valid as usize] = 0;
        }
        true
    }

    fn fields(&mut self, header: &Header) -> &mut [u64] {
        &mut self.slots[header.base as usize..(header.base + header.slots) as usize]
    }

    /// `d = a` for headers of one type; validity goes along.
    pub(super) fn assign(&mut self, d: u64, a: u64) -> bool {
        let (Some(to), Some(from)) = (self.header(d), self.header(a)) else {
            return false;
        };
        if self.slots[from.valid as usize] == 0 {
            return self.set_invalid(d);
        }
        let count = to.slots.min(from.slots) as usize;
        let start = from.base as usize;
        self.slots.copy_within(start..start + count, to.base as usize);
        self.mark_valid(to);
        true
    }

    /// Unions of one type, member by member.
    pub(super) fn assign_union(&mut self, d: u64, a: u64) -> bool {
        let unions = &self.program.layout.unions;
        let union = |n: u64| unions.get(usize::try_from(n).unwrap_or(usize::MAX));
        let (Some(to), Some(from)) = (union(d), union(a)) else { return false };
        // Invalid members first: copying one must not invalidate what was copied before.
        for valid in [false, true] {
            for ((_, x), (_, y)) in to.members.iter().zip(&from.members) {
                let source = self.program.layout.headers[y.index()].valid;
                if (self.slots[source as usize] != 0) == valid {
                    self.assign(x.0.into(), y.0.into());
                }
            }
        }
        true
    }

    /// Shifts the elements of a header stack by `by`: towards the end (push) or the front (pop).
    pub(super) fn shift_stack(&mut self, stack: u32, by: u64, push: bool) {
        let stack = &self.program.layout.stacks[stack as usize];
        let elements: SmallVec<[u64; 16]> = stack.headers.iter().map(|h| h.0.into()).collect();
        self.shift(stack.next, &elements, by, push, Self::assign, |this, h| {
            this.set_invalid(h);
        });
    }

    /// The same for a stack of unions.
    pub(super) fn shift_union_stack(&mut self, stack: u32, by: u64, push: bool) {
        let stack = &self.program.layout.union_stacks[stack as usize];
        let elements: SmallVec<[u64; 16]> = stack.unions.iter().map(|u| u.0.into()).collect();
        self.shift(stack.next, &elements, by, push, Self::assign_union, |this, u| {
            for (_, h) in &this.program.layout.unions[u as usize].members {
                this.set_invalid(h.0.into());
            }
        });
    }

    fn shift(
        &mut self,
        next: u32,
        elements: &[u64],
        by: u64,
        push: bool,
        assign: fn(&mut Self, u64, u64) -> bool,
        clear: fn(&mut Self, u64),
    ) {
        let size = elements.len();
        let by = usize::try_from(by).unwrap_or(size).min(size);
        let count = &mut self.slots[next as usize];
        if push {
            *count = (*count + by as u64).min(size as u64);
            for i in (by..size).rev() {
                assign(self, elements[i], elements[i - by]);
            }
            elements[..by].iter().for_each(|e| clear(self, *e));
        } else {
            *count = count.saturating_sub(by as u64);
            for i in by..size {
                assign(self, elements[i - by], elements[i]);
            }
            elements[size - by..].iter().for_each(|e| clear(self, *e));
        }
    }

    /// The header at an index of a stack.
    pub(super) fn element(&self, stack: u32, index: u64) -> u64 {
        let headers = &self.program.layout.stacks[stack as usize].headers;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        headers.get(index).map_or(NOWHERE, |h| h.0.into())
    }

    /// The union at an index of a stack of unions.
    pub(super) fn union_element(&self, stack: u32, index: u64) -> u64 {
        let unions = &self.program.layout.union_stacks[stack as usize].unions;
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        unions.get(index).map_or(NOWHERE, |u| u.0.into())
    }

    /// A member of a union.
    pub(super) fn member(&self, union: u64, member: u32) -> u64 {
        let union = self.program.layout.unions.get(usize::try_from(union).unwrap_or(usize::MAX));
        union.and_then(|u| u.members.get(member as usize)).map_or(NOWHERE, |(_, h)| h.0.into())
    }

    /// Whether a header is valid; nowhere is not.
    pub(super) fn valid(&self, number: u64) -> bool {
        self.header(number).is_some_and(|h| self.slots[h.valid as usize] != 0)
    }

    /// The valid member of a union: position and header.
    pub(super) fn valid_member(&self, union: u64) -> Option<(usize, HeaderNo)> {
        let union = self.program.layout.unions.get(usize::try_from(union).ok()?)?;
        let members = union.members.iter().map(|(_, h)| *h).enumerate();
        members.into_iter().find(|(_, h)| self.valid(h.0.into()))
    }

    /// Both valid, of one type, all fields equal.
    pub(super) fn equal(&self, a: u64, b: u64) -> bool {
        let (Some(x), Some(y)) = (self.header(a), self.header(b)) else { return false };
        let fields = |h: &Header| &self.slots[h.base as usize..(h.base + h.slots) as usize];
        self.valid(a) && self.valid(b) && x.type_name == y.type_name && fields(x) == fields(y)
    }

    /// Slots of a field of a header chosen at run time.
    pub(super) fn field(&self, header: u64, field: u32) -> Option<std::ops::Range<usize>> {
        let at = self.header(header)?.fields.get(field as usize)?.at;
        Some(at.slot as usize..at.slot as usize + at.limbs())
    }

    /// Takes a header from the packet at byte `from`; `varbit` is the length of its varbit field. The caller has
    /// checked that the bytes are there.
    pub(super) fn extract(&mut self, header: &Header, bytes: &[u8], from: usize, varbit: u32) {
        let before = header.varbit.map_or(header.wire.len(), |v| v.field as usize);
        let start = from * 8;
        for field in &header.wire[..before] {
            self.take(field, bytes, start + field.offset as usize);
        }
        if let Some(var) = header.varbit {
            let at = header.fields[var.field as usize].at;
            let first = header.wire[..before].last().map_or(0, |f| f.offset + f.width);
            let start = start + first as usize;
            let (slot, limbs) = (at.slot as usize, at.limbs());
            self.slots[slot..slot + limbs].fill(0);
            take_limbs(&mut self.slots[slot..slot + limbs], bytes, start, varbit);
            self.slots[var.length as usize] = varbit.into();
            for field in &header.wire[before..] {
                self.take(field, bytes, start + varbit as usize + field.offset as usize);
            }
        }
        self.mark_valid(header);
    }

    fn take(&mut self, field: &WireField, bytes: &[u8], at: usize) {
        let slot = field.slot as usize;
        if field.width <= 64 {
            self.slots[slot] = bits::read(bytes, at, field.width);
        } else {
            let limbs = field.width.div_ceil(64) as usize;
            take_limbs(&mut self.slots[slot..slot + limbs], bytes, at, field.width);
        }
    }
}

/// Reads `width` bits into limbs, least significant first.
pub(super) fn take_limbs(limbs: &mut [u64], bytes: &[u8], at: usize, width: u32) {
    let mut left = width;
    for limb in limbs {
        let part = left.min(64);
        if part == 0 {
            return;
        }
        *limb = bits::read(bytes, at + (left - part) as usize, part);
        left -= part;
    }
}
