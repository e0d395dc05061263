//! Sockets that a service manager opened (`LISTEN_FDS`).

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::process::Command;

use bolide_launcher::{find, program, run, scratch};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;

use crate::instance::{Instance, get};

/// `bolide serve` as a service manager starts it: with these sockets, by these names.
fn activated(sockets: &[OwnedFd], names: Option<&str>, arguments: &[&str]) -> Command {
    let mut script = String::new();
    for (place, socket) in sockets.iter().enumerate() {
        // The shell inherits it, and gives it the number that it has to have.
        fcntl_setfd(socket.as_fd(), FdFlags::empty()).expect("it is open");
        script.push_str(&format!("exec {}<&{}; ", place + 3, socket.as_raw_fd()));
    }
    let names = names.map_or(String::new(), |names| format!("LISTEN_FDNAMES={names} "));
    let count = sockets.len();
    script.push_str(&format!("{names}LISTEN_PID=$$ LISTEN_FDS={count} exec \"$0\" serve \"$@\""));
    let mut command = Command::new("/bin/bash");
    command.args(["-c", &script]).arg(program()).args(arguments);
    command
}

/// A socket of a number that the script's do not collide with, and its address.
fn socket() -> (OwnedFd, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    (rustix::io::fcntl_dupfd_cloexec(listener, 20).expect("a descriptor"), address)
}

/// Returns what a start that fails says: one sentence, and the exit code of a mistake in the configuration.
fn refused(mut command: Command) -> String {
    let output = command.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    said
}

#[test]
fn sockets_take_the_place_of_the_addresses_in_order() {
    let ((first, first_address), (second, second_address)) = (socket(), socket());
    // Nothing may listen on these.
    let arguments = ["--http", "192.0.2.1:1", "--http", "192.0.2.1:2", "--workers", "2"];
    let sockets = [first, second];
    let mut command = activated(&sockets, Some("bolide.socket:bolide.socket"), &arguments);
    let mut instance = Instance::start(&mut command);
    for address in [first_address, second_address] {
        assert_eq!(get(&address, "/ping"), "pong");
    }
    instance.signal(Signal::TERM);
    assert!(instance.wait().success());
}

#[test]
fn names_say_which_listener_a_socket_is_for() {
    let ((plain, plain_address), (tls, _), (admin, admin_address)) = (socket(), socket(), socket());
    let arguments = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let sockets = [tls, admin, plain];
    let instance = Instance::start(&mut activated(&sockets, Some("https:admin:http"), &arguments));
    assert_eq!(get(&plain_address, "/ping"), "pong");
    assert_eq!(get(&admin_address, "/readyz"), "ready\n");
    assert_eq!(instance.admin.as_deref(), Some(admin_address.as_str()));
}

/// The manager holds the socket: what arrives between two servers waits for the second.
#[test]
fn a_connection_that_waits_is_answered_by_the_next_server() {
    let path = scratch("a_connection_that_waits").join("s");
    let unix = OwnedFd::from(UnixListener::bind(&path).expect("target can be written"));
    let (inet, address) = socket();
    let sockets: Vec<OwnedFd> = [unix, inet]
        .into_iter()
        .map(|socket| rustix::io::fcntl_dupfd_cloexec(socket, 20).expect("a descriptor"))
        .collect();
    let arguments = ["--http", "unix:/nowhere", "--http", "127.0.0.1:0", "--workers", "2"];
    let mut first = Instance::start(&mut activated(&sockets, None, &arguments));
    assert_eq!(get(&address, "/ping"), "pong");
    first.signal(Signal::TERM);
    assert!(first.wait().success());
    assert!(path.exists(), "the file is the manager's");
    let waiting = std::thread::spawn(move || get(&address, "/ping"));
    let _second = Instance::start(&mut activated(&sockets, None, &arguments));
    assert_eq!(waiting.join().expect("a response"), "pong");
}

#[test]
fn too_many_or_too_few_or_none_is_said() {
    let two = ["--http", "127.0.0.1:0", "--https", "127.0.0.1:0"];
    let said = refused(activated(&[socket().0], None, &two));
    assert!(said.contains("LISTEN_FDS has 1 socket for 2 listeners (http 127.0.0.1:0, https"));
    let three = [socket().0, socket().0, socket().0];
    assert!(refused(activated(&three, None, &two)).contains("has 3 sockets"));
    let wrong = refused(activated(&[socket().0, socket().0], Some("http:http"), &two));
    assert!(wrong.contains("2 sockets named http, http"), "{wrong}");
    let said = refused(activated(&[socket().0, socket().0], Some("http:web"), &two));
    assert!(said.contains("`web`"), "{said}");
}

#[test]
fn what_is_no_listening_socket_is_refused() {
    let one = ["--http", "127.0.0.1:0"];
    let (listener, address) = socket();
    let connected = TcpStream::connect(address).expect("it listens");
    let connected = rustix::io::fcntl_dupfd_cloexec(connected, 20).expect("a descriptor");
    let said = refused(activated(&[connected], None, &one));
    assert!(said.contains("doesn't listen"), "{said}");
    drop(listener);
    let file = std::fs::File::open("/dev/null").expect("it is there");
    let file = rustix::io::fcntl_dupfd_cloexec(file, 20).expect("a descriptor");
    let said = refused(activated(&[file], None, &one));
    assert!(said.starts_with("bolide: "), "{said}");
}

/// A variable that was left over by another program's manager.
#[test]
fn sockets_for_another_process_are_passed_over() {
    let mut command = Command::new(program());
    command.args(["serve", "--http", "127.0.0.1:0"]).env("LISTEN_PID", "1").env("LISTEN_FDS", "3");
    assert_eq!(Instance::start(&mut command).get("/ping"), "pong");
}

/// The real thing that hands sockets in.
#[test]
fn systemd_hands_sockets_in() {
    let Some(activate) = find("systemd-socket-activate", "systemd_hands_sockets_in") else {
        return;
    };
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a free port").to_string();
    let mut command = Command::new(activate);
    command.args(["--listen", &address, "--fdname", "http"]).arg(program());
    command.args(["serve", "--http", "192.0.2.1:1"]);
    let instance = Instance::spawn(&mut command);
    instance.said("Listening on");
    // The first connection starts the server, which finds it in the queue.
    assert_eq!(get(&address, "/ping"), "pong");
    instance.said("Ready");
}

#[test]
fn a_second_instance_on_the_same_port_is_refused() {
    let arguments = ["serve", "--http", "127.0.0.1:0", "--workers", "2"];
    let instance = Instance::start(Command::new(program()).args(arguments));
    let again = run(program(), ["serve", "--http", &instance.address, "--workers", "2"]);
    assert_eq!(again.status.code(), Some(2));
    let said = again.both();
    assert!(said.contains(&instance.address) && said.contains("another process listens"), "{said}");
    // On all addresses, too.
    let port = instance.address.rsplit(':').next().expect("a port");
    let again = run(program(), ["serve", "--http", &format!("0.0.0.0:{port}"), "--workers", "2"]);
    assert_eq!(again.status.code(), Some(2));
    assert_eq!(instance.get("/ping"), "pong");
}
