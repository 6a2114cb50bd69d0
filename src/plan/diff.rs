//! What differs between two plans.
//!
//! In: two plans over the same flows. Out: the flows that change path or queue, come or go. Must not know: what a change
//! costs.

use super::{Assignment, Plan};
use crate::id::FlowId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Most changes that are printed; the counts are always complete.
const MAX_SHOWN: usize = 50;

/// One flow's change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The flow.
    pub flow: FlowId,
    /// What it had; `None` for a new flow.
    pub before: Option<Assignment>,
    /// What it gets; `None` for a flow that left.
    pub after: Option<Assignment>,
}

impl Change {
    /// Whether the flow stays and takes another path.
    #[must_use]
    pub fn moves(&self) -> bool {
        matches!((&self.before, &self.after), (Some(a), Some(b)) if a.path != b.path)
    }

    /// Whether the flow stays and takes another queue.
    #[must_use]
    pub fn requeues(&self) -> bool {
        matches!((&self.before, &self.after), (Some(a), Some(b)) if a.queue != b.queue)
    }
}

/// All changes from one plan to another, ascending by flow. Reasons do not count as changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// The changes.
    pub changes: Vec<Change>,
}

impl Diff {
    /// Compares two plans flow by flow.
    #[must_use]
    pub fn between(before: &Plan, after: &Plan) -> Self {
        let mut flows: BTreeMap<FlowId, (Option<&Assignment>, Option<&Assignment>)> =
            BTreeMap::new();
        for assignment in &before.assignments {
            flows.entry(assignment.flow).or_default().0 = Some(assignment);
        }
        for assignment in &after.assignments {
            flows.entry(assignment.flow).or_default().1 = Some(assignment);
        }
        let same = |a: &Assignment, b: &Assignment| a.path == b.path && a.queue == b.queue;
        let changes = flows
            .into_iter()
            .filter(|(_, pair)| !matches!(pair, (Some(a), Some(b)) if same(a, b)))
            .map(|(flow, (before, after))| Change {
                flow,
                before: before.cloned(),
                after: after.cloned(),
            })
            .collect();
        Self { changes }
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count =
            |test: &dyn Fn(&Change) -> bool| self.changes.iter().filter(|c| test(c)).count();
        writeln!(
            f,
            "{} moved, {} requeued, {} new, {} gone",
            count(&Change::moves),
            count(&Change::requeues),
            count(&|change| change.before.is_none()),
            count(&|change| change.after.is_none()),
        )?;
        let side = |assignment: &Option<Assignment>| match assignment {
            Some(a) => format!("tree {} queue {}", a.path.tree, a.queue),
            None => "nothing".to_owned(),
        };
        for change in self.changes.iter().take(MAX_SHOWN) {
            let (before, after) = (side(&change.before), side(&change.after));
            write!(f, "flow {}: {before} -> {after}", change.flow)?;
            match &change.after {
                Some(assignment) if !assignment.reason.is_empty() => {
                    writeln!(f, " ({})", assignment.reason)?;
                }
                _ => writeln!(f)?,
            }
        }
        if self.changes.len() > MAX_SHOWN {
            writeln!(f, "and {} more", self.changes.len() - MAX_SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{LinkId, TreeId};
    use crate::topology::Path;

    fn plan(assignments: &[(u32, u32, u8)]) -> Plan {
        let assignment = |&(flow, tree, queue): &(u32, u32, u8)| Assignment {
            flow: FlowId(flow),
            path: Path { tree: TreeId(tree), links: vec![LinkId(0), LinkId(tree + 1)] },
            queue,
            reason: format!("reason {flow}"),
        };
        let assignments = assignments.iter().map(assignment).collect();
        Plan { generation: 0, policy: "test".into(), assignments }
    }

    #[test]
    fn a_diff_counts_moves_queues_arrivals_and_departures() {
        let before = plan(&[(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 0, 0)]);
        let mut after = plan(&[(0, 0, 0), (1, 2, 1), (2, 2, 3), (4, 0, 0)]);
        after.assignments[0].reason = "told differently".into();
        let diff = Diff::between(&before, &after);
        assert_eq!(diff.changes.iter().map(|c| c.flow.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let text = diff.to_string();
        assert!(text.starts_with("1 moved, 1 requeued, 1 new, 1 gone\n"), "{text}");
        assert!(text.contains("flow 3: tree 0 queue 0 -> nothing\n"), "{text}");
        assert!(text.contains("flow 2: tree 2 queue 2 -> tree 2 queue 3 (reason 2)"), "{text}");
        assert!(Diff::between(&before, &before).is_empty());
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let many: Vec<(u32, u32, u8)> = (0..80).map(|flow| (flow, 0, 0)).collect();
        let text = Diff::between(&plan(&[]), &plan(&many)).to_string();
        assert!(text.starts_with("0 moved, 0 requeued, 80 new, 0 gone\n"));
        assert!(text.ends_with("and 30 more\n"));
        assert_eq!(text.lines().count(), 52);
    }
}
