//! STF files: lines that are not STF, and lines that the program has nothing for.

use super::{Case, check};
use ringpath::switch::stf::{StfError, parse, run};

/// A program with one of everything (tables, counters, meters, registers).
pub const PROGRAM: &[u8] = include_bytes!("../../data/conformance/program.json");

/// A case that runs, to which mutations are made.
pub const GOOD: &str = "\
# every kind of command
mc_mgrp_create 1
mc_node_create 7 1 2
mc_node_associate 1 0
mirroring_add 3 4
mirroring_add_mc 4 1
mirroring_delete 3
add exact_t a:1 watched(port:0x2) = one
remove $one
no_packet
mc_node_update 0 3
register_read cells
add all_kinds 10 e:1 l:0x0a000000/8 t:0x0*1 r:5->9 forward(port:1, mac:0b1)
setdefault exact_t drop()
register_write cells 3 0xff
register_reset smalls
counter_write drops 1 2 3
meter_set_rates police 0 1.5:10 2:20
check_counter drops(1) packets == 2
packet 1 01 0a 00 00 01
expect 1
wait
";

/// The error of a case that is one line, behind a comment.
fn refused(wanted: &'static str, line: &str, part: &'static str) -> Case {
    let text = format!("# a comment\n{line}\n");
    let (kind, error) = match parse(&text) {
        Err(error) => ("Parse", error),
        Ok(lines) => match run(PROGRAM, &lines) {
            Err(error) => ("Run", error),
            Ok(_) => panic!("accepted: {line}"),
        },
    };
    // The last line is the wrong one.
    let number = 2 + line.matches('\n').count();
    assert!(matches!(error, StfError::Line { line, .. } if line == number), "{line}: {error}");
    let (shown, place) = (error.to_string(), format!("line {number}: "));
    Case { kind: kind.to_owned(), wanted, shown, place, part }
}

fn words() -> Vec<Case> {
    let p = |line: &str, part: &'static str| refused("Parse", line, part);
    vec![
        p("frobnicate 1", "`frobnicate` is no STF command; known are add,"),
        p("add", "there is no action with ( ); write add TABLE"),
        p("add t", "no action with ( ); write add TABLE [PRIORITY] FIELD"),
        p("add act()", "there is no table or no action; write add"),
        p("add t a:1 act(", "`act(` does not end with ); write add"),
        p("add t a:1 act(x:1", "`act(x:1` does not end with )"),
        p("add t k=1 act()", "no action with ( ); write add TABLE [PRIORITY] FIELD:VALUE..."),
        p("add t k1 act()", "`k1` is not a number that fits here; write add"),
        p("add t 99999999999 act()", "`99999999999` is not a number that fits here"),
        p("add t 1 k1 act()", "`k1` is not name:value; write add"),
        p("add t a:1 act(x)", "`x` is not name:value; write add"),
        p("setdefault t", "there is no action; write setdefault TABLE"),
        p("setdefault t act", "`act` has no ( ); write setdefault"),
        p("setdefault t act(x", "`act(x` does not end with ); write setdefault"),
        p("setdefault t act(y)", "`y` is not name:value; write setdefault"),
        p("packet", "`packet` has 0 words after it, that is too few; write packet PORT HEX"),
        p("packet x 00", "`x` is not a number that fits here; write packet"),
        p("packet 512 00", "port 512 does not exist; write packet"),
        p("packet -1 00", "`-1` is not a number that fits here; write packet"),
        p("packet 1 0", "1 hexadecimal digits are not whole bytes; write packet"),
        p("packet 1 0g", "`g` is not a hexadecimal digit; write packet"),
        p("packet 1 é0", "`é` is not a hexadecimal digit; write packet"),
        p("expect", "`expect` has 0 words after it"),
        p("expect x", "`x` is not a number that fits here; write expect"),
        p("expect 600 00", "port 600 does not exist; write expect"),
        p("expect 1 0?", "`?` is not a hexadecimal digit; write expect"),
        p("expect 1 00 $ 00", "`$` is not a hexadecimal digit; write expect"),
        p(
            "mirroring_add 1",
            "`mirroring_add` has 1 words after it, that is too few; write mirroring_add SESSION PORT",
        ),
        p("mirroring_add s 1", "`s` is not a number that fits here; write mirroring_add SESSION"),
        p("mirroring_add_mc 1", "`mirroring_add_mc` has 1 words"),
        p("mirroring_delete", "`mirroring_delete` has 0 words"),
        p("mc_mgrp_create", "`mc_mgrp_create` has 0 words"),
        p("mc_node_create 70000 1", "`70000` is not a number that fits here; write mc_node_create"),
        p("mc_node_create 1 p", "`p` is not a number that fits here; write mc_node_create RID"),
        p("mc_node_associate 1", "`mc_node_associate` has 1 words"),
        p("register_write r 1", "`register_write` has 2 words"),
        p("register_write r x 1", "`x` is not a number that fits here; write register_write"),
        p("register_reset", "`register_reset` has 0 words"),
        p("counter_write c 1 2", "`counter_write` has 3 words"),
        p("counter_write c 1 x 2", "`x` is not a number that fits here; write counter_write"),
        p("meter_set_rates m", "`meter_set_rates` has 1 words"),
        p("meter_set_rates m 1 5", "`5` is not rate:burst; write meter_set_rates"),
        p("meter_array_set_rates m 1:x", "`1:x` is not rate:burst; write meter_array_set_rates"),
        p("check_counter c", "the counter has no (index); write check_counter"),
        p("check_counter c()", "the counter has no index; write check_counter"),
        p("check_counter c(1x)", "`1x` is not a number that fits here; write check_counter"),
        p("remove", "`remove` has 0 words after it, that is too few; write remove all"),
        p("mc_node_update n 1", "`n` is not a number that fits here; write mc_node_update NODE"),
        p("register_read", "`register_read` has 0 words"),
        p("counter_read c", "`counter_read` has 1 words"),
        p("meter_get_rates m x", "`x` is not a number that fits here; write meter_get_rates"),
        p("mirroring_get", "`mirroring_get` has 0 words"),
        p("check_counter c(1) packets", "`packets` is no condition; write check_counter"),
        p("check_counter c(1) frames == 1", "`frames == 1` is no condition"),
        p("check_counter c(1) bytes =~ 1", "`bytes =~ 1` is no condition"),
    ]
}

