//! The policies by name.
//!
//! In: a name, or a policy of a program that is built on this library ([`add`]). Out: a [`Policy`]. Each file's head states formula, steps, source and what is our inference. Must not
//! know: how policies are compared.

use super::Policy;
use std::collections::BTreeSet;
use std::sync::OnceLock;

pub mod ablation;
pub mod cassini;
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

/// What [`add`] was given, once per process, before anything plans.
static ADDED: OnceLock<Vec<&'static dyn Policy>> = OnceLock::new();

/// Why a policy cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// Its name is another's.
    #[error("there is a policy '{0}' already; give yours another name")]
    Taken(String),
    /// Policies were added before.
    #[error("policies were added already; add all of yours in one call, first of all")]
    Late,
}

/// Adds policies of a program of one's own to [`all`], so that every command knows them (`examples/own_policy.rs`). Once per process.
///
/// # Errors
/// [`AddError`]; nothing is added then.
pub fn add(policies: Vec<&'static dyn Policy>) -> Result<(), AddError> {
    let mut names = BTreeSet::from_iter(names());
    for policy in &policies {
        if !names.insert(policy.name()) {
            return Err(AddError::Taken(policy.name().to_owned()));
        }
    }
    ADDED.set(policies).map_err(|_| AddError::Late)
}

/// All policies, in the order of every table: baselines first, then ours, then those that were added.
#[must_use]
pub fn all() -> Vec<&'static dyn Policy> {
    let mut all: Vec<&'static dyn Policy> = vec![
        &ecmp::Ecmp,
        &least_loaded::LeastLoaded,
        &sebf::Sebf,
        &sincronia::Sincronia,
        &taccl_star::TacclStar,
        &gsched::G1,
        &gsched::G2,
        &cassini::Cassini,
        &crux::Crux,
        &paper::Paper,
        &ablation::NO_PATHS,
        &ablation::JOB_QUEUES,
        &ablation::ONE_QUEUE,
        &joint::Joint,
    ];
    all.extend(ADDED.get().into_iter().flatten());
    all
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
