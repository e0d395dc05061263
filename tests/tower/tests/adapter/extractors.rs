//! Extractors, routers and fallbacks.

use crate::app::app;
use crate::pair::Pair;

#[tokio::test]
async fn every_extractor_sees_the_same() {
    let pair = Pair::of(app()).await;
    assert_eq!(pair.get("/path/ann%20e/7", "").await.text(), "ann e 7");
    assert_eq!(pair.get("/path/ann/seven", "").await.status, 400);
    assert_eq!(pair.get("/query?name=b&age=3", "").await.text(), "b");
    assert_eq!(pair.get("/query?name=b", "").await.status, 400);
    assert_eq!(pair.get("/key", "x-key: k\r\n").await.text(), "k");
    assert_eq!(pair.get("/key", "").await.status, 401);
    assert_eq!(pair.get("/state", "").await.text(), "the state");
    assert_eq!(pair.get("/headers", "X-A: 1\r\n").await.text(), "Some(\"1\")");
    assert_eq!(pair.get("/peer", "").await.text(), "127.0.0.1");
}

#[tokio::test]
async fn bodies_are_extracted_alike() {
    let pair = Pair::of(app()).await;
    let json = "content-type: application/json\r\n";
    let response = pair.post("/json", json, br#"{"name":"a","age":1}"#).await;
    assert_eq!(response.text(), r#"{"name":"a","age":2}"#);
    assert_eq!(pair.post("/json", json, b"{").await.status, 400);
    assert_eq!(pair.post("/json", "", b"{}").await.status, 415);
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    assert_eq!(pair.post("/form", form, b"name=c&age=9").await.status, 200);
    assert_eq!(pair.post("/text", "", "grüße".as_bytes()).await.text(), "grüße");
    assert_eq!(pair.post("/text", "", b"\xff").await.status, 400);
    assert_eq!(pair.post("/bytes", "", &vec![7; 1 << 20]).await.body.len(), 1 << 20);
    // axum's own limit, which closes the connection on hyper: what was sent is not read to its end.
    let large = pair.post("/bytes", "", &vec![7; (2 << 20) + 1]).await;
    assert_eq!(large.status, 413);
}

#[tokio::test]
async fn uploads_by_multipart_arrive_whole() {
    let pair = Pair::of(app()).await;
    let file = vec![b'f'; 5 << 20];
    let mut body = b"--B\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\nsmall\r\n--B\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"
        .to_vec();
    body.extend_from_slice(&file);
    body.extend_from_slice(b"\r\n--B--\r\n");
    let kind = "content-type: multipart/form-data; boundary=B\r\n";
    assert_eq!(pair.post("/upload", kind, &body).await.text(), "a: 5 file: 5242880 ");
    assert_eq!(pair.post("/upload", kind, b"--B\r\nnonsense").await.status, 400);
}

#[tokio::test]
async fn nested_routers_fallbacks_and_methods() {
    let pair = Pair::of(app()).await;
    for (path, status) in [
        ("/", 200),
        ("/inner", 200),
        ("/inner/deep/x", 200),
        ("/inner/nothing", 404),
        ("/nothing?a=b", 404),
        ("/away", 307),
        ("/empty", 200),
        ("/no-content", 204),
        ("/not-modified", 304),
        ("/twice", 200),
        ("/order", 200),
    ] {
        assert_eq!(pair.get(path, "").await.status, status, "{path}");
    }
    let order = pair.get("/order", "").await;
    assert_eq!((order.text(), order.fields["x-order"].concat().as_str()), ("abc", "cba"));
    for method in ["HEAD", "OPTIONS", "DELETE", "PATCH", "BREW"] {
        for path in ["/", "/large", "/pieces/3", "/show", "/empty", "/nothing"] {
            let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n");
            pair.same_one(request.as_bytes()).await;
        }
    }
}

#[tokio::test]
async fn a_handler_sees_the_request_as_it_was_sent() {
    let pair = Pair::of(app()).await;
    let fields = "X-Mixed-Case: A b\r\naccept: a\r\naccept: b\r\ncookie: c=d\r\nx-empty:\r\n";
    let response = pair.get("/show?a=%20&b=%C3%BC", fields).await;
    assert!(response.text().contains("/show?a=%20&b=%C3%BC HTTP/1.1"), "{}", response.text());
    pair.same_one(b"GET http://b.example/show HTTP/1.1\r\nhost: b.example\r\n\r\n").await;
    pair.same_one(b"GET /show HTTP/1.0\r\n\r\n").await;
}
