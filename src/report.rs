//! Results as people and programs read them.
//!
//! In: plain values. Out: tables and JSON. Must not know: where a number came from; it carries the source's name instead.

pub mod demo;
