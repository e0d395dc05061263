//! Clients of the simulation, which know bytes and frames and nothing of our encoders.

use std::cell::RefCell;
use std::rc::Rc;

use bolide_frames::{
    ACK, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PING, SETTINGS,
    client_preface, data, frame, window_update,
};
use bolide_simnet::{Random, Wire};

use super::world::fill_byte;

/// A request and what it must bring.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    body: Option<Vec<u8>>,
    pub(super) response: Vec<u8>,
}

fn asked(random: &mut Random) -> Asked {
    let get =
        |path: String, response: &[u8]| Asked { path, body: None, response: response.to_vec() };
    let length = [0, 1, 100, 5_000, 20_000][random.within(0..=4)];
    match random.within(0..=4) {
        0 => get("/ping".to_owned(), b"pong"),
        1 => get("/wait".to_owned(), b"waited"),
        2 => get(format!("/yield/{}", random.within(0..=20)), b"yielded"),
        3 => {
            let response: Vec<u8> = (0..length).map(fill_byte).collect();
            get(format!("/fill/{length}"), &response)
        }
        _ => {
            let body = random.bytes(length.min(5000));
            Asked { path: "/back".to_owned(), response: body.clone(), body: Some(body) }
        }
    }
}

fn some(seed: u64) -> Vec<Asked> {
    let mut random = Random::new(seed);
    (0..random.within(1..=7)).map(|_| asked(&mut random)).collect()
}

/// A client of HTTP/1.1 that pipelines its requests and ends its side when it has its responses, and the
/// bytes of those.
pub(super) fn pipeline(seed: u64) -> (impl FnMut(&mut Wire<'_>), Vec<u8>) {
    let (mut requests, mut expected) = (Vec::new(), Vec::new());
    for one in some(seed) {
        let (method, length) = match &one.body {
            Some(body) => ("POST", format!("content-length: {}\r\n", body.len())),
            None => ("GET", String::new()),
        };
        let head = format!("{method} {} HTTP/1.1\r\nhost: a\r\n{length}\r\n", one.path);
        requests.extend_from_slice(head.as_bytes());
        requests.extend(one.body.iter().flatten());
        let length = one.response.len();
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\ndate: {date}\r\n\r\n");
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(&one.response);
    }
    let all = expected.len();
    let client = move |wire: &mut Wire<'_>| {
        if wire.is_new() {
            wire.send(&requests);
        }
        if wire.received().len() == all {
            wire.finish();
        }
    };
    (client, expected)
}

/// Bytes of each response, and whether it has ended.
pub(super) type Responses = Rc<RefCell<Vec<(Vec<u8>, bool)>>>;

/// A client of HTTP/2 that opens all of its streams at once.
pub(super) struct Multiplexer {
    asked: Vec<Asked>,
    responses: Responses,
    read: usize,
    finished: bool,
}

impl Multiplexer {
    pub(super) fn new(seed: u64, responses: Responses) -> Self {
        let asked = some(seed);
        *responses.borrow_mut() = vec![(Vec::new(), false); asked.len()];
        Self { asked, responses, read: 0, finished: false }
    }

    pub(super) fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// All that it says of its own accord. The windows are larger than everything that comes.
    fn opening(&self) -> Vec<u8> {
        let mut bytes = client_preface(&[(INITIAL_WINDOW_SIZE, 1 << 20)]);
        bytes.extend(window_update(0, 1 << 20));
        for (one, stream) in self.asked.iter().zip((1..).step_by(2)) {
            // `:method` and `:scheme http` by index, `:path` and `:authority a` in letters.
            let method = if one.body.is_some() { 0x83 } else { 0x82 };
            let length = u8::try_from(one.path.len()).expect("a short path");
            let mut block = vec![method, 0x86, 0x04, length];
            block.extend_from_slice(one.path.as_bytes());
            block.extend_from_slice(&[0x01, 1, b'a']);
            let ends = if one.body.is_some() { 0 } else { END_STREAM };
            bytes.extend(frame(HEADERS, END_HEADERS | ends, stream, &block));
            if let Some(body) = &one.body {
                bytes.extend(data(stream, true, body));
            }
        }
        bytes
    }

    pub(super) fn advance(&mut self, wire: &mut Wire<'_>) {
        if wire.is_new() {
            wire.send(&self.opening());
        }
        let mut replies = Vec::new();
        while let Some((head, rest)) = wire.received()[self.read..].split_first_chunk::<9>() {
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            let Some(payload) = rest.get(..length) else { break };
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize;
            match (head[3], head[4] & END_STREAM != 0) {
                (kind @ (DATA | HEADERS), ends) => {
                    let response = &mut self.responses.borrow_mut()[stream / 2];
                    if kind == DATA {
                        response.0.extend_from_slice(payload);
                    }
                    response.1 |= ends;
                }
                (kind @ (SETTINGS | PING), false) => {
                    let echoed = if kind == PING { payload } else { &[] };
                    replies.extend(frame(kind, ACK, 0, echoed));
                }
                _ => {}
            }
            self.read += 9 + length;
        }
        if self.finished {
            return;
        }
        wire.send(&replies);
        if self.responses.borrow().iter().all(|(_, ended)| *ended) {
            self.finished = true;
            wire.finish();
        }
    }
}
