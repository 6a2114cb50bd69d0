//! Words of the command line: matches on tables, and the flags of `ringpath switch`.

use super::{Case, check, check_variants, variants};
use clap::Parser as _;
use ringpath::cli::{Cli, Command, Exit, exit};
use ringpath::p4runtime::matches::Pattern;
use ringpath::p4runtime::p4info::Index;

/// One field of each kind, by widths that matter.
const PROGRAM: &str = r#"
actions { preamble { id: 0x01000001 name: "a" alias: "a" } }
tables {
  preamble { id: 0x02000001 name: "In.acl" alias: "acl" }
  match_fields { id: 1 name: "hdr.port" bitwidth: 9 match_type: EXACT }
  match_fields { id: 2 name: "hdr.ip.src_addr" bitwidth: 32 match_type: LPM }
  match_fields { id: 3 name: "hdr.flags" bitwidth: 12 match_type: TERNARY }
  match_fields { id: 4 name: "hdr.ttl" bitwidth: 8 match_type: RANGE }
  match_fields { id: 5 name: "hdr.dst_mac" bitwidth: 48 match_type: OPTIONAL }
  match_fields { id: 6 name: "a.twin" bitwidth: 8 match_type: OPTIONAL }
  match_fields { id: 7 name: "b.twin" bitwidth: 8 match_type: OPTIONAL }
  match_fields { id: 8 name: "hdr.ip6.dst_addr" bitwidth: 128 match_type: TERNARY }
  action_refs { id: 0x01000001 }
}
"#;

/// What is wrong with words as a filter or, if they pass, as a key.
fn word(wanted: &'static str, words: &[&str], part: &'static str) -> Case {
    let index = Index::from_text(PROGRAM).unwrap();
    let table = index.table("acl").unwrap();
    let outcome = Pattern::parse(table, words).and_then(|pattern| pattern.key(table));
    let error = outcome.err().unwrap_or_else(|| panic!("accepted: {words:?}"));
    Case { kind: variants(&error), wanted, shown: error.to_string(), place: String::new(), part }
}

