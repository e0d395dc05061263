//! SIGTERM and SIGINT: no new connections, what is under way comes to its end, the exit code is 0.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bolide_e2e::{assert_same, random};
use bolide_launcher::{Server, find, finish, spawn};
use rustix::process::Signal;

const PATIENCE: Duration = Duration::from_secs(30);

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(Server::authority(server.http())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Waits until the server takes no connection any more.
fn wait_until_refused(server: &Server) {
    let address: SocketAddr = Server::authority(server.http()).parse().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).is_ok() {
        assert!(Instant::now() < deadline, "connections are still accepted");
        std::thread::yield_now();
    }
}

/// Reads up to the end of the head.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

#[test]
fn either_signal_ends_an_idle_server() {
    for signal in [Signal::TERM, Signal::INT] {
        let server = Server::start_both();
        let start = Instant::now();
        server.signal(signal);
        assert!(server.wait().success(), "{signal:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{signal:?}: {:?}", start.elapsed());
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let server = Server::start_both();
    let mut idle = connect(&server);
    idle.write_all(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(head(&mut idle).starts_with("HTTP/1.1 200"));
    let mut pong = [0; 4];
    idle.read_exact(&mut pong).unwrap();
    server.terminate();
    assert_eq!(idle.read(&mut pong).unwrap(), 0);
    assert!(server.wait().success());
}

#[test]
fn a_download_comes_to_its_end() {
    const SIZE: usize = 64 * 1024 * 1024;
    let server = Server::start_both();
    let mut stream = connect(&server);
    let request = format!("GET /echo?size={SIZE} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
    server.terminate();
    wait_until_refused(&server);
    let mut content = Vec::new();
    // The server closes afterwards, although no client asked for it.
    stream.read_to_end(&mut content).unwrap();
    assert_eq!(content.len(), SIZE);
    assert!(server.wait().success());
}

#[test]
fn an_upload_comes_to_its_end() {
    let sent = random(4 * 1024 * 1024, 3);
    let (first, second) = sent.split_at(100_000);
    let server = Server::start_both();
    let mut stream = connect(&server);
    let request =
        format!("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", sent.len());
    stream.write_all(request.as_bytes()).unwrap();
    stream.write_all(first).unwrap();
    // The echo has begun, so the request is under way.
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    server.terminate();
    wait_until_refused(&server);
    let mut writer = stream.try_clone().unwrap();
    let second = second.to_vec();
    let writing = std::thread::spawn(move || writer.write_all(&second).unwrap());
    let echoed = content(&mut stream, head.contains("chunked"));
    writing.join().unwrap();
    assert_same(&echoed, &sent, "the echo of an upload");
    assert!(server.wait().success());
}

/// The content of a response in chunks, or up to the end.
fn content(stream: &mut TcpStream, chunked: bool) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    if !chunked {
        return all;
    }
    let mut content = Vec::new();
    let mut rest = all.as_slice();
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n").expect("a chunk's size");
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return content;
        }
        content.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

/// Each download is under way when the signal comes, for curl waits until the test reads on; over HTTP/2 the client is told by GOAWAY.
#[test]
fn downloads_of_every_version_come_to_their_end() {
    const SIZE: usize = 40_000_000;
    let test = "downloads_of_every_version_come_to_their_end";
    let Some(curl) = find("curl", test) else { return };
    let server = Server::start_both();
    let ways = [
        ("--http1.1", server.http()),
        ("--http2-prior-knowledge", server.http()),
        ("--http1.1", server.https()),
        ("--http2", server.https()),
    ];
    let downloads: Vec<_> = ways
        .iter()
        .map(|(option, url)| {
            let url = format!("{url}/echo?size={SIZE}");
            spawn(&curl, ["-sSk", option, url.as_str()])
        })
        .map(|mut download| {
            let output = download.stdout.as_mut().expect("it is piped");
            output.read_exact(&mut [0]).expect("the response begins");
            download
        })
        .collect();
    server.terminate();
    wait_until_refused(&server);
    for (download, (option, url)) in downloads.into_iter().zip(ways) {
        let download = finish(download);
        assert_eq!(String::from_utf8_lossy(&download.stderr), "", "{option} {url}");
        assert_eq!(download.stdout.len(), SIZE - 1, "{option} {url}");
        assert!(download.status.success(), "{option} {url}: {}", download.status);
    }
    assert!(server.wait().success());
}
