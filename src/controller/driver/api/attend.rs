//! Ranks attend: each tells how it is and hears which ring to form. In: states with names, the core's events. Out: what ranks said as inputs
//! of the core, memberships. Must not judge silence: it says that a stream has ended.
//!
//! Both directions are levels, not steps: a message says all there is, so a stream that breaks and comes back loses nothing.

use super::{Api, Core, Handle, JobId, Span, Status};
use crate::controller::core::Membership;
use crate::controller::messages::{Event, Input, RankSaid, RankState};
use crate::elastic::Generation;
use crate::id::HostId;
use crate::p4runtime::proto::ringpath::v1::{AttendRequest, AttendResponse, attend_response};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

/// Ranks that may speak over one stream: an agent's whole host, several times over.
const RANKS_MAX: usize = 256;
/// Memberships that wait for a slow reader, who is then cut off: the next stream begins with the newest anyway.
const ORDERS_MAX: usize = 64;

/// Which stream speaks for a rank; a newer one takes over from one that has not ended yet.
#[derive(Clone, Default)]
pub(super) struct Attendance(Arc<Mutex<Register>>);

#[derive(Default)]
struct Register {
    last: u64,
    speaks: BTreeMap<(JobId, HostId), u64>,
}

impl Attendance {
    fn begin(&self) -> u64 {
        let mut register = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        register.last += 1;
        register.last
    }

    fn take_over(&self, rank: (JobId, HostId), stream: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).speaks.insert(rank, stream);
    }

    /// Whether nobody else speaks for the rank by now; if so, nobody does any more.
    fn end(&self, rank: (JobId, HostId), stream: u64) -> bool {
        let speaks = &mut self.0.lock().unwrap_or_else(PoisonError::into_inner).speaks;
        let own = speaks.get(&rank) == Some(&stream);
        if own {
            speaks.remove(&rank);
        }
        own
    }
}

/// Orders as they are sent.
pub(super) type Orders = ReceiverStream<Result<AttendResponse, Status>>;

/// Follows a stream until it ends.
pub(super) fn attend(api: &Api, requests: Streaming<AttendRequest>) -> Orders {
    let (orders, sent) = mpsc::channel(ORDERS_MAX);
    let stream = Stream {
        handle: api.handle.clone(),
        attendance: api.attendance.clone(),
        number: api.attendance.begin(),
        orders,
        ranks: BTreeMap::new(),
    };
    tokio::spawn(stream.run(requests));
    ReceiverStream::new(sent)
}

struct Stream {
    handle: Handle,
    attendance: Attendance,
    number: u64,
    orders: mpsc::Sender<Result<AttendResponse, Status>>,
    /// The ranks that speak here, each with its job's name.
    ranks: BTreeMap<(JobId, HostId), String>,
}

/// What ends a stream; there is something to say only if this side ends it.
type Ended = Option<Status>;

impl Stream {
    async fn run(mut self, mut requests: Streaming<AttendRequest>) {
        // Before the first membership is looked up, so that no change of it is missed.
        let mut events = self.handle.events();
        let ended: Ended = loop {
            let step = tokio::select! {
                request = requests.message() => match request {
                    Ok(Some(request)) => self.hear(request).await,
                    Ok(None) | Err(_) => break None,
                },
                event = events.recv() => match event {
                    Ok((_, event)) => self.told(&event).await,
                    Err(RecvError::Lagged(_)) => self.tell_all().await,
                    Err(RecvError::Closed) => break None,
                },
            };
            if let Err(ended) = step {
                break ended;
            }
        };
        if let Some(status) = ended {
            // Whoever has gone away need not be told.
            let _ = self.orders.try_send(Err(status));
        }
        for (job, host) in std::mem::take(&mut self.ranks).into_keys() {
            self.silent(job, host, RankSaid::Silent).await;
        }
    }

    async fn silent(&self, job: JobId, host: HostId, said: RankSaid) {
        if self.attendance.end((job, host), self.number) {
            // A driver that has ended hears nothing more.
            let _ = self.handle.input(Input::Rank { job, host, said }).await;
        }
    }

