//! The service `ringpath.v1.Switch`: what the switch counted, how its ports are and how fast. In: the shared switch and its ports. Out:
//! messages; a stream of events. Must not change anything but rates.

use crate::id::PortNo;
use crate::p4runtime::proto::ringpath::v1::switch_server::{Switch as Service, SwitchServer};
use crate::p4runtime::proto::ringpath::v1::{
    self as proto, GetStatisticsRequest, GetStatisticsResponse, Loss, NamedCount, PortEvent,
    PortStatistics, QueueStatistics, SetPortRateRequest, SetPortRateResponse, WatchPortsRequest,
};
use crate::p4runtime::server::service::Handle;
use crate::switch::port::{Board, COUNTERS, Event, Face};
use crate::switch::real_time::Driver;
use crate::switch::stats::{Count, PortStats};
use crate::switch::{Drop, Switch};
use crate::time::Time;
use crate::units::BitRate;
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use tokio::sync::broadcast;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{Request, Response, Status};

/// Events that wait for one reader: all ports may change once. A slower reader gets the present state instead.
const EVENTS_MAX: usize = 512;

/// The service of one switch.
pub struct Statistics {
    handle: Handle<Switch>,
    board: Arc<Board>,
    device_id: u64,
    events: broadcast::Sender<PortEvent>,
}

impl Statistics {
    /// Listens to the driver's ports from now on.
    #[must_use]
    pub fn of(driver: &Driver, device_id: u64) -> SwitchServer<Self> {
        SwitchServer::new(Self::new(driver, device_id))
    }

    fn new(driver: &Driver, device_id: u64) -> Self {
        let (events, _) = broadcast::channel(EVENTS_MAX);
        let sender = events.clone();
        // An error only says that nobody listens.
        driver.board().listen(Box::new(move |event| drop(sender.send(told(event)))));
        let (handle, board) = (driver.handle().clone(), Arc::clone(driver.board()));
        Self { handle, board, device_id, events }
    }

    fn known(&self, device_id: u64) -> Result<(), Status> {
        if device_id == self.device_id {
            return Ok(());
        }
        Err(Status::not_found(format!("this is device {}, not {device_id}", self.device_id)))
    }
}

fn told(event: &Event) -> PortEvent {
    let Event { port, name, up, reason } = event.clone();
    PortEvent { port: port.0.into(), interface: name, up, reason }
}

/// One event per port, with its present state.
fn present(board: &Board) -> Vec<PortEvent> {
    let event = |face: &Arc<Face>| PortEvent {
        port: face.port.0.into(),
        interface: face.name.clone(),
        up: face.up(),
        reason: "present state".to_owned(),
    };
    board.faces.iter().map(event).collect()
}

const fn count(count: Count) -> proto::Count {
    proto::Count { packets: count.packets, bytes: count.bytes }
}

fn port(switch: &Switch, number: PortNo, stats: &PortStats, face: Option<&Face>) -> PortStatistics {
    let traffic = switch.traffic();
    let queue = |(queue, stats): (u8, &crate::switch::stats::QueueStats)| QueueStatistics {
        queue: queue.into(),
        sent: Some(count(stats.sent)),
        full: Some(count(stats.full)),
        packets: traffic.depth(number, queue),
        bytes: traffic.depth_bytes(number, queue),
        max_packets: stats.max_depth,
    };
    let named = |(name, counter): &crate::switch::port::Counter, face: &Face| NamedCount {
        name: (*name).to_owned(),
        value: counter(&face.counters).load(Ordering::Relaxed),
    };
    PortStatistics {
        port: number.0.into(),
        interface: face.map(|face| face.name.clone()).unwrap_or_default(),
        up: face.map_or_else(|| switch.is_up(number), Face::up),
        received: Some(count(stats.received)),
        sent: Some(count(stats.sent)),
        queues: (0..).zip(&stats.queues).map(queue).collect(),
        interface_counters: face
            .map(|face| COUNTERS.iter().map(|counter| named(counter, face)).collect())
            .unwrap_or_default(),
    }
}

/// Everything at this moment.
fn snapshot(switch: &Switch, board: &Board, now: Time) -> GetStatisticsResponse {
    let stats = switch.stats();
    let numbers: BTreeSet<PortNo> = stats
        .ports()
        .map(|(port, _)| port)
        .chain(board.faces.iter().map(|face| face.port))
        .collect();
    let face = |number| board.faces.iter().find(|face| face.port == number).map(|face| &**face);
    let ports = numbers.into_iter();
    let loss = |reason: Drop| Loss {
        reason: reason.name().to_owned(),
        meaning: reason.words().to_owned(),
        packets: stats.drops(reason),
    };
    GetStatisticsResponse {
        device_id: switch.config().device_id,
        time_ns: now.0,
        ports: ports
            .map(|number| port(switch, number, &stats.port(number), face(number)))
            .collect(),
        losses: Drop::ALL.into_iter().map(loss).collect(),
        parser_errors: stats.parser_errors,
        index_faults: stats.faults.index,
        budget_faults: stats.faults.budget,
        assertion_faults: stats.faults.assertion,
        packet_ins: stats.packet_ins,
        digests_lost: stats.digests_lost,
        packets_held: switch.packets_held(),
        queues_per_port: switch.config().priority_queues.into(),
    }
}

