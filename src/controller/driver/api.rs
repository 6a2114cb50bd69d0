//! The service `ringpath.v1.Controller`: jobs in, states and events out. In: messages with names. Out: inputs of the core, and what is
//! known of it. Must not decide: it turns names into ids, asks, and waits for the core's word.
//!
//! "Accepted" is said when the core says so, which is after the job is in the store.

use super::{Gone, Handle};
use crate::controller::core::Core;
use crate::controller::messages::{Event, Input};
use crate::controller::rollout::Side;
use crate::id::{FlowId, JobId};
use crate::p4runtime::proto::DESCRIPTOR_SET;
use crate::p4runtime::proto::ringpath::v1::controller_server::{
    Controller as Service, ControllerServer,
};
use crate::p4runtime::proto::ringpath::v1::{
    self as proto, AttendRequest, CancelJobRequest, CancelJobResponse, GetStatusRequest,
    GetStatusResponse, ListJobsRequest, ListJobsResponse, ReplanRequest, ReplanResponse,
    ReportProgressRequest, ReportProgressResponse, SubmitJobsRequest, SubmitJobsResponse,
    SwitchStatus, WatchEventsRequest, WatchEventsResponse, submit_jobs_request::Wait,
    submit_jobs_response::Result as Outcome,
};
use crate::time::{Span, Time};
use crate::topology::suggest::hint;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, broadcast};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{
    BroadcastStream, TcpListenerStream, errors::BroadcastStreamRecvError,
};
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::server::Router;
use tonic::{Request, Response, Status, Streaming};

mod attend;
mod job;
mod local;

pub use local::{Local, serve_local};

/// Bytes of one request: jobs of a whole fabric fit a hundred times.
const REQUEST_BYTES_MAX: usize = 16 << 20;
/// Calls at once per connection, watchers among them.
const CALLS_MAX: u32 = 256;

/// How often a connection is asked whether the other side is alive, and how long that may take: a machine with more to do than it can needs
/// seconds, and one that is gone is known within four.
const PING: Duration = Duration::from_secs(1);
const PONG: Duration = Duration::from_secs(3);

/// The service of one controller. Clones share it, so that it can be offered in several places.
#[derive(Clone)]
pub struct Api {
    handle: Handle,
    /// Ids are taken one request after the other.
    submitting: Arc<Mutex<()>>,
    attendance: attend::Attendance,
}

/// Why the service cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// Others than this machine could reach it.
    #[error(
        "{0} is reached from outside, and without TLS and roles only this machine is served; listen on 127.0.0.1"
    )]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {addr}; does another controller run there?")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The descriptors do not decode.
    #[error("reflection is not available")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// Something else is where the local socket should be.
    #[error("{} is there and is no socket; it is left alone, give another --local", .0.display())]
    NoSocket(std::path::PathBuf),
    /// Another process listens on the local socket.
    #[error("another process listens on {}; stop it, or give another --local", .0.display())]
    InUse(std::path::PathBuf),
    /// The local socket cannot be had.
    #[error("cannot listen on the local socket {}", path.display())]
    Local {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// A service that runs; dropping it ends it.
#[derive(Debug)]
pub struct Serving {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Serving {
    /// The address, with the port that the system chose when 0 was asked for.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves a controller with reflection on a loopback address.
///
/// # Errors
/// [`ApiError`].
pub async fn serve(addr: SocketAddr, api: &Api) -> Result<Serving, ApiError> {
    let (listener, addr) = loopback(addr).await?;
    let router = router(api)?;
    let task = tokio::spawn(async move {
        let served = router.serve_with_incoming(TcpListenerStream::new(listener)).await;
        if let Err(error) = served {
            tracing::warn!(%addr, %error, "the controller's service stopped");
        }
    });
    Ok(Serving { addr, task })
}

/// What is served, wherever it is.
fn router(api: &Api) -> Result<Router, ApiError> {
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR_SET)
        .build_v1()?;
    let api = ControllerServer::new(api.clone()).max_decoding_message_size(REQUEST_BYTES_MAX);
    let mut server = tonic::transport::Server::builder()
        .max_concurrent_streams(CALLS_MAX)
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PONG));
    Ok(server.add_service(api).add_service(reflection))
}

