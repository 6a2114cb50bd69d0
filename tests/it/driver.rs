//! The controller in real time against embedded switches behind gRPC on loopback: what the simulation cannot show is that sockets,
//! clocks and files are wired to the same core.

use ringpath::controller::core::Core;
use ringpath::controller::driver::{Driver, DriverError, Handle, Parts, Peer};
use ringpath::controller::store::{MemoryStore, RedbStore, Store};
use ringpath::controller::{
    Artifacts, Config, Event, FeedbackConfig, Input, Limits, Planning, ProbeConfig,
    TelemetryConfig, TelemetryWay, policies, record,
};
use ringpath::id::{HostId, JobId, SwitchId};
use ringpath::p4runtime::p4info::Index;
use ringpath::p4runtime::server::listen::{Listening, listen};
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::pipeline::slots::Sizes;
use ringpath::pipeline::{Program, Settings};
use ringpath::solver::Objective;
use ringpath::switch::port::Ports;
use ringpath::switch::{Switch, real_time};
use ringpath::time::{Span, Time};
use ringpath::topology::Topology;
use ringpath::topology::generate::LeafSpine;
use ringpath::units::{BitRate, Bytes};
use ringpath::workload::{Flow, Job, flows};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

/// Far longer than anything here takes; only a hang reaches it.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(60);
const LEAF: SwitchId = SwitchId(0);
/// Longer than a busy machine keeps a switch from answering.
pub(crate) const PATIENT: Span = Span::from_millis(30_000);

/// Two leaves, two spines, two hosts a leaf.
pub(crate) fn topology() -> Topology {
    LeafSpine::new(2, 2, 2, BitRate(1_000_000_000)).build().unwrap()
}

/// Jobs over both leaves, each with its flows.
pub(crate) fn jobs(count: u32) -> Vec<(Job, Vec<Flow>)> {
    let job = |id| Job {
        id: JobId(id),
        name: format!("job{id}"),
        model: "custom".into(),
        ranks: vec![HostId(0), HostId(2)],
        gpus_per_rank: 1,
        gradient: Bytes(1_000_000),
        compute: Span::from_millis(10),
        overlap: 0.0,
        jitter: 0.0,
        iterations: 5,
        start: Span::ZERO,
        channels: 1,
    };
    let jobs: Vec<Job> = (0..count).map(job).collect();
    let all = flows(&topology(), &jobs).unwrap();
    let own = |job: &Job| all.iter().filter(|flow| flow.job == job.id).cloned().collect();
    jobs.iter().map(|job| (job.clone(), own(job))).collect()
}

/// `lost` is how long a switch may be out of reach before plans avoid it.
fn core(lost: Span) -> Core {
    core_with(lost, |_| {})
}

pub(crate) fn core_with(lost: Span, tune: impl Fn(&mut Config)) -> Core {
    let artifacts = Artifacts::built_in().unwrap();
    let program = Program::resolve(&Index::new(artifacts.p4info.clone()).unwrap()).unwrap();
    let topology = topology();
    let mut config = Config {
        device_ids: topology.switches().map(|switch| u64::from(switch.0) + 1).collect(),
        topology,
        artifacts,
        program,
        settings: Settings::new("test", Span::from_micros(12)),
        slots: Sizes::BUILT_IN,
        policies: policies(),
        policy: "least-loaded".into(),
        planning: Planning {
            levels: 6,
            max_paths: 16,
            max_evaluations: 10,
            objective: Objective::Both,
            phases: 1,
        },
        seed: 1,
        force_pipeline: false,
        takeover: false,
        limits: Limits { retry_max: Span::from_millis(200), lost, ..Limits::default() },
        telemetry: TelemetryConfig { way: TelemetryWay::Auto, ..TelemetryConfig::default() },
        feedback: FeedbackConfig::default(),
        probes: ProbeConfig::default(),
    };
    tune(&mut config);
    Core::new(config).unwrap()
}

/// A switch process, as far as a controller can tell.
struct Running {
    _driver: real_time::Driver,
    listening: Listening,
}

