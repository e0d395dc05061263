//! RFC 9110 §15.2: interim responses without end from an upstream.

use bolide_frames::{END_HEADERS, END_STREAM, HEADERS, frame, settings};

use crate::scene::{Behind, Proxy, Talk};

/// `:status`, without a place in the table.
fn status(status: &str) -> Vec<u8> {
    [&[0x08, 3], status.as_bytes()].concat()
}

/// A field of 3900 bytes that takes the first place of the dynamic table.
fn large_field() -> Vec<u8> {
    // An integer of RFC 7541 §5.1 with a prefix of 7 bits.
    let length = [0x7f, ((3900 - 127) % 128) as u8 | 0x80, ((3900 - 127) / 128) as u8];
    [&[0x40, 1, b'x'], &length[..], &[b'y'; 3900]].concat()
}

/// How many interim responses a client gets of so many, and the final response.
fn passed_on(count: usize) -> (usize, String) {
    let behind = Behind::new(move |talk: &mut Talk, _| {
        talk.until("SM\r\n\r\n");
        talk.take(9);
        let first = [status("103"), large_field()].concat();
        let again = [status("103"), vec![0x80 | 62; 7]].concat();
        let mut bytes = settings(&[]);
        bytes.extend(frame(HEADERS, END_HEADERS, 1, &first));
        for _ in 1..count {
            bytes.extend(frame(HEADERS, END_HEADERS, 1, &again));
        }
        bytes.extend(frame(HEADERS, END_HEADERS | END_STREAM, 1, &status("204")));
        // A peer that has gone is what some of the tests are about.
        let _ = std::io::Write::write_all(&mut talk.stream, &bytes);
        talk.rest();
    });
    let proxy = Proxy::to(&[&behind.url().replace("http:", "h2c:")]);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let mut interim_count = 0;
    loop {
        let head = client.head();
        if !head.starts_with("HTTP/1.1 103") {
            return (interim_count, head);
        }
        interim_count += 1;
    }
}

#[test]
fn an_interim_flood_ends_its_exchange_and_few_heads_wait() {
    let (interim_count, last) = passed_on(2);
    assert_eq!(interim_count, 2);
    assert!(last.starts_with("HTTP/1.1 204"), "{last}");
    // 17 bytes each stand for 28 KB: they come in one turn or two, and four wait.
    let (interim_count, last) = passed_on(32);
    assert!((1..=8).contains(&interim_count), "{interim_count}");
    assert!(last.starts_with("HTTP/1.1 204"), "{last}");
    let (_, last) = passed_on(33);
    assert!(last.starts_with("HTTP/1.1 502"), "{last}");
}
