//! What Prometheus asks for. In: events, the time that calls took, the core's state at the moment of a scrape. Out: text. Must not change
//! anything.
//!
//! Labels are switches of the fabric, kinds of calls and names of events, so their number is bounded.

use super::api::{self, ApiError};
use super::{Gone, Handle};
use crate::controller::core::{Core, ProbeCounts};
use crate::controller::messages::Event;
use crate::p4runtime::proto::ringpath::v1::{GetStatusResponse, SwitchStatus};
use crate::time::Time;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

type Labels<const N: usize> = [(&'static str, String); N];

/// A histogram of times from 0.1 ms to 26 s.
fn times() -> Histogram {
    Histogram::new(exponential_buckets(1e-4, 4.0, 10))
}

/// The time that calls to switches took, by switch and call. Cheap to clone; clones share it.
#[derive(Clone, Debug)]
pub struct CallTimes(Family<Labels<2>, Histogram>);

impl Default for CallTimes {
    fn default() -> Self {
        Self(Family::new_with_constructor(times))
    }
}

impl CallTimes {
    /// Notes one call that came to an end, well or not.
    pub fn note(&self, switch: &str, rpc: &'static str, took: Duration) {
        let labels = [("switch", switch.to_owned()), ("rpc", rpc.to_owned())];
        self.0.get_or_create(&labels).observe(took.as_secs_f64());
    }
}

/// Everything that is counted, and the gauges that a scrape sets.
struct Metrics {
    registry: Registry,
    events: Family<Labels<1>, Counter>,
    missed: Counter,
    rollout: Histogram,
    jobs: Gauge,
    flows: Gauge,
    outside: Gauge,
    generation: Gauge,
    converged: Gauge,
    used: Family<Labels<1>, Gauge>,
    links: Family<Labels<1>, Gauge>,
    probes: Family<Labels<1>, Gauge>,
}

impl Metrics {
    fn new(calls: &CallTimes) -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("ringpath"),
            events: Family::default(),
            missed: Counter::default(),
            rollout: times(),
            jobs: Gauge::default(),
            flows: Gauge::default(),
            outside: Gauge::default(),
            generation: Gauge::default(),
            converged: Gauge::default(),
            used: Family::default(),
            links: Family::default(),
            probes: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("events", "What the controller told, by kind", metrics.events.clone());
        registry.register("events_missed", "Events that these counts lack", metrics.missed.clone());
        registry.register(
            "rollout_seconds",
            "From a plan to its installation",
            metrics.rollout.clone(),
        );
        registry.register("call_seconds", "Calls to switches", calls.0.clone());
        registry.register("jobs", "Jobs", metrics.jobs.clone());
        registry.register("flows", "Flows of all jobs", metrics.flows.clone());
        registry.register(
            "flows_outside",
            "Flows that are not wholly on their target",
            metrics.outside.clone(),
        );
        registry.register(
            "generation",
            "Generation of the plan that is the target",
            metrics.generation.clone(),
        );
        registry.register(
            "converged",
            "1 while everything is as the plan wants it",
            metrics.converged.clone(),
        );
        registry.register("switch_used", "1 for switches that plans use", metrics.used.clone());
        registry.register(
            "links",
            "Directions between switches, by whether plans may use them",
            metrics.links.clone(),
        );
        registry.register(
            "probes",
            "Probes since the controller started, by what they came to",
            metrics.probes.clone(),
        );
        metrics
    }

    fn look(&self, seen: &Seen) {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.jobs.set(number(seen.jobs));
        self.flows.set(number(seen.flows));
        self.outside.set(number(seen.status.flows_outside));
        self.generation.set(number(seen.status.generation));
        self.converged.set(seen.status.converged.into());
        let (up, down) = seen.links;
        for (state, count) in [("up", up), ("down", down)] {
            self.links.get_or_create(&[("state", state.to_owned())]).set(number(count as u64));
        }
        let ProbeCounts { sent, heard, lost, astray, forged, stale } = seen.probes;
        let probes = [
            ("sent", sent),
            ("heard", heard),
            ("lost", lost),
            ("astray", astray),
            ("forged", forged),
            ("stale", stale),
        ];
        for (kind, count) in probes {
            self.probes.get_or_create(&[("kind", kind.to_owned())]).set(number(count));
        }
        for SwitchStatus { name, used } in &seen.status.switches {
            self.used.get_or_create(&[("switch", name.clone())]).set((*used).into());
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What a scrape reads of the core.
struct Seen {
    jobs: u64,
    flows: u64,
    links: (usize, usize),
    probes: ProbeCounts,
    status: GetStatusResponse,
}

fn see(core: &Core) -> Seen {
    Seen {
        jobs: core.jobs().count() as u64,
        flows: core.jobs().map(|(_, flows)| flows.len() as u64).sum(),
        links: core.inner_links(),
        probes: core.probe_counts(),
        status: api::status(core),
    }
}

/// The page at `/metrics`; dropping it ends it.
#[derive(Debug)]
pub struct Page {
    addr: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Page {
    /// The address, with the port that the system chose when 0 was asked for.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Serves `/metrics` in the Prometheus text form on a loopback address, and counts events from now on.
///
/// # Errors
/// [`ApiError::NotLoopback`], [`ApiError::Bind`].
pub async fn serve(addr: SocketAddr, handle: Handle, calls: &CallTimes) -> Result<Page, ApiError> {
    let (listener, addr) = api::loopback(addr).await?;
    let metrics = Arc::new(Metrics::new(calls));
    // Here and not in the task, so that what the controller tells when it boots counts, too.
    let counting = tokio::spawn(count(Arc::clone(&metrics), handle.events()));
    let page = move || {
        let (metrics, handle) = (Arc::clone(&metrics), handle.clone());
        async move { scrape(&metrics, &handle).await }
    };
    let router = axum::Router::new().route("/metrics", get(page));
    let serving = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::warn!(%addr, %error, "the metrics page stopped");
        }
    });
    Ok(Page { addr, tasks: [counting, serving] })
}

async fn scrape(metrics: &Metrics, handle: &Handle) -> Response {
    let seen = match handle.look(see).await {
        Ok(seen) => seen,
        Err(Gone) => return (StatusCode::SERVICE_UNAVAILABLE, Gone.to_string()).into_response(),
    };
    metrics.look(&seen);
    match metrics.text() {
        Ok(text) => {
            let form = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, form)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Counts events until the controller ends.
async fn count(metrics: Arc<Metrics>, mut events: Receiver<(Time, Event)>) {
    let mut planned: Option<(Time, u64)> = None;
    loop {
        match events.recv().await {
            Ok((at, event)) => {
                metrics.events.get_or_create(&[("event", name(&event))]).inc();
                match event {
                    Event::Planned { generation, .. } => planned = Some((at, generation)),
                    Event::Installed { generation } => {
                        if let Some((from, _)) = planned.take_if(|(_, of)| *of <= generation) {
                            metrics.rollout.observe(at.since(from).as_secs_f64());
                        }
                    }
                    _ => {}
                }
            }
            Err(RecvError::Lagged(count)) => drop(metrics.missed.inc_by(count)),
            Err(RecvError::Closed) => return,
        }
    }
}

/// The name that an event has in JSON.
fn name(event: &Event) -> String {
    let value = serde_json::to_value(event).unwrap_or_default();
    value["event"].as_str().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_counts_gauges_and_times() {
        let calls = CallTimes::default();
        let metrics = Metrics::new(&calls);
        calls.note("leaf1", "Write", Duration::from_millis(3));
        metrics.events.get_or_create(&[("event", name(&Event::LabelRemoved { label: 7 }))]).inc();
        let switch = |name: &str, used| SwitchStatus { name: name.to_owned(), used };
        metrics.look(&Seen {
            jobs: 2,
            flows: 8,
            links: (11, 1),
            probes: ProbeCounts { sent: 40, lost: 3, ..ProbeCounts::default() },
            status: GetStatusResponse {
                policy: "joint".into(),
                generation: 5,
                converged: false,
                flows_outside: 1,
                switches: vec![switch("leaf1", true), switch("leaf2", false)],
            },
        });
        let text = metrics.text().unwrap();
        for line in [
            "ringpath_events_total{event=\"label-removed\"} 1",
            "ringpath_jobs 2",
            "ringpath_flows 8",
            "ringpath_flows_outside 1",
            "ringpath_generation 5",
            "ringpath_converged 0",
            "ringpath_links{state=\"down\"} 1",
            "ringpath_probes{kind=\"sent\"} 40",
            "ringpath_probes{kind=\"lost\"} 3",
            "ringpath_switch_used{switch=\"leaf1\"} 1",
            "ringpath_switch_used{switch=\"leaf2\"} 0",
            "ringpath_call_seconds_count{switch=\"leaf1\",rpc=\"Write\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