impl Running {
    async fn start(switch: SwitchId, addr: SocketAddr) -> Self {
        let config = ringpath::switch::Config {
            device_id: u64::from(switch.0) + 1,
            priority_queues: 8,
            ..ringpath::switch::Config::default()
        };
        let server = Arc::new(Mutex::new(Server::new(Switch::new(config), Profile::Spec)));
        let driver = real_time::Driver::start(server, Ports::default()).unwrap();
        // The port of a server that has just gone may take a moment to be free.
        let bound = async {
            loop {
                match listen(addr, driver.handle().clone()).await {
                    Ok(listening) => return listening,
                    Err(error) if addr.port() == 0 => panic!("{error}"),
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                }
            }
        };
        let listening = tokio::time::timeout(WATCHDOG, bound).await.expect("the port comes free");
        Self { _driver: driver, listening }
    }
}

async fn fabric() -> Vec<Running> {
    let mut switches = Vec::new();
    for switch in topology().switches() {
        switches.push(Running::start(switch, "127.0.0.1:0".parse().unwrap()).await);
    }
    switches
}

fn peers(switches: &[Running]) -> Vec<Peer> {
    let peer = |(at, switch): (usize, &Running)| Peer {
        name: format!("switch{at}"),
        address: format!("http://{}", switch.listening.addr()),
        credentials: None,
    };
    switches.iter().enumerate().map(peer).collect()
}

pub(crate) struct Controller {
    pub(crate) handle: Handle,
    events: Receiver<(Time, Event)>,
    task: JoinHandle<Result<(), DriverError>>,
}

impl Controller {
    fn start(
        store: impl Store + 'static,
        peers: Vec<Peer>,
        record: Option<Box<dyn Write + Send>>,
    ) -> Self {
        Self::over(core(PATIENT), store, peers, record)
    }

    pub(crate) fn over(
        core: Core,
        store: impl Store + 'static,
        peers: Vec<Peer>,
        record: Option<Box<dyn Write + Send>>,
    ) -> Self {
        let (driver, handle) = Driver::new(Parts { core, store, peers, record }).unwrap();
        let events = handle.events();
        Self { handle, events, task: tokio::spawn(driver.run()) }
    }

    /// Waits for an event, and gives all that came until then.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
        let mut seen = Vec::new();
        let wait = async {
            loop {
                let (_, event) = self.events.recv().await.unwrap();
                seen.push(event);
                if wanted(seen.last().unwrap()) {
                    break;
                }
            }
        };
        let done = tokio::time::timeout(WATCHDOG, wait).await;
        assert!(done.is_ok(), "it did not come; seen: {seen:#?}");
        seen
    }

    pub(crate) async fn converged(&self) {
        let wait = async {
            while !self.handle.look(Core::converged).await.unwrap() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(WATCHDOG, wait).await.expect("the controller does not converge");
    }

    pub(crate) async fn stop(self) {
        self.handle.stop().await;
        self.task.await.unwrap().unwrap();
    }
}

