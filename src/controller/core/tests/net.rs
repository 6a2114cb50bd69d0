//! A core, its store and a server per switch, in virtual time with a fixed delay each way.

use super::device::FakeDevice;
use crate::controller::config::{
    Artifacts, Config, Limits, Planning, TelemetryConfig, TelemetryWay,
};
use crate::controller::core::Core;
use crate::controller::messages::{Event, Input, Output, RequestId, StreamNo};
use crate::controller::record;
use crate::controller::store::{MemoryStore, Store};
use crate::id::{LinkId, SwitchId};
use crate::p4runtime::proto::p4::v1 as proto;
use crate::p4runtime::proto::p4::v1::entity::Entity as Kind;
use crate::p4runtime::rpc::{Code, Failure, Rpc, StreamEnd};
use crate::p4runtime::server::{Profile, Server, StreamId};
use crate::pipeline::labels::Label;
use crate::pipeline::probe::{ProbeKey, received};
use crate::pipeline::slots::Sizes;
use crate::pipeline::{Program, Settings, path_forward};
use crate::plan::{Assignment, Plan};
use crate::solver::{Effort, Objective, Policy, Problem};
use crate::time::{Span, Time};
use crate::topology::Topology;
use crate::units::Bytes;
use crate::workload::{Flow, Job, flows};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// One way between controller and switch.
pub(super) const DELAY: Span = Span::from_micros(100);

/// A policy that takes one candidate path after the other, starting with the `shift`-th.
pub(super) struct Shifted(pub(super) usize);

impl Policy for Shifted {
    fn name(&self) -> &'static str {
        ["first", "second"][self.0]
    }

    fn plan(&self, problem: &Problem<'_>, _effort: &Effort<'_>) -> Plan {
        let place = |flow: &Flow| {
            let paths = &problem.paths[flow.id.index()];
            Assignment {
                flow: flow.id,
                path: paths[self.0 % paths.len()].clone(),
                queue: u8::try_from(self.0).unwrap_or(0),
                reason: "test".into(),
            }
        };
        let assignments = problem.flows.iter().map(place).collect();
        Plan { generation: 0, policy: self.name().into(), assignments }
    }
}

/// What happens to one Write.
#[derive(Clone, Debug)]
pub(super) enum WriteFault {
    /// It never arrives.
    LoseRequest,
    /// It is executed, the answer never arrives.
    LoseReply,
    /// It is not executed and fails as a whole.
    Fail(Code),
    /// It is executed and fails as a whole.
    FailAfter(Code),
}

enum Step {
    Input(Input),
    Arrive(SwitchId, RequestId, Rpc),
}

pub(super) struct Net {
    pub(super) core: Core,
    pub(super) store: Box<dyn Store>,
    /// Every input, as recorded, and every output, as text.
    pub(super) recording: Vec<(String, String)>,
    pub(super) now: Time,
    pub(super) wall_ms: u64,
    pub(super) servers: Vec<Server<FakeDevice>>,
    pub(super) events: Vec<Event>,
    pub(super) calls: BTreeMap<&'static str, usize>,
    pub(super) dead: BTreeSet<SwitchId>,
    pub(super) write_faults: VecDeque<(SwitchId, WriteFault)>,
    /// The controller dies after so many further outputs.
    pub(super) cut: Option<usize>,
    /// Largest number of updates in one Write.
    pub(super) largest: usize,
    /// Directions that carry no probe.
    pub(super) silent: BTreeSet<LinkId>,
    /// Directions that end where another should.
    pub(super) wired: BTreeMap<LinkId, LinkId>,
    /// What a switch stamps on probes instead of its incarnation.
    pub(super) stamps: BTreeMap<SwitchId, u32>,
    /// The last probe that came over each direction.
    pub(super) probes: BTreeMap<LinkId, (SwitchId, proto::PacketIn)>,
    /// Check `LabelsInstalled` after every step; off while a restarted switch is repaired.
    pub(super) check_labels: bool,
    program: Arc<Program>,
    topology: Topology,
    make: Arc<dyn Fn() -> Config>,
    streams: BTreeMap<SwitchId, (StreamNo, StreamId)>,
    queue: BTreeMap<(Time, u64), Step>,
    sequence: u64,
}

