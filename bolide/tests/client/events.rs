//! Streams of events that break off and go on.

use std::time::{Duration, Instant};

use bolide::client::{Client, ClientLimits, ErrorKind};

use crate::scene::Scripted;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

#[test]
fn a_stream_that_breaks_off_goes_on_where_it_was() {
    let behind = Scripted::new(|talk, number| {
        let head = talk.head();
        assert!(head.contains("\r\naccept: text/event-stream\r\n"), "{head}");
        let id = head.lines().find_map(|line| line.strip_prefix("last-event-id: "));
        match number {
            0 => {
                assert_eq!(id, None);
                talk.send(STREAM);
                talk.send("\u{feff}retry: 1\nid: 7\ndata: first\n\nevent: x\rdata: sec");
                talk.send("ond\r\ndata: line\n\r\ndata: never complete\n");
            }
            1 => {
                assert_eq!(id, Some("7"));
                talk.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99\r\n\r\n");
                talk.send(": only a comment, and then it breaks off\n\n");
            }
            2 => {
                assert_eq!(id, Some("7"));
                talk.send(STREAM);
                talk.send("id\ndata: third\n\n");
            }
            _ => {
                assert_eq!(id, None, "an empty identifier is not sent");
                talk.send("HTTP/1.1 204 No Content\r\n\r\n");
            }
        }
    });
    let client = Client::new().expect("a client");
    let events: Result<Vec<_>, _> = client.get(&behind.url("/")).events().collect();
    let events: Vec<_> = events
        .expect("the server has no more")
        .into_iter()
        .map(|event| (event.kind, event.data, event.id.to_string()))
        .collect();
    let event =
        |kind: &str, data: &str, id: &str| (kind.to_owned(), data.to_owned(), id.to_owned());
    assert_eq!(
        events,
        [
            event("message", "first", "7"),
            event("x", "second\nline", "7"),
            event("message", "third", "")
        ]
    );
    assert_eq!(behind.connections(), 4);
}

#[test]
fn what_is_no_stream_of_events_ends_it() {
    for (response, expected) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "404 Not Found is not a stream"),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 0\r\n\r\n",
            "`text/html` is no",
        ),
    ] {
        let behind = Scripted::answering(response);
        let client = Client::new().expect("a client");
        let mut events = client.get(&behind.url("/")).events();
        let error = events.next().expect("an error").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Response);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(events.next().is_none(), "it is over");
        assert_eq!(behind.connections(), 1);
    }
}

#[test]
fn an_endless_retry_is_paced_and_given_up() {
    let behind = Scripted::new(|talk, number| {
        talk.head();
        if number == 0 {
            talk.send(STREAM);
            talk.send("retry: 0\ndata: x\n\n");
        }
    });
    let client = Client::new().expect("a client");
    let begun = Instant::now();
    let mut events = client.get(&behind.url("/")).events().failures_max(2);
    assert_eq!(events.next().expect("an event").expect("an event").data, "x");
    let error = events.next().expect("an error").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(begun.elapsed() >= Duration::from_millis(200), "two pauses of the least length");
    assert!(events.next().is_none());
}

#[test]
fn a_quiet_stream_is_no_failure() {
    let behind = Scripted::new(|talk, _| {
        talk.head();
        talk.send(STREAM);
        std::thread::sleep(Duration::from_millis(300));
        talk.send("data: x\n\n");
    });
    let limits =
        ClientLimits { pause_timeout: Duration::from_millis(50), ..ClientLimits::default() };
    let client = Client::builder().limits(limits).build().expect("a client");
    let mut events = client.get(&behind.url("/")).events().failures_max(1);
    assert_eq!(events.next().expect("an event").expect("an event").data, "x");
    assert_eq!(behind.connections(), 1);
}

#[test]
fn a_stream_that_ends_without_an_event_is_a_failure() {
    let behind = Scripted::new(|talk, number| {
        talk.head();
        talk.send(STREAM);
        talk.send("retry: 0\n: a comment\n\n");
        if number == 1 {
            talk.send("data: x\n\n");
        }
    });
    let client = Client::new().expect("a client");
    let mut events = client.get(&behind.url("/")).events().failures_max(2);
    assert_eq!(events.next().expect("an event").expect("an event").data, "x");
    let error = events.next().expect("an error").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.to_string().contains("ended without an event"), "{error}");
    assert!(events.next().is_none(), "it is over");
    assert_eq!(behind.connections(), 4, "an event ends the row of failures");
}

#[test]
fn a_stream_that_must_not_be_quiet_is_asked_for_again() {
    let behind = Scripted::new(|talk, number| {
        talk.head();
        talk.send(STREAM);
        if number == 1 {
            talk.send("data: x\n\n");
        }
        talk.head();
    });
    let client = Client::new().expect("a client");
    let short = Duration::from_millis(50);
    let mut events = client.get(&behind.url("/")).events().pause(short).delay(short);
    assert_eq!(events.next().expect("an event").expect("an event").data, "x");
    assert_eq!(behind.connections(), 2);
}

#[test]
fn redirections_lead_to_a_stream_of_events() {
    for status in ["301 A", "302 B", "303 C", "307 D", "308 E"] {
        let behind = Scripted::new(move |talk, _| {
            while let Some(path) = talk.head().split(' ').nth(1) {
                if path == "/to" {
                    talk.send(STREAM);
                    return talk.send("data: x\n\n");
                }
                let to = if path == "/round" { "/round" } else { "/to" };
                talk.send(&format!(
                    "HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"
                ));
            }
        });
        let client = Client::new().expect("a client");
        let mut events = client.get(&behind.url("/from")).events();
        assert_eq!(events.next().expect("an event").expect("an event").data, "x", "{status}");
        let mut events = client.get(&behind.url("/round")).events();
        let error = events.next().expect("an error").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Redirect, "{error}");
        assert!(error.to_string().contains("more than 20 redirections"), "{error}");
        assert!(events.next().is_none(), "it is over");
    }
}
