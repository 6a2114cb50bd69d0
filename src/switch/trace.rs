//! What a packet met, step by step. In: the steps that interpreter and engine report. Out: [`Event`]s, to be printed or saved
//! as JSON. Must not decide anything: a traced switch sends what an untraced one sends (tested).
//!
//! ```text
//!  engine ──────────── Trace::note ─────────────┐
//!  exec ──State::watch──► Watcher (a State) ────┴─► Trace ─► Vec<Event>
//! ```
//! The interpreter is generic over [`crate::switch::state::State`], whose `watch` does nothing: without a trace the compiler
//! leaves no trace of it. With one, the same code is compiled once more over a [`Watcher`], which passes everything on to the
//! real state. What an action or parser state changed is found by comparing the packet header vector with a copy of it.

mod event;
mod show;
mod watcher;

pub use event::{Entry, Event, Kind, Match, Named};
pub use watcher::Watcher;

use crate::switch::phv::Layout;

/// Events kept until they are taken; a packet of a large program makes a few hundred. More are counted and lost.
pub const MAX_EVENTS: usize = 64 * 1024;

/// Events that nobody has taken yet, and what is needed to make more.
#[derive(Debug, Default)]
pub struct Trace {
    events: Vec<Event>,
    /// Events that found no place.
    lost: u64,
    /// Number of the packet in each slot of the engine: copies get numbers of their own.
    packets: Vec<u32>,
    next: u32,
    /// The packet that the interpreter works on.
    current: u32,
    /// Header vector at the last step.
    shadow: Vec<u64>,
}

impl Trace {
    /// Gives the packet in that slot a new number.
    pub(crate) fn born(&mut self, slot: u32) {
        let slot = slot as usize;
        if self.packets.len() <= slot {
            self.packets.resize(slot + 1, 0);
        }
        self.packets[slot] = self.next;
        self.next += 1;
    }

    /// The number of the packet in that slot.
    pub(crate) fn number(&self, slot: u32) -> u32 {
        self.packets.get(slot as usize).copied().unwrap_or(0)
    }

    /// Notes something about the packet in that slot.
    pub(crate) fn note(&mut self, slot: u32, kind: Kind) {
        self.current = self.number(slot);
        self.push(kind);
    }

    /// Notes something about a packet that has no slot.
    pub(crate) fn note_outside(&mut self, kind: Kind) {
        self.current = self.next;
        self.push(kind);
    }

    fn push(&mut self, kind: Kind) {
        if self.events.len() >= MAX_EVENTS {
            self.lost += 1;
        } else {
            self.events.push(Event { packet: self.current, kind });
        }
    }

    /// Hands out what was noted so far, and how much was lost.
    pub(crate) fn take(&mut self) -> (Vec<Event>, u64) {
        (std::mem::take(&mut self.events), std::mem::take(&mut self.lost))
    }

    /// From here on changes count.
    fn look(&mut self, slots: &[u64]) {
        self.shadow.clear();
        self.shadow.extend_from_slice(slots);
    }

    /// Notes what has changed since the last look.
    fn changes(&mut self, layout: &Layout, slots: &[u64], parsing: bool) {
        let before = std::mem::take(&mut self.shadow);
        if before.len() == slots.len() {
            for kind in show::changes(layout, &before, slots, parsing) {
                self.push(kind);
            }
        }
        self.shadow = before;
        self.look(slots);
    }
}
