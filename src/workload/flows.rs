//! From jobs to flows.
//!
//! In: jobs with hosts in ring order. Out: one [`Flow`] per ring edge and channel, with the keys that switches match.
//! Must not know: paths, queues.

use super::{Flow, Job};
use crate::id::{FlowId, HostId};
use crate::topology::{FlowKey, Topology};

/// UDP destination port of RoCEv2 (IBTA annex A17, IANA).
pub const ROCE_PORT: u16 = 4791;
/// First queue pair number used; numbers below are reserved (0 and 1 by IBTA, the rest left to the hosts).
const FIRST_QP: u32 = 0x100;
/// Flows that 24-bit queue pair numbers can tell apart at two numbers each.
const MAX_FLOWS: usize = ((1 << 24) - FIRST_QP as usize) / 2;

/// Why jobs have no flows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowError {
    /// A ring of fewer than two hosts.
    #[error("job '{job}' has {ranks} ranks; a ring needs at least 2 hosts")]
    TooFewRanks {
        /// The job.
        job: String,
        /// Its ranks.
        ranks: usize,
    },
    /// A ring or a set of channels too long for its counters.
    #[error("job '{job}' has {what} {value}; at least 1 and at most {max} are supported")]
    OutOfRange {
        /// The job.
        job: String,
        /// What is out of range.
        what: &'static str,
        /// Its value.
        value: usize,
        /// The largest.
        max: usize,
    },
    /// A host that the fabric does not have.
    #[error(
        "job '{job}' has a rank on host number {host}; the fabric has {hosts} hosts (0..{hosts})"
    )]
    NoSuchHost {
        /// The job.
        job: String,
        /// Host index.
        host: u32,
        /// Hosts in the fabric.
        hosts: usize,
    },
    /// One host twice in a ring.
    #[error(
        "job '{job}' names host '{host}' twice; remove one (a host is one rank: its GPUs reduce inside it first)"
    )]
    HostTwice {
        /// The job.
        job: String,
        /// The host.
        host: String,
    },
    /// TCP ports that do not exist.
    #[error(
        "job '{job}' needs {wanted} TCP ports from {first_port} on; take a first port between 1 and 65536 - {wanted}"
    )]
    Ports {
        /// The job.
        job: String,
        /// First port asked for.
        first_port: u16,
        /// Ports needed.
        wanted: usize,
    },
    /// More flows than queue pair numbers.
    #[error(
        "{flows} flows are more than the {max} that queue pair numbers can tell apart; use fewer channels"
    )]
    TooManyFlows {
        /// Flows wanted.
        flows: usize,
        /// Most.
        max: usize,
    },
}

/// Bytes that one ring edge of one channel carries per iteration: `2(n-1)/n * S / channels`, rounded up.
#[must_use]
pub fn edge_bytes(gradient: u64, ranks: usize, channels: u16) -> u64 {
    let (n, c) = (ranks as u128, u128::from(channels.max(1)));
    if n < 2 {
        return 0;
    }
    let bytes = (2 * (n - 1) * u128::from(gradient)).div_ceil(n * c);
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// All flows of all jobs: job by job, channel by channel, edge by edge; ids dense from 0.
///
/// Keys are RoCEv2: UDP port 4791, any source port (it is entropy), and the destination queue pair. Flow `i` sends to
/// queue pair `0x100 + 2i` of its receiver; ACKs go back to queue pair `0x101 + 2i` of its sender. Both are unique over
/// all flows, so flows of one pair of hosts differ in nothing but the queue pair, as in reality. An appended job
/// changes nothing for earlier ones.
///
/// # Errors
/// See [`FlowError`].
pub fn flows(topology: &Topology, jobs: &[Job]) -> Result<Vec<Flow>, FlowError> {
    let mut all = Vec::new();
    for job in jobs {
        all.extend(ring_flows(topology, job, FlowId::from(all.len()))?);
    }
    Ok(all)
}

/// Flows of one job, numbered from `first`; see [`flows`].
///
/// # Errors
/// See [`FlowError`].
pub fn ring_flows(topology: &Topology, job: &Job, first: FlowId) -> Result<Vec<Flow>, FlowError> {
    ring_flows_over(topology, job, first, Transport::RoceV2)
}

/// How the packets of a flow are recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// UDP port 4791 and queue pairs.
    #[default]
    RoceV2,
    /// One TCP connection per ring edge: that of edge `i` of channel `c` goes to port `first_port + c * ranks + i` of its
    /// receiver. Ports of jobs that share hosts must not overlap.
    Tcp {
        /// Port of the first edge of the first channel.
        first_port: u16,
    },
}

