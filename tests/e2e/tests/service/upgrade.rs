//! SIGUSR2: the program on the disk takes over, and no client notices.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::ops::{Deref, RangeInclusive};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use bolide::client::{Client, Trust, Versions};
use bolide_launcher::{copy_program, finish, program, scratch, spawn};
use rustix::process::{Pid, Signal, kill_process};

use crate::instance::{Instance, PATIENCE, get, serve};

/// A copy of the program, which can be replaced; it takes much space, and is removed in the end.
struct Installed(PathBuf);

impl Deref for Installed {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        // The test may have removed it.
        drop(fs::remove_file(&self.0));
    }
}

fn install(directory: &Path) -> Installed {
    let path = Installed(directory.join("bolide"));
    copy_program(program(), &path);
    path
}

/// Puts another program in its place, as an installation does: written next to it, then renamed.
fn replace(path: &Path, content: &[u8]) {
    let (written, new) = (path.with_extension("content"), path.with_extension("new"));
    fs::write(&written, content).expect("target can be written");
    copy_program(&written, &new);
    fs::rename(&new, path).expect("target can be written");
}

/// Puts a program that is there already in the place of another file.
fn link(program: &Path, path: &Path) {
    let new = path.with_extension("new");
    fs::hard_link(program, &new).expect("both are in one directory");
    fs::rename(&new, path).expect("target can be written");
}

/// Loads the server while it is upgraded, at least `least` times; no request may fail. `scheme`: of the listener.
fn upgrade_under_load(test: &str, scheme: &str, least: usize, options: &[&str]) {
    let through = (scheme, str::to_owned);
    upgrade_under_load_through(test, through, least..=usize::MAX, options, || {});
}

/// The same, where the load goes to the address that `through` makes of the server's, and is told to stop after the end of `count`.
/// `upgraded` is called after each upgrade.
fn upgrade_under_load_through(
    test: &str,
    (scheme, through): (&str, impl FnOnce(&str) -> String),
    count: RangeInclusive<usize>,
    options: &[&str],
    mut upgraded: impl FnMut(),
) {
    let directory = scratch(test);
    let path = install(&directory);
    // To write it each time would take longer than the upgrades.
    let copies = ["one", "other"].map(|name| Installed(directory.join(name)));
    for copy in &copies {
        copy_program(&path, copy);
    }
    let listen = format!("--{scheme}");
    let mut instance =
        Instance::start(&mut serve(&path, &[&listen, "127.0.0.1:0", "--workers", "2"]));
    let url = format!("{scheme}://{}/ping", through(&instance.address));
    let report = directory.join("report.json").display().to_string();
    let load = ["load", "--quiet", "--no-server-watch", "--json", &report, &url];
    let mut upgrades = 0;
    // On a machine that is busy otherwise, a load may be over before a server has been upgraded often enough.
    while upgrades < *count.start() {
        let mut load = spawn(program(), load.iter().chain(options));
        while load.try_wait().expect("the child is ours").is_none() {
            if upgrades == *count.end() {
                kill_process(Pid::from_child(&load), Signal::INT).expect("the child is ours");
                break;
            }
            link(&copies[upgrades % 2], &path);
            instance.upgrade();
            upgraded();
            upgrades += 1;
        }
        finish(load).well();
        let report = fs::read_to_string(&report).expect("it was written");
        check(&report, upgrades, upgrades == *count.end());
    }
    assert!(instance.wait().success(), "the first process has drained");
}

/// Checks that no request was lost by a load that ended after so many upgrades, by its report.
fn check(report: &str, upgrades: usize, was_interrupted: bool) {
    let report: serde_json::Value = serde_json::from_str(report).expect("a report");
    let phase = &report["phases"][0];
    assert_eq!(phase["counts"]["failed"], 0, "{upgrades} upgrades: {}", phase["failures"]);
    let count = |name: &str| phase["counts"][name].as_u64().expect("a number");
    // Of a load that was interrupted, some requests are in flight, and others were due and had to wait for these.
    let begun = count(if was_interrupted { "started" } else { "due" });
    let missing = begun - count("succeeded");
    assert!(missing <= if was_interrupted { 64 } else { 0 }, "{missing} are missing");
    eprintln!("{upgrades} upgrades, {}", phase["counts"]);
}

