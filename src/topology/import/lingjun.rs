//! `topo.csv` of the Alibaba Lingjun dataset 2023: one row per host, `ip,DSW,PSW,ASW` (all hashed or shortened).
//!
//! In: the CSV. Out: a three-layer Clos. Must not know: jobs.
//!
//! ASW names repeat under different PSW names, so a rack is the pair (PSW, ASW). The file has neither link rates nor the
//! number of parallel links; both are options, and the notes say so. Parallel links of a rack are read as one link to
//! each of as many physical switches behind the PSW name (`P10.1`, `P10.2`...), likewise above; or they are merged into
//! one wide link (`merge`). Host names are the first twelve characters of the hash where these are unique.

use super::{ImportError, ImportProblem, Imported, MAX_NODES, good_name};
use crate::time::Span;
use crate::topology::generate::{DEFAULT_DELAY, MAX_HOSTS_PER_LEAF};
use crate::topology::{Cable, Node, NodeKind, Topology, address};
use crate::units::BitRate;
use std::collections::{BTreeMap, BTreeSet};

/// What `topo.csv` does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lingjun {
    /// Rate of each host cable.
    pub host_link: BitRate,
    /// Rate of each cable between switches.
    pub fabric_link: BitRate,
    /// Propagation delay of every cable.
    pub delay: Span,
    /// Parallel links of an ASW to its PSW name.
    pub uplinks: u32,
    /// Parallel links of each PSW switch to the DSW name.
    pub core_uplinks: u32,
    /// One wide link instead of parallel ones to switches of their own.
    pub merge: bool,
}

impl Default for Lingjun {
    /// Eight hosts of 100 Gb/s below four uplinks of 200 Gb/s (1:1), and two links from each PSW switch to the core.
    fn default() -> Self {
        Self {
            host_link: BitRate(100_000_000_000),
            fabric_link: BitRate(200_000_000_000),
            delay: DEFAULT_DELAY,
            uplinks: 4,
            core_uplinks: 2,
            merge: false,
        }
    }
}

const COLUMNS: [&str; 4] = ["ip", "DSW", "PSW", "ASW"];

struct Row {
    line: u64,
    ip: String,
    dsw: String,
    rack: (String, String),
}

/// Reads a `topo.csv`.
///
/// # Errors
/// [`ImportError`] with the line and the number of the column.
pub fn lingjun(bytes: &[u8], file: &str, options: &Lingjun) -> Result<Imported, ImportError> {
    let fail = |line, column, problem| ImportError {
        file: file.to_owned(),
        line,
        column,
        problem: Box::new(problem),
    };
    for (option, value) in [("uplinks", options.uplinks), ("core_uplinks", options.core_uplinks)] {
        if value == 0 {
            return Err(fail(0, 0, ImportProblem::ZeroOption { option }));
        }
    }
    let rows = rows(bytes, &fail)?;
    let (nodes, cables) = build(&rows, options, &fail)?;
    let topology = Topology::build(nodes, &cables).map_err(|error| fail(0, 0, error.into()))?;
    Ok(Imported { notes: notes(&rows, &topology, options), topology })
}

type Fail<'a> = dyn Fn(u64, u64, ImportProblem) -> ImportError + 'a;

fn rows(bytes: &[u8], fail: &Fail<'_>) -> Result<Vec<Row>, ImportError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
        fail(line as u64, 0, ImportProblem::NotText)
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
    let csv = |error: csv::Error| {
        let line = error.position().map_or(0, csv::Position::line);
        fail(line, 0, ImportProblem::Csv { message: error.to_string() })
    };
    let header = reader.headers().map_err(csv)?.clone();
    let mut index = [0; 4];
    for (slot, column) in index.iter_mut().zip(COLUMNS) {
        *slot = header.iter().position(|name| name == column).ok_or_else(|| {
            let header = header.iter().collect::<Vec<_>>().join(",").chars().take(200).collect();
            fail(1, 0, ImportProblem::MissingColumn { column, header })
        })?;
    }
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(csv)? {
        let line = record.position().map_or(0, csv::Position::line);
        let (found, wanted) = (record.len(), header.len());
        if found != wanted {
            return Err(fail(line, 0, ImportProblem::Fields { found, wanted }));
        }
        if rows.len() >= MAX_NODES {
            return Err(fail(line, 0, ImportProblem::TooLarge { max: MAX_NODES }));
        }
        let field = |column: usize| -> Result<String, ImportError> {
            let value = record.get(index[column]).unwrap_or("");
            let at = |problem| Err(fail(line, index[column] as u64 + 1, problem));
            if value.is_empty() {
                return at(ImportProblem::Empty { column: COLUMNS[column].to_owned() });
            }
            if !good_name(value) {
                return at(ImportProblem::BadName { name: value.chars().take(80).collect() });
            }
            Ok(value.to_owned())
        };
        rows.push(Row { line, ip: field(0)?, dsw: field(1)?, rack: (field(2)?, field(3)?) });
    }
    Ok(rows)
}

/// The short name where it is unique, else the whole.
fn host_names(rows: &[Row]) -> Vec<String> {
    let short = |row: &Row| row.ip.chars().take(12).collect::<String>();
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows {
        *count.entry(short(row)).or_default() += 1;
    }
    rows.iter()
        .map(|row| if count[&short(row)] == 1 { short(row) } else { row.ip.clone() })
        .collect()
}

