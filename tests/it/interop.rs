//! Clients that others wrote against our server with the embedded switch, over loopback. They come from PyPI, so these
//! tests run only where an environment variable names a Python that has them; see the heads of tests/interop/*.py.

use crate::p4runtime_server::empty;
use crate::p4runtime_tls::{Authority, Flaw};
use ringpath::p4runtime::server::Profile;
use ringpath::p4runtime::server::listen::listen_with;
use ringpath::p4runtime::server::service::Handle;
use ringpath::p4runtime::server::tls::Tls;
use ringpath::time::Time;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Real time between steps of the switch, and the virtual time of a step.
const STEP: Duration = Duration::from_millis(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RINGPATH_SHELL_PYTHON, a Python with p4runtime-shell; .ci/run installs one and runs this"]
async fn p4runtime_shell_drives_the_switch() {
    drive("RINGPATH_SHELL_PYTHON", "shell.py", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RINGPATH_FINSY_PYTHON, a Python with finsy; .ci/run installs one and runs this"]
async fn finsy_drives_the_switch() {
    drive("RINGPATH_FINSY_PYTHON", "finsy_client.py", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RINGPATH_SHELL_PYTHON, a Python with p4runtime-shell; .ci/run installs one and runs this"]
async fn p4runtime_shell_drives_the_switch_over_mutual_tls() {
    let authority = Authority::new("ours");
    drive("RINGPATH_SHELL_PYTHON", "shell.py", Some(&authority)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs RINGPATH_FINSY_PYTHON, a Python with finsy; .ci/run installs one and runs this"]
async fn finsy_drives_the_switch_over_mutual_tls() {
    let authority = Authority::new("ours");
    drive("RINGPATH_FINSY_PYTHON", "finsy_client.py", Some(&authority)).await;
}

async fn drive(variable: &str, script: &str, authority: Option<&Authority>) {
    let python = std::env::var_os(variable).unwrap_or_else(|| panic!("set {variable}"));
    let clock = Arc::new(AtomicU64::new(0));
    let reading = Arc::clone(&clock);
    let handle = Handle::new(
        Arc::new(Mutex::new(empty(Profile::Spec))),
        Arc::new(move || Time(reading.load(Ordering::Acquire))),
    );
    let tls = authority.map(|authority| {
        let identity = authority.identity("switch", Flaw::None);
        Tls::new(&identity, Some(&authority.certificates())).unwrap()
    });
    let addr = "127.0.0.1:0".parse().unwrap();
    let listening = listen_with(addr, tls, handle.clone()).await.unwrap();
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(STEP).await;
            let step = u64::try_from(STEP.as_nanos()).unwrap();
            let now = Time(clock.fetch_add(step, Ordering::AcqRel) + step);
            handle.server().lock().unwrap().device_mut().advance(now, &mut |_| {});
            handle.pump();
        }
    });
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut command = Command::new(python);
    command
        .arg(root.join("interop").join(script))
        .arg(listening.addr().to_string())
        .arg(root.join("data/conformance/program.p4info.txtpb"))
        .arg(root.join("data/conformance/program.json"));
    if let Some(authority) = authority {
        let (cert, key) = authority.sign("client", Flaw::None);
        command.arg(authority.path("ca.pem")).arg(cert).arg(key);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    ticking.abort();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && text.contains("all ok"), "{text}");
    println!("{text}");
}
