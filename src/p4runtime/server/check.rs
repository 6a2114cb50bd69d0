//! Checks requests against P4Info with the specification's codes, and brings them into canonical form.
//! In: an update or a read pattern. Out: the same with canonical byte strings, matches and parameters in P4Info's order,
//! or the refusal that the specification asks for. Must not know the device's state.

mod action;
mod data;
mod key;
mod packet;
mod read;
mod write;

use super::Profile;
use crate::p4runtime::device::Refusal;
use crate::p4runtime::p4info::{Index, Kind};
use crate::p4runtime::rpc::Code;
use crate::p4runtime::value;

/// Largest multicast group id: BMv2's, 15 bits; larger ones are OUT_OF_RANGE there and here.
const MULTICAST_GROUP_MAX: u32 = 32_767;

pub(super) type Checked<T = ()> = Result<T, Refusal>;

/// What requests are checked against.
#[derive(Clone, Copy)]
pub(super) struct Check<'a> {
    pub(super) index: &'a Index,
    pub(super) profile: Profile,
}

/// The common refusal.
pub(super) fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidArgument, message)
}

impl Check<'_> {
    /// Brings an unsigned value into canonical form (section 8.3). `what` names it in messages; width 0 is a
    /// translated string, which may be anything but empty.
    pub(super) fn bits(
        &self,
        what: impl Fn() -> String,
        width: u32,
        bytes: &mut Vec<u8>,
    ) -> Checked {
        if bytes.is_empty() {
            if self.profile == Profile::Bmv2 {
                bytes.push(0);
                return Ok(());
            }
            let text = format!("{}: the byte string is empty; zero is one zero byte", what());
            return Err(Refusal::new(Code::OutOfRange, text));
        }
        if width == 0 {
            return Ok(());
        }
        let needed = value::bit_length(bytes);
        if needed > width as usize {
            let text = format!("{}: the value needs {needed} bits, the width is {width}", what());
            return Err(Refusal::new(self.too_wide(), text));
        }
        let zeros = bytes.len() - value::canonical(bytes).len();
        bytes.drain(..zeros);
        Ok(())
    }

    /// The code for a value wider than its field: the specification and PI differ.
    pub(super) fn too_wide(&self) -> Code {
        match self.profile {
            Profile::Spec => Code::OutOfRange,
            Profile::Bmv2 => Code::InvalidArgument,
        }
    }

    /// The object with this id, or the refusal for an id that is 0, of another kind or unknown.
    fn object<T>(&self, kind: Kind, id: u32, found: Option<T>) -> Checked<T> {
        found.ok_or_else(|| {
            let words = kind.words();
            match self.index.kind(id) {
                _ if id == 0 => invalid(format!("{words} id is 0, which only reads may use")),
                Some(other) => invalid(format!("{id:#010x} is a {}, not a {words}", other.words())),
                None => invalid(format!("there is no {words} with id {id:#010x}")),
            }
        })
    }

    /// An array index: present, not negative, below the size (sections 9.3, 9.4, 9.7).
    fn cell(&self, what: &str, size: i64, index: Option<i64>) -> Checked {
        match index {
            Some(index) if index < 0 => {
                Err(invalid(format!("{what}: index {index} is negative; cells start at 0")))
            }
            Some(index) if index >= size => {
                let text = format!("{what}: index {index} is beyond the last cell {}", size - 1);
                // PI leaves the index to the device, which has one error for everything.
                let code = match self.profile {
                    Profile::Spec => Code::OutOfRange,
                    Profile::Bmv2 => Code::Unknown,
                };
                Err(Refusal::new(code, text))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