#[test]
fn no_request_is_lost_over_http_1_1() {
    let load = ["-n", "40000", "--rate", "10000", "-c", "8"];
    upgrade_under_load("no_request_is_lost_over_http_1_1", "http", 3, &load);
}

#[test]
fn no_request_is_lost_over_h2c() {
    let load = ["-n", "40000", "--rate", "10000", "--http2", "-c", "4", "-m", "8"];
    upgrade_under_load("no_request_is_lost_over_h2c", "http", 3, &load);
}

/// Each process has a certificate of its own making.
#[test]
fn no_request_is_lost_over_https() {
    let load = ["-n", "24000", "--rate", "6000", "--insecure", "-c", "4", "-m", "8"];
    upgrade_under_load("no_request_is_lost_over_https", "https", 2, &load);
}

#[test]
fn no_request_is_lost_over_http_3() {
    let load = ["-n", "24000", "--rate", "6000", "--insecure", "--http3", "-c", "4", "-m", "8"];
    upgrade_under_load("no_request_is_lost_over_http_3", "https", 2, &load);
}

/// Handshakes that one process has begun come to their end there.
#[test]
fn no_handshake_is_lost_over_http_3() {
    let load = ["-n", "3000", "--insecure", "--http3", "--new-connections", "-c", "2"];
    upgrade_under_load("no_handshake_is_lost_over_http_3", "https", 2, &load);
}

/// Clients whose addresses change are known to the process that they have their connections with. What is lost fails after two
/// seconds, a few upgrades later.
#[test]
fn no_request_of_a_client_that_moves_is_lost_over_http_3() {
    let load = ["-D", "10m", "--rate", "4000", "--insecure", "--http3", "-c", "4", "-m", "8"];
    // Responses to requests of a warm-up would count, and the requests would not.
    let load = [&load[..], &["--timeout", "2s", "--warm-up", "0s"]].concat();
    let router = Arc::new(Router::default());
    let (open, moved) = (Arc::clone(&router), Arc::clone(&router));
    let through = |server: &str| open.open(server.parse().expect("an address"));
    let test = "no_request_of_a_client_that_moves_is_lost_over_http_3";
    upgrade_under_load_through(test, ("https", through), 100..=110, &load, || moved.forget_ports());
}

/// Translates addresses as a home's router does, which gives each client of the inside a port of its own.
#[derive(Debug, Default)]
struct Router {
    /// The port of each client, and how many datagrams it has sent by it.
    ports: Mutex<BTreeMap<SocketAddr, (UdpSocket, u32)>>,
}

impl Router {
    /// Goes between clients and a server. Returns the address for the clients.
    fn open(self: &Arc<Self>, server: SocketAddr) -> String {
        let inside = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = inside.local_addr().expect("it has one").to_string();
        let router = Arc::clone(self);
        // Threads end with the test.
        thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok((length, client)) = inside.recv_from(&mut bytes) {
                let mut ports = router.ports.lock().expect("nobody panics");
                let open = || (outside(&inside, client, server), 0);
                let (port, count) = ports.entry(client).or_insert_with(open);
                *count += 1;
                // What can't be sent is lost.
                let _ = port.send(&bytes[..length]);
            }
        });
        address
    }

    /// Every client seems to be somewhere else from here on, but for those that may be in handshakes: they must not move
    /// (RFC 9000 §9).
    fn forget_ports(&self) {
        let mut ports = self.ports.lock().expect("nobody panics");
        ports.retain(|_, (_, count)| *count < 30);
    }
}

/// A port for one client, by which what the server sends comes back as long as something does.
fn outside(inside: &UdpSocket, client: SocketAddr, server: SocketAddr) -> UdpSocket {
    let port = UdpSocket::bind("127.0.0.1:0").expect("a port");
    port.connect(server).expect("an address");
    port.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let (back, inside) = (port.try_clone().expect("a descriptor"), inside.try_clone());
    let inside = inside.expect("a descriptor");
    thread::spawn(move || {
        let mut bytes = [0; 65_536];
        while let Ok(length) = back.recv(&mut bytes) {
            let _ = inside.send_to(&bytes[..length], client);
        }
    });
    port
}