/// Lists of events one after the other, event by event.
struct Events {
    parts: Pin<Box<dyn Stream<Item = Vec<PortEvent>> + Send>>,
    ready: VecDeque<PortEvent>,
}

impl Stream for Events {
    type Item = Result<PortEvent, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.ready.is_empty() {
            match self.parts.as_mut().poll_next(cx) {
                Poll::Ready(Some(part)) => self.ready.extend(part),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(self.ready.pop_front().map(Ok))
    }
}

#[tonic::async_trait]
impl Service for Statistics {
    async fn get_statistics(
        &self,
        request: Request<GetStatisticsRequest>,
    ) -> Result<Response<GetStatisticsResponse>, Status> {
        self.known(request.into_inner().device_id)?;
        let board = &self.board;
        Ok(Response::new(self.handle.drive(|switch, now| snapshot(switch, board, now))))
    }

    type WatchPortsStream = Pin<Box<dyn Stream<Item = Result<PortEvent, Status>> + Send>>;

    async fn watch_ports(
        &self,
        request: Request<WatchPortsRequest>,
    ) -> Result<Response<Self::WatchPortsStream>, Status> {
        self.known(request.into_inner().device_id)?;
        // Listens before it looks, so that nothing falls between.
        let news = BroadcastStream::new(self.events.subscribe());
        let board = Arc::clone(&self.board);
        let first = present(&board);
        let later =
            news.map(move |event| event.map_or_else(|_| present(&board), |event| vec![event]));
        let parts = tokio_stream::once(first).chain(later);
        Ok(Response::new(Box::pin(Events { parts: Box::pin(parts), ready: VecDeque::new() })))
    }

    async fn set_port_rate(
        &self,
        request: Request<SetPortRateRequest>,
    ) -> Result<Response<SetPortRateResponse>, Status> {
        let SetPortRateRequest { device_id, port, bits_per_second } = request.into_inner();
        self.known(device_id)?;
        let face = self.board.faces.iter().find(|face| u32::from(face.port.0) == port);
        let face = face.ok_or_else(|| {
            Status::not_found(format!(
                "port {port} has no interface; `ringpath switch --stats` lists those that have"
            ))
        })?;
        let rate = bits_per_second.map(BitRate);
        // Noted first: a port that goes up or down meanwhile then does so with the new rate.
        face.set_rate(rate);
        self.handle.drive(|switch, _| switch.set_port(face.port, face.up(), rate));
        self.handle.wake();
        Ok(Response::new(SetPortRateResponse {}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p4runtime::server::{Profile, Server};
    use crate::switch::Config;
    use crate::switch::port::Ports;
    use crate::time::Span;
    use std::sync::Mutex;

    fn driver(folder: &std::path::Path) -> Driver {
        let wanted = ["1@a", "2@b"].map(|spec| (spec.parse().unwrap(), None));
        let ports = Ports::files(&wanted, folder, Span::ZERO).unwrap();
        let server = Server::new(Switch::new(Config::default()), Profile::Spec);
        Driver::start(Arc::new(Mutex::new(server)), ports).unwrap()
    }

    #[tokio::test]
    async fn a_rate_is_set_at_a_port_that_has_an_interface_and_at_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let driver = driver(folder.path());
        let service = Statistics::new(&driver, 3);
        let set = |device_id, port, bits_per_second| {
            let request = SetPortRateRequest { device_id, port, bits_per_second };
            service.set_port_rate(Request::new(request))
        };
        let rate = |port| {
            let rate = driver.handle().drive(|switch, _| switch.traffic().rate(PortNo(port)));
            (rate, driver.board().faces[usize::from(port) - 1].rate())
        };
        set(3, 2, Some(5000)).await.unwrap();
        assert_eq!(rate(1), (None, None));
        assert_eq!(rate(2), (Some(BitRate(5000)), Some(BitRate(5000))));
        set(3, 2, None).await.unwrap();
        assert_eq!(rate(2), (None, None));
        for (device, port) in [(0, 2), (3, 7)] {
            let refused = set(device, port, None).await.err().unwrap();
            assert_eq!(refused.code(), tonic::Code::NotFound);
        }
    }

    fn event(number: usize) -> Event {
        let up = number.is_multiple_of(2);
        Event { port: PortNo(1), name: "a".to_owned(), up, reason: format!("number {number}") }
    }

    async fn next(stream: &mut <Statistics as Service>::WatchPortsStream) -> String {
        stream.next().await.unwrap().unwrap().reason
    }

    #[tokio::test]
    async fn a_watcher_gets_each_event_and_the_present_state_when_it_was_too_slow() {
        let folder = tempfile::tempdir().unwrap();
        let driver = driver(folder.path());
        let service = Statistics::new(&driver, 3);
        let tell = |number| driver.board().tell(&event(number));
        let watch = |device_id| service.watch_ports(Request::new(WatchPortsRequest { device_id }));
        assert_eq!(watch(0).await.err().unwrap().code(), tonic::Code::NotFound);
        let mut stream = watch(3).await.unwrap().into_inner();
        for number in 0..3 {
            tell(number);
        }
        for reason in ["present state", "present state", "number 0", "number 1", "number 2"] {
            assert_eq!(next(&mut stream).await, reason);
        }
        for number in 3..4 + EVENTS_MAX {
            tell(number);
        }
        for reason in ["present state", "present state", "number 4", "number 5"] {
            assert_eq!(next(&mut stream).await, reason);
        }
    }
}
