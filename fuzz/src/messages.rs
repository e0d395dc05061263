//! Parts of HTTP/1.1, mostly valid.

use arbitrary::Arbitrary;

use crate::frames::message;

const STARTS: &[&str] = &[
    "GET /ping HTTP/1.1\r\nhost: a\r\n",
    "POST /echo HTTP/1.1\r\nhost: a\r\n",
    "GET /100000 HTTP/1.1\r\nhost: a\r\n",
    "HEAD /100000 HTTP/1.1\r\nhost: a\r\n",
    "GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
    "OPTIONS * HTTP/1.1\r\nhost: a\r\n",
    "GET /ping HTTP/1.0\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 103 Early Hints\r\n",
    "HTTP/1.1 100 Continue\r\n",
    "HTTP/1.1 204 No Content\r\n",
    "HTTP/1.1 304 Not Modified\r\n",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
     sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n",
];

const LINES: &[&str] = &[
    "transfer-encoding: chunked\r\n",
    "content-length: 5\r\n",
    "content-length: 100000\r\n",
    "content-length: 0\r\n",
    "connection: close\r\n",
    "connection: keep-alive\r\n",
    "expect: 100-continue\r\n",
    "sec-websocket-extensions: permessage-deflate\r\n",
    "trailer: x\r\n",
    "te: trailers\r\n",
    "link: </a>; rel=preload\r\n",
];

/// A part of a message.
#[derive(Debug, Clone, Arbitrary)]
pub enum Message {
    /// A start line with fields, and the end of the head unless it is open.
    Head { start: u8, lines: [u8; 3], count: u8, is_open: bool },
    /// A field.
    Line(u8),
    /// End of a head, of a trailer section or of nothing.
    Empty,
    /// A chunk.
    Chunk { bytes: u16 },
    /// The last chunk, with trailers or not.
    Last { has_trailers: bool },
    /// Content without framing.
    Content { bytes: u16 },
    /// A WebSocket frame.
    WebSocket { first: u8, bytes: u16 },
}

impl Message {
    /// The bytes of the part.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let line = |at: u8| LINES[usize::from(at) % LINES.len()];
        let content = |bytes: u16| "c".repeat(usize::from(bytes));
        match *self {
            Self::Head { start, lines, count, is_open } => {
                let mut text = STARTS[usize::from(start) % STARTS.len()].to_owned();
                lines.iter().take(usize::from(count % 4)).for_each(|at| text += line(*at));
                text += if is_open { "" } else { "\r\n" };
                text.into_bytes()
            }
            Self::Line(at) => line(at).into(),
            Self::Empty => b"\r\n".into(),
            Self::Chunk { bytes } => format!("{bytes:x}\r\n{}\r\n", content(bytes)).into_bytes(),
            Self::Last { has_trailers: false } => b"0\r\n\r\n".into(),
            Self::Last { has_trailers: true } => b"0\r\nx: y\r\n\r\n".into(),
            Self::Content { bytes } => content(bytes).into_bytes(),
            Self::WebSocket { first, bytes } => message(first, bytes),
        }
    }
}
