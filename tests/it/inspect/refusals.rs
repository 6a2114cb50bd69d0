//! What the commands say when a flag, a name or a switch is wrong: what, where, why, what to do; and the exit code.

use super::{Primary, Switch, data, ours, output, ringpath, stderr};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::thread;

/// Exit code and parts of the one line on standard error.
fn refused(output: &Output, code: i32, parts: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    for part in parts {
        assert!(text.contains(part), "wanted '{part}' in: {text}");
    }
}

#[test]
fn wrong_names_matches_and_indices_are_wrong_use_with_a_remedy() {
    let (switch, _primary) = ours();
    let cases: [(&[&str], &str); 12] = [
        (&["table", "show", "clasify"], "did you mean 'classify'?; see `ringpath table ls`"),
        (&["table", "show", "classify", "src=1"], "no match field is called 'src'"),
        (&["table", "show", "classify", "src_adr=1"], "did you mean 'src_addr'?"),
        (&["table", "read", "path_forward"], "lacks the exact field 'label'; add label=value"),
        (&["table", "read", "path_forward", "label=1..2"], "is matched exact"),
        (&["table", "read", "switch_config"], "has no key"),
        (&["register", "read", "sorce_seq"], "did you mean 'source_seq' or"),
        (&["register", "read", "source_seq", "4096"], "has the cells 0..4095"),
        (&["counter", "read", "drop"], "did you mean 'drops'?"),
        (&["counter", "read", "path_counter", "7"], "'7' is no match"),
        (&["p4info", "show", "pathforward"], "did you mean 'path_forward' or"),
        (&["table", "show", "classify", "queue=1", "-o", "xml"], "possible values: table, json"),
    ];
    for (args, part) in cases {
        refused(&switch.run(args), 2, &[part]);
    }
    let absent = switch.run(&["table", "read", "path_forward", "label=99"]);
    refused(&absent, 1, &["no entry with the key label=99", "ringpath table show path_forward"]);
}

#[test]
fn a_switch_that_has_no_program_is_another_or_is_not_there_says_what_to_do() {
    let switch = Switch::start(&["--no-p4"]);
    let output = switch.run(&["table", "ls"]);
    refused(&output, 1, &[&switch.address, "device 1", "no program is loaded, ", "push a program"]);
    let mut other = ringpath();
    other.args(["table", "ls", "--address", &switch.address, "--device-id", "7"]);
    refused(&other.output().unwrap(), 1, &["there is no device 7", "see --device-id"]);
    let nobody = ringpath().args(["table", "ls", "--address", "127.0.0.1:1"]).output().unwrap();
    refused(&nobody, 1, &["cannot connect to http://127.0.0.1:1; is the switch running?"]);
    let address = ringpath().args(["table", "ls", "--address", "no where"]).output().unwrap();
    refused(&address, 1, &["'http://no where' is no address"]);
    let tls = ringpath().args(["table", "ls", "--address", "https://x:1"]).output().unwrap();
    refused(&tls, 2, &["give --cacert FILE"]);
}

#[test]
fn a_switch_without_register_reads_is_named_with_the_way_out() {
    let switch = Switch::conforming(&["--mimic-bmv2"]);
    let output = switch.run(&["register", "read", "cells"]);
    let parts = ["register 'MyIngress.cells'", "UNIMPLEMENTED", "simple_switch_CLI", "counters"];
    refused(&output, 1, &parts);
    // What it does offer works as elsewhere.
    let primary = Primary::new(&switch);
    primary.write(&crate::p4runtime_text::exact_insert(1));
    let shown = switch.json(&["table", "show", "exact_t", "a=1"]);
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1);
}

#[test]
fn a_p4info_of_another_program_is_noticed() {
    let (switch, _primary) = ours();
    let info = data("program.p4info.txtpb");
    // Table 0x02000003 exists in both programs and means something else.
    let output = switch.run(&["table", "show", "lpm_t", "--p4info", &info]);
    refused(&output, 1, &["contradicts the P4Info", "check that --p4info"]);
    let output = switch.run(&["register", "read", "cells", "--p4info", &info]);
    refused(&output, 1, &["register 'MyIngress.cells'", "there is no register", "is --p4info of"]);
}

