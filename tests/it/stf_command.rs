//! `ringpath stf` as a process: verdicts, exit codes, what a mismatch looks like, and the commands that p4c's driver reads
//! and ignores.

use crate::inspect::{output, ringpath};
use crate::rig::repo;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

/// Everything leaves by port 2; op 8 counts, op 10 swaps a register cell, op 13 goes to a multicast group.
const SETUP: &str = "add deliver dst:0x2 send(port:2)\n";

/// A command packet to station 2: op, arg, index, key, result.
fn packet(op: u8, index: u16, key: u32) -> String {
    format!("000000000002 000000000001 88b6 {op:02x} 00 {index:04x} {key:08x} 00000000")
}

struct Cases {
    folder: TempDir,
    paths: Vec<PathBuf>,
}

impl Cases {
    fn new(texts: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let mut paths = Vec::new();
        for (i, text) in texts.iter().enumerate() {
            let path = folder.path().join(format!("case{i}.stf"));
            std::fs::write(&path, text).unwrap();
            paths.push(path);
        }
        Self { folder, paths }
    }

    fn run(&self, flags: &[&str]) -> Output {
        let program = repo("tests/data/switch/exercise.json");
        output(ringpath().arg("stf").arg(program).args(flags).args(&self.paths))
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn run(text: &str) -> (Option<i32>, String) {
    let cases = Cases::new(&[text]);
    let got = cases.run(&[]);
    let text = stdout(&got).replace(&format!("{}/", cases.folder.path().display()), "");
    (got.status.code(), text)
}

#[test]
fn cases_that_pass_end_with_zero_and_a_summary() {
    let text = format!("{SETUP}packet 1 {0}\nexpect 2 {0} $\n", packet(0, 0, 7));
    let cases = Cases::new(&[&text, &text]);
    let info = repo("tests/data/switch/exercise.p4info.txtpb");
    let got = cases.run(&["--p4info", info.to_str().unwrap()]);
    assert_eq!(got.status.code(), Some(0));
    let text = stdout(&got);
    assert!(text.contains("case0.stf: pass: 1 packet sent, 1 expected, 0 other checks"), "{text}");
    assert!(text.ends_with("2 cases: 2 pass, 0 fail, 0 cannot run\n"), "{text}");
}

#[test]
fn a_mismatch_ends_with_three_and_marks_the_digits_port_and_line() {
    let (sent, wanted) = (packet(0, 0, 7), packet(0, 0, 0x17));
    let (code, text) = run(&format!("{SETUP}packet 1 {sent}\nexpect 2 {wanted} $\n"));
    assert_eq!(code, Some(3));
    let shown = "case0.stf: FAIL: 1 packet sent, 1 expected, 0 other checks
case0.stf:3: port 2: the packet differs: byte 21 is 07, not 17
  ....  16 bytes agree
  0010  expected  00 00 00 00 00 17 00 00  00 00
        received  00 00 00 00 00 07 00 00  00 00
                                 ^
";
    assert_eq!(text, shown);
}

#[test]
fn a_packet_that_is_missing_or_too_many_is_shown_with_its_line() {
    let (a, b) = (packet(0, 0, 7), packet(0, 0, 8));
    let (code, text) = run(&format!("{SETUP}packet 1 {b}\nexpect 2 {a}\nexpect 2 {b}\n"));
    assert_eq!(code, Some(3));
    assert!(text.contains("case0.stf:3: port 2: this packet did not come\n  0000  expected  00"));
    let (code, text) = run(&format!("{SETUP}packet 1 {a}\npacket 1 {b}\nexpect 2 {b}\n"));
    assert_eq!(code, Some(3));
    let extra = "case0.stf:2: port 2: after this a packet left that nothing expects\n";
    assert!(text.contains(extra), "{text}");
}

#[test]
fn counters_of_cells_and_of_entries_are_compared() {
    let text = format!(
        "{SETUP}add exact_table key:5 result_counted(value:1) = hit\npacket 1 {}\npacket 1 {}\n\
         expect 2\ncheck_counter seen(3) packets == 1\ncheck_counter exact_counter($hit) bytes == 26\n\
         counter_read seen 3\n",
        packet(8, 3, 0),
        packet(1, 0, 5)
    );
    let (code, shown) = run(&text);
    assert_eq!((code, shown.contains("2 other checks")), (Some(0), true), "{shown}");
    assert!(shown.contains("case0.stf:8: seen[3] = packets=1 bytes=26\n"), "{shown}");
    let (code, shown) = run(&text.replace("bytes == 26", "bytes != 26"));
    let wrong = "case0.stf:7: counter exact_counter($hit) has 26 bytes, which is not != 26\n";
    assert_eq!((code, shown.contains(wrong)), (Some(3), true), "{shown}");
}

#[test]
fn no_packet_looks_at_every_port_and_remove_takes_entries_away() {
    let p = packet(0, 0, 7);
    let quiet = format!("{SETUP}remove all\npacket 1 {p}\nno_packet\n");
    // Without the entry the program's own choice is port 0, which no line names.
    let (code, shown) = run(&quiet);
    assert_eq!((code, shown.contains("case0.stf:4: port 0: this packet left")), (Some(3), true));
    let dropped = packet(20, 0, 0);
    assert_eq!(run(&format!("packet 1 {dropped}\nno_packet\n")).0, Some(0));
    let named = format!(
        "add deliver dst:0x2 send(port:2) = a\nadd deliver dst:0x3 send(port:3) = b\nremove $b\n\
         packet 1 {p}\nexpect 2 {p}\npacket 1 000000000003{}\nexpect 3\nexpect 0 000000000003\n",
        &p[12..]
    );
    assert_eq!(run(&named), (Some(0), run(&named).1));
    let (code, shown) = run(&format!("{SETUP}remove $x\n"));
    assert_eq!(code, Some(1));
    assert!(shown.contains("line 2: no entry is called x; name it with add ... = x"), "{shown}");
}

#[test]
fn nodes_can_change_their_ports_and_clone_sessions_follow_their_group() {
    let p = packet(13, 4, 0);
    let text = format!(
        "{SETUP}mc_mgrp_create 4\nmirroring_add_mc 9 4\nmc_node_create 7 3\nmc_node_associate 4 0\n\
         packet 1 {p}\nexpect 3\nmc_node_update 0 5\nmirroring_get 9\npacket 1 {p}\n\
         expect 5 000000000002 000000000001 88b6 0d 00 0004 00000000 00000007 $\n",
    );
    let (code, shown) = run(&text);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("case0.stf:9: clone session 9 = port 5 instance 7\n"), "{shown}");
}

#[test]
fn what_registers_and_meters_hold_is_shown() {
    let text = format!(
        "{SETUP}packet 1 {}\nexpect 2\nregister_read cells 3\nregister_read wide\n\
         meter_set_rates police 1 1.5:10 2:20\nmeter_get_rates police 1\n",
        packet(10, 3, 0xabcd)
    );
    let (code, shown) = run(&text);
    assert_eq!(code, Some(0));
    assert!(shown.contains("case0.stf:4: cells[3] = 43981\n"), "{shown}");
    assert!(shown.contains("case0.stf:5: wide[] = 0 0 0 0\n"), "{shown}");
    assert!(shown.contains("case0.stf:7: police[1] = 1.5:10 2:20\n"), "{shown}");
}

#[test]
fn one_case_that_cannot_run_does_not_hide_the_others() {
    let good = format!("{SETUP}packet 1 {0}\nexpect 2 {0}\n", packet(0, 0, 1));
    let cases = Cases::new(&["packet 1 0\n", &good, "packet 1 00\nexpect 1 00\n"]);
    let got = cases.run(&["-o", "json"]);
    assert_eq!(got.status.code(), Some(1));
    let all: Value = serde_json::from_slice(&got.stdout).unwrap();
    assert_eq!((&all["passed"], &all["total"]), (&1.into(), &3.into()));
    let results: Vec<&str> =
        all["cases"].as_array().unwrap().iter().map(|c| c["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["error", "pass", "fail"]);
    let error = all["cases"][0]["error"].as_str().unwrap();
    assert!(error.starts_with("line 1: 1 hexadecimal digits are not whole bytes"), "{error}");
    let failure = &all["cases"][2]["failures"][0];
    assert_eq!((&failure["kind"], &failure["expected"]), (&"missing".into(), &"00".into()));
    assert_eq!((&failure["line"], &failure["port"]), (&2.into(), &1.into()));
}

#[test]
fn a_program_that_cannot_be_used_and_wrong_use_are_told_apart() {
    let cases = Cases::new(&["wait\n"]);
    let broken = cases.folder.path().join("broken.json");
    std::fs::write(&broken, "{}").unwrap();
    let got = output(ringpath().arg("stf").arg(&broken).args(&cases.paths));
    assert_eq!(got.status.code(), Some(1));
    let text = String::from_utf8(got.stderr).unwrap();
    assert!(text.contains("broken.json") && text.contains("does not load"), "{text}");
    let info = repo("p4/build/ringpath.p4info.txtpb");
    let got = cases.run(&["--p4info", info.to_str().unwrap()]);
    assert_eq!(got.status.code(), Some(1));
    let text = String::from_utf8(got.stderr).unwrap();
    assert!(text.contains("P4Info has the") && text.contains("compile both together"), "{text}");
    let got = output(ringpath().arg("stf").arg(&broken));
    assert_eq!(got.status.code(), Some(2), "without a case");
}