/// A listener that only this machine can reach, and its address.
pub(super) async fn loopback(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), ApiError> {
    if !addr.ip().is_loopback() {
        return Err(ApiError::NotLoopback(addr));
    }
    let bind = |source| ApiError::Bind { addr, source };
    let listener = TcpListener::bind(addr).await.map_err(bind)?;
    let addr = listener.local_addr().map_err(bind)?;
    Ok((listener, addr))
}

/// How the controller is.
pub(super) fn status(core: &Core) -> GetStatusResponse {
    let topology = core.topology();
    let switch = |switch| SwitchStatus {
        name: topology.node(topology.switch_node(switch)).name.clone(),
        used: core.uses(switch),
    };
    GetStatusResponse {
        policy: core.policy().to_owned(),
        generation: core.generation(),
        converged: core.converged(),
        flows_outside: core.outside() as u64,
        switches: topology.switches().map(switch).collect(),
    }
}

/// The input that makes a new plan, with a policy or, if it is empty, the one in force.
fn plan_with(core: &Core, policy: String) -> Result<Input, Status> {
    if policy.is_empty() || policy == core.policy() {
        return Ok(Input::Replan);
    }
    let known: Vec<&str> = core.policies().collect();
    if known.contains(&policy.as_str()) {
        return Ok(Input::SetPolicy { policy });
    }
    let hint = hint(&policy, known.iter().copied());
    let text = format!("there is no policy '{policy}'; choose one of: {}{hint}", known.join(", "));
    Err(Status::invalid_argument(text))
}

impl From<Gone> for Status {
    fn from(gone: Gone) -> Self {
        Self::unavailable(gone.to_string())
    }
}

/// What became of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asked,
    Accepted,
    Ready,
    Refused,
}

impl Api {
    /// The service of a driver.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle, submitting: Arc::default(), attendance: attend::Attendance::default() }
    }

    async fn submitted(&self, request: SubmitJobsRequest) -> Result<SubmitJobsResponse, Status> {
        if request.jobs.is_empty() {
            return Err(Status::invalid_argument("no job is given; name at least one"));
        }
        let until = match request.wait() {
            Wait::Accepted => Stage::Accepted,
            Wait::Installed => Stage::Ready,
        };
        let one_at_a_time = self.submitting.lock().await;
        // Before the jobs are handed over, so that nothing said of them is missed.
        let events = self.handle.events();
        let specs = request.jobs;
        let jobs = self.handle.look(move |core| job::read(core, &specs)).await??;
        let asked: Vec<(JobId, String)> =
            jobs.iter().map(|(job, _)| (job.id, job.name.clone())).collect();
        self.handle.input(Input::SubmitJobs(jobs)).await?;
        let mut outcomes: Vec<(Stage, Outcome)> = asked
            .into_iter()
            .map(|(id, name)| (Stage::Asked, Outcome { name, id: id.0, ..Outcome::default() }))
            .collect();
        let events = wait(&mut outcomes, Stage::Accepted, events).await?;
        drop(one_at_a_time);
        wait(&mut outcomes, until, events).await?;
        Ok(SubmitJobsResponse {
            results: outcomes.into_iter().map(|(_, outcome)| outcome).collect(),
        })
    }

    async fn id(&self, name: String) -> Result<JobId, Status> {
        let missing =
            Status::not_found(format!("there is no job '{name}'; `ringpath job list` names all"));
        let find =
            move |core: &Core| core.jobs().find(|(job, _)| job.name == name).map(|(job, _)| job.id);
        self.handle.look(find).await?.ok_or(missing)
    }
}

/// Follows events until every job has come so far, or was refused or removed.
async fn wait(
    outcomes: &mut [(Stage, Outcome)],
    until: Stage,
    mut events: broadcast::Receiver<(Time, Event)>,
) -> Result<broadcast::Receiver<(Time, Event)>, Status> {
    let reached = |stage: Stage| match until {
        Stage::Accepted => stage != Stage::Asked,
        _ => matches!(stage, Stage::Ready | Stage::Refused),
    };
    while !outcomes.iter().all(|(stage, _)| reached(*stage)) {
        let (_, event) = events.recv().await.map_err(|error| match error {
            broadcast::error::RecvError::Closed => Status::from(Gone),
            broadcast::error::RecvError::Lagged(_) => Status::data_loss(
                "the controller told more than could be followed; ask `ringpath job list` what became of the jobs",
            ),
        })?;
        note(outcomes, &event);
    }
    Ok(events)
}

