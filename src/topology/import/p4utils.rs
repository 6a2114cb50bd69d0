//! `topology.json` as Mininet users of P4 write it: the P4 tutorials' and p4-utils' basic form.
//!
//! In: `{"hosts": ..., "switches": ..., "links": [[a, b, ...], ...]}`, alone or under a key `topology`. Out: a fabric.
//! Must not know: jobs.
//!
//! Hosts and switches are lists of names or objects keyed by name; hosts may give `ip` (a prefix length is ignored) and
//! `mac`. A link end is a name or `s1-p3` (port 3). After the ends come delay (milliseconds, or text such as `"2ms"`)
//! and bandwidth (Mb/s), or one object with `delay` and `bw`. Tiers are distances from the hosts.

use super::locate::{Step, locate};
use super::{ImportError, ImportProblem, Imported, MAX_NODES, good_name, read_port, split_port};
use crate::id::PortNo;
use crate::time::Span;
use crate::topology::generate::{DEFAULT_DELAY, MAX_HOSTS_PER_LEAF};
use crate::topology::suggest::hint;
use crate::topology::{Cable, MAX_PORT, Node, NodeKind, Topology, address};
use crate::units::BitRate;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// What a `topology.json` may leave open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct P4Utils {
    /// Rate of host cables without bandwidth.
    pub host_link: BitRate,
    /// Rate of cables between switches without bandwidth.
    pub fabric_link: BitRate,
    /// Delay of cables without one.
    pub delay: Span,
}

impl Default for P4Utils {
    fn default() -> Self {
        let rate = BitRate(25_000_000_000);
        Self { host_link: rate, fabric_link: rate, delay: DEFAULT_DELAY }
    }
}

/// Largest delay and bandwidth that are believed: 10 s and 100 Tb/s.
const MAX_DELAY_MS: f64 = 10_000.0;
const MAX_MBPS: f64 = 1e8;

/// Reads a `topology.json`.
///
/// # Errors
/// [`ImportError`] with line and column of the element.
pub fn p4utils(bytes: &[u8], file: &str, options: &P4Utils) -> Result<Imported, ImportError> {
    let whole = |problem| ImportError {
        file: file.to_owned(),
        line: 0,
        column: 0,
        problem: Box::new(problem),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| whole(ImportProblem::NotText))?;
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (line, column) = (error.line() as u64, error.column() as u64);
        // The place stands in front of the message already.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
        let message = message.to_owned();
        ImportError {
            file: file.to_owned(),
            line,
            column,
            problem: Box::new(ImportProblem::Json { message }),
        }
    })?;
    let mut reader = Reader { text, file, options, prefix: None, assumed_rates: 0 };
    let root = reader.root(&value)?;
    let hosts = reader.names(root, "hosts")?;
    let switches = reader.names(root, "switches")?;
    if hosts.len() + switches.len() > MAX_NODES {
        return Err(whole(ImportProblem::TooLarge { max: MAX_NODES }));
    }
    let cables = reader.links(root, &hosts, &switches)?;
    let nodes = reader.nodes(&hosts, &switches, &cables)?;
    let topology = Topology::build(nodes, &cables).map_err(|error| whole(error.into()))?;
    let mut notes = Vec::new();
    if reader.assumed_rates > 0 {
        notes.push(format!(
            "{} of {} links have no bandwidth: assumed {} to hosts and {} between switches",
            reader.assumed_rates,
            cables.len(),
            options.host_link,
            options.fabric_link
        ));
    }
    Ok(Imported { topology, notes })
}

/// Names with their attributes, in the order of the file.
type Named<'a> = Vec<(&'a str, Option<&'a Map<String, Value>>)>;

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    options: &'a P4Utils,
    prefix: Option<&'static str>,
    assumed_rates: usize,
}

