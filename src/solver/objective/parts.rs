//! One run as many: jobs that share no link, directly or through others, do not feel each other.
//!
//! In: a choice, draws. Out: the [`Outcome`] of a run, put together from the components of the jobs. Must not know:
//! objectives.
//!
//! A component's run depends on its own paths, queues and draws only. It is remembered by these, so a move costs the
//! components that it changes. Where everything hangs together there is one component and nothing to remember: a search
//! hardly ever meets the same whole choice twice.

use crate::solver::fluid::{Draws, Fluid, Outcome};
use crate::solver::instance::{Choice, Instance};
use rustc_hash::FxHashMap;

/// Components remembered at most; reset when full. At some hundred bytes each this is a few megabytes per engine.
const REMEMBERED: usize = 8192;

/// What one draw did to one job.
#[derive(Clone, Copy, Debug)]
struct JobRun {
    comm: f64,
    window: f64,
    compute: f64,
    stalled: bool,
}

/// Paths and queues of a component's flows: its name in the memory.
type Name = Box<[u32]>;

/// Runs of one component, job by job, draw after draw as far as they were asked for.
type Runs = Vec<JobRun>;

/// An engine that runs components.
#[derive(Clone, Debug)]
pub(super) struct Parts<'a> {
    instance: &'a Instance,
    fluid: Fluid<'a>,
    /// What is looked at of a run without end.
    window: Option<(f64, f64)>,
    /// Jobs of each component, ascending, and its name; empty when there is only one component.
    components: Vec<(Vec<u32>, Name)>,
    known: FxHashMap<Name, Runs>,
    parent: Vec<u32>,
    first_on_link: Vec<u32>,
    scratch: Outcome,
    /// Runs that were known.
    pub(super) remembered: u64,
}

const NOBODY: u32 = u32::MAX;

impl<'a> Parts<'a> {
    pub(super) fn new(instance: &'a Instance) -> Self {
        Self {
            instance,
            fluid: Fluid::new(instance),
            window: super::window(instance),
            components: Vec::new(),
            known: FxHashMap::default(),
            parent: Vec::new(),
            first_on_link: vec![NOBODY; instance.capacity.len()],
            scratch: Outcome::default(),
            remembered: 0,
        }
    }

    /// Takes a choice.
    pub(super) fn load(&mut self, choice: &Choice) {
        self.fluid.load(choice);
        self.join();
        let roots = (0..self.parent.len() as u32).filter(|&job| self.parent[job as usize] == job);
        let count = roots.count();
        self.components.clear();
        if count < 2 {
            return;
        }
        if self.known.len() > REMEMBERED {
            self.known.clear();
        }
        let mut place = vec![NOBODY; self.parent.len()];
        let mut members: Vec<Vec<u32>> = Vec::with_capacity(count);
        for job in 0..self.parent.len() {
            let root = self.root(job as u32) as usize;
            if place[root] == NOBODY {
                place[root] = members.len() as u32;
                members.push(Vec::new());
            }
            members[place[root] as usize].push(job as u32);
        }
        let instance = self.instance;
        self.components.extend(members.into_iter().map(|jobs| {
            let rings = jobs.iter().flat_map(|&job| &instance.jobs[job as usize].rings);
            let flows = rings.flat_map(|&ring| &instance.rings[ring].flows);
            let route =
                |&flow: &usize| u32::from(choice.path[flow]) << 8 | u32::from(choice.queue[flow]);
            // The jobs themselves belong to the name: others could have the same paths and queues.
            let name = jobs.iter().copied().chain([NOBODY]).chain(flows.map(route)).collect();
            (jobs, name)
        }));
    }

    /// Joins jobs that share a link: union by the smaller job, so that the root is a component's first.
    fn join(&mut self) {
        self.parent.clear();
        self.parent.extend(0..self.instance.jobs.len() as u32);
        self.first_on_link.fill(NOBODY);
        for (ring, shape) in self.instance.rings.iter().enumerate() {
            let job = shape.job as u32;
            for at in 0..self.fluid.layout().demands(ring).len() {
                let link = self.fluid.layout().demands(ring)[at].link as usize;
                if self.first_on_link[link] == NOBODY {
                    self.first_on_link[link] = job;
                }
                let (a, b) = (self.root(self.first_on_link[link]), self.root(job));
                self.parent[a.max(b) as usize] = a.min(b);
            }
        }
    }

    fn root(&mut self, mut job: u32) -> u32 {
        while self.parent[job as usize] != job {
            let up = self.parent[self.parent[job as usize] as usize];
            self.parent[job as usize] = up;
            job = up;
        }
        job
    }

    /// Runs the loaded choice under one of the draws; earlier ones must have been run.
    pub(super) fn run(&mut self, draws: &[Draws], draw: usize, outcome: &mut Outcome) {
        if self.components.is_empty() {
            simulate(&mut self.fluid, self.window, &draws[draw], outcome);
            return;
        }
        let jobs = self.instance.jobs.len();
        outcome.comm.resize(jobs, 0.0);
        outcome.window.resize(jobs, 0.0);
        outcome.compute.resize(jobs, 0.0);
        outcome.stalled.resize(jobs, false);
        for (members, name) in &self.components {
            let from = draw * members.len();
            let runs = match self.known.get_mut(name) {
                Some(runs) => runs,
                None => self.known.entry(name.clone()).or_default(),
            };
            if runs.len() <= from {
                self.fluid.select(members);
                simulate(&mut self.fluid, self.window, &draws[draw], &mut self.scratch);
                runs.extend(members.iter().map(|&job| self.scratch.of(job as usize)));
            } else {
                self.remembered += 1;
            }
            for (&job, run) in members.iter().zip(&runs[from..]) {
                outcome.set(job as usize, *run);
            }
        }
    }
}

fn simulate(
    fluid: &mut Fluid<'_>,
    window: Option<(f64, f64)>,
    draws: &Draws,
    outcome: &mut Outcome,
) {
    match window {
        Some(span) => fluid.run_window(span, draws, outcome),
        None => fluid.run(draws, outcome),
    }
}

impl Outcome {
    fn of(&self, job: usize) -> JobRun {
        JobRun {
            comm: self.comm[job],
            window: self.window[job],
            compute: self.compute[job],
            stalled: self.stalled[job],
        }
    }

    fn set(&mut self, job: usize, run: JobRun) {
        self.comm[job] = run.comm;
        self.window[job] = run.window;
        self.compute[job] = run.compute;
        self.stalled[job] = run.stalled;
    }
}
