//! The switch's ports: packet files without root; interfaces as root, in a network namespace of the test's own (`.ci/run` gives one).

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringpath::id::PortNo;
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::switch::port::pcap::{Reader, Record, Writer};
use ringpath::switch::port::ring::{Links, RxRing, Taken, TxSocket, Watch, wait};
use ringpath::switch::port::{Event, Ports, Spec};
use ringpath::switch::real_time::Driver;
use ringpath::switch::{Config, Drop, Stats, Switch};
use ringpath::time::{Span, Time};
use ringpath::units::BitRate;

use crate::rig::repo;

/// Waits for something that another thread does, at most 20 s.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    for _ in 0..10_000 {
        if done() {
            return;
        }
        // Nobody sends: this is a pause of 2 ms between two looks.
        let _ = receiver.recv_timeout(Duration::from_millis(2));
    }
    drop(sender);
    panic!("waited for {what}");
}

/// The sample router with 10.0.N.0/24 behind port N, for ports 1 and 2, as entries of the program.
fn router() -> Vec<u8> {
    let text = std::fs::read_to_string(repo("p4/build/router.json")).unwrap();
    let mut program: serde_json::Value = serde_json::from_str(&text).unwrap();
    let actions = program["actions"].as_array().unwrap();
    let forward = actions.iter().find(|action| action["name"] == "RouterIngress.forward").unwrap();
    let id = forward["id"].clone();
    let entry = |port: u32| {
        serde_json::json!({
            "match_key": [{"match_type": "lpm", "key": format!("0x0a000{port}00"), "prefix_length": 24}],
            "action_entry": {"action_id": id, "action_data": [format!("0x0{port}"), "0xaa", format!("{port:#x}")]},
            "priority": 1,
        })
    };
    let entries = serde_json::json!([entry(1), entry(2)]);
    let tables = program["pipelines"][0]["tables"].as_array_mut().unwrap();
    let route = tables.iter_mut().find(|table| table["name"] == "RouterIngress.route").unwrap();
    route["entries"] = entries;
    program.to_string().into_bytes()
}

fn switch() -> Switch {
    let mut switch = Switch::new(Config::default());
    switch.load_json(Time::ZERO, &router()).unwrap();
    switch
}

pub fn drive(ports: Ports) -> Driver {
    let server = Server::new(switch(), Profile::Spec);
    Driver::start(Arc::new(Mutex::new(server)), ports).unwrap()
}

pub fn stats(driver: &Driver) -> Stats {
    driver.handle().server().lock().unwrap().device().stats().clone()
}

/// An IPv4 packet to an address, with a right header checksum.
pub fn packet(to: [u8; 4], ttl: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    bytes.extend((length as u16 - 14).to_be_bytes());
    bytes.extend([0, 7, 0, 0, ttl, 17, 0, 0, 10, 0, 9, 9]);
    bytes.extend(to);
    let sum: u32 =
        bytes[14..34].chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1])).sum();
    let sum = !((sum >> 16) + (sum & 0xffff)) as u16;
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.resize(length, 0x5a);
    bytes
}

/// The packet behind the router: addresses and TTL are new, the checksum is right for them.
fn routed(sent: &[u8], port: u8) -> Vec<u8> {
    let mut want = packet(sent[30..34].try_into().unwrap(), sent[22] - 1, sent.len());
    want[..12].copy_from_slice(&[0, 0, 0, 0, 0, port, 0, 0, 0, 0, 0, 0xaa]);
    want
}

fn read(path: &Path) -> Vec<Record> {
    let mut reader = Reader::new(std::fs::File::open(path).unwrap()).unwrap();
    let (mut all, mut record) = (Vec::new(), Record::default());
    while reader.next(&mut record).unwrap() {
        all.push(record.clone());
    }
    all
}

pub fn wanted(names: &[&str]) -> Vec<(Spec, Option<BitRate>)> {
    let specs =
        (1..).zip(names).map(|(port, name)| Spec { port: PortNo(port), name: (*name).to_owned() });
    specs.map(|spec| (spec, None)).collect()
}

