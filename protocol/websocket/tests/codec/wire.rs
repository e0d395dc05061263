//! Frames by hand, and what comes of them.

use bolide_semantics::{End, Role};
use bolide_websocket::{Codec, Event, Kind, Settings};
use bytes::Bytes;

/// The key of frames made here.
const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// A client's frame: first byte, content.
pub(crate) fn masked(first: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    push_length(&mut frame, content.len(), 0x80);
    frame.extend_from_slice(&KEY);
    frame.extend(content.iter().enumerate().map(|(at, byte)| byte ^ KEY[at % 4]));
    frame
}

/// A server's frame: first byte, content.
pub(crate) fn plain(first: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    push_length(&mut frame, content.len(), 0);
    frame.extend_from_slice(content);
    frame
}

fn push_length(frame: &mut Vec<u8>, length: usize, masked: u8) {
    if length < 126 {
        frame.push(masked | length as u8);
    } else if let Ok(length) = u16::try_from(length) {
        frame.push(masked | 126);
        frame.extend_from_slice(&length.to_be_bytes());
    } else {
        frame.push(masked | 127);
        frame.extend_from_slice(&(length as u64).to_be_bytes());
    }
}

/// Result of some bytes, with the pieces of each message put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Message(Kind, Vec<u8>),
    Part(Kind, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Closed(u16, String),
    Failed(u16, &'static str),
}

/// Feeds `pieces` and gives what was reported.
pub(crate) fn feed<'a>(codec: &mut Codec, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut message: Option<(Kind, Vec<u8>)> = None;
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(event) = codec.receive(&mut input) {
            if matches!(event, Event::Closed(_) | Event::Failed(_))
                && let Some((kind, content)) = message.take()
            {
                seen.push(Seen::Part(kind, content));
            }
            seen.push(match event {
                Event::Message { kind, payload, end } => {
                    let (begun, content) = message.get_or_insert((kind, Vec::new()));
                    assert_eq!(*begun, kind, "the kind changes within a message");
                    payload.append_to(content);
                    if end == End::No {
                        continue;
                    }
                    let (kind, content) = message.take().unwrap();
                    Seen::Message(kind, content)
                }
                Event::Ping(content) => Seen::Ping(content.to_vec()),
                Event::Pong(content) => Seen::Pong(content.to_vec()),
                Event::Closed(close) => Seen::Closed(close.code.0, close.reason().to_owned()),
                Event::Failed(failure) => Seen::Failed(failure.code.0, failure.what),
            });
        }
        assert!(input.is_empty(), "input is left");
    }
    if let Some((kind, content)) = message {
        seen.push(Seen::Part(kind, content));
    }
    seen
}

/// A server that has received these bytes.
pub(crate) fn serve(bytes: &[u8]) -> (Codec, Vec<Seen>) {
    let mut codec = Codec::new(Role::Server, Settings::default());
    let seen = feed(&mut codec, [bytes]);
    (codec, seen)
}

/// Everything that waits to leave.
pub(crate) fn output(codec: &mut Codec) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(bytes) = codec.pop_output() {
        all.extend_from_slice(&bytes);
    }
    assert_eq!(codec.output_bytes(), 0);
    all
}

pub(crate) fn text(content: &str) -> Seen {
    Seen::Message(Kind::Text, content.as_bytes().to_vec())
}

pub(crate) fn binary(content: &[u8]) -> Seen {
    Seen::Message(Kind::Binary, content.to_vec())
}