fn build(
    rows: &[Row],
    options: &Lingjun,
    fail: &Fail<'_>,
) -> Result<(Vec<Node>, Vec<Cable>), ImportError> {
    let mut fabric = Fabric { options, nodes: Vec::new(), cables: Vec::new() };
    // Racks, PSW and DSW names in the order in which they first occur.
    let mut racks: Vec<(&(String, String), u32)> = Vec::new();
    let mut rack_index: BTreeMap<&(String, String), usize> = BTreeMap::new();
    let mut above: Vec<(&str, &str)> = Vec::new();
    let mut above_seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for (row, name) in rows.iter().zip(host_names(rows)) {
        if let Some(first) = seen.insert(&row.ip, row.line) {
            return Err(fail(row.line, 1, ImportProblem::HostTwice { name, first }));
        }
        let rack = *rack_index.entry(&row.rack).or_insert_with(|| {
            racks.push((&row.rack, 0));
            racks.len() - 1
        });
        racks[rack].1 += 1;
        let full = || {
            let max = MAX_HOSTS_PER_LEAF;
            fail(row.line, 0, ImportProblem::RackFull { rack: rack_name(&row.rack), max })
        };
        let host = u8::try_from(racks[rack].1).ok().filter(|&n| n < 255).ok_or_else(full)?;
        let leaf = u16::try_from(rack + 1)
            .map_err(|_| fail(row.line, 0, ImportProblem::TooLarge { max: MAX_NODES }))?;
        let (ip, mac) = address(leaf, host);
        fabric.nodes.push(Node { name: name.clone(), kind: NodeKind::Host { ip, mac } });
        fabric.cable(name, rack_name(&row.rack), options.host_link);
        let pair = (row.rack.0.as_str(), row.dsw.as_str());
        if above_seen.insert(pair) {
            above.push(pair);
        }
    }
    let most = racks.len().max(above.len() * options.core_uplinks as usize);
    if most.saturating_mul(options.uplinks as usize) > MAX_NODES {
        return Err(fail(0, 0, ImportProblem::TooLarge { max: MAX_NODES }));
    }
    for (rack, _) in &racks {
        fabric.switch(rack_name(rack), 0);
    }
    fabric.upper(&racks, &above);
    Ok((fabric.nodes, fabric.cables))
}

fn rack_name(rack: &(String, String)) -> String {
    format!("{}.{}", rack.0, rack.1)
}

struct Fabric<'a> {
    options: &'a Lingjun,
    nodes: Vec<Node>,
    cables: Vec<Cable>,
}

impl Fabric<'_> {
    fn switch(&mut self, name: String, tier: u8) {
        self.nodes.push(Node { name, kind: NodeKind::Switch { tier } });
    }

    fn cable(&mut self, a: String, b: String, rate: BitRate) {
        let delay = self.options.delay;
        self.cables.push(Cable { a, a_port: None, b, b_port: None, rate, delay });
    }

    /// PSW and DSW switches and everything above the racks.
    fn upper(&mut self, racks: &[(&(String, String), u32)], above: &[(&str, &str)]) {
        let mut psw: Vec<&str> = above.iter().map(|pair| pair.0).collect();
        let mut dsw: Vec<&str> = above.iter().map(|pair| pair.1).collect();
        for names in [&mut psw, &mut dsw] {
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(*name));
        }
        let Lingjun { uplinks, core_uplinks, fabric_link, merge, .. } = *self.options;
        let wide = |n: u32| BitRate(fabric_link.0.saturating_mul(u64::from(n)));
        if merge {
            for name in &psw {
                self.switch((*name).to_owned(), 1);
            }
            for name in &dsw {
                self.switch((*name).to_owned(), 2);
            }
            for (rack, _) in racks {
                self.cable(rack_name(rack), rack.0.clone(), wide(uplinks));
            }
            for (psw, dsw) in above {
                let rate = wide(uplinks.saturating_mul(core_uplinks));
                self.cable((*psw).to_owned(), (*dsw).to_owned(), rate);
            }
            return;
        }
        // Plane i: the i-th switch of every PSW name and its own core switches.
        for plane in 1..=uplinks {
            for name in &psw {
                self.switch(format!("{name}.{plane}"), 1);
            }
            for name in &dsw {
                for core in 1..=core_uplinks {
                    self.switch(format!("{name}.{plane}.{core}"), 2);
                }
            }
            for (rack, _) in racks {
                self.cable(rack_name(rack), format!("{}.{plane}", rack.0), fabric_link);
            }
            for (psw, dsw) in above {
                for core in 1..=core_uplinks {
                    let core = format!("{dsw}.{plane}.{core}");
                    self.cable(format!("{psw}.{plane}"), core, fabric_link);
                }
            }
        }
    }
}

fn notes(rows: &[Row], topology: &Topology, options: &Lingjun) -> Vec<String> {
    let racks = topology
        .switches()
        .filter(|&switch| {
            let node = topology.node(topology.switch_node(switch));
            matches!(node.kind, NodeKind::Switch { tier: 0 })
        })
        .count();
    let parallel = if options.merge {
        "parallel links are merged into one link of their sum"
    } else {
        "each parallel link leads to a physical switch of its own behind the PSW or DSW name"
    };
    vec![
        format!("{} hosts in {racks} racks (a rack is a pair of PSW and ASW)", rows.len()),
        format!(
            "assumed, as topo.csv has no links: host links {}, {} uplinks of {} per rack, {} links from each PSW switch \
             to the DSW layer, {} propagation",
            options.host_link,
            options.uplinks,
            options.fabric_link,
            options.core_uplinks,
            options.delay
        ),
        parallel.to_owned(),
        "addresses are made (10.rack.host); the dataset's are hashed".to_owned(),
    ]
}
