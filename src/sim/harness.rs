//! Many small runs with faults, each checked after every event.
//!
//! In: seeds. Out: which seeds broke an invariant, when, and the shortest list of faults that still does. Must not know what
//! is right: that is in [`super::invariant`].

mod small;

pub use small::small_scenario;

use crate::controller::config::{TelemetryConfig, TelemetryWay};
use crate::controller::messages::Event as Notice;
use crate::controller::{Artifacts, Planning, SharedPolicy};
use crate::sim::fault::{Fault, Faults};
use crate::sim::invariant::{Checker, Invariant, Violation};
use crate::sim::run::{Options, RunError, RunSpec, assemble};
use crate::sim::wire::{DirectWire, Wire, WireKind};
use crate::sim::world::{Happened, Step, World, WorldError};
use crate::solver::Objective;
use crate::time::{Span, Time};
use crate::workload::scenario::Scenario;
use rayon::prelude::*;
use std::ops::Range;

/// What one seed came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Faults that were drawn.
    pub faults: Vec<Fault>,
    /// Nothing, or what went wrong.
    pub failure: Option<Failure>,
    /// Events of the run.
    pub events: u64,
    /// Hash of the run.
    pub digest: u64,
}

/// A broken invariant, or a run that did not come to its end.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What was found with all faults.
    pub what: String,
    /// The shortest list found with which the run still fails.
    pub shortest: Vec<Fault>,
    /// What was found with that list.
    pub shortest_what: String,
}

/// Why a run failed, or could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// An invariant does not hold.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// The run cannot be made or ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The world stopped.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Faults happen within this time of the start; the jobs run about as long.
const HORIZON: Span = Span::from_millis(400);
/// How long after the jobs' end the controller has to put everything right: its longest retry pause and more.
pub const CONVERGE_BOUND: Span = Span::from_millis(30_000);
/// A run sees some twenty intervals.
const TELEMETRY_INTERVAL: Span = Span::from_millis(20);
/// Most runs that shortening one failure may take.
const MAX_SHORTENING: usize = 64;

/// What every seed is run with.
pub struct Harness {
    /// The compiled program.
    pub artifacts: Artifacts,
    /// The policy whose plans are installed and then shuffled.
    pub policy: SharedPolicy,
    /// What must hold; [`super::invariant::all`] unless a test of the harness wants something else.
    pub statements: fn() -> Vec<Box<dyn Invariant>>,
}

impl Harness {
    /// Runs seeds, `threads` at a time (0: one per core). `done` is called as seeds end, in any order; outcomes are in order of seed.
    pub fn run(
        &self,
        seeds: Range<u64>,
        threads: usize,
        done: &(dyn Fn(&Outcome) + Sync),
    ) -> Vec<Outcome> {
        let all: Vec<u64> = seeds.collect();
        let work = || {
            all.par_iter()
                .map(|seed| {
                    let outcome = self.seed(*seed);
                    done(&outcome);
                    outcome
                })
                .collect()
        };
        match rayon::ThreadPoolBuilder::new().num_threads(threads).build() {
            Ok(pool) => pool.install(work),
            // Without threads of our own the common ones do.
            Err(_) => work(),
        }
    }

    /// Runs one seed with its drawn faults; shortens the list if it fails.
    #[must_use]
    pub fn seed(&self, seed: u64) -> Outcome {
        let faults = match small_scenario(seed) {
            Ok(scenario) => Faults::draw(seed, &scenario.topology, HORIZON),
            Err(_) => Vec::new(),
        };
        let (events, digest, failure) = match self.check(seed, &faults) {
            Ok((events, digest)) => (events, digest, None),
            Err(error) => (0, 0, Some(self.shorten(seed, &faults, error.to_string()))),
        };
        Outcome { seed, faults, failure, events, digest }
    }

    /// Removes faults one by one while the run still fails.
    fn shorten(&self, seed: u64, faults: &[Fault], what: String) -> Failure {
        let mut shortest = faults.to_vec();
        let mut shortest_what = what.clone();
        let mut runs = 0;
        let mut at = 0;
        while at < shortest.len() && runs < MAX_SHORTENING {
            let mut fewer = shortest.clone();
            fewer.remove(at);
            runs += 1;
            match self.check(seed, &fewer) {
                Err(error) => {
                    shortest = fewer;
                    shortest_what = error.to_string();
                    at = 0;
                }
                Ok(_) => at += 1,
            }
        }
        Failure { what, shortest, shortest_what }
    }

