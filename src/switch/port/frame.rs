//! Makes wire frames of what the kernel hands over. In: a frame with what its sender left to hardware that is not there: a checksum, a
//! VLAN tag, the cutting of a long segment. Out: frames as they would be on a wire. Must not know sockets or the switch.
//!
//! On veth pairs nothing between two stacks ever does that work, so a switch that passes such frames on as they are has TCP connections
//! that never open. Programs see, and the other side gets, what hardware would have sent.

mod segment;

use super::ring::{HEADROOM, Received};
use crate::switch::hash::{fold, sum};
pub use segment::Cutter;

/// Bytes of the two MAC addresses, behind which a VLAN tag stands.
const ADDRESSES: usize = 12;

/// Why a frame cannot be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is to be cut, but is neither TCP nor UDP directly over IPv4 or IPv6 (a tunnel, say).
    Segment,
    /// It is shorter than its headers say.
    Short,
    /// It is to be cut into more pieces than any real sender asks for.
    Pieces,
}

/// Gives the frame that a received one stands for: itself, or the first of the segments that it is to be cut into. The others then wait
/// in `cutter`; what waited there before is lost.
///
/// # Errors
/// The frame cannot be made whole; nothing was given.
pub fn finish(
    received: Received<'_>,
    cutter: &mut Cutter,
    give: &mut dyn FnMut(&[u8]),
) -> Result<(), Unfit> {
    let Received { buffer, offload, vlan } = received;
    let cut = offload.segment != 0;
    if let Some((start, offset)) = offload.checksum.filter(|_| !cut) {
        let frame = buffer.get_mut(HEADROOM..).ok_or(Unfit::Short)?;
        complete(frame, start.into(), offset.into())?;
    }
    let frame = match vlan {
        None => buffer.get(HEADROOM..).ok_or(Unfit::Short)?,
        Some(tag) => put_tag(buffer, tag)?,
    };
    if cut {
        cutter.load(frame, offload.segment, offload.segment_bytes.into())?;
        cutter.next(give);
        return Ok(());
    }
    give(frame);
    Ok(())
}

/// Puts a tag where the kernel took it from: the addresses move into the headroom, the rest stays.
fn put_tag(buffer: &mut [u8], (kind, info): (u16, u16)) -> Result<&[u8], Unfit> {
    let from = HEADROOM - 4;
    if buffer.len() < HEADROOM + ADDRESSES {
        return Err(Unfit::Short);
    }
    buffer.copy_within(HEADROOM..HEADROOM + ADDRESSES, from);
    let [a, b] = kind.to_be_bytes();
    let [c, d] = info.to_be_bytes();
    buffer[from + ADDRESSES..from + ADDRESSES + 4].copy_from_slice(&[a, b, c, d]);
    Ok(&buffer[from..])
}

/// Computes a checksum that the sender left open: its field holds the sum of the pseudo header.
fn complete(frame: &mut [u8], start: usize, offset: usize) -> Result<(), Unfit> {
    let rest = frame.get_mut(start..).ok_or(Unfit::Short)?;
    let value = checksum(sum(rest));
    rest.get_mut(offset..offset + 2).ok_or(Unfit::Short)?.copy_from_slice(&value.to_be_bytes());
    Ok(())
}

/// The Internet checksum of a sum, with the all-ones form of zero, which UDP needs and nobody minds.
fn checksum(sum: u64) -> u16 {
    match fold(sum) {
        0 => 0xffff,
        value => value,
    }
}

#[cfg(test)]
mod tests;
