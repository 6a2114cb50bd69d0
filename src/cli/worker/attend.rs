//! Carries a rank's state to the controller and the controller's orders back. In: an address, a post. Out: messages of
//! `ringpath.v1.Controller.Attend`. Must not hold up the training loop: it takes the newest state when it can, and tries again when the
//! controller is away.

use super::super::job;
use crate::p4runtime::proto::ringpath::v1::{AttendRequest, AttendResponse};
use crate::time::Span;
use crate::worker::{Member, Order, Post};
use anyhow::Context as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;

/// Pause before the controller is tried again.
const AGAIN: Duration = Duration::from_millis(500);
/// Least time between two states: a job of microseconds must not keep the controller busy.
const PACE: Duration = Duration::from_millis(10);

/// States out, orders in.
pub type Stream = (mpsc::Sender<AttendRequest>, tonic::Streaming<AttendResponse>);

/// Who speaks, and where to.
#[derive(Clone, Debug)]
pub struct Courier {
    /// The controller's address.
    pub controller: String,
    /// The job's name.
    pub job: String,
    /// The host by its name or address in the fabric.
    pub host: String,
}

impl Courier {
    /// Attends up to the first order, so that what is wrong is known before anything begins: gives the host's name as the controller has it.
    ///
    /// # Errors
    /// Nobody answers; the controller's refusal.
    pub async fn begin(&self, post: &Post) -> anyhow::Result<(String, Stream)> {
        let mut stream = self.open(post).await?;
        let first = stream.1.message().await.map_err(|status| job::refused(&status))?;
        let first = first.context("the controller ended the stream")?;
        anyhow::ensure!(first.over.is_empty(), "{}", first.over);
        let host = first.host.clone();
        self.take(post, first);
        Ok((host, stream))
    }

    async fn open(&self, post: &Post) -> anyhow::Result<Stream> {
        let mut client = job::connect(&self.controller).await?;
        let (requests, queued) = mpsc::channel(1);
        // There is room for one.
        let _ = requests.try_send(self.state(post));
        let orders = client.attend(ReceiverStream::new(queued)).await;
        Ok((requests, orders.map_err(|status| job::refused(&status))?.into_inner()))
    }

    /// Attends until the rank leaves, however often the controller goes away meanwhile.
    pub async fn attend(self, begun: Stream, post: Arc<Post>, changed: Arc<Notify>) {
        let mut stream = Ok(begun);
        loop {
            let error = match stream {
                Ok(open) => match self.follow(open, &post, &changed).await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::warn!("the controller is not heard: {error:#}; the job goes on");
                        error
                    }
                },
                Err(error) => error,
            };
            if post.state().leaving {
                tracing::debug!("no leave was taken: {error:#}");
                return;
            }
            tokio::time::sleep(AGAIN).await;
            stream = self.open(&post).await;
        }
    }

    async fn follow(
        &self,
        (requests, mut orders): Stream,
        post: &Post,
        changed: &Notify,
    ) -> anyhow::Result<()> {
        loop {
            tokio::select! {
                order = orders.message() => {
                    let order = order.map_err(|status| job::refused(&status))?;
                    self.take(post, order.context("the controller ended the stream")?);
                }
                () = changed.notified() => {
                    let state = self.state(post);
                    let leaving = state.leaving;
                    requests.send(state).await.context("the controller ended the stream")?;
                    if leaving {
                        drop(requests);
                        // The controller has heard it when it ends its side.
                        while let Ok(Some(_)) = orders.message().await {}
                        return Ok(());
                    }
                    tokio::time::sleep(PACE).await;
                }
            }
        }
    }

    fn take(&self, post: &Post, order: AttendResponse) {
        if !order.over.is_empty() {
            return post.over(order.over);
        }
        match read(order) {
            Some(order) => post.order(order),
            None => tracing::warn!(job = self.job, "an order of the controller cannot be read"),
        }
    }

    fn state(&self, post: &Post) -> AttendRequest {
        let state = post.state();
        AttendRequest {
            job: self.job.clone(),
            host: self.host.clone(),
            generation: state.generation,
            joined: state.joined,
            iterations: state.iterations,
            compute_ns: u64::try_from(state.compute.as_nanos()).unwrap_or(u64::MAX),
            lost: state.lost.unwrap_or_default(),
            stalled: state.stalled.unwrap_or_default(),
            leaving: state.leaving,
        }
    }
}

fn read(order: AttendResponse) -> Option<Order> {
    let member = |member: crate::p4runtime::proto::ringpath::v1::attend_response::Member| {
        let address: IpAddr = member.address.parse().ok()?;
        Some(Member { host: member.host, address })
    };
    Some(Order {
        generation: order.generation,
        members: order.members.into_iter().map(member).collect::<Option<_>>()?,
        first_port: u16::try_from(order.first_port).ok()?,
        compute: Span(order.compute_ns),
        go: order.go,
        from: order.from,
    })
}
