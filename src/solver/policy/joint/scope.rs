//! What a search may choose: everything, or less, to see what each freedom is worth.
//!
//! In: a choice. Out: the nearest choice within the scope. Must not know: scores, moves.

use crate::solver::instance::{Choice, Instance};

/// How fine queues are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queues {
    /// Every flow has its own.
    #[default]
    ByFlow,
    /// All flows of a job have the same.
    ByJob,
    /// All flows have queue 0.
    One,
}

/// What may be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Path of every flow, by flow id, where paths are given.
    pub paths: Option<Vec<u16>>,
    /// How queues are chosen.
    pub queues: Queues,
    /// Flows that stay as they are, by flow id; empty if there are none.
    pub frozen: Vec<bool>,
}

impl Scope {
    /// Path and queue of every flow.
    #[must_use]
    pub fn everything() -> Self {
        Self::default()
    }

    /// One queue per job.
    #[must_use]
    pub fn job_queues() -> Self {
        Self { queues: Queues::ByJob, ..Self::default() }
    }

    /// Whether a flow stays as it is.
    #[must_use]
    pub fn is_frozen(&self, flow: usize) -> bool {
        self.frozen.get(flow).copied().unwrap_or(false)
    }

    /// Brings a choice into the scope; a job gets the queue of its first flow.
    pub fn confine(&self, instance: &Instance, choice: &mut Choice) {
        self.confine_move(instance, &Choice { path: Vec::new(), queue: Vec::new() }, choice);
    }

    /// Brings a changed choice into the scope. A job gets the first of its flows' queues that differs from `before`, so
    /// that the change of one flow becomes that of its job.
    pub fn confine_move(&self, instance: &Instance, before: &Choice, choice: &mut Choice) {
        for flow in 0..before.path.len().min(self.frozen.len()) {
            if self.frozen[flow] {
                choice.path[flow] = before.path[flow];
                choice.queue[flow] = before.queue[flow];
            }
        }
        if let Some(paths) = &self.paths {
            choice.path.copy_from_slice(paths);
        }
        match self.queues {
            Queues::ByFlow => {}
            Queues::One => choice.queue.fill(0),
            Queues::ByJob => {
                for job in &instance.jobs {
                    let flows = || job.rings.iter().flat_map(|&ring| &instance.rings[ring].flows);
                    let changed =
                        |flow: &&usize| before.queue.get(**flow) != Some(&choice.queue[**flow]);
                    let first = flows().find(changed).or_else(|| flows().next());
                    let Some(queue) = first.map(|&flow| choice.queue[flow]) else { continue };
                    flows().for_each(|&flow| choice.queue[flow] = queue);
                }
            }
        }
    }
}