pub(super) fn config(topology: Topology, tune: impl Fn(&mut Config)) -> Config {
    let program = crate::pipeline::tests::program();
    let devices = topology.switch_count() as u64;
    let mut config = Config {
        topology,
        device_ids: (1..=devices).collect(),
        artifacts: Artifacts {
            p4info: crate::pipeline::tests::p4info(),
            device_config: bytes::Bytes::from_static(b"{}"),
        },
        program,
        settings: Settings::new("test", Span(480)),
        slots: Sizes::BUILT_IN,
        policies: vec![Arc::new(Shifted(0)), Arc::new(Shifted(1))],
        policy: "first".into(),
        planning: Planning {
            levels: 6,
            max_paths: 16,
            max_evaluations: 1,
            objective: Objective::Both,
            phases: 1,
        },
        seed: 1,
        force_pipeline: false,
        takeover: false,
        limits: Limits::default(),
        telemetry: TelemetryConfig { way: TelemetryWay::Off, ..TelemetryConfig::default() },
        feedback: crate::controller::FeedbackConfig::default(),
        probes: crate::controller::ProbeConfig::default(),
    };
    tune(&mut config);
    config
}

/// A job on the given hosts, and its flows.
pub(super) fn job(topology: &Topology, id: u32, hosts: &[u32]) -> (Job, Vec<Flow>) {
    // Earlier jobs take earlier ids and queue pairs, as `flows` numbers them.
    let jobs: Vec<Job> = (0..=id)
        .map(|id| Job {
            id: crate::id::JobId(id),
            name: format!("job{id}"),
            model: "custom".into(),
            ranks: hosts.iter().map(|host| crate::id::HostId(*host)).collect(),
            gpus_per_rank: 1,
            gradient: Bytes(1_000_000),
            compute: Span::from_millis(10),
            overlap: 0.0,
            jitter: 0.0,
            iterations: 1,
            start: Span::ZERO,
            channels: 1,
        })
        .collect();
    let mut all = flows(topology, &jobs).unwrap();
    all.retain(|flow| flow.job.0 == id);
    (jobs.into_iter().next_back().unwrap(), all)
}

impl Net {
    pub(super) fn new(topology: Topology) -> Self {
        Self::tuned(topology, |_| {})
    }

    pub(super) fn tuned(topology: Topology, tune: impl Fn(&mut Config) + 'static) -> Self {
        let program = Arc::new(crate::pipeline::tests::program());
        let fabric = topology.clone();
        let make: Arc<dyn Fn() -> Config> = Arc::new(move || config(fabric.clone(), &tune));
        let server = |id| Server::new(FakeDevice::new(id, program.clone()), Profile::Spec);
        let servers = (1..=topology.switch_count() as u64).map(server).collect();
        Self {
            core: Core::new(make()).unwrap(),
            store: Box::new(MemoryStore::new()),
            recording: Vec::new(),
            now: Time::ZERO,
            wall_ms: 1_700_000_000_000,
            servers,
            events: Vec::new(),
            calls: BTreeMap::new(),
            dead: BTreeSet::new(),
            write_faults: VecDeque::new(),
            cut: None,
            largest: 0,
            silent: BTreeSet::new(),
            wired: BTreeMap::new(),
            stamps: BTreeMap::new(),
            probes: BTreeMap::new(),
            check_labels: true,
            program: program.clone(),
            topology,
            make,
            streams: BTreeMap::new(),
            queue: BTreeMap::new(),
            sequence: 0,
        }
    }

    pub(super) fn boot(&mut self) {
        let stored = self.store.load().unwrap();
        self.input(Input::Boot { stored, wall_ms: self.wall_ms, probe_key: ProbeKey([9; 32]) });
    }