/// As [`ring_flows`], over a given transport.
///
/// # Errors
/// See [`FlowError`].
pub fn ring_flows_over(
    topology: &Topology,
    job: &Job,
    first: FlowId,
    transport: Transport,
) -> Result<Vec<Flow>, FlowError> {
    check(topology, job)?;
    if let Transport::Tcp { first_port } = transport {
        let (wanted, max) =
            (job.ranks.len() * usize::from(job.channels), usize::from(u16::MAX - first_port) + 1);
        if first_port == 0 || wanted > max {
            let job = job.name.clone();
            return Err(FlowError::Ports { job, first_port, wanted });
        }
    }
    let n = job.ranks.len();
    let total = first.index() + n * usize::from(job.channels);
    if total > MAX_FLOWS {
        return Err(FlowError::TooManyFlows { flows: total, max: MAX_FLOWS });
    }
    let bytes = edge_bytes(job.gradient.0, n, job.channels);
    let mut flows = Vec::with_capacity(total - first.index());
    for channel in 0..job.channels {
        for edge in 0..n {
            let id = FlowId::from(first.index() + flows.len());
            let (src, dst) = (job.ranks[edge], job.ranks[(edge + 1) % n]);
            let place = usize::from(channel) * n + edge;
            let (key, reverse) = keys(topology, (src, dst), id, (transport, place));
            flows.push(Flow {
                id,
                job: job.id,
                channel,
                // `check` keeps rings below u16::MAX.
                edge: u16::try_from(edge).unwrap_or(u16::MAX),
                src,
                dst,
                bytes,
                key,
                reverse,
            });
        }
    }
    Ok(flows)
}

/// The keys of a flow's data and of its answers. `place` counts the flows of its job.
fn keys(
    topology: &Topology,
    (src, dst): (HostId, HostId),
    id: FlowId,
    (transport, place): (Transport, usize),
) -> (FlowKey, FlowKey) {
    let bare = |from, to, protocol| FlowKey {
        src: topology.host_ip(from),
        dst: topology.host_ip(to),
        protocol,
        src_port: None,
        dst_port: None,
        dst_qp: None,
    };
    match transport {
        Transport::RoceV2 => {
            let (port, qp) = (Some(ROCE_PORT), FIRST_QP + 2 * id.0);
            let data = FlowKey { dst_port: port, dst_qp: Some(qp), ..bare(src, dst, 17) };
            (data, FlowKey { dst_port: port, dst_qp: Some(qp + 1), ..bare(dst, src, 17) })
        }
        Transport::Tcp { first_port } => {
            // The caller has checked that it fits.
            let port = Some(first_port.saturating_add(u16::try_from(place).unwrap_or(u16::MAX)));
            let data = FlowKey { dst_port: port, ..bare(src, dst, 6) };
            (data, FlowKey { src_port: port, ..bare(dst, src, 6) })
        }
    }
}