#[test]
fn a_program_runs_over_captures_in_the_order_of_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, packets: &[(u64, &[u8])]| {
        let file = std::fs::File::create(folder.path().join(name)).unwrap();
        let mut writer = Writer::new(file).unwrap();
        for (ms, bytes) in packets {
            writer.write(1_700_000_000_000_000_000 + ms * 1_000_000, bytes).unwrap();
        }
    };
    let (first, second) = (packet([10, 0, 2, 7], 64, 100), packet([10, 0, 2, 8], 9, 1_500));
    let (third, expired) = (packet([10, 0, 1, 1], 2, 60), packet([10, 0, 2, 7], 1, 60));
    write("a_in.pcap", &[(0, &first), (40, &expired)]);
    write("b_in.pcap", &[(20, &second), (60, &third)]);
    let ports = Ports::files(&wanted(&["a", "b"]), folder.path(), Span::ZERO).unwrap();
    let driver = drive(ports);
    until("four packets", || {
        let stats = stats(&driver);
        stats.port(PortNo(1)).received.packets + stats.port(PortNo(2)).received.packets == 4
    });
    let now = driver.handle().drive(|_, now| now);
    let stats = stats(&driver);
    drop(driver);
    let (to_a, to_b) =
        (read(&folder.path().join("a_out.pcap")), read(&folder.path().join("b_out.pcap")));
    let bytes = |records: &[Record]| records.iter().map(|r| r.bytes.clone()).collect::<Vec<_>>();
    assert_eq!(bytes(&to_b), [routed(&first, 2), routed(&second, 2)]);
    assert_eq!(bytes(&to_a), [routed(&third, 1)]);
    let order = [to_b[0].time_ns, to_b[1].time_ns, to_a[0].time_ns];
    assert!(order.is_sorted(), "{order:?}");
    assert!(now >= Time(60_000_000), "the last one came {now:?} after the first");
    assert_eq!((stats.drops(Drop::Ingress), stats.all_drops()), (1, 1));
}

#[test]
fn a_port_without_an_interface_loses_what_is_sent_to_it_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("a_in.pcap")).unwrap();
    Writer::new(file).unwrap().write(5, &packet([10, 0, 2, 7], 64, 60)).unwrap();
    let driver = drive(Ports::files(&wanted(&["a"]), folder.path(), Span::ZERO).unwrap());
    until("the packet", || stats(&driver).all_drops() == 1);
    assert_eq!(stats(&driver).drops(Drop::NoInterface), 1);
    assert_eq!(stats(&driver).port(PortNo(2)).sent.packets, 0);
}

#[test]
fn a_shaped_port_sends_no_faster_than_its_rate_and_loses_nothing_that_its_queue_holds() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(folder.path().join("a_in.pcap")).unwrap();
    let mut writer = Writer::new(file).unwrap();
    for n in 0..60 {
        writer.write(5, &packet([10, 0, 2, n], 64, 1_250)).unwrap();
    }
    drop(writer);
    let mut ports = wanted(&["a", "b"]);
    ports[1].1 = Some(BitRate(20_000_000));
    let driver = drive(Ports::files(&ports, folder.path(), Span::ZERO).unwrap());
    until("60 packets", || stats(&driver).port(PortNo(2)).sent.packets == 60);
    assert_eq!(stats(&driver).all_drops(), 0);
    drop(driver);
    let out = read(&folder.path().join("b_out.pcap"));
    assert!(out.iter().map(|record| record.bytes[33]).eq(0..60), "in order");
    // 1,250 bytes are 500 µs at 20 Mbit/s.
    let took = out[59].time_ns - out[0].time_ns;
    assert!(took >= 59 * 500_000, "{took} ns");
}

