//! When connections stay and when they close.

use crate::app::app;
use crate::pair::Pair;

#[tokio::test]
async fn connections_stay_and_close_alike() {
    let pair = Pair::of(app()).await;
    for (request, closed) in [
        ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", false),
        ("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", true),
        ("GET /wait HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", true),
        ("GET /pieces/3 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", true),
        ("GET /close HTTP/1.1\r\nhost: a\r\n\r\n", true),
        ("GET / HTTP/1.0\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n", false),
        ("HEAD / HTTP/1.1\r\nhost: a\r\n\r\n", false),
    ] {
        let response = pair.same_one(request.as_bytes()).await;
        assert_eq!(response.closed, closed, "{request}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let pair = Pair::of(app()).await;
    let mut requests = Vec::new();
    for path in ["/wait", "/", "/pieces/2", "/nothing", "/spawned"] {
        requests.extend(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").into_bytes());
    }
    let responses = pair.same(&requests, 5).await;
    let bodies: Vec<_> = responses.iter().map(|response| response.text()).collect();
    assert_eq!(bodies, ["waited", "root", "piece 0;piece 1;", "no /nothing", "from a task"]);
}

#[tokio::test]
async fn a_body_that_nobody_read_does_not_disturb_the_next_request() {
    let pair = Pair::of(app()).await;
    let request = b"POST /ignore HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n12345\
        GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let responses = pair.same(request, 2).await;
    assert_eq!(responses[1].text(), "root");
}
