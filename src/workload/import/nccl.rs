//! Ring order and network devices from NCCL's debug log.
//!
//! In: logs of all processes of a job. Out: one [`RingJob`]. Must not know: what the job computes or how much it sends (the log does not say).
//!
//! Read are, after `host:pid:tid [device] NCCL INFO`: `Ring 00 : 7 -> 0 -> 1` (one line per rank and channel, subsystem GRAPH),
//! `Channel 00/0 : 7[7] -> 8[0] [send] via NET/IB/1` and `NET/IB : Using [0]mlx5_0:1/RoCE … OOB eth0:10.0.0.1<0>` (source: NCCL
//! `src/init.cc`, `src/transport/net.cc`). A process that makes several communicators prints its rings once for each, in order; the n-th
//! time is taken to be the same communicator in every process. Everything else is passed over.

use super::{ImportError, ImportProblem, MAX_CHANNELS, MAX_GPUS, RingJob};
use std::collections::{BTreeMap, BTreeSet};

/// Most ranks of a job: above any that has been trained.
pub const MAX_RANKS: u32 = 1 << 20;

/// Where something was said.
#[derive(Clone, Copy, Debug)]
struct Place<'a> {
    file: &'a str,
    line: u64,
    column: u64,
}

impl Place<'_> {
    fn fail(self, problem: ImportProblem) -> ImportError {
        ImportError { file: self.file.to_owned(), line: self.line, column: self.column, problem }
    }
}

/// One `Ring` line.
struct Edge<'a> {
    host: &'a str,
    next: u32,
    place: Place<'a>,
}

/// Host, process and device: a rank of each communicator.
type Speaker<'a> = (&'a str, &'a str, &'a str);

