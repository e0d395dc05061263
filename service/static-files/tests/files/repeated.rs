//! RFC 9113, cleartext: requests that come many times in one packet, whose responses are not made anew.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use bolide_frames::{
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, SETTINGS, block, client_preface, frame,
    window_update,
};

use crate::client::Site;

/// Speaks HTTP/2 without a table of its own.
struct Http2 {
    stream: TcpStream,
    next: u32,
}

/// The first byte of a response's header block, which is its status, and the body.
type Response = (u8, Vec<u8>);

const OK: u8 = 0x88;
const NOT_MODIFIED: u8 = 0x8b;

fn request(method: &str, path: &str, line: Option<(&str, &str)>) -> Vec<u8> {
    let start = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a")];
    let lines: Vec<_> = start.into_iter().chain(line).collect();
    block(&lines)
}

impl Http2 {
    fn connect(site: &Site) -> Self {
        let mut stream = TcpStream::connect(site.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(&client_preface(&[])).unwrap();
        stream.write_all(&frame(SETTINGS, ACK, 0, &[])).unwrap();
        // The connection's window never gets in the way.
        stream.write_all(&window_update(0, 0x7000_0000)).unwrap();
        Self { stream, next: 1 }
    }

    /// Sends all of these at once, and returns the responses in the order of the requests.
    fn ask(&mut self, requests: &[Vec<u8>]) -> Vec<Response> {
        let flags = END_STREAM | END_HEADERS;
        let mut bytes = Vec::new();
        for block in requests {
            bytes.extend(frame(HEADERS, flags, self.next, block));
            self.next += 2;
        }
        self.stream.write_all(&bytes).unwrap();
        let mut responses: BTreeMap<u32, Response> = BTreeMap::new();
        let mut ended = 0;
        while ended < requests.len() {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header).unwrap();
            let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).unwrap();
            let id = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
            match header[3] {
                HEADERS => drop(responses.insert(id, (payload[0], Vec::new()))),
                DATA => responses.get_mut(&id).unwrap().1.extend(payload),
                _ => continue,
            }
            ended += usize::from(header[4] & END_STREAM);
        }
        responses.into_values().collect()
    }
}

#[test]
fn every_request_of_many_gets_its_own_response() {
    let (long, large) = ("b".repeat(300), "c".repeat(5000));
    let site = Site::with(
        &[("a.txt", "aaaaaa"), ("b.txt", &long), ("c.txt", &large), ("e", "")],
        |files| files.fresh(Duration::from_secs(600)),
    );
    let mut client = Http2::connect(&site);
    let get = |path| (request("GET", path, None), (OK, path));
    let kinds = [
        get("/a.txt"),
        get("/b.txt"),
        get("/c.txt"),
        get("/e"),
        get("/a.txt?x"),
        (request("HEAD", "/a.txt", None), (OK, "")),
        (request("GET", "/a.txt", Some(("if-none-match", "*"))), (NOT_MODIFIED, "")),
        (request("GET", "/%61.txt", None), (OK, "/a.txt")),
    ];
    let body = |path: &str| match path {
        "/a.txt" | "/a.txt?x" => "aaaaaa".to_owned(),
        "/b.txt" => long.clone(),
        "/c.txt" => large.clone(),
        _ => String::new(),
    };
    for (request, _) in &kinds {
        client.ask(std::slice::from_ref(request));
    }
    // Each kind twice in a row, after each other kind, several times.
    let order: Vec<usize> = (0..kinds.len())
        .flat_map(|one| (0..kinds.len()).flat_map(move |other| [one, one, other]))
        .collect();
    for part in order.chunks(25).cycle().take(30) {
        let requests: Vec<_> = part.iter().map(|kind| kinds[*kind].0.clone()).collect();
        let responses = client.ask(&requests);
        for (kind, (status, bytes)) in part.iter().zip(responses) {
            let (expected, path) = kinds[*kind].1;
            assert_eq!((status, &*bytes), (expected, body(path).as_bytes()), "{kind} of {part:?}");
        }
    }
}

#[test]
fn a_changed_file_is_served_new_to_requests_that_repeat() {
    let site = Site::of(&[("a.txt", "before")]);
    let mut client = Http2::connect(&site);
    let requests = vec![request("GET", "/a.txt", None); 20];
    assert_eq!(client.ask(&requests), vec![(OK, b"before".to_vec()); 20]);
    fs::write(site.path("a.txt"), "behind").unwrap();
    let changed = Instant::now();
    loop {
        let asked = Instant::now();
        let responses = client.ask(&requests);
        let (last, old) =
            (&responses[19].1, responses.iter().filter(|one| one.1 == b"before").count());
        assert!(responses.iter().all(|one| one.1 == b"before" || one.1 == b"behind"));
        if last == b"behind" {
            break;
        }
        assert!(old > 0 && asked - changed < Duration::from_secs(1), "old for too long");
    }
}