    /// The controller dies and another starts on its store; streams break.
    pub(super) fn crash(&mut self) {
        self.recording.clear();
        self.cut = None;
        for (_, (_, stream)) in std::mem::take(&mut self.streams) {
            for server in &mut self.servers {
                server.close_stream(self.now, stream);
            }
        }
        self.queue.clear();
        self.core = self.fresh_core();
        self.boot();
    }

    pub(super) fn input(&mut self, input: Input) {
        if self.cut == Some(0) {
            return;
        }
        let line = record::to_line(self.now, &input).unwrap();
        let outputs = self.core.step(self.now, input);
        self.recording.push((line, format!("{outputs:?}")));
        for output in outputs {
            match &mut self.cut {
                Some(0) => return,
                Some(left) => *left -= 1,
                None => {}
            }
            self.execute(output);
        }
    }

    fn later(&mut self, at: Time, step: Step) {
        self.queue.insert((at, self.sequence), step);
        self.sequence += 1;
    }

    fn execute(&mut self, output: Output) {
        let soon = self.now + DELAY;
        match output {
            Output::Persist(batch) => self.store.commit(&batch).unwrap(),
            Output::Timer { at, key } => self.later(at, Step::Input(Input::Timer(key))),
            Output::Notify(event) => self.events.push(event),
            Output::Call { switch, request, rpc, .. } => {
                *self.calls.entry(rpc.name()).or_default() += 1;
                self.later(soon, Step::Arrive(switch, request, rpc));
            }
            Output::OpenStream { switch, stream } if self.dead.contains(&switch) => {
                let end = StreamEnd { code: Code::Unavailable, message: "dead".into() };
                self.later(soon, Step::Input(Input::StreamEnded { switch, stream, end }));
            }
            Output::OpenStream { switch, stream } => {
                let id = self.servers[switch.index()].open_stream();
                self.streams.insert(switch, (stream, id));
            }
            Output::Send { switch, messages, .. } => {
                let Some((_, id)) = self.streams.get(&switch).copied() else { return };
                for message in messages {
                    let now = self.now;
                    self.carry_probe(switch, &message);
                    let out = self.servers[switch.index()].stream_message(now, id, message);
                    self.deliver(switch, out);
                }
            }
            Output::CloseStream { switch, .. } => {
                if let Some((_, id)) = self.streams.remove(&switch) {
                    self.servers[switch.index()].close_stream(self.now, id);
                }
            }
        }
    }

    /// A probe goes over its cable and comes back as the program of the switch there sends it.
    fn carry_probe(&mut self, from: SwitchId, message: &proto::StreamMessageRequest) {
        use proto::stream_message_request::Update;
        let Some(Update::Packet(out)) = &message.update else { return };
        if out.payload.get(17) != Some(&16) {
            return;
        }
        let port = u16::from_be_bytes([out.payload[22], out.payload[23]]);
        let links = self.topology.out_links(self.topology.switch_node(from)).iter();
        let mut links = links.filter(|link| self.topology.link(**link).from_port.0 == port);
        let link = *links.next().expect("a cable");
        if self.silent.contains(&link) {
            return;
        }
        let end = self.topology.link(*self.wired.get(&link).unwrap_or(&link));
        let to = self.topology.as_switch(end.to).expect("a switch");
        let stamp = |switch: SwitchId| {
            let own = self.core.switches[switch.index()].incarnation;
            self.stamps.get(&switch).copied().unwrap_or(own)
        };
        let probes = self.program.probes;
        let packet = received(&probes, out, (end.to_port, stamp(from), stamp(to)));
        self.probes.insert(link, (to, packet.clone()));
        self.packet_in(to, packet, Span(DELAY.0 * 2));
    }

    /// A switch sends a packet to the controller.
    pub(super) fn packet_in(&mut self, switch: SwitchId, packet: proto::PacketIn, after: Span) {
        let Some((stream, _)) = self.streams.get(&switch).copied() else { return };
        let update = Some(proto::stream_message_response::Update::Packet(packet));
        let message = proto::StreamMessageResponse { update };
        self.later(self.now + after, Step::Input(Input::Stream { switch, stream, message }));
    }

