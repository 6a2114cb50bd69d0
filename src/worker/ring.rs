//! Ring AllReduce (Patarasuk & Yuan 2009). In: connections, a buffer. Out: the sum of all ranks' buffers in each. Must not know how
//! ranks found each other.

use super::connect::{Channel, Ring, WorkerError};
use super::pace::Pace;
use super::{Iteration, Spec};
use crate::time::Span;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime};

/// Bytes of an element: the buffer is of 32-bit floats, as gradients are.
const ELEMENT: usize = 4;

/// What a channel reduces, and room for one part of it.
struct Part {
    values: Vec<f32>,
    out: Vec<u8>,
    incoming: Vec<u8>,
}

/// Without a byte for so long, something is wrong: ranks that compute are awaited for less, as a rule, and a reader of the report that
/// knows better waits for a second sign.
pub(super) const STALL: Duration = Duration::from_secs(1);

/// What the reduction of one ring goes by.
struct Rules<'a> {
    spec: &'a Spec,
    /// Told when nothing has come from the rank before for [`STALL`], and when something comes again.
    stalled: &'a (dyn Fn(bool) + Sync),
}

impl Rules<'_> {
    /// Fills a buffer from a connection whose reads give up after [`STALL`].
    #[allow(clippy::disallowed_methods, reason = "a worker is a process; it measures real time")]
    fn receive(&self, from: &mut TcpStream, mut buffer: &mut [u8]) -> std::io::Result<()> {
        let (mut last, mut stalled) = (Instant::now(), false);
        while !buffer.is_empty() {
            match from.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = &mut buffer[count..];
                    last = Instant::now();
                    if std::mem::take(&mut stalled) {
                        (self.stalled)(false);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if last.elapsed() >= self.spec.patience {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    if !std::mem::replace(&mut stalled, true) {
                        (self.stalled)(true);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Which neighbour failed.
enum Side {
    Previous(std::io::Error),
    Next(std::io::Error),
}

impl Ring {
    /// Runs iterations by number, calling `done` after each, and `stalled` when the rank before sends nothing for a second (`true`) and when
    /// it does again (`false`).
    ///
    /// # Errors
    /// [`WorkerError::Gone`] names the neighbour that broke off; [`WorkerError::Wrong`] an element that was not reduced rightly.
    #[allow(clippy::disallowed_methods, reason = "a worker is a process; it measures real time")]
    pub fn run(
        &mut self,
        iterations: Range<u32>,
        stalled: &(dyn Fn(bool) + Sync),
        done: &mut dyn FnMut(Iteration),
    ) -> Result<(), WorkerError> {
        let spec = self.spec.clone();
        let elements = usize::try_from(spec.bytes).unwrap_or(usize::MAX).div_ceil(ELEMENT);
        let share = elements.div_ceil(usize::from(spec.channels));
        let part = || Part { values: vec![0.0; share], out: Vec::new(), incoming: Vec::new() };
        let mut parts: Vec<Part> = self.channels.iter().map(|_| part()).collect();
        let mut pace = Pace::new(spec.pace.clone());
        for number in iterations {
            let begin = Instant::now();
            let compute = spec.compute.as_secs_f64() / pace.share();
            if !self.breaker.sleep(Duration::from_nanos(Span::from_secs_f64(compute).0)) {
                // Whoever tripped it knows why.
                return Ok(());
            }
            for part in &mut parts {
                // What this rank adds: its number, one more, in every element, and a little of the iteration, so that stale bytes show.
                part.values.fill(value(spec.rank, number));
            }
            let (computed, began) = (Instant::now(), SystemTime::now());
            reduce_all(&mut self.channels, &mut parts, &Rules { spec: &spec, stalled })
                .map_err(|side| gone(side, &spec, number))?;
            let communication = computed.elapsed();
            verify(&parts, &spec, number)?;
            done(Iteration { number, compute: computed - begin, communication, began });
        }
        Ok(())
    }
}

fn value(rank: usize, iteration: u32) -> f32 {
    (rank + 1) as f32 + (iteration % 16) as f32
}

fn gone(side: Side, spec: &Spec, iteration: u32) -> WorkerError {
    let ranks = spec.peers.len();
    let (rank, source) = match side {
        Side::Previous(error) => ((spec.rank + ranks - 1) % ranks, error),
        Side::Next(error) => ((spec.rank + 1) % ranks, error),
    };
    WorkerError::Gone { rank, address: spec.peers[rank], iteration, source }
}

/// All channels at the same time.
fn reduce_all(channels: &mut [Channel], parts: &mut [Part], rules: &Rules<'_>) -> Result<(), Side> {
    std::thread::scope(|scope| {
        let running: Vec<_> = channels
            .iter_mut()
            .zip(parts)
            .map(|(channel, part)| scope.spawn(move || reduce(channel, part, rules)))
            .collect();
        // A panic there is none of ours to hide.
        running.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

/// One channel: `n - 1` steps add what comes to what is there, `n - 1` steps take it over. Another thread sends meanwhile: a ring in which
/// all send before they receive stands still as soon as the buffers of TCP are full.
fn reduce(channel: &mut Channel, part: &mut Part, rules: &Rules<'_>) -> Result<(), Side> {
    let Channel { from_previous, to_next } = channel;
    std::thread::scope(|scope| {
        // One buffer goes back and forth, so a step begins when the one before has been sent.
        let (full, queued) = mpsc::sync_channel::<Vec<u8>>(1);
        let (empty, sent) = mpsc::sync_channel(1);
        let sending = scope.spawn(move || {
            for bytes in queued {
                to_next.write_all(&bytes)?;
                // The other side may have failed meanwhile.
                let _ = empty.send(bytes);
            }
            Ok(())
        });
        let received = steps(from_previous, part, rules, (&full, &sent));
        drop(full);
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.map_err(Side::Next)?;
        received.map_err(Side::Previous)
    })
}

/// The receiving half. It ends early, and well, when the sending half is gone, which knows why.
fn steps(
    from_previous: &mut TcpStream,
    part: &mut Part,
    rules: &Rules<'_>,
    (full, sent): (&SyncSender<Vec<u8>>, &Receiver<Vec<u8>>),
) -> std::io::Result<()> {
    let spec = rules.spec;
    let ranks = spec.peers.len();
    for step in 0..2 * (ranks - 1) {
        // In step s the part that leaves is the one that came in step s - 1.
        let leaving = (spec.rank + 2 * ranks - step) % ranks;
        let coming = (leaving + ranks - 1) % ranks;
        let into = range(part.values.len(), ranks, coming);
        let mut out = std::mem::take(&mut part.out);
        out.clear();
        let leaving = &part.values[range(part.values.len(), ranks, leaving)];
        out.extend(leaving.iter().flat_map(|value| value.to_le_bytes()));
        if full.send(out).is_err() {
            return Ok(());
        }
        part.incoming.resize(into.len() * ELEMENT, 0);
        rules.receive(from_previous, &mut part.incoming)?;
        let adds = step < ranks - 1;
        let came = part.incoming.chunks_exact(ELEMENT);
        let came = came.map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
        for (mine, came) in part.values[into].iter_mut().zip(came) {
            *mine = if adds { *mine + came } else { came };
        }
        match sent.recv() {
            Ok(buffer) => part.out = buffer,
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// The elements of one of `parts` nearly equal parts.
fn range(elements: usize, parts: usize, part: usize) -> Range<usize> {
    let (least, more) = (elements / parts, elements % parts);
    let begin = part * least + part.min(more);
    begin..begin + least + usize::from(part < more)
}

/// First, last and some elements between are what the ranks' values add up to.
fn verify(parts: &[Part], spec: &Spec, iteration: u32) -> Result<(), WorkerError> {
    let wanted: f32 = (0..spec.peers.len()).map(|rank| value(rank, iteration)).sum();
    for part in parts {
        let every = (part.values.len() / 1_024).max(1);
        let last = part.values.len().saturating_sub(1);
        let sample =
            part.values.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
        for (element, &found) in sample {
            if found.to_bits() != wanted.to_bits() {
                return Err(WorkerError::Wrong { iteration, element, found, wanted });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::{Breaker, connect};
    use std::net::{IpAddr, Ipv4Addr, TcpListener};
    use std::sync::atomic::{AtomicU16, Ordering};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Ports that nobody has right now, and that no other test of this process gets; below those that the system gives away.
    fn ports(count: u16) -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let start = 10_000 + u16::try_from(std::process::id() % 15_000).unwrap();
        loop {
            let first = start + NEXT.fetch_add(count, Ordering::Relaxed);
            if (first..first + count).all(|port| TcpListener::bind((HERE, port)).is_ok()) {
                return first;
            }
        }
    }

    fn spec(rank: usize, ranks: usize, first_port: u16, channels: u16) -> Spec {
        Spec {
            job: "test".into(),
            rank,
            peers: vec![HERE; ranks],
            generation: 0,
            first_port,
            channels,
            bytes: 100_003,
            compute: Span::from_millis(1),
            pace: None,
            patience: Duration::from_secs(20),
        }
    }

    #[test]
    fn every_rank_ends_with_the_sum_of_all_in_every_iteration() {
        for (ranks, channels) in [(2, 1), (3, 2), (5, 1)] {
            let first = ports(u16::try_from(ranks).unwrap() * channels);
            let running: Vec<_> = (0..ranks)
                .map(|rank| {
                    std::thread::spawn(move || {
                        let mut seen = Vec::new();
                        let mut ring =
                            connect(spec(rank, ranks, first, channels), &Breaker::default())
                                .unwrap();
                        // `run` checks the sums itself.
                        ring.run(0..3, &|_| {}, &mut |iteration| seen.push(iteration)).unwrap();
                        seen
                    })
                })
                .collect();
            for thread in running {
                let seen = thread.join().unwrap();
                assert_eq!(seen.iter().map(|i| i.number).collect::<Vec<_>>(), [0, 1, 2]);
                assert!(seen.iter().all(|i| i.compute >= Duration::from_millis(1)));
            }
        }
    }

    #[test]
    fn a_sum_that_is_not_right_is_found() {
        let part = |value: f32| Part { values: vec![value; 10], out: vec![], incoming: vec![] };
        let spec = spec(0, 2, 1, 1);
        assert!(verify(&[part(3.0)], &spec, 0).is_ok(), "1 + 2");
        assert!(verify(&[part(5.0)], &spec, 1).is_ok(), "and one each");
        let mut wrong = part(3.0);
        wrong.values[9] = 2.0;
        let error = verify(&[wrong], &spec, 0).unwrap_err();
        assert!(
            error.to_string().contains("element 9 of the reduced buffer is 2, not 3"),
            "{error}"
        );
    }

    #[test]
    fn a_rank_that_goes_away_is_named() {
        let first = ports(2);
        let other = std::thread::spawn(move || {
            drop(connect(spec(1, 2, first, 1), &Breaker::default()).unwrap())
        });
        let mut ring = connect(spec(0, 2, first, 1), &Breaker::default()).unwrap();
        other.join().unwrap();
        let error = ring.run(0..2, &|_| {}, &mut |_| {}).unwrap_err();
        assert!(
            error.to_string().starts_with("rank 1 at 127.0.0.1 went away in iteration 0"),
            "{error}"
        );
    }

    #[test]
    fn a_rank_that_never_comes_and_a_stranger_are_told_apart() {
        let first = ports(2);
        let mut alone = spec(0, 2, first, 1);
        alone.patience = Duration::from_millis(100);
        let error = connect(alone, &Breaker::default()).unwrap_err().to_string();
        assert!(
            error.contains("rank 1 at 127.0.0.1") && error.contains("was not there"),
            "{error}"
        );

        let first = ports(2);
        let stranger = std::thread::spawn(move || {
            // Rank 0 sends to port `first`, and listens on the one after.
            let _next = TcpListener::bind((HERE, first)).unwrap();
            loop {
                if let Ok(mut stream) = TcpStream::connect((HERE, first + 1)) {
                    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
                    let _ = stream.read(&mut [0; 1]);
                    return;
                }
            }
        });
        let mut wary = spec(0, 2, first, 1);
        wary.patience = Duration::from_millis(500);
        let error = connect(wary, &Breaker::default()).unwrap_err().to_string();
        stranger.join().unwrap();
        assert!(error.contains("something that is no worker"), "{error}");
    }

    #[test]
    fn a_rank_of_an_older_membership_is_turned_away_and_the_right_one_is_taken() {
        let first = ports(2);
        let of = move |generation, rank| Spec { generation, ..spec(rank, 2, first, 1) };
        // Whoever took the stranger for the rank before waits for its bytes in vain.
        let reduces = |spec: Spec| {
            let spec = Spec { patience: Duration::from_secs(3), ..spec };
            let mut ring = connect(spec, &Breaker::default()).unwrap();
            ring.run(0..1, &|_| {}, &mut |_| {}).unwrap();
        };
        let (greeted, heard) = mpsc::channel();
        let stale = std::thread::spawn(move || {
            let mut stream = loop {
                match TcpStream::connect((HERE, first + 1)) {
                    Ok(stream) => break stream,
                    Err(_) => std::thread::yield_now(),
                }
            };
            let mut hello = b"RPWORK02".to_vec();
            for number in [1_u32, 0, 1, 4] {
                hello.extend(number.to_be_bytes());
            }
            hello.extend(b"test");
            stream.write_all(&hello).unwrap();
            greeted.send(()).unwrap();
            // It is closed by the one that turns it away.
            assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
        });
        let right = std::thread::spawn(move || {
            // The stranger stands first in line.
            heard.recv().unwrap();
            reduces(of(2, 1));
        });
        reduces(of(2, 0));
        right.join().unwrap();
        stale.join().unwrap();
    }

    #[test]
    fn a_ring_that_is_broken_from_outside_ends_whatever_it_waits_for() {
        let first = ports(2);
        let breakers = [Breaker::default(), Breaker::default()];
        let (connected, rings) = mpsc::channel();
        let running: Vec<_> = (0..2)
            .map(|rank| {
                let (breaker, connected) = (breakers[rank].clone(), connected.clone());
                // One computes for an hour, the other waits for its bytes.
                let compute = Span::from_millis([0, 3_600_000][rank]);
                let spec = Spec { compute, ..spec(rank, 2, first, 1) };
                std::thread::spawn(move || {
                    let mut ring = connect(spec, &breaker).unwrap();
                    connected.send(()).unwrap();
                    ring.run(0..1, &|_| {}, &mut |_| panic!("no iteration ends")).is_ok()
                })
            })
            .collect();
        assert_eq!(rings.iter().take(2).count(), 2);
        breakers.iter().for_each(Breaker::trip);
        let ended: Vec<bool> = running.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(ended[1], "one that computes is not at fault");
        let alone = Spec { generation: 3, ..spec(0, 1, 1, 1) };
        let mut ring = connect(alone, &Breaker::default()).unwrap();
        let mut seen = Vec::new();
        ring.run(4..6, &|_| {}, &mut |iteration| seen.push(iteration.number)).unwrap();
        assert_eq!(seen, [4, 5], "the last rank of a job goes on alone");
    }

    #[test]
    fn a_rank_that_sends_nothing_is_told_of_while_it_is_awaited() {
        let first = ports(2);
        let (told, stalls) = mpsc::channel();
        let slow = std::thread::spawn(move || {
            // It computes three times as long as the other waits before it says something.
            let compute = Span(3 * u64::try_from(STALL.as_nanos()).unwrap());
            let spec = Spec { compute, ..spec(1, 2, first, 1) };
            connect(spec, &Breaker::default()).unwrap().run(0..1, &|_| {}, &mut |_| {}).unwrap();
        });
        let mut ring = connect(spec(0, 2, first, 1), &Breaker::default()).unwrap();
        let stalled = |now| told.send(now).unwrap();
        // Senders are not shared between threads; there is one channel.
        let stalled = std::sync::Mutex::new(stalled);
        let mut done = 0;
        ring.run(0..1, &|now| stalled.lock().unwrap()(now), &mut |_| done += 1).unwrap();
        slow.join().unwrap();
        assert_eq!(stalls.try_iter().collect::<Vec<bool>>(), [true, false]);
        assert_eq!(done, 1, "it was only slow");
    }

    #[test]
    fn parts_cover_the_buffer_once() {
        for (elements, parts) in [(10, 3), (2, 5), (7, 7), (0, 2)] {
            let all: Vec<usize> =
                (0..parts).flat_map(|part| range(elements, parts, part)).collect();
            assert_eq!(all, (0..elements).collect::<Vec<_>>());
        }
    }

    #[test]
    fn rings_that_are_none_are_refused() {
        let refused = |spec: Spec| connect(spec, &Breaker::default()).unwrap_err().to_string();
        assert!(refused(spec(0, 1, 1, 1)).contains("at least 2"));
        assert!(refused(spec(2, 2, 1, 1)).contains("from 0 to 1"));
        assert!(refused(spec(0, 2, 65_535, 1)).contains("do not fit"));
        assert!(refused(Spec { bytes: 0, ..spec(0, 2, 1, 1) }).contains("give 1 to"));
    }
}
