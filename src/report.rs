//! Results as people and programs read them.
//!
//! In: plain values. Out: tables, JSON, a page. Must not know: where a number came from; it carries the source's name instead.

pub mod demo;
pub mod evaluation;
pub mod html;
pub mod timeline;
pub mod trace;