/// What the logs say.
#[derive(Default)]
struct Read<'a> {
    /// By communicator, channel, rank.
    rings: BTreeMap<usize, BTreeMap<u32, BTreeMap<u32, Edge<'a>>>>,
    /// How often a process has said a channel for a device: which communicator it is at. Its rank may differ from one to the next.
    said: BTreeMap<(Speaker<'a>, u32), usize>,
    addresses: BTreeSet<(&'a str, &'a str, &'a str)>,
    devices: BTreeSet<(&'a str, u32)>,
}

/// Reads logs: (name, bytes) each. `communicator` chooses one where processes have several.
///
/// # Errors
/// [`ImportError`] with line and column.
pub fn nccl(logs: &[(&str, &[u8])], communicator: usize) -> Result<RingJob, ImportError> {
    let mut read = Read::default();
    for &(file, bytes) in logs {
        for (line, text) in (1..).zip(super::text(bytes, file)?.lines()) {
            read.line(Place { file, line, column: 1 }, text)?;
        }
    }
    let names: Vec<&str> = logs.iter().map(|(file, _)| *file).collect();
    let names = names.join(", ");
    let whole = Place { file: &names, line: 0, column: 0 };
    let count = read.rings.len();
    if count == 0 {
        return Err(whole.fail(ImportProblem::NoRings));
    }
    let rings = read.rings.get(&communicator);
    let rings = rings.ok_or_else(|| whole.fail(ImportProblem::NoCommunicator { count }))?;
    let mut job = job(rings, whole)?;
    if count > 1 {
        job.notes
            .push(format!("{count} communicators are in the logs; this is number {communicator}"));
    }
    let inside = |host: &&str| job.hosts.iter().any(|known| known == *host);
    let owned = |&(host, name, address): &(&str, &str, &str)| {
        (host.to_owned(), name.to_owned(), address.to_owned())
    };
    job.addresses = read.addresses.iter().filter(|(host, _, _)| inside(host)).map(owned).collect();
    job.devices = read
        .devices
        .iter()
        .filter(|(host, _)| inside(host))
        .map(|&(host, device)| (host.to_owned(), device))
        .collect();
    Ok(job)
}

impl<'a> Read<'a> {
    fn line(&mut self, place: Place<'a>, text: &'a str) -> Result<(), ImportError> {
        let Some((before, message)) = text.split_once("NCCL INFO ") else { return Ok(()) };
        let message = message.trim_end();
        if let Some(ring) = message.strip_prefix("Ring ") {
            return self.ring(place, text, before, ring);
        }
        let Some((host, _, _)) = process(before) else { return Ok(()) };
        if let Some(device) = message.strip_prefix("Channel ").and_then(sent_by) {
            self.devices.insert((host, device));
        }
        if let Some(using) = message.strip_prefix("NET/") {
            self.addresses.extend(out_of_band(using).map(|(name, address)| (host, name, address)));
        }
        Ok(())
    }

    /// `NN : previous -> rank -> next`.
    fn ring(
        &mut self,
        place: Place<'a>,
        text: &'a str,
        before: &'a str,
        ring: &'a str,
    ) -> Result<(), ImportError> {
        let column = |part: &str| part.as_ptr() as u64 - text.as_ptr() as u64 + 1;
        let number = |part: &'a str| {
            let part = part.trim();
            let place = Place { column: column(part), ..place };
            let value: u64 = part.parse().map_err(|_| {
                let text = part.chars().take(40).collect();
                place.fail(ImportProblem::BadRank { text })
            })?;
            match u32::try_from(value).ok().filter(|rank| *rank < MAX_RANKS) {
                Some(rank) => Ok(rank),
                None => {
                    Err(place.fail(ImportProblem::TooLarge { rank: value, max: MAX_RANKS - 1 }))
                }
            }
        };
        // "Ring" may begin other messages of other versions; those have no arrows.
        let Some((channel, edge)) = ring.split_once(':').filter(|(_, edge)| edge.contains("->"))
        else {
            return Ok(());
        };
        let mut parts = edge.split("->");
        let (Some(_previous), Some(rank), Some(next), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            let text = edge.trim().chars().take(40).collect();
            return Err(Place { column: column(edge.trim()), ..place }
                .fail(ImportProblem::BadRank { text }));
        };
        let place_of_channel = Place { column: column(channel.trim()), ..place };
        let (channel, rank, next) = (number(channel)?, number(rank)?, number(next)?);
        if channel >= MAX_CHANNELS {
            let (value, max) = (u64::from(channel), u64::from(MAX_CHANNELS - 1));
            let problem = ImportProblem::TooMuch { what: "channel", value, max };
            return Err(place_of_channel.fail(problem));
        }
        let speaker = process(before).ok_or_else(|| place.fail(ImportProblem::NoHost))?;
        let (host, _, _) = speaker;
        let said = self.said.entry((speaker, channel)).or_default();
        let communicator = *said;
        *said += 1;
        let edges = self.rings.entry(communicator).or_default().entry(channel).or_default();
        let edge = Edge { host, next, place };
        if let Some(other) =
            edges.get(&rank).filter(|other| other.next != next || other.host != host)
        {
            let elsewhere = format!("{}:{}", other.place.file, other.place.line);
            let problem = ImportProblem::Contradiction {
                channel,
                rank,
                now: next,
                before: other.next,
                elsewhere,
            };
            return Err(place.fail(problem));
        }
        edges.insert(rank, edge);
        Ok(())
    }
}

/// Host, process and device of `… host:pid:tid [device] `; an empty device if none stands there.
fn process(before: &str) -> Option<Speaker<'_>> {
    let mut words = before.split_whitespace().rev().peekable();
    let device = words.next_if(|word| word.starts_with('[')).unwrap_or("");
    let word = words.next()?;
    let mut parts = word.rsplitn(3, ':');
    let (thread, pid, host) = (parts.next()?, parts.next()?, parts.next()?);
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (numeric(thread) && numeric(pid) && !host.is_empty()).then_some((host, pid, device))
}

