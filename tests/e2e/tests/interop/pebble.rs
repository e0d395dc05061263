//! Certificates by ACME from pebble, Let's Encrypt's CA for tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bolide_launcher::{Finished, Server, find, run, scratch};
use fastrand::Rng;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustix::process::{Pid, Signal, kill_process};

/// How many of a hundred nonces a CA refuses that works.
const NONCES_REFUSED: u32 = 5;

/// More than any of this takes: only a failure waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed in the end.
struct Running(Child);

impl Running {
    /// Starts one and waits until it says these words on its standard output.
    fn start(command: &mut Command, words: &str) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("the tool can be started");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let found = lines.by_ref().map_while(Result::ok).any(|line| line.contains(words));
        assert!(found, "it never said `{words}`");
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Pebble, the name server that it asks, and the ports of the server that it validates.
struct Pebble {
    pebble: PathBuf,
    directory: PathBuf,
    /// The CA's, those of its managers, the name server's, and of the server: cleartext and TLS.
    ports: [u16; 6],
    ca: Option<Running>,
    _names: Running,
}

impl Pebble {
    /// Starts one whose certificates are valid for so long, in seconds. `None`: it is not installed.
    fn start(test: &str, validity: u64) -> Option<Self> {
        let pebble = find("pebble", test)?;
        let server = find("pebble-challtestsrv", test)?;
        let directory = scratch(test);
        let ports = free_ports();
        let [ca, manager, names, manager_of_names, http, tls] = ports;
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        fs::write(directory.join("pebble.pem"), certificate.pem()).unwrap();
        fs::write(directory.join("pebble.key"), key.serialize_pem()).unwrap();
        let configuration = serde_json::json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{ca}"),
            "managementListenAddress": format!("127.0.0.1:{manager}"),
            "certificate": directory.join("pebble.pem"),
            "privateKey": directory.join("pebble.key"),
            "httpPort": http,
            "tlsPort": tls,
            "keyAlgorithm": "ecdsa",
            "retryAfter": { "authz": 1, "order": 1 },
            "profiles": { "default": { "description": "all", "validityPeriod": validity } },
        }});
        fs::write(directory.join("pebble.json"), configuration.to_string()).unwrap();
        let mut command = Command::new(server);
        for service in ["-http01", "-https01", "-tlsalpn01", "-doh", "-defaultIPv6"] {
            command.args([service, ""]);
        }
        command
            .args(["-defaultIPv4", "127.0.0.1", "-dnsserver", &format!("127.0.0.1:{names}")])
            .args(["-management", &format!("127.0.0.1:{manager_of_names}")]);
        let names = Running::start(&mut command, "management server");
        let mut started = Self { pebble, directory, ports, ca: None, _names: names };
        started.start_ca(NONCES_REFUSED);
        Some(started)
    }

    /// Starts the CA, which knows nothing of an earlier one, and refuses so many of a hundred nonces.
    fn start_ca(&mut self, nonces_refused: u32) {
        let mut command = Command::new(&self.pebble);
        command
            .arg("-config")
            .arg(self.directory.join("pebble.json"))
            .args(["-dnsserver", &format!("127.0.0.1:{}", self.ports[2])])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", nonces_refused.to_string())
            // Each order is validated.
            .env("PEBBLE_AUTHZREUSE", "0");
        self.ca = Some(Running::start(&mut command, "Listening on"));
    }

    /// Writes a configuration with these names, and returns its path.
    fn configuration(&self, challenge: &str, names: &[&str]) -> String {
        let [ca, _, _, _, http, tls] = self.ports;
        let text = format!(
            r#"
[[listen]]
http = "127.0.0.1:{http}"

[[listen]]
https = "127.0.0.1:{tls}"
acme = {names:?}

[acme]
directory = "https://127.0.0.1:{ca}/dir"
storage = "acme"
ca = "pebble.pem"
challenge = "{challenge}"
contact = "admin@example.org"
retry-delay = "1s"

[[route]]
scheme = "http"
redirect = "https://{{host}}:{tls}{{path}}{{query}}"

[[route]]
host = "a.test"
scheme = "http"
redirect = "https://{{host}}:{tls}{{path}}{{query}}"

[[route]]
path = "/ping"
respond = "pong"
"#
        );
        let path = self.directory.join("bolide.toml");
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The certificate of the CA that signs, in a file of this name.
    fn root(&self, file: &str) -> String {
        let curl = find("curl", "pebble").expect("it was found before");
        let path = self.directory.join(file).display().to_string();
        let trusted = self.directory.join("pebble.pem").display().to_string();
        let url = format!("https://127.0.0.1:{}/roots/0", self.ports[1]);
        run(&curl, ["-sSf", "--cacert", &trusted, "-o", &path, &url]).well();
        path
    }

    /// Requests `/ping` of a name from the server, trusting the CA alone.
    fn ping(&self, name: &str, root: &str) -> Finished {
        let curl = find("curl", "pebble").expect("it was found before");
        let [.., tls] = self.ports;
        let resolve = format!("{name}:{tls}:127.0.0.1");
        let url = format!("https://{name}:{tls}/ping");
        run(&curl, ["-sS", "--cacert", root, "--resolve", &resolve, &url])
    }
}

