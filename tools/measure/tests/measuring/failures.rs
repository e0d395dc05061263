//! Servers that don't do what was asked for: one precise sentence each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use bolide_measure::plan::{Amount, Plan};

use crate::planted::{Planted, measure, over_h2, plan, upload_plan};

fn error(plan: &Plan) -> String {
    measure(plan).end.error.expect("it fails")
}

/// A server that reads a head and answers with these bytes, once.
fn once(response: &'static [u8]) -> (SocketAddr, JoinHandle<()>) {
    once_then(response, drop)
}

/// The same, with something to do before the connection is closed.
fn once_then(
    response: &'static [u8],
    then: impl FnOnce(TcpStream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        socket.write_all(response).unwrap();
        then(socket);
    });
    (address, serving)
}

#[test]
fn a_wrong_status_is_named() {
    let server = Planted::start();
    for plan in [plan("http", server.http, "/a/b"), over_h2(plan("http", server.http, "/a/b"))] {
        let said = error(&plan);
        assert!(said.contains("the response was 404 Not Found instead of 200"), "{said}");
        assert!(said.starts_with(&format!("GET http://{}/a/b: ", server.http)), "{said}");
    }
    let refused = upload_plan("http", server.http, "/refused", Amount::Bytes(500_000));
    for plan in [refused.clone(), over_h2(refused)] {
        let said = error(&plan);
        assert!(said.contains("the response was 403 Forbidden instead of 200 or 204"), "{said}");
    }
}

#[test]
fn a_server_that_closes_early_is_told_of_with_the_bytes() {
    let (address, serving) = once(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n12345");
    let said = error(&plan("http", address, "/1000"));
    assert!(said.contains("the connection ended after 5 of 1000 bytes"), "{said}");
    serving.join().unwrap();
    let (address, serving) = once(b"");
    let said = error(&plan("http", address, "/1000"));
    assert!(said.contains("the connection ended after 0 of 1000 bytes"), "{said}");
    serving.join().unwrap();
}

#[test]
fn a_second_response_to_one_request_is_told_of() {
    let two = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345\
        HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345";
    let why = "bytes came that belong to no response";
    let (address, serving) = once(two);
    let mut timed = plan("http", address, "/5");
    timed.transfer.amount = Amount::Time(Duration::from_secs(60));
    let said = error(&timed);
    assert!(said.contains(&format!("the connection ended after 0 of 5 bytes: {why}")), "{said}");
    serving.join().unwrap();
    let (address, serving) = once(two);
    let said = error(&plan("http", address, "/5"));
    assert!(said.contains(why), "{said}");
    serving.join().unwrap();
}

#[test]
fn a_response_before_the_end_of_an_upload_is_told_of() {
    let (hold, held) = channel::<()>();
    let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let (address, serving) = once_then(response, move |_open| assert!(held.recv().is_err()));
    let said = error(&upload_plan("http", address, "/", Amount::Bytes(1 << 30)));
    assert!(said.contains("the response 200 OK came before the request was sent"), "{said}");
    drop(hold);
    serving.join().unwrap();
}

/// Accepts a connection and reads it to its end, saying these bytes first.
fn says(bytes: &'static [u8]) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(bytes).unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    (address, serving)
}

#[test]
fn a_timed_transfer_without_payload_has_failed() {
    const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
    let timed = |mut plan: Plan| {
        plan.transfer.amount = Amount::Time(Duration::from_millis(200));
        plan
    };
    let ndt7 = |mut plan: Plan| {
        plan.transfer.is_ndt7 = true;
        plan
    };
    let (silent, one) = says(b"");
    let said = error(&timed(plan("http", silent, "/")));
    assert!(said.contains("no payload came within"), "{said}");
    let (settings, two) = says(SETTINGS);
    let said = error(&timed(over_h2(plan("http", settings, "/"))));
    assert!(said.contains("no payload came within"), "{said}");
    let (silent, three) = says(b"");
    let said = error(&timed(ndt7(plan("ws", silent, "/ndt/v7/download"))));
    assert!(said.contains("no payload came within"), "{said}");
    let (silent, four) = says(b"");
    let said = error(&timed(plan("raw", silent, "/")));
    assert!(said.contains("no payload came within"), "{said}");
    let (head, five) = once_then(
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
        |mut socket| drop(socket.read_to_end(&mut Vec::new())),
    );
    let said = error(&timed(plan("http", head, "/9")));
    assert!(said.contains("no payload came within"), "{said}");
    for serving in [one, two, three, four, five] {
        serving.join().unwrap();
    }
}

#[test]
fn another_length_than_was_asked_for_is_an_error() {
    let (address, serving) = once(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n12345");
    let said = error(&plan("http", address, "/1000"));
    assert!(said.contains("announced 5 bytes instead of 1000"), "{said}");
    serving.join().unwrap();
    let (address, serving) = once(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n12345");
    let said = error(&plan("http", address, "/1000"));
    assert!(said.contains("received 5 bytes instead of 1000"), "{said}");
    serving.join().unwrap();
    let server = Planted::start();
    let mut half = over_h2(plan("http", server.http, "/half/1000"));
    half.transfer.expected_bytes = Some(1000);
    assert!(error(&half).contains("announced 500 bytes instead of 1000"));
}

#[test]
fn nobody_there_is_no_connection() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let said = error(&plan("http", nobody, "/5"));
    assert!(said.contains("can't connect: connection refused"), "{said}");
    let said = error(&plan("raw", nobody, "/"));
    assert!(said.starts_with("raw://") && said.contains("connection refused"), "{said}");
}

#[test]
fn tls_with_somebody_who_speaks_none_says_so() {
    let server = Planted::start();
    let said = error(&plan("https", server.http, "/5"));
    assert!(said.contains("the TLS handshake failed"), "{said}");
}

#[test]
fn a_server_that_speaks_no_http2_is_told_of() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        // The preface comes at once; the response is not HTTP/2.
        socket.read_exact(&mut [0; 24]).unwrap();
        socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let said = error(&over_h2(plan("http", address, "/5")));
    assert!(said.starts_with("GET http://") && said.len() > 40, "{said}");
    serving.join().unwrap();
}

#[test]
fn a_server_of_http2_that_says_nothing_is_given_up_like_a_connection() {
    let (address, serving) = says(b"");
    let mut plan = over_h2(plan("http", address, "/"));
    plan.connecting.timeout = Duration::from_millis(200);
    let said = error(&plan);
    assert!(said.starts_with("GET http://") && said.contains("time"), "{said}");
    serving.join().unwrap();
}
