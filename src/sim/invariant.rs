//! What must hold after every event, as values.
//!
//! In: the devices' own tables and counters, the hosts' counts, what the controller told. Out: nothing, or a violation that says what
//! was wanted and what was found. Must not know how the controller reached its state.

mod checks;
mod tables;

pub use checks::{Bounded, LabelsInstalled, NoLabelMiss, OrderKept, QueueInRange};
pub use tables::{SwitchTables, Tables};

use crate::controller::messages::Event as Notice;
use crate::id::{FlowId, SwitchId};
use crate::pipeline::Program;
use crate::pipeline::counters::Counters;
use crate::sim::fabric::{FabricSwitch, SharedServer};
use crate::sim::packet::Net;
use crate::sim::wire::Wire;
use crate::sim::world::{Happened, World};
use crate::time::Time;
use crate::topology::Topology;
use crate::workload::Flow;
use std::collections::{BTreeMap, BTreeSet};

/// A statement that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} broken at {} ns by {event}: wanted {wanted}, found {found}", at.0)]
pub struct Violation {
    /// Which statement.
    pub invariant: &'static str,
    /// When.
    pub at: Time,
    /// The event after which it was found.
    pub event: String,
    /// What should be.
    pub wanted: String,
    /// What is.
    pub found: String,
}

/// What an invariant may look at.
pub struct View<'a> {
    /// Virtual time.
    pub now: Time,
    /// The fabric.
    pub topology: &'a Topology,
    /// Flows by id.
    pub flows: &'a [Flow],
    /// The packet network.
    pub net: &'a Net<FabricSwitch>,
    /// What the switches hold, as read from the devices.
    pub tables: &'a Tables,
    /// Switches that lost their entries and are not known to have them again.
    pub damaged: &'a BTreeSet<SwitchId>,
    /// Whether any switch has restarted.
    pub restarted: bool,
    /// Flows that the controller moved without a gap.
    pub forced: &'a BTreeSet<FlowId>,
    /// Control-plane events on their way.
    pub waiting: usize,
    /// Calls to each switch without an answer.
    pub calls_out: &'a [u32],
}

/// What an invariant says.
pub type Finding = Result<(), (String, String)>;

/// A statement about the world after each event.
pub trait Invariant: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;
    /// Holds, or (wanted, found).
    fn check(&mut self, view: &View<'_>, happened: &Happened) -> Finding;
}

/// All invariants of this module.
#[must_use]
pub fn all() -> Vec<Box<dyn Invariant>> {
    // Plans may use all queues below the raised one.
    let levels = crate::plan::RAISED_QUEUE;
    vec![
        Box::new(LabelsInstalled),
        Box::new(NoLabelMiss::default()),
        Box::new(OrderKept::default()),
        Box::new(QueueInRange { levels }),
        Box::new(Bounded),
    ]
}

/// Runs the invariants and keeps what they share.
pub struct Checker {
    invariants: Vec<Box<dyn Invariant>>,
    tables: Tables,
    damaged: BTreeMap<SwitchId, Damage>,
    restarted: bool,
    forced: BTreeSet<FlowId>,
    noticed: usize,
}

/// How far the repair of a restarted switch is known to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    /// The controller has not become primary again.
    Unknown,
    /// It is primary again and reads and writes.
    Repairing,
}

impl Checker {
    /// A checker of these invariants; see [`all`].
    #[must_use]
    pub fn new(
        program: Program,
        counters: Counters,
        topology: &Topology,
        invariants: Vec<Box<dyn Invariant>>,
    ) -> Self {
        Self {
            invariants,
            tables: Tables::new(program, counters, topology.switch_count()),
            damaged: BTreeMap::new(),
            restarted: false,
            forced: BTreeSet::new(),
            noticed: 0,
        }
    }

    /// The program, resolved.
    #[must_use]
    pub fn program(&self) -> &Program {
        self.tables.program()
    }

    /// Checks the world after an event.
    pub fn check<W: Wire>(
        &mut self,
        world: &World<W>,
        now: Time,
        happened: Happened,
    ) -> Result<(), Violation> {
        self.follow(world, now, happened);
        let damaged: BTreeSet<SwitchId> = self.damaged.keys().copied().collect();
        let view = View {
            now,
            topology: &world.topology,
            flows: world.flows(),
            net: &world.net,
            tables: &self.tables,
            damaged: &damaged,
            restarted: self.restarted,
            forced: &self.forced,
            waiting: world.waiting(),
            calls_out: world.calls_out(),
        };
        for invariant in &mut self.invariants {
            invariant.check(&view, &happened).map_err(|(wanted, found)| Violation {
                invariant: invariant.name(),
                at: now,
                event: format!("{happened:?}"),
                wanted,
                found,
            })?;
        }
        Ok(())
    }

    /// Keeps up with the event: tables that changed, switches that broke or were mended.
    fn follow<W: Wire>(&mut self, world: &World<W>, now: Time, happened: Happened) {
        match happened {
            Happened::Executed(switch, true) => self.read(&world.servers, now, switch),
            Happened::Restarted(switch) => {
                self.restarted = true;
                self.damaged.insert(switch, Damage::Unknown);
                self.read(&world.servers, now, switch);
            }
            _ => {}
        }
        for (_, notice) in &world.notices[self.noticed..] {
            match notice {
                Notice::Primary { switch } => {
                    if let Some(damage) = self.damaged.get_mut(switch) {
                        *damage = Damage::Repairing;
                    }
                }
                Notice::Synced { switch }
                    if self.damaged.get(switch) == Some(&Damage::Repairing) =>
                {
                    self.damaged.remove(switch);
                }
                Notice::FlipForced { flow, .. } => {
                    self.forced.insert(*flow);
                }
                _ => {}
            }
        }
        self.noticed = world.notices.len();
    }

    fn read(&mut self, servers: &[SharedServer], now: Time, switch: SwitchId) {
        self.tables.read(&servers[switch.index()], now, switch);
    }
}
