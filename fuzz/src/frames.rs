//! Frames of HTTP/2, mostly valid.

use arbitrary::Arbitrary;
use bolide_frames::{block, frame, websocket};

/// Fields that frames with heads are made of, by number.
const FIELDS: &[(&str, &str)] = &[
    (":method", "GET"),
    (":method", "POST"),
    (":method", "CONNECT"),
    (":method", "HEAD"),
    (":scheme", "http"),
    (":authority", "a"),
    (":path", "/ping"),
    (":path", "/echo"),
    (":path", "/ws"),
    (":path", "/100000"),
    (":protocol", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-extensions", "permessage-deflate"),
    ("content-length", "5"),
    ("content-length", "0"),
    ("expect", "100-continue"),
    ("te", "trailers"),
    ("connection", "close"),
    ("content-type", "application/grpc"),
    (":status", "200"),
    (":status", "103"),
    (":status", "204"),
    (":status", "101"),
    ("link", "</a>; rel=preload"),
    ("trailer", "x"),
    ("priority", "u=1, i"),
];

/// The requests and responses that are whole, by number: those are made of fields above.
const HEADS: &[&[usize]] = &[
    &[0, 4, 5, 6],
    &[1, 4, 5, 7],
    &[2, 4, 5, 8, 10, 11],
    &[2, 4, 5, 8, 10, 11, 12],
    &[0, 4, 5, 9],
    &[3, 4, 5, 9],
    &[19],
    &[20, 23],
    &[21],
    &[24],
];

/// A frame.
#[derive(Debug, Clone, Arbitrary)]
pub enum Frame {
    /// HEADERS, with CONTINUATION if it is cut. Fields follow those of a whole head.
    Headers { stream: u8, head: u8, fields: [u8; 3], more: u8, end: bool, is_cut: bool },
    /// DATA.
    Data { stream: u8, bytes: u16, end: bool, padding: u8 },
    /// A WebSocket frame in a DATA frame.
    WebSocket { stream: u8, first: u8, bytes: u16 },
    /// RST_STREAM.
    Reset { stream: u8, code: u8 },
    /// SETTINGS with one value, or an acknowledgement.
    Settings { name: u8, value: u32, is_ack: bool },
    /// WINDOW_UPDATE.
    Window { stream: u8, bytes: u32 },
    /// PING.
    Ping { is_ack: bool },
    /// GOAWAY.
    GoAway { last: u8, code: u8 },
    /// PRIORITY_UPDATE.
    Priority { stream: u8, urgency: u8 },
    /// Any other.
    Any { kind: u8, flags: u8, stream: u8, payload: [u8; 6] },
}

/// A masked WebSocket frame.
pub(crate) fn message(first: u8, bytes: u16) -> Vec<u8> {
    websocket(first, &vec![b'w'; usize::from(bytes)])
}

/// A stream's number: clients' most of the time.
fn stream(number: u8) -> u32 {
    match number {
        0..=199 => u32::from(number % 8) * 2 + 1,
        _ => u32::from(number) - 200,
    }
}

fn fields(head: u8, fields: [u8; 3], more: u8) -> Vec<u8> {
    let head = HEADS[usize::from(head) % HEADS.len()].iter().copied();
    let more = fields.into_iter().take(usize::from(more) % 4).map(usize::from);
    block(&head.chain(more).map(|at| FIELDS[at % FIELDS.len()]).collect::<Vec<_>>())
}

impl Frame {
    /// The frame's bytes, or those of two that belong together. `nth`: how often it was sent before, which moves streams on.
    pub(crate) fn bytes(&self, nth: u32) -> Vec<u8> {
        match *self {
            Self::Headers { stream: number, head, fields, more, end, is_cut } => {
                let stream = stream(number) + 2 * nth;
                let (block, end) = (self::fields(head, fields, more), u8::from(end));
                if !is_cut {
                    return frame(1, 4 | end, stream, &block);
                }
                let (first, second) = block.split_at(block.len() / 2);
                [frame(1, end, stream, first), frame(9, 4, stream, second)].concat()
            }
            Self::Data { stream: number, bytes, end, padding } => {
                let content = usize::from(bytes % 17_000);
                let mut payload = Vec::new();
                if padding > 0 {
                    payload.push(padding);
                }
                payload.resize(payload.len() + content + usize::from(padding), b'd');
                let flags = u8::from(end) | if padding > 0 { 8 } else { 0 };
                frame(0, flags, stream(number), &payload)
            }
            Self::WebSocket { stream: number, first, bytes } => {
                frame(0, 0, stream(number), &message(first, bytes % 17_000))
            }
            Self::Reset { stream: number, code } => {
                frame(3, 0, stream(number) + 2 * nth, &[0, 0, 0, code])
            }
            Self::Settings { is_ack: true, .. } => frame(4, 1, 0, &[]),
            Self::Settings { name, value, .. } => {
                let [a, b, c, d] = value.to_be_bytes();
                frame(4, 0, 0, &[0, name % 10, a, b, c, d])
            }
            Self::Window { stream: number, bytes } => {
                frame(8, 0, if number == 0 { 0 } else { stream(number) }, &bytes.to_be_bytes())
            }
            Self::Ping { is_ack } => frame(6, u8::from(is_ack), 0, &[7; 8]),
            Self::GoAway { last, code } => frame(7, 0, 0, &[0, 0, 0, last, 0, 0, 0, code]),
            Self::Priority { stream: number, urgency } => {
                let [a, b, c, d] = stream(number).to_be_bytes();
                frame(16, 0, 0, &[a, b, c, d, b'u', b'=', b'0' + urgency % 10])
            }
            Self::Any { kind, flags, stream: number, payload } => {
                frame(kind % 20, flags, stream(number), &payload)
            }
        }
    }
}