pub(crate) fn ready(job: u32) -> impl Fn(&Event) -> bool {
    move |event| *event == Event::JobReady { job: JobId(job) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fabric_is_programmed_and_a_switch_that_restarts_is_programmed_again() {
    let mut switches = fabric().await;
    let mut controller = Controller::start(MemoryStore::default(), peers(&switches), None);
    controller.handle.input(Input::SubmitJobs(jobs(2))).await.unwrap();
    controller.until(ready(1)).await;
    controller.converged().await;

    let addr = switches[LEAF.index()].listening.addr();
    drop(switches.remove(LEAF.index()));
    switches.insert(LEAF.index(), Running::start(LEAF, addr).await);
    // It came back empty.
    controller.until(|event| *event == Event::PipelineLoaded { switch: LEAF }).await;
    controller.until(|event| *event == Event::Synced { switch: LEAF }).await;
    controller.converged().await;
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_that_restarts_goes_on_from_its_store_and_writes_nothing_anew() {
    let switches = fabric().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.redb");
    let store = || RedbStore::open(&file).unwrap();
    let mut first = Controller::start(store(), peers(&switches), None);
    first.handle.input(Input::SubmitJobs(jobs(2))).await.unwrap();
    first.until(ready(1)).await;
    first.converged().await;
    let goals = first.handle.look(|core| core.goals().clone()).await.unwrap();
    first.stop().await;

    let mut second = Controller::start(store(), peers(&switches), None);
    let mut seen = Vec::new();
    let mut synced = std::collections::BTreeSet::new();
    while synced.len() < switches.len() {
        seen.extend(second.until(|event| matches!(event, Event::Synced { .. })).await);
        if let Some(Event::Synced { switch }) = seen.last() {
            synced.insert(*switch);
        }
    }
    second.converged().await;
    assert_eq!(second.handle.look(|core| core.goals().clone()).await.unwrap(), goals);
    let reads = seen.iter().filter(|event| matches!(event, Event::Read { changes: 0, .. })).count();
    assert_eq!(reads, switches.len(), "every switch was read and found right: {seen:?}");
    assert!(!seen.iter().any(|event| matches!(event, Event::PipelineLoaded { .. })));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_switch_that_nobody_reaches_holds_up_nobody_and_leaves_the_plan() {
    let mut switches = fabric().await;
    let reachable = peers(&switches);
    let dead = switches.len() - 1;
    drop(switches.remove(dead));
    let core = core(Span::from_millis(300));
    let mut controller = Controller::over(core, MemoryStore::default(), reachable, None);
    controller.handle.input(Input::SubmitJobs(jobs(1))).await.unwrap();
    // The job may be ready before the switch is given up, if its flows happen to take the other spine.
    let (mut lost, mut prepared) = (false, false);
    while !(lost && prepared) {
        let step =
            |event: &Event| matches!(event, Event::SwitchLost { .. } | Event::JobReady { .. });
        let seen = controller.until(step).await;
        lost |= seen.contains(&Event::SwitchLost { switch: SwitchId::from(dead) });
        prepared |= seen.contains(&Event::JobReady { job: JobId(0) });
    }
    let used = controller.handle.look(move |core| core.uses(SwitchId::from(dead))).await.unwrap();
    assert!(!used, "plans avoid it");
    controller.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_a_driver_that_has_ended_is_told() {
    let switches = fabric().await;
    let controller = Controller::start(MemoryStore::default(), peers(&switches), None);
    let (handle, mut events) = (controller.handle.clone(), controller.handle.events());
    controller.stop().await;
    let told = async {
        loop {
            if let Err(RecvError::Closed) = events.recv().await {
                return;
            }
        }
    };
    tokio::time::timeout(WATCHDOG, told).await.expect("the events end");
    assert!(matches!(handle.events().recv().await, Err(RecvError::Closed)));
    assert!(handle.look(Core::converged).await.is_err());
    assert!(handle.input(Input::Replan).await.is_err());
}

#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_replays_to_the_same_decisions() {
    let switches = fabric().await;
    let recording = Shared::default();
    let writer: Box<dyn Write + Send> = Box::new(recording.clone());
    let mut controller = Controller::start(MemoryStore::default(), peers(&switches), Some(writer));
    controller.handle.input(Input::SubmitJobs(jobs(2))).await.unwrap();
    controller.until(ready(1)).await;
    controller.handle.input(Input::JobFinished { job: JobId(0) }).await.unwrap();
    controller.until(|event| *event == Event::JobRemoved { job: JobId(0) }).await;
    let goals = controller.handle.look(|core| core.goals().clone()).await.unwrap();
    controller.stop().await;

    let bytes = recording.0.lock().unwrap().clone();
    let mut replayed = core(PATIENT);
    let mut removed = false;
    for line in String::from_utf8(bytes).unwrap().lines() {
        let (at, input) = record::from_line(line).unwrap();
        let outputs = replayed.step(at, input);
        let gone = Event::JobRemoved { job: JobId(0) };
        removed |= outputs.contains(&ringpath::controller::Output::Notify(gone));
    }
    assert!(removed);
    assert!(!goals.is_empty());
    assert_eq!(replayed.goals(), &goals);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_that_do_not_fit_the_fabric_are_refused_by_numbers() {
    let parts =
        Parts { core: core(PATIENT), store: MemoryStore::default(), peers: vec![], record: None };
    let error = Driver::new(parts).err().unwrap();
    assert!(error.to_string().starts_with("0 addresses for 4 switches"), "{error}");
}
