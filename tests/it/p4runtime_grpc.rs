//! The server over real loopback sockets, spoken to by our own client.

use crate::fake_device::FakeDevice;
use crate::p4runtime_text as text;
use ringpath::p4runtime::client::{Client, Limits, StreamReceiver};
use ringpath::p4runtime::proto::p4::v1::stream_message_response::Update as Response;
use ringpath::p4runtime::proto::p4::v1::{StreamMessageResponse, WriteRequest};
use ringpath::p4runtime::rpc::{Code, Reply, Rpc};
use ringpath::p4runtime::server::listen::{ListenError, Listening, listen};
use ringpath::p4runtime::server::service::Handle;
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::time::Time;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than any step takes; only a hang reaches it.
const WATCHDOG: Duration = Duration::from_secs(30);

async fn serve(profile: Profile) -> (Listening, Handle<FakeDevice>, Client) {
    let server = Arc::new(Mutex::new(Server::new(FakeDevice::new(1), profile)));
    let handle = Handle::new(server, Arc::new(|| Time(42)));
    let listening = listen("127.0.0.1:0".parse().unwrap(), handle.clone()).await.unwrap();
    let client =
        Client::connect(&format!("http://{}", listening.addr()), Limits::default()).await.unwrap();
    (listening, handle, client)
}

async fn next(stream: &mut StreamReceiver) -> Result<StreamMessageResponse, Code> {
    let message = tokio::time::timeout(WATCHDOG, stream.next()).await.unwrap();
    message.map_err(|end| end.code)
}

async fn status(stream: &mut StreamReceiver) -> i32 {
    match next(stream).await.unwrap().update {
        Some(Response::Arbitration(update)) => update.status.unwrap().code,
        other => panic!("{other:?} is no arbitration"),
    }
}

