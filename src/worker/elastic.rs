//! A rank that goes on when others of its job are gone. In: orders of whoever knows the memberships. Out: iterations, each of one membership;
//! states. Must not decide who is gone: it says whom it has lost and forms the ring that it is told.
//!
//! ```text
//!  order ─► form the ring ─► joined ─► go ─► iterations ─► leaving
//!    ▲            └── a neighbour is lost ──┴── (said) ┐
//!    └───────────────── the next membership ◄──────────┘
//! ```
//! A ring that a newer order overtakes ends in the middle of whatever it does; the new one begins with the iteration that the order names.

use super::post::{Order, Post, State};
use super::{Breaker, Iteration, Spec, WorkerError, connect};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What comes of one membership.
enum Outcome {
    Done,
    Superseded,
    /// The neighbour of this rank.
    Lost(usize, WorkerError),
}

/// Runs iterations in one ring after the other, calling `done` after each with the membership it belongs to. `start` describes the ring of
/// before the first order, generation 0: its addresses count for the hosts of that membership; later ones come with the orders.
///
/// # Errors
/// [`WorkerError::Over`] when the rank is no part of its job any more, [`WorkerError::NoOrder`] when nobody says how to go on within the
/// patience, and what [`connect`] and [`super::Ring::run`] refuse for good.
pub fn run(
    start: &Spec,
    host: &str,
    iterations: u32,
    post: &Post,
    done: &mut dyn FnMut(u32, Iteration),
) -> Result<(), WorkerError> {
    let mut known: BTreeMap<String, IpAddr> = BTreeMap::new();
    let mut generation = None;
    let mut finished = 0;
    loop {
        let order = post.newer(generation, start.patience)?;
        if order.generation == 0 {
            let hosts = order.members.iter().map(|member| member.host.clone());
            known = hosts.zip(start.peers.iter().copied()).collect();
        }
        generation = Some(order.generation);
        let spec = ring(start, &order, host, &known)?;
        post.say(|state| {
            *state = State {
                generation: order.generation,
                iterations: finished,
                compute: state.compute,
                ..State::default()
            };
        });
        let ranks = order.members.len();
        let before = &order.members[(spec.rank + ranks - 1) % ranks].host;
        match membership((spec, before), iterations, post, &mut finished, done)? {
            Outcome::Done => {
                post.say(|state| state.leaving = true);
                return Ok(());
            }
            Outcome::Superseded => {}
            Outcome::Lost(rank, error) => {
                tracing::warn!("{}", chain(&error));
                let lost = order.members.get(rank).map(|member| member.host.clone());
                post.say(|state| (state.joined, state.lost, state.stalled) = (false, lost, None));
            }
        }
    }
}

fn chain(error: &WorkerError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// This rank's place in a membership.
fn ring(
    start: &Spec,
    order: &Order,
    host: &str,
    known: &BTreeMap<String, IpAddr>,
) -> Result<Spec, WorkerError> {
    let own = order.members.iter().position(|member| member.host == host);
    let reason = || format!("{host} is not in membership {} of the job", order.generation);
    let rank = own.ok_or_else(|| WorkerError::Over { reason: reason() })?;
    let address = |member: &super::Member| known.get(&member.host).copied();
    let peers = order.members.iter().map(|member| address(member).unwrap_or(member.address));
    Ok(Spec {
        rank,
        peers: peers.collect(),
        generation: order.generation,
        first_port: order.first_port,
        compute: order.compute,
        ..start.clone()
    })
}

fn membership(
    (spec, before): (Spec, &str),
    iterations: u32,
    post: &Post,
    finished: &mut u32,
    done: &mut dyn FnMut(u32, Iteration),
) -> Result<Outcome, WorkerError> {
    let (generation, patience) = (spec.generation, spec.patience);
    let (rank, ranks) = (spec.rank, spec.peers.len());
    let breaker = Breaker::default();
    let stalled = |now: bool| {
        let before = now.then(|| before.to_owned());
        post.say(|state| state.stalled = before);
    };
    post.guard(generation, &breaker);
    let ended = connect(spec, &breaker).and_then(|mut ring| {
        post.say(|state| state.joined = true);
        let order = post.go(generation, patience)?;
        if order.generation > generation {
            return Ok(());
        }
        *finished = order.from;
        ring.run(order.from..iterations, &stalled, &mut |iteration| {
            *finished = iteration.number + 1;
            let compute = iteration.compute;
            post.say(|state| (state.iterations, state.compute) = (*finished, compute));
            done(generation, iteration);
        })
    });
    let superseded = breaker.is_tripped();
    if ended.is_err() {
        // It holds the connections, too; the neighbours must see them end.
        breaker.trip();
    }
    match ended {
        // Whatever it was: the ring was to end.
        _ if superseded => Ok(Outcome::Superseded),
        Ok(()) => Ok(Outcome::Done),
        Err(error @ (WorkerError::Gone { rank, .. } | WorkerError::Absent { rank, .. })) => {
            Ok(Outcome::Lost(rank, error))
        }
        // A rank of an older membership knocked, and the one before did not come.
        Err(error @ WorkerError::Stranger { .. }) if generation > 0 => {
            Ok(Outcome::Lost((rank + ranks - 1) % ranks, error))
        }
        Err(error) => Err(error),
    }
}
