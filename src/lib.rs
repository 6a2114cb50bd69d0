//! Ringpath: a P4 control plane that chooses path and switch queue for the Ring-AllReduce flows of many training jobs.
//!
//! ```text
//!  topology + workload ─Problem─► solver ─Plan─► pipeline ─EntrySet─► reconcile ─Update batches─► p4runtime client* ─► switches*
//!         ▲                          ▲                                                                                   │
//!         │                          │ Adjustment                                                     registers, reports │
//!         │                     feedback ◄─Verdict─ straggler ◄─Window─ telemetry ◄─Sample─ collectors* ◄────────────────┘
//!         └── elastic ◄─Restart──────┘                                                          (* = does I/O)
//! ```
//!
//! Invariants (`tests/it/architecture.rs` checks what a test can check):
//! - `solver` has never heard of P4; `pipeline` has never heard of jobs; `switch` has never heard of our program.
//! - The core decides, the driver does I/O: cores take `now` and an input, and return outputs; no sockets, clock, async.
//! - The simulator holds no second copy of any decision. Same seed, same bytes. Nothing iterates in hash order.
//! - Every queue, batch and retry has a bound with a name and a reason.
//! - Every plan, membership and pipeline carries a generation number.
//! - No `unwrap`, `expect` or `panic` on anything that a file, a packet, a peer or a switch can influence.

pub mod cli;
pub mod controller;
pub mod elastic;
pub mod evaluate;
pub mod feedback;
pub mod id;
pub mod p4runtime;
pub mod pipeline;
pub mod plan;
pub mod report;
pub mod sim;
pub mod solver;
pub mod straggler;
pub mod switch;
pub mod telemetry;
pub mod time;
pub mod topology;
pub mod units;
pub mod worker;
pub mod workload;
