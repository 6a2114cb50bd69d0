//! The connection to one switch. In: streams to open, messages, calls. Out: answers, messages and ends as inputs of the core. Must not
//! know what they mean, or try anything again: the core does.
//!
//! A switch that tells when its ports go up and down (`ringpath.v1.Switch`) is listened to; others answer `UNIMPLEMENTED` and are not asked
//! again on this connection.
//!
//! Every stream comes with a connection of its own, so a switch that went away and came back is never spoken to over the remains of
//! the old one. Calls use the newest connection.

use super::Peer;
use super::metrics::CallTimes;
use crate::controller::messages::{Input, RequestId, StreamNo};
use crate::id::{LinkId, PortNo, SwitchId};
use crate::p4runtime::client::{Client, Limits, StreamReceiver};
use crate::p4runtime::proto::p4::v1::StreamMessageRequest;
use crate::p4runtime::proto::ringpath::v1::switch_client::SwitchClient;
use crate::p4runtime::proto::ringpath::v1::{GetStatisticsRequest, PortEvent, WatchPortsRequest};
use crate::p4runtime::rpc::{Code, Failure, Rpc, StreamEnd};
use crate::plan::CONTROL_QUEUE;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Streaming;
use tonic::transport::Channel;

/// Messages that wait for a stream: two seconds of readouts at the highest rate. A switch that lags farther behind is cut off.
const MESSAGES_MAX: usize = 4_096;

/// Pause before a switch is asked for its ports' events again.
const WATCH_AGAIN: Duration = Duration::from_secs(1);

type Newest = Arc<Mutex<Option<Client>>>;

fn lock(newest: &Newest) -> MutexGuard<'_, Option<Client>> {
    // It is replaced as a whole, so a panic elsewhere leaves nothing half done.
    newest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module.
pub struct Link {
    switch: SwitchId,
    peer: Arc<Peer>,
    cables: Arc<Cables>,
    calls: CallTimes,
    inputs: mpsc::Sender<Input>,
    newest: Newest,
    stream: Option<Open>,
}

/// What the switch's ports lead to.
pub struct Cables {
    /// The switch's P4Runtime device id.
    pub device_id: u64,
    /// The link out of each port.
    pub links: BTreeMap<PortNo, LinkId>,
}

/// The stream last opened.
struct Open {
    number: StreamNo,
    messages: mpsc::Sender<StreamMessageRequest>,
    task: JoinHandle<()>,
}

impl Link {
    /// A link without a connection.
    pub fn new(
        switch: SwitchId,
        peer: Peer,
        cables: Cables,
        calls: CallTimes,
        inputs: mpsc::Sender<Input>,
    ) -> Self {
        let (peer, cables) = (Arc::new(peer), Arc::new(cables));
        Self { switch, peer, cables, calls, inputs, newest: Newest::default(), stream: None }
    }

    /// Connects and opens a stream, in the background. An older stream ends.
    pub fn open(&mut self, number: StreamNo) {
        self.end();
        let (messages, queued) = mpsc::channel(MESSAGES_MAX);
        let (peer, newest) = (Arc::clone(&self.peer), Arc::clone(&self.newest));
        let (switch, inputs) = (self.switch, self.inputs.clone());
        let cables = Arc::clone(&self.cables);
        let task = tokio::spawn(async move {
            let end = serve((&peer, &cables), &newest, queued, &inputs, (switch, number)).await;
            // Calls must not go over what is left of it.
            *lock(&newest) = None;
            tracing::warn!(
                switch = peer.name,
                at = peer.address,
                "its stream ended: {}",
                end.message
            );
            // The driver has ended if nobody takes it.
            let _ = inputs.send(Input::StreamEnded { switch, stream: number, end }).await;
        });
        self.stream = Some(Open { number, messages, task });
    }

    /// Queues messages. A stream that takes them too slowly ends.
    pub fn send(&mut self, number: StreamNo, messages: Vec<StreamMessageRequest>) {
        let Some(open) = self.stream.as_ref().filter(|open| open.number == number) else { return };
        for message in messages {
            if let Err(mpsc::error::TrySendError::Full(_)) = open.messages.try_send(message) {
                tracing::warn!(
                    switch = self.peer.name,
                    "takes its stream too slowly and is cut off"
                );
                let end = StreamEnd {
                    code: Code::ResourceExhausted,
                    message: format!("{MESSAGES_MAX} messages wait for the switch"),
                };
                self.end();
                self.report(Input::StreamEnded { switch: self.switch, stream: number, end });
                return;
            }
        }
    }

    /// Closes a stream. Nothing more comes from it.
    pub fn close(&mut self, number: StreamNo) {
        if self.stream.as_ref().is_some_and(|open| open.number == number) {
            self.end();
        }
    }

