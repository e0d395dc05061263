//! `/{size}` through a real socket.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bolide_server::{Router, Running, Server};

fn start() -> (Running, SocketAddr) {
    let server = Server::new().http("127.0.0.1:0").workers(1);
    let routes = || bolide_measurement::routes(Router::new()).get("/7", |_| "a route");
    let running = server.start(routes).expect("a port is free");
    let address = running.addresses()[0].expect("an address");
    (running, address)
}

/// The head and the body of the response to one request.
fn ask(address: SocketAddr, request: &str, body: &[u8]) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n").expect("sent");
    if !body.is_empty() {
        write!(stream, "content-length: {}\r\n", body.len()).expect("sent");
    }
    stream.write_all(b"\r\n").expect("sent");
    stream.write_all(body).expect("sent");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    let end = response.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    (String::from_utf8_lossy(&response[..end]).into_owned(), response[end..].to_vec())
}

#[test]
fn so_many_zeros_come_as_were_asked_for() {
    let (_running, address) = start();
    for size in [0, 1, 262_144, 262_145, 5_000_000] {
        let (head, body) = ask(address, &format!("GET /{size}"), b"");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        assert!(head.contains(&format!("content-length: {size}\r\n")), "{head}");
        assert_eq!(body.len(), size);
        assert!(body.iter().all(|byte| *byte == 0));
    }
    let (head, body) = ask(address, "HEAD /1099511627776", b"");
    assert!(head.contains("content-length: 1099511627776\r\n"), "{head}");
    assert!(body.is_empty());
}

#[test]
fn uploads_are_read_and_discarded() {
    let (_running, address) = start();
    for method in ["PUT", "POST"] {
        for length in [0, 10, 3_000_000] {
            let (head, _) = ask(address, &format!("{method} /{length}"), &vec![b'x'; length]);
            assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
        }
    }
}

#[test]
fn what_is_no_size_says_so_and_the_rest_is_left_to_others() {
    let (_running, address) = start();
    for (request, status, says) in [
        ("GET /12x", 400, "decimal digits"),
        ("PUT /12x", 400, "decimal digits"),
        ("GET /1099511627777", 400, "at most 1099511627776 bytes"),
        ("GET /99999999999999999999999999", 400, "at most 1099511627776 bytes"),
        ("DELETE /12", 405, ""),
        ("OPTIONS /12", 204, ""),
        ("GET /7", 200, "a route"),
        ("PUT /7", 405, ""),
        ("GET /x7", 404, ""),
        ("PUT /x7", 404, ""),
        ("GET /7/8", 404, ""),
    ] {
        let (head, body) = ask(address, request, b"");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {head}");
        assert!(String::from_utf8_lossy(&body).contains(says), "{request}: {body:?}");
    }
}