#[test]
fn broken_captures_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a_in.pcap"), [0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0]).unwrap();
    let error = Ports::files(&wanted(&["a"]), folder.path(), Span::ZERO).err().unwrap();
    assert!(error.to_string().ends_with("a_in.pcap"), "{error}");
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// A pair `NAMEs`, `NAMEt`, both up, and sockets on the second.
fn pair(name: &str) -> (RxRing, TxSocket) {
    ip(&format!("link add {name}s type veth peer name {name}t"));
    for end in ["s", "t"] {
        // The kernel's own solicitations are not ours to expect; without IPv6 there is nothing to turn off.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}{end}/disable_ipv6"), "1");
        ip(&format!("link set {name}{end} up"));
    }
    let text =
        Command::new("ip").args(["-o", "link", "show", &format!("{name}t")]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    let index = text.split(':').next().unwrap().trim().parse().unwrap();
    (RxRing::open(index, 1_500).unwrap(), TxSocket::open(index).unwrap())
}

/// The next frames that come out, `count` of them.
fn frames(ring: &mut RxRing, count: usize) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while out.len() < count {
        let mut watch = [Watch::new(ring.fd(), false)];
        wait(&mut watch, Some(Duration::from_secs(10))).unwrap();
        assert!(watch[0].ready(), "only {} of {count} frames came", out.len());
        while ring.take(&mut |taken| match taken {
            Taken::Frame(received) => out.push(received.buffer[10..].to_vec()),
            Taken::TooLong(bytes) => panic!("a frame of {bytes} bytes"),
        }) {}
    }
    out
}

fn send(socket: &TxSocket, frame: &[u8]) {
    assert_eq!(socket.send(std::iter::once(frame)).unwrap(), 1);
}

#[test]
#[ignore = "needs root; .ci/run runs this as `unshare --net cargo test --test it -- --ignored as_root`"]
fn as_root_interfaces_that_go_down_away_and_come_back_are_the_same_port() {
    let (mut a_ring, a) = pair("rpa");
    let (mut b_ring, b) = pair("rpb");
    let driver = drive(Ports::interfaces(&wanted(&["rpas", "rpbs"]), None).unwrap());
    let events = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&events);
    let note = move |event: &Event| noted.lock().unwrap().push((event.port.0, event.up));
    driver.board().listen(Box::new(note));
    let up = |place: usize| driver.board().faces[place].up();

    let there = packet([10, 0, 2, 7], 64, 1_514);
    send(&a, &there);
    assert_eq!(frames(&mut b_ring, 1), [routed(&there, 2)]);
    let back = packet([10, 0, 1, 7], 64, 60);
    send(&b, &back);
    assert_eq!(frames(&mut a_ring, 1), [routed(&back, 1)]);

    ip("link set rpbt down");
    until("port 2 to go down", || !up(1));
    send(&a, &there);
    until("the loss", || stats(&driver).drops(Drop::PortDown) == 1);
    ip("link set rpbt up");
    until("port 2 to come up", || up(1));
    send(&a, &there);
    assert_eq!(frames(&mut b_ring, 1), [routed(&there, 2)]);

    ip("link del rpbs");
    until("port 2 to vanish", || !up(1));
    let (mut b_ring, b) = pair("rpb");
    until("port 2 to come back", || up(1));
    send(&a, &there);
    assert_eq!(frames(&mut b_ring, 1), [routed(&there, 2)]);
    send(&b, &back);
    assert_eq!(frames(&mut a_ring, 1), [routed(&back, 1)]);
    assert_eq!(*events.lock().unwrap(), [(2, false), (2, true), (2, false), (2, true)]);
    assert_eq!(stats(&driver).all_drops(), 1);
}

