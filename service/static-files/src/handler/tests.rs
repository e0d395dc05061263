//! Cost of a file in memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_server::{Method, Router, Server};

use super::*;

/// The most allocations that one call of the handler has made since it was set to zero.
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Counts what the handler inside of it allocates.
struct Counted(FileHandler);

impl Handler for Counted {
    fn handle(&self, request: &mut Request<'_>) -> Reply {
        let mut reply = None;
        let counted = allocation_counter::measure(|| reply = Some(self.0.handle(request)));
        ALLOCATIONS.fetch_max(counted.count_total, Ordering::SeqCst);
        reply.expect("it was called")
    }
}

#[test]
fn a_file_in_memory_is_answered_without_an_allocation() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "pong!\n").unwrap();
    let files = StaticFiles::new(directory.path()).unwrap().fresh(Duration::from_secs(600));
    let routes = move || {
        let handler = Counted(FileHandler::new(&files, None));
        Router::new().handle(Method::GET, "/{*path}", handler)
    };
    let running = Server::new().workers(1).http("127.0.0.1:0").start(routes).unwrap();
    let mut client = TcpStream::connect(running.addresses()[0].unwrap()).unwrap();
    let mut ask = |lines: &str| {
        let request = format!("GET /a.txt HTTP/1.1\r\nhost: a\r\n{lines}\r\n");
        client.write_all(request.as_bytes()).unwrap();
        let mut response = Vec::new();
        while !response.ends_with(b"pong!\n") && !response.starts_with(b"HTTP/1.1 304") {
            let mut bytes = [0; 4096];
            let count = client.read(&mut bytes).unwrap();
            assert!(count > 0, "{:?}", String::from_utf8_lossy(&response));
            response.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8(response).unwrap()
    };
    let first = ask("");
    assert!(ALLOCATIONS.load(Ordering::SeqCst) > 0, "the first has to fetch it");
    let tag = first.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    // What comes in by the second request is the file that the first had fetched.
    ask("");
    ALLOCATIONS.store(0, Ordering::SeqCst);
    for lines in ["", "accept-encoding: gzip, br\r\n", &format!("if-none-match: {tag}\r\n")] {
        ask(lines);
        assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), 0, "{lines}");
    }
    running.shut_down();
    running.join().unwrap();
}
