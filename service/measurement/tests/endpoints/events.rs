//! `/events`.

use std::time::{Duration, Instant};

use bolide_measurement::Ndt7Settings;

use crate::served::Served;

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
}

#[test]
fn events_come_at_their_times_and_have_their_size() {
    let served = Served::new(Ndt7Settings::default());
    let began = Instant::now();
    let response = served.ask(&get("/events?n=4&gap=50&size=3&done=1"), 10_000);
    assert!(began.elapsed() >= Duration::from_millis(150), "{:?}", began.elapsed());
    assert!(response.contains("\r\ncontent-type: text/event-stream\r\n"), "{response}");
    for event in 0..4 {
        assert!(response.contains(&format!("id: {event}\ndata: xxx\n\n")), "{response}");
    }
    assert!(response.contains("data: [DONE]\n\n\r\n0\r\n\r\n"), "{response}");
    assert_eq!(response.matches("data: ").count(), 5, "{response}");
}

#[test]
fn without_a_gap_all_events_come_at_once_however_many() {
    let served = Served::new(Ndt7Settings::default());
    let response = served.ask(&get("/events?n=20000&gap=0&size=10"), 10_000_000);
    assert_eq!(response.matches("data: xxxxxxxxxx\n").count(), 20_000);
    assert!(response.ends_with("\r\n0\r\n\r\n"));
    let none = served.ask(&get("/events?n=0"), 10_000);
    assert!(none.starts_with("HTTP/1.1 200 ") && !none.contains("data:"), "{none}");
}

#[test]
fn the_content_of_a_post_is_discarded() {
    let served = Served::new(Ndt7Settings::default());
    let head = "POST /events?n=1&size=1 HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n";
    let response = served.ask(&format!("{head}{}", "y".repeat(100_000)), 10_000);
    assert!(response.contains("data: x\n\n"), "{response}");
}

#[test]
fn what_is_no_number_or_too_large_is_a_400_with_what_would_be_right() {
    let served = Served::new(Ndt7Settings::default());
    for wrong in ["n=1000001", "gap=60001", "size=65537", "done=2", "n=", "n=-1", "n=+1", "gap=1s"]
    {
        let response = served.ask(&get(&format!("/events?{wrong}")), 10_000);
        assert!(response.starts_with("HTTP/1.1 400 "), "{wrong}: {response}");
        assert!(response.contains("is a number from 0 to "), "{wrong}: {response}");
    }
}