/// Unused ports, for TCP and UDP: all are bound before one is free again. They are below those that the system gives to the
/// clients and servers of other tests.
fn free_ports() -> [u16; 6] {
    let mut random = Rng::new();
    let mut bound = || loop {
        let port = random.u16(10_000..20_000);
        let at = (Ipv4Addr::LOCALHOST, port);
        let (tcp, udp) = (TcpListener::bind(at), UdpSocket::bind(at));
        if tcp.is_ok() && udp.is_ok() {
            return (port, tcp, udp);
        }
    };
    [(); 6].map(|()| bound()).map(|(port, ..)| port)
}

fn start(configuration: &str) -> Server {
    Server::start(&["--config", configuration, "--admin", "127.0.0.1:0"])
}

/// The number behind a sample of the server's metrics; `None`: there is none.
fn sample(server: &Server, name: &str) -> Option<f64> {
    let curl = find("curl", "pebble").expect("it was found before");
    let text = run(&curl, ["-sSf", &format!("{}/metrics", server.admin())]).well().text();
    text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
}

fn orders(server: &Server, name: &str) -> Option<f64> {
    sample(server, &format!("bolide_acme_orders_total{{name=\"{name}\",result=\"issued\"}}"))
}

/// Waits until all of these have certificates: a name may fail before, by bad luck with its nonces.
fn wait_for(server: &Server, names: &[&str]) {
    let mut left = names.to_vec();
    while !left.is_empty() {
        let line = server.said("was issued");
        left.retain(|name| !line.contains(&format!(" {name} ")));
    }
}

#[test]
fn names_are_validated_by_both_challenges_and_a_restart_orders_nothing() {
    let test = "names_are_validated_by_both_challenges_and_a_restart_orders_nothing";
    if find("curl", test).is_none() {
        return;
    }
    for challenge in ["tls-alpn-01", "http-01"] {
        let Some(pebble) = Pebble::start(&format!("{test}-{challenge}"), 7_776_000) else { return };
        let configuration = pebble.configuration(challenge, &["a.test", "b.test"]);
        let server = start(&configuration);
        wait_for(&server, &["a.test", "b.test"]);
        let root = pebble.root("root.pem");
        for name in ["a.test", "b.test"] {
            assert_eq!(pebble.ping(name, &root).well().text(), "pong", "{name}");
        }
        drop(server);
        let server = start(&configuration);
        // It serves from its first moment on, and with the same certificates.
        for name in ["a.test", "b.test"] {
            assert_eq!(pebble.ping(name, &root).well().text(), "pong", "{name}");
            assert_eq!(orders(&server, name), Some(0.0));
            let expiry =
                format!("bolide_acme_certificate_expiry_timestamp_seconds{{name=\"{name}\"}}");
            assert!(sample(&server, &expiry).is_some());
        }
    }
}

#[test]
fn a_certificate_is_renewed_before_it_expires() {
    let test = "a_certificate_is_renewed_before_it_expires";
    if find("curl", test).is_none() {
        return;
    }
    let Some(pebble) = Pebble::start(test, 12) else { return };
    let server = start(&pebble.configuration("tls-alpn-01", &["a.test"]));
    wait_for(&server, &["a.test"]);
    wait_for(&server, &["a.test"]);
    assert!(orders(&server, "a.test") >= Some(2.0));
}

#[test]
fn a_ca_that_is_gone_ends_nothing_and_is_asked_again() {
    let test = "a_ca_that_is_gone_ends_nothing_and_is_asked_again";
    if find("curl", test).is_none() {
        return;
    }
    let Some(mut pebble) = Pebble::start(test, 7_776_000) else { return };
    let server = start(&pebble.configuration("tls-alpn-01", &["a.test"]));
    wait_for(&server, &["a.test"]);
    let root = pebble.root("root.pem");
    pebble.ca = None;
    pebble.configuration("tls-alpn-01", &["a.test", "c.test"]);
    server.signal(Signal::HUP);
    let line = server.said("the certificate for c.test was not issued");
    assert!(line.contains("connection refused"), "{line}");
    assert_eq!(pebble.ping("a.test", &root).well().text(), "pong");
    let without = pebble.ping("c.test", &root);
    assert!(!without.status.success() && without.text().is_empty(), "{}", without.both());
    server.said("there is no certificate for `c.test`, which the client requested");
    // Another CA at the same place: it knows no account.
    pebble.start_ca(NONCES_REFUSED);
    wait_for(&server, &["c.test"]);
    let other_root = pebble.root("other-root.pem");
    assert_eq!(pebble.ping("c.test", &other_root).well().text(), "pong");
    assert_eq!(pebble.ping("a.test", &root).well().text(), "pong");
}

