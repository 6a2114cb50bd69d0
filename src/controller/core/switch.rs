//! What the core knows of one switch. In: nothing. Out: plain state and its small questions. Must not decide.

use crate::controller::messages::{RequestId, StreamNo};
use crate::id::SwitchId;
use crate::p4runtime::proto::p4::v1::Entity;
use crate::p4runtime::session::Session;
use crate::pipeline::labels::Label;
use crate::pipeline::{Change, EntityKey, EntrySet, Present};
use crate::time::Span;
use std::collections::{BTreeMap, BTreeSet};

/// How far a switch has come.
///
/// ```text
///  Down ──primary──► Checking ──other program──► Draining ──nothing leans on it──► Loading
///   ▲                   │ same cookie                                               │
///   │                   ▼                                                           │
///   │                Reading ◄──────────────────────────────────────────────────────┘
///   │                   │ ▲ resync
///   │                   ▼ │
///   └──stream ended── Active            Foreign: another controller is primary
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No stream, or not primary yet.
    Down,
    /// Another controller is primary.
    Foreign,
    /// Asking which program runs.
    Checking,
    /// It runs another program, and flows lean on the switch.
    Draining,
    /// Loading our program.
    Loading,
    /// Reading everything.
    Reading,
    /// Reconciling.
    Active,
}

/// A call in flight.
#[derive(Clone, Debug)]
pub(super) enum Call {
    /// GetForwardingPipelineConfig, cookie only.
    Check,
    /// SetForwardingPipelineConfig.
    Load,
    /// Everything that reconciling looks at.
    ReadAll,
    /// Single keys whose state is unknown.
    ReadKeys(BTreeSet<EntityKey>),
    /// Updates of one level.
    Write(Vec<Change>),
    /// Flips in force.
    ReadFlips,
    /// Counters of a retired label.
    ReadCounter(Label),
    /// Telemetry; what was asked is kept there.
    Telemetry,
}

/// One switch.
pub(super) struct Switch {
    pub(super) id: SwitchId,
    pub(super) device_id: u64,
    pub(super) session: Session,
    pub(super) stream: StreamNo,
    pub(super) phase: Phase,
    pub(super) wanted: EntrySet,
    pub(super) present: Present,
    /// The value last written; 0 before the first programming.
    pub(super) incarnation: u32,
    pub(super) calls: BTreeMap<RequestId, Call>,
    /// Keys in flight.
    pub(super) busy: BTreeSet<EntityKey>,
    /// Keys whose state on the switch is unknown.
    pub(super) tainted: BTreeSet<EntityKey>,
    /// Unclear answers per key since its last clear one.
    pub(super) tries: BTreeMap<EntityKey, u8>,
    /// What was refused for good: not tried again while the same is wanted.
    pub(super) refused: BTreeMap<EntityKey, Entity>,
    /// Conflicts already reported.
    pub(super) conflicts: BTreeSet<EntityKey>,
    /// Updates per Write.
    pub(super) batch: usize,
    /// Next pause after a failure.
    pub(super) pause: Span,
    /// Waiting for a `Retry` timer.
    pub(super) paused: bool,
    /// Read in full as soon as nothing is in flight.
    pub(super) resync: bool,
    /// Plans avoid it: out of reach for long, foreign, or draining.
    pub(super) excluded: bool,
    /// Not `Active` since the last outage began; attempts to come back do not restart its clock.
    pub(super) out: bool,
    /// Counts outages, so that an old `Lost` timer is known.
    pub(super) outage: u64,
    /// Holds what is wanted, refusals and conflicts excepted.
    pub(super) synced: bool,
    /// Look at it again before this step ends.
    pub(super) pump: bool,
    /// It does not offer RegisterEntry reads.
    pub(super) no_registers: bool,
}

impl Switch {
    pub(super) fn new(
        id: SwitchId,
        device_id: u64,
        session: Session,
        batch: usize,
        pause: Span,
    ) -> Self {
        Self {
            id,
            device_id,
            session,
            stream: StreamNo(0),
            phase: Phase::Down,
            wanted: EntrySet::default(),
            present: Present::default(),
            incarnation: 0,
            calls: BTreeMap::new(),
            busy: BTreeSet::new(),
            tainted: BTreeSet::new(),
            tries: BTreeMap::new(),
            refused: BTreeMap::new(),
            conflicts: BTreeSet::new(),
            batch,
            pause,
            paused: false,
            resync: false,
            excluded: false,
            out: false,
            outage: 0,
            synced: false,
            pump: false,
            no_registers: false,
        }
    }

    /// Rank of the writes in flight, if any.
    pub(super) fn rank_in_flight(&self) -> Option<(bool, u16)> {
        self.calls.values().find_map(|call| match call {
            Call::Write(changes) => changes.first().map(Change::rank),
            _ => None,
        })
    }

    pub(super) fn writes_in_flight(&self) -> usize {
        self.calls.values().filter(|call| matches!(call, Call::Write(_))).count()
    }

    pub(super) fn has_call(&self, which: fn(&Call) -> bool) -> bool {
        self.calls.values().any(which)
    }

    /// Whether an entity is known to be there: read or confirmed, and not in doubt since.
    pub(super) fn holds(&self, key: &EntityKey) -> bool {
        self.phase == Phase::Active
            && self.present.get(key).is_some()
            && !self.tainted.contains(key)
    }

    /// Whether an entity will not come for now: the switch refused it, or the key is somebody else's.
    pub(super) fn denied(&self, key: &EntityKey) -> bool {
        let refused = self.refused.get(key);
        refused.is_some_and(|refused| self.wanted.get(key).is_some_and(|w| w.entity == *refused))
            || self.conflicts.contains(key)
    }

    /// Forgets everything in flight; what it came to is found by the full read after the next stream.
    pub(super) fn forget_calls(&mut self) {
        self.calls.clear();
        self.busy.clear();
        self.tainted.clear();
        self.paused = false;
        self.synced = false;
    }
}