    /// One run with exactly these faults, every invariant checked after every event.
    ///
    /// # Errors
    /// The first violation, or why the run did not come to its end.
    pub fn check(&self, seed: u64, faults: &[Fault]) -> Result<(u64, u64), CheckError> {
        let scenario = small_scenario(seed).map_err(RunError::from)?;
        let (mut world, mut checker) = self.world(&scenario, faults)?;
        world.run(&mut |world: &mut World<DirectWire>, now, happened| {
            checker.check(world, now, happened).map_err(CheckError::from)
        })?;
        quiet(&mut world, &mut checker)?;
        Ok((world.queue.handled(), world.digest()))
    }

    /// A world before its first event, and its checker.
    fn world(
        &self,
        scenario: &Scenario,
        faults: &[Fault],
    ) -> Result<(World<DirectWire>, Checker), RunError> {
        let planning = Planning {
            levels: scenario.levels(),
            max_paths: scenario.max_paths,
            max_evaluations: 1,
            objective: Objective::default(),
            phases: 1,
        };
        let options = Options {
            faults: faults.to_vec(),
            wait_linger: true,
            telemetry: TelemetryConfig {
                way: if scenario.seed.is_multiple_of(2) {
                    TelemetryWay::Auto
                } else {
                    TelemetryWay::Readout
                },
                interval: TELEMETRY_INTERVAL,
                ..TelemetryConfig::default()
            },
            ..Options::default()
        };
        let assembly = assemble(&RunSpec {
            scenario,
            policies: std::slice::from_ref(&self.policy),
            policy: self.policy.name(),
            artifacts: &self.artifacts,
            wire: WireKind::Direct,
            planning,
            options,
        })?;
        let program = assembly.program.clone();
        let counters = assembly.facts.counters;
        let statements = (self.statements)();
        let checker = Checker::new(program, counters, &scenario.topology, statements);
        let wire = DirectWire::new(&assembly.servers);
        Ok((assembly.into_world(wire), checker))
    }
}

/// Longest time for retired labels to go: two counter reads apart, the rest after them, and repeated looks while packets
/// still carry the label.
const RETIRE_BOUND: Span = Span::from_millis(60_000);

/// After the run has converged and retired labels are gone, reading every switch again changes nothing.
fn quiet<W: Wire>(world: &mut World<W>, checker: &mut Checker) -> Result<(), CheckError> {
    let until = world.queue.now() + RETIRE_BOUND;
    while world.core.retiring() > 0 && world.queue.next_at().is_some_and(|at| at <= until) {
        if let Some((now, happened)) = world.step()? {
            checker.check(world, now, happened)?;
        }
    }
    let before = world.counts().updates;
    let reads = |world: &World<W>| {
        let read = |(_, notice): &&(Time, Notice)| matches!(notice, Notice::Read { .. });
        world.notices.iter().filter(read).count()
    };
    let seen = reads(world);
    let now = world.queue.now();
    for switch in world.topology.switches() {
        world.schedule(now, Step::Resync(switch));
    }
    let until = now + CONVERGE_BOUND;
    while world.queue.next_at().is_some_and(|at| at <= until) {
        if let Some((now, happened)) = world.step()? {
            checker.check(world, now, happened)?;
        }
    }
    let violation = |wanted: String, found: String| Violation {
        invariant: "NoUselessWrite",
        at: world.queue.now(),
        event: format!("{:?} of every switch", Happened::Scripted),
        wanted,
        found,
    };
    let switches = world.topology.switch_count();
    let looked = reads(world) - seen;
    if looked < switches {
        let wanted = format!("{switches} switches read in full");
        return Err(violation(wanted, looked.to_string()).into());
    }
    let writes = world.counts().updates - before;
    if writes > 0 {
        let wanted = "no updates at switches that hold what is wanted".to_owned();
        return Err(violation(wanted, format!("{writes} updates")).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
