//! Why there is no response, and whether to ask again is safe.

use std::time::Duration;

use bolide::client::{Client, ClientLimits, Destination, ErrorKind};
use bolide::http::Method;

use crate::scene::{PATIENCE, Scripted};

fn client() -> Client {
    Client::new().expect("a client")
}

#[test]
fn what_can_not_be_asked_is_told_at_once() {
    let client = client();
    for (request, expected) in [
        (client.get("nonsense"), "`nonsense` is not a URL"),
        (client.get("http://a/").header("a b", "c"), "`a b` is not a field name"),
        (client.get("http://a/").header("a", "b\nc"), "the value of `a` can't stand"),
        (client.request(Method::CONNECT, "http://a/"), "CONNECT is not supported"),
        (
            client.get("http://a/").via([Destination::Datagrams(([127, 0, 0, 1], 9).into())]),
            "HTTP/3 needs TLS",
        ),
    ] {
        let error = request.send().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Request);
        assert!(error.to_string().contains(expected) && error.is_retry_safe(), "{error}");
    }
}

#[test]
fn nobody_listens() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = client().post(&format!("http://{gone}/")).send().unwrap_err();
    assert_eq!((error.kind(), error.is_retry_safe()), (ErrorKind::Connect, true));
    assert_eq!(error.to_string(), format!("http://{gone}/: connection refused"));
    let error = client().get("http://no-such-host.invalid/").send().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Resolve | ErrorKind::Timeout), "{error}");
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
}

#[test]
fn a_server_that_breaks_off_may_have_acted() {
    let behind = Scripted::new(|talk, _| drop(talk.head()));
    let error = client().post(&behind.url("/")).send().unwrap_err();
    assert_eq!((error.kind(), error.is_retry_safe()), (ErrorKind::Closed, false), "{error}");
    assert_eq!(behind.connections(), 1, "POST is not sent again");
    let error = client().get(&behind.url("/")).send().unwrap_err();
    assert_eq!((error.kind(), behind.connections()), (ErrorKind::Closed, 3), "GET is, once");
}

#[test]
fn a_connection_that_ends_when_it_is_used_again_is_replaced() {
    let behind = Scripted::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
    let client = client();
    for _ in 0..20 {
        assert_eq!(client.get(&behind.url("/")).send().unwrap().text().unwrap(), "ok");
    }
}

#[test]
fn what_is_no_http_and_what_breaks_off_is_told_apart() {
    for (response, kind) in [
        ("SSH-2.0-OpenSSH\r\n", ErrorKind::Protocol),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1, 2\r\n\r\n", ErrorKind::Protocol),
        ("HTTP/1.1 200 OK\r\ncontent-le", ErrorKind::Closed),
    ] {
        let behind = Scripted::new(move |talk, _| {
            talk.head();
            talk.send(response);
        });
        let error = client().post(&behind.url("/")).send().unwrap_err();
        assert_eq!((error.kind(), error.is_retry_safe()), (kind, false), "{response:?}: {error}");
    }
    let behind = Scripted::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
    });
    let error = match client().get(&behind.url("/")).send() {
        Ok(mut response) => response.collect().unwrap_err(),
        // All of it came at once.
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
}

#[test]
fn a_slow_server_is_given_up_in_each_phase() {
    let short = Duration::from_millis(100);
    let limits = ClientLimits {
        connections_count: 1,
        waiting_count: 1,
        wait_timeout: short,
        connect_timeout: short * 2,
        response_timeout: short,
        pause_timeout: short,
        ..ClientLimits::default()
    };
    let client = Client::builder().limits(limits).trust(bolide::proxy::Trust::Any).build();
    let client = client.expect("a client");
    let silent = Scripted::new(|talk, _| talk.rest());
    let late = |request: bolide::client::Request, what: &str, is_safe: bool| {
        let error = request.send().and_then(|mut response| response.collect()).unwrap_err();
        assert_eq!((error.kind(), error.is_retry_safe()), (ErrorKind::Timeout, is_safe), "{error}");
        assert!(error.to_string().contains(what), "{error}");
    };
    late(client.get(&silent.url("/")), "did not respond in time", false);
    late(client.get(&format!("https://{}/", silent.address)), "no connection was ready", true);
    let pausing = Scripted::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        talk.rest();
    });
    late(client.get(&pausing.url("/")), "paused for too long in a body", false);
    let busy = Scripted::new(|talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        talk.rest();
    });
    let held = client.get(&busy.url("/")).send().expect("its head");
    late(client.get(&busy.url("/")), "no connection was ready", true);
    drop(held);
    let patient = Client::new().expect("a client");
    late(patient.get(&silent.url("/")).timeout(short), "longer than it may", false);
}

#[test]
fn more_requests_than_may_wait_fail_at_once() {
    let limits = ClientLimits { connections_count: 1, waiting_count: 0, ..ClientLimits::default() };
    let client = Client::builder().limits(limits).build().expect("a client");
    let error = client.get("http://127.0.0.1:1/").send().unwrap_err();
    assert_eq!((error.kind(), error.is_retry_safe()), (ErrorKind::Full, true), "{error}");
}

#[test]
fn a_response_that_is_dropped_ends_its_exchange() {
    let (sender, ended) = std::sync::mpsc::channel();
    let behind = Scripted::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf");
        talk.rest();
        sender.send(()).expect("the test waits");
    });
    let client = client();
    drop(client.get(&behind.url("/")).send().expect("its head"));
    ended.recv_timeout(PATIENCE).expect("the connection ends, for its response is not wanted");
    drop(client.post(&behind.url("/")).start().expect("it begins"));
}

#[test]
fn a_body_that_is_dropped_when_its_connection_has_ended_is_forgotten() {
    let (sender, ended) = std::sync::mpsc::channel();
    let behind = Scripted::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n");
        talk.rest();
        sender.send(()).expect("the test waits");
    });
    let client = client();
    let mut upload = client.post(&behind.url("/")).start().expect("it begins");
    assert_eq!(upload.response().expect("a response").status(), 413);
    ended.recv_timeout(PATIENCE).expect("the connection ends, for the rest is not wanted");
    drop(upload);
    let other = Scripted::answering("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(client.get(&other.url("/")).send().expect("a response").status(), 204);
}

#[test]
fn the_thread_of_a_client_ends_with_its_last_handle() {
    let (sender, ended) = std::sync::mpsc::channel();
    let behind = Scripted::new(move |talk, _| {
        talk.head();
        talk.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        talk.rest();
        sender.send(()).expect("the test waits");
    });
    let client = client();
    let other = client.clone();
    drop(client);
    let mut response = other.get(&behind.url("/")).send().expect("its head");
    drop(other);
    assert_eq!(response.text().expect("a response keeps the thread"), "ok");
    assert!(ended.try_recv().is_err(), "the connection stays to be used again");
    drop(response);
    ended.recv_timeout(PATIENCE).expect("the connection ends");
}