    fn deliver(
        &mut self,
        switch: SwitchId,
        out: Vec<(StreamId, Result<proto::StreamMessageResponse, StreamEnd>)>,
    ) {
        let at = self.now + DELAY;
        for (id, message) in out {
            let Some((stream, ours)) = self.streams.get(&switch).copied() else { continue };
            if ours != id {
                continue;
            }
            let input = match message {
                Ok(message) => Input::Stream { switch, stream, message },
                Err(end) => Input::StreamEnded { switch, stream, end },
            };
            self.later(at, Step::Input(input));
        }
    }

    fn arrive(&mut self, switch: SwitchId, request: RequestId, rpc: Rpc) {
        if self.dead.contains(&switch) {
            let failure = Failure::new(Code::Unavailable, "dead");
            let input = Input::Reply { switch, request, result: Err(failure) };
            return self.later(self.now + DELAY, Step::Input(input));
        }
        let mut fault = None;
        if let Rpc::Write(write) = &rpc {
            self.largest = self.largest.max(write.updates.len());
            if let Some(place) = self.write_faults.iter().position(|(at, _)| *at == switch) {
                fault = self.write_faults.remove(place).map(|(_, fault)| fault);
            }
        }
        let server = &mut self.servers[switch.index()];
        let result = match fault {
            None => server.call(self.now, rpc),
            Some(WriteFault::LoseRequest) => return,
            Some(WriteFault::LoseReply) => {
                let _executed = server.call(self.now, rpc);
                return;
            }
            Some(WriteFault::Fail(code)) => Err(Failure::new(code, "ordered by the test")),
            Some(WriteFault::FailAfter(code)) => {
                let _executed = server.call(self.now, rpc);
                Err(Failure::new(code, "ordered by the test"))
            }
        };
        let input = Input::Reply { switch, request, result };
        self.later(self.now + DELAY, Step::Input(input));
    }

