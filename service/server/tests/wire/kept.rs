//! Access of handlers to a request beyond their call: its body, its facts, events for its client, what others share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use bolide_server::{
    Bytes, End, EventError, EventSender, Exchange, Io, Reply, Request, RequestBody, Response,
    Router, ServerEvent, collect, with_state,
};

use crate::raw_client::Served;

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\nx-b: c\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn body_of(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a head").1
}

#[test]
fn what_collects_a_body_knows_its_request() {
    let served = Served::new(|| {
        let told = collect(|request, body| {
            let is_local = request.peer().is_some_and(|peer| peer.ip().is_loopback());
            let (id, field) = (request.param("id"), request.header("x-b"));
            let query = request.query_param("q");
            format!("{id:?} {query:?} {field:?} {is_local} {} {body:?}", request.scheme())
        });
        Router::new().handle_post("/users/{id}", told)
    });
    let response = served.ask(&post("/users/a%20b?q=1", "text"));
    assert_eq!(body_of(&response), "Some(\"a b\") Some(\"1\") Some(\"c\") true http b\"text\"");
    let response = served.ask(&post("/users/7", ""));
    assert_eq!(body_of(&response), "Some(\"7\") None Some(\"c\") true http b\"\"");
}

/// Responds once it knows that nothing follows.
#[derive(Debug)]
struct Backwards(Bytes);

impl Exchange for Backwards {
    fn on_start(&mut self, _: &mut Io<'_>) {}

    fn on_data(&mut self, data: Bytes, end: End, io: &mut Io<'_>) {
        assert!(data.is_empty() && end == End::Yes);
        io.respond(self.0.iter().rev().copied().collect::<Vec<u8>>().into());
    }
}

#[test]
fn what_collects_a_body_may_respond_later_and_by_another_exchange() {
    let served = Served::new(|| {
        let later = collect(|request, body| {
            let responder = request.responder();
            thread::spawn(move || responder.respond(body));
            Reply::Later
        });
        let exchange = collect(|_, body| Reply::Exchange(Box::new(Backwards(body))));
        Router::new().handle_post("/later", later).handle_post("/exchange", exchange)
    });
    assert_eq!(body_of(&served.ask(&post("/later", "back"))), "back");
    assert_eq!(body_of(&served.ask(&post("/exchange", "abc"))), "cba");
}

#[test]
fn a_function_is_told_that_a_body_follows() {
    fn look(request: &mut Request<'_>) -> Response {
        let id = request.param("id").expect("the route has it");
        match request.take_body() {
            RequestBody::Follows => format!("{id} follows").into(),
            RequestBody::Empty => format!("{id} is empty").into(),
            RequestBody::Whole(body) => format!("{id} has {body:?}").into(),
        }
    }
    let served = Served::new(|| Router::new().post("/{id}", look));
    assert_eq!(body_of(&served.ask(&post("/a", "text"))), "a follows");
    assert_eq!(body_of(&served.ask(&post("/a", ""))), "a is empty");
}

#[test]
fn handlers_share_a_state() {
    let served = Served::new(|| {
        let count = Arc::new(AtomicU32::new(0));
        let add = with_state(&count, |count, _| {
            count.fetch_add(1, Ordering::Relaxed);
            "added"
        });
        let read = with_state(&count, |count, _| count.load(Ordering::Relaxed).to_string());
        Router::new().get("/add", add).get("/read", read)
    });
    let get = |path: &str| served.ask(&format!("GET {path} HTTP/1.0\r\nhost: a\r\n\r\n"));
    assert_eq!(body_of(&get("/add")), "added");
    assert_eq!(body_of(&get("/read")), "1");
}

/// A server that hands what sends events to the test.
fn of_events() -> (Served, mpsc::Receiver<EventSender>) {
    let (to_test, senders) = mpsc::channel();
    let served = Served::new(move || {
        let to_test = to_test.clone();
        Router::new().get("/events", move |request| {
            let (events, response) = request.events();
            to_test.send(events).expect("the test waits for it");
            response
        })
    });
    (served, senders)
}

fn event(data: &str) -> ServerEvent<'_> {
    ServerEvent { data, ..ServerEvent::default() }
}

#[test]
fn events_arrive_as_they_are_sent_and_end_with_their_sender() {
    let (served, senders) = of_events();
    let mut client = served.connect();
    client.send(b"GET /events HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let events = senders.recv().expect("a request");
    let head = client.until("\r\n\r\n");
    assert!(head.contains("\r\ncontent-type: text/event-stream\r\n"), "{head}");
    events.send(event("one")).unwrap();
    client.until("data: one\n\n");
    let clone = events.clone();
    drop(events);
    clone.try_send(ServerEvent { id: Some("7"), ..event("two") }).unwrap();
    client.until("id: 7\ndata: two\n\n");
    drop(clone);
    assert!(String::from_utf8_lossy(&client.rest()).ends_with("0\r\n\r\n"));
}

#[test]
fn who_sends_faster_than_its_client_reads_is_told_so_and_waits() {
    let (served, senders) = of_events();
    let mut client = served.connect();
    client.send(b"GET /events HTTP/1.0\r\nhost: a\r\n\r\n");
    let events = senders.recv().expect("a request");
    let text = "x".repeat(32 * 1024);
    let mut sent = 0_usize;
    let why = loop {
        match events.try_send(event(&text)) {
            Ok(()) => sent += 1,
            Err(why) => break why,
        }
    };
    assert_eq!(why, EventError::Full);
    let waiting = thread::spawn(move || events.send(event("last")));
    let rest = client.rest();
    waiting.join().expect("no panic").unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert_eq!(rest.matches(&text).count(), sent);
    assert!(rest.ends_with("data: last\n\n"));
}

#[test]
fn who_sends_to_a_client_that_has_gone_is_told_so() {
    let (served, senders) = of_events();
    let mut client = served.connect();
    client.send(b"GET /events HTTP/1.1\r\nhost: a\r\n\r\n");
    let events = senders.recv().expect("a request");
    drop(client);
    let text = "x".repeat(64 * 1024);
    // The system takes some before it says that there is no reader.
    while let Ok(()) = events.send(event(&text)) {}
    assert_eq!(events.try_send(event("more")), Err(EventError::Gone));
}