async fn call(client: &Client, rpc: Rpc) -> Result<Reply, ringpath::p4runtime::rpc::Failure> {
    client.call(rpc, Some(WATCHDOG)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_arbitrates_sets_the_pipeline_writes_reads_and_exchanges_packets() {
    let (listening, handle, client) = serve(Profile::Spec).await;
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(5)).await.unwrap();
    assert_eq!(status(&mut from).await, 0);

    assert_eq!(call(&client, text::set_pipeline(5)).await, Ok(Reply::SetPipeline));
    let entries = (0..3).map(text::exact_insert).collect::<Vec<_>>().join("\n");
    assert_eq!(call(&client, text::write(5, &entries)).await, Ok(Reply::Write));
    let Ok(Reply::Read(read)) = call(&client, text::read("table_entry { }")).await else {
        panic!()
    };
    assert_eq!(read.len(), 3);

    // Two more than the device takes: the details come through the trailer in order.
    let more = (2..6).map(text::exact_insert).collect::<Vec<_>>().join("\n");
    let failure = call(&client, text::write(5, &more)).await.unwrap_err();
    assert_eq!(failure.code, Code::Unknown);
    let codes: Vec<_> =
        failure.updates.iter().map(|error| Code::from_number(error.canonical_code)).collect();
    assert_eq!(
        codes,
        [Code::AlreadyExists, Code::Ok, Code::ResourceExhausted, Code::ResourceExhausted]
    );

    to.send(text::packet_out("hello", 3)).await.unwrap();
    match next(&mut from).await.unwrap().update {
        Some(Response::Packet(packet)) => assert_eq!(packet.payload, b"hello"),
        other => panic!("{other:?} is no packet"),
    }
    assert_eq!(handle.received(), 2);
    assert_eq!(handle.sent(), 2);
    assert!(listening.bytes_read() > 1_000 && listening.bytes_written() > 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn byte_counts_grow_with_what_is_sent() {
    let (listening, _handle, client) = serve(Profile::Spec).await;
    let big = "x".repeat(1 << 20);
    let before = listening.bytes_read();
    let request = WriteRequest { role: big, device_id: 1, ..WriteRequest::default() };
    assert_eq!(call(&client, Rpc::Write(request)).await.unwrap_err().code, Code::NotFound);
    assert!(listening.bytes_read() - before > 1 << 20);
    assert_eq!(listening.accepted(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cutting_the_sockets_ends_streams_and_calls() {
    let (listening, _handle, client) = serve(Profile::Spec).await;
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(1)).await.unwrap();
    assert_eq!(status(&mut from).await, 0);
    listening.cut();
    assert_eq!(next(&mut from).await.map_err(|code| code != Code::Ok), Err(true));
    let failure = call(&client, text::read("table_entry { }")).await.unwrap_err();
    assert_eq!(failure.code, Code::Unavailable, "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_goes_away_is_noticed_by_its_backup() {
    let (_listening, _handle, client) = serve(Profile::Spec).await;
    let (primary, mut from_primary) = client.open_stream();
    primary.send(text::arbitration(9)).await.unwrap();
    assert_eq!(status(&mut from_primary).await, 0);
    let (backup, mut from_backup) = client.open_stream();
    backup.send(text::arbitration(3)).await.unwrap();
    assert_eq!(status(&mut from_backup).await, Code::AlreadyExists.number());
    drop((primary, from_primary));
    assert_eq!(status(&mut from_backup).await, Code::NotFound.number());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_ends_a_stream_with_its_reason() {
    let (_listening, _handle, client) = serve(Profile::Spec).await;
    let (first, mut from_first) = client.open_stream();
    first.send(text::arbitration(9)).await.unwrap();
    assert_eq!(status(&mut from_first).await, 0);
    let (second, mut from_second) = client.open_stream();
    second.send(text::arbitration(9)).await.unwrap();
    assert_eq!(next(&mut from_second).await.unwrap_err(), Code::InvalidArgument);
    assert_eq!(next(&mut from_second).await.unwrap_err(), Code::InvalidArgument, "and stays ended");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_of_the_device_reach_the_primary_when_pumped() {
    let (_listening, handle, client) = serve(Profile::Spec).await;
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(9)).await.unwrap();
    assert_eq!(status(&mut from).await, 0);
    call(&client, text::set_pipeline(9)).await.unwrap();
    {
        use ringpath::p4runtime::device::Device as _;
        let mut server = handle.server().lock().unwrap();
        let Some(packet) = text::packet("idle", 1) else { panic!() };
        server.device_mut().packet_out(Time(1), &packet).unwrap();
    }
    handle.pump();
    let update = next(&mut from).await.unwrap().update;
    assert!(matches!(update, Some(Response::IdleTimeoutNotification(n)) if n.timestamp == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hundred_failed_updates_fit_into_the_clients_header_list() {
    let (_listening, _handle, client) = serve(Profile::Spec).await;
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(9)).await.unwrap();
    assert_eq!(status(&mut from).await, 0);
    call(&client, text::set_pipeline(9)).await.unwrap();
    let updates =
        "updates { type: DELETE entity { table_entry { table_id: 33554433 } } }\n".repeat(500);
    let failure = call(&client, text::write(9, &updates)).await.unwrap_err();
    assert_eq!(failure.updates.len(), 500, "{}", failure.code);
    assert!(failure.updates.iter().all(|error| error.canonical_code == 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_read_comes_in_several_messages_and_loses_nothing() {
    let (_listening, _handle, client) = serve(Profile::Spec).await;
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(9)).await.unwrap();
    assert_eq!(status(&mut from).await, 0);
    call(&client, text::set_pipeline(9)).await.unwrap();
    // Each entry carries half a chunk of metadata.
    for port in 0..4 {
        let entry = text::exact_insert(port).replace(
            "table_entry {",
            &format!("table_entry {{ metadata: \"{}\"", "m".repeat(700_000)),
        );
        call(&client, text::write(9, &entry)).await.unwrap();
    }
    let Ok(Reply::Read(read)) = call(&client, text::read("table_entry { }")).await else {
        panic!()
    };
    assert_eq!(read.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listening_beyond_loopback_is_refused() {
    let server = Arc::new(Mutex::new(Server::new(FakeDevice::new(1), Profile::Spec)));
    let handle = Handle::new(server, Arc::new(|| Time(0)));
    let result = listen("0.0.0.0:0".parse().unwrap(), handle).await;
    assert!(matches!(result, Err(ListenError::NotLoopback(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_address_is_a_clear_error() {
    let error = Client::connect("http://127.0.0.1:1", Limits::default()).await.unwrap_err();
    assert!(error.to_string().contains("is the switch running?"), "{error}");
    let error = Client::connect("no address", Limits::default()).await.unwrap_err();
    assert!(error.to_string().contains("http://127.0.0.1:9559"), "{error}");
}