fn note(outcomes: &mut [(Stage, Outcome)], event: &Event) {
    let (job, stage, generation, refusal) = match event {
        Event::JobAccepted { job, generation } => (job, Stage::Accepted, Some(*generation), ""),
        Event::JobReady { job } => (job, Stage::Ready, None, ""),
        Event::JobRefused { job, reason } => (job, Stage::Refused, None, reason.as_str()),
        Event::JobRemoved { job } => (job, Stage::Refused, None, "it was cancelled meanwhile"),
        _ => return,
    };
    for (at, outcome) in outcomes.iter_mut().filter(|(_, outcome)| outcome.id == job.0) {
        *at = stage;
        outcome.generation = generation.unwrap_or(outcome.generation);
        outcome.refusal = refusal.to_owned();
    }
}

/// Events as they are told to watchers.
type Told = Pin<Box<dyn Stream<Item = Result<WatchEventsResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Service for Api {
    type WatchEventsStream = Told;
    type AttendStream = attend::Orders;

    async fn attend(
        &self,
        request: Request<Streaming<AttendRequest>>,
    ) -> Result<Response<attend::Orders>, Status> {
        Ok(Response::new(attend::attend(self, request.into_inner())))
    }

    async fn submit_jobs(
        &self,
        request: Request<SubmitJobsRequest>,
    ) -> Result<Response<SubmitJobsResponse>, Status> {
        self.submitted(request.into_inner()).await.map(Response::new)
    }

    async fn cancel_job(
        &self,
        request: Request<CancelJobRequest>,
    ) -> Result<Response<CancelJobResponse>, Status> {
        let job = self.id(request.into_inner().name).await?;
        self.handle.input(Input::JobFinished { job }).await?;
        // Questions and inputs are taken in order, so once this one is answered the job's end is stored. Whoever else cancelled it
        // meanwhile did the same.
        self.handle.look(|_| ()).await?;
        Ok(Response::new(CancelJobResponse {}))
    }

    async fn list_jobs(
        &self,
        _request: Request<ListJobsRequest>,
    ) -> Result<Response<ListJobsResponse>, Status> {
        let jobs = self
            .handle
            .look(|core| core.jobs().map(|(job, flows)| job::told(core, job, flows)).collect());
        Ok(Response::new(ListJobsResponse { jobs: jobs.await? }))
    }

    async fn report_progress(
        &self,
        request: Request<ReportProgressRequest>,
    ) -> Result<Response<ReportProgressResponse>, Status> {
        let ReportProgressRequest { job, iterations, compute_ns } = request.into_inner();
        let job = self.id(job).await?;
        let compute = compute_ns.into_iter().map(Span).collect();
        self.handle.input(Input::Progress { job, iterations, compute }).await?;
        Ok(Response::new(ReportProgressResponse {}))
    }

    async fn watch_events(
        &self,
        _request: Request<WatchEventsRequest>,
    ) -> Result<Response<Told>, Status> {
        let events = BroadcastStream::new(self.handle.events());
        let told = events.map(|event| match event {
            Ok((at, event)) => {
                let event_json = serde_json::to_string(&event)
                    .map_err(|error| Status::internal(error.to_string()))?;
                Ok(WatchEventsResponse { at_ns: at.0, event_json })
            }
            Err(BroadcastStreamRecvError::Lagged(missed)) => {
                Err(Status::data_loss(format!("{missed} events were missed; watch again")))
            }
        });
        Ok(Response::new(Box::pin(told)))
    }

    async fn replan(
        &self,
        request: Request<ReplanRequest>,
    ) -> Result<Response<ReplanResponse>, Status> {
        let ReplanRequest { policy } = request.into_inner();
        let input = self.handle.look(move |core| plan_with(core, policy)).await??;
        self.handle.input(input).await?;
        // Questions and inputs are taken in order: the answer is of the new plan.
        let generation = self.handle.look(|core| core.generation()).await?;
        Ok(Response::new(ReplanResponse { generation }))
    }

    async fn get_status(
        &self,
        _request: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(self.handle.look(status).await?))
    }
}
