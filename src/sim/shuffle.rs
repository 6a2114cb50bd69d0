//! Changes for their own sake: a policy that moves flows about.
//!
//! In: another policy, orders to move. Out: that policy's plan, with some flows on other candidate paths and queues, drawn from the
//! effort's seed. It exercises orderly changes; it is no policy to compare.

use crate::controller::SharedPolicy;
use crate::plan::Plan;
use crate::solver::{Effort, Policy, Problem};
use crate::time::stream;
use rand::RngExt as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Wraps a policy; until it is told to move flows it does what that policy does.
pub struct Shuffle {
    inner: SharedPolicy,
    /// Flows to move with the next plan.
    order: AtomicU32,
    /// Plans made with an order: each draws anew.
    drawn: AtomicU64,
    last: Mutex<Option<Plan>>,
}

impl Shuffle {
    /// A wrapper around `inner`.
    #[must_use]
    pub fn new(inner: SharedPolicy) -> Arc<Self> {
        let (order, drawn) = (AtomicU32::new(0), AtomicU64::new(0));
        Arc::new(Self { inner, order, drawn, last: Mutex::new(None) })
    }

    /// The next plan keeps the last one and moves `flows` flows.
    pub fn order(&self, flows: u32) {
        self.order.store(flows, Ordering::Relaxed);
    }
}

impl Policy for Shuffle {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn plan(&self, problem: &Problem<'_>, effort: &Effort<'_>) -> Plan {
        let order = self.order.swap(0, Ordering::Relaxed);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // The last plan may hold paths that have failed meanwhile, or belong to other flows.
        let usable = |plan: &Plan| {
            plan.assignments.len() == problem.paths.len()
                && plan.assignments.iter().zip(problem.paths).all(|(a, p)| p.contains(&a.path))
        };
        let mut plan = match last.take().filter(|plan| order > 0 && usable(plan)) {
            Some(plan) => plan,
            None => self.inner.plan(problem, effort),
        };
        if order > 0 && !plan.assignments.is_empty() {
            let drawn = self.drawn.fetch_add(1, Ordering::Relaxed);
            let mut random = stream(effort.seed, "shuffle", drawn);
            for _ in 0..order {
                let flow = random.random_range(0..plan.assignments.len());
                let paths = &problem.paths[flow];
                let assignment = &mut plan.assignments[flow];
                assignment.path = paths[random.random_range(0..paths.len())].clone();
                assignment.queue = random.random_range(0..problem.levels.max(1));
                assignment.reason = "moved by the scenario".into();
            }
        }
        *last = Some(plan.clone());
        plan
    }
}
