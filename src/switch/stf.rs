//! STF: the packet tests of p4c's test data. In: a BMv2 JSON and the text of a case. Out: what was expected and did not
//! come. Must not know our program, sockets or real time: cases run on a [`crate::switch::Switch`] in virtual time.
//!
//! ```text
//!  text ─parse─► Lines ─run─► Switch (entries through P4Runtime, packets through receive/advance) ─► Report
//! ```
//! Grammar and driver rules are those of p4c's `bmv2stf.py`: packets are compared per port in order; `*` is any nibble;
//! without `$` the expected text may be a prefix; `expect PORT` alone takes anything; ports that the case does not name
//! are not looked at; a table or action may be named by a unique suffix. Commands that p4c's driver reads and ignores do
//! something here: `check_counter`, `no_packet`, `remove`, `mc_node_update`, and reads, whose values are in the report.

pub mod info;
pub mod parse;
pub mod report;
pub mod run;
mod values;

pub use parse::{Cell, Command, Line, Reading, parse};
pub use report::{Failure, Report};
pub use run::{Program, drain, run};

use thiserror::Error;

/// Why a case could not be run (a packet that differs is not an error, but part of the [`Report`]).
#[derive(Debug, Error)]
pub enum StfError {
    /// A line that is not STF.
    #[error("line {line}: {message}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// The program is refused.
    #[error("the program does not load: {0}")]
    Program(#[from] crate::switch::LoadError),
    /// The switch refuses the program together with what STF needs to name.
    #[error("the switch refuses the program: {0}")]
    Pipeline(crate::p4runtime::device::Refusal),
}