    /// Makes a call in the background.
    pub fn call(&self, request: RequestId, deadline: Duration, rpc: Rpc) {
        let client = lock(&self.newest).clone();
        let (switch, inputs) = (self.switch, self.inputs.clone());
        let (calls, peer) = (self.calls.clone(), Arc::clone(&self.peer));
        tokio::spawn(async move {
            let (name, begin) = (rpc.name(), tokio::time::Instant::now());
            let result = match client {
                Some(client) => client.call(rpc, Some(deadline)).await,
                None => Err(Failure::new(Code::Unavailable, "there is no connection")),
            };
            calls.note(&peer.name, name, begin.elapsed());
            // As above.
            let _ = inputs.send(Input::Reply { switch, request, result }).await;
        });
    }

    fn end(&mut self) {
        if let Some(open) = self.stream.take() {
            open.task.abort();
        }
        *lock(&self.newest) = None;
    }

    /// Hands the core an input from within its own loop, which must not wait for itself.
    fn report(&self, input: Input) {
        let inputs = self.inputs.clone();
        tokio::spawn(async move {
            let _ = inputs.send(input).await;
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end();
    }
}

/// Connects, opens the stream and carries messages both ways until it ends.
async fn serve(
    (peer, cables): (&Peer, &Cables),
    newest: &Newest,
    mut queued: mpsc::Receiver<StreamMessageRequest>,
    inputs: &mpsc::Sender<Input>,
    (switch, stream): (SwitchId, StreamNo),
) -> StreamEnd {
    let limits = Limits::default();
    let client = match Client::connect_with(&peer.address, peer.credentials.as_ref(), limits).await
    {
        Ok(client) => client,
        Err(error) => {
            return StreamEnd { code: Code::Unavailable, message: error.to_string() };
        }
    };
    let (sender, mut receiver) = client.open_stream();
    let watching = watch_ports(SwitchClient::new(client.channel()), (&peer.name, cables), inputs);
    *lock(newest) = Some(client);
    let sending = async {
        while let Some(message) = queued.recv().await {
            if sender.send(message).await.is_err() {
                break;
            }
        }
        // The stream stays open for what the switch has to say; its end is told by the receiver.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = sending => StreamEnd { code: Code::Cancelled, message: "closed".to_owned() },
        () = watching => StreamEnd { code: Code::Cancelled, message: "closed".to_owned() },
        end = receive(&mut receiver, inputs, (switch, stream)) => end,
    }
}

/// Reports ports that go up and down, as long as the switch tells. Never returns: how the switch is, its stream shows.
async fn watch_ports(
    mut service: SwitchClient<Channel>,
    (name, cables): (&str, &Cables),
    inputs: &mpsc::Sender<Input>,
) {
    check_queues(&mut service, name, cables.device_id).await;
    loop {
        let request = WatchPortsRequest { device_id: cables.device_id };
        let end = match service.watch_ports(request).await {
            Ok(events) => follow(events.into_inner(), cables, inputs).await,
            Err(status) if status.code() == tonic::Code::Unimplemented => {
                return std::future::pending().await;
            }
            Err(status) => status.message().to_owned(),
        };
        tracing::warn!(switch = name, end, "its ports cannot be watched; trying again");
        tokio::time::sleep(WATCH_AGAIN).await;
    }
}

/// A packet for a queue that a port does not have is lost, which looks like a fabric that loses everything.
async fn check_queues(service: &mut SwitchClient<Channel>, name: &str, device_id: u64) {
    let request = GetStatisticsRequest { device_id };
    // Ports are not watched before: who does not answer this is asked no longer than anything else.
    let asked = tokio::time::timeout(WATCH_AGAIN, service.get_statistics(request)).await;
    let Ok(Ok(statistics)) = asked else { return };
    let queues = statistics.into_inner().queues_per_port;
    let wanted = u32::from(CONTROL_QUEUE) + 1;
    // 0: a switch that does not know the field yet.
    if (1..wanted).contains(&queues) {
        tracing::warn!(
            switch = name,
            "its ports have {queues} queues and plans use {wanted}: start it with --priority-queues {wanted}, or packets are lost"
        );
    }
}

/// Reports events until there are no more; why.
async fn follow(
    mut events: Streaming<PortEvent>,
    cables: &Cables,
    inputs: &mpsc::Sender<Input>,
) -> String {
    loop {
        match events.message().await {
            Ok(Some(event)) => {
                let port = u16::try_from(event.port).map(PortNo);
                if let Some(&link) = port.ok().and_then(|port| cables.links.get(&port)) {
                    // The driver has ended if nobody takes it.
                    let _ = inputs.send(Input::Link { link, up: event.up }).await;
                }
            }
            Ok(None) => return "the switch ended the events".to_owned(),
            Err(status) => return status.message().to_owned(),
        }
    }
}

async fn receive(
    receiver: &mut StreamReceiver,
    inputs: &mpsc::Sender<Input>,
    (switch, stream): (SwitchId, StreamNo),
) -> StreamEnd {
    loop {
        match receiver.next().await {
            Ok(message) => {
                if inputs.send(Input::Stream { switch, stream, message }).await.is_err() {
                    let message = "the controller has ended".to_owned();
                    return StreamEnd { code: Code::Cancelled, message };
                }
            }
            Err(end) => return end,
        }
    }
}