/// The network device of `00/0 : 7[7] -> 8[0] [send] via NET/IB/1/…`, if the edge leaves the host.
fn sent_by(channel: &str) -> Option<u32> {
    let (_, via) = channel.split_once("[send] via NET/")?;
    via.split('/').nth(1)?.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

/// Interfaces and addresses of `IB : Using … OOB eth0:10.0.0.1<0>` and `Socket : Using [0]eth0:10.0.0.1<0>`.
fn out_of_band(using: &str) -> impl Iterator<Item = (&str, &str)> {
    using.split_whitespace().filter_map(|word| {
        let word = word.rsplit(']').next()?;
        let (name, rest) = word.split_once(':')?;
        let (address, _) = rest.split_once('<')?;
        address.parse::<std::net::IpAddr>().ok()?;
        Some((name, address))
    })
}

type Edges<'a> = BTreeMap<u32, Edge<'a>>;

/// Hosts of one channel in ring order from rank 0's on, and ranks per host.
fn hosts<'a>(
    channel: u32,
    edges: &Edges<'a>,
    whole: Place<'_>,
) -> Result<(Vec<&'a str>, u32), ImportError> {
    let wanted: BTreeSet<u32> = edges.iter().flat_map(|(rank, edge)| [*rank, edge.next]).collect();
    if let Some(&rank) = wanted.iter().find(|rank| !edges.contains_key(rank)) {
        let (known, wanted) = (edges.len(), wanted.len());
        return Err(whole.fail(ImportProblem::MissingRank { channel, rank, known, wanted }));
    }
    let first = edges.keys().next().copied().unwrap_or(0);
    let mut order = Vec::with_capacity(edges.len());
    let mut rank = first;
    while let Some(edge) = edges.get(&rank).filter(|_| order.len() < edges.len()) {
        order.push(edge.host);
        rank = edge.next;
        if rank == first {
            break;
        }
    }
    if order.len() != edges.len() || rank != first {
        let (length, ranks) = (order.len(), edges.len());
        return Err(whole.fail(ImportProblem::Broken { channel, length, ranks }));
    }
    // The ring may begin in the middle of a host.
    let around = order.iter().rev().take_while(|host| **host == order[0]).count();
    if around < order.len() {
        order.rotate_right(around);
    }
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for host in order {
        match runs.last_mut().filter(|run| run.0 == host) {
            Some(run) => run.1 += 1,
            None => runs.push((host, 1)),
        }
    }
    check(&runs, whole)?;
    let ranks = u32::try_from(runs[0].1).unwrap_or(MAX_RANKS);
    Ok((runs.into_iter().map(|(host, _)| host).collect(), ranks))
}

fn check(runs: &[(&str, usize)], whole: Place<'_>) -> Result<(), ImportError> {
    let mut seen = BTreeSet::new();
    if let Some((host, _)) = runs.iter().find(|(host, _)| !seen.insert(*host)) {
        return Err(whole.fail(ImportProblem::HostTwice { host: (*host).to_owned() }));
    }
    let (first, there) = runs[0];
    if runs.len() == 1 {
        return Err(whole.fail(ImportProblem::OneHost { host: first.to_owned() }));
    }
    match runs.iter().find(|(_, here)| *here != there) {
        None => Ok(()),
        Some(&(host, here)) => {
            let (host, first) = (host.to_owned(), first.to_owned());
            Err(whole.fail(ImportProblem::Uneven { host, here, first, there }))
        }
    }
}