#[test]
#[ignore = "needs root; .ci/run runs this as `unshare --net cargo test --test it -- --ignored as_root`"]
fn as_root_tags_long_frames_and_bursts_pass_unharmed() {
    let (_a_ring, a) = pair("rpc");
    let (mut b_ring, _b) = pair("rpd");
    let folder = tempfile::tempdir().unwrap();
    let ports = Ports::interfaces(&wanted(&["rpcs", "rpds"]), Some(folder.path())).unwrap();
    let driver = drive(ports);

    // More than a burst at once: nothing is lost between ring, queue and interface.
    let burst: Vec<Vec<u8>> =
        (0..200).map(|n| packet([10, 0, 2, n], 64, 100 + usize::from(n))).collect();
    for part in burst.chunks(20) {
        assert_eq!(a.send(part.iter().map(Vec::as_slice)).unwrap(), part.len());
    }
    let want: Vec<_> = burst.iter().map(|frame| routed(frame, 2)).collect();
    assert_eq!(frames(&mut b_ring, 200), want);

    // The kernel takes the tag off; the program sees it again, and drops what is not IPv4.
    let mut tagged = packet([10, 0, 2, 7], 64, 100);
    tagged.splice(12..12, [0x81, 0, 0, 5]);
    send(&a, &tagged);
    until("the tagged frame", || stats(&driver).drops(Drop::Ingress) == 1);

    // Longer than a slot of the ring: comes by the other way.
    ip("link set rpct mtu 9000");
    ip("link set rpcs mtu 9000");
    send(&a, &packet([10, 0, 2, 7], 64, 9_000));
    until("the long frame", || {
        let face = &driver.board().faces[1];
        face.counters.long_out.load(std::sync::atomic::Ordering::Relaxed) == 1
    });
    drop(driver);
    let recorded = read(&folder.path().join("rpcs_in.pcap"));
    assert_eq!(recorded.len(), 202);
    assert_eq!(recorded[200].bytes, tagged);
    assert_eq!(recorded[201].bytes.len(), 9_000);
    assert_eq!(read(&folder.path().join("rpds_out.pcap")).len(), 201);
}

#[test]
#[ignore = "needs root; .ci/run runs this as `unshare --net cargo test --test it -- --ignored as_root`"]
fn as_root_long_frames_keep_their_own_bytes_when_the_interface_goes_down() {
    let (_ring, socket) = pair("rpg");
    ip("link set rpgs mtu 9000");
    ip("link set rpgt mtu 9000");
    let link = Links::open().unwrap().get("rpgs").unwrap();
    // Slots for short frames: longer ones come by the other way.
    let mut ring = RxRing::open(link.index, 1_500).unwrap();
    let long = |n| packet([10, 0, 2, n], 64, 5_000);
    send(&socket, &long(1));
    send(&socket, &long(2));
    ip("link set rpgs down");
    assert_eq!(frames(&mut ring, 2), [long(1), long(2)], "what had come before is still there");
    ip("link set rpgs up");
    for n in 3..6 {
        send(&socket, &long(n));
        assert_eq!(frames(&mut ring, 1), [long(n)]);
    }
}

#[test]
#[ignore = "needs root; .ci/run runs this as `unshare --net cargo test --test it -- --ignored as_root`"]
fn as_root_packets_for_a_slow_interface_wait_in_the_switchs_own_queue() {
    let (_a_ring, a) = pair("rpe");
    let (mut b_ring, _b) = pair("rpf");
    let slow = "qdisc add dev rpfs root tbf rate 20mbit burst 3000 limit 10000000";
    if !Command::new("tc").args(slow.split(' ')).status().unwrap().success() {
        println!("SKIPPED: this kernel has no tbf to make an interface slow with");
        return;
    }
    let driver = drive(Ports::interfaces(&wanted(&["rpes", "rpfs"]), None).unwrap());
    let count = 2_000;
    let frame = packet([10, 0, 2, 7], 64, 1_400);
    for sent in (100..=count).step_by(100) {
        for _ in 0..100 {
            send(&a, &frame);
        }
        until("a hundred packets", || stats(&driver).port(PortNo(1)).received.packets == sent);
    }
    until("the queue to run dry", || driver.handle().drive(|switch, _| switch.packets_held()) == 0);
    let stats = stats(&driver);
    let counters = &driver.board().faces[1].counters;
    let read =
        |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
    let (sent, full) = (stats.port(PortNo(2)).sent.packets, stats.drops(Drop::QueueFull));
    assert_eq!((sent + full, stats.all_drops()), (count, full), "nothing is lost but by the queue");
    assert!(full > 0 && read(&counters.waits) > 0, "the queue was full, since the interface was");
    assert_eq!((read(&counters.refused), read(&counters.unfit)), (0, 0));
    assert_eq!(
        frames(&mut b_ring, sent as usize).len(),
        sent as usize,
        "what was sent has arrived"
    );
}