/// Each request has a connection of its own: what waits in a queue is not lost either.
#[test]
fn no_connection_is_lost() {
    let load = ["-n", "20000", "--new-connections", "-c", "8"];
    upgrade_under_load("no_connection_is_lost", "http", 2, &load);
}

/// Everything is handed on: each listener, the operator's, and the file with the process id.
#[test]
fn every_listener_goes_on() {
    let directory = scratch("every_listener_goes_on");
    let path = install(&directory);
    let (socket, pid_file) = (directory.join("s"), directory.join("pid"));
    let unix = format!("unix:{}", socket.display());
    let pid_text = pid_file.display().to_string();
    let arguments = [
        "--http",
        "127.0.0.1:0",
        "--http",
        &unix,
        "--https",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--workers",
        "2",
        "--pid-file",
        &pid_text,
    ];
    let mut instance = Instance::start(&mut serve(&path, &arguments));
    let admin = instance.admin.clone().expect("it was asked for");
    for _ in 0..2 {
        instance.upgrade_fully();
        let text = fs::read_to_string(&pid_file).expect("it is there");
        assert_eq!(text.trim(), instance.id.to_string());
        assert_eq!(instance.get("/ping"), "pong");
        assert_eq!(get(&admin, "/readyz"), "ready\n", "only the new one is asked");
        let mut stream = UnixStream::connect(&socket).expect("the file is still there");
        stream.write_all(b"GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.ends_with("pong"), "{response}");
    }
    assert!(instance.wait().success());
    instance.signal(Signal::TERM);
    instance.wait_for_last();
    assert!(!socket.exists() && !pid_file.exists(), "the last one cleans up");
    assert!(TcpStream::connect(&instance.address).is_err(), "nobody listens any more");
}

/// A download that is under way comes to its end in the old process.
#[test]
fn a_download_comes_to_its_end_behind_an_upgrade() {
    const SIZE: usize = 32 * 1024 * 1024;
    let path = install(&scratch("a_download_comes_to_its_end_behind_an_upgrade"));
    let mut instance = Instance::start(&mut serve(&path, &["--http", "127.0.0.1:0"]));
    let mut slow = TcpStream::connect(&instance.address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET /echo?size={SIZE} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    slow.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 1000];
    slow.read_exact(&mut first).unwrap();
    instance.upgrade();
    assert_eq!(instance.get("/ping"), "pong");
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let head = first.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    assert_eq!(first.len() - head + rest.len(), SIZE);
    assert!(instance.wait().success());
}

/// Of the process that has the upload, the worker without connections ends; so do the processes that follow it.
#[test]
fn an_upload_over_http_3_goes_on_behind_four_upgrades() {
    let path = install(&scratch("an_upload_over_http_3_goes_on_behind_four_upgrades"));
    let arguments = ["--https", "127.0.0.1:0", "--workers", "2"];
    let mut instance = Instance::start(&mut serve(&path, &arguments));
    let client = Client::builder().trust(Trust::Any).versions(Versions::Http3);
    let client = client.build().expect("a client");
    let url = format!("https://{}/echo", instance.address);
    let mut upload = client.post(&url).timeout(PATIENCE).start().expect("a server");
    let mut response = None;
    for round in 0..5_u8 {
        match round {
            0 => {}
            1 => instance.upgrade(),
            _ => instance.upgrade_fully(),
        }
        let piece = vec![round; 100_000];
        upload.send(piece.clone()).expect("the server takes it");
        let response = response.get_or_insert_with(|| upload.response().expect("a response"));
        let mut returned = Vec::new();
        while returned.len() < piece.len() {
            let more = response.chunk().expect("the server sends it back");
            returned.extend_from_slice(&more.expect("the upload has not ended"));
        }
        assert_eq!(returned, piece, "after {round} upgrades");
    }
    upload.close(None);
    assert_eq!(response.expect("it began").chunk().expect("an end"), None);
    assert!(instance.wait().success());
}

/// Whatever is wrong with the new one, the old one says why and serves on.
#[test]
fn a_successor_that_fails_leaves_the_old_one_serving() {
    let directory = scratch("a_successor_that_fails");
    let path = install(&directory);
    let configuration = directory.join("bolide.toml");
    let good = "[[listen]]\nhttp = \"127.0.0.1:0\"\n";
    fs::write(&configuration, good).unwrap();
    let text = configuration.display().to_string();
    let arguments = ["--config", &text, "--upgrade-timeout", "2s"];
    let mut instance = Instance::start(&mut serve(&path, &arguments));
    let refused = |instance: &Instance, why: &str| {
        instance.signal(Signal::USR2);
        let said = instance.said("not upgraded");
        assert!(said.contains("this process continues to serve") && said.contains(why), "{said}");
        assert_eq!(instance.get("/ping"), "pong");
    };
    fs::write(&configuration, good.replace("http", "htpp")).unwrap();
    refused(&instance, "exit status: 2 before it was ready");
    fs::write(&configuration, good).unwrap();
    replace(&path, b"#!/bin/sh\nkill -SEGV $$\n");
    refused(&instance, "signal: 11");
    replace(&path, b"#!/bin/sh\nexec sleep 60\n");
    refused(&instance, "not ready within 2 s");
    replace(&path, b"no program at all");
    refused(&instance, "bolide: ");
    fs::remove_file(&*path).unwrap();
    refused(&instance, "No such file");
    // And then all is well.
    let _again = install(&directory);
    instance.upgrade();
    assert_eq!(instance.get("/ping"), "pong");
    assert!(instance.wait().success());
}

/// A new configuration is in force with the new process: other workers, and listeners that come and go.
#[test]
fn a_successor_has_its_own_configuration() {
    let directory = scratch("a_successor_has_its_own_configuration");
    let path = install(&directory);
    let configuration = directory.join("bolide.toml");
    let text = |workers: u32, response: &str| {
        format!(
            "workers = {workers}\n[[listen]]\nhttp = \"127.0.0.1:0\"\n[[route]]\nrespond = \"{response}\"\n"
        )
    };
    fs::write(&configuration, text(2, "first")).unwrap();
    let file = configuration.display().to_string();
    let mut instance = Instance::start(&mut serve(&path, &["--config", &file]));
    for (workers, response) in [(3, "second"), (1, "third"), (2, "fourth")] {
        fs::write(&configuration, text(workers, response)).unwrap();
        instance.upgrade_fully();
        for _ in 0..20 {
            assert_eq!(instance.get("/"), response);
        }
    }
    assert!(instance.wait().success());
}

/// Lines may wait for an hour here: only the end of each process can have written its own.
#[test]
fn each_process_writes_its_lines_to_its_own_log() {
    let directory = scratch("each_process_writes_its_lines_to_its_own_log");
    let path = install(&directory);
    let configuration = directory.join("bolide.toml");
    let log_to = |name: &str| {
        let listen = "[[listen]]\nhttp = \"127.0.0.1:0\"\n";
        let log = format!("{listen}[access-log]\nfile = \"{name}\"\ndelay = \"1h\"\n");
        fs::write(&configuration, log).unwrap();
    };
    log_to("one");
    let file = configuration.display().to_string();
    let mut instance = Instance::start(&mut serve(&path, &["--config", &file]));
    assert_eq!(instance.get("/ping?first"), "pong");
    log_to("other");
    instance.upgrade_fully();
    assert_eq!(instance.get("/ping?second"), "pong");
    instance.signal(Signal::TERM);
    instance.wait_for_last();
    let log = |name: &str| fs::read_to_string(directory.join(name)).expect("it is there");
    let (one, other) = (log("one"), log("other"));
    assert!(one.contains("/ping?first") && one.lines().count() == 1, "{one}");
    assert!(other.contains("/ping?second") && other.lines().count() == 1, "{other}");
}

/// Checks that a process that ends while its successor starts takes it along.
#[test]
fn an_end_calls_an_upgrade_off() {
    let directory = scratch("an_end_calls_an_upgrade_off");
    let path = install(&directory);
    let mut instance = Instance::start(&mut serve(&path, &["--http", "127.0.0.1:0"]));
    replace(&path, b"#!/bin/sh\nexec sleep 60\n");
    instance.signal(Signal::USR2);
    instance.said("upgrading");
    instance.signal(Signal::USR2);
    assert!(instance.said("not upgraded").contains("an upgrade is already in progress"));
    instance.signal(Signal::TERM);
    assert!(instance.wait().success());
    assert_eq!(
        instance.line().as_deref(),
        Some("bolide: shutting down, waiting for open exchanges")
    );
    assert_eq!(instance.line(), None, "no process is left");
}
