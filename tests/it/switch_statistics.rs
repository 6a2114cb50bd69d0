//! `ringpath.v1.Switch` beside P4Runtime, and `ringpath switch --stats`, which asks it.

use std::time::Duration;

use clap::Parser as _;
use ringpath::cli::switch::Statistics;
use ringpath::cli::{Cli, Exit};
use ringpath::p4runtime::proto::ringpath::v1::switch_client::SwitchClient;
use ringpath::p4runtime::proto::ringpath::v1::{
    GetStatisticsRequest, PortEvent, WatchPortsRequest,
};
use ringpath::p4runtime::server::listen::{Listening, listen_beside};
use ringpath::switch::port::Ports;
use ringpath::switch::port::pcap::Writer;
use ringpath::switch::real_time::Driver;
use ringpath::time::Span;
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic::service::Routes;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::switch_ports::{drive, packet, stats, until, wanted};

/// A switch that has read three packets on port 1, one of which it has dropped.
async fn busy(folder: &std::path::Path) -> (Driver, Listening) {
    let file = std::fs::File::create(folder.join("a_in.pcap")).unwrap();
    let mut writer = Writer::new(file).unwrap();
    for (to, ttl) in [([10, 0, 2, 7], 64), ([10, 0, 2, 8], 64), ([10, 0, 2, 7], 1)] {
        writer.write(5, &packet(to, ttl, 100)).unwrap();
    }
    drop(writer);
    let driver = drive(Ports::files(&wanted(&["a", "b"]), folder, Span::ZERO).unwrap());
    until("three packets", || {
        let stats = stats(&driver);
        stats.port(ringpath::id::PortNo(2)).sent.packets + stats.all_drops() == 3
    });
    let beside = Routes::new(Statistics::of(&driver, 0));
    let addr = "127.0.0.1:0".parse().unwrap();
    let listening = listen_beside(addr, None, driver.handle().clone(), beside).await.unwrap();
    (driver, listening)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_ports_queues_and_losses_come_over_grpc_and_reflection_knows_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let (_driver, listening) = busy(folder.path()).await;
    let url = format!("http://{}", listening.addr());
    let mut client = SwitchClient::connect(url.clone()).await.unwrap();
    let got =
        client.get_statistics(GetStatisticsRequest { device_id: 0 }).await.unwrap().into_inner();
    let [a, b] = &got.ports[..] else { panic!("{:?}", got.ports) };
    assert_eq!(
        (a.port, a.interface.as_str(), a.up, a.received.unwrap().bytes),
        (1, "a", true, 300)
    );
    assert_eq!((b.port, b.sent.unwrap().packets, b.queues[0].sent.unwrap().bytes), (2, 2, 200));
    assert_eq!((b.queues[0].packets, b.queues[0].max_packets), (0, 1));
    assert!(b.interface_counters.iter().any(|count| count.name == "waits"));
    let lost: Vec<_> = got.losses.iter().filter(|loss| loss.packets > 0).collect();
    assert_eq!((lost.len(), lost[0].reason.as_str(), lost[0].packets), (1, "ingress", 1));
    assert!(got.losses.len() >= 14 && got.time_ns > 0);
    let other = client.get_statistics(GetStatisticsRequest { device_id: 9 }).await.unwrap_err();
    assert_eq!(other.code(), Code::NotFound);

    let asked = MessageRequest::ListServices(String::new());
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(asked) };
    let channel = tonic::transport::Endpoint::from_shared(url).unwrap().connect().await.unwrap();
    let mut reflection = ServerReflectionClient::new(channel);
    let replies = reflection.server_reflection_info(tokio_stream::once(request)).await.unwrap();
    let reply = replies.into_inner().next().await.unwrap().unwrap();
    let Some(MessageResponse::ListServicesResponse(list)) = reply.message_response else {
        panic!()
    };
    let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
    assert!(
        names.contains(&"ringpath.v1.Switch") && names.contains(&"p4.v1.P4Runtime"),
        "{names:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_is_told_the_present_state_of_all_ports_first() {
    let folder = tempfile::tempdir().unwrap();
    let (_driver, listening) = busy(folder.path()).await;
    let mut client = SwitchClient::connect(format!("http://{}", listening.addr())).await.unwrap();
    let events = client.watch_ports(WatchPortsRequest { device_id: 0 }).await.unwrap().into_inner();
    let events = events.take(2).map(Result::unwrap);
    let first = tokio::time::timeout(Duration::from_secs(10), events.collect::<Vec<PortEvent>>());
    let first = first.await.unwrap();
    let seen: Vec<_> =
        first.iter().map(|event| (event.port, event.interface.as_str(), event.up)).collect();
    assert_eq!(seen, [(1, "a", true), (2, "b", true)]);
}

/// What the command prints and how it ends.
async fn command(line: String) -> (Result<Exit, String>, String) {
    let run = move || {
        let mut out = Vec::new();
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let result = ringpath::cli::run(cli.command, &mut out);
        let result = result.map_err(|error| ringpath::cli::exit::chain(&error));
        (result, String::from_utf8(out).unwrap())
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stats_are_printed_as_tables_and_as_json_and_only_of_the_device_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (_driver, listening) = busy(folder.path()).await;
    let ask = format!("ringpath switch --stats --grpc-server-addr {}", listening.addr());
    let change = format!("ringpath switch port-rate --grpc-server-addr {}", listening.addr());
    let (result, text) = command(format!("{change} 1=20Mbps 2=none")).await;
    assert_eq!((result, text.as_str()), (Ok(Exit::Done), "port 1: 20Mbps\nport 2: no shaper\n"));
    let error = command(format!("{change} 9=none")).await.0.unwrap_err();
    assert!(error.contains("port 9 has no interface"), "{error}");
    let (result, text) = command(ask.clone()).await;
    assert_eq!(result, Ok(Exit::Done));
    assert!(text.contains("1  lost, dropped by the program's ingress"), "{text}");
    assert!(text.contains("┆ a         ┆ up") && !text.contains("queue full"), "{text}");
    let (result, text) = command(format!("{ask} -o json")).await;
    assert_eq!(result, Ok(Exit::Done));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["ports"][1]["queues"][0]["sent"]["bytes"], 200);
    assert_eq!(json["losses"]["ingress"], 1);
    assert_eq!(json["ports"][0]["interface_counters"]["in_ring_full"], 0);
    let (result, _) = command(format!("{ask} --device-id 7")).await;
    let error = result.unwrap_err();
    assert!(error.contains("this is device 0, not 7; see --device-id"), "{error}");
    let (result, _) =
        command("ringpath switch --stats --grpc-server-addr 127.0.0.1:1".to_owned()).await;
    assert!(result.unwrap_err().contains("is the switch running?"));
}
