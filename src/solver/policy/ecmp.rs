//! `ecmp`: what a fabric does without a scheduler.
//!
//! Formula: path of flow f = candidates[hash(key of f) mod number of candidates], queue 0 for all.
//! Steps: none. Source: equal-cost multipath over a hash of the header fields (RFC 2992 discusses the choice of hash).
//! Our inference: the hash is FNV-1a over the fields that the key fixes, with a final mixing step; real switches differ
//! in the function, not in the effect. Flows of one pair of hosts differ only in the queue pair (on the wire: in the
//! UDP source port that follows from it), so they may part.

use crate::plan::Plan;
use crate::solver::instance::{Choice, Instance};
use crate::solver::{Effort, Policy, Problem};
use crate::topology::{FlowKey, Path};
use crate::workload::Flow;

/// See the module.
pub struct Ecmp;

impl Policy for Ecmp {
    fn name(&self) -> &'static str {
        "ecmp"
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let choice = Choice { path: paths(problem), ..Choice::first(problem.flows.len()) };
        Instance::plan(problem, &choice, self.name(), |_| "hash of the flow's header".to_owned())
    }
}

/// The path that each flow's header hashes to, by index into its candidates.
#[must_use]
pub fn paths(problem: &Problem<'_>) -> Vec<u16> {
    let of =
        |(flow, paths): (&Flow, &Vec<Path>)| (hash(&flow.key) % paths.len().max(1) as u64) as u16;
    problem.flows.iter().zip(problem.paths).map(of).collect()
}

/// FNV-1a over the fields of a key, then the finaliser of MurmurHash3: FNV's low bits alone follow the last byte.
fn hash(key: &FlowKey) -> u64 {
    let mut bytes = Vec::with_capacity(20);
    bytes.extend_from_slice(&key.src.octets());
    bytes.extend_from_slice(&key.dst.octets());
    bytes.push(key.protocol);
    bytes.extend_from_slice(&key.src_port.unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(&key.dst_port.unwrap_or(0).to_be_bytes());
    bytes.extend_from_slice(&key.dst_qp.unwrap_or(0).to_be_bytes());
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
