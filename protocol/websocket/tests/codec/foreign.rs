//! Against tungstenite, in both roles.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use bolide_semantics::Role as OurRole;
use bolide_websocket::{CloseCode, Codec, Kind, Settings};
use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error, Message};

use crate::wire::{Seen, feed, output};

/// A stream in memory.
#[derive(Debug, Default)]
struct Pipe {
    to_it: VecDeque<u8>,
    from_it: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.to_it.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.to_it.read(into)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.from_it.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn messages() -> Vec<(Kind, Vec<u8>)> {
    let text = "grüße ".repeat(20_000).into_bytes();
    let binary: Vec<u8> = (0..200_000_u32).map(|at| (at * 7) as u8).collect();
    let mut messages = vec![(Kind::Text, text), (Kind::Binary, binary)];
    for length in [0, 1, 7, 8, 125, 126, 127, 65_535, 65_536] {
        messages.push((Kind::Binary, vec![b'x'; length]));
        messages.push((Kind::Text, vec![b'y'; length]));
    }
    messages
}

fn converse(ours: OurRole, theirs: Role) {
    let mut codec = Codec::new(ours, Settings { mask_seed: 5, ..Settings::default() });
    let mut foreign = WebSocket::from_raw_socket(Pipe::default(), theirs, None);
    for (kind, content) in messages() {
        codec.send(kind, content.clone()).unwrap();
        foreign.get_mut().to_it.extend(output(&mut codec));
        let message = foreign.read().unwrap();
        assert_eq!(message.is_text(), kind == Kind::Text);
        assert_eq!(message.clone().into_data(), content);
        foreign.send(message).unwrap();
        let sent = std::mem::take(&mut foreign.get_mut().from_it);
        assert_eq!(feed(&mut codec, sent.chunks(1000)), [Seen::Message(kind, content)]);
    }
    foreign.send(Message::Ping("p".into())).unwrap();
    let sent = std::mem::take(&mut foreign.get_mut().from_it);
    assert_eq!(feed(&mut codec, [&sent[..]]), [Seen::Ping(b"p".to_vec())]);
    codec.send_close(CloseCode::GOING_AWAY, "bye").unwrap();
    foreign.get_mut().to_it.extend(output(&mut codec));
    assert_eq!(foreign.read().unwrap(), Message::Pong("p".into()));
    let Message::Close(Some(close)) = foreign.read().unwrap() else { panic!("a close frame") };
    assert_eq!((u16::from(close.code), close.reason.as_str()), (1001, "bye"));
    // Its response leaves when it is asked again.
    assert!(matches!(foreign.read(), Err(Error::ConnectionClosed | Error::Io(_))));
    let sent = std::mem::take(&mut foreign.get_mut().from_it);
    assert_eq!(feed(&mut codec, [&sent[..]]), [Seen::Closed(1001, "bye".to_owned())]);
}

#[test]
fn a_server_of_ours_and_a_client_of_theirs() {
    converse(OurRole::Server, Role::Client);
}

#[test]
fn a_client_of_ours_and_a_server_of_theirs() {
    converse(OurRole::Client, Role::Server);
}