#[test]
fn a_bad_p4info_file_is_told_before_the_network_is_touched() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let cases = [
        ("/nonexistent/p4info".to_owned(), "cannot read --p4info /nonexistent/p4info"),
        (write("binary", &[0xff, 0xfe]), "not text"),
        (write("typo", b"tables {\n  preambel { }\n}"), "line 2, column 3"),
        (write("empty-table", b"tables { }"), "has no preamble"),
    ];
    for (path, part) in cases {
        let output = ringpath()
            .args(["table", "show", "--p4info", &path, "--address", "127.0.0.1:1"])
            .output()
            .unwrap();
        refused(&output, 1, &[part]);
    }
}

/// A server that is none: takes one connection and does `what` with it.
fn fake(what: impl FnOnce(std::net::TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || what(listener.accept().unwrap().0));
    address
}

#[test]
fn servers_that_are_silent_close_or_speak_something_else_end_in_time_with_a_reason() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let silent = fake(move |_stream| {
        // Holds the connection until the test is over.
        let _ = stopped.recv();
    });
    let closing = fake(drop);
    let other = fake(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = stream.read(&mut [0; 100]);
    });
    for (address, part) in [
        (silent, "Raise --timeout"),
        (closing, "does a P4Runtime server listen there?"),
        (other, "does a P4Runtime server listen there?"),
    ] {
        let output = ringpath()
            .args(["table", "ls", "--address", &address, "--timeout", "2s"])
            .output()
            .unwrap();
        refused(&output, 1, &["getting the program at", &address, part]);
    }
    drop(stop);
}

#[test]
fn flags_of_simple_switch_grpc_are_honoured_noted_or_refused_but_never_ignored() {
    let program = data("program.json");
    let refusals: [(&[&str], &str); 13] = [
        (&["--", "--dp-grpc-server-addr", "x"], "--dp-grpc-server-addr"),
        (&["--", "--grpc-server-ssl"], "give --grpc-server-cert FILE"),
        (&["--restore-state", "x"], "--restore-state"),
        (&["--", "--load-modules", "x.so"], "--load-modules"),
        (&["--log-file", "x"], "redirect it with 2>FILE"),
        (&["--", "--disable-swap"], "--disable-swap"),
        (&["--", "--grpc-server-addr", "192.0.2.1:50051"], "write 127.0.0.1:50051"),
        (&["--grpc-server-addr", "nowhere"], "write for example 127.0.0.1:9559"),
        (&["--cpu-port", "512"], "it must be a number between 1 and 511"),
        (&["--", "--priority-queues", "33"], "it must be a number between 1 and 32"),
        (&["--", "--frobnicate"], "behind '--': unexpected argument '--frobnicate'"),
        (&["--frobnicate"], "unexpected argument '--frobnicate'"),
        (&["--cpu-port", "5", "--drop-port", "5"], "choose two ports"),
    ];
    for (args, part) in refusals {
        let output = output(ringpath().arg("switch").args(args));
        refused(&output, 2, &[part]);
    }
    let both = output(ringpath().args(["switch", &program, "--no-p4"]));
    refused(&both, 2, &["cannot be used with"]);
    // A script for Mininet, as it stands.
    let switch = Switch::conforming(&[
        "--thrift-port",
        "9090",
        "--log-console",
        "--log",
        "off",
        "--",
        "--cpu-port",
        "255",
    ]);
    switch.text(&["table", "ls"]);
}

#[test]
fn programs_that_do_not_load_end_the_switch_with_the_reason() {
    let (json, info) = (data("program.json"), data("program.p4info.txtpb"));
    let ours = crate::rig::repo("p4/build/ringpath.p4info.txtpb").display().to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["/nonexistent.json"], "cannot read the program /nonexistent.json"),
        (&[&info], "the program is not JSON"),
        (&[&json, "--p4info", &json], "is no usable P4Info: line 1, column 1"),
        (&[&json, "--p4info", &ours], "program.json with"),
    ];
    for (args, part) in cases {
        let mut command = ringpath();
        let output =
            output(command.args(["switch", "--grpc-server-addr", "127.0.0.1:0"]).args(args));
        let text = stderr(&output);
        assert!(output.status.code() == Some(1) && text.contains(part), "{args:?}: {text}");
    }
    let switch = Switch::start(&["--no-p4"]);
    let output = output(ringpath().args(["switch", "--grpc-server-addr", &switch.address]));
    refused(&output, 1, &["cannot listen on", &switch.address]);
}
