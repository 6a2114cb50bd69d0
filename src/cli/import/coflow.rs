//! `ringpath import coflow`: a coflow-benchmark trace as a scenario.
//!
//! In: the trace. Out: fabric and jobs in TOML. Must not know how the file is read.

use super::{fits, load, quoted};
use crate::units::Bytes;
use crate::workload::import::{Shuffle, Shuffles, coflows};
use std::io::Write;
use std::path::PathBuf;

/// Racks below one leaf.
const PER_LEAF: u32 = 10;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub struct Coflow {
    /// The trace, such as FB2010-1Hr-150-0.txt.
    #[arg(value_name = "FILE")]
    pub trace: PathBuf,
    /// Only the first so many coflows.
    #[arg(long, value_name = "N")]
    pub first: Option<usize>,
}

pub(super) fn run(args: &Coflow, out: &mut dyn Write) -> anyhow::Result<()> {
    let (name, bytes) = load(&args.trace, "")?;
    let trace = coflows(&bytes, &name)?;
    let wanted = args.first.unwrap_or(usize::MAX);
    let (rings, single): (Vec<&Shuffle>, Vec<&Shuffle>) =
        trace.coflows.iter().take(wanted).partition(|shuffle| shuffle.ports().len() > 1);
    anyhow::ensure!(!rings.is_empty(), "{name}: no coflow has two ports or more");
    let mut text = Vec::new();
    write(&trace, (&rings, single.len()), &mut text)?;
    fits(rings.len(), &text, "take fewer with --first")?;
    out.write_all(&text)?;
    Ok(())
}

fn write(
    trace: &Shuffles,
    (rings, single): (&[&Shuffle], usize),
    out: &mut dyn Write,
) -> std::io::Result<()> {
    writeln!(
        out,
        "# shuffles are no rings: each is one AllReduce over its racks that moves as many bytes in all"
    )?;
    if single > 0 {
        writeln!(out, "# {single} coflows within one rack are left out")?;
    }
    writeln!(out, "# one host stands for each rack; the trace says nothing of the fabric")?;
    // Ports from 0 or from 1: room for both.
    let leaves = (trace.ports + 1).div_ceil(PER_LEAF);
    writeln!(
        out,
        "name = \"coflow-benchmark\"\n\n[fabric]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = {PER_LEAF}\nhosts_per_leaf = {PER_LEAF}"
    )?;
    for shuffle in rings {
        let ports = shuffle.ports();
        let hosts: Vec<String> =
            ports.iter().map(|port| quoted(&format!("h{}", port + 1))).collect();
        // A ring of n moves 2 (n - 1) S in all.
        let moved = shuffle.total_mb() * 1e6 / (2.0 * (ports.len() as f64 - 1.0));
        let bytes = Bytes(moved.max(1.0).round() as u64);
        writeln!(
            out,
            "\n[[job]]\nname = \"coflow-{}\"\nbytes = {}\ncompute = \"1ms\"",
            shuffle.id,
            quoted(&bytes.to_string())
        )?;
        writeln!(
            out,
            "workers = [{}]\niterations = 1\nstart = \"{}ms\"",
            hosts.join(", "),
            shuffle.arrival_ms
        )?;
    }
    Ok(())
}
