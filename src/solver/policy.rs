//! The policies by name.
//!
//! In: a name. Out: a [`Policy`]. Each file's head states formula, steps, source and what is our inference. Must not
//! know: how policies are compared.

use super::Policy;

pub mod ablation;
pub mod crux;
pub mod ecmp;
pub mod greedy;
pub mod gsched;
pub mod joint;
pub mod least_loaded;
pub mod paper;
pub mod sebf;
pub mod sincronia;
pub mod taccl_star;

/// All policies, in the order of every table: baselines first, ours last.
#[must_use]
pub fn all() -> Vec<&'static dyn Policy> {
    vec![
        &ecmp::Ecmp,
        &least_loaded::LeastLoaded,
        &sebf::Sebf,
        &sincronia::Sincronia,
        &taccl_star::TacclStar,
        &gsched::G1,
        &gsched::G2,
        &crux::Crux,
        &paper::Paper,
        &ablation::NO_PATHS,
        &ablation::JOB_QUEUES,
        &ablation::ONE_QUEUE,
        &joint::Joint,
    ]
}

/// The policy of that name; `None` if there is none ([`names`] lists them).
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Policy> {
    all().into_iter().find(|policy| policy.name() == name)
}

/// Names of all policies, in table order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    all().iter().map(|policy| policy.name()).collect()
}

/// Names of the policies that a comparison shows unless others are asked for, in table order.
pub const COMPARED: [&str; 6] = ["ecmp", "least-loaded", "sebf", "crux", "paper", "joint"];

#[cfg(test)]
mod tests;
