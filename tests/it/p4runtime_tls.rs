//! TLS between our ends, and what each side says when it does not believe the other. All certificates are made here.

use crate::fake_device::FakeDevice;
use crate::inspect::{data, output, ringpath, stderr};
use crate::p4runtime_text as text;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use ringpath::p4runtime::client::tls::Credentials;
use ringpath::p4runtime::client::{Client, ConnectError, Limits};
use ringpath::p4runtime::rpc::{Code, Failure, Reply, Rpc};
use ringpath::p4runtime::server::listen::{Listening, listen, listen_with};
use ringpath::p4runtime::server::service::Handle;
use ringpath::p4runtime::server::tls::Tls;
use ringpath::p4runtime::server::{Profile, Server};
use ringpath::p4runtime::tls::{Certificates, Identity, PrivateKey};
use ringpath::time::Time;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WATCHDOG: Duration = Duration::from_secs(30);

/// An authority and the folder where it puts what it signs.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// How a certificate is to be wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    None,
    Expired,
    OtherName,
}

fn write(path: &Path, text: &str, mode: u32) {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(mode).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        write(&folder.path().join("ca.pem"), &certificate.pem(), 0o644);
        Self { folder, issuer: Issuer::new(params, key) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Signs a certificate for 127.0.0.1 and writes `NAME.pem` and `NAME.key`.
    pub fn sign(&self, name: &str, flaw: Flaw) -> (PathBuf, PathBuf) {
        let host = if flaw == Flaw::OtherName { "switch.example" } else { "127.0.0.1" };
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        if flaw == Flaw::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let paths = (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        write(&paths.0, &certificate.pem(), 0o644);
        write(&paths.1, &key.serialize_pem(), 0o600);
        paths
    }

    pub fn identity(&self, name: &str, flaw: Flaw) -> Identity {
        let (chain, key) = self.sign(name, flaw);
        Identity {
            chain: Certificates::read(&chain).unwrap(),
            key: PrivateKey::read(&key).unwrap(),
        }
    }

    pub fn certificates(&self) -> Certificates {
        Certificates::read(&self.path("ca.pem")).unwrap()
    }

    fn credentials(&self, identity: Option<Identity>) -> Credentials {
        Credentials { authorities: self.certificates(), identity }
    }
}

async fn serve(tls: Option<Tls>) -> Listening {
    let server = Arc::new(Mutex::new(Server::new(FakeDevice::new(1), Profile::Spec)));
    let handle = Handle::new(server, Arc::new(|| Time(42)));
    listen_with("127.0.0.1:0".parse().unwrap(), tls, handle).await.unwrap()
}

async fn connect(
    listening: &Listening,
    credentials: Option<&Credentials>,
) -> Result<Client, ConnectError> {
    let scheme = if credentials.is_some() { "https" } else { "http" };
    let address = format!("{scheme}://{}", listening.addr());
    let limits = Limits { connect: Duration::from_secs(5), ..Limits::default() };
    Client::connect_with(&address, credentials, limits).await
}

async fn capabilities(client: &Client) -> Result<Reply, Failure> {
    client.call(Rpc::Capabilities(Default::default()), Some(WATCHDOG)).await
}

/// Whichever comes first says why: the connection, or the first call.
async fn refusal(listening: &Listening, credentials: Option<&Credentials>) -> String {
    match connect(listening, credentials).await {
        Err(error) => error.to_string(),
        Ok(client) => capabilities(&client).await.unwrap_err().to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_whole_session_runs_over_tls() {
    let authority = Authority::new("ours");
    let tls = Tls::new(&authority.identity("switch", Flaw::None), None).unwrap();
    let listening = serve(Some(tls)).await;
    let client = connect(&listening, Some(&authority.credentials(None))).await.unwrap();
    assert!(matches!(capabilities(&client).await, Ok(Reply::Capabilities(_))));
    let (to, mut from) = client.open_stream();
    to.send(text::arbitration(5)).await.unwrap();
    tokio::time::timeout(WATCHDOG, from.next()).await.unwrap().unwrap();
    client.call(text::set_pipeline(5), Some(WATCHDOG)).await.unwrap();
    client.call(text::write(5, &text::exact_insert(3)), Some(WATCHDOG)).await.unwrap();
    assert!(listening.bytes_read() > 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_says_what_is_wrong_with_the_servers_certificate() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let cases = [
        (
            ours.identity("a", Flaw::None),
            other.credentials(None),
            "was not signed by the authority",
        ),
        (ours.identity("b", Flaw::Expired), ours.credentials(None), "certificate has expired"),
        (ours.identity("c", Flaw::OtherName), ours.credentials(None), "is for another name"),
    ];
    for (identity, credentials, part) in cases {
        let listening = serve(Some(Tls::new(&identity, None).unwrap())).await;
        let error = connect(&listening, Some(&credentials)).await.unwrap_err();
        assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_against_plain_is_named_and_plain_against_tls_does_not_hang() {
    let authority = Authority::new("ours");
    let plain = serve(None).await;
    let text = refusal(&plain, Some(&authority.credentials(None))).await;
    assert!(text.contains("does not speak TLS"), "{text}");
    let secure = serve(Some(Tls::new(&authority.identity("a", Flaw::None), None).unwrap())).await;
    let refused = tokio::time::timeout(WATCHDOG, refusal(&secure, None)).await.unwrap();
    assert!(!refused.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_wants_certificates_lets_in_only_those_of_its_authority() {
    let (ours, clients, other) =
        (Authority::new("ours"), Authority::new("clients"), Authority::new("other"));
    let tls =
        Tls::new(&ours.identity("switch", Flaw::None), Some(&clients.certificates())).unwrap();
    assert!(tls.mutual());
    let listening = serve(Some(tls)).await;
    let good = ours.credentials(Some(clients.identity("good", Flaw::None)));
    let client = connect(&listening, Some(&good)).await.unwrap();
    assert!(matches!(capabilities(&client).await, Ok(Reply::Capabilities(_))));
    let cases = [
        (None, "wants a certificate of the client"),
        (Some(other.identity("x", Flaw::None)), "does not know the authority"),
        (Some(clients.identity("old", Flaw::Expired)), "the client's certificate has expired"),
    ];
    for (identity, part) in cases {
        let text = refusal(&listening, Some(&ours.credentials(identity))).await;
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_refused_by_tls_ends_unauthenticated() {
    let ours = Authority::new("ours");
    let tls = Tls::new(&ours.identity("switch", Flaw::None), Some(&ours.certificates())).unwrap();
    let listening = serve(Some(tls)).await;
    // The refusal may come while connecting; then there is no stream to end.
    let client = match connect(&listening, Some(&ours.credentials(None))).await {
        Ok(client) => client,
        Err(error) => {
            assert!(matches!(error, ConnectError::Tls { .. }), "{error:?}");
            return;
        }
    };
    let (to, mut from) = client.open_stream();
    let _ = to.send(text::arbitration(5)).await;
    let end = tokio::time::timeout(WATCHDOG, from.next()).await.unwrap().unwrap_err();
    assert_eq!(end.code, Code::Unauthenticated, "{end}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_says_nothing_holds_up_nobody() {
    let ours = Authority::new("ours");
    let listening = serve(Some(Tls::new(&ours.identity("a", Flaw::None), None).unwrap())).await;
    let silent: Vec<_> =
        (0..8).map(|_| std::net::TcpStream::connect(listening.addr()).unwrap()).collect();
    let client = connect(&listening, Some(&ours.credentials(None))).await.unwrap();
    assert!(capabilities(&client).await.is_ok());
    drop(silent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_any_address_is_served_and_without_it_only_loopback() {
    let ours = Authority::new("ours");
    let handle = || {
        let server = Arc::new(Mutex::new(Server::new(FakeDevice::new(1), Profile::Spec)));
        Handle::new(server, Arc::new(|| Time(42)))
    };
    let any = "0.0.0.0:0".parse().unwrap();
    assert!(listen(any, handle()).await.is_err());
    let tls = Tls::new(&ours.identity("a", Flaw::None), None).unwrap();
    assert!(listen_with(any, Some(tls), handle()).await.is_ok());
}

#[test]
fn a_key_that_does_not_belong_to_its_certificate_is_refused_on_both_sides() {
    let ours = Authority::new("ours");
    let (one, two) = (ours.identity("one", Flaw::None), ours.identity("two", Flaw::None));
    let mixed = Identity { chain: one.chain, key: two.key };
    let error = Tls::new(&mixed, None).unwrap_err();
    assert!(error.to_string().contains("certificate and key of the server"), "{error}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let credentials = ours.credentials(Some(mixed));
    let error = runtime
        .block_on(Client::connect_with(
            "https://127.0.0.1:1",
            Some(&credentials),
            Limits::default(),
        ))
        .unwrap_err();
    assert!(matches!(error, ConnectError::Credentials { .. }), "{error:?}");
}

/// `ringpath switch` with TLS as a process, its log kept.
struct Secure {
    child: Child,
    address: String,
    /// A file: a pipe that nobody reads would stop a switch that logs everything.
    log: PathBuf,
}

impl Secure {
    fn start(server: (&Path, &Path), clients: Option<&Path>, log: &Path) -> Self {
        let mut command = ringpath();
        command.args(["switch", &data("program.json"), "--p4info", &data("program.p4info.txtpb")]);
        command.args(["--device-id", "1", "--log", "trace", "--"]);
        command.args(["--grpc-server-addr", "127.0.0.1:0", "--grpc-server-ssl"]);
        command.arg("--grpc-server-cert").arg(server.0).arg("--grpc-server-key").arg(server.1);
        if let Some(clients) = clients {
            command.arg("--grpc-server-with-client-auth").arg("--grpc-server-cacert").arg(clients);
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("P4Runtime on ").and_then(|rest| rest.split_once(','));
        Self {
            address: address.unwrap_or_else(|| panic!("{line}")).0.to_owned(),
            child,
            log: log.to_owned(),
        }
    }

    /// `table ls` with flags: exit code, what it printed, and what it said.
    fn look(&self, flags: &[(&str, &Path)]) -> (Option<i32>, String, String) {
        let mut command = ringpath();
        command.args(["table", "ls", "--address", &self.address, "--device-id", "1"]);
        for (flag, path) in flags {
            command.arg(flag).arg(path);
        }
        let output = output(&mut command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text, stderr(&output))
    }

    /// Ends it; its log.
    fn stop(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(std::process::Command::new("kill").arg(&pid).status().unwrap().success());
        self.child.wait().unwrap();
        std::fs::read_to_string(&self.log).unwrap()
    }
}

#[test]
fn commands_reach_a_switch_over_mutual_tls_and_both_sides_say_why_they_do_not() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let (cert, key) = ours.sign("switch", Flaw::None);
    let (ca, own) = (ours.path("ca.pem"), ours.sign("operator", Flaw::None));
    let stranger = other.sign("stranger", Flaw::None);
    let switch = Secure::start((&cert, &key), Some(&ca), &ours.path("log"));
    let good = [("--cacert", ca.as_path()), ("--cert", &own.0), ("--key", &own.1)];
    let (code, printed, said) = switch.look(&good);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert!(printed.contains("exact_t"), "{printed}");
    let cases: [(&[(&str, &Path)], &str); 4] = [
        (&good[..1], "wants a certificate of the client"),
        (
            &[good[0], ("--cert", &stranger.0), ("--key", &stranger.1)],
            "does not know the authority",
        ),
        (&[("--cacert", &other.path("ca.pem"))], "was not signed by the authority given"),
        (&[], "does a P4Runtime server listen there?"),
    ];
    for (flags, part) in cases {
        let (code, _, said) = switch.look(flags);
        assert!(code == Some(1) && said.contains(part), "{part}: {said}");
    }
    let log = switch.stop();
    for part in ["TLS handshake failed", "127.0.0.1:", "no certificates", "UnknownIssuer"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    for path in [&key, &own.1] {
        let pem = std::fs::read_to_string(path).unwrap();
        let secret = pem.lines().nth(1).unwrap();
        assert!(!log.contains(secret), "the key is in the log");
    }
}

#[test]
fn certificates_that_cannot_be_used_end_the_switch_with_the_file_and_the_remedy() {
    let ours = Authority::new("ours");
    let (cert, key) = ours.sign("switch", Flaw::None);
    let open = ours.path("open.key");
    write(&open, &std::fs::read_to_string(&key).unwrap(), 0o644);
    let (cert, key, open) =
        (cert.display().to_string(), key.display().to_string(), open.display().to_string());
    let ssl = "--grpc-server-ssl";
    let (with_cert, with_key) = ("--grpc-server-cert", "--grpc-server-key");
    let cases: [(&[&str], i32, &str); 8] = [
        (&[ssl], 2, "give --grpc-server-cert FILE and --grpc-server-key FILE"),
        (&[with_cert, &cert], 2, "without --grpc-server-ssl the server is not protected"),
        (&["--grpc-server-with-client-auth"], 2, "without --grpc-server-ssl"),
        (
            &[ssl, with_cert, &cert, with_key, &key, "--grpc-server-with-client-auth"],
            2,
            "--grpc-server-cacert FILE",
        ),
        (
            &[ssl, with_cert, &cert, with_key, &key, "--grpc-server-cacert", &cert],
            2,
            "add --grpc-server-with-client-auth",
        ),
        (&[ssl, with_cert, &cert, with_key, &open], 1, "chmod 600"),
        (&[ssl, with_cert, &key, with_key, &key], 1, "holds no certificate in PEM form"),
        (&[ssl, with_cert, "/nonexistent.pem", with_key, &key], 1, "cannot read /nonexistent.pem"),
    ];
    for (flags, code, part) in cases {
        let mut command = ringpath();
        command.args(["switch", "--no-p4", "--"]).args(flags);
        let output = output(command.args(["--grpc-server-addr", "127.0.0.1:0"]));
        let text = stderr(&output);
        assert!(output.status.code() == Some(code) && text.contains(part), "{flags:?}: {text}");
    }
    let (wrong, part): (&[&str], _) = (&["--cert", &cert, "--key", &key], "give --cacert FILE too");
    let output = output(ringpath().args(["table", "ls"]).args(wrong));
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains(part),
        "{}",
        stderr(&output)
    );
}
