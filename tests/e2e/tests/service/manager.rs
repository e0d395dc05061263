//! Messages to a service manager: sd_notify(3).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bolide_launcher::{program, run, scratch};
use rustix::process::Signal;

use crate::instance::{Instance, PATIENCE, serve};

/// The manager's end.
struct Manager {
    socket: UnixDatagram,
}

impl Manager {
    fn at(path: &PathBuf) -> Self {
        Self::of(UnixDatagram::bind(path).expect("target can be written"))
    }

    fn of(socket: UnixDatagram) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket }
    }

    /// The next message, line by line.
    fn told(&self) -> Vec<String> {
        let mut bytes = [0; 4096];
        let length = self.socket.recv(&mut bytes).expect("a message");
        String::from_utf8_lossy(&bytes[..length]).lines().map(str::to_owned).collect()
    }

    /// The next message that is no sign of life.
    fn told_news(&self) -> Vec<String> {
        loop {
            let told = self.told();
            if told != ["WATCHDOG=1"] {
                return told;
            }
        }
    }
}

fn microseconds(line: &str) -> Option<u64> {
    line.strip_prefix("MONOTONIC_USEC=")?.parse().ok()
}

#[test]
fn start_reload_and_end_are_told() {
    let directory = scratch("start_reload_and_end_are_told");
    let path = directory.join("notify");
    let manager = Manager::at(&path);
    let configuration = directory.join("bolide.toml");
    std::fs::write(&configuration, "[[listen]]\nhttp = \"127.0.0.1:0\"\n").unwrap();
    let configuration = configuration.display().to_string();
    let arguments = ["--config", &configuration, "--workers", "2"];
    let mut instance = Instance::start(serve(program(), &arguments).env("NOTIFY_SOCKET", &path));
    let ready = ["READY=1", "STATUS=serving: 1 listener, 2 workers"];
    assert_eq!(manager.told(), ready);
    assert_eq!(instance.get("/ping"), "pong");
    let before = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    instance.signal(Signal::HUP);
    let told = manager.told();
    assert_eq!((told[0].as_str(), told[2].as_str()), ("RELOADING=1", "STATUS=reloading"));
    let at = microseconds(&told[1]).expect("a time of the monotonic clock");
    let since = at.abs_diff(before.tv_sec.unsigned_abs() * 1_000_000);
    assert!(since < 60_000_000, "{told:?}");
    assert_eq!(manager.told(), ready, "whatever came of it, it is over");
    instance.signal(Signal::TERM);
    assert_eq!(manager.told(), ["STOPPING=1", "STATUS=draining: waiting for open exchanges"]);
    assert!(instance.wait().success());
}

#[test]
fn an_abstract_socket_will_do() {
    let name = format!("bolide-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let manager = Manager::of(UnixDatagram::bind_addr(&address).expect("nobody has it"));
    let mut command = serve(program(), &["--http", "127.0.0.1:0"]);
    let _instance = Instance::start(command.env("NOTIFY_SOCKET", format!("@{name}")));
    assert_eq!(manager.told()[0], "READY=1");
}

#[test]
fn an_upgrade_names_the_new_process() {
    let path = scratch("an_upgrade_names_the_new_process").join("notify");
    let manager = Manager::at(&path);
    let mut command = serve(program(), &["--http", "127.0.0.1:0"]);
    // A minute: signs of life don't matter here.
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "60000000");
    let mut instance = Instance::start(&mut command);
    assert_eq!(manager.told_news()[0], "READY=1");
    for _ in 0..2 {
        instance.upgrade();
        let told = manager.told_news();
        assert_eq!(told[..2], [format!("MAINPID={}", instance.id), "READY=1".to_owned()]);
    }
    assert!(instance.wait().success());
    // The one that ends is not the one that stops.
    instance.signal(Signal::TERM);
    assert_eq!(manager.told_news()[0], "STOPPING=1");
}

#[test]
fn signs_of_life_come_twice_in_the_time_that_is_given() {
    const TIME: Duration = Duration::from_millis(400);
    let path = scratch("signs_of_life").join("notify");
    let manager = Manager::at(&path);
    let mut command = serve(program(), &["--http", "127.0.0.1:0", "--workers", "2"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", TIME.as_micros().to_string());
    let mut instance = Instance::start(&mut command);
    let began = Instant::now();
    let mut signs = 0;
    while signs < 6 {
        signs += u32::from(manager.told() == ["WATCHDOG=1"]);
    }
    let took = began.elapsed();
    assert!(took > TIME, "six signs in {took:?}: more often than asked for");
    // A process that can't run gives none.
    instance.signal(Signal::STOP);
    manager.socket.set_nonblocking(true).unwrap();
    while manager.socket.recv(&mut [0; 64]).is_ok() {}
    manager.socket.set_nonblocking(false).unwrap();
    manager.socket.set_read_timeout(Some(3 * TIME)).unwrap();
    assert!(manager.socket.recv(&mut [0; 64]).is_err(), "it is stopped");
    instance.signal(Signal::CONT);
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(manager.told(), ["WATCHDOG=1"]);
    instance.signal(Signal::TERM);
    assert!(instance.wait().success());
}

#[test]
fn a_watchdog_for_another_process_is_passed_over() {
    let path = scratch("a_watchdog_for_another_process").join("notify");
    let manager = Manager::at(&path);
    let mut command = serve(program(), &["--http", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "1000").env("WATCHDOG_PID", "1");
    let instance = Instance::start(&mut command);
    assert_eq!(manager.told()[0], "READY=1");
    assert_eq!(instance.get("/ping"), "pong");
    instance.signal(Signal::TERM);
    assert_eq!(manager.told()[0], "STOPPING=1");
}

#[test]
fn a_socket_that_cannot_be_is_refused_and_one_that_is_gone_is_not() {
    let mut command = serve(program(), &["--http", "127.0.0.1:0"]);
    let output = command.env("NOTIFY_SOCKET", "vsock:2:1234").output().expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.starts_with("bolide: NOTIFY_SOCKET vsock:2:1234: not a path"), "{said}");
    let mut command = serve(program(), &["--http", "127.0.0.1:0"]);
    let instance = Instance::start(command.env("NOTIFY_SOCKET", "/no/such/socket"));
    assert_eq!(instance.get("/ping"), "pong");
}

#[test]
fn the_process_id_is_in_its_file() {
    let path = scratch("the_process_id_is_in_its_file").join("pid");
    let text = path.display().to_string();
    let mut instance =
        Instance::start(&mut serve(program(), &["--http", "127.0.0.1:0", "--pid-file", &text]));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", instance.id));
    instance.signal(Signal::TERM);
    assert!(instance.wait().success());
    assert!(!path.exists());
    let missing = ["serve", "--http", "127.0.0.1:0", "--pid-file", "/no/such/directory/pid"];
    let finished = run(program(), missing);
    assert_eq!(finished.status.code(), Some(2));
    assert!(finished.both().contains("--pid-file /no/such/directory/pid: can't be written"));
}
