//! The two wire types that P4Runtime's fields need.
//! In: field numbers and values. Out: bytes. Must not know texts or schemas.

/// Appends a varint.
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field of wire type 0.
pub(super) fn varint_field(number: i32, value: u64, out: &mut Vec<u8>) {
    varint(tag(number, 0), out);
    varint(value, out);
}

/// Appends a field of wire type 2.
pub(super) fn bytes(number: i32, value: &[u8], out: &mut Vec<u8>) {
    varint(tag(number, 2), out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

/// A signed number as protobuf's int32 and int64 carry it: 64-bit two's complement.
pub(super) const fn signed(value: i64) -> u64 {
    value.cast_unsigned()
}

/// Field number and wire type in one; numbers come from descriptors and are positive.
fn tag(number: i32, kind: u64) -> u64 {
    (u64::from(number.unsigned_abs()) << 3) | kind
}