fn matches() -> Vec<Case> {
    let w = |wanted, words: &str, part| {
        let words: Vec<&str> = words.split(' ').collect();
        word(wanted, &words, part)
    };
    vec![
        w("NoEquals", "port", "'port' is no match; write field=value"),
        w("NoEquals", "10.0.0.1", "'10.0.0.1' is no match; write"),
        w("Field/Unknown", "prt=1", "no match field is called 'prt' in 'In.acl'"),
        w("Field/Unknown", "=1", "no match field is called ''"),
        w("Field/Unknown", "hdr.flag=1", "did you mean 'hdr.flags'"),
        w(
            "Field/Ambiguous",
            "twin=1",
            "'twin' could be any of the match fields a.twin, b.twin; write more",
        ),
        w("Twice", "port=1 hdr.port=2", "field 'hdr.port' is given twice; give it once"),
        w("Value/Empty", "port=", "field 'hdr.port' (9 bits): the value is empty; write"),
        w("Value/Empty", "ttl=1..", "field 'hdr.ttl' (8 bits): the value is empty"),
        w("Value/Empty", "flags=&1", "field 'hdr.flags' (12 bits): the value is empty"),
        w("Value/NoValue", "port=eth0", "'eth0' is no value; write a decimal"),
        w("Value/NoValue", "flags=0x", "'0x' is no value; write"),
        w("Value/NoValue", "flags=1&mask", "'mask' is no value; write"),
        w("Value/Digit", "port=12a", "'12a': 'a' is no decimal digit; write"),
        w("Value/Digit", "flags=0x1g", "'0x1g': 'g' is no hexadecimal digit"),
        w("Value/Digit", "flags=0b12", "'0b12': '2' is no binary digit"),
        w("Value/NoValue", "port=٣", "'٣' is no value; write"),
        w("Value/Negative", "ttl=-1", "'-1' is negative; values on the wire are not, write"),
        w("Value/Negative", "ttl=1..-1", "field 'hdr.ttl' (8 bits): '-1' is negative"),
        w(
            "Value/LongDecimal",
            "port=999999999999999999999999999999999999999999",
            "is longer than decimal numbers may be",
        ),
        w("Value/Address", "src_addr=10.0.0", "'10.0.0' is no IPv4 address; write"),
        w("Value/Address", "src_addr=10.0.0.256", "'10.0.0.256' is no IPv4 address"),
        w("Value/Address", "dst_mac=02:00:00:00:00:xx", "is no Ethernet address; write"),
        w("Value/Address", "dst_mac=02:00:00", "'02:00:00' is no IPv6 or Ethernet address"),
        w("Value/Address", "ip6.dst_addr=1::2::3", "'1::2::3' is no IPv6 or Ethernet address"),
        w("Value/TooWide", "port=512", "'512' needs 10 bits and the field has 9; write"),
        w("Value/TooWide", "port=10.0.0.1", "'10.0.0.1' needs 28 bits and the field has 9"),
        w("Value/TooWide", "dst_mac=0x1000000000000", "needs 49 bits and the field has 48"),
        w("Value/TooWide", "flags=0&0xffff", "'0xffff' needs 16 bits and the field has 12"),
        w("Value/TooWide", "src_addr=::1:0:0", "needs 33 bits and the field has 32"),
        w("Prefix", "src_addr=10.0.0.0/33", "'/33' is no prefix of 32 bits; write /0 to /32"),
        w("Prefix", "src_addr=10.0.0.0/", "'/' is no prefix of 32 bits"),
        w("Prefix", "src_addr=10.0.0.0/255.0.0.0", "'/255.0.0.0' is no prefix"),
        w("Prefix", "flags=0/-1", "field 'hdr.flags': '/-1' is no prefix of 12 bits"),
        w("OutsideMask", "src_addr=10.0.0.1/8", "has bits outside its mask; write 10.0.0.0/8"),
        w("OutsideMask", "flags=0x3&0x1", "has bits outside its mask; write 0x1&0x1"),
        w(
            "OutsideMask",
            "dst_mac=2:0:0:0:0:1&ff:0:0:0:0:0",
            "write 02:00:00:00:00:00&ff:00:00:00:00:00",
        ),
        w("EmptyRange", "ttl=5..1", "field 'hdr.ttl': the range 5..1 is empty; write the smaller"),
        w("EmptyRange", "src_addr=10.0.0.2..10.0.0.1", "field 'hdr.ip.src_addr': the range"),
        w(
            "WrongForm",
            "port=1..2",
            "field 'hdr.port' is matched exact, so '1..2' cannot be its key; write hdr.port=value",
        ),
        w("WrongForm", "port=*", "matched exact, so '*' cannot be its key"),
        w("WrongForm", "port=1 src_addr=1.0.0.0&255.0.0.255", "matched lpm, so"),
        w("WrongForm", "port=1 src_addr=1.0.0.0..2.0.0.0", "write hdr.ip.src_addr=value/length"),
        w("WrongForm", "port=1 flags=1..2", "write hdr.flags=value&mask"),
        w("WrongForm", "port=1 ttl=0x10&0xf0", "write hdr.ttl=lo..hi"),
        w("WrongForm", "port=1 dst_mac=0&1", "write hdr.dst_mac=value or leave it out"),
        w("Lacks", "ttl=1", "the key lacks the exact field 'hdr.port'; add hdr.port=value"),
    ]
}

/// What the switch's flags are refused with.
fn flag(wanted: &'static str, flags: &str, part: &'static str) -> Case {
    let line = ["ringpath", "switch"].into_iter().chain(flags.split(' '));
    let (kind, shown) = match Cli::try_parse_from(line) {
        // Clap's own messages come in several lines; the first says what is wrong, the rest what is right.
        Err(error) => ("Clap", error.render().to_string()),
        Ok(cli) => {
            let Command::Switch(args) = cli.command else { panic!("{flags} is no switch") };
            let error = args.settings().err().unwrap_or_else(|| panic!("accepted: {flags}"));
            assert_eq!(exit::of(&error), Exit::Usage, "{flags}");
            ("Settings", error.to_string())
        }
    };
    Case { kind: kind.to_owned(), wanted, shown, place: String::new(), part }
}

