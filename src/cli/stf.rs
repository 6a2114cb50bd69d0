//! `ringpath stf`: packet tests of a P4 program on the embedded switch.
//!
//! In: a BMv2 JSON, cases in p4c's STF. Out: what differs, packet by packet. No switch has to run, no privilege is needed, and time
//! is virtual, so a case says the same on every machine.

use super::{Exit, Format, grid, target::read_p4info};
use crate::switch::stf::{Program, Report, parse, report::Failure};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `ringpath stf`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:
  p4c-bm2-ss -o basic.json basic.p4 && ringpath stf basic.json basic.stf
  ringpath stf basic.json --p4info basic.p4info.txtpb tests/*.stf -o json

A case:
  add ipv4_lpm hdr.ipv4.dstAddr:0x0a000200/24 ipv4_forward(dstAddr:0x2, port:2) = R
  packet 1 000000000001 000000000003 0800 45000014 0000 0000 4006 0000 0a000101 0a000201
  expect 2 000000000002 ************ 0800 45000014 0000 0000 3f06 $
  check_counter routes($R) packets == 1

Exit codes: 0 all pass, 1 a case cannot run, 2 wrong use, 3 something differs.")]
pub struct Args {
    /// Program: the JSON that p4c-bm2-ss writes.
    #[arg(value_name = "PROGRAM.json")]
    pub program: PathBuf,
    /// Cases; each runs on a fresh switch.
    #[arg(value_name = "CASE.stf", required = true)]
    pub cases: Vec<PathBuf>,
    /// P4Info of the program: checked against it, and cases may then use its aliases.
    #[arg(long, value_name = "FILE")]
    pub p4info: Option<PathBuf>,
    /// Output: text for people or JSON.
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// One case and what came of it.
struct Outcome<'a> {
    case: &'a Path,
    result: Result<Report, String>,
}

impl Outcome<'_> {
    fn passed(&self) -> bool {
        self.result.as_ref().is_ok_and(Report::passed)
    }
}

/// Runs the cases.
///
/// # Errors
/// The program or its P4Info cannot be used. A case that cannot run is part of the result.
pub fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let shown = args.program.display();
    let json =
        std::fs::read(&args.program).with_context(|| format!("cannot read the program {shown}"))?;
    let info = args.p4info.as_deref().map(read_p4info).transpose()?;
    let program = Program::new(&json, info.as_ref().map(|index| index.info()))
        .with_context(|| format!("cannot run {shown}"))?;
    let outcomes: Vec<Outcome<'_>> = args
        .cases
        .iter()
        .map(|case| Outcome { case, result: one(&program, case).map_err(|e| format!("{e:#}")) })
        .collect();
    grid::write(args.output, out, || document(&outcomes), |out| text(&outcomes, out))?;
    Ok(if outcomes.iter().any(|outcome| outcome.result.is_err()) {
        Exit::Failed
    } else if outcomes.iter().all(Outcome::passed) {
        Exit::Done
    } else {
        Exit::CheckFailed
    })
}

fn one(program: &Program, case: &Path) -> anyhow::Result<Report> {
    let text = std::fs::read_to_string(case).context("cannot read it")?;
    let lines = parse(&text)?;
    Ok(program.run(&lines)?)
}

fn text(outcomes: &[Outcome<'_>], out: &mut dyn Write) -> std::io::Result<()> {
    for outcome in outcomes {
        let case = outcome.case.display();
        match &outcome.result {
            Err(error) => writeln!(out, "{case}: cannot run: {error}")?,
            Ok(report) => {
                let verdict = if report.passed() { "pass" } else { "FAIL" };
                writeln!(
                    out,
                    "{case}: {verdict}: {} sent, {} expected, {} other checks",
                    counted(report.packets, "packet"),
                    report.expected,
                    report.checks
                )?;
                for value in &report.values {
                    writeln!(out, "{case}:{}: {} = {}", value.line, value.what, value.value)?;
                }
                for failure in &report.failures {
                    writeln!(out, "{case}:{}: {}", failure.line, failure.message)?;
                    write!(out, "{}", failure.diff())?;
                }
            }
        }
    }
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    let broken = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    let failed = outcomes.len() - passed - broken;
    if outcomes.len() > 1 {
        let all = counted(outcomes.len(), "case");
        writeln!(out, "{all}: {passed} pass, {failed} fail, {broken} cannot run")?;
    }
    Ok(())
}

/// `1 case`, `2 cases`.
fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn document(outcomes: &[Outcome<'_>]) -> Value {
    let failure = |failure: &Failure| {
        json!({
            "line": failure.line,
            "port": failure.port,
            "kind": failure.kind.name(),
            "message": failure.message,
            "expected": failure.expected.as_ref().map(ToString::to_string),
            "received": failure.received.as_deref().map(hex),
        })
    };
    let case = |outcome: &Outcome<'_>| match &outcome.result {
        Err(error) => json!({
            "case": outcome.case.display().to_string(), "result": "error", "error": error,
        }),
        Ok(report) => json!({
            "case": outcome.case.display().to_string(),
            "result": if report.passed() { "pass" } else { "fail" },
            "packets": report.packets,
            "expected": report.expected,
            "checks": report.checks,
            "failures": report.failures.iter().map(failure).collect::<Vec<_>>(),
            "values": report.values.iter().map(|value| json!({
                "line": value.line, "what": value.what, "value": value.value,
            })).collect::<Vec<_>>(),
        }),
    };
    let passed = outcomes.iter().filter(|outcome| outcome.passed()).count();
    json!({
        "passed": passed,
        "total": outcomes.len(),
        "cases": outcomes.iter().map(case).collect::<Vec<_>>(),
    })
}
