//! Memberships: which hosts a job runs on, and what becomes of it when one fails.
//!
//! In: a job, the hosts that are gone. Out: the job as it goes on, or why it cannot. Must not know: who noticed the failure,
//! plans, switches, how agents restart workers.
//!
//! This is the first version: the survivors go on alone, in the order in which they were, from the start of the step that
//! the failure broke. The global batch stays, so each survivor computes more; a ring of fewer hosts sends less per edge, and
//! a single survivor needs no ring.

use crate::id::HostId;
use crate::time::Span;
use crate::workload::Job;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Which incarnation of a job's membership; rises by one at every change. What belongs to an older one is dead.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl std::fmt::Display for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl Generation {
    /// The one after this.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// Why a job cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElasticError {
    /// No host is left.
    #[error("job '{job}' has lost all its hosts ({before}); submit it again on others")]
    NoneLeft {
        /// The job's name.
        job: String,
        /// Hosts before.
        before: usize,
    },
}

/// The job without its failed hosts; `None` if it has none of them.
///
/// Ring order is kept. Compute time of an iteration grows by hosts before / hosts left (the global batch stays).
///
/// # Errors
/// [`ElasticError::NoneLeft`] when all its hosts have failed.
pub fn shrink(job: &Job, failed: &BTreeSet<HostId>) -> Result<Option<Job>, ElasticError> {
    let ranks: Vec<HostId> =
        job.ranks.iter().copied().filter(|host| !failed.contains(host)).collect();
    let (left, before) = (ranks.len(), job.ranks.len());
    if left == before {
        return Ok(None);
    }
    if left == 0 {
        return Err(ElasticError::NoneLeft { job: job.name.clone(), before });
    }
    let compute = job.compute.as_secs_f64() * before as f64 / left as f64;
    Ok(Some(Job { ranks, compute: Span::from_secs_f64(compute), ..job.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use crate::units::Bytes;

    fn job(hosts: &[u32]) -> Job {
        Job {
            id: JobId(3),
            name: "bert".into(),
            model: "custom".into(),
            ranks: hosts.iter().copied().map(HostId).collect(),
            gpus_per_rank: 4,
            gradient: Bytes(1_000),
            compute: Span::from_millis(300),
            overlap: 0.0,
            jitter: 0.0,
            iterations: 9,
            start: Span::ZERO,
            channels: 2,
        }
    }

    fn hosts(ids: &[u32]) -> BTreeSet<HostId> {
        ids.iter().copied().map(HostId).collect()
    }

    #[test]
    fn survivors_keep_their_order_and_share_the_work_of_the_dead() {
        let before = job(&[5, 1, 9, 2]);
        let after = shrink(&before, &hosts(&[1, 7])).unwrap().unwrap();
        assert_eq!(after.ranks, [5, 9, 2].map(HostId));
        assert_eq!(after.compute, Span::from_millis(400));
        let work = |job: &Job| job.compute.as_secs_f64() * job.ranks.len() as f64;
        assert!((work(&after) - work(&before)).abs() < 1e-9, "GPU seconds per iteration stay");
        assert_eq!(Job { ranks: before.ranks.clone(), compute: before.compute, ..after }, before);
    }

    #[test]
    fn a_job_without_a_failed_host_is_left_alone_and_one_without_any_other_ends() {
        assert_eq!(shrink(&job(&[5, 1]), &hosts(&[2])), Ok(None));
        let alone = shrink(&job(&[5, 1]), &hosts(&[5])).unwrap().unwrap();
        assert_eq!((alone.ranks, alone.compute), (vec![HostId(1)], Span::from_millis(600)));
        let error = shrink(&job(&[5, 1]), &hosts(&[1, 5])).unwrap_err();
        assert_eq!(error, ElasticError::NoneLeft { job: "bert".into(), before: 2 });
        assert!(error.to_string().contains("'bert' has lost all its hosts (2)"));
    }
}
