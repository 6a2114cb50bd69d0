//! The two ends of `tests/interop/veth_pps.py`: a sender of packets, and the least that a program can do between two interfaces with the sockets of
//! `ringpath switch`: copy each frame from one ring to the other side's batch. No switch on veth can be faster than that here.
//!
//! ```text
//! veth send IFACE SECONDS HEX     sends one frame over and over as fast as the interface takes it; prints how many
//! veth forward IFACE IFACE        passes frames from the first to the second until it is killed
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a tool for one script: it prints, reads a clock and may end with a panic"
)]

use ringpath::switch::port::ring::{
    HEADROOM, Links, RxRing, SEND_MAX, Taken, TxSocket, Watch, wait,
};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

fn index(name: &str) -> u32 {
    Links::open().unwrap().get(name).expect("the interface exists").index
}

/// Sends all of them, waiting for room.
fn send_all(socket: &TxSocket, frames: &[&[u8]]) {
    let mut done = 0;
    while done < frames.len() {
        match socket.send(frames[done..].iter().copied()) {
            Ok(sent) => done += sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(&mut [Watch::new(socket.fd(), true)], None).unwrap();
            }
            // The interface's own queue is full, or it is gone: as lost as on a wire.
            Err(_) => done += 1,
        }
    }
}

fn send(name: &str, seconds: f64, frame: &[u8]) {
    let socket = TxSocket::open(index(name)).unwrap();
    let batch = [frame; SEND_MAX];
    let (begin, mut sent) = (Instant::now(), 0);
    while begin.elapsed().as_secs_f64() < seconds {
        send_all(&socket, &batch);
        sent += batch.len();
    }
    println!("{sent}");
}

fn forward(from: &str, to: &str) {
    let mut ring = RxRing::open(index(from), 1_500).unwrap();
    let socket = TxSocket::open(index(to)).unwrap();
    println!("ready");
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    loop {
        bytes.clear();
        ends.clear();
        while ends.len() < SEND_MAX
            && ring.take(&mut |taken| {
                if let Taken::Frame(received) = taken {
                    bytes.extend_from_slice(&received.buffer[HEADROOM..]);
                    ends.push(bytes.len());
                }
            })
        {}
        if ends.is_empty() {
            wait(&mut [Watch::new(ring.fd(), false)], Some(Duration::from_secs(1))).unwrap();
            continue;
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let frames: Vec<&[u8]> =
            starts.zip(&ends).map(|(start, end)| &bytes[start..*end]).collect();
        send_all(&socket, &frames);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["send", name, seconds, hex] => {
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
            let frame: Vec<u8> = (0..hex.len() / 2).map(|at| byte(2 * at)).collect();
            send(name, seconds.parse().expect("seconds"), &frame);
        }
        ["forward", from, to] => forward(from, to),
        _ => panic!("veth send IFACE SECONDS HEX, or veth forward IFACE IFACE"),
    }
}