    async fn hear(&mut self, request: AttendRequest) -> Result<(), Ended> {
        let asked = request.clone();
        let found = self.handle.look(move |core| resolve(core, &asked)).await;
        let found = found.map_err(|gone| Some(gone.into()))?.map_err(Some)?;
        let Some((job, host, state)) = found else {
            // Only this rank's job is gone: others may speak over the same stream.
            let over = format!("there is no job '{}'; `ringpath job list` names all", request.job);
            return self.order(AttendResponse {
                job: request.job,
                host: request.host,
                over,
                ..AttendResponse::default()
            });
        };
        let leaving = request.leaving;
        let new = !self.ranks.contains_key(&(job, host));
        if new && self.ranks.len() >= RANKS_MAX {
            let text = format!("{RANKS_MAX} ranks speak over this stream; open another");
            return Err(Some(Status::resource_exhausted(text)));
        }
        if new {
            self.ranks.insert((job, host), request.job);
            self.attendance.take_over((job, host), self.number);
        }
        let said = RankSaid::State(state);
        self.handle
            .input(Input::Rank { job, host, said })
            .await
            .map_err(|gone| Some(gone.into()))?;
        if leaving {
            // Its last iteration has been heard with it.
            self.ranks.remove(&(job, host));
            self.silent(job, host, RankSaid::Left).await;
            return Ok(());
        }
        if new { self.tell(job, host).await } else { Ok(()) }
    }

    async fn told(&mut self, event: &Event) -> Result<(), Ended> {
        let (Event::Regrouped { job, .. }
        | Event::JobReady { job }
        | Event::JobRemoved { job }
        | Event::JobStopped { job, .. }) = event
        else {
            return Ok(());
        };
        let own: Vec<HostId> =
            self.ranks.keys().filter(|(of, _)| of == job).map(|(_, host)| *host).collect();
        for host in own {
            self.tell(*job, host).await?;
            if matches!(event, Event::JobRemoved { .. } | Event::JobStopped { .. }) {
                self.ranks.remove(&(*job, host));
                self.attendance.end((*job, host), self.number);
            }
        }
        Ok(())
    }

    async fn tell_all(&self) -> Result<(), Ended> {
        for (job, host) in self.ranks.keys() {
            self.tell(*job, *host).await?;
        }
        Ok(())
    }

    async fn tell(&self, job: JobId, host: HostId) -> Result<(), Ended> {
        let name = self.ranks.get(&(job, host)).cloned().unwrap_or_default();
        let order = self.handle.look(move |core| order(core, (job, &name), host)).await;
        self.order(order.map_err(|gone| Some(gone.into()))?)
    }

    /// Whoever does not read is cut off; its silence is then known.
    fn order(&self, order: AttendResponse) -> Result<(), Ended> {
        self.orders.try_send(Ok(order)).map_err(|_| None)
    }
}

/// Names as ids; `None` if there is no such job.
fn resolve(
    core: &Core,
    asked: &AttendRequest,
) -> Result<Option<(JobId, HostId, RankState)>, Status> {
    let job = core.jobs().find(|(job, _)| job.name == asked.job).map(|(job, _)| job.id);
    let Some(job) = job else { return Ok(None) };
    let host = find(core, &asked.host)?;
    let named = |text: &str| if text.is_empty() { Ok(None) } else { find(core, text).map(Some) };
    let (lost, stalled) = (named(&asked.lost)?, named(&asked.stalled)?);
    let state = RankState {
        generation: Generation(asked.generation),
        joined: asked.joined,
        iterations: asked.iterations,
        compute: Span(asked.compute_ns),
        lost,
        stalled,
    };
    Ok(Some((job, host, state)))
}

/// A host by its name or its address in the fabric.
fn find(core: &Core, text: &str) -> Result<HostId, Status> {
    let topology = core.topology();
    let named = topology.find(text).and_then(|node| topology.as_host(node));
    let placed = || {
        let address: Ipv4Addr = text.parse().ok()?;
        topology.hosts().find(|host| topology.host_ip(*host) == address)
    };
    named.or_else(placed).ok_or_else(|| {
        Status::invalid_argument(format!(
            "the fabric has no host '{text}'; give a name or an address of `ringpath fabric` (--host)"
        ))
    })
}

/// What a rank is to do.
fn order(core: &Core, (job, name): (JobId, &str), host: HostId) -> AttendResponse {
    let topology = core.topology();
    let host_name = |host| topology.node(topology.host_node(host)).name.clone();
    let over = |over: String| AttendResponse { job: name.to_owned(), over, ..Default::default() };
    let Some(Membership { generation, ranks, first_port, compute, ready, from }) =
        core.membership(job)
    else {
        return over(format!("job '{name}' is gone"));
    };
    if !ranks.contains(&host) {
        let host = host_name(host);
        return over(format!("job '{name}' goes on without {host}, as membership {generation}"));
    }
    let member = |host: &HostId| attend_response::Member {
        host: host_name(*host),
        address: topology.host_ip(*host).to_string(),
    };
    AttendResponse {
        job: name.to_owned(),
        host: host_name(host),
        generation: generation.0,
        members: ranks.iter().map(member).collect(),
        first_port: first_port.unwrap_or(0).into(),
        compute_ns: compute.0,
        go: ready,
        from,
        over: String::new(),
    }
}
