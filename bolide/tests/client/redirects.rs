//! Responses that lead elsewhere.

use bolide::client::{Client, ErrorKind, Redirects};

use crate::scene::Scripted;

fn following(count_max: u32) -> Client {
    let redirects = Redirects::Follow { count_max };
    Client::builder().redirects(redirects).build().expect("a client")
}

/// Leads elsewhere from `/from`, and shows what it was asked anywhere else.
fn leading(status: &'static str, to: &str) -> Scripted {
    let to = to.to_owned();
    Scripted::new(move |talk, _| {
        loop {
            let head = talk.head();
            if head.is_empty() {
                return;
            }
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
            std::io::Read::read_exact(&mut talk.0, &mut body).expect("a body");
            if head.split(' ').nth(1) == Some("/from") {
                talk.send(&format!(
                    "HTTP/1.1 {status}\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"
                ));
            } else {
                let text = format!("{head}{}", String::from_utf8_lossy(&body));
                talk.send(&format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                ));
            }
        }
    })
}

#[test]
fn redirections_are_answers_unless_they_are_to_be_followed() {
    let behind = leading("302 Found", "/to");
    let client = Client::new().expect("a client");
    let response = client.get(&behind.url("/from")).send().expect("a response");
    assert_eq!((response.status().as_u16(), response.header("location")), (302, Some("/to")));
}

#[test]
fn methods_and_bodies_change_as_rfc_9110_has_it() {
    for (status, expected) in [
        ("301 Moved", "GET /to"),
        ("302 Found", "GET /to"),
        ("303 See Other", "GET /to"),
        ("307 Temporary", "POST /to"),
        ("308 Permanent", "POST /to"),
    ] {
        let behind = leading(status, "to?x");
        let request = following(3).post(&behind.url("/from")).body("text");
        let mut response = request.send().expect("a response");
        assert_eq!(response.url(), behind.url("/to?x"));
        let seen = response.text().expect("text");
        assert!(seen.starts_with(expected), "{status}: {seen}");
        assert_eq!(seen.ends_with("text"), expected.starts_with("POST"), "{status}: {seen}");
    }
}

#[test]
fn secrets_stay_with_the_server_that_they_are_for() {
    let other = leading("200 OK", "");
    for (to, stays) in [(other.url("/to"), false), ("/to".to_owned(), true)] {
        let behind = leading("302 Found", &to);
        let request = following(1).get(&behind.url("/from"));
        let request = request.header("authorization", "secret").header("cookie", "secret");
        let seen = request.header("x-other", "1").send().unwrap().text().unwrap();
        assert_eq!(seen.contains("secret"), stays, "{seen}");
        assert!(seen.contains("x-other: 1\r\n"), "{seen}");
    }
}

#[test]
fn what_is_not_followed_is_an_error() {
    let circle = leading("302 Found", "/from");
    let error = following(5).get(&circle.url("/from")).send().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Redirect);
    assert!(error.to_string().contains("more than 5 redirections"), "{error}");
    let odd = leading("302 Found", "ftp://a/");
    let error = following(5).get(&odd.url("/from")).send().unwrap_err();
    assert!(error.to_string().contains("`Location`: `ftp://a/` is not a URL"), "{error}");
    let kept = leading("307 Temporary", "/to");
    let request = following(5).post(&kept.url("/from")).body_reader(&b"text"[..]);
    let error = request.header("content-length", "4").send().unwrap_err();
    assert!(error.to_string().contains("would have to be sent again"), "{error}");
}
