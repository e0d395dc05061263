//! A server that another one takes over from, with the same sockets: no client notices.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use bolide_server::{Listener, ListenerSockets, Router, Running, Server};

const PATIENCE: Duration = Duration::from_secs(30);

fn routes(name: &'static str) -> impl Fn() -> Router + Send + Sync + 'static {
    move || Router::new().get("/name", move |_| name)
}

/// A server, and its sockets for the next one.
fn start(name: &'static str, workers: usize, listener: impl Into<Listener>) -> (Running, Listener) {
    let server = Server::new().workers(workers).drain(PATIENCE).listener(listener, None);
    let server = server.bind().expect("it can be opened");
    let ListenerSockets { listening, datagrams } = server.sockets().expect("descriptors").remove(0);
    let listener = Listener::Inherited { sockets: listening, datagrams, path: None };
    (server.start(routes(name)).expect("it starts"), listener)
}

fn any() -> Listener {
    Listener::Tcp(([127, 0, 0, 1], 0).into())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("somebody always listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// One response's head and body.
fn ask(stream: &mut (impl Read + Write), more: &str) -> (String, String) {
    let request = format!("GET /name HTTP/1.1\r\nhost: a\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).expect("it is open");
    let mut response = Vec::new();
    let mut byte = [0];
    while !response.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).expect("a response");
        response.push(byte[0]);
    }
    let mut body = [0; 3];
    stream.read_exact(&mut body).expect("a body");
    (String::from_utf8_lossy(&response).into_owned(), String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn an_open_connection_gets_one_more_response_and_learns_that_it_ends() {
    let (mut old, sockets) = start("old", 1, any());
    let address = old.addresses()[0].expect("an address");
    // It is accepted before the next one, which gets a response.
    let mut silent = connect(address);
    let mut client = connect(address);
    assert!(!ask(&mut client, "").0.contains("connection: close"));
    let (new, _) = start("new", 2, sockets);
    old.hand_over();
    // A request may be faster than the word to the worker.
    loop {
        let (head, body) = ask(&mut client, "");
        assert_eq!(body, "old");
        if head.contains("connection: close") {
            break;
        }
    }
    assert_eq!(client.read(&mut [0]).expect("a close that was announced"), 0);
    assert_eq!(silent.read(&mut [0]).expect("in the end"), 0, "it is not held for ever");
    old.join().expect("it ends");
    for _ in 0..50 {
        assert_eq!(ask(&mut connect(address), "connection: close\r\n").1, "new");
    }
    drop((silent, client));
    new.shut_down();
    new.join().expect("it ends");
}

/// Among several sockets that share a port, and by one that is dealt out; more workers, and fewer.
#[test]
fn connections_that_wait_in_a_queue_are_not_lost() {
    let (mut running, mut sockets) = start("000", 2, any());
    let address = running.addresses()[0].expect("an address");
    let (over, responses) = (AtomicBool::new(false), AtomicU32::new(0));
    let running = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    ask(&mut connect(address), "connection: close\r\n");
                    responses.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for workers in [2, 3, 1, 2, 1, 4] {
            let (next, more) = start("000", workers, sockets);
            sockets = more;
            running.hand_over();
            running.join().expect("it ends");
            running = next;
            let before = responses.load(Ordering::Relaxed);
            while responses.load(Ordering::Relaxed) < before + 200 {
                std::thread::yield_now();
            }
        }
        over.store(true, Ordering::Relaxed);
        running
    });
    running.shut_down();
    running.join().expect("it ends");
}

#[test]
fn a_unix_socket_stays_where_it_is() {
    let path = std::env::temp_dir().join(format!("bolide-handover-{}.sock", std::process::id()));
    let (mut old, sockets) = start("old", 2, Listener::Unix(path.clone()));
    let Listener::Inherited { sockets, datagrams, .. } = sockets else { panic!("{sockets:?}") };
    let listener = Listener::Inherited { sockets, datagrams, path: Some(path.clone()) };
    let (new, _) = start("new", 2, listener);
    old.hand_over();
    old.join().expect("it ends");
    let mut client = UnixStream::connect(&path).expect("the file is there");
    assert_eq!(ask(&mut client, "connection: close\r\n").1, "new");
    drop(client);
    new.shut_down();
    new.join().expect("it ends");
    assert!(!path.exists(), "the last one removes it");
}

#[test]
fn a_worker_whose_handler_does_not_return_has_no_pulse() {
    static GATE: std::sync::OnceLock<Arc<Barrier>> = std::sync::OnceLock::new();
    let gate = Arc::clone(GATE.get_or_init(|| Arc::new(Barrier::new(2))));
    let running = Server::new()
        .workers(1)
        .http("127.0.0.1:0")
        .start(|| {
            Router::new().get("/name", |_| {
                if let Some(gate) = GATE.get() {
                    gate.wait();
                    gate.wait();
                }
                "old"
            })
        })
        .expect("it starts");
    let pulse = running.pulse();
    assert!(pulse.beats(PATIENCE));
    let address = running.addresses()[0].expect("an address");
    let asking = std::thread::spawn(move || ask(&mut connect(address), "connection: close\r\n"));
    gate.wait();
    let began = Instant::now();
    assert!(!pulse.beats(Duration::from_millis(20)));
    assert!(began.elapsed() < PATIENCE);
    gate.wait();
    asking.join().expect("a response");
    assert!(pulse.beats(PATIENCE));
    running.shut_down();
    running.join().expect("it ends");
    assert!(pulse.beats(PATIENCE), "what has ended is not stuck");
}