#[test]
fn a_certificate_is_served_until_it_expires_while_the_ca_is_broken_and_replaced_when_it_is_not() {
    let test = "a_certificate_is_served_until_it_expires";
    if find("curl", test).is_none() {
        return;
    }
    let Some(mut pebble) = Pebble::start(test, 12) else { return };
    let server = start(&pebble.configuration("tls-alpn-01", &["a.test"]));
    wait_for(&server, &["a.test"]);
    let root = pebble.root("root.pem");
    pebble.ca = None;
    pebble.start_ca(100);
    // A renewal that had begun with the CA before fails for another reason.
    let line = server.said("badNonce");
    assert!(line.contains("the certificate for a.test was not"), "{line}");
    assert_eq!(pebble.ping("a.test", &root).well().text(), "pong", "it is valid still");
    let begun = Instant::now();
    let mut ping = pebble.ping("a.test", &root);
    while ping.status.success() {
        assert!(begun.elapsed() < PATIENCE, "it never expires");
        ping = pebble.ping("a.test", &root);
    }
    assert!(ping.both().contains("expired"), "{}", ping.both());
    pebble.ca = None;
    pebble.start_ca(NONCES_REFUSED);
    wait_for(&server, &["a.test"]);
    assert_eq!(pebble.ping("a.test", &pebble.root("other-root.pem")).well().text(), "pong");
}

/// A process that this test has not started; it is killed in the end.
struct Successor(Pid);

impl Drop for Successor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_successor_takes_what_is_stored_and_orders_nothing() {
    let test = "a_successor_takes_what_is_stored_and_orders_nothing";
    if find("curl", test).is_none() {
        return;
    }
    let Some(pebble) = Pebble::start(test, 7_776_000) else { return };
    let server = start(&pebble.configuration("tls-alpn-01", &["a.test"]));
    wait_for(&server, &["a.test"]);
    let root = pebble.root("root.pem");
    server.signal(Signal::USR2);
    let line = server.said("has taken over");
    let number = line.split("process ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    let _successor = Successor(Pid::from_raw(number.parse().unwrap()).unwrap());
    assert_eq!(pebble.ping("a.test", &root).well().text(), "pong");
    assert_eq!(orders(&server, "a.test"), Some(0.0));
}

#[test]
fn a_host_without_its_certificate_does_not_keep_the_others_from_being_served() {
    let test = "a_host_without_its_certificate";
    let (Some(curl), Some(openssl)) = (find("curl", test), find("openssl", test)) else { return };
    let directory = scratch(test);
    let made = rcgen::generate_simple_self_signed(vec!["file.test".to_owned()]).unwrap();
    fs::write(directory.join("file.pem"), made.cert.pem()).unwrap();
    fs::write(directory.join("file.key"), made.signing_key.serialize_pem()).unwrap();
    let closed = free_ports()[0];
    let text = format!(
        r#"
[[listen]]
https = "127.0.0.1:0"
cert = "file.pem"
key = "file.key"
acme = "a.test"

[acme]
directory = "https://127.0.0.1:{closed}/dir"
storage = "acme"
"#
    );
    let path = directory.join("bolide.toml");
    fs::write(&path, text).unwrap();
    let server = Server::start(&["--config", &path.display().to_string()]);
    let line = server.said("the certificate for a.test was not issued");
    assert!(line.contains("TLS handshakes for it fail; attempt 1"), "{line}");
    let url = |name: &str| server.https().replace("127.0.0.1", name);
    let port = Server::authority(server.https()).rsplit(':').next().unwrap().to_owned();
    let ping = |name: &str, more: &[&str]| {
        let resolve = format!("{name}:{port}:127.0.0.1");
        let target = format!("{}/ping", url(name));
        let arguments = [more, &["-sS", "--resolve", &resolve, &target]].concat();
        run(&curl, arguments)
    };
    let trusted = directory.join("file.pem").display().to_string();
    assert_eq!(ping("file.test", &["--cacert", &trusted]).well().text(), "pong");
    // Not even with another name's certificate.
    assert!(!ping("a.test", &["--insecure"]).status.success());
    server.said("there is no certificate for `a.test`");
    // RFC 8737: no name is validated now.
    let validation =
        ["s_client", "-connect", Server::authority(server.https()), "-alpn", "acme-tls/1"];
    let said = run(&openssl, validation.iter().chain(&["-servername", "file.test"])).both();
    assert!(said.contains("alert"), "{said}");
    check_storage(&directory.join("acme"));
}

/// Only the owner reads what is stored.
fn check_storage(storage: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(storage).unwrap().map(Result::unwrap) {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{:?}", entry.path());
        for file in fs::read_dir(entry.path()).unwrap().map(Result::unwrap) {
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{:?}", file.path());
        }
    }
}