impl<'a> Reader<'a> {
    fn at(&self, way: &[Step<'_>], problem: ImportProblem) -> ImportError {
        let mut whole: Vec<Step<'_>> = self.prefix.map(Step::Key).into_iter().collect();
        whole.extend_from_slice(way);
        let (line, column) = locate(self.text, &whole);
        ImportError { file: self.file.to_owned(), line, column, problem: Box::new(problem) }
    }

    fn root(&mut self, value: &'a Value) -> Result<&'a Map<String, Value>, ImportError> {
        let wrong = |element: &str| ImportProblem::WrongType {
            element: element.to_owned(),
            wanted: "an object with hosts, switches and links",
        };
        let root = value.as_object().ok_or_else(|| self.at(&[], wrong("the file")))?;
        match root.get("topology") {
            None => Ok(root),
            Some(inner) => {
                self.prefix = Some("topology");
                inner.as_object().ok_or_else(|| self.at(&[], wrong("'topology'")))
            }
        }
    }

    fn need(
        &self,
        root: &'a Map<String, Value>,
        key: &'static str,
    ) -> Result<&'a Value, ImportError> {
        root.get(key).ok_or_else(|| {
            let element = self.prefix.map_or("the file", |_| "'topology'").to_owned();
            self.at(&[], ImportProblem::MissingKey { element, key })
        })
    }

    fn names(
        &self,
        root: &'a Map<String, Value>,
        key: &'static str,
    ) -> Result<Named<'a>, ImportError> {
        let wrong = || ImportProblem::WrongType {
            element: format!("'{key}'"),
            wanted: "a list of names or an object keyed by name",
        };
        let named: Named<'a> = match self.need(root, key)? {
            Value::Object(map) => {
                map.iter().map(|(name, value)| (name.as_str(), value.as_object())).collect()
            }
            Value::Array(list) => {
                let mut named = Named::new();
                for (i, value) in list.iter().enumerate() {
                    let way = [Step::Key(key), Step::Index(i)];
                    let name = value.as_str().ok_or_else(|| self.at(&way, wrong()))?;
                    named.push((name, None));
                }
                named
            }
            _ => return Err(self.at(&[Step::Key(key)], wrong())),
        };
        match named.iter().find(|(name, _)| !good_name(name)) {
            None => Ok(named),
            Some((name, _)) => {
                let shown = name.chars().take(80).collect();
                Err(self
                    .at(&[Step::Key(key), Step::Key(name)], ImportProblem::BadName { name: shown }))
            }
        }
    }

    fn links(
        &mut self,
        root: &'a Map<String, Value>,
        hosts: &Named<'a>,
        switches: &Named<'a>,
    ) -> Result<Vec<Cable>, ImportError> {
        let wrong = |element: String| ImportProblem::WrongType {
            element,
            wanted: "a list [end, end], perhaps with delay and bandwidth",
        };
        let list = self
            .need(root, "links")?
            .as_array()
            .ok_or_else(|| self.at(&[Step::Key("links")], wrong("'links'".to_owned())))?;
        let kind: BTreeMap<&str, bool> = (hosts.iter().map(|(name, _)| (*name, true)))
            .chain(switches.iter().map(|(name, _)| (*name, false)))
            .collect();
        let mut cables = Vec::with_capacity(list.len());
        for (i, link) in list.iter().enumerate() {
            let element = format!("links[{i}]");
            let way = [Step::Key("links"), Step::Index(i)];
            let parts = link.as_array().filter(|parts| (2..=4).contains(&parts.len()));
            let parts = parts.ok_or_else(|| self.at(&way, wrong(element.clone())))?;
            let (a, a_port, a_host) = self.end(&parts[0], i, 0, &kind)?;
            let (b, b_port, b_host) = self.end(&parts[1], i, 1, &kind)?;
            let (delay, rate) = self.quantities(&parts[2..], i)?;
            let default =
                if a_host || b_host { self.options.host_link } else { self.options.fabric_link };
            self.assumed_rates += usize::from(rate.is_none());
            cables.push(Cable {
                a,
                a_port,
                b,
                b_port,
                rate: rate.unwrap_or(default),
                delay: delay.unwrap_or(self.options.delay),
            });
        }
        Ok(cables)
    }

    /// One end of a link: name, port, and whether it is a host. Port numbers of hosts are ignored: one NIC each.
    fn end(
        &self,
        value: &Value,
        link: usize,
        end: usize,
        kind: &BTreeMap<&str, bool>,
    ) -> Result<(String, Option<PortNo>, bool), ImportError> {
        let way = [Step::Key("links"), Step::Index(link), Step::Index(end)];
        let element = format!("links[{link}][{end}]");
        let Some(text) = value.as_str() else {
            let wanted = "a name such as \"h1\" or \"s1-p3\"";
            return Err(self.at(&way, ImportProblem::WrongType { element, wanted }));
        };
        if let Some(&host) = kind.get(text) {
            return Ok((text.to_owned(), None, host));
        }
        let (name, port) = split_port(text);
        let Some(&host) = kind.get(name) else {
            let near = hint(name, kind.keys().copied());
            let hint =
                if near.is_empty() { "; declare it or correct the link".to_owned() } else { near };
            let name = name.chars().take(80).collect();
            return Err(self.at(&way, ImportProblem::UnknownNode { element, name, hint }));
        };
        match port.map(|port| (port, read_port(port))) {
            Some((_, Some(port))) if !host => Ok((name.to_owned(), Some(port), host)),
            Some((port, None)) if !host => {
                let text = port.chars().take(80).collect();
                Err(self.at(&way, ImportProblem::BadPort { element, text, max: MAX_PORT }))
            }
            _ => Ok((name.to_owned(), None, host)),
        }
    }

    /// Delay and bandwidth after the two ends.
    fn quantities(
        &self,
        rest: &[Value],
        link: usize,
    ) -> Result<(Option<Span>, Option<BitRate>), ImportError> {
        let (delay, bandwidth) = match rest {
            [Value::Object(map)] => (map.get("delay"), map.get("bw")),
            _ => (rest.first(), rest.get(1)),
        };
        let bad = |what, value: &Value, example| {
            let way = [Step::Key("links"), Step::Index(link)];
            let text = value.to_string().chars().take(80).collect();
            let element = format!("links[{link}]");
            self.at(&way, ImportProblem::BadQuantity { element, what, text, example })
        };
        let delay = match delay {
            None => None,
            Some(value) => Some(read_delay(value).ok_or_else(|| {
                bad("the delay", value, "milliseconds as a number, or text such as \"2ms\"")
            })?),
        };
        let rate = match bandwidth {
            None => None,
            Some(value) => Some(
                read_number(value)
                    .filter(|&mbps| mbps > 0.0 && mbps <= MAX_MBPS)
                    .map(|mbps| BitRate((mbps * 1e6).round() as u64))
                    .ok_or_else(|| {
                        bad("the bandwidth", value, "a number of Mb/s above 0, such as 1000")
                    })?,
            ),
        };
        Ok((delay, rate))
    }

    fn nodes(
        &self,
        hosts: &Named<'a>,
        switches: &Named<'a>,
        cables: &[Cable],
    ) -> Result<Vec<Node>, ImportError> {
        let tiers = tiers(hosts, switches, cables);
        let mut nodes: Vec<Node> = Vec::new();
        for ((name, _), tier) in switches.iter().zip(tiers) {
            nodes.push(Node { name: (*name).to_owned(), kind: NodeKind::Switch { tier } });
        }
        let index: BTreeMap<&str, usize> =
            switches.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
        let mut leaf_of: BTreeMap<&str, usize> = BTreeMap::new();
        for cable in cables {
            for (a, b) in [(&cable.a, &cable.b), (&cable.b, &cable.a)] {
                if let Some(&leaf) = index.get(b.as_str()) {
                    leaf_of.entry(a).or_insert(leaf);
                }
            }
        }
        let mut at_leaf = vec![0_u32; switches.len() + 1];
        for (name, attributes) in hosts {
            // A host without a cable gets an address too; `Topology::build` will say that the cable is missing.
            let leaf = leaf_of.get(name).copied().unwrap_or(switches.len());
            at_leaf[leaf] += 1;
            let way = [Step::Key("hosts"), Step::Key(name)];
            let rack = switches.get(leaf).map_or("(none)", |(name, _)| name).to_owned();
            let full = || ImportProblem::RackFull { rack, max: MAX_HOSTS_PER_LEAF };
            let number = u8::try_from(at_leaf[leaf]).ok().filter(|&n| n < 255);
            let number = number.ok_or_else(|| self.at(&way, full()))?;
            let made = address(u16::try_from(leaf + 1).unwrap_or(u16::MAX), number);
            let (ip, mac) = self.addresses(name, *attributes, made)?;
            nodes.push(Node { name: (*name).to_owned(), kind: NodeKind::Host { ip, mac } });
        }
        Ok(nodes)
    }

    fn addresses(
        &self,
        name: &str,
        attributes: Option<&Map<String, Value>>,
        made: (Ipv4Addr, [u8; 6]),
    ) -> Result<(Ipv4Addr, [u8; 6]), ImportError> {
        let get = |key: &str| attributes.and_then(|map| map.get(key));
        let bad = |key, value: &Value, what, example| {
            let way = [Step::Key("hosts"), Step::Key(name), Step::Key(key)];
            let text = value.to_string().chars().take(80).collect();
            let element = format!("host '{name}'");
            self.at(&way, ImportProblem::BadAddress { element, text, what, example })
        };
        let ip = match get("ip") {
            None => made.0,
            Some(value) => value
                .as_str()
                .and_then(|text| text.split('/').next()?.parse().ok())
                .ok_or_else(|| bad("ip", value, "IPv4 address", "10.0.1.1/24"))?,
        };
        let mac = match get("mac") {
            None => made.1,
            Some(value) => value
                .as_str()
                .and_then(read_mac)
                .ok_or_else(|| bad("mac", value, "Ethernet address", "08:00:00:00:01:11"))?,
        };
        Ok((ip, mac))
    }
}

