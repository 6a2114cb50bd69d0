//! `[fabric]`: a generated fabric or a file.
//!
//! In: the section. Out: a topology, queues and notes. Must not know: jobs.

use super::error::{Problem, ScenarioError};
use super::toml_reader::{Entry, Section};
use super::{DEFAULT_QUEUES, RESERVED_QUEUES, read::load};
use crate::topology::Topology;
use crate::topology::generate::{DEFAULT_DELAY, FatTree, LeafSpine};
use crate::topology::import::{Imported, Lingjun, P4Utils, lingjun, p4utils};
use crate::units::BitRate;
use std::path::Path;

/// Largest fabric file; the largest known (847 hosts) has 64 KB.
const MAX_FABRIC_FILE: u64 = 64 << 20;

const COMMON: [&str; 5] = ["kind", "queues", "host_link", "fabric_link", "propagation"];
const LEAF_SPINE: [&str; 5] = ["leaves", "spines", "hosts_per_leaf", "oversubscription", "thin"];
const FAT_TREE: [&str; 1] = ["k"];
const FILE: [&str; 1] = ["file"];
const LINGJUN: [&str; 3] = ["uplinks", "core_uplinks", "merge_parallel"];
const KINDS: [&str; 4] = ["leaf-spine", "fat-tree", "lingjun", "p4-utils"];
const DEFAULT_RATE: BitRate = BitRate(25_000_000_000);

pub(super) struct Fabric {
    pub(super) topology: Topology,
    pub(super) queues: u8,
    pub(super) notes: Vec<String>,
}

pub(super) fn read(top: &Section<'_>, folder: &Path) -> Result<Fabric, ScenarioError> {
    let known = [&COMMON[..], &LEAF_SPINE, &FAT_TREE, &FILE, &LINGJUN].concat();
    let entry = top.need("fabric", "{ kind = \"leaf-spine\" } as a section [fabric]")?;
    let section = entry.section("[fabric]".into(), &known)?;
    let kind = kind(&section)?;
    let own: &[&[&str]] = match kind.as_str() {
        "leaf-spine" => &[&LEAF_SPINE],
        "fat-tree" => &[&FAT_TREE],
        "lingjun" => &[&FILE, &LINGJUN],
        _ => &[&FILE],
    };
    section.only(&kind, &[&[&COMMON[..]], own].concat().concat())?;
    let min = u64::from(RESERVED_QUEUES) + 1;
    let queues = section.int_or("queues", u64::from(DEFAULT_QUEUES), min, 8)? as u8;
    let Imported { topology, notes } = match kind.as_str() {
        "leaf-spine" => generated(leaf_spine(&section)?),
        "fat-tree" => generated(fat_tree(&section)?),
        _ => imported(&section, &kind, folder)?,
    };
    Ok(Fabric { topology, queues, notes })
}

fn generated(topology: Topology) -> Imported {
    Imported { topology, notes: Vec::new() }
}

fn kind(section: &Section<'_>) -> Result<String, ScenarioError> {
    if let Some(entry) = section.get("kind") {
        return entry.choice(&KINDS);
    }
    let Some(file) = section.get("file") else {
        return section.need("kind", "\"leaf-spine\"")?.choice(&KINDS);
    };
    let name = file.str(FILE_WANTED)?;
    Ok(if name.ends_with(".json") { "p4-utils" } else { "lingjun" }.to_owned())
}

const FILE_WANTED: &str = "the name of a file in quotes, such as \"topo.csv\"";

fn leaf_spine(section: &Section<'_>) -> Result<Topology, ScenarioError> {
    let count = |key: &str, example| section.need(key, example)?.int(1, u64::from(u32::MAX));
    let oversubscription = section.int_or("oversubscription", 1, 1, 1024)? as u32;
    let fabric = LeafSpine {
        leaves: count("leaves", "4")? as u32,
        spines: count("spines", "4")? as u32,
        hosts_per_leaf: count("hosts_per_leaf", "4")? as u32,
        host_link: section.unit_or("host_link", DEFAULT_RATE)?,
        fabric_link: section.unit_or("fabric_link", DEFAULT_RATE)?,
        delay: section.unit_or("propagation", DEFAULT_DELAY)?,
        oversubscription,
        thin: section.get("thin").map_or(Ok(false), |entry| entry.flag())?,
    };
    fabric.build().map_err(|source| section.error(Problem::Fabric { source }))
}

fn fat_tree(section: &Section<'_>) -> Result<Topology, ScenarioError> {
    let fabric = FatTree {
        k: section.need("k", "4")?.int(0, 1_000)? as u32,
        host_link: section.unit_or("host_link", DEFAULT_RATE)?,
        fabric_link: section.unit_or("fabric_link", DEFAULT_RATE)?,
        delay: section.unit_or("propagation", DEFAULT_DELAY)?,
    };
    fabric.build().map_err(|source| section.error(Problem::Fabric { source }))
}

fn imported(section: &Section<'_>, kind: &str, folder: &Path) -> Result<Imported, ScenarioError> {
    let entry = section.need("file", "\"topo.csv\"")?;
    let path = folder.join(entry.str(FILE_WANTED)?);
    let file = path.display().to_string();
    let bytes =
        load(&path, MAX_FABRIC_FILE).map_err(|problem| file_error(&entry, &file, problem))?;
    let imported = if kind == "p4-utils" {
        let default = P4Utils::default();
        let options = P4Utils {
            host_link: section.unit_or("host_link", default.host_link)?,
            fabric_link: section.unit_or("fabric_link", default.fabric_link)?,
            delay: section.unit_or("propagation", default.delay)?,
        };
        p4utils(&bytes, &file, &options)
    } else {
        lingjun(&bytes, &file, &lingjun_options(section)?)
    };
    imported.map_err(|source| entry.error(Problem::Import { source }))
}

fn file_error(entry: &Entry<'_>, file: &str, problem: Problem) -> ScenarioError {
    match problem {
        Problem::Io { source } => {
            entry.error(Problem::FabricFile { file: file.to_owned(), source })
        }
        other => entry.error(other),
    }
}

fn lingjun_options(section: &Section<'_>) -> Result<Lingjun, ScenarioError> {
    let default = Lingjun::default();
    Ok(Lingjun {
        host_link: section.unit_or("host_link", default.host_link)?,
        fabric_link: section.unit_or("fabric_link", default.fabric_link)?,
        delay: section.unit_or("propagation", default.delay)?,
        uplinks: section.int_or("uplinks", u64::from(default.uplinks), 1, 64)? as u32,
        core_uplinks: section.int_or("core_uplinks", u64::from(default.core_uplinks), 1, 64)?
            as u32,
        merge: section.get("merge_parallel").map_or(Ok(false), |entry| entry.flag())?,
    })
}