fn flags() -> Vec<Case> {
    vec![
        flag("Clap", "--cpu-port 0", "'--cpu-port <PORT>': it must be a number between 1 and 511"),
        flag(
            "Clap",
            "--drop-port 512",
            "'--drop-port <PORT>': it must be a number between 0 and 511",
        ),
        flag(
            "Clap",
            "--priority-queues 0",
            "'--priority-queues <N>': it must be a number between 1 and 32",
        ),
        flag("Clap", "--queue-depth 0", "'--queue-depth <PACKETS>': it must be a number between 1"),
        flag("Clap", "--device-id -1", "unexpected argument '-1' found"),
        flag("Clap", "--device-id many", "'many' is no number from 0 to"),
        flag("Clap", "--p4info x.txtpb", "required arguments were not provided"),
        flag("Clap", "--no-p4 x.json", "cannot be used with"),
        flag("Clap", "--no-p5", "unexpected argument '--no-p5' found"),
        flag("Clap", "a.json b.json", "unexpected argument 'b.json' found"),
        flag("Clap", "-i veth0", "'veth0' has no '@'; write PORT@INTERFACE, for example 1@veth0"),
        flag("Clap", "-i 512@veth0", "'512' is no port: a number from 0 to 511"),
        flag("Clap", "-i 1@a/b", "'a/b' can be no interface"),
        flag(
            "Clap",
            "--port-rate 1=fast",
            "'fast' does not start with a number; write for example",
        ),
        flag("Clap", "--use-files soon", "invalid value 'soon' for '--use-files <SECONDS>'"),
        flag(
            "Settings",
            "-- --dp-grpc-server-addr x",
            "--dp-grpc-server-addr: packets do not come over gRPC",
        ),
        flag("Settings", "-- --grpc-server-cert x", "without --grpc-server-ssl the server is not"),
        flag("Settings", "--packet-in ipc:///x", "--packet-in: packets do not come over nanomsg"),
        flag("Settings", "--restore-state x", "--restore-state: state is not restored"),
        flag("Settings", "--load-modules x", "--load-modules: externs from .so files"),
        flag("Settings", "--log-file x", "--log-file: logs go to standard error; redirect"),
        flag("Settings", "-- --disable-swap", "--disable-swap: a client that is primary"),
        flag("Settings", "--grpc-server-addr 192.0.2.1:9559", "192.0.2.1:9559: without TLS"),
        flag("Settings", "-- --grpc-server-addr [2001:db8::1]:5", "[2001:db8::1]:5: without TLS"),
        flag("Clap", "--stats -i 1@a", "'--stats' cannot be used with '--interface <PORT@IFACE>'"),
        flag("Clap", "-o json", "were not provided:\n  --stats"),
        flag("Settings", "--grpc-server-addr 9559", "'9559' is no address; write"),
        flag("Settings", "-- --cpu-port 600", "behind '--': invalid value '600'"),
        flag("Settings", "-- --no-p4", "behind '--': unexpected argument '--no-p4'"),
        flag("Settings", "-- x.json", "behind '--': unexpected argument 'x.json'"),
        flag("Settings", "--cpu-port 511", "--cpu-port and --drop-port are both 511; choose"),
    ]
}

#[test]
fn every_bad_match_or_flag_is_refused_with_field_or_flag_and_remedy() {
    let cases: Vec<Case> = matches().into_iter().chain(flags()).collect();
    check("words", &cases);
    check_variants(include_str!("../../../src/p4runtime/matches.rs"), "MatchError", &cases, &[]);
    check_variants(include_str!("../../../src/p4runtime/look.rs"), "ValueError", &cases, &[]);
}
