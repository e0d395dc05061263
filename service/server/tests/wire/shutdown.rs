//! A server that is told to end finishes what it has begun, and no more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier};
use std::time::Duration;

use bolide_server::{Reply, Router, Server};

use crate::raw_client::Served;

#[test]
fn open_exchanges_are_completed() {
    static ASKED: std::sync::OnceLock<Arc<Barrier>> = std::sync::OnceLock::new();
    let asked = ASKED.get_or_init(|| Arc::new(Barrier::new(2)));
    let served = Served::new(|| {
        Router::new().get("/slow", |request| {
            let responder = request.responder();
            std::thread::spawn(move || {
                let asked = ASKED.get().expect("it was set");
                asked.wait();
                asked.wait();
                responder.respond("in the end");
            });
            Reply::Later
        })
    });
    let mut busy = served.connect();
    let mut idle = served.connect();
    busy.send(b"GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
    asked.wait();
    let address = served.address;
    let ending = std::thread::spawn(move || served.shut_down());
    // An idle connection is closed, and there is no listener any more.
    assert_eq!(idle.rest(), b"");
    assert!(TcpStream::connect(address).is_err());
    asked.wait();
    let response = busy.answer();
    assert_eq!(response.body, b"in the end");
    assert!(response.head.contains("\r\nconnection: close\r\n"), "{}", response.head);
    assert_eq!(busy.rest(), b"");
    drop((busy, idle));
    let stats = ending.join().expect("it ends");
    assert_eq!((stats.accepted, stats.closed()), (2, 2));
}

#[test]
fn listeners_that_were_handed_in_and_unix_sockets() {
    let open = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = open.local_addr().expect("an address");
    let path = std::env::temp_dir().join(format!("bolide-{}.sock", std::process::id()));
    let running = Server::new()
        .workers(2)
        .drain(Duration::from_secs(5))
        .listener(open, None)
        .http(&format!("unix:{}", path.display()))
        .start(|| Router::new().get("/ping", |_| "pong"))
        .expect("it starts");
    let request = b"GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    for _ in 0..4 {
        let mut response = String::new();
        let mut tcp = TcpStream::connect(address).expect("it listens");
        tcp.write_all(request).expect("it reads");
        tcp.read_to_string(&mut response).expect("it responds");
        assert!(response.ends_with("pong"), "{response}");
        response.clear();
        let mut unix = UnixStream::connect(&path).expect("it listens");
        unix.write_all(request).expect("it reads");
        unix.read_to_string(&mut response).expect("it responds");
        assert!(response.ends_with("pong"), "{response}");
    }
    assert_eq!(running.addresses(), [Some(address), None]);
    running.shut_down();
    assert_eq!(running.join().expect("no worker failed").accepted, 8);
    assert!(!path.exists(), "the socket's file is removed");
}
