//! Tracing. Part of the engine. Without a trace it costs one look at a null pointer per phase of a packet.

use super::{Drop, Switch};
use crate::switch::program::Program;
use crate::switch::trace::{Event, Kind};

/// Runs a phase of a packet over the memory, or over a watcher of it when the switch is traced.
macro_rules! watched {
    ($trace:expr, $slot:expr, $memory:expr, |$state:ident| $run:expr) => {
        match $trace {
            None => {
                let $state = $memory;
                $run
            }
            Some(trace) => {
                let mut watcher = crate::switch::trace::Watcher::new($memory, trace, $slot);
                let $state = &mut watcher;
                $run
            }
        }
    };
}

impl Switch {
    /// Starts or stops noting what every packet meets. It costs memory and time, and changes nothing else.
    pub fn set_trace(&mut self, on: bool) {
        self.trace = on.then(Box::default);
    }

    /// What was noted since the last call, in order, and how many events found no place
    /// ([`crate::switch::trace::MAX_EVENTS`]). Empty on a switch that is not traced.
    pub fn take_trace(&mut self) -> (Vec<Event>, u64) {
        self.trace.as_mut().map_or_else(Default::default, |trace| trace.take())
    }

    /// The program that runs.
    #[must_use]
    pub fn program(&self) -> Option<&Program> {
        self.loaded.as_ref().map(|loaded| &*loaded.program)
    }

    #[inline]
    pub(super) fn note(&mut self, slot: u32, kind: impl FnOnce() -> Kind) {
        if let Some(trace) = &mut self.trace {
            trace.note(slot, kind());
        }
    }

    /// Notes that another packet was made of the one in `slot`.
    #[inline]
    pub(super) fn note_copy(&mut self, slot: u32, copy: u32, why: &'static str) {
        if let Some(trace) = &mut self.trace {
            let copy = trace.number(copy);
            trace.note(slot, Kind::Copy { copy, why });
        }
    }

    /// Counts a loss of something that has no slot of its own, or none any more.
    pub(super) fn lose(&mut self, slot: Option<u32>, reason: Drop) {
        self.stats.drop(reason);
        if let Some(trace) = &mut self.trace {
            let kind = dropped(reason);
            match slot {
                Some(slot) => trace.note(slot, kind),
                None => trace.note_outside(kind),
            }
        }
    }
}

pub(super) fn dropped(reason: Drop) -> Kind {
    Kind::Dropped { reason: reason.name(), meaning: reason.words() }
}

/// Bytes as a trace shows them.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