fn names() -> Vec<Case> {
    let r = |line: &str, part: &'static str| refused("Run", line, part);
    vec![
        r("remove $a", "no entry is called a; name it with add ... = a"),
        r("mc_node_update 3 1", "there is no node 3; create it with mc_node_create"),
        r("check_counter drops($a)", "is an array, and a is no number; write drops(INDEX)"),
        r(
            "add exact_t a:1 watched(port:1) = x\nadd exact_t a:2 watched(port:1) = x",
            "another entry is called x; choose another label",
        ),
        r(
            "add exakt_t a:1 watched(port:1)",
            "the program has no table `exakt_t`; did you mean 'exact_t'?",
        ),
        r("add zzz a:1 watched(port:1)", "the program has no table `zzz`; it has"),
        r("add _t a:1 watched(port:1)", "table `_t` may be `MyIngress.exact_t` or"),
        r("add exact_t b:1 watched(port:1)", "table `exact_t` has no match field `b`; it has a"),
        r(
            "add exact_t a:1 watch(port:1)",
            "the program has no action `watch`; did you mean 'watched'?",
        ),
        r("add exact_t a:1 watched()", "lacks the parameter `port`; add port:VALUE"),
        r("add exact_t a:1 watched(port:1, mac:2)", "has no parameter `mac`; it has port"),
        r(
            "add exact_t a:1 watched(port:512)",
            "parameter `port` has 9 bits and 0x200 needs 10; write a smaller",
        ),
        r(
            "add exact_t a:1 watched(port:one)",
            "`one` is not a number; write it as 7, 0x1f or 0b101",
        ),
        r("add exact_t a:0x200 watched(port:1)", "match field `a` has 9 bits and 0x200 needs 10"),
        r("add exact_t a:0xzz watched(port:1)", "`0xzz` is not a number; write it as 7"),
        r(
            "add lpm_t l:0x0a000000/33 forward(port:1, mac:1)",
            "match field `l`: `33` is no prefix length; write 0 to 32",
        ),
        r("add lpm_t l:0x0a000000/x forward(port:1, mac:1)", "`x` is no prefix length"),
        r("add lpm_t l:0x0a00000000/8 forward(port:1, mac:1)", "match field `l` has 32 bits"),
        r(
            "add all_kinds 1 e:1 t:5 forward(port:1, mac:1)",
            "`5`: a ternary value has a base; write 0x1f",
        ),
        r("add all_kinds 1 e:1 t:0x1000 forward(port:1, mac:1)", "match field `t` has 12 bits"),
        r(
            "add all_kinds 1 e:1 t:0xg forward(port:1, mac:1)",
            "`0xg` is not a number; write it as 0x1f, with *",
        ),
        r(
            "add all_kinds 1 e:1 r:9->5 forward(port:1, mac:1)",
            "the range 9->5 is empty; write LOW->HIGH",
        ),
        r("add all_kinds 1 e:1 r:5->x forward(port:1, mac:1)", "`x` is not a number; write"),
        r("setdefault exact drop()", "the program has no table `exact`; did you mean"),
        r("mc_node_associate 1 0", "there is no node 0; create it with mc_node_create"),
        r(
            "mc_node_create 1 1\nmc_node_associate 5 0",
            "there is no group 5; create it with mc_mgrp_create",
        ),
        r("register_write cell 0 1", "the program has no register `cell`; did you mean"),
        r("register_write cells 8 1", "index 8 is beyond its 8 cells; use 0 to 7"),
        r("register_write cells 0 0x100000000", "needs more than 32 bits"),
        r("counter_write drop 0 1 1", "the program has no counter `drop`; did you mean"),
        r("counter_write drops 99 1 1", "index 99 is beyond its 8 cells; use 0 to 7"),
        r("meter_set_rates polise 0 1:1 2:2", "the program has no meter `polise`; did you mean"),
        r("meter_set_rates police 0 1:1", "there are 1 rates; write two as RATE:BURST"),
        r(
            "check_counter hits(0)",
            "the program has no counter `hits`; it has MyIngress.exact_counter, MyIngress.drops",
        ),
    ]
}

#[test]
fn the_case_that_mutations_start_from_runs() {
    let report = run(PROGRAM, &parse(GOOD).unwrap()).unwrap();
    assert!(report.passed(), "{:?}", report.failures);
}

#[test]
fn every_bad_line_is_refused_with_its_number_and_the_right_form() {
    let cases: Vec<Case> = words().into_iter().chain(names()).collect();
    check("stf", &cases);
}
