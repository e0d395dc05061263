//! Bodies that take their time.

use crate::app::app;
use crate::pair::{Client, Pair};

#[tokio::test]
async fn events_pieces_and_tasks() {
    let pair = Pair::of(app()).await;
    let events = pair.get("/events", "").await;
    assert_eq!(events.text().matches("data: event").count(), 3);
    assert_eq!(events.field("content-type"), Some("text/event-stream"));
    assert!(pair.get("/pieces/500", "").await.text().ends_with("piece 499;"));
    assert_eq!(pair.get("/large", "").await.body.len(), 3 << 20);
    assert_eq!(pair.get("/wait", "").await.text(), "waited");
    assert_eq!(pair.get("/spawned", "").await.text(), "from a task");
    assert_eq!(pair.get("/blocking", "").await.text(), "from a thread");
}

#[tokio::test]
async fn a_body_that_fails_breaks_the_connection_off() {
    let pair = Pair::of(app()).await;
    for address in [pair.hyper, pair.bolide] {
        let mut client = Client::connect(address).await;
        client.send(b"GET /breaks HTTP/1.1\r\nhost: a\r\n\r\n").await;
        assert!(client.until(b"a beginning").await.is_some(), "{address}");
        assert!(client.until(b"0\r\n\r\n").await.is_none(), "no end: {address}");
    }
}

#[tokio::test]
async fn a_body_goes_back_as_it_comes() {
    let pair = Pair::of(app()).await;
    for length in [0, 1, 1000, 70_000, 1 << 20] {
        let body: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
        assert_eq!(pair.post("/back", "", &body).await.body, body);
    }
    let chunked = b"POST /back HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n\
        3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    assert_eq!(pair.same_one(chunked).await.text(), "abcde");
}

#[tokio::test]
async fn who_waits_is_told_to_continue_when_the_body_is_wanted() {
    let pair = Pair::of(app()).await;
    for address in [pair.hyper, pair.bolide] {
        let mut client = Client::connect(address).await;
        client
            .send(b"POST /text HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
            .await;
        let told = client.until(b"\r\n\r\n").await.expect("a head");
        assert!(told.starts_with(b"HTTP/1.1 100 "), "{address}");
        client.send(b"abc").await;
        assert_eq!(client.answer(false).await.expect("a response").text(), "abc");
        // A handler that does not want it answers at once.
        let mut client = Client::connect(address).await;
        client
            .send(b"POST /ignore HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n")
            .await;
        assert_eq!(client.answer(false).await.expect("a response").status, 200, "{address}");
    }
}