fn read_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut mac {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    // Group addresses cannot be a source.
    (parts.next().is_none() && mac[0] & 1 == 0).then_some(mac)
}

fn read_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn read_delay(value: &Value) -> Option<Span> {
    if let Some(ms) = read_number(value) {
        return (0.0..=MAX_DELAY_MS).contains(&ms).then(|| Span::from_secs_f64(ms / 1e3));
    }
    let span: Span = value.as_str()?.parse().ok()?;
    (span.as_secs_f64() * 1e3 <= MAX_DELAY_MS).then_some(span)
}

/// Distance of each switch from the nearest host, less one.
fn tiers(hosts: &Named<'_>, switches: &Named<'_>, cables: &[Cable]) -> Vec<u8> {
    let index: BTreeMap<&str, usize> =
        switches.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
    let is_host: std::collections::BTreeSet<&str> = hosts.iter().map(|(name, _)| *name).collect();
    let mut neighbours = vec![Vec::new(); switches.len()];
    let mut tier: Vec<Option<u8>> = vec![None; switches.len()];
    let mut queue = VecDeque::new();
    for cable in cables {
        for (a, b) in [(&cable.a, &cable.b), (&cable.b, &cable.a)] {
            let Some(&at) = index.get(a.as_str()) else { continue };
            if let Some(&next) = index.get(b.as_str()) {
                neighbours[at].push(next);
            } else if is_host.contains(b.as_str()) && tier[at].is_none() {
                tier[at] = Some(0);
                queue.push_back(at);
            }
        }
    }
    while let Some(at) = queue.pop_front() {
        let next_tier = tier[at].unwrap_or(0).saturating_add(1);
        for &next in &neighbours[at] {
            if tier[next].is_none() {
                tier[next] = Some(next_tier);
                queue.push_back(next);
            }
        }
    }
    tier.into_iter().map(|tier| tier.unwrap_or(u8::MAX)).collect()
}
