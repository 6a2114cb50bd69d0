//! What others may see of a core between two steps: jobs, flows, the fabric.
//!
//! In: ids. Out: references and counts. Must not change anything.

use super::Core;
use crate::id::{FlowId, JobId, SwitchId};
use crate::topology::Topology;
use crate::workload::{Flow, Job};

impl Core {
    /// Switches of the topology.
    #[must_use]
    pub fn switch_count(&self) -> usize {
        self.switches.len()
    }

    /// Jobs by id, each with its flows' ids.
    pub fn jobs(&self) -> impl Iterator<Item = (&Job, &[FlowId])> {
        self.jobs.values().map(|(job, flows)| (job, flows.as_slice()))
    }

    /// A flow as its job's submitter described it.
    #[must_use]
    pub fn flow_spec(&self, flow: FlowId) -> Option<&Flow> {
        self.flows.get(&flow)
    }

    /// Whether everything that a job's flows need is installed.
    #[must_use]
    pub fn is_ready(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job) && !self.unready.contains(&job) && !self.forming.contains(&job)
    }

    /// Iterations of a job that its agents have reported as done.
    #[must_use]
    pub fn iterations_done(&self, job: JobId) -> u32 {
        self.done.get(&job).copied().unwrap_or(0)
    }

    /// Flows that may still be added.
    #[must_use]
    pub fn room_for_flows(&self) -> usize {
        self.config.limits.flows.saturating_sub(self.flows.len())
    }

    /// Ids that no job and no flow has: the next job's, and the first of its flows'.
    #[must_use]
    pub fn next_ids(&self) -> (JobId, FlowId) {
        let job = self.jobs.keys().next_back().map_or(0, |job| job.0 + 1);
        let last = self.flows.keys().next_back().max(self.states.keys().next_back());
        (JobId(job), FlowId(last.map_or(0, |flow| flow.0 + 1)))
    }

    /// The fabric.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.config.topology
    }

    /// P4Runtime device id of a switch; 0 for one that the fabric does not have.
    #[must_use]
    pub fn device_id(&self, switch: SwitchId) -> u64 {
        self.config.device_ids.get(switch.index()).copied().unwrap_or(0)
    }

    /// Name of the policy in force.
    #[must_use]
    pub fn policy(&self) -> &str {
        &self.policy
    }

    /// Names of the policies that can be put in force.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.config.policies.iter().map(|policy| policy.name())
    }
}