fn check(topology: &Topology, job: &Job) -> Result<(), FlowError> {
    let (name, ranks, max) = (|| job.name.clone(), job.ranks.len(), usize::from(u16::MAX));
    if ranks < 2 {
        return Err(FlowError::TooFewRanks { job: name(), ranks });
    }
    if ranks > max {
        return Err(FlowError::OutOfRange { job: name(), what: "ranks", value: ranks, max });
    }
    if job.channels == 0 {
        return Err(FlowError::OutOfRange { job: name(), what: "channels", value: 0, max });
    }
    let hosts = topology.host_count();
    let mut seen = vec![false; hosts];
    for &host in &job.ranks {
        match seen.get_mut(host.index()) {
            None => return Err(FlowError::NoSuchHost { job: name(), host: host.0, hosts }),
            Some(true) => {
                let host = topology.node(topology.host_node(host)).name.clone();
                return Err(FlowError::HostTwice { job: name(), host });
            }
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::JobId;
    use crate::time::Span;
    use crate::topology::generate::LeafSpine;
    use crate::units::{BitRate, Bytes};
    use std::collections::BTreeSet;

    fn fabric() -> Topology {
        LeafSpine::new(2, 2, 2, BitRate(1_000_000_000)).build().unwrap()
    }

    fn job(id: u32, ranks: &[u32], channels: u16) -> Job {
        Job {
            id: JobId(id),
            name: format!("job-{id}"),
            model: "custom".into(),
            ranks: ranks.iter().map(|&host| HostId(host)).collect(),
            gpus_per_rank: 8,
            gradient: Bytes(1_000),
            compute: Span::from_millis(10),
            overlap: 0.0,
            jitter: 0.0,
            iterations: 1,
            start: Span::ZERO,
            channels,
        }
    }

    #[test]
    fn a_ring_edge_carries_twice_the_gradient_less_two_shares() {
        assert_eq!(edge_bytes(1_000, 4, 1), 1_500);
        assert_eq!(edge_bytes(1_000, 4, 2), 750);
        assert_eq!(edge_bytes(1_000, 3, 1), 1_334); // 1333.3 rounded up
        assert_eq!(edge_bytes(1_000, 2, 1), 1_000);
        assert_eq!(edge_bytes(u64::MAX, 2, 1), u64::MAX);
    }

    #[test]
    fn every_flow_has_its_own_queue_pairs_in_both_directions() {
        let topology = fabric();
        let flows = flows(&topology, &[job(0, &[0, 2], 2), job(1, &[2, 0, 3], 1)]).unwrap();
        assert_eq!(flows.len(), 7);
        let mut qps = BTreeSet::new();
        for (i, flow) in flows.iter().enumerate() {
            assert_eq!(flow.id.index(), i);
            assert_eq!((flow.key.src, flow.key.dst), (flow.reverse.dst, flow.reverse.src));
            assert_eq!(flow.key.src, topology.host_ip(flow.src));
            assert!(qps.insert(flow.key.dst_qp) && qps.insert(flow.reverse.dst_qp));
            assert_eq!(flow.key.dst_port, Some(4791));
        }
        assert_eq!((flows[4].src, flows[4].dst), (HostId(2), HostId(0)));
        assert_eq!((flows[6].src, flows[6].dst, flows[6].edge), (HostId(3), HostId(2), 2));
    }

    #[test]
    fn a_new_job_leaves_the_keys_of_earlier_jobs_alone() {
        let topology = fabric();
        let before = flows(&topology, &[job(0, &[0, 2], 2)]).unwrap();
        let after = flows(&topology, &[job(0, &[0, 2], 2), job(1, &[1, 3], 1)]).unwrap();
        assert_eq!(after[..before.len()], before);
    }

    #[test]
    fn over_tcp_every_edge_has_a_port_of_its_own_and_answers_come_from_it() {
        let topology = fabric();
        let tcp = |first_port| {
            ring_flows_over(
                &topology,
                &job(0, &[0, 2, 3], 2),
                FlowId(7),
                Transport::Tcp { first_port },
            )
        };
        let flows = tcp(6000).unwrap();
        let ports: Vec<_> = flows.iter().map(|flow| flow.key.dst_port.unwrap()).collect();
        assert_eq!(ports, [6000, 6001, 6002, 6003, 6004, 6005]);
        for flow in &flows {
            assert_eq!((flow.key.protocol, flow.key.src_port, flow.key.dst_qp), (6, None, None));
            assert_eq!((flow.reverse.src_port, flow.reverse.dst_port), (flow.key.dst_port, None));
            assert_eq!((flow.key.src, flow.key.dst), (flow.reverse.dst, flow.reverse.src));
        }
        assert!(tcp(65_530).is_ok());
        for bad in [0, 65_531] {
            assert!(tcp(bad).unwrap_err().to_string().contains("6 TCP ports"), "{bad}");
        }
    }

    #[test]
    fn rings_that_make_no_sense_are_refused_with_the_job() {
        let topology = fabric();
        let refuse = |job: Job| flows(&topology, &[job]).unwrap_err().to_string();
        assert!(refuse(job(0, &[1], 1)).contains("at least 2 hosts"));
        assert!(refuse(job(0, &[0, 9], 1)).contains("host number 9"));
        assert!(refuse(job(0, &[0, 1, 0], 1)).contains("'h1' twice"));
        assert!(refuse(job(0, &[0, 1], 0)).contains("channels 0"));
        let many: Vec<Job> = (0..70).map(|id| job(id, &[0, 1], u16::MAX)).collect();
        assert!(matches!(flows(&topology, &many), Err(FlowError::TooManyFlows { .. })));
    }
}
