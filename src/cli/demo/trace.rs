//! From a recording to what the report draws.
//!
//! In: ids, nanoseconds, bytes. Out: names, milliseconds, shares. Must not know the page.

use super::timeline::{Names, ms, timeline};
use crate::plan::path_names;
use crate::report::trace::{
    FlowPlan, IterationTrace, JobTrace, LinkTrace, PlanTrace, PolicyTrace, QueueDelay,
};
use crate::sim::trace::{PlanAt, Recording, Waits};
use crate::time::Span;
use std::collections::BTreeMap;

/// One policy's run as plain values.
pub(super) fn trace(
    names: &Names<'_>,
    recording: &Recording,
    alone: &BTreeMap<String, f64>,
) -> PolicyTrace {
    let origin = recording.origin;
    let job =
        |(job, history): (&crate::workload::Job, &Vec<crate::sim::ring::Iteration>)| JobTrace {
            name: job.name.clone(),
            alone_ms: alone.get(&job.name).copied(),
            iterations: history
                .iter()
                .map(|iteration| IterationTrace {
                    start_ms: ms(origin, iteration.start),
                    comm_start_ms: ms(origin, iteration.comm_start),
                    comm_end_ms: ms(origin, iteration.comm_end),
                    end_ms: ms(origin, iteration.end),
                })
                .collect(),
        };
    PolicyTrace {
        policy: names.policy.to_owned(),
        duration_ms: ms(origin, recording.end),
        bucket_ms: recording.bucket.as_secs_f64() * 1e3,
        links: links(names, recording),
        jobs: names.jobs.iter().zip(&recording.iterations).map(job).collect(),
        queues: recording.waits.iter().map(delay).collect(),
        plans: recording.plans.iter().map(|plan| plan_trace(names, recording, plan)).collect(),
        plans_left_out: recording.plans_left_out,
        timeline: timeline(names, recording),
    }
}

/// Shares of the nominal rate. The last bucket counts only as far as the run went; what came after it, packets on their way when the
/// last job ended, is left out.
fn links(names: &Names<'_>, recording: &Recording) -> Vec<LinkTrace> {
    let topology = names.topology;
    let run = recording.end - recording.origin;
    let width = recording.bucket.0.max(1);
    let buckets = run.0.div_ceil(width) as usize;
    let rows = topology.links().iter().zip(&recording.load).zip(&recording.rates);
    rows.map(|((link, load), rate)| {
        let share = |bytes: u64, time: Span| {
            let most = rate.0 as f64 / 8.0 * time.as_secs_f64();
            if most > 0.0 { (bytes as f64 / most).min(1.0) } else { 0.0 }
        };
        let shares = load.iter().take(buckets).enumerate().map(|(bucket, bytes)| {
            let start = bucket as u64 * width;
            share(*bytes, Span(width.min(run.0 - start)))
        });
        let name = |node| topology.node(node).name.clone();
        let at_host = [link.from, link.to].iter().any(|end| topology.as_host(*end).is_some());
        LinkTrace {
            from: name(link.from),
            to: name(link.to),
            at_host,
            share: shares.collect(),
            mean: share(load.iter().take(buckets).sum(), run),
        }
    })
    .collect()
}

fn delay(waits: &Waits) -> QueueDelay {
    let us = |span: Span| span.as_secs_f64() * 1e6;
    QueueDelay {
        queue: waits.queue,
        packets: waits.frames,
        p50_us: us(waits.p50),
        p90_us: us(waits.p90),
        p99_us: us(waits.p99),
        p999_us: us(waits.p999),
        max_us: us(waits.max),
    }
}

fn plan_trace(names: &Names<'_>, recording: &Recording, plan: &PlanAt) -> PlanTrace {
    let flow = |(id, placed): (&crate::id::FlowId, &crate::sim::trace::Placed)| {
        let nodes = path_names(names.topology, &placed.path);
        let (from, to) = (nodes.first().copied(), nodes.last().copied());
        let inner = nodes.get(1..nodes.len().saturating_sub(1)).unwrap_or_default();
        let job = names.flows.get(id.index()).and_then(|flow| names.jobs.get(flow.job.index()));
        FlowPlan {
            flow: id.0,
            job: job.map_or_else(String::new, |job| job.name.clone()),
            from: from.unwrap_or_default().to_owned(),
            to: to.unwrap_or_default().to_owned(),
            path: inner.join(" "),
            queue: placed.queue,
        }
    };
    PlanTrace {
        at_ms: ms(recording.origin, plan.at),
        generation: plan.generation,
        flows: plan.flows.iter().map(flow).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use crate::units::BitRate;
    use crate::workload::scenario::default_scenario;

    #[test]
    fn shares_count_the_last_bucket_as_far_as_the_run_went() {
        let scenario = default_scenario(0).unwrap();
        let names =
            Names { policy: "x", topology: &scenario.topology, jobs: &scenario.jobs, flows: &[] };
        let links = scenario.topology.links().len();
        // 8000 bit/s: a byte per millisecond. Three buckets of 4 ms, the run ends after 10 ms.
        let recording = Recording {
            origin: Time(1_000_000),
            end: Time(11_000_000),
            bucket: Span::from_millis(4),
            load: vec![vec![4, 1, 1, 99]; links],
            rates: vec![BitRate(8000); links],
            waits: Vec::new(),
            flows: Vec::new(),
            iterations: Vec::new(),
            plans: Vec::new(),
            plans_left_out: 0,
            steps: Vec::new(),
            notices: Vec::new(),
        };
        let trace = trace(&names, &recording, &BTreeMap::new());
        assert_eq!(trace.links[0].share, [1.0, 0.25, 0.5]);
        assert!((trace.links[0].mean - 0.6).abs() < 1e-12);
        assert_eq!(trace.links.iter().filter(|link| link.at_host).count(), 32);
    }
}
