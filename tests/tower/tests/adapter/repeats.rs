//! Responses that are sent repeatedly: both servers say the same each time, and Bolide in the same bytes.

use crate::app::app;
use crate::pair::{Client, Pair};

/// Of different kinds, among them two that differ in nothing but their fields' values.
const TARGETS: [(&str, &str); 10] = [
    ("/", ""),
    ("/headers", "x-a: 1\r\n"),
    ("/headers", "x-a: 2\r\n"),
    ("/empty", ""),
    ("/no-content", ""),
    ("/not-modified", ""),
    ("/away", ""),
    ("/pieces/2", ""),
    ("/nothing", ""),
    ("/twice", ""),
];

fn request(method: &str, (path, fields): (&str, &str)) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nhost: a\r\n{fields}\r\n").into_bytes()
}

#[tokio::test]
async fn every_response_of_a_connection_is_what_axum_serve_answers() {
    let pair = Pair::of(app()).await;
    let mut requests = Vec::new();
    // Each one several times in a row, and then all of them in turns.
    for target in TARGETS {
        requests.extend(request("GET", target).repeat(4));
    }
    for _ in 0..4 {
        TARGETS.iter().for_each(|target| requests.extend(request("GET", *target)));
    }
    let count = 8 * TARGETS.len();
    let responses = pair.same(&requests, count).await;
    assert_eq!(responses.len(), count);
    for repeated in responses[..4 * TARGETS.len()].chunks(4) {
        assert!(repeated.iter().all(|response| response.status == repeated[0].status));
    }
}

#[tokio::test]
async fn a_response_is_the_same_bytes_however_often_it_came() {
    let pair = Pair::of(app()).await;
    let mut client = Client::connect(pair.bolide).await;
    for method in ["GET", "HEAD"] {
        for target in TARGETS {
            let mut first = None;
            for times in 1..6 {
                client.send(&request(method, target)).await;
                let head = client.until(b"\r\n\r\n").await.expect("a head");
                let head = String::from_utf8(head).unwrap();
                let lines = head.lines().filter(|line| !line.to_lowercase().starts_with("date:"));
                let lines: Vec<_> = lines.map(str::to_owned).collect();
                let lower: Vec<_> = lines.iter().map(|line| line.to_lowercase()).collect();
                let length = lower.iter().find_map(|line| line.strip_prefix("content-length: "));
                if method == "GET" && lower.contains(&"transfer-encoding: chunked".to_owned()) {
                    client.until(b"0\r\n\r\n").await.expect("the last chunk");
                } else if method == "GET"
                    && let Some(length) = length
                {
                    client.exactly(length.parse().unwrap()).await;
                }
                assert!(head.starts_with("HTTP/1.1 "), "{method} {target:?}, time {times}: {head}");
                assert_eq!(first.get_or_insert_with(|| lines.clone()), &lines, "time {times}");
            }
        }
    }
}
