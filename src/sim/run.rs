//! One policy on one scenario, packet by packet.
//!
//! In: a scenario, a policy, the compiled program, a seed, the kind of wire. Out: [`RunResult`] with the metrics of
//! docs/scheduling. Must not know the command line or what other policies did.

mod alone;
mod assemble;
mod measure;
mod record;
mod stragglers;

pub use alone::contention_free;
pub use assemble::{Assembly, Options, assemble};
pub use measure::{Dropped, Packets, Restart, RunResult, Telemetry};
pub use stragglers::Straggler;

use crate::controller::core::CoreError;
use crate::controller::{Artifacts, Planning, SharedPolicy};
use crate::pipeline::ProgramError;
use crate::sim::SimError;
use crate::sim::trace::Recording;
use crate::sim::wire::{DirectWire, GrpcWire, Wire, WireError, WireKind};
use crate::sim::world::WorldError;
use crate::workload::scenario::Scenario;

/// What is run.
#[derive(Clone)]
pub struct RunSpec<'a> {
    /// Fabric, jobs, events.
    pub scenario: &'a Scenario,
    /// The policies that the controller knows.
    pub policies: &'a [SharedPolicy],
    /// The one in force at the start.
    pub policy: &'a str,
    /// The compiled P4 program.
    pub artifacts: &'a Artifacts,
    /// How the controller reaches the switches.
    pub wire: WireKind,
    /// How the controller plans.
    pub planning: Planning,
    /// Everything else that can be chosen.
    pub options: Options,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The scenario cannot be simulated.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The program lacks something.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// P4Info is broken.
    #[error("the program's P4Info cannot be used: {0}")]
    P4Info(String),
    /// The controller cannot be made.
    #[error(transparent)]
    Core(#[from] CoreError),
    /// The jobs have no flows.
    #[error(transparent)]
    Flows(#[from] crate::workload::FlowError),
    /// The wire cannot be made or broke.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The run ended before its time.
    #[error(transparent)]
    World(#[from] WorldError),
}

/// Runs a policy on a scenario to the end.
///
/// # Errors
/// [`RunError`]; a broken wire names the switch.
pub fn run(spec: &RunSpec<'_>) -> Result<RunResult, RunError> {
    over_wire(spec, false).map(|(result, _)| result)
}

/// As [`run`], and keeps what a report shows. The figures are the same.
///
/// # Errors
/// As [`run`].
pub fn watch(spec: &RunSpec<'_>) -> Result<(RunResult, Recording), RunError> {
    over_wire(spec, true)
}

/// As [`run`] in process, and each flow's mean communication seconds over iterations 2..n, by flow; `None` where a flow has none.
///
/// # Errors
/// As [`run`].
pub fn flow_times(spec: &RunSpec<'_>) -> Result<(RunResult, Vec<Option<f64>>), RunError> {
    let assembly = assemble(spec)?;
    let wire = DirectWire::new(&assembly.servers);
    let facts = assembly.facts.clone();
    let mut world = assembly.into_world(wire);
    world.run(&mut |_, _, _| Ok::<(), WorldError>(()))?;
    let times = world.flows().iter().map(|flow| world.net.flow_seconds(flow.id)).collect();
    let result = measure::measure(spec.policy, &facts, &mut world)?;
    Ok((result, times))
}

fn over_wire(spec: &RunSpec<'_>, keep: bool) -> Result<(RunResult, Recording), RunError> {
    let assembly = assemble(spec)?;
    match spec.wire {
        WireKind::Direct => {
            let wire = DirectWire::new(&assembly.servers);
            finish(spec, assembly, wire, keep)
        }
        WireKind::Grpc => {
            let wire = GrpcWire::start(&assembly.servers, &spec.scenario.topology)?;
            finish(spec, assembly, wire, keep)
        }
    }
}

fn finish<W: Wire>(
    spec: &RunSpec<'_>,
    assembly: Assembly,
    wire: W,
    keep: bool,
) -> Result<(RunResult, Recording), RunError> {
    let facts = assembly.facts.clone();
    let mut world = assembly.into_world(wire);
    if keep {
        world.record(spec.scenario.queues);
    }
    world.run(&mut |_, _, _| Ok::<(), WorldError>(()))?;
    let result = measure::measure(spec.policy, &facts, &mut world)?;
    Ok((result, record::recording(&mut world)))
}

#[cfg(test)]
mod tests;