    /// One step; `false` when nothing is queued before `until`.
    pub(super) fn step(&mut self, until: Time) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= until) else {
            self.now = until;
            return false;
        };
        let ((at, _), step) = entry.remove_entry();
        self.now = at;
        match step {
            Step::Input(input) => self.input(input),
            Step::Arrive(switch, request, rpc) => self.arrive(switch, request, rpc),
        }
        if self.check_labels {
            self.assert_labels_installed();
        }
        true
    }

    pub(super) fn run(&mut self, span: Span) {
        let until = self.now + span;
        while self.step(until) {}
    }

    /// A core as this net's controllers start with.
    pub(super) fn fresh_core(&self) -> Core {
        Core::new((self.make)()).unwrap()
    }

    /// Runs until the core says that everything is in place, at most `span`.
    pub(super) fn converge(&mut self, span: Span) {
        let until = self.now + span;
        while !self.core.converged() {
            assert!(
                self.step(until),
                "not converged after {span:?}: {} flows outside; {:#?}\n{}",
                self.core.outside(),
                self.tail(),
                self.core.describe_switches()
            );
        }
    }

    fn tail(&self) -> &[Event] {
        &self.events[self.events.len().saturating_sub(12)..]
    }

    pub(super) fn break_stream(&mut self, switch: SwitchId) {
        if let Some((stream, id)) = self.streams.remove(&switch) {
            self.servers[switch.index()].close_stream(self.now, id);
            let end = StreamEnd { code: Code::Unavailable, message: "broken".into() };
            self.input(Input::StreamEnded { switch, stream, end });
        }
    }

    /// Another controller becomes primary.
    pub(super) fn take_over(&mut self, switch: SwitchId, election: u128) -> StreamId {
        let stream = self.servers[switch.index()].open_stream();
        let id = proto::Uint128 { high: (election >> 64) as u64, low: election as u64 };
        let message = proto::StreamMessageRequest {
            update: Some(proto::stream_message_request::Update::Arbitration(
                proto::MasterArbitrationUpdate {
                    device_id: u64::from(switch.0) + 1,
                    election_id: Some(id),
                    ..Default::default()
                },
            )),
        };
        let out = self.servers[switch.index()].stream_message(self.now, stream, message);
        self.deliver(switch, out);
        stream
    }

    /// The switch comes up with another program.
    pub(super) fn load_other_program(&mut self, switch: SwitchId) {
        self.restart(switch);
        let stream = self.take_over(switch, 1);
        let config = Artifacts {
            p4info: crate::pipeline::tests::p4info(),
            device_config: bytes::Bytes::from_static(b"{\"other\":1}"),
        };
        let request = proto::SetForwardingPipelineConfigRequest {
            device_id: u64::from(switch.0) + 1,
            election_id: Some(proto::Uint128 { high: 0, low: 1 }),
            action: proto::set_forwarding_pipeline_config_request::Action::VerifyAndCommit.into(),
            config: Some(config.forwarding_config()),
            ..Default::default()
        };
        self.servers[switch.index()].call(self.now, Rpc::SetPipeline(request)).unwrap();
        self.servers[switch.index()].close_stream(self.now, stream);
    }

    /// The switch comes up anew: no program, no entries, no memory of election ids.
    pub(super) fn restart(&mut self, switch: SwitchId) {
        let id = u64::from(switch.0) + 1;
        let device = FakeDevice::new(id, self.program.clone());
        self.servers[switch.index()] = Server::new(device, Profile::Spec);
        self.break_stream(switch);
    }

    pub(super) fn link(&mut self, link: LinkId, up: bool) {
        self.input(Input::Link { link, up });
    }

    pub(super) fn device(&mut self, switch: SwitchId) -> &mut FakeDevice {
        self.servers[switch.index()].device_mut()
    }

    pub(super) fn updates(&self) -> usize {
        self.servers.iter().map(|server| server.device().updates).sum()
    }

    pub(super) fn seen(&self, what: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| what(event)).count()
    }

    /// The invariant: every label that a `classify` entry can give leads to its sink on the devices as they are.
    pub(super) fn assert_labels_installed(&self) {
        for leaf in self.topology.switches() {
            let device = self.servers[leaf.index()].device();
            for tag in device.entities.values().filter_map(|entity| self.program.tag_of(entity)) {
                for label in [tag.label, tag.old_label] {
                    assert!(
                        self.walk(leaf, label).is_some(),
                        "label {label} is cut, from leaf {leaf} at {:?}",
                        self.now
                    );
                }
            }
        }
    }

    /// Follows the devices' own entries.
    pub(super) fn walk(&self, leaf: SwitchId, label: Label) -> Option<SwitchId> {
        let mut at = leaf;
        for _ in 0..8 {
            let key = crate::pipeline::entry_set::label_key(&self.program, label)?;
            let entity = self.servers[at.index()].device().entities.get(&key)?;
            let Some(Kind::TableEntry(entry)) = &entity.entity else { return None };
            match self.program.path_forward.from_entry(entry).ok()?.1 {
                path_forward::Action::Sink => return Some(at),
                path_forward::Action::Forward { port } => {
                    let links = self.topology.out_links(self.topology.switch_node(at)).iter();
                    let mut links = links.map(|link| self.topology.link(*link));
                    at = self.topology.as_switch(links.find(|l| l.from_port == port)?.to)?;
                }
            }
        }
        None
    }

    /// Every device holds exactly what the core wants there.
    pub(super) fn assert_as_wanted(&self) {
        for switch in self.topology.switches().filter(|switch| !self.dead.contains(switch)) {
            let wanted = self.core.wanted(switch).unwrap();
            let held = &self.servers[switch.index()].device().entities;
            for (key, wish) in wanted.iter() {
                assert_eq!(held.get(key), Some(&wish.entity), "switch {switch}: {key}");
            }
            assert_eq!(held.len(), wanted.len(), "switch {switch} holds more than is wanted");
        }
    }
}
