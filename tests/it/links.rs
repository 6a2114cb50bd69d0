//! The controller in real time over switches that do not tell of their ports: probes through the compiled program, frame by frame over
//! cables that a test can cut and meddle with.

use crate::driver::{Controller, PATIENT, Shared, core_with, jobs, ready, topology};
use ringpath::controller::core::Core;
use ringpath::controller::driver::Peer;
use ringpath::controller::store::MemoryStore;
use ringpath::controller::{Event, Input, Output, record};
use ringpath::id::{LinkId, PortNo, SwitchId};
use ringpath::p4runtime::server::listen::{Listening, listen};
use ringpath::p4runtime::server::service::Handle;
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::switch::Switch;
use ringpath::time::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The EtherType of controller messages, which probes are between switches.
const PROBE: [u8; 2] = [0x88, 0xb6];

/// What a test does to the cables.
#[derive(Default)]
struct Cables {
    cut: Mutex<BTreeSet<LinkId>>,
    /// Every probe is followed by a copy and by one with a changed number.
    meddle: AtomicBool,
    stop: AtomicBool,
}

/// Embedded switches behind gRPC without `ringpath.v1.Switch`, joined by a thread that carries frames.
struct Fabric {
    cables: Arc<Cables>,
    listening: Vec<Listening>,
    thread: Option<JoinHandle<()>>,
}

impl Fabric {
    #[allow(clippy::disallowed_methods, reason = "these switches live in real time")]
    async fn start() -> Self {
        let begin = Instant::now();
        let clock = Arc::new(move || Time(u64::try_from(begin.elapsed().as_nanos()).unwrap()));
        let (mut handles, mut listening) = (Vec::new(), Vec::new());
        for switch in topology().switches() {
            let config = ringpath::switch::Config {
                device_id: u64::from(switch.0) + 1,
                priority_queues: 8,
                ..ringpath::switch::Config::default()
            };
            let server = Arc::new(Mutex::new(Server::new(Switch::new(config), Profile::Spec)));
            let handle = Handle::new(server, clock.clone());
            listening.push(listen("127.0.0.1:0".parse().unwrap(), handle.clone()).await.unwrap());
            handles.push(handle);
        }
        let cables = Arc::new(Cables::default());
        let own = Arc::clone(&cables);
        let thread = std::thread::spawn(move || carry(&handles, &own));
        Self { cables, listening, thread: Some(thread) }
    }

    fn peers(&self) -> Vec<Peer> {
        let peer = |(at, listening): (usize, &Listening)| Peer {
            name: format!("switch{at}"),
            address: format!("http://{}", listening.addr()),
            credentials: None,
        };
        self.listening.iter().enumerate().map(peer).collect()
    }

    fn cut(&self, link: LinkId) {
        self.cables.cut.lock().unwrap().insert(link);
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.cables.stop.store(true, Ordering::Release);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn carry(switches: &[Handle<Switch>], cables: &Cables) {
    let topology = topology();
    let out: BTreeMap<(SwitchId, PortNo), LinkId> = (0..topology.links().len())
        .map(LinkId::from)
        .filter(|link| topology.is_inner(*link))
        .map(|link| {
            let from = topology.link(link);
            ((topology.as_switch(from.from).unwrap(), from.from_port), link)
        })
        .collect();
    while !cables.stop.load(Ordering::Acquire) {
        for (at, handle) in switches.iter().enumerate() {
            let mut sent = Vec::new();
            handle.drive(|switch, now| {
                switch.advance(now, &mut |frame| sent.push((frame.port, frame.bytes.to_vec())));
            });
            for (port, bytes) in sent {
                let Some(link) = out.get(&(SwitchId::from(at), port)) else { continue };
                if cables.cut.lock().unwrap().contains(link) {
                    continue;
                }
                let end = topology.link(*link);
                let to = &switches[topology.as_switch(end.to).unwrap().index()];
                let arrive = |bytes: &[u8]| {
                    to.drive(|switch, now| switch.receive(now, end.to_port, bytes));
                };
                arrive(&bytes);
                if cables.meddle.load(Ordering::Acquire) && bytes[12..14] == PROBE {
                    arrive(&bytes);
                    let mut forged = bytes;
                    forged[37] = forged[37].wrapping_add(1);
                    arrive(&forged);
                }
            }
        }
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

fn probing() -> Core {
    core_with(PATIENT, |config| config.probes.interval = Some(Span::from_millis(100)))
}

/// Asks until something is so.
async fn until<T>(
    controller: &Controller,
    look: impl Fn(&Core) -> Option<T> + Clone + Send + 'static,
) -> T
where
    T: Send + 'static,
{
    let wait = async {
        loop {
            if let Some(found) = controller.handle.look(look.clone()).await.unwrap() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::driver::WATCHDOG, wait).await.expect("it never was so")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cable_that_fails_where_no_switch_tells_is_found_avoided_and_used_again() {
    let fabric = Fabric::start().await;
    let recording = Shared::default();
    let writer: Box<dyn Write + Send> = Box::new(recording.clone());
    let mut controller =
        Controller::over(probing(), MemoryStore::default(), fabric.peers(), Some(writer));
    controller.handle.input(Input::SubmitJobs(jobs(1))).await.unwrap();
    controller.until(ready(0)).await;
    until(&controller, |core| (core.probe_counts().heard > 20).then_some(())).await;
    let crossed = |core: &Core| core.goals().values().next().map(|goal| goal.path.links[1]);
    let link = until(&controller, crossed).await;
    fabric.cut(link);
    controller
        .until(|event| matches!(event, Event::LinkDead { link: dead, .. } if *dead == link))
        .await;
    // The other direction of the cable is avoided with it.
    let reverse = topology().reverse(link);
    until(&controller, move |core| {
        let mut links = core.goals().values().flat_map(|goal| &goal.path.links);
        (!links.any(|used| *used == link || *used == reverse)).then_some(())
    })
    .await;
    fabric.cables.cut.lock().unwrap().clear();
    controller.until(|event| *event == Event::LinkBack { link }).await;
    controller.converged().await;
    controller.stop().await;
    // The recording has the key, so what was genuine is so again.
    let bytes = recording.0.lock().unwrap().clone();
    let mut replayed = probing();
    let mut told = Vec::new();
    for line in String::from_utf8(bytes).unwrap().lines() {
        let (at, input) = record::from_line(line).unwrap();
        told.extend(replayed.step(at, input));
    }
    let dead = |output: &Output| matches!(output, Output::Notify(Event::LinkDead { link: dead, .. }) if *dead == link);
    let died = told.iter().position(dead).expect("it dies again");
    let back = Output::Notify(Event::LinkBack { link });
    assert!(told[died..].contains(&back), "and comes back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_that_somebody_copies_or_makes_up_are_dropped_and_counted() {
    let fabric = Fabric::start().await;
    let controller = Controller::over(probing(), MemoryStore::default(), fabric.peers(), None);
    fabric.cables.meddle.store(true, Ordering::Release);
    let counts = until(&controller, |core| {
        let counts = core.probe_counts();
        (counts.heard > 20 && counts.forged > 20 && counts.stale > 20).then_some(counts)
    })
    .await;
    // Each genuine one counts once, whatever else there is.
    assert!(counts.heard <= counts.sent, "{counts:?}");
    assert_eq!(counts.astray, 0);
    controller.stop().await;
}
