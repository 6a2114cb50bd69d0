//! The switches of a run: one P4Runtime server each, around the embedded switch, shared with the wire.
//!
//! In: a topology and sizes. Out: servers, and switches as the packet network sees them. Must not know the controller.
//!
//! Every switch gets a clock of its own: a random offset, some near the point where 32 bits of microseconds wrap, and up
//! to ±100 ppm of skew. Nothing may depend on two switches agreeing about the time.

use crate::id::{PortNo, SwitchId};
use crate::p4runtime::server::{Profile, Server};
use crate::sim::packet::{Departure, Forwarder};
use crate::switch::stats::Drop;
use crate::switch::{Clock, Config, Switch};
use crate::time::{Time, stream};
use crate::topology::Topology;
use crate::units::BitRate;
use rand::RngExt as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A server that the wire and the packet network share.
pub type SharedServer = Arc<Mutex<Server<Switch>>>;

/// CPU port of every switch (docs/dataplane).
pub const CPU_PORT: PortNo = PortNo(510);
/// Port that drops.
pub const DROP_PORT: PortNo = PortNo(511);
/// Nanoseconds at which 32 bits of microseconds wrap.
const WRAP_NS: u64 = (1 << 32) * 1000;
/// Largest clock error drawn, parts per million.
const MAX_SKEW_PPM: i32 = 100;

/// Locks a server. A panic elsewhere has ended that thread's run already; the state is still the server's.
pub fn lock(server: &SharedServer) -> MutexGuard<'_, Server<Switch>> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the switches of a run have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FabricSpec {
    /// Strict-priority queues per port.
    pub queues: u8,
    /// Packets that each queue holds.
    pub queue_packets: u32,
    /// Draws the clocks.
    pub seed: u64,
    /// Answer where PI and BMv2 differ from the specification as they do.
    pub mimic_bmv2: bool,
}

/// P4Runtime device id of a switch: small, not 0, and unlike its index, so that mixing them up fails.
#[must_use]
pub fn device_id(switch: SwitchId) -> u64 {
    u64::from(switch.0) + 101
}

/// The configuration of one switch.
#[must_use]
pub fn switch_config(spec: &FabricSpec, switch: SwitchId) -> Config {
    let mut random = stream(spec.seed, "switch clock", u64::from(switch.0));
    // Every third switch starts within a second of the wrap.
    let offset_ns = if switch.0 % 3 == 2 {
        WRAP_NS - random.random_range(0..1_000_000_000)
    } else {
        random.random_range(0..WRAP_NS)
    };
    let skew_ppm = random.random_range(-MAX_SKEW_PPM..=MAX_SKEW_PPM);
    Config {
        device_id: device_id(switch),
        cpu_port: CPU_PORT,
        drop_port: DROP_PORT,
        priority_queues: spec.queues,
        queue_packets: spec.queue_packets,
        mimic_bmv2: spec.mimic_bmv2,
        clock: Clock { offset_ns, skew_ppm },
        ..Config::default()
    }
}

/// All servers of a fabric, by switch id.
#[must_use]
pub fn servers(spec: &FabricSpec, topology: &Topology) -> Vec<SharedServer> {
    let server = |switch| {
        let device = Switch::new(switch_config(spec, switch));
        Arc::new(Mutex::new(Server::new(device, Profile::Spec)))
    };
    topology.switches().map(server).collect()
}

/// Packets that a switch lost, by what a report tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// A queue was full.
    pub queue_full: u64,
    /// The port was down.
    pub port_down: u64,
    /// The program or the switch dropped it for another reason, or it was lost in a restart.
    pub other: u64,
}

impl Losses {
    /// Adds another switch's.
    pub fn add(&mut self, other: Self) {
        self.queue_full += other.queue_full;
        self.port_down += other.port_down;
        self.other += other.other;
    }
}

/// What a switch has lost so far.
#[must_use]
pub fn switch_losses(switch: &Switch) -> Losses {
    let stats = switch.stats();
    let (queue_full, port_down) = (stats.drops(Drop::QueueFull), stats.drops(Drop::PortDown));
    Losses { queue_full, port_down, other: stats.all_drops() - queue_full - port_down }
}

/// A switch as the packet network uses it.
pub struct FabricSwitch {
    server: SharedServer,
    speaks: bool,
}

impl FabricSwitch {
    /// The data path of a server's switch.
    #[must_use]
    pub fn new(server: SharedServer) -> Self {
        Self { server, speaks: false }
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &SharedServer {
        &self.server
    }
}

impl Forwarder for FabricSwitch {
    fn receive(&mut self, now: Time, port: PortNo, bytes: &[u8]) -> Option<Time> {
        let mut server = lock(&self.server);
        let switch = server.device_mut();
        switch.receive(now, port, bytes);
        self.speaks = switch.has_messages();
        switch.poll_at()
    }

    fn advance(&mut self, now: Time, out: &mut dyn FnMut(Departure<'_>)) -> Option<Time> {
        let mut server = lock(&self.server);
        let switch = server.device_mut();
        switch.advance(now, &mut |sent| {
            let crate::switch::Sent { port, queue, bytes, enqueued, start, end } = sent;
            out(Departure { port, queue, bytes, enqueued, start, end });
        });
        self.speaks = switch.has_messages();
        switch.poll_at()
    }

    fn poll_at(&self) -> Option<Time> {
        lock(&self.server).device().poll_at()
    }

    fn set_port(
        &mut self,
        _now: Time,
        port: PortNo,
        up: bool,
        rate: Option<BitRate>,
    ) -> Option<Time> {
        let mut server = lock(&self.server);
        server.device_mut().set_port(port, up, rate);
        server.device().poll_at()
    }

    fn speaks(&mut self) -> bool {
        std::mem::take(&mut self.speaks)
    }
}