/// The order of hosts that most channels have.
fn job(rings: &BTreeMap<u32, Edges<'_>>, whole: Place<'_>) -> Result<RingJob, ImportError> {
    let mut orders: BTreeMap<(Vec<&str>, u32), Vec<u32>> = BTreeMap::new();
    for (&channel, edges) in rings {
        orders.entry(hosts(channel, edges, whole)?).or_default().push(channel);
    }
    let most =
        orders.iter().max_by_key(|(_, channels)| (channels.len(), std::cmp::Reverse(channels[0])));
    let Some(((hosts, ranks), channels)) = most else {
        return Err(whole.fail(ImportProblem::NoRings));
    };
    if *ranks > MAX_GPUS {
        let (value, max) = (u64::from(*ranks), u64::from(MAX_GPUS));
        let what = "the number of ranks on a host,";
        return Err(whole.fail(ImportProblem::TooMuch { what, value, max }));
    }
    let mut notes = Vec::new();
    for ((other, _), left) in orders.iter().filter(|(_, other)| *other != channels) {
        notes.push(format!(
            "channels {left:?} go around as {}, which is left out: all channels of a job share one order",
            other.join(" ")
        ));
    }
    Ok(RingJob {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        ranks_per_host: *ranks,
        channels: u16::try_from(channels.len()).unwrap_or(u16::MAX),
        addresses: Vec::new(),
        devices: Vec::new(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two hosts of two ranks, two channels; ring 0 1 2 3, with rank 0 in the middle of its host's part in channel 1.
    fn log() -> String {
        let mut text = String::from(
            "something else\nn1:10:10 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n",
        );
        let hosts = ["n1:10:11 [0]", "n1:11:12 [1]", "n2:20:21 [0]", "n2:21:22 [1]"];
        for channel in 0..2 {
            let order: [usize; 4] = if channel == 0 { [0, 1, 2, 3] } else { [1, 0, 3, 2] };
            for at in 0..4 {
                let (previous, rank, next) = (order[(at + 3) % 4], order[at], order[(at + 1) % 4]);
                text += &format!(
                    "{} NCCL INFO Ring {channel:02} : {previous} -> {rank} -> {next}\n",
                    hosts[rank]
                );
            }
        }
        text += "n1:11:12 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/3/GDRDMA\n";
        text +=
            "n2:20:21 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [receive] via NET/IB/0/GDRDMA\n";
        text += "n1:10:11 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n";
        text += "n2:20:21 [0] NCCL INFO NET/Socket : Using [0]eth1:10.0.0.2<0>\n";
        text
    }

    fn read(text: &str) -> Result<RingJob, ImportError> {
        nccl(&[("job.log", text.as_bytes())], 0)
    }

    fn refused(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn rings_devices_and_addresses_are_read() {
        let job = read(&log()).unwrap();
        assert_eq!(job.hosts, ["n1", "n2"]);
        assert_eq!((job.ranks_per_host, job.channels), (2, 2));
        assert_eq!(job.devices, [("n1".to_owned(), 3)]);
        let address =
            |host: &str, name: &str, ip: &str| (host.to_owned(), name.to_owned(), ip.to_owned());
        assert_eq!(
            job.addresses,
            [address("n1", "eth0", "10.0.0.1"), address("n2", "eth1", "10.0.0.2")]
        );
        assert!(job.notes.is_empty());
    }

    #[test]
    fn logs_of_several_processes_with_dates_in_front_come_together() {
        let one = "[2026-11-01 10:00:00] a:1:2 [0] NCCL INFO Ring 00 : 2 -> 0 -> 1\n";
        let two = "[2026-11-01 10:00:00] b:1:2 [0] NCCL INFO Ring 00 : 0 -> 1 -> 2\r\nc:1:2 [0] NCCL INFO Ring 00 : 1 -> 2 -> 0\n";
        let job = nccl(&[("1.log", one.as_bytes()), ("2.log", two.as_bytes())], 0).unwrap();
        assert_eq!(job.hosts, ["a", "b", "c"]);
        let missing = nccl(&[("1.log", one.as_bytes())], 0).unwrap_err().to_string();
        assert!(
            missing.starts_with("1.log: channel 0: rank 1 has no line of its own"),
            "{missing}"
        );
    }

    #[test]
    fn a_second_communicator_is_told_apart() {
        let line = |host: &str, rank: u32, next: u32| {
            format!("{host}:1:2 [0] NCCL INFO Ring 00 : 0 -> {rank} -> {next}\n")
        };
        let first = line("a", 0, 1) + &line("b", 1, 2) + &line("c", 2, 0);
        let second = line("a", 0, 2) + &line("b", 1, 0) + &line("c", 2, 1);
        let text = first + &second;
        assert_eq!(read(&text).unwrap().hosts, ["a", "b", "c"]);
        let other = nccl(&[("x", text.as_bytes())], 1).unwrap();
        assert_eq!(other.hosts, ["a", "c", "b"]);
        assert!(other.notes[0].contains("2 communicators"));
        let none = nccl(&[("x", text.as_bytes())], 2).unwrap_err().to_string();
        assert!(none.contains("the highest communicator is 1"), "{none}");
    }

    #[test]
    fn a_process_may_have_another_rank_in_another_communicator_and_several_devices() {
        let line = |device: u32, rank: u32, next: u32| {
            format!("a:1:9 [{device}] NCCL INFO Ring 00 : 0 -> {rank} -> {next}\n")
        };
        let other = |rank: u32, next: u32| {
            format!(
                "b:7:9 [0] NCCL INFO Ring 00 : 0 -> {rank} -> {next}\nb:7:9 [1] NCCL INFO Ring 00 : 0 -> {} -> {}\n",
                rank + 1,
                (next + 1) % 4
            )
        };
        // The world: ranks 0 and 1 in one process on a, 2 and 3 on b. Then the same four, numbered the other way round.
        let world = line(0, 0, 1) + &line(1, 1, 2) + &other(2, 3);
        let again = line(0, 2, 3) + &line(1, 3, 0) + &other(0, 1);
        let text = world + &again;
        assert_eq!(read(&text).unwrap().hosts, ["a", "b"]);
        let second = nccl(&[("x", text.as_bytes())], 1).unwrap();
        assert_eq!((second.hosts.join(" "), second.ranks_per_host), ("b a".to_owned(), 2));
    }

    #[test]
    fn channels_in_another_order_are_left_out_and_said() {
        let line = |host: &str, channel: u32, rank: u32, next: u32| {
            format!("{host}:1:2 [0] NCCL INFO Ring {channel:02} : 0 -> {rank} -> {next}\n")
        };
        let mut text = String::new();
        for channel in [0, 1] {
            text +=
                &(line("a", channel, 0, 1) + &line("b", channel, 1, 2) + &line("c", channel, 2, 0));
        }
        text += &(line("a", 2, 0, 2) + &line("b", 2, 1, 0) + &line("c", 2, 2, 1));
        let job = read(&text).unwrap();
        assert_eq!((job.hosts.join(" "), job.channels), ("a b c".to_owned(), 2));
        assert!(job.notes[0].contains("channels [2] go around as a c b"), "{:?}", job.notes);
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_line_and_column() {
        let ring = |text: &str| format!("\na:1:2 [0] NCCL INFO Ring {text}\n");
        assert!(refused("").contains("NCCL_DEBUG_SUBSYS"));
        assert!(
            refused(&ring("00 : 1 -> x -> 1")).starts_with("job.log:2:36: 'x' is no rank"),
            "{}",
            refused(&ring("00 : 1 -> x -> 1"))
        );
        assert!(refused(&ring("00 : 1 -> 0")).contains("is no rank"));
        assert!(refused(&ring("00 : 1 -> 0 -> 5000000")).contains("above"));
        assert!(
            refused(&ring("64 : 1 -> 0 -> 1")).starts_with("job.log:2:26: channel 64 is above 63"),
            "{}",
            refused(&ring("64 : 1 -> 0 -> 1"))
        );
        assert!(
            refused("NCCL INFO Ring 00 : 1 -> 0 -> 1").starts_with("job.log:1:1: no 'host:pid:tid")
        );
        let twice = |second: &str| {
            format!(
                "a:1:2 [0] NCCL INFO Ring 00 : 1 -> 0 -> 1\nb:1:2 [0] NCCL INFO Ring 00 : {second}\n"
            )
        };
        assert!(
            refused(&twice("1 -> 0 -> 2"))
                .contains("job.log:2:1: channel 0: rank 0 sends to 2 here, and to 1 in job.log:1")
        );
        let rings = |edges: &[(&str, u32, u32)]| -> String {
            edges
                .iter()
                .map(|(host, rank, next)| {
                    format!("{host}:{rank}:2 [0] NCCL INFO Ring 00 : 0 -> {rank} -> {next}\n")
                })
                .collect()
        };
        assert!(
            refused(&rings(&[("a", 0, 1), ("b", 1, 0), ("c", 2, 3), ("d", 3, 2)]))
                .contains("after 2 of 4 ranks")
        );
        assert!(
            refused(&rings(&[("a", 0, 1), ("b", 1, 2), ("a", 2, 3), ("b", 3, 0)]))
                .contains("comes back to it")
        );
        assert!(
            refused(&rings(&[("a", 0, 1), ("a", 1, 2), ("b", 2, 0)]))
                .contains("'b' has 1 ranks and 'a' has 2")
        );
        assert!(
            refused(&rings(&[("a", 0, 1), ("a", 1, 0)])).contains("nothing crosses the network")
        );
        assert!(
            nccl(&[("bin", b"x\n\xff")], 0)
                .unwrap_err()
                .to_string()
                .starts_with("bin:2: not UTF-8")
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(a:1:2 \\[0\\] NCCL INFO (Ring|Channel|NET/IB) ?[0-9]{0,3} ?: ?[-0-9>a \\[\\]/]{0,20}\n|\\PC{0,30}\n){0,8}") {
            let _ = read(&text);
        }
    }
}
